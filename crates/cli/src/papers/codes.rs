//! The codes in what papers claim (C-39, A-07, EX2.3, V1.10), and what the pages of `docs/design` say that each is.

use std::collections::BTreeSet;
use std::ops::Range;

/// The pages that define them, by their paths in the repository. Codes of the second have an M: VM5.1, EM5.1, CM-11.
const PAGES: [(&str, &str); 2] = [
    ("docs/design/protocols.md", include_str!("../../data/protocols.md")),
    ("docs/design/modern.md", include_str!("../../data/modern.md")),
];

/// A code and what it stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code {
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    pub(crate) page: &'static str,
    /// Of the page.
    pub(crate) anchor: &'static str,
}

/// The codes that the pages define, in their order: `<a id="c-39"></a>**C-39 title**`.
pub(crate) fn defined() -> impl Iterator<Item = Code> {
    PAGES.into_iter().flat_map(|(page, text)| {
        text.split("<a id=\"").skip(1).filter_map(move |rest| {
            let (anchor, rest) = rest.split_once("\"></a>**")?;
            let (key, rest) = rest.split_at(length(rest)?);
            let (title, _) = rest.strip_prefix(' ')?.split_once("**")?;
            Some(Code { key, title, page, anchor })
        })
    })
}

/// The codes in a text that the pages define, each once, in the pages' order.
pub(crate) fn named_in(text: &str) -> Vec<Code> {
    let keys: BTreeSet<&str> = places(text).map(|place| &text[place]).collect();
    defined().filter(|code| keys.contains(code.key)).collect()
}

/// True if a text says where a formula is derived: by a code that the pages define, or by a section of the first that there is.
pub(crate) fn names_a_source(text: &str) -> bool {
    let [(page, page_text), _] = PAGES;
    let is_section = |rest: &str| {
        let rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = rest[..end].trim_end_matches('.');
        let is_of_it = |line: &str| {
            let title = line.trim_start_matches('#');
            title.len() < line.len() && title.trim_start().split(' ').next() == Some(number)
        };
        number.contains('.') && page_text.lines().any(is_of_it)
    };
    !named_in(text).is_empty() || text.split(page).skip(1).any(is_section)
}

/// Where codes are in a text, defined or not.
pub(crate) fn places(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut before = None;
    text.char_indices().filter_map(move |(at, c)| {
        let is_inside = before.replace(c).is_some_and(|c: char| c.is_alphanumeric() || "_-".contains(c));
        let length = if is_inside { None } else { length(&text[at..]) };
        length.map(|length| at..at + length)
    })
}

/// How long the code is that a text begins with.
fn length(text: &str) -> Option<usize> {
    let digits = |from: usize| text.bytes().skip(from).take_while(u8::is_ascii_digit).count();
    let letters =
        ["EX", "EM", "VM", "V", "A-", "CM-", "C-"].into_iter().find(|letters| text.starts_with(letters))?;
    let first = letters.len() + digits(letters.len());
    let end = if letters.ends_with('-') {
        first
    } else {
        text[first..].strip_prefix('.')?;
        first + 1 + digits(first + 1)
    };
    let least = if letters.ends_with('-') { 2 } else { 1 };
    let is_number = first >= letters.len() + least && text[..end].ends_with(|c: char| c.is_ascii_digit());
    let mut after = text[end..].chars();
    let goes_on = match after.next() {
        Some('.') => after.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_alphanumeric() || c == '_',
        None => false,
    };
    (is_number && !goes_on).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::names_a_source;

    #[test]
    fn a_formula_has_a_code_or_a_section_that_there_is() {
        for (text, is_named) in [
            ("a fortieth of the traffic (C-03)", true),
            ("the formula of docs/design/protocols.md 2.5 has 0.889", true),
            ("as docs/design/protocols.md 2.5.", true),
            (concat!("the formula of docs/design/protocols.md ", "99.5 has 0.889"), false),
            ("docs/design/protocols.md says so", false),
            (concat!("a formula says otherwise (C-", "999)"), false),
            ("as everybody knows", false),
        ] {
            assert_eq!(names_a_source(text), is_named, "{text}");
        }
    }
}

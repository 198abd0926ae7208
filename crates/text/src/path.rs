//! Paths such as `links.bottleneck.rate`, `flows.ftp[0].goodput_bps`, `links."a b".drops`.

use std::fmt;

use toml_writer::{ToTomlValue as _, TomlStringBuilder};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into a table.
    Key(String),
    /// Into an array, from 0.
    Index(usize),
    /// Into each of the links, or groups of flows.
    Any,
}

/// Returns true if two paths can name the same place: a `*` is any key.
pub fn meets(one: &[Step], other: &[Step]) -> bool {
    let same = |(one, other): (&Step, &Step)| match (one, other) {
        (Step::Any, Step::Key(_)) | (Step::Key(_), Step::Any) => true,
        (one, other) => one == other,
    };
    one.len() == other.len() && one.iter().zip(other).all(same)
}

/// Returns true if a path, put after another one, changes what the other named more narrowly.
pub fn overwrites(later: &[Step], earlier: &[Step]) -> bool {
    let is_wider = |(later, earlier): (&Step, &Step)| *later == Step::Any && matches!(earlier, Step::Key(_));
    meets(later, earlier) && later.iter().zip(earlier).any(is_wider)
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "`{key}`"),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Any => f.write_str("`*`"),
        }
    }
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    /// Byte at which it stops to be one.
    pub at: usize,
    /// Description of what is wrong there.
    pub message: String,
}

fn is_bare(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '-'
}

/// Reads a whole text as a path.
pub fn parse(text: &str) -> Result<Vec<Step>, PathError> {
    let (steps, end) = parse_prefix(text)?;
    if end == text.len() {
        Ok(steps)
    } else {
        Err(PathError { at: end, message: format!("`{text}` is no path") })
    }
}

/// Reads the path at the beginning of a text; returns how long it is.
pub fn parse_prefix(text: &str) -> Result<(Vec<Step>, usize), PathError> {
    let mut steps = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let is_any = rest.starts_with('*');
        let (key, length) = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let end = rest[1..].find(quote).ok_or_else(|| PathError {
                    at,
                    message: format!("`{text}` has a quote that does not end"),
                })?;
                (&rest[1..=end], end + 2)
            }
            Some('*') => ("*", 1),
            _ => {
                let end = rest.find(|c| !is_bare(c)).unwrap_or(rest.len());
                (&rest[..end], end)
            }
        };
        if key.is_empty() {
            return Err(PathError { at, message: format!("`{text}` lacks a key after byte {at}") });
        }
        steps.push(if is_any { Step::Any } else { Step::Key(key.into()) });
        at += length;
        while text[at..].starts_with('[') {
            let end = text[at..].find(']').map(|end| at + end);
            let index = end.and_then(|end| text[at + 1..end].trim().parse().ok());
            let (Some(end), Some(index)) = (end, index) else {
                return Err(PathError { at, message: format!("`{text}` has an index that is no number") });
            };
            steps.push(Step::Index(index));
            at = end + 1;
        }
        if !text[at..].starts_with('.') {
            return Ok((steps, at));
        }
        at += 1;
    }
}

/// A key as it is written in a path or a file.
pub fn quote(key: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(is_plain) { key.into() } else { string(key) }
}

/// A string of TOML on one line: a key may not be written in several.
pub fn string(text: &str) -> String {
    let builder = TomlStringBuilder::new(text);
    if text.contains('\n') { builder.as_basic() } else { builder.as_default() }.to_toml_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_keys_and_indices() {
        let key = |text: &str| Step::Key(text.into());
        assert_eq!(parse("links.bottleneck.rate"), Ok(vec![key("links"), key("bottleneck"), key("rate")]));
        assert_eq!(parse("claims[2].\"a b\""), Ok(vec![key("claims"), Step::Index(2), key("a b")]));
        assert_eq!(parse("'x.y'.größe"), Ok(vec![key("x.y"), key("größe")]));
        assert_eq!(parse_prefix("a.b at 3").map(|(_, end)| end), Ok(3));
        assert_eq!(parse("flows.*[1].x"), Ok(vec![key("flows"), Step::Any, Step::Index(1), key("x")]));
        assert_eq!(parse("flows.\"*\""), Ok(vec![key("flows"), key("*")]), "a name in quotes is that name");
        for text in [
            "",
            ".",
            "a.",
            "a..b",
            "a.*b",
            "a.b*",
            "a b",
            "a[",
            "a[]",
            "a[-1]",
            "a[99999999999999999999]",
            "\"a",
            "a=b",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn keys_are_quoted_where_toml_wants_it() {
        assert_eq!(quote("queue_max-2"), "queue_max-2");
        assert_eq!(quote("a.b"), "\"a.b\"");
        assert_eq!(quote(""), "\"\"");
        assert_eq!(quote("größe"), "\"größe\"");
        assert_eq!(quote("two\nlines"), r#""two\nlines""#);
    }
}

//! Text from files and arguments, made fit for a terminal: nothing in it moves the cursor, hides or turns
//! the text beside it, or fills the screen.
//!
//! Invisible characters are written as `\u{1b}`. Data are left as they are: readers of JSON or CSV get every byte.

use std::borrow::Cow;

/// Most characters of a message. A longer one is cut in its middle, because both ends say something.
pub const MESSAGE: usize = 1000;
/// Most characters of a table's cell, cut as [`MESSAGE`] is.
pub const CELL: usize = 120;

/// Returns true if a terminal does something else with the character than to show it: controls (C0 and C1),
/// characters that turn or hide text (UAX #9, and Unicode's tags), characters that end a line elsewhere.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Returns the text on one line, of at most `most` characters.
pub fn line(text: &str, most: usize) -> Cow<'_, str> {
    cut(shown(text, |_| false), most)
}

/// Returns the text with its line breaks, uncut.
pub fn lines(text: &str) -> Cow<'_, str> {
    shown(text, |character| matches!(character, '\n' | '\t'))
}

fn shown(text: &str, is_allowed: fn(char) -> bool) -> Cow<'_, str> {
    let is_meant = |character| is_hidden(character) && !is_allowed(character);
    if !text.contains(is_meant) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_meant(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Two thirds of what fits from the beginning, the rest from the end.
fn cut(text: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    // Most texts are short, and no character is shorter than a byte.
    if text.len() <= most || text.chars().count() <= most {
        return text;
    }
    let ahead = most * 2 / 3;
    let behind = most.saturating_sub(ahead + 1);
    let end = text.char_indices().nth(ahead).map_or(text.len(), |(at, _)| at);
    let start = behind
        .checked_sub(1)
        .map_or(text.len(), |last| text.char_indices().rev().nth(last).map_or(0, |(at, _)| at));
    Cow::Owned(format!("{}…{}", &text[..end], &text[start..]))
}

/// A text of the same length in bytes in which nothing is hidden: places in it stay where they are.
pub fn masked(text: &str) -> Cow<'_, str> {
    let is_meant = |character| is_hidden(character) && !matches!(character, '\n' | '\r' | '\t');
    if !text.contains(is_meant) {
        return Cow::Borrowed(text);
    }
    let mask = |character: char| match character.len_utf8() {
        _ if !is_meant(character) => character,
        1 => '?',
        2 => '¿',
        3 => '\u{fffd}',
        _ => '\u{1f7e5}',
    };
    Cow::Owned(text.chars().map(mask).collect())
}

/// Returns JSON in which no string has raw characters that a terminal would obey; its value is the same.
pub fn json(text: String) -> String {
    let is_meant = |character| is_hidden(character) && character != '\n';
    if !text.contains(is_meant) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_meant(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Returns a text as HTML; characters that cannot be seen are written as their codes.
pub fn escape(text: &str) -> String {
    lines(&text.replace("\r\n", "\n"))
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_and_what_it_shows_is_left() {
        assert_eq!(line("\u{1b}[2Ja\u{9b}b\u{202e}c\r\n", 100), "\\u{1b}[2Ja\\u{9b}b\\u{202e}c\\u{d}\\u{a}");
        assert_eq!(lines("a\nb\u{7f}\n"), "a\nb\\u{7f}\n");
        for text in ["größer µs 山 👩‍🚀", "", "a b"] {
            assert!(matches!(line(text, 100), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn a_long_text_keeps_both_ends_and_its_characters() {
        let text = format!("unknown key `{}` in `links`", "ä".repeat(1_000_000));
        let short = line(&text, 60);
        assert_eq!(short.chars().count(), 60);
        assert!(short.starts_with("unknown key `ää") && short.ends_with("ä` in `links`"), "{short}");
        for most in [0, 1, 2, 3] {
            assert!(line("abcdef", most).chars().count() <= most.max(1), "{most}");
        }
    }

    #[test]
    fn a_mask_moves_nothing() {
        let text = "a\u{1b}b\u{9b}c\u{202e}d\u{e0041}e\tf\n";
        let masked = masked(text);
        assert_eq!(masked, "a?b¿c\u{fffd}d\u{1f7e5}e\tf\n");
        assert_eq!(masked.len(), text.len());
    }

    #[test]
    fn json_says_the_same_without_raw_controls() {
        let value = serde_json::json!({ "\u{9b}": "\u{1b}\u{202e}\u{e0041}\n" });
        let text = json(serde_json::to_string_pretty(&value).expect("text"));
        assert!(text.chars().all(|c| c == '\n' || !is_hidden(c)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }
}

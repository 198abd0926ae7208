//! What the footer of a Parquet file states, held against its bytes before a decoder trusts it.
//!
//! A footer is a struct of Thrift's [compact protocol]. The library reserves memory for as many groups of rows as a list
//! states, which is 200 GB for a footer of some bytes; an allocation that fails ends the process, and nothing can catch that.
//!
//! [compact protocol]: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md

/// Structs and lists inside each other: a footer that is written here has 6 levels.
const DEEPEST: usize = 32;

/// Types of values, numbered as the protocol does.
mod kind {
    pub(super) const STOP: u8 = 0;
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const STRUCT: u8 = 12;
}

/// True if the bytes are a struct in which every length can be met by the bytes that follow it.
pub(super) fn has_what_it_states(footer: &[u8]) -> bool {
    structure(footer, DEEPEST).is_some()
}

/// Each of these returns what follows the value, or nothing if the value does not end.
fn structure(mut bytes: &[u8], levels: usize) -> Option<&[u8]> {
    let levels = levels.checked_sub(1)?;
    loop {
        let (&head, rest) = bytes.split_first()?;
        // The high half is the distance from the field before; without one the field's number follows.
        bytes = match head {
            kind::STOP => return Some(rest),
            0x01..0x10 => number(rest)?.1,
            _ => rest,
        };
        // A boolean of a struct is in its type.
        if !matches!(head & 0x0f, kind::TRUE | kind::FALSE) {
            bytes = value(bytes, head & 0x0f, levels)?;
        }
    }
}

fn value(bytes: &[u8], kind: u8, levels: usize) -> Option<&[u8]> {
    match kind {
        kind::TRUE | kind::FALSE | kind::BYTE => bytes.get(1..),
        kind::I16..=kind::I64 => Some(number(bytes)?.1),
        kind::DOUBLE => bytes.get(8..),
        kind::BINARY => {
            let (length, rest) = number(bytes)?;
            rest.get(length..)
        }
        kind::LIST | kind::SET => list(bytes, levels),
        kind::STRUCT => structure(bytes, levels),
        // A footer of Parquet has no maps.
        _ => None,
    }
}

fn list(bytes: &[u8], levels: usize) -> Option<&[u8]> {
    let levels = levels.checked_sub(1)?;
    let (&head, rest) = bytes.split_first()?;
    // The high half is the length, unless it is too long for that.
    let (length, mut rest) = if head >> 4 == 0x0f { number(rest)? } else { (usize::from(head >> 4), rest) };
    // No value is shorter than a byte.
    if length > rest.len() {
        return None;
    }
    for _ in 0..length {
        rest = value(rest, head & 0x0f, levels)?;
    }
    Some(rest)
}

/// A number in groups of seven bits, the lowest first.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let last = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)?;
    let (number, rest) = bytes.split_at(last + 1);
    let joined = number.iter().rev().fold(0_u128, |sum, byte| sum << 7 | u128::from(byte & 0x7f));
    // What does not fit is longer than any file; of a negative number only its end matters.
    Some((usize::try_from(joined).unwrap_or(usize::MAX), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 1, a schema of no columns, no rows, and groups of rows as the list says.
    fn footer(groups: &[u8]) -> Vec<u8> {
        [&[0x15, 0x02, 0x19, 0x0c, 0x16, 0x00, 0x19], groups, &[0]].concat()
    }

    #[test]
    fn a_list_has_the_elements_that_it_states() {
        assert!(has_what_it_states(&footer(&[0x0c])), "none");
        assert!(has_what_it_states(&footer(&[0x2c, 0, 0])), "two empty ones");
        // The first takes the end of the whole.
        assert!(!has_what_it_states(&footer(&[0x1c])));
        assert!(!has_what_it_states(&footer(&[0xfc, 0xff, 0xff, 0xff, 0xff, 0x07])), "2^31 - 1 groups");
        assert!(!has_what_it_states(&footer(&[
            0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
        ])));
    }

    #[test]
    fn each_kind_of_value_ends_where_it_says() {
        let values: [&[u8]; 8] = [
            &[0x11],
            &[0x13, 0x80],
            &[0x14, 0xff, 0x01],
            &[0x17, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0x18, 0x02, b'a', b'b'],
            &[0x1a, 0x31, 1, 2, 1],
            &[0x1c, 0x11, 0],
            // A field whose number follows.
            &[0x05, 0x40, 0x07],
        ];
        for value in values {
            assert!(has_what_it_states(&[value, &[0]].concat()), "{value:?}");
            for cut in 0..value.len() {
                assert!(!has_what_it_states(&value[..cut]), "{value:?} to {cut}");
            }
        }
        assert!(!has_what_it_states(&[0x1b, 0, 0]), "a map");
    }

    #[test]
    fn what_is_too_deep_is_refused() {
        let nested = |levels: usize| [vec![0x1c; levels], vec![0; levels + 1]].concat();
        assert!(has_what_it_states(&nested(DEEPEST - 1)));
        assert!(!has_what_it_states(&nested(DEEPEST)));
        assert!(!has_what_it_states(&vec![0x19; 1 << 20]));
    }
}

//! Texts by which object files of programs name their laws.

/// Returns the name of the law in an object; empty if the object does not state it.
pub fn law_name_in(object: &[u8]) -> &str {
    text_in(object, "congestlab law: ")
}

/// Returns where the law's header is, if the object states it; empty if it does not.
pub(super) fn place_in(object: &[u8]) -> &str {
    text_in(object, "congestlab header: ")
}

/// The text behind a mark.
fn text_in<'a>(object: &'a [u8], mark: &str) -> &'a str {
    let at = object.windows(mark.len()).position(|bytes| bytes == mark.as_bytes());
    let text = at.map_or(&[][..], |at| &object[at + mark.len()..]);
    std::str::from_utf8(text.split(|byte| *byte == 0).next().unwrap_or_default()).unwrap_or_default()
}

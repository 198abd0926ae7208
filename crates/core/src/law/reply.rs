//! The reply that an ACK brings to a sender's law. Receivers write replies and packets carry them, so this file imports neither.

/// Reply of an ACK to the sender's law: bits that the law has for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Reply {
    /// A word.
    pub word: u32,
    /// A byte more.
    pub byte: u8,
}

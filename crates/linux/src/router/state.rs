//! Fate of a law's memory when its program is replaced.

use std::fmt;

/// Fate of a law's memory, of intervals, means, pools, flows and counts, when its program is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The law goes on with it.
    Kept,
    /// The law begins anew, since the one before was another.
    OtherLaw,
    /// The law begins anew, since the one before had other constants, by which it had decided.
    OtherConstants,
    /// The law begins anew, since the version before remembers other things, or at other places.
    OtherLayout,
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Kept => "the law goes on where it was",
            Self::OtherLaw => "the law begins anew, for the one before was another",
            Self::OtherConstants => "the law begins anew, for the one before had other constants",
            Self::OtherLayout => "the law begins anew, for the version before remembers otherwise",
        })
    }
}

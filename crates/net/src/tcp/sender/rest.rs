//! State of a sender that few connections need, or seldom, so that all others are smaller by it.

use congestlab_core::units::Time;

use super::super::Connection;
use super::stats::Ledger;

/// State that few connections need, or seldom.
#[derive(Debug)]
pub(super) struct Rest {
    /// Headers of its packets, for laws that write into them.
    pub(super) connection: Connection,
    /// When the application writes its next burst.
    pub(super) write_at: Time,
    pub(super) ledger: Ledger,
}

impl Default for Rest {
    fn default() -> Self {
        Self { connection: Connection::default(), write_at: Time::NEVER, ledger: Ledger::default() }
    }
}

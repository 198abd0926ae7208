//! Reno's AIMD (RFC 5681). Stub being filled in.
use super::Ack;
use crate::units::{Bytes, Time};

/// Nothing to configure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {}

/// State.
#[derive(Clone, Debug)]
pub struct Reno {
    cwnd: Bytes,
}

impl Reno {
    /// New.
    pub fn new(_mss: Bytes, initial_window: Bytes) -> Self {
        Self { cwnd: initial_window }
    }
    /// Ack.
    pub fn on_ack(&mut self, _c: &Config, _now: Time, _ack: &Ack) {}
    /// Loss.
    pub fn on_loss(&mut self, _c: &Config, _now: Time, _flight: Bytes) {}
    /// Timeout.
    pub fn on_timeout(&mut self, _c: &Config, _now: Time, _flight: Bytes, _is_first: bool) {}
    /// Restart.
    pub fn on_restart(&mut self, _c: &Config, _now: Time, _iw: Bytes) {}
    /// Window.
    pub fn window(&self) -> Bytes {
        self.cwnd
    }
}

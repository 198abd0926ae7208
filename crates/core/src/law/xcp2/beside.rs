//! CUBIC beside XCP, on paths with a queue that no link tells of.
//!
//! Feedback says nothing of a hop without XCP, nor of one that stalls. A loss after a round trip that had become longer is
//! taken for its word: from then on the window is CUBIC's, until feedback was the stricter of the two in eight round trips in
//! a row. Feedback whose sign changes ends nothing. A loss without a queue is an error on the wire.

use crate::law::{Ack, SenderLaw, cubic, xcp};
use crate::units::{Bytes, Duration, Time};

/// Round trips in a row in which feedback is the stricter until CUBIC ends.
const ROUNDS: u8 = 8;
/// Least window in segments with which CUBIC begins: with less the links have told already.
const LEAST: u64 = 4;

/// CUBIC, and when it counts.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Beside {
    mss: Bytes,
    cubic: cubic::Cubic,
    is_on: bool,
    rounds: u8,
    began: Time,
    /// CUBIC's window then, and the change that feedback asked for since, bytes with the window's places.
    window: Bytes,
    change: i64,
    last_rtt: Duration,
}

impl Beside {
    #[inline(always)]
    pub(super) fn new(mss: Bytes) -> Self {
        Self {
            mss,
            cubic: cubic::Cubic::new(mss, mss),
            is_on: false,
            rounds: 0,
            began: Time::ZERO,
            window: Bytes(0),
            change: 0,
            last_rtt: Duration(0),
        }
    }

    /// Returns the window, if it is CUBIC's. `change` is what the ACK's feedback asks for, bytes with the window's places.
    #[inline]
    pub(super) fn on_ack(&mut self, now: Time, ack: &Ack, change: i64) -> Option<Bytes> {
        if ack.rtt.0 > 0 {
            self.last_rtt = ack.rtt;
        }
        if !self.is_on {
            return None;
        }
        self.cubic.on_ack(&cubic::Config::default(), now, ack);
        self.change = self.change.saturating_add(change);
        let window = self.cubic.window();
        if ack.in_recovery {
            self.begin_round(now);
        } else if now - self.began >= ack.srtt {
            let grown = xcp::with_places(window - self.window).min(i64::MAX as u64) as i64;
            self.rounds = if self.change < grown { self.rounds + 1 } else { 0 };
            self.is_on = self.rounds < ROUNDS;
            self.begin_round(now);
        }
        Some(window)
    }

    /// Returns true while the window is CUBIC's.
    #[inline(always)]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    #[inline(always)]
    fn begin_round(&mut self, now: Time) {
        (self.began, self.window, self.change) = (now, self.cubic.window(), 0);
    }

    /// Returns the window after a loss, if it is CUBIC's; `window` is that before, and `least` the least round trip.
    #[inline]
    pub(super) fn on_loss(
        &mut self,
        now: Time,
        window: Bytes,
        flight: Bytes,
        least: Duration,
    ) -> Option<Bytes> {
        self.begin(window, least);
        self.cubic.on_loss(&cubic::Config::default(), now, flight);
        self.end(now)
    }

    /// As [`Beside::on_loss`], after a timeout.
    #[inline]
    pub(super) fn on_timeout(
        &mut self,
        now: Time,
        window: Bytes,
        flight: Bytes,
        is_first: bool,
        least: Duration,
    ) -> Option<Bytes> {
        self.begin(window, least);
        self.cubic.on_timeout(&cubic::Config::default(), now, flight, is_first);
        self.end(now)
    }

    /// A packet was lost.
    #[inline(always)]
    fn begin(&mut self, window: Bytes, least: Duration) {
        let has_queue = self.last_rtt.0 > least.0.saturating_add(least.0 / 4);
        if !self.is_on && has_queue && window.0 >= self.mss.0.saturating_mul(LEAST) {
            self.cubic = cubic::Cubic::new(self.mss, window);
            self.is_on = true;
        }
        self.rounds = 0;
    }

    #[inline(always)]
    fn end(&mut self, now: Time) -> Option<Bytes> {
        self.begin_round(now);
        self.is_on.then(|| self.cubic.window())
    }
}

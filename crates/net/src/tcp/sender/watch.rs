//! Retransmissions that are watched, because a law that does not send less for a loss has to find those that are lost, too.
//!
//! P-XCP keeps its window at a loss (PX §III), so it has to find losses as long as ACKs come, also
//! those of retransmissions: each loss is repeated once per round trip (docs/design/protocols.md 2.3). BBR's rate
//! does not fall with losses either, and those who made it find them (Linux by RACK, RFC 8985). The
//! timer, which leaves one segment of the window, is for silence. One timer serves both: between
//! `end_watch` and `begin_watch` it is that of RFC 6298, else whichever comes first.

use congestlab_core::units::Time;

use super::{Config, Mode, Sender, bit};

impl Sender {
    pub(super) fn begin_watch(&mut self) {
        if self.flags & bit::LINUX != 0 {
            self.watch_as_linux();
        } else if let Some(board) = &mut self.scoreboard
            && let Some(since) = board.watched_since()
        {
            let due = since + self.rtt.patience();
            if due < self.timer {
                board.expiry = core::mem::replace(&mut self.timer, due);
            }
        }
    }

    pub(super) fn end_watch(&mut self) {
        if let Some(board) = &mut self.scoreboard
            && board.expiry != Time::NEVER
        {
            self.timer = core::mem::replace(&mut board.expiry, Time::NEVER);
        }
    }

    /// The timer has expired: true if it was for a retransmission.
    #[inline(never)]
    pub(super) fn serves_watched(&mut self, config: &Config, now: Time) -> bool {
        self.end_watch();
        if self.flags & bit::LINUX != 0 {
            return self.serves_as_linux(config, now);
        }
        let is_watched = now < self.timer;
        if is_watched {
            self.find_lost_again(config, now);
            self.begin_watch();
        }
        is_watched
    }

    pub(super) fn find_lost_again(&mut self, config: &Config, now: Time) {
        let Some(board) = self.scoreboard.as_mut().filter(|board| board.is_watching()) else { return };
        let is_lost = board.find_lost_again(self.una, now, self.rtt.patience());
        if is_lost && matches!(self.mode, Mode::Open | Mode::Reduced) {
            self.enter_recovery(config, now);
        }
    }
}

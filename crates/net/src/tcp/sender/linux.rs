//! The ways of Linux's TCP (`profile = "linux"`): RACK finds losses and TLP asks for acknowledgments (RFC 8985), PRR
//! says how much is sent while the window is reduced (RFC 9937), and slow start may be HyStart or HyStart++
//! (RFC 9406).
//!
//! The sender's one timer serves them as it does retransmissions that are watched: the retransmission timer, or
//! whatever is due before it.

use congestlab_core::law;
use congestlab_core::units::{Bytes, Duration, Time};

use super::super::linux::Start;
use super::super::prr::Prr;
use super::super::slow_start::Heard;
use super::super::tail::Tail;
use super::{Config, Linux, Mode, Sender, absolute, bit, sent_bytes};
use crate::packet::Packet;

impl Sender {
    fn linux(&mut self) -> Option<&mut Linux> {
        self.scoreboard.as_mut().and_then(|board| board.linux.as_deref_mut())
    }

    /// Takes an acknowledgment up to `ack`, by which the window grows in slow start; returns what of it is left to the law.
    #[cold]
    pub(super) fn hear_as_linux(
        &mut self,
        config: &Config,
        now: Time,
        packet: &Packet,
        ack: u64,
        advanced: u64,
        rtt: Duration,
    ) -> Bytes {
        let acked = sent_bytes(config, advanced);
        let (next, mss) = (self.next, u64::from(config.segment));
        let (srtt, window) = (self.rtt.srtt(), self.law.window().0);
        let is_limited = self.flags & bit::WINDOW_LIMITED != 0;
        let Some(linux) = self.linux() else { return acked };
        linux.rack.begin(now, packet.sent_at(now));
        if advanced == 0 {
            return acked;
        }
        linux.tail.note_sample();
        let heard = Heard { now, una: ack, next, acked: acked.0, rtt, srtt, window, mss };
        let step = linux.start.as_mut().map(|start| start.on_ack(&heard));
        let growth = step.map_or(acked, |step| Bytes(step.growth));
        if step.is_some_and(|step| step.is_over) {
            linux.start = None;
            self.law.leave_slow_start(&config.law);
        }
        // Grown or not, slow start is no business of the law's.
        let growth = if is_limited { growth } else { Bytes(0) };
        if self.law.slow_start(&config.law, growth) {
            return Bytes(0);
        }
        if let Some(linux) = self.linux() {
            linux.start = None;
        }
        acked
    }

    /// The end of `inspect`: the scoreboard has taken the acknowledgment in. `before`: the mode before it.
    #[cold]
    pub(super) fn inspect_as_linux(
        &mut self,
        config: &Config,
        now: Time,
        packet: &Packet,
        advanced: u64,
        before: Mode,
    ) {
        let is_bare = advanced == 0 && packet.sack(0) == (0, 0);
        let (una, next, dsack) = (self.una, self.next, self.duplicate(packet));
        let is_exit = matches!(before, Mode::Recovery | Mode::Loss) && self.mode == Mode::Open;
        let Some(linux) = self.linux() else { return };
        let has_repaired = linux.tail.on_ack(una, dsack, is_bare);
        linux.rack.settle(una, next, dsack.is_some(), is_exit);
        // The probe has repaired what would have been a recovery (RFC 8985 §7.4.2).
        if has_repaired && self.mode == Mode::Open {
            self.reduce(config, now, law::Sender::on_loss);
        }
        let lost = self.find_losses(config, now);
        self.reduce_smoothly(config, advanced > 0 && !lost);
        self.schedule_probe(now, advanced > 0);
        self.begin_watch();
    }

    /// The segment after the one that the acknowledgment reports as a duplicate (RFC 2883 §4).
    fn duplicate(&self, packet: &Packet) -> Option<u64> {
        let place = |seq| absolute(seq, self.base, self.una);
        let block = |index| Some((place(packet.sack(index).0)?, place(packet.sack(index).1)?));
        let first = block(0)?;
        let is_below = first.1 <= place(packet.seq)?;
        let is_within = block(1).is_some_and(|second| second.0 <= first.0 && first.1 <= second.1);
        (first.0 < first.1 && (is_below || is_within)).then_some(first.1)
    }

    /// RACK marks what is lost by now; true if something is that was not. A loss begins a recovery.
    fn find_losses(&mut self, config: &Config, now: Time) -> bool {
        let srtt = self.rtt.srtt();
        let (una, next) = (self.una, self.next);
        let is_recovering = matches!(self.mode, Mode::Recovery | Mode::Loss);
        let Some(linux) = self.linux() else { return false };
        let before = linux.rack.pipe(una, next);
        linux.reorder_at = linux.rack.detect(now, srtt, is_recovering);
        let has_lost = linux.rack.pipe(una, next) < before;
        if linux.rack.next_lost().is_some() && matches!(self.mode, Mode::Open | Mode::Reduced) {
            self.recover_as_linux(config, now);
        }
        has_lost
    }

    fn recover_as_linux(&mut self, config: &Config, now: Time) {
        // One reduction per window of data, for whatever reason (RFC 3168 §6.1.2).
        if self.mode != Mode::Reduced {
            self.reduce(config, now, law::Sender::on_loss);
        }
        self.mode = Mode::Recovery;
        self.recover = self.next;
        if let Some(linux) = self.linux() {
            linux.tail.reset();
        }
        self.restart_timer(config, now);
    }

    /// While the window is being reduced, PRR says what of it may be used.
    fn reduce_smoothly(&mut self, config: &Config, is_safe: bool) {
        let is_reducing = matches!(self.mode, Mode::Recovery | Mode::Reduced);
        let segment = u64::from(config.segment);
        let ssthresh = (self.law.window().0 / segment).max(1);
        let (pipe, outstanding) = (self.pipe(), self.next - self.una);
        let Some(linux) = self.linux() else { return };
        if !is_reducing {
            linux.prr = None;
            return;
        }
        let delivered = linux.rack.delivered();
        // What had not arrived before this acknowledgment (RFC 9937 §6.1).
        let flight = outstanding - linux.rack.sacked() + delivered;
        let prr = linux.prr.get_or_insert_with(|| Prr::new(ssthresh, flight));
        prr.on_ack(delivered, pipe, is_safe);
        let window = Bytes(prr.window().saturating_mul(segment));
        self.law.hold(window);
    }

    /// RFC 8985 §7.2: the probe's time begins anew with what is sent and with what is acknowledged.
    fn schedule_probe(&mut self, now: Time, is_anew: bool) {
        let (srtt, expiry) = (self.rtt.srtt(), self.timer);
        let outstanding = self.next - self.una;
        let is_calm = matches!(self.mode, Mode::Open | Mode::Reduced);
        let Some(linux) = self.linux() else { return };
        if outstanding == 0 || !is_calm || linux.rack.sacked() > 0 || !linux.tail.may_probe() {
            linux.probe_at = Time::NEVER;
        } else if is_anew {
            linux.probe_at = Tail::due(now, srtt, outstanding == 1, expiry);
        }
    }

    /// As `begin_watch`.
    #[cold]
    pub(super) fn watch_as_linux(&mut self) {
        if let Some(board) = &mut self.scoreboard
            && let Some(linux) = &board.linux
        {
            let due = linux.reorder_at.min(linux.probe_at);
            // A probe takes the place of a timeout at the same time (RFC 8985 §7.2).
            if due <= self.timer && due != Time::NEVER {
                board.expiry = core::mem::replace(&mut self.timer, due);
            }
        }
    }

    /// The sender's timer has expired, and is again that of retransmissions: true if that has not.
    #[cold]
    pub(super) fn serves_as_linux(&mut self, config: &Config, now: Time) -> bool {
        let Some(linux) = self.linux() else { return false };
        if now >= linux.reorder_at {
            linux.rack.begin(now, Time::ZERO);
            if self.find_losses(config, now) && self.linux().is_some_and(|linux| linux.prr.is_none()) {
                self.reduce_smoothly(config, false);
            }
            self.schedule_probe(now, false);
        } else if now >= linux.probe_at {
            linux.probe_at = Time::NEVER;
            self.flags |= bit::TAIL;
            // RFC 8985 §7.3: from now on the timer is that of retransmissions.
            self.restart_timer(config, now);
        } else if now >= self.timer {
            return false;
        }
        self.begin_watch();
        true
    }

    /// The retransmission timer has expired: RFC 8985 §6.3. The first segment goes, whatever is in flight.
    #[cold]
    pub(super) fn expire_as_linux(&mut self, config: &Config, now: Time) {
        let (una, srtt) = (self.una, self.rtt.srtt());
        let Some(board) = &mut self.scoreboard else { return };
        let has_reneged = board.forget_withdrawn(una);
        if let Some(linux) = &mut board.linux {
            linux.rack.on_timeout(now, srtt, has_reneged);
            linux.tail.reset();
            linux.prr = None;
            linux.start = config.linux.and_then(Start::after_timeout);
            (linux.reorder_at, linux.probe_at) = (Time::NEVER, Time::NEVER);
        }
        self.flags &= !bit::TAIL;
        self.flags |= bit::REPEAT;
    }

    /// As `record_delivery`: segment `index` is sent.
    #[cold]
    pub(super) fn record_as_linux(&mut self, config: &Config, now: Time, index: u64) {
        self.end_watch();
        let is_probe = self.flags & bit::TAIL != 0;
        let is_new = index + 1 == self.next;
        let (next, segment) = (self.next, u64::from(config.segment));
        let mut window = None;
        if let Some(linux) = self.linux() {
            if is_probe {
                linux.tail.note_sent(next, linux.rack.has(index));
            }
            linux.rack.note_sent(now, index);
            if let Some(prr) = &mut linux.prr {
                prr.on_sent();
                window = Some(Bytes(prr.window().saturating_mul(segment)));
            }
        }
        if let Some(window) = window {
            self.law.hold(window);
        }
        self.flags &= !bit::TAIL;
        self.schedule_probe(now, is_new && !is_probe);
        self.begin_watch();
    }
}

//! Counts of a sender, and its state for observers.

use congestlab_core::law;
use congestlab_core::units::{Bytes, Duration, Time};

use super::super::Config;
use super::{Mode, Sender, bit};
use crate::packet::{Kind, Packet, stamp};
use crate::stats::Histogram;

/// The window is integrated over time in units of 2^10 ns: a window of 1 GB then fits 64 bits for
/// five hours. The unit divides time itself, not each step, so that nothing accumulates.
const TICK_BITS: u32 = 10;

/// State of a sender at a moment, for observers.
#[derive(Clone, Debug)]
pub struct View {
    /// The law with its window.
    pub law: law::Sender,
    /// The smoothed round trip time; zero: unknown.
    pub srtt: Duration,
    /// State of the connection.
    pub mode: Mode,
    /// Segments in flight.
    pub pipe: u64,
    /// Window that the receiver advertises, segments; [`UNLIMITED`](crate::packet::UNLIMITED) is unlimited.
    pub awnd: u32,
    /// True if the window, and not the data, stopped the last transmission.
    pub is_window_limited: bool,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Times that the sender had the law react to a loss or to echoed marks, and the window was smaller then. Cuts that the
    /// law makes by itself are in [`SenderCounts::window_cuts`] alone.
    pub window_cuts: u32,
    /// Sequence number expected next by the ACK that acknowledged most; an ACK of less is late.
    pub acknowledged: u32,
}

/// Counts and maxima of a sender over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Data packets sent, repeated ones and probes included.
    pub sent_packets: u64,
    /// Repeated data packets.
    pub retransmits: u64,
    /// Expiries of the retransmission timer, of the SYN's too.
    pub timeouts: u64,
    /// Decreases of the window that a loss or a congestion mark caused: by the sender's reaction, or by the law's own
    /// ([`law::SenderLaw::cuts`]). A timeout is counted above; a decrease by feedback that states how far the window moves,
    /// by delay, or by idle time is none.
    pub window_cuts: u64,
    /// Largest congestion window; `None` before the start.
    pub window_max: Option<Bytes>,
    /// Longest time without sent data, from the first on, by when it ended; `None` if there was none.
    pub idle_max: Option<Duration>,
}

/// Counts of a sender that are rare, apart from those of every packet.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub(super) retransmits: u32,
    pub(super) timeouts: u32,
    pub(super) window_cuts: u32,
    /// Packets sent beside new data and the first SYN, modulo 2^16.
    pub(super) beside: u16,
    /// When a repeated packet left last in the same instant as one before it.
    pub(super) repeated_beside: Time,
    /// Bytes of repeated packets and probes in the whole run, and within the measured time.
    repeated_bytes: u64,
    measured_repeated_bytes: u64,
    /// Everything that was counted before the measurement.
    before: SenderCounts,
    /// The first segment that was not sent before the measurement, and that was not sent before its end; the largest: it
    /// has not ended.
    measured: (u64, u64),
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            retransmits: 0,
            timeouts: 0,
            window_cuts: 0,
            beside: 0,
            repeated_beside: Time::ZERO,
            repeated_bytes: 0,
            measured_repeated_bytes: 0,
            before: SenderCounts::default(),
            measured: (0, u64::MAX),
        }
    }
}

/// Counts of a sender in the run and while measuring.
#[derive(Clone, Copy, Debug)]
pub struct SenderStats<'a> {
    /// Counts in the whole run.
    pub total: SenderCounts,
    /// Counts from the beginning of [`Measure`](crate::tcp::Measure) to the end of the run.
    pub measured: SenderCounts,
    /// Bytes of the data packets sent, in the whole run.
    pub sent_bytes: u64,
    /// Bytes of the data packets sent within [`Measure`](crate::tcp::Measure), cut short by the completion, as
    /// everything below.
    pub measured_bytes: u64,
    /// Probes of low priority sent, in the whole run.
    pub probes: u64,
    /// Round trip times sampled; `None` without any.
    pub round_trips: Option<&'a Histogram>,
    /// Integral of the congestion window over time, byte-ticks of 2^10 ns.
    window_sum: u64,
    /// Time that the integral covers, ticks.
    window_ticks: u64,
    /// Time at which the last byte was acknowledged: of a transfer, or of what was sent until the stop.
    pub completion: Option<Time>,
    segment: u16,
}

impl SenderStats<'_> {
    /// Returns the mean of the round trip times sampled, ms; `None` without any.
    pub fn rtt_mean_ms(&self) -> Option<f64> {
        self.round_trips.map(|samples| samples.sum().0 as f64 / samples.count() as f64 / 1e6)
    }

    /// Returns the 95th percentile of the round trip times sampled, ms: see [`Histogram::percentile`].
    pub fn rtt_p95_ms(&self) -> Option<f64> {
        self.round_trips.and_then(|samples| samples.percentile(95)).map(|rtt| rtt.0 as f64 / 1e6)
    }

    /// Returns the mean of the congestion window over time, segments; `None` if no time was measured.
    pub fn cwnd_mean_packets(&self) -> Option<f64> {
        let mean = || self.window_sum as f64 / self.window_ticks as f64 / f64::from(self.segment);
        (self.window_ticks > 0).then(mean)
    }

    /// Returns the largest congestion window of `counts`, segments.
    pub fn cwnd_max_packets(&self, counts: &SenderCounts) -> Option<f64> {
        counts.window_max.map(|window| window.0 as f64 / f64::from(self.segment))
    }
}

impl Sender {
    /// Returns the state that explains what the sender does next.
    pub fn view(&self) -> View {
        View {
            law: self.law.clone(),
            srtt: self.srtt(),
            mode: self.mode,
            pipe: self.pipe(),
            awnd: self.awnd,
            is_window_limited: self.flags & bit::WINDOW_LIMITED != 0,
            timeouts: self.ledger().map_or(0, |ledger| ledger.timeouts),
            window_cuts: self.ledger().map_or(0, |ledger| ledger.window_cuts),
            acknowledged: self.base.wrapping_add(self.una as u32),
        }
    }

    /// Returns what is rare; `None`: nothing.
    #[inline]
    pub(super) fn ledger(&self) -> Option<&Ledger> {
        self.rest.as_ref().map(|rest| &rest.ledger)
    }

    pub(super) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.rest_mut().ledger
    }

    /// Returns the stamp of the data packet that leaves now, before it is counted: each transmission has a number of its own.
    #[inline(always)]
    pub(super) fn next_stamp(&self, now: Time) -> u64 {
        let beside = self.ledger().map_or(0, |ledger| ledger.beside);
        stamp(now, (self.next as u16).wrapping_add(beside).wrapping_add(1))
    }

    /// Counts a SYN or a window probe that leaves now, and returns its stamp. The first SYN is number 0.
    pub(super) fn control_stamp(&mut self, now: Time, is_syn: bool) -> u64 {
        let beside = if is_syn && self.flags & bit::SYN_EXPIRED == 0 {
            0
        } else {
            let ledger = self.ledger_mut();
            ledger.beside = ledger.beside.wrapping_add(1);
            ledger.beside
        };
        stamp(now, (self.next as u16).wrapping_add(beside))
    }

    /// Segment `index` leaves again, or as a probe.
    pub(super) fn count_repeated(&mut self, config: &Config, now: Time, index: u64) {
        let (size, is_measured) = (u64::from(config.size_of(index)), self.is_measured(now));
        let ledger = self.ledger_mut();
        ledger.beside = ledger.beside.wrapping_add(1);
        ledger.repeated_bytes += size;
        if is_measured {
            ledger.measured_repeated_bytes += size;
        }
    }

    /// Returns the counts until now; the maxima since they began anew.
    fn counts(&self) -> SenderCounts {
        let ledger = self.ledger();
        let (retransmits, timeouts, window_cuts) =
            ledger.map_or((0, 0, 0), |ledger| (ledger.retransmits, ledger.timeouts, ledger.window_cuts));
        SenderCounts {
            sent_packets: self.next + u64::from(retransmits) + self.probes(),
            retransmits: retransmits.into(),
            timeouts: timeouts.into(),
            window_cuts: u64::from(window_cuts) + u64::from(self.law.cuts()),
            window_max: (self.mode != Mode::Closed).then_some(Bytes(self.window_max)),
            idle_max: (self.sent_at != Time::NEVER).then_some(self.idle_max),
        }
    }

    fn probes(&self) -> u64 {
        let probes = self.scoreboard.as_ref().and_then(|board| board.probes.as_ref());
        probes.map_or(0, |probes| probes.sent)
    }

    /// Returns the bytes of the data packets sent, in the whole run.
    pub fn sent_bytes(&self, config: &Config) -> u64 {
        config.bytes_of(self.next).0 + self.ledger().map_or(0, |ledger| ledger.repeated_bytes)
    }

    /// Returns everything that the flow counted.
    pub fn stats(&self, config: &Config) -> SenderStats<'_> {
        let (now, none) = (self.counts(), Ledger::default());
        let ledger = self.ledger().unwrap_or(&none);
        let (before, measured, measured_bytes) = if self.flags & bit::EARLY != 0 {
            (now, SenderCounts::default(), 0)
        } else {
            let before = ledger.before;
            let measured = SenderCounts {
                sent_packets: now.sent_packets - before.sent_packets,
                retransmits: now.retransmits - before.retransmits,
                timeouts: now.timeouts - before.timeouts,
                window_cuts: now.window_cuts - before.window_cuts,
                ..now
            };
            let (from, to) = ledger.measured;
            let new_bytes = config.bytes_of(self.next.min(to)) - config.bytes_of(from);
            (before, measured, new_bytes.0 + ledger.measured_repeated_bytes)
        };
        let is_complete = self.completion != Time::NEVER;
        let end = if is_complete { self.completion.min(config.measure.to) } else { self.accrued };
        let accrued = end.max(self.measured_from);
        SenderStats {
            total: SenderCounts {
                window_max: now.window_max.max(before.window_max),
                idle_max: now.idle_max.max(before.idle_max),
                ..now
            },
            measured,
            sent_bytes: self.sent_bytes(config),
            measured_bytes,
            probes: self.probes(),
            round_trips: Some(&self.round_trips).filter(|samples| samples.count() > 0),
            window_sum: self.window_sum,
            window_ticks: (accrued.0 >> TICK_BITS) - (self.measured_from.0 >> TICK_BITS),
            completion: is_complete.then_some(self.completion),
            segment: config.segment.max(1),
        }
    }

    /// Returns true if all is acknowledged, no deadline is left, and nothing that the flow sent is under way, in either
    /// direction; `packet` is what came last, or before. A network that keeps the order of the flow's packets is
    /// supposed, and a receiver that sends nothing but answers, one at most to each packet.
    ///
    /// Then nothing is behind the answer to the packet that was sent last. Where nothing was repeated, that is the one
    /// answer that acknowledges all, after the last segment came. Else its time stamp tells it, if no other packet of that
    /// instant could have caused it: new data could not, since what acknowledges all has seen the last of it.
    pub fn is_over(&self, packet: &Packet) -> bool {
        let is_last_answer = || {
            let beside = self.ledger().is_some_and(|ledger| ledger.repeated_beside == self.sent_at);
            packet.kind == Kind::Ack && packet.sent_at(self.sent_at) == self.sent_at && !beside
        };
        self.completion != Time::NEVER
            && self.una == self.next
            && self.next_deadline() == Time::NEVER
            // No data, no time stamp of its own: only the SYN was answered, if it was sent once.
            && match self.ledger() {
                None => true,
                Some(ledger) if self.next == 0 => ledger.timeouts == 0,
                Some(ledger) => ledger.retransmits == 0 || is_last_answer(),
            }
    }

    /// Closes the integrals over time at `now`, the end of the run.
    pub fn finish(&mut self, config: &Config, now: Time) {
        self.accrue(config, now);
        self.note_idle(config, now);
    }

    /// Returns true within the measured time, its ends included: [`Sender::accrue`] stops at them, and every
    /// `handle_*` has called it.
    #[inline]
    pub(super) fn is_measured(&self, now: Time) -> bool {
        self.accrued == now
    }

    /// Integrates the window up to `now`, within the measured time.
    #[inline]
    pub(super) fn accrue(&mut self, config: &Config, now: Time) {
        let until = if now <= config.measure.to { now } else { self.end_measurement(config) };
        if until >= self.accrued {
            // Nothing is integrated yet: asked of what is at hand, since this is asked for every ACK.
            if self.window_sum == 0 {
                self.begin_measurement(config);
            }
            let ticks = (until.0 >> TICK_BITS) - (self.accrued.0 >> TICK_BITS);
            self.window_sum = self.window_sum.saturating_add(self.usable(config).0.saturating_mul(ticks));
            self.accrued = until;
        }
    }

    /// The measurement begins, if it has not: what comes now is counted apart.
    #[cold]
    fn begin_measurement(&mut self, config: &Config) {
        if self.flags & bit::EARLY != 0 {
            let (counts, next) = (self.counts(), self.next);
            let ledger = self.ledger_mut();
            (ledger.before, ledger.measured.0) = (counts, next);
            self.flags &= !bit::EARLY;
            self.window_max = self.usable(config).0;
            self.idle_max = Duration(0);
        }
    }

    /// The measurement is over, and new data counts no more; returns when it ended.
    #[cold]
    fn end_measurement(&mut self, config: &Config) -> Time {
        let next = self.next;
        let (_, to) = &mut self.ledger_mut().measured;
        *to = next.min(*to);
        config.measure.to
    }

    /// The time since data was last sent, as far as there was any to send.
    #[inline]
    pub(super) fn note_idle(&mut self, config: &Config, now: Time) {
        // Mostly less than once before. Nothing is later than `NEVER`, so who has sent nothing has not been idle.
        if now - self.sent_at > self.idle_max {
            self.idle_max = self.idle_max.max(now.min(config.stop).min(self.completion) - self.sent_at);
        }
    }
}

//! Counts of a sender, and its state for observers.

use congestlab_core::law;
use congestlab_core::units::{Bytes, Duration, Time};

use super::{Mode, Sender, bit};
use crate::packet::{Kind, Packet};
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
    /// Times that a loss or a mark reduced the window.
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
    /// Times that a loss or a congestion mark reduced the window (a timeout is counted above).
    pub window_cuts: u64,
    /// Largest congestion window; `None` before the start.
    pub window_max: Option<Bytes>,
    /// Longest time without sent data, from the first on, by when it ended; `None` if there was none.
    pub idle_max: Option<Duration>,
}

/// Counts of a sender that are rare, apart from those of every packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    pub(super) window_cuts: u32,
    /// When a repeated packet left last in the same instant as one before it.
    pub(super) repeated_beside: Time,
    /// Everything that was counted before the measurement.
    before: SenderCounts,
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
            timeouts: self.timeouts,
            window_cuts: self.ledger.as_ref().map_or(0, |ledger| ledger.window_cuts),
            acknowledged: self.base.wrapping_add(self.una as u32),
        }
    }

    /// Returns the counts until now; the maxima since they began anew.
    fn counts(&self) -> SenderCounts {
        SenderCounts {
            sent_packets: self.next + u64::from(self.retransmits) + self.probes(),
            retransmits: u64::from(self.retransmits),
            timeouts: u64::from(self.timeouts),
            window_cuts: self.ledger.as_ref().map_or(0, |ledger| ledger.window_cuts.into()),
            window_max: (self.mode != Mode::Closed).then_some(Bytes(self.window_max)),
            idle_max: (self.sent_at != Time::NEVER).then_some(self.idle_max),
        }
    }

    fn probes(&self) -> u64 {
        let probes = self.scoreboard.as_ref().and_then(|board| board.probes.as_ref());
        probes.map_or(0, |probes| probes.sent)
    }

    /// Returns everything that the flow counted.
    pub fn stats(&self) -> SenderStats<'_> {
        let now = self.counts();
        let (before, measured) = if self.flags & bit::EARLY != 0 {
            (now, SenderCounts::default())
        } else {
            let before = self.ledger.as_ref().map_or(SenderCounts::default(), |ledger| ledger.before);
            let measured = SenderCounts {
                sent_packets: now.sent_packets - before.sent_packets,
                retransmits: now.retransmits - before.retransmits,
                timeouts: now.timeouts - before.timeouts,
                window_cuts: now.window_cuts - before.window_cuts,
                ..now
            };
            (before, measured)
        };
        SenderStats {
            total: SenderCounts {
                window_max: now.window_max.max(before.window_max),
                idle_max: now.idle_max.max(before.idle_max),
                ..now
            },
            measured,
            sent_bytes: self.sent_bytes,
            measured_bytes: self.measured_bytes,
            probes: self.probes(),
            round_trips: Some(&self.round_trips).filter(|samples| samples.count() > 0),
            window_sum: self.window_sum,
            window_ticks: (self.accrued.0 >> TICK_BITS) - (self.measure.from.0 >> TICK_BITS),
            completion: (self.completion != Time::NEVER).then_some(self.completion),
            segment: self.segment,
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
            let beside = self.ledger.as_ref().is_some_and(|ledger| ledger.repeated_beside == self.sent_at);
            packet.kind == Kind::Ack && packet.stamp_ns == self.sent_at.0 && !beside
        };
        self.completion != Time::NEVER
            && self.una == self.next
            && self.next_deadline() == Time::NEVER
            // No data, no time stamp of its own: only the SYN was answered, if it was sent once.
            && (if self.next == 0 { self.timeouts == 0 } else { self.retransmits == 0 || is_last_answer() })
    }

    /// Closes the integrals over time at `now`, the end of the run.
    pub fn finish(&mut self, now: Time) {
        self.accrue(now);
        self.note_idle(now);
    }

    /// Returns true within the measured time, its ends included: [`Sender::accrue`] stops at them, and every
    /// `handle_*` has called it.
    #[inline]
    pub(super) fn is_measured(&self, now: Time) -> bool {
        self.accrued == now
    }

    /// Integrates the window up to `now`, within the measured time.
    #[inline]
    pub(super) fn accrue(&mut self, now: Time) {
        let until = now.min(self.measure.to);
        if until >= self.accrued {
            // Nothing is integrated yet: asked of what is at hand, since this is asked for every ACK.
            if self.window_sum == 0 {
                self.begin_measurement();
            }
            let ticks = (until.0 >> TICK_BITS) - (self.accrued.0 >> TICK_BITS);
            self.window_sum = self.window_sum.saturating_add(self.law.window().0.saturating_mul(ticks));
            self.accrued = until;
        }
    }

    /// The measurement begins, if it has not: what comes now is counted apart.
    #[cold]
    fn begin_measurement(&mut self) {
        if self.flags & bit::EARLY != 0 {
            let counts = self.counts();
            self.ledger.get_or_insert_default().before = counts;
            self.flags &= !bit::EARLY;
            self.window_max = self.law.window().0;
            self.idle_max = Duration(0);
        }
    }

    /// The time since data was last sent, as far as there was any to send.
    #[inline]
    pub(super) fn note_idle(&mut self, now: Time) {
        // Mostly less than once before. Nothing is later than `NEVER`, so who has sent nothing has not been idle.
        if now - self.sent_at > self.idle_max {
            self.idle_max = self.idle_max.max(now.min(self.stop).min(self.completion) - self.sent_at);
        }
    }
}

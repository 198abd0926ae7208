//! Sources of datagrams that listen to nobody: constant rate, and ON/OFF.
//!
//! Driven as a TCP sender is: [`Source::next_deadline`] says when to call
//! [`Source::handle_deadline`], after which [`Source::poll_transmit`] gives packets until `None`.

use crate::packet::{Kind, Packet};
use crate::random::Stream;
use crate::tcp::Measure;
use alloc::boxed::Box;
use alloc::vec::Vec;
use congestlab_core::units::{BitRate, Duration, Time};

/// Settings of a source, shared by all flows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// Bytes of each whole IP packet; above zero.
    pub segment: u16,
    /// Rate while it sends; above zero.
    pub rate: BitRate,
    /// Pattern of sending.
    pub pattern: Pattern,
}

/// Bytes of the headers of a datagram: IP 20, UDP 8.
const HEADERS: u16 = 28;

/// Pattern of sending over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The source sends from start to stop.
    Constant,
    /// The source sends for `on`, is silent for `off`, and again; `on` above zero. What a span is too short for passes in
    /// the next: all spans together have the rate.
    OnOff {
        /// Time of sending; the mean if `is_random`.
        on: Duration,
        /// Time of silence; the mean if `is_random`.
        off: Duration,
        /// True if each span is drawn from the exponential distribution with that mean.
        is_random: bool,
    },
}

impl SourceConfig {
    /// How long a packet takes at the rate, in 10^-9 bit of it.
    fn work(&self) -> u128 {
        u128::from(self.segment) * u128::from(WORK_PER_BYTE)
    }

    /// Returns the payload of a datagram as a share of its IP packet.
    pub fn payload_share(&self) -> f64 {
        f64::from(self.segment.saturating_sub(HEADERS)) / f64::from(self.segment)
    }

    /// Returns the most packets that the source sends in so long a time. Random spans can be more and longer, but are
    /// not in one of a thousand sources: they count with four standard deviations.
    pub fn packets_in(&self, time: Duration) -> u64 {
        let all = u128::from(time.0);
        let sending = match self.pattern {
            Pattern::Constant => all,
            Pattern::OnOff { on, off, is_random } => {
                let deviating = |n: u128| if is_random { n + 4 * n.isqrt() + 4 } else { n };
                let spans = deviating(all / (u128::from(on.0) + u128::from(off.0)).max(1) + 1);
                all.min(deviating(spans) * u128::from(on.0))
            }
        };
        let whole = sending * u128::from(self.rate.0) / self.work().max(1);
        u64::try_from(whole + 1).unwrap_or(u64::MAX)
    }
}

/// Counts of a source, in the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets sent before the measurement.
    pub early_packets: u64,
    /// Bytes of whole IP packets sent.
    pub sent_bytes: u64,
    /// Bytes sent while measuring, the end excluded: packets at both ends would be one too many.
    pub measured_bytes: u64,
    /// The longest span between two packets that followed each other; `None` before the second.
    pub idle_max: Option<Duration>,
    /// The longest such span between packets from the beginning of the measurement on.
    pub measured_idle_max: Option<Duration>,
}

/// A source of datagrams.
#[derive(Clone, Debug)]
pub struct Source {
    flow: u32,
    stop: Time,
    stream: Stream,
    measure: Measure,
    /// When the next packet goes.
    next: Time,
    /// End of the current span of sending; before the first, the start.
    on_until: Time,
    /// When it may send, in order, and the span that is now or next; `None`: always.
    spans: Option<Box<[(Time, Time)]>>,
    span: usize,
    /// Part of a nanosecond by which the schedule is behind `next`, in 10^-9 bit of the rate.
    credit: u64,
    last: Option<Time>,
    stats: SourceStats,
}

/// Work of sending a byte, in 10^-9 bit: a rate in bit/s times nanoseconds.
const WORK_PER_BYTE: u64 = 8_000_000_000;

impl Source {
    /// Creates a source that sends its first packet at `start` and none from `stop` on. `stream` is drawn
    /// from if the pattern is random.
    pub fn new(
        config: &SourceConfig,
        flow: u32,
        start: Time,
        stop: Time,
        stream: Stream,
        measure: Measure,
    ) -> Self {
        let mut source = Self {
            flow,
            stop,
            stream,
            measure,
            next: start,
            on_until: start,
            spans: None,
            span: 0,
            credit: 0,
            last: None,
            stats: SourceStats::default(),
        };
        source.begin_span(config, start);
        source
    }

    /// Restricts the source to sending within these spans, in order; its pattern begins anew in each.
    #[must_use]
    pub fn within(mut self, config: &SourceConfig, spans: Vec<(Time, Time)>) -> Self {
        self.spans = Some(spans.into());
        self.settle(config);
        self
    }

    /// Moves `next` into a span in which it may send.
    fn settle(&mut self, config: &SourceConfig) {
        while let Some(spans) = &self.spans {
            let Some(&(from, to)) = spans.get(self.span) else {
                self.next = Time::NEVER;
                return;
            };
            if self.next < from {
                self.begin_span(config, from);
            }
            if self.next < to {
                return;
            }
            self.span += 1;
        }
    }

    /// Returns when the next packet goes; `NEVER` once there is none.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        if self.next < self.stop { self.next } else { Time::NEVER }
    }

    /// Does nothing: all that is due comes from [`Source::poll_transmit`].
    #[inline]
    pub fn handle_deadline(&mut self, _config: &SourceConfig, _now: Time) {}

    /// Returns the next packet that is due; call until `None`.
    pub fn poll_transmit(&mut self, config: &SourceConfig, now: Time) -> Option<Packet> {
        if self.next_deadline() > now {
            return None;
        }
        if let Some(last) = self.last {
            let idle = Some(Duration(now.0 - last.0));
            self.stats.idle_max = self.stats.idle_max.max(idle);
            if now >= self.measure.from {
                self.stats.measured_idle_max = self.stats.measured_idle_max.max(idle);
            }
        }
        self.last = Some(now);
        let packet = Packet {
            stamp_ns: now.0,
            flow: self.flow,
            seq: self.stats.sent_packets as u32,
            size: config.segment,
            kind: Kind::Datagram,
            ..Packet::default()
        };
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += u64::from(config.segment);
        if self.measure.from <= now && now < self.measure.to {
            self.stats.measured_bytes += u64::from(config.segment);
        } else if now < self.measure.from {
            self.stats.early_packets += 1;
        }
        self.schedule(config);
        Some(packet)
    }

    /// Returns the counts of the source.
    pub fn stats(&self) -> &SourceStats {
        &self.stats
    }

    /// Returns the number of random words drawn.
    pub fn draws(&self) -> u64 {
        self.stream.draws()
    }

    /// Moves `next` on by a packet at the rate, exactly: time rounds up, and what was rounded is the
    /// next packet's.
    fn schedule(&mut self, config: &SourceConfig) {
        let work = u64::from(config.segment) * WORK_PER_BYTE;
        let (span, rest) = (work / config.rate.0, work % config.rate.0);
        let is_longer = rest > self.credit;
        self.credit = if is_longer { self.credit + config.rate.0 } else { self.credit } - rest;
        self.next = Time(self.next.0.saturating_add(span + u64::from(is_longer)));
        if let Pattern::OnOff { on, off, is_random } = config.pattern {
            // A span of sending can be over before its second packet, and silence can be short. What is left of the packet's
            // time passes in the next span, and so on.
            while self.next >= self.on_until && self.on_until < self.stop {
                let pause = if is_random { self.stream.exponential(off.0) } else { off.0 };
                let (left, credit) = (self.next.0 - self.on_until.0, self.credit);
                // Periodic spans that are over before the packet too: there can be very many.
                let over = if is_random { 0 } else { left / on.0.max(1) };
                let period = on.0.saturating_add(off.0);
                let start = self.on_until.0.saturating_add(pause).saturating_add(over.saturating_mul(period));
                self.begin_span(config, Time(start));
                self.next = Time(start.saturating_add(left - over * on.0));
                self.credit = credit;
            }
        }
        self.settle(config);
    }

    /// Begins to send at `start`, its first packet then.
    fn begin_span(&mut self, config: &SourceConfig, start: Time) {
        let span = match config.pattern {
            Pattern::Constant => u64::MAX,
            Pattern::OnOff { on, is_random: true, .. } => self.stream.exponential(on.0).max(1),
            Pattern::OnOff { on, is_random: false, .. } => on.0,
        };
        self.next = start;
        self.credit = 0;
        self.on_until = Time(start.0.saturating_add(span));
    }
}

//! Link law of RCP (RC §3; RNS).

use super::{Header, stated};
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::law::{LinkLaw, Packet, Series, Steered};
use crate::units::{Bytes, Duration, Rate, Ratio, SECOND, Time, mul_div};

/// Binary places of the part by which the rate moves, and of T / d.
const PART_PLACES: u32 = 24;
const TIME_PLACES: u32 = 16;
/// No product with a rate above passes 64 bits: 2.2 Tbit/s, the most that a header says.
const RATE_MAX: u64 = 1 << 38;
/// Below this rate, B/s, the state keeps 2^-16 B/s: a step of whole B/s would round to none there, and a slow
/// link would keep its least rate for good.
const COARSE: u64 = 1 << 16;
const FINE_PLACES: u32 = 16;
/// The least rate, a hundredth of a packet of 1500 B in a mean round trip (RNS).
const PACKET: u64 = 1500;

/// Configuration of RCP's link law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LinkConfig {
    /// Capacity of the link.
    pub capacity: Rate,
    /// alpha, gain on the spare capacity; 0.4 (RNS).
    pub alpha: Ratio,
    /// beta, gain on the queue; 0.4 (RNS).
    pub beta: Ratio,
    /// gamma, the part of the capacity that is to be used; 1 (RNS).
    pub gamma: Ratio,
    /// The longest interval; 10 ms (RNS). It is d where that is less.
    pub interval: Duration,
    /// d before any packet states a round trip; 200 ms (RNS).
    pub initial_rtt: Duration,
    /// Part of the capacity that the first rate is; 0.05 (RNS).
    pub initial_share: Ratio,
}

impl LinkConfig {
    /// Default constants; the capacity, 0, is to be set by who knows the link.
    pub const DEFAULT: Self = Self {
        capacity: Rate(0),
        alpha: Ratio::ppm(400_000),
        beta: Ratio::ppm(400_000),
        gamma: Ratio::ONE,
        interval: Duration(10_000_000),
        initial_rtt: Duration(200_000_000),
        initial_share: Ratio::ppm(50_000),
    };
}

impl Default for LinkConfig {
    #[inline(always)] // or it would be in each BPF object
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Settings for LinkConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell("alpha", "Gain on the spare capacity; 0.4 (RNS).", Field::Factor(&mut self.alpha));
        tell("beta", "Gain on the queue; 0.4 (RNS).", Field::Factor(&mut self.beta));
        tell("gamma", "Part of the capacity that is to be used; 1 (RNS).", Field::Share(&mut self.gamma));
        tell(
            "capacity",
            "Capacity that the law is told; absent: the link's rate.",
            Field::Rate(&mut self.capacity),
        );
        tell(
            "interval",
            "Longest time between two changes of the rate; 10 ms (RNS).",
            Field::Span(&mut self.interval),
        );
        tell(
            "initial_rtt",
            "Mean round trip time until packets state theirs; absent: the longest of the link's flows without queues, in the \
             kernel 200 ms (RNS).",
            Field::Span(&mut self.initial_rtt),
        );
        tell(
            "initial_share",
            "Part of the capacity that the first rate is; 0.05 (RNS).",
            Field::Share(&mut self.initial_share),
        );
    }

    #[cfg(feature = "words")]
    fn set_round_trip(&mut self, longest: Duration, is_written: &dyn Fn(&str) -> bool) {
        if longest.0 > 0 && !is_written("initial_rtt") {
            self.initial_rtt = longest;
        }
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        Finding::timer("interval", self.interval, "\"10 ms\"", tell);
        Finding::above_zero("initial_rtt", self.initial_rtt.0, "\"200 ms\"", tell);
        Finding::above_zero("gamma", self.gamma.0.into(), "1", tell);
    }
}

/// Report of the last interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Report {
    /// Number of intervals so far.
    pub intervals: u64,
    /// R, the rate that all flows are offered.
    pub rate: Rate,
    /// y, the input rate of the last interval.
    pub input: Rate,
    /// d, the moving average of round trip times.
    pub rtt: Duration,
}

impl Series for Report {
    fn intervals(&self) -> u64 {
        self.intervals
    }

    fn decision(&self) -> i64 {
        self.rate.0 as i64
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("offered_rate_Bps", self.rate.0 as i64, 1);
        tell("input_Bps", self.input.0 as i64, 1);
        tell("mean_rtt_ms", self.rtt.0 as i64, 1_000_000);
    }
}

/// State of the link law at one output port.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link {
    config: LinkConfig,
    /// Bytes that arrived in the running interval.
    input: Bytes,
    /// Sum over these of size times round trip time, B 2^-20 s, and of the sizes that stated one.
    rtt_bytes: u64,
    stating: u64,
    began: Time,
    deadline: Time,
    /// Part of the rate below 1 B/s, 2^-16 B/s; 0 above [`COARSE`].
    fraction: u64,
    report: Report,
}

impl Link {
    /// Creates the state of a port. `phase` is the first deadline.
    #[inline(always)]
    pub fn new(config: LinkConfig, phase: Duration) -> Self {
        let rate = Rate(config.initial_share.of(config.capacity.0).min(RATE_MAX));
        Self {
            config,
            input: Bytes(0),
            rtt_bytes: 0,
            stating: 0,
            began: Time::ZERO,
            deadline: Time::ZERO + phase,
            fraction: 0,
            report: Report { rate, rtt: config.initial_rtt, ..Report::default() },
        }
    }

    /// d + gain (s - d): gain is T / d, for short round trips less, in the proportion of the rate, so that
    /// flows of short ones do not drive it alone (RNS).
    #[inline]
    fn mean_rtt(&self, elapsed: Duration) -> Duration {
        let d = self.report.rtt.0.max(1);
        let Some(sample) = self.rtt_bytes.checked_div(self.stating) else { return Duration(d) };
        let sample = mul_div(sample, SECOND, 1 << 20).max(1);
        let time = elapsed.0.min(d);
        if sample >= d {
            return Duration(d + mul_div(sample - d, time, d));
        }
        let gain = mul_div(mul_div(d - sample, time, d), sample, d);
        let share = mul_div(gain, self.report.rate.0, self.config.capacity.0.max(1)).min(gain);
        Duration((d - share).max(1))
    }

    /// R (1 + (T / d) (alpha (gamma C - y) - beta Q / d) / (gamma C)) (RC eq. 2).
    #[inline]
    fn close_interval(&mut self, now: Time, backlog: Bytes) {
        let elapsed = now - self.began;
        let input = if elapsed.0 == 0 { Rate(0) } else { self.input.per(elapsed) };
        let rtt = self.mean_rtt(elapsed);
        let whole = self.config.gamma.of(self.config.capacity.0).min(RATE_MAX);
        let up = self.config.alpha.of(whole.saturating_sub(input.0));
        let excess = self.config.alpha.of(input.0.saturating_sub(whole));
        let down = excess.saturating_add(self.config.beta.of(backlog.per(rtt).0));
        let part = |amount: u64| mul_div(amount, 1 << PART_PLACES, whole).min(1 << PART_PLACES);
        let time = mul_div(elapsed.0, 1 << TIME_PLACES, rtt.0.max(1)).min(1 << TIME_PLACES);
        let rate = self.report.rate.0.min(RATE_MAX);
        let places = if rate < COARSE { FINE_PLACES } else { 0 };
        let rate = (rate << places) + if places > 0 { self.fraction } else { 0 };
        let moved = |part: u64| (((rate * part) >> PART_PLACES) * time) >> TIME_PLACES;
        let rate = if up >= down { rate + moved(part(up - down)) } else { rate - moved(part(down - up)) };
        let most = whole.max(1);
        let (rate, fraction) = (rate >> places, rate & ((1 << places) - 1));
        // A product that saturates has 128 bits, which BPF has not.
        let least = Bytes(PACKET).per(Duration(rtt.0.min(u64::MAX / 100) * 100)).0.max(1);
        self.report = Report {
            intervals: self.report.intervals + 1,
            rate: Rate(rate.max(least).min(most)),
            input,
            rtt,
        };
        self.fraction = if rate < least || rate >= most { 0 } else { fraction };
        (self.input, self.rtt_bytes, self.stating) = (Bytes(0), 0, 0);
        self.began = now;
        self.deadline = now + Duration(rtt.min(self.config.interval).0.max(1));
    }
}

impl Steered for Link {}

impl LinkLaw for Link {
    type Config = LinkConfig;
    type Report = Report;
    type View = Report;

    #[inline(always)]
    fn name(_config: &LinkConfig) -> &'static str {
        "rcp"
    }

    #[inline(always)]
    fn start(config: &LinkConfig, phase: Duration, _second_phase: Duration) -> Self {
        Self::new(*config, phase)
    }

    #[inline(always)]
    fn first_interval(config: &LinkConfig) -> Duration {
        Duration(config.interval.0.max(1))
    }

    /// d moves only within what is stated, and begins as configured.
    #[inline]
    fn shortest_interval(config: &LinkConfig, round_trip: Duration) -> Duration {
        let stated = mul_div((round_trip.to_header() >> 8) as u64, SECOND, 1 << 20);
        Duration(stated).min(config.initial_rtt).min(config.interval).max(Duration(1))
    }

    #[inline(always)]
    fn capacity(config: &LinkConfig) -> Rate {
        config.capacity
    }

    #[inline(always)]
    fn configure_capacity(config: &mut LinkConfig, capacity: Rate) {
        config.capacity = capacity;
    }

    #[inline]
    fn set_capacity(&mut self, capacity: Rate) {
        self.config.capacity = capacity;
    }

    #[inline(always)]
    fn on_arrival(&mut self, _now: Time, packet: &impl Packet) {
        let size = packet.size();
        self.input += size;
        if let Some(header) = packet.header::<Header>()
            && header.rtt > 0
        {
            let rtt = (header.rtt >> 8) as u64;
            self.rtt_bytes = self.rtt_bytes.saturating_add(rtt * size.0.min(u16::MAX as u64));
            self.stating = self.stating.saturating_add(size.0.min(u16::MAX as u64));
        }
    }

    /// Lowers the rate of a packet to the link's own.
    #[inline(always)]
    fn on_departure(&mut self, _now: Time, packet: &mut impl Packet, _backlog: Bytes) {
        if let Some(header) = packet.header::<Header>() {
            let own = stated(self.report.rate);
            if own < header.rate {
                packet.set_header(Header { rate: own, ..header });
            }
        }
    }

    #[inline]
    fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool {
        match (came.header::<Header>(), left.header::<Header>()) {
            (Some(came), Some(left)) => left.rate <= came.rate && left.rtt == came.rtt,
            (came, left) => came == left,
        }
    }

    #[inline(always)]
    fn next_deadline(&self) -> Time {
        self.deadline
    }

    #[inline]
    fn on_deadline(&mut self, now: Time, backlog: Bytes) {
        if self.deadline <= now {
            self.close_interval(now, backlog);
        }
    }

    #[inline]
    fn report(&self) -> Report {
        self.report
    }

    #[inline]
    fn view(&self, packet: &impl Packet) -> Option<Report> {
        packet.header::<Header>().map(|_| self.report)
    }
}

//! Link law of ABC (docs/design/modern.md 2.3).

use super::{ACCELERATE, BRAKE};
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::law::{LinkLaw, Packet, Series, Steered};
use crate::units::{Bytes, Duration, Rate, Ratio, SECOND, Time, mul_div};

/// Binary places of tokens and of the share that accelerates.
const PLACES: u32 = 16;
/// The most tokens that are kept, and those of the beginning (the released code).
const TOKENS: u32 = 5 << PLACES;
/// Parts of the window, of which one more is kept: the oldest leaves it bit by bit.
const PARTS: u64 = 20;
const RING: usize = 32;

/// Configuration of ABC's link law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LinkConfig {
    /// Capacity of the link.
    pub capacity: Rate,
    /// eta, the part of the capacity that is aimed at.
    pub eta: Ratio,
    /// delta, in which a queue is to be drained.
    pub delta: Duration,
    /// d_t, the wait that is no queue yet.
    pub threshold: Duration,
    /// W, over which rates are measured.
    pub window: Duration,
}

impl LinkConfig {
    /// Default constants; the capacity, 0, is to be set by who knows the link.
    pub const DEFAULT: Self = Self {
        capacity: Rate(0),
        eta: Ratio::ppm(980_000),
        delta: Duration(133_000_000),
        threshold: Duration(20_000_000),
        window: Duration(20_000_000),
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
        tell("eta", "Part of the capacity that is aimed at; 0.98 (ABC's code).", Field::Share(&mut self.eta));
        tell(
            "delta",
            "Time in which a queue is to be drained, above two thirds of a round trip; 133 ms (ABC's code).",
            Field::Span(&mut self.delta),
        );
        tell("threshold", "Wait that is no queue yet; 20 ms (ABC).", Field::Span(&mut self.threshold));
        tell(
            "window",
            "Time over which rates are measured; 20 ms (ABC's code).",
            Field::Span(&mut self.window),
        );
        tell(
            "capacity",
            "Capacity that the law is told; absent: the link's rate, of a trace what it offered in the window.",
            Field::Rate(&mut self.capacity),
        );
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        Finding::above_zero("delta", self.delta.0, "\"133 ms\"", tell);
        if self.window < WINDOW_MIN {
            let text = alloc::format!("is {}", self.window);
            tell(Finding::range("window", text, "allowed: from 20 us on, such as \"20 ms\""));
        } else {
            self.check_packets(tell);
        }
    }
}

/// Shorter windows have parts of less than a microsecond.
#[cfg(feature = "words")]
const WINDOW_MIN: Duration = Duration(20_000);
/// Size of the packets that are counted.
#[cfg(feature = "words")]
const PACKET: Bytes = Bytes(1500);
/// Packets that have to fit into the window, so that the output that is measured in it is no coarse number.
#[cfg(feature = "words")]
const FEW: u64 = 6;

#[cfg(feature = "words")]
impl LinkConfig {
    /// Warns where the capacity, if it is known, brings few packets in the window, and names the window that has enough.
    fn check_packets(&self, tell: &mut dyn FnMut(Finding)) {
        let packets = self.capacity.over(self.window).0 / PACKET.0;
        if self.capacity.0 == 0 || packets >= FEW {
            return;
        }
        // In whole ms, rounded up.
        let fits = (PACKET.0 * FEW * 1000).div_ceil(self.capacity.0);
        let packets: alloc::string::String = match packets {
            0 => "not one packet".into(),
            1 => "one packet".into(),
            _ => alloc::format!("{packets} packets"),
        };
        let text = alloc::format!(
            "is {}, and at this rate {packets} of {} B can leave in that time: a part of the link stays empty",
            self.window,
            PACKET.0
        );
        let help = alloc::format!("write window = \"{fits} ms\", in which {FEW} leave");
        tell(Finding { is_error: false, ..Finding::range("window", text, help) });
    }
}

/// Bytes that left, over a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Carried {
    /// A ring, longer than what it holds, so that kernels see that no place lies behind it; the rest is 0.
    parts: [u32; RING],
    /// Sum of the newest [`PARTS`] and one.
    sum: u64,
    /// Number of the newest part, from the beginning of time.
    newest: u64,
}

impl Carried {
    /// Length of a part.
    #[inline(always)]
    fn part(window: Duration) -> u64 {
        (window.0 / PARTS).max(1)
    }

    /// Returns the place of a part.
    #[inline(always)]
    fn place(number: u64) -> usize {
        number as usize % RING
    }

    /// Notes bytes that leave now.
    #[inline(always)]
    fn add(&mut self, window: Duration, now: Time, size: Bytes) {
        let number = now.0 / Self::part(window);
        let passed = number.saturating_sub(self.newest).min(PARTS + 1);
        for _ in 0..passed {
            self.newest = self.newest.saturating_add(1);
            let leaves = Self::place(self.newest.wrapping_sub(PARTS + 1));
            if let Some(part) = self.parts.get_mut(leaves) {
                self.sum -= *part as u64;
                *part = 0;
            }
        }
        self.newest = self.newest.max(number);
        let size = size.0.min(u16::MAX as u64) as u32;
        if let Some(part) = self.parts.get_mut(Self::place(self.newest)) {
            let before = *part;
            *part = part.saturating_add(size);
            self.sum += (*part - before) as u64;
        }
    }

    /// Returns the rate of the last window; of its oldest part that what still lies in it.
    #[inline(always)]
    fn rate(&self, window: Duration, now: Time) -> Rate {
        let part = Self::part(window);
        let oldest = self.parts.get(Self::place(self.newest.wrapping_sub(PARTS))).copied().unwrap_or(0);
        let gone = mul_div(oldest as u64, now.0 % part, part);
        Bytes(self.sum - gone).per(Duration(part * PARTS))
    }
}

/// Last decision of the law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Report {
    /// f, the share of packets that accelerate, 2^-16.
    pub share: u32,
    /// Tokens, 2^-16 packets.
    pub tokens: u32,
    /// Output of the last window.
    pub carried: Rate,
    /// Capacity.
    pub possible: Rate,
    /// x, the wait of a packet that came now.
    pub wait: Duration,
}

impl Series for Report {
    /// The law decides on each packet; it has no intervals.
    fn intervals(&self) -> u64 {
        0
    }

    fn decision(&self) -> i64 {
        self.carried.0 as i64
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("accelerated_share", self.share.into(), 1 << PLACES);
        tell("carried_Bps", self.carried.0 as i64, 1);
        tell("possible_Bps", self.possible.0 as i64, 1);
    }
}

/// State of the link law at one output port.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link {
    config: LinkConfig,
    carried: Carried,
    report: Report,
}

impl Link {
    /// Creates the state of a port.
    #[inline(always)]
    pub fn new(config: LinkConfig) -> Self {
        Self {
            config,
            carried: Carried { parts: [0; RING], sum: 0, newest: 0 },
            report: Report { tokens: TOKENS, possible: config.capacity, ..Report::default() },
        }
    }

    /// f = (eta mu - (mu / delta) max(x - d_t, 0)) / (2 cr), at most 1: the share of accelerations by which a round trip later
    /// comes what the link can carry then and what drains the queue in delta.
    #[inline]
    fn share(&self, possible: Rate, carried: Rate, wait: Duration) -> u32 {
        let excess = wait - self.config.threshold;
        let drain = mul_div(possible.0, excess.0, self.config.delta.0.max(1));
        let target = self.config.eta.of(possible.0).saturating_sub(drain);
        match carried.0 {
            0 => 1 << PLACES,
            rate => mul_div(target, 1 << (PLACES - 1), rate).min(1 << PLACES) as u32,
        }
    }
}

impl Steered for Link {}

impl LinkLaw for Link {
    type Config = LinkConfig;
    type Report = Report;
    type View = Report;

    #[inline(always)]
    fn name(_config: &LinkConfig) -> &'static str {
        "abc"
    }

    #[inline(always)]
    fn start(config: &LinkConfig, _phase: Duration, _second_phase: Duration) -> Self {
        Self::new(*config)
    }

    /// No interval, so no phase.
    #[inline(always)]
    fn first_interval(_config: &LinkConfig) -> Duration {
        Duration(1)
    }

    #[inline(always)]
    fn shortest_interval(_config: &LinkConfig, _round_trip: Duration) -> Duration {
        Duration(u64::MAX)
    }

    #[inline(always)]
    fn capacity(config: &LinkConfig) -> Rate {
        config.capacity
    }

    #[inline(always)]
    fn configure_capacity(config: &mut LinkConfig, capacity: Rate) {
        config.capacity = capacity;
    }

    #[inline(always)]
    fn watches(config: &LinkConfig) -> Option<Duration> {
        Some(config.window)
    }

    #[inline]
    fn set_capacity(&mut self, capacity: Rate) {
        self.config.capacity = capacity;
    }

    #[inline(always)]
    fn on_arrival(&mut self, _now: Time, _packet: &impl Packet) {}

    /// Lets a packet accelerate that has a token, and makes the others brake; a brake of another link stays.
    #[inline]
    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes) {
        let size = packet.size();
        self.carried.add(self.config.window, now, size);
        let ecn = packet.ecn();
        if ecn != ACCELERATE && ecn != BRAKE {
            return;
        }
        let possible = self.config.capacity;
        let carried = self.carried.rate(self.config.window, now);
        let tokens = self.report.tokens;
        if possible.0 == 0 {
            // Nothing was possible: nobody accelerates, and tokens stay.
            self.report = Report { share: 0, tokens, carried, possible, wait: Duration(u64::MAX) };
        } else {
            let wait = Duration(mul_div((backlog + size).0, SECOND, possible.0));
            let share = self.share(possible, carried, wait);
            self.report = Report { share, tokens: (tokens + share).min(TOKENS), carried, possible, wait };
        }
        if ecn == ACCELERATE {
            if possible.0 > 0 && self.report.tokens > 1 << PLACES {
                self.report.tokens -= 1 << PLACES;
            } else {
                packet.set_ecn(BRAKE);
            }
        }
    }

    /// A brake is less than an acceleration, and all else stays.
    #[inline]
    fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool {
        left.ecn() == came.ecn() || (came.ecn() == ACCELERATE && left.ecn() == BRAKE)
    }

    #[inline(always)]
    fn next_deadline(&self) -> Time {
        Time::NEVER
    }

    #[inline(always)]
    fn on_deadline(&mut self, _now: Time, _backlog: Bytes) {}

    #[inline]
    fn report(&self) -> Report {
        self.report
    }

    #[inline]
    fn view(&self, packet: &impl Packet) -> Option<Report> {
        matches!(packet.ecn(), ACCELERATE | BRAKE).then_some(self.report)
    }
}

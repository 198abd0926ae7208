//! Link law of SCONE (docs/design/modern.md 9.3): which rate a link advises.

use super::{Header, code, rate};
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::law::{LinkLaw, Packet, Remembers, Series, Steered};
use crate::units::{BitRate, Bytes, Duration, Rate, Ratio, Time, mul_div};

/// Flows that a link remembers at most.
const FLOWS: u32 = 4096;
/// The least advice, that of code 0.
const LEAST: Rate = Rate(12_500);
/// A flow that sends less than this part of its advice is limited elsewhere.
const USED: Ratio = Ratio::ppm(700_000);
/// Room for a flow that is limited elsewhere: so much of its rate, and this part of the advice.
const GROWTH: Ratio = Ratio::ppm(1_250_000);
const RETURN: u64 = 8;
/// The golden section of 2^16: its multiples fill the circle evenly, however many they are.
const SECTION: u32 = 40_503;

/// Configuration of SCONE's link law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LinkConfig {
    /// Capacity of the link.
    pub capacity: Rate,
    /// eta, the part of the capacity that is advised.
    pub eta: Ratio,
    /// T, in which rates are measured.
    pub interval: Duration,
    /// Time for which there must be room before an advice rises: the period of senders.
    pub hold: Duration,
    /// Packets of a flow that are lowered in `hold`, and as many at once when the flow begins or its code changes.
    pub updates: u32,
}

impl LinkConfig {
    /// Default constants; the capacity, 0, is to be set by who knows the link.
    pub const DEFAULT: Self = Self {
        capacity: Rate(0),
        eta: Ratio::ppm(980_000),
        interval: Duration(5_000_000_000),
        hold: Duration(67_000_000_000),
        updates: 4,
    };

    /// Returns what the link advises in all.
    #[inline(always)]
    fn whole(&self) -> Rate {
        Rate(self.eta.of(self.capacity.0))
    }
}

impl Default for LinkConfig {
    #[inline(always)] // or it would be in each BPF object
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Settings for LinkConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell("eta", "Part of the capacity that is advised; 0.98 (assumed).", Field::Share(&mut self.eta));
        tell("interval", "Time in which rates are measured; 5 s (assumed).", Field::Span(&mut self.interval));
        tell(
            "hold",
            "Time for which there must be room before an advice rises; 67 s (the draft's period).",
            Field::Span(&mut self.hold),
        );
        tell(
            "updates",
            "Packets of a flow that are lowered in `hold`; 4: a sender of the draft asks no more often.",
            Field::Count(&mut self.updates),
        );
        tell(
            "capacity",
            "Capacity that the law is told; absent: the link's rate.",
            Field::Rate(&mut self.capacity),
        );
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        Finding::timer("interval", self.interval, "\"5 s\"", tell);
        Finding::above_zero("hold", self.hold.0, "\"67 s\"", tell);
        Finding::above_zero("eta", self.eta.0.into(), "0.98", tell);
    }
}

/// Advice that falls at once, and rises when there was room for as long as senders keep to a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Held {
    advice: Rate,
    /// The least that there was room for since then; [`Time::NEVER`]: there was no more than is advised.
    least: Rate,
    since: Time,
}

impl Held {
    /// Begins with an advice.
    #[inline(always)]
    pub const fn new(advice: Rate) -> Self {
        Self { advice, least: advice, since: Time::NEVER }
    }

    /// Returns what is advised.
    #[inline(always)]
    pub const fn advice(&self) -> Rate {
        self.advice
    }

    /// Takes what there is room for now.
    #[inline]
    pub fn update(&mut self, now: Time, room: Rate, hold: Duration) {
        if room <= self.advice {
            *self = Self::new(room);
        } else if self.since == Time::NEVER {
            (self.least, self.since) = (room, now);
        } else {
            self.least = self.least.min(room);
        }
        if self.since != Time::NEVER && now - self.since >= hold {
            *self = Self::new(self.least);
        }
    }
}

/// Report of the last interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Report {
    /// Number of intervals so far.
    pub intervals: u64,
    /// A, the advice before it is a code.
    pub advice: Rate,
    /// Flows that were counted.
    pub flows: u32,
    /// Flows among them that are limited elsewhere.
    pub limited: u32,
}

impl Series for Report {
    fn intervals(&self) -> u64 {
        self.intervals
    }

    fn decision(&self) -> i64 {
        self.advice.0 as i64
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("advice_Bps", self.advice.0 as i64, 1);
        tell("advised_flows", self.flows.into(), 1);
    }
}

/// Flows of an interval.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Census {
    /// Flows that use what they are advised.
    greedy: u32,
    /// Flows that are limited elsewhere.
    limited: u32,
    /// Sum of [`GROWTH`] of what the latter send, and the largest of it.
    wanted: Rate,
    largest: Rate,
    /// Rate of the traffic that asks for no advice.
    others: Rate,
}

/// Record of a flow, in the words that a router remembers.
#[derive(Clone, Copy)]
struct Known {
    /// Number of the flow among those that began, from 1; 0: it is new.
    number: u32,
    /// Interval in which `bytes` came, modulo 2^32.
    interval: u32,
    bytes: u64,
    /// Code that was told, and the lower one before; the latter holds for a while still.
    told: u8,
    before: u8,
    /// Interval in which the higher one was told.
    raised: u32,
    /// Time at which as many packets may be lowered at once as in a period, ms, modulo 2^32.
    rested: u32,
}

impl Known {
    const WORDS: u32 = 7;
    /// The record of a flow that the link does not remember. It has values, and is no `Option`, since a compiler saves what is not
    /// there, too, and a kernel refuses that.
    const NONE: Self = Self { number: 0, interval: 0, bytes: 0, told: 0, before: 0, raised: 0, rested: 0 };

    #[inline(always)]
    fn read(words: &[u32]) -> Option<Self> {
        let [number, interval, low, high, codes, raised, rested, ..] = words else { return None };
        Some(Self {
            number: *number,
            interval: *interval,
            bytes: (*high as u64) << 32 | *low as u64,
            told: *codes as u8,
            before: (*codes >> 8) as u8,
            raised: *raised,
            rested: *rested,
        })
    }

    #[inline(always)]
    fn write(self, words: &mut [u32]) {
        if let [number, interval, low, high, codes, raised, rested, ..] = words {
            (*number, *interval) = (self.number, self.interval);
            (*low, *high) = (self.bytes as u32, (self.bytes >> 32) as u32);
            (*codes, *raised) = ((self.before as u32) << 8 | self.told as u32, self.raised);
            *rested = self.rested;
        }
    }

    /// Returns whether a packet of the flow may be lowered to a code now, and counts it. What only looks like SCONE, in each
    /// datagram, is so damaged a few times in a period (draft-ietf-scone-protocol-07 §9.3); a new code may be told at once.
    #[inline(always)]
    fn may_tell(&mut self, code: u8, now: Time, config: &LinkConfig) -> bool {
        // Half of the clock's circle at most, or what lies ahead could not be told from what is past.
        let hold = (config.hold.0 / 1_000_000).min(1 << 31) as u32;
        let step = hold / config.updates.max(1);
        let now = (now.0 / 1_000_000) as u32;
        let ahead = self.rested.wrapping_sub(now);
        let ahead = if code != self.told || ahead > hold { 0 } else { ahead };
        if ahead > hold - step {
            return false;
        }
        self.rested = now.wrapping_add(ahead + step);
        true
    }

    /// Notes a code that is told to the flow.
    #[inline(always)]
    fn tell(&mut self, code: u8, period: u64) {
        if code > self.told {
            (self.before, self.raised) = (self.kept(period), self.interval);
        }
        self.told = code;
    }

    /// Returns the code that the flow may keep to: the lower one for so many intervals.
    #[inline(always)]
    fn kept(&self, period: u64) -> u8 {
        let since = self.interval.wrapping_sub(self.raised);
        if (since as u64) < period { self.told.min(self.before) } else { self.told }
    }
}

/// State of the link law at one output port.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link {
    config: LinkConfig,
    /// Bytes of the running interval that ask for no advice.
    others: Bytes,
    /// Flows of the running interval, and of the last one with those that came since.
    running: Census,
    last: Census,
    /// Flows that began.
    begun: u32,
    /// Advice that is told.
    held: Held,
    began: Time,
    deadline: Time,
    intervals: u64,
}

impl Link {
    /// Creates the state of a port. `phase` is the first deadline.
    #[inline(always)]
    pub fn new(config: LinkConfig, phase: Duration) -> Self {
        Self {
            config,
            others: Bytes(0),
            running: Census::default(),
            last: Census::default(),
            begun: 0,
            held: Held::new(config.whole().max(LEAST)),
            began: Time::ZERO,
            deadline: Time::ZERO + phase,
            intervals: 0,
        }
    }

    /// A by the flows of the last interval: each takes A, or 1.25 of what it sends and A / 8 if that is less, and together they take
    /// eta C - u. Whoever is counted among those that take A, A is at most that: so it is the largest of what follows when all that
    /// are limited elsewhere are taken to be so, all but the largest of them, and none. Without the latter two a flow alone, or one
    /// that is large among them, would be advised less than it sends.
    #[inline]
    fn fair(&self) -> Rate {
        let Census { greedy, limited, wanted, largest, others } = self.last;
        let (greedy, limited) = (greedy as u64, limited as u64);
        let room = self.config.whole() - others;
        let share = |greedy: u64, limited: u64, wanted: Rate| {
            mul_div((room - wanted).0, RETURN, (greedy * RETURN + limited).max(1))
        };
        let all = share(greedy, limited, wanted);
        let but_one = share(greedy + limited.min(1), limited.saturating_sub(1), wanted - largest);
        let none = share(greedy + limited, 0, Rate(0));
        Rate(all.max(but_one).max(none)).min(room).max(LEAST)
    }

    #[inline]
    fn close_interval(&mut self, now: Time) {
        let elapsed = now - self.began;
        let others = if elapsed.0 == 0 { Rate(0) } else { self.others.per(elapsed) };
        self.last = Census { others, ..self.running };
        self.held.update(now, self.fair(), self.config.hold);
        self.running = Census::default();
        self.others = Bytes(0);
        self.began = now;
        self.deadline = now + Duration(self.config.interval.0.max(1));
        self.intervals += 1;
    }

    /// Returns the code for a flow with this number: the one below A, or for so many flows the next above that together they get A.
    #[inline]
    fn code_for(&self, number: u32) -> u8 {
        let advice = self.held.advice().bits();
        let below = code(advice);
        let (Some(BitRate(low)), Some(BitRate(high))) = (rate(below), rate(below + 1)) else { return below };
        let share = mul_div(advice.0.saturating_sub(low), 1 << 16, high - low);
        let place = number.wrapping_mul(SECTION) as u16;
        below + ((place as u64) < share) as u8
    }

    /// A flow begins: it is one of the interval, and the advice is shared with it from now on.
    #[inline]
    fn begin(&mut self, now: Time) -> Known {
        self.begun = self.begun.wrapping_add(1).max(1);
        self.running.greedy += 1;
        self.last.greedy = self.last.greedy.saturating_add(1);
        self.held.update(now, self.fair(), self.config.hold);
        Known {
            number: self.begun,
            interval: self.intervals as u32,
            bytes: 0,
            told: super::UNKNOWN,
            before: super::UNKNOWN,
            raised: self.intervals as u32,
            rested: 0,
        }
    }

    /// The first packet of a flow in an interval: what the flow sent in the last one says whether the advice limits it.
    #[inline]
    fn count(&mut self, known: &mut Known) {
        let number = self.intervals as u32;
        let is_last = number.wrapping_sub(known.interval) == 1;
        let sent = if is_last { Bytes(known.bytes).per(self.config.interval) } else { Rate(0) };
        (known.interval, known.bytes) = (number, 0);
        let advice = self.held.advice();
        let kept = rate(known.kept(self.period())).map_or(advice, BitRate::bytes);
        let wanted = Rate(GROWTH.of(sent.0));
        if sent < Rate(USED.of(kept.0)) && wanted + Rate(advice.0 / RETURN) < advice {
            self.running.limited += 1;
            self.running.wanted += wanted;
            self.running.largest = self.running.largest.max(wanted);
        } else {
            self.running.greedy += 1;
        }
    }

    /// Returns the intervals for which senders keep to a lower code.
    #[inline(always)]
    fn period(&self) -> u64 {
        (self.config.hold.0 / self.config.interval.0.max(1)).saturating_add(1)
    }

    /// Counts a packet of a flow that the link remembers; returns its record, of any other [`Known::NONE`].
    #[inline]
    fn remember(&mut self, now: Time, flow: u32, packet: &mut impl Packet) -> Known {
        let size = packet.size();
        let Some(words) = packet.memory([flow, !flow, 1], now, true) else { return Known::NONE };
        let Some(mut known) = Known::read(words) else { return Known::NONE };
        if known.number == 0 {
            known = self.begin(now);
        } else if known.interval != self.intervals as u32 {
            self.count(&mut known);
        }
        known.bytes = known.bytes.saturating_add(size.0);
        known.write(words);
        known
    }
}

impl Steered for Link {}

impl LinkLaw for Link {
    type Config = LinkConfig;
    type Report = Report;
    type View = Report;

    #[inline(always)]
    fn name(_config: &LinkConfig) -> &'static str {
        "scone"
    }

    #[inline(always)]
    fn start(config: &LinkConfig, phase: Duration, _second_phase: Duration) -> Self {
        Self::new(*config, phase)
    }

    #[inline(always)]
    fn first_interval(config: &LinkConfig) -> Duration {
        Duration(config.interval.0.max(1))
    }

    #[inline(always)]
    fn shortest_interval(config: &LinkConfig, _round_trip: Duration) -> Duration {
        Duration(config.interval.0.max(1))
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
    fn remembers(config: &LinkConfig) -> Option<Remembers> {
        Some(Remembers { flows: FLOWS, idle: config.hold, words: Known::WORDS })
    }

    #[inline(always)]
    fn on_arrival(&mut self, _now: Time, packet: &impl Packet) {
        if packet.header::<Header>().is_none() {
            self.others += packet.size();
        }
    }

    /// Lowers the code of a packet that carries one to the link's own, unless its flow had enough of that, and counts what the flow
    /// sends.
    #[inline]
    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, _backlog: Bytes) {
        let Some(header) = packet.header::<Header>() else { return };
        let mut known = self.remember(now, header.flow, packet);
        let Some(asked) = header.asked() else { return };
        if self.config.capacity.0 == 0 {
            return;
        }
        // A flow that the link does not remember is known by its name.
        let own = self.code_for(if known.number == 0 { header.flow } else { known.number });
        let mut lowers = own < asked;
        if known.number > 0
            && let Some(words) = packet.memory([header.flow, !header.flow, 1], now, true)
        {
            lowers = lowers && known.may_tell(own, now, &self.config);
            known.tell(own, self.period());
            known.write(words);
        }
        if lowers {
            packet.set_header(Header { signal: own, ..header });
        }
    }

    #[inline]
    fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool {
        match (came.header::<Header>(), left.header::<Header>()) {
            (Some(came), Some(left)) => {
                left.flow == came.flow
                    && match (came.asked(), left.asked()) {
                        (Some(came), Some(left)) => left <= came,
                        (came, left) => came == left,
                    }
            }
            (came, left) => came == left,
        }
    }

    #[inline(always)]
    fn next_deadline(&self) -> Time {
        self.deadline
    }

    #[inline]
    fn on_deadline(&mut self, now: Time, _backlog: Bytes) {
        if self.deadline <= now {
            self.close_interval(now);
        }
    }

    #[inline]
    fn report(&self) -> Report {
        let Census { greedy, limited, .. } = self.last;
        Report {
            intervals: self.intervals,
            advice: self.held.advice(),
            flows: greedy.saturating_add(limited),
            limited,
        }
    }

    #[inline]
    fn view(&self, packet: &impl Packet) -> Option<Report> {
        packet.header::<Header>().and_then(Header::asked).map(|_| self.report())
    }
}

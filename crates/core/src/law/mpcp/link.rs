//! Link law of MPCP: the load factor (VP, VNS), and the marking of packets (MP algorithm 2).

use super::level::{DIGITS_MAX, Level};
use super::order::Order;
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings, words};
use crate::law::{LinkLaw, Packet, Remembers, Segment, Series, Steered};
use crate::units::{Bytes, Duration, Rate, Ratio, Time, mul_div};

/// More flows than any router remembers.
const TABLE_MAX: u32 = 1 << 20;

/// Rule for the next digit of a chain whose digits so far equal the link's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm2 {
    /// The link writes its own digit where that is larger (C-21).
    #[default]
    Corrected,
    /// The link leaves the digit: MP's algorithm sets MSP_HIGH where the digits are equal.
    Printed,
}

words!(Algorithm2 { Corrected = "corrected", Printed = "printed", });

/// Configuration of MPCP's link law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LinkConfig {
    /// Packets of a chain; 1 is VCP.
    pub n: u32,
    /// True if the protocol's name fixes `n`.
    pub is_preset: bool,
    /// Encoding of a packet's place in its chain.
    pub order: Order,
    /// Rule for digits that equal the link's own.
    pub algorithm_2: Algorithm2,
    /// Capacity of the link.
    pub capacity: Rate,
    /// Utilization at which the load factor is 1; 0.98 (VP, recalled).
    pub gamma: Ratio,
    /// t_rho, the time between two measurements of the load factor; 200 ms (VNS).
    pub interval: Duration,
    /// t_q, the time between two samples of the queue; 10 ms (VNS).
    pub sample: Duration,
    /// Part of the queue that counts as load; 0.5 (VNS).
    pub kq: Ratio,
    /// Weight of an interval's queue in its average; 0.25 (VNS).
    pub queue_weight: Ratio,
    /// The most flows that a router remembers; 1024.
    pub table: u32,
    /// Time without packets after which a flow is forgotten; 10 s.
    pub idle: Duration,
}

impl LinkConfig {
    /// Returns the defaults for chains of `n` packets; the capacity, 0, is to be set.
    #[inline]
    pub const fn of(n: u32, is_preset: bool) -> Self {
        Self {
            n,
            is_preset,
            order: Order::of(n),
            algorithm_2: Algorithm2::Corrected,
            capacity: Rate(0),
            gamma: Ratio::ppm(980_000),
            interval: Duration(200_000_000),
            sample: Duration(10_000_000),
            kq: Ratio::ppm(500_000),
            queue_weight: Ratio::ppm(250_000),
            table: 1024,
            idle: Duration(10_000_000_000),
        }
    }

    /// True for VCP, whose name leaves it no chains.
    #[inline]
    const fn is_vcp(&self) -> bool {
        self.is_preset && self.n == 1
    }
}

impl Settings for LinkConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        if !self.is_preset {
            tell("n", "Packets of a chain, 1 to 8; 2 (MP).", Field::Number(&mut self.n, DIGITS_MAX));
        }
        if !self.is_vcp() {
            tell(
                "order",
                "How a packet's place in its chain is told; swap (MP 3.2), above two packets checksum (MP 5).",
                Field::Word(&mut self.order),
            );
            tell(
                "algorithm_2",
                "What equal digits mean: corrected, the next ones are compared; printed, they are left (MP).",
                Field::Word(&mut self.algorithm_2),
            );
        }
        tell(
            "capacity",
            "Capacity that the law is told; absent: the link's rate.",
            Field::Rate(&mut self.capacity),
        );
        tell(
            "gamma",
            "Utilization at which the load factor is 1; 0.98 (VP).",
            Field::Factor(&mut self.gamma),
        );
        tell(
            "interval",
            "How often the load factor is measured; 200 ms (VNS).",
            Field::Span(&mut self.interval),
        );
        tell("sample", "How often the queue is measured; 10 ms (VNS).", Field::Span(&mut self.sample));
        tell("kq", "Part of the queue that counts as load; 0.5 (VNS).", Field::Factor(&mut self.kq));
        tell(
            "queue_weight",
            "Weight of an interval's mean queue in the average; 0.25 (VNS).",
            Field::Share(&mut self.queue_weight),
        );
        if !self.is_vcp() {
            tell(
                "table",
                "The most flows that a router remembers; 1024 (A-17).",
                Field::Number(&mut self.table, TABLE_MAX),
            );
            tell(
                "idle",
                "A flow without packets for so long is forgotten; 10 s (A-17).",
                Field::Span(&mut self.idle),
            );
        }
    }

    #[cfg(feature = "words")]
    fn settle(&mut self, is_written: &dyn Fn(&str) -> bool) {
        self.order.settle(self.n, is_written);
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        self.order.check(self.n, tell);
        Finding::timer("interval", self.interval, "\"200 ms\"", tell);
        Finding::timer("sample", self.sample, "\"10 ms\"", tell);
        Finding::above_zero("gamma", self.gamma.0.into(), "0.98", tell);
        if self.sample > self.interval && self.interval > Duration(0) {
            let help = alloc::format!(
                "intervals without a sample keep the queue's old average; at most {}",
                self.interval
            );
            let long = Finding::range("sample", "is longer than the interval", help);
            tell(Finding { is_error: false, at: ["sample", "interval"], ..long });
        }
    }
}

/// A router's record of a flow: how its own level compares with the one from upstream, in the chain that is
/// passing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Flow {
    /// The router's own digits that were compared so far.
    prefix: u16,
    /// Position that comes next.
    next: u8,
    verdict: Verdict,
    /// Packets in a row without a place in any chain, 63 at most.
    strays: u8,
}

/// Packets without a place in any chain after which a flow's codes are taken for zones: VCP's packets may all look like further
/// ones of chains. With half of all packets lost a chain's flow comes here once in 65,000 packets.
const STRAYS: u8 = 8;

/// Upstream's level relative to the link's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Verdict {
    /// Higher: what it says stays. So does what nobody knows anything about.
    #[default]
    High,
    /// Equal so far.
    Equal,
    /// Lower: the link's own digits are written.
    Low,
}

impl Flow {
    /// Returns the record that a router keeps as this word; 0 is that of a flow that nobody knows.
    #[inline(always)]
    pub const fn from_word(word: u32) -> Self {
        let verdict = match word >> 24 & 3 {
            0 => Verdict::High,
            1 => Verdict::Equal,
            _ => Verdict::Low,
        };
        Self { prefix: word as u16, next: (word >> 16) as u8, verdict, strays: (word >> 26) as u8 }
    }

    /// Returns the word as which a router keeps the record.
    #[inline(always)]
    pub const fn to_word(self) -> u32 {
        self.prefix as u32
            | (self.next as u32) << 16
            | (self.verdict as u32) << 24
            | (self.strays as u32 & 63) << 26
    }

    /// Returns the digit that packet `index` of a chain shall carry, which came with the digit `found`.
    #[inline]
    pub fn mark(&mut self, index: u8, found: u8, own: &Level, algorithm: Algorithm2) -> u8 {
        if index == 0 {
            *self = Self { prefix: 0, next: 0, verdict: Verdict::Equal, strays: 0 };
        } else if index != self.next {
            self.verdict = Verdict::High; // a gap
            self.strays = if self.strays < STRAYS { self.strays + 1 } else { STRAYS };
            if self.strays == STRAYS && found < own.zone() {
                return own.zone();
            }
        }
        if matches!(self.verdict, Verdict::High) {
            return found;
        }
        // Where the level has changed since the chain began, its further digits belong to another prefix:
        // 11 is on the safe side.
        let digit = if own.prefix(index) == self.prefix { own.digit(index) } else { 3 };
        self.prefix |= (digit as u16) << (2 * (index & 7));
        self.next = index + 1;
        if matches!(self.verdict, Verdict::Low) {
            return digit;
        }
        if digit > found {
            self.verdict = Verdict::Low;
            return digit;
        }
        if digit < found || matches!(algorithm, Algorithm2::Printed) {
            self.verdict = Verdict::High;
        }
        found
    }
}

/// Report of the last interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Report {
    /// Number of intervals so far.
    pub intervals: u64,
    /// Load factor, millionths.
    pub load: u32,
    /// Number of the load level, from 0, among the 3^n.
    pub level: u16,
    /// Zone of the load: 1 low, 2 high, 3 over.
    pub zone: u8,
}

impl Series for Report {
    #[inline]
    fn intervals(&self) -> u64 {
        self.intervals
    }

    #[inline]
    fn decision(&self) -> i64 {
        self.load as i64
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("load_factor", self.load as i64, 1_000_000);
        tell("load_code", self.zone as i64, 1);
        tell("load_level", self.level as i64, 1);
    }
}

/// State of the link law at one output port.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link {
    config: LinkConfig,
    level: Level,
    /// Data that arrived in the running interval.
    bytes: Bytes,
    /// Sum of the queue's samples in it, and their number.
    queue_sum: u64,
    samples: u64,
    /// q, averaged over intervals.
    queue: u64,
    began: Time,
    load_deadline: Time,
    queue_deadline: Time,
    report: Report,
}

impl Link {
    /// Creates the state of a port. `phase` is where in its first interval it begins, `queue_phase` the same for the
    /// queue.
    #[inline(always)]
    pub fn new(config: LinkConfig, phase: Duration, queue_phase: Duration) -> Self {
        let level = Level::of(0, config.n.max(1));
        Self {
            config,
            level,
            bytes: Bytes(0),
            queue_sum: 0,
            samples: 0,
            queue: 0,
            began: Time::ZERO,
            load_deadline: Time::ZERO + phase,
            queue_deadline: Time::ZERO + Duration(1 + queue_phase.0 % config.sample.0.max(1)),
            report: Report { zone: level.zone(), ..Report::default() },
        }
    }

    /// Returns the level that packets are told.
    #[inline]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Makes this the law of chains of `n` packets, for compilers: behind this call they leave out what longer ones need.
    #[inline(always)]
    pub const fn be(&mut self, n: u32) {
        self.config.n = n;
    }

    /// Returns the code with which a packet leaves that came with the code `found`, where a packet says all (VCP): raised
    /// to the link's zone, never lowered; 00 stays.
    #[inline(always)]
    pub fn raise(&self, found: u8) -> u8 {
        if found > 0 && found < self.level.zone() { self.level.zone() } else { found }
    }

    /// The load factor of an interval, millionths: (bytes + kq q) / (gamma C t) (VP; VNS).
    #[inline]
    fn load(&self, elapsed: Duration) -> u32 {
        // Thousandths of a byte.
        let queue = mul_div(self.queue, self.config.kq.0 as u64, 1000);
        let offered = mul_div(self.bytes.0, 1000, 1).saturating_add(queue);
        let rate = mul_div(self.config.capacity.0, self.config.gamma.0 as u64, 1000);
        let carried = mul_div(rate, elapsed.0, crate::units::SECOND);
        mul_div(offered, Ratio::ONE.0 as u64, carried).min(u32::MAX as u64) as u32
    }

    #[inline]
    fn close_interval(&mut self, now: Time) {
        if let Some(mean) = self.queue_sum.checked_div(self.samples) {
            let weight = self.config.queue_weight.0.min(Ratio::ONE.0);
            let old = Ratio(Ratio::ONE.0 - weight).of(self.queue);
            self.queue = old.saturating_add(Ratio(weight).of(mean));
        }
        let elapsed = now - self.began;
        let load = self.load(elapsed);
        self.level = Level::of(load, self.config.n.clamp(1, DIGITS_MAX));
        self.report = Report {
            intervals: self.report.intervals + 1,
            load,
            level: self.level.number(),
            zone: self.level.zone(),
        };
        (self.bytes, self.queue_sum, self.samples) = (Bytes(0), 0, 0);
        self.began = now;
        self.load_deadline = now + self.config.interval;
    }
}

impl Steered for Link {}

impl LinkLaw for Link {
    type Config = LinkConfig;
    type Report = Report;
    type View = ();

    #[inline]
    fn name(config: &LinkConfig) -> &'static str {
        super::name_of(config.n, config.is_preset)
    }

    #[inline(always)]
    fn signal(_config: &LinkConfig) -> &'static str {
        "mpcp"
    }

    #[inline(always)]
    fn start(config: &LinkConfig, phase: Duration, second_phase: Duration) -> Self {
        Self::new(*config, phase, second_phase)
    }

    #[inline(always)]
    fn first_interval(config: &LinkConfig) -> Duration {
        Duration(config.interval.0.max(1))
    }

    #[inline]
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

    #[inline(always)]
    fn set_capacity(&mut self, capacity: Rate) {
        self.config.capacity = capacity;
    }

    /// Counts the packet, whichever protocol it is of, and also if it is then dropped (VNS).
    #[inline(always)]
    fn on_arrival(&mut self, _now: Time, packet: &impl Packet) {
        self.bytes += packet.size();
    }

    /// Raises the code of a data packet that has one, never lowers it.
    #[inline(always)]
    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, _backlog: Bytes) {
        let found = packet.ecn();
        if found == 0 {
            return;
        }
        let LinkConfig { n, order, algorithm_2, .. } = self.config;
        if n > 1
            && let Some(segment) = Segment::of(packet)
        {
            // Packets whose place nobody can tell pass as they are.
            let name = [segment.source, segment.destination, segment.ports];
            let Some(index) = order.read(&segment, n) else { return };
            let code = match packet.memory(name, now, index == 0) {
                Some([word, ..]) => {
                    let mut flow = Flow::from_word(*word);
                    let code = flow.mark(index, found, &self.level, algorithm_2);
                    *word = flow.to_word();
                    code
                }
                // No first packet of the flow came: it may be VCP's, whose codes are zones.
                _ => self.raise(found),
            };
            packet.set_ecn(code);
        } else {
            let code = self.raise(found);
            if code != found {
                packet.set_ecn(code);
            }
        }
    }

    /// A code may rise, in longer chains that of the first packet: a higher level can have lower digits behind.
    #[inline]
    fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool {
        let LinkConfig { n, order, .. } = self.config;
        let is_coded = came.ecn() > 0;
        let place = Segment::of(came).filter(|_| n > 1).map(|segment| order.read(&segment, n));
        match place {
            _ if !is_coded => left.ecn() == 0,
            Some(None) => left.ecn() == came.ecn(),
            Some(Some(1..)) => left.ecn() > 0,
            Some(Some(0)) | None => left.ecn() >= came.ecn(),
        }
    }

    #[inline(always)]
    fn next_deadline(&self) -> Time {
        self.load_deadline.min(self.queue_deadline)
    }

    /// A late call measures over the time that really passed, and samples the queue once.
    #[inline(always)]
    fn on_deadline(&mut self, now: Time, backlog: Bytes) {
        if self.queue_deadline <= now {
            self.queue_sum = self.queue_sum.saturating_add(backlog.0);
            self.samples += 1;
            self.queue_deadline = now + self.config.sample;
        }
        if self.load_deadline <= now {
            self.close_interval(now);
        }
    }

    #[inline(always)]
    fn report(&self) -> Report {
        self.report
    }

    #[inline(always)]
    fn remembers(config: &LinkConfig) -> Option<Remembers> {
        (config.n > 1).then_some(Remembers { flows: config.table, idle: config.idle, words: 1 })
    }
}

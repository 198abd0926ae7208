//! Link law of HPCC: what a port tells of its load (docs/design/modern.md 8.2, 8.4).

use super::{Header, MOST, PLACES, Signal, TOLD, Telemetry, WAIT};
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::law::{LinkLaw, Packet, Series, Steered};
use crate::units::{Bytes, Duration, Rate, SECOND, Time, mul_div};

/// Binary places of the load that a port keeps.
const KEPT: u32 = 32;
/// The largest load that is kept, 2^16: no sum of two passes 64 bits.
const LOAD_MAX: u64 = 1 << (KEPT + 16);

/// Configuration of HPCC's link law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LinkConfig {
    /// Capacity of the link.
    pub capacity: Rate,
    /// Telemetry that packets get.
    pub telemetry: Telemetry,
    /// T, the round trip of the network without queues: the load of `load` is over it.
    pub base_rtt: Duration,
    /// Time over which `csig` measures free capacity.
    pub window: Duration,
}

impl LinkConfig {
    /// Default constants with this telemetry; the capacity, 0, is to be set by who knows the link.
    #[inline(always)] // or it would be in each BPF object
    pub const fn of(telemetry: Telemetry) -> Self {
        Self { capacity: Rate(0), telemetry, base_rtt: Duration(13_000), window: Duration(256_000) }
    }
}

impl Default for LinkConfig {
    #[inline(always)] // or it would be in each BPF object
    fn default() -> Self {
        Self::of(Telemetry::Load)
    }
}

impl Settings for LinkConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        match self.telemetry {
            Telemetry::Load => tell(
                "base_rtt",
                "Round trip without queues, over which load is measured; absent: the longest of the link's flows, in the kernel 13 us (HPCC's code).",
                Field::Span(&mut self.base_rtt),
            ),
            Telemetry::Csig => tell(
                "window",
                "Time over which free capacity is measured; 256 us (the draft).",
                Field::Span(&mut self.window),
            ),
        }
        tell(
            "capacity",
            "Capacity that the law is told; absent: the link's rate.",
            Field::Rate(&mut self.capacity),
        );
    }

    #[cfg(feature = "words")]
    fn set_round_trip(&mut self, longest: Duration, is_written: &dyn Fn(&str) -> bool) {
        if longest.0 > 0 && !is_written("base_rtt") {
            self.base_rtt = longest;
        }
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        match self.telemetry {
            Telemetry::Load => Finding::above_zero("base_rtt", self.base_rtt.0, "\"13 us\"", tell),
            Telemetry::Csig => Finding::above_zero("window", self.window.0, "\"256 us\"", tell),
        }
    }
}

/// Load as a port tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Report {
    /// U of `load`, or the used part of the capacity of `csig`, 2^-20.
    pub load: u32,
    /// Wait of a packet that came now.
    pub wait: Duration,
}

impl Series for Report {
    /// The law tells each packet what is so; it has no intervals.
    fn intervals(&self) -> u64 {
        0
    }

    fn decision(&self) -> i64 {
        self.load.into()
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("load_share", self.load.into(), 1 << PLACES);
    }
}

/// State of the link law at one output port.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link {
    config: LinkConfig,
    /// U, 2^-32.
    load: u64,
    /// Departure of the last packet.
    last: Time,
    /// Beginning of the window, and what left in it.
    began: Time,
    sent: Bytes,
    /// Free part of the capacity of the last window, 2^-20.
    free: u32,
    wait: Duration,
}

impl Link {
    /// Creates the state of a port.
    #[inline(always)]
    pub fn new(config: LinkConfig) -> Self {
        Self {
            config,
            load: 0,
            last: Time::ZERO,
            began: Time::ZERO,
            sent: Bytes(0),
            free: MOST - 1,
            wait: Duration(0),
        }
    }

    /// U = U (1 - dt / T) + (q / (C T)) (dt / T) + size / (C T), dt being the time since the last packet, T at most: the queue in round trips,
    /// and the output over a round trip.
    #[inline]
    fn take(&mut self, now: Time, size: Bytes, backlog: Bytes) {
        let whole = self.config.base_rtt.0.max(1);
        let passed = (now - self.last).0.min(whole);
        let pipe = self.config.capacity.over(Duration(whole)).0.max(1);
        let part = |bytes: Bytes| mul_div(bytes.0, 1 << KEPT, pipe).min(LOAD_MAX);
        let kept = self.load - mul_div(self.load, passed, whole);
        self.load = (kept + mul_div(part(backlog), passed, whole) + part(size)).min(LOAD_MAX);
        self.last = now;
    }

    /// Counts what leaves in windows; one that nothing ends is longer.
    #[inline]
    fn count(&mut self, now: Time, size: Bytes) {
        let elapsed = now - self.began;
        if elapsed.0 > 0 && elapsed >= self.config.window {
            let rate = self.sent.per(elapsed);
            let used = mul_div(rate.0, 1 << PLACES, self.config.capacity.0);
            self.free = (MOST as u64).saturating_sub(used).min(MOST as u64 - 1) as u32;
            (self.began, self.sent) = (now, Bytes(0));
        }
        self.sent += size;
    }

    /// Returns what the port tells of a signal.
    #[inline(always)]
    fn value(&self, signal: Signal) -> u32 {
        match signal {
            Signal::Load => (self.load >> (KEPT - TOLD)).max(1).min(u16::MAX as u64) as u32,
            Signal::Free => self.free,
            Signal::Wait => (self.wait.0 >> WAIT).min(MOST as u64) as u32,
        }
    }
}

impl Steered for Link {}

impl LinkLaw for Link {
    type Config = LinkConfig;
    type Report = Report;
    type View = Report;

    #[inline(always)]
    fn name(config: &LinkConfig) -> &'static str {
        config.telemetry.name()
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

    #[inline]
    fn set_capacity(&mut self, capacity: Rate) {
        self.config.capacity = capacity;
    }

    #[inline(always)]
    fn on_arrival(&mut self, _now: Time, _packet: &impl Packet) {}

    /// Measures with every packet, and writes the port's value into one with telemetry that says less.
    #[inline]
    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes) {
        let size = packet.size();
        match self.config.telemetry {
            Telemetry::Load => self.take(now, size, backlog),
            Telemetry::Csig => self.count(now, size),
        }
        self.wait = Duration(mul_div(backlog.0, SECOND, self.config.capacity.0));
        if let Some(header) = packet.header::<Header>()
            && (header.signal == Signal::Load) == (self.config.telemetry == Telemetry::Load)
        {
            let own = Header { value: self.value(header.signal), ..header };
            if !own.is_within(header) {
                packet.set_header(own);
            }
        }
    }

    /// More load, less free capacity and a longer wait let a sender send less.
    #[inline]
    fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool {
        match (came.header::<Header>(), left.header::<Header>()) {
            (Some(came), Some(left)) => came.signal == left.signal && came.is_within(left),
            (came, left) => came == left,
        }
    }

    #[inline(always)]
    fn next_deadline(&self) -> Time {
        Time::NEVER
    }

    #[inline(always)]
    fn on_deadline(&mut self, _now: Time, _backlog: Bytes) {}

    #[inline]
    fn report(&self) -> Report {
        let load = match self.config.telemetry {
            Telemetry::Load => (self.load >> (KEPT - PLACES)).min(u32::MAX as u64) as u32,
            Telemetry::Csig => MOST - self.free,
        };
        Report { load, wait: self.wait }
    }

    #[inline]
    fn view(&self, packet: &impl Packet) -> Option<Report> {
        packet.header::<Header>().map(|_| self.report())
    }
}

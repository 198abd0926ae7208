//! P-XCP, proportional XCP (PX = Zhou, Yeung, Li, "P-XCP: a transport layer protocol for satellite IP
//! networks", GLOBECOM 2004, §IV-V).
//!
//! Shuffling hands every flow its share of what it takes, also those that cannot use it because
//! another link or their receiver limits them: up to a fifth of the link stays empty. A P-XCP link
//! measures the share r of its flows that are limited elsewhere and scales its positive feedback by
//! k / (1 - r), so that the others get what those leave. All else is XCP's link.
//!
//! A flow sends d / X packets in an interval d, so the sum of X / d over packets counts flows (PX eqs.
//! 5 and 6 with X for RTT / cwnd). The sender is XCP's that keeps its window on loss (PX §III).
//!
//! A slow flow has a packet in one interval and none in the next. So the link counts flows over several intervals (ours). A
//! packet is of a limited flow if it asks for less than its share of the pools, even if other packets have emptied them.
//! Headers may state any X, so the scale weighs flows as the pool does, whose X is bounded.

#[cfg(feature = "words")]
mod words;

use super::protocol::Protocol;
#[cfg(feature = "words")]
use super::settings::Finding;
use super::settings::{Field, Settings};
use super::xcp::{self, Header, LossPolicy, RateSource, Report, Share};
use super::{Column, Hue, LinkLaw, Look, Packet, Pool, Series, Shape, Steered, Told};
use crate::units::{Bytes, Duration, Rate, Ratio, Time, mul_div};
use core::any::Any;

/// Binary places of r.
const R_PLACES: u32 = 31;
/// Binary places of the scale.
const PLACES: u32 = 32;
/// The most control intervals over which flows are counted.
pub const INTERVALS: u32 = 4;

/// Configuration of P-XCP's link law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LinkConfig {
    /// XCP's part of the configuration.
    pub xcp: xcp::LinkConfig,
    /// Part of the full compensation 1 / (1 - r) that is given; 0.9 (PX §V).
    pub k: Ratio,
    /// Largest r that is believed, because r = 1 would scale by infinity; 0.95, assumed, PX is silent.
    pub r_max: Ratio,
    /// The most flows that a packet counts for, because the X / d of a flow with less than a packet per interval
    /// is noise; 1, assumed, PX is silent.
    pub weight_cap: Ratio,
    /// Control intervals over which flows are counted, 1 to [`INTERVALS`]; 2 (ours): of more, r lags, and queues that r decides
    /// oscillate. 1 is PX's: then a packet counts with the X
    /// that the pool counts, and asks for less than its share only while something is left.
    pub counted_over: u32,
}

impl LinkConfig {
    /// PX's values, and assumed ones where PX is silent; the capacity, 0, is to be set.
    pub const DEFAULT: Self = Self {
        xcp: xcp::LinkConfig { capture: false, ..xcp::LinkConfig::DEFAULT },
        k: Ratio::ppm(900_000),
        r_max: Ratio::ppm(950_000),
        weight_cap: Ratio::ONE,
        counted_over: 2,
    };
}

impl Settings for LinkConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        self.xcp.each(tell);
        tell(
            "k",
            "Part of the compensation 1 / (1 - r) that positive feedback is scaled by; 0.9 (P-XCP).",
            Field::Share(&mut self.k),
        );
        tell(
            "r_max",
            "Largest share of limited flows that is believed, below 1; 0.95 (assumed).",
            Field::Share(&mut self.r_max),
        );
        tell(
            "weight_cap",
            "A packet counts for no more flows than this; 1 (assumed).",
            Field::Factor(&mut self.weight_cap),
        );
        tell(
            "counted_over",
            "Control intervals over which flows are counted, 1 to 4; 2. 1: as in the paper.",
            Field::Number(&mut self.counted_over, INTERVALS),
        );
    }

    #[cfg(feature = "words")]
    fn set_round_trip(&mut self, longest: Duration, is_written: &dyn Fn(&str) -> bool) {
        self.xcp.set_round_trip(longest, is_written);
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        self.xcp.check(tell);
        // The scale k / (1 - r) must be finite.
        if self.r_max >= Ratio::ONE {
            let help = "allowed: 0 to below 1; k / (1 - r) scales positive feedback";
            tell(Finding::range("r_max", "is 1", help));
        }
    }
}

/// Returns the protocols of this file: `pxcp`, with a link of its own and XCP's sender that keeps its window on loss.
pub(super) const fn protocols() -> &'static [Protocol<LinkConfig, xcp::SenderConfig>] {
    const {
        &[Protocol {
            name: "pxcp",
            about: "P-XCP: XCP that gives what limited flows leave to the others, and keeps its window on loss",
            page: "pxcp",
            look: Look::new(Hue::Sky, Shape::Up, 1),
            link_series: &[
                Column::new("pxcp_r", "r of the P-XCP law: share of limited flows"),
                Column::new("pxcp_n", "N of the P-XCP law: flows"),
                Column::new("pxcp_n_lim", "N_lim of the P-XCP law: limited flows"),
            ],
            flow_series: &[],
            link: Some(LinkConfig::DEFAULT),
            sender: Some(xcp::SenderConfig {
                loss: LossPolicy::Maintain,
                rate_source: RateSource::Used,
                ..xcp::SenderConfig::DEFAULT
            }),
        }]
    }
}

/// State of P-XCP's link: XCP's, and the scaling.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link {
    xcp: xcp::Link,
    /// The pools as the interval began.
    grants: xcp::Pool,
    cuts: xcp::Pool,
    scaling: Scaling,
}

/// Routers in the kernel are asked for the counts by their place: the last words of the state.
#[cfg(not(target_arch = "bpf"))] // its compiler is older
const _: () = assert!(
    core::mem::offset_of!(Link, scaling) + core::mem::offset_of!(Scaling, counted) + size_of::<Counted>()
        == size_of::<Link>()
);

/// The share r of flows that are limited elsewhere, and the scaling of positive feedback by it.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Scaling {
    k: Ratio,
    weight_cap: Ratio,
    counted_over: u32,
    /// `r_max` with [`R_PLACES`].
    r_max: u32,
    /// The most that a packet counts for, 2^-28 s.
    most: u32,
    /// r of the pool, by which it is scaled, with [`R_PLACES`].
    pool_r: u32,
    running: Counts,
    /// The intervals before, the last one first.
    earlier: [Counts; INTERVALS as usize - 1],
    counted: Counted,
}

/// Sums of one control interval; all in 2^-28 s.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Counts {
    /// X over arrivals.
    n: u64,
    /// X over departures that ask for less than they would get.
    n_lim: u64,
    /// The same of the X that the pool counts ([`xcp::LinkConfig::bound_headers`]).
    weights: u64,
    weights_lim: u64,
    /// ci, the length of the interval.
    interval: u64,
}

/// Counts of the last intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counted {
    /// N ci, flows times interval: the sum of X over arrivals, 2^-28 s.
    pub n: u64,
    /// N_lim ci: the sum of X over departures of limited flows, 2^-28 s.
    pub n_lim: u64,
    /// ci, the length of those intervals, 2^-28 s.
    pub interval: u32,
    /// r, the share of limited flows, with 31 binary places.
    pub r: u32,
}

/// Report of P-XCP's link: XCP's, and the counts of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PxcpReport {
    /// XCP's part of the report.
    pub xcp: Report,
    /// Counts of the last intervals.
    pub counted: Counted,
}

impl Scaling {
    /// Creates the state at the beginning of the first interval.
    #[inline(always)]
    pub fn new(config: &LinkConfig) -> Self {
        let mut new = Self {
            k: config.k,
            weight_cap: config.weight_cap,
            counted_over: config.counted_over,
            r_max: config.r_max.of(1 << R_PLACES).min((1 << R_PLACES) - 1) as u32,
            most: 0,
            pool_r: 0,
            running: Counts::default(),
            earlier: [Counts::default(); INTERVALS as usize - 1],
            counted: Counted::default(),
        };
        new.begin(config.xcp.initial_interval);
        new
    }

    /// Counts a packet that arrives. `weight` is its X in the pool. Without X or round trip time it counts for nobody.
    #[inline(always)]
    pub fn on_arrival(&mut self, header: &Header, weight: u32) {
        let (x, weight) = self.counts_for(header, weight);
        self.running.n = self.running.n.saturating_add(x);
        self.running.weights = self.running.weights.saturating_add(weight);
    }

    /// Counts a departing packet that asks for less than it would get.
    #[inline(always)]
    pub fn on_limited(&mut self, header: &Header, weight: u32) {
        let (x, weight) = self.counts_for(header, weight);
        self.running.n_lim = self.running.n_lim.saturating_add(x);
        self.running.weights_lim = self.running.weights_lim.saturating_add(weight);
    }

    /// Returns the positive pool, scaled, of the interval that begins now. Once per interval, so that a departure costs
    /// no more than XCP's: PX fig. 6 scales each packet's share, which a scaled pool does too, and it lasts for
    /// all of them.
    #[inline(always)]
    pub fn scale(&mut self, pool: u64, interval: Duration) -> u64 {
        let mut sums = self.running;
        for earlier in &self.earlier {
            sums.n = sums.n.saturating_add(earlier.n);
            sums.n_lim = sums.n_lim.saturating_add(earlier.n_lim);
            sums.weights = sums.weights.saturating_add(earlier.weights);
            sums.weights_lim = sums.weights_lim.saturating_add(earlier.weights_lim);
            sums.interval += earlier.interval;
        }
        let r_max = self.r_max as u64;
        let share = |limited: u64, all: u64| {
            if all == 0 { 0 } else { mul_div(limited.min(all), 1 << R_PLACES, all).min(r_max) as u32 }
        };
        self.pool_r = share(sums.weights_lim, sums.weights);
        self.counted = Counted {
            n: sums.n,
            n_lim: sums.n_lim,
            interval: sums.interval.min(u32::MAX as u64) as u32,
            r: share(sums.n_lim, sums.n),
        };
        // Place by place: the kernel's verifier follows no loop that begins at a number of the configuration, and its stack
        // has no room for all places at once.
        let counted_over = self.counted_over;
        let kept = |place: u32, counts| if place < counted_over { counts } else { Counts::default() };
        self.earlier[2] = kept(3, self.earlier[1]);
        self.earlier[1] = kept(2, self.earlier[0]);
        self.earlier[0] = kept(1, self.running);
        self.begin(interval);
        mul_div(pool, self.factor(), 1 << PLACES)
    }

    /// max(k / (1 - r), 1), with [`PLACES`].
    #[inline(always)]
    fn factor(&self) -> u64 {
        let rest = (1 << R_PLACES) - self.pool_r as u64; // at least 1
        let one = Ratio::ONE.0 as u64;
        mul_div((self.k.0 as u64) << PLACES, 1 << R_PLACES, one * rest).max(1 << PLACES)
    }

    /// X of a packet as it counts, and its weight in the pool.
    #[inline(always)]
    fn counts_for(&self, header: &Header, weight: u32) -> (u64, u64) {
        if header.rtt == 0 {
            return (0, 0);
        }
        let x = if self.counted_over == 1 { weight } else { header.x };
        (x.min(self.most) as u64, weight.min(self.most) as u64)
    }

    #[inline(always)]
    fn begin(&mut self, interval: Duration) {
        let interval = interval.to_header().max(1) as u64;
        self.running = Counts { interval, ..Counts::default() };
        let all = self.earlier.iter().fold(interval, |all, earlier| all + earlier.interval);
        self.most = self.weight_cap.of(all).min(u32::MAX as u64) as u32;
    }
}

impl Link {
    /// Returns true if a demand is below the packet's share of the interval's pools, whatever is left of them.
    #[inline(always)]
    fn asks_less(&self, demand: i32, weight: u32, size: Bytes) -> bool {
        let most = i64::MAX as u64 / 2;
        let (grant, cut) = (self.grants.due(weight).min(most), self.cuts.due(xcp::weight(size)).min(most));
        ((demand as i64) << xcp::SHARE_PLACES) < grant as i64 - cut as i64
    }

    #[inline(always)]
    fn keep_pools(&mut self) {
        (self.grants, self.cuts) = (self.xcp.grants(), self.xcp.cuts());
    }
}

impl LinkLaw for Link {
    type Config = LinkConfig;
    type Report = PxcpReport;
    type View = Share;

    #[inline(always)]
    fn name(_config: &LinkConfig) -> &'static str {
        "pxcp"
    }

    #[inline(always)]
    fn signal(_config: &LinkConfig) -> &'static str {
        "xcp"
    }

    #[inline(always)]
    fn start(config: &LinkConfig, phase: Duration, second_phase: Duration) -> Self {
        Self {
            xcp: xcp::Link::new(config.xcp, phase, second_phase),
            scaling: Scaling::new(config),
            grants: xcp::Pool::default(),
            cuts: xcp::Pool::default(),
        }
    }

    #[inline(always)]
    fn first_interval(config: &LinkConfig) -> Duration {
        config.xcp.initial_interval
    }

    #[inline]
    fn shortest_interval(config: &LinkConfig, round_trip: Duration) -> Duration {
        xcp::Link::shortest_interval(&config.xcp, round_trip)
    }

    #[inline(always)]
    fn capacity(config: &LinkConfig) -> Rate {
        config.xcp.capacity
    }

    #[inline(always)]
    fn configure_capacity(config: &mut LinkConfig, capacity: Rate) {
        config.xcp.capacity = capacity;
    }

    #[inline(always)]
    fn set_capacity(&mut self, capacity: Rate) {
        self.xcp.set_capacity(capacity);
    }

    #[inline(always)]
    fn on_arrival(&mut self, now: Time, packet: &impl Packet) {
        let header: Header = packet.header().unwrap_or_default();
        self.xcp.on_arrival(now, &header, packet.size());
        self.scaling.on_arrival(&header, self.xcp.bounded(header.x));
    }

    #[inline(always)]
    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes) {
        match packet.header::<Header>() {
            Some(mut header) => {
                let (weight, demand) = (self.xcp.bounded(header.x), header.delta);
                let mut asks_less = self.xcp.depart(now, &mut header, packet.size(), backlog);
                if self.scaling.counted_over > 1 {
                    asks_less = self.asks_less(demand, weight, packet.size());
                }
                if asks_less {
                    self.scaling.on_limited(&header, weight);
                }
                packet.set_header(header);
            }
            None => self.xcp.on_other_departure(now, backlog),
        }
    }

    #[inline]
    fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool {
        self.xcp.only_lowers(came, left)
    }

    #[inline]
    fn pool(&self, packet: &impl Packet) -> Option<Pool> {
        self.xcp.pool(packet)
    }

    #[inline(always)]
    fn next_deadline(&self) -> Time {
        self.xcp.next_deadline()
    }

    #[inline(always)]
    fn on_deadline(&mut self, now: Time, backlog: Bytes) {
        let (scaling, mut has_begun) = (&mut self.scaling, false);
        self.xcp.serve(now, backlog, |pool, interval| {
            has_begun = true;
            scaling.scale(pool, interval)
        });
        if has_begun {
            self.keep_pools();
        }
    }

    #[inline(always)]
    fn report(&self) -> PxcpReport {
        PxcpReport { xcp: self.xcp.report(), counted: self.scaling.counted }
    }

    #[inline(always)]
    fn view(&self, packet: &impl Packet) -> Option<Share> {
        let factor = self.scaling.factor();
        packet.header().map(|header| Share { factor, ..self.xcp.share(&header, packet.size()) })
    }

    #[inline(always)]
    fn base(config: &LinkConfig) -> &dyn Any {
        &config.xcp
    }

    #[inline(always)]
    fn base_mut(config: &mut LinkConfig) -> &mut dyn Any {
        &mut config.xcp
    }
}

impl Steered for Link {
    const IS_STEERED: bool = true;

    #[inline(always)]
    fn close_told(&mut self, now: Time, told: &Told) {
        let scaling = &mut self.scaling;
        self.xcp.serve_told(now, told, |pool, interval| scaling.scale(pool, interval));
        self.keep_pools();
    }

    #[inline(always)]
    fn input(&self, now: Time) -> Rate {
        self.xcp.input(now)
    }

    #[inline(always)]
    fn mean_rtt(&self) -> Duration {
        self.xcp.mean_rtt()
    }

    #[inline(always)]
    fn persistent_queue(&self) -> Bytes {
        self.xcp.persistent_queue()
    }
}

impl Series for PxcpReport {
    fn intervals(&self) -> u64 {
        self.xcp.intervals
    }

    fn decision(&self) -> i64 {
        self.xcp.feedback
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        self.xcp.each(tell);
        let interval = self.counted.interval.max(1);
        tell("pxcp_n", self.counted.n.min(i64::MAX as u64) as i64, interval);
        tell("pxcp_n_lim", self.counted.n_lim.min(i64::MAX as u64) as i64, interval);
        tell("pxcp_r", self.counted.r as i64, 1 << R_PLACES);
    }

    fn bounded_packets(&self) -> Option<u64> {
        self.xcp.bounded_packets()
    }

    fn base(&self) -> &dyn Any {
        &self.xcp
    }
}

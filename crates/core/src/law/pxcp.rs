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

#[cfg(feature = "words")]
mod words;

#[cfg(feature = "words")]
use super::settings::Finding;
use super::settings::{Field, Settings};
use super::xcp::{self, Header, LossPolicy, Report, Share};
use super::{
    Column, Hue, LinkConfig as Links, LinkLaw, Look, Packet, Pool, Protocol, SenderConfig as Senders, Series,
    Shape, Steered, Told,
};
#[cfg(feature = "words")]
use crate::law::words::Rule;
use crate::units::{Bytes, Duration, Rate, Ratio, Time, mul_div};
use core::any::Any;

/// Binary places of r.
const R_PLACES: u32 = 31;
/// Binary places of the scale.
const PLACES: u32 = 32;

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
}

impl LinkConfig {
    /// PX's values, and assumed ones where PX is silent; the capacity, 0, is to be set.
    pub const DEFAULT: Self = Self {
        xcp: xcp::LinkConfig::DEFAULT,
        k: Ratio::ppm(900_000),
        r_max: Ratio::ppm(950_000),
        weight_cap: Ratio::ONE,
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
    }

    #[cfg(feature = "words")]
    fn set_round_trip(&mut self, longest: Duration, is_written: &dyn Fn(&str) -> bool) {
        self.xcp.set_round_trip(longest, is_written);
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        words::check(self, tell);
    }
}

/// Returns the protocols of this file: `pxcp`, with a link of its own and XCP's sender that keeps its window on loss.
pub const fn protocols() -> &'static [Protocol] {
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
            link: Some(Links::Pxcp(LinkConfig::DEFAULT)),
            sender: Some(Senders::Xcp(xcp::SenderConfig {
                loss: LossPolicy::Maintain,
                ..xcp::SenderConfig::DEFAULT
            })),
        }]
    }
}

/// State of P-XCP's link: XCP's, and the scaling.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link {
    xcp: xcp::Link,
    scaling: Scaling,
}

/// The share r of flows that are limited elsewhere, and the scaling of positive feedback by it.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Scaling {
    k: Ratio,
    weight_cap: Ratio,
    /// `r_max` with [`R_PLACES`].
    r_max: u32,
    /// The most that a packet counts for, 2^-28 s.
    most: u32,
    /// ci, the running interval, 2^-28 s.
    interval: u32,
    /// N ci of the running interval, 2^-28 s: sum of X over arrivals.
    n: u64,
    /// N_lim ci: sum of X over departures that ask for less than they would get.
    n_lim: u64,
    counted: Counted,
}

/// Counts of the last interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counted {
    /// N ci, flows times interval: the sum of X over arrivals, 2^-28 s.
    pub n: u64,
    /// N_lim ci: the sum of X over departures of limited flows, 2^-28 s.
    pub n_lim: u64,
    /// ci, the length of that interval, 2^-28 s.
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
    /// Counts of the last interval.
    pub counted: Counted,
}

impl Scaling {
    /// Creates the state at the beginning of the first interval.
    #[inline(always)]
    pub fn new(config: &LinkConfig) -> Self {
        let mut new = Self {
            k: config.k,
            weight_cap: config.weight_cap,
            r_max: config.r_max.of(1 << R_PLACES).min((1 << R_PLACES) - 1) as u32,
            most: 0,
            interval: 0,
            n: 0,
            n_lim: 0,
            counted: Counted::default(),
        };
        new.begin(config.xcp.initial_interval);
        new
    }

    /// Counts a packet that arrives; without X or round trip time it counts for nobody.
    #[inline(always)]
    pub fn on_arrival(&mut self, header: &Header) {
        self.n = self.n.saturating_add(self.weight(header));
    }

    /// Counts a departing packet that asks for less than it would get.
    #[inline(always)]
    pub fn on_limited(&mut self, header: &Header) {
        self.n_lim = self.n_lim.saturating_add(self.weight(header));
    }

    /// Returns the positive pool, scaled, of the interval that begins now. Once per interval, so that a departure costs
    /// no more than XCP's: PX fig. 6 scales each packet's share, which a scaled pool does too, and it lasts for
    /// all of them.
    #[inline(always)]
    pub fn scale(&mut self, pool: u64, interval: Duration) -> u64 {
        let r = if self.n == 0 { 0 } else { mul_div(self.n_lim.min(self.n), 1 << R_PLACES, self.n) };
        let r = r.min(self.r_max as u64) as u32;
        self.counted = Counted { n: self.n, n_lim: self.n_lim, interval: self.interval, r };
        (self.n, self.n_lim) = (0, 0);
        self.begin(interval);
        mul_div(pool, self.factor(), 1 << PLACES)
    }

    /// max(k / (1 - r), 1), with [`PLACES`].
    #[inline(always)]
    fn factor(&self) -> u64 {
        let rest = (1 << R_PLACES) - self.counted.r as u64; // at least 1
        let one = Ratio::ONE.0 as u64;
        mul_div((self.k.0 as u64) << PLACES, 1 << R_PLACES, one * rest).max(1 << PLACES)
    }

    #[inline(always)]
    fn weight(&self, header: &Header) -> u64 {
        if header.rtt == 0 { 0 } else { header.x.min(self.most) as u64 }
    }

    #[inline(always)]
    fn begin(&mut self, interval: Duration) {
        self.interval = interval.to_header().max(1);
        self.most = self.weight_cap.of(self.interval as u64).min(u32::MAX as u64) as u32;
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
        Self { xcp: xcp::Link::new(config.xcp, phase, second_phase), scaling: Scaling::new(config) }
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
        self.scaling.on_arrival(&Header { x: self.xcp.bounded(header.x), ..header });
    }

    #[inline(always)]
    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes) {
        match packet.header() {
            Some(mut header) => {
                if self.xcp.depart(&mut header, packet.size(), backlog) {
                    self.scaling.on_limited(&Header { x: self.xcp.bounded(header.x), ..header });
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
        let scaling = &mut self.scaling;
        self.xcp.serve(now, backlog, |pool, interval| scaling.scale(pool, interval));
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

    #[cfg(feature = "words")]
    fn explain_other(_: &LinkConfig) -> Rule {
        Rule::new(
            "the packet has no congestion header, so the law counts its bytes as input traffic and leaves it alone",
            "draft-03 section 4.2.3, L 1",
        )
    }
}

impl Steered for Link {
    const IS_STEERED: bool = true;

    #[inline(always)]
    fn close_told(&mut self, now: Time, told: &Told) {
        let scaling = &mut self.scaling;
        self.xcp.serve_told(now, told, |pool, interval| scaling.scale(pool, interval));
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

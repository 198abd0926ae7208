//! The link law of XCP2: XCP's, with a capacity of its own making and packets that other hops control kept apart.

use super::calibrate::Calibration;
use super::{Hops, xcp};
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::law::{LinkLaw, Packet, Pool, Series, Steered, Told};
use crate::units::{Bytes, Duration, Rate, Ratio, Time, Wide, mul_div};
use core::any::Any;
use xcp::{Apart, Header, Share, Spread};

/// A flow that another hop controls may have a fair share and this part more, as a shift: 1/64. Less, and noise makes two hops
/// with equal shares take turns; more, and shares are off by as much.
const TOLERANCE: u32 = 6;
/// Binary places of the X of a flow with a fair share, for each of its packet's bytes.
const FAIR_PLACES: u32 = 20;
/// Packets in an interval from which on their mean X is believed to be that of a crowd.
const CROWD: u64 = 32;
/// Part of the link that packets have to fill, so that the mean X of fewer is believed, as a shift: a half.
const FULL: u32 = 1;

/// Configuration of XCP2's link law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LinkConfig {
    /// XCP's part of the configuration.
    pub xcp: xcp::LinkConfig,
    /// True to find the capacity from how fast the queue drains, beginning with what is told.
    pub calibrate: bool,
    /// Part of the mean deviation of the measured capacity that is left free.
    pub headroom: Ratio,
    /// True to shuffle among the flows that this link controls, by what their packets say.
    pub hops: bool,
    /// True to let the X of packets count beyond `bound_headers` where most bytes come with such: flows of less than a packet
    /// in an interval.
    pub sparse: bool,
}

impl LinkConfig {
    /// Default configuration: every repair is on.
    pub const DEFAULT: Self = Self {
        xcp: xcp::LinkConfig { spread: true, ..xcp::LinkConfig::DEFAULT },
        calibrate: true,
        headroom: Ratio::ONE,
        hops: true,
        sparse: true,
    };
    /// XCP, packet by packet: every repair is off.
    pub const OFF: Self = Self {
        xcp: xcp::LinkConfig::DEFAULT,
        calibrate: false,
        headroom: Ratio::ONE,
        hops: false,
        sparse: false,
    };
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Settings for LinkConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        self.xcp.each(tell);
        tell(
            "calibrate",
            "Find the capacity from how fast the queue drains, beginning with what is told; true.",
            Field::Switch(&mut self.calibrate),
        );
        tell(
            "headroom",
            "How much of the mean deviation of the measured capacity is left free; 1.",
            Field::Factor(&mut self.headroom),
        );
        tell(
            "hops",
            "Shuffle among the flows that this link controls, by what their packets say; true.",
            Field::Switch(&mut self.hops),
        );
        tell(
            "sparse",
            "Believe packets that state less than one in an interval where most do; true.",
            Field::Switch(&mut self.sparse),
        );
    }

    #[cfg(feature = "words")]
    fn set_round_trip(&mut self, longest: Duration, is_written: &dyn Fn(&str) -> bool) {
        self.xcp.set_round_trip(longest, is_written);
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        self.xcp.check(tell);
    }
}

/// Report of XCP2's link: XCP's, and what the parts beside it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Report {
    /// XCP's part of the report.
    pub xcp: xcp::Report,
    /// Capacity that the running interval is computed with.
    pub capacity: Rate,
    /// Bytes of the last interval that other hops controlled.
    pub apart: Bytes,
    /// Bytes of the last interval.
    pub input: Bytes,
    /// True while a queue stands although the capacity is calibrated.
    pub is_alarmed: bool,
}

impl Series for Report {
    fn intervals(&self) -> u64 {
        self.xcp.intervals
    }

    fn decision(&self) -> i64 {
        self.xcp.feedback
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        self.xcp.each(tell);
        tell("xcp2_capacity_Bps", self.capacity.0.min(i64::MAX as u64) as i64, 1);
        tell("xcp2_alarm", self.is_alarmed as i64, 1);
        // In 2^-16.
        let part = mul_div(self.apart.0, 1 << 16, self.input.0.max(1));
        tell("xcp2_apart", part.min(i64::MAX as u64) as i64, 1 << 16);
    }

    fn bounded_packets(&self) -> Option<u64> {
        self.xcp.bounded_packets()
    }

    fn base(&self) -> &dyn Any {
        &self.xcp
    }
}

/// Sums of the running interval over packets by who controls their flows.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Sums {
    x: u64,
    bytes: u64,
    packets: u64,
    /// X times bytes, and bytes of packets with an X.
    weighted: u64,
    known: u64,
}

impl Sums {
    #[inline(always)]
    fn add(&mut self, x: u32, size: Bytes) {
        self.x = self.x.saturating_add(x as u64);
        self.bytes = self.bytes.saturating_add(size.0);
        if x != 0 {
            self.packets = self.packets.saturating_add(1);
            self.known = self.known.saturating_add(size.0);
            self.weighted = self.weighted.saturating_add(x as u64 * size.0.min(u32::MAX as u64));
        }
    }
}

/// State of XCP2's link: XCP's, and the parts beside it.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link {
    config: LinkConfig,
    xcp: xcp::Link,
    calibration: Calibration,
    /// Packets that this hop controls.
    own: Sums,
    /// Packets that others control, and of them what counts later.
    apart: Sums,
    later: Spread,
    /// Part of `apart` that counts in the running interval.
    counted: Apart,
    /// Pool for flows that others control, as large as that of the flows that this link controls.
    passing: xcp::Pool,
    /// X of a flow with a fair share and [`TOLERANCE`] more, for each byte of its packets; 0: nobody has so much.
    fair: u64,
    report: Report,
}

impl Link {
    /// True if the packet's flow is another hop's to control, and has no more than a fair share here.
    #[inline(always)]
    fn is_apart(&self, hops: Option<Hops>, x: u32, size: Bytes) -> bool {
        let fair = mul_div(size.0, self.fair, 1 << FAIR_PLACES);
        self.config.hops && hops.is_some_and(Hops::is_elsewhere) && x != 0 && x as u64 >= fair
    }

    /// The interval has ended: what its sums say of the next one.
    #[inline(always)]
    fn begin(&mut self) {
        let report = self.xcp.report();
        // Without flows of its own a link that has room stands in nobody's way, and one that has not in that of the largest. Packets
        // without a header, such as ACKs, are bytes of its own and no flow.
        let Sums { x, bytes, .. } = match (self.own.x, report.feedback) {
            (0, ..0) => self.apart,
            (0, _) => Sums::default(),
            _ => self.own,
        };
        let per_byte = if bytes == 0 { 0 } else { Wide::product(x, 1 << FAIR_PLACES).over(bytes).to_u64() };
        self.fair = per_byte - (per_byte >> TOLERANCE);
        self.passing = self.xcp.grants();
        if self.config.sparse {
            let (own, apart) = (self.own, self.apart);
            let part = self.calibration.capacity().0 >> FULL;
            let is_full = part > 0 && report.input.0 >= part;
            let is_crowd = own.packets.saturating_add(apart.packets) >= CROWD;
            // By bytes, or a few small packets would say what all weigh.
            let weighted = own.weighted.saturating_add(apart.weighted);
            if (is_crowd || is_full)
                && let Some(mean) = weighted.checked_div(own.known.saturating_add(apart.known))
            {
                self.xcp.believe_x(mean.saturating_mul(2).min(u32::MAX as u64) as u32);
            }
        }
        if self.config.calibrate {
            self.calibration.close(report.input, report.persistent_queue, self.config.xcp.allowed_queue);
            self.xcp.set_capacity(self.calibration.capacity());
        }
        self.report = Report {
            xcp: report,
            capacity: self.calibration.capacity(),
            apart: Bytes(self.apart.bytes),
            input: Bytes(self.own.bytes.saturating_add(self.apart.bytes)),
            is_alarmed: self.calibration.is_alarmed(),
        };
        (self.own, self.apart, self.counted) = (Sums::default(), Sums::default(), Apart::default());
    }

    /// A packet of a flow that another hop controls: it may ask for no more than a flow of this link's gets at most.
    #[inline(always)]
    fn pass(&mut self, header: &mut Header) {
        let most = self.passing.share(self.xcp.bounded(header.x)) >> xcp::SHARE_PLACES;
        header.delta = header.delta.min(most.min(i32::MAX as u64) as i32);
        self.passing.take((header.delta.max(0) as i64) << xcp::SHARE_PLACES);
    }
}

impl LinkLaw for Link {
    type Config = LinkConfig;
    type Report = Report;
    type View = Share;

    #[inline(always)]
    fn name(_config: &LinkConfig) -> &'static str {
        "xcp2"
    }

    #[inline(always)]
    fn signal(_config: &LinkConfig) -> &'static str {
        "xcp"
    }

    #[inline(always)]
    fn start(config: &LinkConfig, phase: Duration, second_phase: Duration) -> Self {
        Self {
            config: *config,
            xcp: xcp::Link::new(config.xcp, phase, second_phase),
            calibration: Calibration::new(config.xcp.capacity, config.headroom),
            own: Sums::default(),
            apart: Sums::default(),
            later: Spread::default(),
            counted: Apart::default(),
            passing: xcp::Pool::default(),
            fair: 0,
            report: Report { capacity: config.xcp.capacity, ..Report::default() },
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
    fn configure_untimed(config: &mut LinkConfig) {
        config.calibrate = false;
    }

    #[inline]
    fn set_capacity(&mut self, capacity: Rate) {
        self.calibration.tell(capacity);
        self.xcp.set_capacity(if self.config.calibrate { self.calibration.capacity() } else { capacity });
    }

    #[inline(always)]
    fn on_arrival(&mut self, now: Time, packet: &impl Packet) {
        let header: Header = packet.header().unwrap_or_default();
        let size = packet.size();
        if self.config.calibrate {
            self.calibration.on_arrival(size);
        }
        let is_known = header.x != 0 && header.rtt != 0;
        let x = if is_known { self.xcp.bounded(header.x) } else { 0 };
        if self.is_apart(packet.header(), x, size) {
            self.apart.add(x, size);
            let rtt = header.rtt.min(self.xcp.max_rtt());
            let is_later =
                self.config.xcp.spread && self.later.on_arrival(x, rtt, size.0, self.xcp.interval());
            if !is_later {
                self.counted.x = self.counted.x.saturating_add(x as u64);
                self.counted.bytes = self.counted.bytes.saturating_add(size.0);
            }
        } else {
            self.own.add(x, size);
        }
        self.xcp.on_arrival(now, &header, size);
    }

    #[inline(always)]
    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes) {
        if self.config.calibrate {
            self.calibration.on_departure(now, packet.size(), backlog);
        }
        let Some(mut header) = packet.header::<Header>() else {
            return self.xcp.on_other_departure(now, backlog);
        };
        let hops: Option<Hops> = packet.header();
        let asked = header.delta;
        let is_known = header.x != 0 && header.rtt != 0;
        let x = if is_known { self.xcp.bounded(header.x) } else { 0 };
        let is_apart = self.is_apart(hops, x, packet.size());
        if is_apart {
            self.xcp.on_other_departure(now, backlog);
            self.pass(&mut header);
            self.xcp.note_granted(&header);
        } else {
            self.xcp.depart(now, &mut header, packet.size(), backlog);
        }
        packet.set_header(header);
        if let Some(hops) = hops {
            // A full link that lowers a flow that nobody controls does so from then on: that flow would never be cut otherwise.
            let is_mine = !is_apart || (hops.stated == Hops::NONE && self.report.xcp.feedback < 0);
            let controls = if is_mine && header.delta < asked { hops.number() } else { hops.controls };
            packet.set_header(Hops { passed: hops.number(), controls, ..hops });
        }
    }

    #[inline]
    fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool {
        self.xcp.only_lowers(came, left)
    }

    #[inline]
    fn pool(&self, packet: &impl Packet) -> Option<Pool> {
        let header: Header = packet.header()?;
        let is_apart = self.is_apart(packet.header(), self.xcp.bounded(header.x), packet.size());
        if is_apart {
            return None;
        }
        // As `xcp::Link::depart` takes it out.
        let share = self.xcp.share(&header, packet.size());
        let (grant, cut) = (share.grant as i64, share.cut as i64);
        let demand = (header.delta as i64) << xcp::SHARE_PLACES;
        let part = if demand > grant - cut || !self.config.xcp.capture {
            grant
        } else {
            demand + (grant - demand).min(share.cuts_left as i64)
        };
        Some(Pool { left: share.grants_left, part: part.max(0) as u64 })
    }

    #[inline(always)]
    fn next_deadline(&self) -> Time {
        self.xcp.next_deadline()
    }

    #[inline(always)]
    fn on_deadline(&mut self, now: Time, backlog: Bytes) {
        let intervals = self.xcp.report().intervals;
        let (later, spread, own) = (&mut self.later, self.config.xcp.spread, self.own.x);
        let mut apart = self.counted;
        self.xcp.serve_apart(now, backlog, |elapsed| {
            if spread {
                let counted = later.count(elapsed);
                apart.x = apart.x.saturating_add(counted.x);
                apart.bytes = apart.bytes.saturating_add(counted.bytes);
            }
            // Of a link without flows of its own all are its own.
            if own == 0 { Apart::default() } else { apart }
        });
        if self.xcp.report().intervals != intervals {
            self.begin();
        }
    }

    #[inline(always)]
    fn report(&self) -> Report {
        Report { xcp: self.xcp.report(), ..self.report }
    }

    #[inline(always)]
    fn view(&self, packet: &impl Packet) -> Option<Share> {
        packet.header().map(|header| self.xcp.share(&header, packet.size()))
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

/// The virtual router of XCP-i is XCP's: the capacity is an estimate's, and clouds are no hops.
impl Steered for Link {
    const IS_STEERED: bool = true;

    #[inline(always)]
    fn close_told(&mut self, now: Time, told: &Told) {
        self.xcp.close_told(now, told);
        self.begin();
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

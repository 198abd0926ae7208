//! The sender law of XCP2: XCP's, with windows below a packet and word of the hop that controls the flow.

use super::beside::Beside;
use super::{Hops, xcp};
use crate::law::settings::{Field, Settings};
use crate::law::{
    Ack, Delivery, EchoLaw, Heard, Lie, Needs, Network, Packet, Receiving, Reply, Send, SenderLaw,
};
use crate::units::{Bytes, Duration, Rate, Ratio, SECOND, Time, mul_div};
use core::any::Any;
use xcp::{PLACES, Profile, with_places};

/// The least window, as a part of a segment: a packet in 64 round trips.
const LEAST: u64 = 64;
/// The longest time between two packets, less than the longest control interval.
const LONGEST: Duration = Duration(SECOND / 4 * 3);

/// Configuration of XCP2's sender law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderConfig {
    /// XCP's part of the configuration.
    pub xcp: xcp::SenderConfig,
    /// True to tell links which hop controls the flow.
    pub hops: bool,
    /// True to pace below a packet in a round trip where links want less.
    pub sparse: bool,
    /// True to run CUBIC beside once packets are lost behind a queue that no link told of.
    pub beside: bool,
}

impl SenderConfig {
    /// Default configuration: every repair is on but `beside`, which falls short of its bounds, and grows where no link granted it
    /// (docs/beyond.md).
    pub const DEFAULT: Self = Self {
        xcp: xcp::SenderConfig {
            aging: Some(Ratio::ppm(500_000)),
            pacing: true,
            loss: xcp::LossPolicy::Maintain,
            safety_net: true,
            ..xcp::SenderConfig::DEFAULT
        },
        hops: true,
        sparse: true,
        beside: false,
    };
    /// XCP without pacing, packet by packet: every repair is off.
    pub const OFF: Self = Self {
        xcp: xcp::SenderConfig { pacing: false, ..xcp::SenderConfig::DEFAULT },
        hops: false,
        sparse: false,
        beside: false,
    };
}

impl Settings for SenderConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        self.xcp.each(tell);
        tell("hops", "Tell links which hop controls the flow; true.", Field::Switch(&mut self.hops));
        tell(
            "sparse",
            "Pace below a packet in a round trip where links want less; true.",
            Field::Switch(&mut self.sparse),
        );
        tell(
            "beside",
            "Run CUBIC beside once packets are lost behind a queue that no link told of; false.",
            Field::Switch(&mut self.beside),
        );
    }
}

/// State of XCP2's sender for one flow: XCP's, and what is beside it.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    xcp: xcp::Sender,
    /// The window while it is below a segment, bytes with [`PLACES`]; else 0. XCP's is a segment then.
    small: u64,
    mss: Bytes,
    /// Hop that controls the flow, as [`Hops::stated`].
    hop: u8,
    beside: Beside,
    srtt: Duration,
    least_rtt: Duration,
    is_paced: bool,
}

impl Sender {
    /// Returns the window while it is below a segment, as a part of one, with 16 binary places; 1 otherwise.
    #[inline]
    pub fn part(&self) -> u64 {
        if self.small == 0 { 1 << 16 } else { mul_div(self.small, 1 << 16, with_places(self.mss)) }
    }

    /// The flow's window, bytes with [`PLACES`].
    #[inline(always)]
    fn exact(&self) -> u64 {
        if self.small == 0 { self.xcp.cwnd } else { self.small }
    }

    /// The window is this, below a segment, from now on. A packet goes in each interval of a link, or the link forgets the flow.
    #[inline(always)]
    fn shrink(&mut self, window: u64) {
        let mss = with_places(self.mss);
        let least = (mss / LEAST).max(mul_div(mss, self.srtt.0, LONGEST.0));
        self.small = if least >= mss { 0 } else { window.max(least) };
        self.xcp.cwnd = mss;
    }

    /// The window is CUBIC's.
    #[inline(always)]
    fn follow(&mut self, window: Bytes) {
        self.small = 0;
        self.xcp.cwnd = with_places(window.max(self.mss));
    }

    /// Changes the window by what an ACK brings.
    #[inline]
    fn take(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
        // Other implementations have no such windows.
        if !config.sparse || self.xcp.is_tcp() || !matches!(config.xcp.profile, Profile::Standard) {
            self.small = 0;
            return self.xcp.on_ack(&config.xcp, now, ack);
        }
        let mss = with_places(self.mss);
        let window = self.exact().saturating_add_signed(self.xcp.change(&config.xcp, ack));
        if window >= mss && self.small == 0 {
            return self.xcp.on_ack(&config.xcp, now, ack);
        }
        self.xcp.note_reply(&config.xcp, ack);
        self.xcp.note_ack(&config.xcp, now, ack);
        if window < mss {
            self.shrink(window);
        } else {
            self.small = 0;
            self.xcp.apply(&config.xcp, now, ack, (window - mss).min(i64::MAX as u64) as i64);
        }
    }
}

impl SenderLaw for Sender {
    type Config = SenderConfig;
    type Echo = Echo;

    #[inline(always)]
    fn name(_config: &SenderConfig) -> &'static str {
        "xcp2"
    }

    #[inline(always)]
    fn needs(config: &SenderConfig) -> Needs {
        let needs = xcp::Sender::needs(&config.xcp);
        // CUBIC's window is there for links that do not answer.
        let network = needs.network.map(|network| match config.beside {
            true => Network { at_bottleneck: false, without: xcp::UNANSWERED_TCP, ..network },
            false => network,
        });
        // Four bytes for the hops.
        Needs { network, header_bytes: if config.hops { 24 } else { 20 }, ..needs }
    }

    #[inline(always)]
    fn start(config: &SenderConfig, mss: Bytes, initial_window: Bytes) -> Self {
        let xcp = xcp::Sender::new(mss, initial_window);
        let mss = xcp.mss();
        Self {
            xcp,
            small: 0,
            mss,
            hop: 0,
            beside: Beside::new(mss),
            srtt: Duration(0),
            least_rtt: Duration(u64::MAX),
            is_paced: config.xcp.pacing,
        }
    }

    #[inline]
    fn on_delivery(&mut self, config: &SenderConfig, now: Time, delivery: &Delivery) -> bool {
        self.xcp.on_delivery(&config.xcp, now, delivery)
    }

    #[inline]
    fn on_ack(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
        self.hop = ack.reply.byte;
        self.srtt = ack.srtt;
        if ack.rtt.0 > 0 {
            self.least_rtt = self.least_rtt.min(ack.rtt);
        }
        if config.beside && !self.xcp.is_tcp() {
            let change = self.xcp.change(&config.xcp, ack);
            if let Some(window) = self.beside.on_ack(now, ack, change) {
                self.xcp.note_reply(&config.xcp, ack);
                self.xcp.note_ack(&config.xcp, now, ack);
                return self.follow(window);
            }
        }
        self.take(config, now, ack);
    }

    #[inline]
    fn on_loss(&mut self, config: &SenderConfig, now: Time, flight: Bytes) {
        let window = self.exact();
        self.xcp.on_loss(&config.xcp, now, flight);
        if config.beside
            && let Some(window) = self.beside.on_loss(now, Bytes(window >> PLACES), flight, self.least_rtt)
        {
            self.follow(window);
        }
    }

    /// Half a segment, unless it was less: the next packet would be the one that is too many.
    #[inline]
    fn on_timeout(&mut self, config: &SenderConfig, now: Time, flight: Bytes, is_first: bool) {
        let window = self.exact();
        self.xcp.on_timeout(&config.xcp, now, flight, is_first);
        if config.beside
            && let Some(window) =
                self.beside.on_timeout(now, Bytes(window >> PLACES), flight, is_first, self.least_rtt)
        {
            self.follow(window);
        } else if config.sparse && !self.xcp.is_tcp() && matches!(config.xcp.profile, Profile::Standard) {
            self.shrink(window.min(with_places(self.mss) / 2));
        }
    }

    #[inline]
    fn on_restart(&mut self, config: &SenderConfig, now: Time, initial_window: Bytes) {
        self.xcp.on_restart(&config.xcp, now, initial_window);
    }

    #[inline(always)]
    fn on_send(&mut self, config: &SenderConfig, now: Time, send: &Send, packet: &mut impl Packet) {
        let mut header = self.xcp.header(&config.xcp, now, send);
        if self.small != 0 && header.rtt != 0 {
            // The packet is one in a longer time, and only then does the flow do what it is told.
            let x = mul_div(header.x as u64, with_places(self.mss), self.small).min(u32::MAX as u64) as u32;
            header = xcp::Header { x, rtt: header.rtt.max(x), ..header };
        }
        packet.add_header(header);
        if config.hops {
            packet.add_header(Hops { passed: 0, controls: 0, stated: self.hop });
        }
    }

    /// The congestion window, at least a segment; rounded up to whole packets where pacing keeps the rate: down, a flow of five
    /// would have up to a fifth less than it states.
    #[inline]
    fn window(&self) -> Bytes {
        let (window, mss) = (self.xcp.window(), self.mss.0.max(1));
        let is_paced = self.is_paced && self.small == 0 && !self.beside.is_on();
        if is_paced { Bytes(mul_div(window.0.div_ceil(mss), mss, 1)) } else { window }
    }

    #[inline]
    fn pacing_rate(&self, config: &SenderConfig, srtt: Duration) -> Option<Rate> {
        if self.beside.is_on() {
            return None; // after a stall the round trip is long, and the window all there is
        }
        if self.small == 0 || srtt == Duration(0) {
            // Behind a path that stalled the smoothed round trip stays long, and paced over it the path would stay empty.
            let longest = Duration(self.least_rtt.0.saturating_add(self.least_rtt.0 / 2));
            return self.xcp.pacing_rate(&config.xcp, srtt.min(longest));
        }
        Some(Bytes(self.small >> PLACES).per(srtt))
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("xcp2_hop", self.hop as i64, 1);
    }

    #[inline(always)]
    fn base(config: &SenderConfig) -> &dyn Any {
        &config.xcp
    }

    #[inline(always)]
    fn base_mut(config: &mut SenderConfig) -> &mut dyn Any {
        &mut config.xcp
    }

    #[inline(always)]
    fn base_state(&self) -> &dyn Any {
        &self.xcp
    }
}

/// The receiver of XCP2: XCP's, and the hop that controlled the last packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    xcp: xcp::Returned,
    hop: u8,
}

impl EchoLaw<SenderConfig> for Echo {
    #[inline(always)]
    fn start(config: &SenderConfig, mss: Bytes) -> Self {
        Self { xcp: EchoLaw::start(&config.xcp, mss), hop: 0 }
    }

    #[inline(always)]
    fn on_data(&mut self, config: &SenderConfig, packet: &impl Packet, receiver: impl Receiving) -> Heard {
        if let Some(hops) = packet.header::<Hops>() {
            self.hop = if hops.controls == 0 { Hops::NONE } else { hops.controls };
        }
        self.xcp.on_data(&config.xcp, packet, receiver)
    }

    #[inline(always)]
    fn on_ack(&mut self, config: &SenderConfig, receiver: impl Receiving) -> Reply {
        Reply { byte: self.hop, ..self.xcp.on_ack(&config.xcp, receiver) }
    }

    #[inline]
    fn forge(config: &SenderConfig, lie: Lie, packet: &mut impl Packet) {
        xcp::forge(&config.xcp, lie, packet);
    }
}

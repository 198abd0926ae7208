//! Sender law of MPCP: reads the load from echoed codes, and moves the window (VNS; MP 3.3, 3.4).

use super::echo::Echoed;
use super::growth::{self, ONE};
use super::level::{DIGITS_MAX, HIGH, LOW, Level, OVERLOAD};
use super::order::Order;
#[cfg(feature = "words")]
use crate::law::LinkConfig as Links;
use crate::law::places::{PLACES, SEGMENT_MAX, with_places};
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings, words};
#[cfg(feature = "words")]
use crate::law::words::{Reaction, Rule};
use crate::law::{Ack, Giver, Header as _, Needs, Network, Packet, Segment, Send, SenderLaw};
use crate::units::{Bytes, Duration, Rate, Ratio, Time, Wide, mul_div};
#[cfg(feature = "words")]
use alloc::{string::String, vec::Vec};

/// VNS's timers tick so often.
const TICK: u64 = 10_000_000;
/// The largest window that VNS paces, and the gap from which on it does.
const PACED_MAX: u64 = 64;
const GAP_MIN: Duration = Duration(100_000_000);
/// VNS: before the first sample.
const RTT_GUESS: Duration = Duration(100_000_000);
/// No place was echoed yet.
const NO_PLACE: u8 = u8::MAX;

/// Moment at which a level of overload cuts the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// The chain's first packet cuts, for the worst that it can mean; the others correct it upward (MP 3.3).
    #[default]
    AtOnce,
    /// The complete chain cuts.
    Complete,
}

words!(Cut { AtOnce = "at-once", Complete = "complete", });

/// Time for which a cut window stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// One interval of the links (VNS).
    #[default]
    Interval,
    /// One round trip (MP 2.2).
    RoundTrip,
}

words!(Hold { Interval = "interval", RoundTrip = "round-trip", });

/// Reaction to a lost packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// The window is halved once per window, as in Reno: a loss is congestion (VNS).
    #[default]
    Tcp,
    /// The window stays while chains tell the links' load; given up, a flow that ran longer ones halves it.
    Maintain,
}

words!(Loss { Tcp = "tcp", Maintain = "maintain", });

/// Configuration of MPCP's sender law, shared by all flows that run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SenderConfig {
    /// Packets of a chain; 1 is VCP.
    pub n: u32,
    /// True if the protocol's name fixes `n`.
    pub is_preset: bool,
    /// Encoding of a packet's place in its chain.
    pub order: Order,
    /// t_rho, the links' interval; 200 ms (VNS).
    pub interval: Duration,
    /// Packets that a window of ACKs adds; 1 (VNS), times (rtt / interval)^2 for equal rates (C-20).
    pub alpha: Ratio,
    /// Factor of VCP's window when a link is overloaded; 0.875 (VNS).
    pub beta: Ratio,
    /// Growth of VCP's window per interval while load is low; 0.0625 (VNS).
    pub xi: Ratio,
    /// kappa in the growth per interval xi = kappa (1 - sigma) / sigma, sigma a level's upper bound; 0.25 (VNS; C-22).
    pub kappa: Ratio,
    /// The most of the headroom 1 / sigma - 1 that growth takes per round trip; 0.5.
    pub eta: Ratio,
    /// Largest rtt / interval of multiplicative growth; 2.5 (VNS).
    pub exponent_max: Ratio,
    /// Round trip time as which additive growth counts longer ones; 500 ms (C-20).
    pub rtt_max: Duration,
    /// Moment at which a level of overload cuts the window.
    pub cut: Cut,
    /// Time for which a cut window stays.
    pub hold: Hold,
    /// Reaction to a lost packet.
    pub loss: Loss,
    /// True to pace small windows (VNS).
    pub pacing: bool,
    /// True to pace all windows (ours): a window sent as a burst is load in one interval and none in the next, where
    /// the round trip is longer than the interval.
    pub smooth: bool,
    /// Echoes of one type in a row, 3 (MP 3.4), after which chains are given up for a while. With more than
    /// two packets: chains without a complete one, n + 1 (docs/design/protocols.md 7.4, assumed).
    pub strikes: u32,
    /// Round trips for which chains are given up, twice as many each time; 8.
    pub resume: u32,
    /// Number of the relapse with which chains are given up for good; 3.
    pub relapses: u32,
}

impl SenderConfig {
    /// Returns the defaults for chains of `n` packets.
    #[inline]
    pub const fn of(n: u32, is_preset: bool) -> Self {
        Self {
            n,
            is_preset,
            order: Order::of(n),
            interval: Duration(200_000_000),
            alpha: Ratio::ONE,
            beta: Ratio::ppm(875_000),
            xi: Ratio::ppm(62_500),
            kappa: Ratio::ppm(250_000),
            eta: Ratio::ppm(500_000),
            exponent_max: Ratio::ppm(2_500_000),
            rtt_max: Duration(500_000_000),
            cut: Cut::AtOnce,
            hold: Hold::Interval,
            loss: Loss::Tcp,
            pacing: true,
            smooth: false,
            strikes: if n > 2 { n.saturating_add(1) } else { 3 },
            resume: 8,
            relapses: 3,
        }
    }

    #[inline]
    pub(super) fn digits(&self) -> u8 {
        self.n.clamp(1, DIGITS_MAX) as u8
    }
}

impl Settings for SenderConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        let is_vcp = self.is_preset && self.n == 1;
        if !self.is_preset {
            tell("n", "Packets of a chain, 1 to 8; 2 (MP).", Field::Number(&mut self.n, DIGITS_MAX));
        }
        if !is_vcp {
            tell(
                "order",
                "How a packet's place in its chain is told; swap (MP 3.2), above two packets checksum (MP 5).",
                Field::Word(&mut self.order),
            );
        }
        tell("interval", "The links' interval; 200 ms (VNS).", Field::Span(&mut self.interval));
        tell(
            "alpha",
            "Additive growth in packets; 1 (VNS), times (rtt / interval)^2.",
            Field::Factor(&mut self.alpha),
        );
        tell("beta", "VCP: factor of a cut; 0.875 (VNS).", Field::Factor(&mut self.beta));
        tell("xi", "VCP: growth per interval at low load; 0.0625 (VNS).", Field::Factor(&mut self.xi));
        if !is_vcp {
            tell(
                "kappa",
                "Growth per interval by the bound s of a level is kappa (1 - s) / s; 0.25 (VNS).",
                Field::Factor(&mut self.kappa),
            );
            tell(
                "eta",
                "The most of the headroom 1 / s - 1 that a round trip takes; 0.5 (A-16).",
                Field::Factor(&mut self.eta),
            );
        }
        tell(
            "exponent_max",
            "The largest rtt / interval of multiplicative growth; 2.5 (VNS).",
            Field::Factor(&mut self.exponent_max),
        );
        tell(
            "rtt_max",
            "Additive growth counts a longer round trip as this; 500 ms (C-20).",
            Field::Span(&mut self.rtt_max),
        );
        if !is_vcp {
            tell(
                "cut",
                "When a window is cut: at-once, with a chain's first packet (MP 3.3), or when it is complete.",
                Field::Word(&mut self.cut),
            );
        }
        tell(
            "hold",
            "For how long a cut window stays: interval (VNS) or round-trip (MP 2.2).",
            Field::Word(&mut self.hold),
        );
        tell(
            "loss",
            "What a loss does: tcp, it halves the window (VNS), or maintain, nothing unless chains are given up.",
            Field::Word(&mut self.loss),
        );
        tell(
            "pacing",
            "Pace windows up to 64 packets with gaps above 100 ms; true (VNS).",
            Field::Switch(&mut self.pacing),
        );
        tell("smooth", "Pace every window over its round trip; false.", Field::Switch(&mut self.smooth));
        if !is_vcp {
            tell(
                "strikes",
                "Echoes of one type in a row until chains are given up; 3 (MP 3.4). n > 2: incomplete chains; n + 1.",
                Field::Count(&mut self.strikes),
            );
            tell(
                "resume",
                "Round trips until chains are tried again, doubled each time; 8 (A-17).",
                Field::Count(&mut self.resume),
            );
            tell(
                "relapses",
                "Having given up so often again, it stays VCP; 3 (A-17).",
                Field::Count(&mut self.relapses),
            );
        }
    }

    #[cfg(feature = "words")]
    fn settle(&mut self, is_written: &dyn Fn(&str) -> bool) {
        super::words::settle(self.n, &mut self.order, is_written);
        if !is_written("strikes") {
            self.strikes = Self::of(self.n, self.is_preset).strikes;
        }
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        super::words::check_sender(self, tell);
    }
}

/// Load and mode that a flow acts on, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Load level that the flow acts on.
    pub level: Level,
    /// True while the flow runs VCP although its chains are longer.
    pub is_downgraded: bool,
    /// Times that the flow fell back to VCP.
    pub downgrades: u8,
    /// True if somebody clears the codes, so that the flow runs NewReno.
    pub is_standard: bool,
    /// NewReno's slow-start threshold; `None`: there is none yet.
    pub ssthresh: Option<Bytes>,
    /// Time until which a cut window stays; zero: none was cut.
    pub frozen_until: Time,
}

impl State {
    /// Returns true once the last cut has shown its effect, a round trip after the hold; until then there is no other.
    #[inline]
    pub fn is_settled(&self, now: Time, srtt: Duration) -> bool {
        is_settled(self.frozen_until, now, round_trip(srtt))
    }
}

#[inline(always)]
fn is_settled(frozen_until: Time, now: Time, rtt: Duration) -> bool {
    now >= frozen_until + rtt || frozen_until == Time::ZERO
}

#[inline(always)]
fn round_trip(srtt: Duration) -> Duration {
    if srtt.0 > 0 { srtt } else { RTT_GUESS }
}

/// MPCP's window of one connection. Windows are bytes with 16 binary places.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    mss: u64,
    cwnd: u64,
    /// For NewReno.
    ssthresh: u64,
    /// Growth that the present chain has added, and for how much acknowledged data.
    gained: u64,
    acked: u64,
    /// The window that the present chain has cut; 0: it has not.
    before: u64,
    /// ln (1 + xi) of the bound `ln_of`.
    ln: u64,
    frozen_until: Time,
    /// Downgraded: until when. Otherwise: equal types in a row count from then on.
    until: Time,
    level: Level,
    ln_of: u32,
    /// Place of the next packet.
    place: u8,
    /// Place of the digit that the present chain needs next; 0: it is complete or broken.
    expected: u8,
    /// Place that was echoed last.
    echoed: u8,
    /// Echoes of one type in a row; with more than two packets, chains that began since one was complete.
    run: u32,
    /// Times that overload has lowered the window.
    cuts: u32,
    downgrades: u8,
    is_downgraded: bool,
    is_standard: bool,
}

impl Sender {
    /// Creates the state of a new connection, for which load is low (MP 3.3).
    #[inline(always)]
    pub fn new(config: &SenderConfig, mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.min(SEGMENT_MAX).max(Bytes(1));
        Self {
            mss: with_places(mss),
            cwnd: with_places(initial_window.max(mss)),
            ssthresh: u64::MAX,
            gained: 0,
            acked: 0,
            before: 0,
            ln: 0,
            frozen_until: Time::ZERO,
            until: Time::ZERO,
            level: Level::of(0, config.n.max(1)),
            ln_of: 0,
            place: 0,
            expected: 0,
            echoed: NO_PLACE,
            run: 0,
            cuts: 0,
            downgrades: 0,
            is_downgraded: false,
            is_standard: false,
        }
    }

    /// Returns the load and the mode that the flow acts on.
    #[inline]
    pub fn state(&self) -> State {
        State {
            level: self.level,
            is_downgraded: self.is_downgraded,
            downgrades: self.downgrades,
            is_standard: self.is_standard,
            ssthresh: (self.ssthresh < u64::MAX).then_some(Bytes(self.ssthresh >> PLACES)),
            frozen_until: self.frozen_until,
        }
    }

    /// Returns the place of a packet that is about to leave. Retransmissions take the next one too (MP 3.4).
    #[inline]
    pub fn next_place(&mut self, config: &SenderConfig, now: Time, srtt: Duration) -> u8 {
        self.resume(now, srtt);
        if self.is_downgraded {
            return 0; // C-23: forced, as the natural order may be either
        }
        let place = self.place;
        self.place = if place + 1 < config.digits() { place + 1 } else { 0 };
        place
    }

    /// Back to chains, if it is time.
    #[inline]
    fn resume(&mut self, now: Time, srtt: Duration) {
        if self.is_downgraded && now >= self.until {
            self.is_downgraded = false;
            (self.place, self.run, self.echoed, self.expected) = (0, 0, NO_PLACE, 0);
            // What is echoed now was sent before.
            self.until = now + srtt + srtt;
        }
    }

    #[inline]
    fn downgrade(&mut self, config: &SenderConfig, now: Time, srtt: Duration) {
        let pause = mul_div(srtt.0.max(1), config.resume as u64, 1);
        let doubled = Wide::shifted(pause, self.downgrades.min(63) as u32).to_u64();
        self.downgrades = self.downgrades.saturating_add(1);
        let is_final = self.downgrades as u32 > config.relapses;
        self.until = if is_final { Time::NEVER } else { now + Duration(doubled) };
        self.is_downgraded = true;
    }

    /// The next packet whose code is echoed belongs to no chain before.
    #[inline]
    fn begin(&mut self, level: Level, expected: u8) {
        (self.level, self.expected) = (level, expected);
        (self.gained, self.acked, self.before) = (0, 0, 0);
    }

    /// Takes in the code of a packet (MP 3.3, 3.4; A-16).
    // `always`: a BPF function has five arguments.
    #[inline(always)]
    fn take(&mut self, config: &SenderConfig, now: Time, srtt: Duration, index: u8, code: u8) {
        let digits = config.digits();
        if digits == 1 || self.is_downgraded {
            // What is echoed of chains that were on the way is no zone.
            if index == 0 {
                self.begin(Level::of_zone(code), 0);
            }
            return;
        }
        if index > 0 {
            self.until = Time::ZERO;
        }
        let counts = now >= self.until;
        let repeats = index == self.echoed;
        self.echoed = index;
        self.run = if !counts {
            0
        } else if digits == 2 {
            if repeats { self.run.saturating_add(1) } else { 1 }
        } else {
            self.run.saturating_add((index == 0) as u32)
        };
        if index == 0 {
            // Two in a row: the higher one. One at a time while none but such can come.
            let zone = if repeats && counts { code.max(self.level.zone()) } else { code };
            self.begin(Level::of_zone(zone), 1);
        } else if index == self.expected {
            self.level = self.level.then(code);
            self.expected = if index + 1 < digits { index + 1 } else { 0 };
            if self.expected == 0 && digits > 2 {
                self.run = 0;
            }
        } else {
            // A gap: what the chain has said, with 11 for the rest. Behind a complete chain: its zone.
            let level =
                if self.expected > 0 { self.level } else { Level::of_zone(self.level.zone().max(LOW)) };
            self.begin(level, 0);
        }
        // Of the chain that begins nothing is known yet.
        let most = if digits == 2 { config.strikes } else { config.strikes.saturating_add(1) };
        if self.run >= most {
            self.downgrade(config, now, srtt);
            self.begin(Level::of_zone(self.level.zone()), 0);
        }
    }

    /// Counts so many echoes of first packets before the one that an ACK tells.
    #[inline(always)]
    pub(super) fn note_firsts(&mut self, config: &SenderConfig, now: Time, more: u32) {
        if more > 0 && !self.is_downgraded && now >= self.until {
            // Of two, echoes of one type in a row; of more, chains since a complete one.
            let run = if self.echoed == 0 || config.digits() > 2 { self.run } else { 0 };
            (self.run, self.echoed) = (run.saturating_add(more), 0);
        }
    }

    /// Bytes of a full packet.
    #[inline(always)]
    pub(super) const fn segment(&self) -> Bytes {
        Bytes(self.mss >> PLACES)
    }

    /// Acts on what is known.
    #[inline(always)]
    fn act(&mut self, config: &SenderConfig, now: Time, ack: &Ack, rtt: Duration) {
        let is_vcp = config.digits() == 1 || self.is_downgraded;
        if now < self.frozen_until {
            if self.before > 0 {
                self.cwnd = self.level.factor().of(self.before).max(self.mss); // finer (MP 3.3)
            }
            return;
        }
        let zone = self.level.zone();
        if zone == OVERLOAD && is_settled(self.frozen_until, now, rtt) {
            if config.cut == Cut::Complete && !is_vcp && self.level.known() < config.digits() {
                return;
            }
            let factor = if is_vcp { config.beta } else { self.level.factor() };
            let before = self.cwnd;
            self.before = if is_vcp { 0 } else { before };
            self.cwnd = factor.of(before).max(self.mss);
            self.cuts = self.cuts.wrapping_add((self.cwnd < before).into());
            let hold = match config.hold {
                Hold::Interval => Duration(mul_div(config.interval.0.div_ceil(TICK), TICK, 1)),
                Hold::RoundTrip => rtt,
            };
            self.frozen_until = now + hold;
            return;
        }
        if ack.acked.0 == 0 || !ack.is_window_limited {
            return;
        }
        let acked = with_places(ack.acked);
        if zone < HIGH || (!is_vcp && zone == HIGH) {
            self.acked = self.acked.saturating_add(acked);
            let gained = mul_div(self.acked, self.multiplier(config, is_vcp, rtt), ONE);
            self.cwnd = (self.cwnd.saturating_sub(self.gained)).saturating_add(gained).max(self.mss);
            self.gained = gained;
        }
        if zone >= HIGH || !is_vcp {
            self.cwnd = self.cwnd.saturating_add(self.addition(config, acked, rtt));
        }
    }

    /// (1 + xi)^(rtt / t_rho) - 1, per acknowledged packet; for levels at most eta (1 / sigma - 1).
    #[inline]
    fn multiplier(&mut self, config: &SenderConfig, is_vcp: bool, rtt: Duration) -> u64 {
        // The upper bound: MP grows "conservatively". VCP's is no bound of a level.
        let sigma = if is_vcp { u32::MAX } else { self.level.to };
        if sigma == Ratio::ONE.0 {
            return 0;
        }
        let headroom = mul_div(ONE, Ratio::ONE.0 as u64, sigma.max(1) as u64).saturating_sub(ONE);
        if self.ln_of != sigma {
            let xi = if is_vcp { growth::fraction(config.xi) } else { config.kappa.of(headroom) };
            (self.ln, self.ln_of) = (growth::ln_1p(xi), sigma);
        }
        let exponent = mul_div(rtt.0, ONE, config.interval.0).min(growth::fraction(config.exponent_max));
        let most = if is_vcp { u64::MAX } else { config.eta.of(headroom) };
        growth::exp_m1(mul_div(self.ln, exponent, ONE)).min(most)
    }

    /// alpha (rtt / t_rho)^2 packets per window.
    #[inline]
    fn addition(&self, config: &SenderConfig, acked: u64, rtt: Duration) -> u64 {
        let ratio = mul_div(rtt.min(config.rtt_max).0, ONE, config.interval.0);
        let alpha = config.alpha.of(mul_div(ratio, ratio, ONE));
        mul_div(mul_div(acked, self.mss, self.cwnd), alpha, ONE)
    }

    /// Congestion avoidance and slow start (RFC 5681), for want of codes.
    #[inline]
    fn grow_as_newreno(&mut self, ack: &Ack) {
        if !ack.is_window_limited {
            return;
        }
        let acked = with_places(ack.acked);
        if self.cwnd < self.ssthresh {
            self.cwnd = self.cwnd.saturating_add(acked.min(self.mss));
        } else if !ack.in_recovery {
            self.cwnd = self.cwnd.saturating_add(mul_div(acked, self.mss, self.cwnd));
        }
    }

    /// True while losses leave the window. Chains are given up where too many of their packets are lost (MP 3.4):
    /// from then on a loss is what VCP takes it for.
    #[inline(always)]
    fn maintains(&self, config: &SenderConfig) -> bool {
        config.loss == Loss::Maintain && !self.is_standard && !self.is_downgraded
    }

    #[inline]
    fn half(&self, flight: Bytes) -> u64 {
        (with_places(flight) / 2).max(self.mss.saturating_mul(2))
    }
}

impl SenderLaw for Sender {
    type Config = SenderConfig;
    type Echo = super::Echo;

    #[inline]
    fn name(config: &SenderConfig) -> &'static str {
        super::name_of(config.n, config.is_preset)
    }

    #[inline(always)]
    fn needs(config: &SenderConfig) -> Needs {
        let withstands_loss = config.loss == Loss::Maintain;
        let writes_segments = config.n > 1;
        Needs {
            network: Some(Network {
                giver: Giver::Law("mpcp"),
                at_bottleneck: true,
                without: "every code stays that of low load, so the window grows until packets are lost",
                marked: match config.n {
                    1 => {
                        "a marking queue takes the codes of low and high load, 01 and 10, for ECT; the flow reads CE, 11, as overload"
                    }
                    _ => {
                        "a marking queue takes the codes of low and high load, 01 and 10, for ECT; the flow reads CE, 11, as \
                         overload, or as the highest digit"
                    }
                },
                unacknowledged: "the code that it echoes; the next one echoes a newer code",
            }),
            initial_window: Some(1),
            segments: true,
            writes_segments,
            owns_ecn: true,
            // Of two, every echo would be of a chain's second one.
            each_acknowledged: config.n > 1,
            withstands_loss,
            ..Needs::NONE
        }
    }

    #[inline(always)]
    fn start(config: &SenderConfig, mss: Bytes, initial_window: Bytes) -> Self {
        Self::new(config, mss, initial_window)
    }

    #[inline]
    fn on_ack(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
        let rtt = round_trip(ack.srtt);
        self.resume(now, rtt);
        let echoed = Echoed::from(ack.reply);
        let index = if config.digits() == 1 { Some(0) } else { echoed.index() };
        match (echoed.code(), index) {
            // Nobody sends 00: a path that clears codes has no say (5.5).
            (Some(0), _) => self.is_standard = true,
            (Some(code), Some(index)) => self.take(config, now, rtt, index, code),
            _ => {}
        }
        if self.is_standard {
            self.grow_as_newreno(ack);
        } else if !ack.in_recovery || self.maintains(config) {
            self.act(config, now, ack, rtt);
        }
    }

    /// Cuts the window as [`Loss`] says. Half of the flight, as Reno (VNS); NewReno's rules, where codes are cleared.
    #[inline]
    fn on_loss(&mut self, config: &SenderConfig, _now: Time, flight: Bytes) {
        if self.maintains(config) {
            return;
        }
        self.ssthresh = self.half(flight);
        self.cwnd = self.ssthresh;
        self.begin(self.level, 0);
    }

    /// One segment (VNS).
    #[inline]
    fn on_timeout(&mut self, _config: &SenderConfig, _now: Time, flight: Bytes, is_first: bool) {
        if is_first {
            self.ssthresh = self.half(flight);
        }
        self.cwnd = self.mss;
        self.begin(self.level, 0);
    }

    /// Back to the initial window at most (RFC 5681 §4.1).
    #[inline]
    fn on_restart(&mut self, _config: &SenderConfig, _now: Time, initial_window: Bytes) {
        self.cwnd = self.cwnd.min(with_places(initial_window).max(self.mss));
        self.begin(self.level, 0);
    }

    #[inline]
    fn on_send(&mut self, config: &SenderConfig, now: Time, send: &Send, packet: &mut impl Packet) {
        let place = self.next_place(config, now, send.srtt);
        let length = packet.size().0 as u16;
        // In its place, so that what the order leaves is not written again.
        if config.n > 1
            && let Some(words) = packet.words_mut(Segment::TAG)
        {
            let mut segment = Segment { length, ..Segment::read(words) };
            if !config.order.write(&mut segment, place) {
                config.order.write(&mut segment, 0); // a chain begins anew
            }
            segment.write(words);
        }
        packet.set_ecn(LOW);
    }

    #[cfg(feature = "words")]
    fn misreads(config: &SenderConfig, link: &Links) -> Option<String> {
        super::words::misreads(config, link.part()?)
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("load_bound", self.level.to as i64, 1_000_000);
        tell("downgrades", self.downgrades as i64, 1);
    }

    #[inline]
    fn window(&self) -> Bytes {
        Bytes(self.cwnd >> PLACES)
    }

    #[inline(always)]
    fn cuts(&self) -> u32 {
        self.cuts
    }

    /// VNS: windows up to 64 packets, if a power of two of them per round trip leaves gaps above 100 ms. Smooth: the
    /// window per round trip.
    #[inline]
    fn pacing_rate(&self, config: &SenderConfig, srtt: Duration) -> Option<Rate> {
        let packets = self.cwnd.div_ceil(self.mss.max(1));
        if config.smooth && srtt.0 > 0 {
            return Some(self.window().per(srtt));
        }
        if !config.pacing || packets <= 1 || packets > PACED_MAX {
            return None;
        }
        let gap = Duration(srtt.0 >> (64 - (packets - 1).leading_zeros()));
        (gap > GAP_MIN).then(|| Bytes(self.mss >> PLACES).per(gap))
    }

    #[cfg(feature = "words")]
    fn explain(config: &SenderConfig, states: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        super::words::explain(config, states, seen, rules);
    }
}

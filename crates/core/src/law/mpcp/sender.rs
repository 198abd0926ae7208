//! Sender law of MPCP: reads the load from echoed codes, and moves the window (VNS; MP 3.3, 3.4).

use super::echo::Echoed;
use super::growth::{self, ONE};
use super::level::{DIGITS_MAX, HIGH, LOW, Level, OVERLOAD};
use super::settings::{Cut, Hold, Loss, Repair, SenderConfig};
use crate::law::places::{PLACES, SEGMENT_MAX, with_places};
use crate::law::{Ack, Giver, Header as _, Needs, Network, Packet, Segment, Send, SenderLaw};
use crate::units::{Bytes, Duration, Rate, Ratio, Time, Wide, mul_div};

/// VNS's timers tick so often.
const TICK: u64 = 10_000_000;
/// The largest window that VNS paces, and the gap from which on it does.
const PACED_MAX: u64 = 64;
const GAP_MIN: Duration = Duration(100_000_000);
/// VNS: before the first sample.
const RTT_GUESS: Duration = Duration(100_000_000);
/// No place was echoed yet.
const NO_PLACE: u8 = u8::MAX;

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
    /// True if the last loss proved to be none.
    pub is_false_alarm: bool,
    /// True while the flow takes its chains for zones of VCP.
    pub has_zones: bool,
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
    /// A code other than 00 was echoed.
    was_answered: bool,
    /// Least round trip time, us; 0: none was measured.
    least_rtt: u32,
    /// Window before the last loss; 0: there was none, or it is known what it was.
    prior: u64,
    /// Earliest time at which an ACK can answer the retransmission of that loss.
    alarm_until: Time,
    /// Digits of the last complete chain.
    digits: u16,
    /// Complete chains in a row with these digits, 3 at most.
    same: u8,
    is_false_alarm: bool,
    has_zones: bool,
    /// Some link on the path tells more than zones.
    has_detail: bool,
}

/// Equal chains in a row whose digits differ, which no link of VCP makes: its zone changes within one chain at most.
const DETAIL: u8 = 3;

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
            was_answered: false,
            least_rtt: 0,
            prior: 0,
            alarm_until: Time::ZERO,
            digits: 0,
            same: 0,
            is_false_alarm: false,
            has_zones: false,
            has_detail: false,
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
            is_false_alarm: self.is_false_alarm,
            has_zones: self.has_zones,
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
            if self.expected == 0 {
                if digits > 2 {
                    self.run = 0;
                }
                if config.zones {
                    self.compare();
                }
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

    /// Finds out from a complete chain whether links tell levels or zones.
    #[inline]
    fn compare(&mut self) {
        let (digits, zone) = (self.level.prefix(DIGITS_MAX as u8), self.level.zone());
        self.same = if digits != self.digits { 1 } else { DETAIL.min(self.same + 1) };
        self.digits = digits;
        let is_flat = digits == (zone as u16 * 0x5555) & (((1u32 << (2 * self.level.known())) - 1) as u16);
        if !is_flat && self.same == DETAIL {
            (self.has_detail, self.has_zones) = (true, false);
        } else if is_flat && zone > LOW && !self.has_detail {
            self.has_zones = true;
        }
        if self.has_zones {
            self.level = Level::of_zone(zone);
        }
    }

    /// Gives the window back that a loss has halved, if the packet was only late: an ACK came before the retransmission
    /// can have arrived. Returns true if it does.
    #[inline]
    fn undo(&mut self, now: Time, ack: &Ack) -> bool {
        let micros = (ack.rtt.0 / 1000).min(u32::MAX as u64) as u32;
        if micros > 0 && (self.least_rtt == 0 || micros < self.least_rtt) {
            self.least_rtt = micros;
        }
        if self.prior == 0 || ack.acked.0 == 0 {
            return false;
        }
        let was_late = now < self.alarm_until;
        if was_late {
            self.cwnd = self.cwnd.max(self.prior);
            self.is_false_alarm = true;
        }
        self.prior = 0;
        was_late
    }

    /// Takes the last reduction of the window for good: it was not for a loss that could prove to be none.
    #[inline]
    pub const fn settle(&mut self) {
        self.prior = 0;
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
        let is_vcp = config.digits() == 1 || self.is_downgraded || self.has_zones;
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

    /// Runs NewReno from now on. A window that codes have moved is its threshold: slow start would double it.
    #[inline]
    fn be_standard(&mut self) {
        if self.was_answered && !self.is_standard {
            self.ssthresh = self.ssthresh.min(self.cwnd.max(self.mss.saturating_mul(2)));
        }
        self.is_standard = true;
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
    /// from then on a loss is what VCP takes it for, unless all are ignored.
    #[inline(always)]
    fn maintains(&self, config: &SenderConfig) -> bool {
        !self.is_standard
            && match config.loss {
                Loss::Tcp => false,
                Loss::Maintain => !self.is_downgraded,
                Loss::Ignore => true,
            }
    }

    /// True if the window must not grow with this acknowledgment, because a loss is being repaired.
    #[inline(always)]
    fn is_held(&self, config: &SenderConfig, ack: &Ack) -> bool {
        let is_repairing = ack.in_recovery || config.repair == Repair::Hold && ack.is_repairing;
        is_repairing && !self.is_false_alarm && !self.maintains(config)
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
        let withstands_loss = config.loss != Loss::Tcp;
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
        let is_undone = self.undo(now, ack);
        let echoed = Echoed::from(ack.reply);
        let index = if config.digits() == 1 { Some(0) } else { echoed.index() };
        match (echoed.code(), index) {
            // Senders of codes never send 00, so the path clears them (docs/design/protocols.md 5.5).
            (Some(0), _) => self.be_standard(),
            (Some(code), Some(index)) if !self.is_standard => {
                self.was_answered = true;
                self.take(config, now, rtt, index, code);
            }
            _ => {}
        }
        if self.is_standard {
            self.grow_as_newreno(ack);
        } else if !is_undone && !self.is_held(config, ack) {
            self.act(config, now, ack, rtt);
        }
    }

    /// Cuts the window as [`Loss`] says. Half of the flight, as Reno (VNS); NewReno's rules, where codes are cleared.
    #[inline]
    fn on_loss(&mut self, config: &SenderConfig, now: Time, flight: Bytes) {
        if self.maintains(config) {
            return;
        }
        self.is_false_alarm = false;
        if config.undo && !self.is_standard {
            self.prior = self.cwnd;
            self.alarm_until = now + Duration(self.least_rtt as u64 * 1000);
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
        (self.prior, self.is_false_alarm) = (0, false);
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
        if self.is_standard {
            return; // the packet is NewReno's: not ECN-capable, with numbers as TCP has them
        }
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
        if self.is_standard {
            return None;
        }
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
}

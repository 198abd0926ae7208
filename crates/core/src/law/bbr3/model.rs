//! Model and state machine of BBR version 3.

use super::Config;
use crate::law::{Ack, Delivery, Needs, SenderLaw};
use crate::units::{Bytes, Duration, Rate, Ratio, SECOND, Time, mul_div};

/// BBR.MaxBwFilterLen, probes.
const PROBES: usize = 2;
/// BBR.ExtraAckedFilterLen, round trips.
const ROUNDS: u8 = 10;
/// BBR.MinRTTFilterLen.
const MIN_RTT_WINDOW: Duration = Duration(10 * SECOND);
/// BBR.ProbeRTTDuration.
const PROBE_RTT: Duration = Duration(SECOND / 5);
/// BBR.MinPipeCwnd, segments.
const MIN_PIPE: u64 = 4;
/// BBR.StartupFullLossCnt: acknowledgments with losses that make a round trip of Startup a bad one.
const STARTUP_LOSSES: u8 = 6;
/// Round trips without a quarter more after which bandwidth has been found.
const PLATEAU: u8 = 3;
/// The most round trips between two probes, in which Reno fills a pipe of 25 Mbit/s and 30 ms.
const RENO_ROUNDS: u64 = 63;
/// Doublings of the slope of a probe.
const SLOPE_MAX: u8 = 30;
/// Round trips after which Drain ends whatever is in flight.
const DRAIN_ROUNDS: u8 = 3;
/// Rates are kept in units of so many B/s, up to 275 Gbit/s, and times in units of so many ns, up to a minute.
const RATE_UNIT: u64 = 8;
const SPAN_UNIT: u64 = 16;
/// No bound.
const NONE: u64 = u64::MAX;

const STARTUP_PACE: Ratio = Ratio::ppm(2_772_589);
const TWO: Ratio = Ratio::ppm(2_000_000);
const HALF: Ratio = Ratio::ppm(500_000);
const DOWN_PACE: Ratio = Ratio::ppm(900_000);
const UP_PACE: Ratio = Ratio::ppm(1_250_000);
const UP_WINDOW: Ratio = Ratio::ppm(2_250_000);
/// 1 - BBR.PacingMarginPercent.
const MARGIN: Ratio = Ratio::ppm(990_000);
/// 1 - BBR.Headroom.
const ROOM: Ratio = Ratio::ppm(850_000);

/// State of the machine, draft §5.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The rate doubles each round trip.
    Startup,
    /// Half the rate until the queue of Startup is gone.
    Drain,
    /// ProbeBW_DOWN: below the rate until the queue of a probe is gone.
    Down,
    /// ProbeBW_CRUISE: at the rate, with room for others.
    Cruise,
    /// ProbeBW_REFILL: a round trip at the rate, so that a probe begins with a full pipe.
    Refill,
    /// ProbeBW_UP: above the rate.
    Up,
    /// Little in flight, so that the round trip time without a queue is seen.
    ProbeRtt,
}

/// Part of a probe that the samples come from: BBR.ack_phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// A number of 32 bits that saturates: amounts in bytes, rates in [`RATE_UNIT`]; the largest is none or no bound.
#[inline(always)]
fn small(value: u64) -> u32 {
    if value < u32::MAX as u64 { value as u32 } else { u32::MAX }
}

#[inline(always)]
fn small_rate(rate: Rate) -> u32 {
    small(rate.0 / RATE_UNIT)
}

#[inline(always)]
fn rate(value: u32) -> Rate {
    Rate(value as u64 * RATE_UNIT)
}

#[inline(always)]
fn small_span(span: Duration) -> u32 {
    small(span.0.div_ceil(SPAN_UNIT))
}

#[inline(always)]
fn span(value: u32) -> Duration {
    Duration(value as u64 * SPAN_UNIT)
}

/// Returns the number that [`small`] was given.
#[inline(always)]
fn large(value: u32) -> u64 {
    if value == u32::MAX { NONE } else { value as u64 }
}

/// State of BBR version 3 for one connection.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    min_rtt_stamp: Time,
    probe_rtt_stamp: Time,
    /// When the cycle of probes began; in ProbeRTT when it may end, [`Time::ZERO`]: it waits for the flight to shrink.
    stamp: Time,
    extra_since: Time,
    /// Round trip times in [`SPAN_UNIT`]; 0: unknown.
    min_rtt: u32,
    probe_rtt_min: u32,
    mss: u32,
    cwnd: u32,
    prior_cwnd: u32,
    initial_window: u32,
    /// Rates in [`RATE_UNIT`]: BBR.pacing_rate, 0: no sample yet; BBR.max_bw's filter, the best of this probe and of the one
    /// before; BBR.bw_shortterm; BBR.bw_latest; BBR.full_bw.
    pacing_rate: u32,
    bandwidths: [u32; PROBES],
    bw_short: u32,
    bw_latest: u32,
    full_bw: u32,
    inflight_short: u32,
    inflight_long: u32,
    inflight_latest: u32,
    /// Segments delivered when the round trips end, modulo 2^32.
    next_round: u32,
    loss_round: u32,
    /// BBR.probe_up_cnt, bytes acknowledged for each segment by which the bound grows; BBR.bw_probe_up_acks.
    slope: u32,
    up_acked: u32,
    /// BBR.extra_acked's filter, and the data since it was measured.
    extra: [u32; 2],
    extra_delivered: u32,
    random: u32,
    /// Losses that lowered the window: by its bounds, or at the begin of a recovery.
    cuts: u32,
    /// Random part of the wait until the next probe, 2^-16 s.
    probe_wait: u16,
    flags: u16,
    rounds_since_probe: u8,
    drain_rounds: u8,
    extra_rounds: u8,
    /// Acknowledgments with losses in this round trip.
    loss_events: u8,
    full_bw_count: u8,
    up_rounds: u8,
    state: State,
    phase: Phase,
}

/// As version 1: no law makes the flows of another larger.
const _: () = assert!(size_of::<Bbr3>() <= 144);

/// Flags of [`Bbr3`].
mod flag {
    pub(super) const FULL_NOW: u16 = 1;
    /// BBR.full_bw_reached.
    pub(super) const FILLED: u16 = 1 << 1;
    pub(super) const ROUND_START: u16 = 1 << 2;
    pub(super) const LOSS_ROUND_START: u16 = 1 << 3;
    /// Samples of a probe may find that it was too much.
    pub(super) const PROBED: u16 = 1 << 4;
    pub(super) const WAS_TOO_HIGH: u16 = 1 << 5;
    pub(super) const STOPPED_CAREFUL: u16 = 1 << 6;
    pub(super) const PROBE_RTT_ROUND_DONE: u16 = 1 << 7;
    pub(super) const PACKET_CONSERVATION: u16 = 1 << 8;
    pub(super) const IDLE_RESTART: u16 = 1 << 9;
    pub(super) const IN_RECOVERY: u16 = 1 << 10;
    pub(super) const WINDOW_LIMITED: u16 = 1 << 11;
}

impl Bbr3 {
    /// Creates the state of a new connection, in Startup. `mss` counts the whole IP packet.
    #[inline(always)]
    pub fn new(mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.0.max(1).min(u16::MAX as u64);
        let initial = small(initial_window.0.max(mss));
        Self {
            min_rtt_stamp: Time::ZERO,
            probe_rtt_stamp: Time::ZERO,
            stamp: Time::ZERO,
            extra_since: Time::ZERO,
            min_rtt: 0,
            probe_rtt_min: 0,
            mss: mss as u32,
            cwnd: initial,
            prior_cwnd: 0,
            initial_window: initial,
            pacing_rate: 0,
            bandwidths: [0; PROBES],
            cuts: 0,
            bw_short: u32::MAX,
            bw_latest: 0,
            full_bw: 0,
            inflight_short: u32::MAX,
            inflight_long: u32::MAX,
            inflight_latest: 0,
            next_round: 0,
            loss_round: 0,
            slope: u32::MAX,
            up_acked: 0,
            extra: [0; 2],
            extra_delivered: 0,
            random: 0,
            probe_wait: 0,
            flags: 0,
            rounds_since_probe: 0,
            drain_rounds: 0,
            extra_rounds: 0,
            loss_events: 0,
            full_bw_count: 0,
            up_rounds: 0,
            state: State::Startup,
            phase: Phase::Init,
        }
    }

    #[inline(always)]
    fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    #[inline(always)]
    fn set(&mut self, flag: u16, value: bool) {
        self.flags = if value { self.flags | flag } else { self.flags & !flag };
    }

    /// Number of segments, modulo 2^32.
    #[inline(always)]
    fn segments(&self, data: Bytes) -> u32 {
        (data.0 / u64::from(self.mss.max(1))) as u32
    }

    /// Returns the state that the connection is in.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns BBR.max_bw, the best delivery rate of the last two probes.
    #[inline]
    pub fn max_bw(&self) -> Rate {
        let [now, before] = self.bandwidths;
        rate(now.max(before))
    }

    /// Returns BBR.min_rtt; zero while unknown.
    #[inline]
    pub fn min_rtt(&self) -> Duration {
        span(self.min_rtt)
    }

    /// Returns BBR.bw: the best rate, within the bound of losses of late.
    #[inline]
    pub fn bandwidth(&self) -> Rate {
        let [now, before] = self.bandwidths;
        rate(now.max(before).min(self.bw_short))
    }

    /// Returns BBR.inflight_longterm, in bytes; `None`: no probe found a bound.
    #[inline]
    pub fn long_bound(&self) -> Option<Bytes> {
        if self.inflight_long == u32::MAX { None } else { Some(Bytes(self.inflight_long.into())) }
    }

    /// Returns BBR.bw_shortterm and BBR.inflight_shortterm; `None`: no losses of late.
    #[inline]
    pub fn short_bounds(&self) -> Option<(Rate, Bytes)> {
        let bounds = (rate(self.bw_short), Bytes(self.inflight_short.into()));
        if self.bw_short == u32::MAX { None } else { Some(bounds) }
    }

    /// Returns the long bound less room for others: a sixth or seventh, a segment at least, and four are left (VM7.3).
    #[inline]
    pub fn with_headroom(&self) -> u64 {
        let bound = large(self.inflight_long);
        if bound == NONE {
            return NONE;
        }
        let room = (bound - ROOM.of(bound)).max(self.mss.into());
        bound.saturating_sub(room).max(self.min_pipe())
    }

    #[inline]
    fn min_pipe(&self) -> u64 {
        MIN_PIPE * u64::from(self.mss)
    }

    #[inline]
    fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    #[inline]
    fn is_in_probe_bw(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    #[inline]
    fn pacing_gain(&self) -> Ratio {
        match self.state {
            State::Startup => STARTUP_PACE,
            State::Drain => HALF,
            State::Down => DOWN_PACE,
            State::Up => UP_PACE,
            State::Cruise | State::Refill | State::ProbeRtt => Ratio::ONE,
        }
    }

    #[inline]
    fn window_gain(&self) -> Ratio {
        match self.state {
            State::Up => UP_WINDOW,
            State::ProbeRtt => HALF,
            State::Startup | State::Drain | State::Down | State::Cruise | State::Refill => TWO,
        }
    }

    /// BBRBDPMultiple.
    #[inline]
    fn bdp(&self, rate: Rate, gain: Ratio) -> u64 {
        if self.min_rtt == 0 { self.initial_window.into() } else { gain.of(rate.over(self.min_rtt()).0) }
    }

    /// BBRQuantizationBudget: three quanta at least, and two packets more in UP, so that a pipe of few of them is probed.
    #[inline]
    fn quantized(&self, inflight: u64) -> u64 {
        let two = 2 * u64::from(self.mss);
        let quantum = (rate(self.pacing_rate).0 / 1000).min(65_536).max(two);
        let whole = inflight.max(3 * quantum).max(self.min_pipe());
        if self.state == State::Up { whole.saturating_add(two) } else { whole }
    }

    /// BBRInflight of max_bw.
    #[inline]
    fn inflight(&self, gain: Ratio) -> u64 {
        self.quantized(self.bdp(self.max_bw(), gain))
    }

    /// BBRTargetInflight.
    #[inline]
    fn target(&self) -> u64 {
        self.bdp(self.bandwidth(), Ratio::ONE).min(self.cwnd.into())
    }

    #[inline]
    fn start_round(&mut self, delivery: &Delivery) {
        self.next_round = self.segments(delivery.total);
    }

    #[inline]
    fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count) = (0, 0);
        self.set(flag::FULL_NOW, false);
    }

    /// BBRUpdateLatestDeliverySignals, BBRUpdateMaxBw, BBRUpdateCongestionSignals: draft §5.5.
    #[inline]
    fn update_signals(&mut self, config: &Config, delivery: &Delivery, sample: u32) {
        let prior = self.segments(delivery.prior);
        let has_passed = |mark: u32| delivery.newly.0 > 0 && prior.wrapping_sub(mark) <= i32::MAX as u32;
        let (round_start, loss_round_start) = (has_passed(self.next_round), has_passed(self.loss_round));
        self.set(flag::ROUND_START, round_start);
        self.set(flag::LOSS_ROUND_START, loss_round_start);
        self.bw_latest = self.bw_latest.max(sample);
        self.inflight_latest = self.inflight_latest.max(small((delivery.total - delivery.prior).0));
        if loss_round_start {
            self.loss_round = self.segments(delivery.total);
        }
        if round_start {
            self.start_round(delivery);
            self.rounds_since_probe = self.rounds_since_probe.saturating_add(1);
            self.drain_rounds = self.drain_rounds.saturating_add(1);
        }
        let [newest, before] = self.bandwidths;
        if sample >= newest.max(before) || !delivery.is_app_limited {
            self.bandwidths = [newest.max(sample), before];
        }
        if delivery.lost.0 > 0 {
            self.loss_events = self.loss_events.saturating_add(1);
        }
        if loss_round_start && !self.is_probing_bw() && self.loss_events > 0 {
            // BBRInitLowerBounds, BBRLossLowerBounds.
            let [newest, before] = self.bandwidths;
            let bandwidth = if self.bw_short == u32::MAX { newest.max(before) } else { self.bw_short };
            let inflight = if self.inflight_short == u32::MAX { self.cwnd } else { self.inflight_short };
            self.bw_short = self.bw_latest.max(small(config.beta.of(bandwidth.into())));
            self.inflight_short = self.inflight_latest.max(small(config.beta.of(inflight.into())));
        }
    }

    /// BBRAdvanceLatestDeliverySignals, and the count of losses of the round trip that ended.
    #[inline]
    fn advance_signals(&mut self, delivery: &Delivery, sample: u32) {
        if self.is(flag::LOSS_ROUND_START) {
            self.bw_latest = sample;
            self.inflight_latest = small((delivery.total - delivery.prior).0);
            self.loss_events = 0;
        }
    }

    /// BBRUpdateACKAggregation: draft §5.5.9.
    #[inline]
    fn update_extra(&mut self, now: Time, newly: Bytes) {
        if self.is(flag::ROUND_START) {
            self.extra_rounds += 1;
            if self.extra_rounds >= ROUNDS / 2 {
                let [newest, _] = self.extra;
                (self.extra, self.extra_rounds) = ([0, newest], 0);
            }
        }
        let mut expected = self.bandwidth().over(now - self.extra_since).0;
        if u64::from(self.extra_delivered) <= expected {
            (self.extra_delivered, self.extra_since, expected) = (0, now, 0);
        }
        self.extra_delivered = self.extra_delivered.saturating_add(small(newly.0));
        let extra = u64::from(self.extra_delivered).saturating_sub(expected);
        let [newest, before] = self.extra;
        self.extra = [newest.max(small(extra).min(self.cwnd)), before];
    }

    /// BBRCheckFullBWReached: draft §5.3.1.2.
    #[inline]
    fn check_full_bw(&mut self, delivery: &Delivery, sample: u32) {
        // Without a sample there is nothing to judge by.
        if self.is(flag::FULL_NOW) || !self.is(flag::ROUND_START) || delivery.is_app_limited || sample == 0 {
            return;
        }
        if sample >= self.full_bw.saturating_add(self.full_bw / 4) {
            self.reset_full_bw();
            self.full_bw = sample;
            return;
        }
        self.full_bw_count += 1;
        if self.full_bw_count >= PLATEAU {
            self.set(flag::FULL_NOW | flag::FILLED, true);
        }
    }

    /// BBRCheckStartupHighLoss, BBRCheckStartupDone, BBRCheckDrainDone.
    #[inline]
    fn check_startup(&mut self, config: &Config, now: Time, delivery: &Delivery) {
        if self.state == State::Startup {
            let is_lossy = self.is(flag::LOSS_ROUND_START)
                && self.is(flag::IN_RECOVERY)
                && self.loss_events >= STARTUP_LOSSES
                && too_high(config, delivery.lost_since, delivery.sent_flight);
            if is_lossy && !self.is(flag::FILLED) {
                self.set(flag::FILLED, true);
                let pipe = self.bdp(self.max_bw(), Ratio::ONE);
                self.inflight_long = small(pipe).max(self.inflight_latest);
            }
            if self.is(flag::FILLED) {
                (self.state, self.drain_rounds) = (State::Drain, 0);
            }
        }
        if self.state == State::Drain
            && (delivery.flight.0 <= self.inflight(Ratio::ONE) || self.drain_rounds > DRAIN_ROUNDS)
        {
            self.start_down(now, delivery);
        }
    }

    /// BBRPickProbeWait.
    #[inline]
    fn draw(&mut self) -> u16 {
        // Knuth's linear congruential generator.
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.random >> 16) as u16
    }

    #[inline]
    fn start_down(&mut self, now: Time, delivery: &Delivery) {
        (self.loss_events, self.bw_latest, self.inflight_latest) = (0, 0, 0);
        self.slope = u32::MAX;
        self.rounds_since_probe = (self.draw() & 1) as u8;
        self.probe_wait = self.draw();
        self.stamp = now;
        self.phase = Phase::Stopping;
        self.start_round(delivery);
        self.state = State::Down;
    }

    #[inline]
    fn start_refill(&mut self, delivery: &Delivery) {
        (self.bw_short, self.inflight_short) = (u32::MAX, u32::MAX);
        (self.up_rounds, self.up_acked) = (0, 0);
        self.set(flag::STOPPED_CAREFUL, false);
        self.phase = Phase::Refilling;
        self.start_round(delivery);
        self.state = State::Refill;
    }

    #[inline]
    fn start_up(&mut self, delivery: &Delivery, sample: u32) {
        self.phase = Phase::Starting;
        self.start_round(delivery);
        self.reset_full_bw();
        self.full_bw = sample;
        self.state = State::Up;
        self.raise_slope();
    }

    /// BBRRaiseInflightLongtermSlope (VM7.4).
    #[inline]
    fn raise_slope(&mut self) {
        self.slope = (self.cwnd >> self.up_rounds).max(self.mss);
        self.up_rounds = (self.up_rounds + 1).min(SLOPE_MAX);
    }

    /// BBRProbeInflightLongtermUpward.
    #[inline]
    fn raise_bound(&mut self, newly: Bytes) {
        if self.is(flag::WINDOW_LIMITED) && self.cwnd >= self.inflight_long {
            self.up_acked = self.up_acked.saturating_add(small(newly.0));
            let segments = self.up_acked / self.slope.max(1);
            self.up_acked -= segments * self.slope.max(1);
            let grown = u64::from(self.inflight_long) + u64::from(segments) * u64::from(self.mss);
            self.inflight_long = small(grown).min(u32::MAX - 1);
        }
        if self.is(flag::ROUND_START) {
            self.raise_slope();
        }
    }

    /// BBRHandleInflightTooHigh.
    #[inline]
    fn lower_bound(&mut self, config: &Config, now: Time, delivery: &Delivery, flight: u64) {
        self.set(flag::PROBED, false);
        self.set(flag::WAS_TOO_HIGH, true);
        if !delivery.is_app_limited {
            self.inflight_long = small(flight.max(config.beta.of(self.target())));
        }
        if self.state == State::Up {
            self.start_down(now, delivery);
        }
    }

    /// BBRHandleLostPacket: the losses of this acknowledgment, by the packet of them that was sent last.
    #[inline]
    fn check_losses(&mut self, config: &Config, now: Time, delivery: &Delivery) {
        if delivery.lost_flight.0 == 0 || !self.is(flag::PROBED) {
            return;
        }
        let (flight, lost) = (delivery.lost_flight, delivery.lost_until);
        if too_high(config, lost, flight) {
            let at = inflight_at_loss(config.loss_threshold, flight, lost, Bytes(self.mss.into()));
            self.lower_bound(config, now, delivery, at);
        }
    }

    /// BBRAdaptLongTermModel; true if it began to refill.
    #[inline]
    fn adapt_bound(&mut self, config: &Config, now: Time, delivery: &Delivery) -> bool {
        let is_round = self.is(flag::ROUND_START);
        if self.phase == Phase::Starting && is_round {
            self.phase = Phase::Feedback;
        }
        if self.phase == Phase::Stopping && is_round {
            self.set(flag::PROBED, false);
            self.phase = Phase::Init;
            if self.is_in_probe_bw() && !delivery.is_app_limited {
                // BBRAdvanceMaxBwFilter.
                let [newest, _] = self.bandwidths;
                self.bandwidths = [0, newest];
            }
            if self.is_in_probe_bw() && self.is(flag::STOPPED_CAREFUL) && !self.is(flag::WAS_TOO_HIGH) {
                self.start_refill(delivery);
                return true;
            }
        }
        if too_high(config, delivery.lost_since, delivery.sent_flight) {
            if self.is(flag::PROBED) {
                self.lower_bound(config, now, delivery, delivery.sent_flight.0);
            }
        } else if self.inflight_long != u32::MAX {
            if !delivery.is_app_limited {
                self.inflight_long = self.inflight_long.max(small(delivery.sent_flight.0)).min(u32::MAX - 1);
            }
            if self.state == State::Up {
                self.raise_bound(delivery.newly);
            }
        }
        false
    }

    /// BBRIsTimeToProbeBW.
    #[inline]
    fn is_time_to_probe(&self, config: &Config, now: Time) -> bool {
        let packets = self.target() / u64::from(self.mss.max(1));
        let wait = config.probe_wait + Duration((u64::from(self.probe_wait) * SECOND) >> 16);
        now > self.stamp + wait || u64::from(self.rounds_since_probe) >= packets.min(RENO_ROUNDS)
    }

    /// BBRUpdateProbeBWCyclePhase: draft §5.3.3.
    #[inline]
    fn update_phase(&mut self, config: &Config, now: Time, delivery: &Delivery, sample: u32) {
        if !self.is(flag::FILLED) || self.adapt_bound(config, now, delivery) {
            return;
        }
        match self.state {
            State::Down | State::Cruise => {
                let flight = delivery.flight.0;
                if self.is_time_to_probe(config, now) {
                    self.start_refill(delivery);
                } else if self.state == State::Down
                    && flight <= self.with_headroom()
                    && flight <= self.inflight(Ratio::ONE)
                {
                    self.state = State::Cruise;
                }
            }
            State::Refill => {
                if self.is(flag::ROUND_START) {
                    self.set(flag::PROBED, true);
                    self.start_up(delivery, sample);
                }
            }
            State::Up => {
                let is_careful_end =
                    self.is(flag::WAS_TOO_HIGH) && delivery.flight.0 >= large(self.inflight_long);
                if is_careful_end {
                    self.set(flag::STOPPED_CAREFUL, true);
                } else if self.is(flag::WINDOW_LIMITED) && self.cwnd >= self.inflight_long {
                    self.reset_full_bw();
                    self.full_bw = sample;
                }
                if is_careful_end || self.is(flag::FULL_NOW) {
                    self.set(flag::WAS_TOO_HIGH, false);
                    self.start_down(now, delivery);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// BBRUpdateMinRTT: draft §5.3.4.3; true if it is time to empty the queue.
    #[inline]
    fn update_min_rtt(&mut self, config: &Config, now: Time, delivery: &Delivery) -> bool {
        let is_due = self.probe_rtt_min > 0 && now > self.probe_rtt_stamp + config.probe_rtt_interval;
        let rtt = small_span(delivery.rtt);
        if rtt > 0 && (self.probe_rtt_min == 0 || rtt < self.probe_rtt_min || is_due) {
            (self.probe_rtt_min, self.probe_rtt_stamp) = (rtt, now);
        }
        let is_old = now > self.min_rtt_stamp + MIN_RTT_WINDOW;
        if self.probe_rtt_min > 0 && (self.min_rtt == 0 || self.probe_rtt_min < self.min_rtt || is_old) {
            (self.min_rtt, self.min_rtt_stamp) = (self.probe_rtt_min, self.probe_rtt_stamp);
        }
        is_due
    }

    /// BBRCheckProbeRTT: draft §5.3.4.4; true if what is sent now says nothing of the path.
    #[inline]
    fn check_probe_rtt(&mut self, now: Time, delivery: &Delivery, is_due: bool) -> bool {
        if self.state != State::ProbeRtt && is_due && !self.is(flag::IDLE_RESTART) {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.stamp = Time::ZERO;
            self.phase = Phase::Stopping;
            self.start_round(delivery);
        }
        if delivery.newly.0 > 0 {
            self.set(flag::IDLE_RESTART, false);
        }
        if self.state != State::ProbeRtt {
            return false;
        }
        if self.stamp == Time::ZERO {
            if delivery.flight.0 <= self.probe_rtt_window() {
                self.stamp = now + PROBE_RTT;
                self.set(flag::PROBE_RTT_ROUND_DONE, false);
                self.start_round(delivery);
            }
            return true;
        }
        if self.is(flag::ROUND_START) {
            self.set(flag::PROBE_RTT_ROUND_DONE, true);
        }
        if self.is(flag::PROBE_RTT_ROUND_DONE) && now > self.stamp {
            self.probe_rtt_stamp = now;
            self.restore_cwnd();
            (self.bw_short, self.inflight_short) = (u32::MAX, u32::MAX);
            if self.is(flag::FILLED) {
                self.start_down(now, delivery);
                self.state = State::Cruise;
            } else {
                self.state = State::Startup;
            }
        }
        true
    }

    #[inline]
    fn probe_rtt_window(&self) -> u64 {
        self.bdp(self.bandwidth(), HALF).max(self.min_pipe())
    }

    #[inline]
    fn set_pacing_rate(&mut self) {
        let rate = small_rate(Rate(MARGIN.of(self.pacing_gain().of(self.bandwidth().0))));
        if rate > 0 && (self.is(flag::FILLED) || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// BBRSetCwnd and what recovery does to it, draft §5.6.4.
    #[inline]
    fn set_cwnd(&mut self, delivery: &Delivery) {
        let (newly, flight, mss) = (delivery.newly.0, delivery.flight.0, u64::from(self.mss));
        let mut cwnd = u64::from(self.cwnd);
        if delivery.lost.0 > 0 {
            cwnd = cwnd.saturating_sub(delivery.lost.0).max(mss);
        }
        if delivery.in_recovery && !self.is(flag::IN_RECOVERY) {
            self.set(flag::PACKET_CONSERVATION, true);
            cwnd = flight.saturating_add(newly.max(mss));
        } else if !delivery.in_recovery && self.is(flag::IN_RECOVERY) {
            self.set(flag::PACKET_CONSERVATION, false);
            cwnd = cwnd.max(self.prior_cwnd.into());
        } else if self.is(flag::ROUND_START) {
            self.set(flag::PACKET_CONSERVATION, false);
        }
        self.set(flag::IN_RECOVERY, delivery.in_recovery);
        if self.is(flag::PACKET_CONSERVATION) {
            cwnd = cwnd.max(flight.saturating_add(newly));
        } else {
            let [newest, before] = self.extra;
            let whole = self.bdp(self.bandwidth(), self.window_gain());
            let target = self.quantized(whole.saturating_add(newest.max(before).into()));
            if self.is(flag::FILLED) {
                cwnd = cwnd.saturating_add(newly).min(target);
            } else if cwnd < target || delivery.total.0 < self.initial_window.into() {
                cwnd = cwnd.saturating_add(newly);
            }
            cwnd = cwnd.max(self.min_pipe());
        }
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_window());
        }
        // BBRBoundCwndForModel.
        let long = match self.state {
            State::Down | State::Refill | State::Up => large(self.inflight_long),
            State::Cruise | State::ProbeRtt => self.with_headroom(),
            State::Startup | State::Drain => NONE,
        };
        let bound = long.min(large(self.inflight_short)).max(self.min_pipe());
        self.cwnd = small(cwnd.min(bound));
    }

    #[inline]
    fn save_cwnd(&mut self) {
        let is_undisturbed = !self.is(flag::IN_RECOVERY) && self.state != State::ProbeRtt;
        self.prior_cwnd = if is_undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    #[inline]
    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

/// BBRIsInflightTooHigh: more was lost than the threshold allows of what was in flight.
#[inline]
fn too_high(config: &Config, lost: Bytes, flight: Bytes) -> bool {
    lost.0 > config.loss_threshold.of(flight.0)
}

/// BBRInflightAtLoss: what was in flight when the losses passed the threshold, somewhere in the last packet (VM7.1).
#[inline]
pub fn inflight_at_loss(threshold: Ratio, flight: Bytes, lost: Bytes, size: Bytes) -> u64 {
    let (flight, lost) = ((flight - size).0, (lost - size).0);
    let one = u64::from(Ratio::ONE.0);
    let kept = one - u64::from(threshold.min(Ratio::ONE).0).min(one - 1);
    let more = threshold.of(flight).saturating_sub(lost);
    flight.saturating_add(mul_div(more, one, kept))
}

impl SenderLaw for Bbr3 {
    type Config = Config;
    type Echo = ();

    #[inline(always)]
    fn name(_config: &Config) -> &'static str {
        "bbr3"
    }

    /// Until losses pass the threshold the rate follows what arrives.
    #[inline(always)]
    fn needs(_config: &Config) -> Needs {
        let loses = Some(Ratio::ppm(200_000));
        Needs { delivery: true, draws: true, withstands_loss: true, loses, ..Needs::NONE }
    }

    #[inline(always)]
    fn start(_config: &Config, mss: Bytes, initial_window: Bytes) -> Self {
        Self::new(mss, initial_window)
    }

    #[inline]
    fn seed(&mut self, seed: u64) {
        self.random = (seed >> 32) as u32 ^ seed as u32;
    }

    /// Keeps whether the window limits: all else comes with [`SenderLaw::on_delivery`].
    #[inline]
    fn on_ack(&mut self, _config: &Config, _now: Time, ack: &Ack) {
        self.set(flag::WINDOW_LIMITED, ack.is_window_limited);
    }

    /// BBRUpdateOnACK, draft §5.2.3.
    #[inline]
    fn on_delivery(&mut self, config: &Config, now: Time, delivery: &Delivery) -> bool {
        // An interval below the least round trip time is compressed ACKs. Both are compared as they are kept: without a queue
        // the interval of a round's first ACK is the least round trip time itself. 0: no sample.
        let is_sample = delivery.interval.0 > 0 && small_span(delivery.interval) >= self.min_rtt;
        let sampled = (delivery.total - delivery.prior).per(Duration(delivery.interval.0.max(1)));
        let sample = if is_sample { small_rate(sampled) } else { 0 };
        let (window, bounds) = (self.cwnd, (self.inflight_short, self.inflight_long));
        let was_repairing = self.is(flag::IN_RECOVERY);
        self.check_losses(config, now, delivery);
        self.update_signals(config, delivery, sample);
        self.update_extra(now, delivery.newly);
        self.check_full_bw(delivery, sample);
        self.check_startup(config, now, delivery);
        self.update_phase(config, now, delivery, sample);
        let is_due = self.update_min_rtt(config, now, delivery);
        let is_silent = self.check_probe_rtt(now, delivery, is_due);
        self.advance_signals(delivery, sample);
        self.set_pacing_rate();
        self.set_cwnd(delivery);
        let is_bound = self.inflight_short < bounds.0 || self.inflight_long < bounds.1;
        let is_signal = is_bound || self.is(flag::IN_RECOVERY) && !was_repairing;
        self.cuts = self.cuts.wrapping_add((is_signal && self.cwnd < window).into());
        is_silent
    }

    /// The window follows with the delivery that this ACK reports.
    #[inline]
    fn on_loss(&mut self, _config: &Config, _now: Time, _flight: Bytes) {
        self.save_cwnd();
    }

    /// One segment until the next delivery.
    #[inline]
    fn on_timeout(&mut self, _config: &Config, _now: Time, _flight: Bytes, _is_first: bool) {
        self.save_cwnd();
        self.set(flag::IN_RECOVERY, true);
        self.set(flag::PACKET_CONSERVATION, false);
        self.cwnd = self.mss;
    }

    /// BBRHandleRestartFromIdle: the window stays, the rate is what was delivered.
    #[inline]
    fn on_restart(&mut self, _config: &Config, now: Time, _initial_window: Bytes) {
        self.set(flag::IDLE_RESTART, true);
        self.extra_since = now;
        if self.is_in_probe_bw() && self.bandwidth().0 > 0 {
            self.pacing_rate = small_rate(Rate(MARGIN.of(self.bandwidth().0)));
        }
    }

    #[inline]
    fn window(&self) -> Bytes {
        Bytes(self.cwnd.into())
    }

    #[inline(always)]
    fn cuts(&self) -> u32 {
        self.cuts
    }

    /// Before the first sample the initial window per round trip, times Startup's gain.
    #[inline]
    fn pacing_rate(&self, _config: &Config, srtt: Duration) -> Option<Rate> {
        if self.pacing_rate > 0 {
            return Some(rate(self.pacing_rate));
        }
        let srtt = if srtt.0 == 0 { Duration(SECOND / 1000) } else { srtt };
        let nominal = Bytes(self.initial_window.into()).per(srtt);
        Some(Rate(STARTUP_PACE.of(nominal.0).max(1)))
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("bandwidth_Bps", self.bandwidth().0 as i64, 1);
        let bound = self.long_bound().unwrap_or_default();
        tell("long_bound_packets", bound.0 as i64, self.mss);
    }
}

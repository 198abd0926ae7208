//! BBR, version 1 (Cardwell, Cheng, Gunn, Yeganeh, Jacobson: "BBR: congestion-based congestion
//! control", ACM Queue 2016; draft-cardwell-iccrg-bbr-congestion-control-00, "draft" below, whose names
//! the functions here have): sends at the rate at which data was delivered of late, and keeps in flight
//! what that rate fills in the least round trip time of late. Losses do not lower the rate.

#[cfg(feature = "words")]
mod words;

use super::places::SEGMENT_MAX;
use super::protocol::Protocol;
#[cfg(feature = "words")]
use super::settings::Finding;
use super::settings::{Field, Settings};
use super::{Ack, Delivery, Hue, Look, Needs, SenderLaw, Shape};
use crate::units::{Bytes, Duration, Rate, Ratio, SECOND, Time, mul_div};
use core::convert::Infallible;

/// BtlBwFilterLen, round trips, draft §4.1.1.3.
const ROUNDS: u32 = 10;
/// The filter keeps rates in units of so many B/s, up to 275 Gbit/s.
const RATE_UNIT: u64 = 8;
/// BBRGainCycleLen, draft §4.3.4.
const PHASES: u8 = 8;
/// BBRMinPipeCwnd, segments, draft §4.2.3.2.
const MIN_PIPE: u64 = 4;

/// Constants of BBR that a scenario may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// BBRHighGain: factor of rate and window in Startup; Drain paces at its inverse.
    pub startup_gain: Ratio,
    /// Window in ProbeBW, as a multiple of the estimated bandwidth-delay product.
    pub cwnd_gain: Ratio,
    /// RTpropFilterLen: time after which the least round trip time is probed anew.
    pub rtprop_window: Duration,
    /// ProbeRTTDuration: time for which ProbeRTT keeps four segments in flight.
    pub probe_rtt: Duration,
}

impl Config {
    const DEFAULT: Self = Self {
        startup_gain: Ratio::ppm(2_885_390),
        cwnd_gain: Ratio::ppm(2_000_000),
        rtprop_window: Duration(10 * SECOND),
        probe_rtt: Duration(SECOND / 5),
    };
}

impl Default for Config {
    #[inline] // or it would be in each BPF object
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Settings for Config {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell(
            "startup_gain",
            "of rate and window in Startup, at least 1; 2.88539 (2 / ln 2, draft-cardwell-iccrg-bbr-congestion-control-00 \
             section 4.3.2.1).",
            Field::Factor(&mut self.startup_gain),
        );
        tell(
            "cwnd_gain",
            "of the window in ProbeBW; 2 (the same draft, section 4.2.3.2).",
            Field::Factor(&mut self.cwnd_gain),
        );
        tell(
            "rtprop_window",
            "how long a least round trip time holds until it is probed anew; 10 s (the same draft, section 4.1.2.2).",
            Field::Span(&mut self.rtprop_window),
        );
        tell(
            "probe_rtt",
            "how long ProbeRTT keeps four packets in flight; 200 ms (the same draft, section 4.3.5).",
            Field::Span(&mut self.probe_rtt),
        );
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        if self.startup_gain < Ratio::ONE {
            let help = "allowed: 1 to 1000; with 2 / ln 2 the rate doubles each round trip";
            tell(Finding::range("startup_gain", "is below 1", help));
        }
        Finding::above_zero("rtprop_window", self.rtprop_window.0, "\"10 s\"", tell);
    }
}

/// Returns the protocols of this file: `bbr` alone.
pub(super) const fn protocols() -> &'static [Protocol<Infallible, Config>] {
    const {
        &[Protocol {
            name: "bbr",
            about: "BBR version 1 (Cardwell et al. 2016)",
            page: "bbr",
            look: Look::new(Hue::Green, Shape::Up, 4),
            link_series: &[],
            flow_series: &[],
            link: None,
            sender: Some(Config::DEFAULT),
        }]
    }
}

/// State of BBR's machine, draft §3.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The rate doubles each round trip until the delivery rate stops growing.
    Startup,
    /// The rate stays below the delivery rate until the queue of Startup is gone.
    Drain,
    /// The rate cycles: a round trip a quarter faster than is delivered, one a quarter slower, six as fast.
    ProbeBw,
    /// Four segments stay in flight, so that the queue empties and the round trip time without one is seen.
    ProbeRtt,
}

/// State of BBR for one connection.
#[derive(Clone, Debug)]
pub struct Bbr {
    mss: u32,
    /// Recoveries at whose begin less was in flight than the window.
    cuts: u32,
    cwnd: u64,
    prior_cwnd: u64,
    /// BBR.pacing_rate; 0: no sample yet.
    pacing_rate: Rate,
    /// Least round trip time; zero: unknown.
    rtprop: Duration,
    rtprop_stamp: Time,
    /// [`Time::ZERO`]: ProbeRTT waits for the flight to shrink.
    probe_rtt_done_stamp: Time,
    next_round_delivered: u64,
    cycle_stamp: Time,
    full_bw: u64,
    /// BtlBwFilter: the best of each of the last round trips, by their number.
    bandwidths: [u32; ROUNDS as usize],
    /// The best of them, which every ACK and packet asks for.
    best: u32,
    round_count: u32,
    random: u32,
    initial_window: u32,
    state: State,
    cycle_index: u8,
    full_bw_count: u8,
    round_start: bool,
    probe_rtt_round_done: bool,
    packet_conservation: bool,
    idle_restart: bool,
    in_recovery: bool,
}

/// BBR fits where XCP-r does: no law makes the flows of another larger.
const _: () = assert!(size_of::<Bbr>() <= 144);

impl Bbr {
    /// Creates the state of a new connection, in Startup. `mss` counts the whole IP packet.
    #[inline(always)]
    pub fn new(mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.min(SEGMENT_MAX).max(Bytes(1));
        let initial = initial_window.max(mss).min(SEGMENT_MAX);
        Self {
            mss: mss.0 as u32,
            cuts: 0,
            cwnd: initial.0,
            prior_cwnd: 0,
            pacing_rate: Rate(0),
            rtprop: Duration(0),
            rtprop_stamp: Time::ZERO,
            probe_rtt_done_stamp: Time::ZERO,
            next_round_delivered: 0,
            cycle_stamp: Time::ZERO,
            full_bw: 0,
            bandwidths: [0; ROUNDS as usize],
            best: 0,
            round_count: 0,
            random: 0,
            initial_window: initial.0 as u32,
            state: State::Startup,
            cycle_index: 0,
            full_bw_count: 0,
            round_start: false,
            probe_rtt_round_done: false,
            packet_conservation: false,
            idle_restart: false,
            in_recovery: false,
        }
    }

    /// Returns the state that the connection is in.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the phase of ProbeBW's gain cycle, 0 to 7: phase 0 probes for bandwidth, phase 1 drains.
    #[inline]
    pub fn cycle_index(&self) -> u8 {
        self.cycle_index
    }

    /// Returns BBR.BtlBw, the best delivery rate of the last ten round trips.
    #[inline]
    pub fn btl_bw(&self) -> Rate {
        Rate(self.best as u64 * RATE_UNIT)
    }

    /// Returns BBR.RTprop, the least round trip time of late ([`Config::rtprop_window`]); zero while unknown.
    #[inline]
    pub fn rtprop(&self) -> Duration {
        self.rtprop
    }

    /// Returns BBR.pacing_gain, the factor of BtlBw at which the present state paces.
    #[inline]
    pub fn pacing_gain(&self, config: &Config) -> Ratio {
        match (self.state, self.cycle_index) {
            (State::Startup, _) => config.startup_gain,
            (State::Drain, _) => {
                let one = u64::from(Ratio::ONE.0);
                Ratio(mul_div(one, one, config.startup_gain.max(Ratio::ONE).0.into()) as u32)
            }
            (State::ProbeBw, 0) => Ratio::ppm(1_250_000),
            (State::ProbeBw, 1) => Ratio::ppm(750_000),
            _ => Ratio::ONE,
        }
    }

    #[inline]
    fn cwnd_gain(&self, config: &Config) -> Ratio {
        match self.state {
            State::Startup | State::Drain => config.startup_gain,
            State::ProbeBw => config.cwnd_gain,
            State::ProbeRtt => Ratio::ONE,
        }
    }

    /// BBRUpdateRound, BBRUpdateBtlBw: draft §4.1.1.
    #[inline]
    fn update_btl_bw(&mut self, delivery: &Delivery) {
        self.round_start = delivery.newly.0 > 0 && delivery.prior.0 >= self.next_round_delivered;
        if self.round_start {
            self.next_round_delivered = delivery.total.0;
            self.round_count = self.round_count.wrapping_add(1);
            if let Some(oldest) = self.bandwidths.get_mut((self.round_count % ROUNDS) as usize) {
                *oldest = 0;
            }
            self.best = self.bandwidths.iter().fold(0, |best, &rate| if rate > best { rate } else { best });
        }
        // draft-cheng §3.3: an interval below the least round trip time is compressed ACKs.
        if delivery.interval.0 == 0 || delivery.interval < self.rtprop {
            return;
        }
        let rate = (delivery.total - delivery.prior).per(delivery.interval);
        if rate >= self.btl_bw() || !delivery.is_app_limited {
            let rate = (rate.0 / RATE_UNIT).min(u32::MAX as u64) as u32;
            if let Some(best) = self.bandwidths.get_mut((self.round_count % ROUNDS) as usize) {
                *best = if rate > *best { rate } else { *best };
                self.best = if rate > self.best { rate } else { self.best };
            }
        }
    }

    /// draft §4.3.4.
    #[inline]
    fn check_cycle_phase(&mut self, config: &Config, now: Time, delivery: &Delivery) {
        if self.state != State::ProbeBw {
            return;
        }
        let is_full_length = now - self.cycle_stamp > self.rtprop;
        let gain = self.pacing_gain(config);
        let is_next = match self.cycle_index {
            0 => is_full_length && (delivery.lost.0 > 0 || delivery.prior_flight.0 >= self.inflight(gain)),
            1 => is_full_length || delivery.prior_flight.0 <= self.inflight(Ratio::ONE),
            _ => is_full_length,
        };
        if is_next {
            self.advance_cycle_phase(now);
        }
    }

    #[inline]
    fn advance_cycle_phase(&mut self, now: Time) {
        self.cycle_stamp = now;
        self.cycle_index = (self.cycle_index + 1) % PHASES;
    }

    /// draft §4.3.2.2: three round trips without a quarter more.
    #[inline]
    fn check_full_pipe(&mut self, delivery: &Delivery) {
        if self.filled_pipe() || !self.round_start || delivery.is_app_limited {
            return;
        }
        let btl_bw = self.btl_bw().0;
        if btl_bw >= self.full_bw.saturating_add(self.full_bw / 4) {
            self.full_bw = btl_bw;
            self.full_bw_count = 0;
            return;
        }
        self.full_bw_count += 1;
    }

    #[inline(always)]
    fn filled_pipe(&self) -> bool {
        self.full_bw_count >= 3
    }

    /// draft §4.3.3.
    #[inline]
    fn check_drain(&mut self, now: Time, delivery: &Delivery) {
        if self.state == State::Startup && self.filled_pipe() {
            self.state = State::Drain;
        }
        if self.state == State::Drain && delivery.flight.0 <= self.inflight(Ratio::ONE) {
            self.enter_probe_bw(now);
        }
    }

    /// Any phase but the one that drains, so that flows do not probe together, draft §4.3.4.
    #[inline]
    fn enter_probe_bw(&mut self, now: Time) {
        self.state = State::ProbeBw;
        // Knuth's linear congruential generator.
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let drawn = ((self.random >> 16) * 7) >> 16; // 0 to 6
        self.cycle_index = PHASES - 1 - drawn as u8;
        self.advance_cycle_phase(now);
    }

    /// draft §4.1.2.3; true if the least round trip time was too old.
    #[inline]
    fn update_rtprop(&mut self, config: &Config, now: Time, delivery: &Delivery) -> bool {
        let is_expired = now > self.rtprop_stamp + config.rtprop_window && self.rtprop.0 > 0;
        if delivery.rtt.0 > 0 && (self.rtprop.0 == 0 || delivery.rtt <= self.rtprop || is_expired) {
            self.rtprop = delivery.rtt;
            self.rtprop_stamp = now;
        }
        is_expired
    }

    /// draft §4.3.5; true if what is sent now says nothing of the path.
    #[inline]
    fn check_probe_rtt(&mut self, config: &Config, now: Time, delivery: &Delivery, is_expired: bool) -> bool {
        if self.state != State::ProbeRtt && is_expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe_rtt_done_stamp = Time::ZERO;
        }
        self.idle_restart = false;
        if self.state != State::ProbeRtt {
            return false;
        }
        if self.probe_rtt_done_stamp == Time::ZERO {
            if delivery.flight.0 <= self.min_pipe() {
                self.probe_rtt_done_stamp = now + config.probe_rtt;
                self.probe_rtt_round_done = false;
                self.next_round_delivered = delivery.total.0;
            }
            return true;
        }
        self.probe_rtt_round_done |= self.round_start;
        if self.probe_rtt_round_done && now > self.probe_rtt_done_stamp {
            self.rtprop_stamp = now;
            self.restore_cwnd();
            if self.filled_pipe() {
                self.enter_probe_bw(now);
            } else {
                self.state = State::Startup;
            }
        }
        true
    }

    /// draft §4.2.1.
    #[inline]
    fn set_pacing_rate(&mut self, config: &Config) {
        let rate = Rate(self.pacing_gain(config).of(self.btl_bw().0));
        if rate.0 > 0 && (self.filled_pipe() || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// BBR.send_quantum, draft §4.2.2.
    #[inline]
    fn quantum(&self) -> u64 {
        match self.pacing_rate.0 {
            0..150_000 => u64::from(self.mss),
            150_000..3_000_000 => 2 * u64::from(self.mss),
            rate => (rate / 1000).min(65_536),
        }
    }

    /// BBRInflight, draft §4.2.3.2.
    #[inline]
    fn inflight(&self, gain: Ratio) -> u64 {
        if self.rtprop.0 == 0 {
            return u64::from(self.initial_window);
        }
        gain.of(self.btl_bw().over(self.rtprop).0).saturating_add(3 * self.quantum())
    }

    #[inline]
    fn min_pipe(&self) -> u64 {
        MIN_PIPE * u64::from(self.mss)
    }

    /// BBRSetCwnd and what recovery does to it, draft §4.2.3.
    #[inline]
    fn set_cwnd(&mut self, config: &Config, delivery: &Delivery) {
        let (newly, flight, before) = (delivery.newly.0, delivery.flight.0, self.cwnd);
        if delivery.lost.0 > 0 {
            self.cwnd = self.cwnd.saturating_sub(delivery.lost.0).max(u64::from(self.mss));
        }
        if delivery.in_recovery && !self.in_recovery {
            self.packet_conservation = true;
            self.next_round_delivered = delivery.total.0;
            self.cwnd = flight.saturating_add(newly.max(u64::from(self.mss)));
            self.cuts = self.cuts.wrapping_add((self.cwnd < before).into());
        } else if !delivery.in_recovery && self.in_recovery {
            self.packet_conservation = false;
            self.restore_cwnd();
        } else if self.round_start {
            self.packet_conservation = false;
        }
        self.in_recovery = delivery.in_recovery;
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(flight.saturating_add(newly));
        } else {
            let target = self.inflight(self.cwnd_gain(config));
            if self.filled_pipe() {
                self.cwnd = self.cwnd.saturating_add(newly).min(target);
            } else if self.cwnd < target || delivery.total.0 < u64::from(self.initial_window) {
                self.cwnd = self.cwnd.saturating_add(newly);
            }
            self.cwnd = self.cwnd.max(self.min_pipe());
        }
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.min_pipe());
        }
    }

    /// draft §4.2.3.4.
    #[inline]
    fn save_cwnd(&mut self) {
        let is_undisturbed = !self.in_recovery && self.state != State::ProbeRtt;
        self.prior_cwnd = if is_undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    #[inline]
    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

impl SenderLaw for Bbr {
    type Config = Config;
    type Echo = ();

    #[inline(always)]
    fn name(_config: &Config) -> &'static str {
        "bbr"
    }

    /// The rate follows what arrives, whatever is lost (draft §1).
    #[inline(always)]
    fn needs(_config: &Config) -> Needs {
        // Losses do not lower its rate: with a short queue its probing loses a quarter of a round trip in eight, and several
        // flows their Startups.
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

    /// Does nothing: BBR learns everything from [`SenderLaw::on_delivery`].
    #[inline]
    fn on_ack(&mut self, _config: &Config, _now: Time, _ack: &Ack) {}

    /// BBRUpdateOnACK, draft §3.5.
    #[inline]
    fn on_delivery(&mut self, config: &Config, now: Time, delivery: &Delivery) -> bool {
        self.update_btl_bw(delivery);
        self.check_cycle_phase(config, now, delivery);
        self.check_full_pipe(delivery);
        self.check_drain(now, delivery);
        let is_expired = self.update_rtprop(config, now, delivery);
        let is_silent = self.check_probe_rtt(config, now, delivery, is_expired);
        self.set_pacing_rate(config);
        self.set_cwnd(config, delivery);
        is_silent
    }

    /// The window follows with the delivery that this ACK reports.
    #[inline]
    fn on_loss(&mut self, _config: &Config, _now: Time, _flight: Bytes) {
        self.save_cwnd();
    }

    /// One segment until the next delivery, draft §4.2.3.4.
    #[inline]
    fn on_timeout(&mut self, _config: &Config, _now: Time, _flight: Bytes, _is_first: bool) {
        self.save_cwnd();
        self.in_recovery = true;
        self.packet_conservation = false;
        self.cwnd = u64::from(self.mss);
    }

    /// BBRHandleRestartFromIdle, draft §4.3.6: the window stays, the rate is what was delivered.
    #[inline]
    fn on_restart(&mut self, _config: &Config, _now: Time, _initial_window: Bytes) {
        self.idle_restart = true;
        if self.state == State::ProbeBw && self.btl_bw().0 > 0 {
            self.pacing_rate = self.btl_bw();
        }
    }

    /// The congestion window.
    #[inline]
    fn window(&self) -> Bytes {
        Bytes(self.cwnd)
    }

    #[inline(always)]
    fn cuts(&self) -> u32 {
        self.cuts
    }

    /// Before the first sample the initial window per round trip, times Startup's gain, draft §4.2.1.
    #[inline]
    fn pacing_rate(&self, config: &Config, srtt: Duration) -> Option<Rate> {
        if self.pacing_rate.0 > 0 {
            return Some(self.pacing_rate);
        }
        let srtt = if srtt.0 == 0 { Duration(SECOND / 1000) } else { srtt };
        let nominal = Bytes(self.initial_window.into()).per(srtt);
        Some(Rate(config.startup_gain.max(Ratio::ONE).of(nominal.0).max(1)))
    }
}

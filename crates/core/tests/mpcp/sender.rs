//! Windows: what each code does to them, and how the codes of a chain become a level.

use congestlab_core::law::mpcp::{Cut, Echoed, HIGH, Hold, LOW, Level, Loss, OVERLOAD, Sender, SenderConfig};
use congestlab_core::law::{Ack, SenderLaw as _};
use congestlab_core::units::{Bytes, Duration, Ratio, Time};

use crate::random::Random;

const MS: u64 = 1_000_000;
const MSS: u64 = 1_000_000;

/// A flow of large segments, so that bytes are millionths of packets.
struct Flow {
    config: SenderConfig,
    sender: Sender,
    rtt: u64,
    now: u64,
}

impl Flow {
    /// The tests in `mixed` cover paths with other laws and paths with late packets.
    fn new(config: SenderConfig, packets: u64, rtt: u64) -> Self {
        let config = SenderConfig { zones: false, undo: false, ..config };
        let sender = Sender::new(&config, Bytes(MSS), Bytes(packets * MSS));
        Self { config, sender, rtt, now: 10_000 * MS }
    }

    fn ack(&mut self, packets: u64, echoed: Echoed) {
        let ack = Ack {
            acked: Bytes(packets * MSS),
            srtt: Duration(self.rtt),
            rtt: Duration(self.rtt),
            awnd: Bytes(u64::MAX),
            is_window_limited: true,
            is_duplicate: packets == 0,
            reply: echoed.into(),
            ..Ack::default()
        };
        self.sender.on_ack(&self.config, Time(self.now), &ack);
    }

    /// One packet is acknowledged, and was in this place of its chain.
    fn echo(&mut self, index: u8, code: u8) -> f64 {
        self.ack(1, Echoed::new(code, Some(index)));
        self.window()
    }

    fn wait(&mut self, span: u64) {
        self.now += span;
    }

    fn window(&self) -> f64 {
        self.sender.window().0 as f64 / MSS as f64
    }

    fn digits(&self) -> Vec<u8> {
        let level = self.sender.state().level;
        (0..level.known()).map(|index| level.digit(index)).collect()
    }
}

fn vcp(packets: u64, rtt_ms: u64) -> Flow {
    Flow::new(SenderConfig::of(1, true), packets, rtt_ms * MS)
}

fn dpcp(packets: u64, rtt_ms: u64) -> Flow {
    Flow::new(SenderConfig::of(2, true), packets, rtt_ms * MS)
}

/// Windows are whole bytes, rounded down, and what is expected of one acknowledgment has six decimals; beyond one
/// packet those of a factor count, which multiplies up to a hundred.
fn near(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1.5e-6 * expected.max(1.0), "{got} for {expected}");
}

#[test]
fn v5_3_low_load_multiplies() {
    for (rtt, factor) in [(50, 0.015272), (100, 0.030776), (200, 0.0625), (500, 0.163650), (2000, 0.163650)] {
        let mut flow = vcp(1000, rtt);
        near(flow.echo(0, LOW) - 1000.0, factor);
        // A window of acknowledgments multiplies it by 1.0625^e.
        let mut flow = vcp(100, rtt);
        flow.ack(100, Echoed::new(LOW, Some(0)));
        near(flow.window(), 100.0 * (1.0 + factor));
    }
}

#[test]
fn v5_4_high_load_adds() {
    for (rtt, packets) in [(100, 0.25), (200, 1.0), (500, 6.25), (2000, 6.25)] {
        let mut flow = vcp(50, rtt);
        near(flow.echo(0, HIGH) - 50.0, packets / 50.0);
    }
}

#[test]
fn v5_5_overload_cuts_once_and_freezes_then_adds_for_a_round_trip() {
    let mut flow = vcp(80, 100);
    near(flow.echo(0, OVERLOAD), 70.0);
    for (after, code) in [(0, OVERLOAD), (50, LOW), (100, HIGH), (49, LOW)] {
        flow.wait(after * MS);
        near(flow.echo(0, code), 70.0);
    }
    // 200 ms later: additive for 100 ms, although overload is echoed.
    flow.wait(MS);
    let grown = flow.echo(0, OVERLOAD);
    near(grown, 70.0 + 0.25 / 70.0);
    flow.wait(99 * MS);
    let grown_again = flow.echo(0, OVERLOAD);
    near(grown_again, grown + 0.25 / grown);
    flow.wait(MS);
    near(flow.echo(0, OVERLOAD), grown_again * 0.875);
}

#[test]
fn a_hold_of_a_round_trip_lasts_one() {
    let config = SenderConfig { hold: Hold::RoundTrip, ..SenderConfig::of(1, true) };
    let mut flow = Flow::new(config, 80, 500 * MS);
    near(flow.echo(0, OVERLOAD), 70.0);
    flow.wait(499 * MS);
    near(flow.echo(0, HIGH), 70.0);
    flow.wait(MS);
    assert!(flow.echo(0, HIGH) > 70.0);
}

#[test]
fn the_window_never_falls_below_a_packet() {
    let mut flow = vcp(1, 100);
    near(flow.echo(0, OVERLOAD), 1.0);
}

/// Growth as printed, in `f64`, for anything that can be configured.
#[test]
fn growth_is_that_of_the_formulas() {
    let mut random = Random::new(53);
    let part = |ratio: Ratio| f64::from(ratio.0) / 1e6;
    let mut multiplied = 0;
    for _ in 0..20_000 {
        let n = 1 + random.below(8) as u32;
        let config = SenderConfig {
            interval: Duration(MS + random.below(600 * MS)),
            alpha: Ratio(random.below(3_000_000) as u32),
            xi: Ratio(random.below(500_000) as u32),
            kappa: Ratio(random.below(1_000_000) as u32),
            eta: Ratio(random.below(3_000_000) as u32),
            exponent_max: Ratio(random.below(4_000_000) as u32),
            rtt_max: Duration(random.below(1000 * MS)),
            ..SenderConfig::of(n, false)
        };
        let packets = 2 + random.below(1000);
        let rtt = 1 + random.below(2000 * MS);
        let mut flow = Flow::new(config, packets, rtt);
        let level = Level::of(random.below(1_000_000) as u32, n);
        let mut before = packets as f64;
        // All but the last digit in acknowledgments of nothing new.
        for index in 0..n as u8 {
            if index + 1 < n as u8 {
                flow.ack(0, Echoed::new(level.digit(index), Some(index)));
                before = flow.window();
            } else {
                flow.echo(index, level.digit(index));
            }
        }
        let interval = config.interval.0 as f64;
        let exponent = (rtt as f64 / interval).min(part(config.exponent_max));
        let additive = part(config.alpha) * (rtt.min(config.rtt_max.0) as f64 / interval).powi(2);
        let sigma = f64::from(level.to) / 1e6;
        let multiplicative = if n == 1 {
            (1.0 + part(config.xi)).powf(exponent) - 1.0
        } else {
            let xi = part(config.kappa) * (1.0 - sigma) / sigma;
            ((1.0 + xi).powf(exponent) - 1.0).min(part(config.eta) * (1.0 / sigma - 1.0))
        };
        multiplied += u32::from(multiplicative > 0.01);
        let multiplies = n > 1 || level.zone() == LOW;
        let adds = n > 1 || level.zone() == HIGH;
        let grown = f64::from(multiplies) * multiplicative;
        let expected = before + grown + f64::from(adds) * additive / (before + grown);
        let got = flow.window();
        // Two windows of whole bytes are compared, and (1 + xi)^e has errors of some 2^-30 of the window.
        let tolerance = 2e-6 + 1e-8 * expected;
        assert!((got - expected).abs() < tolerance, "{got} for {expected}: {level:?} rtt {rtt} {config:?}");
    }
    assert!(multiplied > 5000, "{multiplied}");
}

/// The multiplicative growth of table 1's levels; the first digit is echoed without new data.
#[test]
fn v6_9_growth_by_level() {
    let by_rtt = [
        (200, [1.0, 0.375, 0.0625, 0.0441, 0.0132, 0.0], 1.0),
        (500, [2.0, 0.75, 0.125, 0.0882, 0.0263, 0.0], 6.25),
    ];
    for (rtt, growth, additive) in by_rtt {
        for (at, expected) in (0..).zip(growth) {
            let mut flow = dpcp(1000, rtt);
            flow.ack(0, Echoed::new(at / 3 + 1, Some(0)));
            let got = flow.echo(1, at % 3 + 1) - 1000.0 - additive / (1000.0 + expected);
            // The page's four decimals.
            assert!((got - expected).abs() < 5e-5, "{got} for {expected}");
        }
    }
}

/// V6.7: M10 M11 L01, and M L L. What is unknown counts as 11.
#[test]
fn v6_7_levels_from_echoes_in_any_order() {
    let mut flow = dpcp(10, 200);
    assert_eq!(flow.digits(), [1, 1], "low, before anything is echoed");
    let bound = |flow: &Flow| flow.sender.state().level.to;
    flow.echo(0, 2);
    assert_eq!((flow.digits(), bound(&flow)), (vec![2], 1_000_000), "10/11");
    flow.echo(0, 3);
    assert_eq!((flow.digits(), bound(&flow)), (vec![3], 2_000_000), "11/11");
    flow.echo(1, 1);
    assert_eq!((flow.digits(), bound(&flow)), (vec![3, 1], 1_050_000), "11/01");

    let mut flow = dpcp(10, 200);
    flow.echo(0, 2);
    flow.echo(1, 1);
    assert_eq!(bound(&flow), 850_000);
    flow.echo(1, 2);
    assert_eq!((flow.digits(), bound(&flow)), (vec![2], 1_000_000), "the second one is ignored: 10/11");

    let mut flow = dpcp(10, 200);
    flow.echo(0, 2);
    flow.echo(0, 1);
    assert_eq!(flow.digits(), [2], "the higher of two");
    assert!(!flow.sender.state().is_downgraded);
    flow.echo(0, 1);
    assert!(flow.sender.state().is_downgraded, "M M M");
    let mut flow = dpcp(10, 200);
    (0..3).for_each(|_| _ = flow.echo(1, 1));
    assert!(flow.sender.state().is_downgraded, "L L L");
}

/// MP 3.3: x0.43 with the first packet, then the factor of the level on the window before.
#[test]
fn a_cut_is_corrected_upward_by_the_rest_of_its_chain_and_no_other() {
    let mut flow = dpcp(100, 200);
    near(flow.echo(0, 3), 43.0);
    near(flow.echo(1, 1), 87.5);
    near(flow.echo(0, 3), 87.5);
    near(flow.echo(1, 3), 87.5);
    let mut flow = Flow::new(SenderConfig::of(3, true), 100, 200 * MS);
    near(flow.echo(0, 3), 43.0);
    near(flow.echo(1, 2), 60.0);
    near(flow.echo(2, 1), 77.0);
    near(flow.echo(0, 3), 77.0);
    // A gap: as far as the chain has said.
    let mut flow = Flow::new(SenderConfig::of(3, true), 100, 200 * MS);
    near(flow.echo(0, 3), 43.0);
    near(flow.echo(2, 1), 43.0);
    near(flow.echo(1, 1), 43.0);
}

#[test]
fn a_cut_can_wait_for_the_whole_chain() {
    let config = SenderConfig { cut: Cut::Complete, ..SenderConfig::of(2, true) };
    let mut flow = Flow::new(config, 100, 200 * MS);
    near(flow.echo(0, 3), 100.0);
    near(flow.echo(1, 2), 60.0);
}

/// Growth for a chain's first packet is replaced by that of the level when it is known, for both packets.
#[test]
fn growth_is_replaced_not_repeated() {
    let mut flow = dpcp(1000, 200);
    let additive = 1.0 / 1000.0;
    near(flow.echo(0, 1), 1000.0 + 0.0625 + additive);
    near(flow.echo(1, 2), 1000.0 + 2.0 * 0.375 + 2.0 * additive);
    near(flow.echo(0, 1), 1000.0 + 2.0 * 0.375 + 3.0 * additive + 0.0625);
}

/// MP 3.4, A-17: VCP for 8 round trips, then 16, 32, then for good; each packet the first of a chain.
#[test]
fn downgrades_last_longer_each_time_and_at_last_for_good() {
    let mut flow = dpcp(100, 100);
    let places = |flow: &mut Flow, count: usize| -> Vec<u8> {
        let (config, now, rtt) = (flow.config, Time(flow.now), Duration(flow.rtt));
        (0..count).map(|_| flow.sender.next_place(&config, now, rtt)).collect()
    };
    assert_eq!(places(&mut flow, 5), [0, 1, 0, 1, 0]);
    for (relapses, round_trips) in [(0, 8), (1, 16), (2, 32)] {
        (0..3).for_each(|_| _ = flow.echo(1, 1));
        assert!(flow.sender.state().is_downgraded);
        assert_eq!(flow.sender.state().downgrades, relapses + 1);
        assert_eq!(places(&mut flow, 3), [0, 0, 0], "forced");
        // Zones, VCP's growth, VCP's cut.
        flow.wait(flow.rtt);
        let before = flow.window();
        near(flow.echo(0, LOW) - before, 0.030776);
        flow.wait((round_trips - 1) * flow.rtt - 1);
        assert_eq!(places(&mut flow, 2), [0, 0]);
        flow.wait(1);
        assert_eq!(places(&mut flow, 4), [0, 1, 0, 1], "again after {round_trips} round trips");
        // What is echoed for a round trip was sent before, and is no run of one type.
        (0..50).for_each(|_| _ = flow.echo(0, 1));
        assert!(!flow.sender.state().is_downgraded);
        flow.echo(1, 1);
        flow.echo(0, 1);
    }
    (0..3).for_each(|_| _ = flow.echo(0, 1));
    flow.wait(100_000 * flow.rtt);
    assert_eq!(places(&mut flow, 3), [0, 0, 0], "for good");
    let before = flow.window();
    near(flow.echo(0, OVERLOAD), before * 0.875);
}

/// Longer chains: after n + 1 of them without a complete one.
#[test]
fn long_chains_are_given_up_after_n_and_one_of_them() {
    for n in 3..=8 {
        let mut flow = Flow::new(SenderConfig::of(n, false), 100, 100 * MS);
        for chain in 0..=n {
            flow.echo(0, 1);
            flow.echo(2, 1);
            assert!(!flow.sender.state().is_downgraded, "{n} packets, chain {chain}");
        }
        flow.echo(0, 1);
        assert!(flow.sender.state().is_downgraded, "{n} packets");
        let mut flow = Flow::new(SenderConfig::of(n, false), 100, 100 * MS);
        for _ in 0..20 {
            (0..n as u8).for_each(|index| _ = flow.echo(index, 1));
            flow.echo(0, 1);
        }
        assert!(!flow.sender.state().is_downgraded, "complete chains begin the count anew");
    }
}

/// An ACK that brings the code of an overload while a loss is repaired.
fn overload_in_recovery() -> Ack {
    Ack {
        acked: Bytes(MSS),
        srtt: Duration(200 * MS),
        is_window_limited: true,
        in_recovery: true,
        reply: Echoed::new(OVERLOAD, Some(0)).into(),
        ..Ack::default()
    }
}

/// Ours: losses that say nothing of the load leave the window; a timeout takes it, for its ACKs are gone.
#[test]
fn a_window_that_is_maintained_survives_losses_and_goes_on_meanwhile() {
    for (loss, kept) in [(Loss::Tcp, 10.0), (Loss::Maintain, 20.0)] {
        let mut flow = Flow::new(SenderConfig { loss, ..SenderConfig::of(1, true) }, 20, 200 * MS);
        flow.sender.on_loss(&flow.config, Time(flow.now), Bytes(20 * MSS));
        near(flow.window(), kept);
        flow.sender.on_ack(&flow.config, Time(flow.now), &overload_in_recovery());
        near(flow.window(), if loss == Loss::Tcp { kept } else { kept * 0.875 });
        flow.sender.on_timeout(&flow.config, Time(flow.now), Bytes(20 * MSS), true);
        near(flow.window(), 1.0);
    }
}

/// MP 4.2: losses hardly affect DPCP until it gives its chains up. From then on it is VCP, and halves.
#[test]
fn a_window_is_maintained_only_while_chains_are_read() {
    let config = SenderConfig { loss: Loss::Maintain, ..SenderConfig::of(2, true) };
    let mut flow = Flow::new(config, 20, 200 * MS);
    let lose = |flow: &mut Flow| flow.sender.on_loss(&flow.config, Time(flow.now), Bytes(20 * MSS));
    lose(&mut flow);
    near(flow.window(), 20.0);
    (0..3).for_each(|_| _ = flow.echo(0, 2));
    assert!(flow.sender.state().is_downgraded);
    let before = flow.window();
    assert!(before > 15.0, "{before}");
    lose(&mut flow);
    near(flow.window(), 10.0);
    // In the same recovery nothing moves it, as VCP's.
    flow.sender.on_ack(&flow.config, Time(flow.now), &overload_in_recovery());
    near(flow.window(), 10.0);
}

/// Ours: a smooth sender paces whatever window it has over the round trip.
#[test]
fn a_smooth_sender_paces_every_window() {
    for packets in [1, 2, 64, 65, 1000] {
        let flow = Flow::new(SenderConfig { smooth: true, ..SenderConfig::of(2, true) }, packets, 50 * MS);
        let rate = flow.sender.pacing_rate(&flow.config, Duration(50 * MS));
        assert_eq!(rate.map(|rate| rate.0), Some(packets * MSS * 20));
    }
}

/// `strikes` counts echoes of one type with two packets, incomplete chains with more; any number of them.
#[test]
fn strikes_are_what_they_are_told_to_be() {
    for n in 2..=8 {
        for strikes in [1, 2, 5, 254, 255, 256, 1000] {
            let mut flow = Flow::new(SenderConfig { strikes, ..SenderConfig::of(n, false) }, 100, 100 * MS);
            let begun = if n == 2 { strikes } else { strikes + 1 };
            for _ in 1..begun {
                flow.echo(0, 1);
                assert!(!flow.sender.state().is_downgraded, "{n} packets, {strikes} strikes");
            }
            flow.echo(0, 1);
            assert!(flow.sender.state().is_downgraded, "{n} packets, {strikes} strikes");
        }
    }
}

/// 5.5: codes that somebody clears make it NewReno; what the application does not use does not grow; repairs
/// hold the window.
#[test]
fn cleared_codes_and_unused_windows() {
    let mut flow = vcp(10, 100);
    flow.echo(0, 0);
    assert!(flow.sender.state().is_standard);
    near(flow.window(), 11.0); // slow start
    flow.sender.on_loss(&flow.config, Time(flow.now), Bytes(10 * MSS));
    near(flow.window(), 5.0);
    flow.ack(1, Echoed::new(LOW, Some(0)));
    near(flow.window(), 5.2); // congestion avoidance, for good

    let mut flow = vcp(10, 100);
    let ack = Ack {
        acked: Bytes(MSS),
        srtt: Duration(100 * MS),
        reply: Echoed::new(LOW, Some(0)).into(),
        ..Ack::default()
    };
    flow.sender.on_ack(&flow.config, Time(flow.now), &ack);
    near(flow.window(), 10.0);
    let ack = Ack { is_window_limited: true, in_recovery: true, ..ack };
    flow.sender.on_ack(&flow.config, Time(flow.now), &ack);
    near(flow.window(), 10.0);
    flow.sender.on_timeout(&flow.config, Time(flow.now), Bytes(10 * MSS), true);
    near(flow.window(), 1.0);
}

/// VNS: gaps of rtt / 2^ceil(log2 cwnd), if above 100 ms, of windows of 2 to 64 packets.
#[test]
fn small_windows_over_long_round_trips_are_paced() {
    for (packets, rtt, gap) in [
        (1, 500, None),
        (2, 500, Some(250)),
        (3, 500, Some(125)),
        (4, 500, Some(125)),
        (5, 500, None),
        (2, 200, None),
        (60, 6500, Some(6500 / 64)),
        (65, 65_000, None),
    ] {
        let flow = vcp(packets, rtt);
        let config = SenderConfig { smooth: false, ..flow.config };
        let rate = flow.sender.pacing_rate(&config, Duration(rtt * MS));
        assert_eq!(
            rate.map(|rate| rate.0),
            gap.map(|gap| Bytes(MSS).per(Duration(rtt * MS / (rtt / gap))).0),
            "{packets}"
        );
    }
}

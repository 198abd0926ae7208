//! TCP-Peach and TCP-Peach+ (docs/design/protocols.md 8).

use congestlab_core::law::peach::{Config, Peach, Phase, Variant};
use congestlab_core::law::{Ack, Ask, Carried, Probe, Send, SenderLaw as _, Turn};
use congestlab_core::units::{Bytes, Duration, Time};

use super::random::Random;
use super::{MS, MSS, ack};

const RTT: Duration = Duration(550 * MS);
const UNLIMITED: Bytes = Bytes(u64::MAX);

fn start(segments: u64) -> Peach {
    Peach::new(Bytes(MSS), Bytes(segments * MSS))
}

fn awnd(segments: u64) -> Bytes {
    Bytes(segments * MSS)
}

/// All probes that go, with their times, if nothing comes back.
fn probes(law: &mut Peach, config: &Config, mut now: Time, awnd: Bytes) -> Vec<(Time, Probe)> {
    let mut sent = Vec::new();
    loop {
        match law.probe(config, now, &Ask { srtt: RTT, awnd }) {
            Turn::Send(probe) => sent.push((now, probe)),
            Turn::Wait(Time::NEVER) => return sent,
            Turn::Wait(until) => {
                assert!(until > now);
                now = until;
            }
        }
    }
}

#[test]
fn v8_1_sudden_start_sends_a_probe_every_rtt_by_rwnd() {
    for (variant, kind) in [(Variant::Peach, Probe::Last), (Variant::PeachPlus, Probe::Random)] {
        // By the receiver's window, and by the default where it has none.
        for limit in [awnd(64), UNLIMITED] {
            let config = Config::of(variant);
            let mut law = start(1);
            assert_eq!(
                probes(&mut law, &config, Time(0), limit),
                [],
                "nothing was sent that could be copied"
            );
            law.on_send(&config, Time(RTT.0), &Send::default(), &mut Carried::default());
            let sent = probes(&mut law, &config, Time(RTT.0), limit);
            let expected: Vec<_> = (1..64).map(|k| (Time(RTT.0 + k * 8_593_750), kind)).collect();
            assert_eq!(sent, expected);
            law.on_ack(&config, Time(2 * RTT.0), &Ack { is_window_limited: false, ..ack(MSS) });
            for k in 1..64 {
                law.on_probe_ack(&config, limit);
                assert_eq!(law.window(), Bytes((1 + k) * MSS));
            }
            law.on_probe_ack(&config, limit);
            assert_eq!(law.window(), Bytes(64 * MSS), "never beyond rwnd");
        }
    }
}

#[test]
fn v8_2_rapid_recovery_takes_half_back_when_all_probes_return() {
    let config = Config::default();
    let lose = || {
        let mut law = start(40);
        law.on_loss(&config, Time(0), Bytes(40 * MSS));
        assert_eq!((law.window(), law.wdsn(), law.probes()), (Bytes(20 * MSS), 20, 40));
        law
    };
    // Two for the ACK that reported the loss, and two for each after it.
    let mut law = lose();
    for acks in 0..21 {
        let sent = probes(&mut law, &config, Time(0), awnd(64)).len();
        assert_eq!(sent, if acks < 20 { 2 } else { 0 });
        law.on_ack(&config, Time(0), &Ack { is_duplicate: true, in_recovery: true, ..ack(0) });
    }
    for k in 1..=40 {
        law.on_probe_ack(&config, awnd(64));
        assert_eq!(law.window(), Bytes((20 + u64::saturating_sub(k, 20)) * MSS));
    }
    assert_eq!(law.wdsn(), 0);
    let mut law = lose();
    (0..15).for_each(|_| law.on_probe_ack(&config, awnd(64)));
    assert_eq!((law.window(), law.wdsn()), (Bytes(20 * MSS), 5));
}

#[test]
fn a_window_of_any_size_comes_back_exactly() {
    let config = Config::default();
    for segments in 1..=64 {
        let mut law = start(segments);
        law.on_loss(&config, Time(0), Bytes(segments * MSS));
        assert_eq!(law.window(), Bytes((segments / 2).max(1) * MSS));
        assert_eq!(law.probes(), segments);
        (0..segments).for_each(|_| law.on_probe_ack(&config, awnd(64)));
        assert_eq!(law.window(), Bytes(segments * MSS));
    }
}

#[test]
fn congestion_avoidance_is_one_segment_a_window_and_only_of_a_used_one() {
    let config = Config::default();
    let mut law = start(10);
    (0..10).for_each(|_| law.on_ack(&config, Time(0), &ack(MSS)));
    assert_eq!(law.window(), Bytes(11 * MSS));
    for idle in [Ack { is_window_limited: false, ..ack(MSS) }, Ack { in_recovery: true, ..ack(MSS) }] {
        (0..100).for_each(|_| law.on_ack(&config, Time(0), &idle));
        assert_eq!(law.window(), Bytes(11 * MSS));
    }
}

#[test]
fn a_timeout_ends_all_probes_until_its_repetition_leaves() {
    let config = Config::default();
    for lost_before in [false, true] {
        let mut law = start(40);
        law.on_send(&config, Time(0), &Send::default(), &mut Carried::default());
        assert_eq!(
            law.probe(&config, Time(0), &Ask { srtt: RTT, awnd: awnd(64) }),
            Turn::Wait(Time(8_593_750))
        );
        assert_eq!((law.phase(), law.probes()), (Phase::SuddenStart, 24));
        if lost_before {
            law.on_loss(&config, Time(0), Bytes(40 * MSS));
        }
        law.on_timeout(&config, Time(0), Bytes(40 * MSS), true);
        assert_eq!((law.window(), law.wdsn()), (Bytes(MSS), 0));
        assert_eq!(probes(&mut law, &config, Time(9 * RTT.0), awnd(64)), []);
        law.on_send(&config, Time(9 * RTT.0), &Send::default(), &mut Carried::default());
        assert_eq!(probes(&mut law, &config, Time(9 * RTT.0), awnd(64)).len(), 63);
    }
}

#[test]
fn a_closed_or_small_receiver_is_not_overrun() {
    let config = Config::default();
    for (window, expected) in [(0, 0), (1, 0), (2, 1), (7, 6)] {
        let mut law = start(1);
        law.on_send(&config, Time(0), &Send::default(), &mut Carried::default());
        assert_eq!(probes(&mut law, &config, Time(0), awnd(window)).len(), expected);
        (0..100).for_each(|_| law.on_probe_ack(&config, awnd(window)));
        assert_eq!(law.window(), Bytes(window.max(1) * MSS));
    }
}

/// Whatever happens: no more probes than rwnd or the window at the loss, two at most per ACK, and probe
/// ACKs never lift the window above the larger of rwnd and what it was.
#[test]
fn the_number_of_probes_is_bounded() {
    let mut random = Random::new(8);
    for _ in 0..300 {
        let config = Config { per_ack: 1 + random.below(3) as u32, ..Config::default() };
        let (mut law, mut budget, mut per_ack) = (start(1 + random.below(80)), 0, u64::MAX);
        let mut now = 0;
        for _ in 0..300 {
            now += random.below(20 * MS);
            match random.below(12) {
                0 => {
                    budget = law.window().0 / MSS;
                    per_ack = config.per_ack.into();
                    law.on_loss(&config, Time(now), law.window());
                }
                1 if random.below(4) == 0 => {
                    (budget, per_ack) = (64, u64::MAX);
                    law.on_timeout(&config, Time(now), law.window(), true);
                }
                2 => law.on_send(&config, Time(now), &Send::default(), &mut Carried::default()),
                3..=6 => {
                    law.on_ack(&config, Time(now), &ack(MSS));
                    if per_ack != u64::MAX {
                        per_ack = config.per_ack.into();
                    }
                }
                7..=9 => {
                    let before = law.window();
                    law.on_probe_ack(&config, awnd(64));
                    assert!(law.window() <= before.max(awnd(64)) && law.window() >= before);
                }
                _ => {
                    if law.phase() == Phase::Begun {
                        budget = 64;
                    }
                    while let Turn::Send(_) =
                        law.probe(&config, Time(now), &Ask { srtt: RTT, awnd: awnd(64) })
                    {
                        assert!(budget > 0 && per_ack > 0);
                        budget -= 1;
                        if per_ack != u64::MAX {
                            per_ack -= 1;
                        }
                    }
                }
            }
        }
    }
}

//! What is said of an acknowledgment, held against what the window did.

use std::cmp::Ordering;

use congestlab_core::law::mpcp::{self, Cut, Echoed, Loss};
use congestlab_core::law::words::{Moment, Phase, Reaction};
use congestlab_core::law::{self, Ack};
use congestlab_core::units::{Bytes, Duration, Time};

use crate::random::Random;

const MSS: Bytes = Bytes(1000);

/// Acknowledgments of a sender whose codes and losses are drawn: what was said of each, and what became of the window.
fn walk(config: &mpcp::SenderConfig, codes: &[u8], draws: &mut Random) -> Vec<(Vec<String>, Ordering)> {
    let settings = law::SenderConfig::Mpcp(*config);
    let mut law = law::Sender::new(&settings, MSS, MSS);
    let mut phase = Phase::Open;
    let mut step = |step: u64| {
        let now = Time(step * 13_000_000);
        let index = (draws.below(10) > 0).then_some((step % u64::from(config.n)) as u8);
        let reply = Echoed::new(codes[draws.below(codes.len() as u64) as usize], index).into();
        let was = law.clone();
        let before = Moment {
            window: law.window(),
            srtt: Duration(70_000_000),
            phase,
            awnd: Bytes(1_000_000),
            is_window_limited: draws.below(8) > 0,
            window_cuts: 0,
        };
        let advanced = draws.below(8).min(2);
        let in_recovery = phase == Phase::Recovery;
        let ack = Ack {
            acked: Bytes(advanced * MSS.0),
            srtt: before.srtt,
            reply,
            in_recovery,
            is_window_limited: before.is_window_limited,
            ..Ack::default()
        };
        law.on_ack(&settings, now, &ack);
        phase = if in_recovery && draws.below(4) > 0 { Phase::Recovery } else { Phase::Open };
        let mut window_cuts = 0;
        if phase == Phase::Open && draws.below(40) == 0 {
            let old = law.window();
            law.on_loss(&settings, now, old);
            (phase, window_cuts) = (Phase::Recovery, u32::from(law.window() < old));
        }
        let seen = Reaction {
            now,
            before,
            after: Moment { window: law.window(), phase, window_cuts, ..before },
            reply,
            is_new: advanced > 0,
            is_late: false,
            is_probe: false,
            segment: MSS,
        };
        let told = law::Sender::explain(&settings, [&was, &law], &seen);
        // That a loss reduced the window is said for all laws.
        let is_own = |text: &String| !text.contains("echoes") && !text.contains("so the window is reduced");
        let texts = told.into_iter().map(|rule| rule.text).filter(is_own).collect();
        (texts, law.window().cmp(&was.window()))
    };
    (1..4000).map(&mut step).collect()
}

/// What is said names a change of the window that was so.
#[test]
fn each_reason_goes_with_what_the_window_did() {
    use Ordering::{Equal, Greater, Less};
    // The last ones need not come: windows are whole bytes, and a chain that goes on after VCP is rare.
    let reasons: [(&str, &[Ordering]); 13] = [
        ("so W is cut once", &[Less]),
        ("corrected upward", &[Greater]),
        ("W was cut and stays", &[Equal]),
        ("cut when the chain is complete", &[Equal]),
        ("nothing new", &[Equal]),
        ("did not limit the sender", &[Equal]),
        ("is being repaired", &[Equal]),
        ("until then W grows", &[Greater]),
        ("so W grows", &[Greater]),
        // Growth, or a cut, may have come before it.
        ("at least two segments", &[Greater, Equal, Less]),
        ("which changes nothing", &[Equal]),
        ("by less than a byte", &[Equal]),
        ("for which W is not cut", &[Less]),
    ];
    let (mut seen, mut reduced) = ([0; 13], 0);
    let draws = &mut Random::new(1);
    for n in 1..=3 {
        for (cut, loss) in [(Cut::AtOnce, Loss::Tcp), (Cut::Complete, Loss::Maintain)] {
            let config = mpcp::SenderConfig { cut, loss, ..mpcp::SenderConfig::of(n, true) };
            for codes in [&[1, 2, 3][..], &[1, 2], &[3]] {
                for (texts, change) in walk(&config, codes, draws) {
                    let [reason, rest @ ..] = &texts[..] else {
                        // Of a loss that reduces the window the caller tells; chains that are given up do so, too.
                        assert!(loss == Loss::Tcp || n > 1);
                        reduced += u32::from(change == Less);
                        continue;
                    };
                    let is_loss = rest.iter().all(|text| text.contains("does not count"));
                    assert!(is_loss && (rest.is_empty() || loss == Loss::Maintain), "{texts:?}");
                    let place = reasons.iter().rposition(|(part, _)| reason.contains(part));
                    let place = place.unwrap_or_else(|| panic!("{reason}"));
                    assert!(reasons[place].1.contains(&change), "{reason}, but {change:?}");
                    seen[place] += 1;
                }
            }
        }
    }
    assert!(reduced > 0 && seen[..10].iter().all(|&count| count > 0), "{reduced}, {seen:?}");
}

/// Who clears codes takes its say from the load.
#[test]
fn without_codes_it_is_told_as_newreno() {
    let config = mpcp::SenderConfig::of(2, true);
    let walk = walk(&config, &[0], &mut Random::new(1));
    let said = |part: &str| {
        let (mut told, mut has_grown) = (0, 0);
        for (texts, change) in &walk {
            assert!(texts[0].contains("runs NewReno") && texts.iter().all(|text| !text.contains("load")));
            if texts.iter().any(|text| text.contains(part)) {
                told += 1;
                has_grown += i32::from(*change == Ordering::Greater);
            }
        }
        (told, has_grown)
    };
    for part in ["slow start", "congestion avoidance"] {
        let (told, has_grown) = said(part);
        assert!(told > 0 && has_grown > 0, "{part}: {told} {has_grown}");
    }
    assert!(
        matches!(said("did not limit"), (1.., 0)) && matches!(said("a loss is being repaired"), (1.., 0))
    );
}

//! Reasons for which the windows of VCP, DPCP, TPCP and MPCP change, in the order of questions of `law::mpcp`.

use std::cmp::Ordering;

use congestlab_core::law::mpcp::{Echoed, Level, Loss, OVERLOAD, SenderConfig, State};
use congestlab_core::units::{Bytes, Ratio, Time};
use congestlab_net::packet::Packet;
use congestlab_net::tcp::{self, Mode};

use super::{Rule, reno_rules, restraint};

const MP: &str = "MPCP (CCR 39(5)) section 3.3";
const VNS: &str = "VCP's ns-2 code";

/// Adds the rules of an acknowledgment, from the states of the law before and after it.
pub(super) fn rules(
    config: &SenderConfig,
    [was, is]: [State; 2],
    now: Time,
    before: &tcp::View,
    after: &tcp::View,
    ack: &Packet,
    rules: &mut Vec<Rule>,
) {
    echoed(ack, rules);
    // What else applies on a loss is said for all laws.
    let is_cut_by_loss = after.window_cuts > before.window_cuts;
    let is_loss = is_cut_by_loss || after.mode == Mode::Recovery && before.mode != Mode::Recovery;
    if is.is_standard {
        rule(
            rules,
            "somebody clears the codes on the path, so it runs NewReno",
            "docs/design/protocols.md 5.5",
        );
        if !is_loss {
            let ssthresh = was.ssthresh.unwrap_or(Bytes(u64::MAX));
            reno_rules(ssthresh, before.law.window(), after.law.window(), before, rules);
        }
        return;
    }
    // A flow that gave up its chains halves, as VCP.
    let maintains = config.loss == Loss::Maintain && !is.is_downgraded;
    if maintains || !is_loss && !matches!(before.mode, Mode::Recovery | Mode::Loss) {
        by_load(config, [&was, &is], now, before, after, rules);
    } else if !is_loss {
        rule(rules, "a loss is being repaired: until then what codes say changes no window", VNS);
    }
    if is_loss && !is_cut_by_loss {
        let text = match maintains {
            true => "with this acknowledgment a loss is found, which loss = \"maintain\" does not count",
            false => {
                "with this acknowledgment a loss is found: W is half of what is in flight, at least two segments"
            }
        };
        rule(rules, text, VNS);
    }
}

fn rule(rules: &mut Vec<Rule>, text: impl Into<String>, source: &'static str) {
    rules.push(Rule { text: text.into(), source });
}

fn echoed(ack: &Packet, rules: &mut Vec<Rule>) {
    let echoed = Echoed::from(ack.reply());
    if let Some(code) = echoed.code() {
        let place = echoed.index().map_or_else(
            || "of no place that could be told".to_owned(),
            |index| format!("{} of its chain", index + 1),
        );
        rule(rules, format!("it echoes the code {code:02b} of a packet, {place}"), MP);
    }
}

/// Adds the rule by which the load, as far as it is known, changes the window.
fn by_load(
    config: &SenderConfig,
    [was, is]: [&State; 2],
    now: Time,
    before: &tcp::View,
    after: &tcp::View,
    rules: &mut Vec<Rule>,
) {
    const TABLE: &str = "MPCP (CCR 39(5)) table 1";
    let change = after.law.window().cmp(&before.law.window());
    let is_over = is.level.zone() == OVERLOAD;
    let load = load(&is.level, if config.n > 1 && is.is_downgraded { ", as VCP for now" } else { "" });
    if is.frozen_until != was.frozen_until {
        let text = match change {
            Ordering::Less => format!("{load}, so W is cut once"),
            _ => format!("{load}, so W is cut once, which changes nothing"),
        };
        return rule(rules, text, TABLE);
    }
    if change == Ordering::Less {
        // Growth is for all that a chain has acknowledged, by the round trip time of now; a pause may have ended.
        return rule(rules, format!("{load}, for which W is not cut; it is less than before"), TABLE);
    }
    if now < was.frozen_until {
        let until = was.frozen_until.0 as f64 / 1e9;
        let text = match change {
            Ordering::Greater => {
                format!("{load}, so the cut is corrected upward, and W stays until {until:.3} s")
            }
            _ => format!("W was cut and stays until {until:.3} s"),
        };
        return rule(rules, text, MP);
    }
    if is_over && was.is_settled(now, after.srtt) {
        // Or it would be cut: `cut = "complete"`.
        return rule(rules, format!("{load}: W is cut when the chain is complete"), MP);
    }
    if after.acknowledged == before.acknowledged {
        return rule(rules, "it acknowledges nothing new, so W does not grow", VNS);
    }
    if restraint(before, rules) {
        return;
    }
    let why = match is_over {
        true => format!("{load}, but what the last cut did shows only after a round trip; until then"),
        false => format!("{load}, so"),
    };
    let text = match change {
        Ordering::Equal => format!("{why} W grows, by less than a byte"),
        _ => format!("{why} W grows"),
    };
    rule(rules, text, TABLE);
}

/// "the load is 80 to 100 %": what is known of it.
fn load(level: &Level, mode: &str) -> String {
    let percent = |bound: u32| f64::from(bound) / 1e4;
    let (from, to) = (percent(level.from), percent(level.to));
    // The last level has no end.
    let load = match (level.from, level.to) {
        (0, _) => format!("below {to} %"),
        (_, end) if end >= 2 * Ratio::ONE.0 => format!("{from} % or more"),
        _ => format!("{from} to {to} %"),
    };
    format!("the load is {load} as far as is known{mode}")
}

#[cfg(test)]
mod tests {
    use congestlab_core::law::mpcp::Cut;
    use congestlab_core::law::{self, mpcp};
    use congestlab_core::units::Duration;
    use congestlab_net::random::Stream;

    use super::*;

    const MSS: Bytes = Bytes(1000);

    /// Acknowledgments of a sender whose codes and losses are drawn: what was said of each, and what became of the window.
    fn walk(config: &mpcp::SenderConfig, codes: &[u8], draws: &mut Stream) -> Vec<(Vec<String>, Ordering)> {
        let settings = law::SenderConfig::Mpcp(*config);
        let mut law = law::Sender::new(&settings, MSS, MSS);
        let mut mode = Mode::Open;
        let mut step = |step: u64| {
            let now = Time(step * 13_000_000);
            let index = (draws.below(10) > 0).then_some((step % u64::from(config.n)) as u8);
            let echoed = Echoed::new(codes[draws.below(codes.len() as u64) as usize], index);
            let before = tcp::View {
                law: law.clone(),
                srtt: Duration(70_000_000),
                mode,
                pipe: 10,
                awnd: 1000,
                is_window_limited: draws.below(8) > 0,
                timeouts: 0,
                window_cuts: 0,
                acknowledged: 0,
            };
            let advanced = draws.below(8).min(2) as u32;
            let in_recovery = mode == Mode::Recovery;
            let ack = law::Ack {
                acked: Bytes(u64::from(advanced) * MSS.0),
                srtt: before.srtt,
                reply: echoed.into(),
                in_recovery,
                is_window_limited: before.is_window_limited,
                ..law::Ack::default()
            };
            law.on_ack(&settings, now, &ack);
            mode = if in_recovery && draws.below(4) > 0 { Mode::Recovery } else { Mode::Open };
            let mut window_cuts = 0;
            if mode == Mode::Open && draws.below(40) == 0 {
                let old = law.window();
                law.on_loss(&settings, now, old);
                (mode, window_cuts) = (Mode::Recovery, u32::from(law.window() < old));
            }
            let after =
                tcp::View { law: law.clone(), mode, window_cuts, acknowledged: advanced, ..before.clone() };
            let states = [&before, &after].map(|view| view.law.law().part::<mpcp::Sender>().unwrap().state());
            let packet = Packet { words: [0, echoed.0, 0, 0, 0, 0, 0, 0], ..Packet::default() };
            let mut told = Vec::new();
            rules(config, states, now, &before, &after, &packet, &mut told);
            let texts = told.into_iter().map(|rule| rule.text).filter(|text| !text.contains("echoes"));
            (texts.collect(), law.window().cmp(&before.law.window()))
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
        let draws = &mut Stream::named(1, "chain");
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
        let walk = walk(&config, &[0], &mut Stream::named(1, "chain"));
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
}

//! Reasons for which the windows of HighSpeed TCP, BIC, Vegas, BBR, DCTCP and TCP-Peach change.

use congestlab_core::law::bbr::{self, Bbr, State};
use congestlab_core::law::bic::{self, Bic};
use congestlab_core::law::dctcp;
use congestlab_core::law::highspeed::{self, HighSpeed};
use congestlab_core::law::peach::Peach;
use congestlab_core::law::vegas::{self, Vegas};
use congestlab_core::units::{Bytes, Ratio};
use congestlab_net::tcp;

use super::{Rule, in_recovery, restraint, slow_start};

pub(super) fn highspeed(law: &HighSpeed, old: Bytes, before: &tcp::View, rules: &mut Vec<Rule>) {
    if restraint(before, rules) {
    } else if old < law.ssthresh() {
        slow_start(rules, law.ssthresh());
    } else if !in_recovery(before, rules) {
        let increase = highspeed::increase(law.segments()) as f64 / 65_536.0;
        let text = format!(
            "congestion avoidance: with {} segments a(w) = {increase:.3}, so it grows by that many segments per \
             window acknowledged",
            law.segments()
        );
        rules.push(Rule { text, source: "RFC 3649 section 5" });
    }
}

pub(super) fn bic(config: &bic::Config, law: &Bic, old: Bytes, before: &tcp::View, rules: &mut Vec<Rule>) {
    if restraint(before, rules) {
    } else if old < law.ssthresh() {
        slow_start(rules, law.ssthresh());
    } else if !in_recovery(before, rules) {
        let text = match law.max_win() {
            Bytes(u64::MAX) => format!(
                "beyond the window of the last loss: it grows faster every round trip, up to {} segments",
                config.max_increment
            ),
            Bytes(max) => format!(
                "the last loss was at {max} B: it grows by half the distance per round trip, {} segments at most; \
                 as Reno below {} segments",
                config.max_increment, config.low_window
            ),
        };
        rules.push(Rule { text, source: "Xu, Harfoush and Rhee 2004, section III" });
    }
}

pub(super) fn vegas(
    config: &vegas::Config,
    law: &Vegas,
    old: Bytes,
    new: Bytes,
    before: &tcp::View,
    rules: &mut Vec<Rule>,
) {
    let packets = |millionths: u64| millionths as f64 / f64::from(Ratio::ONE.0);
    let queued = format!(
        "the last comparison, with a least round trip time of {:.3} ms, found {:.2} packets of its own in the queue",
        law.base_rtt().0 as f64 / 1e6,
        packets(law.queued())
    );
    let text = if old < law.ssthresh() {
        format!("slow start, in every other round trip: {queued}")
    } else if in_recovery(before, rules) {
        return;
    } else {
        let [alpha, beta] = [config.alpha, config.beta].map(|bound| packets(bound.0.into()));
        let verdict = match new.cmp(&old) {
            std::cmp::Ordering::Greater => format!("fewer than alpha = {alpha}, so it grows by one segment"),
            std::cmp::Ordering::Less => format!("more than beta = {beta}, so it shrinks by one segment"),
            std::cmp::Ordering::Equal => {
                format!("below alpha = {alpha} it grows, above beta = {beta} it shrinks, once a round trip")
            }
        };
        format!("congestion avoidance: {queued}; {verdict}")
    };
    rules.push(Rule { text, source: "Brakmo and Peterson 1995, section III" });
}

pub(super) fn dctcp(law: &dctcp::Sender, old: Bytes, new: Bytes, rules: &mut Vec<Rule>) {
    let alpha = f64::from(law.share().alpha()) / f64::from(1 << 20);
    let text = if new < old {
        format!("the receiver has counted new marks, so the window loses alpha / 2 of it: alpha = {alpha:.4}")
    } else if law.calm().0 > 0 {
        "marks have cut the window less than a window of data ago, so it neither shrinks nor grows".into()
    } else {
        format!("no marks are new, so it grows as Reno does: alpha = {alpha:.4}")
    };
    rules.push(Rule { text, source: "RFC 8257 section 3.3" });
}

pub(super) fn bbr(config: &bbr::Config, law: &Bbr, rules: &mut Vec<Rule>) {
    let model = format!(
        "the best delivery rate of ten round trips is {} B/s and the least round trip time {:.3} ms, so the pipe holds \
         {} B",
        law.btl_bw().0,
        law.rtprop().0 as f64 / 1e6,
        law.btl_bw().over(law.rtprop()).0
    );
    let gain = f64::from(law.pacing_gain(config).0) / f64::from(Ratio::ONE.0);
    let text = match law.state() {
        State::Startup => format!("Startup, until three round trips deliver no quarter more: {model}"),
        State::Drain => format!("Drain, until no more than the pipe holds is in flight: {model}"),
        State::ProbeBw => format!(
            "ProbeBW, phase {} of 8: {model}; it paces at {gain} of the rate, with a window of {} pipes \
             and three quanta",
            law.cycle_index() + 1,
            f64::from(config.cwnd_gain.0) / f64::from(Ratio::ONE.0)
        ),
        State::ProbeRtt => {
            format!("ProbeRTT: four packets in flight, to see the round trip without a queue; {model}")
        }
    };
    rules.push(Rule { text, source: "draft-cardwell-iccrg-bbr-congestion-control-00 section 4" });
}

/// `is_probe`: the acknowledgment answers a probe.
pub(super) fn peach(
    law: &Peach,
    is_probe: bool,
    old: Bytes,
    new: Bytes,
    before: &tcp::View,
    rules: &mut Vec<Rule>,
) {
    let mut rule = |text: String| rules.push(Rule { text, source: "docs/design/protocols.md 8.3, recalled" });
    if is_probe && law.wdsn() > 0 {
        rule(format!(
            "the acknowledgment of a probe: it is one of {} (wdsn) that the halved window had room for anyway",
            law.wdsn()
        ));
    } else if is_probe && new > old {
        rule("the acknowledgment of a probe: the path has room for a segment more".into());
    } else if is_probe {
        rule("the acknowledgment of a probe: the window is at rwnd already".into());
    } else if !restraint(before, rules) && !in_recovery(before, rules) {
        let text = "congestion avoidance: it grows by one segment per window acknowledged";
        rules.push(Rule { text: text.into(), source: "RFC 5681 section 3.1" });
    }
}

//! Why XCP's window changes, and the settings that follow other implementations.

use super::{Feedback, Link, LinkConfig, LossPolicy, Profile, Sender, SenderConfig};
use crate::law::words::{Followed, LinkWords, Phase, Reaction, Rule, SenderWords};
use crate::units::Duration;
use alloc::vec::Vec;

/// Returns the bytes that an acknowledgment grants a sender that was in this state.
pub fn granted(config: &SenderConfig, before: &Sender, seen: &Reaction) -> f64 {
    let feedback = f64::from(before.rate(config, seen.reply));
    match config.feedback {
        Feedback::Rate | Feedback::Sum => {
            feedback * f64::from(seen.after.srtt.to_header()) / f64::from(1 << 28)
        }
        Feedback::Bytes => feedback,
    }
}

impl SenderWords for Sender {
    fn explain(config: &SenderConfig, [before, law]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        let (old, new) = (seen.before.window.0 as f64, seen.after.window.0 as f64);
        let mut rule = |text: &str, source| rules.push(Rule::new(text, source));
        if law.is_tcp() && config.loss == LossPolicy::Maintain {
            let text = "a tenth was lost in a round trip and a queue delayed, or links asked for less: Reno sets the window, until \
                        queues have been short for long or XCP's feedback is the stricter";
            return rule(text, "docs/design/protocols.md 13.8");
        }
        if law.is_tcp() {
            let text = "after a loss Reno sets the window until XCP's feedback is the stricter";
            return rule(text, "draft-03 section 5.1");
        }
        if let Profile::Liar(_) = config.profile {
            let text = "the sender lies: it takes what links granted by its factor, or does not hear that they take away";
            return rule(text, "docs/design/protocols.md 13.4");
        }
        if law.asked().lies() != before.asked().lies() {
            let text = "the acknowledgment claims more than was asked for, so the receiver lies: nothing of it counts";
            return rule(text, "draft-03 section 4.2.3");
        }
        match config.feedback {
            Feedback::Rate => rule("W becomes W + Reverse_Feedback srtt", "draft-03 section 4.1.3"),
            Feedback::Bytes => rule("W becomes W + H_feedback", "K02 section 3.4"),
            Feedback::Sum => rule(
                "W becomes W + F srtt, F being what the sum of all Reverse_Feedback has more than the last one heard",
                "draft-03 section 4.1.3, docs/design/protocols.md 13.7",
            ),
        }
        let bytes = granted(config, before, seen);
        // Windows are shown without their fraction of a byte.
        if (old + bytes - new).abs() <= 1.5 {
            return;
        }
        let (segment, awnd) = (seen.segment.0 as f64, seen.after.awnd.0 as f64);
        if seen.after.window_cuts > seen.before.window_cuts {
            rule(
                "then a loss was found, and the window is halved as TCP does",
                "K02 section 3.4, draft-03 section 4.1.3.2",
            );
        } else if new <= segment + 1.0 {
            rule("it never falls below one segment", "draft-03 section 4.1.3");
        } else if config.clamp && new + 1.0 >= awnd {
            rule(
                "it never passes what the receiver advertises",
                "a Linux implementation's thesis, section 4.1",
            );
        } else if config.aging.is_some() && new < old + bytes {
            rule("before that it aged, because less was sent than it allows", "draft-03 section 4.1.3.1");
        } else if config.profile == Profile::Ns2 && seen.before.phase == Phase::Recovery {
            rule("ns-2 drops the feedback of duplicate acknowledgments", "ns-2.35, xcp-end-sys.cc");
        } else {
            rule("it never passes what the flow can use in a round trip", "draft-03 section 5.6");
        }
    }
}

/// Links of ns-2's and of the thesis's kind.
pub(crate) fn follow_on_link(
    config: &mut LinkConfig,
    implementation: &str,
    is_written: &dyn Fn(&str) -> bool,
) {
    if implementation == "ns2" && !is_written("min_interval") {
        config.min_interval = Duration(1_000_000);
    }
    config.thesis = implementation == "thesis";
    // Neither knows any.
    config.bound_headers &= is_written("bound_headers");
}

/// Senders of ns-2's and of the thesis's kind; `is_own`: of XCP itself. A variant has the standard's sender where the thesis's
/// is asked for. Theirs do not pace, unless `keeps_pacing`.
pub(crate) fn follow(
    config: Option<&mut SenderConfig>,
    is_own: bool,
    implementation: &str,
    keeps_pacing: bool,
) -> Followed {
    let profile = match implementation {
        "ns2" => Profile::Ns2,
        "thesis" if is_own => Profile::Thesis,
        _ => Profile::Standard,
    };
    if let Some(config) = config {
        if let Profile::Liar(_) = config.profile {
            return Followed {
                stranger: Some("it lies as no sender of that kind does"),
                ..Followed::default()
            };
        }
        config.profile = profile;
        config.pacing &= profile == Profile::Standard || keeps_pacing;
    }
    if implementation != "thesis" {
        return Followed::default();
    }
    Followed {
        stranger: (!is_own).then_some("it is a sender of XCP"),
        ignored: &["loss", "safety_net", "request", "aging", "rate", "price", "feedback"],
        known: "that sender knows clamp and desired_rate",
    }
}

impl LinkWords for Link {
    fn explain_other(_: &LinkConfig) -> Rule {
        Rule::new(
            "the packet has no congestion header, so the law counts its bytes as input traffic and leaves it alone",
            "draft-03 section 4.2.3, L 1",
        )
    }
}

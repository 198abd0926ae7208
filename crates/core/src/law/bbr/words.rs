//! Why BBR's window and pace change.

use super::{Bbr, Config, State};
use crate::law::words::{Reaction, Rule, SenderWords};
use crate::units::Ratio;
use alloc::format;
use alloc::vec::Vec;

impl SenderWords for Bbr {
    fn explain(config: &Config, [_, law]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
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
        rules.push(Rule::new(text, "draft-cardwell-iccrg-bbr-congestion-control-00 section 4"));
        seen.cut(rules);
    }
}

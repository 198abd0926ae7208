//! A recording of somebody else's making: refused with a place, or read as numbers that can be counted with.
#![no_main]

use std::path::Path;

use congestlab_scenario::measured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match measured::parse(Path::new("it"), bytes) {
        Err(error) => assert!(!error.problem.is_empty() && error.to_string().starts_with("it")),
        Ok(read) => {
            assert!(!read.flows.is_empty());
            for flow in &read.flows {
                let (from, until) = (flow.from_s, flow.until_s());
                assert!(from.is_finite() && until.is_finite() && until >= from);
                let all = flow.bytes_between(f64::MIN, f64::MAX);
                let middle = f64::midpoint(from, until);
                let halves = flow.bytes_between(f64::MIN, middle) + flow.bytes_between(middle, f64::MAX);
                assert!(all.is_finite() && all >= 0.0);
                // Times near 1e15 are no sharper than eighths of a second, and bytes are spread by their quotients.
                let spans = flow.bytes.iter().map(|span| span.amount).sum::<f64>();
                assert!(all <= spans * (1.0 + 1e-9) && (halves - all).abs() <= spans * 1e-6, "{halves} of {all}");
                if let Some(again) = flow.retransmits_between(from, until) {
                    assert!(again.is_finite() && again >= 0.0);
                }
                let points = flow.rtt_ms.iter().chain(&flow.cwnd_packets);
                assert!(points.into_iter().all(|(at, value)| at.is_finite() && *value >= 0.0));
            }
        }
    }
});

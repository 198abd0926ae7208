//! Sums over flows. Rates over different lifetimes have no sum, so sums are of bits over one time.

use serde_json::Value as Json;

/// Returns the rate of several flows together, bit/s: their bits over the measured time. `None` without a flow, or if no time
/// was measured.
pub fn together(bits: impl IntoIterator<Item = f64>, measured_s: f64) -> Option<f64> {
    // Not by `sum`, which is -0 of nothing.
    let all = bits.into_iter().fold(None, |sum: Option<f64>, bits| Some(sum.unwrap_or(0.0) + bits));
    all.filter(|_| measured_s > 0.0).map(|bits| bits / measured_s)
}

/// Returns the measured time of a result, s.
pub fn measured_s(result: &Json) -> f64 {
    let seconds = |key: &str| result[key].as_f64().unwrap_or(0.0);
    seconds("duration_s") - seconds("warmup_s")
}

/// Returns the goodput of groups of flows of a result together, bit/s. Groups are lists of flows, or the distributions of
/// `--flows summary`.
pub fn goodput<'a>(result: &Json, groups: impl IntoIterator<Item = &'a Json>) -> Option<f64> {
    let bits = groups.into_iter().flat_map(|group| match group {
        Json::Array(flows) => flows.iter().map(arrived_bits).collect(),
        summary => vec![total(summary, "arrived_bytes").map(|bytes| bytes * 8.0)],
    });
    together(bits.flatten(), measured_s(result))
}

/// Returns the bits of a flow that first arrived in the measured time. Results of older builds have only the bytes that
/// were delivered in order.
pub fn arrived_bits(flow: &Json) -> Option<f64> {
    let bytes = flow["arrived_bytes"].as_f64().or_else(|| flow["delivered_bytes"].as_f64());
    bytes.map(|bytes| bytes * 8.0)
}

/// Returns the sum of a metric over the flows of a distribution.
pub fn total(summary: &Json, key: &str) -> Option<f64> {
    let of = &summary[key];
    Some(of["count"].as_f64()? * of["mean"].as_f64()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sum_is_of_bits_over_one_time() {
        let flows = json!([
            { "goodput_bps": 8e6, "arrived_bytes": 1_000, "delivered_bytes": 900 },
            { "goodput_bps": null, "arrived_bytes": 0, "delivered_bytes": 0 },
            { "goodput_bps": 4e6, "delivered_bytes": 500 },
        ]);
        let summary = json!({ "count": 4, "arrived_bytes": { "count": 4, "mean": 250.0 } });
        let result = json!({ "warmup_s": 2.0, "duration_s": 10.0 });
        assert_eq!(goodput(&result, [&flows]), Some(1_500.0));
        assert_eq!(goodput(&result, [&flows, &summary]), Some(2_500.0));
        assert_eq!(goodput(&result, [&json!([])]), None);
        assert_eq!(goodput(&json!({ "warmup_s": 1.0, "duration_s": 1.0 }), [&flows]), None);
    }
}

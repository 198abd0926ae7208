//! Names of axes: quantity and unit.

use crate::judging::metric::Metric;

/// Whether an axis with this label ends at 1.
pub fn is_share(label: &str) -> bool {
    ["(share)", "(0 to 1)"].iter().any(|unit| label.ends_with(unit))
        || matches!(label, "utilization" | "utilisation" | "Jain's index")
}

/// Names of quantities that are not the words of their columns.
const NAMES: [(&str, &str); 23] = [
    ("utilization", "utilisation"),
    ("jain", "Jain's fairness index"),
    ("goodput_sum_bps", "goodput of all flows"),
    ("received_bps", "received throughput"),
    ("queue_packets", "queue"),
    ("queue_mean_packets", "mean queue"),
    ("queue_p50_packets", "median queue"),
    ("queue_p95_packets", "95th percentile of the queue"),
    ("queue_p99_packets", "99th percentile of the queue"),
    ("queue_max_packets", "longest queue"),
    ("queue_delay_ms", "queueing delay"),
    ("queue_delay_mean_ms", "mean queueing delay"),
    ("queue_delay_p50_ms", "median queueing delay"),
    ("queue_delay_p95_ms", "95th percentile of the queueing delay"),
    ("queue_delay_p99_ms", "99th percentile of the queueing delay"),
    ("queue_delay_max_ms", "longest queueing delay"),
    ("rtt_mean_ms", "mean round-trip time"),
    ("srtt_ms", "smoothed round-trip time"),
    ("completion_s", "flow completion time"),
    ("convergence_s", "convergence time"),
    ("fct_s", "flow completion time"),
    ("error.packet_error_rate", "packet error rate"),
    ("error.bit_error_rate", "bit error rate"),
];

/// Columns that count something, and what.
const COUNTS: [(&str, &str); 9] = [
    ("drops", "packets"),
    ("errors", "packets"),
    ("retransmits", "packets"),
    ("timeouts", "count"),
    ("window_cuts", "count"),
    ("flows", "flows"),
    ("count", "flows"),
    ("collisions", "count"),
    ("slowdown", "ratio"),
];

/// Quantity and unit of a column, and what its values are divided by: the unit in which the largest has few digits.
pub(super) fn label_of(column: &str, highest: f64) -> (String, f64) {
    if let Some(metric) = Metric::parse(column).ok().filter(|metric| !metric.is_plain()) {
        return label_of_metric(&metric, highest);
    }
    let (column, of) = match column.split('.').collect::<Vec<_>>()[..] {
        ["links" | "flows", ref name, ref rest @ ..] if !rest.is_empty() => {
            let of = if *name == "*" { " of all".to_owned() } else { format!(" of {name}") };
            (rest.join("."), of)
        }
        ["jain", name] => ("jain".to_owned(), format!(" of {name}")),
        ["run", ref rest @ ..] => (rest.join("."), String::new()),
        _ => (column.to_owned(), String::new()),
    };
    let (words, unit, factor) = words_of(&column, highest);
    (format!("{words}{of} ({unit})"), factor)
}

/// The same of what is made of many values, or asked of a series.
fn label_of_metric(metric: &Metric, highest: f64) -> (String, f64) {
    let (_, unit, factor) = words_of(metric.unit_name(), highest);
    let words = metric.in_words().map(|(made, key, whose)| made + &words_of(key, highest).0 + &whose);
    (format!("{} ({unit})", words.unwrap_or_else(|| metric.text().to_owned())), factor)
}

/// Words and unit of a quantity, whosever it is.
fn words_of(column: &str, highest: f64) -> (String, &'static str, f64) {
    let column = column.strip_suffix("_total").unwrap_or(column);
    let scaled = |units: [(&'static str, f64); 4]| {
        let fits = |(_, factor): &&(&str, f64)| highest.abs() >= 2.0 * factor;
        *units.iter().rev().find(fits).unwrap_or(&units[0])
    };
    let last = column.rsplit(['_', '.']).next().unwrap_or("");
    // `drops_by_reason.queue-full` ends in the reason.
    let counted = column.split_once("_by_reason").map_or(column, |(counted, _)| counted);
    let is_count = COUNTS.iter().find(|(name, _)| counted.ends_with(name));
    let (unit, factor) = match last {
        "bps" => scaled([("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)]),
        "Bps" => scaled([("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9)]),
        "bytes" => scaled([("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)]),
        "packets" => ("packets", 1.0),
        "ms" if highest.abs() >= 2000.0 => ("s", 1e3),
        "ms" => ("ms", 1.0),
        "s" if highest.abs() < 0.5 => ("ms", 1e-3),
        "s" => ("s", 1.0),
        "utilization" => ("share", 1.0),
        "jain" => ("0 to 1", 1.0),
        "seed" => ("number", 1.0),
        _ if column.ends_with("error_rate") => ("probability", 1.0),
        _ => is_count.map_or(("1", 1.0), |(_, unit)| (unit, 1.0)),
    };
    let words = NAMES.iter().find(|(name, _)| *name == column).map_or_else(
        || match last {
            "bps" | "Bps" | "bytes" | "packets" | "ms" | "s" => {
                column[..column.len() - last.len()].trim_end_matches('_').to_owned()
            }
            _ => column.to_owned(),
        },
        |(_, words)| (*words).to_owned(),
    );
    let words = if words.contains(' ') { words } else { words.replace(['_', '.'], " ") };
    (words, unit, factor)
}

/// Units that files write behind a comma.
const UNITS: [&str; 14] = [
    "Mbit/s", "kbit/s", "Gbit/s", "bit/s", "packets", "ms", "s", "MB", "kB", "B", "flows/s", "share",
    "ratio", "MB/s",
];

/// `throughput, Mbit/s` as `throughput (Mbit/s)`; what has no unit gets that of a number.
pub fn unit_in_brackets(label: &str) -> String {
    if label.ends_with(')') {
        return label.to_owned();
    }
    if let Some((words, unit)) = label.rsplit_once(", ")
        && UNITS.contains(&unit)
    {
        return format!("{words} ({unit})");
    }
    match label {
        "" => String::new(),
        "utilization" | "utilisation" => "utilisation (share)".into(),
        "Jain's index" => "Jain's fairness index (0 to 1)".into(),
        other if other.contains(", ") || other.contains("; ") => other.to_owned(),
        other => format!("{other} (1)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judging::metric::quantities;

    #[test]
    fn every_label_has_a_unit_in_which_the_largest_value_has_few_digits() {
        for (column, highest, label, factor) in [
            ("goodput_bps", 9.5e6, "goodput (Mbit/s)", 1e6),
            ("goodput_bps", 900.0, "goodput (bit/s)", 1.0),
            ("utilization", 0.97, "utilisation (share)", 1.0),
            ("jain", 1.0, "Jain's fairness index (0 to 1)", 1.0),
            ("queue_delay_mean_ms", 12.0, "mean queueing delay (ms)", 1.0),
            ("completion_s", 0.2, "flow completion time (ms)", 1e-3),
            ("links.bottleneck.rate_bps", 1e9, "rate of bottleneck (Mbit/s)", 1e6),
            ("links.bottleneck.delay_s", 0.1, "delay of bottleneck (ms)", 1e-3),
            ("flows.ftp.count", 50.0, "count of ftp (flows)", 1.0),
            ("drops", 3.0, "drops (packets)", 1.0),
            ("size_bytes", 3e6, "size (MB)", 1e6),
            ("p99(flows.web.completion_s)", 2.0, "p99 of flow completion time of web (s)", 1.0),
            ("p99.9(flows.web.completion_s)", 0.2, "p99.9 of flow completion time of web (ms)", 1e-3),
            ("sum(flows.*.goodput_bps)", 9e6, "sum of goodput of all flows (Mbit/s)", 1e6),
            ("jain(flows.*.goodput_bps)", 0.9, "Jain's index of goodput of all flows (0 to 1)", 1.0),
            ("links.b.queue_packets at 2 s", 9.0, "links.b.queue_packets at 2 s (packets)", 1.0),
        ] {
            assert_eq!(label_of(column, highest), (label.to_owned(), factor), "{column}");
        }
        for name in quantities() {
            assert!(label_of(&name, 1.0).0.ends_with(')'), "{name}");
        }
    }

    #[test]
    fn labels_of_papers_have_their_unit_in_brackets() {
        for (label, shown) in [
            ("throughput, Mbit/s", "throughput (Mbit/s)"),
            ("XCP, goodput, Mbit/s", "XCP, goodput (Mbit/s)"),
            ("utilization", "utilisation (share)"),
            ("time, s", "time (s)"),
            ("queue (packets)", "queue (packets)"),
            ("load factor", "load factor (1)"),
        ] {
            assert_eq!(unit_in_brackets(label), shown);
        }
    }
}

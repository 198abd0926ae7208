//! The charts of a recording in the order in which people want them, with titles and units.

use congestlab_core::law::queue::Discipline;
use congestlab_core::law::{Column, Protocol};

use super::{Chart, Of, Recording};

/// How a metric is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// What it is.
    pub title: String,
    /// Unit of the axis.
    pub unit: &'static str,
    /// One unit, in the unit of the results.
    pub factor: f64,
}

impl Label {
    /// Title and unit, after the unit.
    pub fn axis(&self) -> String {
        if self.unit.is_empty() { self.title.clone() } else { format!("{} ({})", self.title, self.unit) }
    }
}

/// Metrics of docs/design/contract.md 5 in the order in which people want them; those of laws come
/// behind the first [`BEFORE_LAWS`].
const TITLES: [(Of, &str, &str); 14] = [
    (Of::Flows, "received_bps", "Received throughput of flows: data that arrived at their receivers"),
    (Of::Flows, "arrived_bytes", "Data that arrived at the receivers of flows, each byte once"),
    (Of::Flows, "cwnd_packets", "Congestion window of flows"),
    (Of::Links, "queue_packets", "Queue of links"),
    (Of::Links, "queue_delay_ms", "Queueing delay of links"),
    (Of::Links, "utilization", "Utilisation of links"),
    (Of::Links, "estimate_bps", "Estimated bandwidth"),
    (Of::Links, "truth_bps", "True bandwidth"),
    (Of::Links, "probe_bps", "Probe traffic"),
    (Of::Flows, "srtt_ms", "Smoothed round-trip time of flows"),
    (Of::Flows, "throughput_bps", "Sending rate of flows, before any link, repeated data too"),
    (Of::Links, "queue_max_packets", "Longest queue within a bin"),
    (Of::Links, "throughput_bps", "Throughput of links"),
    (Of::Links, "collisions", "Collisions within a bin"),
];

/// Metrics of [`TITLES`] that are more wanted than those of laws.
const BEFORE_LAWS: usize = 6;

/// All metrics with their titles, in the order in which people want them.
fn titles() -> Vec<(Of, &'static str, &'static str)> {
    let (first, last) = TITLES.split_at(BEFORE_LAWS);
    let of_laws = Protocol::all().flat_map(|protocol| {
        let of = |of: Of| move |column: &Column| (of, column.name, column.title);
        let links = protocol.link_series.iter().map(of(Of::Links));
        links.chain(protocol.flow_series.iter().map(of(Of::Flows)))
    });
    let of_queues = Discipline::all_series().map(|column| (Of::Links, column.name, column.title));
    first.iter().copied().chain(of_laws).chain(last.iter().copied()).chain(of_queues).collect()
}

/// The charts of a recording in the order of the report, each with its label. A metric that nobody
/// described is drawn last, by its own name.
pub fn charts(recording: &Recording) -> Vec<(&Chart, Label)> {
    let titles = titles();
    let place =
        |chart: &Chart| titles.iter().position(|(of, name, _)| *of == chart.of && *name == chart.metric);
    // The same curve as in packets, for nearly all traffic.
    let wanted = recording.charts().iter().filter(|chart| chart.metric != "queue_bytes");
    let mut charts: Vec<&Chart> = wanted.collect();
    charts.sort_by_key(|chart| place(chart).unwrap_or(titles.len()));
    charts
        .into_iter()
        .map(|chart| {
            let title = place(chart).map_or(chart.metric.as_str(), |place| titles[place].2);
            let (unit, factor) = unit(chart);
            (chart, Label { title: title.to_owned(), unit, factor })
        })
        .collect()
}

/// The unit in which the largest value of a chart has few digits.
fn unit(chart: &Chart) -> (&'static str, f64) {
    let values = chart.series.iter().flatten().map(|value| f64::from(value.abs()));
    // `max` skips what was not measured.
    let highest = values.fold(0.0, f64::max);
    let scaled = |units: [&'static str; 4]| match highest {
        2e9.. => (units[3], 1e9),
        2e6.. => (units[2], 1e6),
        2e3.. => (units[1], 1e3),
        _ => (units[0], 1.0),
    };
    match chart.metric.rsplit('_').next() {
        Some("bps") => scaled(["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]),
        Some("Bps") => scaled(["B/s", "kB/s", "MB/s", "GB/s"]),
        Some("bytes") => scaled(["B", "kB", "MB", "GB"]),
        Some("packets") => ("packets", 1.0),
        Some("ms") => ("ms", 1.0),
        _ if chart.metric == "utilization" => ("%", 0.01),
        _ => ("", 1.0),
    }
}

//! `congestlab compare --exact`: differences of two runs of the simulator.

use std::fmt::Write as _;
use std::path::Path;

use congestlab_scenario::diff::{self, Differences, Parting};
use congestlab_scenario::store;
use serde_json::Value;

use crate::failure::{Failure, Message};
use crate::folder;
use crate::output::{Screen, print};
use crate::signals;
use crate::table::{NOTHING, Table};
use crate::version::VERSION;

/// Metrics that are shown without --all.
const METRICS_SHOWN_MAX: usize = 20;

/// Prints the differences of two runs in folders. Metrics may differ by a share of their value.
///
/// # Errors
///
/// If a folder is no run. With `must_be_equal` also if the runs differ.
pub(crate) fn exact(
    paths: [&Path; 2],
    tolerance: f64,
    all: bool,
    must_be_equal: bool,
    screen: &Screen,
) -> Result<(), Failure> {
    let runs = [folder::open_run(paths[0], screen)?, folder::open_run(paths[1], screen)?];
    let stop = signals::stop_flag_for_good(screen)?;
    let differences = diff::diff([&runs[0], &runs[1]], tolerance, VERSION, &stop)
        .map_err(Failure::folder)?
        .ok_or_else(|| Failure::Interrupted("interrupted before the runs parted".into()))?;
    let names = paths.map(|path| path.display().to_string());
    print(&if screen.json { store::pretty(&differences) } else { tell(&differences, &names, all) })?;
    if must_be_equal && !differences.equal {
        return Err(Failure::Claim(Message::new(format!("{} and {} differ", names[0], names[1]), "")));
    }
    Ok(())
}

fn tell(differences: &Differences, names: &[String; 2], all: bool) -> String {
    let Differences {
        configuration, metrics, first_event, packets_refused, first_packet, fingerprints, ..
    } = differences;
    if differences.equal {
        return format!("{} and {} are equal: fingerprint {}\n", names[0], names[1], fingerprints[0]);
    }
    let same = fingerprints[0] == fingerprints[1];
    let mut text = format!(
        "one    {}, fingerprint {}\nother  {}, fingerprint {}\n",
        names[0], fingerprints[0], names[1], fingerprints[1]
    );
    text.push_str("\nconfiguration");
    if configuration.is_empty() {
        text.push_str(": equal\n");
    } else {
        text.push('\n');
        let mut table = Table::new(["", "one", "other"]);
        let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| NOTHING.into(), Value::to_string);
        for setting in configuration {
            table.row(vec![setting.path.clone(), shown(&setting.one), shown(&setting.other)]);
        }
        text.push_str(&table.render());
    }
    let _ = write!(text, "\nmetrics: {} of {} differ", metrics.len(), differences.metrics_compared);
    text.push_str(if metrics.is_empty() { "\n" } else { ", the largest relative difference first\n" });
    if !metrics.is_empty() {
        let mut table = Table::new(["", "one", "other", "difference", "relative"]);
        let shown = |value: Option<f64>| value.map_or_else(|| NOTHING.into(), plain);
        let limit = if all { usize::MAX } else { METRICS_SHOWN_MAX };
        for metric in metrics.iter().take(limit) {
            let relative =
                metric.relative.map_or_else(|| NOTHING.into(), |share| format!("{:.2} %", share * 100.0));
            table.row(vec![
                metric.path.clone(),
                shown(metric.one),
                shown(metric.other),
                shown(metric.difference),
                relative,
            ]);
        }
        text.push_str(&table.render());
        if metrics.len() > limit {
            let _ = writeln!(text, "  and {} more (--all)", metrics.len() - limit);
        }
    }
    parting(&mut text, "event on record", first_event.as_ref());
    if same {
        text.push_str("\nno packet differs: the fingerprints are equal\n");
    } else if let Some(reason) = packets_refused {
        let _ = writeln!(text, "\npackets are not compared: {reason}");
    } else {
        parting(&mut text, "packet", first_packet.as_ref());
    }
    text
}

fn parting(text: &mut String, what: &str, parting: Option<&Parting>) {
    let Some(Parting { t_s, one, other }) = parting else {
        let _ = writeln!(text, "\nno {what} differs");
        return;
    };
    let shown = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing like it".into());
    let _ = write!(
        text,
        "\nfirst {what} that differs, at {t_s} s\n  one    {}\n  other  {}\n",
        shown(one),
        shown(other)
    );
}

/// A number as the results have it, but not of more digits than can be read.
fn plain(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value}");
    }
    let scientific = format!("{value:e}");
    let exponent: i32 =
        scientific.rsplit_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let digits = (6 - exponent).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

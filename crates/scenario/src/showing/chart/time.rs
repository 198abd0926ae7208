//! What runs show over time.

use congestlab_sim::outcome::{Element, FlowOutcome, Outcome, Sample};
use serde_json::Value as Json;

use super::label::label_of;
use super::{ChartError, Curve, Mark, Panel, Picture, labels, nothing};
use crate::judging::fairness::jain;
use crate::judging::figure::{Kind, Wish};
use crate::judging::metric::{Series, series_name};
use crate::judging::observation::PointResult;
use crate::results::folder::{RunFolder, SeriesRow};
use crate::showing::recording::{Of, Recording, Spread};
use crate::showing::style;
use congestlab_text::diagnostic::choices;
use congestlab_text::tree::NONE;

/// What runs show over time: throughput, queueing delay and utilisation, or what was asked for.
///
/// # Errors
/// If a run can not be read, or has no such series, or lines are wanted by what runs do not have.
pub fn over_time(runs: &[RunFolder], wish: &Wish) -> Result<Picture, ChartError> {
    // Each element of each run has a line of its own, whichever of these is asked for.
    let known = ["law", "element", "label"];
    if let Some(by) = wish.by.as_deref().filter(|by| !known.contains(by)) {
        return Err(ChartError::Unknown {
            what: "over time there are no lines by",
            found: by.to_owned(),
            allowed: choices(by, known).into(),
        });
    }
    let mut panels: Vec<Panel> = Vec::new();
    let wanted: Vec<Vec<&str>> = match (wish.kind, wish.y.as_deref()) {
        (_, Some(y)) => vec![vec![y]],
        (Some(Kind::Fairness), None) => vec![vec!["jain"]],
        (Some(Kind::Delay), None) => vec![vec!["queue_delay_ms", "queue_packets"]],
        _ => vec![
            vec!["received_bps", "throughput_bps"],
            vec!["queue_delay_ms", "queue_packets"],
            vec!["utilization"],
        ],
    };
    let names = labels(runs);
    let mut known: Vec<String> = vec!["jain".to_owned()];
    let mut found: Vec<Vec<(String, Vec<Curve>)>> = vec![Vec::new(); wanted.len()];
    for (run, label) in runs.iter().zip(&names) {
        let recording = Recording::read(run)?;
        for chart in recording.charts() {
            if !known.contains(&chart.metric) {
                known.push(chart.metric.clone());
            }
        }
        let label = if runs.len() > 1 { label.as_str() } else { "" };
        for (names, found) in wanted.iter().zip(&mut found) {
            let of = |name: &&str| {
                curves_of(&recording, run, name, label).map(|curves| ((*name).to_owned(), curves))
            };
            found.extend(names.iter().find_map(of));
        }
    }
    for (names, found) in wanted.iter().zip(found) {
        let Some((metric, _)) = found.first() else {
            if wish.y.is_none() {
                continue;
            }
            let wanted = names.first().copied().unwrap_or_default();
            let allowed = choices(wanted, known.iter().map(String::as_str)).into();
            return Err(ChartError::Unknown {
                what: "no run has a series",
                found: wanted.to_owned(),
                allowed,
            });
        };
        let metric = metric.clone();
        let mut curves: Vec<Curve> = found.into_iter().flat_map(|(_, curves)| curves).collect();
        let data = curves.iter().filter(|curve| !matches!(curve.mark, Mark::Bound(_)));
        let highest = data.flat_map(|curve| &curve.points).map(|(_, y)| y.abs()).filter(|y| y.is_finite());
        let (label, factor) = label_of(&metric, highest.fold(0.0, f64::max));
        for curve in &mut curves {
            curve.points.iter_mut().for_each(|(_, y)| *y /= factor);
            curve
                .spread
                .iter_mut()
                .for_each(|(_, low, high)| (*low, *high) = (*low / factor, *high / factor));
        }
        panels.push(Panel { label, is_logarithmic: false, curves });
    }
    if panels.is_empty() {
        return Err(nothing(
            "the run has no series to draw",
            "give it a duration and measure.every that leave bins",
        ));
    }
    let has_spread = panels.iter().flat_map(|panel| &panel.curves).any(|curve| !curve.spread.is_empty());
    let note =
        if has_spread { "lines: median of the flows of a group, area: 5 % to 95 % of them" } else { "" };
    Ok(Picture {
        x_label: "time (s)".into(),
        is_logarithmic: false,
        categories: Vec::new(),
        panels,
        note: note.into(),
    })
}

/// The curves of one series of a run; `None`: it has none.
fn curves_of(recording: &Recording, run: &RunFolder, metric: &str, label: &str) -> Option<Vec<Curve>> {
    let times = recording.times();
    let groups = recording.groups();
    let flows = recording.flows();
    let flow_laws = run.scenario().flow_laws();
    let link_laws = run.scenario().link_laws();
    let points = |values: &[f32]| -> Vec<(f64, f64)> {
        times.iter().copied().zip(values.iter().map(|value| f64::from(*value))).collect()
    };
    let named = |name: &str, law: Option<&str>| {
        let mut words: Vec<&str> = vec![label, name, law.unwrap_or("")];
        words.retain(|word| !word.is_empty());
        words.dedup();
        // A label that is the law says it.
        if words.len() > 1 && words.first() == words.last() {
            words.pop();
        }
        words.join(", ")
    };
    let line = |name: String, law: Option<&str>, mark, points| Curve {
        name,
        law: law.map(str::to_owned),
        mark,
        points,
        spread: Vec::new(),
        samples: Vec::new(),
    };
    if metric == "jain" {
        let chart = recording
            .charts()
            .iter()
            .find(|chart| chart.of == Of::Flows && chart.metric == "received_bps")?;
        let fair = |at: usize| -> f64 {
            let values: Vec<f64> = chart
                .series
                .iter()
                .filter_map(|series| series.get(at).map(|value| f64::from(*value)))
                .filter(|value| value.is_finite())
                .collect();
            jain(&values).unwrap_or(f64::NAN)
        };
        let law = flow_laws.first().copied().flatten();
        let law = law.filter(|law| flow_laws.iter().all(|other| *other == Some(*law)));
        let values = times.iter().enumerate().map(|(at, time)| (*time, fair(at))).collect();
        return Some(vec![line(named("all flows", law), law, Mark::Line, values)]);
    }
    let mut curves = Vec::new();
    for chart in recording.charts().iter().filter(|chart| chart.metric == metric) {
        if chart.of == Of::Flows {
            for Spread { group, quantiles } in &chart.spreads {
                let (name, count) = &groups[*group];
                let law = flow_laws.get(*group).copied().flatten();
                let [low, middle, high] = quantiles.each_ref().map(|values| points(values));
                let mut curve = line(format!("{}: {count} flows", named(name, law)), law, Mark::Line, middle);
                curve.spread = low.iter().zip(&high).map(|(low, high)| (low.0, low.1, high.1)).collect();
                curve.samples = vec![*count];
                curves.push(curve);
            }
            for place in recording.flows_drawn() {
                let (group, flow) = flows[place];
                let (name, count) = &groups[group];
                let has_spread = chart.spreads.iter().any(|spread| spread.group == group);
                if chart.series[place].is_empty() || has_spread {
                    continue;
                }
                let law = flow_laws.get(group).copied().flatten();
                let (name, mark) = match *count {
                    1 => (named(name, law), Mark::Line),
                    ..=style::APART_MAX => (named(&format!("{name} {}", flow + 1), law), Mark::Line),
                    _ => (format!("{}: {count} flows", named(name, law)), Mark::Thin),
                };
                curves.push(line(name, law, mark, points(&chart.series[place])));
            }
        } else {
            let names = recording.link_names();
            for place in recording.links_drawn() {
                let name = &names[place];
                if chart.series[place].is_empty() || name.ends_with(".reverse") {
                    continue;
                }
                let model = run.scenario().base_model().links.iter().position(|link| link.name == *name);
                let law = model.and_then(|model| link_laws.get(model).copied().flatten());
                curves.push(line(
                    named(name, law),
                    law.or(Some(NONE)),
                    Mark::Line,
                    points(&chart.series[place]),
                ));
            }
        }
    }
    (!curves.is_empty()).then_some(curves)
}

/// The points of a figure in the folder of a run.
///
/// # Errors
/// If its tables can not be read.
pub fn point_of_run(run: &RunFolder) -> Result<PointResult, ChartError> {
    let scenario = run.scenario();
    let model = scenario.base_model();
    let mut outcome = Outcome { complete: true, ..Outcome::default() };
    for group in &model.groups {
        let flows = run.summary()["flows"][&group.name].as_array();
        let number = |flow: &Json, key: &str| flow[key].as_f64();
        let each = |flow: &Json| FlowOutcome {
            start_s: number(flow, "start_s").unwrap_or(0.0),
            completion_s: number(flow, "completion_s"),
            ..FlowOutcome::default()
        };
        outcome.groups.push(flows.into_iter().flatten().map(each).collect());
    }
    let place = |row: &SeriesRow<'_>| -> Option<Element> {
        let group = || model.groups.iter().position(|group| group.name == row.element);
        let link = || model.links.iter().position(|link| link.name == row.element);
        match row.index {
            Some(flow) => Some(Element::Flow(u32::try_from(group()?).ok()?, flow)),
            None => Some(Element::Link(u32::try_from(link()?).ok()?)),
        }
    };
    let mut samples: Vec<Sample> = Vec::new();
    let mut take = |row: SeriesRow<'_>| {
        let (Some(element), Some(metric)) = (place(&row), series_name(row.metric)) else { return };
        samples.push(Sample { at: (row.t_s * 1e12).round() as u64, element, metric, value: row.value });
    };
    run.flow_series(&mut take)?;
    run.link_series(&mut take)?;
    outcome.series = samples;
    let series = Series::new(&outcome, model);
    let curves = scenario.curves().map(|metric| (metric.text().to_owned(), metric.curves(&series))).collect();
    let readings = scenario
        .metrics()
        .map(|metric| (metric.text().to_owned(), metric.read(run.summary(), Some(&series))))
        .collect();
    Ok(PointResult {
        index: 0,
        run: run.name(),
        settings: Vec::new(),
        result: run.summary().clone(),
        readings,
        curves,
        laws: scenario.laws_by_name(),
    })
}

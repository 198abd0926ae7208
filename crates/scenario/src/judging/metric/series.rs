//! The time series of a run, and what paths name in them.

use std::collections::BTreeMap;

use congestlab_net::packet::Picos;
use congestlab_sim::outcome::{Element, Outcome};

use crate::judging::fairness::{Life, convergence_s};

/// The time series of a run, with the names of its elements.
pub struct Series<'a> {
    outcome: &'a Outcome,
    links: Vec<&'a str>,
    groups: Vec<&'a str>,
}

impl<'a> Series<'a> {
    /// The series of an outcome; names in the order of the model.
    pub fn new(outcome: &'a Outcome, model: &'a congestlab_sim::model::Model) -> Self {
        Self {
            outcome,
            links: model.links.iter().map(|link| link.name.as_str()).collect(),
            groups: model.groups.iter().map(|group| group.name.as_str()).collect(),
        }
    }

    /// When a flow began and was complete; always of a link.
    pub(super) fn life(&self, target: &Target<'_>, (place, index): (u32, u32)) -> (Picos, Picos) {
        let group = self.outcome.groups.get(place as usize).filter(|_| target.table == "flows");
        let Some(flow) = group.and_then(|flows| flows.get(index as usize)) else { return (0, Picos::MAX) };
        let picos = |seconds: f64| (seconds * 1e12).round() as Picos;
        let end = flow.completion_s.map_or(Picos::MAX, |after| picos(flow.start_s + after));
        (picos(flow.start_s), end)
    }

    /// Values by place of the link or group, and flow (0 for a link), each in time order.
    pub(super) fn select(&self, target: &Target<'_>) -> BTreeMap<(u32, u32), Vec<(Picos, f64)>> {
        let mut selected: BTreeMap<(u32, u32), Vec<(Picos, f64)>> = BTreeMap::new();
        for sample in self.outcome.series.iter().filter(|sample| sample.metric == target.metric) {
            let (table, names, element) = match sample.element {
                Element::Link(link) => ("links", &self.links, (link, 0)),
                Element::Cloud(link, number) => ("links", &self.links, (link, number)),
                Element::Flow(group, flow) => ("flows", &self.groups, (group, flow)),
            };
            let is_wanted = target.table == table
                && target.name.has(names[element.0 as usize])
                && target.index.is_none_or(|wanted| wanted == element.1 as usize);
            if is_wanted {
                selected.entry(element).or_default().push((sample.at, sample.value));
            }
        }
        selected
    }

    /// The convergence time of the flows of a group, or of all, s.
    pub(super) fn convergence_s(&self, name: Option<&str>) -> Option<f64> {
        let name = name.map_or(Name::Any { reverse: false }, Name::One);
        let target = Target { table: "flows", name, index: None, metric: "goodput_bps" };
        let series = self.select(&target);
        // A bin begins where the one before ended.
        let every = series.values().find_map(|list| list.first()).map(|&(at, _)| at as f64 / 1e12)?;
        let lives = series.into_iter().filter_map(|((group, index), list)| {
            let flow = self.outcome.groups.get(group as usize)?.get(index as usize)?;
            let goodputs = list.into_iter().map(|(_, value)| value).collect();
            Some(Life::new(flow.start_s, flow.stop_s, flow.completion_s, goodputs))
        });
        convergence_s(&lives.collect::<Vec<_>>(), every)
    }
}

/// Element that a path into the series names.
pub(super) struct Target<'a> {
    pub(super) table: &'a str,
    pub(super) name: Name<'a>,
    pub(super) index: Option<usize>,
    pub(super) metric: &'a str,
}

/// Link or group that a metric describes.
#[derive(Clone, Copy)]
pub(super) enum Name<'a> {
    One(&'a str),
    /// Every link that the file has, or the other direction of each; every group.
    Any {
        reverse: bool,
    },
}

impl Name<'_> {
    pub(super) fn has(self, name: &str) -> bool {
        match self {
            Self::One(own) => own == name,
            Self::Any { reverse } => name.ends_with(REVERSE) == reverse,
        }
    }
}

/// How the names of the other directions of links end.
const REVERSE: &str = ".reverse";

//! The series and events of a run, as they will be drawn: one pass over any number of samples.

mod bins;
mod labels;

use std::collections::BTreeMap;

use congestlab_net::packet::Picos;
use congestlab_sim::model::Model;
use congestlab_sim::outcome::{Element, Outcome};
pub use labels::{Label, charts};
use serde_json::Value as Json;

use self::bins::{Grid, picos, seconds};
use crate::language::scenario::Scenario;
use crate::results::folder::{FolderError, RunFolder, SeriesRow};
use crate::showing::style;
use crate::showing::style::Look;

/// More flows than this are drawn as the spread of their group, and one by one on demand.
pub const FLOWS_DRAWN_MAX: usize = 12;
/// Flows and links that can be looked at one by one; the rest is in the spreads, tables and data.
const FLOWS_KEPT_MAX: usize = 2000;
const LINKS_KEPT_MAX: usize = 100;
/// Links that are drawn without being asked for.
const LINKS_DRAWN_MAX: usize = 8;
/// Points of a series: twice the pixels of a wide chart.
const POINTS_MAX: usize = 2000;
/// Values in a report: 7 MB of numbers, 9 MB of text.
const VALUES_MAX: usize = 1_700_000;
/// Of most elements, at most.
const METRICS_PER_FLOW: usize = 5;
const METRICS_PER_LINK: usize = 8;
/// Times and counts of events: 5 MB of text.
const EVENTS_MAX: usize = 400_000;
/// The same for one kind and element.
const EVENTS_EACH_MAX: usize = 4000;
/// Kinds of events of one element.
const KINDS_PER_ELEMENT: usize = 3;

/// Whose a chart is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// One line a flow.
    Flows,
    /// One line a link.
    Links,
}

/// How the flows of a group are spread, at each time.
#[derive(Clone, Debug)]
pub struct Spread {
    /// Index of the group.
    pub group: usize,
    /// 5th, 50th and 95th percentile.
    pub quantiles: [Vec<f32>; 3],
}

/// One metric of all flows or links.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Whose.
    pub of: Of,
    /// Name in the results.
    pub metric: String,
    /// By index among the elements that are kept; empty where there is nothing.
    pub series: Vec<Vec<f32>>,
    /// Of groups too large to draw each flow.
    pub spreads: Vec<Spread>,
}

/// Events of one kind at one element.
#[derive(Clone, Debug)]
pub struct Marks {
    /// `drop`, `timeout`, ...
    pub kind: String,
    /// Whose.
    pub of: Of,
    /// Index among the elements that are kept.
    pub index: usize,
    /// Time of the first, seconds, and count: of events too close together to tell apart.
    pub at: Vec<(f32, u32)>,
}

/// What a report draws.
#[derive(Clone, Debug)]
pub struct Recording {
    grid: Grid,
    /// Links that are kept, as indices of the model.
    links: Vec<usize>,
    /// Flows that are kept, as indices over the whole run.
    flows: Vec<usize>,
    /// The way back, by index of the model.
    link_places: Vec<Option<usize>>,
    flow_places: Vec<Option<usize>>,
    /// First flow of each group, and the number of all flows.
    first: Vec<usize>,
    /// What each link can carry in a second, as the utilisation counts it.
    model: Model,
    /// When each flow of the run began and was complete: outside there is nothing of it.
    lives: Vec<(Picos, Picos)>,
    /// Bytes of each flow that arrived at its receiver, each once.
    arrived: Vec<f64>,
    /// The looks of the groups, and of the links that are kept.
    looks: (Vec<Look>, Vec<Look>),
    charts: Vec<Chart>,
    /// Values of this bin by chart and group: what the spreads are taken of.
    crowds: Vec<Vec<Vec<f64>>>,
    crowded_at: Picos,
    marks: Vec<Marks>,
    /// Index into `marks`, by kind and then place.
    kinds: Vec<(Of, String, Vec<Option<usize>>)>,
    /// Times of events nearer than this are one, seconds.
    event_width: f32,
    events: u64,
}

impl Recording {
    /// Nothing yet, of a run of the scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let model = scenario.base_model().clone();
        let mut first = vec![0];
        for group in &model.groups {
            first.push(first.last().unwrap_or(&0) + group.count as usize);
        }
        let all = first.last().copied().unwrap_or(0);
        let flows = spread_evenly(all, FLOWS_KEPT_MAX);
        // Forward links come first: a reverse direction follows its link.
        let mut links: Vec<usize> = (0..model.links.len()).collect();
        links.sort_by_key(|&link| model.links[link].name.ends_with(".reverse"));
        links.truncate(LINKS_KEPT_MAX);
        links.sort_unstable();

        let of_links = style::assign(&scenario.link_laws());
        let looks = (
            style::assign(&scenario.flow_laws()),
            links.iter().map(|&link| of_links.get(link).copied().unwrap_or(style::nth(link))).collect(),
        );

        let series = flows.len() * METRICS_PER_FLOW + links.len() * METRICS_PER_LINK;
        let points = (VALUES_MAX / series.max(1)).clamp(200, POINTS_MAX);
        let every = model.sample_every.unwrap_or(model.duration / 100);
        let marks = (flows.len() + links.len()) * KINDS_PER_ELEMENT;
        let marks_each = (EVENTS_MAX / marks.max(1)).clamp(50, EVENTS_EACH_MAX);
        Self {
            grid: Grid::new(model.duration, every, points),
            link_places: places(&links, model.links.len()),
            flow_places: places(&flows, all),
            links,
            flows,
            first,
            looks,
            charts: Vec::new(),
            crowds: Vec::new(),
            crowded_at: 0,
            marks: Vec::new(),
            kinds: Vec::new(),
            lives: vec![(0, Picos::MAX); all],
            arrived: vec![0.0; all],
            event_width: (seconds(model.duration) / marks_each as f64) as f32,
            events: 0,
            model,
        }
    }

    /// All of a run.
    pub fn of(scenario: &Scenario, outcome: &Outcome) -> Self {
        let mut recording = Self::new(scenario);
        let mut number = 0;
        for flows in &outcome.groups {
            flows.each(|flow| {
                recording.live(number, flow.start_s, flow.completion_s);
                number += 1;
            });
        }
        for sample in &outcome.series {
            recording.sample(sample.at, sample.element, sample.metric, sample.value);
        }
        for event in &outcome.events {
            recording.event(event.at, event.element, event.kind, event.flow);
        }
        recording.finish();
        recording
    }

    /// The same of a run on disk.
    ///
    /// # Errors
    /// If its tables are damaged.
    pub fn read(folder: &RunFolder) -> Result<Self, FolderError> {
        let mut recording = Self::new(folder.scenario());
        let groups = folder.summary()["flows"].as_object().into_iter().flat_map(|groups| groups.values());
        for (flow, of) in groups.filter_map(Json::as_array).flatten().enumerate() {
            recording.live(flow, of["start_s"].as_f64().unwrap_or(0.0), of["completion_s"].as_f64());
        }
        let model = folder.scenario().base_model();
        let names =
            |names: Vec<&String>| -> BTreeMap<String, u32> { names.into_iter().cloned().zip(0..).collect() };
        let links = names(model.links.iter().map(|link| &link.name).collect());
        let groups = names(model.groups.iter().map(|group| &group.name).collect());
        let place = |name: &str, index: Option<u32>| match index {
            None => links.get(name).map(|&link| Element::Link(link)),
            Some(flow) => groups.get(name).map(|&group| Element::Flow(group, flow)),
        };
        let mut sample = |row: SeriesRow<'_>| {
            if let Some(element) = place(row.element, row.index) {
                recording.sample(picos(row.t_s), element, row.metric, row.value);
            }
        };
        folder.flow_series(&mut sample)?;
        folder.link_series(&mut |row: SeriesRow<'_>| {
            let Some(&link) = links.get(row.element) else { return };
            let element = row.index.map_or(Element::Link(link), |number| Element::Cloud(link, number));
            recording.sample(picos(row.t_s), element, row.metric, row.value);
        })?;
        folder.events(|row| {
            let flow = row.flow.and_then(|name| place(name, row.flow_index));
            let flow = flow.and_then(|flow| recording.number(flow)).and_then(|flow| flow.try_into().ok());
            if let Some(element) = place(row.element, row.index) {
                recording.event(picos(row.t_s), element, row.event, flow);
            }
        })?;
        recording.finish();
        Ok(recording)
    }

    /// A flow began at `start_s`, and was complete so long after.
    fn live(&mut self, flow: usize, start_s: f64, completion_s: Option<f64>) {
        if let Some(life) = self.lives.get_mut(flow) {
            *life = (picos(start_s), completion_s.map_or(Picos::MAX, |after| picos(start_s + after)));
        }
    }

    /// The number of a flow over the whole run.
    fn number(&self, element: Element) -> Option<usize> {
        match element {
            Element::Link(_) | Element::Cloud(..) => None,
            Element::Flow(group, flow) => self.first.get(group as usize).map(|first| first + flow as usize),
        }
    }

    /// A value of the bin that ends at `at`. In order of time.
    pub fn sample(&mut self, at: Picos, element: Element, metric: &str, value: f64) {
        if at != self.crowded_at {
            self.close_crowds();
            self.crowded_at = at;
        }
        match element {
            // Of several clouds of a link the first is drawn.
            Element::Link(link) | Element::Cloud(link, 0) => {
                let link = link as usize;
                let Some(place) = self.link_places.get(link).copied().flatten() else { return };
                let chart = self.chart(Of::Links, metric);
                self.grid.put(&mut self.charts[chart].series[place], at, value);
                if metric == "throughput_bps"
                    && let Some(share) = self.utilization(link, at, value)
                {
                    let chart = self.chart(Of::Links, "utilization");
                    self.grid.put(&mut self.charts[chart].series[place], at, share);
                }
            }
            Element::Cloud(..) => {}
            Element::Flow(group, flow) => {
                let group = group as usize;
                let Some(first) = self.first.get(group) else { return };
                let flow = first + flow as usize;
                let begin = self.begin_of(at);
                if self.lives.get(flow).is_none_or(|&(from, to)| at <= from || to <= begin) {
                    return;
                }
                let place = self.flow_places.get(flow).copied().flatten();
                let (metric, value) = match metric {
                    "goodput_bps" => {
                        self.arrived[flow] += value * seconds(at - begin) / 8.0;
                        ("arrived_bytes", self.arrived[flow])
                    }
                    _ => (metric, value),
                };
                let chart = self.chart(Of::Flows, metric);
                if let Some(place) = place {
                    self.grid.put(&mut self.charts[chart].series[place], at, value);
                }
                if self.is_crowd(group) {
                    self.crowds[chart][group].push(value);
                }
            }
        }
    }

    /// Begin of the bin that ends at `at`.
    fn begin_of(&self, at: Picos) -> Picos {
        let every = self.model.sample_every.unwrap_or(self.model.duration / 100).max(1);
        (at.saturating_sub(1) / every) * every
    }

    /// Bits sent in the bin that ends at `at`, of those that could be (docs/design/contract.md 5).
    fn utilization(&self, link: usize, at: Picos, throughput_bps: f64) -> Option<f64> {
        let begin = self.begin_of(at);
        let could = self.model.links[link].port.service.work(begin, at) as f64 / 1e12;
        (could > 0.0).then(|| throughput_bps * seconds(at - begin) / could)
    }

    /// Something that happened; `flow` is counted over the whole run.
    pub fn event(&mut self, at: Picos, element: Element, kind: &str, flow: Option<u32>) {
        // Drawn as the series feedback and interval.
        if kind == "control-interval" {
            return;
        }
        self.events += 1;
        let flow = match element {
            Element::Link(link) | Element::Cloud(link, _) => {
                let place = self.link_places.get(link as usize).copied().flatten();
                self.mark(at, Of::Links, place, kind);
                flow.map(|flow| flow as usize)
            }
            Element::Flow(..) => self.number(element),
        };
        let place = flow.and_then(|flow| self.flow_places.get(flow).copied().flatten());
        self.mark(at, Of::Flows, place, kind);
    }

    fn mark(&mut self, at: Picos, of: Of, place: Option<usize>, kind: &str) {
        let Some(place) = place else { return };
        let found = self.kinds.iter().position(|(other, name, _)| *other == of && name == kind);
        let row = found.unwrap_or_else(|| {
            let count = if of == Of::Links { self.links.len() } else { self.flows.len() };
            self.kinds.push((of, kind.to_owned(), vec![None; count]));
            self.kinds.len() - 1
        });
        let marks = *self.kinds[row].2[place].get_or_insert_with(|| {
            self.marks.push(Marks { kind: kind.to_owned(), of, index: place, at: Vec::new() });
            self.marks.len() - 1
        });
        let time = seconds(at) as f32;
        match self.marks[marks].at.last_mut() {
            Some((first, count)) if time - *first < self.event_width => *count = count.saturating_add(1),
            _ => self.marks[marks].at.push((time, 1)),
        }
    }

    /// The chart of a metric, made at its first value.
    fn chart(&mut self, of: Of, metric: &str) -> usize {
        let found = self.charts.iter().position(|chart| chart.of == of && chart.metric == metric);
        found.unwrap_or_else(|| {
            let count = if of == Of::Links { self.links.len() } else { self.flows.len() };
            let groups = 0..self.model.groups.len();
            let crowded = groups.filter(|&group| of == Of::Flows && self.is_crowd(group));
            self.charts.push(Chart {
                of,
                metric: metric.to_owned(),
                series: vec![Vec::new(); count],
                spreads: crowded.map(|group| Spread { group, quantiles: Default::default() }).collect(),
            });
            self.crowds.push(vec![Vec::new(); self.model.groups.len()]);
            self.charts.len() - 1
        })
    }

    /// Takes the spreads of the bin that is over.
    fn close_crowds(&mut self) {
        let (grid, at) = (&self.grid, self.crowded_at);
        for (chart, crowds) in self.charts.iter_mut().zip(&mut self.crowds) {
            for spread in &mut chart.spreads {
                let crowd = &mut crowds[spread.group];
                if crowd.is_empty() {
                    continue;
                }
                crowd.sort_unstable_by(f64::total_cmp);
                for (percent, quantile) in [5, 50, 95].into_iter().zip(&mut spread.quantiles) {
                    // Nearest rank, as in the results.
                    let rank = (crowd.len() * percent).div_ceil(100).max(1) - 1;
                    grid.put(quantile, at, crowd[rank]);
                }
                crowd.clear();
            }
        }
    }

    /// After the last sample.
    pub fn finish(&mut self) {
        self.close_crowds();
        // Time-weighted readings of flows that never were.
        self.charts.retain(|chart| chart.series.iter().any(|series| !series.is_empty()));
    }

    /// True if the group's flows are drawn as a spread.
    fn is_crowd(&self, group: usize) -> bool {
        let count = self.model.groups[group].count as usize;
        self.flow_count() > FLOWS_DRAWN_MAX && count > 4
    }

    /// All flows of the run.
    pub fn flow_count(&self) -> usize {
        self.flow_places.len()
    }

    /// Times of all series, seconds.
    pub fn times(&self) -> Vec<f64> {
        self.grid.times()
    }

    /// Charts in the order in which their metrics first came.
    pub fn charts(&self) -> &[Chart] {
        &self.charts
    }

    /// Events that are drawn.
    pub fn marks(&self) -> &[Marks] {
        &self.marks
    }

    /// Events that there were, but for control intervals.
    pub fn event_count(&self) -> u64 {
        self.events
    }

    /// How long the run was, seconds.
    pub fn duration_s(&self) -> f64 {
        seconds(self.model.duration)
    }

    /// Length of a bin, seconds, and how many share two points.
    pub fn bins(&self) -> (f64, u64) {
        (self.grid.every_s(), self.grid.shared())
    }

    /// Names of the links that are kept.
    pub fn link_names(&self) -> Vec<String> {
        self.links.iter().map(|&link| self.model.links[link].name.clone()).collect()
    }

    /// Links of the run.
    pub fn link_count(&self) -> usize {
        self.link_places.len()
    }

    /// Group and index within it of the flows that are kept.
    pub fn flows(&self) -> Vec<(usize, usize)> {
        let place = |&flow: &usize| {
            let group = self.first.partition_point(|&first| first <= flow).saturating_sub(1);
            (group, flow - self.first[group])
        };
        self.flows.iter().map(place).collect()
    }

    /// Name and size of the groups.
    pub fn groups(&self) -> Vec<(String, usize)> {
        self.model.groups.iter().map(|group| (group.name.clone(), group.count as usize)).collect()
    }

    /// How each group of flows looks.
    pub fn group_looks(&self) -> &[Look] {
        &self.looks.0
    }

    /// How each link that is kept looks.
    pub fn link_looks(&self) -> &[Look] {
        &self.looks.1
    }

    /// Indices among the kept flows of those that are drawn without being asked for: all if they are
    /// few, else the first of each group.
    pub fn flows_drawn(&self) -> Vec<usize> {
        let flows = self.flows();
        let is_drawn = |&(group, flow): &(usize, usize)| !self.is_crowd(group) || flow == 0;
        let drawn = (0..flows.len()).filter(|&place| is_drawn(&flows[place]));
        drawn.take(FLOWS_DRAWN_MAX).collect()
    }

    /// The same of the links. A direction that only carries ACKs is rarely what somebody looks for.
    pub fn links_drawn(&self) -> Vec<usize> {
        let name = |place: usize| &self.model.links[self.links[place]].name;
        let has_marks =
            |&place: &usize| self.marks.iter().any(|marks| marks.of == Of::Links && marks.index == place);
        let (reverse, forward): (Vec<usize>, Vec<usize>) =
            (0..self.links.len()).partition(|&place| name(place).ends_with(".reverse"));
        let reverse = reverse.into_iter().filter(has_marks).take(LINKS_DRAWN_MAX);
        forward.into_iter().take(LINKS_DRAWN_MAX).chain(reverse).collect()
    }
}

/// At most `count_max` of `0..all`, evenly.
fn spread_evenly(all: usize, count_max: usize) -> Vec<usize> {
    let count = all.min(count_max);
    (0..count).map(|i| i * all / count).collect()
}

fn places(kept: &[usize], all: usize) -> Vec<Option<usize>> {
    let mut places = vec![None; all];
    for (place, &element) in kept.iter().enumerate() {
        places[element] = Some(place);
    }
    places
}

//! What was seen of one run of a sweep: what claims ask, and what figures draw.

use congestlab_core::law::Protocol;
use serde_json::Value as Json;

use crate::judging::metric::{Metric, Reading, TimeSeries};
use crate::judging::seeds::{SEED, Settings, UnusedSeeds};

/// One run of a sweep, as claims see it.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Something in it was drawn by its seed: with another one it is another run.
    pub is_random: bool,
    /// Path and value (as TOML) of every axis.
    pub settings: Vec<(String, String)>,
    /// What the metrics of all claims gave, by their text.
    pub readings: Vec<(String, Reading)>,
}

impl Observation {
    pub(crate) fn read(&self, metric: &Metric) -> &Reading {
        let found = self.readings.iter().find(|(text, _)| text == metric.text());
        found.map_or(&Reading::Nothing, |(_, reading)| reading)
    }

    /// Settings of the point, without its seed.
    pub(crate) fn point(&self) -> Settings {
        self.settings.iter().filter(|(path, _)| path != SEED).cloned().collect()
    }

    /// Finds the points of these runs at which seeds changed nothing.
    pub fn unused_seeds(runs: &[Self]) -> Option<UnusedSeeds> {
        UnusedSeeds::of(runs.iter().map(|run| (run.point(), run.setting(SEED), run.is_random)))
    }

    pub(crate) fn setting(&self, path: &str) -> Option<&str> {
        self.settings.iter().find(|(other, _)| other == path).map(|(_, value)| value.as_str())
    }
}

/// A complete point.
#[derive(Clone, Debug)]
pub struct PointResult {
    /// Position in the sweep.
    pub index: usize,
    /// `<scenario>-<seed>-<hash>`, as the folder of the same run is called.
    pub run: String,
    /// Path, and value as TOML, of every axis.
    pub settings: Vec<(String, String)>,
    /// The result object of docs/design/contract.md 5.
    pub result: Json,
    /// What the metrics of the claims and of the figure gave.
    pub readings: Vec<(String, Reading)>,
    /// The series of a figure over time, by metric: (s, value) for each flow.
    pub curves: Vec<(String, Vec<TimeSeries>)>,
    /// The law of each link and of each group, in the order of the result; `None` without one.
    pub(crate) laws: [Vec<Option<String>>; 2],
}

impl PointResult {
    /// As claims see it.
    pub fn observation(&self) -> Observation {
        Observation {
            is_random: self.is_random(),
            settings: self.settings.clone(),
            readings: self.readings.clone(),
        }
    }

    /// The law of all that a metric reads, if that is one: of flows theirs, of links what the flows of the run have. A protocol
    /// of links alone, as P-XCP, is told by them.
    pub(crate) fn law_of(&self, metric: &Metric) -> Option<String> {
        fn one<'a>(mut laws: impl Iterator<Item = &'a Option<String>>) -> Option<&'a str> {
            let first = laws.next()?.as_deref()?;
            laws.all(|law| law.as_deref() == Some(first)).then_some(first)
        }
        let [of_links, of_flows] = &self.laws;
        let mut with_law = of_links.iter().filter(|law| law.is_some()).peekable();
        let of_link = with_law.peek().is_some().then(|| one(with_law)).flatten();
        let is_of_links = |law: &&str| Protocol::of(law).is_some_and(|protocol| protocol.sender.is_none());
        if let Some(law) = of_link.filter(is_of_links) {
            return Some(law.to_owned());
        }
        let place = |name: &str| self.result["flows"].as_object()?.keys().position(|other| other == name);
        let groups: Vec<&str> = metric
            .reads()
            .filter(|(table, name, _)| *table == "flows" && *name != "*")
            .map(|(_, name, _)| name)
            .collect();
        if groups.is_empty() {
            return one(of_flows.iter()).map(str::to_owned);
        }
        let laws = groups.iter().map(|name| of_flows.get(place(name)?)).collect::<Option<Vec<_>>>()?;
        one(laws.into_iter()).map(str::to_owned)
    }

    /// Something was drawn by its seed. What does not say is taken for what it is called: a run of its seed.
    pub(crate) fn is_random(&self) -> bool {
        self.result["seed_used"] != false
    }
}

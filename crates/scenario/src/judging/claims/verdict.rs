//! How runs are held against a claim.
//!
//! A claim holds, fails, or is undecided: the interval of a mean lies across a bound, or there is nothing to divide by.
//! Runs in which nothing was drawn are one run, however many seeds they have. A ratio over several seeds is that of the
//! means, not the mean of ratios. Of several points the worst verdict is the claim's.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::rule::{Along, Limit, Side, number};
use super::{CheckedClaim, Decide, Observation, Trend, axis_value};
use crate::judging::grid::Axis;
use crate::judging::metric::{Metric, Reading};
use crate::judging::seeds;
pub use crate::judging::seeds::Settings;
use crate::judging::seeds::{Confidence, Estimate, SEED, SEEDS_MIN, next_seeds};
use congestlab_text::cells::{Cell, Quantity};
use congestlab_text::number::{interval, significant};
use congestlab_text::tree::inline;

/// What becomes of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Judgement {
    /// It holds.
    Holds,
    /// The runs do not say whether it does.
    Undecided,
    /// It does not hold.
    Fails,
}

impl Judgement {
    /// The word of results.
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Undecided => "undecided",
            Self::Fails => "fails",
        }
    }
}

/// The verdict on a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The claim in words.
    pub that: String,
    /// Its metric.
    pub metric: String,
    /// Whether it holds.
    pub judgement: Judgement,
    /// What was measured and asked, in one line.
    pub text: String,
    /// The same by point where seeds decide together, and of single runs those that fail; empty where the line says it.
    pub points: Vec<Judged>,
}

impl Verdict {
    /// The claim holds.
    pub fn holds(&self) -> bool {
        self.judgement == Judgement::Holds
    }
}

/// A claim at one point of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Path and value (as TOML) of what the sweep varies.
    pub at: Vec<(String, String)>,
    /// The value that was measured.
    pub measured: Cell,
    /// Whether the claim holds there.
    pub judgement: Judgement,
}

/// Why a claim does not hold.
#[derive(Debug)]
struct Miss {
    is_undecided: bool,
    text: String,
}

impl Miss {
    fn undecided(text: impl Into<String>) -> Self {
        Self { is_undecided: true, text: text.into() }
    }

    fn judgement(&self) -> Judgement {
        if self.is_undecided { Judgement::Undecided } else { Judgement::Fails }
    }

    fn at(self, place: &str) -> Self {
        Self { text: self.text + place, ..self }
    }
}

impl From<String> for Miss {
    fn from(text: String) -> Self {
        Self { is_undecided: false, text }
    }
}

impl From<&str> for Miss {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl CheckedClaim {
    /// A series of which it is has no value in any of the runs. That a flow does not complete, say, is a value of a kind.
    pub(crate) fn reads_nothing(&self, runs: &[Observation]) -> bool {
        let selected = || runs.iter().filter(|run| self.is_about(run));
        let is_nothing = |reading: &Reading| match reading {
            Reading::List(list) => list.iter().all(|reading| *reading == Reading::Nothing),
            reading => *reading == Reading::Nothing,
        };
        self.metrics()
            .iter()
            .any(|metric| metric.is_of_law() && selected().all(|run| is_nothing(run.read(metric))))
    }

    /// Of some point of which it is made too few of the runs are left: none, or of a mean less than an interval is made of.
    pub fn lacks_runs(&self, all: &[Observation], left: &[Observation]) -> bool {
        let about = |runs: &[Observation]| -> Vec<Observation> {
            runs.iter().filter(|run| self.is_about(run)).cloned().collect()
        };
        let (all, left) = (about(all), about(left));
        let left = by_point(&left.iter().collect::<Vec<_>>());
        let enough = if self.claim.decision() == Decide::Mean { SEEDS_MIN } else { 1 };
        let has_enough =
            |point: &Settings| left.iter().any(|(other, runs)| other == point && runs.len() >= enough);
        by_point(&all.iter().collect::<Vec<_>>()).iter().any(|(point, _)| !has_enough(point))
    }

    /// Holds the claim against the runs, which nobody has looked at before: intervals are of 95 %.
    pub fn verdict(&self, runs: &[Observation]) -> Verdict {
        self.verdict_at(runs, Confidence::Once)
    }

    /// Holds the claim against the runs. Where a mean is undecided, `more` gives those of more seeds, up to 100 in all. Each of
    /// up to five looks is at intervals of 99 %, so that together they decide wrongly in at most 5 % of the cases (Bonferroni);
    /// a claim that can not have more seeds is looked at once.
    ///
    /// # Errors
    /// As `more`.
    pub fn settled<E>(&self, mut runs: Vec<Observation>, more: &mut MoreRuns<'_, E>) -> Result<Verdict, E> {
        let is_drawn = runs.iter().any(|run| run.is_random && self.claim.is_about(run));
        let mut seeds: BTreeSet<u64> = runs.iter().filter_map(Observation::seed).collect();
        let can_have_more =
            self.is_of_means() && is_drawn && !self.claim.chooses(SEED) && next_seeds(&seeds).is_some();
        if !can_have_more {
            return Ok(self.verdict(&runs));
        }
        loop {
            let verdict = self.verdict_at(&runs, Confidence::EachLook);
            if verdict.judgement != Judgement::Undecided {
                return Ok(verdict);
            }
            let open = verdict.points.iter().filter(|point| point.judgement == Judgement::Undecided);
            let open: Vec<Settings> = open.map(|point| point.at.clone()).collect();
            let next = next_seeds(&seeds).filter(|_| !open.is_empty());
            let Some(next) = next else { return Ok(verdict) };
            runs.extend(more(&next, &open)?);
            seeds.extend(next);
        }
    }

    fn verdict_at(&self, runs: &[Observation], confidence: Confidence) -> Verdict {
        let mut points = Vec::new();
        let (judgement, text) = match self.judge(runs, confidence, &mut points) {
            Ok(text) => (Judgement::Holds, text),
            Err(miss) => (miss.judgement(), miss.text),
        };
        Verdict { that: self.that().into(), metric: self.measured(), judgement, text, points }
    }

    /// What was measured; `Err` where the claim does not hold.
    fn judge(
        &self,
        runs: &[Observation],
        confidence: Confidence,
        points: &mut Vec<Judged>,
    ) -> Result<String, Miss> {
        let about: Vec<&Observation> = runs.iter().filter(|run| self.claim.is_about(run)).collect();
        let bases = self.bases(runs);
        let selected = different(&about, &|run| self.draws(run, &bases));
        if selected.is_empty() {
            return Err("no run to judge by".into());
        }
        let judged = self.judge_different(&selected, &bases, confidence, points);
        let is_one = selected.len() < about.len() && selected.len() == by_point(&selected).len();
        let note = if is_one { " (one run: seeds changed nothing)" } else { "" };
        judged.map(|text| text + note).map_err(|miss| miss.at(note))
    }

    /// The same of runs that differ.
    fn judge_different(
        &self,
        selected: &[&Observation],
        bases: &Bases<'_>,
        confidence: Confidence,
        points: &mut Vec<Judged>,
    ) -> Result<String, Miss> {
        let read = |run: &Observation| self.reading(run, bases);
        let by_bounds = match &self.along {
            Some((axis, Along::Crossover(other))) => self.judge_crossover(other, axis, selected),
            _ => match self.claim.decision() {
                Decide::Each => self.judge_each(selected, &read, points),
                Decide::Mean => self.judge_mean(selected, bases, confidence, points),
                Decide::Half => self.judge_half(selected, &read, points),
            },
        };
        let by_trend = match &self.along {
            Some((axis, Along::Trend(trend))) => Some(self.judge_trend(*trend, axis, selected, bases)),
            _ => None,
        };
        match (by_bounds, by_trend) {
            (by_bounds, None) => by_bounds,
            (Ok(text), Some(Ok(trend))) => Ok(format!("{text}; {trend}")),
            // What fails is said before what is open.
            (Err(open), Some(Err(fails))) if open.is_undecided => Err(fails),
            (by_bounds, by_trend) => {
                by_bounds?;
                by_trend.unwrap_or(Ok(String::new()))
            }
        }
    }
}

/// A bound of a claim, and the value that misses it most or comes nearest to that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worst {
    /// The value; `None`: nothing was measured somewhere, or there was nothing to divide by.
    pub value: Option<f64>,
    /// The bound.
    pub bound: f64,
    /// True if values are to lie above the bound.
    pub is_least: bool,
}

impl Worst {
    /// How far the value is on the wrong side of the bound; 0: it is not, `None`: there is no value.
    pub fn short_by(&self) -> Option<f64> {
        let far = |value: f64| if self.is_least { self.bound - value } else { value - self.bound };
        self.value.map(|value| far(value).max(0.0))
    }
}

impl CheckedClaim {
    /// Returns the bounds of the claim, each with the worst value of the runs, one by one: seeds are not averaged. Rules that are
    /// no bounds, such as `ordered`, have no part in it.
    pub fn worst(&self, runs: &[Observation]) -> Vec<Worst> {
        let bases = self.bases(runs);
        let mut values: Vec<Option<f64>> = Vec::new();
        for run in runs.iter().filter(|run| self.claim.is_about(run)) {
            match self.reading(run, &bases) {
                Ok(Reading::List(list)) => values.extend(list.iter().map(Reading::number)),
                Ok(reading) => values.push(reading.number()),
                Err(_) => values.push(None),
            }
        }
        let values: Option<Vec<f64>> = values.into_iter().collect();
        let worst = |limit: &Limit| {
            let is_least = limit.side == Side::Least;
            let worse = |one: f64, other: f64| if is_least { one.min(other) } else { one.max(other) };
            let value = values.as_ref().and_then(|values| values.iter().copied().reduce(worse));
            Worst { value, bound: limit.value, is_least }
        };
        self.limits.iter().map(worst).collect()
    }
}

impl Observation {
    /// Its seed, if the sweep varies that.
    fn seed(&self) -> Option<u64> {
        self.setting(SEED)?.parse().ok()
    }
}

impl CheckedClaim {
    /// What the claim looks at, in words.
    fn measured(&self) -> String {
        let main = self.metric.text();
        let base = self.claim.ratio_to.as_ref().map(|base| base.value.text());
        match &self.claim.against {
            None => base.map_or(main.to_owned(), |base| format!("{main} / {base}")),
            Some(against) => {
                let of = |axis: &Axis| Some((axis.path.value.clone(), inline(&axis.values.first()?.value)));
                let values: Vec<_> = against.value.0.iter().filter_map(of).collect();
                format!("{main} / {}{}", base.unwrap_or(main), self.place(&values))
            }
        }
    }

    /// Where in a sweep, for messages. What is zipped to others is said once.
    fn place(&self, settings: &[(String, String)]) -> String {
        let told = settings.iter().filter(|(path, _)| !self.followers.contains(path));
        let list: Vec<String> = told.map(|(path, value)| format!("{path} = {value}")).collect();
        if list.is_empty() { String::new() } else { format!(" at {}", list.join(", ")) }
    }

    /// The metric of a run, as the claim looks at it.
    fn reading(&self, run: &Observation, bases: &Bases<'_>) -> Result<Reading, Miss> {
        if self.claim.ratio_to.is_none() && self.claim.against.is_none() {
            return Ok(run.read(&self.metric).clone());
        }
        match self.parts(run, bases)? {
            (_, 0.0) => Err(self.nothing_to_divide_by()),
            (number, base) => Ok(Reading::Number(number / base)),
        }
    }

    /// The metric of a run and what it is divided by.
    fn parts(&self, run: &Observation, bases: &Bases<'_>) -> Result<(f64, f64), Miss> {
        let value = number(run.read(&self.metric))?;
        if self.claim.ratio_to.is_none() && self.claim.against.is_none() {
            return Ok((value, 1.0));
        }
        let base = self.claim.ratio_to.as_ref().map_or(&self.metric, |base| &base.value);
        Ok((value, number(self.base_run(run, bases)?.read(base))?))
    }

    fn nothing_to_divide_by(&self) -> Miss {
        let base = self.claim.ratio_to.as_ref().map_or(&self.metric, |base| &base.value);
        Miss::undecided(format!("{} is 0, and nothing to divide by", base.text()))
    }

    /// The run that `against` means: that with its values, all else equal.
    fn base_run<'a>(&self, run: &'a Observation, bases: &Bases<'a>) -> Result<&'a Observation, String> {
        if self.claim.against.is_none() {
            return Ok(run);
        }
        bases.get(&self.beside(run)).copied().ok_or_else(|| "`against` means no run".into())
    }

    /// Something was drawn in a run, or in what it is compared with.
    fn draws(&self, run: &Observation, bases: &Bases<'_>) -> bool {
        run.is_random || self.base_run(run, bases).is_ok_and(|base| base.is_random)
    }

    /// The runs that have the values of `against`, by their other values.
    fn bases<'a>(&self, runs: &'a [Observation]) -> Bases<'a> {
        let mut bases = Bases::new();
        for run in runs
            .iter()
            .filter(|run| self.claim.against.as_ref().is_some_and(|against| against.value.has(run)))
        {
            bases.entry(self.beside(run)).or_insert(run);
        }
        bases
    }

    /// The values of a run that `against` says nothing of.
    fn beside<'a>(&self, run: &'a Observation) -> Vec<&'a (String, String)> {
        let against = self.claim.against.iter().flat_map(|against| &against.value.0);
        let varied: Vec<&str> = against.map(|axis| axis.path.value.as_str()).collect();
        run.settings.iter().filter(|(path, _)| !varied.contains(&path.as_str())).collect()
    }

    /// What the claim says of the mean over the seeds, at each point.
    fn judge_mean(
        &self,
        runs: &[&Observation],
        bases: &Bases<'_>,
        confidence: Confidence,
        points: &mut Vec<Judged>,
    ) -> Result<String, Miss> {
        let mut said = Said::default();
        for (point, runs) in by_point(runs) {
            let is_random = runs.iter().any(|run| self.draws(run, bases));
            let estimate = match self.estimate(&runs, bases, confidence) {
                Ok(estimate) if is_random && runs.len() < SEEDS_MIN => {
                    Err((significant(estimate.mean), format!("{} seeds are too few", runs.len()).into()))
                }
                Ok(estimate) => Ok(estimate),
                Err(miss) => Err((NOTHING.to_owned(), miss)),
            };
            let estimate = match estimate {
                Ok(estimate) => estimate,
                Err((text, miss)) => {
                    said.add(self, &point, text, Cell::Number(None, Quantity::Any), Err(miss));
                    continue;
                }
            };
            let mut text = significant(estimate.mean);
            if is_random {
                text = interval(estimate.mean, estimate.half);
                if runs.len() > SEEDS_MIN {
                    text = format!("{text} of {} seeds", runs.len());
                }
            }
            let cell = Cell::Interval(Some(estimate.mean), is_random.then_some(estimate.half));
            said.add(self, &point, text, cell, self.judge_interval(&estimate));
        }
        points.append(&mut said.points);
        said.of(&self.measured())
    }

    /// The mean over the runs of a point.
    fn estimate(
        &self,
        runs: &[&Observation],
        bases: &Bases<'_>,
        confidence: Confidence,
    ) -> Result<Estimate, Miss> {
        let of =
            |run: &&Observation| self.parts(run, bases).map_err(|miss| miss.at(&self.place(&run.settings)));
        let parts: Vec<(f64, f64)> = runs.iter().map(of).collect::<Result<_, Miss>>()?;
        Estimate::of_ratio(&parts, confidence).ok_or_else(|| self.nothing_to_divide_by())
    }

    /// The interval of a mean lies within the bounds, outside, or across one.
    fn judge_interval(&self, estimate: &Estimate) -> Result<(), Miss> {
        let mut across = None;
        for Limit { name, value: limit, side } in &self.limits {
            let (near, far) = match side {
                Side::Least => (estimate.high(), estimate.low()),
                Side::Most => (estimate.low(), estimate.high()),
            };
            if !side.holds(near, *limit) {
                return Err(format!("{name} {limit}").into());
            }
            if !side.holds(far, *limit) {
                across.get_or_insert_with(|| Miss::undecided(format!("undecided, {name} {limit}")));
            }
        }
        across.map_or(Ok(()), Err)
    }

    /// What the claim says of half of the seeds, at each point.
    fn judge_half(
        &self,
        runs: &[&Observation],
        read: Read<'_>,
        points: &mut Vec<Judged>,
    ) -> Result<String, Miss> {
        let mut said = Said::default();
        for (point, runs) in by_point(runs) {
            let judge = |run: &&Observation| match read(run) {
                Ok(reading) => self.judge_reading(run, &reading).map_err(Miss::from),
                Err(miss) => Err(miss),
            };
            let judged: Vec<Result<(), Miss>> = runs.iter().map(judge).collect();
            let holding = judged.iter().filter(|run| run.is_ok()).count();
            let open = judged.iter().flat_map(|run| run.as_ref().err()).filter(|miss| miss.is_undecided);
            let open = open.count();
            let text = match open {
                0 => format!("{holding} of {} seeds", runs.len()),
                open => format!("{holding} of {} seeds, {open} undecided", runs.len()),
            };
            let cell = Cell::Text(text.clone());
            let judged = if 2 * holding >= runs.len() {
                Ok(())
            } else if 2 * (holding + open) >= runs.len() {
                Err(self.nothing_to_divide_by())
            } else {
                Err("less than half".into())
            };
            said.add(self, &point, text, cell, judged);
        }
        points.append(&mut said.points);
        said.of(&self.measured())
    }

    /// What the claim says of each run.
    fn judge_each(
        &self,
        runs: &[&Observation],
        read: Read<'_>,
        points: &mut Vec<Judged>,
    ) -> Result<String, Miss> {
        let mut seen: Vec<f64> = Vec::new();
        let mut said = Said::default();
        for run in runs {
            let reading = match read(run) {
                Ok(reading) => reading,
                Err(miss) => {
                    let cell = Cell::Number(None, Quantity::Any);
                    said.add(self, &run.settings, NOTHING.to_owned(), cell, Err(miss));
                    continue;
                }
            };
            let cell = match &reading {
                Reading::Number(value) => Cell::Number(Some(*value), Quantity::Any),
                other => Cell::Text(other.to_string()),
            };
            let judged = self.judge_reading(run, &reading).map_err(Miss::from);
            said.add(self, &run.settings, reading.to_string(), cell, judged);
            match reading {
                Reading::List(list) => seen.extend(list.iter().filter_map(Reading::number)),
                reading => seen.extend(reading.number()),
            }
        }
        // A thousand runs that hold are a range.
        points.extend(said.points.drain(..).filter(|point| point.judgement != Judgement::Holds));
        said.of(&self.measured())?;
        let (low, high) =
            seen.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
        let (least, most) = (significant(low), significant(high));
        Ok(match seen.len() {
            0 => "no value".into(),
            1 => least,
            count if least == most => format!("{least} in {count} values"),
            count => format!("{least} to {most} in {count} values"),
        })
    }

    fn judge_reading(&self, run: &Observation, reading: &Reading) -> Result<(), String> {
        let readings = match reading {
            Reading::List(list) => list.as_slice(),
            single => std::slice::from_ref(single),
        };
        for Limit { name, value: limit, side } in &self.limits {
            let holds = |reading: &Reading| reading.number().is_some_and(|value| side.holds(value, *limit));
            if !readings.iter().all(holds) {
                return Err(format!("{name} {limit}"));
            }
        }
        self.rules.iter().try_for_each(|rule| rule.hold(run, readings))
    }

    /// Which way the means go along an axis.
    fn judge_trend(
        &self,
        trend: Trend,
        axis: &str,
        runs: &[&Observation],
        bases: &Bases<'_>,
    ) -> Result<String, Miss> {
        let parts =
            |run: &Observation| self.parts(run, bases).map_err(|miss| miss.at(&self.place(&run.settings)));
        let curve = along(axis, runs, parts)?;
        let values: Vec<f64> = curve.iter().map(|&(_, value)| value).collect();
        if trend.holds(&values) {
            Ok(show(&curve))
        } else {
            Err(format!("{} along {axis} is {}", self.measured(), show(&curve)).into())
        }
    }

    /// Where the difference of the two metrics changes its sign, between the axis' values by a straight line. Where it is 0
    /// between two signs, it is there; 0 between equal signs or at an end is no crossing.
    fn judge_crossover(&self, other: &Metric, axis: &str, runs: &[&Observation]) -> Result<String, Miss> {
        let difference =
            |run: &Observation| Ok((number(run.read(&self.metric))? - number(run.read(other))?, 1.0));
        let curve = along(axis, runs, difference)?;
        let shown = show(&curve);
        let mut crossings = Vec::new();
        let signed: Vec<usize> = (0..curve.len()).filter(|&at| curve[at].1 != 0.0).collect();
        for pair in signed.windows(2) {
            let [(x0, y0), (x1, y1)] = [curve[pair[0]], curve[pair[1]]];
            if (y0 > 0.0) == (y1 > 0.0) {
                continue;
            }
            crossings.push(match &curve[pair[0] + 1..pair[1]] {
                [] => x0 + (x1 - x0) * (y0 / (y0 - y1)),
                zeros => (zeros[0].0 + zeros[zeros.len() - 1].0) / 2.0,
            });
        }
        let [at] = crossings[..] else {
            let text = format!("{} crossings along {axis}; differences {shown}", crossings.len());
            return Err(text.into());
        };
        let said = format!("crossover at {axis} = {at}");
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        for Limit { value: limit, side, .. } in &self.limits {
            match side {
                Side::Least => low = low.max(*limit),
                Side::Most => high = high.min(*limit),
            }
        }
        if (low..=high).contains(&at) {
            Ok(said)
        } else {
            Err(format!("{said}, not in [{low}, {high}]").into())
        }
    }
}

/// Makes runs of these seeds at these points, and of what a claim compares them with.
pub type MoreRuns<'a, E> = dyn FnMut(&[u64], &[Settings]) -> Result<Vec<Observation>, E> + 'a;
/// Runs that others are compared with, by what both have in common.
type Bases<'a> = BTreeMap<Vec<&'a (String, String)>, &'a Observation>;
/// Reads a run as a claim looks at it.
type Read<'a> = &'a dyn Fn(&Observation) -> Result<Reading, Miss>;

/// What is measured where nothing is.
const NOTHING: &str = "nothing";

/// More points that fail are counted, not listed.
const FAILING_SHOWN: usize = 4;

/// What is said of points, good ones and bad ones.
#[derive(Default)]
struct Said {
    good: Vec<String>,
    open: Vec<String>,
    bad: Vec<String>,
    /// What the first one missed that is open, and the first bad one.
    why: [String; 2],
    points: Vec<Judged>,
}

impl Said {
    fn add(
        &mut self,
        claim: &CheckedClaim,
        at: &[(String, String)],
        text: String,
        measured: Cell,
        judged: Result<(), Miss>,
    ) {
        let text = text + &claim.place(at);
        let judgement = judged.as_ref().map_or_else(Miss::judgement, |()| Judgement::Holds);
        self.points.push(Judged { at: at.to_vec(), measured, judgement });
        let Err(miss) = judged else { return self.good.push(text) };
        let (list, why) = match judgement {
            Judgement::Undecided => (&mut self.open, &mut self.why[0]),
            _ => (&mut self.bad, &mut self.why[1]),
        };
        if list.is_empty() {
            *why = miss.text;
        }
        list.push(text);
    }

    fn of(&self, measured: &str) -> Result<String, Miss> {
        let is_undecided = self.bad.is_empty();
        let (list, why) = if is_undecided { (&self.open, &self.why[0]) } else { (&self.bad, &self.why[1]) };
        if list.is_empty() {
            return Ok(self.good.join("; "));
        }
        let shown = list.iter().take(FAILING_SHOWN).cloned().collect::<Vec<_>>().join("; ");
        let all = self.good.len() + self.open.len() + self.bad.len();
        let more = match list.len().saturating_sub(FAILING_SHOWN) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let of = if all > 1 { format!(" ({} of {all})", list.len()) } else { String::new() };
        Err(Miss { is_undecided, text: format!("{measured} is {shown}{more}: {why}{of}") })
    }
}

/// Runs without those that differ from another one by nothing but their seed's name: nothing was drawn.
fn different<'a>(runs: &[&'a Observation], draws: &dyn Fn(&Observation) -> bool) -> Vec<&'a Observation> {
    let is_same = |runs: &[&Observation]| runs.len() > 1 && !runs.iter().any(|run| draws(run));
    by_point(runs)
        .into_iter()
        .flat_map(|(_, mut runs)| {
            if is_same(&runs) {
                runs.truncate(1);
            }
            runs
        })
        .collect()
}

/// Runs that differ by their seed alone, point by point, in the order of the sweep.
fn by_point<'a>(runs: &[&'a Observation]) -> Vec<(Settings, Vec<&'a Observation>)> {
    seeds::by_point(runs.iter().map(|run| (&run.settings, *run)))
}

/// The mean of `value` at each value of the axis, in the order of the axis; of a ratio that of the means. Each point has the same
/// weight, however many runs it has.
fn along(
    axis: &str,
    runs: &[&Observation],
    value: impl Fn(&Observation) -> Result<(f64, f64), Miss>,
) -> Result<Vec<(f64, f64)>, Miss> {
    let mut points: Vec<(f64, (f64, f64))> = Vec::new();
    let groups = match axis {
        SEED => runs.iter().map(|run| vec![*run]).collect(),
        _ => by_point(runs).into_iter().map(|(_, runs)| runs).collect::<Vec<_>>(),
    };
    for runs in groups {
        let setting = runs[0].setting(axis).ok_or_else(|| format!("a run has no {axis}"))?;
        let parsed = congestlab_text::tree::value_of(setting).and_then(|value| axis_value(&value));
        let x = parsed.ok_or_else(|| format!("{axis} = {setting} is not on a number line"))?;
        let parts: Vec<(f64, f64)> = runs.iter().map(|run| value(run)).collect::<Result<_, Miss>>()?;
        let count = parts.len() as f64;
        let (above, below) = parts.iter().fold((0.0, 0.0), |(a, b), (above, below)| (a + above, b + below));
        points.push((x, (above / count, below / count)));
    }
    points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mean = |same: &[(f64, (f64, f64))]| {
        let (above, below) = same.iter().fold((0.0, 0.0), |(a, b), (_, part)| (a + part.0, b + part.1));
        if below == 0.0 {
            return Err(Miss::undecided(format!("there is nothing to divide by at {axis} = {}", same[0].0)));
        }
        Ok((same[0].0, above / below))
    };
    points.chunk_by(|(a, _), (b, _)| a == b).map(mean).collect()
}

fn show(curve: &[(f64, f64)]) -> String {
    let list: Vec<String> =
        curve.iter().map(|(x, y)| format!("{}: {}", significant(*x), significant(*y))).collect();
    list.join(", ")
}

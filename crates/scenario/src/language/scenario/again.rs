//! A scenario run again to be sure of a verdict: with more seeds, and with a claim's cause switched off.

use crate::judging::claims::{CheckedClaim, Control, Controlled, PAIRS, Settings, no_pair};
use crate::judging::figure::Figure;
use crate::judging::grid::{Axis, PLAN, Sweep};
use crate::judging::observation::Observation;
use crate::judging::seeds::SEED;
use crate::language::scenario::Scenario;
use congestlab_text::decode::At;
use congestlab_text::diagnostic::{Diagnostics, Findings, choices};
use congestlab_text::path::Step;
use congestlab_text::tree::{Node, inline};
use congestlab_text::{path, tree};

impl Scenario {
    /// Points that a claim is about, and what it compares them with, with these seeds.
    ///
    /// # Errors
    /// If there are too many points.
    pub fn with_seeds(
        &self,
        seeds: &[u64],
        claim: &CheckedClaim,
        points: &[Settings],
    ) -> Result<Self, Diagnostics> {
        let mut findings = Findings::new(self.sources.clone());
        let mut root = self.root.clone();
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        // An axis that nothing is paired with is as good in the grid.
        tree::remove(&mut root, &["sweep", "zip", SEED].map(|key| Step::Key(key.into())));
        tree::vary(&mut root, "more seeds", SEED, &seeds, &mut findings);
        self.rebuilt(root, findings, &|run| claim.is_about_one_of(points, run))
    }

    /// Returns what is said of a claim's cause, by it or for all claims of the figure.
    pub fn controlled(&self, claim: &CheckedClaim) -> Controlled {
        match claim.control().or_else(|| self.figure().and_then(Figure::control)) {
            None => Controlled::Unsaid,
            Some(Control::Nothing) => Controlled::NoEffect,
            Some(Control::Reason(reason)) => Controlled::Reason(reason.clone()),
            Some(Control::Settings(_)) => Controlled::SwitchedOff,
        }
    }

    /// The points that a claim is about with its cause switched off, and the claim about them; `None`: the claim names no
    /// cause that can be.
    ///
    /// # Errors
    /// If the settings of the control make no scenario, or none that the claim can be about.
    pub fn control(&self, claim: &CheckedClaim) -> Result<Option<(Self, CheckedClaim)>, Diagnostics> {
        let said = claim.control().or_else(|| self.figure().and_then(Figure::control));
        let Some(control) = said.filter(|control| !control.settings().is_empty()) else { return Ok(None) };
        let mut findings = Findings::new(self.sources.clone());
        let mut root = self.root.clone();
        let swept = self.file.sweep.as_ref().map_or(Vec::new(), |sweep| Axis::all(&sweep.value));
        check_control(control, claim, &swept, &mut findings);
        for (path, node) in control.settings() {
            // The claim chooses points by what is swept.
            if let (Ok(steps), true) =
                (path::parse(&path.value), swept.iter().all(|axis| axis.path.value != path.value))
            {
                tree::replace(&mut root, &path.value, &steps, node.clone(), path.span, &mut findings);
            }
        }
        let axes: Vec<String> = swept.into_iter().map(|axis| axis.path.value).collect();
        let claim = claim.at(control, &axes);
        let scenario = self.rebuilt(root, findings, &|run| claim.is_about(run))?;
        if let (Some(text), Some((path, _))) =
            (claim.unread(&super::elements(&scenario.file), &scenario.sources), control.settings().first())
        {
            let mut findings = Findings::new(self.sources.clone());
            let message = format!("`control` of \"{}\" leaves nothing of `{text}`", claim.that());
            let help = "switch the cause off, and keep the links and flows of which the claim is";
            findings.error("scenario::claim", path.span, message, help);
            return Err(findings.finish());
        }
        Ok(Some((scenario, claim)))
    }

    /// The same claims, with nothing to control them and nothing to show, over what the file now says.
    fn rebuilt(
        &self,
        mut root: Node,
        findings: Findings,
        is_wanted: &dyn Fn(&Observation) -> bool,
    ) -> Result<Self, Diagnostics> {
        // They were checked against the sweep as it is written.
        for key in ["claims", "figure"] {
            tree::remove(&mut root, &[Step::Key(key.into())]);
        }
        let mut scenario = Self::build(self.name.clone(), self.files.clone(), root, findings, true)?;
        scenario.claims = self.claims.iter().map(CheckedClaim::without_control).collect();
        scenario.sweep.iter_mut().for_each(|sweep| sweep.retain(is_wanted));
        Ok(scenario)
    }

    /// Holds the controls of the claims against the file.
    pub(crate) fn check_controls(&self, findings: &mut Findings) {
        for claim in self.claims() {
            let control = self.control(claim).and_then(|control| match control {
                Some((scenario, _)) => scenario.check().map(|_| ()),
                None => Ok(()),
            });
            if let Err(diagnostics) = control {
                findings.absorb(diagnostics);
            }
        }
    }
}

/// Refuses what no run can have beside the sweep, and what switches no cause off.
fn check_control(control: &Control, claim: &CheckedClaim, swept: &[Axis], findings: &mut Findings) {
    let mut refuse = |at: &At<String>, message: String, help: &str| {
        findings.error("scenario::claim", at.span, format!("`control` {message}"), help);
    };
    for (path, node) in control.settings() {
        let name = &path.value;
        let steps = match path::parse(name) {
            Ok(steps) => steps,
            Err(error) => {
                refuse(path, error.message, "such as links.bottleneck.ack_loss");
                continue;
            }
        };
        if name == SEED {
            refuse(path, "sets `run.seed`".into(), "a seed is no cause");
        } else if matches!(&steps[..], [Step::Key(key), ..] if PLAN.contains(&key.as_str())) {
            refuse(path, format!("sets `{name}`, which is no part of a run"), "a setting of the scenario");
        } else if claim.axis() == Some(name) {
            let help = "switch off something else";
            refuse(path, format!("sets `{name}`, along which the claim is"), help);
        } else if let Some(axis) = swept.iter().find(|axis| axis.path.value == *name) {
            let values: Vec<String> = axis.values.iter().map(|other| inline(&other.value)).collect();
            let value = inline(&node.value);
            if !values.contains(&value) {
                let help: String = choices(&value, values.iter().map(String::as_str)).into();
                refuse(path, format!("has {value}, which is no value of `{name}` in the sweep"), &help);
            }
        } else if let Some(axis) = swept.iter().find(|axis| is_part(&axis.path.value, &steps)) {
            let help = "the sweep's value would take its place; give one of its values";
            refuse(path, format!("sets `{name}`, of which the sweep varies `{}`", axis.path.value), help);
        }
    }
    let values: Vec<(&str, &Node)> =
        control.settings().iter().map(|(path, node)| (path.value.as_str(), node)).collect();
    if let (Some(message), Some((path, _))) = (no_pair(&values, swept), control.settings().first()) {
        refuse(path, message, PAIRS);
    }
}

/// One of two paths is below the other.
fn is_part(path: &str, other: &[Step]) -> bool {
    path::parse(path).is_ok_and(|steps| {
        let both = steps.len().min(other.len());
        path::meets(&steps[..both], &other[..both])
    })
}

impl Sweep {
    /// Leaves out the points that are not wanted.
    fn retain(&mut self, is_wanted: &dyn Fn(&Observation) -> bool) {
        let kept = self.points().iter().filter(|point| {
            let settings = point.settings.clone();
            is_wanted(&Observation { is_random: false, settings, readings: Vec::new() })
        });
        self.set_points(kept.cloned().collect());
    }
}

//! A scenario run again to be sure of a verdict: with more seeds, and with a claim's cause switched off.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::claims::{CheckedClaim, Judgement, Observation, Verdict};
use crate::diagnostic::{Diagnostics, Findings};
use crate::figure::Figure;
use crate::path::{self, Step};
use crate::seeds::SEED;
use crate::{Scenario, sweep, tree};

impl Scenario {
    /// The points at which verdicts are open, with these seeds.
    ///
    /// # Errors
    /// If there are too many points.
    pub fn with_seeds(
        &self,
        seeds: RangeInclusive<u64>,
        open: &[(&CheckedClaim, &Verdict)],
    ) -> Result<Self, Diagnostics> {
        let mut findings = Findings::new(self.sources.clone());
        let mut root = self.root.clone();
        let seeds: Vec<String> = seeds.map(|seed| seed.to_string()).collect();
        tree::vary(&mut root, "more seeds", SEED, &seeds, &mut findings);
        let open: Vec<(&CheckedClaim, BTreeSet<Vec<_>>)> = open
            .iter()
            .map(|(claim, verdict)| {
                let points = verdict.points.iter().filter(|point| point.judgement == Judgement::Undecided);
                (*claim, points.map(|point| point.at.iter().collect()).collect())
            })
            .collect();
        self.rebuilt(root, findings, &|run| {
            let at: Vec<_> = run.settings.iter().filter(|(path, _)| path != SEED).collect();
            // What is compared with another point is open at both, and what has no points is open at all.
            open.iter().any(|(claim, points)| {
                let is_all = points.is_empty() || claim.is_compared();
                if is_all { claim.is_about_but_for(SEED, run) } else { points.contains(&at) }
            })
        })
    }

    /// The highest seed of the sweep.
    pub fn highest_seed(&self) -> u64 {
        let points = self.sweep().map_or(&[][..], |sweep| sweep.points());
        let seeds = points.iter().flat_map(|point| &point.settings).filter(|(path, _)| path == SEED);
        seeds.filter_map(|(_, seed)| seed.parse().ok()).max().unwrap_or(0)
    }

    /// The points that a claim is about with its cause switched off, and the claim about them; `None`: the claim names no
    /// cause that can be.
    ///
    /// # Errors
    /// If the settings of the control make no scenario.
    pub fn control(&self, claim: &CheckedClaim) -> Result<Option<(Self, CheckedClaim)>, Diagnostics> {
        let inherited = || self.figure().filter(|_| !claim.has_no_control()).and_then(Figure::control);
        let Some(control) = claim.control().or_else(inherited) else { return Ok(None) };
        let mut findings = Findings::new(self.sources.clone());
        let mut root = self.root.clone();
        let axes = self.sweep().map_or(&[][..], |sweep| sweep.axes());
        let claim = claim.at(control, axes);
        for (path, node) in control.settings() {
            match path::parse(&path.value) {
                // The claim chooses those points.
                Ok(_) if axes.contains(&path.value) => {}
                Ok(steps) => {
                    tree::replace(&mut root, &path.value, &steps, node.clone(), path.span, &mut findings);
                }
                Err(error) => {
                    let help = "such as links.bottleneck.ack_loss";
                    findings.error("scenario::unknown-path", path.span, error.message, help);
                }
            }
        }
        let scenario = self.rebuilt(root, findings, &|run| claim.is_about(run))?;
        Ok(Some((scenario, claim)))
    }

    /// The same claims and figure over what the file now says.
    fn rebuilt(
        &self,
        mut root: tree::Node,
        findings: Findings,
        is_wanted: &dyn Fn(&Observation) -> bool,
    ) -> Result<Self, Diagnostics> {
        // They were checked against the sweep as it is written.
        tree::remove(&mut root, &[Step::Key("claims".into())]);
        let mut scenario = Self::build(self.name.clone(), self.base.clone(), root, findings, true)?;
        scenario.claims = self.claims.clone();
        scenario.sweep.iter_mut().for_each(|sweep| sweep.retain(is_wanted));
        Ok(scenario)
    }

    /// Holds the controls of the claims against the file.
    pub(crate) fn check_controls(&self, findings: &mut Findings) {
        for claim in self.claims() {
            if let Err(diagnostics) = self.control(claim) {
                findings.absorb(diagnostics);
            }
        }
    }
}

impl sweep::Sweep {
    /// Leaves out the points that are not wanted.
    fn retain(&mut self, is_wanted: &dyn Fn(&Observation) -> bool) {
        let kept = self.points().iter().filter(|point| {
            let settings = point.settings.clone();
            is_wanted(&Observation { is_random: false, settings, readings: Vec::new() })
        });
        self.set_points(kept.cloned().collect());
    }
}

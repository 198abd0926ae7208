//! `[[tolerances]]`: how far real TCP may be from a scenario's simulation where `compare` would allow less, and why.

use congestlab_text::decode::{At, record};
use congestlab_text::diagnostic::{Findings, choices};

/// Names of the quantities that are compared; least values of their tolerances.
pub(crate) const QUANTITIES: [(&str, f64); 8] = [
    ("goodput", 0.0),
    ("completion", 0.0),
    ("rtt", 0.0),
    ("utilization", 0.0),
    ("queue", 0.0),
    ("queue_p95", 0.0),
    ("drops", 0.0),
    ("convergence", 1.0),
];

record! {
    /// A difference between simulation and real TCP that has a reason.
    Allowed {
        /// Quantity: "goodput", "completion", "rtt", "utilization", "queue", "queue_p95", "drops", "convergence".
        of: String = required,
        /// Largest difference that still agrees, as `compare --tolerance` takes it; absent: it is not judged.
        at_most: f64,
        /// Reason for it.
        because: String = required,
    }
}

/// A difference that a scenario allows between its simulation and real TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Tolerance<'a> {
    /// Name of the quantity.
    pub of: &'a str,
    /// Largest difference that still agrees; `None`: it is shown, not judged.
    pub at_most: Option<f64>,
    /// Reason for it.
    pub because: &'a str,
}

impl Allowed {
    /// Returns it, if all of it was read.
    pub(crate) fn read(&self) -> Option<Tolerance<'_>> {
        let Self { of, at_most, because } = self;
        Some(Tolerance {
            of: &of.as_ref()?.value,
            at_most: at_most.as_ref().map(|at_most| at_most.value),
            because: &because.as_ref()?.value,
        })
    }

    fn check(&self, findings: &mut Findings) {
        let Some(of) = &self.of else { return };
        let Some((_, least)) = QUANTITIES.iter().find(|(name, _)| *name == of.value) else {
            let message = format!("`{}` is no quantity that is compared", of.value);
            let known = choices(&of.value, QUANTITIES.iter().map(|(name, _)| *name));
            return findings.error("scenario::tolerance", of.span, message, known);
        };
        if let Some(at_most) = self.at_most.as_ref().filter(|at_most| at_most.value < *least) {
            let message = format!("{} is below what a tolerance of {} can be", at_most.value, of.value);
            findings.error(
                "scenario::tolerance",
                at_most.span,
                message,
                format!("allowed: at least {least}"),
            );
        }
        if let Some(because) = self.because.as_ref().filter(|because| because.value.trim().is_empty()) {
            let help = "say what the kernel does that the simulation does not";
            findings.error("scenario::tolerance", because.span, "a tolerance without a reason", help);
        }
    }
}

/// Checks all of a file.
pub(crate) fn check(all: &[At<Allowed>], findings: &mut Findings) {
    let mut names = std::collections::BTreeSet::new();
    for allowed in all {
        allowed.value.check(findings);
        if let Some(of) = &allowed.value.of
            && !names.insert(&of.value)
        {
            let message = format!("two tolerances of {}", of.value);
            findings.error("scenario::tolerance", of.span, message, "each quantity has one");
        }
    }
}

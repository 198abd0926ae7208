//! A watch over runs that take more than was estimated.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use congestlab_scenario::memory::Estimate;
use congestlab_scenario::{Measure, Scenario, sim};

use crate::failure::{Failure, Message};
use crate::machine::{memory_available, resident};

/// Reason for which a run was stopped before its end, if its estimate was wrong.
static EXCESS: OnceLock<String> = OnceLock::new();

/// Packets between two looks at the memory of the process.
const PACKETS_BETWEEN: u64 = 1 << 20;

/// A watch over a run, which stops one that takes several times what was estimated.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    name: &'a str,
    estimate: Estimate,
    stop: &'a AtomicBool,
    /// Memory of the process when the run began; `None`: it is not looked at.
    before: Option<u64>,
    looked: u64,
}

impl<'a> Watch<'a> {
    /// Watches the work and the memory of a run that has the process for itself.
    pub(crate) fn alone(name: &'a str, estimate: Estimate, stop: &'a AtomicBool) -> Self {
        Self { before: resident(), ..Self::beside(name, estimate, stop) }
    }

    /// Watches the work of a run that others run beside.
    pub(crate) fn beside(name: &'a str, estimate: Estimate, stop: &'a AtomicBool) -> Self {
        Self { name, estimate, stop, before: None, looked: 0 }
    }

    /// Returns the flag that ends the run.
    pub(crate) fn stop(&self) -> &'a AtomicBool {
        self.stop
    }

    /// Raises the flag if what the run has taken is several times the estimate.
    pub(crate) fn see(&mut self, come: sim::Progress) {
        let is_due = come.packets >= self.looked + PACKETS_BETWEEN;
        let mut taken = None;
        if is_due {
            self.looked = come.packets;
            taken = self.before.and_then(|before| Some(resident()?.saturating_sub(before)));
        }
        let left = if is_due && self.before.is_some() { memory_available() } else { None };
        if let Some(text) = self.estimate.stopped(self.name, come, taken, left) {
            EXCESS.get_or_init(|| text);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Returns the failure that it is if a run was stopped because its estimate was wrong, which stops like an interrupted one.
pub(crate) fn or_exceeded(failure: Failure) -> Failure {
    match (failure, EXCESS.get()) {
        (Failure::Interrupted(_), Some(text)) => {
            let help = "`congestlab check` warns of a law without the network that it needs; if it does not, the estimate \
                        is wrong: please report the scenario";
            Failure::Exceeded(Message::new(text, help))
        }
        (other, _) => other,
    }
}

/// Refuses what would not fit.
pub(crate) fn require_memory(scenario: &Scenario, measure: &Measure) -> Result<(), Failure> {
    let available = memory_available().unwrap_or(u64::MAX);
    scenario.require_memory(measure, available).map_err(Failure::Memory)
}

//! Running both simulators and reading what they say.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::case::{Case, Peer};

/// What is compared. Definitions: docs/design/contract.md 5, and the head of `dumbbell.tcl`.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) utilization: f64,
    pub(crate) queue: f64,
    pub(crate) drops: u64,
    pub(crate) goodput: Vec<f64>,
}

pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ns2")
}

/// The reason why nothing can be compared here, if there is one.
pub(crate) fn missing() -> Option<&'static str> {
    let probe = Command::new("ns").arg("/dev/null").stdout(Stdio::null()).stderr(Stdio::null()).status();
    probe.is_err().then_some("ns not installed (make setup)")
}

/// Runs ns-2; the error says how it died.
pub(crate) fn ns2(case: &Case, peer: Peer, seed: u32) -> Result<Outcome, String> {
    let output = Command::new("ns")
        .arg(directory().join("dumbbell.tcl"))
        .args(case.ns2_arguments(peer, seed))
        .output()
        .map_err(|error| error.to_string())?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let Some(line) = stdout.lines().find_map(|line| line.strip_prefix("result ")) else {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    };
    let field = |key: &str| {
        let value = line.split(' ').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("no {key} in {line:?}"))
    };
    let number = |text: &str| text.parse::<f64>().unwrap_or_else(|_| panic!("{text:?} in {line:?}"));
    Ok(Outcome {
        utilization: number(field("utilization")),
        queue: number(field("queue")),
        drops: number(field("drops")) as u64,
        goodput: field("goodput").split(',').map(number).collect(),
    })
}

/// Runs congestlab on the same dumbbell.
pub(crate) fn congestlab(case: &Case, peer: Peer, seed: u32) -> Outcome {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let scenario = case.scenario(peer, seed);
    let name = format!("ns2-{}.toml", FILES.fetch_add(1, Ordering::Relaxed));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, &scenario).expect("the target directory is writable");
    let output = Command::new(env!("CARGO_BIN_EXE_congestlab"))
        .args([Path::new("run"), &file, Path::new("--json")])
        .output()
        .expect("the binary of this package runs");
    assert!(
        output.status.success(),
        "{}: congestlab run: {}\n{}\n{scenario}",
        case.name,
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("--json prints an object");
    let link = &result["links"]["bottleneck"];
    let number = |value: &serde_json::Value| {
        value.as_f64().unwrap_or_else(|| panic!("{}: a number is missing: {value}", case.name))
    };
    let group = |i: usize| result["flows"][format!("g{i}")].as_array().expect("flows.g<i> is an array");
    Outcome {
        utilization: number(&link["utilization"]),
        queue: number(&link["queue_mean_packets"]),
        drops: number(&link["drops_total"]) as u64,
        goodput: (0..case.groups.len()).flat_map(group).map(|flow| number(&flow["goodput_bps"])).collect(),
    }
}

/// `work` on every item, as many at a time as there are cores; results in the order of the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(i) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| *i < items.len()) {
                    let result = work(&items[i]);
                    *results[i].lock().expect("no worker panicked with the lock") = Some(result);
                }
            });
        }
    });
    let done = |slot: Mutex<Option<R>>| slot.into_inner().ok().flatten().expect("every item was served");
    results.into_iter().map(done).collect()
}

/// Means over seeds, flow by flow.
pub(crate) fn mean(outcomes: &[Outcome]) -> Outcome {
    let n = outcomes.len() as f64;
    Outcome {
        utilization: outcomes.iter().map(|o| o.utilization).sum::<f64>() / n,
        queue: outcomes.iter().map(|o| o.queue).sum::<f64>() / n,
        drops: outcomes.iter().map(|o| o.drops).sum(),
        goodput: (0..outcomes[0].goodput.len())
            .map(|i| outcomes.iter().map(|o| o.goodput[i]).sum::<f64>() / n)
            .collect(),
    }
}

impl Outcome {
    pub(crate) fn total(&self) -> f64 {
        self.goodput.iter().sum()
    }

    /// Jain's index of the goodputs.
    pub(crate) fn jain(&self) -> f64 {
        let squares: f64 = self.goodput.iter().map(|g| g * g).sum();
        self.total() * self.total() / (self.goodput.len() as f64 * squares)
    }

    /// The largest relative distance of a flow from the same flow of `other`.
    pub(crate) fn worst_flow(&self, other: &Outcome) -> f64 {
        let pairs = self.goodput.iter().zip(&other.goodput);
        pairs.map(|(ours, theirs)| (ours / theirs - 1.0).abs()).fold(0.0, f64::max)
    }
}

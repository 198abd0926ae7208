//! The machine: clocks, memory, cores, signals. All that may differ between two equal runs comes from here,
//! and all that differs between systems is below here.

#[cfg(not(unix))]
#[path = "machine/other.rs"]
mod system;
#[cfg(unix)]
#[path = "machine/unix.rs"]
mod system;

use std::fs;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use congestlab_scenario::memory::Estimate;
use congestlab_scenario::result::Meta;
use congestlab_scenario::{Measure, Scenario, sim};

use crate::args::VERSION;
use crate::failure::{Failure, Message};

/// A flag that Ctrl-C, SIGTERM and SIGHUP raise. One of them that finds it raised ends the process at once,
/// with the status of an interruption; nothing half-written has a name then.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// Somebody looks at it.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Begins to listen for signals. Until somebody asks for the flag the first one ends the process.
///
/// A file that grows beyond what the shell allows is an error of the file from then on, and no signal.
pub(crate) fn listen() -> Result<(), Failure> {
    if STOP.get().is_some() {
        return Ok(());
    }
    let stop = STOP.get_or_init(|| Arc::new(AtomicBool::new(true)));
    system::listen(stop)
        .map_err(|error| Failure::Run(Message::new(format!("can not listen for signals: {error}"), "")))
}

/// A flag that Ctrl-C, SIGTERM and SIGHUP raise; the second of them ends the process at once.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    listen()?;
    let stop = STOP.get_or_init(Arc::default);
    if !IS_WATCHED.swap(true, Ordering::Relaxed) {
        stop.store(false, Ordering::Relaxed);
    }
    Ok(stop.clone())
}

/// Ends the watch for what can not be given up in the middle: the next signal ends the process, with nothing half-written
/// under its name. [`stop_flag`] begins it again.
///
/// # Errors
/// A signal came before.
pub(crate) fn unwatch(stop: &AtomicBool) -> Result<(), Failure> {
    IS_WATCHED.store(false, Ordering::Relaxed);
    match stop.swap(true, Ordering::Relaxed) {
        true => Err(Failure::Interrupted("interrupted before the results were written".into())),
        false => Ok(()),
    }
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Measures a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    wall: Instant,
    cpu: f64,
    processor_seconds: fn() -> f64,
}

impl Clock {
    /// Processor time of the whole process.
    pub(crate) fn start() -> Self {
        Self::of(system::process_seconds)
    }

    /// Processor time of this thread: for runs side by side.
    pub(crate) fn start_thread() -> Self {
        Self::of(system::thread_seconds)
    }

    #[expect(clippy::disallowed_methods, reason = "wall time for people; no result depends on it")]
    fn of(processor_seconds: fn() -> f64) -> Self {
        Self { wall: Instant::now(), cpu: processor_seconds(), processor_seconds }
    }

    /// Seconds since the start.
    pub(crate) fn wall(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }

    /// Seconds of processor time since the start; 0 where nobody measures them.
    pub(crate) fn cpu(&self) -> f64 {
        (self.processor_seconds)() - self.cpu
    }

    /// Returns the facts about this machine that results state.
    #[expect(clippy::disallowed_methods, reason = "the date for people; no result depends on it")]
    pub(crate) fn meta(&self) -> Meta {
        Meta {
            wall_s: self.wall(),
            cpu_s: self.cpu(),
            host: system::host(),
            version: VERSION.to_owned(),
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        }
    }
}

/// Returns bits that nobody can guess, from the system.
pub(crate) fn secret() -> std::io::Result<u128> {
    system::secret()
}

/// Columns of the terminal behind stderr; 0: none, or it does not say.
pub(crate) fn columns() -> u16 {
    system::columns()
}

/// The signal that ended a child.
pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    system::signal(status)
}

/// Bytes that a process can still take here; `None` if the machine does not say.
pub(crate) fn memory_available() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let machine = meminfo.lines().find_map(|line| {
        let kilobytes = line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?;
        kilobytes.trim().parse::<u64>().ok()?.checked_mul(1024)
    })?;
    let number = |path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = number("/sys/fs/cgroup/memory.max")
        .map(|limit| limit.saturating_sub(number("/sys/fs/cgroup/memory.current").unwrap_or(0)));
    Some([Some(machine), group, system::address_space()].into_iter().flatten().min().unwrap_or(machine))
}

/// Reason for which a run was stopped before its end, if its estimate was wrong.
static EXCESS: OnceLock<String> = OnceLock::new();

/// Returns why a run was stopped that took several times what was estimated.
pub(crate) fn excess() -> Option<&'static str> {
    EXCESS.get().map(String::as_str)
}

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
        if let Some(excess) = self.estimate.exceeded(come.packets, taken) {
            let at = come.at as f64 / 1e12;
            let text = format!("{}: stopped at {at:.3} s of simulated time: {excess}", self.name);
            EXCESS.get_or_init(|| text);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Bytes of memory that the process holds; `None` if the machine does not say.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix("kB")?;
    kilobytes.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Refuses what would not fit.
pub(crate) fn require_memory(scenario: &Scenario, measure: &Measure) -> Result<(), Failure> {
    let available = memory_available().unwrap_or(u64::MAX);
    scenario.require_memory(measure, available).map_err(Failure::Memory)
}

//! What this machine is and has: clocks, memory, cores, signals. All that may differ between two
//! equal runs comes from here.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use congestlab_scenario::result::Meta;
use congestlab_scenario::{Measure, Scenario};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::VERSION;
use crate::failure::{Failure, Message};

/// A flag that Ctrl-C, SIGTERM and SIGHUP raise; the second of them ends the process at once.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, flag.clone())
            .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
            .map_err(|error| {
                Failure::Run(Message::new(format!("can not listen for signals: {error}"), ""))
            })?;
    }
    Ok(flag)
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
    id: ClockId,
}

impl Clock {
    /// Processor time of the whole process.
    pub(crate) fn start() -> Self {
        Self::of(ClockId::ProcessCPUTime)
    }

    /// Processor time of this thread: for runs side by side.
    pub(crate) fn start_thread() -> Self {
        Self::of(ClockId::ThreadCPUTime)
    }

    #[expect(clippy::disallowed_methods, reason = "wall time for people; no result depends on it")]
    fn of(id: ClockId) -> Self {
        Self { wall: Instant::now(), cpu: processor_seconds(id), id }
    }

    /// Seconds since the start.
    pub(crate) fn wall(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }

    /// What the results say of this machine.
    #[expect(clippy::disallowed_methods, reason = "the date for people; no result depends on it")]
    pub(crate) fn meta(&self) -> Meta {
        Meta {
            wall_s: self.wall(),
            cpu_s: processor_seconds(self.id) - self.cpu,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            version: VERSION.to_owned(),
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        }
    }
}

fn processor_seconds(id: ClockId) -> f64 {
    let time = clock_gettime(id);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
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
    let limit = getrlimit(Resource::As).current;
    Some([Some(machine), group, limit].into_iter().flatten().min().unwrap_or(machine))
}

/// Refuses what would not fit.
pub(crate) fn require_memory(scenario: &Scenario, measure: &Measure) -> Result<(), Failure> {
    let available = memory_available().unwrap_or(u64::MAX);
    scenario.require_memory(measure, available).map_err(Failure::Memory)
}

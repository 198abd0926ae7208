//! The machine: clocks, memory, cores, signals. All that may differ between two equal runs comes from here,
//! and all that differs between systems is below here.

#[cfg(not(unix))]
#[path = "machine/other.rs"]
mod system;
#[cfg(unix)]
#[path = "machine/unix.rs"]
mod system;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use congestlab_scenario::result::Meta;

use crate::version::VERSION;

/// Has signals raise a flag: Ctrl-C, SIGTERM and SIGHUP. One of them that finds it raised ends the process.
pub(crate) fn listen(flag: &Arc<AtomicBool>) -> std::io::Result<()> {
    system::listen(flag)
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
    let of_group = fs::read_to_string("/proc/self/cgroup").ok();
    let group = of_group.and_then(|groups| group_memory(Path::new("/sys/fs/cgroup"), &groups));
    Some([Some(machine), group, system::address_space()].into_iter().flatten().min().unwrap_or(machine))
}

/// Bytes that the control groups of a process leave: of its own group and of all around it the least. `groups` is the text of
/// `/proc/self/cgroup`, `root` the place where control groups are mounted; `None`: no group has a limit.
fn group_memory(root: &Path, groups: &str) -> Option<u64> {
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let mut least = None;
    for line in groups.lines() {
        // Version 2 has an empty list of controllers; version 1 has a tree for memory.
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, limit, used) = match controllers {
            "" => (root.to_owned(), "memory.max", "memory.current"),
            list if list.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        // A container may see the path from outside, and has its group at the root.
        let own = root.join(path.trim_start_matches('/'));
        for folder in own.ancestors().take_while(|folder| folder.starts_with(&root)) {
            let Some(limit) = number(folder.join(limit)) else { continue };
            // Pages of files are given up when the memory is needed.
            let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
            let files = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse().ok());
            let used = number(folder.join(used)).unwrap_or(0).saturating_sub(files.unwrap_or(0));
            let left = limit.saturating_sub(used);
            least = Some(least.map_or(left, |least: u64| least.min(left)));
        }
    }
    least
}

/// Bytes of memory that the process holds; `None` if the machine does not say.
pub(crate) fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix("kB")?;
    kilobytes.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the name that the machine calls itself.
#[cfg(feature = "linux")]
pub(crate) fn host() -> String {
    system::host()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least of the group of the process and of all around it, in both versions.
    #[test]
    fn control_groups_bound_the_memory() {
        let root = std::env::temp_dir().join(format!("congestlab-groups-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a place for temporary files");
            fs::write(path, text).expect("a place for temporary files");
        };
        write("a/memory.max", "1000000\n");
        write("a/memory.current", "400000\n");
        write("a/memory.stat", "anon 100000\ninactive_file 300000\n");
        write("a/b/memory.max", "max\n");
        write("memory/c/memory.limit_in_bytes", "5000\n");
        let left = |groups: &str| group_memory(&root, groups);
        assert_eq!(left("0::/a/b\n"), Some(900_000), "the limit is of the group around");
        assert_eq!(left("0::/\n"), None);
        assert_eq!(left("4:cpu,memory:/c\n0::/a\n"), Some(5000));
        assert_eq!(left("not a group\n"), None);
        fs::remove_dir_all(&root).expect("ours");
    }
}

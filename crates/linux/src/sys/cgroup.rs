//! Control groups, version 2. The processes of a lab live in one, so that they end together.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::error::{Context, Error, Result};

/// Returns the folder of the hierarchy of version 2. Where it is hidden, as by `ip netns exec` behind a
/// /sys of its own, this is a mount that this process and those that it starts hold open.
///
/// # Errors
/// Returns [`Error::Missing`] if the hierarchy can not be mounted.
pub fn root() -> Result<PathBuf> {
    static HELD: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(path) = mounted()? {
        return Ok(path);
    }
    // At no place in any tree. Not closed on exec: the path holds for whoever inherits it.
    let mount = || {
        let context = fsopen("cgroup2", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(context.as_fd())?;
        fsmount(context.as_fd(), FsMountFlags::empty(), MountAttrFlags::empty())
    };
    if HELD.get().is_none() {
        let mounted = mount().map_err(|_| {
            Error::missing(
                "cgroup version 2 is not mounted",
                "mount -t cgroup2 none /sys/fs/cgroup/unified (make the folder first)",
            )
        })?;
        let _ = HELD.set(mounted);
    }
    Ok(PathBuf::from(format!("/proc/self/fd/{}", HELD.get().map_or(-1, AsRawFd::as_raw_fd))))
}

fn mounted() -> Result<Option<PathBuf>> {
    let list = "/proc/self/mounts";
    let mounts = fs::read_to_string(list).context(|| format!("can not read {list}"))?;
    Ok(mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (_, path, kind) = (fields.next()?, fields.next()?, fields.next()?);
        // Blanks are written as octal numbers (proc(5)); no distribution mounts it at such a place.
        (kind == "cgroup2").then(|| PathBuf::from(path))
    }))
}

/// Returns the path by which people find a control group: where this process sees the hierarchy at no place of the tree, that at
/// which others mount it.
pub(crate) fn shown(group: &Path) -> PathBuf {
    let below = root().ok().filter(|root| root.starts_with("/proc/self/fd"));
    match below.as_ref().and_then(|root| group.strip_prefix(root).ok()) {
        // A name that is empty would add a slash.
        Some(below) => Path::new("/sys/fs/cgroup").join(below).components().collect(),
        None => group.to_owned(),
    }
}

/// Returns the control group that this process is in.
///
/// # Errors
/// As [`root`].
pub fn current() -> Result<PathBuf> {
    let root = root()?;
    let text = fs::read_to_string("/proc/self/cgroup").context(|| "can not read /proc/self/cgroup".into())?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("");
    Ok(root.join(path))
}

/// Moves this process into a control group, with all its threads and those that it starts from now on.
///
/// # Errors
/// If the privilege is missing, or there is no such group.
pub fn enter(group: &Path) -> Result<()> {
    // 0 is whoever writes (cgroups(7)).
    fs::write(group.join("cgroup.procs"), "0")
        .context(|| format!("can not enter the control group {}", group.display()))
}

/// Kills all processes in a group and below, and waits until they are dead. A group that does not exist has none.
///
/// # Errors
/// If a process lives on for a second, or the kernel is older than 5.14.
pub fn kill(group: &Path) -> Result<()> {
    let what = || format!("can not end the processes in {}", group.display());
    let is_populated = || match fs::read_to_string(group.join("cgroup.events")) {
        Ok(events) => Ok(events.lines().any(|line| line == "populated 1")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    };
    if !is_populated().context(what)? {
        return Ok(());
    }
    fs::write(group.join("cgroup.kill"), "1").context(what)?;
    // Dying takes microseconds, on a busy machine its turn on the processor.
    for _ in 0..500 {
        if !is_populated().context(what)? {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(2));
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "they live on after a second")).context(what)
}

/// Removes a group and those below it, which must be empty. A group that does not exist is removed already.
///
/// # Errors
/// If the file system refuses.
pub fn remove(group: &Path) -> Result<()> {
    let what = || format!("can not remove the control group {}", group.display());
    let entries = match fs::read_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.context(what)?,
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path())?;
        }
    }
    match fs::remove_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context(what),
        _ => Ok(()),
    }
}

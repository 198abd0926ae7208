//! The facts about a machine on Unix.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Resource, Signal, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

/// The first of these signals raises the flag, and one that finds it raised ends the process. A write beyond the limit of
/// file sizes is no signal any more, but fails.
pub(super) fn listen(flag: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        register_conditional_shutdown(signal, 130, flag.clone())?;
        register(signal, flag.clone())?;
    }
    register(Signal::XFSZ.as_raw(), Arc::default())?;
    Ok(())
}

/// Processor time of the process.
pub(super) fn process_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

/// Processor time of the thread.
pub(super) fn thread_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

fn seconds(id: ClockId) -> f64 {
    let time = clock_gettime(id);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Bits that nobody can guess.
pub(super) fn secret() -> io::Result<u128> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u128::from_ne_bytes(bytes))
}

/// Bytes of address space that the process was allowed.
pub(super) fn address_space() -> Option<u64> {
    getrlimit(Resource::As).current
}

/// Columns of the terminal behind stderr; 0: none, or it does not say.
pub(super) fn columns() -> u16 {
    rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col)
}

/// The signal that ended a child.
pub(super) fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

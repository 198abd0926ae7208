//! Priority of threads for a processor.
#![expect(unsafe_code, reason = "no library offers real-time scheduling, or slices of time")]

use std::io;
use std::mem::{size_of, zeroed};
use std::num::NonZeroU64;

/// `struct sched_attr` of sched_setattr(2), in its first version.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Slice of an ordinary thread, ns, since Linux 6.12; kernels before ignore it.
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The least slice that the kernel takes, ns.
const SLICE: u64 = 100_000;

/// Lets the calling thread work in short slices of time: it gets its fair part as before, and its turn sooner when something has come
/// for it (EEVDF: the earliest virtual deadline goes first, and a short slice ends early). Threads of other classes stay as they are.
///
/// # Errors
/// If the kernel refuses.
pub fn be_prompt() -> io::Result<()> {
    let size = size_of::<Attributes>() as u32;
    let mut told = Attributes { size, ..Attributes::default() };
    // SAFETY: the kernel writes at most `size` bytes to `told`, which are plain numbers; 0 is the calling thread.
    let known = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut told, size, 0) };
    if known < 0 {
        return Err(io::Error::last_os_error());
    }
    if told.policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    (told.size, told.runtime) = (size, SLICE);
    // SAFETY: the kernel only reads `told`.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const told, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets the calling thread run before all ordinary threads as soon as it wants to, and sleep to the nanosecond.
///
/// It uses a real-time class, not a low nice value: where the kernel groups processes by session
/// (`sched_autogroup_enabled`), a thread that weighs much takes the share of its own session on the other
/// processors. The time that real-time threads may take is bounded (`kernel.sched_rt_runtime_us`).
///
/// # Errors
/// If the privilege is missing; the thread then runs as others do.
pub fn be_punctual() -> io::Result<()> {
    be_real_time(1)
}

/// Lets the calling thread run before those that are punctual, too: one that spins until its next probe is due would else keep a link
/// from its packets for as long as its train takes.
///
/// # Errors
/// As [`be_punctual`].
pub fn be_prior() -> io::Result<()> {
    be_real_time(2)
}

fn be_real_time(priority: libc::c_int) -> io::Result<()> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    // SAFETY: zeros are a valid parameter, which the kernel only reads; 0 is the calling thread.
    let result = unsafe {
        let mut parameter: libc::sched_param = zeroed();
        parameter.sched_priority = priority;
        libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const parameter)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

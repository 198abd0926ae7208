//! Priority of threads for a processor.
#![expect(unsafe_code, reason = "no library offers real-time scheduling")]

use std::io;
use std::mem::zeroed;
use std::num::NonZeroU64;

/// Lets the calling thread run before all ordinary threads as soon as it wants to, and sleep to the nanosecond.
///
/// It uses a real-time class, not a low nice value: where the kernel groups processes by session
/// (`sched_autogroup_enabled`), a thread that weighs much takes the share of its own session on the other
/// processors. The time that real-time threads may take is bounded (`kernel.sched_rt_runtime_us`).
///
/// # Errors
/// If the privilege is missing; the thread then runs as others do.
pub fn be_punctual() -> io::Result<()> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    // SAFETY: zeros are a valid parameter, which the kernel only reads; 0 is the calling thread.
    let result = unsafe {
        let mut parameter: libc::sched_param = zeroed();
        parameter.sched_priority = 1;
        libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const parameter)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

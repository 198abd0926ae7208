//! When a thread gets a processor.
#![expect(unsafe_code, reason = "no library offers real-time scheduling")]

use std::io;
use std::mem::zeroed;
use std::num::NonZeroU64;

/// Lets the calling thread run as soon as it wants to, before all ordinary ones, and sleep to the
/// nanosecond.
///
/// Not by a low nice value: where the kernel groups processes by session (`sched_autogroup_enabled`),
/// a thread that weighs much takes the share of its own session on the other processors. What a
/// processor may spend on real-time threads is bounded (`kernel.sched_rt_runtime_us`).
///
/// # Errors
/// Without the privilege; then it runs as others do.
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

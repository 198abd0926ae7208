//! Rights that a process gives up when it has made what needs them: user, groups and capabilities (capabilities(7)).
#![expect(unsafe_code, reason = "the calls of libc that change the user of all threads")]

use std::io;

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::user::User;
use crate::error::{Context, Result};

/// Makes this process one of another user, in that user's group alone, and keeps these capabilities for the calling thread and the
/// threads that it starts from now on. Other threads that exist have none. Programs that it runs have `passed`, a part of these.
/// Nothing brings the rights back. Where the process is not root, it keeps its user.
///
/// # Errors
/// If the kernel refuses; the process may have lost some rights then.
pub(crate) fn reduce(user: &User, keep: CapabilitySet, passed: CapabilitySet) -> Result<()> {
    let what = || "can not give up the rights of root".into();
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        // Beyond the last capability that the kernel knows it says so.
        if !keep.contains(one) && remove_capability_from_bounding_set(one).is_err() {
            break;
        }
    }
    if geteuid().is_root() {
        set_keep_capabilities(true).context(what)?;
        become_user(user).context(what)?;
        set_keep_capabilities(false).context(what)?;
    }
    limit(keep, passed).context(what)?;
    set_no_new_privs(true).context(what)
}

/// Keeps these capabilities alone for the calling thread, and passes some of them on to programs that it runs.
///
/// # Errors
/// If it has fewer, or the kernel refuses.
pub(crate) fn limit(keep: CapabilitySet, passed: CapabilitySet) -> io::Result<()> {
    clear_ambient_capability_set()?;
    set_capabilities(None, CapabilitySets { effective: keep, permitted: keep, inheritable: passed })?;
    for one in passed.iter() {
        configure_capability_in_ambient_set(one, true)?;
    }
    Ok(())
}

/// Makes the calling thread one of another user, in that user's group alone, without capabilities. Threads that it starts from now on
/// have none, either; others of this process keep theirs.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn reduce_thread(user: &User) -> io::Result<()> {
    if capabilities(None)?.effective.contains(CapabilitySet::SETUID | CapabilitySet::SETGID) {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        set_thread_groups(&[])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
    }
    limit(CapabilitySet::empty(), CapabilitySet::empty())
}

/// All threads of the process, as libc does it: the kernel's calls change the calling one.
fn become_user(user: &User) -> io::Result<()> {
    let done = |result: libc::c_int| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: no group is read from the pointer, for there are none; the others are plain numbers.
    unsafe {
        done(libc::setgroups(0, std::ptr::null()))?;
        done(libc::setresgid(user.gid, user.gid, user.gid))?;
        done(libc::setresuid(user.uid, user.uid, user.uid))
    }
}

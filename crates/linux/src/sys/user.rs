//! Users of this machine, and commands that run as one of them.
#![expect(unsafe_code, reason = "the list of users, and a call between fork and exec")]

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr;

use rustix::process::geteuid;
use rustix::thread::set_no_new_privs;

use crate::error::{Error, Result};

/// The user without any rights of its own.
pub const NOBODY: &str = "nobody";

/// The user of congestlab's own that packages may make (packaging/congestlab.sysusers).
pub const OWN: &str = "congestlab";

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name of the user.
    pub name: String,
    /// Number of the user.
    pub uid: u32,
    /// Number of the user's group.
    pub gid: u32,
}

impl User {
    /// Returns the user with this name; `None`: there is none.
    pub fn named(name: &str) -> Option<Self> {
        let text = CString::new(name).ok()?;
        let mut entry = MaybeUninit::<libc::passwd>::uninit();
        let mut buffer = vec![0; 1 << 14];
        let mut found = ptr::null_mut();
        // SAFETY: all pointers are to memory of the given sizes, which outlives the call.
        let result = unsafe {
            libc::getpwnam_r(
                text.as_ptr(),
                entry.as_mut_ptr(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &raw mut found,
            )
        };
        if result != 0 || found.is_null() {
            return None;
        }
        // SAFETY: the call has filled the entry, whose name lies in the buffer.
        let (entry, name) = unsafe {
            let entry = entry.assume_init();
            (entry, CStr::from_ptr(entry.pw_name).to_string_lossy().into_owned())
        };
        Some(Self { name, uid: entry.pw_uid, gid: entry.pw_gid })
    }

    /// Returns the user with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(name: &str) -> Result<Self> {
        Self::named(name)
            .ok_or_else(|| Error::input(format!("there is no user {name}"), "a user of /etc/passwd"))
    }

    /// Returns the user that long-running parts of congestlab become: `congestlab` where there is one, or else [`NOBODY`].
    ///
    /// # Errors
    /// If this machine has neither.
    pub fn own() -> Result<Self> {
        Self::named(OWN).map_or_else(|| Self::find(NOBODY), Ok)
    }

    /// Has a command run as this user, in its group alone, without a way back to other rights. Where this process is not root
    /// the command keeps the user of this process.
    pub fn runs(&self, command: &mut Command) {
        if geteuid().is_root() {
            // The standard library leaves the other groups, too.
            command.uid(self.uid).gid(self.gid);
        }
        // SAFETY: between fork and exec one system call is made, and nothing is allocated.
        unsafe {
            command.pre_exec(|| Ok(set_no_new_privs(true)?));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let root = User::named("root").unwrap();
        assert_eq!((root.name.as_str(), root.uid, root.gid), ("root", 0, 0));
        assert_ne!(User::find(NOBODY).unwrap().uid, 0);
        for wrong in ["", "no such user", "a\0b"] {
            assert_eq!(User::named(wrong), None);
        }
    }
}

//! BPF programs attached to a control group without a link: such an attachment outlives the process that
//! made it, and needs no file system to be found again.
#![expect(unsafe_code, reason = "libbpf-rs attaches to a control group only with a link")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use libbpf_sys::{BPF_CGROUP_SOCK_OPS, BPF_F_ALLOW_MULTI};

use crate::error::{Context, Result};

/// Opens a control group, to attach programs to it.
///
/// # Errors
/// If there is no control group at that path.
pub fn open(path: &Path) -> Result<File> {
    File::open(path).context(|| format!("can not open the control group {}", path.display()))
}

/// Attaches a `sock_ops` program beside those that the group has already.
///
/// # Errors
/// If the privilege is missing.
pub fn attach(program: BorrowedFd, cgroup: &File) -> io::Result<()> {
    // SAFETY: both descriptors are open for the duration of the call.
    let result = unsafe {
        libbpf_sys::bpf_prog_attach(
            program.as_raw_fd(),
            cgroup.as_raw_fd(),
            BPF_CGROUP_SOCK_OPS,
            BPF_F_ALLOW_MULTI,
        )
    };
    check(result)
}

/// Detaches a program that [`attach`] attached.
///
/// # Errors
/// If the program is not attached, or the privilege is missing.
pub fn detach(program: BorrowedFd, cgroup: &File) -> io::Result<()> {
    // SAFETY: both descriptors are open for the duration of the call.
    let result =
        unsafe { libbpf_sys::bpf_prog_detach2(program.as_raw_fd(), cgroup.as_raw_fd(), BPF_CGROUP_SOCK_OPS) };
    check(result)
}

/// Returns the ids of the `sock_ops` programs that are attached to exactly this group.
///
/// # Errors
/// If the privilege is missing.
pub fn attached(cgroup: &File) -> io::Result<Vec<u32>> {
    let mut ids = vec![0; 64]; // the kernel's own limit (BPF_CGROUP_MAX_PROGS)
    let mut count = ids.len() as u32;
    // SAFETY: `ids` has room for `count` ids, and the kernel writes no more.
    let result = unsafe {
        libbpf_sys::bpf_prog_query(
            cgroup.as_raw_fd(),
            BPF_CGROUP_SOCK_OPS,
            0,
            std::ptr::null_mut(),
            ids.as_mut_ptr(),
            &raw mut count,
        )
    };
    check(result)?;
    ids.truncate(count as usize);
    Ok(ids)
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

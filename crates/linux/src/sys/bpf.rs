//! BPF calls that libbpf-rs does not offer in a safe form: attaching a program to a target without a link,
//! and asking what is attached. Such an attachment stays until it is removed or its target is gone; nobody
//! needs to keep a file open or a name in a file system.
#![expect(unsafe_code, reason = "libbpf's own functions")]

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd as _};

use libbpf_rs::ErrorKind;

/// Kind of attachment: `BPF_TCX_EGRESS`, whose target is an interface's index, or `BPF_CGROUP_...`, whose
/// target is a folder's descriptor.
pub type AttachType = libbpf_sys::bpf_attach_type;
pub use libbpf_sys::{BPF_CGROUP_SOCK_OPS, BPF_TCX_EGRESS, BPF_TCX_INGRESS};

/// Facts that the kernel tells of a loaded program.
#[derive(Debug)]
pub struct ProgramInfo {
    /// Number of the program, by which anybody finds it again.
    pub id: u32,
    /// Name of the program, at most 15 bytes.
    pub name: String,
    /// Ids of the maps that it uses.
    pub map_ids: Vec<u32>,
}

/// Converts an error of libbpf-rs, with its causes in one line.
pub fn os(error: libbpf_rs::Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        ErrorKind::AlreadyExists => io::ErrorKind::AlreadyExists,
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, format!("{error:#}"))
}

fn check(status: i32) -> io::Result<()> {
    if status < 0 { Err(io::Error::from_raw_os_error(-status)) } else { Ok(()) }
}

/// Attaches a program behind the others of the target, or before them if `is_first`.
///
/// # Errors
/// If the privilege is missing, or the kernel does not know the kind (`EINVAL`).
pub fn attach(program: BorrowedFd<'_>, target: i32, kind: AttachType, is_first: bool) -> io::Result<()> {
    let options = libbpf_sys::bpf_prog_attach_opts {
        sz: size_of::<libbpf_sys::bpf_prog_attach_opts>() as _,
        flags: if is_first { libbpf_sys::BPF_F_BEFORE } else { 0 },
        ..Default::default()
    };
    // SAFETY: the descriptor is open, the options live until the call returns and state their size.
    check(unsafe { libbpf_sys::bpf_prog_attach_opts(program.as_raw_fd(), target, kind, &options) })
}

/// Puts a program in the place of another one of a target, in one step: each packet passes the one or the other.
///
/// # Errors
/// If the other is not attached to the target, or the privilege is missing.
pub fn replace(
    program: BorrowedFd<'_>,
    other: BorrowedFd<'_>,
    target: i32,
    kind: AttachType,
) -> io::Result<()> {
    let options = libbpf_sys::bpf_prog_attach_opts {
        sz: size_of::<libbpf_sys::bpf_prog_attach_opts>() as _,
        flags: libbpf_sys::BPF_F_REPLACE,
        __bindgen_anon_1: libbpf_sys::bpf_prog_attach_opts__bindgen_ty_1 { replace_fd: other.as_raw_fd() },
        ..Default::default()
    };
    // SAFETY: as in `attach`.
    check(unsafe { libbpf_sys::bpf_prog_attach_opts(program.as_raw_fd(), target, kind, &options) })
}

/// Keeps a map for as long as a program, even if the program does not use it.
///
/// # Errors
/// If the kernel is older than 5.10.
pub fn bind(program: BorrowedFd<'_>, map: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both descriptors are open; no options.
    check(unsafe { libbpf_sys::bpf_prog_bind_map(program.as_raw_fd(), map.as_raw_fd(), std::ptr::null()) })
}

/// Detaches a program.
///
/// # Errors
/// If the program is not attached to the target.
pub fn detach(program: BorrowedFd<'_>, target: i32, kind: AttachType) -> io::Result<()> {
    let options = libbpf_sys::bpf_prog_detach_opts {
        sz: size_of::<libbpf_sys::bpf_prog_detach_opts>() as _,
        ..Default::default()
    };
    // SAFETY: as in `attach`.
    check(unsafe { libbpf_sys::bpf_prog_detach_opts(program.as_raw_fd(), target, kind, &options) })
}

/// Runs an iterator's program over the objects in the thread's namespaces; returns the bytes that it wrote.
///
/// # Errors
/// If the kernel refuses or the program fails.
pub fn iterate(link: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    // SAFETY: the descriptor is open; the one that comes back belongs to nobody else.
    let mut file = unsafe {
        let iterator = libbpf_sys::bpf_iter_create(link.as_raw_fd());
        check(iterator)?;
        File::from_raw_fd(iterator)
    };
    let mut written = vec![];
    file.read_to_end(&mut written)?;
    Ok(written)
}

/// Returns the ids of the programs that are attached to a target.
///
/// # Errors
/// As [`attach`].
pub fn attached(target: i32, kind: AttachType) -> io::Result<Vec<u32>> {
    let mut ids = vec![0; 64]; // what a tcx or cgroup hook can hold (BPF_MPROG_MAX)
    let mut options = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as _,
        prog_ids: ids.as_mut_ptr(),
        ..Default::default()
    };
    options.__bindgen_anon_1.count = ids.len() as u32;
    // SAFETY: the kernel writes at most `count` ids, for which there is room until it returns.
    check(unsafe { libbpf_sys::bpf_prog_query_opts(target, kind, &mut options) })?;
    // SAFETY: every field of the union is a u32, and the kernel has written it.
    ids.truncate(unsafe { options.__bindgen_anon_1.count } as usize);
    Ok(ids)
}

/// Asks the kernel about a program.
///
/// # Errors
/// If the kernel refuses.
pub fn program_info(program: BorrowedFd<'_>) -> io::Result<ProgramInfo> {
    let mut map_ids = vec![0u32; 64]; // what a program can use (MAX_USED_MAPS)
    let mut info = libbpf_sys::bpf_prog_info {
        map_ids: map_ids.as_mut_ptr() as u64,
        nr_map_ids: map_ids.len() as u32,
        ..Default::default()
    };
    let mut size = size_of_val(&info) as u32;
    // SAFETY: the kernel writes at most `size` bytes of `info` and `nr_map_ids` ids.
    check(unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &mut info, &mut size) })?;
    map_ids.truncate(info.nr_map_ids as usize);
    // SAFETY: the kernel ends the name with a zero byte inside its 16.
    let name = unsafe { CStr::from_ptr(info.name.as_ptr()) };
    Ok(ProgramInfo { id: info.id, name: name.to_string_lossy().into_owned(), map_ids })
}

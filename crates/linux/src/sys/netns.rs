//! Network namespaces with the names of `ip netns`, so that people can look inside.

#![expect(unsafe_code, reason = "rustix has no SO_NETNS_COOKIE")]

use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io, thread};

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::command;
use crate::error::{Context, Error, Result};

/// Where `ip netns` has the names (ip-netns(8)).
const NAMES: &str = "/run/netns";

/// Returns the cookie by which BPF programs know the thread's network namespace (`bpf_get_netns_cookie`).
///
/// # Errors
/// If the kernel is older than 5.14.
pub fn cookie() -> Result<u64> {
    let what = || "can not ask for the network namespace".into();
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context(what)?;
    let (mut cookie, mut size) = (0u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `size` bytes to `cookie`; both live on.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut size,
        )
    };
    if result == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()).context(what) }
}

/// A network namespace. Dropping the value does not remove it: see [`Namespace::delete`].
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: File,
}

impl Namespace {
    /// Makes a namespace, with its loopback interface up.
    ///
    /// # Errors
    /// If the privilege is missing, or the name exists.
    pub fn create(name: &str) -> Result<Self> {
        command::run(&format!("ip netns add {name}"))?;
        let namespace = Self::open(name)?;
        namespace.run(|| command::run("ip link set lo up"))??;
        Ok(namespace)
    }

    /// Opens a namespace by its name.
    ///
    /// # Errors
    /// If no namespace has that name.
    pub fn open(name: &str) -> Result<Self> {
        let path = Path::new(NAMES).join(name);
        let file = File::open(&path).context(|| format!("can not open the namespace {name}"))?;
        Ok(Self { name: name.into(), file })
    }

    /// Opens the namespace that this thread is in.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn current() -> Result<Self> {
        let path = "/proc/thread-self/ns/net";
        let file = File::open(path).context(|| format!("can not open {path}"))?;
        Ok(Self { name: String::new(), file })
    }

    /// Returns true if `ip netns` has a name for the namespace.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn is_named(&self) -> Result<bool> {
        let own = self.inode()?;
        Ok(Self::named().iter().any(|namespace| namespace.inode().is_ok_and(|inode| inode == own)))
    }

    /// Returns the namespaces that `ip netns` has names for.
    pub fn named() -> Vec<Self> {
        let entries = fs::read_dir(NAMES).into_iter().flatten().flatten();
        entries.filter_map(|entry| Self::open(&entry.file_name().to_string_lossy()).ok()).collect()
    }

    /// Returns the namespace with this inode number: the thread's own, that of the first process, one with a
    /// name, or one in which there is a process.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn find(inode: u64) -> Result<Option<Self>> {
        let usual = ["/proc/thread-self/ns/net", "/proc/1/ns/net"].map(PathBuf::from);
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let inhabited = processes.map(|entry| entry.path().join("ns/net"));
        // Some may be gone by now, or another user's.
        let nameless = |path| File::open(path).ok().map(|file| Self { name: String::new(), file });
        let usual = usual.into_iter().filter_map(nameless);
        for namespace in usual.chain(Self::named()).chain(inhabited.filter_map(nameless)) {
            if namespace.inode()? == inode {
                return Ok(Some(namespace));
            }
        }
        Ok(None)
    }

    /// Returns the inode number, which identifies the namespace among those that exist (namespaces(7)).
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn inode(&self) -> Result<u64> {
        let data =
            self.file.metadata().context(|| format!("can not ask about the namespace {}", self.name))?;
        Ok(data.ino())
    }

    /// Returns the name; empty if the namespace has none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` inside, in a thread of its own, and returns its result. Processes started there stay inside.
    ///
    /// # Errors
    /// If the privilege to enter is missing.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let mode = command::mode();
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                self.enter()?;
                command::set_mode(mode);
                Ok(work())
            });
            match inside.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Moves the calling thread inside, for good.
    ///
    /// # Errors
    /// If the privilege is missing.
    pub fn enter(&self) -> Result<()> {
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|error| {
            Error::missing(
                format!("can not enter the namespace {}: {error}", self.name),
                "run as root, or with CAP_SYS_ADMIN and CAP_NET_ADMIN",
            )
        })
    }

    /// Removes the namespace with this name, if there is one, even if its maker was killed half-way.
    ///
    /// # Errors
    /// If the privilege is missing.
    pub fn remove(name: &str) -> Result<()> {
        let path = Path::new(NAMES).join(name);
        let what = || format!("can not remove the namespace {name}");
        match unmount(&path, UnmountFlags::DETACH) {
            // A name without a namespace is a file.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
            Err(error) => return Err(error).context(what),
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context(what),
            _ => Ok(()),
        }
    }

    /// Removes the namespace's name; the kernel removes the rest when nothing uses it any more.
    ///
    /// # Errors
    /// If the name is gone already.
    pub fn delete(self) -> Result<()> {
        command::run(&format!("ip netns delete {}", self.name)).map(drop)
    }
}

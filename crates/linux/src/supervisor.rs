//! Undoes what a command changed, whatever becomes of the command.
//!
//! Before a lab or a link changes anything, [`Guard::start`] starts a second process, the supervisor
//! (this program again, with the hidden subcommand `supervise`), in a session of its own. Each change
//! is written to the journal in `/run/congestlab/<id>/` first and made then. When the command ends,
//! in whatever way, its end of a socket closes; the supervisor reads the journal and undoes
//! everything in it. Nobody else undoes, so the way out after `kill -9` is the way out of every day.
//!
//! The command enters a control group of its own, and so does everything that it starts: when that
//! is killed, no `ip` or iperf3 is left on its way to make what has just been undone.
//!
//! Both processes hold a lock on the folder's log. A folder without it belongs to nobody: whoever
//! comes next undoes that, too ([`clean`]).

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{FlockOperation, flock};
use rustix::net::sockopt;
use rustix::process::geteuid;

use crate::error::{Context, Error, Result};
use crate::sys::diag::{Diag, States};
use crate::sys::netns::Namespace;
use crate::sys::{cgroup, command, process};

/// Journals of all commands that run.
const ROOT: &str = "/run/congestlab";
/// Name of the hidden subcommand that is the supervisor; its only argument is the name of the folder.
pub const SUBCOMMAND: &str = "supervise";

/// A change to undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Ends the processes in this control group and below, and removes it. The path is that below the hierarchy's
    /// folder, which whoever undoes may see at another place than whoever made the group.
    Cgroup(PathBuf),
    /// Ends the connections in this network namespace, and removes it with its interfaces.
    Namespace(String),
    /// Removes this interface.
    Interface(Local),
    /// Removes this table of nftables, family `inet`.
    Table(Local),
    /// Removes the table of routes with this number, and the rules that lead to it.
    Routes(Local),
    /// Restores the old value of this parameter, such as `net.core.rmem_max`, when nobody else needs the new one.
    Sysctl(Local),
}

/// A name with the network namespace that it is valid in: whoever undoes may be in another one than whoever
/// made the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    name: String,
    /// Inode of the network namespace from which it is seen.
    namespace: u64,
}

impl Local {
    /// Makes a name that is valid in the network namespace of this thread.
    ///
    /// # Errors
    /// If the file system does not tell the namespace.
    pub fn here(name: &str) -> Result<Self> {
        Ok(Self { name: name.into(), namespace: Namespace::current()?.inode()? })
    }

    fn parse(text: &str) -> Option<Self> {
        let (name, namespace) = text.split_once('@')?;
        Some(Self { name: name.into(), namespace: namespace.parse().ok()? })
    }

    /// Does something in its namespace. One that is gone has taken everything along.
    fn there(&self, work: impl FnOnce() -> Result<()> + Send) -> Result<()> {
        match Namespace::find(self.namespace)? {
            Some(namespace) => namespace.run(work)?,
            None => Ok(()),
        }
    }

    /// Where a parameter's value is.
    fn path(&self) -> PathBuf {
        Path::new("/proc/sys").join(self.name.replace('.', "/"))
    }

    /// Where a parameter's old value is.
    fn kept(&self) -> PathBuf {
        Path::new(ROOT).join(format!("sysctl-{self}"))
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.namespace)
    }
}

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cgroup(path) => write!(f, "cgroup {}", path.display()),
            Self::Namespace(name) => write!(f, "namespace {name}"),
            Self::Interface(name) => write!(f, "interface {name}"),
            Self::Table(name) => write!(f, "table {name}"),
            Self::Routes(table) => write!(f, "routes {table}"),
            Self::Sysctl(parameter) => write!(f, "sysctl {parameter}"),
        }
    }
}

impl Undo {
    /// A line of a journal; `None` if its writer was killed before its end.
    fn parse(line: &str) -> Option<Self> {
        let (kind, rest) = line.strip_suffix('\n')?.split_once(' ')?;
        match kind {
            "cgroup" => Some(Self::Cgroup(rest.into())),
            "namespace" => Some(Self::Namespace(rest.into())),
            "interface" => Local::parse(rest).map(Self::Interface),
            "table" => Local::parse(rest).map(Self::Table),
            "routes" => Local::parse(rest).map(Self::Routes),
            "sysctl" => Local::parse(rest).map(Self::Sysctl),
            _ => None,
        }
    }
}

/// The owner of a command's changes. All that is changed through it, or recorded, is undone when it is
/// dropped or its process dies. A process has at most one.
#[derive(Debug)]
pub struct Guard {
    id: String,
    folder: PathBuf,
    journal: File,
    cgroup: PathBuf,
    /// Where this process was before.
    home: PathBuf,
    /// `None` when all is undone.
    supervisor: Option<(Child, UnixStream)>,
}

impl Guard {
    /// Cleans up after dead commands, then starts a supervisor. The calling program must call [`supervise`] for
    /// the subcommand [`SUBCOMMAND`].
    ///
    /// # Errors
    /// If the privilege or cgroup version 2 is missing.
    pub fn start() -> Result<Self> {
        process::require_privilege()?;
        let home = cgroup::current()?;
        clean()?;
        let (id, folder, log) = create_folder()?;
        let open = |name: &str| OpenOptions::new().append(true).create(true).open(folder.join(name));
        let journal = open("journal").context(|| format!("can not write to {}", folder.display()))?;
        let (ours, theirs) = UnixStream::pair().context(|| "can not make a socket".into())?;
        let supervisor = Command::new("/proc/self/exe")
            .args([SUBCOMMAND, &id])
            .current_dir("/")
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // With the log it gets the lock: they belong to the open file, which both now have.
            .stderr(log)
            .spawn()
            .context(|| "can not start the supervisor".into())?;
        // Below the present one: if this is started by a command with a guard, it ends with that.
        let cgroup = home.join(format!("congestlab-{id}"));
        let guard = Self { id, folder, journal, cgroup, home, supervisor: Some((supervisor, ours)) };
        guard.await_supervisor()?;
        let below = guard.cgroup.strip_prefix(cgroup::root()?).unwrap_or(&guard.cgroup);
        guard.record(&Undo::Cgroup(below.to_owned()))?;
        fs::create_dir(&guard.cgroup)
            .context(|| format!("can not make the control group {}", guard.cgroup.display()))?;
        cgroup::enter(&guard.cgroup)?;
        Ok(guard)
    }

    /// Waits for the one byte by which the supervisor says that nothing but its own end can end it.
    fn await_supervisor(&self) -> Result<()> {
        let ready = self.supervisor.as_ref().map(|(_, socket)| (&*socket).read_exact(&mut [0]));
        ready.unwrap_or(Ok(())).context(|| "the supervisor did not start".into())
    }

    /// Returns the identity of the command: six hexadecimal digits that are part of every name that it makes.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the command's folder in memory, which is removed with everything else.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the control group that this process is in. Groups made below it are removed with it.
    pub fn cgroup(&self) -> &Path {
        &self.cgroup
    }

    /// Records a change that is about to be made, so that it is undone at the end.
    ///
    /// # Errors
    /// If the journal can not be written.
    pub fn record(&self, undo: &Undo) -> Result<()> {
        // One write, so that a line is there or not.
        (&self.journal)
            .write_all(format!("{undo}\n").as_bytes())
            .context(|| "can not write the journal".into())
    }

    /// Makes the network namespace `cl-<id>-<name>`.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn namespace(&self, name: &str) -> Result<Namespace> {
        let name = format!("cl-{}-{name}", self.id);
        self.record(&Undo::Namespace(name.clone()))?;
        Namespace::create(&name)
    }

    /// Sets a parameter of the whole machine, such as `net.core.rmem_max`, until the end.
    ///
    /// # Errors
    /// If there is no such parameter, or it takes no such value.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        let _lock = lock()?;
        let parameter = Local::here(key)?;
        let old = fs::read_to_string(parameter.path()).context(|| format!("can not read {key}"))?;
        self.record(&Undo::Sysctl(parameter.clone()))?;
        // What the first of several commands found is what the last one puts back.
        let kept = parameter.kept();
        if !kept.exists() || !is_claimed(&parameter, &self.folder)? {
            fs::write(&kept, old).context(|| format!("can not write {}", kept.display()))?;
        }
        fs::write(parameter.path(), value).context(|| format!("can not set {key} to {value}"))
    }

    /// Undoes everything.
    ///
    /// # Errors
    /// If something could not be undone; the error says what and why.
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some((mut supervisor, mut socket)) = self.supervisor.take() else { return Ok(()) };
        // Out of what is about to be killed. A command that is root no more asks the supervisor to move it.
        if !geteuid().is_root() {
            let moved = socket.write_all(&[1]).and_then(|()| socket.read_exact(&mut [0]));
            moved.context(|| "the supervisor does not answer".into())?;
        } else {
            cgroup::enter(&self.home).or_else(|_| cgroup::enter(&cgroup::root()?))?;
        }
        drop(socket);
        let ended = supervisor.wait().context(|| "can not wait for the supervisor".into())?;
        if ended.success() {
            return Ok(());
        }
        // Somebody killed it, or it failed: try again, and know why.
        undo(&self.folder)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("warning: not everything is undone: {error}");
        }
    }
}

/// A new folder with the lock on its log.
fn create_folder() -> Result<(String, PathBuf, File)> {
    // No other process may take it for a dead one before it has its lock.
    let _lock = lock()?;
    let random = "/proc/sys/kernel/random/uuid";
    loop {
        let uuid = fs::read_to_string(random).context(|| format!("can not read {random}"))?;
        let id = uuid[..6].to_owned();
        let folder = Path::new(ROOT).join(&id);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            other => other.context(|| format!("can not make {}", folder.display()))?,
        }
        let log = open_log(&folder)?;
        flock(&log, FlockOperation::NonBlockingLockExclusive)
            .context(|| format!("can not lock {}", folder.display()))?;
        return Ok((id, folder, log));
    }
}

fn open_log(folder: &Path) -> Result<File> {
    let log = OpenOptions::new().append(true).create(true).open(folder.join("supervisor.log"));
    log.context(|| format!("can not write to {}", folder.display()))
}

/// Held while folders come and go and parameters of the machine change.
pub(crate) fn lock() -> Result<File> {
    let path = Path::new(ROOT).join("lock");
    let what = || format!("can not lock {}", path.display());
    DirBuilder::new().recursive(true).mode(0o755).create(ROOT).context(what)?;
    let file = OpenOptions::new().append(true).create(true).open(&path).context(what)?;
    flock(&file, FlockOperation::LockExclusive).context(what)?;
    Ok(file)
}

/// Runs the supervisor: waits until its command has ended, then undoes its changes. [`Guard::start`] starts
/// a process for this.
///
/// # Errors
/// If something could not be undone.
pub fn supervise(id: &str) -> Result<()> {
    let folder = Path::new(ROOT).join(id);
    if id.len() != 6 || !folder.is_dir() {
        return Err(Error::input(format!("there is nothing to supervise named {id}"), ""));
    }
    process::ignore_signals();
    // Out of what a command may kill inside which this one was started.
    cgroup::enter(&cgroup::root()?)?;
    // Of no effect only for the leader of a session, which is what is wanted.
    let _ = rustix::process::setsid();
    let mut command = io::stdin();
    rustix::io::write(&command, &[1]).context(|| "can not tell that the supervisor is ready".into())?;
    // Ends when nobody has the other end: the command has, and nothing that it starts.
    while command.read_exact(&mut [0]).is_ok() {
        release(&folder)?;
        rustix::io::write(&command, &[1]).context(|| "can not tell that the command is out".into())?;
    }
    undo(&folder)
}

/// Moves the command from its control group to the one above, from which it came.
fn release(folder: &Path) -> Result<()> {
    let who = sockopt::socket_peercred(io::stdin()).context(|| "can not ask for the command".into())?;
    for undo in journal(folder)? {
        if let Undo::Cgroup(path) = undo {
            let above = path.parent().unwrap_or(Path::new(""));
            let group = cgroup::root()?.join(above);
            let pid = who.pid.as_raw_pid().to_string();
            fs::write(group.join("cgroup.procs"), pid)
                .context(|| format!("can not move the command to {}", group.display()))?;
            break;
        }
    }
    Ok(())
}

/// Returns the names of the folders of commands that died together with their supervisors.
///
/// # Errors
/// If the folders can not be read.
pub fn dead() -> Result<Vec<String>> {
    let mut dead = Vec::new();
    for id in names()? {
        if lock_dead(&Path::new(ROOT).join(&id))?.is_some() {
            dead.push(id);
        }
    }
    Ok(dead)
}

/// Returns the folders of all commands, dead ones included.
pub(crate) fn folders() -> Result<Vec<PathBuf>> {
    Ok(names()?.iter().map(|name| Path::new(ROOT).join(name)).collect())
}

/// The names of the folders of all commands.
fn names() -> Result<Vec<String>> {
    let entries = match fs::read_dir(ROOT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.context(|| format!("can not read {ROOT}"))?,
    };
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut folders: Vec<String> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    folders.sort();
    Ok(folders)
}

/// The lock of a folder, if nobody has it.
fn lock_dead(folder: &Path) -> Result<Option<File>> {
    let log = match File::open(folder.join("supervisor.log")) {
        Ok(log) => log,
        // Gone in this moment, or its maker was killed before it made the log: then nothing else
        // was made, either.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.context(|| format!("can not read {}", folder.display()))?,
    };
    match flock(&log, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(log)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error).context(|| format!("can not lock {}", folder.display())),
    }
}

/// Undoes the changes of commands that died together with their supervisors; returns the names of their folders.
///
/// # Errors
/// If the privilege is missing, or something could not be undone.
pub fn clean() -> Result<Vec<String>> {
    process::require_privilege()?;
    let mut cleaned = Vec::new();
    for id in names()? {
        let folder = Path::new(ROOT).join(&id);
        let held = {
            let _lock = lock()?;
            // Its maker was killed before it made anything else; one that lives would hold the lock.
            if fs::remove_dir(&folder).is_ok() {
                continue;
            }
            lock_dead(&folder)?
        };
        if held.is_some() {
            undo(&folder)?;
            cleaned.push(id);
        }
    }
    Ok(cleaned)
}

/// Everything that is in a folder's journal, in the order in which it was written.
fn journal(folder: &Path) -> Result<Vec<Undo>> {
    match fs::read_to_string(folder.join("journal")) {
        Ok(text) => Ok(text.split_inclusive('\n').filter_map(Undo::parse).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).context(|| format!("can not read {}", folder.display())),
    }
}

/// Undoes a journal and removes its folder. What fails stays in the journal for the next try; the
/// rest is undone all the same.
fn undo(folder: &Path) -> Result<()> {
    let mut first = Ok(());
    let mut keep = |result: Result<()>| {
        if let Err(error) = result {
            eprintln!("{error}");
            if first.is_ok() {
                first = Err(error);
            }
        }
    };
    let journal = journal(folder)?;
    // First who could make something new, then the connections, which would hold their namespace for
    // minutes while they wait for the dead, then what is left.
    for undo in &journal {
        if let Undo::Cgroup(path) = undo {
            keep(cgroup::root().and_then(|root| cgroup::kill(&root.join(path))));
        }
    }
    for undo in &journal {
        if let Undo::Namespace(name) = undo {
            keep(end_connections(name));
        }
    }
    // Until the folder is gone nobody may see its claims on the machine's parameters as alive, or
    // two that end at once leave the parameter to each other.
    let _lock = lock()?;
    for undo in journal.iter().rev() {
        keep(match undo {
            Undo::Interface(interface) => interface.there(|| remove_interface(&interface.name)),
            Undo::Namespace(name) => Namespace::remove(name),
            Undo::Cgroup(path) => cgroup::root().and_then(|root| cgroup::remove(&root.join(path))),
            Undo::Table(table) => table.there(|| remove_table(&table.name)),
            Undo::Routes(table) => table.there(|| remove_routes(&table.name)),
            Undo::Sysctl(parameter) => restore(parameter, folder),
        });
    }
    first?;
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context(|| format!("can not remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn end_connections(namespace: &str) -> Result<()> {
    let Ok(namespace) = Namespace::open(namespace) else { return Ok(()) };
    // A name without a namespace behind it, whose maker was killed in between, has no connections.
    namespace.run(|| Diag::open()?.destroy(States::ALL, |_| true).map(drop)).unwrap_or(Ok(()))
}

fn remove_interface(name: &str) -> Result<()> {
    // Not in /sys/class/net, which shows the namespace in which it was mounted.
    match command::query(&format!("ip link delete {name}")) {
        Err(Error::Command { message, .. }) if message.contains("Cannot find device") => Ok(()),
        other => other.map(drop),
    }
}

fn remove_table(name: &str) -> Result<()> {
    match command::query(&format!("nft delete table inet {name}")) {
        // It was not made, for example because there is no nft.
        Err(Error::Missing { .. }) => Ok(()),
        Err(Error::Command { message, .. }) if message.contains("No such file") => Ok(()),
        other => other.map(drop),
    }
}

fn remove_routes(table: &str) -> Result<()> {
    for family in ["-4", "-6"] {
        // As many as there are; the last one's error is that there is none, or no IPv6.
        while command::query(&format!("ip {family} rule delete lookup {table}")).is_ok() {}
        match command::query(&format!("ip {family} route flush table {table}")) {
            Err(Error::Command { .. }) => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// Returns true if another command needs a parameter as it is. The caller holds the lock.
fn is_claimed(parameter: &Local, folder: &Path) -> Result<bool> {
    let mine = Undo::Sysctl(parameter.clone());
    let others = fs::read_dir(ROOT).context(|| format!("can not read {ROOT}"))?.flatten();
    for other in others.map(|entry| entry.path()).filter(|path| path != folder && path.is_dir()) {
        if journal(&other)?.contains(&mine) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Puts a parameter back unless another command still needs it. Under the lock.
fn restore(parameter: &Local, folder: &Path) -> Result<()> {
    let kept = parameter.kept();
    if is_claimed(parameter, folder)? {
        return Ok(());
    }
    let old = match fs::read_to_string(&kept) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.context(|| format!("can not read {}", kept.display()))?,
    };
    parameter.there(|| {
        let what = || format!("can not set {} back", parameter.name);
        fs::write(parameter.path(), old.trim_end()).context(what)
    })?;
    fs::remove_file(&kept).context(|| format!("can not remove {}", kept.display()))
}

//! Where a router's law has its capacity from while it runs: a recorded trace, a command that prints rates, the rate at which the
//! interface's queue drains, or the one that its shaper states.
//!
//! A [`Feeder`] is a thread that reads the source and tells law and shaper what changes. A rate that nobody has confirmed for
//! [`PATIENCE`] is stale: the fixed rate holds again, and the program's configuration says so, by which [`status`](super::status)
//! knows it too. Nothing guesses: a source that says nothing of use is no source.

use std::fmt;
use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use congestlab_core::capacity::{self, Belief, Counters, News};
use congestlab_core::units::{self, BitRate, Bytes, Time};
use congestlab_net::trace::Trace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;

use super::{Config, Interface, RATES, feed, shaped_rate};
use crate::error::{Context, Error, Result};
use crate::link::Clock;
use crate::sys::bql::{BqlReader, InFlight};
use crate::sys::process;
use crate::sys::qdisc::{Qdisc, QdiscReader};
use crate::sys::user::{NOBODY, User};

/// Between two looks at a source.
const TICK: Duration = Duration::from_nanos(capacity::TICK.0);
/// The rate that a trace offers is told as the mean over steps of this length.
const STEP: Duration = Duration::from_nanos(capacity::STEP.0);
/// Between two looks at a shaper, two starts of a command that ends, and two looks at what somebody else has told the law.
const PAUSE: Duration = Duration::from_secs(1);
/// A rate that was not said again for so long is stale.
pub const PATIENCE: Duration = Duration::from_nanos(capacity::PATIENCE.0);
/// More than any rate is long, in bytes.
const LINE_MAX: usize = 200;
/// Bytes of what a command prints that are read at once.
const READ_MAX: usize = 4096;
/// Bytes of what a command says on stderr that are kept.
const COMPLAINT_MAX: usize = 1000;
/// The largest trace, bytes: an hour at 100 Mbit/s has half as much.
const TRACE_MAX: u64 = 256 << 20;

/// A source of a capacity that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The rate that a recorded trace offers, from its beginning on, again and again.
    Trace(Trace),
    /// The rate that a command of the shell prints, one in each line, such as `20 Mbit/s`. One that ends is started again.
    Command {
        /// The command.
        line: String,
        /// Name of the user that it runs as.
        user: String,
    },
    /// The rate at which bytes leave the interface's queue while packets wait in it, by its counters.
    Drain,
    /// The rate that the interface's shaper, a TBF or HTB of somebody else, states.
    Qdisc,
    /// The rate at which frames leave the hardware while it holds some, by the byte queue limits of its driver.
    Bql,
}

impl Source {
    /// The forms of [`Source::parse`].
    pub const FORMS: &str = "allowed: trace:FILE, command:'CMD', drain, qdisc, bql";

    /// Reads a source: `trace:FILE`, `command:CMD`, `drain`, `qdisc` or `bql`. Files are looked for from `folder`. A command runs as
    /// `user`, or else as [`NOBODY`].
    ///
    /// # Errors
    /// If it is none of these, the file is no trace, or what is no command has a user.
    pub fn parse(text: &str, folder: &Path, user: Option<&str>) -> Result<Self> {
        let source = Self::read(text, folder, user.unwrap_or(NOBODY))?;
        match (&source, user) {
            (Self::Command { .. }, _) | (_, None) => Ok(source),
            (_, Some(user)) => Err(Error::input(
                format!("{} runs no command, which {user} could be the user of", source.kind()),
                "leave the user out, or command:'CMD'",
            )),
        }
    }

    fn read(text: &str, folder: &Path, user: &str) -> Result<Self> {
        let wrong = |what: String| Error::input(what, Self::FORMS);
        match text.split_once(':').map_or((text, ""), |(kind, rest)| (kind, rest.trim())) {
            ("drain", "") => Ok(Self::Drain),
            ("qdisc", "") => Ok(Self::Qdisc),
            ("bql", "") => Ok(Self::Bql),
            ("command", command) if !command.is_empty() => {
                Ok(Self::Command { line: command.into(), user: user.into() })
            }
            ("trace", file) if !file.is_empty() => {
                let path = folder.join(file);
                let failed = |why: String| wrong(format!("can not read the trace {}: {why}", path.display()));
                let read = || -> io::Result<Vec<u8>> {
                    let mut text = vec![];
                    std::fs::File::open(&path)?.take(TRACE_MAX + 1).read_to_end(&mut text)?;
                    Ok(text)
                };
                let text = read().map_err(|error| failed(error.to_string()))?;
                if text.len() as u64 > TRACE_MAX {
                    return Err(failed("it is longer than 256 MiB".into()));
                }
                Trace::parse(&text).map(Self::Trace).map_err(|error| failed(error.to_string()))
            }
            _ => Err(wrong(format!("`{text}` is no source of a capacity"))),
        }
    }

    /// Refuses a source that would measure the shaper which follows it.
    ///
    /// # Errors
    /// If the settings make a shaper, and the source is the interface's own queue.
    pub fn check(&self, config: &Config) -> Result<()> {
        if config.shape.is_none() || matches!(self, Self::Trace(_) | Self::Command { .. }) {
            return Ok(());
        }
        Err(Error::input(
            format!("{} would be that of the shaper which is to follow it", self.kind()),
            "--no-shape, with a queue of the interface's own or of a shaper that somebody else has made",
        ))
    }

    /// Refuses a source that an interface or this machine has not.
    ///
    /// # Errors
    /// If there is no such interface, its driver counts nothing in flight, or there is no user for the command.
    pub fn require(&self, interface: &str) -> Result<()> {
        match self {
            Self::Bql => {
                let found = Interface::find(interface)?;
                BqlReader::open(&found.name, found.index).map(drop)
            }
            Self::Command { user, .. } => User::find(user).map(drop),
            _ => Ok(()),
        }
    }

    /// Returns what kind it is.
    pub fn kind(&self) -> SourceKind {
        match self {
            Self::Trace(_) => SourceKind::Trace,
            Self::Command { .. } => SourceKind::Command,
            Self::Drain => SourceKind::Drain,
            Self::Qdisc => SourceKind::Qdisc,
            Self::Bql => SourceKind::Bql,
        }
    }
}

/// The kind of a [`Source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// A recorded trace.
    Trace,
    /// A command that prints rates.
    Command,
    /// The measured drain rate.
    Drain,
    /// The rate that a shaper states.
    Qdisc,
    /// The measured rate of the hardware.
    Bql,
}

impl fmt::Display for SourceKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Trace => "trace",
            Self::Command => "command",
            Self::Drain => "drain",
            Self::Qdisc => "qdisc",
            Self::Bql => "bql",
        })
    }
}

/// Trust in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceState {
    /// The capacity is what the source said last.
    Fresh,
    /// The source says nothing of use: the capacity is the fixed one.
    Stale,
    /// Nobody reads it any more, as after `kill -9`: the capacity is what it was then.
    Unread,
}

/// The source of a law's capacity, as the program's configuration has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fed {
    /// Kind of the source.
    pub kind: SourceKind,
    /// Trust in it.
    pub state: SourceState,
    /// Process that reads it.
    pub pid: u32,
}

/// The place of the kind, from 1, among what there is to undo: its lowest bits are three switches.
const KIND: u32 = 3;
const KIND_MASK: u32 = 0b111 << KIND;
const STALE: u32 = 1 << 6;
/// The place of the process that reads: Linux numbers none above 2^22 (`PID_MAX_LIMIT`).
const PID: u32 = 8;
/// All bits that are a source's.
const MASK: u32 = u32::MAX << PID | STALE | KIND_MASK;

impl Fed {
    /// Reads what a [`Feeder`] has written; `None`: the capacity is fixed.
    pub(super) fn of(undo: u32) -> Option<Self> {
        let kind = match (undo & KIND_MASK) >> KIND {
            1 => SourceKind::Trace,
            2 => SourceKind::Command,
            3 => SourceKind::Drain,
            4 => SourceKind::Qdisc,
            5 => SourceKind::Bql,
            _ => return None,
        };
        let pid = undo >> PID;
        let state = match undo & STALE {
            _ if !process::is_ours(pid) => SourceState::Unread,
            0 => SourceState::Fresh,
            _ => SourceState::Stale,
        };
        Some(Self { kind, state, pid })
    }

    /// Writes it among what there is to undo, or takes it away.
    pub(super) fn write(undo: u32, fed: Option<Self>) -> u32 {
        let word = fed.map_or(0, |Self { kind, state, pid }| {
            let stale = if state == SourceState::Fresh { 0 } else { STALE };
            (kind as u32 + 1) << KIND | stale | pid << PID
        });
        undo & !MASK | word
    }

    /// Warns of a capacity that is not the source's; `None`: it is.
    pub(super) fn warning(self) -> Option<String> {
        let Self { kind, state, pid } = self;
        match state {
            SourceState::Fresh => None,
            SourceState::Stale => {
                Some(format!("the capacity is the fixed one: its source, {kind}, is stale"))
            }
            SourceState::Unread => Some(format!(
                "the capacity is what its source, {kind}, said last: process {pid}, which read it, is gone"
            )),
        }
    }
}

/// Finding of one look at a source.
enum Look {
    /// Nothing new.
    Nothing,
    /// The rate, confirmed or new.
    Rate(BitRate),
    /// A look that found nothing of use, and why.
    Useless(String),
}

/// A source that is read.
enum Reading {
    Trace { trace: Trace, clock: Clock, told: Option<u64> },
    Command(Shell),
    Drain(Box<Drain>),
    Qdisc { interface: String, clock: Clock, next: Duration },
}

impl Reading {
    fn start(source: &Source, interface: &Interface) -> Result<Self> {
        let clock = Clock::start();
        Ok(match source {
            Source::Trace(trace) => Self::Trace { trace: trace.clone(), clock, told: None },
            Source::Command { line, user } => Self::Command(Shell::new(line, User::find(user)?)),
            Source::Drain => {
                let gauge = Gauge::Qdisc(QdiscReader::open(interface.index)?);
                Self::Drain(Box::new(Drain::start(interface, gauge)))
            }
            Source::Bql => {
                let reader = BqlReader::open(&interface.name, interface.index)?;
                Self::Drain(Box::new(Drain::start(interface, Gauge::Hardware(reader))))
            }
            Source::Qdisc => Self::Qdisc { interface: interface.name.clone(), clock, next: Duration::ZERO },
        })
    }

    /// Looks, and waits for at most a tick.
    fn look(&mut self) -> Look {
        match self {
            Self::Trace { trace, clock, told } => {
                thread::sleep(TICK);
                let step = (since(clock).as_nanos() / STEP.as_nanos()) as u64;
                if *told == Some(step) {
                    return Look::Nothing;
                }
                *told = Some(step);
                Look::Rate(trace.offers(step))
            }
            Self::Command(shell) => shell.look(),
            Self::Drain(drain) => {
                thread::sleep(TICK);
                drain.look()
            }
            Self::Qdisc { interface, clock, next } => {
                thread::sleep(TICK);
                if since(clock) < *next {
                    return Look::Nothing;
                }
                *next = since(clock) + STEP;
                shaped_rate(interface).map_or_else(|error| Look::Useless(error.to_string()), Look::Rate)
            }
        }
    }
}

fn since(clock: &Clock) -> Duration {
    Duration::from_nanos(clock.now() / 1000)
}

/// The same as the rules have it.
fn time(clock: &Clock) -> Time {
    Time(clock.now() / 1000)
}

/// A command of the shell, with what it has printed. It runs as a user without rights, is killed when it says no rate for
/// [`PATIENCE`], and is read no faster than [`READ_MAX`] bytes in a tick, so that one that prints without end waits.
struct Shell {
    line: String,
    user: User,
    running: Option<Running>,
    printed: Vec<u8>,
    clock: Clock,
    /// When it was started last, and when it said a rate.
    started: Option<Duration>,
    said: Duration,
}

struct Running {
    child: Child,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    /// The beginning of what it has said on stderr.
    complaint: Vec<u8>,
}

impl Running {
    /// Reads what it says on stderr: the beginning is kept.
    fn hear(&mut self) {
        let mut buffer = [0; READ_MAX];
        let count = self.stderr.as_mut().map_or(0, |stderr| stderr.read(&mut buffer).unwrap_or(0));
        if count == 0 {
            self.stderr = None;
        }
        let room = COMPLAINT_MAX.saturating_sub(self.complaint.len());
        self.complaint.extend(&buffer[..count.min(room)]);
    }

    /// How it has ended, with the first line that it has said on stderr.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        let is_waiting = |stderr: &ChildStderr| {
            poll(&mut [PollFd::new(stderr, PollFlags::IN)], Some(&Timespec::default())).is_ok_and(|n| n > 0)
        };
        while self.complaint.len() < COMPLAINT_MAX && self.stderr.as_ref().is_some_and(is_waiting) {
            self.hear();
        }
        Ok(status)
    }
}

impl Shell {
    fn new(line: &str, user: User) -> Self {
        let (line, clock) = (line.to_owned(), Clock::start());
        Self { line, user, running: None, printed: vec![], clock, started: None, said: Duration::ZERO }
    }

    fn start(&self) -> io::Result<Running> {
        let mut command = Command::new("sh");
        command.args(["-c", &self.line]).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.user.runs(&mut command);
        process::die_with_parent(&mut command);
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let stderr = child.stderr.take();
        Ok(Running { child, stdout, stderr, complaint: vec![] })
    }

    fn look(&mut self) -> Look {
        let now = since(&self.clock);
        if self.running.is_none() {
            if self.started.is_some_and(|started| now < started + PAUSE) {
                thread::sleep(TICK);
                return Look::Nothing;
            }
            (self.started, self.said) = (Some(now), now);
            match self.start() {
                Ok(running) => self.running = Some(running),
                Err(error) => {
                    return Look::Useless(format!("can not start a shell as {}: {error}", self.user.name));
                }
            }
        }
        let Some(running) = &mut self.running else { return Look::Nothing };
        if now > self.said + PATIENCE {
            self.end();
            return Look::Useless(said_nothing());
        }
        let tick = Timespec { tv_sec: 0, tv_nsec: i64::from(TICK.subsec_nanos()) };
        let mut files = vec![PollFd::new(&running.stdout, PollFlags::IN)];
        files.extend(running.stderr.as_ref().map(|stderr| PollFd::new(stderr, PollFlags::IN)));
        let _ = poll(&mut files, Some(&tick));
        let has_come: Vec<bool> = files.iter().map(|file| !file.revents().is_empty()).collect();
        drop(files);
        if has_come.get(1) == Some(&true) {
            running.hear();
        }
        if has_come.first() != Some(&true) {
            return Look::Nothing;
        }
        let mut buffer = [0; READ_MAX];
        let count = running.stdout.read(&mut buffer).unwrap_or(0);
        if count > 0 {
            self.printed.extend(&buffer[..count]);
            if count == READ_MAX {
                thread::sleep(TICK);
            }
            return self.read();
        }
        // It has closed its output, so it ends.
        let status = running.end();
        let complaint = shown(&running.complaint);
        let because = if complaint.is_empty() { String::new() } else { format!(", saying \"{complaint}\"") };
        self.end();
        match status {
            Ok(status) if status.success() => Look::Nothing,
            Ok(status) => Look::Useless(format!("it ended with {status}{because}")),
            Err(error) => Look::Useless(format!("it can not be waited for: {error}")),
        }
    }

    /// The last whole line counts.
    fn read(&mut self) -> Look {
        let Some(end) = self.printed.iter().rposition(|byte| *byte == b'\n') else {
            if self.printed.len() <= LINE_MAX {
                return Look::Nothing;
            }
            self.end();
            return Look::Useless("it prints no lines".into());
        };
        let rest = self.printed.split_off(end + 1);
        let text = std::mem::replace(&mut self.printed, rest);
        let text = String::from_utf8_lossy(&text);
        let last = text.trim_end().rsplit('\n').next().unwrap_or_default().trim();
        match last.parse::<BitRate>() {
            Ok(rate) if RATES.contains(&rate) => {
                self.said = since(&self.clock);
                Look::Rate(rate)
            }
            Ok(rate) => {
                Look::Useless(format!("it printed {rate}; allowed: {} to {}", RATES.start(), RATES.end()))
            }
            Err(_) => Look::Useless(format!(
                "it printed \"{}\", which is no rate such as \"20 Mbit/s\"",
                shown(last.as_bytes())
            )),
        }
    }

    /// Ends it with all that it has started.
    fn end(&mut self) {
        if let Some(Running { mut child, .. }) = self.running.take() {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
        }
        self.printed.clear();
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.end();
    }
}

/// The beginning of the first line, for people.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(80).collect()
}

/// Counters of a queue.
enum Gauge {
    /// The counters of the interface's root qdisc.
    Qdisc(QdiscReader),
    /// The counters of its driver.
    Hardware(BqlReader),
}

/// Counters of frames at one moment.
struct Counted {
    bytes: u64,
    packets: u64,
    waiting: u64,
    /// Handle and kind of the qdisc, by which it is told from others that may take its place.
    queue: Option<(u32, String)>,
}

impl Gauge {
    fn read(&self) -> Result<Counted> {
        Ok(match self {
            Self::Qdisc(reader) => {
                let Qdisc { kind, handle, bytes, packets, queue_bytes, .. } = reader.read()?;
                let queue = Some((handle, kind));
                Counted { bytes, packets: packets.into(), waiting: queue_bytes.into(), queue }
            }
            Self::Hardware(reader) => {
                let InFlight { bytes, packets, waiting } = reader.read()?;
                Counted { bytes, packets, waiting, queue: None }
            }
        })
    }

    /// Returns how many packets have gone between two counts of them: a qdisc's has 32 bits.
    fn gone(&self, before: u64, now: u64) -> u64 {
        match self {
            Self::Qdisc(_) => u64::from((now as u32).wrapping_sub(before as u32)),
            Self::Hardware(_) => now.wrapping_sub(before),
        }
    }
}

/// A measurement of how fast a queue drains.
struct Drain {
    gauge: Gauge,
    /// Bytes of a packet's frame that the queue counts beside IP.
    link_header: u64,
    clock: Clock,
    rule: capacity::Drain,
    /// Counters that were read last, and the sum of what has gone since the beginning.
    before: Option<Counted>,
    sum: Counters,
}

impl Drain {
    fn start(interface: &Interface, gauge: Gauge) -> Self {
        Self {
            gauge,
            link_header: interface.link_header.into(),
            clock: Clock::start(),
            rule: capacity::Drain::new(Bytes(interface.mtu.min(1500).into())),
            before: None,
            sum: Counters::default(),
        }
    }

    fn look(&mut self) -> Look {
        let now = time(&self.clock);
        let counted = match self.gauge.read() {
            Ok(read) => read,
            Err(error) => return Look::Useless(error.to_string()),
        };
        match &self.before {
            Some(before) if before.queue == counted.queue => {
                let packets = self.gauge.gone(before.packets, counted.packets);
                let bytes = counted.bytes.wrapping_sub(before.bytes);
                let bytes = bytes.saturating_sub(packets.saturating_mul(self.link_header));
                self.sum.packets += packets;
                self.sum.bytes += Bytes(bytes);
            }
            _ => self.rule.forget(),
        }
        self.sum.waiting = Bytes(counted.waiting);
        self.before = Some(counted);
        self.rule.look(now, self.sum).map_or(Look::Nothing, Look::Rate)
    }
}

/// State of a feeder, as others read it.
#[derive(Debug, Default)]
struct Shared {
    rate: BitRate,
    is_stale: bool,
    is_gone: bool,
}

/// A thread that tells a router's law what a source says, until it is dropped: then the fixed rate holds again.
#[derive(Debug)]
pub struct Feeder {
    shared: Arc<Mutex<Shared>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Feeder {
    /// Begins to read the source for an interface that has a router's law. `fixed` is the rate for when the source says nothing;
    /// `tell` is told in words what changes about the source, never each rate.
    ///
    /// # Errors
    /// If there is no such interface, its counters can not be read, or there is no thread.
    pub fn start(
        interface: &str,
        source: &Source,
        fixed: BitRate,
        tell: impl Fn(&str) + Send + 'static,
    ) -> Result<Self> {
        let found = Interface::find(interface)?;
        let reading = Reading::start(source, &found)?;
        let shared = Arc::new(Mutex::new(Shared { rate: fixed, ..Shared::default() }));
        let stop = Arc::new(AtomicBool::new(false));
        let work = Work {
            interface: interface.to_owned(),
            kind: source.kind(),
            fixed,
            shared: shared.clone(),
            stop: stop.clone(),
        };
        let thread = thread::Builder::new().name("capacity".into()).spawn(move || work.run(reading, tell));
        let thread = thread.context(|| "can not start a thread".into())?;
        Ok(Self { shared, stop, thread: Some(thread) })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the rate that the law was told last; it is told no other meanwhile.
    pub fn hold<T>(&self, work: impl FnOnce(BitRate) -> T) -> T {
        let shared = self.shared();
        work(shared.rate)
    }

    /// Returns true while the source is stale and the fixed rate holds.
    pub fn is_stale(&self) -> bool {
        self.shared().is_stale
    }

    /// Returns true while there is no law at the interface to be told anything.
    pub fn is_gone(&self) -> bool {
        self.shared().is_gone
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's own.
struct Work {
    interface: String,
    kind: SourceKind,
    fixed: BitRate,
    shared: Arc<Mutex<Shared>>,
    stop: Arc<AtomicBool>,
}

impl Work {
    fn run(self, mut reading: Reading, tell: impl Fn(&str)) {
        let Self { interface, kind, fixed, .. } = &self;
        let clock = Clock::start();
        let mut belief = Belief::new(*fixed, time(&clock));
        let mut next = Time::ZERO;
        while !self.stop.load(Ordering::Relaxed) {
            let (look, why) = match reading.look() {
                Look::Nothing => (capacity::Look::Nothing, None),
                Look::Rate(rate) => (capacity::Look::Rate(held(rate)), None),
                Look::Useless(why) => (capacity::Look::Useless, Some(why)),
            };
            let now = time(&clock);
            let (news, new) = belief.hear(now, look);
            match (news, look) {
                (Some(News::Again), capacity::Look::Rate(rate)) => {
                    tell(&format!("{interface}: the capacity comes from {kind} again, {rate}"));
                }
                (Some(News::Stale), _) => {
                    let why = why.unwrap_or_else(|| self.silence());
                    tell(&format!(
                        "{interface}: the source of the capacity, {kind}, is stale: {why}; it is {fixed} now"
                    ));
                }
                _ => {}
            }
            // Somebody may have told the law something else, or put another one there.
            let Some(wanted) = new.or_else(|| belief.told().filter(|_| now >= next)) else { continue };
            next = now + units::Duration(PAUSE.as_nanos() as u64);
            let state = if wanted.is_stale { SourceState::Stale } else { SourceState::Fresh };
            let fed = Fed { kind: *kind, state, pid: std::process::id() };
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            let done = feed(interface, wanted.rate, Some(fed));
            if done.is_ok() {
                (shared.rate, shared.is_stale) = (wanted.rate, wanted.is_stale);
            }
            if let (Err(error), false) = (&done, shared.is_gone) {
                tell(&format!("{interface}: {kind} tells nobody its rate: {error}"));
            }
            shared.is_gone = done.is_err();
        }
        drop(reading);
        // Who comes next finds the rate that was attached; if the law is gone, nobody has to.
        let _ = feed(interface, *fixed, None);
    }

    /// Why nothing is known of a source that says nothing.
    fn silence(&self) -> String {
        match self.kind {
            SourceKind::Drain | SourceKind::Bql => {
                format!("no queue has drained for {} s, so nothing was measured", PATIENCE.as_secs())
            }
            _ => said_nothing(),
        }
    }
}

fn said_nothing() -> String {
    format!("it has said nothing for {} s", PATIENCE.as_secs())
}

/// The nearest rate that law and shaper can hold.
fn held(rate: BitRate) -> BitRate {
    rate.clamp(*RATES.start(), *RATES.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_what_it_says_or_refused_with_the_forms() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cell"), "1\n2\n3\n").unwrap();
        std::fs::write(folder.path().join("wrong"), "3\n2\n").unwrap();
        let parse = |text: &str| Source::parse(text, folder.path(), None);
        assert_eq!(parse("drain").unwrap(), Source::Drain);
        assert_eq!(parse("qdisc").unwrap(), Source::Qdisc);
        let command = |user: &str| Source::Command { line: "echo 1".into(), user: user.into() };
        assert_eq!(parse("command: echo 1").unwrap(), command(NOBODY));
        let of_root = |text: &str| Source::parse(text, folder.path(), Some("root"));
        assert_eq!(of_root("command: echo 1").unwrap(), command("root"));
        assert_eq!(of_root("drain").unwrap_err().exit_code(), 2);
        assert!(matches!(parse("trace:cell").unwrap(), Source::Trace(trace) if trace.stamps() == [1, 2, 3]));
        assert_eq!(parse("bql").unwrap(), Source::Bql);
        for text in
            ["", "drain:5", "trace:", "trace:nowhere", "trace:wrong", "command:", "bql:eth0", "qdisc:eth0"]
        {
            let error = parse(text).unwrap_err();
            assert!(error.exit_code() == 2 && error.help() == Source::FORMS, "{text}: {error}");
        }
    }

    fn shell(line: &str, user: &str) -> Shell {
        Shell::new(line, User::find(user).unwrap())
    }

    /// Returns the number of looks at a command in four seconds that found nothing, and the first that found something.
    fn looks(shell: &mut Shell) -> (usize, Option<Look>) {
        let clock = Clock::start();
        let mut count = 0;
        while since(&clock) < PATIENCE + PAUSE {
            match shell.look() {
                Look::Nothing => count += 1,
                look => return (count, Some(look)),
            }
        }
        (count, None)
    }

    #[test]
    fn a_command_runs_as_nobody_in_no_group_and_gains_no_right() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("SKIP a_command_runs_as_nobody_in_no_group_and_gains_no_right: needs root");
        }
        let print = "sed -n 's/^\\(Uid\\|Groups\\|CapEff\\|CapPrm\\|NoNewPrivs\\):\\s*//p' /proc/self/status | tr '\\n\\t' '| ' >&2; exit 1";
        let mut command = shell(print, NOBODY);
        let Some(Look::Useless(said)) = looks(&mut command).1 else { panic!("no end") };
        let words: Vec<&str> = said.split('"').nth(1).expect(&said).split('|').map(str::trim).collect();
        let uid = User::find(NOBODY).unwrap().uid.to_string();
        assert_eq!(words[0].split_whitespace().collect::<Vec<_>>(), [&*uid; 4], "{said}");
        assert_eq!(words[1..5], ["", "0000000000000000", "0000000000000000", "1"], "{said}");
        // Another user is named.
        let Some(Look::Useless(said)) = looks(&mut shell("id -u >&2; exit 1", "root")).1 else {
            panic!("no end")
        };
        assert!(said.ends_with("saying \"0\""), "{said}");
    }

    #[test]
    fn a_command_that_prints_without_end_waits_and_is_ended() {
        let mut read = 0;
        let clock = Clock::start();
        // Rubbish, and complaints, as fast as it can.
        let mut rubbish = shell("while :; do echo; done & yes complaint >&2", NOBODY);
        while since(&clock) < PATIENCE + Duration::from_millis(500) {
            read += 1;
            if let Look::Useless(why) = rubbish.look()
                && why == said_nothing()
            {
                break;
            }
            assert!(rubbish.printed.len() <= READ_MAX + LINE_MAX);
        }
        assert!(since(&clock) >= PATIENCE && rubbish.running.is_none(), "it was not ended");
        // Each look takes a tick where there is always something to read, but for looks that found less.
        assert!(read < 20_000, "{read} looks");
        // A line without end.
        let Some(Look::Useless(why)) = looks(&mut shell("yes | tr -d '\\n'", NOBODY)).1 else {
            panic!("no end")
        };
        assert_eq!(why, "it prints no lines");
    }

    #[test]
    fn the_state_of_a_source_is_kept_beside_what_there_is_to_undo() {
        let own = std::process::id();
        for kind in
            [SourceKind::Trace, SourceKind::Command, SourceKind::Drain, SourceKind::Qdisc, SourceKind::Bql]
        {
            for state in [SourceState::Fresh, SourceState::Stale] {
                let fed = Fed { kind, state, pid: own };
                let word = Fed::write(0b101, Some(fed));
                assert_eq!((Fed::of(word), word & 0b111), (Some(fed), 0b101));
                assert_eq!(Fed::write(word, None), 0b101);
            }
        }
        assert_eq!(Fed::of(0b111), None);
        let gone = Fed { kind: SourceKind::Drain, state: SourceState::Fresh, pid: (1 << 22) + 1 };
        let read = Fed::of(Fed::write(0, Some(gone))).unwrap();
        assert_eq!(read.state, SourceState::Unread);
        assert!(read.warning().unwrap().contains("is gone"));
    }
}

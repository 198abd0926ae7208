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
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use congestlab_core::units::BitRate;
use congestlab_net::trace::{OPPORTUNITY, Trace};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;

use super::{Config, Interface, RATES, feed, shaped_rate};
use crate::error::{Context, Error, Result};
use crate::link::Clock;
use crate::sys::process;
use crate::sys::qdisc::{Qdisc, QdiscReader};

/// Between two looks at a source: the shortest control interval of XCP's law (draft-03) is no shorter.
const TICK: Duration = Duration::from_millis(10);
/// The rate that a trace offers is told as the mean over steps of this length, ms: packets of 1500 bytes are too coarse for less below
/// some Mbit/s.
const STEP_MS: u64 = 100;
/// Between two looks at a shaper, two starts of a command that ends, and two looks at what somebody else has told the law.
const PAUSE: Duration = Duration::from_secs(1);
/// A rate that was not said again for so long is stale.
pub const PATIENCE: Duration = Duration::from_secs(3);
/// The queue drains at the most that it did within a time this long: of a sample in which it was empty for a while, less is seen.
const WINDOW: Duration = Duration::from_millis(500);
/// A queue that holds this many of the longest packets when a sample begins and ends is taken to have held some in between.
const BUSY_PACKETS: u64 = 2;
/// Changes below this part are not told: each costs a change of the shaper.
const STEP_PARTS: u64 = 100;
/// More than any rate is long, in bytes.
const LINE_MAX: usize = 200;
/// The largest trace, bytes: an hour at 100 Mbit/s has half as much.
const TRACE_MAX: u64 = 256 << 20;

/// A source of a capacity that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The rate that a recorded trace offers, from its beginning on, again and again.
    Trace(Trace),
    /// The rate that a command of the shell prints, one in each line, such as `20 Mbit/s`. One that ends is started again.
    Command(String),
    /// The rate at which bytes leave the interface's queue while packets wait in it, by its counters.
    Drain,
    /// The rate that the interface's shaper, a TBF or HTB of somebody else, states.
    Qdisc,
}

impl Source {
    /// The forms of [`Source::parse`].
    pub const FORMS: &str = "allowed: trace:FILE, command:'CMD', drain, qdisc";

    /// Reads a source: `trace:FILE`, `command:CMD`, `drain` or `qdisc`. Files are looked for from `folder`.
    ///
    /// # Errors
    /// If it is none of these, or the file is no trace.
    pub fn parse(text: &str, folder: &Path) -> Result<Self> {
        let wrong = |what: String| Error::input(what, Self::FORMS);
        match text.split_once(':').map_or((text, ""), |(kind, rest)| (kind, rest.trim())) {
            ("drain", "") => Ok(Self::Drain),
            ("qdisc", "") => Ok(Self::Qdisc),
            ("command", command) if !command.is_empty() => Ok(Self::Command(command.into())),
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
        if config.shape.is_none() || matches!(self, Self::Trace(_) | Self::Command(_)) {
            return Ok(());
        }
        Err(Error::input(
            format!("{} would be that of the shaper which is to follow it", self.kind()),
            "--no-shape, with a queue of the interface's own or of a shaper that somebody else has made",
        ))
    }

    /// Returns what kind it is.
    pub fn kind(&self) -> SourceKind {
        match self {
            Self::Trace(_) => SourceKind::Trace,
            Self::Command(_) => SourceKind::Command,
            Self::Drain => SourceKind::Drain,
            Self::Qdisc => SourceKind::Qdisc,
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
}

impl fmt::Display for SourceKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Trace => "trace",
            Self::Command => "command",
            Self::Drain => "drain",
            Self::Qdisc => "qdisc",
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
    Drain(Drain),
    Qdisc { interface: String, clock: Clock, next: Duration },
}

impl Reading {
    fn start(source: &Source, interface: &Interface) -> Result<Self> {
        let clock = Clock::start();
        Ok(match source {
            Source::Trace(trace) => Self::Trace { trace: trace.clone(), clock, told: None },
            Source::Command(line) => Self::Command(Shell::new(line)),
            Source::Drain => Self::Drain(Drain::start(interface)?),
            Source::Qdisc => Self::Qdisc { interface: interface.name.clone(), clock, next: Duration::ZERO },
        })
    }

    /// Looks, and waits for at most a tick.
    fn look(&mut self) -> Look {
        match self {
            Self::Trace { trace, clock, told } => {
                thread::sleep(TICK);
                let step = since(clock).as_millis() as u64 / STEP_MS;
                if *told == Some(step) {
                    return Look::Nothing;
                }
                *told = Some(step);
                Look::Rate(offered(trace, step))
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
                *next = since(clock) + PAUSE / 10;
                shaped_rate(interface).map_or_else(|error| Look::Useless(error.to_string()), Look::Rate)
            }
        }
    }
}

fn since(clock: &Clock) -> Duration {
    Duration::from_nanos(clock.now() / 1000)
}

/// Mean of the rate that a trace offers within a step, from its beginning on.
fn offered(trace: &Trace, step: u64) -> BitRate {
    let stamps = trace.stamps();
    let period = stamps.last().map_or(1, |last| u64::from(*last)).max(1);
    // Opportunities before a time, of all periods.
    let before = |ms: u64| {
        let within = stamps.partition_point(|stamp| u64::from(*stamp) < ms % period) as u64;
        ms / period * stamps.len() as u64 + within
    };
    let (from, to) = (step * STEP_MS, (step + 1) * STEP_MS);
    BitRate((before(to) - before(from)) * u64::from(OPPORTUNITY) * 8 * 1000 / STEP_MS)
}

/// A command of the shell, with what it has printed.
struct Shell {
    line: String,
    running: Option<(Child, ChildStdout)>,
    printed: Vec<u8>,
    clock: Clock,
    /// When it was started last, and when it said a rate.
    started: Option<Duration>,
    said: Duration,
}

impl Shell {
    fn new(line: &str) -> Self {
        let clock = Clock::start();
        Self { line: line.into(), running: None, printed: vec![], clock, started: None, said: Duration::ZERO }
    }

    fn look(&mut self) -> Look {
        let now = since(&self.clock);
        if self.running.is_none() {
            if self.started.is_some_and(|started| now < started + PAUSE) {
                thread::sleep(TICK);
                return Look::Nothing;
            }
            self.started = Some(now);
            self.said = now;
            let mut command = Command::new("sh");
            command.args(["-c", &self.line]).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
            process::die_with_parent(&mut command);
            match command.spawn() {
                Ok(mut child) => self.running = child.stdout.take().map(|stdout| (child, stdout)),
                Err(error) => return Look::Useless(format!("can not start a shell: {error}")),
            }
        }
        let Some((child, stdout)) = &mut self.running else { return Look::Nothing };
        let tick = Timespec { tv_sec: 0, tv_nsec: i64::from(TICK.subsec_nanos()) };
        let has_come = poll(&mut [PollFd::new(&*stdout, PollFlags::IN)], Some(&tick)).is_ok_and(|n| n > 0);
        if !has_come {
            if now > self.said + PATIENCE {
                self.end();
                return Look::Useless(said_nothing());
            }
            return Look::Nothing;
        }
        let mut buffer = [0; 4096];
        let count = stdout.read(&mut buffer).unwrap_or(0);
        if count > 0 {
            self.printed.extend(&buffer[..count]);
            return self.read();
        }
        // It has closed its output, so it ends.
        let status = child.wait();
        self.end();
        match status {
            Ok(status) if status.success() => Look::Nothing,
            Ok(status) => Look::Useless(format!("it ended with {status}")),
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
            Err(_) => {
                let shown: String = last.chars().filter(|c| !c.is_control()).take(40).collect();
                Look::Useless(format!("it printed \"{shown}\", which is no rate such as \"20 Mbit/s\""))
            }
        }
    }

    /// Ends it with all that it has started.
    fn end(&mut self) {
        if let Some((mut child, _)) = self.running.take() {
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

/// A measurement of how fast a queue drains.
struct Drain {
    reader: QdiscReader,
    /// Bytes of a packet's frame that the queue counts beside IP.
    link_header: u64,
    busy: u64,
    clock: Clock,
    before: (Duration, Qdisc),
    /// Rates of samples in which packets waited, with their times.
    samples: Vec<(Duration, u64)>,
}

impl Drain {
    fn start(interface: &Interface) -> Result<Self> {
        let (reader, clock) = (QdiscReader::open(interface.index)?, Clock::start());
        let before = (since(&clock), reader.read()?);
        Ok(Self {
            reader,
            link_header: interface.link_header.into(),
            busy: BUSY_PACKETS * u64::from(interface.mtu.min(1500)),
            clock,
            before,
            samples: vec![],
        })
    }

    fn look(&mut self) -> Look {
        let now = since(&self.clock);
        let qdisc = match self.reader.read() {
            Ok(qdisc) => qdisc,
            Err(error) => return Look::Useless(error.to_string()),
        };
        let (then, before) = std::mem::replace(&mut self.before, (now, qdisc.clone()));
        let is_same = before.handle == qdisc.handle && before.kind == qdisc.kind;
        let waited = u64::from(before.queue_bytes.min(qdisc.queue_bytes)) >= self.busy;
        let packets = u64::from(qdisc.packets.wrapping_sub(before.packets));
        let bytes = qdisc.bytes.wrapping_sub(before.bytes).saturating_sub(packets * self.link_header);
        // A queue that stands still says nothing of the link but that it is not to be believed.
        if !is_same || !waited || packets == 0 {
            return Look::Nothing;
        }
        let span = (now - then).as_micros().max(1) as u64;
        self.samples.push((now, bytes.saturating_mul(8_000_000) / span));
        self.samples.retain(|(at, _)| now.saturating_sub(*at) < WINDOW);
        // Half of a burst falls into one sample, and half into the next: three make a mean, of which the largest counts.
        let means = self.samples.windows(3).map(|three| three.iter().map(|(_, rate)| rate / 3).sum::<u64>());
        means.max().map_or(Look::Nothing, |rate| Look::Rate(BitRate(rate)))
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
        // The rate that is believed, since when it was not confirmed, and what was told when.
        let (mut rate, mut confirmed) = (None, since(&clock));
        let mut told: Option<(BitRate, bool)> = None;
        let mut next = Duration::ZERO;
        while !self.stop.load(Ordering::Relaxed) {
            let look = reading.look();
            let now = since(&clock);
            let mut reason = None;
            match look {
                Look::Rate(new) => {
                    if rate.is_none() && told.is_some() {
                        tell(&format!("{interface}: the capacity comes from {kind} again, {}", held(new)));
                    }
                    (rate, confirmed) = (Some(held(new)), now);
                }
                Look::Useless(why) => reason = Some(why),
                Look::Nothing if now > confirmed + PATIENCE => reason = Some(self.silence()),
                Look::Nothing => {}
            }
            let was_told = told.is_some_and(|(_, is_stale)| is_stale);
            if let Some(why) = reason {
                rate = None;
                if !was_told {
                    tell(&format!(
                        "{interface}: the source of the capacity, {kind}, is stale: {why}; it is {fixed} now"
                    ));
                }
            } else if rate.is_none() && !was_told {
                // It has not begun to speak; what was attached holds.
                continue;
            }
            let wanted = (rate.unwrap_or(*fixed), rate.is_none());
            let is_new = match told {
                Some((before, was_stale)) => {
                    wanted.1 != was_stale
                        || wanted.0.0.abs_diff(before.0) * STEP_PARTS > before.0
                        || wanted.1 && wanted.0 != before
                }
                None => true,
            };
            // Somebody may have told the law something else, or put another one there.
            if is_new || now >= next {
                let wanted = if is_new { wanted } else { told.unwrap_or(wanted) };
                next = now + PAUSE;
                let state = if wanted.1 { SourceState::Stale } else { SourceState::Fresh };
                let fed = Fed { kind: *kind, state, pid: std::process::id() };
                let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
                let done = feed(interface, wanted.0, Some(fed));
                if done.is_ok() {
                    (shared.rate, shared.is_stale) = wanted;
                }
                if let (Err(error), false) = (&done, shared.is_gone) {
                    tell(&format!("{interface}: {kind} tells nobody its rate: {error}"));
                }
                shared.is_gone = done.is_err();
                told = Some(wanted);
            }
        }
        drop(reading);
        // Who comes next finds the rate that was attached; if the law is gone, nobody has to.
        let _ = feed(interface, *fixed, None);
    }

    /// Why nothing is known of a source that says nothing.
    fn silence(&self) -> String {
        match self.kind {
            SourceKind::Drain => {
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
        let parse = |text: &str| Source::parse(text, folder.path());
        assert_eq!(parse("drain").unwrap(), Source::Drain);
        assert_eq!(parse("qdisc").unwrap(), Source::Qdisc);
        assert_eq!(parse("command: echo 1").unwrap(), Source::Command("echo 1".into()));
        assert!(matches!(parse("trace:cell").unwrap(), Source::Trace(trace) if trace.stamps() == [1, 2, 3]));
        for text in ["", "drain:5", "trace:", "trace:nowhere", "trace:wrong", "command:", "bql", "qdisc:eth0"]
        {
            let error = parse(text).unwrap_err();
            assert!(error.exit_code() == 2 && error.help() == Source::FORMS, "{text}: {error}");
        }
    }

    #[test]
    fn a_trace_offers_what_its_lines_say_also_across_its_end() {
        // 100 opportunities in the first 100 ms, 10 in the next 50 ms, which end the period.
        let mut stamps: Vec<u32> = (0..100).collect();
        stamps.extend((0..10).map(|n| 105 + 5 * n));
        let trace = Trace::new(stamps).unwrap();
        let packets = |step| offered(&trace, step).0 / (1500 * 8 * 10);
        assert_eq!(packets(0), 100);
        // The 10, of which the last, at the period's end, counts with those before it, and 50 of the next.
        assert_eq!(packets(1), 10 + 50);
        let six_periods: u64 = (0..9).map(packets).sum();
        assert_eq!(six_periods, 6 * 110);
    }

    #[test]
    fn the_state_of_a_source_is_kept_beside_what_there_is_to_undo() {
        let own = std::process::id();
        for kind in [SourceKind::Trace, SourceKind::Command, SourceKind::Drain, SourceKind::Qdisc] {
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

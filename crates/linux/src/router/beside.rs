//! XCP beside all other traffic at one port: two classes of HTB, of which the packet's priority names one, and who changes their
//! weights.
//!
//! Each class has its part of the link for certain, and what the other leaves. The law knows its own class only. A [`Follower`]
//! is a thread that counts flows for as long as it runs, once in [`CENSUS`], by the rules of the simulator's two classes: for
//! no program of the kernel can change a class. Without it the weights stay what they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time;

use congestlab_core::law::queue::census;
use congestlab_core::law::queue::xcp_tcp::{CENSUS, Dynamic, Use};
use congestlab_core::units::{BitRate, Duration, Rate, Ratio};
use libbpf_rs::{MapCore, MapFlags};
use serde::Serialize;

use super::maps::{CELLS, CLASSES, PORT, read, write};
use super::program::Settings;
use super::shaper::LINK;
use super::shares::Shares;
use super::{Attached, Backlog, Config, HANDLE, Interface, Law, Queue, SourceState, build, burst, root};
use super::{command, os, refused};
use crate::error::{Context, Error, Result};
use crate::link::Clock;
use crate::sys::process;
use crate::sys::qdisc::{Classes, HtbClass, QdiscReader};

/// Classes and the handles of their queues, of all other traffic and of XCP, in the order of the core's law; `bpf/classes.h` has
/// the same.
const PAIR: [u32; 2] = [HANDLE | 0x20, HANDLE | 0x10];
const QUEUES: [u32; 2] = [0xcc3_0000, 0xcc2_0000];
/// Below, a packet takes more than an eighth of the time in which flows are counted.
const RATE_MIN: BitRate = BitRate(100_000);
/// The longest packet that is no queue when it waits before another: more is a device's affair.
const PACKET_MAX: u32 = 1500;
/// The smaller class takes a frame at a time of what is left over.
const PARTS: u64 = 20;
/// Between two looks at whether to stop.
const TICK: time::Duration = time::Duration::from_millis(50);

/// Refuses two classes where there can be none.
///
/// # Errors
/// If there is no shaper of ours to have them, or the rate is too low.
pub fn check_beside(config: &Config) -> Result<()> {
    if !matches!(config.law, Law::Beside(..)) {
        return Ok(());
    }
    if config.shape.is_none() {
        return Err(Error::input(
            "two classes are parts of a shaper that is made with them, not of a queue that is there",
            "leave --no-shape out, or --beside-tcp",
        ));
    }
    check_rate(config.rate)
}

pub(super) fn check_rate(rate: BitRate) -> Result<()> {
    if rate >= RATE_MIN {
        return Ok(());
    }
    Err(Error::input(
        format!("{rate} is too little for two classes, in which flows are to be counted"),
        format!("{RATE_MIN} or more, or leave --beside-tcp out"),
    ))
}

/// The classes of a link with this rate, of all other traffic and of XCP, by XCP's part.
fn classes(interface: &Interface, rate: BitRate, weight: Ratio) -> [HtbClass; 2] {
    let frame = u64::from(interface.mtu + interface.link_header);
    let ceil = rate.bytes();
    let xcp = Rate(weight.of(ceil.0));
    let burst = burst(rate, interface.mtu + interface.link_header);
    let class = |class: usize, rate: Rate| HtbClass {
        handle: PAIR[class],
        parent: LINK,
        rate,
        ceil,
        burst,
        quantum: u32::try_from((PARTS * frame * rate.0 / ceil.0.max(1)).max(frame)).unwrap_or(u32::MAX),
    };
    [class(0, Rate(ceil.0 - xcp.0)), class(1, xcp)]
}

/// The commands that make the classes of a link, or change them.
fn lines(verb: &str, interface: &Interface, rate: BitRate, weight: Ratio) -> Vec<String> {
    let classes = classes(interface, rate, weight);
    let whole = HtbClass { handle: LINK, parent: HANDLE, rate: rate.bytes(), ..classes[0] };
    let line = |class: &HtbClass| {
        let HtbClass { handle, parent, rate, ceil, burst, quantum } = class;
        let quantum = if *handle == LINK { String::new() } else { format!(" quantum {quantum}") };
        format!(
            "tc class {verb} dev {} parent {} classid {} htb rate {}bit ceil {}bit burst {burst} cburst {burst}{quantum}",
            interface.name,
            shown(*parent),
            shown(*handle),
            rate.bits().0,
            ceil.bits().0,
        )
    };
    [whole].iter().chain(&classes).map(line).collect()
}

/// A handle as tc writes it.
fn shown(handle: u32) -> String {
    match handle & 0xffff {
        0 => format!("{:x}:", handle >> 16),
        minor => format!("{:x}:{minor:x}", handle >> 16),
    }
}

/// The commands that make the queues of the classes, or change their limits.
fn queues(verb: &str, interface: &Interface, kind: &str, limit: u64) -> impl Iterator<Item = String> {
    PAIR.into_iter().zip(QUEUES).map(move |(class, queue)| {
        let (name, class, queue) = (&interface.name, shown(class), shown(queue));
        format!("tc qdisc {verb} dev {name} parent {class} handle {queue} {kind} limit {limit}")
    })
}

/// Holds the rate, with a class for XCP and one for all else, which is where packets go that nobody has sorted.
pub(super) fn shape(interface: &Interface, rate: BitRate, queue: Queue, weight: Ratio) -> Result<()> {
    let mut all = vec![format!("{}htb default {:x}", root("add", interface), PAIR[0] & 0xffff)];
    all.extend(lines("add", interface, rate, weight));
    all.extend(queues("add", interface, queue.kind(), queue.limit()));
    build(interface, &all)
}

/// Gives the link another rate, and its queues another limit, at the weights that hold.
pub(super) fn reshape(interface: &Interface, attached: &Attached, rate: BitRate, limit: u64) -> Result<()> {
    let weight = Shares::read(attached.map(CLASSES)?)?.weight;
    for line in lines("change", interface, rate, weight) {
        command::run(&line)?;
    }
    let Some(shaper) = super::Shaper::of(interface)?.filter(|shaper| shaper.limit != limit) else {
        return Ok(());
    };
    for line in queues("change", interface, shaper.kind(), limit) {
        command::run(&line)?;
    }
    Ok(())
}

/// State of two classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// XCP's part of the link.
    pub xcp_weight: f64,
    /// State of whoever follows flows; `None`: the weights stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follower: Option<SourceState>,
    /// Process that counts flows, or was killed when it did; 0: none.
    pub pid: u32,
    /// Flows of XCP's class in the last census.
    pub xcp_flows: f64,
    /// Flows of the other class in the last census.
    pub tcp_flows: f64,
    /// Backlog and drops of XCP's class.
    pub xcp: Backlog,
    /// Backlog and drops of the other class.
    pub tcp: Backlog,
}

impl Beside {
    pub(super) fn of(interface: &Interface, attached: &Attached) -> Result<Self> {
        let Shares { weight, pid, flows } = Shares::read(attached.map(CLASSES)?)?;
        let backlog =
            |class| Ok::<_, Error>(Backlog::from(&QdiscReader::of_class(interface.index, class)?.read()?));
        let [tcp_flows, xcp_flows] = flows.map(|flows| f64::from(flows) / f64::from(1u32 << census::PLACES));
        let state = if process::is_ours(pid) { SourceState::Fresh } else { SourceState::Unread };
        Ok(Self {
            xcp_weight: f64::from(weight.0) / f64::from(Ratio::ONE.0),
            follower: follows(&attached.settings()?).then_some(state),
            pid,
            xcp_flows,
            tcp_flows,
            xcp: backlog(PAIR[1])?,
            tcp: backlog(PAIR[0])?,
        })
    }

    /// Warns of weights that nobody changes any more; `None`: somebody does, or they are to stay.
    pub(super) fn warning(&self) -> Option<String> {
        let Self { xcp_weight, follower, pid, .. } = self;
        (*follower == Some(SourceState::Unread)).then(|| {
            let gone = if *pid == 0 {
                "nobody counts them".into()
            } else {
                format!("process {pid}, which counted them, is gone")
            };
            format!("XCP's part of the link stays {xcp_weight:.3} whatever flows there are: {gone}")
        })
    }
}

/// True if the weights of a program with two classes follow flows.
fn follows(settings: &Settings) -> bool {
    settings.law() == Law::BESIDE && settings.0.get(68..72).is_some_and(|word| word != [0; 4])
}

/// Refuses to do what a process that follows flows does.
pub(super) fn require_unfollowed(name: &str, attached: &Attached) -> Result<()> {
    if !follows(&attached.settings()?) {
        return Ok(());
    }
    let Shares { pid, .. } = Shares::read(attached.map(CLASSES)?)?;
    if !process::is_ours(pid) {
        return Ok(());
    }
    Err(Error::input(
        format!("process {pid} counts the flows of {name}, and changes its classes by them"),
        format!("end it first: kill {pid}"),
    ))
}

/// A thread that counts the flows of both classes of an interface and changes their weights, until it is dropped: they then stay
/// what they are.
#[derive(Debug)]
pub struct Follower {
    stop: Arc<AtomicBool>,
    is_gone: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Begins to follow the flows of an interface whose law has two classes. `tell` is told in words what goes wrong.
    ///
    /// # Errors
    /// If the interface has none, or there is no thread.
    pub fn start(interface: &str, tell: impl Fn(&str) + Send + 'static) -> Result<Self> {
        let mut counting = Counting::begin(interface)?;
        let (stop, is_gone) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (name, stopped, gone) = (interface.to_owned(), stop.clone(), is_gone.clone());
        let work = move || {
            let mut has_failed = false;
            while !stopped.load(Ordering::Relaxed) {
                thread::sleep(TICK);
                if counting.age() < CENSUS {
                    continue;
                }
                // Another program may be in its place by now, or the interface be another one: once that is no error.
                let ended = counting.end();
                let is_again = std::mem::replace(&mut has_failed, ended.is_err()) && has_failed;
                let ended = ended.or_else(|error| {
                    counting = Counting::begin(&name)?;
                    if is_again { Err(error) } else { Ok(()) }
                });
                if let (Err(error), false) = (&ended, gone.load(Ordering::Relaxed)) {
                    tell(&format!("{name}: flows are not counted: {error}"));
                }
                gone.store(ended.is_err(), Ordering::Relaxed);
                counting.clock = Clock::start();
            }
            counting.leave();
        };
        let thread = thread::Builder::new().name("classes".into()).spawn(work);
        let thread = thread.context(|| "can not start a thread".into())?;
        Ok(Self { stop, is_gone, thread: Some(thread) })
    }

    /// Returns true while there are no classes at the interface.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Counts that only grow, as of a moment: bytes and drops of the other class, and what its arrivals found waiting.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    bytes: u64,
    drops: u64,
    found: u64,
    arrivals: u64,
}

/// A census that goes on.
struct Counting {
    interface: Interface,
    queue: QdiscReader,
    writer: Classes,
    clock: Clock,
    before: Counts,
}

impl Counting {
    fn begin(name: &str) -> Result<Self> {
        let interface = Interface::find(name)?;
        let (queue, writer) =
            (QdiscReader::of_class(interface.index, PAIR[0])?, Classes::open(interface.index)?);
        let before = Counts::default();
        let mut counting = Self { interface, queue, writer, clock: Clock::start(), before };
        let attached = counting.attached()?;
        let map = attached.map(CLASSES)?;
        let shares = Shares::read(map)?;
        counting.require_own(&attached)?;
        for class in [0, 1] {
            write(attached.map(CELLS)?, class, &[0; 4 * census::CELLS])?;
        }
        counting.before = counting.counts(&attached)?;
        Shares { pid: std::process::id(), ..shares }.write(map)?;
        Ok(counting)
    }

    /// Says that nobody counts any more, if there is somebody to hear it.
    fn leave(&self) {
        if let Ok(attached) = self.attached()
            && let Ok(map) = attached.map(CLASSES)
            && let Ok(shares) = Shares::read(map)
            && shares.pid == std::process::id()
        {
            let _ = Shares { pid: 0, ..shares }.write(map);
        }
    }

    /// Refuses to count where another process does.
    fn require_own(&self, attached: &Attached) -> Result<()> {
        if Shares::read(attached.map(CLASSES)?)?.pid == std::process::id() {
            return Ok(());
        }
        require_unfollowed(&self.interface.name, attached)
    }

    fn age(&self) -> Duration {
        Duration(self.clock.now() / 1000)
    }

    /// The program, asked for each time: somebody may have put another one there.
    fn attached(&self) -> Result<Attached> {
        let attached = self.interface.require_attached()?;
        if follows(&attached.settings()?) {
            return Ok(attached);
        }
        Err(Error::input(
            format!("the law of {} has no classes that follow flows", self.interface.name),
            "congestlab router attach IFACE --law xcp --rate RATE --beside-tcp",
        ))
    }

    fn counts(&self, attached: &Attached) -> Result<Counts> {
        let queue = self.queue.read()?;
        let port = read(attached.map(PORT)?, MapFlags::LOCK)?;
        // Behind the lock, and in `struct port` behind the times, the report and the counts.
        let word = |index: usize| {
            let word = port.get(8 + 8 * index..16 + 8 * index);
            word.and_then(|word| word.try_into().ok()).map_or(0, u64::from_ne_bytes)
        };
        Ok(Counts { bytes: queue.bytes, drops: queue.drops.into(), found: word(18), arrivals: word(19) })
    }

    /// Ends the census, tells law and classes what came of it, and begins the next.
    fn end(&mut self) -> Result<()> {
        let attached = self.attached()?;
        // Somebody else may have attached it anew meanwhile, and count.
        self.require_own(&attached)?;
        let (now, before, span) = (self.counts(&attached)?, self.before, self.age());
        let mut flows = [0; 2];
        for (class, flows) in (0u32..).zip(&mut flows) {
            let map = attached.map(CELLS)?;
            let cells = map.lookup(&class.to_ne_bytes(), MapFlags::ANY);
            let cells = cells.map_err(|error| refused("read a map", os(error)))?.unwrap_or_default();
            write(map, class, &[0; 4 * census::CELLS])?;
            let (words, _) = cells.as_chunks::<4>();
            *flows = census::flows(words.iter().map(|word| u32::from_ne_bytes(*word)));
        }
        // What became less was begun anew.
        let grown = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        let arrivals = grown(now.arrivals, before.arrivals) as i64;
        let packet = i64::from(self.interface.mtu.min(PACKET_MAX));
        let used = Use {
            bytes: grown(now.bytes, before.bytes),
            excess: (grown(now.found, before.found) as i64).saturating_sub(arrivals.saturating_mul(packet)),
            is_told: now.drops != before.drops,
        };
        let capacity = attached.settings()?.capacity();
        let map = attached.map(CLASSES)?;
        let weight = Shares::read(map)?.weight;
        let part = used.part(flows, span, capacity);
        let weight = part.map_or(weight, |part| Dynamic::FLOWS.towards(weight, part));
        let flows = flows.map(|flows| u32::try_from(flows).unwrap_or(u32::MAX));
        // The law is told what the classes have, and not before they have it.
        let [tcp, xcp] = classes(&self.interface, capacity.bits(), weight);
        self.writer.change(&tcp)?;
        self.writer.change(&xcp)?;
        Shares { weight, pid: std::process::id(), flows }.write(map)?;
        self.before = now;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_share_the_whole_rate_at_any_weight() {
        let interface = Interface {
            name: "v0".into(),
            index: 1,
            link_header: 14,
            mtu: 1500,
            is_up: true,
            is_loopback: false,
        };
        for rate in [1_000, 100_000, 45_000_001, 1_000_000_000_000] {
            for weight in [50_000, 333_333, 500_000, 950_000] {
                let [tcp, xcp] = classes(&interface, BitRate(rate), Ratio::ppm(weight));
                assert_eq!(tcp.rate.0 + xcp.rate.0, rate / 8);
                assert!(tcp.rate.0 > 0 && xcp.rate.0 > 0 && tcp.quantum >= 1514 && xcp.quantum >= 1514);
                assert_eq!((tcp.ceil, xcp.ceil), (Rate(rate / 8), Rate(rate / 8)));
            }
        }
        let lines = lines("add", &interface, BitRate(20_000_000), Ratio::ppm(250_000));
        assert_eq!(
            lines[2],
            "tc class add dev v0 parent cc1:1 classid cc1:10 htb rate 5000000bit ceil 20000000bit burst 5000 cburst 5000 \
             quantum 7570"
        );
    }
}

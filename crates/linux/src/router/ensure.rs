//! A router's law that is to be there: attached if it is missing, changed in place where it differs, left alone where it is as
//! wanted. What was attached so has a mark in the program's configuration, by which it is told from what somebody
//! attached by hand.

use std::fmt;

use congestlab_core::units::BitRate;

use super::program::Settings;
use super::shaper::Shaper;
use super::state::State;
use super::{
    Attached, Config, Fed, Interface, Law, PLACE, PROGRAM, Program, SHAPED, attach_as, beside, check_beside,
    check_encoding, check_rate, check_records, detach, law_name, require_unread, reshape, tell_rate,
};
use crate::error::{Error, Result};
use crate::sys::command;

/// In the configuration beside the changes to undo: [`ensure`] has attached the program.
pub(super) const APPLIED: u32 = 4;

/// The change that made an interface as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing was to change.
    None,
    /// The law was attached.
    Attached,
    /// The law was put in the place of another one; the shaper and its queue stayed.
    Replaced(State),
    /// The law and its shaper were detached and attached again; packets in the queue were lost.
    Again,
    /// Rate, queue or bucket were changed in place.
    Set(Vec<Part>),
}

/// A part of a router that can be changed while traffic goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Rate before.
    Rate(BitRate),
    /// Limit of the queue before, packets or bytes.
    Limit(u64),
    /// Bytes that the shaper's bucket held, too few or too many for the interface's MTU.
    Bucket {
        /// Bytes before.
        before: u64,
        /// MTU now.
        mtu: u32,
    },
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(before) => write!(out, "rate, before {before}"),
            Self::Limit(before) => write!(out, "limit of the queue, before {before}"),
            Self::Bucket { before, mtu } => {
                write!(out, "shaper's bucket for an MTU of {mtu}, before {before} B")
            }
        }
    }
}

/// Makes the interface have this law, by the smallest change that does: nothing, rate and queue in place, the program alone, or
/// all of it.
///
/// # Errors
/// As [`attach`](super::attach), and if the interface has another law that was attached by hand: it is left alone.
pub fn ensure(name: &str, config: &Config) -> Result<Change> {
    ensure_as(name, config, APPLIED)
}

/// Makes the interface have this law as [`ensure`] does, also in the place of one that was attached by hand, or by another build of
/// this program: queue and connections stay, and the law goes on where it was, with the capacity that is told here, if it is the
/// same law with the same constants, and remembers the same ([`State`]).
///
/// # Errors
/// As [`attach`](super::attach), if the queue could not stay, and if somebody reads the capacity from a source.
pub fn replace(name: &str, config: &Config) -> Result<Change> {
    ensure_as(name, config, 0)
}

/// With the mark of [`ensure`], or none.
fn ensure_as(name: &str, config: &Config, mark: u32) -> Result<Change> {
    check_rate(config.rate)?;
    check_encoding(config)?;
    check_beside(config)?;
    check_records(&config.law)?;
    let interface = Interface::find(name)?;
    let config = &config.fitted(&interface.root_qdisc()?.kind);
    let Some(attached) = interface.attached()? else {
        attach_as(name, config, mark)?;
        return Ok(Change::Attached);
    };
    let mut settings = attached.settings()?;
    if mark == 0 {
        require_unread(name, &settings)?;
        beside::require_unfollowed(name, &attached)?;
        // Of a source that nobody reads any more this is the end.
        settings.set_undo(Fed::write(settings.undo(), None));
    }
    let shaper = if settings.undo() & SHAPED == 0 { None } else { Shaper::of(&interface)? };
    let is_there = match (config.shape, shaper) {
        (None, None) => settings.undo() & SHAPED == 0,
        (Some(queue), Some(shaper)) => shaper.is_that_of(&config.law, queue),
        _ => false,
    };
    let is_same = settings.are_those_of(config, interface.link_header);
    if mark == 0 && !is_there {
        return Err(Error::input(
            format!(
                "the queue of {name} is not one that such a law can be put before: packets or bytes, one class or two, a shaper or none"
            ),
            format!("congestlab router detach {name}, then attach; what waits in the queue is lost"),
        ));
    }
    if mark == APPLIED && !(is_there && is_same) && settings.undo() & APPLIED == 0 {
        return Err(Error::input(
            format!("{name} has the law {} otherwise than wanted, attached by hand", settings.name()),
            format!("congestlab router detach {name}"),
        ));
    }
    if !is_there {
        detach(name)?;
        attach_as(name, config, mark)?;
        return Ok(Change::Again);
    }
    let parts = parts(&interface, &settings, shaper, config);
    if is_same && parts.is_empty() {
        return Ok(Change::None);
    }
    if let (Some(queue), false) = (config.shape, parts.is_empty()) {
        reshape(&interface, &attached, config.rate, queue.limit())?;
    }
    if is_same {
        tell_rate(&attached, settings, name, config.rate)?;
        return Ok(Change::Set(parts));
    }
    let state = put(&interface, &attached, &settings, mark, config)?;
    // One that begins anew does so with weights of its own.
    if let (Law::Beside(..), Some(queue), true) = (&config.law, config.shape, state != State::Kept) {
        reshape(&interface, &interface.require_attached()?, config.rate, queue.limit())?;
    }
    Ok(Change::Replaced(state))
}

/// Returns the parts that differ and can be changed in place.
fn parts(interface: &Interface, settings: &Settings, shaper: Option<Shaper>, config: &Config) -> Vec<Part> {
    let mut parts = vec![];
    let capacity = config.rate.bytes();
    let rates = [Some(settings.capacity()), shaper.map(|shaper| shaper.rate)];
    if let Some(before) = rates.into_iter().flatten().find(|rate| *rate != capacity) {
        parts.push(Part::Rate(before.bits()));
    }
    if let (Some(queue), Some(shaper)) = (config.shape, shaper) {
        if queue.limit() != shaper.limit {
            parts.push(Part::Limit(shaper.limit));
        }
        // A new rate takes its bucket along.
        if let (true, Some(before)) =
            (shaper.rate == capacity && shaper.has_other_bucket(config.rate, interface), shaper.bucket)
        {
            parts.push(Part::Bucket { before, mtu: interface.mtu });
        }
    }
    parts
}

/// Puts a program in the place of the one that hangs there, in one step: whoever is killed leaves the one or the other. The queue
/// stays, and the state if both understand it: then it is the same map, locked for each packet, whoever of the two works on it.
fn put(
    interface: &Interface,
    attached: &Attached,
    settings: &Settings,
    mark: u32,
    config: &Config,
) -> Result<State> {
    let name = &interface.name;
    let state = settings.state_under(config, attached.hung.info.id);
    let line = format!("bpf replace {PROGRAM} ({}) at tcx egress of {name}: {state}", law_name());
    if !command::announce(&line) {
        return Ok(state);
    }
    let undo = settings.undo() | mark;
    let maps = if state == State::Kept { &attached.maps[..] } else { &[] };
    let program = Program::load_on(config.law.object(), config, interface.link_header, undo, maps)?;
    program.with_fd(|program| interface.replace(PLACE, &attached.hung, program))??;
    Ok(state)
}

/// Returns the names of the interfaces whose laws [`ensure`] has attached.
///
/// # Errors
/// If the privilege to look is missing.
pub fn ensured() -> Result<Vec<String>> {
    let mut names = vec![];
    for interface in Interface::all()? {
        if let Some(attached) = interface.attached()?
            && attached.settings()?.undo() & APPLIED != 0
        {
            names.push(interface.name);
        }
    }
    Ok(names)
}

/// Warns of a program that another build has loaded.
pub(super) fn other_build(name: &str, settings: &Settings) -> Option<String> {
    settings.is_of_other_build().then(|| {
        format!(
            "the program of {} is that of another version, whose numbers may stand elsewhere: congestlab router attach {name} --replace, \
             with what it was attached with, puts this version's in its place",
            settings.name()
        )
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::thread::{scope, sleep};
    use std::time::Duration;

    use libbpf_rs::{MapCore as _, MapFlags};

    use congestlab_core::units::Ratio;

    use super::super::{CONFIG, Encoding, Law, attach, law, pxcp, status};
    use super::super::{Queue, json};
    use super::*;
    use crate::sys::netns::Namespace;

    /// A namespace that is removed in the end.
    struct Lab(Option<Namespace>);

    impl Drop for Lab {
        fn drop(&mut self) {
            self.0.take().map(Namespace::delete);
        }
    }

    fn config(mbits: u64) -> Config {
        let rate = BitRate(mbits * 1_000_000);
        Config { rate, law: law(rate), encoding: Encoding::Option, shape: Some(Queue::Packets(1000)) }
    }

    /// As a build leaves it that stamped nothing.
    fn age() {
        let attached = Interface::find("v0").unwrap().require_attached().unwrap();
        let mut settings = attached.settings().unwrap();
        let at = settings.0.len() - 3;
        settings.0[at..].fill(0);
        attached.map(CONFIG).unwrap().update(&0u32.to_ne_bytes(), &settings.0, MapFlags::ANY).unwrap();
    }

    /// As a build leaves it in which the fields of the state had another meaning.
    fn mean_otherwise() {
        let attached = Interface::find("v0").unwrap().require_attached().unwrap();
        let mut settings = attached.settings().unwrap();
        let at = settings.0.len() - 4;
        settings.0[at] ^= 0xf0;
        attached.map(CONFIG).unwrap().update(&0u32.to_ne_bytes(), &settings.0, MapFlags::ANY).unwrap();
    }

    fn tuned() -> Law {
        let mut law = config(10).law;
        assert!(law.tell("alpha", Ratio::ppm(300_000)));
        law
    }

    fn refused(result: Result<impl fmt::Debug>) -> String {
        match result {
            Err(Error::Input { what, help }) => format!("{what}; {help}"),
            other => panic!("{other:?}"),
        }
    }

    fn received() -> u64 {
        let list = json("ip -j -s link show dev v1").unwrap();
        list[0]["stats64"]["rx"]["packets"].as_u64().unwrap()
    }

    #[test]
    fn a_program_of_another_build_is_replaced_and_no_packet_is_lost() {
        let name = format!("cl-replace-{}", std::process::id());
        let lab = match Namespace::create(&name) {
            Ok(namespace) => Lab(Some(namespace)),
            Err(error) => return eprintln!("SKIP router/replace: no namespace: {error}"),
        };
        lab.0
            .as_ref()
            .unwrap()
            .run(|| {
                let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
                for line in [
                    "ip link add v0 type veth peer name v1",
                    "ip link set v1 up",
                    "ip link set v0 up",
                    "ip address add 10.77.0.1/24 dev v0",
                    "ip neighbour add 10.77.0.2 lladdr 02:00:00:00:00:02 dev v0",
                ] {
                    command::run(line).unwrap();
                }
                match attach("v0", &config(10)) {
                    Err(error @ Error::Missing { .. }) => return eprintln!("SKIP router/replace: {error}"),
                    done => done.unwrap(),
                }
                let look = || status(Some("v0")).unwrap().remove(0);
                assert!(!look().other_build && look().warning.is_none());
                assert_eq!(replace("v0", &config(10)).unwrap(), Change::None);
                age();
                let old = look();
                assert!(old.other_build && old.warning.is_some_and(|text| text.contains("--replace")));
                assert!(refused(attach("v0", &config(10))).contains("--replace"));
                assert!(refused(ensure("v0", &config(10))).contains("by hand"));
                let bytes = Config { shape: Some(Queue::Bytes(100_000)), ..config(10) };
                assert!(refused(replace("v0", &bytes)).contains("detach v0"));
                assert!(refused(replace("v0", &Config { shape: None, ..config(10) })).contains("detach v0"));

                let (before, interface) = (received(), Interface::find("v0").unwrap());
                let (sent, counted) = (3000, look().sample);
                scope(|scope| {
                    let sending = scope.spawn(|| {
                        // A thread of a scope is in the namespace of the one that began it.
                        let socket = UdpSocket::bind(("10.77.0.1", 0)).unwrap();
                        for _ in 0..sent {
                            socket.send_to(&[0; 100], ("10.77.0.2", 9)).unwrap();
                            sleep(Duration::from_micros(500));
                        }
                    });
                    let (mut times, mut last) = (0, counted);
                    while !sending.is_finished() || times == 0 {
                        age();
                        // The rate alone is no other law.
                        let mbits = 10 + times % 2;
                        assert_eq!(replace("v0", &config(mbits)).unwrap(), Change::Replaced(State::Kept));
                        let now = look().sample;
                        assert_eq!(now.capacity_bps, mbits * 1_000_000);
                        assert!(
                            now.intervals >= last.intervals && now.packets >= last.packets,
                            "{last:?}, {now:?}"
                        );
                        last = now;
                        assert_eq!(interface.programs(PLACE).unwrap().len(), 1);
                        times += 1;
                    }
                });
                // The shaper lets go what waits.
                for _ in 0..100 {
                    if received() - before >= sent {
                        break;
                    }
                    sleep(Duration::from_millis(20));
                }
                let now = look();
                assert_eq!((received() - before, now.queue.drops), (sent, 0));
                // The law has seen each of them, whichever program it was in.
                let seen = now.sample.packets - counted.packets;
                assert!(!now.other_build && now.shaped && seen == sent, "{seen} of {sent}: {now:?}");
                assert!(now.sample.intervals > counted.intervals + 3, "{now:?}");
                assert!(matches!(replace("v0", &config(10)).unwrap(), Change::None | Change::Set(_)));
                for (other, state) in [
                    (Config { encoding: Encoding::Both, ..config(10) }, State::Kept),
                    (Config { law: tuned(), ..config(10) }, State::OtherConstants),
                    (Config { law: pxcp(config(10).rate), ..config(10) }, State::OtherLaw),
                    (config(10), State::OtherLaw),
                ] {
                    assert_eq!(replace("v0", &other).unwrap(), Change::Replaced(state), "{other:?}");
                    assert_eq!(look().sample.packets >= sent, state == State::Kept, "{state:?}");
                }
                // As a build leaves it whose fields meant other things.
                mean_otherwise();
                assert_eq!(replace("v0", &config(10)).unwrap(), Change::Replaced(State::OtherLayout));
                let set = Change::Set(vec![Part::Rate(BitRate(10_000_000))]);
                assert_eq!(replace("v0", &config(20)).unwrap(), set);
                detach("v0").unwrap();
                assert_eq!(interface.programs(PLACE).unwrap().len(), 0);
                assert!(!interface.has_our_shaper().unwrap());
                assert_eq!(replace("v0", &config(10)).unwrap(), Change::Attached);
            })
            .unwrap();
    }
}

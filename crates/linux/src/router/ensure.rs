//! A router's law that is to be there: attached if it is missing, changed in place where it differs, left alone where it is as
//! wanted. What was attached so has a mark in the program's configuration, by which it is told from what somebody
//! attached by hand.

use std::fmt;

use congestlab_core::units::{BitRate, Rate};
use serde_json::Value;

use super::program::Settings;
use super::{
    Attached, CLSACT, Config, Interface, PLACE, PROGRAM, Program, Queue, SHAPED, attach_as, bucket, burst,
    check_rate, detach, json, law_name, tell_rate,
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
    Replaced,
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

/// State of the shaper that [`attach`](super::attach) set up, as tc tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shaper {
    pub(super) rate: Rate,
    /// Bytes in the bucket.
    pub(super) bucket: u64,
    pub(super) limit: u64,
    counts_packets: bool,
}

impl Shaper {
    /// `None`: there is none of ours.
    pub(super) fn of(interface: &Interface) -> Result<Option<Self>> {
        let list = json(&format!("tc -j qdisc show dev {}", interface.name))?;
        let list = list.as_array().map_or(&[][..], Vec::as_slice);
        let number = |qdisc: &Value, key: &str| qdisc["options"][key].as_u64();
        let root = list.iter().find(|qdisc| qdisc["handle"] == "cc1:" && qdisc["kind"] == "tbf");
        // Of the bucket itself, tc prints a latency instead where the limit is more than the bucket holds.
        let queue = list.iter().find(|qdisc| qdisc["parent"] == "cc1:1");
        let read = || {
            let (root, queue) = (root?, queue?);
            Some(Self {
                rate: Rate(number(root, "rate")?),
                bucket: number(root, "burst")?,
                limit: number(queue, "limit")?,
                counts_packets: queue["kind"] == "pfifo",
            })
        };
        Ok(read())
    }

    /// True if the bucket is not the one for this interface. tc tells the kernel microseconds at the rate, and cuts twice.
    fn has_other_bucket(&self, rate: BitRate, interface: &Interface) -> bool {
        let wanted = burst(rate, interface.mtu + interface.link_header);
        self.bucket.abs_diff(wanted) > wanted / 64 + 2 * (1 + rate.bytes().0 / 1_000_000)
    }
}

/// Warns of packets that the bucket can not hold: its size was that for the MTU when it was made.
pub(super) fn warning(interface: &Interface, shaper: Shaper) -> Option<String> {
    let Interface { name, mtu, link_header, .. } = interface;
    let rate = shaper.rate.bits();
    let is_smaller =
        shaper.bucket < burst(rate, mtu + link_header) && shaper.has_other_bucket(rate, interface);
    if !is_smaller {
        return None;
    }
    let effect = if u64::from(*mtu) > shaper.bucket {
        "longer packets are dropped"
    } else {
        "two packets do not fit, so that the rate may not be reached"
    };
    Some(format!(
        "MTU is now {mtu}, the shaper's bucket holds {} B: {effect}; congestlab router set {name} --rate \"{rate}\"",
        shaper.bucket
    ))
}

/// Makes the interface have this law, by the smallest change that does: nothing, rate and queue in place, the program alone, or
/// all of it.
///
/// # Errors
/// As [`attach`](super::attach), and if the interface has another law that was attached by hand: it is left alone.
pub fn ensure(name: &str, config: &Config) -> Result<Change> {
    check_rate(config.rate)?;
    let interface = Interface::find(name)?;
    let Some(attached) = interface.attached()? else {
        attach_as(name, config, APPLIED)?;
        return Ok(Change::Attached);
    };
    let settings = attached.settings()?;
    let shaper = if settings.undo() & SHAPED == 0 { None } else { Shaper::of(&interface)? };
    let is_there = match (config.shape, shaper) {
        (None, None) => settings.undo() & SHAPED == 0,
        (Some(queue), Some(shaper)) => matches!(queue, Queue::Packets(_)) == shaper.counts_packets,
        _ => false,
    };
    let is_same = settings.are_those_of(config, interface.link_header);
    if !(is_there && is_same) && settings.undo() & APPLIED == 0 {
        return Err(Error::input(
            format!("{name} has the law {} otherwise than wanted, attached by hand", settings.name()),
            format!("congestlab router detach {name}"),
        ));
    }
    if !is_there {
        detach(name)?;
        attach_as(name, config, APPLIED)?;
        return Ok(Change::Again);
    }
    let parts = parts(&interface, &settings, shaper, config);
    if is_same && parts.is_empty() {
        return Ok(Change::None);
    }
    if let (Some(queue), false) = (config.shape, parts.is_empty()) {
        command::run(&bucket("change", &interface, config.rate, queue.limit()))?;
    }
    if is_same {
        tell_rate(&attached, settings, name, config.rate)?;
        return Ok(Change::Set(parts));
    }
    replace(&interface, &attached, &settings, config)?;
    Ok(Change::Replaced)
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
        if shaper.rate == capacity && shaper.has_other_bucket(config.rate, interface) {
            parts.push(Part::Bucket { before: shaper.bucket, mtu: interface.mtu });
        }
    }
    parts
}

/// Puts a program in the place of the one that hangs there. It is loaded before that is taken away; the queue stays.
fn replace(interface: &Interface, attached: &Attached, settings: &Settings, config: &Config) -> Result<()> {
    let name = &interface.name;
    if !command::announce(&format!("bpf replace {PROGRAM} ({}) at tcx egress of {name}", law_name())) {
        return Ok(());
    }
    let mut program =
        Program::load(config.law.object(), config, interface.link_header, settings.undo() | APPLIED)?;
    interface.detach(PLACE, &attached.hung)?;
    if program.with_fd(|program| interface.attach(PLACE, program))?? {
        program.add_undo(CLSACT)?;
    }
    Ok(())
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

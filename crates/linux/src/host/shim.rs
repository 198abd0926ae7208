//! The header between IP and TCP, or the code of VCP and DPCP, at a host's interfaces: put in as packets leave, taken out
//! as they arrive. TCP's super-packets can not be cut with the header, nor with DPCP's exchanged numbers, so there are none
//! meanwhile; VCP's code is in each part.
//!
//! The settings from before are kept in a map of the programs, so that whoever finds the programs can undo the change.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, Program};

use super::half;
use crate::error::{Context, Error, Result};
use crate::interface::{Interface, Place, Side};
use crate::sys::bpf::{self, os};
use crate::sys::netns::Namespace;
use crate::sys::{command, offload};

/// The map with a [`Before`] for each interface.
pub(super) const MAP: &str = "interfaces";
/// First: a router at the same interface must find the header, and nobody else our protocol. Filters
/// of a lower number come first, too.
const PROGRAMS: [(&str, Place); 2] = [
    ("cl_host_in", Place { side: Side::In, is_first: true, filter: 0xcc0 }),
    ("cl_host_out", Place { side: Side::Out, is_first: true, filter: 0xcc0 }),
];

/// Returns true if a program of the object is one of these.
pub(super) fn is_program(name: &str) -> bool {
    PROGRAMS.iter().any(|(program, _)| *program == name)
}

/// The programs, and the map of what they change.
#[derive(Debug)]
pub(super) struct Programs {
    fds: Vec<OwnedFd>,
    map: MapHandle,
    /// The id of the map that all programs use: it tells ours.
    storage: u32,
    is_single: bool,
}

/// True if an interface with such a `gso_max_segs` must have another.
pub(super) fn limits(is_single: bool, gso_max_segs: u32) -> bool {
    is_single && gso_max_segs != 1
}

impl Programs {
    pub(super) fn of(object: &Object, map: MapHandle, storage: &MapHandle, is_single: bool) -> Result<Self> {
        let mut fds = vec![];
        for (name, _) in PROGRAMS {
            let program = object.progs().find(|program| program.name() == name);
            let program = program.ok_or_else(|| Error::missing(format!("no program {name}"), ""))?;
            // Whoever finds one of them finds what it was like before.
            bpf::bind(program.as_fd(), map.as_fd()).context(|| format!("can not bind a map to {name}"))?;
            fds.push(program.as_fd().try_clone_to_owned().context(|| format!("can not keep {name}"))?);
        }
        Ok(Self { fds, map, storage: id_of(storage)?, is_single })
    }

    /// Finds the programs of a persistent host.
    pub(super) fn find(map: MapHandle, storage: &MapHandle, is_single: bool) -> Result<Self> {
        let storage = id_of(storage)?;
        let options = ProgInfoQueryOptions::default().include_map_ids(true);
        let all: Vec<_> = ProgInfoIter::with_query_opts(options)
            .filter(|program| program.map_ids.contains(&storage))
            .collect();
        let mut fds = vec![];
        for (name, _) in PROGRAMS {
            let program = all.iter().find(|program| program.name == name);
            let program = program.ok_or_else(|| {
                let what = format!("the program {name} is gone with the last interface that had it");
                Error::missing(what, "congestlab host disable, then congestlab host enable")
            })?;
            let fd = Program::fd_from_id(program.id).map_err(os);
            fds.push(fd.context(|| format!("can not open the program {name}"))?);
        }
        Ok(Self { fds, map, storage, is_single })
    }
}

/// `struct before` of `host.bpf.c`.
#[derive(Clone, Copy, Debug)]
struct Before {
    gso_max_segs: u32,
    has_made_clsact: bool,
}

/// An interface that does it; undone when dropped.
#[derive(Debug)]
pub(super) struct Insertion {
    namespace: Namespace,
    key: Key,
    map: MapHandle,
    storage: u32,
    stays: bool,
}

/// `struct interface` of `host.bpf.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    namespace: u64,
    index: i32,
}

impl Key {
    fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.namespace.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.index.to_ne_bytes());
        bytes
    }
}

/// Says what happens at an interface, after a look at whether it can. The number is what `gso_max_segs`
/// is.
pub(super) fn announce(name: &str) -> Result<(Interface, u32)> {
    let interface = Interface::find(name)?;
    for (program, place) in PROGRAMS {
        if interface.programs(place)?.iter().any(|hung| hung.info.name == program) {
            return Err(Error::input(
                format!("{name} belongs to a host with VCP, DPCP or the encoding shim already"),
                "congestlab host disable, or another --interface",
            ));
        }
    }
    for (program, place) in PROGRAMS {
        let side = if place.side == Side::In { "ingress" } else { "egress" };
        command::announce(&format!("bpf attach {program} to {side} of {name}"));
    }
    Ok((interface, offload::max_segments(name)?))
}

impl Programs {
    /// Hangs them at an interface of the calling thread's network namespace.
    pub(super) fn insert(&self, name: &str) -> Result<Insertion> {
        let (interface, gso_max_segs) = announce(name)?;
        let namespace = Namespace::current()?;
        let key = Key { namespace: namespace.inode()?, index: interface.index };
        let mut before = Before { gso_max_segs, has_made_clsact: false };
        write(&self.map, key, before)?;
        let map = MapHandle::try_from(&self.map).map_err(os).context(|| "can not keep a map".into())?;
        let insertion = Insertion { namespace, key, map, storage: self.storage, stays: false };
        for ((_, place), program) in PROGRAMS.into_iter().zip(&self.fds) {
            if interface.attach(place, program.as_fd())? {
                before.has_made_clsact = true;
                write(&self.map, key, before)?;
            }
        }
        // Last: the programs, while they hang, keep the map that knows it.
        if limits(self.is_single, gso_max_segs) {
            offload::limit_segments(name, 1)?;
        }
        Ok(insertion)
    }
}

impl Insertion {
    /// From now on [`take_out`] undoes it.
    pub(super) fn keep(mut self) {
        self.stays = true;
    }
}

impl Drop for Insertion {
    fn drop(&mut self) {
        if self.stays {
            return;
        }
        // The interface may be gone by now, with everything at it.
        let Some(before) = read(&self.map).remove(&self.key) else { return };
        let _ = self.namespace.run(|| restore(self.key.index, before, self.storage));
        let _ = self.map.delete(&self.key.bytes());
    }
}

/// Takes the programs with this storage off all interfaces, or those of one namespace, which are then as
/// they were.
pub(super) fn take_out(map: &MapHandle, storage: &MapHandle, namespace: Option<u64>) -> Result<()> {
    let storage = id_of(storage)?;
    let is_meant = |key: &Key| namespace.is_none_or(|namespace| namespace == key.namespace);
    for (key, before) in read(map).into_iter().filter(|(key, _)| is_meant(key)) {
        // A namespace that is gone took its interfaces along.
        if let Some(namespace) = Namespace::find(key.namespace)? {
            namespace.run(|| restore(key.index, before, storage))??;
        }
        if command::mode() != command::Mode::DryRun {
            let removed = map.delete(&key.bytes()).map_err(os);
            removed.context(|| "can not forget an interface".into())?;
        }
    }
    Ok(())
}

/// In the interface's namespace.
fn restore(index: i32, before: Before, storage: u32) -> Result<()> {
    let all = Interface::all()?;
    let Some(interface) = all.into_iter().find(|interface| interface.index == index) else { return Ok(()) };
    let name = &interface.name;
    for (program, place) in PROGRAMS {
        for hung in interface.programs(place)? {
            if hung.info.map_ids.contains(&storage)
                && command::announce(&format!("bpf detach {program} from {name}"))
            {
                interface.detach(place, &hung)?;
            }
        }
    }
    if before.has_made_clsact {
        interface.remove_clsact()?;
    }
    // Somebody may have set another since; VCP leaves it.
    if before.gso_max_segs != 1 && offload::max_segments(name)? == 1 {
        offload::limit_segments(name, before.gso_max_segs)?;
    }
    Ok(())
}

/// Forgets the interfaces of the thread's namespace that are gone, and returns which of these names are not among the others.
pub(super) fn missing(map: &MapHandle, names: &[String]) -> Result<Vec<String>> {
    let (namespace, all) = (Namespace::current()?.inode()?, Interface::all()?);
    let known: Vec<Key> = read(map).into_keys().filter(|key| key.namespace == namespace).collect();
    for key in known.iter().filter(|key| all.iter().all(|one| one.index != key.index)) {
        let removed = map.delete(&key.bytes()).map_err(os);
        removed.context(|| "can not forget an interface".into())?;
    }
    let has = |name: &&String| {
        let index = all.iter().find(|one| one.name == **name).map(|one| one.index);
        known.iter().any(|key| Some(key.index) == index)
    };
    Ok(names.iter().filter(|name| !has(name)).cloned().collect())
}

/// Interfaces by name, of the namespaces that can be found.
pub(super) fn names(map: &MapHandle) -> Result<Vec<String>> {
    let mut names = vec![];
    for key in read(map).into_keys() {
        let Some(namespace) = Namespace::find(key.namespace)? else { continue };
        let all = namespace.run(Interface::all)??;
        names.extend(all.into_iter().filter(|one| one.index == key.index).map(|one| one.name));
    }
    names.sort();
    Ok(names)
}

fn write(map: &MapHandle, key: Key, before: Before) -> Result<()> {
    let mut value = [0; 8];
    value[..4].copy_from_slice(&before.gso_max_segs.to_ne_bytes());
    value[4..].copy_from_slice(&u32::from(before.has_made_clsact).to_ne_bytes());
    let put = map.update(&key.bytes(), &value, MapFlags::ANY).map_err(os);
    put.context(|| "can not write down what an interface was like".into())
}

fn read(map: &MapHandle) -> BTreeMap<Key, Before> {
    let entry = |bytes: Vec<u8>| {
        let value = map.lookup(&bytes, MapFlags::ANY).ok().flatten()?;
        let namespace = u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?);
        let key = Key { namespace, index: half(&bytes, 8) as i32 };
        Some((key, Before { gso_max_segs: half(&value, 0), has_made_clsact: half(&value, 4) != 0 }))
    };
    map.keys().filter_map(entry).collect()
}

fn id_of(map: &MapHandle) -> Result<u32> {
    Ok(map.info().map_err(os).context(|| "can not ask about a map".into())?.info.id)
}

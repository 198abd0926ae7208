//! The maps of a router's program, and what is read from them.

use libbpf_rs::{MapCore, MapFlags};

use crate::error::{Error, Result, refused};
use crate::sys::bpf::os;

/// Name of the program at the interface.
pub(super) const PROGRAM: &str = "cl_router";
/// Maps of one entry.
pub(super) const CONFIG: &str = "config";
pub(super) const PORT: &str = "port";
/// Map of what each processor has by itself, of programs that have such.
pub(super) const PARTS: &str = "parts";
pub(super) const FLOWS: &str = "flows";
/// Maps of two classes: the weights, and cells of flows for each class.
pub(super) const CLASSES: &str = "classes";
pub(super) const CELLS: &str = "census";
/// Key of the one entry.
pub(super) const KEY: [u8; 4] = [0; 4];

pub(super) fn incomplete(part: &str) -> Error {
    Error::Command { command: PROGRAM.into(), message: format!("it has no {part}: it is of another version") }
}

pub(super) fn read(map: &impl MapCore, flags: MapFlags) -> Result<Vec<u8>> {
    let value = map.lookup(&KEY, flags).map_err(|error| refused("read a map", os(error)))?;
    value.ok_or_else(|| Error::Command { command: PROGRAM.into(), message: "an empty map".into() })
}

pub(super) fn write(map: &impl MapCore, key: u32, value: &[u8]) -> Result<()> {
    map.update(&key.to_ne_bytes(), value, MapFlags::ANY).map_err(|error| refused("write a map", os(error)))
}

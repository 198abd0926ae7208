//! The policer before XCP's law (`bpf/policer.h`): what it has counted, and who is held to a share.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use congestlab_core::law::police::{Bucket, Record, WAYS};
use libbpf_rs::{MapCore, MapFlags};
use serde::Serialize;

use super::Attached;
use crate::error::Result;
use crate::error::refused;
use crate::sys::bpf::os;

/// The program's table.
pub(super) const MAP: &str = "policed";
/// Records that a table may have, in whole buckets.
pub const RECORDS: RangeInclusive<u32> = WAYS as u32..=1_000_000;
/// Bytes of `struct name`.
const NAME: usize = 40;
/// Bytes of `struct bucket`.
const BUCKET: usize = size_of::<Bucket>() + WAYS * NAME;
/// Buckets that are read at once.
const BATCH: u32 = 1024;

/// Returns the number of buckets of a table of so many records.
pub(super) const fn buckets(records: u32) -> u32 {
    records / WAYS as u32
}

/// Returns the bytes that a table of so many records has, from the beginning and however many flows come.
pub fn memory(records: u32) -> u64 {
    u64::from(buckets(records)) * BUCKET as u64
}

/// Counts of a policer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(non_snake_case, reason = "units as docs/design/contract.md 5 writes them")]
pub struct Policed {
    /// Times that a flow began to be held to its share.
    pub policed_flows: u64,
    /// Packets dropped because their flow is held.
    pub policed_packets: u64,
    /// Packets whose stated spacing counted for less.
    pub clamped_packets: u64,
    /// Share to which flows are held, B/s; `None`: there is no estimate yet.
    pub policed_share_Bps: Option<u64>,
}

impl Policed {
    /// Reads the first words of `struct Police`.
    pub(super) fn new(word: impl Fn(usize) -> u64) -> Self {
        Self {
            clamped_packets: word(0),
            policed_packets: word(1),
            policed_flows: word(2),
            policed_share_Bps: Some(word(3)).filter(|share| *share < u64::MAX),
        }
    }
}

/// A flow that is held to its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(non_snake_case, reason = "units as docs/design/contract.md 5 writes them")]
pub struct Held {
    /// Address of the sender.
    pub from: IpAddr,
    /// Port of the sender; 0 of protocols without.
    pub from_port: u16,
    /// Address of the receiver.
    pub to: IpAddr,
    /// Port of the receiver.
    pub to_port: u16,
    /// Number of the protocol in IP, such as 17 for UDP.
    pub protocol: u8,
    /// Rate at which its packets came in the last window, B/s.
    pub rate_Bps: u64,
}

impl Held {
    /// Reads `struct name` and the record beside it.
    fn new(name: &[u8; NAME], record: &[u8]) -> Self {
        let address = |at: usize| {
            let [_, _, _, last] = *name[at..at + 16].as_chunks().0 else {
                return Ipv6Addr::UNSPECIFIED.into();
            };
            match name[37] {
                4 => Ipv4Addr::from(last).into(),
                _ => <[u8; 16]>::try_from(&name[at..at + 16])
                    .map_or(Ipv6Addr::UNSPECIFIED, Ipv6Addr::from)
                    .into(),
            }
        };
        let port = |at: usize| u16::from_be_bytes([name[at], name[at + 1]]);
        let rate = record.get(Record::RATE_AT..).and_then(<[u8]>::first_chunk);
        Self {
            from: address(0),
            from_port: port(32),
            to: address(16),
            to_port: port(34),
            protocol: name[36],
            rate_Bps: rate.map_or(0, |rate| u64::from_ne_bytes(*rate)),
        }
    }

    /// Flows of a bucket that are held.
    fn of(bucket: &[u8]) -> impl Iterator<Item = Self> {
        let names = size_of::<[u64; WAYS]>();
        let (law, shown) = bucket.split_at_checked(size_of::<Bucket>()).unwrap_or_default();
        let records = law.get(names..).unwrap_or_default().chunks_exact(size_of::<Record>());
        let all = records.zip(shown.as_chunks().0);
        all.filter(|(record, _)| record[Record::HELD_AT] != 0).map(|(record, name)| Self::new(name, record))
    }
}

/// Table of a policer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Flows of which it has a record at most.
    pub records: u32,
    /// Bytes of the table, which does not grow.
    pub memory_bytes: u64,
    /// Flows that are held now, those that sent most first.
    pub held: Vec<Held>,
}

impl Table {
    /// Reads the table of a program. Records are read while packets change them: what is told of a flow is of about now.
    pub(super) fn of(attached: &Attached, counted: Policed) -> Result<Self> {
        let map = attached.map(MAP)?;
        let records = map.max_entries() * WAYS as u32;
        let mut held = vec![];
        // Whoever never held anybody need not be looked through.
        if counted.policed_flows > 0 {
            let buckets = map.lookup_batch(BATCH.min(map.max_entries()), MapFlags::ANY, MapFlags::ANY);
            let buckets = buckets.map_err(|error| refused("read a map", os(error)))?;
            held = buckets.flat_map(|(_, bucket)| Held::of(&bucket).collect::<Vec<_>>()).collect();
            held.sort_by_key(|held| std::cmp::Reverse(held.rate_Bps));
        }
        Ok(Self { records, memory_bytes: memory(records), held })
    }
}

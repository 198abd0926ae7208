//! Clouds of routers without XCP-i, as the program of `bpf/xcpi.h` finds them: the table of the routers before them, which all
//! ports of this router share, and what an agent tells the virtual routers.

use std::net::Ipv4Addr;

use congestlab_core::units::Ratio;
use congestlab_net::xcp_i::parts;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::{Attached, Interface};
use crate::error::refused;
use crate::error::{Error, Result};
use crate::interface::json;
use crate::sys::bpf::os;

/// Maps of the program.
pub(super) const MAPS: [&str; 2] = ["peers", "told"];
/// The address whose entry says until when there is an agent.
const AGENT: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
/// The address whose entry has the [`Sharing`] of this router. A packet that states it finds an entry that never held.
const SHARING: Ipv4Addr = Ipv4Addr::BROADCAST;

/// Parts of what clouds have that virtual routers give away, and of own traffic that they give back, where flows come from several
/// upstream nodes (docs/protocols/xcp-i.md, Settings).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// Part of a positive bandwidth that is there to give away; `None`: by the number of upstream nodes that send.
    pub release: Option<Ratio>,
    /// Part of own traffic that is given back; `None`: by that number, too.
    pub give_back: Option<Ratio>,
}

impl Sharing {
    fn told(self) -> Told {
        let word = |part: Option<Ratio>| part.map_or(0, |part| u64::from(part.0) + 1);
        Told { bandwidth: word(self.release), queue: word(self.give_back), ..Told::default() }
    }

    fn read(bytes: &[u8]) -> Self {
        let part = |index| word(bytes, index).checked_sub(1).map(|part| Ratio(part.min(1_000_000) as u32));
        Self { release: part(0), give_back: part(1) }
    }

    /// Returns the bandwidth that a virtual router is told of a cloud that has so much for what comes through it, B/s: it gives
    /// away what that is above its own traffic.
    pub fn apply(self, bandwidth: f64, own: f64, sending: usize) -> f64 {
        let (release, give_back) = parts(self.release, self.give_back, sending);
        let of = |ratio: Ratio, rate: f64| f64::from(ratio.0) / 1e6 * rate;
        let free = bandwidth - own;
        let free = if free > 0.0 { of(release, free) } else { free };
        own + free - of(give_back, own)
    }
}

/// Packets with XCP-i's header at a port, by what they have crossed since the last router with XCP-i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Crossings {
    /// No router without XCP-i.
    pub direct_packets: u64,
    /// One router without XCP-i, or more.
    pub cloud_packets: u64,
    /// IP's TTL was the greater one: a tunnel, or something that rewrites headers.
    pub anomaly_packets: u64,
    /// Packets from a router for which the table has no place, that passed as they were; there is no agent.
    pub waiting_packets: u64,
    /// Packets that got no increase: the bandwidth that was known holds no more, or the table has no place.
    pub held_packets: u64,
}

impl Crossings {
    /// Reads `enum crossed`.
    pub(super) fn new(count: impl Fn(usize) -> u64) -> Self {
        Self {
            direct_packets: count(0),
            cloud_packets: count(1),
            anomaly_packets: count(2),
            waiting_packets: count(3),
            held_packets: count(4),
        }
    }
}

/// Knowledge of a cloud's bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Known {
    /// Nothing: its packets pass as if there were no cloud.
    Nothing,
    /// The bandwidth: a virtual router holds it.
    Bandwidth,
    /// A bandwidth that holds no more: its packets get no increase.
    Stale,
}

/// A router with XCP-i behind which a cloud begins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(non_snake_case, reason = "units as docs/design/contract.md 5 writes them")]
pub struct Peer {
    /// Address of the router, as it stamps packets.
    pub address: Ipv4Addr,
    /// Routers in the cloud, by the last packet.
    pub hops: u32,
    /// Packets that came through the cloud; a super-packet counts as many as it has segments.
    pub packets: u64,
    /// Bytes of IP in these packets.
    pub bytes: u64,
    /// Time since the last of them, ms.
    pub idle_ms: f64,
    /// Knowledge of the cloud's bandwidth.
    pub known: Known,
    /// Bandwidth that the cloud has for what comes through it from that router, bit/s; `None`: none holds.
    pub bandwidth_bps: Option<u64>,
    /// Bytes of ours that wait in the cloud, by the last word of the agent.
    pub cloud_queue_bytes: u64,
    /// Packets that the virtual router saw.
    pub ruled_packets: u64,
    /// Packets that got no increase because the bandwidth held no more.
    pub held_packets: u64,
    /// Aggregate feedback of the virtual router's last control interval, B/s.
    pub feedback_Bps: i64,
    /// Length of its control interval, ms.
    pub interval_ms: f64,
}

/// Word of an agent to the virtual router of a cloud.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// B/s that the cloud has for what comes through it.
    pub bandwidth: u64,
    /// Bytes of ours that wait in it.
    pub queue: u64,
    /// Until when this holds, ns of the monotonic clock.
    pub valid_until: u64,
    /// Until when packets get no increase after that.
    pub held_until: u64,
}

impl Told {
    fn bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let words = [self.bandwidth, self.queue, self.valid_until, self.held_until];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// Returns the nanoseconds of the clock by which programs in the kernel count (`bpf_ktime_get_ns`).
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the first IPv4 address of an interface that other machines may know.
///
/// # Errors
/// If there is no such interface, or it has no IPv4 address: XCP-i's header has no place for another one.
pub fn address_of(interface: &str) -> Result<Ipv4Addr> {
    Interface::find(interface)?;
    let list = json(&format!("ip -j -4 addr show dev {interface}"))?;
    let links = list.as_array().into_iter().flatten();
    let addresses = links.flat_map(|link| link["addr_info"].as_array().into_iter().flatten());
    let mut addresses = addresses.filter(|address| address["scope"] == "global");
    let first = addresses.find_map(|address| address["local"].as_str()?.parse().ok());
    first.ok_or_else(|| {
        Error::input(
            format!("{interface} has no IPv4 address, by which other routers with XCP-i could ask this one"),
            format!("give it one: ip addr add ADDRESS/LENGTH dev {interface}"),
        )
    })
}

/// The table of a router, and what its virtual routers are told.
#[derive(Debug)]
pub struct Table {
    peers: MapHandle,
    told: MapHandle,
}

/// Words of `struct peer` and `struct told`.
fn word(bytes: &[u8], index: usize) -> u64 {
    let bytes = bytes.get(8 * index..8 * index + 8);
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

impl Table {
    pub(super) fn of(attached: &Attached) -> Result<Self> {
        let [peers, told] = MAPS.map(|name| attached.map(name).and_then(again));
        Ok(Self { peers: peers?, told: told? })
    }

    /// Returns the table of the router in the namespace of this thread; `None`: no interface here runs XCP-i.
    ///
    /// # Errors
    /// If the privilege is missing.
    pub fn here() -> Result<Option<Self>> {
        for interface in Interface::all()? {
            if let Some(attached) = interface.attached()?
                && attached.map(MAPS[0]).is_ok()
            {
                return Self::of(&attached).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the addresses by which other routers know this one: those of the interfaces here that run XCP-i, as packets state them.
    ///
    /// # Errors
    /// If the privilege is missing.
    pub fn addresses() -> Result<Vec<Ipv4Addr>> {
        let mut found = vec![];
        for interface in Interface::all()? {
            if let Some(attached) = interface.attached()?
                && attached.map(MAPS[0]).is_ok()
                && let Ok(address) = address_of(&interface.name)
                && !found.contains(&address)
            {
                found.push(address);
            }
        }
        Ok(found)
    }

    /// Returns the maps, by name, for the program of another port.
    pub(super) fn maps(&self) -> [(&'static str, &MapHandle); 2] {
        [(MAPS[0], &self.peers), (MAPS[1], &self.told)]
    }

    /// Returns the routers before clouds, in order of their addresses.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn peers(&self) -> Result<Vec<Peer>> {
        let now = now();
        let mut found = vec![];
        for key in self.peers.keys() {
            let Ok(octets) = <[u8; 4]>::try_from(&key[..]) else { continue };
            let Some(bytes) = get(&self.peers, &key, MapFlags::LOCK)? else { continue };
            let told = get(&self.told, &key, MapFlags::ANY)?.unwrap_or_default();
            let known = match () {
                () if now < word(&told, 2) => Known::Bandwidth,
                () if now < word(&told, 3) => Known::Stale,
                () => Known::Nothing,
            };
            let is_ruled = word(&bytes, 5) > 0;
            found.push(Peer {
                address: octets.into(),
                hops: word(&bytes, 7) as u32,
                packets: word(&bytes, 3),
                bytes: word(&bytes, 4),
                idle_ms: now.saturating_sub(word(&bytes, 2)) as f64 / 1e6,
                known,
                bandwidth_bps: (known == Known::Bandwidth).then(|| word(&told, 0).saturating_mul(8)),
                cloud_queue_bytes: word(&told, 1),
                ruled_packets: word(&bytes, 5),
                held_packets: word(&bytes, 6),
                feedback_Bps: if is_ruled { word(&bytes, 10) as i64 } else { 0 },
                interval_ms: if is_ruled { word(&bytes, 11) as f64 / 1e6 } else { 0.0 },
            });
        }
        found.sort_by_key(|peer| peer.address);
        Ok(found)
    }

    /// Returns the bytes that have come through the cloud behind that router; 0 if the table has no entry of it.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn bytes_from(&self, address: Ipv4Addr) -> Result<u64> {
        let bytes = get(&self.peers, &address.octets(), MapFlags::LOCK)?;
        Ok(bytes.map_or(0, |bytes| word(&bytes, 4)))
    }

    /// Tells the virtual router of a cloud.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn tell(&self, address: Ipv4Addr, told: &Told) -> Result<()> {
        let told = self.told.update(&address.octets(), &told.bytes(), MapFlags::ANY);
        told.map_err(|error| refused("write a map", os(error)))
    }

    /// Says that there is an agent, until that time of the monotonic clock: packets for which the table has no place get no
    /// increase meanwhile.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn greet(&self, until: u64) -> Result<()> {
        self.tell(AGENT, &Told { valid_until: until, ..Told::default() })
    }

    /// Writes how virtual routers of this router share what clouds have.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn share(&self, sharing: Sharing) -> Result<()> {
        self.tell(SHARING, &sharing.told())
    }

    /// Returns how virtual routers of this router share what clouds have.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn sharing(&self) -> Result<Sharing> {
        let bytes = get(&self.told, &SHARING.octets(), MapFlags::ANY)?;
        Ok(bytes.map_or_else(Sharing::default, |bytes| Sharing::read(&bytes)))
    }

    /// Removes a router from the table. It comes again with its next packet.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn forget(&self, address: Ipv4Addr) -> Result<()> {
        for map in [&self.told, &self.peers] {
            match map.delete(&address.octets()).map_err(os) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(refused("change a map", error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn get(map: &MapHandle, key: &[u8], flags: MapFlags) -> Result<Option<Vec<u8>>> {
    map.lookup(key, flags).map_err(|error| refused("read a map", os(error)))
}

/// Another handle of the same map.
fn again(map: &MapHandle) -> Result<MapHandle> {
    MapHandle::try_from(map).map_err(|error| refused("open a program's maps", os(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lone neighbour is told all; of several each is told its own traffic, an equal part of what is left, and 3 % less.
    #[test]
    fn virtual_routers_are_told_a_part_of_what_is_left() {
        let told = |sharing: Sharing, sending| sharing.apply(2000.0, 1000.0, sending);
        let auto = Sharing::default();
        assert!((told(auto, 1) - 2000.0).abs() < 1e-9);
        assert!((told(auto, 4) - (1000.0 + 250.0 - 30.0)).abs() < 1e-9);
        let own = Sharing { release: Some(Ratio::ppm(500_000)), give_back: Some(Ratio::ppm(100_000)) };
        assert!((told(own, 1) - (1000.0 + 500.0 - 100.0)).abs() < 1e-9);
        // What is missing is missing for all.
        assert!((auto.apply(600.0, 1000.0, 2) - (600.0 - 30.0)).abs() < 1e-9);
        for sharing in [auto, own, Sharing { release: None, give_back: Some(Ratio(0)) }] {
            assert_eq!(Sharing::read(&sharing.told().bytes()), sharing);
        }
    }
}

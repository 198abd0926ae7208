//! A namespace behind a link, for a command of somebody's choice: `congestlab link`.
//!
//! ```text
//! where we are        cl-ID-wire          cl-ID-inside
//!      cl-ID --- veth --- outer = link = inner --- veth --- link0
//!       .1                                              .2
//! ```
//!
//! Links nest. The outermost take one of the sixteen /14 blocks of 100.64.0.0/10 (RFC 6598: shared
//! address space, which no host of the Internet has), a link inside takes one of the sixteen /18
//! blocks of that, and so on down to /30. So each level needs one route for all that is inside. The
//! block of a namespace is written in its table of routes: what it does not hold is unreachable there.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::{Clock, Direction, Link};
use crate::error::{Context, Error, Result};
use crate::supervisor::{Guard, Local, Undo};
use crate::sys::command;
use crate::sys::netns::Namespace;
use crate::sys::offload::Offloads;

/// Addresses of all links.
const ALL: Block = Block { base: u32::from_be_bytes([100, 64, 0, 0]), length: 10 };
/// Bits by which the block of a link is smaller than that around it.
const STEP: u8 = 4;
/// The smallest block: two addresses.
const LENGTH_MAX: u8 = 30;
/// A metric that every other route precedes, also one of the same block.
const LAST: u32 = 1_000_000_000;

/// An IPv4 prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    base: u32,
    length: u8,
}

impl Block {
    /// As `ip` writes it; an address alone is a prefix of 32 bits.
    fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/').unwrap_or((text, "32"));
        let base = address.parse::<Ipv4Addr>().ok()?.to_bits();
        Some(Self { base, length: length.parse().ok().filter(|&length| length <= 32)? })
    }

    fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0)
    }

    fn overlaps(self, other: Self) -> bool {
        (self.base ^ other.base) & self.mask() & other.mask() == 0
    }

    fn contains(self, other: Self) -> bool {
        self.length <= other.length && self.overlaps(other)
    }

    fn address(self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + number)
    }

    /// The blocks of the links inside.
    fn parts(self) -> impl Iterator<Item = Self> {
        let length = self.length + STEP;
        (0..1 << STEP).map(move |part| Self { base: self.base | part << (32 - u32::from(length)), length })
    }
}

impl std::fmt::Display for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.base), self.length)
    }
}

/// A link with a namespace behind it. The [`Guard`] undoes all that it makes.
#[derive(Debug)]
pub struct Behind {
    /// Network namespace in which commands run.
    pub inside: Namespace,
    /// The link; `forward` goes from the inside to the outside.
    pub link: Link,
    /// Address of the machine on the outside of the outermost link.
    pub base: Ipv4Addr,
    /// Address of the link's inner end.
    pub address: Ipv4Addr,
    /// Reason for which only addresses of this machine can be reached from the inside; `None`: others can, too.
    pub confined: Option<String>,
}

impl Behind {
    /// Makes a namespace behind the one that this process is in. `up` is the direction from the inside to the
    /// outside, `down` the other one; a missing direction passes packets at once.
    ///
    /// # Errors
    /// If the privilege is missing, or all blocks of addresses are taken.
    pub fn new(
        guard: &Guard,
        up: Option<Direction>,
        down: Option<Direction>,
        clock: Arc<Clock>,
    ) -> Result<Self> {
        let around = around()?;
        let wire = guard.namespace("wire")?;
        let inside = guard.namespace("inside")?;
        let outer = format!("cl-{}", guard.id());
        guard.record(&Undo::Interface(Local::here(&outer)?))?;
        connect(&outer, &wire, "outer")?;
        wire.run(|| connect("inner", &inside, "link0"))??;
        // Each end knows the other, so that the first packet needs not wait for ARP.
        let [near_mac, far_mac] = [0, 1].map(|end| mac(guard.id(), end));
        command::run(&format!("ip link set dev {outer} address {near_mac}"))?;
        let block = claim(around, &outer)?;
        let (near, far) = (block.address(1), block.address(2));
        command::run(&format!("ip address add {near} peer {far} dev {outer}"))?;
        command::run(&format!("ip route replace {block} via {far} dev {outer}"))?;
        command::run(&format!("ip neighbour add {far} lladdr {far_mac} dev {outer}"))?;
        inside.run(|| -> Result<()> {
            command::run(&format!("ip link set dev link0 address {far_mac}"))?;
            command::run(&format!("ip address add {far} peer {near} dev link0"))?;
            command::run(&format!("ip neighbour add {near} lladdr {near_mac} dev link0"))?;
            command::run(&format!("ip route add default via {near} dev link0"))?;
            command::run(&format!("ip route add unreachable {block} metric {LAST}"))?;
            // For links inside.
            set("net/ipv4/ip_forward", "1")
        })??;
        let confined = match around {
            // The outermost link lets the whole block out.
            Around::Link(_) => None,
            Around::Machine => let_out(guard, block, &outer)?,
        };
        let link = wire.run(|| Link::new("inner", "outer", up, down, clock))??;
        let outermost = ALL.parts().find(|part| part.contains(block)).unwrap_or(block);
        Ok(Self { inside, link, base: outermost.address(1), address: far, confined })
    }
}

/// A locally administered address, from the six hexadecimal digits of an identifier.
fn mac(id: &str, end: u8) -> String {
    let digits = |at| id.get(at..at + 2).unwrap_or("00");
    format!("02:63:{end:02x}:{}:{}:{}", digits(0), digits(2), digits(4))
}

/// The surroundings of a new link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    Machine,
    /// The inside of another link with this block.
    Link(Block),
}

impl Around {
    fn block(self) -> Block {
        match self {
            Self::Machine => ALL,
            Self::Link(block) => block,
        }
    }
}

/// Connects the thread's namespace with another one by a veth pair that is up and has no offloads:
/// what crosses it are packets as on a wire.
fn connect(end: &str, other: &Namespace, other_end: &str) -> Result<()> {
    let name = other.name();
    command::run(&format!("ip link add name {end} type veth peer name {other_end} netns {name}"))?;
    bring_up(end)?;
    other.run(|| bring_up(other_end))?
}

/// Without super-packets and without IPv6, whose router solicitations would use the link.
fn bring_up(interface: &str) -> Result<()> {
    // Its settings end with the interface.
    Offloads::off(interface)?.keep();
    let ipv6 = format!("net/ipv6/conf/{interface}/disable_ipv6");
    if Path::new("/proc/sys").join(&ipv6).exists() {
        set(&ipv6, "1")?;
    }
    command::run(&format!("ip link set dev {interface} up")).map(drop)
}

/// A parameter of the thread's network namespace.
fn set(path: &str, value: &str) -> Result<()> {
    let path = Path::new("/proc/sys").join(path);
    fs::write(&path, value).context(|| format!("can not write {value} to {}", path.display()))
}

/// All routes of the thread's namespace.
fn routes() -> Result<Vec<(Block, bool)>> {
    let text = command::query("ip -j -4 route show table all")?;
    let routes: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
    let read = |route: &Value| Some((Block::parse(route["dst"].as_str()?)?, route["type"] == "unreachable"));
    Ok(routes.iter().filter_map(read).collect())
}

/// Where we are.
fn around() -> Result<Around> {
    let own = routes()?.into_iter().find(|&(block, unreachable)| unreachable && ALL.contains(block));
    Ok(own.map_or(Around::Machine, |(block, _)| Around::Link(block)))
}

/// Takes a free block by routing it to the interface, which no other can do then.
fn claim(around: Around, interface: &str) -> Result<Block> {
    let whole = around.block();
    if whole.length + STEP > LENGTH_MAX {
        return Err(Error::input("links nest no deeper than five", "leave a link first"));
    }
    let taken = routes()?;
    for part in whole.parts() {
        if taken.iter().any(|&(block, unreachable)| !unreachable && block.length > 0 && part.overlaps(block))
        {
            continue;
        }
        match command::run(&format!("ip route add {part} dev {interface}")) {
            Ok(_) => return Ok(part),
            // Somebody was faster.
            Err(Error::Command { message, .. }) if message.contains("File exists") => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::input(
        format!("every block of addresses in {whole} is taken"),
        "end other links: sixteen may exist side by side, fifteen inside another",
    ))
}

/// Forwards what comes from the inside to other machines, with the address of this one. Returns why it
/// does not.
fn let_out(guard: &Guard, block: Block, interface: &str) -> Result<Option<String>> {
    if !routes_default()? {
        return Ok(Some("this machine has no default route".into()));
    }
    guard.record(&Undo::Table(Local::here(interface)?))?;
    let rules = [
        format!("nft add table inet {interface}"),
        format!("nft add chain inet {interface} out {{ type nat hook postrouting priority 100 ; }}"),
        format!("nft add rule inet {interface} out ip saddr {block} oifname != {interface} masquerade"),
    ];
    for rule in rules {
        match command::run(&rule) {
            Ok(_) => {}
            Err(Error::Missing { .. }) => {
                return Ok(Some("nft is not installed (Debian and Ubuntu: apt-get install nftables)".into()));
            }
            Err(error) => return Ok(Some(error.to_string())),
        }
    }
    guard.sysctl("net.ipv4.ip_forward", "1")?;
    Ok(None)
}

/// True if there is a way to other machines.
fn routes_default() -> Result<bool> {
    Ok(!command::query("ip -4 route show default")?.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_divide_into_sixteen_that_do_not_overlap() {
        let parts: Vec<Block> = ALL.parts().collect();
        assert_eq!(parts[0].to_string(), "100.64.0.0/14");
        assert_eq!(parts[15].to_string(), "100.124.0.0/14");
        assert_eq!(parts.len(), 16);
        for (i, one) in parts.iter().enumerate() {
            assert!(ALL.contains(*one) && !one.contains(ALL));
            assert!(parts.iter().enumerate().all(|(k, other)| one.overlaps(*other) == (i == k)));
        }
        let inner: Vec<Block> = parts[1].parts().collect();
        assert_eq!(
            (inner[0].to_string(), inner[15].to_string()),
            ("100.68.0.0/18".into(), "100.71.192.0/18".into())
        );
        assert_eq!(Block::parse("100.68.0.1").map(|block| inner[0].contains(block)), Some(true));
        assert_eq!((Block::parse("default"), Block::parse("1.2.3.4/33")), (None, None));
    }

    #[test]
    fn five_links_nest() {
        let mut block = ALL;
        let mut depth = 0;
        while block.length + STEP <= LENGTH_MAX {
            block = block.parts().last().unwrap();
            depth += 1;
        }
        assert_eq!((depth, block.length), (5, 30));
    }
}

//! Rules of nftables and a table of routes, which bring connections to the gateway.
//!
//! A SYN that comes from the satellite, or that the routes send there, goes to a listener (tproxy). What belongs to a
//! connection of the gateway's is marked, and the mark leads to a route that delivers it here whatever its address is
//! (`Documentation/networking/tproxy.rst` in the kernel's sources). All else passes by: connections that were there
//! before, what is meant for this machine, and destinations that are not on the list.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::error::{Context, Error, Result};
use crate::host::Prefix;
use crate::supervisor::{Guard, Local, Undo};
use crate::sys::command;

/// Mark of packets, and table of routes, of the gateway.
pub const MARK: u32 = 0xcc1;

// Numbers of IANA's registry: nft looks names up in /etc/protocols, which small machines have not.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const ICMPV6: u8 = 58;

/// Ports of the listeners for the two origins of connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) from_satellite: u16,
    pub(super) from_terrestrial: u16,
}

/// Returns true if the thread's network namespace has IPv6.
pub(super) fn has_ipv6() -> bool {
    let disabled = fs::read_to_string("/proc/sys/net/ipv6/conf/lo/disable_ipv6");
    disabled.is_ok_and(|text| text.trim() == "0")
}

/// Brings connections to the listeners from now on.
pub(super) fn divert(guard: &Guard, satellite: &str, to: &[Prefix], ports: [Option<Ports>; 2]) -> Result<()> {
    let table = Local::here(&MARK.to_string())?;
    let families = [("-4", "0.0.0.0/0"), ("-6", "::/0")];
    let families = families.into_iter().zip(ports).filter(|(_, ports)| ports.is_some());
    let rules = command::query("ip -4 rule show")? + &command::query("ip -6 rule show").unwrap_or_default();
    if rules.lines().any(|rule| rule.trim_end().ends_with(&format!("lookup {MARK}"))) {
        return Err(Error::input(
            format!("the table of routes {MARK}, which a gateway needs, is in use"),
            format!("ip rule delete lookup {MARK}"),
        ));
    }
    guard.record(&Undo::Routes(table))?;
    for ((family, everything), _) in families {
        command::run(&format!("ip {family} route add local {everything} dev lo table {MARK}"))?;
        command::run(&format!("ip {family} rule add fwmark {MARK} lookup {MARK}"))?;
    }

    let name = format!("cl-{}", guard.id());
    guard.record(&Undo::Table(Local::here(&name)?))?;
    let file = guard.folder().join("rules.nft");
    fs::write(&file, text(&name, satellite, to, ports))
        .context(|| format!("can not write {}", file.display()))?;
    load(&file)
}

fn load(file: &Path) -> Result<()> {
    match command::run(&format!("nft -f {}", file.display())) {
        Err(Error::Command { message, .. }) => Err(Error::missing(
            format!(
                "the kernel does not take the rules that divert connections: {}",
                message.lines().next().unwrap_or_default()
            ),
            "a kernel with nft_tproxy, nft_socket, nft_fib_inet and nft_ct",
        )),
        other => other.map(drop),
    }
}

/// Connections of the gateway are no business of conntrack's: it would take both halves, whose addresses and ports are
/// the same, for one whose sequence numbers make no sense. So the chains stand before it.
fn text(name: &str, satellite: &str, to: &[Prefix], ports: [Option<Ports>; 2]) -> String {
    let mut rules = String::new();
    // Writing to a string fails in no way.
    for (family, ports) in ["ip", "ip6"].into_iter().zip(ports) {
        let Some(Ports { from_satellite, from_terrestrial }) = ports else { continue };
        let is_ipv4 = family == "ip";
        let listed: Vec<_> =
            to.iter().filter(|prefix| prefix.is_ipv4() == is_ipv4).map(Prefix::to_string).collect();
        let to = match to {
            [] => format!("meta nfproto {}", if is_ipv4 { "ipv4" } else { "ipv6" }),
            _ if listed.is_empty() => continue,
            _ => format!("{family} daddr {{ {} }}", listed.join(", ")),
        };
        let listener = if is_ipv4 { "127.0.0.1" } else { "[::1]" };
        for (origin, port) in [("iifname", from_satellite), ("fib daddr oifname", from_terrestrial)] {
            let _ = writeln!(
                rules,
                "\t\t{origin} \"{satellite}\" {to} meta l4proto {TCP} tproxy {family} to {listener}:{port} \
                 meta mark set {MARK} notrack accept"
            );
        }
    }
    format!(
        "table inet {name} {{
\tchain in {{
\t\ttype filter hook prerouting priority raw; policy accept;
\t\tmeta l4proto {{ {ICMP}, {ICMPV6} }} socket transparent 1 meta mark set {MARK} accept
\t\tmeta l4proto != {TCP} accept
\t\ttcp flags & (syn | ack) != syn socket transparent 1 meta mark set {MARK} notrack accept
\t\ttcp flags & (fin | syn | rst | ack) != syn accept
\t\tfib daddr type local accept
{rules}\t}}
\tchain out {{
\t\ttype filter hook output priority raw; policy accept;
\t\tmeta l4proto {TCP} socket transparent 1 notrack
\t}}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_destinations_is_kept_by_family() {
        let ports = Ports { from_satellite: 1000, from_terrestrial: 2000 };
        let of = |to: &[&str], ports| {
            let to: Vec<Prefix> = to.iter().map(|prefix| prefix.parse().unwrap()).collect();
            let text = text("cl-x", "sat0", &to, ports);
            text.lines().filter(|line| line.contains("tproxy")).map(str::to_owned).collect::<Vec<_>>()
        };
        let both = [Some(ports), Some(ports)];
        let all = of(&[], both);
        assert_eq!(all.len(), 4);
        assert!(all[0].contains("iifname \"sat0\" meta nfproto ipv4") && all[0].contains("127.0.0.1:1000"));
        assert!(all[3].contains("oifname \"sat0\" meta nfproto ipv6") && all[3].contains("[::1]:2000"));
        let some = of(&["10.0.0.0/8", "10.1.0.1"], both);
        assert_eq!(some.len(), 2, "{some:?}");
        assert!(some[0].contains("ip daddr { 10.0.0.0/8, 10.1.0.1/32 }"), "{some:?}");
        assert_eq!(of(&["2001:db8::/32"], [Some(ports), None]).len(), 0);
    }
}

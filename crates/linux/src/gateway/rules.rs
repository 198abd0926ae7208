//! Rules of nftables and a table of routes, which bring connections to the gateway.
//!
//! A SYN that comes from the satellite, or that the routes send there, goes to a listener (tproxy). What belongs to a
//! connection of the gateway's is marked, and the mark leads to a route that delivers it here whatever its address is
//! (`Documentation/networking/tproxy.rst` in the kernel's sources). All else passes by: connections that were there
//! before, what is meant for this machine, and destinations that are not on the list. The connections among them that cross the
//! satellite link are noted in a set, for the status. Until the listeners are ready, SYNs are dropped.
//!
//! A listener with a full backlog answers SYNs with cookies and remembers nothing of them (`tcp_syncookies`, tcp(7)). The
//! ACK that brings a cookie back belongs to no socket. So the addresses of each SYN are noted for a while, and ACKs
//! between these addresses go to the same listener. When that set is full, new connections pass as they are.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

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

/// Most connections of a family that are noted as passing.
const PASSING_MAX: u32 = 1024;
/// Most connections of a family that are noted as opening: 26 MB of the kernel's memory at 100 bytes each.
const OPENING_MAX: u32 = 1 << 18;
/// Time for which they are noted after their last SYN, s: the client's ACK and its first repetitions take that long.
const OPENING_S: u32 = 20;

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

/// The rules of a gateway, in place until the guard undoes them.
#[derive(Debug)]
pub(super) struct Rules<'a> {
    name: String,
    file: PathBuf,
    satellite: &'a str,
    to: &'a [Prefix],
}

impl<'a> Rules<'a> {
    /// Makes new connections wait from now on: their SYNs are dropped, and clients repeat them.
    pub(super) fn hold(
        guard: &Guard,
        satellite: &'a str,
        to: &'a [Prefix],
        families: [bool; 2],
    ) -> Result<Self> {
        let query = |family: &str| command::query(&format!("ip {family} rule show"));
        let rules = query("-4")? + &query("-6").unwrap_or_default();
        if rules.lines().any(|rule| rule.trim_end().ends_with(&format!("lookup {MARK}"))) {
            return Err(Error::input(
                format!("the table of routes {MARK}, which a gateway needs, is in use"),
                format!("ip rule delete lookup {MARK}"),
            ));
        }
        let name = format!("cl-{}", guard.id());
        guard.record(&Undo::Table(Local::here(&name)?))?;
        let rules = Self { name, file: guard.folder().join("rules.nft"), satellite, to };
        rules.load(families.map(|has| has.then_some(Target::Wait)))?;
        Ok(rules)
    }

    /// Brings new connections to the listeners from now on.
    pub(super) fn divert(&self, guard: &Guard, ports: [Option<Ports>; 2]) -> Result<()> {
        guard.record(&Undo::Routes(Local::here(&MARK.to_string())?))?;
        let families = [("-4", "0.0.0.0/0"), ("-6", "::/0")];
        for ((family, everything), _) in families.into_iter().zip(ports).filter(|(_, ports)| ports.is_some())
        {
            command::run(&format!("ip {family} route add local {everything} dev lo table {MARK}"))?;
            command::run(&format!("ip {family} rule add fwmark {MARK} lookup {MARK}"))?;
        }
        self.load(ports.map(|ports| ports.map(Target::Listeners)))
    }

    /// Puts the table in the place of the one before, in one step.
    fn load(&self, targets: [Option<Target>; 2]) -> Result<()> {
        fs::write(&self.file, text(&self.name, self.satellite, self.to, targets))
            .context(|| format!("cannot write {}", self.file.display()))?;
        load(&self.file)
    }

    /// Returns the connections over the satellite link that pass as they are and sent something within the last minute: the end
    /// behind the satellite, then the end on the ground.
    pub(super) fn passing(&self) -> Result<Vec<(SocketAddr, SocketAddr)>> {
        let mut all = Vec::new();
        for set in PASSING {
            all.extend(elements(&command::query(&format!("nft -n list set inet {} {set}", self.name))?));
        }
        Ok(all)
    }
}

/// Names of the sets with the connections that pass as they are, of IPv4 and of IPv6.
const PASSING: [&str; 2] = ["passing4", "passing6"];

/// Names of the sets with the connections whose SYN went to a listener.
const OPENING: [&str; 2] = ["opening4", "opening6"];

/// Reads the elements of a set as nft prints it: `10.0.0.1 . 80 . 10.0.0.2 . 4000 timeout 1m expires 58s, ...`.
fn elements(text: &str) -> Vec<(SocketAddr, SocketAddr)> {
    let list = text.split_once("elements = {").and_then(|(_, rest)| rest.split_once('}'));
    let one = |element: &str| {
        let mut words = element.split_whitespace().filter(|word| *word != ".");
        let mut address = || Some(SocketAddr::new(words.next()?.parse().ok()?, words.next()?.parse().ok()?));
        Some((address()?, address()?))
    };
    list.map_or("", |(list, _)| list).split(',').filter_map(one).collect()
}

/// Treatment of new connections of a family.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// SYNs are dropped, and clients repeat them.
    Wait,
    /// Connections go to these listeners.
    Listeners(Ports),
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
///
/// Other connections are noted by packets from the satellite: each connection has some, and no route is looked up for them.
fn text(name: &str, satellite: &str, to: &[Prefix], targets: [Option<Target>; 2]) -> String {
    let (mut rules, mut cookies) = (String::new(), String::new());
    let ends_of = |family: &str| format!("{family} saddr . tcp sport . {family} daddr . tcp dport");
    // Writing to a string fails in no way.
    for ((family, set), target) in ["ip", "ip6"].into_iter().zip(OPENING).zip(targets) {
        let Some(target) = target else { continue };
        let is_ipv4 = family == "ip";
        let listed: Vec<_> =
            to.iter().filter(|prefix| prefix.is_ipv4() == is_ipv4).map(Prefix::to_string).collect();
        let to = match to {
            [] => format!("meta nfproto {}", if is_ipv4 { "ipv4" } else { "ipv6" }),
            _ if listed.is_empty() => continue,
            _ => format!("{family} daddr {{ {} }}", listed.join(", ")),
        };
        let ends = ends_of(family);
        let Target::Listeners(ports) = target else {
            for origin in ["iifname", "fib daddr oifname"] {
                let _ = writeln!(rules, "\t\t{origin} \"{satellite}\" {to} meta l4proto {TCP} drop");
            }
            continue;
        };
        let listener = if is_ipv4 { "127.0.0.1" } else { "[::1]" };
        let origins = [
            ("iifname", "iifname", ports.from_satellite),
            ("fib daddr oifname", "iifname !=", ports.from_terrestrial),
        ];
        for (origin, from, port) in origins {
            let onward = format!("tproxy {family} to {listener}:{port} meta mark set {MARK} notrack accept");
            // A set that is full ends the rule.
            let _ = writeln!(
                rules,
                "\t\t{origin} \"{satellite}\" {to} meta l4proto {TCP} update @{set} {{ {ends} }} {onward}"
            );
            let _ = writeln!(cookies, "\t\t{from} \"{satellite}\" {ends} @{set} {onward}");
        }
    }
    let (mut sets, mut known, mut note) = (String::new(), String::new(), String::new());
    let kinds = [("ip", "ipv4_addr"), ("ip6", "ipv6_addr")];
    let mut declare = |set: &str, kind: &str, size: u32, seconds: u32| {
        let _ = writeln!(
            sets,
            "\tset {set} {{\n\t\ttype {kind} . inet_service . {kind} . inet_service\n\t\tsize {size}\n\
             \t\tflags dynamic,timeout\n\t\ttimeout {seconds}s\n\t}}"
        );
    };
    for ((passing, opening), (family, kind)) in PASSING.into_iter().zip(OPENING).zip(kinds) {
        let ends = ends_of(family);
        declare(passing, kind, PASSING_MAX, 60);
        declare(opening, kind, OPENING_MAX, OPENING_S);
        let _ = writeln!(known, "\t\t{ends} @{passing} accept");
        let _ = writeln!(note, "\t\tadd @{passing} {{ {ends} }}");
    }
    format!(
        "table inet {name}
flush table inet {name}
table inet {name} {{
{sets}\tchain cookies {{
{cookies}\t}}
\tchain in {{
\t\ttype filter hook prerouting priority raw; policy accept;
\t\tmeta l4proto {{ {ICMP}, {ICMPV6} }} socket transparent 1 meta mark set {MARK} accept
\t\tmeta l4proto != {TCP} accept
\t\ttcp flags & (syn | ack) != syn socket transparent 1 meta mark set {MARK} notrack accept
\t\ttcp flags & (syn | rst | ack) == ack jump cookies
\t\ttcp flags & (fin | rst | ack) == ack iifname \"{satellite}\" goto passing
\t\ttcp flags & (fin | syn | rst | ack) != syn accept
\t\tfib daddr type local accept
{rules}\t}}
\tchain passing {{
{known}\t\tfib daddr type local accept
{note}\t}}
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
        let of = |to: &[&str], ports: [Option<Ports>; 2]| {
            let to: Vec<Prefix> = to.iter().map(|prefix| prefix.parse().unwrap()).collect();
            let text = text("cl-x", "sat0", &to, ports.map(|ports| ports.map(Target::Listeners)));
            text.lines().filter(|line| line.contains("update")).map(str::to_owned).collect::<Vec<_>>()
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

    #[test]
    fn connections_that_pass_are_read_from_what_nft_prints() {
        let text = "table inet cl-x {\n\tset passing4 {\n\t\tsize 1024\n\t\tflags dynamic,timeout\n\t\ttimeout 1m\n\
                    \t\telements = { 10.0.0.2 . 80 . 10.0.0.1 . 4000 timeout 1m expires 58s84ms,\n\
                    \t\t\t     10.0.0.2 . 443 . 10.0.0.1 . 4001 expires 3s }\n\t}\n}\n";
        let of = |text: &str| text.parse::<SocketAddr>().unwrap();
        let client = |port: u16| SocketAddr::new(of("10.0.0.1:1").ip(), port);
        assert_eq!(elements(text), [(of("10.0.0.2:80"), client(4000)), (of("10.0.0.2:443"), client(4001))]);
        let text = "elements = { fd00::2 . 80 . fd00::1 . 4000 timeout 1m expires 58s }";
        assert_eq!(elements(text), [(of("[fd00::2]:80"), of("[fd00::1]:4000"))]);
        assert_eq!(elements("set passing4 {\n\t\tflags dynamic,timeout\n\t}\n"), []);
    }
}

//! A sender law on this host's sockets, XCP's or another ([`Sender`]): loads `bpf/host.bpf.c`, selects the sockets that use it, and reads their
//! state.
//!
//! A congestion control belongs to the whole kernel; the programs that write headers belong to a control
//! group. Several hosts can live beside each other under names of their own (a lab's), and one persistent
//! host, which stays until [`disable`].

pub mod form;
mod peers;
mod prefix;
mod sender;
mod shim;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io, thread};

pub use congestlab_core::law::xcp::LossPolicy;
use libbpf_rs::query::{MapInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use self::form::Form;
pub use self::peers::{Change, counters, ensure, ensured, remove, remove_named};
pub use self::prefix::Prefix;
pub use self::sender::{
    ABC, DCTCP, DPCP, NAME, NAMES, PRAGUE, Sender, TPCP, VCP, XCP_I, XCP_R, abc_config, dctcp_config,
    dpcp_config, prague_config, sender_config, tpcp_config, vcp_config, xcp_r_config,
};
use self::sender::{law, title};
pub use crate::encoding::Encoding;
use crate::error::{Context, Error, Result};
use crate::interface::Interface;
use crate::sys::bpf::{self, os};
use crate::sys::diag::{Diag, States};
use crate::sys::netns::{self, Namespace};
use crate::sys::{attachment, cgroup, command, offload};

/// The program in its control group, by which it is found again.
const PROGRAM: &str = "congestlab_host";
/// The program for sockets that listen already.
const LISTENERS: &str = "cl_listeners";
/// The map with the [`Config`].
const CONFIG: &str = ".rodata.config";
/// `TCP_CA_NAME_MAX`, with the zero.
const NAME_SIZE: usize = 16;

/// Settings of a host.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the congestion control: that of the law ([`NAMES`]), or for a host that is not persistent, with a suffix that nobody
    /// else uses. At most 15 bytes.
    pub name: String,
    /// Peers to speak XCP with; empty: all. A socket that chose XCP before it connected speaks it with any peer.
    pub to: Vec<Prefix>,
    /// True to give XCP to sockets that chose no congestion control and connect to these peers. Otherwise they
    /// must choose it.
    pub default: bool,
    /// Encoding of the headers that peers are offered; of laws that have the ECN field for themselves [`Encoding::Ecn`], of XCP-r
    /// the option.
    pub encoding: Encoding,
    /// True to say in the headers of data what routers with XCP-i want to know; with [`Encoding::Shim`], to peers that take it so.
    pub interoperable: bool,
    /// Interfaces at which headers of [`Encoding::Shim`], or codes of [`Encoding::Ecn`], are put in and taken out;
    /// [`Host::insert_at`] adds more.
    pub interfaces: Vec<String>,
    /// Law of the senders, with its settings.
    pub sender: Sender,
    /// Initial congestion window, packets.
    pub initial_window: u32,
    /// Control group whose processes, and those of groups below it, use the host.
    pub cgroup: PathBuf,
    /// Congestion control of connections whose peers or routers do not answer XCP, such as `cubic`.
    pub fallback: String,
}

/// Returns the control group of all processes.
///
/// # Errors
/// If the file system of control groups is not mounted.
pub fn everything() -> Result<PathBuf> {
    cgroup::root()
}

impl Config {
    /// Returns the default settings: all peers of the processes in `cgroup`, headers as TCP options, CUBIC
    /// where XCP is not answered.
    pub fn new(name: impl Into<String>, cgroup: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            to: vec![],
            default: true,
            encoding: Encoding::Option,
            interoperable: false,
            interfaces: vec![],
            sender: sender_config(LossPolicy::Tcp),
            initial_window: 1, // TH Ex. 11
            cgroup: cgroup.into(),
            fallback: "cubic".into(),
        }
    }

    /// The peers that the map has.
    fn peers(&self) -> &[Prefix] {
        if self.to.is_empty() { &[Prefix::ALL] } else { &self.to }
    }

    /// As `struct config` of `host.bpf.c`.
    fn bytes(&self, is_persistent: bool, has_casts: bool) -> Vec<u8> {
        let mut bytes = vec![0; 2 * NAME_SIZE];
        bytes[..self.name.len()].copy_from_slice(self.name.as_bytes());
        bytes[NAME_SIZE..][..self.fallback.len()].copy_from_slice(self.fallback.as_bytes());
        bytes.extend(self.sender.bytes());
        bytes.extend(self.initial_window.to_ne_bytes());
        let encoding = u8::from(self.encoding != Encoding::Option) | u8::from(self.interoperable) << 1;
        bytes.extend([self.default.into(), encoding, is_persistent.into(), has_casts.into()]);
        bytes
    }

    /// True where each packet is written by itself: TCP's super-packets can be cut neither with a header between IP and TCP
    /// nor with numbers that tell a place, and have one code for all.
    fn is_single(&self) -> bool {
        self.encoding == Encoding::Shim || self.sender.is_single()
    }

    fn check(&self) -> Result<()> {
        let is_name = |name: &str| {
            (1..NAME_SIZE).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte))
        };
        // By this beginning the programs of several hosts know each other's sockets.
        let law = self.sender.name();
        let is_of_law = self.name.starts_with(law) && title(&self.name) == self.sender.title();
        if !is_name(&self.name) || !is_of_law {
            let what = format!("{:?} can not name a congestion control of ours", self.name);
            return Err(Error::input(
                what,
                format!("at most 15 letters, digits, _ and . that begin with {law}"),
            ));
        }
        let fits = if self.sender.owns_ecn() {
            self.encoding == Encoding::Ecn
        } else {
            matches!(self.encoding, Encoding::Option | Encoding::Shim)
        };
        if !fits {
            return Err(Error::input(
                format!("{} has the ECN field for its codes, XCP an option or a shim", self.sender.title()),
                "leave --encoding out with laws other than XCP",
            ));
        }
        if matches!(self.sender, Sender::XcpR(_)) && self.encoding != Encoding::Option {
            let what = "XCP-r's receivers tell windows in a TCP option, not in a shim";
            return Err(Error::input(what, "leave --encoding out with --law xcp-r"));
        }
        if self.interoperable && (self.encoding != Encoding::Shim || !matches!(self.sender, Sender::Xcp(_))) {
            let what = "what XCP-i's routers want to know stands in XCP's header between IP and TCP alone";
            return Err(Error::input(what, "leave --encoding out with --law xcp-i"));
        }
        if self.encoding == Encoding::Option && !self.interfaces.is_empty() {
            let what = format!("the encoding option needs no interface such as {}", self.interfaces[0]);
            return Err(Error::input(what, "leave --interface out, or take --encoding shim"));
        }
        if self.initial_window == 0 {
            return Err(Error::input("an initial window of 0 packets", "at least 1"));
        }
        let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
        let available = fs::read_to_string(path).context(|| format!("can not read {path}"))?;
        if !is_name(&self.fallback) || !available.split_whitespace().any(|name| name == self.fallback) {
            return Err(Error::missing(
                format!(
                    "the kernel has no congestion control {:?}, only {}",
                    self.fallback,
                    available.split_whitespace().collect::<Vec<_>>().join(", ")
                ),
                format!("modprobe tcp_{}", self.fallback),
            ));
        }
        Ok(())
    }
}

/// Counts of a host since it was enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Connections on which both sides speak XCP.
    pub connections: u64,
    /// Connections left to the fallback because the SYN-ACK had no XCP option.
    pub fallbacks_no_option: u64,
    /// Connections left to the fallback because no router answered for three round trips.
    pub fallbacks_no_router: u64,
    /// Connections left to the fallback because options no longer arrived.
    pub fallbacks_stripped: u64,
    /// Connections left to the fallback after losses without negative feedback.
    pub fallbacks_loss: u64,
    /// Connections that returned to XCP because routers answered.
    pub returns: u64,
    /// Received XCP options of a wrong length.
    pub malformed: u64,
    /// Headers not sent because the packet had no room.
    pub unwritten: u64,
    /// Headers put in between IP and TCP.
    pub shims_sent: u64,
    /// Headers taken out from between IP and TCP.
    pub shims_received: u64,
    /// Packets with such a header that were left alone: not draft-03's version, cut off, or fragments.
    pub shims_refused: u64,
    /// ACKs that claimed more positive feedback than was asked for, of which nothing counted (XCP, XCP-r).
    pub lies: u64,
}

impl Counters {
    fn parse(bytes: &[u8]) -> Self {
        let word = |i: usize| word(bytes, 8 * i);
        Self {
            connections: word(0),
            fallbacks_no_option: word(2),
            fallbacks_no_router: word(3),
            fallbacks_stripped: word(4),
            fallbacks_loss: word(5),
            returns: word(6),
            malformed: word(7),
            unwritten: word(8),
            shims_sent: word(9),
            shims_received: word(10),
            shims_refused: word(11),
            lies: word(13), // behind what names the struct_ops map
        }
    }
}

/// Zero beyond the end.
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |bytes| u64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
}

/// The law that moves a socket's congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// Another congestion control that the socket chose; XCP only echoes feedback to the peer.
    Other,
    /// XCP, or the host's other law.
    Xcp,
    /// The fallback, a congestion control of the kernel.
    Fallback,
}

/// The reason for which a socket left XCP last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The peer did not answer the XCP option in the SYN.
    NoOption,
    /// No router answered for three round trips.
    NoRouter,
    /// XCP options no longer arrive.
    Stripped,
    /// Packets were lost without negative feedback.
    Loss,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::NoOption => "the peer does not speak XCP",
            Self::NoRouter => "no router answers",
            Self::Stripped => "options are removed on the way",
            Self::Loss => "losses that no feedback explains",
        })
    }
}

/// XCP's state of one socket: the value in the map [`Host::storage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// Law that moves the congestion window.
    pub law: Law,
    /// Reason for which the socket left XCP last; `None`: it never did.
    pub reason: Option<Reason>,
    /// XCP's congestion window, in bytes of IP packets.
    pub window_bytes: u64,
    /// Size of a full IP packet, bytes.
    pub packet_bytes: u32,
    /// Net feedback of the last whole round trip, B/s.
    #[serde(rename = "feedback_Bps")]
    pub feedback: i64,
    /// Routers that processed the last data packet of which the peer told; 15 means 15 or more.
    pub routers: u8,
    /// Times that the socket left XCP.
    pub fallbacks: u32,
    /// True if both sides speak XCP.
    pub negotiated: bool,
    /// Encoding of the headers of this connection.
    pub encoding: Encoding,
    /// Code of the load that a connection of VCP, DPCP or TPCP acts on: 1 low, 2 high, 3 over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<u8>,
    /// Epochs that a sender of XCP-r has begun: changes of its window that the receiver did not make, the first included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u32>,
    /// ACKs of the peer that claimed more positive feedback than was asked for, of which nothing counted.
    pub lies: u32,
}

impl Flow {
    /// Reads the bytes of a `struct flow` of `host.bpf.c`; returns `None` if they are too few.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (is_vcp, is_xcp_r, has_marks) = (*bytes.get(35)? == 1, bytes[35] == 2, bytes[35] == 3);
        let routers = *bytes.get(26)?; // of VCP the code
        Some(Self {
            window_bytes: word(bytes, 0),
            feedback: word(bytes, 8) as i64,
            packet_bytes: half(bytes, 16),
            fallbacks: half(bytes, 20),
            law: match bytes.get(24)? {
                1 => Law::Xcp,
                2 => Law::Fallback,
                _ => Law::Other,
            },
            reason: match bytes.get(25)? {
                1 => Some(Reason::NoOption),
                2 => Some(Reason::NoRouter),
                3 => Some(Reason::Stripped),
                4 => Some(Reason::Loss),
                _ => None,
            },
            routers: if is_vcp { 0 } else { routers },
            negotiated: *bytes.get(27)? != 0,
            encoding: match *bytes.get(28)? {
                _ if is_vcp || has_marks => Encoding::Ecn,
                0 => Encoding::Option,
                _ => Encoding::Shim,
            },
            load: (is_vcp && routers > 0).then_some(routers),
            epochs: is_xcp_r.then(|| half(bytes, 36)),
            lies: if is_vcp || has_marks { 0 } else { half(bytes, 40) },
        })
    }
}

/// A host whose programs are loaded. Programs of a host that is not persistent are removed with this value,
/// or with its process.
#[derive(Debug)]
pub struct Host {
    storage: MapHandle,
    hosts: MapHandle,
    _links: Vec<Link>,
    /// Programs of [`Encoding::Shim`].
    programs: Option<shim::Programs>,
    insertions: Vec<shim::Insertion>,
    deaf_listeners: usize,
    has_more_peers: bool,
}

impl Host {
    /// Returns true if the host was enabled before, and got more peers.
    pub fn has_more_peers(&self) -> bool {
        self.has_more_peers
    }

    /// Returns the map with a [`Flow`] for each socket, to be read by `INET_DIAG`.
    pub fn storage(&self) -> BorrowedFd<'_> {
        self.storage.as_fd()
    }

    /// Puts headers in between IP and TCP, and takes them out, at one more interface of the thread's network
    /// namespace. Connections by other interfaces use the TCP option.
    ///
    /// # Errors
    /// If there is no such interface, another host uses it, or the encoding is the TCP option.
    pub fn insert_at(&mut self, interface: &str) -> Result<()> {
        let Some(programs) = &self.programs else {
            return Err(Error::input(
                format!("headers can not be put in at {interface}: they travel as an option"),
                "the encoding shim, or a law with codes in the ECN field",
            ));
        };
        self.insertions.push(programs.insert(interface)?);
        Ok(())
    }

    /// Returns the number of servers that listened before and can not be told of the XCP option (by kernels
    /// before 6.12). They speak plain TCP until they are started again.
    pub fn deaf_listeners(&self) -> usize {
        self.deaf_listeners
    }

    /// Reads the host's counts.
    ///
    /// # Errors
    /// If the kernel refuses to read the map.
    pub fn counters(&self) -> Result<Counters> {
        let value = lookup(&self.hosts, "the counters")?;
        Ok(Counters::parse(&value))
    }

    /// Returns the connections of the thread's network namespace that use this host.
    ///
    /// # Errors
    /// If the kernel's `INET_DIAG` fails.
    pub fn sockets(&self) -> Result<Vec<Socket>> {
        let all = Diag::open()?.sockets(States::SENDING, Some(self.storage()))?;
        Ok(all
            .into_iter()
            .filter_map(|socket| {
                let flow = Flow::parse(socket.storage.as_deref()?)?;
                let info = socket.info.unwrap_or_default();
                Some(Socket {
                    local: socket.local,
                    peer: socket.remote,
                    congestion_control: socket.congestion,
                    cwnd_packets: info.snd_cwnd,
                    srtt_ms: f64::from(info.rtt) / 1000.0,
                    flow,
                })
            })
            .collect())
    }

    /// The one of this name that stays, if there is one.
    fn find(name: &str) -> Result<Option<(Installed, Self)>> {
        let options = ProgInfoQueryOptions::default().include_map_ids(true);
        // The list below is empty for whoever may not see it; this call says so.
        let root = cgroup::root()?;
        attachment::attached(&attachment::open(&root)?)
            .map_err(|error| refused(error, "ask the kernel for its programs"))?;
        for program in ProgInfoIter::with_query_opts(options).filter(|program| program.name == PROGRAM) {
            let maps: Vec<_> =
                MapInfoIter::default().filter(|map| program.map_ids.contains(&map.id)).collect();
            let open = |name: &str| {
                let map = maps.iter().find(|map| map.name == name).map(|map| MapHandle::from_map_id(map.id));
                map.transpose().map_err(os).context(|| format!("can not open the map {name}"))
            };
            let (Some(config), Some(storage), Some(hosts)) = (open(CONFIG)?, open("flows")?, open("hosts")?)
            else {
                continue;
            };
            let (Some(prefixes), Some(namespaces), Some(interfaces)) =
                (open("prefixes")?, open("namespaces")?, open(shim::MAP)?)
            else {
                continue;
            };
            let config = lookup(&config, "the configuration")?;
            if config.get(PERSISTENT) != Some(&1) || text(&config[..NAME_SIZE]) != name {
                continue;
            }
            let Some(cgroup) = cgroup_of(&root, program.id) else { continue };
            let control = half(&lookup(&hosts, "the counters")?, STRUCT_OPS);
            let installed =
                Installed { program: program.id, control, cgroup, config, prefixes, namespaces, interfaces };
            let host = Self {
                storage,
                hosts,
                _links: vec![],
                programs: None,
                insertions: vec![],
                deaf_listeners: 0,
                has_more_peers: false,
            };
            return Ok(Some((installed, host)));
        }
        Ok(None)
    }
}

/// The control group that a program is attached to: this one, or one below.
fn cgroup_of(folder: &Path, program: u32) -> Option<PathBuf> {
    let ids = attachment::attached(&attachment::open(folder).ok()?).ok()?;
    if ids.contains(&program) {
        return Some(folder.into());
    }
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    below.find_map(|entry| cgroup_of(&entry.path(), program))
}

/// Up to the first zero.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

/// How often the programs are given to the kernel.
const LOADS: usize = 5;
/// Where in the map `hosts` the id of the `struct_ops` map stands.
const STRUCT_OPS: usize = 96;
/// Where in the configuration stands whether it stays.
const PERSISTENT: usize = 70;

/// A host that stays, as the kernel remembers it.
struct Installed {
    program: u32,
    control: u32,
    cgroup: PathBuf,
    config: Vec<u8>,
    prefixes: MapHandle,
    namespaces: MapHandle,
    interfaces: MapHandle,
}

/// A host that stays and is enabled for the whole machine, not in one network namespace.
const MACHINE: u64 = 0;

/// For whom the thread would enable a host that stays: a namespace of `ip netns` is a host of its own.
fn scope() -> Result<u64> {
    if Namespace::current()?.is_named()? { netns::cookie() } else { Ok(MACHINE) }
}

impl Installed {
    /// Peers, by the namespace that has them.
    fn peers(&self) -> BTreeMap<u64, Vec<Prefix>> {
        let mut all = BTreeMap::<_, Vec<_>>::new();
        for (scope, prefix) in self.prefixes.keys().filter_map(|key| Prefix::from_key(&key)) {
            all.entry(scope).or_default().push(prefix);
        }
        all
    }

    /// Enables it in another namespace, too, or for more peers.
    fn join(&self, mut host: Host, config: &Config, scope: u64, mark: u8) -> Result<Option<Host>> {
        let peers = self.peers();
        if let Some(have) = peers.get(&scope) {
            return self.extend(host, config, scope, have, mark);
        }
        if peers.contains_key(&MACHINE) {
            let what = format!(
                "{} is enabled on this machine already, in all network namespaces",
                config.sender.title()
            );
            return Err(Error::input(what, "congestlab host disable, outside of them"));
        }
        if !self.is_as(config)? {
            return Err(Error::input(
                format!(
                    "{} is enabled in another network namespace with other settings",
                    config.sender.title()
                ),
                "the same settings, or congestlab host disable there; only --to and --interface may differ",
            ));
        }
        if !command::announce(&format!("use the congestion control {} here, too", config.name)) {
            announce_interfaces(config)?;
            return Ok(None);
        }
        self.find_programs(&mut host, config)?;
        for interface in &config.interfaces {
            host.insert_at(interface)?;
        }
        // Before anything stays: what fails from here on is undone by nobody.
        host.deaf_listeners = tell_listeners(config, scope)?;
        add(&self.prefixes, &self.namespaces, config, scope, mark)?;
        host.insertions.drain(..).for_each(shim::Insertion::keep);
        Ok(Some(host))
    }
}

/// Says what would happen at the interfaces.
fn announce_interfaces(config: &Config) -> Result<()> {
    for interface in &config.interfaces {
        let (_, segments) = shim::announce(interface)?;
        if shim::limits(config.is_single(), segments) {
            offload::limit_segments(interface, 1)?;
        }
    }
    Ok(())
}

/// Puts peers into the map, and the namespace into its own; the mark says by whom.
fn add(prefixes: &MapHandle, namespaces: &MapHandle, config: &Config, scope: u64, mark: u8) -> Result<()> {
    let put = namespaces.update(&scope.to_ne_bytes(), &[mark], MapFlags::ANY).map_err(os);
    put.context(|| "can not add a namespace".into())?;
    config.peers().iter().try_for_each(|prefix| peers::put(prefixes, *prefix, scope, mark))
}

/// Returns the interfaces of the thread's network namespace that are up, without loopback.
///
/// # Errors
/// If no interface is up.
pub fn interfaces() -> Result<Vec<String>> {
    let up = Interface::all()?.into_iter().filter(|one| one.is_up && !one.is_loopback);
    let names: Vec<_> = up.map(|one| one.name).collect();
    if names.is_empty() {
        return Err(Error::input("no interface is up but loopback", "ip link set dev IFACE up"));
    }
    Ok(names)
}

/// Loads the programs and attaches them: for the whole machine or, if the host is persistent and enabled in
/// a network namespace of `ip netns`, for that namespace alone. One that is enabled here with these settings gets more
/// peers. Returns `None` in a dry run.
///
/// # Errors
/// If a persistent host is enabled here for these peers already, or with other settings, the configuration is
/// wrong, the privilege is missing, or the kernel lacks a feature.
pub fn enable(config: &Config, is_persistent: bool) -> Result<Option<Host>> {
    enable_as(config, is_persistent, peers::BY_HAND)
}

fn enable_as(config: &Config, is_persistent: bool, mark: u8) -> Result<Option<Host>> {
    config.check()?;
    let scope = if is_persistent { scope()? } else { MACHINE };
    if is_persistent && let Some((installed, host)) = Host::find(&config.name)? {
        return installed.join(host, config, scope, mark);
    }
    // Of two that both offer themselves to every peer, who answers a packet first would decide.
    for other in NAMES.into_iter().filter(|other| is_persistent && *other != config.sender.name()) {
        if Host::find(other)?.is_some() {
            let what = format!("{} is enabled on this machine, and a host has one law", title(other));
            return Err(Error::input(what, "congestlab host disable"));
        }
    }
    let folder = attachment::open(&config.cgroup)?;
    let peers = match &config.to[..] {
        [] => "all peers".into(),
        to => to.iter().map(Prefix::to_string).collect::<Vec<_>>().join(", "),
    };
    let peers = if config.default { peers } else { format!("{peers}, where a socket chooses it") };
    let load_it = format!("load the congestion control {} for {peers}", config.name);
    let attach_it = format!("attach {PROGRAM} to the control group {}", config.cgroup.display());
    if !command::announce(&load_it) {
        announce_interfaces(config)?;
        command::announce(&attach_it);
        return Ok(None);
    }

    let mut object = load(|| open(config, is_persistent))?;
    let handle = |name: &str| {
        let map = object.maps().find(|map| map.name() == name);
        let map = map.as_ref().map(MapHandle::try_from).transpose().map_err(os);
        map.and_then(|map| map.ok_or(io::ErrorKind::NotFound.into())).context(|| format!("no map {name}"))
    };
    let (storage, hosts, prefixes) = (handle("flows")?, handle("hosts")?, handle("prefixes")?);
    let programs = match config.encoding {
        Encoding::Option | Encoding::Both | Encoding::Quic => None,
        Encoding::Shim | Encoding::Ecn => {
            Some(shim::Programs::of(&object, handle(shim::MAP)?, &storage, config.is_single())?)
        }
    };
    add(&prefixes, &handle("namespaces")?, config, scope, mark)?;

    let mut control = object
        .maps_mut()
        .find(|map| form::CONTROLS.iter().any(|name| map.name() == *name && map.autocreate()));
    let control = control.as_mut().ok_or_else(form::no_control)?;
    let id = control.info().map_err(os).context(|| "can not name the control".into())?.info.id;
    let mut control = control.attach_struct_ops().map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let what = format!("there is a congestion control {} already", config.name);
            Error::input(what, "another name, or congestlab host disable")
        }
        _ => refused(os(error), "register a congestion control"),
    })?;
    let mut value = lookup(&hosts, "the counters")?;
    value[STRUCT_OPS..STRUCT_OPS + 4].copy_from_slice(&id.to_ne_bytes());
    let put = hosts.update(&0u32.to_ne_bytes(), &value, MapFlags::ANY).map_err(os);
    put.context(|| "can not write down the control".into())?;

    let mut host = Host {
        storage,
        hosts,
        _links: vec![],
        programs,
        insertions: vec![],
        deaf_listeners: 0,
        has_more_peers: false,
    };
    for interface in &config.interfaces {
        host.insert_at(interface)?;
    }
    command::announce(&attach_it);
    let program = object.progs_mut().find(|program| program.name() == PROGRAM);
    let program = program.ok_or_else(|| Error::missing(format!("no program {PROGRAM}"), ""))?;
    if is_persistent {
        host.deaf_listeners = tell_listeners(config, scope)?;
        attachment::attach(program.as_fd(), &folder)
            .map_err(|error| refused(error, "attach to a control group"))?;
        control.disconnect();
        host.insertions.drain(..).for_each(shim::Insertion::keep);
        return Ok(Some(host));
    }
    let program = program.attach_cgroup(std::os::fd::AsRawFd::as_raw_fd(&folder));
    let program = program.map_err(|error| refused(os(error), "attach to a control group"))?;
    host._links = vec![program, control];
    Ok(Some(host))
}

/// Gives the programs to the kernel. Its verifier gives up when a signal is pending (EAGAIN), which has
/// been seen on a busy machine: then it is asked again.
fn load(open: impl Fn() -> Result<OpenObject>) -> Result<Object> {
    for _ in 1..LOADS {
        match open()?.load() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(50)),
            result => return result.map_err(not_loaded),
        }
    }
    open()?.load().map_err(not_loaded)
}

fn not_loaded(error: libbpf_rs::Error) -> Error {
    refused(os(error), "load the programs of a host")
}

/// Tells servers that listen already, which were not asked when they began, to answer the option: in the
/// thread's network namespace, or for the whole machine also in those with names. Returns how many can
/// not be told.
fn tell_listeners(config: &Config, scope: u64) -> Result<usize> {
    let object = load(|| {
        let mut object = open(config, true)?;
        for mut program in object.progs_mut() {
            let is_it = program.name() == LISTENERS;
            program.set_autoload(is_it);
        }
        for mut map in object.maps_mut().filter(|map| form::CONTROLS.iter().any(|name| map.name() == *name)) {
            map.set_autocreate(false).map_err(not_loaded)?;
        }
        Ok(object)
    })?;
    let program = object.progs_mut().find(|program| program.name() == LISTENERS);
    let program = program.ok_or_else(|| Error::missing(format!("no program {LISTENERS}"), ""))?;
    let link = program.attach().map_err(|error| refused(os(error), "look at sockets that listen"))?;
    let link = link.as_fd();
    let what = || "can not look at sockets that listen".to_owned();
    let mut deaf = bpf::iterate(link).context(what)?.len();
    for namespace in Namespace::named().into_iter().filter(|_| scope == MACHINE) {
        deaf += namespace.run(|| bpf::iterate(link))?.context(what)?.len();
    }
    Ok(deaf)
}

/// Puts the configuration in.
fn open(config: &Config, is_persistent: bool) -> Result<OpenObject> {
    let form = Form::of_kernel()?;
    if config.encoding != Encoding::Option && !form.has_casts {
        return Err(Error::missing(
            "the kernel shows programs too little of a packet for VCP, DPCP, TPCP and the encoding shim",
            "Linux 6.2 or later, or --law xcp --encoding option",
        ));
    }
    libbpf_rs::set_print(None);
    let mut object = ObjectBuilder::default().open_memory(config.sender.object()).map_err(not_loaded)?;
    for mut map in object.maps_mut() {
        if map.name() == CONFIG {
            map.set_initial_value(&config.bytes(is_persistent, form.has_casts)).map_err(not_loaded)?;
        } else if map.name() == form.control {
            // The loader's structure begins with the name (`host.bpf.c`).
            if let Some(value) = map.initial_value_mut() {
                value[..config.name.len()].copy_from_slice(config.name.as_bytes());
            }
            if is_persistent {
                // Registered by writing the map, until it is written again: not by a link.
                map.set_map_flags(map.map_flags() & !libbpf_sys::BPF_F_LINK).map_err(not_loaded)?;
            }
        } else if form::CONTROLS.iter().any(|name| map.name() == *name) {
            map.set_autocreate(false).map_err(not_loaded)?;
        }
    }
    for mut program in object.progs_mut() {
        let is_unused =
            config.encoding == Encoding::Option && shim::is_program(&program.name().to_string_lossy());
        if is_unused || program.name() == LISTENERS {
            program.set_autoload(false);
        }
    }
    Ok(object)
}

/// Names the privilege or the feature that is missing.
fn refused(error: io::Error, what: &str) -> Error {
    match error.kind() {
        // Not EACCES: the verifier's way to refuse.
        io::ErrorKind::PermissionDenied if !geteuid().is_root() || is_eperm(&error) => Error::missing(
            format!("may not {what}"),
            "run as root, or with CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON and CAP_SYS_ADMIN",
        ),
        _ => Error::missing(
            format!("can not {what}: {error}"),
            "Linux 6.1 or later (6.4 for a live lab) with CONFIG_CGROUP_BPF=y and CONFIG_BPF_JIT=y",
        ),
    }
}

fn is_eperm(error: &io::Error) -> bool {
    error.to_string().contains("Operation not permitted")
}

/// State of the persistent host.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// True if there is one in this network namespace.
    pub enabled: bool,
    /// Settings, counts and connections, if there is one.
    #[serde(flatten)]
    pub details: Option<Details>,
}

/// Settings, counts and connections of a persistent host.
#[derive(Clone, Debug, Serialize)]
pub struct Details {
    /// Name of the law; the congestion control has the same, for XCP-r without the dash.
    pub law: String,
    /// `machine`, or `namespace` if it is enabled in this network namespace only (seen from the machine's own:
    /// in at least one).
    pub scope: &'static str,
    /// Prefixes of the peers that it speaks XCP with, seen from this network namespace.
    pub to: Vec<String>,
    /// True if only sockets that choose it use it.
    pub opt_in: bool,
    /// Encoding of the headers that it offers its peers.
    pub encoding: Encoding,
    /// Interfaces at which it puts in and takes out headers between IP and TCP.
    pub interfaces: Vec<String>,
    /// Reaction to loss: `tcp`, `maintain` or `fallback`.
    pub loss: &'static str,
    /// Congestion control of connections that do not get XCP's answers.
    pub fallback: String,
    /// Control group whose processes, and those of groups below it, use the host.
    pub cgroup: PathBuf,
    /// Counts since it was enabled.
    pub counters: Counters,
    /// Connections of this network namespace that use it.
    pub sockets: Vec<Socket>,
}

/// A connection that uses the host.
#[derive(Clone, Debug, Serialize)]
pub struct Socket {
    /// Local address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub peer: SocketAddr,
    /// Name of the congestion control in force.
    pub congestion_control: String,
    /// The kernel's congestion window, packets.
    pub cwnd_packets: u32,
    /// The kernel's smoothed round-trip time, ms.
    pub srtt_ms: f64,
    /// XCP's state of the connection.
    #[serde(flatten)]
    pub flow: Flow,
}

/// Returns the state of the persistent host, one of [`NAMES`]: there is one at most.
///
/// # Errors
/// If the privilege to ask is missing.
pub fn status() -> Result<Status> {
    for name in NAMES {
        let status = status_of(name)?;
        if status.enabled {
            return Ok(status);
        }
    }
    Ok(Status::default())
}

/// Returns the state of the persistent host with this name.
///
/// # Errors
/// As [`status`].
pub fn status_of(name: &str) -> Result<Status> {
    let Some((installed, host)) = Host::find(name)? else { return Ok(Status::default()) };
    let (mut peers, config) = (installed.peers(), &installed.config);
    let is_everywhere = peers.contains_key(&MACHINE);
    let here = scope()?;
    let to = match peers.remove(if is_everywhere { &MACHINE } else { &here }) {
        Some(to) => to,
        // From outside, all namespaces that have it are seen, and disabled.
        None if here == MACHINE => peers.into_values().flatten().collect(),
        None => return Ok(Status::default()),
    };
    let details = Details {
        law: if config[PERSISTENT - 1] & 2 == 0 { law(name) } else { XCP_I.into() },
        scope: if is_everywhere { "machine" } else { "namespace" },
        to: to.iter().map(Prefix::to_string).collect(),
        opt_in: config[PERSISTENT - 2] == 0,
        encoding: match config[PERSISTENT - 1] {
            0 => Encoding::Option,
            _ if !name.starts_with(NAME) => Encoding::Ecn,
            _ => Encoding::Shim,
        },
        interfaces: shim::names(&installed.interfaces)?,
        loss: ["tcp", "maintain", "fallback"][half(config, 44).min(2) as usize],
        fallback: text(&config[NAME_SIZE..2 * NAME_SIZE]),
        cgroup: cgroup::shown(&installed.cgroup),
        counters: host.counters()?,
        sockets: host.sockets()?,
    };
    Ok(Status { enabled: true, details: Some(details) })
}

/// Removes the persistent host, one of [`NAMES`]. Sockets that use it go on without answers, so that the
/// fallback takes them over within three round trips.
///
/// # Errors
/// If there is no such host, or the privilege is missing.
pub fn disable() -> Result<()> {
    for name in NAMES {
        if Host::find(name)?.is_some() {
            return disable_named(name);
        }
    }
    for name in &NAMES[1..] {
        if has_control(name)? {
            return disable_named(name);
        }
    }
    disable_named(NAME)
}

/// Removes the persistent host with this name: in a network namespace of `ip netns` from there, otherwise
/// from the whole machine.
///
/// # Errors
/// As [`disable`].
pub fn disable_named(name: &str) -> Result<()> {
    let Some((installed, host)) = Host::find(name)? else {
        if remove_strays(name)? {
            return Ok(());
        }
        return Err(not_enabled(name));
    };
    let (scope, peers) = (scope()?, installed.peers());
    if scope != MACHINE && !peers.contains_key(&scope) {
        return Err(if peers.contains_key(&MACHINE) {
            let what = format!(
                "{} is enabled on the whole machine, not in this network namespace alone",
                title(name)
            );
            Error::input(what, "congestlab host disable, outside of it")
        } else {
            not_enabled(name)
        });
    }
    if scope != MACHINE && peers.len() > 1 {
        if command::announce(&format!("stop using the congestion control {name} here")) {
            for prefix in &peers[&scope] {
                let removed = installed.prefixes.delete(&prefix.key(scope)).map_err(os);
                removed.context(|| format!("can not remove {prefix}"))?;
            }
            let removed = installed.namespaces.delete(&scope.to_ne_bytes()).map_err(os);
            removed.context(|| "can not remove the namespace".into())?;
        }
        return shim::take_out(&installed.interfaces, &host.storage, Some(Namespace::current()?.inode()?));
    }
    if command::announce(&format!("detach {PROGRAM} from the control group {}", installed.cgroup.display())) {
        let program = libbpf_rs::Program::fd_from_id(installed.program).map_err(os);
        let program = program.context(|| format!("can not open the program {PROGRAM}"))?;
        let folder = attachment::open(&installed.cgroup)?;
        attachment::detach(program.as_fd(), &folder)
            .map_err(|error| refused(error, "detach from a control group"))?;
    }
    if command::announce(&format!("unregister the congestion control {name}")) {
        let control = MapHandle::from_map_id(installed.control).map_err(os);
        let control = control.context(|| "can not open the congestion control".into())?;
        let removed = control.delete(&0u32.to_ne_bytes()).map_err(os);
        removed.context(|| "can not unregister the congestion control".into())?;
    }
    shim::take_out(&installed.interfaces, &host.storage, None)
}

fn not_enabled(name: &str) -> Error {
    let what = format!("{} is not enabled on this host", title(name));
    Error::input(what, format!("congestlab host enable --law {}", law(name)))
}

/// True if the kernel has a congestion control of that name, which may be all that is left of a host.
fn has_control(name: &str) -> Result<bool> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = fs::read_to_string(path).context(|| format!("can not read {path}"))?;
    Ok(available.split_whitespace().any(|one| one == name))
}

/// Removes what an [`enable`] or a [`disable`] left that was killed half-way: no program hangs at a control
/// group then. Returns whether there was something.
fn remove_strays(name: &str) -> Result<bool> {
    let mut has_found = false;
    for map in MapInfoIter::default().filter(|map| form::CONTROLS.iter().any(|control| map.name == *control))
    {
        // Those of labs have links, which close with their processes.
        if map.map_flags & libbpf_sys::BPF_F_LINK != 0 {
            continue;
        }
        let Ok(control) = MapHandle::from_map_id(map.id) else { continue };
        let mut padded = [0; NAME_SIZE];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        let value = lookup(&control, "a congestion control")?;
        if value.windows(NAME_SIZE).any(|bytes| bytes == padded) {
            let is_real = command::announce(&format!("unregister the congestion control {name}"));
            has_found |= !is_real || control.delete(&0u32.to_ne_bytes()).is_ok();
        }
    }
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    for program in ProgInfoIter::with_query_opts(options) {
        if !shim::is_program(&program.name.to_string_lossy()) {
            continue;
        }
        let open = |name: &str| {
            let mut maps = MapInfoIter::default().filter(|map| program.map_ids.contains(&map.id));
            maps.find(|map| map.name == name).and_then(|map| MapHandle::from_map_id(map.id).ok())
        };
        let (Some(config), Some(storage), Some(interfaces)) = (open(CONFIG), open("flows"), open(shim::MAP))
        else {
            continue;
        };
        let config = lookup(&config, "the configuration")?;
        if config.get(PERSISTENT) == Some(&1) && text(&config[..NAME_SIZE]) == name {
            has_found = true;
            shim::take_out(&interfaces, &storage, None)?;
        }
    }
    Ok(has_found)
}

/// The only element.
fn lookup(map: &MapHandle, what: &str) -> Result<Vec<u8>> {
    let value = map
        .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(os)
        .context(|| format!("can not read {what}"))?;
    value.ok_or(io::Error::from(io::ErrorKind::NotFound)).context(|| format!("can not read {what}"))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |bytes| u32::from_ne_bytes(bytes.try_into().unwrap_or_default()))
}

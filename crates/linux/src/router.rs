//! XCP at an interface of a router: shaping, the program at its egress, and what they report.
//!
//! Nothing is kept on disk or in a bpffs: the program hangs at the interface and its maps at the
//! program, so it is found again by asking the kernel, and is gone with the interface.

use std::io::Read;
use std::os::fd::AsFd;

use congestlab_core::law::xcp::LinkConfig;
use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Ratio, SECOND};
use libbpf_rs::{
    ErrorKind, MapCore, MapFlags, MapHandle, ObjectBuilder, Program, ProgramInput, TC_EGRESS, TC_INGRESS,
    TcHook, TcHookBuilder,
};
use serde::Serialize;
use serde_json::Value;

use crate::error::{Context, Error, Result};
use crate::sys::{bpf, command};

/// As `bpf/build.sh` makes it of `bpf/router.bpf.c` and the link law.
pub const OBJECT: &[u8] = include_bytes!("../bpf/objects/router.bpf.o");

const PROGRAM: &str = "cl_router";
const INIT: &str = "cl_router_init";
/// Of our root qdisc, and of our filter where the kernel has no tcx.
const HANDLE: &str = "cc1:";
const FILTER: u32 = 0xcc1;
/// The bucket is small, because what it lets through at once stands in the next queue and is not seen in
/// this one: 5 kB, or what passes in 100 us, by which timers of an idle machine are late at most.
const BURST_MIN: u64 = 5000;
const BURST: Duration = Duration(SECOND / 10_000);
/// Of the queue where nobody says: XCP leaves it nearly empty but for the first round trips.
const QUEUE: Duration = Duration(SECOND / 10);
const QUEUE_MIN: u64 = 100_000;
/// Ethernet's header, which a link's rate does not count (contract section 2).
const ETHERNET: u32 = 14;

const PRIVILEGE: &str = "run as root, or with CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON and CAP_SYS_ADMIN";

/// Where packets carry the congestion header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// A TCP option ([`congestlab_core::wire::option`]).
    #[default]
    Option,
    /// Between IP and TCP ([`congestlab_core::wire::xcp`], version 3).
    Shim,
}

/// Limit of the queue that the rate is held with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// In packets of any size.
    Packets(u32),
    /// In bytes of IP.
    Bytes(u64),
}

impl Queue {
    /// What 100 ms can bring, and not too little on slow links.
    pub fn default_for(rate: BitRate) -> Self {
        Self::Bytes(rate.bytes().over(QUEUE).0.max(QUEUE_MIN))
    }
}

/// What [`attach`] makes of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Of the link, in bits of IP.
    pub rate: BitRate,
    /// XCP's constants; its capacity is where the law begins.
    pub law: LinkConfig,
    /// Which headers to look for.
    pub encoding: Encoding,
    /// The queue of the shaper; `None`: the interface is shaped already.
    pub shape: Option<Queue>,
}

/// XCP's usual constants (K02, draft-03) at a rate.
pub fn law(rate: BitRate) -> LinkConfig {
    const MS: u64 = SECOND / 1000;
    LinkConfig {
        capacity: rate.bytes(),
        alpha: Ratio::ppm(400_000),
        beta: Ratio::ppm(226_000),
        gamma: Ratio::ppm(100_000),
        min_interval: Duration(5 * MS),
        max_interval: Duration(SECOND),
        initial_interval: Duration(50 * MS),
        allowed_queue: Duration(2 * MS),
        capture: true,
    }
}

/// How the program hangs at the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// Linux 6.6 and later.
    Tcx,
    /// Before.
    Clsact,
}

/// Packets with a congestion header that routers must not touch, by what is wrong with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// An option that does not begin at an even byte.
    pub odd_offset: u64,
    /// A header whose length field is not the one it must have.
    pub wrong_length: u64,
    /// A header that ends after the packet does, or after TCP's options.
    pub truncated: u64,
    /// TCP options that can not be read one after the other.
    pub malformed: u64,
    /// A version other than draft-03's.
    pub version: u64,
    /// The kernel had no memory to change the packet.
    pub unwritable: u64,
}

impl Refused {
    /// Of any kind.
    pub fn total(&self) -> u64 {
        self.odd_offset + self.wrong_length + self.truncated + self.malformed + self.version + self.unwritable
    }
}

/// What the program has counted and the law has decided, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(non_snake_case, reason = "units as the contract writes them")]
pub struct Sample {
    /// What the law believes that the link can carry, bits of IP.
    pub capacity_bps: u64,
    /// Input rate of the last control interval.
    pub input_Bps: u64,
    /// Aggregate feedback of the last control interval.
    pub feedback_Bps: i64,
    /// Length of the control interval.
    pub interval_ms: f64,
    /// Least backlog of the time before.
    pub persistent_queue_bytes: u64,
    /// Control intervals so far.
    pub intervals: u64,
    /// All packets; a super-packet counts as its segments.
    pub packets: u64,
    /// Bytes of IP in them.
    pub bytes: u64,
    /// Packets whose header the law has worked on.
    pub xcp_packets: u64,
    /// Packets without such a header.
    pub other_packets: u64,
    /// Packets with a header that is wrong.
    pub refused_packets: u64,
    /// Why.
    pub refused: Refused,
}

/// An interface with a router's law.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// Its name.
    pub interface: String,
    /// Always `xcp`.
    pub law: &'static str,
    /// Which headers are looked for.
    pub encoding: Encoding,
    /// How the program hangs there.
    pub hook: Hook,
    /// Whether the shaper is ours.
    pub shaped: bool,
    /// Numbers.
    #[serde(flatten)]
    pub sample: Sample,
}

/// What [`detach`] has to undo, as bits in the program's configuration.
const SHAPED: u32 = 1;
const CLSACT: u32 = 2;

/// `struct config` of `bpf/router.bpf.c`, as bytes.
struct Settings(Vec<u8>);

impl Settings {
    const LAW: usize = 64;
    const PHASES: usize = Self::LAW;
    const WORDS: usize = Self::PHASES + 16;
    const SIZE: usize = Self::WORDS + 16;

    fn new(config: &Config, phases: [u64; 2], link_header: u32, undo: u32) -> Self {
        let law = &config.law;
        let mut bytes = law.capacity.0.to_ne_bytes().to_vec();
        for ratio in [law.alpha, law.beta, law.gamma, Ratio(0)] {
            bytes.extend(ratio.0.to_ne_bytes());
        }
        for span in [law.min_interval, law.max_interval, law.initial_interval, law.allowed_queue] {
            bytes.extend(span.0.to_ne_bytes());
        }
        bytes.extend(u64::from(law.capture).to_le_bytes());
        phases.iter().for_each(|phase| bytes.extend(phase.to_ne_bytes()));
        let encoding = u32::from(config.encoding == Encoding::Shim);
        for word in [encoding, link_header, undo, 0] {
            bytes.extend(word.to_ne_bytes());
        }
        debug_assert_eq!(bytes.len(), Self::SIZE);
        Self(bytes)
    }

    fn word(&self, index: usize) -> u32 {
        let at = Self::WORDS + 4 * index;
        self.0[at..at + 4].try_into().map_or(0, u32::from_ne_bytes)
    }

    fn encoding(&self) -> Encoding {
        if self.word(0) == 0 { Encoding::Option } else { Encoding::Shim }
    }

    fn undo(&self) -> u32 {
        self.word(2)
    }

    fn capacity(&self) -> Rate {
        Rate(self.0[..8].try_into().map_or(0, u64::from_ne_bytes))
    }

    fn set_capacity(&mut self, capacity: Rate) {
        self.0[..8].copy_from_slice(&capacity.0.to_ne_bytes());
    }
}

/// An interface of the calling thread's network namespace.
struct Interface {
    name: String,
    index: i32,
    link_header: u32,
}

impl Interface {
    fn find(name: &str) -> Result<Self> {
        let all = Self::all()?;
        let names: Vec<String> = all.iter().map(|interface| interface.name.clone()).collect();
        all.into_iter().find(|interface| interface.name == name).ok_or_else(|| {
            Error::input(
                format!("there is no interface {name}"),
                format!("those here are: {}", names.join(", ")),
            )
        })
    }

    fn all() -> Result<Vec<Self>> {
        let list = json("ip -j link show")?;
        let each = |link: &Value| {
            Some(Self {
                name: link["ifname"].as_str()?.to_owned(),
                index: i32::try_from(link["ifindex"].as_i64()?).ok()?,
                link_header: match link["link_type"].as_str()? {
                    "ether" | "loopback" => ETHERNET,
                    _ => 0,
                },
            })
        };
        Ok(list.as_array().into_iter().flatten().filter_map(each).collect())
    }

    /// Kind and handle of the qdisc that all packets pass.
    fn root_qdisc(&self) -> Result<(String, String)> {
        let list = json(&format!("tc -j qdisc show dev {}", self.name))?;
        let root = list.as_array().into_iter().flatten().find(|qdisc| qdisc["root"] == true);
        let text = |key| root.and_then(|root| root[key].as_str()).unwrap_or_default().to_owned();
        Ok((text("kind"), text("handle")))
    }

    /// The program, if it hangs here.
    fn attached(&self) -> Result<Option<Attached>> {
        libbpf_rs::set_print(None); // what fails is told by us
        let asked = bpf::attached(self.index, bpf::BPF_TCX_EGRESS);
        let ids = match asked {
            Ok(ids) => ids,
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => vec![], // no tcx here
            Err(error) => return Err(refused("ask the kernel for programs", error)),
        };
        let null = std::fs::File::open("/dev/null").context(|| "can not open /dev/null".into())?;
        let filter = self.filter(null.as_fd()).query().ok();
        let tcx = ids.into_iter().map(|id| (id, Hook::Tcx));
        for (id, hook) in tcx.chain(filter.map(|id| (id, Hook::Clsact))) {
            let program = Program::fd_from_id(id).map_err(|error| refused("open a program", io(error)))?;
            let info = bpf::program_info(program.as_fd()).context(|| "can not ask about a program".into())?;
            if info.name == PROGRAM {
                let maps = info.map_ids.iter().map(|id| MapHandle::from_map_id(*id));
                let maps: std::result::Result<Vec<_>, _> = maps.collect();
                let maps = maps.map_err(|error| refused("open a program's maps", io(error)))?;
                return Ok(Some(Attached { program, hook, maps }));
            }
        }
        Ok(None)
    }

    fn require_attached(&self) -> Result<Attached> {
        self.attached()?.ok_or_else(|| {
            Error::input(
                format!("{} has no router's law", self.name),
                format!("congestlab router attach {} --law xcp --rate RATE", self.name),
            )
        })
    }

    fn filter(&self, program: std::os::fd::BorrowedFd<'_>) -> TcHook {
        TcHookBuilder::new(program).ifindex(self.index).handle(FILTER).priority(FILTER).hook(TC_EGRESS)
    }
}

/// The program at an interface.
struct Attached {
    program: std::os::fd::OwnedFd,
    hook: Hook,
    maps: Vec<MapHandle>,
}

impl Attached {
    fn map(&self, name: &str) -> Result<&MapHandle> {
        let map = self.maps.iter().find(|map| map.name() == name);
        map.ok_or_else(|| Error::Command {
            command: PROGRAM.into(),
            message: format!("the attached program has no map {name}: it is of another version"),
        })
    }

    fn settings(&self) -> Result<Settings> {
        read(self.map("config")?, MapFlags::ANY).map(Settings)
    }
}

fn json(line: &str) -> Result<Value> {
    let text = command::query(line)?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Command { command: line.into(), message: error.to_string() })
}

/// What it means that the kernel did not let us.
fn refused(what: &str, error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => Error::missing(format!("may not {what}"), PRIVILEGE),
        _ => Error::Io { what: format!("can not {what}"), source: error },
    }
}

fn io(error: libbpf_rs::Error) -> std::io::Error {
    let kind = match error.kind() {
        ErrorKind::PermissionDenied => std::io::ErrorKind::PermissionDenied,
        _ => std::io::ErrorKind::Other,
    };
    std::io::Error::new(kind, error)
}

fn read(map: &MapHandle, flags: MapFlags) -> Result<Vec<u8>> {
    let value = map.lookup(&0u32.to_ne_bytes(), flags).map_err(|error| refused("read a map", io(error)))?;
    value.ok_or_else(|| Error::Command { command: PROGRAM.into(), message: "an empty map".into() })
}

/// Two spans in (0, most]: routers that start together must not decide together.
fn phases(most: Duration) -> Result<[u64; 2]> {
    let mut bytes = [0; 16];
    let mut source = std::fs::File::open("/dev/urandom").context(|| "can not open /dev/urandom".into())?;
    source.read_exact(&mut bytes).context(|| "can not read /dev/urandom".into())?;
    let (high, low) = bytes.split_at(8);
    Ok([high, low].map(|half| 1 + half.try_into().map_or(0, u64::from_ne_bytes) % most.0.max(1)))
}

/// Puts XCP at an interface.
///
/// # Errors
/// If there is no such interface, it has a router's law or a queue of somebody else's, or the kernel or
/// the privilege is missing. Nothing is changed then.
pub fn attach(name: &str, config: &Config) -> Result<()> {
    let interface = Interface::find(name)?;
    let (kind, handle) = interface.root_qdisc()?;
    match config.shape {
        // What the kernel made itself has no number, and comes back by itself.
        Some(_) if handle != "0:" && handle != HANDLE => {
            return Err(Error::input(
                format!("{name} has a qdisc already: {kind} {handle}"),
                format!("use it as it is with --no-shape, or remove it first: tc qdisc del dev {name} root"),
            ));
        }
        // These keep no backlog of their own: the packets wait elsewhere, or nowhere.
        None if ["noqueue", "mq", "mqprio", "taprio", "pfifo_fast", "noop", ""].contains(&kind.as_str()) => {
            return Err(Error::input(
                format!("the qdisc of {name} is {kind}, which does not say how much waits in it"),
                "leave --no-shape out, or set up a shaper first (tc qdisc add ... tbf or htb)",
            ));
        }
        _ => {}
    }
    if command::mode() != command::Mode::DryRun && interface.attached()?.is_some() {
        return Err(Error::input(
            format!("{name} has a router's law already"),
            format!("congestlab router detach {name}"),
        ));
    }
    if let Some(queue) = config.shape {
        shape(&interface, config.rate, queue)?;
    }
    let attached = hang(&interface, config);
    if attached.is_err() && config.shape.is_some() {
        command::run(&format!("tc qdisc del dev {name} root"))?;
    }
    attached
}

/// The rate that somebody else's TBF or HTB holds on an interface.
///
/// # Errors
/// If there is none that tells, or without the interface.
pub fn shaped_rate(name: &str) -> Result<BitRate> {
    let interface = Interface::find(name)?;
    let (kind, handle) = interface.root_qdisc()?;
    let rates: Vec<u64> = match kind.as_str() {
        "tbf" => {
            let list = json(&format!("tc -j qdisc show dev {name}"))?;
            let all = list.as_array().into_iter().flatten();
            all.filter(|qdisc| qdisc["root"] == true)
                .filter_map(|qdisc| qdisc["options"]["rate"].as_u64())
                .collect()
        }
        "htb" => {
            let list = json(&format!("tc -j class show dev {name}"))?;
            let all = list.as_array().into_iter().flatten();
            all.filter(|class| class["root"] == true).filter_map(|class| class["rate"].as_u64()).collect()
        }
        _ => vec![],
    };
    match rates[..] {
        [bytes] => Ok(Rate(bytes).bits()),
        _ => Err(Error::input(
            format!("the qdisc of {name}, {kind} {handle}, does not say one rate"),
            "say what the link carries: --rate \"1 Gbit/s\"",
        )),
    }
}

/// Holds the rate with a token bucket that counts bytes of IP.
fn shape(interface: &Interface, rate: BitRate, queue: Queue) -> Result<()> {
    let (name, header) = (&interface.name, interface.link_header);
    let burst = rate.bytes().over(BURST).0.max(BURST_MIN);
    let (limit, child) = match queue {
        Queue::Packets(packets) => (u64::from(packets), "pfifo"),
        Queue::Bytes(bytes) => (bytes, "bfifo"),
    };
    let stab = if header == 0 { String::new() } else { format!("stab overhead -{header} ") };
    command::run(&format!(
        "tc qdisc add dev {name} root handle {HANDLE} {stab}tbf rate {}bit burst {burst} limit {limit}",
        rate.0
    ))?;
    let queue = format!("tc qdisc add dev {name} parent {HANDLE}1 {child} limit {limit}");
    if let Err(error) = command::run(&queue) {
        command::run(&format!("tc qdisc del dev {name} root"))?;
        return Err(error);
    }
    Ok(())
}

/// Loads the program and hangs it at the interface.
fn hang(interface: &Interface, config: &Config) -> Result<()> {
    if !command::announce(&format!(
        "bpf attach {PROGRAM} ({}) to tcx egress of {}",
        law_name(),
        interface.name
    )) {
        return Ok(());
    }
    let mut builder = ObjectBuilder::default();
    let opened =
        builder.open_memory(OBJECT).map_err(|error| refused("open the router's program", io(error)))?;
    let object = opened.load().map_err(|error| match io(error) {
        error if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Error::missing("may not load BPF programs", PRIVILEGE)
        }
        error => Error::missing(
            format!("this kernel does not take the router's program: {error}"),
            "Linux 6.9 or later, built with CONFIG_DEBUG_INFO_BTF",
        ),
    })?;

    let law = LinkConfig { capacity: config.rate.bytes(), ..config.law };
    let config = Config { law, ..config.clone() };
    let phases = phases(config.law.initial_interval)?;
    let mut undo = if config.shape.is_some() { SHAPED } else { 0 };
    let part = |name: &str| object.progs().find(|program| program.name() == name);
    let map = |name: &str| object.maps().find(|map| map.name() == name);
    let init = object.progs_mut().find(|program| program.name() == INIT);
    let (Some(program), Some(init), Some(settings)) = (part(PROGRAM), init, map("config")) else {
        return Err(Error::Command { command: PROGRAM.into(), message: "a part is missing".into() });
    };
    let write = |undo| {
        let bytes = Settings::new(&config, phases, interface.link_header, undo).0;
        let written = settings.update(&0u32.to_ne_bytes(), &bytes, MapFlags::ANY);
        written.map_err(|error| refused("write a map", io(error)))
    };
    write(undo)?;
    let packet = [0; 14];
    let begun = init.test_run(ProgramInput { data_in: Some(&packet), ..Default::default() });
    begun.map_err(|error| refused("start the law", io(error)))?;

    // The variable is for the test of the older way.
    if std::env::var_os("CONGESTLAB_CLSACT").is_none() {
        match bpf::attach(program.as_fd(), interface.index, bpf::BPF_TCX_EGRESS) {
            Ok(()) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {} // no tcx here
            Err(error) => return Err(refused("attach the router's program", error)),
        }
    }
    let mut filter = interface.filter(program.as_fd());
    let list = json(&format!("tc -j qdisc show dev {}", interface.name))?;
    if list.as_array().into_iter().flatten().all(|qdisc| qdisc["kind"] != "clsact") {
        undo |= CLSACT;
        write(undo)?;
        filter.create().map_err(|error| refused("add a clsact qdisc", io(error)))?;
    }
    filter.attach().map_err(|error| refused("attach the router's program", io(error)))?;
    Ok(())
}

/// Takes the law off an interface; its queue is then what it was before [`attach`].
///
/// # Errors
/// If there is none, or without the privilege.
pub fn detach(name: &str) -> Result<()> {
    let interface = Interface::find(name)?;
    let attached = interface.require_attached()?;
    let undo = attached.settings()?.undo();
    if command::announce(&format!("bpf detach {PROGRAM} from {name}")) {
        match attached.hook {
            Hook::Tcx => bpf::detach(attached.program.as_fd(), interface.index, bpf::BPF_TCX_EGRESS)
                .map_err(|error| refused("detach the router's program", error))?,
            Hook::Clsact => {
                let mut filter = interface.filter(attached.program.as_fd());
                filter.detach().map_err(|error| refused("detach the router's program", io(error)))?;
                if undo & CLSACT != 0 {
                    let mut both = *filter.attach_point(TC_EGRESS | TC_INGRESS);
                    both.destroy().map_err(|error| refused("remove the clsact qdisc", io(error)))?;
                }
            }
        }
    }
    // Somebody may have removed it or put another in its place.
    if undo & SHAPED != 0 && interface.root_qdisc()?.1 == HANDLE {
        command::run(&format!("tc qdisc del dev {name} root"))?;
    }
    Ok(())
}

/// The interfaces with a router's law, or the one that is named.
///
/// # Errors
/// If the named one has none, or without the privilege.
pub fn status(name: Option<&str>) -> Result<Vec<Status>> {
    let one = |interface: &Interface, attached: Attached| {
        let settings = attached.settings()?;
        let reader =
            Reader { port: attached.map("port")?.try_clone()?, config: attached.map("config")?.try_clone()? };
        Ok(Status {
            interface: interface.name.clone(),
            law: "xcp",
            encoding: settings.encoding(),
            hook: attached.hook,
            shaped: settings.undo() & SHAPED != 0,
            sample: reader.sample()?,
        })
    };
    if let Some(name) = name {
        let interface = Interface::find(name)?;
        return Ok(vec![one(&interface, interface.require_attached()?)?]);
    }
    let mut found = vec![];
    for interface in Interface::all()? {
        if let Some(attached) = interface.attached()? {
            found.push(one(&interface, attached)?);
        }
    }
    Ok(found)
}

/// Changes the rate of the law and of our shaper, as a step of a scenario.
///
/// # Errors
/// If the interface has no law, or without the privilege.
pub fn set_rate(name: &str, rate: BitRate) -> Result<()> {
    let interface = Interface::find(name)?;
    let attached = interface.require_attached()?;
    let mut settings = attached.settings()?;
    if settings.undo() & SHAPED != 0 {
        reshape(&interface, rate)?;
    }
    settings.set_capacity(rate.bytes());
    let written = attached.map("config")?.update(&0u32.to_ne_bytes(), &settings.0, MapFlags::ANY);
    written.map_err(|error| refused("write a map", io(error)))
}

fn reshape(interface: &Interface, rate: BitRate) -> Result<()> {
    let name = &interface.name;
    let list = json(&format!("tc -j qdisc show dev {name}"))?;
    let root = list.as_array().into_iter().flatten().find(|qdisc| qdisc["handle"] == HANDLE);
    let Some(limit) = root.and_then(|root| root["options"]["limit"].as_u64()) else {
        return Err(Error::input(
            format!("the shaper of {name} is gone"),
            format!("congestlab router detach {name}"),
        ));
    };
    let burst = rate.bytes().over(BURST).0.max(BURST_MIN);
    // The kernel gives the limit to the queue inside, whatever it counts in (fifo_set_limit).
    let stab = match interface.link_header {
        0 => String::new(),
        header => format!("stab overhead -{header} "),
    };
    command::run(&format!(
        "tc qdisc change dev {name} root handle {HANDLE} {stab}tbf rate {}bit burst {burst} limit {limit}",
        rate.0
    ))
    .map(drop)
}

/// Samples of one interface, cheap enough for a hundred a second.
#[derive(Debug)]
pub struct Reader {
    port: MapHandle,
    config: MapHandle,
}

trait TryClone: Sized {
    fn try_clone(&self) -> Result<Self>;
}

impl TryClone for MapHandle {
    fn try_clone(&self) -> Result<Self> {
        Self::try_from(self).map_err(|error| refused("open a map again", io(error)))
    }
}

impl Reader {
    /// Of an interface with a router's law. Stays with it whatever becomes of the namespace that the
    /// thread is in.
    ///
    /// # Errors
    /// If the interface has none, or without the privilege.
    pub fn open(name: &str) -> Result<Self> {
        let attached = Interface::find(name)?.require_attached()?;
        Ok(Self { port: attached.map("port")?.try_clone()?, config: attached.map("config")?.try_clone()? })
    }

    /// What holds now.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn sample(&self) -> Result<Sample> {
        let port = read(&self.port, MapFlags::LOCK)?;
        let capacity = Settings(read(&self.config, MapFlags::ANY)?).capacity();
        // Behind the lock and the rest: see `struct port`.
        let word = |index: usize| {
            port.get(8 + 8 * index..16 + 8 * index)
                .and_then(|bytes| bytes.try_into().ok())
                .map_or(0, u64::from_ne_bytes)
        };
        let count = |index: usize| word(6 + index);
        let refused = Refused {
            odd_offset: count(4),
            wrong_length: count(5),
            truncated: count(6),
            malformed: count(7),
            version: count(8),
            unwritable: count(9),
        };
        Ok(Sample {
            capacity_bps: capacity.bits().0,
            intervals: word(1),
            input_Bps: word(2),
            feedback_Bps: word(3) as i64,
            interval_ms: word(4) as f64 / 1e6,
            persistent_queue_bytes: Bytes(word(5)).0,
            packets: count(0),
            bytes: count(1),
            xcp_packets: count(2),
            other_packets: count(3),
            refused_packets: refused.total(),
            refused,
        })
    }
}

/// Which law the object holds: Rust's of `crates/core`, or the C twin.
pub fn law_name() -> &'static str {
    const MARK: &[u8] = b"congestlab law: ";
    let at =
        OBJECT.windows(MARK.len()).position(|bytes| bytes == MARK).map_or(OBJECT.len(), |at| at + MARK.len());
    let text = OBJECT[at..].split(|byte| *byte == 0).next().unwrap_or_default();
    std::str::from_utf8(text).unwrap_or_default()
}

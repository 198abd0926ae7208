//! A law at an interface of a router, XCP, P-XCP, XCP-i, VCP, DPCP or any other for links: the shaper, the BPF program at its egress, and their counts.
//!
//! Nothing is kept on disk or in a bpffs: the program is attached to the interface and its maps belong to
//! the program, so it is found again by asking the kernel, and is gone with the interface.

mod any;
mod beside;
pub mod clouds;
mod ensure;
mod layout;
mod maps;
mod object;
pub mod police;
mod program;
mod shaper;
mod shares;
mod source;
mod state;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use congestlab_core::law::{mpcp, pxcp, xcp};
use congestlab_core::units::{BitRate, Duration, Rate, Ratio, SECOND};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use serde::Serialize;

pub use crate::encoding::Encoding;
use crate::error::{Error, Result, refused};
pub use crate::interface::Hook;
use crate::interface::{Hung, Interface, Place, Side, json};
use crate::sys::bpf::os;
use crate::sys::command;
use crate::sys::offload;
use crate::sys::qdisc::{Qdisc, QdiscReader};
pub use any::AnyLaw;
pub use beside::{Beside, Follower, check_beside};
pub use ensure::{Change, Part, ensure, ensured, replace};
use maps::{CONFIG, PARTS, PORT, PROGRAM, incomplete, read};
pub use object::law_name_in;
pub use police::Policed;
use program::Settings;
pub use program::{Flows, Load, OBJECT, Program, Refused, Sample, law_name};
use shaper::Shaper;
pub use shares::Weights;
pub use source::{Fed, Feeder, PATIENCE, Source, SourceKind, SourceState};
pub use state::State;

/// Handle of the root qdisc that is ours.
const HANDLE: u32 = 0xcc1_0000;
/// Bytes that Ethernet carries around each IP packet: preamble, header, checksum and gap.
const AROUND: u64 = 38;
/// Kind of the qdisc of an interface with several hardware queues, each of which has one of its own below.
const MQ: &str = "mq";
/// Kinds that keep no backlog of their own: the packets wait elsewhere, or nowhere.
const SILENT: [&str; 7] = ["noqueue", MQ, "mqprio", "taprio", "pfifo_fast", "noop", ""];
/// Where the program hangs.
const PLACE: Place = Place { side: Side::Out, is_first: false, filter: 0xcc1 };
/// The bucket is small, because what it lets through at once stands in the next queue and is not seen in
/// this one: 5 kB, or what passes in 100 us, by which timers of an idle machine are late at most, or two
/// packets, for what is longer than the bucket never passes (tbf_enqueue in net/sched/sch_tbf.c).
const BURST_MIN: u64 = 5000;
const BURST: Duration = Duration(SECOND / 10_000);
const BURST_PACKETS: u64 = 2;
/// Length of the queue where nobody says: XCP leaves it nearly empty but for the first round trips.
const QUEUE: Duration = Duration(SECOND / 10);
const QUEUE_MIN: u64 = 100_000;
/// Rates that TBF can hold: below, a packet takes longer than anybody waits; above, small ones take less
/// than the nanosecond in which it counts.
const RATES: RangeInclusive<BitRate> = BitRate(1000)..=BitRate(1_000_000_000_000);

/// Limit of the shaper's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Limit in packets of any size.
    Packets(u32),
    /// Limit in bytes of IP packets.
    Bytes(u64),
}

impl Queue {
    /// Returns the queue limit of a link without one: 100 ms at this rate, at least 100 kB, and at most what tc
    /// accepts.
    pub fn default_for(rate: BitRate) -> Self {
        Self::Bytes(rate.bytes().over(QUEUE).0.clamp(QUEUE_MIN, u32::MAX.into()))
    }

    /// The kind of the kernel's queue.
    fn kind(self) -> &'static str {
        match self {
            Self::Packets(_) => "pfifo",
            Self::Bytes(_) => "bfifo",
        }
    }

    /// Returns the limit, in packets or bytes.
    fn limit(self) -> u64 {
        match self {
            Self::Packets(packets) => packets.into(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Settings of [`attach`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Rate of the link, in bits of IP packets.
    pub rate: BitRate,
    /// Law and its constants; the capacity in them is the initial one.
    pub law: Law,
    /// Encoding of the congestion headers to look for: VCP's and DPCP's is [`Encoding::Ecn`], XCP's one of the others.
    pub encoding: Encoding,
    /// Queue of the shaper that holds the rate; `None`: the interface is shaped already.
    pub shape: Option<Queue>,
}

impl Config {
    /// The same, with the law in parts where an interface has several hardware queues and nothing else makes packets of all
    /// processors wait for each other.
    fn fitted(&self, qdisc: &str) -> Self {
        let law = self.law.clone();
        let law = if self.shape.is_none() && qdisc == MQ { law.per_cpu() } else { None };
        Self { law: law.unwrap_or_else(|| self.law.clone()), ..self.clone() }
    }
}

/// A link law that the kernel runs, with its constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Law {
    /// XCP.
    Xcp(xcp::LinkConfig),
    /// VCP or DPCP: of MPCP's constants those that chains of one packet have. Chains are of two packets for DPCP, whose order
    /// is that of their numbers.
    Mpcp(mpcp::LinkConfig),
    /// P-XCP.
    Pxcp(pxcp::LinkConfig),
    /// XCP behind a policer with so many records of flows, a number of [`police::RECORDS`].
    Policed(xcp::LinkConfig, u32),
    /// XCP-i: XCP, which also finds clouds of routers without it, and the address by which such routers know this port.
    XcpI(xcp::LinkConfig, Ipv4Addr),
    /// XCP beside all other traffic, each in a class of its own, and the weights of these.
    Beside(xcp::LinkConfig, Weights),
    /// XCP on an interface with several hardware queues, whose processors add up by themselves, each with a part of the law.
    PerCpu(xcp::LinkConfig),
    /// Any other, or a queue law, which judges packets before their queue.
    Any(Box<AnyLaw>),
}

impl Law {
    /// Number of VCP in the program's configuration.
    const VCP: u32 = 1;
    /// Number of P-XCP there.
    const PXCP: u32 = 2;
    /// Number of all laws that have none.
    const ANY: u32 = 3;
    /// Number of DPCP.
    const DPCP: u32 = 4;
    /// Number of XCP-i.
    const XCP_I: u32 = 5;
    /// Number of XCP beside all other traffic.
    const BESIDE: u32 = 6;
    /// Number of XCP behind a policer.
    const POLICED: u32 = 7;
    /// Number of XCP whose processors add up by themselves.
    const PER_CPU: u32 = 8;

    /// Gives a constant another value: `alpha`, `beta` or `gamma` of XCP and P-XCP, `k` or `r-max` of P-XCP, of any other law its
    /// factors and shares. Returns false if the law has none of that name, or not such a one.
    pub fn tell(&mut self, name: &str, value: Ratio) -> bool {
        let place = match (&mut *self, name) {
            (Self::Any(law), _) => return law.tell(name, value),
            (Self::Pxcp(law), "k") => &mut law.k,
            (Self::Pxcp(law), "r-max") if value < Ratio::ONE => &mut law.r_max,
            _ => match (self.xcp_mut(), name) {
                (Some(law), "alpha") => &mut law.alpha,
                (Some(law), "beta") => &mut law.beta,
                (Some(law), "gamma") => &mut law.gamma,
                _ => return false,
            },
        };
        *place = value;
        true
    }

    /// Switches a part of XCP's law on that is off by default: `average-queue` or `remember-grants`. Returns false if the law has no
    /// such part.
    pub fn switch_on(&mut self, name: &str) -> bool {
        let place = match (self.xcp_mut(), name) {
            (Some(law), "average-queue") => &mut law.average_queue,
            (Some(law), "remember-grants") => &mut law.remember_grants,
            _ => return false,
        };
        *place = true;
        true
    }

    /// XCP's part of the law, if it has one.
    fn xcp_mut(&mut self) -> Option<&mut xcp::LinkConfig> {
        match self {
            Self::Xcp(law)
            | Self::Beside(law, _)
            | Self::Policed(law, _)
            | Self::PerCpu(law)
            | Self::XcpI(law, _)
            | Self::Pxcp(pxcp::LinkConfig { xcp: law, .. }) => Some(law),
            Self::Any(_) | Self::Mpcp(_) => None,
        }
    }

    /// Returns the law beside all other traffic, in a class of its own; `None`: it is not XCP, the only one that can be.
    pub fn beside(self, weights: Weights) -> Option<Self> {
        match self {
            Self::Xcp(law) => Some(Self::Beside(law, weights)),
            _ => None,
        }
    }

    /// Returns the law behind a policer with records of so many flows; `None`: it is not XCP, the only one that can be.
    pub fn policed(self, records: u32) -> Option<Self> {
        match self {
            Self::Xcp(law) => Some(Self::Policed(law, records)),
            _ => None,
        }
    }

    /// Returns the law with a part for each processor; `None`: it is not XCP, the only one that can be divided.
    pub fn per_cpu(self) -> Option<Self> {
        match self {
            Self::Xcp(law) => Some(Self::PerCpu(law)),
            _ => None,
        }
    }

    /// Returns true for a law that tells the load in the ECN field: VCP and DPCP.
    pub fn is_code(&self) -> bool {
        matches!(self, Self::Mpcp(_))
    }

    /// Returns the object file with the law's program.
    pub fn object(&self) -> &[u8] {
        match self {
            Self::Any(law) => law.object(),
            Self::Xcp(_) => OBJECT,
            Self::Mpcp(law) if law.n > 1 => program::DPCP,
            Self::Mpcp(_) => program::VCP,
            Self::Pxcp(_) => program::PXCP,
            Self::XcpI(..) => program::XCP_I,
            Self::Beside(..) => program::BESIDE,
            Self::Policed(..) => program::POLICE,
            Self::PerCpu(_) => program::PER_CPU,
        }
    }

    /// The number by which the program's configuration tells the law.
    fn number(&self) -> u32 {
        match self {
            Self::Xcp(_) => 0,
            Self::Mpcp(law) if law.n > 1 => Self::DPCP,
            Self::Mpcp(_) => Self::VCP,
            Self::Pxcp(_) => Self::PXCP,
            Self::XcpI(..) => Self::XCP_I,
            Self::Beside(..) => Self::BESIDE,
            Self::Policed(..) => Self::POLICED,
            Self::PerCpu(_) => Self::PER_CPU,
            Self::Any(_) => Self::ANY,
        }
    }

    fn first_interval(&self) -> Duration {
        match self {
            Self::Xcp(law)
            | Self::XcpI(law, _)
            | Self::Beside(law, _)
            | Self::Policed(law, _)
            | Self::PerCpu(law) => law.initial_interval,
            Self::Mpcp(law) => law.interval,
            Self::Pxcp(law) => law.xcp.initial_interval,
            Self::Any(law) => law.first_interval(),
        }
    }

    /// The beginning of the program's `struct config`: `struct LinkConfig` of `bpf/law.h`, `bpf/pxcp.h` or `bpf/vcp.h` and the
    /// phases, or all that any law is told.
    fn constants(&self, phases: [u64; 2]) -> Vec<u8> {
        let mut bytes = vec![];
        match self {
            Self::Any(law) => return law.constants(phases),
            Self::Xcp(law) | Self::PerCpu(law) => xcp_constants(&mut bytes, law),
            Self::XcpI(law, own) => {
                xcp_constants(&mut bytes, law);
                bytes.extend(own.octets());
            }
            Self::Beside(law, weights) => {
                xcp_constants(&mut bytes, law);
                bytes.extend(weights.words().into_iter().flat_map(u32::to_ne_bytes));
            }
            Self::Policed(law, records) => {
                xcp_constants(&mut bytes, law);
                bytes.extend(u64::from(*records).to_ne_bytes());
            }
            Self::Pxcp(law) => {
                xcp_constants(&mut bytes, &law.xcp);
                for word in [law.k.0, law.r_max.0, law.weight_cap.0, law.counted_over] {
                    bytes.extend(word.to_ne_bytes());
                }
            }
            Self::Mpcp(law) => {
                for word in [law.capacity.0, law.interval.0, law.sample.0] {
                    bytes.extend(word.to_ne_bytes());
                }
                for ratio in [law.gamma, law.kq, law.queue_weight] {
                    bytes.extend(ratio.0.to_ne_bytes());
                }
            }
        }
        bytes.resize(bytes.len().next_multiple_of(8).max(LAW), 0);
        bytes.extend(phases.into_iter().flat_map(u64::to_ne_bytes));
        bytes
    }
}

/// Bytes of the constants of XCP and VCP; P-XCP has more.
const LAW: usize = 64;

/// `struct LinkConfig` of `bpf/law.h`.
fn xcp_constants(bytes: &mut Vec<u8>, law: &xcp::LinkConfig) {
    bytes.extend(law.capacity.0.to_ne_bytes());
    for ratio in [law.alpha, law.beta, law.gamma, Ratio(0)] {
        bytes.extend(ratio.0.to_ne_bytes());
    }
    for span in [law.min_interval, law.max_interval, law.initial_interval, law.allowed_queue] {
        bytes.extend(span.0.to_ne_bytes());
    }
    let switches = [
        law.capture,
        law.thesis,
        law.overdraw,
        law.bound_headers,
        law.spread,
        law.average_queue,
        law.remember_grants,
        false,
    ];
    bytes.extend(switches.map(u8::from));
}

/// XCP's usual constants (K02, draft-03) for a link of this rate. The longest control interval goes by the round trips that
/// packets state, because a kernel does not know its flows.
fn xcp(rate: BitRate) -> xcp::LinkConfig {
    xcp::LinkConfig { capacity: rate.bytes(), max_interval: Duration(0), ..xcp::LinkConfig::DEFAULT }
}

/// Returns XCP with its usual constants (K02, draft-03) for a link of this rate.
pub fn law(rate: BitRate) -> Law {
    Law::Xcp(xcp(rate))
}

/// Returns VCP with its usual constants (docs/protocols/vcp.md) for a link of this rate.
pub fn vcp(rate: BitRate) -> Law {
    Law::Mpcp(mpcp::LinkConfig { capacity: rate.bytes(), ..mpcp::LinkConfig::of(1, true) })
}

/// Returns DPCP with its usual constants (docs/protocols/mpcp.md) for a link of this rate.
pub fn dpcp(rate: BitRate) -> Law {
    Law::Mpcp(mpcp::LinkConfig { capacity: rate.bytes(), ..mpcp::LinkConfig::of(2, true) })
}

/// Returns P-XCP with its usual constants (docs/protocols/pxcp.md) for a link of this rate.
pub fn pxcp(rate: BitRate) -> Law {
    let own = pxcp::LinkConfig::DEFAULT;
    Law::Pxcp(pxcp::LinkConfig { xcp: xcp::LinkConfig { capture: own.xcp.capture, ..xcp(rate) }, ..own })
}

/// Returns XCP-i with XCP's usual constants for a link of this rate, whose port has this address.
pub fn xcp_i(rate: BitRate, address: Ipv4Addr) -> Law {
    Law::XcpI(xcp(rate), address)
}

/// State of an interface with a router's law.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// Name of the interface.
    pub interface: String,
    /// Name of the law, such as `xcp`.
    pub law: String,
    /// Encoding of the congestion headers that it looks for.
    pub encoding: Encoding,
    /// Way in which the program is attached.
    pub hook: Hook,
    /// True if the shaper is the one that [`attach`] set up.
    pub shaped: bool,
    /// True if that shaper is gone: somebody has removed or replaced it.
    pub shaper_gone: bool,
    /// Kind of the root qdisc, which holds the packets, such as `tbf`.
    pub qdisc: String,
    /// True if each processor adds up by itself; false: they wait for one lock.
    pub per_cpu: bool,
    /// Longest IP packet that the interface sends, bytes.
    pub mtu: u32,
    /// Bytes that the bucket of the shaper holds that [`attach`] set up; `None`: there is none.
    pub bucket_bytes: Option<u64>,
    /// True if the program is that of another build of congestlab, whose numbers may stand elsewhere.
    pub other_build: bool,
    /// Source of the capacity while somebody reads it; `None`: it is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Fed>,
    /// Warning of packets that the bucket can not hold, because the MTU was raised since, of a class that is gone, of a capacity that is
    /// not its source's, or of a program of another build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Counts and last decision of the law.
    #[serde(flatten)]
    pub sample: Sample,
    /// Backlog and drops of the queue.
    #[serde(flatten)]
    pub queue: Backlog,
    /// Series of the law's last report, by name; of XCP, P-XCP, VCP and DPCP none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, f64>,
    /// Classes of XCP and of all other traffic, if each has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// Routers before clouds, if the law is XCP-i; the same for all ports of a router.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peers: Option<Vec<clouds::Peer>>,
    /// Table of the policer before the law, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub police: Option<police::Table>,
}

/// Backlog and drops of an interface's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Backlog {
    /// Bytes that wait.
    pub queue_bytes: u64,
    /// Packets that wait.
    pub queue_packets: u64,
    /// Packets refused because the queue was full; modulo 2^32.
    pub drops: u64,
}

impl From<&Qdisc> for Backlog {
    fn from(qdisc: &Qdisc) -> Self {
        Self {
            queue_bytes: qdisc.queue_bytes.into(),
            queue_packets: qdisc.queue_packets.into(),
            drops: qdisc.drops.into(),
        }
    }
}

/// The changes that [`detach`] has to undo, as bits in the program's configuration.
const SHAPED: u32 = 1;
const CLSACT: u32 = 2;

impl Interface {
    /// Returns the qdisc that all packets pass.
    fn root_qdisc(&self) -> Result<Qdisc> {
        QdiscReader::open(self.index)?.read()
    }

    /// The program, if it hangs here.
    fn attached(&self) -> Result<Option<Attached>> {
        let Some(hung) = self.programs(PLACE)?.into_iter().find(|hung| hung.info.name == PROGRAM) else {
            return Ok(None);
        };
        let maps = hung.info.map_ids.iter().map(|id| MapHandle::from_map_id(*id));
        let maps: std::result::Result<Vec<_>, _> = maps.collect();
        let maps = maps.map_err(|error| refused("open a program's maps", os(error)))?;
        Ok(Some(Attached { hung, maps }))
    }

    fn require_attached(&self) -> Result<Attached> {
        match self.attached()? {
            Some(attached) => Ok(attached),
            None if self.has_our_shaper()? => Err(self.left_over()),
            None => Err(Error::input(
                format!("{} has no router's law", self.name),
                format!("congestlab router attach {} --law xcp --rate RATE", self.name),
            )),
        }
    }

    fn has_our_shaper(&self) -> Result<bool> {
        Ok(self.root_qdisc()?.handle == HANDLE)
    }

    /// Refuses hardware queues of which some do not say how much waits in them.
    fn require_backlogs(&self) -> Result<()> {
        let name = &self.name;
        let list = json(&format!("tc -j qdisc show dev {name}"))?;
        let queues = list.as_array().into_iter().flatten().filter(|qdisc| qdisc["parent"].is_string());
        let mut kinds = queues.filter_map(|qdisc| qdisc["kind"].as_str());
        let Some(kind) = kinds.find(|kind| SILENT.contains(kind)) else { return Ok(()) };
        Err(Error::input(
            format!("a hardware queue of {name} is {kind}, which does not say how much waits in it"),
            format!(
                "leave --no-shape out, or give each one that does: tc qdisc replace dev {name} root handle 1: mq, then for \
                 each queue tc qdisc replace dev {name} parent 1:QUEUE fq_codel"
            ),
        ))
    }

    /// Bits of IP packets of full size that the hardware carries in a second, as the driver says; `None`: it does not.
    fn line_rate(&self) -> Option<BitRate> {
        let megabits = u64::from(offload::speed(&self.name)?);
        let mtu = u64::from(self.mtu);
        Some(BitRate(megabits * 1_000_000 * mtu / (mtu + AROUND)))
    }

    /// Makes the error about the shaper of a command that was killed between the shaper and the program.
    fn left_over(&self) -> Error {
        Error::input(
            format!(
                "{} has no router's law, but the shaper of one that was attached or detached by half",
                self.name
            ),
            format!("congestlab router detach {}", self.name),
        )
    }
}

/// The program at an interface.
#[derive(Debug)]
struct Attached {
    hung: Hung,
    maps: Vec<MapHandle>,
}

impl Attached {
    fn map(&self, name: &str) -> Result<&MapHandle> {
        let map = self.maps.iter().find(|map| map.name() == name);
        map.ok_or_else(|| incomplete(name))
    }

    fn settings(&self) -> Result<Settings> {
        read(self.map(CONFIG)?, MapFlags::ANY).map(Settings)
    }

    /// `struct port` of the program.
    fn port(&self) -> Result<Vec<u8>> {
        program::read_port(self.map(PORT)?, self.maps.iter().find(|map| map.name() == PARTS))
    }
}

/// Refuses a rate that neither law nor shaper can hold.
///
/// # Errors
/// If it is not within 1 kbit/s to 1 Tbit/s.
pub fn check_rate(rate: BitRate) -> Result<()> {
    if RATES.contains(&rate) {
        return Ok(());
    }
    let (least, most) = (RATES.start(), RATES.end());
    Err(Error::input(
        format!("a router can not hold a rate of {rate}"),
        format!("the kernel's law and shaper take {least} to {most}"),
    ))
}

/// Attaches a law's program to an interface, with a shaper if the settings say so.
///
/// # Errors
/// If the rate is out of range, there is no such interface, it has a router's law or a queue of somebody
/// else's, or the kernel or the privilege is missing. Nothing is changed then.
pub fn attach(name: &str, config: &Config) -> Result<()> {
    attach_as(name, config, 0)
}

/// Refuses a table of a policer that no program has.
fn check_records(law: &Law) -> Result<()> {
    let Law::Policed(_, records) = law else { return Ok(()) };
    if police::RECORDS.contains(records) {
        return Ok(());
    }
    let (least, most) = (police::RECORDS.start(), police::RECORDS.end());
    Err(Error::input(
        format!("a policer can not have {records} records of flows"),
        format!("allowed: {least} to {most}"),
    ))
}

/// Refuses an encoding that is not the law's.
///
/// # Errors
/// If it is none of the law's.
pub fn check_encoding(config: &Config) -> Result<()> {
    let fits = match &config.law {
        Law::Mpcp(_) => config.encoding == Encoding::Ecn,
        Law::Xcp(_) | Law::Beside(..) | Law::Policed(..) | Law::PerCpu(_) | Law::Pxcp(_) => {
            matches!(config.encoding, Encoding::Option | Encoding::Shim | Encoding::Both)
        }
        Law::XcpI(..) => config.encoding == Encoding::Shim,
        Law::Any(law) => config.encoding == law.encoding(),
    };
    if !fits {
        return Err(Error::input(
            "XCP tells its header as an option, a shim or both, XCP-i as a shim, VCP and DPCP the load in the ECN field, any other law \
             what is its own",
            "--encoding is for XCP and P-XCP",
        ));
    }
    Ok(())
}

/// Attaches with a mark in what there is to undo.
fn attach_as(name: &str, config: &Config, mark: u32) -> Result<()> {
    check_rate(config.rate)?;
    check_encoding(config)?;
    check_beside(config)?;
    check_records(&config.law)?;
    let interface = Interface::find(name)?;
    let Qdisc { kind, handle, .. } = interface.root_qdisc()?;
    let config = &config.fitted(&kind);
    match config.shape {
        // What the kernel made itself has no number, and comes back by itself.
        Some(_) if handle != 0 && handle != HANDLE => {
            return Err(Error::input(
                format!("{name} has a qdisc already: {kind} {:x}:", handle >> 16),
                format!("use it as it is with --no-shape, or remove it first: tc qdisc del dev {name} root"),
            ));
        }
        None if matches!(config.law, Law::PerCpu(_)) => interface.require_backlogs()?,
        None if SILENT.contains(&kind.as_str()) => {
            return Err(Error::input(
                format!("the qdisc of {name} is {kind}, which does not say how much waits in it"),
                "leave --no-shape out, or set up a shaper first (tc qdisc add ... tbf or htb)",
            ));
        }
        _ => {}
    }
    let has_law = match interface.attached() {
        // Whoever may not ask may still see what would be done.
        Err(Error::Missing { .. }) if command::mode() == command::Mode::DryRun => false,
        attached => attached?.is_some(),
    };
    if has_law {
        return Err(Error::input(
            format!("{name} has a router's law already"),
            format!(
                "put another in its place with --replace, or take it off: congestlab router detach {name}"
            ),
        ));
    }
    if handle == HANDLE {
        if config.shape.is_none() {
            return Err(interface.left_over());
        }
        unshape(&interface)?;
    }
    match (config.shape, &config.law) {
        (Some(queue), Law::Beside(_, weights)) => {
            beside::shape(&interface, config.rate, queue, weights.first())?;
        }
        (Some(queue), _) => shape(&interface, config.rate, queue)?,
        (None, _) => {}
    }
    let attached = hang(&interface, config, mark);
    if attached.is_err() && config.shape.is_some() {
        unshape(&interface)?;
    }
    attached
}

/// Returns the rate that a TBF or HTB of somebody else holds on an interface, or that several hardware queues share.
///
/// # Errors
/// If the interface's qdisc, or its driver, states no rate or several, or there is no such interface.
pub fn shaped_rate(name: &str) -> Result<BitRate> {
    let interface = Interface::find(name)?;
    let kind = interface.root_qdisc()?.kind;
    let rates: Vec<BitRate> = match kind.as_str() {
        "tbf" => {
            let list = json(&format!("tc -j qdisc show dev {name}"))?;
            let roots = list.as_array().into_iter().flatten().filter(|qdisc| qdisc["root"] == true);
            roots.filter_map(|qdisc| Some(Rate(qdisc["options"]["rate"].as_u64()?).bits())).collect()
        }
        // tc prints no JSON for classes: "class htb 1:1 root prio 0 rate 40Mbit ceil ..."
        "htb" => {
            let list = command::query(&format!("tc class show dev {name}"))?;
            let roots = list.lines().filter(|line| line.contains(" root "));
            let word = |line: &str| line.split(" rate ").nth(1)?.split_whitespace().next().map(str::to_owned);
            roots.filter_map(|line| tc_rate(&word(line)?)).collect()
        }
        MQ => interface.line_rate().into_iter().collect(),
        _ => vec![],
    };
    match rates[..] {
        [rate] => Ok(rate),
        _ => Err(Error::input(
            format!("the qdisc of {name}, {kind}, does not say one rate"),
            "say what the link carries: --rate \"1 Gbit/s\"",
        )),
    }
}

/// As tc prints rates: `40Mbit`.
fn tc_rate(text: &str) -> Option<BitRate> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let unit = match &text[digits..] {
        "bit" => 1,
        "Kbit" => 1_000,
        "Mbit" => 1_000_000,
        "Gbit" => 1_000_000_000,
        "Tbit" => 1_000_000_000_000,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit).map(BitRate)
}

/// Holds the rate with a token bucket that counts bytes of IP.
fn shape(interface: &Interface, rate: BitRate, queue: Queue) -> Result<()> {
    let (limit, name) = (queue.limit(), &interface.name);
    let child = format!("tc qdisc add dev {name} parent cc1:1 {} limit {limit}", queue.kind());
    build(interface, &[bucket("add", interface, rate, limit), child])
}

/// Runs the commands that make a shaper; none is left of one that could not be finished.
fn build(interface: &Interface, lines: &[String]) -> Result<()> {
    for (done, line) in lines.iter().enumerate() {
        if let Err(error) = command::run(line) {
            if done > 0 {
                unshape(interface)?;
            }
            return Err(error);
        }
    }
    Ok(())
}

/// The kernel then puts back what it makes by itself.
fn unshape(interface: &Interface) -> Result<()> {
    command::run(&format!("tc qdisc del dev {} root", interface.name)).map(drop)
}

/// Loads the program and hangs it at the interface.
fn hang(interface: &Interface, config: &Config, mark: u32) -> Result<()> {
    if !command::announce(&format!(
        "bpf attach {PROGRAM} ({}) to tcx egress of {}",
        law_name(),
        interface.name
    )) {
        return Ok(());
    }
    let undo = if config.shape.is_some() { SHAPED } else { 0 };
    let mut program = Program::load(config.law.object(), config, interface.link_header, undo | mark)?;
    if program.with_fd(|program| interface.attach(PLACE, program))?? {
        program.add_undo(CLSACT)?;
    }
    Ok(())
}

/// Takes the law off an interface; its queue is then what it was before [`attach`].
///
/// # Errors
/// If the interface has no router's law, or the privilege is missing.
pub fn detach(name: &str) -> Result<()> {
    let interface = Interface::find(name)?;
    let attached = match interface.require_attached() {
        Err(Error::Input { .. }) if interface.has_our_shaper()? => return unshape(&interface),
        attached => attached?,
    };
    let undo = attached.settings()?.undo();
    if command::announce(&format!("bpf detach {PROGRAM} from {name}")) {
        interface.detach(PLACE, &attached.hung)?;
        if undo & CLSACT != 0 {
            interface.remove_clsact()?;
        }
    }
    // Somebody may have removed it or put another in its place.
    if undo & SHAPED != 0 && interface.has_our_shaper()? {
        unshape(&interface)?;
    }
    Ok(())
}

/// Returns the state of the interfaces with a router's law, or of the named one.
///
/// # Errors
/// If the named interface has no router's law, or the privilege is missing.
pub fn status(name: Option<&str>) -> Result<Vec<Status>> {
    let one = |interface: &Interface, attached: Attached| {
        let settings = attached.settings()?;
        let qdisc = interface.root_qdisc()?;
        let sample = Sample::new(&settings, &attached.port()?);
        let (was_shaped, is_ours) = (settings.undo() & SHAPED != 0, qdisc.handle == HANDLE);
        let shaper = if was_shaped && is_ours { Shaper::of(interface)? } else { None };
        let source = Fed::of(settings.undo());
        let has_classes = settings.law() == Law::BESIDE && was_shaped && is_ours;
        // A class that somebody took away is told, and hides no other interface.
        let (beside, gone) = match has_classes.then(|| Beside::of(interface, &attached)) {
            None => (None, None),
            Some(Ok(beside)) => (Some(beside), None),
            Some(Err(error)) => {
                (None, Some(format!("a class of its shaper is gone: {error}; detach it, and attach it anew")))
            }
        };
        Ok(Status {
            interface: interface.name.clone(),
            law: settings.name(),
            encoding: settings.encoding(),
            per_cpu: settings.law() == Law::PER_CPU,
            hook: attached.hung.hook,
            shaped: was_shaped && is_ours,
            shaper_gone: was_shaped && !is_ours,
            mtu: interface.mtu,
            bucket_bytes: shaper.and_then(|shaper| shaper.bucket),
            other_build: settings.is_of_other_build(),
            source,
            warning: shaper
                .and_then(|shaper| shaper::warning(interface, shaper))
                .or(gone)
                .or_else(|| source.and_then(Fed::warning))
                .or_else(|| beside.and_then(|beside| beside.warning()))
                .or_else(|| ensure::other_build(&interface.name, &settings)),
            series: settings.series(&sample),
            beside,
            peers: match settings.law() {
                Law::XCP_I => Some(clouds::Table::of(&attached)?.peers()?),
                _ => None,
            },
            police: match sample.policed {
                Some(counted) => Some(police::Table::of(&attached, counted)?),
                None => None,
            },
            sample,
            queue: Backlog::from(&qdisc),
            qdisc: qdisc.kind,
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

/// Changes the rate of the law and of the shaper of [`attach`], such as for a step of a scenario. The law decides by it
/// at the end of the control interval that is running. Limits of queues stay as they are.
///
/// # Errors
/// If the rate is out of range, the interface has no law or its shaper is gone, somebody reads its capacity from a source, or the
/// privilege is missing. Nothing is changed then.
pub fn set_rate(name: &str, rate: BitRate) -> Result<()> {
    check_rate(rate)?;
    let interface = Interface::find(name)?;
    let attached = interface.require_attached()?;
    let settings = attached.settings()?;
    require_unread(name, &settings)?;
    if settings.law() == Law::BESIDE {
        beside::check_rate(rate)?;
    }
    set_all(&interface, &attached, settings, rate, None)
}

/// Refuses to change a rate that a process reads from a source.
fn require_unread(name: &str, settings: &Settings) -> Result<()> {
    match Fed::of(settings.undo()) {
        Some(Fed { kind, pid, state: SourceState::Fresh | SourceState::Stale }) => Err(Error::input(
            format!("process {pid} reads the capacity of {name} from {kind}, and would undo this"),
            format!("end it first: kill {pid}"),
        )),
        _ => Ok(()),
    }
}

/// Tells law and shaper a rate that a source has brought, and what became of the source; `None`: the rate is fixed again.
fn feed(name: &str, rate: BitRate, fed: Option<Fed>) -> Result<()> {
    let interface = Interface::find(name)?;
    let attached = interface.require_attached()?;
    let settings = attached.settings()?;
    set_all(&interface, &attached, settings, rate, fed)
}

/// Changes what is not so yet.
fn set_all(
    interface: &Interface,
    attached: &Attached,
    mut settings: Settings,
    rate: BitRate,
    fed: Option<Fed>,
) -> Result<()> {
    let name = &interface.name;
    if settings.undo() & SHAPED != 0 {
        let Some(shaper) = Shaper::of(interface)? else {
            return Err(Error::input(
                format!("the shaper of {name} is gone"),
                format!("congestlab router detach {name}"),
            ));
        };
        if fed.is_none() || shaper.rate != rate.bytes() {
            reshape(interface, attached, rate, shaper.limit)?;
        }
    }
    let undo = Fed::write(settings.undo(), fed);
    if fed.is_some() && settings.capacity() == rate.bytes() && settings.undo() == undo {
        return Ok(());
    }
    settings.set_undo(undo);
    tell_rate(attached, settings, name, rate)
}

/// Gives the shaper another rate or another limit.
fn reshape(interface: &Interface, attached: &Attached, rate: BitRate, limit: u64) -> Result<()> {
    if attached.settings()?.law() == Law::BESIDE {
        return beside::reshape(interface, attached, rate, limit);
    }
    // The kernel gives the limit to the queue inside, whatever it counts in (fifo_set_limit).
    command::run(&bucket("change", interface, rate, limit)).map(drop)
}

/// Tells the law its rate.
fn tell_rate(attached: &Attached, mut settings: Settings, name: &str, rate: BitRate) -> Result<()> {
    if !command::announce(&format!("bpf tell {PROGRAM} at {name} the rate {rate}")) {
        return Ok(());
    }
    settings.set_capacity(rate.bytes());
    let written = attached.map(CONFIG)?.update(&0u32.to_ne_bytes(), &settings.0, MapFlags::ANY);
    written.map_err(|error| refused("write a map", os(error)))
}

/// Returns the bytes in the token bucket of an interface whose largest frame, with its link header, has this many bytes.
pub fn burst(rate: BitRate, frame: u32) -> u64 {
    rate.bytes().over(BURST).0.max(BURST_MIN).max(BURST_PACKETS * u64::from(frame))
}

/// The command that makes our token bucket or changes it. It counts bytes of IP.
fn bucket(verb: &str, interface: &Interface, rate: BitRate, limit: u64) -> String {
    let burst = burst(rate, interface.mtu + interface.link_header);
    let root = root(verb, interface);
    format!("{root}tbf rate {}bit burst {burst} limit {limit}", rate.0)
}

/// The beginning of a command about our root qdisc, which counts bytes of IP.
fn root(verb: &str, interface: &Interface) -> String {
    let Interface { name, link_header, .. } = interface;
    let stab = if *link_header == 0 { String::new() } else { format!("stab overhead -{link_header} ") };
    format!("tc qdisc {verb} dev {name} root handle cc1: {stab}")
}

/// A reader of one interface's samples, cheap enough for a hundred a second: three system calls each.
#[derive(Debug)]
pub struct Reader {
    attached: Attached,
    qdisc: QdiscReader,
}

impl Reader {
    /// Opens an interface with a router's law in the calling thread's network namespace; samples may be read
    /// from another one.
    ///
    /// # Errors
    /// If the interface has no law, or the privilege is missing.
    pub fn open(name: &str) -> Result<Self> {
        let interface = Interface::find(name)?;
        Ok(Self { attached: interface.require_attached()?, qdisc: QdiscReader::open(interface.index)? })
    }

    /// Reads the present state of the law and of the queue.
    ///
    /// # Errors
    /// If the kernel refuses, such as after the interface is gone.
    pub fn sample(&self) -> Result<(Sample, Backlog)> {
        let port = self.attached.port()?;
        Ok((Sample::new(&self.attached.settings()?, &port), Backlog::from(&self.qdisc.read()?)))
    }
}

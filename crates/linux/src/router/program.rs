//! The program of `bpf/router.bpf.c` when it is loaded: the contents of its maps, written and read.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};

use congestlab_core::units::{Duration, Rate};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, ProgramInput};
use serde::Serialize;

use super::any::{self, AnyLaw, COLUMNS, NAME};
use super::clouds::{Crossings, Table};
use super::layout::{Layout, MEANING};
use super::maps::{CELLS, CLASSES, CONFIG, FLOWS, KEY, PARTS, PORT, PROGRAM, incomplete, read};
use super::object::law_name_in;
use super::police::{self, Policed};
use super::pxcp::Counted;
use super::shares::Shares;
use super::state::State;
use super::{Config, Encoding, Law};
use crate::error::{Context, Error, PRIVILEGE, Result, refused};
use crate::sys::bpf::os;

/// The object file that `bpf/build.sh` makes of `bpf/router.bpf.c` and the link law.
pub const OBJECT: &[u8] = include_bytes!("../../bpf/objects/router.bpf.o");
/// The object file of `bpf/router-vcp.bpf.c`.
pub(super) const VCP: &[u8] = include_bytes!("../../bpf/objects/router-vcp.bpf.o");
/// The object file of `bpf/router-dpcp.bpf.c`.
pub(super) const DPCP: &[u8] = include_bytes!("../../bpf/objects/router-dpcp.bpf.o");
/// The object file of `bpf/router-pxcp.bpf.c`.
pub(super) const PXCP: &[u8] = include_bytes!("../../bpf/objects/router-pxcp.bpf.o");

/// The object file of `bpf/router-xcpi.bpf.c`.
pub(super) const XCP_I: &[u8] = include_bytes!("../../bpf/objects/router-xcpi.bpf.o");

/// The object file of `bpf/router-beside.bpf.c`.
pub(super) const BESIDE: &[u8] = include_bytes!("../../bpf/objects/router-beside.bpf.o");
/// The object file of `bpf/router-police.bpf.c`.
pub(super) const POLICE: &[u8] = include_bytes!("../../bpf/objects/router-police.bpf.o");

/// The object file of `bpf/router-percpu.bpf.c`.
pub(super) const PER_CPU: &[u8] = include_bytes!("../../bpf/objects/router-percpu.bpf.o");

const INIT: &str = "cl_router_init";
/// Maps of a law's memory.
const STATE: [&str; 6] = [PORT, PARTS, FLOWS, police::MAP, CLASSES, CELLS];
/// Where the counts of `struct port` begin, in bytes, and how many there are.
const COUNTS: (usize, usize) = (64, 11);

/// Packets with a congestion header that routers must not change, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// TCP options that do not begin at an even byte.
    pub odd_offset: u64,
    /// Headers whose length field has not the one allowed value.
    pub wrong_length: u64,
    /// Headers that end after the packet, or after TCP's options.
    pub truncated: u64,
    /// Packets whose TCP options can not be parsed.
    pub malformed: u64,
    /// Headers of a version other than draft-03's.
    pub version: u64,
    /// Packets that the kernel had no memory to change.
    pub unwritable: u64,
    /// IP fragments of a protocol that could have a header.
    pub fragments: u64,
}

impl Refused {
    /// Reads the counts of the program.
    fn new(count: impl Fn(usize) -> u64) -> Self {
        Self {
            odd_offset: count(4),
            wrong_length: count(5),
            truncated: count(6),
            malformed: count(7),
            version: count(8),
            unwritable: count(9),
            fragments: count(10),
        }
    }

    /// Returns the sum over all reasons.
    pub fn total(&self) -> u64 {
        let Self { odd_offset, wrong_length, truncated, malformed, version, unwritable, fragments } = self;
        odd_offset + wrong_length + truncated + malformed + version + unwritable + fragments
    }
}

/// Load that VCP's or DPCP's law measured in its last interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Load {
    /// Load factor, part of the capacity.
    pub load_factor: f64,
    /// Code that packets are told at least: 1 low, 2 high, 3 over.
    pub load_code: u8,
    /// Level of the load among DPCP's nine, from 0; `None` for VCP, which has no finer ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_level: Option<u16>,
}

/// Flows that P-XCP's law counted in its last control interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Flows {
    /// Number of flows.
    pub pxcp_n: f64,
    /// Number of flows that are limited elsewhere.
    pub pxcp_n_lim: f64,
    /// Share of limited flows that is compensated for.
    pub pxcp_r: f64,
    /// Counts as the law has them.
    #[serde(skip)]
    pub counted: Counted,
}

impl Flows {
    /// Reads the law's counts: they are the last words of its state, which is the last part of `struct port`.
    fn new(port: &[u8]) -> Option<Self> {
        let (_, last) = port.split_last_chunk::<24>()?;
        let word = |index: usize| last[8 * index..8 * index + 8].try_into().map_or(0, u64::from_ne_bytes);
        let counted =
            Counted { n: word(0), n_lim: word(1), interval: word(2) as u32, r: (word(2) >> 32) as u32 };
        let interval = f64::from(counted.interval.max(1));
        Some(Self {
            pxcp_n: counted.n as f64 / interval,
            pxcp_n_lim: counted.n_lim as f64 / interval,
            pxcp_r: f64::from(counted.r) / f64::from(1u32 << 31),
            counted,
        })
    }
}

/// Counts of the program and the last decision of the law, at one moment. What the laws of VCP and DPCP do not have is 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(non_snake_case, reason = "units as docs/design/contract.md 5 writes them")]
pub struct Sample {
    /// Capacity that the law assumes, in bits of IP packets per second.
    pub capacity_bps: u64,
    /// Input traffic rate of the last control interval, B/s.
    pub input_Bps: u64,
    /// Aggregate feedback of the last control interval, B/s.
    pub feedback_Bps: i64,
    /// Length of the control interval that is running, ms.
    pub interval_ms: f64,
    /// Persistent queue that the aggregate feedback counted, bytes.
    pub persistent_queue_bytes: u64,
    /// Control intervals so far.
    pub intervals: u64,
    /// All packets; a super-packet counts as many as it has segments.
    pub packets: u64,
    /// Bytes of IP in all packets.
    pub bytes: u64,
    /// Packets whose congestion header the law has processed; of VCP and DPCP, whose ECN field has a code.
    pub xcp_packets: u64,
    /// Packets without a congestion header.
    pub other_packets: u64,
    /// Packets with a wrong congestion header, left as they were.
    pub refused_packets: u64,
    /// Packets with a wrong header, by reason.
    pub refused: Refused,
    /// Packets, or super-packets, whose stated X counted for less, as of the last control interval.
    pub bounded_packets: u64,
    /// Load, if the law is VCP or DPCP.
    #[serde(flatten)]
    pub load: Option<Load>,
    /// Flows, if the law is P-XCP.
    #[serde(flatten)]
    pub flows: Option<Flows>,
    /// Packets by what they have crossed, if the law is XCP-i.
    #[serde(flatten)]
    pub crossings: Option<Crossings>,
    /// Counts of the policer, if there is one.
    #[serde(flatten)]
    pub policed: Option<Policed>,
    /// Numerators of the series of a law that is neither XCP, P-XCP, VCP nor DPCP.
    #[serde(skip)]
    pub columns: [i64; COLUMNS],
    /// Time of the last packet by the law's clock, ns, and what then waited, bytes; of these laws, too.
    #[serde(skip)]
    pub last: [u64; 2],
}

impl Sample {
    /// Reads `struct port`.
    pub(super) fn new(settings: &Settings, port: &[u8]) -> Self {
        // Behind the lock and the rest.
        let word = |index: usize| {
            let bytes = port.get(8 + 8 * index..16 + 8 * index);
            bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
        };
        if settings.law() == Law::ANY {
            return Self::of_any(settings, word);
        }
        // VCP's report is shorter than XCP's.
        let is_dpcp = settings.law() == Law::DPCP;
        let load = (is_dpcp || settings.law() == Law::VCP).then(|| Load {
            load_factor: f64::from(word(2) as u32) / 1e6,
            load_code: (word(2) >> 48) as u8,
            load_level: is_dpcp.then_some((word(2) >> 32) as u16),
        });
        let xcp = |index: usize| if load.is_none() { word(index) } else { 0 };
        let count = |index: usize| word(if load.is_none() { 7 } else { 3 } + index);
        let refused = Refused::new(count);
        Self {
            capacity_bps: settings.capacity().bits().0,
            intervals: word(1),
            input_Bps: xcp(2),
            feedback_Bps: xcp(3) as i64,
            interval_ms: if load.is_none() { word(4) } else { settings.interval() } as f64 / 1e6,
            persistent_queue_bytes: xcp(5),
            packets: count(0),
            bytes: count(1),
            xcp_packets: count(2),
            other_packets: count(3),
            refused_packets: refused.total(),
            refused,
            bounded_packets: xcp(6),
            load,
            flows: if settings.law() == Law::PXCP { Flows::new(port) } else { None },
            policed: (settings.law() == Law::POLICED).then(|| Policed::new(|index| count(11 + index))),
            crossings: (settings.law() == Law::XCP_I).then(|| Crossings::new(|index| count(11 + index))),
            columns: [0; COLUMNS],
            last: [0; 2],
        }
    }

    /// The same for any law.
    fn of_any(settings: &Settings, word: impl Fn(usize) -> u64) -> Self {
        const COUNTS: usize = 2 + COLUMNS;
        let count = |index: usize| word(COUNTS + index);
        let refused = Refused::new(count);
        Self {
            capacity_bps: settings.capacity().bits().0,
            input_Bps: 0,
            feedback_Bps: 0,
            interval_ms: 0.0,
            persistent_queue_bytes: 0,
            intervals: word(1),
            packets: count(0),
            bytes: count(1),
            xcp_packets: count(2),
            other_packets: count(3),
            refused_packets: refused.total(),
            refused,
            bounded_packets: 0,
            load: None,
            flows: None,
            crossings: None,
            policed: None,
            columns: std::array::from_fn(|column| word(2 + column) as i64),
            last: [word(COUNTS + 11), word(COUNTS + 12)],
        }
    }
}

/// `struct config` of `bpf/router.bpf.c`, as bytes.
#[derive(Debug)]
pub(super) struct Settings(pub(super) Vec<u8>);

impl Settings {
    /// Bytes of the words, which stand last.
    const WORDS: usize = 16;

    fn new(config: &Config, phases: [u64; 2], link_header: u32, undo: u32) -> Self {
        let mut bytes = config.law.constants(phases);
        let encoding = match config.encoding {
            Encoding::Option => 0,
            Encoding::Shim => 1,
            Encoding::Ecn => 2,
            Encoding::Quic => 3,
            Encoding::Both => 4,
        };
        let law = config.law.number() | MEANING << LAW_BITS | stamp(config.law.object()) << BUILD;
        for word in [encoding, link_header, undo, law] {
            bytes.extend(word.to_ne_bytes());
        }
        Self(bytes)
    }

    /// Bytes of all before the words.
    fn constants(&self) -> usize {
        self.0.len().saturating_sub(Self::WORDS)
    }

    fn word(&self, index: usize) -> u32 {
        let at = self.constants() + 4 * index;
        self.0[at..at + 4].try_into().map_or(0, u32::from_ne_bytes)
    }

    pub(super) fn encoding(&self) -> Encoding {
        match self.word(0) {
            0 => Encoding::Option,
            1 => Encoding::Shim,
            3 => Encoding::Quic,
            4 => Encoding::Both,
            _ => Encoding::Ecn,
        }
    }

    /// Returns [`Law::number`].
    pub(super) fn law(&self) -> u32 {
        self.word(3) & ((1 << LAW_BITS) - 1)
    }

    /// Returns the [`MEANING`] that the program's state had in its build.
    fn meaning(&self) -> u32 {
        (self.word(3) & ((1 << BUILD) - 1)) >> LAW_BITS
    }

    /// Returns true if the program is not the one that this build has of the law: its counts and state may stand elsewhere. Of laws
    /// whose programs are no part of this one nobody knows.
    pub(super) fn is_of_other_build(&self) -> bool {
        let object = match self.law() {
            Law::VCP => VCP,
            Law::DPCP => DPCP,
            Law::PXCP => PXCP,
            Law::XCP_I => XCP_I,
            Law::BESIDE => BESIDE,
            Law::POLICED => POLICE,
            Law::PER_CPU => PER_CPU,
            Law::ANY => match AnyLaw::object_of(&self.name()) {
                Some(object) => object,
                None => return false,
            },
            _ => OBJECT,
        };
        self.word(3) >> BUILD != stamp(object)
    }

    /// Returns the name of the law.
    pub(super) fn name(&self) -> String {
        match self.law() {
            Law::VCP => "vcp".into(),
            Law::DPCP => "dpcp".into(),
            Law::PXCP => "pxcp".into(),
            Law::XCP_I => "xcp-i".into(),
            Law::ANY => {
                let at = self.0.len() - Self::WORDS - NAME;
                let name = self.0[at..at + NAME].iter().take_while(|byte| **byte != 0);
                String::from_utf8_lossy(&name.copied().collect::<Vec<_>>()).into_owned()
            }
            _ => "xcp".into(),
        }
    }

    /// Returns the series of the law's last report.
    pub(super) fn series(&self, sample: &Sample) -> BTreeMap<String, f64> {
        match self.law() {
            Law::ANY => any::series(&self.name(), &sample.columns).into_iter().collect(),
            _ => BTreeMap::new(),
        }
    }

    /// Returns VCP's interval, ns.
    fn interval(&self) -> u64 {
        self.0[8..16].try_into().map_or(0, u64::from_ne_bytes)
    }

    fn link_header(&self) -> u32 {
        self.word(1)
    }

    pub(super) fn undo(&self) -> u32 {
        self.word(2)
    }

    pub(super) fn set_undo(&mut self, undo: u32) {
        let at = self.0.len() - Self::WORDS + 8;
        self.0[at..at + 4].copy_from_slice(&undo.to_ne_bytes());
    }

    /// Returns true if these are the settings of that configuration, but for the rate, the phases, which are drawn, and what there
    /// is to undo.
    pub(super) fn are_those_of(&self, config: &Config, link_header: u32) -> bool {
        let words = Self::new(config, [0; 2], link_header, self.undo()).0;
        self.has_constants_of(&config.law) && words.ends_with(&self.0[self.constants()..])
    }

    /// Returns true if the law has the same constants; of a law with another number they stand elsewhere.
    fn has_constants_of(&self, law: &Law) -> bool {
        let own = &self.0[..self.constants()];
        let (low, high) = (law.constants([0; 2]), law.constants([u64::MAX; 2]));
        let is_same = |at: usize| at < 8 || low[at] != high[at] || low[at] == own[at];
        low.len() == own.len() && (0..low.len()).all(is_same)
    }

    /// Returns what becomes of the state of this program, `id`, when that of a configuration takes its place.
    pub(super) fn state_under(&self, config: &Config, id: u32) -> State {
        let law = &config.law;
        if self.law() != law.number() || self.name() != Self::new(config, [0; 2], 0, 0).name() {
            return State::OtherLaw;
        }
        if !self.has_constants_of(law) {
            return State::OtherConstants;
        }
        let (own, new) = (Layout::of_program(id), Layout::of_object(law.object()));
        if self.meaning() != MEANING || own.is_none() || own != new {
            return State::OtherLayout;
        }
        State::Kept
    }

    pub(super) fn capacity(&self) -> Rate {
        Rate(self.0[..8].try_into().map_or(0, u64::from_ne_bytes))
    }

    pub(super) fn set_capacity(&mut self, capacity: Rate) {
        self.0[..8].copy_from_slice(&capacity.0.to_ne_bytes());
    }
}

/// Bits of the law's number in the word that names it; above them, up to [`BUILD`], is the meaning of its state.
const LAW_BITS: u32 = 4;
/// Where, in the word that names the law, the stamp of the program's object begins.
const BUILD: u32 = 8;

/// Returns 24 bits by which an object is told from that of another build (FNV-1a), none of them 0: builds before had none.
fn stamp(object: &[u8]) -> u32 {
    let hash =
        object.iter().fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    ((hash >> 24 ^ hash) & 0x00ff_ffff).max(1)
}

/// The router's program, loaded and initialised, at no interface yet.
#[derive(Debug)]
pub struct Program {
    object: Object,
    settings: Settings,
    phases: [u64; 2],
}

impl Program {
    /// Loads the object of the law, or another one in its place. `link_header` is the number of bytes before the IP header; `undo` is
    /// kept for [`detach`](super::detach).
    ///
    /// # Errors
    /// If the kernel does not take the program, or the privilege is missing.
    pub fn load(object: &[u8], config: &Config, link_header: u32, undo: u32) -> Result<Self> {
        Self::load_on(object, config, link_header, undo, &[])
    }

    /// The same, going on with the state in maps of another program, of the same layout, which goes on as well until it is detached;
    /// without any it begins anew.
    pub(super) fn load_on(
        object: &[u8],
        config: &Config,
        link_header: u32,
        undo: u32,
        maps: &[MapHandle],
    ) -> Result<Self> {
        libbpf_rs::set_print(None); // what fails is told by us
        let mut builder = ObjectBuilder::default();
        let mut opened =
            builder.open_memory(object).map_err(|error| refused("open the router's program", os(error)))?;
        if let Law::Any(law) = &config.law
            && let Some(flows) = law.flows()
            && let Some(mut map) = opened.maps_mut().find(|map| map.name() == FLOWS)
        {
            map.set_max_entries(flows.max(1)).map_err(|error| refused("size a map", os(error)))?;
        }
        if let Law::Policed(_, records) = config.law
            && let Some(mut map) = opened.maps_mut().find(|map| map.name() == police::MAP)
        {
            let buckets = police::buckets(records).max(1);
            map.set_max_entries(buckets).map_err(|error| refused("size a map", os(error)))?;
        }
        // A router has one table, whose virtual routers all of its ports share (XI III-A.3).
        let table = if matches!(config.law, Law::XcpI(..)) { Table::here()? } else { None };
        for (name, shared) in table.iter().flat_map(Table::maps) {
            if let Some(mut map) = opened.maps_mut().find(|map| map.name() == name) {
                if map.value_size() != shared.value_size() {
                    return Err(Error::input(
                        "the ports of this router with XCP-i share a table of clouds, and theirs is that of another version",
                        "congestlab router detach each of them, then attach them again",
                    ));
                }
                map.reuse_fd(shared.as_fd()).map_err(|error| refused("share a map", os(error)))?;
            }
        }
        for mut map in opened.maps_mut().filter(|map| STATE.iter().any(|name| map.name() == *name)) {
            if let Some(kept) = maps.iter().find(|kept| kept.name() == map.name()) {
                map.reuse_fd(kept.as_fd()).map_err(|error| refused("go on with a map", os(error)))?;
            }
        }
        let object = opened.load().map_err(|error| match os(error) {
            error if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Error::missing("may not load BPF programs", PRIVILEGE)
            }
            error => Error::missing(
                format!("this kernel does not take the router's program: {error}"),
                "Linux 6.9 or later, built with CONFIG_DEBUG_INFO_BTF",
            ),
        })?;
        let phases = phases(config.law.first_interval())?;
        let program = Self { object, settings: Settings::new(config, phases, link_header, undo), phases };
        if maps.is_empty() { program.begin(config) } else { program.write() }.map(|()| program)
    }

    /// Begins anew with other settings of the same law, as if it had been loaded again. What is remembered of flows stays.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn restart(&mut self, config: &Config) -> Result<()> {
        self.phases = phases(config.law.first_interval())?;
        self.settings = Settings::new(config, self.phases, self.settings.link_header(), self.settings.undo());
        self.begin(config)
    }

    fn begin(&self, config: &Config) -> Result<()> {
        self.write()?;
        if let Law::Beside(_, weights) = &config.law {
            let map = self.object.maps().find(|map| map.name() == CLASSES);
            Shares::first(*weights).write(&map.ok_or_else(|| incomplete(CLASSES))?)?;
        }
        self.run(INIT, ProgramInput { data_in: Some(&[0; 14]), ..Default::default() })?;
        match &config.law {
            Law::Any(law) => self.is_that_of(law, self.phases),
            _ => Ok(()),
        }
    }

    /// Compares what the law in the object began with: an object may be older than its law.
    fn is_that_of(&self, law: &AnyLaw, phases: [u64; 2]) -> Result<()> {
        let map = self.object.maps().find(|map| map.name() == PORT).ok_or_else(|| incomplete(PORT))?;
        let port = read(&map, MapFlags::LOCK)?;
        let listed = port.get(4..8).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes);
        let began = Sample::new(&self.settings, &port).columns;
        if listed as usize == law.settings().len() && began == law.first_report(phases) {
            return Ok(());
        }
        Err(Error::input(
            format!("the program of {} for the kernel is that of another version of the law", law.name),
            format!("build it again: congestlab build law {}", law.name),
        ))
    }

    /// Returns the phases in which the law began, ns.
    pub fn phases(&self) -> [u64; 2] {
        self.phases
    }

    /// Adds to what there is to undo.
    pub(super) fn add_undo(&mut self, undo: u32) -> Result<()> {
        self.settings.set_undo(self.settings.undo() | undo);
        self.write()
    }

    fn write(&self) -> Result<()> {
        let map = self.object.maps().find(|map| map.name() == CONFIG).ok_or_else(|| incomplete(CONFIG))?;
        map.update(&KEY, &self.settings.0, MapFlags::ANY).map_err(|error| refused("write a map", os(error)))
    }

    fn run(&self, name: &str, input: ProgramInput<'_>) -> Result<u32> {
        let program = self.object.progs_mut().find(|program| program.name() == name);
        let program = program.ok_or_else(|| incomplete(name))?;
        let output =
            program.test_run(input).map_err(|error| refused("run the router's program", os(error)))?;
        Ok(output.return_value)
    }

    /// Runs the program on a packet `repeat` times, without sending it. Returns the packet as it leaves and the
    /// mean time of a run. The context is a `struct __sk_buff`, and then what the program has made of it, or empty.
    ///
    /// # Errors
    /// If the kernel refuses, or the program drops the packet.
    pub fn pass(
        &self,
        packet: &[u8],
        context: &mut [u8],
        repeat: u32,
    ) -> Result<(Vec<u8>, std::time::Duration)> {
        let mut out = vec![0; packet.len()];
        let program = self.object.progs_mut().find(|program| program.name() == PROGRAM);
        let program = program.ok_or_else(|| incomplete(PROGRAM))?;
        let mut told = context.to_vec();
        let input = ProgramInput {
            data_in: Some(packet),
            data_out: Some(&mut out),
            context_in: (!told.is_empty()).then_some(&mut told),
            context_out: (!context.is_empty()).then_some(context),
            repeat,
            ..Default::default()
        };
        let output =
            program.test_run(input).map_err(|error| refused("run the router's program", os(error)))?;
        let (verdict, duration) = (output.return_value as i32, output.duration);
        if verdict != PASS {
            return Err(Error::Command { command: PROGRAM.into(), message: format!("verdict {verdict}") });
        }
        Ok((out, duration))
    }

    /// Reads the counts of the program and the last decision of the law.
    ///
    /// # Errors
    /// If the kernel refuses to read the map.
    pub fn sample(&self) -> Result<Sample> {
        let find = |name: &str| self.object.maps().find(|map| map.name() == name);
        let port = read_port(&find(PORT).ok_or_else(|| incomplete(PORT))?, find(PARTS).as_ref())?;
        Ok(Sample::new(&self.settings, &port))
    }

    pub(super) fn with_fd<T>(&self, work: impl FnOnce(BorrowedFd<'_>) -> T) -> Result<T> {
        let program = self.object.progs().find(|program| program.name() == PROGRAM);
        let program = program.ok_or_else(|| incomplete(PROGRAM))?;
        Ok(work(program.as_fd()))
    }
}

/// `TC_ACT_UNSPEC`: whatever comes next.
const PASS: i32 = -1;

/// Reads `struct port`, with what processors have counted by themselves.
pub(super) fn read_port(port: &impl MapCore, parts: Option<&impl MapCore>) -> Result<Vec<u8>> {
    let mut bytes = read(port, MapFlags::LOCK)?;
    let Some(parts) = parts else { return Ok(bytes) };
    let parts = parts.lookup_percpu(&KEY, MapFlags::ANY).map_err(|error| refused("read a map", os(error)))?;
    let (at, count) = COUNTS;
    for part in parts.unwrap_or_default() {
        let (sums, _) = bytes[at..].as_chunks_mut();
        for (sum, counted) in sums.iter_mut().zip(part.as_chunks().0).take(count) {
            *sum = u64::from_ne_bytes(*sum).wrapping_add(u64::from_ne_bytes(*counted)).to_ne_bytes();
        }
    }
    Ok(bytes)
}

/// Two spans in (0, most]: routers that start together must not decide together.
fn phases(most: Duration) -> Result<[u64; 2]> {
    let mut bytes = [0; 16];
    let mut source = std::fs::File::open("/dev/urandom").context(|| "can not open /dev/urandom".into())?;
    source.read_exact(&mut bytes).context(|| "can not read /dev/urandom".into())?;
    let (high, low) = bytes.split_at(8);
    Ok([high, low].map(|half| 1 + half.try_into().map_or(0, u64::from_ne_bytes) % most.0.max(1)))
}

/// Returns the name of the law in [`OBJECT`]: Rust's of `crates/core`, or the C twin.
pub fn law_name() -> &'static str {
    law_name_in(OBJECT)
}

//! An examination of this machine: what it can do with real packets, what it lacks, and how to get that.
//!
//! The examination changes nothing: it reads what the kernel tells of itself (its BTF, /proc/config.gz,
//! modules), loads a program that is gone at once, and tries a link in a network namespace without a name,
//! which ends with the trial. A module that would have to be loaded first is not tried.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use congestlab_core::units::BitRate;
use libbpf_rs::btf::{Btf, BtfType};
use libbpf_rs::{ProgramType, set_print};
use rustix::system::uname;
use rustix::thread::{CapabilitySet, capabilities, clock_nanosleep_absolute};
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};
use serde::Serialize;

use crate::error::Error;
use crate::host::form;
use crate::link::LATE_MAX;
use crate::router::{self, Config, Encoding, Program};
use crate::standing::{self, Standing};
use crate::supervisor;
use crate::sys::{cgroup, command, probe};

/// A command on real packets that needs something of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// `congestlab host`: XCP in the kernel's TCP.
    Host,
    /// `congestlab router`: XCP at an interface's egress.
    Router,
    /// `congestlab link`: a link in user space.
    Link,
    /// `congestlab live`: labs, which need all of these.
    Live,
    /// `congestlab gateway`: TCP connections split at a satellite link.
    Gateway,
}

use Part::{Gateway, Host, Link, Live, Router};

impl Part {
    /// All parts, in the order of the report.
    pub const ALL: [Self; 5] = [Host, Router, Link, Live, Gateway];

    /// Returns the name of the part for people.
    pub fn name(self) -> &'static str {
        match self {
            Host => "host",
            Router => "router",
            Link => "user-space link",
            Live => "live lab",
            Gateway => "gateway",
        }
    }
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// The thing is there.
    Yes,
    /// The thing is missing.
    No,
    /// The thing works, but may spoil results.
    Doubt,
    /// The answer needs more privilege.
    Unknown,
}

/// A question about the machine.
#[derive(Debug, Serialize)]
pub struct Question {
    /// Name of the question for programs, such as `btf`.
    pub name: &'static str,
    /// Name of the thing for people.
    pub what: &'static str,
    /// Parts that do not work without it.
    pub needed_for: &'static [Part],
    /// Purpose of the thing, in a few words.
    pub why: &'static str,
    /// Advice on how to get it.
    pub help: &'static str,
    #[serde(skip)]
    ask: fn(&Machine) -> Answer,
}

/// A question and its answer.
#[derive(Debug, Serialize)]
pub struct Check {
    /// The question.
    #[serde(flatten)]
    pub question: &'static Question,
    /// The answer.
    pub mark: Mark,
    /// The finding in words; may be empty.
    pub found: String,
}

/// The verdict on a part.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The part.
    pub part: Part,
    /// True if nothing is missing for it.
    pub able: bool,
    /// Names of the questions whose things are missing for it.
    pub missing: Vec<&'static str>,
}

/// The report of an examination.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Verdicts on all parts.
    pub verdicts: Vec<Verdict>,
    /// All questions with their answers.
    pub checks: Vec<Check>,
    /// Lateness of sleeping threads on this machine.
    pub lateness: Lateness,
    /// Ids of labs and links that died together with their supervisors.
    pub leftovers: Vec<String>,
    /// Routers, hosts and gateways that stand on the machine; `None`: the privilege to look is missing.
    pub standing: Option<Vec<Standing>>,
}

/// How late sleeping threads wake up, measured over 0.2 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Median, ms.
    pub p50_ms: f64,
    /// 99th percentile, ms.
    pub p99_ms: f64,
    /// Maximum, ms.
    pub max_ms: f64,
}

/// For how long lateness is measured, and how long each sleep is, nanoseconds.
const WATCH_NS: u64 = 200_000_000;
const SLEEP_NS: u64 = 1_000_000;
/// Timers of higher resolution than this serve every link, nanoseconds.
const RESOLUTION_NS: i64 = 10_000;

/// The first kernel that takes calls of a program's own functions while it holds a lock.
const ROUTER: (u32, u32) = (6, 9);

/// In the order in which they are told.
static QUESTIONS: [Question; 32] = [
    Question {
        name: "privilege",
        what: "privilege",
        needed_for: &Part::ALL,
        why: "all that changes the network",
        help: "run as root, such as with sudo",
        ask: Machine::privilege,
    },
    Question {
        name: "kernel",
        what: "kernel",
        needed_for: &[Link, Live],
        why: "processes that end together (cgroup.kill); what else it takes is asked below",
        help: "Linux 5.14 or later; 6.18 is what all was tried with",
        ask: |machine| (yes_if(machine.version >= (5, 14)), format!("Linux {}", machine.release)),
    },
    Question {
        name: "btf",
        what: "types of the kernel (BTF)",
        needed_for: &[Host, Router, Live],
        why: "BPF programs that fit this kernel",
        help: "a kernel with CONFIG_DEBUG_INFO_BTF=y, as distributions have",
        ask: |machine| (yes_if(machine.btf.is_some()), String::new()),
    },
    Question {
        name: "bpf",
        what: "BPF programs",
        needed_for: &[Host, Router, Live],
        why: "the laws in the kernel",
        help: "CONFIG_BPF_SYSCALL, CONFIG_BPF_JIT, CONFIG_CGROUP_BPF; in a container let bpf() pass",
        ask: Machine::programs,
    },
    Question {
        name: "egress",
        what: "programs at an interface's egress",
        needed_for: &[Router, Live],
        why: "the link's law (tcx, or clsact)",
        help: "Linux 6.6, or CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF",
        ask: Machine::egress,
    },
    Question {
        name: "router-program",
        what: "the router's program",
        needed_for: &[Router, Live],
        why: "the link's law: it reads the true backlog (Linux 6.2) and has functions under a lock (6.9)",
        help: "Linux 6.9 or later, built with CONFIG_DEBUG_INFO_BTF",
        ask: Machine::router,
    },
    Question {
        name: "tbf",
        what: "token bucket queue (TBF)",
        needed_for: &[Router, Live],
        why: "the rate of a link with a law in the kernel; not with router attach --no-shape",
        help: "modprobe sch_tbf, or a kernel with CONFIG_NET_SCH_TBF",
        ask: |machine| machine.tbf().answer(),
    },
    Question {
        name: "queues",
        what: "other queues",
        needed_for: &[],
        why: "none is needed",
        help: "",
        ask: Machine::other_queues,
    },
    Question {
        name: "struct-ops",
        what: "congestion control by BPF",
        needed_for: &[Host, Live],
        why: "the sender's law (struct_ops)",
        help: "Linux 5.6 or later, with CONFIG_BPF_JIT=y",
        ask: |machine| machine.knows("bpf_struct_ops_tcp_congestion_ops"),
    },
    Question {
        name: "cong-control",
        what: "form of cong_control",
        needed_for: &[Host, Live],
        why: "the sender's law",
        help: "Linux 6.10 or later",
        ask: Machine::signature,
    },
    Question {
        name: "header-options",
        what: "TCP options by BPF",
        needed_for: &[Host, Live],
        why: "the congestion header (sock_ops)",
        help: "Linux 5.10 or later",
        ask: |machine| machine.knows("bpf_sock_ops_store_hdr_opt"),
    },
    Question {
        name: "cubic",
        what: "CUBIC",
        needed_for: &[Host, Live],
        why: "what a connection falls back to where no router speaks XCP",
        help: "modprobe tcp_cubic",
        ask: Machine::cubic,
    },
    Question {
        name: "cgroup",
        what: "control groups, version 2",
        needed_for: &[Host, Link, Live],
        why: "whose connections use XCP, and that what a lab starts ends with it",
        help: "mount -t cgroup2 none /sys/fs/cgroup/unified (make the folder first)",
        ask: |_| match cgroup::root() {
            Ok(root) => (Mark::Yes, root.display().to_string()),
            Err(_) => (Mark::No, String::new()),
        },
    },
    Question {
        name: "namespaces",
        what: "network namespaces and veth",
        needed_for: &[Link, Live],
        why: "hosts, routers and links of a lab",
        help: "CONFIG_NET_NS, CONFIG_VETH, iproute2; in a container CAP_SYS_ADMIN",
        ask: Machine::namespaces,
    },
    Question {
        name: "packet-sockets",
        what: "packet sockets (AF_PACKET)",
        needed_for: &[Link, Live],
        why: "a link in user space takes its packets from them",
        help: "modprobe af_packet, or a kernel with CONFIG_PACKET",
        ask: |machine| machine.feature(Some("packet_create"), "CONFIG_PACKET", "af_packet").answer(),
    },
    Question {
        name: "socket-list",
        what: "lists of sockets (sock_diag)",
        needed_for: &[Live],
        why: "samples of windows and round-trip times",
        help: "modprobe tcp_diag, or a kernel with CONFIG_INET_DIAG",
        ask: |machine| machine.feature(Some("tcp_diag_dump"), "CONFIG_INET_TCP_DIAG", "tcp_diag").answer(),
    },
    Question {
        name: "socket-destroy",
        what: "ending connections from outside",
        needed_for: &[Live],
        why: "a lab leaves no connection behind (SOCK_DESTROY)",
        help: "a kernel with CONFIG_INET_DIAG_DESTROY",
        ask: |machine| machine.feature(Some("tcp_diag_destroy"), "CONFIG_INET_DIAG_DESTROY", "").answer(),
    },
    Question {
        name: "ip",
        what: "ip",
        needed_for: &Part::ALL,
        why: "namespaces, interfaces, addresses",
        help: "apt-get install iproute2",
        ask: |_| tool("ip"),
    },
    Question {
        name: "tc",
        what: "tc",
        needed_for: &[Router, Live],
        why: "queues",
        help: "apt-get install iproute2",
        ask: |_| tool("tc"),
    },
    Question {
        name: "iperf3",
        what: "iperf3",
        needed_for: &[],
        why: "live run --app iperf3",
        help: "apt-get install iperf3",
        ask: |_| tool("iperf3"),
    },
    Question {
        name: "curl",
        what: "curl",
        needed_for: &[],
        why: "live run --app curl",
        help: "apt-get install curl",
        ask: |_| tool("curl"),
    },
    Question {
        name: "tcpdump",
        what: "tcpdump",
        needed_for: &[],
        why: "to see the congestion header on the wire",
        help: "apt-get install tcpdump",
        ask: |_| tool("tcpdump"),
    },
    Question {
        name: "nft",
        what: "nft",
        needed_for: &[Gateway],
        why: "rules that lead connections to the gateway; to try XCP through a firewall",
        help: "apt-get install nftables",
        ask: |_| tool("nft"),
    },
    Question {
        name: "tproxy",
        what: "connections led to a gateway",
        needed_for: &[Gateway],
        why: "to end connections of others (nftables' tproxy)",
        help: "modprobe nft_tproxy, or a kernel with CONFIG_NFT_TPROXY",
        ask: |machine| machine.feature(Some("nft_tproxy_init"), "CONFIG_NFT_TPROXY", "nft_tproxy").answer(),
    },
    Question {
        name: "socket-match",
        what: "packets told by their socket",
        needed_for: &[Gateway],
        why: "answers to connections that the gateway makes (nftables' socket)",
        help: "modprobe nft_socket, or a kernel with CONFIG_NFT_SOCKET",
        ask: |machine| machine.feature(Some("nft_socket_init"), "CONFIG_NFT_SOCKET", "nft_socket").answer(),
    },
    Question {
        name: "routing-tables",
        what: "several routing tables",
        needed_for: &[Gateway],
        why: "packets of others that the gateway takes in",
        help: "a kernel with CONFIG_IP_MULTIPLE_TABLES",
        ask: |machine| machine.feature(Some("fib4_rule_action"), "CONFIG_IP_MULTIPLE_TABLES", "").answer(),
    },
    Question {
        name: "conntrack",
        what: "connection tracking",
        needed_for: &[],
        why: "to try XCP through a firewall",
        help: "modprobe nf_conntrack",
        ask: |machine| {
            machine.feature(Some("nf_conntrack_in"), "CONFIG_NF_CONNTRACK", "nf_conntrack").answer()
        },
    },
    Question {
        name: "clock",
        what: "resolution of timers",
        needed_for: &[Link, Live],
        why: "packets that leave when they should",
        help: "a kernel with CONFIG_HIGH_RES_TIMERS, without highres=off",
        ask: |_| {
            let Timespec { tv_sec, tv_nsec } = clock_getres(ClockId::Monotonic);
            (yes_if(tv_sec == 0 && tv_nsec <= RESOLUTION_NS), format!("{tv_nsec} ns"))
        },
    },
    Question {
        name: "lateness",
        what: "time to spare",
        needed_for: &[],
        why: "results of links in user space that can be trusted",
        help: "stop what else runs, or lower the rates",
        ask: Machine::lateness,
    },
    Question {
        name: "leftovers",
        what: "nothing left of dead labs",
        needed_for: &[],
        why: "labs and links that were killed with their supervisors",
        help: "congestlab check machine --clean; the next lab does it, too",
        ask: |machine| {
            let leftovers = &machine.leftovers;
            (if leftovers.is_empty() { Mark::Yes } else { Mark::Doubt }, leftovers.join(", "))
        },
    },
    Question {
        name: "standing",
        what: "no router, host or gateway stands",
        needed_for: &[],
        why: "whatever somebody attached takes part in what runs here, until it is taken away",
        help: "congestlab router detach IFACE, congestlab host disable; elsewhere behind ip netns exec NAME",
        ask: |machine| match &machine.standing {
            None => (Mark::Unknown, "can only be seen as root".into()),
            Some(standing) => {
                let names: Vec<String> = standing.iter().map(Standing::to_string).collect();
                (if names.is_empty() { Mark::Yes } else { Mark::Doubt }, names.join(", "))
            }
        },
    },
    Question {
        name: "buckets",
        what: "shapers that hold the MTU",
        needed_for: &[],
        why: "packets that became longer than the bucket of a router's shaper never pass it",
        help: "congestlab router set IFACE with the rate that it has, or congestlab apply --watch",
        ask: |machine| match &machine.standing {
            None => (Mark::Unknown, "can only be seen as root".into()),
            Some(standing) => {
                let warn = |thing: &Standing| match &thing.kind {
                    standing::Kind::Router { warning: Some(warning), .. } => {
                        Some(format!("{thing}: {warning}"))
                    }
                    _ => None,
                };
                let warnings: Vec<String> = standing.iter().filter_map(warn).collect();
                (if warnings.is_empty() { Mark::Yes } else { Mark::Doubt }, warnings.join("; "))
            }
        },
    },
];

/// Examines the machine.
pub fn examine() -> Report {
    // What libbpf misses is what the report says.
    let print = set_print(None);
    let machine = Machine::new();
    let checks = QUESTIONS.iter().map(|question| {
        let (mark, found) = (question.ask)(&machine);
        Check { question, mark, found }
    });
    let checks: Vec<Check> = checks.collect();
    set_print(print);
    let verdicts = Part::ALL.map(|part| {
        let is_missing = |check: &&Check| check.mark == Mark::No && check.question.needed_for.contains(&part);
        let missing: Vec<_> = checks.iter().filter(is_missing).map(|check| check.question.name).collect();
        Verdict { part, able: missing.is_empty(), missing }
    });
    let Machine { lateness, leftovers, standing, .. } = machine;
    Report { verdicts: verdicts.to_vec(), checks, lateness, leftovers, standing }
}

type Answer = (Mark, String);

fn yes_if(is_there: bool) -> Mark {
    if is_there { Mark::Yes } else { Mark::No }
}

/// Where a feature of the kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feature {
    /// In the kernel, or in a module that is loaded.
    Present,
    /// In a module that the kernel loads when it is needed.
    Module,
    Absent,
    /// The kernel says nothing of itself.
    Unknown,
}

impl Feature {
    fn answer(self) -> Answer {
        match self {
            Self::Present => (Mark::Yes, String::new()),
            Self::Module => (Mark::Yes, "a module".into()),
            Self::Absent => (Mark::No, String::new()),
            Self::Unknown => (Mark::Unknown, String::new()),
        }
    }

    fn is_there(self) -> bool {
        matches!(self, Self::Present | Self::Module)
    }
}

/// Facts that can be read about a machine.
#[derive(Debug)]
struct Machine {
    release: String,
    version: (u32, u32),
    have: CapabilitySet,
    is_namespaced: bool,
    btf: Option<Btf<'static>>,
    /// The kernel's configuration; empty if it does not say.
    config: String,
    /// Lists of modules, built in and installed; empty if there are none.
    modules: String,
    lateness: Lateness,
    leftovers: Vec<String>,
    standing: Option<Vec<Standing>>,
}

impl Machine {
    fn new() -> Self {
        let release = uname().release().to_string_lossy().into_owned();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        let config = command::query("zcat /proc/config.gz").ok();
        let config = config.or_else(|| fs::read_to_string(format!("/boot/config-{release}")).ok());
        let list = |name| fs::read_to_string(format!("/lib/modules/{release}/{name}")).unwrap_or_default();
        // In the first user namespace every number is its own (user_namespaces(7)).
        let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        Self {
            version,
            have: capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective),
            is_namespaced: !map.split_whitespace().eq(["0", "0", "4294967295"]),
            btf: Btf::from_vmlinux().ok(),
            config: config.unwrap_or_default(),
            modules: list("modules.builtin") + &list("modules.dep"),
            lateness: lateness(),
            leftovers: supervisor::dead().unwrap_or_default(),
            standing: standing::standing(),
            release,
        }
    }

    /// CAP_SYS_ADMIN is all that there was before Linux 5.8.
    fn may(&self, capability: CapabilitySet) -> bool {
        let covered = CapabilitySet::BPF | CapabilitySet::PERFMON;
        self.have.contains(capability)
            || covered.contains(capability) && self.have.contains(CapabilitySet::SYS_ADMIN)
    }

    fn has_type(&self, name: &str) -> bool {
        self.btf.as_ref().is_some_and(|btf| btf.type_by_name::<BtfType<'_>>(name).is_some())
    }

    /// Answers for a feature by a type that every kernel with it describes.
    fn knows(&self, name: &str) -> Answer {
        let mark = if self.btf.is_some() { yes_if(self.has_type(name)) } else { Mark::Unknown };
        (mark, String::new())
    }

    /// `name` is that of a function or structure that only this feature has.
    fn feature(&self, name: Option<&str>, option: &str, module: &str) -> Feature {
        let is_loaded = !module.is_empty() && Path::new("/sys/module").join(module).exists();
        if is_loaded || name.is_some_and(|name| self.has_type(name)) {
            return Feature::Present;
        }
        let configured = self.config.lines().find_map(|line| line.strip_prefix(option)?.strip_prefix('='));
        match configured {
            Some("y") => Feature::Present,
            _ if !module.is_empty() && self.modules.contains(&format!("/{module}.ko")) => Feature::Module,
            None if self.config.is_empty() && self.modules.is_empty() => Feature::Unknown,
            _ => Feature::Absent,
        }
    }

    fn tbf(&self) -> Feature {
        self.feature(Some("tbf_sched_data"), "CONFIG_NET_SCH_TBF", "sch_tbf")
    }

    fn clsact(&self) -> Feature {
        self.feature(Some("clsact_init"), "CONFIG_NET_SCH_INGRESS", "sch_ingress")
    }

    fn privilege(&self) -> Answer {
        let missing: Vec<&str> = [
            (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"),
            (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
            (CapabilitySet::NET_RAW, "CAP_NET_RAW"),
            (CapabilitySet::BPF, "CAP_BPF"),
            (CapabilitySet::PERFMON, "CAP_PERFMON"),
        ]
        .into_iter()
        .filter_map(|(capability, name)| (!self.may(capability)).then_some(name))
        .collect();
        if !missing.is_empty() {
            return (Mark::No, format!("no {}", missing.join(", ")));
        }
        // Who is root only in there may load no programs.
        let found = if self.is_namespaced { "only in a user namespace" } else { "all that is needed" };
        (yes_if(!self.is_namespaced), found.into())
    }

    /// Loads programs of two instructions, which are gone at once.
    fn programs(&self) -> Answer {
        let kinds = [(ProgramType::SchedCls, "sched_cls"), (ProgramType::SockOps, "sock_ops")];
        let refused = kinds.into_iter().filter_map(|(kind, name)| match kind.is_supported() {
            Ok(true) => None,
            Ok(false) => Some(format!("no {name}")),
            Err(error) => Some(format!("{name}: {error}")),
        });
        let refused: Vec<String> = refused.collect();
        match refused.is_empty() {
            true => (Mark::Yes, "loaded one".into()),
            false if !self.may(CapabilitySet::BPF) => (Mark::Unknown, "can only be tried as root".into()),
            false => (Mark::No, refused.join(", ")),
        }
    }

    /// Loads the program, which is gone at once.
    fn router(&self) -> Answer {
        if !self.may(CapabilitySet::BPF | CapabilitySet::PERFMON | CapabilitySet::NET_ADMIN) {
            let found = format!("Linux {}; can only be tried as root", self.release);
            return (if self.version < ROUTER { Mark::No } else { Mark::Unknown }, found);
        }
        let rate = BitRate(1_000_000_000);
        for (law, encoding) in [
            (router::law(rate), Encoding::Option),
            (router::vcp(rate), Encoding::Ecn),
            (router::dpcp(rate), Encoding::Ecn),
        ] {
            let config = Config { rate, law, encoding, shape: None };
            if let Err(error) = Program::load(config.law.object(), &config, 0, 0) {
                return (Mark::No, error.to_string());
            }
        }
        (Mark::Yes, "loaded XCP's, VCP's and DPCP's".into())
    }

    fn egress(&self) -> Answer {
        let filter = self.feature(Some("cls_bpf_classify"), "CONFIG_NET_CLS_BPF", "cls_bpf");
        let has_clsact = self.clsact().is_there() && filter.is_there();
        match (self.knows("tcx_prog_attach").0, has_clsact) {
            (Mark::Yes, _) => (Mark::Yes, "tcx".into()),
            (_, true) => (Mark::Yes, "clsact".into()),
            (mark, _) => (mark, String::new()),
        }
    }

    fn other_queues(&self) -> Answer {
        let kinds = ["htb", "netem", "fq", "fq_codel", "cake", "red", "prio", "sfq"];
        let is_there = |kind: &&str| {
            let (option, module) = (format!("CONFIG_NET_SCH_{}", kind.to_uppercase()), format!("sch_{kind}"));
            self.feature(None, &option, &module).is_there()
        };
        let found: Vec<&str> = kinds.into_iter().filter(is_there).collect();
        (Mark::Yes, if found.is_empty() { "none".into() } else { found.join(", ") })
    }

    /// Linux 6.10 gave cong_control two arguments more.
    fn signature(&self) -> Answer {
        let Some(btf) = &self.btf else { return (Mark::Unknown, String::new()) };
        match form::arguments(btf) {
            Some(4) => (Mark::Yes, "that of Linux 6.10".into()),
            Some(2) => (Mark::Doubt, "that before Linux 6.10, checked against its types, not run".into()),
            Some(count) => (Mark::No, format!("unknown, with {count} arguments")),
            None => (Mark::No, "the kernel has none".into()),
        }
    }

    fn cubic(&self) -> Answer {
        let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
        let known = fs::read_to_string(path).unwrap_or_default();
        if known.split_whitespace().any(|name| name == "cubic") {
            return (Mark::Yes, known.trim().into());
        }
        self.feature(Some("cubictcp_init"), "CONFIG_TCP_CONG_CUBIC", "tcp_cubic").answer()
    }

    /// Makes a link with its queue where nobody sees it. Nothing is tried for which a module would be
    /// loaded: that would stay.
    fn namespaces(&self) -> Answer {
        let veth = self.feature(Some("veth_newlink"), "CONFIG_VETH", "veth");
        let may_queue = self.tbf() == Feature::Present && self.clsact() == Feature::Present;
        let tried = probe::in_own_network(|| -> Result<&str, Error> {
            if veth != Feature::Present {
                return Ok("tried a namespace");
            }
            command::query("ip link add cl-one type veth peer name cl-other")?;
            if may_queue {
                command::query("tc qdisc add dev cl-one root tbf rate 1mbit burst 5kb latency 50ms")?;
                command::query("tc qdisc add dev cl-one clsact")?;
            }
            Ok(if may_queue { "tried a link with a queue" } else { "tried a link" })
        });
        match tried {
            _ if veth == Feature::Absent => (Mark::No, "no veth".into()),
            Ok(Ok(found)) => (Mark::Yes, found.into()),
            Ok(Err(error)) => (Mark::No, error.to_string()),
            Err(_) if !self.may(CapabilitySet::SYS_ADMIN) => {
                (Mark::Unknown, "can only be tried as root".into())
            }
            Err(error) => (Mark::No, error.to_string()),
        }
    }

    fn lateness(&self) -> Answer {
        let Lateness { p50_ms, p99_ms, max_ms } = self.lateness;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().unwrap_or_default();
        let is_fine = p99_ms * 1e6 <= LATE_MAX.0 as f64;
        let found = format!(
            "{cores} cores, load {load}; threads wake up {p50_ms:.2} ms late, 1 % of them {p99_ms:.2} ms, \
             at most {max_ms:.2} ms"
        );
        (if is_fine { Mark::Yes } else { Mark::Doubt }, found)
    }
}

/// A program that is installed.
fn tool(name: &str) -> Answer {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Where root's tools are, which others often do not search.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    (yes_if(found.is_some()), found.map_or_else(String::new, |path| path.display().to_string()))
}

/// Sleeps again and again, as a link in user space does between packets.
fn lateness() -> Lateness {
    let now = || {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
        tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
    };
    let sleeper = thread::spawn(move || {
        // Of this thread only. Not granted is as good as granted: lateness is what is measured.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let (begin, mut late) = (now(), Vec::new());
        while now() < begin + WATCH_NS {
            let due = now() + SLEEP_NS;
            let at = Timespec { tv_sec: (due / 1_000_000_000) as i64, tv_nsec: (due % 1_000_000_000) as i64 };
            if clock_nanosleep_absolute(ClockId::Monotonic, &at).is_ok() {
                late.push(now().saturating_sub(due));
            }
        }
        late
    });
    let mut late = sleeper.join().unwrap_or_default();
    late.sort_unstable();
    let percentile = |percent: usize| {
        let rank = (late.len() * percent).div_ceil(100).max(1) - 1;
        late.get(rank).map_or(0.0, |&ns| ns as f64 / 1e6)
    };
    Lateness { p50_ms: percentile(50), p99_ms: percentile(99), max_ms: percentile(100) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that says no more of itself than this.
    fn machine(config: &str, modules: &str) -> Machine {
        Machine {
            release: "5.4.0".into(),
            version: (5, 4),
            have: CapabilitySet::empty(),
            is_namespaced: false,
            btf: None,
            config: config.into(),
            modules: modules.into(),
            lateness: Lateness::default(),
            leftovers: Vec::new(),
            standing: None,
        }
    }

    #[test]
    fn a_feature_is_found_in_the_configuration_and_among_the_modules() {
        const INSTALLED: &str = "kernel/net/sched/sch_none.ko.xz: kernel/net/other.ko\n";
        for (config, modules, expected) in [
            ("CONFIG_NONE=y\n", "", Feature::Present),
            ("CONFIG_NONE=m\n", INSTALLED, Feature::Module),
            ("", INSTALLED, Feature::Module),
            // Configured, but the package with the module is not installed.
            ("CONFIG_NONE=m\n", "kernel/net/other.ko\n", Feature::Absent),
            ("# CONFIG_NONE is not set\nCONFIG_NONESUCH=y\n", "", Feature::Absent),
            ("", "kernel/net/other.ko\n", Feature::Absent),
            ("", "", Feature::Unknown),
        ] {
            let found = machine(config, modules).feature(None, "CONFIG_NONE", "sch_none");
            assert_eq!(found, expected, "{config:?}, {modules:?}");
        }
    }

    #[test]
    fn without_types_the_kernel_is_not_accused_of_lacking_what_only_they_tell() {
        let machine = machine("CONFIG_BPF=y\n", "");
        assert_eq!(machine.knows("bpf_cast_to_kern_ctx").0, Mark::Unknown);
        assert_eq!(machine.signature().0, Mark::Unknown);
        assert_eq!(machine.egress().0, Mark::Unknown);
        assert_eq!(machine.privilege().0, Mark::No);
    }

    #[test]
    fn whoever_may_not_load_the_router_is_told_of_the_kernel_that_it_takes() {
        for (version, mark) in [((6, 2), Mark::No), ((6, 8), Mark::No), ((6, 9), Mark::Unknown)] {
            let machine = Machine { version, ..machine("", "") };
            assert_eq!(machine.router().0, mark, "{version:?}");
        }
        let question = QUESTIONS.iter().find(|question| question.name == "router-program").unwrap();
        assert!(question.help.contains("Linux 6.9"));
    }

    #[test]
    fn every_question_has_a_name_of_its_own_and_says_how_to_get_what_is_needed() {
        let mut names: Vec<&str> = QUESTIONS.iter().map(|question| question.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), QUESTIONS.len());
        let helpless = QUESTIONS.iter().filter(|question| question.help.is_empty());
        assert!(helpless.into_iter().all(|question| question.needed_for.is_empty()));
    }

    #[test]
    fn sleeping_threads_wake_up_late_and_never_early() {
        let Lateness { p50_ms, p99_ms, max_ms } = lateness();
        assert!(0.0 < p50_ms && p50_ms <= p99_ms && p99_ms <= max_ms, "{p50_ms} {p99_ms} {max_ms}");
    }
}

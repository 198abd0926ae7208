//! A transparent gateway that splits TCP connections at a satellite link.
//!
//! A connection that crosses the link ends at the gateway, which continues it from the client's address and port to
//! the server's: both ends see each other's addresses and know nothing of the gateway. Towards the satellite another
//! law rules than on the ground, XCP's or any that the kernel has. The gateways of both sides of a link know nothing
//! of each other, either; in the place of one of them XCP hosts may stand.
//!
//! It becomes another user, with the few capabilities that it uses, before it takes the first connection.
//!
//! Everything is undone by the supervisor, whatever becomes of the process ([`crate::supervisor`]); its connections are
//! reset then. It terminates no other protocol, and translates no addresses.

mod pair;
mod places;
mod report;
mod rules;
mod worker;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::CapabilitySet;

pub use pair::Origin;
pub use report::{Connection, Counters, Half, Passing, Phase, Status, Why, status};
pub use rules::MARK;

use crate::error::{Context, Error, Result};
use crate::host::{self, Host, LossPolicy, Prefix};
use crate::interface::Interface;
use crate::supervisor::Guard;
use crate::sys::privilege;
use crate::sys::user::User;
use places::Limits;
use report::Desk;
use rules::Rules;
use worker::{Line, Listeners, Manner, Shared, Worker};

/// Descriptors of a connection without pipes, and of a pipe.
const FILES: u64 = 2;
/// Descriptors of everything else: listeners, epoll and sockets for later of each thread, programs and maps of XCP.
const FILES_BESIDE: u64 = 64;
const FILES_OF_THREAD: u64 = 8 + worker::READY_FILES;
/// Connections at a time where nobody says how many.
const CONNECTIONS: u64 = 16_384;

/// Capabilities of the threads that handle strangers' connections. NET_ADMIN is for addresses that are not this machine's
/// (`IP_TRANSPARENT`) and for laws that not every user may choose; NET_BIND_SERVICE for clients' ports below 1024. The thread that
/// answers questions has BPF beside them where XCP runs, to read its state, and gives nft NET_ADMIN.
const WORKERS: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_BIND_SERVICE);

/// The law of senders towards the satellite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Law {
    /// The explicit law that the kernel's programs run, with this reaction to loss, beginning with so many packets.
    Explicit(LossPolicy, u32),
    /// A congestion control that the kernel has, such as `cubic`.
    Kernel(String),
}

/// Settings of a gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// Interface towards the satellite.
    pub satellite: String,
    /// Law of senders towards it.
    pub law: Law,
    /// Name of that law, for people.
    pub law_name: String,
    /// Congestion control towards the ground, such as `cubic`.
    pub terrestrial_law: String,
    /// Destinations whose connections are split; empty: all.
    pub to: Vec<Prefix>,
    /// Number of threads that move data.
    pub threads: usize,
    /// Limit of connections at a time; `None`: 16384, or as many as half of the open files allow.
    pub connections: Option<usize>,
    /// Limit of connections that wait for their server at a time.
    pub waiting: usize,
    /// Time that a server has to answer.
    pub patience: Duration,
    /// Time after which a silent peer is asked whether it is there, and between questions.
    pub keepalive: Duration,
    /// Name of the user that the gateway becomes when it is ready; `None`: [`User::own`].
    pub user: Option<String>,
}

impl Config {
    fn check(&self) -> Result<()> {
        let satellite = Interface::find(&self.satellite)?;
        if satellite.is_loopback {
            return Err(Error::input(
                format!("{} leads to no satellite", self.satellite),
                "the interface behind which the satellite link is",
            ));
        }
        if !Interface::find("lo")?.is_up {
            return Err(Error::input(
                "the interface lo is down, by which connections come in",
                "ip link set lo up",
            ));
        }
        let names = [
            Some(&self.terrestrial_law),
            match &self.law {
                Law::Kernel(name) => Some(name),
                Law::Explicit(..) => None,
            },
        ];
        let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
        let available = fs::read_to_string(path).context(|| format!("can not read {path}"))?;
        for name in names.into_iter().flatten() {
            if !available.split_whitespace().any(|one| one == name) {
                return Err(Error::missing(
                    format!(
                        "the kernel has no congestion control {name:?}, only {}",
                        available.split_whitespace().collect::<Vec<_>>().join(", ")
                    ),
                    format!("modprobe tcp_{name}"),
                ));
            }
        }
        Ok(())
    }

    /// Raises the limit of open files to what connections and their pipes may need, or else to what is allowed. Returns
    /// the limits of connections and of a thread's pipes.
    fn allow_files(&self) -> Result<(usize, usize)> {
        let threads = self.threads.max(1) as u64;
        let beside = FILES_BESIDE + FILES_OF_THREAD * threads;
        let wanted = self.connections.map_or(CONNECTIONS, |connections| connections as u64);
        let needed = |connections: u64| FILES.saturating_mul(connections).saturating_add(beside);
        // With a pipe for each direction of each connection.
        let files = needed(3 * wanted);
        let most = getrlimit(Resource::Nofile).maximum;
        let raised = Rlimit { current: Some(files), maximum: most.map(|most| most.max(files)) };
        let files = match (setrlimit(Resource::Nofile, raised), most) {
            (Err(_), Some(most)) => {
                setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: Some(most) })
                    .context(|| "can not raise the limit of open files".into())?;
                most
            }
            _ => files,
        };
        let connections = match self.connections {
            // Half of them are for pipes.
            None => wanted.min(files.saturating_sub(beside) / (2 * FILES)),
            Some(_) if needed(wanted) <= files => wanted,
            Some(_) => {
                return Err(Error::missing(
                    format!(
                        "{wanted} connections need {} open files, and {files} are allowed",
                        needed(wanted)
                    ),
                    "fewer connections (--connections), or a larger limit (ulimit -Hn, LimitNOFILE of systemd)",
                ));
            }
        };
        let pipes = files.saturating_sub(needed(connections)) / FILES / threads;
        Ok((connections as usize, pipes as usize))
    }

    /// Returns the kernel's name of the congestion control towards the satellite.
    fn control(&self, guard: &Guard) -> String {
        match &self.law {
            Law::Kernel(name) => name.clone(),
            Law::Explicit(..) => format!("xcp.{}", guard.id()),
        }
    }

    /// Loads XCP, under this name, for the sockets that choose it. Returns what holds it.
    fn enable(&self, guard: &Guard, name: &str) -> Result<Option<Host>> {
        let Law::Explicit(loss, initial_window) = self.law else { return Ok(None) };
        let config = host::Config {
            default: false,
            sender: host::sender_config(loss),
            initial_window,
            ..host::Config::new(name, guard.cgroup())
        };
        host::enable(&config, false)
    }

    /// Returns the state of a gateway that has no connections yet and is not ready.
    fn status(&self, families: [bool; 2], connections_max: usize) -> Status {
        let names = ["IPv4", "IPv6"].into_iter().zip(families);
        Status {
            pid: std::process::id(),
            satellite: self.satellite.clone(),
            law: self.law_name.clone(),
            congestion_control: None,
            ready: false,
            terrestrial_law: self.terrestrial_law.clone(),
            to: self.to.iter().map(Prefix::to_string).collect(),
            families: names.filter(|(_, has)| *has).map(|(name, _)| name.to_owned()).collect(),
            threads: self.threads.max(1),
            connections_max,
            waiting_max: self.waiting,
            counters: Counters::default(),
            connections: Vec::new(),
            connections_omitted: 0,
            passing: None,
        }
    }
}

/// Splits connections until `stop` is raised; calls `ready` when it has begun.
///
/// # Errors
/// If a gateway runs in this network namespace already, the settings are wrong, the privilege or a feature of the
/// kernel is missing, or a thread fails.
pub fn run(config: &Config, stop: &AtomicBool, ready: impl FnOnce(&Status)) -> Result<()> {
    config.check()?;
    let user = config.user.as_deref().map_or_else(User::own, User::find)?;
    let (connections, pipes) = config.allow_files()?;
    let families = [true, rules::has_ipv6()];
    let first = config.status(families, connections);
    let is_ready = AtomicBool::new(false);
    let guard = Guard::start()?;
    let ran = Desk::open(&guard).and_then(|desk| {
        thread::scope(|scope| {
            // Loading a law takes the time of the kernel's verifier. Questions are answered meanwhile.
            let loading = scope.spawn(|| desk.serve_until(|| is_ready.load(Relaxed), || Ok(first.clone())));
            let end_loading = || {
                is_ready.store(true, Relaxed);
                // From here on no question gets the answer of before.
                let _ = loading.join();
            };
            let ran = split(config, (&guard, &user), &desk, (&first, pipes), stop, end_loading, ready);
            is_ready.store(true, Relaxed);
            ran
        })
    });
    ran.and(guard.finish())
}

fn split(
    config: &Config,
    (guard, user): (&Guard, &User),
    desk: &Desk,
    (first, pipes): (&Status, usize),
    stop: &AtomicBool,
    end_loading: impl FnOnce(),
    ready: impl FnOnce(&Status),
) -> Result<()> {
    let families = [true, first.families.len() > 1];
    // A connection that passed as it is would do so to its end: new ones wait for the law.
    let rules = Rules::hold(guard, &config.satellite, &config.to, families)?;
    let satellite = config.control(guard);
    let host = config.enable(guard, &satellite)?;
    // A client may use a port again as soon as its own TCP lets it, and the gateway has to follow.
    guard.sysctl("net.ipv4.tcp_tw_reuse", "1")?;
    let manner = Manner {
        satellite,
        terrestrial: config.terrestrial_law.clone(),
        pipes,
        patience: config.patience,
        keepalive: config.keepalive,
    };
    let limits = Limits { connections: first.connections_max, waiting: config.waiting };
    let shared = Shared::new(limits, first.threads).context(|| "can not prepare threads".into())?;
    let (mut workers, mut lines) = (Vec::new(), Vec::new());
    let mut ports = [None; 2];
    for own in 0..first.threads {
        let listeners = Listeners::open(&manner, families, ports)?;
        ports = listeners.ports;
        let made = Worker::new(&manner, &shared, own, listeners);
        let (worker, line) = made.context(|| "can not prepare a thread".into())?;
        workers.push(worker);
        lines.push(line);
    }
    let status = || {
        let (answer, answers) = mpsc::channel();
        lines.iter().for_each(|line| line.ask(answer.clone()));
        drop(answer);
        let mut connections: Vec<_> = answers.iter().flatten().collect();
        connections.sort_by(|one, other| other.age_s.total_cmp(&one.age_s));
        let connections_omitted = report::shorten(&mut connections);
        report::add_halves(&mut connections, host.as_ref())?;
        Ok(Status {
            congestion_control: Some(manner.satellite.clone()),
            ready: true,
            counters: shared.counters(),
            connections,
            connections_omitted,
            // Without nft all else is still worth an answer.
            passing: rules.passing().ok().map(|passing| report::passing(passing, &config.to, families)),
            ..first.clone()
        })
    };
    rules.divert(guard, ports)?;
    // All that needs root is made, and the supervisor undoes it. No thread may be there that keeps what this one gives up.
    end_loading();
    let of_host = if host.is_some() { CapabilitySet::BPF } else { CapabilitySet::empty() };
    privilege::reduce(user, WORKERS | of_host, CapabilitySet::NET_ADMIN)?;
    thread::scope(|scope| {
        let threads: Vec<_> = workers.into_iter().map(|worker| scope.spawn(|| worker.run())).collect();
        let served = status().map(|first| {
            ready(&first);
            let is_over = || stop.load(Relaxed) || threads.iter().any(|thread| thread.is_finished());
            desk.serve_until(is_over, status);
        });
        shared.stop.store(true, Relaxed);
        lines.iter().for_each(Line::wake);
        let ended: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        served?;
        ended.into_iter().try_for_each(|end| end.context(|| "a thread of the gateway ended".into()))
    })
}

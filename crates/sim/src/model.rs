//! The input of a run: links, groups of flows, and for how long they are watched.

use congestlab_core::units::{BitRate, Time};
use congestlab_net::estimator;
use congestlab_net::medium;
use congestlab_net::packet::Picos;
use congestlab_net::port::PortConfig;
use congestlab_net::source::SourceConfig;
use congestlab_net::tcp;
use congestlab_net::xcp_i;

/// Everything that a run needs. Equal models have equal outcomes.
#[derive(Clone, Debug)]
pub struct Model {
    /// Seed of every random stream.
    pub seed: u64,
    /// Simulated time from beginning to end, ps.
    pub duration: Picos,
    /// Start of the measured time, ps: rates, means and percentiles are taken from here to the end.
    pub warmup: Picos,
    /// Every link direction that has a queue. A packet-hop is a packet that enters one of these, or a [`Pipe`].
    pub links: Vec<Link>,
    /// Elements that own the ports of several links. A link belongs to at most one.
    pub devices: Vec<Device>,
    /// Groups of equal flows, in the order of the scenario.
    pub groups: Vec<Group>,
    /// Length of a bin of the time series, ps; `None`: no series are recorded.
    pub sample_every: Option<Picos>,
    /// True to record drops, marks, timeouts and other events one by one.
    pub record_events: bool,
}

/// A link direction: its output port and the wire behind it.
#[derive(Clone, Debug)]
pub struct Link {
    /// Name of the direction, such as `bottleneck` or `bottleneck.reverse`. Random streams are named after it.
    pub name: String,
    /// The output port: queue, service, link law, propagation delay, errors.
    pub port: PortConfig,
}

/// An element that owns the ports of several links, because what happens at one of them may change another in no time.
#[derive(Clone, Debug)]
pub struct Device {
    /// The links whose ports it owns: indices into [`Model::links`].
    pub links: Vec<u32>,
    /// Reason for which the ports belong together.
    pub kind: DeviceKind,
}

/// Reason for which the ports of a [`Device`] belong together.
#[derive(Clone, Debug)]
pub enum DeviceKind {
    /// The XCP-i ports of a router share its agent.
    Router(Box<Router>),
    /// Two ports of equal, fixed rate share one wire.
    Medium(medium::Config),
}

impl Device {
    /// Returns the XCP-i router, if the device is one.
    pub fn router(&self) -> Option<&Router> {
        match &self.kind {
            DeviceKind::Router(router) => Some(router),
            DeviceKind::Medium(_) => None,
        }
    }
}

/// A router that runs XCP-i on the ports of its [`Device`].
#[derive(Clone, Debug)]
pub struct Router {
    /// Settings of the router as the downstream edge of clouds.
    pub config: xcp_i::Config,
    /// For each port, the estimator of the available bandwidth of the clouds that begin or end there. That of
    /// the upstream edge counts first; where neither edge has one, the oracle is asked.
    pub estimators: Vec<Option<Estimator>>,
}

/// The way in which the available bandwidth of a cloud is estimated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// An oracle, which reads it from the links of the cloud.
    Oracle(xcp_i::OracleConfig),
    /// An estimator that sees only its probes and the packets that arrive.
    Probes(estimator::Config),
}

impl Default for Estimator {
    fn default() -> Self {
        Self::Oracle(xcp_i::OracleConfig::default())
    }
}

/// An access or exit hop that belongs to one flow: unlimited queue, no link law, no errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipe {
    /// Rate of each direction.
    pub rate: BitRate,
    /// One-way propagation delay, ps.
    pub delay: Picos,
}

/// The kind of host that the flows of a group have.
#[derive(Clone, Debug)]
pub enum GroupKind {
    /// A TCP-like sender and receiver, with any sender law.
    Tcp(tcp::Config),
    /// A source of datagrams, which gets no feedback.
    Source(SourceConfig),
}

/// Start times of the flows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Flow `i` starts at `from + i * every`.
    Every {
        /// Start of the first flow.
        from: Time,
        /// Time between two starts, ns; 0 starts all at once.
        every: u64,
    },
    /// A Poisson process: flows start one after the other, with exponentially distributed gaps.
    Poisson {
        /// Time at which the first gap begins.
        from: Time,
        /// Mean gap, ns.
        gap: u64,
    },
    /// Each flow starts at an independent, uniformly distributed time in `[0, within)`.
    Uniform {
        /// End of the interval, ns.
        within: u64,
    },
}

/// A change of path at a given time. It holds for data and ACKs that are sent from then on; packets under
/// way go on as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Time of the change, ps.
    pub at: Picos,
    /// Links that data crosses from then on, as [`Group::path`].
    pub path: Vec<u32>,
    /// Links that ACKs cross from then on, as [`Group::back`].
    pub back: Vec<u32>,
}

impl Group {
    /// Returns every pair of paths (data, ACKs) that the group's packets take at some time.
    pub fn paths(&self) -> impl Iterator<Item = (&Vec<u32>, &Vec<u32>)> {
        let others = self.switches.iter().map(|switch| (&switch.path, &switch.back));
        core::iter::once((&self.path, &self.back)).chain(others)
    }
}

/// Pareto distribution of transfer sizes (K02 §5.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// Shape, above 1; the smaller it is, the heavier is the tail.
    pub shape: f64,
    /// Mean size, segments.
    pub mean: f64,
}

/// A group of equal flows.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name of the group in the scenario.
    pub name: String,
    /// The kind of host, with its settings.
    pub kind: GroupKind,
    /// Number of flows.
    pub count: u32,
    /// Links that data crosses, in order: indices into [`Model::links`].
    pub path: Vec<u32>,
    /// Links that ACKs cross, in order: indices into [`Model::links`].
    pub back: Vec<u32>,
    /// Changes of path, in order of time.
    pub switches: Vec<Switch>,
    /// First hop of each flow, if the flows have one of their own.
    pub access: Option<Pipe>,
    /// Last hop of each flow, if the flows have one of their own.
    pub exit: Option<Pipe>,
    /// Start times of the flows.
    pub start: Start,
    /// Time from which flows send no new data; [`Time::NEVER`]: no such time.
    pub stop: Time,
    /// Number of flows that are active from each time on, counted from the first flow; empty: all, always. For
    /// [`GroupKind::Source`] only.
    pub schedule: Vec<(Time, u32)>,
    /// Distribution of the transfer sizes, for flows with `tcp::App::Own`.
    pub sizes: Option<Sizes>,
    /// Settings of the receivers as downstream edges of clouds, if the hosts of the group are XCP-i nodes.
    pub interoperable: Option<xcp_i::Config>,
}

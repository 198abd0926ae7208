//! What a run is made of: links, groups of flows, and how long to watch them.

use congestlab_core::units::{BitRate, Time};
use congestlab_net::estimator;
use congestlab_net::medium;
use congestlab_net::packet::Picos;
use congestlab_net::port::PortConfig;
use congestlab_net::source::SourceConfig;
use congestlab_net::tcp;
use congestlab_net::xcp_i;

/// A run, complete: same model, same outcome.
#[derive(Clone, Debug)]
pub struct Model {
    /// Seed of every random stream.
    pub seed: u64,
    /// How long to simulate.
    pub duration: Picos,
    /// Rates, means and percentiles are taken from here on.
    pub warmup: Picos,
    /// Every link direction that has a queue. A packet-hop is a packet entering one of these, or a [`Pipe`].
    pub links: Vec<Link>,
    /// Elements that own the ports of several links. A link belongs to one at most.
    pub devices: Vec<Device>,
    /// Groups of equal flows, in the order of the scenario.
    pub groups: Vec<Group>,
    /// Bins of the time series; `None`: no series.
    pub sample_every: Option<Picos>,
    /// Record events one by one.
    pub record_events: bool,
}

/// A link direction: its output port and the wire behind it.
#[derive(Clone, Debug)]
pub struct Link {
    /// `bottleneck` or `bottleneck.reverse`; names the random streams too.
    pub name: String,
    /// Queue, service, law, propagation delay, errors.
    pub port: PortConfig,
}

/// What owns the ports of several links, and runs as one element: what happens at one of them may
/// change another in no time.
#[derive(Clone, Debug)]
pub struct Device {
    /// Indices into [`Model::links`].
    pub links: Vec<u32>,
    /// What it is.
    pub kind: DeviceKind,
}

/// What couples the ports of a [`Device`].
#[derive(Clone, Debug)]
pub enum DeviceKind {
    /// The XCP-i ports of a router share its agent.
    Router(Box<Router>),
    /// Two ports of one fixed rate share a wire.
    Medium(medium::Config),
}

impl Device {
    /// The router, if it is one.
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
    /// As the downstream edge of clouds.
    pub config: xcp_i::Config,
    /// By port: how the available bandwidth of the clouds behind it, or of those before it, is
    /// estimated. The upstream edge's word counts first; without one the oracle is asked.
    pub estimators: Vec<Option<Estimator>>,
}

/// How the available bandwidth of a cloud is estimated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// Read from the links.
    Oracle(xcp_i::OracleConfig),
    /// From probes and what else arrives.
    Probes(estimator::Config),
}

impl Default for Estimator {
    fn default() -> Self {
        Self::Oracle(xcp_i::OracleConfig::default())
    }
}

/// A hop of a flow's own: unlimited queue, no law, no errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipe {
    /// Its rate, both ways.
    pub rate: BitRate,
    /// Propagation, one way.
    pub delay: Picos,
}

/// What the flows of a group run.
#[derive(Clone, Debug)]
pub enum GroupKind {
    /// TCP-like, any sender law.
    Tcp(tcp::Config),
    /// Datagrams without feedback.
    Source(SourceConfig),
}

/// When the flows of a group start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Flow `i` at `from + i * every`.
    Every {
        /// Start of the first.
        from: Time,
        /// Distance of the others; zero: all at once.
        every: u64,
    },
    /// One after the other, the gaps exponentially distributed.
    Poisson {
        /// Before the first gap.
        from: Time,
        /// Mean of a gap, ns.
        gap: u64,
    },
    /// Each independently and uniformly in `[0, within)`, ns.
    Uniform {
        /// End of the interval, ns.
        within: u64,
    },
}

/// From a time on, another path: for what is sent then, data and ACKs. What is under way goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// From then on.
    pub at: Picos,
    /// As [`Group::path`].
    pub path: Vec<u32>,
    /// As [`Group::back`].
    pub back: Vec<u32>,
}

impl Group {
    /// Every way that its packets take at some time, there and back.
    pub fn paths(&self) -> impl Iterator<Item = (&Vec<u32>, &Vec<u32>)> {
        let others = self.switches.iter().map(|switch| (&switch.path, &switch.back));
        core::iter::once((&self.path, &self.back)).chain(others)
    }
}

/// Sizes of transfers, Pareto distributed (K02 §5.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// Above 1; the less, the heavier the tail.
    pub shape: f64,
    /// Mean, segments.
    pub mean: f64,
}

/// A group of equal flows.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name in the scenario.
    pub name: String,
    /// What its flows run.
    pub kind: GroupKind,
    /// Number of flows.
    pub count: u32,
    /// Links that data crosses, in order: indices into [`Model::links`].
    pub path: Vec<u32>,
    /// Links that ACKs cross, in order.
    pub back: Vec<u32>,
    /// Other paths from later times on, in order.
    pub switches: Vec<Switch>,
    /// First hop of each flow's own.
    pub access: Option<Pipe>,
    /// Last hop of each flow's own.
    pub exit: Option<Pipe>,
    /// When they start.
    pub start: Start,
    /// No new data from then on; [`Time::NEVER`] if unlimited.
    pub stop: Time,
    /// How many of the flows, the first ones, are active from when on; empty: all, always. Sources only.
    pub schedule: Vec<(Time, u32)>,
    /// What each flow transfers, for `tcp::App::Own`.
    pub sizes: Option<Sizes>,
    /// Its hosts are XCP-i nodes; as downstream edges with these settings.
    pub interoperable: Option<xcp_i::Config>,
}

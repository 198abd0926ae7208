//! XCP-i at a node: the agent of a router, of a sending or of a receiving host.
//!
//! An [`Edge`] is both ends of a cloud at once. As the downstream one (k) it finds clouds, keeps a
//! table of upstream neighbours and runs a virtual router for each; as the upstream one (k-1) it
//! answers requests and sends probes. Whoever drives it
//!
//! - passes it every data packet of an interoperable flow with [`Edge::on_data`], before the port
//!   that the packet goes to, and tells it with [`Edge::on_sent`] what goes towards a peer;
//! - passes it the control packets and probes that arrive, with [`Edge::handle_control`] and
//!   [`Edge::handle_probe`];
//! - calls [`Edge::handle_deadline`] when [`Edge::next_deadline`] has come;
//! - and after each of the last three sends what [`Edge::poll_transmit`] gives, until `None`
//!   (after [`Edge::on_data`] too, which returns true if there may be something).
//!
//! All of them see packets and clocks. Only the [`Oracle`] sees links, through a [`LinkView`] that
//! whoever simulates the links hands to it.

mod cloud;
mod edge;
pub mod estimator;
mod message;
mod oracle;
mod peer;
mod round;

pub use cloud::{Cloud, Passage, PortView};
pub use congestlab_core::law::xcp_i::{Address, State};
pub use edge::{Edge, Role, Stats};
pub use estimator::{Answer, Bandwidth, Listener, Prober, Report};
pub use message::{CONTROL_SIZE, Message, NO_FLOW, Probe, Verb};
pub use oracle::{ErrorBase, LOOK_BACK, LinkView, Oracle, OracleConfig};

use congestlab_core::law::{LinkConfig, xcp, xcp_i};
use congestlab_core::units::{Duration, Ratio, SECOND};

/// One of the ways between two nodes. Whoever drives an edge numbers them, and says with each packet by
/// which it came; packets in return take the reverse of the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way(pub u32);

/// Another XCP-i node, and a way to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour {
    /// Address of the node.
    pub address: Address,
    /// Way to the node.
    pub way: Way,
}

impl From<Address> for Neighbour {
    /// Names a node to which there is one way.
    fn from(address: Address) -> Self {
        Self { address, way: Way::default() }
    }
}

/// Treatment of packets of a cloud whose bandwidth has yet to be learned (XI is silent). Where it was
/// known and reports come no more, there is no increase either way (ours): they are lost in a full queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoEstimate {
    /// With the oracle packets pass as they are. With other estimators packets get no increase while an answer is awaited, because
    /// a full cloud loses the probes; they pass where nobody answers (ours).
    #[default]
    Auto,
    /// Packets pass as they are: the paper's reading.
    Pass,
    /// Packets get no increase until there is an estimate.
    Hold,
}

/// Queue that the virtual router drains: Q of XI eq. 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VirtualQueue {
    /// The queue of the router with the oracle, that of the cloud with other estimators: those do not say 0 on
    /// a full path, but a little more, so that the cloud's queue would grow without end (ours).
    #[default]
    Auto,
    /// The queue of the router which runs it (XI III-A.4).
    Host,
    /// The part of the cloud's queue that is of this traffic: its rate times what one-way delays of
    /// the upstream neighbour's control packets are above their least.
    Cloud,
    /// No queue.
    None,
}

/// Settings of a node as the downstream edge of its clouds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Time limits of the exchange with the upstream edge.
    pub exchange: xcp_i::Config,
    /// Treatment of packets of a cloud without an estimate.
    pub no_estimate: NoEstimate,
    /// Queue that the virtual router drains.
    pub virtual_queue: VirtualQueue,
    /// True if bandwidths may be negative; otherwise those count as none (docs/design/protocols.md 3.5: on).
    pub signed: bool,
    /// Part of a positive bandwidth that is there to give away; 1 (XI). Less where other edges may
    /// give the same away at the same time (13.6). `None`: one part for each upstream neighbour that sends (ours).
    pub release: Option<Ratio>,
    /// Part of own traffic that is given back in each control interval; 0 (XI). Where edges share a
    /// link, those with more traffic give more, and what they leave is there for all (ours). `None`: [`GIVE_BACK`] where
    /// several upstream neighbours send, otherwise nothing.
    pub give_back: Option<Ratio>,
    /// The most upstream neighbours; one more takes the place of the least recently seen (A-09: 1024).
    pub table: usize,
    /// Law of the virtual routers, of XCP's family; its capacity does not matter.
    pub law: LinkConfig,
}

/// Part of own traffic that is given back in each control interval where several upstream neighbours send (ours). What they
/// leave of a full link is this part of it, whatever their number.
pub const GIVE_BACK: Ratio = Ratio::ppm(30_000);

/// Time for which an upstream neighbour counts as one that sends.
pub const SENDS: Duration = Duration(SECOND);

/// Returns the parts of a bandwidth that are there to give away, and of own traffic that are given back, where so many upstream
/// neighbours send. Each of them has the others' share of the same link in view, or a link of its own: nobody here can tell.
pub fn parts(release: Option<Ratio>, give_back: Option<Ratio>, sending: usize) -> (Ratio, Ratio) {
    let sending = u32::try_from(sending).unwrap_or(u32::MAX).max(1);
    let own = if sending > 1 { GIVE_BACK } else { Ratio::ppm(0) };
    (release.unwrap_or(Ratio(Ratio::ONE.0 / sending)), give_back.unwrap_or(own))
}

/// As a host's agent is: it has no virtual router of another law.
impl Default for Config {
    fn default() -> Self {
        Self::new(LinkConfig::Xcp(xcp::LinkConfig::default()))
    }
}

impl Config {
    /// Returns the defaults, with this law of the virtual routers.
    pub const fn new(law: LinkConfig) -> Self {
        Self {
            exchange: xcp_i::Config::DEFAULT,
            no_estimate: NoEstimate::Auto,
            virtual_queue: VirtualQueue::Auto,
            signed: true,
            release: None,
            give_back: None,
            table: 1024,
            law,
        }
    }
}

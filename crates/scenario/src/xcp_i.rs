//! XCP-i in scenarios: what the laws of the XCP family can be told beside their own settings.

use congestlab_core::units::{Duration, Kind};
use schemars::{Schema, SchemaGenerator};

use crate::decode::{Chance, Language, quantity, record, text_schema, words};
use crate::diagnostic::Findings;
use crate::estimator::Estimator;
use crate::tree::{Node, Value};

words! {
    /// What happens to packets of a cloud whose bandwidth is not known.
    NoEstimate {
        /// Nothing.
        Pass = "pass",
        /// No increase.
        Hold = "hold",
    }
}

words! {
    /// The queue that a virtual router drains.
    VirtualQueue {
        /// Of the router with the oracle, of the cloud with other estimators.
        Auto = "auto",
        /// Of the router that runs it.
        Host = "host",
        /// Of the cloud, from one-way delays.
        Cloud = "cloud",
        /// None.
        None = "none",
    }
}

record! {
    /// XCP-i on a link: the router is a node of XCP-i, and may be an edge of clouds.
    InteroperableLink {
        /// Find and bridge clouds of routers without XCP-i; false.
        interoperable: bool,
        /// How the bandwidth of the cloud behind or before the link is estimated: oracle (default), pathchirp, pathload, direct, passive.
        estimator: Estimator,
        /// Packets of a cloud without an estimate: pass (default), hold (no increase).
        no_estimate: NoEstimate,
        /// Queue that the virtual router drains: auto (default: host with the oracle, else cloud), host (of this router), cloud, none.
        virtual_queue: VirtualQueue,
        /// Estimates may be negative; true.
        signed: bool,
        /// Part of a positive estimate that is there to give away; 1. Less where edges share a link unseen.
        release: Chance,
        /// Part of the cloud's own traffic that is given back in each interval; 0.
        give_back: Chance,
        /// How often an estimate is asked for: interval (default: at the end of each control interval), or a time.
        period: Period,
        /// How long to wait for an answer, at least three round trips between the edges; 1 s.
        request_timeout: Duration,
        /// Requests until a path without answers counts as broken; 3.
        attempts: u32,
        /// How long packets of a broken path ask for nothing; 1 s.
        backoff: Duration,
        /// After how long without a packet an upstream neighbour is forgotten; 10 s.
        idle: Duration,
        /// For how many periods an estimate holds; 3.
        stale: u32,
        /// The most upstream neighbours, the least recently seen gives way; 1024.
        table: u32,
    }
}

record! {
    /// XCP-i on a flow: both hosts are nodes of XCP-i.
    InteroperableFlow {
        /// Carry the TTL by which routers find clouds; false.
        interoperable: bool,
    }
}

/// How often an estimate is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Period {
    Interval,
    Every(Duration),
}

impl Language for Period {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::String(word) if word == "interval" => Some(Self::Interval),
            _ => Duration::decode(node, findings).map(Self::Every),
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::Interval => Value::string("interval"),
            Self::Every(period) => period.encode(),
        }
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        let patterns = ["interval", &quantity(Kind::Duration)];
        text_schema("`interval`, or a time.", &patterns, &["interval", "200 ms"])
    }
}

impl InteroperableLink {
    /// The link is interoperable.
    pub(crate) fn is_on(&self) -> bool {
        self.interoperable.as_ref().is_some_and(|at| at.value)
    }
}

//! The settings of XCP-i in scenarios, which laws of the XCP family have beside their own.

use congestlab_core::units::{Duration, Kind, Ratio};
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::language::estimator::Estimator;
use congestlab_text::decode::{Chance, Language, quantity, record, text_schema, words};
use congestlab_text::diagnostic::Findings;
use congestlab_text::tree::{Node, Value};

words! {
    /// The treatment of packets of a cloud whose bandwidth is not known.
    NoEstimate {
        /// Pass with the oracle; with other estimators hold while an answer is awaited.
        Auto = "auto",
        /// Feedback to these packets is left as it is.
        Pass = "pass",
        /// Feedback to these packets is not positive.
        Hold = "hold",
    }
}

words! {
    /// The queue that a virtual router drains.
    VirtualQueue {
        /// The router's own with the oracle, the cloud's with other estimators.
        Auto = "auto",
        /// The queue of the router that runs the virtual router.
        Host = "host",
        /// The queue of the cloud, from one-way delays.
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
        /// Estimator of the bandwidth of the cloud behind or before the link: oracle (default), pathchirp,
        /// pathload, direct, passive.
        estimator: Estimator,
        /// Treatment of packets of a cloud before its first estimate: auto (default: pass with the oracle; with other estimators hold
        /// while an answer is awaited), pass, hold (no increase).
        no_estimate: NoEstimate,
        /// Queue that the virtual router drains: cloud (default), host (of this router, the paper's), auto (host with the oracle,
        /// else cloud), none.
        virtual_queue: VirtualQueue,
        /// Estimates may be negative; true.
        signed: bool,
        /// Part of a positive estimate that is there to give away: auto (default: all of it, divided by the number of upstream
        /// neighbours that send), or a part. Less where edges share a link unseen. XCP-i's paper: 1.
        release: Part,
        /// Part of the cloud's own traffic that is given back in each interval: auto (default: 0.03 where several upstream neighbours
        /// send, otherwise 0), or a part. XCP-i's paper: 0.
        give_back: Part,
        /// Time between two requests for an estimate: interval (default: the end of each control interval), or a time.
        period: Period,
        /// Time to wait for an answer, at least three round trips between the edges; 1 s.
        request_timeout: Duration,
        /// Requests until a path without answers counts as broken; 3.
        attempts: u32,
        /// Time for which packets of a broken path ask for nothing; 1 s.
        backoff: Duration,
        /// Time without a packet after which an upstream neighbour is forgotten; 10 s.
        idle: Duration,
        /// Number of periods for which an estimate holds; 3.
        stale: u32,
        /// Largest number of upstream neighbours, of which the least recently seen gives way; 1024.
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

/// A part of a whole, or `auto`: by the number of upstream neighbours that send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part {
    Auto,
    Of(Chance),
}

impl Part {
    /// Returns the part; `None`: auto.
    pub(crate) fn ratio(self) -> Option<Ratio> {
        match self {
            Self::Auto => None,
            Self::Of(part) => Some(part.ratio()),
        }
    }
}

impl Language for Part {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::String(word) if word == "auto" => Some(Self::Auto),
            _ => Chance::decode(node, findings).map(Self::Of),
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::Auto => Value::string("auto"),
            Self::Of(part) => part.encode(),
        }
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "const": "auto" }, { "type": "number", "minimum": 0, "maximum": 1 }] })
    }
}

/// The time between two requests for an estimate.
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

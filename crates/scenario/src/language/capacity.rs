//! Where a link's law has its capacity from while it runs, by the names that `congestlab router attach --capacity-from` has.

use congestlab_core::units::{Bytes, Duration};
use congestlab_net::capacity;
use congestlab_net::service::Service;
use schemars::{Schema, SchemaGenerator};

use congestlab_text::decode::{Language, below, choice_schema, fill, nothing_below, record, variant};
use congestlab_text::diagnostic::{Findings, Span, choices};
use congestlab_text::tree::{Node, Value};

record! {
    /// Word of the link's own trace.
    OfTrace {
        /// Time by which the law hears of it later; 0 s.
        delay: Duration,
    }
}

/// The source of a law's capacity.
#[derive(Clone, Debug)]
pub(crate) enum CapacityFrom {
    Drain,
    Qdisc,
    Trace(Box<OfTrace>),
}

const NAMES: [&str; 3] = ["drain", "qdisc", "trace"];

impl Language for CapacityFrom {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let variant = variant(node, findings)?;
        let kind = variant.name.split(':').next().unwrap_or_default().trim();
        let why = match (variant.name, kind) {
            ("drain", _) => return nothing_below(&variant, findings).map(|()| Self::Drain),
            ("qdisc", _) => return nothing_below(&variant, findings).map(|()| Self::Qdisc),
            ("trace", _) => return below(&variant, findings).map(|trace| Self::Trace(Box::new(trace))),
            (_, "command") => "what a command prints is not the same in each run",
            (_, "bql") => "a simulated link has no driver that counts bytes in flight",
            (_, "trace") => "the trace is the link's own, of its key `rate`",
            (name, _) => {
                let message = format!("`{}`: unknown source `{name}`", findings.place());
                findings.error("scenario::unknown-name", variant.span, message, choices(name, NAMES));
                return None;
            }
        };
        let message = format!("`{}` is `{kind}` of a router in the kernel: {why}", findings.place());
        let help = "allowed: drain, qdisc, trace or { trace = { delay = \"50 ms\" } }";
        findings.error("scenario::capacity", variant.span, message, help);
        None
    }

    fn encode(&self) -> Value {
        match self {
            Self::Drain => Value::string("drain"),
            Self::Qdisc => Value::string("qdisc"),
            Self::Trace(trace) => Value::table([("trace".into(), trace.encode())]),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        choice_schema(&NAMES, &[("trace", OfTrace::schema(generator))])
    }
}

impl CapacityFrom {
    /// Fills in what is absent, and refuses a source that the link has not.
    pub(crate) fn resolve(
        &mut self,
        span: Span,
        service: &Service,
        packet_size: u16,
        findings: &mut Findings,
    ) -> Option<capacity::CapacityFrom> {
        let has_trace = matches!(service, Service::Trace(_));
        let mut refuse = |name: &str, help: &str| {
            let rate = if has_trace { "a trace" } else { "no trace" };
            let message =
                format!("`{}.capacity_from` is {name}, but the link's rate is {rate}", findings.place());
            findings.error("scenario::capacity", span, message, help);
            None
        };
        match self {
            Self::Drain => Some(capacity::CapacityFrom::Drain { longest: Bytes(packet_size.into()) }),
            Self::Qdisc if has_trace => refuse("qdisc", "a trace states no rate: write trace or drain"),
            Self::Qdisc => Some(capacity::CapacityFrom::Stated),
            Self::Trace(trace) if has_trace => {
                let delay = fill(&mut trace.delay, span, || Duration(0)).value;
                Some(capacity::CapacityFrom::Trace { delay })
            }
            Self::Trace(_) => {
                refuse("trace", "write rate = { trace = \"file\" }, or the source drain or qdisc")
            }
        }
    }
}

//! Names of laws and disciplines: what is built, what is planned, and on which element it belongs.

use schemars::{Schema, SchemaGenerator, json_schema};

use congestlab_core::units::{BitRate, Duration, Ratio};

use crate::decode::{Chance, Language, Variant, record, table, unknown_key, variant, words};
use crate::diagnostic::{Findings, choices};
use crate::queue::Amount;
use crate::tree::{Node, Value};

/// The closed list of the contract, links.
const LINK_LAWS: &[&str] = &["xcp", "pxcp", "vcp", "mpcp", "dpcp", "tpcp"];
/// The closed list of the contract, flows.
const FLOW_LAWS: &[&str] = &[
    "xcp",
    "pxcp",
    "xcp-r",
    "xcp-r-v0",
    "vcp",
    "dpcp",
    "tpcp",
    "mpcp",
    "reno",
    "newreno",
    "sack",
    "fack",
    "highspeed",
    "cubic",
    "bbr",
    "peach",
    "peach-plus",
    "cbr",
    "onoff",
];
const DISCIPLINES: &[&str] = &["droptail", "prio-droptail", "red", "xcp-tcp"];

record! {
    /// Constants and switches of XCP on a link.
    XcpLink {
        /// Gain on the spare capacity; 0.4 (K02).
        alpha: Ratio,
        /// Gain on the persistent queue; 0.226 (K02).
        beta: Ratio,
        /// Part of the traffic that is shuffled; 0.1 (K02).
        gamma: Ratio,
        /// Capacity that the law is told; absent: the link's rate.
        capacity: BitRate,
        /// Capture feedback that was allocated upstream (draft-03, 4.2.3); true.
        capture: bool,
        /// Shortest control interval; 5 ms, with profile ns2 1 ms.
        min_interval: Duration,
        /// Longest control interval; 1 s.
        max_interval: Duration,
        /// XCP-i: planned.
        interoperable: bool,
    }
}

words! {
    /// What an XCP sender asks for.
    Request {
        /// What it can use.
        Demand = "demand",
        /// Always the most.
        Unlimited = "unlimited",
    }
}

words! {
    /// What an XCP sender does on loss.
    Loss {
        /// Halve once per window.
        Tcp = "tcp",
        /// Keep the window.
        Maintain = "maintain",
        /// Run TCP until XCP is the stricter.
        Fallback = "fallback",
    }
}

words! {
    /// Where the throughput that an XCP sender states comes from.
    StatedRate {
        /// Window over round trip time.
        Window = "window",
        /// Bytes handed to IP.
        Measured = "measured",
    }
}

/// Aging of the window towards the metered rate, once per round trip: the weight of that rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aging(pub(crate) Option<Ratio>);

impl Language for Aging {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match node.value {
            Value::Boolean(true) => Some(Self(Some(Ratio::ppm(500_000)))),
            Value::Boolean(false) => Some(Self(None)),
            _ => Chance::decode(node, findings)
                .map(|weight| Ratio::ppm((weight.0 * 1e6).round() as u32))
                .map(|weight| Self((weight.0 > 0).then_some(weight))),
        }
    }

    fn encode(&self) -> Value {
        self.0.map_or(Value::Boolean(false), |weight| weight.encode())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "boolean" }, { "type": "number", "minimum": 0, "maximum": 1 }] })
    }
}

record! {
    /// Switches of an XCP sender.
    XcpFlow {
        /// What to do on loss: tcp (default), maintain (P-XCP), fallback.
        loss: Loss,
        /// What to ask for: demand (default), unlimited (ns-2).
        request: Request,
        /// Keep the window within what the receiver advertises; true.
        clamp: bool,
        /// Once per round trip move the window towards the metered rate: true (weight 0.5), false (default), or the weight.
        aging: Aging,
        /// Pace at window over round trip time; false.
        pacing: bool,
        /// Where the stated throughput comes from: window (default), measured.
        rate: StatedRate,
        /// Weight of the flow's share (K02, 6); 1.
        price: Ratio,
        /// The most that the flow can use; absent: the rate of its access; without one, ten times its first link's.
        desired_rate: BitRate,
        /// xcp-r: number the changes that the sender makes on its own; true. false: as in the paper.
        epochs: bool,
        /// XCP-i: planned.
        interoperable: bool,
    }
}

record! {
    /// Datagrams at a constant rate.
    Cbr {
        /// The rate of whole IP packets.
        rate: BitRate = required,
    }
}

record! {
    /// Datagrams at a constant rate, with pauses.
    OnOff {
        /// While it sends.
        rate: BitRate = required,
        /// How long it sends; with random the mean.
        on: Duration = required,
        /// How long it is silent; with random the mean.
        off: Duration = required,
        /// Draw each span from the exponential distribution; false: periodic.
        random: bool,
    }
}

/// What a link runs.
#[derive(Clone, Debug)]
pub(crate) enum LinkLaw {
    Xcp(XcpLink),
}

/// What a flow runs.
#[derive(Clone, Debug)]
pub(crate) enum FlowLaw {
    Xcp(XcpFlow),
    XcpR(XcpFlow),
    Reno,
    NewReno,
    Sack,
    Cubic,
    /// Only a kernel's: live runs have it.
    Bbr,
    Cbr(Cbr),
    OnOff(OnOff),
}

impl FlowLaw {
    /// Sends datagrams and listens to nobody.
    pub(crate) fn is_source(&self) -> bool {
        matches!(self, Self::Cbr(_) | Self::OnOff(_))
    }
}

/// Refuses a name that is not built: it is planned, belongs elsewhere, or is nobody's.
fn refuse(
    variant: &Variant<'_>,
    element: &str,
    own: &[&str],
    other: &str,
    others: &[&str],
    findings: &mut Findings,
) {
    let (name, place) = (variant.name, findings.place());
    if own.contains(&name) {
        planned(name, variant.span, findings);
    } else if others.contains(&name) {
        let message = format!("`{place}`: `{name}` is a law of {other}, not of {element}");
        findings.error(
            "scenario::law",
            variant.span,
            message,
            format!("{element} can have: {}", own.join(", ")),
        );
    } else if DISCIPLINES.contains(&name) {
        let message = format!("`{place}`: `{name}` is a queue discipline, not a law of {element}");
        findings.error(
            "scenario::law",
            variant.span,
            message,
            format!("write discipline = \"{name}\" on a link"),
        );
    } else {
        let message = format!("`{place}`: unknown law `{name}`");
        findings.error("scenario::unknown-name", variant.span, message, choices(name, own.iter().copied()));
    }
}

fn planned(name: &str, span: crate::diagnostic::Span, findings: &mut Findings) {
    let message = format!("`{}`: `{name}` is planned, but not built yet", findings.place());
    let help = "built: links xcp; flows xcp, pxcp, xcp-r, reno, newreno, sack, cubic, cbr, onoff; \
                disciplines droptail, prio-droptail, red";
    findings.error("scenario::planned", span, message, help);
}

/// XCP-i is not built.
fn refuse_interoperable(key: &Option<crate::decode::At<bool>>, findings: &mut Findings) {
    if let Some(at) = key.as_ref().filter(|at| at.value) {
        planned("xcp-i (interoperable = true)", at.span, findings);
    }
}

fn below<T: Language>(variant: &Variant<'_>, findings: &mut Findings) -> Option<T> {
    findings.at.push(variant.name.into());
    let value = T::decode(&variant.below, findings);
    findings.at.pop();
    value
}

/// For choices without keys.
fn nothing_below(variant: &Variant<'_>, findings: &mut Findings) -> Option<()> {
    findings.at.push(variant.name.into());
    let table = table(&variant.below, &[], findings);
    table.into_iter().flat_map(|table| &table.0).for_each(|entry| unknown_key(entry, &[], findings));
    findings.at.pop();
    table.map(|_| ())
}

impl Language for LinkLaw {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let variant = variant(node, findings)?;
        if variant.name != "xcp" {
            refuse(&variant, "a link", LINK_LAWS, "a flow", FLOW_LAWS, findings);
            return None;
        }
        let xcp: XcpLink = below(&variant, findings)?;
        refuse_interoperable(&xcp.interoperable, findings);
        Some(Self::Xcp(xcp))
    }

    fn encode(&self) -> Value {
        let Self::Xcp(xcp) = self;
        Value::table([("xcp".into(), xcp.encode())])
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        choice_schema(LINK_LAWS, &[("xcp", XcpLink::schema(generator))])
    }
}

impl Language for FlowLaw {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let variant = variant(node, findings)?;
        let plain = |law, findings: &mut Findings| nothing_below(&variant, findings).map(|()| law);
        match variant.name {
            name @ ("xcp" | "xcp-r") => {
                let xcp: XcpFlow = below(&variant, findings)?;
                refuse_interoperable(&xcp.interoperable, findings);
                if name == "xcp-r" {
                    return Some(Self::XcpR(xcp));
                }
                if let Some(epochs) = &xcp.epochs {
                    let message = format!("`{}.xcp.epochs`: `xcp` has no epochs", findings.place());
                    findings.error("scenario::law", epochs.span, message, "only xcp-r has them");
                }
                Some(Self::Xcp(xcp))
            }
            // Contract 1: P-XCP's sender is XCP's that keeps its window on loss.
            "pxcp" => {
                nothing_below(&variant, findings)?;
                let loss = Some(crate::decode::At { value: Loss::Maintain, span: variant.span });
                Some(Self::Xcp(XcpFlow { loss, ..XcpFlow::default() }))
            }
            "reno" => plain(Self::Reno, findings),
            "newreno" => plain(Self::NewReno, findings),
            "sack" => plain(Self::Sack, findings),
            "cubic" => plain(Self::Cubic, findings),
            "bbr" if findings.is_live => plain(Self::Bbr, findings),
            "cbr" => below(&variant, findings).map(Self::Cbr),
            "onoff" => below(&variant, findings).map(Self::OnOff),
            _ => {
                refuse(&variant, "a flow", FLOW_LAWS, "a link", LINK_LAWS, findings);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::Xcp(xcp) => Value::table([("xcp".into(), xcp.encode())]),
            Self::XcpR(xcp) => Value::table([("xcp-r".into(), xcp.encode())]),
            Self::Reno => Value::string("reno"),
            Self::NewReno => Value::string("newreno"),
            Self::Sack => Value::string("sack"),
            Self::Cubic => Value::string("cubic"),
            Self::Bbr => Value::string("bbr"),
            Self::Cbr(cbr) => Value::table([("cbr".into(), cbr.encode())]),
            Self::OnOff(onoff) => Value::table([("onoff".into(), onoff.encode())]),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let tables = [
            ("xcp", XcpFlow::schema(generator)),
            ("xcp-r", XcpFlow::schema(generator)),
            ("cbr", Cbr::schema(generator)),
            ("onoff", OnOff::schema(generator)),
        ];
        choice_schema(FLOW_LAWS, &tables)
    }
}

/// A name, or a table of one of the forms.
pub(crate) fn choice_schema(names: &[&str], tables: &[(&str, Schema)]) -> Schema {
    let mut forms = vec![json_schema!({ "enum": names })];
    for (name, below) in tables {
        forms.push(json_schema!({
            "type": "object",
            "properties": { *name: below },
            "required": [name],
            "additionalProperties": false,
        }));
    }
    json_schema!({ "anyOf": forms })
}

record! {
    /// Random early detection.
    Red {
        /// Average queue from which packets go at random.
        min: Amount = required,
        /// Average queue from which all go; gentle: from twice of it.
        max: Amount = required,
        /// Probability just below max; 0.1.
        max_p: Chance,
        /// Weight of an arrival in the average; 0.002.
        weight: Chance,
        /// Let the probability rise from max_p to 1 between max and twice of it; false.
        gentle: bool,
        /// Mark packets of ECN-capable flows instead of dropping them at random; false.
        ecn: bool,
    }
}

/// Who gets into a queue.
#[derive(Clone, Debug)]
pub(crate) enum Discipline {
    DropTail,
    PrioDropTail,
    Red(Box<Red>),
}

impl Language for Discipline {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let variant = variant(node, findings)?;
        match variant.name {
            "droptail" => nothing_below(&variant, findings).map(|()| Self::DropTail),
            "prio-droptail" => nothing_below(&variant, findings).map(|()| Self::PrioDropTail),
            "red" => below(&variant, findings).map(|red| Self::Red(Box::new(red))),
            name if DISCIPLINES.contains(&name) => {
                planned(name, variant.span, findings);
                None
            }
            name => {
                let place = findings.place();
                let message = if LINK_LAWS.contains(&name) || FLOW_LAWS.contains(&name) {
                    format!("`{place}`: `{name}` is a law, not a queue discipline")
                } else {
                    format!("`{place}`: unknown discipline `{name}`")
                };
                let help = choices(name, DISCIPLINES.iter().copied());
                findings.error("scenario::unknown-name", variant.span, message, help);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::DropTail => Value::string("droptail"),
            Self::PrioDropTail => Value::string("prio-droptail"),
            Self::Red(red) => Value::table([("red".into(), red.encode())]),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        choice_schema(DISCIPLINES, &[("red", Red::schema(generator))])
    }
}

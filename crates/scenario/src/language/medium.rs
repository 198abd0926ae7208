//! The media of links: a wire for each direction, or one for both.

use congestlab_core::units::{Bytes, Kind};
use congestlab_net::medium::{self, Access, Config, Frame};
use schemars::{Schema, SchemaGenerator};

use congestlab_text::decode::{
    At, Language, below, choice_schema, fill, nothing_below, out_of_range, quantity, record, text_schema,
    unit, variant,
};
use congestlab_text::diagnostic::{Findings, Span};
use congestlab_text::tree::{Node, Value};

/// Back-offs of 2^20 slots: a minute on Ethernet.
const BACKOFF_LIMIT_MAX: u32 = 20;

/// Bytes on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Octets(u16);

impl Language for Octets {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let bytes: Bytes = unit(node, "an amount of data", "38 B", findings)?;
        let octets = u16::try_from(bytes.0).ok();
        if octets.is_none() {
            out_of_range(node.span, &bytes.to_string(), "0 B to 65535 B", findings);
        }
        octets.map(Self)
    }

    fn encode(&self) -> Value {
        Value::string(Bytes(self.0.into()).to_string())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        text_schema("Bytes on the wire.", &[&quantity(Kind::Bytes)], &["38 B"])
    }
}

record! {
    /// One wire: if both directions have packets, they take turns.
    SharedFair {
        /// Bytes of a frame beside the packet, with the gap; 38 B.
        overhead: Octets,
        /// Least size of a frame, with the overhead; 84 B.
        minimum: Octets,
        /// Silence behind a frame; 12 B.
        gap: Octets,
    }
}

record! {
    /// One wire: IEEE 802.3 decides. Times are those of so many bytes at the rate of the link.
    CsmaCd {
        /// Bytes of a frame beside the packet, with the gap; 38 B.
        overhead: Octets,
        /// Least size of a frame, with the overhead; 84 B.
        minimum: Octets,
        /// Silence behind a frame or a collision; 12 B.
        gap: Octets,
        /// Unit of back-off; 64 B.
        slot: Octets,
        /// Length of a collision; 6 B.
        jam: Octets,
        /// Collisions after which a packet is dropped; 16.
        attempts: u32,
        /// Collisions up to which the range of back-offs doubles; 10.
        backoff_limit: u32,
    }
}

/// The way in which both directions share a wire.
#[derive(Clone, Debug)]
pub(crate) enum Medium {
    FullDuplex,
    SharedFair(Box<SharedFair>),
    CsmaCd(Box<CsmaCd>),
}

const NAMES: [&str; 3] = ["full-duplex", "shared-fair", "csma-cd"];

impl Language for Medium {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let variant = variant(node, findings)?;
        match variant.name {
            "full-duplex" | "full_duplex" => nothing_below(&variant, findings).map(|()| Self::FullDuplex),
            "shared-fair" | "shared_fair" => {
                below(&variant, findings).map(|fair| Self::SharedFair(Box::new(fair)))
            }
            "csma-cd" | "csma_cd" => below(&variant, findings).map(|csma| Self::CsmaCd(Box::new(csma))),
            name => {
                let message = format!("`{}`: unknown medium `{name}`", findings.place());
                let help = format!("allowed: {}; the last two are half duplex", NAMES.join(", "));
                findings.error("scenario::unknown-name", variant.span, message, help);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::FullDuplex => Value::string("full-duplex"),
            Self::SharedFair(fair) => Value::table([("shared-fair".into(), fair.encode())]),
            Self::CsmaCd(csma) => Value::table([("csma-cd".into(), csma.encode())]),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let underscored = NAMES.map(|name| name.replace('-', "_"));
        let names: Vec<&str> = NAMES.into_iter().chain(underscored.iter().map(String::as_str)).collect();
        let (fair, csma) = (SharedFair::schema(generator), CsmaCd::schema(generator));
        let tables = [
            ("shared-fair", fair.clone()),
            ("shared_fair", fair),
            ("csma-cd", csma.clone()),
            ("csma_cd", csma),
        ];
        choice_schema(&names, &tables)
    }
}

impl Medium {
    /// Fills in what is absent; `None`: each direction has a wire of its own.
    pub(crate) fn resolve(&mut self, span: Span, place: &str, findings: &mut Findings) -> Option<Config> {
        let octets = |key: &mut Option<At<Octets>>, default: u16| fill(key, span, || Octets(default)).value.0;
        let Frame { overhead, minimum, gap } = Frame::ETHERNET;
        let (name, keys, access) = match self {
            Self::FullDuplex => return None,
            Self::SharedFair(fair) => {
                ("shared-fair", [&mut fair.overhead, &mut fair.minimum, &mut fair.gap], Access::Fair)
            }
            Self::CsmaCd(csma) => {
                let default = medium::CsmaCd::IEEE;
                let limit = fill(&mut csma.backoff_limit, span, || default.backoff_limit);
                if limit.value > BACKOFF_LIMIT_MAX {
                    let message = format!("`{place}.csma-cd.backoff_limit` is {}", limit.value);
                    let help = format!("allowed: 1 to {BACKOFF_LIMIT_MAX}");
                    findings.error("scenario::range", limit.span, message, help);
                }
                if let Some(slot) = csma.slot.as_ref().filter(|slot| slot.value.0 == 0) {
                    let message = format!("`{place}.csma-cd.slot` is 0 B");
                    let help = "allowed: above 0 B; without time between them both stations collide for ever";
                    findings.error("scenario::range", slot.span, message, help);
                }
                let access = medium::CsmaCd {
                    slot: octets(&mut csma.slot, default.slot),
                    jam: octets(&mut csma.jam, default.jam),
                    attempts: fill(&mut csma.attempts, span, || default.attempts).value,
                    backoff_limit: limit.value.min(BACKOFF_LIMIT_MAX),
                };
                let keys = [&mut csma.overhead, &mut csma.minimum, &mut csma.gap];
                ("csma-cd", keys, Access::CsmaCd(access))
            }
        };
        let [of_overhead, of_minimum, of_gap] = keys;
        let frame = Frame {
            overhead: octets(of_overhead, overhead),
            minimum: octets(of_minimum, minimum),
            gap: octets(of_gap, gap),
        };
        if frame.gap > frame.overhead {
            let message = format!(
                "`{place}.{name}` has a gap of {} B in an overhead of {} B",
                frame.gap, frame.overhead
            );
            let span = of_gap.as_ref().map_or(span, |at| at.span);
            findings.error("scenario::range", span, message, "the overhead includes the gap");
            return None;
        }
        Some(Config { frame, access })
    }
}

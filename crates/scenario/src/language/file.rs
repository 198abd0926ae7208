//! The keys of a scenario file. Their meaning is described in `docs/scenario.md`.

use congestlab_core::units::{BitRate, Bytes, Duration};
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::judging::claims::Claim;
use crate::judging::figure::Shown;
use crate::judging::grid::Lists;
use crate::judging::tolerances::Allowed;
use crate::language::capacity::CapacityFrom;
use crate::language::impairments::{Blackout, Ecn, GilbertElliott, Reordering, Switch};
use crate::language::law::{Discipline, FlowLaw, LinkLaw};
use crate::language::laws::Laws;
use crate::language::load::{Awnd, Gap, Load, Reader, Size};
use crate::language::medium::Medium;
use crate::language::queue::Amount;
use congestlab_text::decode::{
    At, Chance, Language, Named, PacketSize, below, choice_schema, integer, record, unknown_key, variant,
    words, wrong_type,
};
use congestlab_text::diagnostic::{Findings, choices};
use congestlab_text::tree;
use congestlab_text::tree::{Entry, Node, Value};

record! {
    /// A scenario: links, flows, and how long to watch them.
    File {
        /// Length of the run, and its seed.
        run: Run = required("`[run]`, and below it `duration = \"20 s\"`"),
        /// Records beside the results.
        measure: Series,
        /// Keys of a law for all links and flows that run it, unless they state the key themselves.
        laws: Laws,
        /// Links by name.
        links: Named<Link> = required("`[links.bottleneck]`, and below it `rate = \"10 Mbit/s\"` and `delay = \"20 ms\"`"),
        /// Groups of equal flows by name.
        flows: Named<Flow> = required("`[flows.ftp]`, and below it `law = \"cubic\"` and `path = [\"bottleneck\"]`"),
        /// The points of `congestlab sweep`.
        sweep: Lists,
        /// Claims about the results, to be judged.
        claims: Vec<At<Claim>>,
        /// Differences between simulation and real TCP that `congestlab compare` lets pass, with their reasons.
        tolerances: Vec<At<Allowed>>,
        /// Picture of the results: what `congestlab export figure` and papers draw.
        figure: Shown,
    }
}

record! {
    /// Length of a run, and its seed.
    Run {
        /// Simulated time.
        duration: Duration = required("`duration = \"20 s\"`"),
        /// Start of the measured time, which rates, means and percentiles are of; 0 s.
        warmup: Duration,
        /// Seed of every random stream; 1.
        seed: u64,
    }
}

record! {
    /// Records of a run beside its results.
    Series {
        /// Length of a bin of the time series; a hundredth of the duration.
        every: Duration,
    }
}

words! {
    /// The moment at which a link's law sees a packet depart.
    FeedbackAt {
        /// The start of the packet's transmission.
        Departure = "departure",
        /// The packet's arrival, as for a kernel's egress hook.
        Enqueue = "enqueue",
    }
}

words! {
    /// An implementation whose ways a link follows.
    LinkProfile {
        /// ns-2.35.
        Ns2 = "ns2",
        /// The Linux implementation of XCP in a thesis of 2005.
        Thesis = "thesis",
    }
}

words! {
    /// An implementation whose ways a flow follows.
    FlowProfile {
        /// ns-2.35.
        Ns2 = "ns2",
        /// The Linux implementation of XCP in a thesis of 2005.
        Thesis = "thesis",
        /// The TCP of today's Linux.
        Linux = "linux",
    }
}

words! {
    /// Slow starts of Linux's profile.
    SlowStart {
        /// Until something is lost.
        Standard = "standard",
        /// Ha and Rhee, 2008.
        HyStart = "hystart",
        /// RFC 9406.
        HyStartPlus = "hystart++",
    }
}

words! {
    /// Lies of receivers about what links say.
    Lie {
        /// The best that a header can say.
        Most = "most",
        /// The requests of data.
        Asked = "asked",
        /// The increases alone.
        Increases = "increases",
    }
}

words! {
    /// Ways of repairing losses.
    Recovery {
        /// RFC 6675.
        Sack = "sack",
        /// Mathis and Mahdavi 1996.
        Fack = "fack",
        /// RFC 6582.
        NewReno = "newreno",
        /// RFC 5681.
        Reno = "reno",
    }
}

words! {
    /// Event that completes the write of a burst.
    Wait {
        /// The data fit into the send buffer.
        Write = "write",
        /// The data are acknowledged.
        Ack = "ack",
    }
}

record! {
    /// A link: the output port of a router and the wire behind it, and the same the other way.
    Link {
        /// Router whose output port this is; a router of the link's own, named after it.
        at: String,
        /// Capacity: a rate, { steps = [["0 s", "100 Mbit/s"], ...] } or { trace = "file" }.
        rate: Rate,
        /// Propagation delay, one way; 0 s.
        delay: Duration,
        /// Sharing of the wire by both directions: full-duplex (absent), shared-fair, csma-cd, or a table of one of
        /// these.
        medium: Medium,
        /// Limit of the queue; 1 BDP, or 100 packets on a link that no flow crosses.
        queue: Amount,
        /// Packet size by which packets, BDP and packet error rates are converted; 1500 B.
        packet_size: PacketSize,
        /// Queue discipline: droptail (default), prio-droptail, { red = { ... } }.
        discipline: Discipline,
        /// Control law; absent: a legacy router.
        law: LinkLaw,
        /// Source of the law's capacity while it runs: drain, qdisc or trace; absent: `capacity` of the law, or the link's rate.
        capacity_from: CapacityFrom,
        /// Errors on the wire.
        error: Errors,
        /// Probability of losing a pure ACK on the wire; 0.
        ack_loss: Chance,
        /// Times in which no pure ACK reaches the far end.
        ack_blackout: Vec<At<Blackout>>,
        /// Packets that are delayed, so that others overtake them.
        reorder: Reordering,
        /// Rewriting of the ECN field on the wire, as middleboxes do it: clear, or codes by code, such as { ect1 = "00" }.
        ecn: Ecn,
        /// Moment at which the law sees a packet depart: departure (default; its transmission begins), enqueue.
        feedback_at: FeedbackAt,
        /// Records of a policer of senders that lie to XCP's law or do not listen; 0 (default): there is none.
        police: Police,
        /// XCP takes headers as they come. ns2: shortest control interval 1 ms. thesis: grants alpha C when nothing came, as TH's router.
        profile: LinkProfile,
        /// The other direction; absent keys mirror this one.
        reverse: Reverse,
    }
}

/// The most records of a policer, 96 MB.
const POLICE_MAX: u32 = 1_000_000;

/// Records of a policer; 0: there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Police(pub(crate) u32);

impl Language for Police {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        integer(node, 0, POLICE_MAX.into(), findings).map(Self)
    }

    fn encode(&self) -> Value {
        Value::Integer(self.0.into())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": POLICE_MAX })
    }
}

/// The other direction of a link: the keys of a link, none required, and no reverse. True if it states `law = "none"`, so that
/// it is no mirror of the link's law.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reverse(pub(crate) Box<Link>, pub(crate) bool);

impl Language for Reverse {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let (node, is_bare) = tree::without_law_none(node);
        let link = Link::decode(&node, findings)?;
        if let (Some(_), Value::Table(table)) = (&link.reverse, &node.value) {
            let entries = table.0.iter().filter(|entry| entry.key == "reverse");
            entries.for_each(|entry| unknown_key(entry, &[], findings));
        }
        Some(Self(Box::new(link), is_bare))
    }

    fn encode(&self) -> Value {
        let mut link = self.0.encode();
        if let (true, Value::Table(table)) = (self.1, &mut link) {
            let node = Node::unplaced(Value::string(tree::NONE));
            table.0.push(Entry { key: "law".into(), span: node.span, node });
        }
        link
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        Link::schema(generator)
    }
}

/// The capacity of a link over time.
#[derive(Clone, Debug)]
pub(crate) enum Rate {
    Fixed(BitRate),
    Steps(Vec<At<Step>>),
    /// A file in mahimahi's format, relative to the scenario.
    Trace(At<String>),
}

/// A rate from a time on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) from: Duration,
    pub(crate) rate: BitRate,
}

impl Language for Step {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::Array(nodes) if nodes.len() == 2 => {
                let from = Duration::decode(&nodes[0], findings);
                let rate = BitRate::decode(&nodes[1], findings);
                Some(Self { from: from?, rate: rate? })
            }
            _ => {
                wrong_type(node, "a step", "a step is a pair, such as [\"20 s\", \"50 Mbit/s\"]", findings);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        Value::array([self.from.encode(), self.rate.encode()])
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let pair = [Duration::schema(generator), BitRate::schema(generator)];
        json_schema!({ "type": "array", "items": pair, "minItems": 2, "maxItems": 2 })
    }
}

impl Language for Rate {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        if !matches!(node.value, Value::Table(_)) {
            return BitRate::decode(node, findings).map(Self::Fixed);
        }
        let variant = variant(node, findings)?;
        findings.at.push(variant.name.into());
        let rate = match variant.name {
            "steps" => Vec::decode(&variant.below, findings).map(Self::Steps),
            "trace" => String::decode(&variant.below, findings)
                .map(|value| Self::Trace(At { value, span: variant.below.span })),
            name => {
                findings.at.pop();
                let message = format!("unknown key `{name}` in `{}`", findings.place());
                findings.error(
                    "scenario::unknown-key",
                    variant.span,
                    message,
                    choices(name, ["steps", "trace"]),
                );
                return None;
            }
        };
        findings.at.pop();
        rate
    }

    fn encode(&self) -> Value {
        match self {
            Self::Fixed(rate) => rate.encode(),
            Self::Steps(steps) => Value::table([("steps".into(), steps.encode())]),
            Self::Trace(path) => Value::table([("trace".into(), path.value.encode())]),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let tables = [("steps", Vec::<At<Step>>::schema(generator)), ("trace", String::schema(generator))];
        let mut schema = choice_schema(&[], &tables);
        if let Some(serde_json::Value::Array(forms)) = schema.get_mut("anyOf") {
            forms[0] = BitRate::schema(generator).into();
        }
        schema
    }
}

record! {
    /// Errors on the wire: one of the three.
    Errors {
        /// Probability of an error in a packet of packet_size; other sizes by the bit error rate that it implies.
        packet_error_rate: Chance,
        /// Probability of an error in each bit.
        bit_error_rate: Chance,
        /// Errors in bursts.
        gilbert_elliott: GilbertElliott,
    }
}

record! {
    /// A hop of a flow's own: unlimited queue, no law, no errors.
    Hop {
        /// Rate of each direction.
        rate: BitRate = required("`rate = \"100 Mbit/s\"`"),
        /// Propagation delay, one way; 0 s.
        delay: Duration,
    }
}

record! {
    /// A group of equal flows.
    Flow {
        /// Control law, or source of datagrams.
        law: FlowLaw = required("`law = \"cubic\"`"),
        /// Number of flows; 1.
        count: u32,
        /// Links that the data crosses, in order.
        path: Vec<At<String>> = required("`path = [\"bottleneck\"]`, with the names of links"),
        /// Other paths from later times on.
        switch: Vec<At<Switch>>,
        /// First hop, if each flow has one of its own; absent: none.
        access: Hop,
        /// Last hop, if each flow has one of its own; absent: none.
        exit: Hop,
        /// Size of a full data packet, the whole IP packet; 1500 B.
        segment: PacketSize,
        /// Size of a SYN, a pure ACK, a FIN, a probe ACK; 40 B.
        ack: PacketSize,
        /// Window that the receiver advertises: an amount, or { from, per_ack, to }; absent: unlimited.
        awnd: Awnd,
        /// A receiver that reads slowly: { rate, buffer }; absent: it reads at once.
        receiver: Reader,
        /// Acknowledge every second segment; false.
        delayed_ack: bool,
        /// Lie of the receivers about what links say: most, the best that a header can say; asked, what data asked for; increases, what
        /// asks for less is left out; absent: the truth.
        lie: Lie,
        /// Start times of the flows; 0 s.
        start: Start,
        /// Time from which the flows send no new data; absent: the end of the run.
        stop: Duration,
        /// Number of flows that are active from each time on, for cbr and onoff: [["0 s", 0], ["5 s", 9]]; absent: all.
        schedule: Vec<At<Load>>,
        /// Amount that each flow sends, or { pareto = { shape, mean } }; absent: no end.
        size: Size,
        /// Initial window, packets; 1 for XCP, RFC 5681's by the segment otherwise.
        initial_window: u32,
        /// Lower bound of the retransmission timeout; 1 s.
        min_rto: Duration,
        /// Way of repairing losses: sack (default), fack, newreno, reno.
        recovery: Recovery,
        /// Explicit congestion notification; false.
        ecn: bool,
        /// ns2: Reno recovery, initial window 2, minimum RTO 0.2 s, feedback of duplicate ACKs dropped. thesis: XCP's sender as TH built it.
        /// linux: RACK-TLP, PRR, byte counting, initial window 10, minimum RTO 0.2 s and delayed ACKs of Linux's TCP.
        profile: FlowProfile,
        /// Slow start of profile linux: standard, hystart (Linux's CUBIC), or hystart++ (RFC 9406); hystart for CUBIC, standard for others.
        slow_start: SlowStart,
        /// Pattern in which the application has data; absent: always.
        app: App,
    }
}

/// Start times of the flows of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    /// All flows start at this time.
    At(Duration),
    /// Flows start one after the other.
    Every { every: Duration, from: Duration },
    /// Each flow starts at a random time before this.
    Uniform(Duration),
    /// Flows start one after the other, with exponentially distributed gaps of this mean.
    Poisson { gap: Duration, from: Duration },
}

record! {
    /// Starts spread over time: every and from, poisson and from, or uniform.
    Spread {
        /// Time from one start to the next.
        every: Duration,
        /// Start of the first flow; 0 s.
        from: Duration,
        /// Time before which each flow starts, independently and uniformly distributed.
        uniform: Duration,
        /// Starts as a Poisson process: arrivals per second ("20 /s"), or their mean distance.
        poisson: Gap,
    }
}

impl Language for Start {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        if !matches!(node.value, Value::Table(_)) {
            return Duration::decode(node, findings).map(Self::At);
        }
        let before = findings.has_errors();
        let spread = Spread::decode(node, findings)?;
        match (spread.every, spread.from, spread.uniform, spread.poisson) {
            (Some(every), from, None, None) => {
                Some(Self::Every { every: every.value, from: from.map_or(Duration(0), |at| at.value) })
            }
            (None, None, Some(uniform), None) => Some(Self::Uniform(uniform.value)),
            (None, from, None, Some(gap)) => {
                Some(Self::Poisson { gap: gap.value.0, from: from.map_or(Duration(0), |at| at.value) })
            }
            _ => {
                // An unreadable key has its own finding.
                if !findings.has_errors() || before {
                    let message = format!("`{}` is no way to spread starts", findings.place());
                    let help = "write { every = \"2 s\", from = \"0 s\" }, { poisson = \"20 /s\" } or { uniform = \"1 s\" }";
                    findings.error("scenario::type", node.span, message, help);
                }
                None
            }
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::At(time) => time.encode(),
            Self::Every { every, from } => {
                Value::table([("every".into(), every.encode()), ("from".into(), from.encode())])
            }
            Self::Uniform(within) => Value::table([("uniform".into(), within.encode())]),
            Self::Poisson { gap, from } => {
                Value::table([("poisson".into(), gap.encode()), ("from".into(), from.encode())])
            }
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [Duration::schema(generator), Spread::schema(generator)] })
    }
}

record! {
    /// Writes of one size with pauses between.
    Bursts {
        /// Size of a write.
        size: Bytes = required,
        /// Time from the completion of a write to the next one.
        pause: Duration = required,
        /// Event that completes a write: write (default; the data fit into the send buffer), ack.
        wait: Wait,
        /// Send buffer: unsent and unacknowledged data; 16 MB.
        buffer: Bytes,
    }
}

/// The pattern in which an application has data.
#[derive(Clone, Debug)]
pub(crate) enum App {
    Bursts(Bursts),
    /// A segment at a time, at this rate.
    Rate(BitRate),
}

impl Language for App {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let variant = variant(node, findings)?;
        match variant.name {
            "rate" => below(&variant, findings).map(Self::Rate),
            "bursts" => below(&variant, findings).map(Self::Bursts),
            _ => {
                let message = format!("unknown `{}` \"{}\"", findings.place(), variant.name);
                let help = "allowed: { bursts = { size = \"1 MB\", pause = \"1 s\" } }, { rate = \"1 Mbit/s\" }; absent: always \
                            has data";
                findings.error("scenario::unknown-name", variant.span, message, help);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::Bursts(bursts) => Value::table([("bursts".into(), bursts.encode())]),
            Self::Rate(rate) => Value::table([("rate".into(), rate.encode())]),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let forms = [("bursts", Bursts::schema(generator)), ("rate", BitRate::schema(generator))];
        let form = |(name, schema): &(&str, Schema)| {
            json_schema!({
                "type": "object",
                "properties": { *name: schema },
                "required": [name],
                "additionalProperties": false,
            })
        };
        json_schema!({ "anyOf": forms.iter().map(form).collect::<Vec<_>>() })
    }
}

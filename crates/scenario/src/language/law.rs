//! Names of laws and disciplines, and on which element each belongs.

use congestlab_core::law::{LinkConfig, SenderConfig, queue};
use congestlab_core::units::{BitRate, Duration};
use schemars::{Schema, SchemaGenerator};

use crate::language::classes::XcpTcp;
use crate::language::queue::Amount;
use crate::language::settings::{Chosen, Configuration, built, schemas};
use crate::language::xcp_i::{InteroperableFlow, InteroperableLink};
use congestlab_text::decode::{
    Chance, Language, Variant, below, choice_schema, nothing_below, record, variant, words,
};
use congestlab_text::diagnostic::{Findings, choices, nearest};
use congestlab_text::tree::{NONE, Node, Value};

const DISCIPLINES: &[&str] = queue::Discipline::NAMES;

record! {
    /// Datagrams at a constant rate.
    Cbr {
        /// Rate of whole IP packets.
        rate: BitRate = required,
    }
}

record! {
    /// Datagrams at a constant rate, with pauses.
    OnOff {
        /// Rate of whole IP packets while it sends.
        rate: BitRate = required,
        /// Time of sending; the mean if random.
        on: Duration = required,
        /// Time of silence; the mean if random.
        off: Duration = required,
        /// Draw each span from the exponential distribution; false: periodic.
        random: bool,
    }
}

/// The law of a link, with its settings.
#[derive(Clone, Debug)]
pub(crate) struct LinkLaw(pub(crate) Box<Chosen<LinkConfig>>);

/// The law or source of a flow, with its settings.
#[derive(Clone, Debug)]
pub(crate) enum FlowLaw {
    Sender(Box<Chosen<SenderConfig>>),
    Cbr(Cbr),
    OnOff(OnOff),
}

/// Datagrams, and what else a flow can run that is no law of a sender.
const SOURCES: &[&str] = &["cbr", "onoff"];

fn link_laws() -> Vec<&'static str> {
    built::<LinkConfig>().chain(presets::<LinkConfig>()).collect()
}

/// Names of the presets that run here.
fn presets<C: Configuration>() -> impl Iterator<Item = &'static str> {
    C::presets().iter().map(|preset| preset.name)
}

fn flow_laws() -> Vec<&'static str> {
    built::<SenderConfig>().chain(presets::<SenderConfig>()).chain(SOURCES.iter().copied()).collect()
}

/// Returns the names of the laws that can take the place of a paper's own.
pub fn senders() -> Vec<&'static str> {
    built::<SenderConfig>().collect()
}

/// Returns the names of presets that flows can have as their law, such as `xcp-pir`.
pub fn sender_presets() -> Vec<&'static str> {
    presets::<SenderConfig>().collect()
}

/// Returns the law that a name stands for, on a link or of a flow: that of a preset, or the name itself.
pub fn law_of(name: &str, is_link: bool) -> &str {
    let presets = if is_link { LinkConfig::presets() } else { SenderConfig::presets() };
    presets.iter().find(|preset| preset.name == name).map_or(name, |preset| preset.law)
}

/// Returns the keys of XCP-i that a link or a flow takes beside those of its law; none if the law can not run with it.
pub fn interoperable_keys(law: &str, is_link: bool) -> &'static [&'static str] {
    fn takes<C: Configuration>(law: &str) -> bool {
        C::all().any(|known| known.name == law && known.config.is_interoperable())
    }
    match is_link {
        true if takes::<LinkConfig>(law) => InteroperableLink::KEYS,
        false if takes::<SenderConfig>(law) => InteroperableFlow::KEYS,
        _ => &[],
    }
}

/// Returns the names of the laws that have settings, of links or of flows.
pub(crate) fn with_keys() -> Vec<&'static str> {
    let of_link = LinkConfig::all().map(|known| (known.name, Chosen::keys(known)));
    let of_flow = SenderConfig::all().map(|known| (known.name, Chosen::keys(known)));
    let mut names = Vec::new();
    for (name, keys) in of_flow.chain(of_link) {
        if !keys.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Every law that a link or a flow can have.
#[cfg(test)]
pub(crate) fn all() -> Vec<&'static str> {
    let mut all = flow_laws();
    all.extend(link_laws());
    all
}

/// Returns the link law that belongs to flows with a law; `None`: links need none.
pub fn link_law_of(flow: &str) -> Option<&'static str> {
    let own = link_laws().into_iter().find(|name| *name == flow);
    own.or_else(|| flow.starts_with("xcp").then_some("xcp"))
}

impl LinkLaw {
    /// Settings of XCP-i, if the law has them.
    pub(crate) fn xcp_i(&self) -> Option<&InteroperableLink> {
        self.0.config.is_steered().then_some(&self.0.beside)
    }
}

impl FlowLaw {
    /// Name of the law in scenarios.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sender(chosen) => chosen.name,
            Self::Cbr(_) => "cbr",
            Self::OnOff(_) => "onoff",
        }
    }

    /// True if the hosts are nodes of XCP-i; `None`: they can not be.
    pub(crate) fn is_interoperable(&self) -> Option<bool> {
        let Self::Sender(chosen) = self else { return None };
        let key = &chosen.beside.interoperable;
        chosen.config.needs().is_interoperable.then(|| key.as_ref().is_some_and(|at| at.value))
    }

    /// Sends datagrams and listens to nobody.
    pub(crate) fn is_source(&self) -> bool {
        matches!(self, Self::Cbr(_) | Self::OnOff(_))
    }
}

/// Returns the queue discipline of this name, however the name separates words: `fq_codel`.
fn discipline_of(name: &str) -> Option<&'static str> {
    let letters = |name: &str| name.replace(['_', '-', ' '], "").to_lowercase();
    DISCIPLINES.iter().copied().find(|discipline| letters(discipline) == letters(name))
}

/// Returns the queue discipline whose name is near, if that of no law is.
fn discipline_near(name: &str, laws: &[&str]) -> Option<&'static str> {
    let is_law = nearest(name, laws.iter().copied()).is_some();
    nearest(name, DISCIPLINES.iter().copied()).filter(|_| !is_law)
}

/// Refuses a name that belongs elsewhere or is nobody's.
fn refuse(
    variant: &Variant<'_>,
    element: &str,
    own: &[&str],
    other: &str,
    others: &[&str],
    findings: &mut Findings,
) {
    let (name, place) = (variant.name, findings.place());
    if others.contains(&name) {
        let message = format!("`{place}`: `{name}` is a law of {other}, not of {element}");
        findings.error(
            "scenario::law",
            variant.span,
            message,
            format!("{element} can have: {}", own.join(", ")),
        );
    } else if let Some(discipline) = discipline_of(name) {
        let message = format!("`{place}`: `{name}` is a queue discipline, not a law of {element}");
        let help = format!("write discipline = \"{discipline}\" on a link");
        findings.error("scenario::law", variant.span, message, help);
    } else {
        let message = format!("`{place}`: unknown law `{name}`");
        let help = match discipline_near(name, own) {
            Some(discipline) => {
                format!("did you mean the queue discipline? Write discipline = \"{discipline}\" on a link")
            }
            None => choices(name, own.iter().copied()).into(),
        };
        findings.error("scenario::unknown-name", variant.span, message, help);
    }
}

impl Language for LinkLaw {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let variant = variant(node, findings)?;
        let Some(chosen) = Chosen::decode(&variant, findings) else {
            let own: Vec<_> = link_laws().into_iter().chain([NONE]).collect();
            refuse(&variant, "a link", &own, "a flow", &flow_laws(), findings);
            return None;
        };
        let chosen = chosen?;
        Some(Self(Box::new(chosen)))
    }

    fn encode(&self) -> Value {
        self.0.encode()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let own: Vec<_> = link_laws().into_iter().chain([NONE]).collect();
        choice_schema(&own, &schemas::<LinkConfig>(generator))
    }
}

impl Language for FlowLaw {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let variant = variant(node, findings)?;
        if let Some(chosen) = Chosen::decode(&variant, findings) {
            let chosen = chosen?;
            return Some(Self::Sender(Box::new(chosen)));
        }
        match variant.name {
            "cbr" => below(&variant, findings).map(Self::Cbr),
            "onoff" => below(&variant, findings).map(Self::OnOff),
            _ => {
                refuse(&variant, "a flow", &flow_laws(), "a link", &link_laws(), findings);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::Sender(chosen) => chosen.encode(),
            Self::Cbr(cbr) => Value::table([("cbr".into(), cbr.encode())]),
            Self::OnOff(onoff) => Value::table([("onoff".into(), onoff.encode())]),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let mut tables = schemas::<SenderConfig>(generator);
        tables.push(("cbr", Cbr::schema(generator)));
        tables.push(("onoff", OnOff::schema(generator)));
        choice_schema(&flow_laws(), &tables)
    }
}

record! {
    /// Random early detection.
    Red {
        /// Average queue from which packets are dropped or marked at random.
        min: Amount = required,
        /// Average queue from which all packets are dropped or marked; gentle: from twice of it.
        max: Amount = required,
        /// Probability just below max; 0.1.
        max_p: Chance,
        /// Weight of an arrival in the average; 0.002.
        weight: Chance,
        /// Let the probability rise from max_p to 1 between max and twice of it; false.
        gentle: bool,
        /// Mark packets of ECN-capable flows instead of dropping them at random; false.
        ecn: bool,
        /// Let 1/p packets pass after one that was dropped or marked, as ns-2's `wait_`; false.
        wait: bool,
        /// Mark only where the probability is below a tenth, and drop from there on, as ns-2's `use_mark_p_`; false.
        use_mark_p: bool,
    }
}

record! {
    /// A full queue drops probes to make room for data.
    PrioDropTail {
        /// Queue above which an arriving probe is dropped; absent: only a full queue drops it.
        probe_threshold: Amount,
    }
}

words! {
    /// When a queue that marks is looked at.
    StepAt {
        /// When a packet arrives.
        Enqueue = "enqueue",
        /// When a packet leaves.
        Dequeue = "dequeue",
    }
}

record! {
    /// Marks packets of ECN-capable flows that meet a longer queue, by the queue as it is (RFC 8257, 3.1).
    Step {
        /// Queue above which packets are marked, beside the packet itself.
        above: Amount,
        /// Wait above which packets are marked when they leave, in the place of `above`.
        sojourn: Duration,
        /// When the queue is looked at; "enqueue".
        at: StepAt,
        /// Drop packets of flows without ECN where they would be marked; false.
        drop: bool,
    }
}

/// The discipline of a queue.
#[derive(Clone, Debug)]
pub(crate) enum Discipline {
    DropTail,
    PrioDropTail(PrioDropTail),
    Red(Box<Red>),
    Step(Step),
    XcpTcp(Box<XcpTcp>),
    /// One that tells its settings itself.
    Told(Box<Chosen<queue::Discipline>>),
}

impl Language for Discipline {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let variant = variant(node, findings)?;
        if let Some(chosen) = Chosen::decode(&variant, findings) {
            return chosen.map(|chosen| Self::Told(Box::new(chosen)));
        }
        match variant.name {
            "droptail" => nothing_below(&variant, findings).map(|()| Self::DropTail),
            "prio-droptail" => below(&variant, findings).map(Self::PrioDropTail),
            "red" => below(&variant, findings).map(|red| Self::Red(Box::new(red))),
            "step" => below(&variant, findings).map(Self::Step),
            "xcp-tcp" => below(&variant, findings).map(|classes| Self::XcpTcp(Box::new(classes))),
            name => {
                let place = findings.place();
                let (is_link, is_flow) = (link_laws().contains(&name), flow_laws().contains(&name));
                let (message, help) = if is_link || is_flow {
                    let element = if is_link { "the link" } else { "a flow" };
                    let message = format!("`{place}`: `{name}` is a law, not a queue discipline");
                    (message, format!("write law = \"{name}\" on {element}"))
                } else {
                    let message = format!("`{place}`: unknown discipline `{name}`");
                    (message, choices(name, DISCIPLINES.iter().copied()).into())
                };
                findings.error("scenario::unknown-name", variant.span, message, help);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        match self {
            Self::DropTail => Value::string("droptail"),
            Self::PrioDropTail(PrioDropTail { probe_threshold: None }) => Value::string("prio-droptail"),
            Self::PrioDropTail(prio) => Value::table([("prio-droptail".into(), prio.encode())]),
            Self::Red(red) => Value::table([("red".into(), red.encode())]),
            Self::Step(step) => Value::table([("step".into(), step.encode())]),
            Self::XcpTcp(classes) => Value::table([("xcp-tcp".into(), classes.encode())]),
            Self::Told(chosen) => chosen.encode(),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let mut tables = vec![
            ("prio-droptail", PrioDropTail::schema(generator)),
            ("red", Red::schema(generator)),
            ("step", Step::schema(generator)),
            ("xcp-tcp", XcpTcp::schema(generator)),
        ];
        tables.extend(schemas::<queue::Discipline>(generator));
        choice_schema(DISCIPLINES, &tables)
    }
}

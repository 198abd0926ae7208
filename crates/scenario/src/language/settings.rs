//! Laws in scenarios, of links, flows and queues: decoder, writer and schema of whatever a law of `congestlab-core` says
//! that it can be told.

use std::fmt::Debug;

use congestlab_core::law::queue::Discipline;
use congestlab_core::law::settings::{Field, Settings};
use congestlab_core::law::words::Followed;
use congestlab_core::law::{LinkConfig, Protocol, SenderConfig};
use congestlab_core::units::{BitRate, Duration, Ratio};
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::language::xcp_i::{InteroperableFlow, InteroperableLink};
use congestlab_text::decode::{
    At, Chance, Language, Variant, integer, table, table_schema, unknown_key, value, word,
};
use congestlab_text::diagnostic::{Findings, Span};
use congestlab_text::tree::{Entry, Node, Table, Value};

/// A key: its name, its meaning, its schema, and true if it must be there.
type Described = (&'static str, &'static str, Schema, bool);

/// XCP-i: what the laws of the XCP family can be told beside their own settings.
pub(crate) trait Beside: Language + Clone + Debug + Default {
    /// Names of the keys.
    const NAMES: &[&str];
    /// The same, described.
    fn described(generator: &mut SchemaGenerator) -> Vec<Described>;
}

impl Beside for InteroperableLink {
    const NAMES: &[&str] = Self::KEYS;

    fn described(generator: &mut SchemaGenerator) -> Vec<Described> {
        Self::keys(generator)
    }
}

impl Beside for InteroperableFlow {
    const NAMES: &[&str] = Self::KEYS;

    fn described(generator: &mut SchemaGenerator) -> Vec<Described> {
        Self::keys(generator)
    }
}

impl Beside for () {
    const NAMES: &[&str] = &[];

    fn described(_: &mut SchemaGenerator) -> Vec<Described> {
        Vec::new()
    }
}

/// A law that can be written, with what it is if nothing more is.
#[derive(Clone, Debug)]
pub(crate) struct Known<C> {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) config: C,
}

/// The configuration of a law, on links, on flows, or of a link's queue.
pub(crate) trait Configuration: Settings + Clone + 'static {
    /// Key under which it is written.
    const KEY: &str = "law";
    /// Settings beside the law's own, for the XCP family.
    type Beside: Beside;
    /// The laws that run here, in the order of their list.
    fn all() -> impl Iterator<Item = Known<Self>>;
    /// Takes the keys of [`Configuration::Beside`].
    fn is_interoperable(&self) -> bool;
    /// Returns the names of presets that run here.
    fn presets() -> &'static [Preset] {
        &[]
    }
}

/// Name for a law with some of its keys set; a key that a scenario writes beside it wins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preset {
    /// Name of the preset.
    pub(crate) name: &'static str,
    /// Law that it stands for.
    pub(crate) law: &'static str,
    /// Keys with a word.
    words: &'static [(&'static str, &'static str)],
    /// Keys that are true.
    switches: &'static [&'static str],
}

impl Preset {
    /// P-XCP, XCP-i and XCP-r together, on links: shares of limited flows, edges of clouds.
    const PIR_OF_LINKS: Self = Self {
        name: "xcp-pir",
        law: "pxcp",
        words: &[("virtual_queue", "cloud")],
        switches: &["interoperable"],
    };
    /// The same of flows: a window that the receiver keeps, and that no loss takes away.
    const PIR_OF_FLOWS: Self = Self {
        name: "xcp-pir",
        law: "xcp-r",
        words: &[("loss", "maintain")],
        switches: &["pacing", "interoperable"],
    };

    /// The keys, as if they were written at `span`.
    fn keys(&self, span: Span) -> Node {
        let words = self.words.iter().map(|(key, word)| ((*key).to_owned(), Value::string(*word)));
        let switches = self.switches.iter().map(|key| ((*key).to_owned(), Value::Boolean(true)));
        let Value::Table(mut table) = Value::table(words.chain(switches)) else {
            return Node { span, value: Value::Table(Table::default()) };
        };
        for entry in &mut table.0 {
            entry.span = span;
            entry.node.span = span;
        }
        Node { span, value: Value::Table(table) }
    }
}

/// The protocols with a part that runs here.
fn protocols<C: Clone>(part: fn(&Protocol) -> Option<&C>) -> impl Iterator<Item = Known<C>> {
    Protocol::all().filter_map(move |protocol| {
        let config = part(protocol)?.clone();
        Some(Known { name: protocol.name, about: protocol.about, config })
    })
}

impl Configuration for LinkConfig {
    type Beside = InteroperableLink;

    fn all() -> impl Iterator<Item = Known<Self>> {
        protocols(|protocol| protocol.link.as_ref())
    }

    fn is_interoperable(&self) -> bool {
        self.is_steered()
    }

    fn presets() -> &'static [Preset] {
        &[Preset::PIR_OF_LINKS]
    }
}

impl Configuration for SenderConfig {
    type Beside = InteroperableFlow;

    fn all() -> impl Iterator<Item = Known<Self>> {
        protocols(|protocol| protocol.sender.as_ref())
    }

    fn is_interoperable(&self) -> bool {
        self.needs().is_interoperable
    }

    fn presets() -> &'static [Preset] {
        &[Preset::PIR_OF_FLOWS]
    }
}

impl Configuration for Discipline {
    const KEY: &str = "discipline";
    type Beside = ();

    fn all() -> impl Iterator<Item = Known<Self>> {
        Self::told().map(|(config, about)| Known { name: config.name(), about, config })
    }

    fn is_interoperable(&self) -> bool {
        false
    }
}

/// Names of the laws that run here, in the order of the list.
pub(crate) fn built<C: Configuration>() -> impl Iterator<Item = &'static str> {
    C::all().map(|known| known.name)
}

/// Names of the laws that have a setting of that name.
fn who_knows<C: Configuration>(key: &str) -> Vec<&'static str> {
    let knows = |known: &mut Known<C>| {
        let mut found = false;
        known.config.each(&mut |name, _, _| found |= name == key);
        found
    };
    C::all().filter_map(|mut known| knows(&mut known).then_some(known.name)).collect()
}

/// A law and what it is told.
#[derive(Clone, Debug)]
pub(crate) struct Chosen<C: Configuration> {
    pub(crate) name: &'static str,
    pub(crate) config: C,
    pub(crate) beside: C::Beside,
    /// Settings by key, as they are written, for a rate may be finer than what the law sees of it.
    written: Vec<(&'static str, At<Value>)>,
}

impl<C: Configuration> Chosen<C> {
    /// The law of that name. The outer `None`: there is none here.
    pub(crate) fn decode(variant: &Variant<'_>, findings: &mut Findings) -> Option<Option<Self>> {
        let preset = C::presets().iter().find(|preset| preset.name == variant.name);
        let law = preset.map_or(variant.name, |preset| preset.law);
        let known = C::all().find(|known| known.name == law)?;
        findings.at.push(variant.name.into());
        let own = preset.and_then(|preset| Self::below(known.clone(), &preset.keys(variant.span), findings));
        let mut chosen = Self::below(known, &variant.below, findings);
        findings.at.pop();
        if let (Some(chosen), Some(own)) = (&mut chosen, &own) {
            chosen.take_missing(own);
        }
        Some(chosen)
    }

    /// The keys of a law, with those of [`Configuration::Beside`].
    pub(crate) fn keys(known: Known<C>) -> Vec<&'static str> {
        let mut config = known.config;
        let mut keys = Vec::new();
        config.each(&mut |key, _, _| keys.push(key));
        if config.is_interoperable() {
            keys.extend(C::Beside::NAMES);
        }
        keys
    }

    /// The law `name` with the keys in the table `node`, which `findings.at` names. The outer `None`: there is none here.
    pub(crate) fn of_keys(name: &str, node: &Node, findings: &mut Findings) -> Option<Option<Self>> {
        let known = C::all().find(|known| known.name == name)?;
        Some(Self::below(known, node, findings))
    }

    /// Takes each key from `other`, which is the same law, unless it is written here.
    pub(crate) fn take_missing(&mut self, other: &Self) {
        let mut from = other.config.clone();
        for (key, at) in &other.written {
            if self.span(key).is_some() {
                continue;
            }
            from.each(&mut |name, _, value| {
                if name == *key {
                    self.config.each(&mut |name, _, to| {
                        if name == *key {
                            copy(&value, to);
                        }
                    });
                }
            });
            self.written.push((key, at.clone()));
        }
        self.beside.take_missing(&other.beside);
    }

    /// Has a key take its default, as if it were not written.
    pub(crate) fn forget(&mut self, key: &str) {
        self.written.retain(|(written, _)| *written != key);
    }

    /// The keys that are written, with their values.
    pub(crate) fn written(&self) -> Vec<(String, Value)> {
        let mut keys: Vec<_> =
            self.written.iter().map(|(key, at)| ((*key).to_owned(), at.value.clone())).collect();
        if let Value::Table(beside) = self.beside.encode() {
            keys.extend(beside.0.into_iter().map(|entry| (entry.key, entry.node.value)));
        }
        keys
    }

    fn below(known: Known<C>, node: &Node, findings: &mut Findings) -> Option<Self> {
        let keys = Self::keys(known.clone());
        let Known { name, mut config, .. } = known;
        let beside = if config.is_interoperable() { C::Beside::NAMES } else { &[] };
        let (mut written, mut others) = (Vec::new(), Table::default());
        for entry in &table(node, &keys, findings)?.0 {
            if beside.contains(&entry.key.as_str()) {
                others.0.push(entry.clone());
            } else if keys.contains(&entry.key.as_str()) {
                config.each(&mut |key, _, field| {
                    if key == entry.key {
                        written.extend(read(entry, field, findings).map(|at| (key, at)));
                    }
                });
            } else if let names = who_knows::<C>(&entry.key)
                && !names.is_empty()
            {
                let message = format!("`{}.{}`: `{name}` has no {1}", findings.place(), entry.key);
                findings.error(
                    "scenario::law",
                    entry.node.span,
                    message,
                    format!("laws that have it: {}", names.join(", ")),
                );
            } else {
                unknown_key(entry, &keys, findings);
            }
        }
        let beside = C::Beside::decode(&Node { span: node.span, value: Value::Table(others) }, findings)?;
        Some(Self { name, config, beside, written })
    }

    /// Where the key is written; `None`: nowhere, or not readably.
    pub(crate) fn span(&self, key: &str) -> Option<Span> {
        self.written.iter().find(|(written, _)| *written == key).map(|(_, at)| at.span)
    }

    /// Sets what goes by other settings, unless it is written.
    pub(crate) fn settle(&mut self) {
        let written: Vec<&str> = self.written.iter().map(|(key, _)| *key).collect();
        self.config.settle(&|key| written.contains(&key));
    }

    /// Writes a rate that the surroundings give, which nobody has written.
    pub(crate) fn write_rate(&mut self, key: &'static str, rate: BitRate, span: Span) {
        if self.span(key).is_none() {
            self.config.each(&mut |name, _, field| {
                if let Field::Rate(to) = field
                    && name == key
                {
                    *to = rate.bytes();
                }
            });
            self.written.push((key, At { value: rate.encode(), span }));
        }
    }

    /// Sets the defaults that follow from the longest round trip of flows that share a link with it, without queues.
    pub(crate) fn set_round_trip(&mut self, longest: Duration) {
        let written = &self.written;
        self.config.set_round_trip(longest, &|key| written.iter().any(|(known, _)| *known == key));
    }

    /// Writes every setting out that nobody has written, but rates: see [`Field::Rate`].
    pub(crate) fn write_rest(&mut self, span: Span) {
        let written = &mut self.written;
        self.config.each(&mut |key, _, field| {
            if !written.iter().any(|(written, _)| *written == key) {
                written.extend(show(field).map(|value| (key, At { value, span })));
            }
        });
    }

    pub(crate) fn encode(&self) -> Value {
        let mut keys = Vec::new();
        self.config.clone().each(&mut |key, _, _| keys.push(key));
        if keys.is_empty() {
            return Value::string(self.name);
        }
        let written = |key: &'static str| {
            let at = self.written.iter().find(|(written, _)| *written == key)?;
            Some((key.to_owned(), at.1.value.clone()))
        };
        let mut below: Vec<_> = keys.into_iter().filter_map(written).collect();
        if let Value::Table(beside) = self.beside.encode() {
            below.extend(beside.0.into_iter().map(|entry| (entry.key, entry.node.value)));
        }
        Value::table([(self.name.into(), Value::table(below))])
    }
}

impl Chosen<LinkConfig> {
    /// Has a link's law follow an implementation, but in what is written.
    pub(crate) fn follow(&mut self, implementation: &str) {
        let written = &self.written;
        self.config.follow(implementation, &|key| written.iter().any(|(known, _)| *known == key));
    }
}

impl Chosen<SenderConfig> {
    /// Has a sender's law follow an implementation, but in what is written; returns what has no effect then.
    pub(crate) fn follow(&mut self, implementation: &str) -> Followed {
        let written = &self.written;
        self.config.follow(implementation, &|key| written.iter().any(|(known, _)| *known == key))
    }
}

/// The tables of all laws here that can be told something.
pub(crate) fn schemas<C: Configuration>(generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
    let mut schemas = Vec::new();
    for Known { name, about, mut config } in C::all() {
        let mut keys = Vec::new();
        config.each(&mut |key, about, field| keys.push((key, about, schema(field, generator), false)));
        if config.is_interoperable() {
            keys.extend(C::Beside::described(generator));
        }
        if !keys.is_empty() {
            schemas.push((name, table_schema(about, keys)));
        }
    }
    for preset in C::presets() {
        let of_law = schemas.iter().find(|(name, _)| *name == preset.law);
        if let Some(schema) = of_law.map(|(_, schema)| schema.clone()) {
            schemas.push((preset.name, schema));
        }
    }
    schemas
}

/// Reads a setting into its place, and says how it is written.
fn read(entry: &Entry, field: Field<'_>, findings: &mut Findings) -> Option<At<Value>> {
    match field {
        Field::Switch(to) => put(entry, findings, |value| *to = value),
        Field::Factor(to) => put(entry, findings, |value| *to = value),
        Field::Share(to) => put(entry, findings, |Share(value)| *to = value),
        Field::Weight(to) => put(entry, findings, |Weight(value)| *to = value),
        Field::Span(to) => put(entry, findings, |value| *to = value),
        Field::Rate(to) => put(entry, findings, |value: BitRate| *to = value.bytes()),
        Field::Count(to) => put(entry, findings, |value| *to = value),
        Field::Number(to, most) => {
            findings.at.push(entry.key.clone());
            let found = integer(&entry.node, 1, most.into(), findings);
            if found.is_none() {
                findings.set_unreadable();
            }
            findings.at.pop();
            *to = found?;
            Some(At { value: to.encode(), span: entry.node.span })
        }
        Field::Word(to) => {
            let words = to.words();
            findings.at.push(entry.key.clone());
            let found = word(&entry.node, words, findings);
            if found.is_none() {
                findings.set_unreadable();
            }
            findings.at.pop();
            to.choose(words[found?]);
            Some(At { value: Value::string(to.word()), span: entry.node.span })
        }
    }
}

/// Copies a setting of the same key.
fn copy(from: &Field<'_>, to: Field<'_>) {
    match (from, to) {
        (Field::Switch(from), Field::Switch(to)) => *to = **from,
        (Field::Factor(from), Field::Factor(to)) | (Field::Share(from), Field::Share(to)) => *to = **from,
        (Field::Weight(from), Field::Weight(to)) => *to = **from,
        (Field::Span(from), Field::Span(to)) => *to = **from,
        (Field::Rate(from), Field::Rate(to)) => *to = **from,
        (Field::Count(from), Field::Count(to)) => *to = **from,
        (Field::Number(from, _), Field::Number(to, _)) => *to = **from,
        (Field::Word(from), Field::Word(to)) => to.choose(from.word()),
        _ => {}
    }
}

fn put<T: Language + Clone>(entry: &Entry, findings: &mut Findings, to: impl FnOnce(T)) -> Option<At<Value>> {
    let At { value, span } = value::<T>(&entry.key, &entry.node, findings)?;
    let written = value.encode();
    to(value);
    Some(At { value: written, span })
}

fn show(field: Field<'_>) -> Option<Value> {
    Some(match field {
        Field::Switch(value) => value.encode(),
        Field::Factor(value) | Field::Share(value) => value.encode(),
        Field::Weight(value) => Weight(*value).encode(),
        Field::Span(value) => value.encode(),
        Field::Rate(_) => return None,
        Field::Count(value) | Field::Number(value, _) => value.encode(),
        Field::Word(value) => Value::string(value.word()),
    })
}

fn schema(field: Field<'_>, generator: &mut SchemaGenerator) -> Schema {
    match field {
        Field::Switch(_) => bool::schema(generator),
        Field::Factor(_) => Ratio::schema(generator),
        Field::Share(_) => Share::schema(generator),
        Field::Weight(_) => Weight::schema(generator),
        Field::Span(_) => Duration::schema(generator),
        Field::Rate(_) => BitRate::schema(generator),
        Field::Count(_) => u32::schema(generator),
        Field::Number(_, most) => json_schema!({ "type": "integer", "minimum": 1, "maximum": most }),
        Field::Word(words) => json_schema!({ "enum": words.words() }),
    }
}

/// A part of a whole.
#[derive(Clone)]
struct Share(Ratio);

impl Language for Share {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        Chance::decode(node, findings).map(|share| Self(share.ratio()))
    }

    fn encode(&self) -> Value {
        self.0.encode()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        Chance::schema(generator)
    }
}

/// A weight in an average, or none.
#[derive(Clone)]
struct Weight(Option<Ratio>);

impl Language for Weight {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match node.value {
            Value::Boolean(true) => Some(Self(Some(Ratio::ppm(500_000)))),
            Value::Boolean(false) => Some(Self(None)),
            _ => Share::decode(node, findings).map(|Share(weight)| Self((weight.0 > 0).then_some(weight))),
        }
    }

    fn encode(&self) -> Value {
        self.0.map_or(Value::Boolean(false), |weight| weight.encode())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "boolean" }, { "type": "number", "minimum": 0, "maximum": 1 }] })
    }
}

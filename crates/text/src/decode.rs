//! From values to types, with every finding of a file at once.
//!
//! One declaration of a table by [`record!`] is its decoder, its writer and its schema, so the three
//! can not disagree.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::str::FromStr;

use congestlab_core::units::{BitRate, Bytes, Duration, Kind, Ratio};
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::diagnostic::{Findings, Span, choices};
use crate::tree::{Node, Table, Value};

/// A part of the language.
pub trait Language: Sized {
    /// Reads it. `None`: not possible, and said so.
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self>;
    /// Writes it so that it reads back as the same.
    fn encode(&self) -> Value;
    /// Describes it.
    fn schema(generator: &mut SchemaGenerator) -> Schema;
    /// Takes each key of a table from `other` that is not here.
    fn take_missing(&mut self, _other: &Self) {}
}

/// Something read, and where. What nobody wrote points at the table that lacks it.
#[derive(Clone, Debug)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Place of the value in the text.
    pub span: Span,
}

/// The value of a key, put there if it is absent.
pub fn fill<T: Clone>(key: &mut Option<At<T>>, span: Span, default: impl FnOnce() -> T) -> At<T> {
    key.get_or_insert_with(|| At { value: default(), span }).clone()
}

/// "`a.b` is X, not Y".
pub fn wrong_type(node: &Node, expected: &str, help: &str, findings: &mut Findings) {
    let (place, kind) = (findings.place(), node.value.kind());
    let help = if has_steps(&place, &node.value) { steps_help(&place) } else { help };
    findings.error("scenario::type", node.span, format!("`{place}` is {kind}, not {expected}"), help);
}

/// The value of a link or flow changes over time: `{ steps = [...] }`, or the steps alone.
fn has_steps(place: &str, value: &Value) -> bool {
    let is_of_element = place.starts_with("links.") || place.starts_with("flows.");
    is_of_element
        && match value {
            Value::Table(table) => table.get("steps").is_some(),
            Value::Array(steps) => matches!(steps.first(), Some(Node { value: Value::Array(_), .. })),
            _ => false,
        }
}

/// How to write a value that changes over time where only a constant is allowed.
fn steps_help(place: &str) -> &'static str {
    let is_delay = place.starts_with("links.") && place.ends_with(".delay");
    if is_delay {
        "a delay is constant; to change it, write a second link and let flows switch to it: \
         switch = [{ at = \"5 s\", path = [\"second\"] }]"
    } else {
        "this value is constant; only the `rate` of a link takes steps"
    }
}

/// Declares a table of the language: its keys, all optional here, `required` ones refused if absent, with an example if one is
/// given.
#[macro_export]
macro_rules! record {
    ($(#[doc = $about:literal])* $name:ident {
        $($(#[doc = $doc:literal])* $key:ident: $type:ty $(= $required:ident $(($example:literal))?)?,)*
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $name {
            $($(#[doc = $doc])* pub(crate) $key: Option<$crate::decode::At<$type>>,)*
        }

        impl $name {
            pub(crate) const KEYS: &'static [&'static str] = &[$($crate::decode::key(stringify!($key))),*];

            /// Each key with what it means, its schema, and whether it must be there.
            pub(crate) fn keys(
                generator: &mut schemars::SchemaGenerator,
            ) -> Vec<(&'static str, &'static str, schemars::Schema, bool)> {
                vec![$((
                    $crate::decode::key(stringify!($key)),
                    concat!($($doc, "\n"),*),
                    <$type as $crate::decode::Language>::schema(generator),
                    [$(stringify!($required))?].contains(&"required"),
                )),*]
            }
        }

        impl $crate::decode::Language for $name {
            fn decode(
                node: &$crate::tree::Node,
                findings: &mut $crate::diagnostic::Findings,
            ) -> Option<Self> {
                let table = $crate::decode::table(node, Self::KEYS, findings)?;
                let mut record = Self::default();
                for entry in &table.0 {
                    match entry.key.as_str() {
                        $(name if name == $crate::decode::key(stringify!($key)) => {
                            record.$key = $crate::decode::value(&entry.key, &entry.node, findings);
                        })*
                        _ => $crate::decode::unknown_key(entry, Self::KEYS, findings),
                    }
                }
                $(if [$(stringify!($required))?].contains(&"required") && table.get($crate::decode::key(stringify!($key))).is_none() {
                    let about = [concat!($($doc, "\n"),*), concat!($($($example)?)?)];
                    $crate::decode::missing(node.span, $crate::decode::key(stringify!($key)), about, findings);
                })*
                Some(record)
            }

            fn encode(&self) -> $crate::tree::Value {
                let mut entries = Vec::new();
                $(if let Some(at) = &self.$key {
                    let value = $crate::decode::Language::encode(&at.value);
                    entries.push(($crate::decode::key(stringify!($key)).to_owned(), value));
                })*
                $crate::tree::Value::table(entries)
            }

            fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                generator.subschema_for::<Self>()
            }

            fn take_missing(&mut self, other: &Self) {
                $(if self.$key.is_none() {
                    self.$key.clone_from(&other.$key);
                })*
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::decode::table_schema(concat!($($about, "\n"),*), Self::keys(generator))
            }
        }
    };
}
pub use crate::record;

/// The key that a field is: `for` is a word of Rust, and its field is `r#for`.
pub const fn key(field: &str) -> &str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// The node as a table, or a finding.
pub fn table<'a>(node: &'a Node, keys: &[&str], findings: &mut Findings) -> Option<&'a Table> {
    match &node.value {
        Value::Table(table) => Some(table),
        _ => {
            wrong_type(node, "a table", &format!("a table with the keys {}", keys.join(", ")), findings);
            None
        }
    }
}

/// Decodes the value of `key`.
pub fn value<T: Language>(key: &str, node: &Node, findings: &mut Findings) -> Option<At<T>> {
    findings.at.push(key.into());
    let value = T::decode(node, findings);
    if value.is_none() {
        findings.set_unreadable();
    }
    findings.at.pop();
    value.map(|value| At { value, span: node.span })
}

/// Refuses a key that the table does not have, and lists those that it has.
pub fn unknown_key(entry: &crate::tree::Entry, keys: &[&str], findings: &mut Findings) {
    let table = match findings.place() {
        table if table.is_empty() => findings.document.into(),
        table => format!("`{table}`"),
    };
    let message = format!("unknown key `{}` in {table}", entry.key);
    findings.error("scenario::unknown-key", entry.span, message, choices(&entry.key, keys.iter().copied()));
}

/// Refuses a table without `key`: `about` is its meaning, and an example of what to write or nothing.
pub fn missing(span: Span, key: &str, [doc, example]: [&str; 2], findings: &mut Findings) {
    let message = match findings.place().as_str() {
        "" => format!("{} needs `[{key}]`", findings.document),
        place => format!("`{place}` needs the key `{key}`"),
    };
    let example = if example.is_empty() { String::new() } else { format!(" Write {example}") };
    findings.error("scenario::missing", span, message, format!("`{key}`: {}{example}", prose(doc)));
}

/// Doc comments as one paragraph of prose.
pub fn prose(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The JSON schema of a table: its meaning, and for each key its meaning, its schema, and true if it is required.
pub fn table_schema(about: &str, keys: Vec<(&str, &str, Schema, bool)>) -> Schema {
    let mut required = Vec::new();
    let mut properties = serde_json::Map::new();
    for (key, doc, schema, is_required) in keys {
        if is_required {
            required.push(key);
        }
        properties.insert(key.into(), described(schema, &prose(doc)).to_value());
    }
    json_schema!({
        "type": "object",
        "description": prose(about),
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Adds a description. A reference may have no company in draft-07, so it moves into `allOf`.
fn described(mut schema: Schema, description: &str) -> Schema {
    if schema.get("$ref").is_some() {
        schema = json_schema!({ "allOf": [schema] });
    }
    schema.insert("description".into(), description.into());
    schema
}

/// A string that one of the patterns matches, such as `examples`.
pub fn text_schema(about: &str, patterns: &[&str], examples: &[&str]) -> Schema {
    let pattern = format!("^(?:{})$", patterns.join("|"));
    json_schema!({ "type": "string", "description": about, "pattern": pattern, "examples": examples })
}

/// Numbers of the grammar of quantities, as a pattern.
pub const NUMBER: &str = "[0-9]+(?:\\.[0-9]+)?";

/// Quantities of a kind, as a pattern: what the grammar of `congestlab-core` takes for a number and a unit, however fine
/// or large it is.
pub fn quantity(kind: Kind) -> String {
    format!("\\s*{NUMBER}\\s*(?:{})\\s*", kind.names().collect::<Vec<_>>().join("|"))
}

/// A string; a number as a string, so that the grammar of quantities says which units it may lack.
pub fn number_or_text(node: &Node) -> Option<Cow<'_, str>> {
    match &node.value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        // Beyond 64 bits the exact digits were not kept.
        Value::Integer(integer) => {
            i64::try_from(*integer).ok().map(|integer| Cow::Owned(integer.to_string()))
        }
        Value::Float(float) if float.is_finite() => Some(Cow::Owned(float.to_string())),
        _ => None,
    }
}

/// Reads a string with a unit by the grammar of `congestlab-core`.
pub fn unit<T>(node: &Node, expected: &str, example: &str, findings: &mut Findings) -> Option<T>
where
    T: FromStr,
    T::Err: Display,
{
    let Some(text) = number_or_text(node) else {
        let help = format!("write {expected} as a string with its unit, such as \"{example}\"");
        wrong_type(node, expected, &help, findings);
        return None;
    };
    match text.parse() {
        Ok(value) => Some(value),
        Err(error) => {
            let place = findings.place();
            let help = format!("{expected} is a number and a unit, such as \"{example}\"");
            findings.error("scenario::unit", node.span, format!("`{place}`: {error}"), help);
            None
        }
    }
}

/// Refuses a value, as it was written.
pub fn out_of_range(span: Span, written: &str, allowed: &str, findings: &mut Findings) {
    let place = findings.place();
    let message = format!("`{place}` is {written}, which is out of range");
    findings.error("scenario::range", span, message, format!("allowed: {allowed}"));
}

/// Fastest link, bit/s: the smallest packet, 20 B, lasts longer than a picosecond, the clock's unit.
pub const RATE_MAX: u64 = 100_000_000_000_000;
/// Longest span, ns: 10^7 s are 10^19 ps, which just fit into 64 bits.
pub const SPAN_MAX: u64 = 10_000_000 * 1_000_000_000;

impl Language for BitRate {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let rate: Self = unit(node, "a rate", "10 Mbit/s", findings)?;
        // Below a byte per second the laws would see no capacity at all.
        if (8..=RATE_MAX).contains(&rate.0) {
            return Some(rate);
        }
        out_of_range(node.span, &rate.to_string(), "8 bit/s to 100 Tbit/s", findings);
        None
    }

    fn encode(&self) -> Value {
        Value::string(self.to_string())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        text_schema("A rate with its unit.", &[&quantity(Kind::Rate)], &["10 Mbit/s", "1 Gbit/s"])
    }
}

impl Language for Duration {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let span: Self = unit(node, "a time", "40 ms", findings)?;
        if span.0 <= SPAN_MAX {
            return Some(span);
        }
        out_of_range(node.span, &span.to_string(), "up to 10000000 s", findings);
        None
    }

    fn encode(&self) -> Value {
        Value::string(self.to_string())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        text_schema("A time with its unit.", &[&quantity(Kind::Duration)], &["60 s", "40 ms"])
    }
}

/// An amount of data, above zero.
impl Language for Bytes {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let bytes: Self = unit(node, "an amount of data", "1 MB", findings)?;
        // JSON readers keep integers exactly up to 2^53.
        if (1..=1 << 53).contains(&bytes.0) {
            return Some(bytes);
        }
        out_of_range(node.span, &bytes.to_string(), "1 B to 9 PB", findings);
        None
    }

    fn encode(&self) -> Value {
        Value::string(self.to_string())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        text_schema("An amount of data with its unit.", &[&quantity(Kind::Bytes)], &["1 MB", "1 MiB"])
    }
}

/// Bytes of a whole IP packet: what its 16-bit length can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub struct PacketSize(pub u16);

impl fmt::Display for PacketSize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} B", self.0)
    }
}

impl PacketSize {
    /// An IP header.
    const MIN: u64 = 20;
}

impl Language for PacketSize {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let bytes: Bytes = unit(node, "a packet size", "1500 B", findings)?;
        match u16::try_from(bytes.0) {
            Ok(size) if bytes.0 >= Self::MIN => Some(Self(size)),
            _ => {
                out_of_range(node.span, &bytes.to_string(), "20 B to 65535 B", findings);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        Value::string(Bytes(self.0.into()).to_string())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        text_schema("Size of a whole IP packet.", &[&quantity(Kind::Bytes)], &["1500 B", "1000 B"])
    }
}

impl Language for bool {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match node.value {
            Value::Boolean(boolean) => Some(boolean),
            _ => {
                wrong_type(node, "a boolean", "allowed: true, false", findings);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        Value::Boolean(*self)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "boolean" })
    }
}

/// A whole number within bounds.
pub fn integer<T: TryFrom<i128>>(node: &Node, min: i128, max: i128, findings: &mut Findings) -> Option<T> {
    let Value::Integer(integer) = node.value else {
        let help = format!("allowed: {min} to {max}, without unit or quotes");
        wrong_type(node, "a whole number", &help, findings);
        return None;
    };
    if !(min..=max).contains(&integer) {
        // Beyond 64 bits the exact digits were not kept.
        let written = if i64::try_from(integer).is_ok() { integer.to_string() } else { "very large".into() };
        out_of_range(node.span, &written, &format!("{min} to {max}"), findings);
        return None;
    }
    T::try_from(integer).ok()
}

/// A count: at least 1.
impl Language for u32 {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        integer(node, 1, i128::from(Self::MAX), findings)
    }

    fn encode(&self) -> Value {
        Value::Integer((*self).into())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": u32::MAX })
    }
}

/// A seed. TOML has no larger integer.
impl Language for u64 {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        integer(node, 0, i128::from(i64::MAX), findings)
    }

    fn encode(&self) -> Value {
        Value::Integer((*self).into())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": i64::MAX })
    }
}

/// A number without unit, finite.
impl Language for f64 {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match node.value {
            Value::Float(float) if float.is_finite() => Some(float),
            Value::Float(float) => {
                out_of_range(node.span, &float.to_string(), "finite numbers", findings);
                None
            }
            Value::Integer(integer) => Some(integer as Self),
            _ => {
                wrong_type(node, "a number", "write a number without unit or quotes", findings);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        Value::Float(*self)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number" })
    }
}

/// A number within bounds.
fn number(node: &Node, max: f64, findings: &mut Findings) -> Option<f64> {
    let number = f64::decode(node, findings)?;
    if (0.0..=max).contains(&number) {
        return Some(number);
    }
    out_of_range(node.span, &number.to_string(), &format!("0 to {max}"), findings);
    None
}

/// A probability: 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Chance(pub f64);

impl fmt::Display for Chance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Chance {
    /// To the nearest millionth.
    pub fn ratio(self) -> Ratio {
        Ratio::ppm((self.0 * 1e6).round() as u32)
    }
}

impl Language for Chance {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        number(node, 1.0, findings).map(Self)
    }

    fn encode(&self) -> Value {
        Value::Float(self.0)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

/// A factor of a law, in millionths.
impl Language for Ratio {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let number = number(node, 1000.0, findings)?;
        let millionths = number * 1e6;
        if (millionths - millionths.round()).abs() > 1e-6 {
            let message = format!("`{}` is {number}, finer than a millionth", findings.place());
            findings.warning("scenario::range", node.span, message, "the laws know factors to six decimals");
        }
        Some(Self::ppm(millionths.round() as u32))
    }

    fn encode(&self) -> Value {
        Value::Float(f64::from(self.0) / 1e6)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1000 })
    }
}

impl Language for String {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::String(text) => Some(text.clone()),
            _ => {
                wrong_type(node, "a string", "write it in quotes", findings);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        Value::string(self.as_str())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

impl<T: Language> Language for Vec<At<T>> {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let Value::Array(nodes) = &node.value else {
            wrong_type(node, "a list", "write a list in brackets, such as [\"a\", \"b\"]", findings);
            return None;
        };
        let items: Vec<Option<At<T>>> = nodes
            .iter()
            .map(|node| T::decode(node, findings).map(|value| At { value, span: node.span }))
            .collect();
        // All are decoded before any is missed, so that all findings are made.
        items.into_iter().collect()
    }

    fn encode(&self) -> Value {
        Value::array(self.iter().map(|at| at.value.encode()))
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": T::schema(generator) })
    }
}

/// Tables by name, in the order of the file.
#[derive(Clone, Debug)]
pub struct Named<T>(pub Vec<(At<String>, At<T>)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Language> Language for Named<T> {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let Value::Table(table) = &node.value else {
            wrong_type(node, "a table", "each has a table of its own, such as [links.bottleneck]", findings);
            return None;
        };
        let mut named = Self::default();
        for entry in &table.0 {
            if let Some(at) = value(&entry.key, &entry.node, findings) {
                named.0.push((At { value: entry.key.clone(), span: entry.span }, at));
            }
        }
        Some(named)
    }

    fn encode(&self) -> Value {
        Value::table(self.0.iter().map(|(name, value)| (name.value.clone(), value.value.encode())))
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": T::schema(generator) })
    }
}

/// Choices without settings of their own.
impl Language for () {
    fn decode(_: &Node, _: &mut Findings) -> Option<Self> {
        Some(())
    }

    fn encode(&self) -> Value {
        Value::table([])
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// One of a closed list of words.
#[macro_export]
macro_rules! words {
    ($(#[doc = $about:literal])* $name:ident { $($(#[$meta:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $($(#[$meta])* $variant,)*
        }

        impl $name {
            const WORDS: &[(&str, Self)] = &[$(($word, Self::$variant)),*];

            pub(crate) fn word(&self) -> &'static str {
                Self::WORDS.iter().find(|(_, value)| value == self).map_or("", |(word, _)| word)
            }
        }

        impl $crate::decode::Language for $name {
            fn decode(
                node: &$crate::tree::Node,
                findings: &mut $crate::diagnostic::Findings,
            ) -> Option<Self> {
                let index = $crate::decode::word(node, &[$($word),*], findings)?;
                Self::WORDS.get(index).map(|&(_, value)| value)
            }

            fn encode(&self) -> $crate::tree::Value {
                $crate::tree::Value::string(self.word())
            }

            fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "enum": [$($word),*] })
            }
        }
    };
}
pub use crate::words;

/// Position of the word in the list.
pub fn word(node: &Node, words: &[&str], findings: &mut Findings) -> Option<usize> {
    let allowed = format!("allowed: {}", words.join(", "));
    let Value::String(text) = &node.value else {
        wrong_type(node, "a string", &allowed, findings);
        return None;
    };
    let found = words.iter().position(|word| word == text);
    if found.is_none() {
        let message = format!("unknown `{}` \"{text}\"", findings.place());
        findings.error("scenario::unknown-name", node.span, message, choices(text, words.iter().copied()));
    }
    found
}

/// A choice that is a name, or a table with that name as its only key and what it needs below it.
pub struct Variant<'a> {
    /// The name.
    pub name: &'a str,
    /// Where the name is written.
    pub span: Span,
    /// Settings below the name; of a mere name, an empty table.
    pub below: Node,
}

/// Reads a name or `{ name = ... }`.
pub fn variant<'a>(node: &'a Node, findings: &mut Findings) -> Option<Variant<'a>> {
    let empty = || Node { span: node.span, value: Value::Table(Table::default()) };
    match &node.value {
        Value::String(name) => Some(Variant { name, span: node.span, below: empty() }),
        Value::Table(Table(entries)) => match entries.as_slice() {
            [entry] => Some(Variant { name: &entry.key, span: entry.span, below: entry.node.clone() }),
            _ => {
                let names: Vec<&str> = entries.iter().map(|e| e.key.as_str()).collect();
                let place = findings.place();
                let message = format!("`{place}` names {} choices ({})", names.len(), names.join(", "));
                findings.error("scenario::type", node.span, message, "exactly one key is allowed here");
                None
            }
        },
        _ => {
            wrong_type(node, "a name", "write a name in quotes or { name = { ... } }", findings);
            None
        }
    }
}

/// Reads what is below the name of a choice.
pub fn below<T: Language>(variant: &Variant<'_>, findings: &mut Findings) -> Option<T> {
    findings.at.push(variant.name.into());
    let value = T::decode(&variant.below, findings);
    findings.at.pop();
    value
}

/// For choices without keys.
pub fn nothing_below(variant: &Variant<'_>, findings: &mut Findings) -> Option<()> {
    findings.at.push(variant.name.into());
    let table = table(&variant.below, &[], findings);
    table.into_iter().flat_map(|table| &table.0).for_each(|entry| unknown_key(entry, &[], findings));
    findings.at.pop();
    table.map(|_| ())
}

/// A name, or a table of one of the forms.
pub fn choice_schema(names: &[&str], tables: &[(&str, Schema)]) -> Schema {
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

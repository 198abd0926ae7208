//! TOML with the place of every key and value, overrides applied to it, and back to text.

use std::borrow::Cow;
use std::sync::Arc;

use miette::NamedSource;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostics, Findings, Sources, Span, choices};
use crate::path;
use crate::path::Step;

/// A value and where it was written.
#[derive(Clone, Debug)]
pub struct Node {
    /// Place of the value in the text.
    pub span: Span,
    /// The value.
    pub value: Value,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    String(String),
    /// Wider than TOML's 64 bits, so that too large a number gets a diagnostic, not a syntax error.
    Integer(i128),
    /// A number with a point or an exponent, or `inf` or `nan`.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// As written: nothing in a scenario is a date.
    Datetime(String),
    /// A list.
    Array(Vec<Node>),
    /// A table.
    Table(Table),
}

/// Entries in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Table(pub Vec<Entry>);

/// A key and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The place of the key in the text.
    pub span: Span,
    /// The value.
    pub node: Node,
}

impl Value {
    /// Returns the kind of the value, with its article.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Boolean(_) => "a boolean",
            Self::Datetime(_) => "a date",
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
        }
    }

    /// A string.
    pub fn string(text: impl Into<String>) -> Self {
        Self::String(text.into())
    }

    /// A list of values without places.
    pub fn array(values: impl IntoIterator<Item = Self>) -> Self {
        Self::Array(values.into_iter().map(Node::unplaced).collect())
    }

    /// A table of values without places.
    pub fn table(entries: impl IntoIterator<Item = (String, Self)>) -> Self {
        Self::Table(Table(
            entries
                .into_iter()
                .map(|(key, value)| Entry { key, span: Span::default(), node: Node::unplaced(value) })
                .collect(),
        ))
    }
}

impl Node {
    /// A value that nobody wrote.
    pub fn unplaced(value: Value) -> Self {
        Self { span: Span::default(), value }
    }
}

impl Table {
    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// The value of a key; an empty table, if it was absent.
    fn entry(&mut self, key: &str, span: Span) -> &mut Node {
        let index = self.0.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
            let node = Node { span, value: Value::Table(Self::default()) };
            self.0.push(Entry { key: key.into(), span, node });
            self.0.len() - 1
        });
        &mut self.0[index].node
    }

    /// Returns the keys, in the order of the file.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.key.as_str())
    }
}

/// Reads the file. Syntax errors are findings; what could be read is returned all the same.
pub fn parse(text: &str, findings: &mut Findings) -> Node {
    let (table, errors) = DeTable::parse_recoverable(text);
    let table = convert_table(table.into_inner(), 0, 0);
    report(errors, 0, 0, text.len(), &table, findings);
    let span = Span { source: 0, start: 0, end: 0 };
    Node { span, value: Value::Table(table) }
}

/// Where the key that is repeated at `second` was first: the last such key before it that is not
/// inside an inline table that ended before. What is found twice stays in the tree once, the first time.
fn first_place(table: &Table, key: &str, second: usize, text: &str) -> Option<usize> {
    fn below(value: &Value, visit: &mut impl FnMut(&Table)) {
        match value {
            Value::Table(table) => visit(table),
            Value::Array(nodes) => nodes.iter().for_each(|node| below(&node.value, visit)),
            _ => {}
        }
    }
    let mut first = None;
    for entry in &table.0 {
        if entry.key == key && entry.span.start < second {
            first = first.max(Some(entry.span.start));
        }
        let span = entry.node.span;
        let is_inline = text.get(span.start..).is_some_and(|text| text.starts_with('{'));
        if !is_inline || (span.start..span.end).contains(&second) {
            below(&entry.node.value, &mut |table| first = first.max(first_place(table, key, second, text)));
        }
    }
    first
}

/// Where the header of a table that is repeated at `second` was first: the tree has the place of the
/// second.
fn first_header(text: &str, second: usize) -> Option<usize> {
    let start = text[..second].rfind('\n').map_or(0, |newline| newline + 1);
    let header = text[start..].lines().next()?.trim();
    let mut at = 0;
    text[..start].split_inclusive('\n').find_map(|line| {
        at += line.len();
        (header.starts_with('[') && line.trim() == header).then(|| at - line.len())
    })
}

fn report(
    errors: Vec<toml::de::Error>,
    source: usize,
    offset: usize,
    length: usize,
    parsed: &Table,
    findings: &mut Findings,
) {
    let source_text = Arc::clone(&findings.sources[source]);
    let text = source_text.inner();
    for (index, error) in errors.into_iter().enumerate() {
        let span = error.span().unwrap_or(length..length);
        let span = Span { source, start: offset + span.start, end: offset + span.end };
        let message = error.message().trim();
        if message == "duplicate key" {
            let written = text.get(span.start..span.end).unwrap_or_default();
            let key = written.trim_matches(['"', '\'']);
            // The whole text is looked through for each that is told.
            let is_told = index < Diagnostics::LIMIT;
            let first = is_told.then(|| first_place(parsed, key, span.start, text)).flatten();
            let first = first.or_else(|| is_told.then(|| first_header(text, span.start)).flatten());
            let first = first.map_or_else(String::new, |at| {
                format!(", first in line {}", text[..at].matches('\n').count() + 1)
            });
            let message = format!("duplicate key `{key}`{first}");
            findings.error("scenario::syntax", span, message, "a table may have each key once");
        } else {
            let help = format!("{} is TOML (https://toml.io)", findings.document);
            findings.error("scenario::syntax", span, message, help);
        }
    }
}

fn convert_table(table: DeTable<'_>, source: usize, offset: usize) -> Table {
    Table(
        table
            .into_iter()
            .map(|(key, value)| Entry {
                span: shift(&key, source, offset),
                key: key.into_inner().into_owned(),
                node: convert(value, source, offset),
            })
            .collect(),
    )
}

fn shift<T>(spanned: &Spanned<T>, source: usize, offset: usize) -> Span {
    Span { source, start: offset + spanned.span().start, end: offset + spanned.span().end }
}

/// Deep only as far as the parser allows, which is 80.
fn convert(value: Spanned<DeValue<'_>>, source: usize, offset: usize) -> Node {
    let span = shift(&value, source, offset);
    let value = match value.into_inner() {
        DeValue::String(text) => Value::String(Cow::into_owned(text)),
        DeValue::Integer(integer) => match i128::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(integer) => Value::Integer(integer),
            Err(_) => Value::Integer(if integer.as_str().starts_with('-') { i128::MIN } else { i128::MAX }),
        },
        DeValue::Float(float) => Value::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(boolean) => Value::Boolean(boolean),
        DeValue::Datetime(datetime) => Value::Datetime(datetime.to_string()),
        DeValue::Array(array) => {
            Value::Array(array.into_iter().map(|node| convert(node, source, offset)).collect())
        }
        DeValue::Table(table) => Value::Table(convert_table(table, source, offset)),
    };
    Node { span, value }
}

/// Applies `--set PATH=VALUE`: a path of the file's own and a TOML value. A value that is no TOML
/// is a string, because a shell eats the quotes of `rate="1 Gbit/s"`.
pub fn set(root: &mut Node, origin: &str, path: &str, value: &str, findings: &mut Findings) {
    let source = findings.sources.len();
    add_source(&mut findings.sources, origin, format!("{path}={value}"));
    let Some(node) = given(value, source, path.len() + 1, findings) else { return };
    let whole = Span { source, start: 0, end: path.len() };
    match path::parse(path) {
        Ok(steps) => replace(root, path, &steps, node, whole, findings),
        Err(error) => {
            let span = Span { source, start: error.at, end: path.len() };
            findings.error("scenario::unknown-path", span, error.message, PATH_HELP);
        }
    }
}

/// A value of the command line that stands at `offset` of its source; `None` if it begins as TOML and is none.
fn given(value: &str, source: usize, offset: usize, findings: &mut Findings) -> Option<Node> {
    let (parsed, errors) = DeValue::parse_recoverable(value);
    let looks_like_toml = value.trim_start().starts_with(['"', '\'', '[', '{']);
    if errors.is_empty() {
        Some(convert(parsed, source, offset))
    } else if looks_like_toml {
        let parsed = convert(parsed, source, offset).value;
        let table =
            Table(vec![Entry { key: String::new(), span: Span::default(), node: Node::unplaced(parsed) }]);
        report(errors, source, offset, value.len(), &table, findings);
        None
    } else {
        let span = Span { source, start: offset, end: offset + value.len() };
        Some(Node { span, value: Value::string(value.trim()) })
    }
}

/// Applies `--grid PATH=A,B,C`: an axis of `sweep.grid`, in the place of the file's of the same path.
pub fn vary(root: &mut Node, origin: &str, path: &str, values: &[String], findings: &mut Findings) {
    let source = findings.sources.len();
    let mut text = format!("{path}=");
    let mut nodes = Vec::new();
    let places: Vec<usize> = values
        .iter()
        .map(|value| {
            let at = text.len();
            text.push_str(value);
            text.push(',');
            at
        })
        .collect();
    text.pop();
    let whole = Span { source, start: 0, end: path.len() };
    add_source(&mut findings.sources, origin, text);
    for (value, at) in values.iter().zip(places) {
        nodes.extend(given(value, source, at, findings));
    }
    let steps = ["sweep", "grid", path].map(|key| Step::Key(key.into()));
    replace(root, path, &steps, Node { span: whole, value: Value::Array(nodes) }, whole, findings);
}

const PATH_HELP: &str = "a path joins keys of the file by dots, such as links.bottleneck.rate";

/// Adds a text that spans can point into, with the name that messages give it.
pub fn add_source(sources: &mut Sources, name: &str, text: String) {
    sources.push(Arc::new(NamedSource::new(name, text)));
}

/// Puts `node` at the end of the path. Keys that the file leaves out may be set, and the decoder
/// refuses those that do not exist; but links and flows can not be invented.
pub fn replace(root: &mut Node, path: &str, steps: &[Step], node: Node, span: Span, findings: &mut Findings) {
    if let Err((reason, help)) = put(root, steps, &[], node, span) {
        let message = format!("`{path}` names no part of the file: {reason}");
        findings.error("scenario::unknown-path", span, message, help);
    }
}

/// [`replace`] below `here`, which is at the end of `above`. `Err`: why not, and what is allowed.
fn put(
    here: &mut Node,
    steps: &[Step],
    above: &[&str],
    node: Node,
    span: Span,
) -> Result<(), (String, String)> {
    let Some((step, rest)) = steps.split_first() else {
        *here = node;
        return Ok(());
    };
    // A law by its name alone can get keys.
    if let (Value::String(name), Step::Key(key)) = (&here.value, step)
        && name == key
    {
        here.value = Value::table([(key.clone(), Value::Table(Table::default()))]);
    }
    let kind = here.value.kind();
    match (step, &mut here.value) {
        (Step::Any, Value::Table(table)) if matches!(above, ["links" | "flows"]) => {
            let reasons = table.0.iter_mut().map(|entry| {
                put(&mut entry.node, rest, &[above, &[entry.key.as_str()]].concat(), node.clone(), span)
            });
            reasons.collect()
        }
        (Step::Any, _) => {
            Err(("`*` is not below links or flows".into(), "such as flows.*.law or links.*.queue".into()))
        }
        (Step::Index(index), Value::Array(nodes)) if *index < nodes.len() => {
            put(&mut nodes[*index], rest, &[above, &["[]"]].concat(), node, span)
        }
        (Step::Key(key), Value::Table(table)) => {
            if table.get(key).is_none() && matches!(above, ["links" | "flows"]) {
                // As the results name it.
                if let Some(link) = key.strip_suffix(".reverse")
                    && table.get(link).is_some()
                {
                    let pair = [Step::Key(link.into()), Step::Key("reverse".into())];
                    return put(here, &[&pair, rest].concat(), above, node, span);
                }
                return Err((format!("there is no `{key}`"), choices(key, table.keys()).into()));
            }
            let next = table.entry(key, span);
            put(next, rest, &[above, &[key.as_str()]].concat(), node, span)
        }
        _ => Err((format!("{step} is not in {kind}"), PATH_HELP.into())),
    }
}

/// Takes an entry of a table away, if it is there.
pub fn remove(root: &mut Node, steps: &[Step]) {
    let Value::Table(Table(entries)) = &mut root.value else { return };
    match steps {
        [Step::Key(key)] => entries.retain(|entry| entry.key != *key),
        [Step::Key(key), rest @ ..] => {
            entries
                .iter_mut()
                .filter(|entry| entry.key == *key)
                .for_each(|entry| remove(&mut entry.node, rest));
        }
        _ => {}
    }
}

/// The keys of a link without `law = "none"`, and true if it was there.
pub fn without_law_none(link: &Node) -> (Cow<'_, Node>, bool) {
    let Value::Table(Table(entries)) = &link.value else { return (Cow::Borrowed(link), false) };
    if !entries.iter().any(is_none) {
        return (Cow::Borrowed(link), false);
    }
    let rest = entries.iter().filter(|entry| !is_none(entry)).cloned().collect();
    (Cow::Owned(Node { span: link.span, value: Value::Table(Table(rest)) }), true)
}

fn is_none(entry: &Entry) -> bool {
    entry.key == "law" && matches!(&entry.node.value, Value::String(name) if name == NONE)
}

/// The file without `law = "none"` of links: that a link has no law is said by leaving it out, which no axis of a sweep can.
/// A `reverse` keeps it, because there an absent law may be the link's.
pub fn without_none(root: &Node) -> Cow<'_, Node> {
    fn has_none(link: &Node) -> bool {
        let Value::Table(Table(entries)) = &link.value else { return false };
        entries.iter().any(is_none)
    }
    fn clean(link: &mut Node) {
        let Value::Table(Table(entries)) = &mut link.value else { return };
        entries.retain(|entry| !is_none(entry));
    }
    let links = |root: &Node| match &root.value {
        Value::Table(Table(entries)) => entries.iter().position(|entry| entry.key == "links"),
        _ => None,
    };
    let Some(place) = links(root) else { return Cow::Borrowed(root) };
    let mut cleaned = Cow::Borrowed(root);
    let Value::Table(Table(entries)) = &root.value else { return cleaned };
    let Value::Table(Table(all)) = &entries[place].node.value else { return cleaned };
    if all.iter().any(|link| has_none(&link.node))
        && let Value::Table(Table(entries)) = &mut cleaned.to_mut().value
        && let Value::Table(Table(all)) = &mut entries[place].node.value
    {
        all.iter_mut().for_each(|link| clean(&mut link.node));
    }
    cleaned
}

/// The law of a link that has none.
pub const NONE: &str = "none";

/// Returns the value at the end of a path, as [`replace`] understands it.
pub fn at<'a>(root: &'a Value, steps: &[Step]) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(root) };
    match (step, root) {
        (Step::Index(index), Value::Array(nodes)) => at(&nodes.get(*index)?.value, rest),
        // They were all given the same.
        (Step::Any, Value::Table(Table(entries))) => at(&entries.first()?.node.value, rest),
        (Step::Key(key), Value::Table(table)) => match (table.get(key), key.strip_suffix(".reverse")) {
            (Some(node), _) => at(&node.value, rest),
            (None, Some(link)) => {
                at(&table.get(link)?.value, &[&[Step::Key("reverse".into())], rest].concat())
            }
            (None, None) => None,
        },
        _ => None,
    }
}

/// The same value as JSON.
pub fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::String(text) | Value::Datetime(text) => text.as_str().into(),
        Value::Integer(integer) => i64::try_from(*integer).map_or((*integer as f64).into(), Into::into),
        Value::Float(float) => (*float).into(),
        Value::Boolean(boolean) => (*boolean).into(),
        Value::Array(nodes) => nodes.iter().map(|node| to_json(&node.value)).collect(),
        Value::Table(Table(entries)) => {
            let entries = entries.iter().map(|entry| (entry.key.clone(), to_json(&entry.node.value)));
            entries.collect::<serde_json::Map<_, _>>().into()
        }
    }
}

/// One value on one line, as TOML 1.0.
pub fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => path::string(text),
        Value::Integer(integer) => integer.to_string(),
        Value::Float(float) => toml::Value::Float(*float).to_string(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Datetime(text) => text.clone(),
        Value::Array(nodes) => {
            let items: Vec<String> = nodes.iter().map(|node| inline(&node.value)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(Table(entries)) if entries.is_empty() => "{}".into(),
        Value::Table(Table(entries)) => {
            let items: Vec<String> = entries
                .iter()
                .map(|e| format!("{} = {}", path::quote(&e.key), inline(&e.node.value)))
                .collect();
            format!("{{ {} }}", items.join(", "))
        }
    }
}

/// A scenario as a file: a section for `run`, for each link, each flow, each claim.
pub fn to_file(root: &Value) -> String {
    let mut text = String::new();
    let Value::Table(Table(entries)) = root else { return text };
    for Entry { key, node, .. } in entries {
        match &node.value {
            Value::Table(Table(named)) if key == "links" || key == "flows" => {
                for entry in named {
                    section(&mut text, &format!("[{key}.{}]", path::quote(&entry.key)), &entry.node.value);
                }
            }
            Value::Array(nodes) => {
                nodes.iter().for_each(|n| section(&mut text, &format!("[[{key}]]"), &n.value))
            }
            value => section(&mut text, &format!("[{key}]"), value),
        }
    }
    text
}

fn section(text: &mut String, header: &str, value: &Value) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(header);
    text.push('\n');
    if let Value::Table(Table(entries)) = value {
        for entry in entries {
            text.push_str(&format!("{} = {}\n", path::quote(&entry.key), inline(&entry.node.value)));
        }
    }
}

/// Gives every trace, as a setting or as a value of a sweep, the name that `name` makes of its path.
pub fn rename_traces(value: &mut Value, name: &mut dyn FnMut(&str) -> String) {
    fn path(value: &mut Value, name: &mut dyn FnMut(&str) -> String) {
        match value {
            Value::String(path) => *path = name(path),
            Value::Array(list) => list.iter_mut().for_each(|node| path(&mut node.value, name)),
            other => rename_traces(other, name),
        }
    }
    match value {
        Value::Array(list) => list.iter_mut().for_each(|node| rename_traces(&mut node.value, name)),
        Value::Table(table) => {
            for Entry { key, node, .. } in &mut table.0 {
                if key == "trace" || key.ends_with(".trace") {
                    path(&mut node.value, name);
                } else {
                    rename_traces(&mut node.value, name);
                }
            }
        }
        _ => {}
    }
}

/// A value alone, without a place.
pub fn value_of(text: &str) -> Option<Value> {
    DeValue::parse(text).ok().map(|value| convert(value, 0, 0).value)
}

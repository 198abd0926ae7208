//! `[laws.NAME]`: keys of a law for all links and flows of a file that run it.

use congestlab_core::law::{LinkConfig, SenderConfig};
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::language::law;
use crate::language::settings::{Chosen, Configuration, schemas};
use congestlab_text::decode::{At, Language, table, unknown_key};
use congestlab_text::diagnostic::{Findings, choices};
use congestlab_text::tree::{Node, Table, Value};

/// The keys of one law: those that its links take, and those that its flows take. Some are of both.
#[derive(Clone, Debug)]
struct Keys {
    name: At<&'static str>,
    link: Option<Chosen<LinkConfig>>,
    flow: Option<Chosen<SenderConfig>>,
}

/// Keys of laws by the names of the laws.
#[derive(Clone, Debug, Default)]
pub(crate) struct Laws(Vec<Keys>);

/// The keys that a law takes in one role; none if it has no such role.
fn keys_of<C: Configuration>(name: &str) -> Vec<&'static str> {
    C::all().find(|known| known.name == name).map_or(Vec::new(), Chosen::keys)
}

impl Laws {
    fn find(&self, name: &str) -> Option<&Keys> {
        self.0.iter().find(|keys| keys.name.value == name)
    }

    /// Writes the keys of its law to a link's law that does not have them.
    pub(crate) fn complete_link(&self, law: &mut Chosen<LinkConfig>) {
        let Some(keys) = self.find(law.name).and_then(|keys| keys.link.as_ref()) else { return };
        let own = law.beside.clone();
        law.take_missing(keys);
        // Keys of XCP-i hold for the links that run it.
        if !law.beside.is_on() {
            law.beside = own;
        }
    }

    /// Writes the keys of its law to a flow's law that does not have them.
    pub(crate) fn complete_flow(&self, law: &mut Chosen<SenderConfig>) {
        if let Some(keys) = self.find(law.name).and_then(|keys| keys.flow.as_ref()) {
            law.take_missing(keys);
        }
    }
}

impl Keys {
    /// Reads the keys of the law `name`, below which `findings.at` stands.
    fn decode(name: At<&'static str>, node: &Node, findings: &mut Findings) -> Option<Self> {
        let (of_link, of_flow) = (keys_of::<LinkConfig>(name.value), keys_of::<SenderConfig>(name.value));
        let mut all = of_link.clone();
        all.extend(of_flow.iter().filter(|key| !of_link.contains(key)));
        let entries = &table(node, &all, findings)?.0;
        for entry in entries.iter().filter(|entry| !all.contains(&entry.key.as_str())) {
            unknown_key(entry, &all, findings);
        }
        let of = |keys: &[&str]| Node {
            span: node.span,
            value: Value::Table(Table(
                entries.iter().filter(|entry| keys.contains(&entry.key.as_str())).cloned().collect(),
            )),
        };
        let flow = Chosen::of_keys(name.value, &of(&of_flow), findings).flatten();
        // A value of a key of both roles that could not be read has one finding.
        let read = flow.as_ref().map(Chosen::written).unwrap_or_default();
        let is_read = |key: &&str| !of_flow.contains(key) || read.iter().any(|(known, _)| known == key);
        let of_link: Vec<&str> = of_link.iter().copied().filter(is_read).collect();
        let link = Chosen::of_keys(name.value, &of(&of_link), findings).flatten();
        Some(Self { name, link, flow })
    }

    fn encode(&self) -> (String, Value) {
        let mut entries = Vec::new();
        for value in [self.flow.as_ref().map(Chosen::written), self.link.as_ref().map(Chosen::written)] {
            for (key, value) in value.into_iter().flatten() {
                if !entries.iter().any(|(known, _)| *known == key) {
                    entries.push((key, value));
                }
            }
        }
        (self.name.value.into(), Value::table(entries))
    }
}

impl Language for Laws {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let names = law::with_keys();
        let mut laws = Self::default();
        for entry in &table(node, &names, findings)?.0 {
            let Some(&name) = names.iter().find(|name| **name == entry.key) else {
                let message = format!("`{}`: unknown law `{}`", findings.place(), entry.key);
                let help = choices(&entry.key, names.iter().copied());
                findings.error("scenario::unknown-name", entry.span, message, help);
                continue;
            };
            findings.at.push(entry.key.clone());
            let keys = Keys::decode(At { value: name, span: entry.span }, &entry.node, findings);
            findings.at.pop();
            laws.0.extend(keys);
        }
        Some(laws)
    }

    fn encode(&self) -> Value {
        Value::table(self.0.iter().map(Keys::encode))
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let (mut laws, names) = (serde_json::Map::new(), law::with_keys());
        let all = schemas::<LinkConfig>(generator).into_iter().chain(schemas::<SenderConfig>(generator));
        for (name, schema) in all.filter(|(name, _)| names.contains(name)) {
            let schema = schema.to_value();
            match laws
                .get_mut(name)
                .and_then(|known| known.get_mut("properties"))
                .and_then(|at| at.as_object_mut())
            {
                None => {
                    laws.insert(name.into(), schema);
                }
                Some(known) => {
                    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
                        known.entry(key).or_insert_with(|| value.clone());
                    }
                }
            }
        }
        json_schema!({
            "type": "object",
            "description": "Keys of laws, by the names of the laws.",
            "properties": laws,
            "additionalProperties": false,
        })
    }
}

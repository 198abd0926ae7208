//! The line of a run in the list. A summary may be anybody's: what is of another type makes it damaged, and of what it holds no
//! more is kept than the line has.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use congestlab_scenario::folder::{SCENARIO, SUMMARY};
use congestlab_scenario::{disk, sum};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

/// The largest summary that is read: ten thousand flows.
const SUMMARY_MAX: u64 = 16 << 20;
/// The largest scenario that is read for the names of its laws.
const SCENARIO_MAX: u64 = 256 << 10;
/// Laws that a line names.
const LAWS_MAX: usize = 8;
/// Characters of a text of a line.
const TEXT_MAX: usize = 100;

/// The line of a run: the numbers by which runs are told apart.
pub(super) fn run(folder: &Path, name: &str) -> Value {
    let summary = own_file(&folder.join(SUMMARY), SUMMARY_MAX)
        .and_then(|text| serde_json::from_slice::<Summary>(&text).map_err(|error| error.to_string()));
    let summary = match summary {
        Ok(summary) => summary,
        Err(error) => {
            return json!({ "id": name, "kind": "run", "scenario": cut(name), "error": cut(&error) });
        }
    };
    let last = name.rsplit('/').next().unwrap_or(name);
    let last = last.strip_suffix("-live").unwrap_or(last);
    let (links, flows) = (summary.links, summary.flows);
    let measured_s = summary.duration_s.unwrap_or(0.0) - summary.warmup_s.unwrap_or(0.0);
    json!({
        "id": name,
        "kind": "run",
        "scenario": cut(last.rsplitn(3, '-').nth(2).unwrap_or(last)),
        "seed": summary.seed,
        "laws": laws(folder),
        "live": summary.live.is_some(),
        "complete": summary.complete,
        "date": summary.meta.and_then(|meta| meta.date).map(|date| cut(&date)),
        "utilization": links.busiest.map(|(utilization, _)| utilization),
        "queue": links.busiest.and_then(|(_, queue)| queue),
        "drops": links.drops,
        "flows": flows.count,
        "goodput_bps": sum::together(flows.bits, measured_s),
        "jain": summary.jain.0,
    })
}

/// Reads a file of a folder. A link in its place would show a file of somewhere else.
fn own_file(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return Err("it is a link, and links are not followed".into());
    }
    disk::read_file(path, most).map_err(|error| error.to_string())
}

pub(super) fn cut(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

/// The laws of the groups of flows, each once.
fn laws(folder: &Path) -> Vec<String> {
    let text = own_file(&folder.join(SCENARIO), SCENARIO_MAX).ok();
    let table = text.and_then(|text| String::from_utf8(text).ok()?.parse::<toml::Table>().ok());
    let groups = table.as_ref().and_then(|table| table.get("flows")?.as_table()).into_iter().flatten();
    let laws = groups.filter_map(|(_, group)| match group.get("law")? {
        toml::Value::String(law) => Some(cut(law)),
        toml::Value::Table(law) => law.keys().next().map(|law| cut(law)),
        _ => None,
    });
    laws.collect::<BTreeSet<_>>().into_iter().take(LAWS_MAX).collect()
}

#[derive(serde::Deserialize)]
struct Summary {
    seed: Option<u64>,
    complete: Option<bool>,
    live: Option<IgnoredAny>,
    meta: Option<Meta>,
    duration_s: Option<f64>,
    warmup_s: Option<f64>,
    #[serde(default)]
    links: Links,
    #[serde(default)]
    flows: Flows,
    #[serde(default)]
    jain: Jain,
}

#[derive(serde::Deserialize)]
struct Meta {
    date: Option<String>,
}

/// Utilisation and mean queue of the link that is used most, but for mirrors, and drops of all.
#[derive(Default)]
struct Links {
    busiest: Option<(f64, Option<f64>)>,
    drops: f64,
}

#[derive(serde::Deserialize)]
struct Link {
    utilization: Option<f64>,
    queue_mean_packets: Option<f64>,
    drops: Option<f64>,
}

/// Flows of all groups, and the bits that first arrived of them.
#[derive(Default)]
struct Flows {
    count: u64,
    bits: Option<f64>,
}

impl Flows {
    fn add(&mut self, count: u64, bytes: Option<f64>) {
        self.count = self.count.saturating_add(count);
        if let Some(bytes) = bytes {
            *self.bits.get_or_insert(0.0) += bytes * 8.0;
        }
    }
}

/// As [`sum::arrived_bits`] reads it.
#[derive(serde::Deserialize)]
struct Flow {
    arrived_bytes: Option<f64>,
    delivered_bytes: Option<f64>,
}

/// A group as `--flows summary` writes it.
#[derive(serde::Deserialize)]
struct Distribution {
    count: Option<f64>,
    mean: Option<f64>,
}

/// The least of all groups.
#[derive(Default)]
struct Jain(Option<f64>);

/// Makes a value of the members of an object, one after the other, so that none of them is kept.
struct Members<T, F>(T, F, &'static str);

impl<'de, T, V: Deserialize<'de>, F: FnMut(&mut T, &str, V)> Visitor<'de>
    for Members<T, (F, std::marker::PhantomData<V>)>
{
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.2)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<T, A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value()?;
            (self.1.0)(&mut self.0, &name, value);
        }
        Ok(self.0)
    }
}

fn members<'de, D: Deserializer<'de>, T: Default, V: Deserialize<'de>>(
    from: D,
    what: &'static str,
    each: impl FnMut(&mut T, &str, V),
) -> Result<T, D::Error> {
    from.deserialize_map(Members(T::default(), (each, std::marker::PhantomData), what))
}

impl<'de> Deserialize<'de> for Links {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        members(from, "links by their names", |links: &mut Self, name, link: Link| {
            links.drops += link.drops.unwrap_or(0.0);
            let used = link.utilization.unwrap_or(0.0);
            if !name.ends_with(".reverse") && links.busiest.is_none_or(|(most, _)| used >= most) {
                links.busiest = Some((used, link.queue_mean_packets));
            }
        })
    }
}

impl<'de> Deserialize<'de> for Flows {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        members(from, "groups of flows by their names", |flows: &mut Self, _, group: Group| {
            flows.add(group.0.count, group.0.bits.map(|bits| bits / 8.0));
        })
    }
}

impl<'de> Deserialize<'de> for Jain {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        members(from, "numbers by the names of groups", |least: &mut Self, _, jain: Option<f64>| {
            least.0 = least.0.into_iter().chain(jain).min_by(f64::total_cmp);
        })
    }
}

/// A list of flows, or their distributions.
struct Group(Flows);

impl<'de> Deserialize<'de> for Group {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Group;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list of flows, or their distributions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Group, A::Error> {
                let mut flows = Flows::default();
                while let Some(flow) = list.next_element::<Flow>()? {
                    flows.add(1, flow.arrived_bytes.or(flow.delivered_bytes));
                }
                Ok(Group(flows))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Group, A::Error> {
                let (mut count, mut bytes) = (0, None);
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        "count" => count = map.next_value()?,
                        "arrived_bytes" => {
                            let of: Distribution = map.next_value()?;
                            bytes = of.count.zip(of.mean).map(|(count, mean)| count * mean);
                        }
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                let mut flows = Flows::default();
                flows.add(count, bytes);
                if flows.bits.is_some_and(f64::is_nan) {
                    return Err(A::Error::custom("its sum is no number"));
                }
                Ok(Group(flows))
            }
        }

        from.deserialize_any(Either)
    }
}

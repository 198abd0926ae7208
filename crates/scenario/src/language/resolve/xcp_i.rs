//! XCP-i: routers and their agents from the links that are interoperable, and what is odd about it.

use std::collections::{BTreeMap, BTreeSet};

use congestlab_core::law::xcp_i::{Config as Exchange, Period as AskEvery};
use congestlab_core::law::{LinkConfig, SenderConfig};
use congestlab_core::units::{Duration, Rate, SECOND};
use congestlab_net::xcp_i::{self, Config};
use congestlab_sim::cloud::{self, HOSTS, Node};
use congestlab_sim::model::{Device, DeviceKind, Group, GroupKind, Model, Router};

use super::directions;
use crate::language::estimator::Estimator;
use crate::language::file::{Flow, Link};
use crate::language::law::LinkLaw;
use crate::language::settings::Chosen;
use crate::language::xcp_i::{InteroperableLink, NoEstimate, Part, Period, VirtualQueue};
use congestlab_text::decode::{At, Chance, Named, fill};
use congestlab_text::diagnostic::{Findings, Span};

/// More upstream neighbours than any router has.
const TABLE_MAX: u32 = 1 << 20;

/// Returns the settings of XCP-i on a link, if its law has them.
fn told(link: &Link) -> Option<(&InteroperableLink, Span)> {
    let law = link.law.as_ref()?;
    Some((law.value.xcp_i()?, law.span))
}

/// Returns the longest round trip of each link. Interoperable links that name their routers have that of all such links:
/// links of one router share one law, and the two directions of a link can have different routers.
pub(super) fn shared_round_trips(links: &Named<Link>, base_rtts: &[Duration]) -> Vec<Duration> {
    let is_shared = |link: &Link| link.at.is_some() && told(link).is_some_and(|(keys, _)| keys.is_on());
    let all = directions(links).enumerate();
    let shared: BTreeSet<usize> =
        all.filter(|(_, (_, link, _))| is_shared(link)).map(|(index, _)| index / 2).collect();
    let longest = shared.iter().map(|&link| base_rtts[link]).max();
    let of = |(link, &own): (usize, &Duration)| longest.filter(|_| shared.contains(&link)).unwrap_or(own);
    base_rtts.iter().enumerate().map(of).collect()
}

/// Fills in the defaults of a link that is interoperable; what its router does as the downstream edge
/// of clouds, with the constants of its own law.
pub(super) fn link(law: &mut Chosen<LinkConfig>, span: Span, findings: &mut Findings) {
    if !law.config.is_steered() {
        return;
    }
    let place = format!("{}.law.{}", findings.place(), law.name);
    let keys = &mut law.beside;
    if let Some(at) = keys.release.as_ref().filter(|at| at.value == Part::Of(Chance(0.0))) {
        let help = "allowed: above 0 up to 1; with 0 no flow would ever get what the cloud has";
        findings.error("scenario::range", at.span, format!("`{place}.release` is 0"), help);
    }
    let is_on = fill(&mut keys.interoperable, span, || false).value;
    if !is_on {
        warn_without_effect(keys, &place, findings);
        return;
    }
    let default = Config::new(law.config.clone());
    fill(&mut keys.no_estimate, span, || NoEstimate::Auto);
    // The queue that the two directions of a cloud make stands in the cloud, which the paper's `host` never sees.
    fill(&mut keys.virtual_queue, span, || VirtualQueue::Cloud);
    fill(&mut keys.signed, span, || default.signed);
    fill(&mut keys.release, span, || Part::Auto);
    fill(&mut keys.give_back, span, || Part::Auto);
    let period = fill(&mut keys.period, span, || Period::Interval);
    let spans = [
        ("request_timeout", fill(&mut keys.request_timeout, span, || default.exchange.timeout)),
        ("backoff", fill(&mut keys.backoff, span, || default.exchange.backoff)),
        ("idle", fill(&mut keys.idle, span, || default.exchange.idle)),
    ];
    let period = match period.value {
        Period::Interval => None,
        Period::Every(every) => Some(("period", At { value: every, span: period.span })),
    };
    for (key, at) in spans.into_iter().chain(period) {
        if at.value.0 == 0 {
            let message = format!("`{place}.{key}` is zero");
            findings.error("scenario::range", at.span, message, "allowed: above 0 s, such as \"1 s\"");
        }
    }
    let counts = [
        ("attempts", fill(&mut keys.attempts, span, || default.exchange.attempts), u32::MAX),
        ("stale", fill(&mut keys.stale, span, || default.exchange.stale), u32::MAX),
        ("table", fill(&mut keys.table, span, || default.table as u32), TABLE_MAX),
    ];
    for (key, at, most) in counts {
        if at.value == 0 || at.value > most {
            let message = format!("`{place}.{key}` is {}", at.value);
            findings.error("scenario::range", at.span, message, format!("allowed: 1 to {most}"));
        }
    }
    if let Some(at) = &mut keys.estimator {
        at.value.resolve(at.span);
    }
}

/// The keys beside `interoperable` that are there, and where.
fn spans(keys: &InteroperableLink) -> impl Iterator<Item = (&'static str, Span)> {
    let spans = [
        ("estimator", keys.estimator.as_ref().map(|at| at.span)),
        ("no_estimate", keys.no_estimate.as_ref().map(|at| at.span)),
        ("virtual_queue", keys.virtual_queue.as_ref().map(|at| at.span)),
        ("signed", keys.signed.as_ref().map(|at| at.span)),
        ("release", keys.release.as_ref().map(|at| at.span)),
        ("give_back", keys.give_back.as_ref().map(|at| at.span)),
        ("period", keys.period.as_ref().map(|at| at.span)),
        ("request_timeout", keys.request_timeout.as_ref().map(|at| at.span)),
        ("attempts", keys.attempts.as_ref().map(|at| at.span)),
        ("backoff", keys.backoff.as_ref().map(|at| at.span)),
        ("idle", keys.idle.as_ref().map(|at| at.span)),
        ("stale", keys.stale.as_ref().map(|at| at.span)),
        ("table", keys.table.as_ref().map(|at| at.span)),
    ];
    spans.into_iter().filter_map(|(key, span)| Some((key, span?)))
}

/// Returns true if a key has its default value.
fn is_default(key: &str, config: &Config) -> bool {
    let default = Config::new(config.law.clone());
    let (exchange, usual) = (&config.exchange, &default.exchange);
    match key {
        "no_estimate" => config.no_estimate == default.no_estimate,
        "virtual_queue" => config.virtual_queue == xcp_i::VirtualQueue::Cloud,
        "signed" => config.signed == default.signed,
        "release" => config.release == default.release,
        "give_back" => config.give_back == default.give_back,
        "period" => exchange.period == usual.period,
        "request_timeout" => exchange.timeout == usual.timeout,
        "attempts" => exchange.attempts == usual.attempts,
        "backoff" => exchange.backoff == usual.backoff,
        "idle" => exchange.idle == usual.idle,
        "stale" => exchange.stale == usual.stale,
        "table" => config.table == default.table,
        _ => true,
    }
}

fn warn_without_effect(keys: &InteroperableLink, place: &str, findings: &mut Findings) {
    for (key, span) in spans(keys) {
        let help = "XCP-i is off: write interoperable = true beside it";
        if key == "estimator" {
            let message = format!("`{place}.estimator` is on a link that bounds no cloud");
            findings.error("scenario::xcp-i", span, message, help);
        } else {
            let message = format!("`{place}.{key}` has no effect without `interoperable`");
            findings.warning("scenario::no-effect", span, message, help);
        }
    }
}

/// Returns the router's settings from a link's keys.
fn config(keys: &InteroperableLink, law: LinkConfig) -> Config {
    fn of<T: Copy>(key: &Option<At<T>>, default: T) -> T {
        key.as_ref().map_or(default, |at| at.value)
    }
    let default = Config::new(law);
    let part = |key: &Option<At<Part>>| key.as_ref().and_then(|at| at.value.ratio());
    let time = |key: &Option<At<Duration>>, default| of(key, default);
    Config {
        exchange: Exchange {
            period: match of(&keys.period, Period::Interval) {
                Period::Interval => AskEvery::Interval,
                Period::Every(every) => AskEvery::Every(every),
            },
            timeout: time(&keys.request_timeout, default.exchange.timeout),
            attempts: of(&keys.attempts, default.exchange.attempts),
            backoff: time(&keys.backoff, default.exchange.backoff),
            idle: time(&keys.idle, default.exchange.idle),
            stale: of(&keys.stale, default.exchange.stale),
        },
        no_estimate: match of(&keys.no_estimate, NoEstimate::Auto) {
            NoEstimate::Auto => xcp_i::NoEstimate::Auto,
            NoEstimate::Pass => xcp_i::NoEstimate::Pass,
            NoEstimate::Hold => xcp_i::NoEstimate::Hold,
        },
        virtual_queue: match of(&keys.virtual_queue, VirtualQueue::Cloud) {
            VirtualQueue::Auto => xcp_i::VirtualQueue::Auto,
            VirtualQueue::Host => xcp_i::VirtualQueue::Host,
            VirtualQueue::Cloud => xcp_i::VirtualQueue::Cloud,
            VirtualQueue::None => xcp_i::VirtualQueue::None,
        },
        signed: of(&keys.signed, default.signed),
        release: part(&keys.release),
        give_back: part(&keys.give_back),
        table: of(&keys.table, default.table as u32) as usize,
        law: default.law,
    }
}

/// Makes routers of the links that are interoperable, and XCP-i nodes of the hosts of flows that are;
/// then looks at what bounds which cloud.
pub(super) fn interoperate(
    model: &mut Model,
    links: &mut Named<Link>,
    flows: &Named<Flow>,
    findings: &mut Findings,
) {
    let mut routers: BTreeMap<String, usize> = BTreeMap::new();
    for (index, (place, link, _)) in (0..).zip(directions(links)) {
        let Some((keys, span)) = told(link).filter(|(keys, _)| keys.is_on()) else { continue };
        let law = model.links[index as usize].port.law.as_ref();
        let Some(law) = law.filter(|law| law.config.is_steered()) else { continue };
        // Virtual routers are told what is spare, and no capacity.
        let mut law = law.config.clone();
        law.set_capacity(Rate(0));
        let (config, estimator) =
            (config(keys, law), keys.estimator.as_ref().map(|at| at.value.clone().resolve(at.span)));
        let name = link.at.as_ref().map_or(place.as_str(), |at| at.value.as_str());
        let Some(&at) = routers.get(name) else {
            routers.insert(name.into(), model.devices.len());
            let router = Box::new(Router { config, estimators: vec![estimator] });
            model.devices.push(Device { links: vec![index], kind: DeviceKind::Router(router) });
            continue;
        };
        let Device { links, kind: DeviceKind::Router(router) } = &mut model.devices[at] else { continue };
        links.push(index);
        router.estimators.push(estimator);
        // One table, whose virtual routers run one law: what it is told must be told alike.
        if config != router.config {
            let first = &model.links[links[0] as usize].name;
            let message =
                format!("`{place}.law` and that of `links.{first}`, both at \"{name}\", are not the same");
            let help = format!(
                "links of one router share its table of clouds and the law of its virtual routers: write \
                 law and keys as in `links.{first}`; allowed to differ: capacity and estimator"
            );
            findings.error("scenario::xcp-i", span, message, help);
        }
    }
    let owners = cloud::routers(model);
    let count: u32 = model.groups.iter().map(|group| group.count).sum();
    for (index, (name, flow)) in flows.0.iter().enumerate() {
        let group = &mut model.groups[index];
        if group.interoperable.is_none() {
            continue;
        }
        // The receiver as the routers before it.
        let router = |&link: &u32| model.devices[owners[link as usize]? as usize].router();
        let last = group.paths().find_map(|(path, _)| path.iter().rev().find_map(router));
        if let Some(config) = last.map(|router| router.config.clone()) {
            group.interoperable = Some(config);
        }
        if count > HOSTS {
            let message =
                format!("`flows.{}` is interoperable, and the scenario has {count} flows", name.value);
            let help = format!("every host of XCP-i needs an address of its own: up to {HOSTS} flows");
            findings.error("scenario::range", flow.span, message, help);
            return;
        }
    }
    look_at_links(model, links, findings);
    look_at_flows(model, links, flows, findings);
    look_for_loops(model, flows, findings);
    if findings.is_live {
        refuse_live(model, links, flows, findings);
    }
    write_estimators(model, links);
}

/// Refuses what nodes of XCP-i with real packets do not do (docs/linux.md, XCP-i).
fn refuse_live(model: &Model, links: &mut Named<Link>, flows: &Named<Flow>, findings: &mut Findings) {
    let mut refuse = |span: Span, message: String, help: &str| {
        findings.error("scenario::live", span, message, format!("{help}; or simulate it"));
    };
    for (place, link, _) in directions(links) {
        if let Some((_, span)) = told(link).filter(|(keys, _)| keys.is_on())
            && let Some(law) = link.law.as_ref().map(|law| &law.value.0)
            && !matches!(law.config, LinkConfig::Xcp(_))
        {
            let message = format!("`{place}.law` is {} with XCP-i", law.name);
            refuse(span, message, "a live lab's routers have XCP-i with the law xcp");
        }
    }
    for (group, (name, flow)) in model.groups.iter().zip(&flows.0) {
        let Some(law) = flow.value.law.as_ref().filter(|_| group.interoperable.is_some()) else { continue };
        let GroupKind::Tcp(config) = &group.kind else { continue };
        if !matches!(config.law, SenderConfig::Xcp(_)) {
            let message = format!("`flows.{}.law` is {} with XCP-i", name.value, law.value.name());
            refuse(law.span, message, "a live lab's hosts have XCP-i with the law xcp");
        }
    }
    let mut looked_at = BTreeSet::new();
    for cloud in cloud::clouds(model) {
        let Some(&exit) = cloud.exits.first() else {
            let Node::Receiver(group) = cloud.down else { continue };
            let (name, flow) = &flows.0[group as usize];
            let Some(law) = &flow.value.law else { continue };
            let message = format!("the path of `flows.{}` ends with links without XCP-i", name.value);
            let help = "a live lab's receivers are no edges of clouds: write interoperable = true on the last \
                        link's law";
            refuse(law.span, message, help);
            continue;
        };
        let estimator = cloud.bounds().find_map(|link| law_of(links, link)?.value.0.beside.estimator.clone());
        let is_direct = estimator
            .as_ref()
            .is_some_and(|at| matches!(&at.value, Estimator::Direct(direct) if !direct.is_passive()));
        let Some(law) = law_of(links, exit) else { continue };
        if !is_direct {
            let inside =
                cloud.inside.iter().map(|&link| format!("`links.{}`", model.links[link as usize].name));
            let inside = inside.collect::<Vec<_>>().join(", ");
            let message = format!("the cloud of {inside} is not probed directly, without `passive`");
            let help = "a live lab's agents do nothing else: estimator = { direct = { capacity = ... } }";
            refuse(estimator.map_or(law.span, |at| at.span), message, help);
        }
        let Node::Router(device) = cloud.down else { continue };
        let Some(router) = model.devices[device as usize].router().filter(|_| looked_at.insert(device))
        else {
            continue;
        };
        let at: BTreeMap<&str, Span> = spans(&law.value.0.beside).collect();
        let (link, name) = (&model.links[exit as usize].name, law.value.0.name);
        for (key, help) in not_live(&router.config) {
            let span = at.get(key).copied().unwrap_or(law.span);
            refuse(
                span,
                format!("`links.{link}.law.{name}.{key}` is not what a live lab's routers do"),
                help,
            );
        }
    }
}

/// The shortest period of an agent with real packets: between two trains for the same edge it rests for 0.3 s.
const PERIOD_MIN: Duration = Duration(SECOND / 2);

/// Returns the settings that such an agent does not have, with what to write.
fn not_live(config: &Config) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let is_slow = matches!(config.exchange.period, AskEvery::Every(period) if period >= PERIOD_MIN);
    let is_cloud = matches!(config.virtual_queue, xcp_i::VirtualQueue::Auto | xcp_i::VirtualQueue::Cloud);
    let default = Config::new(config.law.clone());
    let all = [
        ("period", is_slow, "allowed: \"500 ms\" and more"),
        ("signed", !config.signed, "no bandwidth is found that is below zero: write false"),
        ("virtual_queue", is_cloud, "allowed: \"cloud\""),
        ("no_estimate", config.no_estimate != xcp_i::NoEstimate::Hold, "allowed: \"pass\""),
        ("table", config.table == default.table, "allowed: 1024"),
    ];
    all.into_iter().filter(|(_, is_live, _)| !is_live).map(|(key, _, help)| (key, help))
}

/// Writes down who is asked where nobody says it: at the edge whose word counts first.
fn write_estimators(model: &Model, links: &mut Named<Link>) {
    for cloud in cloud::of_all_paths(model) {
        let has_one = cloud
            .bounds()
            .any(|link| law_of(links, link).is_some_and(|law| law.value.0.beside.estimator.is_some()));
        if let Some(first) = cloud.bounds().next()
            && !has_one
            && let Some(At { value: LinkLaw(law), span }) = law_of(links, first)
        {
            let at =
                law.beside.estimator.get_or_insert_with(|| At { value: Estimator::default(), span: *span });
            at.value.resolve(*span);
        }
    }
}

/// The law of a link direction.
fn law_of(links: &mut Named<Link>, index: u32) -> Option<&mut At<LinkLaw>> {
    let link = &mut links.0.get_mut(index as usize / 2)?.1.value;
    match index % 2 {
        0 => link.law.as_mut(),
        _ => link.reverse.as_mut()?.value.0.law.as_mut(),
    }
}

/// Estimators without a cloud, and links whom nobody needs.
fn look_at_links(model: &Model, links: &Named<Link>, findings: &mut Findings) {
    let (clouds, owners) = (cloud::of_all_paths(model), cloud::routers(model));
    // By link: the slowest port into a cloud that it bounds.
    let mut slowest: BTreeMap<u32, Option<Rate>> = BTreeMap::new();
    // All links of a router share what is written beside.
    let mut edges = BTreeSet::new();
    for cloud in &clouds {
        let port = cloud.forward.first().map(|&link| &model.links[link as usize].port);
        let port = port.map(|port| port.service.capacity_at(0));
        for link in cloud.bounds() {
            let slowest = slowest.entry(link).or_default();
            *slowest = slowest.iter().copied().chain(port).min();
        }
        edges.extend([cloud.up, cloud.down]);
    }
    let interoperable = model.groups.iter().filter(|group| group.interoperable.is_some());
    let used: BTreeSet<u32> =
        interoperable.flat_map(Group::paths).flat_map(|(path, _)| path).copied().collect();
    for (index, (place, link, _)) in (0..).zip(directions(links)) {
        let Some((keys, span)) = told(link).filter(|(keys, _)| keys.is_on()) else { continue };
        let name = link.law.as_ref().map_or("", |law| law.value.0.name);
        if let Some(estimator) = &keys.estimator
            && let Some(&Some(port)) = slowest.get(&index)
        {
            estimator.value.look_at(port, &format!("{place}.law.{name}"), estimator.span, findings);
        }
        let is_used = used.contains(&index);
        if let Some(estimator) = &keys.estimator
            && !slowest.contains_key(&index)
        {
            let message = format!("`{place}.law.{name}.estimator` is on a link that bounds no cloud");
            findings.error("scenario::xcp-i", estimator.span, message, no_cloud(is_used));
        } else if !is_used {
            let message = format!("`{place}.law` is interoperable, but no flow that crosses it is");
            let help = "it does what XCP does: packets without the TTL of XCP-i show no cloud; write \
                        interoperable = true on the law of its flows too";
            findings.warning("scenario::xcp-i", span, message, help);
        } else if let Some(owner) = owners[index as usize]
            && !edges.contains(&Node::Router(owner))
        {
            let Some(router) = model.devices[owner as usize].router() else { continue };
            for (key, span) in spans(keys).filter(|(key, _)| !is_default(key, &router.config)) {
                let message = format!("`{place}.law.{name}.{key}` has no effect: its router bounds no cloud");
                findings.warning("scenario::no-effect", span, message, no_cloud(is_used));
            }
        }
    }
}

/// Why a link bounds no cloud.
fn no_cloud(is_used: bool) -> &'static str {
    if is_used {
        "on the paths of interoperable flows no link without XCP-i comes before it or behind it"
    } else {
        "no interoperable flow crosses it"
    }
}

/// Paths that leave a router and come back to it through a cloud: it is no neighbour of its own.
fn look_for_loops(model: &Model, flows: &Named<Flow>, findings: &mut Findings) {
    let router = cloud::routers(model);
    let owner = |path: &[u32], at: usize| router[path[at] as usize];
    for (group, (name, flow)) in model.groups.iter().zip(&flows.0) {
        let Some(law) = flow.value.law.as_ref().filter(|_| group.interoperable.is_some()) else { continue };
        let found = group.paths().find_map(|(path, _)| {
            let owned: Vec<usize> = (0..path.len()).filter(|&at| owner(path, at).is_some()).collect();
            let pairs = owned.windows(2).map(|pair| [pair[0], pair[1]]);
            let mut pairs = pairs.filter(|&[from, to]| from + 1 < to && owner(path, from) == owner(path, to));
            pairs.next().map(|pair| pair.map(|at| &model.links[path[at] as usize].name))
        });
        if let Some([from, to]) = found {
            let message = format!(
                "`flows.{}` goes from `links.{from}` to `links.{to}`, of one router, through links without XCP-i",
                name.value
            );
            let help = "a router asks itself for no estimate: what `no_estimate` says is done with these \
                        packets for ever; write another `at` for one of the two";
            findings.warning("scenario::xcp-i", law.span, message, help);
        }
    }
}

/// Flows that are interoperable where nothing else is, or are not where others are.
fn look_at_flows(model: &Model, links: &Named<Link>, flows: &Named<Flow>, findings: &mut Findings) {
    let places: Vec<(String, bool, bool)> = directions(links)
        .map(|(place, link, _)| (place, link.law.is_some(), told(link).is_some_and(|(keys, _)| keys.is_on())))
        .collect();
    let mut named = BTreeSet::new();
    for (group, (name, flow)) in model.groups.iter().zip(&flows.0) {
        let Some(law) = &flow.value.law else { continue };
        let paths: Vec<Vec<_>> = group
            .paths()
            .map(|(path, _)| path.iter().map(|&link| &places[link as usize]).collect())
            .collect();
        let is_xcp = law.value.is_interoperable().is_some();
        let some = |path: &&Vec<&(_, _, bool)>| path.iter().any(|place| place.2);
        let legacy = paths.iter().position(|path| !some(&path));
        let mixed = paths.iter().filter(some).any(|path| path.iter().any(|place| !place.2));
        if group.interoperable.is_some() {
            if let Some(legacy) = legacy {
                let path = match legacy {
                    0 => "its path".to_owned(),
                    later => format!("`flows.{}.switch[{}].path`", name.value, later - 1),
                };
                let message =
                    format!("`flows.{}.law` is interoperable, but no link of {path} is", name.value);
                let help = "its whole path is one cloud between its hosts, in which even XCP routers count \
                            as links without XCP-i; write interoperable = true on the law of a link";
                findings.warning("scenario::xcp-i", law.span, message, help);
            }
            // An XCP router that does not take part is inside of a cloud, though it could be an edge.
            let beside_others = paths.iter().filter(some).flatten();
            for (place, ..) in beside_others.filter(|(_, has_law, is_on)| *has_law && !is_on) {
                if named.insert(place.clone()) {
                    let message = format!("`{place}.law` is not interoperable, but flows that cross it are");
                    let help = "it does what XCP does, and is a part of a cloud for them, whose bandwidth is \
                                estimated; write interoperable = true there to make it an edge";
                    findings.warning("scenario::xcp-i", law.span, message, help);
                }
            }
        } else if is_xcp && mixed {
            let message =
                format!("`flows.{}.law` is not interoperable, but links of its path are", name.value);
            let help = "its packets carry no TTL: the links without XCP on its path limit it by loss alone; \
                        write interoperable = true on its law";
            findings.warning("scenario::xcp-i", law.span, message, help);
        }
    }
}

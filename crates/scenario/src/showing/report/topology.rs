//! The scenario's network as an SVG picture: routers as dots in columns from left to right, links as
//! broad lines with what they are, groups of flows as boxes, and the path of each group as a thin line.
//!
//! Read from the normalised scenario, whose values are texts with units. A scenario says at which
//! router a link begins; where it ends follows from the paths that go on from there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use toml::{Table, Value};

use congestlab_text::printable::escape;

/// Larger networks are a table, not a picture.
const LINKS_MAX: usize = 40;
const GROUPS_MAX: usize = 24;

const COLUMN: f64 = 200.0;
const ROW: f64 = 78.0;
const MARGIN: f64 = 14.0;
const BOX: (f64, f64) = (124.0, 40.0);
/// More are counted where they are named in a line.
const NAMED_MAX: usize = 6;
/// Distance of the paths of two groups on one link.
const TRACK: f64 = 4.0;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Router(String),
    /// Where a link ends, if no path, or more than one router, follows it.
    End(usize),
    Sender(usize),
    Receiver(usize),
}

impl Node {
    fn is_box(&self) -> bool {
        matches!(self, Self::Sender(_) | Self::Receiver(_))
    }
}

struct Link {
    name: String,
    /// Rate, delay and medium; queue and law.
    about: [String; 2],
    from: Node,
    to: Node,
}

struct Group {
    name: String,
    about: String,
    hue: usize,
    /// Links in order; true: the other way.
    path: Vec<(usize, bool)>,
}

/// The picture, or `None` for a network too large for one.
/// `hue_of` says the hue of a group by its name.
pub(crate) fn draw(normalised: &str, hue_of: &dyn Fn(&str) -> usize) -> Option<String> {
    let file: Table = normalised.parse().ok()?;
    let (mut links, groups) = (links(&file), groups(&file, hue_of));
    if links.is_empty() || links.len() > LINKS_MAX || groups.len() > GROUPS_MAX {
        return None;
    }
    join(&mut links, &groups);
    let places = place(&links, &groups);
    Some(picture(&links, &groups, &places))
}

/// The groups of flows and the laws of links in words: `ftp: 10 x xcp`, `core: xcp`.
pub(crate) fn laws(normalised: &str) -> Option<[String; 2]> {
    let file: Table = normalised.parse().ok()?;
    let groups = groups(&file, &|_| 0);
    let flows = groups.iter().map(|group| format!("{}: {}", cut(&group.name, 26), group.about));
    let links = tables(&file, "links")
        .filter_map(|(name, link)| Some(format!("{}: {}", cut(name, 26), short(link.get("law")?))));
    Some([flows.collect(), links.collect()].map(|mut words: Vec<String>| {
        let more = words.len().saturating_sub(NAMED_MAX);
        words.truncate(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        words.join(", ") + &more
    }))
}

fn tables<'a>(file: &'a Table, key: &str) -> impl Iterator<Item = (&'a String, &'a Table)> {
    let all = file.get(key).and_then(Value::as_table).into_iter().flatten();
    all.filter_map(|(name, value)| Some((name, value.as_table()?)))
}

fn links(file: &Table) -> Vec<Link> {
    let text = |link: &Table, key: &str| link.get(key).map(short).unwrap_or_default();
    let list = |link: &Table, keys: &[&str]| {
        let parts: Vec<String> = keys.iter().map(|key| text(link, key)).collect();
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    };
    tables(file, "links")
        .enumerate()
        .map(|(index, (name, link))| Link {
            name: name.clone(),
            about: [list(link, &["rate", "delay", "medium"]), list(link, &["queue", "law"])],
            from: Node::Router(link.get("at").and_then(Value::as_str).unwrap_or(name).to_owned()),
            to: Node::End(index),
        })
        .collect()
}

fn groups(file: &Table, hue_of: &dyn Fn(&str) -> usize) -> Vec<Group> {
    let names: BTreeMap<&str, usize> =
        tables(file, "links").map(|(name, _)| name.as_str()).zip(0..).collect();
    let hop = |text: &str| {
        let forward = names.get(text).map(|&link| (link, false));
        let reverse = || Some((*names.get(text.strip_suffix(".reverse")?)?, true));
        forward.or_else(reverse)
    };
    tables(file, "flows")
        .map(|(name, group)| {
            let count = group.get("count").and_then(Value::as_integer).unwrap_or(1);
            let path = group.get("path").and_then(Value::as_array).into_iter().flatten();
            Group {
                name: name.clone(),
                hue: hue_of(name),
                about: format!("{count} x {}", group.get("law").map(short).unwrap_or_default()),
                path: path.filter_map(Value::as_str).filter_map(hop).collect(),
            }
        })
        .collect()
}

/// A value of the normalised scenario in few words: a text, or the name of a table's only key.
fn short(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Table(table) => match table.iter().next() {
            Some((key, Value::Array(steps))) if key == "steps" => format!("{} steps", steps.len()),
            Some((key, _)) => key.clone(),
            None => String::new(),
        },
        other => other.to_string(),
    }
}

/// Lets links end at the one router that every path goes on from.
fn join(links: &mut [Link], groups: &[Group]) {
    let mut next: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); links.len()];
    for group in groups {
        for hops in group.path.windows(2) {
            if let [(link, false), (after, false)] = hops {
                next[*link].insert(*after);
            }
        }
    }
    for (link, next) in next.iter().enumerate() {
        let routers: BTreeSet<&Node> = next.iter().map(|&after| &links[after].from).collect();
        if let Some(router) = routers.first()
            && routers.len() == 1
            && **router != links[link].from
        {
            links[link].to = (*router).clone();
        }
    }
}

/// The nodes that a group's data passes.
fn nodes_of(group: &Group, links: &[Link]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for &(link, is_reverse) in &group.path {
        let (from, to) = (&links[link].from, &links[link].to);
        let ends = if is_reverse { [to, from] } else { [from, to] };
        for node in ends {
            if nodes.last() != Some(node) {
                nodes.push(node.clone());
            }
        }
    }
    nodes
}

/// Columns by the longest way from the left, rows in the order of the file; boxes below routers.
fn place(links: &[Link], groups: &[Group]) -> BTreeMap<Node, (f64, f64)> {
    let mut columns: BTreeMap<Node, i64> = BTreeMap::new();
    for link in links {
        columns.insert(link.from.clone(), 0);
        columns.insert(link.to.clone(), 0);
    }
    // In a ring every round adds a column: after as many rounds as links, all is as far right as it
    // gets without one.
    for _ in 0..links.len() {
        for link in links {
            let column = columns[&link.from] + 1;
            let is_ring = column > links.len() as i64;
            let to = columns.entry(link.to.clone()).or_default();
            *to = if is_ring { *to } else { column.max(*to) };
        }
    }
    for (index, group) in groups.iter().enumerate() {
        let nodes = nodes_of(group, links);
        let column = |node: Option<&Node>| node.and_then(|node| columns.get(node)).copied().unwrap_or(0);
        let (first, last) = (column(nodes.first()), column(nodes.last()));
        // Against the direction of the links, senders stand on the right.
        let step = if last >= first { 1 } else { -1 };
        columns.insert(Node::Sender(index), first - step);
        columns.insert(Node::Receiver(index), last + step);
    }

    let left = columns.values().min().copied().unwrap_or(0);
    let mut order: Vec<(i64, bool, &Node)> =
        columns.iter().map(|(node, column)| (*column, node.is_box(), node)).collect();
    order.sort();
    let mut places = BTreeMap::new();
    for column in order.chunk_by(|a, b| a.0 == b.0) {
        let boxes = column.iter().filter(|(_, is_box, _)| *is_box).count();
        // Routers around the middle; boxes below them, or around the middle if alone.
        let centred = if boxes == column.len() { boxes } else { column.len() - boxes };
        for (row, (at, _, node)) in column.iter().enumerate() {
            let y = (row as f64 - (centred as f64 - 1.0) / 2.0) * ROW;
            places.insert((*node).clone(), ((at - left) as f64 * COLUMN, y));
        }
    }
    places
}

fn picture(links: &[Link], groups: &[Group], places: &BTreeMap<Node, (f64, f64)>) -> String {
    let range = |pick: fn(&(f64, f64)) -> f64| {
        let values = || places.values().map(pick);
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
    };
    let ((left, right), (top, bottom)) = (range(|place| place.0), range(|place| place.1));
    let (x0, y0) = (left - BOX.0 / 2.0 - MARGIN, top - ROW / 2.0 - MARGIN);
    let (width, height) = (right - left + BOX.0 + 2.0 * MARGIN, bottom - top + ROW + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg class=\"topology\" viewBox=\"{x0} {y0} {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"Topology: {} links, {} groups of flows\">\n",
        links.len(),
        groups.len()
    );
    for link in links {
        let (a, b) = (places[&link.from], places[&link.to]);
        let about = link.about.join(", ");
        let _ = writeln!(
            svg,
            "<path class=\"wire\" d=\"M{} {}L{} {}\"><title>{}: {}</title></path>",
            a.0,
            a.1,
            b.0,
            b.1,
            escape(&link.name),
            escape(&about)
        );
    }
    for (index, group) in groups.iter().enumerate() {
        let shift = (index as f64 - (groups.len() as f64 - 1.0) / 2.0) * TRACK;
        let (sender, receiver) = (places[&Node::Sender(index)], places[&Node::Receiver(index)]);
        let mut way = vec![sender];
        way.extend(nodes_of(group, links).iter().map(|node| (places[node].0, places[node].1 + shift)));
        way.push(receiver);
        let mut path = String::new();
        for (x, y) in way {
            let _ = write!(path, "{}{x} {y}", if path.is_empty() { 'M' } else { 'L' });
        }
        let _ = writeln!(
            svg,
            "<path class=\"way c{}\" d=\"{path}\"><title>path of {}</title></path>",
            group.hue,
            escape(&group.name)
        );
    }
    let half = TRACK * (groups.len() as f64 - 1.0).max(0.0) / 2.0;
    for (node, (x, y)) in places {
        match node {
            Node::Router(name) => {
                let _ = writeln!(svg, "<circle class=\"router\" cx=\"{x}\" cy=\"{y}\" r=\"11\"/>");
                // Above: what comes from the groups' boxes comes from below, or from the side.
                text(&mut svg, *x, y - half - 18.0, "name label", &cut(name, 20));
            }
            Node::End(_) => {
                let _ = writeln!(svg, "<circle class=\"router\" cx=\"{x}\" cy=\"{y}\" r=\"6\"/>");
            }
            Node::Sender(index) | Node::Receiver(index) => {
                let group = &groups[*index];
                let (w, h) = BOX;
                let _ = writeln!(
                    svg,
                    "<rect class=\"group c{}\" x=\"{}\" y=\"{}\" width=\"{w}\" height=\"{h}\" rx=\"5\"/>",
                    group.hue,
                    x - w / 2.0,
                    y - h / 2.0
                );
                let is_sender = matches!(node, Node::Sender(_));
                let about = if is_sender { group.about.as_str() } else { "receivers" };
                text(&mut svg, *x, y - 3.0, "name", &cut(&group.name, 17));
                text(&mut svg, *x, y + 12.0, "", about);
            }
        }
    }
    for link in links {
        let (a, b) = (places[&link.from], places[&link.to]);
        let (x, y) = ((a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0);
        // Beyond the paths of all groups. Two lines above, one below: what a reader looks for first is nearest to the line.
        text(&mut svg, x, y - half - 25.0, "name label", &cut(&link.name, 26));
        text(&mut svg, x, y - half - 11.0, "label", &cut(&link.about[0], 28));
        text(&mut svg, x, y + half + 20.0, "label", &cut(&link.about[1], 28));
    }
    svg.push_str("</svg>\n");
    svg
}

fn text(svg: &mut String, x: f64, y: f64, class: &str, content: &str) {
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escape(content));
}

/// A name that fits.
fn cut(name: &str, characters: usize) -> String {
    if name.chars().count() <= characters {
        return name.to_owned();
    }
    name.chars().take(characters - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARKING_LOT: &str = r#"
[links.a]
at = "R1"
rate = "10 Mbit/s"
delay = "5 ms"
queue = "50 packets"
law = { xcp = { alpha = 0.4 } }
[links.b]
at = "R2"
rate = { steps = [["0 s", "1 Mbit/s"], ["5 s", "2 Mbit/s"]] }
[flows.long]
law = "xcp"
path = ["a", "b"]
[flows."<short>"]
law = { cbr = { rate = "1 Mbit/s" } }
count = 3
path = ["b"]
[flows.back]
law = "cubic"
path = ["b.reverse", "a.reverse"]
"#;

    fn places_of(scenario: &str) -> BTreeMap<Node, (f64, f64)> {
        let file: Table = scenario.parse().expect("TOML");
        let (mut links, groups) = (links(&file), groups(&file, &|_| 0));
        join(&mut links, &groups);
        place(&links, &groups)
    }

    #[test]
    fn routers_follow_each_other_from_left_to_right() {
        let places = places_of(PARKING_LOT);
        let x = |node: Node| places[&node].0;
        let (r1, r2) = (x(Node::Router("R1".into())), x(Node::Router("R2".into())));
        assert!(x(Node::Sender(0)) < r1 && r1 < r2 && r2 < x(Node::End(1)));
        assert!(x(Node::Receiver(0)) > x(Node::End(1)));
        assert!(!places.contains_key(&Node::End(0)), "a ends at b's router");
        assert!(x(Node::Sender(2)) > x(Node::End(1)) && x(Node::Receiver(2)) < r1, "back goes back");
    }

    #[test]
    fn a_link_says_what_it_is_and_names_are_escaped() {
        let svg = draw(PARKING_LOT, &|_| 0).expect("small enough");
        for part in [
            ">R1<",
            ">R2<",
            ">10 Mbit/s, 5 ms<",
            ">50 packets, xcp<",
            ">2 steps<",
            ">3 x cbr<",
            "&lt;short&gt;",
        ] {
            assert!(svg.contains(part), "{part} is missing in\n{svg}");
        }
        assert!(!svg.contains("<short>"));
    }

    #[test]
    fn the_laws_are_named_in_a_line_that_ends() {
        let [flows, links] = laws(PARKING_LOT).expect("TOML");
        assert_eq!(flows, "long: 1 x xcp, <short>: 3 x cbr, back: 1 x cubic");
        assert_eq!(links, "a: xcp");
        let many: String = (0..9).map(|flow| format!("[flows.f{flow}]\nlaw = \"xcp\"\n")).collect();
        assert!(laws(&many).is_some_and(|[flows, _]| flows.ends_with("f5: 1 x xcp and 3 more")));
    }

    #[test]
    fn a_ring_ends() {
        let ring = "[links.a]\nat = \"A\"\n[links.b]\nat = \"B\"\n[links.c]\nat = \"C\"\n\
                    [flows.x]\npath = [\"a\", \"b\", \"c\"]\n[flows.y]\npath = [\"c\", \"a\"]\n";
        assert!(draw(ring, &|_| 0).is_some_and(|svg| !svg.contains("NaN") && !svg.contains("inf")));
    }

    #[test]
    fn a_network_too_large_to_read_is_not_drawn() {
        let many: String = (0..=LINKS_MAX).map(|link| format!("[links.l{link}]\n")).collect();
        assert_eq!(draw(&many, &|_| 0), None);
        assert_eq!(draw("[run]\n", &|_| 0), None);
        assert_eq!(draw("not = = toml", &|_| 0), None);
    }
}

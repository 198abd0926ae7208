//! The list of protocols: that each has its page, that its control intervals are what it says, and that nobody else names a
//! law. What every law must satisfy is asked by `congestlab check law`, of all of them in crates/scenario/tests/trial.rs.

#[path = "xcp/hostile.rs"]
mod hostile;
#[path = "xcp/random.rs"]
mod random;

use std::fs;
use std::path::Path;

use congestlab_core::law::settings::{Field, Settings};
use congestlab_core::law::xcp::Header;
use congestlab_core::law::{
    Giver, Link, LinkConfig, Packet, Protocol, SenderConfig, Series as _, Tag, Words,
};
use congestlab_core::units::{Bytes, Duration, Time};
use random::Random;

/// A packet that has every header that a law asks for, or none, with anything in it.
#[derive(Clone, Copy, PartialEq)]
struct Any {
    size: Bytes,
    words: Option<Words>,
    ecn: u8,
    memory: [u32; 8],
}

impl Packet for Any {
    fn size(&self) -> Bytes {
        self.size
    }

    fn ecn(&self) -> u8 {
        self.ecn
    }

    fn set_ecn(&mut self, code: u8) {
        assert!((1..=3).contains(&code), "{code} is no code");
        self.ecn = code;
    }

    fn words(&self, _: Tag) -> Option<&Words> {
        self.words.as_ref()
    }

    fn words_mut(&mut self, _: Tag) -> Option<&mut Words> {
        self.words.as_mut()
    }

    fn add(&mut self, _: Tag) -> Option<&mut Words> {
        Some(self.words.get_or_insert_default())
    }

    fn memory(&mut self, _: [u32; 3], _: Time, _: bool) -> Option<&mut [u32]> {
        Some(&mut self.memory)
    }
}

fn any_packet(random: &mut Random) -> Any {
    let has_header = random.coin();
    let words = has_header.then(|| std::array::from_fn(|_| random.half()));
    Any { size: Bytes(random.word()), words, ecn: random.below(4) as u8, memory: [0; 8] }
}

/// The same packet with this header.
fn with(header: Header, mut packet: Any) -> Any {
    packet.add_header(header);
    packet
}

/// Runs a law over 50 deadlines; before each comes a packet with a header that states the round trip. Returns the shortest
/// interval but the first.
fn shortest(config: &LinkConfig, random: &mut Random, round_trip: Duration) -> Duration {
    let mut law = Link::new(config, Duration(1 + random.below(1000)), Duration(1 + random.below(1000)));
    let (mut ended, mut least) = (None, Duration(u64::MAX));
    for _ in 0..50 {
        let now = law.next_deadline();
        if now == Time::NEVER {
            break;
        }
        let header = Header { x: 1 + random.half() / 2, rtt: round_trip.to_header(), ..random.header() };
        law.on_arrival(now, &with(header, any_packet(random)));
        let before = law.report().intervals();
        law.on_deadline(now, Bytes(random.word()));
        if law.report().intervals() > before
            && let Some(last) = ended.replace(now)
        {
            least = least.min(now - last);
        }
    }
    least
}

/// That none is shorter is asked of every law (`congestlab check law`).
#[test]
fn control_intervals_are_as_short_as_their_law_says() {
    let mut random = Random::new(25);
    for config in Protocol::all().filter_map(|protocol| protocol.link.as_ref()) {
        for round_trip in [Duration(1), Duration(10_000_000), Duration(40_000_000)] {
            // A law that is slow to believe what packets state is so where it begins with it.
            let mut is_so = false;
            let mut begins = vec![config.clone()];
            for place in 0.. {
                let (mut begun, mut spans) = (config.clone(), 0);
                begun.each(&mut |_, _, field| {
                    if let Field::Span(value) = field {
                        if spans == place {
                            *value = config.shortest_interval(round_trip);
                        }
                        spans += 1;
                    }
                });
                if place >= spans {
                    break;
                }
                begins.push(begun);
            }
            for config in &begins {
                let found = shortest(config, &mut random, round_trip);
                let said = config.shortest_interval(round_trip);
                assert!(found >= said, "{found:?}, at least {said:?} with {config:?}");
                is_so |= found == said;
            }
            assert!(is_so, "{config:?}");
        }
    }
}

/// A protocol without a page, or that the tables of the scenario language leave out, is not done.
#[test]
fn every_protocol_has_its_page_and_is_in_the_table() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let scenario = fs::read_to_string(docs.join("scenario.md")).unwrap();
    let rows: Vec<&str> = scenario.lines().filter(|line| line.starts_with("| `law` |")).collect();
    let all = fs::read_to_string(docs.join("laws.md")).unwrap()
        + &fs::read_to_string(docs.join("../scenarios/laws.toml")).unwrap();
    let [of_links, of_flows] = rows[..] else { panic!("one row for links, one for flows: {rows:?}") };
    for protocol in Protocol::all() {
        let page = docs.join("protocols").join(format!("{}.md", protocol.page));
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        let name = protocol.name;
        assert!(text.to_lowercase().contains(name), "{} does not name {name}", page.display());
        assert!(!protocol.about.is_empty() && !protocol.about.contains('\n'), "{name}");
        assert!(protocol.link.is_some() || protocol.sender.is_some(), "{name} runs nowhere");
        let is_listed =
            |row: &str| row.contains(&format!("`{name}`")) || row.contains(&format!("`\"{name}\"`"));
        assert!(protocol.link.is_none() || is_listed(of_links), "{name} is not in {of_links}");
        assert!(protocol.sender.is_none() || is_listed(of_flows), "{name} is not in {of_flows}");
        let is_shown = all.contains(&format!("\"{name}\"")) || all.contains(&format!("`{name}`"));
        assert!(
            is_shown,
            "{name} is neither in scenarios/laws.toml nor left out with a word in docs/laws.md"
        );
    }
}

/// A law's row on the page of needs: its name, the device that gives its signal, what hosts do for it, what it does without the
/// device, and what a lost ACK takes along.
fn row_of_needs(protocol: &Protocol, sender: &SenderConfig) -> String {
    let needs = sender.needs();
    let list = |items: &[(bool, &str)]| {
        let items: Vec<&str> = items.iter().filter(|(is_so, _)| *is_so).map(|(_, item)| *item).collect();
        if items.is_empty() { "-".into() } else { items.join("; ") }
    };
    let hosts = list(&[
        (needs.handshake, "SYN and SYN-ACK carry the signal"),
        (needs.states_round_trip, "packets state the round trip"),
        (needs.each_acknowledged, "each packet is acknowledged"),
        (needs.owns_ecn, "the ECN bits are the law's"),
        (needs.delivery, "samples of the delivery rate"),
        (needs.probes, "probes of low priority"),
        (needs.begins_at_line_rate, "the rate of the line is known"),
    ]);
    let dash = |text: &'static str| if text.is_empty() { "-" } else { text };
    let (device, without, lost) = match needs.network {
        None => ("-".into(), "-", "-"),
        Some(network) => {
            let gives = |giver| match giver {
                Giver::Law(signal) => {
                    let links = Protocol::all()
                        .filter(|other| other.link.as_ref().is_some_and(|law| law.signal() == signal));
                    let names: Vec<String> = links.map(|other| format!("`\"{}\"`", other.name)).collect();
                    format!("`law` = {}", names.join(" or "))
                }
                Giver::Marks(such) => format!("a `discipline` that marks, such as `{such}`"),
                Giver::Queue(name) => format!("`discipline = \"{name}\"`"),
            };
            let place = if network.at_bottleneck { "slowest link" } else { "any link" };
            (format!("{}, {place}", gives(network.giver)), network.without, dash(network.unacknowledged))
        }
    };
    format!("| `{}` | {device} | {hosts} | {without} | {lost} |", protocol.name)
}

/// The page's table is written by the laws: `UPDATE_GOLDEN=1 cargo test -p congestlab-core --test list` writes it again.
#[test]
fn the_page_of_needs_says_what_each_law_needs() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocols/needs.md");
    let text = fs::read_to_string(&page).unwrap();
    let senders = Protocol::all().filter_map(|protocol| Some((protocol, protocol.sender.as_ref()?)));
    let rows: Vec<String> = senders.map(|(protocol, sender)| row_of_needs(protocol, sender)).collect();
    let is_row = |line: &&str| line.starts_with("| `");
    let first = text.lines().position(|line| is_row(&line)).expect("a table");
    let written: Vec<&str> = text.lines().filter(is_row).collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let (before, after) = (text.lines().take(first), text.lines().skip(first + written.len()));
        let lines: Vec<&str> = before.chain(rows.iter().map(String::as_str)).chain(after).collect();
        fs::write(&page, lines.join("\n") + "\n").unwrap();
        return;
    }
    assert_eq!(written, rows);
}

/// A law that a link must answer is given its signal by a link law of the list.
#[test]
fn every_signal_that_a_law_needs_is_given_by_a_link_law() {
    for protocol in Protocol::all() {
        let network = protocol.sender.as_ref().and_then(|sender| sender.needs().network);
        if let Some(Giver::Law(signal)) = network.map(|network| network.giver) {
            let mut links = Protocol::all().filter_map(|other| other.link.as_ref());
            assert!(links.any(|law| law.signal() == signal), "nothing gives {} its {signal}", protocol.name);
        }
    }
}

/// A name is one protocol, and finds it.
#[test]
fn names_are_unique() {
    for protocol in Protocol::all() {
        assert_eq!(Protocol::all().filter(|other| other.name == protocol.name).count(), 1);
        assert!(std::ptr::eq(Protocol::of(protocol.name).unwrap(), protocol));
    }
    assert!(Protocol::of("nobody").is_none());
}

/// Modules of the laws, and the variants of the list.
const MODULES: &[&str] = &[
    "abc",
    "bbr",
    "bbr3",
    "bic",
    "cubic",
    "dctcp",
    "highspeed",
    "hpcc",
    "mpcp",
    "peach",
    "prague",
    "pxcp",
    "rcp",
    "reno",
    "scone",
    "vegas",
    "xcp",
    "xcp2",
    "xcp_i",
    "xcp_r",
    "xcp_r_v0",
];
const VARIANTS: &[&str] = &[
    "Abc",
    "Bbr",
    "Bbr3",
    "Bic",
    "Cubic",
    "Dctcp",
    "HighSpeed",
    "Hpcc",
    "Mpcp",
    "Peach",
    "Prague",
    "Pxcp",
    "Rcp",
    "Reno",
    "Scone",
    "Vegas",
    "Xcp",
    "Xcp2",
    "XcpR",
    "XcpRV0",
];
/// Types of the list, and the names by which they are imported.
const ENUMS: &[&str] = &["LinkConfig", "SenderConfig", "Law", "LinkReport", "LinkView", "Links", "Senders"];

const WIRE: &str = "the bytes of a law's header; its codec is to move into the law's folder";
const XCP_I: &str =
    "XCP-i is nodes, clouds and their messages more than a law; the rest of it is in `net::xcp_i`";
const KERNEL: &str =
    "the kernel's programs of XCP, P-XCP and VCP, which are older than that for any link law";
const LAB: &str = "which law of the kernel stands for which law here";
const NS2: &str = "which agent of ns-2 stands for which law here";
const EXPLAINED: &str = "sentences about a law, which are to be told by the law";
const TESTER: &str = "a tester of the elements of one protocol, by its codes and their rates";
const BYTES: &str = "headers as packet traces have them, whose codec is to move into the laws' folders";

/// Files outside the laws' folder that name a law, with the reason. The list only shrinks.
const NAMERS: &[(&str, &str)] = &[
    ("cli/src/linux/host.rs", KERNEL),
    ("cli/src/ns2/network.rs", NS2),
    ("core/src/wire/option.rs", WIRE),
    ("core/src/wire/segment.rs", WIRE),
    ("core/src/wire/xcp.rs", WIRE),
    ("core/src/wire/xcp_extended.rs", WIRE),
    ("lab/src/lib.rs", LAB),
    ("lab/src/network.rs", LAB),
    ("lab/src/nodes.rs", XCP_I),
    ("linux/src/edge/mod.rs", XCP_I),
    ("linux/src/host.rs", KERNEL),
    ("linux/src/host/sender.rs", KERNEL),
    ("linux/src/link/frame.rs", BYTES),
    ("linux/src/link/mod.rs", BYTES),
    ("linux/src/link/report.rs", KERNEL),
    ("linux/src/router.rs", KERNEL),
    ("linux/src/scone.rs", TESTER),
    ("net/src/estimator/halves.rs", XCP_I),
    ("net/src/estimator/mod.rs", XCP_I),
    ("net/src/xcp_i/cloud.rs", XCP_I),
    ("net/src/xcp_i/edge.rs", XCP_I),
    ("net/src/xcp_i/mod.rs", XCP_I),
    ("scenario/src/showing/capture/headers.rs", BYTES),
    ("scenario/src/showing/explain.rs", EXPLAINED),
    ("scenario/src/language/resolve/xcp_i.rs", XCP_I),
    ("sim/src/cloud.rs", XCP_I),
    ("sim/src/network.rs", XCP_I),
];

/// True if code names the module of a law, by `law::` or in braces behind it, or a variant of the list.
fn names_a_law(code: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let names = |text: &str, list: &[&str]| text.split(|c| !is_word(c)).any(|word| list.contains(&word));
    let paths = ["law::", "laws::"].iter().flat_map(|path| code.match_indices(path));
    let mut modules = paths.map(|(at, path)| &code[at + path.len()..]);
    let first_word = |text: &str| text.split(|c| !is_word(c)).next().unwrap_or_default().to_owned();
    modules.any(|rest| match rest.strip_prefix('{') {
        Some(inside) => names(inside.split('}').next().unwrap_or_default(), MODULES),
        None => MODULES.contains(&first_word(rest).as_str()),
    }) || ENUMS.iter().any(|name| {
        let variants =
            code.match_indices(name).filter_map(|(at, _)| code[at + name.len()..].strip_prefix("::"));
        variants.map(first_word).any(|word| VARIANTS.contains(&word.as_str()))
    })
}

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = path.to_string_lossy().replace('\\', "/");
        if path.is_dir() && !name.ends_with("core/src/law") {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Which law it is, is asked in the list and in the law's own folder. Who asks elsewhere has a reason, until it is gone.
#[test]
fn nobody_but_the_list_names_a_law() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for room in ["core", "net", "sim", "text", "scenario", "linux", "lab", "cli"] {
        sources(&crates.join(room).join("src"), &mut found);
    }
    assert!(found.len() > 100, "{} files", found.len());
    let code = |text: &str| {
        let end = text.find("#[cfg(test)]").unwrap_or(text.len());
        let lines = text[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let namers = found.iter().filter(|(_, text)| names_a_law(&code(text)));
    let namers: Vec<&str> = namers.filter_map(|(name, _)| name.split("/../").nth(1)).collect();
    for name in &namers {
        assert!(NAMERS.iter().any(|(known, _)| known == name), "{name} names a law: let the law tell it");
    }
    for (name, reason) in NAMERS {
        assert!(namers.contains(name), "{name} names no law any more ({reason}): take it off the list");
    }
}

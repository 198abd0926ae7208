//! The file of `congestlab apply`: which routers and which host a machine is to have. Keys and values are those of
//! `congestlab router attach` and `congestlab host enable`; what only a law or the machine can judge comes back to the file
//! by [`Wanted::refuse`], with its place.

use std::path::Path;
use std::sync::Arc;

use congestlab_core::units::BitRate;
use miette::NamedSource;
use schemars::{Schema, SchemaGenerator, json_schema};

use congestlab_text::decode::{At, Language, Named, integer, missing, record, words, wrong_type};
use congestlab_text::diagnostic::{Diagnostics, Findings, Sources, Span};
use congestlab_text::files::text_of;
use congestlab_text::tree;
use congestlab_text::tree::{Node, Value};

/// The largest file: a thousand interfaces take a tenth of it.
const BYTES_MAX: u64 = 1 << 20;
/// Name of the file's kind in findings.
const DOCUMENT: &str = "a file of `congestlab apply`";
/// Bytes of an interface's name (`IFNAMSIZ`, with its zero).
const NAME_SIZE: usize = 16;
/// The largest initial window of `host enable`, packets.
const WINDOW_MAX: u32 = 1000;

record! {
    /// Routers and the host of a machine.
    File {
        /// Laws of outgoing traffic, by interface.
        routers: Named<RouterKeys>,
        /// Law of the machine's own connections.
        host: HostKeys,
    }
}

record! {
    /// Law at an interface, as `congestlab router attach` has it.
    RouterKeys {
        /// Law of the link, such as "xcp".
        law: String = required,
        /// Rate of the link, in bits of IP packets; without a shaper of its own that of the shaper.
        rate: BitRate,
        /// Source that the capacity follows: "trace:FILE", "command:CMD", "drain", "qdisc" or "bql"; `rate` holds while it is stale.
        capacity_from: String,
        /// User that the command of `capacity_from` runs as; "nobody".
        capacity_user: String,
        /// Classes of XCP and of all other traffic: "flows", or XCP's part of the link, such as "0.5"; one queue for all.
        beside_tcp: String,
        /// Limit of the queue, such as "200 packets" or "250 kB"; 100 ms at the rate, at least 100 kB.
        queue: String,
        /// False to use the queue that is there instead of holding the rate; true.
        shape: bool,
        /// Place of XCP's congestion header in packets; "option".
        encoding: RouterEncoding,
        /// Constants of the law, by their names in scenarios.
        set: Named<Setting>,
    }
}

record! {
    /// Law of this machine's own connections, as `congestlab host enable` has it.
    HostKeys {
        /// Law of the senders.
        law: SenderLaw = required,
        /// Peers to use the law with, such as "10.0.2.0/24"; all.
        to: Vec<At<String>>,
        /// Reaction to loss; "tcp".
        loss: Loss,
        /// True to use the law only for sockets that choose it themselves; false.
        opt_in: bool,
        /// Place of XCP's congestion header in packets; "option".
        encoding: Encoding,
        /// Interfaces at which headers or codes are put in; all that are up, but lo.
        interfaces: Vec<At<String>>,
        /// Initial congestion window, packets; 1.
        initial_window: Window,
        /// The kernel's congestion control for connections that get no answer; "cubic".
        fallback: String,
    }
}

words! {
    /// Place of XCP's header.
    Encoding {
        Option = "option",
        Shim = "shim",
    }
}

words! {
    /// Places where a router looks for XCP's header.
    RouterEncoding {
        Option = "option",
        Shim = "shim",
        Both = "both",
    }
}

words! {
    /// Law of a host.
    SenderLaw {
        Xcp = "xcp",
        XcpR = "xcp-r",
        XcpI = "xcp-i",
        Vcp = "vcp",
        Dpcp = "dpcp",
        Tpcp = "tpcp",
        Dctcp = "dctcp",
        Prague = "prague",
        Abc = "abc",
    }
}

words! {
    /// Reaction of a host to loss.
    Loss {
        Tcp = "tcp",
        Maintain = "maintain",
        Fallback = "fallback",
    }
}

/// Initial window, packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window(u32);

impl Language for Window {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        integer(node, 1, WINDOW_MAX.into(), findings).map(Self)
    }

    fn encode(&self) -> Value {
        Value::Integer(self.0.into())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": WINDOW_MAX })
    }
}

/// A constant of a law, as it is written behind `--set KEY=`.
#[derive(Clone, Debug)]
pub(crate) struct Setting(String);

impl Language for Setting {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        match &node.value {
            Value::String(text) => Some(Self(text.clone())),
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(Self(tree::inline(&node.value))),
            _ => {
                wrong_type(node, "a setting", "a number, true, false, or a text such as \"20 ms\"", findings);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        Value::string(self.0.as_str())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// A place in the file, for [`Wanted::refuse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(Span);

/// A value with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// The place where it is written.
    pub place: Place,
}

impl<T> Placed<T> {
    fn of<U>(at: &At<U>, value: impl FnOnce(&U) -> T) -> Self {
        Self { value: value(&at.value), place: Place(at.span) }
    }
}

/// A router that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    /// Name of the interface.
    pub interface: Placed<String>,
    /// Name of the law, which may be none.
    pub law: Placed<String>,
    /// Rate of the link; `None`: that of the shaper that is there.
    pub rate: Option<Placed<BitRate>>,
    /// Source of the capacity, as on the command line.
    pub capacity_from: Option<Placed<String>>,
    /// User that its command runs as.
    pub capacity_user: Option<Placed<String>>,
    /// Weights of XCP and of all other traffic, as on the command line.
    pub beside_tcp: Option<Placed<String>>,
    /// Limit of the queue, as on the command line.
    pub queue: Option<Placed<String>>,
    /// True if the rate is to be held by a shaper.
    pub shape: bool,
    /// Place of the header: `option`, `shim` or `both`.
    pub encoding: Option<Placed<&'static str>>,
    /// Constants of the law: key and value.
    pub set: Vec<Placed<(String, String)>>,
}

/// A host that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Law of the senders: `xcp`, `xcp-r`, `vcp`, `dpcp`, `tpcp`, `dctcp`, `prague` or `abc`.
    pub law: Placed<&'static str>,
    /// Prefixes of the peers; empty: all.
    pub to: Vec<Placed<String>>,
    /// Reaction to loss: `tcp`, `maintain` or `fallback`.
    pub loss: Option<Placed<&'static str>>,
    /// True if only sockets that choose the law use it.
    pub opt_in: bool,
    /// Place of the header: `option` or `shim`.
    pub encoding: Option<Placed<&'static str>>,
    /// Interfaces at which headers or codes are put in; empty: all that are up.
    pub interfaces: Vec<Placed<String>>,
    /// Initial congestion window, packets; `None`: the law's.
    pub initial_window: Option<u32>,
    /// Congestion control of connections that get no answer.
    pub fallback: Option<Placed<String>>,
}

/// What a machine is to have.
#[derive(Clone, Debug)]
pub struct Wanted {
    sources: Sources,
    /// Routers, in the order of the file.
    pub routers: Vec<Router>,
    /// The host, if there is to be one.
    pub host: Option<Host>,
}

impl Wanted {
    /// Reads a file. Laws of routers, their constants and prefixes are for others to judge.
    ///
    /// # Errors
    /// Returns all errors of the file.
    pub fn load(path: &Path) -> Result<Self, Diagnostics> {
        Self::parse(&path.display().to_string(), &text_of(path, BYTES_MAX, DOCUMENT)?)
    }

    /// Reads a text. Diagnostics call it `name`.
    ///
    /// # Errors
    /// Returns all errors of the text.
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostics> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut findings = Findings::new(vec![Arc::new(NamedSource::new(name, text.to_owned()))]);
        findings.document = DOCUMENT;
        let root = tree::parse(text, &mut findings);
        if findings.has_errors() {
            return Err(findings.finish());
        }
        let file = File::decode(&root, &mut findings).unwrap_or_default();
        let routers = file.routers.as_ref().map_or(&[][..], |routers| &routers.value.0);
        let routers = routers.iter().filter_map(|(name, keys)| router(name, keys, &mut findings)).collect();
        let host = file.host.as_ref().and_then(|keys| host(keys, &mut findings));
        if file.routers.is_none() && file.host.is_none() && !findings.has_errors() {
            let message = "the file names neither a router nor a host";
            findings.error(
                "scenario::missing",
                root.span,
                message,
                "write `[routers.IFACE]` or `[host]`; to take away what was applied: congestlab apply --undo",
            );
        }
        let sources = findings.sources.clone();
        if findings.has_errors() { Err(findings.finish()) } else { Ok(Self { sources, routers, host }) }
    }

    /// Returns findings about places of the file: what is wrong there, and what is allowed.
    pub fn refuse(&self, wrong: impl IntoIterator<Item = (Place, String, String)>) -> Diagnostics {
        let mut findings = Findings::new(self.sources.clone());
        for (Place(span), message, help) in wrong {
            findings.error("scenario::wanted", span, message, help);
        }
        findings.finish()
    }
}

/// A name that an interface can have (`dev_valid_name` in the kernel).
fn check_name(name: &str, span: Span, findings: &mut Findings) {
    let is_wrong = |c: char| c.is_whitespace() || c.is_control() || "/:".contains(c);
    if name.is_empty() || name.len() >= NAME_SIZE || [".", ".."].contains(&name) || name.contains(is_wrong) {
        let message = format!("`{name}` can not name an interface");
        findings.error("scenario::range", span, message, "allowed: 1 to 15 bytes without blanks, / and :");
    }
}

/// The keys of a router that fit together.
fn router(name: &At<String>, keys: &At<RouterKeys>, findings: &mut Findings) -> Option<Router> {
    let RouterKeys { law, rate, capacity_from, capacity_user, beside_tcp, queue, shape, encoding, set } =
        &keys.value;
    check_name(&name.value, name.span, findings);
    let is_shaped = shape.as_ref().is_none_or(|shape| shape.value);
    findings.at.extend(["routers".to_owned(), name.value.clone()]);
    if is_shaped && rate.is_none() && !findings.is_unreadable("rate") && !findings.is_unreadable("shape") {
        missing(
            keys.span,
            "rate",
            ["Rate of the link, unless `shape = false`.", "rate = \"1 Gbit/s\""],
            findings,
        );
    }
    if let Some(queue) = queue.as_ref().filter(|_| !is_shaped) {
        let message = format!("`{}.queue` is there, and no shaper of its own to have it", findings.place());
        findings.error("scenario::range", queue.span, message, "leave it out, or `shape = false`");
    }
    if let Some(weights) = beside_tcp.as_ref().filter(|_| !is_shaped) {
        let message =
            format!("`{}.beside_tcp` is there, and no shaper of its own to have classes", findings.place());
        findings.error("scenario::range", weights.span, message, "leave it out, or `shape = false`");
    }
    if let Some(user) = capacity_user.as_ref().filter(|_| capacity_from.is_none()) {
        let message = format!("`{}.capacity_user` is there, and no command to run", findings.place());
        findings.error(
            "scenario::range",
            user.span,
            message,
            "leave it out, or capacity_from = \"command:CMD\"",
        );
    }
    findings.at.clear();
    let set = set.as_ref().map_or(&[][..], |set| &set.value.0);
    Some(Router {
        interface: Placed::of(name, Clone::clone),
        law: Placed::of(law.as_ref()?, Clone::clone),
        rate: rate.as_ref().map(|rate| Placed::of(rate, |rate| *rate)),
        capacity_from: capacity_from.as_ref().map(|source| Placed::of(source, Clone::clone)),
        capacity_user: capacity_user.as_ref().map(|user| Placed::of(user, Clone::clone)),
        beside_tcp: beside_tcp.as_ref().map(|weights| Placed::of(weights, Clone::clone)),
        queue: queue.as_ref().map(|queue| Placed::of(queue, Clone::clone)),
        shape: is_shaped,
        encoding: encoding.as_ref().map(|encoding| Placed::of(encoding, RouterEncoding::word)),
        set: set
            .iter()
            .map(|(key, value)| Placed::of(value, |value| (key.value.clone(), value.0.clone())))
            .collect(),
    })
}

/// The keys of the host.
fn host(keys: &At<HostKeys>, findings: &mut Findings) -> Option<Host> {
    let HostKeys { law, to, loss, opt_in, encoding, interfaces, initial_window, fallback } = &keys.value;
    if let Some(to) = to.as_ref().filter(|to| to.value.is_empty()) {
        let message = "`host.to` names no peer";
        findings.error(
            "scenario::range",
            to.span,
            message,
            "prefixes such as \"10.0.2.0/24\"; all: leave it out",
        );
    }
    let list = |list: &Option<At<Vec<At<String>>>>| -> Vec<Placed<String>> {
        list.iter().flat_map(|list| &list.value).map(|item| Placed::of(item, Clone::clone)).collect()
    };
    let interfaces = list(interfaces);
    for interface in &interfaces {
        check_name(&interface.value, interface.place.0, findings);
    }
    Some(Host {
        law: Placed::of(law.as_ref()?, SenderLaw::word),
        to: list(to),
        loss: loss.as_ref().map(|loss| Placed::of(loss, Loss::word)),
        opt_in: opt_in.as_ref().is_some_and(|opt_in| opt_in.value),
        encoding: encoding.as_ref().map(|encoding| Placed::of(encoding, Encoding::word)),
        interfaces,
        initial_window: initial_window.as_ref().map(|window| window.value.0),
        fallback: fallback.as_ref().map(|fallback| Placed::of(fallback, Clone::clone)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Vec<String> {
        Wanted::parse("x.toml", text).expect_err(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_is_read_with_the_place_of_every_value() {
        let text = "[routers.eth1]\nlaw = \"rcp\"\nrate = \"10 Mbit/s\"\nset = { interval = \"20 ms\", beta = 0.3 }\n\n\
                    [host]\nlaw = \"xcp\"\nto = [\"10.0.2.0/24\", \"fd00::/64\"]\nloss = \"maintain\"\n";
        let wanted = Wanted::parse("x.toml", text).expect("right");
        let router = &wanted.routers[0];
        assert_eq!((&*router.interface.value, &*router.law.value, router.shape), ("eth1", "rcp", true));
        assert_eq!(router.rate.as_ref().map(|rate| rate.value), Some(BitRate(10_000_000)));
        let set: Vec<(&str, &str)> = router.set.iter().map(|set| (&*set.value.0, &*set.value.1)).collect();
        assert_eq!(set, [("interval", "20 ms"), ("beta", "0.3")]);
        let host = wanted.host.as_ref().expect("a host");
        assert_eq!((host.law.value, host.to.len(), host.opt_in), ("xcp", 2, false));
        let found = wanted.refuse([(host.to[1].place, "wrong".into(), "right".into())]);
        assert_eq!(found.to_string(), "x.toml:8:22: wrong; right");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_what_is_allowed() {
        for (text, expected) in [
            ("", "x.toml:1:1: the file names neither a router nor a host; write `[routers.IFACE]`"),
            (
                "[router.eth1]",
                "x.toml:1:2: unknown key `router` in a file of `congestlab apply`; did you mean `routers`?",
            ),
            ("[routers.eth1]\nlaw = \"xcp\"\n", "x.toml:1:1: `routers.eth1` needs the key `rate`"),
            ("[routers.eth1]\nrate = \"1 Mbit/s\"\n", "x.toml:1:1: `routers.eth1` needs the key `law`"),
            (
                "[routers.\"a b\"]\nlaw = \"xcp\"\nrate = \"1 Mbit/s\"\n",
                "x.toml:1:10: `a b` can not name an interface; allowed: 1",
            ),
            ("[routers.e]\nlaw = \"xcp\"\nrate = \"1 furlong\"\n", "x.toml:3:8: `routers.e.rate`:"),
            ("[routers.e]\nlaw = \"xcp\"\nrate = 5\n", "x.toml:3:8: `routers.e.rate`"),
            (
                "[routers.e]\nlaw = \"xcp\"\nrates = 5\nrate = \"1 Mbit/s\"",
                "x.toml:3:1: unknown key `rates` in `routers.e`; did you mean `rate`?",
            ),
            (
                "[routers.e]\nlaw = \"xcp\"\nshape = false\nqueue = \"9 packets\"\n",
                "x.toml:4:9: `routers.e.queue` is there",
            ),
            (
                "[routers.e]\nlaw = \"xcp\"\nshape = false\nbeside_tcp = \"flows\"\n",
                "x.toml:4:14: `routers.e.beside_tcp` is there, and no shaper of its own to have classes",
            ),
            (
                "[routers.e]\nlaw = \"xcp\"\nrate = \"1 Mbit/s\"\ncapacity_user = \"modem\"\n",
                "x.toml:4:17: `routers.e.capacity_user` is there, and no command to run",
            ),
            (
                "[routers.e]\nlaw = \"xcp\"\nbeside_tcp = 0.5\n",
                "x.toml:3:14: `routers.e.beside_tcp` is a float, not a string",
            ),
            (
                "[routers.e]\nlaw = \"xcp\"\nshape = false\nset = { k = [1] }\n",
                "x.toml:4:13: `routers.e.set.k` is an array, not a setting",
            ),
            ("[host]\nlaw = \"tcp\"\n", "x.toml:2:7: unknown `host.law` \"tcp\"; did you mean `tpcp`?"),
            ("[host]\nlaw = \"xcp\"\nto = []\n", "x.toml:3:6: `host.to` names no peer"),
            ("[host]\nlaw = \"xcp\"\nto = \"10.0.0.0/8\"\n", "x.toml:3:6: `host.to` is a string, not a list"),
            (
                "[host]\nlaw = \"xcp\"\ninitial_window = 0\n",
                "x.toml:3:18: `host.initial_window` is 0, which is out of range; allowed: 1 to 1000",
            ),
            ("[host\n", "x.toml:1:6:"),
            ("[host]\nlaw = \"xcp\"\n[host]\n", "x.toml:3:2: duplicate key `host`, first in line 1"),
        ] {
            let told = refused(text);
            assert!(told.iter().any(|line| line.starts_with(expected)), "{text:?}: {told:#?}");
        }
    }
}

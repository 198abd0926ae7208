//! A dumbbell, and how it is told to ns-2 and to congestlab.

use serde::Deserialize;

/// `tests/ns2/cases.toml`, which explains the fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cases {
    pub(crate) smooth: Vec<Case>,
    pub(crate) unsettled: Vec<Case>,
    pub(crate) lossy: Vec<Case>,
    pub(crate) tcp: Vec<Case>,
    pub(crate) steady: Vec<Case>,
    pub(crate) slow_start: Vec<Case>,
    pub(crate) random: Vec<Case>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) full: bool,
    pub(crate) rate: f64,
    delay: f64,
    pub(crate) queue: u32,
    duration: f64,
    warmup: f64,
    /// Minimum retransmission timeout; absent: the profile's 0.2 s.
    min_rto: Option<f64>,
    #[serde(default)]
    pub(crate) packet_error_rate: f64,
    #[serde(default)]
    ack_loss: f64,
    pub(crate) groups: Vec<Group>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    pub(crate) count: u32,
    #[serde(default = "one_thousand")]
    pub(crate) segment: u32,
    #[serde(default)]
    start: f64,
    #[serde(default)]
    every: f64,
    #[serde(default)]
    access_rate: f64,
    #[serde(default)]
    access_delay: f64,
    /// Every flow has an access delay of its own, up to so much longer: two equal round trips let
    /// packets of different flows arrive in the same order for ever (docs/ns2.md, phase effects).
    #[serde(default)]
    spread: f64,
    /// Advertised window, packets.
    window: Option<u32>,
}

fn one_thousand() -> u32 {
    1000
}

/// What the flows and the bottleneck run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// XCP as ns-2 does it (`profile = "ns2"`).
    Xcp,
    /// XCP as congestlab does it when nothing is said.
    XcpDefault,
    /// Reno's AIMD with SACK over a drop-tail queue.
    Sack,
    /// Another law of TCP's family over one.
    Tcp(&'static Law),
}

/// A law by what both call it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Law {
    pub(crate) name: &'static str,
    /// `kind` of `dumbbell.tcl`.
    kind: &'static str,
    law: &'static str,
}

pub(crate) const RENO: Law = Law { name: "Reno", kind: "reno", law: "\"reno\"" };
/// Impatient (RFC 6582 §4), both: `newreno_changes1_` is 1.
pub(crate) const NEWRENO: Law = Law { name: "NewReno", kind: "newreno", law: "\"newreno\"" };
pub(crate) const FACK: Law = Law { name: "FACK", kind: "fack", law: "\"fack\"" };
/// By the author of RFC 3649: `windowOption_ 8`.
pub(crate) const HIGHSPEED: Law =
    Law { name: "HighSpeed, `windowOption_ 8`", kind: "highspeed", law: "\"highspeed\"" };
/// Linux 2.6's, with habits of its own (`highspeed.rs`).
pub(crate) const HIGHSPEED_LINUX: Law =
    Law { name: "HighSpeed, `Agent/TCP/Linux`", kind: "linux-highspeed", law: "\"highspeed\"" };
/// With the numbers that Linux has in place of the paper's.
pub(crate) const BIC: Law =
    Law { name: "BIC", kind: "linux-bic", law: "{ bic = { max_increment = 16, beta = 0.2 } }" };
pub(crate) const CUBIC: Law = Law { name: "CUBIC", kind: "linux-cubic", law: "\"cubic\"" };
/// Without its habit at ssthresh, and with it.
pub(crate) static LINUX_RENOS: [Law; 2] = [
    Law { name: "Reno, `Agent/TCP/Linux` naive_reno", kind: "linux-naive_reno", law: "\"sack\"" },
    Law { name: "Reno, `Agent/TCP/Linux` reno", kind: "linux-reno", law: "\"sack\"" },
];
pub(crate) const VEGAS: Law = Law { name: "Vegas", kind: "vegas", law: "{ vegas = { mean_rtt = true } }" };

impl Case {
    /// Groups whose flows differ become groups of one flow; each `placing` gives them other delays.
    pub(crate) fn expanded(&self, placing: u32) -> Self {
        let mut groups = Vec::new();
        for group in &self.groups {
            if group.spread == 0.0 {
                groups.push(group.clone());
                continue;
            }
            for i in 0..group.count {
                // Multiples of the golden ratio modulo one: evenly spread, without a common measure.
                let n = groups.len() as f64 + 1000.0 * f64::from(placing);
                let place = (n * 0.618_033_988_75).fract();
                // In whole nanoseconds, so that both are told the same.
                let whole = |seconds: f64| (seconds * 1e9).round() / 1e9;
                let access_delay = whole(group.access_delay + group.spread * place);
                let start = whole(group.start + f64::from(i) * group.every);
                groups.push(Group { count: 1, start, every: 0.0, access_delay, ..group.clone() });
            }
        }
        Self { groups, ..self.clone() }
    }

    pub(crate) fn base_rtt(&self, group: &Group) -> f64 {
        2.0 * self.delay + 4.0 * group.access_delay
    }

    /// The smallest share of the bandwidth-delay product that a flow has, in its packets.
    pub(crate) fn smallest_share(&self) -> f64 {
        let flows: u32 = self.groups.iter().map(|g| g.count).sum();
        let share =
            |g: &Group| self.rate / f64::from(flows) * self.base_rtt(g) / (8.0 * f64::from(g.segment));
        self.groups.iter().map(share).fold(f64::INFINITY, f64::min)
    }

    /// Arguments of `dumbbell.tcl`.
    pub(crate) fn ns2_arguments(&self, peer: Peer, seed: u32) -> Vec<String> {
        let kind = match peer {
            Peer::Xcp | Peer::XcpDefault => "xcp",
            Peer::Sack => "sack",
            Peer::Tcp(law) => law.kind,
        };
        let mut arguments = vec![
            format!("kind={kind}"),
            format!("seed={seed}"),
            format!("rate={}", self.rate),
            format!("delay={}", self.delay),
            format!("queue={}", self.queue),
            format!("duration={}", self.duration),
            format!("warmup={}", self.warmup),
            format!("min_rto={}", self.min_rto.unwrap_or(0.2)),
            format!("per={}", self.packet_error_rate),
            format!("ack_loss={}", self.ack_loss),
            format!("groups={}", self.groups.len()),
        ];
        for (i, group) in self.groups.iter().enumerate() {
            arguments.extend([
                format!("{i}.count={}", group.count),
                format!("{i}.segment={}", group.segment),
                format!("{i}.start={}", group.start),
                format!("{i}.every={}", group.every),
                format!("{i}.access_rate={}", group.access_rate),
                format!("{i}.access_delay={}", group.access_delay),
                // ns-2 has no unlimited window.
                format!("{i}.window={}", group.window.unwrap_or(1_000_000)),
            ]);
        }
        arguments
    }

    /// The same as a scenario file.
    pub(crate) fn scenario(&self, peer: Peer, seed: u32) -> String {
        let mut text = format!(
            "[run]\nduration = \"{} s\"\nwarmup = \"{} s\"\nseed = {seed}\n\n\
             [links.bottleneck]\nrate = \"{} Mbit/s\"\ndelay = \"{:.0} ns\"\nqueue = \"{} packets\"\n",
            self.duration,
            self.warmup,
            self.rate / 1e6,
            self.delay * 1e9,
            self.queue
        );
        if self.packet_error_rate > 0.0 {
            text += "packet_size = \"1000 B\"\n"; // error_size of dumbbell.tcl
            text += &format!("error = {{ packet_error_rate = {} }}\n", self.packet_error_rate);
        }
        if self.ack_loss > 0.0 {
            text += &format!("reverse = {{ ack_loss = {} }}\n", self.ack_loss);
        }
        text += match peer {
            Peer::Xcp => "law = \"xcp\"\nprofile = \"ns2\"\n",
            Peer::XcpDefault => "law = \"xcp\"\n",
            Peer::Sack | Peer::Tcp(_) => "",
        };
        for (i, group) in self.groups.iter().enumerate() {
            text += &format!(
                "\n[flows.g{i}]\npath = [\"bottleneck\"]\ncount = {}\nsegment = \"{} B\"\nack = \"40 B\"\n",
                group.count, group.segment
            );
            if group.every > 0.0 {
                text +=
                    &format!("start = {{ every = \"{} s\", from = \"{} s\" }}\n", group.every, group.start);
            } else {
                text += &format!("start = \"{} s\"\n", group.start);
            }
            if group.access_rate > 0.0 {
                let pipe = format!(
                    "{{ rate = \"{} Mbit/s\", delay = \"{:.0} ns\" }}",
                    group.access_rate / 1e6,
                    group.access_delay * 1e9
                );
                text += &format!("access = {pipe}\nexit = {pipe}\n");
            }
            if let Some(window) = group.window {
                text += &format!("awnd = \"{window} packets\"\n");
            }
            text += &match peer {
                // ns-2 asks for 10^24 B/s whatever it can use.
                Peer::Xcp => "law = { xcp = { request = \"unlimited\" } }\nprofile = \"ns2\"\n".into(),
                Peer::XcpDefault => "law = { xcp = { pacing = false } }\n".into(),
                Peer::Sack => "law = \"sack\"\ninitial_window = 2\n".into(),
                Peer::Tcp(law) => format!("law = {}\ninitial_window = 2\n", law.law),
            };
            if peer != Peer::XcpDefault {
                text += &format!("min_rto = \"{} s\"\n", self.min_rto.unwrap_or(0.2));
            }
        }
        text
    }
}

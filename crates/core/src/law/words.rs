//! Sentences of laws about themselves: why a window changed, how a link treated a packet. Kernels have none of them, and they
//! alone may show numbers with a point.

use super::mpcp::Order;
use super::{Header, LinkLaw, Packet, Reply, Segment, SenderLaw, Series};
use crate::units::{Bytes, Duration, Ratio, Time};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;

/// A rule of a law that applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rule in words, with the numbers; a clause that begins small and ends without a stop.
    pub text: String,
    /// The text that states the rule; empty: none does.
    pub source: &'static str,
}

impl Rule {
    /// Makes a rule.
    pub fn new(text: impl Into<String>, source: &'static str) -> Self {
        Self { text: text.into(), source }
    }
}

/// Packets whose two ECN bits tell one load level together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// How many.
    pub packets: u32,
    /// How a packet says its place among them.
    pub order: Order,
}

impl Chain {
    /// Returns the place that a packet with these headers has, from 1, if they say one.
    pub fn place(&self, segment: impl FnOnce() -> Option<Segment>) -> Option<u8> {
        match self.packets {
            1 => Some(1),
            packets => self.order.read(&segment()?, packets).map(|index| index + 1),
        }
    }
}

/// Settings without effect where a sender is asked to follow an implementation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Followed {
    /// A sentence on what the sender is instead, if the implementation is not of this law.
    pub stranger: Option<&'static str>,
    /// Settings that the implementation does not know.
    pub ignored: &'static [&'static str],
    /// Settings that it knows, in words.
    pub known: &'static str,
}

/// Phase of a connection's repair of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is amiss.
    Open,
    /// A mark reduced the window, and no loss is being repaired.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// Repair after a timeout.
    Loss,
}

/// A connection at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Congestion window.
    pub window: Bytes,
    /// Smoothed round trip time; zero: unknown.
    pub srtt: Duration,
    /// Phase of the repair of losses.
    pub phase: Phase,
    /// Window that the receiver advertises; `u64::MAX` is unlimited.
    pub awnd: Bytes,
    /// True if the window, and not the data, stopped the last transmission.
    pub is_window_limited: bool,
    /// Times that a loss or a mark reduced the window.
    pub window_cuts: u32,
}

impl Moment {
    /// Returns true while a loss is being repaired.
    pub fn is_repairing(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    /// Returns true in fast recovery, in which the window does not grow. After a timeout it grows while the sender repairs
    /// (RFC 5681 section 3.1).
    pub fn is_held(&self) -> bool {
        self.phase == Phase::Recovery
    }
}

/// An acknowledgment and the connection before and after it, for [`SenderWords::explain`].
#[derive(Clone, Copy, Debug)]
pub struct Reaction {
    /// Time at which it came.
    pub now: Time,
    /// The connection before it.
    pub before: Moment,
    /// The connection after it.
    pub after: Moment,
    /// Reply that it brought.
    pub reply: Reply,
    /// True if it acknowledges what none before it did.
    pub is_new: bool,
    /// True if another acknowledgment overtook it.
    pub is_late: bool,
    /// True if it answers a probe.
    pub is_probe: bool,
    /// Size of a full packet.
    pub segment: Bytes,
}

impl Reaction {
    /// Says why the window does not grow, if the window did not limit the sender; returns whether that is so.
    pub fn restraint(&self, rules: &mut Vec<Rule>) -> bool {
        if !self.before.is_window_limited {
            let text =
                "the window did not limit the sender since the last acknowledgment, so it does not grow";
            rules.push(Rule::new(text, "RFC 7661, RFC 9438 section 5.8"));
        }
        !self.before.is_window_limited
    }

    /// Says that a window below this threshold grows by what is acknowledged.
    pub fn slow_start(&self, ssthresh: Bytes, rules: &mut Vec<Rule>) {
        let threshold = match ssthresh {
            Bytes(u64::MAX) => "there is no threshold yet".into(),
            Bytes(bytes) => format!("the window is below ssthresh, {bytes} B"),
        };
        let text = format!(
            "slow start, because {threshold}: it grows by what is acknowledged, at most one segment per \
             acknowledgment"
        );
        rules.push(Rule::new(text, "RFC 5681 eq. 2"));
    }

    /// Says why the window does not grow, if fast recovery repairs a loss; returns whether that is so.
    pub fn repair(&self, rules: &mut Vec<Rule>) -> bool {
        if self.before.is_held() {
            let text = "a loss is being repaired, so it does not grow";
            rules.push(Rule::new(text, "RFC 5681 section 3.2, RFC 6675 section 5"));
        }
        self.before.is_held()
    }

    /// Says how Reno's window grows with this threshold.
    pub fn reno(&self, ssthresh: Bytes, rules: &mut Vec<Rule>) {
        let (old, new) = (self.before.window, self.after.window);
        if self.restraint(rules) {
        } else if old < ssthresh {
            self.slow_start(ssthresh, rules);
        } else if !self.repair(rules) {
            let text = if new > old {
                "congestion avoidance: a whole window has been acknowledged, so it grows by one segment"
            } else {
                "congestion avoidance: it grows by one segment once a whole window has been acknowledged, which \
                 is not yet so"
            };
            rules.push(Rule::new(text, "RFC 5681 section 3.1"));
        }
    }

    /// Says that a loss or a mark reduced the window, if one did, as TCP's machinery finds them.
    pub fn cut(&self, rules: &mut Vec<Rule>) {
        if self.after.window_cuts <= self.before.window_cuts {
            return;
        }
        let text = match self.after.phase {
            Phase::Reduced => {
                "the acknowledgment echoes a congestion mark, so the window is reduced as for a loss"
            }
            _ => {
                "with this acknowledgment a loss is found (three duplicates, or what SACK says instead), so the window is reduced"
            }
        };
        let source = "RFC 5681 section 3.2, RFC 6675 section 5, RFC 3168 section 6.1.2";
        rules.push(Rule::new(text, source));
    }
}

/// Sentences of a link law about what it does to packets. A trait apart from [`LinkLaw`], so that the file of a law's sentences
/// knows the law, and the law's file knows no sentences.
pub trait LinkWords: LinkLaw {
    /// Says what the law did to a packet, of which it had this view: as it came, and as it left.
    fn explain(
        _config: &Self::Config,
        _view: &Self::View,
        _packets: [&dyn Packet; 2],
        _rules: &mut Vec<Rule>,
    ) {
    }

    /// Says what the law does to packets whose ECN bits are RFC 3168's; `None`: nothing, because it does not read them.
    fn misread_ecn(_config: &Self::Config) -> Option<&'static str> {
        None
    }

    /// Says what the law does with a packet that has nothing for it.
    fn explain_other(_config: &Self::Config) -> Rule {
        Rule::new("the packet has nothing that this law reads", "")
    }
}

/// Sentences of a sender law about its packets and its window. A trait apart from [`SenderLaw`], as [`LinkWords`] is.
pub trait SenderWords: SenderLaw {
    /// Says what the law tells on a packet that it sends.
    fn explain_packet(config: &Self::Config, _packet: &dyn Packet, rules: &mut Vec<Rule>) {
        let bytes = Self::needs(config).header_bytes;
        if bytes > 0 {
            rules.push(Rule::new(format!("it carries the law's header, {bytes} B"), ""));
        }
    }

    /// Says why an acknowledgment changed what it changed, by the states of the law before and after it. A law without words
    /// of its own says what its series became.
    fn explain(_config: &Self::Config, states: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        by_series(states[0], states[1], rules);
        seen.cut(rules);
    }

    /// Says why flows misread what a link law of their signal tells; `None`: they read it. `link` is the configuration of that
    /// law, or of the law that it is a variant of ([`LinkLaw::base`]).
    fn misreads(_config: &Self::Config, _link: &dyn Any) -> Option<String> {
        None
    }
}

/// Returns a ratio as a number with a point.
pub fn number(ratio: Ratio) -> f64 {
    f64::from(ratio.0) / f64::from(Ratio::ONE.0)
}

/// Returns a header of a packet behind a table.
pub fn header<H: Header>(packet: &dyn Packet) -> Option<H> {
    packet.words(H::TAG).map(H::read)
}

/// Says what the series of a sender law became, of a law that has no words of its own.
pub fn by_series<L: SenderLaw>(before: &L, after: &L, rules: &mut Vec<Rule>) {
    let mut was = Vec::new();
    before.each(&mut |name, value, unit| was.push((name, value, unit)));
    let count = rules.len();
    after.each(&mut |name, value, unit| {
        let shown = |value: i64| value as f64 / f64::from(unit.max(1));
        let old = was.iter().find(|(known, ..)| *known == name).map(|(_, old, _)| *old);
        if let Some(old) = old.filter(|old| *old != value) {
            rules.push(Rule::new(format!("{name} went from {} to {}", shown(old), shown(value)), ""));
        }
    });
    if rules.len() == count {
        rules.push(Rule::new("none of the law's own series changed", ""));
    }
}

/// Says the report of a link law that has no words of its own.
pub fn by_report(report: &impl Series, rules: &mut Vec<Rule>) {
    report.each(&mut |name, value, unit| {
        let value = value as f64 / f64::from(unit.max(1));
        rules.push(Rule::new(format!("the law's last interval: {name} is {value}"), ""));
    });
}

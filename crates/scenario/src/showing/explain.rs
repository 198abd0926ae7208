//! Explanations of a packet's feedback, and of its sender's reaction to it.
//!
//! A run is a value, so it is simply run again, packet by packet, with an eye on one flow. The numbers come
//! from the laws themselves; nothing is computed here that they did not compute, but for products and sums
//! that show how the numbers hang together. K02, draft-03: see `law::xcp`.

mod told;

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use congestlab_core::law::words::{self, Moment, Phase, Reaction};
use congestlab_core::law::xcp::{self, Header, SHARE_PLACES, Share};
use congestlab_core::law::{self, LinkConfig, LinkView, Protocol, Segment, SenderConfig, Series as _};
use congestlab_core::units::{Bytes, Rate, Time};
use congestlab_net::packet::{Kind, Packet, Picos, UNLIMITED, flag};
use congestlab_net::port::PortEvent;
use congestlab_net::tcp::{self, Mode};
use congestlab_net::xcp_i::{Passage, State};
use congestlab_sim::model::{Device, GroupKind, Model};
use congestlab_sim::watch::{Step, Watched};
use serde::Serialize;

use crate::language::measure::Measure;
use crate::language::scenario::Scenario;
use crate::results::folder::{FolderError, RunFolder};
use crate::results::tables::seconds;

/// A question without an answer: the mistake in it, and the questions that can be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// The mistake, in one clause.
    pub message: String,
    /// The allowed questions.
    pub help: String,
}

impl Refused {
    fn new<T>(message: impl Into<String>, help: impl Into<String>) -> Result<T, Self> {
        Err(Self { message: message.into(), help: help.into() })
    }
}

/// A flow of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    group: usize,
    index: u32,
}

impl Flow {
    /// Reads the name of a flow: `ftp[3]`, `ftp/3` (which no shell changes), or `ftp` where the group has one flow.
    ///
    /// # Errors
    /// If there is no such flow; the help lists those that there are.
    pub fn parse(scenario: &Scenario, text: &str) -> Result<Self, Refused> {
        let groups = &scenario.base_model().groups;
        let text = text.strip_prefix("flows.").unwrap_or(text).trim();
        let (name, index) = match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
            Some((name, index)) => (name, Some(index)),
            None => match text.rsplit_once('/') {
                Some((name, index)) if groups.iter().all(|group| group.name != text) => (name, Some(index)),
                _ => (text, None),
            },
        };
        let name = name.trim_matches('"');
        let Some(group) = groups.iter().position(|group| group.name == name) else {
            let nearest = nearest(name, groups.iter().map(|group| group.name.as_str()));
            let all: Vec<String> = groups.iter().map(|group| shown(&group.name, group.count)).collect();
            let help = format!("{nearest}the flows are {}", all.join(", "));
            return Refused::new(format!("there is no flow `{text}`"), help);
        };
        let (name, count) = (&groups[group].name, groups[group].count);
        let allowed = || format!("the flows of {name} are {}", shown(name, count));
        match index {
            None if count == 1 => Ok(Self { group, index: 0 }),
            None => Refused::new(format!("`{name}` is {count} flows"), allowed()),
            Some(index) => match index.parse() {
                Ok(index) if index < count => Ok(Self { group, index }),
                _ => Refused::new(format!("there is no flow `{text}`"), allowed()),
            },
        }
    }
}

/// `ftp[0] to ftp[9]`.
fn shown(name: &str, count: u32) -> String {
    if count == 1 { format!("{name}[0]") } else { format!("{name}[0] to {name}[{}]", count - 1) }
}

fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> String {
    let distance = |name: &&str| strsim::damerau_levenshtein(name, text);
    match names.min_by_key(distance).filter(|name| distance(name) <= 2) {
        Some(name) => format!("did you mean `{name}`? "),
        None => String::new(),
    }
}

/// The way of one packet and of its feedback; `Display` tells it in words.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// Name of the flow, such as `ftp[3]`.
    pub flow: String,
    /// Name of the law that sets its congestion window, such as `xcp`, `cubic` or `sack`; `none` for datagrams.
    pub law: &'static str,
    /// Time asked for, s.
    pub asked_s: f64,
    /// Link that the packet was the first of the flow to leave from then on.
    pub at_link: String,
    /// The packet as it was sent.
    pub packet: Sent,
    /// Links of its path, as far as it came.
    pub hops: Vec<Hop>,
    /// Link that lowered the demand last, the tightest one, or the virtual router of XCP-i before a link or a receiver; `None` if
    /// none lowered it.
    pub decided_by: Option<String>,
    /// Time of arrival at the receiver, s; `None` if it was lost or the run ended.
    pub received_s: Option<f64>,
    /// The cloud before the receiver, if the receiver is its downstream edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crossed: Option<Crossing>,
    /// The acknowledgment that brought its feedback back.
    pub ack: Option<Ack>,
    /// The sender's reaction to that acknowledgment.
    pub window: Option<WindowChange>,
    /// The sender's reaction to the packet's loss.
    pub repair: Option<Repair>,
    /// Drops, errors and marks of the flow's packets: the last ones of the second before the end.
    pub trouble: Vec<Trouble>,
}

/// A packet as it was sent.
#[derive(Clone, Debug, Serialize)]
pub struct Sent {
    /// Number of the segment, from 1.
    pub segment: u32,
    /// Size of the whole packet, bytes.
    pub size: u16,
    /// Time of sending, s.
    pub sent_s: f64,
    /// True if it repeats a segment.
    pub is_retransmission: bool,
    /// Place in the chain of packets whose codes tell a load level, from 1, as its headers say; `None` without chains.
    pub place: Option<u8>,
    /// The congestion header of XCP that it was sent with; `None` without one.
    pub header: Option<Stated>,
    /// What another law tells on it, in the law's words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

impl Sent {
    /// True if it has a congestion header, of whatever law.
    pub fn has_header(&self) -> bool {
        self.header.is_some() || !self.rules.is_empty()
    }
}

/// The fields of a congestion header as the sender sets them.
#[derive(Clone, Debug, Serialize)]
pub struct Stated {
    /// Price, the weight of the flow's share, which multiplies X (K02 section 6).
    pub price: f64,
    /// X, the time between two of the flow's packets times the price, ms; 0: unknown.
    pub x_ms: f64,
    /// The sender's round-trip time, ms; 0: unknown.
    pub rtt_ms: f64,
    /// Delta_Throughput, the demand, B/s.
    #[serde(rename = "delta_Bps")]
    pub delta: i32,
}

/// A link on the packet's path.
#[derive(Clone, Debug, Serialize)]
pub struct Hop {
    /// Name of the link.
    pub link: String,
    /// Time of arrival at the queue, s.
    pub arrived_s: f64,
    /// Packets that waited ahead of it.
    pub queue_packets: u64,
    /// Start of the transmission, s; `None` if there was none.
    pub departed_s: Option<f64>,
    /// Way in which it was lost here, such as `drop: queue-full` or `error`; `None` if it was not.
    pub lost: Option<String>,
    /// True if it got a congestion mark here.
    pub is_marked: bool,
    /// Name of the link's law, such as `xcp` or `dpcp`; `None`: a legacy router.
    pub law: Option<&'static str>,
    /// The law as people call it.
    #[serde(skip)]
    pub title: String,
    /// The cloud of routers without XCP-i that it has crossed before this link, and what the link's virtual router did with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crossed: Option<Crossing>,
    /// X that the policer of the link lets count, ms, where the header stated more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policed_x_ms: Option<f64>,
    /// Codes in its ECN field on arrival and on departure, where link and flow tell load levels by them.
    pub codes: Option<[u8; 2]>,
    /// An XCP link's computation for its congestion header.
    pub feedback: Option<Feedback>,
    /// What another law did with it, in the law's words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

/// The passage of a packet through the virtual router of a cloud (XCP-i). Rates are B/s.
#[derive(Clone, Debug, Serialize)]
pub struct Crossing {
    /// Address of the upstream edge of the cloud.
    pub upstream: String,
    /// State of the downstream edge's entry for it: new, idle, req, est, valid, broken.
    pub state: &'static str,
    /// Last estimate of what the cloud has left, while it holds.
    #[serde(rename = "estimate_Bps")]
    pub estimate: Option<i64>,
    /// Delta_Throughput on arrival.
    #[serde(rename = "asked_Bps")]
    pub asked: i32,
    /// Delta_Throughput behind the virtual router.
    #[serde(rename = "given_Bps")]
    pub given: i32,
    /// The virtual router's computation; its capacity is its input and what it was told to give away. `None`: there was no
    /// estimate to compute with.
    pub feedback: Option<Feedback>,
}

/// The computation of an XCP link for a packet. Rates are B/s, as in the header.
#[derive(Clone, Debug, Serialize)]
pub struct Feedback {
    /// Time at which the law dealt with the packet, s.
    pub at_s: f64,
    /// Times at which the control interval before the present one began, at which it ended, and at which the
    /// present one will end, s.
    pub interval_s: [Option<f64>; 3],
    /// Control intervals so far; 0: nothing has been measured.
    pub intervals: u64,
    /// Gain on the spare capacity.
    pub alpha: f64,
    /// Gain on the persistent queue.
    pub beta: f64,
    /// Share of the input traffic that is shuffled.
    pub gamma: f64,
    /// C, the capacity.
    #[serde(rename = "capacity_Bps")]
    pub capacity: f64,
    /// y, the input traffic rate of the last control interval.
    #[serde(rename = "input_Bps")]
    pub input: f64,
    /// S = C - y, the spare capacity.
    #[serde(rename = "spare_Bps")]
    pub spare: f64,
    /// Q, the persistent queue, bytes.
    pub persistent_queue_bytes: f64,
    /// d, the mean round-trip time of the packets, ms.
    pub mean_rtt_ms: f64,
    /// F, the aggregate feedback, as the law computed it.
    #[serde(rename = "feedback_Bps")]
    pub aggregate: f64,
    /// h = max(0, gamma y - |F|), the shuffled traffic.
    #[serde(rename = "shuffled_Bps")]
    pub shuffled: f64,
    /// Factor of positive feedback in P-XCP, k / (1 - r); absent: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Positive feedback to distribute, h + max(F, 0), scaled; and the rest of it when the packet left.
    #[serde(rename = "grants_Bps")]
    pub grants: [f64; 2],
    /// Negative feedback to distribute, h + max(-F, 0); and the rest of it when the packet left.
    #[serde(rename = "cuts_Bps")]
    pub cuts: [f64; 2],
    /// The packet's part of the positive feedback.
    #[serde(rename = "grant_Bps")]
    pub grant: f64,
    /// The packet's part of the negative feedback.
    #[serde(rename = "cut_Bps")]
    pub cut: f64,
    /// Offer of the link: grant - cut.
    #[serde(rename = "offer_Bps")]
    pub offer: f64,
    /// Value that X counts as, ms, where that is less than the header states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_counted_ms: Option<f64>,
    /// Feedback given to packets before that no header could state, below 1 B/s.
    #[serde(rename = "carry_Bps")]
    pub carry: f64,
    /// Delta_Throughput on arrival.
    #[serde(rename = "asked_Bps")]
    pub asked: i32,
    /// Delta_Throughput on departure.
    #[serde(rename = "given_Bps")]
    pub given: i32,
    /// True if the demand was above the offer, so that this link lowered it.
    pub is_lowered: bool,
    /// True if the link captures feedback that was allocated upstream (draft-03 L 25-27).
    pub captures: bool,
}

/// The acknowledgment of the packet.
#[derive(Clone, Debug, Serialize)]
pub struct Ack {
    /// Time at which the receiver sent it, s.
    pub sent_s: f64,
    /// Feedback of the packets whose sum it returns, B/s; this packet's is the last.
    #[serde(rename = "sum_of_Bps")]
    pub sum_of: Vec<i32>,
    /// Reverse_Feedback, B/s.
    #[serde(rename = "feedback_Bps")]
    pub feedback: i32,
    /// Time of arrival at the sender, s; `None` if it was lost or the run ended.
    pub arrived_s: Option<f64>,
    /// True if it echoes a congestion mark (RFC 3168 section 6.1.3).
    pub echoes_mark: bool,
    /// True if it brings a reply of the law.
    #[serde(skip)]
    pub has_reply: bool,
    /// Way in which it was lost, and the feedback with it; `None` if it was not.
    pub lost: Option<String>,
}

/// The sender's reaction to one acknowledgment.
#[derive(Clone, Debug, Serialize)]
pub struct WindowChange {
    /// Time of the reaction, s.
    pub at_s: f64,
    /// Smoothed round-trip time, ms, with this acknowledgment's sample.
    pub srtt_ms: f64,
    /// Congestion window before.
    pub before_bytes: u64,
    /// Congestion window afterwards.
    pub after_bytes: u64,
    /// Size of a full packet, bytes.
    pub segment: u16,
    /// Reverse_Feedback times the smoothed round-trip time, bytes; for XCP flows.
    pub feedback_bytes: Option<f64>,
    /// Rules that lead from one window to the other, in order.
    pub rules: Vec<Rule>,
}

/// A rule of a sender law that applied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rule {
    /// The rule in words, with the numbers.
    pub text: String,
    /// The text that states the rule.
    pub source: &'static str,
}

impl From<words::Rule> for Rule {
    fn from(words::Rule { text, source }: words::Rule) -> Self {
        Self { text, source }
    }
}

fn rules(told: Vec<words::Rule>) -> Vec<Rule> {
    told.into_iter().map(Rule::from).collect()
}

/// The sender's reaction to a lost packet.
#[derive(Clone, Debug, Serialize)]
pub struct Repair {
    /// Time at which the sender noticed the loss, s; `None`: not within ten seconds.
    pub noticed_s: Option<f64>,
    /// True if it noticed by a timeout, not by acknowledgments.
    pub is_timeout: bool,
    /// Congestion window before and afterwards, bytes.
    pub window_bytes: Option<[u64; 2]>,
    /// Time at which it sent the segment again, s; `None` if it did not.
    pub repeated_s: Option<f64>,
    /// Rule by which it sends such a segment again.
    pub source: &'static str,
}

/// A drop, an error or a mark of one of the flow's packets.
#[derive(Clone, Debug, Serialize)]
pub struct Trouble {
    /// Time of the event, s.
    pub at_s: f64,
    /// Link where it happened.
    pub link: String,
    /// Kind of event, such as `drop: queue-full`, `error` or `mark`.
    pub what: String,
    /// Number of the segment; for an acknowledgment, of the segment expected next.
    pub segment: u32,
}

/// A packet that is watched on its way.
#[derive(Clone, Debug)]
struct Trail {
    packet: Packet,
    sent: Picos,
    hops: Vec<HopTrail>,
    received: Option<Picos>,
}

impl Trail {
    /// The packet came to what is behind its last link.
    fn note_code(&mut self, packet: &Packet) {
        if let Some(hop) = self.hops.last_mut() {
            hop.codes[1] = packet.flags & flag::ECN_MASK;
        }
    }
}

#[derive(Clone, Debug)]
struct HopTrail {
    link: u32,
    entered: Picos,
    queue_packets: u64,
    departed: Option<Picos>,
    lost: Option<(Picos, String)>,
    is_marked: bool,
    codes: [u8; 2],
    has_header: bool,
    /// The header that is yet to come to the link's law.
    header: Option<Header>,
    policed: Option<Header>,
    crossed: Option<Passage>,
    feedback: Option<(Picos, Header, Header, Share, Intervals)>,
    rules: Vec<Rule>,
}

/// When the last two control intervals of a link ended.
type Intervals = [Option<Picos>; 2];

#[derive(Clone, Debug)]
struct AckTrail {
    packet: Packet,
    sent: Picos,
    sum_of: Vec<i32>,
    lost: Option<String>,
}

/// A link's event, as the folder of the run records it.
struct Recorded {
    at: Picos,
    link: u32,
    event: &'static str,
    value: i64,
}

/// A lost packet is repaired within this, or it is left at that.
const PATIENCE: Picos = 10_000_000_000_000;
/// Trouble of the flow that is kept in mind.
const TROUBLE_MAX: usize = 8;

struct Observer<'a> {
    model: &'a Model,
    /// Flow over the whole run.
    flow: u32,
    at: Picos,
    link: u32,
    in_flight: BTreeMap<(u64, u32), Trail>,
    first_sent: Option<Picos>,
    last_departed: Option<Picos>,
    intervals: Vec<Intervals>,
    recorded: Vec<Recorded>,
    trouble: VecDeque<(Picos, u32, String, u32)>,
    /// Feedback that the receiver has not returned.
    summed: Vec<i32>,
    /// Passage through the receiver's virtual router.
    crossed: Option<Passage>,
    chosen: Option<Trail>,
    ack: Option<AckTrail>,
    acted: Option<(Picos, Box<tcp::View>, Box<tcp::View>)>,
    reacted: Option<(Picos, Box<tcp::View>, Box<tcp::View>)>,
    repeated: Option<Picos>,
    until: Picos,
}

/// Names one transmission: no two of a segment leave at the same nanosecond.
fn key(packet: &Packet) -> (u64, u32) {
    (packet.stamp_ns, packet.seq)
}

fn is_data(packet: &Packet) -> bool {
    matches!(packet.kind, Kind::Data | Kind::Datagram)
}

/// Fields that no link changes.
fn is_same_ack(one: &Packet, other: &Packet) -> bool {
    one.kind == other.kind && one.seq == other.seq && key(one) == key(other) && one.words == other.words
}

impl Observer<'_> {
    fn trail(&mut self, packet: &Packet) -> Option<&mut Trail> {
        if packet.flow != self.flow || !is_data(packet) {
            return None;
        }
        match &mut self.chosen {
            Some(chosen) if key(&chosen.packet) == key(packet) => Some(chosen),
            Some(_) => None,
            None => self.in_flight.get_mut(&key(packet)),
        }
    }

    fn is_chosen(&self, packet: &Packet) -> bool {
        packet.flow == self.flow
            && is_data(packet)
            && self.chosen.as_ref().is_some_and(|chosen| key(&chosen.packet) == key(packet))
    }

    fn is_ack(&self, packet: &Packet) -> bool {
        packet.flow == self.flow && self.ack.as_ref().is_some_and(|ack| is_same_ack(&ack.packet, packet))
    }

    fn is_lost(&self) -> bool {
        let hops = self.chosen.iter().flat_map(|chosen| &chosen.hops);
        hops.last().is_some_and(|hop| hop.lost.is_some())
    }

    fn step(&mut self, now: Picos, step: &Step) -> ControlFlow<()> {
        self.until = now;
        match step {
            Step::Sent { packet } if packet.flow == self.flow => return self.note_sent(now, packet),
            Step::Sent { .. } => {}
            Step::Entered { link, packet, queue_packets } => {
                let (link, queue_packets) = (*link, *queue_packets);
                if let Some(trail) = self.trail(packet) {
                    trail.note_code(packet);
                    trail.hops.push(HopTrail {
                        link,
                        entered: now,
                        queue_packets,
                        departed: None,
                        lost: None,
                        is_marked: false,
                        codes: [packet.flags & flag::ECN_MASK; 2],
                        has_header: packet.flags & flag::HEADER != 0,
                        header: packet.header(),
                        policed: None,
                        crossed: None,
                        feedback: None,
                        rules: Vec::new(),
                    });
                }
            }
            Step::Port { link, event } => return self.note_port(now, *link, event),
            Step::Received { packet } if packet.flow == self.flow && is_data(packet) => {
                if let Some(header) = packet.header::<Header>() {
                    self.summed.push(header.delta);
                }
                if self.is_chosen(packet) {
                    if let Some(chosen) = &mut self.chosen {
                        chosen.received = Some(now);
                        chosen.note_code(packet);
                    }
                    if packet.kind == Kind::Datagram {
                        return ControlFlow::Break(());
                    }
                } else {
                    self.in_flight.remove(&key(packet));
                }
            }
            Step::Received { .. } => {}
            Step::Crossed { passage } if passage.asked.flow == self.flow => {
                if let (Some(asked), Some(given)) = (delta_of(&passage.asked), delta_of(&passage.left))
                    && let Some(last) = self.summed.iter_mut().rev().find(|delta| **delta == asked)
                {
                    *last = given;
                }
                if self.is_chosen(&passage.asked) {
                    self.crossed = Some((**passage).clone());
                }
            }
            Step::Crossed { .. } => {}
            Step::Acted { packet, before, after, .. } => {
                if packet.as_ref().is_some_and(|packet| self.is_ack(packet)) {
                    self.acted = Some((now, before.clone(), after.clone()));
                    return ControlFlow::Break(());
                }
                if self.is_lost() {
                    // A cut counts while the repair that it began goes on: one that ended without this
                    // segment was for others.
                    let is_repairing = |view: &tcp::View| matches!(view.mode, Mode::Recovery | Mode::Loss);
                    let cut = after.window_cuts > before.window_cuts || after.timeouts > before.timeouts;
                    if cut && is_repairing(after) {
                        self.reacted = Some((now, before.clone(), after.clone()));
                    } else if self.repeated.is_none() && !is_repairing(after) {
                        self.reacted = None;
                    }
                    if self.repeated.is_some() {
                        return ControlFlow::Break(());
                    }
                }
            }
        }
        let lost = self.chosen.as_ref().and_then(|chosen| chosen.hops.last()?.lost.as_ref());
        match lost {
            Some((at, _)) if now > at + PATIENCE => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn note_sent(&mut self, now: Picos, packet: &Packet) -> ControlFlow<()> {
        match packet.kind {
            Kind::Ack => {
                let sum_of = std::mem::take(&mut self.summed);
                let is_received = self.chosen.as_ref().is_some_and(|chosen| chosen.received.is_some());
                if is_received && self.ack.is_none() {
                    self.ack = Some(AckTrail { packet: *packet, sent: now, sum_of, lost: None });
                }
            }
            Kind::SynAck | Kind::Control | Kind::Probe => {}
            Kind::Syn | Kind::WindowProbe | Kind::Data | Kind::Datagram => {
                let first = *self.first_sent.get_or_insert(now);
                if first > self.at {
                    return ControlFlow::Break(());
                }
                if is_data(packet) && self.chosen.is_none() {
                    let trail = Trail { packet: *packet, sent: now, hops: Vec::new(), received: None };
                    self.in_flight.insert(key(packet), trail);
                }
                let is_again = self.chosen.as_ref().is_some_and(|chosen| chosen.packet.seq == packet.seq);
                if is_again && packet.flags & flag::RETRANSMIT != 0 && self.is_lost() {
                    self.repeated.get_or_insert(now);
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn note_port(&mut self, now: Picos, link: u32, event: &PortEvent) -> ControlFlow<()> {
        let mut record = |event, value| self.recorded.push(Recorded { at: now, link, event, value });
        match event {
            PortEvent::ControlInterval { report } => {
                record("control-interval", report.decision());
                let ends = &mut self.intervals[link as usize];
                *ends = [ends[1], Some(now)];
            }
            PortEvent::Sample(_) => {}
            PortEvent::Crossed(passage) => {
                if let Some(hop) = self.trail(&passage.asked).and_then(|trail| trail.hops.last_mut()) {
                    hop.header = passage.left.header();
                    hop.crossed = Some((**passage).clone());
                }
            }
            PortEvent::Dropped { packet, reason } => {
                record("drop", packet.seq.into());
                return self.note_loss(now, link, packet, format!("drop: {}", reason.name()));
            }
            PortEvent::Errored { packet } => {
                record("error", packet.seq.into());
                return self.note_loss(now, link, packet, "error".into());
            }
            PortEvent::Marked { packet } => {
                record("mark", packet.seq.into());
                self.note_trouble(now, link, packet, "mark");
                if let Some(hop) = self.trail(packet).and_then(|trail| trail.hops.last_mut()) {
                    hop.is_marked = true;
                }
            }
            PortEvent::Feedback { packet, asked, view } => {
                let intervals = self.intervals[link as usize];
                if let Some(share) = view.part::<Share>()
                    && let (Some(asked), Some(given)) = (asked.header(), packet.header())
                    && let Some(hop) = self.trail(packet).and_then(|trail| trail.hops.last_mut())
                {
                    let asked: Header = asked;
                    hop.policed = hop.header.filter(|header| header.x > asked.x).and(Some(asked));
                    hop.feedback = Some((now, asked, given, *share, intervals));
                } else if let Some(law) = &self.model.links[link as usize].port.law
                    && let Some(hop) = self.trail(packet).and_then(|trail| trail.hops.last_mut())
                {
                    hop.rules = rules(law.config.explain(view, [asked, packet]));
                }
            }
            PortEvent::Departed { packet } => {
                let Some(trail) = self.trail(packet) else { return ControlFlow::Continue(()) };
                if let Some(hop) = trail.hops.last_mut() {
                    hop.departed = Some(now);
                }
                if link == self.link && self.chosen.is_none() {
                    self.last_departed = Some(now);
                    if now >= self.at {
                        self.chosen = self.in_flight.remove(&key(packet));
                        self.in_flight.clear();
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn note_trouble(&mut self, now: Picos, link: u32, packet: &Packet, what: &str) {
        if packet.flow == self.flow {
            self.trouble.push_back((now, link, what.to_owned(), packet.seq));
            if self.trouble.len() > TROUBLE_MAX {
                self.trouble.pop_front();
            }
        }
    }

    fn note_loss(&mut self, now: Picos, link: u32, packet: &Packet, how: String) -> ControlFlow<()> {
        self.note_trouble(now, link, packet, &how);
        if self.is_ack(packet) {
            self.ack.iter_mut().for_each(|ack| {
                ack.lost = Some(format!("{how} at {}", self.model.links[link as usize].name))
            });
            return ControlFlow::Break(());
        }
        if self.is_chosen(packet) {
            if let Some(hop) = self.trail(packet).and_then(|trail| trail.hops.last_mut()) {
                hop.lost = Some((now, how));
            }
            if packet.kind == Kind::Datagram {
                return ControlFlow::Break(());
            }
        } else if packet.flow == self.flow {
            self.in_flight.remove(&key(packet));
        }
        ControlFlow::Continue(())
    }
}

/// Explains the first packet of `flow` that leaves `link` at `at` or later; without `link`, the first link of
/// the path that runs a law, or the first at all. Returns `None` if `stop` was raised.
///
/// # Errors
/// If the flow does not pass the link, or sends nothing then; the help says where and when it does.
pub fn explain(
    scenario: &Scenario,
    folder: Option<&RunFolder>,
    flow: Flow,
    at: Time,
    link: Option<&str>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Picos),
) -> Result<Option<Explanation>, ExplainError> {
    let model = scenario.model(&Measure::default());
    let group = &model.groups[flow.group];
    let name = format!("{}[{}]", group.name, flow.index);
    let link = find_link(&model, &name, &group.path, link)?;
    let at = at.0.saturating_mul(1000);
    let end = seconds(model.duration);
    if at > model.duration {
        let help = format!("the run ends at {end} s");
        return Ok(Refused::new(format!("nothing happens at {} s", seconds(at)), help)?);
    }
    let before: u32 = model.groups[..flow.group].iter().map(|group| group.count).sum();
    let mut observer = Observer {
        model: &model,
        flow: before + flow.index,
        at,
        link,
        in_flight: BTreeMap::new(),
        first_sent: None,
        last_departed: None,
        intervals: vec![[None; 2]; model.links.len()],
        recorded: Vec::new(),
        trouble: VecDeque::new(),
        summed: Vec::new(),
        crossed: None,
        chosen: None,
        ack: None,
        acted: None,
        reacted: None,
        repeated: None,
        until: 0,
    };
    let mut each = |now, step: &Step| observer.step(now, step);
    if !congestlab_sim::watch(
        &model,
        Watched::Sender(before + flow.index),
        stop,
        &mut |reached| progress(reached.at),
        &mut each,
    ) {
        return Ok(None);
    }
    if let Some(folder) = folder {
        confirm(folder, &observer)?;
    }
    if observer.chosen.is_none() {
        let link = &model.links[link as usize].name;
        let help = match (observer.first_sent, observer.last_departed) {
            (Some(first), _) if first > at => {
                format!("its first packet leaves the sender at {} s, the run ends at {end} s", seconds(first))
            }
            (Some(first), Some(last)) => {
                format!(
                    "it sends from {} s on, and its last packet leaves {link} at {} s",
                    seconds(first),
                    seconds(last)
                )
            }
            _ => format!("none of its data passes {link} before the run ends at {end} s"),
        };
        let message = format!("no packet of {name} leaves {link} at {} s or later", seconds(at));
        let message = if observer.first_sent.is_some_and(|first| first > at) {
            format!("{name} has sent nothing at {} s", seconds(at))
        } else {
            message
        };
        return Ok(Refused::new(message, help)?);
    }
    Ok(Some(observer.conclude(name, flow)))
}

/// The reason for which there is no explanation.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The question is wrong.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The folder of the run can not be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The folder's results are not those of its scenario.
    #[error("running {} again does not give what it recorded: {difference}", path.display())]
    Differs {
        /// Path of the folder.
        path: std::path::PathBuf,
        /// First difference, in words.
        difference: String,
    },
}

fn find_link(model: &Model, flow: &str, path: &[u32], link: Option<&str>) -> Result<u32, Refused> {
    let name = |&link: &u32| model.links[link as usize].name.as_str();
    let Some(wanted) = link else {
        let runs_xcp = |&&link: &&u32| model.links[link as usize].port.law.is_some();
        return Ok(*path.iter().find(runs_xcp).or(path.first()).expect("a path has a link"));
    };
    path.iter().copied().find(|link| name(link) == wanted).map_or_else(
        || {
            let path: Vec<&str> = path.iter().map(name).collect();
            let help =
                format!("{}its data passes {}", nearest(wanted, path.iter().copied()), path.join(", "));
            Refused::new(format!("{flow} does not pass a link `{wanted}`"), help)
        },
        Ok,
    )
}

/// The links' events that the folder records up to the end of the explanation are those seen now.
fn confirm(folder: &RunFolder, observer: &Observer<'_>) -> Result<(), ExplainError> {
    let links = &observer.model.links;
    let mut seen: Vec<&Recorded> =
        observer.recorded.iter().filter(|event| event.at < observer.until).collect();
    seen.sort_by_key(|event| (event.at, event.link));
    let mut seen = seen.into_iter().map(|event| {
        format!(
            "{} at {} at {} s ({})",
            event.event,
            links[event.link as usize].name,
            seconds(event.at),
            event.value
        )
    });
    let (until, mut difference) = (seconds(observer.until), None);
    folder.events(|row| {
        if row.index.is_some() || row.t_s >= until || difference.is_some() {
            return;
        }
        let recorded = format!("{} at {} at {} s ({})", row.event, row.element, row.t_s, row.value);
        let now = seen.next().unwrap_or_else(|| "nothing".into());
        if recorded != now {
            difference = Some(format!("{recorded} is now {now}"));
        }
    })?;
    let difference = difference.or_else(|| seen.next().map(|more| format!("{more} is not recorded")));
    match difference {
        None => Ok(()),
        Some(difference) => Err(ExplainError::Differs { path: folder.path().into(), difference }),
    }
}

/// An amount of a [`Share`].
fn amount(places: u64) -> f64 {
    places as f64 / f64::from(1_u32 << SHARE_PLACES)
}

/// Milliseconds of a header's time.
fn header_ms(units: u32) -> f64 {
    f64::from(units) / f64::from(1 << 28) * 1e3
}

/// The chains in which a sender reads load levels.
fn chain_of(kind: &GroupKind) -> Option<words::Chain> {
    match kind {
        GroupKind::Tcp(config) => config.law.chain(),
        GroupKind::Source(_) => None,
    }
}

/// The packet as its sender sent it.
fn sent(chosen: &Trail, kind: &GroupKind) -> Sent {
    let packet = &chosen.packet;
    let config = match kind {
        GroupKind::Tcp(config) => Some(config),
        GroupKind::Source(_) => None,
    };
    let price = || {
        let xcp = config?.law.part::<xcp::SenderConfig>()?;
        Some(f64::from(xcp.price.0) / 1e6)
    };
    let header = packet.header::<Header>();
    Sent {
        segment: packet.seq,
        size: packet.size,
        sent_s: seconds(chosen.sent),
        is_retransmission: packet.flags & flag::RETRANSMIT != 0,
        place: chain_of(kind).and_then(|chain| chain.place(|| Segment::of(packet))),
        header: header.map(|header| Stated {
            price: price().unwrap_or(1.0),
            x_ms: header_ms(header.x),
            rtt_ms: header_ms(header.rtt),
            delta: header.delta,
        }),
        rules: match config.filter(|_| header.is_none()) {
            Some(config) => rules(config.law.explain_packet(packet)),
            None => Vec::new(),
        },
    }
}

impl Observer<'_> {
    fn conclude(self, flow: String, of: Flow) -> Explanation {
        let chosen = self.chosen.as_ref().expect("the caller has looked");
        let kind = &self.model.groups[of.group].kind;
        let is_coded = chain_of(kind).is_some();
        let hops: Vec<Hop> = chosen.hops.iter().map(|hop| self.hop(hop, is_coded)).collect();
        let at_receiver = self.crossed.as_ref().map(|passage| {
            let config = self.model.groups[of.group].interoperable.as_ref();
            crossing_of(config.and_then(|config| config.law.part()), passage)
        });
        let decided_by = |hop: &Hop| {
            let is_lowered = hop.feedback.as_ref().is_some_and(|feedback| feedback.is_lowered);
            let is_virtual = hop.crossed.as_ref().is_some_and(|crossed| crossed.given < crossed.asked);
            match () {
                () if is_lowered => Some(hop.link.clone()),
                () if is_virtual => Some(format!("the virtual router before {}", hop.link)),
                () => None,
            }
        };
        let receiver = at_receiver.as_ref().filter(|crossed| crossed.given < crossed.asked);
        Explanation {
            law: match kind {
                GroupKind::Tcp(config) => match (&config.law, config.recovery) {
                    (SenderConfig::Reno(_), tcp::Recovery::Sack) => "sack",
                    (SenderConfig::Reno(_), tcp::Recovery::Fack) => "fack",
                    (SenderConfig::Reno(_), tcp::Recovery::NewReno) => "newreno",
                    (law, _) => law.name(),
                },
                GroupKind::Source(_) => "none",
            },
            asked_s: seconds(self.at),
            at_link: self.model.links[self.link as usize].name.clone(),
            packet: sent(chosen, kind),
            decided_by: match receiver {
                Some(_) => Some("the receiver's virtual router".into()),
                None => hops.iter().rev().find_map(decided_by),
            },
            crossed: at_receiver,
            hops,
            received_s: chosen.received.map(seconds),
            ack: self.ack.as_ref().map(|ack| Ack {
                sent_s: seconds(ack.sent),
                sum_of: ack.sum_of.clone(),
                feedback: xcp::feedback(ack.packet.reply()),
                arrived_s: self.acted.as_ref().map(|(at, ..)| seconds(*at)),
                echoes_mark: ack.packet.flags & flag::ECE != 0,
                has_reply: ack.packet.reply() != law::Reply::default(),
                lost: ack.lost.clone(),
            }),
            window: match (kind, &self.acted, &self.ack) {
                (GroupKind::Tcp(config), Some((at, before, after)), Some(ack)) => {
                    Some(change(config, *at, before, after, &ack.packet))
                }
                _ => None,
            },
            repair: match kind {
                GroupKind::Tcp(config) if self.is_lost() => Some(self.repair(config)),
                _ => None,
            },
            trouble: self.recent_trouble(),
            flow,
        }
    }

    /// How the sender noticed that the packet was lost, and sent it again.
    fn repair(&self, config: &tcp::Config) -> Repair {
        let reacted = self.reacted.as_ref();
        let is_timeout = reacted.is_some_and(|(_, old, new)| new.timeouts > old.timeouts);
        let source = match config.recovery {
            _ if is_timeout => "RFC 6298 section 5",
            _ if config.linux.is_some() => "RFC 8985 section 6",
            tcp::Recovery::Sack => "RFC 6675 section 5",
            tcp::Recovery::Fack => "Mathis and Mahdavi 1996",
            tcp::Recovery::NewReno => "RFC 6582 section 3",
            tcp::Recovery::Reno => "RFC 5681 section 3.2",
        };
        Repair {
            source,
            noticed_s: reacted.map(|(at, ..)| *at).or(self.repeated).map(seconds),
            is_timeout,
            window_bytes: reacted.map(|(_, old, new)| [old.law.window().0, new.law.window().0]),
            repeated_s: self.repeated.map(seconds),
        }
    }

    /// What befell packets of the flow in the last second.
    fn recent_trouble(&self) -> Vec<Trouble> {
        let since = self.until.saturating_sub(1_000_000_000_000);
        let recent = self.trouble.iter().filter(|(at, ..)| *at >= since);
        recent
            .map(|(at, link, what, segment)| Trouble {
                at_s: seconds(*at),
                link: self.model.links[*link as usize].name.clone(),
                what: what.clone(),
                segment: *segment,
            })
            .collect()
    }

    fn hop(&self, hop: &HopTrail, is_coded: bool) -> Hop {
        let link = &self.model.links[hop.link as usize];
        let law = link.port.law.as_ref().map(|law| &law.config);
        let feedback = law.and_then(LinkConfig::part::<xcp::LinkConfig>).zip(hop.feedback.as_ref());
        let is_telling = law.is_some_and(|law| law.chain().is_some());
        let codes = (is_coded && is_telling).then_some(hop.codes);
        let mut rules = hop.rules.clone();
        if let Some(law) = law
            && rules.is_empty()
            && feedback.is_none()
            && codes.is_none()
            && (hop.lost.is_none() || !hop.has_header)
        {
            rules.push(law.explain_other().into());
        }
        Hop {
            link: link.name.clone(),
            arrived_s: seconds(hop.entered),
            queue_packets: hop.queue_packets,
            departed_s: hop.departed.map(seconds),
            lost: hop.lost.as_ref().map(|(_, how)| how.clone()),
            is_marked: hop.is_marked,
            law: law.map(LinkConfig::name),
            title: law.map_or_else(String::new, |law| title(law.name())),
            codes,
            crossed: hop.crossed.as_ref().map(|passage| {
                let device = self.model.devices.iter().find(|device| device.links.contains(&hop.link));
                let config = device.and_then(Device::router).map(|router| &router.config);
                crossing_of(config.and_then(|config| config.law.part()), passage)
            }),
            policed_x_ms: hop.policed.as_ref().map(|header| header_ms(header.x)),
            feedback: feedback.map(|(config, (at, asked, given, share, ends))| {
                feedback_of(config, *at, asked, given, share, *ends)
            }),
            rules,
        }
    }
}

/// A law as people call it: as the list introduces it, else its name in capitals.
fn title(name: &str) -> String {
    let listed = Protocol::of(name).and_then(|protocol| protocol.about.split_once(": "));
    listed.map_or_else(|| name.to_uppercase(), |(title, _)| title.to_owned())
}

fn delta_of(packet: &Packet) -> Option<i32> {
    packet.header::<Header>().map(|header| header.delta)
}

/// The passage through a virtual router with this law.
fn crossing_of(config: Option<&xcp::LinkConfig>, passage: &Passage) -> Crossing {
    let share = passage.view.as_ref().and_then(LinkView::part::<Share>);
    let headers = (passage.asked.header::<Header>(), passage.left.header::<Header>());
    let feedback = config.zip(share).and_then(|(config, share)| {
        let (asked, given) = (headers.0?, headers.1?);
        // It knows no capacity, but what it is told to give away beyond its own traffic.
        let (input, spare) = (share.report.input, passage.spare);
        let capacity = Rate(input.0.saturating_add_signed(spare));
        let opened = passage.opened.0.saturating_mul(1000);
        let share = Share { capacity, ..*share };
        let mut feedback = feedback_of(config, opened, &asked, &given, &share, [None, Some(opened)]);
        feedback.spare = spare as f64;
        Some(feedback)
    });
    Crossing {
        upstream: Ipv4Addr::from(passage.upstream.0).to_string(),
        state: match passage.state {
            None => "new",
            Some(State::Idle) => "idle",
            Some(State::Req) => "req",
            Some(State::Est) => "est",
            Some(State::Valid) => "valid",
            Some(State::Broken) => "broken",
        },
        estimate: passage.estimate,
        asked: delta_of(&passage.asked).unwrap_or(0),
        given: delta_of(&passage.left).unwrap_or(0),
        feedback,
    }
}

fn feedback_of(
    config: &xcp::LinkConfig,
    at: Picos,
    asked: &Header,
    given: &Header,
    share: &Share,
    [before, began]: Intervals,
) -> Feedback {
    let ratio = |ratio: congestlab_core::units::Ratio| f64::from(ratio.0) / 1e6;
    let report = &share.report;
    let (input, aggregate) = (report.input.0 as f64, report.feedback as f64);
    let shuffled = (ratio(config.gamma) * input - aggregate.abs()).max(0.0);
    let (grant, cut) = (amount(share.grant), amount(share.cut));
    let factor = share.factor as f64 / f64::from(1 << 16).powi(2);
    Feedback {
        at_s: seconds(at),
        interval_s: [
            before.map(seconds),
            began.map(seconds),
            began.map(|began| seconds(began + report.interval.0 * 1000)),
        ],
        intervals: report.intervals,
        alpha: ratio(config.alpha),
        beta: ratio(config.beta),
        gamma: ratio(config.gamma),
        capacity: share.capacity.0 as f64,
        input,
        spare: share.capacity.0 as f64 - input,
        persistent_queue_bytes: report.persistent_queue.0 as f64,
        mean_rtt_ms: share.mean_rtt.0 as f64 / 1e6,
        aggregate,
        shuffled,
        scale: (factor > 1.0).then_some(factor),
        grants: [(shuffled + aggregate.max(0.0)) * factor, amount(share.grants_left)],
        cuts: [shuffled + (-aggregate).max(0.0), amount(share.cuts_left)],
        grant,
        cut,
        offer: grant - cut,
        x_counted_ms: (share.x < asked.x).then(|| header_ms(share.x)),
        carry: amount(share.carry),
        asked: asked.delta,
        given: given.delta,
        is_lowered: f64::from(asked.delta) > grant - cut,
        captures: config.capture,
    }
}

/// Returns the sender's reaction to an acknowledgment, with the rules that it follows, in the words of its law.
fn change(
    config: &tcp::Config,
    at: Picos,
    before: &tcp::View,
    after: &tcp::View,
    ack: &Packet,
) -> WindowChange {
    let seen = Reaction {
        now: Time(at / 1000),
        before: moment(config, before),
        after: moment(config, after),
        reply: ack.reply(),
        is_new: after.acknowledged != before.acknowledged,
        is_late: (ack.seq.wrapping_sub(before.acknowledged) as i32) < 0,
        is_probe: ack.flags & flag::LOW_PRIORITY != 0,
        segment: Bytes(config.segment.into()),
    };
    WindowChange {
        at_s: seconds(at),
        srtt_ms: after.srtt.0 as f64 / 1e6,
        before_bytes: seen.before.window.0,
        after_bytes: seen.after.window.0,
        segment: config.segment,
        feedback_bytes: match &config.law {
            SenderConfig::Xcp(law) => {
                before.law.part().map(|state: &xcp::Sender| xcp::words::granted(law, state, &seen))
            }
            _ => None,
        },
        rules: rules(law::Sender::explain(&config.law, [&before.law, &after.law], &seen)),
    }
}

fn moment(config: &tcp::Config, view: &tcp::View) -> Moment {
    Moment {
        window: view.law.window(),
        srtt: view.srtt,
        phase: match view.mode {
            Mode::Recovery => Phase::Recovery,
            Mode::Loss => Phase::Loss,
            Mode::Reduced => Phase::Reduced,
            _ => Phase::Open,
        },
        awnd: match view.awnd {
            UNLIMITED => Bytes(u64::MAX),
            segments => Bytes(u64::from(segments) * u64::from(config.segment)),
        },
        is_window_limited: view.is_window_limited,
        window_cuts: view.window_cuts,
    }
}

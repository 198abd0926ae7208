//! The law: integers only, no clock, no allocation, no panic, so that simulator, user space and kernel can run it.
//!
//! As it was written for you it is a law that works: a link divides 95 % of its capacity by the flows that it saw in the
//! last control interval, a packet carries the least share of its path to the receiver, an ACK carries it back, and the
//! sender paces at it. Replace what you want to be different.

use alloc::format;
use alloc::vec::Vec;
use congestlab_core::law::settings::{Field, Finding, Settings};
use congestlab_core::law::words::{LinkWords, Reaction, Rule, SenderWords, header};
use congestlab_core::law::{
    Ack, EchoLaw, Giver, Header as Carried, Heard, LinkLaw, Needs, Network, On, OptionBytes, Packet,
    Receiving, Remembers, Reply, Send, SenderLaw, Series, Steered, Tag, Words,
};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, Time};

/// What a packet tells: the law's own header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Number of the flow, drawn by its sender.
    pub flow: u32,
    /// The least share of the path so far, B/s.
    pub share: u32,
}

impl Carried for Header {
    // The name of the header: packets of other laws are told apart by it.
    const TAG: Tag = Tag::header("shares");

    fn read(words: &Words) -> Self {
        Self { flow: words[0], share: words[2] }
    }

    // What links change belongs into word 2: the fingerprint of a run looks there.
    fn write(self, words: &mut Words) {
        (words[0], words[2]) = (self.flow, self.share);
    }
}

/// What a scenario can tell the links: `law = { shares = { interval = "50 ms" } }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// Capacity of the link; the machinery sets it.
    pub capacity: Rate,
    /// Control interval; of a slow link it is the time of twenty packets, in which each flow is seen.
    pub interval: Duration,
    /// Part of the capacity that is handed out: what is left empties the queue.
    pub used: Ratio,
}

impl LinkSettings {
    /// An interval of 100 ms, and 95 % of the capacity.
    pub const DEFAULT: Self =
        Self { capacity: Rate(0), interval: Duration(100_000_000), used: Ratio::ppm(950_000) };
}

// What a router of the kernel begins with, before it is told the settings below.
impl Default for LinkSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Settings for LinkSettings {
    // One line of meaning for each, with the default; units and types are checked by what the field is.
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell("interval", "How often flows are counted; 100 ms.", Field::Span(&mut self.interval));
        tell("used", "Part of the capacity that is handed out; 0.95.", Field::Share(&mut self.used));
    }

    // What else is wrong: told with the file and the line before anything runs.
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        Finding::above_zero("interval", self.interval.0, "\"100 ms\"", tell);
    }
}

/// Twenty packets.
const PACKETS: Bytes = Bytes(20 * 1500);

/// What the last control interval decided: columns of the time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Control intervals so far.
    pub intervals: u64,
    /// Flows that were counted in the last one.
    pub flows: u32,
    /// Share of a flow, B/s.
    pub share: u32,
}

impl Series for Report {
    fn intervals(&self) -> u64 {
        self.intervals
    }

    // The value of the event that ends an interval.
    fn decision(&self) -> i64 {
        self.share.into()
    }

    // A name ends in its unit; numerator and denominator, so that a law needs no floats. src/lib.rs declares each.
    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("share_Bps", self.share.into(), 1);
        tell("counted_flows", self.flows.into(), 1);
    }
}

/// The link's part: the state of one output port.
#[derive(Clone, Debug)]
pub struct Link {
    settings: LinkSettings,
    /// Flows seen in the running interval.
    flows: u32,
    report: Report,
    deadline: Time,
}

/// Nobody steers it: it is no virtual router of XCP-i.
impl Steered for Link {}

impl LinkLaw for Link {
    type Config = LinkSettings;
    type Report = Report;
    // What `explain` below is given; `()` if it has no words.
    type View = Report;

    fn name(_: &LinkSettings) -> &'static str {
        "shares"
    }

    fn start(settings: &LinkSettings, phase: Duration, _: Duration) -> Self {
        // A flow of an empty link gets a hundredth of it, until flows were counted.
        let report = Report { intervals: 1, flows: 0, share: narrow(settings.capacity.0 / 100) };
        Self { settings: *settings, flows: 0, report, deadline: Time::ZERO + phase }
    }

    fn first_interval(settings: &LinkSettings) -> Duration {
        settings.interval
    }

    fn shortest_interval(settings: &LinkSettings, _: Duration) -> Duration {
        settings.interval
    }

    fn capacity(settings: &LinkSettings) -> Rate {
        settings.capacity
    }

    fn configure_capacity(settings: &mut LinkSettings, capacity: Rate) {
        settings.capacity = capacity;
    }

    fn set_capacity(&mut self, capacity: Rate) {
        self.settings.capacity = capacity;
    }

    fn on_arrival(&mut self, _: Time, _: &impl Packet) {}

    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, _: Bytes) {
        let Some(mut header) = packet.header::<Header>() else { return };
        // What the router remembers of the flow: the interval in which it was counted last.
        let interval = self.report.intervals as u32;
        if let Some([seen, ..]) = packet.memory([header.flow, 0, 1], now, true)
            && *seen != interval
        {
            *seen = interval;
            self.flows = self.flows.saturating_add(1);
        }
        header.share = header.share.min(self.report.share);
        packet.set_header(header);
    }

    // The share of a path is that of its narrowest link.
    fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool {
        let share = |header: Option<Header>| header.map(|header| header.share);
        share(left.header()) <= share(came.header())
    }

    fn next_deadline(&self) -> Time {
        self.deadline
    }

    fn on_deadline(&mut self, now: Time, _: Bytes) {
        let settings = self.settings;
        self.report = Report {
            intervals: self.report.intervals.saturating_add(1),
            flows: self.flows,
            share: narrow(settings.used.of(settings.capacity.0) / u64::from(self.flows.max(1))),
        };
        self.flows = 0;
        self.deadline = now + settings.interval.max(PACKETS.at(settings.capacity));
    }

    fn report(&self) -> Report {
        self.report
    }

    fn remembers(_: &LinkSettings) -> Option<Remembers> {
        Some(Remembers { flows: 1024, idle: Duration(1_000_000_000), words: 1 })
    }

    fn view(&self, packet: &impl Packet) -> Option<Report> {
        packet.header::<Header>().map(|_| self.report)
    }
}

// What `congestlab explain` says; a law without sentences writes `impl LinkWords for Link {}`.
impl LinkWords for Link {
    // A clause that begins small and ends without a stop, and the text that states the rule.
    fn explain(_: &LinkSettings, report: &Report, [came, left]: [&dyn Packet; 2], rules: &mut Vec<Rule>) {
        let (Some(came), Some(left)) = (header::<Header>(came), header::<Header>(left)) else { return };
        let Report { flows, share, .. } = report;
        let text = format!("{flows} flows were counted in the last interval, so each gets {share} B/s");
        rules.push(Rule::new(text, "README.md"));
        let did =
            if left.share < came.share { "less than the packet came with: lowered to" } else { "left at" };
        rules.push(Rule::new(format!("{did} {} B/s", left.share), "README.md"));
    }
}

/// As much of a rate as the header holds, at least 1 B/s.
fn narrow(rate: u64) -> u32 {
    u32::try_from(rate).unwrap_or(u32::MAX).clamp(1, u32::MAX - 1)
}

/// What a scenario can tell the senders: nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderSettings;

impl Settings for SenderSettings {
    fn each(&mut self, _: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {}
}

/// The receiver's part: what ACKs return, the share of the packet that came last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo(u32);

impl EchoLaw<SenderSettings> for Echo {
    fn start(_: &SenderSettings, _: Bytes) -> Self {
        Self(0)
    }

    fn on_data(&mut self, _: &SenderSettings, packet: &impl Packet, _: impl Receiving) -> Heard {
        self.0 = packet.header::<Header>().map_or(self.0, |header| header.share);
        Heard::Taken
    }

    // A word and a byte are all that an ACK returns; what they mean is the law's own.
    fn on_ack(&mut self, _: &SenderSettings, _: impl Receiving) -> Reply {
        Reply { word: self.0, byte: 0 }
    }
}

/// The sender's part: the state of one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    mss: Bytes,
    flow: u32,
    /// What it was told; 0: nothing yet.
    share: Rate,
    window: Bytes,
}

impl SenderLaw for Sender {
    type Config = SenderSettings;
    type Echo = Echo;

    fn name(_: &SenderSettings) -> &'static str {
        "shares"
    }

    // The law's needs of the network and of TCP's machinery; `header_bytes` are those that every data packet has less for
    // its payload. A scenario without such a link is warned of.
    fn needs(_: &SenderSettings) -> Needs {
        let network = Network {
            giver: Giver::Law("shares"),
            at_bottleneck: true,
            without: "no link tells a share, so the flow sends one segment in a round trip",
            marked: "",
            unacknowledged: "the share that it brings; the next one brings a newer share",
        };
        Needs { network: Some(network), draws: true, header_bytes: 12, ..Needs::NONE }
    }

    fn start(_: &SenderSettings, mss: Bytes, initial_window: Bytes) -> Self {
        Self { mss, flow: 0, share: Rate(0), window: initial_window.max(mss) }
    }

    fn seed(&mut self, seed: u64) {
        self.flow = seed as u32;
    }

    // Two segments more than the share needs for a round trip: room for what waits somewhere.
    fn on_ack(&mut self, _: &SenderSettings, _: Time, ack: &Ack) {
        self.share = Rate(ack.reply.word.into());
        self.window = self.share.over(ack.srtt) + self.mss + self.mss;
        // A wish that comes back as it left is no share: no link of the path runs the law, and nothing else bounds the flow.
        if ack.reply.word == u32::MAX {
            (self.share, self.window) = (Rate(0), self.mss);
        }
    }

    // A loss says nothing of the share.
    fn on_loss(&mut self, _: &SenderSettings, _: Time, _: Bytes) {}

    fn on_timeout(&mut self, _: &SenderSettings, _: Time, _: Bytes, _: bool) {
        self.window = self.mss;
    }

    fn on_restart(&mut self, _: &SenderSettings, _: Time, _: Bytes) {}

    fn on_send(&mut self, _: &SenderSettings, _: Time, _: &Send, packet: &mut impl Packet) {
        packet.add_header(Header { flow: self.flow, share: u32::MAX });
    }

    fn window(&self) -> Bytes {
        self.window
    }

    fn pacing_rate(&self, _: &SenderSettings, _: Duration) -> Option<Rate> {
        (self.share.0 > 0).then_some(self.share)
    }

    // The bytes on the wire, which captures show: a TCP option for experiments (RFC 6994), named by its third and fourth
    // byte. On data it has `header_bytes`.
    fn option(_: &SenderSettings, on: On<'_>) -> Option<OptionBytes> {
        let mut option = [0; 40];
        let (length, share, flow) = match on {
            On::Forward(packet) => header::<Header>(packet).map(|header| (12, header.share, header.flow))?,
            On::Back(reply) => (8, reply.word, 0),
        };
        let ([a, b, c, d], [e, f, g, h]) = (share.to_be_bytes(), flow.to_be_bytes());
        *option.first_chunk_mut()? = [253, length, b'S', b'H', a, b, c, d, e, f, g, h];
        Some(option)
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("told_Bps", self.share.0 as i64, 1);
    }
}

impl SenderWords for Sender {
    fn explain_packet(_: &SenderSettings, packet: &dyn Packet, rules: &mut Vec<Rule>) {
        if let Some(Header { flow, share }) = header(packet) {
            let asks = if share == u32::MAX { "all that the path has" } else { "less than all" };
            rules
                .push(Rule::new(format!("its header is of flow {flow:#x} and asks for {asks}"), "README.md"));
        }
    }

    fn explain(_: &SenderSettings, [before, after]: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        let (told, was) = (after.share.0, before.share.0);
        rules.push(Rule::new(format!("the path has {told} B/s for the flow, after {was} B/s"), "README.md"));
        let srtt = seen.after.srtt.0 / 1_000_000;
        let text = format!("the window is what that sends in {srtt} ms, and two segments");
        rules.push(Rule::new(text, "README.md"));
    }
}

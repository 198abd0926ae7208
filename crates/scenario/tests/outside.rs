//! Laws that are no part of congestlab run as those of its list: the same engines, the same bits.

use std::sync::atomic::AtomicBool;

use congestlab_core::law::settings::{Field, Settings};
use congestlab_core::law::words::{Moment, Phase, Reaction};
use congestlab_core::law::{
    self, Ack, Carried, EchoLaw, Heard, LinkConfig, LinkLaw, Needs, Packet, Receiving, Remembers, Reply,
    Send, SenderConfig, SenderLaw, Series, Steered, Tag, Words, mpcp, outside, reno, xcp,
};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Time};
use congestlab_net::packet::Picos;
use congestlab_net::port::{LawConfig, PortConfig};
use congestlab_net::queue::Limit;
use congestlab_net::service::Service;
use congestlab_net::tcp::{Advertise, App, Config, Recovery};
use congestlab_sim::model::{Group, GroupKind, Link, Model, Pipe, Start};
use congestlab_sim::outcome::Outcome;
use congestlab_sim::{Engine, run};

const MS: Picos = 1_000_000_000;
const RATE: BitRate = BitRate(10_000_000);

/// So many flows over one link of 10 Mbit/s.
fn dumbbell(count: u32, link: LinkConfig, sender: SenderConfig) -> Model {
    let port = |law| PortConfig { law, ..PortConfig::new(Service::Fixed(RATE), 20 * MS, Limit::Packets(60)) };
    let law = LawConfig { config: link, follows_service: true };
    let config = Config {
        segment: 1000,
        ack: 40,
        initial_window: sender.needs().initial_window.unwrap_or(4),
        law: sender,
        awnd: None,
        recovery: Recovery::Sack,
        min_rto: Duration(1_000_000_000),
        delayed_ack: false,
        ecn: false,
        ns2: false,
        app: App::Endless,
        advertise: Advertise::Always,
    };
    let pipe = Some(Pipe { rate: BitRate(100_000_000), delay: 5 * MS });
    Model {
        seed: 1,
        duration: 8000 * MS,
        warmup: 4000 * MS,
        links: vec![
            Link { name: "b".into(), port: port(Some(law)) },
            Link { name: "b.reverse".into(), port: port(None) },
        ],
        groups: vec![Group {
            name: "f".into(),
            kind: GroupKind::Tcp(config),
            count,
            path: vec![0],
            back: vec![1],
            switches: Vec::new(),
            access: pipe,
            exit: pipe,
            start: Start::Uniform { within: 500_000_000 },
            stop: Time::NEVER,
            schedule: Vec::new(),
            sizes: None,
            interoperable: None,
        }],
        sample_every: Some(100 * MS),
        devices: Vec::new(),
        record_events: false,
    }
}

/// What both engines, and two threads, agree on.
fn outcome(model: &Model) -> Outcome {
    let run = |engine| run(model, engine, &AtomicBool::new(false), &mut |_| {});
    let expected = run(Engine::Reference);
    for threads in [1, 2] {
        let got = run(Engine::Window { threads, divisor: 1 });
        assert_eq!(got.fingerprint, expected.fingerprint, "{threads} threads");
        assert_eq!(got.groups[0], expected.groups[0], "{threads} threads");
    }
    expected
}

/// Fair shares: a link divides its capacity by the flows that it saw in the last interval, a packet carries the least
/// share of its path to the receiver, an ACK carries it back, and the sender paces.
mod shares {
    use super::*;

    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub(super) struct Header {
        /// Number of the flow.
        flow: u32,
        /// Its share, B/s.
        share: u32,
    }

    impl law::Header for Header {
        const TAG: Tag = Tag::header("shares");

        fn read(words: &Words) -> Self {
            Self { flow: words[0], share: words[2] }
        }

        fn write(self, words: &mut Words) {
            (words[0], words[2]) = (self.flow, self.share);
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(super) struct LinkSettings {
        pub(super) capacity: Rate,
        pub(super) interval: Duration,
    }

    impl Settings for LinkSettings {
        fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
            tell("interval", "How often flows are counted.", Field::Span(&mut self.interval));
        }
    }

    #[derive(Clone, Copy, Debug)]
    pub(super) struct Report {
        intervals: u64,
        share: u32,
    }

    impl Series for Report {
        fn intervals(&self) -> u64 {
            self.intervals
        }

        fn decision(&self) -> i64 {
            self.share.into()
        }

        fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
            tell("share_Bps", self.share.into(), 1);
        }
    }

    #[derive(Clone, Debug)]
    pub(super) struct Link {
        settings: LinkSettings,
        flows: u64,
        report: Report,
        deadline: Time,
    }

    impl Steered for Link {}

    impl LinkLaw for Link {
        type Config = LinkSettings;
        type Report = Report;
        type View = ();

        fn name(_: &LinkSettings) -> &'static str {
            "shares"
        }

        fn start(settings: &LinkSettings, phase: Duration, _: Duration) -> Self {
            let report = Report { intervals: 1, share: 10_000 };
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
            let interval = self.report.intervals as u32;
            if let Some([seen]) = packet.memory([header.flow, 0, 1], now, true)
                && *seen != interval
            {
                *seen = interval;
                self.flows += 1;
            }
            header.share = header.share.min(self.report.share);
            packet.set_header(header);
        }

        fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool {
            let share = |packet: Option<Header>| packet.map(|header| header.share);
            share(left.header()) <= share(came.header())
        }

        fn next_deadline(&self) -> Time {
            self.deadline
        }

        fn on_deadline(&mut self, now: Time, _: Bytes) {
            self.report.share = (self.settings.capacity.0 / self.flows.max(1)) as u32;
            self.report.intervals += 1;
            self.flows = 0;
            self.deadline = now + self.settings.interval;
        }

        fn report(&self) -> Report {
            self.report
        }

        fn remembers(_: &LinkSettings) -> Option<Remembers> {
            Some(Remembers { flows: 64, idle: Duration(1_000_000_000), words: 1 })
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(super) struct SenderSettings;

    impl Settings for SenderSettings {
        fn each(&mut self, _: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {}
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(super) struct Echo(u32);

    impl EchoLaw<SenderSettings> for Echo {
        fn start(_: &SenderSettings, _: Bytes) -> Self {
            Self(0)
        }

        fn on_data(&mut self, _: &SenderSettings, packet: &impl Packet, _: impl Receiving) -> Heard {
            self.0 = packet.header::<Header>().map_or(self.0, |header| header.share);
            Heard::Taken
        }

        fn on_ack(&mut self, _: &SenderSettings, _: impl Receiving) -> Reply {
            Reply { word: self.0, byte: 0 }
        }
    }

    #[derive(Clone, Debug)]
    pub(super) struct Sender {
        mss: Bytes,
        flow: u32,
        share: Rate,
        window: Bytes,
    }

    impl SenderLaw for Sender {
        type Config = SenderSettings;
        type Echo = Echo;

        fn name(_: &SenderSettings) -> &'static str {
            "shares"
        }

        fn needs(_: &SenderSettings) -> Needs {
            Needs { draws: true, header_bytes: 8, ..Needs::NONE }
        }

        fn start(_: &SenderSettings, mss: Bytes, initial_window: Bytes) -> Self {
            Self { mss, flow: 0, share: Rate(0), window: initial_window }
        }

        fn seed(&mut self, seed: u64) {
            self.flow = seed as u32;
        }

        fn on_ack(&mut self, _: &SenderSettings, _: Time, ack: &Ack) {
            self.share = Rate(ack.reply.word.into());
            self.window = self.share.over(ack.srtt) + self.mss + self.mss;
        }

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

        fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
            tell("told_Bps", self.share.0 as i64, 1);
        }
    }
}

/// A link that marks each tenth packet that may be marked, and senders of thirty segments that count what they hear of it:
/// by counters of the law's own, or as RFC 3168 has it.
mod tenth {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(super) struct LinkSettings(pub(super) Rate);

    impl Settings for LinkSettings {
        fn each(&mut self, _: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {}
    }

    #[derive(Clone, Copy, Debug)]
    pub(super) struct Report {
        marks: u64,
    }

    impl Series for Report {
        fn intervals(&self) -> u64 {
            0
        }

        fn decision(&self) -> i64 {
            0
        }

        fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
            tell("link_marks", self.marks as i64, 1);
        }
    }

    #[derive(Clone, Debug)]
    pub(super) struct Link {
        packets: u64,
        marks: u64,
    }

    impl Steered for Link {}

    impl LinkLaw for Link {
        type Config = LinkSettings;
        type Report = Report;
        type View = ();

        fn name(_: &LinkSettings) -> &'static str {
            "tenth"
        }

        fn start(_: &LinkSettings, _: Duration, _: Duration) -> Self {
            Self { packets: 0, marks: 0 }
        }

        fn first_interval(_: &LinkSettings) -> Duration {
            Duration(1_000_000_000)
        }

        fn shortest_interval(_: &LinkSettings, _: Duration) -> Duration {
            Duration(1_000_000_000)
        }

        fn capacity(settings: &LinkSettings) -> Rate {
            settings.0
        }

        fn configure_capacity(settings: &mut LinkSettings, capacity: Rate) {
            settings.0 = capacity;
        }

        fn set_capacity(&mut self, _: Rate) {}

        fn on_arrival(&mut self, _: Time, _: &impl Packet) {}

        fn on_departure(&mut self, _: Time, packet: &mut impl Packet, _: Bytes) {
            if packet.ecn() == 2 {
                self.packets += 1;
                if self.packets.is_multiple_of(10) {
                    packet.set_ecn(3);
                    self.marks += 1;
                }
            }
        }

        fn only_lowers(&self, _: &impl Packet, _: &impl Packet) -> bool {
            true
        }

        fn next_deadline(&self) -> Time {
            Time::NEVER
        }

        fn on_deadline(&mut self, _: Time, _: Bytes) {}

        fn report(&self) -> Report {
            Report { marks: self.marks }
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(super) struct SenderSettings {
        pub(super) owns_ecn: bool,
    }

    impl Settings for SenderSettings {
        fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
            tell("owns_ecn", "The ECN bits are the law's.", Field::Switch(&mut self.owns_ecn));
        }
    }

    /// CE packets so far, which no lost ACK takes away.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(super) struct Echo(u32);

    impl EchoLaw<SenderSettings> for Echo {
        fn start(_: &SenderSettings, _: Bytes) -> Self {
            Self(0)
        }

        fn on_data(&mut self, _: &SenderSettings, packet: &impl Packet, _: impl Receiving) -> Heard {
            self.0 += u32::from(packet.ecn() == 3);
            Heard::Taken
        }

        fn on_ack(&mut self, _: &SenderSettings, _: impl Receiving) -> Reply {
            Reply { word: self.0, byte: 0 }
        }
    }

    #[derive(Clone, Debug)]
    pub(super) struct Sender {
        mss: Bytes,
        told: u32,
        reactions: u32,
        losses: u32,
    }

    impl SenderLaw for Sender {
        type Config = SenderSettings;
        type Echo = Echo;

        fn name(_: &SenderSettings) -> &'static str {
            "tenth"
        }

        fn needs(settings: &SenderSettings) -> Needs {
            Needs { owns_ecn: settings.owns_ecn, ..Needs::NONE }
        }

        fn start(_: &SenderSettings, mss: Bytes, _: Bytes) -> Self {
            Self { mss, told: 0, reactions: 0, losses: 0 }
        }

        fn on_ack(&mut self, _: &SenderSettings, _: Time, ack: &Ack) {
            self.told = self.told.max(ack.reply.word);
        }

        fn on_mark(&mut self, _: &SenderSettings, _: Time, _: Bytes) {
            self.reactions += 1;
        }

        fn on_loss(&mut self, _: &SenderSettings, _: Time, _: Bytes) {
            self.losses += 1;
        }

        fn on_timeout(&mut self, _: &SenderSettings, _: Time, _: Bytes, _: bool) {
            self.losses += 1;
        }

        fn on_restart(&mut self, _: &SenderSettings, _: Time, _: Bytes) {}

        fn on_send(&mut self, settings: &SenderSettings, _: Time, _: &Send, packet: &mut impl Packet) {
            if settings.owns_ecn {
                packet.set_ecn(2);
            }
        }

        fn window(&self) -> Bytes {
            Bytes(30 * self.mss.0)
        }

        fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
            tell("told_marks", self.told.into(), 1);
            tell("reactions", self.reactions.into(), 1);
            tell("losses", self.losses.into(), 1);
        }
    }
}

/// A law has the ECN bits for itself and hears of each mark, or RFC 3168's once in a round trip; a mark is no loss.
#[test]
fn a_law_answers_marks_as_it_will() {
    for owns_ecn in [true, false] {
        let link = outside::link::<tenth::Link>(tenth::LinkSettings(Rate(0)));
        let sender = outside::sender::<tenth::Sender>(tenth::SenderSettings { owns_ecn });
        let mut model = dumbbell(1, link, sender);
        if let GroupKind::Tcp(config) = &mut model.groups[0].kind {
            config.ecn = !owns_ecn;
        }
        let found = outcome(&model);
        let last = |name: &str| {
            let sample = found.series.iter().rfind(|sample| sample.metric == name);
            sample.unwrap_or_else(|| panic!("no {name}")).value
        };
        let (marks, told) = (last("link_marks"), last("told_marks"));
        assert!(marks > 300.0, "{marks}");
        assert!((marks - 4.0..=marks).contains(&told), "{told} of {marks}");
        assert_eq!(last("losses"), 0.0);
        let reactions = last("reactions");
        if owns_ecn {
            assert_eq!(reactions, 0.0);
        } else {
            // A window of thirty has three marks.
            assert!((marks / 4.0..marks / 2.5).contains(&reactions), "{reactions} of {marks}");
        }
    }
}

/// With a header, a reply, a receiver, a memory for flows and series of its own: seven flows get a seventh each.
#[test]
fn a_law_of_its_own_shares_a_link() {
    let settings = shares::LinkSettings { capacity: Rate(0), interval: Duration(100_000_000) };
    let link = outside::link::<shares::Link>(settings);
    let sender = outside::sender::<shares::Sender>(shares::SenderSettings);
    assert_eq!((link.name(), sender.name()), ("shares", "shares"));
    assert_eq!((link.clone(), sender.clone()), (link.clone(), sender.clone()));
    let other = shares::LinkSettings { interval: Duration(1), ..settings };
    assert_ne!(outside::link::<shares::Link>(other), link);

    let found = outcome(&dumbbell(7, link, sender));
    assert_eq!(found.links[0].drops, 0);
    let utilization = found.links[0].utilization.unwrap();
    assert!((0.97..=1.0).contains(&utilization), "{utilization}");
    let told = |name: &str| {
        let values = found.series.iter().filter(|sample| sample.metric == name && sample.at > 4000 * MS);
        values.map(|sample| sample.value).collect::<Vec<_>>()
    };
    let seventh = (RATE.0 / 8 / 7) as f64;
    for (name, least) in [("share_Bps", 30), ("told_Bps", 7 * 30)] {
        let values = told(name);
        assert!(values.len() >= least, "{name}: {} values", values.len());
        assert!(values.iter().all(|value| (value - seventh).abs() <= 1.0), "{name}: {values:?}");
    }
}

/// What `explain` says of a law that nobody knows: its own series, before and after.
#[test]
fn a_law_of_its_own_is_told_by_its_series() {
    let settings = shares::LinkSettings { capacity: Rate(0), interval: Duration(100_000_000) };
    let link = outside::link::<shares::Link>(settings);
    let mut packet = Carried { size: Bytes(1000), ..Carried::default() };
    packet.add_header(shares::Header::default());
    let view = law::Link::new(&link, Duration(1), Duration(1)).view(&packet).expect("it has one");
    let told = link.explain(&view, [&packet, &packet]);
    assert_eq!(
        told.iter().map(|rule| rule.text.as_str()).collect::<Vec<_>>(),
        ["the law's last interval: share_Bps is 10000"]
    );
    assert!(link.explain_other().text.contains("nothing that this law reads"));

    let sender = outside::sender::<shares::Sender>(shares::SenderSettings);
    let told = sender.explain_packet(&packet);
    assert_eq!(told[0].text, "it carries the law's header, 8 B");
    let before = law::Sender::new(&sender, Bytes(1000), Bytes(4000));
    let mut after = before.clone();
    let ack = Ack { reply: Reply { word: 7000, byte: 0 }, srtt: Duration(100_000_000), ..Ack::default() };
    after.on_ack(&sender, Time(0), &ack);
    let moment = |law: &law::Sender| Moment {
        window: law.window(),
        srtt: ack.srtt,
        phase: Phase::Open,
        awnd: Bytes(u64::MAX),
        is_window_limited: true,
        window_cuts: 0,
    };
    let seen = Reaction {
        now: Time(0),
        before: moment(&before),
        after: moment(&after),
        reply: ack.reply,
        is_new: true,
        is_late: false,
        is_probe: false,
        segment: Bytes(1000),
    };
    let told = law::Sender::explain(&sender, [&before, &after], &seen);
    assert_eq!(
        told.iter().map(|rule| rule.text.as_str()).collect::<Vec<_>>(),
        ["told_Bps went from 0 to 7000"]
    );
}

/// A law of the list that comes by the door for those from outside does the same, bit for bit.
#[test]
fn a_law_of_the_list_is_the_same_from_outside() {
    let rate = Rate(RATE.0 / 8);
    let xcp = xcp::SenderConfig { desired_rate: rate, ..xcp::SenderConfig::DEFAULT };
    let (tpcp, tpcp_link) = (mpcp::SenderConfig::of(3, true), mpcp::LinkConfig::of(3, true));
    let pairs = [
        (
            (LinkConfig::Xcp(xcp::LinkConfig::DEFAULT), SenderConfig::Xcp(xcp.clone())),
            (outside::link::<xcp::Link>(xcp::LinkConfig::DEFAULT), outside::sender::<xcp::Sender>(xcp)),
        ),
        (
            (LinkConfig::Mpcp(tpcp_link), SenderConfig::Mpcp(tpcp)),
            (outside::link::<mpcp::Link>(tpcp_link), outside::sender::<mpcp::Sender>(tpcp)),
        ),
        (
            (LinkConfig::Xcp(xcp::LinkConfig::DEFAULT), SenderConfig::Reno(reno::Config {})),
            (
                outside::link::<xcp::Link>(xcp::LinkConfig::DEFAULT),
                outside::sender::<reno::Reno>(reno::Config {}),
            ),
        ),
    ];
    for ((link, sender), (link_outside, sender_outside)) in pairs {
        let name = sender.name();
        let inside = outcome(&dumbbell(5, link, sender));
        let by_door = outcome(&dumbbell(5, link_outside, sender_outside));
        assert_eq!(by_door.fingerprint, inside.fingerprint, "{name}");
        assert_eq!(by_door.series.len(), inside.series.len(), "{name}");
        for (one, other) in by_door.series.iter().zip(&inside.series) {
            assert_eq!(one, other, "{name}");
        }
    }
}

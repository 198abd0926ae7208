//! Laws that are no part of congestlab run as those of its list: the same engines, the same bits.

extern crate alloc;

use std::sync::atomic::AtomicBool;

/// The law that `congestlab new law` writes.
#[path = "../../cli/templates/law/src/law.rs"]
#[expect(unreachable_pub, reason = "there it is a library's")]
mod shares;

use congestlab_core::law::settings::{Field, Settings};
use congestlab_core::law::words::{LinkWords, Moment, Phase, Reaction, Rule, SenderWords};
use congestlab_core::law::{
    self, Ack, Carried, EchoLaw, Heard, LinkConfig, LinkLaw, Needs, On, Packet, Receiving, Reply, Send,
    SenderConfig, SenderLaw, Series, Steered, mpcp, outside, reno, xcp,
};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Time};
use congestlab_net::packet::Picos;
use congestlab_net::port::{LawConfig, PortConfig};
use congestlab_net::queue::Limit;
use congestlab_net::service::Service;
use congestlab_net::tcp::{Advertise, App, Config, Measure, Recovery};
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
        window_most: Bytes(u64::MAX),
        law: sender,
        awnd: None,
        recovery: Recovery::Sack,
        min_rto: Duration(1_000_000_000),
        delayed_ack: false,
        ecn: false,
        ns2: false,
        linux: None,
        app: App::Endless,
        advertise: Advertise::Always,
        stop: Time::NEVER,
        lie: None,
        measure: Measure::ALWAYS,
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
    impl LinkWords for Link {}

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

    impl SenderWords for Sender {}

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
    let settings = shares::LinkSettings::DEFAULT;
    let link = outside::link::<shares::Link>(settings);
    let sender = outside::sender::<shares::Sender>(shares::SenderSettings);
    assert_eq!((link.name(), sender.name()), ("shares", "shares"));
    assert_eq!((link.clone(), sender.clone()), (link.clone(), sender.clone()));
    let other = shares::LinkSettings { interval: Duration(1), ..settings };
    assert_ne!(outside::link::<shares::Link>(other), link);

    let found = outcome(&dumbbell(7, link, sender));
    assert_eq!(found.links[0].drops, 0);
    let utilization = found.links[0].utilization.unwrap();
    assert!((0.94..=0.951).contains(&utilization), "{utilization}");
    let told = |name: &str| {
        let values = found.series.iter().filter(|sample| sample.metric == name && sample.at > 4000 * MS);
        values.map(|sample| sample.value).collect::<Vec<_>>()
    };
    let seventh = (RATE.0 / 8 / 20 * 19 / 7) as f64;
    for (name, least) in [("share_Bps", 30), ("told_Bps", 7 * 30)] {
        let values = told(name);
        assert!(values.len() >= least, "{name}: {} values", values.len());
        assert!(values.iter().all(|value| (value - seventh).abs() <= 1.0), "{name}: {values:?}");
    }
}

/// What `explain` says of a law that nobody knows: its own words; of one without words its series, before and after.
#[test]
fn a_law_of_its_own_is_told_by_its_words_or_its_series() {
    let texts = |told: Vec<Rule>| told.into_iter().map(|rule| rule.text).collect::<Vec<_>>();
    let hop = |link: &LinkConfig, came: &Carried, left: &Carried| {
        let view = law::Link::new(link, Duration(1), Duration(1)).view(came).expect("it has one");
        texts(link.explain(&view, [came, left]))
    };
    let plain = Carried { size: Bytes(1000), ..Carried::default() };
    let mut came = plain;
    came.add_header(shares::Header { flow: 7, share: 9 });
    let mut left = came;
    left.set_header(shares::Header { flow: 7, share: 1 });
    let link = outside::link::<shares::Link>(shares::LinkSettings::DEFAULT);
    let told = hop(&link, &came, &left);
    let counted = "0 flows were counted in the last interval, so each gets 1 B/s";
    assert_eq!(told, [counted, "less than the packet came with: lowered to 1 B/s"]);
    // Of a packet that is not its own it has no view, and its report is told.
    let reported = ["the law's last interval: share_Bps is 1", "the law's last interval: counted_flows is 0"];
    assert_eq!(hop(&link, &plain, &plain), reported);
    assert!(link.explain_other().text.contains("nothing that this law reads"));
    let wordless = outside::link::<tenth::Link>(tenth::LinkSettings(Rate(0)));
    assert_eq!(hop(&wordless, &plain, &plain), ["the law's last interval: link_marks is 0"]);

    let ack = |word| Ack {
        reply: Reply { word, byte: 0 },
        srtt: Duration(100_000_000),
        acked: Bytes(1000),
        ..Ack::default()
    };
    let answer = |sender: &SenderConfig| {
        let before = law::Sender::new(sender, Bytes(1000), Bytes(4000));
        let mut after = before.clone();
        after.on_ack(sender, Time(0), &ack(7000));
        let moment = |law: &law::Sender| Moment {
            window: law.window(),
            srtt: Duration(100_000_000),
            phase: Phase::Open,
            awnd: Bytes(u64::MAX),
            is_window_limited: true,
            window_cuts: 0,
        };
        let seen = Reaction {
            now: Time(0),
            before: moment(&before),
            after: moment(&after),
            reply: Reply { word: 7000, byte: 0 },
            is_new: true,
            is_late: false,
            is_probe: false,
            segment: Bytes(1000),
        };
        texts(law::Sender::explain(sender, [&before, &after], &seen))
    };
    let sender = outside::sender::<shares::Sender>(shares::SenderSettings);
    assert_eq!(texts(sender.explain_packet(&came)), ["its header is of flow 0x7 and asks for less than all"]);
    let window = "the window is what that sends in 100 ms, and two segments";
    assert_eq!(answer(&sender), ["the path has 7000 B/s for the flow, after 0 B/s", window]);
    let wordless = outside::sender::<tenth::Sender>(tenth::SenderSettings { owns_ecn: true });
    assert_eq!(answer(&wordless), ["told_marks went from 0 to 7000"]);
}

/// An option that no packet has room for is none: captures write what fits.
#[test]
fn an_option_of_its_own_has_its_length() {
    let sender = outside::sender::<shares::Sender>(shares::SenderSettings);
    let mut packet = Carried { size: Bytes(1000), ..Carried::default() };
    packet.add_header(shares::Header { flow: 7, share: 9 });
    let bytes = sender.option(On::Forward(&packet)).expect("it has one");
    assert_eq!(bytes[..12], [253, 12, b'S', b'H', 0, 0, 0, 9, 0, 0, 0, 7]);
    let bytes = sender.option(On::Back(Reply { word: 5, byte: 0 })).expect("it has one");
    assert_eq!(bytes[..8], [253, 8, b'S', b'H', 0, 0, 0, 5]);
    let option = |length| {
        let mut bytes = [0; 40];
        bytes[1] = length;
        bytes
    };
    let fits = |length, handshake| outside::fits(&option(length), &Needs { handshake, ..Needs::NONE });
    assert_eq!(
        [0, 3, 4, 6, 16, 20, 28, 32].map(|length| fits(length, false)).map(u8::from),
        [0, 0, 1, 0, 1, 1, 1, 0]
    );
    assert_eq!([4, 16, 20].map(|length| fits(length, true)), [true, true, false]);
}

/// A law of the list that comes by the door for those from outside does the same, bit for bit.
#[test]
fn a_law_of_the_list_is_the_same_from_outside() {
    let rate = Rate(RATE.0 / 8);
    let xcp = xcp::SenderConfig { desired_rate: rate, ..xcp::SenderConfig::DEFAULT };
    let (tpcp, tpcp_link) = (mpcp::SenderConfig::of(3, true), mpcp::LinkConfig::of(3, true));
    let pairs = [
        (
            (LinkConfig::Xcp(xcp::LinkConfig::DEFAULT), SenderConfig::Xcp(xcp)),
            (outside::link::<xcp::Link>(xcp::LinkConfig::DEFAULT), outside::sender::<xcp::Sender>(xcp)),
        ),
        (
            (LinkConfig::Mpcp(tpcp_link), SenderConfig::Mpcp(tpcp)),
            (outside::link::<mpcp::Link>(tpcp_link), outside::sender::<mpcp::Sender>(tpcp)),
        ),
        (
            (LinkConfig::Xcp(xcp::LinkConfig::DEFAULT), SenderConfig::Reno(reno::Config::DEFAULT)),
            (
                outside::link::<xcp::Link>(xcp::LinkConfig::DEFAULT),
                outside::sender::<reno::Reno>(reno::Config::DEFAULT),
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

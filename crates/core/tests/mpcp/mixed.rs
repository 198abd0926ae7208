//! Paths that are not as the laws of MPCP's family want them: codes that middleboxes clear, links and flows of another law of
//! the family, packets that are late.

use congestlab_core::law::mpcp::{
    Algorithm2, Chains, ChainsReader, Counts, CountsReader, Echo, Echoed, Flow, HIGH, Heard, LOW, Level,
    Link, LinkConfig, Loss, OVERLOAD, Order, Repair, Sender, SenderConfig,
};
use congestlab_core::law::{
    Ack, Carried, EchoLaw as _, LinkLaw as _, Listening, Packet as _, Segment, Send, SenderLaw as _,
};
use congestlab_core::units::{Bytes, Duration, Rate, Time};

use crate::{Seen, shown};

const MS: u64 = 1_000_000;
const MSS: u64 = 1_000_000;

fn ack(echoed: Echoed) -> Ack {
    Ack {
        acked: Bytes(MSS),
        srtt: Duration(100 * MS),
        rtt: Duration(100 * MS),
        is_window_limited: true,
        reply: echoed.into(),
        ..Ack::default()
    }
}

fn flow(config: &SenderConfig) -> Sender {
    Sender::new(config, Bytes(MSS), Bytes(10 * MSS))
}

#[test]
fn a_receiver_returns_00_and_the_highest_code_where_one_is_left() {
    let config = SenderConfig::of(1, true);
    let mut echo = Echo::start(&config, Bytes(1000));
    let listening = Listening { mss: Bytes(1000), ..Listening::default() };
    for (codes, told) in [(&[0][..], 0), (&[0, 1], 1), (&[2, 0], 2), (&[0, 0], 0)] {
        for &ecn in codes {
            echo.on_data(&config, &Carried { size: Bytes(1000), ecn, ..Carried::default() }, listening);
        }
        let reply = Echoed::from(echo.on_ack(&config, listening));
        assert_eq!(reply.code(), Some(told), "{codes:?}");
    }
}

/// From 00 on a flow is NewReno's: its packets are not ECN-capable. What codes have made of the window is the threshold.
#[test]
fn a_flow_whose_codes_are_cleared_sends_none_and_does_not_double_its_window() {
    let config = SenderConfig::of(1, true);
    for (is_answered, window) in [(false, 11 * MSS), (true, 10 * MSS + MSS / 10)] {
        let mut sender = flow(&config);
        let mut packet = Carried { size: Bytes(1000), ..Carried::default() };
        sender.on_send(&config, Time(0), &Send::default(), &mut packet);
        assert_eq!(packet.ecn(), LOW);
        if is_answered {
            let unused = Ack { acked: Bytes(0), ..ack(Echoed::new(LOW, Some(0))) };
            sender.on_ack(&config, Time(1), &unused);
        }
        sender.on_ack(&config, Time(2), &ack(Echoed::new(0, Some(0))));
        assert_eq!(sender.window(), Bytes(window));
        let mut packet = Carried { size: Bytes(1000), ..Carried::default() };
        sender.on_send(&config, Time(3), &Send::default(), &mut packet);
        assert_eq!((packet.ecn(), sender.pacing_rate(&config, Duration(MS))), (0, None));
    }
}

#[test]
fn a_kernels_receiver_tells_that_codes_are_cleared() {
    let (mut counts, mut reader) = (Counts::default(), CountsReader::default());
    counts.on_data(0, 3);
    assert_eq!(reader.on_ack(counts.word), Echoed::new(0, Some(0)));
    assert_eq!(reader.on_ack(counts.word), Echoed::NONE);
    counts.on_data(0, 1);
    counts.on_data(HIGH, 1);
    assert_eq!(reader.on_ack(counts.word), Echoed::new(HIGH, Some(0)), "some code is left");

    let cleared = Heard { is_cleared: true, ..Heard::default() };
    for n in 2..=8 {
        let (mut chains, mut reader) = (Chains::default(), ChainsReader::default());
        for round in 0..20 {
            chains.on_data(n, 0, round % (n + 1), 1);
            let first = chains.word;
            assert_eq!(reader.on_ack(n, first), cleared, "{n} packets, round {round}");
            chains.on_data(n, 0, 1, 5);
            assert_eq!((chains.word, reader.on_ack(n, first)), (first, Heard::default()), "it was told");
            (0..n).for_each(|index| chains.on_data(n, HIGH, index, 1));
            let heard = reader.on_ack(n, chains.word);
            assert!(heard.digits > 0 && !heard.is_cleared, "{heard:?}");
            assert_eq!(reader.on_ack(n, first), Heard::default(), "it was overtaken");
        }
    }
}

/// VCP's packets in the order of nature may all look like second ones of chains (MP: DPCP is compatible to VCP).
#[test]
fn a_link_of_chains_tells_flows_without_chains_the_zone() {
    let config = LinkConfig { capacity: Rate(1_000_000), ..LinkConfig::of(2, true) };
    let mut link = Link::new(config, Duration(200 * MS), Duration(0));
    link.on_arrival(Time(0), &Seen { size: 190_120, ..Seen::default() });
    link.on_deadline(Time(200 * MS), Bytes(0));
    assert_eq!(link.level().zone(), HIGH);
    let mut second = Segment { sequence: 5, acknowledgment: 9, length: 1000, ..Segment::default() };
    second.seal();
    for (code, told) in [(LOW, HIGH), (OVERLOAD, OVERLOAD), (0, 0)] {
        let mut packet = Seen { size: 1000, ecn: code, words: shown(second), flow: None };
        link.on_departure(Time(201 * MS), &mut packet, Bytes(0));
        assert_eq!(packet.ecn, told);
    }
    // A flow that is known, since its numbers were in the other order before.
    let own = Level::of(970_000, 2);
    let mut flow = Flow::default();
    flow.mark(0, LOW, &own, Algorithm2::Corrected);
    flow.mark(1, LOW, &own, Algorithm2::Corrected);
    let codes: Vec<u8> = (0..10)
        .map(|_| {
            flow = Flow::from_word(flow.to_word());
            flow.mark(1, LOW, &own, Algorithm2::Corrected)
        })
        .collect();
    assert_eq!(codes, [1, 1, 1, 1, 1, 1, 1, 2, 2, 2]);
    assert_eq!(flow.mark(0, LOW, &own, Algorithm2::Corrected), HIGH);
}

/// Links of VCP write the zone into each packet of a chain, and a chain is of two zones when the zone changes within it.
#[test]
fn chains_that_only_repeat_a_zone_are_read_as_zones() {
    for n in 2..=4 {
        let config = SenderConfig::of(n, false);
        let mut sender = flow(&config);
        let chain = |sender: &mut Sender, digits: &[u8]| {
            for (index, &digit) in (0..).zip(digits) {
                sender.on_ack(&config, Time(1), &ack(Echoed::new(digit, Some(index))));
            }
            sender.state()
        };
        let flat = |zone: u8| vec![zone; n as usize];
        let mixed = |zone: u8| [&vec![zone; n as usize - 1][..], &[zone % 3 + 1]].concat();
        assert!(!chain(&mut sender, &flat(LOW)).has_zones, "an idle link of chains says the same");
        let state = chain(&mut sender, &flat(HIGH));
        assert!(state.has_zones && state.level == Level::of_zone(HIGH), "{state:?}");
        chain(&mut sender, &mixed(HIGH));
        chain(&mut sender, &mixed(HIGH));
        chain(&mut sender, &flat(OVERLOAD));
        assert!(sender.state().has_zones, "two chains in which the zone changed");
        // A link of chains tells the same level for an interval.
        for _ in 0..3 {
            chain(&mut sender, &mixed(HIGH));
        }
        assert!(!sender.state().has_zones);
        let state = chain(&mut sender, &flat(HIGH));
        assert!(!state.has_zones && state.level.known() == n as u8, "it is known by now");

        let config = SenderConfig { zones: false, ..config };
        let mut sender = flow(&config);
        (0..n).for_each(|index| sender.on_ack(&config, Time(1), &ack(Echoed::new(HIGH, Some(index as u8)))));
        assert!(!sender.state().has_zones);
    }
}

/// An ACK that comes sooner than any round trip is not of the retransmission.
#[test]
fn a_loss_that_was_none_gives_the_window_back() {
    let undone = |config: &SenderConfig, after: u64, is_timeout: bool| {
        let mut sender = flow(config);
        let idle = Ack { acked: Bytes(0), ..ack(Echoed::NONE) };
        sender.on_ack(config, Time(0), &idle);
        sender.on_loss(config, Time(1000 * MS), Bytes(10 * MSS));
        assert_eq!(sender.window(), Bytes(5 * MSS));
        if is_timeout {
            sender.on_timeout(config, Time(1000 * MS), Bytes(10 * MSS), true);
        }
        let filled = Ack { in_recovery: true, is_repairing: true, ..ack(Echoed::NONE) };
        sender.on_ack(config, Time(after * MS), &Ack { acked: Bytes(0), ..filled });
        sender.on_ack(config, Time(after * MS), &filled);
        let back = sender.window();
        // The repair goes on, and the window with the codes.
        sender.on_ack(config, Time(after * MS), &Ack { reply: Echoed::new(LOW, Some(0)).into(), ..filled });
        (back.0 / MSS, sender.window() > back)
    };
    for n in [1, 2] {
        let config = SenderConfig::of(n, true);
        assert_eq!(undone(&config, 1099, false), (10, true), "{n}");
        assert_eq!(undone(&config, 1100, false), (5, false), "it can be of the retransmission");
        assert_eq!(undone(&config, 1099, true), (1, false), "a timeout stands");
        assert_eq!(undone(&SenderConfig { undo: false, ..config }, 1099, false), (5, false));
    }
}

#[test]
fn repairs_after_a_timeout_grow_or_hold_the_window() {
    for (repair, is_repairing, grows) in
        [(Repair::Grow, true, true), (Repair::Hold, true, false), (Repair::Hold, false, true)]
    {
        let config = SenderConfig { repair, ..SenderConfig::of(1, true) };
        let mut sender = flow(&config);
        sender.on_timeout(&config, Time(0), Bytes(10 * MSS), true);
        sender.on_ack(&config, Time(1), &Ack { is_repairing, ..ack(Echoed::new(LOW, Some(0))) });
        assert_eq!(sender.window() > Bytes(MSS), grows, "{repair:?}");
    }
}

/// MP fig. 4: with `loss = "ignore"` a flow that has given up its chains keeps its window, too.
#[test]
fn losses_halve_a_downgraded_window_unless_all_are_ignored() {
    for (loss, packets) in [(Loss::Tcp, 5), (Loss::Maintain, 5), (Loss::Ignore, 10)] {
        let config = SenderConfig { loss, order: Order::Swap, ..SenderConfig::of(2, true) };
        let mut sender = flow(&config);
        let repeated = Ack { acked: Bytes(0), ..ack(Echoed::new(LOW, Some(0))) };
        (0..3).for_each(|_| sender.on_ack(&config, Time(1), &repeated));
        assert!(sender.state().is_downgraded);
        sender.on_loss(&config, Time(2), Bytes(10 * MSS));
        assert_eq!(sender.window(), Bytes(packets * MSS), "{loss:?}");
    }
}

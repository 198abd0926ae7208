//! Policing of senders that lie or do not listen (docs/design/protocols.md 13.4).

#[path = "xcp/random.rs"]
mod random;

use congestlab_core::law::police::{Arrival, Bucket, Police, Record, WAYS};
use congestlab_core::law::xcp::Header;
use congestlab_core::units::{Bytes, Duration, Rate, SECOND, Time};
use random::Random;

const MS: u64 = SECOND / 1000;
const MTU: Bytes = Bytes(1500);
/// 40 Mbit/s: 3333 packets a second.
const CAPACITY: Rate = Rate(5_000_000);
const RTT: Duration = Duration(80 * MS);

fn at(now: u64, size: Bytes) -> Arrival {
    Arrival { now: Time(now), capacity: CAPACITY, size, packets: 1 }
}

/// A flow that sends evenly, with the fate of its packets.
struct Flow {
    record: Option<Record>,
    /// B/s.
    rate: u64,
    next: u64,
    /// Factor of the spacing that it states; 0: it has no header.
    states: u64,
    /// The round trip that it states.
    rtt: Duration,
    sent: u64,
    passed: u64,
    /// Sum of what its X counts for, 2^-28 s.
    counted: u64,
}

impl Flow {
    fn new(rate: u64, states: u64) -> Self {
        Self { record: None, rate, next: 0, states, rtt: RTT, sent: 0, passed: 0, counted: 0 }
    }

    fn spacing(&self) -> u64 {
        MTU.0 * SECOND / self.rate
    }

    fn is_held(&self) -> bool {
        self.record.is_some_and(|record| record.is_held())
    }
}

/// A link with a policer and flows that arrive at it, each in its own time.
struct Link {
    police: Police,
    flows: Vec<Flow>,
    now: u64,
}

impl Link {
    fn new(flows: Vec<Flow>) -> Self {
        Self { police: Police::new(), flows, now: 0 }
    }

    /// Runs for so long. Each packet is granted `delta`, by the flow's place.
    fn run(&mut self, time: u64, delta: impl Fn(usize, &Flow) -> i32) {
        let end = self.now + time;
        loop {
            let Some((at, flow)) = self.flows.iter_mut().enumerate().min_by_key(|(_, flow)| flow.next) else {
                return;
            };
            if flow.next >= end {
                self.now = end;
                return;
            }
            let arrival = crate::at(flow.next, MTU);
            let x = Duration(flow.spacing()).to_header();
            let mut header = Header {
                x: u32::try_from(u64::from(x) * flow.states).unwrap(),
                rtt: flow.rtt.to_header(),
                delta: 1000,
                reverse: 0,
            };
            if flow.states == 0 {
                header = Header::default();
            }
            flow.sent += 1;
            let passes = self.police.judge(&arrival, flow.record.as_mut(), &mut header);
            flow.record.get_or_insert(Record::first(arrival.now, MTU));
            if passes {
                flow.passed += 1;
                flow.counted += u64::from(header.x);
                let granted = delta(at, flow);
                if let Some(record) = &mut flow.record {
                    record.note_grant(granted);
                }
            }
            flow.next += flow.spacing();
        }
    }
}

fn nothing(_: usize, _: &Flow) -> i32 {
    0
}

/// Ten flows, each with a tenth of the link.
fn ten() -> Vec<Flow> {
    (0..10).map(|_| Flow::new(CAPACITY.0 / 10, 1)).collect()
}

#[test]
fn honest_flows_keep_all_packets_and_headers() {
    let mut link = Link::new(ten());
    link.run(100 * SECOND, nothing);
    assert_eq!((link.police.counts().dropped, link.police.counts().offenders), (0, 0));
    // The first packet of a flow may state nothing yet: the sender knows no round trip then.
    assert_eq!(link.police.counts().clamped, 10);
    let share = link.police.share().0;
    assert!(share.abs_diff(CAPACITY.0 / 10) < CAPACITY.0 / 100, "{share} B/s");
}

/// 33 packets fit into a round trip of 10 ms. Windows of one packet cannot be smaller, so 50 of them are no offence, though all are
/// told to send less. Windows of two packets can.
#[test]
fn one_packet_in_a_round_trip_is_no_offence() {
    let windows = |count: u64, packets: u64| {
        let rtt = Duration(10 * MS);
        let rate = packets * MTU.0 * SECOND / rtt.0;
        let flows = (0..count).map(|_| Flow { rtt, ..Flow::new(rate, 1) });
        let mut link = Link::new(flows.collect());
        link.run(60 * SECOND, |_, _| -2000);
        link.police.counts().offenders
    };
    assert_eq!(windows(50, 1), 0);
    assert!(windows(25, 2) >= 25);
}

/// The spacing that a flow states adds up to the time, and an eighth more at most.
#[test]
fn five_times_the_spacing_counts_for_the_time_that_passes() {
    for factor in [2, 5, 100] {
        let mut flows = ten();
        flows[9].states = factor;
        let mut link = Link::new(flows);
        link.run(100 * SECOND, nothing);
        let seconds = |flow: &Flow| flow.counted as f64 / f64::from(1 << 28);
        let (liar, honest) = (seconds(&link.flows[9]), seconds(&link.flows[0]));
        assert!((110.0..=113.5).contains(&liar), "{factor}: {liar} s");
        assert!((99.0..=100.1).contains(&honest), "{factor}: {honest} s");
        assert_eq!(link.police.counts().dropped, 0, "clamped is enough");
    }
}

/// 72 of 80 Mbit/s was what datagrams at line rate took; the flows that have made way want more than they have.
#[test]
fn datagrams_at_line_rate_are_held_to_a_share() {
    let mut flows = ten();
    for flow in &mut flows {
        flow.rate = CAPACITY.0 / 200;
    }
    flows[9] = Flow::new(CAPACITY.0, 0);
    let mut link = Link::new(flows);
    link.run(10 * SECOND, nothing);
    assert!(link.flows[9].is_held(), "after ten seconds at most");
    let before = link.flows[9].passed;
    link.run(20 * SECOND, nothing);
    let rate = (link.flows[9].passed - before) * MTU.0 / 20;
    assert!(rate.abs_diff(CAPACITY.0 / 10) < CAPACITY.0 / 50, "{rate} B/s");
    assert_eq!(link.police.counts().offenders, 1);
    assert!((0..9).all(|at| link.flows[at].sent == link.flows[at].passed));
}

/// The flow has three shares and is told to give a tenth of what is too much in each round trip.
fn told(at: usize, flow: &Flow) -> i32 {
    if at < 7 || flow.rate <= CAPACITY.0 / 10 {
        return 0;
    }
    let excess = flow.rate - CAPACITY.0 / 10;
    let packets = flow.rate * RTT.0 / SECOND / MTU.0;
    -i32::try_from(excess / 10 / packets.max(1)).unwrap()
}

fn three_shares() -> Vec<Flow> {
    let mut flows = ten();
    for flow in &mut flows[..7] {
        flow.rate = CAPACITY.0 / 10;
    }
    flows.truncate(8);
    flows[7].rate = CAPACITY.0 / 10 * 3;
    flows
}

#[test]
fn who_does_not_fall_when_told_is_held_and_who_falls_is_not() {
    let mut deaf = Link::new(three_shares());
    deaf.run(20 * SECOND, told);
    assert!(deaf.flows[7].is_held());
    assert_eq!(deaf.police.counts().offenders, 1);

    let mut heeds = Link::new(three_shares());
    for _ in 0..250 {
        heeds.run(RTT.0, told);
        let share = CAPACITY.0 / 10;
        let freed = (heeds.flows[7].rate - share) / 10;
        heeds.flows[7].rate -= freed;
    }
    assert_eq!(heeds.police.counts().offenders, 0);
}

/// A flow with an old window sends it after a silence: three shares at once, and then falls as it is told.
#[test]
fn a_burst_after_a_silence_is_no_offence() {
    let mut link = Link::new(three_shares());
    for _ in 0..20 {
        let share = CAPACITY.0 / 10;
        link.flows[7].rate = share / 20;
        link.run(5 * SECOND, told);
        link.flows[7].rate = share * 3;
        for _ in 0..60 {
            link.run(RTT.0, told);
            link.flows[7].rate -= (link.flows[7].rate - share) / 10;
        }
    }
    assert_eq!(link.police.counts().offenders, 0);
}

#[test]
fn nobody_is_held_while_the_link_has_room() {
    let flows = vec![Flow::new(CAPACITY.0 / 100, 1), Flow::new(CAPACITY.0 * 8 / 10, 0)];
    let mut link = Link::new(flows);
    link.run(60 * SECOND, nothing);
    assert_eq!((link.police.counts().offenders, link.police.counts().dropped), (0, 0));
}

/// An offender that keeps to its share by itself is free again.
#[test]
fn an_offender_is_forgiven() {
    let mut flows = ten();
    flows[9] = Flow::new(CAPACITY.0, 0);
    let mut link = Link::new(flows);
    link.run(10 * SECOND, nothing);
    assert!(link.flows[9].is_held());
    link.flows[9].rate = CAPACITY.0 / 10;
    link.run(10 * SECOND, nothing);
    assert!(!link.flows[9].is_held());
    let (sent, passed) = (link.flows[9].sent, link.flows[9].passed);
    link.run(10 * SECOND, nothing);
    assert_eq!(link.flows[9].sent - sent, link.flows[9].passed - passed);
}

/// A million flows of one packet each state the largest X: together they count as one flow, and nothing grows.
#[test]
fn forged_flows_count_as_one() {
    let mut police = Police::new();
    let mut counted = 0;
    for packet in 0..1_000_000u64 {
        let mut header = Header { x: u32::MAX, rtt: u32::MAX, delta: i32::MAX, reverse: 0 };
        if police.judge(&at(packet * 10_000, Bytes(60)), None, &mut header) {
            counted += u64::from(header.x);
        }
    }
    let seconds = counted as f64 / f64::from(1 << 28);
    assert!(seconds <= 10.0 * 9.0 / 8.0 + 1.0, "{seconds} s of ten");
    assert!(size_of::<Record>() <= 96 && size_of::<Police>() <= 192);
}

/// Whatever comes: X is never raised, nothing else of a header is touched, who is not held loses nothing, and no sum overflows.
#[test]
fn any_packets_are_judged() {
    for seed in 0..50 {
        let mut random = Random::new(seed);
        let mut police = Police::new();
        let mut records = [Record::default(); 4];
        let mut now = 0u64;
        for _ in 0..2000 {
            let any = |random: &mut Random, most: u32| random.next() >> random.below(u64::from(most)).min(63);
            now = now.saturating_add(any(&mut random, 64) >> 20);
            let capacity = Rate(any(&mut random, 64) >> 8);
            let size = Bytes(any(&mut random, 16) & 0xffff);
            let came = Header {
                x: any(&mut random, 32) as u32,
                rtt: any(&mut random, 32) as u32,
                delta: any(&mut random, 32) as i32,
                reverse: any(&mut random, 32) as i32,
            };
            let came = if random.below(4) == 0 { Header::default() } else { came };
            let mut left = came;
            let flow = random.below(5) as usize;
            let arrival = Arrival { now: Time(now), capacity, size, packets: any(&mut random, 7) as u32 };
            let mut record = records.get_mut(flow);
            let passes = police.judge(&arrival, record.as_deref_mut(), &mut left);
            if let Some(record) = record {
                assert!(passes || record.is_held(), "seed {seed}");
                record.note_grant(any(&mut random, 32) as i32);
            }
            assert!(left.x <= came.x && Header { x: came.x, ..left } == came, "seed {seed}, {passes}");
        }
    }
}

/// Datagrams at the line's rate that were there first leave room for nobody: who repeats its first packet after ever longer
/// timeouts, and loses it each time, wants a share all the same.
#[test]
fn flows_that_can_not_begin_want_a_share() {
    for is_told in [false, true] {
        let mut police = Police::new();
        let mut first = Record::first(Time(0), MTU);
        let mut others: Vec<(Record, u64, u64)> =
            (0..9).map(|flow| (Record::default(), SECOND + flow * 100 * MS, SECOND)).collect();
        let spacing = MTU.0 * SECOND / CAPACITY.0;
        let mut held_at = None;
        for packet in 0..60 * SECOND / spacing {
            let now = packet * spacing;
            let passes = police.judge(&at(now, MTU), Some(&mut first), &mut Header::default());
            if first.is_held() {
                held_at = Some(now);
                assert!(passes || first.is_held());
                break;
            }
            for (record, next, timeout) in &mut others {
                if now >= *next {
                    let header = Header { x: 1000, rtt: RTT.to_header(), delta: 0, reverse: 0 };
                    let mut header = if is_told { header } else { Header::default() };
                    assert!(police.judge(&at(now, Bytes(40)), Some(record), &mut header));
                    record.note_drop();
                    (*next, *timeout) = (now + *timeout, *timeout * 2);
                }
            }
        }
        assert!(held_at.is_some_and(|at| at < 20 * SECOND), "told: {is_told}, {held_at:?}");
    }
}

/// A super-packet is as many packets as it has segments: three in a window are evidence, and counted by their segments.
#[test]
fn packets_that_come_as_one_are_evidence_and_counted() {
    let slow = Rate(CAPACITY.0 / 10);
    let size = Bytes(40 * MTU.0);
    let spacing = size.0 * SECOND / slow.0;
    for (packets, is_held) in [(40, true), (1, false)] {
        let mut police = Police::new();
        let mut flow = Record::first(Time(0), size);
        let mut others = [Record::first(Time(0), MTU); 9];
        let mut dropped = 0;
        for turn in 1..30 * SECOND / spacing {
            let arrival = Arrival { now: Time(turn * spacing), capacity: slow, size, packets };
            dropped += 40 * u64::from(!police.judge(&arrival, Some(&mut flow), &mut Header::default()));
            for other in &mut others {
                let arrival = Arrival { size: Bytes(40), packets: 1, ..arrival };
                assert!(police.judge(&arrival, Some(other), &mut Header::default()));
                other.note_drop();
            }
        }
        assert_eq!(flow.is_held(), is_held, "{packets} packets");
        assert_eq!((police.counts().dropped, police.counts().offenders), (dropped, is_held.into()));
        assert_eq!(dropped > 1000, is_held);
    }
}

#[test]
fn a_bucket_gives_each_flow_its_own_record_while_it_is_in_use() {
    let mut bucket = Bucket::default();
    for flow in 1..=WAYS as u64 {
        assert_eq!(bucket.find(flow), None);
        let at = bucket.begin(WAYS, flow, Time(flow), MTU).unwrap();
        assert_eq!((bucket.find(flow), bucket.records[at].seen()), (Some(at), Time(flow)));
    }
    // None has sent twice: the one that came first makes room.
    assert_eq!(bucket.begin(WAYS, 9, Time(9), MTU), Some(0));
    assert_eq!((bucket.find(1), bucket.find(9)), (None, Some(0)));
    let mut police = Police::new();
    for record in &mut bucket.records {
        police.judge(&at(10, MTU), Some(record), &mut Header::default());
    }
    assert_eq!(bucket.begin(WAYS, 10, Time(11 + 10 * SECOND - 1), MTU), None, "all are in use");
    assert_eq!(bucket.begin(WAYS, 10, Time(11 + 10 * SECOND), MTU), Some(0), "all are silent for long");
    assert_eq!(size_of::<Bucket>(), 96 * WAYS);
}

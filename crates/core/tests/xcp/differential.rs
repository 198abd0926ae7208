//! The integer law against the float transcription (docs/design/protocols.md 1.8): both follow the same packets
//! and are woken at the same moments, some of them late.

use super::random::Random;
use super::*;
use congestlab_core::law::pxcp;
use congestlab_core::law::xcp::Report;
use congestlab_core::law::{Carried, LinkLaw, Packet as _, Series as _};

/// A packet as it passes a link.
pub(crate) fn passing(header: Option<Header>, size: u64) -> Carried {
    let mut packet = Carried { size: Bytes(size), ..Carried::default() };
    if let Some(header) = header {
        packet.add_header(header);
    }
    packet
}

/// XCP's link law, or a variant of it.
trait Router: LinkLaw {
    /// What a proportional one counted.
    fn counts(&self) -> Option<pxcp::Counted>;

    fn arrive(&mut self, header: Header, size: u64) {
        self.on_arrival(Time(0), &passing(Some(header), size));
    }

    /// The header that the packet leaves with.
    fn depart(&mut self, header: Option<Header>, size: u64, backlog: u64) -> Option<Header> {
        let mut packet = passing(header, size);
        self.on_departure(Time(0), &mut packet, Bytes(backlog));
        packet.header()
    }

    fn decided(&self) -> Report {
        *self.report().base().downcast_ref().expect("of XCP's family")
    }
}

impl Router for Link {
    fn counts(&self) -> Option<pxcp::Counted> {
        None
    }
}

impl Router for pxcp::Link {
    fn counts(&self) -> Option<pxcp::Counted> {
        Some(self.report().counted)
    }
}

/// Seconds per unit of the header's times.
const STEP: f64 = 1.0 / 268_435_456.0;

/// The largest differences found, in B/s.
#[derive(Debug, Default)]
struct Worst {
    intervals: u64,
    packets: u64,
    /// Comparisons given up, see below.
    knife_edges: u64,
    /// Of one packet's feedback.
    packet: f64,
    /// Of what all packets of an interval got together: remainders are carried on.
    total: f64,
    /// Of the input rate and of the aggregate, relative to the capacity.
    aggregate: f64,
    /// Of an interval and of a queue estimation period, ns.
    interval: f64,
    period: f64,
}

fn of_any_size(random: &mut Random, least: u64, most: u64) -> u64 {
    let doublings = u64::from((most / least).ilog2()) + 1;
    let low = least << random.below(doublings);
    (low + random.below(low)).min(most)
}

/// A packet of one of a few flows; sometimes without X, without RTT, or of another protocol.
/// What upstream took is at most a part of what this link has to give.
fn packet(random: &mut Random, flows: &[(u64, u64, u64)], pools: f64) -> (Header, u64) {
    let (x, rtt, size) = flows[random.below(flows.len() as u64) as usize];
    let mut header = header(x, rtt, 0);
    match random.below(40) {
        0 => header.x = 0,
        1 => header.rtt = 0,
        2 => header = Header::default(),
        _ => {}
    }
    header.delta = match random.below(8) {
        0..=4 => ALL,
        5 => 0,
        6 => (random.next() >> (33 + random.below(31))) as i32,
        _ => -(random.below((pools / 8.0) as u64 + 1).min(1 << 31) as i64) as i32,
    };
    (header, size)
}

/// One router over `intervals` control intervals. `tolerance` is per packet, B/s. `law` makes the law
/// from XCP's configuration and its phases.
fn follow<L: Router>(
    random: &mut Random,
    capacity: u64,
    bound_headers: bool,
    law: impl Fn(LinkConfig, Duration, Duration) -> L,
    intervals: u64,
    tolerance: impl Fn(f64) -> f64,
    worst: &mut Worst,
) {
    let config = LinkConfig { capture: random.below(2) == 0, bound_headers, ..link_config(capacity) };
    let mut oracle = oracle::Link::new((&config).into());
    let (phase, queue_phase) = (1 + random.below(50 * MS), random.below(50 * MS));
    let mut law = law(config, Duration(phase), Duration(queue_phase));
    oracle.proportional = law.counts().map(|_| oracle::Proportional::new(0.9, 0.95));

    let (mut began, mut control, mut estimate) = (0, phase, queue_phase as f64);
    let mut flows = vec![];
    let (mut is_exhausted, mut is_knife_edge, mut pools, mut total) = (false, false, 0.0, 0.0f64);
    while law.decided().intervals < intervals {
        let report = law.decided();
        let at = law.next_deadline().0;
        if at != control {
            worst.period = worst.period.max((at as f64 - estimate).abs());
            assert!((at as f64 - estimate).abs() <= 2.0, "the queue estimate is due at {at} or {estimate}");
        }
        let now = if random.below(4) == 0 { at + random.below(30 * MS) } else { at };

        // What the flows could be: about any load, on links of any speed.
        if flows.is_empty() || random.below(5) == 0 {
            flows = (0..1 + random.below(8))
                .map(|_| {
                    let rtt = of_any_size(random, MS / 5, 3 * SECOND);
                    let x = of_any_size(random, 50, 2 * rtt);
                    (x, rtt, [40, 576, 1000, 1500, 9000][random.below(5) as usize])
                })
                .collect();
        }
        let load = (u128::from(capacity) * u128::from(now - began) / u128::from(SECOND)) as u64;
        let count = random.below(30);
        for _ in 0..count {
            let (header, size) = packet(random, &flows, pools);
            law.arrive(header, size);
            oracle.arrival(f64::from(header.x) * STEP, f64::from(header.rtt) * STEP, size as f64);
        }
        if count > 0 && random.below(4) > 0 {
            let rest = random.below(load / 2 + 1);
            law.arrive(Header::default(), rest);
            oracle.arrival(0.0, 0.0, rest as f64);
        }

        let backlog_of = |random: &mut Random| {
            if random.below(8) == 0 { 0 } else { random.below(load + 2).min(10_000_000_000) }
        };
        let mut departed = 0;
        for _ in 0..if is_knife_edge { 0 } else { random.below(30) } {
            let (header, size) = packet(random, &flows, pools);
            let backlog = backlog_of(random);
            if random.below(20) == 0 {
                law.depart(None, 40, backlog);
                oracle.min_queue = oracle.min_queue.min(backlog as f64);
                continue;
            }
            let out = law.depart(Some(header), size, backlog).expect("its header");
            let res_pos = oracle.res_pos;
            let x = f64::from(header.x) * STEP;
            let rtt = f64::from(header.rtt) * STEP;
            let exact = oracle.departure(f64::from(header.delta), x, rtt, size as f64, backlog as f64);
            assert_eq!(Header { delta: header.delta, ..out }, header, "only the feedback may change");
            assert!(out.delta <= header.delta, "{} raised to {}", header.delta, out.delta);
            let difference = f64::from(out.delta) - exact;
            worst.packet = worst.packet.max(difference.abs());
            assert!(
                difference.abs() <= 1.0 + tolerance(pools),
                "{} B/s instead of {exact} at {capacity} B/s, {pools} B/s in the pools",
                out.delta
            );
            total += difference;
            departed += 1;
            // An exhausted pool gives nothing more even if a packet returns something to it (1.5). Whether
            // the last share was all of it hangs on the last bit: no comparison beyond such a return.
            if is_exhausted && oracle.res_pos > res_pos {
                worst.knife_edges += 1;
                is_knife_edge = true;
                break;
            }
            is_exhausted |= oracle.res_pos < 0.001;
        }
        if departed > 0 {
            worst.packets += departed;
            worst.total = worst.total.max(total.abs());
        }

        let backlog = backlog_of(random);
        law.on_deadline(Time(now), Bytes(backlog));
        if law.decided().intervals > report.intervals {
            worst.intervals += 1;
            if let (Some(counted), Some(exact)) = (law.counts(), &mut oracle.proportional) {
                let flows = |sum: u64| sum as f64 / f64::from(counted.interval);
                let near = |found: f64, exact: f64| (found - exact).abs() <= 1e-4 * exact.max(1.0);
                assert!(near(flows(counted.n), exact.n), "{counted:?} instead of N {}", exact.n);
                if exact.is_doubtful {
                    worst.knife_edges += 1;
                    exact.n_lim = flows(counted.n_lim);
                }
                assert!(near(flows(counted.n_lim), exact.n_lim), "{counted:?} instead of {}", exact.n_lim);
                // From here on with the same r: how it is made is held above.
                (exact.n, exact.n_lim) = (1.0, f64::from(counted.r) / f64::from(1u32 << 31));
            }
            oracle.control_timeout((now - began) as f64 / 1e9);
            let report = law.decided();
            let scale = oracle.y + capacity as f64;
            let aggregate =
                (report.feedback as f64 - oracle.f).abs().max((report.input.0 as f64 - oracle.y).abs());
            assert!(
                // The report leaves out the 16 binary places that the law has, the last of them rounded.
                aggregate <= 1.0 + 1.0 / 65536.0 + scale / (1u64 << 40) as f64,
                "{report:?}, F {} y {}",
                oracle.f,
                oracle.y
            );
            worst.aggregate = worst.aggregate.max((aggregate - 1.0) / scale);
            let interval = (report.interval.0 as f64 - oracle.ci * 1e9).abs();
            assert!(interval <= 2.0, "{report:?} instead of {} s", oracle.ci);
            worst.interval = worst.interval.max(interval);
            assert!(
                (report.persistent_queue.0 as f64 - oracle.queue).abs() < 0.5,
                "{report:?}, {}",
                oracle.queue
            );
            // The law rounds whole ns. Where that decides, it says what it did.
            if config.bound_headers {
                let most = f64::from(report.interval.min(config.initial_interval).to_header()) * STEP;
                assert!((most - oracle.max_x).abs() < 1.5 * STEP, "{most} instead of {}", oracle.max_x);
                oracle.max_x = most;
            }
            (began, control) = (now, now + report.interval.0);
            (is_exhausted, is_knife_edge) = (false, false);
            (pools, total) = (oracle.res_pos + oracle.res_neg, 0.0);
        }
        // The law rounds deadlines to whole ns. Where that could decide, it says what it did.
        let is_left =
            law.next_deadline() > Time(now) && (law.next_deadline().0 as f64 - estimate).abs() <= 1.0;
        if estimate <= now as f64 + 1.0 && !is_left {
            oracle.queue_timeout(backlog as f64);
            estimate = now as f64 + (oracle.tq * 1e9).ceil();
        }
    }
}

/// 8 kB/s to 1.25 GB/s, X and RTT as on the wire, 10^5 intervals: 1 B/s per packet, and what the
/// last of the 16 binary places of a pool makes.
#[test]
fn the_law_stays_within_a_byte_per_second_of_its_transcription() {
    let (mut random, mut worst) = (Random::new(4), Worst::default());
    for _ in 0..5000 {
        let capacity = of_any_size(&mut random, 8000, 1_250_000_000);
        follow(&mut random, capacity, false, Link::new, 20, |_| 0.0001, &mut worst);
    }
    println!("{worst:?}");
    assert_eq!(worst.intervals, 100_000);
    assert!(worst.packets > 1_000_000);
    assert!(worst.total <= 1.0001, "{worst:?}");
}

/// As above with headers bounded: packets that count the same are rounded the same, so that the last places of 29
/// of them add up.
#[test]
fn a_law_that_bounds_headers_stays_as_close_to_its_transcription() {
    let (mut random, mut worst) = (Random::new(4), Worst::default());
    for _ in 0..5000 {
        let capacity = of_any_size(&mut random, 8000, 1_250_000_000);
        follow(&mut random, capacity, true, Link::new, 20, |_| 0.0001, &mut worst);
    }
    println!("{worst:?}");
    assert_eq!(worst.intervals, 100_000);
    assert!(worst.packets > 1_000_000);
    assert!(worst.total <= 1.0 + 29.0 / 65536.0, "{worst:?}");
}

/// Up to 1.25 TB/s: 2^-30 of what is handed out, besides.
#[test]
fn above_that_it_stays_within_a_billionth() {
    let (mut random, mut worst) = (Random::new(5), Worst::default());
    for _ in 0..1000 {
        let capacity = of_any_size(&mut random, 1_250_000_000, 1_250_000_000_000);
        let tolerance = |pools: f64| pools / (1u64 << 30) as f64;
        follow(&mut random, capacity, false, Link::new, 20, tolerance, &mut worst);
    }
    println!("{worst:?}");
    assert_eq!(worst.intervals, 20_000);
    assert!(worst.total <= 1_250_000_000_000.0 / (1u64 << 30) as f64, "{worst:?}");
}

/// P-XCP against its transcription: N and N_lim, and with the same r what every packet gets.
#[test]
fn a_proportional_link_stays_within_a_billionth_of_its_transcription() {
    let (mut random, mut worst) = (Random::new(15), Worst::default());
    let law = |xcp: LinkConfig, phase, queue_phase| {
        let config = pxcp::LinkConfig { xcp, counted_over: 1, ..pxcp::LinkConfig::DEFAULT };
        pxcp::Link::start(&config, phase, queue_phase)
    };
    for round in 0..5000 {
        let is_bound = round % 2 == 0;
        let capacity = of_any_size(&mut random, 8000, 1_250_000_000);
        let tolerance = |pools: f64| 0.001 + pools / (1u64 << 30) as f64;
        follow(&mut random, capacity, is_bound, law, 20, tolerance, &mut worst);
    }
    println!("{worst:?}");
    assert_eq!(worst.intervals, 100_000);
    assert!(worst.packets > 1_000_000);
}

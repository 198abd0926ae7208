//! Closed loops: some senders, one link, their receivers, and nothing that is not one of the three
//! laws. No losses: the buffer has no limit.

use super::*;
use congestlab_core::law::xcp::{Echo, Part, Sender};
use congestlab_core::law::{Ack, Send, SenderLaw as _};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const SIZE: u64 = 1000;
/// Of a liar's packets.
const SMALL: u64 = 60;

pub(crate) struct Flow {
    pub(crate) config: SenderConfig,
    pub(crate) awnd: u64,
    pub(crate) start: u64,
    /// Round trip without queueing that it has besides the link's.
    pub(crate) delay: u64,
}

struct Host {
    flow: Flow,
    sender: Sender,
    echo: Echo,
    flight: u64,
    srtt: u64,
}

/// What was measured from `from` on.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) utilization: f64,
    pub(crate) queue_mean: f64,
    pub(crate) queue_min: u64,
    pub(crate) queue_max: u64,
    /// Bytes per flow.
    pub(crate) sent: Vec<u64>,
    /// Windows at the end of each control interval, bytes.
    pub(crate) windows: Vec<(u64, Vec<u64>)>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Lied,
    Served,
    Acked { flow: usize, sent_at: u64, feedback: i32 },
    Started { flow: usize },
}

pub(crate) struct Dumbbell {
    now: u64,
    /// Time for one packet at the true capacity.
    service: u64,
    /// Round trip without queueing.
    delay: u64,
    link: Link,
    /// Of processors, each of which has every so manieth flow; none: the link itself sees all packets.
    parts: Vec<Part>,
    hosts: Vec<Host>,
    /// Time between two packets of who only states the most that a header can.
    lies: Option<u64>,
    /// No flow: a liar's.
    queue: VecDeque<(Option<usize>, Header, u64)>,
    is_busy: bool,
    events: BinaryHeap<Reverse<(u64, Event, u64)>>,
    count: u64,
}

impl Dumbbell {
    pub(crate) fn new(config: LinkConfig, rate: u64, delay: u64, flows: Vec<Flow>) -> Self {
        let hosts = flows.into_iter().map(|flow| Host {
            flow,
            sender: Sender::new(Bytes(SIZE), Bytes(SIZE)),
            echo: Echo::default(),
            flight: 0,
            srtt: 0,
        });
        let mut this = Self {
            now: 0,
            service: SIZE * SECOND / rate,
            delay,
            link: Link::new(config, Duration(37 * MS), Duration(11 * MS)),
            parts: vec![],
            hosts: hosts.collect(),
            lies: None,
            queue: VecDeque::new(),
            is_busy: false,
            events: BinaryHeap::new(),
            count: 0,
        };
        for flow in 0..this.hosts.len() {
            this.schedule(this.hosts[flow].flow.start, Event::Started { flow });
        }
        this
    }

    /// With somebody who sends so often, all the time, and listens to nobody.
    pub(crate) fn with_liar(mut self, every: u64) -> Self {
        self.lies = Some(every);
        self.schedule(every, Event::Lied);
        self
    }

    /// With the link's law in so many parts.
    pub(crate) fn in_parts(mut self, parts: usize) -> Self {
        self.parts = vec![Part::new(); parts];
        self
    }

    /// The part where a flow's packets pass, which then has what one of them wants.
    fn part(&mut self, flow: usize, header: &Header, size: u64) -> Option<&mut Part> {
        let count = self.parts.len();
        let part = self.parts.get_mut(flow.checked_rem(count)?)?;
        if part.wants(self.link.interval_number(), header, Bytes(size)) {
            self.link.lend(part, header, Bytes(size), count as u64);
        }
        Some(part)
    }

    fn arrive(&mut self, flow: usize, header: &Header, size: u64) {
        match self.part(flow, header, size) {
            Some(part) => part.on_arrival(header, Bytes(size)),
            None => self.link.on_arrival(Time(self.now), header, Bytes(size)),
        }
    }

    fn depart(&mut self, flow: usize, header: &mut Header, size: u64) {
        let (now, backlog) = (Time(self.now), self.backlog());
        match self.part(flow, header, size) {
            Some(part) => {
                part.on_departure(header, Bytes(size));
                self.link.on_other_departure(now, backlog);
            }
            None => self.link.on_departure(now, header, Bytes(size), backlog),
        }
    }

    fn lie(&mut self) {
        let header = Header { x: u32::MAX, rtt: u32::MAX, delta: ALL, reverse: 0 };
        self.arrive(0, &header, SMALL);
        self.queue.push_back((None, header, self.now));
        self.serve();
        if let Some(every) = self.lies {
            self.schedule(self.now + every, Event::Lied);
        }
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at, event, self.count)));
    }

    fn backlog(&self) -> Bytes {
        Bytes(self.queue.len() as u64 * SIZE)
    }

    fn send(&mut self, flow: usize) {
        let host = &mut self.hosts[flow];
        let window = host.sender.window().0.min(host.flow.awnd).max(SIZE);
        let mut packets = vec![];
        while host.flight + SIZE <= window {
            host.flight += SIZE;
            let send = Send {
                size: Bytes(SIZE),
                srtt: Duration(host.srtt),
                awnd: Bytes(host.flow.awnd),
                backlog: Bytes(u64::MAX),
                inflation: Bytes(0),
                is_window_limited: host.flight + SIZE > window,
            };
            packets.push(host.sender.header(&host.flow.config, Time(self.now), &send));
        }
        for header in packets {
            self.arrive(flow, &header, SIZE);
            self.queue.push_back((Some(flow), header, self.now));
            self.serve();
        }
    }

    fn serve(&mut self) {
        if self.is_busy {
            return;
        }
        let Some((flow, mut header, sent_at)) = self.queue.pop_front() else { return };
        self.is_busy = true;
        let size = if flow.is_some() { SIZE } else { SMALL };
        self.depart(flow.unwrap_or(0), &mut header, size);
        let end = self.now + self.service * size / SIZE;
        self.schedule(end, Event::Served);
        let Some(flow) = flow else { return };
        let echo = &mut self.hosts[flow].echo;
        echo.on_data(&header);
        let feedback = echo.on_ack();
        let delay = self.delay + self.hosts[flow].flow.delay;
        self.schedule(end + delay, Event::Acked { flow, sent_at, feedback });
    }

    fn acked(&mut self, flow: usize, sent_at: u64, feedback: i32) {
        let host = &mut self.hosts[flow];
        let rtt = self.now - sent_at;
        host.srtt = if host.srtt == 0 { rtt } else { (7 * host.srtt + rtt) / 8 };
        let ack = Ack {
            acked: Bytes(SIZE),
            flight: Bytes(host.flight),
            awnd: Bytes(host.flow.awnd),
            rtt: Duration(rtt),
            srtt: Duration(host.srtt),
            reply: xcp::reply(feedback),
            is_window_limited: true,
            ..Ack::default()
        };
        host.flight -= SIZE;
        host.sender.on_ack(&host.flow.config, Time(self.now), &ack);
        self.send(flow);
    }

    pub(crate) fn run(mut self, from: u64, to: u64) -> Outcome {
        let mut outcome = Outcome { queue_min: u64::MAX, ..Outcome::default() };
        outcome.sent = vec![0; self.hosts.len()];
        let (mut served, mut area, mut intervals) = (0, 0.0, 0);
        loop {
            let deadline = self.link.next_deadline().0;
            let next = self.events.peek().map_or(u64::MAX, |Reverse((at, ..))| *at).min(deadline);
            if next > to {
                break;
            }
            if next > from {
                area += (next - self.now.max(from)) as f64 * self.backlog().0 as f64;
                outcome.queue_min = outcome.queue_min.min(self.backlog().0);
                outcome.queue_max = outcome.queue_max.max(self.backlog().0);
            }
            self.now = next;
            if deadline < self.events.peek().map_or(u64::MAX, |Reverse((at, ..))| *at) {
                let backlog = self.backlog();
                self.parts.iter_mut().for_each(|part| self.link.take_in(part));
                self.link.on_deadline(Time(next), backlog);
                if self.link.report().intervals > intervals {
                    intervals = self.link.report().intervals;
                    let windows = self.hosts.iter().map(|host| host.sender.window().0);
                    outcome.windows.push((next, windows.collect()));
                }
                continue;
            }
            let Some(Reverse((_, event, _))) = self.events.pop() else { break };
            match event {
                Event::Lied => self.lie(),
                Event::Started { flow } => self.send(flow),
                Event::Acked { flow, sent_at, feedback } => {
                    outcome.sent[flow] += if next > from { SIZE } else { 0 };
                    self.acked(flow, sent_at, feedback);
                }
                Event::Served => {
                    self.is_busy = false;
                    served += u64::from(next > from);
                    self.serve();
                }
            }
        }
        outcome.utilization = (served * self.service) as f64 / (to - from) as f64;
        outcome.queue_mean = area / (to - from) as f64;
        outcome
    }
}

fn flow(start: u64) -> Flow {
    Flow { config: sender_config(), awnd: u64::MAX, start, delay: 0 }
}

/// docs/design/protocols.md 1.9: Q = 1.77 d0 dC / (1 - 1.77 dC / C) = 28.7 kB.
#[test]
fn v1_10_a_capacity_set_too_high_keeps_a_standing_queue() {
    let run = |capacity| {
        let dumbbell = Dumbbell::new(link_config(capacity), 1_219_000, 500 * MS, vec![flow(0)]);
        dumbbell.run(100 * SECOND, 300 * SECOND)
    };
    let high = run(1_250_000);
    println!("high: {:.4} mean {:.0} min {}", high.utilization, high.queue_mean, high.queue_min);
    assert!((high.queue_mean / 28_700.0 - 1.0).abs() < 0.15, "{}", high.queue_mean);
    assert!(high.utilization > 0.999 && high.queue_min > 20_000, "{} {}", high.utilization, high.queue_min);

    let low = run(1_180_000);
    println!("low: {:.4} mean {:.0} max {}", low.utilization, low.queue_mean, low.queue_max);
    assert!((low.utilization - 1180.0 / 1219.0).abs() < 0.002, "{}", low.utilization);
    assert!(low.queue_mean < 1000.0, "{}", low.queue_mean);
}

/// EX1.16: what a newcomer can take per interval is gamma of the traffic.
#[test]
fn v1_27_shuffling_alone_takes_over_within_26_intervals() {
    for (rate, rtt) in [(1_250_000, 40), (1_250_000, 100), (6_250_000, 40), (6_250_000, 100)] {
        let start = 15 * SECOND + 7 * MS;
        let dumbbell = Dumbbell::new(link_config(rate), rate, rtt * MS, vec![flow(0), flow(start)]);
        let outcome = dumbbell.run(0, 60 * SECOND);
        let late = outcome.windows.iter().filter(|(at, _)| *at > start);
        let unfair = late.take_while(|(_, w)| (w[1] as f64) < 0.45 * (w[0] + w[1]) as f64);
        let intervals = unfair.count();
        println!("{rate} B/s, {rtt} ms: {intervals} intervals");
        assert!((20..=26).contains(&intervals), "{intervals} intervals at {rate} B/s, {rtt} ms");
    }
}

/// docs/design/protocols.md 2.6 for plain XCP: P-XCP's Fig. 4, one of two flows limited to one packet.
#[test]
fn a_limited_flow_wastes_shuffled_bandwidth_unless_captured() {
    for (request, capture, expected) in [
        (RequestPolicy::Unlimited, false, 0.890),
        (RequestPolicy::Unlimited, true, 0.890),
        (RequestPolicy::Demand, false, 0.890),
        (RequestPolicy::Demand, true, 0.995),
    ] {
        let config = SenderConfig { request, ..sender_config() };
        let flows = vec![
            Flow { config, awnd: 500 * SIZE, start: 0, delay: 0 },
            Flow { config, awnd: SIZE, start: 100 * MS, delay: 0 },
        ];
        let link = LinkConfig { capture, ..link_config(1_250_000) };
        let outcome = Dumbbell::new(link, 1_250_000, 80 * MS - 800_000, flows).run(20 * SECOND, 100 * SECOND);
        println!("{request:?} capture {capture}: {:.4}", outcome.utilization);
        assert!(
            (outcome.utilization - expected).abs() < 0.01,
            "{request:?} {capture}: {}",
            outcome.utilization
        );
    }
}

/// K02: weights are prices. Ten to five to one, whatever the round trip time.
#[test]
fn rates_are_in_proportion_to_prices() {
    let priced = |price| Flow {
        config: SenderConfig { price: Ratio(price), ..sender_config() },
        awnd: u64::MAX,
        start: 0,
        delay: 0,
    };
    let flows = vec![priced(1_000_000), priced(500_000), priced(1_500_000)];
    let outcome =
        Dumbbell::new(link_config(2_500_000), 2_500_000, 80 * MS, flows).run(60 * SECOND, 120 * SECOND);
    let total: u64 = outcome.sent.iter().sum();
    for (sent, share) in outcome.sent.iter().zip([1.0 / 3.0, 0.5 / 3.0, 1.5 / 3.0]) {
        let found = *sent as f64 / total as f64;
        assert!((found - share).abs() < 0.01, "{found} instead of {share}: {:?}", outcome.sent);
    }
    assert!(outcome.utilization > 0.99, "{}", outcome.utilization);
}

/// What a flow gets of 75 Mbit/s in so long, Mbit/s, that starts beside others; `lies` are ten packets of 60 bytes
/// a second.
fn starting(bound_headers: bool, lies: bool, others: usize, delays: (u64, u64), span: u64) -> f64 {
    let (rate, start) = (75_000_000 / 8, 15 * SECOND + 7 * MS);
    let mut flows: Vec<Flow> = (0..others).map(|_| Flow { delay: delays.0, ..flow(0) }).collect();
    flows.push(Flow { delay: delays.1, ..flow(start) });
    let config = LinkConfig { bound_headers, ..link_config(rate) };
    let mut dumbbell = Dumbbell::new(config, rate, 0, flows);
    if lies {
        dumbbell = dumbbell.with_liar(100 * MS);
    }
    let outcome = dumbbell.run(start, start + span * SECOND);
    outcome.sent[others] as f64 * 8e-6 / span as f64
}

/// Ten small packets a second that state the largest X and RTT.
#[test]
fn who_states_the_most_takes_next_to_nothing_from_a_flow_that_starts() {
    for (others, rtt, span) in [(0, 5, 20), (1, 10, 10), (1, 40, 10), (4, 40, 10), (9, 40, 10)] {
        let run = |bound, lies| starting(bound, lies, others, (rtt * MS, rtt * MS), span);
        let (quiet, open, bound) = (run(true, false), run(false, true), run(true, true));
        println!("{others} others, {rtt} ms: {quiet:.2}, unbounded {open:.2}, bounded {bound:.2} Mbit/s");
        assert!(bound > 0.9 * quiet, "{bound} of {quiet} Mbit/s beside {others} flows at {rtt} ms");
        assert!(open < 0.2 * quiet, "{open} of {quiet} Mbit/s beside {others} flows at {rtt} ms");
    }
}

/// The price of that for flows that say what is true: none with equal round trips, however long.
#[test]
fn bounded_headers_cost_a_flow_that_starts_nothing_among_its_like() {
    for (others, rtt) in [(0, 1), (0, 100), (0, 600), (1, 40), (9, 40), (4, 200), (4, 600)] {
        let run = |bound| starting(bound, false, others, (rtt * MS, rtt * MS), 20);
        let (open, bound) = (run(false), run(true));
        println!("{others} others, {rtt} ms: unbounded {open:.2}, bounded {bound:.2} Mbit/s");
        assert!(bound > 0.98 * open, "{bound} instead of {open} Mbit/s beside {others} flows at {rtt} ms");
    }
}

//! VCP, DPCP and TPCP as Li and Yousefi'zadeh write them (MPCP, CCR 39(5), 2009; MP below), packet by packet, in seconds, bytes
//! and f64. Constants that MP takes from VCP are those of Xia et al. (SIGCOMM 2005; VCP below).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Bytes of a packet.
const PACKET: f64 = 1000.0;
/// How often a router samples its queue (VCP: t_q = 10 ms).
const SAMPLE: f64 = 0.01;
/// How fast a persistent queue should drain, and the utilisation that is a load of 1 (VCP).
const KAPPA_Q: f64 = 0.5;
const GAMMA: f64 = 0.98;
/// VCP's growth where load is low, kappa (1 - LF) / LF at 80 %, and its kappa.
const KAPPA: f64 = 0.25;
/// The longest round trip that multiplicative growth counts, in intervals: VCP bounds it, MP 2.2 says; C-20 how.
const EXPONENT_MAX: f64 = 2.5;
/// MP 2.2.
const VCP_CUT: f64 = 0.875;
/// MP 3.4, "after several RTTs": A-17 of the claims' set-ups.
const RESUME: f64 = 8.0;
/// MP 3.4, "if OO transmission continues happening": the third time is for good.
const STRIKES: u32 = 3;
/// Shortest retransmission timeout of TCP (RFC 6298), s.
const RTO_MIN: f64 = 1.0;

/// How many packets say a load: 1 for VCP, 2 for DPCP, 3 for TPCP.
pub(crate) type Chain = usize;

/// MP table 1: the upper bounds of DPCP's nine levels.
const LEVELS: [f64; 9] = [0.2, 0.4, 0.8, 0.85, 0.95, 1.0, 1.05, 1.4, 2.0];
/// MP table 1: load and what it multiplies the window by.
const CUTS: [(f64, f64); 3] = [(1.05, 0.875), (1.4, 0.6), (2.0, 0.43)];

/// The upper bounds of all levels. VCP has MP's zones. MP does not print TPCP's: thirds of each of DPCP's.
pub(crate) fn bounds(chain: Chain) -> Vec<f64> {
    match chain {
        1 => vec![0.8, 1.0, 2.0],
        2 => LEVELS.to_vec(),
        _ => {
            let below = |index: usize| index.checked_sub(1).map_or(0.0, |index| LEVELS[index]);
            let thirds = |index: usize| {
                (1..=3)
                    .map(move |third| below(index) + (LEVELS[index] - below(index)) * f64::from(third) / 3.0)
            };
            (0..LEVELS.len()).flat_map(thirds).collect()
        }
    }
}

/// The digits, 0 to 2, of the level of a load: most significant first. What is above 200 % has the highest level.
fn digits(bounds: &[f64], load: f64) -> Vec<u8> {
    let mut level = bounds.iter().position(|bound| load < *bound).unwrap_or(bounds.len() - 1);
    let mut rest = bounds.len();
    let mut digits = Vec::new();
    while rest > 1 {
        rest /= 3;
        digits.push((level / rest) as u8);
        level %= rest;
    }
    digits
}

/// The highest bound of levels that begin with `known`: "the sender starts adjusting cwnd conservatively under the assumption that
/// the LF is the highest one in the congestion zone" (MP 3.3).
fn highest(bounds: &[f64], known: &[u8]) -> f64 {
    let mut width = bounds.len();
    let mut first = 0;
    for digit in known {
        width /= 3;
        first += usize::from(*digit) * width;
    }
    bounds[first + width - 1]
}

/// What a window is cut by where the load is at most `bound`: MP table 1, and between its rows in proportion.
fn cut(chain: Chain, bound: f64) -> f64 {
    if chain == 1 || bound <= CUTS[0].0 {
        return VCP_CUT;
    }
    let row = CUTS.windows(2).find(|row| bound <= row[1].0 + 1e-9).expect("no load is above 200 %");
    let part = (bound - row[0].0) / (row[1].0 - row[0].0);
    row[0].1 + part * (row[1].1 - row[0].1)
}

/// MP algorithm 2: printed, its last `else` says MSP HIGH, and MSP EQ, which it tests later, is never set.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Equal {
    Corrected,
    Printed,
}

#[derive(Clone, Copy, PartialEq)]
enum Flag {
    /// The packets' level is lower: this link marks.
    Low,
    Equal,
    High,
}

#[derive(Clone)]
pub(crate) struct LinkSpec {
    /// bit/s.
    pub(crate) rate: f64,
    /// s.
    pub(crate) delay: f64,
    /// t_rho, s.
    pub(crate) interval: f64,
    pub(crate) chain: Chain,
    pub(crate) equal: Equal,
    /// The share of packets that are lost.
    pub(crate) loss: f64,
    /// The share of packets that come 1 ms later.
    pub(crate) late: f64,
}

impl LinkSpec {
    pub(crate) fn new(chain: Chain, rate: f64, delay: f64) -> Self {
        Self { rate, delay, interval: 0.2, chain, equal: Equal::Corrected, loss: 0.0, late: 0.0 }
    }
}

#[derive(Clone)]
pub(crate) enum Source {
    /// A window with always something to send, or so many packets.
    Window { packets: Option<u64> },
    /// A window for what an application writes at so many bit/s.
    Written { rate: f64 },
    /// Datagrams of so many bit/s.
    Datagrams { rate: f64 },
}

#[derive(Clone)]
pub(crate) struct FlowSpec {
    pub(crate) group: &'static str,
    pub(crate) path: Vec<usize>,
    pub(crate) source: Source,
    pub(crate) start: f64,
    pub(crate) chain: Chain,
    /// t_rho, which growth is scaled by, s.
    pub(crate) interval: f64,
    /// The longest round trip that growth counts, s.
    pub(crate) rtt_max: f64,
    /// Packets a round trip.
    pub(crate) alpha: f64,
    /// How long a cut window stays: MP 2.2 says a round trip, and where it is given it is so many s.
    pub(crate) hold: Option<f64>,
    /// Packets leave one by one over the round trip if it is so many s from one to the next. MP has nothing of it.
    pub(crate) paced_above: f64,
}

impl FlowSpec {
    pub(crate) fn new(group: &'static str, chain: Chain, path: &[usize], start: f64) -> Self {
        let source = Source::Window { packets: None };
        Self {
            group,
            path: path.to_vec(),
            source,
            start,
            chain,
            interval: 0.2,
            rtt_max: 0.5,
            alpha: 1.0,
            hold: None,
            paced_above: f64::INFINITY,
        }
    }
}

pub(crate) struct Run {
    pub(crate) links: Vec<LinkSpec>,
    pub(crate) flows: Vec<FlowSpec>,
    pub(crate) duration: f64,
    pub(crate) warmup: f64,
    /// Length of a bin, s.
    pub(crate) every: f64,
    pub(crate) seed: u64,
}

#[derive(Default)]
pub(crate) struct LinkSeen {
    /// Bytes that left, bin by bin.
    pub(crate) sent: Vec<f64>,
    /// (s, load) of each interval.
    pub(crate) loads: Vec<(f64, f64)>,
    /// Waiting packets at each end of a bin.
    pub(crate) queue: Vec<f64>,
    /// Mean of waiting packets from the warm-up on.
    pub(crate) queue_mean: f64,
    pub(crate) drops: u64,
}

pub(crate) struct Seen {
    pub(crate) links: Vec<LinkSeen>,
    /// Bytes that came, group by group, bin by bin.
    pub(crate) goodput: BTreeMap<&'static str, Vec<f64>>,
    /// By flow: bytes from the warm-up on, seconds from its start to its last packet, mean of the load that it assumes.
    pub(crate) bytes: Vec<f64>,
    pub(crate) completion: Vec<Option<f64>>,
    pub(crate) told: Vec<f64>,
    pub(crate) every: f64,
    pub(crate) warmup: f64,
}

impl Seen {
    fn mean(&self, bins: &[f64], from: f64, to: f64) -> f64 {
        let (first, last) = ((from / self.every).round() as usize, (to / self.every).round() as usize);
        bins[first..last].iter().sum::<f64>() * 8.0 / (to - from)
    }

    /// What a group got, bit/s.
    pub(crate) fn goodput(&self, group: &str, from: f64, to: f64) -> f64 {
        self.mean(&self.goodput[group], from, to)
    }

    /// bit/s from the warm-up on.
    pub(crate) fn throughput(&self, link: usize) -> f64 {
        let bins = &self.links[link].sent;
        self.mean(bins, self.warmup, bins.len() as f64 * self.every)
    }

    /// The end of the first bin in which a link carries `rate`; never if none does.
    pub(crate) fn reaches(&self, link: usize, rate: f64) -> f64 {
        let bin = self.links[link].sent.iter().position(|bytes| bytes * 8.0 / self.every >= rate);
        bin.map_or(f64::INFINITY, |bin| (bin + 1) as f64 * self.every)
    }

    /// The mean load of the intervals that end in a time.
    pub(crate) fn load(&self, link: usize, from: f64, to: f64) -> f64 {
        mean(self.links[link].loads.iter().filter(|(at, _)| *at > from && *at <= to).map(|(_, load)| *load))
    }

    /// The deviation of the queue at the ends of bins from the warm-up on.
    pub(crate) fn deviation(&self, link: usize) -> f64 {
        let queue = &self.links[link].queue[(self.warmup / self.every) as usize..];
        let middle = mean(queue.iter().copied());
        mean(queue.iter().map(|value| (value - middle).powi(2))).sqrt()
    }
}

pub(crate) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// Steele, Lea and Flood's SplitMix64.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[derive(Clone, Copy)]
struct Packet {
    flow: usize,
    hop: usize,
    /// Which of the flow's transmissions it is.
    transmission: u64,
    /// Its place in a chain, and the digit in its ECN bits.
    place: u8,
    digit: u8,
}

#[derive(Clone, Copy)]
enum What {
    Arrives(Packet),
    Returns(Packet),
    Sample(usize),
    Measure(usize),
    Write(usize),
    Timer(usize),
    Pace(usize),
}

struct Event {
    at: f64,
    order: u64,
    what: What,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.total_cmp(&self.at).then(other.order.cmp(&self.order))
    }
}

struct Link {
    spec: LinkSpec,
    bounds: Vec<f64>,
    /// Bytes a second.
    speed: f64,
    /// Packets that may wait.
    room: f64,
    /// When all that it has will have left.
    free: f64,
    arrived: f64,
    persistent: f64,
    digits: Vec<u8>,
    flags: Vec<Flag>,
    queue_sum: (f64, f64),
    seen: LinkSeen,
}

impl Link {
    fn waiting(&self, now: f64) -> f64 {
        (((self.free - now) * self.speed / PACKET - 1e-6).ceil() - 1.0).max(0.0)
    }

    /// MP algorithm 2, for chains of any length.
    fn mark(&mut self, packet: &mut Packet) {
        let place = usize::from(packet.place);
        let flag = &mut self.flags[packet.flow];
        if place == 0 {
            *flag = Flag::Equal;
        }
        let ours = self.digits[place];
        match flag {
            Flag::Low => packet.digit = ours,
            Flag::Equal if ours > packet.digit => {
                packet.digit = ours;
                *flag = Flag::Low;
            }
            Flag::Equal if ours < packet.digit || self.spec.equal == Equal::Printed => *flag = Flag::High,
            Flag::Equal | Flag::High => {}
        }
    }
}

/// A transmission that is neither acknowledged nor lost.
struct Out {
    number: u64,
    data: u64,
    sent: f64,
    in_chain: bool,
}

struct Flow {
    spec: FlowSpec,
    bounds: Vec<f64>,
    /// One way back, s.
    back: f64,
    cwnd: f64,
    srtt: Option<(f64, f64)>,
    rto_scale: f64,
    deadline: f64,
    has_timer: bool,
    /// How much there is to send, in packets.
    limit: u64,
    next_data: u64,
    next_transmission: u64,
    repeat: VecDeque<u64>,
    out: VecDeque<Out>,
    delivered: u64,
    /// No cut for a loss that was sent before this.
    recovered: u64,
    last_sent: f64,
    is_paced: bool,
    place: u8,
    // The load.
    known: Vec<u8>,
    last_place: Option<u8>,
    breaks: u32,
    /// The window before the cut that further digits of this chain may correct.
    before_cut: Option<f64>,
    hold_until: f64,
    linear_until: f64,
    // VCP's packets alone (MP 3.4).
    downgraded_until: f64,
    downgrades: u32,
    bytes: f64,
    completion: Option<f64>,
    told: (f64, f64, f64),
}

impl Flow {
    fn bound(&self) -> f64 {
        highest(&self.bounds, &self.known)
    }

    fn zone(&self) -> u8 {
        self.known[0]
    }

    fn rtt(&self) -> f64 {
        self.srtt.map_or(RTO_MIN, |(srtt, _)| srtt)
    }

    /// An echo of the load (MP 3.3, 3.4), then what it does to the window.
    fn hear(&mut self, now: f64, packet: Packet, in_chain: bool) {
        let is_single = self.spec.chain == 1 || now < self.downgraded_until;
        self.told.0 += (now - self.told.2) * self.bound();
        self.told.1 += now - self.told.2;
        self.told.2 = now;
        let mut continues = false;
        if is_single || !in_chain {
            if packet.place != 0 {
                return;
            }
            self.known = vec![packet.digit];
            self.last_place = None;
        } else {
            let expected = self.last_place.map_or(0, |last| (last + 1) % self.spec.chain as u8);
            let in_order = self.last_place.is_none() && packet.place == 0 || packet.place == expected;
            self.breaks = if in_order || self.last_place.is_none() { 0 } else { self.breaks + 1 };
            let repeated = self.last_place == Some(0) && packet.place == 0;
            self.last_place = Some(packet.place);
            if packet.place == 0 {
                // "uses the higher value in MSPs to construct the LF if receiving consecutive MSPs"
                let higher = if repeated { self.known[0].max(packet.digit) } else { packet.digit };
                self.known = vec![higher];
            } else if in_order && self.known.len() == usize::from(packet.place) {
                self.known.push(packet.digit);
                continues = true;
            } else {
                // "Otherwise, it ignores arriving LSPs, and uses a pairing of saved MSP and 11"
                self.known.truncate(1);
            }
            // "after receiving three consecutive MSPs/LSPs, DPCP downgrades to the original VCP"
            if self.breaks >= 2 {
                self.breaks = 0;
                self.last_place = None;
                self.downgrades += 1;
                self.downgraded_until =
                    if self.downgrades >= STRIKES { f64::INFINITY } else { now + RESUME * self.rtt() };
            }
        }
        self.react(now, is_single || now < self.downgraded_until, continues);
    }

    fn react(&mut self, now: f64, is_single: bool, continues: bool) {
        let bound = self.bound();
        if !continues {
            self.before_cut = None;
        }
        // "Once the sender gets a complete LF, DPCP does a finer adjustment based on the new value."
        if let Some(before) = self.before_cut {
            self.cwnd = (before * cut(self.spec.chain, bound)).max(1.0);
            return;
        }
        if now < self.hold_until {
            return;
        }
        let exponent = (self.rtt() / self.spec.interval).min(EXPONENT_MAX);
        let scale = self.rtt().min(self.spec.rtt_max) / self.spec.interval;
        let linear = self.spec.alpha * scale * scale / self.cwnd;
        // "After holding a decreased value of cwnd for a Round Trip Time (RTT), VCP applies the AI policy."
        if now < self.linear_until {
            self.cwnd += linear;
            return;
        }
        let geometric = |load: f64| libm::pow(1.0 + KAPPA * (1.0 - load) / load, exponent) - 1.0;
        match self.zone() {
            2 => {
                self.before_cut = Some(self.cwnd).filter(|_| !is_single);
                let factor = if is_single { VCP_CUT } else { cut(self.spec.chain, bound) };
                self.cwnd = (self.cwnd * factor).max(1.0);
                self.hold_until = now + self.spec.hold.unwrap_or(self.rtt());
                self.linear_until = self.hold_until + self.rtt();
            }
            zone if is_single => self.cwnd += if zone == 0 { geometric(0.8) } else { linear },
            // "grows the cwnd using both multiplicative and additive factors", "the upper bound of an LF"
            _ => self.cwnd += geometric(bound) + linear,
        }
    }
}

struct World {
    heap: BinaryHeap<Event>,
    order: u64,
    now: f64,
    links: Vec<Link>,
    flows: Vec<Flow>,
    goodput: BTreeMap<&'static str, Vec<f64>>,
    random: Random,
    complete: usize,
    warmup: f64,
    every: f64,
}

impl World {
    fn plan(&mut self, at: f64, what: What) {
        self.order += 1;
        self.heap.push(Event { at, order: self.order, what });
    }

    fn arrives(&mut self, mut packet: Packet) {
        let now = self.now;
        let path = &self.flows[packet.flow].spec.path;
        let index = path[packet.hop];
        let is_last = packet.hop + 1 == path.len();
        let back = self.flows[packet.flow].back;
        let is_datagram = matches!(self.flows[packet.flow].spec.source, Source::Datagrams { .. });
        let link = &mut self.links[index];
        link.arrived += PACKET;
        if link.waiting(now) >= link.room {
            link.seen.drops += 1;
            return;
        }
        link.mark(&mut packet);
        link.free = link.free.max(now) + PACKET / link.speed;
        let bin = (link.free / self.every) as usize;
        if let Some(bytes) = link.seen.sent.get_mut(bin) {
            *bytes += PACKET;
        }
        let mut at = link.free + link.spec.delay;
        if link.spec.loss > 0.0 && self.random.draw() < link.spec.loss {
            return;
        }
        if link.spec.late > 0.0 && self.random.draw() < link.spec.late {
            at += 0.001;
        }
        packet.hop += 1;
        if !is_last {
            self.plan(at, What::Arrives(packet));
        } else if !is_datagram {
            self.plan(at + back, What::Returns(packet));
        }
    }

    fn transmit(&mut self, index: usize) {
        loop {
            let now = self.now;
            let flow = &mut self.flows[index];
            if flow.out.len() as f64 >= flow.cwnd.floor() {
                break;
            }
            let gap = flow.rtt() / flow.cwnd;
            if gap > flow.spec.paced_above && flow.cwnd >= 2.0 && now + 1e-9 < flow.last_sent + gap {
                if !flow.is_paced {
                    flow.is_paced = true;
                    let at = flow.last_sent + gap;
                    self.plan(at, What::Pace(index));
                }
                break;
            }
            flow.last_sent = now;
            let data = match flow.repeat.pop_front() {
                Some(data) => data,
                None if flow.next_data < flow.limit => {
                    flow.next_data += 1;
                    flow.next_data - 1
                }
                None => break,
            };
            let in_chain = flow.spec.chain > 1 && now >= flow.downgraded_until;
            if !in_chain {
                flow.place = 0;
            }
            let place = flow.place;
            flow.place = (flow.place + 1) % flow.spec.chain as u8;
            let number = flow.next_transmission;
            flow.next_transmission += 1;
            if flow.out.is_empty() {
                flow.deadline = now + flow.rto();
            }
            flow.out.push_back(Out { number, data, sent: now, in_chain });
            let packet = Packet { flow: index, hop: 0, transmission: number, place, digit: 0 };
            self.arrives(packet);
        }
        let flow = &mut self.flows[index];
        if !flow.out.is_empty() && !flow.has_timer {
            flow.has_timer = true;
            let at = flow.deadline;
            self.plan(at, What::Timer(index));
        }
    }

    fn returns(&mut self, packet: Packet) {
        let now = self.now;
        let every = self.every;
        let flow = &mut self.flows[packet.flow];
        // Of a packet that was taken for lost only the data count.
        let Some(place) = flow.out.iter().position(|out| out.number == packet.transmission) else { return };
        let out = flow.out.remove(place).expect("it is there");
        let sample = now - out.sent;
        flow.srtt = Some(match flow.srtt {
            None => (sample, sample / 2.0),
            Some((srtt, var)) => (srtt + (sample - srtt) / 8.0, var + ((sample - srtt).abs() - var) / 4.0),
        });
        flow.rto_scale = 1.0;
        flow.deadline = now + flow.rto();
        flow.delivered += 1;
        let group = flow.spec.group;
        if now >= self.warmup {
            flow.bytes += PACKET;
        }
        if let Source::Window { packets: Some(all) } = flow.spec.source
            && flow.delivered == all
        {
            flow.completion = Some(now - flow.spec.start);
            self.complete += 1;
        }
        // Three later ones came: it is lost, and one loss in a round trip halves the window.
        while flow.out.front().is_some_and(|first| first.number + 3 <= packet.transmission) {
            let lost = flow.out.pop_front().expect("it is there");
            flow.repeat.push_back(lost.data);
            if lost.number >= flow.recovered {
                flow.cwnd = (flow.cwnd / 2.0).max(1.0);
                flow.recovered = flow.next_transmission;
            }
        }
        flow.hear(now, packet, out.in_chain);
        let bins = self.goodput.get_mut(group).expect("all groups have bins");
        if let Some(bytes) = bins.get_mut((now / every) as usize) {
            *bytes += PACKET;
        }
        self.transmit(packet.flow);
    }

    fn timer(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        flow.has_timer = false;
        if flow.out.is_empty() {
            return;
        }
        if now + 1e-9 < flow.deadline {
            flow.has_timer = true;
            let at = flow.deadline;
            self.plan(at, What::Timer(index));
            return;
        }
        let lost: Vec<u64> = flow.out.drain(..).map(|out| out.data).collect();
        for data in lost.into_iter().rev() {
            flow.repeat.push_front(data);
        }
        flow.cwnd = 1.0;
        flow.recovered = flow.next_transmission;
        flow.rto_scale = (flow.rto_scale * 2.0).min(64.0);
        self.transmit(index);
    }

    fn sample(&mut self, index: usize) {
        let now = self.now;
        let link = &mut self.links[index];
        let waiting = link.waiting(now);
        link.persistent += (waiting - link.persistent) / 8.0;
        if now >= self.warmup {
            link.queue_sum.0 += waiting;
            link.queue_sum.1 += 1.0;
        }
        if link.seen.queue.len() < (now / self.every + 1e-6) as usize {
            link.seen.queue.push(waiting);
        }
        self.plan(now + SAMPLE, What::Sample(index));
    }

    /// VCP: (lambda + kappa_q q) / (gamma C t_rho).
    fn measure(&mut self, index: usize) {
        let now = self.now;
        let link = &mut self.links[index];
        let interval = link.spec.interval;
        let load = (link.arrived + KAPPA_Q * link.persistent * PACKET) / (GAMMA * link.speed * interval);
        link.arrived = 0.0;
        link.digits = digits(&link.bounds, load);
        link.seen.loads.push((now, load));
        self.plan(now + interval, What::Measure(index));
    }
}

impl Flow {
    fn rto(&self) -> f64 {
        let base = self.srtt.map_or(3.0, |(srtt, var)| (srtt + 4.0 * var).max(RTO_MIN));
        base * self.rto_scale
    }
}

pub(crate) fn run(run: Run) -> Seen {
    let bins = (run.duration / run.every).round() as usize;
    let count = run.flows.len();
    let back = |flow: &FlowSpec| flow.path.iter().map(|link| run.links[*link].delay).sum::<f64>();
    let mut random = Random(run.seed);
    let links = run.links.iter().enumerate().map(|(index, spec)| {
        let crossing = run.flows.iter().filter(|flow| flow.path.contains(&index));
        let longest = crossing.map(|flow| 2.0 * back(flow)).fold(0.0, f64::max);
        let bounds = bounds(spec.chain);
        Link {
            digits: digits(&bounds, 0.0),
            bounds,
            speed: spec.rate / 8.0,
            room: (spec.rate / 8.0 * longest / PACKET).ceil().max(1.0),
            free: 0.0,
            arrived: 0.0,
            persistent: 0.0,
            flags: vec![Flag::High; count],
            queue_sum: (0.0, 0.0),
            seen: LinkSeen { sent: vec![0.0; bins], ..LinkSeen::default() },
            spec: spec.clone(),
        }
    });
    let flows = run.flows.iter().map(|spec| Flow {
        bounds: bounds(spec.chain),
        back: back(spec),
        cwnd: 1.0,
        srtt: None,
        rto_scale: 1.0,
        deadline: f64::INFINITY,
        has_timer: false,
        limit: match spec.source {
            Source::Window { packets } => packets.unwrap_or(u64::MAX),
            Source::Written { .. } | Source::Datagrams { .. } => 0,
        },
        next_data: 0,
        next_transmission: 0,
        repeat: VecDeque::new(),
        out: VecDeque::new(),
        delivered: 0,
        recovered: 0,
        last_sent: f64::NEG_INFINITY,
        is_paced: false,
        place: 0,
        known: vec![0; spec.chain],
        last_place: None,
        breaks: 0,
        before_cut: None,
        hold_until: 0.0,
        linear_until: 0.0,
        downgraded_until: 0.0,
        downgrades: 0,
        bytes: 0.0,
        completion: None,
        told: (0.0, 0.0, 0.0),
        spec: spec.clone(),
    });
    let mut world = World {
        heap: BinaryHeap::new(),
        order: 0,
        now: 0.0,
        links: links.collect(),
        flows: flows.collect(),
        goodput: run.flows.iter().map(|flow| (flow.group, vec![0.0; bins])).collect(),
        random: Random(0),
        complete: 0,
        warmup: run.warmup,
        every: run.every,
    };
    for index in 0..run.links.len() {
        world.plan(SAMPLE, What::Sample(index));
        // Nothing says when a router begins.
        let first = run.links[index].interval * random.draw();
        world.plan(first, What::Measure(index));
    }
    world.random = random;
    for (index, flow) in run.flows.iter().enumerate() {
        world.plan(flow.start, What::Write(index));
    }
    let files =
        run.flows.iter().filter(|flow| matches!(flow.source, Source::Window { packets: Some(_) })).count();
    while let Some(event) = world.heap.pop() {
        if event.at > run.duration + 1e-9 || files > 0 && world.complete == files {
            break;
        }
        world.now = event.at;
        match event.what {
            What::Arrives(packet) => world.arrives(packet),
            What::Returns(packet) => world.returns(packet),
            What::Sample(link) => world.sample(link),
            What::Measure(link) => world.measure(link),
            What::Timer(flow) => world.timer(flow),
            What::Pace(flow) => {
                world.flows[flow].is_paced = false;
                world.transmit(flow);
            }
            What::Write(index) => {
                let rate = match world.flows[index].spec.source {
                    Source::Window { .. } => None,
                    Source::Written { rate } => {
                        world.flows[index].limit += 1;
                        Some(rate)
                    }
                    Source::Datagrams { rate } => {
                        let packet = Packet { flow: index, hop: 0, transmission: 0, place: 0, digit: 0 };
                        world.arrives(packet);
                        Some(rate)
                    }
                };
                if let Some(rate) = rate {
                    world.plan(event.at + PACKET * 8.0 / rate, What::Write(index));
                }
                world.transmit(index);
            }
        }
    }
    let links = world.links.into_iter().map(|mut link| {
        link.seen.queue_mean = link.queue_sum.0 / link.queue_sum.1;
        link.seen
    });
    Seen {
        links: links.collect(),
        goodput: world.goodput,
        bytes: world.flows.iter().map(|flow| flow.bytes).collect(),
        completion: world.flows.iter().map(|flow| flow.completion).collect(),
        told: world.flows.iter().map(|flow| flow.told.0 / flow.told.1).collect(),
        every: run.every,
        warmup: run.warmup,
    }
}

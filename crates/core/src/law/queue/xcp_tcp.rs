//! Two classes of traffic on one port: packets with an XCP header, and all others.
//!
//! XCP's packets wait in a drop-tail queue of their own, everything else (TCP, datagrams, ACKs) in
//! one with RED, and the two are served byte by byte in proportion to their weights (NS2, `XCPQ` and
//! its RED queue; K02 §8.2). Where only one has something to send, the link is its own; but XCP's law is
//! told its weight's part of the capacity whether the other class is there or not (NS2), and sees its own
//! class only.
//!
//! With [`Dynamic`] weights the mean windows of both are compared at every control interval and the
//! larger gives way to the smaller (K02 §8.2): XCP's is what its headers state, TCP's is what its
//! queue's losses allow (K02 eq. 10). Windows say something of rates at equal round trip times only, and
//! TCP's includes RED's standing queue: each is divided by its own before they are compared.
//!
//! TCP's window is what a formula for Reno says, which holds for no other congestion control. With [`Follow::Flows`] the
//! weights are as the numbers of flows instead, whatever these do: a census counts them, in both classes alike, so that no header is
//! believed and what it errs by is in both. RED's average then falls while its class has nothing waiting, as on an idle link (F93
//! §4): one that XCP keeps busy is never idle, and RED would drop for seconds what comes after a long queue.

use super::{
    Arrival, Departure, Draws, Limit, QueueLaw, QueueSeries, Queues, Reason, Value, Verdict, census, red,
};
use crate::law::{Column, Packet, xcp};
use crate::units::{Bytes, Duration, Rate, Ratio, Time};

/// The queue of all packets but XCP's.
const TCP: usize = 0;
/// XCP's queue.
const XCP: usize = 1;

/// Settings of the two classes in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// XCP's part of the link, between 0 and 1; the other class has the rest. With dynamic weights the
    /// one that they begin with.
    pub weight: Ratio,
    /// Limit of XCP's queue. The other's limit is that of the port.
    pub limit: Limit,
    /// Settings of RED in the other queue.
    pub red: red::Config,
    /// Rule by which the weights follow the traffic; `None`: they stay.
    pub dynamic: Option<Dynamic>,
}

/// Weights that follow the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dynamic {
    /// Measure that the weights follow; windows (K02 §8.2).
    pub follow: Follow,
    /// kappa, the gain of windows, above 0 and below 1 (K02 §8.2); 0.1.
    pub kappa: Ratio,
    /// Lower bound of both weights; 0.05.
    pub min: Ratio,
    /// Upper bound of both weights; 0.95.
    pub max: Ratio,
}

impl Dynamic {
    /// Weights that follow flows, with the bounds of a scenario that tells none.
    pub const FLOWS: Self = Self {
        follow: Follow::Flows,
        kappa: Ratio::ppm(100_000),
        min: Ratio::ppm(50_000),
        max: Ratio::ppm(950_000),
    };

    /// Returns XCP's next weight where flows want this part: half of the way, so that the noise of a census is halved.
    pub fn towards(&self, weight: Ratio, wanted: Ratio) -> Ratio {
        let next = ((u64::from(weight.0) + u64::from(wanted.0)) / 2) as u32;
        Ratio(next.clamp(self.min.0, self.max.0))
    }
}

/// Measure that weights follow which do not stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// The mean windows that XCP's headers state and that TCP's losses allow (K02 §8.2).
    Windows,
    /// The numbers of flows.
    Flows,
}

/// State of the classes at an instant, and their counts since the sample before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// XCP's part of the link.
    pub weight: Ratio,
    /// XCP's packets waiting.
    pub xcp_packets: u64,
    /// Packets of the other class waiting.
    pub tcp_packets: u64,
    /// Bytes of XCP's packets whose transmission began since the sample before.
    pub xcp_bytes: u64,
    /// Bytes of the other class whose transmission began since the sample before.
    pub tcp_bytes: u64,
    /// XCP's packets dropped since the sample before.
    pub xcp_drops: u64,
    /// Packets of the other class dropped since the sample before.
    pub tcp_drops: u64,
}

impl QueueSeries for Sample {
    fn each(&self, tell: &mut impl FnMut(&'static str, Value)) {
        let count = |value: u64| Value::Number(i64::try_from(value).unwrap_or(i64::MAX), 1);
        tell("xcp_weight", Value::Number(self.weight.0.into(), Ratio::ONE.0));
        tell("xcp_throughput_bps", Value::Data(Bytes(self.xcp_bytes)));
        tell("tcp_throughput_bps", Value::Data(Bytes(self.tcp_bytes)));
        tell("xcp_queue_packets", count(self.xcp_packets));
        tell("tcp_queue_packets", count(self.tcp_packets));
        tell("xcp_drops", count(self.xcp_drops));
        tell("tcp_drops", count(self.tcp_drops));
    }
}

/// Losses that the mean distance of two is taken over, about: as many as TFRC's (RFC 5348 §5.4).
const LOSSES: i128 = 8;

/// Binary places of loss rates and of the mean distance between losses.
pub const LOSS_PLACES: u32 = 60;
/// Binary places of windows and rates, in packets and packets per second.
pub const WINDOW_PLACES: u32 = 32;
/// Binary places of times, in seconds.
const TIME_PLACES: u32 = 50;
/// Binary places of a second in the unit of X and RTT (draft-03 §3.2).
const HEADER_PLACES: u32 = 28;

/// Returns the square root of a number with [`LOSS_PLACES`], which the root has too.
fn root(number: u128) -> u128 {
    (number << LOSS_PLACES).isqrt()
}

/// Returns the mean window of TCP flows that lose this part of their packets (K02 eq. 10), in packets with
/// [`WINDOW_PLACES`]; the part has [`LOSS_PLACES`]. `None`: nothing limits it. The formula is used up to a tenth: its second
/// term has no bound, where TFRC's has 1 (docs/design/protocols.md 13.5).
pub fn tcp_window(loss_rate: u64) -> Option<u128> {
    const ONE: u128 = 1 << LOSS_PLACES;
    let p = u128::from(loss_rate).min(ONE / 10);
    let timeouts = (12 * p * root(3 * p / 8)) >> LOSS_PLACES;
    let timeouts = (timeouts * (ONE + 32 * ((p * p) >> LOSS_PLACES))) >> LOSS_PLACES;
    (ONE << WINDOW_PLACES).checked_div(root(2 * p / 3) + timeouts)
}

/// Returns XCP's next weight, from the mean windows (or rates) of a flow of both classes (K02 §8.2), in any one unit. The
/// larger gives way; `None`: nothing limits TCP.
pub fn next_weight(weight: Ratio, dynamic: &Dynamic, xcp: u128, tcp: Option<u128>) -> Ratio {
    let kappa = u128::from(dynamic.kappa.0);
    let (step, is_larger) = match tcp {
        None => (kappa, false),
        Some(tcp) => {
            // Below 2^94, so that products with kappa stay within 128 bits.
            let places = (xcp | tcp).checked_ilog2().unwrap_or(0).saturating_sub(93);
            let (xcp, tcp) = (xcp >> places, tcp >> places);
            let sum = (xcp + tcp).max(1);
            ((2 * kappa * xcp.abs_diff(tcp) + sum) / (2 * sum), xcp > tcp)
        }
    };
    let (weight, step) = (i64::from(weight.0), step as i64);
    let next = if is_larger { weight - step } else { weight + step };
    Ratio(next.clamp(dynamic.min.0.into(), dynamic.max.0.into()) as u32)
}

/// `numerator / denominator` with so many binary places, saturating.
fn quotient(numerator: u128, denominator: u128, places: u32) -> u128 {
    let denominator = denominator.max(1);
    let (whole, rest) = (numerator / denominator, numerator % denominator);
    // The rest is below the denominator: what does not fit above is taken off below.
    let up = rest.leading_zeros().min(places);
    let fraction = (rest << up) / (denominator >> (places - up)).max(1);
    if whole.leading_zeros() < places { u128::MAX } else { (whole << places).saturating_add(fraction) }
}

/// Distances between the losses of a class.
#[derive(Clone, Debug, Default)]
struct Losses {
    /// Packets from one to the next, on average, with [`LOSS_PLACES`]; `None` before the first.
    mean: Option<i128>,
    /// Packets since the last.
    since: u64,
}

impl Losses {
    fn since(&self) -> i128 {
        i128::from(self.since) << LOSS_PLACES
    }

    fn arrive(&mut self, is_lost: bool) {
        self.since = self.since.saturating_add(1);
        if is_lost {
            let distance = self.since();
            self.mean = Some(self.mean.map_or(distance, |mean| mean + (distance - mean) / LOSSES));
            self.since = 0;
        }
    }

    /// The part of the packets that is lost, with [`LOSS_PLACES`]. The time without loss counts as soon as it is longer
    /// than usual (RFC 5348 §5.4).
    fn rate(&self) -> u64 {
        let open = self.since();
        let mean = self.mean.map_or(open, |mean| mean + (open - mean).max(0) / LOSSES);
        // At most 1.
        ((1u128 << (2 * LOSS_PLACES)) / mean.max(1 << LOSS_PLACES).unsigned_abs()) as u64
    }
}

/// Measurements of a control interval.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// XCP packets that state a round trip time; X and the round trip times, 2^-28 s.
    stated: u64,
    x: u64,
    rtt: u64,
    /// Arrivals of a class, and the bytes that each found waiting in its queue.
    arrivals: [u64; 2],
    backlog: [u64; 2],
}

impl Seen {
    fn arrive(&mut self, queue: usize, found: Bytes) {
        self.arrivals[queue] += 1;
        self.backlog[queue] = self.backlog[queue].saturating_add(found.0);
    }

    /// How long a packet of a class waits that has this part of the capacity, seconds with [`TIME_PLACES`].
    fn wait(&self, queue: usize, part: Ratio, capacity: Rate) -> u128 {
        let one = u128::from(Ratio::ONE.0);
        let rate = (u128::from(capacity.0) * u128::from(part.0)).max(one);
        let arrivals = u128::from(self.arrivals[queue].max(1));
        quotient(u128::from(self.backlog[queue]) * one, rate.saturating_mul(arrivals), TIME_PLACES)
    }
}

/// Time that flows are counted for: many round trips, and short beside the 10 s in which the weights have to follow.
pub const CENSUS: Duration = Duration(1_000_000_000);
/// Part of a class's use that it may have more, where nothing here limits it.
const ROOM: u64 = 4;

/// Use that the other class makes of its part while a census goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Use {
    /// Bytes of the class.
    pub bytes: u64,
    /// Bytes that its arrivals found waiting above a packet each.
    pub excess: i64,
    /// True if it lost a packet or was marked.
    pub is_told: bool,
}

impl Use {
    /// The rate of a class that leaves no packet waiting and loses none: it wants no more than it has.
    fn free(&self, span: Duration) -> Option<Rate> {
        let is_free = !self.is_told && self.excess <= 0;
        is_free.then(|| Bytes(self.bytes).per(span))
    }

    /// Returns XCP's part of the link after a census of this length, from the numbers of flows, of the other class and of XCP's,
    /// in any one unit; `None`: there are none.
    pub fn part(&self, flows: [u64; 2], span: Duration, capacity: Rate) -> Option<Ratio> {
        part(flows, self.free(span), capacity)
    }
}

/// Returns XCP's part of the link by numbers of flows, of the other class and of XCP's, in any one unit; `None`: there are none. A
/// class that is limited elsewhere, at this rate, keeps what it uses and a quarter more, in which it can grow.
fn part(flows: [u64; 2], free: Option<Rate>, capacity: Rate) -> Option<Ratio> {
    let one = u128::from(Ratio::ONE.0);
    let [tcp, xcp] = flows.map(u128::from);
    let by_flows = (one * xcp).checked_div(tcp + xcp)?;
    let kept = free.map_or(one, |Rate(used)| {
        let kept = one * u128::from(used.saturating_add(used / ROOM));
        kept.checked_div(capacity.0.into()).unwrap_or(one).min(one)
    });
    Some(Ratio(by_flows.max(one - kept) as u32))
}

fn follows_flows(dynamic: Option<Dynamic>) -> bool {
    dynamic.is_some_and(|dynamic| dynamic.follow == Follow::Flows)
}

/// RED of one class, and whose turn it is.
#[derive(Clone, Debug)]
pub struct XcpTcp {
    red: red::Red,
    dynamic: Option<Dynamic>,
    packet_size: u16,
    weight: Ratio,
    /// By how much XCP is ahead, in bytes weighted by the other's millionths. While both wait, never
    /// beyond a packet of either.
    lead: i64,
    losses: Losses,
    /// The census that goes on, if weights follow it, and XCP's part by the last one, which the next control interval takes.
    counting: Option<(Time, Use)>,
    wanted: Option<Ratio>,
    /// When the other class's last packet left, if weights follow flows; `None`: some wait.
    idle_since: Option<Time>,
    /// Capacity at the last control interval.
    capacity: Rate,
    /// Measurements since the last control interval.
    seen: Seen,
    /// Counts since the last sample.
    sample: Sample,
}

impl XcpTcp {
    /// Counts an arrival in the census, if weights follow it, and ends a census that has gone on for long enough.
    fn count(
        &mut self,
        arrival: &Arrival<'_, impl Packet>,
        found: Bytes,
        verdict: Verdict,
        queues: &mut impl Queues,
    ) {
        if !follows_flows(self.dynamic) {
            return;
        }
        let Arrival { now, queue, flow, packet, .. } = *arrival;
        let (since, used) = self.counting.get_or_insert((now, Use::default()));
        if now - *since >= CENSUS {
            let flows = [TCP, XCP].map(|class| census::take(queues, Self::cells(class)));
            self.wanted = used.part(flows, now - *since, self.capacity);
            (*since, *used) = (now, Use::default());
        }
        let is_dropped = matches!(verdict, Verdict::Drop(_));
        if !is_dropped {
            census::note(queues, Self::cells(queue), flow, packet.size());
        }
        if queue == TCP {
            let above = i64::try_from(found.0).unwrap_or(i64::MAX) - i64::from(self.packet_size);
            used.excess = used.excess.saturating_add(above);
            used.is_told |= verdict != Verdict::Pass;
            used.bytes = used.bytes.saturating_add(if is_dropped { 0 } else { packet.size().0 });
        }
    }

    /// Returns the bytes that the other class's part of the link could have carried in this time.
    fn unused(&self, span: Duration) -> Bytes {
        Rate(Ratio(Ratio::ONE.0 - self.weight.0).of(self.capacity.0)).over(span)
    }

    /// The first record of a class's census, behind those of the queues.
    fn cells(class: usize) -> usize {
        2 + class * census::RECORDS
    }
}

impl QueueLaw for XcpTcp {
    type Config = Config;
    type Sample = Sample;

    const SERIES: &'static [Column] = &[
        Column::new("xcp_weight", "XCP's part of the link"),
        Column::new("xcp_throughput_bps", "Throughput of XCP's class"),
        Column::new("tcp_throughput_bps", "Throughput of the other class"),
        Column::new("xcp_queue_packets", "Queue of XCP's class"),
        Column::new("tcp_queue_packets", "Queue of the other class"),
        Column::new("xcp_drops", "Drops of XCP's class within a bin"),
        Column::new("tcp_drops", "Drops of the other class within a bin"),
    ];

    fn start(config: &Config) -> Self {
        Self {
            red: red::Red::start(&config.red),
            dynamic: config.dynamic,
            packet_size: config.red.packet_size,
            weight: config.weight,
            lead: 0,
            losses: Losses::default(),
            counting: None,
            wanted: None,
            idle_since: None,
            capacity: Rate(0),
            seen: Seen::default(),
            sample: Sample::default(),
        }
    }

    fn queues(_config: &Config) -> usize {
        2
    }

    fn records(config: &Config) -> usize {
        Self::queues(config) + if follows_flows(config.dynamic) { 2 * census::RECORDS } else { 0 }
    }

    fn marks(config: &Config) -> bool {
        config.red.ecn
    }

    fn limit(config: &Config, queue: usize, port: Limit) -> Limit {
        if queue == XCP { config.limit } else { port }
    }

    #[inline]
    fn of_link_law(&self) -> Option<usize> {
        Some(XCP)
    }

    fn share(&self, capacity: Rate) -> Rate {
        Rate(self.weight.of(capacity.0))
    }

    fn on_interval(&mut self, capacity: Rate) -> bool {
        let seen = core::mem::take(&mut self.seen);
        let Some(dynamic) = &self.dynamic else { return false };
        if dynamic.follow == Follow::Flows {
            self.capacity = capacity;
            let Some(wanted) = self.wanted.take() else { return false };
            let next = dynamic.towards(self.weight, wanted);
            return core::mem::replace(&mut self.weight, next) != next;
        }
        if seen.x == 0 {
            return false;
        }
        let round_trip = quotient(seen.rtt.into(), seen.stated.into(), TIME_PLACES - HEADER_PLACES);
        // Each packet stands for X of its flow's time, so the mean over flows of RTT / X is the sum of RTT by that of X: y d /
        // (N size) of docs/design/protocols.md 13.5 where round trip times are equal. By the round trip it is a rate.
        let xcp_rate = quotient(seen.stated.into(), seen.x.into(), WINDOW_PLACES + HEADER_PLACES);
        let xcp_wait = seen.wait(XCP, self.weight, capacity).min(round_trip);
        let tcp_wait = seen.wait(TCP, Ratio(Ratio::ONE.0 - self.weight.0), capacity);
        let tcp_round_trip = (round_trip - xcp_wait).saturating_add(tcp_wait);
        // Losses of long ago limit nobody: flows that leave no packet waiting want less than they have.
        let is_tcp_limited = seen.backlog[TCP] > seen.arrivals[TCP].saturating_mul(self.packet_size.into());
        let tcp_window = if is_tcp_limited { tcp_window(self.losses.rate()) } else { None };
        let tcp_rate = tcp_window
            .filter(|_| tcp_round_trip > 0)
            .map(|window| quotient(window, tcp_round_trip, TIME_PLACES));
        let next = next_weight(self.weight, dynamic, xcp_rate, tcp_rate);
        core::mem::replace(&mut self.weight, next) != next
    }

    #[inline]
    fn classify(&self, packet: &impl Packet, _flow: u32) -> usize {
        if packet.header::<xcp::Header>().is_some() { XCP } else { TCP }
    }

    fn on_enqueue(
        &mut self,
        arrival: &Arrival<'_, impl Packet>,
        queues: &mut impl Queues,
        draws: &mut impl Draws,
    ) -> Verdict {
        let found = queues.bytes(arrival.queue);
        if arrival.queue == XCP {
            let header: xcp::Header = arrival.packet.header().unwrap_or_default();
            if header.x != 0 && header.rtt != 0 {
                self.seen.stated += 1;
                self.seen.x = self.seen.x.saturating_add(header.x.into());
                self.seen.rtt = self.seen.rtt.saturating_add(header.rtt.into());
            }
            self.seen.arrive(XCP, found);
            let has_room = queues.has_room(XCP, arrival.packet.size());
            let verdict = if has_room { Verdict::Pass } else { Verdict::Drop(Reason::XcpQueueFull) };
            self.count(arrival, found, verdict, queues);
            return verdict;
        }
        let own = self.idle_since.filter(|_| found.0 == 0).map(|since| self.unused(arrival.now - since));
        let verdict = self.red.meet(arrival, queues, own.max(queues.unused()), draws);
        // Time that RED has heard of is over.
        self.idle_since =
            self.idle_since.filter(|_| matches!(verdict, Verdict::Drop(_))).map(|_| arrival.now);
        self.seen.arrive(TCP, found);
        self.count(arrival, found, verdict, queues);
        // A mark is a loss to TCP.
        self.losses.arrive(verdict != Verdict::Pass);
        verdict
    }

    #[inline]
    fn next(&mut self, queues: &mut impl Queues) -> usize {
        let is_xcp = queues.packets(XCP) > 0 && (queues.packets(TCP) == 0 || self.lead <= 0);
        if is_xcp { XCP } else { TCP }
    }

    fn on_dequeue(
        &mut self,
        departure: &Departure<'_, impl Packet>,
        queues: &mut impl Queues,
        _draws: &mut impl Draws,
    ) -> Verdict {
        let size = departure.packet.size().0;
        let (sent, step, other) = if departure.queue == XCP {
            (&mut self.sample.xcp_bytes, i64::from(Ratio::ONE.0 - self.weight.0), TCP)
        } else {
            (&mut self.sample.tcp_bytes, -i64::from(self.weight.0), XCP)
        };
        *sent = sent.saturating_add(size);
        if departure.queue == TCP && queues.packets(TCP) == 0 && follows_flows(self.dynamic) {
            self.idle_since = Some(departure.now);
        }
        // What a class sends while it is alone is not held against it.
        if queues.packets(other) > 0 {
            self.lead = self.lead.saturating_add((size as i64).saturating_mul(step));
        }
        Verdict::Pass
    }

    fn on_drop(&mut self, queue: usize, _reason: Reason, _queues: &mut impl Queues) {
        *(if queue == XCP { &mut self.sample.xcp_drops } else { &mut self.sample.tcp_drops }) += 1;
    }

    fn sample(&mut self, queues: &impl Queues) -> Sample {
        Sample {
            weight: self.weight,
            xcp_packets: queues.packets(XCP),
            tcp_packets: queues.packets(TCP),
            ..core::mem::take(&mut self.sample)
        }
    }
}

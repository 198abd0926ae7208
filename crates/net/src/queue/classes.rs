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

use super::{Fifo, Limit, red};
use crate::packet::Packet;
use congestlab_core::law::{Header as _, xcp};
use congestlab_core::units::{Rate, Ratio};

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
    /// kappa, the gain, above 0 and below 1 (K02 §8.2); 0.1.
    pub kappa: Ratio,
    /// Lower bound of both weights; 0.05.
    pub min: Ratio,
    /// Upper bound of both weights; 0.95.
    pub max: Ratio,
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

/// Losses that the mean distance of two is taken over, about: as many as TFRC's (RFC 5348 §5.4).
const LOSSES: f64 = 8.0;
/// The formula of TCP's window is used up to this loss rate: its second term has no bound, where
/// TFRC's has 1 (docs/design/protocols.md 13.5).
const LOSS_RATE_MAX: f64 = 0.1;

/// A second in the unit of X and RTT (draft-03 §3.2).
const HEADER_SECOND: f64 = (1u64 << 28) as f64;

/// Returns the mean window, in packets, of TCP flows that lose this part of their packets (K02 eq. 10).
pub fn tcp_window(loss_rate: f64) -> f64 {
    let p = loss_rate.min(LOSS_RATE_MAX);
    let timeouts = 12.0 * p * libm::sqrt(3.0 * p / 8.0) * (1.0 + 32.0 * p * p);
    1.0 / (libm::sqrt(2.0 * p / 3.0) + timeouts)
}

/// Returns XCP's next weight, from the mean windows (or rates) of a flow of both classes (K02 §8.2). The larger
/// gives way.
pub fn next_weight(weight: Ratio, dynamic: &Dynamic, xcp: f64, tcp: f64) -> Ratio {
    // The limit of the quotient for a TCP that nothing limits.
    let lead = if tcp == f64::INFINITY { -1.0 } else { (xcp - tcp) / (xcp + tcp) };
    let step = libm::round(f64::from(dynamic.kappa.0) * lead) as i64;
    let next = i64::from(weight.0) - step;
    Ratio(next.clamp(dynamic.min.0.into(), dynamic.max.0.into()) as u32)
}

/// Distances between the losses of a class.
#[derive(Clone, Debug, Default)]
struct Losses {
    /// Packets from one to the next, on average; `None` before the first.
    mean: Option<f64>,
    /// Packets since the last.
    since: u64,
}

impl Losses {
    fn arrive(&mut self, is_lost: bool) {
        self.since += 1;
        if is_lost {
            let distance = self.since as f64;
            self.mean = Some(self.mean.map_or(distance, |mean| mean + (distance - mean) / LOSSES));
            self.since = 0;
        }
    }

    /// The part of the packets that is lost. The time without loss counts as soon as it is longer
    /// than usual (RFC 5348 §5.4).
    fn rate(&self) -> f64 {
        let open = self.since as f64;
        let mean = self.mean.map_or(open, |mean| mean + (open - mean).max(0.0) / LOSSES);
        1.0 / mean.max(1.0)
    }
}

/// Measurements of a control interval.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// XCP packets that state a round trip time; X and the round trip times, 2^-28 s.
    stated: u64,
    x: u64,
    rtt: u64,
    /// Arrivals of XCP and of the rest, and the bytes that each found waiting in its queue.
    arrivals: [u64; 2],
    backlog: [u64; 2],
}

impl Seen {
    fn arrive(&mut self, class: usize, queue: &Fifo) {
        self.arrivals[class] += 1;
        self.backlog[class] = self.backlog[class].saturating_add(queue.bytes());
    }

    /// How long a packet of a class waits that has this part of the capacity, seconds.
    fn wait(&self, class: usize, part: Ratio, capacity: Rate) -> f64 {
        let backlog = self.backlog[class] as f64 / self.arrivals[class].max(1) as f64;
        backlog / (capacity.0 as f64 * f64::from(part.0) / 1e6).max(1.0)
    }
}

/// XCP's queue beside the port's, and whose turn it is.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    dynamic: Option<Dynamic>,
    packet_size: u16,
    pub(crate) xcp: Fifo,
    weight: Ratio,
    /// By how much XCP is ahead, in bytes weighted by the other's millionths. While both wait, never
    /// beyond a packet of either.
    lead: i64,
    losses: Losses,
    /// Measurements since the last control interval.
    seen: Seen,
    /// Counts since the last sample.
    sample: Sample,
}

impl Classes {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            dynamic: config.dynamic,
            packet_size: config.red.packet_size,
            xcp: Fifo::new(config.limit),
            weight: config.weight,
            lead: 0,
            losses: Losses::default(),
            seen: Seen::default(),
            sample: Sample::default(),
        }
    }

    /// Returns XCP's part of the port's capacity.
    pub(crate) fn capacity(&self, whole: Rate) -> Rate {
        Rate(self.weight.of(whole.0))
    }

    /// An XCP packet arrives.
    pub(crate) fn note_xcp(&mut self, packet: &Packet) {
        let header: xcp::Header = packet.header().unwrap_or_default();
        if header.x != 0 && header.rtt != 0 {
            self.seen.stated += 1;
            self.seen.x = self.seen.x.saturating_add(header.x.into());
            self.seen.rtt = self.seen.rtt.saturating_add(header.rtt.into());
        }
        self.seen.arrive(0, &self.xcp);
    }

    /// Another packet arrives at the other queue; a mark is a loss to TCP.
    pub(crate) fn note_tcp(&mut self, tcp: &Fifo, is_lost: bool) {
        self.seen.arrive(1, tcp);
        self.losses.arrive(is_lost);
    }

    pub(crate) fn note_drop(&mut self, packet: &Packet) {
        if packet.has(xcp::Header::TAG) {
            self.sample.xcp_drops += 1;
        } else {
            self.sample.tcp_drops += 1;
        }
    }

    /// Returns true if it is XCP's turn, `tcp` being the other queue.
    pub(crate) fn is_xcp_next(&self, tcp: &Fifo) -> bool {
        !self.xcp.is_empty() && (tcp.is_empty() || self.lead <= 0)
    }

    /// A packet goes out; `tcp` is what remains in the other queue.
    pub(crate) fn note_sent(&mut self, packet: &Packet, tcp: &Fifo) {
        let size = u64::from(packet.size);
        let (sent, step, is_contested) = if packet.has(xcp::Header::TAG) {
            (&mut self.sample.xcp_bytes, i64::from(Ratio::ONE.0 - self.weight.0), !tcp.is_empty())
        } else {
            (&mut self.sample.tcp_bytes, -i64::from(self.weight.0), !self.xcp.is_empty())
        };
        *sent += size;
        // What a class sends while it is alone is not held against it.
        if is_contested {
            self.lead += size as i64 * step;
        }
    }

    /// A control interval of a port of this capacity is over; true if the weights changed.
    pub(crate) fn close_interval(&mut self, capacity: Rate) -> bool {
        let seen = core::mem::take(&mut self.seen);
        let Some(dynamic) = &self.dynamic else { return false };
        if seen.x == 0 {
            return false;
        }
        // Each packet stands for X of its flow's time, so this is the mean over flows of RTT / X: y d /
        // (N size) of docs/design/protocols.md 13.5 where round trip times are equal.
        let xcp_window = seen.rtt as f64 / seen.x as f64;
        let round_trip = seen.rtt as f64 / seen.stated as f64 / HEADER_SECOND;
        let xcp_wait = seen.wait(0, self.weight, capacity).min(round_trip);
        let tcp_wait = seen.wait(1, Ratio(Ratio::ONE.0 - self.weight.0), capacity);
        let tcp_round_trip = round_trip - xcp_wait + tcp_wait;
        // Losses of long ago limit nobody: flows that leave no packet waiting want less than they have.
        let is_tcp_limited = seen.backlog[1] > seen.arrivals[1].saturating_mul(self.packet_size.into());
        let tcp_window = if is_tcp_limited { tcp_window(self.losses.rate()) } else { f64::INFINITY };
        let next = next_weight(self.weight, dynamic, xcp_window / round_trip, tcp_window / tcp_round_trip);
        core::mem::replace(&mut self.weight, next) != next
    }

    /// The values of a sample; what is counted from one to the next begins anew.
    pub(crate) fn sample(&mut self, tcp: &Fifo) -> Sample {
        Sample {
            weight: self.weight,
            xcp_packets: self.xcp.len() as u64,
            tcp_packets: tcp.len() as u64,
            ..core::mem::take(&mut self.sample)
        }
    }
}

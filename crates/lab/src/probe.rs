//! The self-check of a path before anything is measured on it: the round-trip time of a small packet, and
//! the rate at which a train of large ones arrives, compared with the scenario.
//!
//! Where the kernel queues, a token bucket lets a few packets through at once: a small one takes no time to
//! send there, and of a train only what comes after them tells the rate.
//!
//! A busy machine makes the probe late, too. So what seems to be off is measured again, the best counts,
//! and a probe that was late itself is a reason to doubt the path, not to refuse it.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use congestlab_core::units::BitRate;
use congestlab_scenario::net::packet::{PS_PER_NS, Picos};
use congestlab_scenario::net::port::PortConfig;
use congestlab_scenario::net::queue::red::Thresholds;
use congestlab_scenario::net::queue::{Discipline, Limit};
use congestlab_scenario::sim::model::Model;
use serde::Serialize;

use crate::monotonic;
use crate::network::{MTU, bucket, needs_user_space, port_of};
use crate::topology::{Topology, segment};
use congestlab_linux::error::{Context, Error, Result};
use congestlab_linux::sys::netns::Namespace;
use congestlab_linux::sys::schedule::be_punctual;

/// Echoes that are waited for, and packets that are sent for them at most: some links lose many.
const ECHOES: usize = 5;
const TRIES: usize = 40;
/// Payload of an echo.
const SMALL: usize = 64;
/// IP and UDP headers.
const HEADERS: usize = 28;
/// How long the measured part of a train takes to arrive, how many packets it has at least, and the
/// whole train at most.
const TRAIN: Picos = 300_000_000_000;
const MEASURED_MIN: u64 = 8;
const TRAIN_MAX: u64 = 2000;
/// A train that takes longer to send, s, is not waited for.
const TRAIN_MAX_S: f64 = 5.0;
/// A link this much faster than the slowest tells the rate as well.
const AS_SLOW: f64 = 1.02;
/// How often what is off is measured.
const ROUNDS: usize = 4;
/// A train whose sender was late by more than this of its length left gaps.
const LATE_SHARE: f64 = 0.1;
/// Off by more than this the results are not to be trusted ...
const RATE_TOLERANCE: f64 = 0.05;
const DELAY_TOLERANCE: f64 = 0.05;
const DELAY_TOLERANCE_MS: f64 = 2.0;
/// ... and by so many times as much there is nothing to measure.
const HOPELESS: f64 = 5.0;

/// Rate and delay of a group's path, asked for and measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Name of the group of flows.
    pub flows: String,
    /// Rate of the slowest link of the path at time zero, bit/s.
    pub rate_bps: f64,
    /// Rate at which a train of packets arrived, bit/s; `None` if too few arrived, or it could not tell.
    pub measured_rate_bps: Option<f64>,
    /// Reason for which no train can tell the rate of this path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_not_measurable: Option<String>,
    /// Largest lateness of the probe in sending that train, ms.
    pub probe_late_ms: f64,
    /// True if that was too late to tell the rate.
    pub probe_was_late: bool,
    /// Round-trip time asked for, ms, with the time to transmit the small packet unless a token bucket hides it.
    pub rtt_ms: f64,
    /// Least measured round-trip time, ms, since all above it is lateness; `None` if no echo came.
    pub measured_rtt_ms: Option<f64>,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flows, rate_bps, rtt_ms, .. } = self;
        write!(f, "self-check {flows}: rate ")?;
        match (self.measured_rate_bps, &self.rate_not_measurable) {
            (Some(rate), _) => write!(f, "{:.2} of {:.2} Mbit/s", rate / 1e6, rate_bps / 1e6)?,
            (None, None) => write!(f, "unknown of {:.2} Mbit/s", rate_bps / 1e6)?,
            (None, Some(why)) => write!(f, "of {:.2} Mbit/s not measurable ({why})", rate_bps / 1e6)?,
        }
        match self.measured_rtt_ms {
            Some(rtt) => write!(f, ", round trip {rtt:.2} of {rtt_ms:.2} ms")?,
            None => write!(f, ", round trip unknown of {rtt_ms:.2} ms")?,
        }
        write!(f, "  {}", if self.doubt().is_none() { "ok" } else { "OFF" })
    }
}

impl Check {
    /// How far the rate and the round trip are off, in tolerances; without end if nothing arrived.
    fn distance(&self) -> [f64; 2] {
        let rate = match self.rate_not_measurable {
            Some(_) => Some(0.0),
            None => self.measured_rate_bps.map(|rate| (rate / self.rate_bps - 1.0).abs() / RATE_TOLERANCE),
        };
        let allowed = (self.rtt_ms * DELAY_TOLERANCE).max(DELAY_TOLERANCE_MS);
        let rtt = self.measured_rtt_ms.map(|rtt| (rtt - self.rtt_ms).abs() / allowed);
        [rate, rtt].map(|distance| distance.unwrap_or(f64::INFINITY))
    }

    /// Why not to believe what is measured on this path.
    pub(super) fn doubt(&self) -> Option<String> {
        let [rate, rtt] = self.distance();
        let number = |value: Option<f64>, unit: f64| {
            value.map_or("unknown".into(), |value| format!("{:.2}", value / unit))
        };
        let mut parts = Vec::new();
        if rate > 1.0 {
            let measured = number(self.measured_rate_bps, 1e6);
            parts.push(format!("the rate is {measured} Mbit/s, not {:.2}", self.rate_bps / 1e6));
        }
        if rtt > 1.0 {
            let measured = number(self.measured_rtt_ms, 1.0);
            parts.push(format!("the round trip takes {measured} ms, not {:.2}", self.rtt_ms));
        }
        if self.probe_was_late && !parts.is_empty() {
            parts.push(format!("but the probe itself was {:.1} ms late", self.probe_late_ms));
        }
        (!parts.is_empty()).then(|| format!("path of flows.{}: {}", self.flows, parts.join(", ")))
    }

    /// Refuses a machine that can not do what was asked for at all.
    pub(super) fn require(&self) -> Result<()> {
        let is_hopeless = self.distance().into_iter().any(|distance| distance > HOPELESS);
        match self.doubt().filter(|_| is_hopeless && !self.probe_was_late) {
            Some(doubt) => Err(Error::missing(
                format!("this machine can not make the network: {doubt}"),
                "let it do nothing else meanwhile, or ask for a slower link",
            )),
            None => Ok(()),
        }
    }
}

/// Measures the path of a group between two hosts.
pub(super) fn check(
    model: &Model,
    group: usize,
    ends: [(&Namespace, Ipv4Addr); 2],
    stop: &AtomicBool,
) -> Result<Check> {
    let path = Path::new(model, group);
    let socket = |(namespace, address): (&Namespace, Ipv4Addr)| -> Result<UdpSocket> {
        let bound = namespace.run(|| UdpSocket::bind(SocketAddrV4::new(address, 0)))?;
        bound.context(|| format!("can not make a socket in {}", namespace.name()))
    };
    let (near, far) = (socket(ends[0])?, socket(ends[1])?);
    let what = || "the self-check failed".to_owned();
    near.connect(far.local_addr().context(what)?).context(what)?;
    let mut check = Check {
        flows: model.groups[group].name.clone(),
        rate_bps: path.rate.0 as f64,
        measured_rate_bps: None,
        rate_not_measurable: path.train.as_ref().err().cloned(),
        probe_late_ms: 0.0,
        probe_was_late: false,
        rtt_ms: path.rtt as f64 / 1e9,
        measured_rtt_ms: None,
    };
    for _ in 0..ROUNDS {
        let [rate, rtt] = check.distance();
        if rate <= 1.0 && rtt <= 1.0 {
            break;
        }
        if rtt > 1.0 {
            // What was sent before has left the buckets empty.
            thread::sleep(path.refill);
            let again = echoes(&near, &far, path.rtt).context(what)?;
            check.measured_rtt_ms = [check.measured_rtt_ms, again].into_iter().flatten().reduce(f64::min);
        }
        if let (true, Ok(train)) = (rate > 1.0, &path.train) {
            let (measured_rate_bps, late) = train.run(&near, &far, path.rtt, stop).context(what)?;
            let again = Check {
                measured_rate_bps,
                probe_late_ms: late.as_secs_f64() * 1e3,
                probe_was_late: late.as_secs_f64() > LATE_SHARE * train.takes().as_secs_f64(),
                ..check.clone()
            };
            if again.distance()[0] <= rate {
                check = again;
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
    }
    Ok(check)
}

/// A link as packets see it, at time zero.
#[derive(Clone, Copy, Debug)]
struct Hop {
    rate: f64,
    /// Bytes that leave at once; none from a link in user space.
    bucket: f64,
    /// Packets that its queue takes before it refuses one.
    room: f64,
    /// Random errors.
    is_lossy: bool,
}

impl Hop {
    fn new(port: &PortConfig, size: u64, mtu: u16) -> Self {
        let rate = port.service.rate_at(0);
        let limit = match port.limit {
            Limit::Packets(packets) => packets,
            Limit::Bytes(bytes) => bytes / size,
            Limit::None => u64::MAX,
        };
        // From there on it drops at random.
        let min = match &port.discipline {
            Discipline::Red(red) => match red.thresholds {
                Thresholds::Packets { min, .. } => min.into(),
                Thresholds::Bytes { min, .. } => u64::from(min) / size,
            },
            _ => u64::MAX,
        };
        Self {
            rate: rate.0.max(1) as f64,
            bucket: if needs_user_space(port).is_some() { 0.0 } else { bucket(port, rate, mtu) as f64 },
            room: limit.min(min) as f64,
            is_lossy: port.errors.is_some(),
        }
    }
}

/// The path as it should be at time zero.
struct Path {
    rate: BitRate,
    /// Round-trip time of a small packet.
    rtt: Picos,
    /// Token buckets that are empty can send the echoes after this time.
    refill: Duration,
    /// How to measure the rate, or why nothing can.
    train: std::result::Result<Train, String>,
}

impl Path {
    fn new(model: &Model, group: usize) -> Self {
        let of = &model.groups[group];
        let port = |&at: &u32| model.links[at as usize].port.clone();
        let (access, exit) = (of.access.map(port_of), of.exit.map(port_of));
        let there: Vec<PortConfig> =
            access.iter().cloned().chain(of.path.iter().map(port)).chain(exit.iter().cloned()).collect();
        let back = exit.into_iter().chain(of.back.iter().map(port)).chain(access);
        let small = ((SMALL + HEADERS) * 8) as u64;
        let time =
            |rate: BitRate| (u128::from(small) * 1_000_000_000_000 / u128::from(rate.0.max(1))) as Picos;
        let (mut serial, mut slowest): (Picos, Picos) = (0, 0);
        for port in there.iter().cloned().chain(back) {
            // Of a trace there is what comes in opportunities, on average half a gap late.
            let time = time(port.service.rate_at(0));
            match needs_user_space(&port) {
                Some(_) => serial += time,
                None => slowest = slowest.max(time),
            }
        }
        let size = u64::from(segment(&of.kind));
        let mtu = model.groups.iter().map(|group| segment(&group.kind)).fold(MTU, u16::max);
        let hops: Vec<Hop> = there.iter().map(|port| Hop::new(port, size, mtu)).collect();
        Self {
            rate: there.iter().map(|port| port.service.rate_at(0)).min().unwrap_or(BitRate(1)),
            rtt: Topology::delay(model, group) + reverse_delay(model, group) + serial,
            refill: Duration::from_nanos(slowest / PS_PER_NS * ECHOES as u64).min(Duration::from_secs(1)),
            train: Train::new(&hops, size),
        }
    }
}

/// Packets that come twice as fast as the slowest link of a path sends them, so that it is never idle.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Train {
    /// Bytes of a packet.
    size: u64,
    packets: u64,
    /// So many leave at once, from a bucket that is full, and say nothing.
    skipped: u64,
    /// Nanoseconds between two.
    gap: u64,
    /// Packets may be lost after the slowest link, so those are counted that were sent. Otherwise what
    /// does not arrive found no room, and the link was not idle: those are counted that arrived.
    is_lossy: bool,
}

impl Train {
    fn new(hops: &[Hop], size: u64) -> std::result::Result<Self, String> {
        let rate = hops.iter().map(|hop| hop.rate).fold(f64::INFINITY, f64::min);
        let bytes = size as f64;
        // How fast packets come, and how many of them nobody refuses.
        let (mut inflow, mut fitting) = (2.0 * rate, f64::INFINITY);
        let mut skipped = None;
        for hop in hops.iter().filter(|hop| hop.rate < 2.0 * rate) {
            if hop.rate >= inflow {
                continue;
            }
            // Bytes that come until one more has come than has left.
            let per_byte = inflow / (inflow - hop.rate);
            fitting = fitting.min((hop.bucket / bytes + hop.room) * per_byte);
            if hop.rate <= rate * AS_SLOW {
                skipped = skipped.or(Some(hop.bucket / bytes * per_byte));
            }
            inflow = hop.rate;
        }
        let skipped = skipped.unwrap_or(0.0).ceil() as u64;
        let wanted = (rate * TRAIN as f64 / 1e12 / (bytes * 8.0)) as u64;
        let mut packets = skipped.saturating_add(wanted.max(MEASURED_MIN)).min(TRAIN_MAX);
        let is_lossy = hops.iter().any(|hop| hop.is_lossy);
        if is_lossy {
            packets = packets.min(fitting as u64);
        }
        let gap = bytes * 8.0 / (2.0 * rate);
        let takes = packets as f64 * gap;
        if packets < skipped.saturating_add(MEASURED_MIN) {
            return Err(match packets {
                TRAIN_MAX => format!("the first {skipped} packets leave at once"),
                _ => format!("the queue has no room for {} packets", skipped + MEASURED_MIN),
            });
        }
        if takes > TRAIN_MAX_S {
            return Err(format!("to send {packets} packets takes {takes:.0} s"));
        }
        Ok(Self { size, packets, skipped, gap: (gap * 1e9) as u64, is_lossy })
    }

    /// How long it takes to send.
    fn takes(&self) -> Duration {
        Duration::from_nanos(self.packets * self.gap)
    }

    /// Rate at which it comes out, bit/s, and how late the sender was at most.
    fn run(
        &self,
        near: &UdpSocket,
        far: &UdpSocket,
        rtt: Picos,
        stop: &AtomicBool,
    ) -> io::Result<(Option<f64>, Duration)> {
        let &Self { size, packets, gap, .. } = self;
        let size = size as usize;
        // It takes twice as long to arrive.
        let patience = 2 * self.takes() + Duration::from_nanos(rtt / PS_PER_NS) + Duration::from_millis(200);
        let end = monotonic() + patience.as_nanos() as u64;
        let is_over = || stop.load(Ordering::Relaxed) || monotonic() > end;
        far.set_read_timeout(Some(Duration::from_millis(20)))?;
        thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                let _ = be_punctual();
                let mut buffer = vec![0; size];
                let mut arrivals = Vec::new();
                while !is_over() {
                    let Ok(length) = far.recv(&mut buffer) else { continue };
                    if length + HEADERS == size {
                        let number =
                            buffer[..8].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
                        arrivals.push((number, monotonic()));
                        if number + 1 == packets {
                            break;
                        }
                    }
                }
                arrivals
            });
            let sender = scope.spawn(|| {
                let _ = be_punctual();
                let mut buffer = vec![0; size - HEADERS];
                let (begin, mut late) = (monotonic(), 0);
                for number in (0..packets).take_while(|_| !is_over()) {
                    let due = begin + number * gap;
                    crate::sleep_until(due);
                    late = late.max(monotonic() - due);
                    buffer[..8].copy_from_slice(&number.to_le_bytes());
                    // A packet that finds no room is one that is lost.
                    let _ = near.send(&buffer);
                }
                Duration::from_nanos(late)
            });
            let late = sender.join().unwrap_or_default();
            Ok((self.rate(&receiver.join().unwrap_or_default()), late))
        })
    }

    /// The rate that numbers of packets and times of their arrival, ns, tell.
    fn rate(&self, arrivals: &[(u64, u64)]) -> Option<f64> {
        let begin = arrivals.iter().position(|&(number, _)| number >= self.skipped)?;
        let (first, last) = (arrivals[begin], arrivals.last()?);
        let arrived = (arrivals.len() - 1 - begin) as u64;
        let packets = if self.is_lossy { last.0.saturating_sub(first.0) } else { arrived };
        let span = last.1.saturating_sub(first.1);
        (packets >= 4 && span > 0).then(|| (packets * self.size * 8) as f64 / (span as f64 / 1e9))
    }
}

fn reverse_delay(model: &Model, group: usize) -> Picos {
    let group = &model.groups[group];
    let links: Picos = group.back.iter().map(|&at| model.links[at as usize].port.delay).sum();
    links + [group.access, group.exit].into_iter().flatten().map(|pipe| pipe.delay).sum::<Picos>()
}

/// The least time of some echoes, ms.
fn echoes(near: &UdpSocket, far: &UdpSocket, expected: Picos) -> io::Result<Option<f64>> {
    let patience = Duration::from_nanos(2 * expected / PS_PER_NS) + Duration::from_millis(200);
    near.set_read_timeout(Some(patience))?;
    far.set_read_timeout(Some(Duration::from_millis(20)))?;
    let over = AtomicBool::new(false);
    let mut times = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            // Where that is not allowed, the echo is as late as it is.
            let _ = be_punctual();
            let mut buffer = [0; SMALL];
            while !over.load(Ordering::Relaxed) {
                if let Ok((count, from)) = far.recv_from(&mut buffer) {
                    // An echo that is lost is tried again.
                    let _ = far.send_to(&buffer[..count], from);
                }
            }
        });
        for _ in 0..TRIES {
            if times.len() == ECHOES {
                break;
            }
            let begin = monotonic();
            let mut buffer = [0; SMALL];
            buffer[..8].copy_from_slice(&begin.to_le_bytes());
            if near.send(&buffer).is_err() {
                continue;
            }
            while near.recv(&mut buffer).is_ok() {
                // Not that of a try that was given up.
                if buffer[..8] == begin.to_le_bytes() {
                    times.push((monotonic() - begin) as f64 / 1e6);
                    break;
                }
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    Ok(times.into_iter().reduce(f64::min))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rate: Option<f64>, rtt: Option<f64>, was_late: bool) -> Check {
        Check {
            flows: "ftp".into(),
            rate_bps: 100e6,
            measured_rate_bps: rate,
            rate_not_measurable: None,
            probe_late_ms: if was_late { 80.0 } else { 0.1 },
            probe_was_late: was_late,
            rtt_ms: 40.0,
            measured_rtt_ms: rtt,
        }
    }

    #[test]
    fn what_is_off_is_doubted_and_what_is_far_off_refused_unless_the_probe_was_late() {
        let good = check(Some(99e6), Some(40.5), false);
        assert_eq!((good.doubt(), good.require().is_ok()), (None, true));
        let off = check(Some(90e6), Some(40.5), false);
        assert!(off.doubt().is_some_and(|doubt| doubt.contains("90.00")) && off.require().is_ok());
        for (rate, rtt) in [(Some(70e6), Some(40.5)), (None, Some(40.5)), (Some(99e6), None)] {
            assert_eq!(check(rate, rtt, false).require().map_err(|error| error.exit_code()), Err(4));
            let late = check(rate, rtt, true);
            assert!(
                late.doubt().is_some_and(|doubt| doubt.contains("80.0 ms late")) && late.require().is_ok()
            );
        }
    }

    /// When each packet of a train leaves a token bucket with a queue of so many packets, ns.
    fn through(hop: &Hop, train: &Train) -> Vec<(u64, u64)> {
        let (mut tokens, mut last, mut left) = (hop.bucket, 0.0, Vec::<(u64, u64)>::new());
        for number in 0..train.packets {
            let now = (number * train.gap) as f64;
            let waiting = left.iter().filter(|&&(_, at)| at as f64 > now).count();
            if waiting as f64 > hop.room {
                continue;
            }
            let per_ns = hop.rate / 8e9;
            let from = now.max(last);
            tokens = (tokens + (from - last) * per_ns).min(hop.bucket);
            let wait = (train.size as f64 - tokens).max(0.0) / per_ns;
            tokens += wait * per_ns - train.size as f64;
            last = from + wait;
            left.push((number, last as u64));
        }
        left
    }

    #[test]
    fn a_train_tells_the_rate_of_a_token_bucket_also_where_the_queue_is_short() {
        for rate in [20e3, 100e3, 500e3, 2e6, 20e6, 100e6, 1e9] {
            for (size, room) in [(1500, 1.0), (1500, 50.0), (500, 1.0), (500, f64::INFINITY)] {
                let hop = Hop { rate, bucket: f64::max(4600.0, rate * 50e-6), room, is_lossy: false };
                let train = Train::new(&[hop], size).unwrap();
                let measured = train.rate(&through(&hop, &train)).unwrap();
                assert!((measured / rate - 1.0).abs() < 0.01, "{measured} of {rate}: {hop:?} {train:?}");
            }
        }
    }

    #[test]
    fn where_no_train_can_tell_the_rate_the_check_says_so_and_refuses_nothing() {
        let hop = Hop { rate: 20e6, bucket: 4600.0, room: 2.0, is_lossy: true };
        let why = Train::new(&[hop], 1500).unwrap_err();
        assert!(why.contains("no room for 15 packets"), "{why}");
        // Where nothing leaves at once, all of the train counts; where there is room, it fits.
        let user = Train::new(&[Hop { bucket: 0.0, room: 4.0, ..hop }], 1500).unwrap();
        assert_eq!((user.skipped, user.packets, user.is_lossy), (0, 8, true));
        assert_eq!(Train::new(&[Hop { room: 50.0, ..hop }], 1500).unwrap().packets, 106);
        // What was lost behind the link had its time there.
        assert_eq!(user.rate(&[(0, 0), (1, 600_000), (5, 3_000_000)]), Some(20e6));
        assert!(
            Train::new(&[Hop { rate: 1e3, is_lossy: false, ..hop }], 1500).unwrap_err().contains("takes")
        );

        let unknown = Check { rate_not_measurable: Some(why), ..check(None, Some(40.5), false) };
        assert_eq!((unknown.doubt(), unknown.require().is_ok()), (None, true));
        assert!(unknown.to_string().contains("100.00 Mbit/s not measurable (the queue"), "{unknown}");
    }

    #[test]
    fn a_faster_link_in_front_fills_the_bucket_slowly() {
        let slow = Hop { rate: 100e6, bucket: 5000.0, room: 100.0, is_lossy: false };
        let train = |rate| Train::new(&[Hop { rate, ..slow }, slow], 1500).map(|train| train.skipped);
        assert_eq!([train(1e9), train(200e6), train(125e6)], [Ok(7), Ok(7), Ok(17)]);
        // So near that either tells the rate.
        assert_eq!(train(101e6), Ok(7));
    }
}

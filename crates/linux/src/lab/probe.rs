//! Holds a path against what was asked for, before anything is measured on it: how long a small packet
//! takes there and back, and how fast a train of large ones comes out.
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
use congestlab_scenario::net::queue::red::Thresholds;
use congestlab_scenario::net::queue::{Discipline, Limit};
use congestlab_scenario::net::service::Service;
use congestlab_scenario::sim::model::Model;
use serde::Serialize;

use super::monotonic;
use super::topology::{Topology, segment};
use crate::error::{Context, Error, Result};
use crate::sys::netns::Namespace;
use crate::sys::schedule::be_punctual;

/// Echoes that are waited for, and packets that are sent for them at most: some links lose many.
const ECHOES: usize = 5;
const TRIES: usize = 40;
/// Payload of an echo.
const SMALL: usize = 64;
/// IP and UDP headers.
const HEADERS: usize = 28;
/// How long a train takes, and how many packets it has at most.
const TRAIN: Picos = 300_000_000_000;
const TRAIN_MAX: u64 = 2000;
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

/// What was asked for on a group's path, and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The group.
    pub flows: String,
    /// The slowest link of its path at time zero.
    pub rate_bps: f64,
    /// How fast a train of packets arrived; `None` if too few did.
    pub measured_rate_bps: Option<f64>,
    /// How late the probe was in sending that train, at most.
    pub probe_late_ms: f64,
    /// That was too late to tell the rate.
    pub probe_was_late: bool,
    /// There and back, with the time that it takes to send so small a packet.
    pub rtt_ms: f64,
    /// The least that it took, since what comes on top is lateness; `None` if no echo came.
    pub measured_rtt_ms: Option<f64>,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flows, rate_bps, rtt_ms, .. } = self;
        write!(f, "self-check {flows}: rate ")?;
        match self.measured_rate_bps {
            Some(rate) => write!(f, "{:.2} of {:.2} Mbit/s", rate / 1e6, rate_bps / 1e6)?,
            None => write!(f, "unknown of {:.2} Mbit/s", rate_bps / 1e6)?,
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
        let rate = self.measured_rate_bps.map(|rate| (rate / self.rate_bps - 1.0).abs() / RATE_TOLERANCE);
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
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        if rtt > 1.0 {
            let again = echoes(&near, &far, path.rtt).context(what)?;
            check.measured_rtt_ms = [check.measured_rtt_ms, again].into_iter().flatten().reduce(f64::min);
        }
        if rate > 1.0 {
            let (measured_rate_bps, late) = train(&near, &far, &path).context(what)?;
            let again = Check {
                measured_rate_bps,
                probe_late_ms: late.as_secs_f64() * 1e3,
                probe_was_late: late.as_secs_f64() > LATE_SHARE * path.train().as_secs_f64(),
                ..check.clone()
            };
            if again.distance()[0] <= rate {
                check = again;
            }
        }
    }
    Ok(check)
}

/// What a path should be at time zero.
struct Path {
    rate: BitRate,
    /// Of a small packet, there and back.
    rtt: Picos,
    /// Bytes of a large packet.
    size: usize,
    /// Large packets that no queue on the path refuses.
    room: u64,
}

impl Path {
    fn new(model: &Model, group: usize) -> Self {
        let of = &model.groups[group];
        let ports = || of.path.iter().map(|&at| &model.links[at as usize].port);
        let back = of.back.iter().map(|&at| &model.links[at as usize].port);
        let pipes = || [of.access, of.exit].into_iter().flatten();
        let small = ((SMALL + HEADERS) * 8) as u64;
        let time =
            |rate: BitRate| (u128::from(small) * 1_000_000_000_000 / u128::from(rate.0.max(1))) as Picos;
        let serial = |service: &Service| match service {
            // What there is of it comes in opportunities, on average half a gap late.
            Service::Trace(trace) => time(trace.mean_rate()),
            service => time(service.rate_at(0)),
        };
        let on_links: Picos = ports().chain(back).map(|port| serial(&port.service)).sum();
        let on_pipes: Picos = pipes().map(|pipe| 2 * time(pipe.rate)).sum();
        let size = usize::from(segment(&of.kind));
        let rate = ports().map(|port| port.service.rate_at(0)).chain(pipes().map(|pipe| pipe.rate)).min();
        let room = ports().map(|port| {
            let limit = match port.limit {
                Limit::Packets(packets) => packets,
                Limit::Bytes(bytes) => bytes / size as u64,
                Limit::None => u64::MAX,
            };
            // From there on it drops at random.
            let min = match &port.discipline {
                Discipline::Red(red) => match red.thresholds {
                    Thresholds::Packets { min, .. } => min.into(),
                    Thresholds::Bytes { min, .. } => u64::from(min) / size as u64,
                },
                _ => u64::MAX,
            };
            limit.min(min)
        });
        Self {
            rate: rate.unwrap_or(BitRate(1)),
            rtt: Topology::delay(model, group) + reverse_delay(model, group) + on_links + on_pipes,
            size,
            room: room.min().unwrap_or(u64::MAX),
        }
    }

    fn bits(&self) -> u64 {
        self.size as u64 * 8
    }

    /// How many packets a train has. It comes twice as fast as the path: half of it may wait.
    fn packets(&self) -> u64 {
        let fitting = (u128::from(self.rate.0) * u128::from(TRAIN) / 1_000_000_000_000) as u64 / self.bits();
        fitting.min(self.room.saturating_mul(2)).clamp(8, TRAIN_MAX)
    }

    /// Nanoseconds between two of its packets.
    fn gap(&self) -> u64 {
        self.bits() * 500_000_000 / self.rate.0.max(1)
    }

    /// How long it takes to send.
    fn train(&self) -> Duration {
        Duration::from_nanos(self.packets() * self.gap())
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

/// Rate at which a train of packets comes out, bit/s, and how late the sender was at most.
fn train(near: &UdpSocket, far: &UdpSocket, path: &Path) -> io::Result<(Option<f64>, Duration)> {
    let (bits, count, gap) = (path.bits(), path.packets(), path.gap());
    let lasts = 2 * path.train() + Duration::from_nanos(path.rtt / PS_PER_NS);
    far.set_read_timeout(Some(lasts + Duration::from_millis(200)))?;
    thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let _ = be_punctual();
            let mut buffer = vec![0; path.size];
            let mut arrivals = Vec::new();
            while let Ok(length) = far.recv(&mut buffer) {
                if length + HEADERS == path.size {
                    let number =
                        buffer[..8].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
                    arrivals.push((number, monotonic()));
                    if number + 1 == count {
                        break;
                    }
                }
            }
            arrivals
        });
        let sender = scope.spawn(|| {
            let _ = be_punctual();
            let mut buffer = vec![0; path.size - HEADERS];
            let (begin, mut late) = (monotonic(), 0);
            for number in 0..count {
                let due = begin + number * gap;
                super::sleep_until(due);
                late = late.max(monotonic() - due);
                buffer[..8].copy_from_slice(&number.to_le_bytes());
                // A packet that finds no room is one that is lost.
                let _ = near.send(&buffer);
            }
            Duration::from_nanos(late)
        });
        let late = sender.join().unwrap_or_default();
        let arrivals = receiver.join().unwrap_or_default();
        // The first ones left at once, from a full bucket.
        let skip = arrivals.len() / 4;
        let (Some(first), Some(last)) = (arrivals.get(skip), arrivals.last()) else {
            return Ok((None, late));
        };
        let (packets, span) = (last.0.saturating_sub(first.0), last.1 - first.1);
        let rate = (packets >= 4 && span > 0).then(|| (packets * bits) as f64 / (span as f64 / 1e9));
        Ok((rate, late))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rate: Option<f64>, rtt: Option<f64>, was_late: bool) -> Check {
        Check {
            flows: "ftp".into(),
            rate_bps: 100e6,
            measured_rate_bps: rate,
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
}

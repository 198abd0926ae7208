//! A tester of elements of SCONE (draft-ietf-scone-protocol), ours or another's, between two ends: datagrams go through them,
//! and what arrives comes back to be judged.
//!
//! The far end returns each datagram behind a mark, in which no element on the way back sees SCONE. The kernel there has
//! checked UDP's checksums: what it refused does not come back. Not judged: whether an advice is a good one.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io, thread, time};

use congestlab_core::law::scone::{UNKNOWN, rate};
use congestlab_core::units::BitRate;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use crate::error::{Context, Error, Result};
use crate::sys::udp;

/// First bytes of every datagram of the far end; as a packet of QUIC it has a short header.
const MARK: [u8; 8] = *b"\x40CLSCONE";
/// Byte behind the mark: a datagram that came follows, or the number of wrong checksums, for which the mark alone asks.
const CAME: u8 = 0;
const ERRORS: u8 = 1;
/// Version of a packet of SCONE without its highest bit, which is the lowest one of the code.
const VERSION: u32 = 0x6f7d_c0fd;
/// Bytes of a long header before the names of the connection.
const START: usize = 5;
/// Datagrams that are on the way at a time.
const WINDOW: usize = 32;
/// The largest datagram: it and the mark fit into IPv6's smallest MTU.
const LARGEST: usize = 1200;
/// Time from one question to the next, until a rate that was told shows.
const PAUSE: time::Duration = time::Duration::from_millis(250);
/// Time after which the far end looks whether it is over.
const NAP: time::Duration = time::Duration::from_millis(100);

/// The far end of a test.
#[derive(Debug)]
pub struct Listener(UdpSocket);

impl Listener {
    /// Binds to an address, in the calling thread's network namespace.
    ///
    /// # Errors
    /// If the address is none of this machine, or is taken.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let socket = UdpSocket::bind(address).context(|| format!("can not listen at {address}"))?;
        socket.set_read_timeout(Some(NAP)).context(|| "can not set a timeout".into())?;
        Ok(Self(socket))
    }

    /// Returns the address, with the port that the kernel chose where 0 was asked for.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn address(&self) -> Result<SocketAddr> {
        self.0.local_addr().context(|| "can not ask for an address".into())
    }

    /// Returns what comes to whom it came from, until `stop` is true, in the namespace of the calling thread.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn run(&self, stop: &AtomicBool) -> Result<()> {
        let mut bytes = vec![0; MARK.len() + 1 + usize::from(u16::MAX)];
        bytes[..MARK.len()].copy_from_slice(&MARK);
        let head = MARK.len() + 1;
        while !stop.load(Ordering::Relaxed) {
            let (size, from) = match self.0.recv_from(&mut bytes[head..]) {
                Ok(came) => came,
                // An ICMP message about what was sent before is nobody's business here.
                Err(error) if is_nothing(&error) || error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error).context(|| "can not receive".into()),
            };
            bytes[MARK.len()] = CAME;
            let mut size = head + size;
            if bytes[head..size].starts_with(&MARK) {
                bytes[MARK.len()] = ERRORS;
                bytes[head..head + 8].copy_from_slice(&checksum_errors().to_be_bytes());
                size = head + 8;
            }
            // What can not be sent is lost, as anywhere else.
            let _ = self.0.send_to(&bytes[..size], from);
        }
        Ok(())
    }
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Datagrams with a wrong checksum that came to this network namespace, over IPv4 and IPv6.
fn checksum_errors() -> u64 {
    let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    let (v4, v6) = (read("snmp"), read("snmp6"));
    let mut lines = v4.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, numbers) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let of_v4 = names.split(' ').zip(numbers.split(' ')).find(|(name, _)| *name == "InCsumErrors");
    let of_v6 = v6.lines().find_map(|line| line.strip_prefix("Udp6InCsumErrors"));
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0);
    number(of_v4.map(|(_, number)| number)) + number(of_v6)
}

/// Settings of a test.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address of the far end.
    pub peer: SocketAddr,
    /// Number of flows, each from a port of its own.
    pub flows: u16,
    /// Time without an answer after which what is missing is sent again.
    pub wait: time::Duration,
    /// Number of times that a datagram is sent at most.
    pub tries: u32,
}

/// A kind of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// All codes, of each flow.
    Codes,
    /// Names of the connection of 0 to 255 bytes, with both values of the reserved bit.
    Names,
    /// Two packets of SCONE in one datagram, of which only the first may change.
    Second,
    /// Packets of SCONE inside of tunnels in UDP.
    Tunnels,
    /// Packets of SCONE that are cut off, stand alone, or whose names end behind the datagram.
    Malformed,
    /// Datagrams that begin with no packet of SCONE.
    Others,
    /// Datagrams over IPv4 without a checksum.
    Unsummed,
    /// Datagrams that the kernel cuts out of one of many times their size.
    Segmented,
    /// All codes, after the element was told a rate.
    Told,
}

impl Kind {
    /// Returns the name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Codes => "all codes",
            Self::Names => "names of all lengths",
            Self::Second => "a second one behind it",
            Self::Tunnels => "inside of tunnels",
            Self::Malformed => "malformed",
            Self::Others => "no SCONE",
            Self::Unsummed => "without a checksum",
            Self::Segmented => "cut by the kernel",
            Self::Told => "all codes at told rates",
        }
    }
}

/// Counts of the datagrams of a kind, by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Datagrams that were sent, each counted once.
    pub sent: u64,
    /// Datagrams that arrived as they were, or with another code.
    pub arrived: u64,
    /// Datagrams that arrived with a lower code.
    pub lowered: u64,
    /// Datagrams that arrived with a higher code.
    pub raised: u64,
    /// Datagrams that arrived with another change.
    pub changed: u64,
    /// Datagrams that never arrived, or whose checksum was wrong.
    pub lost: u64,
}

/// Advice that a flow was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// Port from which the flow was sent.
    pub port: u16,
    /// Codes to which those of the flow were lowered, without repetitions.
    pub codes: Vec<u8>,
    /// Rate of the least of them, b/s; absent: nobody advised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
}

/// Advice of an element that had been told a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Code of the rate that the element was told.
    pub told: u8,
    /// Code to which a packet without advice was lowered; 127: to none.
    pub advised: u8,
    /// Codes, of 128, that arrived as the lower one of themselves and the advice.
    pub right: u8,
}

/// Something that an element must do, and whether it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// The rule.
    pub that: &'static str,
    /// True if it held.
    pub holds: bool,
    /// Numbers that were seen.
    pub found: String,
}

/// Result of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Address of the far end.
    pub peer: String,
    /// Counts by kind.
    pub kinds: BTreeMap<Kind, Counts>,
    /// Advice by flow.
    pub flows: Vec<Advice>,
    /// Answers to rates, if the element was told some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// Datagrams that nobody had sent.
    pub added: u64,
    /// Datagrams that came twice.
    pub repeated: u64,
    /// Wrong checksums that the far end's kernel counted meanwhile.
    pub checksum_errors: u64,
    /// Rules, each with a verdict.
    pub claims: Vec<Claim>,
}

impl Report {
    /// Returns true if all rules hold.
    pub fn holds(&self) -> bool {
        self.claims.iter().all(|claim| claim.holds)
    }
}

/// A datagram and its fate.
#[derive(Debug)]
struct Probe {
    kind: Kind,
    flow: usize,
    payload: Vec<u8>,
    /// The code with which it arrived; of one without a code [`UNKNOWN`].
    arrived: Option<u8>,
    is_changed: bool,
}

/// The near end of a test.
#[derive(Debug)]
pub struct Tester {
    config: Config,
    sockets: Vec<UdpSocket>,
    probes: Vec<Probe>,
    /// Places of datagrams by flow, and by content but for the code.
    known: BTreeMap<(usize, Vec<u8>), usize>,
    answers: Vec<Answer>,
    added: u64,
    repeated: u64,
}

impl Tester {
    /// Opens the flows, and asks the far end whether it is there.
    ///
    /// # Errors
    /// If it does not answer, or the kernel refuses.
    pub fn start(config: Config) -> Result<Self> {
        let any: SocketAddr = if config.peer.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
        let open = || -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind(any)?;
            socket.connect(config.peer)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let sockets: io::Result<Vec<_>> = (0..config.flows.max(1)).map(|_| open()).collect();
        let sockets = sockets.context(|| format!("can not send to {}", config.peer))?;
        let tester = Self {
            config,
            sockets,
            probes: vec![],
            known: BTreeMap::new(),
            answers: vec![],
            added: 0,
            repeated: 0,
        };
        tester.errors()?;
        Ok(tester)
    }

    /// Sends everything that an element may meet, and judges what arrives.
    ///
    /// # Errors
    /// If the far end is gone, `stop` is true, or the kernel refuses.
    pub fn run(mut self, stop: &AtomicBool) -> Result<Report> {
        let before = self.errors()?;
        let is_v4 = self.config.peer.is_ipv4();
        // Every flow begins before one is judged, for each takes its share from the others.
        for kind in [Kind::Names, Kind::Codes, Kind::Second, Kind::Tunnels, Kind::Malformed, Kind::Others] {
            let added = self.add(kind);
            self.round(added, false, stop)?;
        }
        if is_v4 {
            self.each_socket(|socket| udp::set_unsummed(socket.as_fd(), true))?;
            let added = self.add(Kind::Unsummed);
            let sent = self.round(added, false, stop);
            self.each_socket(|socket| udp::set_unsummed(socket.as_fd(), false))?;
            sent?;
        }
        let added = self.add(Kind::Segmented);
        self.round(added, true, stop)?;
        let after = self.errors()?;
        Ok(self.report(after.wrapping_sub(before)))
    }

    /// Has the element told a rate by `tell`, waits until it advises within a step of that or `tries` questions are over, and
    /// sends all codes.
    ///
    /// # Errors
    /// If `tell` fails, the far end is gone, `stop` is true, or the kernel refuses.
    pub fn tell(
        &mut self,
        code: u8,
        tries: u32,
        stop: &AtomicBool,
        tell: impl FnOnce(u8, BitRate) -> Result<()>,
    ) -> Result<()> {
        let told = rate(code).unwrap_or(BitRate(0));
        tell(code, told)?;
        let mut advised = UNKNOWN;
        for _ in 0..tries.max(1) {
            let asked =
                self.push(Kind::Told, 0, |number| [signal(UNKNOWN, [8, 0]), body(number, 40)].concat());
            self.round(asked..asked + 1, false, stop)?;
            advised = self.probes[asked].arrived.unwrap_or(UNKNOWN);
            if advised.abs_diff(code) <= 1 {
                break;
            }
            thread::sleep(PAUSE);
        }
        let first = self.probes.len();
        for code in 0..=UNKNOWN {
            self.push(Kind::Told, 0, |number| [signal(code, [8, 0]), body(number, 40)].concat());
        }
        self.round(first..self.probes.len(), false, stop)?;
        let lower = |probe: &&Probe| probe.arrived == code_of(&probe.payload).map(|code| code.min(advised));
        let right = self.probes[first..].iter().filter(lower).count() as u8;
        self.answers.push(Answer { told: code, advised, right });
        Ok(())
    }

    fn each_socket(&self, set: impl Fn(&UdpSocket) -> io::Result<()>) -> Result<()> {
        self.sockets.iter().try_for_each(set).context(|| "can not set an option of a socket".into())
    }

    /// Adds the datagrams of a kind; returns their places.
    fn add(&mut self, kind: Kind) -> std::ops::Range<usize> {
        let first = self.probes.len();
        let flows = self.sockets.len();
        let asks = || signal(UNKNOWN, [8, 0]);
        match kind {
            Kind::Codes => {
                for code in 0..=UNKNOWN {
                    for flow in 0..flows {
                        self.push(kind, flow, |number| [signal(code, [8, 0]), body(number, 40)].concat());
                    }
                }
            }
            Kind::Names => {
                for (place, names) in
                    [[8, 0], [0, 0], [0, 8], [20, 20], [255, 0], [255, 255]].iter().enumerate()
                {
                    for reserved in [0x40, 0] {
                        // From each flow once, then from one after the other.
                        for flow in (0..flows).filter(|flow| place == 0 || *flow == place % flows) {
                            self.push(kind, flow, |number| {
                                let mut bytes = [signal(UNKNOWN, *names), body(number, 300)].concat();
                                bytes[0] ^= reserved;
                                bytes
                            });
                        }
                    }
                }
            }
            Kind::Second => {
                for code in [0, 40, 63, 64, UNKNOWN] {
                    self.push(kind, 0, |number| {
                        [asks(), signal(code, [8, 0]), asks(), body(number, 200)].concat()
                    });
                }
            }
            Kind::Tunnels => {
                let is_v4 = self.config.peer.is_ipv4();
                for is_inner_v4 in [true, false] {
                    let inner = |number| inner(is_inner_v4, &[asks(), body(number, 100)].concat());
                    // VXLAN; QUIC without a packet of SCONE of its own, and with one.
                    self.push(kind, 0, |number| {
                        [&[8, 0, 0, 0, 0, 0, 7, 0, 2, 2, 2, 2][..], &inner(number)].concat()
                    });
                    self.push(kind, 0, |number| [body(number, 30), inner(number)].concat());
                    self.push(kind, 0, |number| [asks(), body(number, 30), inner(number)].concat());
                    // IP begins the datagram, as in tunnels with a port of their own.
                    self.push(kind, 0, |number| [inner(number), vec![u8::from(is_v4)]].concat());
                }
            }
            Kind::Malformed => {
                let whole = signal(UNKNOWN, [8, 5]);
                for length in 0..=whole.len() {
                    self.push(kind, 0, |_| whole[..length].to_vec());
                }
                for at in [START, START + 9] {
                    self.push(kind, 0, |number| {
                        let mut long = [whole.clone(), body(number, 20)].concat();
                        long[at] = 200;
                        long
                    });
                }
            }
            Kind::Others => {
                self.push(kind, 0, |number| {
                    let mut short = [asks(), body(number, 100)].concat();
                    short[0] &= 0x7f;
                    short
                });
                for bit in 0..31 {
                    self.push(kind, 0, |number| {
                        let mut other = [asks(), body(number, 100)].concat();
                        other[4 - bit / 8] ^= 1 << (bit % 8);
                        other
                    });
                }
                // QUIC's versions 1, 2 and 0, of which the last asks for others.
                for version in [1u32, 0x6b33_43cf, 0] {
                    self.push(kind, 0, |number| {
                        let head = [
                            &[0xc3][..],
                            &version.to_be_bytes(),
                            &[8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x41, 0],
                        ]
                        .concat();
                        let mut bytes = [head, asks(), body(number, 100)].concat();
                        bytes.resize(LARGEST, 0);
                        bytes
                    });
                }
                for size in [5, 100, LARGEST] {
                    self.push(kind, 0, |number| body(number, size));
                }
            }
            Kind::Unsummed | Kind::Segmented => {
                for code in (0..=UNKNOWN).step_by(4).chain([UNKNOWN]) {
                    self.push(kind, 0, |number| [signal(code, [8, 0]), body(number, 400)].concat());
                }
            }
            Kind::Told => {}
        }
        first..self.probes.len()
    }

    /// Adds a datagram of a flow with a number of its own; returns its place.
    fn push(&mut self, kind: Kind, flow: usize, make: impl FnOnce(u32) -> Vec<u8>) -> usize {
        let place = self.probes.len();
        let payload = make(place as u32);
        self.known.insert((flow, without_code(&payload)), place);
        self.probes.push(Probe { kind, flow, payload, arrived: None, is_changed: false });
        place
    }

    /// Sends datagrams until they came back or were tried often enough.
    fn round(&mut self, places: std::ops::Range<usize>, is_segmented: bool, stop: &AtomicBool) -> Result<()> {
        for window in places.collect::<Vec<_>>().chunks(WINDOW) {
            for _ in 0..self.config.tries.max(1) {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                let missing = |tester: &Self| -> Vec<usize> {
                    let is_missing = |place: &usize| {
                        tester.probes[*place].arrived.is_none() && !tester.probes[*place].is_changed
                    };
                    window.iter().copied().filter(is_missing).collect()
                };
                let left = missing(self);
                if left.is_empty() {
                    break;
                }
                self.send(&left, is_segmented)?;
                while !missing(self).is_empty() && self.wait()? {}
            }
        }
        Ok(())
    }

    /// Sends these datagrams, each by itself or all at once.
    fn send(&self, places: &[usize], is_segmented: bool) -> Result<()> {
        let what = || format!("can not send to {}", self.config.peer);
        let payloads = || places.iter().map(|place| &self.probes[*place]);
        if is_segmented && let Some(first) = payloads().next() {
            let socket = &self.sockets[first.flow];
            let size = first.payload.len() as u16;
            udp::set_segment(socket.as_fd(), size).context(what)?;
            let all: Vec<u8> = payloads().flat_map(|probe| probe.payload.iter().copied()).collect();
            let sent = socket.send(&all);
            udp::set_segment(socket.as_fd(), 0).context(what)?;
            return tolerated(sent).context(what);
        }
        for Probe { flow, payload, .. } in payloads() {
            tolerated(self.sockets[*flow].send(payload)).context(what)?;
        }
        Ok(())
    }

    /// Waits for what comes, and takes it; false if nothing came for so long.
    fn wait(&mut self) -> Result<bool> {
        let timeout = Timespec::try_from(self.config.wait).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let mut polled: Vec<_> =
            self.sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        let ready = match poll(&mut polled, Some(&timeout)) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => return Ok(true),
            Err(error) => return Err(error).context(|| "can not wait for datagrams".into()),
        };
        let mut bytes = vec![0; usize::from(u16::MAX)];
        for flow in 0..self.sockets.len() {
            loop {
                let size = match self.sockets[flow].recv(&mut bytes) {
                    Ok(size) => size,
                    Err(error) if is_nothing(&error) => break,
                    Err(error) => {
                        return Err(error).context(|| format!("nobody answers at {}", self.config.peer));
                    }
                };
                if let Some((&CAME, came)) = bytes[..size].strip_prefix(&MARK).and_then(<[u8]>::split_first) {
                    let came = came.to_vec();
                    self.take(flow, &came);
                }
            }
        }
        Ok(ready > 0)
    }

    /// Notes a datagram that arrived.
    fn take(&mut self, flow: usize, came: &[u8]) {
        if let Some(&place) = self.known.get(&(flow, without_code(came))) {
            let probe = &mut self.probes[place];
            if probe.arrived.is_some() {
                self.repeated += 1;
            }
            // Of several that arrived the one that is worst counts.
            let code = code_of(came).unwrap_or(UNKNOWN);
            probe.arrived = Some(probe.arrived.map_or(code, |before| before.max(code)));
            return;
        }
        // The one that is most like it, if anybody sent one of that length.
        let differences = |probe: &Probe| probe.payload.iter().zip(came).filter(|(a, b)| a != b).count();
        let like = self.probes.iter_mut().filter(|probe| {
            probe.flow == flow
                && probe.payload.len() == came.len()
                && probe.arrived.is_none()
                && !probe.is_changed
        });
        match like.min_by_key(|probe| differences(probe)) {
            Some(probe) => probe.is_changed = true,
            None => self.added += 1,
        }
    }

    /// Asks how many checksums were wrong at the far end.
    fn errors(&self) -> Result<u64> {
        let socket = &self.sockets[0];
        let what = || format!("nobody answers at {}", self.config.peer);
        let timeout = Timespec::try_from(self.config.wait).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let mut bytes = [0; 2048];
        for _ in 0..self.config.tries.max(1) {
            tolerated(socket.send(&MARK)).context(what)?;
            while poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0)
            {
                let size = socket.recv(&mut bytes).context(what)?;
                if let Some((&ERRORS, count)) =
                    bytes[..size].strip_prefix(&MARK).and_then(<[u8]>::split_first)
                    && let Ok(count) = count.try_into()
                {
                    return Ok(u64::from_be_bytes(count));
                }
            }
        }
        Err(io::Error::from(ErrorKind::TimedOut)).context(what)
    }

    fn report(self, checksum_errors: u64) -> Report {
        let mut kinds: BTreeMap<Kind, Counts> = BTreeMap::new();
        let mut told: Vec<Vec<u8>> = vec![vec![]; self.sockets.len()];
        for Probe { kind, flow, payload, arrived, is_changed } in &self.probes {
            let counts = kinds.entry(*kind).or_default();
            counts.sent += 1;
            counts.changed += u64::from(*is_changed);
            counts.lost += u64::from(arrived.is_none() && !is_changed);
            counts.arrived += u64::from(arrived.is_some());
            if let (Some(code), Some(left)) = (code_of(payload), *arrived) {
                counts.lowered += u64::from(left < code);
                counts.raised += u64::from(left > code);
                if left < code && *kind != Kind::Told {
                    told[*flow].push(left);
                }
            }
        }
        let flows = self.sockets.iter().zip(told).map(|(socket, mut codes)| {
            codes.sort_unstable();
            codes.dedup();
            let rate_bps = codes.first().and_then(|code| rate(*code)).map(|rate| rate.0);
            Advice { port: socket.local_addr().map_or(0, |address| address.port()), codes, rate_bps }
        });
        let flows: Vec<Advice> = flows.collect();
        let sum = |count: fn(&Counts) -> u64| kinds.values().map(count).sum::<u64>();
        let sent = sum(|counts| counts.sent);
        let claim = |that, holds, found| Claim { that, holds, found };
        let [raised, changed, lost, lowered] = [
            sum(|counts| counts.raised),
            sum(|counts| counts.changed),
            sum(|counts| counts.lost),
            sum(|counts| counts.lowered),
        ];
        let mut claims = vec![
            claim("somebody advises", lowered > 0, format!("{lowered} codes lowered")),
            claim("no code is raised", raised == 0, format!("{raised} raised")),
            claim("nothing else of a datagram changes", changed == 0, format!("{changed} of {sent} changed")),
            claim("nothing is added", self.added == 0, format!("{} added", self.added)),
            claim("every datagram arrives", lost == 0, format!("{lost} of {sent} lost")),
            claim("checksums are right", checksum_errors == 0, format!("{checksum_errors} wrong")),
        ];
        if !self.answers.is_empty() {
            let near = self.answers.iter().filter(|answer| answer.told.abs_diff(answer.advised) <= 1).count();
            let right: u32 = self.answers.iter().map(|answer| u32::from(answer.right)).sum();
            let (rates, pairs) = (self.answers.len(), 128 * self.answers.len() as u32);
            claims.push(claim(
                "the advice is within a step of the rate that was told",
                near == rates,
                format!("{near} of {rates}"),
            ));
            claims.push(claim(
                "the lower of both codes arrives",
                right == pairs,
                format!("{right} of {pairs}"),
            ));
        }
        Report {
            peer: self.config.peer.to_string(),
            kinds,
            flows,
            answers: self.answers,
            added: self.added,
            repeated: self.repeated,
            checksum_errors,
            claims,
        }
    }
}

/// A full queue is a loss like any other.
fn tolerated(sent: io::Result<usize>) -> io::Result<()> {
    match sent {
        Err(error) if !is_nothing(&error) && error.raw_os_error() != Some(libc::ENOBUFS) => Err(error),
        _ => Ok(()),
    }
}

/// A packet of SCONE with this code, and names of the connection of so many bytes.
fn signal(code: u8, names: [u8; 2]) -> Vec<u8> {
    let mut bytes = vec![0xc0 | code >> 1];
    bytes.extend((VERSION | u32::from(code & 1) << 31).to_be_bytes());
    for length in names {
        bytes.push(length);
        bytes.resize(bytes.len() + usize::from(length), 0xda);
    }
    bytes
}

/// A packet of QUIC with a short header, of so many bytes, 5 at least, which its number tells from all others.
fn body(number: u32, size: usize) -> Vec<u8> {
    let mut bytes = vec![0x47];
    bytes.extend(number.to_be_bytes());
    bytes.extend((bytes.len()..size.max(5)).map(|at| (at * 37) as u8));
    bytes
}

/// A datagram with its IP header, as tunnels carry it.
fn inner(is_v4: bool, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let mut bytes = vec![];
    if is_v4 {
        bytes.extend([0x45, 0]);
        bytes.extend((20 + length).to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    } else {
        bytes.extend([0x60, 0, 0, 0]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([17, 64]);
        bytes.extend([0xfd; 32]);
    }
    bytes.extend([0x11, 0x51, 1, 0xbb]);
    bytes.extend(length.to_be_bytes());
    bytes.extend([0x12, 0x34]);
    bytes.extend(payload);
    bytes
}

/// Returns the code of the packet of SCONE with which a datagram begins, by what the draft's pseudocode looks at.
fn code_of(payload: &[u8]) -> Option<u8> {
    let (&[first, rest @ ..], _) = payload.split_first_chunk::<START>()?;
    let version = u32::from_be_bytes(rest);
    (first & 0x80 != 0 && version & !(1 << 31) == VERSION)
        .then_some((first & 0x3f) << 1 | (version >> 31) as u8)
}

/// Returns the bytes that an element may not change.
fn without_code(payload: &[u8]) -> Vec<u8> {
    let mut bytes = payload.to_vec();
    if code_of(payload).is_some() {
        bytes[0] &= 0xc0;
        bytes[1] &= 0x7f;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first two bytes, by docs/design/modern.md 9.2.
    #[test]
    fn codes_are_bytes_that_a_packet_begins_with() {
        for (code, bytes) in [
            (0, [0xc0, 0x6f]),
            (59, [0xdd, 0xef]),
            (60, [0xde, 0x6f]),
            (126, [0xff, 0x6f]),
            (127, [0xff, 0xef]),
        ] {
            let packet = signal(code, [8, 0]);
            assert_eq!((&packet[..2], packet.len()), (&bytes[..], 15));
            assert_eq!(code_of(&packet), Some(code));
        }
    }

    /// A tester whose datagrams go through this function instead of a network.
    fn judged(mut element: impl FnMut(&[u8]) -> Vec<Vec<u8>>) -> Report {
        let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
        let peer = sink.local_addr().unwrap();
        let socket = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut tester = Tester {
            config: Config { peer, flows: 2, wait: NAP, tries: 1 },
            sockets: vec![socket(), socket()],
            probes: vec![],
            known: BTreeMap::new(),
            answers: vec![],
            added: 0,
            repeated: 0,
        };
        use Kind::{Codes, Malformed, Names, Others, Second, Segmented, Tunnels, Unsummed};
        for kind in [Names, Codes, Second, Tunnels, Malformed, Others, Unsummed, Segmented] {
            for place in tester.add(kind) {
                let Probe { flow, payload, .. } = &tester.probes[place];
                let flow = *flow;
                for came in element(&payload.clone()) {
                    tester.take(flow, &came);
                }
            }
        }
        assert_eq!(tester.known.len(), tester.probes.len(), "two are alike");
        assert!(tester.probes.iter().all(|probe| probe.payload.len() <= LARGEST));
        tester.report(0)
    }

    /// Returns what an element sends on that follows the draft's pseudocode and advises this code.
    fn lowered(payload: &[u8], target: u8) -> Vec<u8> {
        let mut bytes = payload.to_vec();
        if code_of(payload).is_some_and(|code| target < code) {
            bytes[0] = bytes[0] & 0xc0 | target >> 1;
            bytes[1] = bytes[1] & 0x7f | target << 7;
        }
        bytes
    }

    fn failing(report: &Report) -> Vec<&'static str> {
        report.claims.iter().filter(|claim| !claim.holds).map(|claim| claim.that).collect()
    }

    #[test]
    fn an_element_by_the_draft_passes() {
        let report = judged(|payload| vec![lowered(payload, 61)]);
        assert_eq!(failing(&report), Vec::<&str>::new(), "{report:?}");
        assert!(report.flows.iter().all(|flow| flow.codes == [61]), "{report:?}");
        assert_eq!(
            report.kinds[&Kind::Codes],
            Counts { sent: 256, arrived: 256, lowered: 132, ..Counts::default() }
        );
        assert_eq!(report.kinds[&Kind::Others].lowered, 0);
    }

    #[test]
    fn every_wrong_element_fails_by_its_rule() {
        let found = |element: &mut dyn FnMut(&[u8]) -> Vec<Vec<u8>>| failing(&judged(element));
        assert_eq!(found(&mut |payload| vec![payload.to_vec()]), ["somebody advises"]);
        // Writes its own code whatever came.
        let mut writes = |payload: &[u8]| {
            let mut bytes = lowered(payload, 61);
            if code_of(payload).is_some() {
                bytes[0] = bytes[0] & 0xc0 | 61 >> 1;
                bytes[1] = bytes[1] & 0x7f | 61 << 7;
            }
            vec![bytes]
        };
        assert_eq!(found(&mut writes), ["no code is raised"]);
        // Lowers the second one, too.
        let mut both = |payload: &[u8]| {
            let mut bytes = lowered(payload, 61);
            if let Some(second) = bytes.get(15..).map(<[u8]>::to_vec) {
                bytes.splice(15.., lowered(&second, 61));
            }
            vec![bytes]
        };
        assert_eq!(found(&mut both), ["nothing else of a datagram changes"]);
        // Sets the reserved bit.
        let mut reserved = |payload: &[u8]| {
            let mut bytes = lowered(payload, 61);
            if code_of(payload).is_some() {
                bytes[0] |= 0x40;
            }
            vec![bytes]
        };
        assert_eq!(found(&mut reserved), ["nothing else of a datagram changes"]);
        // Sends a packet of its own before each.
        let mut adds = |payload: &[u8]| {
            let own = [signal(61, [8, 0]), body(u32::MAX, 9)].concat();
            vec![lowered(payload, 61), own]
        };
        assert!(found(&mut adds).contains(&"nothing is added"));
        // Puts a packet of SCONE before those that have none.
        let mut puts = |payload: &[u8]| match code_of(payload) {
            Some(_) => vec![lowered(payload, 61)],
            None => vec![[signal(61, [8, 0]), payload.to_vec()].concat()],
        };
        assert!(!found(&mut puts).is_empty());
        // Drops what it does not know.
        let mut drops =
            |payload: &[u8]| if code_of(payload).is_some() { vec![lowered(payload, 61)] } else { vec![] };
        assert_eq!(found(&mut drops), ["every datagram arrives"]);
    }
}

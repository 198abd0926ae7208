//! Policing of senders that lie to a link or do not listen to it (docs/design/protocols.md 13.4): a link law trusts what
//! headers state, and so pays who overstates.
//!
//! A link measures each flow that it knows, in windows of some round trips, and compares. What a flow states of its
//! packets' spacing may add up to the time that passes and an eighth more; what is beyond counts for nothing. A flow that
//! keeps more than its share of a full link, and more than it was granted, for several windows is held to the share: its
//! other packets are dropped, until it has kept to the share by itself for as long. So is a flow that no header tells
//! anything, if it keeps more than twice the share. Nobody is banned, and a burst, idleness or losses are no offence. Nor is
//! one packet in each round trip that a flow states, which is the least that a flow with a window can send.
//!
//! The share is what a flow would have if all were served equally and those that want less had what they want: max-min, as
//! the rate alpha of CSFQ (Stoica, Shenker and Zhang, SIGCOMM 1998). Rates alone do not tell it, for honest flows have made
//! way. So flows count as wanting more when their headers ask for more, or when a queue has no room for their packets.
//!
//! Records of flows are in a table that does not grow, whose buckets the caller keeps ([`Bucket`]); what comes without a
//! record is one flow together. A flow keeps its record while it sends, so that nobody gets rid of his, or of another one's,
//! by names that he makes up. Nothing here bans, remembers addresses, or looks at what ACKs bring back: a sender that gets more
//! than was granted shows it by its rate.

use core::mem::offset_of;

use super::Packet;
use super::xcp::Header;
use crate::units::{Bytes, Duration, Rate, SECOND, Time, mul_div};

/// Round trips in a window of measurement. With fewer, one burst more or less in a window makes much of its rate.
const ROUND_TRIPS: u64 = 4;
/// Limits of a window's length. A stated round trip may be a lie, too.
const WINDOW: (u64, u64) = (SECOND / 5, 2 * SECOND);
/// Window of a flow that states no round trip.
const PLAIN_WINDOW: u64 = SECOND / 5 * 2;
/// Time between two estimates of the share.
const PERIOD: u64 = SECOND;
/// Packets in a window below which its rate says nothing (docs/design/protocols.md 13.4).
const EVIDENCE: u32 = 8;
/// Windows after which an offender is held, and the most that count.
const HELD: u8 = 6;
const MOST: u8 = 12;
/// The longest time between two packets for which a flow counts that waits to repeat a lost one: three timeouts of TCP.
const STARVED: u64 = 8 * SECOND;
/// Part of its time by which a flow's stated spacing may exceed it: one in so many.
const SLACK: u64 = 8;
/// The most spacing that a flow may state at once, 2^-28 s: a second's.
const CREDIT: u64 = 1 << 28;
/// Part of a share that is noise of a rate's measurement: one in so many.
const NOISE: u64 = 8;
/// Part of what is beyond its grants that a flow is forgiven in each window: one in so many.
const FORGIVEN: u64 = 8;
/// Part of its rate that a flow may have beyond what it was granted: one in so many.
const BEYOND: u64 = 4;
/// Time without packets after which a flow's record may be another's. An offender is forgiven as soon: that is twenty
/// windows of the shortest round trips.
const IDLE: Duration = Duration(10 * SECOND);
/// Loss of a record that is in use ([`Record::loss`]).
pub const IN_USE: u64 = u64::MAX;
/// Records in a bucket.
pub const WAYS: usize = 8;

/// A packet that arrives at a link, or several of one flow that come as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Arrival {
    /// Time of the arrival.
    pub now: Time,
    /// Capacity of the link.
    pub capacity: Rate,
    /// Bytes of all packets.
    pub size: Bytes,
    /// Number of packets.
    pub packets: u32,
}

/// Record of a flow, 88 bytes that a link remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// Beginning of the window.
    began: Time,
    /// Last packet.
    seen: Time,
    /// Bytes in the window.
    bytes: u64,
    /// Sum of what was granted in the window, B/s.
    granted: i64,
    /// The same in the window before.
    granted_before: i64,
    /// Rate in the window before, B/s.
    rate: u64,
    /// Rate beyond what was granted, B/s.
    beyond: u64,
    /// Spacing that the flow may still state, 2^-28 s.
    credit: u64,
    /// Bytes that it may still send while it is held.
    tokens: u64,
    /// Packets in the window.
    packets: u32,
    /// Round trip that the flow stated last, 2^-28 s; 0: none.
    rtt: u32,
    /// Windows in which the flow offended, less those in which it did not.
    score: u8,
    is_held: bool,
    /// The flow asked for more in this window.
    wants: bool,
    /// Windows that were closed, up to two.
    windows: u8,
    /// A queue dropped a packet of this window.
    is_starved: bool,
    pad: [u8; 3],
}

impl Record {
    /// Creates the record of a flow whose first packet comes now, so large: it may state nothing yet.
    #[inline]
    pub fn first(now: Time, size: Bytes) -> Self {
        Self { began: now, seen: now, bytes: size.0, packets: 1, ..Self::default() }
    }

    /// Returns the time of the flow's last packet.
    #[inline]
    pub const fn seen(&self) -> Time {
        self.seen
    }

    /// Returns true while the flow is held to its share.
    #[inline]
    pub const fn is_held(&self) -> bool {
        self.is_held
    }

    /// Returns true if a second packet came: one alone is no evidence that anybody is there.
    #[inline]
    pub const fn is_established(&self) -> bool {
        self.packets > 1 || self.windows > 0
    }

    /// Returns true if a window had at most one packet in each round trip that the flow states, give or take an eighth: a
    /// flow cannot send less, whatever its share is.
    #[inline(always)]
    fn sends_least(&self, elapsed: Duration) -> bool {
        // In 2^-28 s, of which 77/256 are a nanosecond and an eighth. No window has 2^31 packets, and none lasts 2^57 ns.
        (self.packets as u64 & 0x7fff_ffff) * self.rtt as u64 <= (elapsed.0 >> 8).wrapping_mul(77)
    }

    /// Byte of a record's image at which [`Record::is_held`] is, for who reads images of kernels.
    pub const HELD_AT: usize = offset_of!(Self, is_held);

    /// Bytes of a record's image at which the rate of the flow's last window begins, B/s.
    pub const RATE_AT: usize = offset_of!(Self, rate);

    /// Notes what a packet of the flow was granted, B/s, as it leaves.
    #[inline]
    pub fn note_grant(&mut self, delta: i32) {
        self.granted = self.granted.saturating_add(delta as i64);
    }

    /// Notes that a packet of the flow found no room in a queue: it wants more than it has, since when it sent last. Who can
    /// not even begin says so by nothing else.
    #[inline]
    pub fn note_drop(&mut self) {
        self.is_starved = true;
    }

    /// Notes what a packet of the flow carries away as it leaves.
    #[inline]
    pub fn note_departure(&mut self, packet: &impl Packet) {
        if let Some(header) = packet.header::<Header>() {
            self.note_grant(header.delta);
        }
    }

    /// Returns how much would be lost, if another flow had the record of this one: nothing of nobody's, then of the idle and of
    /// those that came once, and the less the longer ago; [`IN_USE`] of all others.
    #[inline]
    pub fn loss(&self, flow: u64, now: Time) -> u64 {
        let kind = match flow {
            0 => return 0,
            _ if now - self.seen > IDLE => 0,
            _ if !self.is_established() => 1 << 63,
            _ => return IN_USE,
        };
        kind | ((self.seen.0 & u64::MAX >> 2) + 1)
    }

    /// Length of the window, from what the flow states.
    #[inline]
    fn window(&self) -> u64 {
        if self.rtt == 0 {
            return PLAIN_WINDOW;
        }
        let rtt = Duration::from_header(self.rtt).0;
        (rtt * ROUND_TRIPS).min(WINDOW.1).max(WINDOW.0)
    }
}

/// Flows whose names fall together, each with its record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Bucket {
    /// Names of the flows; 0: none has that record.
    pub flows: [u64; WAYS],
    /// Records of these flows, at the same places.
    pub records: [Record; WAYS],
}

impl Bucket {
    /// Returns the place of a flow's record, if it has one.
    #[inline]
    pub fn find(&self, flow: u64) -> Option<usize> {
        self.flows.iter().position(|name| *name == flow)
    }

    /// Gives a flow a record, as its first packet comes now, so large; `None`: all of the first `ways` are in use.
    #[inline]
    pub fn begin(&mut self, ways: usize, flow: u64, now: Time, size: Bytes) -> Option<usize> {
        let all = self.flows.iter().zip(&self.records).take(ways).enumerate();
        let losses = all.map(|(at, (name, record))| (record.loss(*name, now), at));
        // The first of several.
        let (_, at) = losses.min_by_key(|(loss, _)| *loss).filter(|(loss, _)| *loss < IN_USE)?;
        self.give(at, flow, now, size);
        Some(at)
    }

    /// Gives a flow the record at this place, as its first packet comes now, so large.
    #[inline]
    pub fn give(&mut self, at: usize, flow: u64, now: Time, size: Bytes) {
        if let (Some(name), Some(record)) = (self.flows.get_mut(at), self.records.get_mut(at)) {
            *name = flow;
            *record = Record::first(now, size);
        }
    }
}

/// Counts of a link's policing, from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// Packets whose stated spacing was lowered.
    pub clamped: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Times that a flow began to be held.
    pub offenders: u64,
}

impl Counts {
    /// Returns what was counted after `before`.
    #[inline]
    pub const fn since(self, before: Self) -> Self {
        Self {
            clamped: self.clamped - before.clamped,
            dropped: self.dropped - before.dropped,
            offenders: self.offenders - before.offenders,
        }
    }
}

/// Policing at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Police {
    // Counts and share are the first words, where who reads a kernel's image looks.
    counts: Counts,
    /// Max-min share, B/s.
    share: u64,
    /// Beginning of the period.
    began: Time,
    /// Bytes that came in the period.
    arrived: u64,
    /// Time of windows of flows that want a share, ns, forgotten by a quarter in each period.
    wanting: u64,
    /// Bytes in windows of flows that have what they want, likewise.
    content: u64,
    /// Periods, likewise, ns.
    time: u64,
    /// Packets of flows that have no record, as one flow.
    unknown: Record,
    is_full: bool,
}

impl Police {
    /// Creates the policing of a link that is idle.
    #[inline]
    pub fn new() -> Self {
        Self {
            counts: Counts::default(),
            share: u64::MAX,
            began: Time(0),
            arrived: 0,
            wanting: 0,
            content: 0,
            time: 0,
            unknown: Record::default(),
            is_full: false,
        }
    }

    /// Returns the counts.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the share to which an offender is held; the largest rate before there is an estimate.
    pub const fn share(&self) -> Rate {
        Rate(self.share)
    }

    /// Judges a packet before anything else is done with it, of a flow with this record, or of one that has none or begins one.
    /// False: it is to be dropped. May lower the X of its header, which has zeros if the packet has none.
    #[inline]
    pub fn judge(&mut self, arrival: &Arrival, flow: Option<&mut Record>, header: &mut Header) -> bool {
        if arrival.now - self.began >= Duration(PERIOD) {
            self.close(arrival.now, arrival.capacity);
        }
        self.arrived = self.arrived.saturating_add(arrival.size.0);
        if let Some(flow) = flow {
            return self.judge_flow(arrival, flow, header);
        }
        let mut unknown = self.unknown;
        unknown.rtt = 0;
        // Nobody knows what these flows were granted, so they are as those that no header tells.
        let mut seen = Header { rtt: 0, delta: 0, ..*header };
        let passes = self.judge_flow(arrival, &mut unknown, &mut seen);
        header.x = seen.x;
        self.unknown = unknown;
        passes
    }

    /// Judges a packet by the header that it carries, as [`Police::judge`].
    #[inline]
    pub fn judge_packet(
        &mut self,
        now: Time,
        capacity: Rate,
        flow: Option<&mut Record>,
        packet: &mut impl Packet,
    ) -> bool {
        let arrival = Arrival { now, capacity, size: packet.size(), packets: 1 };
        let header = packet.header::<Header>();
        let mut seen = header.unwrap_or_default();
        let passes = self.judge(&arrival, flow, &mut seen);
        if header.is_some() {
            packet.set_header(seen);
        }
        passes
    }

    fn judge_flow(&mut self, arrival: &Arrival, flow: &mut Record, header: &mut Header) -> bool {
        let Arrival { now, size, packets, .. } = *arrival;
        let passed = now - flow.seen;
        flow.seen = now;
        if header.rtt > 0 {
            flow.rtt = header.rtt;
            flow.wants |= header.delta > 0;
        }
        let window = flow.window();
        if now - flow.began >= Duration(window) {
            self.close_window(now, flow, window);
        }
        flow.bytes = flow.bytes.saturating_add(size.0);
        flow.packets = flow.packets.saturating_add(packets);
        if flow.is_held && self.share < u64::MAX {
            // A super-packet can be longer than any packet, and has to have its turn, too.
            let longest = if size.0 > u16::MAX as u64 { size.0 } else { u16::MAX as u64 };
            let most = mul_div(self.share, window / 4, SECOND).saturating_add(longest);
            flow.tokens = flow.tokens.saturating_add(mul_div(self.share, passed.0, SECOND)).min(most);
            if flow.tokens < size.0 {
                // What is passed in fractions of a byte between two packets is lost, in the link's favour.
                self.counts.dropped += packets as u64;
                return false;
            }
            flow.tokens -= size.0;
        }
        let earned = passed.to_header() as u64;
        flow.credit = flow.credit.saturating_add(earned + earned / SLACK).min(CREDIT);
        let allowed = (header.x as u64).min(flow.credit);
        flow.credit -= allowed;
        if allowed < header.x as u64 {
            self.counts.clamped += packets as u64;
        }
        header.x = allowed as u32;
        true
    }

    /// Closes a window of a flow: what it was, and what the flow is now.
    fn close_window(&mut self, now: Time, flow: &mut Record, window: u64) {
        let elapsed = now - flow.began;
        let rate = Bytes(flow.bytes).per(elapsed).0;
        let is_idle = elapsed.0 > 2 * window;
        let is_told = flow.rtt > 0;
        // A grant takes a round trip to show, so half of it shows in this window and half in the next.
        let granted = (flow.granted + flow.granted_before) / 2;
        // May grow by a half more than granted, and must fall by half of it: ACKs are lost, and windows are no averages.
        let due = if granted > 0 { granted + granted / 2 } else { granted / 2 };
        if flow.windows > 0 && !is_idle {
            let beyond = flow.beyond as i64 + rate as i64 - flow.rate as i64 - due;
            let beyond = beyond.max(0) as u64;
            flow.beyond = beyond - beyond / FORGIVEN;
        } else {
            flow.beyond = 0;
        }
        // Nobody tells flows without a header their share, and those of TCP swing about it.
        let noise = if is_told { self.share / NOISE } else { self.share };
        let is_above = self.is_full && rate > self.share.saturating_add(noise);
        let is_bad = is_above
            && !is_idle
            && flow.packets >= EVIDENCE
            && (!is_told || flow.beyond > rate / BEYOND && !flow.sends_least(elapsed));
        if is_bad {
            flow.score = (flow.score + 1).min(MOST);
            if flow.score >= HELD && !flow.is_held {
                flow.is_held = true;
                flow.tokens = 0;
                self.counts.offenders += 1;
            }
        } else if !is_above {
            flow.score = flow.score.saturating_sub(1);
            flow.is_held &= flow.score > 0;
        }
        // The share of flows that want more or have more. Who waits to repeat what was lost wants all the time.
        if flow.is_starved {
            self.wanting = self.wanting.saturating_add(elapsed.0.min(STARVED));
        } else if flow.wants || rate >= self.share {
            self.wanting = self.wanting.saturating_add(elapsed.0.min(2 * window));
        } else {
            self.content = self.content.saturating_add(flow.bytes);
        }
        flow.granted_before = flow.granted;
        flow.rate = rate;
        flow.began = now;
        flow.windows = (flow.windows + 1).min(2);
        (flow.bytes, flow.packets, flow.granted) = (0, 0, 0);
        (flow.wants, flow.is_starved) = (false, false);
    }

    /// Closes a period: estimates the share anew.
    fn close(&mut self, now: Time, capacity: Rate) {
        let elapsed = now - self.began;
        let input = Bytes(self.arrived).per(elapsed);
        self.time = self.time.saturating_add(elapsed.0.min(2 * PERIOD));
        self.is_full = input.0 >= capacity.0 - capacity.0 / 10;
        let all = mul_div(capacity.0, self.time, SECOND);
        let left = all.saturating_sub(self.content).max(all / 16);
        let share = if self.wanting == 0 { capacity.0 } else { mul_div(left, SECOND, self.wanting) };
        self.share = share.min(capacity.0).max(1);
        self.wanting -= self.wanting / 4;
        self.content -= self.content / 4;
        self.time -= self.time / 4;
        self.arrived = 0;
        self.began = now;
    }
}

impl Default for Police {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

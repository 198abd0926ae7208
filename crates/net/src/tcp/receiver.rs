//! The receiving side: order, acknowledgments, feedback.

use alloc::boxed::Box;
use congestlab_core::law::{Echo, Heard, Lie, Numbers, Packet as _, Receiving, Segment};
use congestlab_core::units::{Bytes, Duration, Time};

use super::config::Advertise;
use super::ranges::Ranges;
use super::window::Window;
use super::{Config, Connection, absolute, in_bytes};
use crate::packet::{Kind, Packet, SACK_BLOCKS, flag, stamp};

/// How long the acknowledgment of a single segment waits for a second one. RFC 5681 §4.2 allows
/// 500 ms; ns-2's 100 ms stay below every retransmission timeout in use, 200 ms included.
const DELAYED_ACK: Duration = Duration(100_000_000);

/// The same of Linux while data keeps coming (TCP_DELACK_MIN).
const LINUX_DELAYED_ACK: Duration = Duration(40_000_000);

/// Segments that Linux acknowledges at once at the beginning (TCP_MAX_QUICKACKS).
const LINUX_QUICK: u64 = 16;

/// Segments that follow each other: the first, and the one after the last.
type Block = (u64, u64);

/// Segments received beyond a gap; nothing is held while there is none.
#[derive(Clone, Debug, Default)]
struct OutOfOrder {
    held: Ranges,
    /// Bytes of the segments in `held`.
    held_bytes: u64,
    /// The blocks reported, most recent first (RFC 2018 §4); an empty one is none. One that another has grown
    /// into is there twice.
    recent: [Block; SACK_BLOCKS],
}

/// The receiver of one flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    echo: Echo,
    /// First segment not received (RCV.NXT).
    next: u64,
    /// TS.Recent (RFC 7323 §4.3).
    recent: Time,
    /// When a delayed ACK is due.
    deadline: Time,
    /// `None`: as it began.
    rest: Option<Box<Rest>>,
    flow: u32,
    /// Sequence number of segment 0.
    base: u32,
    /// The law has a part for receivers: else `echo` need not be called.
    has_echo: bool,
    /// Congestion was experienced, and the sender has not said that it knows (RFC 3168 §6.1.3).
    has_mark: bool,
    /// Segments came beyond a gap.
    has_gap: bool,
    /// True if packets have headers, or the window is not as configured: `rest` has to be asked for every packet.
    is_special: bool,
    /// Each packet is answered at once, and nothing but headers of laws is in it: no marks, no delays, no window of its own.
    is_prompt: bool,
    /// Packets sent, modulo 2^16: each transmission has a number of its own.
    sent: u16,
    received_packets: u64,
}

/// State that few receivers need, or seldom.
#[derive(Clone, Debug, Default)]
struct Rest {
    beyond: OutOfOrder,
    /// Headers of its packets, for laws that write into them.
    connection: Option<Connection>,
    /// `None`: the window stays as configured.
    window: Option<Window>,
    duplicates: u32,
    outside: Outside,
    /// The receiver lies about what links say.
    lie: Option<Lie>,
}

/// Counts of a receiver outside [`Measure`](super::Measure).
#[derive(Clone, Copy, Debug, Default)]
struct Outside {
    /// Counts before the measured time.
    before: ReceiverCounts,
    /// Bytes that first arrived after the measured time.
    later_bytes: u64,
}

/// Counts of a receiver over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounts {
    /// Data packets that arrived, duplicates included.
    pub received_packets: u64,
    /// Bytes of segments that arrived for the first time, in any order.
    pub arrived_bytes: u64,
    /// Bytes delivered in order.
    pub delivered_bytes: u64,
    /// Repeated data packets whose segment had already arrived: retransmissions for nothing.
    pub spurious_retransmits: u64,
}

/// Counts of a receiver in the run and while measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Counts in the whole run.
    pub total: ReceiverCounts,
    /// Counts from the beginning of [`Measure`](super::Measure) to the end of the run.
    pub measured: ReceiverCounts,
    /// Bytes of segments that first arrived within [`Measure`](super::Measure), in any order.
    pub measured_bytes: u64,
}

impl Receiver {
    /// Creates the receiver of a flow whose sender has the same `isn`.
    pub fn new(config: &Config, flow: u32, isn: u32) -> Self {
        let echo = Echo::new(&config.law, in_bytes(config, 1));
        let has_window = config.advertise != Advertise::Always;
        let is_special = has_window || config.lie.is_some();
        let window = has_window.then(Window::default);
        let rest = || Box::new(Rest { window, lie: config.lie, ..Rest::default() });
        Self {
            has_echo: echo.takes_part(),
            echo,
            next: 0,
            recent: Time::ZERO,
            deadline: Time::NEVER,
            rest: is_special.then(rest),
            flow,
            base: isn.wrapping_add(1),
            has_mark: false,
            has_gap: false,
            is_special,
            is_prompt: !(is_special
                || config.delayed_ack
                || config.ecn
                || config.ns2
                || config.linux.is_some()),
            sent: 0,
            received_packets: 0,
        }
    }

    /// Gives the receiver the headers of its packets, for laws that write into them.
    #[must_use]
    pub fn with_headers(mut self, connection: Connection) -> Self {
        self.rest.get_or_insert_default().connection = Some(connection);
        self.is_special = true;
        self.is_prompt = false;
        self
    }

    /// Returns everything that the receiver counted.
    pub fn stats(&self, config: &Config) -> ReceiverStats {
        let total = self.counts(config);
        let Outside { before, later_bytes } =
            self.rest.as_ref().map_or(Outside::default(), |rest| rest.outside);
        ReceiverStats {
            total,
            measured: ReceiverCounts {
                received_packets: total.received_packets - before.received_packets,
                arrived_bytes: total.arrived_bytes - before.arrived_bytes,
                delivered_bytes: total.delivered_bytes - before.delivered_bytes,
                spurious_retransmits: total.spurious_retransmits - before.spurious_retransmits,
            },
            measured_bytes: total.arrived_bytes - before.arrived_bytes - later_bytes,
        }
    }

    fn counts(&self, config: &Config) -> ReceiverCounts {
        let delivered_bytes = config.bytes_of(self.next).0;
        ReceiverCounts {
            received_packets: self.received_packets,
            arrived_bytes: delivered_bytes + self.rest.as_ref().map_or(0, |rest| rest.beyond.held_bytes),
            delivered_bytes,
            spurious_retransmits: self.rest.as_ref().map_or(0, |rest| rest.duplicates.into()),
        }
    }

    #[inline(always)]
    fn window_mut(&mut self) -> Option<&mut Window> {
        let rest = if self.is_special { self.rest.as_deref_mut() } else { None };
        rest.and_then(|rest| rest.window.as_mut())
    }

    /// Counts a packet that came outside the measured time; `arrived` bytes of it came for the first time.
    #[cold]
    fn note_outside(&mut self, config: &Config, now: Time, arrived: u64) {
        let counts = self.counts(config);
        let outside = &mut self.rest.get_or_insert_default().outside;
        if now <= config.measure.from {
            outside.before = counts;
        } else {
            outside.later_bytes += arrived;
        }
    }

    /// Returns when a delayed acknowledgment, or a window update, is due; [`Time::NEVER`]: none is.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        self.deadline
    }

    /// Returns the delayed acknowledgment, if it is due.
    pub fn handle_deadline(&mut self, config: &Config, now: Time) -> Option<Packet> {
        (now >= self.deadline).then(|| {
            let mut answer = Packet::default();
            self.acknowledge::<false>(config, now, Kind::Ack, &mut answer);
            answer
        })
    }

    /// Takes a SYN, data or a window probe that arrived; returns the answer unless it comes later.
    pub fn handle_packet(&mut self, config: &Config, now: Time, packet: &Packet) -> Option<Packet> {
        let mut answer = Packet::default();
        self.answer_into(config, now, packet, &mut answer).then_some(answer)
    }

    /// Takes what arrived, as [`Receiver::handle_packet`], and puts the answer into `answer`; false: there is none, and
    /// `answer` has no meaning.
    pub fn answer_into(&mut self, config: &Config, now: Time, packet: &Packet, answer: &mut Packet) -> bool {
        match packet.kind {
            Kind::Data => {
                let is_plain = self.is_prompt
                    && !self.has_gap
                    && packet.seq == self.base.wrapping_add(self.next as u32)
                    && packet.flags & (flag::CWR | flag::LOW_PRIORITY) == 0;
                return if is_plain {
                    self.handle_data::<true>(config, now, packet, answer)
                } else {
                    self.handle_data::<false>(config, now, packet, answer)
                };
            }
            Kind::Syn => {
                self.recent = packet.sent_at(now);
                if packet.flags & flag::HEADER != 0 {
                    let special = asked(self.is_special, &self.rest);
                    let forged = special.and_then(|rest| rest.lie).map(|lie| forged(config, lie, packet));
                    self.echo.on_data(
                        &config.law,
                        forged.as_ref().unwrap_or(packet),
                        Around { config, now, next: 0, came: None, special },
                    );
                }
                self.acknowledge::<false>(config, now, Kind::SynAck, answer);
            }
            Kind::WindowProbe => self.acknowledge::<false>(config, now, Kind::Ack, answer),
            Kind::Ack | Kind::SynAck | Kind::Datagram | Kind::Control | Kind::Probe => return false,
        }
        true
    }

    /// `PLAIN`: the segment expected next comes to a receiver that is prompt and has no gap, with nothing to say but its
    /// header. Most do, so what follows from that is not asked again.
    #[inline(always)]
    fn handle_data<const PLAIN: bool>(
        &mut self,
        config: &Config,
        now: Time,
        packet: &Packet,
        answer: &mut Packet,
    ) -> bool {
        self.received_packets += 1;
        let special = if PLAIN { None } else { asked(self.is_special, &self.rest) };
        let forged = special.and_then(|rest| rest.lie).map(|lie| forged(config, lie, packet));
        let packet = forged.as_ref().unwrap_or(packet);
        let index = if PLAIN { Some(self.next) } else { absolute(packet.seq, self.base, self.next) };
        let heard = if self.has_echo { self.hear::<PLAIN>(config, now, packet, index) } else { Heard::Taken };
        if heard == Heard::Unreadable {
            return false;
        }
        if !PLAIN {
            self.has_mark &= packet.flags & flag::CWR == 0;
            self.has_mark |= config.ecn && packet.flags & flag::ECN_MASK == flag::CE;
        }

        let is_waiting = !PLAIN && self.deadline != Time::NEVER;
        // RFC 7323 §4.3: what an ACK echoes comes from the last segment in sequence; if ACKs are
        // delayed, from the first one that it acknowledges. ns-2 echoes the packet's own.
        let is_in_sequence = PLAIN || index.is_none_or(|index| index <= self.next) && !is_waiting;
        if (!PLAIN && config.ns2) || (is_in_sequence && packet.sent_at(now) > self.recent) {
            self.recent = packet.sent_at(now);
        }
        let is_plain = PLAIN || index == Some(self.next) && !self.has_gap;
        let (arrived, delivered) = if is_plain {
            self.next += 1;
            (u64::from(packet.size), u64::from(packet.size))
        } else {
            let before = self.next;
            let is_new = self.handle_disorder(config, index, packet);
            if let Some(segment) = index.filter(|_| !is_new && config.linux.is_some()) {
                self.answer_duplicate(config, now, segment, answer);
                return true;
            }
            let arrived = index.filter(|_| is_new).map_or(0, |index| config.size_of(index).into());
            (arrived, (config.bytes_of(self.next) - config.bytes_of(before)).0)
        };
        if !PLAIN && let Some(window) = self.window_mut() {
            window.deliver(config, now, delivered);
        }
        if config.measure.is_outside(now) {
            self.note_outside(config, now, arrived);
        }
        if PLAIN {
            self.acknowledge::<true>(config, now, Kind::Ack, answer);
            return true;
        }
        // A probe is answered at once, with low priority, and instead of no other packet.
        if packet.flags & flag::LOW_PRIORITY != 0 {
            let deadline = self.deadline;
            self.acknowledge::<false>(config, now, Kind::Ack, answer);
            answer.flags |= flag::LOW_PRIORITY;
            self.deadline = self.deadline.min(deadline);
            return true;
        }
        // RFC 5681 §4.2: disorder, and the filling of a gap, are reported at once.
        if config.delayed_ack
            && is_plain
            && !is_waiting
            && heard != Heard::Urgent
            && (config.linux.is_none() || self.next > LINUX_QUICK)
        {
            self.deadline = now + if config.linux.is_none() { DELAYED_ACK } else { LINUX_DELAYED_ACK };
            return false;
        }
        self.acknowledge::<false>(config, now, Kind::Ack, answer);
        true
    }

    /// The law takes the data packet that is segment `came`.
    #[inline(always)]
    fn hear<const PLAIN: bool>(
        &mut self,
        config: &Config,
        now: Time,
        packet: &Packet,
        came: Option<u64>,
    ) -> Heard {
        let special = if PLAIN { None } else { asked(self.is_special, &self.rest) };
        self.echo.on_data(&config.law, packet, Around { config, now, next: self.next, came, special })
    }

    /// DSACK: the first block is of the segment that came again (RFC 2883 §4).
    #[cold]
    fn answer_duplicate(&mut self, config: &Config, now: Time, segment: u64, answer: &mut Packet) {
        if config.measure.is_outside(now) {
            self.note_outside(config, now, 0);
        }
        self.acknowledge::<false>(config, now, Kind::Ack, answer);
        for block in (1..SACK_BLOCKS).rev() {
            let (start, end) = answer.sack(block - 1);
            answer.set_sack(block, start, end);
        }
        let start = self.base.wrapping_add(segment as u32);
        answer.set_sack(0, start, start.wrapping_add(1));
    }

    /// A duplicate, a segment beyond a gap, or one that fills it; true if it is new.
    #[inline(never)]
    fn handle_disorder(&mut self, config: &Config, index: Option<u64>, packet: &Packet) -> bool {
        let is_new = match index {
            Some(index) if index >= self.next => {
                let beyond = &mut self.rest.get_or_insert_default().beyond;
                let (count, block) = beyond.held.insert(index, index.saturating_add(1));
                beyond.report(block);
                if count > 0 {
                    beyond.held_bytes += u64::from(config.size_of(index));
                }
                if block.0 <= self.next {
                    beyond.held_bytes -= (config.bytes_of(block.1) - config.bytes_of(self.next)).0;
                    self.next = block.1;
                    beyond.take(block);
                }
                self.has_gap = !beyond.held.is_empty();
                if !self.has_gap {
                    *beyond = OutOfOrder::default();
                }
                count > 0
            }
            _ => false,
        };
        if !is_new && packet.flags & flag::RETRANSMIT != 0 {
            let duplicates = &mut self.rest.get_or_insert_default().duplicates;
            *duplicates = duplicates.saturating_add(1);
        }
        is_new
    }

    /// `PLAIN`: as for [`Receiver::handle_data`].
    #[inline(always)]
    fn acknowledge<const PLAIN: bool>(
        &mut self,
        config: &Config,
        now: Time,
        kind: Kind,
        packet: &mut Packet,
    ) {
        if !PLAIN {
            self.deadline = Time::NEVER;
        }
        let special = if PLAIN { None } else { asked(self.is_special, &self.rest) };
        let advertised = advertised(config, special, now);
        if !PLAIN && let Some(window) = self.window_mut() {
            window.note_ack();
            if advertised == Some(0) {
                self.deadline = window.opens_at(config).max(now + Duration(1));
            }
        }
        self.sent = self.sent.wrapping_add(1);
        *packet = Packet {
            stamp_ns: stamp(self.recent, self.sent),
            flow: self.flow,
            seq: self.base.wrapping_add(self.next as u32),
            size: config.ack,
            kind,
            flags: if !PLAIN && self.has_mark && kind == Kind::Ack { flag::ECE } else { 0 },
            ..Packet::default()
        };
        packet.set_window(advertised);
        if self.has_echo {
            let special = if PLAIN { None } else { asked(self.is_special, &self.rest) };
            let around = Around { config, now, next: self.next, came: None, special };
            packet.set_reply(self.echo.on_ack(&config.law, around));
        }
        if !PLAIN
            && self.has_gap
            && config.recovery.has_sack()
            && let Some(rest) = &self.rest
        {
            let (blocks, count) = rest.beyond.blocks();
            let seq = |segment: u64| self.base.wrapping_add(segment as u32);
            for (block, &(start, end)) in blocks[..count].iter().enumerate() {
                packet.set_sack(block, seq(start), seq(end));
            }
        }
    }
}

/// Returns a packet as a receiver that lies takes it: with what its law makes of it, and without RFC 3168's mark.
#[cold]
fn forged(config: &Config, lie: Lie, packet: &Packet) -> Packet {
    let mut packet = *packet;
    Echo::forge(&config.law, lie, &mut packet);
    if config.ecn {
        packet.set_ecn(packet.ecn() & !1); // CE becomes ECT(0)
    }
    packet
}

/// State that is asked for every packet of a receiver with headers or a window of its own; of no other.
#[inline(always)]
fn asked(is_special: bool, rest: &Option<Box<Rest>>) -> Option<&Rest> {
    if is_special { rest.as_deref() } else { None }
}

/// A receiver, as its echo law sees it.
#[derive(Clone, Copy)]
struct Around<'a> {
    config: &'a Config,
    now: Time,
    /// First segment not received.
    next: u64,
    /// Segment that has come; `None`: one before the beginning.
    came: Option<u64>,
    /// State of a receiver with headers or a window of its own.
    special: Option<&'a Rest>,
}

impl Receiving for Around<'_> {
    #[inline(always)]
    fn mss(&self) -> Bytes {
        in_bytes(self.config, 1)
    }

    #[inline(always)]
    fn awnd(&self) -> Bytes {
        advertised(self.config, self.special, self.now)
            .map_or(Bytes(u64::MAX), |segments| in_bytes(self.config, segments.into()))
    }

    #[inline]
    fn numbers(&self) -> Option<Numbers> {
        Some(self.special?.connection?.numbers(self.config, self.next, self.came?))
    }

    #[inline]
    fn acknowledgment(&self) -> Option<Segment> {
        Some(self.special?.connection?.acknowledgment(self.config, self.next))
    }
}

/// The window to advertise, segments; `None`: unlimited.
#[inline(always)]
fn advertised(config: &Config, special: Option<&Rest>, now: Time) -> Option<u32> {
    special.and_then(|rest| rest.window.as_ref()).map_or(config.awnd, |window| window.segments(config, now))
}

impl OutOfOrder {
    /// A segment of `block` arrived: it is reported first from now on.
    fn report(&mut self, block: Block) {
        let is_part = |known: Block| block.0 <= known.0 && known.0 < block.1;
        for known in self.recent.iter_mut().filter(|known| is_part(**known)) {
            *known = block;
        }
        let mut moved = block;
        for slot in &mut self.recent {
            core::mem::swap(slot, &mut moved);
            // One memory of a block is enough.
            if moved == block {
                break;
            }
        }
    }

    /// The lowest block is in sequence now.
    fn take(&mut self, block: Block) {
        self.held.remove_below(block.1);
        for known in self.recent.iter_mut().filter(|known| **known == block) {
            *known = (0, 0);
        }
    }

    /// Returns the blocks to report, and their number: those reported last, most recent first, each once;
    /// then the highest ones, since as many as fit shall be told (RFC 2018 §4).
    fn blocks(&self) -> ([Block; SACK_BLOCKS], usize) {
        let mut blocks = [(0, 0); SACK_BLOCKS];
        let mut count = 0;
        let recent = self.recent.iter().copied().filter(|block| block.0 < block.1);
        for block in recent.chain(self.held.iter_down().take(SACK_BLOCKS)) {
            if !blocks[..count].contains(&block) {
                blocks[count] = block;
                count += 1;
                if count == SACK_BLOCKS {
                    break;
                }
            }
        }
        (blocks, count)
    }
}

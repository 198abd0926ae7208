//! The sending side: connection, timers, window, loss recovery.
//!
//! References: RFC 5681 (fast retransmit, restart), RFC 6298 (timer), RFC 6582 (NewReno), RFC 6675
//! (SACK), Mathis and Mahdavi 1996 (FACK), RFC 3042 (limited transmit), RFC 3168 (ECN), RFC 7323
//! (timestamps), RFC 9293 §3.8.6.1 (zero-window probes), and those of `linux`; ns-2.35 `tcp-reno.cc` for the profile of that name.

mod bit;
mod linux;
mod rest;
mod stats;
mod watch;

use alloc::boxed::Box;
use congestlab_core::law;
use congestlab_core::units::{Bytes, Duration, Rate, Time};

use super::config::DUP_THRESH;
use super::delivery::Delivery;
use super::linux::Linux;
use super::rtt::{CAUTIOUS_RTO, INITIAL_RTO, RoundTrip};
use super::scoreboard::Scoreboard;
use super::{App, Config, Connection, Recovery, Wait, absolute, in_bytes, sent_bytes};
use crate::packet::{Kind, Packet, SACK_BLOCKS, UNLIMITED, flag};
use crate::random::Stream;
use crate::stats::Histogram;

use rest::Rest;
pub use stats::{SenderCounts, SenderStats, View};

/// Reaction of a law to a loss or to marks; the last argument is FlightSize.
type Reaction = fn(&mut law::Sender, &law::SenderConfig, Time, Bytes);

/// Packets that a paced sender may send at once when it is late.
const PACING_BURST: u64 = 4;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The connection has not started.
    Closed,
    /// The SYN is on its way.
    SynSent,
    /// Nothing is to be repaired.
    Open,
    /// The window was reduced for a congestion mark less than a window of data ago (RFC 3168 §6.1.2).
    Reduced,
    /// Fast recovery: until the recovery point is acknowledged.
    Recovery,
    /// After a timeout: until the recovery point is acknowledged.
    Loss,
}

/// Segment to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pick {
    /// The first unacknowledged segment, now.
    Repeat,
    /// A segment that was lost (NextSeg rules 1 and 3).
    Lost(u64),
    /// New data (rule 2).
    New,
    /// The last segment outstanding (rule 4).
    Rescue(u64),
}

/// The sender of one flow.
///
/// The path of an ACK that reports no loss touches the fields here and nothing on the heap but the
/// histogram of round trip times.
#[derive(Debug)]
pub struct Sender {
    law: law::Sender,
    rtt: RoundTrip,
    /// First segment not acknowledged (SND.UNA).
    una: u64,
    /// First segment never sent (SND.NXT before any timeout; HighData + 1).
    next: u64,
    /// First segment that the application has not written.
    written: u64,
    /// Recovery point: first segment not sent when the window was last reduced.
    recover: u64,
    /// Start of the connection, retransmission or persist timer, or that of a watched retransmission.
    timer: Time,
    /// Earliest departure of the next packet, paced.
    release: Time,
    /// When data was last sent.
    sent_at: Time,
    scoreboard: Option<Box<Scoreboard>>,
    /// `None`: as it began.
    rest: Option<Box<Rest>>,
    flow: u32,
    /// Sequence number of segment 0.
    base: u32,
    awnd: u32,
    /// Without SACK: segments that duplicate ACKs add to the window (limited transmit, fast
    /// recovery) and partial ACKs take away again.
    inflation: i32,
    flags: u32,
    mode: Mode,
    dup_acks: u8,
    backoff: u8,
    /// New segments sent on the first duplicate ACKs, which FlightSize must not count.
    limited: u8,

    /// When its measurement begins.
    measured_from: Time,
    /// The window is integrated up to here; never any more once all is acknowledged.
    accrued: Time,
    window_sum: u64,
    window_max: u64,
    idle_max: Duration,
    completion: Time,
    round_trips: Histogram,
}

impl Sender {
    /// Creates a connection that sends its SYN, with sequence number `isn`, at `start`.
    pub fn new(config: &Config, flow: u32, start: Time, isn: u32) -> Self {
        let law = initial_law(config, config.initial_window);
        let measured_from = start.max(config.measure.from);
        let law::Needs { delivery: samples, probes, leaves_apart, .. } = config.law.needs();
        Self {
            rtt: RoundTrip::default(),
            una: 0,
            next: 0,
            written: 0,
            recover: 0,
            timer: start,
            release: if probes { Time::NEVER } else { Time::ZERO },
            sent_at: Time::NEVER,
            scoreboard: (samples || probes || config.linux.is_some()).then(|| {
                let mut board = Box::new(Scoreboard::new(0, config.recovery));
                board.delivery = samples.then(|| Box::new(Delivery::new()));
                board.probes = probes.then(Box::default);
                board.linux = config.linux.map(|slow_start| Box::new(Linux::new(slow_start)));
                board
            }),
            rest: None,
            flow,
            base: isn.wrapping_add(1),
            awnd: 0,
            inflation: 0,
            flags: if probes { bit::PROBES } else { 0 }
                | if start < measured_from { bit::EARLY } else { 0 }
                | if config.law.is_silent() { bit::SILENT } else { 0 }
                | if config.linux.is_some() { bit::LINUX } else { 0 }
                | if leaves_apart { bit::APART } else { 0 },
            mode: Mode::Closed,
            dup_acks: 0,
            backoff: 0,
            limited: 0,
            measured_from,
            accrued: measured_from,
            window_sum: 0,
            window_max: law.window().min(config.window_most).0,
            idle_max: Duration(0),
            completion: Time::NEVER,
            round_trips: Histogram::default(),
            law,
        }
    }

    /// Sets the number of segments that the flow sends in all, for [`App::Own`].
    #[must_use]
    pub fn with_segments(mut self, segments: u64) -> Self {
        self.written = segments;
        self
    }

    /// Gives the sender the headers of its packets, for laws that write into them.
    #[must_use]
    pub fn with_headers(mut self, connection: Connection) -> Self {
        self.rest_mut().connection = connection;
        self.flags |= bit::HEADERS;
        self
    }

    /// Gives the law its seed, for laws that draw ([`law::Needs::draws`]).
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.law.seed(seed);
        if let Some(delivery) = self.delivery() {
            delivery.set_seed(seed);
        }
        if let Some(probes) = self.scoreboard.as_mut().and_then(|board| board.probes.as_mut()) {
            probes.stream = Stream::new([seed, 0]);
        }
        self
    }

    // What the flow shows.

    /// Returns the congestion window.
    #[inline]
    pub fn window(&self) -> Bytes {
        self.law.window()
    }

    /// Returns the law, for observers.
    #[inline]
    pub fn law(&self) -> &law::Law {
        self.law.law()
    }

    /// Returns the smoothed round trip time; zero: unknown.
    #[inline]
    pub fn srtt(&self) -> Duration {
        self.rtt.srtt()
    }

    /// Returns the number of expiries of the retransmission timer so far.
    #[inline]
    pub fn timeouts(&self) -> u64 {
        self.ledger().map_or(0, |ledger| ledger.timeouts.into())
    }

    /// Returns the segments in flight: sent, and neither acknowledged, SACKed nor lost (RFC 6675's pipe).
    #[inline]
    pub fn pipe(&self) -> u64 {
        match &self.scoreboard {
            None => self.next - self.una,
            Some(board) => board.pipe(self.una, self.next),
        }
    }

    #[cfg(test)]
    pub(super) fn patience(&self) -> Duration {
        self.rtt.patience()
    }

    /// Returns the congestion window in segments.
    #[inline]
    pub fn cwnd_packets(&self, config: &Config) -> f64 {
        self.usable(config).0 as f64 / f64::from(config.segment.max(1))
    }

    // Time and packets.

    /// Returns the earliest moment at which something is due that no packet announces.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        // Mostly there is but the timer.
        if self.flags & (bit::PACED | bit::PROBES | bit::WRITES) == 0 {
            return self.timer;
        }
        let release = if self.flags & (bit::PACED | bit::PROBES) != 0 { self.release } else { Time::NEVER };
        self.timer.min(self.write_at()).min(release)
    }

    /// When the application writes its next burst.
    fn write_at(&self) -> Time {
        let rest = if self.flags & bit::WRITES != 0 { self.rest.as_ref() } else { None };
        rest.map_or(Time::NEVER, |rest| rest.write_at)
    }

    fn rest_mut(&mut self) -> &mut Rest {
        self.rest.get_or_insert_default()
    }

    /// Serves every deadline that has passed.
    pub fn handle_deadline(&mut self, config: &Config, now: Time) {
        self.accrue(config, now);
        self.flags &= !bit::BLOCKED;
        if now >= self.write_at() {
            self.write_burst(config, now);
        }
        if now < self.timer || self.serves_watched(config, now) {
            return;
        }
        match self.mode {
            Mode::Closed => {
                self.mode = Mode::SynSent;
                self.flags |= bit::SYN;
                self.timer = now + self.rto(config);
            }
            Mode::SynSent => self.handle_syn_timeout(config, now),
            _ if self.una < self.next => self.handle_timeout(config, now),
            _ if self.next < self.available(config, now) => {
                self.flags |= bit::PROBE;
                self.backoff = self.backoff.saturating_add(1);
                self.timer = now + self.rto(config);
            }
            _ => self.timer = Time::NEVER,
        }
    }

    /// Takes an ACK or SYN-ACK that arrived; anything else is ignored.
    #[inline]
    pub fn handle_packet(&mut self, config: &Config, now: Time, packet: &Packet) {
        match (packet.kind, self.mode) {
            (_, Mode::Closed) | (Kind::Ack, Mode::SynSent) => {}
            (Kind::Ack, _) => self.handle_ack(config, now, packet),
            (Kind::SynAck, Mode::SynSent) if packet.seq == self.base => self.establish(config, now, packet),
            _ => {}
        }
    }

    #[inline]
    fn handle_ack(&mut self, config: &Config, now: Time, packet: &Packet) {
        self.accrue(config, now);
        self.flags &= !bit::BLOCKED;
        let ack = match absolute(packet.seq, self.base, self.una) {
            // RFC 9293 §3.10.7.4: an ACK of what was never sent is dropped.
            Some(ack) if ack <= self.next => ack,
            _ => return,
        };
        let is_plain = ack > self.una
            && self.mode == Mode::Open
            && self.dup_acks == 0
            && self.scoreboard.is_none()
            && packet.flags & (flag::ECE | flag::LOW_PRIORITY) == 0
            && packet.sack(0) == (0, 0);
        if is_plain {
            self.take_ack::<true>(config, now, packet, ack);
        } else {
            self.take_ack::<false>(config, now, packet, ack);
        }
    }

    /// `PLAIN`: the ACK brings progress and no news of losses or marks, and nothing is to be repaired. Most do, so
    /// what follows from that is not asked again.
    #[inline(always)]
    fn take_ack<const PLAIN: bool>(&mut self, config: &Config, now: Time, packet: &Packet, ack: u64) {
        let flight = if PLAIN { self.next - self.una } else { self.pipe() };
        let advanced = ack.saturating_sub(self.una);
        let has_advanced = PLAIN || advanced > 0;
        let has_mark = !PLAIN && packet.flags & flag::ECE != 0;
        // RFC 5681 §2. One that updates the window, or comes when nothing is outstanding, is none.
        // One of a probe says that the path has room, and nothing of a loss.
        let is_probe = !PLAIN && packet.flags & flag::LOW_PRIORITY != 0;
        let is_duplicate =
            !PLAIN && ack == self.una && self.una < self.next && packet.window() == self.awnd && !is_probe;
        let rtt = if has_advanced { self.sample(now, packet) } else { Duration(0) };
        if PLAIN || ack >= self.una {
            self.awnd = packet.window();
        }
        if is_probe {
            self.law.on_probe_ack(&config.law, self.awnd_bytes(config));
        }
        let acked = if PLAIN || self.flags & bit::LINUX == 0 {
            sent_bytes(config, advanced)
        } else {
            self.hear_as_linux(config, now, packet, ack, advanced, rtt)
        };
        self.law.on_ack(
            &config.law,
            now,
            &law::Ack {
                acked,
                flight: sent_bytes(config, flight),
                awnd: self.awnd_bytes(config),
                rtt,
                srtt: self.rtt.srtt(),
                reply: packet.reply(),
                is_duplicate: !has_advanced,
                // After a timeout slow start, then congestion avoidance (RFC 5681 §3.1), go on while the sender repairs.
                // RFC 3168 §6.1.2: no growth on an ACK that echoes a mark.
                in_recovery: !PLAIN && (self.mode == Mode::Recovery || has_mark),
                is_window_limited: self.flags & bit::WINDOW_LIMITED != 0,
                is_late: !PLAIN && ack < self.una,
                is_repairing: !PLAIN && matches!(self.mode, Mode::Recovery | Mode::Loss),
            },
        );
        if has_advanced {
            self.una = ack;
            self.flags &= !(bit::EXPIRED | bit::SYN_EXPIRED);
            // ns-2 backs off until data first sent after the timeout is acknowledged (Karn).
            if !config.ns2 || ack > self.recover {
                self.backoff = 0;
            }
        }
        if PLAIN {
            self.restart_timer(config, now);
        } else {
            self.inspect(config, now, packet, advanced, is_duplicate);
            self.report_delivery(config, now, flight, rtt);
        }
        self.window_max = self.window_max.max(self.usable(config).0);
        if has_advanced && (config.app != App::Endless || now >= config.stop) {
            self.serve_application(config, now);
        }
    }

    /// An ACK that is more, or less, than progress: finds losses and drives their repair.
    #[inline(never)]
    fn inspect(&mut self, config: &Config, now: Time, packet: &Packet, advanced: u64, is_duplicate: bool) {
        self.end_watch();
        if let Some(delivery) = self.delivery() {
            delivery.begin(now);
        }
        let before = self.mode;
        let has_news = self.update_scoreboard(config, packet);
        if advanced > 0 {
            self.progress(config, now, advanced);
        }
        // Echoes belong to the window that was reduced last until the segment behind it, which carries CWR, is acknowledged.
        let is_news = self.una > self.recover || self.recover == 0;
        // Those that another ACK overtook are not looked at (`tcp_ack` in net/ipv4/tcp_input.c).
        let is_late = absolute(packet.seq, self.base, self.una).is_some_and(|ack| ack < self.una);
        if packet.flags & flag::ECE != 0 && config.ecn && self.mode == Mode::Open && is_news && !is_late {
            self.reduce(config, now, law::Sender::on_mark);
            self.mode = Mode::Reduced;
            self.recover = self.next;
        }
        if self.flags & bit::LINUX != 0 {
            self.inspect_as_linux(config, now, packet, advanced, before);
            return;
        }
        // RFC 6675 §2: with SACK, a duplicate is what reports something new above the cumulative ACK.
        if if config.recovery.has_sack() { has_news } else { is_duplicate } {
            self.handle_duplicate(config, now);
        }
        let is_clean = self.scoreboard.as_ref().is_some_and(|board| board.is_clean(self.una));
        if is_clean && self.mode != Mode::Recovery {
            self.scoreboard = None;
        }
        if let Some(board) = &mut self.scoreboard {
            board.has_heard |= has_news || advanced > 0;
        }
        self.find_lost_again(config, now);
        self.begin_watch();
    }

    /// Tells the law what the ACK says of the rate at which data arrives, if it wants to know.
    #[inline(never)]
    fn report_delivery(&mut self, config: &Config, now: Time, prior_flight: u64, rtt: Duration) {
        if self.delivery().is_none() {
            return;
        }
        let flight = self.pipe();
        let is_idle = self.next >= self.available(config, now) && self.has_room(config, flight);
        let in_recovery = matches!(self.mode, Mode::Recovery | Mode::Loss);
        let Some(delivery) = self.delivery() else { return };
        if is_idle {
            delivery.note_app_limited(flight);
        }
        let sample = delivery.sample();
        let report = law::Delivery {
            total: sent_bytes(config, sample.total),
            newly: sent_bytes(config, sample.newly),
            prior: sent_bytes(config, sample.prior),
            interval: sample.interval,
            lost: sent_bytes(config, sample.lost),
            lost_since: sent_bytes(config, sample.lost_since),
            sent_flight: sent_bytes(config, sample.sent_flight),
            lost_until: sent_bytes(config, sample.lost_until),
            lost_flight: sent_bytes(config, sample.lost_flight),
            prior_flight: sent_bytes(config, prior_flight),
            flight: sent_bytes(config, flight),
            rtt,
            is_app_limited: sample.is_app_limited,
            in_recovery,
        };
        if self.law.on_delivery(&config.law, now, &report)
            && let Some(delivery) = self.delivery()
        {
            delivery.note_app_limited(flight);
        }
    }

    fn delivery(&mut self) -> Option<&mut Delivery> {
        self.scoreboard.as_mut().and_then(|board| board.delivery.as_deref_mut())
    }

    /// The scoreboard, from now on if there was none.
    fn board(&mut self, config: &Config) -> &mut Scoreboard {
        let new = || Box::new(Scoreboard::new(self.una, config.recovery));
        self.scoreboard.get_or_insert_with(new)
    }

    /// Takes in the cumulative ACK and the SACK blocks; true if a block says something new.
    fn update_scoreboard(&mut self, config: &Config, packet: &Packet) -> bool {
        let (base, una, next) = (self.base, self.una, self.next);
        if let Some(board) = &mut self.scoreboard {
            board.advance(una);
        }
        let mut has_news = false;
        let tells = packet.sack(0) != (0, 0);
        if config.recovery.has_sack() && tells {
            let known = self.scoreboard.as_ref().map_or([(0, 0); SACK_BLOCKS], |board| *board.heard());
            let mut heard = [(0, 0); SACK_BLOCKS];
            for (block, heard) in heard.iter_mut().enumerate() {
                let told = packet.sack(block);
                let (start, end) = told;
                if start == end {
                    break;
                }
                // Most blocks are those of the ACK before.
                if known.contains(&told) {
                    *heard = told;
                    continue;
                }
                // A block that is not beyond the segment expected next and within what is outstanding
                // is late, of a duplicate (RFC 2883), or wrong.
                if let (Some(start), Some(end)) = (absolute(start, base, una), absolute(end, base, una))
                    && una < start
                    && start < end
                    && end <= next
                {
                    has_news |= self.board(config).sack(start, end);
                    *heard = told;
                }
            }
            if let Some(board) = &mut self.scoreboard {
                board.hear(heard);
            }
        }
        if let Some(board) = &mut self.scoreboard {
            if !tells {
                board.hear([(0, 0); SACK_BLOCKS]);
            }
            board.update();
        }
        has_news
    }

    /// The cumulative ACK moved by `advanced`.
    fn progress(&mut self, config: &Config, now: Time, advanced: u64) {
        let is_complete = self.una >= self.recover;
        match (self.mode, config.recovery) {
            // The segment at the recovery point carries CWR: ACKs of those before it still echo the mark (RFC 3168
            // §6.1.3; `TCP_CA_CWR` in net/ipv4/tcp_input.c).
            (Mode::Reduced, _) if self.una > self.recover => {
                self.mode = Mode::Open;
                // A mark is no reason to doubt the next duplicate ACKs.
                self.recover = 0;
            }
            (Mode::Loss, _) if is_complete => self.mode = Mode::Open,
            // RFC 6582 §3.2 step 3, full acknowledgment, by its second option: the window is
            // ssthresh, which the law set when the loss was found. RFC 5681 §3.2 step 6 likewise.
            (Mode::Recovery, Recovery::Reno) => self.mode = Mode::Open,
            (Mode::Recovery, _) if is_complete => self.mode = Mode::Open,
            (Mode::Recovery, Recovery::NewReno) => {
                // Partial acknowledgment: the next hole is known. The window gives back what left
                // the network, less the segment that its ACK now allows.
                self.flags |= bit::REPEAT;
                self.inflation = self.inflation.saturating_sub_unsigned(advanced as u32).saturating_add(1);
                // Only the first one restarts the timer ("impatient", §4).
                if self.flags & bit::PARTIAL == 0 {
                    self.flags |= bit::PARTIAL;
                    self.restart_timer(config, now);
                }
                return;
            }
            _ => {}
        }
        if self.mode != Mode::Recovery {
            self.flags &= !(bit::REPEAT | bit::PARTIAL);
            self.dup_acks = 0;
            self.limited = 0;
            self.inflation = 0;
        }
        self.restart_timer(config, now);
    }

    /// A duplicate ACK, by the definition that fits the recovery.
    fn handle_duplicate(&mut self, config: &Config, now: Time) {
        let has_sack = config.recovery.has_sack();
        match self.mode {
            Mode::Recovery if !has_sack => self.inflation = self.inflation.saturating_add(1),
            Mode::Open | Mode::Reduced => {
                self.dup_acks = self.dup_acks.saturating_add(1);
                let duplicates = u64::from(self.dup_acks);
                let is_loss = if has_sack {
                    // RFC 6675 §5, steps 1 and 2; FACK: snd.fack - snd.una > 3 segments.
                    let is_lost = self.scoreboard.as_ref().is_some_and(|board| match config.recovery {
                        Recovery::Fack => board.fack(self.una) - self.una > DUP_THRESH,
                        _ => board.is_lost(self.una),
                    });
                    duplicates >= DUP_THRESH || is_lost
                } else {
                    // RFC 6582 §3.2 step 2 ("bugfix" in ns-2): duplicates of data sent before the
                    // last reduction may come from needless retransmissions.
                    duplicates == DUP_THRESH
                        && (self.una > self.recover || self.una == 0 || self.mode == Mode::Reduced)
                };
                if is_loss {
                    self.enter_recovery(config, now);
                } else if !has_sack {
                    // RFC 3042; with SACK the pipe shrinks by itself.
                    self.inflation = if duplicates < DUP_THRESH { i32::from(self.dup_acks) } else { 0 };
                }
            }
            // ns-2's limited transmit takes no notice of a timeout before it (`send_one`).
            Mode::Loss if config.ns2 => {
                self.dup_acks = self.dup_acks.saturating_add(1);
                self.inflation = if self.dup_acks < 3 { i32::from(self.dup_acks) } else { 0 };
            }
            _ => {}
        }
    }

    /// Fast retransmit (RFC 5681 §3.2, RFC 6582 §3.2 step 2, RFC 6675 §5 step 4).
    fn enter_recovery(&mut self, config: &Config, now: Time) {
        // One reduction per window of data, for whatever reason; the loss of CWR is one more (RFC 3168 §6.1.2).
        if self.mode != Mode::Reduced || self.una >= self.recover {
            self.reduce(config, now, law::Sender::on_loss);
        }
        self.mode = Mode::Recovery;
        self.recover = self.next;
        self.limited = 0;
        match &mut self.scoreboard {
            Some(board) if config.recovery.has_sack() => {
                board.enter_recovery(self.una);
                if !board.is_retransmitted(self.una) {
                    self.flags |= bit::REPEAT;
                }
            }
            _ => {
                self.inflation = DUP_THRESH as i32;
                self.flags |= bit::REPEAT;
            }
        }
        // RFC 6675 §6 leaves it open; ns-2 does so too: the repeated segment has a timeout of its own.
        self.restart_timer(config, now);
    }

    /// The law reduces its window for a loss or a mark.
    fn reduce(&mut self, config: &Config, now: Time, react: Reaction) {
        let before = self.law.window();
        let flight = self.flight_size(config);
        react(&mut self.law, &config.law, now, flight);
        // P-XCP keeps its window: no cut.
        if self.law.window() < before {
            self.ledger_mut().window_cuts += 1;
        }
        if config.ecn {
            self.flags |= bit::CWR;
        }
    }

    /// RFC 6298 §5.4–5.6, RFC 5681 §3.1.
    fn handle_timeout(&mut self, config: &Config, now: Time) {
        let flight = self.flight_size(config);
        // Linux: nor where the window has just been reduced (`tcp_enter_loss` in net/ipv4/tcp_input.c).
        let is_reduced = self.flags & bit::LINUX != 0 && matches!(self.mode, Mode::Recovery | Mode::Reduced);
        let is_first = self.flags & bit::EXPIRED == 0 && !is_reduced;
        self.ledger_mut().timeouts += 1;
        self.law.on_timeout(&config.law, now, flight, is_first);
        self.mode = Mode::Loss;
        self.recover = self.next;
        self.dup_acks = 0;
        self.limited = 0;
        self.inflation = 0;
        self.flags &= !(bit::REPEAT | bit::PARTIAL);
        self.flags |= bit::EXPIRED;
        if config.ecn {
            self.flags |= bit::CWR;
        }
        let (una, next) = (self.una, self.next);
        if self.flags & bit::LINUX != 0 {
            self.expire_as_linux(config, now);
        } else {
            self.board(config).on_timeout(una, next);
        }
        self.backoff = self.backoff.saturating_add(1);
        self.restart_timer(config, now);
    }

    fn handle_syn_timeout(&mut self, config: &Config, now: Time) {
        self.ledger_mut().timeouts += 1;
        self.backoff = self.backoff.saturating_add(1);
        self.flags |= bit::SYN | bit::SYN_EXPIRED;
        // RFC 5681 §3.1: then the initial window is one segment. Linux: only after the second repetition (RFC 6928 §2;
        // `tcp_init_transfer` in net/ipv4/tcp_input.c).
        if self.flags & bit::LINUX == 0 || self.backoff > 1 {
            self.law = initial_law(config, 1);
            if let Some(seed) = self.delivery().map(|delivery| delivery.seed()) {
                self.law.seed(seed);
            }
        }
        self.timer = now + self.rto(config);
    }

    fn establish(&mut self, config: &Config, now: Time, packet: &Packet) {
        self.accrue(config, now);
        self.sample(now, packet);
        self.mode = Mode::Open;
        self.flags &= !bit::SYN;
        self.timer = Time::NEVER;
        self.backoff = 0;
        self.awnd = packet.window();
        if config.law.needs().handshake {
            let (awnd, srtt) = (self.awnd_bytes(config), self.rtt.srtt());
            let ack = law::Ack { awnd, rtt: srtt, srtt, reply: packet.reply(), ..law::Ack::default() };
            self.law.on_ack(&config.law, now, &ack);
        }
        match config.app {
            App::Endless => self.written = u64::MAX,
            App::Transfer(_) => {
                self.written = config.segments();
                self.serve_application(config, now);
            }
            App::Own => {}
            App::Bursts { .. } => self.write_burst(config, now),
        }
    }

    // The application.

    fn write_burst(&mut self, config: &Config, now: Time) {
        self.flags &= !bit::WRITES;
        if let App::Bursts { size, .. } = config.app
            && now < config.stop
        {
            let burst = config.segments_in(size);
            self.written = self.written.saturating_add(burst).min(config.segments());
            self.flags |= bit::WRITING;
            self.serve_application(config, now);
        }
    }

    /// Data was written or acknowledged: is the write, or all of it, complete?
    fn serve_application(&mut self, config: &Config, now: Time) {
        let is_last = |written: u64| written >= config.segments() || config.app == App::Own;
        if let App::Bursts { pause, wait, buffer, .. } = config.app
            && self.flags & bit::WRITING != 0
        {
            let is_complete = match wait {
                Wait::Write => self.written <= self.buffered_until(config, buffer),
                Wait::Ack => self.una >= self.written,
            };
            if is_complete {
                self.flags &= !bit::WRITING;
                if !is_last(self.written) {
                    self.rest_mut().write_at = now + pause;
                    self.flags |= bit::WRITES;
                }
            }
        }
        // After the stop what was sent is all there is; before it, what was written, if the next
        // write would come too late (or never).
        let is_stopped = now >= config.stop && self.next > 0;
        let all = if is_stopped { self.next } else { self.written };
        let is_all = is_stopped || is_last(self.written) || self.write_at() >= config.stop;
        if self.una >= all && is_all && self.completion == Time::NEVER {
            self.completion = now;
            self.accrued = Time::NEVER;
            self.note_idle(config, now);
        }
    }

    /// First segment that does not fit into the send buffer, which takes at least one.
    fn buffered_until(&self, config: &Config, buffer: Bytes) -> u64 {
        self.una.saturating_add((buffer.0 / u64::from(config.segment.max(1))).max(1))
    }

    /// First segment that may not be sent for want of data.
    #[inline]
    fn available(&self, config: &Config, now: Time) -> u64 {
        if now >= config.stop {
            return self.next;
        }
        match config.app {
            App::Bursts { buffer, .. } => self.written.min(self.buffered_until(config, buffer)),
            _ => self.written,
        }
    }

    // Transmission.

    /// Returns the next packet to send, if there is one.
    #[inline]
    pub fn poll_transmit(&mut self, config: &Config, now: Time) -> Option<Packet> {
        let mut packet = Packet::default();
        self.transmit_into(config, now, &mut packet).then_some(packet)
    }

    /// Puts the next packet to send into `packet`; false: there is none, and `packet` has no meaning.
    #[inline]
    pub fn transmit_into(&mut self, config: &Config, now: Time, packet: &mut Packet) -> bool {
        // Every packet is followed by a poll that mostly ends here.
        if self.flags & bit::BLOCKED != 0 {
            return false;
        }
        self.next_packet(config, now, packet)
            || (self.flags & bit::PROBES != 0 && self.probe(config, now, packet))
    }

    fn next_packet(&mut self, config: &Config, now: Time, packet: &mut Packet) -> bool {
        if self.flags & (bit::SYN | bit::PROBE) != 0 {
            *packet = self.control_packet(config, now);
            return true;
        }
        if matches!(self.mode, Mode::Closed | Mode::SynSent) {
            return false;
        }
        if self.scoreboard.is_none() && self.inflation == 0 && self.flags & bit::REPEAT == 0 {
            self.next_data::<true>(config, now, packet)
        } else {
            self.next_data::<false>(config, now, packet)
        }
    }

    /// `PLAIN`: nothing is to be repaired, and the window alone says what may be in flight.
    #[inline(always)]
    fn next_data<const PLAIN: bool>(&mut self, config: &Config, now: Time, packet: &mut Packet) -> bool {
        self.flags &= !(bit::WINDOW_LIMITED | bit::PACED);
        let available = self.available(config, now);
        let outstanding = self.next - self.una;
        let is_new_allowed = self.next < available && outstanding < u64::from(self.awnd);
        if outstanding == 0 {
            if !is_new_allowed {
                // RFC 9293 §3.8.6.1: a closed window with data behind it is probed.
                if self.next < available && self.timer == Time::NEVER {
                    self.timer = now + self.rto(config);
                }
                return false;
            }
            self.restart_if_idle(config, now);
        }
        let flight = if PLAIN { outstanding } else { self.pipe() };
        let is_forced = !PLAIN && self.flags & (bit::REPEAT | bit::TAIL) != 0;
        let has_room = is_forced || self.has_room_beside::<PLAIN>(config, flight);
        let is_early = now < self.release && self.flags & bit::PROBES == 0;
        // Without room, and too early, it only matters that there is something to send.
        let is_any = PLAIN || is_new_allowed && (!has_room || is_early);
        let pick =
            if is_any { is_new_allowed.then_some(Pick::New) } else { self.pick(config, is_new_allowed) };
        let Some(pick) = pick else { return false };
        if !has_room {
            self.flags |= bit::WINDOW_LIMITED;
            return false;
        }
        if is_early {
            self.flags |= bit::WINDOW_LIMITED | bit::PACED;
            return false;
        }
        if outstanding == 0 {
            // RFC 6298 §5.1; takes the place of a window probe's timer.
            self.backoff = if self.flags & bit::EXPIRED == 0 && !config.ns2 { 0 } else { self.backoff };
            self.timer = now + self.rto(config);
        }
        self.data_packet::<PLAIN>(config, now, pick, flight, available, packet);
        true
    }

    /// Picks the segment to send next, regardless of the window: NextSeg of RFC 6675 §4.
    fn pick(&self, config: &Config, is_new_allowed: bool) -> Option<Pick> {
        if self.flags & bit::REPEAT != 0 {
            return Some(Pick::Repeat);
        }
        if self.flags & bit::TAIL != 0 {
            return Some(if is_new_allowed { Pick::New } else { Pick::Rescue(self.next - 1) });
        }
        let Some(board) = &self.scoreboard else {
            return is_new_allowed.then_some(Pick::New);
        };
        let is_sack_recovery = self.mode == Mode::Recovery && config.recovery.has_sack();
        if (is_sack_recovery || self.mode == Mode::Loss)
            && let Some(segment) = board.next_lost()
        {
            return Some(Pick::Lost(segment));
        }
        if is_new_allowed {
            return Some(Pick::New);
        }
        if !is_sack_recovery || config.recovery == Recovery::Fack || self.flags & bit::LINUX != 0 {
            return None;
        }
        let rescue = || board.rescue(self.una, self.next).map(Pick::Rescue);
        board.next_unsacked().map(Pick::Lost).or_else(rescue)
    }

    /// One more segment fits the window. One may always be in flight: a window below one segment
    /// would never see an ACK again.
    #[inline]
    fn has_room(&self, config: &Config, flight: u64) -> bool {
        self.has_room_beside::<false>(config, flight)
    }

    /// As [`Sender::has_room`]; `PLAIN`: duplicate ACKs add nothing.
    #[inline(always)]
    fn has_room_beside<const PLAIN: bool>(&self, config: &Config, flight: u64) -> bool {
        // What duplicate ACKs add to the window is taken off the other side; both are counts of
        // segments that fit a sequence number.
        let inflation = if PLAIN { 0 } else { self.inflation };
        let segments = (flight + 1).wrapping_sub(inflation as i64 as u64) as i64;
        flight == 0 || segments <= 0 || segments as u64 * u64::from(config.segment) <= self.usable(config).0
    }

    #[inline(always)]
    fn data_packet<const PLAIN: bool>(
        &mut self,
        config: &Config,
        now: Time,
        pick: Pick,
        flight: u64,
        available: u64,
        packet: &mut Packet,
    ) {
        let is_new = PLAIN || pick == Pick::New;
        let index = match pick {
            Pick::New => self.next,
            Pick::Repeat => self.una,
            Pick::Lost(segment) | Pick::Rescue(segment) => segment,
        };
        let size = config.size_of(index);
        let first_unsent = self.next + u64::from(is_new);
        let has_more = first_unsent < available && first_unsent - self.una < u64::from(self.awnd);
        let is_window_limited = has_more && !self.has_room_beside::<PLAIN>(config, flight + 1);
        *packet = Packet {
            stamp_ns: self.next_stamp(now),
            flow: self.flow,
            seq: self.base.wrapping_add(index as u32),
            size,
            kind: Kind::Data,
            ..Packet::default()
        };
        if self.flags & bit::HEADERS != 0
            && let Some(rest) = &self.rest
        {
            rest.connection.show(config, index, packet);
        }
        let pacing = if self.flags & bit::SILENT != 0 {
            None
        } else {
            self.tell::<PLAIN>(config, now, index == 0 && is_new, is_window_limited, available, packet)
        };
        if is_new {
            self.next += 1;
            if config.ecn {
                // RFC 3168 §6.1.5: a retransmission is not ECN-capable. A law's own code stays.
                packet.flags |= if packet.flags & flag::ECN_MASK == 0 { flag::ECT0 } else { 0 };
                if self.flags & bit::CWR != 0 {
                    self.flags &= !bit::CWR;
                    packet.flags |= flag::CWR;
                }
            }
            if self.dup_acks > 0 && matches!(self.mode, Mode::Open | Mode::Reduced) {
                self.limited = self.limited.saturating_add(1);
            }
        } else {
            packet.flags |= flag::RETRANSMIT;
            self.note_retransmission(config, now, pick, index);
        }
        self.note_idle(config, now);
        self.sent_at = now;
        if is_window_limited {
            self.flags |= bit::WINDOW_LIMITED;
        }
        if is_window_limited {
            // One more is in flight than `flight`, unless a probe or PRR changes that: the next poll would find no room.
            if PLAIN
                || matches!(pick, Pick::New | Pick::Lost(_)) && self.flags & (bit::PROBES | bit::LINUX) == 0
            {
                self.flags |= bit::BLOCKED;
            }
        } else if is_new && !has_more && self.scoreboard.is_none() {
            self.flags |= bit::BLOCKED;
        }
        if !PLAIN && self.scoreboard.is_some() {
            self.record_delivery(config, now, index, flight, first_unsent >= available);
        }
        if let Some(rate) = pacing {
            debug_assert!(self.flags & bit::PROBES == 0, "`release` is when to ask for the next probe");
            let interval = Bytes(u64::from(size)).at(rate).0;
            let credit = match self.flags & bit::APART {
                0 => (PACING_BURST - 1).saturating_mul(interval),
                _ => interval / 2,
            };
            self.release = Time(self.release.0.max(now.0.saturating_sub(credit)).saturating_add(interval));
        }
    }

    /// Lets the law put on a data packet what it tells, and returns the rate to pace at. `is_first`: it is the first of
    /// the connection.
    #[inline(always)]
    fn tell<const PLAIN: bool>(
        &mut self,
        config: &Config,
        now: Time,
        is_first: bool,
        is_window_limited: bool,
        available: u64,
        packet: &mut Packet,
    ) -> Option<Rate> {
        let send = law::Send {
            size: Bytes(u64::from(packet.size)),
            // docs/design/contract.md 4: the first data packet does not state the RTT that the SYN measured;
            // ns-2's does.
            srtt: if is_first && !config.ns2 { Duration(0) } else { self.rtt.srtt() },
            awnd: self.awnd_bytes(config),
            backlog: in_bytes(config, available - self.next),
            inflation: match self.mode {
                Mode::Recovery if !PLAIN => in_bytes(config, u64::try_from(self.inflation).unwrap_or(0)),
                _ => Bytes(0),
            },
            is_window_limited,
        };
        self.law.on_send(&config.law, now, &send, self.rtt.srtt(), packet)
    }

    /// `flight` segments were in flight before `index` was sent; `is_last`: there is no more data.
    #[inline(never)]
    fn record_delivery(&mut self, config: &Config, now: Time, index: u64, flight: u64, is_last: bool) {
        if self.flags & bit::LINUX != 0 {
            self.record_as_linux(config, now, index);
            return;
        }
        let is_idle = is_last && self.has_room(config, flight + 1);
        if let Some(delivery) = self.delivery() {
            delivery.note_sent(now, index, flight);
            if is_idle {
                delivery.note_app_limited(flight + 1);
            }
        }
    }

    #[inline(never)]
    fn note_retransmission(&mut self, config: &Config, now: Time, pick: Pick, index: u64) {
        self.flags &= !bit::REPEAT;
        self.count_repeated(config, now, index);
        let is_beside = self.sent_at == now;
        let ledger = self.ledger_mut();
        ledger.retransmits += 1;
        if is_beside {
            ledger.repeated_beside = now;
        }
        let Some(board) = self.scoreboard.as_mut().filter(|board| board.linux.is_none()) else { return };
        if matches!(pick, Pick::Rescue(_)) {
            board.note_rescue(self.recover);
            return;
        }
        board.retransmit(index);
        if config.repeats_again() {
            board.watch(index, self.next, now);
            let has_heard = index == self.una && core::mem::take(&mut board.has_heard);
            self.end_watch();
            if has_heard {
                // As when recovery begins: it has a timeout of its own. Not if all was silent since.
                self.restart_timer(config, now);
            }
            self.begin_watch();
        }
    }

    fn control_packet(&mut self, config: &Config, now: Time) -> Packet {
        let is_syn = self.flags & bit::SYN != 0;
        self.flags &= !(bit::SYN | bit::PROBE);
        let mut packet = Packet {
            stamp_ns: self.control_stamp(now, is_syn),
            flow: self.flow,
            seq: if is_syn { self.base.wrapping_sub(1) } else { self.base.wrapping_add(self.una as u32) },
            size: config.ack,
            kind: if is_syn { Kind::Syn } else { Kind::WindowProbe },
            ..Packet::default()
        };
        if is_syn && config.law.needs().handshake {
            let send = law::Send {
                size: Bytes(u64::from(config.ack)),
                awnd: Bytes(u64::MAX),
                ..law::Send::default()
            };
            self.law.on_send(&config.law, now, &send, Duration(0), &mut packet);
        }
        packet
    }

    /// The probe that the law sends now, if any: a copy of a segment that was sent before.
    #[inline(never)]
    fn probe(&mut self, config: &Config, now: Time, packet: &mut Packet) -> bool {
        // Nothing to copy, or nothing left to find out.
        if self.next == 0 || self.completion != Time::NEVER {
            self.release = Time::NEVER;
            return false;
        }
        let ask = law::Ask { srtt: self.rtt.srtt(), awnd: self.awnd_bytes(config) };
        let probe = match self.law.probe(&config.law, now, &ask) {
            law::Turn::Send(probe) => probe,
            law::Turn::Wait(until) => {
                self.release = until;
                return false;
            }
        };
        let Some(board) = &mut self.scoreboard else { return false };
        let outstanding = board.unsacked(self.una, self.next);
        let Some(probes) = &mut board.probes else { return false };
        probes.sent += 1;
        let index = match probe {
            law::Probe::Random if outstanding > 0 => {
                let count = probes.stream.below(outstanding);
                board.nth_unsacked(self.una, count)
            }
            _ => self.next - 1,
        };
        let size = config.size_of(index);
        let stamp_ns = self.next_stamp(now);
        self.count_repeated(config, now, index);
        *packet = Packet {
            stamp_ns,
            flow: self.flow,
            seq: self.base.wrapping_add(index as u32),
            size,
            kind: Kind::Data,
            flags: flag::LOW_PRIORITY,
            ..Packet::default()
        };
        true
    }

    /// RFC 5681 §4.1: after a timeout's time without sending, the window says nothing of the path.
    fn restart_if_idle(&mut self, config: &Config, now: Time) {
        // ns-2's agent has no such rule while its window is not opened by ACKs.
        if self.sent_at != Time::NEVER && !config.ns2 && now > self.sent_at + self.rto(config) {
            let initial = in_bytes(config, u64::from(config.initial_window));
            self.law.on_restart(&config.law, now, initial);
        }
    }

    // Small things.

    /// FlightSize, from which the law derives what is left of the window: sent and not acknowledged,
    /// less what limited transmit added (RFC 5681 §3.2).
    ///
    /// Never more than the window, as ns-2 has it ("no more than", RFC 5681 §3.1): while a hole holds the
    /// acknowledgments back, the pipe, or duplicate ACKs, let new data pass in every round trip, and all
    /// of it counts as not acknowledged. Half of several windows would be no reduction.
    fn flight_size(&self, config: &Config) -> Bytes {
        let flight = in_bytes(config, (self.next - self.una).saturating_sub(u64::from(self.limited)));
        flight.min(self.usable(config))
    }

    /// The part of the law's window that the sender uses.
    #[inline(always)]
    fn usable(&self, config: &Config) -> Bytes {
        self.law.window().min(config.window_most)
    }

    #[inline]
    fn rto(&self, config: &Config) -> Duration {
        if self.flags & (bit::SYN_EXPIRED | bit::LINUX) != 0 {
            return self.unusual_rto(config);
        }
        self.rtt.rto(INITIAL_RTO, config.min_rto, self.backoff)
    }

    /// Linux's timeout, and that of the first data after a SYN that was repeated (RFC 6298 §5.7).
    #[cold]
    fn unusual_rto(&self, config: &Config) -> Duration {
        let rto = if self.flags & bit::LINUX == 0 {
            self.rtt.rto(INITIAL_RTO, config.min_rto, self.backoff)
        } else {
            self.rtt.linux_rto(INITIAL_RTO, config.min_rto, self.backoff)
        };
        let is_cautious = self.flags & bit::SYN_EXPIRED != 0 && self.mode != Mode::SynSent;
        if is_cautious { rto.max(CAUTIOUS_RTO) } else { rto }
    }

    #[inline]
    fn restart_timer(&mut self, config: &Config, now: Time) {
        self.timer = if self.una < self.next { now + self.rto(config) } else { Time::NEVER };
    }

    #[inline]
    fn awnd_bytes(&self, config: &Config) -> Bytes {
        // No window has more than so many segments: their bytes fit.
        if self.awnd == UNLIMITED { Bytes(u64::MAX) } else { sent_bytes(config, u64::from(self.awnd)) }
    }

    /// The round trip that an ACK of new data measures (RFC 7323 §4.1).
    #[inline]
    fn sample(&mut self, now: Time, packet: &Packet) -> Duration {
        let rtt = now - packet.sent_at(now);
        self.rtt.sample(rtt);
        if self.is_measured(now) {
            self.round_trips.record(rtt);
        }
        rtt
    }
}

fn initial_law(config: &Config, segments: u32) -> law::Sender {
    law::Sender::new(&config.law, in_bytes(config, 1), in_bytes(config, u64::from(segments)))
}

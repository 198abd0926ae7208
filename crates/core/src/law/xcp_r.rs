//! XCP-r: XCP whose window is kept by the receiver (XR = Lopez-Pacheco, Pham, "Robust transport
//! protocol for dynamic high-speed networks: enhancing the XCP approach", 2005, §IV).
//!
//! XCP's sender adds up what the ACKs bring, so what a lost ACK brought is lost for good. Here the
//! receiver adds up and every ACK carries the sum, the window itself: any later ACK makes a lost one
//! good. Links cannot tell: they see XCP's header and run XCP's law.
//!
//! A window that the sender changes on its own (loss, timeout, aging, a limit of its own) has to be
//! told to the receiver. XR has a flag for it and the window in the header of data. Here such a
//! change begins an *epoch*, whose number rides along both ways, and [`Own`] says what the header states:
//!
//! - the sum of all such changes (default). The receiver adds the new part of the sum to its window. The sender knows the sum of
//!   each recent epoch, so ACKs of older epochs count, and what links granted meanwhile is kept;
//! - the window, with the flag, until an ACK echoes the epoch. The receiver goes on from this window, so grants of that round trip
//!   are lost, and ACKs of older epochs are not taken (docs/design/protocols.md 4.3, A-12).
//!
//! An ACK that another one overtook is never taken.

#[cfg(feature = "words")]
mod words;

use super::protocol::Protocol;
#[cfg(feature = "words")]
use super::settings::Finding;
use super::settings::{Field, Settings, words};
use super::{
    Ack, EchoLaw, Heard, Hue, Lie, Look, Needs, Network, Packet, Receiving, Send, SenderLaw, Shape, Tag,
    Words, xcp,
};
use crate::law;
use crate::units::{Bytes, Duration, Rate, Time, Wide};
use core::any::Any;
use core::convert::Infallible;

/// Statement of a sender about the changes of the window that it makes on its own account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Own {
    /// The sum of all changes, in every packet: nothing that links grant meanwhile is lost.
    #[default]
    Difference,
    /// The window, with a flag until an ACK echoes the epoch (A-12): it replaces the receiver's.
    Reset,
}

words!(Own { Difference = "difference", Reset = "reset", });

/// Configuration of XCP-r's sender and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// XCP's part of the configuration.
    pub xcp: xcp::SenderConfig,
    /// True if changes by the sender are numbered; false for XR's version, whose flag rides in one packet, counts
    /// each time that it is seen, and whose values are taken from every ACK.
    pub epochs: bool,
    /// Statement about the sender's own changes; only with epochs.
    pub own: Own,
}

impl Config {
    /// Defaults: XCP's, with epochs and the sum of the sender's own changes.
    pub const DEFAULT: Self = Self { xcp: xcp::SenderConfig::DEFAULT, epochs: true, own: Own::Difference };

    /// True if data state the sum of the sender's own changes.
    #[inline(always)]
    const fn states_difference(&self) -> bool {
        self.epochs && matches!(self.own, Own::Difference)
    }
}

impl Settings for Config {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        self.xcp.each_of_family(tell);
        tell(
            "epochs",
            "Number the changes that the sender makes on its own; true. false: as in the paper.",
            Field::Switch(&mut self.epochs),
        );
        tell(
            "own",
            "What data say of these changes: difference, their sum (default); or reset, the window that replaces the receiver's (A-12).",
            Field::Word(&mut self.own),
        );
    }

    /// XR's flag comes with the window.
    #[cfg(feature = "words")]
    fn settle(&mut self, is_written: &dyn Fn(&str) -> bool) {
        if !self.epochs && !is_written("own") {
            self.own = Own::Reset;
        }
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        // A sum of changes has no meaning without the numbers of changes.
        if !self.epochs && self.own == Own::Difference {
            let text = "is difference without epochs";
            let help = "allowed: reset, or difference with epochs = true";
            tell(Finding { at: ["own", "epochs"], ..Finding::range("own", text, help) });
        }
    }
}

/// Returns the protocols of this file: `xcp-r` alone; on links it is XCP.
pub(super) const fn protocols() -> &'static [Protocol<Infallible, Config>] {
    const {
        &[Protocol {
            name: "xcp-r",
            about: "XCP whose window the receiver keeps: lost ACKs take nothing away",
            page: "xcp-r",
            look: Look::new(Hue::Green, Shape::Square, 3),
            link_series: &[],
            flow_series: &[],
            link: None,
            sender: Some(Config::DEFAULT),
        }]
    }
}

/// Header of a data packet beside XCP's. No link touches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// The window of the sender, bytes; at most 4 GB can be said. With `is_difference` the sum of the sender's own changes since
    /// the last reset, bytes modulo 2^32, in whole [`STEP`]s.
    pub cwnd: u32,
    /// Number of the sender's last change, modulo 256.
    pub epoch: u8,
    /// True if the congestion flag is set: the receiver is to go on from `cwnd`.
    pub is_reset: bool,
    /// True if `cwnd` is the sum of the sender's own changes.
    pub is_difference: bool,
}

/// Word 4, and the upper half of word 5.
impl law::Header for Header {
    const TAG: Tag = Tag::beside("xcp-r");

    #[inline(always)]
    fn read(words: &Words) -> Self {
        let word = words[5];
        Self {
            cwnd: words[4],
            epoch: (word >> 16) as u8,
            is_reset: word >> 24 & 1 != 0,
            is_difference: word >> 25 & 1 != 0,
        }
    }

    #[inline(always)]
    fn write(self, words: &mut Words) {
        words[4] = self.cwnd;
        let flags = self.is_reset as u32 | (self.is_difference as u32) << 1;
        words[5] = words[5] & 0xffff | (self.epoch as u32) << 16 | flags << 24;
    }
}

/// Reply that an ACK carries in place of Reverse_Feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Reply {
    /// The window that the receiver keeps for the sender, bytes; at most 4 GB can be said.
    pub cwnd: u32,
    /// Epoch that the window belongs to.
    pub epoch: u8,
}

/// Bits of a window's leading digits in the words that hosts exchange.
const DIGITS: u32 = 16;

/// Unit of the sums that data state, bytes: the sum of 4 GB then fits beside an epoch into a word. The sender keeps the rest.
pub const STEP: u32 = 1 << STEP_BITS;
const STEP_BITS: u32 = 10;
/// Epochs whose sums a sender knows, the running one included. It begins about one in a round trip.
const EPOCHS: usize = 8;

impl Reply {
    /// Largest window that a word can say, bytes: digits that are all ones, shifted by what four bits count.
    pub const CWND_MAX: u32 = 0xffff << 15;

    /// Returns the reply in the lower 28 bits of a word, as TCP options of hosts carry it: 8 bits of epoch, 4 bits of a shift,
    /// and the window's 16 leading binary digits. What is below those is lost, less than a 32,768th of the window.
    #[inline]
    pub fn to_word(self) -> u32 {
        let cwnd = self.cwnd.min(Self::CWND_MAX);
        let shift = (u32::BITS - DIGITS).saturating_sub(cwnd.leading_zeros());
        (self.epoch as u32) << 20 | shift << DIGITS | cwnd >> shift
    }

    /// Reads such a word, whatever its upper four bits are.
    #[inline]
    pub fn from_word(word: u32) -> Self {
        Self { cwnd: (word & 0xffff) << (word >> DIGITS & 0xf), epoch: (word >> 20) as u8 }
    }
}

impl Header {
    /// Returns the header as a word: that of a [`Reply`], with the flag in bit 28. Of a sum, which bit 29 names, the lower 20
    /// bits stand in place of the digits, and two above the flags.
    #[inline]
    pub fn to_word(self) -> u32 {
        if self.is_difference {
            let steps = self.cwnd >> STEP_BITS;
            return steps >> 20 << 30 | 1 << 29 | (self.epoch as u32) << 20 | steps & 0xf_ffff;
        }
        Reply { cwnd: self.cwnd, epoch: self.epoch }.to_word() | (self.is_reset as u32) << 28
    }

    /// Reads such a word.
    #[inline]
    pub fn from_word(word: u32) -> Self {
        let Reply { cwnd, epoch } = Reply::from_word(word);
        if word >> 29 & 1 != 0 {
            let steps = word >> 30 << 20 | word & 0xf_ffff;
            return Self { cwnd: steps << STEP_BITS, epoch, is_reset: false, is_difference: true };
        }
        Self { cwnd, epoch, is_reset: word >> 28 & 1 != 0, is_difference: false }
    }
}

impl From<law::Reply> for Reply {
    #[inline(always)]
    fn from(reply: law::Reply) -> Self {
        Self { cwnd: reply.word, epoch: reply.byte }
    }
}

impl From<Reply> for law::Reply {
    #[inline(always)]
    fn from(reply: Reply) -> Self {
        Self { word: reply.cwnd, byte: reply.epoch }
    }
}

/// Statements of a data packet and its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// XCP's congestion header.
    pub header: xcp::Header,
    /// XCP-r's header, beside XCP's.
    pub window: Header,
    /// Size of the flow's full IP packets.
    pub mss: Bytes,
    /// Window that the receiver advertises; `u64::MAX` is unlimited.
    pub awnd: Bytes,
}

impl Data {
    /// Returns what a packet with XCP's header says.
    #[inline(always)]
    pub fn of(packet: &impl Packet, receiver: impl Receiving) -> Option<Self> {
        let header = packet.header()?;
        let window = packet.header().unwrap_or_default();
        Some(Self { header, window, mss: receiver.mss(), awnd: receiver.awnd() })
    }
}

/// Receiver state: the window that the sender should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Echo {
    /// cw' of XR, bytes with [`xcp::PLACES`].
    window: u64,
    /// Sum of the sender's own changes that the window has, bytes.
    own: u32,
    epoch: u8,
}

impl Echo {
    /// Creates the state of a new connection: one segment, on the SYN (XR §IV).
    #[inline(always)]
    pub fn new(mss: Bytes) -> Self {
        Self { window: xcp::with_places(mss), own: 0, epoch: 0 }
    }

    /// Takes a data packet: in order or not, the first time or again. The feedback of each moves the
    /// window by what XCP's sender would make of it, with the round trip time that the packet states.
    #[inline]
    pub fn take(&mut self, config: &Config, data: &Data) {
        self.take_all(config, data, 1);
    }

    /// Takes as many equal data packets, as kernels join what arrives together.
    #[inline]
    pub fn take_all(&mut self, config: &Config, data: &Data, packets: u32) {
        let (header, ours) = (&data.header, &data.window);
        // An epoch that a later one overtook is over.
        let is_newer = ours.epoch.wrapping_sub(self.epoch).wrapping_sub(1) < 0x7f;
        if ours.is_reset && (is_newer || !config.epochs) {
            self.window = xcp::with_places(Bytes(ours.cwnd as u64));
            self.own = 0;
            self.epoch = ours.epoch;
        } else if ours.is_difference && is_newer {
            let change = ours.cwnd.wrapping_sub(self.own) as i32;
            self.own = ours.cwnd;
            self.epoch = ours.epoch;
            self.keep(config, data, self.window.saturating_add_signed((change as i64) << xcp::PLACES));
        }
        let change = header.delta as i64 * header.rtt as i64;
        self.keep(config, data, self.window.saturating_add_signed(change));
        if packets > 1 {
            // From within the limits it ends where one by one would.
            let rest = Wide::product(change.unsigned_abs(), packets as u64 - 1).to_u64();
            let window =
                if change < 0 { self.window.saturating_sub(rest) } else { self.window.saturating_add(rest) };
            self.keep(config, data, window);
        }
    }

    /// The window is this from now on, within the limits.
    #[inline(always)]
    pub(in crate::law) fn keep(&mut self, config: &Config, data: &Data, window: u64) {
        // A window beyond what the receiver takes would grow without end (TH 4.1): its sender does
        // not use it.
        let awnd = if config.xcp.clamp { xcp::with_places(data.awnd) } else { u64::MAX };
        let most = xcp::with_places(Bytes(u32::MAX as u64));
        self.window = window.min(awnd).max(xcp::with_places(data.mss)).min(most);
    }

    /// Returns the window and its epoch for the ACK about to leave.
    #[inline]
    pub fn reply(&self) -> Reply {
        Reply { cwnd: (self.window >> xcp::PLACES) as u32, epoch: self.epoch }
    }
}

/// Sender state of one flow: XCP's, and how far it agrees with the receiver.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    xcp: xcp::Sender,
    /// Window that the receiver said last, with the sender's changes since, or was told by the flag, bytes with [`xcp::PLACES`].
    heard: u64,
    /// Sum of the sender's own changes since the last reset, bytes modulo 2^32.
    own: u32,
    /// Sums that data of the last epochs state, by the epoch's number.
    told: [u32; EPOCHS],
    epoch: u8,
    /// Epochs before this one whose ACKs count.
    known: u8,
    /// True while the receiver has to be told the window.
    is_reset: bool,
}

impl Sender {
    /// Creates the state of a new connection: the receiver begins with one segment. See [`xcp::Sender::new`].
    #[inline(always)]
    pub fn new(config: &Config, mss: Bytes, initial_window: Bytes) -> Self {
        let xcp = xcp::Sender::new(mss, initial_window);
        let heard = xcp::with_places(mss);
        let mut sender = Self { xcp, heard, own: 0, told: [0; EPOCHS], epoch: 0, known: 0, is_reset: false };
        if sender.xcp.cwnd != heard {
            sender.reset(config);
        }
        sender
    }

    /// Takes the window of another law, which rules for now, so that headers state it. The receiver keeps its own meanwhile.
    #[inline(always)]
    pub fn restate(&mut self, mss: Bytes, window: Bytes) {
        let asked = self.xcp.asked();
        self.xcp = xcp::Sender::new(mss, window);
        self.xcp.set_asked(asked);
        self.heard = self.xcp.cwnd;
    }

    /// Goes on from this window, whoever has ruled before, and tells the receiver. The epochs go on, too.
    #[inline(always)]
    pub fn resume(&mut self, config: &Config, mss: Bytes, window: Bytes) {
        self.restate(mss, window);
        self.reset(config);
    }

    /// Meters a packet about to leave and returns its XCP header, as [`xcp::Sender::header`].
    #[inline]
    pub fn header(&mut self, config: &Config, now: Time, send: &Send) -> xcp::Header {
        let before = self.xcp.cwnd;
        let header = self.xcp.bare_header(&config.xcp, now, send);
        if self.xcp.cwnd != before {
            self.change(config); // aged
        }
        if config.xcp.verifies() && header.delta > 0 {
            // The window that the receiver makes of it, bytes with the places of windows.
            let each = header.delta as u64 * header.rtt as u64;
            let amount = Wide::product(each, self.xcp.packets(send)).to_u64();
            let most = Wide::product(config.xcp.desired_rate.0, header.rtt as u64).to_u64();
            let mut asked = self.xcp.asked();
            asked.ask(amount, most);
            self.xcp.set_asked(asked);
        }
        header
    }

    /// Returns XCP-r's header of the packet that [`Sender::header`] was called for.
    #[inline]
    pub fn window_header(&mut self, config: &Config) -> Header {
        let is_reset = self.is_reset;
        // XR: one packet carries the flag.
        self.is_reset &= config.epochs;
        if config.states_difference() && !is_reset {
            let cwnd = self.told[self.epoch as usize % EPOCHS];
            return Header { cwnd, epoch: self.epoch, is_reset, is_difference: true };
        }
        let cwnd = self.window().0.min(u32::MAX as u64) as u32;
        Header { cwnd, epoch: self.epoch, is_reset, is_difference: false }
    }

    /// Forgets the requests and the lies: the connection is new.
    #[inline(always)]
    pub fn forget_requests(&mut self) {
        self.xcp.set_asked(xcp::Asked::default());
    }

    /// Returns the requests that are open, and the lies. For observers.
    #[inline(always)]
    pub fn asked(&self) -> xcp::Asked {
        self.xcp.asked()
    }

    /// Returns the state of XCP's sender, for observers.
    #[inline]
    pub fn xcp(&self) -> &xcp::Sender {
        &self.xcp
    }

    /// Returns the number of the last change that the receiver did not make, modulo 256, and true while the receiver
    /// is still to be told. For observers.
    #[inline]
    pub fn epoch(&self) -> (u8, bool) {
        (self.epoch, self.is_reset)
    }

    /// Returns the sum of the sender's own changes since data stated a whole window, bytes modulo 2^32. For observers.
    #[inline]
    pub fn own(&self) -> u32 {
        self.own
    }

    /// Returns the window that both sides last agreed on, whole bytes. For observers.
    #[inline]
    pub fn heard(&self) -> Bytes {
        Bytes(self.heard >> xcp::PLACES)
    }

    /// The window has changed otherwise than by the receiver's word: tells it the new one, whole bytes.
    #[inline(always)]
    fn reset(&mut self, config: &Config) {
        self.xcp.cwnd = xcp::with_places(self.xcp.window());
        self.heard = self.xcp.cwnd;
        self.is_reset = true;
        if config.epochs {
            self.epoch = self.epoch.wrapping_add(1);
        }
        (self.own, self.known) = (0, 0);
        self.told[self.epoch as usize % EPOCHS] = 0;
    }

    /// The sender has changed the window on its own account: data state it from now on, by the sum of such changes where the
    /// receiver's window is known.
    #[inline(always)]
    fn change(&mut self, config: &Config) {
        // Sums of such windows would wrap.
        let is_huge = self.heard >> xcp::PLACES >= 1 << 30;
        if !config.states_difference() || self.is_reset || self.xcp.is_tcp() || is_huge {
            return self.reset(config);
        }
        // Whole bytes; the fraction is the receiver's.
        let change = (self.xcp.cwnd >> xcp::PLACES) as i64 - (self.heard >> xcp::PLACES) as i64;
        if change == 0 {
            return;
        }
        self.heard = self.heard.saturating_add_signed(change << xcp::PLACES);
        self.xcp.cwnd = self.heard;
        self.own = self.own.wrapping_add(change as u32);
        self.epoch = self.epoch.wrapping_add(1);
        self.told[self.epoch as usize % EPOCHS] = self.own & !(STEP - 1);
        self.known = (self.known + 1).min(EPOCHS as u8 - 1);
    }

    /// Returns the window that an ACK of an epoch states, with the changes that the sender has made since, bytes with
    /// [`xcp::PLACES`]; `None`: they are not known.
    #[inline(always)]
    fn stated(&self, config: &Config, reply: Reply) -> Option<u64> {
        let age = self.epoch.wrapping_sub(reply.epoch);
        let window = xcp::with_places(Bytes(reply.cwnd as u64));
        if !config.states_difference() || age == 0 && self.is_reset {
            return if age == 0 || !config.epochs { Some(window) } else { None };
        }
        if age > self.known {
            return None;
        }
        let change = self.own.wrapping_sub(self.told[reply.epoch as usize % EPOCHS]) as i32;
        Some(window.saturating_add_signed((change as i64) << xcp::PLACES))
    }
}

impl SenderLaw for Sender {
    type Config = Config;
    type Echo = Echo;

    #[inline(always)]
    fn name(_config: &Config) -> &'static str {
        "xcp-r"
    }

    #[inline(always)]
    fn needs(config: &Config) -> Needs {
        let needs = xcp::Sender::needs(&config.xcp);
        // Each ACK carries the whole window (XR §IV).
        Needs { network: needs.network.map(|network| Network { unacknowledged: "", ..network }), ..needs }
    }

    #[inline(always)]
    fn start(config: &Config, mss: Bytes, initial_window: Bytes) -> Self {
        Self::new(config, mss, initial_window)
    }

    /// The window is what the receiver says (XR §IV), within XCP's limits.
    #[inline]
    fn on_ack(&mut self, config: &Config, now: Time, ack: &Ack) {
        let (before, was_tcp) = (self.xcp.cwnd, self.xcp.is_tcp());
        self.xcp.note_ack(&config.xcp, now, ack);
        if self.xcp.cwnd != before {
            self.change(config); // aged
        }
        let reply = Reply::from(ack.reply);
        let stated = if config.epochs && ack.is_late { None } else { self.stated(config, reply) };
        if let Some(told) = stated {
            let is_current = reply.epoch == self.epoch || !config.epochs;
            if config.epochs && is_current {
                self.is_reset = false;
            }
            // A limit that the receiver does not know. It knows what it advertises.
            let awnd = if config.xcp.clamp { xcp::with_places(ack.awnd) } else { u64::MAX };
            // While TCP rules, XCP's change counts only for the comparison with TCP's.
            let from = if was_tcp { self.heard } else { self.xcp.cwnd };
            self.heard = match config.states_difference() {
                true => told.min(awnd).max(xcp::with_places(self.xcp.mss())),
                false => told,
            };
            let mut change = difference(told, from);
            if config.xcp.verifies() {
                let mut asked = self.xcp.asked();
                // Each end rounds, and neither window falls below a segment.
                change = asked.take(change, xcp::with_places(self.xcp.mss()) * 2);
                self.xcp.set_asked(asked);
            }
            self.xcp.apply(&config.xcp, now, ack, change);
            // Once in a round trip.
            if !was_tcp && is_current && self.xcp.cwnd < told.min(awnd) {
                self.change(config);
            }
        } else {
            self.xcp.apply(&config.xcp, now, ack, 0);
        }
        if was_tcp && !self.xcp.is_tcp() {
            self.reset(config);
        }
    }

    /// Follows [`xcp::LossPolicy`].
    #[inline]
    fn on_loss(&mut self, config: &Config, now: Time, flight: Bytes) {
        self.xcp.on_loss(&config.xcp, now, flight);
        if config.xcp.loss != xcp::LossPolicy::Maintain {
            self.change(config);
        }
    }

    /// One segment. If the receiver was told so and no ACK has come since, the window does not change
    /// and the epoch goes on: what the receiver has added meanwhile counts.
    #[inline]
    fn on_timeout(&mut self, config: &Config, now: Time, flight: Bytes, is_first: bool) {
        let before = self.xcp.cwnd;
        self.xcp.on_timeout(&config.xcp, now, flight, is_first);
        if !config.epochs || !self.is_reset || self.xcp.cwnd != before {
            self.change(config);
        }
    }

    /// Restarts the window only where TCP rules it: [`xcp::Sender::on_restart`].
    #[inline]
    fn on_restart(&mut self, config: &Config, now: Time, initial_window: Bytes) {
        self.xcp.on_restart(&config.xcp, now, initial_window);
    }

    #[inline(always)]
    fn on_send(&mut self, config: &Config, now: Time, send: &Send, packet: &mut impl Packet) {
        let header = self.header(config, now, send);
        packet.add_header(header);
        let window = self.window_header(config);
        packet.add_header(window);
    }

    /// The congestion window.
    #[inline]
    fn window(&self) -> Bytes {
        self.xcp.window()
    }

    /// Returns XCP's pacing rate: [`xcp::Sender::pacing_rate`].
    #[inline]
    fn pacing_rate(&self, config: &Config, srtt: Duration) -> Option<Rate> {
        self.xcp.pacing_rate(&config.xcp, srtt)
    }

    #[inline(always)]
    fn base(config: &Config) -> &dyn Any {
        &config.xcp
    }

    #[inline(always)]
    fn base_mut(config: &mut Config) -> &mut dyn Any {
        &mut config.xcp
    }

    #[inline(always)]
    fn base_state(&self) -> &dyn Any {
        &self.xcp
    }
}

impl EchoLaw<Config> for Echo {
    #[inline(always)]
    fn start(_config: &Config, mss: Bytes) -> Self {
        Self::new(mss)
    }

    #[inline(always)]
    fn on_data(&mut self, config: &Config, packet: &impl Packet, receiver: impl Receiving) -> Heard {
        if let Some(data) = Data::of(packet, receiver) {
            self.take(config, &data);
        }
        Heard::Taken
    }

    #[inline(always)]
    fn on_ack(&mut self, _config: &Config, _receiver: impl Receiving) -> law::Reply {
        self.reply().into()
    }

    #[inline]
    fn forge(config: &Config, lie: Lie, packet: &mut impl Packet) {
        xcp::forge(&config.xcp, lie, packet);
    }
}

/// `to - from`, as far as it can be said.
#[inline(always)]
fn difference(to: u64, from: u64) -> i64 {
    if to >= from {
        (to - from).min(i64::MAX as u64) as i64
    } else {
        -((from - to).min(i64::MAX as u64) as i64)
    }
}

//! Sender law of XCP: states the flow's rate and what more it could use, and moves the window by the
//! feedback of each ACK (draft-03 §4.1, K02 §3.4).

use super::{
    Asked, EchoReader, Feedback, Header, LossPolicy, PLACES, Profile, RateSource, RequestPolicy, Returned,
    SenderConfig, feedback,
};
use crate::law::apart::Apart;
use crate::law::{Ack, Delivery, Giver, Needs, Network, Packet, Reply, Send, SenderLaw, reno};
use crate::units::{Bytes, Duration, Rate, Ratio, SECOND, Time, Wide, mul_div};

/// Binary places of the demand, so that what is below the header's 1 B/s can wait for the next one.
const DEMAND_PLACES: u32 = 16;

/// Effect on a sender that runs TCP beside XCP where no link answers.
pub(in crate::law) const UNANSWERED_TCP: &str =
    "no link lowers what the sender asks for, so its window is TCP's from the first losses on";

/// No IP packet is longer. It keeps most products with the segment inside 64 bits.
const SEGMENT_MAX: Bytes = Bytes(u16::MAX as u64);

impl Profile {
    /// True for senders whose ACKs and headers are handled apart. No kernel runs one.
    #[inline(always)]
    const fn is_apart(self) -> bool {
        !cfg!(target_arch = "bpf") && matches!(self, Self::Thesis | Self::Liar(_))
    }
}

impl SenderConfig {
    /// True if something depends on what was really sent.
    #[inline(always)]
    fn is_metered(&self) -> bool {
        self.aging.is_some() || !matches!(self.rate_source, RateSource::Window)
    }

    /// True if nothing is asked for that costs something at every packet: the default configuration, with any rate, that
    /// never lets TCP's window rule. A kernel's program has no room for a second way.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        !cfg!(target_arch = "bpf")
            && self.loss != LossPolicy::Fallback
            && *self == Self { loss: self.loss, ..Self::plain(self.desired_rate) }
    }

    /// Stands for any configuration that [`SenderConfig::is_plain`] while packets and ACKs are handled. What is not asked for
    /// is known where this is compiled.
    #[inline(always)]
    const fn plain(desired_rate: Rate) -> Self {
        Self { desired_rate, ..Self::DEFAULT }
    }

    /// True if feedback is compared with what was asked for. A sender that always asks for the most that a header can say has
    /// nothing to compare.
    #[inline(always)]
    pub(in crate::law) fn verifies(&self) -> bool {
        (cfg!(target_arch = "bpf") || self.verify) && matches!(self.request, RequestPolicy::Demand)
    }

    /// Returns what a flow asks for in a round trip at most, in the unit of the feedback.
    #[inline(always)]
    fn most_asked(&self, srtt: Duration) -> u64 {
        match self.feedback {
            Feedback::Rate | Feedback::Sum => self.desired_rate.0,
            // By the time that the ACK comes the round trip may be half of what the packet stated.
            Feedback::Bytes => self.desired_rate.over(srtt).0.saturating_mul(2),
        }
    }

    /// Returns the most that one ACK brings: a round trip's requests, but for sums, of which an ACK makes good what others have
    /// lost.
    #[inline(always)]
    fn most_claimed(&self) -> u64 {
        if matches!(self.feedback, Feedback::Rate) { self.desired_rate.0 } else { u64::MAX }
    }

    /// True if losses are counted.
    #[inline(always)]
    fn has_net(&self) -> bool {
        self.safety_net && matches!(self.loss, LossPolicy::Maintain)
    }
}

/// State of XCP's sender for one flow.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    /// The window, bytes with [`PLACES`]: below 64 GB, 4 s at the 17 GB/s that a header can ask for.
    pub(in crate::law) cwnd: u64,
    /// Window that the receiver last advertised.
    awnd: Bytes,
    rest: Apart<Rest>,
    /// Demand not yet stated, below 1 B/s, with [`DEMAND_PLACES`].
    demand_rest: i32,
    mss: u16,
    /// True while TCP's window rules, see [`LossPolicy::Fallback`] and [`SenderConfig::safety_net`].
    is_tcp: bool,
    /// The configuration is one that [`SenderConfig::is_plain`].
    is_plain: bool,
}

/// State that the default configuration never asks for.
#[derive(Clone, Debug, Default)]
#[repr(C)]
struct Rest {
    meter: Meter,
    fallback: Fallback,
    net: Net,
    asked: Asked,
    /// Last sum that was heard, for [`Feedback::Sum`].
    reader: EchoReader,
}

/// Counts what was handed to IP, one epoch of about a round trip after the other.
#[derive(Clone, Debug)]
#[repr(C)]
struct Meter {
    began: Time,
    sent: Bytes,
    /// Rate of the last whole epoch; the largest before that.
    rate: Rate,
    /// The window stopped the sender at some moment of this epoch.
    was_limited: bool,
    /// True while it does so now.
    is_limited: bool,
    in_recovery: bool,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            began: Time::NEVER,
            sent: Bytes(0),
            rate: Rate(u64::MAX),
            was_limited: false,
            is_limited: false,
            in_recovery: false,
        }
    }
}

/// Losses of a round trip, which [`Fallback`] has begun, and how long round trips are: the safety net.
#[derive(Clone, Debug)]
#[repr(C)]
struct Net {
    /// Least round trip time, 2^-28 s.
    least: u32,
    /// Smoothed round trip time, 2^-28 s.
    srtt: u32,
    /// Bytes found lost in this round trip.
    lost: u32,
    /// Round trips with short queues, one after the other, while TCP's window rules; negative in the first, whose losses are
    /// of packets that were sent before.
    calm: i16,
    /// Number of times that XCP's window came back.
    returns: u8,
}

impl Default for Net {
    fn default() -> Self {
        Self { least: u32::MAX, srtt: 0, lost: 0, calm: 0, returns: 0 }
    }
}

/// Part of a window that may be lost in a round trip before it means something: one in so many (docs/design/protocols.md
/// 13.8).
const LOST: u64 = 10;
/// Queueing delay that means something, as part of the least round trip: one in so many. A full queue of a link is mostly
/// a round trip or half of one, XCP's own is a hundredth.
const GROWN: u32 = 8;
/// Feedback of a round trip that means something, as part of the window: one in so many. Shuffling moves a tenth.
const ASKED: u64 = 8;
/// Calm round trips after which XCP's window comes back; twice as many after each return, up to 2^[`RETURNS_MAX`] times. As
/// hosts wait that have left XCP after losses (`bpf/host.bpf.c`).
const CALM: i16 = 32;
const RETURNS_MAX: u8 = 7;
/// Least calm round trips for each segment of the window, a numerator and its denominator: Reno's own are fewer. From half of a
/// full link with its queue, half a round trip's data at least, to a queue that means something it takes so many.
const CALM_OF_WINDOW: (u64, u64) = (5, 8);

/// Reno, and what XCP would have done meanwhile.
#[derive(Clone, Debug)]
#[repr(C)]
struct Fallback {
    reno: reno::Reno,
    /// The current round trip of comparing.
    began: Time,
    /// Reno's window then.
    window: Bytes,
    /// Change that XCP's feedback asked for since, bytes with [`PLACES`].
    change: i64,
}

impl Default for Fallback {
    /// Another Reno takes its place when TCP's window begins to rule.
    fn default() -> Self {
        Self { reno: reno::Reno::new(Bytes(1), Bytes(1)), began: Time::ZERO, window: Bytes(0), change: 0 }
    }
}

impl Sender {
    /// Creates the state of a new connection. Nothing is known of the path: the first packets state no
    /// round trip time and get no feedback that could raise the window.
    #[inline(always)]
    pub fn new(mss: Bytes, initial_window: Bytes) -> Self {
        let mss = mss.min(SEGMENT_MAX).max(Bytes(1));
        Self {
            cwnd: with_places(initial_window.max(mss)),
            awnd: Bytes(u64::MAX),
            rest: Apart::default(),
            demand_rest: 0,
            mss: mss.0 as u16,
            is_tcp: false,
            is_plain: false,
        }
    }
}

impl SenderLaw for Sender {
    type Config = SenderConfig;
    type Echo = Returned;

    #[inline(always)]
    fn name(_config: &SenderConfig) -> &'static str {
        "xcp"
    }

    /// The header that counts is draft-03's (§3.2); what XCP-r and XCP-i add (`wire::xcp_extended`) is in the segment and counts
    /// as payload.
    #[inline(always)]
    fn needs(config: &SenderConfig) -> Needs {
        let withstands_loss = config.loss == LossPolicy::Maintain;
        // One that runs TCP beside, or falls back to it, has a window for links that do not answer.
        let has_tcp = config.has_net() || config.loss == LossPolicy::Fallback;
        Needs {
            network: Some(Network {
                giver: Giver::Law("xcp"),
                at_bottleneck: !has_tcp,
                without: match has_tcp {
                    true => UNANSWERED_TCP,
                    false => {
                        "no link lowers what the sender asks for, so its window grows until losses, the receiver or `desired_rate` \
                         limit it"
                    }
                },
                marked: "",
                unacknowledged: match config.feedback {
                    Feedback::Sum => "",
                    _ => "the feedback that it brings, which no other one repeats",
                },
            }),
            initial_window: Some(1),
            delivery: config.has_net(),
            states_round_trip: true,
            is_interoperable: true,
            asks: Some(config.desired_rate),
            withstands_loss,
            header_bytes: 20,
            ..Needs::NONE
        }
    }

    #[inline(always)]
    fn start(config: &SenderConfig, mss: Bytes, initial_window: Bytes) -> Self {
        Self { is_plain: config.is_plain(), ..Self::new(mss, initial_window) }
    }

    /// Applies the feedback: W += Reverse_Feedback * srtt, at least 1 MSS (draft-03 §4.1.3, TH 6). Every ACK carries
    /// its own, so duplicates count too, and ACKs of packets sent before a loss or timeout.
    #[cfg_attr(target_arch = "bpf", inline)]
    #[cfg_attr(not(target_arch = "bpf"), inline(always))] // in line where the list asks for XCP first
    fn on_ack(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
        if self.is_plain {
            return self.standard_on_ack(&SenderConfig::plain(config.desired_rate), now, ack);
        }
        if config.profile.is_apart() {
            return self.apart_on_ack(config, now, ack);
        }
        self.standard_on_ack(config, now, ack);
    }

    /// Follows [`LossPolicy`]. The half is of the window in use: K02's sender is a TCP, whose window
    /// cannot pass what the receiver advertises.
    #[inline]
    fn on_loss(&mut self, config: &SenderConfig, now: Time, flight: Bytes) {
        if matches!(config.profile, Profile::Thesis) {
            return;
        }
        self.note_recovery(config);
        match config.loss {
            LossPolicy::Tcp => {
                let window = self.cwnd.min(with_places(self.awnd));
                self.cwnd = (window / 2).max(with_places(self.mss()));
            }
            LossPolicy::Maintain => {
                // Errors on the wire go on meanwhile, and queues are short then.
                if self.is_tcp && self.net().is_grown() {
                    self.fallback().reno.on_loss(&reno::Config::DEFAULT, now, flight);
                    self.follow_reno(now);
                }
            }
            LossPolicy::Fallback => {
                self.enter_tcp(now);
                self.fallback().reno.on_loss(&reno::Config::DEFAULT, now, flight);
                self.follow_reno(now);
            }
        }
    }

    /// One segment, whatever the policy: the ACK clock is gone.
    #[inline]
    fn on_timeout(&mut self, config: &SenderConfig, now: Time, flight: Bytes, is_first: bool) {
        if matches!(config.profile, Profile::Thesis) {
            return;
        }
        self.note_recovery(config);
        self.cwnd = with_places(self.mss());
        if config.loss == LossPolicy::Fallback || self.is_tcp {
            self.enter_tcp(now);
            self.fallback().reno.on_timeout(&reno::Config::DEFAULT, now, flight, is_first);
            self.follow_reno(now);
        }
    }

    #[inline]
    fn on_delivery(&mut self, config: &SenderConfig, _now: Time, delivery: &Delivery) -> bool {
        self.note_losses(config, delivery.lost);
        false
    }

    /// TCP's restart after idle is not XCP's: an unused window ages (draft-03 §4.1.3.1). Only the
    /// window that TCP rules restarts.
    #[inline]
    fn on_restart(&mut self, _config: &SenderConfig, now: Time, initial_window: Bytes) {
        if self.is_tcp {
            self.fallback().reno.on_restart(&reno::Config::DEFAULT, now, initial_window);
            self.follow_reno(now);
        }
    }

    #[inline(always)]
    fn on_send(&mut self, config: &SenderConfig, now: Time, send: &Send, packet: &mut impl Packet) {
        if self.is_plain {
            let header = self.standard_header(&SenderConfig::plain(config.desired_rate), now, send);
            packet.add_header(header);
            return;
        }
        if config.profile.is_apart() {
            return self.apart_on_send(config, now, send, packet);
        }
        let header = self.header(config, now, send);
        packet.add_header(header);
    }

    /// The congestion window.
    #[inline]
    fn window(&self) -> Bytes {
        Bytes(self.cwnd >> PLACES)
    }

    /// Window / srtt when pacing, else `None`. Also `None` while the round trip time is unknown.
    #[inline(always)]
    fn pacing_rate(&self, config: &SenderConfig, srtt: Duration) -> Option<Rate> {
        if config.pacing { self.rate_over(srtt) } else { None }
    }
}

impl Sender {
    #[inline(always)]
    fn standard_on_ack(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
        let change = self.change(config, ack);
        self.note_reply(config, ack);
        self.note_ack(config, now, ack);
        self.apply(config, now, ack, change);
    }

    /// Returns the change of the window that an ACK asks for, bytes with [`PLACES`]; [`Sender::note_reply`] makes it heard.
    #[inline(always)]
    pub(in crate::law) fn change(&self, config: &SenderConfig, ack: &Ack) -> i64 {
        if matches!(config.profile, Profile::Ns2) && ack.is_duplicate {
            return 0;
        }
        // At most 2^31 * 2^32: fits.
        self.rate(config, ack.reply) as i64
            * match config.feedback {
                Feedback::Rate | Feedback::Sum => ack.srtt.to_header() as i64,
                Feedback::Bytes => 1 << PLACES,
            }
    }

    /// Returns what a reply brings that is new, in the unit of [`SenderConfig::feedback`]; of a lie nothing.
    #[inline(always)]
    pub(super) fn rate(&self, config: &SenderConfig, reply: Reply) -> i32 {
        let claim = self.claim(config, reply);
        if config.verifies() {
            return self.asked().granted(claim as i64, config.most_claimed()) as i32;
        }
        claim
    }

    /// Returns what a reply claims that is new.
    #[inline(always)]
    fn claim(&self, config: &SenderConfig, reply: Reply) -> i32 {
        match config.feedback {
            Feedback::Rate | Feedback::Bytes => feedback(reply),
            Feedback::Sum => {
                self.rest.get().map_or_else(EchoReader::default, |rest| rest.reader).on_ack(reply.word)
            }
        }
    }

    /// Makes heard what a reply claims.
    #[inline(always)]
    pub(in crate::law) fn note_reply(&mut self, config: &SenderConfig, ack: &Ack) {
        if config.verifies() {
            let claim = self.claim(config, ack.reply) as i64;
            let most = config.most_asked(ack.srtt);
            self.rest.get_mut().asked.note(claim, config.most_claimed(), most);
        }
        if matches!(config.feedback, Feedback::Sum) {
            self.rest.get_mut().reader.on_ack(ack.reply.word);
        }
    }

    /// Takes from an ACK everything but its reply and the change of the window.
    #[inline(always)]
    pub(in crate::law) fn note_ack(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
        self.awnd = ack.awnd;
        if config.is_metered() {
            self.meter().in_recovery = ack.in_recovery;
            self.meter().was_limited |= ack.is_window_limited;
            self.close_epoch(config, now, ack.srtt);
            // Until the next packet leaves: data that wait do so for the window, or for the machine.
            self.meter().is_limited = ack.is_window_limited;
        }
    }

    /// Changes the window by what an ACK brings, bytes with [`PLACES`], within the limits.
    #[inline(always)]
    pub(in crate::law) fn apply(&mut self, config: &SenderConfig, now: Time, ack: &Ack, change: i64) {
        if config.has_net() {
            self.watch(now, ack, change);
        }
        if self.is_tcp {
            self.run_tcp(config.has_net(), now, ack, change);
        } else if change >= 0 {
            let grown = self.cwnd.saturating_add(change as u64);
            self.cwnd = grown.min(self.growth_limit(config, ack.srtt.to_header()).max(self.cwnd));
        } else {
            self.cwnd = self.cwnd.saturating_sub(change.unsigned_abs());
        }
        if config.clamp {
            self.cwnd = self.cwnd.min(with_places(ack.awnd));
        }
        self.cwnd = self.cwnd.max(with_places(self.mss()));
    }

    /// Meters a packet about to leave and returns its header, whose `reverse` is the receiver's to fill.
    /// While the round trip time is unknown the header is empty (draft-03 §4.1.1).
    #[inline(always)]
    pub fn header(&mut self, config: &SenderConfig, now: Time, send: &Send) -> Header {
        let header = self.bare_header(config, now, send);
        if config.verifies() {
            self.note_request(config, send, &header);
        }
        header
    }

    /// Takes note of what the header of a packet asks for, or each header of several that leave as one.
    #[inline(always)]
    fn note_request(&mut self, config: &SenderConfig, send: &Send, header: &Header) {
        if header.delta <= 0 {
            return;
        }
        let delta = header.delta as u64;
        let each = match config.feedback {
            Feedback::Rate | Feedback::Sum => delta,
            Feedback::Bytes => ((delta * header.rtt as u64) >> PLACES) + 1,
        };
        let amount = Wide::product(each, self.packets(send)).to_u64();
        self.rest.get_mut().asked.ask(amount, config.most_asked(send.srtt));
    }

    /// Returns the packets that leave as one.
    #[inline(always)]
    pub(in crate::law) fn packets(&self, send: &Send) -> u64 {
        let mss = self.mss().0.max(1); // max: for BPF, which must see it
        send.size.0.div_ceil(mss).max(1)
    }

    /// Returns the requests that are open, and the lies. For observers.
    #[inline(always)]
    pub fn asked(&self) -> Asked {
        self.rest.get().map_or_else(Asked::default, |rest| rest.asked)
    }

    /// Goes on with these requests, which another state of the flow has made.
    #[inline(always)]
    pub fn set_asked(&mut self, asked: Asked) {
        if asked != Asked::default() || self.rest.get().is_some() {
            self.rest.get_mut().asked = asked;
        }
    }

    /// Returns a header as [`Sender::header`], of which no note is taken.
    #[inline(always)]
    pub(in crate::law) fn bare_header(&mut self, config: &SenderConfig, now: Time, send: &Send) -> Header {
        if config.profile.is_apart() {
            return self.apart_header(config, now, send);
        }
        self.standard_header(config, now, send)
    }

    #[cold]
    #[inline] // or it would be in each BPF object
    fn apart_on_ack(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
        match config.profile {
            Profile::Liar(lies) => self.liar_on_ack(config, lies, now, ack),
            _ => self.thesis_on_ack(config, ack),
        }
    }

    #[cold]
    #[inline]
    fn apart_on_send(&mut self, config: &SenderConfig, now: Time, send: &Send, packet: &mut impl Packet) {
        let header = self.apart_header(config, now, send);
        packet.add_header(header);
    }

    #[inline(always)]
    fn apart_header(&mut self, config: &SenderConfig, now: Time, send: &Send) -> Header {
        match config.profile {
            Profile::Liar(lies) => self.liar_header(config, lies, now, send),
            _ => self.thesis_on_send(config, send),
        }
    }

    /// The header of draft-03's sender.
    #[inline(always)]
    pub(super) fn standard_header(&mut self, config: &SenderConfig, now: Time, send: &Send) -> Header {
        self.awnd = send.awnd;
        if config.is_metered() {
            self.close_epoch(config, now, send.srtt);
            let meter = self.meter();
            meter.sent += send.size;
            meter.is_limited = send.is_window_limited;
            meter.was_limited |= send.is_window_limited;
        }
        if send.srtt == Duration(0) {
            return Header::default();
        }

        let rtt = send.srtt.to_header();
        let window = self.stated_window(config, send).0;
        // X = srtt / (window in packets), to the nearest.
        let x = (rtt as u64 * self.mss().0 + window / 2) / window.max(1);
        let x = if config.price == Ratio::ONE { x } else { config.price.of(x) };
        let delta = match config.request {
            RequestPolicy::Unlimited => i32::MAX,
            RequestPolicy::Demand => self.demand(config, send, window),
        };
        Header { x: x.clamp(1, u32::MAX as u64) as u32, rtt, delta, reverse: 0 }
    }

    /// Returns true while TCP's window rules: [`LossPolicy::Fallback`].
    #[inline]
    pub fn is_tcp(&self) -> bool {
        self.is_tcp
    }

    #[inline(always)]
    pub(in crate::law) fn mss(&self) -> Bytes {
        Bytes(self.mss as u64)
    }

    #[inline(always)]
    pub(super) fn set_window(&mut self, window: Bytes) {
        self.cwnd = with_places(window);
    }

    /// W of docs/design/protocols.md 0.3.
    #[inline(always)]
    fn usable_window(&self) -> Bytes {
        self.window().min(self.awnd).max(self.mss())
    }

    /// The usable window over the round trip time, if that is known.
    #[cfg_attr(target_arch = "bpf", inline)]
    #[cfg_attr(not(target_arch = "bpf"), inline(never))]
    fn rate_over(&self, srtt: Duration) -> Option<Rate> {
        (srtt > Duration(0)).then(|| self.usable_window().per(srtt))
    }

    /// The window whose rate the header states.
    #[inline(always)]
    fn stated_window(&self, config: &SenderConfig, send: &Send) -> Bytes {
        if matches!(config.profile, Profile::Ns2) {
            // NS2: `window()`, a count of packets.
            let packets = |bytes: Bytes| bytes.0 / self.mss().0.max(1); // max: for BPF, which must see it
            let window = packets(self.window() + send.inflation).min(packets(send.awnd)).max(1);
            return Bytes(window * self.mss().0); // at most cwnd and inflation
        }
        let window = self.usable_window();
        let window = match config.rate_source {
            RateSource::Window => window,
            RateSource::Measured => match self.rest.get() {
                Some(rest) => window.min(rest.meter.rate.over(send.srtt)),
                None => window,
            },
            // A burst longer than the last round trip's shows at once.
            RateSource::Used if send.backlog < window => match self.rest.get() {
                Some(rest) => {
                    let before = Bytes(rest.meter.sent.0.saturating_sub(self.mss().0));
                    window.min(rest.meter.rate.over(send.srtt).max(before))
                }
                None => window,
            },
            RateSource::Used => window,
        };
        window.max(self.mss())
    }

    /// The change of throughput to ask for, spread over the packets of a round trip (draft-03
    /// §4.1.1.2): (desired - throughput) / (throughput * srtt / MSS) = desired MSS / W - MSS / srtt.
    #[inline(always)]
    fn demand(&mut self, config: &SenderConfig, send: &Send, window: u64) -> i32 {
        let most = i64::MAX as u64 / 2;
        let share = Wide::product(config.desired_rate.0, self.mss().0 << DEMAND_PLACES).over(window).to_u64();
        let used = (self.mss().0 << DEMAND_PLACES) * SECOND / send.srtt.0.max(1); // below 2^62
        let mut wanted = share.min(most) as i64 - used as i64;
        // The application cannot keep the window full for a round trip, or the receiver limits it.
        let window = match config.rate_source {
            RateSource::Used => self.usable_window().0,
            RateSource::Window | RateSource::Measured => window,
        };
        if send.backlog.0 < window || send.awnd <= self.window() {
            wanted = wanted.min(0);
        }
        let wanted = wanted + self.demand_rest as i64;
        // Toward zero. Arithmetic shift, because there is no signed division in BPF.
        let toward_zero = if wanted < 0 { (1 << DEMAND_PLACES) - 1 } else { 0 };
        let delta = ((wanted + toward_zero) >> DEMAND_PLACES).clamp(i32::MIN as i64, i32::MAX as i64);
        let rest = wanted - (delta << DEMAND_PLACES);
        self.demand_rest = rest.clamp(-1 << DEMAND_PLACES, 1 << DEMAND_PLACES) as i32;
        delta as i32
    }

    /// Feedback may not open the window beyond what the flow can send: without any XCP router the
    /// demand comes back as it left (draft-03 §5.6).
    #[inline(always)]
    fn growth_limit(&self, config: &SenderConfig, rtt: u32) -> u64 {
        if matches!(config.profile, Profile::Ns2) {
            return u64::MAX;
        }
        Wide::product(config.desired_rate.0, rtt as u64).to_u64()
    }

    /// Closes the meter's epoch when a round trip has passed, and ages the window by what the
    /// sender really sent in it (draft-03 §4.1.3.1, TH 9).
    #[inline(always)]
    fn close_epoch(&mut self, config: &SenderConfig, now: Time, srtt: Duration) {
        let meter = self.meter();
        if meter.began == Time::NEVER {
            meter.began = now;
        }
        let elapsed = now - meter.began;
        if srtt == Duration(0) || elapsed < srtt {
            return;
        }
        meter.rate = meter.sent.per(elapsed);
        if let Some(weight) = config.aging
            && !meter.in_recovery
            && !self.is_tcp
        {
            self.age(weight, elapsed, srtt);
        }
        let meter = self.meter();
        meter.began = now;
        meter.sent = Bytes(0);
        meter.was_limited = meter.is_limited;
    }

    /// Epochs are closed at packets, so one of several round trips was idle after the first. Those
    /// round trips count only if the sender could have sent.
    fn age(&mut self, weight: Ratio, elapsed: Duration, srtt: Duration) {
        let rounds = elapsed.0 / srtt.0.max(1);
        let weight = weight.0.min(Ratio::ONE.0);
        let &mut Meter { sent, rate, was_limited, is_limited, .. } = self.meter();
        if !was_limited {
            let sent = if rounds > 1 { sent } else { rate.over(srtt) };
            // Less than a segment below the window is rounding to packets, not restraint.
            if sent + self.mss() < self.window() {
                let unused = self.cwnd - with_places(sent);
                self.cwnd -= Ratio(weight).of(unused);
            }
        }
        if rounds > 1 && !is_limited {
            self.cwnd = decayed(self.cwnd, Ratio(Ratio::ONE.0 - weight), rounds - 1);
        }
        self.cwnd = self.cwnd.max(with_places(self.mss()));
    }

    #[inline(always)]
    fn meter(&mut self) -> &mut Meter {
        &mut self.rest.get_mut().meter
    }

    #[inline(always)]
    fn fallback(&mut self) -> &mut Fallback {
        &mut self.rest.get_mut().fallback
    }

    #[inline(always)]
    fn net(&mut self) -> &mut Net {
        &mut self.rest.get_mut().net
    }

    /// Something was lost.
    fn note_recovery(&mut self, config: &SenderConfig) {
        if config.is_metered() {
            self.meter().in_recovery = true;
        }
    }

    fn enter_tcp(&mut self, now: Time) {
        if !self.is_tcp {
            self.is_tcp = true;
            let reno = reno::Reno::new(self.mss(), self.window());
            self.fallback().reno = reno;
            self.follow_reno(now);
        }
    }

    /// Takes over Reno's window and begins a round of comparing.
    fn follow_reno(&mut self, now: Time) {
        let fallback = self.fallback();
        let window = fallback.reno.window();
        fallback.began = now;
        fallback.window = window;
        fallback.change = 0;
        self.cwnd = with_places(window);
    }

    /// Counts data that was found lost, for the safety net.
    #[inline]
    pub fn note_losses(&mut self, config: &SenderConfig, lost: Bytes) {
        if config.has_net() {
            let net = self.net();
            net.lost = net.lost.saturating_add(lost.0.min(u32::MAX as u64) as u32);
        }
    }

    /// The safety net (docs/design/protocols.md 13.8): when more than a tenth of a window is lost in a round trip while a
    /// queue delays, or in which links ask for less, the window is TCP's, the half.
    #[inline]
    fn watch(&mut self, now: Time, ack: &Ack, change: i64) {
        if ack.srtt == Duration(0) {
            return;
        }
        let net = self.net();
        net.srtt = ack.srtt.to_header();
        if ack.rtt > Duration(0) {
            net.least = net.least.min(ack.rtt.to_header());
        }
        if self.is_tcp {
            return;
        }
        let (window, cwnd) = (self.window(), self.cwnd);
        let Rest { net, fallback, .. } = self.rest.get_mut();
        fallback.change = fallback.change.saturating_add(change);
        let asked = fallback.change < 0 && fallback.change.unsigned_abs() > cwnd / ASKED;
        if net.has_lost_of(window) && (net.is_grown() || asked) {
            self.enter_tcp(now);
            let Rest { net, fallback, .. } = self.rest.get_mut();
            fallback.reno.on_loss(&reno::Config::DEFAULT, now, ack.flight.min(window));
            net.calm = -1;
            self.follow_reno(now);
        } else if now - fallback.began < ack.srtt {
            return;
        }
        let Rest { net, fallback, .. } = self.rest.get_mut();
        fallback.began = now;
        fallback.change = 0;
        net.lost = 0;
    }

    /// TCP in parallel: Reno sets the window until XCP's feedback over a round trip after the
    /// recovery is the stricter (draft-03 §5.1). With the safety net also until queues have been short for long.
    fn run_tcp(&mut self, has_net: bool, now: Time, ack: &Ack, change: i64) {
        let mss = self.mss();
        let Rest { net, fallback, .. } = self.rest.get_mut();
        fallback.reno.on_ack(&reno::Config::DEFAULT, now, ack);
        let window = fallback.reno.window();
        self.cwnd = with_places(window);
        fallback.change = fallback.change.saturating_add(change);
        if ack.in_recovery && !has_net {
            self.follow_reno(now);
        } else if now - fallback.began >= ack.srtt {
            let growth = with_places(window - fallback.window).min(i64::MAX as u64) as i64;
            self.is_tcp = fallback.change >= growth;
            if has_net {
                // The repair of so many losses is not over, and begins no other.
                if net.calm >= 0 && net.is_grown() && net.has_lost_of(window) {
                    fallback.reno.on_loss(&reno::Config::DEFAULT, now, window);
                }
                self.is_tcp &= !net.is_over(window, mss);
            }
            self.follow_reno(now);
        }
    }
}

impl Net {
    /// A queue delays.
    #[inline(always)]
    fn is_grown(&self) -> bool {
        self.srtt > self.least.saturating_add(self.least / GROWN)
    }

    /// More than a tenth of a window is lost.
    #[inline(always)]
    fn has_lost_of(&self, window: Bytes) -> bool {
        self.lost as u64 * LOST > window.0
    }

    /// Counts a round trip while TCP's window rules. True: XCP's may come back.
    fn is_over(&mut self, window: Bytes, mss: Bytes) -> bool {
        self.lost = 0;
        self.calm = if self.is_grown() { 0 } else { self.calm.saturating_add(1) };
        // In this order, or the product is of 128 bits.
        let least = window.0 / CALM_OF_WINDOW.1 * CALM_OF_WINDOW.0;
        if self.calm < CALM << self.returns || (self.calm.unsigned_abs() as u64) * mss.0 < least {
            return false;
        }
        self.returns = (self.returns + 1).min(RETURNS_MAX);
        true
    }
}

/// Bytes with [`PLACES`].
#[inline(always)]
pub(in crate::law) fn with_places(bytes: Bytes) -> u64 {
    Wide::shifted(bytes.0, PLACES).to_u64()
}

/// `value * ratio^times`, rounded down at each step: by squaring, so that any idle time costs at
/// most 32 steps.
fn decayed(value: u64, ratio: Ratio, times: u64) -> u64 {
    const ONE: u64 = 1 << 31; // squares fit
    let (mut value, mut factor) = (value, mul_div(ratio.0 as u64, ONE, Ratio::ONE.0 as u64));
    let mut times = times.min(u32::MAX as u64);
    for _ in 0..32 {
        if times & 1 == 1 {
            value = mul_div(value, factor, ONE);
        }
        factor = (factor * factor) >> 31;
        times >>= 1;
    }
    value
}

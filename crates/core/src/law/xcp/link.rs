//! XCP's link law, for a router's output port (draft-03 §4.2, K02 §3.5). `L n` is line n of draft-03's
//! pseudo-code; equations are K02's.

mod parts;
mod past;

use super::Header;
use super::spread::{self, Spread};
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::law::{self, LinkLaw, Packet, Series, Steered, Told};
use crate::units::{Bytes, Duration, Rate, Ratio, SECOND, Time, Wide, mul_div, mul_div_up};
pub use parts::Part;
use past::{Average, Promised};

/// Binary places of the rates that are handed out. The error of one packet's share, 2^-16 B/s, is
/// far below the header's step of 1 B/s, and 46 bits are left for the rate itself.
const PLACES: u32 = 16;
/// The largest pool, 2^46 B/s: sums and differences of two stay inside `i64`.
const POOL_MAX: u64 = 1 << (46 + PLACES);
/// How many times the mean of what packets state d may be, where each packet counts the same; by measurement, see
/// `docs/protocols/xcp.md`.
const RTT_BOUND: u64 = 2;
/// Longest control interval while no round trip is known to be longer, 1 s (draft-03 §4.2.4, NS2).
pub const MAX_INTERVAL: Duration = Duration(SECOND);
/// Time that a receiver's timer can add to the round trip of a packet that is alone: 200 ms at most on Linux (`TCP_DELACK_MAX`). With an
/// interval that is shorter than that round trip, no packet comes in every other one, and windows of one packet stay.
#[cfg(feature = "words")]
const ACK_TIMER: Duration = Duration(SECOND / 5);
/// Intervals' worth of cuts that a burst may find: those that earlier packets left, with [`LinkConfig::spread`].
const CARRIED: u64 = 4;
/// Binary places of the mean round trip time in seconds: 2^-28 s of the header and 32 more.
const RTT_PLACES: u32 = 60;
/// pi / (4 sqrt 2): from there on the law is unstable (K02, theorem 1).
#[cfg(feature = "words")]
const ALPHA_UNSTABLE: Ratio = Ratio::ppm(555_360);
/// The shortest interval where headers state no round trip that is longer.
#[cfg(feature = "words")]
const LEAST: Duration = Duration(1_000);

/// Configuration of XCP's link law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LinkConfig {
    /// Ability of the link to carry IP packets (draft-03 §4.2.2).
    pub capacity: Rate,
    /// alpha, the share of the spare capacity given away per interval; 0.4 (K02). Below 0.55 for stability.
    pub alpha: Ratio,
    /// beta, how fast a standing queue is drained; 0.226 (K02) = alpha^2 sqrt(2).
    pub beta: Ratio,
    /// gamma, the share of the traffic that is shuffled between flows per interval; 0.1 (K02).
    pub gamma: Ratio,
    /// Shortest control interval; 5 ms, for ns-2 1 ms.
    pub min_interval: Duration,
    /// Longest control interval; longer round trip times count as this. At least the longest round trip of the link's
    /// flows: otherwise each burst of a flow alone finds the budget of an interval without packets, which is empty. Zero:
    /// [`MAX_INTERVAL`], and twice the mean that packets state while none states less than that.
    pub max_interval: Duration,
    /// Control interval while no packet states a round trip time; 50 ms (NS2).
    pub initial_interval: Duration,
    /// Least time over which the persistent queue is a minimum; 2 ms (draft-03 §4.2.5).
    pub allowed_queue: Duration,
    /// True to capture feedback that was allocated upstream (draft-03 §4.2.3, L 25-27).
    pub capture: bool,
    /// True for TH's router where nothing comes (TH 3.4.2, Code 2): F = alpha C of an empty interval is granted
    /// to whoever comes next, and d stays. False for NS2's, which grants nothing and begins anew.
    pub thesis: bool,
    /// True lets packets take more than is left of the interval's pools, against draft-03 §4.2.3, L 28 and 29: a law
    /// that is broken on purpose, to show what that bound is for.
    pub overdraw: bool,
    /// True bounds what a packet's statements count for: X at most as the control interval and as `initial_interval`,
    /// and d at most as twice the mean round trip time over packets. Without it, as in every paper, a few small
    /// packets that state the largest X and RTT take nearly all that is granted.
    pub bound_headers: bool,
    /// True counts packets whose round trips are much longer than the interval over several of them, and keeps for
    /// bursts what is left of the cuts: for flows of very different round trips, see `docs/stability.md`.
    pub spread: bool,
    /// True for an average queue in F where it is the least one otherwise (TH 4.6).
    pub average_queue: bool,
    /// True to count what earlier intervals granted and flows do not use yet as used (TH 4.6).
    pub remember_grants: bool,
}

impl LinkConfig {
    /// Default constants; the capacity, 0, is to be set by who knows the link.
    pub const DEFAULT: Self = Self {
        capacity: Rate(0),
        alpha: Ratio::ppm(400_000),
        beta: Ratio::ppm(226_000),
        gamma: Ratio::ppm(100_000),
        min_interval: Duration(5_000_000),
        max_interval: MAX_INTERVAL,
        initial_interval: Duration(50_000_000),
        allowed_queue: Duration(2_000_000),
        capture: true,
        thesis: false,
        overdraw: false,
        bound_headers: true,
        spread: false,
        average_queue: false,
        remember_grants: false,
    };
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Settings for LinkConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell("alpha", "Gain on the spare capacity; 0.4 (K02).", Field::Factor(&mut self.alpha));
        tell("beta", "Gain on the persistent queue; 0.226 (K02).", Field::Factor(&mut self.beta));
        tell("gamma", "Part of the traffic that is shuffled; 0.1 (K02).", Field::Factor(&mut self.gamma));
        tell(
            "capacity",
            "Capacity that the law is told; absent: the link's rate.",
            Field::Rate(&mut self.capacity),
        );
        tell(
            "capture",
            "Capture feedback that was allocated upstream (draft-03, 4.2.3); true, of pxcp false.",
            Field::Switch(&mut self.capture),
        );
        tell(
            "overdraw",
            "Give more than is left of an interval's pools; false. true breaks the law, to show what they are for.",
            Field::Switch(&mut self.overdraw),
        );
        tell(
            "bound_headers",
            "Bound what a packet's X and round trip time count for; true, with a profile false, as in the papers.",
            Field::Switch(&mut self.bound_headers),
        );
        tell(
            "spread",
            "Count a packet over its round trip, where that is the longer, instead of in one control interval; false.",
            Field::Switch(&mut self.spread),
        );
        tell(
            "average_queue",
            "Drain the average queue of an interval instead of the least one; false. For bursty senders, with paced ones beside them.",
            Field::Switch(&mut self.average_queue),
        );
        tell(
            "remember_grants",
            "Count what earlier intervals granted and flows do not use yet as used; false.",
            Field::Switch(&mut self.remember_grants),
        );
        tell(
            "min_interval",
            "Shortest control interval; 5 ms, with profile ns2 1 ms.",
            Field::Span(&mut self.min_interval),
        );
        tell(
            "max_interval",
            "Longest control interval; absent: the longest round trip of the link's flows without queues and 200 ms, at least 1 s. \
             \"0 s\", the kernel's default: 1 s, and twice the mean round trip that packets state while all state more.",
            Field::Span(&mut self.max_interval),
        );
    }

    #[cfg(feature = "words")]
    fn set_round_trip(&mut self, longest: Duration, is_written: &dyn Fn(&str) -> bool) {
        if !is_written("max_interval") {
            let with_timer = Duration(longest.0.saturating_add(ACK_TIMER.0));
            self.max_interval = if longest.0 == 0 { longest } else { with_timer.max(MAX_INTERVAL) };
        }
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        if self.alpha >= ALPHA_UNSTABLE {
            let help = "stable below pi / (4 sqrt 2) = 0.555 (K02, theorem 1)";
            tell(Finding { is_error: false, ..Finding::range("alpha", "makes XCP unstable", help) });
        }
        let (least, most) = (self.min_interval, self.max_interval);
        if least < LEAST || (least > most && most.0 > 0) {
            let text = alloc::format!("has control intervals from {least} to {most}");
            let help = alloc::format!("allowed: {LEAST} <= min_interval <= max_interval");
            tell(Finding { at: ["min_interval"; 2], ..Finding::range("", text, help) });
        }
    }
}

/// Sums over packets of the running interval that take no part in the shuffling, by a variant of XCP.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::law) struct Apart {
    /// X, 2^-28 s.
    pub(in crate::law) x: u64,
    /// Bytes.
    pub(in crate::law) bytes: u64,
}

/// A pool that is handed out in proportion to a weight that each packet brings: `pool / weights`
/// per unit, never more than is left.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(in crate::law) struct Pool {
    /// Rest of the pool, B/s with [`PLACES`].
    left: u64,
    /// `pool / weights` as `factor * 2^-(32 + shift)`, with the top bit of `factor` at 62 or 63.
    factor: u64,
    shift: i32,
    /// True where nothing comes to what is left: always, but for what a [`Part`] holds of a pool.
    is_last: bool,
}

impl Pool {
    #[inline(always)]
    fn new(pool: u64, weights: u64) -> Self {
        if pool == 0 || weights == 0 {
            return Self::default();
        }
        let (pool_shift, weight_shift) = (pool.leading_zeros(), weights.leading_zeros());
        // Below 2^64: half the shifted pool is below the shifted weights.
        let factor = Wide::product(pool << pool_shift, 1 << 63).over(weights << weight_shift).to_u64();
        let shift = 31 + pool_shift as i32 - weight_shift as i32;
        // Below any share of any packet, which needs no question then.
        let (factor, shift) = if shift < 64 { (factor, shift) } else { (1, 0) };
        Self { left: pool, factor, shift, is_last: true }
    }

    /// The share of a packet, rounded down.
    #[inline(always)]
    pub(in crate::law) fn share(&self, weight: u32) -> u64 {
        self.due(weight).min(self.left)
    }

    /// The share of a packet whatever is left.
    #[inline(always)]
    pub(in crate::law) fn due(&self, weight: u32) -> u64 {
        // All 96 bits of the product, without counting zeros: BPF has no instruction for that, nor, like wasm, for 128 bits.
        let weight = weight as u64;
        #[cfg(any(target_arch = "bpf", target_arch = "wasm32"))]
        let (upper, lower) = {
            let lower = (self.factor & 0xffff_ffff) * weight;
            ((self.factor >> 32) * weight + (lower >> 32), lower)
        };
        #[cfg(not(any(target_arch = "bpf", target_arch = "wasm32")))]
        let (upper, lower) = {
            let product = self.factor as u128 * weight as u128;
            ((product >> 32) as u64, product as u64)
        };
        match self.shift {
            0.. => upper >> self.shift,
            shift if weight >> (32 + shift) != 0 => u64::MAX, // more than any pool holds
            shift => (upper << -shift) | ((lower & 0xffff_ffff) >> (32 + shift)),
        }
    }

    /// Without a bound; true of [`LinkConfig::overdraw`].
    #[inline(always)]
    fn unbounded(self) -> Self {
        Self { left: if self.factor == 0 { 0 } else { POOL_MAX }, ..self }
    }

    /// Takes out a part of what is left.
    #[inline(always)]
    fn give(&mut self, part: i64) {
        self.left -= part as u64;
        self.mind_end();
    }

    /// Takes a packet's part out. A negative part goes back in: see [`Link::on_departure`].
    #[inline(always)]
    pub(in crate::law) fn take(&mut self, part: i64) {
        let left = self.left as i64 - part;
        self.left = (left.max(0) as u64).min(POOL_MAX);
        self.mind_end();
    }

    /// Ends a pool of which nothing is left.
    #[inline(always)]
    fn mind_end(&mut self) {
        if self.left == 0 && self.is_last {
            self.factor = 0; // NS2: an exhausted pool gives nothing more in this interval
        }
    }
}

/// Report of the last control interval: what it measured and decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Report {
    /// Number of control intervals so far.
    pub intervals: u64,
    /// y, the input rate of the last interval.
    pub input: Rate,
    /// F, the aggregate feedback, B/s; rounded toward zero.
    pub feedback: i64,
    /// Length of the control interval that is now running.
    pub interval: Duration,
    /// Q, the persistent queue, as it entered F.
    pub persistent_queue: Bytes,
    /// Packets so far whose X counted for less than they stated ([`LinkConfig::bound_headers`]).
    pub bounded: u64,
}

impl Series for Report {
    fn intervals(&self) -> u64 {
        self.intervals
    }

    fn decision(&self) -> i64 {
        self.feedback
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("input_Bps", self.input.0 as i64, 1);
        tell("feedback_Bps", self.feedback, 1);
        tell("interval_ms", self.interval.0 as i64, 1_000_000);
        tell("persistent_queue_bytes", self.persistent_queue.0 as i64, 1);
    }

    fn bounded_packets(&self) -> Option<u64> {
        Some(self.bounded)
    }
}

/// Binary places of the amounts in a [`Share`].
pub const SHARE_PLACES: u32 = PLACES;

/// Feedback that a packet is about to be given, for observers: [`Link::share`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Report of the last control interval.
    pub report: Report,
    /// C, the capacity that the interval was computed with.
    pub capacity: Rate,
    /// d, the mean round trip time, which may be less than the interval.
    pub mean_rtt: Duration,
    /// Positive feedback that is left in this interval, B/s with [`SHARE_PLACES`].
    pub grants_left: u64,
    /// Negative feedback that is left in this interval, B/s with [`SHARE_PLACES`].
    pub cuts_left: u64,
    /// The packet's positive feedback, B/s with [`SHARE_PLACES`].
    pub grant: u64,
    /// The packet's negative feedback, B/s with [`SHARE_PLACES`].
    pub cut: u64,
    /// The packet's X as it counts, in the header's unit ([`LinkConfig::bound_headers`]).
    pub x: u32,
    /// Feedback granted to packets before and not yet stated, below 1 B/s, with [`SHARE_PLACES`].
    pub carry: u64,
    /// Factor by which a variant of XCP has scaled the positive pool, with 32 binary places.
    pub factor: u64,
}

/// Sums over packets. Each word of them only grows as packets come, so that who looks while they do misses the last one
/// at most, and finds it the next time.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Sums {
    // Not beside `rtt`: compilers would add to both at once, which takes longer.
    packets: u64,
    input: Bytes,
    /// X, 2^-28 s.
    x: u64,
    /// X RTT, 2^-56 s^2: the upper and the lower 32 bits of each product.
    x_rtt_upper: u64,
    x_rtt_lower: u64,
    /// RTT over `packets`.
    rtt: u64,
    /// Packets that state at most [`MAX_INTERVAL`], where that decides.
    short: u64,
    /// Feedback that packets left with, B/s, a sum of signed numbers, with [`LinkConfig::remember_grants`].
    granted: u64,
}

impl Sums {
    #[inline(always)]
    fn x_rtt(&self) -> Wide {
        Wide::shifted(self.x_rtt_upper, 32).plus(self.x_rtt_lower)
    }
}

/// State of XCP's link law at one output port.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link {
    config: LinkConfig,
    /// Capacity that the running interval was computed with.
    capacity: Rate,
    /// The longest round trip that counts, 2^-28 s.
    max_rtt: u32,
    /// The largest X that counts, 2^-28 s.
    max_x: u32,
    /// Length of the running interval, 2^-28 s.
    interval: u32,

    // Measured in the running interval.
    sums: Sums,
    /// With [`LinkConfig::spread`] what long round trips add to all of this in later intervals; of the sum of X
    /// `long_x` is theirs.
    spread: Spread,
    long_x: u64,

    // Handed out in the running interval.
    grants: Pool,
    cuts: Pool,
    /// Below 1 B/s, granted and not yet stated in a header.
    carry: u64,

    began: Time,
    control_deadline: Time,
    queue_deadline: Time,
    /// d in seconds with [`RTT_PLACES`].
    mean_rtt: u64,
    /// Q.
    queue: Bytes,
    queue_min: Bytes,
    average: Average,
    promised: Promised,
    report: Report,
}

impl Link {
    /// Creates the state of a port. `phase` is the first deadline: where in its first interval the router begins;
    /// `queue_phase` the same for the queue estimate. Routers must not act in step.
    // `always`, here and in the other laws: a BPF function cannot return a structure.
    #[inline(always)]
    pub fn new(config: LinkConfig, phase: Duration, queue_phase: Duration) -> Self {
        Self {
            config,
            capacity: config.capacity,
            max_rtt: max_interval(&config).to_header(),
            max_x: max_x(&config, config.initial_interval),
            interval: config.initial_interval.to_header(),
            sums: Sums::default(),
            spread: Spread::default(),
            long_x: 0,
            grants: Pool::default(),
            cuts: Pool::default(),
            carry: 0,
            began: Time::ZERO,
            control_deadline: Time::ZERO + phase,
            queue_deadline: Time::ZERO + queue_phase,
            mean_rtt: with_rtt_places(config.initial_interval),
            queue: Bytes(0),
            queue_min: Bytes(0),
            average: Average::default(),
            promised: Promised::default(),
            report: Report { interval: config.initial_interval, ..Report::default() },
        }
    }

    /// Takes a packet before it is queued, also if it is then dropped: it asked for capacity. `header` zeroed counts the
    /// bytes only: of other protocols, of ACKs with a minimal header, without a round trip time (draft-03 §4.2.4).
    #[cfg_attr(target_arch = "bpf", inline)]
    #[cfg_attr(not(target_arch = "bpf"), inline(always))] // in line where the list asks for XCP first
    pub fn on_arrival(&mut self, _now: Time, header: &Header, size: Bytes) {
        if header.x != 0 && header.rtt != 0 {
            let (x, rtt) = (self.bounded(header.x) as u64, header.rtt.min(self.max_rtt) as u64);
            self.report.bounded += (x != header.x as u64) as u64;
            // No interval has the 2^32 packets that would be too many for 64 bits; those of a part may go round.
            self.sums.x = self.sums.x.wrapping_add(x); // L 2
            if self.config.max_interval.0 == 0 {
                let is_short = header.rtt <= MAX_INTERVAL.to_header();
                self.sums.short = self.sums.short.wrapping_add(is_short as u64);
            }
            if self.config.spread && self.spread.on_arrival(x as u32, rtt as u32, size.0, self.interval) {
                self.long_x += x;
                return;
            }
            let product = x * rtt; // L 3-6
            self.sums.x_rtt_upper = self.sums.x_rtt_upper.wrapping_add(product >> 32);
            self.sums.x_rtt_lower = self.sums.x_rtt_lower.wrapping_add(product & u32::MAX as u64);
            self.sums.rtt = self.sums.rtt.wrapping_add(rtt);
            self.sums.packets += 1;
        }
        self.sums.input += size; // L 1
    }

    /// The X that counts of the one that a packet states.
    #[inline(always)]
    pub(in crate::law) fn bounded(&self, x: u32) -> u32 {
        x.min(self.max_x)
    }

    /// Writes the link's feedback into a header just before transmission; `backlog` is what stays queued. Only for
    /// packets with a standard header. May lower `header.delta`, never raise it.
    ///
    /// A packet whose demand is already below what it would get keeps it, and with `capture` its flow counts as taking
    /// part in the shuffling to that extent: the grant is the demand plus the cut. Where upstream *lowered* a flow by
    /// more than this link's cuts have left, that grant is negative and what the flow gives up can be granted to others;
    /// the sum of an interval is as before (draft-03 L 27-28 as printed).
    #[cfg_attr(target_arch = "bpf", inline)]
    #[cfg_attr(not(target_arch = "bpf"), inline(always))] // in line where the list asks for XCP first
    pub fn on_departure(&mut self, now: Time, header: &mut Header, size: Bytes, backlog: Bytes) {
        self.depart(now, header, size, backlog);
    }

    /// [`Link::on_departure`]; true: the packet asks for less than it would get.
    #[inline(always)]
    pub(in crate::law) fn depart(
        &mut self,
        now: Time,
        header: &mut Header,
        size: Bytes,
        backlog: Bytes,
    ) -> bool {
        self.on_other_departure(now, backlog);
        let asks_for_less = self.hand_out(header, size);
        self.note_granted(header);
        asks_for_less
    }

    /// Remembers the feedback that a packet leaves with.
    #[inline(always)]
    pub(in crate::law) fn note_granted(&mut self, header: &Header) {
        if self.config.remember_grants {
            self.sums.granted = self.sums.granted.wrapping_add(header.delta as i64 as u64);
        }
    }

    /// [`Link::depart`] but for the queue and for what is remembered.
    #[inline(always)]
    fn hand_out(&mut self, header: &mut Header, size: Bytes) -> bool {
        let mut grant = self.grants.share(self.bounded(header.x)) as i64; // L 20
        // L 21. A header holds no less than -2^31 B/s; cuts beyond stay for later packets.
        let mut cut = (self.cuts.share(weight(size)) as i64).min(grant - ((i32::MIN as i64) << PLACES));
        let feedback = grant - cut; // L 22
        let demand = (header.delta as i64) << PLACES;
        if demand > feedback {
            // This is the tighter hop (L 24).
            let exact = feedback + self.carry as i64;
            header.delta = (exact >> PLACES) as i32;
            self.carry = exact as u64 & ((1 << PLACES) - 1);
            self.grants.give(grant); // L 28
            self.cuts.give(cut); // L 29
            return false;
        }
        if self.config.capture {
            cut = (grant - demand).min(self.cuts.left as i64); // L 26: cut + (feedback - demand)
            grant = demand + cut; // L 27
        }
        self.grants.take(grant); // L 28
        self.cuts.take(cut); // L 29
        demand < feedback
    }

    /// Returns the feedback that [`Link::on_departure`] would give the packet now; changes nothing.
    #[inline]
    pub fn share(&self, header: &Header, size: Bytes) -> Share {
        Share {
            report: self.report,
            capacity: self.capacity,
            mean_rtt: self.mean_rtt(),
            grants_left: self.grants.left,
            cuts_left: self.cuts.left,
            grant: self.grants.share(self.bounded(header.x)),
            cut: self.cuts.share(weight(size)),
            x: self.bounded(header.x),
            carry: self.carry,
            factor: 1 << 32,
        }
    }

    /// Takes the departure of a packet without a standard header: only the queue estimate wants to know.
    #[inline]
    pub fn on_other_departure(&mut self, now: Time, backlog: Bytes) {
        self.queue_min = self.queue_min.min(backlog);
        if self.config.average_queue {
            self.average.see(now, backlog, self.capacity);
        }
    }

    /// [`LinkLaw::on_deadline`]; `scale` makes the positive pool of the interval that begins from XCP's and
    /// the length of the interval.
    #[inline(always)]
    pub(in crate::law) fn serve(
        &mut self,
        now: Time,
        backlog: Bytes,
        scale: impl FnOnce(u64, Duration) -> u64,
    ) {
        if self.control_deadline <= now {
            self.average_queue(now, backlog);
            let pool = self.close_interval(now);
            self.grant(scale(pool, self.report.interval));
        }
        if self.queue_deadline <= now {
            self.estimate_queue(now, backlog);
        }
    }

    /// [`LinkLaw::on_deadline`] of a variant; `apart` says what of an interval of that length takes no part in the shuffling.
    #[inline(always)]
    pub(in crate::law) fn serve_apart(
        &mut self,
        now: Time,
        backlog: Bytes,
        apart: impl FnOnce(Duration) -> Apart,
    ) {
        if self.control_deadline <= now {
            let apart = apart(now - self.began);
            self.average_queue(now, backlog);
            let pool = self.close(now, None, apart);
            self.grant(pool);
        }
        if self.queue_deadline <= now {
            self.estimate_queue(now, backlog);
        }
    }

    /// Returns the length of the running interval, 2^-28 s.
    #[inline(always)]
    pub(in crate::law) fn interval(&self) -> u32 {
        self.interval
    }

    /// Returns the longest round trip that counts, 2^-28 s.
    #[inline(always)]
    pub(in crate::law) fn max_rtt(&self) -> u32 {
        self.max_rtt
    }

    /// Lets an X of up to this count in the running interval, 2^-28 s, if X is bounded at all.
    #[inline(always)]
    pub(in crate::law) fn believe_x(&mut self, most: u32) {
        self.max_x = self.max_x.max(most);
    }

    /// Returns the positive pool as it is now.
    #[inline(always)]
    pub(in crate::law) fn grants(&self) -> Pool {
        self.grants
    }

    /// Returns the pool of cuts as it is now.
    #[inline(always)]
    pub(in crate::law) fn cuts(&self) -> Pool {
        self.cuts
    }

    /// [`Steered::close_told`], with a scale as [`Link::serve`] has.
    #[inline(always)]
    pub(in crate::law) fn serve_told(
        &mut self,
        now: Time,
        told: &Told,
        scale: impl FnOnce(u64, Duration) -> u64,
    ) {
        self.queue = told.queue;
        let pool = self.close(now, Some(told), Apart::default());
        self.grant(scale(pool, self.report.interval));
    }

    fn close_interval(&mut self, now: Time) -> u64 {
        self.close(now, None, Apart::default())
    }

    /// Closes the interval but for the positive pool, which it returns for [`Link::grant`].
    // `always`: each of the two callers gets its own half.
    #[inline(always)]
    fn close(&mut self, now: Time, told: Option<&Told>, apart: Apart) -> u64 {
        let elapsed = now - self.began;
        self.capacity = self.config.capacity;
        // L 7, eq. 5's d; none without a packet that states its round trip.
        let (mut sum_x, mut sum_x_rtt) = (self.sums.x, self.sums.x_rtt());
        if self.config.spread {
            let counted = self.spread.count(elapsed);
            sum_x = (sum_x - self.long_x).saturating_add(counted.x);
            self.sums.input += Bytes(counted.bytes);
            sum_x_rtt = sum_x_rtt.sum(counted.x_rtt);
            let with_places = |sum: u64, counted| (sum << spread::PLACES).saturating_add(counted);
            self.sums.rtt = with_places(self.sums.rtt, counted.rtt);
            self.sums.packets = with_places(self.sums.packets, counted.packets);
        }
        let mean = (sum_x != 0).then(|| sum_x_rtt.times_2_32().over(sum_x).to_u64());
        let rtt_bound = self.rtt_bound();
        if self.config.max_interval.0 == 0 && self.sums.packets > 0 {
            // One flow of a short round trip keeps all intervals short, whatever others state; its packets fill them.
            let stated = if self.sums.short > 0 { 0 } else { rtt_bound >> (RTT_PLACES - 28) };
            self.max_rtt = stated.max(MAX_INTERVAL.to_header() as u64).min(u32::MAX as u64) as u32;
        }
        self.mean_rtt = match (told, mean) {
            (Some(told), _) if told.mean_rtt.0 > 0 => {
                with_rtt_places(told.mean_rtt.min(Duration::from_header(self.max_rtt)))
            }
            (_, Some(mean)) if self.config.bound_headers => mean.min(rtt_bound),
            (_, Some(mean)) => mean,
            (_, None) if self.config.thesis => self.mean_rtt,
            (_, None) => with_rtt_places(self.config.initial_interval),
        };

        // y: L 8. Nothing can have been measured in no time.
        let input = if elapsed.0 == 0 {
            0
        } else {
            mul_div(self.sums.input.0, SECOND << PLACES, elapsed.0).min(POOL_MAX)
        };
        let used =
            if self.config.remember_grants { self.promised.close(input, self.sums.granted) } else { input };
        // F: L 9, eq. 1 as a rate, in two halves because there is no signed division in BPF.
        let (mut rise, mut fall) = (0, 0);
        if input > 0 || self.config.thesis {
            let (spare, excess) = match told {
                Some(told) => {
                    let size = Wide::shifted(told.spare.unsigned_abs(), PLACES).to_u64().min(POOL_MAX);
                    if told.spare < 0 { (0, size) } else { (size, 0) }
                }
                None => {
                    let capacity = Wide::shifted(self.capacity.0, PLACES).to_u64().min(POOL_MAX);
                    (capacity.saturating_sub(used), used.saturating_sub(capacity))
                }
            };
            let up = self.config.alpha.of(spare);
            let down = self.config.alpha.of(excess).saturating_add(self.drain());
            rise = up.saturating_sub(down).min(POOL_MAX);
            fall = down.saturating_sub(up).min(POOL_MAX);
        }
        let shared = if apart.bytes == 0 || elapsed.0 == 0 {
            input
        } else {
            input.saturating_sub(mul_div(apart.bytes, SECOND << PLACES, elapsed.0))
        };
        let shuffled = self.config.gamma.of(shared).saturating_sub(rise + fall); // L 10, eq. 2
        let left = self.cuts.left;
        let weights = self.sums.input.0.saturating_sub(apart.bytes);
        self.cuts = self.pool((shuffled + fall).min(POOL_MAX), weights); // L 12, 14
        if self.config.spread {
            // Else packets of a burst would be cut until an average interval's cuts are out, and all of them granted.
            self.cuts.left =
                (self.cuts.left + left).min(self.cuts.left.saturating_mul(CARRIED)).min(POOL_MAX);
        }
        self.carry = 0; // a remainder must not outlive the aggregate that it was part of

        let interval = self.mean_rtt().max(self.config.min_interval); // L 18
        self.report = Report {
            intervals: self.report.intervals + 1,
            input: Rate(input >> PLACES),
            feedback: (rise >> PLACES) as i64 - (fall >> PLACES) as i64,
            interval,
            persistent_queue: self.queue,
            ..self.report
        };
        self.max_x = max_x(&self.config, interval);
        self.interval = interval.to_header();
        self.sums = Sums { x: self.sums.x.saturating_sub(apart.x), ..Sums::default() }; // L 15, 17
        self.long_x = 0;
        self.began = now;
        self.control_deadline = now + interval; // L 19
        (shuffled + rise).min(POOL_MAX) // L 11
    }

    /// The most that d can be. A flow's part in d is its X times its packets, which whoever sends few packets
    /// can state at will; its part in this mean is what it really sends.
    #[inline(always)]
    fn rtt_bound(&self) -> u64 {
        mul_div(self.sums.rtt, RTT_BOUND << (RTT_PLACES - 28), self.sums.packets)
    }

    #[inline(always)]
    fn pool(&self, pool: u64, weights: u64) -> Pool {
        let bounded = Pool::new(pool, weights);
        if self.config.overdraw { bounded.unbounded() } else { bounded }
    }

    /// Hands the positive pool to the interval that has begun.
    #[inline(always)]
    fn grant(&mut self, pool: u64) {
        // TH says that a division by nothing was avoided, not how: by one (ours).
        let sum_x = if self.config.thesis { self.sums.x.max(1) } else { self.sums.x };
        self.grants = self.pool(pool.min(POOL_MAX), sum_x); // L 13
        self.sums.x = 0; // L 16
    }

    /// beta Q / d, B/s with [`PLACES`].
    #[inline(always)]
    fn drain(&self) -> u64 {
        let millionths = Wide::product(self.queue.0, self.config.beta.0 as u64).to_u64();
        // A queue above 20 GB leaves no room for all places; they are zeros then.
        let places = (PLACES + RTT_PLACES).min(64 + millionths.leading_zeros());
        let drain = Wide::shifted(millionths, places).over(self.mean_rtt).over(Ratio::ONE.0 as u64);
        Wide::shifted(drain.to_u64(), PLACES + RTT_PLACES - places).to_u64().min(POOL_MAX)
    }

    /// Q is the average backlog of the control interval, with [`LinkConfig::average_queue`].
    #[inline(always)]
    fn average_queue(&mut self, now: Time, backlog: Bytes) {
        if self.config.average_queue {
            self.queue = self.average.close(now, backlog, self.capacity);
        }
    }

    /// Q is the least backlog of the time since, a time of about half a round trip that must not
    /// be d itself (draft-03 §4.2.5): the estimate would feed back into its own window.
    fn estimate_queue(&mut self, now: Time, backlog: Bytes) {
        if !self.config.average_queue {
            self.queue = self.queue_min;
        }
        self.queue_min = backlog;
        let rest = self.mean_rtt() - backlog.at(self.capacity);
        let window = Duration(rest.0.div_ceil(2)).max(self.config.allowed_queue);
        self.queue_deadline = now + window;
    }
}

impl Steered for Link {
    const IS_STEERED: bool = true;

    #[inline]
    fn close_told(&mut self, now: Time, told: &Told) {
        self.serve_told(now, told, |pool, _| pool);
    }

    #[inline]
    fn input(&self, now: Time) -> Rate {
        let elapsed = now - self.began;
        if elapsed.0 == 0 { Rate(0) } else { self.sums.input.per(elapsed) }
    }

    /// Returns d of the interval before, rounded up.
    #[inline(always)]
    fn mean_rtt(&self) -> Duration {
        Duration(mul_div_up(self.mean_rtt, SECOND, 1 << RTT_PLACES))
    }

    #[inline(always)]
    fn persistent_queue(&self) -> Bytes {
        self.report.persistent_queue
    }
}

impl LinkLaw for Link {
    type Config = LinkConfig;
    type Report = Report;
    type View = Share;

    #[inline(always)]
    fn name(_config: &LinkConfig) -> &'static str {
        "xcp"
    }

    #[inline(always)]
    fn start(config: &LinkConfig, phase: Duration, second_phase: Duration) -> Self {
        Self::new(*config, phase, second_phase)
    }

    #[inline(always)]
    fn first_interval(config: &LinkConfig) -> Duration {
        config.initial_interval
    }

    /// d is a mean of round trips as headers state them, or what it is without any.
    #[inline]
    fn shortest_interval(config: &LinkConfig, round_trip: Duration) -> Duration {
        if config.spread {
            return config.min_interval; // parts of microseconds are rounded down to nothing
        }
        let stated = Duration::from_header(round_trip.min(max_interval(config)).to_header());
        stated.min(config.initial_interval).max(config.min_interval)
    }

    #[inline(always)]
    fn capacity(config: &LinkConfig) -> Rate {
        config.capacity
    }

    #[inline(always)]
    fn configure_capacity(config: &mut LinkConfig, capacity: Rate) {
        config.capacity = capacity;
    }

    #[inline]
    fn set_capacity(&mut self, capacity: Rate) {
        self.config.capacity = capacity;
    }

    #[inline(always)]
    fn on_arrival(&mut self, now: Time, packet: &impl Packet) {
        Self::on_arrival(self, now, &packet.header().unwrap_or_default(), packet.size());
    }

    #[inline(always)]
    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes) {
        match packet.header() {
            Some(mut header) => {
                Self::on_departure(self, now, &mut header, packet.size(), backlog);
                packet.set_header(header);
            }
            None => self.on_other_departure(now, backlog),
        }
    }

    #[inline]
    fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool {
        match (came.header::<Header>(), left.header::<Header>()) {
            (Some(asked), Some(given)) => {
                given.delta <= asked.delta && Header { delta: asked.delta, ..given } == asked
            }
            (asked, given) => asked == given,
        }
    }

    #[inline]
    fn pool(&self, packet: &impl Packet) -> Option<law::Pool> {
        let header: Header = packet.header()?;
        Some(law::Pool { left: self.grants.left, part: self.grants.share(self.bounded(header.x)) })
    }

    /// Returns the earlier one of the control and the queue timer.
    #[inline]
    fn next_deadline(&self) -> Time {
        self.control_deadline.min(self.queue_deadline)
    }

    /// A late call closes one interval of the length that really passed. Where both are due, control comes first and
    /// sees the queue estimate of the period before.
    #[inline]
    fn on_deadline(&mut self, now: Time, backlog: Bytes) {
        self.serve(now, backlog, |pool, _| pool);
    }

    #[inline]
    fn report(&self) -> Report {
        self.report
    }

    #[inline(always)]
    fn view(&self, packet: &impl Packet) -> Option<Share> {
        packet.header().map(|header| self.share(&header, packet.size()))
    }
}

/// The longest control interval before any packet states its round trip.
#[inline(always)]
fn max_interval(config: &LinkConfig) -> Duration {
    if config.max_interval.0 == 0 { MAX_INTERVAL } else { config.max_interval }
}

/// The largest X that counts in such an interval. A flow that sends less than a packet in it weighs less than its
/// part, as it does where the interval is longer than the initial one: else who makes the interval long would
/// gain weight by it.
#[inline(always)]
fn max_x(config: &LinkConfig, interval: Duration) -> u32 {
    if config.bound_headers { interval.min(config.initial_interval).to_header().max(1) } else { u32::MAX }
}

/// A packet's weight in the pool of cuts.
#[inline(always)]
pub(in crate::law) fn weight(size: Bytes) -> u32 {
    size.0.min(u32::MAX as u64) as u32
}

/// A span in seconds with [`RTT_PLACES`].
#[inline(always)]
fn with_rtt_places(span: Duration) -> u64 {
    mul_div(span.0, 1 << RTT_PLACES, SECOND)
}

//! Capacity of a link over time, and the end of each packet's transmission.
//!
//! [`Service`] says the capacity (a fixed rate, a rate that steps, a recorded trace); [`Server`] serves one
//! packet after the other by it. Exact: within a busy period the end of every packet is the first
//! picosecond at which the capacity since the period's begin covers all its packets, so nothing
//! drifts, however odd the rate.

pub use crate::packet::PS_PER_S;
use crate::packet::Picos;
use crate::trace::{OPPORTUNITY, Trace};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use congestlab_core::units::{BitRate, Rate};
use core::fmt;

/// Later than every event of a run.
pub const NEVER: Picos = u64::MAX;

/// Work of sending `size` bytes, 10^-12 bit. 65,535 bytes are 2^59 of it.
#[inline]
pub(crate) const fn work_of(size: u32) -> u64 {
    size as u64 * (8 * PS_PER_S)
}

/// Rates of a link that steps: from each time on, a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps(Arc<[(Picos, BitRate)]>);

/// Reason why a rate or a list of steps can not be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateError {
    /// There is no step.
    NoStep,
    /// The first step is later than the beginning of the run.
    LateFirstStep,
    /// The step (from 0) is not later than the one before.
    NotIncreasing {
        /// Position in the list, from 0.
        step: usize,
    },
    /// The rate of the step (from 0) is zero.
    ZeroRate {
        /// Position in the list, from 0.
        step: usize,
    },
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStep => write!(f, "a rate in steps needs at least one step"),
            Self::LateFirstStep => write!(f, "the first step must begin at 0 s"),
            Self::NotIncreasing { step } => write!(f, "step {step} must be later than the step before it"),
            Self::ZeroRate { step } => write!(f, "the rate of step {step} must be above zero"),
        }
    }
}

impl core::error::Error for RateError {}

impl Steps {
    /// Creates steps from rates by the time from which they hold; the first from 0.
    ///
    /// # Errors
    /// The first step that is out of order or of zero rate.
    pub fn new(steps: Vec<(Picos, BitRate)>) -> Result<Self, RateError> {
        if steps.first().ok_or(RateError::NoStep)?.0 != 0 {
            return Err(RateError::LateFirstStep);
        }
        if let Some(step) = steps.iter().position(|&(_, rate)| rate.0 == 0) {
            return Err(RateError::ZeroRate { step });
        }
        if let Some(index) = steps.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
            return Err(RateError::NotIncreasing { step: index + 1 });
        }
        Ok(Self(steps.into()))
    }

    /// Returns the steps, in order of time.
    pub fn as_slice(&self) -> &[(Picos, BitRate)] {
        &self.0
    }

    /// Position of the step that holds at `t`.
    fn position(&self, t: Picos) -> usize {
        self.0.partition_point(|&(from, _)| from <= t) - 1
    }

    /// When the step after `position` begins.
    fn end(&self, position: usize) -> Picos {
        self.0.get(position + 1).map_or(NEVER, |&(from, _)| from)
    }
}

/// Capacity of a link over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// A fixed rate, which must be above zero.
    Fixed(BitRate),
    /// A rate that changes at known times; a packet in transmission goes on at the new rate.
    Steps(Steps),
    /// Recorded delivery opportunities.
    Trace(Trace),
}

impl Service {
    /// Returns the rate of steps at `t`; of a trace, the mean over one period (docs/design/contract.md 2).
    pub fn rate_at(&self, t: Picos) -> BitRate {
        match self {
            Self::Fixed(rate) => *rate,
            Self::Steps(steps) => steps.0[steps.position(t)].1,
            Self::Trace(trace) => trace.mean_rate(),
        }
    }

    /// Returns [`Service::rate_at`] as a law wants to know it, rounded down to whole bytes per second.
    pub fn capacity_at(&self, t: Picos) -> Rate {
        Rate(self.rate_at(t).0 / 8)
    }

    /// Returns the capacity that the link offers after `from` and up to `to`, in 10^-12 bit. Utilisation divides by it. A rate
    /// offers its integral, a trace the opportunities in that time.
    pub fn work(&self, from: Picos, to: Picos) -> u128 {
        let span = u128::from(to.saturating_sub(from));
        match self {
            Self::Fixed(rate) => u128::from(rate.0) * span,
            Self::Steps(steps) => (0..steps.0.len())
                .map(|i| {
                    let (begin, rate) = steps.0[i];
                    let part = steps.end(i).min(to).saturating_sub(begin.max(from));
                    u128::from(rate.0) * u128::from(part)
                })
                .sum(),
            Self::Trace(trace) if from < to => u128::from(trace.offered(from, to)) * 8 * u128::from(PS_PER_S),
            Self::Trace(_) => 0,
        }
    }

    /// Returns when the link has offered the capacity of `bytes` since `from`: the end of their transmission if nothing else
    /// is sent. [`NEVER`] if that is beyond all times.
    pub fn end(&self, from: Picos, bytes: u64) -> Picos {
        let mut work = u128::from(bytes) * 8 * u128::from(PS_PER_S);
        let after = |begin: Picos, work: u128, rate: BitRate| {
            let span = work.div_ceil(u128::from(rate.0));
            begin.saturating_add(Picos::try_from(span).unwrap_or(NEVER))
        };
        match self {
            Self::Fixed(rate) => after(from, work, *rate),
            Self::Steps(steps) => {
                let (mut begin, mut position) = (from, steps.position(from));
                loop {
                    let (rate, end) = (steps.0[position].1, steps.end(position));
                    let until_step = u128::from(rate.0) * u128::from(end - begin);
                    if end == NEVER || until_step >= work {
                        return after(begin, work, rate);
                    }
                    work -= until_step;
                    (begin, position) = (end, position + 1);
                }
            }
            Self::Trace(_) if bytes == 0 => from,
            Self::Trace(trace) => trace.nth_after(from, bytes.div_ceil(OPPORTUNITY.into())),
        }
    }

    /// Returns the mean rate after `from` and up to `to`, rounded down; the rate at `from` if the span is empty.
    pub fn mean_rate(&self, from: Picos, to: Picos) -> BitRate {
        match to.saturating_sub(from) {
            0 => self.rate_at(from),
            span => BitRate(u64::try_from(self.work(from, to) / u128::from(span)).unwrap_or(u64::MAX)),
        }
    }

    /// Returns a time, ps, that every packet of `size` bytes or more takes at least: what the link adds to its
    /// propagation delay when an engine asks how far it may look ahead. A trace gives nothing.
    pub fn shortest(&self, size: u16) -> Picos {
        let fastest = match self {
            Self::Fixed(rate) => rate.0,
            Self::Steps(steps) => steps.0.iter().map(|&(_, rate)| rate.0).max().unwrap_or(u64::MAX),
            Self::Trace(_) => return 0,
        };
        // The credit of the packet before is worth less than a picosecond.
        work_of(u32::from(size)) / fastest
    }
}

/// Bytes that a packet takes on a wire of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Bytes of a frame beside the IP packet, the gap behind it included.
    pub overhead: u16,
    /// Fewest bytes of a frame, overhead and gap included.
    pub minimum: u16,
    /// Silence behind every frame, in bytes; at most `overhead`.
    pub gap: u16,
}

impl Frame {
    /// Ethernet (D03 4.2.2): preamble 8 B, header 14 B, check sequence 4 B, gap 12 B; at least 64 B of frame.
    pub const ETHERNET: Self = Self { overhead: 38, minimum: 84, gap: 12 };

    /// Returns how long a packet of `size` bytes is on the wire at `rate` bit/s, without the gap.
    #[inline]
    pub(crate) fn signal(self, size: u32, rate: u64) -> Picos {
        let whole = (size + u32::from(self.overhead)).max(self.minimum.into());
        time_of(whole - u32::from(self.gap), rate)
    }
}

/// Returns how long `size` bytes take at `rate` bit/s, rounded up.
pub(crate) const fn time_of(size: u32, rate: u64) -> Picos {
    work_of(size).div_ceil(rate)
}

/// Transmitter of a link: serves packets one after the other. Rounding: a transmission ends at the first whole
/// picosecond at which it is complete, and what that picosecond could have carried beside is the next packet's
/// credit.
#[derive(Clone, Debug)]
pub struct Server {
    /// bit/s; of steps, the current.
    rate: u64,
    /// Work that the last picosecond of the packet before had left, less than `rate`.
    credit: u64,
    /// The size whose quotient and remainder follow: links carry one size most of the time.
    size: u32,
    remainder: u64,
    quotient: u64,
    varying: Option<Box<Varying>>,
}

#[derive(Clone, Debug)]
enum Varying {
    Steps {
        steps: Steps,
        position: usize,
    },
    Trace(Opportunities),
    /// The wire is a medium's, which says who may begin when.
    Shared {
        frame: Frame,
        /// A packet that comes now may begin.
        is_free: bool,
    },
}

// Apart from the paths of ports that have a fixed rate.
impl Varying {
    /// Returns true for a server that is closed: [`Server::is_closed`].
    #[inline(never)]
    fn is_closed(&self) -> bool {
        matches!(self, Self::Trace(_) | Self::Shared { is_free: false, .. })
    }

    /// Returns the next opening: [`Server::next_opening`].
    #[inline(never)]
    fn next_opening(&self, busy_until: Picos) -> Picos {
        match self {
            Self::Trace(state) if state.left == 0 => state.next_at(),
            Self::Shared { .. } => NEVER,
            _ => busy_until,
        }
    }
}

/// Where a trace has got to.
#[derive(Clone, Debug)]
struct Opportunities {
    trace: Trace,
    /// Begin of the period that the next opportunity lies in.
    base: Picos,
    /// The next opportunity in that period.
    next: usize,
    /// The opportunity that a packet used last, and its bytes that are left.
    at: Picos,
    left: u32,
}

impl Opportunities {
    fn next_at(&self) -> Picos {
        self.trace.at(self.base, self.next)
    }

    /// Opens the next opportunity.
    fn open(&mut self) {
        self.at = self.next_at();
        self.left = OPPORTUNITY;
        self.next += 1;
        if self.next == self.trace.stamps().len() {
            self.next = 0;
            self.base = self.base.saturating_add(self.trace.period());
        }
    }
}

impl Server {
    /// Creates an idle server at the beginning of the run.
    pub fn new(service: &Service) -> Self {
        let varying = match service {
            Service::Fixed(_) => None,
            Service::Steps(steps) => Some(Box::new(Varying::Steps { steps: steps.clone(), position: 0 })),
            Service::Trace(trace) => Some(Box::new(Varying::Trace(Opportunities {
                trace: trace.clone(),
                base: 0,
                next: 0,
                at: 0,
                left: 0,
            }))),
        };
        let rate = service.rate_at(0).0;
        let is_trace = matches!(service, Service::Trace(_));
        debug_assert!(rate > 0 || is_trace, "a link without capacity never sends");
        Self { rate, credit: 0, size: 0, remainder: 0, quotient: 0, varying }
    }

    /// A server of frames on a wire that others use too.
    pub(crate) fn shared(rate: BitRate, frame: Frame) -> Self {
        let varying = Some(Box::new(Varying::Shared { frame, is_free: false }));
        Self { varying, ..Self::new(&Service::Fixed(rate)) }
    }

    /// The wire is free, or not, for a packet that comes now.
    pub(crate) fn set_free(&mut self, free: bool) {
        if let Some(Varying::Shared { is_free, .. }) = self.varying.as_deref_mut() {
            *is_free = free;
        }
    }

    /// Returns true if the rate is fixed, so that [`Server::transmit_fixed`] may be used.
    #[inline]
    pub fn is_fixed(&self) -> bool {
        self.varying.is_none()
    }

    /// Returns true if a packet has to wait even where none is before it: for an opportunity, for the wire.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.varying.as_deref().is_some_and(Varying::is_closed)
    }

    /// Notes that the server idled: unused capacity is gone.
    #[inline]
    pub fn rest(&mut self) {
        self.credit = 0;
    }

    /// Returns when a packet that came to an empty queue at `now` can begin transmission, given that the
    /// packet before ends (or ended) at `busy_until`.
    #[inline]
    pub fn opening(&mut self, now: Picos, busy_until: Picos) -> Picos {
        match self.varying.as_deref_mut() {
            Some(Varying::Trace(state)) if busy_until <= now => {
                // Nothing was queued up to now: what the trace offered is wasted, and an opportunity
                // at this very instant came before the packet (departures precede arrivals).
                if state.next_at() <= now {
                    (state.base, state.next) = state.trace.first_after(now);
                }
                state.left = 0;
                state.next_at()
            }
            _ => self.next_opening(busy_until).max(now),
        }
    }

    /// Returns when the next queued packet can begin, the one before ending at `busy_until`; `NEVER` if someone
    /// else will say so.
    #[inline]
    pub fn next_opening(&self, busy_until: Picos) -> Picos {
        self.varying.as_deref().map_or(busy_until, |varying| varying.next_opening(busy_until))
    }

    /// Begins a transmission of `size` bytes at `begin`, which [`Server::opening`] or
    /// [`Server::next_opening`] gave; returns when its last bit leaves.
    #[inline]
    pub fn transmit(&mut self, begin: Picos, size: u32) -> Picos {
        if self.varying.is_none() {
            self.transmit_fixed(begin, size)
        } else {
            self.transmit_varying(begin, size)
        }
    }

    /// Begins a transmission of `size` bytes at a fixed rate, as [`Server::transmit`].
    #[inline]
    pub fn transmit_fixed(&mut self, begin: Picos, size: u32) -> Picos {
        if size != self.size {
            self.size = size;
            self.quotient = work_of(size) / self.rate;
            self.remainder = work_of(size) % self.rate;
        }
        if self.remainder > self.credit {
            self.credit += self.rate - self.remainder;
            begin.saturating_add(self.quotient + 1)
        } else {
            self.credit -= self.remainder;
            begin.saturating_add(self.quotient)
        }
    }

    fn transmit_varying(&mut self, begin: Picos, size: u32) -> Picos {
        match self.varying.as_deref_mut() {
            Some(Varying::Steps { steps, position }) => {
                while steps.end(*position) <= begin {
                    *position += 1;
                }
                let mut begin = begin;
                let mut work = work_of(size);
                // The credit was earned at the rate of the packet before and is worth as much now.
                let credit = self.credit.min(work);
                (work, self.credit) = (work - credit, self.credit - credit);
                if work == 0 {
                    return begin;
                }
                loop {
                    self.rate = steps.0[*position].1.0;
                    let end = steps.end(*position);
                    let until_step = u128::from(self.rate) * u128::from(end - begin);
                    if until_step >= u128::from(work) {
                        let span = work.div_ceil(self.rate);
                        // Below the rate. The product can pass 2^64, the difference can not.
                        self.credit = span.wrapping_mul(self.rate).wrapping_sub(work);
                        return begin.saturating_add(span);
                    }
                    if end == NEVER {
                        return NEVER;
                    }
                    // Below `work`, which is 64 bits.
                    work -= until_step as u64;
                    begin = end;
                    *position += 1;
                }
            }
            Some(Varying::Trace(state)) => {
                let mut rest = size;
                loop {
                    if state.left == 0 {
                        state.open();
                    }
                    let part = state.left.min(rest);
                    state.left -= part;
                    rest -= part;
                    if rest == 0 {
                        return state.at;
                    }
                }
            }
            Some(Varying::Shared { frame, .. }) => begin.saturating_add(frame.signal(size, self.rate)),
            None => self.transmit_fixed(begin, size),
        }
    }
}

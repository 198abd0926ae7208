//! Capacity of a link that its law is told by somebody else: how a queue is measured that drains, and for how long a source is believed. The
//! kernel's router and the simulator run the same rules; who reads clocks, counters and recordings is elsewhere.
//!
//! A source that nobody has confirmed for [`PATIENCE`] is stale, and the fixed rate holds again. Nothing guesses: a source that says nothing
//! of use is no source.

use crate::units::{BitRate, Bytes, Duration, Rate, SECOND, Time};

/// Time between two looks at a source: the shortest control interval of XCP's law (draft-03) is no shorter.
pub const TICK: Duration = Duration(SECOND / 100);
/// Time over which a recorded trace is told as one rate: packets of 1500 bytes are too coarse for less below some Mbit/s.
pub const STEP: Duration = Duration(SECOND / 10);
/// Time after which a rate is stale that was not said again.
pub const PATIENCE: Duration = Duration(3 * SECOND);
/// The queue drains at the most that it did within a time this long: of a sample in which it was empty for a while, less is seen.
const WINDOW: Duration = Duration(SECOND / 2);
/// Samples within that time, and some, for a clock may be early.
const SAMPLES: usize = 64;
/// Samples that make a mean: half of a burst falls into one, and half into the next.
const MEAN: usize = 3;
/// A queue that holds this many of the longest packets when a sample begins and ends is taken to have held some in between.
const BUSY_PACKETS: u64 = 2;
/// Changes below this part are not told: each costs a change of the shaper.
const STEP_PARTS: u64 = 100;

/// Counters of a queue at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes of IP that have left the queue.
    pub bytes: Bytes,
    /// Packets that have left the queue.
    pub packets: u64,
    /// Bytes that wait.
    pub waiting: Bytes,
}

/// A measurement of how fast a queue drains.
#[derive(Clone, Debug)]
pub struct Drain {
    busy: Bytes,
    before: Option<(Time, Counters)>,
    /// Rates of samples in which packets waited, with their times, the oldest first.
    samples: [(Time, Rate); SAMPLES],
    count: usize,
}

impl Drain {
    /// Creates the measurement of a queue whose longest packets have so many bytes.
    pub const fn new(longest: Bytes) -> Self {
        let busy = Bytes(longest.0.saturating_mul(BUSY_PACKETS));
        Self { busy, before: None, samples: [(Time::ZERO, Rate(0)); SAMPLES], count: 0 }
    }

    /// Forgets the last look: the counters to come are those of another queue.
    pub const fn forget(&mut self) {
        self.before = None;
    }

    /// Looks at the counters, and returns the rate if there is one to measure: the largest mean of three samples.
    pub fn look(&mut self, now: Time, counters: Counters) -> Option<BitRate> {
        let (then, before) = self.before.replace((now, counters))?;
        let waited = before.waiting.min(counters.waiting) >= self.busy;
        // A queue that stands still says nothing of the link but that it is not to be believed.
        if !waited || counters.packets == before.packets {
            return None;
        }
        let span = Duration((now - then).0.max(1));
        self.note(now, (counters.bytes - before.bytes).per(span));
        let samples = self.samples.get(..self.count).unwrap_or_default();
        let mean = |three: &[(Time, Rate)]| {
            three.iter().fold(0, |sum: u64, (_, rate)| sum.saturating_add(rate.0)) / MEAN as u64
        };
        samples.windows(MEAN).map(mean).max().map(|rate| Rate(rate).bits())
    }

    /// Adds a sample, and forgets those that are too old.
    fn note(&mut self, now: Time, rate: Rate) {
        let is_old = |(at, _): &(Time, Rate)| now - *at >= WINDOW;
        let old = self.samples.iter().take(self.count).take_while(|sample| is_old(sample)).count();
        let old = if self.count - old == SAMPLES { 1 } else { old };
        self.samples.rotate_left(old);
        self.count -= old;
        if let Some(place) = self.samples.get_mut(self.count) {
            *place = (now, rate);
            self.count += 1;
        }
    }
}

/// Finding of one look at a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing new.
    Nothing,
    /// The rate, confirmed or new.
    Rate(BitRate),
    /// A look that found nothing of use.
    Useless,
}

/// Change of the trust in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The source has become stale.
    Stale,
    /// The source speaks again.
    Again,
}

/// Word to a law about its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Capacity.
    pub rate: BitRate,
    /// True if it is the fixed one, since the source is stale.
    pub is_stale: bool,
}

/// Belief in a source: what it said last, and since when nobody has confirmed it.
#[derive(Clone, Debug)]
pub struct Belief {
    fixed: BitRate,
    rate: Option<BitRate>,
    confirmed: Time,
    told: Option<Told>,
}

impl Belief {
    /// Begins to listen; the fixed rate holds until the source speaks, and whenever it is stale.
    pub const fn new(fixed: BitRate, now: Time) -> Self {
        Self { fixed, rate: None, confirmed: now, told: None }
    }

    /// Hears what a look has found. Returns what changes about the source, and what the law is to be told, if that is new.
    pub fn hear(&mut self, now: Time, look: Look) -> (Option<News>, Option<Told>) {
        let was_stale = self.told.is_some_and(|told| told.is_stale);
        let mut news = None;
        match look {
            Look::Rate(rate) => {
                if self.rate.is_none() && self.told.is_some() {
                    news = Some(News::Again);
                }
                (self.rate, self.confirmed) = (Some(rate), now);
            }
            Look::Nothing if now - self.confirmed <= PATIENCE => {
                if self.rate.is_none() && !was_stale {
                    // It has not begun to speak.
                    return (None, None);
                }
            }
            Look::Useless | Look::Nothing => {
                self.rate = None;
                if !was_stale {
                    news = Some(News::Stale);
                }
            }
        }
        let wanted = Told { rate: self.rate.unwrap_or(self.fixed), is_stale: self.rate.is_none() };
        let is_new = self.told.is_none_or(|told| {
            told.is_stale != wanted.is_stale
                || wanted.rate.0.abs_diff(told.rate.0).saturating_mul(STEP_PARTS) > told.rate.0
        });
        if !is_new {
            return (news, None);
        }
        self.told = Some(wanted);
        (news, self.told)
    }

    /// Returns what the law was told last; `None`: nothing yet.
    pub const fn told(&self) -> Option<Told> {
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1500;

    /// A queue that serves so many packets in each tick, and holds so many.
    fn measured(served: &[u64], holds: impl Fn(usize) -> u64) -> std::vec::Vec<Option<u64>> {
        let mut drain = Drain::new(Bytes(PACKET));
        let mut counters = Counters { waiting: Bytes(holds(0) * PACKET), ..Counters::default() };
        assert_eq!(drain.look(Time::ZERO, counters), None, "one look is no sample");
        let each = served.iter().enumerate().map(|(tick, packets)| {
            counters.packets += packets;
            counters.bytes += Bytes(packets * PACKET);
            counters.waiting = Bytes(holds(tick + 1) * PACKET);
            drain.look(Time((tick as u64 + 1) * TICK.0), counters).map(|rate| rate.0)
        });
        each.collect()
    }

    #[test]
    fn a_queue_drains_at_the_largest_mean_of_three_samples_of_half_a_second() {
        // 10 packets in 10 ms are 12 Mbit/s.
        let bursts = measured(&[20, 0, 10, 10, 10, 10], |_| 5);
        // Where nothing left, nothing is seen: the burst's other half.
        assert_eq!(bursts, [None, None, None, Some(16_000_000), Some(16_000_000), Some(16_000_000)]);
        let mut served = std::vec![10; 100];
        served[10..13].fill(20);
        let peak = measured(&served, |_| 5);
        assert_eq!((peak[2], peak[9], peak[12]), (Some(12_000_000), Some(12_000_000), Some(24_000_000)));
        // The largest counts until half a second has passed since the first of its three samples.
        assert_eq!((peak[59], peak[60], peak[62]), (Some(24_000_000), Some(20_000_000), Some(12_000_000)));
    }

    #[test]
    fn a_queue_that_is_short_or_stands_still_says_nothing() {
        assert!(measured(&[10; 50], |_| 1).iter().all(Option::is_none));
        assert!(measured(&[0; 50], |_| 9).iter().all(Option::is_none));
        // Busy at every other look: never between two.
        assert!(measured(&[10; 50], |tick| 5 * (tick as u64 % 2)).iter().all(Option::is_none));
        let mut drain = Drain::new(Bytes(PACKET));
        let counters = |packets| Counters { bytes: Bytes(packets * PACKET), packets, waiting: Bytes(9000) };
        for tick in 0..10 {
            drain.forget();
            assert_eq!(drain.look(Time(tick * TICK.0), counters(10 * tick)), None);
        }
    }

    /// No clock makes it remember more than it has room for.
    #[test]
    fn looks_that_are_early_push_the_oldest_sample_out() {
        let mut drain = Drain::new(Bytes(PACKET));
        for look in 0..1000 {
            let counters = Counters { bytes: Bytes(look * PACKET), packets: look, waiting: Bytes(9000) };
            let rate = drain.look(Time(look * 1_000_000), counters);
            assert_eq!(rate.is_some(), look >= 3, "{look}: {rate:?}");
            assert!(drain.count <= SAMPLES);
        }
    }

    #[test]
    fn a_source_is_believed_for_three_seconds_and_what_hardly_changes_is_not_told() {
        let fixed = BitRate(10_000_000);
        let mut belief = Belief::new(fixed, Time::ZERO);
        let at = |tenths: u64| Time(tenths * SECOND / 10);
        let rate = |rate| Look::Rate(BitRate(rate));
        let told = |rate, is_stale| Some(Told { rate: BitRate(rate), is_stale });
        assert_eq!(belief.hear(at(30), Look::Nothing), (None, None), "it has not begun");
        assert_eq!(belief.hear(at(31), Look::Nothing), (Some(News::Stale), told(fixed.0, true)));
        assert_eq!(belief.hear(at(32), Look::Nothing), (None, None), "it is said once");
        assert_eq!(belief.hear(at(33), rate(20_000_000)), (Some(News::Again), told(20_000_000, false)));
        assert_eq!(belief.hear(at(34), rate(20_200_000)), (None, None));
        assert_eq!(belief.hear(at(35), rate(20_200_001)), (None, told(20_200_001, false)));
        assert_eq!(belief.hear(at(65), Look::Nothing), (None, None), "3 s are not yet over");
        assert_eq!(belief.hear(at(66), Look::Nothing), (Some(News::Stale), told(fixed.0, true)));
        assert_eq!(belief.hear(at(67), rate(10_000_000)), (Some(News::Again), told(10_000_000, false)));
        assert_eq!(belief.hear(at(68), Look::Useless), (Some(News::Stale), told(fixed.0, true)), "at once");
        assert_eq!(belief.told(), told(fixed.0, true));
        let mut belief = Belief::new(fixed, Time::ZERO);
        assert_eq!(
            belief.hear(at(1), rate(fixed.0)),
            (None, told(fixed.0, false)),
            "the first is always told"
        );
    }
}

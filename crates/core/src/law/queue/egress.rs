//! A queue law before the queue instead of in it, for routers whose kernel keeps the packets: it judges a packet on its way to a
//! queue that it can not touch.
//!
//! The law is the one that a simulated port runs, and hears of each packet at both of its moments, one after the other. How
//! long the packet will have waited when it leaves is foreseen: what waits before it, at the link's rate. So senders hear of a
//! queue earlier by the time that it takes. A law of one queue can do so; limits, turns and priorities are the kernel's.

use super::{Arrival, Chance, Departure, Draws, QueueLaw, QueueSeries, Queues, Record, Value, Verdict, mix};
use crate::law::Packet;
use crate::law::settings::Settings;
use crate::units::{Bytes, Duration, Rate, Time};

/// Updates of a controller that one packet makes up for at most: a router has no timer.
pub const UPDATES: u32 = 4;
/// ECN field of a packet that met congestion.
const CE: u8 = 0b11;

/// A queue law that can judge before the queue.
pub trait AtEgress: QueueLaw {
    /// Settings of the law at a router.
    type Told: Settings + Default + Clone;

    /// Returns the law's own settings.
    fn config(told: &Self::Told) -> Self::Config;
}

/// A queue of somebody else, as one can look at it.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Bytes that wait.
    pub bytes: Bytes,
    /// Number of packets that wait.
    pub packets: u64,
    /// Rate at which they leave.
    pub rate: Rate,
}

impl Waiting {
    /// Returns how long a packet that comes now will wait.
    #[inline(always)]
    fn time(&self) -> Duration {
        self.bytes.at(self.rate)
    }
}

impl Queues for Waiting {
    #[inline(always)]
    fn packets(&self, _queue: usize) -> u64 {
        self.packets
    }

    #[inline(always)]
    fn bytes(&self, _queue: usize) -> Bytes {
        self.bytes
    }

    #[inline(always)]
    fn backlog(&self) -> Bytes {
        self.bytes
    }

    #[inline(always)]
    fn sojourn(&self, _queue: usize) -> Duration {
        self.time()
    }

    /// The queue drops by itself what has none.
    #[inline(always)]
    fn has_room(&self, _queue: usize, _size: Bytes) -> bool {
        true
    }

    #[inline(always)]
    fn has_room_behind_low_priority(&self, _queue: usize, _size: Bytes) -> bool {
        false
    }

    /// Nobody tells how long the link has had nothing to do.
    #[inline(always)]
    fn unused(&self) -> Option<Bytes> {
        None
    }

    #[inline(always)]
    fn record(&mut self, _queue: usize) -> Option<&mut Record> {
        None
    }
}

/// A stream of draws (splitmix64).
#[derive(Clone, Copy, Debug)]
struct Stream(u64);

impl Draws for Stream {
    #[inline(always)]
    fn draw(&mut self, chance: Chance) -> bool {
        match chance {
            Chance::NEVER => false,
            Chance::CERTAIN => true,
            Chance(threshold) => {
                self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
                mix(self.0) < threshold
            }
        }
    }
}

/// Counts of a law before a queue, its sample, and the wait that it foresaw last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report<Sample> {
    /// Packets that the law marked.
    pub marked: u64,
    /// Packets that it dropped.
    pub dropped: u64,
    /// Wait that it foresaw for the packet that came last.
    pub wait: Duration,
    /// State of the law.
    pub sample: Sample,
}

impl<Sample: QueueSeries> Report<Sample> {
    /// Calls `tell` with each metric: name, numerator and denominator.
    #[inline(always)]
    pub fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        tell("marked_packets", self.marked as i64, 1);
        tell("dropped_packets", self.dropped as i64, 1);
        tell("wait_ms", self.wait.0.min(i64::MAX as u64) as i64, 1_000_000);
        self.sample.each(&mut |name, value| {
            if let Value::Number(numerator, denominator) = value {
                tell(name, numerator, denominator);
            }
        });
    }
}

/// A queue law at one output port, before its queue.
#[derive(Clone, Debug)]
pub struct Egress<Law> {
    law: Law,
    draws: Stream,
    rate: Rate,
    /// By how much the law's clock is behind: it stands still while nobody comes.
    stood: Duration,
    marked: u64,
    dropped: u64,
    waiting: Waiting,
}

impl<Law: AtEgress> Egress<Law> {
    /// Creates the state of an empty port of that rate. Ports of the same seed draw alike.
    #[inline(always)]
    pub fn start(told: &Law::Told, rate: Rate, seed: u64) -> Self {
        let waiting = Waiting { bytes: Bytes(0), packets: 0, rate };
        let law = Law::start(&Law::config(told));
        Self { law, draws: Stream(seed), rate, stood: Duration(0), marked: 0, dropped: 0, waiting }
    }

    /// Changes the rate from the next packet on.
    #[inline(always)]
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Returns the law's time: its clock stands still while nobody comes.
    #[inline(always)]
    fn time(&self, now: Time) -> Time {
        Time((now - Time(self.stood.0)).0)
    }

    /// Looks at what waits when a packet comes, and serves a deadline that has passed, if there is one: then true. To be called
    /// [`UPDATES`] times at most before the packet is judged.
    // By itself, for where the state is not in memory between two updates, the kernel's verifier goes all ways through both.
    #[inline(always)]
    pub fn serve(&mut self, now: Time, bytes: Bytes, packets: u64) -> bool {
        self.waiting = Waiting { bytes, packets, rate: self.rate };
        let due = self.law.next_deadline();
        let is_due = self.time(now) >= due;
        if is_due {
            self.law.on_deadline(due, &self.waiting);
        }
        is_due
    }

    /// Judges a packet that comes now and stands for so many, before what waits as it was seen last.
    #[inline(always)]
    pub fn judge(&mut self, now: Time, packet: &impl Packet, segments: u64) -> Verdict {
        self.stood += self.time(now) - self.law.next_deadline();
        let (now, mut waiting) = (self.time(now), self.waiting);
        // A single queue asks nobody whose packet it is.
        let arrival = Arrival { now, queue: 0, flow: 0, packet, is_low_priority: false };
        let came = self.law.on_enqueue(&arrival, &mut waiting, &mut self.draws);
        if let Verdict::Drop(reason) = came {
            self.law.on_drop(0, reason, &mut waiting);
            self.dropped += segments;
            return came;
        }
        let departure = Departure { now, queue: 0, packet, sojourn: waiting.time() };
        let left = self.law.on_dequeue(&departure, &mut waiting, &mut self.draws);
        if let Verdict::Drop(_) = left {
            self.dropped += segments;
            return left;
        }
        if !matches!(came, Verdict::Mark) && !matches!(left, Verdict::Mark) {
            return Verdict::Pass;
        }
        if packet.ecn() != CE {
            self.marked += segments;
        }
        Verdict::Mark
    }

    /// Returns counts and state.
    #[inline(always)]
    pub fn report(&mut self) -> Report<Law::Sample> {
        let Self { marked, dropped, waiting, .. } = *self;
        Report { marked, dropped, wait: waiting.time(), sample: self.law.sample(&waiting) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pie::{self, Pie};
    use super::super::step::{self, Step};
    use super::*;
    use crate::law::Carried;

    const RATE: Rate = Rate(1_250_000);

    fn judge<Law: AtEgress>(port: &mut Egress<Law>, now: u64, ecn: u32, bytes: u64, packets: u64) -> Verdict {
        let packet = Carried { size: Bytes(1500), ecn, ..Carried::default() };
        for _ in 0..UPDATES {
            port.serve(Time(now), Bytes(bytes), packets);
        }
        port.judge(Time(now), &packet, 1)
    }

    /// 2500 bytes take 2 ms at 10 Mbit/s.
    #[test]
    fn a_step_marks_by_the_wait_that_is_to_come_or_by_packets() {
        let told = step::Told { sojourn: Duration(2_000_000), ..step::Told::default() };
        let mut port = Egress::<Step>::start(&told, RATE, 1);
        for (bytes, ecn, expected) in [
            (2500, 0b10, Verdict::Pass),
            (2501, 0b10, Verdict::Mark),
            (2501, 0b11, Verdict::Mark),
            (2501, 0, Verdict::Pass),
        ] {
            assert_eq!(judge(&mut port, 0, ecn, bytes, 2), expected, "{bytes} {ecn}");
        }
        let Report { marked, dropped, wait, .. } = port.report();
        assert_eq!((marked, dropped, wait.0), (1, 0, 2_000_800), "CE that came is no mark of ours");
        port.set_rate(Rate(2_500_000));
        assert_eq!(judge(&mut port, 0, 0b10, 2501, 2), Verdict::Pass);

        let told = step::Told { sojourn: Duration(0), packets: 3, drop: true };
        let mut port = Egress::<Step>::start(&told, RATE, 1);
        assert_eq!(judge(&mut port, 0, 0b01, 9999, 3), Verdict::Pass);
        assert_eq!(judge(&mut port, 0, 0b01, 1, 4), Verdict::Mark);
        assert!(matches!(judge(&mut port, 0, 0, 1, 4), Verdict::Drop(_)));
        assert_eq!((port.report().marked, port.report().dropped), (1, 1));
    }

    fn probability(port: &mut Egress<Pie>) -> i64 {
        let mut found = 0;
        port.report().each(&mut |name, value, _| {
            if name == "pie_probability" {
                found = value;
            }
        });
        found
    }

    /// A packet makes up for four updates, and what else was missed is silence, in which nothing is decided.
    #[test]
    fn the_clock_of_a_controller_stands_still_while_nobody_comes() {
        let told = pie::Config { burst: Duration(0), ..pie::Config::default() };
        let port = || Egress::<Pie>::start(&told, RATE, 1);
        let (mut often, mut seldom, mut silent) = (port(), port(), port());
        let ms = 15_000_000;
        for i in 1..=64 {
            judge(&mut often, i * ms, 0, 37_500, 25);
        }
        for i in 1..=16 {
            judge(&mut seldom, 4 * i * ms, 0, 37_500, 25);
            judge(&mut silent, 1000 * i * ms, 0, 37_500, 25);
        }
        let [often, seldom, silent] = [&mut often, &mut seldom, &mut silent].map(probability);
        // What is waited is known from the second packet on.
        assert!(often > 1_000_000 && seldom > often / 2 && seldom <= often, "{often} {seldom}");
        assert_eq!(silent, seldom);
    }
}

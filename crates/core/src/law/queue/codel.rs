//! CoDel (RFC 8289): what leaves a queue in which packets have waited longer than a target for a whole interval is marked
//! or dropped, one packet at first and then at a rate that grows with the square root of their number, until the
//! wait is below the target again. No rate, no capacity, no average (docs/design/modern.md 5.3).
//!
//! Linux computes the square root by one Newton step for each packet, in 16 bits, and time in units of 1024 ns
//! (`include/net/codel_impl.h`); its second gap is 50 ms where the RFC has 70.7 (CM-11). With `linux` so does this law.

use super::{Departure, Draws, QueueLaw, Queues, Reason, Record, Verdict};
use crate::law::Packet;
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::units::{Bytes, Duration};

/// Settings of CoDel in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Wait that may stand.
    pub target: Duration,
    /// Time for which it may be longer: about the longest round trip.
    pub interval: Duration,
    /// True to mark packets of ECN-capable transports where others are dropped.
    pub ecn: bool,
    /// Bytes behind a packet up to which it is never late: one packet.
    pub mtu: u32,
    /// True to compute as Linux does.
    pub linux: bool,
}

impl Default for Config {
    /// RFC 8289 §4.3 and 4.4, and tc.
    fn default() -> Self {
        Self {
            target: Duration(5_000_000),
            interval: Duration(100_000_000),
            ecn: false,
            mtu: 1500,
            linux: false,
        }
    }
}

/// The longest interval whose square fits, about; more than any round trip.
#[cfg(feature = "words")]
const INTERVAL_MAX: Duration = Duration(4_000_000_000);

impl Settings for Config {
    #[inline]
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell("target", "Wait that may stand; 5 ms (RFC 8289).", Field::Span(&mut self.target));
        tell(
            "interval",
            "Time for which packets may wait longer, about the longest round trip; 100 ms (RFC 8289).",
            Field::Span(&mut self.interval),
        );
        tell(
            "ecn",
            "Mark packets of ECN-capable flows instead of dropping them; false, of fq-codel true (tc).",
            Field::Switch(&mut self.ecn),
        );
        tell(
            "mtu",
            "Bytes behind a packet up to which it is never late; 1500, a packet.",
            Field::Number(&mut self.mtu, 65_535),
        );
        tell(
            "linux",
            "Compute square roots and times as Linux does, which drops sooner at first; false (RFC 8289).",
            Field::Switch(&mut self.linux),
        );
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        Finding::above_zero("target", self.target.0, "\"5 ms\"", tell);
        if !(1_000..=INTERVAL_MAX.0).contains(&self.interval.0) {
            tell(Finding::range("interval", alloc::format!("is {}", self.interval), "allowed: 1 us to 4 s"));
        } else if self.target >= self.interval {
            tell(Finding {
                is_error: false,
                ..Finding::range(
                    "target",
                    "is as long as the interval",
                    "write less: a tenth to a twentieth of the interval (RFC 8289, 4.3)",
                )
            });
        }
    }
}

/// Binary places by which Linux's unit of time is coarser than a nanosecond.
const LINUX_SHIFT: u32 = 10;
/// Linux's 1 / sqrt(1), 16 binary places.
const LINUX_ONE: u16 = u16::MAX;

impl Config {
    /// A time or span in the law's unit: nanoseconds, or Linux's 1024 of them.
    #[inline]
    const fn units(&self, nanos: u64) -> u64 {
        if self.linux { nanos >> LINUX_SHIFT } else { nanos }
    }
}

/// How the packet that leaves next is to be looked at, because the one before it was dropped in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    /// As any.
    #[default]
    Any,
    /// The packet goes: its predecessor was the first to be dropped.
    Goes,
    /// The predecessor of the packet was dropped on schedule.
    Scheduled,
}

/// The state of one queue: when the next packet is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Packets marked or dropped since the waits became too long.
    count: u32,
    /// `count` when they had become so the last time.
    last_count: u32,
    /// When they will have been too long for an interval; 0: they are not.
    first_above: u64,
    /// When the next packet is due.
    next_due: u64,
    /// Packets are being marked or dropped.
    is_dropping: bool,
    next: Next,
    /// Linux's 1 / sqrt(count), 16 binary places.
    root: u16,
}

impl Control {
    /// Decides on a packet that leaves, behind which `behind` wait in all queues; `is_last`: none in its own.
    pub fn judge(
        &mut self,
        config: &Config,
        departure: &Departure<'_, impl Packet>,
        behind: Bytes,
        is_last: bool,
    ) -> Verdict {
        let now = config.units(departure.now.0);
        let is_late = self.is_late(config, now, config.units(departure.sojourn.0), behind);
        let is_entry = !self.is_dropping && is_late;
        match core::mem::take(&mut self.next) {
            Next::Goes => return Verdict::Pass,
            Next::Scheduled if is_late => self.next_due = self.after(config, self.next_due),
            Next::Scheduled => self.is_dropping = false,
            Next::Any if is_entry => self.enter(config, now),
            Next::Any => self.is_dropping &= is_late,
        }
        if !self.is_dropping || !(is_entry || now >= self.next_due) {
            return Verdict::Pass;
        }
        let is_marked = config.ecn && departure.packet.ecn() != 0;
        if !is_entry {
            self.count = self.count.saturating_add(1);
            self.step();
            if is_marked {
                self.next_due = self.after(config, self.next_due);
            }
        }
        if is_marked {
            return Verdict::Mark;
        }
        if is_last {
            // There is no packet to look at: that ends a schedule, but not one that has just begun.
            self.first_above = 0;
            self.is_dropping = is_entry;
        } else {
            self.next = if is_entry { Next::Goes } else { Next::Scheduled };
        }
        Verdict::Drop(Reason::Aqm)
    }

    /// Hears that its turn came and nothing waited.
    pub fn find_empty(&mut self) {
        self.is_dropping = false;
    }

    /// Hears that a packet was dropped for want of room, which counts where queues share it.
    pub fn count_overflow(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// RFC 8289 §5.4, `should_drop`.
    fn is_late(&mut self, config: &Config, now: u64, sojourn: u64, behind: Bytes) -> bool {
        if sojourn < config.units(config.target.0) || behind.0 <= u64::from(config.mtu) {
            self.first_above = 0;
            return false;
        }
        if self.first_above == 0 {
            self.first_above = now.saturating_add(config.units(config.interval.0)).max(1);
            return false;
        }
        now > self.first_above
    }

    /// The waits have become too long: at the rate of the last time if that is not long ago.
    fn enter(&mut self, config: &Config, now: u64) {
        self.is_dropping = true;
        let since = self.count.saturating_sub(self.last_count);
        let recent = config.units(config.interval.0).saturating_mul(16);
        if since > 1 && now.saturating_sub(self.next_due) < recent {
            self.count = since;
            self.step();
        } else {
            self.count = 1;
            self.root = LINUX_ONE;
        }
        self.last_count = self.count;
        self.next_due = self.after(config, now);
    }

    /// One Newton step of Linux's 1 / sqrt(count), as the kernel's, which wraps where the step has no sense.
    fn step(&mut self) {
        let root = u64::from(self.root) << 16;
        let square = (root * root) >> 32;
        let step = (3u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.root = ((step.wrapping_mul(root) >> 31) as u32 >> 16) as u16;
    }

    /// `interval / sqrt(count)` after a time.
    fn after(&self, config: &Config, from: u64) -> u64 {
        let interval = config.units(config.interval.0);
        let gap = if config.linux {
            (interval.min(u64::from(u32::MAX)) * (u64::from(self.root) << 16)) >> 32
        } else {
            let interval = interval.min(u64::from(u32::MAX));
            (interval * interval / u64::from(self.count.max(1))).isqrt()
        };
        from.saturating_add(gap)
    }

    /// Reads the state from a record, whose first word is not its own.
    pub(super) fn read(record: &Record) -> Self {
        let [_, count, last_count, above_low, above_high, due_low, due_high, flags, ..] = *record;
        let time = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        Self {
            count,
            last_count,
            first_above: time(above_low, above_high),
            next_due: time(due_low, due_high),
            is_dropping: flags & 1 != 0,
            next: match flags >> 1 & 3 {
                1 => Next::Goes,
                2 => Next::Scheduled,
                _ => Next::Any,
            },
            root: (flags >> 16) as u16,
        }
    }

    /// Writes the state into a record.
    pub(super) fn write(&self, record: &mut Record) {
        let [_, count, last_count, above_low, above_high, due_low, due_high, flags, ..] = record;
        (*count, *last_count) = (self.count, self.last_count);
        (*above_low, *above_high) = (self.first_above as u32, (self.first_above >> 32) as u32);
        (*due_low, *due_high) = (self.next_due as u32, (self.next_due >> 32) as u32);
        *flags = u32::from(self.is_dropping) | (self.next as u32) << 1 | u32::from(self.root) << 16;
    }
}

/// CoDel on one queue.
#[derive(Clone, Debug)]
pub struct Codel {
    config: Config,
    control: Control,
}

impl QueueLaw for Codel {
    type Config = Config;
    type Sample = ();

    const ABOUT: &'static str = "CoDel: drops what has waited too long for too long (RFC 8289).";

    fn start(config: &Config) -> Self {
        Self { config: *config, control: Control::default() }
    }

    fn marks(config: &Config) -> bool {
        config.ecn
    }

    fn on_dequeue(
        &mut self,
        departure: &Departure<'_, impl Packet>,
        queues: &mut impl Queues,
        _draws: &mut impl Draws,
    ) -> Verdict {
        let (behind, is_last) = (queues.backlog(), queues.packets(departure.queue) == 0);
        self.control.judge(&self.config, departure, behind, is_last)
    }

    fn sample(&mut self, _queues: &impl Queues) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Carried;
    use crate::units::Time;
    use std::vec::Vec;

    const MS: u64 = 1_000_000;
    const BACKLOG: Bytes = Bytes(150_000);

    fn packet(ecn: u32) -> Carried {
        Carried { size: Bytes(1500), ecn, ..Carried::default() }
    }

    fn judge(control: &mut Control, config: &Config, at: u64, sojourn: u64, ecn: u32) -> Verdict {
        let packet = packet(ecn);
        let departure = Departure { now: Time(at), queue: 0, packet: &packet, sojourn: Duration(sojourn) };
        control.judge(config, &departure, BACKLOG, false)
    }

    /// Gaps between the times for which packets are planned, ms, of a queue whose packets always waited 20 ms.
    fn gaps(linux: bool) -> Vec<f64> {
        let (config, mut control) = (Config { linux, ..Config::default() }, Control::default());
        let unit = if linux { 1024.0 } else { 1.0 } / 1e6;
        let (mut gaps, mut first) = (Vec::new(), None);
        for ms in 0..1000 {
            let before = control.next_due;
            while judge(&mut control, &config, ms * MS, 20 * MS, 0) != Verdict::Pass {
                first = first.or(Some(ms));
            }
            if control.next_due != before {
                let from = if before == 0 { config.units(ms * MS) } else { before };
                gaps.push((control.next_due - from) as f64 * unit);
            }
        }
        assert_eq!(first, Some(101));
        gaps
    }

    fn near(found: &[f64], expected: &[f64]) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 0.0011, "{found} where {expected} belongs");
        }
        assert!(found.len() >= expected.len());
    }

    /// VM5.1, VM5.2.
    #[test]
    fn vm5_1_gaps_shrink_by_the_square_root_and_in_linux_by_newton_steps() {
        let exact = gaps(false);
        near(
            &exact,
            &[100.0, 70.711, 57.735, 50.0, 44.721, 40.825, 37.796, 35.355, 33.333, 31.623, 30.151, 28.868],
        );
        let linux = gaps(true);
        near(
            &linux,
            &[99.998, 50.001, 56.249, 48.778, 44.151, 40.406, 37.517, 35.151, 33.181, 31.504, 30.057, 28.791],
        );
        let sum = |gaps: &[f64]| gaps.iter().take(8).sum::<f64>();
        assert!((sum(&exact) - 437.14).abs() < 0.01 && (sum(&linux) - 412.25).abs() < 0.01);
    }

    /// VM5.3.
    #[test]
    fn vm5_3_a_new_episode_goes_on_where_the_last_one_was_if_that_is_not_long_ago() {
        let config = Config::default();
        for (count, last_count, ago, expected) in
            [(7, 2, 500, 5), (7, 2, 1_700, 1), (7, 2, 1_599, 5), (7, 2, 1_600, 1), (3, 2, 500, 1)]
        {
            let now = 10_000 * MS;
            let mut control =
                Control { count, last_count, next_due: now - ago * MS, first_above: 1, ..Control::default() };
            assert_eq!(judge(&mut control, &config, now, 20 * MS, 0), Verdict::Drop(Reason::Aqm));
            assert_eq!((control.count, control.last_count), (expected, expected), "{count} {ago}");
        }
    }

    /// VM5.4.
    #[test]
    fn vm5_4_the_last_packet_of_a_queue_is_never_late() {
        let (config, packet) = (Config::default(), packet(0));
        let mut control = Control { first_above: 1, ..Control::default() };
        let departure =
            Departure { now: Time(9_000 * MS), queue: 0, packet: &packet, sojourn: Duration(30 * MS) };
        assert_eq!(control.judge(&config, &departure, Bytes(1500), false), Verdict::Pass);
        assert_eq!(control.first_above, 0);
    }

    /// A packet that can be marked is, one at a time, and goes; nothing else is dropped in its place.
    #[test]
    fn marks_take_the_place_of_drops() {
        let config = Config { ecn: true, ..Config::default() };
        let mut control = Control::default();
        let marks: Vec<u64> = (0..400)
            .filter(|ms| match judge(&mut control, &config, ms * MS, 20 * MS, 0b10) {
                Verdict::Mark => true,
                verdict => {
                    assert_eq!(verdict, Verdict::Pass);
                    false
                }
            })
            .collect();
        assert_eq!(marks, [101, 201, 272, 330, 380]);
    }

    /// The edges of docs/design/modern.md 5.6: an interval must be over, a time that is due need not.
    #[test]
    fn late_is_after_the_interval_and_due_is_from_its_time_on() {
        let config = Config::default();
        let mut control = Control { first_above: 100, ..Control::default() };
        assert_eq!(judge(&mut control, &config, 100, 20 * MS, 0), Verdict::Pass);
        assert_eq!(judge(&mut control, &config, 101, 20 * MS, 0), Verdict::Drop(Reason::Aqm));
        assert_eq!(judge(&mut control, &config, 101, 20 * MS, 0), Verdict::Pass, "the next one goes");
        let due = control.next_due;
        assert_eq!(judge(&mut control, &config, due - 1, 20 * MS, 0), Verdict::Pass);
        assert_eq!(judge(&mut control, &config, due, 20 * MS, 0), Verdict::Drop(Reason::Aqm));
        assert_eq!(judge(&mut control, &config, due, 4 * MS, 0), Verdict::Pass);
        assert!(!control.is_dropping && control.count == 2 && control.next_due == due);
    }

    /// A record keeps all of the state.
    #[test]
    fn a_state_survives_its_record() {
        for next in [Next::Any, Next::Goes, Next::Scheduled] {
            let control = Control {
                count: 7,
                last_count: u32::MAX,
                first_above: u64::MAX - 1,
                next_due: 1 << 40,
                is_dropping: next == Next::Goes,
                next,
                root: 0xabcd,
            };
            let mut record = [9; 10];
            control.write(&mut record);
            assert_eq!((Control::read(&record), record[0]), (control, 9));
        }
    }
}

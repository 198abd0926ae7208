//! PIE (RFC 8033): packets that arrive are marked or dropped with a probability that a proportional-integral controller
//! steers by how long packets wait, in small steps while it is small (docs/design/modern.md 6.3).
//!
//! Linux's order of things (`sch_pie.c`) where the RFC leaves it open: waits are those of the packets that leave, and the
//! allowance for bursts runs down by the time between them (CM-13). Probabilities are whole numbers of 10^-18, in which
//! the thresholds of the RFC are exact.

use super::egress::AtEgress;
use super::updates::{Pull, Updates};
use super::{Arrival, Chance, Departure, Draws, QueueLaw, QueueSeries, Queues, Reason, Value, Verdict};
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::law::{Column, Packet};
use crate::units::{Bytes, Duration, Ratio, Time, mul_div};

/// Settings of PIE in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Wait that packets shall have.
    pub target: Duration,
    /// Time between two updates of the probability.
    pub tupdate: Duration,
    /// Gain on the distance from the target, per second of it.
    pub alpha: Ratio,
    /// Gain on its change, per second of it.
    pub beta: Ratio,
    /// Time for which an idle port takes what comes.
    pub burst: Duration,
    /// True to run the allowance for bursts down at updates, as the RFC's pseudo-code does.
    pub burst_per_update: bool,
    /// True to mark packets of ECN-capable transports where others are dropped.
    pub ecn: bool,
    /// Probability above which they are dropped too.
    pub ecn_threshold: Ratio,
    /// True to let small packets pass in proportion.
    pub bytemode: bool,
    /// A packet, in bytes.
    pub mtu: u32,
}

impl Default for Config {
    /// RFC 8033 §5 and tc.
    fn default() -> Self {
        Self {
            target: Duration(15_000_000),
            tupdate: Duration(15_000_000),
            alpha: Ratio::ppm(125_000),
            beta: Ratio::ppm(1_250_000),
            burst: Duration(150_000_000),
            burst_per_update: false,
            ecn: false,
            ecn_threshold: Ratio::ppm(100_000),
            bytemode: false,
            mtu: 1500,
        }
    }
}

impl Settings for Config {
    #[inline]
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell("target", "Wait that packets shall have; 15 ms (RFC 8033).", Field::Span(&mut self.target));
        tell(
            "tupdate",
            "Time between two updates of the probability; 15 ms (RFC 8033), of which kernels make jiffies.",
            Field::Span(&mut self.tupdate),
        );
        tell(
            "alpha",
            "Gain on the distance of the wait from the target, per second; 0.125 (RFC 8033).",
            Field::Factor(&mut self.alpha),
        );
        tell(
            "beta",
            "Gain on the change of the wait, per second; 1.25 (RFC 8033).",
            Field::Factor(&mut self.beta),
        );
        tell(
            "burst",
            "Time for which a port that was idle takes what comes; 150 ms (RFC 8033).",
            Field::Span(&mut self.burst),
        );
        tell(
            "burst_per_update",
            "Run that time down at updates, as RFC 8033 does, and not as packets leave, as Linux does; false.",
            Field::Switch(&mut self.burst_per_update),
        );
        tell(
            "ecn",
            "Mark packets of ECN-capable flows instead of dropping them; false (tc).",
            Field::Switch(&mut self.ecn),
        );
        tell(
            "ecn_threshold",
            "Probability above which they are dropped all the same; 0.1 (RFC 8033).",
            Field::Share(&mut self.ecn_threshold),
        );
        tell(
            "bytemode",
            "Let a packet pass that is smaller than `mtu` in proportion; false (tc).",
            Field::Switch(&mut self.bytemode),
        );
        tell(
            "mtu",
            "Bytes of a packet; two of them may always wait; 1500.",
            Field::Number(&mut self.mtu, 65_535),
        );
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        Finding::above_zero("target", self.target.0, "\"15 ms\"", tell);
        Updates::check(self.tupdate, "\"15 ms\"", tell);
    }
}

/// Probability 1.
const ONE: u64 = 1_000_000_000_000_000_000;
/// The most by which a probability from a tenth on rises at an update (RFC 8033 §5.5); and what a wait of more than
/// [`LONG`] adds.
const STEP: i64 = ONE as i64 / 50;
const LONG: Duration = Duration(250_000_000);
/// Sums of probabilities since the last packet that went below which none goes, and from which one goes (RFC 8033 §5.4).
const SUM_MIN: u64 = ONE / 100 * 85;
const SUM_MAX: u64 = ONE / 2 * 17;

/// The probability at a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    probability: u64,
}

impl QueueSeries for Sample {
    fn each(&self, tell: &mut impl FnMut(&'static str, Value)) {
        tell(
            "pie_probability",
            Value::Number((self.probability / (ONE / 1_000_000_000)) as i64, 1_000_000_000),
        );
    }
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Pie {
    config: Config,
    /// p, of [`ONE`].
    probability: u64,
    /// Rest of the allowance for bursts.
    burst_left: Duration,
    /// Wait of the packet that left last; zero if it left the queue empty.
    wait: Duration,
    /// The same at the last update.
    wait_before: Duration,
    /// Sum of probabilities since the last packet that went, of [`ONE`].
    sum: u64,
    /// When a packet left last, since the allowance was renewed.
    left: Option<Time>,
    updates: Updates,
}

impl Pie {
    /// Chooses packets at random, with gaps that differ less than chance would have them (RFC 8033 §4.1 and 5.4).
    fn chooses(&mut self, size: Bytes, waiting: Bytes, draws: &mut impl Draws) -> bool {
        let mtu = u64::from(self.config.mtu);
        if self.burst_left.0 > 0
            || (self.wait.0 < self.config.target.0 / 2 && self.probability < ONE / 5)
            || waiting.0 < 2 * mtu
        {
            return false;
        }
        let chance = if self.config.bytemode && size.0 < mtu {
            mul_div(self.probability, size.0, mtu.max(1))
        } else {
            self.probability
        };
        self.sum = if chance == 0 { 0 } else { self.sum.saturating_add(chance) };
        self.sum >= SUM_MIN && (self.sum >= SUM_MAX || draws.draw(of_one(chance)))
    }

    /// A packet has left so long after another one.
    fn run_down(&mut self, span: Duration) {
        self.burst_left -= span;
    }

    /// The control law (RFC 8033 §4.2 and 5.2).
    fn update(&mut self, waiting: Bytes) {
        let (wait, before) = (self.wait, self.wait_before);
        // All left at once: that says nothing of how long they wait.
        let is_known = wait.0 > 0 || waiting.0 == 0;
        // Millionths per second times nanoseconds: thousands of the unit.
        let gain = |gain: Ratio| u64::from(gain.0);
        let terms = [(gain(self.config.alpha), self.config.target), (gain(self.config.beta), before)];
        let pull = Pull::of(wait, terms);
        let amount = scaled(pull.amount, self.probability);
        // More than twice the whole is as much as that.
        let mut step = Pull { amount, ..pull }.signed(2 * ONE);
        if self.probability >= ONE / 10 {
            step = step.min(STEP);
        }
        if wait > LONG {
            step += STEP;
        }
        self.probability = (self.probability as i64 + step).clamp(0, ONE as i64) as u64;
        if wait.0 == 0 && before.0 == 0 && is_known {
            self.probability -= self.probability / 64;
        }
        let is_short = |wait: Duration| wait.0 < self.config.target.0 / 2;
        if is_short(wait) && is_short(before) && self.probability == 0 {
            self.burst_left = self.config.burst;
            self.sum = 0;
            self.left = None;
        } else if self.config.burst_per_update {
            self.run_down(self.config.tupdate);
        }
        self.wait_before = wait;
    }
}

/// A thousandth of steps' units, less the smaller the probability is: half of it, and a quarter of that for each power of ten
/// (RFC 8033 §4.2).
#[inline(always)]
fn scaled(amount: u64, probability: u64) -> u64 {
    // Without branches, of which the kernel's verifier goes all ways.
    let is_below = |part: u64| (probability.wrapping_sub(ONE / part) >> 63) as u32;
    let quarters =
        is_below(100) + is_below(1_000) + is_below(10_000) + is_below(100_000) + is_below(1_000_000);
    let halves = is_below(10) + 2 * quarters;
    // In two parts, or the product would be too long.
    let (whole, rest) = (amount >> halves, amount & ((1 << halves) - 1));
    whole.min(2 * ONE / 1_000) * 1_000 + ((rest * 1_000) >> halves)
}

/// A probability of [`ONE`] as a chance of 2^64.
fn of_one(probability: u64) -> Chance {
    if probability >= ONE {
        return Chance::CERTAIN;
    }
    // Two digits of 32 bits: what is shifted by all 64 is no longer a word.
    let high = mul_div(probability, 1 << 32, ONE);
    let rest = (probability << 32).wrapping_sub(high.wrapping_mul(ONE));
    Chance(high << 32 | mul_div(rest, 1 << 32, ONE))
}

impl AtEgress for Pie {
    type Told = Config;

    #[inline(always)]
    fn config(told: &Config) -> Config {
        *told
    }
}

impl QueueLaw for Pie {
    type Config = Config;
    type Sample = Sample;

    const ABOUT: &'static str =
        "PIE: drops what arrives with a probability that holds the wait at a target (RFC 8033).";
    const SERIES: &'static [Column] = &[Column::new("pie_probability", "Probability of PIE's drops")];

    fn start(config: &Config) -> Self {
        Self {
            config: *config,
            probability: 0,
            burst_left: config.burst,
            wait: Duration(0),
            wait_before: Duration(0),
            sum: 0,
            left: None,
            updates: Updates::every(config.tupdate),
        }
    }

    fn marks(config: &Config) -> bool {
        config.ecn
    }

    fn on_enqueue(
        &mut self,
        arrival: &Arrival<'_, impl Packet>,
        queues: &mut impl Queues,
        draws: &mut impl Draws,
    ) -> Verdict {
        let size = arrival.packet.size();
        let verdict = if !queues.has_room(arrival.queue, size) {
            Verdict::Drop(Reason::QueueFull)
        } else if !self.chooses(size, queues.bytes(arrival.queue), draws) {
            return Verdict::Pass;
        } else if self.config.ecn
            && arrival.packet.ecn() != 0
            && self.probability <= mul_div(self.config.ecn_threshold.0.into(), ONE, 1_000_000)
        {
            Verdict::Mark
        } else {
            Verdict::Drop(Reason::Aqm)
        };
        self.sum = 0;
        verdict
    }

    fn on_dequeue(
        &mut self,
        departure: &Departure<'_, impl Packet>,
        queues: &mut impl Queues,
        _draws: &mut impl Draws,
    ) -> Verdict {
        self.wait = if queues.packets(departure.queue) == 0 { Duration(0) } else { departure.sojourn };
        let since = self.left.replace(departure.now).map_or(Duration(0), |left| departure.now - left);
        if !self.config.burst_per_update {
            self.run_down(since);
        }
        Verdict::Pass
    }

    fn next_deadline(&self) -> Time {
        self.updates.next()
    }

    fn on_deadline(&mut self, now: Time, queues: &impl Queues) {
        let waiting = queues.backlog();
        for _ in 0..self.updates.serve(now) {
            self.update(waiting);
        }
    }

    fn sample(&mut self, _queues: &impl Queues) -> Sample {
        Sample { probability: self.probability }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn pie(probability: f64, wait: u64, wait_before: u64) -> Pie {
        Pie {
            probability: (probability * 1e18).round() as u64,
            wait: Duration(wait * MS),
            wait_before: Duration(wait_before * MS),
            burst_left: Duration(0),
            ..Pie::start(&Config::default())
        }
    }

    /// The probability after an update.
    fn after(mut pie: Pie, waiting: u64) -> f64 {
        pie.update(Bytes(waiting));
        pie.probability as f64 / 1e18
    }

    /// VM6.1: the same error moves a small probability less.
    #[test]
    fn vm6_1_steps_shrink_with_the_probability() {
        for (before, rise) in [
            (0.0, 3.3569e-6),
            (2e-6, 1.3428e-5),
            (5e-5, 5.3711e-5),
            (5e-4, 2.1484e-4),
            (5e-3, 8.5938e-4),
            (0.05, 3.4375e-3),
            (0.2, 6.8750e-3),
        ] {
            let found = after(pie(before, 20, 15), 30_000) - before;
            assert!((found / rise - 1.0).abs() < 2e-5, "{found} from {before}, not {rise}");
        }
    }

    /// VM6.2: at most 2 % at once, and as much again above a quarter of a second.
    #[test]
    fn vm6_2_a_step_is_bounded_and_a_long_wait_adds_to_it() {
        assert!((after(pie(0.2, 300, 300), 30_000) - 0.24).abs() < 1e-12);
        assert!((after(pie(0.2, 250, 250), 30_000) - 0.22).abs() < 1e-12);
        assert_eq!(after(pie(0.99, 300, 300), 30_000), 1.0);
        // The bound is for probabilities from a tenth on.
        assert!((after(pie(0.05, 215, 15), 30_000) - 0.1875).abs() < 1e-12);
    }

    /// VM6.3: on an empty queue a 64th goes beside.
    #[test]
    fn vm6_3_a_probability_without_a_queue_decays() {
        assert!((after(pie(0.64, 0, 0), 0) - 0.628154).abs() < 1e-6);
        assert!((after(pie(0.64, 0, 0), 1500) - 0.638125).abs() < 1e-9, "not known to be empty");
        assert!((after(pie(0.64, 1, 0), 0) - 0.6395).abs() < 1e-9);
    }

    struct Counted(u64, bool);

    impl Draws for Counted {
        fn draw(&mut self, _: Chance) -> bool {
            self.0 += 1;
            self.1
        }
    }

    /// VM6.4: at a tenth none of 8 packets goes, then each by chance, and the 85th at the latest.
    #[test]
    fn vm6_4_gaps_are_neither_short_nor_long() {
        let mut pie = pie(0.1, 20, 20);
        let mut draws = Counted(0, false);
        for packet in 1..=85 {
            let goes = pie.chooses(Bytes(1500), Bytes(30_000), &mut draws);
            assert_eq!((goes, draws.0), (packet == 85, packet.clamp(8, 84) - 8), "packet {packet}");
        }
        pie.sum = ONE / 10 * 8;
        assert!(pie.chooses(Bytes(1500), Bytes(30_000), &mut Counted(0, true)));
        assert!(!pie.chooses(Bytes(1500), Bytes(2999), &mut Counted(0, true)), "two packets may wait");
        pie.wait = Duration(7 * MS);
        assert!(!pie.chooses(Bytes(1500), Bytes(30_000), &mut Counted(0, true)), "half of the target");
        pie.probability = ONE / 5;
        assert!(pie.chooses(Bytes(1500), Bytes(30_000), &mut Counted(0, true)), "but not from 0.2 on");
    }

    /// As numbers of 128 bits have them, which kernels have not.
    #[test]
    fn steps_and_chances_are_exact_in_words_of_64_bits() {
        for power in 0..19 {
            for probability in [10u64.pow(power) - 1, 10u64.pow(power), ONE - 10u64.pow(power.min(18))] {
                let chance = (u128::from(probability) << 64) / u128::from(ONE);
                assert_eq!(u128::from(of_one(probability).0), chance.min(u64::MAX.into()), "{probability}");
                let divisor = match probability {
                    p if p >= ONE / 10 => 1,
                    p if p >= ONE / 100 => 2,
                    p if p >= ONE / 1_000 => 8,
                    p if p >= ONE / 10_000 => 32,
                    p if p >= ONE / 100_000 => 128,
                    p if p >= ONE / 1_000_000 => 512,
                    _ => 2_048u128,
                };
                for amount in [0, 1, 2_047, 123_456_789, ONE / 1_000, 3 * ONE, u64::MAX] {
                    let expected = u128::from(amount) * 1_000 / divisor;
                    let (most, found) = (u128::from(2 * ONE), u128::from(scaled(amount, probability)));
                    assert_eq!(found.min(most), expected.min(most), "{amount} at {probability}");
                }
            }
        }
    }

    /// VM6.5: nothing goes in the first 150 ms in which packets leave, at any probability, and again after a rest.
    #[test]
    fn vm6_5_a_burst_passes() {
        let mut pie = Pie { burst_left: Duration(150 * MS), ..pie(1.0, 300, 300) };
        let mut draws = Counted(0, true);
        for _ in 0..149 {
            pie.run_down(Duration(MS));
            assert!(!pie.chooses(Bytes(1500), Bytes(30_000), &mut draws));
        }
        pie.run_down(Duration(MS));
        assert!(pie.chooses(Bytes(1500), Bytes(30_000), &mut draws));
        (pie.wait, pie.wait_before, pie.probability) = (Duration(0), Duration(0), 1);
        pie.update(Bytes(0));
        assert_eq!((pie.burst_left, pie.sum), (Duration(150 * MS), 0));
    }

    /// A small packet's part of the probability is that of its size.
    #[test]
    fn bytemode_spares_small_packets() {
        let config = Config { bytemode: true, ..Config::default() };
        let mut pie = Pie { config, ..pie(0.3, 20, 20) };
        pie.chooses(Bytes(500), Bytes(30_000), &mut Counted(0, false));
        assert_eq!(pie.sum, ONE / 10);
    }

    /// Updates that nobody drove are made up for: an idle port forgets.
    #[test]
    fn missed_updates_are_made_up_for() {
        let mut late = pie(1.0, 0, 0);
        let mut steps = late.clone();
        let idle = Empty;
        late.on_deadline(Time(15 * MS * 400), &idle);
        for _ in 0..400 {
            steps.on_deadline(steps.next_deadline(), &idle);
        }
        assert_eq!((late.probability, late.next_deadline()), (steps.probability, steps.next_deadline()));
        assert_eq!(late.next_deadline(), Time(15 * MS * 401));
        assert_eq!(late.probability, 0);
    }

    /// Queues without a packet.
    struct Empty;

    impl Queues for Empty {
        fn packets(&self, _: usize) -> u64 {
            0
        }

        fn bytes(&self, _: usize) -> Bytes {
            Bytes(0)
        }

        fn backlog(&self) -> Bytes {
            Bytes(0)
        }

        fn sojourn(&self, _: usize) -> Duration {
            Duration(0)
        }

        fn has_room(&self, _: usize, _: Bytes) -> bool {
            true
        }

        fn has_room_behind_low_priority(&self, _: usize, _: Bytes) -> bool {
            false
        }

        fn unused(&self) -> Option<Bytes> {
            None
        }

        fn record(&mut self, _: usize) -> Option<&mut super::super::Record> {
            None
        }
    }
}

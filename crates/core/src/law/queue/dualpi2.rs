//! DualPI2 (RFC 9332): two queues on one link, coupled. Senders that cut by the share of marks (L4S: ECT(1)) have one in which they wait about a
//! millisecond, all others a second one; one controller of the wait gives both their congestion, the others its square, so
//! that a flow gets about the same in either (docs/design/modern.md 4).
//!
//! As Linux has it (`sch_dualpi2.c`): the controller looks at the longer of both waits (CM-08), probabilities are whole numbers
//! of 2^-32, and marks of the short queue above a step stand beside those of the controller.

use super::updates::{Pull, Updates};
use super::{
    Arrival, Chance, Departure, Draws, Limit, QueueLaw, QueueSeries, Queues, Reason, Value, Verdict,
};
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::law::{Column, Packet};
use crate::units::{Bytes, Duration, Ratio, Time};

/// The queue of senders that halve.
const CLASSIC: usize = 0;
/// The queue of senders that cut by the share of marks.
const LOW: usize = 1;

/// ECN field of packets of L4S and of those that met congestion: the bit that both have (RFC 9331 §4.1).
const ECT1: u8 = 0b01;

/// Settings of DualPI2 in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Wait that packets of the classic queue shall have.
    pub target: Duration,
    /// Time between two updates of the probability.
    pub tupdate: Duration,
    /// Gain on the distance from the target, per second of it.
    pub alpha: Ratio,
    /// Gain on its change, per second of it.
    pub beta: Ratio,
    /// k: by how much more packets of the short queue are marked than the base probability.
    pub coupling: u32,
    /// Wait above which packets of the short queue are marked.
    pub step: Duration,
    /// Part of the link that is kept for the classic queue while both have packets, in hundredths.
    pub classic_share: u32,
    /// True to have all ECN-capable packets in the short queue.
    pub any_ect: bool,
    /// True to drop packets of the short queue, too, where marks are not enough.
    pub drop_overload: bool,
    /// A packet, in bytes: while less than two wait nothing is decided.
    pub mtu: u32,
}

impl Default for Config {
    /// tc-dualpi2(8).
    fn default() -> Self {
        Self {
            target: Duration(15_000_000),
            tupdate: Duration(16_000_000),
            alpha: Ratio::ppm(160_000),
            beta: Ratio::ppm(3_200_000),
            coupling: 2,
            step: Duration(1_000_000),
            classic_share: 10,
            any_ect: false,
            drop_overload: true,
            mtu: 1514,
        }
    }
}

impl Settings for Config {
    #[inline]
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell("target", "Wait that classic packets shall have; 15 ms (tc).", Field::Span(&mut self.target));
        tell(
            "tupdate",
            "Time between two updates of the probability; 16 ms (tc).",
            Field::Span(&mut self.tupdate),
        );
        tell(
            "alpha",
            "Gain on the distance of the wait from the target, per second; 0.16 (tc).",
            Field::Factor(&mut self.alpha),
        );
        tell("beta", "Gain on the change of the wait, per second; 3.2 (tc).", Field::Factor(&mut self.beta));
        tell(
            "coupling",
            "Marks of the short queue over the base probability, of which drops of the other are the square; 2 (RFC 9332).",
            Field::Number(&mut self.coupling, 255),
        );
        tell(
            "step",
            "Wait above which packets of the short queue are marked; 1 ms (tc).",
            Field::Span(&mut self.step),
        );
        tell(
            "classic_share",
            "Hundredths of the link for the classic queue, while both have packets; 10 (tc).",
            Field::Number(&mut self.classic_share, 99),
        );
        tell(
            "any_ect",
            "Have packets with ECT(0) in the short queue, too, as those of DCTCP; false: those of L4S alone.",
            Field::Switch(&mut self.any_ect),
        );
        tell(
            "drop_overload",
            "Drop packets of the short queue where a mark on each were not enough; true (tc).",
            Field::Switch(&mut self.drop_overload),
        );
        tell(
            "mtu",
            "Bytes of a packet; while less than two wait, none is marked or dropped by chance; 1514 (tc).",
            Field::Number(&mut self.mtu, 65_535),
        );
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        Finding::above_zero("target", self.target.0, "\"15 ms\"", tell);
        Updates::check(self.tupdate, "\"16 ms\"", tell);
        if self.alpha > GAIN_MAX || self.beta > GAIN_MAX {
            tell(Finding::range(
                if self.alpha > GAIN_MAX { "alpha" } else { "beta" },
                "is more than a step of the probability can be",
                "allowed: up to 100",
            ));
        }
    }
}

/// Gains beyond go from none to all in a hundredth of a second's wait.
#[cfg(feature = "words")]
const GAIN_MAX: Ratio = Ratio::ppm(100_000_000);

/// A gain per second in Linux's unit: 2^-32 of probability in 64 ns, by way of 256ths.
fn gain(gain: Ratio) -> u64 {
    let of_256 = (u64::from(gain.0) * 256 + 500_000) / 1_000_000;
    ((of_256 * u64::from(u32::MAX)) >> 2) / 1_000_000_000
}

/// The base probability after an update (RFC 9332 appendix A.1).
fn after(config: &Config, probability: u32, wait: Duration, before: Duration) -> u32 {
    let pull = Pull::of(wait, [(gain(config.alpha), config.target), (gain(config.beta), before)]);
    // Towards zero, as Linux divides.
    let step = Pull { amount: pull.amount / 64, ..pull }.signed(u32::MAX.into());
    (i64::from(probability) + step).clamp(0, u32::MAX.into()) as u32
}

/// A mark, or a drop of a packet that can not be marked.
fn mark_or_drop(packet: &impl Packet) -> Verdict {
    if packet.ecn() == 0 { Verdict::Drop(Reason::Aqm) } else { Verdict::Mark }
}

/// Two draws, of which both say yes.
fn twice(chance: Chance, draws: &mut impl Draws) -> bool {
    draws.draw(chance) && draws.draw(chance)
}

/// A probability of 2^32 in a sample.
pub(super) fn billionths(probability: u32) -> Value {
    Value::Number(((u64::from(probability) * 1_000_000_000) >> 32) as i64, 1_000_000_000)
}

/// State at a sample, and waits since the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    probability: u32,
    packets: [u64; 2],
    waits: [Duration; 2],
    left: [u32; 2],
}

impl QueueSeries for Sample {
    fn each(&self, tell: &mut impl FnMut(&'static str, Value)) {
        tell("base_probability", billionths(self.probability));
        for (queue, packets, wait) in [
            (CLASSIC, "classic_queue_packets", "classic_delay_ms"),
            (LOW, "low_queue_packets", "low_delay_ms"),
        ] {
            let count = i64::try_from(self.packets[queue]).unwrap_or(i64::MAX);
            tell(packets, Value::Number(count, 1));
            let mean = self.waits[queue].0 / u64::from(self.left[queue].max(1));
            tell(wait, Value::Number(i64::try_from(mean).unwrap_or(i64::MAX), 1_000_000));
        }
    }
}

/// The controller, and whose turn it is.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    config: Config,
    /// p', of 2^32.
    pub(super) probability: u32,
    /// The longer wait at the last update.
    wait: Duration,
    /// By how much the short queue is ahead, in hundredths of bytes; it goes first up to 0.
    credit: i64,
    pub(super) updates: Updates,
    sample: Sample,
}

impl DualPi2 {
    /// RFC 9332 §2.5.1.1: the classic queue's share, from a packet's lead of the short one on.
    fn idle_credit(config: &Config) -> i64 {
        i64::from(config.mtu) * (Self::share(config) - (100 - Self::share(config)))
    }

    /// Takes the wait of a packet that is the first in line.
    #[inline(always)]
    pub(super) fn update(&mut self, wait: Duration) {
        self.probability = after(&self.config, self.probability, wait, self.wait);
        self.wait = wait;
    }

    fn share(config: &Config) -> i64 {
        i64::from(config.classic_share.min(99))
    }

    /// Decides on a packet that leaves so much behind: while less than two packets wait, none is marked or dropped.
    #[inline(always)]
    pub(super) fn judge(
        &self,
        queue: usize,
        packet: &impl Packet,
        backlog: Bytes,
        draws: &mut impl Draws,
    ) -> Verdict {
        if backlog.0 < 2 * u64::from(self.config.mtu) {
            return Verdict::Pass;
        }
        self.decide(queue, packet, draws)
    }

    /// Decides by the coupled probabilities (RFC 9332 §2.4).
    #[inline(always)]
    fn decide(&self, queue: usize, packet: &impl Packet, draws: &mut impl Draws) -> Verdict {
        let base = Chance(u64::from(self.probability) << 32);
        let coupled = u64::from(self.probability) * u64::from(self.config.coupling);
        let is_overload = coupled > u32::MAX.into();
        let mark_or_drop = mark_or_drop(packet);
        if queue == CLASSIC {
            return match twice(base, draws) {
                true if is_overload => Verdict::Drop(Reason::Aqm),
                true => mark_or_drop,
                false => Verdict::Pass,
            };
        }
        if is_overload {
            let drops = self.config.drop_overload && twice(base, draws);
            return if drops { Verdict::Drop(Reason::Aqm) } else { mark_or_drop };
        }
        if draws.draw(Chance(coupled << 32)) { mark_or_drop } else { Verdict::Pass }
    }
}

impl QueueLaw for DualPi2 {
    type Config = Config;
    type Sample = Sample;

    const ABOUT: &'static str = "DualPI2: a short queue for L4S beside another, coupled to it (RFC 9332).";
    const SERIES: &'static [Column] = &[
        Column::new("base_probability", "Base probability of DualPI2"),
        Column::new("classic_queue_packets", "Classic queue"),
        Column::new("classic_delay_ms", "Delay of the classic queue"),
        Column::new("low_queue_packets", "Short queue"),
        Column::new("low_delay_ms", "Delay of the short queue"),
    ];

    fn start(config: &Config) -> Self {
        Self {
            config: *config,
            probability: 0,
            wait: Duration(0),
            credit: Self::idle_credit(config),
            updates: Updates::every(config.tupdate),
            sample: Sample::default(),
        }
    }

    fn queues(_config: &Config) -> usize {
        2
    }

    fn limit(_config: &Config, _queue: usize, _port: Limit) -> Limit {
        Limit::None
    }

    fn total(_config: &Config, port: Limit) -> Limit {
        port
    }

    fn marks(_config: &Config) -> bool {
        true
    }

    #[inline]
    fn classify(&self, packet: &impl Packet, _flow: u32) -> usize {
        let mask = if self.config.any_ect { 0b11 } else { ECT1 };
        if packet.ecn() & mask != 0 { LOW } else { CLASSIC }
    }

    fn on_enqueue(
        &mut self,
        arrival: &Arrival<'_, impl Packet>,
        queues: &mut impl Queues,
        _draws: &mut impl Draws,
    ) -> Verdict {
        if !queues.has_room(arrival.queue, arrival.packet.size()) {
            return Verdict::Drop(Reason::QueueFull);
        }
        if queues.unused().is_some() {
            self.credit = Self::idle_credit(&self.config);
        }
        Verdict::Pass
    }

    #[inline]
    fn next(&mut self, queues: &mut impl Queues) -> usize {
        let is_low = queues.packets(LOW) > 0 && (queues.packets(CLASSIC) == 0 || self.credit <= 0);
        if is_low { LOW } else { CLASSIC }
    }

    fn on_dequeue(
        &mut self,
        departure: &Departure<'_, impl Packet>,
        queues: &mut impl Queues,
        draws: &mut impl Draws,
    ) -> Verdict {
        let (queue, packet) = (departure.queue, departure.packet);
        let mut verdict = self.judge(queue, packet, queues.backlog(), draws);
        if queue == LOW && !matches!(verdict, Verdict::Drop(_)) && departure.sojourn > self.config.step {
            verdict = mark_or_drop(packet);
        }
        if let Verdict::Drop(_) = verdict {
            return verdict;
        }
        let is_low = queue == LOW;
        if queues.packets(if is_low { CLASSIC } else { LOW }) > 0 {
            let share = Self::share(&self.config);
            let size = i64::try_from(packet.size().0).unwrap_or(i64::MAX);
            let change = size.saturating_mul(if is_low { share } else { share - 100 });
            self.credit = self.credit.saturating_add(change);
        }
        let at = usize::from(is_low);
        self.sample.waits[at] += departure.sojourn;
        self.sample.left[at] = self.sample.left[at].saturating_add(1);
        verdict
    }

    fn next_deadline(&self) -> Time {
        self.updates.next()
    }

    fn on_deadline(&mut self, now: Time, queues: &impl Queues) {
        let wait = queues.sojourn(CLASSIC).max(queues.sojourn(LOW));
        for _ in 0..self.updates.serve(now) {
            self.update(wait);
        }
    }

    fn sample(&mut self, queues: &impl Queues) -> Sample {
        Sample {
            probability: self.probability,
            packets: [queues.packets(CLASSIC), queues.packets(LOW)],
            ..core::mem::take(&mut self.sample)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// VM4.3: alpha and beta of tc, in Linux's unit.
    #[test]
    fn vm4_3_gains() {
        let Config { alpha, beta, .. } = Config::default();
        assert_eq!((gain(alpha), gain(beta)), (44, 879));
    }

    /// VM4.4: the base probability tick by tick.
    #[test]
    fn vm4_4_the_controller_follows_the_wait() {
        let (mut probability, mut before) = (0, Duration(0));
        let found = [0, 5, 20, 30, 30, 30, 15, 15, 10, 0].map(|ms| {
            let wait = Duration(ms * MS);
            probability = after(&Config::default(), probability, wait, before);
            before = wait;
            probability
        });
        assert_eq!(
            found,
            [
                0, 61796875, 271250000, 418906250, 429218750, 439531250, 233515625, 233515625, 161406250,
                13750000
            ]
        );
    }

    /// VM4.5: steps down are bounded by zero, steps up by one.
    #[test]
    fn vm4_5_steps_up_and_down() {
        let step = |from: u32, wait: u64, before: u64| {
            after(&Config::default(), from, Duration(wait * MS), Duration(before * MS))
        };
        assert_eq!(step(1_000_000_000, 20, 15), 1_072_109_375);
        assert_eq!(step(1_000_000_000, 0, 20), 1_000_000_000 - 285_000_000);
        assert_eq!((step(285_000_000 - 1, 0, 20), step(u32::MAX - 1, 20, 15)), (0, u32::MAX));
    }

    struct Always(bool, u64);

    impl Draws for Always {
        fn draw(&mut self, chance: Chance) -> bool {
            self.1 = chance.0;
            self.0
        }
    }

    /// A packet that cannot be marked is dropped; from p' = 1/2 on marks are not enough, and others are dropped, too.
    #[test]
    fn overload_drops_what_else_is_marked() {
        use crate::law::Carried;
        let decide = |probability: u32, queue: usize, ecn: u32, drop_overload: bool| {
            let config = Config { drop_overload, ..Config::default() };
            let law = DualPi2 { probability, ..DualPi2::start(&config) };
            let packet = Carried { ecn, ..Carried::default() };
            law.decide(queue, &packet, &mut Always(true, 0))
        };
        let (half, drop) = (1 << 31, Verdict::Drop(Reason::Aqm));
        for (probability, queue, ecn, drop_overload, expected) in [
            (half - 1, CLASSIC, 0b10, true, Verdict::Mark),
            (half - 1, CLASSIC, 0, true, drop),
            (half, CLASSIC, 0b10, true, drop),
            (half - 1, LOW, 0b01, true, Verdict::Mark),
            (half, LOW, 0b01, true, drop),
            (half, LOW, 0b01, false, Verdict::Mark),
        ] {
            assert_eq!(
                decide(probability, queue, ecn, drop_overload),
                expected,
                "{probability} {queue} {ecn}"
            );
        }
        // k p' of the short queue, p' twice of the other.
        let law = DualPi2 { probability: 1 << 28, ..DualPi2::start(&Config::default()) };
        let mut draws = Always(false, 0);
        law.decide(LOW, &Carried { ecn: 1, ..Carried::default() }, &mut draws);
        assert_eq!(draws.1, 1 << 61);
        law.decide(CLASSIC, &Carried::default(), &mut draws);
        assert_eq!(draws.1, 1 << 60);
    }
}

//! PI2 (De Schepper, Bondarenko, Tsang, Briscoe, CoNEXT 2016): the controller and the coupling of [DualPI2](super::dualpi2) on
//! one queue. A packet of a sender that cuts by the share of marks is marked with k times the base probability, any other
//! with its square, or dropped if it can not be marked.
//!
//! Both kinds wait alike: who wants a short wait for the one beside the other wants two queues.

use super::dualpi2::{self, DualPi2, billionths};
use super::egress::AtEgress;
use super::{Departure, Draws, QueueLaw, QueueSeries, Queues, Value, Verdict};
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::law::{Column, Packet};
use crate::units::Time;

/// Settings of PI2 in a scenario: those of DualPI2 that one queue has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config(dualpi2::Config);

impl Settings for Config {
    #[inline]
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell("target", "Wait that packets shall have; 15 ms (tc-dualpi2).", Field::Span(&mut self.0.target));
        tell(
            "tupdate",
            "Time between two updates of the probability; 16 ms (tc-dualpi2).",
            Field::Span(&mut self.0.tupdate),
        );
        tell(
            "alpha",
            "Gain on the distance of the wait from the target, per second; 0.16 (tc-dualpi2).",
            Field::Factor(&mut self.0.alpha),
        );
        tell(
            "beta",
            "Gain on the change of the wait, per second; 3.2 (tc-dualpi2).",
            Field::Factor(&mut self.0.beta),
        );
        tell(
            "coupling",
            "Marks of L4S over the base probability, whose square is for others; 2 (RFC 9332).",
            Field::Number(&mut self.0.coupling, 255),
        );
        tell(
            "any_ect",
            "Mark packets with ECT(0) as those of L4S, as for DCTCP; false: with the square.",
            Field::Switch(&mut self.0.any_ect),
        );
        tell(
            "drop_overload",
            "Drop packets of L4S where a mark on each were not enough; true (tc-dualpi2).",
            Field::Switch(&mut self.0.drop_overload),
        );
        tell(
            "mtu",
            "Bytes of a packet; while less than two wait, none is marked or dropped; 1514 (tc-dualpi2).",
            Field::Number(&mut self.0.mtu, 65_535),
        );
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        self.0.check(tell);
    }
}

/// The base probability at a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample(u32);

impl QueueSeries for Sample {
    fn each(&self, tell: &mut impl FnMut(&'static str, Value)) {
        tell("pi2_probability", billionths(self.0));
    }
}

/// The controller, which decides as DualPI2 does.
#[derive(Clone, Debug)]
pub struct Pi2 {
    law: DualPi2,
}

impl AtEgress for Pi2 {
    type Told = Config;

    #[inline(always)]
    fn config(told: &Config) -> Config {
        *told
    }
}

impl QueueLaw for Pi2 {
    type Config = Config;
    type Sample = Sample;

    const ABOUT: &'static str = "PI2: DualPI2's controller and coupling on one queue (CoNEXT 2016).";
    const SERIES: &'static [Column] = &[Column::new("pi2_probability", "Base probability of PI2")];

    fn start(config: &Config) -> Self {
        Self { law: DualPi2::start(&config.0) }
    }

    fn marks(_config: &Config) -> bool {
        true
    }

    fn on_dequeue(
        &mut self,
        departure: &Departure<'_, impl Packet>,
        queues: &mut impl Queues,
        draws: &mut impl Draws,
    ) -> Verdict {
        let packet = departure.packet;
        self.law.judge(self.law.classify(packet, 0), packet, queues.backlog(), draws)
    }

    fn next_deadline(&self) -> Time {
        self.law.updates.next()
    }

    fn on_deadline(&mut self, now: Time, queues: &impl Queues) {
        let wait = queues.sojourn(0);
        for _ in 0..self.law.updates.serve(now) {
            self.law.update(wait);
        }
    }

    fn sample(&mut self, _queues: &impl Queues) -> Sample {
        Sample(self.law.probability)
    }
}

#[cfg(test)]
mod tests {
    use super::super::egress::Waiting;
    use super::*;
    use crate::law::Carried;
    use crate::law::queue::{Chance, Reason};
    use crate::units::{Bytes, Duration, Rate};

    struct Asked(u64);

    impl Draws for Asked {
        fn draw(&mut self, chance: Chance) -> bool {
            self.0 = chance.0;
            true
        }
    }

    /// k p' for L4S, p' squared for others; what can not be marked is dropped, and a queue of less than two packets is none.
    #[test]
    fn one_queue_marks_both_kinds_of_senders_by_one_probability() {
        let mut law = Pi2::start(&Config::default());
        law.law.probability = 1 << 28;
        let mut waiting = Waiting { bytes: Bytes(3028), packets: 2, rate: Rate(1_250_000) };
        let mut judge = |ecn: u32, waiting: &mut Waiting| {
            let (packet, mut asked) = (Carried { ecn, ..Carried::default() }, Asked(0));
            let departure =
                Departure { now: Time(1), queue: 0, packet: &packet, sojourn: Duration(15_000_000) };
            (law.on_dequeue(&departure, waiting, &mut asked), asked.0)
        };
        assert_eq!(judge(0b01, &mut waiting), (Verdict::Mark, 1 << 61));
        assert_eq!(judge(0b10, &mut waiting), (Verdict::Mark, 1 << 60));
        assert_eq!(judge(0, &mut waiting), (Verdict::Drop(Reason::Aqm), 1 << 60));
        waiting.bytes = Bytes(3027);
        assert_eq!(judge(0b01, &mut waiting), (Verdict::Pass, 0));
    }
}

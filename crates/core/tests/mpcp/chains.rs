//! Levels, and what routers do with the packets of a chain.

use congestlab_core::law::LinkLaw as _;
use congestlab_core::law::Segment;
use congestlab_core::law::mpcp::{Algorithm2, Flow, Level, Link, LinkConfig, Order};
use congestlab_core::units::{Bytes, Duration, Rate, Time};

use crate::random::Random;
use crate::{Seen, shown};

fn digits(level: &Level) -> Vec<u8> {
    (0..level.known()).map(|index| level.digit(index)).collect()
}

fn level(load: f64, n: u32) -> Level {
    Level::of((load * 1e6).round() as u32, n)
}

/// A level of these digits.
fn says(digits: &[u8]) -> Level {
    digits.iter().fold(Level::NONE, |level, &digit| level.then(digit))
}

/// MP table 1.
#[test]
fn v6_1_two_digits_say_what_table_1_has() {
    let cases = [
        (0.19, [1, 1]),
        (0.20, [1, 2]),
        (0.5, [1, 3]),
        (0.80, [2, 1]),
        (0.999, [2, 3]),
        (1.0, [3, 1]),
        (1.39, [3, 2]),
        (1.4, [3, 3]),
        (3.0, [3, 3]),
    ];
    for (load, expected) in cases {
        assert_eq!(digits(&level(load, 2)), expected, "{load}");
    }
    let bounds = [
        (0.2, 11),
        (0.4, 12),
        (0.8, 13),
        (0.85, 21),
        (0.95, 22),
        (1.0, 23),
        (1.05, 31),
        (1.4, 32),
        (2.0, 33),
    ];
    for (bound, digits) in bounds {
        let level = says(&[digits / 10, digits % 10]);
        assert_eq!(f64::from(level.to) / 1e6, bound, "{digits}");
    }
}

/// V6.8, and table 1's factors: each ends the overload of its level.
#[test]
fn v6_8_the_cut_of_a_level_is_enough_for_it() {
    for (digits, factor) in [([3, 1], 0.875), ([3, 2], 0.6), ([3, 3], 0.43)] {
        let level = says(&digits);
        assert_eq!(f64::from(level.factor().0) / 1e6, factor);
        assert!(f64::from(level.to) / 1e6 * factor < 0.92, "{digits:?}");
    }
    for n in 1..=8 {
        for number in 0..3u32.pow(n - 1) {
            let mut digits = vec![3];
            digits.extend((1..n).map(|at| (number / 3u32.pow(n - 1 - at) % 3 + 1) as u8));
            let level = says(&digits);
            let left = f64::from(level.to) * f64::from(level.factor().0) / 1e12;
            assert!(left < 0.93, "{digits:?}: {left} is left");
        }
    }
}

#[test]
fn v7_1_three_digits_say_what_the_table_has() {
    assert_eq!(digits(&level(0.31, 3)), [1, 2, 2]);
    assert_eq!(digits(&level(0.995, 3)), [2, 3, 3]);
    assert_eq!(digits(&level(1.2, 3)), [3, 2, 2]);
    assert_eq!(level(1.2, 3).factor().0, 680_000);
}

#[test]
fn v7_3_a_prefix_means_the_worst_that_it_can() {
    for (digits, factor) in [(&[3][..], 430_000), (&[3, 2], 600_000), (&[3, 2, 1], 770_000)] {
        assert_eq!(says(digits).factor().0, factor, "{digits:?}");
    }
}

/// n digits tell 3^n levels apart, in order, without gaps; a load is in the level that it is told as; a digit
/// fewer is the level around it (A-19: DPCP's bounds are every third of TPCP's).
#[test]
fn levels_divide_all_loads_for_every_length_of_chain() {
    for n in 1..=8 {
        let mut load = 0;
        let mut factor = u32::MAX;
        for number in 0..3u32.pow(n) {
            let level = Level::of(load, n);
            assert_eq!((u32::from(level.number()), level.from), (number, load), "{n} digits");
            assert!(level.to > level.from, "{level:?}");
            let shorter = Level::of(load, n - 1);
            assert!(shorter.from <= level.from && level.to <= shorter.to, "{level:?} in {shorter:?}");
            assert_eq!(says(&digits(&level)), level);
            if level.zone() == 3 {
                assert!(level.factor().0 <= factor);
                factor = level.factor().0;
            }
            load = level.to;
        }
        assert_eq!(load, 2_000_000);
    }
}

/// Beyond the table: geometric in low and over, linear in high, the factor by the logarithm.
#[test]
fn longer_chains_divide_levels_as_the_formulas_say() {
    // Rounded down to a millionth; the other way only what the oracle rounds itself.
    let close = |got: u32, expected: f64| {
        assert!((-1e-6..1.0).contains(&(expected - f64::from(got))), "{got} for {expected}");
    };
    for (digits, shape) in
        [([1, 3, 2], "geometric"), ([2, 1, 3], "linear"), ([3, 2, 2], "geometric"), ([1, 1, 1], "lowest")]
    {
        let whole = says(&digits);
        let (from, to) = (f64::from(whole.from), f64::from(whole.to));
        for (digit, part) in [(1u8, 1.0 / 3.0), (2, 2.0 / 3.0), (3, 1.0)] {
            let third = whole.then(digit);
            let bound = match shape {
                "geometric" => from * (to / from).powf(part),
                "linear" => from + (to - from) * part,
                _ => to * [0.5, 0.75, 1.0][usize::from(digit) - 1],
            };
            close(third.to, bound);
            if digits[0] == 3 {
                // From x0.77 at 1.15 to x0.68 at 1.27.
                close(third.factor().0, 770_000.0 * (680.0f64 / 770.0).powf(part));
            }
        }
    }
}

/// What leaves a link of `own` load that a chain with these digits crosses; `flow` is what it keeps.
fn cross(own: &Level, algorithm: Algorithm2, chain: &[u8]) -> Vec<u8> {
    let mut flow = Flow::default();
    (0..).zip(chain).map(|(index, &digit)| flow.mark(index, digit, own, algorithm)).collect()
}

#[test]
fn v6_2_equal_first_digits_compare_the_second_but_not_as_printed() {
    let [a, b] = [0.9, 0.97].map(|load| level(load, 2));
    let said = digits(&a);
    assert_eq!((said.as_slice(), digits(&b).as_slice()), (&[2, 2][..], &[2, 3][..]));
    assert_eq!(cross(&b, Algorithm2::Corrected, &said), [2, 3]);
    assert_eq!(cross(&b, Algorithm2::Printed, &said), [2, 2], "a load of 0.97 is told as below 0.95");
}

#[test]
fn v6_3_a_higher_first_digit_brings_its_second_along() {
    let own = says(&[3, 1]);
    for algorithm in [Algorithm2::Corrected, Algorithm2::Printed] {
        assert_eq!(cross(&own, algorithm, &[2, 3]), [3, 1]);
    }
}

#[test]
fn v6_4_a_lower_first_digit_leaves_the_second_alone() {
    let own = says(&[2, 3]);
    for algorithm in [Algorithm2::Corrected, Algorithm2::Printed] {
        assert_eq!(cross(&own, algorithm, &[3, 1]), [3, 1]);
    }
}

/// Links in a row leave the level of the most loaded one: whatever their number, order and length of chains.
#[test]
fn a_chain_tells_the_highest_level_on_its_path() {
    let mut random = Random::new(61);
    let (mut lost_by_printed, mut total) = (0, 0);
    for _ in 0..20_000 {
        let n = 1 + random.below(8) as u32;
        let levels: Vec<Level> =
            (0..1 + random.below(5)).map(|_| Level::of(random.below(2_300_000) as u32, n)).collect();
        let start = vec![1; n as usize];
        let told = levels.iter().fold(start.clone(), |chain, own| cross(own, Algorithm2::Corrected, &chain));
        let highest = levels.iter().map(Level::number).max().unwrap();
        assert_eq!(says(&told).number(), highest, "{told:?} of {levels:?}");
        let printed = levels.iter().fold(start, |chain, own| cross(own, Algorithm2::Printed, &chain));
        assert!(says(&printed).number() <= highest);
        lost_by_printed += usize::from(says(&printed).number() < highest);
        total += 1;
    }
    assert!(lost_by_printed * 10 > total, "the printed algorithm would be as good");
}

/// EX6.7 by itself: two links whose first digits are equal, the second one's last digit higher.
#[test]
fn the_printed_algorithm_loses_the_second_of_two_equal_bottlenecks() {
    let mut lost = 0;
    let mut chains = 0;
    for a in 0..9u32 {
        for b in 0..9u32 {
            let [first, second] = [a, b].map(|number| says(&[number as u8 / 3 + 1, number as u8 % 3 + 1]));
            if first.zone() == second.zone() && second.number() > first.number() {
                let said = digits(&first);
                assert_eq!(cross(&second, Algorithm2::Corrected, &said), digits(&second));
                chains += 1;
                lost += usize::from(cross(&second, Algorithm2::Printed, &said) != digits(&second));
            }
        }
    }
    assert_eq!((lost, chains), (9, 9), "every such chain");
}

/// A level that changes within a chain: the current one's digit if it has the digits that were told so far,
/// else 11.
#[test]
fn a_level_that_changes_within_a_chain_is_told_on_the_safe_side() {
    let mark = |flow: &mut Flow, index, own: &Level| flow.mark(index, 1, own, Algorithm2::Corrected);
    let mut flow = Flow::default();
    assert_eq!(mark(&mut flow, 0, &says(&[2, 1])), 2);
    assert_eq!(mark(&mut flow, 1, &says(&[2, 2])), 2, "another level of the same zone");
    assert_eq!(mark(&mut flow, 0, &says(&[2, 1])), 2);
    assert_eq!(mark(&mut flow, 1, &says(&[3, 1])), 3, "another zone");
    assert_eq!(mark(&mut flow, 0, &says(&[2, 1])), 2);
    assert_eq!(mark(&mut flow, 1, &says(&[1, 1])), 3, "another zone");
}

#[test]
fn what_begins_in_the_middle_passes_as_it_is() {
    let own = says(&[3, 3, 3]);
    let mut flow = Flow::default();
    assert_eq!(flow.mark(1, 1, &own, Algorithm2::Corrected), 1, "nothing is known of the flow");
    assert_eq!(flow.mark(0, 1, &own, Algorithm2::Corrected), 3);
    assert_eq!(flow.mark(2, 1, &own, Algorithm2::Corrected), 1, "the second of three is missing");
    assert_eq!(flow.mark(1, 1, &own, Algorithm2::Corrected), 1, "and it is too late for it");
    assert_eq!(flow.mark(0, 1, &own, Algorithm2::Corrected), 3);
}

/// The law on packets: what it does goes by their bytes alone.
#[test]
fn a_router_reads_places_from_headers() {
    for (n, order) in [(2, Order::Swap), (2, Order::Ipid), (2, Order::Checksum), (5, Order::Checksum)] {
        let config = LinkConfig { order, capacity: Rate(1_000_000), ..LinkConfig::of(n, false) };
        let mut link = Link::new(config, Duration(200_000_000), Duration(0));
        // A load of 0.97.
        link.on_arrival(Time(0), &Seen { size: 190_120, ..Seen::default() });
        link.on_deadline(Time(200_000_000), Bytes(0));
        let own = digits(&link.level());
        let mut flow = None;
        let mut told = Vec::new();
        for index in 0..n as u8 {
            let mut segment =
                Segment { sequence: 7000, acknowledgment: 90_000, length: 1000, ..Segment::default() };
            segment.seal();
            assert!(order.write(&mut segment, index));
            let mut packet = Seen { size: 1000, ecn: 1, words: shown(segment), flow };
            link.on_departure(Time(200_000_001), &mut packet, Bytes(0));
            assert_eq!(packet.words, shown(segment), "routers leave headers as they are");
            told.push(packet.ecn);
            flow = packet.flow;
        }
        assert_eq!(told, own, "{order:?} of {n}");
        // Broken: no place, and nothing happens.
        let broken = Segment { sequence: 5, acknowledgment: 5, checksum: 77, ..Segment::default() };
        let mut packet = Seen { size: 1000, ecn: 1, words: shown(broken), flow };
        link.on_departure(Time(200_000_002), &mut packet, Bytes(0));
        assert!(packet.ecn == 1 || order == Order::Ipid);
    }
}

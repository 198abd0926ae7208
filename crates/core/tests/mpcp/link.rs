//! The load factor and VCP's codes.

use congestlab_core::law::mpcp::{HIGH, LOW, Level, Link, LinkConfig, OVERLOAD};
use congestlab_core::law::{LinkLaw as _, Series as _};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, Time};

use crate::Seen;
use crate::random::Random;

const MS: u64 = 1_000_000;

fn vcp() -> LinkConfig {
    LinkConfig { capacity: Rate(1_250_000), ..LinkConfig::of(1, true) }
}

/// A port whose first interval of 200 ms has seen `bytes` arrive, the queue being `queue` in each sample.
fn after(config: LinkConfig, bytes: u64, queue: u64) -> Link {
    let mut link = Link::new(config, Duration(200 * MS), Duration(0));
    link.on_arrival(Time(1), &Seen { size: bytes, ..Seen::default() });
    while link.next_deadline() < Time(200 * MS) {
        link.on_deadline(link.next_deadline(), Bytes(queue));
    }
    link.on_deadline(Time(200 * MS), Bytes(queue));
    assert_eq!(link.report().intervals, 1);
    link
}

/// V5.1: 196000 B of 245000 B are 0.8, exactly.
#[test]
fn v5_1_the_zones_begin_at_exactly_eight_and_ten_tenths() {
    for (bytes, load, code) in
        [(196_000, 800_000, HIGH), (195_999, 799_995, LOW), (245_000, 1_000_000, OVERLOAD)]
    {
        let link = after(vcp(), bytes, 0);
        assert_eq!((link.report().load, link.report().zone), (load, code), "{bytes} B");
    }
}

/// V5.2: half of the average queue counts. The average moves by a quarter per interval, so a standing queue
/// of 48000 B is 12000 B in it after the first one.
#[test]
fn v5_2_half_of_the_queue_counts_as_load() {
    let link = after(vcp(), 240_000, 48_000);
    assert_eq!(link.report().load, 1_004_081);
    assert_eq!(link.report().zone, OVERLOAD);
    let mut names = Vec::new();
    link.report().each(&mut |name, value, unit| names.push((name, value as f64 / f64::from(unit))));
    assert_eq!(names, [("load_factor", 1.004081), ("load_code", 3.0), ("load_level", 2.0)]);
}

/// What is measured, against the formulas in `f64`, over many intervals of any length.
#[test]
fn the_load_factor_is_that_of_the_formula() {
    let mut random = Random::new(51);
    for _ in 0..200 {
        let config = LinkConfig {
            capacity: Rate(1000 + random.below(10_000_000_000)),
            gamma: Ratio(500_000 + random.below(600_000) as u32),
            kq: Ratio(random.below(1_000_001) as u32),
            queue_weight: Ratio(random.below(1_000_001) as u32),
            ..LinkConfig::of(1 + random.below(8) as u32, false)
        };
        let (phase, queue_phase) = (1 + random.below(200 * MS), random.below(200 * MS));
        let mut link = Link::new(config, Duration(phase), Duration(queue_phase));
        let part = |ratio: Ratio| f64::from(ratio.0) / 1e6;
        let (mut load_due, mut queue_due) = (phase, 1 + queue_phase % config.sample.0);
        let (mut bytes, mut sum, mut samples) = (0, 0u64, 0u64);
        let (mut average, mut began, mut now) = (0.0, 0, 0);
        for _ in 0..400 {
            for _ in 0..random.below(4) {
                let size = random.below(config.capacity.0 / 40);
                bytes += size;
                link.on_arrival(Time(now), &Seen { size, ..Seen::default() });
            }
            assert_eq!(link.next_deadline(), Time(load_due.min(queue_due)));
            // Mostly on time, sometimes late.
            let late = if random.below(10) == 0 { random.below(90 * MS) } else { 0 };
            now = link.next_deadline().0 + late;
            let backlog = random.below(config.capacity.0 / 4);
            link.on_deadline(Time(now), Bytes(backlog));
            if queue_due <= now {
                (sum, samples, queue_due) = (sum + backlog, samples + 1, now + config.sample.0);
            }
            if load_due > now {
                continue;
            }
            if let Some(mean) = sum.checked_div(samples) {
                let weight = part(config.queue_weight);
                average = average * (1.0 - weight) + mean as f64 * weight;
            }
            let carried = part(config.gamma) * config.capacity.0 as f64 * (now - began) as f64 / 1e9;
            let load = (bytes as f64 + part(config.kq) * average) / carried;
            let got = f64::from(link.report().load) / 1e6;
            // A millionth, and the average queue's bytes of rounding, which an average forgets by its weight.
            let lost = 2.0 / part(config.queue_weight).max(1e-6);
            let tolerance = 1.5e-6 + 1e-9 * load + lost.min(400.0) / carried;
            assert!((got - load.min(4294.967295)).abs() <= tolerance, "{got} for {load}, {config:?}");
            assert_eq!(link.level(), Level::of(link.report().load, config.n));
            (bytes, sum, samples, began, load_due) = (0, 0, 0, now, now + config.interval.0);
        }
    }
}

#[test]
fn codes_are_raised_never_lowered_and_never_given() {
    for (bytes, own) in [(1000, LOW), (200_000, HIGH), (300_000, OVERLOAD)] {
        let mut link = after(vcp(), bytes, 0);
        for found in 0..4 {
            let mut packet = Seen { size: 1000, ecn: found, ..Seen::default() };
            link.on_departure(Time(201 * MS), &mut packet, Bytes(0));
            assert_eq!(packet.ecn, if found == 0 { 0 } else { found.max(own) }, "{found} where it is {own}");
        }
    }
}

/// 5.5: nothing arrives, so load is low again after an interval, whatever it was; a capacity of nothing is
/// overload.
#[test]
fn an_idle_router_says_low() {
    let mut link = after(vcp(), 400_000, 0);
    assert_eq!(link.report().zone, OVERLOAD);
    link.on_deadline(Time(400 * MS), Bytes(0));
    assert_eq!((link.report().zone, link.report().load), (LOW, 0));
    link.set_capacity(Rate(0));
    link.on_arrival(Time(500 * MS), &Seen { size: 40, ..Seen::default() });
    link.on_deadline(Time(600 * MS), Bytes(0));
    assert_eq!(link.report().zone, OVERLOAD);
}

/// V5.6: one cut by 0.875 ends an overload of up to 114.3 %, MP 2.2's argument.
#[test]
fn v5_6_one_cut_is_not_enough_above_114_percent() {
    let beta = Ratio::ppm(875_000);
    assert_eq!(beta.of(1_150_000), 1_006_250);
    assert!(beta.of(1_142_857) < 1_000_000 && beta.of(1_142_858) >= 1_000_000);
}

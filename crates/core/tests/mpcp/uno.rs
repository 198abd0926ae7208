//! UNO as comparator: how many packets until the sender knows the level (MP 1; C-28).
//!
//! UNO's packet says one of eight things about the load, which one by its IP identification, which nobody chooses: a
//! sender must collect eight different ones. MPCP's first packet says the zone, the n-th one the level; what is lost
//! breaks a chain.

use congestlab_core::law::mpcp::{Algorithm2, Echoed, Flow, Level, Sender, SenderConfig};
use congestlab_core::law::{Ack, Segment, SenderLaw as _};
use congestlab_core::units::{Bytes, Duration, Time};

use crate::random::Random;

const RUNS: u32 = 40_000;

/// Packets that a UNO sender sends until each of eight kinds has arrived, the kind being that of the identification.
fn uno(random: &mut Random, lost_percent: u64) -> u32 {
    let (mut seen, mut count) = (0u32, 0);
    while seen != 0xff {
        count += 1;
        let kind = random.next() as u16 & 7;
        seen |= u32::from(random.below(100) >= lost_percent) << kind;
    }
    count
}

/// Packets that a sender of MPCP sends until it knows its zone, and its level: by the law itself, through a link of that
/// level, places being read from headers. The sender is somewhere in its chains, and the level has just changed.
fn mpcp(random: &mut Random, n: u32, lost_percent: u64) -> (u32, u32) {
    let config = SenderConfig { strikes: u32::MAX, zones: false, ..SenderConfig::of(n, false) };
    let own = Level::of(850_000 + random.below(140_000) as u32, n);
    let mut sender = Sender::new(&config, Bytes(1000), Bytes(1_000_000));
    let (mut flow, mut zone, mut count) = (Flow::default(), None, 0);
    for _ in 0..random.below(n.into()) {
        sender.next_place(&config, Time(0), Duration(1_000_000_000_000));
    }
    loop {
        count += 1;
        // Downgrades would be for good.
        let place = sender.next_place(&config, Time(0), Duration(1_000_000_000_000));
        let mut segment =
            Segment { sequence: 7000, acknowledgment: 90_000, length: 1000, ..Segment::default() };
        segment.seal();
        assert!(config.order.write(&mut segment, place));
        let Some(index) = config.order.read(&segment, n) else { panic!("{segment:?}") };
        let code = flow.mark(index, 1, &own, Algorithm2::Corrected);
        if random.below(100) < lost_percent {
            continue;
        }
        let reply = Echoed::new(code, Some(index)).into();
        let ack = Ack { acked: Bytes(1000), srtt: Duration(1_000_000_000_000), reply, ..Ack::default() };
        sender.on_ack(&config, Time(0), &ack);
        let state = sender.state();
        if state.is_downgraded {
            return (zone.unwrap_or(count), u32::MAX);
        }
        if index == 0 {
            zone.get_or_insert(count);
        }
        if let Some(zone) = zone
            && state.level == own
        {
            return (zone, count);
        }
    }
}

fn mean(counts: &[u32]) -> f64 {
    counts.iter().map(|&count| f64::from(count)).sum::<f64>() / counts.len() as f64
}

/// 8 (1 + 1/2 + .. + 1/8) = 21.74, not MP's "8 ln 8 = 24" (which is 16.6) nor 8 log2 8 (which is 24).
#[test]
fn uno_needs_twenty_two_packets() {
    let mut random = Random::new(28);
    let mut counts: Vec<u32> = (0..RUNS).map(|_| uno(&mut random, 0)).collect();
    let exact: f64 = (1..=8).map(|k| 8.0 / f64::from(k)).sum();
    assert!((21.7..21.8).contains(&exact));
    // The standard deviation of one is 9.2: five of the mean's.
    assert!((mean(&counts) - exact).abs() < 0.25, "{} for {exact}", mean(&counts));
    counts.sort_unstable();
    assert_eq!((counts[0], counts[RUNS as usize / 2]), (8, 20));
}

/// From anywhere in its chains: the zone after half a chain in the mean, the level a chain later; with losses more, but
/// DPCP and TPCP stay below UNO.
#[test]
fn a_chain_tells_the_level_long_before_uno_does() {
    let mut random = Random::new(29);
    let mut table = Vec::new();
    for lost in [0, 10, 30] {
        let collected: Vec<u32> = (0..RUNS).map(|_| uno(&mut random, lost)).collect();
        for n in [2, 3, 8] {
            let runs: Vec<(u32, u32)> = (0..RUNS).map(|_| mpcp(&mut random, n, lost)).collect();
            let (zones, levels): (Vec<u32>, Vec<u32>) =
                runs.into_iter().filter(|run| run.1 < u32::MAX).unzip();
            table.push((lost, n, mean(&zones), mean(&levels), levels.len(), mean(&collected)));
        }
    }
    for &(lost, n, zone, level, known, uno) in &table {
        println!("{lost} % lost, n = {n}: zone {zone:.2}, level {level:.2} (of {known} runs), UNO {uno:.2}");
        if lost == 0 {
            let wait = f64::from(n - 1) / 2.0;
            // The standard deviation of a wait is 2.3 at most, where n = 8: four of the mean's.
            assert!(
                (zone - 1.0 - wait).abs() < 0.05 && (level - f64::from(n) - wait).abs() < 0.05,
                "{n}: {zone} {level}"
            );
        }
        if n < 8 {
            assert!(level < uno / 2.0, "{n}: {level} of {uno}");
        }
    }
    let at = |lost, n| table.iter().find(|row| (row.0, row.1) == (lost, n)).expect("in the table").3;
    assert!(at(30, 2) > at(10, 2) && at(10, 2) > at(0, 2));
}

//! UNO as comparator: how many packets until the sender knows the level (MP 1; C-28).
//!
//! UNO's packet says one of eight things about the load, which one by its IP identification, which a sender
//! does not choose: it must collect eight different ones. MPCP's first packet says the zone, the n-th the level.

use crate::random::Random;

/// Packets until each of `kinds` has been seen, the kind being that of the IP identification.
fn collected(random: &mut Random, kinds: u64) -> u32 {
    let (mut seen, mut count) = (0u64, 0);
    while seen != (1 << kinds) - 1 {
        seen |= 1 << (random.next() as u16 as u64 % kinds);
        count += 1;
    }
    count
}

/// 8 (1 + 1/2 + .. + 1/8) = 21.74, not MP's "8 ln 8 = 24" (which is 16.6) nor 8 log2 8 (which is 24).
#[test]
fn uno_needs_twenty_two_packets_where_a_chain_needs_n() {
    let mut random = Random::new(28);
    const RUNS: u32 = 100_000;
    let mut counts: Vec<u32> = (0..RUNS).map(|_| collected(&mut random, 8)).collect();
    counts.sort_unstable();
    let mean = f64::from(counts.iter().sum::<u32>()) / f64::from(RUNS);
    let exact: f64 = (1..=8).map(|k| 8.0 / f64::from(k)).sum();
    // The standard deviation of one is 9.2: five of the mean's.
    assert!((mean - exact).abs() < 0.15, "{mean} for {exact}");
    assert!((21.7..21.8).contains(&exact));
    assert_eq!((counts[0], counts[RUNS as usize / 2]), (8, 20));
}

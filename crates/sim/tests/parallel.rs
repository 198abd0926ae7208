//! docs/performance.md says what many threads would have to do: small networks are counted anew.

#[path = "common/networks.rs"]
mod networks;

use congestlab_sim::model::GroupKind;
use congestlab_sim::parallel::count;
use networks::{LARGE, SMALL, THREADS};

const PAGE: &str = include_str!("../../../docs/performance.md");

/// The page's numbers for a network and so many threads.
fn said(name: &str, threads: usize) -> Vec<&'static str> {
    let begin = format!("| {name} | {threads} |");
    let line = PAGE.lines().find(|line| line.starts_with(&begin)).unwrap_or_else(|| panic!("no row {begin}"));
    line.split('|').skip(2).map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn the_page_says_what_each_of_many_threads_would_have_to_do() {
    let mut untrue = Vec::new();
    for network in &SMALL {
        for threads in THREADS {
            let counted = network.row(threads);
            if said(network.name, threads) != counted {
                untrue.push(format!("| {} | {} |", network.name, counted.join(" | ")));
            }
        }
    }
    assert!(untrue.is_empty(), "tools/bench --write parallel puts the page right:\n{}", untrue.join("\n"));
}

#[test]
fn where_there_is_something_for_each_thread_sixteen_and_sixty_four_are_worth_four_fifths() {
    let worth = |name: &str, threads| -> f64 { said(name, threads)[2].parse().expect("a number") };
    for (network, many) in LARGE.iter().zip([1, 10_000, 8, 128, 512]) {
        for threads in [16, 64] {
            let worth = worth(network.name, threads);
            // One port is one thread's.
            let has_enough = many >= threads / 2;
            assert_eq!(worth >= 0.8, has_enough, "{}, {threads} threads: {worth}", network.name);
        }
    }
}

/// Eight bottlenecks of equal rate, of which two are busy: those that a thread would have both by rates alone.
#[test]
fn threads_share_what_there_is_to_do_not_what_links_could_carry() {
    let mut model = networks::dumbbells(8, 800, 400_000, 600_000_000_000);
    for (_, group) in model.groups.iter_mut().enumerate().filter(|(index, _)| index % 4 != 0) {
        if let GroupKind::Tcp(config) = &mut group.kind {
            (config.initial_window, config.awnd) = (2, Some(2));
        }
    }
    let (_, counted) = count(&model, 4);
    assert_eq!(counted.threads, 4);
    assert!(counted.imbalance(4) < 2.0, "one had all until it was counted: {counted:?}");
}

//! The work that threads would have to do on networks of the bench: `parallel [large|small [THREADS...]]`.
//!
//! Prints rows of docs/performance.md (`tools/bench --write parallel`): threads, how many times as fast, that by thread, the
//! busiest against the mean, meetings, thousands of instructions of the busiest from one meeting to the next.

#[path = "../tests/common/networks.rs"]
mod networks;

use networks::{LARGE, Network, SMALL, THREADS};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let all: &[Network] = match args.first().map(String::as_str) {
        None | Some("large") => &LARGE,
        Some("small") => &SMALL,
        Some(name) => panic!("no networks {name}: large, small"),
    };
    let wanted: Vec<usize> = args.iter().skip(1).map(|n| n.parse().expect("threads")).collect();
    let threads = if wanted.is_empty() { THREADS.to_vec() } else { wanted };
    for network in all {
        for &threads in &threads {
            println!("| {} | {} |", network.name, network.row(threads).join(" | "));
        }
    }
}

//! Relations: a test runs a random scenario and a changed copy, and compares their results.
//!
//! No expected number is needed, so the tests try every law, with values that are not round. Where a relation is
//! exact, so is its test. Where one nanosecond more changes which packet is lost, means over many perturbations are compared.
//!
//! A short form runs with all tests; `make relations` runs the long one, in the release build. `CONGESTLAB_RELATIONS` is the
//! number of times that every sender law is drawn for each relation.

mod draw;
mod ensembles;
mod exact;
mod ledger;
mod net;
mod wild;

use std::panic::{AssertUnwindSafe, catch_unwind};

use draw::Draw;
use net::Net;

/// Times that each relation draws every sender law, unless the environment sets the number.
const TIMES: u64 = 6;

/// Calls `relation` with drawn scenarios, in which every sender law is that of the first group equally often.
///
/// # Panics
/// Panics at the end if any scenario broke the relation, with the law and the number of each that did.
fn each(name: &str, mut relation: impl FnMut(&mut Draw, Net)) {
    let times = std::env::var("CONGESTLAB_RELATIONS").map_or(TIMES, |times| times.parse().expect("a number"));
    // Each relation has scenarios of its own.
    let first = name.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let laws = draw::senders();
    let mut broken = Vec::new();
    for number in 0..times * laws.len() as u64 {
        let law = laws[number as usize % laws.len()];
        let mut draw = Draw::new(first.wrapping_add(number));
        let net = draw::net(&mut draw, law);
        let outcome = catch_unwind(AssertUnwindSafe(|| relation(&mut draw, net)));
        if outcome.is_err() {
            broken.push(format!("{law} ({number})"));
        }
    }
    assert!(broken.is_empty(), "{} scenarios break the relation: {}", broken.len(), broken.join(", "));
}

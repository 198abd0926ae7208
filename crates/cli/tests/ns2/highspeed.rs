//! Why the HighSpeed TCP of `Agent/TCP/Linux` is faster than RFC 3649 under random losses: its three
//! habits, each of which a model of the window, round trip by round trip, has or has not.

#![expect(clippy::disallowed_methods, reason = "a model; its tolerance holds on every platform")]

use crate::case::Case;

/// What Linux 2.6 does that RFC 3649 does not say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits {
    /// a(w) and b(w) by a table: a(w) is the next whole number, 2 from 39 segments on.
    pub(crate) table: bool,
    /// b(w) w is rounded down, so that half of 17 segments leaves 9.
    pub(crate) rounds: bool,
    /// Slow start up to ssthresh *and at it*: a segment more as soon as the loss is repaired.
    pub(crate) one_more: bool,
}

impl Habits {
    pub(crate) const LINUX: Self = Self { table: true, rounds: true, one_more: true };
}

fn b(w: f64) -> f64 {
    0.5 - 0.4 * (w.max(38.0) / 38.0).ln() / (83_000.0_f64 / 38.0).ln()
}

fn a(w: f64) -> f64 {
    if w <= 38.0 { 1.0 } else { w.powf(0.8) * 0.078 * 2.0 * b(w) / (2.0 - b(w)) }
}

/// Linux's `hstcp_aimd_vals`: up to this window, a(w) is the row's number and b(w) this.
fn table() -> Vec<(f64, f64)> {
    let row = |w: f64| (w, (b(w) * 256.0).floor() / 256.0);
    let mut rows = vec![row(38.0)];
    let mut w = 39.0;
    while rows.len() < 40 {
        while a(w) <= (rows.len() + 1) as f64 {
            w += 1.0;
        }
        rows.push(row(w));
    }
    rows
}

/// Goodput in bit/s of a flow that has the case's link for itself: each packet is lost with its
/// probability, and one that finds the queue full; repair takes a round trip without growth.
pub(crate) fn goodput(case: &Case, habits: Habits) -> f64 {
    let rtt = case.base_rtt(&case.groups[0]);
    let pipe = case.rate * rtt / 8e3;
    let rows = table();
    let row = |w: f64| rows.iter().position(|row| w <= row.0).unwrap_or(rows.len() - 1);
    let mut state = 1_u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let (mut w, mut ssthresh, mut count, mut is_repairing) = (38.0_f64, 0.0, 0.0, false);
    let (mut sent, mut round_trips) = (0.0, 0.0);
    for _ in 0..50_000 {
        let flight = w.floor();
        sent += flight;
        round_trips += (flight / pipe).max(1.0);
        let good = (uniform().ln() / (1.0 - case.packet_error_rate).ln()).floor().min(flight);
        for _ in 0..if std::mem::take(&mut is_repairing) { 0 } else { good as u64 } {
            if habits.one_more && w <= ssthresh {
                w += 1.0;
            } else if habits.table {
                count += (row(w) + 1) as f64;
                if count >= w {
                    count -= w;
                    w += 1.0;
                }
            } else {
                w += a(w.floor()) / w;
            }
        }
        if good < flight || flight > pipe + f64::from(case.queue) {
            let part = if habits.table { rows[row(flight)].1 } else { b(flight) };
            let taken = if habits.rounds { (flight * part).floor() } else { flight * part };
            w = (flight - taken).max(2.0);
            ssthresh = w;
            is_repairing = true;
        }
    }
    sent / round_trips * 8e3 / rtt
}

//! Estimates of a cloud from trains of probes: its capacity, and how much of it is there for what comes through it to us.

/// A probe that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the probe in its train, from 0.
    pub number: u16,
    /// When the upstream edge sent it, ns of its clock.
    pub sent: u64,
    /// When it arrived, ns of the clock here.
    pub arrived: u64,
}

/// The part of a train at its beginning that finds the buckets of shapers full, and passes faster than they carry; by measurement
/// on TBF (docs/design/kernel-family.md 5).
const FIRST: usize = 5;

/// Returns the capacity of the narrowest link, B/s, by a train that was sent as fast as possible: the rate at which its packets
/// come out. `None`: too little of it came.
pub fn capacity(arrivals: &[Arrival], count: u16, size: u16) -> Option<f64> {
    if arrivals.len() < usize::from(count) / 2 || arrivals.len() < 2 * FIRST {
        return None;
    }
    let rest = &arrivals[arrivals.len() / FIRST..];
    let (first, last) = (rest.first()?, rest.last()?);
    let took = last.arrived.checked_sub(first.arrived).filter(|took| *took > 0)?;
    Some((rest.len() - 1) as f64 * f64::from(size) * 1e9 / took as f64)
}

/// Returns how much of a cloud's capacity is there for us, B/s, by a train that was sent at about the capacity, while `own` bytes of
/// ours came between its first and its last packet.
///
/// In a first-in first-out queue a train of rate Ri comes out at Ro = C Ri / (Ri + y), so that all others have y = Ri (C / Ro - 1)
/// (`congestlab_net::estimator::direct`). What came from us meanwhile was among them.
///
/// `None`: too little came.
pub fn available(arrivals: &[Arrival], count: u16, size: u16, own: u64, capacity: f64) -> Option<f64> {
    if arrivals.len() < usize::from(count) / 4 || arrivals.len() < 2 {
        return None;
    }
    let (first, last) = (arrivals.first()?, arrivals.last()?);
    let spaces = f64::from(last.number.checked_sub(first.number)?);
    let [took_in, took_out] = [last.sent.checked_sub(first.sent)?, last.arrived.checked_sub(first.arrived)?];
    if took_in == 0 || took_out == 0 || spaces == 0.0 {
        return None;
    }
    let (took_in, took_out) = (took_in as f64 / 1e9, took_out as f64 / 1e9);
    let rate_in = spaces * f64::from(size) / took_in;
    let rate_out = (arrivals.len() - 1) as f64 * f64::from(size) / took_out;
    let others = rate_in * (capacity / rate_out - 1.0);
    let cross = (others - own as f64 / took_in).max(0.0);
    Some((capacity - cross).clamp(capacity / LEAST, capacity))
}

/// A cloud has at least this part of its capacity for us (ours): one that has nothing left would leave us without a packet by which to
/// learn that it has again.
const LEAST: f64 = 50.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Microseconds between probes, in and out.
    fn train(count: u16, gap: u64, out: u64) -> Vec<Arrival> {
        let each = |number: u16| Arrival {
            number,
            sent: 1_000_000 + u64::from(number) * gap * 1000,
            // Of another clock.
            arrived: 77_000_000_000 + u64::from(number) * out * 1000,
        };
        (0..count).map(each).collect()
    }

    #[test]
    fn the_capacity_is_the_rate_at_which_a_burst_comes_out() {
        let found = capacity(&train(50, 0, 600), 50, 1500).unwrap();
        assert!((found / 2.5e6 - 1.0).abs() < 1e-9, "{found}");
        assert_eq!(capacity(&train(24, 0, 600), 50, 1500), None, "half of it was lost");
        assert_eq!(capacity(&train(50, 0, 0), 50, 1500), None, "no time");
    }

    #[test]
    fn what_others_take_is_not_there() {
        let found = |out, own| available(&train(50, 200, out), 50, 500, own, 2.5e6).unwrap();
        let about =
            |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
        about(found(200, 0), 2.5e6);
        // Twice as slow: others send as much as the link carries.
        about(found(400, 0), 2.5e6 / LEAST);
        // All of that is ours, 2.5e6 B/s for 9.8 ms: the whole capacity is there for us.
        about(found(400, 24_500), 2.5e6);
        about(found(300, 0), 1.25e6);
        about(found(400, 12_250), 1.25e6);
        // Faster out than in is the clocks' doing.
        about(found(150, 0), 2.5e6);
    }

    #[test]
    fn nothing_follows_from_what_never_came() {
        assert_eq!(available(&[], 50, 500, 0, 2.5e6), None);
        assert_eq!(available(&train(12, 200, 200)[..1], 50, 500, 0, 2.5e6), None);
        let mut odd = train(50, 200, 200);
        odd.reverse();
        assert_eq!(available(&odd, 50, 500, 0, 2.5e6), None);
    }
}

//! Round trip time and retransmission timeout (RFC 6298), from timestamps (RFC 7323).

use congestlab_core::units::Duration;

/// RFC 6298 §2.1: the timeout before the first measurement.
pub(super) const INITIAL_RTO: Duration = Duration(1_000_000_000);
/// RFC 6298 §5.7: the timeout for the first data if the SYN had to be repeated.
pub(super) const CAUTIOUS_RTO: Duration = Duration(3_000_000_000);
/// RFC 6298 §2.5 allows a maximum of at least this.
const MAX_RTO: Duration = Duration(60_000_000_000);

/// Clock granularity G of RFC 6298 §2.3, Linux's at 1000 Hz: a timeout is so much longer than a round trip that does not vary.
/// Without it an answer comes when the timer expires, and each packet of a window of one follows a pause of a timeout.
const GRANULARITY: u64 = 1_000_000;

/// Round trips of more than 36 years are taken for that: five of these fit into a word.
const LONGEST: u64 = 1 << 60;

/// Smoothed round trip time and its variation. Timestamps give a sample with every acknowledgment
/// of new data, so Karn's rule is not needed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    srtt: u64,
    rttvar: u64,
}

impl RoundTrip {
    /// Zero before the first sample.
    #[inline]
    pub(super) fn srtt(&self) -> Duration {
        Duration(self.srtt)
    }

    /// RFC 6298 §2.2, §2.3.
    #[inline]
    pub(super) fn sample(&mut self, rtt: Duration) {
        // A round trip that takes no time must still be known.
        let rtt = rtt.0.clamp(1, LONGEST);
        if self.srtt == 0 {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            self.rttvar = self.rttvar - self.rttvar / 4 + self.srtt.abs_diff(rtt) / 4;
            self.srtt = (self.srtt - self.srtt / 8 + rtt / 8).max(1);
        }
    }

    /// RFC 6298 §2.2–2.5, doubled `backoff` times (§5.5).
    #[inline]
    pub(super) fn rto(&self, initial: Duration, min: Duration, backoff: u8) -> Duration {
        let rto = match self.srtt {
            0 => initial.0,
            srtt => (srtt + (self.rttvar * 4).max(GRANULARITY)).max(min.0),
        };
        let rto = if backoff == 0 { rto } else { rto.saturating_mul(1 << backoff.min(32)) };
        Duration(rto.min(MAX_RTO.0))
    }

    /// Linux's: its floor is one of four times the variation, and comes on top of the round trip (`tcp_rtt_estimator` in
    /// net/ipv4/tcp_input.c).
    pub(super) fn linux_rto(&self, initial: Duration, min: Duration, backoff: u8) -> Duration {
        let floored = match self.srtt {
            0 => initial.0,
            srtt => srtt.saturating_add(min.0),
        };
        self.rto(initial, Duration(floored), backoff)
    }

    /// A segment sent so long ago that no acknowledgment has come for is lost: the timeout without
    /// its floor, and at least a quarter of a round trip for reordering (RFC 8985 §6.2, step 4).
    #[inline]
    pub(super) fn patience(&self) -> Duration {
        Duration(self.srtt.saturating_add(self.rttvar.saturating_mul(4).max(self.srtt / 4)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Vector V9.1.
    #[test]
    fn the_timeout_follows_rfc_6298() {
        let none = Duration(0);
        let mut rtt = RoundTrip::default();
        assert_eq!(rtt.rto(INITIAL_RTO, none, 0), INITIAL_RTO);
        for (sample, srtt_us, rttvar_us, rto_us) in [
            (500, 500_000_u64, 250_000_u64, 1_500_000_u64),
            (700, 525_000, 237_500, 1_475_000),
            (500, 521_875, 184_375, 1_259_375),
        ] {
            rtt.sample(Duration(sample * MS));
            assert_eq!(rtt.srtt, srtt_us * 1000);
            assert_eq!(rtt.rttvar, rttvar_us * 1000);
            assert_eq!(rtt.rto(INITIAL_RTO, none, 0), Duration(rto_us * 1000));
        }
    }

    #[test]
    fn the_timeout_has_a_floor_and_a_ceiling_and_doubles_in_between() {
        let mut rtt = RoundTrip::default();
        rtt.sample(Duration(10 * MS));
        let rto = |backoff| rtt.rto(INITIAL_RTO, Duration(1000 * MS), backoff).0 / MS;
        assert_eq!([rto(0), rto(1), rto(5), rto(6), rto(255)], [1000, 2000, 32_000, 60_000, 60_000]);
    }

    #[test]
    fn linux_adds_its_floor_to_the_round_trip() {
        let mut rtt = RoundTrip::default();
        let rto = |rtt: &RoundTrip, backoff| rtt.linux_rto(INITIAL_RTO, Duration(200 * MS), backoff).0 / MS;
        assert_eq!(rto(&rtt, 0), 1000);
        (0..60).for_each(|_| rtt.sample(Duration(100 * MS)));
        assert_eq!([rto(&rtt, 0), rto(&rtt, 1)], [300, 600]);
        rtt.sample(Duration(500 * MS));
        // RFC 6298: srtt 150 ms, rttvar 100 ms.
        assert_eq!(rto(&rtt, 0), 550);
    }

    #[test]
    fn a_round_trip_in_no_time_is_known_all_the_same() {
        let mut rtt = RoundTrip::default();
        for _ in 0..100 {
            rtt.sample(Duration(0));
        }
        assert!(rtt.srtt() > Duration(0));
    }
}

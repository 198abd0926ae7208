//! Proportional rate reduction (RFC 9937, which is RFC 6937 with PRR-SSRB where repair makes progress and PRR-CRB
//! where it does not): how much a sender may send for each acknowledgment of a recovery, so that what is in flight
//! comes down to ssthresh smoothly. In whole segments, as Linux, since less than one is not sent: half of one, which a
//! first duplicate brings of twenty, would wait for the second.

/// State of one recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prr {
    ssthresh: u64,
    /// RecoverFS: segments that was not known to have arrived before the recovery.
    flight: u64,
    /// prr_delivered.
    delivered: u64,
    /// prr_out.
    out: u64,
    /// cwnd, as of the last acknowledgment.
    window: u64,
}

impl Prr {
    /// A recovery begins (§6.1).
    pub(super) fn new(ssthresh: u64, flight: u64) -> Self {
        Self { ssthresh, flight: flight.max(1), delivered: 0, out: 0, window: ssthresh }
    }

    /// cwnd until the next acknowledgment.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// Takes an acknowledgment of the recovery but its last (§6.2). `delivered`: segments that newly are known
    /// to have arrived; `pipe`: those in flight; `is_safe`: SND.UNA moved and no further loss was found.
    pub(super) fn on_ack(&mut self, delivered: u64, pipe: u64, is_safe: bool) {
        self.delivered = self.delivered.saturating_add(delivered);
        let mut count = if pipe > self.ssthresh {
            let share = u128::from(self.delivered) * u128::from(self.ssthresh);
            let share = share.div_ceil(u128::from(self.flight));
            u64::try_from(share).unwrap_or(u64::MAX).saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(delivered);
            limit.saturating_add(is_safe.into()).min(self.ssthresh - pipe)
        };
        // Fast retransmit, however little has arrived.
        if self.out == 0 && count == 0 {
            count = 1;
        }
        self.window = pipe.saturating_add(count);
    }

    /// A segment is sent (§6.3).
    pub(super) fn on_sent(&mut self) {
        self.out = self.out.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    /// A window of twenty whose segments of these numbers are lost, ssthresh ten; the third duplicate begins the
    /// recovery. What is sent for each of the ACKs: `R` a retransmission, `N` new data.
    fn course(lost: &[u64], ssthresh: u64) -> (String, u64) {
        let arrived = (0..20).filter(|segment| !lost.contains(segment)).count() as u64;
        // Two for the first two duplicates (RFC 3042), whose ACKs come last.
        let (mut sent, mut repairs) = (String::from("NN"), lost.len() as u64);
        let mut prr = Prr::new(ssthresh, 20);
        let mut pipe = 22 - 3 - repairs;
        for ack in 3..=arrived + 2 {
            pipe -= u64::from(ack > 3);
            prr.on_ack(1, pipe, false);
            sent.push(' ');
            while pipe < prr.window() {
                sent.push(if repairs > 0 { 'R' } else { 'N' });
                repairs = repairs.saturating_sub(1);
                prr.on_sent();
                pipe += 1;
            }
        }
        (sent, pipe)
    }

    /// The example of both RFCs: one segment for every other ACK, down to half, and at the end one for each, by the
    /// bound that has taken over.
    #[test]
    fn one_loss_halves_the_flight_by_sending_for_every_other_acknowledgment() {
        let (sent, pipe) = course(&[0], 10);
        assert_eq!(sent, "NN R  N  N  N  N  N  N  N   N N");
        assert_eq!(pipe, 10);
    }

    /// More than half is lost at once, and one goes for each that arrives.
    #[test]
    fn what_is_below_ssthresh_is_kept_by_conservation_of_packets() {
        let lost: alloc::vec::Vec<u64> = (0..15).collect();
        let (sent, pipe) = course(&lost, 10);
        assert_eq!(sent, "NN R R R R R");
        assert_eq!(pipe, 5);
    }

    #[test]
    fn progress_without_further_losses_adds_a_segment_until_ssthresh() {
        let mut prr = Prr::new(10, 20);
        prr.on_ack(1, 4, true);
        assert_eq!(prr.window(), 6);
        (0..2).for_each(|_| prr.on_sent());
        prr.on_ack(1, 9, true);
        assert_eq!(prr.window(), 10);
    }

    #[test]
    fn the_first_retransmission_goes_whatever_has_arrived() {
        let mut prr = Prr::new(10, 20);
        prr.on_ack(0, 19, false);
        assert_eq!(prr.window(), 20);
        prr.on_sent();
        prr.on_ack(0, 19, false);
        assert_eq!(prr.window(), 19);
    }

    /// CUBIC's ssthresh is 0.7 of the flight: seven of ten.
    #[test]
    fn another_ssthresh_is_another_proportion() {
        let mut prr = Prr::new(70, 100);
        let (mut pipe, mut sent) = (99, 0);
        for _ in 0..80 {
            pipe -= 1;
            prr.on_ack(1, pipe, false);
            while pipe < prr.window() {
                prr.on_sent();
                pipe += 1;
                sent += 1;
            }
        }
        assert_eq!((sent, pipe), (56, 75), "0.7 of 80");
    }

    #[test]
    fn no_numbers_overflow() {
        let mut prr = Prr::new(u64::MAX, 0);
        prr.on_ack(u64::MAX, 0, true);
        prr.on_sent();
        prr.on_ack(u64::MAX, u64::MAX, true);
        assert_eq!(prr.window(), u64::MAX);
    }
}

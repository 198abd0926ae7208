//! XCP's link law in parts, one for each processor, beside the same law undivided.

use super::loops::{Dumbbell, Flow};
use super::random::Random;
use super::*;
use congestlab_core::law::xcp::Part;

/// The whole, its parts, and the undivided law to which the same packets come.
struct Both {
    whole: Link,
    parts: Vec<Part>,
    /// Number of the interval in which each part was lent something last: what it holds of others is void.
    lent: Vec<u64>,
    alone: Link,
}

impl Both {
    fn new(config: LinkConfig, parts: usize) -> Self {
        let link = Link::new(config, Duration(50 * MS), Duration(20 * MS));
        Self { whole: link.clone(), parts: vec![Part::new(); parts], lent: vec![0; parts], alone: link }
    }

    /// Grants and cuts that are left, in the whole and in all parts.
    fn left(&self) -> [u128; 2] {
        let of = |share: xcp::Share| [share.grants_left, share.cuts_left].map(u128::from);
        let parts = self.parts.iter().zip(&self.lent);
        let parts = parts.filter(|(_, lent)| **lent == self.whole.interval_number());
        let parts = parts.map(|(part, _)| of(part.share(&Header::default(), Bytes(0))));
        parts.fold(of(self.whole.share(&Header::default(), Bytes(0))), |[a, b], [c, d]| [a + c, b + d])
    }

    fn pass(&mut self, at: usize, header: Header, size: Bytes) -> Header {
        let (number, parts) = (self.whole.interval_number(), self.parts.len() as u64);
        let before = self.left();
        let part = &mut self.parts[at];
        if part.wants(number, &header, size) {
            self.whole.lend(part, &header, size, parts);
            self.lent[at] = number;
            assert!(!part.wants(number, &header, size), "lent, and it wants more");
        }
        let lent = self.left();
        assert!(lent[0] <= before[0] && lent[1] <= before[1], "{lent:?} after {before:?}: lending made some");
        let mut left = header;
        let part = &mut self.parts[at];
        part.on_arrival(&header, size);
        part.on_departure(&mut left, size);
        self.alone.on_arrival(Time(0), &header, size);
        self.alone.on_departure(Time(0), &mut header.clone(), size, Bytes(u64::MAX));
        left
    }

    fn end(&mut self, backlog: Bytes) {
        let now = self.whole.next_deadline();
        self.parts.iter_mut().for_each(|part| self.whole.take_in(part));
        for link in [&mut self.whole, &mut self.alone] {
            link.on_other_departure(now, backlog);
            link.on_deadline(now, backlog);
        }
    }
}

/// Whatever comes wherever, the whole decides as the undivided law would, and hands out no more.
#[test]
fn parts_decide_as_the_law_and_hold_no_more_than_it() {
    let mut random = Random::new(31);
    let mut packets = 0;
    for round in 0..300 {
        let config = LinkConfig {
            capture: round % 2 == 0,
            bound_headers: round % 3 != 0,
            thesis: round % 7 == 0,
            ..link_config(8000 << random.below(20))
        };
        let parts = 1 + random.below(9) as usize;
        let mut both = Both::new(config, parts);
        for _ in 0..60 {
            let queue = Bytes(random.below(100_000));
            both.end(queue);
            assert_eq!(both.whole.report(), both.alone.report());
            assert_eq!(both.whole.next_deadline(), both.alone.next_deadline());
            // An interval in which some processors have most of the packets, or all.
            let used = 1 + random.below(parts as u64);
            let first = both.left();
            let (mut up, mut down) = (0i128, 0i128);
            for _ in 0..random.below(60) {
                let at = random.below(used) as usize;
                let most = SECOND >> random.below(20);
                let (x, rtt) = (1000 + random.below(most), MS + random.below(SECOND));
                let asked = header(x, rtt, ALL);
                let got = both.pass(at, asked, Bytes(40 + random.below(1460)));
                if got.delta < 0 {
                    down -= i128::from(got.delta)
                } else {
                    up += i128::from(got.delta)
                }
                packets += 1;
            }
            let last = both.left();
            // With all asking for everything nothing comes back, and what has left is what was granted, but for what is too
            // little to state.
            assert!(last[0] <= first[0] && last[1] <= first[1], "{last:?} after {first:?}");
            let [grants, cuts] = first.map(|left| (left >> xcp::SHARE_PLACES) as i128);
            // A part may have less than 1 B/s to state of packets before, for not all deadlines end an interval.
            assert!(up - down <= grants + 1 + parts as i128, "{up} less {down} B/s of {grants}");
            assert!(down - up <= cuts + 60, "{down} less {up} B/s of {cuts}");
        }
    }
    assert!(packets > 100_000, "{packets}");
}

/// An interval's packets get what they would get together, however they are spread.
#[test]
fn parts_hand_out_what_the_law_does() {
    for (parts, used) in [(1, 1), (2, 1), (2, 2), (4, 3), (64, 2)] {
        let mut both = Both::new(LinkConfig { capture: false, ..link_config(1_250_000) }, parts);
        let asked = header(2_500_000, 100 * MS, ALL);
        let mut granted = [0i64; 2];
        for interval in 0..40 {
            both.end(Bytes(0));
            for i in 0..40 {
                let mut plain = asked;
                both.alone.clone().on_departure(Time(0), &mut plain, Bytes(1000), Bytes(u64::MAX));
                let got = both.pass(i % used, asked, Bytes(1000));
                if interval > 2 {
                    granted[0] += i64::from(got.delta);
                    granted[1] += i64::from(plain.delta);
                }
            }
        }
        let ratio = granted[0] as f64 / granted[1] as f64;
        println!("{used} of {parts} parts: {ratio:.4} of {}", granted[1]);
        assert!((0.98..=1.0001).contains(&ratio), "{used} of {parts} parts: {ratio} of {}", granted[1]);
    }
}

/// Six flows, three of which begin later, over three processors or one.
#[test]
fn flows_share_a_link_in_parts_as_they_share_one_that_is_whole() {
    let run = |parts| {
        let flows = (0..6).map(|i| Flow {
            config: sender_config(),
            awnd: u64::MAX,
            start: if i < 3 { i * MS } else { 8 * SECOND + i * MS },
            delay: (i % 2) * 20 * MS,
        });
        let dumbbell = Dumbbell::new(link_config(2_500_000), 2_500_000, 40 * MS, flows.collect());
        dumbbell.in_parts(parts).run(20 * SECOND, 60 * SECOND)
    };
    let alone = run(0);
    for parts in [1, 2, 3, 64] {
        let outcome = run(parts);
        let total: u64 = outcome.sent.iter().sum();
        let furthest = outcome.sent.iter().map(|sent| (*sent as f64 * 6.0 / total as f64 - 1.0).abs());
        let furthest = furthest.fold(0.0, f64::max);
        println!(
            "{parts} parts: utilization {:.4} ({:.4}), queue {:.0} ({:.0}), furthest from the share {furthest:.4}",
            outcome.utilization, alone.utilization, outcome.queue_mean, alone.queue_mean
        );
        assert!(outcome.utilization > alone.utilization - 0.01, "{parts} parts: {}", outcome.utilization);
        assert!(outcome.queue_mean < alone.queue_mean + 2000.0, "{parts} parts: {} B", outcome.queue_mean);
        assert!(furthest < 0.05, "{parts} parts: {:?}", outcome.sent);
    }
}

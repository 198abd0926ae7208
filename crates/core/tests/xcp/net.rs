//! The safety net of a sender that keeps its window on loss (docs/design/protocols.md 13.8).

use super::*;
use congestlab_core::law::xcp::Sender;
use congestlab_core::law::{Ack, Delivery, SenderLaw as _};

/// Least round trip time.
const SHORT: u64 = 100 * MS;
/// With a queue.
const LONG: u64 = 150 * MS;

fn config() -> SenderConfig {
    SenderConfig { loss: LossPolicy::Maintain, safety_net: true, ..sender_config() }
}

struct Flow {
    config: SenderConfig,
    sender: Sender,
    now: u64,
    flight: u64,
}

impl Flow {
    /// A window of 100 packets, and a round trip without a queue behind it.
    fn new(config: SenderConfig) -> Self {
        let mut flow =
            Self { config, sender: Sender::new(Bytes(1000), Bytes(100_000)), now: SECOND, flight: 100_000 };
        flow.round(SHORT, 0, 0);
        flow
    }

    /// One round trip in which so many packets are lost, and links change the rate by so much; what it comes to.
    fn round(&mut self, rtt: u64, lost: u64, feedback: i32) -> (u64, bool) {
        self.now += 200 * MS;
        let delivery = Delivery { lost: Bytes(1000 * lost), ..Delivery::default() };
        self.sender.on_delivery(&self.config, Time(self.now), &delivery);
        let ack = Ack {
            acked: Bytes(1000),
            flight: Bytes(self.flight),
            awnd: Bytes(u64::MAX),
            rtt: Duration(rtt),
            srtt: Duration(rtt),
            reply: xcp::reply(feedback),
            ..Ack::default()
        };
        self.sender.on_ack(&self.config, Time(self.now), &ack);
        (self.sender.window().0, self.sender.is_tcp())
    }
}

#[test]
fn a_tenth_lost_behind_a_queue_halves_the_window_and_less_does_not() {
    assert_eq!(Flow::new(config()).round(LONG, 11, 0), (50_000, true));
    assert_eq!(Flow::new(config()).round(LONG, 10, 0), (100_000, false));
    // An eighth more than the least is no queue yet.
    assert_eq!(Flow::new(config()).round(112 * MS, 90, 0), (100_000, false));
    assert_eq!(Flow::new(config()).round(113 * MS, 90, 0), (50_000, true));
}

#[test]
fn errors_on_the_wire_are_not_answered() {
    let mut flow = Flow::new(config());
    for _ in 0..100 {
        assert_eq!(flow.round(SHORT, 30, 0), (100_000, false));
        flow.sender.on_loss(&flow.config, Time(flow.now), Bytes(100_000));
    }
    assert_eq!(flow.sender.window().0, 100_000);
}

#[test]
fn links_that_ask_for_much_less_are_believed_and_shuffling_is_not() {
    // 100 ms of it are 12.6 of 100 kB, and 12.4.
    assert_eq!(Flow::new(config()).round(SHORT, 30, -126_000), (50_000, true));
    let (window, is_tcp) = Flow::new(config()).round(SHORT, 30, -124_000);
    assert!(window > 87_000 && !is_tcp, "{window}");
    let (window, is_tcp) = Flow::new(config()).round(SHORT, 0, -126_000);
    assert!(window > 87_000 && !is_tcp, "nothing is lost: XCP's own affair: {window}");
}

#[test]
fn without_the_switch_and_with_other_reactions_nothing_is_counted() {
    for (safety_net, loss) in
        [(false, LossPolicy::Maintain), (true, LossPolicy::Tcp), (true, LossPolicy::Fallback)]
    {
        let mut flow = Flow::new(SenderConfig { safety_net, loss, ..sender_config() });
        for _ in 0..10 {
            assert_eq!(flow.round(LONG, 60, 0), (100_000, false), "{loss:?}");
        }
    }
}

#[test]
fn while_tcp_rules_losses_behind_a_queue_halve_and_errors_do_not() {
    let mut flow = Flow::new(config());
    // Links go on to offer more, which is why XCP's window would be of no use.
    assert_eq!(flow.round(LONG, 50, 100_000), (50_000, true));
    flow.sender.on_loss(&flow.config, Time(flow.now), Bytes(50_000));
    assert_eq!(flow.sender.window().0, 25_000);
    flow.round(SHORT, 0, 100_000);
    flow.sender.on_loss(&flow.config, Time(flow.now), Bytes(25_000));
    assert_eq!(flow.sender.window().0, 25_000);
    flow.sender.on_timeout(&flow.config, Time(flow.now), Bytes(25_000), true);
    assert_eq!((flow.sender.window().0, flow.sender.is_tcp()), (1000, true));
}

#[test]
fn as_long_as_a_tenth_is_lost_the_window_is_halved_but_not_for_packets_of_before() {
    let mut flow = Flow::new(config());
    let windows = [50, 50, 90, 30, 0].map(|lost| flow.round(LONG, lost, 100_000).0);
    assert_eq!(windows, [50_000, 50_000, 25_000, 12_500, 12_500]);
}

#[test]
fn xcp_comes_back_after_calm_round_trips_twice_as_many_each_time() {
    let mut flow = Flow::new(config());
    for expected in [32, 64, 128, 256] {
        assert!(flow.round(LONG, 50, 100_000).1);
        // A queue in between begins the count anew.
        for _ in 0..5 {
            assert!(flow.round(SHORT, 0, 100_000).1);
        }
        assert!(flow.round(LONG, 0, 100_000).1);
        let calm = (1..1000).find(|_| !flow.round(SHORT, 20, 100_000).1);
        assert_eq!(calm, Some(expected), "errors on the wire do not count");
    }
}

#[test]
fn renos_own_calm_after_it_has_halved_is_no_sign() {
    let mut flow = Flow::new(config());
    flow.sender = Sender::new(Bytes(1000), Bytes(400_000));
    flow.round(SHORT, 0, 0);
    assert_eq!(flow.round(LONG, 50, 100_000), (50_000, true), "of the flight");
    flow.sender = Sender::new(Bytes(1000), Bytes(400_000));
    flow.round(SHORT, 0, 0);
    flow.flight = 400_000;
    assert_eq!(flow.round(LONG, 50, 100_000), (200_000, true));
    let calm = (1..1000).find(|_| !flow.round(SHORT, 0, 100_000).1);
    assert_eq!(calm, Some(126), "five eighths of 200 segments, and the first round trip");
}

#[test]
fn xcp_comes_back_at_once_when_its_feedback_is_the_stricter() {
    let mut flow = Flow::new(config());
    assert!(flow.round(LONG, 50, 0).1);
    assert!(!flow.round(LONG, 0, -10_000).1);
}

//! The windows of HighSpeed TCP, BIC, Vegas, BBR 1 and 3, DCTCP, TCP Prague and TCP-Peach, without the machinery that detects losses.

mod bbr;
mod bbr3;
mod bic;
mod cuts;
mod dctcp;
mod highspeed;
mod peach;
mod prague;
#[path = "../xcp/random.rs"]
mod random;
mod vegas;

use congestlab_core::law::{Ack, SenderLaw};
use congestlab_core::units::{Bytes, Duration, SECOND, Time};

const MSS: u64 = 1000;
const MS: u64 = SECOND / 1000;

/// An ACK of a sender that uses its whole window.
fn ack(acked: u64) -> Ack {
    Ack { acked: Bytes(acked), is_window_limited: true, ..Ack::default() }
}

fn packets(law: &impl SenderLaw) -> f64 {
    law.window().0 as f64 / MSS as f64
}

/// The ACKs of one window, packet by packet.
fn round_trip<L: SenderLaw>(law: &mut L, config: &L::Config) {
    for _ in 0..law.window().0 / MSS {
        law.on_ack(config, Time(0), &ack(MSS));
    }
}

/// What is common to all of them.
fn as_reno_at_the_edges<L: SenderLaw>(config: &L::Config, start: impl Fn(u64) -> L) {
    // Slow start: what was acknowledged, and a segment at most.
    let mut law = start(4);
    law.on_ack(config, Time(0), &ack(MSS));
    law.on_ack(config, Time(0), &ack(2 * MSS));
    law.on_ack(config, Time(0), &ack(300));
    assert_eq!(law.window(), Bytes(6300));
    assert_eq!(start(0).window(), Bytes(MSS), "one segment at least");
    // A window that is not used does not grow, and a loss leaves two segments.
    let mut law = start(10);
    let unused = Ack { is_window_limited: false, ..ack(MSS) };
    (0..100).for_each(|_| law.on_ack(config, Time(0), &unused));
    assert_eq!(law.window(), Bytes(10 * MSS));
    law.on_loss(config, Time(0), Bytes(0));
    assert_eq!(law.window(), Bytes(2 * MSS));
    // In recovery a window at its threshold stands still.
    let recovering = Ack { in_recovery: true, ..ack(MSS) };
    (0..100).for_each(|_| law.on_ack(config, Time(0), &recovering));
    assert_eq!(law.window(), Bytes(2 * MSS));
    // After a timeout slow start sends the lost window again, to a threshold that falls once.
    let mut law = start(20);
    law.on_timeout(config, Time(0), Bytes(10 * MSS), true);
    assert_eq!(law.window(), Bytes(MSS));
    law.on_timeout(config, Time(0), Bytes(MSS), false);
    (0..100).for_each(|_| law.on_ack(config, Time(0), &recovering));
    assert!((5000..10_000).contains(&law.window().0), "{:?}", law.window());
    // A restart goes back to the initial window at most.
    let before = law.window();
    law.on_restart(config, Time(0), Bytes(20 * MSS));
    assert_eq!(law.window(), before);
    law.on_restart(config, Time(0), Bytes(3 * MSS));
    assert_eq!(law.window(), Bytes(3 * MSS));
    law.on_restart(config, Time(0), Bytes(0));
    assert_eq!(law.window(), Bytes(MSS));
}

/// Round trips over a pipe of its own: `bdp` packets in flight, the rest in the queue.
fn rtt(bdp: f64, base: Duration, window: f64) -> Duration {
    Duration((base.0 as f64 * (window / bdp).max(1.0)) as u64)
}

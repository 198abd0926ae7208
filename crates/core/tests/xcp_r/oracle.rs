//! The laws in floating point, line by line from docs/design/protocols.md 4.3: seconds and bytes, no rounding.

use super::random::Random;
use super::*;

struct Receiver {
    window: f64,
    epoch: u64,
}

impl Receiver {
    fn data(&mut self, feedback: f64, flag: Option<(f64, u64)>, awnd: f64) {
        if let Some((cwnd, epoch)) = flag
            && epoch > self.epoch
        {
            (self.window, self.epoch) = (cwnd, epoch);
        }
        self.window = (self.window + feedback).min(awnd).max(1000.0);
    }
}

/// A connection over a path that loses, repeats and reorders in both directions, with losses and
/// timeouts at any moment: law and transcription agree within a byte, whatever happens.
#[test]
fn the_laws_compute_the_algorithm_of_4_3() {
    let mut random = Random::new(3);
    let (mut resets, mut ignored, mut taken) = (0, 0, 0);
    for run in 0..300 {
        let config = Config {
            xcp: xcp::SenderConfig {
                loss: [LossPolicy::Tcp, LossPolicy::Maintain][run % 2],
                desired_rate: Rate(u64::MAX >> 8),
                ..config().xcp
            },
            ..config()
        };
        let mut sender = Sender::new(&config, MSS, MSS);
        let mut echo = Echo::new(MSS);
        let mut oracle = Receiver { window: 1000.0, epoch: 0 };
        let (mut window, mut epoch, mut is_flagged) = (1000.0_f64, 0_u64, false);
        let (mut data, mut acks) = (Vec::new(), Vec::new());
        for number in 0..400_u64 {
            match random.below(100) {
                0 => {
                    sender.on_timeout(&config, Time(0), Bytes(0), true);
                    if !is_flagged || window > 1000.0 {
                        (epoch, is_flagged) = (epoch + 1, true);
                    }
                    window = 1000.0;
                    resets += 1;
                }
                1 if config.xcp.loss == LossPolicy::Tcp => {
                    sender.on_loss(&config, Time(0), Bytes(0));
                    // Told in whole bytes.
                    window = (window / 2.0).floor().max(1000.0);
                    (epoch, is_flagged) = (epoch + 1, true);
                    resets += 1;
                }
                2..=49 => {
                    let (header, ours) = sent(&mut sender, &config);
                    assert_eq!((ours.epoch, ours.is_reset), (epoch as u8, is_flagged));
                    assert!((f64::from(ours.cwnd) - window).abs() <= 1.0, "{ours:?} for {window}");
                    data.push((header, ours, is_flagged.then_some((window, epoch))));
                }
                50..=79 if !data.is_empty() => {
                    // One of the last few, perhaps not for the last time.
                    let at = data.len() - 1 - random.below(data.len().min(4) as u64) as usize;
                    let (mut header, ours, flag) = data[at];
                    if random.below(4) > 0 {
                        data.remove(at);
                    }
                    header.delta = (random.below(400_000) as i32) - 180_000;
                    let rtt = f64::from(header.rtt) / 268_435_456.0;
                    let awnd = 200_000.0 + random.below(100_000) as f64;
                    oracle.data(f64::from(header.delta) * rtt, flag, awnd);
                    arrive(&mut echo, &config, MSS, Bytes(awnd as u64), &header, &ours);
                    let reply = echo.reply();
                    assert!(
                        (f64::from(reply.cwnd) - oracle.window).abs() <= 1.001,
                        "{reply:?} {}",
                        oracle.window
                    );
                    acks.push((number, reply, oracle.window, oracle.epoch));
                }
                _ if !acks.is_empty() => {
                    let at = acks.len() - 1 - random.below(acks.len().min(3) as u64) as usize;
                    let (of, reply, cwnd, of_epoch) = acks.remove(at);
                    let is_late = acks[at..].is_empty() && random.below(5) == 0;
                    sender.on_ack(&config, Time(of), &Ack { is_late, ..ack(reply) });
                    if of_epoch == epoch && !is_late {
                        (window, is_flagged) = (cwnd, false);
                        taken += 1;
                    } else {
                        ignored += 1;
                    }
                }
                _ => {}
            }
            let found = sender.window().0 as f64;
            assert!((found - window).abs() <= 1.001, "run {run}, step {number}: {found} for {window}");
        }
    }
    assert!(resets > 500 && ignored > 1000 && taken > 10_000, "{resets} {ignored} {taken}");
}

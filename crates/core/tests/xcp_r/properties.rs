//! What holds for any input.

use super::*;

/// splitmix64: tests must give the same cases everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `0..end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Numbers that a field can hold: the extremes often.
    fn word(&mut self) -> u64 {
        match self.below(10) {
            0 => 0,
            1 => u64::MAX,
            2 => u64::MAX - self.below(5),
            3 => 1 << self.below(64),
            _ => self.next() >> self.below(64),
        }
    }

    fn half(&mut self) -> u32 {
        (self.word() >> (32 * self.below(2))) as u32
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

fn any_config(random: &mut Random) -> Config {
    Config {
        xcp: xcp::SenderConfig {
            request: [RequestPolicy::Demand, RequestPolicy::Unlimited][random.below(2) as usize],
            loss: [LossPolicy::Tcp, LossPolicy::Maintain, LossPolicy::Fallback][random.below(3) as usize],
            clamp: random.coin(),
            aging: [None, Some(Ratio(random.half())), Some(Ratio::ppm(500_000))][random.below(3) as usize],
            pacing: random.coin(),
            rate_source: [RateSource::Window, RateSource::Measured][random.below(2) as usize],
            price: Ratio(random.half()),
            desired_rate: Rate(random.word()),
            ns2: random.below(3) == 0,
            thesis: false,
        },
        epochs: random.coin(),
    }
}

/// No arithmetic overflows (tests run with overflow checks); both sides keep at least one segment, and
/// the receiver, if it clamps, at most what it advertises.
#[test]
fn both_sides_survive_any_input_and_keep_one_segment() {
    let mut random = Random(9);
    for _ in 0..3000 {
        let config = any_config(&mut random);
        let mss = Bytes(if random.coin() { 1500 } else { random.word() });
        let least = mss.0.clamp(1, 65_535);
        let mut sender = Sender::new(&config, mss, Bytes(random.word()));
        let mut echo = Echo::new(Bytes(least));
        let mut now = 0_u64;
        for _ in 0..100 {
            now = now.saturating_add(random.word() >> (20 + random.below(40)));
            let flight = Bytes(random.word());
            match random.below(9) {
                0..=2 => {
                    let reply = match random.below(3) {
                        0 => echo.on_ack(),
                        1 => Reply { cwnd: random.half(), epoch: sender.epoch().0 },
                        _ => Reply { cwnd: random.half(), epoch: random.half() as u8 },
                    };
                    let ack = Ack {
                        acked: Bytes(random.word()),
                        flight,
                        awnd: Bytes(random.word()),
                        rtt: Duration(random.word()),
                        srtt: Duration(random.word()),
                        feedback: random.half() as i32,
                        is_duplicate: random.coin(),
                        in_recovery: random.coin(),
                        is_window_limited: random.coin(),
                        is_late: random.coin(),
                        reply,
                    };
                    sender.on_ack(&config, Time(now), &ack);
                }
                3 | 4 => {
                    let send = Send {
                        size: Bytes(random.word()),
                        srtt: Duration(random.word()),
                        awnd: Bytes(random.word()),
                        backlog: Bytes(random.word()),
                        inflation: Bytes(random.word()),
                        is_window_limited: random.coin(),
                    };
                    let header = sender.on_send(&config, Time(now), &send);
                    let ours = sender.on_send_header(&config);
                    assert_eq!(u64::from(ours.cwnd), sender.window().0.min(u64::from(u32::MAX)));
                    let (awnd, header) =
                        (random.word(), if random.coin() { header } else { any_header(&mut random) });
                    arrive(&mut echo, &config, Bytes(least), Bytes(awnd), &header, &ours);
                    let cwnd = u64::from(echo.on_ack().cwnd);
                    assert!(cwnd >= least, "{cwnd} of {least}");
                    assert!(!config.xcp.clamp || cwnd <= awnd.max(least), "{cwnd} beyond {awnd}");
                }
                5 => {
                    let ours =
                        Header { cwnd: random.half(), epoch: random.half() as u8, is_reset: random.coin() };
                    arrive(
                        &mut echo,
                        &config,
                        Bytes(least),
                        Bytes(random.word()),
                        &any_header(&mut random),
                        &ours,
                    );
                }
                6 => sender.on_loss(&config, Time(now), flight),
                7 => sender.on_timeout(&config, Time(now), flight, random.coin()),
                _ => sender.on_restart(&config, Time(now), Bytes(random.word())),
            }
            let _ = sender.pacing_rate(&config, Duration(random.word()));
            assert!(sender.window() >= Bytes(least), "{:?} with {config:?}", sender.window());
        }
    }
}

fn any_header(random: &mut Random) -> xcp::Header {
    xcp::Header {
        x: random.half(),
        rtt: random.half(),
        delta: random.half() as i32,
        reverse: random.half() as i32,
    }
}

/// However many ACKs are lost, the next one of the epoch brings the sender to the receiver's window.
#[test]
fn one_ack_is_enough() {
    let mut random = Random(11);
    let config = config();
    let mut sender = Sender::new(&config, MSS, MSS);
    let mut echo = Echo::new(MSS);
    let mut agreed = 0;
    for _ in 0..20_000 {
        match random.below(100) {
            0 => sender.on_timeout(&config, Time(0), Bytes(0), true),
            1 => sender.on_loss(&config, Time(0), Bytes(0)),
            _ => {}
        }
        let (mut header, ours) = sent(&mut sender, &config);
        if random.below(3) == 0 {
            continue; // lost
        }
        header.delta = random.below(100_000) as i32 - 45_000;
        arrive(&mut echo, &config, MSS, UNLIMITED, &header, &ours);
        if random.below(10) > 0 {
            continue; // the ACK is lost
        }
        sender.on_ack(&config, Time(0), &ack(echo.on_ack()));
        assert_eq!(sender.window().0, u64::from(echo.on_ack().cwnd));
        agreed += 1;
    }
    assert!(agreed > 1000);
}

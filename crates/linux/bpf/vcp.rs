// SPDX-License-Identifier: MIT OR Apache-2.0
//! VCP's laws as functions that C can call in BPF, as `laws.rs` has XCP's: names and rules are the same. With `chains`
//! they are DPCP's, with `three` TPCP's.
//!
//! The law is MPCP's with chains of one packet, of two or of three. What longer chains need is not compiled: the settings say so
//! here, as constants.
#![no_std]

#[macro_use]
mod exported;
#[path = "../../core/src/law/mod.rs"]
mod law;
#[path = "../../core/src/units/mod.rs"]
mod units;

use law::mpcp::{self, Hold, Link, Loss, Report, Sender};
use law::{Ack, Carried, LinkLaw as _, SenderLaw as _};
use units::{Bytes, Duration, Rate, Ratio, Time};

/// Packets of a chain.
const N: u32 = if cfg!(three) {
    3
} else if cfg!(chains) {
    2
} else {
    1
};

/// [`mpcp::LinkConfig`] of such chains, as large as XCP's. Spans are ns, ratios millionths.
#[repr(C)]
pub struct LinkConfig {
    capacity: u64,
    interval: u64,
    sample: u64,
    gamma: u32,
    kq: u32,
    queue_weight: u32,
    rest: [u32; 7],
}

impl LinkConfig {
    #[inline(always)]
    fn to_rust(&self) -> mpcp::LinkConfig {
        mpcp::LinkConfig {
            capacity: Rate(self.capacity),
            interval: Duration(self.interval),
            sample: Duration(self.sample),
            gamma: Ratio(self.gamma),
            kq: Ratio(self.kq),
            queue_weight: Ratio(self.queue_weight),
            ..mpcp::LinkConfig::of(N, true)
        }
    }
}

/// [`mpcp::SenderConfig`] of such chains, as large as XCP's, so that some of DPCP's have their defaults. Spans are us, ratios
/// millionths.
#[repr(C)]
pub struct SenderConfig {
    alpha: u32,
    beta: u32,
    xi: u32,
    /// 0 tcp, 1 maintain, 2 ignore.
    loss: u32,
    exponent_max: u32,
    interval: u32,
    rtt_max: u32,
    /// 0 interval, 1 round trip.
    hold: u8,
    pacing: u8,
    smooth: u8,
    /// 0 at once, 1 complete.
    cut: u8,
}

impl SenderConfig {
    #[inline(always)]
    fn to_rust(&self) -> mpcp::SenderConfig {
        mpcp::SenderConfig {
            alpha: Ratio(self.alpha),
            beta: Ratio(self.beta),
            xi: Ratio(self.xi),
            loss: match self.loss {
                0 => Loss::Tcp,
                1 => Loss::Maintain,
                _ => Loss::Ignore,
            },
            exponent_max: Ratio(self.exponent_max),
            interval: Duration(self.interval as u64 * 1000),
            rtt_max: Duration(self.rtt_max as u64 * 1000),
            hold: if self.hold == 0 { Hold::Interval } else { Hold::RoundTrip },
            pacing: self.pacing != 0,
            smooth: self.smooth != 0,
            cut: if self.cut == 0 { mpcp::Cut::AtOnce } else { mpcp::Cut::Complete },
            // An ACK tells chains of three too seldom to compare them with each other.
            zones: N == 2,
            ..mpcp::SenderConfig::of(N, true)
        }
    }
}

exported! {
    fn law_link_init(link: &mut Link, config: &LinkConfig, phase: u64, queue_phase: u64) -> u64 {
        *link = Link::new(config.to_rust(), Duration(phase), Duration(queue_phase));
        0
    }
    fn law_link_set_capacity(link: &mut Link, capacity: u64) -> u64 {
        link.set_capacity(Rate(capacity));
        0
    }
    fn law_link_on_arrival(link: &mut Link, now: u64, size: u64) -> u64 {
        link.on_arrival(Time(now), &Carried { size: Bytes(size), ..Carried::default() });
        0
    }
    fn law_link_raise(link: &Link, code: u64) -> u64 {
        link.raise(code as u8) as u64
    }
    fn law_link_next_deadline(link: &Link) -> u64 {
        link.next_deadline().0
    }
    fn law_link_on_deadline(link: &mut Link, now: u64, backlog: u64) -> u64 {
        link.be(N);
        link.on_deadline(Time(now), Bytes(backlog));
        0
    }
    fn law_link_report(link: &Link, report: &mut Report) -> u64 {
        *report = link.report();
        0
    }
    fn law_sender_init(sender: &mut Sender, mss: u64, initial_window: u64) -> u64 {
        *sender = Sender::new(&mpcp::SenderConfig::of(N, true), Bytes(mss), Bytes(initial_window));
        0
    }
    fn law_sender_on_loss(sender: &mut Sender, config: &SenderConfig, now: u64, flight: u64) -> u64 {
        sender.on_loss(&config.to_rust(), Time(now), Bytes(flight));
        0
    }
    fn law_sender_on_timeout(sender: &mut Sender, config: &SenderConfig, now: u64, flight: u64, is_first: u64) -> u64 {
        sender.on_timeout(&config.to_rust(), Time(now), Bytes(flight), is_first != 0);
        0
    }
    fn law_sender_settle(sender: &mut Sender) -> u64 {
        sender.settle();
        0
    }
    fn law_sender_zone(sender: &Sender) -> u64 {
        sender.state().level.zone() as u64
    }
    fn law_sender_window(sender: &Sender) -> u64 {
        sender.window().0
    }
    fn law_sender_pacing_rate(sender: &Sender, config: &SenderConfig, srtt: u64) -> u64 {
        match sender.pacing_rate(&config.to_rust(), Duration(srtt)) {
            Some(rate) => rate.0,
            None => 0,
        }
    }
}

#[cfg(not(chains))]
mod single {
    use super::*;
    use law::Send;
    use law::mpcp::{Counts, CountsReader};

    exported! {
        fn law_sender_on_ack(sender: &mut Sender, config: &SenderConfig, now: u64, ack: &Ack) -> u64 {
            sender.on_ack(&config.to_rust(), Time(now), ack);
            0
        }
        fn law_sender_on_send(sender: &mut Sender, config: &SenderConfig, now: u64) -> u64 {
            let mut packet = Carried::default();
            sender.on_send(&config.to_rust(), Time(now), &Send::default(), &mut packet);
            packet.ecn as u64
        }
        fn law_counts_on_data(counts: &mut Counts, code: u64, packets: u64) -> u64 {
            counts.on_data(code as u8, packets as u32);
            0
        }
        fn law_reader_on_ack(reader: &mut CountsReader, word: u64) -> u64 {
            reader.on_ack(word as u32).0 as u64
        }
    }
}

#[cfg(chains)]
mod chains {
    use super::*;
    use law::mpcp::{Algorithm2, Chains, ChainsReader, Echoed, Flow};

    exported! {
        // Returns the code with which packet `index` of a chain leaves that came with the code `found`; `record` is what is
        // remembered of its flow.
        fn law_link_mark(link: &Link, index: u64, found: u64, record: &mut u32) -> u64 {
            let mut flow = Flow::from_word(*record);
            let code = flow.mark((index as u32 % N) as u8, found as u8 & 3, &link.level(), Algorithm2::Corrected);
            *record = flow.to_word();
            code as u64
        }
        // A part of what an ACK tells: an echo in the lowest byte, and above it how many first packets came before.
        fn law_sender_on_ack(sender: &mut Sender, config: &SenderConfig, now: u64, ack: &Ack, part: u64) -> u64 {
            let (echoed, before) = (Echoed(part as u32 & 0xff), part as u32 >> 8);
            sender.on_part(&config.to_rust(), Time(now), ack, echoed, before);
            0
        }
        fn law_sender_next_place(sender: &mut Sender, config: &SenderConfig, now: u64, srtt: u64) -> u64 {
            sender.next_place(&config.to_rust(), Time(now), Duration(srtt)) as u64
        }
        // Returns how often chains were given up, and behind 8 bits whether they are.
        fn law_sender_downgrades(sender: &Sender) -> u64 {
            let state = sender.state();
            state.downgrades as u64 | (state.is_downgraded as u64) << 8
        }
        fn law_chains_on_data(chains: &mut Chains, code: u64, index: u64, packets: u64) -> u64 {
            chains.on_data(N, code as u8, index as u32, packets as u32);
            0
        }
        fn law_reader_on_ack(reader: &mut ChainsReader, word: u64) -> u64 {
            reader.on_ack(N, word as u32).to_word() as u64
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The XCP laws as functions that C can call in BPF: at most five words in, one word out.
//!
//! Built by `tests/laws.rs` for the target `bpfel-unknown-none`, never as part of the workspace. Every
//! function lies in `.text` and is hidden, so the verifier takes it as a part of its caller: callable
//! inside a spin lock, with pointers into map values. C holds the states as so many words; what C fills itself is
//! `repr(C)`. What it sees of both, `law.h`, is written by the build.
//!
//! With `window` the sender and the receiver are XCP-r's, and there is no link. With `classes` there is a census of flows beside the
//! link, with `police` a policer, with `percpu` the law of links in parts.
//!
//! The laws are modules of this file rather than a crate beside it, so that what they call among
//! themselves stays local: the BPF linker wants type information for every global name.
#![no_std]

#[cfg(classes)]
extern crate self as congestlab_core;

#[macro_use]
mod exported;
#[path = "../../core/src/law/mod.rs"]
mod law;
#[cfg(classes)]
#[path = "../../core/src/law/queue/mod.rs"]
mod queue;
#[path = "../../core/src/units/mod.rs"]
mod units;

use law::xcp::{self, Feedback, Header, LossPolicy, Profile, RateSource, RequestPolicy};
use law::{Ack, Send, SenderLaw as _};
#[cfg(window)]
use law::xcp_r::{Config, Own, Sender};
use units::{Bytes, Duration, Rate, Ratio, Time};
#[cfg(not(window))]
use xcp::{Sender, SenderConfig as Config};

/// [`xcp::SenderConfig`] without Rust's enums and options.
#[repr(C)]
pub struct SenderConfig {
    /// B/s.
    desired_rate: u64,
    /// 0 demand, 1 unlimited.
    request: u32,
    /// 0 tcp, 1 maintain, 2 fallback.
    loss: u32,
    /// 0 window, 1 measured, 2 used.
    rate_source: u32,
    /// Millionths; 0: off.
    aging: u32,
    /// Millionths.
    price: u32,
    clamp: u8,
    pacing: u8,
    ns2: u8,
    /// With XCP-r, which has none, 1: data state windows in place of the sum of the sender's own changes.
    safety_net: u8,
}

impl SenderConfig {
    #[cfg(window)]
    #[inline(always)]
    fn to_rust(&self) -> Config {
        let own = if self.safety_net == 0 { Own::Difference } else { Own::Reset };
        Config { xcp: xcp::SenderConfig { safety_net: false, ..self.to_xcp() }, epochs: true, own }
    }

    #[cfg(not(window))]
    #[inline(always)]
    fn to_rust(&self) -> Config {
        self.to_xcp()
    }

    #[inline(always)]
    fn to_xcp(&self) -> xcp::SenderConfig {
        xcp::SenderConfig {
            request: if self.request == 0 { RequestPolicy::Demand } else { RequestPolicy::Unlimited },
            loss: match self.loss {
                0 => LossPolicy::Tcp,
                1 => LossPolicy::Maintain,
                _ => LossPolicy::Fallback,
            },
            safety_net: self.safety_net != 0,
            clamp: self.clamp != 0,
            aging: if self.aging == 0 { None } else { Some(Ratio(self.aging)) },
            pacing: self.pacing != 0,
            rate_source: match self.rate_source {
                0 => RateSource::Window,
                1 => RateSource::Measured,
                _ => RateSource::Used,
            },
            feedback: Feedback::Rate, // what draft-03's receivers return
            verify: true,
            price: Ratio(self.price),
            desired_rate: Rate(self.desired_rate),
            // The thesis's is not a sender to run in earnest.
            profile: if self.ns2 != 0 { Profile::Ns2 } else { Profile::Standard },
        }
    }
}

exported! {
    fn law_sender_on_loss(sender: &mut Sender, config: &SenderConfig, now: u64, flight: u64) -> u64 {
        sender.on_loss(&config.to_rust(), Time(now), Bytes(flight));
        0
    }
    fn law_sender_on_timeout(sender: &mut Sender, config: &SenderConfig, now: u64, flight: u64, is_first: u64) -> u64 {
        sender.on_timeout(&config.to_rust(), Time(now), Bytes(flight), is_first != 0);
        0
    }
    fn law_sender_window(sender: &Sender) -> u64 {
        sender.window().0
    }
    // Returns how often the receiver has claimed more than was asked for, modulo 2^32.
    fn law_sender_lies(sender: &Sender) -> u64 {
        sender.asked().lies() as u64
    }
    fn law_sender_pacing_rate(sender: &Sender, config: &SenderConfig, srtt: u64) -> u64 {
        match sender.pacing_rate(&config.to_rust(), Duration(srtt)) {
            Some(rate) => rate.0,
            None => 0,
        }
    }
}

#[cfg(not(window))]
mod rate {
    use super::*;
    use law::LinkLaw as _;
    use xcp::{CumulativeEcho, Echo, EchoReader, Link, LinkConfig, Report};

    exported! {
        fn law_link_init(link: &mut Link, config: &LinkConfig, phase: u64, queue_phase: u64) -> u64 {
            *link = Link::new(*config, Duration(phase), Duration(queue_phase));
            0
        }
        fn law_link_set_capacity(link: &mut Link, capacity: u64) -> u64 {
            link.set_capacity(Rate(capacity));
            0
        }
        fn law_link_on_arrival(link: &mut Link, now: u64, header: &Header, size: u64) -> u64 {
            link.on_arrival(Time(now), header, Bytes(size));
            0
        }
        fn law_link_on_departure(link: &mut Link, now: u64, header: &mut Header, size: u64, backlog: u64) -> u64 {
            link.on_departure(Time(now), header, Bytes(size), Bytes(backlog));
            0
        }
        fn law_link_on_other_departure(link: &mut Link, now: u64, backlog: u64) -> u64 {
            link.on_other_departure(Time(now), Bytes(backlog));
            0
        }
        fn law_link_next_deadline(link: &Link) -> u64 {
            link.next_deadline().0
        }
        fn law_link_on_deadline(link: &mut Link, now: u64, backlog: u64) -> u64 {
            link.on_deadline(Time(now), Bytes(backlog));
            0
        }
        fn law_link_report(link: &Link, report: &mut Report) -> u64 {
            *report = link.report();
            0
        }
        fn law_sender_init(sender: &mut Sender, mss: u64, initial_window: u64) -> u64 {
            *sender = Sender::new(Bytes(mss), Bytes(initial_window));
            0
        }
        // Of a flow that has sent before, whose requests stay; memory without a sender is zero.
        fn law_sender_resume(sender: &mut Sender, mss: u64, window: u64) -> u64 {
            let asked = sender.asked();
            *sender = Sender::new(Bytes(mss), Bytes(window));
            sender.set_asked(asked);
            0
        }
        fn law_sender_on_ack(sender: &mut Sender, config: &SenderConfig, now: u64, ack: &Ack) -> u64 {
            sender.on_ack(&config.to_rust(), Time(now), ack);
            0
        }
        fn law_sender_on_restart(sender: &mut Sender, config: &SenderConfig, now: u64, initial_window: u64) -> u64 {
            sender.on_restart(&config.to_rust(), Time(now), Bytes(initial_window));
            0
        }
        fn law_sender_note_losses(sender: &mut Sender, config: &SenderConfig, lost: u64) -> u64 {
            sender.note_losses(&config.to_rust(), Bytes(lost));
            0
        }
        fn law_sender_on_send(sender: &mut Sender, config: &SenderConfig, now: u64, send: &Send, header: &mut Header) -> u64 {
            *header = sender.header(&config.to_rust(), Time(now), send);
            0
        }
        fn law_echo_on_data(echo: &mut Echo, header: &Header) -> u64 {
            echo.on_data(header);
            0
        }
        fn law_echo_on_ack(echo: &mut Echo) -> u64 {
            echo.on_ack() as i64 as u64
        }
        fn law_cumulative_on_data(echo: &mut CumulativeEcho, header: &Header, packets: u64) -> u64 {
            echo.on_data(header, packets as u32);
            0
        }
        fn law_cumulative_on_ack(echo: &mut CumulativeEcho) -> u64 {
            echo.on_ack() as u64
        }
        fn law_reader_on_ack(reader: &mut EchoReader, sum: u64) -> u64 {
            reader.on_ack(sum as u32) as i64 as u64
        }
    }
}

#[cfg(classes)]
mod classes {
    use super::*;
    use queue::census;

    exported! {
        fn law_census_cell(flow: u64) -> u64 {
            census::cell(flow as u32) as u64
        }
        fn law_census_data(size: u64) -> u64 {
            census::data(Bytes(size)) as u64
        }
        // Returns the part of XCP's class, B/s; the weight is in millionths.
        fn law_census_share(capacity: u64, weight: u64) -> u64 {
            Ratio::ppm(weight as u32).of(capacity)
        }
    }
}

#[cfg(window)]
mod window {
    use super::*;
    use law::xcp_r::{self, Data, Echo, Reply};

    /// Data packets that came as one, at their receiver.
    #[repr(C)]
    pub struct Came {
        /// Round trip time of XCP's header, 2^-28 s.
        rtt: u32,
        /// Feedback of XCP's header, B/s.
        delta: i32,
        /// [`xcp_r::Header`] as a word.
        told: u32,
        /// Number of packets.
        packets: u32,
        /// Size of a full IP packet.
        mss: u64,
        /// Window that the receiver advertises, bytes of IP packets.
        awnd: u64,
    }

    exported! {
        // Also of a sender that another law has ruled, whose epochs go on; memory without one is zero.
        fn law_sender_init(sender: &mut Sender, config: &SenderConfig, mss: u64, initial_window: u64) -> u64 {
            sender.resume(&config.to_rust(), Bytes(mss), Bytes(initial_window));
            sender.forget_requests();
            0
        }
        // Of a flow that has sent before, whose requests stay.
        fn law_sender_resume(sender: &mut Sender, config: &SenderConfig, mss: u64, window: u64) -> u64 {
            sender.resume(&config.to_rust(), Bytes(mss), Bytes(window));
            0
        }
        fn law_sender_restate(sender: &mut Sender, mss: u64, window: u64) -> u64 {
            sender.restate(Bytes(mss), Bytes(window));
            0
        }
        // Returns the change that the receiver made since it was heard last, bytes.
        fn law_sender_on_ack(sender: &mut Sender, config: &SenderConfig, now: u64, ack: &mut Ack, told: u64) -> u64 {
            let (before, epoch) = (sender.heard().0, sender.epoch().0);
            ack.reply = Reply::from_word(told as u32).into();
            sender.on_ack(&config.to_rust(), Time(now), ack);
            if sender.epoch().0 == epoch { sender.heard().0.wrapping_sub(before) } else { 0 }
        }
        // Returns XCP-r's header as a word.
        fn law_sender_on_send(sender: &mut Sender, config: &SenderConfig, now: u64, send: &Send, header: &mut Header) -> u64 {
            let config = config.to_rust();
            *header = sender.header(&config, Time(now), send);
            sender.window_header(&config).to_word() as u64
        }
        fn law_sender_epoch(sender: &Sender) -> u64 {
            sender.epoch().0 as u64
        }
        fn law_echo_init(echo: &mut Echo, mss: u64) -> u64 {
            *echo = Echo::new(Bytes(mss));
            0
        }
        fn law_echo_on_data(echo: &mut Echo, config: &SenderConfig, came: &Came) -> u64 {
            let data = Data {
                header: Header { rtt: came.rtt, delta: came.delta, ..Header::default() },
                window: xcp_r::Header::from_word(came.told),
                mss: Bytes(came.mss),
                awnd: Bytes(came.awnd),
            };
            echo.take_all(&config.to_rust(), &data, came.packets);
            0
        }
        // Returns the window with its epoch as a word.
        fn law_echo_on_ack(echo: &Echo) -> u64 {
            echo.reply().to_word() as u64
        }
    }
}

#[cfg(percpu)]
mod percpu {
    use super::*;
    use xcp::{Link, Part};

    exported! {
        // Returns 1 if the whole has to lend before that, and then the packet has not passed. Interval 0: it has lent.
        fn law_part_pass(part: &mut Part, interval: u64, header: &mut Header, size: u64) -> u64 {
            if interval != 0 && part.wants(interval, header, Bytes(size)) {
                return 1;
            }
            part.on_arrival(header, Bytes(size));
            part.on_departure(header, Bytes(size));
            0
        }
        fn law_part_other(part: &mut Part, size: u64) -> u64 {
            part.on_other_arrival(Bytes(size));
            0
        }
        fn law_link_lend(link: &mut Link, part: &mut Part, header: &Header, size: u64, parts: u64) -> u64 {
            link.lend(part, header, Bytes(size), parts);
            0
        }
        fn law_link_take_in(link: &mut Link, part: &mut Part) -> u64 {
            link.take_in(part);
            0
        }
        fn law_link_interval_number(link: &Link) -> u64 {
            link.interval_number()
        }
    }
}

#[cfg(police)]
mod police {
    use super::*;
    use law::police::{Arrival, Bucket, Police, Record, WAYS};

    exported! {
        fn law_police_start(police: &mut Police) -> u64 {
            *police = Police::new();
            0
        }
        // Returns the place of the flow's record; behind the last: it has none.
        fn law_police_find(bucket: &Bucket, flow: u64) -> u64 {
            bucket.find(flow).unwrap_or(WAYS) as u64
        }
        fn law_police_loss(record: &Record, flow: u64, now: u64) -> u64 {
            record.loss(flow, Time(now))
        }
        fn law_police_give(bucket: &mut Bucket, place: u64, flow: u64, now: u64, size: u64) -> u64 {
            bucket.give(place as usize, flow, Time(now), Bytes(size));
            0
        }
        // Returns 0 if the packet is to be dropped. The record is that of its flow if that is known.
        fn law_police_judge(police: &mut Police, record: &mut Record, is_known: u64, arrival: &Arrival, header: &mut Header) -> u64 {
            police.judge(arrival, if is_known != 0 { Some(record) } else { None }, header) as u64
        }
        fn law_police_note_grant(record: &mut Record, delta: u64) -> u64 {
            record.note_grant(delta as i32);
            0
        }
        fn law_police_note_drop(record: &mut Record) -> u64 {
            record.note_drop();
            0
        }
    }
}

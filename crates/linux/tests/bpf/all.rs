//! Every law of the list, as `tests/laws.rs` compiles it for BPF: the entry points of the enums, which
//! reach each law. No object ships with it; what ships is `bpf/laws.rs`.
#![no_std]

#[path = "../../../core/src/law/mod.rs"]
mod law;
#[path = "../../../core/src/units/mod.rs"]
mod units;

use law::mpcp;
use law::xcp_i::{self, Address, Crossed, Entry, Extension};
use law::{Ack, Ask, Carried, Delivery, Echo, Expected, Heard, Link, Listening, Segment, Send, Sender};
use law::{SenderConfig, Steered, Told, Turn};
use units::{Bytes, Duration, Rate, Time};

/// A packet that is about to leave.
#[repr(C)]
pub struct Leaving {
    send: Send,
    srtt: u64,
    packet: Carried,
}

/// An acknowledgment of XCP-i's: a function of BPF has five arguments at most.
#[repr(C)]
pub struct Answer {
    id: u32,
    nonce: u64,
    takes: u64,
}

macro_rules! exported {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) -> u64 $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $kind),*) -> u64 $body
    )*};
}

exported! {
    fn link_on_arrival(link: &mut Link, now: u64, packet: &Carried) -> u64 {
        link.on_arrival(Time(now), packet);
        0
    }
    fn link_on_departure(link: &mut Link, now: u64, packet: &mut Carried, backlog: u64) -> u64 {
        link.on_departure(Time(now), packet, Bytes(backlog));
        0
    }
    fn link_on_deadline(link: &mut Link, now: u64, backlog: u64) -> u64 {
        link.on_deadline(Time(now), Bytes(backlog));
        link.next_deadline().0
    }
    fn link_set_capacity(link: &mut Link, capacity: u64) -> u64 {
        link.set_capacity(Rate(capacity));
        0
    }
    fn link_close_told(link: &mut Link, now: u64, told: &Told) -> u64 {
        link.close_told(Time(now), told);
        link.input(Time(now)).0
    }
    fn sender_on_ack(sender: &mut Sender, config: &SenderConfig, now: u64, ack: &Ack) -> u64 {
        sender.on_ack(config, Time(now), ack);
        sender.window().0
    }
    fn sender_on_delivery(sender: &mut Sender, config: &SenderConfig, now: u64, delivery: &Delivery) -> u64 {
        u64::from(sender.on_delivery(config, Time(now), delivery))
    }
    fn sender_probe(sender: &mut Sender, config: &SenderConfig, now: u64, ask: &Ask) -> u64 {
        match sender.probe(config, Time(now), ask) {
            Turn::Send(probe) => probe as u64,
            Turn::Wait(until) => until.0,
        }
    }
    fn sender_on_probe_ack(sender: &mut Sender, config: &SenderConfig, awnd: u64) -> u64 {
        sender.on_probe_ack(config, Bytes(awnd));
        sender.window().0
    }
    fn sender_slow_start(sender: &mut Sender, config: &SenderConfig, growth: u64) -> u64 {
        if !sender.slow_start(config, Bytes(growth)) {
            sender.leave_slow_start(config);
        }
        sender.window().0
    }
    fn sender_on_loss(sender: &mut Sender, config: &SenderConfig, now: u64, flight: u64) -> u64 {
        sender.on_loss(config, Time(now), Bytes(flight));
        sender.window().0
    }
    fn sender_on_timeout(sender: &mut Sender, config: &SenderConfig, now: u64, flight: u64, is_first: u64) -> u64 {
        sender.on_timeout(config, Time(now), Bytes(flight), is_first != 0);
        sender.window().0
    }
    fn sender_on_restart(sender: &mut Sender, config: &SenderConfig, now: u64, initial_window: u64) -> u64 {
        sender.on_restart(config, Time(now), Bytes(initial_window));
        sender.window().0
    }
    fn sender_on_send(sender: &mut Sender, config: &SenderConfig, now: u64, leaving: &mut Leaving) -> u64 {
        let Leaving { send, srtt, packet } = leaving;
        sender.on_send(config, Time(now), send, Duration(*srtt), packet).map_or(0, |rate| rate.0)
    }
    fn order_write(order: u64, segment: &mut Segment, index: u64) -> u64 {
        let order = if order == 0 { mpcp::Order::Swap } else { mpcp::Order::Checksum };
        order.write(segment, index as u8) as u64
    }
    fn order_restore(order: u64, segment: &mut Segment, n: u64, expected: &Expected) -> u64 {
        let order = if order == 0 { mpcp::Order::Swap } else { mpcp::Order::Checksum };
        order.restore(segment, n as u32, expected) as u64
    }
    fn sender_pacing_rate(sender: &Sender, config: &SenderConfig, srtt: u64) -> u64 {
        sender.pacing_rate(config, Duration(srtt)).map_or(0, |rate| rate.0)
    }
    fn echo_on_data(config: &SenderConfig, echo: &mut Echo, packet: &Carried, around: &Listening) -> u64 {
        (echo.on_data(config, packet, *around) == Heard::Taken) as u64
    }
    fn echo_on_ack(config: &SenderConfig, echo: &mut Echo, around: &Listening) -> u64 {
        let reply = echo.on_ack(config, *around);
        reply.word as u64 | (reply.byte as u64) << 32
    }
    fn extension_on_packet(extension: &mut Extension, own: u64) -> u64 {
        let crossed = extension.crossed();
        *extension = extension.forwarded(Address(own as u32));
        (crossed == Crossed::Cloud) as u64
    }
    fn entry_on_packet(entry: &mut Entry, now: u64) -> u64 {
        let action = entry.on_packet(Time(now));
        action as u64 | (entry.on_turn(Time(now)) as u64) << 8
    }
    fn entry_begin(entry: &mut Entry, config: &xcp_i::Config, now: u64, id: u64, nonce: u64) -> u64 {
        entry.begin(config, Time(now), id as u32, nonce);
        entry.next_deadline(config).0
    }
    fn entry_on_ack(entry: &mut Entry, config: &xcp_i::Config, now: u64, rtt: u64, answer: &Answer) -> u64 {
        let fits = entry.on_ack(config, Time(now), answer.id, answer.nonce, Duration(answer.takes));
        entry.set_rtt(Duration(rtt));
        fits as u64
    }
    fn entry_on_bandwidth(entry: &mut Entry, config: &xcp_i::Config, now: u64, bandwidth: u64) -> u64 {
        entry.on_bandwidth(config, Time(now), bandwidth as i64);
        entry.bandwidth(Time(now)).unwrap_or(0) as u64
    }
    fn entry_on_nothing(entry: &mut Entry, config: &xcp_i::Config, now: u64) -> u64 {
        entry.on_nothing(config, Time(now));
        entry.is_overdue(config, Time(now)) as u64
    }
    fn entry_on_deadline(entry: &mut Entry, config: &xcp_i::Config, now: u64) -> u64 {
        let action = entry.on_deadline(config, Time(now));
        action as u64 | (entry.state(Time(now)) as u64) << 8
    }
}

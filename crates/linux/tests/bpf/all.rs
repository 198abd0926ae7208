//! Every law of the list, as `tests/laws.rs` compiles it for BPF: the entry points of the enums, which
//! reach each law. No object ships with it; what ships is `bpf/laws.rs`.
#![no_std]

#[path = "../../../core/src/law/mod.rs"]
mod law;
#[path = "../../../core/src/units/mod.rs"]
mod units;

use law::xcp::{Header, Told};
use law::xcp_i::{self, Address, Crossed, Entry, Extension};
use law::{mpcp, xcp_r};
use law::{Ack, Ask, Data, Delivery, Echo, Link, Packet, Reply, Send, Sender, SenderConfig, Turn};
use units::{Bytes, Duration, Rate, Time};

/// A packet as a program of the kernel would describe it.
#[repr(C)]
pub struct Seen {
    size: u64,
    header: Header,
    has_header: u32,
    ecn: u32,
    segment: mpcp::Segment,
    flow: mpcp::Flow,
}

impl Packet for Seen {
    #[inline(always)]
    fn size(&self) -> Bytes {
        Bytes(self.size)
    }

    #[inline(always)]
    fn xcp(&self) -> Option<Header> {
        if self.has_header == 0 { None } else { Some(self.header) }
    }

    #[inline(always)]
    fn set_xcp(&mut self, header: Header) {
        self.header = header;
    }

    #[inline(always)]
    fn ecn(&self) -> u8 {
        self.ecn as u8
    }

    #[inline(always)]
    fn set_ecn(&mut self, code: u8) {
        self.ecn = code as u32;
    }

    #[inline(always)]
    fn segment(&self) -> Option<mpcp::Segment> {
        Some(self.segment)
    }

    /// The value of a map's entry, which the program has looked up.
    #[inline(always)]
    fn flow(&mut self, _now: Time, _is_new: bool) -> Option<&mut mpcp::Flow> {
        Some(&mut self.flow)
    }
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
    fn link_on_arrival(link: &mut Link, now: u64, packet: &Seen) -> u64 {
        link.on_arrival(Time(now), packet);
        0
    }
    fn link_on_departure(link: &mut Link, now: u64, packet: &mut Seen, backlog: u64) -> u64 {
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
    fn sender_on_send(sender: &mut Sender, config: &SenderConfig, now: u64, send: &Send, header: &mut Header) -> u64 {
        match sender.on_send(config, Time(now), send) {
            Some(found) => {
                *header = found;
                1
            }
            None => 0,
        }
    }
    fn sender_on_send_window(sender: &mut Sender, config: &SenderConfig, header: &mut xcp_r::Header) -> u64 {
        match sender.on_send_window(config) {
            Some(found) => {
                *header = found;
                1
            }
            None => 0,
        }
    }
    fn sender_on_send_place(sender: &mut Sender, config: &SenderConfig, now: u64, srtt: u64) -> u64 {
        sender.on_send_place(config, Time(now), Duration(srtt)).map_or(u64::MAX, |place| place as u64)
    }
    fn order_write(order: u64, segment: &mut mpcp::Segment, index: u64) -> u64 {
        let order = if order == 0 { mpcp::Order::Swap } else { mpcp::Order::Checksum };
        order.write(segment, index as u8) as u64
    }
    fn order_restore(order: u64, segment: &mut mpcp::Segment, n: u64, expected: &mpcp::Expected) -> u64 {
        let order = if order == 0 { mpcp::Order::Swap } else { mpcp::Order::Checksum };
        order.restore(segment, n as u32, expected) as u64
    }
    fn sender_pacing_rate(sender: &Sender, config: &SenderConfig, srtt: u64) -> u64 {
        sender.pacing_rate(config, Duration(srtt)).map_or(0, |rate| rate.0)
    }
    fn echo_on_data(config: &SenderConfig, echo: &mut Echo, data: &Data) -> u64 {
        config.on_data(echo, data);
        0
    }
    fn echo_on_ack(echo: &mut Echo) -> u64 {
        match echo.on_ack() {
            Reply::Feedback(feedback) => feedback as i64 as u64,
            Reply::Window(reply) => (reply.cwnd as u64) << 8 | reply.epoch as u64,
            Reply::Code(echoed) => echoed.0 as u64,
        }
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

//! Sans-IO elements: queues, links, TCP-like sender and receiver.
//!
//! The machines that queue, pace, acknowledge and retransmit, and that carry the decisions of the
//! laws in `congestlab-core`. No clock, no thread, no I/O: whoever drives them passes the time in.
//!
//! A port, driven by hand:
//!
//! ```
//! use congestlab_core::units::BitRate;
//! use congestlab_net::packet::{PS_PER_NS, Packet, Picos};
//! use congestlab_net::port::{Output, Port, PortConfig, Streams};
//! use congestlab_net::{queue::Limit, random::Stream, service::Service};
//!
//! /// Times at which packets reach the far end of the link.
//! struct FarEnd(Vec<Picos>);
//!
//! impl Output for FarEnd {
//!     fn deliver(&mut self, packet: &mut Packet) {
//!         self.0.push(packet.at);
//!     }
//! }
//!
//! // At 12 Mbit/s a packet of 1500 B takes 1 ms; propagation takes 10 ms, and two packets may wait.
//! const MS: Picos = 1_000_000 * PS_PER_NS;
//! let config = PortConfig::new(Service::Fixed(BitRate(12_000_000)), 10 * MS, Limit::Packets(2));
//! let streams = Streams::new(|name| Stream::named(1, name));
//! let (mut port, mut far_end) = (Port::new(&config, streams, 0, 100 * MS), FarEnd(Vec::new()));
//!
//! for seq in 0..4 {
//!     port.advance_to_arrival(MS, &mut far_end);
//!     port.arrive(MS, Packet { seq, size: 1500, ..Packet::default() }, &mut far_end);
//! }
//! port.advance_before(100 * MS + 1, &mut far_end);
//! port.finish(100 * MS);
//!
//! assert_eq!(far_end.0, [12 * MS, 13 * MS, 14 * MS]);
//! assert_eq!(port.stats().counts().dropped_packets(), 1); // the fourth found the queue full
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod capacity;
pub mod errors;
pub mod estimator;
mod flows;
pub mod impairments;
pub mod medium;
pub mod packet;
mod policer;
pub mod port;
pub mod queue;
pub mod random;
pub mod service;
pub mod source;
pub mod stats;
pub mod tcp;
pub mod trace;
pub mod xcp_i;

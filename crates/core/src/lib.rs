//! Units, wire formats and control laws: what packets mean and what each party decides.
//!
//! Pure integer state machines that the simulator, user space and the kernel (as BPF) all run.
//! Nothing in this crate knows the time, allocates, uses floats or can panic.
//!
//! - [`units`]: time, data and rates as types; rounding and the text of units.
//! - [`wire`]: headers as bytes.
//! - [`capacity`]: what a link's law is told of a capacity that changes, and when it is believed.
//! - [`law`]: one file or folder per protocol, with up to three parts (link, sender, echo).
//!
//! XCP's link law, driven by hand for one control interval:
//!
//! ```
//! use congestlab_core::law::LinkLaw as _;
//! use congestlab_core::law::xcp::{Header, Link, LinkConfig};
//! use congestlab_core::units::{Bytes, Duration, Rate, Time};
//!
//! // 10 Mbit/s; the first control interval ends after 50 ms, as does the first estimate of the queue.
//! let config = LinkConfig { capacity: Rate(1_250_000), ..LinkConfig::DEFAULT };
//! let end = Duration(50_000_000);
//! let mut link = Link::new(config, end, end);
//!
//! // A flow sends 1000 B every 10 ms, has a round trip time of 100 ms, and asks for all that it can get.
//! let size = Bytes(1000);
//! let asked = Header { x: Duration(10_000_000).to_header(), rtt: Duration(100_000_000).to_header(),
//!     delta: i32::MAX, reverse: 0 };
//! for packet in 0..5 {
//!     let (now, mut header) = (Time(packet * 10_000_000), asked);
//!     link.on_arrival(now, &header, size);
//!     link.on_departure(now, &mut header, size, Bytes(0));
//!     assert_eq!(header.delta, 0, "nothing is known yet, so nothing is granted");
//! }
//!
//! link.on_deadline(Time::ZERO + end, Bytes(0));
//! assert_eq!(link.report().input, Rate(100_000)); // y = 5 * 1000 B / 50 ms
//! assert_eq!(link.report().feedback, 460_000); // F = alpha (C - y), no queue being there
//!
//! let mut header = asked;
//! link.on_departure(Time::ZERO + end, &mut header, size, Bytes(0));
//! assert!((91_999..=92_000).contains(&header.delta)); // the packet's fifth of F, B/s
//! ```
#![no_std]
#![forbid(unsafe_code)]

// Words are strings, also where a compiler for kernels is told of `words` alone.
#[cfg(any(feature = "alloc", feature = "words"))]
extern crate alloc;

#[cfg(any(test, feature = "outside"))]
extern crate std;

pub mod capacity;
pub mod law;
pub mod units;
pub mod wire;

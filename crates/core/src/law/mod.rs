//! Control laws: one file or folder per protocol, with up to three parts (link, sender, echo), and the list of protocols
//! ([`Protocol::all`]), which names all that there are with their settings. What queues do is the role of [`queue`].

pub mod abc;
mod apart;
pub mod bbr;
pub mod bbr3;
pub mod bic;
pub mod cubic;
pub mod dctcp;
mod echo;
pub mod highspeed;
pub mod hpcc;
mod link;
mod list;
pub mod mpcp;
#[cfg(feature = "outside")]
pub mod outside;
mod packet;
pub mod peach;
mod places;
pub mod police;
pub mod prague;
pub mod protocol;
pub mod pxcp;
// Programs of the kernel that run one have this module beside those of the laws, and no other has it.
#[cfg(not(target_arch = "bpf"))]
pub mod queue;
pub mod rcp;
pub mod reno;
mod reply;
pub mod scone;
mod segment;
mod sender;
pub mod settings;
mod shown;
pub mod vegas;
#[cfg(feature = "words")]
pub mod words;
pub mod xcp;
pub mod xcp2;
pub mod xcp_i;
pub mod xcp_r;
pub mod xcp_r_v0;

pub use echo::{EchoLaw, Heard, Lie, Listening, Numbers, Receiving};
pub use link::{LinkLaw, Pool, Remembers, Series, Steered, Told};
pub use list::{Echo, Law, Link, LinkConfig, LinkReport, LinkView, Protocol, Sender, SenderConfig};
pub use packet::{Carried, Header, On, OptionBytes, Packet, Tag, Words};
pub use reply::Reply;
pub use segment::{Expected, Segment};
pub use sender::{Ack, Ask, Delivery, Giver, Needs, Network, Probe, Send, SenderLaw, Threshold, Turn};
pub use shown::{Column, Hue, Look, Shape};

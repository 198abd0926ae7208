//! Puts congestlab's control laws on real packets.
//!
//! Everything here changes or measures a running Linux: XCP as a BPF program at an interface
//! ([`router`]) and in the kernel's TCP ([`host`]), links in user space ([`link`]), a gateway that
//! splits connections ([`gateway`]), a tester of others' elements ([`scone`]), and what they need of the kernel
//! ([`sys`], [`doctor`]). A command that changes the system undoes the change, or says how to. Labs that run a scenario with
//! real TCP are a crate of their own, `congestlab-lab`.
//!
//! XCP at an interface, which needs root:
//!
//! ```no_run
//! use congestlab_core::units::BitRate;
//! use congestlab_linux::router::{self, Config, Encoding, Queue};
//!
//! let rate = BitRate(100_000_000);
//! let config = Config {
//!     rate,
//!     law: router::law(rate),
//!     encoding: Encoding::Option,
//!     shape: Some(Queue::default_for(rate)),
//! };
//! router::attach("eth1", &config)?;
//! for status in router::status(Some("eth1"))? {
//!     println!("feedback {} B/s, {} packets wait", status.sample.feedback_Bps, status.queue.queue_packets);
//! }
//! router::detach("eth1")?;
//! # Ok::<(), congestlab_linux::Error>(())
//! ```

pub mod doctor;
pub mod edge;
mod encoding;
pub mod error;
pub mod gateway;
pub mod host;
mod interface;
pub mod link;
pub mod router;
pub mod scone;
pub mod standing;
pub mod supervisor;
pub mod sys;

use error::Context as _;
pub use error::Error;
pub use interface::ETHERNET;

/// Makes the calling thread, and those that it starts from now on, one of the user `congestlab` (`nobody` where that does not
/// exist), in no other group and without capabilities, for good. For threads that read what strangers send.
///
/// # Errors
/// If the kernel refuses, or neither user exists.
pub fn give_up_rights() -> error::Result<()> {
    sys::privilege::reduce_thread(&sys::user::User::own()?)
        .context(|| "can not give up the rights of root".into())
}

//! Laws that are no part of this crate. A program gives the configuration of its [`LinkLaw`](super::LinkLaw) or
//! [`SenderLaw`](super::SenderLaw) to [`link()`] or [`sender()`], and the law runs as those of the list do. Once [`add`]ed, its
//! protocol is on the list: scenarios name it.
//!
//! They cost more than those: each call goes through a table, each configuration is found by its type. Nothing else
//! differs. What packets meet is `cold`, so that the laws of the list pay nothing for the door. Kernels have none of it.

mod erased;

pub use erased::{Echo, Link, LinkConfig, Report, Sender, SenderConfig, View, fits};

use super::Protocol;
use super::words::{LinkWords, SenderWords};
use alloc::vec::Vec;
use core::fmt::{self, Debug};
use core::marker;
use erased::SERIES_MAX;

/// Returns the protocols that the program has added.
pub fn protocols() -> &'static [Protocol] {
    Protocol::added()
}

/// Why protocols can not be on the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddError {
    /// The list is as the program made it before.
    Twice,
    /// The name is that of another protocol.
    Taken(&'static str),
    /// The name has other letters than a to z, 0 to 9 and `-`, or does not begin with a to z.
    Name(&'static str),
    /// The protocol has no part for links and none for senders.
    Empty(&'static str),
    /// The part of the protocol says that it is of another name, which its results would have.
    Called(&'static str, &'static str),
    /// The protocol has more series for links than are kept.
    Series(&'static str, usize),
    /// The link law can be timed and told what is spare, which is for laws of the list alone.
    Steered(&'static str),
}

impl fmt::Display for AddError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice => write!(out, "protocols were added before; a program adds all of its own at once"),
            Self::Taken(name) => write!(out, "there is a protocol {name} already"),
            Self::Name(name) => {
                write!(out, "{name:?} is no name of a protocol: a to z first, then a to z, 0 to 9 and -")
            }
            Self::Empty(name) => write!(out, "protocol {name} has a law neither for links nor for senders"),
            Self::Called(name, own) => {
                write!(
                    out,
                    "a law of protocol {name} returns {own:?} as its name; it must be that of a protocol added with it"
                )
            }
            Self::Series(name, count) => {
                write!(out, "protocol {name} has {count} series for links; {SERIES_MAX} are the most")
            }
            Self::Steered(name) => {
                write!(
                    out,
                    "the link law of protocol {name} says IS_STEERED; XCP-i's virtual routers take laws of the list alone"
                )
            }
        }
    }
}

impl core::error::Error for AddError {}

/// Puts protocols on the list, once, before anything asks for it.
///
/// # Errors
/// If one of them can not be there; then none is.
pub fn add(protocols: Vec<Protocol>) -> Result<(), AddError> {
    for (place, protocol) in protocols.iter().enumerate() {
        let name = protocol.name;
        let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_letter) {
            return Err(AddError::Name(name));
        }
        if name == "none"
            || Protocol::of(name).is_some()
            || protocols[..place].iter().any(|other| other.name == name)
        {
            return Err(AddError::Taken(name));
        }
        if protocol.link.is_none() && protocol.sender.is_none() {
            return Err(AddError::Empty(name));
        }
        if protocol.link_series.len() > SERIES_MAX {
            return Err(AddError::Series(name, protocol.link_series.len()));
        }
        if let Some(super::LinkConfig::Outside(config)) = &protocol.link
            && config.is_steered()
        {
            return Err(AddError::Steered(name));
        }
        let own = [
            protocol.link.as_ref().map(super::LinkConfig::name),
            protocol.sender.as_ref().map(super::SenderConfig::name),
        ];
        for own in own.into_iter().flatten() {
            if !protocols.iter().any(|other| other.name == own) {
                return Err(AddError::Called(name, own));
            }
        }
    }
    if Protocol::add(protocols) { Ok(()) } else { Err(AddError::Twice) }
}

/// Returns the paths of the types that are the protocol's link law and its sender law; `None`: it has none, or one of the
/// list.
pub fn types(protocol: &Protocol) -> [Option<&'static str>; 2] {
    let link = match &protocol.link {
        Some(super::LinkConfig::Outside(config)) => Some(config.path()),
        _ => None,
    };
    let sender = match &protocol.sender {
        Some(super::SenderConfig::Outside(config)) => Some(config.path()),
        _ => None,
    };
    [link, sender]
}

/// Returns the configuration of a link law as one of the list.
pub fn link<L>(config: L::Config) -> super::LinkConfig
where
    L: LinkWords + Clone + Debug + marker::Send + Sync + 'static,
    L::Config: Clone + Debug + PartialEq + marker::Send + Sync + 'static,
    L::View: marker::Send + Sync,
{
    super::LinkConfig::Outside(LinkConfig::of::<L>(config))
}

/// Returns the configuration of a sender law as one of the list.
pub fn sender<L>(config: L::Config) -> super::SenderConfig
where
    L: SenderWords + Clone + Debug + marker::Send + Sync,
    L::Config: Clone + Debug + PartialEq + marker::Send + Sync + 'static,
    L::Echo: Clone + Debug + PartialEq + marker::Send + Sync + 'static,
{
    super::SenderConfig::Outside(SenderConfig::of::<L>(config))
}

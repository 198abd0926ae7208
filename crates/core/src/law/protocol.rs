//! A protocol as the file of its law declares it. The file states its own types of configurations, so no law imports the list of
//! laws, which imports them all.

use super::{Column, Look};

/// A protocol as scenarios name it. One law file may have several, which are presets of one law. `L` is the configuration of a
/// link law and `S` that of a sender law; `Infallible` is the type where there is none. The list has the protocols of all laws,
/// with the enums of all configurations: [`law::Protocol`](super::Protocol).
#[derive(Clone, Debug)]
pub struct Protocol<L, S> {
    /// Name in a scenario.
    pub name: &'static str,
    /// Description in a line.
    pub about: &'static str,
    /// Page of the protocol: `docs/protocols/<page>.md`.
    pub page: &'static str,
    /// Look in pictures.
    pub look: Look,
    /// Series that the law adds to those of links.
    pub link_series: &'static [Column],
    /// Series that the law adds to those of flows.
    pub flow_series: &'static [Column],
    /// Link law and its default configuration; `None`: links run none.
    pub link: Option<L>,
    /// Sender law and its default configuration; `None`: flows run none.
    pub sender: Option<S>,
}

//! Routers, hosts and gateways that stand on this machine because somebody attached them, in this and all named network
//! namespaces. They stay until they are taken away, also those whose owner was killed.

use std::fmt;

use serde::Serialize;

use crate::sys::netns::Namespace;
use crate::{gateway, host, router};

/// The kind of a thing that stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Kind {
    /// A router's law at an interface.
    Router {
        /// Name of the interface.
        interface: String,
        /// Name of the law.
        law: String,
        /// Warning of what is wrong with it, such as a bucket that is too small for the MTU.
        #[serde(skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
    },
    /// A host: a law in the kernel's TCP.
    Host {
        /// Name of the law.
        law: String,
        /// `machine` or `namespace`, as in [`host::Details`].
        scope: String,
    },
    /// A splitting gateway, which runs.
    Gateway {
        /// Interface towards the satellite.
        interface: String,
    },
}

/// A thing that was attached and stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Standing {
    /// Name of the network namespace; empty: the one of whoever asks.
    pub namespace: String,
    /// Kind of the thing, and where it is.
    #[serde(flatten)]
    pub kind: Kind,
}

impl fmt::Display for Standing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Router { interface, law, .. } => write!(out, "router {law} at {interface}")?,
            Kind::Host { law, scope } => write!(out, "host {law} ({scope})")?,
            Kind::Gateway { interface } => write!(out, "gateway at {interface}")?,
        }
        if self.namespace.is_empty() { Ok(()) } else { write!(out, " in {}", self.namespace) }
    }
}

/// Returns what stands, in order; `None` if the privilege to look is missing.
pub fn standing() -> Option<Vec<Standing>> {
    let own = Namespace::current().and_then(|namespace| namespace.inode()).ok()?;
    let mut found = here("")?;
    for namespace in Namespace::named() {
        // One that goes while it is asked has nothing to say.
        if namespace.inode().is_ok_and(|inode| inode != own) {
            found.extend(namespace.run(|| here(namespace.name())).ok().flatten().unwrap_or_default());
        }
    }
    // A host of the whole machine is seen from everywhere.
    let is_machine = |thing: &Standing| matches!(&thing.kind, Kind::Host { scope, .. } if scope == "machine");
    let has_one = found.iter().any(|thing| is_machine(thing) && thing.namespace.is_empty());
    found.retain(|thing| !has_one || !is_machine(thing) || thing.namespace.is_empty());
    found.sort_unstable();
    Some(found)
}

/// Returns the routers, hosts and gateways in the namespace of this thread.
fn here(name: &str) -> Option<Vec<Standing>> {
    let routers = router::status(None).ok()?;
    let mut kinds: Vec<Kind> = routers
        .into_iter()
        .map(|status| Kind::Router { interface: status.interface, law: status.law, warning: status.warning })
        .collect();
    if let Some(details) = host::status().ok().and_then(|status| status.details) {
        kinds.push(Kind::Host { law: details.law, scope: details.scope.to_string() });
    }
    if let Ok(Some(status)) = gateway::status() {
        kinds.push(Kind::Gateway { interface: status.satellite });
    }
    Some(kinds.into_iter().map(|kind| Standing { namespace: name.to_owned(), kind }).collect())
}

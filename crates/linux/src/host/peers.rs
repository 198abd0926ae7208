//! Peers of a host that stands: more of them, fewer, and the host that is to be there.
//!
//! By whom a namespace and its prefixes were added is the value of their entries in the maps, which the programs do not look
//! at: what [`ensure`] has not made it does not take away.

use std::collections::{BTreeMap, BTreeSet};

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::form::Form;
use super::{
    Config, Counters, Encoding, Host, Installed, MACHINE, NAMES, Prefix, disable_named, enable_as,
    has_control, law, not_enabled, remove_strays, scope, shim, title,
};
use crate::error::{Context, Error, Result};
use crate::sys::bpf::os;
use crate::sys::command;

/// Marks of entries: those of `host enable`, and those of [`ensure`].
pub(super) const BY_HAND: u8 = 1;
const APPLIED: u8 = 2;

/// The change that made the host as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing was to change.
    None,
    /// The host was enabled.
    Enabled,
    /// The host was disabled and enabled again, with other settings or because the last interface with its programs was gone; its
    /// connections fell back.
    Again,
    /// Peers or interfaces were changed while it ran.
    Set {
        /// Peers that were added.
        added: Vec<Prefix>,
        /// Peers that were removed.
        removed: Vec<Prefix>,
        /// Interfaces at which headers or codes are put in from now on.
        interfaces: Vec<String>,
    },
}

/// Puts a prefix into the map.
pub(super) fn put(prefixes: &MapHandle, prefix: Prefix, scope: u64, mark: u8) -> Result<()> {
    let put = prefixes.update(&prefix.key(scope), &[mark], MapFlags::ANY).map_err(os);
    put.context(|| format!("can not add {prefix}"))
}

fn take(prefixes: &MapHandle, prefix: Prefix, scope: u64) -> Result<()> {
    let removed = prefixes.delete(&prefix.key(scope)).map_err(os);
    removed.context(|| format!("can not remove {prefix}"))
}

fn listed<'a>(prefixes: impl IntoIterator<Item = &'a Prefix>) -> String {
    let names: Vec<String> = prefixes.into_iter().map(Prefix::to_string).collect();
    names.join(", ").replace("::/0", "all")
}

impl Installed {
    /// True if it has these settings, but for peers and interfaces.
    pub(super) fn is_as(&self, config: &Config) -> Result<bool> {
        Ok(self.config == config.bytes(true, Form::of_kernel()?.has_casts))
    }

    /// Finds the programs for interfaces, where the encoding has some.
    pub(super) fn find_programs(&self, host: &mut Host, config: &Config) -> Result<()> {
        if config.encoding != Encoding::Option {
            let map = MapHandle::try_from(&self.interfaces).map_err(os);
            let map = map.context(|| "can not keep a map".into())?;
            host.programs = Some(shim::Programs::find(map, &host.storage, config.is_single())?);
        }
        Ok(())
    }

    /// Gives it more peers.
    pub(super) fn extend(
        &self,
        mut host: Host,
        config: &Config,
        scope: u64,
        have: &[Prefix],
        mark: u8,
    ) -> Result<Option<Host>> {
        let title = config.sender.title();
        if !self.is_as(config)? {
            return Err(Error::input(
                format!("{title} is enabled on this host already, with other settings"),
                "congestlab host disable; only more --to and --interface can be added",
            ));
        }
        let more: Vec<Prefix> = config.to.iter().copied().filter(|prefix| !have.contains(prefix)).collect();
        if more.is_empty() || have.contains(&Prefix::ALL) {
            return Err(Error::input(
                format!("{title} is enabled on this host already, for these peers: {}", listed(have)),
                "congestlab host disable, or --to with others to add them",
            ));
        }
        if !command::announce(&format!(
            "use the congestion control {} for {}, too",
            config.name,
            listed(&more)
        )) {
            return Ok(None);
        }
        self.insert(&mut host, config)?;
        more.into_iter().try_for_each(|prefix| put(&self.prefixes, prefix, scope, mark))?;
        host.has_more_peers = true;
        Ok(Some(host))
    }

    /// Puts headers or codes in at those of the interfaces where none are put in yet; returns which.
    fn insert(&self, host: &mut Host, config: &Config) -> Result<Vec<String>> {
        if config.encoding == Encoding::Option {
            return Ok(vec![]);
        }
        let missing = shim::missing(&self.interfaces, &config.interfaces)?;
        if !missing.is_empty() {
            self.find_programs(host, config)?;
        }
        for interface in &missing {
            host.insert_at(interface)?;
        }
        host.insertions.drain(..).for_each(shim::Insertion::keep);
        Ok(missing)
    }

    /// By whom it was enabled for a namespace; `None`: it was not.
    fn mark(&self, scope: u64) -> Option<u8> {
        self.namespaces.lookup(&scope.to_ne_bytes(), MapFlags::ANY).ok().flatten()?.first().copied()
    }

    /// The prefixes of a namespace, with their marks.
    fn marked(&self, scope: u64) -> BTreeMap<Prefix, u8> {
        let entry = |key: Vec<u8>| {
            let mark = self.prefixes.lookup(&key, MapFlags::ANY).ok().flatten()?.first().copied()?;
            let (of, prefix) = Prefix::from_key(&key)?;
            (of == scope).then_some((prefix, mark))
        };
        self.prefixes.keys().filter_map(entry).collect()
    }
}

/// Removes peers of the persistent host, one of [`NAMES`]: new connections to them are as others. It stays enabled for those
/// that are left.
///
/// # Errors
/// If there is no such host, a prefix is none of its peers, or none would be left. Nothing is removed then.
pub fn remove(to: &[Prefix]) -> Result<()> {
    let scope = scope()?;
    for name in NAMES {
        if Host::find(name)?.is_some_and(|(installed, _)| !installed.marked(scope).is_empty()) {
            return remove_named(name, to);
        }
    }
    Err(Error::input("no law is enabled on this host", "congestlab host enable --law xcp"))
}

/// Removes peers of the persistent host with this name.
///
/// # Errors
/// As [`remove`].
pub fn remove_named(name: &str, to: &[Prefix]) -> Result<()> {
    let scope = scope()?;
    let Some((installed, _)) = Host::find(name)? else { return Err(not_enabled(name)) };
    let have: BTreeSet<Prefix> = installed.marked(scope).into_keys().collect();
    if let Some(other) = to.iter().find(|prefix| !have.contains(prefix)) {
        return Err(Error::input(
            format!("{other} is none of the peers that {} is enabled for", title(name)),
            format!("those are: {}", listed(&have)),
        ));
    }
    if have.iter().all(|prefix| to.contains(prefix)) {
        return Err(Error::input(
            format!("{} would have no peers left", title(name)),
            "congestlab host disable, without --to",
        ));
    }
    if command::announce(&format!("stop using the congestion control {name} for {}", listed(to))) {
        let gone: BTreeSet<&Prefix> = to.iter().collect();
        gone.into_iter().try_for_each(|prefix| take(&installed.prefixes, *prefix, scope))?;
    }
    Ok(())
}

/// Makes the persistent host one with these settings and peers, by the smallest change that does. What was enabled by hand keeps
/// its own peers.
///
/// # Errors
/// As [`enable`](super::enable), and if a host with other settings was enabled by hand: it is left alone.
pub fn ensure(config: &Config) -> Result<Change> {
    config.check()?;
    let scope = scope()?;
    let Some((installed, mut host)) = Host::find(&config.name)? else {
        // Half of one that was killed would refuse the whole.
        if has_control(&config.name)? {
            remove_strays(&config.name)?;
        }
        let mut change = Change::Enabled;
        for other in NAMES.into_iter().filter(|other| *other != config.name) {
            if is_applied(other, scope)? {
                disable_named(other)?;
                change = Change::Again;
            }
        }
        enable_as(config, true, APPLIED)?;
        return Ok(change);
    };
    let have = installed.marked(scope);
    if have.is_empty() {
        enable_as(config, true, APPLIED)?;
        return Ok(Change::Enabled);
    }
    if !installed.is_as(config)? {
        if installed.mark(scope) != Some(APPLIED) {
            return Err(Error::input(
                format!("{} is enabled by hand, with other settings than wanted", config.sender.title()),
                "congestlab host disable",
            ));
        }
        disable_named(&config.name)?;
        enable_as(config, true, APPLIED)?;
        return Ok(Change::Again);
    }
    let wanted: BTreeSet<Prefix> = config.peers().iter().copied().collect();
    let added: Vec<Prefix> = wanted.iter().copied().filter(|prefix| !have.contains_key(prefix)).collect();
    let is_over = |(prefix, mark): &(&Prefix, &u8)| **mark == APPLIED && !wanted.contains(prefix);
    let removed: Vec<Prefix> = have.iter().filter(is_over).map(|(prefix, _)| *prefix).collect();
    let interfaces = match installed.insert(&mut host, config) {
        // The programs went with the last interface that had them.
        Err(Error::Missing { .. }) if installed.mark(scope) == Some(APPLIED) => {
            disable_named(&config.name)?;
            enable_as(config, true, APPLIED)?;
            return Ok(Change::Again);
        }
        inserted => inserted?,
    };
    if added.is_empty() && removed.is_empty() && interfaces.is_empty() {
        return Ok(Change::None);
    }
    // First those that come, so that nobody sees a host without peers.
    added.iter().try_for_each(|prefix| put(&installed.prefixes, *prefix, scope, APPLIED))?;
    removed.iter().try_for_each(|prefix| take(&installed.prefixes, *prefix, scope))?;
    Ok(Change::Set { added, removed, interfaces })
}

/// True if [`ensure`] has enabled the host of this name here.
fn is_applied(name: &str, scope: u64) -> Result<bool> {
    Ok(Host::find(name)?.is_some_and(|(installed, _)| installed.mark(scope) == Some(APPLIED)))
}

/// Returns the name of the persistent host, if [`ensure`] has enabled it here.
///
/// # Errors
/// If the privilege to ask is missing.
pub fn ensured() -> Result<Option<&'static str>> {
    let scope = scope()?;
    for name in NAMES {
        if is_applied(name, scope)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Returns the persistent host's law and its counts, without a look at connections; `None`: no host is enabled here.
///
/// # Errors
/// If the privilege to ask is missing.
pub fn counters() -> Result<Option<(String, Counters)>> {
    let here = scope()?;
    for name in NAMES {
        if let Some((installed, host)) = Host::find(name)?
            && [MACHINE, here].into_iter().any(|scope| installed.mark(scope).is_some())
        {
            return Ok(Some((law(name), host.counters()?)));
        }
    }
    Ok(None)
}

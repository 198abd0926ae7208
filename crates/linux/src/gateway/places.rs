//! Places of connections within the limits, and the connection that goes when a new one needs its place.
//!
//! A place belongs to a client: an IPv4 address, or the first 64 bits of an IPv6 address, for a host has all addresses that
//! begin so. While there are places, any client may have any number. In a full table each has a share of a quarter:
//!
//! - A client with its share or more gives a place of its own: the connection that has waited longest for its server.
//! - A client with less gets the place of the client with the most, if that has more than its share: the connection that has
//!   waited longest, or else the oldest one.
//! - If no client has more than its share, the connection that has waited longest goes, whose ever it is.
//!
//! Connections that are open are never taken from a client with its share or less. Where none may go, the new one has no place.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The part of a table that is a client's share.
const SHARE: usize = 4;

/// Limits of connections at a time, and of those whose server has not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) connections: usize,
    pub(super) waiting: usize,
}

/// A connection of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Displaced {
    pub(super) worker: usize,
    pub(super) number: u64,
}

/// The places of all threads.
#[derive(Debug)]
pub(super) struct Places {
    limits: Limits,
    table: Mutex<Table>,
}

/// A place, which is free again unless it is kept.
#[derive(Debug)]
pub(super) struct Place<'a> {
    places: &'a Places,
    /// Number of the connection, unlike any other of this gateway.
    pub(super) number: u64,
}

impl Place<'_> {
    /// Leaves the place to the connection, which gives it back by [`Places::release`].
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.places.release(self.number);
    }
}

impl Places {
    /// Numbers connections from `first` on.
    pub(super) fn new(limits: Limits, first: u64) -> Self {
        Self { limits, table: Mutex::new(Table { next: first, ..Table::default() }) }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a connection of this client that waits for its server, in a thread. `None`: there is none. The
    /// connections that it displaces have no place any more; the caller breaks them.
    pub(super) fn reserve(&self, client: IpAddr, worker: usize) -> Option<(Place<'_>, Vec<Displaced>)> {
        let client = key(client);
        let mut table = self.table();
        let mut displaced = vec![];
        for (limit, is_waiting) in [(self.limits.connections, false), (self.limits.waiting, true)] {
            let count = if is_waiting { table.waiting.len() } else { table.places.len() };
            if count < limit {
                continue;
            }
            let victim = table.victim(client, (limit / SHARE).max(1), is_waiting)?;
            displaced.extend(table.remove(victim));
        }
        let number = table.add(client, worker);
        Some((Place { places: self, number }, displaced))
    }

    /// The server of a connection has answered.
    pub(super) fn connected(&self, number: u64) {
        self.table().connected(number);
    }

    /// Gives a place back. One that was taken away already is not given back again.
    pub(super) fn release(&self, number: u64) {
        self.table().remove(number);
    }

    /// Returns the numbers of places that are taken, and of those that wait.
    pub(super) fn taken(&self) -> (usize, usize) {
        let table = self.table();
        (table.places.len(), table.waiting.len())
    }
}

/// The part of an address that one client has.
fn key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        ipv4 => ipv4,
    }
}

#[derive(Clone, Copy, Debug)]
struct Owner {
    client: IpAddr,
    worker: usize,
}

/// Numbers grow, so the least of several is the oldest.
#[derive(Debug, Default)]
struct Table {
    next: u64,
    places: BTreeMap<u64, Owner>,
    waiting: BTreeSet<u64>,
    clients: BTreeMap<IpAddr, Held>,
    /// Clients by the number of their places, and of those that wait.
    by_places: BTreeSet<(usize, IpAddr)>,
    by_waiting: BTreeSet<(usize, IpAddr)>,
}

#[derive(Debug, Default)]
struct Held {
    all: BTreeSet<u64>,
    waiting: BTreeSet<u64>,
}

impl Table {
    fn victim(&self, client: IpAddr, share: usize, is_waiting: bool) -> Option<u64> {
        let count = |held: &Held| if is_waiting { held.waiting.len() } else { held.all.len() };
        let oldest_waiting = |held: &Held| held.waiting.first().copied();
        if let Some(own) = self.clients.get(&client).filter(|own| count(own) >= share) {
            return oldest_waiting(own);
        }
        let order = if is_waiting { &self.by_waiting } else { &self.by_places };
        let most = order.last().and_then(|(_, client)| self.clients.get(client));
        if let Some(most) = most.filter(|most| count(most) > share) {
            return oldest_waiting(most).or_else(|| most.all.first().copied());
        }
        self.waiting.first().copied()
    }

    /// Changes what a client has, and its rank.
    fn change(&mut self, client: IpAddr, change: impl FnOnce(&mut Held)) {
        let held = self.clients.entry(client).or_default();
        let before = (held.all.len(), held.waiting.len());
        change(held);
        let after = (held.all.len(), held.waiting.len());
        if after.0 == 0 {
            self.clients.remove(&client);
        }
        for (order, before, after) in
            [(&mut self.by_places, before.0, after.0), (&mut self.by_waiting, before.1, after.1)]
        {
            order.remove(&(before, client));
            if after > 0 {
                order.insert((after, client));
            }
        }
    }

    fn add(&mut self, client: IpAddr, worker: usize) -> u64 {
        let number = self.next;
        self.next += 1;
        self.places.insert(number, Owner { client, worker });
        self.waiting.insert(number);
        self.change(client, |held| {
            held.all.insert(number);
            held.waiting.insert(number);
        });
        number
    }

    fn connected(&mut self, number: u64) {
        let Some(&Owner { client, .. }) = self.places.get(&number) else { return };
        self.waiting.remove(&number);
        self.change(client, |held| _ = held.waiting.remove(&number));
    }

    fn remove(&mut self, number: u64) -> Option<Displaced> {
        let Owner { client, worker } = self.places.remove(&number)?;
        self.waiting.remove(&number);
        self.change(client, |held| {
            held.all.remove(&number);
            held.waiting.remove(&number);
        });
        Some(Displaced { worker, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(connections: usize, waiting: usize) -> Places {
        Places::new(Limits { connections, waiting }, 0)
    }

    /// Takes a place for good. Returns the numbers of the connections that go for it.
    fn take(places: &Places, client: &str) -> Option<Vec<u64>> {
        let (place, displaced) = places.reserve(client.parse().unwrap(), 0)?;
        place.keep();
        Some(displaced.into_iter().map(|one| one.number).collect())
    }

    #[test]
    fn one_client_has_all_places_until_another_comes() {
        let places = places(100, 8);
        for _ in 0..8 {
            assert_eq!(take(&places, "10.0.0.1"), Some(vec![]));
        }
        // Its own oldest one goes first, then for others until it has a quarter.
        assert_eq!(take(&places, "10.0.0.1"), Some(vec![0]));
        for number in 0..6 {
            assert_eq!(take(&places, &format!("10.0.1.{number}")), Some(vec![number + 1]));
        }
        assert_eq!(take(&places, "10.0.0.1"), Some(vec![7]));
        // Nobody has more than a quarter: the oldest one of all.
        assert_eq!(take(&places, "10.0.2.1"), Some(vec![8]));
        assert_eq!(places.taken(), (8, 8));
    }

    #[test]
    fn open_connections_are_taken_from_who_has_more_than_a_share() {
        let places = places(8, 8);
        for number in 0..8 {
            take(&places, "10.0.0.1").unwrap();
            places.connected(number);
        }
        assert_eq!(take(&places, "10.0.0.1"), None);
        for number in 0..6 {
            assert_eq!(take(&places, &format!("10.0.1.{number}")), Some(vec![number]));
            places.connected(8 + number);
        }
        // All are open, and none has more than two.
        assert_eq!(take(&places, "10.0.2.1"), None);
        places.release(13);
        places.release(13);
        assert_eq!(take(&places, "10.0.2.1"), Some(vec![]));
        assert_eq!(places.taken(), (8, 1));
        // That one waits, so it goes.
        assert_eq!(take(&places, "10.0.3.1"), Some(vec![14]));
    }

    #[test]
    fn the_addresses_of_a_subnet_are_one_client() {
        let places = places(100, 4);
        for number in 1..=4 {
            assert_eq!(take(&places, &format!("fd00::{number}")), Some(vec![]));
        }
        assert_eq!(take(&places, "fd00::5"), Some(vec![0]));
        assert_eq!(take(&places, "fd00:0:0:1::1"), Some(vec![1]));
        assert_eq!(take(&places, "::ffff:10.0.0.1"), Some(vec![2]));
        assert_eq!(take(&places, "10.0.0.1"), Some(vec![6]), "it is the same client");
    }

    /// Whatever comes, the orders agree with what clients have.
    #[test]
    fn the_books_agree() {
        let places = places(40, 20);
        let mut word = 1u64;
        let mut live: Vec<u64> = vec![];
        for _ in 0..20_000 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = (word >> 40) as usize;
            match word >> 62 {
                0 if !live.is_empty() => places.connected(live[pick % live.len()]),
                1 if !live.is_empty() => places.release(live.swap_remove(pick % live.len())),
                _ => {
                    let client: IpAddr = [10, 0, 0, (pick % 7) as u8].into();
                    if let Some((place, displaced)) = places.reserve(client, 0) {
                        live.retain(|number| displaced.iter().all(|gone| gone.number != *number));
                        live.push(place.number);
                        place.keep();
                    }
                }
            }
            let table = places.table();
            assert!(table.places.len() <= 40 && table.waiting.len() <= 20);
            assert_eq!(table.places.len(), live.len());
            let sums =
                |order: &BTreeSet<(usize, IpAddr)>| order.iter().map(|(count, _)| count).sum::<usize>();
            assert_eq!(sums(&table.by_places), table.places.len());
            assert_eq!(sums(&table.by_waiting), table.waiting.len());
            assert_eq!(table.clients.len(), table.by_places.len());
        }
    }
}

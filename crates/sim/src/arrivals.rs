//! A log of the bytes that arrived at a link: all that an oracle may see, and the measure of its estimates.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use congestlab_core::units::{Bytes, Rate, Time};
use congestlab_net::packet::{PS_PER_NS, Picos};
use congestlab_net::service::Service;
use congestlab_net::xcp_i::{LOOK_BACK, LinkView};

/// How long arrivals at a link of a cloud are remembered, ps: as far as an oracle may look back, plus the
/// longest window of the engine.
pub const REMEMBERED: Picos = LOOK_BACK.0 * PS_PER_NS + (1 << 37);

/// The bytes that arrived at a link, dropped or not. Written by the link, read by the edges of its
/// cloud: all of them run on one thread, the link first, so nobody ever waits for the lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    /// Arrival times, each with the number of bytes until then.
    last: VecDeque<(Picos, u64)>,
    /// Bytes that are forgotten.
    before: u64,
}

impl Arrivals {
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().expect("nobody panics with it in hand")
    }

    /// Packets arrive: when, and of what size, in order.
    pub(crate) fn arrive(&self, packets: impl Iterator<Item = (Picos, u16)>) {
        let mut log = self.lock();
        let mut sum = log.last.back().map_or(log.before, |&(_, sum)| sum);
        for (at, size) in packets {
            sum += u64::from(size);
            log.last.push_back((at, sum));
            while let Some(&(old, sum)) = log.last.front()
                && old + REMEMBERED < at
            {
                log.before = sum;
                log.last.pop_front();
            }
        }
    }

    /// Bytes that arrived before `t`.
    pub(crate) fn before(&self, t: Picos) -> u64 {
        let log = self.lock();
        let count = log.last.partition_point(|&(at, _)| at < t);
        count.checked_sub(1).map_or(log.before, |last| log.last[last].1)
    }
}

/// The links of a cloud, for the oracle of its upstream edge. Only the engine can make one.
#[derive(Clone, Debug)]
pub(crate) struct View(pub(crate) Vec<(Arrivals, Service)>);

impl LinkView for View {
    fn read(&mut self, since: Time, now: Time, mut each: impl FnMut(Rate, Bytes)) {
        for (arrivals, service) in &self.0 {
            let arrived = |t: Time| arrivals.before(t.0 * PS_PER_NS);
            each(service.capacity_at(now.0 * PS_PER_NS), Bytes(arrived(now) - arrived(since)));
        }
    }
}

/// The same links for the time series: the bandwidth that was really available in each bin.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    view: View,
    /// By link: bytes until the end of the bin before.
    sums: Vec<u64>,
    since: Picos,
}

impl Truth {
    pub(crate) fn new(view: View) -> Self {
        Self { sums: vec![0; view.0.len()], view, since: 0 }
    }

    /// Capacity minus load of the bin that ends at `now`, bit/s: the least of all links.
    pub(crate) fn close(&mut self, now: Picos) -> f64 {
        let seconds = (now - self.since) as f64 / 1e12;
        let mut least = f64::INFINITY;
        for ((arrivals, service), sum) in self.view.0.iter().zip(&mut self.sums) {
            let arrived = arrivals.before(now);
            let bits = (arrived - std::mem::replace(sum, arrived)) as f64 * 8.0;
            let work = service.work(self.since, now) as f64 / 1e12;
            least = least.min((work - bits) / seconds);
        }
        self.since = now;
        least
    }
}

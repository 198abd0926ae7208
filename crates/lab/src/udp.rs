//! Sources of datagrams that get no feedback, driven by the kernel's clock, and the counters at their
//! receivers. They are threads of the lab's process, since no law has anything to do with their sockets.

use std::net::{SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use congestlab_core::units::Time;
use congestlab_scenario::net::random::Stream;
use congestlab_scenario::net::source::Source;
use congestlab_scenario::sim::measure_of;
use congestlab_scenario::sim::model::{GroupKind, Model};

use crate::network::Network;
use crate::topology::{Flow, Topology};
use crate::{monotonic, sleep_until};
use congestlab_linux::error::{Context, Result};

/// IP and UDP headers.
pub(super) const HEADERS: u16 = 28;
/// How long a thread sleeps at most before it looks whether it is over.
const NAP: u64 = 20_000_000;

/// Bytes sent, bytes received, packets sent, packets received; whole IP packets.
type Counts = [AtomicU64; 4];

/// All flows without acknowledgments. They end when it is dropped.
#[derive(Debug)]
pub(super) struct Sources {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    counts: Vec<(usize, Arc<Counts>)>,
}

impl Sources {
    pub(super) fn start(model: &Model, topology: &Topology, network: &Network, zero: u64) -> Result<Self> {
        let mut sources = Self { over: Arc::default(), threads: Vec::new(), counts: Vec::new() };
        for (number, flow) in topology.flows.iter().enumerate() {
            if let GroupKind::Source(_) = model.groups[flow.group].kind {
                sources.add(model, topology, network, zero, number, flow)?;
            }
        }
        Ok(sources)
    }

    fn add(
        &mut self,
        model: &Model,
        topology: &Topology,
        network: &Network,
        zero: u64,
        number: usize,
        flow: &Flow,
    ) -> Result<()> {
        let group = &model.groups[flow.group];
        let GroupKind::Source(config) = group.kind else { return Ok(()) };
        let bind = |host: usize, port: u16| -> Result<UdpSocket> {
            let namespace = &network.hosts[host];
            let at = SocketAddrV4::new(topology.hosts[host].address, port);
            namespace.run(|| UdpSocket::bind(at))?.context(|| format!("can not bind to {at}"))
        };
        let what = || format!("can not prepare flows.{}", group.name);
        let (near, far) = (bind(flow.source, 0)?, bind(flow.sink, flow.port)?);
        near.connect(far.local_addr().context(what)?).context(what)?;
        far.set_read_timeout(Some(Duration::from_nanos(NAP))).context(what)?;

        let counts: Arc<Counts> = Arc::default();
        self.counts.push((number, counts.clone()));
        let stream = Stream::named(model.seed, &format!("flows.{}/{}.on-off", group.name, flow.index));
        let measure = measure_of(model, group, flow.start);
        let mut source = Source::new(&config, number as u32, flow.start, group.stop, stream, measure);
        let (over, sent) = (self.over.clone(), counts.clone());
        self.threads.push(thread::spawn(move || {
            let payload = vec![0; usize::from(config.segment.saturating_sub(HEADERS))];
            while !over.load(Ordering::Relaxed) && source.next_deadline() != Time::NEVER {
                let now = monotonic().saturating_sub(zero);
                while source.poll_transmit(&config, Time(now)).is_some() {
                    // What the host can not take is lost, as at any queue.
                    if near.send(&payload).is_ok() {
                        sent[0].fetch_add(config.segment.into(), Ordering::Relaxed);
                        sent[2].fetch_add(1, Ordering::Relaxed);
                    }
                }
                sleep_until((zero + source.next_deadline().0.min(u64::MAX - zero)).min(monotonic() + NAP));
            }
        }));
        let over = self.over.clone();
        self.threads.push(thread::spawn(move || {
            let mut buffer = vec![0; usize::from(config.segment)];
            while !over.load(Ordering::Relaxed) {
                if let Ok(length) = far.recv(&mut buffer) {
                    counts[1].fetch_add(length as u64 + u64::from(HEADERS), Ordering::Relaxed);
                    counts[3].fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
        Ok(())
    }

    /// By flow: bytes sent, bytes received, packets sent, packets received.
    pub(super) fn counts(&self) -> impl Iterator<Item = (usize, [u64; 4])> {
        self.counts
            .iter()
            .map(|(flow, counts)| (*flow, counts.each_ref().map(|count| count.load(Ordering::Relaxed))))
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

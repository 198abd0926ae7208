//! Series of the clouds of XCP-i that a node watches.

use congestlab_core::units::Time;
use congestlab_net::packet::{PS_PER_NS, Picos};
use congestlab_net::xcp_i::{Address, Edge, Neighbour, Way};

use crate::arrivals::{Truth, View};
use crate::outcome::{Element, Sample};

/// An upstream edge of clouds that are watched.
struct Upstream {
    address: Address,
    /// The bandwidth that is really available, by the ways to it.
    truths: Vec<(Way, Truth)>,
    /// Bytes of probes and control packets until the end of the bin before.
    probe_bytes: u64,
}

/// The series of a cloud, by its downstream edge: of the entry of one upstream edge, by the way that is
/// in use. At a host whose path changes, of the one that its data comes from.
pub(crate) struct Watched {
    pub(crate) element: Element,
    upstreams: Vec<Upstream>,
    /// Upstream edge and way in use.
    used: (usize, usize),
}

impl Watched {
    pub(crate) fn new(element: Element) -> Self {
        Self { element, upstreams: Vec::new(), used: (0, 0) }
    }

    /// Watches the cloud too that lies on a way to a neighbour.
    pub(crate) fn add(&mut self, neighbour: Neighbour, view: View) {
        let truth = (neighbour.way, Truth::new(view));
        match self.upstreams.iter_mut().find(|upstream| upstream.address == neighbour.address) {
            Some(upstream) => upstream.truths.push(truth),
            None => {
                let address = neighbour.address;
                self.upstreams.push(Upstream { address, truths: vec![truth], probe_bytes: 0 });
            }
        }
    }

    /// Writes down the bin of `seconds` that ends at `at`.
    pub(crate) fn sample(&mut self, edge: &Edge<View>, at: Picos, seconds: f64, samples: &mut Vec<Sample>) {
        let element = self.element;
        let mut put = |metric, value| samples.push(Sample { at, element, metric, value });
        let (mut newest, mut probe_bytes) = (None, 0);
        for (index, upstream) in self.upstreams.iter_mut().enumerate() {
            let cloud =
                edge.clouds().map(|(_, cloud)| cloud).find(|cloud| cloud.upstream() == upstream.address);
            // A new entry counts from the beginning.
            let bytes = cloud.map_or(0, |cloud| cloud.probe_bytes());
            probe_bytes += bytes.checked_sub(upstream.probe_bytes).unwrap_or(bytes);
            upstream.probe_bytes = bytes;
            if let Some(cloud) = cloud
                && newest.is_none_or(|(seen, _)| seen < cloud.seen())
            {
                newest = Some((cloud.seen(), cloud));
                let way = upstream.truths.iter().position(|(way, _)| *way == cloud.way());
                self.used = (index, way.unwrap_or(0));
            }
        }
        if let Some(estimate) = newest.and_then(|(_, cloud)| cloud.estimate(Time(at / PS_PER_NS))) {
            put("estimate_bps", estimate as f64 * 8.0);
        }
        for (index, upstream) in self.upstreams.iter_mut().enumerate() {
            for (way, (_, truth)) in upstream.truths.iter_mut().enumerate() {
                let available = truth.close(at);
                if (index, way) == self.used {
                    put("truth_bps", available);
                }
            }
        }
        put("probe_bps", probe_bytes as f64 * 8.0 / seconds);
    }
}

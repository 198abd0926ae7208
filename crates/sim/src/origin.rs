//! Sources of the hosts of a group: their settings, begins and random streams.

use congestlab_core::units::{Bytes, Time};
use congestlab_net::packet::Picos;
use congestlab_net::random::Stream;
use congestlab_net::source::{Source, SourceConfig};
use congestlab_net::tcp;

use crate::headers;
use crate::model::{Group, GroupKind, Model};
use crate::network::{measured, segments_of, spans_of, starts_of, stream_of};
use crate::station::Sink;

/// All that the hosts of a group are made from, whenever that is.
pub(crate) struct Origin {
    pub(crate) group: Group,
    /// Number of the group, and index over the whole run of its first flow.
    number: usize,
    first_flow: u32,
    pub(crate) seed: u64,
    pub(crate) warmup: Picos,
    duration: Picos,
    /// By flow.
    pub(crate) starts: Vec<Time>,
}

impl Origin {
    /// `window_most`: [`tcp::Config::window_most`] of the senders.
    pub(crate) fn new(model: &Model, number: usize, first_flow: u32, window_most: Bytes) -> Self {
        let mut group = model.groups[number].clone();
        let measure = measured(model.warmup, model.duration, &group, Time::ZERO);
        if let GroupKind::Tcp(config) = &mut group.kind {
            (config.stop, config.measure) = (group.stop, measure);
            config.window_most = window_most;
        }
        let starts = starts_of(&group, model.seed);
        let Model { seed, warmup, duration, .. } = *model;
        Self { group, number, first_flow, seed, warmup, duration, starts }
    }

    fn stream(&self, flow: u32, what: &str) -> Stream {
        stream_of(&self.group, flow, what, self.seed)
    }

    fn measure(&self, flow: u32) -> tcp::Measure {
        measured(self.warmup, self.duration, &self.group, self.starts[flow as usize])
    }

    fn connection(&self, flow: u32) -> Option<tcp::Connection> {
        headers::connection(&self.group, self.number, flow, self.first_flow + flow, self.seed)
    }

    pub(crate) fn sender(&self, config: &tcp::Config, flow: u32) -> tcp::Sender {
        let (start, number) = (self.starts[flow as usize], self.first_flow + flow);
        let mut sender = tcp::Sender::new(config, number, start, 0);
        if let Some(segments) = segments_of(&self.group, flow, self.seed) {
            sender = sender.with_segments(segments);
        }
        if let Some(connection) = self.connection(flow) {
            sender = sender.with_headers(connection);
        }
        if config.law.needs().draws {
            sender = sender.with_seed(self.stream(flow, config.law.name()).next_u64());
        }
        sender
    }

    pub(crate) fn receiver(&self, config: &tcp::Config, flow: u32) -> tcp::Receiver {
        let receiver = tcp::Receiver::new(config, self.first_flow + flow, 0);
        match self.connection(flow) {
            Some(connection) => receiver.with_headers(connection),
            None => receiver,
        }
    }

    pub(crate) fn source(&self, config: &SourceConfig, flow: u32) -> Source {
        let (start, number) = (self.starts[flow as usize], self.first_flow + flow);
        let stream = self.stream(flow, "on-off");
        let source = Source::new(config, number, start, self.group.stop, stream, self.measure(flow));
        match spans_of(&self.group, flow, start) {
            Some(spans) => source.within(config, spans),
            None => source,
        }
    }

    pub(crate) fn sink(&self, (): &(), flow: u32) -> Sink {
        Sink::new(self.measure(flow))
    }
}

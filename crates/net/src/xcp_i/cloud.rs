//! A cloud as its downstream edge knows it: the entry of the upstream neighbour, the listener of its
//! estimator, and the virtual router.

use super::estimator::{Bandwidth, Listener, Listening, Report};
use super::message::{Message, Probe, Verb};
use super::{Address, Config, Neighbour, NoEstimate, State, VirtualQueue, Way, parts};
use crate::packet::Packet;
use alloc::vec::Vec;
use congestlab_core::law::xcp_i::{Action, Entry};
use congestlab_core::law::{Link, LinkView, Steered as _, Told, xcp};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, Time};

/// State of a packet's port at router k that its virtual router uses (XI III-A.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortView {
    /// Number of the port, for observers.
    pub port: u32,
    /// d of the port's law; zero: it has none (a receiving host), the virtual router takes its own.
    pub mean_rtt: Duration,
    /// Persistent queue of the port's law.
    pub queue: Bytes,
}

/// The passage of a packet through the virtual router of a cloud, for observers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Upstream edge of the cloud.
    pub upstream: Address,
    /// State of its entry before the packet; `None`: there was no entry.
    pub state: Option<State>,
    /// Last estimate, B/s, while it holds.
    pub estimate: Option<i64>,
    /// Spare bandwidth that the virtual router was told for its control interval, B/s.
    pub spare: i64,
    /// When that interval began.
    pub opened: Time,
    /// View that the virtual router had of the packet; `None`: it dealt with none.
    pub view: Option<LinkView>,
    /// The packet as it came.
    pub asked: Packet,
    /// The packet as it left the agent.
    pub left: Packet,
}

/// A cloud between an upstream neighbour and this node, with its virtual router.
#[derive(Clone, Debug)]
pub struct Cloud {
    upstream: Address,
    pub(super) entry: Entry,
    /// Paths, by each way that packets came: more than one where routes change or share.
    paths: Vec<Path>,
    /// When the entry was made.
    made: Time,
    /// The path that is in use: the last packet's.
    path: usize,
    /// The path that was last asked about.
    asked: usize,
    /// The virtual router: an ordinary link law that is told its spare bandwidth (XI III-A.4).
    link: Link,
    /// When the control interval closes if nothing else happens.
    closes: Time,
    /// When it began.
    opened: Time,
    port: PortView,
    /// Spare bandwidth that the virtual router was told last, B/s.
    spare: i64,
    /// Input rate when the bandwidth was new.
    input_then: Rate,
    /// Reports are lost: own traffic is cut until one comes.
    is_cutting: bool,
    /// Parameter of the request under way.
    parameter: u64,
    /// Bytes of data in all, and by the beginning of the round.
    received: u64,
    received_before: u64,
    probe_bytes: u64,
}

/// The part of own traffic that counts as too much while the bandwidth is stale and reports are overdue
/// (ours): as like as not they are lost in a full queue, and as long as it stays full the next ones are.
const OVERDUE: Ratio = Ratio::ppm(125_000);

/// Knowledge of one way through the cloud.
#[derive(Clone, Debug)]
struct Path {
    way: Way,
    listener: Listener,
    delay: Delay,
}

impl Path {
    const fn new(now: Time, way: Way, listener: Listener) -> Self {
        Self { way, listener, delay: Delay::new(now) }
    }
}

/// One-way delay of the upstream neighbour's control packets, by two clocks that need not agree.
#[derive(Clone, Copy, Debug)]
struct Delay {
    /// Least of this span of [`Delay::SPAN`] and of the one before: clocks drift.
    least: [i64; 2],
    turns: Time,
    /// Least growth above it in this control interval; `None`: no sample.
    growth: Option<u64>,
}

impl Delay {
    /// As long as an idle entry lives.
    const SPAN: Duration = Duration(10_000_000_000);

    const fn new(now: Time) -> Self {
        Self { least: [i64::MAX; 2], turns: Time(now.0.saturating_add(Self::SPAN.0)), growth: None }
    }

    fn sample(&mut self, now: Time, stamp: Time) {
        let delay = now.0.wrapping_sub(stamp.0) as i64;
        if self.turns <= now {
            self.least = [i64::MAX, self.least[0]];
            self.turns = now + Self::SPAN;
        }
        self.least[0] = self.least[0].min(delay);
        let growth = delay.abs_diff(self.least[0].min(self.least[1]));
        self.growth = Some(self.growth.map_or(growth, |least| least.min(growth)));
    }
}

impl Cloud {
    pub(super) fn new(config: &Config, now: Time, upstream: Neighbour, listener: Listener) -> Self {
        let interval = config.law.first_interval();
        let never = Duration(u64::MAX);
        let mut link = Link::new(&config.law, never, never);
        link.close_told(now, &Told::default());
        Self {
            upstream: upstream.address,
            entry: Entry::new(now, interval),
            paths: [Path::new(now, upstream.way, listener)].into(),
            made: now,
            path: 0,
            asked: 0,
            link,
            closes: now + interval,
            opened: now,
            port: PortView::default(),
            spare: 0,
            input_then: Rate(0),
            is_cutting: false,
            parameter: 0,
            received: 0,
            received_before: 0,
            probe_bytes: 0,
        }
    }

    /// Returns the address of the upstream neighbour.
    pub fn upstream(&self) -> Address {
        self.upstream
    }

    /// Returns the way by which the neighbour's last packet came.
    #[inline]
    pub fn way(&self) -> Way {
        self.paths[self.path].way
    }

    /// Returns when the neighbour's last packet came.
    pub fn seen(&self) -> Time {
        self.entry.seen()
    }

    /// Packets come by another way; `listener` is for one that is new.
    pub(super) fn turn(&mut self, now: Time, way: Way, listener: impl FnOnce() -> Listener) {
        let known = self.paths.iter().position(|path| path.way == way);
        self.path = known.unwrap_or_else(|| {
            self.paths.push(Path::new(now, way, listener()));
            self.paths.len() - 1
        });
    }

    /// True if another may have its place: nothing came for a period, or it has had its turn, which is as
    /// long as an estimate holds.
    pub(super) fn may_go(&self, config: &Config, now: Time) -> bool {
        let period = self.entry.period(&config.exchange);
        let turn = Duration(period.0.saturating_mul(config.exchange.stale.into()));
        let has_ended = self.entry.was_valid() || self.entry.state(now) == State::Broken;
        self.seen() + period <= now || (has_ended && self.made + turn <= now)
    }

    /// Returns the state of the entry.
    pub fn state(&self, now: Time) -> State {
        self.entry.state(now)
    }

    /// Returns the last estimate, B/s, while it holds.
    pub fn estimate(&self, now: Time) -> Option<Bandwidth> {
        self.entry.bandwidth(now)
    }

    /// Returns the report of the virtual router's last control interval.
    pub fn report(&self) -> xcp::Report {
        self.link.report().part().copied().unwrap_or_default()
    }

    /// Returns the number of the port that the cloud's packets leave through.
    pub fn port(&self) -> u32 {
        self.port.port
    }

    /// Returns the passage that begins for a packet: [`Passage::left`] is yet to come.
    pub(super) fn look(&self, now: Time, packet: &Packet) -> Passage {
        let rules = self.is_cutting || self.entry.bandwidth(now).is_some();
        Passage {
            upstream: self.upstream,
            state: Some(self.entry.state(now)),
            estimate: self.entry.bandwidth(now),
            spare: self.spare,
            opened: self.opened,
            view: if rules { self.link.view(packet) } else { None },
            asked: *packet,
            left: *packet,
        }
    }

    /// Returns the bytes of probes and control packets so far that arrived from the upstream neighbour or were
    /// sent to it.
    pub fn probe_bytes(&self) -> u64 {
        self.probe_bytes
    }

    /// Returns the round trip time between the edges; zero: unknown.
    pub fn rtt(&self) -> Duration {
        self.entry.rtt()
    }

    /// A new round begins.
    pub(super) fn begin(&mut self, config: &Config, now: Time, id: u32, nonce: u64) {
        self.entry.begin(&config.exchange, now, id, nonce);
        self.received_before = self.received;
        self.ask(now);
    }

    /// The round is about the path in use.
    fn ask(&mut self, now: Time) {
        let interval = self.report().interval;
        self.asked = self.path;
        self.parameter = self.paths[self.path].listener.begin(now, interval);
    }

    /// The request of the round, and where it goes. A repeated one takes the path that is in use by
    /// then: the one before may have gone.
    pub(super) fn request(&mut self, own: Address, now: Time) -> (Message, Neighbour) {
        if self.asked != self.path {
            self.ask(now);
        }
        let verb = Verb::Request { parameter: self.parameter };
        let message = Message { verb, from: own, id: self.entry.id(), nonce: self.entry.nonce(), stamp: now };
        (message, Neighbour { address: self.upstream, way: self.way() })
    }

    /// A probe of the round under way.
    pub(super) fn on_probe(&mut self, now: Time, probe: &Probe) {
        self.paths[self.asked].listener.on_probe(now, probe);
    }

    pub(super) fn count_probe(&mut self, size: Bytes) {
        self.probe_bytes += size.0;
    }

    /// A packet came through the cloud: the virtual router sees it arrive and, with an estimate, go.
    #[inline]
    pub(super) fn on_packet(
        &mut self,
        config: &Config,
        now: Time,
        packet: &mut Packet,
        port: &PortView,
    ) -> Action {
        let mut action = self.entry.on_packet(now);
        if self.asked != self.path && action == Action::Nothing {
            action = self.entry.on_turn(now);
        }
        let size = Bytes(u64::from(packet.size));
        self.port = *port;
        self.received += size.0;
        // All that comes from the neighbour: that is what it counts as sent.
        for path in &mut self.paths {
            path.listener.on_data(size);
        }
        self.link.on_arrival(now, packet);
        if self.is_cutting || self.entry.bandwidth(now).is_some() {
            // Q is told, so there is no backlog.
            self.link.on_departure(now, packet, Bytes(0));
        } else if self.holds(config, now) || self.entry.was_valid() {
            withhold(packet);
        }
        action
    }

    /// True if packets get no increase before the first estimate.
    fn holds(&self, config: &Config, now: Time) -> bool {
        match config.no_estimate {
            NoEstimate::Pass => false,
            NoEstimate::Hold => true,
            NoEstimate::Auto => {
                !matches!(self.paths[self.path].listener, Listener::Told(_))
                    && self.entry.state(now) != State::Broken
            }
        }
    }

    /// Returns when [`Cloud::on_deadline`] or the entry's has something to do.
    pub(super) fn next_deadline(&self, config: &Config) -> Time {
        self.closes.min(self.entry.next_deadline(&config.exchange))
    }

    /// Ends the control interval if it is time; `sending` is the number of upstream neighbours that send. One that waits for a report waits for at most as
    /// long again: the paper's estimate is there at the end of each interval (XI IV).
    pub(super) fn on_deadline(&mut self, config: &Config, now: Time, sending: usize) {
        if now < self.closes {
            return;
        }
        let interval = self.report().interval;
        let latest = self.opened + interval + interval;
        if self.entry.expected() < latest && self.entry.bandwidth(now).is_some() && now < latest {
            self.closes = latest;
        } else {
            self.close(config, now, sending);
        }
    }

    /// Takes the upstream edge's report on the request under way. Returns true if it gave an estimate.
    pub(super) fn on_report(&mut self, config: &Config, now: Time, report: &Report, sending: usize) -> bool {
        let was_valid = self.entry.bandwidth(now).is_some();
        let Some(mut bandwidth) = self.paths[self.asked].listener.on_report(now, report) else {
            self.entry.on_nothing(&config.exchange, now);
            return false;
        };
        if !config.signed {
            bandwidth = bandwidth.max(0);
        }
        let (round, before) = (now - self.entry.began(), self.report());
        self.entry.on_bandwidth(&config.exchange, now, bandwidth);

        // The law decides once per round trip. Own traffic is compared over whole intervals, because
        // a window may pass in a part of its round trip.
        let is_due = !was_valid || (now - self.opened).0 >= before.interval.0 / 2;
        let is_long = round > before.interval;
        self.input_then = if is_long {
            Bytes(self.received - self.received_before).per(round)
        } else if is_due {
            self.link.input(now)
        } else {
            before.input
        };
        if is_due && !(is_long && was_valid) {
            self.close(config, now, sending);
        }
        true
    }

    /// A control packet came by this way.
    pub(super) fn on_delay(&mut self, now: Time, way: Way, stamp: Time) {
        if let Some(path) = self.paths.iter_mut().find(|path| path.way == way) {
            path.delay.sample(now, stamp);
        }
    }

    /// Closes the virtual router's control interval, of one of so many neighbours that send.
    ///
    /// A report passes the cloud behind the traffic that it counted, so what its bandwidth knows of
    /// this cloud's own traffic is what has just arrived here. What that grew since then is no longer
    /// available; without this, a bandwidth used again would be given away again.
    fn close(&mut self, config: &Config, now: Time, sending: usize) {
        let input = self.link.input(now);
        let signed = |rate: u64| rate.min(i64::MAX as u64 / 2) as i64;
        let bandwidth = self.entry.bandwidth(now);
        self.is_cutting =
            bandwidth.is_none() && self.entry.was_valid() && self.entry.is_overdue(&config.exchange, now);
        let spare = match bandwidth {
            None if self.is_cutting => -signed(OVERDUE.of(input.0)),
            None => 0,
            Some(bandwidth) => {
                let spare = bandwidth.saturating_sub(signed(input.0) - signed(self.input_then.0));
                let (release, give_back) = parts(config.release, config.give_back, sending);
                let free = signed(release.of(spare.max(0) as u64));
                let excess = if config.signed { spare.min(0) } else { 0 };
                free.saturating_add(excess).saturating_sub(signed(give_back.of(input.0)))
            }
        };
        let queue = match config.virtual_queue {
            VirtualQueue::Host => self.port.queue,
            VirtualQueue::None => Bytes(0),
            VirtualQueue::Auto if matches!(self.paths[self.path].listener, Listener::Told(_)) => {
                self.port.queue
            }
            VirtualQueue::Auto | VirtualQueue::Cloud => {
                input.over(Duration(self.paths[self.path].delay.growth.unwrap_or(0)))
            }
        };
        self.paths.iter_mut().for_each(|path| path.delay.growth = None);
        self.spare = spare;
        self.link.close_told(now, &Told { spare, mean_rtt: self.port.mean_rtt, queue });
        let interval = self.report().interval;
        self.entry.set_interval(interval);
        self.opened = now;
        self.closes = now + interval;
    }
}

/// Lets a packet ask for no increase.
pub(super) fn withhold(packet: &mut Packet) {
    if let Some(header) = packet.header::<xcp::Header>() {
        packet.set_header(xcp::Header { delta: header.delta.min(0), ..header });
    }
}

//! XCP: link, sender and echo law. Stub being filled in.
use super::{Ack, Send};
use crate::units::{Bytes, Duration, Rate, Ratio, Time};

/// The congestion header as the laws see it, in the units of the wire (draft-03 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// Inter-packet time of the flow, 2^-28 s.
    pub x: u32,
    /// Round trip time, 2^-28 s; 0 unknown.
    pub rtt: u32,
    /// Delta_Throughput, B/s.
    pub delta: i32,
    /// Reverse_Feedback, B/s.
    pub reverse: i32,
}

/// What a sender asks for (protocols.md 1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestPolicy {
    /// What it can use: nothing more when application or receiver limit it (D03).
    #[default]
    Demand,
    /// Always the most (ns-2).
    Unlimited,
}

/// What a sender does on loss (protocols.md 1.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPolicy {
    /// Halve once per window, 1 MSS after a timeout, feedback still applied (ns-2).
    #[default]
    Tcp,
    /// Keep the window (P-XCP); 1 MSS after a timeout.
    Maintain,
    /// Run TCP in parallel; back to XCP when its feedback is the stricter (D03 5.1).
    Fallback,
}

/// Where the throughput that a sender states comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateSource {
    /// W / srtt.
    #[default]
    Window,
    /// Bytes handed to IP, metered.
    Measured,
}

/// Configuration of the sender law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderConfig {
    /// What it asks for.
    pub request: RequestPolicy,
    /// What it does on loss.
    pub loss: LossPolicy,
    /// Window in use (and stated) is min(cwnd, awnd), and cwnd is kept at most awnd (TH 4.1).
    pub clamp: bool,
    /// Weight of the metered rate once per RTT (D03 4.1.3.1); `None`: no aging.
    pub aging: Option<Ratio>,
    /// Pace at window / srtt.
    pub pacing: bool,
    /// Where the stated throughput comes from.
    pub rate_source: RateSource,
    /// Weight of the flow's share (K02 §6): X is multiplied by it. 1 is `Ratio::ppm(1_000_000)`.
    pub price: Ratio,
    /// The most that the flow can use: the speed of its interface, usually.
    pub desired_rate: Rate,
    /// ns-2's ways (ns2-peer.md 3, 5): X from whole packets with window inflation, feedback of
    /// duplicate ACKs dropped.
    pub ns2: bool,
}

/// Configuration of the link law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LinkConfig {
    /// Ability of the link to carry IP packets.
    pub capacity: Rate,
    /// 0.4 (K02).
    pub alpha: Ratio,
    /// 0.226 (K02).
    pub beta: Ratio,
    /// 0.1 (K02).
    pub gamma: Ratio,
    /// 5 ms; 1 ms for ns-2.
    pub min_interval: Duration,
    /// 1 s.
    pub max_interval: Duration,
    /// 50 ms.
    pub initial_interval: Duration,
    /// 2 ms.
    pub allowed_queue: Duration,
    /// Capture feedback that was allocated upstream (D03 4.2.3, lines 25-27).
    pub capture: bool,
}

/// Sender state.
#[derive(Clone, Debug)]
pub struct Sender {
    cwnd: Bytes,
}

impl Sender {
    /// New.
    pub fn new(_mss: Bytes, initial_window: Bytes) -> Self {
        Self { cwnd: initial_window }
    }
    /// Ack.
    pub fn on_ack(&mut self, _c: &SenderConfig, _now: Time, _ack: &Ack) {}
    /// Loss.
    pub fn on_loss(&mut self, _c: &SenderConfig, _now: Time, _flight: Bytes) {}
    /// Timeout.
    pub fn on_timeout(&mut self, _c: &SenderConfig, _now: Time, _flight: Bytes, _is_first: bool) {}
    /// Restart.
    pub fn on_restart(&mut self, _c: &SenderConfig, _now: Time, _iw: Bytes) {}
    /// Fills the header.
    pub fn on_send(&mut self, _c: &SenderConfig, _now: Time, _send: &Send) -> Header {
        Header::default()
    }
    /// Window.
    pub fn window(&self) -> Bytes {
        self.cwnd
    }
    /// Pacing.
    pub fn pacing_rate(&self, _c: &SenderConfig, _srtt: Duration) -> Option<Rate> {
        None
    }
}

/// Link state.
#[derive(Clone, Debug)]
pub struct Link {
    config: LinkConfig,
}

impl Link {
    /// `phase` is the first deadline: where in its first interval the router begins;
    /// `queue_phase` the same for the queue estimate.
    pub fn new(config: LinkConfig, _phase: Duration, _queue_phase: Duration) -> Self {
        Self { config }
    }
    /// Takes effect at the next control interval.
    pub fn set_capacity(&mut self, capacity: Rate) {
        self.config.capacity = capacity;
    }
    /// Before enqueue, also if the packet is then dropped. `header` zeroed: counts the bytes only.
    pub fn on_arrival(&mut self, _now: Time, _header: &Header, _size: Bytes) {}
    /// Just before transmission; `backlog` is what stays queued. Only for packets with a standard header.
    pub fn on_departure(&mut self, _now: Time, _header: &mut Header, _size: Bytes, _backlog: Bytes) {}
    /// A packet without a standard header leaves: only the queue estimate wants to know.
    pub fn on_other_departure(&mut self, _now: Time, _backlog: Bytes) {}
    /// Earliest of the control and the queue timer.
    pub fn next_deadline(&self) -> Time {
        Time::NEVER
    }
    /// Serves every deadline that is due at `now`.
    pub fn on_deadline(&mut self, _now: Time, _backlog: Bytes) {}
    /// What the last control interval measured and decided, for series and events.
    pub fn report(&self) -> Report {
        Report::default()
    }
}

/// What the last control interval measured and decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Control intervals so far.
    pub intervals: u64,
    /// y, the input rate.
    pub input: Rate,
    /// F, the aggregate feedback, B/s.
    pub feedback: i64,
    /// Length of the interval now running.
    pub interval: Duration,
    /// Q, the persistent queue.
    pub persistent_queue: Bytes,
}

/// Receiver state.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Echo {
    sum: i64,
}

impl Echo {
    /// A data packet with a standard header arrived, in order or not.
    pub fn on_data(&mut self, header: &Header) {
        self.sum += i64::from(header.delta);
    }
    /// The feedback for the ACK about to leave.
    pub fn on_ack(&mut self) -> i32 {
        0
    }
}

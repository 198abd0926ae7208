//! XCP-i: XCP across routers that do not speak it.
//!
//! A router k finds, by the TTL, that a packet has crossed such routers (a *cloud*), and asks the
//! last XCP-i router before them, k-1, for the bandwidth available between the two. A *virtual
//! router* per upstream neighbour, which is an [`xcp::Link`](super::xcp::Link) that is told its spare
//! bandwidth, then imposes that. This file has what is decided per packet and per neighbour; the
//! table of neighbours, the packets and the estimators are `congestlab-net`'s.
//!
//! Sources: XI = Lopez-Pacheco, Pham, Lefèvre, "XCP-i"; values that it does not give are assumed
//! (A-09 of `docs/protocols/xcp-i.md`).

use super::{Header, Tag, Words};
use crate::units::{Duration, SECOND, Time, Wide};

/// Where an XCP-i node can be reached: its IPv4 address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Address(pub u32);

/// The TTL that senders begin with, in both fields.
pub const INITIAL_TTL: u8 = 64;

/// Fields that XCP-i adds to the congestion header (XI III-A), and the TTL of the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Extension {
    /// IP TTL: every router decrements it.
    pub ttl: u8,
    /// `xcp_ttl`: only XCP-i routers change it.
    pub xcp_ttl: u8,
    /// `last_xcp_router`: address of the last XCP-i node.
    pub last: Address,
}

/// The lower half of word 5, and word 6. The lowest byte of word 5 is the IP TTL, which every router decrements.
impl Header for Extension {
    const TAG: Tag = Tag::on_path("xcp-i");

    #[inline(always)]
    fn read(words: &Words) -> Self {
        Self { ttl: words[5] as u8, xcp_ttl: (words[5] >> 8) as u8, last: Address(words[6]) }
    }

    #[inline(always)]
    fn write(self, words: &mut Words) {
        words[5] = words[5] & 0xffff_0000 | (self.xcp_ttl as u32) << 8 | self.ttl as u32;
        words[6] = self.last.0;
    }
}

/// Routers that a packet crossed since the last XCP-i node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossed {
    /// No router without XCP-i.
    Nothing,
    /// One router without XCP-i, or more.
    Cloud,
    /// The IP TTL is the greater one: a tunnel or something that rewrites headers.
    Anomaly,
}

impl Extension {
    /// Creates a sender's extension. The sender is an XCP-i node: the cloud may begin behind it (XI III-B).
    #[inline(always)]
    pub const fn new(sender: Address) -> Self {
        Self { ttl: INITIAL_TTL, xcp_ttl: INITIAL_TTL, last: sender }
    }

    /// Returns what the packet crossed, from the TTLs as received.
    #[inline(always)]
    pub const fn crossed(self) -> Crossed {
        if self.ttl < self.xcp_ttl {
            Crossed::Cloud
        } else if self.ttl == self.xcp_ttl {
            Crossed::Nothing
        } else {
            Crossed::Anomaly
        }
    }

    /// Returns the extension as the router `own` forwards it, before the decrement of the IP TTL that every router
    /// does: after that both are equal, which hides the cloud from the routers that follow.
    #[inline(always)]
    pub const fn forwarded(self, own: Address) -> Self {
        Self { ttl: self.ttl, xcp_ttl: self.ttl.saturating_sub(1), last: own }
    }
}

/// Time between two requests for an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// One control interval (XI IV).
    Interval,
    /// A fixed time.
    Every(Duration),
}

/// Time limits of the exchange between the two edges of a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Time between two requests for an estimate.
    pub period: Period,
    /// `xcp_req_timeout`: time to wait for an answer. At least three round trips between the
    /// edges once those are known.
    pub timeout: Duration,
    /// Unanswered requests until the path counts as broken (XI III-A.3: 3).
    pub attempts: u32,
    /// Time for which packets of a broken path restart nothing.
    pub backoff: Duration,
    /// Time after which an entry is removed whose upstream neighbour sent nothing.
    pub idle: Duration,
    /// Number of periods for which a bandwidth holds.
    pub stale: u32,
}

impl Config {
    /// XI's values, and those of A-09 where it gives none.
    pub const DEFAULT: Self = Self {
        period: Period::Interval,
        timeout: Duration(SECOND),
        attempts: 3,
        backoff: Duration(SECOND),
        idle: Duration(10 * SECOND),
        stale: 3,
    };
}

/// State of an entry: how much is known of the cloud to its upstream neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing was asked, nothing is known.
    Idle,
    /// A request waits for its acknowledgment.
    Req,
    /// The upstream edge estimates.
    Est,
    /// The bandwidth is known, and is used. A new request may be under way.
    Valid,
    /// Requests stay unanswered.
    Broken,
}

/// Action that the owner of an entry has to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Do nothing.
    Nothing,
    /// Call [`Entry::begin`], and send the request.
    Begin,
    /// Send the request again.
    Repeat,
    /// Do nothing; but the path has just been found broken.
    Broken,
    /// Remove the entry.
    Remove,
}

/// The exchange that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Requested,
    Acknowledged,
    Broken,
}

/// Longest time that an estimate may take by the word of the upstream edge; a forged acknowledgment
/// must not silence an entry for good. Pathload takes 12 s in the worst case of its paper.
pub const LONGEST_ROUND: Duration = Duration(60 * SECOND);

/// Below a millisecond there is no control interval of XCP either (NS2's MIN_INTERVAL).
const SHORTEST_PERIOD: Duration = Duration(SECOND / 1000);

/// Router k's record of one upstream neighbour k-1: the exchange with it, and the bandwidth that came of it.
#[derive(Clone, Debug)]
pub struct Entry {
    phase: Phase,
    id: u32,
    nonce: u64,
    /// From when on the attempts count.
    since: Time,
    /// When the exchange began.
    began: Time,
    /// When something is to be done about the exchange.
    due: Time,
    /// The control interval, for [`Period::Interval`].
    interval: Duration,
    /// Round trip time between the edges; zero: unknown.
    rtt: Duration,
    bandwidth: i64,
    /// Until when it holds; [`Time::ZERO`]: there is none.
    valid_until: Time,
    /// When the upstream neighbour's last packet came.
    seen: Time,
}

impl Entry {
    /// Creates the entry of a neighbour whose first packet comes at `now`; [`Entry::on_packet`] is yet to hear of it.
    #[inline(always)]
    pub const fn new(now: Time, interval: Duration) -> Self {
        Self {
            phase: Phase::Idle,
            id: 0,
            nonce: 0,
            since: Time::ZERO,
            began: Time::ZERO,
            due: Time::NEVER,
            interval,
            rtt: Duration(0),
            bandwidth: 0,
            valid_until: Time::ZERO,
            seen: now,
        }
    }

    /// Takes a data packet of the neighbour that came through the cloud, and returns what to do.
    #[inline(always)]
    pub fn on_packet(&mut self, now: Time) -> Action {
        self.seen = now;
        match self.phase {
            Phase::Idle if self.due == Time::NEVER => Action::Begin,
            // `since` is the end of the back-off then.
            Phase::Broken if self.since <= now => Action::Begin,
            _ => Action::Nothing,
        }
    }

    /// Returns what to do about a data packet of the neighbour that came by another path than the one that was last
    /// asked about. That path's turn comes as soon as no request is under way, a broken one's at once; at most one
    /// request in a control interval, where several paths are in use.
    #[inline]
    pub fn on_turn(&self, now: Time) -> Action {
        match self.phase {
            Phase::Idle if self.began + self.interval <= now => Action::Begin,
            Phase::Broken => Action::Begin,
            _ => Action::Nothing,
        }
    }

    /// Begins an exchange: a new request goes out. `id` is above all that were given before, to this neighbour or
    /// another: an entry may be removed and come again. `nonce` is not to be guessed.
    #[inline]
    pub fn begin(&mut self, config: &Config, now: Time, id: u32, nonce: u64) {
        (self.id, self.nonce) = (id, nonce);
        (self.began, self.since) = (now, now);
        self.phase = Phase::Requested;
        self.due = now + self.spacing(config);
    }

    /// Takes an acknowledgment: the upstream edge has the request, and says how long its estimate takes. Returns false
    /// if this is no answer to what was asked.
    #[inline]
    pub fn on_ack(&mut self, config: &Config, now: Time, id: u32, nonce: u64, takes: Duration) -> bool {
        if !self.expects(id, nonce) {
            return false;
        }
        if self.phase != Phase::Acknowledged {
            self.phase = Phase::Acknowledged;
            self.since = now + takes.min(LONGEST_ROUND);
            self.due = self.since + self.spacing(config);
        }
        true
    }

    /// Sets the round trip time between the edges, once measured.
    #[inline]
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// Sets the control interval, for [`Period::Interval`].
    #[inline]
    pub fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
    }

    /// Returns true if a message with this number and nonce answers the request under way, or the last one on a
    /// path that was given up too early: its round trip may be longer than all attempts, and is only
    /// known from an answer.
    #[inline]
    pub fn expects(&self, id: u32, nonce: u64) -> bool {
        self.phase != Phase::Idle && self.id == id && self.nonce == nonce
    }

    /// Takes the bandwidth that was asked for, B/s. Only after [`Entry::expects`]. A report whose acknowledgment
    /// was lost is as good.
    #[inline]
    pub fn on_bandwidth(&mut self, config: &Config, now: Time, bandwidth: i64) {
        let period = self.period(config).max(now - self.began);
        self.bandwidth = bandwidth;
        self.valid_until = now + times(period, config.stale);
        self.on_nothing(config, now);
    }

    /// Takes the news that the upstream edge is done and has no estimate: the bandwidth before holds until it is
    /// stale, and the next request follows as if there were one. Only after [`Entry::expects`].
    #[inline]
    pub fn on_nothing(&mut self, config: &Config, now: Time) {
        self.phase = Phase::Idle;
        self.due = (self.began + self.period(config)).max(now);
    }

    /// Returns when [`Entry::on_deadline`] wants to be called. Packets only postpone it.
    #[inline]
    pub fn next_deadline(&self, config: &Config) -> Time {
        self.due.min(self.seen + config.idle)
    }

    /// Serves the deadlines that are due at `now`, and returns what to do.
    #[inline]
    pub fn on_deadline(&mut self, config: &Config, now: Time) -> Action {
        if self.seen + config.idle <= now {
            return Action::Remove;
        }
        if now < self.due {
            return Action::Nothing;
        }
        let end = self.since + times(self.timeout(config), config.attempts);
        match self.phase {
            Phase::Idle => Action::Begin,
            Phase::Requested | Phase::Acknowledged if end <= now => {
                self.phase = Phase::Broken;
                self.valid_until = Time::ZERO;
                self.since = now + config.backoff;
                self.due = Time::NEVER;
                Action::Broken
            }
            Phase::Requested | Phase::Acknowledged => {
                self.due = (now + self.spacing(config)).min(end);
                Action::Repeat
            }
            Phase::Broken => Action::Nothing,
        }
    }

    /// Returns the bandwidth that the upstream edge said last, B/s, while it holds.
    #[inline(always)]
    pub fn bandwidth(&self, now: Time) -> Option<i64> {
        if now < self.valid_until { Some(self.bandwidth) } else { None }
    }

    /// Returns true if there was a bandwidth since the path was last found broken, whether it holds or not.
    #[inline(always)]
    pub fn was_valid(&self) -> bool {
        self.valid_until != Time::ZERO
    }

    /// Returns true if the request under way had to be repeated for want of an answer.
    #[inline]
    pub fn is_overdue(&self, config: &Config, now: Time) -> bool {
        self.expected() + self.spacing(config) <= now
    }

    /// Returns the state of the entry.
    #[inline]
    pub fn state(&self, now: Time) -> State {
        match self.phase {
            _ if now < self.valid_until => State::Valid,
            Phase::Idle => State::Idle,
            Phase::Requested => State::Req,
            Phase::Acknowledged => State::Est,
            Phase::Broken => State::Broken,
        }
    }

    /// Returns when the exchange under way, or the last, began.
    #[inline]
    pub fn began(&self) -> Time {
        self.began
    }

    /// Returns when the answer to the request under way should be there, round trip aside; [`Time::NEVER`]: none
    /// is under way.
    #[inline]
    pub fn expected(&self) -> Time {
        match self.phase {
            Phase::Requested | Phase::Acknowledged => self.since,
            Phase::Idle | Phase::Broken => Time::NEVER,
        }
    }

    /// Returns the number of the request.
    #[inline]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the nonce of the request, which only the upstream edge knows besides.
    #[inline]
    pub fn nonce(&self) -> u64 {
        self.nonce
    }

    /// Returns when the upstream neighbour's last packet came: the entry with the earliest is the first to go
    /// when a table is full.
    #[inline]
    pub fn seen(&self) -> Time {
        self.seen
    }

    /// Returns the round trip time between the edges; zero: unknown.
    #[inline]
    pub fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Returns the time between two requests for an estimate.
    #[inline]
    pub fn period(&self, config: &Config) -> Duration {
        let period = match config.period {
            Period::Interval => self.interval,
            Period::Every(period) => period,
        };
        period.max(SHORTEST_PERIOD)
    }

    /// `xcp_req_timeout`.
    #[inline]
    fn timeout(&self, config: &Config) -> Duration {
        config.timeout.max(times(self.rtt, 3))
    }

    /// Between two sendings of a request. On a path that has answered before, a lost request is repeated
    /// as soon as an answer is overdue: the bandwidth would become stale within the time-out.
    #[inline]
    fn spacing(&self, config: &Config) -> Duration {
        let timeout = self.timeout(config);
        if !self.was_valid() {
            return timeout;
        }
        self.period(config).max(times(self.rtt, 3)).min(timeout)
    }
}

/// `span * n`, saturating: BPF has no multiplication that tells an overflow.
#[inline(always)]
fn times(span: Duration, n: u32) -> Duration {
    Duration(Wide::product(span.0, n as u64).to_u64())
}

//! FQ-CoDel (RFC 8290): flows are hashed to queues, which take turns by deficit round robin, new ones first, and each of
//! which is CoDel's. A port that holds more than it may drops from the head of the longest queue (docs/design/modern.md
//! 5.4).
//!
//! The law's memory is bounded: a record for each of so many queues, however many flows there are. Flows that share a
//! queue share its turns.

use super::codel::{self, Control};
use super::{Arrival, Departure, Draws, Limit, QueueLaw, Queues, Reason, Record, Verdict, Victim, mix};
use crate::law::Packet;
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::units::Bytes;

/// Most queues of a port.
const FLOWS_MAX: u32 = 65_535;
/// Least bytes of a turn (Linux): else a long packet takes many turns of waiting.
const QUANTUM_MIN: u32 = 256;

/// Settings of FQ-CoDel in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// CoDel of each queue.
    pub codel: codel::Config,
    /// Number of queues.
    pub flows: u32,
    /// Bytes of a turn.
    pub quantum: u32,
    /// Most packets that are dropped at once from the longest queue.
    pub drop_batch: u32,
    /// Salt of the hash: which flows share a queue.
    pub salt: u32,
    /// True to give flows queues by their numbers instead of a hash.
    pub perfect: bool,
}

impl Default for Config {
    /// RFC 8290 §5.2 and tc.
    fn default() -> Self {
        let codel = codel::Config { ecn: true, ..codel::Config::default() };
        Self { codel, flows: 1024, quantum: 1514, drop_batch: 64, salt: 1, perfect: false }
    }
}

impl Settings for Config {
    #[inline]
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        tell(
            "flows",
            "Queues that flows are hashed to; 1024 (tc).",
            Field::Number(&mut self.flows, FLOWS_MAX),
        );
        tell("quantum", "Bytes of a turn; 1514 (tc).", Field::Number(&mut self.quantum, 1 << 20));
        tell(
            "drop_batch",
            "Packets that a full port drops at most at once, from its longest queue; 64 (tc).",
            Field::Number(&mut self.drop_batch, FLOWS_MAX),
        );
        tell("salt", "Which flows share a queue by the hash; 1.", Field::Count(&mut self.salt));
        tell(
            "perfect",
            "Give flows queues in order instead of by a hash, so that none share one while there are enough; false.",
            Field::Switch(&mut self.perfect),
        );
        self.codel.each(tell);
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        if self.quantum < QUANTUM_MIN {
            let text = alloc::format!("is {}", self.quantum);
            tell(Finding::range("quantum", text, "allowed: 256 to 1048576, such as 1514, a packet"));
        }
        self.codel.check(tell);
    }
}

/// No queue.
const NONE: u32 = u32::MAX;

/// A list of queues, linked by their records.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: Self = Self { head: NONE, tail: NONE };

    fn push(&mut self, queue: u32, queues: &mut impl Queues) {
        if let Some(record) = queues.record(queue as usize) {
            record[LINK] = NONE;
        }
        if self.head == NONE {
            self.head = queue;
        } else if let Some(record) = queues.record(self.tail as usize) {
            record[LINK] = queue;
        }
        self.tail = queue;
    }

    /// Takes the first queue off.
    fn pop(&mut self, queues: &mut impl Queues) {
        let next = queues.record(self.head as usize).map_or(NONE, |record| record[LINK]);
        *self = if next == NONE { Self::EMPTY } else { Self { head: next, ..*self } };
    }
}

/// The word of a record that is the deficit; CoDel has those from the next one on.
const DEFICIT: usize = 0;
/// The word that is the queue behind it in its list.
const LINK: usize = 8;
/// The word that tells whether the queue is in a list.
const LISTED: usize = 9;

fn quantum(config: &Config) -> u32 {
    config.quantum.max(QUANTUM_MIN)
}

fn deficit(record: &Record) -> i64 {
    i64::from(record[DEFICIT] as i32)
}

fn set_deficit(record: &mut Record, bytes: i64) {
    record[DEFICIT] = bytes.clamp(i32::MIN.into(), i32::MAX.into()) as i32 as u32;
}

/// The lists of queues that have turns; all else is in the records.
#[derive(Clone, Debug)]
pub struct FqCodel {
    config: Config,
    /// Queues that have come since they were last found empty.
    new: List,
    old: List,
    /// Queue whose turn it is.
    chosen: Option<u32>,
}

impl FqCodel {
    /// Number of queues.
    fn flows(config: &Config) -> u32 {
        config.flows.clamp(1, FLOWS_MAX)
    }

    /// The queue whose turn it is, one of `passing` or with packets that wait.
    fn turn(&mut self, passing: Option<u32>, queues: &mut impl Queues) -> Option<u32> {
        loop {
            let is_new = self.new.head != NONE;
            let list = if is_new { &mut self.new } else { &mut self.old };
            let queue = list.head;
            if queue == NONE {
                return None;
            }
            let record = queues.record(queue as usize)?;
            let left = deficit(record);
            if left <= 0 {
                set_deficit(record, left + i64::from(quantum(&self.config)));
                list.pop(queues);
                self.old.push(queue, queues);
                continue;
            }
            if Some(queue) == passing || queues.packets(queue as usize) > 0 {
                return Some(queue);
            }
            list.pop(queues);
            if is_new && self.old.head != NONE {
                // Else one that sends a packet whenever it is empty would always be new (RFC 8290 §4.2).
                self.old.push(queue, queues);
            } else if let Some(record) = queues.record(queue as usize) {
                record[LISTED] = 0;
            }
            if let Some(record) = queues.record(queue as usize) {
                let mut control = Control::read(record);
                control.find_empty();
                control.write(record);
            }
        }
    }
}

impl QueueLaw for FqCodel {
    type Config = Config;
    type Sample = ();

    const ABOUT: &'static str = "FQ-CoDel: flows take turns, each with CoDel (RFC 8290).";

    fn start(config: &Config) -> Self {
        Self { config: *config, new: List::EMPTY, old: List::EMPTY, chosen: None }
    }

    fn queues(config: &Config) -> usize {
        Self::flows(config) as usize
    }

    fn limit(_config: &Config, _queue: usize, _port: Limit) -> Limit {
        Limit::None
    }

    fn total(_config: &Config, port: Limit) -> Limit {
        port
    }

    fn marks(config: &Config) -> bool {
        config.codel.ecn
    }

    #[inline]
    fn classify(&self, _packet: &impl Packet, flow: u32) -> usize {
        let flows = Self::flows(&self.config);
        if self.config.perfect {
            return (flow % flows) as usize;
        }
        let mixed = mix(u64::from(flow) | u64::from(self.config.salt) << 32) >> 32;
        ((mixed * u64::from(flows)) >> 32) as usize
    }

    fn on_enqueue(
        &mut self,
        arrival: &Arrival<'_, impl Packet>,
        queues: &mut impl Queues,
        _draws: &mut impl Draws,
    ) -> Verdict {
        if let Some(record) = queues.record(arrival.queue)
            && record[LISTED] == 0
        {
            record[LISTED] = 1;
            set_deficit(record, quantum(&self.config).into());
            self.new.push(arrival.queue as u32, queues);
        }
        Verdict::Pass
    }

    fn on_overflow(&mut self, queues: &mut impl Queues) -> Victim {
        let (mut longest, mut most) = (0, (Bytes(0), 0));
        for queue in 0..Self::flows(&self.config) as usize {
            let waiting = (queues.bytes(queue), queues.packets(queue));
            if waiting > most {
                (longest, most) = (queue, waiting);
            }
        }
        let half = Bytes(most.0.0 / 2);
        Victim { queue: longest, packets: self.config.drop_batch.max(1).into(), bytes: half }
    }

    fn next(&mut self, queues: &mut impl Queues) -> usize {
        self.chosen = self.turn(None, queues);
        self.chosen.unwrap_or(0) as usize
    }

    fn on_dequeue(
        &mut self,
        departure: &Departure<'_, impl Packet>,
        queues: &mut impl Queues,
        _draws: &mut impl Draws,
    ) -> Verdict {
        let queue = departure.queue as u32;
        if self.chosen.take() != Some(queue) {
            // It passes an idle port, where nobody asked whose turn it is.
            self.turn(Some(queue), queues);
        }
        let (behind, is_last) = (queues.backlog(), queues.packets(departure.queue) == 0);
        let Some(record) = queues.record(departure.queue) else { return Verdict::Pass };
        let mut control = Control::read(record);
        let verdict = control.judge(&self.config.codel, departure, behind, is_last);
        control.write(record);
        if !matches!(verdict, Verdict::Drop(_)) {
            let size = i64::try_from(departure.packet.size().0).unwrap_or(i64::MAX);
            set_deficit(record, deficit(record).saturating_sub(size));
        }
        verdict
    }

    fn on_drop(&mut self, queue: usize, reason: Reason, queues: &mut impl Queues) {
        if reason == Reason::QueueFull
            && let Some(record) = queues.record(queue)
        {
            let mut control = Control::read(record);
            control.count_overflow();
            control.write(record);
        }
    }

    fn sample(&mut self, _queues: &impl Queues) {}
}

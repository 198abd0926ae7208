//! The choice of how a connected network runs: on several threads, each with a part of it, or on one.
//!
//! Threads meet at least as often as something may pass between their parts. Where little happens from one meeting
//! to the next, meeting costs more than the packets, most of all where one has to sleep until the others
//! have a processor. So the packets that threads take off each other are counted: that needs no clock and
//! is the same on every machine. After every so many meetings the network goes on the way that costs less,
//! and where one thread had more to do than was expected, it is shared anew by what was counted.
//! The outcome is the same for all.

use congestlab_net::packet::Picos;

use crate::barrier::{Exchange, Meeting};
use crate::elements::Elements;
use crate::network::Network;
use crate::parallel::Counted;
use crate::plan::Plan;
use crate::share::{self, Share};
use crate::store::Store;
use crate::window::Domain;
use crate::{Progress, Span};

/// When threads are worth while. Numbers are packets that a meeting takes off the busiest thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Meetings that are looked at together. A run begins with so many, on threads.
    pub(crate) stretch: u64,
    /// So many at best, and threads are tried.
    pub(crate) attempt: u64,
    /// So many, and threads stay.
    pub(crate) stay: u64,
    /// The network is taken apart for every turn. So each return to one thread makes the time until the
    /// next attempt so many times as long.
    pub(crate) patience: u64,
    /// Meetings until it is first asked whether the work is shared as was expected; then twice as many, and so on.
    pub(crate) look: u64,
    /// Packets that a meeting could take off one thread at least, or it is not counted in this.
    pub(crate) busy: u64,
    /// Percent of all by which one half of that time may have more than the other: what grows or ends is not learned, since
    /// packets that were sent have yet to come to others.
    pub(crate) steady: u64,
    /// Percent by which it has more where the work has but begun: the next look takes no longer. All may differ by as much from
    /// the half before them.
    pub(crate) begun: u64,
    /// Percent of what it was to have, from which on the busiest has too much.
    pub(crate) uneven: u64,
    /// Percent of what a second costs, at most, for which it is shared anew.
    pub(crate) better: u64,
    /// Hosts count so many times: of very busy ones tests make parts where nothing else would.
    pub(crate) hosts: u64,
}

/// A packet takes 20 ns or more; a meeting 1 µs among threads that are awake, 10 to 50 µs where one
/// has to be woken.
pub(crate) const RULE: Rule = Rule {
    stretch: 64,
    attempt: 1300,
    stay: 1000,
    patience: 2,
    look: 16,
    busy: 1000,
    steady: 1,
    begun: 10,
    uneven: 110,
    better: 95,
    hosts: 1,
};

/// The end of a leg of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// So does the run.
    Complete,
    /// Somebody stopped the run.
    Stopped,
    /// The network goes on another way, from this time on.
    Turn(Turn, Picos),
}

impl Ending {
    /// The end of a leg of two threads.
    fn and(self, other: Self) -> Self {
        if other == Self::Stopped { other } else { self }
    }
}

/// A way for a network to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// On one thread.
    Alone,
    /// On several, each with as much as the others, by what was counted.
    Shared,
}

/// Counts what the threads of a leg take off each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    rule: Rule,
    /// Threads among which the network can be shared; 1: no other way.
    threads: u64,
    is_shared: bool,
    /// Meetings that threads would have had since the last of one that is alone.
    each: u64,
    /// Meetings until it is decided how to go on.
    stretch: u64,
    meetings: u64,
    /// Packets that the busiest thread need not serve.
    spared: u64,
    /// Work that the busiest thread was to have, of all that there is.
    expected: (u64, u64),
    /// Meetings until it is asked whether it was so, those since, and what the busiest had of all in each half of them.
    look: u64,
    seen: u64,
    had: [(u64, u64); 2],
    /// Work of all in the second half of the look before, and its meetings.
    last: (u64, u64),
    /// True if counts are to be forgotten, since they are no longer so.
    forgets: bool,
}

impl Tally {
    fn new(rule: Rule, share: Option<&Share>, is_shared: bool, each: u64, stretch: u64, look: u64) -> Self {
        let threads = share.map_or(1, |share| share.plan.domains()) as u64;
        let expected = share.map_or((1, 1), |share| share.expected);
        let (meetings, spared, seen, had) = (0, 0, 0, [(0, 0); 2]);
        Self {
            rule,
            threads,
            is_shared,
            each,
            stretch,
            meetings,
            spared,
            expected,
            look,
            seen,
            had,
            last: (0, 0),
            forgets: false,
        }
    }

    /// For a leg that never turns.
    pub(crate) fn of_one() -> Self {
        Self::new(RULE, None, false, 1, RULE.stretch, RULE.look)
    }

    /// The way to go on if it is time for another: the same on all threads that were at the meeting.
    pub(crate) fn turns(&mut self, meeting: &Meeting) -> Option<Turn> {
        if self.threads == 1 {
            return None;
        }
        let busiest = if self.is_shared { meeting.most } else { meeting.packets / self.threads };
        self.meetings += self.each;
        self.spared += meeting.packets - busiest;
        // They only add up: where a stretch would have enough whatever comes, one alone does not wait for its end.
        let is_plenty = !self.is_shared && self.spared >= self.stretch.saturating_mul(self.rule.attempt);
        if self.meetings >= self.stretch || is_plenty {
            let spared = self.spared / self.meetings;
            // Patience is over once and for all.
            (self.meetings, self.spared, self.stretch) = (0, 0, self.rule.stretch);
            match self.is_shared {
                true if spared < self.rule.stay => return Some(Turn::Alone),
                false if spared >= self.rule.attempt => return Some(Turn::Shared),
                _ => {}
            }
        }
        (self.is_shared && self.is_uneven(meeting)).then_some(Turn::Shared)
    }

    /// True if what was counted before the last meeting is no longer so.
    pub(crate) fn forgets(&mut self) -> bool {
        std::mem::take(&mut self.forgets)
    }

    /// True if it is time to look, and the busiest thread had more than its part, in a time that says how it will be.
    fn is_uneven(&mut self, meeting: &Meeting) -> bool {
        if meeting.packets - meeting.packets / self.threads < self.rule.busy {
            return false;
        }
        let half = &mut self.had[usize::from(2 * self.seen >= self.look)];
        *half = (half.0 + meeting.longest, half.1 + meeting.work);
        self.seen += 1;
        if self.seen < self.look {
            return false;
        }
        let [before, since] = std::mem::take(&mut self.had);
        let [had, of, expected, all] =
            [before.0 + since.0, before.1 + since.1, self.expected.0, self.expected.1].map(u128::from);
        let change = u128::from(before.1.abs_diff(since.1)) * 100;
        let [steady, begun, uneven] = [self.rule.steady, self.rule.begun, self.rule.uneven].map(u128::from);
        // Halves are equal by chance, too, but hardly with that before them.
        let [now, last] = [of * u128::from(self.last.1), u128::from(self.last.0) * u128::from(self.seen)];
        let goes_on = now.abs_diff(last) * 100 <= begun * now.max(last);
        self.last = (since.1, self.seen - self.seen.div_ceil(2));
        self.seen = 0;
        self.look *= if change < begun * of { 2 } else { 1 };
        self.forgets = change > steady * of || !goes_on;
        !self.forgets && had * all * 100 > uneven * expected * of
    }
}

/// Runs a network in windows, on as many threads as are worth while and at most so many; `alone`: the plan for one.
/// Returns false if it was stopped early. With `counted` threads take turns on this one, and what they do is counted.
#[expect(clippy::too_many_arguments, reason = "a run, and how it runs")]
pub(crate) fn run(
    network: &Network,
    alone: &Plan,
    (threads, divisor): (usize, u32),
    elements: &mut Elements,
    span: &Span<'_>,
    rule: Rule,
    mut counted: Option<&mut Counted>,
    progress: &mut dyn FnMut(Progress),
) -> bool {
    let hosts = network.links..network.links + network.classes.len();
    let guessed = || {
        let mut load = share::guess(network);
        load[hosts.clone()].iter_mut().for_each(|load| *load *= rule.hosts);
        Share::new(network, divisor, threads, &load)
    };
    let mut share = if threads > 1 { guessed() } else { None };
    let (mut is_shared, mut from, mut packets) = (share.is_some(), 0, 0);
    let (mut until_attempt, mut until_look) = (rule.stretch, rule.look);
    let mut on_their_way = Vec::new();
    loop {
        let shared = share.as_ref().filter(|_| is_shared);
        let (alone, each) = match &share {
            Some(share) if !is_shared => alone.in_step(&share.plan),
            _ => (alone.clone(), 1),
        };
        let (here, plan) = shared.map_or((network, &alone), |share| (&share.cut.network, &share.plan));
        if let Some(share) = shared {
            share.cut.part(network, elements);
        }
        let mut domains: Vec<Domain<'_>> = (0..plan.domains())
            .map(|id| Domain::new(here, plan, id, elements, span, Store::default(), from))
            .collect();
        for mut packet in on_their_way.drain(..) {
            if let Some(share) = shared {
                share.cut.enter(network, &mut packet);
            }
            let node = here.node_of(here.routes[packet.route as usize]);
            domains[usize::from(plan.home[node])].take_in(&packet);
        }
        let stretch = if is_shared { rule.stretch } else { until_attempt };
        let tally = Tally::new(rule, share.as_ref(), is_shared, each, stretch, until_look);
        let mut exchange = Exchange::new(domains.len(), plan.lead, span.stop);
        let mut tell = |leg: Progress| progress(Progress { packets: packets + leg.packets, ..leg });
        let ending = match counted.as_deref_mut() {
            None => run_leg(&mut domains, &exchange, tally, &mut tell),
            Some(counted) => run_in_turn(&mut domains, &exchange, tally, counted),
        };
        if matches!(ending, Ending::Turn(..)) {
            // What another thread has yet to receive was sent after what it has.
            domains.iter_mut().for_each(|domain| domain.unload(&mut on_their_way));
            exchange.unheard().for_each(|mail| mail.unload(&mut on_their_way));
            // Mail keeps packets of one window in order, and the next leg may have longer windows, which hosts with one input do
            // not sort. The sort is stable: packets of one input that arrive at one instant stay in the order of sending.
            on_their_way.sort_by_key(|packet| packet.at);
        }
        elements.reached = Picos::MAX;
        let mut load = vec![0_u64; here.nodes()];
        let counted_from = domains[0].counted_from;
        for domain in domains {
            packets += domain.packets;
            load.iter_mut().zip(&domain.load).for_each(|(sum, load)| *sum += load);
            domain.finish(elements);
        }
        if let Some(share) = shared {
            on_their_way.iter_mut().for_each(|packet| share.cut.leave(packet));
            share.cut.join(elements);
            load = (0..network.nodes()).map(|n| share.cut.nodes(network, n).map(|n| load[n]).sum()).collect();
        }
        let (turn, at) = match ending {
            Ending::Complete => return true,
            Ending::Stopped => return false,
            Ending::Turn(turn, at) => (turn, at),
        };
        match turn {
            Turn::Alone => (until_attempt, until_look) = (until_attempt * rule.patience, rule.look),
            // One that is alone leaves it for what has just begun, which says little.
            Turn::Shared if !is_shared => {}
            Turn::Shared => {
                until_look *= 2;
                let seconds = (at - counted_from).max(1);
                load.iter_mut().for_each(|load| *load = share::in_a_second(*load, seconds));
                load[hosts.clone()].iter_mut().for_each(|load| *load *= rule.hosts);
                share = share.map(|share| better(network, (threads, divisor), share, &load, rule));
            }
        }
        (is_shared, from) = (turn == Turn::Shared, at);
    }
}

/// The way to share a network with such a load: as before, unless another is better.
fn better(
    network: &Network,
    (threads, divisor): (usize, u32),
    mut share: Share,
    load: &[u64],
    rule: Rule,
) -> Share {
    share.expect(network, load);
    let least = (u128::from(share.cost()) * u128::from(rule.better) / 100) as u64;
    Share::new(network, divisor, threads, load).filter(|new| new.cost() <= least).unwrap_or(share)
}

/// Runs domains, each on a thread.
fn run_leg(
    domains: &mut [Domain<'_>],
    exchange: &Exchange<'_>,
    tally: Tally,
    progress: &mut dyn FnMut(Progress),
) -> Ending {
    let (first, others) = domains.split_first_mut().expect("a plan has a domain");
    std::thread::scope(|scope| {
        let start = |(domain, id): (_, usize)| {
            let domain: &mut Domain<'_> = domain;
            scope.spawn(move || domain.run_all(exchange.seat(id), tally, &mut |_| {}))
        };
        let others: Vec<_> = others.iter_mut().zip(1..).map(start).collect();
        let ending = first.run_all(exchange.seat(0), tally, progress);
        let endings = others.into_iter().map(|other| other.join().expect("no thread panics"));
        endings.fold(ending, Ending::and)
    })
}

/// Runs domains one after the other from each meeting to the next, as threads would, and counts.
fn run_in_turn(
    domains: &mut [Domain<'_>],
    exchange: &Exchange<'_>,
    tally: Tally,
    counted: &mut Counted,
) -> Ending {
    let mut seats: Vec<_> = (0..domains.len()).map(|id| exchange.seat(id)).collect();
    let mut tallies = vec![tally; domains.len()];
    let mut leg = counted.leg(exchange);
    domains.iter_mut().zip(&mut seats).for_each(|(domain, seat)| domain.tell(seat));
    loop {
        leg.add(domains, &seats);
        let each = domains.iter_mut().zip(&mut seats).zip(&mut tallies);
        let endings: Vec<_> = each.map(|((domain, seat), tally)| domain.go_on(seat, tally)).collect();
        let Some(ending) = endings.iter().copied().flatten().reduce(Ending::and) else {
            domains.iter_mut().zip(&mut seats).for_each(|(domain, seat)| domain.tell(seat));
            continue;
        };
        if matches!(ending, Ending::Turn(..)) {
            leg.add(domains, &seats);
        }
        return if endings.contains(&None) { Ending::Stopped } else { ending };
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;
    use std::thread::{self, ThreadId};

    use congestlab_net::packet::Packet;

    use super::*;
    use crate::common::{self, Draw};
    use crate::model::Model;
    use crate::outcome::Outcome;
    use crate::{Engine, Tap};

    /// So many times as busy, hosts are most of the work.
    pub(crate) const BUSY: u64 = 1 << 16;

    /// When packets were sent, and whether by a thread that was started for it.
    struct Hands(ThreadId, Mutex<Vec<(Picos, bool)>>);

    impl Tap for Hands {
        fn sent(&self, _: u32, at: Picos, _: &Packet, _: bool) {
            self.1.lock().expect("no panic with it").push((at, thread::current().id() != self.0));
        }
    }

    fn outcome(
        model: &Model,
        (threads, divisor): (usize, u32),
        rule: Rule,
        tap: Option<&dyn Tap>,
        counted: Option<&mut Counted>,
    ) -> Outcome {
        let network = Network::new(model);
        let stop = AtomicBool::new(false);
        let mut elements = Elements::new(model, &network, false, &stop);
        let (end, bin, events) = (model.duration, model.sample_every, model.record_events);
        let span = Span { end, bin, events, tap, stop: &stop };
        let alone = Plan::new(&network, divisor).expect("a network with windows");
        assert!(run(&network, &alone, (threads, divisor), &mut elements, &span, rule, counted, &mut |_| {}));
        elements.finish(model, true)
    }

    /// The way in which a run with very busy hosts begins; `None`: one thread has it all.
    fn share(network: &Network, (threads, divisor): (usize, u32)) -> Option<Share> {
        let mut load = share::guess(network);
        load[network.links..].iter_mut().for_each(|load| *load *= BUSY);
        Share::new(network, divisor, threads, &load)
    }

    /// The classes in which such a run begins, and those of the model.
    pub(crate) fn classes(model: &Model, threads: usize) -> Option<[usize; 2]> {
        let network = Network::new(model);
        Some([share(&network, (threads, 1))?.cut.network.classes.len(), network.classes.len()])
    }

    #[test]
    fn a_network_that_changes_hands_again_and_again_runs_as_in_one() {
        let (mut networks, mut returns, mut cuts, mut leads) = (0, 0, 0, 0);
        for seed in 0..120 {
            let mut draw = Draw::new(seed);
            let mut model = common::random_model(&mut draw, seed);
            match seed % 8 {
                1 => common::interoperate(&mut draw, &mut model),
                5 => common::share_media(&mut draw, &mut model),
                _ => {}
            }
            if seed % 4 == 0 {
                (model.sample_every, model.record_events) = (Some(7_000_000_000), true);
            }
            let way = ([3, 16][seed as usize / 2 % 2], [1, 256][usize::from(seed % 4 == 2)]);
            let network = Network::new(&model);
            let Some(share) = share(&network, way) else { continue };
            networks += 1;
            cuts += usize::from(share.cut.network.classes.len() > network.classes.len());
            leads += usize::from(share.plan.lead > 0);
            let expected = crate::run(&model, Engine::Reference, &AtomicBool::new(false), &mut |_| {});
            let hands = Hands(thread::current().id(), Mutex::default());
            let restless = Rule { stretch: 3, attempt: 0, stay: u64::MAX, patience: 1, hosts: BUSY, ..RULE };
            // Every other one is shared anew before it leaves threads, however that is.
            let restless = Rule { look: 1 + seed % 2, busy: 0, steady: 100, begun: 100, ..restless };
            let restless = Rule { uneven: 0, better: 10_000 * (seed % 2), ..restless };
            let got = outcome(&model, way, restless, Some(&hands), None);
            assert_eq!(got.fingerprint, expected.fingerprint, "seed {seed}");
            assert!(got == expected, "seed {seed}: equal fingerprint, but not equal");
            // Threads leave after three meetings that they have heard of.
            let sent = hands.1.into_inner().expect("no panic with it");
            returns += usize::from(sent.iter().any(|&(at, is_other)| is_other && at > model.duration / 2));
        }
        assert!(networks > 80 && returns > 60, "{returns} of {networks} networks on threads once more");
        assert!(cuts > 30, "{cuts} of {networks} networks with classes that were cut");
        assert!(
            leads > 10,
            "{leads} of {networks} networks with threads that need not hear of the last meeting"
        );
    }

    /// Stops a run at the first packet that is sent after some time.
    struct Impatient<'a>(Picos, &'a AtomicBool);

    impl Tap for Impatient<'_> {
        fn sent(&self, _: u32, at: Picos, _: &Packet, _: bool) {
            self.1.fetch_or(at > self.0, std::sync::atomic::Ordering::Relaxed);
        }
    }

    #[test]
    fn threads_that_are_ahead_of_each_other_give_up_together() {
        let mut leads = 0;
        for seed in (2..400).step_by(8) {
            let model = common::random_model(&mut Draw::new(seed), seed);
            let (network, way) = (Network::new(&model), (3, 256));
            let Some(share) = share(&network, way).filter(|share| share.plan.lead > 0) else { continue };
            leads += 1;
            let stop = AtomicBool::new(false);
            let tap = Impatient(model.duration / 10 * (seed / 8 % 10), &stop);
            let mut elements = Elements::new(&model, &network, false, &stop);
            let span = Span { end: model.duration, bin: None, events: false, tap: Some(&tap), stop: &stop };
            let alone = Plan::new(&network, way.1).expect("a network with windows");
            let rule = Rule { hosts: BUSY, ..RULE };
            let is_complete = run(&network, &alone, way, &mut elements, &span, rule, None, &mut |_| {});
            assert!(!is_complete || !stop.into_inner(), "seed {seed}, threads {}", share.plan.domains());
        }
        assert!(leads > 10, "{leads} networks with threads that need not hear of the last meeting");
    }
}

//! The choice of how a connected network runs: on several threads, each with a part of it, or on one.
//!
//! Threads meet at least as often as something may pass between their parts. Where little happens from one meeting
//! to the next, meeting costs more than the packets, most of all where one has to sleep until the others
//! have a processor. So the packets that threads take off each other are counted: that needs no clock and
//! is the same on every machine. After every so many meetings the network goes on the way that costs less,
//! and where one thread had more to do than was expected, it is shared anew by what was counted.
//! The outcome is the same for all.

use congestlab_net::packet::Picos;

use crate::barrier::Exchange;
use crate::elements::Elements;
use crate::network::Network;
use crate::parallel::Counted;
use crate::plan::Plan;
use crate::share::{self, Share};
use crate::store::Store;
use crate::tally::{Ending, Rule, Tally, Turn};
use crate::window::Domain;
use crate::{Progress, Span};

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
    use crate::tally::RULE;
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
        for seed in 0..136 {
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

//! The claims of papers/mpcp that the model answers: set-ups as their figures have them, the numbers that the claims read.

use crate::model::{Chain, Equal, FlowSpec, LinkSpec, Random, Run, Seen, Source, mean, run};

/// What a claim reads at a point of its sweep, of one seed: a number, and what it is a ratio to.
pub(crate) type Reading = (&'static str, f64, Option<f64>);

/// A figure: its file's name, and what its claims read in a run with a seed.
pub(crate) type Figure = (&'static str, fn(u64) -> Vec<Reading>);

pub(crate) const FIGURES: [Figure; 14] = [
    ("fig02ab", fig02ab),
    ("fig02ab-readings", fig02ab_readings),
    ("fig02cd", fig02cd),
    ("fig02cd-readings", fig02cd_readings),
    ("fig02cd-shares", fig02cd_shares),
    ("fig03", fig03),
    ("fig03-readings", fig03_readings),
    ("fig04", fig04),
    ("fig05", fig05),
    ("fig05-readings", fig05_readings),
    ("text2-2", text2_2),
    ("text4-1", text4_1),
    ("ex6-7", ex6_7),
    ("ex6-8", ex6_8),
];

const VCP: Chain = 1;
pub(crate) const DPCP: Chain = 2;
const TPCP: Chain = 3;
const MBIT: f64 = 1e6;

/// MP fig. 1a: 30 flows over four links, 10 over each; those of the third come at 1000 s.
pub(crate) fn parking_lot(
    chain: Chain,
    interval: f64,
    duration: f64,
    seed: u64,
    flow: impl Fn(&mut FlowSpec),
) -> Seen {
    let mut random = Random(seed ^ 0x5eed);
    let rates = [4.0, 4.0, 2.0, 4.0];
    let links = rates.map(|rate| LinkSpec { interval, ..LinkSpec::new(chain, rate * MBIT, 0.25) });
    let mut flows = Vec::new();
    let groups: [(&'static str, &[usize], usize); 5] = [
        ("long", &[0, 1, 2, 3], 30),
        ("local0", &[0], 10),
        ("local1", &[1], 10),
        ("local2", &[2], 10),
        ("local3", &[3], 10),
    ];
    for (group, path, count) in groups {
        for index in 0..count {
            let start = if group == "local2" { 1000.0 + 0.1 * index as f64 } else { random.draw() };
            let mut spec = FlowSpec::new(group, chain, path, start);
            flow(&mut spec);
            flows.push(spec);
        }
    }
    run(Run { links: links.to_vec(), flows, duration, warmup: 300.0, every: 10.0, seed })
}

fn fig02ab(seed: u64) -> Vec<Reading> {
    let seen = parking_lot(VCP, 1.25, 3000.0, seed, |flow| flow.interval = 1.25);
    let local = |from, to| seen.goodput("local0", from, to);
    vec![
        (
            "VCP gives local flows of the first link fifteen times what long ones get, within a tenth",
            local(300.0, 3000.0),
            Some(seen.goodput("long", 300.0, 3000.0)),
        ),
        (
            "the split of the first link does not change when local flows come to the third one: by a tenth of the link at most",
            local(1300.0, 3000.0) - local(300.0, 1000.0),
            None,
        ),
    ]
}

fn fig02ab_readings(seed: u64) -> Vec<Reading> {
    let seen = parking_lot(VCP, 0.2, 1020.0, seed, |_| ());
    vec![(
        "measured over 200 ms, a tenth of the long round trip, links stay overloaded, and cuts treat all alike: twice at most",
        seen.goodput("local0", 300.0, 1000.0),
        Some(seen.goodput("long", 300.0, 1000.0)),
    )]
}

fn fig02cd(seed: u64) -> Vec<Reading> {
    let seen = parking_lot(DPCP, 0.2, 3000.0, seed, |_| ());
    let early = |group| seen.goodput(group, 300.0, 1000.0);
    let late = |group| seen.goodput(group, 1300.0, 3000.0);
    let long = Some(late("long"));
    vec![
        (
            "DPCP shares the first link: locals get 2.5 times what long ones do at most",
            early("local0"),
            Some(early("long")),
        ),
        ("long flows fill the third link while it is theirs: 98 % or more", early("long"), None),
        ("then both have half of it", late("local2"), long),
        ("then locals have 75 % of the first link, long ones 25 %", late("local0"), long),
        (
            "by equal shares of each flow (C-24) locals of the third link have a third of what long ones do",
            late("local2"),
            long,
        ),
        (
            "by equal shares of each flow (C-24) locals of the first link then have 62.5 % of it, 1.7 times what long ones do",
            late("local0"),
            long,
        ),
    ]
}

fn fig02cd_readings(seed: u64) -> Vec<Reading> {
    let growth = |flow: &mut FlowSpec| {
        flow.alpha = 0.6;
        flow.rtt_max = 1.1;
    };
    let seen = parking_lot(DPCP, 2.0, 1020.0, seed, growth);
    let early = |group| seen.goodput(group, 300.0, 1000.0);
    vec![
        (
            "measured over 2 s: DPCP shares the first link: locals get 2.5 times what long ones do at most",
            early("local0"),
            Some(early("long")),
        ),
        (
            "measured over 2 s: long flows fill the third link while it is theirs: 95 % or more",
            early("long"),
            None,
        ),
    ]
}

fn fig02cd_shares(seed: u64) -> Vec<Reading> {
    let growth = |flow: &mut FlowSpec| {
        flow.alpha = 0.25;
        flow.rtt_max = 2.0;
    };
    let seen = parking_lot(DPCP, 0.2, 3000.0, seed, growth);
    let late = |group| seen.goodput(group, 2000.0, 3000.0);
    let long = Some(late("long"));
    vec![
        ("equal growth: locals of the third link have a third of what long ones do", late("local2"), long),
        (
            "equal growth: locals of the first link then have 62.5 % of it, 1.7 times what long ones do",
            late("local0"),
            long,
        ),
        (
            "equal growth: long flows fill the third link while it is theirs: 98 % or more",
            seen.goodput("long", 300.0, 1000.0),
            None,
        ),
    ]
}

/// One flow of each law on a link of its own. Links of DPCP and TPCP measure over `interval`.
fn alone(rate: f64, delay: f64, interval: f64, seed: u64) -> Seen {
    let chains = [VCP, DPCP, TPCP];
    let link = |chain| {
        let interval = if chain == VCP { 0.2 } else { interval };
        LinkSpec { interval, ..LinkSpec::new(chain, rate, delay) }
    };
    let groups = ["vcp", "dpcp", "tpcp"];
    let flow = |index: usize| FlowSpec::new(groups[index], chains[index], &[index], 0.0);
    let (links, flows) = (chains.map(link).to_vec(), (0..3).map(flow).collect());
    run(Run { links, flows, duration: 240.0, warmup: 60.0, every: 0.5, seed })
}

fn fig03(seed: u64) -> Vec<Reading> {
    let seen = alone(8.0 * MBIT, 0.1, 0.2, seed);
    let reaches = |link| seen.reaches(link, 7.2 * MBIT);
    vec![
        ("DPCP fills 90 % of the link within 4 s", reaches(1), None),
        ("VCP needs five times as long, less a tenth, or more", reaches(0), Some(reaches(1))),
        ("VCP's are 20 s, within a tenth", reaches(0), None),
        ("DPCP uses the link better", seen.throughput(1), Some(seen.throughput(0))),
    ]
}

fn fig03_readings(seed: u64) -> Vec<Reading> {
    let longer = alone(4.0 * MBIT, 0.25, 0.5, seed);
    let slower = alone(2.0 * MBIT, 0.2, 0.4, seed);
    let longer_reaches = |link| longer.reaches(link, 3.6 * MBIT);
    let slower_reaches = |link| slower.reaches(link, 1.8 * MBIT);
    vec![
        ("held for a round trip: DPCP fills 90 % of the link within 4 s", longer_reaches(1), None),
        (
            "held for a round trip: DPCP uses the link better",
            longer.throughput(1),
            Some(longer.throughput(0)),
        ),
        ("2 Mbit/s, 400 ms: DPCP fills 90 % of the link within 4 s", slower_reaches(1), None),
        (
            "2 Mbit/s, 400 ms: VCP needs three times as long or more",
            slower_reaches(0),
            Some(slower_reaches(1)),
        ),
        ("2 Mbit/s, 400 ms: VCP's are 20 s, within a tenth", slower_reaches(0), None),
    ]
}

/// Mean time of 40 files of 1 MB, one each 25 s.
fn files(chain: Chain, loss: f64, seed: u64) -> f64 {
    let link = LinkSpec { loss, ..LinkSpec::new(chain, 8.0 * MBIT, 0.1) };
    let flow = |index| FlowSpec {
        source: Source::Window { packets: Some(1000) },
        ..FlowSpec::new("files", chain, &[0], 25.0 * f64::from(index))
    };
    let flows = (0..40).map(flow).collect();
    let seen = run(Run { links: vec![link], flows, duration: 30_000.0, warmup: 0.0, every: 100.0, seed });
    mean(seen.completion.iter().map(|time| time.unwrap_or(f64::INFINITY)))
}

fn fig04(seed: u64) -> Vec<Reading> {
    let losses = [0.0, 0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5];
    let vcp = losses.map(|loss| files(VCP, loss, seed));
    let dpcp = losses.map(|loss| files(DPCP, loss, seed));
    let mut readings = Vec::new();
    let mut read = |that, points: &[usize], to: &dyn Fn(usize) -> f64| {
        readings.extend(points.iter().map(|point| (that, dpcp[*point], Some(to(*point)))));
    };
    read("DPCP is faster than VCP at every loss rate", &[0, 1, 2, 3, 4, 5, 6, 7], &|point| vcp[point]);
    read("losses below 30 % do not much affect DPCP: it takes a tenth longer at most", &[1, 2, 3], &|_| {
        dpcp[0]
    });
    read(
        "it degrades from 25 to 40 % at least twice as steeply as before: to 2.2 times (C-38)",
        &[6],
        &|_| dpcp[3],
    );
    read(
        "the gap shrinks: from 30 % on DPCP takes 80 % of what VCP does, or more",
        &[4, 5, 6, 7],
        &|point| vcp[point],
    );
    readings
}

fn fig05(seed: u64) -> Vec<Reading> {
    let seen = alone(8.0 * MBIT, 0.1, 0.2, seed);
    let queue = |link: usize| seen.links[link].queue_mean;
    let reaches = |link| seen.reaches(link, 7.2 * MBIT);
    vec![
        ("DPCP's queue is three times VCP's, within a tenth", queue(1), Some(queue(0))),
        ("TPCP's queue is three times VCP's, within a tenth", queue(2), Some(queue(0))),
        ("TPCP's is slightly longer", queue(2), Some(queue(1))),
        ("but smoother: it deviates less", seen.deviation(2), Some(seen.deviation(1))),
        ("DPCP fills 90 % of the link faster than VCP", reaches(1), Some(reaches(0))),
        ("so does TPCP", reaches(2), Some(reaches(0))),
    ]
}

fn fig05_readings(seed: u64) -> Vec<Reading> {
    let slower = alone(2.0 * MBIT, 0.2, 0.4, seed);
    let coarser = alone(4.0 * MBIT, 0.25, 0.2, seed);
    let queue = |link: usize| slower.links[link].queue_mean;
    vec![
        ("2 Mbit/s, 400 ms: DPCP's queue is three times VCP's, within a tenth", queue(1), Some(queue(0))),
        ("2 Mbit/s, 400 ms: TPCP's queue is three times VCP's, within a tenth", queue(2), Some(queue(0))),
        ("2 Mbit/s, 400 ms: TPCP's is slightly longer", queue(2), Some(queue(1))),
        (
            "500 ms, measured over 200 ms: TPCP's queue is smoother than DPCP's: it deviates less",
            coarser.deviation(2),
            Some(coarser.deviation(1)),
        ),
    ]
}

/// The mean load of 60.5 to 62.5 s, where `more` bit/s of datagrams join at 60 s.
fn joined(chain: Chain, more: f64, seed: u64) -> f64 {
    let mut flows: Vec<FlowSpec> =
        (0..5).map(|index| FlowSpec::new("flows", chain, &[0], f64::from(index))).collect();
    let source = Source::Datagrams { rate: more };
    flows.push(FlowSpec { source, ..FlowSpec::new("datagrams", chain, &[0], 60.0) });
    let links = vec![LinkSpec::new(chain, 10.0 * MBIT, 0.1)];
    run(Run { links, flows, duration: 63.0, warmup: 20.0, every: 0.2, seed }).load(0, 60.5, 62.5)
}

fn text2_2(seed: u64) -> Vec<Reading> {
    let vcp = |more| joined(VCP, more * MBIT, seed);
    let dpcp = |more| joined(DPCP, more * MBIT, seed);
    vec![
        ("VCP stays overloaded: for two seconds after the step, in the mean", vcp(2.0), None),
        ("30 % more: VCP stays overloaded", vcp(3.0), None),
        ("DPCP does not, with 20 or 30 % more", dpcp(2.0), None),
        ("DPCP does not, with 20 or 30 % more", dpcp(3.0), None),
        ("10 % more is answered by one cut", vcp(1.0), None),
    ]
}

/// Ten flows of a law on a link of 10 Mbit/s, 80 ms.
fn ten(chain: Chain, late: f64, every: f64, seed: u64) -> Seen {
    let mut random = Random(seed ^ 0x7e4);
    let flows = (0..10).map(|_| FlowSpec::new("flows", chain, &[0], random.draw())).collect();
    let links = vec![LinkSpec { late, ..LinkSpec::new(chain, 10.0 * MBIT, 0.04) }];
    run(Run { links, flows, duration: 120.0, warmup: 60.0, every, seed })
}

fn text4_1(seed: u64) -> Vec<Reading> {
    let [vcp, dpcp, tpcp] = [VCP, DPCP, TPCP].map(|chain| ten(chain, 0.0, 0.1, seed));
    let used = |seen: &Seen| seen.throughput(0) / (10.0 * MBIT);
    let reaches = |seen: &Seen| seen.reaches(0, 9.0 * MBIT);
    let squares: f64 = dpcp.bytes.iter().map(|bytes| bytes * bytes).sum();
    let jain = dpcp.bytes.iter().sum::<f64>().powi(2) / (10.0 * squares);
    vec![
        ("DPCP uses the link slightly better than VCP", used(&dpcp) - used(&vcp), None),
        ("it is three times as fast or more", reaches(&vcp), Some(reaches(&dpcp))),
        ("TPCP uses the link as DPCP does, within 5 %", used(&tpcp), Some(used(&dpcp))),
        ("and is as fast, within a second", reaches(&tpcp) - reaches(&dpcp), None),
        ("flows share", jain, None),
    ]
}

/// What a flow of 100 kbit/s is told of 90 % of the first and 97 % of the second link.
fn told(equal: Equal, seed: u64) -> f64 {
    let link = || LinkSpec { equal, ..LinkSpec::new(DPCP, 4.0 * MBIT, 0.05) };
    let flow = |group, path: &[usize], source| FlowSpec { source, ..FlowSpec::new(group, DPCP, path, 0.0) };
    let flows = vec![
        flow("told", &[0, 1], Source::Written { rate: 1e5 }),
        flow("load", &[0, 1], Source::Datagrams { rate: 3.428 * MBIT }),
        flow("more", &[1], Source::Datagrams { rate: 0.28 * MBIT }),
    ];
    run(Run { links: vec![link(), link()], flows, duration: 300.0, warmup: 60.0, every: 1.0, seed }).told[0]
}

/// The load of the second link, and its drops, where datagrams join there.
fn two_links(equal: Equal, seed: u64) -> (f64, f64) {
    let link = || LinkSpec { equal, ..LinkSpec::new(DPCP, 4.0 * MBIT, 0.05) };
    let mut flows: Vec<FlowSpec> = (0..5).map(|_| FlowSpec::new("flows", DPCP, &[0, 1], 0.0)).collect();
    let source = Source::Datagrams { rate: 0.4 * MBIT };
    flows.push(FlowSpec { source, ..FlowSpec::new("more", DPCP, &[1], 0.0) });
    let links = vec![link(), link()];
    let seen = run(Run { links, flows, duration: 300.0, warmup: 60.0, every: 1.0, seed });
    (seen.load(1, 60.0, 300.0), seen.links[1].drops as f64)
}

fn ex6_7(seed: u64) -> Vec<Reading> {
    let printed = told(Equal::Printed, seed);
    let (load, drops) = two_links(Equal::Corrected, seed);
    vec![
        ("as printed, chains say the level of the most loaded link: 0.99 in the mean or more", printed, None),
        ("as printed, more than half of them say less: 0.9875 in the mean at most", printed, None),
        ("corrected, they say it: 0.99 in the mean or more", told(Equal::Corrected, seed), None),
        ("as printed, the second link is loaded higher", two_links(Equal::Printed, seed).0, Some(load)),
        ("as corrected, nothing is dropped", drops, None),
    ]
}

fn ex6_8(seed: u64) -> Vec<Reading> {
    let used = |late| ten(DPCP, late, 1.0, seed).throughput(0);
    vec![("disorder costs 5 % of the utilization at most", used(0.01), Some(used(0.0)))]
}

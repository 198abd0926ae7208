//! Estimators of available bandwidth: the vectors of docs/design/protocols.md 11, and what they find on a port with
//! cross traffic.

use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Ratio, Time};
use congestlab_net::estimator::passive::Passed;
use congestlab_net::estimator::pathload::Trend;
use congestlab_net::estimator::{Config, Listener, Method, Prober, direct, passive, path_chirp, pathload};
use congestlab_net::packet::{PS_PER_NS, Packet};
use congestlab_net::port::{FeedbackAt, Output, Port, PortConfig, Streams};
use congestlab_net::queue::Limit;
use congestlab_net::random::Stream;
use congestlab_net::service::Service;
use congestlab_net::source::{Pattern, Source, SourceConfig};
use congestlab_net::tcp::Measure;
use congestlab_net::xcp_i::estimator::{Listening, Probing, Step};
use congestlab_net::xcp_i::{Address, Answer, Probe, Report};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const MBIT: u64 = 125_000;
/// What the upstream port can send.
const LINE: Rate = Rate(80 * MBIT);

/// Delays in ms, and the rates 1, 1.2, 1.44, .. Mbit/s of 1000 B.
fn chirp(delays: &[f64]) -> Rate {
    let tool = path_chirp::Config {
        spread: Ratio(1_200_000),
        decrease: Ratio(1_500_000),
        ..path_chirp::Config::DEFAULT
    };
    let rates: Vec<Rate> =
        (0..delays.len() - 1).map(|k| Rate((1.2f64.powi(k as i32) * 125_000.0) as u64)).collect();
    let gaps: Vec<Duration> = rates.iter().map(|rate| Duration(1000 * SECOND / rate.0)).collect();
    let delays: Vec<i64> = delays.iter().map(|delay| (delay * 1e6) as i64).collect();
    tool.available(&delays, &gaps, &rates)
}

#[test]
fn v11_1_an_excursion_that_never_ends_is_what_is_available() {
    assert_eq!(chirp(&[0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), Rate(180_000));
}

#[test]
fn v11_2_without_a_rise_the_highest_rate_is_a_lower_bound() {
    assert_eq!(chirp(&[0.0; 9]), Rate((1.2f64.powi(7) * 125_000.0) as u64));
}

#[test]
fn v11_3_a_short_excursion_is_a_burst() {
    let expected = Rate((1.2f64.powi(7) * 125_000.0) as u64);
    assert_eq!(chirp(&[0.0, 1.0, 2.0, 1.9, 0.2, 0.0, 0.0, 0.0, 1.0, 2.0]), expected);
}

#[test]
fn v11_4_a_train_that_loses_a_third_of_its_rate() {
    let config = direct::Config::new(Rate(30 * MBIT));
    assert_eq!(config.available(Rate(30 * MBIT), Rate(20 * MBIT)), 15 * MBIT as i64);
    // A train that comes through as it was says no more than that.
    assert_eq!(config.available(Rate(10 * MBIT), Rate(10 * MBIT)), 10 * MBIT as i64);
    // Others send 50 Mbit/s: the train gets 3/8.
    assert_eq!(config.available(Rate(30 * MBIT), Rate(30 * MBIT * 3 / 8)), -20 * (MBIT as i64));
}

/// What a clock shows `t` ns after the run began.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// Ahead, ns.
    offset: u64,
    /// Faster, in millionths.
    drift: i64,
}

impl Clock {
    const EXACT: Self = Self { offset: 0, drift: 0 };

    fn at(self, t: u64) -> Time {
        let drift = i128::from(t) * i128::from(self.drift) / 1_000_000;
        Time(self.offset.wrapping_add((i128::from(t) + drift) as u64))
    }
}

/// A cloud of one port between two edges.
#[derive(Clone, Copy, Debug)]
struct Cloud {
    /// What the upstream port can send.
    line: Rate,
    rate: u64,
    cross: u64,
    queue: u64,
    upstream: Clock,
    downstream: Clock,
    /// One probe of so many is dropped, one comes twice, and one comes a millisecond late; 0: none.
    harm: u64,
}

const CLOUD: Cloud = Cloud {
    line: LINE,
    rate: 30_000_000,
    cross: 0,
    queue: 375,
    upstream: Clock::EXACT,
    downstream: Clock::EXACT,
    harm: 0,
};

/// What a round said, and when.
#[derive(Clone, Copy, Debug)]
struct Round {
    at: u64,
    found: Option<i64>,
}

struct Run {
    rounds: Vec<Round>,
    probe_bytes: u64,
    lasted: u64,
}

impl Run {
    fn mbit(&self, round: usize) -> f64 {
        self.rounds[round].found.unwrap() as f64 / MBIT as f64
    }

    /// The probes' share of 30 Mbit/s.
    fn load(&self) -> f64 {
        self.probe_bytes as f64 * 8e9 / self.lasted as f64 / 30e6
    }
}

#[derive(Default)]
struct Delivered(std::collections::VecDeque<Packet>);

impl Output for Delivered {
    fn deliver(&mut self, packet: &mut Packet) {
        self.0.push_back(*packet);
    }
}

const CROSS: u32 = 0;
const PROBE: u32 = 1;
const REPORT: u32 = 2;

fn probe(number: u16, stamp: Time) -> Probe {
    Probe { from: Address(1), id: 0, nonce: 0, number, size: 1000, stamp }
}

fn report(stamp: Time) -> Report {
    Report { answer: Answer::ComputeYourself, stamp, sent: Bytes(0) }
}

/// Asks for round after round until `rounds` are reported.
fn run(config: Config, cloud: Cloud, rounds: usize) -> Run {
    let stream = |name| Stream::named(1, name);
    let streams = Streams::new(stream);
    let port = PortConfig::new(
        Service::Fixed(BitRate(cloud.rate)),
        10 * MS * PS_PER_NS,
        Limit::Packets(cloud.queue),
    );
    assert_eq!(port.feedback_at, FeedbackAt::Departure);
    let mut port = Port::new(&port, streams, 0, u64::MAX);
    let cross = SourceConfig { segment: 1000, rate: BitRate(cloud.cross.max(1)), pattern: Pattern::Constant };
    let stop = if cloud.cross == 0 { Time(0) } else { Time::NEVER };
    let measure = Measure { from: Time(0), to: Time::NEVER };
    let mut source = Source::new(&cross, CROSS, Time(0), stop, stream("source"), measure);
    let (mut prober, mut listener) =
        (Prober::new(config, stream("probes")), Listener::new(config, cloud.line));
    let mut harm = stream("harm");
    let mut out = Delivered::default();
    let mut asked = SECOND / 7;
    let mut is_probing = false;
    let mut result = Run { rounds: Vec::new(), probe_bytes: 0, lasted: 0 };
    while result.rounds.len() < rounds {
        // By the upstream clock the prober's times; both clocks run close enough to true time.
        let due = if is_probing { prober.next_deadline() } else { Time::NEVER };
        let now = source.next_deadline().min(due).min(Time(asked));
        let now = now.0.min(port.next_event().div_ceil(PS_PER_NS));
        port.advance_to_arrival(now * PS_PER_NS, &mut out);
        let mut send = |flow, seq: u16, size, out: &mut Delivered| {
            let packet = Packet {
                flow,
                seq: seq.into(),
                size,
                stamp_ns: now,
                at: now * PS_PER_NS,
                ..Packet::default()
            };
            port.arrive(now * PS_PER_NS, packet, out);
        };
        while let Some(packet) = source.poll_transmit(&cross, Time(now)) {
            send(CROSS, 0, packet.size, &mut out);
        }
        if asked == now {
            let parameter = listener.begin(Time(now), Duration(100 * MS));
            prober.begin(Time(now), parameter);
            is_probing = true;
            asked = u64::MAX;
        }
        while is_probing && let Some(step) = prober.poll(Time(now)) {
            let Step::Send { size, number } = step else {
                assert_eq!(step, Step::Done(Answer::ComputeYourself));
                send(REPORT, 0, 40, &mut out);
                asked = now + SECOND; // unless it arrives
                break;
            };
            result.probe_bytes += u64::from(size);
            let fate = if cloud.harm == 0 { u64::MAX } else { harm.below(cloud.harm) };
            if fate != 0 {
                send(PROBE, number, size, &mut out);
            }
            if fate == 1 {
                send(PROBE, number, size, &mut out);
            }
        }
        while let Some(packet) = out.0.pop_front() {
            let at = packet.at / PS_PER_NS;
            match packet.flow {
                PROBE => {
                    let late = if cloud.harm > 0 && harm.below(cloud.harm) == 0 { MS } else { 0 };
                    let sent = cloud.upstream.at(packet.stamp_ns);
                    let arrived = cloud.downstream.at(at + late);
                    listener.on_probe(arrived, &probe(packet.seq as u16, sent));
                }
                REPORT => {
                    let stamp = cloud.upstream.at(packet.stamp_ns);
                    let found = listener.on_report(cloud.downstream.at(at), &report(stamp));
                    result.rounds.push(Round { at, found });
                    is_probing = false;
                    asked = at.max(now) + 1;
                    result.lasted = at;
                }
                _ => {}
            }
        }
    }
    result
}

fn path_chirp() -> Config {
    Config { method: Method::PathChirp(path_chirp::Config::DEFAULT), passive: None }
}

fn direct() -> Config {
    Config { method: Method::Direct(direct::Config::new(Rate(30 * MBIT))), passive: None }
}

fn pathload() -> Config {
    Config { method: Method::Pathload(pathload::Config::default()), passive: None }
}

/// Runs of `rounds` on a 30 Mbit/s port with so much cross traffic, behind upstream ports from as fast to
/// 300 times as fast; the truth beside it.
fn with_cross_traffic(config: Config, rounds: usize) -> impl Iterator<Item = (f64, Run)> {
    let lines = [30, 80, 300, 1000, 10_000].map(|line| Rate(line * MBIT));
    lines.into_iter().flat_map(move |line| {
        [0, 10, 20].map(|cross| {
            let cloud = Cloud { line, cross: cross * 1_000_000, ..CLOUD };
            (30.0 - cross as f64, run(config, cloud, rounds))
        })
    })
}

/// The acceptance of 11.5: the mean over 11 chirps; and every such mean after it. The range is found in two
/// or three chirps more.
#[test]
fn path_chirp_is_within_a_fifth_of_what_is_available() {
    for (truth, run) in with_cross_traffic(path_chirp(), 66) {
        for round in 13..66 {
            let error = run.mbit(round) / truth - 1.0;
            assert!(error.abs() < 0.2, "{truth} Mbit/s, found {} in round {round}", run.mbit(round));
        }
        let load = run.load();
        assert!(load <= 0.011, "{load} of the link");
    }
}

/// The acceptance of 11.5.
#[test]
fn direct_probing_is_within_a_tenth() {
    for (truth, run) in with_cross_traffic(direct(), 66) {
        for round in 10..66 {
            let error = run.mbit(round) / truth - 1.0;
            assert!(error.abs() < 0.1, "{truth} Mbit/s, found {} in round {round}", run.mbit(round));
        }
        let load = run.load();
        assert!(load <= 0.011, "{load} of the link");
    }
}

/// The first answer takes seconds; from then on every one is right within omega, 5 % of its upper end, and
/// what a packet of cross traffic is in a stream of 200 of 1000 B.
#[test]
fn pathload_converges_and_stays() {
    for (truth, run) in with_cross_traffic(pathload(), 400) {
        let first = run.rounds.iter().position(|round| round.found.is_some()).expect("an answer");
        for round in first..400 {
            let error = run.mbit(round) / truth - 1.0;
            assert!(error.abs() < 0.1, "{truth} Mbit/s, found {} in round {round}", run.mbit(round));
        }
        assert!(run.rounds[first].at < 15 * SECOND, "{}", run.rounds[first].at);
        let load = run.load();
        assert!(load <= 0.11, "{load} of the link");
    }
}

/// Slow links behind fast ports, where what is available is a fifth of the link or more: within a quarter.
#[test]
fn slow_links_behind_fast_ports() {
    for (rate, cross, line) in
        [(6, 0, 80), (6, 4, 80), (2, 0, 1000), (2, 1, 1000), (4, 2, 10_000), (12, 6, 13)]
    {
        let cloud =
            Cloud { line: Rate(line * MBIT), rate: rate * 1_000_000, cross: cross * 1_000_000, ..CLOUD };
        let truth = (rate - cross) as f64;
        for (config, rounds) in [(path_chirp(), 44), (pathload(), 200)] {
            let run = run(config, cloud, rounds);
            let found = run.mbit(rounds - 1);
            assert!((found / truth - 1.0).abs() < 0.25, "{truth} of {rate} Mbit/s, {line}: {found}");
        }
    }
}

/// 200 millionths are twice what the worst quartz drifts.
#[test]
fn clocks_need_not_agree() {
    let clocks = [(u64::MAX / 2, 200), (1 << 62, -200), (3, 37)];
    // A round that begins a little later meets other packets, so a mean is what can be compared, and
    // of cross traffic that meets rounds in all phases.
    for (config, rounds, within) in [(path_chirp(), 330, 0.05), (direct(), 22, 0.01), (pathload(), 400, 0.1)]
    {
        for cross in [0, 12_345_678, 19_876_543] {
            let cloud = Cloud { cross, ..CLOUD };
            let agreed = run(config, cloud, rounds);
            for (offset, drift) in clocks {
                let apart = Cloud { downstream: Clock { offset, drift }, ..cloud };
                let apart = run(config, apart, rounds);
                let mean = |run: &Run| {
                    let found = run.rounds.iter().filter_map(|round| round.found);
                    let (sum, count) = found.fold((0, 0), |(sum, count), found| (sum + found, count + 1));
                    sum as f64 / f64::from(count) / MBIT as f64
                };
                let (one, other) = (mean(&agreed), mean(&apart));
                assert!(
                    (other / one - 1.0).abs() < within,
                    "{one} and {other} at {drift} ppm, {cross} bit/s"
                );
            }
            // A clock that is only ahead changes nothing at all.
            let ahead = Cloud { upstream: Clock { offset: u64::MAX / 3, drift: 0 }, ..cloud };
            let found = |run: &Run| run.rounds.iter().map(|round| round.found).collect::<Vec<_>>();
            assert_eq!(found(&run(config, ahead, rounds)), found(&agreed));
        }
    }
}

/// A chirp with a loss says that nothing is left (PCH), which only lowers the mean; a train or a
/// stream misses little by a probe.
#[test]
fn probes_may_be_lost_doubled_and_late() {
    let harmed = Cloud { cross: 10_000_000, harm: 500, ..CLOUD };
    let chirps = run(path_chirp(), harmed, 220);
    let mean = (10..220).map(|round| chirps.mbit(round)).sum::<f64>() / 210.0;
    // 32 packets a chirp: one of sixteen loses one.
    assert!((18.0..24.0).contains(&mean), "{mean} Mbit/s");
    let trains = run(direct(), harmed, 110);
    let mean = (10..110).map(|round| trains.mbit(round)).sum::<f64>() / 100.0;
    assert!((18.0..22.0).contains(&mean), "{mean} Mbit/s");
    let streams = run(pathload(), harmed, 400);
    assert!((16.0..24.0).contains(&streams.mbit(399)), "{} Mbit/s", streams.mbit(399));
}

#[test]
fn the_order_of_arrival_does_not_count() {
    for config in [path_chirp(), direct(), pathload()] {
        let (mut in_order, mut reversed) = (Listener::new(config, LINE), Listener::new(config, LINE));
        let parameter = in_order.begin(Time(0), Duration(0));
        assert_eq!(reversed.begin(Time(0), Duration(0)), parameter);
        let mut prober = Prober::new(config, Stream::named(1, "probes"));
        prober.begin(Time(0), parameter);
        let mut probes = Vec::new();
        while let sent = prober.next_deadline()
            && let Some(Step::Send { number, .. }) = prober.poll(sent)
        {
            // A queue that grows from the tenth on.
            let arrived = sent + Duration(u64::from(number.saturating_sub(10)) * 100_000);
            probes.push((arrived, probe(number, sent)));
        }
        probes.iter().for_each(|(at, probe)| in_order.on_probe(*at, probe));
        probes.iter().rev().chain(&probes).for_each(|(at, probe)| reversed.on_probe(*at, probe));
        let finish = |mut listener: Listener| listener.on_report(Time(SECOND), &report(Time(SECOND)));
        assert_eq!(finish(in_order), finish(reversed), "{config:?}");
    }
}

/// A path that nothing else uses, told of as slower than it is: the chirps reach higher until they
/// find the end of it, and lower where the load begins below them.
#[test]
fn the_range_of_chirps_follows_what_is_found() {
    let narrow = |low, high| Config {
        method: Method::PathChirp(path_chirp::Config {
            low: Rate(low * MBIT),
            high: Rate(high * MBIT),
            ..path_chirp::Config::DEFAULT
        }),
        passive: None,
    };
    let up = run(narrow(1, 5), CLOUD, 22);
    assert!((up.mbit(21) / 30.0 - 1.0).abs() < 0.2, "{} Mbit/s of 30", up.mbit(21));
    let down = run(narrow(1, 80), Cloud { cross: 29_000_000, ..CLOUD }, 44);
    assert!(down.mbit(43) < 2.0, "{} Mbit/s of 1", down.mbit(43));
}

#[test]
fn pathload_tells_trends_from_noise_and_gives_up_on_loss() {
    let config = pathload::Config::default();
    let gap = Duration(100_000);
    let mut noise = Stream::named(1, "noise");
    for _ in 0..100 {
        let flat: Vec<i64> = (0..100).map(|_| noise.below(100_000) as i64).collect();
        assert_ne!(config.trend(&flat, gap), Trend::Increasing, "{flat:?}");
        let rising: Vec<i64> = flat.iter().zip(0..).map(|(noise, k)| noise + k * 10_000).collect();
        assert_eq!(config.trend(&rising, gap), Trend::Increasing, "{rising:?}");
    }
    assert_eq!(config.trend(&[0; 100], gap), Trend::NotIncreasing);
    // What clocks drift is no trend.
    let drift: Vec<i64> = (0..100).map(|k| k * 20).collect();
    assert_eq!(config.trend(&drift, gap), Trend::NotIncreasing);

    // A queue of five packets loses most of what is above 10 Mbit/s.
    let shallow = Cloud { cross: 20_000_000, queue: 5, ..CLOUD };
    let run = run(pathload(), shallow, 400);
    assert!((6.0..14.0).contains(&run.mbit(399)), "{} Mbit/s of 10", run.mbit(399));
}

/// 11.5: the sign that probes cannot see.
#[test]
fn what_goes_in_and_does_not_come_out_is_overload() {
    let config = passive::Config::default();
    let passed = |bytes, ms| Passed { bytes: Bytes(bytes), span: Duration(ms * MS) };
    // Lost: 1 MB/s in, 0.9 MB/s out.
    assert_eq!(config.overload(passed(100_000, 100), passed(90_000, 100)), Some(-100_000));
    // Queued: all that came in, in a longer time.
    assert_eq!(config.overload(passed(100_000, 100), passed(100_000, 125)), Some(-200_000));
    // Jitter, and a queue that drains.
    assert_eq!(config.overload(passed(100_000, 100), passed(96_000, 100)), None);
    assert_eq!(config.overload(passed(100_000, 100), passed(110_000, 100)), None);
    assert_eq!(config.overload(passed(0, 100), passed(0, 100)), None);
    assert_eq!(config.overload(passed(100, 0), passed(0, 100)), None);
}

/// Stamps are what anyone may write into a packet.
#[test]
fn no_stamp_makes_a_listener_panic() {
    let mut draw = Stream::named(1, "stamps");
    for config in [path_chirp(), direct(), pathload()] {
        let config = Config { passive: Some(passive::Config::default()), ..config };
        let mut listener = Listener::new(config, LINE);
        for _ in 0..300 {
            let _ = listener.begin(Time(0), Duration(0));
            for _ in 0..200 {
                let (shift, other) = (draw.below(64), draw.below(64));
                let stamp = Time(draw.next_u64() >> shift);
                listener.on_probe(Time(draw.next_u64() >> other), &probe(draw.below(120) as u16, stamp));
                listener.on_data(Bytes(draw.next_u64() >> shift));
            }
            let report = Report { sent: Bytes(draw.next_u64()), ..report(Time(draw.next_u64() >> 20)) };
            let _ = listener.on_report(Time(draw.next_u64() >> 20), &report);
        }
    }
}

/// Without probes all is available until traffic goes missing; and beside probes that is what counts.
#[test]
fn traffic_that_goes_missing_overrides_what_probes_say() {
    let passive = Some(passive::Config::default());
    let mut listener = Listener::new(Config { method: Method::None, passive }, LINE);
    let mut prober = Prober::new(Config { method: Method::None, passive }, Stream::named(1, "probes"));
    prober.begin(Time(7), 0);
    assert_eq!(prober.poll(Time(7)), Some(Step::Done(Answer::ComputeYourself)));
    assert_eq!(prober.next_deadline(), Time::NEVER);
    let mut finish = |ms: u64, sent, received| {
        listener.begin(Time(0), Duration(0));
        listener.on_data(Bytes(received));
        // Half a second of clocks that disagree.
        let report = Report { sent: Bytes(sent), ..report(Time(500 * MS + ms * MS)) };
        listener.on_report(Time(ms * MS), &report)
    };
    let all = Some(LINE.0 as i64);
    assert_eq!(finish(100, 100_000, 0), all);
    assert_eq!(finish(200, 200_000, 100_000), all);
    assert_eq!(finish(300, 300_000, 80_000), Some(-200_000));
    assert_eq!(finish(400, 400_000, 100_000), all);
}

/// Probes of a round that is asked for at `times`, until the end.
fn sent_when_asked_at(config: Config, times: &[(u64, u64)], end: u64) -> Vec<u64> {
    let mut prober = Prober::new(config, Stream::named(1, "probes"));
    let mut sent = Vec::new();
    let mut times = times.iter().peekable();
    loop {
        let asked = times.peek().map_or(u64::MAX, |&&(at, _)| at);
        let now = asked.min(prober.next_deadline().0);
        if now > end {
            return sent;
        }
        if now == asked {
            prober.begin(Time(now), times.next().unwrap().1);
        }
        while let Some(step) = prober.poll(Time(now)) {
            if matches!(step, Step::Send { .. }) {
                sent.push(now);
            }
        }
    }
}

/// At 500 kbit/s a train takes 80 s to be a hundredth of the capacity. Who asks again meanwhile, after
/// 60 s without an answer, does not put it off.
#[test]
fn asking_again_does_not_put_a_round_off() {
    let slow = Config { method: Method::Direct(direct::Config::new(Rate(500_000 / 8))), passive: None };
    let times: Vec<_> = (0..10).map(|n| (n * 63 * SECOND, 0)).collect();
    let sent = sent_when_asked_at(slow, &times, 640 * SECOND);
    let trains = sent.windows(2).filter(|pair| pair[1] - pair[0] > 10 * SECOND).count() + 1;
    assert!(trains >= 6, "{trains} trains of {} probes", sent.len());
}

/// A request that is forged costs the true one no more than the longest round.
#[test]
fn a_forged_request_does_not_silence_a_prober() {
    for config in [path_chirp(), direct(), pathload()] {
        let method = config.method;
        let wanted = Listener::new(config, LINE).begin(Time(0), Duration(100 * MS));
        for forged in [0, u64::MAX, 1 << 16] {
            let times = [(0, forged), (SECOND, wanted), (62 * SECOND, wanted), (124 * SECOND, wanted)];
            let sent = sent_when_asked_at(config, &times, 180 * SECOND);
            assert!(sent.iter().any(|&at| at > 60 * SECOND), "{method:?}, {forged}: {sent:?}");
        }
    }
}

//! Models drawn at random.

use congestlab_core::law::mpcp::{self, Algorithm2, Cut, Hold, Loss, Order};
use congestlab_core::law::{
    LinkConfig, SenderConfig, bbr, bic, cubic, dctcp, highspeed, peach, pxcp, reno, vegas, xcp, xcp_r,
};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Ratio, Time};
use congestlab_net::errors::ErrorRate;
use congestlab_net::estimator::{self, Method, direct, passive, path_chirp, pathload};
use congestlab_net::impairments::{EcnRewrite, GilbertElliott, Reorder, Spans};
use congestlab_net::medium::{self, Access, CsmaCd, Frame};
use congestlab_net::packet::Picos;
use congestlab_net::port::{FeedbackAt, LawConfig, PortConfig};
use congestlab_net::queue::{Discipline, Limit, red, step, xcp_tcp};
use congestlab_net::random::{Probability, Stream};
use congestlab_net::service::{Service, Steps};
use congestlab_net::source::{Pattern, SourceConfig};
use congestlab_net::tcp::{Advertise, App, Config, Measure, Recovery, SlowStart, Wait};
use congestlab_net::trace::Trace;
use congestlab_net::xcp_i;
use congestlab_sim::model::{
    Device, DeviceKind, Estimator, Group, GroupKind, Link, Model, Pipe, Router, Sizes, Start, Switch,
};

const MS: Picos = 1_000_000_000;

/// Draws of one model.
pub(crate) struct Draw(Stream);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Stream::named(seed, "random models"))
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }

    /// A number of any size from `2^low` to below `2^high`, and hardly ever a round one.
    fn odd(&mut self, low: u64, high: u64) -> u64 {
        let power = 1 << self.between(low, high - 1);
        power + self.below(power)
    }
}

/// Returns a chain of links with odd rates and delays and a long flow over it. It runs for many meetings of threads that take
/// little off each other, so the network goes from threads to one thread by the rule of every run. Delays differ by little more
/// than a window of threads, and a window of one thread holds several of them.
pub(crate) fn random_chain(draw: &mut Draw, seed: u64) -> Model {
    let count = 2 + seed % 8 / 7;
    let (mut links, mut delay) = (Vec::new(), draw.odd(31, 33));
    for index in (0..count).rev() {
        let service = Service::Fixed(BitRate(draw.odd(25, 28)));
        let port = PortConfig::new(service, delay, Limit::Packets(draw.odd(6, 9)));
        links.push(Link { name: format!("l{index}.reverse"), port: port.clone() });
        links.push(Link { name: format!("l{index}"), port });
        delay += draw.odd(29, 33);
    }
    links.reverse();
    let mut tcp = random_tcp(draw, 1500);
    (tcp.app, tcp.advertise, tcp.awnd) = (App::Endless, Advertise::Always, None);
    if !draw.one_in(4) {
        tcp.law =
            draw.of(&[SenderConfig::Reno(reno::Config::DEFAULT), SenderConfig::Cubic(cubic::Config {})]);
    }
    let pipe = draw.one_in(8).then(|| Pipe { rate: BitRate(draw.odd(24, 30)), delay: draw.odd(26, 31) });
    let flow = Group {
        name: "flow".to_owned(),
        kind: GroupKind::Tcp(tcp),
        count: 1,
        path: (0..count as u32).map(|link| 2 * link).collect(),
        back: (0..count as u32).rev().map(|link| 2 * link + 1).collect(),
        switches: Vec::new(),
        access: pipe,
        exit: None,
        start: Start::Every { from: Time(draw.odd(10, 24)), every: 0 },
        stop: Time::NEVER,
        schedule: Vec::new(),
        sizes: None,
        interoperable: None,
    };
    Model {
        seed,
        duration: draw.odd(39, 40),
        warmup: 0,
        links,
        groups: vec![flow],
        sample_every: None,
        devices: Vec::new(),
        record_events: false,
    }
}

pub(crate) fn random_model(draw: &mut Draw, seed: u64) -> Model {
    let count = if draw.one_in(4) { draw.between(1, 2) } else { draw.between(3, 20) };
    let mut links = Vec::new();
    for index in 0..count {
        let forward = random_port(draw);
        let back = if draw.one_in(3) {
            random_port(draw)
        } else {
            PortConfig::new(forward.service.clone(), forward.delay, forward.limit)
        };
        links.push(Link { name: format!("l{index}"), port: forward });
        links.push(Link { name: format!("l{index}.reverse"), port: back });
    }
    // A stream of their own, so that the rest of a network stays what it was without them.
    let mut classes = Draw(Stream::named(seed, "two classes"));
    let mut counts = Draw(Stream::named(seed, "weights that follow flows"));
    for link in links.iter_mut().filter(|link| link.port.law.is_some()) {
        if classes.one_in(4) {
            let follow = if counts.one_in(2) { xcp_tcp::Follow::Flows } else { xcp_tcp::Follow::Windows };
            link.port.discipline =
                Discipline::XcpTcp(two_classes(link.port.limit, classes.one_in(2), follow));
        }
    }
    let duration = draw.between(150, 600) * MS;
    let groups = (0..draw.between(1, 5)).map(|index| random_group(draw, index, count)).collect();
    let mut model = Model {
        seed,
        duration,
        warmup: if draw.one_in(2) { 0 } else { duration / 4 },
        links,
        groups,
        sample_every: None,
        devices: Vec::new(),
        record_events: false,
    };
    add_probes(&mut Draw(Stream::named(seed, "probes")), &mut model);
    add_steps(&mut Draw(Stream::named(seed, "steps")), &mut model);
    add_told(&mut Draw(Stream::named(seed, "told")), &mut model);
    if draw.one_in(2) {
        model.links.iter_mut().for_each(|link| add_impairments(draw, &mut link.port));
        model.groups.iter_mut().for_each(|group| add_switches(draw, count, group));
    }
    model
}

/// Many short flows, on links that mostly keep the order of packets; timeouts are short, so that some segments come once
/// more after the flow is over.
pub(crate) fn shorten(draw: &mut Draw, model: &mut Model) {
    model.duration *= 3;
    for link in &mut model.links {
        if link.port.discipline.queues() > 1 {
            link.port.discipline = Discipline::DropTail;
        }
        link.port.reorder = None;
        if link.port.law.is_none() && draw.one_in(3) {
            link.port.errors = Some(ErrorRate::Packet { rate: 0.05, size: 1000 });
        }
    }
    for group in &mut model.groups {
        let GroupKind::Tcp(config) = &mut group.kind else { continue };
        config.min_rto = Duration(draw.of(&[5_000_000, 20_000_000, 200_000_000]));
        config.advertise = Advertise::Always;
        (config.app, group.sizes) = match draw.below(4) {
            0 => (App::Own, Some(Sizes { shape: 1.35, mean: 8.0 })),
            1 => {
                let (size, pause) = (Bytes(draw.between(1, 4_000)), Duration(3_000_000));
                let (wait, total) = (draw.of(&[Wait::Write, Wait::Ack]), Some(Bytes(draw.between(1, 9_000))));
                (App::Bursts { size, pause, wait, buffer: Bytes(3_000), total }, None)
            }
            _ => (App::Transfer(Bytes(draw.between(0, 12_000))), None),
        };
        group.count = draw.between(1, 60) as u32;
        group.start = draw.of(&[
            Start::Every { from: Time(1_000_000), every: 4_000_000 },
            Start::Every { from: Time(100_000_000), every: 30_000_000 },
            Start::Poisson { from: Time(0), gap: 3_000_000 },
            Start::Uniform { within: 200_000_000 },
        ]);
        group.switches.truncate(if draw.one_in(4) { 1 } else { 0 });
        if !draw.one_in(4) {
            group.stop = Time::NEVER;
        }
    }
}

/// Policers on links with a law, lies of XCP's senders, and time enough for the ones to find the others.
pub(crate) fn police(draw: &mut Draw, model: &mut Model) {
    model.duration *= 8;
    for link in model.links.iter_mut().filter(|link| link.port.law.is_some()) {
        link.port.police = Some(draw.of(&[1, 3, 64]));
    }
    for group in &mut model.groups {
        if let GroupKind::Tcp(Config { law: SenderConfig::Xcp(xcp), .. }) = &mut group.kind
            && draw.one_in(2)
        {
            xcp.profile = xcp::Profile::Liar(xcp::Lies {
                stated_rtt: Ratio::ppm(draw.of(&[1_000_000, 20_000_000])),
                forged: Ratio::ppm(draw.of(&[1_000_000, 2_000_000])),
                deaf: draw.one_in(2),
            });
        }
    }
}

/// Makes some links and flows of VCP's family, mostly such that they understand each other.
pub(crate) fn add_codes(draw: &mut Draw, model: &mut Model) {
    let n = draw.between(1, 8) as u32;
    let order = if n > 2 { Order::Checksum } else { draw.of(&[Order::Swap, Order::Checksum, Order::Ipid]) };
    let chain = |draw: &mut Draw| if draw.one_in(8) { (2, Order::Swap) } else { (n, order) };
    for link in &mut model.links {
        if let Some(law) = link.port.law.as_mut().filter(|_| draw.one_in(2)) {
            let (n, order) = chain(draw);
            law.config = LinkConfig::Mpcp(mpcp::LinkConfig {
                order,
                capacity: law.config.capacity(),
                algorithm_2: draw.of(&[Algorithm2::Corrected, Algorithm2::Printed]),
                interval: Duration(draw.between(5, 200) * 1_000_000),
                table: draw.between(1, 16) as u32,
                idle: Duration(draw.of(&[1_000_000, 10_000_000_000])),
                ..mpcp::LinkConfig::of(n, false)
            });
        }
    }
    for group in &mut model.groups {
        if let GroupKind::Tcp(config) = &mut group.kind
            && draw.one_in(2)
        {
            let (n, order) = chain(draw);
            config.delayed_ack &= n == 1;
            config.law = SenderConfig::Mpcp(mpcp::SenderConfig {
                order,
                interval: Duration(draw.between(5, 200) * 1_000_000),
                cut: draw.of(&[Cut::AtOnce, Cut::Complete]),
                hold: draw.of(&[Hold::Interval, Hold::RoundTrip]),
                loss: draw.of(&[Loss::Tcp, Loss::Maintain]),
                pacing: draw.one_in(2),
                smooth: draw.one_in(4),
                strikes: draw.between(1, 3) as u32,
                resume: draw.between(1, 8) as u32,
                ..mpcp::SenderConfig::of(n, false)
            });
        }
    }
}

/// Senders with the ways of Linux's TCP in the place of others that are not XCP's.
pub(crate) fn as_linux(draw: &mut Draw, model: &mut Model) {
    for group in &mut model.groups {
        if let GroupKind::Tcp(config) = &mut group.kind
            && config.law.part::<xcp::SenderConfig>().is_none()
        {
            config.law = draw.of(&[
                SenderConfig::Reno(reno::Config::DEFAULT),
                SenderConfig::Cubic(cubic::Config {}),
                SenderConfig::HighSpeed(highspeed::Config::default()),
                SenderConfig::Bic(bic::Config::default()),
            ]);
            (config.recovery, config.ns2) = (Recovery::Sack, false);
            config.linux = Some(draw.of(&[SlowStart::Standard, SlowStart::HyStart, SlowStart::HyStartPlus]));
        }
    }
}

/// TCP-Peach in the place of other flows that are not XCP's, and queues that drop its probes early. A stream of
/// their own, as for two classes.
fn add_probes(draw: &mut Draw, model: &mut Model) {
    for link in &mut model.links {
        if let Discipline::PrioDropTail(threshold) = &mut link.port.discipline {
            *threshold = draw.of(&[Limit::None, Limit::Packets(1), Limit::Bytes(2_000)]);
        } else if link.port.discipline == Discipline::DropTail && draw.one_in(4) {
            link.port.discipline = Discipline::PrioDropTail(Limit::None);
        }
    }
    for group in &mut model.groups {
        if let GroupKind::Tcp(config) = &mut group.kind
            && config.law.part::<xcp::SenderConfig>().is_none()
            && draw.one_in(3)
        {
            let variant = draw.of(&[peach::Variant::Peach, peach::Variant::PeachPlus]);
            config.law = SenderConfig::Peach(peach::Config::of(variant));
        }
    }
}

/// Queue laws that tell their settings themselves, as they are by default. A stream of their own, as for two classes.
fn add_told(draw: &mut Draw, model: &mut Model) {
    let told: Vec<Discipline> = Discipline::told().map(|(law, _)| law).collect();
    for link in &mut model.links {
        if link.port.discipline == Discipline::DropTail && draw.one_in(3) {
            link.port.discipline = draw.of(&told);
        }
    }
}

/// DCTCP in the place of other flows that are not XCP's, and queues that mark above a step. A stream of their own, as for
/// two classes.
fn add_steps(draw: &mut Draw, model: &mut Model) {
    for link in &mut model.links {
        if link.port.discipline == Discipline::DropTail && draw.one_in(3) {
            link.port.discipline = Discipline::Step(step::Config {
                threshold: draw.of(&[
                    step::Threshold::Packets(3),
                    step::Threshold::Bytes(Bytes(4_000)),
                    step::Threshold::Sojourn(Duration(5_000_000)),
                ]),
                at: draw.of(&[step::At::Enqueue, step::At::Dequeue]),
                drop: draw.one_in(2),
            });
        }
    }
    for group in &mut model.groups {
        if let GroupKind::Tcp(config) = &mut group.kind
            && matches!(config.law, SenderConfig::Reno(_) | SenderConfig::Cubic(_))
            && draw.one_in(3)
        {
            (config.law, config.ecn) = (SenderConfig::Dctcp(dctcp::Config { linux: draw.one_in(2) }), false);
        }
    }
}

fn random_port(draw: &mut Draw) -> PortConfig {
    let rate = BitRate(draw.of(&[300_000, 1_000_000, 2_345_678, 10_000_000, 33_333_333, 100_000_000]));
    let service = match draw.below(8) {
        0 => {
            let steps = [(0, rate), (draw.between(1, 300) * MS, BitRate(rate.0 / 3)), (400 * MS, rate)];
            Service::Steps(Steps::new(steps.to_vec()).expect("steps rise"))
        }
        1 => {
            let mut stamps = Vec::new();
            let mut at = 0;
            for _ in 0..draw.between(3, 60) {
                at += draw.below(6) as u32;
                stamps.push(at.max(1));
            }
            stamps.push(at + 3);
            Service::Trace(Trace::new(stamps).expect("stamps rise"))
        }
        _ => Service::Fixed(rate),
    };
    let delay = match draw.below(4) {
        0 => 0,
        1 => draw.between(1, 999) * 1_000_000,
        _ => draw.between(1, 60) * MS,
    };
    let limit = if draw.one_in(3) {
        Limit::Bytes(draw.between(3_000, 60_000))
    } else {
        Limit::Packets(draw.between(2, 60))
    };
    let mut port = PortConfig::new(service, delay, limit);
    port.discipline = match draw.below(6) {
        0 => Discipline::PrioDropTail(Limit::None),
        1 => {
            let (gentle, ecn) = (draw.one_in(2), draw.one_in(2));
            Discipline::Red(red::Config {
                thresholds: red::Thresholds::Packets { min: 5, max: 15 },
                max_p: Probability::from_f64(0.1).into(),
                weight: Probability::from_f64(0.02).into(),
                gentle,
                ecn,
                // No draws of their own, so that all else of a seed stays.
                wait: gentle != ecn,
                use_mark_p: ecn,
                packet_size: 1000,
            })
        }
        _ => Discipline::DropTail,
    };
    if draw.one_in(2) {
        let config = link_law(draw, Rate(rate.0 / 8));
        port.law = Some(LawConfig { config, follows_service: draw.one_in(2) });
        if draw.one_in(4) {
            port.feedback_at = FeedbackAt::Enqueue;
        }
    }
    if draw.one_in(4) {
        port.errors = Some(ErrorRate::Packet { rate: 0.01, size: 1000 });
    }
    if draw.one_in(6) {
        port.ack_loss = Probability::from_f64(0.2);
    }
    port
}

pub(crate) fn link_law(draw: &mut Draw, capacity: Rate) -> LinkConfig {
    let xcp = xcp::LinkConfig {
        capacity,
        alpha: Ratio::ppm(400_000),
        beta: Ratio::ppm(226_000),
        gamma: Ratio::ppm(100_000),
        min_interval: Duration(5_000_000),
        max_interval: Duration(1_000_000_000),
        initial_interval: Duration(50_000_000),
        allowed_queue: Duration(2_000_000),
        thesis: draw.one_in(6),
        overdraw: false,
        bound_headers: draw.one_in(2),
        spread: draw.one_in(3),
        average_queue: draw.one_in(3),
        remember_grants: draw.one_in(3),
        capture: draw.one_in(2),
    };
    let pxcp = pxcp::LinkConfig { xcp, ..pxcp::LinkConfig::DEFAULT };
    if draw.one_in(3) { LinkConfig::Pxcp(pxcp) } else { LinkConfig::Xcp(xcp) }
}

/// XCP's packets apart, with weights that stay or follow.
fn two_classes(limit: Limit, is_dynamic: bool, follow: xcp_tcp::Follow) -> xcp_tcp::Config {
    let dynamic = xcp_tcp::Dynamic {
        follow,
        kappa: Ratio::ppm(100_000),
        min: Ratio::ppm(50_000),
        max: Ratio::ppm(950_000),
    };
    xcp_tcp::Config {
        weight: Ratio::ppm(if is_dynamic { 500_000 } else { 300_000 }),
        limit,
        red: red::Config {
            thresholds: red::Thresholds::Packets { min: 3, max: 9 },
            max_p: Probability::from_f64(0.1).into(),
            weight: Probability::from_f64(0.02).into(),
            gentle: true,
            ecn: true,
            wait: false,
            use_mark_p: false,
            packet_size: 1000,
        },
        dynamic: is_dynamic.then_some(dynamic),
    }
}

/// Part of the chain, in one direction and in the other.
fn random_path(draw: &mut Draw, count: u64) -> (Vec<u32>, Vec<u32>) {
    let first = draw.below(count);
    let last = draw.between(first, count - 1);
    let chain: Vec<u32> = (first..=last).map(|l| 2 * l as u32).collect();
    let back: Vec<u32> = chain.iter().rev().map(|l| l + 1).collect();
    if draw.one_in(4) { (back, chain) } else { (chain, back) }
}

/// Other paths from later times on.
fn add_switches(draw: &mut Draw, count: u64, group: &mut Group) {
    for at in [draw.between(1, 150) * MS, draw.between(151, 400) * MS] {
        if draw.one_in(3) {
            let (path, back) = random_path(draw, count);
            group.switches.push(Switch { at, path, back });
        }
    }
}

/// What may go wrong on a link.
fn add_impairments(draw: &mut Draw, port: &mut PortConfig) {
    if draw.one_in(8) {
        let (good, bad) = (draw.between(1, 200) * MS, draw.between(1, 50) * MS);
        let (good_packet_error_rate, packet_error_rate) = (draw.of(&[0.0, 0.001]), draw.of(&[0.1, 1.0]));
        let bursts = GilbertElliott { good, bad, good_packet_error_rate, packet_error_rate, size: 1000 };
        port.errors = Some(ErrorRate::GilbertElliott(bursts));
    }
    if draw.one_in(8) {
        let from = draw.between(0, 300) * MS;
        let spans = [(from, from + 40 * MS), (from + 40 * MS, from + 90 * MS)];
        port.ack_blackout = Spans::new(spans.to_vec()).expect("they touch");
    }
    if draw.one_in(8) {
        let probability = Probability::from_f64(draw.of(&[0.02, 0.3, 1.0]));
        // Long and short beside windows and propagation; packets that come at one instant.
        let delay = draw.of(&[1, 800_000, 2 * MS, 10 * MS, 150 * MS]);
        port.reorder = Some(Reorder { probability, delay });
    }
    if draw.one_in(8) {
        let to = [0, 1, 2, 3].map(|code| draw.of(&[0, code, 1, 2, 3]));
        port.ecn = Some(EcnRewrite { to, probability: Probability::from_f64(draw.of(&[0.3, 1.0])) });
    }
}

fn random_group(draw: &mut Draw, index: u64, count: u64) -> Group {
    let (path, back) = random_path(draw, count);
    let pipe = |draw: &mut Draw| {
        draw.one_in(2).then(|| Pipe {
            rate: BitRate(draw.of(&[10_000_000, 100_000_000, 77_777_777])),
            delay: draw.of(&[0, MS / 3, MS, 5 * MS]),
        })
    };
    let (access, exit) = (pipe(draw), pipe(draw));
    let segment = draw.of(&[576, 1000, 1500]);
    let kind = if draw.one_in(5) {
        GroupKind::Source(SourceConfig {
            segment,
            rate: BitRate(draw.between(100_000, 3_000_000)),
            pattern: match draw.below(3) {
                0 => Pattern::Constant,
                n => {
                    Pattern::OnOff { on: Duration(20_000_000), off: Duration(35_000_000), is_random: n == 2 }
                }
            },
        })
    } else {
        GroupKind::Tcp(random_tcp(draw, segment))
    };
    // A stream of their own, as for two classes.
    let mut loads = Draw(Stream::named(draw.0.draws(), "loads"));
    let (mut kind, mut schedule, mut sizes) = (kind, Vec::new(), None);
    match &mut kind {
        GroupKind::Source(_) if loads.one_in(2) => {
            schedule =
                vec![(Time(0), 1), (Time(40_000_000), 3), (Time(90_000_000), 0), (Time(150_000_000), 2)];
        }
        GroupKind::Source(_) => {}
        GroupKind::Tcp(config) => {
            config.advertise = match loads.below(6) {
                0 => Advertise::Growing { from: 2, per_ack: loads.below(3) as u32 },
                1 => {
                    Advertise::Reading { rate: BitRate(700_001), buffer: Bytes(loads.between(1_500, 20_000)) }
                }
                _ => Advertise::Always,
            };
            if config.app == App::Endless && loads.one_in(3) {
                config.app = App::Own;
                sizes = Some(Sizes { shape: 1.35, mean: 30.0 });
            }
        }
    }
    Group {
        name: format!("g{index}"),
        kind,
        count: draw.between(1, 6) as u32,
        path,
        back,
        switches: Vec::new(),
        access,
        exit,
        start: match draw.below(3) {
            0 => Start::Every { from: Time(0), every: 0 },
            1 => Start::Every { from: Time(draw.below(50_000_000)), every: 10_000_000 },
            _ if loads.one_in(2) => Start::Poisson { from: Time(0), gap: 20_000_000 },
            _ => Start::Uniform { within: 100_000_000 },
        },
        stop: if draw.one_in(4) { Time(draw.between(150, 600) * 1_000_000) } else { Time::NEVER },
        schedule,
        sizes,
        interoperable: None,
    }
}

/// XCP-i as downstream edge, with times that a short run notices.
fn random_edge(draw: &mut Draw) -> xcp_i::Config {
    let ms = |ms: u64| Duration(ms * 1_000_000);
    xcp_i::Config {
        no_estimate: draw.of(&[xcp_i::NoEstimate::Pass, xcp_i::NoEstimate::Hold]),
        virtual_queue: draw.of(&[
            xcp_i::VirtualQueue::Auto,
            xcp_i::VirtualQueue::Host,
            xcp_i::VirtualQueue::Cloud,
            xcp_i::VirtualQueue::None,
        ]),
        signed: draw.one_in(2),
        table: draw.between(1, 4) as usize,
        exchange: congestlab_core::law::xcp_i::Config {
            timeout: ms(draw.between(20, 100)),
            backoff: ms(50),
            idle: ms(100),
            ..congestlab_core::law::xcp_i::Config::DEFAULT
        },
        ..xcp_i::Config::new(link_law(draw, Rate(125_000)))
    }
}

/// Makes routers of links with XCP, and XCP-i nodes of them and of hosts.
pub(crate) fn interoperate(draw: &mut Draw, model: &mut Model) {
    let config = random_edge(draw);
    let estimator = |draw: &mut Draw| {
        let error = Ratio::ppm(draw.of(&[0, 0, 100_000]));
        let base = draw.of(&[xcp_i::ErrorBase::Capacity, xcp_i::ErrorBase::Residual]);
        // Loads at which something is sent in runs as short as these.
        let load = Ratio::ONE;
        let method = match draw.below(16) {
            0 => Method::None,
            1 => Method::PathChirp(path_chirp::Config { packet: 200, load, ..Default::default() }),
            2 => Method::Pathload(pathload::Config { packets: 10, streams: 2, load, ..Default::default() }),
            3 => Method::Direct(direct::Config { packets: 5, load, ..direct::Config::new(Rate(1_000_000)) }),
            _ => return Some(Estimator::Oracle(xcp_i::OracleConfig { error, base })),
        };
        let passive = draw.one_in(2).then(passive::Config::default);
        Some(Estimator::Probes(estimator::Config { method, passive }))
    };
    let (mut rest, mut devices) = (Vec::new(), Vec::new());
    for (link, _) in (0..).zip(&model.links).filter(|(_, link)| link.port.law.is_some()) {
        rest.push(link);
        if draw.one_in(2) {
            let links = std::mem::take(&mut rest);
            let estimators = links.iter().map(|_| estimator(draw)).collect();
            let router = Router { config: config.clone(), estimators };
            devices.push(Device { links, kind: DeviceKind::Router(Box::new(router)) });
        }
    }
    model.devices = devices;
    let is_edge: Vec<bool> = (0..model.links.len() as u32)
        .map(|link| model.devices.iter().any(|device| device.links.contains(&link)))
        .collect();
    for group in &mut model.groups {
        let is_xcp = matches!(&group.kind, GroupKind::Tcp(Config { law: SenderConfig::Xcp(_), .. }));
        group.interoperable = (is_xcp && !draw.one_in(4)).then(|| config.clone());
        if is_xcp {
            add_ways(draw, &is_edge, group);
        }
    }
}

/// Another way between the edges of a cloud: through a link less or another one. From the beginning, or
/// from a later time on.
fn add_ways(draw: &mut Draw, is_edge: &[bool], group: &mut Group) {
    let mut path = group.path.clone();
    let inside: Vec<usize> = (0..path.len()).filter(|&at| !is_edge[path[at] as usize]).collect();
    let others: Vec<u32> = (0..is_edge.len() as u32)
        .filter(|&link| !is_edge[link as usize] && !path.contains(&link) && !path.contains(&(link ^ 1)))
        .collect();
    if inside.is_empty() || draw.one_in(4) {
        return;
    }
    let at = inside[draw.below(inside.len() as u64) as usize];
    if !others.is_empty() && draw.one_in(2) {
        path[at] = others[draw.below(others.len() as u64) as usize];
    } else if inside.len() > 1 {
        path.remove(at);
    } else {
        return;
    }
    let back = path.iter().rev().map(|link| link ^ 1).collect();
    if group.switches.is_empty() && !draw.one_in(4) {
        group.switches.push(Switch { at: draw.between(1, 300) * MS, path, back });
    } else {
        (group.path, group.back) = (path, back);
    }
}

/// Makes half-duplex media of links that no router owns.
pub(crate) fn share_media(draw: &mut Draw, model: &mut Model) {
    for first in (0..model.links.len() as u32).step_by(2) {
        let links = [first, first + 1];
        if model.devices.iter().any(|device| links.iter().any(|link| device.links.contains(link))) {
            continue;
        }
        let access = match draw.below(4) {
            0 => continue,
            1 => Access::Fair,
            2 => Access::CsmaCd(CsmaCd::IEEE),
            _ => Access::CsmaCd(CsmaCd { attempts: 2, backoff_limit: 1, ..CsmaCd::IEEE }),
        };
        let frame = draw.of(&[Frame::ETHERNET, Frame { overhead: 0, minimum: 1, gap: 0 }]);
        let rate = BitRate(draw.of(&[1_000_000, 2_345_678, 10_000_000]));
        for link in links {
            let port = &mut model.links[link as usize].port;
            port.service = Service::Fixed(rate);
            if let Some(law) = &mut port.law {
                law.follows_service = false;
            }
        }
        let kind = DeviceKind::Medium(medium::Config { frame, access });
        model.devices.push(Device { links: links.into(), kind });
    }
}

fn random_tcp(draw: &mut Draw, segment: u16) -> Config {
    let law = match draw.below(6) {
        0 => SenderConfig::Reno(reno::Config::default()),
        1 => SenderConfig::Cubic(cubic::Config::default()),
        2 => match draw.below(5) {
            3 | 4 => SenderConfig::Bbr(bbr::Config::default()),
            0 => SenderConfig::HighSpeed(highspeed::Config {
                limited_slow_start: draw.one_in(2),
                ..Default::default()
            }),
            1 => SenderConfig::Bic(bic::Config {
                max_increment: 1 + draw.below(64) as u32,
                ..Default::default()
            }),
            _ => SenderConfig::Vegas(vegas::Config::default()),
        },
        _ => {
            let xcp = xcp::SenderConfig {
                request: draw.of(&[xcp::RequestPolicy::Demand, xcp::RequestPolicy::Unlimited]),
                loss: draw.of(&[xcp::LossPolicy::Tcp, xcp::LossPolicy::Maintain, xcp::LossPolicy::Fallback]),
                clamp: draw.one_in(2),
                aging: draw.one_in(2).then_some(Ratio::ppm(500_000)),
                pacing: draw.one_in(3),
                rate_source: draw.of(&[xcp::RateSource::Window, xcp::RateSource::Measured]),
                feedback: draw.of(&[xcp::Feedback::Rate, xcp::Feedback::Sum]),
                price: Ratio::ppm(draw.of(&[1_000_000, 2_000_000])),
                desired_rate: Rate(12_500_000),
                profile: if draw.one_in(4) { xcp::Profile::Ns2 } else { xcp::Profile::Standard },
                safety_net: draw.one_in(2),
                verify: false,
            };
            let feedback = if xcp.clamp { xcp::Feedback::Bytes } else { xcp.feedback };
            let xcp = xcp::SenderConfig { feedback, verify: xcp.safety_net, ..xcp };
            match draw.below(3) {
                0 => SenderConfig::XcpR(xcp_r::Config {
                    xcp,
                    epochs: !draw.one_in(4),
                    own: draw.of(&[xcp_r::Own::Difference, xcp_r::Own::Reset]),
                }),
                _ => SenderConfig::Xcp(if draw.one_in(6) {
                    xcp::SenderConfig { profile: xcp::Profile::Thesis, ..xcp }
                } else {
                    xcp
                }),
            }
        }
    };
    Config {
        segment,
        ack: 40,
        law,
        initial_window: draw.between(1, 4) as u32,
        window_most: Bytes(u64::MAX),
        awnd: draw.one_in(3).then(|| draw.between(1, 64) as u32),
        recovery: draw.of(&[Recovery::Sack, Recovery::Fack, Recovery::NewReno, Recovery::Reno]),
        min_rto: Duration(draw.of(&[200_000_000, 1_000_000_000])),
        delayed_ack: draw.one_in(3),
        ecn: draw.one_in(3),
        ns2: draw.one_in(5),
        linux: None,
        advertise: Advertise::Always,
        stop: Time::NEVER,
        lie: None,
        measure: Measure::ALWAYS,
        app: match draw.below(5) {
            0 => App::Transfer(Bytes(draw.between(1, 300_000))),
            1 => App::Bursts {
                size: Bytes(draw.between(10_000, 40_000)),
                pause: Duration(50_000_000),
                wait: draw.of(&[Wait::Write, Wait::Ack]),
                buffer: Bytes(16_000_000),
                total: draw.one_in(2).then(|| Bytes(draw.between(1, 90_000))),
            },
            _ => App::Endless,
        },
    }
}

//! Estimators of the available bandwidth of a cloud (XCP-i).

use congestlab_core::units::{BitRate, Duration, Rate, Ratio};
use congestlab_net::estimator::{self, Method, direct, passive, path_chirp, pathload};
use congestlab_net::xcp_i::{CONTROL_SIZE, ErrorBase, OracleConfig};
use congestlab_sim::model;
use schemars::{Schema, SchemaGenerator};

use congestlab_text::decode::{
    At, Chance, Language, PacketSize, Variant, choice_schema, fill, record, variant, words,
};
use congestlab_text::diagnostic::{Findings, Span, choices};
use congestlab_text::tree::{Node, Value, inline};

words! {
    /// The quantity that the oracle's error is a part of.
    Base {
        /// The capacity.
        Capacity = "capacity",
        /// The capacity that is left.
        Residual = "residual",
    }
}

record! {
    /// Reads the links of the cloud.
    Oracle {
        /// Each estimate is off by a part drawn from [-error, error]; 0.
        error: Chance,
        /// Quantity that the error is a part of: capacity (default), residual.
        base: Base,
    }
}

record! {
    /// pathChirp: chirps of ever closer packets.
    PathChirp {
        /// Size of a probe; 300 B (the tool has 1000 B).
        packet: PacketSize,
        /// Each gap is the one before divided by this; 1.08 (the tool has 1.2).
        spread: Ratio,
        /// An excursion is over when the delay has fallen to its maximum divided by this; 6 (the tool has 1.5).
        decrease: Ratio,
        /// Excursions of fewer packets do not count; 5.
        busy: u32,
        /// The estimate is the mean over so many chirps; 11.
        smoothing: u32,
        /// Least rate of a chirp's first gap; 10 kbit/s.
        low: BitRate,
        /// Rate of the first chirp's last gap; 10 Mbit/s. Later chirps follow the estimates.
        high: BitRate,
        /// Part of the cloud's observed throughput that chirps may use; 0.01.
        load: Chance,
        /// A delay that grows by less than this part of the time has not grown; 0.001.
        tolerance: Chance,
        /// Let traffic that goes missing in the cloud override the probes; false.
        passive: bool,
    }
}

record! {
    /// pathload: a search over streams of constant rate.
    Pathload {
        /// Packets of a stream; 100.
        packets: u32,
        /// Streams of a fleet; 12.
        streams: u32,
        /// Smallest packet; 200 B.
        packet_min: PacketSize,
        /// Largest packet; 1500 B.
        packet_max: PacketSize,
        /// Shortest gap, as long as packets can grow; 100 us.
        gap_min: Duration,
        /// Part of increasing pairs above which delays increase; 0.66.
        pct: Chance,
        /// Part of increasing pairs below which delays do not increase; 0.54.
        pct_not: Chance,
        /// Part of the whole change of delays, above which delays increase; 0.55.
        pdt: Chance,
        /// Part of the whole change of delays, below which delays do not increase; 0.45.
        pdt_not: Chance,
        /// Part of a fleet's streams that must agree for the fleet to have an answer; 0.7.
        agree: Chance,
        /// Part of a stream's packets whose loss ends its fleet; 0.1.
        loss: Chance,
        /// Width of a range, as a part of its upper end, at which it is the answer; 0.05.
        resolution: Chance,
        /// Distance of a range's ends from the grey region, as a part, at which it is the answer too; 0.1.
        grey: Chance,
        /// The part of its rate that streams use on average; 0.1.
        load: Chance,
        /// A delay that grows by less than this part of the time has not grown; 0.001.
        tolerance: Chance,
        /// Let traffic that goes missing in the cloud override the probes; false.
        passive: bool,
    }
}

record! {
    /// Direct probing: trains through a link of known capacity.
    Direct {
        /// Capacity of the tight link of the cloud, which no probe can tell.
        capacity: BitRate = required,
        /// Rate of a train; the capacity.
        rate: BitRate,
        /// Size of a probe; 500 B.
        packet: PacketSize,
        /// Packets of a train; 50.
        packets: u32,
        /// The estimate is the mean over so many trains; 11.
        smoothing: u32,
        /// The part of the capacity that trains may use; 0.01.
        load: Chance,
        /// Let traffic that goes missing in the cloud override the probes; false.
        passive: bool,
    }
}

record! {
    /// No probes: all is available until traffic goes missing in the cloud.
    Passive {
        /// Part of the sent traffic below which a loss counts as jitter; 0.05.
        tolerance: Chance,
    }
}

impl Direct {
    /// Returns true if traffic that goes missing overrides the probes.
    pub(crate) fn is_passive(&self) -> bool {
        self.passive.as_ref().is_some_and(|at| at.value)
    }
}

/// The estimators, as scenarios name them.
const NAMES: &[&str] = &["oracle", "pathchirp", "pathload", "direct", "passive"];

/// An estimator of the available bandwidth of a cloud.
#[derive(Clone, Debug)]
pub(crate) enum Estimator {
    Oracle(Oracle),
    PathChirp(Box<PathChirp>),
    Pathload(Box<Pathload>),
    Direct(Direct),
    Passive(Passive),
}

impl Default for Estimator {
    fn default() -> Self {
        Self::Oracle(Oracle::default())
    }
}

impl Language for Estimator {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let variant = variant(node, findings)?;
        match variant.name {
            "oracle" => below(&variant, findings, |_, _| true).map(Self::Oracle),
            "pathchirp" => {
                below(&variant, findings, check_path_chirp).map(|table| Self::PathChirp(Box::new(table)))
            }
            "pathload" => {
                below(&variant, findings, check_pathload).map(|table| Self::Pathload(Box::new(table)))
            }
            "direct" => below(&variant, findings, check_direct).map(Self::Direct),
            "passive" => below(&variant, findings, |_, _| true).map(Self::Passive),
            name => {
                let message = format!("unknown estimator `{name}` in `{}`", findings.place());
                let help = choices(name, NAMES.iter().copied());
                findings.error("scenario::unknown-name", variant.span, message, help);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        let (name, below) = match self {
            Self::Oracle(table) => ("oracle", table.encode()),
            Self::PathChirp(table) => ("pathchirp", table.encode()),
            Self::Pathload(table) => ("pathload", table.encode()),
            Self::Direct(table) => ("direct", table.encode()),
            Self::Passive(table) => ("passive", table.encode()),
        };
        Value::table([(name.into(), below)])
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let tables = [
            ("oracle", Oracle::schema(generator)),
            ("pathchirp", PathChirp::schema(generator)),
            ("pathload", Pathload::schema(generator)),
            ("direct", Direct::schema(generator)),
            ("passive", Passive::schema(generator)),
        ];
        choice_schema(NAMES, &tables)
    }
}

/// Reads what is below the name, and refuses what makes no probes or none of use.
fn below<T: Language>(
    variant: &Variant<'_>,
    findings: &mut Findings,
    check: impl Fn(&T, &mut Findings) -> bool,
) -> Option<T> {
    findings.at.push(variant.name.into());
    let below = T::decode(&variant.below, findings).filter(|table| check(table, findings));
    findings.at.pop();
    below
}

/// No more packets of a round, or rounds, are kept.
const COUNT_MAX: u32 = 1000;

/// True if the key is absent or right; says so if not.
fn is_right<T: Copy + Language>(
    key: (&str, &Option<At<T>>),
    allowed: &str,
    test: impl Fn(T) -> bool,
    findings: &mut Findings,
) -> bool {
    let (name, Some(at)) = key else { return true };
    let is_right = test(at.value);
    if !is_right {
        let value = inline(&at.value.encode());
        let message = format!("`{}.{name}` is {value}, which is out of range", findings.place());
        findings.error("scenario::range", at.span, message, format!("allowed: {allowed}"));
    }
    is_right
}

/// At least what a control packet has: the engine counts on it.
fn is_packet(key: (&str, &Option<At<PacketSize>>), findings: &mut Findings) -> bool {
    is_right(key, "40 B to 65535 B", |size| size.0 >= CONTROL_SIZE, findings)
}

fn is_load(load: &Option<At<Chance>>, findings: &mut Findings) -> bool {
    is_right(("load", load), "0.0001 to 1", |load| load.0 >= 0.0001, findings)
}

fn is_count(key: (&str, &Option<At<u32>>), least: u32, findings: &mut Findings) -> bool {
    let allowed = format!("{least} to {COUNT_MAX}");
    is_right(key, &allowed, |count| (least..=COUNT_MAX).contains(&count), findings)
}

fn check_path_chirp(table: &PathChirp, findings: &mut Findings) -> bool {
    let spread = |spread| (Ratio::ppm(1_010_000)..=Ratio::ppm(4_000_000)).contains(&spread);
    let default = path_chirp::Config::DEFAULT;
    let rate = |rate: Rate| BitRate(8 * rate.0);
    is_packet(("packet", &table.packet), findings)
        & is_right(("spread", &table.spread), "1.01 to 4", spread, findings)
        & is_right(("decrease", &table.decrease), "1 to 1000", |by| by >= Ratio::ONE, findings)
        & is_count(("busy", &table.busy), 1, findings)
        & is_count(("smoothing", &table.smoothing), 1, findings)
        & are_in_order(
            Bound::new("low", &table.low, rate(default.low)),
            Bound::new("high", &table.high, rate(default.high)),
            Order::Below,
            findings,
        )
        & is_load(&table.load, findings)
}

fn check_pathload(table: &Pathload, findings: &mut Findings) -> bool {
    let default = pathload::Config::default();
    let is_part = |part: Chance| (0.001..=0.5).contains(&part.0);
    let part = |part: Ratio| Chance(f64::from(part.0) / 1e6);
    let upto = Order::UpTo;
    is_count(("packets", &table.packets), 4, findings)
        & is_count(("streams", &table.streams), 1, findings)
        & is_packet(("packet_min", &table.packet_min), findings)
        & is_packet(("packet_max", &table.packet_max), findings)
        & are_in_order(
            Bound::new("packet_min", &table.packet_min, PacketSize(default.packet_min)),
            Bound::new("packet_max", &table.packet_max, PacketSize(default.packet_max)),
            upto,
            findings,
        )
        & is_right(("gap_min", &table.gap_min), "above 0 s", |gap| gap.0 > 0, findings)
        & is_right(("agree", &table.agree), "above 0.5 to 1", |part| part.0 > 0.5, findings)
        & is_right(("resolution", &table.resolution), "0.001 to 0.5", is_part, findings)
        & is_right(("grey", &table.grey), "0.001 to 0.5", is_part, findings)
        & are_in_order(
            Bound::new("pct_not", &table.pct_not, part(default.pct_not)),
            Bound::new("pct", &table.pct, part(default.pct)),
            upto,
            findings,
        )
        & are_in_order(
            Bound::new("pdt_not", &table.pdt_not, part(default.pdt_not)),
            Bound::new("pdt", &table.pdt, part(default.pdt)),
            upto,
            findings,
        )
        & is_load(&table.load, findings)
}

/// A key that bounds another or is bounded by it; its value may be a default.
struct Bound<T> {
    name: &'static str,
    span: Option<Span>,
    value: T,
}

impl<T: Copy> Bound<T> {
    fn new(name: &'static str, key: &Option<At<T>>, default: T) -> Self {
        let (span, value) = key.as_ref().map_or((None, default), |at| (Some(at.span), at.value));
        Self { name, span, value }
    }
}

/// How a key lies to the one that bounds it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Below,
    UpTo,
}

/// Checks that one key bounds another, though either may be a default.
fn are_in_order<T: Copy + PartialOrd + std::fmt::Display>(
    low: Bound<T>,
    high: Bound<T>,
    order: Order,
    findings: &mut Findings,
) -> bool {
    let is_right = match order {
        Order::Below => low.value < high.value,
        Order::UpTo => low.value <= high.value,
    };
    let Some(span) = low.span.or(high.span).filter(|_| !is_right) else { return true };
    let default = |is_written: Option<Span>| if is_written.is_none() { ", the default" } else { "" };
    let message = format!(
        "`{}.{}` is {}{}, and {} is {}{}",
        findings.place(),
        low.name,
        low.value,
        default(low.span),
        high.name,
        high.value,
        default(high.span)
    );
    let word = if order == Order::Below { "below" } else { "up to" };
    findings.error("scenario::range", span, message, format!("allowed: {} {word} {}", low.name, high.name));
    false
}

fn check_direct(table: &Direct, findings: &mut Findings) -> bool {
    is_packet(("packet", &table.packet), findings)
        & is_count(("packets", &table.packets), 2, findings)
        & is_count(("smoothing", &table.smoothing), 1, findings)
        & is_load(&table.load, findings)
}

impl Estimator {
    /// Warns of trains or chirps that the port to the cloud can not send, and of methods that send no probes.
    pub(crate) fn look_at(&self, port: Rate, place: &str, span: Span, findings: &mut Findings) {
        match self {
            Self::Direct(Direct { capacity: Some(capacity), rate, .. }) => {
                let rate = rate.as_ref().unwrap_or(capacity);
                if rate.value.bytes() > port {
                    let message = format!(
                        "`{place}.estimator.direct` sends trains at {}, and the port to the cloud sends {}",
                        rate.value,
                        BitRate(8 * port.0)
                    );
                    let help =
                        "the port would space them out, as cross traffic does: write a rate of at most that";
                    findings.error("scenario::range", rate.span, message, help);
                }
            }
            Self::Passive(_) => {
                let message = format!(
                    "`{place}.estimator` is \"passive\" alone: until traffic goes missing, all that the \
                     port to the cloud sends, {}, counts as available",
                    BitRate(8 * port.0)
                );
                let help = "the cloud's queue fills before anything goes missing: write passive = true beside the \
                            keys of an estimator that probes, or a port no faster than the cloud";
                findings.warning("scenario::xcp-i", span, message, help);
            }
            _ => {}
        }
    }

    /// Writes every default out.
    pub(crate) fn resolve(&mut self, span: Span) -> model::Estimator {
        let method = match self {
            Self::Oracle(oracle) => {
                let error = share(&mut oracle.error, span, Ratio(0));
                let base = match fill(&mut oracle.base, span, || Base::Capacity).value {
                    Base::Capacity => ErrorBase::Capacity,
                    Base::Residual => ErrorBase::Residual,
                };
                return model::Estimator::Oracle(OracleConfig { error, base });
            }
            Self::PathChirp(table) => (Method::PathChirp(path_chirp(table, span)), &mut table.passive),
            Self::Pathload(table) => (Method::Pathload(pathload(table, span)), &mut table.passive),
            Self::Direct(table) => (Method::Direct(direct(table, span)), &mut table.passive),
            Self::Passive(table) => {
                let tolerance = share(&mut table.tolerance, span, passive::Config::default().tolerance);
                let passive = Some(passive::Config { tolerance });
                return model::Estimator::Probes(estimator::Config { method: Method::None, passive });
            }
        };
        let (method, passive) = method;
        let passive = fill(passive, span, || false).value.then(passive::Config::default);
        model::Estimator::Probes(estimator::Config { method, passive })
    }
}

fn count(key: &mut Option<At<u32>>, span: Span, default: u16) -> u16 {
    fill(key, span, || default.into()).value.min(COUNT_MAX) as u16
}

fn share(key: &mut Option<At<Chance>>, span: Span, default: Ratio) -> Ratio {
    fill(key, span, || Chance(f64::from(default.0) / 1e6)).value.ratio()
}

fn size(key: &mut Option<At<PacketSize>>, span: Span, default: u16) -> u16 {
    fill(key, span, || PacketSize(default)).value.0
}

fn rate(key: &mut Option<At<BitRate>>, span: Span, default: Rate) -> Rate {
    fill(key, span, || BitRate(8 * default.0)).value.bytes()
}

fn path_chirp(table: &mut PathChirp, span: Span) -> path_chirp::Config {
    let default = path_chirp::Config::default();
    path_chirp::Config {
        packet: size(&mut table.packet, span, default.packet),
        spread: fill(&mut table.spread, span, || default.spread).value,
        decrease: fill(&mut table.decrease, span, || default.decrease).value,
        busy: count(&mut table.busy, span, default.busy),
        smoothing: count(&mut table.smoothing, span, default.smoothing),
        low: rate(&mut table.low, span, default.low),
        high: rate(&mut table.high, span, default.high),
        load: share(&mut table.load, span, default.load),
        tolerance: share(&mut table.tolerance, span, default.tolerance),
    }
}

fn pathload(table: &mut Pathload, span: Span) -> pathload::Config {
    let default = pathload::Config::default();
    pathload::Config {
        packets: count(&mut table.packets, span, default.packets),
        streams: count(&mut table.streams, span, default.streams),
        packet_min: size(&mut table.packet_min, span, default.packet_min),
        packet_max: size(&mut table.packet_max, span, default.packet_max),
        gap_min: fill(&mut table.gap_min, span, || default.gap_min).value,
        pct: share(&mut table.pct, span, default.pct),
        pct_not: share(&mut table.pct_not, span, default.pct_not),
        pdt: share(&mut table.pdt, span, default.pdt),
        pdt_not: share(&mut table.pdt_not, span, default.pdt_not),
        agree: share(&mut table.agree, span, default.agree),
        loss: share(&mut table.loss, span, default.loss),
        resolution: share(&mut table.resolution, span, default.resolution),
        grey: share(&mut table.grey, span, default.grey),
        load: share(&mut table.load, span, default.load),
        tolerance: share(&mut table.tolerance, span, default.tolerance),
    }
}

fn direct(table: &mut Direct, span: Span) -> direct::Config {
    // Without a capacity the table was refused.
    let capacity = table.capacity.as_ref().map_or(BitRate(8), |at| at.value);
    let default = direct::Config::new(capacity.bytes());
    direct::Config {
        capacity: capacity.bytes(),
        rate: Some(fill(&mut table.rate, span, || capacity).value.bytes()),
        packet: size(&mut table.packet, span, default.packet),
        packets: count(&mut table.packets, span, default.packets),
        smoothing: count(&mut table.smoothing, span, default.smoothing),
        load: share(&mut table.load, span, default.load),
    }
}

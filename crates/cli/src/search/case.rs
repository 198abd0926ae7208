//! A network as the search has it: few kinds of parts, and whole numbers in small units, which can be drawn, changed and made
//! simpler, and written as a scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use congestlab_scenario::net::random::Stream;

/// Least number of simulated seconds before what is measured begins, which takes as long.
const WARMUP_S: u64 = 10;
/// Round trips of the longest path before what is measured begins: a flow that begins with one packet needs some twenty.
const WARMUP_ROUND_TRIPS: u64 = 30;
/// The longest delay of an access link, microseconds: over one link a round trip is less than XCP's longest interval, a second.
const ACCESS_MAX: u64 = 430_000;
/// The last start of a flow, ms: half of the time before the measured one is left to it.
const START_MAX: u64 = 5000;
/// The most links, and the most groups of flows.
const PARTS_MAX: usize = 4;
/// A shorter queue harms whoever shares it, with any law.
const QUEUE_MIN: u64 = 20;
/// Percent of ACKs; of more, answers to SYNs get lost as often, and connections do not begin in the time that there is.
const LOST_ACKS_MAX: u64 = 50;
/// The trace of a cellular link, as `scenarios/synthetic-lte.down` has it.
const CELLULAR: (&str, &[u8]) = ("synthetic-lte.down", include_bytes!("../../data/synthetic-lte.down"));

/// A mechanism that may do harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// Headers that state more than is true, of hosts that send nearly nothing.
    HostileHeaders,
    /// Hosts that state more than is true and send what they get.
    Liars,
    /// Links that carry nothing for a time, again and again.
    Stalls,
    /// A cellular link.
    Cellular,
    /// A link that gets slower.
    Slower,
    /// Round trips of which one is eight times another.
    MixedRoundTrips,
    /// Datagrams, which listen to nobody.
    Datagrams,
    /// Flows that pause.
    Bursts,
    /// Losses on the wire.
    Errors,
    /// Lost ACKs.
    LostAcks,
    /// Several links.
    SeveralLinks,
    /// A link without the law.
    WithoutLaw,
    /// Forty flows or more.
    ManyFlows,
}

impl Cause {
    /// Mechanisms that a case can be given: all but those that come of numbers.
    const ADDED: [Self; 11] = [
        Self::HostileHeaders,
        Self::Liars,
        Self::Stalls,
        Self::Cellular,
        Self::Slower,
        Self::MixedRoundTrips,
        Self::Datagrams,
        Self::Bursts,
        Self::Errors,
        Self::LostAcks,
        Self::SeveralLinks,
    ];

    /// Returns the mechanism in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::HostileHeaders => "hostile headers",
            Self::Liars => "lying senders",
            Self::Stalls => "stalls",
            Self::Cellular => "cellular link",
            Self::Slower => "slower link",
            Self::MixedRoundTrips => "mixed round trips",
            Self::Datagrams => "datagrams",
            Self::Bursts => "bursts",
            Self::Errors => "errors",
            Self::LostAcks => "lost ACKs",
            Self::SeveralLinks => "several links",
            Self::WithoutLaw => "link without the law",
            Self::ManyFlows => "many flows",
        }
    }
}

/// How the rate of a link changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Changes {
    Never,
    /// Nothing is carried for the last `stall` of each `period`, in ms.
    Stalls {
        period: u64,
        stall: u64,
    },
    Cellular,
    /// Percent of the rate that are left from the middle of the measured time on.
    Slower {
        percent: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    /// kbit/s.
    rate: u64,
    /// Microseconds.
    delay: u64,
    /// Packets.
    queue: u64,
    changes: Changes,
    /// Packets lost on the wire, of 10,000.
    errors: u64,
    /// Lost ACKs, of 100.
    lost_acks: u64,
    has_law: bool,
}

impl Link {
    const PLAIN: Self = Self {
        rate: 10_000,
        delay: 10_000,
        queue: 200,
        changes: Changes::Never,
        errors: 0,
        lost_acks: 0,
        has_law: true,
    };
}

/// Data of a group of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Always more of them.
    Greedy,
    /// So many kB, then a pause of so many ms.
    Bursts { size: u64, pause: u64 },
    /// X times `price`; of a window of one small packet, or of all that there is.
    Liar { price: u64, is_small: bool },
    /// Percent of the slowest link on the path, all flows together; on and off for so many ms, or always on (0).
    Datagrams { percent: u64, on_off: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) kind: Kind,
    pub(super) count: u64,
    /// First link of the path.
    pub(super) first: usize,
    pub(super) last: usize,
    /// Delay of the access link, microseconds.
    access: u64,
    /// ms.
    start: u64,
    /// Between the starts of two flows, ms.
    every: u64,
}

impl Group {
    const PLAIN: Self =
        Self { kind: Kind::Greedy, count: 1, first: 0, last: 0, access: 0, start: 0, every: 0 };

    /// Returns true for flows that always have data and tell the truth: harm is measured of them.
    pub(super) fn is_judged(&self) -> bool {
        self.kind == Kind::Greedy
    }

    /// Returns true for flows that would take a share if they had data.
    pub(super) fn takes_a_share(&self) -> bool {
        matches!(self.kind, Kind::Greedy | Kind::Bursts { .. } | Kind::Liar { is_small: false, .. })
    }
}

/// How a law stands in a scenario.
#[derive(Clone, Debug)]
pub(super) struct Spoken {
    /// Value of a link's `law`.
    pub(super) link: String,
    /// Value of a link's `discipline`; `None`: the default.
    pub(super) discipline: Option<String>,
    /// Name of the law of flows.
    pub(super) flow: &'static str,
    /// Settings of flows, as `key = value` with a comma between.
    pub(super) settings: String,
    /// True if a flow can state more than is true.
    pub(super) can_lie: bool,
}

impl Spoken {
    fn of_flow(&self, price: Option<u64>) -> String {
        let price = price.filter(|_| self.can_lie).map(|price| format!("price = {price}"));
        let told: Vec<&str> = [Some(self.settings.as_str()), price.as_deref()]
            .into_iter()
            .flatten()
            .filter(|told| !told.is_empty())
            .collect();
        match told.is_empty() {
            true => format!("\"{}\"", self.flow),
            false => format!("{{ {} = {{ {} }} }}", self.flow, told.join(", ")),
        }
    }
}

/// A network with flows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Case {
    links: Vec<Link>,
    pub(super) groups: Vec<Group>,
}

/// A number of a case with the least and greatest value, and the one that nobody wonders about.
struct Number<'a> {
    value: &'a mut u64,
    least: u64,
    most: u64,
    plain: u64,
}

/// Draws a number in bounds, so that each doubling is as likely as another, to two digits.
fn draw_between(stream: &mut Stream, least: u64, most: u64) -> u64 {
    let base = least.max(1);
    let doublings = (most / base).max(1).ilog2();
    let drawn = base << stream.below(u64::from(doublings) + 1);
    let drawn = drawn + stream.below(drawn);
    rounded(drawn, 10).clamp(least, most)
}

/// Returns a number cut to so many leading steps: 10 for two digits, 1 for one.
fn rounded(number: u64, least: u64) -> u64 {
    let mut unit = 1;
    while number / unit >= least * 10 {
        unit *= 10;
    }
    number / unit * unit
}

/// Returns the greatest of 1, 2 and 5 times a power of ten that is not above a number.
fn round_below(number: u64) -> u64 {
    let leading = rounded(number, 1);
    let mut unit = 1;
    while leading / unit >= 10 {
        unit *= 10;
    }
    unit * match leading / unit {
        0 => 0,
        1 => 1,
        2..5 => 2,
        _ => 5,
    }
}

impl Case {
    /// Draws a case: a link with greedy flows, and one to three mechanisms.
    pub(super) fn draw(stream: &mut Stream, can_lie: bool) -> Self {
        let mut case = Self { links: vec![Link::PLAIN], groups: vec![Group::PLAIN] };
        case.links[0].rate = draw_between(stream, 2000, 50_000);
        case.links[0].delay = draw_between(stream, 2000, 60_000);
        case.groups[0].count = draw_between(stream, 1, 12);
        case.groups[0].every = draw_between(stream, 1, 300);
        let mechanisms = 1 + stream.below(2) + stream.below(2);
        for _ in 0..mechanisms {
            case.add(stream, can_lie);
        }
        case.normalise();
        case
    }

    /// Returns a case that differs in one to three respects.
    pub(super) fn mutate(&self, stream: &mut Stream, can_lie: bool) -> Self {
        let mut case = self.clone();
        for _ in 0..=stream.below(3) {
            match stream.below(10) {
                0 => case.add(stream, can_lie),
                1 => {
                    let all = case.without_parts();
                    if let Some(other) = pick(stream, &all) {
                        case = other.clone();
                    }
                }
                _ => case.change_a_number(stream),
            }
            case.normalise();
        }
        case
    }

    fn change_a_number(&mut self, stream: &mut Stream) {
        let mut numbers = self.numbers();
        let place = stream.below(numbers.len() as u64) as usize;
        let Some(Number { value, least, most, .. }) = numbers.get_mut(place) else { return };
        **value = match stream.below(4) {
            0 => draw_between(stream, *least, *most),
            1 => **value / 2,
            2 => rounded(**value * 5 / 4 + 1, 10),
            _ => **value * 2,
        }
        .clamp(*least, *most);
    }

    fn add(&mut self, stream: &mut Stream, can_lie: bool) {
        let place = stream.below(self.links.len() as u64) as usize;
        let across = Group { last: self.links.len() - 1, ..Group::PLAIN };
        let Some(cause) = pick(stream, &Cause::ADDED).copied() else { return };
        let has_room = self.groups.len() < PARTS_MAX;
        let mut join = |group: Group| {
            if has_room {
                self.groups.push(group);
            }
        };
        match cause {
            Cause::HostileHeaders | Cause::Liars if !can_lie => {}
            Cause::HostileHeaders | Cause::Liars => {
                let is_small = cause == Cause::HostileHeaders;
                let kind = Kind::Liar { price: draw_between(stream, 2, 1000), is_small };
                join(Group { kind, count: 1, access: draw_between(stream, 1000, 100_000), ..across });
            }
            Cause::MixedRoundTrips => {
                let access = draw_between(stream, 50_000, ACCESS_MAX);
                join(Group { access, count: draw_between(stream, 1, 5), every: 10, ..across });
            }
            Cause::Datagrams => {
                let on_off = if stream.below(2) == 0 { 0 } else { draw_between(stream, 20, 2000) };
                join(Group {
                    kind: Kind::Datagrams { percent: draw_between(stream, 5, 50), on_off },
                    ..across
                });
            }
            Cause::Bursts => {
                let kind = Kind::Bursts {
                    size: draw_between(stream, 10, 1000),
                    pause: draw_between(stream, 50, 3000),
                };
                join(Group { kind, count: draw_between(stream, 1, 8), every: 50, ..across });
            }
            Cause::Stalls => {
                let period = draw_between(stream, 200, 3000);
                let stall = draw_between(stream, 20, 1000);
                self.change(stream, place, Changes::Stalls { period, stall });
            }
            Cause::Cellular => self.change(stream, place, Changes::Cellular),
            Cause::Slower => self.links[place].changes = Changes::Slower { percent: 10 + stream.below(80) },
            Cause::Errors => self.links[place].errors = draw_between(stream, 1, 100),
            Cause::LostAcks => self.links[place].lost_acks = draw_between(stream, 5, LOST_ACKS_MAX),
            _ if self.links.len() < PARTS_MAX => {
                let link = Link { rate: draw_between(stream, 2000, 50_000), ..self.links[place] };
                self.links.push(link);
                let end = self.links.len() - 1;
                for group in self.groups.iter_mut().filter(|group| group.last + 1 == end) {
                    group.last = if stream.below(3) == 0 { group.last } else { end };
                }
                if self.groups.len() < PARTS_MAX {
                    self.groups.push(Group { first: end, last: end, count: 2, ..Group::PLAIN });
                }
            }
            _ => {}
        }
    }

    /// Makes a link's rate change; in half of all cases behind a link with the law, as in what was found live.
    fn change(&mut self, stream: &mut Stream, place: usize, changes: Changes) {
        if stream.below(2) == 0 || self.links.len() == PARTS_MAX {
            self.links[place].changes = changes;
            return;
        }
        let behind = Link { changes, has_law: false, ..self.links[place] };
        self.links[place].rate = (self.links[place].rate * 2).min(50_000);
        self.links.insert(place + 1, behind);
        for group in &mut self.groups {
            group.first += usize::from(group.first > place);
            group.last += usize::from(group.last >= place);
        }
    }

    fn numbers(&mut self) -> Vec<Number<'_>> {
        let mut numbers = Vec::new();
        let mut number = |value, least, most, plain| numbers.push(Number { value, least, most, plain });
        for link in &mut self.links {
            number(&mut link.rate, 1000, 50_000, 10_000);
            number(&mut link.delay, 1000, 100_000, 10_000);
            number(&mut link.queue, QUEUE_MIN, 4000, 200);
            match &mut link.changes {
                Changes::Never | Changes::Cellular => {}
                Changes::Stalls { period, stall } => {
                    number(period, 100, 4000, 1000);
                    number(stall, 10, 2000, 100);
                }
                Changes::Slower { percent } => number(percent, 10, 90, 50),
            }
            number(&mut link.errors, 0, 100, 0);
            number(&mut link.lost_acks, 0, LOST_ACKS_MAX, 0);
        }
        for group in &mut self.groups {
            number(&mut group.count, 1, 60, 1);
            number(&mut group.access, 0, ACCESS_MAX, 0);
            number(&mut group.start, 0, START_MAX, 0);
            number(&mut group.every, 0, 500, 0);
            match &mut group.kind {
                Kind::Greedy => {}
                Kind::Bursts { size, pause } => {
                    number(size, 10, 1000, 100);
                    number(pause, 10, 5000, 1000);
                }
                Kind::Liar { price, .. } => number(price, 2, 1000, 1000),
                Kind::Datagrams { percent, on_off } => {
                    number(percent, 5, 50, 50);
                    number(on_off, 0, 2000, 0);
                }
            }
        }
        numbers
    }

    /// Brings all numbers into bounds, and takes away links that nobody crosses.
    fn normalise(&mut self) {
        self.groups.truncate(PARTS_MAX);
        for place in (0..self.links.len()).rev() {
            let is_crossed = self.groups.iter().any(|group| (group.first..=group.last).contains(&place));
            if !is_crossed && self.links.len() > 1 {
                self.remove_link(place);
            }
        }
        for Number { value, least, most, .. } in self.numbers() {
            *value = (*value).clamp(least, most);
        }
        for link in &mut self.links {
            if let Changes::Stalls { period, stall } = &mut link.changes {
                *stall = (*stall).min(*period * 3 / 4);
            }
        }
        // Flows of the law have it on their way: its absence everywhere says nothing of it.
        for group in &self.groups {
            let path = &mut self.links[group.first..=group.last];
            if !path.iter().any(|link| link.has_law) {
                path[0].has_law = true;
            }
        }
        for group in &mut self.groups {
            if group.count == 1 {
                group.every = 0;
            }
            group.every = group.every.min((START_MAX - group.start) / group.count);
            if let Kind::Datagrams { on_off, .. } = &mut group.kind {
                *on_off = if *on_off == 0 { 0 } else { (*on_off).max(10) };
            }
        }
    }

    fn remove_link(&mut self, place: usize) {
        self.links.remove(place);
        self.groups.retain(|group| (group.first, group.last) != (place, place));
        for group in &mut self.groups {
            group.first -= usize::from(group.first > place);
            group.last -= usize::from(group.last >= place);
        }
    }

    /// Returns true if there are flows of which harm can be measured.
    fn is_sound(&self) -> bool {
        self.groups.iter().any(Group::is_judged)
    }

    /// Returns the case without each of its groups, links and mechanisms.
    fn without_parts(&self) -> Vec<Self> {
        let mut all = Vec::new();
        for place in 0..self.groups.len() {
            let mut case = self.clone();
            case.groups.remove(place);
            all.push(case);
        }
        for place in 0..self.links.len() {
            if self.links.len() > 1 {
                let mut case = self.clone();
                case.remove_link(place);
                all.push(case);
            }
            for plain in [
                Link { changes: Changes::Never, ..self.links[place] },
                Link { errors: 0, ..self.links[place] },
                Link { lost_acks: 0, ..self.links[place] },
                Link { has_law: true, ..self.links[place] },
            ] {
                let mut case = self.clone();
                case.links[place] = plain;
                all.push(case);
            }
        }
        for place in 0..self.groups.len() {
            let mut case = self.clone();
            case.groups[place].kind = Kind::Greedy;
            all.push(case);
            let mut case = self.clone();
            (case.groups[place].first, case.groups[place].last) = (0, self.links.len() - 1);
            all.push(case);
        }
        self.tidied(all)
    }

    /// Returns cases that are sound, in bounds, and other than this one.
    fn tidied(&self, mut all: Vec<Self>) -> Vec<Self> {
        all.retain(Self::is_sound);
        all.iter_mut().for_each(Self::normalise);
        all.retain(|case| case != self && case.is_sound());
        all
    }

    /// Returns simpler cases, the boldest first: parts less, fewer flows, the number that nobody wonders about, rounder numbers.
    pub(super) fn simpler(&self) -> Vec<Self> {
        let mut all = self.without_parts();
        let count = self.clone().numbers().len();
        let mut numbers = Vec::new();
        let steps: [fn(&Number<'_>) -> u64; 5] = [
            |number| number.plain,
            |number| round_below(*number.value),
            |number| round_below(*number.value / 2),
            |number| *number.value * 3 / 4,
            |number| rounded(*number.value, 1),
        ];
        for step in steps {
            for place in 0..count {
                let mut case = self.clone();
                if let Some(number) = case.numbers().get_mut(place) {
                    *number.value = step(number).clamp(number.least, number.most);
                }
                numbers.push(case);
            }
        }
        all.extend(self.tidied(numbers));
        let mut seen = BTreeSet::new();
        all.retain(|case| case.cost() < self.cost() && seen.insert(case.clone()));
        all
    }

    /// Returns how much there is to a case: links, groups, mechanisms, flows, and digits of numbers.
    pub(super) fn cost(&self) -> u64 {
        let flows: u64 =
            self.groups.iter().map(|group| 20 * u64::from(group.count.ilog2()) + group.count).sum();
        let kinds = self.groups.iter().filter(|group| group.kind != Kind::Greedy).count();
        let switches: usize = self
            .links
            .iter()
            .map(|link| {
                usize::from(link.changes != Changes::Never)
                    + usize::from(link.errors > 0)
                    + usize::from(link.lost_acks > 0)
                    + usize::from(!link.has_law)
            })
            .sum();
        let spans: usize = self.groups.iter().map(|group| group.last - group.first).sum();
        let digits: u64 = self
            .clone()
            .numbers()
            .iter()
            .map(|number| match *number.value {
                value if value == number.plain => 0,
                value if value == round_below(value) => 4,
                value if value == rounded(value, 1) => 6,
                value if value == rounded(value, 10) => 7,
                _ => 8,
            })
            .sum();
        let parts = 10 * self.links.len() + 6 * self.groups.len() + 5 * (kinds + switches) + spans;
        1000 * parts as u64 + 10 * flows + 100 * digits
    }

    /// Returns the mechanisms that the case has.
    pub(super) fn causes(&self) -> BTreeSet<Cause> {
        let mut causes = BTreeSet::new();
        for link in &self.links {
            causes.extend(match link.changes {
                Changes::Never => None,
                Changes::Stalls { .. } => Some(Cause::Stalls),
                Changes::Cellular => Some(Cause::Cellular),
                Changes::Slower { .. } => Some(Cause::Slower),
            });
            causes.extend((link.errors > 0).then_some(Cause::Errors));
            causes.extend((link.lost_acks > 0).then_some(Cause::LostAcks));
            causes.extend((!link.has_law).then_some(Cause::WithoutLaw));
        }
        causes.extend((self.links.len() > 1).then_some(Cause::SeveralLinks));
        for group in &self.groups {
            causes.extend(match group.kind {
                Kind::Greedy => None,
                Kind::Bursts { .. } => Some(Cause::Bursts),
                Kind::Liar { is_small: true, .. } => Some(Cause::HostileHeaders),
                Kind::Liar { .. } => Some(Cause::Liars),
                Kind::Datagrams { .. } => Some(Cause::Datagrams),
            });
        }
        causes.extend(
            (self.groups.iter().map(|group| group.count).sum::<u64>() >= 40).then_some(Cause::ManyFlows),
        );
        let round_trips =
            || self.groups.iter().filter(|group| group.takes_a_share()).map(|group| self.round_trip(group));
        let (least, most) = (round_trips().min().unwrap_or(0), round_trips().max().unwrap_or(0));
        causes.extend((most >= 8 * least).then_some(Cause::MixedRoundTrips));
        causes
    }

    /// Returns the round trip of a group's empty path, microseconds.
    pub(super) fn round_trip(&self, group: &Group) -> u64 {
        let path = &self.links[group.first..=group.last];
        2 * (group.access + path.iter().map(|link| link.delay).sum::<u64>())
    }

    /// Returns the simulated time before what is measured begins, s. It is half of the case.
    fn warmup_s(&self) -> u64 {
        let longest = self.groups.iter().map(|group| self.round_trip(group)).max().unwrap_or(0);
        (WARMUP_ROUND_TRIPS * longest).div_ceil(1_000_000).max(WARMUP_S)
    }

    /// Returns the number of flows, and that of links.
    pub(super) fn sizes(&self) -> (u64, usize) {
        (self.groups.iter().map(|group| group.count).sum(), self.links.len())
    }

    /// Returns the mean rate of the datagrams of a group, all flows together, bit/s.
    pub(super) fn datagrams(&self, group: &Group) -> f64 {
        match group.kind {
            Kind::Datagrams { on_off: 0, .. } => 1e3 * self.on_rate(group) as f64,
            Kind::Datagrams { .. } => 500.0 * self.on_rate(group) as f64,
            _ => 0.0,
        }
    }

    /// Returns the rate of datagrams while they are on, kbit/s.
    fn on_rate(&self, group: &Group) -> u64 {
        let Kind::Datagrams { percent, .. } = group.kind else { return 0 };
        let slowest = self.links[group.first..=group.last].iter().map(|link| match link.changes {
            // The synthetic trace's mean is twice that; what a stall leaves is less than the rate.
            Changes::Cellular => link.rate.min(5000),
            Changes::Stalls { period, stall } => link.rate * (period - stall) / period,
            Changes::Slower { percent } => link.rate * percent / 100,
            Changes::Never => link.rate,
        });
        (slowest.min().unwrap_or(0) * percent / 100).max(1)
    }

    /// Returns the name of a link in the scenario.
    pub(super) fn link_name(place: usize) -> String {
        format!("hop-{}", place + 1)
    }

    /// Returns the name of a group in the scenario.
    pub(super) fn group_name(&self, place: usize) -> String {
        let kind = match self.groups[place].kind {
            Kind::Greedy => "flows",
            Kind::Bursts { .. } => "bursts",
            Kind::Liar { is_small: true, .. } => "hostile",
            Kind::Liar { .. } => "liars",
            Kind::Datagrams { .. } => "datagrams",
        };
        format!("{kind}-{}", place + 1)
    }

    /// Returns the case as a scenario.
    pub(super) fn text(&self, law: &Spoken, seed: u64) -> String {
        let warmup = self.warmup_s();
        let duration = 2 * warmup;
        let mut text =
            format!("[run]\nduration = \"{duration} s\"\nwarmup = \"{warmup} s\"\nseed = {seed}\n");
        for (place, link) in self.links.iter().enumerate() {
            let _ = writeln!(text, "\n[links.{}]", Self::link_name(place));
            let rate = match link.changes {
                Changes::Never => format!("\"{}\"", rate(link.rate)),
                Changes::Stalls { .. } | Changes::Cellular => {
                    format!("{{ trace = \"{}\" }}", trace_name(link).unwrap_or_default())
                }
                Changes::Slower { percent } => {
                    let at = (warmup + duration) / 2;
                    let lower = rate(link.rate * percent / 100);
                    format!("{{ steps = [[\"0 s\", \"{}\"], [\"{at} s\", \"{lower}\"]] }}", rate(link.rate))
                }
            };
            let _ = writeln!(text, "rate = {rate}\ndelay = \"{}\"", span(link.delay));
            let _ = writeln!(text, "queue = \"{} packets\"", link.queue);
            if link.has_law {
                if law.link != "\"none\"" {
                    let _ = writeln!(text, "law = {}", law.link);
                }
                if let Some(discipline) = &law.discipline {
                    let _ = writeln!(text, "discipline = {discipline}");
                }
            }
            if link.errors > 0 {
                let _ = writeln!(text, "error = {{ packet_error_rate = {} }}", link.errors as f64 / 1e4);
            }
            if link.lost_acks > 0 {
                let _ = writeln!(text, "reverse = {{ ack_loss = {} }}", link.lost_acks as f64 / 1e2);
            }
        }
        for (place, group) in self.groups.iter().enumerate() {
            let _ = writeln!(text, "\n[flows.{}]", self.group_name(place));
            let law = match group.kind {
                Kind::Greedy | Kind::Bursts { .. } => law.of_flow(None),
                Kind::Liar { price, .. } => law.of_flow(Some(price)),
                Kind::Datagrams { on_off, .. } => {
                    let each = rate((self.on_rate(group) / group.count).max(1));
                    match on_off {
                        0 => format!("{{ cbr = {{ rate = \"{each}\" }} }}"),
                        ms => format!(
                            "{{ onoff = {{ rate = \"{each}\", on = \"{ms} ms\", off = \"{ms} ms\" }} }}"
                        ),
                    }
                }
            };
            let _ = writeln!(text, "law = {law}");
            if group.count > 1 {
                let _ = writeln!(text, "count = {}", group.count);
            }
            let path: Vec<String> =
                (group.first..=group.last).map(|place| format!("\"{}\"", Self::link_name(place))).collect();
            let _ = writeln!(text, "path = [{}]", path.join(", "));
            if group.access > 0 {
                let _ =
                    writeln!(text, "access = {{ rate = \"1 Gbit/s\", delay = \"{}\" }}", span(group.access));
            }
            match (group.start, group.every) {
                (0, 0) => {}
                (ms, 0) => {
                    let _ = writeln!(text, "start = \"{ms} ms\"");
                }
                (0, every) => {
                    let _ = writeln!(text, "start = {{ every = \"{every} ms\" }}");
                }
                (from, every) => {
                    let _ = writeln!(text, "start = {{ every = \"{every} ms\", from = \"{from} ms\" }}");
                }
            }
            match group.kind {
                Kind::Bursts { size, pause } => {
                    let _ = writeln!(
                        text,
                        "app = {{ bursts = {{ size = \"{size} kB\", pause = \"{pause} ms\" }} }}"
                    );
                }
                Kind::Liar { is_small: true, .. } => {
                    text.push_str("segment = \"100 B\"\nawnd = \"1 packets\"\n");
                }
                _ => {}
            }
        }
        text
    }

    /// Returns the traces that the scenario names, by name.
    pub(super) fn traces(&self) -> BTreeMap<String, Vec<u8>> {
        self.links.iter().filter_map(|link| Some((trace_name(link)?, trace(link)))).collect()
    }
}

fn pick<'a, T>(stream: &mut Stream, all: &'a [T]) -> Option<&'a T> {
    all.get(stream.below(all.len() as u64) as usize)
}

/// A rate of so many kbit/s in the largest unit that needs no point.
fn rate(kilobits: u64) -> String {
    match kilobits % 1000 {
        0 => format!("{} Mbit/s", kilobits / 1000),
        _ => format!("{kilobits} kbit/s"),
    }
}

/// A span of so many microseconds in the largest unit that needs no point.
fn span(microseconds: u64) -> String {
    match microseconds % 1000 {
        0 => format!("{} ms", microseconds / 1000),
        _ => format!("{microseconds} us"),
    }
}

fn trace_name(link: &Link) -> Option<String> {
    match link.changes {
        Changes::Stalls { period, stall } => {
            Some(format!("stalls-{stall}-of-{period}-ms-{}-kbps.down", link.rate))
        }
        Changes::Cellular => Some(CELLULAR.0.into()),
        Changes::Never | Changes::Slower { .. } => None,
    }
}

/// Opportunities for 1500 B, in milliseconds; the last one, at the end of the period, is also there where the link stalls.
fn trace(link: &Link) -> Vec<u8> {
    let Changes::Stalls { period, stall } = link.changes else { return CELLULAR.1.to_vec() };
    let mut text = String::new();
    for number in 1_u64.. {
        let at = (number * 12_000).div_ceil(link.rate);
        if at > period - stall {
            break;
        }
        let _ = writeln!(text, "{at}");
    }
    let _ = writeln!(text, "{period}");
    text.into_bytes()
}

//! Laws from outside with their types erased: each call of a law goes through a table, and each configuration is found by its type.
//! The list imports this file, so this file imports nothing of the list.

use crate::law::settings::{Field, Finding, Settings};
use crate::law::words::{self, LinkWords, Reaction, Rule, SenderWords};
use crate::law::{
    Ack, Ask, Delivery, EchoLaw, Header, Heard, LinkLaw, Needs, Numbers, On, OptionBytes, Packet, Pool,
    Receiving, Remembers, Reply, Segment, Send, SenderLaw, Series, Steered, Tag, Threshold, Turn, Words,
};
use crate::units::{Bytes, Duration, Rate, Time};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::{Any, type_name};
use core::fmt::{self, Debug};
use core::marker;

/// Columns of a report that are kept: it is copied with each event.
pub(super) const SERIES_MAX: usize = 8;

/// The most bytes of an option: beside them stand timestamps; on a SYN, what else a SYN says.
const OPTION_MAX: u8 = 28;
const OPTION_OF_SYN_MAX: u8 = 16;

/// True if a packet has room for a TCP option of these bytes, of which the second says how many they are.
pub fn fits(option: &OptionBytes, needs: &Needs) -> bool {
    let most = if needs.handshake { OPTION_OF_SYN_MAX } else { OPTION_MAX };
    (4..=most).contains(&option[1]) && option[1].is_multiple_of(4)
}

/// A value of a type that only its law knows.
trait Value: Any + Debug + marker::Send + Sync {
    fn copy(&self) -> Box<dyn Value>;
    fn is_same(&self, other: &dyn Any) -> bool;
    fn any(&self) -> &dyn Any;
    fn any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Any + Debug + Clone + PartialEq + marker::Send + Sync> Value for T {
    fn copy(&self) -> Box<dyn Value> {
        Box::new(self.clone())
    }

    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }

    fn any(&self) -> &dyn Any {
        self
    }

    fn any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The argument of [`Settings::each`] where the law is not known.
type Tell<'a> = &'a mut dyn FnMut(&'static str, &'static str, Field<'_>);

/// A packet behind a table; nobody can change what a shared reference shows.
struct Seen<'a>(&'a dyn Packet);

impl Packet for Seen<'_> {
    fn size(&self) -> Bytes {
        self.0.size()
    }

    fn ecn(&self) -> u8 {
        self.0.ecn()
    }

    fn set_ecn(&mut self, _code: u8) {}

    fn words(&self, tag: Tag) -> Option<&Words> {
        self.0.words(tag)
    }

    fn words_mut(&mut self, _tag: Tag) -> Option<&mut Words> {
        None
    }

    fn add(&mut self, _tag: Tag) -> Option<&mut Words> {
        None
    }

    fn memory(&mut self, _flow: [u32; 3], _now: Time, _is_new: bool) -> Option<&mut [u32]> {
        None
    }
}

/// A packet behind a table.
struct Held<'a>(&'a mut dyn Packet);

impl Packet for Held<'_> {
    fn size(&self) -> Bytes {
        self.0.size()
    }

    fn ecn(&self) -> u8 {
        self.0.ecn()
    }

    fn set_ecn(&mut self, code: u8) {
        self.0.set_ecn(code);
    }

    fn words(&self, tag: Tag) -> Option<&Words> {
        self.0.words(tag)
    }

    fn words_mut(&mut self, tag: Tag) -> Option<&mut Words> {
        self.0.words_mut(tag)
    }

    fn add(&mut self, tag: Tag) -> Option<&mut Words> {
        self.0.add(tag)
    }

    fn memory(&mut self, flow: [u32; 3], now: Time, is_new: bool) -> Option<&mut [u32]> {
        self.0.memory(flow, now, is_new)
    }

    fn set_header<H: Header>(&mut self, header: H) {
        if let Some(words) = self.words_mut(H::TAG) {
            write(header, words);
        }
    }

    fn add_header<H: Header>(&mut self, header: H) {
        if let Some(words) = self.add(H::TAG) {
            write(header, words);
        }
    }
}

/// Writes a header. Where overflow is found, it is found as well that the header is read as another: the next hop would see
/// what nobody said.
fn write<H: Header>(header: H, words: &mut Words) {
    header.write(words);
    debug_assert!(
        H::read(words) == header,
        "the header {} is read as another than was written, from the words {words:x?}",
        type_name::<H>()
    );
}

/// [`Receiving`], as a table.
trait Around {
    fn mss(&self) -> Bytes;
    fn awnd(&self) -> Bytes;
    fn numbers(&self) -> Option<Numbers>;
    fn acknowledgment(&self) -> Option<Segment>;
}

impl<R: Receiving> Around for R {
    fn mss(&self) -> Bytes {
        Receiving::mss(self)
    }

    fn awnd(&self) -> Bytes {
        Receiving::awnd(self)
    }

    fn numbers(&self) -> Option<Numbers> {
        Receiving::numbers(self)
    }

    fn acknowledgment(&self) -> Option<Segment> {
        Receiving::acknowledgment(self)
    }
}

/// A receiver behind a table.
#[derive(Clone, Copy)]
struct At<'a>(&'a dyn Around);

impl Receiving for At<'_> {
    fn mss(&self) -> Bytes {
        self.0.mss()
    }

    fn awnd(&self) -> Bytes {
        self.0.awnd()
    }

    fn numbers(&self) -> Option<Numbers> {
        self.0.numbers()
    }

    fn acknowledgment(&self) -> Option<Segment> {
        self.0.acknowledgment()
    }
}

/// A configuration of a law that is not known.
trait Configuration: Value {
    fn copy(&self) -> Box<dyn Configuration>;
    fn each(&mut self, tell: Tell<'_>);
    fn settle(&mut self, is_written: &dyn Fn(&str) -> bool);
    fn set_round_trip(&mut self, longest: Duration, is_written: &dyn Fn(&str) -> bool);
    fn check(&self, tell: &mut dyn FnMut(Finding));
}

impl<T: Value + Settings + Clone> Configuration for T {
    fn copy(&self) -> Box<dyn Configuration> {
        Box::new(self.clone())
    }

    fn each(&mut self, tell: Tell<'_>) {
        Settings::each(self, &mut |key, about, field| tell(key, about, field));
    }

    fn settle(&mut self, is_written: &dyn Fn(&str) -> bool) {
        Settings::settle(self, is_written);
    }

    fn set_round_trip(&mut self, longest: Duration, is_written: &dyn Fn(&str) -> bool) {
        Settings::set_round_trip(self, longest, is_written);
    }

    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        Settings::check(self, tell);
    }
}

/// Names the law of a configuration, of which several may have the same.
struct Of<L>(marker::PhantomData<fn() -> L>);

/// Configuration of a law from outside, and the functions of that law: [`LinkKind`] or [`SenderKind`].
struct Outside<K: ?Sized + 'static> {
    config: Box<dyn Configuration>,
    kind: &'static K,
}

impl<K: ?Sized> Outside<K> {
    fn any(&self) -> &dyn Any {
        (*self.config).any()
    }
}

impl<K: ?Sized> Debug for Outside<K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Outside").field(&self.config).finish()
    }
}

impl<K: ?Sized> Clone for Outside<K> {
    fn clone(&self) -> Self {
        Self { config: Configuration::copy(&*self.config), kind: self.kind }
    }
}

impl<K: ?Sized> PartialEq for Outside<K> {
    fn eq(&self, other: &Self) -> bool {
        (*self.config).is_same(other.any())
    }
}

impl<K: ?Sized> Eq for Outside<K> {}

// Links.

/// The functions of a link law that need no state.
trait LinkKind: marker::Send + Sync {
    fn path(&self) -> &'static str;
    fn is_steered(&self) -> bool;
    fn name(&self, config: &dyn Any) -> &'static str;
    fn signal(&self, config: &dyn Any) -> &'static str;
    fn misread_ecn(&self, config: &dyn Any) -> Option<&'static str>;
    fn start(&self, config: &dyn Any, phase: Duration, second_phase: Duration) -> Option<Box<dyn LinkState>>;
    fn first_interval(&self, config: &dyn Any) -> Duration;
    fn shortest_interval(&self, config: &dyn Any, round_trip: Duration) -> Duration;
    fn capacity(&self, config: &dyn Any) -> Rate;
    fn configure_capacity(&self, config: &mut dyn Any, capacity: Rate);
    fn configure_untimed(&self, config: &mut dyn Any);
    fn remembers(&self, config: &dyn Any) -> Option<Remembers>;
    fn watches(&self, config: &dyn Any) -> Option<Duration>;
    fn explain_other(&self, config: &dyn Any) -> Option<Rule>;
    fn explain(&self, config: &dyn Any, view: &dyn Any, packets: [&dyn Packet; 2], rules: &mut Vec<Rule>);
}

/// A link law at work.
trait LinkState: Debug + marker::Send + Sync {
    fn copy(&self) -> Box<dyn LinkState>;
    fn set_capacity(&mut self, capacity: Rate);
    fn on_arrival(&mut self, now: Time, packet: &dyn Packet);
    fn on_departure(&mut self, now: Time, packet: &mut dyn Packet, backlog: Bytes);
    fn only_lowers(&self, came: &dyn Packet, left: &dyn Packet) -> bool;
    fn pool(&self, packet: &dyn Packet) -> Option<Pool>;
    fn next_deadline(&self) -> Time;
    fn on_deadline(&mut self, now: Time, backlog: Bytes);
    fn report(&self) -> Report;
    fn view(&self, packet: &dyn Packet) -> Option<Arc<dyn Value>>;
}

impl<L> LinkKind for Of<L>
where
    L: LinkWords + Clone + Debug + marker::Send + Sync + 'static,
    L::View: marker::Send + Sync,
{
    fn path(&self) -> &'static str {
        type_name::<L>()
    }

    fn is_steered(&self) -> bool {
        L::IS_STEERED
    }

    fn name(&self, config: &dyn Any) -> &'static str {
        config.downcast_ref().map_or("", L::name)
    }

    fn signal(&self, config: &dyn Any) -> &'static str {
        config.downcast_ref().map_or("", L::signal)
    }

    fn misread_ecn(&self, config: &dyn Any) -> Option<&'static str> {
        config.downcast_ref().and_then(L::misread_ecn)
    }

    fn start(&self, config: &dyn Any, phase: Duration, second_phase: Duration) -> Option<Box<dyn LinkState>> {
        Some(Box::new(L::start(config.downcast_ref()?, phase, second_phase)))
    }

    fn first_interval(&self, config: &dyn Any) -> Duration {
        config.downcast_ref().map_or(Duration(1), L::first_interval)
    }

    fn shortest_interval(&self, config: &dyn Any, round_trip: Duration) -> Duration {
        config.downcast_ref().map_or(Duration(1), |config| L::shortest_interval(config, round_trip))
    }

    fn capacity(&self, config: &dyn Any) -> Rate {
        config.downcast_ref().map_or(Rate(0), L::capacity)
    }

    fn configure_capacity(&self, config: &mut dyn Any, capacity: Rate) {
        if let Some(config) = config.downcast_mut() {
            L::configure_capacity(config, capacity);
        }
    }

    fn configure_untimed(&self, config: &mut dyn Any) {
        if let Some(config) = config.downcast_mut() {
            L::configure_untimed(config);
        }
    }

    fn remembers(&self, config: &dyn Any) -> Option<Remembers> {
        config.downcast_ref().and_then(L::remembers)
    }

    fn watches(&self, config: &dyn Any) -> Option<Duration> {
        config.downcast_ref().and_then(L::watches)
    }

    fn explain_other(&self, config: &dyn Any) -> Option<Rule> {
        config.downcast_ref().map(L::explain_other)
    }

    fn explain(&self, config: &dyn Any, view: &dyn Any, packets: [&dyn Packet; 2], rules: &mut Vec<Rule>) {
        if let (Some(config), Some(view)) = (config.downcast_ref(), view.downcast_ref()) {
            L::explain(config, view, packets, rules);
        }
    }
}

impl<L> LinkState for L
where
    L: LinkLaw + Clone + Debug + marker::Send + Sync + 'static,
    L::View: marker::Send + Sync,
{
    fn copy(&self) -> Box<dyn LinkState> {
        Box::new(self.clone())
    }

    fn set_capacity(&mut self, capacity: Rate) {
        LinkLaw::set_capacity(self, capacity);
    }

    fn on_arrival(&mut self, now: Time, packet: &dyn Packet) {
        LinkLaw::on_arrival(self, now, &Seen(packet));
    }

    fn on_departure(&mut self, now: Time, packet: &mut dyn Packet, backlog: Bytes) {
        LinkLaw::on_departure(self, now, &mut Held(packet), backlog);
    }

    fn only_lowers(&self, came: &dyn Packet, left: &dyn Packet) -> bool {
        LinkLaw::only_lowers(self, &Seen(came), &Seen(left))
    }

    fn pool(&self, packet: &dyn Packet) -> Option<Pool> {
        LinkLaw::pool(self, &Seen(packet))
    }

    fn next_deadline(&self) -> Time {
        LinkLaw::next_deadline(self)
    }

    fn on_deadline(&mut self, now: Time, backlog: Bytes) {
        LinkLaw::on_deadline(self, now, backlog);
    }

    fn report(&self) -> Report {
        Report::of(&LinkLaw::report(self))
    }

    fn view(&self, packet: &dyn Packet) -> Option<Arc<dyn Value>> {
        LinkLaw::view(self, &Seen(packet)).map(|view| Arc::new(view) as _)
    }
}

/// Configuration of a link law from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig(Outside<dyn LinkKind>);

impl LinkConfig {
    /// Hides the types of a law.
    pub(super) fn of<L>(config: L::Config) -> Self
    where
        L: LinkWords + Clone + Debug + marker::Send + Sync + 'static,
        L::Config: Clone + Debug + PartialEq + marker::Send + Sync + 'static,
        L::View: marker::Send + Sync,
    {
        let kind: &'static Of<L> = const { &Of(marker::PhantomData) };
        Self(Outside { config: Box::new(config), kind })
    }

    /// Returns the path of the law's type.
    pub(super) fn path(&self) -> &'static str {
        self.0.kind.path()
    }

    /// Returns true if the law can be timed and told what is spare.
    pub(super) fn is_steered(&self) -> bool {
        self.0.kind.is_steered()
    }
}

impl Settings for LinkConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        self.0.config.each(tell);
    }

    fn settle(&mut self, is_written: &dyn Fn(&str) -> bool) {
        self.0.config.settle(is_written);
    }

    fn set_round_trip(&mut self, longest: Duration, is_written: &dyn Fn(&str) -> bool) {
        self.0.config.set_round_trip(longest, is_written);
    }

    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        self.0.config.check(tell);
    }
}

/// A link law from outside at work.
#[derive(Debug)]
pub struct Link(Option<Box<dyn LinkState>>);

impl Clone for Link {
    fn clone(&self) -> Self {
        Self(self.0.as_ref().map(|law| (**law).copy()))
    }
}

/// Report of a link law from outside: as many of its columns as are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    intervals: u64,
    decision: i64,
    bounded: Option<u64>,
    series: [(&'static str, i64); SERIES_MAX],
    /// Denominators of the series, apart because they are half as long.
    units: [u32; SERIES_MAX],
}

impl Report {
    const NONE: Self = Self {
        intervals: 0,
        decision: 0,
        bounded: None,
        series: [("", 0); SERIES_MAX],
        units: [1; SERIES_MAX],
    };

    fn of(report: &impl Series) -> Self {
        let (intervals, decision) = (report.intervals(), report.decision());
        let mut kept = Self { intervals, decision, bounded: report.bounded_packets(), ..Self::NONE };
        let mut places = kept.series.iter_mut().zip(&mut kept.units);
        report.each(&mut |name, value, unit| {
            if let Some((place, denominator)) = places.next() {
                (*place, *denominator) = ((name, value), unit);
            }
        });
        kept
    }
}

impl Series for Report {
    fn intervals(&self) -> u64 {
        self.intervals
    }

    fn decision(&self) -> i64 {
        self.decision
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        let columns = self.series.iter().zip(self.units);
        for (&(name, value), unit) in columns.take_while(|((name, _), _)| !name.is_empty()) {
            tell(name, value, unit);
        }
    }

    fn bounded_packets(&self) -> Option<u64> {
        self.bounded
    }
}

/// View of a link law from outside, for the law's own words; for laws that have none, the [`Report`].
#[derive(Clone, Debug)]
pub struct View(Arc<dyn Value>);

impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        (*self.0).is_same((*other.0).any())
    }
}

impl Eq for View {}

impl Steered for Link {}

impl LinkLaw for Link {
    type Config = LinkConfig;
    type Report = Report;
    type View = View;

    fn name(config: &LinkConfig) -> &'static str {
        config.0.kind.name(config.0.any())
    }

    fn signal(config: &LinkConfig) -> &'static str {
        config.0.kind.signal(config.0.any())
    }

    fn start(config: &LinkConfig, phase: Duration, second_phase: Duration) -> Self {
        Self(config.0.kind.start(config.0.any(), phase, second_phase))
    }

    fn first_interval(config: &LinkConfig) -> Duration {
        config.0.kind.first_interval(config.0.any())
    }

    fn shortest_interval(config: &LinkConfig, round_trip: Duration) -> Duration {
        config.0.kind.shortest_interval(config.0.any(), round_trip)
    }

    fn capacity(config: &LinkConfig) -> Rate {
        config.0.kind.capacity(config.0.any())
    }

    fn configure_capacity(config: &mut LinkConfig, capacity: Rate) {
        config.0.kind.configure_capacity((*config.0.config).any_mut(), capacity);
    }

    fn configure_untimed(config: &mut LinkConfig) {
        config.0.kind.configure_untimed((*config.0.config).any_mut());
    }

    #[cold]
    #[inline(never)]
    fn set_capacity(&mut self, capacity: Rate) {
        if let Some(law) = &mut self.0 {
            law.set_capacity(capacity);
        }
    }

    #[cold]
    #[inline(never)]
    fn on_arrival(&mut self, now: Time, packet: &impl Packet) {
        if let Some(law) = &mut self.0 {
            law.on_arrival(now, packet);
        }
    }

    #[cold]
    #[inline(never)]
    fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes) {
        if let Some(law) = &mut self.0 {
            law.on_departure(now, packet, backlog);
        }
    }

    fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool {
        self.0.as_ref().is_none_or(|law| law.only_lowers(came, left))
    }

    fn pool(&self, packet: &impl Packet) -> Option<Pool> {
        self.0.as_ref()?.pool(packet)
    }

    #[cold]
    #[inline(never)]
    fn next_deadline(&self) -> Time {
        self.0.as_ref().map_or(Time::NEVER, |law| law.next_deadline())
    }

    #[cold]
    #[inline(never)]
    fn on_deadline(&mut self, now: Time, backlog: Bytes) {
        if let Some(law) = &mut self.0 {
            law.on_deadline(now, backlog);
        }
    }

    #[cold]
    #[inline(never)]
    fn report(&self) -> Report {
        self.0.as_ref().map_or(Report::NONE, |law| law.report())
    }

    fn view(&self, packet: &impl Packet) -> Option<View> {
        let own = self.0.as_ref().and_then(|law| law.view(packet));
        Some(View(own.unwrap_or_else(|| Arc::new(LinkLaw::report(self)))))
    }

    fn remembers(config: &LinkConfig) -> Option<Remembers> {
        config.0.kind.remembers(config.0.any())
    }

    fn watches(config: &LinkConfig) -> Option<Duration> {
        config.0.kind.watches(config.0.any())
    }
}

impl LinkWords for Link {
    fn explain(config: &LinkConfig, view: &View, packets: [&dyn Packet; 2], rules: &mut Vec<Rule>) {
        let view = (*view.0).any();
        match view.downcast_ref::<Report>() {
            Some(report) => words::by_report(report, rules),
            None => config.0.kind.explain(config.0.any(), view, packets, rules),
        }
    }

    fn misread_ecn(config: &LinkConfig) -> Option<&'static str> {
        config.0.kind.misread_ecn(config.0.any())
    }

    fn explain_other(config: &LinkConfig) -> Rule {
        config.0.kind.explain_other(config.0.any()).unwrap_or_else(|| Rule::new("", ""))
    }
}

// Senders and receivers.

/// The functions of a sender law that need no state.
trait SenderKind: marker::Send + Sync {
    fn path(&self) -> &'static str;
    fn name(&self, config: &dyn Any) -> &'static str;
    fn needs(&self, config: &dyn Any) -> Needs;
    fn misreads(&self, config: &dyn Any, link: &dyn Any) -> Option<String>;
    fn option(&self, config: &dyn Any, on: On<'_>) -> Option<OptionBytes>;
    fn start(&self, config: &dyn Any, mss: Bytes, initial_window: Bytes) -> Option<Box<dyn SenderState>>;
    fn echo(&self, config: &dyn Any, mss: Bytes) -> Option<Box<dyn Value>>;
    fn on_data(
        &self,
        config: &dyn Any,
        echo: &mut dyn Any,
        packet: &dyn Packet,
        receiver: &dyn Around,
    ) -> Heard;
    fn on_receiver_ack(&self, config: &dyn Any, echo: &mut dyn Any, receiver: &dyn Around) -> Reply;
    fn explain_packet(&self, config: &dyn Any, packet: &dyn Packet, rules: &mut Vec<Rule>);
}

/// A sender law at work.
trait SenderState: Debug + marker::Send + Sync {
    fn copy(&self) -> Box<dyn SenderState>;
    fn any(&self) -> &dyn Any;
    fn explain(&self, config: &dyn Any, before: &dyn Any, seen: &Reaction, rules: &mut Vec<Rule>);
    fn seed(&mut self, seed: u64);
    fn on_ack(&mut self, config: &dyn Any, now: Time, ack: &Ack);
    fn on_delivery(&mut self, config: &dyn Any, now: Time, delivery: &Delivery) -> bool;
    fn threshold(&mut self) -> Option<Threshold<'_>>;
    fn on_loss(&mut self, config: &dyn Any, now: Time, flight: Bytes);
    fn on_mark(&mut self, config: &dyn Any, now: Time, flight: Bytes);
    fn on_timeout(&mut self, config: &dyn Any, now: Time, flight: Bytes, is_first: bool);
    fn on_restart(&mut self, config: &dyn Any, now: Time, initial_window: Bytes);
    fn on_send(&mut self, config: &dyn Any, now: Time, send: &Send, packet: &mut dyn Packet);
    fn probe(&mut self, config: &dyn Any, now: Time, ask: &Ask) -> Turn;
    fn on_probe_ack(&mut self, config: &dyn Any, awnd: Bytes);
    fn window(&self) -> Bytes;
    fn cuts(&self) -> u32;
    fn pacing_rate(&self, config: &dyn Any, srtt: Duration) -> Option<Rate>;
    fn each(&self, tell: &mut dyn FnMut(&'static str, i64, u32));
}

impl<L> SenderKind for Of<L>
where
    L: SenderWords + Clone + Debug + marker::Send + Sync,
    L::Echo: Clone + Debug + PartialEq + marker::Send + Sync + 'static,
{
    fn path(&self) -> &'static str {
        type_name::<L>()
    }

    fn name(&self, config: &dyn Any) -> &'static str {
        config.downcast_ref().map_or("", L::name)
    }

    fn needs(&self, config: &dyn Any) -> Needs {
        config.downcast_ref().map_or(Needs::NONE, L::needs)
    }

    fn misreads(&self, config: &dyn Any, link: &dyn Any) -> Option<String> {
        config.downcast_ref().and_then(|config| L::misreads(config, link))
    }

    fn option(&self, config: &dyn Any, on: On<'_>) -> Option<OptionBytes> {
        let config = config.downcast_ref()?;
        L::option(config, on).filter(|bytes| fits(bytes, &L::needs(config)))
    }

    fn start(&self, config: &dyn Any, mss: Bytes, initial_window: Bytes) -> Option<Box<dyn SenderState>> {
        Some(Box::new(L::start(config.downcast_ref()?, mss, initial_window)))
    }

    fn echo(&self, config: &dyn Any, mss: Bytes) -> Option<Box<dyn Value>> {
        Some(Box::new(<L::Echo as EchoLaw<L::Config>>::start(config.downcast_ref()?, mss)))
    }

    fn on_data(
        &self,
        config: &dyn Any,
        echo: &mut dyn Any,
        packet: &dyn Packet,
        receiver: &dyn Around,
    ) -> Heard {
        match (config.downcast_ref::<L::Config>(), echo.downcast_mut::<L::Echo>()) {
            (Some(config), Some(echo)) => echo.on_data(config, &Seen(packet), At(receiver)),
            _ => Heard::Taken,
        }
    }

    fn on_receiver_ack(&self, config: &dyn Any, echo: &mut dyn Any, receiver: &dyn Around) -> Reply {
        match (config.downcast_ref::<L::Config>(), echo.downcast_mut::<L::Echo>()) {
            (Some(config), Some(echo)) => echo.on_ack(config, At(receiver)),
            _ => Reply::default(),
        }
    }

    fn explain_packet(&self, config: &dyn Any, packet: &dyn Packet, rules: &mut Vec<Rule>) {
        if let Some(config) = config.downcast_ref() {
            L::explain_packet(config, packet, rules);
        }
    }
}

impl<L> SenderState for L
where
    L: SenderWords + Clone + Debug + marker::Send + Sync,
{
    fn copy(&self) -> Box<dyn SenderState> {
        Box::new(self.clone())
    }

    fn any(&self) -> &dyn Any {
        self
    }

    fn explain(&self, config: &dyn Any, before: &dyn Any, seen: &Reaction, rules: &mut Vec<Rule>) {
        if let (Some(config), Some(before)) = (config.downcast_ref(), before.downcast_ref()) {
            L::explain(config, [before, self], seen, rules);
        }
    }

    fn seed(&mut self, seed: u64) {
        SenderLaw::seed(self, seed);
    }

    fn on_ack(&mut self, config: &dyn Any, now: Time, ack: &Ack) {
        if let Some(config) = config.downcast_ref() {
            SenderLaw::on_ack(self, config, now, ack);
        }
    }

    fn on_delivery(&mut self, config: &dyn Any, now: Time, delivery: &Delivery) -> bool {
        config.downcast_ref().is_some_and(|config| SenderLaw::on_delivery(self, config, now, delivery))
    }

    fn threshold(&mut self) -> Option<Threshold<'_>> {
        SenderLaw::threshold(self)
    }

    fn on_loss(&mut self, config: &dyn Any, now: Time, flight: Bytes) {
        if let Some(config) = config.downcast_ref() {
            SenderLaw::on_loss(self, config, now, flight);
        }
    }

    fn on_mark(&mut self, config: &dyn Any, now: Time, flight: Bytes) {
        if let Some(config) = config.downcast_ref() {
            SenderLaw::on_mark(self, config, now, flight);
        }
    }

    fn on_timeout(&mut self, config: &dyn Any, now: Time, flight: Bytes, is_first: bool) {
        if let Some(config) = config.downcast_ref() {
            SenderLaw::on_timeout(self, config, now, flight, is_first);
        }
    }

    fn on_restart(&mut self, config: &dyn Any, now: Time, initial_window: Bytes) {
        if let Some(config) = config.downcast_ref() {
            SenderLaw::on_restart(self, config, now, initial_window);
        }
    }

    fn on_send(&mut self, config: &dyn Any, now: Time, send: &Send, packet: &mut dyn Packet) {
        if let Some(config) = config.downcast_ref() {
            SenderLaw::on_send(self, config, now, send, &mut Held(packet));
        }
    }

    fn probe(&mut self, config: &dyn Any, now: Time, ask: &Ask) -> Turn {
        config.downcast_ref().map_or_else(Turn::default, |config| SenderLaw::probe(self, config, now, ask))
    }

    fn on_probe_ack(&mut self, config: &dyn Any, awnd: Bytes) {
        if let Some(config) = config.downcast_ref() {
            SenderLaw::on_probe_ack(self, config, awnd);
        }
    }

    fn window(&self) -> Bytes {
        SenderLaw::window(self)
    }

    fn cuts(&self) -> u32 {
        SenderLaw::cuts(self)
    }

    fn pacing_rate(&self, config: &dyn Any, srtt: Duration) -> Option<Rate> {
        SenderLaw::pacing_rate(self, config.downcast_ref()?, srtt)
    }

    fn each(&self, tell: &mut dyn FnMut(&'static str, i64, u32)) {
        SenderLaw::each(self, &mut |name, value, unit| tell(name, value, unit));
    }
}

/// Configuration of a sender law from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderConfig(Outside<dyn SenderKind>);

impl SenderConfig {
    /// Hides the types of a law.
    pub(super) fn of<L>(config: L::Config) -> Self
    where
        L: SenderWords + Clone + Debug + marker::Send + Sync,
        L::Config: Clone + Debug + PartialEq + marker::Send + Sync + 'static,
        L::Echo: Clone + Debug + PartialEq + marker::Send + Sync + 'static,
    {
        let kind: &'static Of<L> = const { &Of(marker::PhantomData) };
        Self(Outside { config: Box::new(config), kind })
    }

    /// Returns the path of the law's type.
    pub(super) fn path(&self) -> &'static str {
        self.0.kind.path()
    }
}

impl Settings for SenderConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        self.0.config.each(tell);
    }

    fn settle(&mut self, is_written: &dyn Fn(&str) -> bool) {
        self.0.config.settle(is_written);
    }

    fn set_round_trip(&mut self, longest: Duration, is_written: &dyn Fn(&str) -> bool) {
        self.0.config.set_round_trip(longest, is_written);
    }

    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        self.0.config.check(tell);
    }
}

/// A sender law from outside at work.
#[derive(Debug)]
pub struct Sender(Option<Box<dyn SenderState>>);

impl Clone for Sender {
    fn clone(&self) -> Self {
        Self(self.0.as_ref().map(|law| (**law).copy()))
    }
}

/// The receiver's part of a law from outside.
#[derive(Debug)]
pub struct Echo(Option<Box<dyn Value>>);

impl Clone for Echo {
    fn clone(&self) -> Self {
        Self(self.0.as_ref().map(|echo| (**echo).copy()))
    }
}

impl PartialEq for Echo {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => (**one).is_same((**other).any()),
            (one, other) => one.is_none() == other.is_none(),
        }
    }
}

impl EchoLaw<SenderConfig> for Echo {
    fn start(config: &SenderConfig, mss: Bytes) -> Self {
        Self(config.0.kind.echo(config.0.any(), mss))
    }

    #[cold]
    #[inline(never)]
    fn on_data(&mut self, config: &SenderConfig, packet: &impl Packet, receiver: impl Receiving) -> Heard {
        match &mut self.0 {
            Some(echo) => config.0.kind.on_data(config.0.any(), (**echo).any_mut(), packet, &receiver),
            None => Heard::Taken,
        }
    }

    #[cold]
    #[inline(never)]
    fn on_ack(&mut self, config: &SenderConfig, receiver: impl Receiving) -> Reply {
        match &mut self.0 {
            Some(echo) => config.0.kind.on_receiver_ack(config.0.any(), (**echo).any_mut(), &receiver),
            None => Reply::default(),
        }
    }
}

impl SenderLaw for Sender {
    type Config = SenderConfig;
    type Echo = Echo;

    #[cold]
    #[inline(never)]
    fn name(config: &SenderConfig) -> &'static str {
        config.0.kind.name(config.0.any())
    }

    #[cold]
    #[inline(never)]
    fn needs(config: &SenderConfig) -> Needs {
        config.0.kind.needs(config.0.any())
    }

    fn option(config: &SenderConfig, on: On<'_>) -> Option<OptionBytes> {
        config.0.kind.option(config.0.any(), on)
    }

    fn start(config: &SenderConfig, mss: Bytes, initial_window: Bytes) -> Self {
        Self(config.0.kind.start(config.0.any(), mss, initial_window))
    }

    #[cold]
    #[inline(never)]
    fn seed(&mut self, seed: u64) {
        if let Some(law) = &mut self.0 {
            law.seed(seed);
        }
    }

    #[cold]
    #[inline(never)]
    fn on_delivery(&mut self, config: &SenderConfig, now: Time, delivery: &Delivery) -> bool {
        self.0.as_mut().is_some_and(|law| law.on_delivery(config.0.any(), now, delivery))
    }

    #[cold]
    #[inline(never)]
    fn on_ack(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
        if let Some(law) = &mut self.0 {
            law.on_ack(config.0.any(), now, ack);
        }
    }

    #[cold]
    #[inline(never)]
    fn threshold(&mut self) -> Option<Threshold<'_>> {
        self.0.as_mut()?.threshold()
    }

    #[cold]
    #[inline(never)]
    fn on_loss(&mut self, config: &SenderConfig, now: Time, flight: Bytes) {
        if let Some(law) = &mut self.0 {
            law.on_loss(config.0.any(), now, flight);
        }
    }

    #[cold]
    #[inline(never)]
    fn on_mark(&mut self, config: &SenderConfig, now: Time, flight: Bytes) {
        if let Some(law) = &mut self.0 {
            law.on_mark(config.0.any(), now, flight);
        }
    }

    #[cold]
    #[inline(never)]
    fn on_timeout(&mut self, config: &SenderConfig, now: Time, flight: Bytes, is_first: bool) {
        if let Some(law) = &mut self.0 {
            law.on_timeout(config.0.any(), now, flight, is_first);
        }
    }

    #[cold]
    #[inline(never)]
    fn on_restart(&mut self, config: &SenderConfig, now: Time, initial_window: Bytes) {
        if let Some(law) = &mut self.0 {
            law.on_restart(config.0.any(), now, initial_window);
        }
    }

    // The copies: what is lent to a function that is called lies in memory from then on, for all laws.
    #[inline(always)]
    fn on_send(&mut self, config: &SenderConfig, now: Time, send: &Send, packet: &mut impl Packet) {
        self.call_on_send(config, now, *send, packet);
    }

    #[cold]
    #[inline(never)]
    fn probe(&mut self, config: &SenderConfig, now: Time, ask: &Ask) -> Turn {
        self.0.as_mut().map_or_else(Turn::default, |law| law.probe(config.0.any(), now, ask))
    }

    #[cold]
    #[inline(never)]
    fn on_probe_ack(&mut self, config: &SenderConfig, awnd: Bytes) {
        if let Some(law) = &mut self.0 {
            law.on_probe_ack(config.0.any(), awnd);
        }
    }

    #[cold]
    #[inline(never)]
    fn window(&self) -> Bytes {
        self.0.as_ref().map_or(Bytes(0), |law| law.window())
    }

    #[cold]
    #[inline(never)]
    fn cuts(&self) -> u32 {
        self.0.as_ref().map_or(0, |law| law.cuts())
    }

    #[cold]
    #[inline(never)]
    fn pacing_rate(&self, config: &SenderConfig, srtt: Duration) -> Option<Rate> {
        self.0.as_ref()?.pacing_rate(config.0.any(), srtt)
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        if let Some(law) = &self.0 {
            law.each(tell);
        }
    }
}

impl SenderWords for Sender {
    fn explain_packet(config: &SenderConfig, packet: &dyn Packet, rules: &mut Vec<Rule>) {
        config.0.kind.explain_packet(config.0.any(), packet, rules);
    }

    fn explain(config: &SenderConfig, states: [&Self; 2], seen: &Reaction, rules: &mut Vec<Rule>) {
        if let [Some(before), Some(after)] = states.map(|state| state.0.as_ref()) {
            after.explain(config.0.any(), (**before).any(), seen, rules);
        }
    }

    fn misreads(config: &SenderConfig, link: &dyn Any) -> Option<String> {
        config.0.kind.misreads(config.0.any(), link)
    }
}

impl Sender {
    #[cold]
    #[inline(never)]
    fn call_on_send(&mut self, config: &SenderConfig, now: Time, send: Send, packet: &mut impl Packet) {
        if let Some(law) = &mut self.0 {
            law.on_send(config.0.any(), now, &send, packet);
        }
    }
}

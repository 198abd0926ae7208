//! The list of protocols, and the laws of all of them as one: which law it is, is asked here and nowhere else.

#[cfg(feature = "words")]
use super::settings::Finding;
use super::settings::{Field, Settings};
#[cfg(feature = "words")]
use super::words::{Chain, Followed, LinkWords, Reaction, Rule, SenderWords};
use super::{
    Ack, Ask, Delivery, EchoLaw, Heard, Hue, Lie, LinkLaw, Look, Needs, On, OptionBytes, Packet, Pool,
    Receiving, Remembers, Reply, Send, SenderLaw, Series, Shape, Steered, Told, Turn, protocol,
};
use crate::units::{Bytes, Duration, Rate, Time};
#[cfg(feature = "words")]
use alloc::{string::String, vec::Vec};
use core::any::Any;
use core::mem;
#[cfg(feature = "outside")]
use std::sync::OnceLock;

/// A state that is so large that it would make the flows of every other law larger: in a box, where there is an allocator.
#[cfg(feature = "alloc")]
type Kept<State> = alloc::boxed::Box<State>;
#[cfg(not(feature = "alloc"))]
type Kept<State> = State;

/// The type of a law's state in [`Law`]: `apart` stands in the list where it is larger than XCP's.
macro_rules! kept {
    ($law:ty) => { $law };
    ($law:ty, apart) => { Kept<$law> };
}

/// A protocol of the list: that of a law here, or one that the program has added.
pub type Protocol = protocol::Protocol<LinkConfig, SenderConfig>;

impl Protocol {
    /// No protocol, for places that are yet to be filled.
    const EMPTY: Self = Self {
        name: "",
        about: "",
        page: "",
        look: Look::new(Hue::Ink, Shape::Circle, 0),
        link_series: &[],
        flow_series: &[],
        link: None,
        sender: None,
    };

    /// Returns the protocol of that name.
    #[inline] // or it would be in each BPF object
    pub fn of(name: &str) -> Option<&'static Self> {
        Self::all().find(|protocol| protocol.name == name)
    }
}

/// Protocols that the program has added.
#[cfg(feature = "outside")]
static ADDED: OnceLock<Vec<Protocol>> = OnceLock::new();

#[cfg(feature = "outside")]
impl Protocol {
    /// Returns the protocols that the program has added: [`super::outside::add`].
    pub(super) fn added() -> &'static [Self] {
        ADDED.get().map_or(&[], Vec::as_slice)
    }

    /// Adds protocols to the list, once. Returns false, and adds none, if the program has added some before.
    pub(super) fn add(protocols: Vec<Self>) -> bool {
        ADDED.set(protocols).is_ok()
    }
}

/// The configuration of a declared protocol as the list's; without a variant there is none, as its type says.
macro_rules! configuration {
    ($config:expr) => {
        match &$config {
            Some(never) => match *never {},
            None => None,
        }
    };
    ($config:expr, $List:ident::$Variant:ident) => {
        match $config {
            Some(config) => Some($List::$Variant(config)),
            None => None,
        }
    };
}

/// The protocols that the file of a law declares, as those of the list; or `added`, where no file declares any.
macro_rules! listed {
    (; $module:ident, [$($Link:ident)?], [$($Sender:ident)?]) => {
        const {
            const COUNT: usize = super::$module::protocols().len();
            const LISTED: [Protocol; COUNT] = {
                let mut listed = [const { Protocol::EMPTY }; COUNT];
                let mut place = 0;
                while place < COUNT {
                    let declared = &super::$module::protocols()[place];
                    let protocol = Protocol {
                        name: declared.name,
                        about: declared.about,
                        page: declared.page,
                        look: declared.look,
                        link_series: declared.link_series,
                        flow_series: declared.flow_series,
                        link: configuration!(declared.link $(, LinkConfig::$Link)?),
                        sender: configuration!(declared.sender $(, SenderConfig::$Sender)?),
                    };
                    // A constant runs no destructor, and configurations of laws from outside have one.
                    mem::forget(mem::replace(&mut listed[place], protocol));
                    place += 1;
                }
                listed
            };
            &LISTED as &[Protocol]
        }
    };
    ($added:expr; $($rest:tt)*) => { $added };
}

/// Makes the types of all laws of the list, and for the methods below:
/// - `of_link!(Link, value, law => body)`: the body with the link law, or what belongs to one, whichever it is; with
///   `law: Law` the body has the law's type.
/// - `of_sender!(SenderConfig, value, config => body)`: the same for sender laws.
/// - `of_flow!(state, config, |law, config| body)`: the body with a sender law and its configuration. They belong to each
///   other, else nothing happens and the result is `Default`'s.
macro_rules! protocols {
    (types $(#[$about:meta])* ($($derive:ident),*) $name:ident:
        $($(#[$on:meta])* $Variant:ident($type:ty),)*) => {
        $(#[$about])*
        #[derive($($derive),*)]
        pub enum $name {
            $($(#[$on])*
            #[doc = concat!("That of `", stringify!($type), "`.")]
            $Variant($type),)*
        }
    };
    ($d:tt $($(#[$on:meta])* $module:ident $(($added:expr))? {
        $(link $(#[$if_link:meta])* $Link:ident($link:ty))?
        $(sender $(#[$if_sender:meta])* $Sender:ident($sender:ty) $($apart:ident)?)?
        $(with $With:ident)?
    })*) => {
        impl Protocol {
            /// Returns all protocols, in the order of the list.
            // Functions, not constants, also in the law files: those would be in each BPF object.
            pub fn all() -> impl Iterator<Item = &'static Self> {
                [$($(#[$on])* listed!($($added)?; $module, [$($Link)?], [$($Sender)? $($With)?])),*]
                    .into_iter()
                    .flatten()
            }
        }

        protocols! { types
            /// Configuration of a sender law, shared by all flows that run it.
            // A tag in the gaps of a variant would take three instructions more to read, at every packet.
            #[repr(u8)]
            (Clone, Debug, PartialEq, Eq) SenderConfig:
            $($($(#[$if_sender])* $Sender(<$sender as SenderLaw>::Config),)?)*
        }
        protocols! { types
            /// A sender law of any protocol, with its state.
            (Clone, Debug) Law: $($($(#[$if_sender])* $Sender(kept!($sender $(, $apart)?)),)?)*
        }
        protocols! { types
            /// The receiver's part of a law of any protocol, with its state.
            (Clone, Debug, PartialEq) Echo: $($($(#[$if_sender])* $Sender(<$sender as SenderLaw>::Echo),)?)*
        }
        protocols! { types
            /// Configuration of a link law, one for each output port.
            (Clone, Debug, PartialEq, Eq) LinkConfig: $($($(#[$if_link])* $Link(<$link as LinkLaw>::Config),)?)*
        }
        protocols! { types
            /// A link law at work: the state of one output port.
            #[expect(clippy::large_enum_variant, reason = "ports are few, and without an allocator nothing can be boxed")]
            #[repr(u8)]
            (Clone, Debug) Link: $($($(#[$if_link])* $Link($link),)?)*
        }
        protocols! { types
            /// Report of a link law: what the last control interval measured and decided.
            (Clone, Copy, Debug, PartialEq, Eq) LinkReport: $($($(#[$if_link])* $Link(<$link as LinkLaw>::Report),)?)*
        }
        protocols! { types
            /// View of a link law on a packet, for observers.
            (Clone, Debug, PartialEq, Eq) LinkView: $($($(#[$if_link])* $Link(<$link as LinkLaw>::View),)?)*
        }

        impl Sender {
            /// Creates the state of a new connection, with its initial window. `mss` counts the whole IP packet.
            #[inline]
            pub fn new(config: &SenderConfig, mss: Bytes, initial_window: Bytes) -> Self {
                match config {
                    $($($(#[$if_sender])* SenderConfig::$Sender(config) => {
                        let law = <$sender>::start(config, mss, initial_window);
                        Self { window: law.window(), law: Law::$Sender(law.into()) }
                    })?)*
                }
            }
        }

        impl Echo {
            /// Creates the receiver's part for a new connection. `mss` counts the whole IP packet.
            #[inline]
            pub fn new(config: &SenderConfig, mss: Bytes) -> Self {
                match config {
                    $($($(#[$if_sender])* SenderConfig::$Sender(config) => Self::$Sender(EchoLaw::start(config, mss)),)?)*
                }
            }

            /// Returns false if the receiver has no part in the law: [`EchoLaw::TAKES_PART`].
            #[inline]
            pub fn takes_part(&self) -> bool {
                match self {
                    $($($(#[$if_sender])* Self::$Sender(_) => {
                        <<$sender as SenderLaw>::Echo as EchoLaw<<$sender as SenderLaw>::Config>>::TAKES_PART
                    })?)*
                }
            }

            /// Rewrites a data packet for a receiver that lies: [`EchoLaw::forge`].
            #[inline] // or it would be in each BPF object
            pub fn forge(config: &SenderConfig, lie: Lie, packet: &mut impl Packet) {
                match config {
                    $($($(#[$if_sender])* SenderConfig::$Sender(config) => {
                        <<$sender as SenderLaw>::Echo as EchoLaw<<$sender as SenderLaw>::Config>>::forge(config, lie, packet)
                    })?)*
                }
            }

            #[cfg_attr(target_arch = "bpf", inline(always))]
            #[cfg_attr(not(target_arch = "bpf"), inline(never))]
            fn on_data_of_others(
                &mut self,
                config: &SenderConfig,
                packet: &impl Packet,
                receiver: impl Receiving,
            ) -> Heard {
                match (self, config) {
                    $($($(#[$if_sender])* (Self::$Sender(echo), SenderConfig::$Sender(config)) => {
                        echo.on_data(config, packet, receiver)
                    })?)*
                    _ => Heard::Taken,
                }
            }

            #[cfg_attr(target_arch = "bpf", inline(always))]
            #[cfg_attr(not(target_arch = "bpf"), inline(never))]
            fn on_ack_of_others(&mut self, config: &SenderConfig, receiver: impl Receiving) -> Reply {
                match (self, config) {
                    $($($(#[$if_sender])* (Self::$Sender(echo), SenderConfig::$Sender(config)) => {
                        echo.on_ack(config, receiver)
                    })?)*
                    _ => Reply::default(),
                }
            }
        }

        impl Link {
            /// Creates the state of a port that begins in the given phases: [`LinkLaw::start`].
            #[inline]
            pub fn new(config: &LinkConfig, phase: Duration, second_phase: Duration) -> Self {
                match config {
                    $($($(#[$if_link])* LinkConfig::$Link(config) => {
                        Self::$Link(LinkLaw::start(config, phase, second_phase))
                    })?)*
                }
            }

            /// Returns the report of the last control interval, for series and events.
            #[inline]
            pub fn report(&self) -> LinkReport {
                match self {
                    $($($(#[$if_link])* Self::$Link(law) => LinkReport::$Link(law.report()),)?)*
                }
            }

            /// Returns what [`Link::on_departure`] would give the packet now, for observers.
            #[inline]
            pub fn view(&self, packet: &impl Packet) -> Option<LinkView> {
                match self {
                    $($($(#[$if_link])* Self::$Link(law) => law.view(packet).map(LinkView::$Link),)?)*
                }
            }
        }

        macro_rules! of_link {
            ($d of:ident, $d value:expr, $d law:ident => $d body:expr) => {
                match $d value {
                    $($($(#[$if_link])* $d of::$Link($d law) => $d body,)?)*
                }
            };
            ($d of:ident, $d value:expr, $d law:ident: $d Law:ident => $d body:expr) => {
                match $d value {
                    $($($(#[$if_link])* $d of::$Link($d law) => {
                        type $d Law = $link;
                        $d body
                    })?)*
                }
            };
        }

        macro_rules! of_sender {
            ($d of:ident, $d value:expr, $d law:ident => $d body:expr) => {
                match $d value {
                    $($($(#[$if_sender])* $d of::$Sender($d law) => $d body,)?)*
                }
            };
            ($d of:ident, $d value:expr, $d law:ident: $d Law:ident => $d body:expr) => {
                match $d value {
                    $($($(#[$if_sender])* $d of::$Sender($d law) => {
                        type $d Law = $sender;
                        $d body
                    })?)*
                }
            };
        }

        macro_rules! of_flow {
            ($d state:expr, $d config:expr, |mut $d law:ident, $d own:ident| $d body:expr) => {
                match ($d state, $d config) {
                    $($($(#[$if_sender])* (Law::$Sender(law), SenderConfig::$Sender($d own)) => {
                        let $d law: &mut $sender = law;
                        $d body
                    })?)*
                    _ => Default::default(),
                }
            };
            ($d state:expr, $d config:expr, |$d law:ident, $d own:ident| $d body:expr) => {
                match ($d state, $d config) {
                    $($($(#[$if_sender])* (Law::$Sender(law), SenderConfig::$Sender($d own)) => {
                        let $d law: &$sender = law;
                        $d body
                    })?)*
                    _ => Default::default(),
                }
            };
        }
    };
}

// Each law file, with the laws of links and senders that it defines and the names of their variants here. Its
// `protocols` say what scenarios call them. `with` stands in place of `sender` where they run the sender law of another file.
protocols! { $
    xcp { link Xcp(super::xcp::Link) sender Xcp(super::xcp::Sender) }
    pxcp { link Pxcp(super::pxcp::Link) with Xcp }
    xcp2 { link Xcp2(super::xcp2::Link) sender Xcp2(super::xcp2::Sender) apart }
    xcp_r { sender XcpR(super::xcp_r::Sender) apart }
    xcp_r_v0 { sender XcpRV0(super::xcp_r_v0::Sender) apart }
    reno { sender Reno(super::reno::Reno) }
    cubic { sender Cubic(super::cubic::Cubic) apart }
    mpcp { link Mpcp(super::mpcp::Link) sender Mpcp(super::mpcp::Sender) apart }
    highspeed { sender HighSpeed(super::highspeed::HighSpeed) apart }
    bic { sender Bic(super::bic::Bic) apart }
    vegas { sender Vegas(super::vegas::Vegas) apart }
    bbr { sender Bbr(super::bbr::Bbr) apart }
    peach { sender Peach(super::peach::Peach) apart }
    dctcp { sender Dctcp(super::dctcp::Sender) apart }
    prague { sender Prague(super::prague::Sender) apart }
    abc { link Abc(super::abc::Link) sender Abc(super::abc::Sender) apart }
    bbr3 { sender Bbr3(super::bbr3::Bbr3) apart }
    rcp { link Rcp(super::rcp::Link) sender Rcp(super::rcp::Sender) }
    hpcc { link Hpcc(super::hpcc::Link) sender Hpcc(super::hpcc::Sender) apart }
    scone { link Scone(super::scone::Link) sender Scone(super::scone::Sender) apart }
    #[cfg(feature = "outside")]
    outside (Protocol::added()) {
        link #[cfg(feature = "outside")] Outside(super::outside::Link)
        sender #[cfg(feature = "outside")] Outside(super::outside::Sender)
    }
}

#[cfg(feature = "alloc")]
const _: () = assert!(size_of::<Law>() <= 40, "a sender law makes every flow larger: keep its state apart");

// What is asked for every packet asks for XCP first, whose law is then in line with the machinery around it: a call and its
// registers cost a tenth of what an XCP packet takes. All others are called, but for Reno's ACKs; not in BPF, whose functions take five words
// and return one.

/// A sender law with its state for one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The law's window after its last event, so that asking for it need not ask which law it is.
    window: Bytes,
    law: Law,
}

/// Calls a sender law, and keeps its window.
macro_rules! call {
    ($sender:expr, $config:expr, |$law:ident, $own:ident| $body:expr) => {
        of_flow!(&mut $sender.law, $config, |mut $law, $own| {
            let result = $body;
            $sender.window = $law.window();
            result
        })
    };
}

impl Sender {
    /// Returns the congestion window.
    #[inline]
    pub fn window(&self) -> Bytes {
        self.window
    }

    /// Returns the law, for observers.
    #[inline]
    pub fn law(&self) -> &Law {
        &self.law
    }

    /// Takes the number from which the law draws: [`SenderLaw::seed`].
    #[inline]
    pub fn seed(&mut self, seed: u64) {
        of_sender!(Law, &mut self.law, law: Own => {
            let law: &mut Own = law;
            SenderLaw::seed(law, seed);
        });
    }

    /// Takes one acknowledgment: [`SenderLaw::on_ack`].
    #[inline(always)]
    pub fn on_ack(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
        match (&mut self.law, config) {
            (Law::Xcp(law), SenderConfig::Xcp(config)) => {
                law.on_ack(config, now, ack);
                self.window = law.window();
            }
            // Half of what a call costs is the arguments, of which Reno looks at three.
            #[cfg(not(target_arch = "bpf"))]
            (Law::Reno(law), SenderConfig::Reno(config)) => {
                law.on_ack(config, now, ack);
                self.window = law.window();
            }
            _ => self.on_ack_of_others(config, now, ack),
        }
    }

    #[cfg_attr(target_arch = "bpf", inline(always))]
    #[cfg_attr(not(target_arch = "bpf"), inline(never))]
    fn on_ack_of_others(&mut self, config: &SenderConfig, now: Time, ack: &Ack) {
        call!(self, config, |law, config| law.on_ack(config, now, ack))
    }

    /// Takes the delivery-rate sample of one acknowledgment: [`SenderLaw::on_delivery`].
    #[inline]
    pub fn on_delivery(&mut self, config: &SenderConfig, now: Time, delivery: &Delivery) -> bool {
        call!(self, config, |law, config| SenderLaw::on_delivery(law, config, now, delivery))
    }

    /// Grows the window in slow start, if the law lets others do so: [`super::Threshold::grow`].
    #[inline]
    pub fn slow_start(&mut self, config: &SenderConfig, growth: Bytes) -> bool {
        call!(self, config, |law, _config| {
            SenderLaw::threshold(law).is_some_and(|threshold| threshold.grow(growth))
        })
    }

    /// Ends slow start, likewise: [`super::Threshold::leave`].
    #[inline]
    pub fn leave_slow_start(&mut self, config: &SenderConfig) {
        call!(self, config, |law, _config| {
            if let Some(threshold) = SenderLaw::threshold(law) {
                threshold.leave();
            }
        })
    }

    /// Shows another window until the law is asked again, for machinery that lowers it bit by bit.
    #[inline]
    pub fn hold(&mut self, window: Bytes) {
        self.window = window;
    }

    /// Reacts to a loss: [`SenderLaw::on_loss`].
    #[inline]
    pub fn on_loss(&mut self, config: &SenderConfig, now: Time, flight: Bytes) {
        call!(self, config, |law, config| law.on_loss(config, now, flight))
    }

    /// Reacts to marks: [`SenderLaw::on_mark`].
    #[inline]
    pub fn on_mark(&mut self, config: &SenderConfig, now: Time, flight: Bytes) {
        call!(self, config, |law, config| SenderLaw::on_mark(law, config, now, flight))
    }

    /// Reacts to the end of the retransmission timer: [`SenderLaw::on_timeout`].
    #[inline]
    pub fn on_timeout(&mut self, config: &SenderConfig, now: Time, flight: Bytes, is_first: bool) {
        call!(self, config, |law, config| law.on_timeout(config, now, flight, is_first))
    }

    /// Prepares to send again after silence: [`SenderLaw::on_restart`].
    #[inline]
    pub fn on_restart(&mut self, config: &SenderConfig, now: Time, initial_window: Bytes) {
        call!(self, config, |law, config| law.on_restart(config, now, initial_window))
    }

    /// Lets the law put on a packet what it tells, and returns the rate to pace at, the smoothed round trip time being
    /// `srtt`: [`SenderLaw::on_send`], [`SenderLaw::pacing_rate`].
    #[inline(always)]
    pub fn on_send(
        &mut self,
        config: &SenderConfig,
        now: Time,
        send: &Send,
        srtt: Duration,
        packet: &mut impl Packet,
    ) -> Option<Rate> {
        match (&mut self.law, config) {
            (Law::Xcp(law), SenderConfig::Xcp(config)) => {
                SenderLaw::on_send(law, config, now, send, packet);
                self.window = law.window();
                law.pacing_rate(config, srtt)
            }
            _ => self.on_send_of_others(config, now, send, srtt, packet),
        }
    }

    #[cfg_attr(target_arch = "bpf", inline(always))]
    #[cfg_attr(not(target_arch = "bpf"), inline(never))]
    fn on_send_of_others(
        &mut self,
        config: &SenderConfig,
        now: Time,
        send: &Send,
        srtt: Duration,
        packet: &mut impl Packet,
    ) -> Option<Rate> {
        call!(self, config, |law, config| {
            SenderLaw::on_send(law, config, now, send, packet);
            law.pacing_rate(config, srtt)
        })
    }

    /// Returns the cuts that the law made by itself: [`SenderLaw::cuts`].
    #[inline]
    pub fn cuts(&self) -> u32 {
        of_sender!(Law, &self.law, law: Own => {
            let law: &Own = law;
            SenderLaw::cuts(law)
        })
    }

    /// Decides on a probe: [`SenderLaw::probe`].
    #[inline]
    pub fn probe(&mut self, config: &SenderConfig, now: Time, ask: &Ask) -> Turn {
        call!(self, config, |law, config| law.probe(config, now, ask))
    }

    /// Takes the ACK of a probe: [`SenderLaw::on_probe_ack`].
    #[inline]
    pub fn on_probe_ack(&mut self, config: &SenderConfig, awnd: Bytes) {
        call!(self, config, |law, config| law.on_probe_ack(config, awnd))
    }

    /// Returns the rate to pace at: [`SenderLaw::pacing_rate`].
    #[inline]
    pub fn pacing_rate(&self, config: &SenderConfig, srtt: Duration) -> Option<Rate> {
        of_flow!(&self.law, config, |law, config| law.pacing_rate(config, srtt))
    }
}

impl Echo {
    /// Takes a data packet: [`EchoLaw::on_data`].
    #[inline(always)]
    pub fn on_data(
        &mut self,
        config: &SenderConfig,
        packet: &impl Packet,
        receiver: impl Receiving,
    ) -> Heard {
        match (&mut *self, config) {
            (Self::Xcp(echo), SenderConfig::Xcp(config)) => echo.on_data(config, packet, receiver),
            _ => self.on_data_of_others(config, packet, receiver),
        }
    }

    /// Returns the reply of the ACK that is about to leave: [`EchoLaw::on_ack`].
    #[inline(always)]
    pub fn on_ack(&mut self, config: &SenderConfig, receiver: impl Receiving) -> Reply {
        match (&mut *self, config) {
            (Self::Xcp(echo), SenderConfig::Xcp(config)) => echo.on_ack(config, receiver),
            _ => self.on_ack_of_others(config, receiver),
        }
    }
}

#[cfg(feature = "words")]
impl Sender {
    /// Says why an acknowledgment changed the window: [`SenderWords::explain`].
    pub fn explain(config: &SenderConfig, [before, after]: [&Self; 2], seen: &Reaction) -> Vec<Rule> {
        fn rules<L: SenderWords>(
            config: &L::Config,
            [before, after]: [Option<&L>; 2],
            seen: &Reaction,
        ) -> Vec<Rule> {
            let mut rules = Vec::new();
            if let (Some(before), Some(after)) = (before, after) {
                L::explain(config, [before, after], seen, &mut rules);
            }
            rules
        }
        of_flow!(&after.law, config, |law, config| rules(config, [before.law.part(), Some(law)], seen))
    }

    /// Returns the state of that type, as [`Law::part`].
    pub fn part<T: Any>(&self) -> Option<&T> {
        self.law.part()
    }
}

impl Law {
    /// Calls `tell` with each metric of the law's own: [`SenderLaw::each`].
    pub fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        of_sender!(Self, self, law: Own => {
            let law: &Own = law;
            SenderLaw::each(law, tell)
        })
    }

    /// Returns the state of that type, the law's own or that of the law that it is a variant of.
    #[inline]
    pub fn part<T: Any>(&self) -> Option<&T> {
        of_sender!(Self, self, law: Own => {
            let law: &Own = law;
            (law as &dyn Any).downcast_ref().or_else(|| SenderLaw::base_state(law).downcast_ref())
        })
    }
}

impl SenderConfig {
    /// Returns the name of the law, that of a protocol of its file.
    #[inline]
    pub fn name(&self) -> &'static str {
        of_sender!(Self, self, config: Law => <Law as SenderLaw>::name(config))
    }

    /// Says what the law tells on a packet that it sends: [`SenderWords::explain_packet`].
    #[cfg(feature = "words")]
    pub fn explain_packet(&self, packet: &dyn Packet) -> Vec<Rule> {
        let mut rules = Vec::new();
        of_sender!(Self, self, config: Law => {
            <Law as SenderWords>::explain_packet(config, packet, &mut rules);
        });
        rules
    }

    /// Returns the law's TCP option: [`SenderLaw::option`].
    #[inline]
    pub fn option(&self, on: On<'_>) -> Option<OptionBytes> {
        of_sender!(Self, self, config: Law => <Law as SenderLaw>::option(config, on))
    }

    /// Returns what the law needs of the machinery around it.
    #[inline]
    pub fn needs(&self) -> Needs {
        of_sender!(Self, self, config: Law => <Law as SenderLaw>::needs(config))
    }

    /// Says why flows misread what a link law of their signal tells: [`SenderWords::misreads`].
    #[cfg(feature = "words")]
    pub fn misreads(&self, link: &LinkConfig) -> Option<String> {
        let link = of_link!(LinkConfig, link, config: Law => <Law as LinkLaw>::base(config));
        of_sender!(Self, self, config: Law => <Law as SenderWords>::misreads(config, link))
    }

    /// Returns true if the law says nothing when it sends: [`SenderLaw::IS_SILENT`].
    #[inline]
    pub fn is_silent(&self) -> bool {
        of_sender!(Self, self, _config: Law => <Law as SenderLaw>::IS_SILENT)
    }

    /// Returns the configuration of that type, the law's own or that of the law that it is a variant of.
    #[inline]
    pub fn part<T: Any>(&self) -> Option<&T> {
        of_sender!(Self, self, config: Law => {
            (config as &dyn Any).downcast_ref().or_else(|| <Law as SenderLaw>::base(config).downcast_ref())
        })
    }

    /// Returns the configuration of that type to change it, as [`SenderConfig::part`].
    #[inline]
    pub fn part_mut<T: Any>(&mut self) -> Option<&mut T> {
        of_sender!(Self, self, config: Law => {
            if (config as &dyn Any).is::<T>() {
                return (config as &mut dyn Any).downcast_mut();
            }
            <Law as SenderLaw>::base_mut(config).downcast_mut()
        })
    }
}

impl Settings for SenderConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        of_sender!(Self, self, config => config.each(tell))
    }

    #[cfg(feature = "words")]
    fn settle(&mut self, is_written: &dyn Fn(&str) -> bool) {
        of_sender!(Self, self, config => config.settle(is_written))
    }

    #[cfg(feature = "words")]
    fn set_round_trip(&mut self, longest: Duration, is_written: &dyn Fn(&str) -> bool) {
        of_sender!(Self, self, config => config.set_round_trip(longest, is_written))
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        of_sender!(Self, self, config => config.check(tell))
    }
}

impl Link {
    /// Changes the capacity from the next control interval on.
    #[inline]
    pub fn set_capacity(&mut self, capacity: Rate) {
        of_link!(Self, self, law => law.set_capacity(capacity))
    }

    /// Takes a packet before it is queued: [`LinkLaw::on_arrival`].
    #[inline(always)]
    pub fn on_arrival(&mut self, now: Time, packet: &impl Packet) {
        match self {
            Self::Xcp(law) => LinkLaw::on_arrival(law, now, packet),
            _ => self.on_arrival_of_others(now, packet),
        }
    }

    #[cfg_attr(target_arch = "bpf", inline(always))]
    #[cfg_attr(not(target_arch = "bpf"), inline(never))]
    fn on_arrival_of_others(&mut self, now: Time, packet: &impl Packet) {
        of_link!(Self, self, law => LinkLaw::on_arrival(law, now, packet))
    }

    /// Writes the link's feedback into a packet: [`LinkLaw::on_departure`].
    #[inline(always)]
    pub fn on_departure(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes) {
        match self {
            Self::Xcp(law) => LinkLaw::on_departure(law, now, packet, backlog),
            _ => self.on_departure_of_others(now, packet, backlog),
        }
    }

    #[cfg_attr(target_arch = "bpf", inline(always))]
    #[cfg_attr(not(target_arch = "bpf"), inline(never))]
    fn on_departure_of_others(&mut self, now: Time, packet: &mut impl Packet, backlog: Bytes) {
        of_link!(Self, self, law => LinkLaw::on_departure(law, now, packet, backlog))
    }

    /// Returns true if a packet that came may leave so: [`LinkLaw::only_lowers`].
    #[inline]
    pub fn only_lowers(&self, came: &impl Packet, left: &impl Packet) -> bool {
        of_link!(Self, self, law => law.only_lowers(came, left))
    }

    /// Returns the pool from which the packet would be granted something now: [`LinkLaw::pool`].
    #[inline]
    pub fn pool(&self, packet: &impl Packet) -> Option<Pool> {
        of_link!(Self, self, law => law.pool(packet))
    }

    /// Returns the earliest deadline.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        of_link!(Self, self, law => law.next_deadline())
    }

    /// Serves every deadline that is due at `now`; `backlog` is what is queued.
    #[inline]
    pub fn on_deadline(&mut self, now: Time, backlog: Bytes) {
        of_link!(Self, self, law => law.on_deadline(now, backlog))
    }
}

impl Steered for Link {
    #[inline]
    fn close_told(&mut self, now: Time, told: &Told) {
        of_link!(Self, self, law => law.close_told(now, told))
    }

    #[inline]
    fn input(&self, now: Time) -> Rate {
        of_link!(Self, self, law => law.input(now))
    }

    #[inline]
    fn mean_rtt(&self) -> Duration {
        of_link!(Self, self, law => law.mean_rtt())
    }

    #[inline]
    fn persistent_queue(&self) -> Bytes {
        of_link!(Self, self, law => law.persistent_queue())
    }
}

impl LinkConfig {
    /// Returns the name of the law, that of a protocol of its file.
    #[inline]
    pub fn name(&self) -> &'static str {
        of_link!(Self, self, config: Law => <Law as LinkLaw>::name(config))
    }

    /// Returns the name of the signal that the law gives: [`LinkLaw::signal`].
    #[inline]
    pub fn signal(&self) -> &'static str {
        of_link!(Self, self, config: Law => <Law as LinkLaw>::signal(config))
    }

    /// Says what the law does to packets whose ECN bits are RFC 3168's: [`LinkWords::misread_ecn`].
    #[cfg(feature = "words")]
    pub fn misread_ecn(&self) -> Option<&'static str> {
        of_link!(Self, self, config: Law => <Law as LinkWords>::misread_ecn(config))
    }

    /// Says what the law does with a packet that has nothing for it: [`LinkWords::explain_other`].
    #[cfg(feature = "words")]
    pub fn explain_other(&self) -> Rule {
        of_link!(Self, self, config: Law => <Law as LinkWords>::explain_other(config))
    }

    /// Says what the law did to a packet, as it came and as it left: [`LinkWords::explain`].
    #[cfg(feature = "words")]
    pub fn explain(&self, view: &LinkView, packets: [&dyn Packet; 2]) -> Vec<Rule> {
        let mut rules = Vec::new();
        of_link!(Self, self, config: Law => {
            if let Some(view) = view.part::<<Law as LinkLaw>::View>() {
                <Law as LinkWords>::explain(config, view, packets, &mut rules);
            }
        });
        rules
    }

    /// Returns the length of the first control interval: [`LinkLaw::first_interval`].
    #[inline]
    pub fn first_interval(&self) -> Duration {
        of_link!(Self, self, config: Law => <Law as LinkLaw>::first_interval(config))
    }

    /// Returns the least length of a control interval but the first: [`LinkLaw::shortest_interval`].
    #[inline]
    pub fn shortest_interval(&self, round_trip: Duration) -> Duration {
        of_link!(Self, self, config: Law => <Law as LinkLaw>::shortest_interval(config, round_trip))
    }

    /// Returns the capacity of the link that the law computes with.
    #[inline]
    pub fn capacity(&self) -> Rate {
        of_link!(Self, self, config: Law => <Law as LinkLaw>::capacity(config))
    }

    /// Sets the capacity of the link that the law computes with.
    #[inline]
    pub fn set_capacity(&mut self, capacity: Rate) {
        of_link!(Self, self, config: Law => <Law as LinkLaw>::configure_capacity(config, capacity))
    }

    /// Takes note that departures do not tell how fast the link is: [`LinkLaw::configure_untimed`].
    #[inline]
    pub fn set_untimed(&mut self) {
        of_link!(Self, self, config: Law => <Law as LinkLaw>::configure_untimed(config))
    }

    /// Returns what the router shall remember of flows: [`LinkLaw::remembers`].
    #[inline]
    pub fn remembers(&self) -> Option<Remembers> {
        of_link!(Self, self, config: Law => <Law as LinkLaw>::remembers(config))
    }

    /// Returns the time over which the law wants to know what a trace offered: [`LinkLaw::watches`].
    #[inline]
    pub fn watches(&self) -> Option<Duration> {
        of_link!(Self, self, config: Law => <Law as LinkLaw>::watches(config))
    }

    /// Returns true if the law can be timed and told what is spare: [`Steered`].
    #[inline]
    pub fn is_steered(&self) -> bool {
        of_link!(Self, self, _config: Law => <Law as Steered>::IS_STEERED)
    }

    /// Returns the configuration of that type, the law's own or that of the law that it is a variant of.
    #[inline]
    pub fn part<T: Any>(&self) -> Option<&T> {
        of_link!(Self, self, config: Law => {
            (config as &dyn Any).downcast_ref().or_else(|| <Law as LinkLaw>::base(config).downcast_ref())
        })
    }

    /// Returns the configuration of that type to change it, as [`LinkConfig::part`].
    #[inline]
    pub fn part_mut<T: Any>(&mut self) -> Option<&mut T> {
        of_link!(Self, self, config: Law => {
            if (config as &dyn Any).is::<T>() {
                return (config as &mut dyn Any).downcast_mut();
            }
            <Law as LinkLaw>::base_mut(config).downcast_mut()
        })
    }
}

impl Settings for LinkConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        of_link!(Self, self, config => config.each(tell))
    }

    #[cfg(feature = "words")]
    fn settle(&mut self, is_written: &dyn Fn(&str) -> bool) {
        of_link!(Self, self, config => config.settle(is_written))
    }

    #[cfg(feature = "words")]
    fn set_round_trip(&mut self, longest: Duration, is_written: &dyn Fn(&str) -> bool) {
        of_link!(Self, self, config => config.set_round_trip(longest, is_written))
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        of_link!(Self, self, config => config.check(tell))
    }
}

impl LinkReport {
    /// Returns the report of that type, the law's own or that of the law that it is a variant of.
    #[inline]
    pub fn part<T: Any>(&self) -> Option<&T> {
        of_link!(Self, self, report => {
            (report as &dyn Any).downcast_ref().or_else(|| Series::base(report).downcast_ref())
        })
    }
}

impl Series for LinkReport {
    fn intervals(&self) -> u64 {
        of_link!(Self, self, report => report.intervals())
    }

    fn decision(&self) -> i64 {
        of_link!(Self, self, report => report.decision())
    }

    fn each(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
        of_link!(Self, self, report => report.each(tell))
    }

    fn bounded_packets(&self) -> Option<u64> {
        of_link!(Self, self, report => report.bounded_packets())
    }
}

impl LinkView {
    /// Returns the view of that type, if it is one.
    #[inline]
    pub fn part<T: Any>(&self) -> Option<&T> {
        of_link!(Self, self, view => (view as &dyn Any).downcast_ref())
    }
}

#[cfg(feature = "words")]
impl LinkConfig {
    /// Follows the implementation of that name, if the law knows it, in what no setting says.
    pub fn follow(&mut self, implementation: &str, is_written: &dyn Fn(&str) -> bool) {
        if let Some(config) = self.part_mut() {
            super::xcp::words::follow_on_link(config, implementation, is_written);
        }
    }

    /// Returns the chains in which the law tells load levels; `None`: it tells none.
    pub fn chain(&self) -> Option<Chain> {
        let Self::Mpcp(config) = self else { return None };
        Some(Chain { packets: config.n, order: config.order })
    }
}

#[cfg(feature = "words")]
impl SenderConfig {
    /// Follows the implementation of that name, if the law knows it, but in what is written; returns what of it, or of the
    /// settings, does nothing.
    pub fn follow(&mut self, implementation: &str, is_written: &dyn Fn(&str) -> bool) -> Followed {
        if implementation == "linux" {
            return Followed {
                ignored: self.needs().slow_start.unwrap_or_default(),
                known: "slow start is there what `slow_start` says, and counts bytes",
                ..Followed::default()
            };
        }
        if implementation == "ns2" {
            self.each(&mut |key, _, field| {
                if let Field::Switch(counts) = field
                    && ["ack_counting", "mean_rtt"].contains(&key)
                {
                    *counts |= !is_written(key);
                }
            });
        }
        let is_own = matches!(self, Self::Xcp(_));
        // XCP2 is no law of ns-2, and its pacing is a repair of its own.
        let keeps_pacing = is_written("pacing") || matches!(self, Self::Xcp2(_));
        super::xcp::words::follow(self.part_mut(), is_own, implementation, keeps_pacing)
    }

    /// Returns the chains in which the law reads load levels; `None`: it reads none.
    pub fn chain(&self) -> Option<Chain> {
        let config: &super::mpcp::SenderConfig = self.part()?;
        Some(Chain { packets: config.n, order: config.order })
    }
}

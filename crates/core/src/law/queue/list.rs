//! The list of queue laws, and all of them as one: which it is, is asked here and nowhere else.

use super::egress::{AtEgress, Egress};
use super::{
    Arrival, Departure, Draws, Limit, QueueLaw, QueueSeries, Queues, Reason, Value, Verdict, Victim,
};
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings};
use crate::law::{Column, Packet};
use crate::units::{Rate, Time};

macro_rules! disciplines {
    (read: { $($old:tt)* } told: { $($name:literal $Variant:ident($law:ty),)* }) => {
        disciplines! { $($old)* $($name $Variant($law),)* }

        impl Discipline {
            /// Returns the laws that tell their settings themselves, as they are by default, each with its line of meaning.
            pub fn told() -> impl Iterator<Item = (Self, &'static str)> {
                [$((Self::$Variant(Default::default()), <$law as QueueLaw>::ABOUT)),*].into_iter()
            }
        }

        /// Laws that tell their settings themselves; those whose amounts hang on the link a scenario reads by itself.
        impl Settings for Discipline {
            fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
                match self {
                    $(Self::$Variant(config) => config.each(tell),)*
                    _ => {}
                }
            }

            #[cfg(feature = "words")]
            fn settle(&mut self, is_written: &dyn Fn(&str) -> bool) {
                match self {
                    $(Self::$Variant(config) => config.settle(is_written),)*
                    _ => {}
                }
            }

            #[cfg(feature = "words")]
            fn check(&self, tell: &mut dyn FnMut(Finding)) {
                match self {
                    $(Self::$Variant(config) => config.check(tell),)*
                    _ => {}
                }
            }
        }
    };
    ($($name:literal $Variant:ident($law:ty),)*) => {
        /// Rule by which a port chooses between waiting, marking and dropping.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Discipline {
            /// No law: an arrival is dropped when the queue is full.
            DropTail,
            $(#[doc = concat!("That of `", stringify!($law), "`.")]
            $Variant(<$law as QueueLaw>::Config),)*
        }

        /// A queue law of any discipline, with its state.
        #[derive(Clone, Debug)]
        pub enum Queue {
            $(#[doc = concat!("That of `", stringify!($law), "`.")]
            $Variant($law),)*
        }

        /// Values of a queue law in a sample.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum QueueSample {
            $(#[doc = concat!("That of `", stringify!($law), "`.")]
            $Variant(<$law as QueueLaw>::Sample),)*
        }

        impl Discipline {
            /// Names of all disciplines in scenarios.
            pub const NAMES: &'static [&'static str] = &["droptail", $($name),*];

            /// Returns the name of the discipline in scenarios.
            pub const fn name(&self) -> &'static str {
                match self {
                    Self::DropTail => "droptail",
                    $(Self::$Variant(_) => $name,)*
                }
            }

            /// Returns the number of queues: [`QueueLaw::queues`].
            pub fn queues(&self) -> usize {
                match self {
                    Self::DropTail => 1,
                    $(Self::$Variant(config) => <$law as QueueLaw>::queues(config),)*
                }
            }

            /// Returns the number of records of a law of several queues: [`QueueLaw::records`].
            pub fn records(&self) -> usize {
                match self {
                    Self::DropTail => 1,
                    $(Self::$Variant(config) => <$law as QueueLaw>::records(config),)*
                }
            }

            /// Returns the limit of a queue: [`QueueLaw::limit`].
            pub fn limit(&self, queue: usize, port: Limit) -> Limit {
                match self {
                    Self::DropTail => port,
                    $(Self::$Variant(config) => <$law as QueueLaw>::limit(config, queue, port),)*
                }
            }

            /// Returns the limit of all queues together: [`QueueLaw::total`].
            pub fn total(&self, port: Limit) -> Limit {
                match self {
                    Self::DropTail => Limit::None,
                    $(Self::$Variant(config) => <$law as QueueLaw>::total(config, port),)*
                }
            }

            /// Returns true if the law marks: [`QueueLaw::marks`].
            pub fn marks(&self) -> bool {
                match self {
                    Self::DropTail => false,
                    $(Self::$Variant(config) => <$law as QueueLaw>::marks(config),)*
                }
            }

            /// Returns the time series of the law: [`QueueLaw::SERIES`].
            pub const fn series(&self) -> &'static [Column] {
                match self {
                    Self::DropTail => &[],
                    $(Self::$Variant(_) => <$law as QueueLaw>::SERIES,)*
                }
            }

            /// Returns the time series of all laws.
            pub fn all_series() -> impl Iterator<Item = &'static Column> {
                [$(<$law as QueueLaw>::SERIES),*].into_iter().flatten()
            }

            /// Returns true if the law has nothing to do with what passes an idle port: [`QueueLaw::PASSES_IDLE`].
            pub const fn passes_idle(&self) -> bool {
                match self {
                    Self::DropTail => true,
                    $(Self::$Variant(_) => <$law as QueueLaw>::PASSES_IDLE,)*
                }
            }
        }

        impl Queue {
            /// Creates the state of an empty port: [`QueueLaw::start`]; `None`: the discipline is no law.
            pub fn new(discipline: &Discipline) -> Option<Self> {
                match discipline {
                    Discipline::DropTail => None,
                    $(Discipline::$Variant(config) => Some(Self::$Variant(QueueLaw::start(config))),)*
                }
            }

            /// Returns the values of a sample: [`QueueLaw::sample`].
            pub fn sample(&mut self, queues: &impl Queues) -> QueueSample {
                match self {
                    $(Self::$Variant(law) => QueueSample::$Variant(QueueLaw::sample(law, queues)),)*
                }
            }
        }

        impl QueueSample {
            /// Calls `tell` with each metric: [`QueueSeries::each`].
            pub fn each(&self, tell: &mut impl FnMut(&'static str, Value)) {
                match self {
                    $(Self::$Variant(sample) => QueueSeries::each(sample, tell),)*
                }
            }
        }

        macro_rules! of_queue {
            ($value:expr, |$own:ident| $body:expr) => {
                match $value {
                    $(Queue::$Variant($own) => $body,)*
                }
            };
        }
    };
}

disciplines! {
    read: {
        "prio-droptail" PrioDropTail(super::priority::Priority),
        "red" Red(super::red::Red),
        "step" Step(super::step::Step),
        "xcp-tcp" XcpTcp(super::xcp_tcp::XcpTcp),
    }
    told: {
        "codel" Codel(super::codel::Codel),
        "dualpi2" DualPi2(super::dualpi2::DualPi2),
        "fq-codel" FqCodel(super::fq_codel::FqCodel),
        "pi2" Pi2(super::pi2::Pi2),
        "pie" Pie(super::pie::Pie),
    }
}

/// Makes the list of the laws that judge before a queue: [`Egress`].
macro_rules! markers {
    ($($name:literal $Variant:ident($law:ty),)*) => {
        /// Law that judges before a queue of the kernel's, with its settings.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Marker {
            $(#[doc = concat!("That of `", stringify!($law), "`.")]
            $Variant(<$law as AtEgress>::Told),)*
        }

        impl Marker {
            /// Returns the law of that name, as it is by default.
            pub fn of(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$Variant(Default::default())),)*
                    _ => None,
                }
            }

            /// Returns the name of the law.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$Variant(_) => $name,)*
                }
            }

            /// Calls `tell` with each metric of a port to which nothing came yet: name, numerator and denominator.
            pub fn first_report(&self, tell: &mut impl FnMut(&'static str, i64, u32)) {
                match self {
                    $(Self::$Variant(told) => Egress::<$law>::start(told, Rate(1), 1).report().each(tell),)*
                }
            }
        }

        impl Settings for Marker {
            fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
                match self {
                    $(Self::$Variant(told) => told.each(tell),)*
                }
            }

            #[cfg(feature = "words")]
            fn settle(&mut self, is_written: &dyn Fn(&str) -> bool) {
                match self {
                    $(Self::$Variant(told) => told.settle(is_written),)*
                }
            }

            #[cfg(feature = "words")]
            fn check(&self, tell: &mut dyn FnMut(Finding)) {
                match self {
                    $(Self::$Variant(told) => told.check(tell),)*
                }
            }
        }
    };
}

// `bpf/build.sh` of the Linux crate makes a router's program of each line.
markers! {
    "pi2" Pi2(super::pi2::Pi2),
    "pie" Pie(super::pie::Pie),
    "step" Step(super::step::Step),
}

impl Queue {
    /// Returns the queue whose packets the port's link law deals with: [`QueueLaw::of_link_law`].
    #[inline]
    pub fn of_link_law(&self) -> Option<usize> {
        of_queue!(self, |law| law.of_link_law())
    }

    /// Returns the link law's part of the capacity: [`QueueLaw::share`].
    pub fn share(&self, capacity: Rate) -> Rate {
        of_queue!(self, |law| law.share(capacity))
    }

    /// Hears that the link law has ended a control interval: [`QueueLaw::on_interval`].
    pub fn on_interval(&mut self, capacity: Rate) -> bool {
        of_queue!(self, |law| law.on_interval(capacity))
    }

    /// Chooses the queue of a packet that arrives: [`QueueLaw::classify`].
    #[inline]
    pub fn classify(&self, packet: &impl Packet, flow: u32) -> usize {
        of_queue!(self, |law| law.classify(packet, flow))
    }

    /// Decides on a packet that arrives: [`QueueLaw::on_enqueue`].
    #[inline]
    pub fn on_enqueue(
        &mut self,
        arrival: &Arrival<'_, impl Packet>,
        queues: &mut impl Queues,
        draws: &mut impl Draws,
    ) -> Verdict {
        of_queue!(self, |law| law.on_enqueue(arrival, queues, draws))
    }

    /// Chooses who goes when more waits than may: [`QueueLaw::on_overflow`].
    pub fn on_overflow(&mut self, queues: &mut impl Queues) -> Victim {
        of_queue!(self, |law| law.on_overflow(queues))
    }

    /// Chooses the queue whose first packet leaves next: [`QueueLaw::next`].
    #[inline]
    pub fn next(&mut self, queues: &mut impl Queues) -> usize {
        of_queue!(self, |law| law.next(queues))
    }

    /// Decides on a packet that leaves: [`QueueLaw::on_dequeue`].
    #[inline]
    pub fn on_dequeue(
        &mut self,
        departure: &Departure<'_, impl Packet>,
        queues: &mut impl Queues,
        draws: &mut impl Draws,
    ) -> Verdict {
        of_queue!(self, |law| law.on_dequeue(departure, queues, draws))
    }

    /// Hears that a packet was dropped: [`QueueLaw::on_drop`].
    pub fn on_drop(&mut self, queue: usize, reason: Reason, queues: &mut impl Queues) {
        of_queue!(self, |law| law.on_drop(queue, reason, queues))
    }

    /// Returns the earliest deadline: [`QueueLaw::next_deadline`].
    #[inline]
    pub fn next_deadline(&self) -> Time {
        of_queue!(self, |law| law.next_deadline())
    }

    /// Serves every deadline that is due at `now`: [`QueueLaw::on_deadline`].
    pub fn on_deadline(&mut self, now: Time, queues: &impl Queues) {
        of_queue!(self, |law| law.on_deadline(now, queues))
    }
}

//! Settings of laws, said once: their keys in a scenario, their types and their meaning. Readers of scenarios,
//! their writers, schemas and the tables of the documents all ask here.

use crate::units::{Duration, Rate, Ratio};

/// A configuration that lists its settings.
pub trait Settings: 'static {
    /// Calls `tell` for each setting of a scenario, in the order in which they are written: its key, one line of
    /// meaning with the default and its source, and the setting itself.
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>));

    /// Sets what goes by other settings unless a scenario writes it.
    #[cfg(feature = "words")]
    fn settle(&mut self, _is_written: &dyn Fn(&str) -> bool) {}

    /// Sets the defaults that follow from `longest`, unless a scenario writes them: the longest round trip, without queues, of
    /// the flows that share a link with it; zero if none is known.
    #[cfg(feature = "words")]
    fn set_round_trip(&mut self, _longest: Duration, _is_written: &dyn Fn(&str) -> bool) {}

    /// Tells what is wrong with the settings, or strange.
    #[cfg(feature = "words")]
    fn check(&self, _tell: &mut dyn FnMut(Finding)) {}
}

/// Tells of the switch by which a law of TCP's family counts acknowledgments as ns-2 does; the profile `ns2` sets it.
pub(super) fn ack_counting(counts: &mut bool, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
    tell(
        "ack_counting",
        "Congestion avoidance counts an ACK as one segment, as ns-2, so that delayed ACKs halve the growth: true \
         (profile ns2); as what the ACK acknowledges: false.",
        Field::Switch(counts),
    );
}

/// The shortest time between two decisions of a link: with it a link of 20 Mbit/s costs some four times what one with the
/// defaults does, and with 1 ns a simulated second took up to 27 s.
#[cfg(feature = "words")]
pub const TIMER_MIN: Duration = Duration(10_000);

/// Mistake among the settings of a law, or an oddity.
#[cfg(feature = "words")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// True if the law can not run so.
    pub is_error: bool,
    /// Kind of finding, such as `range`.
    pub kind: &'static str,
    /// Key that it is about; empty: the law as a whole.
    pub key: &'static str,
    /// Keys at which it lies: the first that is written.
    pub at: [&'static str; 2],
    /// Clause whose subject is the key.
    pub text: alloc::string::String,
    /// Allowed values, in words.
    pub help: alloc::string::String,
}

#[cfg(feature = "words")]
impl Finding {
    /// A setting that is out of range.
    pub fn range(
        key: &'static str,
        text: impl Into<alloc::string::String>,
        help: impl Into<alloc::string::String>,
    ) -> Self {
        Self { is_error: true, kind: "range", key, at: [key; 2], text: text.into(), help: help.into() }
    }

    /// Tells of a setting that must be above zero and is not.
    pub fn above_zero(key: &'static str, value: u64, such: &str, tell: &mut dyn FnMut(Self)) {
        if value == 0 {
            tell(Self::range(key, "is zero", alloc::format!("allowed: above 0, such as {such}")));
        }
    }

    /// Tells of a time between two decisions of a link that is so short that a run does little else than decide.
    pub fn timer(key: &'static str, value: Duration, such: &str, tell: &mut dyn FnMut(Self)) {
        if value < TIMER_MIN {
            let allowed = alloc::format!("allowed: from {TIMER_MIN}, such as {such}");
            tell(Self::range(key, alloc::format!("is {value}"), allowed));
        }
    }
}

/// One setting of a configuration, by type.
pub enum Field<'a> {
    /// Yes or no.
    Switch(&'a mut bool),
    /// A factor, 0 to 1000.
    Factor(&'a mut Ratio),
    /// A part of a whole, 0 to 1.
    Share(&'a mut Ratio),
    /// A weight, 0 to 1; `true` is one half, `false` and 0 are none.
    Weight(&'a mut Option<Ratio>),
    /// A span of time.
    Span(&'a mut Duration),
    /// A rate; where a scenario gives none, the link's or the access's.
    Rate(&'a mut Rate),
    /// A whole number, at least 1.
    Count(&'a mut u32),
    /// A whole number from 1 to the second value.
    Number(&'a mut u32, u32),
    /// One of several words.
    Word(&'a mut dyn Words),
}

/// A choice between alternatives that have names.
pub trait Words {
    /// Returns the names of all alternatives.
    fn words(&self) -> &'static [&'static str];
    /// Returns the name of the chosen alternative.
    fn word(&self) -> &'static str;
    /// Chooses the alternative of that name; a word that names none changes nothing.
    fn choose(&mut self, word: &str);
    /// Chooses the alternative of that place among [`Words::words`]; a place behind them changes nothing.
    #[inline] // or it would be in each BPF object
    fn pick(&mut self, place: usize) {
        if let Some(word) = self.words().get(place) {
            self.choose(word);
        }
    }
}

/// Gives the variants of an enum their words.
macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal,)* }) => {
        impl $crate::law::settings::Words for $name {
            #[inline] // or they would be in each BPF object
            fn words(&self) -> &'static [&'static str] {
                &[$($word),*]
            }

            #[inline]
            fn word(&self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            #[inline]
            fn choose(&mut self, word: &str) {
                match word {
                    $($word => *self = Self::$variant,)*
                    _ => {}
                }
            }

            // Kernels compare no strings.
            #[inline]
            fn pick(&mut self, place: usize) {
                let mut next = 0;
                $(
                    if place == next {
                        *self = Self::$variant;
                    }
                    next += 1;
                )*
                let _ = next;
            }
        }
    };
}
pub(crate) use words;

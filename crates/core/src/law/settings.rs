//! What a law can be told, said once: its keys in a scenario, their types and what they mean. Readers
//! of scenarios, their writers, schemas and the tables of the documents all ask here.

use crate::units::{Duration, Rate, Ratio};

/// A configuration that can name its parts.
pub trait Settings {
    /// Tells of each part that a scenario may set, in the order in which they are written: its key,
    /// one line of what it means with the default and its source, and the part itself.
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>));
}

/// One part of a configuration.
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
    /// A rate. Without one, the surroundings decide: the link's, the access's.
    Rate(&'a mut Rate),
    /// A whole number, at least 1.
    Count(&'a mut u32),
    /// A whole number from 1 to so many.
    Number(&'a mut u32, u32),
    /// One of several words.
    Word(&'a mut dyn Words),
}

/// A choice that has words.
pub trait Words {
    /// All of them.
    fn words(&self) -> &'static [&'static str];
    /// The chosen one.
    fn word(&self) -> &'static str;
    /// Chooses; what is no word of it changes nothing.
    fn choose(&mut self, word: &str);
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
        }
    };
}
pub(crate) use words;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What user space tells any law of a port, and reads of it: words and numerators, in the order in which the law lists them.

use congestlab_core::law::settings::{Field, Settings};
use congestlab_core::units::{Duration, Rate, Ratio};

/// The most settings of a law.
const SETTINGS: usize = 16;

/// The settings of a law, in the order in which it lists them, each as a word.
#[repr(C)]
pub struct Told {
    words: [u64; SETTINGS],
}

impl Told {
    /// Tells a law its settings, and returns their number.
    #[inline(always)]
    pub fn tell(&self, config: &mut impl Settings) -> u64 {
        let mut count = 0;
        config.each(&mut |_, _, field| {
            if let Some(word) = self.words.get(count) {
                set(field, *word);
            }
            count += 1;
        });
        count as u64
    }
}

#[inline(always)]
fn set(field: Field<'_>, word: u64) {
    match field {
        Field::Switch(value) => *value = word != 0,
        Field::Factor(value) | Field::Share(value) => *value = Ratio(word as u32),
        Field::Weight(value) => *value = if word == 0 { None } else { Some(Ratio(word as u32)) },
        Field::Span(value) => *value = Duration(word),
        Field::Rate(value) => *value = Rate(word),
        Field::Count(value) | Field::Number(value, _) => *value = word as u32,
        Field::Word(value) => value.pick(word as usize),
    }
}

/// Columns of a report.
const COLUMNS: usize = 8;

/// The report of a law: the numerators of its series, in their order.
#[repr(C)]
pub struct Report {
    pub intervals: u64,
    columns: [i64; COLUMNS],
}

impl Report {
    /// Notes the column of that place; one behind them is not there.
    #[inline(always)]
    pub fn note(&mut self, place: u64, value: i64) {
        if let Some(column) = self.columns.get_mut(place as usize) {
            *column = value;
        }
    }
}

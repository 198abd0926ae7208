//! Recorded link traces in mahimahi's format.
//!
//! Each line is a millisecond at which the link can deliver [`OPPORTUNITY`] bytes; the file repeats
//! with the period of its last timestamp. This module reads and refuses; [`crate::service`] serves.

use crate::packet::Picos;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use congestlab_core::capacity::STEP;
use congestlab_core::units::BitRate;
use core::fmt;

/// Bytes that one line lets through: a packet of the usual MTU.
pub const OPPORTUNITY: u32 = 1_500;
/// Picoseconds in a millisecond.
const PS_PER_MS: u64 = 1_000_000_000;

/// The delivery opportunities of one period. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Milliseconds, not decreasing, the last one positive.
    stamps: Arc<[u32]>,
}

/// Characters of a line that an error shows.
const SHOWN_MAX: usize = 80;

/// Reason why a text is not a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceError {
    /// The text has no line.
    Empty,
    /// The line is not a whole number of milliseconds below 2^32.
    NotANumber {
        /// The line, from 1.
        line: usize,
        /// Text of the line, at most 80 characters.
        text: String,
    },
    /// The line has several numbers, or is the first and names them, as files with a rate over time have.
    Columns {
        /// The line, from 1.
        line: usize,
        /// Columns of the line.
        count: usize,
        /// Text of the line, at most 80 characters.
        text: String,
    },
    /// The line is earlier than the one before.
    NotMonotone {
        /// The line, from 1.
        line: usize,
        /// Timestamp of the line, ms.
        stamp: u32,
        /// The timestamp of the line before, ms.
        before: u32,
    },
    /// The last timestamp is 0, so that repeating it would never end.
    ZeroPeriod {
        /// The line, from 1.
        line: usize,
    },
}

impl TraceError {
    /// Returns the line at fault, from 1; an empty file has none.
    pub const fn line(&self) -> Option<usize> {
        match *self {
            Self::Empty => None,
            Self::NotANumber { line, .. }
            | Self::Columns { line, .. }
            | Self::NotMonotone { line, .. }
            | Self::ZeroPeriod { line } => Some(line),
        }
    }

    /// Says what is wrong with a line that is no timestamp.
    fn in_line(line: usize, bytes: &[u8]) -> Self {
        let all = String::from_utf8_lossy(bytes);
        let mut text: String = all.chars().take(SHOWN_MAX).collect();
        if text.len() < all.len() {
            text.push_str("...");
        }
        let is_between = |c: char| c.is_ascii_whitespace() || c == ',' || c == ';';
        let columns = || all.split(is_between).filter(|column| !column.is_empty());
        let count = columns().count();
        if count > 1 && (line == 1 || columns().all(|column| column.parse::<f64>().is_ok())) {
            return Self::Columns { line, count, text };
        }
        Self::NotANumber { line, text }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "trace is empty: it needs one millisecond timestamp per line"),
            Self::NotANumber { line, text } => {
                write!(f, "line {line}, `{text}`, is not a whole number of milliseconds below 4294967296")
            }
            Self::Columns { line, count, text } => write!(
                f,
                "line {line}, `{text}`, has {count} columns, as files with seconds and Mbit/s have: a trace has one \
                 number per line, the millisecond at which a packet of 1500 bytes may leave; rates over time are `steps`"
            ),
            Self::NotMonotone { line, stamp, before } => {
                write!(
                    f,
                    "line {line}, `{stamp}`, is earlier than the line before, `{before}`: timestamps may not decrease"
                )
            }
            Self::ZeroPeriod { line } => {
                write!(f, "line {line} ends the trace at 0 ms: the last timestamp is the period")
            }
        }
    }
}

impl core::error::Error for TraceError {}

impl Trace {
    /// Reads a trace: one number a line, spaces around it and empty lines at the end allowed.
    ///
    /// # Errors
    /// If the text is no trace: the reason, with the line.
    pub fn parse(text: &[u8]) -> Result<Self, TraceError> {
        let text = text.trim_ascii_end();
        if text.is_empty() {
            return Err(TraceError::Empty);
        }
        let stamps: Result<Vec<u32>, TraceError> = text
            .split(|&byte| byte == b'\n')
            .enumerate()
            .map(|(index, line)| {
                let line = line.trim_ascii();
                parse_u32(line).ok_or_else(|| TraceError::in_line(index + 1, line))
            })
            .collect();
        Self::new(stamps?)
    }

    /// Returns the number of opportunities in a period.
    pub fn opportunities(&self) -> usize {
        self.stamps.len()
    }

    /// Creates a trace of these milliseconds.
    ///
    /// # Errors
    /// If the stamps are no trace: as [`Trace::parse`], with the position in `stamps` (from 1) for the line.
    pub fn new(stamps: Vec<u32>) -> Result<Self, TraceError> {
        if let Some(index) = stamps.windows(2).position(|pair| pair[1] < pair[0]) {
            let (before, stamp) = (stamps[index], stamps[index + 1]);
            return Err(TraceError::NotMonotone { line: index + 2, stamp, before });
        }
        match stamps.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::ZeroPeriod { line: stamps.len() }),
            Some(_) => Ok(Self { stamps: stamps.into() }),
        }
    }

    /// Returns the opportunities of one period, ms.
    pub fn stamps(&self) -> &[u32] {
        &self.stamps
    }

    /// Returns the time after which the trace repeats, ps.
    pub fn period(&self) -> Picos {
        self.stamps.last().map_or(0, |&last| u64::from(last) * PS_PER_MS)
    }

    /// Returns the bits of all opportunities of one period.
    pub fn bits_per_period(&self) -> u64 {
        self.stamps.len() as u64 * u64::from(OPPORTUNITY) * 8
    }

    /// Returns the mean rate over one period, rounded down (docs/design/contract.md 2).
    pub fn mean_rate(&self) -> BitRate {
        let bits = u128::from(self.bits_per_period()) * u128::from(crate::packet::PS_PER_S);
        BitRate(u64::try_from(bits / u128::from(self.period())).unwrap_or(u64::MAX))
    }

    /// Returns the mean of the rate that the trace offers within a step of [`STEP`], counted from the
    /// beginning. The last opportunity of a period, at its end, counts with those before it.
    pub fn offers(&self, step: u64) -> BitRate {
        const STEP_MS: u64 = STEP.0 / 1_000_000;
        let period = self.stamps.last().map_or(1, |last| u64::from(*last)).max(1);
        // Opportunities before a time, of all periods.
        let before = |ms: u64| {
            let within = self.stamps.partition_point(|stamp| u64::from(*stamp) < ms % period) as u64;
            ms / period * self.stamps.len() as u64 + within
        };
        let (from, to) = (step * STEP_MS, (step + 1) * STEP_MS);
        BitRate((before(to) - before(from)) * u64::from(OPPORTUNITY) * 8 * 1000 / STEP_MS)
    }

    /// Returns the time of opportunity `index` of the period that began at `base`.
    pub(crate) fn at(&self, base: Picos, index: usize) -> Picos {
        base.saturating_add(u64::from(self.stamps[index]) * PS_PER_MS)
    }

    /// Returns the number of opportunities up to `t`, with those at `t`.
    fn count(&self, t: Picos) -> u64 {
        // A period ends with its last opportunity; what is at 0 of the next one belongs to that.
        let (base, index) = self.first_after(t);
        base / self.period() * self.stamps.len() as u64 + index as u64
    }

    /// Returns the bytes of the opportunities after `from` and up to `to`.
    pub(crate) fn offered(&self, from: Picos, to: Picos) -> u64 {
        (self.count(to) - self.count(from)) * u64::from(OPPORTUNITY)
    }

    /// Returns the time of opportunity number `count`, from 1, of those after `from`.
    pub(crate) fn nth_after(&self, from: Picos, count: u64) -> Picos {
        let (base, first) = self.first_after(from);
        let (place, length) = (first as u64 + count.saturating_sub(1), self.stamps.len() as u64);
        self.at(
            base.saturating_add((place / length).saturating_mul(self.period())),
            (place % length) as usize,
        )
    }

    /// Returns the first opportunity after `t`, as the beginning of its period and its index there.
    pub(crate) fn first_after(&self, t: Picos) -> (Picos, usize) {
        let period = self.period();
        let base = t / period * period;
        // Less than the length: the last opportunity is at `base + period`, which is after `t`.
        (base, self.stamps.partition_point(|&stamp| u64::from(stamp) * PS_PER_MS <= t - base))
    }
}

/// Decimal digits only: no sign, no underscore, no fraction.
fn parse_u32(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u32, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_trace_offers_what_its_lines_say_also_across_its_end() {
        // 100 opportunities in the first 100 ms, 10 in the next 50 ms, which end the period.
        let mut stamps: Vec<u32> = (0..100).collect();
        stamps.extend((0..10).map(|n| 105 + 5 * n));
        let trace = Trace::new(stamps).unwrap();
        let packets = |step| trace.offers(step).0 / (1500 * 8 * 10);
        assert_eq!(packets(0), 100);
        // The 10, of which the last, at the period's end, counts with those before it, and 50 of the next.
        assert_eq!(packets(1), 10 + 50);
        let six_periods: u64 = (0..9).map(packets).sum();
        assert_eq!(six_periods, 6 * 110);
    }

    #[test]
    fn what_a_trace_offers_is_the_sum_of_its_opportunities() {
        let stamps = vec![0, 1, 3, 3, 7];
        let trace = Trace::new(stamps.clone()).unwrap();
        let all: Vec<u64> =
            (0..5).flat_map(|period| stamps.iter().map(move |at| period * 7 + u64::from(*at))).collect();
        for from in 0..30 {
            for to in from..30 {
                let within = all.iter().filter(|&&at| from < at && at <= to).count() as u64;
                assert_eq!(trace.offered(from * PS_PER_MS, to * PS_PER_MS), within * 1500, "{from} to {to}");
            }
        }
    }
}

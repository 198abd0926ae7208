//! How a link is shared between two classes: the weights that are asked for, and those that a program has.

use congestlab_core::law::queue::xcp_tcp::Dynamic;
use congestlab_core::units::Ratio;
use libbpf_rs::{MapCore, MapFlags};

use super::maps::{read, write};
use crate::error::{Error, Result};

/// Weights of the two classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// The numbers of flows of both classes, as a [`Follower`](super::Follower) counts them.
    Flows,
    /// XCP's part of the link, which stays.
    Fixed(Ratio),
}

impl Weights {
    /// The forms of [`Weights::parse`].
    pub const FORMS: &str = "allowed: flows, or XCP's part of the link from 0.05 to 0.95";

    /// Reads weights: `flows`, or XCP's part of the link.
    ///
    /// # Errors
    /// If it is neither, or a part that leaves one of the classes less than the least weight.
    pub fn parse(text: &str) -> Result<Self> {
        if text == "flows" {
            return Ok(Self::Flows);
        }
        let (Ratio(min), Ratio(max)) = (Dynamic::FLOWS.min, Dynamic::FLOWS.max);
        let part = text.parse::<f64>().ok().map(|part| (part * f64::from(Ratio::ONE.0)).round());
        match part.filter(|part| (f64::from(min)..=f64::from(max)).contains(part)) {
            Some(part) => Ok(Self::Fixed(Ratio::ppm(part as u32))),
            None => Err(Error::input(format!("`{text}` is no weight of XCP's class"), Self::FORMS)),
        }
    }

    /// XCP's part in the beginning.
    pub(super) fn first(self) -> Ratio {
        match self {
            Self::Flows => Ratio::ppm(Ratio::ONE.0 / 2),
            Self::Fixed(part) => part,
        }
    }

    /// As the program's configuration has them.
    pub(super) fn words(self) -> [u32; 2] {
        [self.first().0, u32::from(self == Self::Flows)]
    }
}

/// `struct classes` of `bpf/classes.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// XCP's part of the link.
    pub(super) weight: Ratio,
    /// Process that follows flows, and their numbers by the last census, all others' and XCP's.
    pub(super) pid: u32,
    pub(super) flows: [u32; 2],
}

impl Shares {
    pub(super) fn first(weights: Weights) -> Self {
        Self { weight: weights.first(), pid: 0, flows: [0; 2] }
    }

    pub(super) fn read(map: &impl MapCore) -> Result<Self> {
        let bytes = read(map, MapFlags::ANY)?;
        let word = |at: usize| {
            bytes.get(4 * at..4 * at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes)
        };
        Ok(Self { weight: Ratio::ppm(word(0)), pid: word(1), flows: [word(2), word(3)] })
    }

    pub(super) fn write(self, map: &impl MapCore) -> Result<()> {
        let words = [self.weight.0, self.pid, self.flows[0], self.flows[1]];
        write(map, 0, &words.map(u32::to_ne_bytes).concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_flows_or_a_part_and_all_else_is_refused() {
        assert_eq!(Weights::parse("flows").unwrap(), Weights::Flows);
        assert_eq!(Weights::parse("0.05").unwrap(), Weights::Fixed(Ratio::ppm(50_000)));
        assert_eq!(Weights::parse("0.3").unwrap(), Weights::Fixed(Ratio::ppm(300_000)));
        for text in ["", "0", "1", "0.04", "0.96", "NaN", "inf", "-0.5", "half", "windows", "0.5 0.5"] {
            let error = Weights::parse(text).unwrap_err();
            assert!(error.exit_code() == 2 && error.help() == Weights::FORMS, "{text}: {error}");
        }
    }
}

//! Codes of rates: code n is 100 kbit/s times 10^(n / 20), and 127 is none (draft-ietf-scone-protocol).

use crate::units::BitRate;

/// Code of a path on which nobody advises anything.
pub const UNKNOWN: u8 = 127;
/// Codes in which a rate grows by ten.
const DECADE: u8 = 20;
/// Rates of the codes from 120 on, b/s, rounded down; those before are a tenth, a hundredth and so on, rounded down again.
const TOP: [u64; DECADE as usize] = [
    100_000_000_000,
    112_201_845_430,
    125_892_541_179,
    141_253_754_462,
    158_489_319_246,
    177_827_941_003,
    199_526_231_496,
    223_872_113_856,
    251_188_643_150,
    281_838_293_126,
    316_227_766_016,
    354_813_389_233,
    398_107_170_553,
    446_683_592_150,
    501_187_233_627,
    562_341_325_190,
    630_957_344_480,
    707_945_784_384,
    794_328_234_724,
    891_250_938_133,
];

/// Rates of codes, b/s; 0: none. As many as a byte has values: the kernel's verifier follows no comparison that a compiler makes with
/// another copy of the code.
const RATES: [u64; 256] = {
    let mut rates = [0; 256];
    let mut code = 0;
    while code < UNKNOWN {
        let mut rate = TOP[(code % DECADE) as usize];
        let mut decade = code / DECADE;
        while decade < 6 {
            rate /= 10;
            decade += 1;
        }
        rates[code as usize] = rate;
        code += 1;
    }
    rates
};

/// Returns the rate of a code; `None`: it advises nothing.
#[inline]
pub const fn rate(code: u8) -> Option<BitRate> {
    match RATES[code as usize] {
        0 => None,
        rate => Some(BitRate(rate)),
    }
}

/// Returns the largest code whose rate is at most this one, 0 for rates below all.
#[inline]
pub const fn code(rate: BitRate) -> u8 {
    let (mut low, mut high) = (0, UNKNOWN);
    // Not above `low`, above `high`.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match self::rate(middle) {
            Some(BitRate(bits)) if bits <= rate.0 => low = middle,
            _ => high = middle,
        }
    }
    low
}

//! (1 + xi)^e in fixed point: 32 binary places, errors of some 2^-30.

use crate::units::{Ratio, mul_div};

/// 1.
pub(super) const ONE: u64 = 1 << 32;
/// ln 2.
const LN2: u64 = 2_977_044_472;
/// 1/3, 1/5 .. 1/17: of atanh's series, which for m < 2 ends below 2^-33.
const ODD: [u64; 8] = [
    252_645_135, // 1/17
    286_331_153,
    330_382_100,
    390_451_572,
    477_218_588,
    613_566_757,
    858_993_459,
    1_431_655_765, // 1/3
];
/// 1/10 .. 1/2: of the exponential's, which below ln 2 ends below 2^-30.
const INVERSE: [u64; 9] = [
    429_496_730,
    477_218_588,
    536_870_912,
    613_566_757,
    715_827_883,
    858_993_459,
    1_073_741_824,
    1_431_655_765,
    2_147_483_648,
];
/// The largest power: beyond, growth is limited anyhow.
const POWER_MAX: u64 = 20;

/// A ratio with 32 places.
#[inline]
pub(super) const fn fraction(ratio: Ratio) -> u64 {
    mul_div(ratio.0 as u64, ONE, Ratio::ONE.0 as u64)
}

/// ln (1 + xi).
#[inline]
pub(super) fn ln_1p(xi: u64) -> u64 {
    let y = ONE.saturating_add(xi);
    let power = 31 - y.leading_zeros().min(31);
    let m = y >> power; // 1 to below 2
    let s = ((m - ONE) << 32) / (m + ONE).max(1); // at most 1/3; said for the compiler, which fears 0
    let square = (s * s) >> 32;
    let mut sum = 0;
    for term in ODD {
        sum = term + ((sum * square) >> 32);
    }
    let sum = ONE + ((sum * square) >> 32);
    power as u64 * LN2 + 2 * ((s * sum) >> 32)
}

/// e^x - 1.
#[inline]
pub(super) fn exp_m1(x: u64) -> u64 {
    let power = (x / LN2).min(POWER_MAX);
    let r = if x / LN2 > POWER_MAX { 0 } else { x % LN2 };
    let mut sum = ONE;
    for term in INVERSE {
        // Below 2^32 times below 2^32, twice.
        sum = ONE + ((((r * (sum >> 1)) >> 31) * term) >> 32);
    }
    let less = (r * (sum >> 1)) >> 31;
    ((ONE + less) << power) - ONE
}

//! 128-bit arithmetic in two limbs.
//!
//! The laws also run as BPF, which multiplies 64 x 64 bits to 64 and divides 64 by 64, without a compiler routine to call for
//! more, and as WebAssembly, where each product would be such a call. There [`limbs`] does what `u128` does elsewhere.

/// An unsigned 128-bit number.
// Ordered by field order: the high limb decides first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct Wide {
    hi: u64,
    lo: u64,
}

// `always`: a BPF function cannot return two words, so none of these may be left standing.
impl Wide {
    /// Zero.
    pub const ZERO: Self = Self { hi: 0, lo: 0 };
    /// The largest value, which stands for everything above it.
    pub const MAX: Self = Self { hi: u64::MAX, lo: u64::MAX };

    /// Returns `a * b`, exact.
    #[inline(always)]
    pub const fn product(a: u64, b: u64) -> Self {
        #[cfg(any(target_arch = "bpf", target_arch = "wasm32"))]
        let (hi, lo) = limbs::product(a, b);
        #[cfg(not(any(target_arch = "bpf", target_arch = "wasm32")))]
        let (hi, lo) = {
            let product = a as u128 * b as u128;
            ((product >> 64) as u64, product as u64)
        };
        Self { hi, lo }
    }

    /// Returns `value * 2^places`, saturating. `places` below 128.
    #[inline(always)]
    pub const fn shifted(value: u64, places: u32) -> Self {
        if places == 0 {
            Self { hi: 0, lo: value }
        } else if places < 64 {
            Self { hi: value >> (64 - places), lo: value << places }
        } else if value.leading_zeros() >= places - 64 {
            // Masked, because `places` 128 and more is the caller's bug and must not panic here.
            Self { hi: value.wrapping_shl(places - 64), lo: 0 }
        } else {
            Self::MAX
        }
    }

    /// Returns `self + value`, saturating.
    #[inline(always)]
    pub const fn plus(self, value: u64) -> Self {
        let (lo, carry) = self.lo.overflowing_add(value);
        if carry && self.hi == u64::MAX {
            return Self::MAX;
        }
        Self { hi: self.hi.wrapping_add(carry as u64), lo }
    }

    /// Returns `self + other`, saturating.
    #[inline(always)]
    pub const fn sum(self, other: Self) -> Self {
        let low = self.plus(other.lo);
        match low.hi.checked_add(other.hi) {
            Some(hi) => Self { hi, lo: low.lo },
            None => Self::MAX,
        }
    }

    /// Returns `self - other`, or zero if that is more.
    #[inline(always)]
    pub const fn minus(self, other: Self) -> Self {
        if other.is_at_most(self) == 0 {
            return Self::ZERO;
        }
        let (lo, borrow) = self.lo.overflowing_sub(other.lo);
        Self { hi: self.hi.wrapping_sub(other.hi).wrapping_sub(borrow as u64), lo }
    }

    /// Returns 1 if `self <= other`, else 0, without a branch: a loop that branches on it has as many ways through it as values
    /// can come out, and the kernel's verifier goes them all.
    #[inline(always)]
    pub const fn is_at_most(self, other: Self) -> u64 {
        // What a subtraction of `b` from `a` borrows.
        const fn borrow(a: u64, b: u64, difference: u64) -> u64 {
            ((!a & b) | ((!a | b) & difference)) >> 63
        }
        let low = borrow(other.lo, self.lo, other.lo.wrapping_sub(self.lo));
        let difference = other.hi.wrapping_sub(self.hi);
        1 - borrow(other.hi, self.hi, difference.wrapping_sub(low))
    }

    /// Returns `self * 2^32`, saturating.
    #[inline(always)]
    pub const fn times_2_32(self) -> Self {
        if self.hi >> 32 != 0 {
            return Self::MAX;
        }
        Self { hi: (self.hi << 32) | (self.lo >> 32), lo: self.lo << 32 }
    }

    /// Returns `self / divisor`, rounded down; the largest value for divisor 0.
    #[inline(always)]
    pub const fn over(self, divisor: u64) -> Self {
        if divisor == 0 {
            return Self::MAX;
        }
        // Mostly there is no high part, and a division is what costs here.
        let hi = if self.hi < divisor { 0 } else { self.hi / divisor };
        let rest = self.hi - hi * divisor;
        #[cfg(any(target_arch = "bpf", target_arch = "wasm32"))]
        let lo = limbs::quotient(rest, self.lo, divisor);
        #[cfg(not(any(target_arch = "bpf", target_arch = "wasm32")))]
        let lo = if rest == 0 {
            self.lo / divisor
        } else {
            (((rest as u128) << 64 | self.lo as u128) / divisor as u128) as u64
        };
        Self { hi, lo }
    }

    /// Returns the value if it fits, else the largest that does.
    #[inline(always)]
    pub const fn to_u64(self) -> u64 {
        if self.hi == 0 { self.lo } else { u64::MAX }
    }
}

/// 128-bit arithmetic from 64-bit words. Public for the tests, which hold it against `u128`.
pub mod limbs {
    /// Low half of a limb.
    const LOW: u64 = 0xffff_ffff;

    /// Returns the high and the low limb of `a * b`.
    #[inline(always)]
    pub const fn product(a: u64, b: u64) -> (u64, u64) {
        let (a1, a0, b1, b0) = (a >> 32, a & LOW, b >> 32, b & LOW);
        let low = a0 * b0;
        let inner = a0 * b1 + (low >> 32); // at most (2^32-1)^2 + 2^32-1: fits
        let outer = a1 * b0 + (inner & LOW);
        (a1 * b1 + (inner >> 32) + (outer >> 32), (outer << 32) | (low & LOW))
    }

    /// Returns `(hi * 2^64 + lo) / divisor` for `hi < divisor`: two digits of 32 bits, each guessed from the
    /// divisor's upper half and corrected at most twice (Knuth, TAOCP 2, 4.3.1 D).
    pub const fn quotient(hi: u64, lo: u64, divisor: u64) -> u64 {
        if divisor == 0 {
            return u64::MAX; // said again for the compiler, which sees this function alone
        }
        if hi == 0 {
            return lo / divisor;
        }
        let shift = divisor.leading_zeros();
        let d = divisor << shift;
        // In two steps, because a shift by 64 (shift = 0) is no shift.
        let high = (hi << shift) | ((lo >> 1) >> (63 - shift));
        let low = lo << shift;
        let q1 = digit(high, low >> 32, d);
        let rest = ((high << 32) | (low >> 32)).wrapping_sub(q1.wrapping_mul(d));
        let q0 = digit(rest, low & LOW, d);
        (q1 << 32) | q0
    }

    /// One digit of [`quotient`]: `(n * 2^32 + next) / d` for `n < d`, with the top bit of `d` set.
    #[inline(always)]
    const fn digit(n: u64, next: u64, d: u64) -> u64 {
        let (d1, d0) = (d >> 32 | 1 << 31, d & LOW); // the set bit again, to show that d1 is not 0
        let mut q = n / d1;
        let mut r = n - q * d1;
        if q > LOW || q * d0 > (r << 32 | next) {
            q -= 1;
            r += d1;
            if r <= LOW && (q > LOW || q * d0 > (r << 32 | next)) {
                q -= 1;
            }
        }
        q
    }
}

//! Windows in parts of a byte, as laws of TCP's family keep them.

use crate::units::{Bytes, Wide};

/// Binary places of windows: growth per ACK is far below a byte at times.
pub(super) const PLACES: u32 = 16;

/// No segment is longer: it keeps products with it inside 64 bits.
pub(super) const SEGMENT_MAX: Bytes = Bytes(u32::MAX as u64);

/// Bytes with [`PLACES`].
#[inline(always)]
pub(super) fn with_places(bytes: Bytes) -> u64 {
    Wide::shifted(bytes.0, PLACES).to_u64()
}

/// The bytes of a threshold with [`PLACES`]; the largest one is none.
#[inline]
pub(super) fn bytes(places: u64) -> Bytes {
    if places == u64::MAX { Bytes(u64::MAX) } else { Bytes(places >> PLACES) }
}

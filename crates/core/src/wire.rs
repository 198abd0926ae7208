//! Headers as bytes.

pub mod option;
pub mod xcp;

//! Headers as bytes.

pub mod xcp;

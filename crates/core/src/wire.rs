//! Headers as bytes.

pub mod option;
pub mod xcp;
pub mod xcp_extended;

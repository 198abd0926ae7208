//! Wire formats: headers as bytes.

pub mod option;
pub mod segment;
pub mod xcp;
pub mod xcp_extended;

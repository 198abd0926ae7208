//! XCP's congestion header.

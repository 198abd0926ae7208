//! The congestlab command.
#[cfg_attr(not(test), expect(dead_code, reason = "temporary"))]
mod plot;
fn main() {}

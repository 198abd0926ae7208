//! The congestlab command.

fn main() {}

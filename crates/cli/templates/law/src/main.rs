//! Every command of congestlab, with this law on its list.

use std::process::ExitCode;

fn main() -> ExitCode {
    congestlab::main_with(law::protocols())
}

//! The congestlab command.

use std::process::ExitCode;

fn main() -> ExitCode {
    congestlab::main()
}

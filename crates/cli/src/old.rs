//! Commands under the names that they had in version 0.1.

use crate::args::{ExportCommand, OldCommand, OldSconeCommand};
use crate::compare;
use crate::export;
use crate::failure::{Failure, warn};
#[cfg(feature = "linux")]
use crate::linux;
#[cfg(not(feature = "linux"))]
use crate::no_linux as linux;
use crate::output::Screen;

/// Names the new command, and does what the old one did.
pub(crate) fn execute(command: OldCommand, screen: &Screen) -> Result<(), Failure> {
    let [old, new] = command.names();
    warn(
        "input::renamed",
        &format!("`congestlab {old}` is `congestlab {new}` now; the old name goes with version 0.3"),
        screen,
    );
    match command {
        OldCommand::Diff(arguments) => compare::exact(
            [&arguments.one, &arguments.other],
            arguments.tolerance,
            arguments.all,
            arguments.check,
            screen,
        ),
        OldCommand::Plot(arguments) => export::export(&ExportCommand::Figure(arguments), screen),
        OldCommand::Wireshark(command) => export::export(&ExportCommand::Wireshark(command), screen),
        OldCommand::Schema => export::export(&ExportCommand::Schema, screen),
        OldCommand::Completions { shell } => export::export(&ExportCommand::Completions { shell }, screen),
        OldCommand::Man(arguments) => export::export(&ExportCommand::Man(arguments), screen),
        OldCommand::Doctor(arguments) => linux::check(&linux::CheckCommand::Machine(arguments), screen),
        OldCommand::Scone(OldSconeCommand::Test(arguments)) => {
            linux::check(&linux::CheckCommand::Scone(arguments), screen)
        }
    }
}

//! The commands that run on real packets: a router, this machine's own connections, links, live labs, gateways, a tester.

mod apply;
mod args;
mod gateway;
mod host;
mod link;
mod live;
mod machine;
mod metrics;
mod router;
mod scone;

use std::process::ExitCode;

use congestlab_lab as lab;
use congestlab_linux::{Error, supervisor};

pub(crate) use args::{CheckCommand, Command, MachineArguments};
pub(crate) use congestlab_linux::router::law_name;
pub(crate) use scone::SconeArguments;

use crate::failure::{Failure, Message};
use crate::output::Screen;

/// The status is that of the command which `link` runs; the others end well or fail.
pub(crate) fn execute(command: &Command, screen: &Screen) -> Result<ExitCode, Failure> {
    match command {
        Command::Link(arguments) => return link::link(arguments, screen),
        Command::Live(command) => live::live(command, screen)?,
        Command::Endpoint => lab::endpoint::run()?,
        Command::Enter { group, command } => lab::apps::enter(group, command)?,
        Command::Supervise { id } => supervisor::supervise(id)?,
        Command::Router(command) => router::router(command, screen)?,
        Command::Apply(arguments) => apply::apply(arguments, screen)?,
        Command::Host(command) => host::host(command, screen)?,
        Command::Gateway(command) => gateway::gateway(command, screen)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks what runs on real packets.
pub(crate) fn check(command: &CheckCommand, screen: &Screen) -> Result<(), Failure> {
    match command {
        CheckCommand::Machine(arguments) => machine::machine(arguments, screen),
        CheckCommand::Scone(arguments) => scone::scone(arguments, screen),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = Message::new(error.to_string(), error.help());
        match error.exit_code() {
            2 => Self::Input(message),
            4 => Self::Missing(message),
            130 => Self::Interrupted(message.text),
            _ => Self::Run(message),
        }
    }
}

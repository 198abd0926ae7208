//! Stand-ins for the commands of `linux` in a build without that feature: each says what the build lacks.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::{Failure, Message};
use crate::output::Screen;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command, or your shell, behind an emulated link (not in this build)
    #[command(disable_help_flag = true)]
    Link(Anything),
    /// Run a scenario with real TCP in network namespaces (not in this build)
    #[command(disable_help_flag = true)]
    Live(Anything),
    /// Run XCP on the outgoing traffic of an interface (not in this build)
    #[command(disable_help_flag = true)]
    Router(Anything),
    /// Use XCP on this machine's own connections (not in this build)
    #[command(disable_help_flag = true)]
    Host(Anything),
    /// Give this machine the routers and the host of a file (not in this build)
    #[command(disable_help_flag = true)]
    Apply(Anything),
    /// Split TCP connections at a satellite link (not in this build)
    #[command(disable_help_flag = true)]
    Gateway(Anything),
}

#[derive(Debug, Subcommand)]
pub(crate) enum CheckCommand {
    /// Check what this machine can do with real packets (not in this build)
    #[command(disable_help_flag = true)]
    Machine(Anything),
    /// Check elements that lower the codes of SCONE (not in this build)
    #[command(disable_help_flag = true)]
    Scone(Anything),
}

#[cfg(not(feature = "linux"))]
pub(crate) use Anything as MachineArguments;
#[cfg(not(feature = "linux"))]
pub(crate) use Anything as SconeArguments;

/// Arguments of a command that is not in this build.
#[derive(Debug, Args)]
pub(crate) struct Anything {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn law_name() -> &'static str {
    "none, this build only simulates"
}

pub(crate) fn execute(command: &Command, _screen: &Screen) -> Result<ExitCode, Failure> {
    let name = match command {
        Command::Link(_) => "link",
        Command::Live(_) => "live",
        Command::Router(_) => "router",
        Command::Host(_) => "host",
        Command::Apply(_) => "apply",
        Command::Gateway(_) => "gateway",
    };
    Err(missing(name))
}

pub(crate) fn check(command: &CheckCommand, _screen: &Screen) -> Result<(), Failure> {
    Err(missing(match command {
        CheckCommand::Machine(_) => "check machine",
        CheckCommand::Scone(_) => "check scone",
    }))
}

fn missing(name: &str) -> Failure {
    Failure::Missing(Message::new(
        format!("`congestlab {name}` is not in this build, which only simulates"),
        "on Linux, install pkg-config and the headers of libelf and zlib (Debian: libelf-dev, zlib1g-dev), \
         then `make install` again",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Common;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
        #[command(flatten)]
        common: Common,
    }

    /// Help, too: what there would be to know of them is not in this build.
    #[test]
    fn whatever_they_are_told_they_say_with_status_4_what_is_missing() {
        for words in [
            "link --rate 12Mbit/s -- ping -c 1 10.0.0.1",
            "live run scenarios/live/first.toml --json",
            "router attach eth0 --law xcp",
            "router set eth0 --rate 1Gbit/s",
            "router --help",
            "host status",
            "apply --watch /etc/congestlab/apply.toml",
            "gateway run --satellite sat0 --law xcp",
        ] {
            let line = Line::try_parse_from(["congestlab"].into_iter().chain(words.split(' ')));
            let line = line.expect(words);
            let failure = execute(&line.command, &line.common.screen()).expect_err(words);
            assert_eq!(failure.exit_code(), 4, "{words}");
            let Failure::Missing(message) = failure else { panic!("{words}: {failure:?}") };
            let name = words.split(' ').next().unwrap_or_default();
            assert!(message.text.contains(name) && message.help.contains("libelf-dev"), "{message:?}");
        }
    }

    #[test]
    fn checks_of_real_packets_say_so_too() {
        #[derive(Parser)]
        struct Line {
            #[command(subcommand)]
            command: CheckCommand,
        }
        for words in ["scone 10.0.2.2:4433", "machine", "machine -h"] {
            let line = Line::try_parse_from(["check"].into_iter().chain(words.split(' '))).expect(words);
            let Failure::Missing(message) =
                check(&line.command, &Screen::new(false, true, false)).expect_err(words)
            else {
                panic!("{words}")
            };
            assert!(
                message.text.contains("`congestlab check ") && message.help.contains("libelf-dev"),
                "{message:?}"
            );
        }
    }

    #[cfg(feature = "linux")]
    #[test]
    fn they_are_those_of_the_whole_command() {
        let names = |command: clap::Command| {
            let shown = command.get_subcommands().filter(|each| !each.is_hide_set());
            shown.map(|each| each.get_name().to_owned()).collect::<Vec<_>>()
        };
        let all = names(crate::linux::Command::augment_subcommands(clap::Command::new("all")));
        assert_eq!(names(Command::augment_subcommands(clap::Command::new("none"))), all);
        assert_ne!(law_name(), crate::linux::law_name());
    }
}

//! Failures of commands: the exit codes of docs/design/contract.md 5, and their messages for people and programs.

use std::fmt::Write as _;

use clap::error::ErrorKind;
use congestlab_scenario::diagnostic::{Diagnostic, Severity};
use congestlab_scenario::folder::FolderError;
use congestlab_scenario::paper::PaperError;
use congestlab_scenario::{Diagnostics, printable};
use miette::{GraphicalReportHandler, GraphicalTheme};
use serde_json::{Value, json};

use crate::args;
use crate::screen::{Screen, say, say_coloured};

/// Every way to fail.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The machine or a file let us down while running.
    Run(Message),
    /// A scenario is wrong.
    Scenario(Diagnostics),
    /// Something else that was asked for is wrong.
    Input(Message),
    /// A claim or check does not hold.
    Claim(Message),
    /// This machine has not the memory for a scenario.
    Memory(Diagnostics),
    /// This machine, or this build, has not what was asked for.
    Missing(Message),
    /// A run took several times what was estimated for it.
    Exceeded(Message),
    /// Somebody pressed Ctrl-C.
    Interrupted(String),
    /// Whoever read our output has enough.
    ReaderGone,
}

/// A message: the problem, and advice on what to do instead.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) text: String,
    pub(crate) help: String,
}

impl Message {
    pub(crate) fn new(text: impl Into<String>, help: impl Into<String>) -> Self {
        Self { text: text.into(), help: help.into() }
    }
}

impl Failure {
    /// A file that can not be written.
    pub(crate) fn write(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Run(Message::new(format!("can not write {}: {error}", path.display()), ""))
    }

    /// The folder of a run that can not be used.
    pub(crate) fn folder(error: FolderError) -> Self {
        let help = match error {
            FolderError::NoFolder(_) | FolderError::File(_) | FolderError::NotARun(_) => {
                "give a folder that `congestlab run FILE --out DIR` made"
            }
            FolderError::Unreadable { .. } => "",
            FolderError::OtherVersion { .. } => "run its scenario again with --out, or use that version",
            _ => "run its scenario again with --out",
        };
        Self::Input(Message::new(error.to_string(), help))
    }

    /// The folder of a paper that can not be used.
    pub(crate) fn paper(error: PaperError) -> Self {
        let text = error.to_string();
        let help = match error {
            PaperError::Scenario(diagnostics) => return Self::Scenario(diagnostics),
            PaperError::NoFigure { choices, .. } => choices,
            PaperError::ShowsNothing(_) | PaperError::Lacks { .. } => "see docs/papers.md".into(),
            PaperError::NoAbout(_) | PaperError::Wrong { .. } => String::new(),
        };
        Self::Input(Message::new(text, help))
    }

    /// docs/design/contract.md 5.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Run(_) => 1,
            Self::Scenario(_) | Self::Input(_) => 2,
            Self::Claim(_) => 3,
            Self::Memory(_) | Self::Missing(_) | Self::Exceeded(_) => 4,
            Self::Interrupted(_) => 130,
            Self::ReaderGone => 0,
        }
    }

    /// Says it on stderr.
    pub(crate) fn tell(&self, screen: &Screen) {
        let (code, message) = match self {
            Self::Scenario(diagnostics) | Self::Memory(diagnostics) => {
                return tell_diagnostics(diagnostics, screen);
            }
            Self::Run(message) => ("run::failed", message),
            Self::Input(message) => ("input::invalid", message),
            Self::Claim(message) => ("check::failed", message),
            Self::Missing(message) => ("machine::missing", message),
            Self::Exceeded(message) => ("run::exceeded", message),
            Self::Interrupted(text) => ("run::interrupted", &Message::new(text, "")),
            Self::ReaderGone => return,
        };
        if screen.json {
            let diagnostic =
                json!({ "severity": "error", "code": code, "message": message.text, "help": message.help });
            say_json(json!([diagnostic]));
        } else {
            let mut text = format!("error: {}", cut(&message.text));
            if !message.help.is_empty() {
                let _ = write!(text, "; {}", cut(&message.help));
            }
            say(&text);
        }
    }
}

/// Each line as long as a message may be.
fn cut(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(|line| printable::line(line, printable::MESSAGE)).collect();
    lines.join("\n")
}

/// Draws findings on a terminal; elsewhere one line for each, `file:line:column` first.
pub(crate) fn tell_diagnostics(diagnostics: &Diagnostics, screen: &Screen) {
    if screen.json {
        return say_json(diagnostics.to_json());
    }
    for diagnostic in diagnostics.iter() {
        match screen.is_terminal.then(|| drawn(diagnostic, screen)).flatten() {
            Some(text) => say_coloured(&text),
            None => say(&in_a_line(diagnostic)),
        }
    }
}

/// With the place in the file; `None`: the file is not to be looked at.
fn drawn(diagnostic: &Diagnostic, screen: &Screen) -> Option<String> {
    let theme = if screen.color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_width(screen.width);
    let mut text = String::new();
    // Writing to a string fails in no way.
    let _ = handler.render_report(&mut text, diagnostic.report()?.as_ref());
    Some(text.trim_end().to_owned())
}

fn in_a_line(diagnostic: &Diagnostic) -> String {
    let severity = match diagnostic.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    format!("{severity}: {diagnostic}")
}

/// Says what is wrong with the arguments, in clap's words: the first paragraph is the mistake, the others are what is
/// allowed. Clap quotes arguments as they are.
pub(crate) fn tell_usage(error: &clap::Error, as_json: bool) {
    let text = error.render().to_string();
    let allowed = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
            format!("allowed: {}", args::allowed(words).join(", "))
        }
        _ => String::new(),
    };
    if !as_json {
        let is_printable = |argument: &str| printable::line(argument, printable::MESSAGE) == argument;
        let are_printable = std::env::args_os().all(|argument| is_printable(&argument.to_string_lossy()));
        // Clap's own has colours.
        if are_printable {
            drop(error.print());
        } else {
            say(cut(&text).trim_end());
        }
        if !allowed.is_empty() {
            say(&allowed);
        }
        return;
    }
    let (message, help) = text.split_once("\n\n").unwrap_or((&text, ""));
    let message = message.trim().trim_start_matches("error: ");
    say_json(json!([
        { "severity": "error", "code": "input::usage", "message": message, "help": format!("{}\n{allowed}", help.trim()).trim() }
    ]));
}

/// Warns of something that is not in a scenario, unless the caller wants silence.
pub(crate) fn warn(code: &str, text: &str, screen: &Screen) {
    if screen.json && !screen.quiet {
        let warning = json!({ "severity": "warning", "code": code, "message": text, "help": "" });
        say_json(json!([warning]));
    } else {
        screen.note(&format!("warning: {}", cut(text)));
    }
}

/// One line, so that a program can read one object a line.
fn say_json(diagnostics: Value) {
    say(&printable::json(json!({ "diagnostics": diagnostics }).to_string()));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use congestlab_scenario::Scenario;

    use super::*;

    /// A drawn file shows its lines, and does nothing that they would do to a terminal.
    #[test]
    fn a_drawn_line_is_printable_and_of_a_length_that_can_be_read() {
        let screen =
            Screen { json: false, quiet: false, verbose: false, color: false, is_terminal: true, width: 80 };
        let found = |comment: &str| {
            let text = format!("[run]\nduration = 3 # {comment}\n");
            let found = Scenario::parse("x.toml", &text, Path::new(""), &[], None).expect_err("wrong");
            let first = found.iter().find(|one| one.message().contains("run.duration")).expect("the type");
            drawn(first, &screen)
        };
        let text = found("\u{202e}\u{200b}").expect("short enough");
        assert!(text.contains("duration = 3 # \u{fffd}\u{fffd}") && text.contains("here"), "{text}");
        assert_eq!(found(&"x".repeat(1000)), None);
    }
}

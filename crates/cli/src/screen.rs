//! Words and progress on stderr; nothing panics when it is closed.

use std::io::{self, IsTerminal, Write};

use congestlab_scenario::printable;

use crate::machine::{self, Clock};

/// Form of output that the user asked for, and what the terminal can show.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    pub(crate) color: bool,
    /// stderr is one.
    pub(crate) is_terminal: bool,
    /// Columns.
    pub(crate) width: usize,
}

impl Screen {
    /// Makes one for the terminal of this process. It has colours if the terminal has some and `NO_COLOR` is empty.
    pub(crate) fn new(json: bool, quiet: bool, verbose: bool) -> Self {
        let is_terminal = io::stderr().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let columns = machine::columns();
        Self {
            json,
            quiet,
            verbose,
            color: is_terminal && !no_color,
            is_terminal,
            width: if columns == 0 { 80 } else { columns.into() },
        }
    }

    /// Says a line unless the caller wants silence.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }

    /// Says a line to a caller who wants to know more.
    pub(crate) fn detail(&self, text: &str) {
        if self.verbose {
            say(text);
        }
    }

    /// A progress line on a terminal, nothing elsewhere.
    pub(crate) fn progress(&self) -> Progress {
        Progress { enabled: self.is_terminal && !self.quiet, clock: Clock::start(), next: FIRST, shown: 0 }
    }
}

/// A line on stderr. A closed stderr is no reason to stop.
pub(crate) fn say(text: &str) {
    say_coloured(&printable::lines(text));
}

/// The same of a text that has colours, and nothing else that a terminal would obey.
pub(crate) fn say_coloured(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Seconds until a progress line is worth showing, and between two of them.
const FIRST: f64 = 0.4;
const STEP: f64 = 0.1;

/// A line that overwrites itself.
#[derive(Debug)]
pub(crate) struct Progress {
    enabled: bool,
    clock: Clock,
    next: f64,
    /// Characters on the screen.
    shown: usize,
}

impl Progress {
    /// Shows the line if it is time to.
    pub(crate) fn tell(&mut self, line: impl FnOnce(f64) -> String) {
        if !self.enabled {
            return;
        }
        let elapsed = self.clock.wall();
        if elapsed < self.next {
            return;
        }
        self.next = elapsed + STEP;
        let line = line(elapsed);
        let line = printable::line(&line, printable::CELL);
        let count = line.chars().count();
        let _ = write!(io::stderr(), "\r{line}{}", " ".repeat(self.shown.saturating_sub(count)));
        self.shown = count;
    }

    /// Takes it away.
    pub(crate) fn clear(&mut self) {
        if self.shown > 0 {
            let _ = write!(io::stderr(), "\r{}\r", " ".repeat(self.shown));
            self.shown = 0;
        }
    }
}

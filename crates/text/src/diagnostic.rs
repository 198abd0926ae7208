//! Errors and warnings about a scenario, or another file of the language: the problem, its place, and what is allowed instead.
//!
//! A [`Diagnostic`] points at a place in the file or in a `--set` argument; `Display` is one line, `miette`
//! draws it with the source, [`Diagnostics::to_json`] is for programs.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use miette::{LabeledSpan, NamedSource, SourceCode, SourceSpan};
use serde_json::{Value, json};

use crate::printable;

/// The text that spans point into: the file first, then one for each override.
pub type Sources = Vec<Arc<NamedSource<String>>>;

/// Where something was written, in bytes of one of the [`Sources`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Index in [`Sources`].
    pub source: usize,
    /// First byte.
    pub start: usize,
    /// Byte behind the last one.
    pub end: usize,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The run is refused.
    Error,
    /// The run goes ahead.
    Warning,
}

/// One error or warning, with its place.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    severity: Severity,
    code: &'static str,
    message: String,
    label: String,
    help: String,
    source: Arc<NamedSource<String>>,
    span: SourceSpan,
    /// How many findings it stands for: one, if it is not the last word of a long list.
    findings: usize,
}

impl Diagnostic {
    /// Returns its severity.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// Returns the class of the finding, such as `scenario::unit`.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the problem: one clause that names the offending value.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the values that are allowed instead; may be empty.
    pub fn help(&self) -> &str {
        &self.help
    }

    /// Returns the name of the file, or `--set`.
    pub fn file(&self) -> &str {
        self.source.name()
    }

    /// Returns line and column, both from 1; columns count characters.
    pub fn position(&self) -> (usize, usize) {
        let before = &self.source.inner()[..self.span.offset()];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// Returns the finding for `miette` to draw, with the lines around the place; `None` if they are too long
    /// to be read.
    pub fn report(&self) -> Option<miette::Report> {
        // One line before and one behind are drawn.
        let text = self.source.inner();
        let at = self.span.offset();
        let start = text[..at].rmatch_indices('\n').nth(1).map_or(0, |(newline, _)| newline + 1);
        let end = text[at + self.span.len()..].match_indices('\n').nth(1);
        let end = end.map_or(text.len(), |(newline, _)| at + self.span.len() + newline);
        let drawn = &text[start..end];
        if drawn.lines().count() > LINES_DRAWN_MAX || drawn.lines().any(|line| line.len() > LINE_DRAWN_MAX) {
            return None;
        }
        let name = printable::line(self.file(), printable::CELL);
        let source = Arc::new(NamedSource::new(name, printable::masked(text).into_owned()));
        Some(miette::Report::new(Drawn(Self { source, ..self.clone() })))
    }

    /// Says the same of the same place.
    fn is_same(&self, other: &Self) -> bool {
        self.span == other.span && self.message == other.message && self.source.name() == other.source.name()
    }

    /// Returns an object with `severity`, `code`, `message`, `file`, `line`, `column`, `label`, `help`.
    pub fn to_json(&self) -> Value {
        let (line, column) = self.position();
        json!({
            "severity": match self.severity { Severity::Error => "error", Severity::Warning => "warning" },
            "code": self.code,
            "message": self.message,
            "file": self.file(),
            "line": line,
            "column": column,
            "label": self.label,
            "help": self.help,
        })
    }
}

/// Lines of a file that are drawn around a place, and bytes of each: more would bury what is said of it.
const LINES_DRAWN_MAX: usize = 40;
const LINE_DRAWN_MAX: usize = 500;

/// `file:line:column: message; help`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.position();
        let file = printable::line(self.file(), printable::MESSAGE);
        write!(f, "{file}:{line}:{column}: {}", self.message)?;
        if !self.help.is_empty() {
            write!(f, "; {}", self.help)?;
        }
        Ok(())
    }
}

/// The cause that `miette` reports: the message alone, because it draws the rest.
#[derive(Debug)]
struct Drawn(Diagnostic);

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Drawn {}

impl miette::Diagnostic for Drawn {
    fn code(&self) -> Option<Box<dyn fmt::Display + '_>> {
        Some(Box::new(self.0.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.0.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        (!self.0.help.is_empty()).then(|| Box::new(&self.0.help) as _)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&*self.0.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(Some(self.0.label.clone()), self.0.span);
        Some(Box::new(std::iter::once(label)))
    }
}

/// Findings in the order of the file: at most [`Diagnostics::LIMIT`] errors and as many warnings, each
/// followed by the number of those that are not told.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Most findings of one severity that are told.
    pub const LIMIT: usize = 50;

    /// Returns the findings that are not among the others.
    pub fn without(mut self, others: &Self) -> Self {
        self.0.retain(|one| !others.0.iter().any(|other| other.is_same(one)));
        self
    }

    /// Returns the same findings as warnings, which refuse no run.
    pub fn as_warnings(&self) -> Self {
        let warn = |diagnostic: &Diagnostic| Diagnostic { severity: Severity::Warning, ..diagnostic.clone() };
        Self(self.0.iter().map(warn).collect())
    }

    /// Iterates over the findings.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Returns true if there are no findings.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns an array of the findings, each as by [`Diagnostic::to_json`].
    pub fn to_json(&self) -> Value {
        self.0.iter().map(Diagnostic::to_json).collect()
    }
}

/// One line for each.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// Errors and warnings: the first of each are told, all are counted, and none displaces one of the other severity.
#[derive(Debug, Default)]
struct Found {
    errors: Told,
    warnings: Told,
}

/// Findings of one severity.
#[derive(Debug, Default)]
struct Told {
    first: Vec<(Span, Diagnostic)>,
    /// The first that was one too many, and how many they are from there on.
    rest: Option<Diagnostic>,
}

impl Found {
    fn of(&mut self, severity: Severity) -> &mut Told {
        match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        }
    }

    /// Everything, in the order of the text.
    fn told(self) -> Diagnostics {
        let mut first: Vec<_> = self.errors.first.into_iter().chain(self.warnings.first).collect();
        first.sort_by_key(|(span, _)| (span.source, span.start));
        let rest =
            [self.errors.rest.map(|rest| (rest, "error")), self.warnings.rest.map(|rest| (rest, "warning"))];
        let rest = rest.into_iter().flatten().map(|(rest, what)| Diagnostic {
            code: "scenario::more",
            message: format!(
                "and {} more {what}{}",
                rest.findings,
                if rest.findings == 1 { "" } else { "s" }
            ),
            label: "from here on".into(),
            help: format!("the first {} are told", Diagnostics::LIMIT),
            ..rest
        });
        Diagnostics(first.into_iter().map(|(_, diagnostic)| diagnostic).chain(rest).collect())
    }
}

impl Told {
    fn add(&mut self, span: Span, diagnostic: Diagnostic) {
        match &mut self.rest {
            Some(rest) => rest.findings += diagnostic.findings,
            None if self.first.len() < Diagnostics::LIMIT && diagnostic.findings == 1 => {
                self.first.push((span, diagnostic));
            }
            rest @ None => *rest = Some(diagnostic),
        }
    }
}

/// The kind of file that findings are about unless they are told another.
pub const DOCUMENT: &str = "a scenario";

/// The findings made while a scenario is read.
#[derive(Debug)]
pub struct Findings {
    /// The text, and that of each override.
    pub sources: Sources,
    /// The kind of the file, with its article.
    pub document: &'static str,
    found: Found,
    /// Findings in `[sweep]` and `[[claims]]`, which a single run ignores (docs/design/contract.md 1).
    plan: Found,
    /// Places and messages of what was found elsewhere.
    absorbed: BTreeSet<((String, usize), String)>,
    /// Keys and names from the root of the file to what is being read.
    pub at: Vec<String>,
    /// Laws are allowed that only a kernel has.
    pub is_live: bool,
    /// Keys whose value could not be read: they are not missing as well.
    unreadable: BTreeSet<String>,
}

impl Findings {
    /// No findings yet, about these texts.
    pub fn new(sources: Sources) -> Self {
        Self {
            sources,
            document: DOCUMENT,
            found: Found::default(),
            plan: Found::default(),
            absorbed: BTreeSet::new(),
            at: Vec::new(),
            is_live: false,
            unreadable: BTreeSet::new(),
        }
    }

    /// Keys from the root to what is being read.
    pub fn place(&self) -> String {
        self.at.join(".")
    }

    /// The value of what is being read has a finding of its own.
    pub fn set_unreadable(&mut self) {
        self.unreadable.insert(self.place());
    }

    /// True if this key of what is being read, or a key below it, has such a finding.
    pub fn is_unreadable(&self, key: &str) -> bool {
        let mut key = format!("{}.{key}", self.place());
        if self.unreadable.contains(&key) {
            return true;
        }
        key.push('.');
        self.unreadable.range(key.clone()..).next().is_some_and(|other| other.starts_with(&key))
    }

    /// Takes over what was found elsewhere, once.
    pub fn absorb(&mut self, others: Diagnostics) {
        for other in others.0 {
            let place = (other.source.name().to_owned(), other.span.offset());
            if self.absorbed.insert((place, other.message.clone())) {
                self.found.of(other.severity).add(Span::default(), other);
            }
        }
    }

    /// Refuses the scenario. What is said about it is put into words only if it is told.
    pub fn error(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add(Severity::Error, code, span, message, help);
    }

    /// Says what may surprise.
    pub fn warning(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add(Severity::Warning, code, span, message, help);
    }

    fn add(
        &mut self,
        severity: Severity,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let is_plan = self.at.first().is_some_and(|key| ["sweep", "claims"].contains(&key.as_str()));
        let found = if is_plan { &mut self.plan } else { &mut self.found }.of(severity);
        if let Some(rest) = &mut found.rest {
            rest.findings += 1;
            return;
        }
        let source = Arc::clone(&self.sources[span.source]);
        let text = source.inner();
        let start = floor_boundary(text, span.start);
        let end = floor_boundary(text, span.end).max(start);
        let label = match code {
            "scenario::missing" => "in this table",
            _ => "here",
        };
        // Both quote what is written there, however long and whatever it would do to a terminal.
        let told = |text: &str| printable::line(text, printable::MESSAGE).into_owned();
        let diagnostic = Diagnostic {
            severity,
            code,
            message: told(&message.into()),
            label: label.into(),
            help: told(&help.into()),
            source,
            span: (start, end - start).into(),
            findings: 1,
        };
        found.add(span, diagnostic);
    }

    /// Takes what was found below `[sweep]` and `[[claims]]`.
    pub fn take_plan(&mut self) -> Diagnostics {
        std::mem::take(&mut self.plan).told()
    }

    /// True if something was refused.
    pub fn has_errors(&self) -> bool {
        self.found.errors.rest.is_some() || !self.found.errors.first.is_empty()
    }

    /// Everything, in the order of the text.
    pub fn finish(self) -> Diagnostics {
        self.found.told()
    }
}

/// The end of the character boundary at or before `index`.
fn floor_boundary(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// A name is compared with so many others at most: each costs the product of both lengths.
const COMPARED: usize = 1000;

/// `; did you mean ...` material: the nearest of `candidates` to `name`, if it is near.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names longer than this are nobody's typing error, and the distance costs their product.
    if name.is_empty() || name.len() > 64 {
        return None;
    }
    let allowed = 1 + name.chars().count() / 3;
    let wanted = name.to_lowercase();
    candidates
        .into_iter()
        .take(COMPARED)
        .filter(|candidate| candidate.len() <= 64)
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, candidate)| distance <= allowed || candidate.starts_with(name))
        // Of equally near ones, that which begins alike: few mistype the first letter.
        .min_by_key(|&(distance, candidate)| (distance, candidate.chars().next() != name.chars().next()))
        .map(|(_, candidate)| candidate)
}

/// The help for an unknown name: the nearest name, then all. The text is made when it is displayed.
pub struct Choices<'a, I> {
    name: &'a str,
    candidates: I,
}

/// Returns the help for `name`, which is none of `candidates`.
pub fn choices<'a, I: IntoIterator<Item = &'a str>>(name: &str, candidates: I) -> Choices<'_, I> {
    Choices { name, candidates }
}

impl<'a, I: IntoIterator<Item = &'a str>> From<Choices<'_, I>> for String {
    fn from(Choices { name, candidates }: Choices<'_, I>) -> Self {
        let candidates: Vec<&str> =
            candidates.into_iter().filter(|candidate| !candidate.is_empty()).collect();
        let list = match candidates.len() {
            0 => return "allowed: nothing".into(),
            1..=40 => candidates.join(", "),
            more => format!("{}, ... ({more} in all)", candidates[..40].join(", ")),
        };
        match nearest(name, candidates.iter().copied()) {
            Some(nearest) => format!("did you mean `{nearest}`? Allowed: {list}"),
            None => format!("allowed: {list}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Words that count how often somebody wants them.
    struct Words<'a>(&'a Cell<usize>);

    impl From<Words<'_>> for String {
        fn from(Words(wanted): Words<'_>) -> Self {
            wanted.set(wanted.get() + 1);
            "x".into()
        }
    }

    #[test]
    fn what_is_not_told_is_not_put_into_words() {
        let wanted = Cell::new(0);
        let mut findings = Findings::new(vec![Arc::new(NamedSource::new("x", String::new()))]);
        for _ in 0..50_000 {
            findings.error("scenario::test", Span::default(), Words(&wanted), Words(&wanted));
        }
        assert_eq!(wanted.get(), 2 * (Diagnostics::LIMIT + 1));
        let all = findings.finish();
        assert_eq!(all.iter().last().map(|last| last.message()), Some("and 49950 more errors"));
    }

    #[test]
    fn what_was_found_many_times_is_told_once_and_counted_once() {
        let sources: Sources = vec![Arc::new(NamedSource::new("x", "0123456789".repeat(20)))];
        let found = |severity: &str, count: usize| {
            let mut findings = Findings::new(sources.clone());
            for start in 0..count {
                let span = Span { source: 0, start, end: start + 1 };
                match severity {
                    "error" => findings.error("scenario::test", span, "wrong", "x"),
                    _ => findings.warning("scenario::test", span, "odd", "x"),
                }
            }
            findings.finish()
        };
        let mut all = Findings::new(sources.clone());
        for _ in 0..3 {
            all.absorb(found("warning", 60));
            all.absorb(found("error", 120));
        }
        assert!(all.has_errors());
        let told: Vec<String> = all.finish().iter().map(|finding| finding.message().to_owned()).collect();
        let count = |message: &str| told.iter().filter(|told| *told == message).count();
        assert_eq!((count("wrong"), count("odd")), (Diagnostics::LIMIT, Diagnostics::LIMIT));
        assert_eq!(told[100..], ["and 70 more errors", "and 10 more warnings"]);
    }
}

//! The results of a paper, as text, JSON and Markdown.

use std::fmt::Write as _;

use congestlab_scenario::figure::Figure;
use congestlab_scenario::paper::{Exception, Paper, Range, Written};
use serde_json::{Value, json};

use super::Ran;
use super::codes::{self, Code};
use crate::failure::Failure;
use crate::ns2;

/// A value of the table that is written down beside what came out now.
fn change(written: Option<&Written>, holds: bool) -> &'static str {
    match written.map(|written| written.holds) {
        None => "new",
        Some(before) if before == holds => "",
        Some(true) => "held",
        Some(false) => "failed",
    }
}

pub(super) fn describe(paper: &Paper, ran: &[Ran], law: Option<&str>, all: usize) -> String {
    let mut text = format!("{}: {} ({})\n", paper.about.authors, paper.about.title, paper.about.published);
    if let Some(law) = law {
        let _ = writeln!(text, "with {law} in the place of the paper's own law");
    }
    for figure in ran {
        let (of, title) = figure.scenario.figure().map_or(("", ""), |figure| (figure.of(), figure.title()));
        let _ = writeln!(text, "\n{}  {of}: {title}", figure.name);
        for (index, (claim, verdict)) in figure.scenario.claims().iter().zip(&figure.verdicts).enumerate() {
            let holds = if verdict.holds { "holds" } else { "FAILS" };
            let change = match change(paper.written(&figure.name, &verdict.that), verdict.holds) {
                "" => String::new(),
                change => format!(
                    " ({change}{})",
                    if law.is_some() && change != "new" { " with its own law" } else { "" }
                ),
            };
            let _ = writeln!(text, "  {holds}{change}  {}", verdict.that);
            let source = claim.source().unwrap_or("no source");
            let quote = claim.quote().map_or(String::new(), |quote| format!(": \"{quote}\""));
            let _ = writeln!(text, "         {source}{quote}");
            let _ = writeln!(text, "         measured: {}", verdict.text);
            if let Some(said) = figure.peer.get(index) {
                let _ = writeln!(text, "         {said}");
            }
            if let Some(cause) = claim.cause().filter(|_| !verdict.holds && law.is_none()) {
                let _ = writeln!(text, "         why: {cause}");
            }
        }
    }
    text.push_str(&legend(&text));
    let verdicts = || ran.iter().flat_map(|figure| &figure.verdicts);
    let holding = verdicts().filter(|verdict| verdict.holds).count();
    let _ = writeln!(
        text,
        "\n{holding} hold, {} fail, {} exceptions; {} of {all} figures",
        verdicts().count() - holding,
        paper.exceptions.len(),
        ran.len(),
    );
    text
}

/// What the codes in a text stand for, to stand below it.
fn legend(text: &str) -> String {
    let codes = codes::named_in(text);
    let lines = codes
        .iter()
        .map(|Code { key, title, anchor }| format!("  {key}: {title} ({}#{anchor})\n", codes::PAGE));
    if codes.is_empty() { String::new() } else { format!("\n{}", lines.collect::<String>()) }
}

pub(super) fn to_json(paper: &Paper, ran: &[Ran], law: Option<&str>) -> Value {
    let figures: Vec<Value> = ran
        .iter()
        .map(|figure| {
            let claims: Vec<Value> = figure
                .scenario
                .claims()
                .iter()
                .zip(&figure.verdicts)
                .enumerate()
                .map(|(index, (claim, verdict))| {
                    let written = paper.written(&figure.name, &verdict.that);
                    let mut about = json!({
                        "that": verdict.that, "quote": claim.quote(), "source": claim.source(),
                        "metric": verdict.metric, "holds": verdict.holds, "measured": verdict.text,
                        "held": written.map(|written| written.holds), "cause": claim.cause(),
                    });
                    if let Some(said) = figure.peer.get(index) {
                        about["ns2"] = json!({ "holds": said.holds, "measured": said.text });
                    }
                    about
                })
                .collect();
            let shown = figure.scenario.figure();
            json!({
                "name": figure.name, "of": shown.map(Figure::of), "title": shown.map(Figure::title),
                "points": figure.points.len(), "claims": claims,
            })
        })
        .collect();
    let mut json =
        json!({ "paper": paper.key, "law": law, "figures": figures, "exceptions": paper.exceptions });
    let codes = codes::named_in(&json.to_string()).into_iter();
    let codes = codes.map(|Code { key, title, anchor }| {
        json!({ "key": key, "title": title, "defined": format!("{}#{anchor}", codes::PAGE) })
    });
    json["codes"] = codes.collect();
    json
}

/// A paper's text in Markdown: a line of a paragraph or a cell of a table, in which nothing is HTML, code or a link.
fn plain(text: &str) -> String {
    let mut markdown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => markdown.push_str("&amp;"),
            '<' => markdown.push_str("&lt;"),
            '>' => markdown.push_str("&gt;"),
            '\\' | '|' | '`' => markdown.extend(['\\', character]),
            '(' | ':' if markdown.ends_with(']') => markdown.extend(['\\', character]),
            character if character.is_control() => markdown.push(' '),
            character => markdown.push(character),
        }
    }
    markdown
}

/// A name as the target of a link.
fn target(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(byte).collect()
}

/// The paper's page, of what is written down.
pub(super) fn readme(paper: &Paper) -> Result<String, Failure> {
    let (holds, fails) = paper.counts();
    let mut text = format!(
        "<!-- made by `congestlab papers report {key} --papers papers --write` -->\n\n# {}\n\n{}, {}\n\n\
         {holds} claims hold, {fails} fail; {} things are not run. `congestlab papers run {key}` runs them all, \
         [papers.md](../../docs/papers.md) says how.\n",
        plain(&paper.about.title),
        plain(&paper.about.authors),
        plain(&paper.about.published),
        paper.exceptions.len(),
        key = plain(&paper.key),
    );
    for (name, scenario) in paper.scenarios(None).map_err(Failure::paper)? {
        let Some(shown) = scenario.figure() else { continue };
        let (of, title) = (plain(shown.of()), plain(shown.title()));
        let _ = write!(text, "\n## {of}: {title}\n\n[{}.toml]({}.toml)\n\n", plain(&name), target(&name));
        text.push_str("| claim | source | measured | verdict | ns-2 |\n| --- | --- | --- | --- | --- |\n");
        for claim in scenario.claims() {
            let quote = claim.quote().map_or(String::new(), |quote| format!(" \"{}\"", plain(quote)));
            let written = paper.written(&name, claim.that());
            let measured = written.map_or(String::new(), |written| plain(&written.measured));
            let verdict = match written.map(|written| written.holds) {
                None => "not run yet",
                Some(true) => "holds",
                Some(false) => "**FAILS**",
            };
            let source = claim.source().map_or(String::new(), plain);
            let ns2 = plain(&ns2::cell(&paper.peer, &name, claim.that()));
            let _ = writeln!(
                text,
                "| {}{quote} | {source} | {measured} | {verdict} | {ns2} |",
                plain(claim.that())
            );
        }
        let is_failing = |that: &str| paper.written(&name, that).is_some_and(|written| !written.holds);
        let causes = scenario.claims().iter().filter(|claim| is_failing(claim.that()));
        for claim in causes.filter_map(|claim| Some((claim.that(), claim.cause()?))) {
            let _ = write!(text, "\nWhy \"{}\" fails: {}\n", plain(claim.0), plain(claim.1));
        }
    }
    if !paper.ranges.is_empty() {
        text.push_str(
            "\n## What hinges on assumed values\n\n`congestlab papers ranges` made this table.\n\n",
        );
        text.push_str("| figure | assumed | value | verdicts that turn |\n| --- | --- | --- | --- |\n");
        for range in &paper.ranges {
            let Range { figure, assumed, value, .. } = range;
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                plain(figure),
                plain(assumed),
                plain(value),
                turned(range, "<br>", plain)
            );
        }
    }
    if !paper.exceptions.is_empty() {
        text.push_str("\n## Not run\n\n| where | what | why |\n| --- | --- | --- |\n");
        for Exception { of, what, why } in &paper.exceptions {
            let _ = writeln!(text, "| {} | {} | {} |", plain(of), plain(what), plain(why));
        }
    }
    let codes = codes::named_in(&text);
    if !codes.is_empty() {
        text.push_str("\n## Codes\n\n");
    }
    for Code { key, title, anchor } in codes {
        let _ = writeln!(text, "- [{key}](../../{}#{anchor}): {title}", codes::PAGE);
    }
    Ok(text)
}

/// Claims that turn, with what they turn to, each as `write` has it.
fn turned(range: &Range, between: &str, write: impl Fn(&str) -> String) -> String {
    if range.turned.is_empty() {
        return "none".into();
    }
    let word = |holds: bool| if holds { "holds" } else { "FAILS" };
    let list: Vec<String> = range
        .turned
        .iter()
        .map(|turned| write(&format!("{} {}: {}", turned.claim, word(turned.holds), turned.measured)))
        .collect();
    list.join(between)
}

/// The verdicts that change with assumed values, for the terminal.
pub(super) fn ranges(found: &[Range]) -> String {
    let mut text = String::new();
    for range in found {
        let Range { figure, assumed, value, .. } = range;
        let _ =
            writeln!(text, "{figure}  {assumed} = {value}\n    {}", turned(range, "\n    ", str::to_owned));
    }
    if text.is_empty() { "no figure says what it assumes\n".into() } else { text }
}

/// Papers by claims.
pub(super) fn summary(papers: &[Paper]) -> String {
    let mut text = String::from(
        "<!-- made by `congestlab papers report KEY --papers papers --write` -->\n\n# The papers, claim by claim\n\n\
         | paper | figures | claims | hold | fail | not run |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    let mut sums = [0; 5];
    let mut row = |name: String, numbers: [usize; 5]| {
        let cells = numbers.map(|number| number.to_string()).join(" | ");
        let _ = writeln!(text, "| {name} | {cells} |");
    };
    for paper in papers {
        let (holds, fails) = paper.counts();
        let numbers = [paper.figures.len(), holds + fails, holds, fails, paper.exceptions.len()];
        for (sum, number) in sums.iter_mut().zip(numbers) {
            *sum += number;
        }
        let (key, place) = (plain(&paper.key), target(&paper.key));
        row(format!("[{key}]({place}/README.md): {}", plain(&paper.about.title)), numbers);
    }
    row("all".into(), sums);
    text.push_str(
        "\n[docs/reproductions.md](../docs/reproductions.md) says what reproduces, what does not, and why.\n",
    );
    text
}

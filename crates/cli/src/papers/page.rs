//! The results of a paper, as text, JSON and Markdown.

use std::fmt::Write as _;

use congestlab_scenario::claims::{Controlled, Judgement, Verdict};
use congestlab_scenario::figure::Figure;
use congestlab_scenario::paper::{Counts, Exception, Paper, PeerValues, Range, Written};
use serde_json::{Value, json};

use super::codes::{self, Code};
use super::peer::{self, Seen};
use super::{Answer, Ran, values};
use crate::failure::Failure;
use crate::ns2;

/// A value of the table that is written down beside what came out now.
fn change(written: Option<&Written>, now: Judgement) -> &'static str {
    match written.map(|written| written.verdict) {
        None => "new",
        Some(before) if before == now => "",
        Some(Judgement::Holds) => "held",
        Some(Judgement::Undecided) => "was undecided",
        Some(Judgement::Fails) => "failed",
    }
}

/// Figures and claims of a paper: all, that hold, that tell nothing, undecided, that fail; and what is not run.
pub(super) fn numbers(paper: &Paper) -> [usize; 7] {
    let counts = paper.counts();
    let Counts { hold, tell_nothing, undecided, fail } = counts;
    [paper.figures.len(), counts.all(), hold, tell_nothing, undecided, fail, paper.exceptions.len()]
}

/// The words in which verdicts are summed up.
fn summed(counts: Counts) -> String {
    let Counts { hold, tell_nothing, undecided, fail } = counts;
    let mut text = format!("{hold} hold, {fail} fail");
    for (count, words) in [(undecided, "undecided"), (tell_nothing, "tell nothing")] {
        if count > 0 {
            let _ = write!(text, ", {count} {words}");
        }
    }
    text
}

pub(super) fn describe(paper: &Paper, ran: &[Ran], law: Option<&str>, all: usize) -> String {
    let mut text = format!("{}: {} ({})\n", paper.about.authors, paper.about.title, paper.about.published);
    if let Some(law) = law {
        let _ = writeln!(text, "with {law} in the place of the paper's own law");
    }
    for figure in ran {
        let (of, title) = figure.scenario.figure().map_or(("", ""), |figure| (figure.of(), figure.title()));
        let _ = writeln!(text, "\n{}  {of}: {title}", figure.name);
        let claims = figure.scenario.claims().iter().zip(&figure.answers);
        for (index, (claim, answer)) in claims.enumerate() {
            let Answer { verdict, control, .. } = answer;
            let holds = word(verdict);
            let change = match change(paper.written(&figure.name, &verdict.that), verdict.judgement) {
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
            if let Some(control) = control {
                let tells = if answer.does_not_tell() { "does not tell: " } else { "" };
                let _ =
                    writeln!(text, "         control: {tells}{}, {}", control.judgement.word(), control.text);
            }
            if let Some(said) = figure.peer.get(index) {
                let _ = writeln!(text, "         {said}");
            }
            let says_why = !verdict.holds() && law.is_none();
            if let Some(cause) = values::cause(paper, ran, &figure.name, claim).filter(|_| says_why) {
                let _ = writeln!(text, "         why: {cause}");
            }
        }
    }
    text.push_str(&legend(&text));
    let counts = Counts::of(super::written(ran).iter());
    let _ = writeln!(
        text,
        "\n{}, {} exceptions; {} of {all} figures",
        summed(counts),
        paper.exceptions.len(),
        ran.len(),
    );
    text
}

/// What the codes in a text stand for, to stand below it.
fn legend(text: &str) -> String {
    let codes = codes::named_in(text);
    let lines =
        codes.iter().map(|Code { key, title, page, anchor }| format!("  {key}: {title} ({page}#{anchor})\n"));
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
                .zip(&figure.answers)
                .enumerate()
                .map(|(index, (claim, Answer { verdict, more, control }))| {
                    let written = paper.written(&figure.name, &verdict.that);
                    let mut about = json!({
                        "that": verdict.that, "quote": claim.quote(), "source": claim.source(),
                        "metric": verdict.metric, "holds": verdict.holds(), "verdict": verdict.judgement,
                        "measured": verdict.text, "cause": values::cause(paper, ran, &figure.name, claim), "tag": claim.tag(),
                        "held": written.map(|written| written.verdict == Judgement::Holds), "runs_added": more.len(),
                    });
                    if let Some(control) = control {
                        about["control"] = json!({ "verdict": control.judgement, "measured": control.text });
                    }
                    if let Some(said) = figure.peer.get(index) {
                        about["ns2"] = json!({
                            "holds": said.verdict.map(|verdict| verdict == Judgement::Holds), "verdict": said.verdict,
                            "measured": said.text,
                        });
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
    let codes = codes.map(|Code { key, title, page, anchor }| {
        json!({ "key": key, "title": title, "defined": format!("{page}#{anchor}") })
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

/// Text like that, with a line for each point that was measured.
fn points(text: &str) -> String {
    plain(text).replace("; ", "<br>")
}

/// A name as the target of a link.
fn target(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(byte).collect()
}

/// A second opinion: on how many claims, how many of its verdicts are ours, how many of ours fail, and how many of these there, too.
fn second(papers: &[Paper], said: fn(&Paper) -> &PeerValues) -> [usize; 4] {
    let mut counts = [0; 4];
    for paper in papers {
        for value in &said(paper).values {
            let Some(ours) = paper.written(&value.figure, &value.claim) else { continue };
            let fails = ours.verdict == Judgement::Fails;
            let same = value.verdict == ours.verdict;
            for (count, counts_here) in counts.iter_mut().zip([true, same, fails, fails && same]) {
                *count += usize::from(counts_here);
            }
        }
    }
    counts
}

fn in_the_model(papers: &[Paper]) -> String {
    let [asked, same, fail, fail_there] = second(papers, |paper| &paper.model);
    format!(
        "{asked} claims are judged on a model in floats, too, that was written from the paper alone: {same} with the same \
         verdict; of {fail} that fail {fail_there} fail there."
    )
}

/// The paper's page, of what is written down.
pub(super) fn readme(paper: &Paper) -> Result<String, Failure> {
    let mut text = format!(
        "<!-- made by `congestlab papers report {key} --papers papers --write` -->\n\n# {}\n\n{}, {}\n\n\
         {}; {} things are not run. `congestlab papers run {key}` runs them all, \
         [papers.md](../../docs/papers.md) says how.\n",
        plain(&paper.about.title),
        plain(&paper.about.authors),
        plain(&paper.about.published),
        summed(paper.counts()).replacen(" hold", " claims hold", 1),
        paper.exceptions.len(),
        key = plain(&paper.key),
    );
    let has_model = !paper.model.values.is_empty();
    if has_model {
        let _ = write!(text, "\n{}\n", in_the_model(std::slice::from_ref(paper)));
    }
    for (name, scenario) in paper.scenarios(None).map_err(Failure::paper)? {
        let Some(shown) = scenario.figure() else { continue };
        let (of, title) = (plain(shown.of()), plain(shown.title()));
        let _ = write!(text, "\n## {of}: {title}\n\n[{}.toml]({}.toml)\n\n", plain(&name), target(&name));
        let (heading, dashes) = if has_model { (" model |", " --- |") } else { ("", "") };
        let _ = writeln!(
            text,
            "| claim | source | measured | verdict | ns-2 |{heading}\n| --- | --- | --- | --- | --- |{dashes}"
        );
        for (claim, seen) in scenario.claims().iter().zip(peer::seen(paper, &name, &scenario)?) {
            let quote = claim.quote().map_or(String::new(), |quote| format!(" \"{}\"", plain(quote)));
            let written = paper.written(&name, claim.that());
            let measured = written.map_or(String::new(), |written| points(&written.measured));
            let verdict = match written.map(|written| written.word()) {
                None => "not run yet".to_owned(),
                Some("fails") => {
                    format!("**FAILS**{}", claim.tag().map_or(String::new(), |tag| format!(": {tag}")))
                }
                Some(word) => word.to_owned(),
            };
            let source = claim.source().map_or(String::new(), plain);
            let ns2 = match seen {
                Seen::Judged(_) => points(&ns2::cell(&paper.peer, &name, claim.that())),
                Seen::Not(why) => format!("*not: {}*", plain(&why)),
                Seen::Unasked => String::new(),
            };
            let model = points(&ns2::cell(&paper.model, &name, claim.that()));
            let model = if has_model { format!(" {model} |") } else { String::new() };
            let _ = writeln!(
                text,
                "| {}{quote} | {source} | {measured} | {verdict} | {ns2} |{model}",
                plain(claim.that())
            );
        }
        for claim in scenario.claims() {
            let Some(written) = paper.written(&name, claim.that()) else { continue };
            let what = match written.verdict {
                Judgement::Fails => "fails",
                Judgement::Undecided => "is undecided",
                Judgement::Holds if written.does_not_tell() => "tells nothing",
                Judgement::Holds => {
                    if let Controlled::Reason(reason) = scenario.controlled(claim) {
                        let _ =
                            writeln!(text, "\nNo control of \"{}\": {}", plain(claim.that()), plain(&reason));
                    }
                    continue;
                }
            };
            let Some(cause) = values::cause(paper, &[], &name, claim) else { continue };
            let _ = write!(text, "\nWhy \"{}\" {what}: {}", plain(claim.that()), plain(&cause));
            if let Some(experiment) = claim.experiment() {
                let _ = write!(text, " Another value turns it: {}.", plain(experiment));
            }
            text.push('\n');
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
    for Code { key, title, page, anchor } in codes {
        let _ = writeln!(text, "- [{key}](../../{page}#{anchor}): {title}");
    }
    Ok(text)
}

/// Claims that turn, with what they turn to, each as `write` has it.
fn turned(range: &Range, between: &str, write: impl Fn(&str) -> String) -> String {
    if range.turned.is_empty() {
        return "none".into();
    }
    let list: Vec<String> = range
        .turned
        .iter()
        .map(|turned| {
            let word = crate::table::verdict(turned.verdict);
            write(&format!("{} {word}: {}", turned.claim, turned.measured))
        })
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

/// What the word of a verdict is beside others.
fn word(verdict: &Verdict) -> &'static str {
    crate::table::verdict(verdict.judgement)
}

/// Why claims fail, in the words of their tags, and what each means.
const TAGS: [(&str, &str); 4] = [
    ("ns-2", "ns-2 fails, too"),
    ("closed form", "the paper contradicts a closed form"),
    ("assumed", "another value that the paper does not give turns it"),
    ("open", "ours: nobody knows yet"),
];

/// Papers by claims.
pub(super) fn summary(papers: &[Paper]) -> Result<String, Failure> {
    let mut text = String::from(
        "<!-- made by `congestlab papers report KEY --papers papers --write` -->\n\n# The papers, claim by claim\n\n",
    );
    // Claims with the words of a paper, and others.
    let mut claims: [Vec<(&Written, Option<&'static str>)>; 2] = [Vec::new(), Vec::new()];
    // Of those with a paper's words that hold or tell nothing: with a control, with a reason for none, about no effect.
    let mut controls = [0; 3];
    for paper in papers {
        for (name, scenario) in paper.scenarios(None).map_err(Failure::paper)? {
            for claim in scenario.claims() {
                let Some(written) = paper.written(&name, claim.that()) else { continue };
                claims[usize::from(claim.quote().is_none())].push((written, claim.tag()));
                let place = match scenario.controlled(claim) {
                    Controlled::SwitchedOff => 0,
                    Controlled::Reason(_) => 1,
                    Controlled::NoEffect => 2,
                    Controlled::Unsaid => continue,
                };
                let is_counted = claim.quote().is_some() && written.verdict == Judgement::Holds;
                controls[place] += usize::from(is_counted);
            }
        }
    }
    text.push_str("| claims | all | hold | tell nothing | undecided | fail |");
    let dashes = "| --- | --- | --- | --- | --- | --- |";
    for (tag, _) in TAGS {
        let _ = write!(text, " {tag} |");
    }
    let _ = writeln!(text, "\n{dashes}{}", " --- |".repeat(TAGS.len()));
    for (name, claims) in ["quoted from a paper", "our own"].into_iter().zip(&claims) {
        let counts = Counts::of(claims.iter().map(|(written, _)| *written));
        let Counts { hold, tell_nothing, undecided, fail } = counts;
        let share = 100.0 * hold as f64 / counts.all().max(1) as f64;
        let _ = write!(
            text,
            "| {name} | {} | {hold} ({share:.0} %) | {tell_nothing} | {undecided} | {fail} |",
            counts.all()
        );
        let failing = claims.iter().filter(|(written, _)| written.verdict == Judgement::Fails);
        for (tag, _) in TAGS {
            let _ = write!(text, " {} |", failing.clone().filter(|(_, other)| *other == Some(tag)).count());
        }
        text.push('\n');
    }
    let words: Vec<String> = TAGS.iter().map(|(tag, words)| format!("*{tag}*: {words}")).collect();
    let _ = writeln!(
        text,
        "\nA claim that fails has one tag; {}. A claim *tells nothing* if nothing shows that it fails with its cause switched \
         off, and is *undecided* where 100 seeds leave the interval of a mean across a bound.\n",
        words.join("; ")
    );
    let [quoted, _] = &claims;
    let is_ours = |(written, tag): &&(&Written, Option<&str>)| match written.verdict {
        Judgement::Holds => true,
        Judgement::Undecided => false,
        Judgement::Fails => !matches!(tag, Some("ns-2" | "closed form")),
    };
    let counts = Counts::of(quoted.iter().filter(is_ours).map(|(written, _)| *written));
    let _ = writeln!(
        text,
        "Of the quoted claims that are neither undecided nor fail by ns-2 or a closed form, {} of {} hold: {:.0} %.\n",
        counts.hold,
        counts.all(),
        100.0 * counts.hold as f64 / counts.all().max(1) as f64,
    );
    let [switched, reasons, numbers_alone] = controls;
    let _ = writeln!(
        text,
        "Of the quoted claims that hold or tell nothing, {switched} have a control, {reasons} say why nothing can be switched \
         off, and {numbers_alone} are about no effect.\n"
    );
    let [asked, same, ..] = second(papers, |paper| &paper.peer);
    let _ = writeln!(text, "{asked} claims are judged on runs of ns-2, too: {same} with the same verdict.\n");
    if papers.iter().any(|paper| !paper.model.values.is_empty()) {
        let _ = writeln!(text, "{}\n", in_the_model(papers));
    }
    text.push_str(
        "| paper | figures | claims | hold | tell nothing | undecided | fail | not run |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut sums = [0; 7];
    let mut row = |name: String, numbers: [usize; 7]| {
        let cells = numbers.map(|number| number.to_string()).join(" | ");
        let _ = writeln!(text, "| {name} | {cells} |");
    };
    for paper in papers {
        let numbers = numbers(paper);
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
    Ok(text)
}

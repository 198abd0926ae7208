//! A report card as text, JSON and HTML.

use std::fmt::Write as _;

use congestlab_scenario::number::significant;
use congestlab_scenario::report::{begin, end, escape};
use serde_json::{Value, json};

use super::{Card, Cell, Column, Criterion, Measured, Missing};
use crate::table::{NOTHING, Table};

/// A bound as people write it.
fn bound(criterion: &Criterion) -> String {
    format!("{} {}", if criterion.is_least { ">=" } else { "<=" }, significant(criterion.bound))
}

/// The number of a cell, without whether it is good.
fn number(cell: &Cell) -> String {
    match cell {
        Cell::Measured(worst) => worst.value.map_or_else(|| "nothing".into(), significant),
        Cell::NotApplicable(_) => NOTHING.into(),
    }
}

/// The verdict on a law by a criterion, in words.
fn verdict(cell: &Cell) -> String {
    match cell {
        cell if cell.is_met() => "met".into(),
        Cell::Measured(worst) => match worst.short_by().map(significant) {
            Some(far) if worst.is_least => format!("short by {far}"),
            Some(far) => format!("{far} above the bound"),
            None => "nothing to measure".into(),
        },
        Cell::NotApplicable(_) => "not applicable".into(),
    }
}

fn summary(card: &Card<'_>) -> String {
    let [met, missed, other] = card.counts();
    format!(
        "{} meets {met} bounds of {}, misses {missed}, and {other} do not apply",
        card.law,
        met + missed + other
    )
}

/// Columns that a case applies to.
fn columns<'a>(card: &'a Card<'_>, case: &'a Measured<'_>) -> impl Iterator<Item = (usize, &'a Column)> {
    let applies = |(place, _): &(usize, &Column)| case.missing[*place].is_none();
    card.columns.iter().enumerate().filter(applies)
}

/// The laws next to the one in question that a case does not apply to, and why, in one line; empty: there are none.
fn left_out(card: &Card<'_>, case: &Measured<'_>) -> String {
    let mut kinds: Vec<(&Missing, Vec<&str>)> = Vec::new();
    for (column, missing) in card.columns.iter().zip(&case.missing) {
        let Some(missing) = missing else { continue };
        let is_same = |(kind, _): &&mut (&Missing, _)| {
            (kind.is_of_links, &kind.key) == (missing.is_of_links, &missing.key)
        };
        match kinds.iter_mut().find(is_same) {
            Some((_, laws)) => laws.push(&column.label),
            None => kinds.push((missing, vec![&column.label])),
        }
    }
    let of = |(Missing { is_of_links, key, .. }, laws): &(&Missing, Vec<&str>)| {
        let they = if *is_of_links { "their links" } else { "they" };
        format!("to {}: {they} have no `{key}`", laws.join(", "))
    };
    let kinds: Vec<String> = kinds.iter().map(of).collect();
    if kinds.is_empty() { String::new() } else { format!("does not apply {}", kinds.join("; ")) }
}

/// The card for a terminal.
pub(super) fn describe(card: &Card<'_>) -> String {
    let mut text = String::new();
    for (section, cases) in &card.sections {
        let _ = writeln!(text, "{}", section.name);
        if let Some(why) = &section.unmeasured {
            let _ = writeln!(text, "  not measured: {why}");
        }
        for of_case in cases {
            let Measured { case, criteria, missing } = of_case;
            if let Some(Some(missing)) = missing.first() {
                let _ = writeln!(text, "  {}: {}: does not apply, {missing}", case.name, case.title);
                continue;
            }
            let _ = writeln!(text, "  {}: {}", case.name, case.title);
            let mut heading = vec![String::new(), "bound".into()];
            let mut labels = columns(card, of_case).map(|(_, column)| column.label.clone());
            heading.extend(labels.next());
            heading.push("verdict".into());
            heading.extend(labels);
            let mut table = Table::with_heading(heading);
            for criterion in criteria {
                table.row(row(criterion, columns(card, of_case)));
            }
            for line in table.render().lines().chain(Some(left_out(card, of_case).as_str())) {
                let indent = if line.starts_with(' ') { "  " } else { "    " };
                if !line.is_empty() {
                    let _ = writeln!(text, "{indent}{line}");
                }
            }
        }
        text.push('\n');
    }
    let parts = parts(card);
    if !parts.is_empty() {
        let _ = write!(text, "What each part buys and costs:\n{}\n", parts_table(card, &parts));
    }
    let _ = writeln!(text, "{}. * misses the bound", summary(card));
    text
}

/// A bound that a part of the law makes a difference for.
struct Part<'a> {
    column: usize,
    is_bought: bool,
    case: &'a str,
    criterion: &'a Criterion,
}

/// The bounds that the law meets with a part and misses without it, or by twice as much; and the other way round.
fn parts<'a>(card: &'a Card<'_>) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    for (column, _) in card.columns.iter().enumerate().filter(|(_, column)| column.off.is_some()) {
        for is_bought in [true, false] {
            for Measured { case, criteria, .. } in card.sections.iter().flat_map(|(_, cases)| cases) {
                let differs = criteria.iter().filter(|criterion| {
                    let short = |column: usize| match &criterion.cells[column] {
                        Cell::Measured(worst) => worst.short_by(),
                        Cell::NotApplicable(_) => None,
                    };
                    let (Some(with), Some(without)) = (short(0), short(column)) else { return false };
                    let (better, worse) = if is_bought { (with, without) } else { (without, with) };
                    worse > 2.0 * better
                });
                let part = |criterion| Part { column, is_bought, case: &case.name, criterion };
                parts.extend(differs.map(part));
            }
        }
    }
    parts
}

fn parts_table(card: &Card<'_>, parts: &[Part<'_>]) -> String {
    let mut table = Table::new(["part", "", "case", "criterion", "bound", "with", "without"]);
    for (column, of) in card.columns.iter().enumerate() {
        let Some(off) = of.off else { continue };
        let own = || parts.iter().filter(|part| part.column == column);
        if own().next().is_none() {
            table.row([off, "nothing here", "", "", "", "", ""].map(str::to_owned).into());
        }
        for Part { is_bought, case, criterion, .. } in own() {
            let word = if *is_bought { "buys" } else { "costs" };
            let [with, without] = [0, column].map(|column| number(&criterion.cells[column]));
            let cells = [
                off.into(),
                word.into(),
                (*case).into(),
                criterion.that.clone(),
                bound(criterion),
                with,
                without,
            ];
            table.row(cells.into());
        }
    }
    table.render()
}

fn row<'a>(criterion: &Criterion, columns: impl Iterator<Item = (usize, &'a Column)>) -> Vec<String> {
    let mark = |cell: &Cell| {
        let misses = matches!(cell, Cell::Measured(_)) && !cell.is_met();
        format!("{}{}", number(cell), if misses { "*" } else { " " })
    };
    let mut row = vec![criterion.that.clone(), bound(criterion)];
    let mut cells = columns.map(|(place, _)| &criterion.cells[place]);
    if let Some(first) = cells.next() {
        row.extend([number(first), verdict(first)]);
    }
    row.extend(cells.map(mark));
    row
}

/// The card for programs.
pub(super) fn to_json(card: &Card<'_>) -> Value {
    let cell = |(column, cell): (&Column, &Cell)| {
        let (value, short, why) = match cell {
            Cell::Measured(worst) => (worst.value, worst.short_by(), None),
            Cell::NotApplicable(missing) => (None, None, Some(missing.to_string())),
        };
        json!({ "of": column.label, "value": value, "verdict": verdict(cell), "short_by": short, "why": why })
    };
    let criterion = |criterion: &Criterion| {
        let cells: Value = card.columns.iter().zip(&criterion.cells).map(cell).collect();
        let side = if criterion.is_least { "at_least" } else { "at_most" };
        json!({
            "that": criterion.that, "metric": criterion.metric, "source": criterion.source, side: criterion.bound,
            "laws": cells,
        })
    };
    let case = |Measured { case, criteria, .. }: &Measured<'_>| {
        let criteria: Value = criteria.iter().map(criterion).collect();
        json!({ "case": case.name, "title": case.title, "criteria": criteria })
    };
    let sections = card.sections.iter().map(|(section, cases)| {
        let cases: Value = cases.iter().map(case).collect();
        json!({ "section": section.name, "unmeasured": section.unmeasured, "cases": cases })
    });
    let [met, missed, other] = card.counts();
    let parts = parts(card);
    let parts = parts.iter().map(|Part { column, is_bought, case, criterion }| {
        json!({
            "part": card.columns[*column].off, "buys": is_bought, "case": case, "that": criterion.that,
        })
    });
    json!({
        "law": card.law, "seed": card.seed, "met": met, "missed": missed, "not_applicable": other,
        "sections": sections.collect::<Value>(), "parts": parts.collect::<Value>(),
    })
}

/// The card as a page that needs nothing else.
pub(super) fn html(card: &Card<'_>) -> String {
    let title = format!("Report card of {}", card.law);
    let mut html = begin(&title, "");
    let _ = write!(
        html,
        "<header>\n<h1>{}</h1>\n<p class=\"about\">{}</p>\n</header>\n<main>\n",
        escape(&title),
        escape(&summary(card))
    );
    for (section, cases) in &card.sections {
        let _ = writeln!(html, "<section>\n<h2>{}</h2>", escape(&section.name));
        if let Some(why) = &section.unmeasured {
            let _ = writeln!(html, "<p>Not measured: {}.</p>", escape(why));
        }
        for case in cases {
            of_case(&mut html, card, case);
        }
        html.push_str("</section>\n");
    }
    html + "</main>\n" + &end()
}

fn of_case(html: &mut String, card: &Card<'_>, of_case: &Measured<'_>) {
    let Measured { case, criteria, missing } = of_case;
    let _ = writeln!(html, "<h3>{}: {}</h3>", escape(&case.name), escape(&case.title));
    if let Some(Some(missing)) = missing.first() {
        let _ = writeln!(html, "<p>Does not apply: {}.</p>", escape(&missing.to_string()));
        return;
    }
    html.push_str("<div class=\"text\"><table class=\"claims\">\n<tr><th scope=\"col\">criterion</th>");
    html.push_str("<th scope=\"col\">bound</th>");
    for (place, column) in columns(card, of_case) {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(&column.label));
        if place == 0 {
            html.push_str("<th scope=\"col\">verdict</th>");
        }
    }
    html.push_str("</tr>\n");
    for criterion in criteria {
        let source = match criterion.source.as_str() {
            "" => String::new(),
            source => format!("<div>{}</div>", escape(source)),
        };
        let _ = write!(
            html,
            "<tr><td>{}{source}</td><td>{}</td>",
            escape(&criterion.that),
            escape(&bound(criterion))
        );
        for (place, _) in columns(card, of_case) {
            let cell = &criterion.cells[place];
            let class = if cell.is_met() { "holds" } else { "fails" };
            let _ = write!(html, "<td class=\"{class}\">{}</td>", escape(&number(cell)));
            if place == 0 {
                let _ = write!(html, "<td class=\"{class}\">{}</td>", escape(&verdict(cell)));
            }
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table></div>\n");
    let left_out = left_out(card, of_case);
    if !left_out.is_empty() {
        let _ = writeln!(html, "<p>The case {}.</p>", escape(&left_out));
    }
}

//! The report of a sweep: its points with means over seeds, and what its claims say.

use std::fmt::Write as _;

use super::page::{begin, described, end, folded, scenario_block, table};
use super::picture::{Drawn, figure};
use super::verdicts::{judged, verdict_mark};
use crate::judging::claims::Verdict;
use crate::judging::metric::Reading;
use crate::judging::seeds::{Estimate, Settings, UnusedSeeds, by_point};
use congestlab_text::cells::{Cell, Quantity};
use congestlab_text::printable::escape;

/// The sweep that a report is of.
#[derive(Clone, Debug)]
pub struct SweepRun<'a> {
    /// The name of the scenario.
    pub name: &'a str,
    /// The scenario as somebody wrote it, with its sweep.
    pub written: &'a str,
    /// The version of the program.
    pub version: &'a str,
    /// The metrics, as questions to a result.
    pub metrics: Vec<String>,
    /// The settings of each point, as path and TOML, and a reading of each metric.
    pub points: Vec<(Settings, Vec<Reading>)>,
    /// The points at which seeds changed nothing.
    pub unused: Option<UnusedSeeds>,
    /// The metrics over the axes, drawn.
    pub pictures: Vec<Drawn>,
    /// The verdicts of the claims.
    pub verdicts: Vec<Verdict>,
}

/// The report of a sweep as one self-contained HTML file.
pub fn sweep_html(run: &SweepRun<'_>) -> String {
    let mut page = begin(&format!("{}: congestlab sweep", run.name), "");
    let _ = write!(page, "<header>\n<h1>{}</h1>\n", escape(run.name));
    if let Some(about) = described(run.written) {
        let _ = writeln!(page, "<p class=\"about\">{}</p>", escape(&about));
    }
    let groups = by_point(run.points.iter().map(|(settings, readings)| (settings, &readings[..])));
    let seeds = groups.iter().map(|(_, readings)| readings.len()).max().unwrap_or(0);
    let holding = run.verdicts.iter().filter(|verdict| verdict.holds()).count();
    page.push_str("<dl>\n");
    for (name, value) in [
        ("points", groups.len().to_string()),
        ("seeds", seeds.to_string()),
        ("runs", run.points.len().to_string()),
        ("claims that hold", format!("{holding} of {}", run.verdicts.len())),
        ("congestlab", run.version.to_owned()),
    ] {
        if name != "claims that hold" || !run.verdicts.is_empty() {
            let _ = writeln!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
        }
    }
    page.push_str(
        "<div hidden><dt>date of this file</dt><dd id=\"date\"></dd></div>\n</dl>\n</header>\n<main>\n",
    );
    if !run.pictures.is_empty() {
        page.push_str("<section id=\"charts\">\n<h2>Charts</h2>\n");
        run.pictures.iter().for_each(|drawn| page.push_str(&figure(drawn, "")));
        page.push_str("</section>\n");
    }
    points(&mut page, run, &groups);
    claims(&mut page, &run.verdicts);
    page.push_str("<section id=\"scenario\">\n<h2>Scenario</h2>\n");
    page.push_str(&scenario_block("as-written", "As written, with its sweep", run.written));
    page.push_str("</section>\n</main>\n");
    page + &end()
}

fn points(page: &mut String, run: &SweepRun<'_>, groups: &[(Settings, Vec<&[Reading]>)]) {
    page.push_str(
        "<section id=\"points\" aria-labelledby=\"points-title\">\n<h2 id=\"points-title\">Points</h2>\n",
    );
    let axes: Vec<&str> =
        groups.iter().take(1).flat_map(|(point, _)| point).map(|(path, _)| path.as_str()).collect();
    let has_seeds = groups.iter().any(|(_, readings)| readings.len() > 1);
    if has_seeds {
        page.push_str(
            "<p class=\"note\">Means over the seeds of a point, ± half of their 95 % confidence interval (Student's t);\n\
             without it all seeds say the same. Every run is in the results beside this file.</p>\n",
        );
    }
    if let Some(unused) = run.unused {
        let _ = writeln!(page, "<p class=\"note\">{}.</p>", sentence(&unused.to_string()));
    }
    let mut heading = vec!["point".to_owned()];
    heading.extend(axes.iter().map(|path| escape(congestlab_text::cells::heading(path))));
    if has_seeds {
        heading.push("seeds".into());
    }
    heading.extend(run.metrics.iter().map(|metric| escape(congestlab_text::cells::heading(metric))));
    if groups.len() > ROWS_MAX {
        let _ = writeln!(page, "<p class=\"note\">The first {ROWS_MAX} of {} points.</p>", groups.len());
    }
    let rows: Vec<Vec<Cell>> = groups
        .iter()
        .take(ROWS_MAX)
        .enumerate()
        .map(|(number, (point, readings))| {
            let mut row = vec![Cell::from(number.to_string())];
            row.extend(point.iter().map(|(_, value)| Cell::setting(value)));
            if has_seeds {
                row.push(Cell::whole(readings.len() as u64));
            }
            row.extend((0..run.metrics.len()).map(|metric| over_seeds(readings, metric)));
            row
        })
        .collect();
    let made = table("Points", &heading, &rows);
    if rows.len() > ROWS_SHOWN_MAX {
        page.push_str(&folded(&format!("{} points", rows.len()), true, &made));
    } else {
        page.push_str(&made);
    }
    page.push_str("</section>\n");
}

/// Begins with a capital letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// More rows than this can be folded away.
const ROWS_SHOWN_MAX: usize = 50;
/// More rows are for a program, not for a page.
const ROWS_MAX: usize = 5000;

/// Returns the mean of a metric over the seeds of a point, with half of its 95 % confidence interval if seeds differ. `metric`
/// is its place among the readings of each seed; a list counts as the mean of its numbers.
pub fn over_seeds(readings: &[&[Reading]], metric: usize) -> Cell {
    let read: Vec<&Reading> = readings.iter().filter_map(|readings| readings.get(metric)).collect();
    let numbers: Vec<f64> = read.iter().filter_map(|reading| reading.mean()).collect();
    match (Estimate::of(&numbers), &read[..]) {
        (Some(estimate), _) if estimate.half > 0.0 => {
            Cell::Interval(Some(estimate.mean), Some(estimate.half))
        }
        (Some(estimate), _) => Cell::Interval(Some(estimate.mean), None),
        (None, [first @ Reading::Text(text), others @ ..]) => {
            Cell::Text(if others.iter().all(|other| *other == *first) {
                text.clone()
            } else {
                "differs".into()
            })
        }
        (None, _) => Cell::Number(None, Quantity::Any),
    }
}

fn claims(page: &mut String, verdicts: &[Verdict]) {
    if verdicts.is_empty() {
        return;
    }
    page.push_str(
        "<section id=\"claims\">\n<h2>Claims</h2>\n<div class=\"text\"><table class=\"claims\">\n\
         <tr><th scope=\"col\">claim</th><th scope=\"col\">metric</th><th scope=\"col\">measured</th>\
         <th scope=\"col\">verdict</th></tr>\n",
    );
    for verdict in verdicts {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td>{}</tr>",
            escape(&verdict.that),
            escape(&verdict.metric),
            judged(verdict),
            verdict_mark(verdict.judgement)
        );
    }
    page.push_str("</table></div>\n</section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judging::seeds::SEED;

    fn point(rate: &str, seed: u32, value: f64) -> (Settings, Vec<Reading>) {
        let settings = [("links.a.rate", rate.to_owned()), (SEED, seed.to_string())];
        let settings = settings.map(|(path, value)| (path.to_owned(), value)).into();
        (settings, vec![Reading::Number(value), Reading::Nothing])
    }

    #[test]
    fn seeds_are_a_mean_with_its_interval_and_every_name_is_text() {
        let run = SweepRun {
            name: "</script><b>",
            written: "#:schema x\n# <i>All</i> rates\n[run]\n",
            version: "1",
            metrics: vec!["links.a.utilization".into(), "links.a.<x>".into()],
            points: (1..=3)
                .flat_map(|seed| [point("\"1 Mbit/s\"", seed, f64::from(seed)), point("\"<2>\"", seed, 0.5)])
                .collect(),
            unused: Some(UnusedSeeds { points: 1, of: 2 }),
            pictures: Vec::new(),
            verdicts: Vec::new(),
        };
        let page = sweep_html(&run);
        // The mean of 1, 2, 3; t(2) 4.303 times 1 / sqrt(3).
        for part in [
            "2.000 ± 2.484",
            "<td>0.500</td>",
            "<p class=\"note\">Seeds changed nothing at 1 of 2 points: ",
            "&lt;2&gt;",
            "&lt;i&gt;All&lt;/i&gt; rates",
            "<td>3</td>",
        ] {
            assert!(page.contains(part), "{part} is missing in\n{page}");
        }
        assert_eq!(page.matches("<tr>").count(), 3, "a heading and two points");
        assert!(!page.contains("<b>") && !page.contains("<i>") && !page.contains("<x>"));
        assert_eq!(page.matches("</script>").count(), 1, "its own program alone");
    }
}

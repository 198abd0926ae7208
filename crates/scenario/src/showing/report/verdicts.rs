//! Verdicts as HTML: a table of points where one line would be a list of them.

use std::fmt::Write as _;

use crate::judging::claims::{Judgement, Verdict};
use congestlab_text::cells::{Cell, Columns, plain};
use congestlab_text::printable::escape;

/// The cell of a table that says whether a claim holds.
pub fn verdict_mark(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Holds => "<td class=\"holds\">holds</td>",
        Judgement::Undecided => "<td class=\"undecided\">undecided</td>",
        Judgement::Fails => "<td class=\"fails\">FAILS</td>",
    }
}

/// Returns the measurement of a claim as HTML: by point if there are several, else in a line.
pub fn judged(verdict: &Verdict) -> String {
    let points = &verdict.points;
    if points.len() < 2 {
        return escape(&verdict.text);
    }
    let mut paths: Vec<&str> = Vec::new();
    for (path, _) in points.iter().flat_map(|point| &point.at) {
        if !paths.contains(&path.as_str()) {
            paths.push(path);
        }
    }
    let value = |point: usize, path: &str| {
        let setting = points[point].at.iter().find(|(other, _)| other == path);
        setting.map_or(String::new(), |(_, value)| plain(value))
    };
    let values = |path: &str| (0..points.len()).map(|point| value(point, path)).collect::<Vec<_>>();
    // Paths that go together are one column, and what stays is said above.
    let mut columns: Vec<(&str, Vec<String>)> = Vec::new();
    let mut stays = String::new();
    for path in paths {
        let values = values(path);
        if values.iter().all(|value| *value == values[0]) {
            let _ = write!(stays, ", {} = {}", congestlab_text::cells::heading(path), values[0]);
        } else if columns.iter().all(|(_, others)| *others != values) {
            columns.push((path, values));
        }
    }
    let mut html = String::from("<table><caption>");
    html.push_str(&escape(&(verdict.metric.clone() + &stays)));
    if let Some((_, why)) = verdict.text.rsplit_once(": ").filter(|_| !verdict.holds()) {
        let _ = write!(html, ": <span class=\"fails\">{}</span>", escape(why));
    }
    html.push_str("</caption><tr>");
    for (path, _) in &columns {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(congestlab_text::cells::heading(path)));
    }
    html.push_str("<th scope=\"col\">measured</th></tr>\n");
    let cells: Vec<Vec<Cell>> = points.iter().map(|point| vec![point.measured.clone()]).collect();
    let written = Columns::of(&cells);
    for (point, cells) in cells.iter().enumerate() {
        html.push_str("<tr>");
        for (_, values) in &columns {
            let _ = write!(html, "<td>{}</td>", escape(&values[point]));
        }
        let class = match points[point].judgement {
            Judgement::Holds => "",
            Judgement::Undecided => " class=\"undecided\"",
            Judgement::Fails => " class=\"fails\"",
        };
        for cell in written.row(cells) {
            let _ = write!(html, "<td{class}>{}</td>", escape(&cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judging::claims::Judged;

    fn verdict(rates: &[(&str, f64, bool)]) -> Verdict {
        let point = |&(rate, mean, holds): &(&str, f64, bool)| Judged {
            at: [("links.a.rate", rate), ("links.b.rate", rate), ("flows.f.count", "2")]
                .map(|(path, value)| (path.to_owned(), value.to_owned()))
                .into(),
            measured: Cell::Interval(Some(mean), Some(0.01)),
            judgement: if holds { Judgement::Holds } else { Judgement::Fails },
        };
        let points: Vec<Judged> = rates.iter().map(point).collect();
        Verdict {
            that: "<b>".into(),
            metric: "links.a.utilization".into(),
            judgement: points.iter().map(|point| point.judgement).max().unwrap_or(Judgement::Holds),
            text: "links.a.utilization is 1 at x; 2 at y: at_least 0.9 (1 of 2)".into(),
            points,
        }
    }

    #[test]
    fn several_points_are_a_table_of_what_varies() {
        let html = judged(&verdict(&[("\"1 Mbit/s\"", 0.5, false), ("\"<9> Mbit/s\"", 0.975, true)]));
        assert!(!html.contains(';') || html.contains("&lt;9&gt;"), "{html}");
        assert_eq!(html.matches("<tr>").count(), 3, "{html}");
        assert_eq!(html.matches(">a.rate</th>").count(), 1, "{html}");
        assert!(!html.contains("b.rate"), "what goes together is said once: {html}");
        for part in
            ["f.count = 2", "at_least 0.9 (1 of 2)", "class=\"fails\">0.5000 ± 0.0100", "<td>0.9750 ± 0.0100"]
        {
            assert!(html.contains(part), "{part} is missing in {html}");
        }
    }

    #[test]
    fn one_point_is_a_line() {
        let one = verdict(&[("1", 0.5, true)]);
        assert_eq!(judged(&one), escape(&one.text));
    }
}

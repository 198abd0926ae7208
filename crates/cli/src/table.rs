//! Tables for people.

use congestlab_scenario::cells::Columns;
use congestlab_scenario::claims::Judgement;
use congestlab_scenario::printable;

pub(crate) use congestlab_scenario::cells::Cell;
pub(crate) use congestlab_scenario::number::{NOTHING, count, number, percent, rate};

/// The word of a verdict, of which nobody oversees one that fails.
pub(crate) fn verdict(judgement: Judgement) -> &'static str {
    if judgement == Judgement::Fails { "FAILS" } else { judgement.word() }
}

/// Rows under a heading; the first column to the left, the others to the right, with one unit and the same decimals.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(heading: [&str; N]) -> Self {
        Self::with_heading(heading.iter().map(|&text| text.to_owned()).collect())
    }

    pub(crate) fn with_heading(heading: Vec<String>) -> Self {
        Self { heading, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, row: Vec<impl Into<Cell>>) {
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    /// Lines indented by two, columns two apart.
    pub(crate) fn render(&self) -> String {
        let columns = Columns::of(&self.rows);
        let shown = |cell: &str| printable::line(cell, printable::CELL).into_owned();
        // Twice, first for the widths: a table of many rows is not kept as text.
        let rows = || {
            let heading = self.heading.iter().map(|cell| shown(cell)).collect::<Vec<_>>();
            let rows = self.rows.iter().map(|row| columns.row(row).map(|cell| shown(&cell)).collect());
            std::iter::once(heading).chain(rows)
        };
        let mut widths: Vec<usize> = Vec::new();
        for row in rows() {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(&row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut text = String::new();
        for row in rows() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let padding = " ".repeat(widths[column] - cell.chars().count());
                line.push_str("  ");
                line.push_str(&if column == 0 { cell.clone() + &padding } else { padding + cell });
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["link", "rate"]);
        table.row(vec!["a".into(), Cell::rate(Some(1e7))]);
        table.row(vec!["longer".into(), Cell::rate(None)]);
        table.row(vec!["b".into(), Cell::rate(Some(261e3))]);
        let wanted = "  link             rate\n  a       10.000 Mbit/s\n  longer              -\n  b        0.261 Mbit/s\n";
        assert_eq!(table.render(), wanted);
    }
}

//! Tables for people.

use congestlab_scenario::printable;

pub(crate) use congestlab_scenario::number::{NOTHING, count, number, percent, rate, small_percent};

/// Rows under a heading; the first column to the left, the others to the right.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(heading: [&str; N]) -> Self {
        Self::with_heading(heading.iter().map(|&text| text.to_owned()).collect())
    }

    pub(crate) fn with_heading(heading: Vec<String>) -> Self {
        let mut table = Self { rows: Vec::new() };
        table.row(heading);
        table
    }

    pub(crate) fn row(&mut self, row: Vec<String>) {
        let cells = row.iter().map(|cell| printable::line(cell, printable::CELL).into_owned());
        self.rows.push(cells.collect());
    }

    /// Lines indented by two, columns two apart.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
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
        table.row(vec!["a".into(), "10 Mbit/s".into()]);
        table.row(vec!["longer".into(), "-".into()]);
        assert_eq!(table.render(), "  link         rate\n  a       10 Mbit/s\n  longer          -\n");
    }
}

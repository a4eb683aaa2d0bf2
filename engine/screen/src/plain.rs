//! One picture as plain text, for pipes, logs and terminals that cannot be drawn on.

use std::fmt::Write as _;

use crate::View;
use crate::table::{Choice, Pane, clean, rows};

/// All panes, one below the other.
pub fn text<V: View>(picture: &V, choice: &Choice, utf8: bool) -> String {
    let mut out = format!("{}, over {:.1} s\n", picture.totals(), picture.elapsed_s());
    if let Some(alert) = picture.alert() {
        let _ = writeln!(out, "{}", clean(&alert, utf8));
    }
    for (index, pane) in V::PANES.iter().enumerate().filter(|(index, _)| picture.has(*index)) {
        let rows = rows(index, picture, choice);
        let shown: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.iter().map(|value| clean(&value.show(), utf8)).collect())
            .collect();
        if shown.is_empty() {
            let _ = writeln!(out, "\n{}: none", pane.title);
            continue;
        }
        out.push('\n');
        write_table(pane, &shown, &mut out);
    }
    out
}

fn write_table(pane: &Pane, rows: &[Vec<String>], out: &mut String) {
    let columns = pane.columns;
    let width = |index: usize| {
        let longest =
            rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.chars().count()).max();
        longest.unwrap_or(0).max(columns[index].title.len())
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let titles: Vec<String> = columns.iter().map(|column| column.title.to_owned()).collect();
    for row in std::iter::once(&titles).chain(rows) {
        let mut line = String::new();
        for ((cell, width), column) in row.iter().zip(&widths).zip(columns) {
            let _ = if column.is_number {
                write!(line, "{cell:>width$}  ")
            } else {
                write!(line, "{cell:<width$}  ")
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

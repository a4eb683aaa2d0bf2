//! One picture as plain text, for pipes, logs and terminals that cannot be drawn on.

use std::fmt::Write as _;

use super::grid::{Choice, Pane, clean, rows, scaled};
use super::rates::Picture;

/// All panes, one below the other.
pub fn text(picture: &Picture, choice: &Choice, utf8: bool) -> String {
    let mut out = format!("{}, over {:.1} s\n", totals(picture), picture.elapsed_s);
    for worker in picture.workers.iter().filter(|worker| worker.stalled_s.is_some()) {
        let _ = writeln!(out, "worker {} STALLS: {}", worker.worker, clean(&worker.at, utf8));
    }
    for pane in Pane::ALL {
        let rows = rows(pane, picture, choice);
        let shown: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|value| clean(&value.show(), utf8)).collect()).collect();
        if shown.is_empty() {
            let _ = writeln!(out, "\n{}: none", pane.title());
            continue;
        }
        out.push('\n');
        write_table(pane, &shown, &mut out);
    }
    out
}

fn write_table(pane: Pane, rows: &[Vec<String>], out: &mut String) {
    let columns = pane.columns();
    let width = |index: usize| {
        let longest = rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.chars().count()).max();
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

/// The line of sums.
pub fn totals(picture: &Picture) -> String {
    let total = &picture.total;
    let busiest = picture.workers.iter().map(|worker| worker.busy).fold(0.0, f64::max);
    format!(
        "rx {} pkt/s {} bit/s  tx {} pkt/s {} bit/s  died {}/s  busy {:.0} %",
        scaled(total.rx_pps),
        scaled(total.rx_bps),
        scaled(total.tx_pps),
        scaled(total.tx_bps),
        scaled(picture.deaths_per_s()),
        100.0 * busiest
    )
}

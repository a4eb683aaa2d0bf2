//! Tables: columns and rows, as aligned text and as arrays of objects.

use std::fmt::Write as _;

use serde_json::Value;

use super::cell::Cell;

/// The member of JSON that stands for a title or a word: `vectors_call` for `Vectors/Call`,
/// `socket_id` for `socket-id`.
pub(crate) fn key_of(title: &str) -> String {
    let mut out = String::new();
    for c in title.chars() {
        match c {
            c if c.is_alphanumeric() => out.extend(c.to_lowercase()),
            _ if !out.is_empty() && !out.ends_with('_') => out.push('_'),
            _ => {}
        }
    }
    out.trim_end_matches('_').to_string()
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    title: String,
    key: String,
    right: bool,
}

impl Column {
    /// Words: aligned to the left.
    pub fn left(title: &str) -> Column {
        Column { title: title.into(), key: key_of(title), right: false }
    }

    /// Numbers: aligned to the right.
    pub fn right(title: &str) -> Column {
        Column { right: true, ..Column::left(title) }
    }

    /// The key in JSON, when the title does not make a good one.
    pub fn key(mut self, key: &str) -> Column {
        self.key = key.into();
        self
    }
}

/// Columns and rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Cell>>,
    when_empty: Option<String>,
    /// It continues a table whose columns are so wide, under the heading of that.
    continues: Option<Vec<usize>>,
}

impl Table {
    /// A table without rows yet.
    pub fn new(columns: impl Into<Vec<Column>>) -> Table {
        Table { columns: columns.into(), rows: Vec::new(), when_empty: None, continues: None }
    }

    /// What the text says instead of a heading without rows.
    pub fn when_empty(mut self, text: &str) -> Table {
        self.when_empty = Some(text.into());
        self
    }

    /// Begin a row. Its cells follow in the order of the columns.
    pub fn row(&mut self) -> Row<'_> {
        self.rows.push(Vec::with_capacity(self.columns.len()));
        Row { table: self }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Are there no rows?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A table without rows yet that continues this one.
    pub(crate) fn continued(&self) -> Table {
        Table {
            columns: self.columns.clone(),
            rows: Vec::new(),
            when_empty: None,
            continues: Some(self.widths()),
        }
    }

    /// How wide the columns are.
    fn widths(&self) -> Vec<usize> {
        let titles = || self.columns.iter().map(|c| c.title.chars().count()).collect();
        let mut widths: Vec<usize> = self.continues.clone().unwrap_or_else(titles);
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        widths
    }

    pub(super) fn render(&self, out: &mut String) {
        if let (true, Some(text)) = (self.rows.is_empty(), &self.when_empty) {
            out.push_str(text);
            out.push('\n');
            return;
        }
        let widths = self.widths();
        if self.continues.is_none() {
            let titles = self.columns.iter().map(|c| c.title.as_str());
            self.render_row(titles, &widths, out);
        }
        for row in &self.rows {
            self.render_row(row.iter().map(|cell| cell.text.as_str()), &widths, out);
        }
    }

    fn render_row<'c>(
        &self,
        cells: impl Iterator<Item = &'c str>,
        widths: &[usize],
        out: &mut String,
    ) {
        let start = out.len();
        for ((text, width), column) in cells.zip(widths).zip(&self.columns) {
            if out.len() > start {
                out.push_str("  ");
            }
            let _ = if column.right {
                write!(out, "{text:>width$}")
            } else {
                write!(out, "{text:<width$}")
            };
        }
        out.truncate(start + out[start..].trim_end().len());
        out.push('\n');
    }

    pub(super) fn to_json(&self) -> Value {
        Value::Array(self.rows.iter().map(|row| self.row_json(row)).collect())
    }

    /// Keys of columns that are null in some row of some answer.
    pub(super) fn optional_keys(&self) -> impl Iterator<Item = &str> {
        let cells = self.rows.iter().flat_map(|row| self.columns.iter().zip(row));
        cells.filter(|(_, cell)| cell.is_optional).map(|(column, _)| column.key.as_str())
    }

    pub(super) fn row_json(&self, row: &[Cell]) -> Value {
        let cells = self.columns.iter().zip(row);
        Value::Object(cells.map(|(column, cell)| (column.key.clone(), cell.json.clone())).collect())
    }
}

/// A row under construction.
pub struct Row<'t> {
    table: &'t mut Table,
}

impl Row<'_> {
    /// Add the next cell. A cell without a column is dropped.
    pub fn cell(self, value: impl Into<Cell>) -> Self {
        let columns = self.table.columns.len();
        if let Some(row) = self.table.rows.last_mut() {
            debug_assert!(row.len() < columns, "more cells than columns");
            row.push(value.into());
        }
        self
    }
}

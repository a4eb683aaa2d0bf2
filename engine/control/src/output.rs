//! What a command answers: text for people and JSON for programs, from one declaration.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Map, Value, json};

/// The answer of a command. Empty for most that change something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    parts: Vec<Part>,
    as_json: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Line(String),
    Field {
        key: String,
        label: String,
        cell: Cell,
    },
    Table {
        key: String,
        table: Table,
    },
    Json {
        key: String,
        value: Value,
    },
    Whole(Value),
    /// An answer of the API that is nothing but JSON.
    Bare(Value),
}

impl Output {
    /// Nothing to say.
    pub fn none() -> Output {
        Output::default()
    }

    /// Text only. In JSON it is `{"text": …}`.
    pub fn text(text: impl Into<String>) -> Output {
        Output::default().line(text)
    }

    /// Text and JSON that were made apart, where no table fits.
    pub fn both(text: impl Into<String>, json: Value) -> Output {
        let mut output = Output::text(text);
        output.parts.push(Part::Whole(json));
        output
    }

    /// Add lines of text that JSON does not need.
    pub fn line(mut self, text: impl Into<String>) -> Output {
        let mut text: String = text.into();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        self.parts.push(Part::Line(text));
        self
    }

    /// Add `label: value`; in JSON under the label's key.
    pub fn field(mut self, label: &str, value: impl Into<Cell>) -> Output {
        let (key, label) = (key_of(label), label.to_string());
        self.parts.push(Part::Field { key, label, cell: value.into() });
        self
    }

    /// Add a table; in JSON an array of objects under `key`. A table that is all of the answer is
    /// the array itself.
    pub fn table(mut self, key: &str, table: Table) -> Output {
        self.parts.push(Part::Table { key: key.into(), table });
        self
    }

    /// Add something that only JSON shows.
    pub fn json(mut self, key: &str, value: Value) -> Output {
        self.parts.push(Part::Json { key: key.into(), value });
        self
    }

    /// An answer of the API that is nothing but JSON.
    pub(crate) fn bare(value: Value) -> Output {
        Output { parts: vec![Part::Bare(value)], as_json: false }
    }

    /// The JSON of such an answer.
    pub(crate) fn bare_json(&self) -> Option<&Value> {
        match self.parts.as_slice() {
            [Part::Bare(value)] => Some(value),
            _ => None,
        }
    }

    /// Is there nothing to print?
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// From now on the text is the JSON.
    pub(crate) fn showing_json(mut self) -> Output {
        self.as_json = true;
        self
    }

    /// As printed to an operator; each line ends.
    pub fn to_text(&self) -> String {
        if self.as_json {
            let mut text = serde_json::to_string_pretty(&self.to_json()).unwrap_or_default();
            text.push('\n');
            return text;
        }
        let width = self
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Field { label, .. } => Some(label.chars().count() + 1),
                _ => None,
            })
            .max()
            .unwrap_or(0);
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Line(text) => out.push_str(text),
                Part::Field { label, cell, .. } => {
                    let label = format!("{label}:");
                    let _ = writeln!(out, "{label:width$} {}", cell.text);
                }
                Part::Table { table, .. } => table.render(&mut out),
                Part::Json { .. } | Part::Whole(_) | Part::Bare(_) => {}
            }
        }
        out
    }

    /// As given to a program.
    pub fn to_json(&self) -> Value {
        let structured = |part: &&Part| !matches!(part, Part::Line(_));
        let parts: Vec<&Part> = self.parts.iter().filter(structured).collect();
        match parts.as_slice() {
            [] if self.parts.is_empty() => return Value::Null,
            [] => {
                let lines: Vec<&str> = self.parts.iter().map(line_of).collect();
                return json!({ "text": lines.concat() });
            }
            [Part::Table { table, .. }] => return table.to_json(),
            [Part::Whole(value) | Part::Bare(value)] => return value.clone(),
            _ => {}
        }
        let mut out = Map::new();
        for part in parts {
            let (key, value) = match part {
                Part::Field { key, cell, .. } => (key, cell.json.clone()),
                Part::Table { key, table } => (key, table.to_json()),
                Part::Json { key, value } => (key, value.clone()),
                Part::Line(_) | Part::Whole(_) | Part::Bare(_) => continue,
            };
            out.insert(key.clone(), value);
        }
        Value::Object(out)
    }
}

fn line_of(part: &Part) -> &str {
    match part {
        Part::Line(text) => text,
        _ => "",
    }
}

impl From<Table> for Output {
    fn from(table: Table) -> Output {
        Output::default().table("rows", table)
    }
}

/// `Vectors/Call` is `vectors-call` in JSON.
fn key_of(title: &str) -> String {
    let mut out = String::new();
    for c in title.chars() {
        match c {
            c if c.is_alphanumeric() => out.extend(c.to_lowercase()),
            _ if !out.is_empty() && !out.ends_with('-') => out.push('-'),
            _ => {}
        }
    }
    out.trim_end_matches('-').to_string()
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
    rows: Vec<Vec<Cell>>,
    when_empty: Option<String>,
}

impl Table {
    /// A table without rows yet.
    pub fn new(columns: impl Into<Vec<Column>>) -> Table {
        Table { columns: columns.into(), rows: Vec::new(), when_empty: None }
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

    fn render(&self, out: &mut String) {
        if let (true, Some(text)) = (self.rows.is_empty(), &self.when_empty) {
            out.push_str(text);
            out.push('\n');
            return;
        }
        let mut widths: Vec<usize> = self.columns.iter().map(|c| c.title.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        let titles = self.columns.iter().map(|c| c.title.as_str());
        self.render_row(titles, &widths, out);
        for row in &self.rows {
            self.render_row(row.iter().map(|cell| cell.text.as_str()), &widths, out);
        }
    }

    fn render_row<'c>(&self, cells: impl Iterator<Item = &'c str>, widths: &[usize], out: &mut String) {
        let start = out.len();
        for ((text, width), column) in cells.zip(widths).zip(&self.columns) {
            if out.len() > start {
                out.push_str("  ");
            }
            let _ = if column.right { write!(out, "{text:>width$}") } else { write!(out, "{text:<width$}") };
        }
        out.truncate(start + out[start..].trim_end().len());
        out.push('\n');
    }

    fn to_json(&self) -> Value {
        let object = |row: &Vec<Cell>| {
            let cells = self.columns.iter().zip(row);
            Value::Object(cells.map(|(column, cell)| (column.key.clone(), cell.json.clone())).collect())
        };
        Value::Array(self.rows.iter().map(object).collect())
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

/// One value, as text and as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    text: String,
    json: Value,
}

impl Cell {
    /// Text and JSON that differ.
    pub fn new(text: impl Into<String>, json: impl Into<Value>) -> Cell {
        Cell { text: text.into(), json: json.into() }
    }

    /// A number with so many digits behind the point.
    pub fn real(value: f64, digits: usize) -> Cell {
        Cell { text: format!("{value:.digits$}"), json: json!(value) }
    }

    /// A number as `1.25e3`.
    pub fn scientific(value: f64) -> Cell {
        Cell { text: format!("{value:.2e}"), json: json!(value) }
    }

    /// Whatever prints itself.
    pub fn display(value: impl std::fmt::Display) -> Cell {
        let text = value.to_string();
        Cell { json: Value::String(text.clone()), text }
    }
}

macro_rules! cells_that_print_as_their_json {
    ($($number:ty),*) => {$(
        impl From<$number> for Cell {
            fn from(value: $number) -> Cell {
                Cell { text: value.to_string(), json: json!(value) }
            }
        }
    )*};
}
cells_that_print_as_their_json!(u8, u16, u32, u64, usize, i32, i64, IpAddr, Ipv4Addr, Ipv6Addr);

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::display(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { json: Value::String(text.clone()), text }
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Cell {
        Cell::display(text)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::real(value, 2)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Cell {
        Cell::new(if value { "yes" } else { "no" }, value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or_else(|| Cell::new("", Value::Null), Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([Column::left("Name"), Column::right("MTU (L3)").key("mtu")]);
        table.row().cell("e0").cell(1500);
        table.row().cell("loop0").cell(9000);
        table
    }

    #[test]
    fn text_and_json_of_a_table_come_from_the_same_rows() {
        let output = Output::from(table());
        assert_eq!(output.to_text(), "Name   MTU (L3)\ne0         1500\nloop0      9000\n");
        assert_eq!(output.to_json(), json!([{"name": "e0", "mtu": 1500}, {"name": "loop0", "mtu": 9000}]));
    }

    #[test]
    fn fields_and_tables_together_make_an_object() {
        let output = Output::none().field("Loops/sec", 12.5).table("interfaces", table());
        assert!(output.to_text().starts_with("Loops/sec: 12.50\nName"));
        assert_eq!(output.to_json()["loops-sec"], json!(12.5));
        assert_eq!(output.to_json()["interfaces"][1]["mtu"], 9000);
    }

    #[test]
    fn an_empty_answer_is_null_and_plain_text_is_wrapped() {
        assert_eq!(Output::none().to_json(), Value::Null);
        assert_eq!(Output::text("hello").to_json(), json!({"text": "hello\n"}));
        assert_eq!(Output::text("x").showing_json().to_text(), "{\n  \"text\": \"x\\n\"\n}\n");
    }
}

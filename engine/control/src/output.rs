//! What a command answers: text for people and JSON for programs, from one declaration.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Map, Value, json};

/// The answer of a command. Empty for most that change something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    parts: Vec<Part>,
    as_json: bool,
    page: Option<Page>,
}

/// Which part of a long answer an output is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Page {
    /// Nothing came before it.
    pub(crate) first: bool,
    /// Nothing follows.
    pub(crate) last: bool,
    /// The whole is an object with fields; otherwise the array of its rows.
    pub(crate) is_object: bool,
    /// Pages before it had rows.
    pub(crate) rows_before: bool,
}

impl Page {
    /// What closes the JSON of a long answer that breaks off behind a page like this.
    pub(crate) fn closing(self) -> &'static str {
        if self.is_object { "]}" } else { "]" }
    }
}

/// How a piece of an answer is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    /// Text, or JSON when the command said so.
    AsTold,
    /// JSON for people: a row a line.
    Json,
    /// JSON in one line.
    Compact,
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
        Output { parts: vec![Part::Bare(value)], ..Output::default() }
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

    /// This output as a page of a long answer.
    pub(crate) fn on_page(mut self, page: Page) -> Output {
        self.page = Some(page);
        self
    }

    /// Which page of a long answer it is, if it is one.
    pub(crate) fn page(&self) -> Option<Page> {
        self.page
    }

    /// What `next` says follows what this says.
    pub(crate) fn followed_by(mut self, next: Output) -> Output {
        self.parts.extend(next.parts);
        self
    }

    /// Has it fields, so that its JSON is an object?
    pub(crate) fn has_fields(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Field { .. } | Part::Json { .. }))
    }

    /// Put the next page of a long answer behind the pages before it. A page that continues none
    /// comes back.
    pub(crate) fn join(&mut self, next: Output) -> Result<(), Output> {
        let (Some(page), Some(next_page)) = (self.page, next.page) else { return Err(next) };
        if page.last || next_page.first {
            return Err(next);
        }
        for part in next.parts {
            let known = self.parts.iter_mut().find_map(|known| match known {
                Part::Table { table, .. } => Some(table),
                _ => None,
            });
            match (known, part) {
                (Some(known), Part::Table { table, .. }) => known.rows.extend(table.rows),
                (_, part) => self.parts.push(part),
            }
        }
        self.page = Some(Page { last: next_page.last, ..page }).filter(|page| !page.last);
        Ok(())
    }

    /// About how many bytes it takes as text; what a client has not read is counted in these.
    pub(crate) fn weight(&self) -> usize {
        let part = |part: &Part| match part {
            Part::Line(text) => text.len(),
            Part::Field { label, cell, .. } => label.len() + cell.text.len(),
            Part::Table { table, .. } => {
                table.rows.iter().flatten().map(|cell| 2 + cell.text.len()).sum::<usize>()
            }
            Part::Json { .. } | Part::Whole(_) => 0,
            Part::Bare(_) => BARE_WEIGHT,
        };
        self.parts.iter().map(part).sum()
    }

    /// As text, or as JSON when the command said so; a page as the piece that it is of the whole.
    pub(crate) fn as_told(&self) -> String {
        self.written(Form::AsTold)
    }

    /// In a form; a page as the piece that it is of the whole.
    pub(crate) fn written(&self, form: Form) -> String {
        match (self.page, form) {
            (Some(page), Form::AsTold) if self.as_json => self.json_piece(page, true),
            (Some(page), Form::Json) => self.json_piece(page, true),
            (Some(page), Form::Compact) => self.json_piece(page, false),
            (_, Form::AsTold) => self.to_text(),
            (None, Form::Json) => self.clone().showing_json().to_text(),
            (None, Form::Compact) => self.to_json().to_string(),
        }
    }

    /// The piece that this page is of the JSON of a long answer.
    fn json_piece(&self, page: Page, in_lines: bool) -> String {
        let line = if in_lines { "\n" } else { "" };
        let mut out = String::new();
        let mut in_array = !page.first;
        let open = |out: &mut String, key: &str| {
            if page.is_object {
                let _ = write!(out, "{}:", Value::from(key));
            }
            out.push('[');
        };
        if page.first && page.is_object {
            out.push('{');
            out += line;
        }
        let field = |out: &mut String, in_array: bool, key: &str, value: &Value| {
            // Before the array a comma follows the field, behind it one precedes it.
            let (before, after) = if in_array { (",", "") } else { ("", ",") };
            let _ = write!(out, "{before}{}:{value}{after}{line}", Value::from(key));
        };
        let mut is_closed = false;
        for part in &self.parts {
            match part {
                Part::Table { key, table } => {
                    if page.first {
                        open(&mut out, key);
                        in_array = true;
                    }
                    for (index, row) in table.rows.iter().enumerate() {
                        out += if page.rows_before || index > 0 { "," } else { "" };
                        let _ = write!(out, "{line}{}", table.row_json(row));
                    }
                    if page.last {
                        out += line;
                        out.push(']');
                        is_closed = true;
                    }
                }
                Part::Field { key, cell, .. } => field(&mut out, in_array, key, &cell.json),
                Part::Json { key, value } => field(&mut out, in_array, key, value),
                Part::Line(_) | Part::Whole(_) | Part::Bare(_) => {}
            }
        }
        if is_closed {
            out += if page.is_object { "}" } else { "" };
            out += line;
        }
        out
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

/// What JSON alone counts as, of what a client has not read.
const BARE_WEIGHT: usize = 64 * 1024;

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

/// `Vectors/Call` is `vectors_call` in JSON.
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
    rows: Vec<Vec<Cell>>,
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

    fn render(&self, out: &mut String) {
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
        Value::Array(self.rows.iter().map(|row| self.row_json(row)).collect())
    }

    fn row_json(&self, row: &[Cell]) -> Value {
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
        assert_eq!(output.to_json()["loops_sec"], json!(12.5));
        assert_eq!(output.to_json()["interfaces"][1]["mtu"], 9000);
    }

    /// A listing of so many rows, cut into pages of these lengths.
    fn pages(lengths: &[usize], is_object: bool) -> Vec<Output> {
        let (mut out, mut number) = (Vec::new(), 0);
        let mut table = Table::new([Column::left("Name"), Column::right("Number")]);
        for (index, length) in lengths.iter().enumerate() {
            let rows_before = number > 0;
            for _ in 0..*length {
                number += 1;
                table.row().cell(format!("r{number}")).cell(number);
            }
            let next = table.continued();
            let page = Page { first: index == 0, last: index + 1 == lengths.len(), is_object, rows_before };
            let mut output = Output::none();
            if index == 0 && is_object {
                output = output.line("head").field("Total", lengths.iter().sum::<usize>());
            }
            output = output.table("rows", std::mem::replace(&mut table, next));
            if page.last && is_object {
                output = output.json("more", json!({"left": 0})).line("foot");
            }
            out.push(output.on_page(page));
        }
        out
    }

    #[test]
    fn the_pieces_of_a_long_answer_make_the_whole() {
        for lengths in [&[2, 3, 1][..], &[1, 0], &[0, 2, 0], &[0, 0]] {
            for is_object in [false, true] {
                let pages = pages(lengths, is_object);
                let mut whole = pages[0].clone();
                pages[1..].iter().for_each(|page| whole.join(page.clone()).expect("continues"));
                assert!(whole.page().is_none(), "nothing is missing");
                for form in [Form::Json, Form::Compact] {
                    let text: String = pages.iter().map(|page| page.written(form)).collect();
                    let parsed: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
                    assert_eq!(parsed, whole.to_json(), "{lengths:?}");
                }
                let text: String = pages.iter().map(Output::as_told).collect();
                assert_eq!(text.lines().count(), whole.to_text().lines().count());
                assert_eq!(text.matches("Name").count(), 1, "one heading: {text}");
            }
        }
    }

    #[test]
    fn an_empty_answer_is_null_and_plain_text_is_wrapped() {
        assert_eq!(Output::none().to_json(), Value::Null);
        assert_eq!(Output::text("hello").to_json(), json!({"text": "hello\n"}));
        assert_eq!(Output::text("x").showing_json().to_text(), "{\n  \"text\": \"x\\n\"\n}\n");
    }
}

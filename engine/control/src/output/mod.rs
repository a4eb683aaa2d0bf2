//! What a command answers: text for people and JSON for programs, from one declaration.

mod cell;
mod page;
mod table;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::answers;

pub use cell::Cell;
pub(crate) use page::{Form, Page};
pub(crate) use table::key_of;
pub use table::{Column, Table};

/// The answer of a command. Empty for most that change something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    parts: Vec<Part>,
    as_json: bool,
    page: Option<Page>,
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
    /// Things as text, and an array of them in JSON.
    Items {
        key: &'static str,
        text: String,
        items: Vec<Value>,
    },
    Json {
        key: String,
        value: Value,
    },
    Whole(Value),
    /// An answer of the API that is nothing but JSON.
    Bare(Arc<Value>),
    /// Members of JSON made by hand that may be null.
    Nullable(&'static [&'static str]),
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

    /// Add things as text; in JSON an array of them under `key`.
    pub(crate) fn items(mut self, key: &'static str, text: String, items: Vec<Value>) -> Output {
        self.parts.push(Part::Items { key, text, items });
        self
    }

    /// Add something that only JSON shows.
    pub fn json(mut self, key: &str, value: Value) -> Output {
        self.parts.push(Part::Json { key: key.into(), value });
        self
    }

    /// Say which members of JSON that was made by hand may be null: `threads[].core`, `[].table`.
    /// The published form then says so, whether a test has seen null there or not.
    pub fn nullable(mut self, members: &'static [&'static str]) -> Output {
        self.parts.push(Part::Nullable(members));
        self
    }

    /// An answer of the API that is nothing but JSON.
    pub(crate) fn bare(value: Arc<Value>) -> Output {
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

    /// What `next` says follows what this says.
    pub(crate) fn followed_by(mut self, next: Output) -> Output {
        self.parts.extend(next.parts);
        self
    }

    /// Has it fields, so that its JSON is an object?
    pub(crate) fn has_fields(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Field { .. } | Part::Json { .. }))
    }

    /// About how many bytes it takes as text; what a client has not read is counted in these.
    pub(crate) fn weight(&self) -> usize {
        let part = |part: &Part| match part {
            Part::Line(text) => text.len(),
            Part::Field { label, cell, .. } => label.len() + cell.text.len(),
            Part::Table { table, .. } => {
                table.rows.iter().flatten().map(|cell| 2 + cell.text.len()).sum::<usize>()
            }
            Part::Items { text, .. } => text.len(),
            Part::Json { .. } | Part::Whole(_) | Part::Nullable(_) => 0,
            Part::Bare(_) => BARE_WEIGHT,
        };
        self.parts.iter().map(part).sum()
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
                Part::Items { text, .. } => out.push_str(text),
                Part::Json { .. } | Part::Whole(_) | Part::Bare(_) | Part::Nullable(_) => {}
            }
        }
        out
    }

    /// As given to a program.
    pub fn to_json(&self) -> Value {
        let structured = |part: &&Part| !matches!(part, Part::Line(_) | Part::Nullable(_));
        let parts: Vec<&Part> = self.parts.iter().filter(structured).collect();
        match parts.as_slice() {
            [] if self.parts.is_empty() => return Value::Null,
            [] => {
                let lines: Vec<&str> = self.parts.iter().map(line_of).collect();
                return json!({ "text": lines.concat() });
            }
            [Part::Table { table, .. }] => return table.to_json(),
            [Part::Whole(value)] => return value.clone(),
            [Part::Bare(value)] => return Value::clone(value),
            _ => {}
        }
        let mut out = Map::new();
        for part in parts {
            let (key, value) = match part {
                Part::Field { key, cell, .. } => (key, cell.json.clone()),
                Part::Table { key, table } => (key, table.to_json()),
                Part::Json { key, value } => (key, value.clone()),
                Part::Items { key, items, .. } => {
                    out.insert((*key).to_owned(), json!(items));
                    continue;
                }
                Part::Line(_) | Part::Whole(_) | Part::Bare(_) | Part::Nullable(_) => continue,
            };
            out.insert(key.clone(), value);
        }
        Value::Object(out)
    }

    /// The schema of this answer, and of one like it in which every optional value is null.
    pub fn schema(&self) -> Value {
        let mut schema = answers::infer(&self.to_json());
        for part in &self.parts {
            match part {
                Part::Field { key, cell, .. } if cell.is_optional => allow_null(&mut schema, key),
                Part::Nullable(members) => {
                    members.iter().for_each(|path| allow_null(&mut schema, path))
                }
                Part::Table { key, table } => {
                    let items = match schema["type"].as_str() {
                        Some("array") => schema.get_mut("items"),
                        _ => schema.pointer_mut(&format!("/properties/{key}/items")),
                    };
                    let Some(items) = items else { continue };
                    let keys: BTreeSet<&str> = table.optional_keys().collect();
                    keys.into_iter().for_each(|key| allow_null(items, key));
                }
                _ => {}
            }
        }
        schema
    }
}

/// Let a member of `schema` be null too: `mtu_bytes`, `threads[].core`.
fn allow_null(schema: &mut Value, path: &str) {
    let (first, rest) =
        path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let name = first.trim_end_matches("[]");
    let mut at = if name.is_empty() { Some(schema) } else { schema["properties"].get_mut(name) };
    for _ in 0..first.matches("[]").count() {
        at = at.and_then(|array| array.get_mut("items"));
    }
    match (at, rest) {
        (Some(member), Some(rest)) => allow_null(member, rest),
        (Some(member), None) => *member = answers::merge(member, &answers::infer(&Value::Null)),
        (None, _) => {}
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
        assert_eq!(
            output.to_json(),
            json!([{"name": "e0", "mtu": 1500}, {"name": "loop0", "mtu": 9000}])
        );
    }

    #[test]
    fn fields_and_tables_together_make_an_object() {
        let output = Output::none().field("Loops/sec", 12.5).table("interfaces", table());
        assert!(output.to_text().starts_with("Loops/sec: 12.50\nName"));
        assert_eq!(output.to_json()["loops_sec"], json!(12.5));
        assert_eq!(output.to_json()["interfaces"][1]["mtu"], 9000);
    }

    #[test]
    fn an_optional_value_may_be_null_in_the_schema_whatever_it_is_in_the_answer() {
        let mut table = Table::new([Column::left("Name"), Column::left("MAC")]);
        table.row().cell("e0").cell(Some("02:00:00:00:00:01"));
        let alone = Output::from(table.clone()).schema();
        let with_field =
            Output::none().field("Peer", Some(1)).table("rows", table.clone()).schema();
        table.row().cell("e1").cell(None::<&str>);
        let both = Output::from(table.clone());
        assert_eq!(answers::differences(&alone, &both.to_json()), Vec::<String>::new());
        assert_eq!(alone, both.schema());
        let none = Output::none().field("Peer", None::<u32>).table("rows", table);
        assert_eq!(answers::differences(&with_field, &none.to_json()), Vec::<String>::new());
        assert_eq!(alone["items"]["properties"]["name"]["type"], "string");
        let by_hand = |core| json!({ "threads": [{ "core": core, "cores": [1, core] }] });
        let declared = Output::both("", by_hand(Some(1))).nullable(&[
            "threads[].core",
            "threads[].cores[]",
            "gone[].x",
        ]);
        assert_eq!(declared.to_json(), by_hand(Some(1)));
        assert_eq!(answers::differences(&declared.schema(), &by_hand(None)), Vec::<String>::new());
    }

    #[test]
    fn an_empty_answer_is_null_and_plain_text_is_wrapped() {
        assert_eq!(Output::none().to_json(), Value::Null);
        assert_eq!(Output::text("hello").to_json(), json!({"text": "hello\n"}));
        assert_eq!(Output::text("x").showing_json().to_text(), "{\n  \"text\": \"x\\n\"\n}\n");
    }
}

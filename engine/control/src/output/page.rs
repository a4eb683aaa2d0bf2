//! Pages: the pieces in which a long answer is written.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Output, Part};

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

impl Output {
    /// This output as a page of a long answer.
    pub(crate) fn on_page(mut self, page: Page) -> Output {
        self.page = Some(page);
        self
    }

    /// Which page of a long answer it is, if it is one.
    pub(crate) fn page(&self) -> Option<Page> {
        self.page
    }

    /// Put the next page of a long answer behind the pages before it. A page that continues none
    /// comes back.
    pub(crate) fn join(&mut self, next: Output) -> Result<(), Output> {
        let (Some(page), Some(next_page)) = (self.page, next.page) else { return Err(next) };
        if page.last || next_page.first {
            return Err(next);
        }
        for part in next.parts {
            let known = self
                .parts
                .iter_mut()
                .find(|known| matches!(known, Part::Table { .. } | Part::Items { .. }));
            match (known, part) {
                (Some(Part::Table { table: known, .. }), Part::Table { table, .. }) => {
                    known.rows.extend(table.rows);
                }
                (
                    Some(Part::Items { text: known_text, items: known, .. }),
                    Part::Items { text, items, .. },
                ) => {
                    known_text.push_str(&text);
                    known.extend(items);
                }
                (_, part) => self.parts.push(part),
            }
        }
        self.page = Some(Page { last: next_page.last, ..page }).filter(|page| !page.last);
        Ok(())
    }

    /// As text, or as JSON when the command said so; a page as the piece that it is of the whole.
    pub(crate) fn as_printed(&self) -> String {
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
                Part::Table { .. } | Part::Items { .. } => {
                    let (key, items): (&str, Vec<Value>) = match part {
                        Part::Items { key, items, .. } => (key, items.clone()),
                        Part::Table { key, table } => {
                            (key, table.rows.iter().map(|row| table.row_json(row)).collect())
                        }
                        _ => continue,
                    };
                    if page.first {
                        open(&mut out, key);
                        in_array = true;
                    }
                    for (index, item) in items.iter().enumerate() {
                        out += if page.rows_before || index > 0 { "," } else { "" };
                        let _ = write!(out, "{line}{item}");
                    }
                    if page.last {
                        out += line;
                        out.push(']');
                        is_closed = true;
                    }
                }
                Part::Field { key, cell, .. } => field(&mut out, in_array, key, &cell.json),
                Part::Json { key, value } => field(&mut out, in_array, key, value),
                Part::Line(_) | Part::Whole(_) | Part::Bare(_) | Part::Nullable(_) => {}
            }
        }
        if is_closed {
            out += if page.is_object { "}" } else { "" };
            out += line;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Column, Table};
    use super::*;

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
            let page = Page {
                first: index == 0,
                last: index + 1 == lengths.len(),
                is_object,
                rows_before,
            };
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
                    let parsed: Value =
                        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
                    assert_eq!(parsed, whole.to_json(), "{lengths:?}");
                }
                let text: String = pages.iter().map(Output::as_printed).collect();
                assert_eq!(text.lines().count(), whole.to_text().lines().count());
                assert_eq!(text.matches("Name").count(), 1, "one heading: {text}");
            }
        }
    }
}

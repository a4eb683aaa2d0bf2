//! Long answers: tables whose rows are made page by page, as the client reads them.
//!
//! A listing holds a cursor, not a copy. Each page shows the table as it is when the page is made:
//! a row that is there from beginning to end is listed exactly once, in order; one that comes,
//! goes or changes meanwhile is listed as it was, as it is, or not at all.

use crate::error::Refusal;
use crate::grammar::Work;
use crate::job::{Job, Sink, Step};
use crate::output::{Column, Output, Page, Table};

/// Rows of a page at most.
pub const PAGE_ROWS_MAX: usize = 512;

/// Adds at most so many rows to the table, and looks at a bounded number of entries for that.
/// Returns what follows the last row, once there are no more.
type Rows<S> = Box<dyn FnMut(&mut S, &mut Table, usize) -> Result<Option<Output>, Refusal>>;

/// A long answer. A short one (a page at most) is like any other answer.
pub struct Listing<S> {
    head: Output,
    key: &'static str,
    table: Table,
    has_foot: bool,
    rows: Rows<S>,
}

impl<S: 'static> Listing<S> {
    /// A table under `key` of JSON, whose rows `rows` adds.
    pub fn new(
        key: &'static str,
        columns: impl Into<Vec<Column>>,
        rows: impl FnMut(&mut S, &mut Table, usize) -> Result<Option<Output>, Refusal> + 'static,
    ) -> Listing<S> {
        let table = Table::new(columns);
        Listing { head: Output::none(), key, table, has_foot: false, rows: Box::new(rows) }
    }

    /// What comes before the table.
    pub fn head(mut self, head: Output) -> Self {
        self.head = head;
        self
    }

    /// What the text says instead of a heading without rows.
    pub fn when_empty(mut self, text: &str) -> Self {
        self.table = self.table.when_empty(text);
        self
    }

    /// What follows the last row has fields of JSON, so that the whole is an object in any case.
    pub fn with_foot(mut self) -> Self {
        self.has_foot = true;
        self
    }

    /// Make the first page. If it is all, that is the answer.
    pub fn begin(mut self, state: &mut S) -> Result<Work<S>, Refusal> {
        let mut table = self.table.clone();
        if let Some(foot) = (self.rows)(state, &mut table, PAGE_ROWS_MAX)? {
            return Ok(Work::Done(self.head.table(self.key, table).followed_by(foot)));
        }
        let is_object = self.has_foot || self.head.has_fields();
        let (rows_before, next) = (!table.is_empty(), table.continued());
        let page = Page { first: true, last: false, is_object, rows_before: false };
        let first = Some(self.head.table(self.key, table).on_page(page));
        let listed = Listed { key: self.key, first, table: next, is_object, rows_before, rows: self.rows };
        Ok(Work::Begun(Box::new(listed)))
    }
}

/// A long answer under way.
struct Listed<S> {
    key: &'static str,
    first: Option<Output>,
    /// As the pages to come begin: without rows or a heading, as wide as the first.
    table: Table,
    is_object: bool,
    rows_before: bool,
    rows: Rows<S>,
}

impl<S> Job<S> for Listed<S> {
    fn step(&mut self, state: &mut S, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        if let Some(first) = self.first.take() {
            sink.output(first);
        }
        while !sink.must_pause() {
            let mut table = self.table.clone();
            let foot = (self.rows)(state, &mut table, PAGE_ROWS_MAX)?;
            sink.spend(PAGE_ROWS_MAX as u64);
            let page = Page {
                first: false,
                last: foot.is_some(),
                is_object: self.is_object,
                rows_before: self.rows_before,
            };
            self.rows_before |= !table.is_empty();
            let is_empty = table.is_empty();
            let output = Output::none().table(self.key, table);
            match foot {
                Some(foot) => return Ok(Step::Done(output.followed_by(foot).on_page(page))),
                None if is_empty => {}
                None => sink.output(output.on_page(page)),
            }
        }
        Ok(Step::Again)
    }
}

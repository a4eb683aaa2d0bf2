//! Long answers: tables whose rows are made page by page, as the client reads them.
//!
//! A listing holds a cursor, not a copy. Each page shows the table as it is when the page is made:
//! a row that is there from beginning to end is listed exactly once, in order; one that comes,
//! goes or changes meanwhile is listed as it was, as it is, or not at all.

use crate::error::Refusal;
use crate::grammar::Work;
use crate::job::{Job, Sink, Step};
use crate::output::{Column, Output, Page, Table};
use serde_json::Value;

/// Rows of a page at most.
pub const PAGE_ROWS_MAX: usize = 512;

/// Keys of a slice, after which the time is looked at again. What is told of each may be long: 50
/// us of an interface.
const SLICE_KEYS_MAX: usize = 16;

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

    /// A table with rows of each of `keys`, which `add` adds; of a key that is gone it adds none.
    pub fn over<K: 'static>(
        key: &'static str,
        columns: impl Into<Vec<Column>>,
        keys: Vec<K>,
        mut add: impl FnMut(&S, &mut Table, K) + 'static,
    ) -> Listing<S> {
        let mut keys = keys.into_iter();
        Listing::new(key, columns, move |state, table, most| {
            keys.by_ref().take(most).for_each(|key| add(state, table, key));
            Ok((keys.len() == 0).then(Output::none))
        })
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
    ///
    /// # Errors
    /// The rows cannot be made.
    pub fn begin(mut self, state: &mut S) -> Result<Work<S>, Refusal> {
        let mut table = self.table.clone();
        if let Some(foot) = (self.rows)(state, &mut table, PAGE_ROWS_MAX)? {
            return Ok(Work::Done(self.head.table(self.key, table).followed_by(foot)));
        }
        let is_object = self.has_foot || self.head.has_fields();
        let (rows_before, next) = (!table.is_empty(), table.continued());
        let page = Page { first: true, last: false, is_object, rows_before: false };
        let first = Some(self.head.table(self.key, table).on_page(page));
        let listed =
            Listed { key: self.key, first, table: next, is_object, rows_before, rows: self.rows };
        Ok(Work::Begun(Box::new(listed)))
    }
}

/// A long answer of things that are no rows of a table: text, and an array under `key` of JSON.
/// `add` adds each of `keys` to both; of a key that is gone it adds nothing. `head` is the text
/// before the first. Pages are made as the client reads them.
pub fn in_pages<S: 'static, K: 'static>(
    state: &mut S,
    key: &'static str,
    head: String,
    keys: Vec<K>,
    add: impl FnMut(&S, &mut String, &mut Vec<Value>, K) + 'static,
) -> Work<S> {
    let mut pages =
        InPages { key, head, keys: keys.into_iter(), add, first: None, rows_before: false };
    let (text, items) = pages.slice(state);
    let output = Output::none().items(key, text, items);
    if pages.keys.len() == 0 {
        return Work::Done(output);
    }
    let page = Page { first: true, last: false, is_object: true, rows_before: false };
    pages.first = Some(output.on_page(page));
    Work::Begun(Box::new(pages))
}

/// A long answer of things under way.
struct InPages<K, F> {
    key: &'static str,
    /// Text that comes before that of the next things.
    head: String,
    keys: std::vec::IntoIter<K>,
    add: F,
    /// The first page, until it is handed out.
    first: Option<Output>,
    rows_before: bool,
}

impl<K, F> InPages<K, F> {
    /// Make the text and the JSON of some more.
    fn slice<S>(&mut self, state: &S) -> (String, Vec<Value>)
    where
        F: FnMut(&S, &mut String, &mut Vec<Value>, K),
    {
        let (mut text, mut items) = (std::mem::take(&mut self.head), Vec::new());
        for key in self.keys.by_ref().take(SLICE_KEYS_MAX) {
            (self.add)(state, &mut text, &mut items, key);
        }
        self.rows_before |= !items.is_empty();
        (text, items)
    }
}

impl<S, K, F> Job<S> for InPages<K, F>
where
    F: FnMut(&S, &mut String, &mut Vec<Value>, K),
{
    fn step(&mut self, state: &mut S, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        if let Some(first) = self.first.take() {
            sink.output(first);
        }
        while !sink.must_pause() {
            sink.spend(SLICE_KEYS_MAX as u64);
            let rows_before = self.rows_before;
            let (text, items) = self.slice(state);
            let (last, is_empty) = (self.keys.len() == 0, items.is_empty() && text.is_empty());
            let page = Page { first: false, last, is_object: true, rows_before };
            let output = Output::none().items(self.key, text, items).on_page(page);
            match (last, is_empty) {
                (true, _) => return Ok(Step::Done(output)),
                (false, true) => {}
                (false, false) => sink.output(output),
            }
        }
        Ok(Step::Again)
    }
}

/// Make an answer that is one whole, of many things: `add` adds each of `keys` to what was made so
/// far, some of them at a time, and `end` makes the answer, of what it is given and without a copy.
/// A table of any length is a [`Listing`].
pub fn in_slices<S: 'static, K: 'static, A: 'static>(
    state: &mut S,
    keys: Vec<K>,
    made: A,
    add: impl FnMut(&S, &mut A, K) + 'static,
    end: impl FnOnce(&S, A) -> Output + 'static,
) -> Work<S> {
    let mut slices = InSlices { keys: keys.into_iter(), rest: Some((made, end)), add };
    match slices.slice(state) {
        Some(output) => Work::Done(output),
        None => Work::Begun(Box::new(slices)),
    }
}

/// An answer that is being made.
struct InSlices<K, A, F, E> {
    keys: std::vec::IntoIter<K>,
    rest: Option<(A, E)>,
    add: F,
}

impl<K, A, F, E> InSlices<K, A, F, E> {
    /// Make more of it. Returns the answer when it is whole.
    fn slice<S>(&mut self, state: &S) -> Option<Output>
    where
        F: FnMut(&S, &mut A, K),
        E: FnOnce(&S, A) -> Output,
    {
        if let Some((made, _)) = &mut self.rest {
            for key in self.keys.by_ref().take(SLICE_KEYS_MAX) {
                (self.add)(state, made, key);
            }
        }
        let (made, end) = self.rest.take_if(|_| self.keys.len() == 0)?;
        Some(end(state, made))
    }
}

impl<S, K, A, F, E> Job<S> for InSlices<K, A, F, E>
where
    F: FnMut(&S, &mut A, K),
    E: FnOnce(&S, A) -> Output,
{
    fn step(&mut self, state: &mut S, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        while !sink.must_pause() {
            sink.spend(SLICE_KEYS_MAX as u64);
            if let Some(output) = self.slice(state) {
                return Ok(Step::Done(output));
            }
        }
        Ok(Step::Again)
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

//! Tables of live figures on a terminal: what the `top` of every program stands on.
//!
//! A program says what it asks for ([`Ask`]) and how two answers become tables ([`View`]). The rest
//! is here: a thread that asks, keys, panes, sorting, filter, a small plot, and the same tables as
//! text where there is no terminal.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod app;
mod draw;
mod plain;
mod poll;
mod table;
mod terminal;

pub use app::App;
pub use draw::draw;
pub use plain::text;
pub use poll::{Ask, News};
pub use table::{Choice, Column, Pane, Value, clean, number, scaled, words};
pub use terminal::{is_screen, show, speaks_utf8};

/// What a program does, between two moments.
pub trait View: Sized + 'static {
    /// What is asked for.
    type Snapshot: Send + 'static;
    /// What the heading begins with.
    const PROGRAM: &'static str;
    /// What is asked, for messages: `router`.
    const PEER: &'static str;
    /// The tables, in the order of their keys.
    const PANES: &'static [Pane];
    /// The line of keys.
    const KEYS: &'static str;
    /// The page of keys.
    const HELP: &'static [&'static str];

    /// What happened from `before` to `now`; `None` when no time has passed.
    fn between(before: &Self::Snapshot, now: &Self::Snapshot) -> Option<Self>;

    /// The rows of a pane, by its place, before filter and order.
    fn rows(&self, pane: usize, choice: &Choice) -> Vec<Vec<Value>>;

    /// Whether it has a pane at all; one that it has not is not shown.
    fn has(&self, _pane: usize) -> bool {
        true
    }

    /// The line of sums.
    fn totals(&self) -> String;

    /// Over how long, seconds.
    fn elapsed_s(&self) -> f64;

    /// What is wrong, if anything, in words.
    fn alert(&self) -> Option<String> {
        None
    }

    /// Of how many parts (workers) a pane can show one alone; `w` goes through them.
    fn parts(&self) -> usize {
        0
    }

    /// Whether a filter looks at every column of a pane, not only at the first.
    fn filters_all_columns(_pane: usize) -> bool {
        false
    }

    /// Two rates to draw over time, the larger and the part of it that matters.
    fn plotted(&self) -> Option<(f64, f64)> {
        None
    }

    /// What the plot's two kinds of marks are.
    const PLOT: &'static str = "";
}

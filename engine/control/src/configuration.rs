//! `show running-config` under way: written part by part, and long parts slice by slice, so that
//! the control loop keeps its time however long the configuration is.

use serde_json::Value as Json;

use crate::grammar::Commands;
use crate::job::{Sink, Step};
use crate::listing::PAGE_ROWS_MAX;
use crate::names::Names;
use crate::output::{Output, Page};
use crate::running::{ConfigWriter, Slices};

/// The key of the commands in JSON.
const KEY: &str = "commands";

/// A configuration that is being written.
pub(crate) struct Configuration<S> {
    config: ConfigWriter,
    /// The parts that are left, the last first.
    left: Vec<usize>,
    /// The part under way.
    part: Option<Slices<S>>,
    /// Commands that had been begun when it began.
    changes: u64,
    /// Lines of a page that is not full.
    lines: Vec<String>,
    /// Pages that were handed out.
    pages: usize,
}

impl<S: Names + 'static> Configuration<S> {
    pub(crate) fn new(commands: &Commands<S>, hides_secrets: bool) -> Configuration<S> {
        let mut left = commands.parts_in_order(&mut |_| 0);
        left.reverse();
        Configuration {
            config: ConfigWriter::hiding_secrets(hides_secrets),
            left,
            part: None,
            changes: commands.changes.begun(),
            lines: Vec::new(),
            pages: 0,
        }
    }

    /// Write some of it.
    pub(crate) fn step(&mut self, commands: &Commands<S>, state: &S, sink: &mut dyn Sink) -> Step {
        while !sink.must_pause() {
            let Some(mut slices) = self
                .part
                .take()
                .or_else(|| self.left.pop().map(|part| commands.contributors[part].begin()))
            else {
                return Step::Done(self.last_page(commands));
            };
            let before = self.config.written();
            let is_all = slices(state, &mut self.config, PAGE_ROWS_MAX);
            // A slice that is not the last looked at so many entries, whether they made commands or
            // not.
            let entries = if is_all { self.config.written() - before } else { PAGE_ROWS_MAX };
            sink.spend(1 + entries as u64);
            self.part = (!is_all).then_some(slices);
            self.lines.append(&mut self.config.take());
            if self.lines.len() >= PAGE_ROWS_MAX {
                sink.output(self.page(false));
            }
        }
        Step::Again
    }

    fn last_page(&mut self, commands: &Commands<S>) -> Output {
        self.config.end();
        if commands.changes.begun() != self.changes {
            self.config.comment(
                "commands were executed while this was written: it may be of before or after",
            );
        }
        self.lines.append(&mut self.config.take());
        self.page(true)
    }

    fn page(&mut self, last: bool) -> Output {
        let page =
            Page { first: self.pages == 0, last, is_object: true, rows_before: self.pages > 0 };
        self.pages += 1;
        let lines = std::mem::take(&mut self.lines);
        let text = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let output = Output::none().items(KEY, text, lines.into_iter().map(Json::from).collect());
        // What fits on one page is an answer like any other.
        if page.first && page.last { output } else { output.on_page(page) }
    }
}

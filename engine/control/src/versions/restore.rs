//! The start: the version that was saved last is executed on a fresh router.

use std::fmt::Write as _;

use super::store::{Found, Store, Text};
use super::{Kept, Version, time};
use crate::changes::{Changes, Line, Reader, between};
use crate::document::comments_of;
use crate::error::Refusal;
use crate::grammar::Commands;
use crate::job::Sink;
use crate::names::Names;
use crate::script::OnRefusal;

/// What a start came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The version that the router has now.
    pub version: u32,
    /// When it was made, and by whom.
    pub about: String,
    /// Commands that were applied.
    pub applied: u64,
}

impl<S: Names + 'static> Commands<S> {
    /// Keep versions of the configuration in this folder. Returns what is wrong there.
    ///
    /// # Errors
    /// The folder cannot be read or written; no versions are kept then.
    pub fn keep_versions(&self, store: Store) -> Result<Vec<String>, String> {
        let Found { mut current, versions, mut faults } = store.look()?;
        if let Some(waiting) = current.waiting.take() {
            // A restart gives an operator whose router does not answer the one before back.
            current.returned.push(waiting.version);
            let (version, until) = (waiting.version, time::utc(waiting.until_s));
            faults.push(format!(
                "version {version} was to be confirmed until {until} and was not before the restart"
            ));
            store.put(store.prepare(&current)?)?;
        }
        self.versions.keep(Kept { store, current, list: versions, pending: None });
        Ok(faults)
    }

    /// No versions are kept, because of this.
    pub fn keep_no_versions(&self, why: String) {
        self.versions.keep_none(why);
    }

    /// Execute the saved version; one before it when that cannot be used. What is there already
    /// stays. `None` when there is no version that can be used: the sink has heard why.
    pub fn restore_version(&self, state: &mut S, sink: &mut dyn Sink) -> Option<Restored> {
        let (store, saved, list) = {
            let kept = self.versions.kept()?;
            (kept.store.clone(), kept.current.saved?, kept.list.clone())
        };
        let returned = self.versions.kept()?.current.returned.clone();
        let numbers = list.iter().rev().map(|version| version.number);
        let others = numbers.filter(|number| *number < saved && !returned.contains(number));
        // The first that can be read though some lines are at fault, where all are.
        let mut faulty = None;
        for number in std::iter::once(saved).chain(others) {
            let read = store.text_of(number).map_err(Refusal::new);
            let (version, text, document) = match read {
                Ok(Text { version, commands, document }) => (version, commands, document),
                Err(why) => {
                    sink.refused(why);
                    continue;
                }
            };
            match self.lines_of(&*state, &version, &text) {
                Ok(lines) => {
                    self.keep_comments(document.as_deref().map(comments_of).unwrap_or_default());
                    return self.execute_version(state, &version, lines, sink);
                }
                Err(why) => {
                    sink.refused(why);
                    faulty = faulty.or(Some((version, text)));
                }
            }
        }
        let (version, text) = faulty?;
        self.execute_text(state, &version, text, sink)
    }

    /// The lines of a version.
    fn lines_of(
        &self,
        names: &dyn Names,
        version: &Version,
        text: &str,
    ) -> Result<Vec<Line>, Refusal> {
        super::readable(&version.language)?;
        let mut reader = Reader::new(text.to_owned());
        while !reader.step(self, names, usize::MAX) {}
        reader.end().merged().map_err(|mistakes| {
            let (number, count) = (version.number, mistakes.len());
            let first = mistakes.first();
            let first = first.map(|first| format!(": line {}: {}", first.line, first.refusal));
            let first = first.unwrap_or_default();
            Refusal::new(format!("version {number} has {count} mistakes{first}"))
        })
    }

    fn execute_version(
        &self,
        state: &mut S,
        version: &Version,
        lines: Vec<Line>,
        sink: &mut dyn Sink,
    ) -> Option<Restored> {
        let mut running = Reader::new(self.running_config(state));
        while !running.step(self, &*state, usize::MAX) {}
        let running = running.end().merged().unwrap_or_default();
        // What cannot be taken back stays anyway.
        let changes = between(running, lines.clone());
        let changes = changes.or_else(|_| between(Vec::new(), lines)).unwrap_or_default();
        self.execute_text(state, version, script_of(&changes), sink)
    }

    fn execute_text(
        &self,
        state: &mut S,
        version: &Version,
        text: String,
        sink: &mut dyn Sink,
    ) -> Option<Restored> {
        let name = format!("version {}", version.number);
        let mut counting = Counting { sink, refused: 0 };
        let script = self.start_script(text, Some(name), OnRefusal::Continue);
        let done = script.finish(self, state, &mut counting);
        let applied = match done {
            Ok(output) => output.to_json()["commands"].as_u64().unwrap_or(0),
            Err(refusal) => {
                counting.refused(refusal);
                0
            }
        };
        let refused = counting.refused;
        self.versions.change(|kept| kept.current.saved = Some(version.number));
        if refused == 0 {
            self.versions.runs(version.number, self.changes.begun());
        }
        let when = time::utc(version.when_s);
        let about = format!("of {when} by {}", version.who);
        Some(Restored { version: version.number, about, applied })
    }
}

/// The new lines, each where it stands in its text; what is there already stays.
fn script_of(changes: &Changes) -> String {
    let mut text = String::new();
    let mut at = 1;
    for change in &changes.commands {
        let Some(line) = change.line else { continue };
        while at < line {
            text.push('\n');
            at += 1;
        }
        let _ = writeln!(text, "{}", change.command);
        at += 1;
    }
    text
}

/// Counts refusals on their way.
struct Counting<'a> {
    sink: &'a mut dyn Sink,
    refused: u64,
}

impl Sink for Counting<'_> {
    fn output(&mut self, output: crate::output::Output) {
        self.sink.output(output);
    }

    fn progress(&mut self, progress: crate::job::Progress) {
        self.sink.progress(progress);
    }

    fn refused(&mut self, refusal: Refusal) {
        self.refused += 1;
        self.sink.refused(refusal);
    }
}

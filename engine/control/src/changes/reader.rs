//! Reading a configuration, some lines at a time.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::Mistake;
use super::hash::{Map, Set};
use super::line::{ARGUMENT_END, Said};
use crate::error::{Refusal, printable};
use crate::grammar::{Commands, closed};
use crate::names::Names;
use crate::words::{self, Word};

pub(super) const INTERFACE: &str = "interface";

/// A line, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Counted from 1.
    pub(super) number: u32,
    pub(super) said: Arc<Said>,
}

/// Interfaces that lines make, besides those that exist.
pub(super) struct Known<'a> {
    pub(super) names: &'a dyn Names,
    pub(super) made: &'a RefCell<HashSet<String>>,
}

impl Names for Known<'_> {
    fn find(&self, kind: &str, name: &str) -> Option<u32> {
        let is_made = kind == INTERFACE && self.made.borrow().contains(name);
        self.names.find(kind, name).or(is_made.then_some(u32::MAX))
    }
}

/// A configuration that is being read.
pub(crate) struct Reader {
    text: String,
    at: usize,
    number: u32,
    words: Vec<Word>,
    /// Interfaces that its lines make.
    made: RefCell<HashSet<String>>,
    lines: Vec<Line>,
    mistakes: Vec<Mistake>,
    /// Its lines by their texts.
    by_text: Set<ByText>,
    /// The configuration that it is compared with, which was read before: what says the same in the
    /// same words is not read again.
    other: Option<Arc<Index>>,
    /// The running configuration as it was read for the command before: its lines are not read
    /// again either.
    known: Option<Arc<Index>>,
    /// Must each interface that a line names be there, or be made by a line before? Those that
    /// `other` makes are not there by themselves.
    checks: bool,
}

/// A configuration with more lines than this is read anew each time: what its lines say takes about
/// 1 kB each.
const LINES_KEPT_MAX: usize = 100_000;

/// What is known of a configuration that was read.
#[derive(Debug)]
pub(crate) struct Index {
    by_text: Set<ByText>,
    made: HashSet<String>,
}

/// A line, found by its text.
#[derive(Debug)]
struct ByText(Arc<Said>);

impl PartialEq for ByText {
    fn eq(&self, other: &ByText) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for ByText {}

impl Hash for ByText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl Borrow<str> for ByText {
    fn borrow(&self) -> &str {
        &self.0.text
    }
}

/// A configuration that was read.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Vec<Line>,
    mistakes: Vec<Mistake>,
    pub(crate) index: Arc<Index>,
}

impl Reader {
    /// Read this text.
    pub(crate) fn new(text: String) -> Reader {
        Reader {
            text,
            at: 0,
            number: 1,
            words: Vec::new(),
            made: RefCell::default(),
            lines: Vec::new(),
            mistakes: Vec::new(),
            by_text: Set::default(),
            other: None,
            known: None,
            checks: false,
        }
    }

    /// Read the text of the running configuration, of which `known` was read before.
    pub(crate) fn of_running(text: String, known: &LinesRead) -> Reader {
        Reader { known: known.get(), ..Reader::new(text) }
    }

    /// Read this text, which the router is to become, with this running configuration: each
    /// interface that a line names must be there, or be made by a line before.
    pub(crate) fn of_wanted(text: String, running: &Lines) -> Reader {
        Reader { checks: true, ..Reader::beside(text, running) }
    }

    /// Read this text, which is compared with another.
    pub(crate) fn beside(text: String, other: &Lines) -> Reader {
        Reader { other: Some(other.index.clone()), ..Reader::new(text) }
    }

    /// How much is read, and how much there is, bytes.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.at as u64, self.text.len() as u64)
    }

    /// Read at most so many lines more. Returns whether all are read.
    pub(crate) fn step<S: Names + 'static>(
        &mut self,
        commands: &Commands<S>,
        names: &dyn Names,
        most: usize,
    ) -> bool {
        for _ in 0..most {
            let rest = &self.text[self.at..];
            let Some((length, end)) = words::logical_line(rest, &mut self.words, true) else {
                return true;
            };
            let line = &rest[..length];
            let known = Known { names, made: &self.made };
            let read = end.and_then(|end| closed(end, self.words.len())).and_then(|()| {
                let mut read_before = self.other.iter().chain(&self.known);
                let said = match read_before.find_map(|index| index.by_text.get(line.trim_end())) {
                    Some(ByText(said)) => Some(said.clone()),
                    None => commands.said(&known, line, &self.words)?.map(Arc::new),
                };
                self.check_interfaces(names, said.as_deref())?;
                Ok(said)
            });
            match read {
                Ok(Some(said)) => {
                    self.made.borrow_mut().extend(interfaces_made(&said).map(str::to_owned));
                    if self.other.is_none() {
                        self.by_text.insert(ByText(said.clone()));
                    }
                    self.lines.push(Line { number: self.number, said });
                }
                Ok(None) => {}
                Err(refusal) => {
                    self.mistakes.push(Mistake { line: self.number, column: 0, refusal })
                }
            }
            self.number += line.bytes().filter(|byte| *byte == b'\n').count() as u32;
            self.at += length;
        }
        self.at >= self.text.len()
    }

    /// Is there each interface that a line names?
    fn check_interfaces(&self, names: &dyn Names, said: Option<&Said>) -> Result<(), Refusal> {
        let Some(said) = said.filter(|_| self.checks) else { return Ok(()) };
        let made = self.made.borrow();
        let is_there = |name: &String| {
            let other_makes = self.other.as_ref().is_some_and(|other| other.made.contains(name));
            made.contains(name) || !other_makes && names.find(INTERFACE, name).is_some()
        };
        match said.interfaces.iter().find(|name| !is_there(name)) {
            Some(name) => Err(Refusal::new(format!("there is no interface '{}'", printable(name)))
                .remedy("a line before this one makes it, or its device must be there")),
            None => Ok(()),
        }
    }

    /// What was read.
    pub(crate) fn end(self) -> Lines {
        let index = Index { by_text: self.by_text, made: self.made.into_inner() };
        Lines { lines: self.lines, mistakes: self.mistakes, index: Arc::new(index) }
    }
}

/// The running configuration as it was read last, for the next command that reads it.
#[derive(Debug, Default)]
pub(crate) struct LinesRead(RefCell<Option<Arc<Index>>>);

impl LinesRead {
    /// Keep them.
    pub(crate) fn keep(&self, lines: &Lines) {
        let is_small = lines.index.by_text.len() <= LINES_KEPT_MAX;
        self.0.replace(is_small.then(|| lines.index.clone()));
    }

    fn get(&self) -> Option<Arc<Index>> {
        self.0.borrow().clone()
    }
}

impl Lines {
    /// The lines, each thing said once. May run on any thread.
    ///
    /// # Errors
    /// All mistakes.
    pub(crate) fn merged(mut self) -> Result<Vec<Line>, Vec<Mistake>> {
        let lines = merged(&self.lines, &mut self.mistakes);
        match self.mistakes.is_empty() {
            true => Ok(lines),
            false => {
                self.mistakes.sort_by_key(|mistake| mistake.line);
                Err(self.mistakes)
            }
        }
    }
}

fn interfaces_made(said: &Said) -> impl Iterator<Item = &str> {
    said.makes.iter().filter_map(|object| object.strip_prefix(INTERFACE)?.strip_prefix(' '))
}

/// Put what is said twice in one line: where it is said first, with the words of the line that says
/// more. Lines of which only the last would hold are mistakes.
fn merged(lines: &[Line], mistakes: &mut Vec<Mistake>) -> Vec<Line> {
    let mut places: Map<&str, usize> = Map::default();
    let mut out: Vec<Line> = Vec::with_capacity(lines.len());
    for line in lines {
        let said = &line.said;
        let place = places.entry(said.key.as_ref().unwrap_or(&said.meaning));
        let at = match place {
            Entry::Vacant(entry) => {
                entry.insert(out.len());
                out.push(line.clone());
                continue;
            }
            Entry::Occupied(entry) => *entry.get(),
        };
        let first = &mut out[at];
        let says = |line: &Line| -> HashSet<String> {
            line.said.meaning.split(ARGUMENT_END).map(str::to_owned).collect()
        };
        let (before, now) = (says(first), says(line));
        if before.is_subset(&now) {
            *first = line.clone();
        } else if !now.is_subset(&before) {
            let what = format!("line {} says something else of the same", first.number);
            let refusal = Refusal::new(what).remedy("leave one of them out");
            mistakes.push(Mistake { line: line.number, column: 0, refusal });
        }
    }
    out
}

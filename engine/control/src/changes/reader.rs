//! Reading a configuration, some lines at a time.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Mistake;
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
    /// Lines of the running configuration: what says the same in the same words is not read again,
    /// and interfaces that these make are not there by themselves.
    running: Option<Running>,
}

/// What is known of the running configuration while another is read.
struct Running {
    by_text: HashMap<String, Arc<Said>>,
    made: HashSet<String>,
    /// Must each interface that a line names be there?
    checks: bool,
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
            running: None,
        }
    }

    /// Read this text, which the router is to become, with this running configuration: each
    /// interface that a line names must be there, or be made by a line before.
    pub(crate) fn of_wanted(text: String, running: &[Line]) -> Reader {
        Reader::knowing(text, running, true)
    }

    /// Read this text; what another configuration says in the same words is not read again.
    pub(crate) fn beside(text: String, other: &[Line]) -> Reader {
        Reader::knowing(text, other, false)
    }

    fn knowing(text: String, running: &[Line], checks: bool) -> Reader {
        let by_text =
            running.iter().map(|line| (line.said.text.clone(), line.said.clone())).collect();
        let made = running.iter().flat_map(|line| interfaces_made(&line.said));
        let made = made.map(str::to_owned).collect();
        Reader { running: Some(Running { by_text, made, checks }), ..Reader::new(text) }
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
                let known_said = self.running.as_ref().and_then(|r| r.by_text.get(line.trim_end()));
                let said = match known_said {
                    Some(said) => Some(said.clone()),
                    None => commands.said(&known, line, &self.words)?.map(Arc::new),
                };
                self.check_interfaces(names, said.as_deref())?;
                Ok(said)
            });
            match read {
                Ok(Some(said)) => {
                    self.made.borrow_mut().extend(interfaces_made(&said).map(str::to_owned));
                    self.lines.push(Line { number: self.number, said });
                }
                Ok(None) => {}
                Err(refusal) => self.mistakes.push(Mistake { line: self.number, refusal }),
            }
            self.number += line.bytes().filter(|byte| *byte == b'\n').count() as u32;
            self.at += length;
        }
        self.at >= self.text.len()
    }

    /// Is there each interface that a line names?
    fn check_interfaces(&self, names: &dyn Names, said: Option<&Said>) -> Result<(), Refusal> {
        let running = self.running.as_ref().filter(|running| running.checks);
        let (Some(running), Some(said)) = (running, said) else { return Ok(()) };
        let made = self.made.borrow();
        let is_there = |name: &String| {
            made.contains(name)
                || !running.made.contains(name) && names.find(INTERFACE, name).is_some()
        };
        match said.interfaces.iter().find(|name| !is_there(name)) {
            Some(name) => Err(Refusal::new(format!("there is no interface '{}'", printable(name)))
                .remedy("a line before this one makes it, or its device must be there")),
            None => Ok(()),
        }
    }

    /// The lines, each thing said once.
    ///
    /// # Errors
    /// All mistakes.
    pub(crate) fn finish(mut self) -> Result<Vec<Line>, Vec<Mistake>> {
        let lines = merged(self.lines, &mut self.mistakes);
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
fn merged(lines: Vec<Line>, mistakes: &mut Vec<Mistake>) -> Vec<Line> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut out: Vec<Line> = Vec::with_capacity(lines.len());
    for line in lines {
        let said = &line.said;
        let place = places.entry(said.key.clone().unwrap_or_else(|| said.meaning.clone()));
        let at = match place {
            Entry::Vacant(entry) => {
                entry.insert(out.len());
                out.push(line);
                continue;
            }
            Entry::Occupied(entry) => *entry.get(),
        };
        let first = &mut out[at];
        let says = |line: &Line| -> HashSet<String> {
            line.said.meaning.split(ARGUMENT_END).map(str::to_owned).collect()
        };
        let (before, now) = (says(first), says(&line));
        if before.is_subset(&now) {
            *first = line;
        } else if !now.is_subset(&before) {
            let what = format!("line {} says something else of the same", first.number);
            let refusal = Refusal::new(what).remedy("leave one of them out");
            mistakes.push(Mistake { line: line.number, refusal });
        }
    }
    out
}

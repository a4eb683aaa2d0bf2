//! Random lines of the declared grammar, for tests that drive a router as no operator would.

use crate::grammar::Commands;
use crate::names::Names;
use crate::syntax::{Choice, Node};
use crate::types::{Reads, ValueType};

/// An element that may be repeated comes at most so often.
const REPETITIONS_MAX: usize = 3;

/// A value that a line needs.
pub struct Wanted<'a> {
    /// The words that the command begins with.
    pub command: &'a str,
    /// The value's name in the declaration.
    pub name: &'a str,
    /// Its type.
    pub value_type: &'a ValueType,
}

impl Wanted<'_> {
    /// The smallest and the largest number that is taken, where a number is.
    pub fn numbers(&self) -> Option<(u64, u64)> {
        match self.value_type.reads {
            Reads::Number { min, max } => Some((min, max)),
            _ => None,
        }
    }
}

/// Makes the choices of a random line.
pub trait Chooser {
    /// A number below `bound`, which is at least 1.
    fn below(&mut self, bound: usize) -> usize;

    /// Is an element written that may be left out?
    fn includes(&mut self) -> bool {
        self.below(2) == 0
    }

    /// The text of a value.
    fn value(&mut self, wanted: &Wanted<'_>) -> String;
}

impl<S: Names + 'static> Commands<S> {
    /// The first words of every form of every command, by its number.
    pub fn form_names(&self) -> impl Iterator<Item = &str> {
        self.forms.iter().map(|form| form.name.as_str())
    }

    /// A line of the form of this number. It parses if the values are of their types.
    pub fn random_line(&self, form: usize, chooser: &mut dyn Chooser) -> String {
        let form = &self.forms[form];
        let mut line = Line { command: &form.name, chooser, words: Vec::new() };
        line.write(&form.tree);
        line.words.join(" ")
    }
}

struct Line<'a> {
    command: &'a str,
    chooser: &'a mut dyn Chooser,
    words: Vec<String>,
}

impl Line<'_> {
    fn write(&mut self, node: &Node) {
        match node {
            Node::Literal { word, .. } => self.words.push((*word).to_owned()),
            Node::Value { name, choices } => {
                let choice = self.chooser.below(choices.len());
                let text = match &choices[choice] {
                    Choice::Word(word) => (*word).to_owned(),
                    Choice::Type(value_type) => {
                        self.chooser.value(&Wanted { command: self.command, name, value_type })
                    }
                };
                self.words.push(text);
            }
            Node::Seq(items) => items.iter().for_each(|item| self.write(item)),
            Node::Set(items) => {
                let mut left: Vec<&Node> = items.iter().collect();
                while !left.is_empty() {
                    let next = self.chooser.below(left.len());
                    self.write(left.swap_remove(next));
                }
            }
            Node::Opt(inner) => {
                if self.chooser.includes() {
                    self.write(inner);
                }
            }
            Node::Alt(items) => {
                let branch = self.chooser.below(items.len());
                self.write(&items[branch]);
            }
            Node::Repeat { inner, .. } => {
                let more = self.chooser.below(REPETITIONS_MAX);
                (0..=more).for_each(|_| self.write(inner));
            }
        }
    }
}

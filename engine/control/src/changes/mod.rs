//! The smallest list of commands that leads from one configuration to another.
//!
//! Each line of a configuration makes objects (an interface, a table) and stands on others, as its
//! command declares. A line stays when it is in both configurations and stands on the same lines in
//! both; so what stood on an interface that is made anew is made anew with it. Lines that do not
//! stay are taken back in the reverse of their order, and then new lines are executed in theirs: a
//! configuration is written in an order in which it can be executed, and undone in the reverse. A
//! line about the same as one that goes (a route of the same prefix) is executed as its exchange,
//! and the one that goes is not taken back: packets meet the one or the other.

mod hash;
mod line;
mod plan;
mod reader;
mod runs;

use crate::error::Refusal;
use crate::grammar::Commands;
use crate::names::Names;

pub(crate) use plan::between;
pub(crate) use reader::{Line, Lines, LinesRead, Reader};

/// A line of a configuration that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1; 0 where it is a line of the running configuration.
    pub line: u32,
    /// The column, from 1; 0 where the mistake is the line's.
    pub column: u32,
    /// Why, at which word, and what would be right.
    pub refusal: Refusal,
}

/// What leads from one configuration to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Lines that are there no more, in their order.
    pub removed: Vec<String>,
    /// Lines that are new, in their order.
    pub added: Vec<String>,
    /// Commands to execute, in this order.
    pub commands: Vec<Change>,
}

/// A command that changes a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The command.
    pub command: String,
    /// The line of the wanted configuration that it is, from 1; nothing when it takes one back.
    pub line: Option<u32>,
}

impl Changes {
    /// Is there nothing to do?
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }
}

impl<S: Names + 'static> Commands<S> {
    /// What leads from the configuration `running` to `wanted`; both are commands, line by line.
    ///
    /// # Errors
    /// Every line of `wanted` that is no command of a configuration, or contradicts another. A line
    /// of `running` that is none is a fault of ours, and stands there, too.
    pub fn changes_between(
        &self,
        names: &dyn Names,
        running: &str,
        wanted: &str,
    ) -> Result<Changes, Vec<Mistake>> {
        between(self.lines(names, running)?, self.lines(names, wanted)?)
    }

    /// What is wrong with a configuration, without executing it.
    pub fn mistakes_in(&self, names: &dyn Names, text: &str) -> Vec<Mistake> {
        self.lines(names, text).err().unwrap_or_default()
    }

    fn lines(&self, names: &dyn Names, text: &str) -> Result<Vec<Line>, Vec<Mistake>> {
        let mut reader = Reader::new(text.to_owned());
        while !reader.step(self, names, usize::MAX) {}
        reader.end().merged()
    }
}

#[cfg(test)]
mod tests;

//! A configuration as a document: YAML of the whole router, as people and programs write it.
//!
//! Each command of a configuration declares beside it where its values live in the document
//! ([`Command::entry`](crate::Command::entry), notation in `notation.rs`). From these declarations
//! come the document of a configuration (`write.rs`), the commands of a document (`read.rs`) and
//! the schema (`schema.rs`).

mod comments;
mod diff;
mod emit;
pub(crate) mod notation;
mod parse;
mod read;
mod said;
mod schema;
mod shape;
mod sorting;
mod tree;
mod values;
mod vppcfg;
mod write;

use std::path::Path;

pub use comments::Comments;
pub(crate) use notation::{Argument, Entry};
pub(crate) use parse::{Parsed, parse};
pub(crate) use said::blocks;
use serde_json::Value as Json;
pub(crate) use shape::Shape;
pub(crate) use sorting::Objects;
use tree::Tree;
pub use vppcfg::{Imported, from_vppcfg};
pub(crate) use write::DocumentWriter;

use crate::changes::Mistake;
use crate::error::Refusal;
use crate::grammar::{Command, Commands};
use crate::names::Names;
use crate::running::Phase;

/// Interfaces stand below this key, each below its name.
const INTERFACES: &str = "interfaces";

/// Sub-interfaces stand below this key of their interface, each below its number.
const SUB_INTERFACES: &str = "sub-interfaces";

/// The name of an interface that is not the one that it was made with.
const NAME: &str = "name";

/// An entry of a command, and when `show running-config` writes its lines.
pub(crate) struct Placed {
    pub(crate) phase: Phase,
    pub(crate) entry: Entry,
}

impl<S> Command<S> {
    /// Where its values live in a document, as `"interfaces.<interface>.mtu: <mtu>"`, in the
    /// notation of `document/notation.rs`, and the phase in which `show running-config` writes its
    /// lines. Of several the first that says all arguments of a line is taken.
    pub fn entry(mut self, phase: Phase, entry: &'static str) -> Self {
        self.entries.push((phase, entry));
        self
    }
}

/// A place in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1; 0 where it is not known.
    pub column: u32,
}

/// The language of a configuration in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Commands, line by line.
    Commands,
    /// YAML.
    Yaml,
}

impl Language {
    /// The language of a file by its name: `.yaml` and `.yml` are YAML.
    pub fn of_file(path: &Path) -> Language {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml") => Language::Yaml,
            _ => Language::Commands,
        }
    }
}

/// A configuration in either language, as commands.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The commands, line by line.
    pub text: String,
    /// Where the line stands in the file; nothing when the file's lines are these lines.
    places: Vec<Position>,
    /// The comments of a document.
    pub comments: Option<Comments>,
}

impl Wanted {
    /// What a file of commands says.
    pub fn of_commands(text: String) -> Wanted {
        Wanted { text, ..Wanted::default() }
    }

    /// The place in the file of a line of `text`, from 1.
    pub fn place(&self, line: u32) -> Position {
        match self.places.is_empty() {
            true => Position { line, column: 0 },
            false => self.places.get((line as usize).wrapping_sub(1)).copied().unwrap_or_default(),
        }
    }

    /// The commands, each with its place in the file. A command of commands language may have
    /// several lines; then the place is that of the first.
    pub fn commands(&self) -> impl Iterator<Item = (&str, Position)> {
        let lines = self.text.lines().zip(1..);
        lines.map(|(line, number)| (line, self.place(number)))
    }

    /// A mistake of a line of `text`, at its place in the file.
    pub fn placed(&self, mistake: Mistake) -> Mistake {
        if mistake.line == 0 || self.places.is_empty() {
            return mistake;
        }
        let Position { line, column } = self.place(mistake.line);
        let mut refusal = mistake.refusal;
        // Another line that it speaks of has its place in the file, too.
        let other = refusal.what().strip_prefix("line ").and_then(|rest| rest.split_once(' '));
        if let Some((number, rest)) = other
            && let Ok(number) = number.parse()
        {
            let what = format!("line {} {rest}", self.place(number).line);
            refusal = Refusal::new(what).remedy(refusal.remedy_text().to_owned());
        }
        Mistake { line, column, refusal }
    }
}

/// The comments of a document; none of one that cannot be read.
pub(crate) fn comments_of(text: &str) -> Comments {
    let parsed = parse(text).ok();
    let of = |parsed: &Parsed| Some(Comments::of(parsed.root.as_ref()?, &parsed.comments));
    parsed.as_ref().and_then(of).unwrap_or_default()
}

/// A configuration as a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document(tree::Map);

impl Document {
    /// As YAML, with these comments where they stood.
    pub fn yaml(&self, comments: &Comments) -> String {
        emit::emit(&self.0, comments)
    }

    /// The same tree as JSON.
    pub fn json(&self) -> Json {
        Tree::Map(self.0.clone()).to_json()
    }

    /// What differs from `wanted`, key by key: what goes behind `-`, what comes behind `+`.
    pub fn difference(&self, wanted: &Document) -> String {
        diff::difference(&self.0, &wanted.0)
    }
}

impl<S: Names + 'static> Commands<S> {
    /// The commands that a configuration in either language says. Those of a document are in an
    /// order in which they can be executed.
    ///
    /// # Errors
    /// All mistakes of the document. The commands of the other language are not looked at.
    pub fn read_configuration(
        &self,
        names: &dyn Names,
        text: &str,
        language: Language,
    ) -> Result<Wanted, Vec<Mistake>> {
        if language == Language::Commands {
            return Ok(Wanted::of_commands(text.to_owned()));
        }
        let parsed = parse(text).map_err(|mistake| vec![mistake])?;
        self.read_parsed(names, &parsed)
    }

    /// The commands of a document.
    ///
    /// # Errors
    /// All mistakes of the document.
    pub(crate) fn read_parsed(
        &self,
        names: &dyn Names,
        parsed: &Parsed,
    ) -> Result<Wanted, Vec<Mistake>> {
        let Some(root) = &parsed.root else { return Ok(Wanted::default()) };
        let found = read::Reading::new(self, self.shape()).read(root, names)?;
        let mut wanted =
            Wanted { comments: Some(Comments::of(root, &parsed.comments)), ..Wanted::default() };
        for found in found {
            wanted.text.push_str(&found.line);
            wanted.text.push('\n');
            wanted.places.push(found.at);
        }
        Ok(wanted)
    }

    /// The document that says what these lines of `show running-config` say.
    ///
    /// # Errors
    /// A line has no place in a document.
    pub fn document_of(&self, lines: &str) -> Result<Document, Refusal> {
        let mut writer = DocumentWriter::default();
        lines.lines().try_for_each(|line| writer.add(self, line))?;
        Ok(writer.finish())
    }

    /// The comments of the document that was applied last.
    pub fn comments(&self) -> Comments {
        self.comments.borrow().clone()
    }

    /// Keep the comments of a document that was applied, for `show running-config yaml`.
    pub fn keep_comments(&self, comments: Comments) {
        self.comments.replace(comments);
    }

    /// Commands of `show running-config` that have no place in a document, among those that are
    /// declared for configurations. For tests: there is none.
    pub fn without_entry(&self) -> Vec<&str> {
        let main = self.forms.iter().filter(|form| !form.is_alias);
        let is_without = |form: &&crate::grammar::Form| {
            let command = &self.commands[form.command];
            command.inverse.is_declared() && command.entries.is_empty()
        };
        main.filter(is_without).map(|form| form.name.as_str()).collect()
    }

    /// Every place of the document.
    pub(crate) fn shape(&self) -> &Shape {
        self.shape.get_or_init(|| Shape::of(self))
    }
}

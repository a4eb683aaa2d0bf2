//! Help and completion, from the same declarations as the parser.

use std::ops::ControlFlow;

use serde::Serialize;
use serde_json::json;

use crate::automaton::Take;
use crate::error::{Refusal, printable};
use crate::grammar::{Commands, Form};
use crate::matcher::{Candidate, Here};
use crate::names::Names;
use crate::output::{Column, Output, Table};
use crate::types::{Reads, ValueType};
use crate::words::{self, Word};

/// Names of things that completion offers at once.
pub const NAMES_OFFERED_MAX: usize = 256;

/// A line that is completed is at most this long, in bytes.
pub const COMPLETED_BYTES_MAX: usize = 16 * 1024;

/// Something that could stand at the cursor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Completion {
    /// What to put there; empty when only the user can know (an address, a number).
    pub text: String,
    /// How to show it: the text, or `<address>`.
    pub label: String,
    /// What it is.
    pub help: String,
}

/// What could stand at the cursor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Completions {
    /// Where the word under the cursor begins, in bytes: the candidates replace from there.
    pub start: usize,
    /// What could stand there.
    pub candidates: Vec<Completion>,
    /// The command may end here.
    pub can_end: bool,
}

impl<S: Names + 'static> Commands<S> {
    /// What could stand at byte `cursor` of `line`.
    pub fn complete(&self, names: &dyn Names, line: &str, cursor: usize) -> Completions {
        let mut cursor = cursor.min(line.len()).min(COMPLETED_BYTES_MAX);
        while !line.is_char_boundary(cursor) {
            cursor -= 1;
        }
        let line = &line[..cursor];
        let none = Completions { start: cursor, candidates: Vec::new(), can_end: false };
        let mut words = Vec::new();
        if words::split(line, &mut words).is_err() {
            return none;
        }
        let partial = match words.last() {
            Some(last) if last.end as usize == cursor && !last.quoted => words.pop(),
            _ => None,
        };
        let (here, at, refusal) = self.matcher.follow(names, line, &words);
        if refusal.is_some() && at < words.len() {
            return none;
        }
        let typed = partial.map_or("", |word| word.text(line));
        Completions {
            start: cursor - typed.len(),
            candidates: self.candidates(names, here, typed),
            can_end: typed.is_empty() && self.matcher.can_end(here),
        }
    }

    /// Help for `… ?`: what could follow.
    pub(crate) fn help_at(&self, names: &dyn Names, line: &str, words: &[Word]) -> Output {
        let (here, _, refusal) = self.matcher.follow(names, line, words);
        if let Some(refusal) = refusal {
            return Output::both(refusal.to_string(), refusal.to_json());
        }
        let mut table = Table::new([Column::left("Next"), Column::left("Help")]);
        for candidate in self.candidates(names, here, "") {
            table.row().cell(candidate.label).cell(candidate.help);
        }
        if self.matcher.can_end(here) {
            table.row().cell("<end>").cell("the command may end here");
        }
        table.into()
    }

    /// `help`, and `help COMMAND`.
    pub(crate) fn help(&self, names: &dyn Names, command: &str) -> Result<Output, Refusal> {
        let mut words = Vec::new();
        words::split(command, &mut words)?;
        let mut table = Table::new([Column::left("Command"), Column::left("Help")]);
        let (here, at, refusal) = self.matcher.follow(names, command, &words);
        let shown_forms: Vec<&Form> = match (here, refusal) {
            (Here::Inside { command, .. }, _) => vec![&self.forms[command as usize]],
            (Here::Trie(node), None) => self.below(node),
            (Here::Trie(_), Some(refusal)) => {
                let refusal = Refusal::new(refusal.what()).remedy(refusal.remedy_text());
                return Err(refusal.at_word(at as u32 + 2, words[at].text(command)));
            }
        };
        if let [form] = shown_forms[..] {
            return Ok(self.help_of(form));
        }
        for form in shown_forms.into_iter().filter(|form| !form.is_alias) {
            let rest = if form.takes_more() { " …" } else { "" };
            table.row().cell(format!("{}{rest}", form.name)).cell(self.commands[form.command].help);
        }
        Ok(table.into())
    }

    /// All about one command.
    fn help_of(&self, form: &Form) -> Output {
        let command = &self.commands[form.command];
        let usage = form.tree.usage();
        let mut output = Output::none().line(usage.as_str());
        for other in self
            .forms
            .iter()
            .filter(|other| other.command == form.command && other.name != form.name)
        {
            output = output.line(other.tree.usage());
        }
        output = output.line(format!("  {}", command.help));
        if !command.details.is_empty() {
            output = output.line(format!("  {}", command.details));
        }
        let mut table = Table::new([Column::left("Word"), Column::left("Help")]);
        for (word, help) in self.described(form) {
            table.row().cell(word).cell(help);
        }
        if !table.is_empty() {
            output = output.line("\n").table("words", table);
        }
        if !command.examples.is_empty() {
            output = output.line("\nFor example:");
            for example in &command.examples {
                output = output.line(format!("  {example}"));
            }
        }
        output.json("usage", json!(usage)).json("help", json!(command.help))
    }

    /// The words and values of a form that need an explanation, with it.
    pub(crate) fn described(&self, form: &Form) -> Vec<(String, String)> {
        use crate::syntax::{Choice, Node};
        let mut out: Vec<(String, String)> = Vec::new();
        let command = &self.commands[form.command];
        let help_of = |name: &str| {
            command.words.iter().find(|(word, _)| *word == name).map(|(_, help)| *help)
        };
        form.tree.walk(&mut |node| {
            let (label, help) = match node {
                Node::Literal { word, .. } => match help_of(word) {
                    Some(help) => (word.to_string(), help.to_string()),
                    None => return,
                },
                Node::Value { name, choices } => {
                    let kinds: Vec<&str> = choices
                        .iter()
                        .map(|choice| match choice {
                            Choice::Word(word) => word,
                            Choice::Type(t) => t.description.as_str(),
                        })
                        .collect();
                    let kinds = crate::error::either(&kinds);
                    let help =
                        help_of(name).map_or(kinds.clone(), |help| format!("{help}: {kinds}"));
                    (format!("<{name}>"), help)
                }
                _ => return,
            };
            if !out
                .iter()
                .any(|(known, _)| known.trim_matches(['<', '>']) == label.trim_matches(['<', '>']))
            {
                out.push((label, help));
            }
        });
        out
    }

    /// The commands below a node of the trie, without the other forms of the same command.
    fn below(&self, node: u32) -> Vec<&Form> {
        let mut out = Vec::new();
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            let node = &self.matcher.trie[node as usize];
            out.extend(node.commands.iter().map(|form| &self.forms[*form as usize]));
            waiting.extend(node.children.iter().map(|(_, child)| *child));
        }
        out.sort_by(|a: &&Form, b: &&Form| a.name.cmp(&b.name));
        out
    }

    fn candidates(&self, names: &dyn Names, here: Here, typed: &str) -> Vec<Completion> {
        let mut out: Vec<Completion> = Vec::new();
        self.matcher.candidates(here, &mut |candidate| {
            match candidate {
                Candidate::Child { word, node } => {
                    if word.starts_with(typed) {
                        out.push(Completion {
                            text: word.into(),
                            label: word.into(),
                            help: self.about(node),
                        });
                    }
                }
                Candidate::Edge { command, edge, .. } => {
                    let form = &self.forms[command as usize];
                    let words = &self.commands[form.command].words;
                    let help_of = |name: &str| {
                        words
                            .iter()
                            .find(|(word, _)| *word == name)
                            .map_or("", |(_, help)| *help)
                            .to_string()
                    };
                    match &edge.take {
                        Take::Literal { word, .. } if word.starts_with(typed) => {
                            let mut help = help_of(word);
                            if help.is_empty() && *word == "json" {
                                help = "print JSON".into();
                            }
                            out.push(Completion {
                                text: (*word).into(),
                                label: (*word).into(),
                                help,
                            });
                        }
                        Take::Literal { .. } => {}
                        Take::Value { name, value_type } => {
                            let name =
                                self.matcher.automata[command as usize].names[*name as usize];
                            offer_values(names, name, value_type, typed, &help_of(name), &mut out);
                        }
                    }
                }
            }
            ControlFlow::Continue(())
        });
        let mut seen: Vec<String> = Vec::new();
        out.retain(|c| {
            let new = !seen.contains(&c.label);
            seen.push(c.label.clone());
            new
        });
        out
    }

    /// What a word that commands begin with is about.
    fn about(&self, node: u32) -> String {
        let mut below = self.below(node);
        below.dedup_by_key(|form| form.command);
        match below.as_slice() {
            [one] => self.commands[one.command].help.into(),
            several => format!("{} commands", several.len()),
        }
    }
}

fn offer_values(
    names: &dyn Names,
    name: &str,
    value_type: &ValueType,
    typed: &str,
    help: &str,
    out: &mut Vec<Completion>,
) {
    let help = if help.is_empty() { &value_type.description } else { help };
    if let Reads::Name(kind) = value_type.reads {
        let known = names.list(kind);
        let fitting = known.into_iter().filter(|known| known.starts_with(typed));
        for text in fitting.take(NAMES_OFFERED_MAX) {
            out.push(Completion { label: text.clone(), text, help: kind.into() });
        }
    }
    if typed.is_empty() {
        out.push(Completion {
            text: String::new(),
            label: format!("<{}>", printable(name)),
            help: help.into(),
        });
    }
}

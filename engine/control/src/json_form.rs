//! The JSON form of commands: `{"command": "set interface state", "args": {"interface": "e0",
//! "state": "up"}}`. It is turned into the words of a command line, so that both forms have one
//! parser, and one idea of what is right.
//!
//! Arguments are spelled as answers are: the value or flag `socket-id` is the member `socket_id`.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use crate::error::{Refusal, either, nearest, printable};
use crate::grammar::{Commands, Form};
use crate::names::Names;
use crate::output::key_of;
use crate::syntax::{Choice, Node};
use crate::types::{Reads, ValueType};

/// A command may have at most so many repetitions of a group.
const REPETITIONS_MAX: usize = 1024;

impl<S: Names + 'static> Commands<S> {
    /// The command line that says the same as a JSON form.
    ///
    /// # Errors
    /// The object is not of the form of a command, or names no command or argument.
    pub fn line_of_json(&self, form: &Json) -> Result<String, Refusal> {
        let object = form.as_object().ok_or_else(|| wrong("the command", "an object"))?;
        if let Some(key) = object.keys().find(|key| !matches!(key.as_str(), "command" | "args")) {
            return Err(Refusal::new(format!("unknown member '{}'", printable(key)))
                .remedy("a command has the members command and args"));
        }
        let name = object
            .get("command")
            .and_then(Json::as_str)
            .ok_or_else(|| wrong("command", "a text"))?;
        let none = Map::new();
        let args = match object.get("args") {
            None | Some(Json::Null) => &none,
            Some(args) => args.as_object().ok_or_else(|| wrong("args", "an object"))?,
        };
        let mut refusal = None;
        for form in self.forms.iter().filter(|form| form.name == name) {
            let mut out = WordBuilder::default();
            match out.command(form, args) {
                Ok(()) => return Ok(out.line),
                Err(why) => refusal = Some(why),
            }
        }
        Err(refusal.unwrap_or_else(|| {
            let near = nearest(name, self.forms.iter().map(|form| form.name.as_str()));
            let remedy = match near.is_empty() {
                true => "the method commands lists them".into(),
                false => format!("did you mean {}?", either(&near)),
            };
            Refusal::new(format!("no command '{}'", printable(name))).remedy(remedy)
        }))
    }

    /// The line of a form of a command with these arguments.
    ///
    /// # Errors
    /// An argument is missing, or cannot be said in a command.
    pub(crate) fn line_of_arguments(&self, form: &Form, args: &Args) -> Result<String, Refusal> {
        let mut out = WordBuilder::default();
        out.command(form, args).map(|()| out.line)
    }

    /// All commands as JSON: names, usage, help, and a schema of their arguments. It is made once:
    /// a router asks for it before it serves.
    pub fn schema(&self) -> Arc<Json> {
        self.schema.get_or_init(|| Arc::new(self.make_schema())).clone()
    }

    /// What a form of a command takes.
    pub(crate) fn arguments_of(&self, form: &Form) -> Vec<Json> {
        let mut out = Vec::new();
        collect(&form.tree, true, &self.commands[form.command].words, &mut out);
        out
    }

    fn make_schema(&self) -> Json {
        let forms = self.forms.iter().map(|form| {
            let command = &self.commands[form.command];
            json!({
                "command": form.name,
                "usage": form.tree.usage(),
                "help": command.help,
                "details": command.details,
                "group": command.group,
                "alias": form.is_alias,
                "examples": command.examples,
                "args": self.arguments_of(form),
                "answer": self.forms.iter().find(|other| other.command == form.command)
                    .and_then(|main| self.answers.get(&main.name)),
            })
        });
        Json::Array(forms.collect())
    }
}

fn wrong(what: &str, must_be: &str) -> Refusal {
    Refusal::new(format!("{what} is missing or of the wrong kind"))
        .remedy(format!("it must be {must_be}"))
}

/// Words under construction, from JSON.
#[derive(Default)]
struct WordBuilder {
    line: String,
    /// Keys that were used, per object under way.
    used: Vec<String>,
}

type Args = Map<String, Json>;

impl WordBuilder {
    fn command(&mut self, form: &Form, args: &Args) -> Result<(), Refusal> {
        self.node(&form.tree, args)?;
        self.all_used(&form.name, &form.tree, args)
    }

    fn all_used(&mut self, name: &str, tree: &Node, args: &Args) -> Result<(), Refusal> {
        let is_used = |key: &String, value: &Json| self.used.contains(key) || is_absent(value);
        match args.iter().find(|(key, value)| !is_used(key, value)) {
            None => Ok(()),
            Some((key, _)) => {
                let known = keys(tree);
                let refusal = Refusal::new(format!(
                    "{name}: unknown or misplaced argument '{}'",
                    printable(key)
                ));
                let near = nearest(key, known.iter().map(String::as_str));
                Err(refusal.remedy(if near.is_empty() {
                    format!("its arguments are {}", known.join(", "))
                } else {
                    format!("did you mean {}?", either(&near))
                }))
            }
        }
    }

    fn push(&mut self, word: &str) {
        if !self.line.is_empty() {
            self.line.push(' ');
        }
        self.line.push_str(word);
    }

    fn node(&mut self, node: &Node, args: &Args) -> Result<(), Refusal> {
        match node {
            Node::Literal { word, flag } => {
                if *flag {
                    self.used.push(key_of(word));
                }
                self.push(word);
                Ok(())
            }
            Node::Value { name, choices } => {
                let key = key_of(name);
                let value = args.get(&key).ok_or_else(|| missing(&key, choices))?;
                self.value(&key, choices, value)?;
                self.used.push(key);
                Ok(())
            }
            Node::Seq(items) => items.iter().try_for_each(|item| self.node(item, args)),
            Node::Opt(inner) if mentioned(inner, args) > 0 => self.node(inner, args),
            Node::Opt(_) => Ok(()),
            Node::Alt(branches) => self.alternative(branches, args),
            Node::Set(members) => members.iter().try_for_each(|member| self.node(member, args)),
            Node::Repeat { name, inner } => self.repeat(name, inner, args),
        }
    }

    fn alternative(&mut self, branches: &[Node], args: &Args) -> Result<(), Refusal> {
        let best = branches.iter().map(|branch| mentioned(branch, args)).max().unwrap_or(0);
        let mut refusal = None;
        for branch in branches.iter().filter(|branch| best > 0 && mentioned(branch, args) == best) {
            let (length, used) = (self.line.len(), self.used.clone());
            match self.node(branch, args) {
                Ok(()) => return Ok(()),
                Err(why) => refusal = refusal.or(Some(why)),
            }
            self.line.truncate(length);
            self.used = used;
        }
        match refusal {
            Some(refusal) => Err(refusal),
            None => {
                let names: Vec<String> =
                    branches.iter().filter_map(|b| keys(b).into_iter().next()).collect();
                Err(Refusal::new("an argument is missing")
                    .remedy(format!("give one of {}", either(&names))))
            }
        }
    }

    fn repeat(&mut self, name: &str, inner: &Node, args: &Args) -> Result<(), Refusal> {
        let key = key_of(name);
        let name = key.as_str();
        let given = args.get(name).ok_or_else(|| wrong(name, "a list"))?;
        self.used.push(name.to_string());
        let list = match given {
            Json::Array(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        if list.is_empty() || list.len() > REPETITIONS_MAX {
            return Err(wrong(name, &format!("a list of 1 to {REPETITIONS_MAX}")));
        }
        for item in list {
            match (inner, item) {
                (Node::Value { choices, .. }, item) => self.value(name, choices, item)?,
                (inner, Json::Object(args)) => {
                    let outer = std::mem::take(&mut self.used);
                    self.node(inner, args)?;
                    self.all_used(name, inner, args)?;
                    self.used = outer;
                }
                _ => return Err(wrong(name, "a list of objects")),
            }
        }
        Ok(())
    }

    fn value(&mut self, name: &str, choices: &[Choice], value: &Json) -> Result<(), Refusal> {
        let text = match value {
            Json::String(text) => text.clone(),
            Json::Number(number) => number.to_string(),
            _ => return Err(wrong(name, "a text or a number")),
        };
        let reads = choices.iter().find_map(|choice| match choice {
            Choice::Type(t) => Some(t.reads),
            Choice::Word(_) => None,
        });
        // The one word that a branch is known by.
        if let [Choice::Word(word)] = choices
            && *word != text
        {
            return Err(Refusal::new(format!("{name}: '{}' is not {word}", printable(&text))));
        }
        // What takes the rest of the line takes its quotation marks too.
        let is_rest = matches!(reads, Some(Reads::Rest));
        if text.contains(['\n', '\r', '\0']) || (text.contains('"') && !is_rest) {
            return Err(Refusal::new(format!(
                "{name}: '{}' cannot be said in a command",
                printable(&text)
            ))
            .remedy("leave out quotation marks and line ends"));
        }
        match reads {
            Some(Reads::Text | Reads::Name(_)) => self.push(&quoted(&text)),
            Some(Reads::Block | Reads::Rest) => self.push(&text),
            _ if is_one_word(&text) => self.push(&text),
            _ => return Err(wrong(name, "one word")),
        }
        Ok(())
    }
}

/// As a word of a command line: in quotation marks when it would not be one otherwise.
pub fn quoted(text: &str) -> String {
    if is_one_word(text) { text.to_string() } else { format!("\"{text}\"") }
}

fn is_one_word(text: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !matches!(c, '{' | '}' | '"');
    !text.is_empty()
        && text != "?"
        && text.chars().all(plain)
        && !text.starts_with('#')
        && !text.ends_with(',')
}

fn is_absent(value: &Json) -> bool {
    matches!(value, Json::Null | Json::Bool(false))
}

fn missing(name: &str, choices: &[Choice]) -> Refusal {
    let kinds: Vec<&str> = choices
        .iter()
        .map(|choice| match choice {
            Choice::Word(word) => word,
            Choice::Type(t) => t.description.as_str(),
        })
        .collect();
    Refusal::new(format!("the argument {name} is missing"))
        .remedy(format!("it must be {}", either(&kinds)))
}

/// How many of the tree's keys `args` has.
fn mentioned(node: &Node, args: &Args) -> usize {
    keys(node)
        .iter()
        .filter(|key| args.get(key.as_str()).is_some_and(|value| !is_absent(value)))
        .count()
}

/// The keys that a tree takes at its own level: what is inside repeated groups is left out.
fn keys(node: &Node) -> Vec<String> {
    match node {
        Node::Literal { word, flag: true } => vec![key_of(word)],
        Node::Literal { .. } => Vec::new(),
        Node::Value { name, .. } | Node::Repeat { name, .. } => vec![key_of(name)],
        Node::Opt(inner) => keys(inner),
        Node::Seq(items) | Node::Alt(items) | Node::Set(items) => {
            items.iter().flat_map(keys).collect()
        }
    }
}

/// The schema of a tree's arguments.
fn arguments(node: &Node, words: &[(&str, &str)]) -> Json {
    let mut out = Vec::new();
    collect(node, true, words, &mut out);
    Json::Array(out)
}

fn collect(node: &Node, required: bool, words: &[(&str, &str)], out: &mut Vec<Json>) {
    let help =
        |name: &str| words.iter().find(|(word, _)| *word == name).map_or("", |(_, help)| *help);
    match node {
        Node::Literal { word, flag: true } => {
            out.push(
                json!({"name": key_of(word), "type": "flag", "required": false, "help": help(word)})
            );
        }
        Node::Literal { .. } => {}
        Node::Value { name, choices } => {
            let mut schema =
                json!({"name": key_of(name), "required": required, "help": help(name)});
            describe(choices, &mut schema);
            out.push(schema);
        }
        Node::Seq(items) | Node::Set(items) => {
            items.iter().for_each(|item| collect(item, required, words, out));
        }
        Node::Opt(inner) => collect(inner, false, words, out),
        Node::Alt(items) => items.iter().for_each(|item| collect(item, false, words, out)),
        Node::Repeat { name, inner } => {
            let mut schema = json!({
                "name": key_of(name), "required": required, "repeated": true, "help": help(name)
            });
            match &**inner {
                Node::Value { choices, .. } => describe(choices, &mut schema),
                group => {
                    schema["type"] = json!("group");
                    schema["args"] = arguments(group, words);
                }
            }
            out.push(schema);
        }
    }
}

fn describe(choices: &[Choice], schema: &mut Json) {
    let (mut words, mut types): (Vec<&str>, Vec<&ValueType>) = (Vec::new(), Vec::new());
    for choice in choices {
        match choice {
            Choice::Word(word) => words.push(word),
            Choice::Type(t) => types.push(t),
        }
    }
    schema["type"] = match types.first() {
        None => json!("word"),
        Some(ValueType { reads: Reads::Number { min, max }, .. }) => {
            schema["min"] = json!(min);
            schema["max"] = json!(max);
            json!("number")
        }
        Some(t) => json!(t.name),
    };
    if !words.is_empty() {
        schema["words"] = json!(words);
    }
}

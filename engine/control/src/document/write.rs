//! From the lines of a configuration to the document that says the same.

use std::collections::HashMap;

use super::comments::identity_of;
use super::notation::{Entry, Groups, Key, KeyPart, Value};
use super::said::{self, Given, Said};
use super::tree::{Map, Name, Scalar, Tree};
use super::{Document, INTERFACES, SUB_INTERFACES};
use crate::error::Refusal;
use crate::grammar::{Commands, closed};
use crate::inverse::Given as Line;
use crate::names::Names;
use crate::words::{self, Word};

/// Everything exists: a line is read for what it says.
pub(crate) struct Everything;

impl Names for Everything {
    fn find(&self, _: &str, _: &str) -> Option<u32> {
        Some(u32::MAX)
    }
}

/// A document under construction.
#[derive(Default)]
pub(crate) struct DocumentWriter {
    tree: Map,
    /// Where interfaces stand that do not stand under their names.
    interfaces: HashMap<String, Vec<String>>,
    words: Vec<Word>,
}

impl DocumentWriter {
    /// Add a line of the running configuration.
    ///
    /// # Errors
    /// The line has no place in a document, or contradicts another. Both are faults of ours, or of
    /// a feature from outside.
    pub(crate) fn add<S: Names + 'static>(
        &mut self,
        commands: &Commands<S>,
        line: &str,
    ) -> Result<(), Refusal> {
        let mut words = std::mem::take(&mut self.words);
        let result = self.add_words(commands, line, &mut words);
        self.words = words;
        result
    }

    fn add_words<S: Names + 'static>(
        &mut self,
        commands: &Commands<S>,
        line: &str,
        words: &mut Vec<Word>,
    ) -> Result<(), Refusal> {
        words.clear();
        closed(words::split(line, words)?, words.len())?;
        if words.is_empty() {
            return Ok(());
        }
        let mut slots = Vec::new();
        let form = commands.matcher.parse(&Everything, line, words, &mut slots)? as usize;
        let names = &commands.matcher.automata[form].names;
        let registered = commands.registered(form);
        let said = said::of_line(names, &slots, line, words);
        let usual = registered.inverse.usual;
        let found = registered.entries.iter().find_map(|placed| {
            let (keys, value) = place(&placed.entry, &said, usual)?;
            Some((&placed.entry, keys, value))
        });
        let Some((entry, mut keys, value)) = found else {
            let command = &commands.forms[form].name;
            let what = format!("`{command} …` has no place in a YAML document");
            return Err(Refusal::new(what).remedy("a configuration of commands has it"));
        };
        let is_interface = entry.keys.first() == Some(&Key::Word(INTERFACES));
        if is_interface && let Some(there) = keys.get(1).and_then(|name| self.interfaces.get(name))
        {
            keys.splice(..2, there.iter().cloned());
        }
        let given = Line { names, slots: &slots, line, words, instead: &[] };
        let made = registered.inverse.makes.iter().filter_map(|object| object.fill(&given));
        for object in made {
            let Some(name) = object.strip_prefix("interface ") else { continue };
            let is_below = keys.get(2).is_some_and(|key| key == SUB_INTERFACES);
            let depth = if is_below { 4 } else { 2 };
            if is_interface && keys.get(1).is_some_and(|key| key != name || is_below) {
                let there = keys.iter().take(depth).cloned().collect();
                self.interfaces.insert(name.to_owned(), there);
            }
        }
        let mut root = Tree::Map(std::mem::take(&mut self.tree));
        let put = root.put(&keys, value, entry.is_item);
        if let Tree::Map(map) = root {
            self.tree = map;
        }
        put.map_err(|place| Refusal::new(format!("two lines say something else of {place}")))
    }

    /// The document of all lines that were added.
    pub(crate) fn finish(self) -> Document {
        Document(self.tree)
    }
}

/// Where these arguments stand, and as what; nothing when the entry does not say all of them.
fn place(entry: &Entry, said: &Said, usual: &[(&str, &str)]) -> Option<(Vec<String>, Tree)> {
    let mut used = Vec::new();
    for (name, word) in &entry.with {
        let given = said::find(said, name)?;
        if word.is_some_and(|word| given.text() != Some(word))
            || word.is_none() && *given != Given::Flag
        {
            return None;
        }
        used.push(*name);
    }
    let mut keys = Vec::with_capacity(entry.keys.len());
    for key in &entry.keys {
        keys.push(key_text(key, said, &mut used)?);
    }
    let is_usual = |name: &str, given: &Given| {
        usual.iter().any(|(of, word)| *of == name && given.text() == Some(word))
    };
    let left: Said = said
        .iter()
        .filter(|(name, given)| !used.contains(name) && !is_usual(name, given))
        .cloned()
        .collect();
    let value = whole(&entry.value, &left)?;
    Some((keys, value))
}

fn key_text(key: &Key, said: &Said, used: &mut Vec<&'static str>) -> Option<String> {
    match key {
        Key::Word(word) => Some((*word).to_owned()),
        Key::Flag(flags) => {
            let flag = flags.iter().find(|flag| said::find(said, flag) == Some(&Given::Flag))?;
            used.push(flag);
            Some((*flag).to_owned())
        }
        Key::Pattern(parts) => {
            let mut text = String::new();
            for part in parts {
                match part {
                    KeyPart::Text(word) => text.push_str(word),
                    KeyPart::Argument { name, otherwise } => {
                        match said::find(said, name).and_then(Given::text) {
                            Some(given) => text.push_str(given),
                            None => text.push_str((*otherwise)?),
                        }
                        used.push(name);
                    }
                }
            }
            Some(text)
        }
    }
}

/// The value that says all of these arguments.
fn whole(value: &Value, said: &Said) -> Option<Tree> {
    if let Value::OneOf(values) = value {
        return values.iter().find_map(|value| whole(value, said));
    }
    let names = value.names();
    if said.iter().any(|(name, _)| !names.contains(name)) {
        return None;
    }
    // Of alternatives inside, one may be short of an argument that another has.
    tree(value, said).filter(|tree| covers(value, tree, said))
}

/// Are as many arguments said as there are? Only alternatives inside can leave one out.
fn covers(value: &Value, tree: &Tree, said: &Said) -> bool {
    match (value, tree) {
        (Value::Map { members, .. }, Tree::Map(map)) => {
            let written: Vec<&'static str> = members
                .iter()
                .filter(|member| map.members.contains_key(&Name(member.key.to_owned())))
                .flat_map(|member| member.value.names())
                .collect();
            said.iter().all(|(name, _)| written.contains(name))
        }
        _ => true,
    }
}

fn tree(value: &Value, said: &Said) -> Option<Tree> {
    let all = |name: &'static str| said.iter().filter(move |(known, _)| *known == name);
    let has = |flag: &str| said::find(said, flag) == Some(&Given::Flag);
    match value {
        Value::Argument(name) => scalar(said::find(said, name)?),
        Value::Arguments(name) => {
            listed(all(name).map(|(_, given)| scalar(given)).collect::<Option<Vec<Tree>>>()?)
        }
        Value::Truth { argument: Some(name), yes, no } => {
            let text = said::find(said, name)?.text()?;
            match (text == *yes, *no == Some(text)) {
                (true, _) => Some(Tree::Scalar(Scalar::Truth(true))),
                (_, true) => Some(Tree::Scalar(Scalar::Truth(false))),
                _ => None,
            }
        }
        Value::Truth { argument: None, yes, no } => match (has(yes), no.is_some_and(has)) {
            (true, _) => Some(Tree::Scalar(Scalar::Truth(true))),
            (_, true) => Some(Tree::Scalar(Scalar::Truth(false))),
            _ => None,
        },
        Value::Flag(flags) => flags.iter().find(|flag| has(flag)).map(|flag| Tree::text(*flag)),
        Value::Flags(flags) => {
            listed(flags.iter().filter(|flag| has(flag)).map(|flag| Tree::text(*flag)).collect())
        }
        Value::True => said.is_empty().then_some(Tree::Scalar(Scalar::Truth(true))),
        Value::Map { members, needs_one } => {
            let mut map = Map::default();
            for member in members {
                let Some(value) = tree(&member.value, said) else { continue };
                let value = if member.is_first { Tree::List(vec![value]) } else { value };
                map.members.insert(Name(member.key.to_owned()), value);
            }
            (!needs_one || !map.members.is_empty()).then_some(Tree::Map(map))
        }
        Value::Groups(Groups { group, value, is_set, .. }) => {
            let groups = all(group).filter_map(|(_, given)| match given {
                Given::Group(inside) => Some(whole(value, inside)),
                _ => None,
            });
            let mut groups = groups.collect::<Option<Vec<Tree>>>()?;
            if *is_set {
                groups.sort_by_cached_key(|group| Name(identity_of(group)));
            }
            listed(groups)
        }
        Value::OneOf(values) => values.iter().find_map(|value| tree(value, said)),
    }
}

/// A list; what is alone stands without one.
fn listed(mut items: Vec<Tree>) -> Option<Tree> {
    match items.len() {
        0 => None,
        1 => items.pop(),
        _ => Some(Tree::List(items)),
    }
}

fn scalar(given: &Given) -> Option<Tree> {
    match given {
        Given::Number(text) => Some(Tree::Scalar(Scalar::Number(text.clone()))),
        Given::Text(text) => Some(Tree::text(text.clone())),
        Given::Flag | Given::Group(_) => None,
    }
}

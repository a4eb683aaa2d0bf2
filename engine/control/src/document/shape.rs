//! Every place that a document can have: the entries of all commands, by their keys.

use std::collections::BTreeMap;

use super::INTERFACES;
use super::notation::{Argument, Key, KeyPart, Kind};
use crate::grammar::Commands;
use crate::names::Names;
use crate::syntax::Choice;
use crate::types::ValueType;

/// A place, and what can stand there.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// Below this word.
    pub(crate) words: BTreeMap<&'static str, Shape>,
    /// Below any other key, which is an argument.
    pub(crate) any: Option<Box<Shape>>,
    /// How keys of `any` look: `<interface>`, `loop<instance>`.
    pub(crate) patterns: Vec<String>,
    /// Their types; nothing for a key of text and arguments, or of words.
    pub(crate) key_types: Vec<Option<ValueType>>,
    /// Entries whose value stands here.
    pub(crate) values: Vec<EntryId>,
    /// Entries of which each line is an item here.
    pub(crate) items: Vec<EntryId>,
}

/// An entry of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EntryId {
    pub(crate) command: usize,
    pub(crate) entry: usize,
}

/// The type of a key that is an argument.
fn type_of(key: &Key, arguments: &[Argument]) -> Option<ValueType> {
    let Key::Pattern(parts) = key else { return None };
    let [KeyPart::Argument { name, .. }] = parts.as_slice() else { return None };
    let argument = arguments.iter().find(|argument| argument.name == *name)?;
    match &argument.kind {
        Kind::Value(choices) => match choices.as_slice() {
            [Choice::Type(kind)] => Some(kind.clone()),
            _ => None,
        },
        _ => None,
    }
}

impl Shape {
    /// The shape of all entries.
    pub(crate) fn of<S: Names + 'static>(commands: &Commands<S>) -> Shape {
        let mut root = Shape::default();
        for (command, registered) in commands.commands.iter().enumerate() {
            for (entry, placed) in registered.entries.iter().enumerate() {
                let id = EntryId { command, entry };
                let keys = &placed.entry.keys;
                root.add(keys, &registered.arguments, placed.entry.is_item, id);
            }
        }
        root
    }

    fn add(&mut self, keys: &[Key], arguments: &[Argument], is_item: bool, id: EntryId) {
        let Some((first, left)) = keys.split_first() else {
            match is_item {
                true => self.items.push(id),
                false => self.values.push(id),
            }
            return;
        };
        match first {
            Key::Word(word) => {
                self.words.entry(word).or_default().add(left, arguments, is_item, id)
            }
            Key::Flag(flags) => {
                for flag in flags {
                    self.words.entry(flag).or_default().add(left, arguments, is_item, id);
                }
            }
            Key::Pattern(_) => {
                let shown = first.readable();
                if !self.patterns.contains(&shown) {
                    self.patterns.push(shown);
                    self.key_types.push(type_of(first, arguments));
                }
                self.any.get_or_insert_default().add(left, arguments, is_item, id);
            }
        }
    }

    /// What stands below an interface.
    pub(crate) fn interface(&self) -> Option<&Shape> {
        self.words.get(INTERFACES)?.any.as_deref()
    }
}

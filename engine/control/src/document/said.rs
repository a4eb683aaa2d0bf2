//! The arguments of a line, apart from the order and the spelling of its words, and the line that
//! arguments make.

use serde_json::{Map, Value as Json};

use super::comments::normal;
use super::notation::{Argument, Kind};
use crate::args::Slot;
use crate::output::key_of;
use crate::syntax::Choice;
use crate::types::Reads;
use crate::value::Value;
use crate::words::Word;

/// Arguments of a level: of a command, or of a repetition of a group in it.
pub(crate) type Said = Vec<(&'static str, Given)>;

/// What an argument says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    Flag,
    /// A number in the command's notation.
    Number(String),
    Text(String),
    Group(Said),
}

impl Given {
    /// Its text; none of a flag or a group.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Given::Number(text) | Given::Text(text) => Some(text),
            Given::Flag | Given::Group(_) => None,
        }
    }
}

/// The argument of this name.
pub(crate) fn find<'s>(said: &'s Said, name: &str) -> Option<&'s Given> {
    said.iter().find(|(known, _)| *known == name).map(|(_, given)| given)
}

/// The arguments of a line that was parsed.
pub(crate) fn of_line(
    names: &[&'static str],
    slots: &[Slot<'_>],
    line: &str,
    words: &[Word],
) -> Said {
    let mut said = Said::new();
    let mut at = 0;
    while let Some(slot) = slots.get(at) {
        at += 1;
        let name = slot.name_in(names);
        let written = || match words.get(slot.word as usize) {
            Some(word) => word.text(line).to_owned(),
            None => String::new(),
        };
        let given = match slot.value {
            Value::Group(length) => {
                let inside = slots.get(at..at + length as usize).unwrap_or_default();
                at += length as usize;
                Given::Group(of_line(names, inside, line, words))
            }
            Value::Word(word) if word == name => Given::Flag,
            Value::Word(word) => Given::Text(word.to_owned()),
            Value::Text(text) => Given::Text(without_braces(text).to_owned()),
            Value::Number(number) => Given::Number(number.to_string()),
            Value::Real(_) => Given::Number(written()),
            Value::Ip4(address) => Given::Text(address.to_string()),
            Value::Ip6(address) => Given::Text(address.to_string()),
            Value::Prefix(prefix) => Given::Text(prefix.to_string()),
            Value::Mac(_) => Given::Text(normal(&written())),
            _ => Given::Text(written()),
        };
        said.push((name, given));
    }
    said
}

/// A block without its braces, with one space between its words.
fn without_braces(text: &str) -> &str {
    let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    inside.map_or(text, str::trim)
}

/// The arguments as the JSON form of commands has them; `blocks` stand in braces.
pub(crate) fn to_json(said: &Said, blocks: &[&'static str]) -> Map<String, Json> {
    let mut out = Map::new();
    for (name, given) in said {
        let value = match given {
            Given::Flag => Json::Bool(true),
            Given::Number(text) | Given::Text(text) => {
                let is_block = blocks.contains(name);
                Json::String(if is_block { format!("{{ {text} }}") } else { text.clone() })
            }
            Given::Group(inside) => Json::Object(to_json(inside, blocks)),
        };
        match out.get_mut(&key_of(name)) {
            None => {
                out.insert(key_of(name), value);
            }
            Some(Json::Array(values)) => values.push(value),
            Some(first) => *first = Json::Array(vec![first.take(), value]),
        }
    }
    out
}

/// The arguments that are blocks.
pub(crate) fn blocks(arguments: &[Argument]) -> Vec<&'static str> {
    let is_block = |choice: &Choice| match choice {
        Choice::Type(kind) => matches!(kind.reads, Reads::Block),
        _ => false,
    };
    let mut out = Vec::new();
    for argument in arguments {
        match &argument.kind {
            Kind::Flag => {}
            Kind::Value(choices) | Kind::Values(choices) => {
                out.extend(choices.iter().any(is_block).then_some(argument.name));
            }
            Kind::Group(inner) => out.extend(blocks(inner)),
        }
    }
    out
}

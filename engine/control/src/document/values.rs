//! What keys and values of a document say as arguments of a command.

use std::collections::HashMap;

use super::Position;
use super::notation::{Argument, Key, KeyPart, Kind, Member, Value};
use super::parse::{self, Node, NodeValue, mistake};
use super::read::unknown;
use super::said::{Given, Said};
use crate::changes::Mistake;
use crate::error::{Refusal, either, printable};
use crate::syntax::Choice;
use crate::types::Reads;

/// A message lists at most so many keys.
pub(super) const KEYS_LISTED_MAX: usize = 12;

/// What an entry took from a document, under way.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) interfaces: Vec<(String, Position)>,
    pub(super) mistakes: Vec<Mistake>,
    pub(super) is_off: bool,
    /// It says that there is nothing to say.
    pub(super) is_nothing: bool,
}

/// The arguments that a key says.
pub(super) fn bind(
    key: &Key,
    text: &str,
    at: Position,
    arguments: &[Argument],
    said: &mut Said,
    taken: &mut Taken,
) {
    match key {
        Key::Word(_) => {}
        Key::Flag(flags) => {
            said.extend(flags.iter().find(|flag| **flag == text).map(|flag| (*flag, Given::Flag)));
        }
        Key::Pattern(parts) => {
            let Some(values) = matched(parts, text) else {
                let what = format!("'{}' cannot have this", printable(text));
                let remedy = format!("it stands under {}", key.readable());
                return taken.mistakes.push(mistake(at, Refusal::new(what).remedy(remedy)));
            };
            for (name, otherwise, value) in values {
                if otherwise == Some(value) {
                    continue;
                }
                if let Some(given) = given(name, value, true, at, arguments, taken) {
                    said.push((name, given));
                }
            }
        }
    }
}

type Matched<'t> = (&'static str, Option<&'static str>, &'t str);

/// The arguments in a key of this pattern.
fn matched<'t>(parts: &[KeyPart], text: &'t str) -> Option<Vec<Matched<'t>>> {
    let mut out = Vec::new();
    let mut rest = text;
    let mut parts = parts.iter().peekable();
    while let Some(part) = parts.next() {
        match part {
            KeyPart::Text(word) => rest = rest.strip_prefix(word)?,
            KeyPart::Argument { name, otherwise } => {
                let end = match parts.peek() {
                    Some(KeyPart::Text(next)) => rest.rfind(next)?,
                    _ => rest.len(),
                };
                out.push((*name, *otherwise, &rest[..end]));
                rest = &rest[end..];
            }
        }
    }
    (rest.is_empty() && out.iter().all(|(.., value)| !value.is_empty())).then_some(out)
}

/// A text as an argument.
fn given(
    name: &str,
    text: &str,
    is_plain: bool,
    at: Position,
    arguments: &[Argument],
    taken: &mut Taken,
) -> Option<Given> {
    let mut expected: Vec<&str> = Vec::new();
    if text.contains(['"', '\n', '\r', '\0']) {
        let what = match is_secret(name, arguments) {
            true => "the secret cannot be said in a command".to_owned(),
            false => format!("'{}' cannot be said in a command", printable(text)),
        };
        let refusal = Refusal::new(what).remedy("leave out quotation marks and line ends");
        taken.mistakes.push(mistake(at, refusal));
        return None;
    }
    for argument in arguments.iter().filter(|argument| argument.name == name) {
        let (Kind::Value(choices) | Kind::Values(choices)) = &argument.kind else { continue };
        for choice in choices {
            match choice {
                Choice::Word(word) if *word == text => return Some(Given::Text(text.to_owned())),
                Choice::Word(word) => expected.push(word),
                Choice::Type(kind) => {
                    let reads = match kind.reads {
                        Reads::Block | Reads::Rest => true,
                        Reads::Text | Reads::Name(_) => kind.read(text, true).is_some(),
                        Reads::Number { .. } | Reads::Strict(_) => kind.read(text, false).is_some(),
                    };
                    if !reads {
                        expected.push(&kind.description);
                        continue;
                    }
                    if matches!(kind.reads, Reads::Name(INTERFACE)) {
                        taken.interfaces.push((text.to_owned(), at));
                    }
                    let is_number = matches!(kind.reads, Reads::Number { .. }) && is_plain;
                    return Some(match is_number {
                        true => Given::Number(text.to_owned()),
                        false => Given::Text(text.to_owned()),
                    });
                }
            }
        }
    }
    let what = format!("'{}' does not do for {name}", printable(text));
    let remedy = format!("it must be {}", either(&expected));
    taken.mistakes.push(mistake(at, Refusal::new(what).remedy(remedy)));
    None
}

const INTERFACE: &str = "interface";

fn is_secret(name: &str, arguments: &[Argument]) -> bool {
    arguments.iter().filter(|argument| argument.name == name).any(|argument| {
        let (Kind::Value(choices) | Kind::Values(choices)) = &argument.kind else { return false };
        let is_secret = |choice: &Choice| matches!(choice, Choice::Type(kind) if kind.is_secret());
        choices.iter().any(is_secret)
    })
}

/// Read a value.
pub(super) fn value(
    wanted: &Value,
    node: &Node,
    arguments: &[Argument],
    said: &mut Said,
    taken: &mut Taken,
) {
    let mut wrong = |must_be: String| {
        let shown = match &node.value {
            NodeValue::Scalar(text, _) if !node.is_null() => format!("'{}'", printable(text)),
            _ => node.kind().to_owned(),
        };
        let refusal = Refusal::new(format!("{shown} does not do here"));
        taken.mistakes.push(mistake(node.at, refusal.remedy(format!("it must be {must_be}"))));
    };
    match (wanted, &node.value) {
        (Value::Argument(name), NodeValue::Scalar(text, is_plain)) if !node.is_null() => {
            let given = given(name, text, *is_plain, node.at, arguments, taken);
            said.extend(given.map(|given| (*name, given)));
        }
        (Value::Argument(name), _) => wrong(described(name, arguments)),
        (Value::Arguments(name), _) if !node.is_null() => {
            for item in items(node) {
                value(&Value::Argument(name), item, arguments, said, taken);
            }
        }
        (Value::Arguments(name), _) => wrong(format!("a list of {}", described(name, arguments))),
        (Value::Truth { argument, yes, no }, NodeValue::Scalar(text, true)) => {
            let Some(truth) = truth(text) else { return wrong("true or false".to_owned()) };
            let word = if truth { Some(*yes) } else { *no };
            taken.is_off |= !truth;
            match (argument, word) {
                (_, None | Some("")) => {}
                (Some(name), Some(word)) => said.push((name, Given::Text(word.to_owned()))),
                (None, Some(flag)) => said.push((flag, Given::Flag)),
            }
        }
        (Value::Truth { .. }, _) => wrong("true or false".to_owned()),
        (Value::True, NodeValue::Scalar(text, true)) => match truth(text) {
            Some(true) => {}
            Some(false) => taken.is_nothing = true,
            None => wrong("true or false".to_owned()),
        },
        (Value::True, _) => wrong("true or false".to_owned()),
        (Value::Flag(flags), NodeValue::Scalar(text, _)) => {
            match flags.iter().find(|flag| *flag == text) {
                Some(flag) => said.push((flag, Given::Flag)),
                None => wrong(either(flags)),
            }
        }
        (Value::Flag(flags), _) => wrong(either(flags)),
        (Value::Flags(flags), _) if !node.is_null() => {
            for item in items(node) {
                value(&Value::Flag(flags.clone()), item, arguments, said, taken);
            }
        }
        (Value::Flags(flags), _) => wrong(format!("a list of {}", either(flags))),
        (Value::Map { members, needs_one }, NodeValue::Map(given)) => {
            taken.is_nothing |= *needs_one && given.is_empty();
            map(members, given, arguments, said, taken);
        }
        (Value::Map { needs_one, .. }, _) if node.is_null() => taken.is_nothing |= *needs_one,
        (Value::Map { members, .. }, _) => {
            let keys: Vec<&str> = members.iter().map(|member| member.key).collect();
            wrong(format!("keys, such as {}", either(&keys[..keys.len().min(KEYS_LISTED_MAX)])));
        }
        (Value::Groups(groups), _) if !node.is_null() => {
            for item in items(node) {
                let mut own = Said::new();
                value(&groups.value, item, &groups.arguments, &mut own, taken);
                said.push((groups.group, Given::Group(own)));
            }
        }
        (Value::Groups(_), _) => wrong("a list".to_owned()),
        (Value::OneOf(values), _) => one_of(values, node, arguments, said, taken),
    }
}

/// Read a value by the first alternative that takes it.
fn one_of(
    values: &[Value],
    node: &Node,
    arguments: &[Argument],
    said: &mut Said,
    taken: &mut Taken,
) {
    let mut least: Option<((bool, bool, usize), Taken)> = None;
    for wanted in values {
        let (mut own, mut mine) = (Said::new(), Taken::default());
        value(wanted, node, arguments, &mut own, &mut mine);
        if mine.mistakes.is_empty() {
            said.extend(own);
            taken.interfaces.extend(mine.interfaces);
            taken.is_off |= mine.is_off;
            taken.is_nothing |= mine.is_nothing;
            return;
        }
        // Of what is of the same kind, mistakes inside say more.
        let is_map = matches!(node.value, NodeValue::Map(_));
        let place = (node.at.line, node.at.column);
        let is_inside = mine.mistakes.iter().any(|mistake| (mistake.line, mistake.column) != place);
        let rank = (wanted.is_map() != is_map, !is_inside, mine.mistakes.len());
        let is_better = least.as_ref().is_none_or(|(least, _)| rank <= *least);
        if is_better {
            least = Some((rank, mine));
        }
    }
    taken.mistakes.extend(least.map(|(_, least)| least.mistakes).unwrap_or_default());
}

fn map(
    members: &[Member],
    given: &[(parse::Key, Node)],
    arguments: &[Argument],
    said: &mut Said,
    taken: &mut Taken,
) {
    let mut seen: HashMap<&str, Position> = HashMap::new();
    for (key, node) in given {
        if let Some(first) = seen.insert(&key.text, key.at) {
            let what = format!("'{}' stands in line {} already", printable(&key.text), first.line);
            let refusal = Refusal::new(what).remedy("leave one of them out");
            taken.mistakes.push(mistake(key.at, refusal));
            continue;
        }
        let Some(member) = members.iter().find(|member| member.key == key.text) else {
            let keys: Vec<&'static str> = members.iter().map(|member| member.key).collect();
            taken.mistakes.push(mistake(key.at, unknown(&key.text, &keys)));
            continue;
        };
        let node = match (&node.value, member.is_first) {
            (NodeValue::List(items), true) => match items.first() {
                Some(first) => first,
                None => continue,
            },
            _ => node,
        };
        let mut inner = Taken::default();
        value(&member.value, node, arguments, said, &mut inner);
        taken.mistakes.extend(inner.mistakes);
        taken.interfaces.extend(inner.interfaces);
        taken.is_off |= inner.is_off;
    }
}

/// The items of a list; what stands alone is one.
fn items(node: &Node) -> &[Node] {
    match &node.value {
        NodeValue::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

fn described(name: &str, arguments: &[Argument]) -> String {
    let mut expected: Vec<&str> = Vec::new();
    for argument in arguments.iter().filter(|argument| argument.name == name) {
        let (Kind::Value(choices) | Kind::Values(choices)) = &argument.kind else { continue };
        expected.extend(choices.iter().map(|choice| match choice {
            Choice::Word(word) => word,
            Choice::Type(kind) => kind.description.as_str(),
        }));
    }
    either(&expected)
}

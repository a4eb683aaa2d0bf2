//! Where the values of a command live in the document: the notation of [`Command::entry`], read.
//!
//! An entry is `PLACE: VALUE`, and ` with FLAG …` where the command needs flags that the document
//! does not say.
//!
//! | place | is |
//! | --- | --- |
//! | `interfaces.<interface>.mtu` | keys, one in the other; `<name>` is an argument as a key |
//! | `loop<instance>` | a key of text and arguments; `<a=0>` may be left out, and is 0 then |
//! | `<ip4\|ip6>` | the one of these flags that is given |
//! | `addresses[]` | each line is one item of this list |
//!
//! | value | is |
//! | --- | --- |
//! | `<name>` | the argument |
//! | `<name>...` | the values of an argument that may be repeated, a list |
//! | `<on?off>` | true for the one flag, false for the other; one of them may be missing |
//! | `<state:on?off>` | the same of an argument that is one of two words |
//! | `<a\|b\|c>`, `<a\|>` | the flag that is given, as a word; with `...` a list of all |
//! | `true` | the line has nothing more to say |
//! | `{ mtu, key: VALUE, * }` | keys; a name alone is the argument, `*` all that are left |
//! | `some{ … }` | the same, and no line where no key is said |
//! | `[via: VALUE]` | the repetitions of a group, a list; with `(…)` their order means nothing |
//! | `{ lists[0]: VALUE }` | the first item of a list whose others are lines of their own |
//! | `VALUE / VALUE` | the first that says all |
//!
//! [`Command::entry`]: crate::Command::entry

use crate::syntax::{Choice, Node};

/// Flags by which a command gives or takes: no values of a configuration.
const VERBS: [&str; 11] =
    ["add", "del", "delete", "disable", "enable", "on", "off", "flush", "default", "all", "no"];

/// An entry, read.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) keys: Vec<Key>,
    /// The place is a list, and each line an item.
    pub(crate) is_item: bool,
    pub(crate) value: Value,
    /// Flags of the command, and words of its arguments, that the document does not say.
    pub(crate) with: Vec<(&'static str, Option<&'static str>)>,
}

/// A key on the way to the value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Key {
    /// This word.
    Word(&'static str),
    /// Text and arguments.
    Pattern(Vec<KeyPart>),
    /// One of these flags.
    Flag(Vec<&'static str>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeyPart {
    Text(&'static str),
    Argument { name: &'static str, otherwise: Option<&'static str> },
}

/// What stands at a place.
#[derive(Debug)]
pub(crate) enum Value {
    Argument(&'static str),
    Arguments(&'static str),
    Truth { argument: Option<&'static str>, yes: &'static str, no: Option<&'static str> },
    Flag(Vec<&'static str>),
    Flags(Vec<&'static str>),
    True,
    Map { members: Vec<Member>, needs_one: bool },
    Groups(Groups),
    OneOf(Vec<Value>),
}

/// The repetitions of a group.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) group: &'static str,
    /// The arguments of one.
    pub(crate) arguments: Vec<Argument>,
    pub(crate) value: Box<Value>,
    /// They mean the same in any order.
    pub(crate) is_set: bool,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) key: &'static str,
    /// It is the first item of a list.
    pub(crate) is_first: bool,
    pub(crate) value: Value,
}

/// An argument of a command, or of a repetition of a group in it.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Flag,
    Value(Vec<Choice>),
    Values(Vec<Choice>),
    Group(Vec<Argument>),
}

/// The arguments of a level of a command's tree.
pub(crate) fn arguments(tree: &Node) -> Vec<Argument> {
    let mut out = Vec::new();
    collect(tree, &mut out);
    out
}

fn collect(node: &Node, out: &mut Vec<Argument>) {
    match node {
        Node::Literal { word, flag: true } => out.push(Argument { name: word, kind: Kind::Flag }),
        Node::Literal { .. } => {}
        Node::Value { name, choices } => {
            out.push(Argument { name, kind: Kind::Value(choices.clone()) });
        }
        Node::Opt(inner) => collect(inner, out),
        Node::Seq(items) | Node::Alt(items) | Node::Set(items) => {
            items.iter().for_each(|item| collect(item, out));
        }
        Node::Repeat { name, inner } => {
            let kind = match &**inner {
                Node::Value { choices, .. } => Kind::Values(choices.clone()),
                group => Kind::Group(arguments(group)),
            };
            out.push(Argument { name, kind });
        }
    }
}

/// The arguments of the groups of this name: a command has several in its alternatives.
pub(crate) fn in_group(name: &str, arguments: &[Argument]) -> Vec<Argument> {
    let groups = arguments.iter().filter(|argument| argument.name == name);
    let inner = groups.filter_map(|argument| match &argument.kind {
        Kind::Group(inner) => Some(inner.iter().cloned()),
        _ => None,
    });
    inner.flatten().collect()
}

impl Entry {
    /// Read the entries of a command with these arguments. Panics when one is at fault: it is ours.
    pub(crate) fn read_all(texts: &[&'static str], arguments: &[Argument]) -> Vec<Entry> {
        let mut keys: Vec<&'static str> = Vec::new();
        for text in texts {
            let place = text.split_once(": ").map_or("", |(place, _)| place);
            let inside = place.split('<').skip(1).filter_map(|part| part.split('>').next());
            keys.extend(inside.flat_map(|part| part.split(['|', '='])));
        }
        texts.iter().map(|text| Entry::read(text, arguments, &keys)).collect()
    }

    /// Read one; `keys` are in places of the command's entries, and not among those that are left.
    fn read(text: &'static str, arguments: &[Argument], keys_of_all: &[&'static str]) -> Entry {
        let mut reader = Reader { text, rest: text };
        let mut keys = Vec::new();
        let is_item = loop {
            keys.push(reader.key(arguments));
            if reader.take("[]") {
                break true;
            }
            if !reader.take(".") {
                break false;
            }
        };
        reader.expect(":");
        let mut value = reader.values(arguments);
        let mut with = Vec::new();
        if reader.take("with") {
            while !reader.rest.trim_start().is_empty() {
                let name = reader.name();
                let word = reader.take("=").then(|| reader.name());
                with.push((name, word));
            }
        }
        reader.check(reader.rest.trim().is_empty(), "words behind the value");
        let mut said: Vec<&'static str> = with.iter().map(|(name, _)| *name).collect();
        keys.iter().for_each(|key| key.names(&mut said));
        let not_left: Vec<&'static str> = said.iter().chain(keys_of_all).copied().collect();
        fill_rest(&mut value, arguments, &not_left);
        for name in value.names().into_iter().chain(said) {
            let is_known = arguments.iter().any(|argument| argument.name == name);
            reader.check(is_known, &format!("no argument '{name}'"));
        }
        Entry { keys, is_item, value, with }
    }
}

impl Key {
    fn names(&self, out: &mut Vec<&'static str>) {
        match self {
            Key::Word(_) => {}
            Key::Flag(flags) => out.extend(flags),
            Key::Pattern(parts) => out.extend(parts.iter().filter_map(|part| match part {
                KeyPart::Argument { name, .. } => Some(*name),
                KeyPart::Text(_) => None,
            })),
        }
    }

    /// As people read it: `loop<instance>`.
    pub(crate) fn readable(&self) -> String {
        match self {
            Key::Word(word) => (*word).to_owned(),
            Key::Flag(flags) => flags.join("|"),
            Key::Pattern(parts) => parts
                .iter()
                .map(|part| match part {
                    KeyPart::Text(text) => (*text).to_owned(),
                    KeyPart::Argument { name, .. } => format!("<{name}>"),
                })
                .collect(),
        }
    }
}

/// Stands in a map until the arguments that are left take its place.
const REST: &str = "*";

/// Put all arguments that nothing says in the place of `*`.
fn fill_rest(value: &mut Value, arguments: &[Argument], said: &[&'static str]) {
    match value {
        Value::OneOf(values) => {
            values.iter_mut().for_each(|value| fill_rest(value, arguments, said));
        }
        Value::Map { members, .. } => {
            let Some(at) = members.iter().position(|member| member.key == REST) else { return };
            members.remove(at);
            let mut said = said.to_vec();
            said.extend(members.iter().flat_map(|member| member.value.names()));
            for argument in arguments {
                let is_verb = VERBS.contains(&argument.name);
                if said.contains(&argument.name) || is_verb {
                    continue;
                }
                said.push(argument.name);
                members.push(Member {
                    key: argument.name,
                    is_first: false,
                    value: Value::of(argument, arguments),
                });
            }
        }
        _ => {}
    }
}

impl Value {
    /// What an argument is when nothing more is said: one of all that have its name.
    fn of(argument: &Argument, all: &[Argument]) -> Value {
        let mut values: Vec<(u8, Value)> = Vec::new();
        for same in all.iter().filter(|other| other.name == argument.name) {
            let (kind, value) = Value::alone(same, all);
            if !values.iter().any(|(other, _)| *other == kind) {
                values.push((kind, value));
            }
        }
        let mut values: Vec<Value> = values.into_iter().map(|(_, value)| value).collect();
        match values.len() {
            1 => values.remove(0),
            _ => Value::OneOf(values),
        }
    }

    /// The same of one, and a number for its kind.
    fn alone(argument: &Argument, all: &[Argument]) -> (u8, Value) {
        let name = argument.name;
        match &argument.kind {
            Kind::Flag => (0, Value::Truth { argument: None, yes: name, no: None }),
            Kind::Value(_) => (1, Value::Argument(name)),
            Kind::Values(_) => (2, Value::Arguments(name)),
            Kind::Group(_) => {
                let inner = in_group(name, all);
                let value = match inner.as_slice() {
                    [Argument { name, kind: Kind::Value(_) }] => Value::Argument(name),
                    inner => {
                        let rest = Member { key: REST, is_first: false, value: Value::True };
                        let mut value = Value::Map { members: vec![rest], needs_one: false };
                        fill_rest(&mut value, inner, &[]);
                        value
                    }
                };
                let value = Box::new(value);
                let groups = Groups { group: name, arguments: inner, value, is_set: false };
                (3, Value::Groups(groups))
            }
        }
    }

    /// The arguments that it says, of its own level.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        match self {
            Value::Argument(name) | Value::Arguments(name) => vec![name],
            Value::Truth { argument: Some(name), .. } => vec![name],
            Value::Truth { yes, no, .. } => {
                std::iter::once(*yes).filter(|yes| !yes.is_empty()).chain(*no).collect()
            }
            Value::Flag(flags) | Value::Flags(flags) => flags.clone(),
            Value::True => Vec::new(),
            Value::Map { members, .. } => {
                members.iter().flat_map(|member| member.value.names()).collect()
            }
            Value::Groups(groups) => vec![groups.group],
            Value::OneOf(values) => values.iter().flat_map(Value::names).collect(),
        }
    }

    /// Groups whose order means nothing.
    pub(crate) fn sets(&self) -> Vec<&'static str> {
        match self {
            Value::Groups(groups) if groups.is_set => vec![groups.group],
            Value::Map { members, .. } => {
                members.iter().flat_map(|member| member.value.sets()).collect()
            }
            Value::OneOf(values) => values.iter().flat_map(Value::sets).collect(),
            _ => Vec::new(),
        }
    }

    /// Can keys stand there?
    pub(crate) fn is_map(&self) -> bool {
        match self {
            Value::Map { .. } => true,
            Value::OneOf(values) => values.iter().any(Value::is_map),
            _ => false,
        }
    }

    /// The members of the map that it can be.
    pub(crate) fn members(&self) -> Vec<&Member> {
        match self {
            Value::Map { members, .. } => members.iter().collect(),
            Value::OneOf(values) => values.iter().flat_map(Value::members).collect(),
            _ => Vec::new(),
        }
    }
}

struct Reader {
    text: &'static str,
    rest: &'static str,
}

impl Reader {
    fn check(&self, holds: bool, what: &str) {
        assert!(holds, "{what}, in the entry: {}", self.text);
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) {
        let is_there = self.take(token);
        self.check(is_there, &format!("'{token}' is missing before '{}'", self.rest));
    }

    /// The text up to one of these characters.
    fn until(&mut self, ends: &[char]) -> &'static str {
        let rest = self.rest.trim_start();
        let end = rest.find(ends).unwrap_or(rest.len());
        self.rest = &rest[end..];
        rest[..end].trim_end()
    }

    fn name(&mut self) -> &'static str {
        let name = self
            .until(&[' ', ',', ':', '.', '<', '>', '[', ']', '(', ')', '{', '}', '=', '/', '|']);
        self.check(!name.is_empty(), "a name is missing");
        name
    }

    fn key(&mut self, arguments: &[Argument]) -> Key {
        let mut parts = Vec::new();
        loop {
            let text = self.until(&['.', '<', ':', '[']);
            if !text.is_empty() {
                parts.push(KeyPart::Text(text));
            }
            if !self.rest.starts_with('<') {
                break;
            }
            self.rest = &self.rest[1..];
            let inside = self.until(&['>']);
            self.expect(">");
            let is_flag = |name: &str| {
                let found = arguments.iter().find(|argument| argument.name == name);
                matches!(found.map(|argument| &argument.kind), Some(Kind::Flag))
            };
            if inside.contains('|') || is_flag(inside) {
                self.check(parts.is_empty(), "text before flags");
                return Key::Flag(inside.split('|').collect());
            }
            let (name, otherwise) = match inside.split_once('=') {
                Some((name, otherwise)) => (name, Some(otherwise)),
                None => (inside, None),
            };
            parts.push(KeyPart::Argument { name, otherwise });
        }
        match parts.as_slice() {
            [KeyPart::Text(word)] => Key::Word(word),
            [] => panic!("a key is missing, in the entry: {}", self.text),
            _ => Key::Pattern(parts),
        }
    }

    fn values(&mut self, arguments: &[Argument]) -> Value {
        let mut values = vec![self.value(arguments)];
        while self.take("/") {
            values.push(self.value(arguments));
        }
        match values.len() {
            1 => values.remove(0),
            _ => Value::OneOf(values),
        }
    }

    fn value(&mut self, arguments: &[Argument]) -> Value {
        if self.take("<") {
            let inside = self.until(&['>']);
            self.expect(">");
            return self.inside(inside);
        }
        if self.take("some{") {
            return Value::Map { members: self.members(arguments), needs_one: true };
        }
        if self.take("{") {
            return Value::Map { members: self.members(arguments), needs_one: false };
        }
        let is_set = self.take("(");
        if is_set || self.take("[") {
            let group = self.name();
            self.expect(":");
            let inner = in_group(group, arguments);
            self.check(!inner.is_empty(), &format!("no group '{group}'"));
            let mut value = self.values(&inner);
            self.expect(if is_set { ")" } else { "]" });
            fill_rest(&mut value, &inner, &[]);
            for name in value.names() {
                let is_known = inner.iter().any(|argument| argument.name == name);
                self.check(is_known, &format!("no argument '{name}' in '{group}'"));
            }
            let value = Box::new(value);
            return Value::Groups(Groups { group, arguments: inner, value, is_set });
        }
        self.expect("true");
        Value::True
    }

    fn inside(&mut self, inside: &'static str) -> Value {
        let is_repeated = self.take("...");
        if let Some((yes, no)) = inside.split_once('?') {
            let (argument, yes) = match yes.split_once(':') {
                Some((argument, yes)) => (Some(argument), yes),
                None => (None, yes),
            };
            return Value::Truth { argument, yes, no: Some(no).filter(|no| !no.is_empty()) };
        }
        if inside.contains('|') {
            let flags = inside.split('|').filter(|flag| !flag.is_empty()).collect();
            return if is_repeated { Value::Flags(flags) } else { Value::Flag(flags) };
        }
        if is_repeated { Value::Arguments(inside) } else { Value::Argument(inside) }
    }

    fn members(&mut self, arguments: &[Argument]) -> Vec<Member> {
        let mut members = Vec::new();
        while !self.take("}") {
            if self.take(REST) {
                members.push(Member { key: REST, is_first: false, value: Value::True });
            } else {
                members.push(self.member(arguments));
            }
            if !self.take(",") {
                self.expect("}");
                break;
            }
        }
        members
    }

    fn member(&mut self, arguments: &[Argument]) -> Member {
        let key = self.name();
        let is_first = self.take("[0]");
        if self.take(":") {
            return Member { key, is_first, value: self.values(arguments) };
        }
        let argument = arguments.iter().find(|argument| argument.name == key);
        self.check(argument.is_some(), &format!("no argument '{key}'"));
        let value = argument.map_or(Value::True, |argument| Value::of(argument, arguments));
        Member { key, is_first, value }
    }
}

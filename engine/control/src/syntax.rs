//! The notation in which a command is declared, read into a tree.
//!
//! | notation | is |
//! | --- | --- |
//! | `word` | the word itself, or a unique prefix of it |
//! | `<name:type>` | a value; `<interface>` is `<interface:interface>` |
//! | `<:u8>` | a value named by the word before it |
//! | `<state:up\|down>`, `<vlan:1-4094\|any>` | one of these words, or a number in a range |
//! | `<negate:'no'>` | this word, which stands in the arguments even where no choice ends with it |
//! | `up\|down` | one of these words, each a flag |
//! | `[ … ]` | may be left out |
//! | `( … \| … )` | one of these |
//! | `{ … }` | all in any order, those in `[ ]` optional; a word with the values behind it |
//! | `…...` | the element before, once or more |
//! | `'{'` | a word that is a character of the notation |
//!
//! A word is a flag, and stands in the arguments, when it is all of what may be left out or chosen:
//! `[static]` and `add|del` are, `[weight <:u8>]` is not, and neither is `[',']`.

use crate::types::{Reads, Types, ValueType};

/// A node of the tree.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A word.
    Literal { word: &'static str, flag: bool },
    /// A value.
    Value { name: &'static str, choices: Vec<Choice> },
    /// One after the other.
    Seq(Vec<Node>),
    /// May be left out.
    Opt(Box<Node>),
    /// One of these.
    Alt(Vec<Node>),
    /// In any order.
    Set(Vec<Node>),
    /// Once or more. Each time is a group of this name, unless it is a single value.
    Repeat { name: &'static str, inner: Box<Node> },
}

/// What a value can be.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// This word.
    Word(&'static str),
    /// Something of a type.
    Type(ValueType),
}

/// Read a declaration. It is written by us, so a fault in it is a fault of ours and panics, when
/// the command is registered.
pub(crate) fn parse(syntax: &'static str, types: &Types) -> Node {
    let mut parser = Parser { syntax, tokens: tokens(syntax), at: 0, types };
    let mut root = parser.sequence();
    parser.check(parser.at == parser.tokens.len(), "something is closed that was not opened");
    mark_flags(&mut root, false);
    level_names(&root, syntax);
    root
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Word(&'static str),
    Value(&'static str),
    Open(char),
    Close(char),
    /// `|` without spaces around it.
    Or,
    /// ` | `.
    WideOr,
    Repeat,
}

fn tokens(syntax: &'static str) -> Vec<Token> {
    let mut out = Vec::new();
    let bytes = syntax.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b' ' | b'\n' => at += 1,
            open @ (b'[' | b'(' | b'{') => {
                out.push(Token::Open(open as char));
                at += 1;
            }
            close @ (b']' | b')' | b'}') => {
                out.push(Token::Close(close as char));
                at += 1;
            }
            b'|' => {
                let wide = at > 0 && bytes[at - 1].is_ascii_whitespace();
                out.push(if wide { Token::WideOr } else { Token::Or });
                at += 1;
            }
            b'<' => {
                at += syntax[at..]
                    .find('>')
                    .unwrap_or_else(|| panic!("'<' without '>' in: {syntax}"))
                    + 1;
                out.push(Token::Value(&syntax[start + 1..at - 1]));
            }
            b'\'' => {
                at += 2 + syntax[at + 1..]
                    .find('\'')
                    .unwrap_or_else(|| panic!("\"'\" is open in: {syntax}"));
                out.push(Token::Word(&syntax[start + 1..at - 1]));
            }
            b'.' if syntax[at..].starts_with("...") => {
                out.push(Token::Repeat);
                at += 3;
            }
            _ => {
                while at < bytes.len()
                    && !b" \n[](){}|<'".contains(&bytes[at])
                    && !syntax[at..].starts_with("...")
                {
                    at += 1;
                }
                out.push(Token::Word(&syntax[start..at]));
            }
        }
    }
    out
}

struct Parser<'t> {
    syntax: &'static str,
    tokens: Vec<Token>,
    at: usize,
    types: &'t Types,
}

impl Parser<'_> {
    fn check(&self, holds: bool, what: &str) {
        assert!(holds, "{what}, in the declaration: {}", self.syntax);
    }

    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    fn sequence(&mut self) -> Node {
        let mut out = Vec::new();
        while !matches!(self.peek(), None | Some(Token::Close(_) | Token::WideOr)) {
            let previous = match out.last() {
                Some(Node::Literal { word, .. }) => Some(*word),
                _ => None,
            };
            let item = self.tight_alternatives(previous);
            out.push(item);
        }
        if out.len() == 1 { out.remove(0) } else { Node::Seq(out) }
    }

    /// `a|b|<c>`, or one item.
    fn tight_alternatives(&mut self, previous: Option<&'static str>) -> Node {
        let mut items = vec![self.item(previous)];
        while self.peek() == Some(Token::Or) {
            self.at += 1;
            items.push(self.item(previous));
        }
        if items.len() == 1 { items.remove(0) } else { Node::Alt(items) }
    }

    fn item(&mut self, previous: Option<&'static str>) -> Node {
        let token = self.peek();
        self.at += 1;
        let node = match token {
            Some(Token::Word(word)) => {
                self.check(!word.is_empty(), "an empty word");
                Node::Literal { word, flag: false }
            }
            Some(Token::Value(inside)) => self.value(inside, previous),
            Some(Token::Open('[')) => Node::Opt(Box::new(self.until(']'))),
            Some(Token::Open('(')) => self.until(')'),
            Some(Token::Open('{')) => match self.until('}') {
                Node::Seq(items) => Node::Set(members(items)),
                one => Node::Set(vec![one]),
            },
            token => panic!("{token:?} is out of place, in the declaration: {}", self.syntax),
        };
        if self.peek() != Some(Token::Repeat) {
            return node;
        }
        self.at += 1;
        match node {
            Node::Opt(inner) => Node::Opt(Box::new(self.repeat(*inner))),
            node => self.repeat(node),
        }
    }

    fn repeat(&self, inner: Node) -> Node {
        let name = first_name(&inner);
        self.check(name.is_some(), "what is repeated has no name");
        Node::Repeat { name: name.unwrap_or_default(), inner: Box::new(inner) }
    }

    fn until(&mut self, close: char) -> Node {
        let mut branches = vec![self.sequence()];
        while self.peek() == Some(Token::WideOr) {
            self.at += 1;
            branches.push(self.sequence());
        }
        self.check(self.peek() == Some(Token::Close(close)), &format!("'{close}' is missing"));
        self.at += 1;
        if branches.len() == 1 { branches.remove(0) } else { Node::Alt(branches) }
    }

    fn value(&self, inside: &'static str, previous: Option<&'static str>) -> Node {
        let (name, kinds) = inside.split_once(':').unwrap_or((inside, inside));
        let name = if name.is_empty() { previous.unwrap_or_default() } else { name };
        self.check(!name.is_empty(), "a value without a name");
        let several = kinds.contains('|');
        let choices = kinds
            .split('|')
            .map(|kind| match self.types.get(kind) {
                None if quoted_word(kind).is_some() => {
                    Choice::Word(quoted_word(kind).unwrap_or_default())
                }
                Some(found) if !several || all_numbers(&found) => Choice::Type(found),
                _ => {
                    self.check(several, &format!("there is no type '{kind}'"));
                    Choice::Word(kind)
                }
            })
            .collect();
        Node::Value { name, choices }
    }
}

/// `'word'`: nothing but this word.
fn quoted_word(kind: &'static str) -> Option<&'static str> {
    kind.strip_prefix('\'')?.strip_suffix('\'')
}

/// The members of a set: a word and the values behind it are one.
fn members(items: Vec<Node>) -> Vec<Node> {
    let mut out: Vec<Node> = Vec::new();
    for item in items {
        let is_value = match &item {
            Node::Value { .. } => true,
            Node::Repeat { inner, .. } => matches!(**inner, Node::Value { .. }),
            _ => false,
        };
        match out.pop() {
            Some(last @ Node::Literal { .. }) if is_value => out.push(last.then(item)),
            Some(Node::Seq(mut items)) if is_value => {
                items.push(item);
                out.push(Node::Seq(items));
            }
            last => out.extend(last.into_iter().chain([item])),
        }
    }
    out
}

fn first_name(node: &Node) -> Option<&'static str> {
    match node {
        Node::Literal { word, .. } if word.bytes().any(|b| b.is_ascii_alphabetic()) => Some(word),
        Node::Literal { .. } => None,
        Node::Value { name, .. } => Some(name),
        Node::Repeat { name, .. } => Some(name),
        Node::Opt(inner) => first_name(inner),
        Node::Seq(items) | Node::Alt(items) | Node::Set(items) => items.iter().find_map(first_name),
    }
}

fn is_punctuation(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_punctuation())
}

/// A branch that is words only is known by its first word, which becomes a flag.
fn mark_flags(node: &mut Node, is_branch: bool) {
    match node {
        // Punctuation says nothing.
        Node::Literal { word, flag } => *flag = is_branch && !is_punctuation(word),
        Node::Value { .. } => {}
        Node::Seq(items) => {
            let only_words =
                is_branch && items.iter().all(|item| matches!(item, Node::Literal { .. }));
            for (index, item) in items.iter_mut().enumerate() {
                mark_flags(item, only_words && index == 0);
            }
        }
        Node::Opt(inner) => mark_flags(inner, true),
        Node::Repeat { inner, .. } => mark_flags(inner, false),
        Node::Alt(items) | Node::Set(items) => {
            items.iter_mut().for_each(|item| mark_flags(item, true))
        }
    }
}

/// The names that stand beside each other in the arguments. One that stands there twice could be
/// taken for the other, except in alternatives.
fn level_names(node: &Node, syntax: &str) -> Vec<&'static str> {
    match node {
        Node::Literal { word, flag: true } => vec![word],
        Node::Literal { .. } => Vec::new(),
        Node::Value { name, .. } => vec![name],
        Node::Opt(inner) => level_names(inner, syntax),
        Node::Repeat { name, inner } => {
            level_names(inner, syntax);
            vec![name]
        }
        Node::Seq(items) | Node::Set(items) => {
            let mut names: Vec<&str> = Vec::new();
            for name in items.iter().flat_map(|item| level_names(item, syntax)) {
                assert!(
                    !names.contains(&name),
                    "two arguments are called '{name}', in the declaration: {syntax}"
                );
                names.push(name);
            }
            names
        }
        Node::Alt(items) => {
            let mut names: Vec<&str> =
                items.iter().flat_map(|item| level_names(item, syntax)).collect();
            names.sort_unstable();
            names.dedup();
            names
        }
    }
}

impl Node {
    /// The names under which this stands in the arguments, those of its first words first.
    pub(crate) fn recorded_names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        self.walk(&mut |node| match node {
            Node::Literal { word, flag: true } => names.push(*word),
            Node::Value { name, .. } | Node::Repeat { name, .. } => names.push(*name),
            _ => {}
        });
        // A lone word is a flag of its section, which this tree does not say.
        if let Node::Literal { word, .. } = self {
            names.push(word);
        }
        names
    }

    /// The words that the command begins with.
    pub(crate) fn leading_words(&self) -> Vec<&'static str> {
        match self {
            Node::Literal { word, flag: false } => vec![word],
            Node::Seq(items) => {
                let mut out = Vec::new();
                for item in items {
                    match item {
                        Node::Literal { word, flag: false } => out.push(*word),
                        _ => break,
                    }
                }
                out
            }
            _ => Vec::new(),
        }
    }

    /// The tree without its leading words.
    pub(crate) fn without_leading_words(self) -> Node {
        let count = self.leading_words().len();
        match self {
            Node::Seq(items) => Node::Seq(items.into_iter().skip(count).collect()),
            Node::Literal { flag: false, .. } => Node::Seq(Vec::new()),
            other => Node::Seq(vec![other]),
        }
    }

    /// The same, followed by another.
    pub(crate) fn then(self, next: Node) -> Node {
        match self {
            Node::Seq(mut items) => {
                items.push(next);
                Node::Seq(items)
            }
            one => Node::Seq(vec![one, next]),
        }
    }

    /// Can it be left out altogether?
    pub(crate) fn is_nullable(&self) -> bool {
        match self {
            Node::Literal { .. } | Node::Value { .. } => false,
            Node::Opt(_) => true,
            Node::Seq(items) | Node::Set(items) => items.iter().all(Node::is_nullable),
            Node::Alt(items) => items.iter().any(Node::is_nullable),
            Node::Repeat { inner, .. } => inner.is_nullable(),
        }
    }

    /// As a user reads it.
    pub(crate) fn usage(&self) -> String {
        self.render(None)
    }

    fn render(&self, previous: Option<&str>) -> String {
        match self {
            Node::Literal { word, .. } => word.to_string(),
            Node::Value { name, choices } => render_value(name, choices, previous),
            Node::Seq(items) | Node::Set(items) => {
                let mut out: Vec<String> = Vec::new();
                let mut previous = None;
                for item in items {
                    out.push(item.render(previous));
                    previous = match item {
                        Node::Literal { word, .. } => Some(*word),
                        _ => None,
                    };
                }
                out.join(" ")
            }
            Node::Opt(inner) => match &**inner {
                Node::Repeat { inner, .. } => format!("[{}]...", inner.render_inside()),
                inner => format!("[{}]", inner.render_inside()),
            },
            Node::Alt(items)
                if items.iter().all(|i| matches!(i, Node::Literal { .. } | Node::Value { .. })) =>
            {
                let branches: Vec<String> = items.iter().map(|i| i.render(previous)).collect();
                branches.join("|")
            }
            Node::Alt(_) => format!("({})", self.render_inside()),
            Node::Repeat { inner, .. } => match &**inner {
                Node::Value { .. } => format!("{}...", inner.render(previous)),
                inner => format!("({})...", inner.render_inside()),
            },
        }
    }

    /// Inside brackets, alternatives need none of their own.
    fn render_inside(&self) -> String {
        match self {
            Node::Alt(items) => {
                let branches: Vec<String> = items.iter().map(|i| i.render(None)).collect();
                branches.join(" | ")
            }
            other => other.render(None),
        }
    }

    /// Calls `visit` with each node, parents first.
    pub(crate) fn walk<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        visit(self);
        match self {
            Node::Literal { .. } | Node::Value { .. } => {}
            Node::Opt(inner) | Node::Repeat { inner, .. } => inner.walk(visit),
            Node::Seq(items) | Node::Alt(items) | Node::Set(items) => {
                items.iter().for_each(|item| item.walk(visit));
            }
        }
    }
}

fn render_value(name: &str, choices: &[Choice], previous: Option<&str>) -> String {
    let all_words = choices.iter().all(|c| matches!(c, Choice::Word(_)));
    let kinds: Vec<String> = choices
        .iter()
        .map(|choice| match choice {
            Choice::Word(word) => word.to_string(),
            Choice::Type(t) if all_numbers(t) => format!("<{}>", number_label(t)),
            Choice::Type(t) => format!("<{}>", t.name),
        })
        .collect();
    match choices {
        _ if all_words => kinds.join("|"),
        [Choice::Type(_)] if previous != Some(name) => format!("<{name}>"),
        _ => kinds.join("|"),
    }
}

fn all_numbers(t: &ValueType) -> bool {
    matches!(t.reads, Reads::Number { .. })
}

fn number_label(t: &ValueType) -> String {
    match t.reads {
        Reads::Number { min, max } if max < 1 << 31 => format!("{min}-{max}"),
        _ => "number".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(syntax: &'static str) -> String {
        parse(syntax, &Types::default()).usage()
    }

    #[test]
    fn a_declaration_reads_back_as_an_operator_would_write_it() {
        assert_eq!(usage("set x <interface> up|down"), "set x <interface> up|down");
        assert_eq!(
            usage("a {id <:u16> [size <:64-9216>] master|slave}"),
            "a id <0-65535> [size <64-9216>] master|slave"
        );
        assert_eq!(usage("r (via (<ip> | drop) [w <:u8>])..."), "r (via <ip>|drop [w <0-255>])...");
        assert_eq!(usage("new '{' <x:block> '}'"), "new { <x> }");
        assert_eq!(usage("v <vlan:1-4094|any> [<l:0-9>]..."), "v <1-4094>|any [<l>]...");
    }

    #[test]
    #[should_panic(expected = "']' is missing")]
    fn a_faulty_declaration_panics_when_it_is_registered() {
        usage("set [x");
    }

    #[test]
    #[should_panic(expected = "two arguments are called 'interface'")]
    fn two_arguments_of_the_same_name_panic_too() {
        usage("join <interface> <interface>");
    }

    #[test]
    fn lone_words_that_may_be_left_out_are_flags() {
        let root = parse("a b [c] {[d] [e <:u8>]} f|g", &Types::default());
        let mut flags = Vec::new();
        root.walk(&mut |node| {
            if let Node::Literal { word, flag: true } = node {
                flags.push(*word);
            }
        });
        assert_eq!(flags, ["c", "d", "f", "g"]);
    }
}

//! Comments of a document: read beside the keys and items that they stand at, and written there
//! again.

use std::collections::{HashMap, VecDeque};

use super::Position;
use super::parse::{Node, NodeValue};
use super::tree::{Scalar, Tree, natural};
use crate::types;

/// A comment as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comment {
    pub(crate) at: Position,
    /// The text behind `#`.
    pub(crate) text: String,
    /// Something stands before it in its line.
    pub(crate) is_behind: bool,
}

/// The comments of a document, where they belong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comments {
    /// Before all, with an empty line behind.
    pub(crate) head: Vec<String>,
    pub(crate) root: Remarks,
    /// Behind all.
    pub(crate) foot: Vec<String>,
}

/// Comments of a key or an item, and of what is in its value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Remarks {
    pub(crate) above: Vec<String>,
    pub(crate) behind: Option<String>,
    pub(crate) inside: HashMap<String, Remarks>,
}

/// Editors look for their instruction in a comment with these words.
const EDITORS: &str = "yaml-language-server";

impl Comments {
    /// The same, with these comments behind all.
    pub(crate) fn with_more<'t>(mut self, more: impl Iterator<Item = &'t str>) -> Comments {
        self.foot.extend(more.map(str::to_owned));
        self
    }

    /// The comments of a document, each with the key or item that it stands at.
    pub(crate) fn of(root: &Node, comments: &[Comment]) -> Comments {
        let (behind, above): (Vec<&Comment>, Vec<&Comment>) =
            comments.iter().partition(|comment| comment.is_behind);
        let mut finder = Finder {
            above: above.into_iter().collect(),
            behind: behind.into_iter().map(|comment| (comment.at.line, comment)).collect(),
        };
        let head = finder.head(root.at.line);
        let mut remarks = Remarks::default();
        finder.visit(root, &mut remarks);
        let foot = finder.above.iter().map(|comment| comment.text.clone()).collect();
        Comments { head, root: remarks, foot }
    }
}

impl Remarks {
    fn is_empty(&self) -> bool {
        self.above.is_empty() && self.behind.is_none() && self.inside.is_empty()
    }
}

/// Comments that belong to nothing yet.
struct Finder<'c> {
    above: VecDeque<&'c Comment>,
    behind: HashMap<u32, &'c Comment>,
}

impl Finder<'_> {
    /// The comments before all: those that an empty line divides from the first key.
    fn head(&mut self, first: u32) -> Vec<String> {
        let block = self.above.iter().take_while(|comment| comment.at.line < first).count();
        let lines: Vec<u32> =
            self.above.iter().take(block).map(|comment| comment.at.line).collect();
        let is_apart = |at: usize| lines.get(at + 1).copied().unwrap_or(first) > lines[at] + 1;
        let length = (0..block).rev().find(|at| is_apart(*at)).map_or(0, |at| at + 1);
        let is_for_editors =
            self.above.front().is_some_and(|comment| comment.text.contains(EDITORS));
        let length = if is_for_editors { length.max(1) } else { length };
        self.above.drain(..length.min(block)).map(|comment| comment.text.clone()).collect()
    }

    fn visit(&mut self, node: &Node, remarks: &mut Remarks) {
        match &node.value {
            NodeValue::Scalar(..) => {}
            NodeValue::List(items) => {
                for item in items {
                    self.entry(identity(item), item.at.line, item, remarks);
                }
            }
            NodeValue::Map(members) => {
                for (key, value) in members {
                    self.entry(normal(&key.text), key.at.line, value, remarks);
                }
            }
        }
    }

    fn entry(&mut self, name: String, line: u32, value: &Node, remarks: &mut Remarks) {
        let mut own = Remarks::default();
        while self.above.front().is_some_and(|comment| comment.at.line < line) {
            own.above.extend(self.above.pop_front().map(|comment| comment.text.clone()));
        }
        own.behind = self.behind.remove(&line).map(|comment| comment.text.clone());
        self.visit(value, &mut own);
        if !own.is_empty() {
            remarks.inside.insert(name, own);
        }
    }
}

/// The name of an item: what it says.
fn identity(node: &Node) -> String {
    match &node.value {
        NodeValue::Scalar(text, _) => normal(text),
        NodeValue::List(items) => {
            format!("[{}]", items.iter().map(identity).collect::<Vec<_>>().join(", "))
        }
        NodeValue::Map(members) => {
            let member =
                |(key, value): &(super::parse::Key, Node)| (normal(&key.text), identity(value));
            in_braces(members.iter().map(member).collect())
        }
    }
}

/// The same of an item that is written.
pub(crate) fn identity_of(tree: &Tree) -> String {
    match tree {
        Tree::Scalar(Scalar::Text(text) | Scalar::Number(text)) => normal(text),
        Tree::Scalar(Scalar::Truth(truth)) => truth.to_string(),
        Tree::List(items) => {
            format!("[{}]", items.iter().map(identity_of).collect::<Vec<_>>().join(", "))
        }
        Tree::Map(map) => {
            let member =
                |(key, value): (&super::tree::Name, &Tree)| (normal(&key.0), identity_of(value));
            in_braces(map.members.iter().map(member).collect())
        }
    }
}

fn in_braces(mut members: Vec<(String, String)>) -> String {
    members.sort_by(|(one, _), (other, _)| natural(one, other));
    let members: Vec<String> =
        members.into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
    format!("{{{}}}", members.join(", "))
}

/// An address, prefix or MAC address as the router writes it; any other text as it is.
pub(crate) fn normal(text: &str) -> String {
    if let Some(prefix) = types::prefix(text) {
        return prefix.to_string();
    }
    if text.contains(':') {
        if let Ok(address) = text.parse::<std::net::Ipv6Addr>() {
            return address.to_string();
        }
        if types::mac(text).is_some() {
            return text.to_ascii_lowercase();
        }
    }
    text.to_owned()
}

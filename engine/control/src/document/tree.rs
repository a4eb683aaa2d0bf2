//! A document as a tree: maps in the natural order of their keys, lists, scalars.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Map as JsonMap, Number, Value as Json};

/// A node of a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Scalar(Scalar),
    List(Vec<Tree>),
    Map(Map),
}

/// A scalar: its text, and what it is in JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Text(String),
    Number(String),
    Truth(bool),
}

/// Keys with their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Map {
    pub(crate) members: BTreeMap<Name, Tree>,
    /// Something stands below it that has a place of its own: it is written line by line.
    pub(crate) is_section: bool,
}

/// A key. Numbers in it are compared as numbers: `e2` comes before `e10`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name(pub(crate) String);

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        natural(&self.0, &other.0)
    }
}

/// The order in which people count.
pub(crate) fn natural(one: &str, other: &str) -> Ordering {
    let (mut a, mut b) = (one.as_bytes(), other.as_bytes());
    while let (Some(first), Some(second)) = (a.first(), b.first()) {
        if !first.is_ascii_digit() || !second.is_ascii_digit() {
            match first.cmp(second) {
                Ordering::Equal => (a, b) = (&a[1..], &b[1..]),
                order => return order,
            }
            continue;
        }
        let (left, rest_of_a) = digits(a);
        let (right, rest_of_b) = digits(b);
        match left.len().cmp(&right.len()).then_with(|| left.cmp(right)) {
            Ordering::Equal => (a, b) = (rest_of_a, rest_of_b),
            order => return order,
        }
    }
    // What differs in zeros before numbers alone differs in the end.
    a.len().cmp(&b.len()).then_with(|| one.cmp(other))
}

/// The digits that a text begins with, without zeros before them, and what follows.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let start = text[..end].iter().position(|byte| *byte != b'0').unwrap_or(end);
    (&text[start..end], &text[end..])
}

impl Tree {
    pub(crate) fn text(text: impl Into<String>) -> Tree {
        Tree::Scalar(Scalar::Text(text.into()))
    }

    /// As JSON, in the same order.
    pub(crate) fn to_json(&self) -> Json {
        match self {
            Tree::Scalar(Scalar::Text(text)) => Json::String(text.clone()),
            Tree::Scalar(Scalar::Truth(truth)) => Json::Bool(*truth),
            Tree::Scalar(Scalar::Number(text)) => match text.parse::<Number>() {
                Ok(number) => Json::Number(number),
                Err(_) => Json::String(text.clone()),
            },
            Tree::List(items) => Json::Array(items.iter().map(Tree::to_json).collect()),
            Tree::Map(map) => {
                let members = map.members.iter();
                let members = members.map(|(key, value)| (key.0.clone(), value.to_json()));
                Json::Object(members.collect::<JsonMap<_, _>>())
            }
        }
    }

    /// Put `value` where these keys lead to; as an item of the list there when `is_item`.
    ///
    /// # Errors
    /// Something else stands there: the keys of that place.
    pub(crate) fn put(
        &mut self,
        keys: &[String],
        value: Tree,
        is_item: bool,
    ) -> Result<(), String> {
        let place = || keys.join(".");
        let mut here = self;
        let mut left = keys.iter();
        while let Some(key) = left.next() {
            let Tree::Map(map) = here else { return Err(place()) };
            map.is_section = true;
            let otherwise = match left.as_slice() {
                [] if is_item => Tree::List(Vec::new()),
                [] => {
                    return match map.members.get_mut(&Name(key.clone())) {
                        None => {
                            map.members.insert(Name(key.clone()), value);
                            Ok(())
                        }
                        Some(there) => there.merge(value).map_err(|()| place()),
                    };
                }
                _ => Tree::Map(Map::default()),
            };
            here = map.members.entry(Name(key.clone())).or_insert(otherwise);
        }
        match here {
            Tree::List(items) => {
                items.push(value);
                Ok(())
            }
            _ => Err(place()),
        }
    }

    /// Add what another line says of the same place.
    fn merge(&mut self, other: Tree) -> Result<(), ()> {
        match (self, other) {
            (Tree::Map(map), Tree::Map(other)) => {
                for (key, value) in other.members {
                    match map.members.get_mut(&key) {
                        None => drop(map.members.insert(key, value)),
                        Some(there) => there.merge(value)?,
                    }
                }
                Ok(())
            }
            (Tree::List(items), Tree::List(others)) => {
                items.extend(others);
                Ok(())
            }
            (one, other) if *one == other => Ok(()),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_in_which_people_count() {
        let mut names = ["e10", "e2", "e02", "e2.10", "e2.9", "e", "10.0.0.0/8", "9.0.0.0/8"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["9.0.0.0/8", "10.0.0.0/8", "e", "e02", "e2", "e2.9", "e2.10", "e10"]);
    }

    #[test]
    fn what_says_something_else_of_a_place_is_refused() {
        let mut tree = Tree::Map(Map::default());
        let keys: Vec<String> = ["interfaces", "e0", "mtu"].map(str::to_owned).into();
        tree.put(&keys, Tree::text("a"), false).unwrap();
        tree.put(&keys, Tree::text("a"), false).unwrap();
        assert_eq!(tree.put(&keys, Tree::text("b"), false), Err("interfaces.e0.mtu".to_owned()));
        tree.put(&["list".to_owned()], Tree::text("b"), true).unwrap();
        tree.put(&["list".to_owned()], Tree::text("b"), true).unwrap();
        let json = serde_json::json!({"interfaces": {"e0": {"mtu": "a"}}, "list": ["b", "b"]});
        assert_eq!(tree.to_json(), json);
    }
}

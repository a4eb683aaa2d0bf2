//! From a document to the commands that say the same. Every mistake is told, with its place.

use std::collections::HashMap;

use super::notation::{Entry, Key, Member};
use super::parse::{self, Node, NodeValue, mistake};
use super::said::{self, Given, Said};
use super::shape::{EntryId, Shape};
use super::sorting::sorted;
use super::values::{KEYS_LISTED_MAX, Taken, bind, value};
use super::write::Everything;
use super::{INTERFACES, NAME, Position, SUB_INTERFACES};
use crate::changes::Mistake;
use crate::error::{Refusal, either, nearest, printable};
use crate::grammar::Commands;
use crate::names::Names;
use crate::running::Phase;

/// A command that a document says.
pub(crate) struct Found {
    pub(crate) line: String,
    pub(crate) at: Position,
    phase: Phase,
    id: EntryId,
    /// Interfaces that it names, and where.
    interfaces: Vec<(String, Position)>,
    /// The document says `false`: it may be what is there without a command.
    is_off: bool,
}

/// A key on the way to a value.
#[derive(Clone, Debug)]
struct Step {
    text: String,
    at: Position,
    /// The name that an interface of this key has, when it is not the key.
    named: Option<String>,
}

type Path = Vec<Step>;

/// Reads a document.
pub(super) struct Reading<'c, S> {
    commands: &'c Commands<S>,
    root: &'c Shape,
    mistakes: Vec<Mistake>,
    found: Vec<Found>,
}

impl<'c, S: Names + 'static> Reading<'c, S> {
    pub(super) fn new(commands: &'c Commands<S>, root: &'c Shape) -> Reading<'c, S> {
        Reading { commands, root, mistakes: Vec::new(), found: Vec::new() }
    }

    /// Read it all.
    ///
    /// # Errors
    /// All mistakes of the document.
    pub(super) fn read(
        mut self,
        root: &Node,
        names: &dyn Names,
    ) -> Result<Vec<Found>, Vec<Mistake>> {
        self.walk(self.root, Path::new(), root);
        let found = std::mem::take(&mut self.found);
        let found = self.in_order(found, names);
        if self.mistakes.is_empty() {
            return Ok(found);
        }
        let mut mistakes = self.mistakes;
        mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        mistakes.dedup();
        Err(mistakes)
    }

    fn wrong(&mut self, at: Position, refusal: Refusal) {
        self.mistakes.push(mistake(at, refusal));
    }

    /// Read what stands at a place.
    fn walk(&mut self, shape: &Shape, path: Path, node: &Node) {
        let takes_keys = !shape.words.is_empty()
            || shape.any.is_some()
            || shape.values.iter().any(|id| self.entry(*id).value.is_map());
        match &node.value {
            NodeValue::Map(members) if takes_keys => self.section(shape, path, node, members),
            _ if node.is_null() && takes_keys => self.section(shape, path, node, &[]),
            NodeValue::List(items) if !shape.items.is_empty() => {
                for item in items {
                    self.one(&shape.items, &path, item);
                }
            }
            _ if node.is_null() && !shape.items.is_empty() => {}
            _ if !shape.values.is_empty() => self.one(&shape.values, &path, node),
            _ if !shape.items.is_empty() => self.one(&shape.items, &path, node),
            _ => {
                let refusal = Refusal::new(format!("keys must stand here, not {}", node.kind()));
                let keys = self.keys_of(&[shape]);
                self.wrong(node.at, refusal.remedy(listed(&keys, &shape.patterns)));
            }
        }
    }

    fn entry(&self, id: EntryId) -> &'c Entry {
        &self.commands.commands[id.command].entries[id.entry].entry
    }

    /// Read keys.
    fn section(
        &mut self,
        shape: &Shape,
        mut path: Path,
        node: &Node,
        members: &[(parse::Key, Node)],
    ) {
        let is_interface = path.len() == 2 && path[0].text == INTERFACES;
        let is_sub =
            path.len() == 4 && path[0].text == INTERFACES && path[2].text == SUB_INTERFACES;
        let mut places: Vec<(&Shape, Path)> = Vec::new();
        let named = members.iter().find_map(|(key, value)| match &value.value {
            NodeValue::Scalar(name, _) if key.text == NAME => Some(name.clone()),
            _ => None,
        });
        if is_interface && let Some(step) = path.last_mut() {
            step.named = named;
        } else if is_sub && let Some(interface) = self.root.interface() {
            let parent = path[1].named.as_ref().unwrap_or(&path[1].text);
            let own = format!("{parent}.{}", path[3].text);
            let step = Step { text: own, at: path[3].at, named };
            places.push((interface, vec![path[0].clone(), step]));
        }
        places.insert(0, (shape, path));
        let mut bags: Vec<Vec<(&parse::Key, &Node)>> = vec![Vec::new(); places.len()];
        let mut seen: HashMap<&str, Position> = HashMap::new();
        for (key, value) in members {
            if let Some(first) = seen.insert(&key.text, key.at) {
                let what =
                    format!("'{}' stands in line {} already", printable(&key.text), first.line);
                self.wrong(key.at, Refusal::new(what).remedy("leave one of them out"));
                continue;
            }
            self.key(&places, &mut bags, key, value);
        }
        for ((shape, path), bag) in places.iter().zip(bags) {
            self.maps(shape, path, node.at, &bag);
        }
    }

    /// Read a key and what stands at it, or put it into the bag of those whose entries it belongs
    /// to.
    fn key<'n>(
        &mut self,
        places: &[(&Shape, Path)],
        bags: &mut [Vec<(&'n parse::Key, &'n Node)>],
        key: &'n parse::Key,
        value: &'n Node,
    ) {
        let step = Step { text: key.text.clone(), at: key.at, named: None };
        for (at, (shape, path)) in places.iter().enumerate() {
            let below = || path.iter().cloned().chain([step.clone()]).collect::<Path>();
            let member = self.member(shape, &key.text);
            let child = shape.words.get(key.text.as_str());
            match (member, child) {
                (Some(member), Some(child)) if member.is_first => {
                    bags[at].push((key, value));
                    if let NodeValue::List(items) = &value.value {
                        for item in items.iter().skip(1) {
                            self.one(&child.items, &below(), item);
                        }
                    }
                    return;
                }
                (Some(_), _) => return bags[at].push((key, value)),
                (None, Some(child)) => return self.walk(child, below(), value),
                (None, None) => {
                    if let Some(any) = &shape.any {
                        return self.walk(any, below(), value);
                    }
                }
            }
        }
        let shapes: Vec<&Shape> = places.iter().map(|(shape, _)| *shape).collect();
        let keys = self.keys_of(&shapes);
        self.wrong(key.at, unknown(&key.text, &keys));
    }

    /// The member of this key of a map that can stand here.
    fn member(&self, shape: &Shape, key: &str) -> Option<&'c Member> {
        let members = shape.values.iter().flat_map(|id| self.entry(*id).value.members());
        members.into_iter().find(|member| member.key == key)
    }

    /// All keys that can stand here.
    fn keys_of(&self, shapes: &[&Shape]) -> Vec<&'static str> {
        let mut keys: Vec<&'static str> = Vec::new();
        for shape in shapes {
            keys.extend(shape.words.keys());
            let members = shape.values.iter().flat_map(|id| self.entry(*id).value.members());
            keys.extend(members.map(|member| member.key));
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Read the keys that entries take, which have a map here.
    fn maps(&mut self, shape: &Shape, path: &Path, at: Position, bag: &[(&parse::Key, &Node)]) {
        let maps: Vec<EntryId> =
            shape.values.iter().copied().filter(|id| self.entry(*id).value.is_map()).collect();
        if maps.is_empty() {
            return;
        }
        let members: Vec<(parse::Key, Node)> =
            bag.iter().map(|(key, node)| ((*key).clone(), (*node).clone())).collect();
        let at = bag.first().map_or(path.last().map_or(at, |step| step.at), |_| at);
        let node = Node { at, value: NodeValue::Map(members) };
        self.one(&maps, path, &node);
    }

    /// Read a value by the first of these entries that takes it.
    fn one(&mut self, entries: &[EntryId], path: &Path, node: &Node) {
        let mut least: Option<Vec<Mistake>> = None;
        for id in entries {
            let mut taken = Taken::default();
            let found = self.attempt(*id, path, node, &mut taken);
            if taken.mistakes.is_empty() {
                return self.found.extend(found);
            }
            if least.as_ref().is_none_or(|least| taken.mistakes.len() < least.len()) {
                least = Some(taken.mistakes);
            }
        }
        self.mistakes.extend(least.unwrap_or_default());
    }

    fn attempt(&self, id: EntryId, path: &Path, node: &Node, taken: &mut Taken) -> Option<Found> {
        let registered = &self.commands.commands[id.command];
        let placed = &registered.entries[id.entry];
        let (entry, arguments) = (&placed.entry, registered.arguments.as_slice());
        let mut said = Said::new();
        let makes_interface =
            registered.inverse.makes.iter().any(|object| object.begins_with("interface "));
        let is_below = entry.keys.get(2) == Some(&Key::Word(SUB_INTERFACES));
        for (at, (key, step)) in entry.keys.iter().zip(path).enumerate() {
            let is_own = at == 1 && makes_interface && !is_below;
            let name = step.named.as_ref().filter(|_| !is_own).unwrap_or(&step.text);
            bind(key, name, step.at, arguments, &mut said, taken);
        }
        for (name, word) in &entry.with {
            said.push((name, word.map_or(Given::Flag, |word| Given::Text(word.to_owned()))));
        }
        value(&entry.value, node, arguments, &mut said, taken);
        if taken.is_nothing || !taken.mistakes.is_empty() {
            return None;
        }
        let at = match path.last() {
            Some(step) if !entry.is_item => step.at,
            _ => node.at,
        };
        let args = said::to_json(&said, &registered.blocks);
        let form = &self.commands.forms[registered.main_form];
        match self.commands.line_of_arguments(form, &args) {
            Ok(line) => Some(Found {
                line,
                at,
                phase: placed.phase,
                id,
                interfaces: std::mem::take(&mut taken.interfaces),
                is_off: taken.is_off && !entry.value.is_map(),
            }),
            Err(refusal) => {
                taken.mistakes.push(mistake(at, refusal));
                None
            }
        }
    }

    /// The commands in an order in which each finds what it needs.
    fn in_order(&mut self, mut found: Vec<Found>, names: &dyn Names) -> Vec<Found> {
        found.sort_by_key(|found| (found.phase, found.id.command, found.id.entry));
        let mut kept = Vec::with_capacity(found.len());
        let mut objects = Vec::with_capacity(found.len());
        for one in found {
            match self.commands.objects_of(&Everything, &one.line) {
                Ok(about) if about.says_nothing => {}
                Ok(about) => {
                    kept.push(one);
                    objects.push(about);
                }
                // What `false` says is so without a command.
                Err(_) if one.is_off => {}
                Err(refusal) => self.wrong(one.at, refusal),
            }
        }
        let mut makers: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, about) in objects.iter().enumerate() {
            for object in &about.makes {
                makers.entry(object).or_default().push(at);
            }
        }
        let mut missing = Vec::new();
        for one in &kept {
            for (name, at) in &one.interfaces {
                let is_made = makers.contains_key(format!("interface {name}").as_str());
                if !is_made && names.find("interface", name).is_none() {
                    missing.push((name.clone(), *at));
                }
            }
        }
        let made: Vec<&str> =
            makers.keys().filter_map(|object| object.strip_prefix("interface ")).collect();
        let listed = names.list("interface");
        for (name, at) in missing {
            let known = made.iter().copied().chain(listed.iter().map(String::as_str));
            let near = nearest(&name, known);
            let remedy = match near.is_empty() {
                true => "no line makes it, and the router does not have it".to_owned(),
                false => format!("did you mean {}?", either(&near)),
            };
            let what = format!("an interface that is not there: '{}'", printable(&name));
            self.mistakes.push(mistake(at, Refusal::new(what).remedy(remedy)));
        }
        let order = sorted(&objects, &makers);
        let mut kept: Vec<Option<Found>> = kept.into_iter().map(Some).collect();
        order.into_iter().filter_map(|at| kept[at].take()).collect()
    }
}

pub(super) fn unknown(key: &str, keys: &[&'static str]) -> Refusal {
    let near = nearest(key, keys.iter().copied());
    let remedy = match near.is_empty() {
        true => listed(keys, &[]),
        false => format!("did you mean {}?", either(&near)),
    };
    Refusal::new(format!("there is no '{}' here", printable(key))).remedy(remedy)
}

fn listed(keys: &[&'static str], patterns: &[String]) -> String {
    let all: Vec<&str> = keys.iter().copied().chain(patterns.iter().map(String::as_str)).collect();
    match all.len() {
        0 => "nothing can stand here".to_owned(),
        count if count <= KEYS_LISTED_MAX => format!("there can be {}", all.join(", ")),
        count => format!(
            "there can be {} and {} more",
            all[..KEYS_LISTED_MAX].join(", "),
            count - KEYS_LISTED_MAX
        ),
    }
}

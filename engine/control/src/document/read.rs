//! From a document to the commands that say the same. Every mistake is told, with its place.

use std::collections::{HashMap, HashSet};

use super::notation::{Argument, Entry, Key, KeyPart, Kind, Member, Value};
use super::parse::{self, Node, NodeValue, mistake};
use super::said::{self, Given, Said};
use super::shape::{EntryId, Shape};
use super::write::Everything;
use super::{INTERFACES, NAME, Position, SUB_INTERFACES};
use crate::changes::Mistake;
use crate::error::{Refusal, either, nearest, printable};
use crate::grammar::Commands;
use crate::names::Names;
use crate::running::Phase;
use crate::syntax::Choice;
use crate::types::Reads;

/// A message lists at most so many keys.
const KEYS_LISTED_MAX: usize = 12;

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

/// What an entry took from a document, under way.
#[derive(Default)]
struct Taken {
    interfaces: Vec<(String, Position)>,
    mistakes: Vec<Mistake>,
    is_off: bool,
    /// It says that there is nothing to say.
    is_nothing: bool,
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

/// What a line makes and needs.
pub(crate) struct Objects {
    pub(crate) command: usize,
    pub(crate) makes: Vec<String>,
    pub(crate) stands_on: Vec<String>,
    /// It says what is so without it.
    pub(crate) says_nothing: bool,
}

/// Places of lines: each behind those that make what it needs, otherwise as they are.
fn sorted(objects: &[Objects], makers: &HashMap<&str, Vec<usize>>) -> Vec<usize> {
    let mut order = Vec::with_capacity(objects.len());
    let mut begun: HashSet<usize> = HashSet::new();
    // Lines under way, each with the lines before it that are left.
    let mut stack: Vec<(usize, Vec<usize>)> = Vec::new();
    let before = |at: usize| -> Vec<usize> {
        let needs = objects[at].stands_on.iter().filter_map(|object| makers.get(object.as_str()));
        let mut needs: Vec<usize> = needs
            .flatten()
            .copied()
            .filter(|maker| objects[*maker].command != objects[at].command)
            .collect();
        needs.sort_unstable_by(|one, other| other.cmp(one));
        needs
    };
    for at in 0..objects.len() {
        if begun.insert(at) {
            stack.push((at, before(at)));
        }
        while let Some((line, left)) = stack.last_mut() {
            match left.pop() {
                Some(next) if begun.insert(next) => stack.push((next, before(next))),
                Some(_) => {}
                None => {
                    order.push(*line);
                    stack.pop();
                }
            }
        }
    }
    order
}

/// The arguments that a key says.
fn bind(
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
                let remedy = format!("it stands under {}", key.shown());
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
fn value(wanted: &Value, node: &Node, arguments: &[Argument], said: &mut Said, taken: &mut Taken) {
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

fn unknown(key: &str, keys: &[&'static str]) -> Refusal {
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

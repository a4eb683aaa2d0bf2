//! The smallest list of commands that leads from one configuration to another.
//!
//! Each line of a configuration makes objects (an interface, a table) and stands on others, as its
//! command declares. A line stays when it is in both configurations and stands on the same lines in
//! both; so what stood on an interface that is made anew is made anew with it. Lines that do not
//! stay are taken back in the reverse of their order, and then new lines are executed in theirs: a
//! configuration is written in an order in which it can be executed, and undone in the reverse.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use crate::args::Slot;
use crate::document::Objects;
use crate::error::Refusal;
use crate::grammar::{Commands, FREES, closed};
use crate::inverse::Given;
use crate::names::Names;
use crate::value::Value;
use crate::words::{self, Word};

/// A line of a configuration that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1; 0 where it is a line of the running configuration.
    pub line: u32,
    /// The column, from 1; 0 where the mistake is the line's.
    pub column: u32,
    /// Why, at which word, and what would be right.
    pub refusal: Refusal,
}

/// What leads from one configuration to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Lines that are there no more, in their order.
    pub removed: Vec<String>,
    /// Lines that are new, in their order.
    pub added: Vec<String>,
    /// Commands to execute, in this order.
    pub commands: Vec<Change>,
}

/// A command that changes a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The command.
    pub command: String,
    /// The line of the wanted configuration that it is, from 1; nothing when it takes one back.
    pub line: Option<u32>,
}

impl Changes {
    /// Is there nothing to do?
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }
}

/// A line, read.
struct Line {
    number: u32,
    /// The command, by its place.
    command: usize,
    text: String,
    /// The command and its arguments: the same for lines that say the same.
    meaning: String,
    makes: Vec<String>,
    stands_on: Vec<String>,
    /// The same for lines of which a later one replaces an earlier one.
    key: Option<String>,
    goes_with: Option<String>,
    is_limit: bool,
    /// Takes it back.
    undo: Option<String>,
    /// Takes back what a line that replaces it does not say and leaves as it is.
    reset: Option<String>,
    /// Why nothing takes it back.
    stays: Option<&'static str>,
    /// The names of its arguments.
    says: Vec<&'static str>,
}

/// Interfaces that lines make, besides those that exist.
struct Known<'a> {
    names: &'a dyn Names,
    made: RefCell<HashSet<String>>,
}

impl Names for Known<'_> {
    fn find(&self, kind: &str, name: &str) -> Option<u32> {
        let is_made = kind == INTERFACE && self.made.borrow().contains(name);
        self.names.find(kind, name).or(is_made.then_some(u32::MAX))
    }
}

const INTERFACE: &str = "interface";

/// Stands behind an argument; no line has it.
const ARGUMENT_END: &str = "\u{1f}";

/// The word before what is taken back.
const NO: &str = "no";

/// The command that does nothing.
const COMMENT: &str = "comment";

impl<S: Names + 'static> Commands<S> {
    /// What leads from the configuration `running` to `wanted`; both are commands, line by line.
    ///
    /// # Errors
    /// Every line of `wanted` that is no command of a configuration, or contradicts another. A line
    /// of `running` that is none is a fault of ours, and stands there, too.
    pub fn changes_between(
        &self,
        names: &dyn Names,
        running: &str,
        wanted: &str,
    ) -> Result<Changes, Vec<Mistake>> {
        let (before, mistakes) = self.lines(names, running);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let (after, mistakes) = self.lines(names, wanted);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let plan = Plan::new(&before, &after);
        let lost = plan.gone().filter_map(|line| line.stays.map(|why| (line, why)));
        let lost: Vec<Mistake> = lost
            .map(|(line, why)| Mistake {
                line: 0,
                column: 0,
                refusal: Refusal::new(format!("`{}` cannot be taken back: {why}", line.text)),
            })
            .collect();
        match lost.is_empty() {
            true => Ok(plan.changes()),
            false => Err(lost),
        }
    }

    /// What is wrong with a configuration, without executing it.
    pub fn mistakes_in(&self, names: &dyn Names, text: &str) -> Vec<Mistake> {
        self.lines(names, text).1
    }

    /// What a line of a configuration makes and needs.
    ///
    /// # Errors
    /// It is no command of a configuration.
    pub(crate) fn objects_of(&self, names: &dyn Names, text: &str) -> Result<Objects, Refusal> {
        let known = Known { names, made: RefCell::default() };
        let mut words = Vec::new();
        closed(words::split(text, &mut words)?, words.len())?;
        let nothing = || Refusal::new("a comment is no part of a configuration");
        let line = self.line(&known, text, &words, 0)?.ok_or_else(nothing)?;
        let says_nothing = line.undo.as_ref() == Some(&line.text);
        let Line { command, makes, stands_on, .. } = line;
        Ok(Objects { command, makes, stands_on, says_nothing })
    }

    /// Read each line. What is no command of a configuration is a mistake.
    fn lines(&self, names: &dyn Names, text: &str) -> (Vec<Line>, Vec<Mistake>) {
        let known = Known { names, made: RefCell::default() };
        let (mut lines, mut mistakes) = (Vec::new(), Vec::new());
        let (mut at, mut number, mut words) = (0, 1, Vec::new());
        while let Some((length, end)) = words::logical_line(&text[at..], &mut words, true) {
            let line = &text[at..at + length];
            let read = end
                .and_then(|end| closed(end, words.len()))
                .and_then(|()| self.line(&known, line, &words, number));
            match read {
                Ok(Some(line)) => {
                    let made = line.makes.iter().filter_map(|object| {
                        object.strip_prefix(INTERFACE)?.strip_prefix(' ').map(str::to_owned)
                    });
                    known.made.borrow_mut().extend(made);
                    lines.push(line);
                }
                Ok(None) => {}
                Err(refusal) => mistakes.push(Mistake { line: number, column: 0, refusal }),
            }
            number += line.bytes().filter(|byte| *byte == b'\n').count() as u32;
            at += length;
        }
        let lines = merged(lines, &mut mistakes);
        mistakes.sort_by_key(|mistake| mistake.line);
        (lines, mistakes)
    }

    /// Read a line; nothing when it is empty, or a comment.
    fn line(
        &self,
        known: &Known<'_>,
        text: &str,
        words: &[Word],
        number: u32,
    ) -> Result<Option<Line>, Refusal> {
        if words.is_empty() {
            return Ok(None);
        }
        let mut slots = Vec::new();
        let form = self.matcher.parse(known, text, words, &mut slots)? as usize;
        let (names, registered) = (&self.matcher.automata[form].names, self.registered(form));
        let (inverse, command) = (&registered.inverse, &self.forms[form].name);
        if command == COMMENT {
            return Ok(None);
        }
        if !inverse.is_declared() {
            return Err(Refusal::new(format!("'{command}' is no part of a configuration"))
                .remedy("a configuration says what there is to be"));
        }
        let given = Given { names, slots: &slots, line: text, words };
        let fill = |template: &crate::inverse::Template| template.fill(&given);
        let undo = inverse.undo.iter().find_map(fill);
        if let Some(word) = self.takes_back(known, names, &slots, undo.as_deref()) {
            return Err(Refusal::new(format!(
                "'{command} … {word}' is no part of a configuration"
            ))
            .remedy("leave out what is not to be there"));
        }
        let makes: Vec<String> = inverse.makes.iter().filter_map(fill).collect();
        let is_named = (undo.is_some() || inverse.undo.is_empty())
            && (!makes.is_empty() || inverse.makes.is_empty());
        if !is_named {
            let templates = inverse.makes.iter().chain(&inverse.undo);
            let missing = templates.filter_map(|template| template.missing(&given)).next();
            return Err(Refusal::new(format!("'{command}' does not say which it is"))
                .remedy(format!("say its {}", missing.unwrap_or("name"))));
        }
        let is_interface = |slot: &Slot<'_>| registered.interfaces.contains(&slot.name_in(names));
        let interfaces =
            slots.iter().filter(|slot| is_interface(slot)).filter_map(|slot| match slot.value {
                Value::Text(name) => Some(format!("{INTERFACE} {name}")),
                _ => None,
            });
        let command = self.forms[form].command;
        let key = inverse.replaces.map(|of| {
            let values = of.iter().map(|name| given.text(name).unwrap_or_default());
            format!("{command} key {}", values.collect::<Vec<_>>().join(ARGUMENT_END))
        });
        Ok(Some(Line {
            number,
            command,
            text: words_of(text, words),
            meaning: format!(
                "{command}{ARGUMENT_END}{}",
                meaning(names, &slots, inverse.usual, &registered.unordered)
            ),
            makes,
            stands_on: inverse.stands_on.iter().filter_map(fill).chain(interfaces).collect(),
            key,
            goes_with: inverse.goes_with.as_ref().and_then(fill),
            is_limit: inverse.is_limit,
            reset: match inverse.amends {
                true => inverse.reset.as_ref().and_then(fill).or_else(|| undo.clone()),
                false => None,
            },
            undo,
            stays: inverse.stays,
            says: slots.iter().map(|slot| slot.name_in(names)).collect(),
        }))
    }

    /// The word by which a line takes something back itself: it stands in its own inverse, too.
    fn takes_back(
        &self,
        known: &Known<'_>,
        names: &[&'static str],
        slots: &[Slot<'_>],
        undo: Option<&str>,
    ) -> Option<&'static str> {
        let said = slots.iter().find_map(|slot| match slot.value {
            Value::Word(word) if word == NO || FREES.contains(&word) => {
                Some((slot.name_in(names), word))
            }
            _ => None,
        });
        let (name, word) = said?;
        let (mut words, mut slots) = (Vec::new(), Vec::new());
        let form = self.parse_words(known, undo?, &mut words, &mut slots).ok()?;
        let names = &self.matcher.automata[form].names;
        let is_same =
            |slot: &Slot<'_>| slot.name_in(names) == name && slot.value == Value::Word(word);
        slots.iter().any(is_same).then_some(word)
    }
}

/// Put what is said twice in one line: where it is said first, with the words of the line that says
/// more. Lines of which only the last would hold are mistakes.
fn merged(lines: Vec<Line>, mistakes: &mut Vec<Mistake>) -> Vec<Line> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut out: Vec<Line> = Vec::with_capacity(lines.len());
    for line in lines {
        let place = places.entry(line.key.clone().unwrap_or_else(|| line.meaning.clone()));
        let at = match place {
            Entry::Vacant(entry) => {
                entry.insert(out.len());
                out.push(line);
                continue;
            }
            Entry::Occupied(entry) => *entry.get(),
        };
        let first = &mut out[at];
        let says = |line: &Line| -> HashSet<String> {
            line.meaning.split(ARGUMENT_END).map(str::to_owned).collect()
        };
        let (before, now) = (says(first), says(&line));
        if before.is_subset(&now) {
            *first = line;
        } else if !now.is_subset(&before) {
            let what = format!("line {} says something else of the same", first.number);
            let refusal = Refusal::new(what).remedy("leave one of them out");
            mistakes.push(Mistake { line: line.number, column: 0, refusal });
        }
    }
    out
}

/// The words of a line with one space between them, and without its comment.
fn words_of(line: &str, words: &[Word]) -> String {
    let mut out = String::with_capacity(line.len());
    for word in words {
        if !out.is_empty() && word.text(line) != "," {
            out.push(' ');
        }
        match word.quoted {
            true => _ = write!(out, "\"{}\"", word.text(line)),
            false => out.push_str(word.text(line)),
        }
    }
    out
}

/// The arguments in the order of their names; those of a group stay together, and repetitions stay
/// in their order, unless it means nothing.
fn meaning(
    names: &[&'static str],
    slots: &[Slot<'_>],
    usual: &[(&str, &str)],
    unordered: &[&str],
) -> String {
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut at = 0;
    while let Some(slot) = slots.get(at) {
        at += 1;
        let text = match slot.value {
            Value::Group(length) => {
                let inside = slots.get(at..at + length as usize).unwrap_or_default();
                at += length as usize;
                format!("({})", meaning(names, inside, &[], &[]))
            }
            value => value_text(value),
        };
        let name = slot.name_in(names);
        if !usual.iter().any(|(of, word)| *of == name && *word == text) {
            found.push((name, text));
        }
    }
    found.sort_by(|(name, text), (other, others)| match name.cmp(other) {
        Ordering::Equal if unordered.contains(name) => text.cmp(others),
        order => order,
    });
    let texts = found.iter().map(|(name, text)| format!("{name}={text}"));
    texts.collect::<Vec<_>>().join(ARGUMENT_END)
}

fn value_text(value: Value<'_>) -> String {
    match value {
        Value::Word(word) => word.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Ip4(address) => address.to_string(),
        Value::Ip6(address) => address.to_string(),
        Value::Prefix(prefix) => prefix.to_string(),
        Value::Mac(mac) => format!("{mac:02x?}"),
        Value::Range(low, high) => format!("{low}-{high}"),
        Value::Text(text) if text.starts_with('{') => {
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        }
        Value::Text(text) => format!("{text:?}"),
        Value::Group(_) => String::new(),
    }
}

/// Two configurations side by side.
struct Plan<'a> {
    before: &'a [Line],
    after: &'a [Line],
    /// Numbers of the lines, by what they say and what they stand on: the same line in both
    /// configurations has one number.
    ids_before: Vec<u32>,
    ids_after: Vec<u32>,
    /// The same of their keys.
    keys_before: Vec<Option<u32>>,
    keys_after: Vec<Option<u32>>,
}

impl<'a> Plan<'a> {
    fn new(before: &'a [Line], after: &'a [Line]) -> Plan<'a> {
        // Objects that are made anew although the lines that make them are in both.
        let mut remade: HashSet<&str> = HashSet::new();
        loop {
            let plan = Plan::with(before, after, &remade);
            let more = plan.to_remake(&remade);
            if more.is_empty() {
                return plan;
            }
            remade.extend(more);
        }
    }

    fn with(before: &'a [Line], after: &'a [Line], remade: &HashSet<&str>) -> Plan<'a> {
        let mut numbers = Numbers::default();
        let (ids_before, keys_before) = numbers.of(before, remade, 1);
        let (ids_after, keys_after) = numbers.of(after, remade, 2);
        Plan { before, after, ids_before, ids_after, keys_before, keys_after }
    }

    /// Objects that lines go with which do not stay, and that do stay themselves.
    fn to_remake(&self, remade: &HashSet<&str>) -> Vec<&'a str> {
        let stays: HashSet<u32> = self.ids_after.iter().copied().collect();
        let objects: HashSet<&str> =
            self.gone().filter_map(|line| line.goes_with.as_deref()).collect();
        let made = self.before.iter().zip(&self.ids_before);
        made.filter(|(_, id)| stays.contains(id))
            .flat_map(|(line, _)| &line.makes)
            .map(String::as_str)
            .filter(|object| objects.contains(object) && !remade.contains(object))
            .collect()
    }

    /// For each line of `before` the new line of `after` that replaces it: it needs no inverse.
    fn replaced(&self) -> Vec<Option<&'a Line>> {
        let stays: HashSet<u32> = self.ids_before.iter().copied().collect();
        let new = self.after.iter().zip(&self.ids_after).zip(&self.keys_after);
        let new = new.filter(|((_, id), _)| !stays.contains(id));
        let keys: HashMap<u32, &Line> =
            new.filter_map(|((line, _), key)| Some(((*key)?, line))).collect();
        let by = |key: &Option<u32>| key.as_ref().and_then(|key| keys.get(key)).copied();
        self.keys_before.iter().map(by).collect()
    }

    /// Lines that are taken back.
    fn gone(&self) -> impl Iterator<Item = &'a Line> {
        let stays: HashSet<u32> = self.ids_after.iter().copied().collect();
        let replaced = self.replaced();
        let lines = self.before.iter().zip(&self.ids_before).zip(replaced);
        let gone = lines.filter(|((_, id), by)| !stays.contains(id) && by.is_none());
        gone.map(|((line, _), _)| line).collect::<Vec<_>>().into_iter()
    }

    fn changes(&self) -> Changes {
        let stays: HashSet<u32> = self.ids_after.iter().copied().collect();
        let was: HashSet<u32> = self.ids_before.iter().copied().collect();
        let is_new = |at: usize| !was.contains(&self.ids_after[at]);
        // Limits are lifted while anything else is added.
        let lifts = (0..self.after.len()).any(|at| is_new(at) && !self.after[at].is_limit);
        let replaced = self.replaced();
        let mut changes = Changes::default();
        let said: HashSet<&str> = self.after.iter().map(|line| line.meaning.as_str()).collect();
        for line in self.before.iter().filter(|line| !said.contains(line.meaning.as_str())) {
            changes.removed.push(line.text.clone());
        }
        let said: HashSet<&str> = self.before.iter().map(|line| line.meaning.as_str()).collect();
        for line in self.after.iter().filter(|line| !said.contains(line.meaning.as_str())) {
            changes.added.push(line.text.clone());
        }
        for (at, line) in self.before.iter().enumerate().rev() {
            let is_lifted = line.is_limit && lifts;
            let is_there = stays.contains(&self.ids_before[at]);
            let command = match replaced[at] {
                _ if is_lifted => line.undo.as_ref(),
                _ if is_there || line.goes_with.is_some() => None,
                None => line.undo.as_ref(),
                Some(by) if line.says.iter().all(|name| by.says.contains(name)) => None,
                Some(_) => line.reset.as_ref(),
            };
            let undo = command.map(|command| Change { command: command.clone(), line: None });
            changes.commands.extend(undo);
        }
        let mut done: HashSet<u32> = HashSet::new();
        for (at, line) in self.after.iter().enumerate() {
            let is_first = done.insert(self.ids_after[at]);
            if is_first && (is_new(at) || line.is_limit && lifts) {
                let change = Change { command: line.text.clone(), line: Some(line.number) };
                changes.commands.push(change);
            }
        }
        changes
    }
}

/// Gives lines numbers: one to lines that say the same and stand on the same.
#[derive(Default)]
struct Numbers<'a>(HashMap<(&'a str, Vec<u32>, u8), u32>);

impl<'a> Numbers<'a> {
    /// The numbers of lines, and of their keys. Lines that make what is `remade` differ by `side`.
    fn of(
        &mut self,
        lines: &'a [Line],
        remade: &HashSet<&str>,
        side: u8,
    ) -> (Vec<u32>, Vec<Option<u32>>) {
        let mut makers: HashMap<&str, Vec<u32>> = HashMap::new();
        let (mut ids, mut keys) = (Vec::new(), Vec::new());
        for line in lines {
            let on = line.stands_on.iter().filter_map(|object| makers.get(object.as_str()));
            let mut on: Vec<u32> = on.flatten().copied().collect();
            on.sort_unstable();
            on.dedup();
            let is_remade = line.makes.iter().any(|object| remade.contains(object.as_str()));
            let side = if is_remade { side } else { 0 };
            keys.push(line.key.as_ref().map(|key| self.number(key, on.clone(), side)));
            let id = self.number(&line.meaning, on, side);
            ids.push(id);
            for object in &line.makes {
                makers.entry(object).or_default().push(id);
            }
        }
        (ids, keys)
    }

    fn number(&mut self, text: &'a str, on: Vec<u32>, side: u8) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry((text, on, side)).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Output};

    struct Nothing;
    impl Names for Nothing {}

    fn commands() -> Commands<Nothing> {
        let mut commands = Commands::<Nothing>::new();
        let command = |syntax| Command::new(syntax).help("").run(|_, _| Ok(Output::none()));
        commands.add(
            command("create loop {[mac <:mac>] [instance <:u16>]}")
                .undo("delete loop loop<instance>")
                .makes("interface loop<instance>"),
        );
        commands.add(command("delete loop <interface>"));
        commands.add(
            command("set mtu <mtu:u16> <interface>")
                .undo("set mtu 0 <interface>")
                .replaces(&["interface"]),
        );
        commands.add(
            command("set table <interface> <table:u32>")
                .undo("set table <interface> 0")
                .makes("table of <interface>"),
        );
        commands.add(
            command("address [del] <interface> <address:prefix>")
                .undo("address del <interface> <address>")
                .stands_on("table of <interface>"),
        );
        commands.add(command("route add|del <prefix> [via <:ip>]").undo("route del <prefix>"));
        commands.add(command("policy add <id:u32>").undo("policy del <id>").makes("policy <id>"));
        commands.add(
            command("policy list <id:u32> <segment:ip>")
                .goes_with("policy <id>")
                .stands_on("policy <id>"),
        );
        commands.add(command("policy del <id:u32>"));
        commands.add(
            command("name <id:u32> {[name <:word>] [note <:word>]}")
                .undo("unname <id>")
                .amends(&["id"])
                .reset("plain <id>"),
        );
        commands.add(command("limit <limit:u32>").undo("limit 100").replaces(&[]).is_limit());
        commands.add(command("listen <port:u16>").stays("peers are connected"));
        commands
    }

    fn between(running: &str, wanted: &str) -> Vec<String> {
        let changes = commands().changes_between(&(), running, wanted).unwrap();
        changes.commands.into_iter().map(|change| change.command).collect()
    }

    const LOOP: &str = "create loop instance 0\nset mtu 1400 loop0\naddress loop0 10.0.0.1/24\n";

    #[test]
    fn the_same_in_other_words_is_no_change() {
        let other = "# a comment\ncre  loop inst 0\nset mtu 0x578 loop0 # 1400\n\
                     address loop0 10.0.0.1/24\naddress loop0 10.0.0.1/24";
        assert_eq!(between(LOOP, other), [""; 0]);
    }

    #[test]
    fn what_is_replaced_is_not_taken_back_and_what_is_gone_is_in_the_reverse_order() {
        let wanted = LOOP.replace("1400", "1500");
        assert_eq!(between(LOOP, &wanted), ["set mtu 1500 loop0"]);
        let gone = ["address del loop0 10.0.0.1/24", "set mtu 0 loop0", "delete loop loop0"];
        assert_eq!(between(LOOP, ""), gone);
        assert_eq!(between("", LOOP), LOOP.lines().collect::<Vec<_>>());
    }

    #[test]
    fn what_stands_on_an_interface_that_is_made_anew_is_made_anew() {
        let wanted = LOOP.replace("instance 0", "instance 0 mac 02:00:00:00:00:01");
        let mut all = between(LOOP, "");
        all.extend(wanted.lines().map(str::to_owned));
        assert_eq!(between(LOOP, &wanted), all);
    }

    #[test]
    fn addresses_leave_while_their_interface_changes_its_table() {
        let in_table = |table: u32| {
            format!("set mtu 9 e0\nset table e0 {table}\naddress e0 ::1/64\nroute add ::/0\n")
        };
        let moved =
            ["address del e0 ::1/64", "set table e0 0", "set table e0 2", "address e0 ::1/64"];
        assert_eq!(between(&in_table(1), &in_table(2)), moved);
    }

    #[test]
    fn what_has_no_inverse_goes_with_what_it_stands_on() {
        let three = "policy add 1\npolicy list 1 ::1\npolicy list 1 ::2\npolicy add 2\n";
        let two = "policy add 1\npolicy list 1 ::2\npolicy add 2\n";
        assert_eq!(between(two, three), ["policy list 1 ::1"]);
        let anew = ["policy del 1", "policy add 1", "policy list 1 ::2"];
        assert_eq!(between(three, two), anew);
        assert_eq!(between(three, "policy add 2"), ["policy del 1"]);
    }

    #[test]
    fn what_a_line_leaves_out_is_taken_back_where_it_would_stay() {
        assert_eq!(between("name 1 name a", "name 1 name a note b"), ["name 1 name a note b"]);
        assert_eq!(between("name 1 name a note b", "name 1 name c"), ["plain 1", "name 1 name c"]);
        // Said twice: the line that says more, where the first stands.
        assert_eq!(between("name 1\nname 1 name a", "name 1 name a"), [""; 0]);
    }

    #[test]
    fn limits_are_lifted_while_something_is_added() {
        let (one, two) = ("route add ::/0\nlimit 1", "route add ::/0\nroute add ::1/128\nlimit 1");
        assert_eq!(between(one, two), ["limit 100", "route add ::1/128", "limit 1"]);
        assert_eq!(between(two, one), ["route del ::1/128"]);
        assert_eq!(between("limit 1", "limit 2"), ["limit 2"]);
    }

    #[test]
    fn all_mistakes_are_told_with_their_lines() {
        let text = "set mtu 1 e0\n\nset mtu x e0\naddress del e0 ::1/64\nhelp\nset mtu 2 e0\n\
                    set mtu 1 e0\nroute add ::/0 via {";
        let mistakes = commands().mistakes_in(&(), text);
        let lines: Vec<u32> = mistakes.iter().map(|mistake| mistake.line).collect();
        assert_eq!(lines, [3, 4, 5, 6, 8], "{mistakes:?}");
        let refusal = commands().changes_between(&(), "", text).unwrap_err();
        assert_eq!(refusal, mistakes);
    }

    #[test]
    fn what_stays_until_the_end_is_told() {
        let mistakes = commands().changes_between(&(), "listen 7", "").unwrap_err();
        let text = mistakes[0].refusal.to_string();
        assert_eq!(text, "`listen 7` cannot be taken back: peers are connected");
        assert_eq!(between("listen 7", "listen 7"), [""; 0]);
    }
}

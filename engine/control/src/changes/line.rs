//! A line of a configuration, read: what it says, makes and stands on, and how it is taken back.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt::Write as _;

use super::reader::{INTERFACE, Known};
use super::runs::{self, Counted, Run};
use crate::args::Slot;
use crate::document::Objects;
use crate::error::Refusal;
use crate::grammar::{Commands, FREES, closed};
use crate::inverse::{Given, Inverse, Template};
use crate::names::Names;
use crate::value::Value;
use crate::words::{self, Word};

/// Stands behind an argument; no line has it.
pub(super) const ARGUMENT_END: &str = "\u{1f}";

/// The word before what is taken back.
const NO: &str = "no";

/// The command that does nothing.
const COMMENT: &str = "comment";

/// What a line says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// The command, by its place.
    pub(super) command: usize,
    pub(super) text: String,
    /// The command and its arguments: the same for lines that say the same.
    pub(super) meaning: String,
    pub(super) makes: Vec<String>,
    pub(super) stands_on: Vec<String>,
    /// Interfaces that it names.
    pub(super) interfaces: Vec<String>,
    /// The same for lines of which a later one replaces an earlier one.
    pub(super) key: Option<String>,
    pub(super) goes_with: Option<String>,
    pub(super) is_limit: bool,
    /// Takes it back.
    pub(super) undo: Option<String>,
    /// Takes back what a line that replaces it does not say and leaves as it is.
    pub(super) reset: Option<String>,
    /// Why nothing takes it back.
    pub(super) stays: Option<&'static str>,
    /// The names of its arguments.
    pub(super) says: Vec<&'static str>,
    /// How it takes the place of a line about the same.
    pub(super) exchange: Option<Exchange>,
    /// The consecutive prefixes that it is about, where there may be many.
    pub(super) run: Option<Box<Counted>>,
}

/// A command that makes the line of what another line made, without a gap between them.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// The same for lines about the same.
    pub(super) key: String,
    pub(super) command: String,
}

impl<S: Names + 'static> Commands<S> {
    /// Read a line; nothing when it is empty, or a comment.
    pub(super) fn said(
        &self,
        known: &Known<'_>,
        text: &str,
        words: &[Word],
    ) -> Result<Option<Said>, Refusal> {
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
        let run = inverse.counted.and_then(|counted| Run::of(counted, names, &slots));
        let first = run.map(|run| run.first()).unwrap_or_default();
        let places = run.zip(inverse.counted).map(|(run, counted)| run.places(counted, &first));
        let places = places.unwrap_or_default();
        let marks = run.filter(Run::is_many);
        let given = Given { names, slots: &slots, line: text, words, instead: &places };
        let fill = |template: &Template| template.fill(&given);
        let undo = inverse.undo.iter().find_map(fill);
        self.check_names(known, form, inverse, &given, undo.as_deref())?;
        let is_interface = |slot: &Slot<'_>| registered.interfaces.contains(&slot.name_in(names));
        let interfaces = slots.iter().filter(|slot| is_interface(slot));
        let interfaces: Vec<String> = interfaces
            .filter_map(|slot| match slot.value {
                Value::Text(name) => Some(name.to_owned()),
                _ => None,
            })
            .collect();
        let on = interfaces.iter().map(|name| format!("{INTERFACE} {name}"));
        let main = self.forms[form].command;
        let key = inverse.replaces.map(|of| keyed(main, "key", of, &given, inverse.usual));
        let exchange = inverse.exchanged.as_ref().map(|exchanged| Exchange {
            key: keyed(main, "exchange", exchanged.same, &given, inverse.usual),
            command: {
                let flag = slots.iter().find(|slot| slot.name_in(names) == exchanged.without);
                let (lead, flag) =
                    (self.forms[form].words.len(), flag.map(|slot| usize::from(slot.word)));
                let rest = runs::words_of(text, words, marks.as_ref()).without(lead, flag);
                format!("{} {rest}", exchanged.words)
            },
        });
        let meaning = meaning(names, &slots, inverse.usual, &places, &registered.unordered);
        let said = Said {
            command: main,
            text: runs::words_of(text, words, marks.as_ref()).join(),
            meaning: format!("{main}{ARGUMENT_END}{meaning}"),
            makes: inverse.makes.iter().filter_map(fill).collect(),
            stands_on: inverse.stands_on.iter().filter_map(fill).chain(on).collect(),
            interfaces,
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
            exchange,
            run: None,
        };
        Ok(Some(match run {
            Some(run) => {
                let same = inverse.exchanged.map_or(&[][..], |exchanged| exchanged.same);
                let prefix = inverse.counted.map(|(prefix, _)| prefix);
                let others: Vec<&str> =
                    same.iter().copied().filter(|name| Some(*name) != prefix).collect();
                let class = keyed(main, "run", &others, &given, inverse.usual);
                runs::whole(said, run, class)
            }
            None => said,
        }))
    }

    /// What a line of a configuration makes and needs.
    ///
    /// # Errors
    /// It is no command of a configuration.
    pub(crate) fn objects_of(&self, names: &dyn Names, text: &str) -> Result<Objects, Refusal> {
        let made = RefCell::default();
        let known = Known { names, made: &made };
        let mut words = Vec::new();
        closed(words::split(text, &mut words)?, words.len())?;
        let nothing = || Refusal::new("a comment is no part of a configuration");
        let said = self.said(&known, text, &words)?.ok_or_else(nothing)?;
        let says_nothing = said.undo.as_ref() == Some(&said.text);
        let Said { command, makes, stands_on, .. } = said;
        Ok(Objects { command, makes, stands_on, says_nothing })
    }

    /// Refuse a line that takes something back itself, or does not say what it makes.
    fn check_names(
        &self,
        known: &Known<'_>,
        form: usize,
        inverse: &Inverse,
        given: &Given<'_>,
        undo: Option<&str>,
    ) -> Result<(), Refusal> {
        let command = &self.forms[form].name;
        if let Some(word) = self.takes_back(known, given.names, given.slots, undo) {
            return Err(Refusal::new(format!(
                "'{command} … {word}' is no part of a configuration"
            ))
            .remedy("leave out what is not to be there"));
        }
        let makes = inverse.makes.iter().any(|template| template.fill(given).is_some());
        let is_named =
            (undo.is_some() || inverse.undo.is_empty()) && (makes || inverse.makes.is_empty());
        if !is_named {
            let templates = inverse.makes.iter().chain(&inverse.undo);
            let missing = templates.filter_map(|template| template.missing(given)).next();
            return Err(Refusal::new(format!("'{command}' does not say which it is"))
                .remedy(format!("say its {}", missing.unwrap_or("name"))));
        }
        Ok(())
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
        let undo = runs::parsable(undo?);
        let form = self.parse_words(known, &undo, &mut words, &mut slots).ok()?;
        let names = &self.matcher.automata[form].names;
        let is_same =
            |slot: &Slot<'_>| slot.name_in(names) == name && slot.value == Value::Word(word);
        slots.iter().any(is_same).then_some(word)
    }
}

/// The values of these arguments, for lines about the same.
fn keyed(
    command: usize,
    kind: &str,
    of: &[&str],
    given: &Given<'_>,
    usual: &[(&str, &str)],
) -> String {
    let mut key = format!("{command} {kind} ");
    for name in of {
        let value = given.text(name).unwrap_or_default();
        if !usual.iter().any(|(known, word)| known == name && *word == value) {
            key.push_str(&value);
        }
        key.push_str(ARGUMENT_END);
    }
    key
}

/// The arguments in the order of their names; those of a group stay together, and repetitions stay
/// in their order, unless it means nothing.
fn meaning(
    names: &[&'static str],
    slots: &[Slot<'_>],
    usual: &[(&str, &str)],
    instead: &[(&str, &str)],
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
                format!("({})", meaning(names, inside, &[], &[], &[]))
            }
            value => value_text(value),
        };
        let name = slot.name_in(names);
        let is_usual = usual.iter().any(|(of, word)| *of == name && *word == text);
        if !is_usual && !instead.iter().any(|(of, _)| *of == name) {
            found.push((name, text));
        }
    }
    // A run of one prefix says the same as a line without a count.
    if let Some((name, _)) = instead.first() {
        found.push((name, runs::prefix_and_count(instead)));
    }
    found.sort_by(|(name, text), (other, others)| match name.cmp(other) {
        Ordering::Equal if unordered.contains(name) => text.cmp(others),
        order => order,
    });
    let mut out = String::new();
    for (name, text) in found {
        let end = if out.is_empty() { "" } else { ARGUMENT_END };
        let _ = write!(out, "{end}{name}={text}");
    }
    out
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

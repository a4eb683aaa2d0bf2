//! How a line of the configuration is taken back, and what it stands on: declared beside its
//! command.
//!
//! The declarations are templates over the command's own arguments:
//!
//! | notation | is |
//! | --- | --- |
//! | `<name>` | the argument of this name, as it was written |
//! | `<name=word>` | the same, or this word where the argument was left out |
//! | `[table <table>]` | left out unless all arguments in it were given |
//! | `[ipv6]` | left out unless this flag was given |
//! | `<name!>` | nothing, but the argument must have been given |
//! | `<name!:>`, `<name!.>` | nothing, but it must be of IPv6, of IPv4 |

use crate::args::Slot;
use crate::json_form::quoted;
use crate::value::Value;
use crate::words::Word;

/// What a command declares of the lines that it makes.
#[derive(Default)]
pub(crate) struct Declared {
    pub(crate) undo: Vec<&'static str>,
    pub(crate) replaces: Option<&'static [&'static str]>,
    pub(crate) amends: bool,
    pub(crate) makes: Vec<&'static str>,
    pub(crate) stands_on: Vec<&'static str>,
    pub(crate) goes_with: Option<&'static str>,
    pub(crate) reset: Option<&'static str>,
    pub(crate) is_limit: bool,
    pub(crate) stays: Option<&'static str>,
    pub(crate) usual: &'static [(&'static str, &'static str)],
    pub(crate) exchanged: Option<Exchanged>,
    pub(crate) counted: Option<(&'static str, &'static str)>,
}

/// How a line takes the place of another about the same, without a gap.
#[derive(Clone, Copy)]
pub(crate) struct Exchanged {
    /// The first words of the command that does it; the arguments of the line follow.
    pub(crate) words: &'static str,
    /// The argument of the line that is left out.
    pub(crate) without: &'static str,
    /// Lines with the same values of these arguments are about the same.
    pub(crate) same: &'static [&'static str],
}

/// The same, read.
#[derive(Default)]
pub(crate) struct Inverse {
    /// Commands that take a line back: the first one whose arguments were given.
    pub(crate) undo: Vec<Template>,
    /// A line replaces the one before it that has the same values of these arguments.
    pub(crate) replaces: Option<&'static [&'static str]>,
    /// What such a line leaves out stays.
    pub(crate) amends: bool,
    /// Objects that a line makes.
    pub(crate) makes: Vec<Template>,
    /// Objects that a line needs, besides the interfaces that it names.
    pub(crate) stands_on: Vec<Template>,
    /// A line has no inverse of its own: it goes when this object does.
    pub(crate) goes_with: Option<Template>,
    /// Executed before a line that amends another and leaves out an argument of it.
    pub(crate) reset: Option<Template>,
    /// Why nothing takes a line back while the router runs.
    pub(crate) stays: Option<&'static str>,
    /// It refuses what is more than there is: lifted while other lines are added.
    pub(crate) is_limit: bool,
    /// Arguments that say the same when they are left out.
    pub(crate) usual: &'static [(&'static str, &'static str)],
    /// How a line takes the place of another about the same.
    pub(crate) exchanged: Option<Exchanged>,
    /// The arguments that say the first of consecutive prefixes, and how many there are.
    pub(crate) counted: Option<(&'static str, &'static str)>,
}

impl Declared {
    /// Read the templates. Panics when one is at fault, or names what the command does not have.
    pub(crate) fn read(self, names: &[&'static str], syntax: &str) -> Inverse {
        let one = |text: &'static str| Template::read(text, names, syntax);
        let all = |texts: Vec<&'static str>| texts.into_iter().map(one).collect();
        let same = self.exchanged.map_or(&[][..], |exchanged| exchanged.same);
        let usual = self.usual.iter().map(|(name, _)| name);
        for name in self.replaces.into_iter().flatten().chain(usual).chain(same) {
            assert!(names.contains(name), "there is no argument '{name}', in: {syntax}");
        }
        Inverse {
            undo: all(self.undo),
            replaces: self.replaces,
            amends: self.amends,
            makes: all(self.makes),
            stands_on: all(self.stands_on),
            goes_with: self.goes_with.map(one),
            reset: self.reset.map(one),
            stays: self.stays,
            is_limit: self.is_limit,
            usual: self.usual,
            exchanged: self.exchanged,
            counted: self.counted,
        }
    }
}

impl Inverse {
    /// Can a line of it be part of a configuration?
    pub(crate) fn is_declared(&self) -> bool {
        !self.undo.is_empty() || self.goes_with.is_some() || self.stays.is_some()
    }
}

/// Words over the arguments of a command.
#[derive(Debug, PartialEq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, PartialEq)]
enum Part {
    Text(&'static str),
    Value {
        name: &'static str,
        otherwise: Option<&'static str>,
    },
    /// The argument must be there; with a mark, its text must or must not have a colon.
    Needed(&'static str, Option<bool>),
    Group(Vec<Part>),
}

impl Template {
    fn read(text: &'static str, names: &[&'static str], syntax: &str) -> Template {
        let mut rest = text;
        let parts = parts(&mut rest, names, &|what| {
            panic!("{what} in '{text}', in the declaration: {syntax}")
        });
        assert!(rest.is_empty(), "']' without '[' in '{text}', in the declaration: {syntax}");
        Template(parts)
    }

    /// Does it begin with these words, whatever the arguments are?
    pub(crate) fn begins_with(&self, words: &str) -> bool {
        matches!(self.0.first(), Some(Part::Text(text)) if text.starts_with(words))
    }

    /// The argument without which there are no words.
    pub(crate) fn missing(&self, given: &Given<'_>) -> Option<&'static str> {
        missing(&self.0, given)
    }

    /// The words for these arguments; nothing when one is missing that it cannot do without.
    pub(crate) fn fill(&self, given: &Given<'_>) -> Option<String> {
        let mut out = String::new();
        fill(&self.0, given, &mut out)?;
        // A group that is left out leaves the space before it.
        Some(out.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// The first of these arguments that was not given and is needed.
fn missing(parts: &[Part], given: &Given<'_>) -> Option<&'static str> {
    parts.iter().find_map(|part| match part {
        Part::Value { name, otherwise: None } if !given.has(name) => Some(*name),
        _ => None,
    })
}

fn parts(
    rest: &mut &'static str,
    names: &[&'static str],
    fault: &dyn Fn(&str) -> Vec<Part>,
) -> Vec<Part> {
    let mut out = Vec::new();
    while let Some(first) = rest.chars().next() {
        match first {
            '<' => {
                let Some((inside, behind)) = rest[1..].split_once('>') else {
                    return fault("'<' without '>'");
                };
                *rest = behind;
                let name = inside.split(['=', '!']).next().unwrap_or_default();
                if !names.contains(&name) {
                    return fault(&format!("no argument '{name}'"));
                }
                let mark = inside.split_once('!').map(|(_, mark)| match mark {
                    "" => None,
                    mark => Some(mark == ":"),
                });
                let otherwise = inside.split_once('=').map(|(_, word)| word);
                out.push(match mark {
                    Some(mark) => Part::Needed(name, mark),
                    None => Part::Value { name, otherwise },
                });
            }
            '[' => {
                *rest = &rest[1..];
                let inside = parts(rest, names, fault);
                if !rest.starts_with(']') {
                    return fault("'[' without ']'");
                }
                *rest = &rest[1..];
                if let [Part::Text(flag)] = inside.as_slice()
                    && !names.contains(flag)
                {
                    return fault(&format!("no flag '{flag}'"));
                }
                out.push(Part::Group(inside));
            }
            ']' => return out,
            _ => {
                let end = rest.find(['<', '[', ']']).unwrap_or(rest.len());
                out.push(Part::Text(&rest[..end]));
                *rest = &rest[end..];
            }
        }
    }
    out
}

fn fill(parts: &[Part], given: &Given<'_>, out: &mut String) -> Option<()> {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Value { name, otherwise } => match given.text(name) {
                Some(text) => out.push_str(&text),
                None => out.push_str((*otherwise)?),
            },
            Part::Needed(name, mark) => {
                let text = given.text(name)?;
                if mark.is_some_and(|has| text.contains(':') != has) {
                    return None;
                }
            }
            Part::Group(inside) => {
                let is_given = match inside.as_slice() {
                    [Part::Text(flag)] => given.has(flag),
                    inside => inside.iter().all(|part| match part {
                        Part::Value { name, .. } => given.has(name),
                        _ => true,
                    }),
                };
                if is_given {
                    fill(inside, given, out)?;
                }
            }
        }
    }
    Some(())
}

/// The arguments of a line.
pub(crate) struct Given<'a> {
    pub(crate) names: &'a [&'static str],
    pub(crate) slots: &'a [Slot<'a>],
    pub(crate) line: &'a str,
    pub(crate) words: &'a [Word],
    /// Texts in place of the values of some arguments.
    pub(crate) instead: &'a [(&'a str, &'a str)],
}

impl<'a> Given<'a> {
    fn instead(&self, name: &str) -> Option<&'a str> {
        self.instead.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    fn has(&self, name: &str) -> bool {
        self.instead(name).is_some() || self.slot(name).is_some()
    }

    /// The first argument of this name that stands in no group.
    fn slot(&self, name: &str) -> Option<&'a Slot<'a>> {
        let mut at = 0;
        while let Some(slot) = self.slots.get(at) {
            if self.names[slot.name as usize] == name {
                return Some(slot);
            }
            at += 1;
            if let Value::Group(length) = slot.value {
                at += length as usize;
            }
        }
        None
    }

    /// An argument as a word of a command.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        if let Some(text) = self.instead(name) {
            return Some(text.to_owned());
        }
        let slot = self.slot(name)?;
        Some(match slot.value {
            Value::Text(text) if text.starts_with('{') => text.to_owned(),
            Value::Text(text) => quoted(text),
            Value::Word(word) => word.to_owned(),
            _ => self.words.get(slot.word as usize)?.text(self.line).to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["prefix", "table", "ipv6"];

    fn filled(template: &'static str, given: &[(&str, &str)]) -> Option<String> {
        let words: Vec<Word> =
            (0..given.len() as u32).map(|_| Word { start: 0, end: 0, quoted: false }).collect();
        let slots: Vec<Slot<'_>> = given
            .iter()
            .map(|(name, text)| Slot {
                value: Value::Text(text),
                name: NAMES.iter().position(|known| known == name).unwrap() as u16,
                word: 0,
            })
            .collect();
        let given = Given { names: NAMES, slots: &slots, line: "", words: &words, instead: &[] };
        Template::read(template, NAMES, "test").fill(&given)
    }

    #[test]
    fn what_was_not_given_is_left_out_with_its_group() {
        let undo = "ip route del <prefix> [table <table>] [ipv6]";
        let filled = |given| filled(undo, given);
        assert_eq!(filled(&[("prefix", "::/0")]).as_deref(), Some("ip route del ::/0"));
        let given = [("table", "7"), ("prefix", "::/0"), ("ipv6", "ipv6")];
        assert_eq!(filled(&given).as_deref(), Some("ip route del ::/0 table 7 ipv6"));
        assert_eq!(filled(&[("table", "7")]), None);
    }

    #[test]
    fn a_value_that_was_left_out_has_its_usual_word() {
        assert_eq!(filled("memif<table=0>/<prefix>", &[("prefix", "2")]).unwrap(), "memif0/2");
    }

    #[test]
    #[should_panic(expected = "no argument 'prefx'")]
    fn a_template_that_names_nothing_panics_when_it_is_registered() {
        Template::read("ip route del <prefx>", NAMES, "test");
    }
}

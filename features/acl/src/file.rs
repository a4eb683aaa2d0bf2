//! Files of rules: one a line, in the words of the command or as a JSON object.

use std::io::Read;

use quiver_forwarding::fib::Family;
use quiver_tables::prefix::IpPrefix;
use serde_json::Value;

use crate::named_set::Role;
use crate::rules::{Action, Given, PROTOCOLS, Range, Rule};

/// Mistakes that a refusal lists.
const MISTAKES_LISTED_MAX: usize = 100;
/// Bytes of a file at most.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// What is wrong with a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mistakes {
    /// It cannot be read at all.
    Unreadable(String),
    /// These lines are wrong; how many more are not listed.
    Lines { first: Vec<(u32, String)>, more: usize },
}

/// Read the rules of a file.
pub(crate) fn read(file: impl Read, rules_max: usize) -> Result<Vec<Rule>, Mistakes> {
    parse(&text_of(file)?, rules_max)
}

/// The text of a file.
pub(crate) fn text_of(file: impl Read) -> Result<String, Mistakes> {
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    match read {
        Err(error) => Err(Mistakes::Unreadable(error.to_string())),
        Ok(bytes) if bytes as u64 > FILE_BYTES_MAX => {
            Err(Mistakes::Unreadable(format!("it is larger than {FILE_BYTES_MAX} bytes")))
        }
        Ok(_) => Ok(text),
    }
}

/// The rules of a text.
pub(crate) fn parse(text: &str, rules_max: usize) -> Result<Vec<Rule>, Mistakes> {
    lines(text, rules_max, "rules", |line| match line.starts_with('{') {
        true => of_json(line),
        false => of_words(line),
    })
}

/// What each line of a text says, as `of_line` reads it: at most `most` of what it calls `what`.
pub(crate) fn lines<T>(
    text: &str,
    most: usize,
    what: &str,
    of_line: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Mistakes> {
    let (mut all, mut first, mut more) = (Vec::new(), Vec::new(), 0);
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        let line = line.strip_suffix(',').unwrap_or(line).trim_end();
        // The frame of an array with one object a line.
        if line.is_empty() || line.starts_with('#') || line == "[" || line == "]" {
            continue;
        }
        match of_line(line) {
            Ok(_) if all.len() >= most => {
                return Err(Mistakes::Unreadable(format!("it has more than {most} {what}")));
            }
            Ok(one) => all.push(one),
            Err(what) if first.len() < MISTAKES_LISTED_MAX => first.push((number, what)),
            Err(_) => more += 1,
        }
    }
    if first.is_empty() { Ok(all) } else { Err(Mistakes::Lines { first, more }) }
}

fn of_words(line: &str) -> Result<Rule, String> {
    let mut words = line.split_whitespace();
    let action = Action::of(words.next().unwrap_or_default())?;
    let mut given = Given::default();
    let mut seen = Vec::new();
    while let Some(word) = words.next() {
        if word.starts_with('#') {
            break;
        }
        if seen.contains(&word) {
            return Err(format!("'{word}' stands there twice"));
        }
        seen.push(word);
        match word {
            "fragment" => given.fragment = true,
            "log" => given.log = true,
            "ipv4" | "ipv6" if given.family.is_some() => {
                return Err("a rule is of one family".to_owned());
            }
            "ipv4" => given.family = Some(Family::Ip4),
            "ipv6" => given.family = Some(Family::Ip6),
            _ => {
                let value = words.next();
                field(&mut given, word, value)?;
            }
        }
    }
    Rule::new(action, given)
}

fn of_json(line: &str) -> Result<Rule, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let members = value.as_object().ok_or("a rule is an object")?;
    let action = members.get("action").and_then(Value::as_str).ok_or("no action")?;
    let action = Action::of(action)?;
    let mut given = Given::default();
    for (key, value) in members.iter().filter(|(key, _)| *key != "action") {
        match (key.as_str(), value) {
            ("fragment", Value::Bool(is)) => given.fragment = *is,
            ("log", Value::Bool(logs)) => given.log = *logs,
            ("log", _) => return Err("log is true or false".to_owned()),
            ("fragment", _) => return Err("fragment is true or false".to_owned()),
            ("family", Value::String(word)) if word == "ipv4" => given.family = Some(Family::Ip4),
            ("family", Value::String(word)) if word == "ipv6" => given.family = Some(Family::Ip6),
            ("family", _) => return Err("family is \"ipv4\" or \"ipv6\"".to_owned()),
            (key, Value::String(text)) => field(&mut given, key, Some(text))?,
            (key, Value::Number(number)) => field(&mut given, key, Some(&number.to_string()))?,
            (key, _) => return Err(format!("{key} is a text or a number")),
        }
    }
    Rule::new(action, given)
}

/// Set the field that a word names.
fn field(given: &mut Given, word: &str, value: Option<&str>) -> Result<(), String> {
    const WORDS: [&str; 8] = ["src", "dst", "proto", "sport", "dport", "tcpflags", "mask", "dscp"];
    let role = Role::ALL.into_iter().find(|role| role.word() == word);
    if !WORDS.contains(&word) && role.is_none() {
        return Err(format!("'{word}' is no word of a rule"));
    }
    let value = value.ok_or_else(|| format!("'{word}' has no value"))?;
    if let Some(role) = role {
        given.sets[role as usize] = Some(value.into());
        return Ok(());
    }
    let wrong = || format!("'{word} {value}' makes no sense");
    match word {
        "src" => given.source = Some(prefix(value).ok_or_else(wrong)?),
        "dst" => given.destination = Some(prefix(value).ok_or_else(wrong)?),
        "proto" => given.protocol = Some(protocol(value).ok_or_else(wrong)?),
        "sport" => given.source_ports = Some(range(value).ok_or_else(wrong)?),
        "dport" => given.destination_ports = Some(range(value).ok_or_else(wrong)?),
        "tcpflags" => given.tcp_flags = Some(byte(value).ok_or_else(wrong)?),
        "mask" => given.tcp_mask = Some(byte(value).ok_or_else(wrong)?),
        _ => given.dscp = Some(byte(value).ok_or_else(wrong)?),
    }
    Ok(())
}

pub(crate) fn prefix(text: &str) -> Option<IpPrefix> {
    let (address, length) = text.split_once('/')?;
    let address: std::net::IpAddr = address.parse().ok()?;
    let length: u8 = length.parse().ok()?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    (length <= bits).then(|| IpPrefix::new(address, length))
}

fn protocol(text: &str) -> Option<u8> {
    let known = PROTOCOLS.iter().find(|(word, _)| *word == text);
    known.map(|(_, protocol)| protocol.0).or_else(|| text.parse().ok())
}

pub(crate) fn range(text: &str) -> Option<Range> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    Some((from.parse().ok()?, to.parse().ok()?))
}

fn byte(text: &str) -> Option<u8> {
    match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_and_objects_say_the_same() {
        let text = "# a list\n\
            permit src 10.0.0.0/8 proto tcp dport 80-443 tcpflags 0x2 mask 18,\n\
            [\n\
            {\"action\": \"permit\", \"src\": \"10.0.0.0/8\", \"proto\": 6, \"dport\": \"80-443\", \
             \"tcpflags\": 2, \"mask\": 18},\n\
            ]\n\n\
            deny ipv6 # the rest\n\
            permit proto udp src-set a dport-set b";
        let rules = parse(text, 10).expect("reads");
        assert_eq!(rules.len(), 4);
        assert_eq!(rules[3].to_string(), "permit proto udp src-set a dport-set b");
        assert_eq!(rules[0], rules[1]);
        assert_eq!(rules[2].to_string(), "deny ipv6");
    }

    #[test]
    fn every_mistake_is_listed_by_its_line() {
        let text = "permit\nallow\ndeny src 10.0.0.0/33\n\ndeny dst\npermit src 1.0.0.0/8 src \
            1.0.0.0/8\npermit+reflects\n{\"action\": \"deny\", \"port\": 1}\n{\"action\"";
        let Err(Mistakes::Lines { first, more }) = parse(text, 10) else { panic!("refused") };
        let lines: Vec<u32> = first.iter().map(|(line, _)| *line).collect();
        assert_eq!((lines, more), (vec![2, 3, 5, 6, 7, 8, 9], 0));
    }

    #[test]
    fn more_mistakes_than_are_listed_are_counted() {
        let Err(Mistakes::Lines { first, more }) = parse(&"x\n".repeat(250), 10) else {
            panic!("refused")
        };
        assert_eq!((first.len(), more), (MISTAKES_LISTED_MAX, 150));
        assert!(matches!(parse(&"deny\n".repeat(11), 10), Err(Mistakes::Unreadable(_))));
    }

    proptest! {
        #[test]
        fn what_a_rule_says_reads_back(
            text in "(permit|deny)( log|)( ipv4| ipv6|)( proto [0-9]{1,2})?( dscp [0-9])?",
        ) {
            let rules = parse(&text, 1).expect("reads");
            let again = parse(&rules[0].to_string(), 1).expect("reads again");
            prop_assert_eq!(rules, again);
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = parse(&text, 5);
        }
    }
}

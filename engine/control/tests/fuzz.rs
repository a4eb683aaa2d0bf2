//! No input makes a parser panic, and what one form of a command says, the other says too.

use crate::toy;

use std::panic::AssertUnwindSafe;

use quiver_control::*;
use toy::{Toy, commands};

/// Words that lead deep into the grammar, for inputs made of numbers.
const WORDS: &[&str] = &[
    "ip",
    "route",
    "add",
    "del",
    "via",
    "drop",
    "weight",
    "10.0.0.0/8",
    "192.0.2.1",
    "e0",
    "2001:db8::1",
    "out-labels",
    "16",
    "create",
    "interface",
    "memif",
    "id",
    "0",
    "master",
    "slave",
    "ring-size",
    "1024",
    "packet-generator",
    "new",
    "{",
    "}",
    "name",
    "data",
    "rate",
    "1M",
    "size",
    "64-128",
    "show",
    "json",
    "help",
    "?",
    "set",
    "state",
    "up",
    "down",
    "sh",
    "int",
    "\"",
    "#",
    ",",
    "\n",
    "run",
    "loopback",
    "mac",
    "02:fe:00:00:00:01",
    "dot1q",
    "any",
    "table",
    "count",
    "r",
    "s",
    "i",
    "é",
];

fn line_of(choices: &[u8]) -> String {
    let words: Vec<&str> =
        choices.iter().map(|choice| WORDS[usize::from(*choice) % WORDS.len()]).collect();
    words.join(" ")
}

fn use_every_parser(commands: &Commands<Toy>, line: &str) {
    let mut toy = Toy::new();
    let _ = commands.execute(&mut toy, line);
    let cursors = [0, line.len() / 2, line.len()];
    for cursor in cursors {
        let found = commands.complete(&toy, line, cursor);
        assert!(found.start <= line.len() && line.is_char_boundary(found.start));
    }
    let script = commands.start_script(line.into(), Some("x".into()), OnRefusal::Continue);
    let _ = script.finish(commands, &mut toy, &mut Collected::default());
    let complete = words::complete_bytes(line);
    assert!(complete <= line.len());
}

/// A `ping` waits and an `exec` reads files: not here.
fn is_harmless(line: &str) -> bool {
    !line
        .split_whitespace()
        .any(|word| word.starts_with('p') && "ping".starts_with(word) || "exec".starts_with(word))
}

#[test]
fn no_bytes_make_the_command_line_panic() {
    let commands = AssertUnwindSafe(commands());
    bolero::check!().for_each(|bytes: &[u8]| {
        let line = String::from_utf8_lossy(bytes);
        if is_harmless(&line) {
            use_every_parser(&commands, &line);
        }
    });
}

#[test]
fn no_words_of_the_grammar_make_it_panic() {
    let commands = AssertUnwindSafe(commands());
    bolero::check!().for_each(|choices: &[u8]| {
        let line = line_of(choices);
        if is_harmless(&line) {
            use_every_parser(&commands, &line);
        }
    });
}

#[test]
fn what_completion_offers_is_taken() {
    let (commands, toy) = (AssertUnwindSafe(commands()), AssertUnwindSafe(Toy::new()));
    bolero::check!().for_each(|choices: &[u8]| {
        // Walk through the grammar by taking one of the candidates, again and again.
        let mut line = String::new();
        for choice in choices.iter().take(24) {
            let found = commands.complete(&*toy, &line, line.len());
            let texts: Vec<&str> = found
                .candidates
                .iter()
                .map(|c| c.text.as_str())
                .filter(|text| !text.is_empty())
                .collect();
            let Some(text) = texts.get(usize::from(*choice) % texts.len().max(1)) else { break };
            line += text;
            line += " ";
        }
        if let Err(refusal) = commands.parse(&*toy, &line, |_| ()) {
            assert!(
                refusal.what() == "the command ends too early"
                    || line.is_empty()
                    || line.contains('{'),
                "{line}: {refusal}"
            );
        }
    });
}

#[test]
fn no_bytes_make_the_start_up_file_panic() {
    let schema = StartupSchema::default();
    let words = [
        "unix",
        "{",
        "}",
        "cpu",
        "nodaemon",
        "log",
        "/x",
        "workers",
        "2",
        "corelist-workers",
        "1-3",
        "\n",
        "#",
        "\"",
        "main-core",
        "1",
        "buffers",
    ];
    bolero::check!().for_each(|bytes: &[u8]| {
        let mixed: Vec<&str> = bytes.iter().map(|b| words[usize::from(*b) % words.len()]).collect();
        for text in [String::from_utf8_lossy(bytes).into_owned(), mixed.join(" ")] {
            let file = StartupFile::from_text("fuzz", &text);
            if let Ok(startup) = schema.parse(&file) {
                let _ = (startup.unix(), startup.cpu(), startup.buffers());
            }
        }
    });
}

#[test]
fn no_json_makes_the_api_panic() {
    let commands = AssertUnwindSafe(commands());
    let keys = [
        "command",
        "args",
        "interface",
        "state",
        "via",
        "next_hop",
        "add",
        "prefix",
        "id",
        "master",
        "data",
    ];
    let values = [
        "set interface state",
        "ip route",
        "create interface memif",
        "e0",
        "up",
        "10.0.0.0/8",
        "{ x }",
        "a b",
        "\"",
        "",
    ];
    bolero::check!().for_each(|bytes: &[u8]| {
        let mut object = serde_json::Map::new();
        for pair in bytes.chunks(3) {
            let key = keys[usize::from(pair[0]) % keys.len()];
            let value = values[usize::from(*pair.last().unwrap()) % values.len()];
            let value = match pair.len() {
                1 => serde_json::json!(true),
                2 => serde_json::json!(value),
                _ => serde_json::json!([{key: value}, value]),
            };
            object.insert(key.into(), value);
        }
        let args = serde_json::json!({"command": object.get("command"), "args": object});
        for form in [serde_json::Value::Object(object), args] {
            if let Ok(line) = commands.line_of_json(&form) {
                assert!(!line.contains('\n'));
                let _ = commands.parse(&Toy::new(), &line, |_| ());
            }
        }
    });
}

//! Commands as operators write them, through a toy router.

use crate::toy;

use quiver_control::*;
use serde_json::json;
use toy::{Toy, commands};

fn refused(line: &str) -> String {
    commands().execute(&mut Toy::new(), line).expect_err(line).to_string()
}

#[test]
fn words_may_be_abbreviated_at_every_place() {
    let (commands, mut toy) = (commands(), Toy::new());
    commands.execute(&mut toy, "set int st e1 up").unwrap();
    assert_eq!(toy.up, [false, true]);
    assert_eq!(commands.execute(&mut toy, "sh int addr").unwrap().to_text(), "none\n");
    assert_eq!(commands.execute(&mut toy, "sh run").unwrap().to_text(), "runtime\n");
}

#[test]
fn an_ambiguous_abbreviation_lists_what_it_could_be() {
    assert_eq!(
        refused("show ru"),
        "'ru' is ambiguous (word 2): it could be run, running-config or runtime"
    );
}

#[test]
fn options_come_in_any_order_and_only_once() {
    let (commands, mut toy) = (commands(), Toy::new());
    let made = commands
        .execute(&mut toy, "create interface memif slave ring-size 1024 socket-id 1 id 7")
        .unwrap();
    assert_eq!(made.to_text(), "memif1/7\n");
    assert_eq!(
        refused("create interface memif id 0 id 1 master"),
        "'id' is given twice (word 6): once is enough"
    );
    assert_eq!(
        refused("create interface memif id 0"),
        "the command ends too early (word 6): expected socket-id, master, slave, mode, ring-size, \
         secret or hw-addr"
    );
    assert_eq!(
        refused("create interface memif id 0 master slave"),
        "'slave' does not go together with a word before it (word 7): leave one of them out"
    );
}

#[test]
fn groups_repeat_for_several_paths() {
    let (commands, mut toy) = (commands(), Toy::new());
    let line = "ip route add 10.0.0.0/8 via 192.0.2.1 e1 weight 2 via 2001:db8::1 out-labels 16 17 \
                pref 1 via drop";
    commands.execute(&mut toy, line).unwrap();
    assert_eq!(toy.routes[0].1, ["192.0.2.1 if1 weight 2", "2001:db8::1 labels [16, 17]", "drop"]);
}

#[test]
fn an_interface_whose_name_begins_an_option_is_still_an_interface() {
    let (commands, mut toy) = (commands(), Toy::new());
    toy.interfaces.push("we".into());
    commands.execute(&mut toy, "ip route add 10.0.0.0/8 via 192.0.2.1 we we 3").unwrap();
    assert_eq!(toy.routes[0].1, ["192.0.2.1 if2 weight 3"]);
}

#[test]
fn a_refusal_says_what_where_and_what_would_be_right() {
    assert_eq!(
        refused("set interface state e9 up"),
        "no interface 'e9' (word 4): did you mean e0 or e1?"
    );
    assert_eq!(
        refused("set interface state e0 upp"),
        "unknown word 'upp' (word 5): did you mean up?"
    );
    assert_eq!(
        refused("ip route add 1.2.3.4/33 via 10.0.1.2"),
        "'1.2.3.4/33' does not fit here (word 4): it must be an address with its length such as \
         192.0.2.0/24 or 2001:db8::/32"
    );
    assert_eq!(
        refused("create interface memif id 0 master ring-size 32"),
        "'32' does not fit here (word 8): it must be a number from 64 to 65536"
    );
    assert_eq!(
        refused("set interface state e0 up now"),
        "'now' is one word too many (word 6): the command ends before it"
    );
    assert_eq!(refused("sohw interface"), "unknown word 'sohw' (word 1): did you mean show?");
    assert_eq!(
        refused("zebra"),
        "no command begins with 'zebra' (word 1): `help` lists the commands"
    );
    assert_eq!(refused("set interface"), "the command ends too early (word 3): expected state");
}

#[test]
fn every_show_takes_a_trailing_json() {
    let (commands, mut toy) = (commands(), Toy::new());
    let text = commands.execute(&mut toy, "show interface json").unwrap().to_text();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value[0], json!({"name": "e0", "idx": 0, "state": "down"}));
    let one = commands.execute(&mut toy, "show interface e1 json").unwrap();
    assert_eq!(one.to_json().as_array().unwrap().len(), 1);
}

#[test]
fn a_block_goes_over_several_lines_and_keeps_its_text() {
    let (commands, mut toy) = (commands(), Toy::new());
    let script = "packet-generator new {\n name s0\n rate 1.5M # fast\n data { IP4: 1.2.3.4 -> \
                  5.6.7.8 { x } }\n}\n";
    let script = commands.start_script(script.into(), None, OnRefusal::Stop);
    script.finish(&commands, &mut toy, &mut Collected::default()).unwrap();
    assert_eq!(toy.log, [r#"Some(1500000.0) Some("{ IP4: 1.2.3.4 -> 5.6.7.8 { x } }")"#]);
}

#[test]
fn a_value_may_be_a_number_or_a_word() {
    let commands = commands();
    let line = "create sub-interfaces e0 10 dot1q 10 inner-dot1q any exact-match";
    let seen = commands
        .parse(&(), line, |args| {
            (
                args.has("dot1q"),
                args.get::<u16>("outer"),
                args.get::<&str>("inner").map(String::from),
                args.has("exact-match"),
            )
        })
        .unwrap();
    assert_eq!(seen, (true, Ok(10), Ok("any".into()), true));
}

fn script(text: &str, on_refusal: OnRefusal) -> (Toy, Result<Output, Refusal>, Vec<String>) {
    let (commands, mut toy) = (commands(), Toy::new());
    let mut sink = Collected::default();
    let script = commands.start_script(text.into(), Some("boot.cli".into()), on_refusal);
    let result = script.finish(&commands, &mut toy, &mut sink);
    (toy, result, sink.refusals.iter().map(|refusal| refusal.to_string()).collect())
}

#[test]
fn commands_of_a_kind_in_a_row_are_handed_over_together() {
    let mut text = String::from("set interface state e0 up\n");
    for i in 0..140_000u32 {
        text += &format!(
            "ip route add {}.{}.{}.0/24 via 192.0.2.1\n# {i}\n",
            10 + (i >> 16),
            i >> 8 & 255,
            i & 255
        );
    }
    text += "set interface state e1 up\n";
    let (toy, result, _) = script(&text, OnRefusal::Stop);
    assert_eq!(result.unwrap().to_json()["commands"], 140_002);
    assert_eq!(toy.batches, [65_536, 65_536, 8_928]);
    assert_eq!((toy.routes.len(), toy.up), (140_000, vec![true, true]));
}

#[test]
fn a_script_stops_at_its_first_error_and_says_how_much_was_applied() {
    let text = "set int st e0 up\n\nip route add 10.0.0.0/8 via 1.1.1.1\n\
                ip route add 10.0.0.1/8 via 1.1.1.1\nset int st e1 up\n";
    let (toy, result, _) = script(text, OnRefusal::Stop);
    assert_eq!(
        result.unwrap_err().to_string(),
        "boot.cli:4: bits are set behind the length (word 4); 2 commands before it were applied"
    );
    assert_eq!((toy.routes.len(), toy.up), (1, vec![true, false]));
}

#[test]
fn a_pipe_goes_on_after_an_error_and_reports_each() {
    let text = "ip route add 10.0.0.1/8 via 1.1.1.1\nip route add 10.0.0.0/8 via 1.1.1.1\n\
                nonsense\nip route add 11.0.0.1/8 via 1.1.1.1\n\nset int st e1 up";
    let (toy, result, refusals) = script(text, OnRefusal::Continue);
    assert_eq!(result.unwrap().to_json()["commands"], 2);
    assert_eq!(refusals.len(), 3);
    assert!(
        refusals[0].starts_with("boot.cli:1: ") && refusals[1].starts_with("boot.cli:3: "),
        "{refusals:?}"
    );
    assert!(refusals[2].starts_with("boot.cli:4: "), "{refusals:?}");
    assert_eq!((toy.routes.len(), toy.up), (1, vec![false, true]));
}

#[test]
fn exec_names_the_innermost_file_and_counts_over_all_of_them() {
    let folder = std::env::temp_dir().join(format!("quiver-exec-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (outer, inner) = (folder.join("outer.cli"), folder.join("inner.cli"));
    std::fs::write(&inner, "set int st e0 up\nset int st e7 up\n").unwrap();
    std::fs::write(&outer, format!("set int st e1 up\nexec {}\n", inner.display())).unwrap();
    let (commands, mut toy) = (commands(), Toy::new());
    let refusal = commands.execute(&mut toy, &format!("exec {}", outer.display())).unwrap_err();
    let text = refusal.to_string();
    assert!(text.contains("inner.cli:2: no interface 'e7'"), "{text}");
    assert!(text.ends_with("2 commands before it were applied"), "{text}");
    let chain = |number: u32| folder.join(format!("{number}.cli"));
    (0..10u32).for_each(|n| {
        std::fs::write(chain(n), format!("exec {}\n", chain(n + 1).display())).unwrap()
    });
    let text = commands
        .execute(&mut toy, &format!("exec {}", chain(0).display()))
        .unwrap_err()
        .to_string();
    assert!(text.contains("7.cli:1: files execute each other deeper than 8"), "{text}");
    let text = commands.execute(&mut toy, "exec /nowhere/x.cli").unwrap_err().to_string();
    assert!(text.starts_with("cannot read /nowhere/x.cli: No such file"), "{text}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_running_configuration_makes_the_same_router() {
    let (commands, mut toy) = (commands(), Toy::new());
    commands.execute(&mut toy, "ip route add 10.0.0.0/8 via 192.0.2.1").unwrap();
    commands.execute(&mut toy, "set int st e0 up").unwrap();
    let config = commands.execute(&mut toy, "show running-config").unwrap().to_text();
    assert_eq!(config, "set interface state e0 up\nip route add 10.0.0.0/8 via 192.0.2.1\n");
    let mut fresh = Toy::new();
    let script = commands.start_script(config.clone(), None, OnRefusal::Stop);
    script.finish(&commands, &mut fresh, &mut Collected::default()).unwrap();
    assert_eq!(commands.running_config(&fresh), config);
}

#[test]
fn a_job_streams_its_lines_and_ends() {
    let (commands, mut toy) = (commands(), Toy::new());
    let output = commands.execute(&mut toy, "ping 192.0.2.1 repeat 3 interval 1ms").unwrap();
    assert_eq!(output.to_text(), "reply from 192.0.2.1\n".repeat(3) + "done\n");
}

#[test]
fn completion_offers_words_names_and_what_only_the_user_knows() {
    let (commands, toy) = (commands(), Toy::new());
    let at_end = |line: &str| {
        let found = commands.complete(&toy, line, line.len());
        (
            found.start,
            found.candidates.iter().map(|c| c.label.clone()).collect::<Vec<_>>(),
            found.can_end,
        )
    };
    assert_eq!(at_end("set interface sta"), (14, vec!["state".into()], false));
    assert_eq!(at_end("set int st e"), (11, vec!["e0".into(), "e1".into()], false));
    assert_eq!(at_end("set int st e0 "), (14, vec!["up".into(), "down".into()], false));
    assert_eq!(
        at_end("create interface memif m"),
        (23, vec!["master".into(), "mode".into()], false)
    );
    assert_eq!(at_end("create interface memif master mo"), (30, vec!["mode".into()], false));
    assert_eq!(at_end("ping "), (5, vec!["<address>".into()], false));
    assert_eq!(
        at_end("show runtime "),
        (13, vec!["max".into(), "summary".into(), "verbose".into(), "json".into()], true)
    );
    assert_eq!(at_end("nonsense x"), (10, vec![], false));
}

#[test]
fn a_question_mark_and_help_explain_from_the_declaration() {
    let (commands, mut toy) = (commands(), Toy::new());
    let mut help = |line: &str| commands.execute(&mut toy, line).unwrap().to_text();
    assert!(
        help("create interface memif id 0 ?")
            .contains("ring-size  entries per ring, a power of two")
    );
    assert!(help("create int ?").contains("memif  Create a memif interface"));
    let page = help("help create interface memif");
    assert!(page.starts_with("create interface memif id <number>"), "{page}");
    assert!(
        page.contains(
            "For example:\n  create interface memif id 0 socket-id 1 master ring-size 1024"
        )
    );
    let list = help("help");
    assert!(
        list.contains("set interface state …") && list.contains("Bring an interface up or down"),
        "{list}"
    );
    assert!(
        !list.contains("loopback create-interface"),
        "other forms are on the page of the command: {list}"
    );
    assert!(help("help show int").contains("show interface address"));
}

#[test]
fn every_declaration_parses_its_own_samples_and_their_abbreviations() {
    let commands = commands();
    commands.check().unwrap();
    let samples = commands.samples();
    assert!(samples.contains(&"set interface state e0 down".to_string()), "{samples:#?}");
}

#[test]
fn the_json_form_is_the_same_command() {
    let commands = commands();
    let line = |form: serde_json::Value| match commands.line_of_json(&form) {
        Ok(line) => line,
        Err(refusal) => format!("refused: {refusal}"),
    };
    assert_eq!(
        line(json!({"command": "set interface state", "args": {"interface": "e0", "state": "up"}})),
        "set interface state e0 up"
    );
    assert_eq!(
        line(json!({"command": "ip route", "args": {"add": true, "prefix": "10.0.0.0/8", "via": [
            {
                "next_hop": "192.0.2.1", "interface": "e0", "weight": 2
            }, {"drop": true, "label": [16, 17]}]}})),
        "ip route add 10.0.0.0/8 via 192.0.2.1 e0 weight 2 via drop out-labels 16 17"
    );
    assert_eq!(
        line(json!({
            "command": "create interface memif",
            "args": {"id": 0, "master": true, "secret": "a b"}
        })),
        "create interface memif id 0 master secret \"a b\""
    );
    assert_eq!(
        line(json!({"command": "set interface state", "args": {"interface": "e0"}})),
        "refused: the argument state is missing: it must be up or down"
    );
    assert_eq!(
        line(json!({
            "command": "set interface state",
            "args": {"interface": "e0", "state": "up", "stat": 1}
        })),
        "refused: set interface state: unknown or misplaced argument 'stat': did you mean state?"
    );
    let memif = |key: &str| {
        json!({
            "command": "create interface memif", "args": {"id": 0, "master": true, key: 7}
        })
    };
    assert_eq!(line(memif("socket_id")), "create interface memif id 0 socket-id 7 master");
    assert_eq!(
        line(memif("socket-id")),
        "refused: create interface memif: unknown or misplaced argument 'socket-id': did you mean \
         socket_id?"
    );
    assert_eq!(
        line(json!({
            "command": "set interface state",
            "args": {"interface": "e0\"\nexec x", "state": "up"}
        })),
        "refused: interface: 'e0\"\u{fffd}exec x' cannot be said in a command: leave out quotation \
         marks and line ends"
    );
    assert_eq!(
        line(
            json!({"command": "set interface state", "args": {"interface": "e0 up", "state": "up"}})
        ),
        "set interface state \"e0 up\" up"
    );
    assert!(
        line(json!({"command": "set interface stat"}))
            .contains("did you mean set interface state?")
    );
}

#[test]
fn the_schema_tells_types_and_bounds() {
    let schema = commands().schema();
    let memif = schema
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["command"] == "create interface memif")
        .unwrap();
    let args = memif["args"].as_array().unwrap();
    assert_eq!(
        args[0],
        json!({
            "name": "id", "required": true, "help": "", "type": "number", "min": 0,
            "max": 4294967295u64
        })
    );
    assert!(args.iter().any(|a| a["name"] == "socket_id"), "as answers are spelled");
    assert!(args.iter().any(|a| a["name"] == "mode" && a["words"] == json!(["ethernet", "ip"])));
}

#[test]
fn the_reference_page_has_every_command_with_its_words() {
    let page = commands().reference();
    assert!(page.contains("### create interface memif\n\nCreate a memif interface."), "{page}");
    assert!(page.contains("| `ring-size` | entries per ring, a power of two |"), "{page}");
    assert!(page.contains("loopback create-interface [mac <mac>] [instance <number>]"), "{page}");
    let startup = StartupSchema::default().reference();
    assert!(
        startup.contains(
            "| `page-size default\\|default-hugepage\\|4K\\|2M\\|1G` | size of the memory pages |"
        ),
        "{startup}"
    );
}

/// Lines that differ in what batches know and in what they do not.
fn some_lines(seed: u64, count: usize) -> String {
    let mut state = seed | 1;
    let mut pick = |of: &[&'static str]| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        of[(state >> 33) as usize % of.len()]
    };
    let mut text = String::new();
    for _ in 0..count {
        text += pick(&[
            "ip route add ",
            "ip route add ",
            "ip route add ",
            "ip route del ",
            " ip  route add ",
            "ip ro a ",
        ]);
        text += pick(&[
            "10.0.0.0/8",
            "10.1.0.0/16",
            "2001:db8::/32",
            "10.0.0.1/8",
            "1.2.3.4",
            "300.1.1.1/8",
            "add",
            "\"10.0.0.0/8\"",
            "10.0.0.0/8,",
            "10.0.0.0/8{",
            "#10.0.0.0/8",
            "01.2.3.4/32",
            "1.2.3.4/32",
            "1.2.3.4/32\u{b}",
            "é/8",
            "",
        ]);
        text += pick(&[
            " via 192.0.2.1",
            " via 192.0.2.1",
            " via 192.0.2.2",
            " via drop",
            " via dr",
            " via 192.0.2.1 e0 weight 2",
            " table 7 via 192.0.2.1",
            " via 192.0.2.1 # said",
            " via 192.0.2.1\r",
            " via e9",
            " ?",
            "",
            " via {",
        ]);
        text += pick(&["\n", "\n", "\n", "\n\n", "\n# a comment\n", "\nset int st e1 up\n"]);
    }
    text
}

#[test]
fn a_script_does_what_its_lines_do_one_by_one() {
    for seed in 0..300 {
        let text = some_lines(seed * 0x9e37_79b9, 60);
        let (together, _, refusals) = script(&text, OnRefusal::Continue);
        let (commands, mut apart) = (commands(), Toy::new());
        let mut expected = Vec::new();
        let (mut rest, mut words, mut line) = (text.as_str(), Vec::new(), 1);
        while let Some((length, _)) = quiver_control::words::logical_line(rest, &mut words, true) {
            if let Err(refusal) = commands.execute(&mut apart, &rest[..length]) {
                expected.push(refusal.in_file("boot.cli", line).to_string());
            }
            line += rest[..length].matches('\n').count() as u32;
            rest = &rest[length..];
        }
        assert_eq!(together.routes, apart.routes, "seed {seed}:\n{text}");
        assert_eq!(refusals, expected, "seed {seed}:\n{text}");
    }
}

//! From one configuration to another, with the commands of a toy.

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
    let moved = ["address del e0 ::1/64", "set table e0 0", "set table e0 2", "address e0 ::1/64"];
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

fn with_exchange() -> Commands<Nothing> {
    let mut commands = Commands::<Nothing>::new();
    let command = |syntax| Command::new(syntax).help("").run(|_, _| Ok(Output::none()));
    commands.add(
        command("create loop <instance:u16>")
            .undo("delete loop loop<instance>")
            .makes("interface loop<instance>"),
    );
    commands.add(command("delete loop <interface>"));
    commands.add(
        command(
            "ip route [add|del|replace] {<prefix> [table <:u32>] [count <:1-1000000>] \
             [via <:ip> [<interface>]]}",
        )
        .undo("ip route del <prefix> [table <table>] [count <count>]")
        .exchanged("ip route replace", "add", &["prefix", "table"])
        .counted("prefix", "count")
        .usual(&[("add", "add"), ("count", "1"), ("table", "0")]),
    );
    commands
}

fn exchanged(running: &str, wanted: &str) -> Vec<String> {
    let changes = with_exchange().changes_between(&(), running, wanted).unwrap();
    changes.commands.into_iter().map(|change| change.command).collect()
}

#[test]
fn a_line_about_the_same_is_executed_as_its_exchange_and_the_other_is_not_taken_back() {
    let (one, other) = ("ip route add 10.0.0.0/8 via ::1", "ip ro 10.0.0.0/8 via ::2");
    assert_eq!(exchanged(one, other), ["ip route replace 10.0.0.0/8 via ::2"]);
    assert_eq!(exchanged(one, "ip route 10.0.0.0/8 count 1 table 0 via ::1"), [""; 0]);
    let moved = ["ip route del 10.0.0.0/8", "ip ro 10.0.0.0/8 table 7 via ::2"];
    assert_eq!(
        exchanged(one, &format!("{other} table 7").replace("via ::2 table 7", "table 7 via ::2")),
        moved
    );
    // Several lines about one route join each other.
    let two = "ip route 10.0.0.0/8 via ::2\nip route 10.0.0.0/8 via ::3";
    let joined = ["ip route replace 10.0.0.0/8 via ::2", "ip route 10.0.0.0/8 via ::3"];
    assert_eq!(exchanged(one, two), joined);
    // The new one joins the old one.
    assert_eq!(exchanged(one, &format!("{one}\n{other}")), [other]);
}

#[test]
fn what_stands_on_something_that_goes_is_taken_back_before() {
    let running = "create loop 1\nip route add 10.0.0.0/8 via ::1 loop1";
    let wanted = "ip route add 10.0.0.0/8 via ::1";
    let changes =
        ["ip route del 10.0.0.0/8", "delete loop loop1", "ip route add 10.0.0.0/8 via ::1"];
    assert_eq!(exchanged(running, wanted), changes);
    let both = "create loop 1\nip route add 10.0.0.0/8 via ::2 loop1";
    assert_eq!(exchanged(running, both), ["ip route replace 10.0.0.0/8 via ::2 loop1"]);
}

#[test]
fn consecutive_prefixes_are_the_same_however_they_are_written() {
    let run = "ip route add 10.0.0.0/24 count 4 via ::1";
    let one = |n: u8, via: &str| format!("ip route add 10.0.{n}.0/24 via {via}\n");
    let all: String = (0..4).map(|n| one(n, "::1")).collect();
    assert_eq!(exchanged(run, &all), [""; 0]);
    assert_eq!(exchanged(&all, run), [""; 0]);
    let changed = all.replace("10.0.2.0/24 via ::1", "10.0.2.0/24 via ::2");
    assert_eq!(exchanged(run, &changed), ["ip route replace 10.0.2.0/24 via ::2"]);
    let fewer = "ip route add 10.0.1.0/24 count 2 via ::1";
    assert_eq!(exchanged(run, fewer), ["ip route del 10.0.3.0/24", "ip route del 10.0.0.0/24"]);
    let more = "ip route add count 6 9.255.255.0/24 via ::1";
    let added = ["ip route add 9.255.255.0/24 via ::1", "ip route add 10.0.4.0/24 via ::1"];
    assert_eq!(exchanged(run, more), added);
    // At the end of the address space.
    let last = "ip route add 255.255.254.0/24 count 2 via ::1";
    assert_eq!(exchanged(last, ""), ["ip route del 255.255.254.0/24 count 2"]);
    assert_eq!(
        exchanged(last, "ip route add 255.255.255.0/24 via ::1"),
        ["ip route del 255.255.254.0/24"]
    );
    assert_eq!(exchanged("ip route add ::/0 via ::1", ""), ["ip route del ::/0"]);
}

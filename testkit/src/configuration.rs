//! The running configuration: what random commands are made of, and that a fresh router takes what
//! was printed.

use std::path::Path;

use quiver_control::{Collected, OnRefusal};

use crate::router::Router;

/// Commands that make one or two of each kind of object, for random commands to meet; `{folder}` is
/// a folder of the test's own.
pub const START: &[&str] = &[
    "create loopback interface instance 0",
    "create loopback interface instance 1",
    "create loopback interface instance 2",
    "create packet-generator interface pg0",
    "create packet-generator interface pg1",
    "ip table add 1",
    "ip table add 2",
    "ip6 table add 1",
    "ip6 table add 2",
    "create bridge-domain 1",
    "create bridge-domain 2",
    "create sub-interfaces pg0 2 dot1q 2 exact-match",
    "create bond mode lacp id 0",
    "create memif socket id 1 filename {folder}/m1.sock",
    "create interface memif id 0 socket-id 1 master",
    "set interface ip address loop0 10.0.0.1/24",
    "set interface ip address loop0 2001:db8::1/64",
    "sr policy add bsid fc00:0:2::1 next 2001:db8::2 encap",
    "set sr encaps source addr 2001:db8::1",
];
/// First words of commands that change nothing that stays, wait, read files, or need Linux.
const LEFT_OUT: &[&str] = &[
    "show",
    "help",
    "exec",
    "configuration",
    "ping",
    "clear",
    "trace",
    "pcap trace",
    "test ",
    "create tap",
    "lcp create",
    "lcp delete",
    "lcp evpn",
    "lcp fpm",
    "bfd dplane",
    "lcp resync",
    "delete tap",
    "create host-interface",
    "delete host-interface",
    "create interface af_xdp",
    "delete interface af_xdp",
    "send gratuitous-arp",
    "packet-generator enable-stream",
    "prom ",
    "create test",
    // It takes the memory of all sessions at once.
    "nat44 plugin enable",
    "subscribe",
    "traceroute",
    "quit",
    "echo",
    "comment",
];

/// Does a command with these first words change the configuration, with nothing of Linux and no
/// file?
pub fn changes_state(name: &str) -> bool {
    !LEFT_OUT.iter().any(|prefix| name.starts_with(prefix))
}

/// A statement that did not hold.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The same for faults of one cause, as far as a machine can tell.
    pub kind: String,
    /// What differs, in words.
    pub text: String,
}

/// A folder of this process's own, with captures to read, `a.pcap` and `b.pcap`.
pub fn folder(name: &str) -> &'static Path {
    let folder = std::env::temp_dir().join(format!("quiver-{name}-{}", std::process::id()));
    // A capture without packets: magic, version 2.4, Ethernet.
    let mut head = [0u8; 24];
    head[..4].copy_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
    head[4..8].copy_from_slice(&[2, 0, 4, 0]);
    head[16..20].copy_from_slice(&65_535_u32.to_le_bytes());
    head[20] = 1;
    let made = std::fs::create_dir_all(&folder).and_then(|()| {
        ["a.pcap", "b.pcap"].iter().try_for_each(|name| std::fs::write(folder.join(name), head))
    });
    made.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    Box::leak(folder.into_boxed_path())
}

/// The running configuration, as it is saved.
pub fn running(router: &mut Router) -> String {
    let commands = router.commands();
    let commands = commands.borrow();
    commands.running_config(router.engine())
}

/// The words of a line that say which command it is, without numbers.
pub fn kind_of(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().take(4).collect();
    words.join(" ").replace(|c: char| c.is_ascii_digit(), "")
}

/// A fresh router takes every line, in any order that the declarations allow, and then has this
/// configuration.
pub fn loads_again(mut fresh: Router, lines: &str, config: &str) -> Option<Fault> {
    let commands = fresh.commands();
    let commands = commands.borrow();
    let mut sink = Collected::default();
    let script =
        commands.start_script(lines.to_owned(), Some("config".into()), OnRefusal::Continue);
    let _ = script.finish(&commands, fresh.engine(), &mut sink);
    fresh.step();
    let again = commands.running_config(fresh.engine());
    fresh.discard();
    if let Some(refusal) = sink.refusals.first() {
        let line = refusal
            .source()
            .and_then(|(_, line)| lines.lines().nth(line as usize - 1))
            .unwrap_or("");
        let text = format!("`{line}` does not load: {refusal}\n{lines}");
        let why = kind_of(refusal.what());
        return Some(Fault { kind: format!("does not load: {}: {why}", kind_of(line)), text });
    }
    if again != config {
        let first = config.lines().zip(again.lines()).find(|(a, b)| a != b);
        let (a, b) = first.unwrap_or(("the end", "the end"));
        let kind = format!("is another: {} / {}", kind_of(a), kind_of(b));
        return Some(Fault {
            kind,
            text: format!("{}\n--- all of it:\n{config}", difference(config, &again)),
        });
    }
    None
}

/// Lines that only one of two texts has, or where their order begins to differ.
pub fn difference(a: &str, b: &str) -> String {
    let only = |a: &str, b: &str, sign: &str| -> Vec<String> {
        let lines = a.lines().filter(|line| !b.lines().any(|other| other == *line));
        lines.map(|line| format!("{sign} {line}")).collect()
    };
    let mut all = only(a, b, "-");
    all.extend(only(b, a, "+"));
    if all.is_empty() {
        let first = a.lines().zip(b.lines()).find(|(a, b)| a != b);
        all.extend(first.map(|(a, b)| format!("order: `{a}` and `{b}`")));
    }
    all.join("\n")
}

//! One sequence of commands: what holds after it, and which of its commands are to blame when it does not.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use quiver_control::{Collected, OnRefusal};
use quiver_testkit::{Router, Settings};
use quiverd::features;

use crate::values::{Choices, Random};

/// Commands in a sequence.
const COMMANDS: usize = 60;
/// Forms of commands that a sequence is made of: few, so that they meet.
const FORMS: usize = 14;
/// What a sequence begins with; two thirds of it, at random.
const START: &[&str] = &[
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
/// Commands that are not for this test: they change nothing that stays, wait, read files, or need Linux.
const LEFT_OUT: &[&str] = &[
    "show",
    "help",
    "exec",
    "ping",
    "clear",
    "trace",
    "pcap trace",
    "test ",
    "create tap",
    "delete tap",
    "create host-interface",
    "delete host-interface",
    "create interface af_xdp",
    "delete interface af_xdp",
    "send gratuitous-arp",
    "packet-generator enable-stream",
    "create test",
    "subscribe",
    "traceroute",
    "quit",
    "echo",
    "comment",
];

/// A statement that did not hold.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The same for faults of one cause, as far as a machine can tell.
    pub kind: String,
    pub text: String,
}

/// A router with everything that is built in, on this thread.
pub fn router(folder: &'static Path) -> Router {
    let settings = Settings { buffers: 256, runtime_dir: Some(folder), ..Settings::default() };
    Router::with(settings, &[features::built_in])
}

/// The commands of this seed, as they are taken: names of interfaces are those that exist by then.
pub fn sequence(seed: u64, folder: &'static Path) -> Vec<String> {
    let mut random = Random::new(seed);
    let mut router = router(folder);
    let all: Vec<(usize, String)> =
        router.commands().borrow().form_names().map(str::to_owned).enumerate().collect();
    let mut wanted: Vec<(usize, String)> =
        all.into_iter().filter(|(_, name)| !LEFT_OUT.iter().any(|prefix| name.starts_with(prefix))).collect();
    if random.below(2) == 0 {
        // Those of two families, which have more to do with each other.
        let family = |name: &str| name.replace("set ", "").split(' ').next().unwrap_or("").to_owned();
        let families = [0, 1].map(|_| family(&wanted[random.below(wanted.len())].1));
        wanted.retain(|(_, name)| families.contains(&family(name)));
    }
    let forms: Vec<usize> = (0..FORMS).map(|_| wanted[random.below(wanted.len())].0).collect();
    let mut lines = Vec::new();
    for line in START {
        if random.below(3) > 0 {
            lines.push(line.replace("{folder}", &folder.display().to_string()));
        }
    }
    lines.iter().for_each(|line| drop(router.execute(line)));
    for _ in 0..COMMANDS {
        let interfaces: Vec<String> =
            router.engine().all_interfaces().map(|interface| interface.name.clone()).collect();
        let form = forms[random.below(forms.len())];
        let density = [2, 5, 8][random.below(3)];
        let mut choices = Choices { random: &mut random, interfaces: &interfaces, folder, density };
        let line = router.commands().borrow().random_line(form, &mut choices);
        let done = catch_unwind(AssertUnwindSafe(|| router.execute(&line)));
        assert!(done.is_ok(), "seed {seed}: `{line}` panics after\n{}", lines.join("\n"));
        lines.push(line);
    }
    router.discard();
    lines
}

fn configuration(router: &mut Router) -> String {
    let commands = router.commands();
    let commands = commands.borrow();
    commands.running_config(router.engine())
}

/// The words of a line that say which command it is, without numbers.
fn kind_of(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().take(4).collect();
    words.join(" ").replace(|c: char| c.is_ascii_digit(), "")
}

/// What does not hold after these commands.
pub fn fault(lines: &[String], folder: &'static Path) -> Option<Fault> {
    match catch_unwind(AssertUnwindSafe(|| check(lines, folder))) {
        Ok(fault) => fault,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let text = text.unwrap_or_default();
            Some(Fault { kind: format!("panic {}", kind_of(&text)), text: format!("panic: {text}") })
        }
    }
}

fn check(lines: &[String], folder: &'static Path) -> Option<Fault> {
    let mut router = router(folder);
    let mut before = configuration(&mut router);
    for line in lines {
        let done = router.execute(line);
        let after = configuration(&mut router);
        if let Err(refusal) = done
            && after != before
        {
            let text =
                format!("`{line}` is refused ({refusal}) and changes\n{}", difference(&before, &after));
            router.discard();
            return Some(Fault { kind: format!("refused but changed: {}", kind_of(line)), text });
        }
        before = after;
        router.step();
    }
    let shuffled = {
        let commands = router.commands();
        let mut random = Random::new(lines.len() as u64);
        commands.borrow().running_config_in(router.engine(), &mut |ready| random.below(ready))
    };
    router.discard();
    loads_again(&before, &before, folder).or_else(|| {
        let fault = loads_again(&shuffled, &before, folder)?;
        Some(Fault { kind: format!("in another order: {}", fault.kind), ..fault })
    })
}

/// A fresh router takes every line, in any order that the declarations allow, and then has this configuration.
fn loads_again(lines: &str, config: &str, folder: &'static Path) -> Option<Fault> {
    let mut fresh = router(folder);
    let commands = fresh.commands();
    let commands = commands.borrow();
    let mut sink = Collected::default();
    let script = commands.start_script(lines.to_owned(), Some("config".into()), OnRefusal::Continue);
    let _ = script.finish(&commands, fresh.engine(), &mut sink);
    fresh.step();
    let again = commands.running_config(fresh.engine());
    fresh.discard();
    if let Some(refusal) = sink.refusals.first() {
        let line = refusal.source().and_then(|(_, line)| lines.lines().nth(line as usize - 1)).unwrap_or("");
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
fn difference(a: &str, b: &str) -> String {
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

/// The fewest commands that lead to a fault of the same kind.
pub fn shrink(mut lines: Vec<String>, fault_of: &Fault, folder: &'static Path) -> (Vec<String>, Fault) {
    let mut last = fault_of.clone();
    let mut size = lines.len().div_ceil(2);
    loop {
        let mut at = 0;
        let mut progress = false;
        while at < lines.len() {
            let end = (at + size).min(lines.len());
            let mut fewer = lines.clone();
            fewer.drain(at..end);
            match fault(&fewer, folder) {
                Some(found) if found.kind == fault_of.kind => {
                    (lines, last, progress) = (fewer, found, true);
                }
                _ => at = end,
            }
        }
        match size {
            1 if !progress => return (lines, last),
            1 => {}
            _ => size = size.div_ceil(2),
        }
    }
}

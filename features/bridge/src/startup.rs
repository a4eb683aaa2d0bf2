//! The section `l2fib` of the start-up file.

use quiver_control::{Args, Refusal, Section, StartupPart};

/// The sections of the start-up file.
pub fn startup() -> Vec<StartupPart> {
    let section = Section::new("l2fib")
        .help("The MAC table of all bridge domains")
        .entry("entries-max <:1-16777216>", "entries at most; 8500000 when not given")
        .entry("learn-limit <:0-16777216>", "addresses learned at most; as many as entries when not given")
        .entry("events <:0-1000000>", "events (learned, moved, aged) that are kept; 1024 when not given");
    vec![StartupPart::new(section, commands)]
}

fn commands(args: &Args<'_>) -> Result<Vec<String>, Refusal> {
    let mut lines = Vec::new();
    for (entry, command) in [
        ("entries-max", "set l2fib entries-max"),
        ("learn-limit", "set l2 learn limit"),
        ("events", "set l2fib events"),
    ] {
        if let Some(number) = args.optional::<u64>(entry)? {
            lines.push(format!("{command} {number}"));
        }
    }
    Ok(lines)
}

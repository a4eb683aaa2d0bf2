//! The section `l2fib` of the start-up file.

use quiver_control::{Args, Refusal, Section, StartupPart};

/// The sections of the start-up file.
pub fn startup() -> Vec<StartupPart> {
    let section = Section::new("l2fib")
        .help("The MAC table of all bridge domains")
        .idle("table-size <:size>", "the table grows as it needs; entries-max bounds it")
        .idle("num-buckets <:u32>", "the table grows as it needs; entries-max bounds it")
        .entry("entries-max <:1-16777216>", "entries at most; 8500000 when not given")
        .entry(
            "learn-limit <:0-16777216>",
            "addresses learned at most; as many as entries when not given",
        )
        .entry(
            "events <:0-1000000>",
            "events (learned, moved, aged) that are kept; 1024 when not given",
        );
    let learn = Section::new("l2learn")
        .help("Learning of MAC addresses")
        .entry("limit <:0-16777216>", "addresses learned at most, over all bridge domains");
    vec![StartupPart::new(section, commands), StartupPart::new(learn, learning)]
}

fn learning(args: &Args<'_>) -> Result<Vec<String>, Refusal> {
    let limit = args.optional::<u64>("limit")?;
    Ok(limit.map(|limit| format!("set l2 learn limit {limit}")).into_iter().collect())
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

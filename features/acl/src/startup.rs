//! The section `acl-plugin` of the start-up file.

use quiver_control::{Args, Refusal, Section, StartupPart};

/// The sections of the start-up file.
pub fn startup() -> Vec<StartupPart> {
    let grows = "the table of sessions is reserved as a whole by `connection count max`";
    let compiled = "lists are compiled to a structure of their own (`show acl-plugin tables`)";
    let section = Section::new("acl-plugin")
        .help("Access lists")
        .entry(
            "connection count max <connections:64-16777216>",
            "sessions at most, 75 bytes each; 131072 when not given",
        )
        .entry(
            "reclassify sessions <reclassify:0-1>",
            "with 1, the default, sessions are matched again when a list was replaced",
        )
        .idle("connection hash buckets <buckets:u32>", grows)
        .idle("connection hash memory <memory:size>", grows)
        .idle("main heap size <heap:size>", "no heap is set aside")
        .idle("hash lookup heap size <lookup-heap:size>", compiled)
        .idle("hash lookup hash buckets <lookup-buckets:u32>", compiled)
        .idle("hash lookup hash memory <lookup-memory:size>", compiled)
        .idle("use tuple merge <merge:u32>", compiled)
        .idle("tuple merge split threshold <split:u32>", compiled);
    vec![StartupPart::new(section, commands)]
}

fn commands(args: &Args<'_>) -> Result<Vec<String>, Refusal> {
    let mut lines = Vec::new();
    if let Some(most) = args.optional::<u64>("connections")? {
        lines.push(format!("set acl-plugin session table max-entries {most}"));
    }
    if let Some(reclassify) = args.optional::<u64>("reclassify")? {
        lines.push(format!("set acl-plugin reclassify-sessions {reclassify}"));
    }
    Ok(lines)
}

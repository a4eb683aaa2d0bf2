//! The section `acl-plugin` of the start-up file.

use quiver_control::{Args, Refusal, Section, StartupPart};

/// The sections of the start-up file.
pub fn startup() -> Vec<StartupPart> {
    let compiled = "lists are compiled to a structure of their own (`show acl-plugin tables`)";
    let section = Section::new("acl-plugin")
        .help("Access lists")
        .entry(
            "(connection (count max <connections:64-16777216> | \
             hash (buckets <buckets:u32> | memory <memory:size>)))...",
            "sessions at most, 75 bytes each; 131072 when not given. hash does nothing: count says \
             all",
        )
        .entry(
            "reclassify sessions <reclassify:0-1>",
            "with 1, the default, sessions are matched again when a list was replaced",
        )
        .idle("main heap size <heap:size>", "no heap is set aside")
        .idle(
            "(hash lookup (heap size <lookup-heap:size> | \
             hash (buckets <lookup-buckets:u32> | memory <lookup-memory:size>)))...",
            compiled,
        )
        .idle("use tuple merge <merge:u32>", compiled)
        .idle("tuple merge split threshold <split:u32>", compiled);
    vec![StartupPart::new(section, commands)]
}

fn commands(args: &Args<'_>) -> Result<Vec<String>, Refusal> {
    let mut lines = Vec::new();
    for group in args.groups("connection") {
        let Some(most) = group.optional::<u64>("connections")? else { continue };
        lines.push(format!("set acl-plugin session table max-entries {most}"));
    }
    if let Some(reclassify) = args.optional::<u64>("reclassify")? {
        lines.push(format!("set acl-plugin reclassify-sessions {reclassify}"));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use quiver_control::{StartupFile, StartupSchema};

    use super::*;

    #[test]
    fn a_section_written_for_vpp_sizes_the_table() {
        let mut schema = StartupSchema::default();
        let [part] = startup().try_into().ok().expect("one section");
        let StartupPart { section, .. } = part;
        schema.add(section);
        let text = "acl-plugin { connection hash buckets 65536 connection count max 1000 \
                    reclassify sessions 0 use tuple merge 1 }";
        let file = StartupFile::from_text("startup.conf", text);
        let parsed = schema.parse(&file).expect("good");
        let lines = commands(&parsed.section("acl-plugin").expect("a section")).expect("commands");
        let table = "set acl-plugin session table max-entries 1000";
        assert_eq!(lines, [table, "set acl-plugin reclassify-sessions 0"]);
    }
}

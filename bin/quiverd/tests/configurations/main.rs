//! Every configuration that commands reach loads again: random commands of the real grammar against the whole
//! router, then its running configuration on a fresh one.
//!
//! `QUIVER_FUZZ_CASES=5000 QUIVER_FUZZ_SEED=1 cargo test -p quiverd --test configurations` makes a campaign of
//! it; it says every kind of fault that it finds, each with the fewest commands that lead to it.

mod case;
mod values;

use std::collections::BTreeMap;
use std::path::Path;

/// Sequences that are tried when nobody says how many.
const CASES: u64 = 40;

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// A folder of this test's own, with a capture to read.
fn folder() -> &'static Path {
    let folder = std::env::temp_dir().join(format!("quiver-configurations-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // A capture without packets: magic, version 2.4, Ethernet.
    let mut head = [0u8; 24];
    head[..4].copy_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
    head[4..8].copy_from_slice(&[2, 0, 4, 0]);
    head[16..20].copy_from_slice(&65_535_u32.to_le_bytes());
    head[20] = 1;
    ["a.pcap", "b.pcap"].iter().for_each(|name| std::fs::write(folder.join(name), head).unwrap());
    Box::leak(folder.into_boxed_path())
}

#[test]
fn every_configuration_that_commands_reach_loads_again() {
    let folder = folder();
    let first = number("QUIVER_FUZZ_SEED", 1);
    let mut faults: BTreeMap<String, String> = BTreeMap::new();
    for seed in first..first + number("QUIVER_FUZZ_CASES", CASES) {
        let lines = case::sequence(seed, folder);
        let Some(fault) = case::fault(&lines, folder) else { continue };
        if faults.contains_key(&fault.kind) {
            continue;
        }
        let (lines, fault) = case::shrink(lines, &fault, folder);
        let text = format!("seed {seed}: after\n  {}\n{}\n", lines.join("\n  "), fault.text);
        println!("=== {}\n{text}", fault.kind);
        faults.insert(fault.kind, text);
    }
    let _ = std::fs::remove_dir_all(folder);
    assert!(
        faults.is_empty(),
        "{} kinds of fault:\n{}",
        faults.len(),
        faults.values().cloned().collect::<String>()
    );
}

//! Every configuration that commands reach loads again: random commands of the real grammar against
//! the whole router, then its running configuration on a fresh one.
//!
//! `QUIVER_FUZZ_CASES=5000 QUIVER_FUZZ_SEED=1 cargo test -p quiverd configurations` makes a
//! campaign of it; it says every kind of fault that it finds, each with the fewest commands that
//! lead to it.

mod case;
mod changes;

use std::collections::BTreeMap;

use quiver_testkit::configuration::folder;

/// Sequences that are tried when nobody says how many.
const CASES: u64 = 40;

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn every_configuration_that_commands_reach_loads_again() {
    let folder = folder("configurations");
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

#[test]
fn the_changes_between_two_configurations_lead_from_the_one_to_the_other_and_back() {
    let folder = folder("changes");
    let first = number("QUIVER_FUZZ_SEED", 1);
    let mut faults: BTreeMap<String, String> = BTreeMap::new();
    for seed in first..first + number("QUIVER_FUZZ_CASES", CASES) {
        let lines = changes::pair(seed, folder);
        let Some(fault) = changes::fault(&lines[0], &lines[1], folder) else { continue };
        if faults.contains_key(&fault.kind) {
            continue;
        }
        let ([from, to], fault) = changes::shrink(lines, &fault, folder);
        let text = format!(
            "seed {seed}: from\n  {}\nto\n  {}\n{}\n",
            from.join("\n  "),
            to.join("\n  "),
            fault.text
        );
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

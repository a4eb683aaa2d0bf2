//! Every configuration that commands reach loads again: random commands of the real grammar against
//! the whole router, then its running configuration on a fresh one.
//!
//! `QUIVER_FUZZ_CASES=5000 QUIVER_FUZZ_SEED=1 cargo test -p quiverd configurations` makes a
//! campaign of it; it says every kind of fault that it finds, each with the fewest commands that
//! lead to it.

mod case;
mod changes;
mod documents;
mod schema;

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

#[test]
fn every_configuration_is_a_document_that_leads_to_it() {
    let folder = folder("documents");
    let first = number("QUIVER_FUZZ_SEED", 1);
    let mut faults: BTreeMap<String, String> = BTreeMap::new();
    for seed in first..first + number("QUIVER_FUZZ_CASES", CASES) {
        let lines = case::sequence(seed, folder);
        let Some(fault) = documents::fault(&lines, folder) else { continue };
        if faults.contains_key(&fault.kind) {
            continue;
        }
        let (lines, fault) =
            case::shrink_by(lines, &fault, |lines| documents::fault(lines, folder));
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
fn the_schema_refuses_what_is_no_document() {
    let folder = folder("schema");
    let router = case::router(folder);
    let commands = router.commands();
    let commands = commands.borrow();
    let schema = commands.document_schema();
    let lines = "create loopback interface instance 0\nset interface mtu packet 1400 loop0\n";
    let document = commands.document_of(lines).unwrap().json();
    assert_eq!(schema::faults(&schema, &document), [""; 0]);
    for wrong in documents::spoiled(&document) {
        assert!(!schema::faults(&schema, &wrong).is_empty(), "{wrong:#}");
    }
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn every_command_of_a_configuration_has_its_place_in_a_document() {
    let folder = folder("places");
    let router = case::router(folder);
    let commands = router.commands();
    let commands = commands.borrow();
    assert_eq!(commands.without_entry(), [""; 0]);
    let _ = std::fs::remove_dir_all(folder);
}

//! Every answer of a `show` of a whole router has the form that is published for it.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use quiver_control::answers::{self, Published};
use quiver_control::{Commands, Output};
use quiver_core::Engine;
use serde_json::Value;

/// Set to anything, answers widen the published forms instead of being checked against them.
const RECORD: &str = "QUIVER_RECORD_ANSWERS";

static PUBLISHED: Mutex<Option<Published>> = Mutex::new(None);

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../bin/quiverd/answers.json")
}

fn published() -> Published {
    fs::read_to_string(file()).map_or_else(|_| Published::new(), |text| answers::read(&text))
}

/// Compare the answer of a `show` with its published form. Other commands, and shows that only a
/// test registers, are passed over.
#[track_caller]
pub fn check(commands: &Commands<Engine>, line: &str, output: &Output) {
    let Some(name) = commands.name_of(line).filter(|name| name.starts_with("show ")) else {
        return;
    };
    if name == "show schema" {
        return; // the answer is a schema, of any form
    }
    let json = output.to_json();
    let mut guard = PUBLISHED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = guard.get_or_insert_with(published);
    if std::env::var_os(RECORD).is_some() {
        answers::faults(&json).iter().for_each(|fault| eprintln!("`{line}`: {fault}"));
        return record(name, output.schema());
    }
    let Some(schema) = known.get(name) else { return };
    let mut differences = answers::differences(schema, &json);
    differences.extend(answers::narrower(schema, &output.schema()));
    let faults = answers::faults(&json);
    drop(guard);
    assert!(
        differences.is_empty() && faults.is_empty(),
        "`{line}` does not answer as published (`make answers` publishes): {differences:#?} \
         {faults:#?}\n{json:#}"
    );
}

/// Widen the published form by an answer. Other test programs do the same meanwhile, so the file is
/// locked.
fn record(name: &str, seen: Value) {
    let path = file();
    let lock = fs::File::open(&path).expect("the published answers");
    lock.lock().expect("a lock of the published answers");
    let mut all = published();
    let merged = all.get(name).map_or_else(|| seen.clone(), |known| answers::merge(known, &seen));
    if all.get(name) == Some(&merged) {
        return;
    }
    all.insert(name.to_owned(), merged);
    all.sort_keys();
    let text = serde_json::to_string_pretty(&all).unwrap_or_else(|error| panic!("{error}"));
    fs::write(&path, text + "\n").unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

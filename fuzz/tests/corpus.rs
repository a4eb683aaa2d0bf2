//! The kept corpus, replayed: inputs that once showed a fault, and those that reach most of the
//! code.

use std::fs;
use std::path::{Path, PathBuf};

use quiver_fuzz::{TARGETS, Target};

/// Bytes of all that is kept, so that a copy of the project stays small.
const CORPUS_BYTES_MAX: u64 = 2 << 20;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Names the input while it runs, so that a panic shows which one it was.
struct Running<'a>(&'a Path);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input is {}", self.0.display());
        }
    }
}

fn replay(name: &str) {
    let target: Target = TARGETS.iter().find(|(other, _)| *other == name).unwrap().1;
    let files = files(&corpus(name));
    assert!(!files.is_empty(), "{name} has no corpus");
    for file in &files {
        let running = Running(file);
        target(&fs::read(file).unwrap());
        drop(running);
    }
}

#[test]
fn no_kept_input_shows_a_fault_in_parsers_of_headers() {
    replay("headers");
}

#[test]
fn no_kept_input_shows_a_fault_in_messages_of_linux_and_daemons() {
    replay("messages");
}

#[test]
fn no_kept_input_shows_a_fault_in_readers_of_files() {
    replay("files");
}

#[test]
fn no_kept_input_shows_a_fault_in_commands() {
    replay("commands");
}

#[test]
fn no_kept_input_shows_a_fault_in_the_graph() {
    replay("graph");
}

#[test]
fn the_corpus_is_small_and_belongs_to_targets() {
    let folders = files(&corpus(""));
    let mut names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(folders, names.iter().map(|name| corpus(name)).collect::<Vec<_>>());
    let kept = folders.iter().flat_map(|folder| files(folder));
    let bytes: u64 = kept.map(|file| fs::metadata(file).unwrap().len()).sum();
    assert!(bytes <= CORPUS_BYTES_MAX, "{bytes} bytes: `make fuzz` merges it");
}

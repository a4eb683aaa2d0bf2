//! The publish and patch protocol of a word and its run, in all orders that the memory model
//! allows: `RUSTFLAGS="--cfg loom" cargo test -p quiver-tables --release --lib lpm`

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use quiver_core::memory::epoch::Epochs;

use super::memory::{base_of, bitmap_of, inline_word, place_in, run_word};

const MISS: u32 = 1;
const OLD: u32 = 2;
const NEW: u32 = 3;
/// What stands in a run that was given to another word.
const FOREIGN: u32 = 99;

struct ModelNode {
    word: AtomicU64,
    entries: [AtomicU32; 6],
}

impl ModelNode {
    /// Slots 0 to 3 lead to `MISS`, the rest to `OLD`; the run lies at 0.
    fn new() -> ModelNode {
        let entries = [MISS, OLD, 0, 0, 0, 0].map(AtomicU32::new);
        ModelNode { word: AtomicU64::new(run_word(0b1_0001, 0)), entries }
    }

    /// As the reader's and the kernels' code does it.
    fn lookup(&self, slot: u32) -> u32 {
        let word = self.word.load(Ordering::Acquire);
        match bitmap_of(word) {
            0 => base_of(word),
            _ => self.entries[place_in(word, slot) as usize].load(Ordering::Acquire),
        }
    }

    fn write_run(&self, base: usize, run: &[u32]) {
        for (entry, value) in self.entries[base..].iter().zip(run) {
            entry.store(*value, Ordering::Release);
        }
    }
}

/// A reader looks slot 4 up twice while the writer does `patch`; it may find only `OLD` or `NEW`,
/// and never `OLD` after `NEW`.
fn check(patch: impl Fn(&ModelNode, &Epochs) + Send + Sync + Copy + 'static) {
    loom::model(move || {
        let (words, epochs) = (Arc::new(ModelNode::new()), Epochs::new(1));
        let mut reader = epochs.reader(0);
        let seen = words.clone();
        let worker = loom::thread::spawn(move || {
            reader.wake();
            let mut last = OLD;
            for _ in 0..2 {
                let found = seen.lookup(4);
                assert!(found == NEW || (found == OLD && last == OLD), "{found} after {last}");
                last = found;
                reader.quiescent();
            }
            reader.sleep();
        });
        patch(&words, &epochs);
        worker.join().expect("the reader is content");
    });
}

/// The run that was retired goes to another word as soon as the epochs allow it.
fn reuse_first_run(words: &ModelNode, epochs: &Epochs) {
    let stamp = epochs.stamp();
    if epochs.has_passed(stamp) {
        words.write_run(0, &[FOREIGN, FOREIGN]);
    }
}

#[test]
fn a_word_that_gets_a_new_run_leads_to_the_old_or_the_new_answer() {
    check(|words, epochs| {
        words.write_run(2, &[MISS, NEW, MISS]);
        words.word.store(run_word(0b11_0001, 2), Ordering::Release);
        reuse_first_run(words, epochs);
    });
}

#[test]
fn a_word_that_becomes_one_leaf_leads_to_the_old_or_the_new_answer() {
    check(|words, epochs| {
        words.word.store(inline_word(NEW), Ordering::Release);
        reuse_first_run(words, epochs);
    });
}

#[test]
fn a_run_of_the_same_shape_is_patched_in_place() {
    check(|words, _| words.write_run(0, &[MISS, NEW]));
}

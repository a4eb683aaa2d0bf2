//! The exact matches against `HashMap`: every variant, batches and single look-ups, growth and
//! back.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use quiver_core::cpu::Variant;
use quiver_core::memory::epoch::{Epochs, Reader};
use quiver_tables::exact::{
    ExactError, ExactUse, Limits, LongWriter, NOT_FOUND, Objects, ObjectsWriter, Seed, ShortWriter,
};
use quiver_tables::synthetic::Random;

const MISS: u64 = u64::MAX;

fn limits(entries_max: usize) -> Limits {
    Limits { what: "test table", entries_max, remedy: "raise it with \"set test entries-max\"" }
}

/// Either table, from numbers to numbers.
trait Subject: Sized {
    fn new(epochs: &Arc<Epochs>, entries_max: usize, seed: Seed) -> Self;
    fn insert(&mut self, key: u64, value: u64) -> Result<Option<u64>, ExactError>;
    fn remove(&mut self, key: u64) -> Option<u64>;
    fn get(&self, key: u64) -> Option<u64>;
    fn lookup(&self, key: u64) -> Option<u64>;
    fn lookup_slice(&self, variant: Variant, keys: &[u64], values: &mut [u64]);
    fn entries(&self) -> HashMap<u64, u64>;
    fn collect(&mut self);
    fn usage(&self) -> ExactUse;
}

struct Short(ShortWriter<u64>);

impl Subject for Short {
    fn new(epochs: &Arc<Epochs>, entries_max: usize, seed: Seed) -> Self {
        Short(ShortWriter::new(epochs, limits(entries_max), seed).expect("memory"))
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<Option<u64>, ExactError> {
        self.0.insert(key, value)
    }
    fn remove(&mut self, key: u64) -> Option<u64> {
        self.0.remove(key)
    }
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(key)
    }
    fn lookup(&self, key: u64) -> Option<u64> {
        self.0.table().lookup(key)
    }
    fn lookup_slice(&self, variant: Variant, keys: &[u64], values: &mut [u64]) {
        self.0.table().lookup_slice(variant, keys, MISS, values);
    }
    fn entries(&self) -> HashMap<u64, u64> {
        self.0.iter().collect()
    }
    fn collect(&mut self) {
        self.0.collect();
    }
    fn usage(&self) -> ExactUse {
        self.0.usage()
    }
}

/// Keys of `N` words in objects whose last word is the value.
struct Long<const N: usize> {
    table: LongWriter<Objects<8>, N>,
    objects: ObjectsWriter<8>,
}

impl<const N: usize> Long<N> {
    fn key(key: u64) -> [u64; N] {
        std::array::from_fn(
            |word| if word == N - 1 { key } else { key.rotate_left(word as u32) & 3 },
        )
    }
    fn value(&self, index: u32) -> u64 {
        self.objects.objects().get(index)[7].load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl<const N: usize> Subject for Long<N> {
    fn new(epochs: &Arc<Epochs>, entries_max: usize, seed: Seed) -> Self {
        // One more than the table takes: a replacement needs both at once.
        let objects = ObjectsWriter::new(epochs, limits(entries_max + 1)).expect("memory");
        let keys = objects.objects().clone();
        Long {
            table: LongWriter::new(epochs, limits(entries_max), seed, keys).expect("memory"),
            objects,
        }
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<Option<u64>, ExactError> {
        let mut object = [0; 8];
        object[..N].copy_from_slice(&Self::key(key));
        object[7] = value;
        let index = self.objects.take(object)?;
        match self.table.insert(index) {
            Ok(old) => Ok(old.map(|old| {
                self.objects.retire(old);
                self.value(old)
            })),
            Err(error) => {
                self.objects.retire(index);
                Err(error)
            }
        }
    }
    fn remove(&mut self, key: u64) -> Option<u64> {
        let index = self.table.remove(&Self::key(key))?;
        self.objects.retire(index);
        Some(self.value(index))
    }
    fn get(&self, key: u64) -> Option<u64> {
        self.table.get(&Self::key(key)).map(|index| self.value(index))
    }
    fn lookup(&self, key: u64) -> Option<u64> {
        self.table.table().lookup(&Self::key(key)).map(|index| self.value(index))
    }
    fn lookup_slice(&self, variant: Variant, keys: &[u64], values: &mut [u64]) {
        let keys: Vec<_> = keys.iter().map(|key| Self::key(*key)).collect();
        let mut indexes = vec![0; keys.len()];
        self.table.table().lookup_slice(variant, &keys, &mut indexes);
        for (value, index) in values.iter_mut().zip(indexes) {
            *value = if index == NOT_FOUND { MISS } else { self.value(index) };
        }
    }
    fn entries(&self) -> HashMap<u64, u64> {
        let word = |index, at: usize| {
            self.objects.objects().get(index)[at].load(std::sync::atomic::Ordering::Relaxed)
        };
        self.table.iter().map(|index| (word(index, N - 1), word(index, 7))).collect()
    }
    fn collect(&mut self) {
        self.table.collect();
        self.objects.collect();
    }
    fn usage(&self) -> ExactUse {
        self.table.usage()
    }
}

/// Every way to look up says what the model says, for keys that are in and keys that are not.
fn check<S: Subject>(subject: &S, model: &HashMap<u64, u64>, keys: &[u64]) {
    assert_eq!(subject.usage().entries, model.len());
    for key in keys {
        assert_eq!(subject.lookup(*key), model.get(key).copied(), "{key:#x}");
        assert_eq!(subject.get(*key), model.get(key).copied(), "{key:#x}, for the writer");
    }
    let mut values = vec![0; keys.len()];
    for variant in Variant::available() {
        for batch in [1, 7, 16, 64, 100, 256, 600] {
            values.fill(0);
            for (keys, values) in keys.chunks(batch).zip(values.chunks_mut(batch)) {
                subject.lookup_slice(variant, keys, values);
            }
            for (key, value) in keys.iter().zip(&values) {
                let expected = model.get(key).copied().unwrap_or(MISS);
                assert_eq!(*value, expected, "{key:#x}, {variant:?}, batches of {batch}");
            }
        }
    }
}

/// What may be done to a table.
#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u64),
    Remove(u64),
    InsertMany { first: u64, stride: u64, count: u64 },
    RemoveMany { first: u64, stride: u64, count: u64 },
    Collect,
    Pass,
}

/// Few keys, near together, so that steps meet; the extremes; and runs that make segments split.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key =
        prop_oneof![8 => 0u64..64, 1 => any::<u64>(), 1 => Just(u64::MAX), 1 => Just(1 << 63)];
    let many =
        || (0u64..6000, prop::sample::select(vec![1u64, 1 << 8, 1 << 32, 1 << 48]), 0u64..6000);
    let step = prop_oneof![
        8 => (key.clone(), 0u64..1000).prop_map(|(key, value)| Step::Insert(key, value)),
        8 => key.prop_map(Step::Remove),
        2 => many().prop_map(|(first, stride, count)| Step::InsertMany { first, stride, count }),
        2 => many().prop_map(|(first, stride, count)| Step::RemoveMany { first, stride, count }),
        1 => Just(Step::Collect),
        2 => Just(Step::Pass),
    ];
    prop::collection::vec(step, 1..40)
}

fn run<S: Subject>(steps: Vec<Step>, seed: u64) {
    let epochs = Epochs::new(1);
    let mut worker = epochs.reader(0);
    worker.wake();
    let mut subject = S::new(&epochs, 1 << 20, Seed::fixed(seed));
    let mut model = HashMap::new();
    let mut seen = vec![0, u64::MAX];
    let note =
        |seen: &mut Vec<u64>, keys: &[u64]| seen.extend(keys.iter().step_by(keys.len() / 40 + 1));
    for step in steps {
        match step {
            Step::Insert(key, value) => {
                let old = subject.insert(key, value).expect("room");
                assert_eq!(old, model.insert(key, value));
                seen.push(key);
            }
            Step::Remove(key) => {
                assert_eq!(subject.remove(key), model.remove(&key));
                seen.push(key);
            }
            Step::InsertMany { first, stride, count } => {
                let keys: Vec<_> = (first..first + count).map(|n| n.wrapping_mul(stride)).collect();
                for key in &keys {
                    assert_eq!(
                        subject.insert(*key, first).expect("room"),
                        model.insert(*key, first)
                    );
                }
                note(&mut seen, &keys);
            }
            Step::RemoveMany { first, stride, count } => {
                let keys: Vec<_> = (first..first + count).map(|n| n.wrapping_mul(stride)).collect();
                keys.iter().for_each(|key| assert_eq!(subject.remove(*key), model.remove(key)));
                note(&mut seen, &keys);
            }
            Step::Collect => subject.collect(),
            Step::Pass => worker.quiescent(),
        }
        check(&subject, &model, &seen[seen.len().saturating_sub(80)..]);
    }
    check(&subject, &model, &seen);
    assert_eq!(subject.entries(), model);
    finish(subject, model, worker);
}

/// Take all out: nothing may be left, nor wait.
fn finish<S: Subject>(mut subject: S, mut model: HashMap<u64, u64>, mut worker: Reader) {
    for key in model.keys() {
        assert!(subject.remove(*key).is_some());
    }
    let keys: Vec<_> = model.drain().map(|(key, _)| key).take(500).collect();
    check(&subject, &model, &keys);
    subject.collect();
    worker.quiescent();
    subject.collect();
    let usage = subject.usage();
    assert_eq!((usage.entries, usage.waiting), (0, 0), "{usage:?}");
    worker.sleep();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_short_table_equals_a_hash_map(steps in steps(), seed in any::<u64>()) {
        run::<Short>(steps, seed);
    }

    #[test]
    fn a_table_of_two_words_equals_a_hash_map(steps in steps(), seed in any::<u64>()) {
        run::<Long<2>>(steps, seed);
    }

    #[test]
    fn a_table_of_five_words_equals_a_hash_map(steps in steps(), seed in any::<u64>()) {
        run::<Long<5>>(steps, seed);
    }
}

/// Grow, churn and shrink by random steps; memory must follow.
fn grow_and_shrink<S: Subject>(entries: u64) {
    let epochs = Epochs::new(0);
    let mut subject = S::new(&epochs, 1 << 20, Seed::random());
    let (mut model, mut random) = (HashMap::new(), Random::new(3));
    for round in 0..2 {
        for n in 0..entries {
            assert_eq!(subject.insert(n << 8, n).expect("room"), model.insert(n << 8, n));
        }
        let full = subject.usage();
        for _ in 0..entries {
            let key = random.below(2 * entries) << 8;
            match random.below(3) {
                0 => {
                    assert_eq!(subject.insert(key, round).expect("room"), model.insert(key, round))
                }
                _ => assert_eq!(subject.remove(key), model.remove(&key)),
            }
        }
        let sample: Vec<_> = (0..5000).map(|_| random.below(2 * entries) << 8).collect();
        check(&subject, &model, &sample);
        assert_eq!(subject.entries(), model);
        let keys: Vec<_> = model.keys().copied().collect();
        for (n, key) in keys.iter().enumerate() {
            assert_eq!(subject.remove(*key), model.remove(key));
            if n % 10_000 == 0 {
                subject.collect();
            }
        }
        subject.collect();
        subject.collect();
        let empty = subject.usage();
        assert_eq!((empty.entries, empty.waiting), (0, 0));
        assert!(empty.segments <= 2 && full.segments > 20, "{full:?} became {empty:?}");
        assert!(empty.resident_bytes < full.resident_bytes, "{full:?} became {empty:?}");
        assert!(empty.resident_bytes <= 5 << 20, "{empty:?}");
    }
}

#[test]
fn a_short_table_grows_and_gives_its_memory_back() {
    grow_and_shrink::<Short>(300_000);
}

#[test]
fn a_long_table_grows_and_gives_its_memory_back() {
    grow_and_shrink::<Long<2>>(400_000);
}

/// At its limit a table refuses what is new, takes what it has, and goes on once there is room.
fn full<S: Subject>() {
    let epochs = Epochs::new(0);
    let mut subject = S::new(&epochs, 5000, Seed::random());
    (0..5000).for_each(|key| assert!(matches!(subject.insert(key, key), Ok(None))));
    let error = subject.insert(5000, 1).expect_err("full");
    let text = error.to_string();
    assert!(
        text.contains("test table")
            && text.contains("5000")
            && text.contains("set test entries-max")
    );
    assert_eq!(subject.lookup(5000), None);
    assert_eq!(subject.insert(7, 8).expect("it is in"), Some(7));
    assert_eq!(subject.remove(9), Some(9));
    assert_eq!(subject.insert(5000, 1).expect("room again"), None);
    assert_eq!(subject.lookup(5000), Some(1));
}

#[test]
fn a_full_table_refuses_by_name_and_goes_on() {
    full::<Short>();
    full::<Long<3>>();
}

#[test]
fn a_key_that_comes_and_goes_while_a_worker_stalls_is_told_to_wait() {
    let epochs = Epochs::new(1);
    let mut worker = epochs.reader(0);
    worker.wake();
    let mut subject = Short::new(&epochs, 10_000, Seed::random());
    let refused = (0..1000).find_map(|n| {
        let refused = subject.insert(7, n).err();
        refused.is_none().then(|| assert_eq!(subject.remove(7), Some(n)));
        refused
    });
    let refused = refused.expect("all slots of the key wait for the worker");
    assert!(matches!(refused, ExactError::Waiting { .. }), "{refused}");
    worker.quiescent();
    assert_eq!(subject.insert(7, 3).expect("room"), None);
}

/// A worker that does not end its pass: what waits for it is bounded, then inserts are refused, and
/// all is well when it comes back.
#[test]
fn a_worker_that_stalls_cannot_make_a_table_take_all_memory() {
    let epochs = Epochs::new(1);
    let mut worker = epochs.reader(0);
    worker.wake();
    let mut subject = Short::new(&epochs, 10_000, Seed::random());
    let mut refused = None;
    for n in 0..40_000_000u64 {
        if let Err(error) = subject.insert(n, n) {
            refused = Some(error);
            break;
        }
        if n >= 5000 {
            assert_eq!(subject.remove(n - 5000), Some(n - 5000));
        }
    }
    let refused = refused.expect("slots and segments wait for the worker");
    assert!(matches!(refused, ExactError::Waiting { .. }), "{refused}");
    assert!(refused.to_string().contains("show workers"));
    worker.quiescent();
    subject.collect();
    worker.quiescent();
    assert_eq!(subject.insert(1 << 40, 3).expect("room"), None);
    assert_eq!(subject.lookup(1 << 40), Some(3));
    worker.sleep();
}

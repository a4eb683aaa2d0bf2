//! The exact matches while their writer works: readers see whole entries, miss nothing that is
//! there, and keep no memory from being used again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quiver_core::cpu::Variant;
use quiver_core::memory::epoch::{Epochs, Reader};
use quiver_tables::exact::{
    ExactError, Limits, LongTable, LongWriter, NOT_FOUND, Objects, ObjectsWriter, Seed, ShortTable,
    ShortWriter,
};
use quiver_tables::synthetic::Random;

const LIMITS: Limits = Limits { what: "test table", entries_max: 1 << 20, remedy: "ask for more" };
const MISS: u64 = u64::MAX;

/// Keys below this are always in; their values only grow.
const STABLE: u64 = 300;
/// Keys from here come one after the other, and stay until the crowd leaves.
const CROWD: u64 = 1 << 32;
const CROWD_MAX: u64 = 30_000;
/// Keys from here come and go.
const FLICKER: u64 = 1 << 40;
const FLICKERS: u64 = 500;

/// A value says whose it is and which.
fn value(key: u64, version: u64) -> u64 {
    key << 20 | version & 0xf_ffff
}

/// On a busy machine a reader is away for long at times. Only then is an entry refused, until it
/// comes back.
fn wait_for_readers(refused: &ExactError) {
    assert!(matches!(refused, ExactError::Waiting { .. }), "{refused}");
    std::thread::yield_now();
}

trait Ask: Send {
    fn ask(&self, variant: Option<Variant>, keys: &[u64], values: &mut [u64]);
}

trait Write {
    type Reader: Ask + Clone;
    fn new(epochs: &Arc<Epochs>) -> Self;
    fn reader(&self) -> Self::Reader;
    fn insert(&mut self, key: u64, version: u64);
    fn remove(&mut self, key: u64);
    fn collect(&mut self);
    fn segments(&self) -> usize;
}

impl Ask for ShortTable<u64> {
    fn ask(&self, variant: Option<Variant>, keys: &[u64], values: &mut [u64]) {
        match variant {
            Some(variant) => self.lookup_slice(variant, keys, MISS, values),
            None => keys
                .iter()
                .zip(values)
                .for_each(|(key, value)| *value = self.lookup(*key).unwrap_or(MISS)),
        }
    }
}

impl Write for ShortWriter<u64> {
    type Reader = ShortTable<u64>;
    fn new(epochs: &Arc<Epochs>) -> Self {
        ShortWriter::new(epochs, LIMITS, Seed::random()).expect("memory")
    }
    fn reader(&self) -> ShortTable<u64> {
        self.table()
    }
    fn insert(&mut self, key: u64, version: u64) {
        while let Err(error) = self.insert(key, value(key, version)) {
            wait_for_readers(&error);
            self.collect();
        }
    }
    fn remove(&mut self, key: u64) {
        self.remove(key).expect("it was in");
    }
    fn collect(&mut self) {
        self.collect();
    }
    fn segments(&self) -> usize {
        self.usage().segments
    }
}

type Table = LongTable<Objects<8>, 3>;

fn words(key: u64) -> [u64; 3] {
    [key & 7, 5, key]
}

impl Ask for Table {
    fn ask(&self, variant: Option<Variant>, keys: &[u64], values: &mut [u64]) {
        let keys: Vec<_> = keys.iter().map(|key| words(*key)).collect();
        let mut indexes = vec![NOT_FOUND; keys.len()];
        match variant {
            Some(variant) => self.lookup_slice(variant, &keys, &mut indexes),
            None => keys.iter().zip(&mut indexes).for_each(|(key, index)| {
                *index = self.lookup(key).unwrap_or(NOT_FOUND);
            }),
        }
        for ((index, value), key) in indexes.into_iter().zip(values).zip(&keys) {
            *value = MISS;
            if index != NOT_FOUND {
                let object = self.keys().get(index);
                assert_eq!(
                    object[2].load(Ordering::Relaxed),
                    key[2],
                    "an object changed inside of a pass"
                );
                *value = object[7].load(Ordering::Relaxed);
            }
        }
    }
}

struct Long {
    table: LongWriter<Objects<8>, 3>,
    objects: ObjectsWriter<8>,
}

impl Write for Long {
    type Reader = Table;
    fn new(epochs: &Arc<Epochs>) -> Self {
        let objects = ObjectsWriter::new(epochs, LIMITS).expect("memory");
        let keys = objects.objects().clone();
        Long {
            table: LongWriter::new(epochs, LIMITS, Seed::random(), keys).expect("memory"),
            objects,
        }
    }
    fn reader(&self) -> Table {
        self.table.table()
    }
    fn insert(&mut self, key: u64, version: u64) {
        let [a, b, c] = words(key);
        let object = [a, b, c, 0, 0, 0, 0, value(key, version)];
        let index = loop {
            match self.objects.take(object) {
                Ok(index) => break index,
                Err(error) => wait_for_readers(&error),
            }
        };
        let old = loop {
            match self.table.insert(index) {
                Ok(old) => break old,
                Err(error) => wait_for_readers(&error),
            }
        };
        old.into_iter().for_each(|old| self.objects.retire(old));
    }
    fn remove(&mut self, key: u64) {
        let index = self.table.remove(&words(key)).expect("it was in");
        self.objects.retire(index);
    }
    fn collect(&mut self) {
        self.table.collect();
        self.objects.collect();
    }
    fn segments(&self) -> usize {
        self.table.usage().segments
    }
}

/// What the writer has finished, and what it has not begun to undo.
#[derive(Default)]
struct Progress {
    /// The crowd's keys below this are in …
    crowd: AtomicU64,
    /// … if this round is still the one it was before the look-up and after it.
    round: AtomicU64,
    done: AtomicBool,
}

/// Look up all kinds of keys until the writer is done.
fn watch(table: impl Ask, mut reader: Reader, progress: &Progress, seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut versions = vec![0; STABLE as usize];
    let (mut keys, mut values) = (vec![0; 256], vec![0; 256]);
    let forms: Vec<_> = Variant::available().map(Some).chain([None]).collect();
    let mut passes = 0;
    reader.wake();
    while !progress.done.load(Ordering::SeqCst) || passes < 10 {
        let round = progress.round.load(Ordering::SeqCst);
        let crowd = progress.crowd.load(Ordering::SeqCst);
        for key in &mut keys {
            *key = match random.below(4) {
                0 => random.below(STABLE),
                1 | 2 => CROWD + random.below(crowd.max(1)),
                _ => FLICKER + random.below(FLICKERS),
            };
        }
        table.ask(forms[passes as usize % forms.len()], &keys, &mut values);
        let same_round = progress.round.load(Ordering::SeqCst) == round && crowd > 0;
        for (key, found) in keys.iter().zip(&values) {
            assert!(
                *found == MISS || *found >> 20 == *key << 20 >> 20,
                "{key:#x} has another's {found:#x}"
            );
            if *key < STABLE {
                assert_ne!(*found, MISS, "{key} is always in");
                let version = &mut versions[*key as usize];
                assert!(found & 0xf_ffff >= *version, "{key} went back to {found:#x}");
                *version = found & 0xf_ffff;
            } else if *key < FLICKER && same_round {
                assert_ne!(*found, MISS, "{key:#x} of {crowd} was in before the look-up began");
            }
        }
        reader.quiescent();
        passes += 1;
    }
    reader.sleep();
    passes
}

fn stress<W: Write>(rounds: u64) {
    let epochs = Epochs::new(2);
    let mut writer = W::new(&epochs);
    (0..STABLE).for_each(|key| writer.insert(key, 0));
    let progress = Progress::default();
    let mut random = Random::new(5);
    let mut flickers = vec![false; FLICKERS as usize];
    let mut version = 0;
    std::thread::scope(|scope| {
        scopeguard::defer! { progress.done.store(true, Ordering::SeqCst) }
        let watchers: Vec<_> = (0..2)
            .map(|n| {
                let (table, reader, progress) = (writer.reader(), epochs.reader(n), &progress);
                scope.spawn(move || watch(table, reader, progress, n as u64))
            })
            .collect();
        let mut disturb = |writer: &mut W, random: &mut Random| {
            version += 1;
            writer.insert(random.below(STABLE), version);
            let flicker = random.below(FLICKERS);
            let is_in = &mut flickers[flicker as usize];
            if *is_in {
                writer.remove(FLICKER + flicker)
            } else {
                writer.insert(FLICKER + flicker, 0)
            }
            *is_in = !*is_in;
            if random.below(64) == 0 {
                writer.collect();
            }
        };
        for _ in 0..rounds {
            for n in 0..CROWD_MAX {
                writer.insert(CROWD + n, n);
                progress.crowd.store(n + 1, Ordering::SeqCst);
                disturb(&mut writer, &mut random);
            }
            assert!(writer.segments() > 1);
            progress.crowd.store(0, Ordering::SeqCst);
            progress.round.fetch_add(1, Ordering::SeqCst);
            for n in 0..CROWD_MAX {
                writer.remove(CROWD + n);
                disturb(&mut writer, &mut random);
            }
        }
        progress.done.store(true, Ordering::SeqCst);
        for watcher in watchers {
            assert!(watcher.join().expect("a reader saw what never was") > 0);
        }
    });
}

#[test]
fn readers_of_a_short_table_see_whole_entries_while_it_grows_and_shrinks() {
    stress::<ShortWriter<u64>>(6);
}

#[test]
fn readers_of_a_long_table_see_whole_entries_while_it_grows_and_shrinks() {
    stress::<Long>(4);
}

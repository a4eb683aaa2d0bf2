//! Clocks per look-up, bytes an entry and changes a second of the exact matches. `cargo run
//! --release -p quiver-tables --example exact_bench [short|long|long5|hash [ENTRIES [BATCH]]]`
#![allow(unsafe_code)]

use std::time::Instant;

use quiver_core::cpu::{Variant, clocks, pin_to_core};
use quiver_core::memory::epoch::Epochs;
use quiver_tables::exact::{
    Limits, LongTable, LongWriter, NOT_FOUND, Objects, ObjectsWriter, Seed, ShortTable, ShortWriter,
};
use quiver_tables::synthetic::Random;

const QUERIES: usize = 1 << 18;
const ROUNDS: usize = 9;
/// An insert that takes longer has split a segment.
const SLOW_CLOCKS: u64 = 20_000;
const SIZES: [usize; 5] = [254, 65_536, 1_000_000, 8_000_000, 16_500_000];

fn limits(entries_max: usize) -> Limits {
    Limits { what: "bench table", entries_max, remedy: "ask for more" }
}

/// The `n`-th key.
fn number(n: u64) -> u64 {
    Random::new(n).bits()
}

fn words<const N: usize>(n: u64) -> [u64; N] {
    std::array::from_fn(|word| if word % 2 == 0 { number(n) } else { n })
}

/// A table that can be filled, asked and changed.
trait Subject {
    type Key: Copy;
    fn key(n: u64) -> Self::Key;
    fn insert(&mut self, n: u64);
    fn remove(&mut self, n: u64);
    fn collect(&mut self);
    /// Keys of the chunk that were found.
    fn lookup(&self, variant: Variant, keys: &[Self::Key]) -> usize;
    fn single(&self, key: &Self::Key) -> bool;
    fn bytes(&self) -> (usize, usize);
    fn shape(&self) -> String;
}

struct Short(ShortWriter<u64>, ShortTable<u64>);

impl Subject for Short {
    type Key = u64;
    fn key(n: u64) -> u64 {
        number(n)
    }
    fn insert(&mut self, n: u64) {
        self.0.insert(number(n), n).expect("room");
    }
    fn remove(&mut self, n: u64) {
        self.0.remove(number(n)).expect("there");
    }
    fn collect(&mut self) {
        self.0.collect();
    }
    #[inline(always)]
    fn lookup(&self, variant: Variant, keys: &[u64]) -> usize {
        let mut values = [0; 256];
        self.1.lookup_slice(variant, keys, u64::MAX, &mut values[..keys.len()]);
        values[..keys.len()].iter().filter(|value| **value != u64::MAX).count()
    }
    fn single(&self, key: &u64) -> bool {
        self.1.lookup(*key).is_some()
    }
    fn bytes(&self) -> (usize, usize) {
        (self.0.usage().resident_bytes, 0)
    }
    fn shape(&self) -> String {
        format!("{:?}", self.0.usage())
    }
}

struct Long<const N: usize>(LongWriter<Objects<8>, N>, ObjectsWriter<8>, LongTable<Objects<8>, N>);

impl<const N: usize> Subject for Long<N> {
    type Key = [u64; N];
    fn key(n: u64) -> [u64; N] {
        words(n)
    }
    fn insert(&mut self, n: u64) {
        let mut object = [0; 8];
        object[..N].copy_from_slice(&words::<N>(n));
        let index = self.1.take(object).expect("room");
        self.0.insert(index).expect("room");
    }
    fn remove(&mut self, n: u64) {
        let index = self.0.remove(&words(n)).expect("there");
        self.1.retire(index);
    }
    fn collect(&mut self) {
        self.0.collect();
        self.1.collect();
    }
    #[inline(always)]
    fn lookup(&self, variant: Variant, keys: &[[u64; N]]) -> usize {
        let mut indexes = [0; 256];
        self.2.lookup_slice(variant, keys, &mut indexes[..keys.len()]);
        indexes[..keys.len()].iter().filter(|index| **index != NOT_FOUND).count()
    }
    fn single(&self, key: &[u64; N]) -> bool {
        self.2.lookup(key).is_some()
    }
    fn bytes(&self) -> (usize, usize) {
        (self.0.usage().resident_bytes, self.1.objects().resident_bytes())
    }
    fn shape(&self) -> String {
        format!("{:?}", self.0.usage())
    }
}

/// Clocks per key, the median of some rounds.
fn measure<S: Subject>(
    keys: &[S::Key],
    batch: usize,
    mut ask: impl FnMut(&[S::Key]) -> usize,
) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = clocks();
            let found: usize = keys.chunks(batch).map(&mut ask).sum();
            std::hint::black_box(found);
            (clocks() - start) as f64 / keys.len() as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn scenario<S: Subject>(name: &str, entries: usize, batch: usize, mut subject: S) {
    let start = Instant::now();
    // Inserts that took long: splits.
    let mut slow = vec![0];
    for n in 0..entries as u64 {
        let before = clocks();
        subject.insert(n);
        let clocks = clocks() - before;
        if clocks > SLOW_CLOCKS {
            slow.push(clocks);
        }
    }
    slow.sort_unstable();
    let seconds = start.elapsed().as_secs_f64();
    let mut random = Random::new(1 << 60);
    let hits: Vec<_> = (0..QUERIES).map(|_| S::key(random.below(entries as u64))).collect();
    let misses: Vec<_> = (0..QUERIES).map(|_| S::key(random.bits() | 1 << 63)).collect();
    let (table, objects) = subject.bytes();
    let per = |bytes: usize| bytes as f64 / entries as f64;
    print!("{name:6} {entries:9}");
    for variant in Variant::available() {
        let hit = measure::<S>(&hits, batch, |keys| subject.lookup(variant, keys));
        let miss = measure::<S>(&misses, batch, |keys| subject.lookup(variant, keys));
        print!("  {hit:6.1} {miss:6.1}");
    }
    let single =
        measure::<S>(&hits, batch, |keys| keys.iter().filter(|key| subject.single(key)).count());
    print!("  {single:6.1}  {:5.1} +{:5.1}", per(table), per(objects));
    let changes = 100_000.min(entries as u64);
    let mut order: Vec<u64> = (0..changes).map(|_| random.below(entries as u64)).collect();
    order.sort_unstable();
    order.dedup();
    random.shuffle(&mut order);
    let start = Instant::now();
    for n in &order {
        subject.remove(*n);
    }
    let removed = start.elapsed().as_secs_f64();
    subject.collect();
    let start = Instant::now();
    for n in &order {
        subject.insert(*n);
    }
    let inserted = start.elapsed().as_secs_f64();
    let rate = |count: usize, seconds: f64| count as f64 / seconds / 1e6;
    println!(
        "  {:5.2} {:5.2} {:5.2}  {:7.1}  {}",
        rate(entries, seconds),
        rate(order.len(), removed),
        rate(order.len(), inserted),
        slow[slow.len() / 2] as f64 / 1e3,
        subject.shape()
    );
}

/// What candidates for the hash cost a key of eight bytes, the next one not waiting for it.
fn hashes() {
    let keys: Vec<u64> = (0..4096).map(number).collect();
    let [a, b, c] = [number(1 << 40) | 1, number(1 << 41) | 1, number(1 << 42)];
    let fold = |x: u64, y: u64| {
        let product = u128::from(x) * u128::from(y);
        product as u64 ^ (product >> 64) as u64
    };
    let permute = |key: u64| {
        let x = key ^ c;
        let x = (x ^ x >> 32).wrapping_mul(a);
        let x = (x ^ x >> 32).wrapping_mul(b);
        x ^ x >> 32
    };
    report_hash("one folded product", &keys, |keys, out| {
        out.iter_mut().zip(keys).for_each(|(out, key)| *out = fold(*key ^ c, a));
    });
    report_hash("permutation: two products", &keys, |keys, out| {
        out.iter_mut().zip(keys).for_each(|(out, key)| *out = permute(*key));
    });
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::_mm_crc32_u64;
        #[target_feature(enable = "sse4.2")]
        fn crc(keys: &[u64], out: &mut [u64], a: u64, b: u64) {
            for (out, key) in out.iter_mut().zip(keys) {
                *out = _mm_crc32_u64(a, *key) | _mm_crc32_u64(b, key.rotate_left(32)) << 32;
            }
        }
        #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
        fn wide(keys: &[u64], out: &mut [u64], permute: impl Fn(u64) -> u64) {
            out.iter_mut().zip(keys).for_each(|(out, key)| *out = permute(*key));
        }
        if is_x86_feature_detected!("sse4.2") {
            // SAFETY: the processor has it.
            report_hash("CRC32, twice", &keys, |keys, out| unsafe { crc(keys, out, a, b) });
        }
        if Variant::Avx512.is_available() {
            // SAFETY: the processor has it.
            report_hash("permutation, AVX-512", &keys, |keys, out| unsafe {
                wide(keys, out, permute)
            });
        }
    }
}

fn report_hash(name: &str, keys: &[u64], mut hash: impl FnMut(&[u64], &mut [u64])) {
    let (mut best, mut out) = (f64::MAX, vec![0; keys.len()]);
    for _ in 0..200 {
        let start = clocks();
        hash(std::hint::black_box(keys), std::hint::black_box(&mut out));
        best = best.min((clocks() - start) as f64 / keys.len() as f64);
    }
    println!("{name:28} {best:5.2} clocks a key");
}

fn short(entries: usize, batch: usize) {
    let epochs = Epochs::new(1);
    let writer = ShortWriter::new(&epochs, limits(entries), Seed::random()).expect("memory");
    let table = writer.table();
    scenario("short", entries, batch, Short(writer, table));
}

fn long<const N: usize>(name: &str, entries: usize, batch: usize) {
    let epochs = Epochs::new(1);
    let objects = ObjectsWriter::<8>::new(&epochs, limits(entries)).expect("memory");
    let keys = objects.objects().clone();
    let writer =
        LongWriter::<_, N>::new(&epochs, limits(entries), Seed::random(), keys).expect("memory");
    let table = writer.table();
    scenario(name, entries, batch, Long(writer, objects, table));
}

fn main() {
    if let Err(error) = pin_to_core(1) {
        eprintln!("not pinned: {error}");
    }
    let wanted = std::env::args().nth(1);
    let sizes = match std::env::args().nth(2).and_then(|entries| entries.parse().ok()) {
        Some(0) | None => SIZES.to_vec(),
        Some(entries) => vec![entries],
    };
    let batch = std::env::args().nth(3).and_then(|batch| batch.parse().ok()).unwrap_or(256);
    let wants = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    if wants("hash") {
        hashes();
    }
    println!(
        "clocks per key (hit, miss) for {:?}, single;",
        Variant::available().collect::<Vec<_>>()
    );
    println!(
        "bytes an entry: table + objects; M/s: fill, remove, insert; thousand clocks of a split \
         (median)"
    );
    for entries in sizes {
        if wants("short") {
            short(entries, batch);
        }
        if wants("long") {
            long::<2>("long", entries, batch);
        }
        if wants("long5") {
            long::<5>("long5", entries, batch);
        }
    }
}

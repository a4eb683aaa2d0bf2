//! The prefix match against models: a linear scan, prefix-trie, and a reader that watches a writer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use proptest::prelude::*;
use quiver_core::cpu::Variant;
use quiver_core::memory::epoch::Epochs;
use quiver_tables::GroupId;
use quiver_tables::lpm::{LpmWriter, Route};
use quiver_tables::prefix::{Address, Prefix};
use quiver_tables::synthetic::{Random, internet_ip4};

const MISS: GroupId = GroupId(9_999);

fn route(group: u32) -> Route {
    Route { group: GroupId(group), note: 0 }
}

/// Longest match by looking at all.
fn naive<A: Address>(model: &BTreeMap<Prefix<A>, u32>, address: A) -> GroupId {
    let covers = model.iter().filter(|(prefix, _)| prefix.contains(address));
    covers.max_by_key(|(prefix, _)| prefix.len()).map_or(MISS, |(_, group)| GroupId(*group))
}

/// Compare at both ends of every prefix, and just outside.
fn check<A: Address>(
    writer: &LpmWriter<A>,
    table: u32,
    model: &BTreeMap<Prefix<A>, u32>,
    seen: &[Prefix<A>],
) {
    let lpm = writer.space().table(table);
    let mut addresses = vec![A::ZERO, A::MAX];
    for prefix in seen {
        let (first, last) = (prefix.first(), prefix.last());
        addresses.extend([first, last, first - A::from_halves(0, u64::from(first != A::ZERO))]);
        addresses.push(if last == A::MAX { last } else { last + A::ONE });
    }
    let expected: Vec<_> = addresses.iter().map(|address| naive(model, *address)).collect();
    for (address, expected) in addresses.iter().zip(&expected) {
        assert_eq!(lpm.lookup(*address), *expected, "{:?}", address.ip());
    }
    for variant in Variant::available() {
        // All at once, and in the sizes that come with half filled vectors.
        for size in [addresses.len(), 1 + seen.len() % 97] {
            let mut groups = vec![GroupId(0); addresses.len()];
            for (some, groups) in addresses.chunks(size).zip(groups.chunks_mut(size)) {
                lpm.lookup_slice(variant, some, groups);
            }
            for ((address, group), expected) in addresses.iter().zip(&groups).zip(&expected) {
                assert_eq!(group, expected, "{variant:?} by {size}, {:?}", address.ip());
            }
        }
        // Many alike, with some others between them.
        for others in [usize::MAX, 40, 9, 2] {
            let ask = |at: usize| if at % others == 1 { at } else { at % 3 } % addresses.len();
            let asked: Vec<usize> = (0..150).map(ask).collect();
            let alike: Vec<A> = asked.iter().map(|at| addresses[*at]).collect();
            let mut groups = vec![GroupId(0); alike.len()];
            for size in [1, 7, 64, 150] {
                for (some, groups) in alike.chunks(size).zip(groups.chunks_mut(size)) {
                    groups.fill(GroupId(0));
                    lpm.lookup_uniform(variant, some, groups);
                }
                for (at, group) in asked.iter().zip(&groups) {
                    assert_eq!(
                        *group,
                        expected[*at],
                        "{variant:?} by {size}, {:?}",
                        addresses[*at].ip()
                    );
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step<A: Address> {
    Insert(Prefix<A>, u32),
    Remove(prop::sample::Index),
    Bulk(Prefix<A>, u32, u32),
}

/// Prefixes that nest and neighbour each other: few distinct bits.
fn steps4() -> impl Strategy<Value = Vec<Step<u32>>> {
    let prefix = (
        any::<u32>(),
        prop::sample::select(vec![
            0u8, 1, 7, 8, 12, 15, 16, 17, 19, 20, 23, 24, 25, 27, 28, 30, 31, 32,
        ]),
    )
        .prop_map(|(bits, len)| Prefix::new(0x0a00_0000 | bits & 0x8103_0f1f, len));
    steps(prefix)
}

fn steps6() -> impl Strategy<Value = Vec<Step<u128>>> {
    let prefix = (
        any::<u128>(),
        prop::sample::select(vec![
            0u8, 3, 16, 19, 24, 29, 32, 36, 44, 47, 48, 56, 63, 64, 65, 80, 96, 112, 127, 128,
        ]),
    )
        .prop_map(|(bits, len)| {
            Prefix::new(0x2001_0db8 << 96 | bits & 0x8000_0001_0003_0001_0001_0000_0300_0f07, len)
        });
    steps(prefix)
}

fn steps<A: Address>(
    prefix: impl Strategy<Value = Prefix<A>> + Clone,
) -> impl Strategy<Value = Vec<Step<A>>> {
    let step = prop_oneof![
        5 => (prefix.clone(), 1u32..6).prop_map(|(prefix, group)| Step::Insert(prefix, group)),
        3 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => (prefix, 1u32..6, 1u32..300).prop_map(
            |(prefix, group, count)| Step::Bulk(prefix, group, count)
        ),
    ];
    prop::collection::vec(step, 1..60)
}

fn run<A: Address>(table: u32, steps: Vec<Step<A>>) {
    let epochs = Epochs::new(0);
    let mut writer = LpmWriter::<A>::new(&epochs, MISS).expect("memory");
    let mut model = BTreeMap::new();
    let mut seen = Vec::new();
    for step in steps {
        match step {
            Step::Insert(prefix, group) => {
                let old = writer.insert(table, prefix, route(group)).expect("room");
                assert_eq!(old.map(|old| old.group.0), model.insert(prefix, group));
                seen.push(prefix);
            }
            Step::Remove(index) if !seen.is_empty() => {
                let prefix = *index.get(&seen);
                let old = writer.remove(table, prefix).expect("room");
                assert_eq!(old.map(|old| old.group.0), model.remove(&prefix));
            }
            Step::Remove(_) => {}
            Step::Bulk(prefix, group, count) => {
                let mut bulk = writer.bulk(table);
                let all = std::iter::successors(Some(prefix), |prefix| prefix.next());
                for (index, prefix) in all.take(count as usize).enumerate() {
                    // Some share a hop, some do not: runs, nodes and dense blocks.
                    let group = group + if count % 2 == 0 { index as u32 % 3 } else { 0 };
                    bulk.insert(prefix, route(group)).expect("room");
                    model.insert(prefix, group);
                    if index % 16 == 0 || index as u32 == count - 1 {
                        seen.push(prefix);
                    }
                }
            }
        }
        check(&writer, table, &model, &seen);
    }
    for prefix in model.keys() {
        writer.remove(table, *prefix).expect("room");
    }
    check(&writer, table, &BTreeMap::new(), &seen);
    writer.collect();
    let usage = writer.usage();
    assert_eq!(
        (usage.entries, usage.nodes, usage.skips, usage.roots, usage.waiting),
        (0, 0, 0, 0, 0)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn an_ip4_table_with_a_big_root_equals_a_linear_scan(steps in steps4()) {
        run(0, steps);
    }

    #[test]
    fn an_ip4_table_with_a_small_root_equals_a_linear_scan(steps in steps4()) {
        run(5, steps);
    }

    #[test]
    fn an_ip6_table_with_a_big_root_equals_a_linear_scan(steps in steps6()) {
        run(0, steps);
    }

    #[test]
    fn an_ip6_table_with_a_small_root_equals_a_linear_scan(steps in steps6()) {
        run(5, steps);
    }
}

/// What readers may find at each version, for each probe.
struct History<A: Address> {
    probes: Vec<A>,
    answers: Vec<Vec<GroupId>>,
}

/// A writer that inserts and removes nested and neighbouring prefixes, and a reader that accepts
/// only answers that held at some moment of its look-up.
fn watch<A: Address>(table: u32, prefixes: Vec<Prefix<A>>, crowd: Vec<Prefix<A>>, steps: usize) {
    let mut random = Random::new(42);
    let mut model = BTreeMap::new();
    let mut probes: Vec<A> =
        prefixes.iter().flat_map(|prefix| [prefix.first(), prefix.last()]).collect();
    random.shuffle(&mut probes);
    probes.truncate(64);
    let snapshot = |model: &BTreeMap<Prefix<A>, u32>| {
        probes.iter().map(|probe| naive(model, *probe)).collect()
    };
    let mut script = Vec::new();
    let mut answers: Vec<Vec<GroupId>> = vec![snapshot(&model)];
    for _ in 0..steps {
        let prefix = prefixes[random.below(prefixes.len() as u64) as usize];
        let group = (random.below(3) > 0).then(|| 1 + random.below(5) as u32);
        match group {
            Some(group) => model.insert(prefix, group),
            None => model.remove(&prefix),
        };
        script.push((prefix, group));
        answers.push(snapshot(&model));
    }
    let history = History { probes, answers };
    let epochs = Epochs::new(1);
    let mut writer = LpmWriter::<A>::new(&epochs, MISS).expect("memory");
    let space = writer.space().clone();
    let (started, finished, done) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let mut reader = epochs.reader(0);
        reader.wake();
        let (history, started, finished, done) = (&history, &started, &finished, &done);
        scopeguard::defer! { done.store(true, Ordering::SeqCst) }
        let space = &space;
        let watcher = scope.spawn(move || {
            let lpm = space.table(table);
            let mut groups = vec![GroupId(0); history.probes.len()];
            let mut passes = 0;
            while !done.load(Ordering::SeqCst) || passes == 0 {
                for kernel in Variant::available().map(Some).chain([None]) {
                    let from = finished.load(Ordering::SeqCst);
                    if let Some(variant) = kernel {
                        lpm.lookup_slice(variant, &history.probes, &mut groups);
                    } else {
                        for (probe, group) in history.probes.iter().zip(&mut groups) {
                            *group = lpm.lookup(*probe);
                        }
                    }
                    let to = started.load(Ordering::SeqCst);
                    for (probe, group) in groups.iter().enumerate() {
                        let known = history.answers[from..=to]
                            .iter()
                            .any(|answers| answers[probe] == *group);
                        assert!(
                            known,
                            "{:?}: {group:?} at {from}..={to}",
                            history.probes[probe].ip()
                        );
                    }
                }
                reader.quiescent();
                passes += 1;
            }
            reader.sleep();
            passes
        });
        for (step, (prefix, group)) in script.iter().enumerate() {
            started.store(step + 1, Ordering::SeqCst);
            match group {
                Some(group) => writer.insert(table, *prefix, route(*group)).expect("room"),
                None => writer.remove(table, *prefix).expect("room"),
            };
            finished.store(step + 1, Ordering::SeqCst);
            if step % 64 == 0 {
                writer.collect();
            }
            // Let the root grow and shrink under the reader.
            if !crowd.is_empty() && step % 4000 == 1000 {
                let mut bulk = writer.bulk(table);
                crowd.iter().for_each(|prefix| assert!(bulk.insert(*prefix, route(7)).is_ok()));
                bulk.finish();
            }
            if !crowd.is_empty() && step % 4000 == 3000 {
                let mut bulk = writer.bulk(table);
                crowd.iter().for_each(|prefix| assert!(bulk.remove(*prefix).is_ok()));
                bulk.finish();
            }
        }
        done.store(true, Ordering::SeqCst);
        assert!(watcher.join().expect("the reader saw a wrong answer") > 0);
    });
}

#[test]
fn an_ip4_reader_sees_only_old_or_new_answers() {
    let mut random = Random::new(1);
    let lens = [8, 13, 16, 18, 20, 22, 23, 24, 24, 25, 28, 30, 32, 32];
    let prefixes = (0..120).map(|n| {
        Prefix::new(0x0a00_0000 | random.bits() as u32 & 0x0001_030f, lens[n % lens.len()])
    });
    let crowd = (0..17_000u32).map(|n| Prefix::new(0x1400_0000 | n << 8, 24));
    watch(3, prefixes.collect(), crowd.collect(), 12_000);
}

#[test]
fn an_ip6_reader_sees_only_old_or_new_answers() {
    let mut random = Random::new(1);
    let lens = [16, 20, 29, 32, 36, 40, 44, 48, 48, 56, 64, 64, 100, 128];
    let bits = |random: &mut Random| {
        u128::from_halves(random.bits(), random.bits()) & 0x0000_0001_0103_0001_0001_0000_0000_0003
    };
    let prefixes =
        (0..120).map(|n| Prefix::new(0x2001_0db8 << 96 | bits(&mut random), lens[n % lens.len()]));
    let crowd = (0..17_000u128).map(|n| Prefix::new(0x2a00 << 112 | n << 80, 48));
    watch(3, prefixes.collect(), crowd.collect(), 12_000);
}

#[test]
fn an_ip6_reader_sees_only_old_or_new_answers_while_a_block_crowds_and_empties() {
    let mut random = Random::new(1);
    let lens = [29, 32, 36, 40, 44, 48, 48, 56, 64, 128];
    let bits = |random: &mut Random| {
        u128::from_halves(random.bits(), random.bits()) & 0x0000_0000_0103_0001_0001_0000_0000_0003
    };
    let prefixes =
        (0..80).map(|n| Prefix::new(0x2001_0db8 << 96 | bits(&mut random), lens[n % lens.len()]));
    // Beside them in the same /32, many blocks with more than one prefix each.
    let crowd = (16..80u128).flat_map(|n| [n << 88 | 1 << 80, n << 88 | 3 << 80]);
    let crowd = crowd.map(|bits| Prefix::new(0x2001_0db8 << 96 | bits, 48));
    watch(0, prefixes.collect(), crowd.collect(), 12_000);
}

#[test]
fn crowded_ip6_blocks_equal_a_linear_scan_while_they_fill_and_empty() {
    let epochs = Epochs::new(0);
    let mut writer = LpmWriter::<u128>::new(&epochs, MISS).expect("memory");
    let (mut random, mut model) = (Random::new(3), BTreeMap::new());
    let mut seen: Vec<Prefix<u128>> = Vec::new();
    for n in 0..1_500 {
        // 64 blocks of eight bits in each of two blocks of eight, and some far below.
        let bits = u128::from_halves(random.bits(), random.bits())
            & 0x0000_0001_3f3f_0003_0000_0000_0000_0003;
        let len = [40, 44, 45, 46, 47, 48, 48, 48, 64, 128][n % 10];
        seen.push(Prefix::new(0x2001_0db8 << 96 | bits, len));
    }
    for (n, prefix) in seen.iter().enumerate() {
        let group = 1 + random.below(9) as u32;
        writer.insert(0, *prefix, route(group)).expect("room");
        model.insert(*prefix, group);
        if n % 300 == 299 {
            check(&writer, 0, &model, &seen[..=n]);
        }
    }
    assert!(writer.usage().nodes > 100, "there are many nodes");
    let probes = seen.clone();
    random.shuffle(&mut seen);
    for (n, prefix) in seen.iter().enumerate() {
        writer.remove(0, *prefix).expect("room");
        model.remove(prefix);
        if n % 300 == 299 {
            check(&writer, 0, &model, &probes);
        }
    }
    writer.collect();
    let usage = writer.usage();
    assert_eq!((usage.entries, usage.nodes, usage.skips, usage.waiting), (0, 0, 0, 0));
}

/// As `check`, by a trie of another's making, of so many prefixes that a linear scan takes too
/// long.
fn check_by<A: Address>(
    writer: &LpmWriter<A>,
    table: u32,
    oracle: &prefix_trie::PrefixMap<(A, u8), u32>,
    addresses: impl Iterator<Item = A>,
) where
    (A, u8): prefix_trie::Prefix,
{
    let lpm = writer.space().table(table);
    let addresses: Vec<A> = addresses.collect();
    let host = A::BITS as u8;
    let answer =
        |address: &A| oracle.get_lpm(&(*address, host)).map_or(MISS, |(_, group)| GroupId(*group));
    let expected: Vec<_> = addresses.iter().map(answer).collect();
    for variant in Variant::available() {
        let mut groups = vec![GroupId(0); addresses.len()];
        lpm.lookup_slice(variant, &addresses, &mut groups);
        for ((address, group), expected) in addresses.iter().zip(&groups).zip(&expected) {
            assert_eq!(group, expected, "{variant:?}, {:?}", address.ip());
        }
    }
    for (address, expected) in addresses.iter().zip(&expected) {
        assert_eq!(lpm.lookup(*address), *expected, "{:?}", address.ip());
    }
}

/// Neighbouring hosts, so many that they stand in wide blocks, with shorter prefixes over, between
/// and beside them that come and go.
fn hosts_in_wide_blocks<A: Address>(table: u32, first: A, beside: A, count: u64)
where
    (A, u8): prefix_trie::Prefix,
{
    let epochs = Epochs::new(0);
    let mut writer = LpmWriter::<A>::new(&epochs, MISS).expect("memory");
    let mut oracle = prefix_trie::PrefixMap::<(A, u8), u32>::new();
    let mut random = Random::new(11);
    let bits = A::BITS as u8;
    let host = |n: u64| Prefix::new(first + A::from_halves(0, n), bits);
    let mut hosts: Vec<_> = (0..count).map(host).collect();
    random.shuffle(&mut hosts);
    let others: Vec<_> = [
        (first, bits - 20),
        (first, bits - 10),
        (first + A::from_halves(0, 5 << 8), bits - 8),
        (first + A::from_halves(0, 9 << 8 | 16), bits - 4),
        (first, bits - 17),
        (first + A::from_halves(0, 1 << 12), bits - 12),
        (beside, bits),
        (beside, bits - 9),
        (first, bits - 24),
    ]
    .map(|(address, len)| Prefix::new(address, len))
    .into();
    let mut most = 0;
    let steps = 12;
    for round in 0..3 * steps {
        let some = hosts.len() / steps;
        let part = &hosts[round % steps * some..][..some];
        for prefix in part {
            let key = (prefix.first(), prefix.len());
            if round / steps == 1 && random.below(8) > 0 || round / steps == 2 {
                writer.remove(table, *prefix).expect("room");
                oracle.remove(&key);
            } else {
                let group = 1 + random.below(60) as u32;
                writer.insert(table, *prefix, route(group)).expect("room");
                oracle.insert(key, group);
            }
        }
        for other in &others {
            let key = (other.first(), other.len());
            if oracle.contains_key(&key) && random.below(2) == 0 || round == 3 * steps - 1 {
                writer.remove(table, *other).expect("room");
                oracle.remove(&key);
            } else if round < 2 * steps {
                writer.insert(table, *other, route(100 + round as u32)).expect("room");
                oracle.insert(key, 100 + round as u32);
            }
        }
        most = most.max(writer.usage().wide);
        let near = (0..count + 600).step_by(7).map(|n| first + A::from_halves(0, n));
        let edges = others.iter().flat_map(|other| {
            [other.first(), other.last(), other.first() - A::ONE, other.last() + A::ONE]
        });
        check_by(&writer, table, &oracle, near.chain(edges).chain([A::ZERO, A::MAX]));
        writer.collect();
    }
    assert!(most as u64 >= count, "{most} entries stood in wide blocks");
    for prefix in hosts.iter().chain(&others) {
        writer.remove(table, *prefix).expect("room");
    }
    writer.collect();
    let usage = writer.usage();
    assert_eq!(
        (usage.entries, usage.nodes, usage.skips, usage.wide, usage.waiting),
        (0, 0, 0, 0, 0),
        "all came back"
    );
}

#[test]
fn very_many_ip6_hosts_equal_prefix_trie_while_wide_blocks_come_and_go() {
    let first = 0x2001_0db8u128 << 96;
    hosts_in_wide_blocks(0, first, first + (5 << 16), 40_000);
    hosts_in_wide_blocks(3, first + (3 << 16), first + (9 << 16), 140_000);
}

#[test]
fn very_many_ip4_hosts_equal_prefix_trie_while_wide_blocks_come_and_go() {
    // A big root leaves too few bits below it.
    hosts_in_wide_blocks(3, 0x0a01_0000u32, 0x0a05_0000, 14_000);
}

#[test]
fn an_ip6_reader_sees_only_old_or_new_answers_while_wide_blocks_come_and_go() {
    let first = 0x2001_0db8u128 << 96;
    let mut random = Random::new(2);
    let lens = [100, 104, 108, 110, 112, 114, 116, 118, 120, 121, 124, 128];
    let prefixes = (0..120)
        .map(|n| Prefix::new(first | 1 | random.bits() as u128 & 0x3_ffff, lens[n % lens.len()]));
    // Between what is asked, hosts in as many blocks as make a wide one.
    let crowd = (0..10_000u128).map(|n| Prefix::new(first + 4 * n + 2, 128));
    watch(3, prefixes.collect(), crowd.collect(), 12_000);
}

#[test]
fn a_generated_internet_equals_prefix_trie_before_and_after_half_of_it_left() {
    let epochs = Epochs::new(0);
    let mut writer = LpmWriter::<u32>::new(&epochs, MISS).expect("memory");
    let mut oracle = prefix_trie::PrefixMap::<(u32, u8), u32>::new();
    let mut table = internet_ip4(60_000, 9);
    let mut random = Random::new(4);
    random.shuffle(&mut table);
    for (index, prefix) in table.iter().enumerate() {
        let group = 1 + index as u32 % 50;
        writer.insert(0, *prefix, route(group)).expect("room");
        oracle.insert((prefix.first(), prefix.len()), group);
    }
    for round in 0..2 {
        for prefix in table.iter().step_by(3) {
            let address = random.address_in(*prefix);
            let expected =
                oracle.get_lpm(&(address, 32)).map_or(MISS, |(_, group)| GroupId(*group));
            assert_eq!(writer.space().table(0).lookup(address), expected, "round {round}");
        }
        for prefix in table.iter().step_by(2) {
            writer.remove(0, *prefix).expect("room");
            oracle.remove(&(prefix.first(), prefix.len()));
        }
    }
}

#[test]
fn memory_comes_back_when_a_table_empties() {
    let epochs = Epochs::new(0);
    let mut writer = LpmWriter::<u32>::new(&epochs, MISS).expect("memory");
    let table = internet_ip4(300_000, 2);
    for index in [0, 1] {
        for (n, prefix) in table.iter().enumerate() {
            writer.insert(index, *prefix, route(1 + n as u32 % 99)).expect("room");
        }
    }
    assert!(writer.space().table(1).has_big_root());
    let full = writer.usage().resident_bytes;
    for index in [0, 1] {
        table.iter().for_each(|prefix| assert!(writer.remove(index, *prefix).is_ok()));
    }
    writer.collect();
    writer.collect();
    let usage = writer.usage();
    assert_eq!((usage.entries, usage.nodes, usage.waiting), (0, 0, 0));
    // The first large page of each array stays with its slot 0.
    assert!(
        usage.resident_bytes * 2 < full && usage.resident_bytes <= 6 << 20,
        "{full} became {usage:?}"
    );
    assert_eq!(writer.space().table(1).big_root_bytes(), 0);
    assert!(!writer.space().table(1).has_big_root());
}

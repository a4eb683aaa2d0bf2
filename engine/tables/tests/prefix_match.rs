//! The prefix match against models: a linear scan, prefix-trie, and a reader that watches a writer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use quiver_core::epoch::Epochs;
use quiver_tables::GroupId;
use quiver_tables::lpm::{LpmWriter, Route};
use quiver_tables::prefix::{Address, Prefix};

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
    let mut groups = vec![GroupId(0); addresses.len()];
    lpm.lookup_slice(&addresses, &mut groups);
    for (address, group) in addresses.iter().zip(groups) {
        let expected = naive(model, *address);
        assert_eq!(lpm.lookup(*address), expected, "{:?}", address.ip());
        assert_eq!(group, expected, "batch, {:?}", address.ip());
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
        prop::sample::select(vec![0u8, 1, 7, 8, 12, 15, 16, 17, 19, 20, 23, 24, 25, 27, 28, 30, 31, 32]),
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
        1 => (prefix, 1u32..6, 1u32..300).prop_map(|(prefix, group, count)| Step::Bulk(prefix, group, count)),
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
    assert_eq!((usage.entries, usage.nodes, usage.skips, usage.roots, usage.waiting), (0, 0, 0, 0, 0));
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

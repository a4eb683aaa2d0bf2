//! Every structure and variant finds what a plain first match finds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use proptest::prelude::*;
use quiver_classifier::synthetic::{self, Family, Random};
use quiver_classifier::{
    BuildError, CHANGES_MAX, Classified, Classifier, Key, Members, NO_SET, NONE, PortRange, Rule,
    SETS_MAX, SETS_OF_RULE_MAX, Structure, field,
};
use quiver_core::cpu::Variant;
use quiver_tables::prefix::{Address, Prefix};

fn naive<A: Classified>(rules: &[Rule<A>], key: &Key<A>) -> u32 {
    rules.iter().find(|rule| rule.matches(key)).map_or(NONE, |rule| rule.number)
}

fn check<A: Classified>(rules: &[Rule<A>], keys: &[Key<A>]) {
    let classifier = Classifier::new(rules).expect("compiles");
    let expected: Vec<u32> = keys.iter().map(|key| naive(rules, key)).collect();
    for variant in Variant::available() {
        let mut found = vec![7; keys.len()];
        classifier.find(variant, keys, &mut found);
        assert_eq!(found, expected, "{variant:?}");
        let mut found = vec![7; keys.len()];
        classifier.find_uniform(variant, keys, &mut found);
        assert_eq!(found, expected, "{variant:?}");
    }
}

/// A few addresses, so that prefixes nest and rules collide.
fn address<A: Address>() -> impl Strategy<Value = A> {
    (0u64..4, 0u64..8)
        .prop_map(|(high, low)| A::from_halves(high << 60 | high, low | high << 24 | low << 29))
}

fn range() -> impl Strategy<Value = PortRange> {
    prop_oneof![
        3 => Just(PortRange::ALL),
        1 => (0u16..5).prop_map(PortRange::one),
        1 => (0u16..5, 0u16..5).prop_map(|(one, more)| PortRange { from: one, to: one + more }),
        1 => Just(PortRange { from: 1, to: u16::MAX }),
    ]
}

fn fields() -> impl Strategy<Value = (u32, u32)> {
    let bits = prop_oneof![
        Just(0),
        Just(field::PROTOCOL),
        Just(field::DSCP),
        Just(field::FRAGMENT),
        (0u32..256).prop_map(|flags| flags << field::TCP_FLAGS_SHIFT),
    ];
    (any::<u32>(), bits).prop_map(|(value, mask)| (value & 0x03c3_0303, mask))
}

fn rule<A: Classified>() -> impl Strategy<Value = Rule<A>> {
    let length = || prop_oneof![Just(0u8), 0..=A::BITS as u8, Just(A::BITS as u8)];
    let prefix =
        || (address::<A>(), length()).prop_map(|(address, length)| Prefix::new(address, length));
    (prefix(), prefix(), range(), range(), fields()).prop_map(
        |(source, destination, source_ports, destination_ports, (value, mask))| Rule {
            source,
            destination,
            source_ports,
            destination_ports,
            value,
            mask,
            sets: [NO_SET; SETS_OF_RULE_MAX],
            number: 0,
        },
    )
}

/// Packets whose source port is one of 32, by the bits of a mask that changes.
struct Ports(AtomicU32);

impl Ports {
    fn has(&self, port: u16) -> bool {
        self.0.load(Ordering::Relaxed) >> (port % 32) & 1 != 0
    }
}

impl<A> Members<A> for Ports {
    fn mark(&self, _: Variant, keys: &[Key<A>], bit: u32, marks: &mut [u32]) {
        for (key, mark) in keys.iter().zip(marks) {
            *mark |= if self.has(key.source_port) { bit } else { 0 };
        }
    }
}

/// Rules that ask for sets, among others, before and after the sets change.
fn check_sets<A: Classified>(mut rules: Vec<Rule<A>>, keys: &[Key<A>], asked: &[[u16; 2]]) {
    let sets: Vec<Arc<Ports>> = (0..70u32)
        .map(|seed| Arc::new(Ports(AtomicU32::new(seed.wrapping_mul(0x9e37_79b9)))))
        .collect();
    for (rule, asked) in rules.iter_mut().zip(asked.iter().cycle()) {
        for (place, set) in rule.sets.iter_mut().zip(asked).filter(|(_, set)| **set < 70) {
            *place = *set;
        }
    }
    let members = sets.iter().map(|set| set.clone() as Arc<dyn Members<A>>).collect();
    let classifier = Classifier::with_sets(&rules, members).expect("compiles");
    for change in [0, 0x5555_5555, u32::MAX] {
        sets.iter()
            .for_each(|set| set.0.store(set.0.load(Ordering::Relaxed) ^ change, Ordering::Relaxed));
        let is_in = |key: &Key<A>, set: u16| sets[usize::from(set)].has(key.source_port);
        let first =
            |key: &Key<A>| rules.iter().find(|rule| rule.matches_in(key, |set| is_in(key, set)));
        let expected: Vec<u32> =
            keys.iter().map(|key| first(key).map_or(NONE, |rule| rule.number)).collect();
        for variant in Variant::available() {
            let mut found = vec![7; keys.len()];
            classifier.find(variant, keys, &mut found);
            assert_eq!(found, expected, "{variant:?}");
            let mut found = vec![7; keys.len()];
            classifier.find_uniform(variant, keys, &mut found);
            assert_eq!(found, expected, "{variant:?}");
        }
    }
}

/// A list that loses rules and gets new ones finds what the list that is left would find.
fn check_changes<A: Classified>(rules: &[Rule<A>], new: &[Rule<A>], at: &[u16], keys: &[Key<A>]) {
    let base = Arc::new(Classifier::new(rules).expect("compiles"));
    let is_gone = |rule: &&Rule<A>| at.iter().any(|at| u32::from(*at) % 230 == rule.number);
    let gone: Vec<u32> = rules.iter().filter(is_gone).map(|rule| rule.number).collect();
    let mut befores: Vec<u32> = at.iter().map(|at| u32::from(*at) % 230).collect();
    befores.sort_unstable();
    let numbered = new.iter().zip(1_000..).map(|(rule, number)| Rule { number, ..*rule });
    let new: Vec<(u32, Rule<A>)> = befores.into_iter().zip(numbered).collect();
    let changed = Classifier::changed(&base, &gone, &new, Vec::new()).expect("few changes");
    assert_eq!(changed.cost().changes, gone.len() + new.len());
    // A new rule stands before the old one whose number it names.
    let old = rules.iter().filter(|rule| !is_gone(rule)).map(|rule| (rule.number, 1, rule));
    let mut all: Vec<_> = old.chain(new.iter().map(|(before, rule)| (*before, 0, rule))).collect();
    all.sort_by_key(|(place, is_old, _)| (*place, *is_old));
    let expected = keys.iter().map(|key| {
        all.iter().find(|(_, _, rule)| rule.matches(key)).map_or(NONE, |(_, _, rule)| rule.number)
    });
    let expected: Vec<u32> = expected.collect();
    for variant in Variant::available() {
        let mut found = vec![7; keys.len()];
        changed.find(variant, keys, &mut found);
        assert_eq!(found, expected, "{variant:?}");
    }
}

fn key<A: Classified>() -> impl Strategy<Value = Key<A>> {
    let upper = prop_oneof![
        1 => Just(0),
        4 => Just(field::UPPER),
        1 => Just(field::UPPER | field::ANY_UPPER | field::FRAGMENT | field::LATER_FRAGMENT),
    ];
    (address(), address(), 0u16..6, 0u16..6, any::<u32>(), upper).prop_map(
        |(source, destination, source_port, destination_port, bits, upper)| Key {
            source,
            destination,
            source_port,
            destination_port,
            fields: bits & 0x0043_0303 | upper,
            length: 60,
            rx: 0,
            owner: 0,
        },
    )
}

fn numbered<A: Classified>(mut rules: Vec<Rule<A>>, step: u32) -> Vec<Rule<A>> {
    rules.iter_mut().zip(0..).for_each(|(rule, number)| rule.number = number * step + 1);
    rules
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn ip4_rules_match_as_in_order(
        rules in proptest::collection::vec(rule::<u32>(), 0..200),
        keys in proptest::collection::vec(key(), 1..150),
    ) {
        check(&numbered(rules, 2), &keys);
    }

    #[test]
    fn ip6_rules_match_as_in_order(
        rules in proptest::collection::vec(rule::<u128>(), 0..200),
        keys in proptest::collection::vec(key(), 1..150),
    ) {
        check(&numbered(rules, 1), &keys);
    }

    #[test]
    fn rules_that_ask_for_sets_match_as_in_order(
        rules in proptest::collection::vec(rule::<u32>(), 0..200),
        keys in proptest::collection::vec(key(), 1..150),
        asked in proptest::collection::vec(any::<[u8; 2]>(), 1..20),
    ) {
        let asked: Vec<_> = asked.into_iter().map(|both| both.map(u16::from)).collect();
        check_sets(numbered(rules, 1), &keys, &asked);
    }

    #[test]
    fn ip6_rules_that_ask_for_sets_match_as_in_order(
        rules in proptest::collection::vec(rule::<u128>(), 0..120),
        keys in proptest::collection::vec(key(), 1..100),
        asked in proptest::collection::vec(any::<[u8; 2]>(), 1..20),
    ) {
        let asked: Vec<_> = asked.into_iter().map(|both| both.map(u16::from)).collect();
        check_sets(numbered(rules, 1), &keys, &asked);
    }

    #[test]
    fn changed_lists_match_as_in_order(
        rules in proptest::collection::vec(rule::<u32>(), 0..200),
        new in proptest::collection::vec(rule::<u32>(), 0..40),
        at in proptest::collection::vec(any::<u16>(), 0..40),
        keys in proptest::collection::vec(key(), 1..150),
    ) {
        check_changes(&numbered(rules, 1), &new, &at, &keys);
    }

    #[test]
    fn changed_ip6_lists_match_as_in_order(
        rules in proptest::collection::vec(rule::<u128>(), 0..200),
        new in proptest::collection::vec(rule::<u128>(), 0..40),
        at in proptest::collection::vec(any::<u16>(), 0..40),
        keys in proptest::collection::vec(key(), 1..150),
    ) {
        check_changes(&numbered(rules, 1), &new, &at, &keys);
    }
}

#[test]
fn generated_lists_match_as_in_order() {
    fn family<A: Classified>(family: Family) {
        let rules = synthetic::rules::<A>(family, 3_000, 7);
        let mut random = Random::new(1);
        let keys: Vec<_> = (0..1_500)
            .map(|at| {
                let mut key = synthetic::key(&rules, &mut random);
                if at % 3 == 0 {
                    key.destination_port ^= 1;
                    key.source = key.source ^ A::ONE << (at % A::BITS);
                }
                key
            })
            .collect();
        check(&rules, &keys);
        check_gone(&rules, &keys);
    }
    for of in Family::ALL {
        family::<u32>(of);
        family::<u128>(of);
    }
}

/// A long list without rules that packets match finds what is left.
fn check_gone<A: Classified>(rules: &[Rule<A>], keys: &[Key<A>]) {
    let mut gone: Vec<u32> = keys.iter().map(|key| naive(rules, key)).collect();
    gone.retain(|number| *number != NONE);
    gone.sort_unstable();
    gone.dedup();
    gone.truncate(CHANGES_MAX);
    assert_eq!(gone.len(), CHANGES_MAX);
    let base = Arc::new(Classifier::new(rules).expect("compiles"));
    let changed = Classifier::changed(&base, &gone, &[], Vec::new()).expect("few changes");
    let left: Vec<Rule<A>> =
        rules.iter().filter(|rule| !gone.contains(&rule.number)).copied().collect();
    let expected: Vec<u32> = keys.iter().map(|key| naive(&left, key)).collect();
    for variant in Variant::available() {
        let mut found = vec![7; keys.len()];
        changed.find(variant, keys, &mut found);
        assert_eq!(found, expected, "{variant:?}");
    }
}

#[test]
fn generated_lists_of_a_thousand_rules_are_bitmaps_that_match_as_in_order() {
    fn family<A: Classified>(family: Family) {
        for count in [65, 500, 512, 513, 1_000] {
            let rules = synthetic::rules::<A>(family, count, 9);
            let mut random = Random::new(2);
            let keys: Vec<_> = (0..700)
                .map(|at| {
                    let mut key = synthetic::key(&rules, &mut random);
                    if at % 3 == 0 {
                        key.destination_port ^= 1;
                    }
                    key
                })
                .collect();
            check(&rules, &keys);
            let cost = Classifier::new(&rules).expect("compiles").cost();
            assert_eq!(cost.structure, Structure::Bitmaps);
            assert!((1..=32).contains(&cost.probes_max), "{cost:?}");
        }
    }
    for of in Family::ALL {
        family::<u32>(of);
        family::<u128>(of);
    }
}

#[test]
fn all_rules_of_one_pair_are_one_list() {
    let rules: Vec<Rule<u32>> = (0..1000)
        .map(|number| Rule {
            destination_ports: PortRange::one(number as u16),
            ..Rule::all(number)
        })
        .collect();
    let classifier = Classifier::new(&rules).expect("compiles");
    let cost = classifier.cost();
    assert_eq!((cost.structure, cost.tuples, cost.pairs), (Structure::Tuples, 1, 1));
    assert_eq!((cost.list_max, cost.steps_max), (1000, 63));
    let key = |destination_port| Key { destination_port, fields: field::UPPER, ..Key::default() };
    let mut found = [0; 3];
    classifier.find(Variant::best(), &[key(0), key(999), key(1000)], &mut found);
    assert_eq!(found, [0, 999, NONE]);
}

#[test]
fn every_pair_of_lengths_is_a_tuple() {
    let lengths = (0..=32u8).flat_map(|one| (0..=32u8).map(move |other| (one, other)));
    let rules: Vec<Rule<u32>> = lengths
        .zip(0..)
        .map(|((one, other), number)| Rule {
            source: Prefix::new(0x0a01_0203, 32 - one),
            destination: Prefix::new(0x0a01_0203, 32 - other),
            ..Rule::all(number)
        })
        .collect();
    let mut random = Random::new(3);
    let keys: Vec<Key<u32>> = (0..500)
        .map(|_| {
            let mut near = || 0x0a01_0203 ^ (random.word() as u32 >> random.below(32) as u32);
            Key { source: near(), destination: near(), fields: field::UPPER, ..Key::default() }
        })
        .collect();
    check(&rules, &keys);
    assert_eq!(Classifier::new(&rules).expect("compiles").cost().tuples, 33 * 33);
}

#[test]
fn numbers_that_do_not_rise_are_refused() {
    assert!(Classifier::new(&[Rule::<u32>::all(1), Rule::all(1)]).is_err());
}

#[test]
fn changes_of_changes_or_too_many_are_refused() {
    let rules: Vec<Rule<u32>> = (0..200).map(Rule::all).collect();
    let base = Arc::new(Classifier::new(&rules).expect("compiles"));
    let most: Vec<u32> = (0..CHANGES_MAX as u32).collect();
    let changed = Classifier::changed(&base, &most, &[], Vec::new()).expect("as many as there may");
    let mut found = [0];
    changed.find(Variant::best(), &[Key::default()], &mut found);
    assert_eq!(found, [CHANGES_MAX as u32]);
    let again = Classifier::changed(&Arc::new(changed), &[], &[], Vec::new()).err();
    assert!(matches!(again, Some(BuildError::ChangedTwice)), "{again:?}");
    let more: Vec<u32> = (0..=CHANGES_MAX as u32).collect();
    let refused = Classifier::changed(&base, &more, &[], Vec::new()).err();
    assert!(matches!(refused, Some(BuildError::TooManyChanges(65))), "{refused:?}");
    let new = [(5, Rule::all(300)), (4, Rule::all(301))];
    let refused = Classifier::changed(&base, &[], &new, Vec::new()).err();
    assert!(matches!(refused, Some(BuildError::Order)), "{refused:?}");
}

#[test]
fn sets_that_there_are_not_or_too_many_are_refused() {
    let set = || Arc::new(Ports(AtomicU32::new(0))) as Arc<dyn Members<u32>>;
    let mut rule = Rule::<u32>::all(1);
    rule.sets[3] = 1;
    let refused = Classifier::with_sets(&[rule], vec![set()]).err();
    assert!(matches!(refused, Some(BuildError::NoSet(1))), "{refused:?}");
    let many = (0..=SETS_MAX).map(|_| set()).collect();
    let refused = Classifier::with_sets(&[rule], many).err();
    assert!(matches!(refused, Some(BuildError::TooManySets(_))), "{refused:?}");
}

/// A set flips between none and all while another thread asks: each answer is one of the two.
#[test]
fn a_set_that_changes_beside_readers_gives_an_answer_from_before_or_after() {
    let set = Arc::new(Ports(AtomicU32::new(0)));
    let mut rule = Rule::<u32>::all(1);
    rule.sets[0] = 0;
    let rules = [rule, Rule::all(2)];
    let classifier = Classifier::with_sets(&rules, vec![set.clone() as Arc<dyn Members<u32>>])
        .expect("compiles");
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let keys = vec![Key { fields: field::UPPER, ..Key::default() }; 200];
            while !ends.load(Ordering::Relaxed) {
                let mut found = vec![0; keys.len()];
                classifier.find(Variant::best(), &keys, &mut found);
                assert!(found.iter().all(|found| [1, 2].contains(found)));
            }
        });
        for _ in 0..20_000 {
            set.0.fetch_xor(1, Ordering::Relaxed);
        }
        ends.store(true, Ordering::Relaxed);
    });
}

//! Every structure and variant finds what a plain first match finds.

use proptest::prelude::*;
use quiver_classifier::synthetic::{self, Family, Random};
use quiver_classifier::{Classified, Classifier, Key, NONE, PortRange, Rule, Structure, field};
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
            number: 0,
        },
    )
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

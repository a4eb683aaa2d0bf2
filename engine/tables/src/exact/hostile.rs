//! Keys as somebody would choose who knew the secret: all in the same few buckets.

use quiver_core::cpu::Variant;
use quiver_core::memory::epoch::Epochs;

use super::cells::{LONG_SLOTS, SHORT_SLOTS};
use super::{ExactError, Limits, LongWriter, NOT_FOUND, ObjectsWriter, PROBES, Seed, ShortWriter};

const LIMITS: Limits = Limits { what: "test table", entries_max: 100_000, remedy: "ask for more" };

/// Keys whose permuted form differs only where neither bucket, nor step, nor directory looks.
fn colliding(seed: &Seed, count: u64) -> Vec<u64> {
    (0..count).map(|n| seed.restore(0xabcd_ef01_0000_0123 | n << 21)).collect()
}

#[test]
fn short_keys_that_collide_fill_their_buckets_and_the_next_is_refused() {
    let seed = Seed::fixed(5);
    let epochs = Epochs::new(0);
    let mut writer = ShortWriter::<u64>::new(&epochs, LIMITS, seed).expect("memory");
    let most = u64::from(PROBES) * SHORT_SLOTS as u64;
    let keys = colliding(&seed, most + 1);
    for (key, n) in keys.iter().zip(0..most) {
        assert_eq!(writer.insert(*key, n).expect("room"), None);
    }
    let refused = writer.insert(keys[most as usize], 0).expect_err("all eight buckets are full");
    assert!(matches!(refused, ExactError::Crowded { entries: 32, .. }), "{refused}");
    assert_eq!(writer.usage().segments, 1, "a split would not have helped");
    for variant in Variant::available() {
        let mut values = vec![0; keys.len()];
        writer.table().lookup_slice(variant, &keys, u64::MAX, &mut values);
        let expected: Vec<_> = (0..most).chain([u64::MAX]).collect();
        assert_eq!(values, expected, "{variant:?}");
    }
    // Others still find room, and the buckets are as good as new when those keys are gone.
    assert_eq!(writer.insert(1, 1).expect("room"), None);
    keys[..most as usize].iter().for_each(|key| assert!(writer.remove(*key).is_some()));
    writer.collect();
    assert_eq!(writer.insert(keys[most as usize], 9).expect("room"), None);
    assert_eq!(writer.table().lookup(keys[most as usize]), Some(9));
}

#[test]
fn short_keys_that_collide_survive_the_splits_that_others_cause() {
    let seed = Seed::fixed(6);
    let epochs = Epochs::new(0);
    let mut writer = ShortWriter::<u64>::new(&epochs, LIMITS, seed).expect("memory");
    let keys = colliding(&seed, 30);
    keys.iter().zip(0..).for_each(|(key, n)| assert!(writer.insert(*key, n).is_ok()));
    // The last ones may find no room in buckets that are crowded already, but nobody else suffers.
    let crowd: Vec<_> = (0..20_000).filter(|n| writer.insert(*n, *n).is_ok()).collect();
    assert!(crowd.len() > 19_990, "{}", crowd.len());
    assert!(writer.usage().segments > 4);
    let check = |writer: &ShortWriter<u64>| {
        keys.iter().zip(0..).for_each(|(key, n)| assert_eq!(writer.table().lookup(*key), Some(n)));
    };
    check(&writer);
    crowd.iter().for_each(|n| assert_eq!(writer.remove(*n), Some(*n)));
    writer.collect();
    check(&writer);
    assert_eq!(writer.len(), 30);
}

#[test]
fn long_keys_with_the_same_buckets_are_told_apart() {
    let seed = Seed::fixed(7);
    let epochs = Epochs::new(0);
    let mut objects = ObjectsWriter::<8>::new(&epochs, LIMITS).expect("memory");
    let shared = objects.objects().clone();
    let mut writer = LongWriter::<_, 1>::new(&epochs, LIMITS, seed, shared).expect("memory");
    // The same bucket and the same steps from there, found by trial.
    let keys: Vec<u64> =
        (0..1u64 << 25).filter(|n| seed.hash(&[*n]) & 0xf_ffff == 0x1_2345).collect();
    assert!(keys.len() > 20, "{}", keys.len());
    let most = keys.len().min(usize::try_from(PROBES).expect("few") * LONG_SLOTS);
    for key in &keys[..most] {
        let index = objects.take([*key, 0, 0, 0, 0, 0, 0, 0]).expect("room");
        assert_eq!(writer.insert(index).expect("room"), None);
    }
    for variant in Variant::available() {
        let asked: Vec<_> = (0..keys.len() * 2).map(|n| [keys[n / 2] + (n as u64 & 1)]).collect();
        let mut indexes = vec![0; asked.len()];
        writer.table().lookup_slice(variant, &asked, &mut indexes);
        for ([key], index) in asked.iter().zip(indexes) {
            let expected = writer.get(&[*key]).unwrap_or(NOT_FOUND);
            assert_eq!(index, expected, "{variant:?}");
            assert_eq!(index != NOT_FOUND, keys[..most].contains(key));
        }
    }
}

#[test]
fn two_long_keys_with_the_same_tag_in_one_bucket_are_both_found() {
    let seed = Seed::fixed(8);
    let mut seen = std::collections::HashMap::new();
    // 26 bits agree: by birthday, among some thousands of keys.
    let place = |n: u64| seed.hash(&[n]) & 0xff_ff00_03ff;
    let (a, b) =
        (0..1u64 << 20).find_map(|n| Some((seen.insert(place(n), n)?, n))).expect("a birthday");
    let epochs = Epochs::new(0);
    let mut objects = ObjectsWriter::<8>::new(&epochs, LIMITS).expect("memory");
    let shared = objects.objects().clone();
    let mut writer = LongWriter::<_, 1>::new(&epochs, LIMITS, seed, shared).expect("memory");
    let indexes = [a, b].map(|key| objects.take([key, 0, 0, 0, 0, 0, 0, 0]).expect("room"));
    indexes.iter().for_each(|index| assert!(matches!(writer.insert(*index), Ok(None))));
    for variant in Variant::available() {
        let mut found = [0; 2];
        writer.table().lookup_slice(variant, &[[a], [b]], &mut found);
        assert_eq!(found, indexes, "{variant:?}");
    }
    assert_eq!(writer.remove(&[a]), Some(indexes[0]));
    assert_eq!((writer.get(&[a]), writer.get(&[b])), (None, Some(indexes[1])));
}

//! Egress maps against a plain model.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quiver_qos::class::{Class, Source};
use quiver_qos::map::{EgressMap, Run};

fn run() -> impl Strategy<Value = Run> {
    (0..Source::ALL.len(), any::<u8>(), any::<u8>(), 0..4u8).prop_map(|(source, a, b, out)| Run {
        source: Source::ALL[source],
        first: a.min(b),
        last: a.max(b),
        out,
    })
}

proptest! {
    #[test]
    fn a_map_says_what_its_runs_say(runs in prop::collection::vec(run(), 0..12)) {
        let (mut map, mut model) = (EgressMap::default(), BTreeMap::new());
        for run in runs {
            let keys = || (run.first..=run.last).map(|value| (run.source, value));
            match keys().find(|key| model.contains_key(key)) {
                Some((_, twice)) => prop_assert_eq!(map.add(run), Err(twice)),
                None => {
                    prop_assert_eq!(map.add(run), Ok(()));
                    model.extend(keys().map(|key| (key, run.out)));
                }
            }
        }
        for source in Source::ALL {
            for value in 0..=u8::MAX {
                let said = model.get(&(source, value)).copied();
                prop_assert_eq!(map.value(Class { source, value }), said);
            }
        }
        prop_assert_eq!(map.out_max(), model.values().copied().max().unwrap_or(0));
        // What is written of it makes the same map again.
        let mut again = EgressMap::default();
        for run in map.runs() {
            prop_assert_eq!(again.add(run), Ok(()));
        }
        prop_assert!(again == map);
    }
}

//! Whatever a whitelist holds, a source passes when its longest prefix there does not drop.

use proptest::prelude::*;
use quiver_testkit::Router;
use quiver_testkit::sources::{self, Prefix, contains, prefix_of};

/// Any prefix of the hosts.
fn prefix() -> impl Strategy<Value = Prefix> {
    (any::<u8>(), 24u8..=32).prop_map(|(byte, length)| prefix_of(byte, length))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_longest_prefix_of_the_list_decides_while_it_changes(
        changes in prop::collection::vec((prefix(), 0u8..5), 1..12),
        sources in prop::collection::vec(any::<u8>(), 1..16),
    ) {
        let mut router =
            Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_cop::register]);
        sources::ports(&mut router, 2);
        router.cli("ip table add 10");
        router.cli("cop whitelist e0 ip4 fib-id 10");
        router.cli("cop interface e0");
        let mut list = std::collections::BTreeMap::new();
        for ((byte, length), what) in changes {
            let words = format!("{}/{length} table 10", sources::host(byte));
            if list.remove(&(byte, length)).is_some() {
                router.cli(&format!("ip route del {words}"));
            } else {
                let via = ["local", "10.0.0.2 e0", "drop", "prohibit", "punt"][usize::from(what)];
                router.cli(&format!("ip route add {words} via {via}"));
                list.insert((byte, length), !matches!(what, 2 | 3));
            }
            for source in &sources {
                let best = list
                    .iter()
                    .filter(|(prefix, _)| contains(**prefix, *source))
                    .max_by_key(|((_, length), _)| *length);
                let passed = sources::passes(&mut router, *source);
                prop_assert_eq!(passed, best.is_some_and(|(_, passes)| *passes), "{}", source);
            }
        }
    }
}

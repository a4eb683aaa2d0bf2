//! Whatever comes to a group, no node panics, and every buffer comes back.

use proptest::prelude::*;
use quiver_testkit::{Register, Router};

const NODES: [&str; 6] = [
    "ip4-mfib-forward-lookup",
    "ip6-mfib-forward-lookup",
    "ip4-mfib-forward-rpf",
    "ip6-mfib-forward-rpf",
    "ip4-replicate",
    "ip6-replicate",
];

fn router() -> Router {
    let features: [Register; 3] =
        [quiver_ethernet::register, quiver_ip::register, quiver_multicast::register];
    let mut router = Router::new(&features);
    for (number, node) in NODES.iter().enumerate() {
        router.cli(&format!("create test interface n{number} input {node}"));
        router.cli(&format!("set interface state n{number} up"));
        router.cli(&format!("set interface ip address n{number} 10.0.{number}.1/24"));
        router.cli(&format!("set interface ip address n{number} 2001:db8:{number}::1/64"));
    }
    for line in [
        "ip mroute add 224.0.0.0/4 Accept-all via n0 Forward via n1 Forward via local Forward",
        "ip mroute add ff00::/8 Accept-all via n0 Forward via n1 Forward ttl-threshold 9 via local \
         Forward",
        "ip mroute add 232.0.0.0/8 via n0 Accept Signal",
    ] {
        router.cli(line);
    }
    router
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic_in_any_node(
        packets in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 1..120), 0..NODES.len(), any::<bool>()), 48
        ),
    ) {
        let mut router = router();
        for (mut bytes, node, likely) in packets {
            if likely && bytes.len() > 40 {
                let six = node % 2 == 1;
                bytes[0] = if six { 0x60 } else { 0x45 };
                let group = if six { 24 } else { 16 };
                bytes[group] = if six { 0xff } else { 0xe8 };
            }
            router.inject(&format!("n{node}"), &bytes);
        }
        router.run();
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}

//! Golden frames with bytes changed, cut or longer: each is sent or counted, and no buffer is lost.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::{Register, Router, hostile};

const FEATURES: [Register; 5] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_bridge::register,
    quiver_vxlan::register,
];
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    for name in ["e0", "e1"] {
        router.interface(name);
    }
    for line in [
        "set interface ip address e1 192.0.2.1/24",
        "set interface ip address e1 2001:db8:1::1/64",
        "ip neighbor e1 192.0.2.2 02:00:00:00:00:b1",
        "ip neighbor e1 2001:db8:1::2 02:00:00:00:00:b1",
        "ip route add 203.0.113.0/24 via 192.0.2.2 e1",
        "ip route add 2001:db8:f::/48 via 2001:db8:1::2 e1",
        "create vxlan tunnel src 192.0.2.1 dst 203.0.113.2 vni 100",
        "create vxlan tunnel src 2001:db8:1::1 dst 2001:db8:f::2 vni 100",
        "create vxlan-gpe tunnel local 192.0.2.1 remote 203.0.113.2 vni 100",
        "set interface state vxlan_tunnel0 up",
        "set interface state vxlan_tunnel1 up",
        "set interface state vxlan_gpe_tunnel0 up",
        "set interface ip address vxlan_gpe_tunnel0 10.1.0.1/30",
        "create bridge-domain 1",
        "set interface l2 bridge e0 1",
        "set interface l2 bridge vxlan_tunnel0 1",
        "set interface l2 bridge vxlan_tunnel1 1",
    ] {
        router.cli(line);
    }
    router
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_loses_no_buffer(frames in hostile::frames(Path::new(GOLDEN), 2, 40)) {
        let mut router = router();
        for (port, frame) in frames {
            router.inject(&format!("e{port}"), &frame);
        }
        router.run();
        router.advance(Duration::from_secs(120));
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}

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
    quiver_l2tpv3::register,
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
        "create l2tpv3 tunnel client 2001:db8:f::2 our 2001:db8:1::1 local-cookie 10",
        "create l2tpv3 tunnel client 203.0.113.2 our 192.0.2.1 cookie-bytes 4 l2-sublayer-present",
        "set interface state l2tpv3_tunnel0 up",
        "set interface state l2tpv3_tunnel1 up",
        "create bridge-domain 1",
        "set interface l2 bridge e0 1",
        "set interface l2 bridge l2tpv3_tunnel0 1",
        "set interface l2 bridge l2tpv3_tunnel1 1",
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

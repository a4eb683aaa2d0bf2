//! Golden frames with bytes changed, cut or longer: each is sent or counted, and no buffer is lost.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::configuration::running;
use quiver_testkit::{Register, Router, hostile};

const FEATURES: [Register; 5] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_ipip::register,
    quiver_six_rd::register,
];
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    for name in ["e0", "e1"] {
        router.interface(name);
    }
    for line in [
        "set interface ip address e0 2001:db9:a::1/64",
        "set interface ip address e1 10.0.0.1/24",
        "ip neighbor e0 2001:db9:a::2 02:00:00:00:00:a0",
        "ip neighbor e1 10.0.0.2 02:00:00:00:00:b1",
        "ip route add 10.0.0.0/8 via 10.0.0.2 e1",
        "create 6rd tunnel ip6-pfx 2001:db8::/32 ip4-pfx 10.0.0.0/8 ip4-src 10.0.0.1 sec",
        "create ipip tunnel src 10.0.0.1 dst 10.200.0.1",
        "set interface state sixrd0 up",
        "set interface state ipip0 up",
        "ip route add 2001:db8::/32 via sixrd0",
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

#[test]
fn a_tunnel_of_a_refused_domain_leaves_nothing_behind() {
    let mut router = router();
    let refused = |router: &mut Router, line: &str| {
        let before = running(router);
        let refusal = router.refused(line);
        assert_eq!(running(router), before, "{line}");
        refusal
    };
    let line = "create 6rd tunnel ip6-pfx 2001:db8::/48 ip4-pfx 0.0.0.0/0 ip4-src 10.0.0.9";
    assert!(refused(&mut router, line).contains("at most 64"), "{line}");
    let line = "create 6rd tunnel ip6-pfx 2001:db8::/32 ip4-pfx 10.0.0.0/8 ip4-src 10.0.0.1";
    assert!(refused(&mut router, line).contains("sixrd0 ends at 10.0.0.1"), "{line}");
    let line =
        "create 6rd tunnel ip6-pfx 2001:db8::/32 ip4-pfx 10.0.0.0/8 ip4-src 10.0.0.9 tbl-id 7";
    assert!(refused(&mut router, line).contains("no IPv4 table 7"), "{line}");
    let line = "delete 6rd tunnel e0";
    assert!(refused(&mut router, line).contains("e0 is no 6rd tunnel"), "{line}");
}

//! Whatever comes as router discovery, no node panics, and every buffer comes back.

use proptest::prelude::*;
use quiver_testkit::{Register, Router};

fn router() -> Router {
    let features: [Register; 3] =
        [quiver_ethernet::register, quiver_ip::register, quiver_router_advertisement::register];
    let mut router = Router::new(&features);
    for (name, node) in [("n0", "icmp6-router-solicitation"), ("n1", "icmp6-router-advertisement")]
    {
        router.cli(&format!("create test interface {name} input {node}"));
        router.cli(&format!("set interface state {name} up"));
        router.cli(&format!("set interface ip address {name} 2001:db8:{}::1/64", &name[1..]));
        router.cli(&format!("ip6 nd {name} no ra-suppress"));
    }
    router
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic(
        packets in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 1..160), 0..2usize, any::<bool>()), 32
        ),
    ) {
        let mut router = router();
        for (mut bytes, node, likely) in packets {
            if likely && bytes.len() > 48 {
                // An IPv6 header that is right, with a link-local source, before options that need
                // not be.
                let payload = (bytes.len() - 40) as u16;
                bytes[..4].copy_from_slice(&[0x60, 0, 0, 0]);
                bytes[4..6].copy_from_slice(&payload.to_be_bytes());
                bytes[6..10].copy_from_slice(&[58, 255, 0xfe, 0x80]);
                bytes[40..42].copy_from_slice(&[133 + node as u8, 0]);
                bytes[42..44].fill(0);
                let sum = quiver_wire::checksum::Sum::pseudo6(
                    std::net::Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[8..24]).unwrap()),
                    std::net::Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[24..40]).unwrap()),
                    quiver_wire::IpProtocol::ICMP6,
                    u32::from(payload),
                );
                let sum = sum.bytes(&bytes[40..]).checksum();
                bytes[42..44].copy_from_slice(&sum.to_be_bytes());
            }
            router.inject(&format!("n{node}"), &bytes);
        }
        router.run();
        router.advance(std::time::Duration::from_secs(4));
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}

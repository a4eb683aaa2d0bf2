//! Whatever comes as IGMP or MLD, no node panics, and every buffer comes back.

use proptest::prelude::*;
use quiver_testkit::{Register, Router};
use quiver_wire::checksum::Sum;

const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_multicast::register,
    quiver_group_membership::register,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic(
        packets in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 1..160), 0..2usize, any::<bool>()), 32
        ),
    ) {
        let mut router = Router::new(&FEATURES);
        for (name, node) in [("n0", "igmp-input"), ("n1", "icmp6-mld-input")] {
            router.cli(&format!("create test interface {name} input {node}"));
            router.cli(&format!("set interface state {name} up"));
        }
        router.cli("set interface ip address n0 10.0.0.1/24");
        router.cli("set interface ip address n1 2001:db8::1/64");
        router.cli("igmp listen int n0 239.1.1.1");
        for (mut bytes, node, likely) in packets {
            if likely && node == 0 && bytes.len() > 32 {
                let total = (bytes.len() as u16).to_be_bytes();
                bytes[0] = 0x46;
                bytes[2..4].copy_from_slice(&total);
                bytes[8..10].copy_from_slice(&[1, 2]);
                bytes[20..25].copy_from_slice(&[148, 4, 0, 0, 0x11]);
                bytes[26..28].fill(0);
                let sum = Sum::new().bytes(&bytes[24..]).checksum().to_be_bytes();
                bytes[26..28].copy_from_slice(&sum);
            } else if likely && bytes.len() > 72 {
                let payload = ((bytes.len() - 40) as u16).to_be_bytes();
                bytes[..4].copy_from_slice(&[0x60, 0, 0, 0]);
                bytes[4..6].copy_from_slice(&payload);
                bytes[6..10].copy_from_slice(&[0, 1, 0xfe, 0x80]);
                bytes[40..49].copy_from_slice(&[58, 0, 5, 2, 0, 0, 1, 0, 130]);
            }
            router.inject(&format!("n{node}"), &bytes);
        }
        router.run();
        router.advance(std::time::Duration::from_secs(30));
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}

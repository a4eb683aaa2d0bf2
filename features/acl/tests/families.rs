//! Packets of both IP versions in one vector: each meets the rules of its own.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use quiver_testkit::frames::{self, Fragment};
use quiver_testkit::sources;

use crate::commands::router;
use crate::sessions::ip6;

const UDP: u8 = 17;

/// A datagram to a port, in a frame.
fn datagram(is_ip6: bool, host: u8, port: u8) -> Vec<u8> {
    let udp = [0, 1, 0, port, 0, 14, 0, 0, 1, 2, 3, 4, 5, 6];
    if is_ip6 {
        let address = |net, host: u8| Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host.into());
        return ip6(0, (address(0, host), address(1, 2)), UDP, &udp);
    }
    let addresses = (sources::host(host), Ipv4Addr::new(10, 0, 1, 2));
    frames::ip4(0, addresses, frames::UDP, Fragment::default(), &udp)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn each_packet_meets_the_rules_of_its_version_and_goes_on_in_order(
        runs in prop::collection::vec((any::<bool>(), 80u8..83, 1usize..150), 1..6),
        reflects: bool,
    ) {
        let mut router = router();
        for net in 0..2 {
            router.cli(&format!("set interface ip address e{net} 2001:db8:{net}::1/64"));
            router.cli(&format!("ip neighbor e{net} 2001:db8:{net}::2 02:00:00:00:00:0{net}"));
        }
        if reflects {
            router.cli("set acl-plugin session table max-entries 4096");
        }
        let permit = if reflects { "permit+reflect" } else { "permit" };
        router.cli(&format!(
            "set acl-plugin acl index 1 {permit} ipv4 proto udp dport 80, \
             {permit} ipv6 proto udp dport 81"
        ));
        router.cli("set acl-plugin interface e1 output acl 1");
        let (mut expected, mut host) = (Vec::new(), 0_u8);
        for (is_ip6, port, count) in runs {
            for _ in 0..count {
                host = host.wrapping_add(1);
                router.inject("e0", &datagram(is_ip6, host, port));
                if port == (if is_ip6 { 81 } else { 80 }) {
                    expected.push((is_ip6, host));
                }
            }
        }
        router.run();
        let mut sent: Vec<(bool, u8)> = router
            .sent("e1")
            .iter()
            .map(|frame| (frame[12] == 0x86, if frame[12] == 0x86 { frame[37] } else { frame[29] }))
            .collect();
        if reflects {
            // Those whose sessions are made go by others that wait for theirs.
            sent.sort_unstable();
            expected.sort_unstable();
        }
        sent.sort_by_key(|(is_ip6, _)| *is_ip6);
        expected.sort_by_key(|(is_ip6, _)| *is_ip6);
        prop_assert_eq!(sent, expected);
    }
}

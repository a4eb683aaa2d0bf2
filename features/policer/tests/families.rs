//! Packets of both IP versions in one vector: each meets the lists of its own, and all what stands
//! behind.

use proptest::prelude::*;

use crate::classes::{datagram, router};

/// An IPv6 datagram of a host to a port, in a frame.
fn datagram6(host: u8, port: u8) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x86, 0xdd];
    frame.extend([0x60, 0, 0, 0, 0, 8, 17, 64]);
    let mut addresses = [0; 32];
    addresses[..4].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
    addresses[15] = host;
    addresses[16..20].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
    (addresses[21], addresses[31]) = (1, 2);
    frame.extend(addresses);
    frame.extend([0, 1, 0, port, 0, 8, 0, 0]);
    frame
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn each_packet_is_metered_by_the_lists_of_its_version_alone(
        runs in prop::collection::vec((any::<bool>(), 1usize..150), 1..6),
        bursts in prop::array::uniform2(1usize..200),
        is_output: bool,
    ) {
        let mut router = router();
        let on = if is_output { "e1 output" } else { "e0 input" };
        for (version, burst) in [4, 6].iter().zip(bursts) {
            router.cli(&format!("policer add name p{version} rate pps cir 1 cb {burst}"));
            router.cli(&format!("set acl-plugin acl index {version} permit ipv{version}"));
            let class = format!("{on} acl {version} policer p{version}");
            router.cli(&format!("set policer classify interface {class}"));
        }
        // Behind the lists of both versions.
        router.cli("policer add name all rate pps cir 1000 cb 1000000");
        router.cli("policer output name all e1");
        let (mut left, mut expected, mut host) = (bursts, Vec::new(), 0_u8);
        for (is_ip6, count) in runs {
            for _ in 0..count {
                host = host.wrapping_add(1);
                let frame = if is_ip6 { datagram6(host, 80) } else { datagram(0, host, 80) };
                router.inject("e0", &frame);
                let left = &mut left[usize::from(is_ip6)];
                if *left > 0 {
                    *left -= 1;
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
        let metered = router.json("show policer all")[0]["packets"].as_u64();
        prop_assert_eq!(metered, Some(sent.len() as u64));
        // Packets of one version keep their order.
        sent.sort_by_key(|(is_ip6, _)| *is_ip6);
        expected.sort_by_key(|(is_ip6, _)| *is_ip6);
        prop_assert_eq!(sent, expected);
    }
}

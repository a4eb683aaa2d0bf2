//! Whatever a whitelist holds, a source passes when its longest prefix there does not drop.

use std::net::Ipv4Addr;

use proptest::prelude::*;
use quiver_testkit::Router;

/// A prefix inside 198.51.100.0/24: last byte and length.
fn prefix() -> impl Strategy<Value = (u8, u8)> {
    (any::<u8>(), 24u8..=32).prop_map(|(byte, length)| (byte & (0xffu64 << (32 - length)) as u8, length))
}

fn frame(source: u8) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 198, 51, 100, source, 10, 0, 1, 2];
    let all: u32 = header.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    let sum = !((all & 0xffff) + (all >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&[2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 8, 0], &header[..], &[0, 1, 0, 2, 0, 8, 0, 0]].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_longest_prefix_of_the_list_decides_while_it_changes(
        changes in prop::collection::vec((prefix(), 0u8..5), 1..12),
        sources in prop::collection::vec(any::<u8>(), 1..16),
    ) {
        let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_cop::register]);
        for number in 0..2 {
            router.interface(&format!("e{number}"));
            router.cli(&format!("set interface ip address e{number} 10.0.{number}.1/24"));
            router.cli(&format!("ip neighbor e{number} 10.0.{number}.2 02:00:00:00:00:0{number}"));
        }
        router.cli("ip table add 10");
        router.cli("cop whitelist e0 ip4 fib-id 10");
        router.cli("cop interface e0");
        let mut list = std::collections::BTreeMap::new();
        for ((byte, length), what) in changes {
            let words = format!("{}/{length} table 10", Ipv4Addr::new(198, 51, 100, byte));
            if list.remove(&(byte, length)).is_some() {
                router.cli(&format!("ip route del {words}"));
            } else {
                let via = ["local", "10.0.0.2 e0", "drop", "prohibit", "punt"][usize::from(what)];
                router.cli(&format!("ip route add {words} via {via}"));
                list.insert((byte, length), !matches!(what, 2 | 3));
            }
            for source in &sources {
                let covers =
                    |(byte, length): &(u8, u8)| *length <= 24 || u32::from(byte ^ source) >> (32 - length) == 0;
                let best = list.iter().filter(|(prefix, _)| covers(prefix)).max_by_key(|((_, length), _)| *length);
                router.send("e0", &frame(*source));
                let passed = !router.sent("e1").is_empty();
                prop_assert_eq!(passed, best.is_some_and(|(_, passes)| *passes), "{}", source);
                router.sent("e0");
            }
        }
    }
}

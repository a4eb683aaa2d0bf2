//! Whatever routes there are, sources are judged as a naive reading of the table says (RFC 3704).

use std::net::Ipv4Addr;

use proptest::prelude::*;
use quiver_testkit::Router;

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum To {
    /// Neighbours of these interfaces share the traffic.
    Out([bool; 3]),
    Drop,
    Local,
    Unreachable,
}

/// A prefix inside 198.51.100.0/24: last byte and length; 0 is the default route.
type Prefix = (u8, u8);

fn route() -> impl Strategy<Value = (Prefix, To)> {
    let prefix = prop_oneof![
        1 => Just((0u8, 0u8)),
        8 => (any::<u8>(), 24u8..=32).prop_map(|(byte, length)| {
            (byte & (0xffu64 << (32 - length)) as u8, length)
        }),
    ];
    let to = prop_oneof![
        6 => any::<[bool; 3]>().prop_map(|out| if out == [false; 3] { To::Drop } else { To::Out(out) }),
        1 => Just(To::Drop),
        1 => Just(To::Unreachable),
        1 => Just(To::Local),
    ];
    (prefix, to)
}

fn contains((byte, length): Prefix, source: u8) -> bool {
    length <= 24 || u32::from(byte ^ source) >> (32 - length) == 0
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
    fn a_source_passes_where_its_route_says_so(
        routes in prop::collection::vec(route(), 0..10),
        sources in prop::collection::vec(any::<u8>(), 1..30),
    ) {
        let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_urpf::register]);
        for number in 0..3 {
            router.interface(&format!("e{number}"));
            router.cli(&format!("set interface ip address e{number} 10.0.{number}.1/24"));
            router.cli(&format!("ip neighbor e{number} 10.0.{number}.2 02:00:00:00:00:0{number}"));
        }
        let mut table: Vec<(Prefix, To)> = Vec::new();
        for (prefix, to) in routes {
            if table.iter().any(|(known, _)| *known == prefix) {
                continue;
            }
            let via: String = match to {
                To::Drop => " via drop".into(),
                To::Local => " via local".into(),
                To::Unreachable => " via unreachable".into(),
                To::Out(out) => {
                    let on = (0..3).filter(|number| out[*number]);
                    on.map(|number| format!(" via 10.0.{number}.2 e{number}")).collect()
                }
            };
            let words = match prefix {
                (_, 0) => "0.0.0.0/0".to_owned(),
                (byte, length) => format!("{}/{length}", Ipv4Addr::new(198, 51, 100, byte)),
            };
            router.cli(&format!("ip route add {words}{via}"));
            table.push((prefix, to));
        }
        for mode in ["strict", "loose"] {
            router.cli(&format!("set urpf ip4 rx {mode} e0"));
            for source in &sources {
                let best = table.iter().filter(|(prefix, _)| contains(*prefix, *source));
                let best = best.max_by_key(|((_, length), _)| *length).map(|(_, to)| *to);
                let expected = match best {
                    Some(To::Out(out)) => mode == "loose" || out[0],
                    _ => false,
                };
                router.send("e0", &frame(*source));
                let passed = !router.sent("e1").is_empty();
                prop_assert_eq!(passed, expected, "{} from {}: {:?}", mode, source, best);
                router.sent("e0");
            }
        }
    }
}

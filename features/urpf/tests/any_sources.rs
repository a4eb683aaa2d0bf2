//! Whatever routes there are, sources are checked as a naive reading of the table says (RFC 3704).

use proptest::prelude::*;
use quiver_testkit::Router;
use quiver_testkit::sources::{self, Prefix, contains, prefix_of};

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum To {
    /// Neighbours of these interfaces share the traffic.
    Out([bool; 3]),
    Drop,
    Local,
    Unreachable,
}

/// Any route to a prefix of the hosts, or the default route.
fn route() -> impl Strategy<Value = (Prefix, To)> {
    let prefix = prop_oneof![
        1 => Just((0u8, 0u8)),
        8 => (any::<u8>(), 24u8..=32).prop_map(|(byte, length)| prefix_of(byte, length)),
    ];
    let to = prop_oneof![
        6 => any::<[bool; 3]>().prop_map(
            |out| if out == [false; 3] { To::Drop } else { To::Out(out) }
        ),
        1 => Just(To::Drop),
        1 => Just(To::Unreachable),
        1 => Just(To::Local),
    ];
    (prefix, to)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_source_passes_where_its_route_says_so(
        routes in prop::collection::vec(route(), 0..10),
        sources in prop::collection::vec(any::<u8>(), 1..30),
    ) {
        let mut router =
            Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_urpf::register]);
        sources::ports(&mut router, 3);
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
                (byte, length) => format!("{}/{length}", sources::host(byte)),
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
                let passed = sources::passes(&mut router, *source);
                prop_assert_eq!(passed, expected, "{} from {}: {:?}", mode, source, best);
            }
        }
    }
}

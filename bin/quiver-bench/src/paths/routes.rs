//! Tables of a path that are too long for its commands, as files of routes.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_tables::synthetic::{Random, internet_ip4, internet_ip6};

use super::NEXT_HOPS;
use crate::acl_paths::Listed;
use crate::segments;

/// Prefixes of the full tables.
pub const FULL_IP4: usize = 1_000_000;
pub const FULL_IP6: usize = 200_000;
/// Lines of a file of routes.
const LINES: u32 = 1_000_000;

/// Full tables.
#[derive(Clone, Copy, Debug)]
pub enum Routes {
    /// A million IPv4 prefixes.
    FullIp4,
    /// 200,000 IPv6 prefixes.
    FullIp6,
    /// So many IPv4 host routes, each with a next hop of its own choice, so that nothing can be
    /// merged.
    Hosts4(u32),
    /// So many IPv6 host routes, likewise.
    Hosts6(u32),
    /// So many local SIDs, one after the other.
    LocalSids(u32),
    /// An access list of IPv4 rules.
    Rules4(Listed),
    /// An access list of IPv6 rules.
    Rules6(Listed),
}

impl Routes {
    /// The files.
    pub fn files(self) -> Box<dyn Iterator<Item = String>> {
        let files = |count: u32| {
            (0..count).step_by(LINES as usize).map(move |at| (at, count.min(at + LINES)))
        };
        match self {
            Routes::FullIp4 => Box::new(std::iter::once(lines4(internet_ip4(FULL_IP4, 1)))),
            Routes::FullIp6 => Box::new(std::iter::once(lines6(internet_ip6(FULL_IP6, 1)))),
            Routes::Hosts4(count) => Box::new(files(count).map(|(from, to)| {
                lines4((from..to).map(|i| format!("{}/32", Ipv4Addr::from_bits(0x1400_0000 + i))))
            })),
            Routes::Rules4(listed) => Box::new(std::iter::once(listed.lines::<u32>())),
            Routes::Rules6(listed) => Box::new(std::iter::once(listed.lines::<u128>())),
            Routes::LocalSids(count) => Box::new(files(count).map(|(from, to)| {
                let sid = |i| Ipv6Addr::from_bits(segments::SID.to_bits() + u128::from(i));
                let line = |i| format!("sr localsid address {} behavior end\n", sid(i));
                (from..to).map(line).collect()
            })),
            Routes::Hosts6(count) => Box::new(files(count).map(|(from, to)| {
                let base = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0).to_bits();
                lines6(
                    (from..to)
                        .map(move |i| format!("{}/128", Ipv6Addr::from_bits(base + u128::from(i)))),
                )
            })),
        }
    }
}

fn lines4(prefixes: impl IntoIterator<Item: std::fmt::Display>) -> String {
    lines(prefixes, |host| format!("10.1.0.{host}"))
}

fn lines6(prefixes: impl IntoIterator<Item: std::fmt::Display>) -> String {
    lines(prefixes, |host| format!("2001:db8:ffff::{host:x}"))
}

/// A command for each prefix, by a next hop drawn for it.
fn lines(
    prefixes: impl IntoIterator<Item: std::fmt::Display>,
    hop: impl Fn(u64) -> String,
) -> String {
    use std::fmt::Write;
    let mut random = Random::new(5);
    let mut lines = String::new();
    for prefix in prefixes {
        let _ = writeln!(
            lines,
            "ip route add {prefix} via {} bench1",
            hop(2 + random.below(NEXT_HOPS))
        );
    }
    lines
}

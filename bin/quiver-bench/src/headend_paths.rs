//! The paths into SRv6 policies: one list of one or two segments, around IPv6, IPv4 and frames, or
//! inserted; by binding SIDs; and ten thousand policies.

use crate::bare::exchange::{Exchange, Layer};
use crate::paths::{Packets, Path, Work, path};
use crate::segments::{self, Carried};

/// Policies of the path that has many.
const MANY: u32 = 10_000;

/// Routes that every path has: to the segments.
const COMMON: [&str; 2] = [
    "set sr encaps source addr 2001:db8:ffff::1",
    "ip route add fc00::/16 via 2001:db8:ffff::2 bench1",
];

fn with(name: &str, work: Work, packets: Packets, own: &[&str]) -> Path {
    let setup: Vec<&str> = COMMON.iter().chain(own).copied().collect();
    let mut path = path(name, work, packets, &setup, None);
    path.length = if matches!(work, Work::Encapsulate6) { 74 } else { 60 };
    path
}

/// So many destinations, each with a policy of its own.
fn many(count: u32) -> Path {
    let lines = (0..count).flat_map(|at| {
        let bsid = format!("fd00::{at:x}");
        [
            format!("sr policy add bsid {bsid} next fc00:0:{at:x}::1 next fc00:0:{at:x}::2 encap"),
            format!("sr steer l3 2001:db8::{at:x}/128 via bsid {bsid}"),
        ]
    });
    let mut path = with("srv6-hencaps-v6-2-10k", Work::Encapsulate6, Packets::Ip6 { count }, &[]);
    path.setup.extend(lines);
    path
}

/// To a binding SID, with a list of two segments: the policy's header goes around, or its segments
/// before them.
fn bound(name: &str, work: Exchange, how: &str) -> Path {
    let policy = format!("sr policy add bsid {} next fc00::1 next fc00::2 {how}", segments::SID);
    let packets = Packets::Segments { carried: Carried::Udp, sids: 1 };
    let mut path = with(name, Work::Exchange(work), packets, &[&policy]);
    path.length = segments::frame(Carried::Udp).len();
    path
}

/// All of them.
pub fn all() -> Vec<Path> {
    let (six, four) = (Packets::Ip6 { count: 1 }, Packets::Ip4 { count: 1, random: true });
    let one = "sr policy add bsid fd00::1 next fc00::1 encap";
    let two = "sr policy add bsid fd00::1 next fc00::1 next fc00::2 encap";
    let reduced = "sr policy add bsid fd00::1 next fc00::1 next fc00::2 encap.red";
    let insert = "sr policy add bsid fd00::1 next fc00::1 next fc00::2 insert";
    let (key, signed) =
        ("sr hmac key 7 algo sha256 secret correct-horse", format!("{insert} hmac 7"));
    let steer6 = "sr steer l3 2001:db8::/128 via bsid fd00::1";
    let steer4 = "sr steer l3 20.0.0.0/32 via bsid fd00::1";
    let frames = "sr steer l2 bench0 via bsid fd00::1";
    // An IPv6 header and an SRH of two segments.
    let around = Exchange { puts: 40 + 40, ..Exchange::of(Layer::Ip6, Layer::Ip6) };
    vec![
        with("srv6-hencaps-v6-1", Work::Encapsulate6, six, &[one, steer6]),
        with("srv6-hencaps-v6-2", Work::Encapsulate6, six, &[two, steer6]),
        with("srv6-hencaps-red-v6-2", Work::Encapsulate6, six, &[reduced, steer6]),
        with("srv6-hencaps-v4-2", Work::Encapsulate4, four, &[two, steer4]),
        with("srv6-hencaps-l2", Work::EncapsulateFrames, Packets::Any, &[two, frames]),
        with("srv6-hinsert", Work::Encapsulate6, six, &[insert, steer6]),
        with("srv6-hinsert-hmac", Work::Encapsulate6, six, &[key, &signed, steer6]),
        bound("srv6-b6-encaps", Exchange { carries: Some((40 + 8, 80 + 24)), ..around }, "encap"),
        bound("srv6-b6-insert", Exchange { takes: 40, ..around }, "insert"),
        many(MANY),
    ]
}

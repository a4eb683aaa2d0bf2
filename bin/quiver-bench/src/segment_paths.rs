//! The paths to local SIDs, one behaviour each, of packets with a list of two segments.

use crate::bare::exchange::{Exchange, Layer};
use crate::paths::{Packets, Path, Routes, Work, path};
use crate::segments::{self, Carried};

/// All of them.
pub fn all() -> Vec<Path> {
    const NEXT: &str = "ip route add 2001:db8::/128 via 2001:db8:ffff::2 bench1";
    const OUT4: &str = "ip route add 20.0.0.0/32 via 10.1.0.2 bench1";
    const TABLE: &str = "ip6 table add 10";
    const NEXT10: &str = "ip route add 2001:db8::/128 table 10 via 2001:db8:ffff::2 bench1";
    let of = |name: &str, carried, work: Exchange, behavior: &str, before: &[&str]| {
        let sid = format!("sr localsid address {} behavior {behavior}", segments::SID);
        let setup: Vec<&str> = before.iter().copied().chain([sid.as_str()]).collect();
        let packets = Packets::Segments { carried, sids: 1 };
        let length = segments::frame(carried).len();
        Path { length, ..path(name, Work::Exchange(work), packets, &setup, None) }
    };
    let looked_up = |exchange: Exchange| Exchange { looks_up: true, ..exchange };
    // The next segment becomes the destination.
    let step = Exchange { carries: Some((40 + 8, 24)), ..Exchange::of(Layer::Ip6, Layer::Ip6) };
    let popped =
        Exchange { takes: 40, carries: Some((24, 24)), ..Exchange::of(Layer::Ip6, Layer::Ip6) };
    // What is inside goes on without IPv6 and an SRH of two segments.
    let inside = |leaves| Exchange { takes: 40 + 40, ..Exchange::of(Layer::Ip6, leaves) };
    let many = |name: &str, sids| Path {
        length: segments::frame(Carried::Udp).len(),
        ..path(
            name,
            Work::Exchange(looked_up(step)),
            Packets::Segments { carried: Carried::Udp, sids },
            &[NEXT],
            Some(Routes::LocalSids(sids)),
        )
    };
    let un = {
        let next =
            format!("ip route add {}/48 via 2001:db8:ffff::2 bench1", segments::COMPRESSED_NEXT);
        let sid = format!("sr localsid address {}/48 behavior un", segments::SID);
        let packets = Packets::Segments { carried: Carried::Compressed, sids: 1 };
        let length = segments::frame(Carried::Compressed).len();
        // The C-SIDs behind the active one move up.
        let work =
            Exchange { carries: Some((24, 24)), ..looked_up(Exchange::of(Layer::Ip6, Layer::Ip6)) };
        Path { length, ..path("srv6-un", Work::Exchange(work), packets, &[&next, &sid], None) }
    };
    let (four, six, frame) = (inside(Layer::Ip4), inside(Layer::Ip6), inside(Layer::Frame));
    let (x4, x6) = ("bench1 10.1.0.2", "bench1 2001:db8:ffff::2");
    vec![
        un,
        of("srv6-end", Carried::Udp, looked_up(step), "end", &[NEXT]),
        of("srv6-end-psp", Carried::Udp, looked_up(popped), "end psp", &[NEXT]),
        of("srv6-end-usd", Carried::Ip6, looked_up(six), "end usd", &[NEXT]),
        of("srv6-endx", Carried::Udp, step, &format!("end.x {x6}"), &[]),
        of("srv6-endt", Carried::Udp, looked_up(step), "end.t 10", &[TABLE, NEXT10]),
        of("srv6-enddx4", Carried::Ip4, four, &format!("end.dx4 {x4}"), &[]),
        of("srv6-enddx6", Carried::Ip6, six, &format!("end.dx6 {x6}"), &[]),
        of("srv6-enddt4", Carried::Ip4, looked_up(four), "end.dt4 0", &[OUT4]),
        of("srv6-enddt6", Carried::Ip6, looked_up(six), "end.dt6 0", &[NEXT]),
        of("srv6-enddx2", Carried::Frame, frame, "end.dx2 bench1", &[]),
        many("srv6-end-100k", 100_000),
    ]
}

//! Whatever can be wrong with a packet for a local SID or a binding SID, behaviour by behaviour:
//! what its sender hears, or why it dies, node by node and in one pass, and that nothing else has
//! changed (`malformed.txt` is the table).

use quiver_testkit::{Router, Settings};

use crate::fixture::{self, Srh, WITH_SEGMENTS, assert_same_fate, ethernet, ip6, outcome, udp};

/// What a SID is for: what a good packet to it looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Good {
    /// One segment left, and something inside.
    On(Inner),
    /// The SID is the last segment, with something inside.
    Last(Inner),
    /// No SRH: what follows stands in the destination, or the packet is for the SID as it is.
    Bare(Inner),
}

/// What is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inner {
    Udp,
    Four,
    Six,
    Frame,
    Gtpu,
}

use Good::{Bare, Last, On};
use Inner::{Four, Frame, Gtpu, Six, Udp};

/// A SID's name in the table, the address that packets are sent to, the SID as it is configured,
/// and its behaviour.
type Sid = (&'static str, &'static str, &'static str, &'static str, Good);

/// One of every behaviour, and binding SIDs.
const SIDS: [Sid; 42] = [
    ("end", "fc00:0:1::1", "fc00:0:1::1", "end", On(Udp)),
    ("end-flavours", "fc00:0:1::2", "fc00:0:1::2", "end psp usp usd", On(Udp)),
    ("end-usd", "fc00:0:1::3", "fc00:0:1::3", "end usd", Last(Six)),
    ("end.t", "fc00:0:1::4", "fc00:0:1::4", "end.t 10", On(Udp)),
    ("end.x", "fc00:0:1::5", "fc00:0:1::5", "end.x e1 2001:db8:1::2", On(Udp)),
    ("end.x-flavours", "fc00:0:1::6", "fc00:0:1::6", "end.x e1 2001:db8:1::2 psp usp usd", On(Udp)),
    ("end.dx4", "fc00:0:1::7", "fc00:0:1::7", "end.dx4 e1 10.0.1.2", Last(Four)),
    ("end.dx6", "fc00:0:1::8", "fc00:0:1::8", "end.dx6 e1 2001:db8:1::2", Last(Six)),
    ("end.dt4", "fc00:0:1::9", "fc00:0:1::9", "end.dt4 0", Last(Four)),
    ("end.dt6", "fc00:0:1::a", "fc00:0:1::a", "end.dt6 0", Last(Six)),
    ("end.dt46-4", "fc00:0:1::b", "fc00:0:1::b", "end.dt46 0", Last(Four)),
    ("end.dt46-6", "fc00:0:1::b", "", "", Last(Six)),
    ("end.dx2", "fc00:0:1::c", "fc00:0:1::c", "end.dx2 e1", Last(Frame)),
    ("end.dx2v", "fc00:0:1::d", "fc00:0:1::d", "end.dx2v 7", Last(Frame)),
    ("end.dt2u", "fc00:0:1::e", "fc00:0:1::e", "end.dt2u sr_l2_tunnel0", Last(Frame)),
    ("end.dt2m", "fc00:0:1::f", "fc00:0:1::f", "end.dt2m sr_l2_tunnel0", Last(Frame)),
    ("end.b6.encaps", "fc00:0:1::b1", "", "", On(Udp)),
    ("end.b6.encaps.red", "fc00:0:1::b2", "", "", On(Udp)),
    ("end.b6.insert", "fc00:0:1::b3", "", "", On(Udp)),
    ("end.b6.insert.red", "fc00:0:1::b4", "", "", On(Udp)),
    ("un", "fcbb:bbbb:1::", "fcbb:bbbb:1::/48", "un", On(Udp)),
    ("un-argument", "fcbb:bbbb:1:9::", "", "", Bare(Udp)),
    ("ua", "fcbb:bbbb:2::", "fcbb:bbbb:2::/48", "ua e1 2001:db8:1::2", On(Udp)),
    ("ut", "fcbb:bbbb:3::", "fcbb:bbbb:3::/48", "ut 10", On(Udp)),
    ("udt4", "fcbb:bbbb:4::", "fcbb:bbbb:4::/48", "end.dt4 0", Last(Four)),
    ("udx6", "fcbb:bbbb:5::", "fcbb:bbbb:5::/48", "end.dx6 e1 2001:db8:1::2", Last(Six)),
    ("end.replace", "fc00:0:b:1:1::", "fc00:0:b:1:1::/80", "end.replace", On(Udp)),
    (
        "end.x.replace",
        "fc00:0:b:1:2::",
        "fc00:0:b:1:2::/80",
        "end.x.replace e1 2001:db8:1::2",
        On(Udp),
    ),
    ("end.t.replace", "fc00:0:b:1:3::", "fc00:0:b:1:3::/80", "end.t.replace 10", On(Udp)),
    (
        "end.as-4",
        "fc00:0:1::20",
        "fc00:0:1::20",
        "end.as nh 10.0.3.2 oif e3 iif e3 src fc00::1 next fc00:0:9::9",
        On(Four),
    ),
    (
        "end.as-6",
        "fc00:0:1::21",
        "fc00:0:1::21",
        "end.as nh 2001:db8:3::2 oif e3 iif e3 src fc00::1 next fc00:0:9::9",
        On(Six),
    ),
    (
        "end.as-2",
        "fc00:0:1::22",
        "fc00:0:1::22",
        "end.as oif e4 iif e4 src fc00::1 next fc00:0:9::9",
        On(Frame),
    ),
    ("end.ad-4", "fc00:0:1::23", "fc00:0:1::23", "end.ad nh 10.0.5.2 oif e5 iif e5", On(Four)),
    ("end.ad-6", "fc00:0:1::24", "fc00:0:1::24", "end.ad nh 2001:db8:5::2 oif e5 iif e5", On(Six)),
    ("end.ad-2", "fc00:0:1::25", "fc00:0:1::25", "end.ad oif e6 iif e6", On(Frame)),
    ("end.am", "fc00:0:1::26", "fc00:0:1::26", "end.am nh 2001:db8:7::2 oif e7 iif e7", On(Udp)),
    (
        "end.m.gtp4.e",
        "fc01:1:0:a00:102:400::7",
        "fc01:1::/48",
        "end.m.gtp4.e v4src_addr 10.9.9.9",
        Last(Four),
    ),
    ("end.m.gtp6.e", "fc01:3::400:0:700:0", "fc01:3::/64", "end.m.gtp6.e", On(Four)),
    (
        "end.m.gtp6.d",
        "fc01:6::1",
        "fc01:6::/64",
        "end.m.gtp6.d fc00:2::/48 source fc00:1::1",
        Bare(Gtpu),
    ),
    (
        "end.m.gtp6.d.di",
        "fc01:8::1",
        "fc01:8::/64",
        "end.m.gtp6.d.di fc00:3::/64 source fc00:1::1",
        Bare(Gtpu),
    ),
    ("end.map", "fc01:a::1", "fc01:a::/48", "end.map fc00:3::/48", On(Udp)),
    ("ip6", "2001:db8:1::9", "", "", Bare(Udp)),
];

const SETUP: [&str; 20] = [
    "ip table add 10",
    "ip6 table add 10",
    "ip route add fc00::/16 via 2001:db8:1::2",
    "ip route add fcbb:bbbb::/32 via 2001:db8:1::2",
    "ip route add 2001:db8:20::/48 via 2001:db8:1::2",
    "ip route add ::/0 table 10 via ip6-lookup-in-table 0",
    "ip route add 20.0.0.0/8 via 10.0.1.2",
    "set ip icmp-rate-limit 1000000 burst 100000",
    "set sr encaps source addr 2001:db8:1::1",
    "sr vlan-table add 7 untagged e1",
    "sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 next fc00:0:3::1 encap",
    "sr policy add bsid fc00:0:1::b2 next fc00:0:2::1 next fc00:0:3::1 encap.red",
    "sr policy add bsid fc00:0:1::b3 next fc00:0:2::1 next fc00:0:3::1 insert",
    "sr policy add bsid fc00:0:1::b4 next fc00:0:2::1 next fc00:0:3::1 insert.red",
    "create sr l2-tunnel unicast bsid fc00:0:1::b1",
    "set interface state sr_l2_tunnel0 up",
    "set interface l2 bridge sr_l2_tunnel0 1",
    "set interface l2 bridge e8 1",
    "l2fib add 02:00:00:00:09:01 1 e8 static",
    "set interface mtu packet 1400 e1",
];
/// Ports of the router; some are for frames.
const PORTS: usize = 9;
const FOR_FRAMES: [usize; 3] = [4, 6, 8];

fn router(settings: Settings) -> Router {
    let mut router = Router::with(settings, &WITH_SEGMENTS);
    for port in 0..PORTS {
        router.interface(&format!("e{port}"));
        if FOR_FRAMES.contains(&port) {
            continue;
        }
        for line in [
            format!("set interface ip address e{port} 10.0.{port}.1/24"),
            format!("set interface ip address e{port} 2001:db8:{port}::1/64"),
            format!("ip neighbor e{port} 10.0.{port}.2 02:00:00:00:00:0{port} static"),
            format!("ip neighbor e{port} 2001:db8:{port}::2 02:00:00:00:00:0{port} static"),
            format!("ip neighbor e{port} 2001:db8:{port}::9 02:00:00:00:00:0{port} static"),
        ] {
            router.cli(&line);
        }
    }
    SETUP.into_iter().for_each(|line| drop(router.cli(line)));
    for (_, _, sid, behavior, _) in SIDS.into_iter().filter(|(_, _, sid, ..)| !sid.is_empty()) {
        router.cli(&format!("sr localsid address {sid} behavior {behavior}"));
    }
    router
}

/// A packet for a SID.
#[derive(Clone, Debug)]
struct Sent {
    to: &'static str,
    lists: Vec<Srh>,
    hops: u8,
    inner: Inner,
    inner_hops: u8,
    payload: usize,
    /// Bytes of what is inside that are there.
    cut: Option<usize>,
}

const SOURCE: &str = "2001:db8::2";

fn ip4(ttl: u8, payload: usize) -> Vec<u8> {
    fixture::ip4([10, 0, 0, 2], [20, 0, 0, 7], ttl, false, &udp(payload, 0))
}

/// The protocol and the bytes of what is inside.
fn inside(sent: &Sent) -> (u8, Vec<u8>) {
    let (hops, payload) = (sent.inner_hops, sent.payload);
    let (protocol, mut bytes) = match sent.inner {
        Udp => (17, udp(payload, 0)),
        Four => (4, ip4(hops, payload)),
        Six => (41, ip6(SOURCE, "2001:db8:20::7", 17, hops, &udp(payload, 0))),
        Frame => {
            let addresses = [2, 0, 0, 0, 9, 1, 2, 0, 0, 0, 9, 2, 8, 0];
            (143, [addresses.to_vec(), ip4(hops, payload)].concat())
        }
        Gtpu => {
            let user = ip4(hops, payload);
            let length = (user.len() as u16).to_be_bytes();
            let message = [&[0x30, 0xff, length[0], length[1], 0, 0, 0, 7][..], &user].concat();
            let length = (message.len() as u16 + 8).to_be_bytes();
            (17, [&[0x30, 0x39, 0x08, 0x68, length[0], length[1], 0, 0][..], &message].concat())
        }
    };
    bytes.truncate(sent.cut.unwrap_or(bytes.len()));
    (protocol, bytes)
}

/// How long the headers of what is inside are.
fn inner_headers(inner: Inner) -> usize {
    match inner {
        Udp => 8,
        Four => 20,
        Six => 40,
        Frame => 14,
        Gtpu => 16,
    }
}

/// What is shorter is not what the SID is for.
fn first_looked_at(inner: Inner) -> usize {
    if inner == Gtpu { 8 } else { 0 }
}

fn frame(sent: &Sent) -> Vec<u8> {
    let (mut next, mut rest) = inside(sent);
    for list in sent.lists.iter().rev() {
        (next, rest) = (43, [list.bytes(next), rest].concat());
    }
    ethernet([2, 0xfe, 0, 0, 0, 0], 0x86dd, &ip6(SOURCE, sent.to, next, sent.hops, &rest))
}

const LAST: &str = "fc00:0:9::9";

/// A good packet.
fn good(to: &'static str, good: Good) -> Sent {
    let (lists, inner) = match good {
        On(inner) => (vec![Srh::new(&[LAST, to], 1)], inner),
        Last(inner) => (vec![Srh::new(&[to, LAST], 0)], inner),
        Bare(inner) => (vec![], inner),
    };
    Sent { to, lists, hops: 64, inner, inner_hops: 64, payload: 26, cut: None }
}

/// What can be wrong, and how a good packet becomes so.
type Class = (&'static str, fn(&mut Sent));

fn set_list(sent: &mut Sent, change: impl FnOnce(&mut Srh)) {
    let mut list = Srh::new(&[LAST, sent.to], 1);
    change(&mut list);
    sent.lists = vec![list];
}

fn next_segment(sent: &mut Sent, next: &str) {
    let to = sent.to;
    sent.lists = vec![Srh::new(&[next, to], 1)];
}

const CLASSES: [Class; 22] = [
    ("nothing", |_| ()),
    ("srh-beyond-packet", |sent| set_list(sent, |list| list.length = Some(200))),
    ("srh-beyond-packet-none-left", |sent| {
        set_list(sent, |list| (list.length, list.left) = (Some(200), 0))
    }),
    ("left-beyond-list", |sent| set_list(sent, |list| list.left = 9)),
    ("last-entry-beyond-srh", |sent| set_list(sent, |list| list.last = Some(9))),
    ("empty-list", |sent| {
        set_list(sent, |list| {
            list.segments.clear();
            list.last = Some(0);
        });
    }),
    ("empty-list-none-left", |sent| {
        set_list(sent, |list| {
            list.segments.clear();
            (list.last, list.left) = (Some(0), 0);
        });
    }),
    ("other-routing-type", |sent| set_list(sent, |list| list.kind = 2)),
    ("other-routing-type-none-left", |sent| set_list(sent, |list| (list.kind, list.left) = (2, 0))),
    ("nested-first-is-through", |sent| {
        sent.lists = vec![Srh::new(&[sent.to], 0), Srh::new(&[LAST, sent.to], 1)];
    }),
    ("nested-both-lead-on", |sent| {
        sent.lists = vec![Srh::new(&[LAST, sent.to], 1), Srh::new(&[LAST, sent.to], 1)];
    }),
    ("nested-second-beyond-packet", |sent| {
        let mut second = Srh::new(&[LAST, sent.to], 1);
        second.length = Some(200);
        sent.lists = vec![Srh::new(&[sent.to], 0), second];
    }),
    ("next-is-multicast", |sent| next_segment(sent, "ff0e::1")),
    ("next-is-unspecified", |sent| next_segment(sent, "::")),
    ("next-is-loopback", |sent| next_segment(sent, "::1")),
    ("no-srh", |sent| sent.lists.clear()),
    ("hop-limit-0", |sent| sent.hops = 0),
    ("hop-limit-1", |sent| sent.hops = 1),
    ("inner-hop-limit-0", |sent| sent.inner_hops = 0),
    ("inner-hop-limit-1", |sent| sent.inner_hops = 1),
    ("longer-than-the-way-out", |sent| sent.payload = 1390),
    ("another-protocol", |sent| sent.inner = if sent.inner == Six { Frame } else { Six }),
];

/// The whole table as it is: for each class, what becomes of the packet and to which SIDs.
fn table(router: &mut Router) -> (String, Vec<Vec<u8>>) {
    let sids = SIDS.map(|(name, to, _, _, kind)| (name, (to, kind)));
    fixture::table(router, &CLASSES.map(|(class, _)| class), &sids, |class, (to, kind)| {
        let mut sent = good(to, kind);
        CLASSES[class].1(&mut sent);
        ("e0", frame(&sent))
    })
}

#[test]
fn every_malformed_packet_meets_the_same_fate_at_every_behaviour() {
    assert_same_fate(include_str!("malformed.txt"), router, table);
}

#[test]
fn what_is_cut_off_inside_goes_no_further_wherever_it_is_cut() {
    for block_driver in [false, true] {
        let mut router = router(Settings { block_driver, ..Settings::default() });
        for (name, to, _, _, kind) in SIDS {
            let (On(inner) | Last(inner) | Bare(inner)) = kind;
            // Gateways carry what is inside as it is.
            if inner == Udp || ["end.m.gtp4.e", "end.m.gtp6.e"].contains(&name) {
                continue;
            }
            for length in first_looked_at(inner)..inner_headers(inner) {
                let sent = Sent { cut: Some(length), ..good(to, kind) };
                let (words, frames) = outcome(&mut router, "e0", &frame(&sent));
                let reason = if inner == Gtpu { "-gtp-u-wrong" } else { "-inner-packet-wrong" };
                assert_eq!((words.as_str(), frames.len()), (reason, 0), "{name}, {length} bytes");
            }
        }
    }
}

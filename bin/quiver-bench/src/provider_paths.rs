//! Translators of a provider with hosts of IPv6 or behind softwires: NAT64, NAPT66, DS-Lite. Each
//! path goes one way. Packets from inside make the sessions, each once; what is measured finds them
//! in another order.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quiver_tables::synthetic::Random;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use crate::bare::exchange::{Exchange, Layer};
use crate::device::{Flow4, Flow6, Template};
use crate::paths::{Packets, Path, Work, path};
use crate::population::{OUR_MAC, PEER_MAC, ip4_frame, ip6_frame};

/// Hosts inside, each with a port of its own, which its end outside has, too: so it is known what
/// packets from outside go to.
const HOSTS: u32 = 64_000;
const FIRST_PORT: u16 = 1_024;
/// B4s that the hosts of DS-Lite are behind; all have the same address of IPv4.
const B4S: u32 = 1_000;
const INSIDE4: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 2);
/// The servers' port.
const SERVER_PORT: u16 = 80;
/// Packets drawn at random behind those that make the sessions.
const DRAWN: usize = 1 << 20;
/// The first host, the first server of each family, the pools, the prefix of NAT64, the first B4
/// and the AFTR.
const HOSTS6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x1000, 0, 0, 0, 0, 0);
const SERVERS4: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 0);
const SERVERS6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x2000, 0, 0, 0, 0, 0);
const POOL4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const POOL6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x77, 0, 0, 0, 0, 1);
const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0, 0);
const B4: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x4000, 0, 0, 0, 0, 1);
const AFTR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xfff0, 0, 0, 0, 0, 1);
/// A subscriber has a prefix of 56 bits.
const B4_BITS: u32 = 128 - 56;
/// Bytes of frames with IPv4, IPv6, and IPv4 in IPv6.
const FRAME4: usize = 60;
pub const FRAME6: usize = 74;
const ETHERNET: usize = 14;
pub const FRAME_SOFTWIRE: usize = FRAME4 + Ip6Header::LEN;

/// Which translator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Translator {
    Nat64,
    Nat66,
    DsLite,
}

/// Where packets come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Inside,
    Outside,
}

/// Packets of so many sessions, from one side.
#[derive(Clone, Copy, Debug)]
pub struct Sessions {
    translator: Translator,
    side: Side,
    count: u32,
}

/// All of them.
pub fn all() -> Vec<Path> {
    let sizes = [("64k", HOSTS), ("1m", 1_000_000)];
    let nat64 = sizes.into_iter().flat_map(|(name, count)| nat64(name, count));
    nat64.chain(nat66()).chain(ds_lite()).collect()
}

/// Both paths of a translator, by its word in commands and its setup with the interface inside. The
/// sessions that packets from outside find, others have made that came before by a third interface.
fn both_directions(
    name: &str,
    word: &str,
    (translator, count): (Translator, u32),
    works: [Work; 2],
    setup: impl Fn(&str) -> Vec<String>,
) -> [Path; 2] {
    let sessions = |side| Packets::Sessions(Sessions { translator, side, count });
    let (out, back) = (sessions(Side::Inside), sessions(Side::Outside));
    let lengths = match translator {
        Translator::Nat64 => [FRAME6, FRAME4],
        Translator::Nat66 => [FRAME6, FRAME6],
        Translator::DsLite => [FRAME_SOFTWIRE, FRAME4],
    };
    let made = |direction: &str, work, packets, lines: Vec<String>| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        path(&format!("{name}-{direction}"), work, packets, &lines, None)
    };
    let mut in_setup = vec![
        "set interface state bench2 up".to_owned(),
        "set interface ip address bench2 2001:db8:fffd::1/64".to_owned(),
    ];
    in_setup.extend(setup("bench2"));
    in_setup.push(format!("set interface {word} out bench0"));
    [
        Path { length: lengths[0], ..made("out", works[0], out, setup("bench0")) },
        Path { length: lengths[1], primer: Some(out), ..made("in", works[1], back, in_setup) },
    ]
}

/// One header takes the place of another, and what leaves is looked up.
fn exchanged(arrives: Layer, takes: usize, leaves: Layer, puts: usize) -> Work {
    Work::Exchange(Exchange { takes, puts, looks_up: true, ..Exchange::of(arrives, leaves) })
}

/// NAT64 (RFC 6146).
fn nat64(name: &str, count: u32) -> [Path; 2] {
    let works = [
        exchanged(Layer::Ip6, Ip6Header::LEN, Layer::Ip4, Ip4Header::LEN),
        exchanged(Layer::Ip4, Ip4Header::LEN, Layer::Ip6, Ip6Header::LEN),
    ];
    both_directions(
        &format!("nat64-{name}"),
        "nat64",
        (Translator::Nat64, count),
        works,
        |inside| {
            vec![
                "ip route add 20.0.0.0/8 via 10.1.0.2 bench1".to_owned(),
                format!("ip route add {HOSTS6}/48 via 2001:db8:ffff::2 bench1"),
                format!("nat64 plugin enable sessions {count}"),
                format!("nat64 add prefix {PREFIX}/96"),
                format!("nat64 add pool address {POOL4}"),
                format!("set interface nat64 in {inside}"),
                "set interface nat64 out bench1".to_owned(),
            ]
        },
    )
}

/// NAPT66.
fn nat66() -> [Path; 2] {
    let of = (Translator::Nat66, HOSTS);
    both_directions("nat66-64k", "nat66", of, [Work::Ip6; 2], |inside| {
        vec![
            format!("ip route add {SERVERS6}/48 via 2001:db8:ffff::2 bench1"),
            format!("ip route add {HOSTS6}/48 via 2001:db8:ffff::2 bench1"),
            format!("nat66 plugin enable sessions {HOSTS}"),
            format!("nat66 add pool address {POOL6}"),
            format!("set interface nat66 in {inside}"),
            "set interface nat66 out bench1".to_owned(),
        ]
    })
}

/// The AFTR of DS-Lite (RFC 6333): hosts with the same address behind a thousand B4s.
fn ds_lite() -> [Path; 2] {
    let works = [
        exchanged(Layer::Ip6, Ip6Header::LEN, Layer::Ip4, 0),
        exchanged(Layer::Ip4, 0, Layer::Ip6, Ip6Header::LEN),
    ];
    both_directions("ds-lite-64k", "nat44", (Translator::DsLite, HOSTS), works, |_| {
        vec![
            "ip route add 20.0.0.0/8 via 10.1.0.2 bench1".to_owned(),
            "ip route add 2001:db8:4000::/34 via 2001:db8:ffff::2 bench1".to_owned(),
            format!("nat44 plugin enable sessions {HOSTS}"),
            "set interface nat44 out bench1".to_owned(),
            format!("dslite add pool address {POOL4}"),
            format!("dslite set aftr-tunnel-endpoint-address {AFTR}"),
        ]
    })
}

/// Ends of a session.
struct Ends {
    /// Number of the host, and of the server.
    host: u32,
    server: u32,
    port: u16,
}

impl Ends {
    fn of(session: u32) -> Ends {
        let host = session % HOSTS;
        Ends { host, server: session / HOSTS, port: FIRST_PORT + host as u16 }
    }

    fn host6(&self) -> u128 {
        HOSTS6.to_bits() + u128::from(self.host)
    }

    fn server4(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(SERVERS4.to_bits() + self.server)
    }

    fn server6(&self) -> u128 {
        SERVERS6.to_bits() + u128::from(self.server)
    }

    fn b4(&self) -> u128 {
        B4.to_bits() + (u128::from(self.host % B4S) << B4_BITS)
    }
}

pub fn flow4((from, to): (Ipv4Addr, Ipv4Addr), ports: [u16; 2]) -> Flow4 {
    let header = Ip4Header::new(from, to, IpProtocol::UDP, 64, 26).expect("short");
    Flow4 {
        addresses: [from.to_bits(), to.to_bits()],
        ports,
        checksum: header.checksum(),
        protocol: IpProtocol::UDP.0,
    }
}

pub fn flow6(addresses: [u128; 2], ports: [u16; 2]) -> Flow6 {
    Flow6 { addresses, ports, protocol: IpProtocol::UDP.0 }
}

/// An IPv4 frame with a checksum of UDP: without one, NAT64 would have to add all bytes up.
fn frame4() -> [u8; 64] {
    let mut frame = [0; 64];
    frame[..FRAME4].copy_from_slice(&ip4_frame(0));
    frame[40..42].copy_from_slice(&[0x12, 0x34]);
    frame
}

pub fn frame6() -> [u8; 80] {
    let mut frame = [0; 80];
    frame[..FRAME6].copy_from_slice(&ip6_frame(Ipv6Addr::UNSPECIFIED));
    frame
}

/// The frame of [`frame4`] behind a header of IPv6 to a border relay or an AFTR.
pub fn softwire_frame(to: Ipv6Addr) -> Vec<u8> {
    let inner = &frame4()[ETHERNET..FRAME4];
    let mut frame = [&OUR_MAC[..], &PEER_MAC, &[0x86, 0xdd], &[0; Ip6Header::LEN], inner].concat();
    let header = Ip6Header::new(B4, to, IpProtocol::IPV4, 64, inner.len() as u16);
    header.write(&mut frame[ETHERNET..]).expect("it fits");
    frame
}

impl Sessions {
    /// The sessions of packets: from inside all once, then some at random; from outside at random.
    fn drawn(self) -> (impl Iterator<Item = Ends>, usize) {
        let Sessions { side, count, .. } = self;
        let once = if side == Side::Inside { count } else { 0 };
        let mut random = Random::new(17);
        let drawn = (0..DRAWN).map(move |_| random.below(count.into()) as u32);
        ((0..once).chain(drawn).map(Ends::of), once as usize)
    }

    /// The packets.
    pub fn template(self) -> Template {
        let (ends, once) = self.drawn();
        let (out, back) = (|port| [port, SERVER_PORT], |port| [SERVER_PORT, port]);
        match (self.translator, self.side) {
            (Translator::Nat64, Side::Inside) => {
                let behind = |server: Ipv4Addr| PREFIX.to_bits() | u128::from(server.to_bits());
                let flows =
                    ends.map(|ends| flow6([ends.host6(), behind(ends.server4())], out(ends.port)));
                Template::Flows6(frame6(), Arc::new(flows.collect()), once)
            }
            (Translator::Nat64 | Translator::DsLite, Side::Outside) => {
                let flows = ends.map(|ends| flow4((ends.server4(), POOL4), back(ends.port)));
                Template::Flows4(frame4(), Arc::new(flows.collect()), once)
            }
            (Translator::Nat66, Side::Inside) => {
                let flows = ends.map(|ends| flow6([ends.host6(), ends.server6()], out(ends.port)));
                Template::Flows6(frame6(), Arc::new(flows.collect()), once)
            }
            (Translator::Nat66, Side::Outside) => {
                let flows =
                    ends.map(|ends| flow6([ends.server6(), POOL6.to_bits()], back(ends.port)));
                Template::Flows6(frame6(), Arc::new(flows.collect()), once)
            }
            (Translator::DsLite, Side::Inside) => {
                let flows =
                    ends.map(|ends| (ends.b4(), flow4((INSIDE4, ends.server4()), out(ends.port))));
                Template::Softwires(softwire_frame(AFTR), Arc::new(flows.collect()), once)
            }
        }
    }
}

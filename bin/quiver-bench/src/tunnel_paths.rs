//! The paths into tunnels and out of them: IPv4 packets in GRE, and in nothing but another IPv4
//! header.

use std::net::Ipv4Addr;

use quiver_wire::gre::{self, GreHeader};
use quiver_wire::{EtherType, Header, Ip4Header, IpProtocol};

use crate::bare::exchange::{Exchange, Layer};
use crate::paths::{Packets, Path, Work, path};
use crate::population::ip4_frame;

/// The ends of the tunnels, and where packets go.
const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DESTINATION: u32 = 0x1400_0000;
/// Bytes of an Ethernet header, and of the packet in a frame of the smallest length.
const ETHERNET: usize = 14;
const PACKET: usize = 46;

/// A frame from the peer of a tunnel, whose outer header names `protocol`, with these bytes behind
/// that.
fn from_peer(protocol: IpProtocol, behind: &[u8]) -> Vec<u8> {
    let inner = ip4_frame(DESTINATION);
    let packet = &inner[ETHERNET..ETHERNET + PACKET];
    let outer =
        Ip4Header::new(PEER, LOCAL, protocol, 64, behind.len() + packet.len()).expect("short");
    let mut header = [0; Ip4Header::LEN];
    outer.write(&mut header).expect("room");
    [&inner[..ETHERNET], &header, behind, packet].concat()
}

fn in_gre() -> Vec<u8> {
    let repr =
        gre::Repr { protocol: EtherType::IPV4, has_checksum: false, key: None, sequence: None };
    let mut header = [0; GreHeader::LEN];
    repr.emit(&mut header).expect("room");
    from_peer(IpProtocol::GRE, &header)
}

fn in_ip() -> Vec<u8> {
    from_peer(IpProtocol::IPV4, &[])
}

/// From a tunnel, and on by a route.
fn decapsulated(protocol: &str, packet: fn() -> Vec<u8>, takes: usize) -> Path {
    let exchange = Exchange { takes, looks_up: true, ..Exchange::of(Layer::Ip4, Layer::Ip4) };
    let create = format!("create {protocol} tunnel src {LOCAL} dst {PEER}");
    let (up, address) = (
        format!("set interface state {protocol}0 up"),
        format!("set interface ip address {protocol}0 10.9.0.1/30"),
    );
    let route = "ip route add 20.0.0.0/32 via 10.1.0.2 bench1";
    let name = format!("{protocol}-decap");
    let setup = [&create, &up, &address, route];
    Path {
        length: packet().len(),
        ..path(&name, Work::Exchange(exchange), Packets::Made(packet), &setup, None)
    }
}

/// By a route into a tunnel.
fn encapsulated(protocol: &str, puts: usize) -> Path {
    let exchange = Exchange { puts, ..Exchange::of(Layer::Ip4, Layer::Ip4) };
    let create = format!("create {protocol} tunnel src {LOCAL} dst {PEER}");
    let up = format!("set interface state {protocol}0 up");
    let (underlay, route) = (
        "ip route add 192.0.2.0/24 via 10.1.0.2 bench1",
        format!("ip route add 20.0.0.0/32 via {protocol}0"),
    );
    let packets = Packets::Ip4 { count: 1, random: true };
    path(
        &format!("{protocol}-encap"),
        Work::Exchange(exchange),
        packets,
        &[&create, &up, underlay, &route],
        None,
    )
}

/// All of them.
pub fn all() -> [Path; 4] {
    let gre = Ip4Header::LEN + GreHeader::LEN;
    [
        encapsulated("gre", gre),
        decapsulated("gre", in_gre, gre),
        encapsulated("ipip", Ip4Header::LEN),
        decapsulated("ipip", in_ip, Ip4Header::LEN),
    ]
}

//! The paths into tunnels and out of them: IPv4 packets in GRE, in Geneve, in LISP, and in nothing
//! but another IPv4 header; frames of a bridge domain in VXLAN.

use std::net::Ipv4Addr;

use quiver_wire::geneve::{self, GeneveHeader};
use quiver_wire::gre::{self, GreHeader};
use quiver_wire::lisp::{self, LispHeader, next_protocol};
use quiver_wire::vxlan::{self, VxlanHeader};
use quiver_wire::{EtherType, Header, IntoBytes, Ip4Header, IpProtocol, MacAddress, UdpHeader};

use crate::bare::exchange::{Exchange, Layer};
use crate::paths::{FAR_STATIONS, NEAR_STATIONS, Packets, Path, Work, path};
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
    from_peer_with(protocol, behind, &inner[ETHERNET..ETHERNET + PACKET])
}

/// The same, with this packet or frame behind these bytes.
fn from_peer_with(protocol: IpProtocol, behind: &[u8], packet: &[u8]) -> Vec<u8> {
    let inner = ip4_frame(DESTINATION);
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

/// With this header behind UDP.
fn in_udp(port: u16, header: &[u8]) -> Vec<u8> {
    let udp = UdpHeader::new(50_000, port, header.len() + PACKET).expect("short");
    from_peer(IpProtocol::UDP, &[udp.as_bytes(), header].concat())
}

fn in_geneve() -> Vec<u8> {
    in_udp(geneve::PORT, GeneveHeader::new(EtherType::IPV4, 7).as_bytes())
}

fn in_lisp() -> Vec<u8> {
    let repr = lisp::Repr { instance: Some(0), next_protocol: Some(next_protocol::IP4) };
    in_udp(lisp::DATA_PORT, repr.header().as_bytes())
}

/// A kind of tunnel to the peer, with an interface that packets come by.
struct Tunnel {
    name: &'static str,
    create: Vec<String>,
    interface: &'static str,
    /// Bytes of its headers.
    bytes: usize,
    /// A frame from the peer.
    packet: fn() -> Vec<u8>,
}

/// From a tunnel, and on by a route.
fn decapsulated(tunnel: &Tunnel) -> Path {
    let takes = tunnel.bytes;
    let exchange = Exchange { takes, looks_up: true, ..Exchange::of(Layer::Ip4, Layer::Ip4) };
    let mut setup = tunnel.create.clone();
    setup.push("ip route add 20.0.0.0/32 via 10.1.0.2 bench1".to_owned());
    let setup: Vec<&str> = setup.iter().map(String::as_str).collect();
    let name = format!("{}-decap", tunnel.name);
    Path {
        length: (tunnel.packet)().len(),
        ..path(&name, Work::Exchange(exchange), Packets::Made(tunnel.packet), &setup, None)
    }
}

/// By a route into a tunnel.
fn encapsulated(tunnel: &Tunnel) -> Path {
    let exchange = Exchange { puts: tunnel.bytes, ..Exchange::of(Layer::Ip4, Layer::Ip4) };
    let mut setup = tunnel.create.clone();
    setup.push("ip route add 192.0.2.0/24 via 10.1.0.2 bench1".to_owned());
    match tunnel.name {
        "lisp" => {
            setup.push(format!("lisp remote-mapping add eid 20.0.0.0/32 rloc {PEER} p 1 w 1"));
        }
        _ => setup.push(format!("ip route add 20.0.0.0/32 via {}", tunnel.interface)),
    }
    let setup: Vec<&str> = setup.iter().map(String::as_str).collect();
    let packets = Packets::Ip4 { count: 1, random: true };
    path(&format!("{}-encap", tunnel.name), Work::Exchange(exchange), packets, &setup, None)
}

/// A tunnel that a command makes between both ends.
fn between(
    name: &'static str,
    interface: &'static str,
    create: String,
    bytes: usize,
    packet: fn() -> Vec<u8>,
) -> Tunnel {
    let up = format!("set interface state {interface} up");
    let address = format!("set interface ip address {interface} 10.9.0.1/30");
    Tunnel {
        name,
        create: vec![create, up, address],
        interface,
        bytes: Ip4Header::LEN + bytes,
        packet,
    }
}

fn tunnels() -> [Tunnel; 4] {
    let ends = format!("src {LOCAL} dst {PEER}");
    let geneve = format!("create geneve tunnel local {LOCAL} remote {PEER} vni 7 l3-mode");
    let lisp = ["lisp enable", "lisp locator-set add site iface bench0 p 1 w 1"];
    [
        between("gre", "gre0", format!("create gre tunnel {ends}"), GreHeader::LEN, in_gre),
        between("ipip", "ipip0", format!("create ipip tunnel {ends}"), 0, in_ip),
        between("geneve", "geneve_tunnel0", geneve, UdpHeader::LEN + GeneveHeader::LEN, in_geneve),
        Tunnel {
            name: "lisp",
            create: lisp.map(str::to_owned).to_vec(),
            interface: "lisp_gpe0",
            bytes: Ip4Header::LEN + UdpHeader::LEN + LispHeader::LEN,
            packet: in_lisp,
        },
    ]
}

/// Bytes of the headers that VXLAN puts before frames.
const VXLAN: usize = Ip4Header::LEN + UdpHeader::LEN + VxlanHeader::LEN;

/// A frame to the only station, in VXLAN.
fn in_vxlan() -> Vec<u8> {
    let inner = ip4_frame(DESTINATION);
    let (to, from) = (MacAddress::from_u64(FAR_STATIONS), MacAddress::from_u64(NEAR_STATIONS));
    let frame = [&to.0[..], &from.0, &inner[2 * 6..ETHERNET + PACKET]].concat();
    let mut header = [0; UdpHeader::LEN + VxlanHeader::LEN];
    let (udp, vxlan) = header.split_at_mut(UdpHeader::LEN);
    let payload = VxlanHeader::LEN + frame.len();
    UdpHeader::new(0xc123, vxlan::PORT, payload).expect("short").write(udp).expect("room");
    vxlan::Repr { vni: 1, next: None }.emit(vxlan).expect("room");
    from_peer_with(IpProtocol::UDP, &header, &frame)
}

/// Tunnels with the VNIs from 1 on, ports of one bridge domain with one other port.
fn vxlan_setup(port: &str, tunnels: u32) -> Vec<String> {
    let mut setup = vec![
        "ip route add 192.0.2.0/24 via 10.1.0.2 bench1".to_owned(),
        "create bridge-domain 1".to_owned(),
        format!("set interface l2 bridge {port} 1"),
    ];
    for number in 0..tunnels {
        let vni = number + 1;
        setup.extend([
            format!("create vxlan tunnel src {LOCAL} dst {PEER} vni {vni} instance {number}"),
            format!("set interface state vxlan_tunnel{number} up"),
            format!("set interface l2 bridge vxlan_tunnel{number} 1"),
        ]);
    }
    setup
}

/// From a bridge domain into so many tunnels; each has as many of the stations behind it.
fn vxlan_encapsulated(name: &str, tunnels: u32, stations: u32) -> Path {
    let mut setup = vxlan_setup("bench0", tunnels);
    for number in 0..stations {
        let tunnel = number % tunnels;
        let station = MacAddress::from_u64(FAR_STATIONS + u64::from(number));
        setup.push(format!("l2fib add {station} 1 vxlan_tunnel{tunnel}"));
        let station = MacAddress::from_u64(NEAR_STATIONS + u64::from(number));
        setup.push(format!("l2fib add {station} 1 bench0"));
    }
    let exchange = Exchange { puts: VXLAN, ..Exchange::of(Layer::Frame, Layer::Ip4) };
    let packets = Packets::Stations { count: stations };
    let setup: Vec<&str> = setup.iter().map(String::as_str).collect();
    path(name, Work::Exchange(exchange), packets, &setup, None)
}

/// From a tunnel to a port of its bridge domain.
fn vxlan_decapsulated() -> Path {
    let mut setup = vxlan_setup("bench1", 1);
    setup.push(format!("l2fib add {} 1 bench1", MacAddress::from_u64(FAR_STATIONS)));
    setup.push(format!("l2fib add {} 1 vxlan_tunnel0", MacAddress::from_u64(NEAR_STATIONS)));
    // The tunnel's other end is reached by the first interface.
    setup[0] = "ip route add 192.0.2.0/24 via 10.0.0.2 bench0".to_owned();
    let exchange = Exchange { takes: VXLAN, ..Exchange::of(Layer::Ip4, Layer::Frame) };
    let setup: Vec<&str> = setup.iter().map(String::as_str).collect();
    let packets = Packets::Made(in_vxlan);
    Path {
        length: in_vxlan().len(),
        ..path("vxlan-decap", Work::Exchange(exchange), packets, &setup, None)
    }
}

/// All of them.
pub fn all() -> Vec<Path> {
    let frames = [
        vxlan_encapsulated("vxlan-encap", 1, 1),
        vxlan_encapsulated("vxlan-encap-1k-stations", 1, 1000),
        vxlan_encapsulated("vxlan-encap-1k", 1000, 1000),
        vxlan_decapsulated(),
    ];
    let tunnels = tunnels();
    let packets = tunnels.iter().flat_map(|tunnel| [encapsulated(tunnel), decapsulated(tunnel)]);
    frames.into_iter().chain(packets).collect()
}

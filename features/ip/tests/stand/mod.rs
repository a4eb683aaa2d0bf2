//! What the tests of neighbours stand on: a router with two ports, and frames of hosts behind them.
#![allow(dead_code)] // each test file takes what it needs

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_testkit::Router;
use quiver_wire::icmp6::nd::{Message, NdOption, NeighborFlags, Options};
use quiver_wire::ip6::address;
use quiver_wire::{EtherType, EthernetHeader, Header, Ip6Header, IpProtocol, MacAddress};
use quiver_wire::{arp, icmp4, icmp6, ip4};

/// The MAC address of port number `on`.
pub const fn port_mac(on: u8) -> MacAddress {
    MacAddress([2, 0xfe, 0, 0, 0, on])
}

/// The MAC address of host number `host`.
pub const fn host_mac(host: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, host])
}

/// 10.`on`.0.`host`.
pub fn host4(on: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, on, 0, host)
}

/// 2001:db8:`on`::`host`.
pub fn host6(on: u8, host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, on.into(), 0, 0, 0, 0, host.into())
}

/// An address of a host by family.
pub fn host(six: bool, on: u8, number: u8) -> IpAddr {
    if six { host6(on, number).into() } else { host4(on, number).into() }
}

/// Ports e0 and e1 with 10.N.0.1/16 and 2001:db8:N::1/64; behind e0 host 2 with MAC address a0.
pub fn router() -> Router {
    let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    for (number, name) in ["e0", "e1"].into_iter().enumerate() {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.{number}.0.1/16"));
        router.cli(&format!("set interface ip address {name} 2001:db8:{number}::1/64"));
    }
    router.cli("ip neighbor e0 10.0.0.2 02:00:00:00:00:a0");
    router.cli("ip neighbor e0 2001:db8::2 02:00:00:00:00:a0");
    router
}

/// An echo request with so many bytes of data, in a frame for port number `on`.
pub fn ping(on: u8, from: IpAddr, to: IpAddr, data_bytes: usize) -> Vec<u8> {
    let data = vec![0x5a; data_bytes];
    let mut out = vec![0; 14 + 40 + 8 + data_bytes];
    let length = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let message = icmp4::Message::EchoRequest { identifier: 1, sequence: 1 };
            let echo = icmp4::Repr { message, data: &data };
            ip4::Repr::new(from, to, IpProtocol::ICMP, echo.len()).emit(&mut out[14..]).unwrap();
            echo.emit(&mut out[34..]).unwrap();
            34 + echo.len()
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let echo = icmp6::Message::EchoRequest { identifier: 1, sequence: 1, data: &data };
            let length = echo.emit(from, to, &mut out[54..]).unwrap();
            Ip6Header::new(from, to, IpProtocol::ICMP6, 64, length as u16)
                .write(&mut out[14..])
                .unwrap();
            54 + length
        }
        _ => panic!("two addresses of one family"),
    };
    let kind = if from.is_ipv4() { EtherType::IPV4 } else { EtherType::IPV6 };
    EthernetHeader::new(port_mac(on), host_mac(0x55), kind).write(&mut out).unwrap();
    out.truncate(length);
    out
}

/// A small ping from the known host behind e0 to host number `number` behind e1.
pub fn ping_to(six: bool, number: u8) -> Vec<u8> {
    ping(0, host(six, 0, 2), host(six, 1, number), 20)
}

/// An ARP packet of `from`, of whatever content, to port `on` or to all.
pub fn arp_frame(on: Option<u8>, from: MacAddress, arp: &arp::Repr) -> Vec<u8> {
    let mut out = vec![0; 42];
    let to = on.map_or(MacAddress::BROADCAST, port_mac);
    EthernetHeader::new(to, from, EtherType::ARP).write(&mut out).unwrap();
    arp.emit(&mut out[14..]).unwrap();
    out
}

/// Host number `number` behind port `on` answers the router's question.
pub fn answer4(on: u8, number: u8) -> Vec<u8> {
    let question = arp::Repr::request(port_mac(on), host4(on, 1), host4(on, number));
    arp_frame(Some(on), host_mac(number), &question.reply(host_mac(number)))
}

/// Host number `number` behind port `on` asks for the router.
pub fn asks4(on: u8, number: u8) -> Vec<u8> {
    let question = arp::Repr::request(host_mac(number), host4(on, number), host4(on, 1));
    arp_frame(None, host_mac(number), &question)
}

/// A message of neighbour discovery in a frame.
pub fn nd_frame(
    message: Message<'_>,
    from: MacAddress,
    source: Ipv6Addr,
    destination: Ipv6Addr,
) -> Vec<u8> {
    let to = if address::is_multicast(destination) {
        MacAddress::for_ip6_multicast(destination)
    } else {
        port_mac(1)
    };
    let mut out = vec![0; 14 + 40 + 32];
    let length = icmp6::Message::Nd(message).emit(source, destination, &mut out[54..]).unwrap();
    EthernetHeader::new(to, from, EtherType::IPV6).write(&mut out).unwrap();
    let header = Ip6Header::new(source, destination, IpProtocol::ICMP6, 255, length as u16);
    header.write(&mut out[14..]).unwrap();
    out.truncate(54 + length);
    out
}

/// `target` has the MAC address `mac`, told to the router's port 1, or to all nodes.
pub fn advertises(
    target: Ipv6Addr,
    mac: MacAddress,
    flags: NeighborFlags,
    to_all: bool,
) -> Vec<u8> {
    let mut option = [0; 8];
    NdOption::TargetMac(mac).emit(&mut option).unwrap();
    let options = Options::new(&option).unwrap();
    let message = Message::NeighborAdvertisement { flags, target, options };
    nd_frame(message, mac, target, if to_all { address::ALL_NODES } else { host6(1, 1) })
}

/// Host number `number` behind e1 answers the router's solicitation.
pub fn answer6(number: u8) -> Vec<u8> {
    let flags = NeighborFlags::SOLICITED.with(NeighborFlags::OVERRIDE);
    advertises(host6(1, number), host_mac(number), flags, false)
}

/// Host number `number` behind e1 answers, in either family.
pub fn answer(six: bool, number: u8) -> Vec<u8> {
    if six { answer6(number) } else { answer4(1, number) }
}

/// Is this a question (ARP request, solicitation) for host number `number` behind e1? To which MAC
/// address?
pub fn question_to(frame: &[u8], six: bool, number: u8) -> Option<MacAddress> {
    let to = MacAddress(frame[..6].try_into().unwrap());
    let is_question = if six {
        frame.len() >= 78 && frame[54] == 135 && frame[62..78] == host6(1, number).octets()
    } else {
        frame[12..14] == [8, 6]
            && frame[20..22] == [0, 1]
            && frame[38..42] == host4(1, number).octets()
    };
    is_question.then_some(to)
}

/// What `show ip neighbors` says of a neighbour behind e1.
pub fn state(router: &mut Router, six: bool, number: u8) -> Option<String> {
    let shown = router.json(if six { "show ip6 neighbors" } else { "show ip neighbors" });
    let address = host(six, 1, number).to_string();
    let row =
        shown.as_array().unwrap().iter().find(|row| row["address"] == address.as_str())?.clone();
    row["state"].as_str().map(str::to_owned)
}

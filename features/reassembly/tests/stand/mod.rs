//! A router that puts fragments together, and packets for it that are cut as a test likes.
#![allow(dead_code)]

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_testkit::{Router, Settings};
use quiver_wire::{EtherType, EthernetHeader, Header, Ip6Header, IpProtocol, MacAddress};
use quiver_wire::{icmp4, icmp6, ip4};

pub const HOST4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub const ROUTER4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Behind e1.
pub const FAR4: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
pub const HOST6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
pub const ROUTER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
pub const FAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);

/// e0 with a host, e1 with another; both families.
pub fn router_with(settings: Settings) -> Router {
    let features = [quiver_ethernet::register, quiver_ip::register, quiver_reassembly::register];
    let mut router = Router::with(settings, &features);
    let lines = "
        create test interface e0 mtu 9000 rx-queues 2
        create test interface e1 mtu 9000
        set interface state e0 up
        set interface state e1 up
        set interface ip address e0 10.0.0.1/24
        set interface ip address e1 10.0.1.1/24
        set interface ip address e0 2001:db8::1/64
        set interface ip address e1 2001:db8:1::1/64
        ip neighbor e0 10.0.0.2 02:00:00:00:00:a0 static
        ip neighbor e0 2001:db8::2 02:00:00:00:00:a0 static
        ip neighbor e1 10.0.1.2 02:00:00:00:00:b1 static
        ip neighbor e1 2001:db8:1::2 02:00:00:00:00:b1 static";
    router.script("stand", lines).expect("a good configuration");
    router.run();
    router.sent("e0");
    router.sent("e1");
    router
}

pub fn router() -> Router {
    router_with(Settings::default())
}

/// Which family a test sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Four,
    Six,
}

pub use Family::{Four, Six};

impl Family {
    pub const BOTH: [Family; 2] = [Four, Six];

    /// The node that puts packets together.
    pub fn full(self) -> &'static str {
        if self == Four { "ip4-full-reassembly" } else { "ip6-full-reassembly" }
    }

    /// The node that learns ports.
    pub fn shallow(self) -> &'static str {
        if self == Four { "ip4-sv-reassembly" } else { "ip6-sv-reassembly" }
    }

    pub fn word(self) -> &'static str {
        if self == Four { "ip4" } else { "ip6" }
    }
}

/// What a packet under test is.
#[derive(Clone, Debug)]
pub struct Whole {
    pub family: Family,
    pub identification: u32,
    pub protocol: IpProtocol,
    pub to_router: bool,
    pub class: u8,
    /// Behind the IP header.
    pub payload: Vec<u8>,
}

/// A piece of one.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    pub start: usize,
    pub end: usize,
    pub more: bool,
}

impl Whole {
    /// An echo request to the router with so many bytes of data.
    pub fn echo(family: Family, identification: u32, data_bytes: usize) -> Whole {
        let data: Vec<u8> = (0..data_bytes).map(|at| (at * 7 / 3) as u8).collect();
        let (payload, protocol) = match family {
            Four => {
                let message = icmp4::Message::EchoRequest { identifier: 5, sequence: 6 };
                let repr = icmp4::Repr { message, data: &data };
                let mut bytes = vec![0; repr.len()];
                repr.emit(&mut bytes).expect("room");
                (bytes, IpProtocol::ICMP)
            }
            Six => {
                let message =
                    icmp6::Message::EchoRequest { identifier: 5, sequence: 6, data: &data };
                let mut bytes = vec![0; 8 + data.len()];
                message.emit(HOST6, ROUTER6, &mut bytes).expect("room");
                (bytes, IpProtocol::ICMP6)
            }
        };
        Whole { family, identification, protocol, to_router: true, class: 0, payload }
    }

    /// UDP through the router, from port 1000 to port 2000. Its checksum is nobody's business here.
    pub fn transit(family: Family, identification: u32, payload_bytes: usize) -> Whole {
        let mut payload: Vec<u8> = (0..payload_bytes).map(|at| (at * 5 / 3) as u8).collect();
        payload[..4].copy_from_slice(&[3, 232, 7, 208]);
        Whole {
            family,
            identification,
            protocol: IpProtocol::UDP,
            to_router: false,
            class: 0,
            payload,
        }
    }

    /// The frame of a piece.
    pub fn frame(&self, cut: Cut) -> Vec<u8> {
        self.frame_of(cut, &self.payload[cut.start..cut.end])
    }

    /// The frame of a piece with other bytes in it.
    pub fn frame_of(&self, cut: Cut, data: &[u8]) -> Vec<u8> {
        let mut out = vec![0; 14];
        let ether_type = if self.family == Four { EtherType::IPV4 } else { EtherType::IPV6 };
        let (to, from) = (MacAddress([2, 0xfe, 0, 0, 0, 0]), MacAddress([2, 0, 0, 0, 0, 0xa0]));
        EthernetHeader::new(to, from, ether_type).write(&mut out).expect("room");
        let offset = (cut.start / 8) as u16;
        if self.family == Four {
            let to = if self.to_router { ROUTER4 } else { FAR4 };
            let repr = ip4::Repr {
                traffic_class: self.class,
                identification: self.identification as u16,
                more_fragments: cut.more,
                fragment_offset: offset,
                ..ip4::Repr::new(HOST4, to, self.protocol, data.len())
            };
            let mut header = [0; 60];
            let length = repr.emit(&mut header).expect("a header");
            out.extend_from_slice(&header[..length]);
        } else {
            let to = if self.to_router { ROUTER6 } else { FAR6 };
            let mut header =
                Ip6Header::new(HOST6, to, IpProtocol::FRAGMENT, 64, 8 + data.len() as u16);
            header.set_traffic_class(self.class);
            out.resize(14 + 40, 0);
            header.write(&mut out[14..]).expect("room");
            out.extend_from_slice(&[self.protocol.0, 0]);
            out.extend_from_slice(&(offset << 3 | u16::from(cut.more)).to_be_bytes());
            out.extend_from_slice(&self.identification.to_be_bytes());
        }
        out.extend_from_slice(data);
        out
    }

    /// Cut at multiples of `step` bytes.
    pub fn cuts(&self, step: usize) -> Vec<Cut> {
        let length = self.payload.len();
        (0..length)
            .step_by(step)
            .map(|start| Cut {
                start,
                end: (start + step).min(length),
                more: start + step < length,
            })
            .collect()
    }

    /// The frames of all pieces.
    pub fn frames(&self, step: usize) -> Vec<Vec<u8>> {
        self.cuts(step).into_iter().map(|cut| self.frame(cut)).collect()
    }
}

/// What answers an echo request of the router must hold: the request with another type and sum.
pub fn data_of_reply(family: Family, frame: &[u8]) -> Vec<u8> {
    let header = if family == Four { 20 } else { 40 };
    frame[14 + header + 8..].to_vec()
}

/// What came out of `interface` and is an echo reply.
pub fn replies(router: &mut Router, family: Family, interface: &str) -> Vec<Vec<u8>> {
    let (at, kind) = if family == Four { (34, 0) } else { (54, 129) };
    let sent = router.sent(interface);
    sent.into_iter()
        .filter(|f| f.get(at) == Some(&kind))
        .map(|f| data_of_reply(family, &f))
        .collect()
}

/// Put frames in one after the other, and run.
pub fn send_all(router: &mut Router, frames: &[Vec<u8>]) {
    frames.iter().for_each(|frame| router.inject("e0", frame));
    router.run();
}

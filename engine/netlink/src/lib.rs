//! Linux's network configuration by netlink (rtnetlink(7)): sockets that hear of changes and that
//! dump what is there, and messages read in place.
//!
//! Nothing that a message says is trusted: lengths are checked, and an attribute that does not fit
//! is not there.
#![warn(clippy::missing_errors_doc)]

pub mod address;
pub mod link;
pub mod message;
pub mod mpls;
pub mod neighbour;
pub mod next_hop;
pub mod request;
pub mod route;
pub mod seg6;
pub mod socket;

pub use message::{Attributes, Message, Messages};
pub use request::Request;
pub use socket::{Group, NetlinkSocket, Received};

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Numbers of address families.
pub mod family {
    /// Any.
    pub const UNSPECIFIED: u8 = libc::AF_UNSPEC as u8;
    /// IPv4.
    pub const IP4: u8 = libc::AF_INET as u8;
    /// IPv6.
    pub const IP6: u8 = libc::AF_INET6 as u8;
    /// The forwarding database of bridges.
    pub const BRIDGE: u8 = libc::AF_BRIDGE as u8;
    /// Labels (`AF_MPLS`).
    pub const MPLS: u8 = 28;
}

/// The address in an attribute: four bytes or sixteen.
pub fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::V4(Ipv4Addr::from(octets)));
    }
    <[u8; 16]>::try_from(bytes).ok().map(|octets| IpAddr::V6(Ipv6Addr::from(octets)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::kind;

    /// The messages that answer a request.
    fn answer(request: Request) -> Vec<(u16, Vec<u8>)> {
        let mut socket = NetlinkSocket::open(Group::NONE).expect("socket");
        let sequence = socket.send(request).expect("sent");
        let mut found = Vec::new();
        while socket.wait(5000).expect("waits") {
            let Received::Datagrams(count) = socket.receive().expect("receives") else { continue };
            for number in 0..count {
                for message in Messages::of(socket.datagram(number)) {
                    assert_eq!(message.sequence, sequence);
                    if message.kind == kind::DONE {
                        return found;
                    }
                    found.push((message.kind, message.body.to_vec()));
                }
            }
        }
        panic!("the kernel does not answer");
    }

    #[test]
    fn the_kernel_tells_of_the_loopback() {
        let links = answer(link::dump());
        let mut links = links.iter().filter_map(|(_, body)| link::Link::read(body));
        let lo = links.find(|link| link.name == Some("lo")).expect("lo");
        assert!(lo.mtu_bytes.is_some_and(|mtu| mtu >= 1280));
        assert_eq!(lo.mac, Some([0; 6]));
        for (kind, body) in answer(address::dump()) {
            assert_eq!(kind, address::NEW);
            assert!(address::LinkAddress::read(&body).is_some());
        }
        for family in [family::IP4, family::IP6] {
            assert!(answer(route::dump(family)).iter().all(|(kind, _)| *kind == route::NEW));
        }
    }

    #[test]
    fn a_request_that_makes_no_sense_is_answered_by_an_error() {
        let mut socket = NetlinkSocket::open(Group::NONE).expect("socket");
        let nobody = link::LinkChange { up: Some(true), ..Default::default() };
        socket.send(nobody.request(u32::MAX / 2)).expect("sent");
        assert!(socket.wait(5000).expect("waits"));
        assert_eq!(socket.receive().expect("receives"), Received::Datagrams(1));
        let error = Messages::of(socket.datagram(0)).next().and_then(|answer| answer.error());
        assert!(error.is_some_and(|number| number > 0), "{error:?}");
    }

    proptest! {
        #[test]
        fn no_body_panics(bytes in prop::collection::vec(any::<u8>(), 0..160), family: bool) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = if family { family::IP4 } else { family::IP6 };
            }
            let _ = (link::Link::read(&bytes), address::LinkAddress::read(&bytes));
            let _ = (neighbour::Neighbour::read(&bytes), next_hop::NextHop::read(&bytes));
            if let Some(route) = route::Route::read(&bytes) {
                prop_assert!(route.hops().count() <= bytes.len());
            }
        }
    }
}

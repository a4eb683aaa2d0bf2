//! Linux's network configuration by netlink (rtnetlink(7)): sockets that hear of changes and that
//! dump what is there, and messages read in place.
//!
//! Nothing that a message says is trusted: lengths are checked, and an attribute that does not fit
//! is not there.
#![warn(clippy::missing_errors_doc)]

pub mod address;
pub mod link;
pub mod message;
pub mod neighbour;
pub mod next_hop;
pub mod request;
pub mod route;
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
}

/// The address in an attribute: four bytes or sixteen.
pub fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::V4(Ipv4Addr::from(octets)));
    }
    <[u8; 16]>::try_from(bytes).ok().map(|octets| IpAddr::V6(Ipv6Addr::from(octets)))
}

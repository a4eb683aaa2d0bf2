//! For tests of features that check sources: packets from the hosts of one subnet, and its
//! prefixes.

use std::net::Ipv4Addr;

use crate::Router;
use crate::frames::{self, Fragment};

/// A prefix inside 198.51.100.0/24 (RFC 5737), by its last byte and its length; one of 24 bits or
/// fewer has them all.
pub type Prefix = (u8, u8);

/// The host of this last byte.
pub fn host(byte: u8) -> Ipv4Addr {
    Ipv4Addr::new(198, 51, 100, byte)
}

/// The prefix of this length that a host is in.
pub fn prefix_of(byte: u8, length: u8) -> Prefix {
    (byte & (0xffu64 << 32u8.saturating_sub(length)) as u8, length)
}

/// Is the host in the prefix?
pub fn contains((byte, length): Prefix, host: u8) -> bool {
    length <= 24 || u32::from(byte ^ host) >> (32 - length) == 0
}

/// A frame with a UDP datagram from the host to the neighbour of `e1`.
pub fn frame(number: u8) -> Vec<u8> {
    let addresses = (host(number), Ipv4Addr::new(10, 0, 1, 2));
    frames::ip4(0, addresses, frames::UDP, Fragment::default(), &[0, 1, 0, 2, 0, 8, 0, 0])
}

/// Ports `e0`, `e1` and so on, each with a subnet 10.0.N.0/24 and the neighbour 10.0.N.2 in it.
pub fn ports(router: &mut Router, count: usize) {
    for number in 0..count {
        router.interface(&format!("e{number}"));
        router.cli(&format!("set interface ip address e{number} 10.0.{number}.1/24"));
        router.cli(&format!("ip neighbor e{number} 10.0.{number}.2 02:00:00:00:00:0{number}"));
    }
}

/// Does a packet from the host leave by `e1`?
pub fn passes(router: &mut Router, host: u8) -> bool {
    router.send("e0", &frame(host));
    let passes = !router.sent("e1").is_empty();
    router.sent("e0"); // what it was answered
    passes
}

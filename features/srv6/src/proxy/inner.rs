//! What a proxy asks of an IPv4 or IPv6 packet that comes back from a function.

use quiver_encap::InnerPacket;
use quiver_forwarding::ip::{Addresses, Ip4, Ip6};
use quiver_forwarding::nodes;
use quiver_wire::ip6::address;
use quiver_wire::{Header, Ip4Header, Ip6Header};

use super::return_interfaces::Coming;

/// IPv4 or IPv6.
pub trait Inner: InnerPacket {
    const NODE: &'static str;
    const COMING: Coming;
    const LOOKUP: &'static str;

    /// Is it for the router itself, or for the link: neighbour discovery, routing protocols, a
    /// ping?
    fn stays(own: Option<&Addresses>, bytes: &[u8]) -> bool;
}

impl Inner for Ip6 {
    const NODE: &'static str = super::from_function::IP6;
    const COMING: Coming = Coming::Ip6;
    const LOOKUP: &'static str = nodes::ip6::LOOKUP;

    #[inline(always)]
    fn stays(own: Option<&Addresses>, bytes: &[u8]) -> bool {
        let Some(header) = Ip6Header::overlay(bytes) else { return false };
        let to = header.destination();
        address::is_multicast(to)
            || address::is_link_local(to)
            || own.is_some_and(|own| own.has6(to))
    }
}

impl Inner for Ip4 {
    const NODE: &'static str = super::from_function::IP4;
    const COMING: Coming = Coming::Ip4;
    const LOOKUP: &'static str = nodes::ip4::LOOKUP;

    #[inline(always)]
    fn stays(own: Option<&Addresses>, bytes: &[u8]) -> bool {
        let Some(header) = Ip4Header::overlay(bytes) else { return false };
        let to = header.destination();
        to.is_multicast() || to.is_broadcast() || own.is_some_and(|own| own.has4(to))
    }
}

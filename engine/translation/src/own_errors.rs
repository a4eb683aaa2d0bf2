//! ICMP errors that the router makes about packets that it has translated already: each translator
//! looks at them in turn before they are routed.

use quiver_core::NodeId;
use quiver_core::graph::node::Wiring;
use quiver_forwarding::nodes;

/// The space in which translators claim them, each by its number.
pub const SPACE: &str = "own-icmp4-error";
/// Of endpoint-dependent NAT.
pub const NAT44_ED: u32 = 0;
/// Of deterministic NAT.
pub const DET44: u32 = 1;
/// Of NAT64.
pub const NAT64: u32 = 2;

/// The space of ICMPv6 errors, in which numbers are translators', too.
pub const SPACE6: &str = "own-icmp6-error";
/// Of NAPT66.
pub const NAT66: u32 = 0;

/// Where an error goes that is not about a packet of translator `number`: to the next one, or to
/// its route.
pub fn next(wiring: &Wiring<'_>, number: u32) -> NodeId {
    let claims = wiring.claims(SPACE);
    let next = claims.iter().filter(|(of, _)| *of > number).min_by_key(|(of, _)| *of);
    next.map_or_else(|| wiring.node(nodes::ip4::LOOKUP), |(_, node)| *node)
}

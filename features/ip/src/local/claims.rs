//! Who takes what is for the router itself: nodes claim IP protocols, UDP ports, ICMPv6 types, and
//! ICMPv6 errors about packets of the router's own by the protocol that those have behind the IPv6
//! header ([`GraphBuilder::claim`](quiver_core::graph::builder::GraphBuilder::claim)).

use quiver_core::graph::node::Wiring;
use quiver_core::{NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::UdpPorts;

/// The nodes that claim numbers of one space. There are few, so they are looked for one by one.
pub(crate) struct Claimed(Box<[(u32, NodeId)]>);

impl Claimed {
    /// All that is claimed of `space`.
    pub fn of(wiring: &Wiring<'_>, space: &str) -> Claimed {
        Claimed(wiring.claims(space).into_boxed_slice())
    }

    /// The node that wants packets with `number`.
    #[inline]
    pub fn node(&self, number: impl Into<u32>) -> Option<NodeId> {
        let number = number.into();
        self.0.iter().find(|(claimed, _)| *claimed == number).map(|(_, node)| *node)
    }
}

/// Open the UDP ports that nodes claim in `space` for as long as the router runs.
pub(crate) fn claim_ports(wiring: &Wiring<'_>, ports: &UdpPorts, family: Family, space: &str) {
    for (port, node) in wiring.claims(space) {
        if let Ok(port) = u16::try_from(port) {
            ports.claim(family, port, node);
        }
    }
}

/// Are all of these ordinary packets of one kind? `read` tells the source of one that is ordinary;
/// the first one's is `source`.
#[inline(always)]
pub(crate) fn are_uniform<S: PartialEq>(
    packets: &[Packet],
    source: S,
    read: impl Fn(&Packet) -> Option<(S, bool)>,
) -> bool {
    let Some(first) = packets.first() else { return false };
    let mut good = true;
    for packet in packets {
        let Some((from, is_plain)) = read(packet) else { return false };
        good &= (from == source) & packet.hands_over_same(first) & is_plain;
    }
    good
}

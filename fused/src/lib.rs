//! The pairs of nodes that run as one loop. It is a crate of its own because it is the one place
//! that knows several features: both stages of a pair are compiled into one loop, so their types
//! must meet somewhere.

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

use quiver_control::Registry;
use quiver_ethernet::{EthernetInput, VlanInput};
use quiver_forwarding::{ip4::input::Ip4Input, ip6::input::Ip6Input};
use quiver_mpls::MplsInput;

/// Declare all pairs. Both stages of each read the same line of a packet.
pub fn register(registry: &mut Registry) {
    registry.graph.pair::<EthernetInput, Ip4Input>();
    registry.graph.pair::<EthernetInput, Ip6Input>();
    registry.graph.pair::<EthernetInput, MplsInput>();
    registry.graph.pair::<VlanInput, Ip4Input>();
    registry.graph.pair::<VlanInput, Ip6Input>();
    registry.graph.pair::<VlanInput, MplsInput>();
}

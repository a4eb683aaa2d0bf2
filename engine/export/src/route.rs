//! What the FIB says of exported packets: numbers of interfaces, next hops, prefix lengths. The
//! control thread asks when it encodes a record, so that workers keep none of it.

use std::net::IpAddr;

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, Target};

/// The number of an interface in records (ifIndex of RFC 2863): its place in the table of
/// interfaces, counted from 1. 0 means unknown in sFlow, IPFIX and NetFlow.
pub fn if_index(id: InterfaceId) -> u32 {
    match id {
        InterfaceId::NONE => 0,
        InterfaceId(place) => place.wrapping_add(1),
    }
}

/// The routes of a packet's addresses now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Routed {
    /// The next hop to the destination; none where it is attached.
    pub next_hop: Option<IpAddr>,
    /// The interface that leads there; none where the FIB leaves it open.
    pub interface: Option<InterfaceId>,
    /// Length of the route to the source, bits.
    pub source_length: u8,
    /// Length of the route to the destination, bits.
    pub destination_length: u8,
}

impl Routed {
    /// The routes of a packet that came in by an interface; none without a route to the
    /// destination. Of several paths it is the first: which one a flow takes, workers decide.
    pub fn of(
        engine: &Engine,
        came_in: InterfaceId,
        source: IpAddr,
        destination: IpAddr,
    ) -> Option<Routed> {
        let fib = engine.get::<Fib>()?;
        let info = fib.interface(came_in)?;
        let table = if destination.is_ipv4() { info.ip4_table } else { info.ip6_table };
        let route = fib.best_route(table, destination)?;
        let (next_hop, interface) = match route.paths.first().map(|path| &path.target) {
            Some(Target::Via { next_hop, interface }) => (Some(*next_hop), *interface),
            Some(Target::Neighbour { interface, .. } | Target::Attached(interface)) => {
                (None, Some(*interface))
            }
            _ => (None, None),
        };
        let from = fib.best_route(table, source);
        Some(Routed {
            next_hop,
            interface,
            source_length: from.map_or(0, |from| from.prefix.len()),
            destination_length: route.prefix.len(),
        })
    }
}

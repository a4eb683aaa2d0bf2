//! What sessions make of a flow that somebody records in front of the translation.

use std::net::Ipv4Addr;

use quiver_core::Engine;
use quiver_export::translated::{End as ObservedEnd, Observed};
use quiver_forwarding::fib::Fib;
use quiver_translation::flow::{End, Flow};
use quiver_wire::IpProtocol;

use crate::config::Nat44;
use crate::session::{Direction, Session};

/// Source and destination behind the translation, by the session of the flow.
pub(crate) fn translated(
    engine: &Engine,
    observed: &Observed,
) -> Option<(ObservedEnd, ObservedEnd)> {
    let (sessions, objects) = engine.get::<Nat44>()?.shared.table()?;
    let table = engine.get::<Fib>()?.interface(observed.came_in)?.ip4_table;
    let end = |(address, port): ObservedEnd| End { address: address.to_bits(), port };
    let flow = Flow {
        source: end(observed.source),
        destination: end(observed.destination),
        protocol: IpProtocol(observed.protocol),
        table,
    };
    let found = sessions.lookup(&flow.key())?;
    let (session, direction) = (Session(objects.get(found >> 1)), Direction::of_index(found));
    // Packets get the ends of the other direction's flow, reversed. A session that ended meanwhile
    // has other keys.
    if session.flow(direction).key() != flow.key() {
        return None;
    }
    let behind = session.flow(direction.other()).reversed();
    let of = |end: End| (Ipv4Addr::from_bits(end.address), end.port);
    Some((of(behind.source), of(behind.destination)))
}

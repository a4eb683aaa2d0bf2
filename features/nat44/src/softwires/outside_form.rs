//! Packets to hosts behind B4s made what they were when they came, so that an ICMP error about one
//! is what its sender can understand (RFC 5508 REQ-4).

use quiver_core::Packet;
use quiver_translation::checksum::deltas;
use quiver_translation::flow::{Flow, Kind, classify_with};
use quiver_translation::rewrite::set_ends;

use crate::session::{Direction, Session};
use crate::softwires::B4Number;
use crate::tables::Shared;

/// Give a packet to a host behind a B4 the ends that it came with; its flow then. `None`, and
/// nothing changes, when no session has translated it.
#[cold]
pub(crate) fn restore(shared: &Shared, packet: &mut Packet, b4: B4Number) -> Option<Flow> {
    let (table, objects) = shared.table()?;
    let (kind, flow) = classify_with(packet, b4.table(), shared.algs.has_calls());
    if !matches!(kind, Kind::Data { .. } | Kind::Query { .. }) {
        return None;
    }
    let index = table.lookup(&flow.reversed().key())?;
    let session = Session(objects.get(index >> 1));
    let sent = session.flow(Direction::of_index(index).other());
    let pair = |source: u32, destination: u32| u64::from(source) << 32 | u64::from(destination);
    let addresses = pair(sent.source.address, sent.destination.address);
    let ports = u32::from(sent.source.port) << 16 | u32::from(sent.destination.port);
    set_ends(packet, addresses, ports, deltas(&flow, &sent));
    Some(sent)
}

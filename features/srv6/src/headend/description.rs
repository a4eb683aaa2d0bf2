//! Packets of the headend in words, for traces.

use quiver_core::graph::node::Names;
use quiver_core::graph::trace::TraceRecord;
use quiver_wire::{EthernetHeader, Header, Ip6Header};

/// What a record of one of the headend's nodes says: the packet with its segments, the active one
/// marked.
pub(super) fn describe(record: &TraceRecord, names: &dyn Names) -> String {
    let bytes = record.bytes();
    // What left straight has its layer 2 header in front; tags may follow the addresses.
    let is_ip6 = |at: usize| {
        let header = bytes.get(at..).and_then(Ip6Header::overlay);
        header.is_some_and(|header| header.version() == 6)
    };
    let tagged = [0, EthernetHeader::LEN, EthernetHeader::LEN + 4, EthernetHeader::LEN + 8];
    let at = tagged.into_iter().find(|at| is_ip6(*at)).unwrap_or(0);
    let packet = crate::endpoint::description::packet(bytes.get(at..).unwrap_or_default());
    format!("{packet}, to {}", names.node(record.next))
}

//! Counters of an interface since the router started: `clear interfaces` does not clear them.

use quiver_core::{Engine, InterfaceId};
use quiver_export::route::if_index;

use crate::datagram::{Counters, Traffic};

/// Of an interface, if it is there.
pub(crate) fn of(engine: &Engine, id: InterfaceId, sequence: u32) -> Option<Counters> {
    let interface = engine.interface(id)?;
    let mut counters = Counters {
        sequence,
        source: if_index(id),
        is_ethernet: interface.row().mac != [0; 6],
        is_up: (interface.admin_up, interface.link_up),
        is_promiscuous: interface.row().promiscuous,
        ..Counters::default()
    };
    for worker in engine.all_counters() {
        let own = worker.interface(id);
        let discards = own.rx_no_buffer.get() + own.rx_ring_full.get() + own.drops.get();
        let received = (own.rx_bytes.get(), own.rx_packets.get(), discards, own.rx_errors.get());
        let sent = (own.tx_bytes.get(), own.tx_packets.get(), 0, own.tx_errors.get());
        add(&mut counters.input, received);
        add(&mut counters.output, sent);
    }
    Some(counters)
}

/// Add a worker's part: bytes, packets, discarded packets, errors.
fn add(sum: &mut Traffic, (bytes, packets, discards, errors): (u64, u64, u64, u64)) {
    sum.bytes = sum.bytes.wrapping_add(bytes);
    for (sum, more) in
        [(&mut sum.packets, packets), (&mut sum.discards, discards), (&mut sum.errors, errors)]
    {
        *sum = sum.wrapping_add(more as u32);
    }
}

//! Frames that are nearly right: golden frames with bytes changed, cut or longer.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::golden;

/// Bytes from the start of a frame in which bytes are changed: the headers of a tunnel.
const EDITED_BYTES: usize = 110;
/// Bytes of an Ethernet header, which stay when a frame is cut.
const ETHERNET_BYTES: usize = 14;
/// Bytes that are added to a frame, at most.
const ADDED_BYTES_MAX: usize = 3000;

/// A frame, and the number of the port on which it is received.
pub type Received = (u8, Vec<u8>);

/// `count` frames made from those of the golden cases in `folder`, each to one of `ports` ports.
/// The frames have the port's number in the last byte of the destination address, as
/// [`Router::interface`](crate::Router::interface) gives it.
pub fn frames(folder: &Path, ports: u8, count: usize) -> impl Strategy<Value = Vec<Received>> {
    let seeds = golden::frames_in(folder);
    let change = (
        any::<Index>(),
        0..ports,
        vec((any::<Index>(), any::<u8>()), 0..4),
        prop::option::weighted(0.3, any::<Index>()),
        prop_oneof![6 => Just(0), 1 => 0..ADDED_BYTES_MAX],
    );
    let frame = change.prop_map(move |(seed, port, edits, cut, added)| {
        let mut frame = seed.get(&seeds).clone();
        frame.resize(frame.len() + added, 0x5a);
        for (place, value) in edits {
            let reach = frame.len().min(EDITED_BYTES);
            frame[place.index(reach)] = value;
        }
        if let Some(cut) = cut {
            frame.truncate(ETHERNET_BYTES + cut.index(frame.len() - ETHERNET_BYTES + 1));
        }
        frame[5] = port;
        (port, frame)
    });
    vec(frame, count)
}

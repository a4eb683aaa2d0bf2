//! Frames in words, for traces.

use quiver_core::graph::trace::TraceRecord;
use quiver_wire::{EthernetHeader, Header};

/// `02:… → ff:… (arp)`.
pub(crate) fn frame(record: &TraceRecord) -> String {
    match EthernetHeader::overlay(record.bytes()) {
        Some(header) => {
            format!("{} → {} ({})", header.source, header.destination, header.ether_type())
        }
        None => "a cut frame".to_owned(),
    }
}

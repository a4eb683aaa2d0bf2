//! Traces in words.

use quiver_core::graph::node::{DROP, Names};
use quiver_core::graph::trace::TraceRecord;
use quiver_wire::ip6::extension::Walk;
use quiver_wire::{Header, Ip4Header, Ip6Header};

use crate::tables::Kind;

/// What a node that keeps fragments did with one, or with what became of it.
pub(crate) fn keeper(kind: Kind, record: &TraceRecord, names: &dyn Names) -> String {
    let what = if kind.is_six() { fragment6(record.bytes()) } else { fragment4(record.bytes()) };
    let next = names.node(record.next);
    match what {
        Some(what) if record.next == record.node => {
            format!("{what}, waits for the others of its packet")
        }
        Some(what) if record.next == quiver_core::graph::builtin::HANDOFF => {
            format!("{what}, handed to the worker that puts its packet together")
        }
        Some(what) if record.next == DROP => {
            format!("{what}: {}", names.reason(record.drop_reason()))
        }
        Some(what) if kind.is_virtual() => format!("{what}, its ports are known, to {next}"),
        Some(what) => format!("{what}, to {next}"),
        None if record.next == DROP => names.reason(record.drop_reason()),
        None => format!("whole again, {} bytes, to {next}", record.packet_bytes),
    }
}

fn fragment4(bytes: &[u8]) -> Option<String> {
    let header = Ip4Header::overlay(bytes).filter(|header| header.is_fragment())?;
    let start = usize::from(header.fragment_offset()) * 8;
    let length = usize::from(header.total_length()).saturating_sub(header.header_len());
    let id = header.identification();
    Some(span(
        header.source(),
        header.destination(),
        id.into(),
        start,
        length,
        header.more_fragments(),
    ))
}

fn fragment6(bytes: &[u8]) -> Option<String> {
    let (header, behind) = Ip6Header::split(bytes)?;
    let mut headers = Walk::new(header.next_header(), behind).flatten();
    let (at, fragment) = headers.find_map(|found| Some((found.offset + 8, found.fragment()?)))?;
    let start = usize::from(fragment.offset) * 8;
    let length = usize::from(header.payload_length()).saturating_sub(at);
    Some(span(
        header.source(),
        header.destination(),
        fragment.identification,
        start,
        length,
        fragment.more,
    ))
}

fn span(
    source: impl std::fmt::Display,
    destination: impl std::fmt::Display,
    id: u32,
    start: usize,
    length: usize,
    more: bool,
) -> String {
    let last = if more { "" } else { ", the last" };
    format!("{source} → {destination} fragment of {id}: bytes {start} to {}{last}", start + length)
}

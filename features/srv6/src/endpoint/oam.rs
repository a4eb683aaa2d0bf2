//! Packets with the O-flag (RFC 9259 §2.1): the control thread gets their headers as they came,
//! with the time, and shows the last of them (`show sr oam`).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::Ipv6Addr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quiver_control::{Cell, Column, Command, Output, Refusal, Registry, Table};
use quiver_core::graph::stage::StageContext;
use quiver_core::throttle::TokenBucket;
use quiver_core::worker::event::{EVENT_BYTES, Event};
use quiver_core::{Engine, InterfaceId, Packet};
use quiver_wire::srh::{FLAG_OAM, ROUTING_TYPE, SrhHeader};
use quiver_wire::{Header, Ip6Header};

use super::description;
use super::slow_path::{self, Spot};
use crate::commands::GROUP;

/// Packets of which a node of a worker tells in a second.
pub const COPIES_PER_SECOND: u64 = 100;
/// Packets of which it may tell at once.
pub const COPIES_BURST: u64 = 100;
/// Packets that are kept; the oldest makes room.
pub const COPIES_MAX: usize = 256;
/// The kind of event.
const KIND: u8 = 0x4f;

/// What became of a packet with the flag, beside what the SID did with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The control thread was notified.
    Notified,
    /// Too many come.
    TooMany,
}

/// One node's share of what is told.
pub(crate) struct Watch(RefCell<TokenBucket>);

/// Does the first SRH of a packet have the flag?
fn is_marked(packet: &Packet) -> bool {
    let mut headers = slow_path::routing_headers(packet).flatten();
    let srh = headers.find(|(_, kind, _)| *kind == ROUTING_TYPE).map(|(srh, ..)| srh);
    srh.is_some_and(|srh| is_marked_at(packet, srh))
}

/// Does the SRH there have it?
#[inline(always)]
pub(crate) fn is_marked_at(packet: &Packet, srh: Spot) -> bool {
    let fixed = packet.bytes().get(srh.at..).and_then(SrhHeader::overlay);
    fixed.is_some_and(|fixed| fixed.flags() & FLAG_OAM != 0)
}

impl Watch {
    /// Nothing told yet.
    pub fn new() -> Watch {
        Watch(RefCell::new(TokenBucket::new(COPIES_PER_SECOND, COPIES_BURST)))
    }

    /// Look at a packet that has come to a SID, before it is changed.
    pub fn see(&self, context: StageContext<'_>, packet: &Packet) -> Option<Seen> {
        if !is_marked(packet) {
            return None;
        }
        let may = self.0.borrow_mut().take(context.now_ns());
        let bytes = packet.bytes();
        let headers = bytes.get(..EVENT_BYTES).unwrap_or(bytes);
        let notified = may && context.notify(packet.rx, KIND, headers);
        Some(if notified { Seen::Notified } else { Seen::TooMany })
    }
}

/// A packet's headers, and when it came.
struct Copy {
    at: Duration,
    interface: InterfaceId,
    bytes: Vec<u8>,
}

/// The last ones.
#[derive(Default)]
struct Copies(VecDeque<Copy>);

/// When an event happened, since 1970.
fn wall_time(engine: &Engine, event: &Event) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_nanos(engine.now_ns().saturating_sub(event.at_ns)))
}

fn hear(engine: &mut Engine, event: &Event) {
    if event.kind != KIND {
        return;
    }
    let at = wall_time(engine, event);
    let Some(Copies(copies)) = engine.get_mut::<Copies>() else { return };
    if copies.len() >= COPIES_MAX {
        copies.pop_front();
    }
    copies.push_back(Copy { at, interface: event.interface, bytes: event.bytes().to_vec() });
}

/// Register what is kept, for the nodes of local SIDs.
pub(crate) fn register(registry: &mut Registry, nodes: &'static [&'static str]) {
    registry.command(
        Command::new("show sr oam")
            .group(GROUP)
            .help("Show packets with the O-flag that have come to local SIDs, as they came")
            .details(
                "The last 256, of at most 100 a second of each worker and kind of SID (RFC 9259 \
                 §2.1.1). The time is in seconds since 1970. Segments stand in the order of the \
                 path, the active one in brackets.",
            )
            .run(|engine: &mut Engine, _| show(engine)),
    );
    registry.command(
        Command::new("clear sr oam")
            .group(GROUP)
            .help("Forget the packets with the O-flag that have come")
            .run(|engine: &mut Engine, _| {
                if let Some(copies) = engine.get_mut::<Copies>() {
                    copies.0.clear();
                }
                Ok(Output::none())
            }),
    );
    registry.on_start(move |engine| {
        engine.insert(Copies::default());
        nodes.iter().for_each(|node| engine.on_event(node, hear));
    });
}

fn show(engine: &Engine) -> Result<Output, Refusal> {
    let mut table = Table::new([
        Column::right("Time").key("time_s"),
        Column::left("Interface"),
        Column::left("SID").key("sid"),
        Column::left("Packet").key("text"),
    ])
    .when_empty("no packets with the O-flag");
    for Copy { at, interface, bytes } in
        engine.get::<Copies>().into_iter().flat_map(|copies| &copies.0)
    {
        let sid = Ip6Header::overlay(bytes).map_or(Ipv6Addr::UNSPECIFIED, Ip6Header::destination);
        let time = Cell::real(at.as_secs_f64(), 6);
        let row = table.row().cell(time).cell(engine.interface_name(*interface));
        row.cell(sid.to_string()).cell(description::packet(bytes));
    }
    Ok(Output::none().table("packets", table))
}

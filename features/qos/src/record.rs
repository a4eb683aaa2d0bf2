//! `qos-record`: the class of a received packet goes with it, whatever becomes of its headers.

use std::sync::Arc;

use quiver_core::graph::arc::DEVICE_INPUT;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};

use crate::class::{Class, Source};
use crate::headers::Headers;
use crate::tables::{PerSource, STORE, Tables};

/// The node's name.
pub(crate) const NODE: &str = "qos-record";

quiver_core::reasons! {
    /// What `qos-record` counts.
    pub enum RecordEvent {
        /// It has a class now.
        Recorded = info "recorded", "packets whose class was recorded (`show qos record`)";
    }
}

/// A worker's instance.
pub(crate) struct Record {
    tables: Arc<Tables>,
    own: NodeId,
}

/// What holds for the packets of an interface.
#[derive(Clone, Copy)]
pub(crate) struct Recorded {
    sources: PerSource,
    is_bare: bool,
    behind: Behind,
}

/// The class of a packet: that of its innermost header for which there is something to record.
#[inline(always)]
fn class_of(recorded: Recorded, bytes: &[u8]) -> Option<Class> {
    let headers = Headers::of(bytes, recorded.is_bare);
    Source::HEADERS.into_iter().rev().find_map(|source| {
        let wanted = recorded.sources.get(source);
        if wanted == 0 {
            return None;
        }
        let value = headers.read(source, bytes)?;
        let value = if wanted & STORE != 0 { wanted as u8 } else { value };
        Some(Class { source, value })
    })
}

impl Stage for Record {
    const NAME: &'static str = NODE;
    const LOOKS_FIRST: bool = true;
    type Reason = RecordEvent;
    type InterfaceState = Recorded;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Recorded {
        let row = cx.interface(rx);
        let end = row.map_or(DROP, |row| row.input);
        Recorded {
            sources: self.tables.input(rx),
            is_bare: row.is_some_and(|row| row.mac == [0; 6]),
            behind: cx.behind(DEVICE_INPUT, rx, self.own, end),
        }
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        recorded: Recorded,
        packet: &mut Packet,
    ) -> Result<NodeId, RecordEvent> {
        if let Some(class) = class_of(recorded, packet.bytes()) {
            packet.set_class(class.bits());
            context.count(RecordEvent::Recorded, packet.on_wire().0);
        }
        Ok(recorded.behind.take(packet))
    }
}

/// The declaration.
pub(crate) fn spec(tables: &Arc<Tables>) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::stage("Records the class of service of what interfaces receive", move |wiring| {
        Record { tables: tables.clone(), own: wiring.id }
    })
    .takes_offloads()
    .describe(|record, names| {
        let (on, next) = (names.interface(record.rx), names.node(record.next));
        format!("{} bytes from {on}, to {next}", record.packet_bytes)
    })
}

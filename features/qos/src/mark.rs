//! `qos-mark`: the class that was recorded for a packet is written into its headers, by a map.

use std::sync::Arc;

use quiver_core::graph::arc::INTERFACE_OUTPUT;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};

use crate::class::{Class, Source};
use crate::headers::Headers;
use crate::tables::Tables;

/// The node's name.
pub(crate) const NODE: &str = "qos-mark";

quiver_core::reasons! {
    /// What `qos-mark` counts.
    pub enum MarkEvent {
        /// A header has another class, or the same once more.
        Marked = info "marked", "headers that a class was written into (`show qos mark`)";
    }
}

/// A worker's instance.
pub(crate) struct Mark {
    tables: Arc<Tables>,
}

impl Mark {
    #[inline(always)]
    fn mark(&self, context: StageContext<'_>, packet: &mut Packet) {
        let maps = self.tables.output(packet.tx);
        let Some(class) = packet.class().filter(|_| !maps.is_empty()) else { return };
        let class = Class::from_bits(class);
        let is_bare = context.interface(packet.tx).is_some_and(|row| row.mac == [0; 6]);
        let headers = Headers::of(packet.bytes(), is_bare);
        for source in Source::HEADERS {
            let map = self.tables.map(maps.get(source), context.pass());
            if let Some(value) = map.and_then(|map| map.value(class))
                && headers.write(source, packet.bytes_mut(), value)
            {
                context.count(MarkEvent::Marked, packet.on_wire().0);
            }
        }
    }
}

impl Stage for Mark {
    const NAME: &'static str = NODE;
    type Reason = MarkEvent;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, MarkEvent> {
        self.mark(context, packet);
        let end = context.interface(packet.tx).map_or(DROP, |row| row.tx);
        Ok(context.next_in_arc(INTERFACE_OUTPUT, packet.tx, packet, end))
    }
}

/// The declaration.
pub(crate) fn spec(tables: &Arc<Tables>) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::stage("Writes recorded classes of service into what interfaces send", move |_| Mark {
        tables: tables.clone(),
    })
    .takes_offloads()
    .describe(|record, names| {
        let (on, next) = (names.interface(record.tx), names.node(record.next));
        format!("{} bytes out of {on}, to {next}", record.packet_bytes)
    })
}

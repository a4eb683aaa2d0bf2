//! Behind the output of a tunnel's interface with features, or of packets that were fragmented for
//! it: the outer header of the interface by which they leave.

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec, Wiring};
use quiver_core::graph::stage::StageContext;
use quiver_core::{Context, Frame};
use quiver_encap::entries::WorkerEncapEntries;
use quiver_forwarding::ip::Ip6;

use crate::encap::{SixRdEncap, SixRdEncapDrop};
use crate::tables::Tables;

/// The node's name.
pub(crate) const NODE: &str = "6rd-output";

struct Output(SixRdEncap<Ip6>);

impl Node for Output {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let context = StageContext::new(cx);
        frame.route(|packet| {
            if packet.bytes().first().is_none_or(|first| first >> 4 != 6) {
                return Err(SixRdEncapDrop::NotIp6);
            }
            self.0.put(context, packet.tx, packet, false)
        });
        frame.look_at_rx();
    }
}

/// The declaration.
pub(crate) fn spec(entries: &Arc<[Arc<WorkerEncapEntries>]>, tables: &Arc<Tables>) -> NodeSpec {
    let (entries, tables) = (entries.clone(), tables.clone());
    let help = "Puts the outer header in front of packets that have passed a 6rd tunnel's output";
    NodeSpec::new(NODE, help, move |wiring: &Wiring<'_>| {
        Box::new(Output(SixRdEncap::new(wiring, &entries, &tables)))
    })
    .reasons::<SixRdEncapDrop>()
    .describe(|record, names| {
        let (tunnel, bytes) = (names.interface(record.tx), record.packet_bytes);
        format!("{bytes} bytes by {tunnel}, to {}", names.node(record.next))
    })
}

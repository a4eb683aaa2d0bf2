//! Offloads of an interface that are switched off: features of `interface-output` in front of a
//! device that would take them.

use quiver_core::graph::arc::INTERFACE_OUTPUT;
use quiver_core::graph::node::{DROP, Never, Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};

use crate::node::Gso;

/// Cuts super-frames.
pub(crate) const GSO_OUTPUT: &str = "gso-output";
/// Comes behind `gso`, which cuts super-frames and completes checksums.
pub(crate) const CHECKSUM_OUTPUT: &str = "tx-checksum-output";

/// Where a packet goes behind a feature of the arc.
#[inline]
fn behind(cx: &Context<'_>, packet: &mut Packet) -> NodeId {
    let tx = packet.tx;
    let device = cx.interface(tx).map_or(DROP, |row| row.tx);
    cx.next_in_arc(INTERFACE_OUTPUT, tx, packet, device)
}

struct GsoOutput(Gso);

impl Node for GsoOutput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        for mut packet in frame.drain() {
            let next = behind(cx, &mut packet);
            self.0.cut_super_frame(cx, packet, next);
        }
    }
}

struct ChecksumOutput;

impl Node for ChecksumOutput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let cx = &*cx;
        frame.route(|packet| Ok::<_, Never>(behind(cx, packet)));
    }
}

pub(crate) fn gso_spec() -> NodeSpec {
    NodeSpec::new(GSO_OUTPUT, "Cuts super-frames for a device that would take them", |_| {
        Box::new(GsoOutput(Gso::new()))
    })
    .takes_offloads()
    .reasons::<crate::node::GsoDrop>()
}

/// It does not take super-frames and open checksums: the worker has `gso` finish them before.
pub(crate) fn checksum_spec() -> NodeSpec {
    NodeSpec::new(
        CHECKSUM_OUTPUT,
        "Has super-frames cut and checksums completed for a device that would take them",
        |_| Box::new(ChecksumOutput),
    )
}

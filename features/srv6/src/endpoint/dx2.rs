//! End.DX2 (RFC 8986 §4.9): the inner frame goes out of an interface that the SID names. End.DX2V
//! (§4.10): the VLAN tags of the inner frame say which.

use std::sync::Arc;

use quiver_control::{Args, Refusal, modes};
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Engine, InterfaceId, NodeId, Packet};
use quiver_encap::decapsulated::take_off;
use quiver_tables::CountedLines;
use quiver_wire::{EthernetHeader, Header};

use super::inner_frame::{self, SendsInner};
use super::next_nodes::NextNodes;
use super::reasons::{Bad, LocalSidDrop};
use super::sid_entry::{SidEntry, SidEntryRef};
use super::vlan_tables::{Tags, VLAN_TABLES_MAX, Views};
use crate::local_sids::{Behavior, Held, Kind, Names, Place};

/// The nodes of End.DX2 and End.DX2V.
pub(crate) const NODE: &str = "sr-localsid-dx2";
pub(crate) const NODE_V: &str = "sr-localsid-dx2v";

/// The control side of End.DX2.
#[derive(Debug)]
struct EndDx2 {
    interface: InterfaceId,
}

impl Behavior for EndDx2 {
    fn words(&self, names: &Names<'_>) -> String {
        format!("end.dx2 {}", names.engine.interface_name(self.interface))
    }

    fn hold(&mut self, engine: &mut Engine, _: Place) -> Result<Held, Refusal> {
        modes::check_frames(engine, self.interface)?;
        let node = engine
            .node_id(NODE)
            .ok_or_else(|| Refusal::new("the node of End.DX2 is not built in"))?;
        let entry = SidEntry { interface: self.interface.0, ..SidEntry::default() };
        Ok(Held { node, words: entry.words() })
    }

    fn release(&mut self, _: &mut Engine) {}

    fn names(&self, interface: InterfaceId) -> bool {
        self.interface == interface
    }
}

/// The control side of End.DX2V.
#[derive(Debug)]
struct EndDx2V {
    table: u32,
}

impl Behavior for EndDx2V {
    fn words(&self, _: &Names<'_>) -> String {
        format!("end.dx2v {}", self.table)
    }

    fn hold(&mut self, engine: &mut Engine, _: Place) -> Result<Held, Refusal> {
        let node = engine.node_id(NODE_V);
        let node = node.ok_or_else(|| Refusal::new("the node of End.DX2V is not built in"))?;
        let entry = SidEntry { argument: self.table, ..SidEntry::default() };
        Ok(Held { node, words: entry.words() })
    }

    fn release(&mut self, _: &mut Engine) {}
}

/// `sr-localsid-dx2`, and `sr-localsid-dx2v` (`VLAN`): a packet's part of it.
pub struct DecapsulateFrame<const VLAN: bool> {
    next_nodes: NextNodes,
    views: Arc<Views>,
}

impl<const VLAN: bool> SendsInner for DecapsulateFrame<VLAN> {
    #[inline(always)]
    fn send_inner(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        at: usize,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let came = packet.on_wire();
        take_off(packet, at)?;
        if packet.segment_length() < EthernetHeader::LEN {
            return Err(LocalSidDrop::InnerWrong.into());
        }
        let to = if VLAN { self.by_tags(context, line, packet)? } else { line.interface() };
        let row = context.interface(to).ok_or(LocalSidDrop::NotConfigured)?;
        if !row.up {
            return Err(LocalSidDrop::InterfaceDown.into());
        }
        self.next_nodes.good_on_wire(line.0, came);
        packet.tx = to;
        packet.clear(PacketFlags::L2_GROUP);
        Ok(row.output)
    }
}

impl<const VLAN: bool> DecapsulateFrame<VLAN> {
    /// The interface that the frame's tags lead to.
    fn by_tags(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &Packet,
    ) -> Result<InterfaceId, LocalSidDrop> {
        let table = self.views.read(line.argument() as usize, context.pass());
        table
            .and_then(|table| table.find(Tags::of(packet.bytes())))
            .ok_or(LocalSidDrop::VlanUnknown)
    }
}

impl<const VLAN: bool> Stage for DecapsulateFrame<VLAN> {
    const NAME: &'static str = if VLAN { NODE_V } else { NODE };
    const LOOKS_BEHIND: bool = true;
    const SENDS: bool = true;
    type Reason = LocalSidDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    fn ahead(&self, packet: &Packet) {
        self.next_nodes.prefetch_entry(packet);
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        inner_frame::decide(self, &self.next_nodes, context, packet)
    }
}

/// The declaration of a node.
pub(crate) fn spec<const VLAN: bool>(lines: &Arc<CountedLines>, views: &Arc<Views>) -> NodeSpec {
    let (lines, views) = (lines.clone(), views.clone());
    let help = match VLAN {
        true => "End.DX2V: inner frames out of the interface that their VLAN tags lead to",
        false => "End.DX2: inner frames out of an interface",
    };
    NodeSpec::stage(help, move |wiring| DecapsulateFrame::<VLAN> {
        next_nodes: NextNodes::new(wiring, &lines),
        views: views.clone(),
    })
    .takes_offloads()
    .describe(|record, names| {
        let (bytes, tx) = (record.packet_bytes, names.interface(record.tx));
        format!("a frame of {bytes} bytes, by {tx} to {}", names.node(record.next))
    })
}

/// End.DX2.
pub(crate) fn dx2(interface: InterfaceId) -> Box<dyn Behavior> {
    Box::new(EndDx2 { interface })
}

fn make(engine: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    Ok(Box::new(EndDx2 { interface: args.interface(engine, "interface")? }))
}

fn make_v(_: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    let table = args.get("table")?;
    if table as usize >= VLAN_TABLES_MAX {
        let what = format!("VLAN tables are numbered from 0 to {}", VLAN_TABLES_MAX - 1);
        return Err(args.refuse("table", what));
    }
    Ok(Box::new(EndDx2V { table }))
}

/// What the command knows.
pub(crate) const KINDS: [Kind; 2] = [
    Kind {
        name: "end.dx2",
        syntax: "<interface>",
        help: "inner frames out of this interface",
        words: &[],
        example: "end.dx2 e0",
        make,
    },
    Kind {
        name: "end.dx2v",
        syntax: "<table:u32>",
        help: "inner frames out of the interface that their VLAN tags lead to in this VLAN table \
               (`sr vlan-table`)",
        words: &[],
        example: "end.dx2v 0",
        make: make_v,
    },
];

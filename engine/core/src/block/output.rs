//! `NAME-output`, and the outputs that many interfaces share, as kernels: they count what leaves.

use crate::graph::arc::INTERFACE_OUTPUT;
use crate::graph::builtin::{OutputDrop, SharedOutputDrop};
use crate::graph::context::Context;
use crate::graph::frame::next_or_drop;
use crate::graph::interface::InterfaceRow;
use crate::ids::{InterfaceId, NodeId};
use crate::memory::packet::Packet;
use crate::worker::more_on_wire;

use super::kernel::{Block, Kernel, WholeVector, places};

/// Whose output it is.
pub(crate) enum OutputKernel {
    /// An interface's, whose device is behind this node.
    Interface(InterfaceId, NodeId),
    /// That of all interfaces that have it in their rows; packets say which.
    Shared,
}

/// How many bytes have the live packets?
fn count_bytes(block: &Block<'_>) -> u64 {
    let (mut bytes, mut is_chained) = (0, !block.is_full());
    for packet in block.packets.iter().take(block.count) {
        is_chained |= packet.is_chained();
        bytes += packet.segment_length() as u64;
    }
    if is_chained {
        bytes = places(block.live).map(|place| block.packets[place].length() as u64).sum();
    }
    bytes
}

/// The interface that all live packets leave by, if it is one.
fn common_tx(block: &Block<'_>) -> Option<InterfaceId> {
    let first = block.first()?.tx;
    let mut differing = 0;
    if block.is_full() {
        for packet in block.packets.iter().take(block.count) {
            differing |= packet.tx.0 ^ first.0;
        }
    } else {
        for place in places(block.live) {
            differing |= block.packets[place].tx.0 ^ first.0;
        }
    }
    (differing == 0).then_some(first)
}

impl OutputKernel {
    /// The interface that sends a packet from here. What came from a sub-interface is its parent's.
    #[inline(always)]
    fn sender<'p>(cx: &Context<'p>, tx: InterfaceId) -> Option<(InterfaceId, &'p InterfaceRow)> {
        let row = cx.interface(tx)?;
        if row.output == cx.node {
            return Some((tx, row));
        }
        let above = cx.interface(row.parent).filter(|above| above.output == cx.node);
        above.map(|above| (row.parent, above))
    }

    /// The packets leave by `tx`, unless it is down; `None` when they must be looked at one by one.
    fn all(
        &self,
        cx: &Context<'_>,
        (tx, bytes): (InterfaceId, u64),
        block: &mut Block<'_>,
    ) -> Option<NodeId> {
        let (sender, row) = Self::sender(cx, tx).filter(|(_, row)| row.up)?;
        let (behind, sets_tx) = match self {
            OutputKernel::Interface(_, device) => (*device, true),
            OutputKernel::Shared => (row.tx, sender != tx),
        };
        let first = row.first(INTERFACE_OUTPUT, behind);
        let mut more = (0, 0);
        if block.is_alone {
            let live = places(block.live).filter_map(|place| block.packets.get(place));
            more = more_on_wire(live);
        }
        if first != behind || block.is_alone || sender != tx {
            for place in places(block.live) {
                if let Some(packet) = block.packets.get_mut(place) {
                    packet.arc_place = 0;
                    packet.tx = if sets_tx { sender } else { packet.tx };
                }
            }
        }
        let counters = cx.interface_counters(sender);
        counters.tx_packets.add(block.live_count() + more.0);
        counters.tx_bytes.add(bytes + more.1);
        Some(first)
    }

    /// One packet.
    fn one(cx: &Context<'_>, packet: &mut Packet) -> Result<NodeId, SharedOutputDrop> {
        let (sender, row) = Self::sender(cx, packet.tx).ok_or(SharedOutputDrop::Gone)?;
        if !row.up {
            return Err(SharedOutputDrop::Down);
        }
        (packet.arc_place, packet.tx) = (0, sender);
        let counters = cx.interface_counters(packet.tx);
        let (packets, bytes) = packet.on_wire();
        counters.tx_packets.add(packets);
        counters.tx_bytes.add(bytes);
        Ok(row.first(INTERFACE_OUTPUT, row.tx))
    }
}

impl Kernel for OutputKernel {
    fn run_vector(&mut self, cx: &mut Context<'_>, vector: &mut WholeVector<'_>) -> Option<NodeId> {
        let OutputKernel::Interface(tx, device) = *self else { return None };
        let row = cx.interface(tx).filter(|row| row.up && row.output == cx.node)?;
        let (first, bytes) = (row.first(INTERFACE_OUTPUT, device), vector.bytes?);
        if first != device {
            for packet in &mut *vector.packets {
                (packet.arc_place, packet.tx) = (0, tx);
            }
        }
        let counters = cx.interface_counters(tx);
        counters.tx_packets.add(vector.packets.len() as u64);
        counters.tx_bytes.add(bytes);
        Some(first)
    }

    fn run(&mut self, cx: &mut Context<'_>, block: &mut Block<'_>) -> Option<NodeId> {
        let tx = match self {
            OutputKernel::Interface(interface, _) => Some(*interface),
            OutputKernel::Shared => common_tx(block),
        };
        let bytes = block.bytes.unwrap_or_else(|| count_bytes(block));
        if let Some(tx) = tx
            && let Some(next) = self.all(cx, (tx, bytes), block)
        {
            block.bytes = Some(bytes);
            return Some(next);
        }
        block.bytes = None;
        for place in places(block.live) {
            let packet = &mut block.packets[place];
            block.next[place] = match self {
                OutputKernel::Interface(..) => next_or_drop(Err(OutputDrop::Down), packet),
                OutputKernel::Shared => next_or_drop(Self::one(cx, packet), packet),
            };
        }
        None
    }
}

//! How a packet leaves with its headers in front again: straight by the adjacency that leads to the
//! next segment, or by the node that the FIB names.

use std::cell::{Ref, RefCell};
use std::sync::Arc;

use quiver_core::graph::node::Wiring;
use quiver_core::memory::epoch::Pass;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::output;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::next_hop_group::Hop;
use quiver_forwarding::nodes;
use quiver_tables::GroupId;
use quiver_wire::{Header, Ip6Header};

use super::cached_header::Unread;
use super::flows::Flow;
use super::outer_header::OuterHeader;
use super::reasons::{Bad, ProxyDrop};
use super::return_interfaces::{Around, Back, Backs, Coming};

/// The longest payload of an IPv6 packet, in bytes.
const PAYLOAD_BYTES_MAX: usize = u16::MAX as usize;

/// What the nodes have that put headers in front.
pub(super) struct Transmit {
    backs: Backs,
    coming: Coming,
    pub tables: Arc<IpTables>,
    /// The headers of the return interface whose packets are in hands.
    front: RefCell<Box<OuterHeader>>,
    rewrite: NodeId,
    drop: NodeId,
    /// Nodes that send a packet to a neighbour, and count a hop of those that are not the router's
    /// own.
    leaving: [NodeId; 5],
    /// Nodes of those whose index is an adjacency.
    adjacent: [NodeId; 4],
}

/// What holds for all packets that come back by an interface.
#[derive(Clone, Copy)]
pub struct Ready {
    /// The way to the next segment; why there are no headers otherwise.
    group: Result<GroupId, ProxyDrop>,
    /// Each flow has headers of its own.
    pub by_flow: bool,
}

impl Transmit {
    pub fn new(wiring: &Wiring<'_>, backs: &Backs, coming: Coming) -> Transmit {
        let node = |name| wiring.node(name);
        let (rewrite, confirm) = (node(nodes::ip6::REWRITE), node(nodes::ip6::CONFIRM_NEIGHBOR));
        let (discover, glean) = (node(nodes::ip6::DISCOVER_NEIGHBOR), node(nodes::ip6::GLEAN));
        let count = node(nodes::ip6::ADJACENCY_COUNTER);
        Transmit {
            backs: backs.clone(),
            coming,
            tables: wiring.shared(),
            front: RefCell::default(),
            rewrite,
            drop: node(nodes::ip6::DROP),
            leaving: [rewrite, confirm, discover, glean, count],
            adjacent: [rewrite, confirm, discover, count],
        }
    }

    /// Get the headers ready for packets that come back by `rx`.
    pub fn ready(&self, cx: &Context<'_>, rx: InterfaceId) -> Option<Ready> {
        let back = self.back(rx, cx.pass)?;
        let mut own = self.front.borrow_mut();
        let read = match &back.around {
            Around::Fixed(front) => {
                **own = **front;
                Ok(())
            }
            Around::CachedHeader(kept) => kept.read(&mut own).map_err(|unread| match unread {
                Unread::Nothing => ProxyDrop::NothingKept,
                Unread::Changing => ProxyDrop::KeptChanging,
            }),
            // Found for each packet: [`of_flow`](Self::of_flow).
            Around::Flows(_) => {
                return Some(Ready { group: Err(ProxyDrop::NothingKept), by_flow: true });
            }
            Around::Masked { .. } => Err(ProxyDrop::NotConfigured),
        };
        let group = read.and_then(|()| {
            let next = own.destination().ok_or(ProxyDrop::NotConfigured)?;
            Ok(self.tables.ip6.table(back.table).lookup(next))
        });
        Some(Ready { group, by_flow: false })
    }

    /// Get the headers of its flow ready for a packet that comes back, in a vector that is not
    /// ready by itself.
    pub fn of_flow(&self, back: &Back, packet: &Packet) -> Ready {
        let Around::Flows(flows) = &back.around else {
            return Ready { group: Err(ProxyDrop::NotConfigured), by_flow: true };
        };
        let mut own = self.front.borrow_mut();
        let flow = Flow::of(self.coming == Coming::Ip6, packet.bytes()).ok_or(ProxyDrop::Truncated);
        let read = flow.and_then(|flow| {
            flows.read(flow, &mut own).map_err(|unread| match unread {
                Unread::Nothing => ProxyDrop::NothingKept,
                Unread::Changing => ProxyDrop::KeptChanging,
            })
        });
        let group = read.and_then(|()| {
            let next = own.destination().ok_or(ProxyDrop::NotConfigured)?;
            Ok(self.tables.ip6.table(back.table).lookup(next))
        });
        Ready { group, by_flow: true }
    }

    /// What is known of a return interface.
    #[inline(always)]
    pub fn back<'p>(&self, rx: InterfaceId, pass: Pass<'p>) -> Option<&'p Back> {
        self.backs.read(rx, self.coming, pass)
    }

    /// The headers that [`ready`](Self::ready) made ready.
    #[inline(always)]
    pub fn front(&self) -> Ref<'_, Box<OuterHeader>> {
        self.front.borrow()
    }

    /// The way for a flow.
    #[inline(always)]
    pub fn hop(&self, ready: Ready, hash: u32) -> Result<Hop, ProxyDrop> {
        self.hop_of(ready.group?, hash)
    }

    /// The way for a flow, of those of a group.
    #[inline(always)]
    pub fn hop_of(&self, group: GroupId, hash: u32) -> Result<Hop, ProxyDrop> {
        let hop = self.tables.groups.resolve(group, hash);
        if hop.next == self.drop { Err(ProxyDrop::NoRoute) } else { Ok(hop) }
    }

    /// The longest packet that may go by this hop, in bytes.
    #[inline(always)]
    pub fn mtu_bytes(&self, hop: Hop) -> usize {
        match self.adjacent.contains(&hop.next) {
            true => usize::from(self.tables.adjacencies.get(hop.index).mtu_bytes),
            false => PAYLOAD_BYTES_MAX,
        }
    }

    /// The length of a packet with its headers.
    #[inline(always)]
    pub fn total(&self, packet: &Packet) -> Result<usize, ProxyDrop> {
        let total = packet.length() + self.front().len();
        if total - Ip6Header::LEN > PAYLOAD_BYTES_MAX { Err(ProxyDrop::TooLong) } else { Ok(total) }
    }

    /// Put the headers in front, and let the packet go. The router has made them: no hop of theirs
    /// is counted where they leave.
    #[inline(always)]
    pub fn go(
        &self,
        hop: Hop,
        fits: bool,
        class: u8,
        hash: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let (front, length) = (self.front(), packet.length());
        if !front.put(packet, length, class, hash) {
            return Err(ProxyDrop::NoHeadroom.into());
        }
        hop.route(packet);
        if !(fits & (hop.next == self.rewrite)) {
            if self.leaving.contains(&hop.next) {
                packet.set(PacketFlags::LOCALLY_ORIGINATED);
            }
            return Ok(hop.next);
        }
        let adjacency = self.tables.adjacencies.get(hop.index);
        output::push_link(adjacency, packet).map_err(|_| ProxyDrop::NoHeadroom.into())
    }
}

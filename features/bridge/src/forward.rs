//! `l2-fwd`: the destination is known behind a port; or it is not, and the frame is flooded
//! (IEEE 802.1Q §8.6).

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{LookUp, StageContext, find_once};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::mac::{DomainIndex, FloodPlace, MacEntry, MacKey, MacTable, PortWord};

use crate::address::Addresses;
use crate::nodes;
use crate::tables::{Published, Unknown};
use crate::uu_forward;

quiver_core::reasons! {
    /// Why `l2-fwd` drops.
    pub enum L2ForwardDrop {
        /// The port left its domain.
        NotBridged = "not-bridged", "the interface left its bridge domain while the frame was \
            under way";
        /// A filter.
        Filtered = "destination-filtered", "frame to an address with a filter entry (`show l2fib`)";
        /// It is there already.
        OwnPort = "own-port", "the destination is behind the port that the frame came in by";
        /// Both ports are in one group.
        SplitHorizon = "split-horizon", "the destination is behind a port of the same \
            split-horizon group";
        /// Switched off.
        UnknownUnicast = "unknown-unicast", "unknown destination, and flooding of those is off \
            (`set bridge-domain uu-flood`)";
    }
}

/// `l2-fwd`, a packet's part of it.
pub struct L2Forward {
    published: Arc<Published>,
    table: MacTable,
    flood: NodeId,
    uu_forward: NodeId,
}

/// What holds for a port.
#[derive(Clone, Copy)]
pub struct InterfaceState {
    /// 0 when it is no port any more.
    domain: DomainIndex,
    /// The port.
    rx: InterfaceId,
    /// Its split-horizon group.
    group: u8,
    /// Where frames to unknown destinations go.
    unknown: NodeId,
}

impl L2Forward {
    /// May frames go where an entry says, whose port this is?
    #[inline(always)]
    fn leads_on(interface_state: InterfaceState, found: MacEntry, port: PortWord) -> bool {
        let same_group = (port.group() == interface_state.group) & (interface_state.group != 0);
        found.holds(port) & !found.is_filter() & (found.port() != interface_state.rx) & !same_group
    }

    #[cold]
    #[inline(never)]
    fn take_slow_path(
        &self,
        interface_state: InterfaceState,
        found: MacEntry,
        packet: &mut Packet,
    ) -> Result<NodeId, L2ForwardDrop> {
        let port = self.table.ports().word(found.port());
        if interface_state.domain.0 == 0 {
            Err(L2ForwardDrop::NotBridged)
        } else if !found.holds(port) {
            packet.hand_over(FloodPlace::START);
            if interface_state.unknown == DROP {
                Err(L2ForwardDrop::UnknownUnicast)
            } else {
                Ok(interface_state.unknown)
            }
        } else if found.is_filter() {
            Err(L2ForwardDrop::Filtered)
        } else if found.port() == interface_state.rx {
            Err(L2ForwardDrop::OwnPort)
        } else {
            Err(L2ForwardDrop::SplitHorizon)
        }
    }
}

impl LookUp for L2Forward {
    const NAME: &'static str = nodes::FORWARD;
    type Reason = L2ForwardDrop;
    type Key = u64;
    type Found = MacEntry;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        match self.published.read(cx.pass).port(rx) {
            Some(port) => {
                let unknown = match port.unknown {
                    Unknown::Flood => self.flood,
                    Unknown::ToOne => self.uu_forward,
                    Unknown::Drop => DROP,
                };
                InterfaceState { domain: port.domain, rx, group: port.group, unknown }
            }
            None => InterfaceState { domain: DomainIndex(0), rx, group: 0, unknown: DROP },
        }
    }

    #[inline(always)]
    fn key(&self, interface_state: InterfaceState, packet: &mut Packet) -> u64 {
        let destination = Addresses::of(packet).map_or(0, Addresses::destination);
        MacKey::from_wire(interface_state.domain, destination).word()
    }

    #[inline(always)]
    fn find(&self, variant: Variant, _: InterfaceState, keys: &[u64], found: &mut [MacEntry]) {
        self.table.lookup_slice(variant, keys, found);
    }

    #[inline(always)]
    fn find_uniform(
        &self,
        variant: Variant,
        interface_state: InterfaceState,
        keys: &[u64],
        found: &mut [MacEntry],
    ) {
        find_once(keys, found, |keys, found| self.find(variant, interface_state, keys, found));
    }

    /// All stations are behind one port, and one far end of it.
    #[inline(always)]
    fn resolve_all(
        &self,
        _: StageContext<'_>,
        interface_state: InterfaceState,
        found: &[MacEntry],
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        let first = *found.first()?;
        let (tx, far_end) = (first.port(), first.far_end());
        let port = self.table.ports().word(tx);
        let mut leads_there = Self::leads_on(interface_state, first, port);
        for found in found {
            leads_there &= (found.port() == tx) & (found.far_end() == far_end);
            leads_there &= found.holds(port) & !found.is_filter();
        }
        if !leads_there {
            return None;
        }
        for packet in packets {
            packet.tx = tx;
            match far_end {
                Some(far_end) => packet.hand_over(far_end),
                None => packet.hand_over_nothing(),
            }
        }
        Some(port.output())
    }

    #[inline(always)]
    fn resolve(
        &self,
        _: StageContext<'_>,
        interface_state: InterfaceState,
        _: u64,
        found: MacEntry,
        packet: &mut Packet,
    ) -> Result<NodeId, L2ForwardDrop> {
        let tx = found.port();
        let port = self.table.ports().word(tx);
        if !Self::leads_on(interface_state, found, port) {
            return self.take_slow_path(interface_state, found, packet);
        }
        packet.tx = tx;
        if let Some(far_end) = found.far_end() {
            packet.hand_over(far_end);
        }
        Ok(port.output())
    }
}

pub(crate) fn spec(published: &Arc<Published>, table: &MacTable) -> NodeSpec {
    let (published, table) = (published.clone(), table.clone());
    NodeSpec::look_up("Finds the port that a station is behind", move |wiring| L2Forward {
        published: published.clone(),
        table: table.clone(),
        flood: wiring.node(nodes::UU_FLOOD),
        uu_forward: wiring.node(uu_forward::NODE),
    })
    .takes_offloads()
    .describe(|record, names| {
        let frame = crate::description::frame(record);
        match record.next {
            DROP => format!("{frame}: dropped"),
            next if [nodes::UU_FLOOD, uu_forward::NODE].contains(&names.node(next).as_str()) => {
                format!("{frame}: the destination is not known; to {}", names.node(next))
            }
            next => format!(
                "{frame}: the destination is behind {}; to {}",
                names.interface(record.tx),
                names.node(next)
            ),
        }
    })
}

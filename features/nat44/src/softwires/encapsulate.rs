//! `dslite-encapsulate`: a translated packet goes to its B4, in a packet of IPv6 (RFC 6333 §6.2).
//! What is longer than the tunnel's MTU is cut behind the encapsulation, or, where its sender
//! forbids that, answered (§6.3, RFC 2473 §7.2).

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::softwire::{Ip4Inside, cut_for_link};
use quiver_encap::{InnerPacket, OuterHeader};
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_forwarding::requests::FragmentRequest;
use quiver_forwarding::{IcmpErrorRequest, nodes};
use quiver_wire::{Header, Ip6Header};

use crate::softwires::input::describe;
use crate::softwires::outside_form::restore;
use crate::softwires::reasons::DsliteDrop;
use crate::softwires::table::address_of;
use crate::softwires::{B4Number, TABLE6, is_softwire};
use crate::tables::{Rules, Shared};

/// The node's name.
pub(crate) const ENCAPSULATE: &str = "dslite-encapsulate";
/// Every link of IPv6 takes so many bytes (RFC 8200 §5).
const IP6_MTU_MIN: usize = 1_280;

/// The end of the tunnels here.
#[derive(Clone, Copy)]
pub(crate) struct TunnelEnd {
    pub address: u128,
    pub mtu_bytes: u16,
}

impl TunnelEnd {
    pub fn of(rules: &Rules) -> TunnelEnd {
        TunnelEnd { address: rules.aftr.address, mtu_bytes: rules.aftr.mtu_bytes }
    }
}

/// Where packets to B4s go.
pub(crate) struct ToB4s {
    lookup6: NodeId,
    cut: NodeId,
}

impl ToB4s {
    pub fn new(wiring: &Wiring<'_>) -> ToB4s {
        let lookup6 = nodes::ip6::LOOKUP_IN_TABLE;
        ToB4s {
            lookup6: wiring.node(lookup6),
            cut: wiring.node(<Ip6 as OuterHeader>::FRAGMENT.unwrap_or(lookup6)),
        }
    }

    /// Put the header in front of a packet that may be sent; where it goes, and whether it is cut.
    #[inline(always)]
    pub fn send(
        &self,
        packet: &mut Packet,
        inside: &Ip4Inside,
        end: TunnelEnd,
        b4: u128,
    ) -> Result<(NodeId, bool), DsliteDrop> {
        if !inside.encapsulate(packet, (end.address, b4), None) {
            return Err(DsliteDrop::NoHeadroom);
        }
        let total = inside.outer_length();
        if total > IP6_MTU_MIN && inside.may_be_cut {
            cut_for_link(packet);
            if total > usize::from(end.mtu_bytes) {
                packet.hand_over(FragmentRequest { mtu_bytes: end.mtu_bytes, table: TABLE6 });
                return Ok((self.cut, true));
            }
        }
        packet.hand_over(TableIndex(TABLE6));
        Ok((self.lookup6, false))
    }
}

struct Encapsulate {
    shared: Arc<Shared>,
    to_b4s: ToB4s,
    error4: NodeId,
}

impl Encapsulate {
    /// A packet that must not be cut and is too long: its sender is told, and gets it back as it
    /// was sent.
    #[cold]
    fn too_big(
        &self,
        context: StageContext<'_>,
        end: TunnelEnd,
        packet: &mut Packet,
        b4: B4Number,
    ) -> Result<NodeId, DsliteDrop> {
        let sent = restore(&self.shared, packet, b4).ok_or(DsliteDrop::NotOurs)?;
        if is_softwire(sent.table) {
            return Err(DsliteDrop::HairpinTooBig);
        }
        context.count(DsliteDrop::TooBig, 1);
        let detail = end.mtu_bytes.saturating_sub(Ip6Header::LEN as u16);
        packet.hand_over(IcmpErrorRequest { kind: 3, code: 4, detail });
        Ok(self.error4)
    }
}

impl LookUp for Encapsulate {
    const NAME: &'static str = ENCAPSULATE;
    type Reason = DsliteDrop;
    /// The number of a B4.
    type Key = u32;
    /// Its address.
    type Found = u128;
    type InterfaceState = TunnelEnd;

    fn interface_state(&self, cx: &Context<'_>, _: InterfaceId) -> TunnelEnd {
        TunnelEnd::of(self.shared.rules(cx.pass))
    }

    #[inline(always)]
    fn key(&self, _: TunnelEnd, packet: &mut Packet) -> u32 {
        packet.handed_over::<B4Number>().0
    }

    #[inline(always)]
    fn find(&self, _: Variant, _: TunnelEnd, keys: &[u32], found: &mut [u128]) {
        match self.shared.softwires() {
            Some(readers) => {
                for (number, address) in keys.iter().zip(found) {
                    *address = address_of(readers, B4Number(*number));
                }
            }
            None => found.fill(0),
        }
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        end: TunnelEnd,
        number: u32,
        address: u128,
        packet: &mut Packet,
    ) -> Result<NodeId, DsliteDrop> {
        let inside = Ip4Inside::of(packet).ok_or(DsliteDrop::Truncated)?;
        if end.address == 0 || address == 0 {
            return Err(DsliteDrop::NoB4);
        }
        let is_own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        if !is_own & (inside.ttl <= 1) {
            return Err(DsliteDrop::Ttl);
        }
        if (inside.outer_length() > usize::from(end.mtu_bytes)) & !inside.may_be_cut {
            return self.too_big(context, end, packet, B4Number(number));
        }
        if !is_own {
            Ip4::decrement_hop_limit(packet.bytes_mut());
        }
        let (next, is_cut) = self.to_b4s.send(packet, &inside, end, address)?;
        if is_cut {
            context.count(DsliteDrop::Cut, 1);
        }
        Ok(next)
    }
}

/// The declaration; a [`B4Number`] is handed over.
pub(crate) fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = "Puts a header of IPv6 in front of translated packets to B4s";
    NodeSpec::look_up(help, move |wiring| Encapsulate {
        shared: shared.clone(),
        to_b4s: ToB4s::new(wiring),
        error4: wiring.node(nodes::ip4::ICMP_ERROR),
    })
    .describe(|record, names| {
        format!("{}, to {}", describe(record.bytes()), names.node(record.next))
    })
}

//! `sr-pl-rewrite-encaps`, `sr-pl-rewrite-encaps-v4`: an IPv6 or IPv4 packet gets an outer IPv6 header with the
//! policy's segments (H.Encaps, H.Encaps.Red: RFC 8986 §5.1, §5.2).

use std::sync::Arc;

use quiver_core::node::{NodeSpec, Wiring};
use quiver_core::packet::PacketFlags;
use quiver_core::stage::{Stage, Tally};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::CountedLines;
use quiver_tables::ip::flow_hash;

use super::Rows;
use super::departure::{About, Departure, Hearer};
use super::inner::Inner;
use super::reasons::HeadendDrop;
use super::rows::Words;
use super::words;
use crate::carried::{Facts, move_offload};

/// The node for packets of a family. The number of the list's row is in [`Packet::index`].
pub struct Encaps<F> {
    departure: Departure,
    error: NodeId,
    family: std::marker::PhantomData<F>,
}

/// What of the inner packet has been done before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hop {
    /// It may be dead, and one is counted.
    ToCount,
    /// It was counted by what led here.
    Counted,
}

impl<F: Inner> Encaps<F> {
    pub(super) fn new(wiring: &Wiring<'_>, rows: &Rows, lines: &CountedLines) -> Encaps<F> {
        let departure = Departure::new(wiring, rows, lines);
        Encaps { departure, error: wiring.node(F::ERROR_NODE), family: std::marker::PhantomData }
    }

    /// What is unusual about a packet, step by step; `before` changes it once it is sure to go on.
    #[cold]
    #[inline(never)]
    pub(super) fn closer(
        &self,
        tally: Tally<'_>,
        packet: &mut Packet,
        hop_of: Hop,
        before: impl FnOnce(&mut Packet),
    ) -> Result<NodeId, HeadendDrop> {
        let row = self.departure.rows.get(packet.index);
        if row.header_len() == 0 {
            return Err(HeadendDrop::NoPolicy);
        }
        let own = packet.has(PacketFlags::OWN);
        let counts = hop_of == Hop::ToCount && !own;
        if counts && let Some((request, why)) = F::refused(packet.bytes())? {
            tally.count(why, 1);
            packet.index = request.to_index();
            return Ok(self.error);
        }
        let hash = flow_hash::<F>(packet);
        let hop = self.departure.hop(row, hash);
        let (total, room) =
            (Departure::check_length(packet, row)?, self.departure.room(row, hop, hash, None));
        let fits = total <= room.mtu_bytes;
        if !fits && !own {
            if let Some(request) = F::too_big(packet, room.mtu_bytes.saturating_sub(row.header_len())) {
                tally.count(HeadendDrop::TooBig, 1);
                packet.index = request.to_index();
                return Ok(self.error);
            }
            tally.count(HeadendDrop::Fragmented, 1);
        }
        move_offload(packet, row.header_len())?;
        before(packet);
        if counts {
            F::count_hop(packet.bytes_mut());
        }
        let Facts { class, hops, .. } = F::facts(packet.bytes()).ok_or(HeadendDrop::Truncated)?;
        let length = packet.length();
        self.departure.put(row, packet, length, About { class, hops, hash, protocol: F::PROTOCOL })?;
        if fits && self.departure.is_straight(hop) {
            return self.departure.straight(self.departure.adjacency(hop), packet);
        }
        Ok(self.departure.by_node(row, hop, packet, (!fits).then_some(room), Hearer::Headend))
    }

    /// Around a packet about which nothing is unusual, and out; with others happens what `otherwise` says. `step` says
    /// whether it may go, counts its hop, and tells the traffic class and the hops left.
    #[inline(always)]
    pub(super) fn put(
        &self,
        packet: &mut Packet,
        step: impl FnOnce(&mut Packet) -> Option<(u8, u8)>,
        otherwise: impl FnOnce(&mut Packet) -> Result<NodeId, HeadendDrop>,
    ) -> Result<NodeId, HeadendDrop> {
        let row = self.departure.rows.get(packet.index);
        let hash = flow_hash::<F>(packet);
        let hop = self.departure.hop(row, hash);
        let adjacency = self.departure.adjacency(hop);
        let length = packet.segment_length();
        let unusual = PacketFlags::OWN.and(PacketFlags::CHAINED).and(PacketFlags::OFFLOAD);
        let plain = packet.has_none(unusual)
            & (length + row.header_len() <= adjacency.mtu_bytes.min(Words(row).path_mtu_bytes()).into())
            & self.departure.is_straight(hop)
            & (row.header_len() != 0);
        let stepped = if plain { step(packet) } else { None };
        let Some((class, hops)) = stepped else { return otherwise(packet) };
        let about = About { class, hops, hash, protocol: F::PROTOCOL };
        self.departure.put_straight(row, adjacency, packet, length, about)
    }
}

impl<F: Inner> Stage for Encaps<F> {
    const NAME: &'static str = F::NODE;
    const ALIKE: bool = true;
    type Reason = HeadendDrop;
    type Common = ();

    fn common(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        self.departure.rows.prefetch(packet.index);
    }

    #[inline(always)]
    fn soon(&self, packet: &Packet) {
        self.departure.prefetch_way(packet.index);
    }

    #[inline(always)]
    fn decide(&self, tally: Tally<'_>, (): (), packet: &mut Packet) -> Result<NodeId, HeadendDrop> {
        let otherwise = |packet: &mut Packet| self.closer(tally, packet, Hop::ToCount, |_| ());
        self.put(packet, |packet| F::step(packet.bytes_mut()), otherwise)
    }
}

/// The declaration.
pub(super) fn spec<F: Inner>(rows: &Rows, lines: &Arc<CountedLines>) -> NodeSpec {
    let (rows, lines) = (rows.clone(), lines.clone());
    NodeSpec::stage("Puts an outer IPv6 header with a policy's segments in front", move |wiring| {
        Encaps::<F>::new(wiring, &rows, &lines)
    })
    .detour("ip6-rewrite")
    .describe(words::describe)
}

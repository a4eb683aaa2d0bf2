//! What a function behind an End.AM SID with the caching flavour sends of its own goes along the
//! segments of the last packet to the SID, to its destination as the last one
//! (draft-ietf-spring-sr-service-programming §6.4.3).

use quiver_core::{NodeId, Packet};
use quiver_encap::InnerPacket;
use quiver_encap::inner::{BEYOND_SCOPE, packet_too_big};
use quiver_forwarding::ip::{Ip6, flow_hash};
use quiver_tables::GroupId;
use quiver_wire::srh::{SEGMENT_BYTES, SrhHeader, segment, segment_offset};
use quiver_wire::{Header, Ip6Header};

use super::cached_header::{CachedHeader, Unread};
use super::outer_header::OuterHeader;
use super::reasons::{Bad, ProxyDrop};
use super::return_interfaces::Back;
use super::transmit::Transmit;
use crate::endpoint::next_nodes::NextNodes;
use crate::endpoint::segments;
use crate::srh_place::SrhPlace;

impl From<Unread> for Bad {
    fn from(unread: Unread) -> Bad {
        Bad::Drop(match unread {
            Unread::Nothing => ProxyDrop::NothingKept,
            Unread::Changing => ProxyDrop::KeptChanging,
        })
    }
}

/// May it leave its link?
fn check(packet: &Packet) -> Result<(), Bad> {
    let fields = Ip6::fields(packet.bytes()).ok_or(ProxyDrop::Truncated)?;
    if fields.is_link_local {
        return Err(Bad::Complain(BEYOND_SCOPE, ProxyDrop::LinkLocalSource));
    }
    if fields.hop_limit <= 1 {
        return Err(Bad::Complain(Ip6::TIME_EXCEEDED, ProxyDrop::HopLimit));
    }
    Ok(())
}

/// Give a packet the segments, and send it on; its hop is counted where it leaves.
pub(super) fn send(
    departure: &Transmit,
    next_nodes: &NextNodes,
    back: &Back,
    kept: &CachedHeader,
    packet: &mut Packet,
) -> Result<NodeId, Bad> {
    check(packet)?;
    let mut front = OuterHeader::default();
    kept.read(&mut front)?;
    let srh = front.header_mut().get_mut(Ip6Header::LEN..).unwrap_or_default();
    let place = SrhPlace::of(packet.bytes()).ok_or(ProxyDrop::Truncated)?;
    let to = Ip6Header::overlay(packet.bytes()).ok_or(ProxyDrop::Truncated)?.destination();
    if let Some(last) =
        srh.get_mut(segment_offset(0)..).and_then(<[u8]>::first_chunk_mut::<SEGMENT_BYTES>)
    {
        *last = to.octets();
    }
    if let Some(named) = srh.first_mut() {
        *named = place.next;
    }
    let left = SrhHeader::overlay(srh).ok_or(ProxyDrop::NothingKept)?.segments_left();
    let active = segment(srh, left.into()).ok_or(ProxyDrop::ListWrong)?;
    if left > 0 && !segments::is_plain_segment(active.to_bits()) {
        return Err(ProxyDrop::NextSegment.into());
    }
    let group: GroupId = next_nodes.tables.ip6.table(back.table).lookup(active.to_bits());
    let hop = departure.hop_of(group, flow_hash::<Ip6>(packet))?;
    let (total, mtu_bytes) = (packet.length() + srh.len(), departure.mtu_bytes(hop));
    if total > mtu_bytes {
        let room = mtu_bytes.saturating_sub(srh.len());
        let request = Ip6::too_big(packet, room).unwrap_or_else(|| packet_too_big(room));
        return Err(Bad::Complain(request, ProxyDrop::TooBig));
    }
    if !place.put(packet, srh, active) {
        return Err(ProxyDrop::NoHeadroom.into());
    }
    Ok(next_nodes.six(group, packet))
}

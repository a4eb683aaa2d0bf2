//! ICMPv6 errors about packets that this router has sent to customers: the senders of the packets
//! inside are told in their own version (RFC 2473 §8).

use quiver_core::graph::stage::StageContext;
use quiver_core::{NodeId, Packet};
use quiver_encap::relay::{UnderlayError, to_sender};
use quiver_encap::softwire::{Quoted, has_good_checksum};
use quiver_forwarding::IcmpErrorRequest;
use quiver_forwarding::ip::Ip4;
use quiver_translation::versions::IP6_MTU_MIN;
use quiver_wire::{Header, Ip4Header};

use crate::border::{Border, TABLE};
use crate::reasons::MapDrop;
use crate::upper::{self, End};

/// Relay an error. `None`, and nothing changes, for what is no error about a packet of IPv4 in one
/// of IPv6.
#[cold]
#[inline(never)]
pub(crate) fn relay(
    border: &Border,
    context: StageContext<'_>,
    packet: &mut Packet,
) -> Option<Result<NodeId, MapDrop>> {
    let about = Quoted::of(packet.bytes())?;
    Some(match checked(border, context, packet, &about) {
        Ok(Some(request)) => {
            match to_sender::<Ip4>(&border.tables, packet, about.at, TABLE, request) {
                true => {
                    context.count(MapDrop::Relayed, 1);
                    Ok(border.error4)
                }
                false => Err(MapDrop::Truncated),
            }
        }
        Ok(None) => {
            context.count(MapDrop::Kept, 1);
            Ok(border.done)
        }
        Err(why) => Err(why),
    })
}

/// What the sender of the packet inside is told, if it is this router's packet to a customer.
fn checked(
    border: &Border,
    context: StageContext<'_>,
    packet: &Packet,
    about: &Quoted,
) -> Result<Option<IcmpErrorRequest>, MapDrop> {
    if !has_good_checksum(packet.bytes()).ok_or(MapDrop::Truncated)? {
        return Err(MapDrop::BadChecksum);
    }
    let inner = packet.bytes().get(about.at..).ok_or(MapDrop::Truncated)?;
    let destination = Ip4Header::overlay(inner).ok_or(MapDrop::Truncated)?.destination_bits();
    let pass = context.pass();
    let domain = border
        .domain_of4(destination, border.to_customers, pass)
        .filter(|domain| domain.border6() == Some(about.source))
        .ok_or(MapDrop::NotOurs)?;
    let port = upper::port(inner, End::Destination)?;
    if domain.customer(destination, port) != Ok(about.destination) {
        return Err(MapDrop::NotOurs);
    }
    if let UnderlayError::TooBig(mtu_bytes) = about.error
        && usize::from(mtu_bytes) < IP6_MTU_MIN
    {
        return Err(MapDrop::NotBelieved);
    }
    Ok(about.error.for_sender::<Ip4>(inner, about.around, false))
}

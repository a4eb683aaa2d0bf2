//! ICMPv6 errors about packets that this router has sent to customers: the senders of the packets
//! inside are told in their own version (RFC 2473 §8).

use quiver_core::graph::stage::StageContext;
use quiver_core::{NodeId, Packet};
use quiver_encap::relay::{UnderlayError, to_sender};
use quiver_forwarding::IcmpErrorRequest;
use quiver_forwarding::ip::Ip4;
use quiver_translation::versions::IP6_MTU_MIN;
use quiver_wire::icmp6::{self, Icmp6Header};
use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use crate::border::{Border, TABLE};
use crate::domain::Mode;
use crate::reasons::MapDrop;
use crate::upper::{self, End};

/// What an error is about.
struct About {
    error: UnderlayError,
    /// Where the packet of IPv4 begins.
    at: usize,
    /// Bytes of the headers around it.
    around: u16,
    source: u128,
    destination: u128,
}

/// Relay an error. `None`, and nothing changes, for what is no error about a packet of IPv4 in one
/// of IPv6.
#[cold]
#[inline(never)]
pub(crate) fn relay(
    border: &Border,
    context: StageContext<'_>,
    packet: &mut Packet,
) -> Option<Result<NodeId, MapDrop>> {
    let about = read(packet.bytes())?;
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

/// What an error says of which packet.
fn read(bytes: &[u8]) -> Option<About> {
    let (header, message) = icmp6::within(bytes)?;
    let (icmp, quoted) = Icmp6Header::split(message)?;
    let is_error = (icmp6::kind::DESTINATION_UNREACHABLE..=icmp6::kind::PARAMETER_PROBLEM)
        .contains(&icmp.kind);
    let (outer, behind) = Ip6Header::split(quoted)?;
    let upper = upper_layer(outer.next_header(), behind).ok()?;
    let is_first = upper.fragment.is_none_or(|fragment| fragment.offset == 0);
    if !(is_error && is_first && upper.protocol == IpProtocol::IPV4) {
        return None;
    }
    let around = Ip6Header::LEN + upper.offset;
    let end = Ip6Header::LEN + usize::from(header.payload_length());
    Some(About {
        error: UnderlayError::of_icmp6(icmp),
        at: end.checked_sub(quoted.len())? + around,
        around: u16::try_from(around).ok()?,
        source: outer.source_bits(),
        destination: outer.destination_bits(),
    })
}

/// What the sender of the packet inside is told, if it is this router's packet to a customer.
fn checked(
    border: &Border,
    context: StageContext<'_>,
    packet: &Packet,
    about: &About,
) -> Result<Option<IcmpErrorRequest>, MapDrop> {
    let (header, message) = icmp6::within(packet.bytes()).ok_or(MapDrop::Truncated)?;
    if !icmp6::is_good(header.source(), header.destination(), message) {
        return Err(MapDrop::BadChecksum);
    }
    let inner = packet.bytes().get(about.at..).ok_or(MapDrop::Truncated)?;
    let destination = Ip4Header::overlay(inner).ok_or(MapDrop::Truncated)?.destination_bits();
    let pass = context.pass();
    let domain = border
        .domain_of4(destination, border.to_customers, pass)
        .filter(|domain| domain.mode == Mode::Encapsulate(about.source))
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

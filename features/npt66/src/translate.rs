//! Addresses of packets translated, and those of packets that ICMPv6 errors quote. Checksums stay
//! as they are: each address has the one of the address that it replaces.

use std::net::Ipv6Addr;

use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::{Header, Ip6Header, IpProtocol};

use crate::mapping::Mapping;

/// Bytes of an ICMPv6 header in front of the packet that an error quotes.
const ICMP_BYTES: usize = 8;
/// Types of ICMPv6 from here on are no errors (RFC 4443 §2.1).
const FIRST_INFORMATION: u8 = 128;

/// An address that has none on the other side (RFC 6296 §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unmappable;

/// Where a packet goes that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outward {
    /// By the interface.
    On,
    /// Its destination is an internal address, too, by its external one (hairpinning, RFC 4787 §6).
    Back,
}

/// A packet that comes from outside: its destination becomes an internal address.
#[inline(always)]
pub(crate) fn inward(mappings: &[Mapping], packet: &mut [u8]) -> Result<(), Unmappable> {
    if let Some(header) = Ip6Header::overlay_mut(packet) {
        let to = header.destination_bits();
        if let Some(mapping) = mappings.iter().find(|mapping| mapping.is_external(to)) {
            let internal = mapping.to_internal(to).ok_or(Unmappable)?;
            header.set_destination(Ipv6Addr::from_bits(internal));
        }
        if may_be_error(header) {
            quoted(packet, |inner| inward_quoted(mappings, inner));
        }
    }
    Ok(())
}

/// A packet that leaves: its source becomes an external address.
#[inline(always)]
pub(crate) fn outward(mappings: &[Mapping], packet: &mut [u8]) -> Result<Outward, Unmappable> {
    let Some(header) = Ip6Header::overlay_mut(packet) else { return Ok(Outward::On) };
    let (from, to) = (header.source_bits(), header.destination_bits());
    let mapping = mappings.iter().find(|mapping| mapping.is_internal(from));
    if let Some(mapping) = mapping {
        let external = mapping.to_external(from).ok_or(Unmappable)?;
        header.set_source(Ipv6Addr::from_bits(external));
    }
    let may_be_error = may_be_error(header);
    if may_be_error {
        quoted(packet, |inner| outward_quoted(mappings, inner));
    }
    if mapping.is_some() && mappings.iter().any(|mapping| mapping.is_external(to)) {
        inward(mappings, packet)?;
        return Ok(Outward::Back);
    }
    Ok(Outward::On)
}

/// The source of a packet that an error quotes is one that was translated as the packet left.
fn inward_quoted(mappings: &[Mapping], inner: &mut Ip6Header) {
    let from = inner.source_bits();
    let mapping = mappings.iter().find(|mapping| mapping.is_external(from));
    if let Some(internal) = mapping.and_then(|mapping| mapping.to_internal(from)) {
        inner.set_source(Ipv6Addr::from_bits(internal));
    }
}

/// The destination of a packet that an error quotes is one that was translated as the packet came.
fn outward_quoted(mappings: &[Mapping], inner: &mut Ip6Header) {
    let to = inner.destination_bits();
    let mapping = mappings.iter().find(|mapping| mapping.is_internal(to));
    if let Some(external) = mapping.and_then(|mapping| mapping.to_external(to)) {
        inner.set_destination(Ipv6Addr::from_bits(external));
    }
}

/// Most packets are surely none.
#[inline(always)]
fn may_be_error(header: &Ip6Header) -> bool {
    !matches!(header.next_header(), IpProtocol::TCP | IpProtocol::UDP)
}

/// Change the header of the packet that an ICMPv6 error quotes.
#[cold]
fn quoted(packet: &mut [u8], change: impl FnOnce(&mut Ip6Header)) {
    let Some((header, rest)) = Ip6Header::split(packet) else { return };
    let Ok(upper) = upper_layer(header.next_header(), rest) else { return };
    let is_later = upper.fragment.is_some_and(|fragment| fragment.offset != 0);
    if upper.protocol != IpProtocol::ICMP6 || is_later {
        return;
    }
    let Some(message) = packet.get_mut(Ip6Header::LEN + upper.offset..) else { return };
    if message.first().is_none_or(|kind| *kind >= FIRST_INFORMATION) {
        return;
    }
    let inner = message.get_mut(ICMP_BYTES..).and_then(Ip6Header::overlay_mut);
    if let Some(inner) = inner.filter(|inner| inner.version() == 6) {
        change(inner);
    }
}

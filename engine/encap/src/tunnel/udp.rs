//! The UDP header of tunnels in UDP: its source port tells flows apart (RFC 7348 §5, RFC 8926
//! §3.3), its checksum is zero over IPv4, and over IPv6 unless a tunnel leaves it out (RFC 6935,
//! RFC 6936).

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;
use quiver_offload::checksum::add_rest_as_sent;
use quiver_wire::checksum::Sum;
use quiver_wire::{Header, Ip6Header, IpProtocol, UdpHeader};

use super::protocol::TunnelProtocol;
use crate::entry::EntryView;
use crate::inner::Truncated;

/// Source ports of flows begin here (RFC 7348 §5: the dynamic range of RFC 6335).
const SOURCE_PORT_MIN: u16 = 0xc000;
/// Bits of a hash that a source port has.
const SOURCE_PORT_BITS: u32 = 14;
/// Odd, with as many ones as zeros: spreads the bits of a flow's hash. Another number than that of
/// flow labels, so that both differ.
const SPREAD: u32 = 0x85eb_ca6b;

/// The source port of a flow.
#[inline(always)]
pub fn source_port(hash: u32) -> u16 {
    SOURCE_PORT_MIN | (hash.wrapping_mul(SPREAD) >> (32 - SOURCE_PORT_BITS)) as u16
}

/// The port that a datagram is for, and what follows its header; port 0 and all of it for protocols
/// without UDP.
#[inline(always)]
pub(super) fn split_udp<P: TunnelProtocol>(bytes: &[u8]) -> Option<(u16, &[u8])> {
    if P::UDP_PORT.is_none() {
        return Some((0, bytes));
    }
    let (header, behind) = UdpHeader::split(bytes)?;
    Some((header.destination_port(), behind))
}

/// A header from `source` (0: from the port of each flow) to `port`, as [`fill`] completes it.
pub(super) fn template(source: u16, port: u16) -> [u8; UdpHeader::LEN] {
    let ([a, b], [high, low]) = (source.to_be_bytes(), port.to_be_bytes());
    [a, b, high, low, 0, 0, 0, 0]
}

/// Write the header that begins `at` bytes from the begin of a stack, of a packet of `total` bytes.
///
/// # Errors
/// `bytes` is shorter than the header.
#[inline(always)]
pub(super) fn fill(
    words: EntryView<'_>,
    bytes: &mut [u8],
    at: usize,
    total: usize,
    hash: u32,
) -> Result<(), Truncated> {
    let place = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<{ UdpHeader::LEN }>());
    // Of the entry: a load from what was just stored in the packet would wait for the stores.
    let ports = words.0.header().get(at..).and_then(|rest| rest.first_chunk::<4>());
    let (place, ports) = (place.ok_or(Truncated)?, u32::from_be_bytes(*ports.ok_or(Truncated)?));
    let flow = if ports >> 16 == 0 { u32::from(source_port(hash)) << 16 } else { 0 };
    let header = u64::from(ports | flow) << 32 | ((total - at) as u64 & 0xffff) << 16;
    *place = header.to_be_bytes();
    Ok(())
}

/// Write the checksum of a packet over IPv6 whose stack begins at `at`, unless its tunnel leaves it
/// out.
///
/// # Errors
/// The packet is shorter than the stack.
#[inline(always)]
pub(super) fn finish(
    words: EntryView<'_>,
    packet: &mut Packet,
    at: usize,
) -> Result<(), Truncated> {
    if words.feature_flag() {
        return Ok(());
    }
    let header = Ip6Header::overlay(packet.bytes().get(at..).ok_or(Truncated)?).ok_or(Truncated)?;
    let at = at + Ip6Header::LEN;
    let length = packet.length().checked_sub(at).ok_or(Truncated)?;
    if packet.has(PacketFlags::OFFLOAD) && packet.offload().segment_bytes != 0 {
        // Each segment gets its own where the super-frame is cut, because there is one here.
        let udp = packet.bytes_mut().get_mut(at..).and_then(UdpHeader::overlay_mut);
        udp.ok_or(Truncated)?.set_checksum(u16::MAX);
        return Ok(());
    }
    let sum = Sum::pseudo6(header.source(), header.destination(), IpProtocol::UDP, length as u32);
    let sum = add_rest_as_sent(sum, packet, at).ok_or(Truncated)?.udp_checksum();
    let udp = packet.bytes_mut().get_mut(at..).and_then(UdpHeader::overlay_mut);
    udp.ok_or(Truncated)?.set_checksum(sum);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_ports_are_of_the_dynamic_range_and_differ_from_flow_to_flow() {
        let mut ports: Vec<u16> = (0..1000).map(source_port).collect();
        assert!(ports.iter().all(|port| *port >= SOURCE_PORT_MIN));
        ports.sort_unstable();
        ports.dedup();
        assert!(ports.len() > 950, "{}", ports.len());
    }
}

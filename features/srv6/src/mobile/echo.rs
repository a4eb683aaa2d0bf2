//! The answer to a GTP-U echo request (TS 29.281 §7.2): from where the request went, to where it
//! came from.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_core::Packet;
use quiver_wire::gtpu::{self, element, message};
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, UdpHeader, ip4, ip6, udp};

use super::decapsulate::{Came, rebuild};
use super::gtpu_message::GtpuMessage;
use crate::endpoint::reasons::LocalSidDrop;

/// Hops that an answer may take.
const HOPS: u8 = 64;
/// The recovery element; its value is 0 (TS 29.281 §8.2).
const RECOVERY: [u8; 2] = [element::RECOVERY, 0];
/// Header with a number, and that element.
const GTPU_BYTES: usize = 12 + RECOVERY.len();
/// UDP and what is in it.
const DATAGRAM_BYTES: usize = UdpHeader::LEN + GTPU_BYTES;

/// The packet becomes the answer.
pub(super) fn answer(
    came: &Came,
    arrived: &GtpuMessage,
    packet: &mut Packet,
) -> Result<(), LocalSidDrop> {
    let mut bytes = [0; Ip6Header::LEN + DATAGRAM_BYTES];
    let length = match came.is_ip4 {
        true => over_ip4(came, arrived, &mut bytes),
        false => over_ip6(came, arrived, &mut bytes),
    };
    let answer = length.and_then(|length| bytes.get(..length)).ok_or(LocalSidDrop::AddressWrong)?;
    rebuild(packet, answer)?;
    packet.become_own();
    Ok(())
}

/// UDP and GTP-U without a checksum.
fn datagram(arrived: &GtpuMessage, out: &mut [u8]) -> Option<()> {
    UdpHeader::new(gtpu::PORT, arrived.source_port, GTPU_BYTES)?.write(out).ok()?;
    let sequence = Some(arrived.message.sequence.unwrap_or(0));
    let payload_len = RECOVERY.len();
    let said = gtpu::Repr {
        message_type: message::ECHO_RESPONSE,
        teid: 0,
        sequence,
        session: None,
        payload_len,
    };
    let behind = out.get_mut(UdpHeader::LEN..)?;
    let at = said.emit(behind).ok()?;
    behind.get_mut(at..at + payload_len)?.copy_from_slice(&RECOVERY);
    Some(())
}

fn over_ip4(came: &Came, arrived: &GtpuMessage, out: &mut [u8]) -> Option<usize> {
    let [from, to] =
        [came.destination, came.source].map(|address| Ipv4Addr::from_bits(address as u32));
    if !ip4::address::is_unicast(from) || !ip4::address::is_unicast(to) {
        return None;
    }
    let end = Ip4Header::LEN + DATAGRAM_BYTES;
    let (header, behind) = out.get_mut(..end)?.split_at_mut_checked(Ip4Header::LEN)?;
    Ip4Header::new(from, to, IpProtocol::UDP, HOPS, DATAGRAM_BYTES)?.write(header).ok()?;
    datagram(arrived, behind)?;
    udp::fill_checksum_over_ip4(from, to, behind);
    Some(end)
}

fn over_ip6(came: &Came, arrived: &GtpuMessage, out: &mut [u8]) -> Option<usize> {
    let [from, to] = [came.destination, came.source].map(Ipv6Addr::from_bits);
    if !ip6::address::is_unicast(to) {
        return None;
    }
    let end = Ip6Header::LEN + DATAGRAM_BYTES;
    let (header, behind) = out.get_mut(..end)?.split_at_mut_checked(Ip6Header::LEN)?;
    Ip6Header::new(from, to, IpProtocol::UDP, HOPS, DATAGRAM_BYTES as u16).write(header).ok()?;
    datagram(arrived, behind)?;
    udp::fill_checksum_over_ip6(from, to, behind);
    Some(end)
}

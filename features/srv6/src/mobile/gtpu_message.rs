//! A GTP-U message as it has come in: what its headers say, and where its payload begins.

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;
use quiver_offload::checksum::add_to_sum;
use quiver_wire::checksum::Sum;
use quiver_wire::gtpu::{self, GtpuBad};
use quiver_wire::{Header, UdpHeader};

use crate::endpoint::reasons::LocalSidDrop;

/// What has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct GtpuMessage {
    /// The UDP port that it was sent from.
    pub source_port: u16,
    pub message: gtpu::Repr,
    /// Where the payload begins, counted from the IP header.
    pub at: usize,
}

/// Why bytes are not understood.
fn bad(why: GtpuBad) -> LocalSidDrop {
    match why {
        GtpuBad::Truncated | GtpuBad::Version => LocalSidDrop::GtpuWrong,
        GtpuBad::Extensions | GtpuBad::NotUnderstood(_) => LocalSidDrop::GtpuExtensions,
    }
}

/// Is what begins at `at` a UDP datagram to the port of GTP-U?
#[inline(always)]
pub(super) fn is_to_gtpu(packet: &Packet, at: usize) -> bool {
    let udp = packet.bytes().get(at..).and_then(UdpHeader::overlay);
    udp.is_some_and(|udp| udp.destination_port() == gtpu::PORT)
}

/// Read the message in the UDP datagram at `udp_at`, and cut off what is behind it. The sum of the
/// pseudo header is made only of datagrams with a checksum; one without is right over IPv6, too:
/// GTP-U is a tunnel (RFC 6935 §5).
#[inline(always)]
pub(super) fn read(
    packet: &mut Packet,
    udp_at: usize,
    pseudo: impl FnOnce(u16) -> Sum,
) -> Result<GtpuMessage, LocalSidDrop> {
    let bytes = packet.bytes().get(udp_at..).unwrap_or_default();
    let (udp, behind) = UdpHeader::split(bytes).ok_or(LocalSidDrop::GtpuWrong)?;
    let length = usize::from(udp.length());
    if length < UdpHeader::LEN || udp_at + length > packet.length() {
        return Err(LocalSidDrop::GtpuWrong);
    }
    if udp.checksum() != 0 && !packet.has(PacketFlags::L4_CHECKSUM_GOOD) {
        let sum = add_to_sum(pseudo(udp.length()), packet, udp_at, length);
        if !sum.is_some_and(Sum::is_good) {
            return Err(LocalSidDrop::GtpuWrong);
        }
    }
    let source_port = udp.source_port();
    let (message, len) = gtpu::Repr::parse(behind, length - UdpHeader::LEN).map_err(bad)?;
    let at = udp_at + UdpHeader::LEN + len;
    packet.trim(at + message.payload_len);
    Ok(GtpuMessage { source_port, message, at })
}

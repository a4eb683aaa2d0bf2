//! From SRv6 to GTP-U: what End.M.GTP4.E and End.M.GTP6.E have in common (RFC 9433 §6.5, §6.6):
//! what the SID says of the session, and UDP and GTP-U in front of the user's packet.

use quiver_core::Packet;
use quiver_core::memory::packet::PacketFlags;
use quiver_wire::gtpu::{self, Direction, message};
use quiver_wire::srh::{ROUTING_TYPE, Srh};
use quiver_wire::{Header, Ip6Header, IpProtocol, UdpHeader};

use super::args::Session;
use super::messages::{self, ELEMENTS_BYTES_MAX};
use crate::endpoint::inner_packet::ETHERNET;
use crate::endpoint::reasons::LocalSidDrop;
use crate::endpoint::slow_path::routing_headers;

/// The longest header in front of GTP-U's payload.
pub(super) const BYTES_MAX: usize = Ip6Header::LEN + UdpHeader::LEN + gtpu::REPR_BYTES_MAX;
/// The first of the ports that flows are told apart by (RFC 6335 §6: dynamic ports), and how many
/// there are.
const PORT_FIRST: u16 = 0xc000;
const PORT_MASK: u32 = 0x3fff;

/// Is this a user's packet?
#[inline(always)]
pub(super) fn is_payload(protocol: IpProtocol) -> bool {
    matches!(protocol, IpProtocol::IPV4 | IpProtocol::IPV6 | ETHERNET)
}

/// What goes out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub message: gtpu::Repr,
    pub source_port: u16,
}

impl Outgoing {
    /// Bytes of UDP and GTP-U headers.
    #[inline(always)]
    pub fn len(&self) -> usize {
        UdpHeader::LEN + self.message.len()
    }

    /// Bytes of the datagram.
    #[inline(always)]
    pub fn datagram_len(&self) -> usize {
        self.len() + self.message.payload_len
    }

    /// Write them to the end of `out`, without a checksum; where they begin.
    #[inline(always)]
    pub fn write(&self, out: &mut [u8]) -> Option<usize> {
        let at = out.len().checked_sub(self.len())?;
        let (udp, gtpu) = out.get_mut(at..)?.split_at_mut_checked(UdpHeader::LEN)?;
        let behind = self.message.len() + self.message.payload_len;
        UdpHeader::new(self.source_port, gtpu::PORT, behind)?.write(udp).ok()?;
        self.message.emit(gtpu).ok()?;
        Some(at)
    }
}

/// The UDP port that a flow is sent from (TS 29.281 §4.4.2.0): the one it came from, or one of its
/// own.
#[inline(always)]
pub(super) fn source_port(came_from: u16, flow_label: u32) -> u16 {
    match (came_from, flow_label) {
        (0, 0) => gtpu::PORT,
        (0, label) => PORT_FIRST | (label & PORT_MASK) as u16,
        (port, _) => port,
    }
}

/// A user's packet, of a session.
#[inline(always)]
pub(super) fn g_pdu(
    session: Session,
    direction: Direction,
    source_port: u16,
    payload_len: usize,
) -> Outgoing {
    let (teid, session) = (session.teid, session.container(direction));
    let message =
        gtpu::Repr { message_type: message::G_PDU, teid, sequence: None, session, payload_len };
    Outgoing { message, source_port }
}

/// What was known of a packet's headers is not true of those that it gets.
#[inline(always)]
pub(super) fn leave_headers(packet: &mut Packet) {
    packet.clear(PacketFlags::L4_CHECKSUM_GOOD);
    packet.l2_bytes = 0;
    packet.hash = 0;
}

/// What is in front of the user's packet goes, `at` bytes; others will come.
#[inline(always)]
pub(super) fn expose(packet: &mut Packet, at: usize) -> Result<(), LocalSidDrop> {
    leave_headers(packet);
    if !packet.pull(at) { Err(LocalSidDrop::Truncated) } else { Ok(()) }
}

/// Where the SRH of a message stands.
pub(super) fn srh_of(packet: &Packet) -> Result<usize, LocalSidDrop> {
    let mut routing = routing_headers(packet).flatten();
    let found = routing.find(|(_, kind, _)| *kind == ROUTING_TYPE);
    found.map(|(spot, ..)| spot.at).ok_or(LocalSidDrop::Message)
}

/// The packet was a message: what is left of it are its information elements. `srh` is where the
/// SRH stands.
pub(super) fn leave_elements(
    packet: &mut Packet,
    srh: usize,
    session: Session,
    source_port: u16,
) -> Result<Outgoing, LocalSidDrop> {
    let bytes = packet.bytes().get(srh..).unwrap_or_default();
    let (srh, _) = Srh::parse(bytes).map_err(|_| LocalSidDrop::Message)?;
    let kind = messages::kind_of(srh.header().tag()).ok_or(LocalSidDrop::Message)?;
    let found = messages::elements(&srh).ok_or(LocalSidDrop::Message)?;
    let (teid, sequence) = messages::tunnel_and_number(kind, session);
    let mut kept = [0; ELEMENTS_BYTES_MAX];
    let kept = kept.get_mut(..found.len()).ok_or(LocalSidDrop::Message)?;
    kept.copy_from_slice(found);
    let message =
        gtpu::Repr { message_type: kind, teid, sequence, session: None, payload_len: kept.len() };
    super::decapsulate::rebuild(packet, kept)?;
    Ok(Outgoing { message, source_port })
}

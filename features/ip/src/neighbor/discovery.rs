//! What solicitations and advertisements have in common: how they are read, and why they die
//! (RFC 4861 §7.1).

use quiver_core::{Context, Packet};
use quiver_wire::icmp6::nd::{self, NdBad};
use quiver_wire::icmp6::{Message, kind};
use quiver_wire::{EthernetHeader, Header, Icmp6Header, Ip6Header, MacAddress};

use crate::ip6::upper::Upper;

quiver_core::reasons! {
    /// What becomes of messages of neighbour discovery.
    pub enum NdDrop {
        /// Not a whole message, or an option that lies.
        BadMessage = "bad-message", "neighbour discovery that is cut short, has a code other than \
            0 or an option of wrong length";
        /// See [`NdBad`].
        HopLimit = "bad-hop-limit", "neighbour discovery with a hop limit below 255: it may come \
            from afar";
        /// See [`NdBad`].
        MacOfNobody = "mac-of-nobody", "neighbour discovery with a MAC address for the source ::";
        /// See [`NdBad`].
        TargetIsMulticast = "target-multicast", "neighbour discovery for a multicast target";
        /// See [`NdBad`].
        ProbeNotToSolicitedNode = "probe-to-unicast", "a solicitation from :: that is not sent to \
            a solicited-node group";
        /// See [`NdBad`].
        SolicitedToGroup = "solicited-to-group", "a solicited advertisement to a multicast group";
        /// Not a station's.
        BadMac = "bad-mac", "a MAC address that no station can have";
        /// From elsewhere.
        NotOnLink = "not-on-link", "neighbour discovery from or about an address that is on no \
            subnet of the interface";
        /// Somebody uses our address.
        Conflict = "address-conflict", "another station uses one of our addresses";
        /// A loop on layer 2.
        Own = "own", "neighbour discovery of the router's own came back";
        /// Gone.
        InterfaceDown = "interface-down", "the interface is down or gone";
        /// Cannot be.
        NoReply = "no-reply", "no room for the answer";
        /// Asked for others.
        NotOurs = info "not-ours", "solicitations for addresses of others";
        /// Without what it is for.
        NoMac = info "no-mac", "advertisements without a MAC address";
        /// Answered.
        Replied = info "replied", "advertisements sent";
        /// RFC 4861 §7.2.8.
        Proxied = info "proxied", "of these, for addresses that the router is a proxy for";
        /// Told.
        Learned = info "learned", "neighbours told to the control thread";
        /// Told before.
        KnownAlready = info "known-already", "neighbours that were told a moment ago";
        /// A storm.
        TooMany = info "too-many", "neighbours not told to the control thread: too many at a time";
    }
}

impl From<NdBad> for NdDrop {
    fn from(bad: NdBad) -> NdDrop {
        match bad {
            NdBad::HopLimit => NdDrop::HopLimit,
            NdBad::MacOfNobody => NdDrop::MacOfNobody,
            NdBad::SourceNotLinkLocal => NdDrop::NotOnLink,
            NdBad::TargetIsMulticast => NdDrop::TargetIsMulticast,
            NdBad::ProbeNotToSolicitedNode => NdDrop::ProbeNotToSolicitedNode,
            NdBad::SolicitedToGroup => NdDrop::SolicitedToGroup,
        }
    }
}

/// Read a packet that `ip6-icmp-input` has let pass, and classify it.
pub(super) fn read(packet: &Packet) -> Result<(Ip6Header, nd::Message<'_>), NdDrop> {
    let upper = Upper::of(packet).map_err(|_| NdDrop::BadMessage)?;
    let (source, destination) = (upper.header.source(), upper.header.destination());
    let bytes = upper.bytes(packet);
    let code = Icmp6Header::overlay(bytes).map_or(u8::MAX, |icmp| icmp.code);
    let message = Message::parse(source, destination, bytes).map_err(|_| NdDrop::BadMessage)?;
    let Message::Nd(message) = message else { return Err(NdDrop::BadMessage) };
    debug_assert!(
        code == 0,
        "the parser takes code 0 only, for types from {}",
        kind::ROUTER_SOLICITATION
    );
    message.check(source, destination, upper.header.hop_limit())?;
    Ok((upper.header, message))
}

/// The MAC address that the frame of a packet came from, if it had an Ethernet header.
pub(crate) fn frame_source(packet: &mut Packet) -> Option<MacAddress> {
    let l2_bytes = usize::from(packet.l2_bytes);
    if l2_bytes < EthernetHeader::LEN || !packet.push(l2_bytes) {
        return None;
    }
    let source = EthernetHeader::overlay(packet.bytes()).map(|ethernet| ethernet.source);
    let _ = packet.pull(l2_bytes);
    source
}

/// Put a frame of the router's own in the place of a packet's bytes, to leave where the packet came
/// in, with the tags of that interface.
pub(crate) fn become_frame(cx: &mut Context<'_>, packet: &mut Packet, frame: &[u8]) -> bool {
    packet.truncate(0, cx.buffers);
    packet.become_own();
    packet.l2_bytes = 0;
    packet.append(frame, cx.buffers) && cx.encapsulate(packet.rx, packet)
}

//! What stands behind the IPv6 header of a packet for the router itself.

use quiver_core::Packet;
use quiver_offload::checksum::add_to_sum;
use quiver_wire::checksum::Sum;
use quiver_wire::ip6::extension::{ExtensionBad, upper_layer};
use quiver_wire::{Header, Ip6Header, IpProtocol};

/// The upper layer of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upper {
    /// A copy of the IPv6 header.
    pub header: Ip6Header,
    /// Its protocol.
    pub protocol: IpProtocol,
    /// Where it begins, counted from the IPv6 header.
    pub offset: usize,
    /// Its bytes.
    pub length: usize,
    /// A fragment of something larger.
    pub is_fragment: bool,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpperBad {
    /// The packet is shorter than its header says.
    Truncated,
    /// The extension headers are wrong.
    Extension(ExtensionBad),
}

impl Upper {
    /// Walk to the upper layer.
    pub fn of(packet: &Packet) -> Result<Upper, UpperBad> {
        let (header, behind) = Ip6Header::split(packet.bytes()).ok_or(UpperBad::Truncated)?;
        let payload = usize::from(header.payload_length());
        if Ip6Header::LEN + payload > packet.length() {
            return Err(UpperBad::Truncated);
        }
        let behind = behind.get(..payload).unwrap_or(behind);
        let upper = upper_layer(header.next_header(), behind).map_err(UpperBad::Extension)?;
        Ok(Upper {
            header: *header,
            protocol: upper.protocol,
            offset: Ip6Header::LEN + upper.offset,
            length: payload.checked_sub(upper.offset).ok_or(UpperBad::Truncated)?,
            is_fragment: upper.fragment.is_some_and(|fragment| !fragment.is_atomic()),
        })
    }

    /// Is the checksum over its first `length` bytes and the pseudo header right?
    pub fn has_good_sum(&self, packet: &Packet, length: usize) -> bool {
        let (source, destination) = (self.header.source(), self.header.destination());
        let sum = Sum::pseudo6(source, destination, self.protocol, length as u32);
        add_to_sum(sum, packet, self.offset, length).is_some_and(Sum::is_good)
    }

    /// Its bytes in the first segment.
    pub fn bytes<'p>(&self, packet: &'p Packet) -> &'p [u8] {
        let bytes = packet.bytes().get(self.offset..).unwrap_or_default();
        bytes.get(..self.length).unwrap_or(bytes)
    }
}

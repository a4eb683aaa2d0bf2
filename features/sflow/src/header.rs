//! The first bytes of a packet, as a worker writes them down.

use quiver_core::Packet;

use crate::datagram::HeaderKind;

/// Bytes of a packet that may be written down.
pub(crate) const HEADER_BYTES_MAX: usize = 256;

/// The first bytes of a packet, and its length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstBytes {
    /// Bytes on the wire, without a checksum of the frame.
    pub frame_bytes: u32,
    /// Does it begin with an IP header?
    is_bare: bool,
    /// Bytes of `bytes` that it has.
    length: u16,
    bytes: [u8; HEADER_BYTES_MAX],
}

impl FirstBytes {
    /// At most `header_bytes` of a packet.
    pub fn of(packet: &Packet, is_bare: bool, header_bytes: usize) -> FirstBytes {
        let (packets, bytes_on_wire) = packet.on_wire();
        let mut bytes = [0; HEADER_BYTES_MAX];
        let length = packet.bytes().len().min(header_bytes).min(HEADER_BYTES_MAX);
        for (place, byte) in bytes.iter_mut().zip(packet.bytes().iter().take(length)) {
            *place = *byte;
        }
        FirstBytes {
            frame_bytes: (bytes_on_wire / packets.max(1)).min(u64::from(u32::MAX)) as u32,
            is_bare,
            length: length as u16,
            bytes,
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// What they begin with.
    pub fn kind(&self) -> HeaderKind {
        match self.bytes().first().map(|byte| byte >> 4) {
            _ if !self.is_bare => HeaderKind::Ethernet,
            Some(6) => HeaderKind::Ip6,
            _ => HeaderKind::Ip4,
        }
    }
}

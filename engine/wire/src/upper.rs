//! What the upper layer's header says of a packet that filters and translators ask for: protocol,
//! ports, TCP flags, ICMP type. Fragments after the first do not have it in their bytes; the
//! reassembly that kept them until the first was there notes it beside the packet in the form of
//! [`Upper::to_note`].

use crate::ip6::extension;
use crate::{Header, Icmp4Header, Icmp6Header, Ip4Header, Ip6Header, IpProtocol, TcpHeader};

/// Bytes of [`Upper::to_note`].
pub const UPPER_NOTE_BYTES: usize = 16;

/// The upper layer of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upper {
    /// Its protocol; behind extension headers, the one that they end with.
    pub protocol: IpProtocol,
    /// Source port, or the identifier of an ICMP echo; 0 for what has neither.
    pub source_port: u16,
    /// Destination port, or the identifier of an ICMP echo; 0 for what has neither.
    pub destination_port: u16,
    /// The flags of TCP, as they stand in the header.
    pub tcp_flags: u8,
    /// Type and code of ICMP.
    pub icmp: Option<(u8, u8)>,
}

/// Why an upper layer cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpperBad {
    /// A fragment other than the first.
    LaterFragment,
    /// The header is not whole: bytes are missing, or the extension headers are wrong.
    Truncated,
}

impl Upper {
    /// Of an IPv4 packet from its header on.
    ///
    /// # Errors
    /// The packet is truncated, or it is a fragment after the first.
    pub fn of_ip4(packet: &[u8]) -> Result<Upper, UpperBad> {
        let header = Ip4Header::overlay(packet).ok_or(UpperBad::Truncated)?;
        if header.fragment_offset() != 0 {
            return Err(UpperBad::LaterFragment);
        }
        let behind =
            packet.get(header.header_len().max(Ip4Header::LEN)..).ok_or(UpperBad::Truncated)?;
        Upper::of(header.protocol(), behind)
    }

    /// Of an IPv6 packet from its header on.
    ///
    /// # Errors
    /// The packet is truncated, or it is a fragment after the first.
    pub fn of_ip6(packet: &[u8]) -> Result<Upper, UpperBad> {
        let (header, behind) = Ip6Header::split(packet).ok_or(UpperBad::Truncated)?;
        let upper = extension::upper_layer(header.next_header(), behind)
            .map_err(|_| UpperBad::Truncated)?;
        if upper.fragment.is_some_and(|fragment| fragment.offset != 0) {
            return Err(UpperBad::LaterFragment);
        }
        Upper::of(upper.protocol, behind.get(upper.offset..).ok_or(UpperBad::Truncated)?)
    }

    /// Of the bytes of the upper layer.
    ///
    /// # Errors
    /// The upper layer's header is truncated.
    pub fn of(protocol: IpProtocol, bytes: &[u8]) -> Result<Upper, UpperBad> {
        let mut upper =
            Upper { protocol, source_port: 0, destination_port: 0, tcp_flags: 0, icmp: None };
        let icmp = match protocol {
            IpProtocol::ICMP => {
                let icmp = Icmp4Header::overlay(bytes).ok_or(UpperBad::Truncated)?;
                Some((icmp.kind, icmp.code, icmp.rest, matches!(icmp.kind, 0 | 8)))
            }
            IpProtocol::ICMP6 => {
                let icmp = Icmp6Header::overlay(bytes).ok_or(UpperBad::Truncated)?;
                Some((icmp.kind, icmp.code, icmp.rest, matches!(icmp.kind, 128 | 129)))
            }
            _ => None,
        };
        if let Some((kind, code, [high, low, ..], is_echo)) = icmp {
            upper.icmp = Some((kind, code));
            let identifier = if is_echo { u16::from_be_bytes([high, low]) } else { 0 };
            (upper.source_port, upper.destination_port) = (identifier, identifier);
        } else if protocol.has_ports() {
            let [a, b, c, d] = *bytes.first_chunk().ok_or(UpperBad::Truncated)?;
            upper.source_port = u16::from_be_bytes([a, b]);
            upper.destination_port = u16::from_be_bytes([c, d]);
            if protocol == IpProtocol::TCP {
                upper.tcp_flags = TcpHeader::overlay(bytes).ok_or(UpperBad::Truncated)?.flags().0;
            }
        }
        Ok(upper)
    }

    /// As bytes.
    pub fn to_note(&self) -> [u8; UPPER_NOTE_BYTES] {
        let mut note = [0; UPPER_NOTE_BYTES];
        let ([a, b], [c, d]) =
            (self.source_port.to_be_bytes(), self.destination_port.to_be_bytes());
        let (is_icmp, (kind, code)) = (self.icmp.is_some(), self.icmp.unwrap_or_default());
        note[..9].copy_from_slice(&[
            self.protocol.0,
            a,
            b,
            c,
            d,
            self.tcp_flags,
            is_icmp.into(),
            kind,
            code,
        ]);
        note
    }

    /// From those bytes.
    pub fn from_note(note: &[u8; UPPER_NOTE_BYTES]) -> Upper {
        let [protocol, a, b, c, d, tcp_flags, is_icmp, kind, code, ..] = *note;
        Upper {
            protocol: IpProtocol(protocol),
            source_port: u16::from_be_bytes([a, b]),
            destination_port: u16::from_be_bytes([c, d]),
            tcp_flags,
            icmp: (is_icmp != 0).then_some((kind, code)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn ports_flags_and_types_are_read() {
        let tcp = [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x12, 0, 0, 0, 0, 0, 0];
        let upper = Upper::of(IpProtocol::TCP, &tcp).unwrap();
        assert_eq!(
            (upper.source_port, upper.destination_port, upper.tcp_flags),
            (0x102, 0x304, 0x12)
        );
        let echo = [8, 0, 0, 0, 0x12, 0x34, 0, 1];
        let upper = Upper::of(IpProtocol::ICMP, &echo).unwrap();
        assert_eq!((upper.icmp, upper.source_port), (Some((8, 0)), 0x1234));
        assert_eq!(Upper::of(IpProtocol::TCP, &tcp[..16]), Err(UpperBad::Truncated));
        assert_eq!(Upper::of(IpProtocol::UDP, &[1, 2, 3]), Err(UpperBad::Truncated));
        assert_eq!(Upper::of(IpProtocol::ESP, &[]).map(|upper| upper.source_port), Ok(0));
    }

    #[test]
    fn a_later_fragment_has_no_upper_layer_to_read() {
        let mut packet = [0u8; 28];
        packet[0] = 0x45;
        packet[7] = 1;
        assert_eq!(Upper::of_ip4(&packet), Err(UpperBad::LaterFragment));
        let mut packet = [0u8; 56];
        (packet[0], packet[6], packet[40], packet[43]) = (0x60, 44, 17, 8);
        assert_eq!(Upper::of_ip6(&packet), Err(UpperBad::LaterFragment));
        packet[43] = 1;
        assert_eq!(Upper::of_ip6(&packet).map(|upper| upper.protocol), Ok(IpProtocol::UDP));
    }

    proptest! {
        #[test]
        fn a_note_says_what_was_noted(
            protocol: u8, source_port: u16, destination_port: u16, tcp_flags: u8, icmp: Option<(u8,
            u8)>,
        ) {
            let protocol = IpProtocol(protocol);
            let upper = Upper { protocol, source_port, destination_port, tcp_flags, icmp };
            prop_assert_eq!(Upper::from_note(&upper.to_note()), upper);
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = (Upper::of_ip4(&bytes), Upper::of_ip6(&bytes));
        }
    }
}

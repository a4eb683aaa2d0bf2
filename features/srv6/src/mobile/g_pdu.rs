//! Users' packets in GTP-U as most of them are: one header right behind the other, nothing behind
//! the packet, and no more said than the tunnel and the QoS flow. Headers are read and written as
//! words of 8 bytes.

use quiver_wire::checksum::Sum;
use quiver_wire::gtpu::{self, Direction, message};
use quiver_wire::{Header, IpProtocol, UdpHeader};

use super::args::Session;

/// Bytes of UDP, of GTP-U, and of what is behind that where there is a PDU session container.
const UDP: usize = UdpHeader::LEN;
const GTPU: usize = 8;
const CONTAINER: usize = 8;
/// Version 1, protocol type GTP, and the message; with the flag of extension headers.
const BARE: u64 = 0x30 << 8 | message::G_PDU as u64;
const EXTENDED: u64 = 0x34 << 8 | message::G_PDU as u64;
/// The word behind that: sequence number 16 bits, N-PDU number 8, type of the extension header 8,
/// its length 8, type of PDU 4, unused 4, unused 1, reflective QoS 1, QoS flow 6, type of the next
/// extension header 8.
const SAYS: u64 = 0xff << 32 | 0xff << 24 | 0xe0 << 16 | 0xff;
/// In those bits: a container that is the only extension header, of a packet downlink or uplink.
const ONE_CONTAINER: u64 = (gtpu::extension::PDU_SESSION_CONTAINER as u64) << 32 | 1 << 24;
const UPLINK_SHIFT: u32 = 20;
const REFLECTIVE_SHIFT: u32 = 14;
const FLOW_SHIFT: u32 = 8;

/// What is read of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GPdu {
    /// Args.Mob.Session.
    pub session: u64,
    /// Where the user's packet begins, counted from the IP header.
    pub at: usize,
}

/// Args.Mob.Session, of the tunnel and the word with the container. Only downlink packets can say
/// that QoS is reflective.
#[inline(always)]
fn session(teid: u64, container: u64) -> u64 {
    let reflective = container >> REFLECTIVE_SHIFT & !(container >> UPLINK_SHIFT) & 1;
    let flow = container >> FLOW_SHIFT & u64::from(gtpu::QFI_MAX);
    (flow << 2 | reflective << 1) << 32 | teid
}

/// The UDP port that a datagram came from that begins at `udp_at`.
#[inline(always)]
pub(super) fn source_port(bytes: &[u8], udp_at: usize) -> u16 {
    bytes
        .get(udp_at..)
        .and_then(|udp| udp.first_chunk())
        .map_or(0, |port| u16::from_be_bytes(*port))
}

/// Read one behind an IP header without options or extension headers, which ends at `udp_at`, and
/// whose addresses begin at `addresses_at`. `bytes` are all of the packet; `is_checked` is whether
/// UDP's checksum is known to be right. `None` for the slow path.
#[inline(always)]
pub(super) fn read(
    bytes: &[u8],
    addresses_at: usize,
    udp_at: usize,
    is_checked: bool,
) -> Option<GPdu> {
    let head: &[u8; UDP + GTPU + CONTAINER] = bytes.get(udp_at..)?.first_chunk()?;
    let [udp, gtpu, container] = head.as_chunks::<8>().0 else { return None };
    let [udp, gtpu, container] = [udp, gtpu, container].map(|word| u64::from_be_bytes(*word));
    let (to_port, length, checksum) = ((udp >> 32) as u16, (udp >> 16) as u16, udp as u16);
    let is_extended = (gtpu >> 48 == EXTENDED) & (container & SAYS == ONE_CONTAINER);
    let plain = (to_port == gtpu::PORT)
        & (udp_at + usize::from(length) == bytes.len())
        & (usize::from((gtpu >> 32) as u16) + UDP + GTPU == usize::from(length))
        & ((gtpu >> 48 == BARE) | is_extended);
    if !plain {
        return None;
    }
    if (checksum != 0) & !is_checked {
        // Addresses, UDP and what it carries stand one behind the other.
        let pseudo = Sum::new().word(u16::from(IpProtocol::UDP.0)).word(length);
        if !pseudo.bytes(bytes.get(addresses_at..)?).is_good() {
            return None;
        }
    }
    let teid = gtpu & 0xffff_ffff;
    Some(match is_extended {
        true => GPdu { session: session(teid, container), at: udp_at + UDP + GTPU + CONTAINER },
        false => GPdu { session: teid, at: udp_at + UDP + GTPU },
    })
}

/// A header of 8 bytes, or of 16 with a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GtpuWords {
    pub first: u64,
    pub container: Option<u64>,
}

impl GtpuWords {
    /// In front of a user's packet of so many bytes; Args.Mob.Session is `session`.
    #[inline(always)]
    pub fn new(session: u64, direction: Direction, payload: usize) -> GtpuWords {
        let Session { qfi, reflective, .. } = Session::from_bits(session);
        let first = |kind: u64, length: usize| {
            kind << 48 | (length as u64 & 0xffff) << 32 | session & 0xffff_ffff
        };
        if (qfi == 0) & !reflective {
            return GtpuWords { first: first(BARE, payload), container: None };
        }
        let kind = match direction {
            Direction::Downlink => u64::from(reflective) << REFLECTIVE_SHIFT,
            Direction::Uplink => 1 << UPLINK_SHIFT,
        };
        let container = ONE_CONTAINER | kind | u64::from(qfi) << FLOW_SHIFT;
        GtpuWords { first: first(EXTENDED, payload + CONTAINER), container: Some(container) }
    }

    /// How many bytes it has.
    #[inline(always)]
    pub fn len(self) -> usize {
        GTPU + if self.container.is_some() { CONTAINER } else { 0 }
    }
}

/// The UDP header in front of so many bytes, without a checksum.
#[inline(always)]
pub(super) fn udp(source_port: u16, payload: usize) -> u64 {
    let length = (payload + UDP) as u64 & 0xffff;
    u64::from(source_port) << 48 | u64::from(gtpu::PORT) << 32 | length << 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quiver_wire::gtpu::{PduSession, Repr};
    use quiver_wire::udp;
    use std::net::Ipv6Addr;

    const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 0, 1, 0, 0, 0, 1);
    const DESTINATION: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 0, 2, 0, 0, 0, 0xffff);

    /// Addresses, UDP and GTP-U in front of a payload.
    fn datagram(repr: &Repr, with_checksum: bool) -> Vec<u8> {
        let mut bytes = vec![0; 8 + repr.len() + repr.payload_len];
        UdpHeader::new(7, gtpu::PORT, bytes.len() - 8).unwrap().write(&mut bytes).unwrap();
        let at = repr.emit(&mut bytes[8..]).unwrap();
        (0..repr.payload_len).for_each(|place| bytes[8 + at + place] = place as u8);
        if with_checksum {
            udp::fill_checksum_over_ip6(SOURCE, DESTINATION, &mut bytes);
        }
        [&SOURCE.octets()[..], &DESTINATION.octets(), &bytes].concat()
    }

    fn session_of(repr: &Repr) -> u64 {
        let (qfi, reflective) = repr.session.map_or((0, false), |said| (said.qfi, said.reflective));
        Session { qfi, reflective, teid: repr.teid }.bits()
    }

    fn repr() -> impl Strategy<Value = Repr> {
        let said =
            (any::<bool>(), 0u8..64, any::<bool>()).prop_map(|(up, qfi, reflective)| PduSession {
                direction: if up { Direction::Uplink } else { Direction::Downlink },
                qfi,
                reflective: reflective && !up,
            });
        (any::<u32>(), proptest::option::of(said), 8usize..90).prop_map(
            |(teid, session, payload_len)| Repr {
                message_type: message::G_PDU,
                teid,
                sequence: None,
                session,
                payload_len,
            },
        )
    }

    proptest! {
        #[test]
        fn a_users_packet_is_read_as_step_by_step(repr in repr(), with_checksum: bool) {
            let bytes = datagram(&repr, with_checksum);
            let read = read(&bytes, 0, 32, false);
            prop_assert_eq!(read, Some(GPdu { session: session_of(&repr), at: 40 + repr.len() }));
            prop_assert_eq!(source_port(&bytes, 32), 7);
        }

        #[test]
        fn what_is_changed_is_read_as_step_by_step_or_not_at_all(
            repr in repr(), place in 34usize..56, bit in 0u8..8, is_checked: bool,
            with_checksum: bool
        ) {
            let mut bytes = datagram(&repr, with_checksum);
            bytes[place] ^= 1 << bit;
            let Some(read) = read(&bytes, 0, 32, is_checked) else { return Ok(()) };
            let (parsed, len) = Repr::parse(&bytes[40..], bytes.len() - 40).unwrap();
            prop_assert!(is_checked || !with_checksum || place == 38 || place == 39);
            prop_assert_eq!(
                (parsed.message_type, parsed.payload_len),
                (message::G_PDU, bytes.len() - 40 - len)
            );
            prop_assert_eq!(read, GPdu { session: session_of(&parsed), at: 40 + len });
        }

        #[test]
        fn a_header_is_written_as_step_by_step(repr in repr()) {
            let says = repr.session.filter(|said| said.qfi != 0 || said.reflective);
            let repr = Repr { session: says, ..repr };
            let direction = says.map_or(Direction::Downlink, |said| said.direction);
            let header = GtpuWords::new(session_of(&repr), direction, repr.payload_len);
            let mut expected = vec![0; repr.len()];
            repr.emit(&mut expected).unwrap();
            let words = [Some(header.first), header.container].into_iter().flatten();
            prop_assert_eq!(words.flat_map(u64::to_be_bytes).collect::<Vec<_>>(), expected);
            prop_assert_eq!(header.len(), repr.len());
            let mut datagram = [0; 8];
            UdpHeader::new(9, gtpu::PORT, repr.len()).unwrap().write(&mut datagram).unwrap();
            prop_assert_eq!(super::udp(9, repr.len()).to_be_bytes(), datagram);
        }
    }
}

//! What a fragment's headers say, checked alone (RFC 791 §3.2, RFC 8200 §4.5): which packet it
//! belongs to, where it lies in it, and what must be told to its sender.

use quiver_core::Packet;
use quiver_core::memory::packet::handover::Handover;
use quiver_forwarding::requests::{IcmpErrorRequest, ReassemblyRequest};
use quiver_wire::ip6::extension::{Extension, Walk};
use quiver_wire::upper::{Upper, UpperBad};
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, icmp6};

use crate::key::Key;
use crate::reasons::FragmentEnd;

/// Bytes that a packet can have behind its header.
const PACKET_BYTES_MAX: u32 = 65_535;
/// Bytes of a TCP header that must be in the first fragment: the flags with them (RFC 1858 §3.1).
const TCP_BYTES_MIN: u32 = 16;
/// ICMPv6 parameter problem code 3 (RFC 7112 §5).
const HEADER_CHAIN_CUT: u8 = 3;
/// Where the payload length stands in an IPv6 header.
const PAYLOAD_LENGTH_PLACE: u16 = 4;
/// Where the next header stands in an IPv6 header.
const NEXT_HEADER_PLACE: u16 = 6;
/// Bytes of a fragment header.
pub(crate) const FRAGMENT_HEADER_LEN: usize = 8;

/// A fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// Which packet's.
    pub key: Key,
    /// Where its data begins in that packet, bytes behind the header that is not fragmented.
    pub start: u32,
    /// Where its data ends.
    pub end: u32,
    /// It is not the last.
    pub more: bool,
    /// Bytes in front of its data.
    pub header_bytes: u16,
    /// IPv6: where the number of the fragment header stands.
    pub next_header_place: u16,
    /// IPv6: what is behind the fragment header.
    pub next_header: u8,
    /// Congestion notification, 2 bits.
    pub ecn: u8,
}

impl Fragment {
    /// Bytes of data.
    pub fn length(&self) -> u32 {
        self.end - self.start
    }

    /// Bytes from the IP header on.
    pub fn packet_bytes(&self) -> usize {
        usize::from(self.header_bytes) + self.length() as usize
    }

    /// Is it a packet of its own (RFC 6946)?
    pub fn is_atomic(&self) -> bool {
        self.start == 0 && !self.more
    }
}

/// Why a fragment is refused, and the error that its sender gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub why: FragmentEnd,
    pub told: Option<IcmpErrorRequest>,
}

impl From<FragmentEnd> for Bad {
    fn from(why: FragmentEnd) -> Bad {
        Bad { why, told: None }
    }
}

fn problem(why: FragmentEnd, code: u8, pointer: u16) -> Bad {
    let kind = icmp6::kind::PARAMETER_PROBLEM;
    Bad { why, told: Some(IcmpErrorRequest { kind, code, detail: pointer }) }
}

/// Read an IPv4 fragment.
pub(crate) fn of_ip4(packet: &Packet, request: ReassemblyRequest) -> Result<Fragment, Bad> {
    let header = Ip4Header::overlay(packet.bytes()).ok_or(FragmentEnd::Truncated)?;
    let (header_len, total) = (header.header_len(), usize::from(header.total_length()));
    if header_len < Ip4Header::LEN
        || header_len > packet.segment_length()
        || total > packet.length()
    {
        return Err(FragmentEnd::Truncated.into());
    }
    let length = total.checked_sub(header_len).ok_or(FragmentEnd::Truncated)? as u32;
    let start = u32::from(header.fragment_offset()) * 8;
    let end = start + length;
    check_span(length, header.more_fragments()).map_err(Bad::from)?;
    if end + header_len as u32 > PACKET_BYTES_MAX {
        return Err(FragmentEnd::TooLong.into());
    }
    let splits_header = start == 0 && header.more_fragments() && length < TCP_BYTES_MIN;
    if header.protocol() == IpProtocol::TCP && (splits_header || start == 8) {
        return Err(FragmentEnd::Tiny.into());
    }
    let key = Key {
        source: header.source_bits().into(),
        destination: header.destination_bits().into(),
        identification: header.identification().into(),
        scope: request.to_index(),
        protocol: header.protocol().0,
    };
    Ok(Fragment {
        key,
        start,
        end,
        more: header.more_fragments(),
        header_bytes: header_len as u16,
        next_header_place: 0,
        next_header: 0,
        ecn: header.traffic_class & 3,
    })
}

/// Read an IPv6 fragment.
pub(crate) fn of_ip6(packet: &Packet, request: ReassemblyRequest) -> Result<Fragment, Bad> {
    let (header, behind) = Ip6Header::split(packet.bytes()).ok_or(FragmentEnd::Truncated)?;
    let payload = usize::from(header.payload_length());
    if Ip6Header::LEN + payload > packet.length() {
        return Err(FragmentEnd::Truncated.into());
    }
    let behind = behind.get(..payload).unwrap_or(behind);
    let (extension, next_header_place) = fragment_header(header, behind)?;
    let fragment = extension.fragment().ok_or(FragmentEnd::BadExtension)?;
    let header_bytes = Ip6Header::LEN + extension.offset + FRAGMENT_HEADER_LEN;
    let length = (Ip6Header::LEN + payload - header_bytes) as u32;
    let start = u32::from(fragment.offset) * 8;
    let end = start + length;
    check_span(length, fragment.more).map_err(|why| match why {
        FragmentEnd::OddLength => problem(why, 0, PAYLOAD_LENGTH_PLACE),
        _ => why.into(),
    })?;
    if extension.offset as u32 + end > PACKET_BYTES_MAX {
        return Err(problem(FragmentEnd::TooLong, 0, header_bytes as u16 - 6));
    }
    if start == 0 && !has_whole_chain(packet) {
        return Err(problem(FragmentEnd::HeaderChain, HEADER_CHAIN_CUT, 0));
    }
    let key = Key {
        source: header.source_bits(),
        destination: header.destination_bits(),
        identification: fragment.identification,
        scope: request.to_index(),
        protocol: 0,
    };
    Ok(Fragment {
        key,
        start,
        end,
        more: fragment.more,
        header_bytes: header_bytes as u16,
        next_header_place,
        next_header: fragment.next_header.0,
        ecn: header.traffic_class() & 3,
    })
}

/// The first fragment header, and where the number stands that announces it.
fn fragment_header<'p>(
    header: &Ip6Header,
    behind: &'p [u8],
) -> Result<(Extension<'p>, u16), FragmentEnd> {
    let mut place = NEXT_HEADER_PLACE;
    for extension in Walk::new(header.next_header(), behind) {
        let extension = extension.map_err(|_| FragmentEnd::BadExtension)?;
        if extension.kind == IpProtocol::FRAGMENT {
            return Ok((extension, place));
        }
        place = (Ip6Header::LEN + extension.offset) as u16;
    }
    Err(FragmentEnd::BadExtension)
}

/// Is everything up to the upper layer's header in this first fragment (RFC 7112)?
fn has_whole_chain(packet: &Packet) -> bool {
    match Upper::of_ip6(packet.bytes()) {
        Ok(_) => true,
        // A fragment header inside of a fragment: the receiver of the whole packet looks at it.
        Err(UpperBad::LaterFragment) => true,
        Err(UpperBad::Truncated) => false,
    }
}

fn check_span(length: u32, more: bool) -> Result<(), FragmentEnd> {
    if length == 0 {
        return Err(FragmentEnd::Empty);
    }
    if more && !length.is_multiple_of(8) {
        return Err(FragmentEnd::OddLength);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use quiver_core::memory::buffer::{BufferCache, BufferPool};
    use quiver_core::memory::mapping::PageSize;

    const REQUEST: ReassemblyRequest = ReassemblyRequest { is_local: false, scope: 1 };

    use super::*;

    fn with<R>(bytes: &[u8], look: impl FnOnce(&Packet) -> R) -> R {
        let pool = BufferPool::new(128, 2048, PageSize::Small).expect("pool");
        let mut cache: BufferCache = pool.cache();
        let mut packet = cache.packet().expect("a buffer");
        assert!(packet.append(bytes, &mut cache));
        let result = look(&packet);
        cache.free(packet);
        result
    }

    fn ip4(offset_bytes: u16, more: bool, protocol: IpProtocol, payload: usize) -> Vec<u8> {
        let (a, b) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let repr = quiver_wire::ip4::Repr {
            identification: 7,
            more_fragments: more,
            fragment_offset: offset_bytes / 8,
            ..quiver_wire::ip4::Repr::new(a, b, protocol, payload)
        };
        let mut bytes = vec![0; 20 + payload];
        repr.emit(&mut bytes).expect("a header");
        bytes
    }

    fn read4(
        offset_bytes: u16,
        more: bool,
        protocol: IpProtocol,
        payload: usize,
    ) -> Result<Fragment, Bad> {
        with(&ip4(offset_bytes, more, protocol, payload), |packet| of_ip4(packet, REQUEST))
    }

    /// A fragment header behind `before` bytes of destination options, and `payload` bytes of UDP.
    fn ip6(before: usize, offset_bytes: u16, more: bool, payload: usize) -> Vec<u8> {
        let first = if before > 0 { IpProtocol::DESTINATION_OPTIONS } else { IpProtocol::FRAGMENT };
        let (a, b) =
            ("2001:db8::1".parse().expect("address"), "2001:db8::2".parse().expect("address"));
        let header = Ip6Header::new(a, b, first, 64, (before + 8 + payload) as u16);
        let mut bytes = vec![0; 40 + before + 8 + payload];
        header.write(&mut bytes).expect("room");
        if before > 0 {
            bytes[40] = IpProtocol::FRAGMENT.0;
            bytes[41] = (before / 8 - 1) as u8;
        }
        let at = 40 + before;
        bytes[at] = IpProtocol::UDP.0;
        bytes[at + 2..at + 4].copy_from_slice(&(offset_bytes | u16::from(more)).to_be_bytes());
        bytes[at + 7] = 9;
        bytes
    }

    fn read6(bytes: &[u8]) -> Result<Fragment, Bad> {
        with(bytes, |packet| of_ip6(packet, REQUEST))
    }

    fn pointer(bad: Result<Fragment, Bad>) -> Option<(FragmentEnd, u8, u16)> {
        let bad = bad.err()?;
        bad.told.map(|told| (bad.why, told.code, told.detail))
    }

    #[test]
    fn a_fragment_says_where_it_lies() {
        let piece = read4(1480, true, IpProtocol::UDP, 64).expect("a fragment");
        assert_eq!(
            (piece.start, piece.end, piece.more, piece.header_bytes),
            (1480, 1544, true, 20)
        );
        let piece = read6(&ip6(16, 1232, false, 5)).expect("a fragment");
        assert_eq!((piece.start, piece.end, piece.more), (1232, 1237, false));
        assert_eq!((piece.header_bytes, piece.next_header_place, piece.next_header), (64, 40, 17));
        assert_eq!(piece.key.identification, 9);
    }

    #[test]
    fn a_fragment_without_data_is_refused() {
        assert_eq!(read4(8, false, IpProtocol::UDP, 0), Err(FragmentEnd::Empty.into()));
        assert_eq!(read6(&ip6(0, 8, true, 0)), Err(FragmentEnd::Empty.into()));
    }

    #[test]
    fn only_the_last_fragment_may_have_an_odd_length() {
        assert_eq!(read4(0, true, IpProtocol::UDP, 12), Err(FragmentEnd::OddLength.into()));
        assert!(read4(8, false, IpProtocol::UDP, 1).is_ok());
        assert_eq!(pointer(read6(&ip6(0, 0, true, 12))), Some((FragmentEnd::OddLength, 0, 4)));
        assert!(read6(&ip6(0, 8, false, 1)).is_ok());
    }

    #[test]
    fn a_fragment_that_ends_beyond_65535_is_refused() {
        assert_eq!(read4(65_528, false, IpProtocol::UDP, 8), Err(FragmentEnd::TooLong.into()));
        assert!(read4(65_504, false, IpProtocol::UDP, 11).is_ok());
        assert_eq!(read4(65_504, false, IpProtocol::UDP, 12), Err(FragmentEnd::TooLong.into()));
        assert_eq!(pointer(read6(&ip6(0, 65_528, false, 8))), Some((FragmentEnd::TooLong, 0, 42)));
        assert!(read6(&ip6(0, 65_528, false, 7)).is_ok());
        assert_eq!(pointer(read6(&ip6(8, 65_528, false, 7))), Some((FragmentEnd::TooLong, 0, 50)));
    }

    #[test]
    fn a_tcp_header_is_not_cut_in_two() {
        assert_eq!(read4(0, true, IpProtocol::TCP, 8), Err(FragmentEnd::Tiny.into()));
        assert_eq!(read4(8, true, IpProtocol::TCP, 64), Err(FragmentEnd::Tiny.into()));
        assert!(read4(0, true, IpProtocol::TCP, 16).is_ok());
        assert!(read4(0, true, IpProtocol::UDP, 8).is_ok());
    }

    #[test]
    fn a_first_ip6_fragment_has_all_headers() {
        assert_eq!(pointer(read6(&ip6(0, 0, false, 3))), Some((FragmentEnd::HeaderChain, 3, 0)));
        assert!(read6(&ip6(0, 0, true, 8)).is_ok());
        let mut cut = ip6(0, 0, true, 8);
        cut[40] = IpProtocol::DESTINATION_OPTIONS.0;
        (cut[48], cut[49]) = (17, 1);
        assert_eq!(pointer(read6(&cut)), Some((FragmentEnd::HeaderChain, 3, 0)));
    }

    #[test]
    fn headers_that_are_not_whole_are_refused() {
        let whole = ip4(0, true, IpProtocol::UDP, 64);
        for length in [0, 10, 19, 20, 83] {
            assert_eq!(
                with(&whole[..length], |p| of_ip4(p, REQUEST)),
                Err(FragmentEnd::Truncated.into())
            );
        }
        let whole = ip6(8, 0, true, 64);
        for length in [0, 39, 40, 50, 119] {
            assert_eq!(read6(&whole[..length]), Err(FragmentEnd::Truncated.into()));
        }
        let mut cut = ip6(8, 0, true, 8);
        cut[41] = 200;
        assert_eq!(read6(&cut), Err(FragmentEnd::BadExtension.into()));
        cut.truncate(52);
        cut[5] = 12;
        cut[41] = 0;
        assert_eq!(read6(&cut), Err(FragmentEnd::BadExtension.into()));
    }
}

//! What sessions look at in a packet beside what lists do.

use quiver_access_lists::Keyed;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily};
use quiver_wire::ip6::extension;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use crate::named_set::InSets;

/// A family whose packets are filtered.
pub(crate) trait Filtered: Keyed + IpFamily<Address: InSets> {
    /// The family's ICMP.
    const ICMP: IpProtocol;

    /// Of a type of ICMP queries: the type of the request, and whether it is the answer.
    fn query(kind: u8) -> Option<(u8, bool)>;

    /// Does an ICMP message of this type quote the packet that it is about?
    fn is_error(kind: u8) -> bool;

    /// The upper layer's protocol and bytes of the packet that `bytes` begin with; none of a
    /// fragment after the first.
    fn behind(bytes: &[u8]) -> Option<(IpProtocol, &[u8])>;
}

impl Filtered for Ip4 {
    const ICMP: IpProtocol = IpProtocol::ICMP;

    /// Echo, timestamp, information and address mask (RFC 792, RFC 950).
    fn query(kind: u8) -> Option<(u8, bool)> {
        match kind {
            8 | 13 | 15 | 17 => Some((kind, false)),
            0 => Some((8, true)),
            14 | 16 | 18 => Some((kind - 1, true)),
            _ => None,
        }
    }

    /// Destination unreachable, time exceeded, parameter problem (RFC 792).
    fn is_error(kind: u8) -> bool {
        matches!(kind, 3 | 11 | 12)
    }

    fn behind(bytes: &[u8]) -> Option<(IpProtocol, &[u8])> {
        let header = Ip4Header::overlay(bytes).filter(|header| header.fragment_offset() == 0)?;
        let behind = bytes.get(header.header_len().max(Ip4Header::LEN)..)?;
        Some((header.protocol(), behind))
    }
}

impl Filtered for Ip6 {
    const ICMP: IpProtocol = IpProtocol::ICMP6;

    /// Echo (RFC 4443 §4).
    fn query(kind: u8) -> Option<(u8, bool)> {
        matches!(kind, 128 | 129).then_some((128, kind == 129))
    }

    /// Destination unreachable, packet too big, time exceeded, parameter problem (RFC 4443 §3).
    fn is_error(kind: u8) -> bool {
        matches!(kind, 1..=4)
    }

    fn behind(bytes: &[u8]) -> Option<(IpProtocol, &[u8])> {
        let (header, behind) = Ip6Header::split(bytes)?;
        let upper = extension::upper_layer(header.next_header(), behind).ok()?;
        let is_later = upper.fragment.is_some_and(|fragment| fragment.offset != 0);
        let behind = behind.get(upper.offset..)?;
        (!is_later).then_some((upper.protocol, behind))
    }
}

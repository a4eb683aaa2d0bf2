//! A packet of the headend's own as an ICMPv6 error quotes it: whose segments it has, and what is
//! inside (RFC 2473 §8).

use std::net::Ipv6Addr;

use quiver_core::worker::event::{EventReader, EventWriter};
use quiver_encap::{EncapEntry, EntryView};
use quiver_wire::ip6::extension::{Walk, upper_layer};
use quiver_wire::srh::{ROUTING_TYPE, SEGMENT_BYTES, Srh};
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::stack::{SRH_PLACE, has_srh};

/// Odd; a list's digest is multiplied by it for each word.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Bits of the locator blocks that containers of C-SIDs are looked for with, and of steps in them.
const BLOCKS: [u32; 7] = [16, 24, 32, 40, 48, 56, 64];
const STEP_BITS: usize = 8;

/// The segments that a header has, as far as they never change on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segments {
    /// The destination: the active segment.
    pub destination: Ipv6Addr,
    /// Of the SRH's list, when there is one: its last segment, and a digest of all.
    pub list: Option<(Ipv6Addr, u64)>,
}

/// An outer header and what it stands around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quote {
    /// The source of the outer header.
    pub source: Ipv6Addr,
    pub segments: Segments,
    /// Bytes of the headers around, without that of a fragment.
    pub around: u16,
    /// Bytes of the packet, as its header says.
    pub length: u16,
    /// The protocol inside.
    pub protocol: IpProtocol,
    /// Where what is inside begins.
    pub at: usize,
}

fn digest(list: &[u8]) -> u64 {
    let words = list.as_chunks::<8>().0.iter().map(|word| u64::from_be_bytes(*word));
    words.fold(list.len() as u64, |sum, word| (sum ^ word).wrapping_mul(SPREAD).rotate_left(29))
}

/// What is kept of a list.
fn of_list(list: &[u8]) -> Option<(Ipv6Addr, u64)> {
    let last: &[u8; SEGMENT_BYTES] = list.first_chunk()?;
    Some((Ipv6Addr::from(*last), digest(list)))
}

/// Is `now` the container of C-SIDs `sent` after some steps, each of which moved what follows up to
/// the block (RFC 9800 §4.1)?
pub(super) fn is_moved_up(sent: Ipv6Addr, now: Ipv6Addr) -> bool {
    let (sent, now) = (sent.to_bits(), now.to_bits());
    BLOCKS.into_iter().any(|block| {
        let mask = !(u128::MAX >> block);
        let mut steps = (STEP_BITS as u32..128 - block).step_by(STEP_BITS);
        (sent ^ now) & mask == 0
            && steps.any(|bits| (sent & mask) | ((sent << bits) & !mask) == now)
    })
}

impl Segments {
    /// The address that the policy's last segment has, or had before steps along a container.
    pub fn last(&self) -> Ipv6Addr {
        self.list.map_or(self.destination, |(last, _)| last)
    }

    /// Can a packet with this entry's header in front have these segments on its way?
    pub fn are_of(&self, entry: &EncapEntry) -> bool {
        let header = entry.header();
        let Some(first) = Ip6Header::overlay(header).map(Ip6Header::destination) else {
            return false;
        };
        let behind = header.get(SRH_PLACE..).unwrap_or_default();
        let own = Srh::parse(behind).ok().filter(|_| has_srh(EntryView(entry)));
        let list = own.and_then(|(srh, _)| of_list(srh.list()));
        match self.list {
            Some(_) => self.list == list,
            // There never was an SRH, or who sent it to its last segment has taken it off (RFC 8986
            // §4.16.1).
            None => {
                let last = list.map_or(first, |(last, _)| last);
                last == self.destination || is_moved_up(last, self.destination)
            }
        }
    }
}

impl Quote {
    /// Of the bytes that an error quotes: an IPv6 packet with another packet, or a frame, inside.
    pub fn of(bytes: &[u8]) -> Option<Quote> {
        let (header, behind) = Ip6Header::split(bytes)?;
        let upper = upper_layer(header.next_header(), behind).ok()?;
        if upper.fragment.is_some_and(|fragment| fragment.offset != 0) {
            return None;
        }
        // Who puts segments in on the way puts them in front.
        let routing = Walk::new(header.next_header(), behind)
            .flatten()
            .filter(|extension| extension.routing().is_some_and(|(kind, _)| kind == ROUTING_TYPE));
        let list = match routing.last() {
            Some(extension) => Some(of_list(Srh::parse(extension.bytes).ok()?.0.list())?),
            None => None,
        };
        let at = Ip6Header::LEN + upper.offset;
        let fragment_bytes = if upper.fragment.is_some() { 8 } else { 0 };
        Some(Quote {
            source: header.source(),
            segments: Segments { destination: header.destination(), list },
            around: u16::try_from(at - fragment_bytes).ok()?,
            length: header.payload_length().saturating_add(Ip6Header::LEN as u16),
            protocol: upper.protocol,
            at,
        })
    }
}

/// Event for the control thread: the MTU of a link on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathMtuReport {
    /// The source of the outer header.
    pub source: Ipv6Addr,
    pub segments: Segments,
    /// Bytes of the headers around, as they were at the link.
    pub around: u16,
    /// What the link takes.
    pub mtu_bytes: u16,
}

impl PathMtuReport {
    /// The longest packet that an entry with a header of `row_bytes` may send. What routers on the
    /// way have taken off is room for more.
    pub fn longest(&self, row_bytes: usize) -> u16 {
        let gone = row_bytes.saturating_sub(self.around.into());
        u16::try_from(usize::from(self.mtu_bytes) + gone).unwrap_or(u16::MAX)
    }

    /// For an event.
    pub fn write(&self) -> EventWriter {
        let mut out = EventWriter::new();
        let (last, digest) = self.segments.list.unwrap_or((Ipv6Addr::UNSPECIFIED, 0));
        out.put(&self.source.octets());
        out.put(&self.segments.destination.octets());
        out.put(&last.octets());
        out.put(&digest.to_be_bytes());
        out.put(&[u8::from(self.segments.list.is_some())]);
        out.put(&self.around.to_be_bytes());
        out.put(&self.mtu_bytes.to_be_bytes());
        out
    }

    /// Of an event.
    pub fn read(bytes: &[u8]) -> Option<PathMtuReport> {
        let mut bytes = EventReader(bytes);
        let (source, destination) = (bytes.take::<16>()?.into(), bytes.take::<16>()?.into());
        let (last, digest) = (bytes.take::<16>()?.into(), u64::from_be_bytes(bytes.take()?));
        let [has_list] = bytes.take()?;
        let list = (has_list != 0).then_some((last, digest));
        let (around, mtu_bytes) = (bytes.half()?, bytes.half()?);
        Some(PathMtuReport { source, segments: Segments { destination, list }, around, mtu_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_container_is_known_again_after_steps_along_it() {
        let sent: Ipv6Addr = "fcbb:bbbb:1:2:3:4::".parse().unwrap();
        for now in ["fcbb:bbbb:2:3:4::", "fcbb:bbbb:3:4::", "fcbb:bbbb:4::"] {
            assert!(is_moved_up(sent, now.parse().unwrap()), "{now}");
        }
        for other in ["fcbb:bbbb:3:2::", "fcbc:bbbb:2:3:4::", "fcbb:bbbb:5::"] {
            assert!(!is_moved_up(sent, other.parse().unwrap()), "{other}");
        }
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let destination = "fc00::1".parse().unwrap();
        for list in [None, Some(("fc00::2".parse().unwrap(), 77))] {
            let segments = Segments { destination, list };
            let report = PathMtuReport {
                source: Ipv6Addr::LOCALHOST,
                segments,
                around: 80,
                mtu_bytes: 1400,
            };
            assert_eq!(PathMtuReport::read(report.write().bytes()), Some(report));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            mut bytes in prop::collection::vec(any::<u8>(), 0..160),
            next in prop_oneof![Just(43u8), Just(44), Just(4), Just(41)],
            kind in prop_oneof![Just(4u8), any::<u8>()],
        ) {
            for (place, value) in [(6, next), (42, kind)] {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = value;
                }
            }
            if let Some(quote) = Quote::of(&bytes) {
                prop_assert!(quote.at <= bytes.len() && usize::from(quote.around) <= quote.at);
            }
        }
    }
}

//! IPv6 extension headers (RFC 8200 §4; AH: RFC 4302 §2), walked with limits.
//!
//! ```text
//! 0    1    2                          0    1    2       4               8
//! +----+----+------------ ...          +----+----+-------+---------------+
//! |next|len | options, 8 × len + 8     |next| 0  |offs.|M| identification|
//! +----+----+------------ ...          +----+----+-------+---------------+
//! ```

use core::fmt;

use crate::IpProtocol;

/// More extension headers than this in one packet are refused: RFC 8200 §4.1 has use for six.
pub const EXTENSION_HEADERS_MAX: usize = 8;

/// What a fragment header says (RFC 8200 §4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where the fragment belongs, in units of 8 bytes.
    pub offset: u16,
    /// This is not the last fragment.
    pub more: bool,
    /// What the fragments of one packet have in common.
    pub identification: u32,
    /// The next header as the fragment header has it: the same in all fragments of a packet.
    pub next_header: IpProtocol,
}

impl Fragment {
    /// The whole packet in one fragment (RFC 6946).
    pub const fn is_atomic(&self) -> bool {
        self.offset == 0 && !self.more
    }
}

/// One extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// Which one.
    pub kind: IpProtocol,
    /// Where it starts, counted from the end of the fixed header.
    pub offset: usize,
    /// What it says comes next.
    pub next_header: IpProtocol,
    /// All of its bytes.
    pub bytes: &'a [u8],
}

impl<'a> Extension<'a> {
    /// The options of a hop-by-hop or destination header; none for the others.
    pub fn options(&self) -> Options<'a> {
        let has_options =
            matches!(self.kind, IpProtocol::HOP_BY_HOP | IpProtocol::DESTINATION_OPTIONS);
        let bytes = if has_options { self.bytes.get(2..).unwrap_or_default() } else { &[] };
        Options { bytes, offset: 0 }
    }

    /// The fields of a fragment header.
    pub fn fragment(&self) -> Option<Fragment> {
        let [next, _, a, b, c, d, e, f] = *self.bytes.first_chunk::<8>()?;
        let offset_more = u16::from_be_bytes([a, b]);
        (self.kind == IpProtocol::FRAGMENT).then_some(Fragment {
            offset: offset_more >> 3,
            more: offset_more & 1 != 0,
            identification: u32::from_be_bytes([c, d, e, f]),
            next_header: IpProtocol(next),
        })
    }

    /// Routing type and segments left of a routing header (RFC 8200 §4.4).
    pub fn routing(&self) -> Option<(u8, u8)> {
        match (self.kind, self.bytes) {
            (IpProtocol::ROUTING, [_, _, kind, left, ..]) => Some((*kind, *left)),
            _ => None,
        }
    }
}

/// Why the walk stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtensionBad {
    /// An extension header runs beyond the bytes there.
    Truncated,
    /// More than [`EXTENSION_HEADERS_MAX`].
    TooMany,
    /// A hop-by-hop header that is not the first (RFC 8200 §4.1).
    HopByHopNotFirst,
}

impl fmt::Display for ExtensionBad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExtensionBad::Truncated => "IPv6 extension header beyond the packet",
            ExtensionBad::TooMany => "more than 8 IPv6 extension headers",
            ExtensionBad::HopByHopNotFirst => "IPv6 hop-by-hop header that is not the first",
        })
    }
}

/// Walks the extension headers. Ends before the upper layer, after the first error, and after a
/// fragment header that is not the first fragment's, for what follows is then in the middle of
/// something.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    bytes: &'a [u8],
    next: IpProtocol,
    offset: usize,
    count: usize,
    ended: bool,
}

impl<'a> Walk<'a> {
    /// Walks the bytes behind the fixed header, whose next-header field is `next`.
    #[inline]
    pub const fn new(next: IpProtocol, bytes: &'a [u8]) -> Self {
        Self { bytes, next, offset: 0, count: 0, ended: false }
    }

    fn step(&mut self) -> Result<Extension<'a>, ExtensionBad> {
        if self.next == IpProtocol::HOP_BY_HOP && self.count > 0 {
            return Err(ExtensionBad::HopByHopNotFirst);
        }
        if self.count == EXTENSION_HEADERS_MAX {
            return Err(ExtensionBad::TooMany);
        }
        let rest = self.bytes.get(self.offset..).unwrap_or_default();
        let [next, len, ..] = *rest else {
            return Err(ExtensionBad::Truncated);
        };
        let len = match self.next {
            IpProtocol::FRAGMENT => 8,
            // RFC 4302 §2.2: in units of 4 bytes, minus 2.
            IpProtocol::AUTHENTICATION => (usize::from(len) + 2) * 4,
            _ => (usize::from(len) + 1) * 8,
        };
        let bytes = rest.get(..len).ok_or(ExtensionBad::Truncated)?;
        let next_header = IpProtocol(next);
        let extension = Extension { kind: self.next, offset: self.offset, next_header, bytes };
        self.offset += len;
        self.count += 1;
        self.next = next_header;
        self.ended = extension.fragment().is_some_and(|fragment| fragment.offset != 0);
        Ok(extension)
    }
}

/// Whether this is one of the extension headers that [`Walk`] steps over.
#[inline]
pub const fn is_walked(kind: IpProtocol) -> bool {
    matches!(
        kind,
        IpProtocol::HOP_BY_HOP
            | IpProtocol::ROUTING
            | IpProtocol::FRAGMENT
            | IpProtocol::DESTINATION_OPTIONS
            | IpProtocol::AUTHENTICATION
    )
}

impl<'a> Iterator for Walk<'a> {
    type Item = Result<Extension<'a>, ExtensionBad>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended || !is_walked(self.next) {
            return None;
        }
        let step = self.step();
        self.ended |= step.is_err();
        Some(step)
    }
}

/// What stands behind the extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperLayer {
    /// Its protocol. In a fragment that is not the first, the fragment header's next header.
    pub protocol: IpProtocol,
    /// Where it starts, counted from the end of the fixed header.
    pub offset: usize,
    /// The fragment header, if there was one. If its offset is not 0, the bytes at `offset` are no
    /// header of the upper layer.
    pub fragment: Option<Fragment>,
}

/// Walks to the upper layer. `next` and `bytes` as for [`Walk::new`].
///
/// # Errors
/// An extension header is truncated, there are too many, or a hop-by-hop header is not the first.
#[inline]
pub fn upper_layer(next: IpProtocol, bytes: &[u8]) -> Result<UpperLayer, ExtensionBad> {
    let mut walk = Walk::new(next, bytes);
    let mut fragment = None;
    for extension in walk.by_ref() {
        fragment = extension?.fragment().or(fragment);
    }
    Ok(UpperLayer { protocol: walk.next, offset: walk.offset, fragment })
}

/// An option of a hop-by-hop or destination header (RFC 8200 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip6Option<'a> {
    /// Type; its two highest bits say what a node does that does not know it.
    pub kind: u8,
    /// What stands behind type and length.
    pub data: &'a [u8],
}

/// What a node does with an option that it does not know (RFC 8200 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Goes on.
    Skip,
    /// Drops the packet.
    Drop,
    /// Drops it and sends a parameter problem, code 2.
    Report,
    /// As `Report`, but not if the destination is a group.
    ReportUnlessMulticast,
}

impl Ip6Option<'_> {
    /// Router alert (RFC 2711): routers look at the packet.
    pub const ROUTER_ALERT: u8 = 5;

    /// What to do if the option is not known.
    pub const fn if_unknown(&self) -> Unknown {
        match self.kind >> 6 {
            0 => Unknown::Skip,
            1 => Unknown::Drop,
            2 => Unknown::Report,
            _ => Unknown::ReportUnlessMulticast,
        }
    }
}

/// Walks options to their end or to the first that runs beyond its header. Padding is skipped.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Ip6Option<'a>, ExtensionBad>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.bytes.get(self.offset..)?;
            let (kind, after_kind) = rest.split_first()?;
            if *kind == 0 {
                self.offset += 1;
                continue;
            }
            let option = after_kind
                .split_first()
                .and_then(|(len, data)| data.get(..usize::from(*len)))
                .map(|data| Ip6Option { kind: *kind, data });
            let Some(option) = option else {
                self.offset = self.bytes.len();
                return Some(Err(ExtensionBad::Truncated));
            };
            self.offset += 2 + option.data.len();
            if option.kind != 1 {
                return Some(Ok(option));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const UDP: u8 = IpProtocol::UDP.0;

    #[test]
    fn every_known_header_is_walked_to_the_upper_layer() {
        let mut bytes = std::vec![43, 0, 5, 2, 0, 0, 1, 0]; // hop-by-hop: router alert, PadN
        bytes.extend([44, 0, 4, 1, 0, 0, 0, 0]); // routing, type 4, one segment left
        bytes.extend([51, 0, 0, 1, 0, 0, 0, 9]); // first fragment
        bytes.extend([60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]); // AH of 12 bytes
        bytes.extend([UDP, 0, 1, 4, 0, 0, 0, 0]); // destination options: PadN
        bytes.extend([1, 2, 3, 4]);
        let upper = upper_layer(IpProtocol::HOP_BY_HOP, &bytes).unwrap();
        assert_eq!((upper.protocol, upper.offset), (IpProtocol::UDP, 44));
        let fragment = upper.fragment.unwrap();
        assert_eq!((fragment.offset, fragment.more, fragment.identification), (0, true, 9));
        let walked: Vec<_> =
            Walk::new(IpProtocol::HOP_BY_HOP, &bytes).map(Result::unwrap).collect();
        assert_eq!(walked.len(), 5);
        let options: Vec<_> = walked[0].options().collect();
        assert_eq!(options, [Ok(Ip6Option { kind: Ip6Option::ROUTER_ALERT, data: &[0, 0] })]);
        assert_eq!(walked[1].routing(), Some((4, 1)));
        assert_eq!(walked[4].options().count(), 0);
    }

    #[test]
    fn a_later_fragment_ends_the_walk() {
        let bytes = [60, 0, 0, 8, 0, 0, 0, 9, UDP, 0, 0, 0, 0, 0, 0, 0];
        let upper = upper_layer(IpProtocol::FRAGMENT, &bytes).unwrap();
        assert_eq!((upper.protocol, upper.offset), (IpProtocol::DESTINATION_OPTIONS, 8));
        assert_eq!(upper.fragment.unwrap().offset, 1);
    }

    #[test]
    fn headers_that_lie_are_refused() {
        use ExtensionBad::*;
        let walk = |next, bytes: &[u8]| upper_layer(next, bytes).unwrap_err();
        assert_eq!(walk(IpProtocol::ROUTING, &[UDP]), Truncated);
        assert_eq!(walk(IpProtocol::ROUTING, &[UDP, 1, 0, 0, 0, 0, 0, 0]), Truncated);
        assert_eq!(walk(IpProtocol::FRAGMENT, &[UDP, 0, 0, 0, 0, 0, 0]), Truncated);
        assert_eq!(walk(IpProtocol::ROUTING, &[0; 16]), HopByHopNotFirst);
        let endless = [60, 0, 1, 4, 0, 0, 0, 0].repeat(9);
        assert_eq!(walk(IpProtocol::DESTINATION_OPTIONS, &endless), TooMany);
        assert_eq!(upper_layer(IpProtocol::DESTINATION_OPTIONS, &[60; 0]), Err(Truncated));
    }

    #[test]
    fn exactly_the_limit_of_headers_is_walked() {
        let mut bytes = [60, 0, 1, 4, 0, 0, 0, 0].repeat(8);
        bytes[56] = UDP;
        assert_eq!(upper_layer(IpProtocol::DESTINATION_OPTIONS, &bytes).unwrap().offset, 64);
    }

    proptest! {
        #[test]
        fn the_walk_is_bounded_and_never_panics(
            first: u8,
            picks in prop::collection::vec((0usize..8, any::<u8>()), 0..80),
        ) {
            let likely = [0, 43, 44, 51, 60, 17, 1];
            let bytes: Vec<u8> =
                picks.iter().map(|(pick, other)| *likely.get(*pick).unwrap_or(other)).collect();
            for first in [first, 0, 43, 44, 51, 60] {
                let first = IpProtocol(first);
                let walked: Vec<_> = Walk::new(first, &bytes).collect();
                prop_assert!(walked.len() <= EXTENSION_HEADERS_MAX + 1);
                for extension in walked.into_iter().flatten() {
                    prop_assert!(extension.options().count() <= bytes.len());
                    let _ = (extension.fragment(), extension.routing());
                }
                if let Ok(upper) = upper_layer(first, &bytes) {
                    prop_assert!(upper.offset <= bytes.len());
                }
            }
        }
    }
}

//! IPv4 options (RFC 791 §3.1): a kind of one octet, or kind, length and data.

/// Most options that fit in a header: 40 of one octet.
pub const OPTIONS_MAX: usize = super::OPTIONS_LEN_MAX;

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip4Option<'a> {
    /// Kind, with the copied bit (0x80) and the class.
    pub kind: u8,
    /// What stands behind kind and length.
    pub data: &'a [u8],
}

impl Ip4Option<'_> {
    /// Router alert (RFC 2113): routers look at the packet.
    pub const ROUTER_ALERT: u8 = 148;
    /// Loose source route.
    pub const LOOSE_SOURCE_ROUTE: u8 = 131;
    /// Strict source route.
    pub const STRICT_SOURCE_ROUTE: u8 = 137;
    /// Record route.
    pub const RECORD_ROUTE: u8 = 7;
    /// Time stamp.
    pub const TIMESTAMP: u8 = 68;

    /// The option is repeated in every fragment.
    pub const fn is_copied(&self) -> bool {
        self.kind & 0x80 != 0
    }

    /// The packet asks for a path of its own (RFC 7126 §4.3: best dropped).
    pub const fn is_source_route(&self) -> bool {
        matches!(self.kind, Self::LOOSE_SOURCE_ROUTE | Self::STRICT_SOURCE_ROUTE)
    }
}

/// An option whose length is below 2 or runs beyond the header, at this offset from the first
/// option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadOption {
    /// Octets before it; 20 more is the pointer of an ICMP parameter problem.
    pub offset: usize,
}

/// Walks options to their end or to the first that lies. "No operation" is skipped.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Options<'a> {
    /// Walks the bytes behind the fixed header.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Ip4Option<'a>, BadOption>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.bytes.get(self.offset..)?;
            let (kind, after_kind) = rest.split_first()?;
            match *kind {
                0 => return None,
                1 => self.offset += 1,
                kind => {
                    let len = usize::from(after_kind.first().copied().unwrap_or(0));
                    let Some(data) = rest.get(2..len) else {
                        let offset = self.offset;
                        self.offset = self.bytes.len();
                        return Some(Err(BadOption { offset }));
                    };
                    self.offset += len;
                    return Some(Ok(Ip4Option { kind, data }));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn a_router_alert_behind_padding_is_found() {
        let found: Vec<_> = Options::new(&[1, 1, 148, 4, 0, 0, 0, 9]).collect();
        assert_eq!(found, [Ok(Ip4Option { kind: Ip4Option::ROUTER_ALERT, data: &[0, 0] })]);
    }

    #[test]
    fn an_option_that_lies_ends_the_walk_and_is_named() {
        for bytes in [&[1, 7, 0, 0][..], &[1, 7, 1, 0], &[1, 7, 4, 0], &[1, 7]] {
            let found: Vec<_> = Options::new(bytes).collect();
            assert_eq!(found, [Err(BadOption { offset: 1 })], "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn the_walk_ends_and_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(Options::new(&bytes).count() <= bytes.len());
        }
    }
}

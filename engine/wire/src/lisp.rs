//! The header of encapsulated data of the locator/ID separation protocol (LISP, RFC 9300 §5.3), and
//! its generic protocol extension (LISP-GPE, RFC 9305 §3).
//!
//! ```text
//! 0         1                     4                        8
//! +---------+---------------------+------------------------+---------
//! |NLEVIPKK | nonce or map-version| instance ID or locator | packet
//! |         |      | next protocol| status bits            | (GPE)
//! +---------+---------------------+------------------------+---------
//! ```

use zerocopy::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::Header;

/// The UDP port of encapsulated data.
pub const DATA_PORT: u16 = 4341;
/// The UDP port of control messages.
pub const CONTROL_PORT: u16 = 4342;
/// The greatest instance ID: 24 bits.
pub const INSTANCE_MAX: u32 = 0xff_ffff;

/// A nonce is there.
const NONCE: u8 = 0x80;
/// Locator status bits are there.
const LOCATOR_STATUS: u8 = 0x40;
/// The sender wants its nonce back.
const ECHO_NONCE: u8 = 0x20;
/// Map-version numbers are there.
const MAP_VERSION: u8 = 0x10;
/// An instance ID is there.
const INSTANCE: u8 = 0x08;
/// A next protocol is there (RFC 9305 §3.1).
const PROTOCOL: u8 = 0x04;

/// Next protocols of LISP-GPE (RFC 9305 §3.2).
pub mod next_protocol {
    /// An IPv4 packet.
    pub const IP4: u8 = 1;
    /// An IPv6 packet.
    pub const IP6: u8 = 2;
    /// An Ethernet frame.
    pub const ETHERNET: u8 = 3;
    /// A network service header.
    pub const NSH: u8 = 4;
}

/// The header, 8 bytes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct LispHeader {
    flags: u8,
    nonce: [u8; 3],
    instance: U32,
}

impl Header for LispHeader {
    const NAME: &'static str = "LISP";
}

/// The header in plain form, as this router writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The instance ID; none leaves the bits of the locators, of which the first is up.
    pub instance: Option<u32>,
    /// The next protocol of LISP-GPE; none is plain LISP.
    pub next_protocol: Option<u8>,
}

impl Repr {
    /// The header.
    pub fn header(self) -> LispHeader {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let status = LOCATOR_STATUS;
        LispHeader {
            flags: status
                | flag(self.instance.is_some(), INSTANCE)
                | flag(self.next_protocol.is_some(), PROTOCOL),
            nonce: [0, 0, self.next_protocol.unwrap_or(0)],
            instance: U32::new(self.instance.map_or(1, |instance| instance << 8 | 1)),
        }
    }
}

impl LispHeader {
    /// The instance ID; `None` where there is none (RFC 9300 §5.3, I-bit).
    #[inline(always)]
    pub fn instance(&self) -> Option<u32> {
        (self.flags & INSTANCE != 0).then(|| self.instance.get() >> 8)
    }

    /// The next protocol; `None` where the packet says itself what it is.
    #[inline(always)]
    pub fn next_protocol(&self) -> Option<u8> {
        (self.flags & PROTOCOL != 0).then_some(self.nonce[2])
    }

    /// The nonce, 24 bits (16 and a next protocol in LISP-GPE), with the wish to have it back.
    #[inline]
    pub fn nonce(&self) -> Option<(u32, bool)> {
        let [high, middle, low] = self.nonce;
        let is_there = self.flags & NONCE != 0;
        let nonce = u32::from_be_bytes([0, high, middle, low]);
        is_there.then_some((nonce, self.flags & ECHO_NONCE != 0))
    }

    /// Map-version numbers of source and destination (RFC 9302), 12 bits each.
    #[inline]
    pub fn map_versions(&self) -> Option<(u16, u16)> {
        let [high, middle, low] = self.nonce;
        let both = u32::from_be_bytes([0, high, middle, low]);
        (self.flags & MAP_VERSION != 0).then_some(((both >> 12) as u16, both as u16 & 0xfff))
    }

    /// Do the flags agree? A nonce and map-version numbers exclude one another, and an echo is of a
    /// nonce (RFC 9300 §5.3, RFC 9302 §8).
    #[inline(always)]
    pub fn is_well_formed(&self) -> bool {
        let has = |flags: u8| self.flags & flags == flags;
        !(has(NONCE | MAP_VERSION) | (has(ECHO_NONCE) & !has(NONCE)))
    }

    /// Bit by bit, which of the sender's locators are up; `None` where it does not say.
    #[inline]
    pub fn locator_status(&self) -> Option<u32> {
        let word = self.instance.get();
        let bits = if self.flags & INSTANCE != 0 { word & 0xff } else { word };
        (self.flags & LOCATOR_STATUS != 0).then_some(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_figure_is_read_as_it_stands() {
        let bytes = [0xc8, 1, 2, 3, 0, 0, 7, 5];
        let header = LispHeader::overlay(&bytes).unwrap();
        assert_eq!((header.instance(), header.nonce()), (Some(7), Some((0x1_0203, false))));
        assert_eq!((header.locator_status(), header.next_protocol()), (Some(5), None));
        let header = LispHeader::overlay(&[0x50, 0x12, 0x34, 0x56, 0, 0, 0, 9]).unwrap();
        assert_eq!(header.map_versions(), Some((0x123, 0x456)));
        assert_eq!(header.locator_status(), Some(9));
        assert!(!LispHeader::overlay(&[0x90, 0, 0, 0, 0, 0, 0, 0]).unwrap().is_well_formed());
        assert!(!LispHeader::overlay(&[0x20, 0, 0, 0, 0, 0, 0, 0]).unwrap().is_well_formed());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            instance in prop::option::of(0..=INSTANCE_MAX),
            next_protocol in prop::option::of(any::<u8>()),
        ) {
            let header = Repr { instance, next_protocol }.header();
            prop_assert!(header.is_well_formed());
            prop_assert_eq!(header.instance(), instance);
            prop_assert_eq!(header.next_protocol(), next_protocol);
            prop_assert_eq!(header.locator_status(), Some(1));
            prop_assert_eq!((header.nonce(), header.map_versions()), (None, None));
        }
    }
}

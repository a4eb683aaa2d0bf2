//! Data messages of L2TPv3 over IP (RFC 3931 §4.1.1), and the default L2-specific sublayer (§4.6).
//!
//! ```text
//! 0            4               4, 8 or 12
//! +------------+---------------+------------------+-------
//! | session ID | (cookie)      | (L2 sublayer)    | frame
//! +------------+---------------+------------------+-------
//! ```
//!
//! Whether a cookie of 4 or 8 bytes and the sublayer of 4 bytes are there is known of the session.
//! Session 0 is the control channel.

use zerocopy::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::Header;

/// Bytes of the default L2-specific sublayer.
pub const SUBLAYER_BYTES: usize = 4;
/// Bytes of the longest cookie.
pub const COOKIE_BYTES_MAX: usize = 8;
/// The sublayer has a sequence number (S).
const SEQUENCE: u32 = 1 << 30;

/// The session ID, 4 bytes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct L2tpv3Header(U32);

impl Header for L2tpv3Header {
    const NAME: &'static str = "L2TPv3";
}

impl L2tpv3Header {
    /// Of the session at its receiver.
    pub fn new(session: u32) -> L2tpv3Header {
        L2tpv3Header(U32::new(session))
    }

    /// The session at its receiver; 0 is the control channel.
    #[inline(always)]
    pub fn session(&self) -> u32 {
        self.0.get()
    }
}

/// The sequence number of a sublayer, 24 bits; `None` where it says that it has none.
#[inline]
pub fn sequence(sublayer: [u8; SUBLAYER_BYTES]) -> Option<u32> {
    let word = u32::from_be_bytes(sublayer);
    (word & SEQUENCE != 0).then_some(word & 0xff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sublayer_has_a_sequence_number_when_its_flag_says_so() {
        assert_eq!(sequence([0x40, 0, 1, 2]), Some(0x102));
        assert_eq!(sequence([0x80, 0, 1, 2]), None);
        assert_eq!(L2tpv3Header::overlay(&[0, 0, 0, 7]).map(L2tpv3Header::session), Some(7));
        assert_eq!(L2tpv3Header::new(7).as_bytes(), [0, 0, 0, 7]);
        assert!(L2tpv3Header::overlay(&[0, 0, 0]).is_none());
    }
}

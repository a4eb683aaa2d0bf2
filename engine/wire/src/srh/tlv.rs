//! TLVs behind the segment list (RFC 8754 §2.1): padding, HMAC, and what others define.
//!
//! ```text
//! 0    1    2     4        8                           0
//! +----+----+-----+--------+------ - - -               +----+
//! |type|len |D    | key id | HMAC, 8 × n bytes         |  0 |   Pad1
//! +----+----+-----+--------+------ - - -               +----+
//! ```

use super::SrhBad;

/// Types of TLVs (RFC 8754 §8.2).
pub mod kind {
    /// One byte of padding, which has no length.
    pub const PAD1: u8 = 0;
    /// Padding of any length.
    pub const PADN: u8 = 4;
    /// Keyed hash of the header.
    pub const HMAC: u8 = 5;
}

/// Bytes of the HMAC itself at most (RFC 8754 §2.1.2).
pub const HMAC_FIELD_BYTES_MAX: usize = 32;
/// Bytes of an HMAC TLV with the longest HMAC, type and length included.
pub const HMAC_TLV_LEN: usize = HMAC_FIXED_LEN + HMAC_FIELD_BYTES_MAX;
/// Type, length, D bit with what is reserved, key id.
const HMAC_FIXED_LEN: usize = 8;
/// The D bit among the 16 bits behind the length.
const D_BIT: u16 = 0x8000;

/// One TLV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// Its type.
    pub kind: u8,
    /// Where it starts, counted from the start of the Segment Routing Header.
    pub offset: u16,
    /// What stands behind type and length.
    pub data: &'a [u8],
}

impl<'a> Tlv<'a> {
    /// As an HMAC TLV, if it is one whose length is right.
    ///
    /// # Errors
    /// It is an HMAC TLV of a wrong length.
    pub fn hmac(&self) -> Result<HmacTlv<'a>, SrhBad> {
        let bad = SrhBad::BadHmac(self.offset);
        if self.kind != kind::HMAC {
            return Err(bad);
        }
        let (&[a, b, c, d, e, f], field) = self.data.split_first_chunk().ok_or(bad)?;
        if field.is_empty() || !field.len().is_multiple_of(8) || field.len() > HMAC_FIELD_BYTES_MAX
        {
            return Err(bad);
        }
        let key_id = u32::from_be_bytes([c, d, e, f]);
        Ok(HmacTlv { flags: u16::from_be_bytes([a, b]), key_id, field, offset: self.offset })
    }
}

/// An HMAC TLV (RFC 8754 §2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HmacTlv<'a> {
    /// The 16 bits behind the length.
    pub flags: u16,
    /// Which key, and with it which algorithm; 0 is not a key's (§2.1.2.1).
    pub key_id: u32,
    /// The HMAC, 8 to 32 bytes.
    pub field: &'a [u8],
    /// Where the TLV starts, counted from the start of the Segment Routing Header.
    pub offset: u16,
}

impl HmacTlv<'_> {
    /// Whether the destination is not compared with the list, for the first segment of a reduced
    /// header is not in it.
    pub const fn skips_destination(&self) -> bool {
        self.flags & D_BIT != 0
    }

    /// Where the HMAC itself starts, counted from the start of the Segment Routing Header.
    pub const fn field_offset(&self) -> usize {
        self.offset as usize + HMAC_FIXED_LEN
    }
}

/// The first bytes of an HMAC TLV of [`HMAC_TLV_LEN`] bytes.
pub(super) fn hmac_front(key_id: u32, skips_destination: bool) -> [u8; HMAC_FIXED_LEN] {
    let [a, b] = if skips_destination { D_BIT } else { 0 }.to_be_bytes();
    let [c, d, e, f] = key_id.to_be_bytes();
    [kind::HMAC, (HMAC_TLV_LEN - 2) as u8, a, b, c, d, e, f]
}

/// Walks TLVs to the header's end, or to the first that runs beyond it. Pad1 is skipped.
#[derive(Clone, Debug)]
pub struct Tlvs<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Tlvs<'a> {
    pub(super) const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { bytes, offset }
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<Tlv<'a>, SrhBad>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.offset..)?;
        let pads = rest.iter().take_while(|byte| **byte == kind::PAD1).count();
        self.offset += pads;
        let (kind, behind) = rest.get(pads..)?.split_first()?;
        let offset = self.offset as u16;
        let data = behind.split_first().and_then(|(len, data)| data.get(..usize::from(*len)));
        let Some(data) = data else {
            self.offset = self.bytes.len();
            return Some(Err(SrhBad::TlvBeyondHeader(offset)));
        };
        self.offset += 2 + data.len();
        Some(Ok(Tlv { kind: *kind, offset, data }))
    }
}

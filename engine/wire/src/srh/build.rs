//! Building a Segment Routing Header, whole or reduced (RFC 8754 §4.1, §4.1.1).

use core::net::Ipv6Addr;

use super::tlv::{HMAC_TLV_LEN, hmac_front};
use super::{ROUTING_TYPE, SEGMENT_BYTES, SEGMENTS_MAX, SrhHeader, segment_offset};
use crate::header::room;
use crate::{Header, IpProtocol, WireError};

/// Which segments stand in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All of them.
    Full,
    /// All but the first, which the IPv6 destination has.
    Reduced,
}

/// A Segment Routing Header in plain values, as the source of a path writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr<'a> {
    /// What follows.
    pub next_header: IpProtocol,
    /// The path, in the order in which it is travelled.
    pub path: &'a [Ipv6Addr],
    /// Whether the first segment stands in the list.
    pub form: Form,
    /// Flags.
    pub flags: u8,
    /// What packets of one class have in common.
    pub tag: u16,
    /// The key of an HMAC TLV with room for 32 bytes, which are written as zeroes.
    pub hmac_key_id: Option<u32>,
}

impl<'a> Repr<'a> {
    /// A header without flags, tag and TLVs.
    pub const fn new(path: &'a [Ipv6Addr], form: Form, next_header: IpProtocol) -> Self {
        Self { next_header, path, form, flags: 0, tag: 0, hmac_key_id: None }
    }

    /// The segments that stand in the list, in the order of the path.
    fn listed(&self) -> &'a [Ipv6Addr] {
        match self.form {
            Form::Full => self.path,
            Form::Reduced => self.path.get(1..).unwrap_or_default(),
        }
    }

    /// Its length in bytes.
    pub const fn len(&self) -> usize {
        let listed = match self.form {
            Form::Full => self.path.len(),
            Form::Reduced => self.path.len().saturating_sub(1),
        };
        segment_offset(listed) + if self.hmac_key_id.is_some() { HMAC_TLV_LEN } else { 0 }
    }

    /// Is no segment to be listed? Then there is no such header.
    pub const fn is_empty(&self) -> bool {
        match self.form {
            Form::Full => self.path.is_empty(),
            Form::Reduced => self.path.len() < 2,
        }
    }

    /// Writes the header and returns its length.
    ///
    /// # Errors
    /// The list or the TLVs do not fit the header's length field, or `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let invalid = |reason| Err(WireError::Invalid { header: SrhHeader::NAME, reason });
        let (listed, len) = (self.listed(), self.len());
        let Some(last_entry) = listed.len().checked_sub(1) else {
            return invalid("a list without a segment");
        };
        if self.path.len() > SEGMENTS_MAX || len > (usize::from(u8::MAX) + 1) * 8 {
            return invalid("more segments than its length field can say");
        }
        let header = SrhHeader {
            next_header: self.next_header.0,
            length: (len / 8 - 1) as u8,
            routing_type: ROUTING_TYPE,
            segments_left: (self.path.len() - 1) as u8,
            last_entry: last_entry as u8,
            flags: self.flags,
            tag: self.tag.into(),
        };
        let out = room(out, len)?;
        let at = header.write(out)?;
        let (list, tlvs) =
            out.get_mut(at..).unwrap_or_default().split_at_mut(listed.len() * SEGMENT_BYTES);
        for (octets, segment) in
            list.as_chunks_mut::<SEGMENT_BYTES>().0.iter_mut().rev().zip(listed)
        {
            *octets = segment.octets();
        }
        tlvs.fill(0);
        if let Some((front, key_id)) = tlvs.first_chunk_mut().zip(self.hmac_key_id) {
            *front = hmac_front(key_id, self.form == Form::Reduced);
        }
        Ok(len)
    }
}

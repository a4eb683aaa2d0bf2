//! A message: a header, and sets of template records or data records (RFC 7011 §3).
//!
//! ```text
//!  0               2               4                               8
//! +---------------+---------------+-------------------------------+
//! | version 10    | length        | export time, s                |
//! +---------------+---------------+-------------------------------+
//! | sequence number               | observation domain            |
//! +---------------+---------------+-------------------------------+
//! | set: number   | length        | records …                     |
//! ```

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::ipfix::template::Template;

/// Bytes of the message header and of a set's header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of a set's header.
pub const SET_HEADER_BYTES: usize = 4;
/// RFC 7011 §3.1.
const VERSION: u16 = 10;
/// Numbers of sets of templates and of options templates (RFC 7011 §3.3.2).
const TEMPLATE_SET: u16 = 2;
const OPTIONS_TEMPLATE_SET: u16 = 3;

/// The message has no place for one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A message that is being written. Its memory is taken once.
#[derive(Debug)]
pub struct Message {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// The open set: its number, and where it begins.
    set: Option<(u16, usize)>,
    /// Data records.
    records: u32,
}

impl Message {
    /// An empty message of at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Message {
        let mut message =
            Message { bytes: Vec::with_capacity(bytes_max), bytes_max, set: None, records: 0 };
        message.clear();
        message
    }

    /// Begin anew.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(HEADER_BYTES, 0);
        self.set = None;
        self.records = 0;
    }

    /// Nothing but a header?
    pub fn is_empty(&self) -> bool {
        self.bytes.len() <= HEADER_BYTES
    }

    /// Data records in it, those of options included.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Add a data record of a template: `write` writes its fields in their order.
    ///
    /// # Errors
    /// [`Full`], and nothing is added.
    pub fn record(
        &mut self,
        template: &Template,
        write: impl FnOnce(&mut Fields<'_>),
    ) -> Result<(), Full> {
        let length = template.record_bytes();
        self.enter(template.id, length)?;
        let begin = self.bytes.len();
        write(&mut Fields { bytes: &mut self.bytes });
        debug_assert_eq!(self.bytes.len() - begin, length, "fields of template {}", template.id);
        // The message stays well formed whatever was written.
        self.bytes.resize(begin + length, 0);
        self.records += 1;
        Ok(())
    }

    /// Add a template record.
    ///
    /// # Errors
    /// [`Full`], and nothing is added.
    pub fn template(&mut self, template: &Template) -> Result<(), Full> {
        let is_options = template.scope_fields > 0;
        let set = if is_options { OPTIONS_TEMPLATE_SET } else { TEMPLATE_SET };
        self.enter(set, template.bytes())?;
        let mut fields = Fields { bytes: &mut self.bytes };
        fields.u16(template.id);
        fields.u16(template.fields.len() as u16);
        if is_options {
            fields.u16(template.scope_fields);
        }
        for element in template.fields {
            fields.u16(element.id);
            fields.u16(element.bytes);
        }
        Ok(())
    }

    /// Close the message; its bytes.
    pub fn finish(&mut self, export_s: u32, sequence: u32, domain: u32) -> &[u8] {
        self.close_set();
        let length = self.bytes.len() as u16;
        let mut header = [0; HEADER_BYTES];
        header[..2].copy_from_slice(&VERSION.to_be_bytes());
        header[2..4].copy_from_slice(&length.to_be_bytes());
        header[4..8].copy_from_slice(&export_s.to_be_bytes());
        header[8..12].copy_from_slice(&sequence.to_be_bytes());
        header[12..].copy_from_slice(&domain.to_be_bytes());
        if let Some(place) = self.bytes.first_chunk_mut() {
            *place = header;
        }
        &self.bytes
    }

    /// Let what comes next, of so many bytes, be in a set of this number.
    fn enter(&mut self, set: u16, bytes: usize) -> Result<(), Full> {
        let is_open = self.set.is_some_and(|(open, _)| open == set);
        let header = if is_open { 0 } else { SET_HEADER_BYTES };
        if self.bytes.len() + header + bytes > self.bytes_max {
            return Err(Full);
        }
        if !is_open {
            self.close_set();
            self.set = Some((set, self.bytes.len()));
            self.bytes.extend(set.to_be_bytes());
            self.bytes.extend([0, 0]);
        }
        Ok(())
    }

    fn close_set(&mut self) {
        if let Some((_, begin)) = self.set.take() {
            let length = (self.bytes.len() - begin) as u16;
            if let Some(place) = self.bytes.get_mut(begin + 2..begin + SET_HEADER_BYTES) {
                place.copy_from_slice(&length.to_be_bytes());
            }
        }
    }
}

/// Writes the fields of a record, most significant byte first (RFC 7011 §6.1).
pub struct Fields<'m> {
    bytes: &'m mut Vec<u8>,
}

impl Fields<'_> {
    /// An unsigned8.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// An unsigned16.
    pub fn u16(&mut self, value: u16) {
        self.bytes.extend(value.to_be_bytes());
    }

    /// An unsigned32.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend(value.to_be_bytes());
    }

    /// An unsigned64, or a dateTimeMilliseconds.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend(value.to_be_bytes());
    }

    /// An ipv6Address.
    pub fn ip6(&mut self, address: Ipv6Addr) {
        self.bytes.extend(address.octets());
    }

    /// An ipv4Address.
    pub fn ip4(&mut self, address: Ipv4Addr) {
        self.bytes.extend(address.octets());
    }
}

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
//!
//! NetFlow version 9 (RFC 3954 §5) has the same sets by other numbers, and this header:
//!
//! ```text
//! +---------------+---------------+-------------------------------+
//! | version 9     | records       | milliseconds since the start  |
//! +---------------+---------------+-------------------------------+
//! | export time, s                | messages before this one      |
//! +---------------+---------------+-------------------------------+
//! | source                        |
//! ```

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::ipfix::template::Template;
use crate::moment::Moment;

/// Bytes of the message header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of the message header of NetFlow version 9.
pub const NETFLOW9_HEADER_BYTES: usize = 20;
/// Bytes of a set's header.
pub const SET_HEADER_BYTES: usize = 4;
/// Sets of NetFlow version 9 end at a multiple of so many bytes (RFC 3954 §5.2).
const NETFLOW9_ALIGNMENT: usize = 4;
/// The scope of options of NetFlow version 9: the whole exporter (RFC 3954 §6.1).
const NETFLOW9_SCOPE_SYSTEM: u16 = 1;
/// Nanoseconds of a millisecond.
const MILLISECOND_NS: u64 = 1_000_000;

/// How records are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// IPFIX (RFC 7011).
    #[default]
    Ipfix,
    /// NetFlow version 9 (RFC 3954).
    NetFlow9,
}

impl Format {
    /// The version in the header (RFC 7011 §3.1, RFC 3954 §5.1).
    fn version(self) -> u16 {
        match self {
            Format::Ipfix => 10,
            Format::NetFlow9 => 9,
        }
    }

    fn header_bytes(self) -> usize {
        match self {
            Format::Ipfix => HEADER_BYTES,
            Format::NetFlow9 => NETFLOW9_HEADER_BYTES,
        }
    }

    /// Numbers of sets of templates and of options templates (RFC 7011 §3.3.2, RFC 3954 §5.2 and
    /// §6.1).
    fn template_sets(self) -> [u16; 2] {
        match self {
            Format::Ipfix => [2, 3],
            Format::NetFlow9 => [0, 1],
        }
    }

    /// By how much a message with so many data records raises the sequence number: IPFIX counts
    /// data records, NetFlow version 9 messages.
    pub fn sequence_step(self, records: u32) -> u32 {
        match self {
            Format::Ipfix => records,
            Format::NetFlow9 => 1,
        }
    }
}

/// The message has no place for one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A message that is being written. Its memory is taken once.
#[derive(Debug)]
pub struct Message {
    format: Format,
    bytes: Vec<u8>,
    bytes_max: usize,
    /// The open set: its number, and where it begins.
    set: Option<(u16, usize)>,
    /// Data records, and template records.
    records: u32,
    templates: u32,
}

impl Message {
    /// An empty message of at most `bytes_max` bytes.
    pub fn new(format: Format, bytes_max: usize) -> Message {
        let mut message = Message {
            format,
            bytes: Vec::with_capacity(bytes_max),
            bytes_max,
            set: None,
            records: 0,
            templates: 0,
        };
        message.clear();
        message
    }

    /// Begin anew.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(self.format.header_bytes(), 0);
        self.set = None;
        (self.records, self.templates) = (0, 0);
    }

    /// Nothing but a header?
    pub fn is_empty(&self) -> bool {
        self.bytes.len() <= self.format.header_bytes()
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
        let set = self.format.template_sets()[usize::from(is_options)];
        self.enter(set, template.bytes())?;
        self.templates += 1;
        let format = self.format;
        let mut fields = Fields { bytes: &mut self.bytes };
        fields.u16(template.id);
        let (count, scopes) = (template.fields.len() as u16, template.scope_fields);
        match (is_options, format) {
            (false, _) => fields.u16(count),
            (true, Format::Ipfix) => {
                fields.u16(count);
                fields.u16(scopes);
            }
            (true, Format::NetFlow9) => {
                // Bytes of the fields of each kind.
                fields.u16(4 * scopes);
                fields.u16(4 * count.saturating_sub(scopes));
            }
        }
        for (place, element) in template.fields.iter().enumerate() {
            let is_scope = place < usize::from(scopes);
            fields.u16(match format {
                Format::NetFlow9 if is_scope => NETFLOW9_SCOPE_SYSTEM,
                _ => element.id,
            });
            fields.u16(element.bytes);
        }
        Ok(())
    }

    /// Close the message; its bytes.
    pub fn finish(&mut self, at: Moment, sequence: u32, domain: u32) -> &[u8] {
        self.close_set();
        let mut header = Vec::with_capacity(NETFLOW9_HEADER_BYTES);
        let mut fields = Fields { bytes: &mut header };
        fields.u16(self.format.version());
        match self.format {
            Format::Ipfix => fields.u16(self.bytes.len() as u16),
            Format::NetFlow9 => {
                fields.u16((self.records + self.templates) as u16);
                fields.u32((at.now_ns / MILLISECOND_NS) as u32);
            }
        }
        fields.u32(at.unix_s());
        fields.u32(sequence);
        fields.u32(domain);
        if let Some(place) = self.bytes.get_mut(..header.len()) {
            place.copy_from_slice(&header);
        }
        &self.bytes
    }

    /// Let what comes next, of so many bytes, be in a set of this number.
    fn enter(&mut self, set: u16, bytes: usize) -> Result<(), Full> {
        let is_open = self.set.is_some_and(|(open, _)| open == set);
        let header = if is_open { 0 } else { SET_HEADER_BYTES };
        let padding = if self.format == Format::Ipfix { 0 } else { NETFLOW9_ALIGNMENT - 1 };
        // Closing the open set may take padding as well.
        if self.bytes.len() + header + bytes + 2 * padding > self.bytes_max {
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
            if self.format == Format::NetFlow9 {
                self.bytes.resize(self.bytes.len().next_multiple_of(NETFLOW9_ALIGNMENT), 0);
            }
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

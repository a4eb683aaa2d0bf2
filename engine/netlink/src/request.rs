//! Requests to the kernel, written attribute by attribute.

use crate::message::{HEADER_BYTES, flag};

/// A request of one message.
#[derive(Clone, Debug)]
pub struct Request(Vec<u8>);

/// An attribute as it stands in a message, for attributes that hold others.
pub fn attribute_bytes(number: u16, value: &[u8]) -> Vec<u8> {
    Request(Vec::new()).attribute(number, value).0
}

impl Request {
    /// Of this kind, with these flags beside [`flag::REQUEST`], and the bytes of its own header.
    pub fn new(kind: u16, flags: u16, header: &[u8]) -> Request {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | flag::REQUEST).to_ne_bytes());
        let mut request = Request(bytes);
        request.put(header);
        request
    }

    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// With an attribute. A value longer than an attribute can hold is cut.
    pub fn attribute(mut self, number: u16, value: &[u8]) -> Request {
        let value = &value[..value.len().min(usize::from(u16::MAX) - 4)];
        self.0.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
        self.0.extend_from_slice(&number.to_ne_bytes());
        self.put(value);
        self
    }

    /// The bytes of the message, under this number.
    pub(crate) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = (self.0.len() as u32).to_ne_bytes();
        self.0[..4].copy_from_slice(&length);
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

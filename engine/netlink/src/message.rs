//! Messages of a datagram and attributes of a message (netlink(7), linux/netlink.h).

/// Bytes of a message's header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of an attribute's header.
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// The bits of an attribute's type that are its number.
const ATTRIBUTE_NUMBER: u16 = 0x3fff;

/// Flags of messages that changes carry and requests need.
pub mod flag {
    /// A request.
    pub const REQUEST: u16 = 0x1;
    /// One of several messages of an answer.
    pub const MULTI: u16 = 0x2;
    /// An answer is wanted, be it that all went well.
    pub const ACK: u16 = 0x4;
    /// What was dumped has changed meanwhile: dump again.
    pub const DUMP_INTERRUPTED: u16 = 0x10;
    /// All there is.
    pub const DUMP: u16 = 0x300;
    /// In place of what is there.
    pub const REPLACE: u16 = 0x100;
    /// It must not be there already.
    pub const EXCLUSIVE: u16 = 0x200;
    /// Create it if it is not there.
    pub const CREATE: u16 = 0x400;
    /// Beside what is there.
    pub const APPEND: u16 = 0x800;
}

/// Kinds of messages that the protocol itself has.
pub mod kind {
    /// An error, or that there was none.
    pub const ERROR: u16 = 2;
    /// The end of a dump.
    pub const DONE: u16 = 3;
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// What it is about: `RTM_…`.
    pub kind: u16,
    /// Its flags.
    pub flags: u16,
    /// The number of the request that it answers.
    pub sequence: u32,
    /// The socket that the change came from; 0 for the kernel.
    pub port: u32,
    /// What is behind its header.
    pub body: &'a [u8],
}

impl Message<'_> {
    /// The error number of an answer; 0 when all went well; none when it is no answer.
    pub fn error(&self) -> Option<i32> {
        let number = self.body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
        (self.kind == kind::ERROR).then_some(number?.checked_neg()?)
    }
}

/// The messages of a datagram.
#[derive(Clone, Debug)]
pub struct Messages<'a>(&'a [u8]);

impl<'a> Messages<'a> {
    /// Those that lie in `bytes`. What is cut off at the end is left out.
    pub fn of(bytes: &'a [u8]) -> Messages<'a> {
        Messages(bytes)
    }
}

/// Lengths are rounded to four bytes.
const fn aligned(length: usize) -> usize {
    length.saturating_add(3) & !3
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let bytes = self.0;
        let length = word(bytes, 0)? as usize;
        let body = bytes.get(HEADER_BYTES..length)?;
        self.0 = bytes.get(aligned(length)..).unwrap_or_default();
        Some(Message {
            kind: half(bytes, 4)?,
            flags: half(bytes, 6)?,
            sequence: word(bytes, 8)?,
            port: word(bytes, 12)?,
            body,
        })
    }
}

/// The attributes of a message or of an attribute: number and value of each.
#[derive(Clone, Debug)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Those that lie in `bytes`. What is cut off at the end is left out.
    pub fn of(bytes: &'a [u8]) -> Attributes<'a> {
        Attributes(bytes)
    }

    /// Those behind the `header_bytes` of a message's own header.
    pub fn behind(body: &'a [u8], header_bytes: usize) -> Attributes<'a> {
        Attributes(body.get(aligned(header_bytes)..).unwrap_or_default())
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let bytes = self.0;
        let length = usize::from(half(bytes, 0)?);
        let value = bytes.get(ATTRIBUTE_HEADER_BYTES..length)?;
        self.0 = bytes.get(aligned(length)..).unwrap_or_default();
        Some((half(bytes, 2)? & ATTRIBUTE_NUMBER, value))
    }
}

/// A number of four bytes in an attribute.
pub fn number(value: &[u8]) -> Option<u32> {
    word(value, 0)
}

/// A text in an attribute, without the zero behind it.
pub fn text(value: &[u8]) -> Option<&str> {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    std::str::from_utf8(&value[..end]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_that_is_cut_is_no_message() {
        let mut bytes = vec![0; 24];
        bytes[0] = 20;
        bytes[4] = 24;
        let count = |bytes: &[u8]| Messages::of(bytes).count();
        assert_eq!(count(&bytes), 1);
        assert_eq!(count(&bytes[..19]), 0);
        bytes[0] = 15; // shorter than its own header
        assert_eq!(count(&bytes), 0);
    }

    #[test]
    fn the_most_negative_error_is_no_error() {
        let body = i32::MIN.to_ne_bytes();
        let message = Message { kind: kind::ERROR, flags: 0, sequence: 0, port: 0, body: &body };
        assert_eq!(message.error(), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic_or_go_on_for_ever(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for message in Messages::of(&bytes) {
                prop_assert!(Attributes::of(message.body).count() <= message.body.len());
            }
            prop_assert!(Messages::of(&bytes).count() <= bytes.len() / HEADER_BYTES);
        }
    }
}

//! The messages of memif's control channel, version 2.0: 128 bytes each, packed, in the byte order
//! of the host that both ends run on.

/// What every ring begins with.
pub const COOKIE: u32 = 0x03E3_1F20;
/// Version 2.0, major in the high byte.
pub const VERSION: u16 = 0x0200;
/// Bytes of every message.
pub const MESSAGE_BYTES: usize = 128;
/// Bytes of a name, its terminating zero included.
pub const NAME_BYTES: usize = 32;
/// Bytes of a secret; shorter ones end with a zero.
pub const SECRET_BYTES: usize = 24;
/// Bytes of the text of a disconnect, its terminating zero included.
pub const REASON_BYTES: usize = 96;
/// Largest ring that peers agree on, as a power of two.
pub const LOG2_RING_SIZE_MAX: u8 = 14;
/// Flag of [`AddRing`]: the slave sends on this ring.
pub const ADD_RING_S2M: u16 = 1;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The last message was taken; from the master.
    Ack,
    /// What the master can do; its first message.
    Hello(Hello),
    /// Which interface the slave wants; its first message.
    Init(Init),
    /// A piece of shared memory; its descriptor travels with the message.
    AddRegion {
        /// Its number, counted from 0.
        index: u16,
        /// Its bytes.
        size: u64,
    },
    /// A ring in a region; its eventfd travels with the message.
    AddRing(AddRing),
    /// The slave is ready; its interface's name.
    Connect(String),
    /// The master is ready; its interface's name.
    Connected(String),
    /// The end of the connection.
    Disconnect {
        /// Without a defined meaning.
        code: u32,
        /// Why, in words.
        reason: String,
    },
}

/// What a master can do. The limits on regions and rings are the highest index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The program.
    pub name: String,
    /// Lowest version.
    pub min_version: u16,
    /// Highest version.
    pub max_version: u16,
    /// Highest region.
    pub max_region: u16,
    /// Highest ring from master to slave.
    pub max_m2s_ring: u16,
    /// Highest ring from slave to master.
    pub max_s2m_ring: u16,
    /// Largest ring, as a power of two.
    pub max_log2_ring_size: u8,
}

/// What a slave wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Init {
    /// The version it has chosen.
    pub version: u16,
    /// The interface's number on this socket.
    pub id: u32,
    /// 0 Ethernet, 1 IP, 2 punt and inject.
    pub mode: u8,
    /// All zero without one.
    pub secret: [u8; SECRET_BYTES],
    /// The program.
    pub name: String,
}

/// A ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddRing {
    /// [`ADD_RING_S2M`] or none.
    pub flags: u16,
    /// Its number in its direction, counted from 0.
    pub index: u16,
    /// The region that it lies in.
    pub region: u16,
    /// Where it begins there, in bytes.
    pub offset: u32,
    /// Its descriptors, as a power of two.
    pub log2_size: u8,
    /// Bytes of private metadata; nobody uses them.
    pub private_header_bytes: u16,
}

/// A message that cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// Not 128 bytes.
    #[error("a message of {0} bytes instead of {MESSAGE_BYTES}")]
    Size(usize),
    /// Not a known type.
    #[error("a message of unknown type {0}")]
    Type(u16),
}

struct Writer([u8; MESSAGE_BYTES], usize);

impl Writer {
    fn bytes(mut self, bytes: &[u8]) -> Writer {
        self.0[self.1..self.1 + bytes.len()].copy_from_slice(bytes);
        self.1 += bytes.len();
        self
    }

    fn u8(self, n: u8) -> Writer {
        self.bytes(&[n])
    }

    fn u16(self, n: u16) -> Writer {
        self.bytes(&n.to_ne_bytes())
    }

    fn u32(self, n: u32) -> Writer {
        self.bytes(&n.to_ne_bytes())
    }

    fn u64(self, n: u64) -> Writer {
        self.bytes(&n.to_ne_bytes())
    }

    /// Cut to leave room for a zero.
    fn text(mut self, text: &str, field_bytes: usize) -> Writer {
        let mut end = text.len().min(field_bytes - 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.0[self.1..self.1 + end].copy_from_slice(&text.as_bytes()[..end]);
        self.1 += field_bytes;
        self
    }
}

struct Reader<'a>(&'a [u8; MESSAGE_BYTES], usize);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&self.0[self.1..self.1 + N]);
        self.1 += N;
        out
    }

    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    fn u8(&mut self) -> u8 {
        u8::from_ne_bytes(self.take())
    }

    /// Up to the first zero, safe to print.
    fn text<const N: usize>(&mut self) -> String {
        let bytes: [u8; N] = self.take();
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(N);
        let text = String::from_utf8_lossy(&bytes[..end]);
        text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
    }
}

impl Message {
    /// The number of its type.
    pub fn kind(&self) -> u16 {
        match self {
            Message::Ack => 1,
            Message::Hello(_) => 2,
            Message::Init(_) => 3,
            Message::AddRegion { .. } => 4,
            Message::AddRing(_) => 5,
            Message::Connect(_) => 6,
            Message::Connected(_) => 7,
            Message::Disconnect { .. } => 8,
        }
    }

    /// As sent.
    pub fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let out = Writer([0; MESSAGE_BYTES], 0).u16(self.kind());
        let out = match self {
            Message::Ack => out,
            Message::Hello(hello) => out
                .text(&hello.name, NAME_BYTES)
                .u16(hello.min_version)
                .u16(hello.max_version)
                .u16(hello.max_region)
                .u16(hello.max_m2s_ring)
                .u16(hello.max_s2m_ring)
                .u8(hello.max_log2_ring_size),
            Message::Init(init) => out
                .u16(init.version)
                .u32(init.id)
                .u8(init.mode)
                .bytes(&init.secret)
                .text(&init.name, NAME_BYTES),
            Message::AddRegion { index, size } => out.u16(*index).u64(*size),
            Message::AddRing(ring) => out
                .u16(ring.flags)
                .u16(ring.index)
                .u16(ring.region)
                .u32(ring.offset)
                .u8(ring.log2_size)
                .u16(ring.private_header_bytes),
            Message::Connect(name) | Message::Connected(name) => out.text(name, NAME_BYTES),
            Message::Disconnect { code, reason } => out.u32(*code).text(reason, REASON_BYTES),
        };
        out.0
    }

    /// As received.
    ///
    /// # Errors
    /// The type of the message is unknown.
    pub fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Result<Message, BadMessage> {
        let mut from = Reader(bytes, 0);
        Ok(match from.u16() {
            1 => Message::Ack,
            2 => Message::Hello(Hello {
                name: from.text::<NAME_BYTES>(),
                min_version: from.u16(),
                max_version: from.u16(),
                max_region: from.u16(),
                max_m2s_ring: from.u16(),
                max_s2m_ring: from.u16(),
                max_log2_ring_size: from.u8(),
            }),
            3 => Message::Init(Init {
                version: from.u16(),
                id: from.u32(),
                mode: from.u8(),
                secret: from.take(),
                name: from.text::<NAME_BYTES>(),
            }),
            4 => Message::AddRegion { index: from.u16(), size: from.u64() },
            5 => Message::AddRing(AddRing {
                flags: from.u16(),
                index: from.u16(),
                region: from.u16(),
                offset: from.u32(),
                log2_size: from.u8(),
                private_header_bytes: from.u16(),
            }),
            6 => Message::Connect(from.text::<NAME_BYTES>()),
            7 => Message::Connected(from.text::<NAME_BYTES>()),
            8 => Message::Disconnect { code: from.u32(), reason: from.text::<REASON_BYTES>() },
            unknown => return Err(BadMessage::Type(unknown)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello() -> Hello {
        Hello {
            name: "quiver".into(),
            min_version: VERSION,
            max_version: VERSION,
            max_region: 255,
            max_m2s_ring: 1,
            max_s2m_ring: 2,
            max_log2_ring_size: 14,
        }
    }

    #[test]
    fn messages_have_the_packed_layout_of_the_protocol() {
        let bytes = Message::Hello(hello()).encode();
        assert_eq!(bytes[..9], *b"\x02\0quiver\0");
        assert_eq!(bytes[34..45], [0, 2, 0, 2, 255, 0, 1, 0, 2, 0, 14]);
        let init = Init { version: VERSION, id: 7, mode: 1, secret: [9; 24], name: "n".into() };
        let bytes = Message::Init(init).encode();
        assert_eq!(bytes[..9], [3, 0, 0, 2, 7, 0, 0, 0, 1]);
        assert_eq!(bytes[9..34], [[9; 24].as_slice(), b"n"].concat());
        let bytes = Message::AddRegion { index: 1, size: 0x1_0000_0002 }.encode();
        assert_eq!(bytes[..12], [4, 0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0]);
        let ring = AddRing {
            flags: 1,
            index: 2,
            region: 3,
            offset: 4,
            log2_size: 10,
            private_header_bytes: 0,
        };
        assert_eq!(Message::AddRing(ring).encode()[..13], [5, 0, 1, 0, 2, 0, 3, 0, 4, 0, 0, 0, 10]);
    }

    #[test]
    fn text_that_is_too_long_is_cut_and_still_ends_with_a_zero() {
        let bytes = Message::Connect("ü".repeat(40)).encode();
        assert_eq!(bytes[33], 0);
        assert_eq!(Message::decode(&bytes), Ok(Message::Connect("ü".repeat(15))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error_and_survive_being_sent_on(
            bytes in prop::array::uniform32(any::<u8>()), kind in 0u16..12
        ) {
            let mut message = [0; MESSAGE_BYTES];
            message.chunks_mut(32).for_each(|c| c.copy_from_slice(&bytes));
            message[..2].copy_from_slice(&kind.to_ne_bytes());
            match Message::decode(&message) {
                Ok(decoded) => {
                    prop_assert_eq!(decoded.kind(), kind);
                    let again = Message::decode(&decoded.encode()).expect("our own message");
                    prop_assert_eq!(again.kind(), kind);
                }
                Err(error) => prop_assert_eq!(error, BadMessage::Type(kind)),
            }
        }
    }
}

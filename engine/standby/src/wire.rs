//! Datagrams. All numbers are big-endian.
//!
//! ```text
//! 0   "QST" and the version, 2          4 bytes
//! 4   kind: 1 hello, 2 ack, 3 data      1
//! 5   zero                              3
//! 8   incarnation of the sender         8
//! 16  incarnation of the receiver, 0 while unknown   8
//! 24  number of the datagram, which grows with each  8
//! 32  body
//! …   HMAC-SHA-256 over all before      32
//! ```
//!
//! | kind | body |
//! | --- | --- |
//! | hello | time of the sender's clock 8, greeting 32 |
//! | ack | time of the hello that it answers 8, stream 4, next sequence 8, later ones 8, room 4 |
//! | data | stream 4, sequence number 8, records: channel 1, length 1, content |

use aws_lc_rs::hmac;

/// Bytes in front of the body.
pub const HEADER_BYTES: usize = 32;
/// Bytes of the authentication code.
pub const MAC_BYTES: usize = 32;
/// Bytes of the greeting.
pub const GREETING_BYTES: usize = 32;
/// Bytes of data in front of the records.
pub const DATA_HEAD_BYTES: usize = 12;
/// Bytes of a record in front of its content.
pub const RECORD_HEAD_BYTES: usize = 2;
/// What every datagram begins with, and the version behind it.
const MAGIC: [u8; 3] = *b"QST";
/// The version that is written, and the only one that is read: records of another one say something
/// else.
pub const VERSION: u8 = 2;

/// The secret that both routers share.
pub struct Key(hmac::Key);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key") // never the secret
    }
}

impl Key {
    /// The key of a secret.
    pub fn new(secret: &[u8]) -> Key {
        Key(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }
}

/// What both routers must agree on before they exchange records.
pub type Greeting = [u8; GREETING_BYTES];

/// The greeting of what both must agree on: its digest (SHA-256).
pub fn greeting(of: &[u8]) -> Greeting {
    let mut greeting = [0; GREETING_BYTES];
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, of);
    greeting.iter_mut().zip(digest.as_ref()).for_each(|(place, byte)| *place = *byte);
    greeting
}

/// Why a datagram is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Too short, of another protocol, or a body that does not fit its kind.
    Malformed,
    /// The authentication code is not that of the key.
    Unauthentic,
    /// Of this protocol, but of another version.
    OtherVersion,
}

/// What stands in front of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Incarnation of the sender.
    pub from: u64,
    /// Incarnation of the receiver.
    pub to: u64,
    /// Grows with each datagram of an incarnation.
    pub number: u64,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Time of the last hello that came, on its sender's clock, nanoseconds; 0 for none.
    pub echo_ns: u64,
    /// The stream that is acknowledged.
    pub stream: u32,
    /// All data before this sequence number has come.
    pub next: u64,
    /// Bit n: data `next + 1 + n` has come, too.
    pub later: u64,
    /// Datagrams that the receiver has room for, from `next` on.
    pub window: u32,
}

/// What a datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'d> {
    /// I am here.
    Hello {
        /// Time of the sender's clock, nanoseconds.
        stamp_ns: u64,
        /// What both must agree on.
        greeting: &'d Greeting,
    },
    /// What came.
    Ack(Ack),
    /// Records.
    Data {
        /// A new stream begins where data of the last one is lost.
        stream: u32,
        /// Of this datagram in the stream, from 0 on.
        sequence: u64,
        /// One behind the other.
        records: &'d [u8],
    },
}

impl Body<'_> {
    fn kind(&self) -> u8 {
        match self {
            Body::Hello { .. } => 1,
            Body::Ack(_) => 2,
            Body::Data { .. } => 3,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Body::Hello { stamp_ns, greeting } => {
                out.extend(stamp_ns.to_be_bytes());
                out.extend(*greeting);
            }
            Body::Ack(Ack { echo_ns, stream, next, later, window }) => {
                out.extend(echo_ns.to_be_bytes());
                out.extend(stream.to_be_bytes());
                out.extend(next.to_be_bytes());
                out.extend(later.to_be_bytes());
                out.extend(window.to_be_bytes());
            }
            Body::Data { stream, sequence, records } => {
                out.extend(stream.to_be_bytes());
                out.extend(sequence.to_be_bytes());
                out.extend(*records);
            }
        }
    }
}

/// Write a datagram in the place of what `out` has.
pub fn write(key: &Key, header: Header, body: &Body<'_>, out: &mut Vec<u8>) {
    out.clear();
    out.extend(MAGIC);
    out.push(VERSION);
    out.extend([body.kind(), 0, 0, 0]);
    for word in [header.from, header.to, header.number] {
        out.extend(word.to_be_bytes());
    }
    body.write(out);
    let code = hmac::sign(&key.0, out);
    out.extend(code.as_ref());
}

/// Read a datagram.
///
/// # Errors
/// It is not one of ours.
pub fn read<'d>(key: &Key, datagram: &'d [u8]) -> Result<(Header, Body<'d>), Fault> {
    let (signed, code) = datagram.split_last_chunk::<MAC_BYTES>().ok_or(Fault::Malformed)?;
    let mut fields = Fields(signed);
    if fields.take::<3>()? != MAGIC {
        return Err(Fault::Malformed);
    }
    let [version] = fields.take()?;
    hmac::verify(&key.0, signed, code).map_err(|_| Fault::Unauthentic)?;
    // Only a host with the key says so: a stranger cannot pretend it.
    if version != VERSION {
        return Err(Fault::OtherVersion);
    }
    let [kind, ..] = fields.take::<4>()?;
    let header = Header { from: fields.u64()?, to: fields.u64()?, number: fields.u64()? };
    let body = match kind {
        1 => Body::Hello { stamp_ns: fields.u64()?, greeting: fields.reference()? },
        2 => Body::Ack(Ack {
            echo_ns: fields.u64()?,
            stream: fields.u32()?,
            next: fields.u64()?,
            later: fields.u64()?,
            window: fields.u32()?,
        }),
        3 => {
            let (stream, sequence) = (fields.u32()?, fields.u64()?);
            Body::Data { stream, sequence, records: std::mem::take(&mut fields.0) }
        }
        _ => return Err(Fault::Malformed),
    };
    if fields.0.is_empty() { Ok((header, body)) } else { Err(Fault::Malformed) }
}

/// Append a record; it has at most 255 bytes.
pub(crate) fn write_record(channel: u8, content: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(length) = u8::try_from(content.len()) else { return false };
    out.extend([channel, length]);
    out.extend(content);
    true
}

/// The first record and what is behind it; `None` when it is cut.
pub(crate) fn read_record(records: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[channel, length], rest) = records.split_first_chunk()?;
    let (content, rest) = rest.split_at_checked(length.into())?;
    Some((channel, content, rest))
}

/// Bytes that are read from the front.
struct Fields<'d>(&'d [u8]);

impl<'d> Fields<'d> {
    fn reference<const N: usize>(&mut self) -> Result<&'d [u8; N], Fault> {
        let (field, rest) = self.0.split_first_chunk().ok_or(Fault::Malformed)?;
        self.0 = rest;
        Ok(field)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.reference().copied()
    }

    fn u32(&mut self) -> Result<u32, Fault> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Fault> {
        self.take().map(u64::from_be_bytes)
    }
}

//! Classic pcap files (draft-ietf-opsawg-pcap): a reader that no file can surprise, and a writer.
//!
//! Both byte orders, micro- and nanoseconds. Errors say at which byte of the file they arose.

use std::io::{self, Read, Write};
use std::path::Path;

/// LINKTYPE_ETHERNET.
pub const LINK_ETHERNET: u32 = 1;
/// LINKTYPE_RAW: IPv4 or IPv6 without layer 2.
pub const LINK_RAW: u32 = 101;
/// The longest record that a reader accepts, bytes; what tcpdump writes at most.
pub const RECORD_BYTES_MAX: usize = 262_144;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const MAGIC_PCAPNG: u32 = 0x0a0d_0d0a;
const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PcapError {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Another kind of file.
    #[error("not a pcap file: it begins with {0:08x}, a pcap file with a1b2c3d4 or a1b23c4d")]
    Magic(u32),
    /// The newer format.
    #[error("a pcapng file, not a classic pcap file: `editcap -F pcap IN OUT` converts it")]
    PcapNg,
    /// A version that nobody has defined.
    #[error("pcap version {0}.{1} at byte 4; only 2.x is known")]
    Version(u16, u16),
    /// The file ends inside something.
    #[error("the file ends inside a {what} that begins at byte {offset}")]
    Truncated {
        /// What was cut.
        what: &'static str,
        /// Where it begins.
        offset: u64,
    },
    /// A length that cannot be.
    #[error(
        "the record at byte {offset} claims {length} bytes; at most {RECORD_BYTES_MAX} are accepted"
    )]
    TooLong {
        /// Where the record begins.
        offset: u64,
        /// What it claims.
        length: u32,
    },
}

/// One packet of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PcapRecord {
    /// When it was seen, nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// Bytes that it had; more than `bytes` when it was cut.
    pub original_bytes: u32,
    /// What is left of it.
    pub bytes: Vec<u8>,
}

/// Reads a classic pcap file, record by record.
pub struct PcapReader<R> {
    input: R,
    big_endian: bool,
    /// Nanoseconds in the unit of the fraction.
    fraction_ns: u64,
    link_type: u32,
    offset: u64,
}

impl PcapReader<io::BufReader<std::fs::File>> {
    /// Open a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no pcap file of a known form.
    pub fn open(path: &Path) -> Result<Self, PcapError> {
        PcapReader::new(io::BufReader::new(std::fs::File::open(path)?))
    }
}

impl<R: Read> PcapReader<R> {
    /// Read the file's header.
    ///
    /// # Errors
    /// The header cannot be read, or is not that of a pcap file.
    pub fn new(mut input: R) -> Result<PcapReader<R>, PcapError> {
        let mut header = [0; FILE_HEADER_BYTES];
        let got = read_up_to(&mut input, &mut header)?;
        let magic = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let known = |magic| matches!(magic, MAGIC_MICROSECONDS | MAGIC_NANOSECONDS);
        let big_endian = known(magic.swap_bytes());
        match magic {
            MAGIC_PCAPNG if got >= 4 => return Err(PcapError::PcapNg),
            _ if got >= 4 && !known(magic) && !big_endian => {
                return Err(PcapError::Magic(magic.swap_bytes()));
            }
            _ if got < FILE_HEADER_BYTES => {
                return Err(PcapError::Truncated { what: "file header", offset: 0 });
            }
            _ => {}
        }
        let magic = if big_endian { magic.swap_bytes() } else { magic };
        let mut reader = PcapReader {
            input,
            big_endian,
            fraction_ns: if magic == MAGIC_NANOSECONDS { 1 } else { 1000 },
            link_type: 0,
            offset: FILE_HEADER_BYTES as u64,
        };
        let (major, minor) = (reader.u16_at(&header, 4), reader.u16_at(&header, 6));
        if major != 2 {
            return Err(PcapError::Version(major, minor));
        }
        // The upper bits tell of FCS bytes (§4); they do not change the type.
        reader.link_type = reader.u32_at(&header, 20) & 0xffff;
        Ok(reader)
    }

    fn u16_at(&self, bytes: &[u8], at: usize) -> u16 {
        let word = [bytes[at], bytes[at + 1]];
        if self.big_endian { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) }
    }

    fn u32_at(&self, bytes: &[u8], at: usize) -> u32 {
        let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }

    /// What the packets begin with: [`LINK_ETHERNET`], [`LINK_RAW`], …
    pub fn link_type(&self) -> u32 {
        self.link_type
    }

    /// Read the next packet into `record`; false at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read, ends inside of a record, or a record is longer than a packet can
    /// be.
    pub fn read_into(&mut self, record: &mut PcapRecord) -> Result<bool, PcapError> {
        let mut header = [0; RECORD_HEADER_BYTES];
        let offset = self.offset;
        match read_up_to(&mut self.input, &mut header)? {
            0 => return Ok(false),
            RECORD_HEADER_BYTES => {}
            _ => return Err(PcapError::Truncated { what: "record header", offset }),
        }
        let length = self.u32_at(&header, 8);
        if length as usize > RECORD_BYTES_MAX {
            return Err(PcapError::TooLong { offset, length });
        }
        let seconds = u64::from(self.u32_at(&header, 0));
        let fraction = u64::from(self.u32_at(&header, 4));
        record.at_unix_ns = seconds * 1_000_000_000 + fraction * self.fraction_ns;
        record.original_bytes = self.u32_at(&header, 12);
        record.bytes.resize(length as usize, 0);
        if read_up_to(&mut self.input, &mut record.bytes)? != length as usize {
            return Err(PcapError::Truncated { what: "record", offset });
        }
        self.offset += RECORD_HEADER_BYTES as u64 + u64::from(length);
        Ok(true)
    }
}

impl<R: Read> Iterator for PcapReader<R> {
    type Item = Result<PcapRecord, PcapError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut record = PcapRecord::default();
        match self.read_into(&mut record) {
            Ok(true) => Some(Ok(record)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// As much as there is, up to the size of `into`.
fn read_up_to(input: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match input.read(&mut into[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// Writes a classic pcap file with nanoseconds, in little endian.
pub struct PcapWriter<W: Write> {
    out: W,
}

impl<W: Write> PcapWriter<W> {
    /// Write the file's header.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn new(mut out: W, link_type: u32) -> io::Result<PcapWriter<W>> {
        out.write_all(&MAGIC_NANOSECONDS.to_le_bytes())?;
        out.write_all(&2u16.to_le_bytes())?;
        out.write_all(&4u16.to_le_bytes())?;
        out.write_all(&[0; 8])?;
        out.write_all(&(RECORD_BYTES_MAX as u32).to_le_bytes())?;
        out.write_all(&link_type.to_le_bytes())?;
        Ok(PcapWriter { out })
    }

    /// Go on with a file that has its header already: nanoseconds, little endian.
    pub fn append(out: W) -> PcapWriter<W> {
        PcapWriter { out }
    }

    /// Write a packet.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn write(&mut self, at_unix_ns: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_segments(at_unix_ns, bytes.len() as u32, std::iter::once(bytes))
    }

    /// Write a packet that lies in pieces. `original_bytes` is its own length; the pieces may hold
    /// less (the packet is cut) but not more than [`RECORD_BYTES_MAX`].
    ///
    /// # Errors
    /// `out` cannot be written, or the segments are longer than a record can be.
    pub fn write_segments<'a>(
        &mut self,
        at_unix_ns: u64,
        original_bytes: u32,
        segments: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> io::Result<()> {
        let length: usize = segments.clone().map(<[u8]>::len).sum();
        if length > RECORD_BYTES_MAX {
            return Err(io::Error::other(format!(
                "a packet of {length} bytes is too long for a pcap file"
            )));
        }
        let mut header = [0; RECORD_HEADER_BYTES];
        header[..4].copy_from_slice(&((at_unix_ns / 1_000_000_000) as u32).to_le_bytes());
        header[4..8].copy_from_slice(&((at_unix_ns % 1_000_000_000) as u32).to_le_bytes());
        header[8..12].copy_from_slice(&(length as u32).to_le_bytes());
        header[12..].copy_from_slice(&original_bytes.to_le_bytes());
        self.out.write_all(&header)?;
        segments.into_iter().try_for_each(|segment| self.out.write_all(segment))
    }

    /// Write out what is buffered.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// What it writes to.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// The file behind it.
    pub fn into_inner(self) -> W {
        self.out
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn written(packets: &[&[u8]]) -> Vec<u8> {
        let mut writer = PcapWriter::new(Vec::new(), LINK_ETHERNET).expect("header");
        for (number, bytes) in packets.iter().enumerate() {
            writer.write(1_700_000_000_123_456_789 + number as u64, bytes).expect("record");
        }
        writer.into_inner()
    }

    fn read(file: &[u8]) -> Result<Vec<PcapRecord>, PcapError> {
        PcapReader::new(file)?.collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let records = read(&written(&[b"first", b"", &[7; 9000]])).expect("records");
        assert_eq!(records.iter().map(|r| r.bytes.len()).collect::<Vec<_>>(), [5, 0, 9000]);
        assert_eq!(records[0].bytes, b"first");
        assert_eq!(records[1].at_unix_ns, 1_700_000_000_123_456_790);
        assert_eq!(records[2].original_bytes, 9000);
    }

    #[test]
    fn big_endian_and_microseconds_are_understood() {
        let mut file = Vec::new();
        for word in [MAGIC_MICROSECONDS, 0x0002_0004, 0, 0, 65535, LINK_RAW, 3, 5, 2, 60] {
            file.extend(word.to_be_bytes());
        }
        file.extend(b"ab");
        let reader = PcapReader::new(&file[..]).expect("header");
        assert_eq!(reader.link_type(), LINK_RAW);
        let records = read(&file).expect("records");
        assert_eq!(
            records[0],
            PcapRecord { at_unix_ns: 3_000_005_000, original_bytes: 60, bytes: b"ab".into() }
        );
    }

    #[test]
    fn every_cut_of_a_file_is_an_error_that_names_the_place_or_a_clean_end() {
        let file = written(&[b"first", b"second"]);
        let ends = [24, 24 + 16 + 5, file.len()];
        for cut in 0..file.len() {
            match read(&file[..cut]) {
                Ok(_) => assert!(ends.contains(&cut), "{cut}"),
                Err(PcapError::Truncated { offset, .. }) => {
                    assert!([0, 24, 45].contains(&offset), "{cut}")
                }
                Err(other) => panic!("{cut}: {other}"),
            }
        }
    }

    #[test]
    fn a_lying_length_does_not_make_us_allocate() {
        let mut file = written(&[b"first"]);
        file[24 + 8..24 + 12].fill(0xff);
        let error = read(&file).expect_err("too long").to_string();
        assert!(error.contains("byte 24 claims 4294967295"), "{error}");
    }

    #[test]
    fn other_files_are_refused_by_name() {
        assert!(matches!(read(b"\x0a\x0d\x0d\x0a and more"), Err(PcapError::PcapNg)));
        assert!(matches!(read(b"hello, this is no pcap file"), Err(PcapError::Magic(_))));
        assert!(matches!(read(b""), Err(PcapError::Truncated { offset: 0, .. })));
        let mut file = written(&[]);
        file[4] = 9;
        assert!(matches!(read(&file), Err(PcapError::Version(9, 4))));
    }
}

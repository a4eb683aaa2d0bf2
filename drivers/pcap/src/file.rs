//! The files: read whole before the interface exists, continued where they end.

use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};
use std::path::Path;

use quiver_control::Access;
use quiver_core::pcap_file::{
    LINK_ETHERNET, LINK_RAW, PcapError, PcapReader, PcapRecord, PcapWriter,
};

use crate::config::{PACKET_BYTES_MAX, PcapDriverError, RX_BYTES_MAX, RX_PACKETS_MAX};

/// All packets of a file.
#[derive(Debug)]
pub(crate) struct Packets {
    bytes: Vec<u8>,
    /// Where each packet ends in `bytes`.
    ends: Vec<usize>,
    pub(crate) link_type: u32,
}

impl Packets {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A packet by its place from 0; nothing behind the last.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let start =
            index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(index).and_then(|end| self.bytes.get(start..*end)).unwrap_or_default()
    }

    /// Read a file to its end. Every fault is found now, with its place in the file.
    pub(crate) fn read(access: &Access, path: &Path) -> Result<Packets, PcapDriverError> {
        let name = path.display().to_string();
        let file = access.open_to_read(path).map_err(PcapDriverError::File)?;
        Packets::read_from(BufReader::new(file), &name)
    }

    fn read_from(input: impl Read, name: &str) -> Result<Packets, PcapDriverError> {
        let path = || name.to_owned();
        let wrong = |source| PcapDriverError::Format { path: name.to_owned(), source };
        let mut reader = PcapReader::new(input).map_err(wrong)?;
        let link_type = reader.link_type();
        if !matches!(link_type, LINK_ETHERNET | LINK_RAW) {
            return Err(PcapDriverError::LinkType { path: path(), link_type });
        }
        let mut packets = Packets { bytes: Vec::new(), ends: Vec::new(), link_type };
        let mut record = PcapRecord::default();
        while reader.read_into(&mut record).map_err(wrong)? {
            let (number, length) = (packets.len() + 1, record.bytes.len());
            match length {
                0 => return Err(PcapDriverError::PacketEmpty { path: path(), number }),
                _ if length > PACKET_BYTES_MAX => {
                    return Err(PcapDriverError::PacketTooLong { path: path(), number, length });
                }
                _ if packets.bytes.len() + length > RX_BYTES_MAX || number > RX_PACKETS_MAX => {
                    return Err(PcapDriverError::TooLarge(path()));
                }
                _ => {}
            }
            packets.bytes.extend_from_slice(&record.bytes);
            packets.ends.push(packets.bytes.len());
        }
        if packets.ends.is_empty() { Err(PcapDriverError::Empty(path())) } else { Ok(packets) }
    }
}

fn io_error(path: &Path) -> impl Fn(std::io::Error) -> PcapDriverError {
    let path = path.display().to_string();
    move |source| PcapDriverError::Io { path: path.clone(), source }
}

/// Open a file to write packets of `link_type` at its end. A new one gets its header; an old one
/// must be whole and have the same.
pub(crate) fn open_to_append(
    access: &Access,
    path: &Path,
    link_type: u32,
) -> Result<File, PcapDriverError> {
    let io = io_error(path);
    let header = PcapWriter::new(Vec::new(), link_type).map_err(&io)?.into_inner();
    let Some(mut file) = access.open_to_continue(path).map_err(PcapDriverError::File)? else {
        let mut new = access.create(path).map_err(PcapDriverError::File)?;
        new.file().write_all(&header).map_err(&io)?;
        return new.finish().map_err(PcapDriverError::File);
    };
    let length = file.metadata().map_err(&io)?.len();
    if length == 0 {
        file.write_all(&header).map_err(&io)?;
        return Ok(file);
    }
    let name = path.display().to_string();
    let mut found = vec![0; header.len()];
    let readable = file.read_exact(&mut found).is_ok();
    if !readable || found != header {
        return Err(PcapDriverError::OtherFormat(name));
    }
    let wrong = |source: PcapError| PcapDriverError::Format { path: name.clone(), source };
    file.rewind().map_err(&io)?;
    let mut reader = PcapReader::new(BufReader::new(&file)).map_err(wrong)?;
    let mut record = PcapRecord::default();
    while reader.read_into(&mut record).map_err(wrong)? {}
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(link_type: u32, packets: &[&[u8]]) -> Vec<u8> {
        let mut writer = PcapWriter::new(Vec::new(), link_type).expect("header");
        packets.iter().for_each(|bytes| writer.write(1, bytes).expect("record"));
        writer.into_inner()
    }

    fn refused(file: &[u8]) -> String {
        Packets::read_from(file, "file.pcap").expect_err("must be refused").to_string()
    }

    #[test]
    fn packets_lie_one_behind_the_other() {
        let packets =
            Packets::read_from(&written(LINK_RAW, &[b"one", b"three"])[..], "f").expect("packets");
        assert_eq!((packets.len(), packets.link_type), (2, LINK_RAW));
        assert_eq!(packets.get(0), b"one");
        assert_eq!(packets.get(1), b"three");
        assert_eq!(packets.get(2), b"");
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_the_place() {
        assert!(refused(&written(LINK_ETHERNET, &[])).contains("file.pcap holds no packets"));
        assert!(refused(&written(113, &[b"x"])).contains("link type 113"));
        assert!(refused(&written(LINK_ETHERNET, &[b"x", b""])).contains("packet 2 has no bytes"));
        let long = vec![0; PACKET_BYTES_MAX + 1];
        assert!(refused(&written(LINK_ETHERNET, &[&long])).contains("packet 1 has 65601 bytes"));
        let file = written(LINK_ETHERNET, &[b"whole", b"cut"]);
        let message = refused(&file[..file.len() - 1]);
        assert!(message.contains("file.pcap") && message.contains("byte 45"), "{message}");
        assert!(refused(b"GIF89a, not packets, really").contains("not a pcap file"));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(change in 0usize..80, to: u8, cut in 0usize..80) {
            let mut file = written(LINK_ETHERNET, &[b"first", b"second"]);
            if let Some(byte) = file.get_mut(change) {
                *byte = to;
            }
            file.truncate(cut.max(1));
            let _ = Packets::read_from(&file[..], "file");
        }
    }
}

//! Packets of a recording: read from a pcap or pcapng file, with their times.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapNGReader};
use quiver_core::pcap_file::{LINK_ETHERNET, PcapError, PcapReader, PcapRecord};

use crate::profile::FRAME_BYTES_MAX;

/// Packets of a recording.
pub const PACKETS_MAX: usize = 1 << 22;
/// Bytes of all packets of a recording.
pub const RECORDING_BYTES_MAX: usize = 1 << 29;
/// Bytes that the reader of pcapng holds at once; no block is longer.
const BLOCK_BYTES_MAX: usize = 1 << 20;
/// Units of a second in which times are counted unless an interface says otherwise.
const RESOLUTION_DEFAULT: u64 = 1_000_000;
/// The shortest frame: an Ethernet header.
const PACKET_BYTES_MIN: usize = 14;

/// All packets of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// One after the other.
    pub packets: Vec<Vec<u8>>,
    /// By packet, nanoseconds behind the first one; never going back.
    pub times_ns: Vec<u64>,
    first_unix_ns: u64,
    bytes: usize,
}

impl Recording {
    /// Read a pcap or pcapng file to its end.
    ///
    /// # Errors
    /// When it is no regular file, no capture of Ethernet, or holds a packet that cannot be sent;
    /// the message names the packet.
    pub fn read(path: &Path) -> Result<Recording, String> {
        if !std::fs::metadata(path).map_err(|error| error.to_string())?.is_file() {
            return Err("it is not a file".to_owned());
        }
        let recording = match PcapReader::open(path) {
            Ok(reader) => Recording::of_classic(reader),
            Err(PcapError::PcapNg) => {
                let file = File::open(path).map_err(|error| error.to_string())?;
                Recording::of_next_generation(BufReader::new(file))
            }
            Err(error) => Err(error.to_string()),
        }?;
        if recording.packets.is_empty() {
            return Err("it holds no packets".to_owned());
        }
        Ok(recording)
    }

    fn of_classic<R: std::io::Read>(mut reader: PcapReader<R>) -> Result<Recording, String> {
        if reader.link_type() != LINK_ETHERNET {
            return Err(wrong_link(reader.link_type() as i32));
        }
        let (mut recording, mut record) = (Recording::default(), PcapRecord::default());
        while reader.read_into(&mut record).map_err(|error| error.to_string())? {
            recording.add(record.at_unix_ns, &record.bytes)?;
        }
        Ok(recording)
    }

    fn of_next_generation<R: std::io::Read>(input: R) -> Result<Recording, String> {
        let broken = |error: &dyn std::fmt::Debug| format!("not a whole pcapng file: {error:?}");
        let mut reader =
            PcapNGReader::new(BLOCK_BYTES_MAX, input).map_err(|error| broken(&error))?;
        let mut recording = Recording::default();
        // By interface: its link type, and in which units of a second its times are counted.
        let mut interfaces: Vec<(Linktype, u64)> = Vec::new();
        loop {
            let taken = match reader.next() {
                Ok((taken, PcapBlockOwned::NG(block))) => {
                    match &block {
                        Block::SectionHeader(_) => interfaces.clear(),
                        Block::InterfaceDescription(interface) => {
                            let resolution =
                                interface.ts_resolution().unwrap_or(RESOLUTION_DEFAULT).max(1);
                            interfaces.push((interface.linktype, resolution));
                        }
                        Block::EnhancedPacket(packet) => {
                            let known = interfaces.get(packet.if_id as usize).copied();
                            let (link, resolution) =
                                known.ok_or("a packet of an interface that is not described")?;
                            let units =
                                u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
                            let at_unix_ns = units * 1_000_000_000 / u128::from(resolution);
                            recording.add_linked(link, at_unix_ns as u64, packet.packet_data())?;
                        }
                        Block::SimplePacket(packet) => {
                            let (link, _) =
                                interfaces.first().ok_or("a packet without an interface")?;
                            let at_unix_ns = recording.last_unix_ns();
                            recording.add_linked(*link, at_unix_ns, packet.packet_data())?;
                        }
                        _ => {}
                    }
                    Some(taken)
                }
                Ok((taken, _)) => Some(taken),
                Err(pcap_parser::PcapError::Eof) => return Ok(recording),
                Err(pcap_parser::PcapError::Incomplete(_)) => None,
                Err(error) => return Err(broken(&error)),
            };
            match taken {
                Some(taken) => reader.consume(taken),
                None if reader.reader_exhausted() => return Err(broken(&"it ends inside a block")),
                None => reader.refill().map_err(|error| broken(&error))?,
            }
        }
    }

    fn last_unix_ns(&self) -> u64 {
        self.first_unix_ns + self.times_ns.last().copied().unwrap_or(0)
    }

    fn add_linked(&mut self, link: Linktype, at_unix_ns: u64, bytes: &[u8]) -> Result<(), String> {
        if link != Linktype::ETHERNET {
            return Err(wrong_link(link.0));
        }
        self.add(at_unix_ns, bytes)
    }

    fn add(&mut self, at_unix_ns: u64, bytes: &[u8]) -> Result<(), String> {
        let number = self.packets.len() + 1;
        if !(PACKET_BYTES_MIN..=FRAME_BYTES_MAX).contains(&bytes.len()) {
            let length = bytes.len();
            return Err(format!(
                "packet {number} has {length} bytes; a frame has {PACKET_BYTES_MIN} to \
                 {FRAME_BYTES_MAX}"
            ));
        }
        self.bytes += bytes.len();
        if number > PACKETS_MAX || self.bytes > RECORDING_BYTES_MAX {
            return Err(format!(
                "it has more than {PACKETS_MAX} packets or {RECORDING_BYTES_MAX} bytes"
            ));
        }
        if self.packets.is_empty() {
            self.first_unix_ns = at_unix_ns;
        }
        let before = self.times_ns.last().copied().unwrap_or(0);
        self.times_ns.push(at_unix_ns.saturating_sub(self.first_unix_ns).max(before));
        self.packets.push(bytes.to_vec());
        Ok(())
    }
}

fn wrong_link(link_type: i32) -> String {
    format!("its packets are of link type {link_type}; Ethernet (1) can be sent")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quiver_core::pcap_file::PcapWriter;

    const PACKETS: [&[u8]; 2] = [&[1; 20], &[2; 33]];

    /// A pcapng block (draft-ietf-opsawg-pcapng §3.1).
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let length = (12 + padded) as u32;
        let mut bytes = [kind.to_le_bytes(), length.to_le_bytes()].concat();
        bytes.extend(body);
        bytes.resize(8 + padded, 0);
        bytes.extend(length.to_le_bytes());
        bytes
    }

    fn next_generation() -> Vec<u8> {
        let mut file = block(
            0x0a0d_0d0a,
            &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255],
        );
        // Ethernet, nanoseconds.
        file.extend(block(1, &[1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]));
        for (number, packet) in PACKETS.iter().enumerate() {
            let mut body = [0u32, 1, number as u32 * 700, packet.len() as u32, packet.len() as u32]
                .map(u32::to_le_bytes)
                .concat();
            body.extend(*packet);
            file.extend(block(6, &body));
        }
        file
    }

    fn classic() -> Vec<u8> {
        let mut writer = PcapWriter::new(Vec::new(), LINK_ETHERNET).expect("header");
        for (number, packet) in PACKETS.iter().enumerate() {
            writer.write(5_000 + number as u64 * 700, packet).expect("record");
        }
        writer.into_inner()
    }

    fn read(file: &[u8], name: &str) -> Result<Recording, String> {
        let path = std::env::temp_dir().join(format!("quiver-tg-{name}-{}", std::process::id()));
        std::fs::write(&path, file).expect("write");
        let recording = Recording::read(&path);
        std::fs::remove_file(&path).expect("remove");
        recording
    }

    #[test]
    fn both_formats_give_the_same_packets_at_the_same_times() {
        for (file, name) in [(classic(), "classic"), (next_generation(), "next-generation")] {
            let recording = read(&file, name).expect(name);
            assert_eq!(recording.packets, PACKETS);
            assert_eq!(recording.times_ns, [0, 700], "{name}");
        }
    }

    #[test]
    fn what_cannot_be_sent_is_told() {
        assert!(read(&classic()[..24], "empty").expect_err("empty").contains("no packets"));
        assert!(
            read(b"GIF89a, not packets, really", "gif")
                .expect_err("gif")
                .contains("not a pcap file")
        );
        let file = next_generation();
        assert!(
            read(&file[..file.len() - 3], "cut")
                .expect_err("cut")
                .contains("not a whole pcapng file")
        );
        assert!(
            Recording::read(Path::new("/dev/null")).expect_err("device").contains("not a file")
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(change in 0usize..200, to: u8, cut in 1usize..200) {
            let mut file = next_generation();
            if let Some(byte) = file.get_mut(change) {
                *byte = to;
            }
            file.truncate(cut);
            let _ = Recording::of_next_generation(&file[..]);
        }
    }
}

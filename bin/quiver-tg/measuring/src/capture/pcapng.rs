//! Captures as files: pcapng (draft-ietf-opsawg-pcapng) with nanoseconds, little endian.

use quiver_tg_traffic::profile::capture::CapturedDirection;
use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const LINK_ETHERNET: u16 = 1;
/// Option codes: §3.5, §4.1, §4.2, §4.3.
const END_OF_OPTIONS: u16 = 0;
const USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_FILTER: u16 = 11;
const TIME_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

fn option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    block.extend(code.to_le_bytes());
    block.extend((value.len() as u16).to_le_bytes());
    block.extend(value);
    block.resize(block.len().next_multiple_of(4), 0);
}

/// Write a block: its type, its length, what is in it, its length again (§3.1).
fn write_block(out: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&length)?;
    out.write_all(body)?;
    out.write_all(&length)
}

/// Write the beginning of a file: the section, and its one interface.
///
/// # Errors
/// When `out` fails.
pub fn write_head(
    out: &mut impl Write,
    name: &str,
    filter: &str,
    snap_bytes: usize,
) -> io::Result<()> {
    let mut section = Vec::new();
    section.extend(BYTE_ORDER.to_le_bytes());
    section.extend([1, 0, 0, 0]); // version 1.0
    section.extend(u64::MAX.to_le_bytes()); // of unknown length
    option(
        &mut section,
        USER_APPLICATION,
        concat!("quiver-tg ", env!("CARGO_PKG_VERSION")).as_bytes(),
    );
    option(&mut section, END_OF_OPTIONS, &[]);
    write_block(out, SECTION_HEADER, &section)?;
    let mut interface = Vec::new();
    interface.extend(LINK_ETHERNET.to_le_bytes());
    interface.extend([0, 0]);
    interface.extend((snap_bytes as u32).to_le_bytes());
    option(&mut interface, INTERFACE_NAME, name.as_bytes());
    option(&mut interface, TIME_RESOLUTION, &[9]);
    if !filter.is_empty() {
        // 0: as libpcap has them
        let text: Vec<u8> = std::iter::once(0).chain(filter.bytes()).collect();
        option(&mut interface, INTERFACE_FILTER, &text);
    }
    option(&mut interface, END_OF_OPTIONS, &[]);
    write_block(out, INTERFACE_DESCRIPTION, &interface)
}

/// Write a frame of `original` bytes, of which `bytes` were captured. `block` is scratch space.
///
/// # Errors
/// When `out` fails.
pub fn write_frame(
    out: &mut impl Write,
    block: &mut Vec<u8>,
    at_unix_ns: u64,
    direction: CapturedDirection,
    original: u32,
    bytes: &[u8],
) -> io::Result<()> {
    block.clear();
    let words = [0, (at_unix_ns >> 32) as u32, at_unix_ns as u32, bytes.len() as u32, original];
    words.iter().for_each(|word| block.extend(word.to_le_bytes()));
    block.extend(bytes);
    block.resize(block.len().next_multiple_of(4), 0);
    let flags: u32 = if direction == CapturedDirection::Received { 1 } else { 2 };
    option(block, PACKET_FLAGS, &flags.to_le_bytes());
    option(block, END_OF_OPTIONS, &[]);
    write_block(out, ENHANCED_PACKET, block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_say_their_length_at_both_ends_and_follow_one_another() {
        let mut file = Vec::new();
        write_head(&mut file, "port 0", "udp", 2048).expect("head");
        let mut block = Vec::new();
        for length in [0usize, 60, 61, 62, 63] {
            let bytes = vec![7; length];
            write_frame(
                &mut file,
                &mut block,
                1_700_000_000_123_456_789,
                CapturedDirection::Sent,
                99,
                &bytes,
            )
            .expect("frame");
        }
        let mut rest = &file[..];
        let mut kinds = Vec::new();
        while !rest.is_empty() {
            let word =
                |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes"));
            let length = word(4) as usize;
            assert!(length.is_multiple_of(4));
            assert_eq!(word(length - 4) as usize, length);
            kinds.push(word(0));
            rest = &rest[length..];
        }
        assert_eq!(kinds[..2], [SECTION_HEADER, INTERFACE_DESCRIPTION]);
        assert_eq!(kinds[2..], [ENHANCED_PACKET; 5]);
    }
}

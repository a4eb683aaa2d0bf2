//! What is kept of a version, and the seal around it.
//!
//! A file is a line with the seal, and what it seals: `quiver-configuration 1 CRC32 BYTES`. A
//! version's file seals a line of JSON ([`Version`]), the commands, and the document that they were
//! written as, where they were, as it was applied, comments too.

use serde::{Deserialize, Serialize};

/// The first word of a seal.
const SEAL: &str = "quiver-configuration";

/// The form of files that this router writes.
const FORM: &str = "1";

/// A seal is at most so long, bytes.
pub(super) const SEAL_BYTES_MAX: usize = 64;

/// A message is at most so long, bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1024;

/// A configuration that was applied or saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Counted from 1, never given twice.
    pub number: u32,
    /// When, in seconds since 1970.
    pub when_s: u64,
    /// By whom: the user at the other end of the socket, as `root (uid 0)`.
    pub who: String,
    /// What its author said about it.
    pub message: String,
    /// The language of the text: `commands`.
    pub language: String,
    /// Bytes of the YAML document behind the text that says the same; 0 when there is none.
    #[serde(default)]
    pub document_bytes: usize,
}

/// The language of commands, one a line.
pub(crate) const COMMANDS: &str = "commands";

/// A version that waits for its confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) version: u32,
    /// Until when, in seconds since 1970.
    pub(crate) until_s: u64,
}

/// Which of the versions is which: the file that makes a version the one to start with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Current {
    /// The version that the router starts with.
    pub(crate) saved: Option<u32>,
    /// The last number that was given.
    pub(crate) last: u32,
    pub(crate) waiting: Option<Waiting>,
    /// Versions that were not confirmed.
    pub(crate) returned: Vec<u32>,
}

/// What a seal says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seal {
    crc: u32,
    pub(super) bytes: usize,
    /// Where the sealed text begins.
    pub(super) start: usize,
}

/// Seal a text.
pub(super) fn sealed(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    format!("{SEAL} {FORM} {:08x} {}\n{text}", crc32(bytes), bytes.len()).into_bytes()
}

/// Read the seal at the beginning of a file.
pub(super) fn seal_of(file: &[u8]) -> Result<Seal, String> {
    let head = &file[..file.len().min(SEAL_BYTES_MAX)];
    let end = head.iter().position(|byte| *byte == b'\n').ok_or("it has no seal")?;
    let line = str::from_utf8(&head[..end]).map_err(|_| "it has no seal")?;
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        [SEAL, FORM, crc, bytes] => {
            let crc = u32::from_str_radix(crc, 16).map_err(|_| "its seal is damaged")?;
            let bytes = bytes.parse().map_err(|_| "its seal is damaged")?;
            Ok(Seal { crc, bytes, start: end + 1 })
        }
        [SEAL, form, ..] => Err(format!("its form is {form}, and this router reads {FORM}")),
        _ => Err("it has no seal".to_owned()),
    }
}

/// The sealed text of a whole file.
pub(super) fn opened(file: &[u8]) -> Result<&str, String> {
    let seal = seal_of(file)?;
    let bytes = &file[seal.start..];
    if bytes.len() != seal.bytes || crc32(bytes) != seal.crc {
        return Err("it is damaged: its sum is another".to_owned());
    }
    str::from_utf8(bytes).map_err(|_| "it is no text".to_owned())
}

/// CRC-32 of IEEE 802.3.
fn crc32(bytes: &[u8]) -> u32 {
    let mut table = [0u32; 256];
    for (at, entry) in (0u32..).zip(&mut table) {
        *entry = (0..8).fold(at, |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()));
    }
    let step = |crc: u32, byte: &u8| (crc >> 8) ^ table[((crc ^ u32::from(*byte)) & 0xff) as usize];
    !bytes.iter().fold(u32::MAX, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_ieee_802_3() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn what_is_sealed_is_opened_and_a_change_anywhere_is_found() {
        let file = sealed("{}\nip table add 7\n");
        assert_eq!(opened(&file).unwrap(), "{}\nip table add 7\n");
        for at in 0..file.len() {
            let mut changed = file.clone();
            changed[at] ^= 1;
            assert!(opened(&changed).is_err(), "byte {at}");
            assert!(opened(&file[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn no_bytes_make_the_reader_of_seals_panic() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let _ = opened(bytes);
            let begun = [format!("{SEAL} {FORM} ").as_bytes(), bytes].concat();
            let _ = opened(&begun);
        });
    }
}

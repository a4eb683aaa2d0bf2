//! What follows the headers.

use super::TextError;
use super::words::Tokens;

/// Longest payload, bytes.
const PAYLOAD_BYTES_MAX: u64 = 65_535;

/// The bytes behind the headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// None; padding up to the size is zero.
    None,
    /// 0, 1, 2, … 255, 0, … so many of them; padding goes on counting.
    Incrementing(usize),
    /// These; padding is zero.
    Bytes(Vec<u8>),
}

impl Payload {
    /// How many bytes it has by itself.
    pub fn bytes(&self) -> usize {
        match self {
            Payload::None => 0,
            Payload::Incrementing(count) => *count,
            Payload::Bytes(bytes) => bytes.len(),
        }
    }

    /// The byte at `index`, which may lie behind its end.
    pub(super) fn at(&self, index: usize) -> u8 {
        match self {
            Payload::None => 0,
            Payload::Incrementing(_) => index as u8,
            Payload::Bytes(bytes) => bytes.get(index).copied().unwrap_or(0),
        }
    }
}

/// `incrementing N`, `zero N`, `hex 0x… [0x… …]`, or nothing.
pub(super) fn parse(words: &mut Tokens<'_>) -> Result<Payload, TextError> {
    if words.take("incrementing") {
        return Ok(Payload::Incrementing(
            words.number("the count of bytes", PAYLOAD_BYTES_MAX)? as usize
        ));
    }
    if words.take("zero") {
        let count = words.number("the count of bytes", PAYLOAD_BYTES_MAX)? as usize;
        return Ok(Payload::Bytes(vec![0; count]));
    }
    if !words.take("hex") {
        return Ok(Payload::None);
    }
    let mut bytes = Vec::new();
    let mut word = words.need("the hexadecimal digits")?;
    loop {
        let digits = word.text.strip_prefix("0x").unwrap_or(word.text);
        if digits.is_empty()
            || digits.len() % 2 != 0
            || !digits.bytes().all(|b| b.is_ascii_hexdigit())
        {
            return Err(
                word.wrong("bytes are an even number of hexadecimal digits, with or without 0x")
            );
        }
        for at in (0..digits.len()).step_by(2) {
            bytes.extend(u8::from_str_radix(&digits[at..at + 2], 16));
        }
        if bytes.len() > PAYLOAD_BYTES_MAX as usize {
            return Err(word.wrong(format!("a payload has at most {PAYLOAD_BYTES_MAX} bytes")));
        }
        match words.next() {
            Some(next) => word = next,
            None => return Ok(Payload::Bytes(bytes)),
        }
    }
}

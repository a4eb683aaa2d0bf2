//! Masks, and what packets must have under them, in the words of commands.

use std::fmt::{self, Write as _};
use std::str::SplitAsciiWhitespace;

use quiver_wire::EtherType;

use crate::field::{FIELDS, Field, Group};
use crate::key::{Form, KEY_BYTES, Key, VECTOR_BYTES, bytes_of, key_of, masked};

/// Bytes of a frame that a mask may pass over at most.
const SKIP_BYTES_MAX: usize = 16 * VECTOR_BYTES;

/// Why words are no mask, or no match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {remedy}")]
pub struct Mistake {
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub remedy: &'static str,
}

const MASK_REMEDY: &str = "say hex and digits, or fields as in l3 ip4 src dst proto l4 dst_port";
const MATCH_REMEDY: &str = "say hex and digits, or values as in l3 ip4 src 192.0.2.1";

fn mistake<T>(what: impl Into<String>, remedy: &'static str) -> Result<T, Mistake> {
    Err(Mistake { what: what.into(), remedy })
}

/// A field of a mask, and how many of its bits count.
#[derive(Clone, Copy, Debug)]
struct Masked {
    field: &'static Field,
    bits: usize,
}

/// Which bits of packets count.
#[derive(Clone, Debug)]
pub struct Mask {
    /// Which bytes they are bits of.
    pub form: Form,
    /// The bits.
    pub key: Key,
    fields: Vec<Masked>,
    l3: Option<Group>,
}

impl PartialEq for Mask {
    fn eq(&self, other: &Mask) -> bool {
        (self.form, self.key) == (other.form, other.key)
    }
}

/// The words of a mask or a match, one field after another.
struct FieldReader<'w> {
    words: SplitAsciiWhitespace<'w>,
    group: Option<Group>,
    l3: Option<Group>,
}

impl<'w> FieldReader<'w> {
    fn new(text: &'w str) -> FieldReader<'w> {
        FieldReader { words: text.split_ascii_whitespace(), group: None, l3: None }
    }

    /// The next word that names a field, and the word itself.
    fn field(
        &mut self,
        remedy: &'static str,
    ) -> Result<Option<(&'static Field, &'w str)>, Mistake> {
        loop {
            let Some(word) = self.words.next() else { return Ok(None) };
            match word {
                "l2" => self.group = Some(Group::L2),
                "l3" => {
                    let family = match self.words.next() {
                        Some("ip4") => Group::Ip4,
                        Some("ip6") => Group::Ip6,
                        _ => return mistake("l3 is followed by ip4 or ip6", remedy),
                    };
                    if self.l3.is_some_and(|l3| l3 != family) {
                        return mistake("a packet is ip4 or ip6, not both", remedy);
                    }
                    (self.group, self.l3) = (Some(family), Some(family));
                }
                "l4" if self.l3.is_none() => {
                    return mistake("l4 stands behind l3 ip4 or l3 ip6", remedy);
                }
                "l4" => self.group = Some(Group::L4),
                word => {
                    let name = word.split('/').next().unwrap_or_default();
                    let of = |field: &&Field| Some(field.group) == self.group && field.word == name;
                    return match FIELDS.iter().find(of) {
                        Some(field) => Ok(Some((field, word))),
                        None => mistake(format!("{word} is no field"), remedy),
                    };
                }
            }
        }
    }
}

/// The type of frames with packets of a family.
fn ether_type(l3: Group) -> [u8; 2] {
    let kind = if l3 == Group::Ip6 { EtherType::IPV6 } else { EtherType::IPV4 };
    kind.0.to_be_bytes()
}

/// Bytes from an even number of hexadecimal digits.
fn hex(text: &str, remedy: &'static str) -> Result<Vec<u8>, Mistake> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    match digits {
        Some(digits) if digits.len().is_multiple_of(2) && !digits.is_empty() => {
            Ok(digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect())
        }
        _ => mistake(format!("{text} is not an even number of hexadecimal digits"), remedy),
    }
}

impl Mask {
    /// Read a mask.
    ///
    /// # Errors
    /// The text is none.
    pub fn read(text: &str) -> Result<Mask, Mistake> {
        let mask = match text.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            ["hex", digits] => Mask::raw(&hex(digits, MASK_REMEDY)?)?,
            ["hex", ..] => return mistake("hex is followed by digits alone", MASK_REMEDY),
            _ => Mask::of_fields(text)?,
        };
        if mask.key == Key::default() {
            return mistake("the mask chooses no bits", MASK_REMEDY);
        }
        Ok(mask)
    }

    /// A mask of a frame's first bytes. Vectors of zeros in front are passed over.
    fn raw(bytes: &[u8]) -> Result<Mask, Mistake> {
        let (vectors, rest) = bytes.as_chunks::<VECTOR_BYTES>();
        let zeros = |vector: &&[u8; VECTOR_BYTES]| **vector == [0; VECTOR_BYTES];
        let mut skip_bytes = vectors.iter().take_while(zeros).count() * VECTOR_BYTES;
        if skip_bytes == bytes.len() - rest.len() && rest.iter().all(|byte| *byte == 0) {
            skip_bytes = 0;
        }
        let used = &bytes[skip_bytes..];
        let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        if skip_bytes > SKIP_BYTES_MAX || length.saturating_sub(skip_bytes) > KEY_BYTES {
            let what = format!("a mask has bits in {KEY_BYTES} bytes at most");
            return mistake(what, "begin behind at most 16 vectors of 16 bytes");
        }
        let mut key = [0; KEY_BYTES];
        key.iter_mut().zip(used).for_each(|(out, byte)| *out = *byte);
        let form = Form::Raw { skip_bytes: skip_bytes as u16 };
        Ok(Mask { form, key: key_of(&key), fields: Vec::new(), l3: None })
    }

    fn of_fields(text: &str) -> Result<Mask, Mistake> {
        let (mut words, mut fields) = (FieldReader::new(text), Vec::<Masked>::new());
        while let Some((field, word)) = words.field(MASK_REMEDY)? {
            if fields.iter().any(|other| std::ptr::eq(other.field, field)) {
                return mistake(format!("{word} is said twice"), MASK_REMEDY);
            }
            fields.push(Masked { field, bits: bits(field, word)? });
        }
        let mut mask = Mask { form: Form::Fields, key: Key::default(), fields, l3: words.l3 };
        let mut bytes = [0; KEY_BYTES];
        if mask.l3.is_some() {
            bytes[12..14].fill(0xff);
        }
        for Masked { field, bits } in &mask.fields {
            let at = field.at(mask.l3);
            for (place, byte) in bytes[at..at + field.bytes].iter_mut().enumerate() {
                let ones = bits.saturating_sub(8 * place).min(8) as u32;
                *byte = !(0xffu16 >> ones) as u8;
            }
        }
        mask.key = key_of(&bytes);
        Ok(mask)
    }

    /// Read what packets must have under the mask.
    ///
    /// # Errors
    /// The text is no match, or for other fields than those of the mask.
    pub fn read_match(&self, text: &str) -> Result<Key, Mistake> {
        let key = match text.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            ["hex", digits] => self.raw_match(&hex(digits, MATCH_REMEDY)?)?,
            ["hex", ..] => return mistake("hex is followed by digits alone", MATCH_REMEDY),
            _ => self.values(text)?,
        };
        Ok(masked(&key, &self.key))
    }

    fn raw_match(&self, bytes: &[u8]) -> Result<Key, Mistake> {
        let skip_bytes = match self.form {
            Form::Raw { skip_bytes } => skip_bytes.into(),
            Form::Fields => 0,
        };
        let mut key = [0; KEY_BYTES];
        let used = bytes.get(skip_bytes..).unwrap_or_default();
        key.iter_mut().zip(used).for_each(|(out, byte)| *out = *byte);
        if bytes.len() > skip_bytes + KEY_BYTES {
            return mistake("the match is longer than the mask", MATCH_REMEDY);
        }
        Ok(key_of(&key))
    }

    fn values(&self, text: &str) -> Result<Key, Mistake> {
        let (mut words, mut said) = (FieldReader::new(text), Vec::new());
        let mut bytes = [0; KEY_BYTES];
        while let Some((field, word)) = words.field(MATCH_REMEDY)? {
            if !self.fields.iter().any(|of| std::ptr::eq(of.field, field)) || word != field.word {
                return mistake(format!("the mask has no {word}"), "match the mask's fields");
            }
            let Some(value) = words.words.next().and_then(|text| field.read(text)) else {
                let what = format!("{word} is followed by {}", field.example());
                return mistake(what, MATCH_REMEDY);
            };
            let at = field.at(self.l3);
            bytes[at..at + field.bytes].copy_from_slice(&value);
            said.push(field);
        }
        let is_said = |of: &&Masked| said.iter().any(|field| std::ptr::eq(*field, of.field));
        if let Some(missing) = self.fields.iter().find(|of| !is_said(of)) {
            let (group, word) = (missing.field.group.words(), missing.field.word);
            return mistake(format!("{group} {word} is missing"), "match the mask's fields");
        }
        if words.l3 != self.l3 {
            return mistake("the mask is for another family", "match the mask's fields");
        }
        if let Some(l3) = self.l3 {
            bytes[12..14].copy_from_slice(&ether_type(l3));
        }
        Ok(key_of(&bytes))
    }

    /// A match of this mask, in words.
    pub fn write_match(&self, key: &Key) -> String {
        let bytes = bytes_of(key);
        match self.form {
            Form::Raw { skip_bytes } => hex_text(skip_bytes, &bytes, self.last()),
            Form::Fields => self.in_groups(|of| {
                let at = of.field.at(self.l3);
                let value = of.field.write(&bytes[at..at + of.field.bytes]);
                format!("{} {value}", of.field.word)
            }),
        }
    }

    /// Bytes of the key up to the last one with a bit.
    fn last(&self) -> usize {
        bytes_of(&self.key).iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
    }

    /// Fields, each as `write` says, behind the words of their groups.
    fn in_groups(&self, write: impl Fn(&Masked) -> String) -> String {
        let (mut text, mut group) = (String::new(), None);
        if let Some(l3) = self.l3
            && !self.fields.iter().any(|of| of.field.group == l3)
        {
            // A family without fields of its own.
            text += l3.words();
        }
        for field in &FIELDS {
            let Some(of) = self.fields.iter().find(|of| std::ptr::eq(of.field, field)) else {
                continue;
            };
            if group != Some(field.group) {
                group = Some(field.group);
                let space = if text.is_empty() { "" } else { " " };
                let _ = write!(text, "{space}{}", field.group.words());
            }
            let _ = write!(text, " {}", write(of));
        }
        text
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Raw { skip_bytes } => {
                f.write_str(&hex_text(skip_bytes, &bytes_of(&self.key), self.last()))
            }
            Form::Fields => {
                f.write_str(&self.in_groups(|of| match of.bits == of.field.bytes * 8 {
                    true => of.field.word.to_owned(),
                    false => format!("{}/{}", of.field.word, of.bits),
                }))
            }
        }
    }
}

fn hex_text(skip_bytes: u16, bytes: &[u8; KEY_BYTES], used: usize) -> String {
    let mut text = "hex ".to_owned() + &"00".repeat(skip_bytes.into());
    for byte in &bytes[..used] {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// How many bits of a field count: all, or as many as stand behind a slash.
fn bits(field: &Field, word: &str) -> Result<usize, Mistake> {
    let most = field.bytes * 8;
    match word.split_once('/') {
        None => Ok(most),
        Some((_, length)) if field.is_address() => match length.parse() {
            Ok(bits) if (1..=most).contains(&bits) => Ok(bits),
            _ => mistake(format!("{word}: a length from 1 to {most}"), MASK_REMEDY),
        },
        Some(_) => mistake(format!("{word}: only addresses have a length"), MASK_REMEDY),
    }
}

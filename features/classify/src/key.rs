//! The bytes of a packet that masks are laid on.

use std::sync::atomic::{AtomicU64, Ordering};

use quiver_wire::{EtherType, EthernetHeader, Header};

/// Bytes of a key: a mask of five vectors of 16 bytes.
pub const KEY_BYTES: usize = 80;
/// Words of a key.
pub const KEY_WORDS: usize = KEY_BYTES / 8;
/// Bytes that VPP counts masks by.
pub const VECTOR_BYTES: usize = 16;

/// Bytes of a packet, or of a mask, as words in the order of memory.
pub type Key = [u64; KEY_WORDS];

/// Where a header of layer 3 begins behind the Ethernet header.
pub(crate) const L3: usize = EthernetHeader::LEN;
/// Where the ports begin behind an IPv4 header without options.
pub(crate) const L4_OF_IP4: usize = L3 + 20;
/// Where they begin behind an IPv6 header without extensions.
pub(crate) const L4_OF_IP6: usize = L3 + 40;
/// VLAN tags that are passed over at most.
const TAGS_MAX: usize = 4;
const TAG_BYTES: usize = 4;
const PORTS_BYTES: usize = 4;

/// Which bytes of a packet a mask is laid on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The bytes as they are, from so many on.
    Raw {
        /// Bytes that are passed over.
        skip_bytes: u16,
    },
    /// Headers where they stand in a frame without tags and options: what tags and options a frame
    /// has makes no difference. A later fragment has ports of zero.
    Fields,
}

/// Bytes as a key.
#[inline(always)]
pub fn key_of(bytes: &[u8; KEY_BYTES]) -> Key {
    let mut key = Key::default();
    for (word, eight) in key.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*eight);
    }
    key
}

/// A key as bytes.
pub fn bytes_of(key: &Key) -> [u8; KEY_BYTES] {
    let mut bytes = [0; KEY_BYTES];
    for (eight, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(key) {
        *eight = word.to_ne_bytes();
    }
    bytes
}

/// The bytes under a mask.
#[inline(always)]
pub fn masked(key: &Key, mask: &Key) -> Key {
    let mut out = *key;
    for (word, mask) in out.iter_mut().zip(mask) {
        *word &= mask;
    }
    out
}

/// The key of the packet that begins with these bytes; zeros stand for bytes that it does not
/// have. `is_bare`: it has no link-layer header.
#[inline(always)]
pub fn load(form: Form, bytes: &[u8], is_bare: bool) -> Key {
    match standing(form, bytes, is_bare) {
        Some(bytes) => from(bytes),
        None => key_of(&arranged(bytes, is_bare)),
    }
}

/// The bytes that a key is made of where they stand in the packet; nothing where they must be
/// arranged first.
#[inline(always)]
fn standing(form: Form, bytes: &[u8], is_bare: bool) -> Option<&[u8]> {
    match form {
        Form::Raw { skip_bytes } => Some(bytes.get(usize::from(skip_bytes)..).unwrap_or_default()),
        Form::Fields => (!is_bare && is_usual(bytes)).then_some(bytes),
    }
}

/// As [`load`], and the mask laid on, with `front` as the first word. No word is read that has no
/// bit in the mask: most masks have few, in the packet's first line.
#[inline(always)]
pub(crate) fn load_masked(
    front: u64,
    form: Form,
    mask: &[AtomicU64; KEY_WORDS],
    bytes: &[u8],
    is_bare: bool,
) -> [u64; KEY_WORDS + 1] {
    let buffer;
    let bytes = match standing(form, bytes, is_bare) {
        Some(bytes) => bytes,
        None => {
            buffer = arranged(bytes, is_bare);
            &buffer
        }
    };
    let word = |at| word_under(mask, bytes, at);
    // One by one, so that each stays in a register: a loop would store words, and load them again
    // as vectors before they have arrived.
    [
        front,
        word(0),
        word(1),
        word(2),
        word(3),
        word(4),
        word(5),
        word(6),
        word(7),
        word(8),
        word(9),
    ]
}

/// A word of a packet under a mask that workers share.
#[inline(always)]
fn word_under(mask: &[AtomicU64; KEY_WORDS], bytes: &[u8], at: usize) -> u64 {
    let mask = mask[at].load(Ordering::Relaxed);
    if mask == 0 {
        return 0;
    }
    let behind = bytes.get(at * 8..).unwrap_or_default();
    match behind.first_chunk() {
        Some(eight) => u64::from_ne_bytes(*eight) & mask,
        None => last_word(behind) & mask,
    }
}

/// The word that fewer bytes than eight begin.
#[inline(never)]
fn last_word(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    eight.iter_mut().zip(bytes).for_each(|(out, byte)| *out = *byte);
    u64::from_ne_bytes(eight)
}

#[inline(always)]
fn from(bytes: &[u8]) -> Key {
    match bytes.first_chunk() {
        Some(whole) => key_of(whole),
        None => key_of(&padded(bytes)),
    }
}

#[inline(never)]
fn padded(bytes: &[u8]) -> [u8; KEY_BYTES] {
    let mut out = [0; KEY_BYTES];
    out.iter_mut().zip(bytes).for_each(|(out, byte)| *out = *byte);
    out
}

/// Does the frame have no tags, no options, and is it no later fragment?
#[inline(always)]
fn is_usual(bytes: &[u8]) -> bool {
    let Some(header) = EthernetHeader::overlay(bytes) else { return true };
    let kind = header.ether_type();
    if kind != EtherType::IPV4 {
        return !kind.is_vlan();
    }
    match bytes.get(L3..).and_then(|rest| rest.first_chunk::<8>()) {
        Some([first, .., high, low]) => {
            *first == 0x45 && u16::from_be_bytes([*high, *low]) & 0x1fff == 0
        }
        None => true,
    }
}

/// A frame's headers where they stand in one without tags and options.
#[inline(never)]
fn arranged(bytes: &[u8], is_bare: bool) -> [u8; KEY_BYTES] {
    let mut out = [0; KEY_BYTES];
    let (kind, inside) = match is_bare {
        true => (kind_of_bare(bytes), bytes),
        false => {
            out[..12].iter_mut().zip(bytes).for_each(|(out, byte)| *out = *byte);
            behind_tags(bytes)
        }
    };
    out[12..L3].copy_from_slice(&kind.0.to_be_bytes());
    out[L3..].iter_mut().zip(inside).for_each(|(out, byte)| *out = *byte);
    if kind == EtherType::IPV4 {
        out[L4_OF_IP4..].fill(0);
        let ports = &mut out[L4_OF_IP4..L4_OF_IP4 + PORTS_BYTES];
        ports.iter_mut().zip(ports_of_ip4(inside)).for_each(|(out, byte)| *out = *byte);
    }
    out
}

fn kind_of_bare(bytes: &[u8]) -> EtherType {
    match bytes.first().map(|first| first >> 4) {
        Some(4) => EtherType::IPV4,
        Some(6) => EtherType::IPV6,
        _ => EtherType(0),
    }
}

/// The type behind a frame's tags, and what follows.
pub(crate) fn behind_tags(bytes: &[u8]) -> (EtherType, &[u8]) {
    let mut at = L3;
    let kind_in_front = |at: usize| {
        let kind = bytes.get(at - 2..).and_then(|rest| rest.first_chunk());
        kind.map_or(EtherType(0), |kind| EtherType(u16::from_be_bytes(*kind)))
    };
    for _ in 0..TAGS_MAX {
        if !kind_in_front(at).is_vlan() {
            break;
        }
        at += TAG_BYTES;
    }
    (kind_in_front(at), bytes.get(at..).unwrap_or_default())
}

/// The ports of an IPv4 packet; nothing of a later fragment.
fn ports_of_ip4(inside: &[u8]) -> &[u8] {
    let Some([first, .., high, low]) = inside.first_chunk::<8>() else { return &[] };
    if u16::from_be_bytes([*high, *low]) & 0x1fff != 0 {
        return &[];
    }
    inside.get(usize::from(first & 0xf) * 4..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Frames that begin like those of Ethernet, some with IPv4 behind, and any other bytes.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let any = prop::collection::vec(any::<u8>(), 0..140);
        (any, prop::sample::select(vec![0x0800_u16, 0x86dd, 0x8100]), 0u8..3).prop_map(
            |(mut bytes, kind, form)| {
                if form > 0 && bytes.len() > 14 {
                    bytes[12..14].copy_from_slice(&kind.to_be_bytes());
                    bytes[14] = 0x44 + form;
                }
                bytes
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_loaded_under_a_mask_is_what_the_mask_leaves_of_all(
            bytes in bytes(),
            mask in prop::collection::vec(any::<u64>(), KEY_WORDS),
            words in (0..=KEY_WORDS, 0..=KEY_WORDS),
            skip_bytes in 0u16..90,
            is_raw: bool,
            is_bare: bool,
        ) {
            let within = |at: &usize| (words.0..words.1).contains(at);
            let mask: Key =
                std::array::from_fn(|at| if within(&at) { mask[at] } else { 0 });
            let form = if is_raw { Form::Raw { skip_bytes } } else { Form::Fields };
            let shared = mask.map(AtomicU64::new);
            let [front, found @ ..] = load_masked(7, form, &shared, &bytes, is_bare);
            prop_assert_eq!(front, 7);
            prop_assert_eq!(found, masked(&load(form, &bytes, is_bare), &mask));
        }
    }
}

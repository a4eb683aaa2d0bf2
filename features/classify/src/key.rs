//! The bytes of a packet that masks are laid on.

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
    match form {
        Form::Raw { skip_bytes } => from(bytes.get(usize::from(skip_bytes)..).unwrap_or_default()),
        Form::Fields if !is_bare && is_usual(bytes) => from(bytes),
        Form::Fields => key_of(&arranged(bytes, is_bare)),
    }
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

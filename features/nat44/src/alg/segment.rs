//! A TCP segment whose numbers and text change: sequence, acknowledgement and SACK numbers (RFC
//! 9293 §3.1, RFC 2018 §3), bytes of the text, and the lengths and checksums that follow.

use quiver_core::Packet;
use quiver_translation::checksum::{adjusted, delta};
use quiver_wire::checksum::{self, Sum, update16};
use quiver_wire::tcp::TcpHeader;
use quiver_wire::{Header, Ip4Header, IpProtocol};

use crate::alg::ftp::Text;
use crate::alg::stream::{CHANGES_MAX, Stream};
use crate::session::flag;

/// Places of fields in a TCP header.
const SEQUENCE: usize = 4;
const ACKNOWLEDGEMENT: usize = 8;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
/// Options: end, no operation, SACK.
const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_SACK: u8 = 5;

/// Where the parts of a segment are in its packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    tcp: usize,
    text: usize,
    end: usize,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u8,
    /// Is the packet one buffer and no fragment, so that its text can be read?
    pub is_whole: bool,
}

/// Bytes of the text that others replace: the place of the first, how many, and these.
pub(crate) type Edit = (usize, usize, Text);

/// Up to [`CHANGES_MAX`] edits, in order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Edits {
    all: [Option<Edit>; CHANGES_MAX],
    /// Bytes of the text that are sent; all where none are given.
    kept: Option<usize>,
}

impl Edits {
    /// False when there are as many as may be.
    pub fn push(&mut self, edit: Edit) -> bool {
        let place = self.all.iter_mut().find(|place| place.is_none());
        place.map(|place| *place = Some(edit)).is_some()
    }

    pub fn is_full(&self) -> bool {
        self.all.iter().all(Option::is_some)
    }

    pub fn is_empty(&self) -> bool {
        self.all[0].is_none() && self.kept.is_none()
    }

    /// Send so many bytes of the text alone. Edits are within.
    pub fn keep(&mut self, length: usize) {
        self.kept = Some(length);
    }

    /// Bytes that the text gets longer by at most.
    fn growth(&self) -> usize {
        let more = |(_, length, text): &Edit| text.bytes().len().saturating_sub(*length);
        self.all.iter().flatten().map(more).sum()
    }
}

impl Segment {
    /// The segment of a packet; none in a later fragment, or where the header is not whole.
    pub fn of(packet: &Packet) -> Option<Segment> {
        let bytes = packet.bytes();
        let header = Ip4Header::overlay(bytes)?;
        let is_tcp = header.protocol() == IpProtocol::TCP && header.fragment_offset() == 0;
        is_tcp.then_some(())?;
        let tcp = header.header_len();
        let fields = TcpHeader::overlay(bytes.get(tcp..)?)?;
        let text = tcp + fields.header_len();
        let end = usize::from(header.total_length());
        (fields.header_len() >= TcpHeader::LEN && text <= end).then_some(())?;
        let is_whole = !header.is_fragment() && !packet.is_chained() && end <= bytes.len();
        bytes.get(tcp..text)?;
        Some(Segment {
            tcp,
            text,
            end,
            sequence: fields.sequence(),
            acknowledgement: fields.acknowledgement(),
            flags: fields.flags().0,
            is_whole,
        })
    }

    /// Bytes of text, also of a packet that is not whole here.
    pub fn text_len(&self) -> usize {
        self.end - self.text
    }

    /// The text of a whole segment whose checksum is right. Others are dropped by who receives
    /// them, and nothing must be opened because of them.
    pub fn text<'p>(&self, packet: &'p Packet) -> Option<&'p [u8]> {
        self.is_whole.then_some(())?;
        let bytes = packet.bytes();
        let header = Ip4Header::overlay(bytes)?;
        let all = bytes.get(self.tcp..self.end)?;
        let length = u16::try_from(all.len()).ok()?;
        let pseudo = Sum::pseudo4(header.source(), header.destination(), header.protocol(), length);
        pseudo.bytes(all).is_good().then_some(())?;
        bytes.get(self.text..self.end)
    }

    /// Change bytes of the text in place, the checksum with them.
    pub fn change_text(&self, packet: &mut Packet, change: impl FnOnce(&mut [u8])) {
        let before = self.sum(packet, self.end);
        if let Some(text) = packet.bytes_mut().get_mut(self.text..self.end) {
            change(text);
        }
        let after = self.sum(packet, self.end);
        self.add_to_checksum(packet, delta(&[before], &[after]));
    }

    /// Give a segment of direction `own` other numbers, those of `other` in acknowledgements, and
    /// another text. False, and nothing changes, when it would be longer than the buffer takes.
    pub fn rewrite(
        &self,
        packet: &mut Packet,
        own: &Stream,
        other: &Stream,
        edits: &Edits,
    ) -> bool {
        if own.is_unchanged() && other.is_unchanged() && edits.is_empty() {
            return true;
        }
        if edits.growth() > packet.headroom() || self.end + edits.growth() > usize::from(u16::MAX) {
            return false;
        }
        // The rest of a segment that is not whole here does not change.
        let end = if self.is_whole { self.end } else { self.text };
        let before = self.sum(packet, end);
        self.set_numbers(packet, own, other);
        let mut length = end;
        if let Some(kept) = edits.kept.filter(|kept| self.is_whole && *kept < self.text_len()) {
            length = self.text + kept;
            packet.trim(length);
            self.take_fin(packet);
        }
        for (at, old, text) in edits.all.iter().flatten().rev() {
            splice(packet, self.text + at, *old, text.bytes());
            length = length + text.bytes().len() - old;
        }
        let after = self.sum(packet, length);
        let words = [end, length].map(|end| (end - self.tcp) as u16);
        self.add_to_checksum(packet, delta(&[before, words[0]], &[after, words[1]]));
        if length != end {
            set_total_length(packet, length as u16);
        }
        true
    }

    /// The one's complement sum of the segment up to `end`.
    fn sum(&self, packet: &Packet, end: usize) -> u16 {
        !checksum::of(packet.bytes().get(self.tcp..end).unwrap_or_default())
    }

    fn add_to_checksum(&self, packet: &mut Packet, delta: u16) {
        let tcp = packet.bytes_mut().get_mut(self.tcp + CHECKSUM..);
        if let Some(place) = tcp.and_then(|bytes| bytes.first_chunk_mut::<2>()) {
            *place = adjusted(u16::from_be_bytes(*place), delta).to_be_bytes();
        }
    }

    /// What is cut off was in front of the end of the stream.
    fn take_fin(&self, packet: &mut Packet) {
        if let Some(flags) = packet.bytes_mut().get_mut(self.tcp + FLAGS) {
            *flags &= !flag::FIN;
        }
    }

    fn set_numbers(&self, packet: &mut Packet, own: &Stream, other: &Stream) {
        let Some(tcp) = packet.bytes_mut().get_mut(self.tcp..self.text) else { return };
        put(tcp, SEQUENCE, own.replaced(self.sequence));
        if self.flags & flag::ACK != 0 {
            put(tcp, ACKNOWLEDGEMENT, other.original(self.acknowledgement, false));
        }
        let mut at = TcpHeader::LEN;
        while let (Some(kind), length) = (tcp.get(at).copied(), tcp.get(at + 1).copied()) {
            let length = match (kind, length) {
                (OPTION_END, _) => return,
                (OPTION_NOP, _) => 1,
                (_, Some(length)) if length >= 2 => usize::from(length),
                _ => return,
            };
            if kind == OPTION_SACK {
                set_blocks(tcp.get_mut(at + 2..at + length).unwrap_or_default(), other);
            }
            at += length;
        }
    }
}

/// The edges of SACK blocks (RFC 2018 §3). A block of replaced bytes alone becomes an empty one,
/// which says nothing.
fn set_blocks(blocks: &mut [u8], other: &Stream) {
    for block in blocks.chunks_exact_mut(8) {
        let edge = |at| get(block, at).unwrap_or_default();
        let (left, right) = (other.original(edge(0), true), other.original(edge(4), false));
        let left = if crate::alg::stream::is_before(right, left) { right } else { left };
        put(block, 0, left);
        put(block, 4, right);
    }
}

fn get(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word))
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut()) {
        *place = value.to_be_bytes();
    }
}

/// Put `new` in the place of `old` bytes. There is headroom for what is more.
fn splice(packet: &mut Packet, at: usize, old: usize, new: &[u8]) {
    const NOTHING: [u8; 32] = [0; 32];
    let more = new.len().saturating_sub(old).min(NOTHING.len());
    let changed = match more {
        0 => packet.remove(at, old.saturating_sub(new.len())),
        more => packet.insert(at, &NOTHING[..more]),
    };
    debug_assert!(changed, "the segment holds the text, and the headroom was looked at");
    if let Some(place) = packet.bytes_mut().get_mut(at..at + new.len()) {
        place.copy_from_slice(new);
    }
}

fn set_total_length(packet: &mut Packet, length: u16) {
    if let Some(header) = Ip4Header::overlay_mut(packet.bytes_mut()) {
        let sum = update16(header.checksum(), header.total_length(), length);
        header.set_total_length(length);
        header.set_checksum(sum);
    }
}

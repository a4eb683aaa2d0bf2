//! ICMP errors: the packet inside says whose they are (RFC 5508 §4). Both headers are translated,
//! the one outside and the one inside, with the checksums of all.

use quiver_core::Packet;
use quiver_wire::checksum::{self, update16, update32};
use quiver_wire::{Header, Ip4Header, IpProtocol};

use crate::flow::{End, Flow, Kind, of_upper};

/// Bytes of the ICMP header in front of the packet inside.
const ICMP_BYTES: usize = 8;
/// Bytes of the packet inside behind its IP header that an error must have (RFC 792).
const INNER_BYTES_MIN: usize = 8;

/// Why an error is not translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadQuote {
    /// It is cut, or a checksum is wrong.
    NotWhole,
    /// The packet inside has neither ports nor an identifier.
    NoFlow,
}

/// Where the packet inside of an error is, and what it says.
#[derive(Clone, Copy, Debug)]
pub struct Quote {
    icmp: usize,
    inner: usize,
    /// Of the upper layer of the packet inside.
    upper: usize,
    flow: Flow,
}

/// Read an error whose packet was routed in `table`. Wrong checksums of ICMP and of the IP header
/// inside are refused (RFC 5508 REQ-3); that of the upper layer inside is not looked at.
///
/// # Errors
/// It is not whole, or the packet inside has no flow.
pub fn read(packet: &Packet, table: u32) -> Result<Quote, BadQuote> {
    let bytes = packet.bytes();
    let header = Ip4Header::overlay(bytes).ok_or(BadQuote::NotWhole)?;
    if header.is_fragment() || packet.is_chained() {
        return Err(BadQuote::NotWhole);
    }
    let icmp = header.header_len();
    let message = bytes.get(icmp..).ok_or(BadQuote::NotWhole)?;
    if checksum::of(message) != 0 {
        return Err(BadQuote::NotWhole);
    }
    let inside = message.get(ICMP_BYTES..).ok_or(BadQuote::NotWhole)?;
    let inner = Ip4Header::overlay(inside).ok_or(BadQuote::NotWhole)?;
    let length = inner.header_len();
    let quoted = inside.get(..length).ok_or(BadQuote::NotWhole)?;
    if inner.version() != 4 || length < Ip4Header::LEN || checksum::of(quoted) != 0 {
        return Err(BadQuote::NotWhole);
    }
    let behind = inside.get(length..).unwrap_or_default();
    if behind.len() < INNER_BYTES_MIN {
        return Err(BadQuote::NotWhole);
    }
    if inner.fragment_offset() != 0 {
        return Err(BadQuote::NoFlow);
    }
    let end = |address| End { address, port: 0 };
    let mut flow = Flow {
        source: end(inner.source_bits()),
        destination: end(inner.destination_bits()),
        protocol: inner.protocol(),
        table,
    };
    // TCP's flags may be cut off.
    let kind = match flow.protocol {
        IpProtocol::TCP => {
            let [a, b, c, d, ..] = *behind.first_chunk::<8>().ok_or(BadQuote::NotWhole)?;
            flow.source.port = u16::from_be_bytes([a, b]);
            flow.destination.port = u16::from_be_bytes([c, d]);
            Kind::Data { tcp_flags: 0 }
        }
        _ => of_upper(behind, &mut flow),
    };
    match kind {
        Kind::Data { .. } | Kind::Query { .. } => {
            let inner = icmp + ICMP_BYTES;
            Ok(Quote { icmp, inner, upper: inner + length, flow })
        }
        _ => Err(BadQuote::NoFlow),
    }
}

impl Quote {
    /// The flow of the packet inside, as it stands there.
    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// Make the packet inside one of the flow `sent`, and give the error other ends. The source
    /// stays where none is given.
    pub fn set_ends(
        &self,
        packet: &mut Packet,
        sent: &Flow,
        (source, destination): (Option<u32>, u32),
    ) {
        let bytes = packet.bytes_mut();
        restore(bytes, self, sent);
        set_address(bytes, 0, 16, destination);
        if let Some(source) = source {
            set_address(bytes, 0, 12, source);
        }
        if let Some(message) = bytes.get_mut(self.icmp..) {
            message[2..4].fill(0);
            let checksum = checksum::of(message);
            message[2..4].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// Make the packet inside the one that was sent.
fn restore(bytes: &mut [u8], quote: &Quote, sent: &Flow) {
    let Quote { inner, upper, flow, .. } = *quote;
    set_address(bytes, inner, 12, sent.source.address);
    set_address(bytes, inner, 16, sent.destination.address);
    let mut change = Change { bytes, upper };
    if sent.is_icmp() {
        change.word(4, sent.source.port, Some(2));
        return;
    }
    let checksum = match sent.protocol {
        IpProtocol::TCP => Some(16),
        IpProtocol::UDP => Some(6).filter(|_| change.get(6) != Some(0)),
        IpProtocol::DCCP | IpProtocol::UDP_LITE => Some(6),
        _ => None,
    };
    if let Some(at) = checksum {
        change.address(at, flow.source.address, sent.source.address);
        change.address(at, flow.destination.address, sent.destination.address);
    }
    if sent.protocol == IpProtocol::TCP || sent.protocol == IpProtocol::UDP {
        change.word(0, sent.source.port, checksum);
        change.word(2, sent.destination.port, checksum);
    }
}

/// Changes of an upper layer.
struct Change<'b> {
    bytes: &'b mut [u8],
    upper: usize,
}

impl Change<'_> {
    fn get(&self, at: usize) -> Option<u16> {
        let place = self.bytes.get(self.upper + at..)?.first_chunk()?;
        Some(u16::from_be_bytes(*place))
    }

    fn set(&mut self, at: usize, value: u16) {
        let place = self.bytes.get_mut(self.upper + at..).and_then(|b| b.first_chunk_mut());
        if let Some(place) = place {
            *place = value.to_be_bytes();
        }
    }

    /// Set a word, and the checksum at `checksum` with it.
    fn word(&mut self, at: usize, value: u16, checksum: Option<usize>) {
        let Some(old) = self.get(at) else { return };
        self.set(at, value);
        if let Some(place) = checksum
            && let Some(sum) = self.get(place)
        {
            self.set(place, update16(sum, old, value));
        }
    }

    /// An address of the pseudo header changed.
    fn address(&mut self, checksum: usize, old: u32, new: u32) {
        if let Some(sum) = self.get(checksum) {
            self.set(checksum, update32(sum, old, new));
        }
    }
}

/// Set an address of the IP header at `header`, and its checksum.
fn set_address(bytes: &mut [u8], header: usize, at: usize, address: u32) {
    let Some(head) = bytes.get_mut(header..).and_then(|b| b.first_chunk_mut::<20>()) else {
        return;
    };
    let old = u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let sum = update32(u16::from_be_bytes([head[10], head[11]]), old, address);
    head[at..at + 4].copy_from_slice(&address.to_be_bytes());
    head[10..12].copy_from_slice(&sum.to_be_bytes());
}

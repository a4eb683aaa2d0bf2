//! ICMP errors: the packet inside says whose they are (RFC 5508 §4). Both headers are translated,
//! the one outside and the one inside, with the checksums of all.

use quiver_core::Packet;
use quiver_wire::checksum::{self, update16, update32};
use quiver_wire::{Header, Ip4Header, IpProtocol};

use crate::key::{End, Flow, Kind, of_upper};
use crate::node::Nat44Drop;
use crate::session::{Direction, Flags, Session, Table};

/// Bytes of the ICMP header in front of the packet inside.
const ICMP_BYTES: usize = 8;
/// Bytes of the packet inside behind its IP header that an error must have (RFC 792).
const INNER_BYTES_MIN: usize = 8;

/// Where things are in an error.
struct Layout {
    icmp: usize,
    inner: usize,
    /// Of the upper layer of the packet inside.
    upper: usize,
    flow: Flow,
}

/// Read an error whose packet was routed in `table`. Wrong checksums of ICMP and of the IP header
/// inside are refused (RFC 5508 REQ-3); that of the upper layer inside is not looked at.
fn read(packet: &Packet, table: u32) -> Result<Layout, Nat44Drop> {
    let bytes = packet.bytes();
    let header = Ip4Header::overlay(bytes).ok_or(Nat44Drop::BadIcmpError)?;
    if header.is_fragment() || packet.is_chained() {
        return Err(Nat44Drop::BadIcmpError);
    }
    let icmp = header.header_len();
    let message = bytes.get(icmp..).ok_or(Nat44Drop::BadIcmpError)?;
    if checksum::of(message) != 0 {
        return Err(Nat44Drop::BadIcmpError);
    }
    let inside = message.get(ICMP_BYTES..).ok_or(Nat44Drop::BadIcmpError)?;
    let inner = Ip4Header::overlay(inside).ok_or(Nat44Drop::BadIcmpError)?;
    let length = inner.header_len();
    let quoted = inside.get(..length).ok_or(Nat44Drop::BadIcmpError)?;
    if inner.version() != 4 || length < Ip4Header::LEN || checksum::of(quoted) != 0 {
        return Err(Nat44Drop::BadIcmpError);
    }
    let behind = inside.get(length..).unwrap_or_default();
    if behind.len() < INNER_BYTES_MIN {
        return Err(Nat44Drop::BadIcmpError);
    }
    if inner.fragment_offset() != 0 {
        return Err(Nat44Drop::InnerHasNoSession);
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
            let [a, b, c, d, ..] = *behind.first_chunk::<8>().ok_or(Nat44Drop::BadIcmpError)?;
            flow.source.port = u16::from_be_bytes([a, b]);
            flow.destination.port = u16::from_be_bytes([c, d]);
            Kind::Data { tcp_flags: 0 }
        }
        _ => of_upper(behind, &mut flow),
    };
    match kind {
        Kind::Data { .. } | Kind::Query { .. } => {
            let inner = icmp + ICMP_BYTES;
            Ok(Layout { icmp, inner, upper: inner + length, flow })
        }
        _ => Err(Nat44Drop::InnerHasNoSession),
    }
}

/// Translate an error that came by an interface of `table`. The small number of the table that it
/// is routed in comes back.
///
/// # Errors
/// It is not whole, a checksum is wrong, or no session sent the packet inside.
pub(crate) fn translate(
    packet: &mut Packet,
    table: u32,
    sessions: &(Table, std::sync::Arc<crate::session::Objects>),
) -> Result<u32, Nat44Drop> {
    let layout = read(packet, table)?;
    // The packet inside went the other way.
    let index = sessions.0.lookup(&layout.flow.reversed().key());
    let index = index.ok_or(Nat44Drop::InnerHasNoSession)?;
    let (session, direction) = (Session(sessions.1.get(index >> 1)), Direction::of_index(index));
    let sent = session.flow(direction.other());
    restore(packet.bytes_mut(), &layout, &sent);
    let bytes = packet.bytes_mut();
    set_address(bytes, 0, 16, sent.source.address);
    // What is behind the translator is not seen in front of it (RFC 5508 REQ-5).
    let both = Flags::HAIRPIN.with(Flags::TWICE);
    if direction == Direction::InToOut || session.flags().has(both) {
        set_address(bytes, 0, 12, sent.destination.address);
    }
    if let Some(message) = bytes.get_mut(layout.icmp..) {
        message[2..4].fill(0);
        let checksum = checksum::of(message);
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
    }
    Ok(session.next_table(direction))
}

/// Make the packet inside the one that was sent.
fn restore(bytes: &mut [u8], layout: &Layout, sent: &Flow) {
    let Layout { inner, upper, flow, .. } = *layout;
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

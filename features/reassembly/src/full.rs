//! Full reassembly: fragments wait for each other and go on as one packet.

use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Packet};
use quiver_forwarding::requests::{IcmpErrorRequest, ReassemblyRequest};
use quiver_wire::checksum::Sum;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, icmp4, icmp6};

use crate::contexts::{Arrived, Contexts, kill};
use crate::fragment::{FRAGMENT_HEADER_LEN, Fragment};
use crate::node::Form;
use crate::reasons::FragmentEnd;
use crate::store::Place;

/// Time exceeded, code 1 (RFC 792, RFC 4443 §3.3).
const FRAGMENT_REASSEMBLY: u8 = 1;
/// Congestion notification: the sender does not know of it; congestion was met (RFC 3168 §5).
const NOT_CAPABLE: u8 = 0;
const CONGESTION_MET: u8 = 3;

/// Fragments become one packet.
pub(crate) struct Full;

impl Form for Full {
    fn help(&self) -> &'static str {
        "Puts fragments together"
    }

    fn pass_atomic(
        &self,
        contexts: &Contexts,
        cx: &mut Context<'_>,
        piece: &Fragment,
        mut packet: Packet,
        request: ReassemblyRequest,
    ) {
        if contexts.kind.is_six() && !mend_ip6(&mut packet, piece, piece.end) {
            return contexts.drop_packet(cx, packet, FragmentEnd::TooLong);
        }
        cx.count(FragmentEnd::Reassembled, 1);
        contexts.send_on(cx, packet, request);
    }

    fn take(
        &self,
        contexts: &mut Contexts,
        cx: &mut Context<'_>,
        arrived: Arrived,
        request: ReassemblyRequest,
    ) {
        let place = arrived.place;
        match contexts.keep(cx, arrived, true) {
            Ok(_) if contexts.store.at(place).is_complete() => {
                finish(contexts, cx, place, request);
            }
            Ok(_) => {}
            Err(packet) => contexts.drop_packet(cx, packet, FragmentEnd::Duplicate),
        }
    }

    /// Its sender hears of it when the first fragment is there.
    fn expire(&self, contexts: &mut Contexts, cx: &mut Context<'_>, place: Place) {
        let told = contexts.store.has_first(place);
        let mut first = None;
        let mut held = 0;
        contexts.store.take_packets(place, |packet| {
            held += packet.buffer_count();
            match first {
                None if told => first = Some(packet),
                _ => kill(cx, packet, FragmentEnd::TimedOut),
            }
        });
        contexts.give(held);
        contexts.close_empty(place);
        if let Some(mut first) = first {
            cx.count(FragmentEnd::TimedOut, 1);
            let kind = if contexts.kind.is_six() {
                icmp6::kind::TIME_EXCEEDED
            } else {
                icmp4::kind::TIME_EXCEEDED
            };
            first.hand_over(IcmpErrorRequest { kind, code: FRAGMENT_REASSEMBLY, detail: 0 });
            contexts.send(cx, first, contexts.next_nodes.error);
        }
    }
}

/// All pieces are there.
fn finish(contexts: &mut Contexts, cx: &mut Context<'_>, place: Place, request: ReassemblyRequest) {
    let context = contexts.store.at(place);
    let (end, marks) = (context.end().unwrap_or_default(), context.ecn);
    let congested = marks & 1 << CONGESTION_MET != 0;
    if congested && marks & 1 << NOT_CAPABLE != 0 {
        return contexts.close(cx, place, FragmentEnd::Ecn);
    }
    let mut whole: Option<(Packet, Fragment)> = None;
    let mut held = 0;
    contexts.store.take_pieces_backwards(place, |piece, packet| {
        let Some(mut packet) = packet else { return };
        held += packet.buffer_count();
        // The bytes in front were read in the first segment, so they are there.
        let pulled = piece.start == 0 || packet.pull(usize::from(piece.header_bytes));
        debug_assert!(pulled);
        if let Some((behind, _)) = whole.take() {
            packet.join(behind);
        }
        whole = Some((packet, piece));
    });
    contexts.give(held);
    contexts.close_empty(place);
    let Some((mut packet, first)) = whole else { return };
    packet.clear(PacketFlags::L4_CHECKSUM_GOOD);
    packet.clear(PacketFlags::NOTED);
    let ecn = congested.then_some(CONGESTION_MET);
    let is_whole = if contexts.kind.is_six() {
        mend_ip6(&mut packet, &first, end) && mark_ip6(&mut packet, ecn)
    } else {
        mend_ip4(&mut packet, &first, end, ecn)
    };
    if !is_whole {
        return contexts.drop_packet(cx, packet, FragmentEnd::TooLong);
    }
    cx.count(FragmentEnd::Reassembled, 1);
    contexts.send_on(cx, packet, request);
}

/// The header of the whole: its length, no fragment, its checksum. False when it would be too long.
fn mend_ip4(packet: &mut Packet, first: &Fragment, end: u32, ecn: Option<u8>) -> bool {
    let header_len = usize::from(first.header_bytes);
    let Ok(total) = u16::try_from(header_len + end as usize) else { return false };
    let Some(header) = Ip4Header::overlay_mut(packet.bytes_mut()) else { return false };
    header.set_total_length(total);
    header.set_whole();
    if let Some(ecn) = ecn {
        header.traffic_class = header.traffic_class & !3 | ecn;
    }
    header.set_checksum(0);
    let sum = Sum::new().bytes(packet.bytes().get(..header_len).unwrap_or_default()).checksum();
    if let Some(header) = Ip4Header::overlay_mut(packet.bytes_mut()) {
        header.set_checksum(sum);
    }
    true
}

/// The fragment header goes; what stood in front of it names what stood behind. False when the
/// whole would be too long.
fn mend_ip6(packet: &mut Packet, first: &Fragment, end: u32) -> bool {
    let front = usize::from(first.header_bytes).saturating_sub(FRAGMENT_HEADER_LEN);
    let Ok(payload) = u16::try_from(front.saturating_sub(Ip6Header::LEN) + end as usize) else {
        return false;
    };
    let place = usize::from(first.next_header_place);
    let Some(bytes) = packet.bytes_mut().get_mut(..front + FRAGMENT_HEADER_LEN) else {
        return false;
    };
    if let Some(next_header) = bytes.get_mut(place) {
        *next_header = first.next_header;
    }
    bytes.copy_within(..front, FRAGMENT_HEADER_LEN);
    if !packet.pull(FRAGMENT_HEADER_LEN) {
        return false;
    }
    let Some(header) = Ip6Header::overlay_mut(packet.bytes_mut()) else { return false };
    header.set_payload_length(payload);
    if place == 6 {
        header.set_next_header(IpProtocol(first.next_header));
    }
    true
}

fn mark_ip6(packet: &mut Packet, ecn: Option<u8>) -> bool {
    let Some(header) = Ip6Header::overlay_mut(packet.bytes_mut()) else { return false };
    if let Some(ecn) = ecn {
        header.set_traffic_class(header.traffic_class() & !3 | ecn);
    }
    true
}

//! Packets with segments in words, for traces.

use std::fmt::Write as _;

use quiver_core::graph::node::Names;
use quiver_core::graph::trace::TraceRecord;
use quiver_wire::ip6::extension::Walk;
use quiver_wire::srh::{ROUTING_TYPE, SEGMENT_BYTES, SrhHeader, segment_offset};
use quiver_wire::{Header, Ip6Header};

/// What a node of local SIDs left of a packet, and where it sent it.
pub(crate) fn record(record: &TraceRecord, names: &dyn Names) -> String {
    format!("{}, to {}", packet(record.bytes()), names.node(record.next))
}

/// An IPv6 packet: `2001:db8::1 → fc00::1, hop limit 64, 120 bytes, segments fc00::1 [fc00::2]
/// fc00::3`. The segments stand in the order of the path, the active one in brackets; those that
/// the trace has no room for are told by their number.
pub(crate) fn packet(bytes: &[u8]) -> String {
    let Some((header, behind)) = Ip6Header::split(bytes) else {
        return format!("{} bytes that are no IPv6 packet", bytes.len());
    };
    if header.version() != 6 {
        return inner(bytes);
    }
    let length = usize::from(header.payload_length()) + Ip6Header::LEN;
    let (from, to, hops) = (header.source(), header.destination(), header.hop_limit());
    let mut words = format!("{from} → {to}, hop limit {hops}, {length} bytes");
    if let Some(srh) = find(header, behind) {
        words.push_str(&segments(srh));
    }
    words
}

/// An inner packet that is not IPv6.
fn inner(bytes: &[u8]) -> String {
    match quiver_wire::Ip4Header::overlay(bytes).filter(|header| header.version() == 4) {
        Some(header) => format!(
            "{} → {}, ttl {}, {} bytes",
            header.source(),
            header.destination(),
            header.ttl(),
            header.total_length()
        ),
        None => format!("{} bytes", bytes.len()),
    }
}

/// The bytes from the first SRH on.
fn find<'a>(header: &Ip6Header, behind: &'a [u8]) -> Option<&'a [u8]> {
    let mut at = 0;
    let mut next = header.next_header();
    // A record may end inside the SRH: then the walk does, too, and stands before it.
    for extension in Walk::new(header.next_header(), behind).flatten() {
        if extension.routing().is_some_and(|(kind, _)| kind == ROUTING_TYPE) {
            return behind.get(extension.offset..);
        }
        at = extension.offset + extension.bytes.len();
        next = extension.next_header;
    }
    let rest = behind.get(at..)?;
    let srh = SrhHeader::overlay(rest)?;
    let is_srh = next == quiver_wire::IpProtocol::ROUTING && srh.routing_type() == ROUTING_TYPE;
    is_srh.then_some(rest)
}

/// The segments of the SRH that `bytes` begin with.
fn segments(bytes: &[u8]) -> String {
    let Some(srh) = SrhHeader::overlay(bytes) else { return String::new() };
    let (count, left) = (srh.segment_count(), usize::from(srh.segments_left()));
    let list = bytes.get(segment_offset(0)..).unwrap_or_default();
    let known: Vec<std::net::Ipv6Addr> = list
        .as_chunks::<SEGMENT_BYTES>()
        .0
        .iter()
        .take(count)
        .map(|octets| (*octets).into())
        .collect();
    let mut words = ", segments".to_owned();
    if left == count {
        words.push_str(" [the destination]");
    }
    let cut = count - known.len();
    if cut > 0 {
        let _ = write!(words, " {cut} that are not kept");
    }
    for (place, segment) in known.iter().enumerate().rev() {
        let _ = match place == left {
            true => write!(words, " [{segment}]"),
            false => write!(words, " {segment}"),
        };
    }
    let _ = write!(words, ", {left} left");
    words
}

#[cfg(test)]
mod tests {
    use quiver_wire::IpProtocol;

    use super::*;

    fn bytes(segments: &[&str], left: u8) -> Vec<u8> {
        let header = Ip6Header::new(
            "2001:db8::1".parse().unwrap(),
            "fc00::1".parse().unwrap(),
            IpProtocol::ROUTING,
            9,
            (8 + 16 * segments.len()) as u16,
        );
        let mut bytes = vec![0; 40];
        header.write(&mut bytes).unwrap();
        bytes.extend([59, 2 * segments.len() as u8, 4, left, segments.len() as u8 - 1, 0, 0, 0]);
        for segment in segments.iter().rev() {
            bytes.extend(segment.parse::<std::net::Ipv6Addr>().unwrap().octets());
        }
        bytes
    }

    #[test]
    fn segments_stand_in_the_order_of_the_path_with_the_active_one_in_brackets() {
        let all = bytes(&["fc00::1", "fc00::2", "fc00::3"], 1);
        let words = packet(&all);
        assert!(words.ends_with(", segments fc00::1 [fc00::2] fc00::3, 1 left"), "{words}");
        let words = packet(&all[..40 + 8 + 32]);
        assert!(
            words.ends_with(", segments 1 that are not kept [fc00::2] fc00::3, 1 left"),
            "{words}"
        );
        let words = packet(&bytes(&["fc00::2"], 1));
        assert!(words.ends_with(", segments [the destination] fc00::2, 1 left"), "{words}");
    }
}

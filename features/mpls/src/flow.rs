//! The flow of a labelled packet, for the choice among several paths: its entropy label (RFC 6790
//! §4), else the IP packet behind the labels, else the labels themselves (RFC 4928).

use quiver_core::Packet;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily};
use quiver_wire::mpls::{ENTRY_BYTES, special};

use crate::stack::{Entry, entry_at, version};

/// Labels that are looked at.
const LABELS_MAX: usize = 8;
/// Odd, with as many ones as zeros: spreads the bits of labels.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of labels.
fn of_labels(hash: u64) -> u32 {
    let spread = hash.wrapping_mul(SPREAD);
    (spread ^ spread >> 32) as u32
}

/// The flow's hash of a packet that begins with a label stack.
fn hash(bytes: &[u8]) -> u32 {
    let mut labels = 0u64;
    for place in 0..LABELS_MAX {
        let Some(entry) = entry_at(bytes, place).map(Entry) else { break };
        if entry.label() == special::ENTROPY_INDICATOR
            && let Some(entropy) = entry_at(bytes, place + 1)
        {
            return of_labels(u64::from(Entry(entropy).label()) + 1);
        }
        if entry.label() > special::LAST {
            labels = (labels ^ u64::from(entry.label())).wrapping_mul(SPREAD).rotate_left(29);
        }
        if entry.is_bottom() {
            let behind = bytes.get((place + 1) * ENTRY_BYTES..).unwrap_or_default();
            let inner = match version(behind) {
                4 => Ip4::flow_hash(behind),
                6 => Ip6::flow_hash(behind),
                _ => None,
            };
            return inner.unwrap_or_else(|| of_labels(labels));
        }
    }
    of_labels(labels)
}

/// The hash of a labelled packet's flow, computed once and kept in [`Packet::hash`].
#[inline(never)]
pub(crate) fn kept_hash(packet: &mut Packet) -> u32 {
    if packet.hash == 0 {
        packet.hash = hash(packet.bytes());
    }
    packet.hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(label: u32, bottom: bool) -> [u8; 4] {
        (label << 12 | u32::from(bottom) << 8 | 64).to_be_bytes()
    }

    #[test]
    fn an_entropy_label_alone_makes_a_flow() {
        let stack = |entropy, inner: u8| {
            let labels = [entry(16, false), entry(7, false), entry(entropy, true)];
            [labels.as_flattened(), &[inner; 30]].concat()
        };
        assert_eq!(hash(&stack(99, 0x45)), hash(&stack(99, 0x60)));
        assert_ne!(hash(&stack(99, 0x45)), hash(&stack(98, 0x45)));
    }

    #[test]
    fn the_packet_behind_the_labels_makes_a_flow_and_not_the_labels() {
        let inner = |port| {
            let head = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            [&head[..], &[port, 0, 1, 2, 0, 0, 0, 0]].concat()
        };
        let packet = |label, port| [&entry(label, true)[..], &inner(port)].concat();
        assert_eq!(hash(&packet(16, 1)), hash(&packet(17, 1)));
        assert_ne!(hash(&packet(16, 1)), hash(&packet(16, 2)));
        let control_word = |label| [&entry(label, true)[..], &[0; 20]].concat();
        assert_ne!(hash(&control_word(16)), hash(&control_word(17)));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = hash(&bytes);
        }
    }
}

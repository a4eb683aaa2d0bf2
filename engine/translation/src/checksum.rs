//! Checksums of packets whose addresses and ports change (RFC 1624).

use crate::flow::Flow;

/// The one's complement sum of 16-bit words, not folded.
#[inline(always)]
fn sum(words: impl IntoIterator<Item = u16>) -> u32 {
    words.into_iter().map(u32::from).sum()
}

#[inline(always)]
fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

fn address_words(flow: &Flow) -> [u16; 4] {
    let (source, destination) = (flow.source.address, flow.destination.address);
    [(source >> 16) as u16, source as u16, (destination >> 16) as u16, destination as u16]
}

/// What a checksum gets when the words `old` become `new` (RFC 1624 §3): `~m + m'`.
#[inline(always)]
pub fn delta(old: &[u16], new: &[u16]) -> u16 {
    fold(sum(old.iter().map(|word| !word)) + sum(new.iter().copied()))
}

/// A checksum after `delta` was added.
#[inline(always)]
pub fn adjusted(checksum: u16, delta: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(delta);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// What is added to the checksums of a packet of flow `from` that becomes one of flow `to`: to that
/// of IPv4, and to that of the upper layer.
pub fn deltas(from: &Flow, to: &Flow) -> (u16, u16) {
    let addresses = delta(&address_words(from), &address_words(to));
    if from.is_icmp() {
        return (addresses, delta(&[from.source.port], &[to.source.port]));
    }
    let ports = |flow: &Flow| [flow.source.port, flow.destination.port];
    let upper = fold(u32::from(addresses) + u32::from(delta(&ports(from), &ports(to))));
    (addresses, upper)
}

/// Where the protocols of the upper layer have their checksum.
pub(crate) const fn checksum_at(protocol: u8) -> Option<usize> {
    match protocol {
        1 => Some(2),
        6 => Some(16),
        // UDP, DCCP (RFC 5597), UDP-Lite.
        17 | 33 | 136 => Some(6),
        _ => None,
    }
}

/// Add `delta` to the checksum at `at`, if it is within the bytes.
#[inline(always)]
pub(crate) fn adjust(bytes: &mut [u8], at: usize, delta: u16, is_udp: bool) {
    let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) else {
        return;
    };
    let old = u16::from_be_bytes(*place);
    if is_udp && old == 0 {
        return; // the sender made none (RFC 768)
    }
    let new = match adjusted(old, delta) {
        0 if is_udp => 0xffff,
        new => new,
    };
    *place = new.to_be_bytes();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quiver_wire::checksum::Sum;

    use super::*;

    proptest! {
        /// What a delta makes of a checksum is the checksum of the new words.
        #[test]
        fn a_delta_makes_the_checksum_of_the_new_words(
            old: [u16; 6], new: [u16; 6], rest: [u16; 3],
        ) {
            prop_assume!(rest != [0; 3]);
            let of = |words: &[u16; 6]| {
                let sum = words.iter().chain(&rest).fold(Sum::new(), |sum, word| sum.word(*word));
                sum.checksum()
            };
            prop_assert_eq!(adjusted(of(&old), delta(&old, &new)), of(&new));
        }
    }
}

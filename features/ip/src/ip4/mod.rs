//! IPv4.

pub(crate) mod directed_broadcast;
pub(crate) mod echo;
pub(crate) mod fragment;
pub(crate) mod icmp_error;
pub(crate) mod icmp_input;
pub(crate) mod local;
pub(crate) mod too_big;

use quiver_wire::checksum::{self, Sum};
use quiver_wire::{Header, Ip4Header};

/// TTL of packets that the router makes.
pub(crate) const TTL: u8 = 64;

/// Give the header at the start of `bytes` the checksum that it should have, options included.
pub(crate) fn fill_checksum(bytes: &mut [u8]) {
    let Some(header) = Ip4Header::overlay_mut(bytes) else { return };
    let length = header.header_len();
    if length == Ip4Header::LEN {
        let sum = checksum::header_checksum(header);
        return header.set_checksum(sum);
    }
    header.set_checksum(0);
    let sum = Sum::new().bytes(bytes.get(..length).unwrap_or_default()).checksum();
    if let Some(header) = Ip4Header::overlay_mut(bytes) {
        header.set_checksum(sum);
    }
}

//! TFTP: a server answers a request from a port of its own choice (RFC 1350 §4).

use quiver_core::Packet;
use quiver_wire::{Header, Ip4Header};

use crate::alg::{Announced, Helped, Helper};
use crate::owned::Owner;

/// Bytes of a UDP header.
const UDP_BYTES: usize = 8;
/// Opcodes of requests: read and write (RFC 1350 §5).
const REQUESTS: [[u8; 2]; 2] = [[0, 1], [0, 2]];

/// Is it a request?
fn is_request(packet: &Packet) -> bool {
    let bytes = packet.bytes();
    let text = Ip4Header::overlay(bytes)
        .and_then(|header| bytes.get(header.header_len() + UDP_BYTES..)?.first_chunk::<2>());
    text.is_some_and(|opcode| REQUESTS.contains(opcode))
}

impl Owner {
    /// A packet to the port of requests: its sender waits for one of any port of the server.
    pub(super) fn help_tftp(&mut self, helped: Helped<'_>, packet: &Packet) {
        if is_request(packet) {
            let port = helped.own().source.port;
            self.announce(helped, Announced { helper: Helper::Tftp, port });
        }
    }
}

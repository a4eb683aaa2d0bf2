//! ICMPv6 errors: the packet inside says whose they are (RFC 5508 §4). Its headers and those
//! outside get other addresses, in place.

use std::net::Ipv6Addr;

use quiver_core::Packet;
use quiver_wire::IpProtocol;
use quiver_wire::checksum::Sum;

use super::flow::{End, Flow, of_quoted};
use super::rewrite::{Which, delta, set_end};
use crate::versions::Refused;
use crate::versions::error::{Error6, read_error6};

/// Bytes of the ICMPv6 header in front of the packet inside.
const ICMP_BYTES: usize = 8;

/// An ICMPv6 error whose checksum is right.
#[derive(Clone, Copy, Debug)]
pub struct Quote {
    error: Error6,
}

/// Read an ICMPv6 error, whose checksum must be right (RFC 5508 REQ-3); that of the upper layer
/// inside is not looked at.
///
/// # Errors
/// It is no error, not whole, or about another one.
pub fn read(packet: &Packet) -> Result<Quote, Refused> {
    Ok(Quote { error: read_error6(packet)? })
}

impl Quote {
    /// The flow of the packet inside, as it stands there; `table` is the one that it is routed in.
    pub fn flow(&self, table: u32) -> Flow {
        of_quoted(&self.error.inner, table)
    }

    /// Who gets the error.
    pub fn recipient(&self) -> u128 {
        self.error.outer.destination
    }

    /// Who sends it.
    pub fn sender(&self) -> u128 {
        self.error.outer.source
    }

    /// Make one end of the packet inside the one that its sender knows, and give the error other
    /// addresses.
    pub fn set_ends(
        &self,
        packet: &mut Packet,
        (which, from, to): (Which, End, End),
        (source, destination): (u128, u128),
    ) {
        let Error6 { outer, inner, .. } = &self.error;
        let bytes = packet.bytes_mut();
        let upper = (!inner.is_later_fragment()).then_some((inner.upper, inner.protocol));
        if let Some(inside) = bytes.get_mut(outer.upper + ICMP_BYTES..outer.length()) {
            set_end(inside, upper, which, to, delta(from, to));
        }
        let Some(header) = bytes.get_mut(8..40) else { return };
        let (first, second) = header.split_at_mut(16);
        first.copy_from_slice(&source.to_be_bytes());
        second.copy_from_slice(&destination.to_be_bytes());
        let Some(message) = bytes.get_mut(outer.upper..outer.length()) else { return };
        let Some([_, _, high, low]) = message.first_chunk_mut() else { return };
        (*high, *low) = (0, 0);
        let pseudo = Sum::pseudo6(
            Ipv6Addr::from_bits(source),
            Ipv6Addr::from_bits(destination),
            IpProtocol::ICMP6,
            outer.upper_len as u32,
        );
        let sum = pseudo.bytes(message).checksum().to_be_bytes();
        if let Some(place) = message.get_mut(2..4) {
            place.copy_from_slice(&sum);
        }
    }
}

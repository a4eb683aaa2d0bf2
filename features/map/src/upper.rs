//! The port by which a packet of IPv4 belongs to one of the customers who share an address: that of
//! its upper layer, the identifier of an ICMP query, or the port of the packet that an ICMP error
//! quotes (RFC 7596 §8.1, RFC 7597 §9).

use quiver_translation::versions::read::Kind;
use quiver_wire::{Header, Icmp4Header, Ip4Header, IpProtocol};

/// Types of ICMP queries whose identifier stands for a port: echo reply and echo.
const QUERIES: [u8; 2] = [0, 8];
/// Types of ICMP errors, which quote a packet: unreachable, quench, redirect, time, parameter.
const ERRORS: [u8; 5] = [3, 4, 5, 11, 12];

/// Whose port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Of the sender.
    Source,
    /// Of the receiver.
    Destination,
}

/// A port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// This one.
    Known(u16),
    /// The packet is a fragment without the upper layer's header.
    InFirstFragment,
    /// The protocol has none.
    Absent,
}

/// Headers run beyond the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

/// The port of one end of the packet that `bytes` begin with.
///
/// # Errors
/// Its headers are not whole.
#[inline(always)]
pub fn port(bytes: &[u8], end: End) -> Result<Port, Truncated> {
    let header = Ip4Header::overlay(bytes).ok_or(Truncated)?;
    if header.fragment_offset() != 0 {
        return Ok(Port::InFirstFragment);
    }
    let behind = bytes.get(header.header_len().max(Ip4Header::LEN)..).ok_or(Truncated)?;
    if header.protocol().has_ports() {
        return ports(behind, end);
    }
    match header.protocol() {
        IpProtocol::ICMP => of_icmp(behind, end),
        _ => Ok(Port::Absent),
    }
}

#[inline(always)]
fn ports(behind: &[u8], end: End) -> Result<Port, Truncated> {
    let [a, b, c, d] = *behind.first_chunk().ok_or(Truncated)?;
    Ok(Port::Known(match end {
        End::Source => u16::from_be_bytes([a, b]),
        End::Destination => u16::from_be_bytes([c, d]),
    }))
}

#[cold]
fn of_icmp(message: &[u8], end: End) -> Result<Port, Truncated> {
    let (icmp, quoted) = Icmp4Header::split(message).ok_or(Truncated)?;
    if let Some(identifier) = identifier(icmp) {
        return Ok(identifier);
    }
    if !ERRORS.contains(&icmp.kind) {
        return Ok(Port::Absent);
    }
    // Who receives an error has sent what it quotes.
    let end = match end {
        End::Source => End::Destination,
        End::Destination => End::Source,
    };
    let header = Ip4Header::overlay(quoted).ok_or(Truncated)?;
    if header.fragment_offset() != 0 {
        return Ok(Port::InFirstFragment);
    }
    let behind = quoted.get(header.header_len().max(Ip4Header::LEN)..).ok_or(Truncated)?;
    match header.protocol() {
        protocol if protocol.has_ports() => ports(behind, end),
        IpProtocol::ICMP => {
            let icmp = Icmp4Header::overlay(behind).ok_or(Truncated)?;
            Ok(identifier(icmp).unwrap_or(Port::Absent))
        }
        _ => Ok(Port::Absent),
    }
}

/// The port of one end of a packet that a translator has read.
#[inline(always)]
pub fn port_of(kind: Kind, protocol: IpProtocol, port: u16) -> Port {
    match kind {
        Kind::Query | Kind::Answer => Port::Known(port),
        Kind::LostFragment => Port::InFirstFragment,
        Kind::Data { .. } if matches!(protocol, IpProtocol::TCP | IpProtocol::UDP) => {
            Port::Known(port)
        }
        Kind::Data { .. } | Kind::Error | Kind::OtherIcmp => Port::Absent,
    }
}

fn identifier(icmp: &Icmp4Header) -> Option<Port> {
    let [high, low, ..] = icmp.rest;
    QUERIES.contains(&icmp.kind).then_some(Port::Known(u16::from_be_bytes([high, low])))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(protocol: u8, place: [u8; 2], behind: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 0, 0, 0, place[0], place[1], 64, protocol, 0, 0];
        bytes.extend([192, 0, 2, 1, 198, 51, 100, 1]);
        bytes.extend(behind);
        bytes
    }

    fn both(bytes: &[u8]) -> [Result<Port, Truncated>; 2] {
        [port(bytes, End::Source), port(bytes, End::Destination)]
    }

    #[test]
    fn ports_and_identifiers_are_read() {
        let known = |a, b| [Ok(Port::Known(a)), Ok(Port::Known(b))];
        assert_eq!(both(&packet(17, [0, 0], &[1, 2, 3, 4])), known(0x102, 0x304));
        assert_eq!(both(&packet(6, [0x20, 0], &[1, 2, 3, 4])), known(0x102, 0x304));
        assert_eq!(both(&packet(1, [0, 0], &[8, 0, 0, 0, 5, 6, 0, 1])), known(0x506, 0x506));
        assert_eq!(both(&packet(47, [0, 0], &[])), [Ok(Port::Absent); 2]);
        assert_eq!(both(&packet(1, [0, 0], &[13, 0, 0, 0, 5, 6, 0, 1])), [Ok(Port::Absent); 2]);
        assert_eq!(both(&packet(17, [0, 1], &[])), [Ok(Port::InFirstFragment); 2]);
        assert_eq!(both(&packet(17, [0, 0], &[1, 2, 3])), [Err(Truncated); 2]);
    }

    /// RFC 7596 §8.1: the lwAFTR looks at the packet inside of an error, whose source is who
    /// receives the error.
    #[test]
    fn the_port_of_an_error_is_that_of_the_quoted_packet() {
        let error =
            |quoted: Vec<u8>| packet(1, [0, 0], &[&[3, 3, 0, 0, 0, 0, 0, 0], &quoted[..]].concat());
        let of_udp = error(packet(17, [0, 0], &[1, 2, 3, 4]));
        assert_eq!(both(&of_udp), [Ok(Port::Known(0x304)), Ok(Port::Known(0x102))]);
        let of_echo = error(packet(1, [0, 0], &[8, 0, 0, 0, 5, 6, 0, 1]));
        assert_eq!(both(&of_echo), [Ok(Port::Known(0x506)); 2]);
        let of_error = error(packet(1, [0, 0], &[11, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(both(&of_error), [Ok(Port::Absent); 2]);
        assert_eq!(both(&error(packet(17, [0, 9], &[]))), [Ok(Port::InFirstFragment); 2]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), icmp: bool) {
            let mut bytes = bytes;
            if icmp && bytes.len() > 20 {
                (bytes[0], bytes[6], bytes[7], bytes[9], bytes[20]) = (0x45, 0, 0, 1, 3);
            }
            let _ = both(&bytes);
        }
    }
}

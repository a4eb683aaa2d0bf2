//! The header behind UDP (RFC 9300 §5.3, RFC 9305 §3), as tunnels write and read it.

use std::net::IpAddr;

use quiver_core::Packet;
use quiver_encap::inner::Truncated;
use quiver_encap::tunnel::{
    EndWords, Nodes, Parsed, Payload, TunnelConfig, TunnelDrop, TunnelProtocol,
};
use quiver_forwarding::fib::Family;
use quiver_wire::lisp::{DATA_PORT, LispHeader, Repr, next_protocol};
use quiver_wire::{Header, IntoBytes, IpProtocol};

/// Where LISP-GPE names what follows, and the flag that says so.
const NEXT_OFFSET: usize = 3;
const PROTOCOL: u8 = 0x04;

/// Data of LISP, with the instance ID as key. All remote locators of an instance are peers of one
/// multipoint tunnel.
pub struct Lisp;

/// What a tunnel of LISP has besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LispExtra {
    /// The local locators that send, IPv4 and IPv6.
    pub sources: [Option<IpAddr>; 2],
    /// The small numbers of the tables of the instance, IPv4 and IPv6.
    pub tables: [u32; 2],
    /// Does the header name what follows (LISP-GPE)?
    pub is_gpe: bool,
}

/// A header of an instance, before what follows is known.
fn header(instance: u32, is_gpe: bool) -> Vec<u8> {
    let next_protocol = is_gpe.then_some(0);
    Repr { instance: Some(instance), next_protocol }.header().as_bytes().to_vec()
}

impl TunnelProtocol for Lisp {
    const NAME: &'static str = "lisp-gpe";
    const WORDS: &'static str = "LISP tunnel";
    const INTERFACE: &'static str = "lisp_gpe";
    const NODES: Nodes = Nodes {
        encap: [["lisp4-encap-ip4", "lisp4-encap-ip6"], ["lisp6-encap-ip4", "lisp6-encap-ip6"]],
        encap_frames: ["", ""],
        output: "lisp-output",
        input: ["lisp4-input", "lisp6-input"],
        errors: ["lisp4-icmp-error", "lisp6-icmp-error"],
    };
    const UDP_PORT: Option<u16> = Some(DATA_PORT);
    const IP_PROTOCOLS: &'static [IpProtocol] = &[];
    const CARRIES_FRAMES: bool = false;
    const HAS_KEY: bool = true;
    const FOLLOWS_TEIB: bool = false;
    const HAS_SOURCES: bool = true;
    const HAS_TABLES: bool = true;
    type Extra = LispExtra;
    type Shared = ();

    fn sources(config: &TunnelConfig<LispExtra>) -> [Option<IpAddr>; 2] {
        config.extra.sources
    }

    fn end_words(config: &TunnelConfig<LispExtra>) -> EndWords {
        let [table4, table6] = config.extra.tables;
        EndWords { flags: 0, words: [u64::from(table4) << 32 | u64::from(table6), 0] }
    }

    #[inline(always)]
    fn table(end: EndWords, family: Family) -> u32 {
        match family {
            Family::Ip4 => (end.words[0] >> 32) as u32,
            Family::Ip6 => end.words[0] as u32,
        }
    }

    #[inline(always)]
    fn ip_protocol(_: IpProtocol) -> IpProtocol {
        IpProtocol::UDP
    }

    fn header_of(config: &TunnelConfig<LispExtra>) -> Vec<u8> {
        header(config.key.unwrap_or(0), config.extra.is_gpe)
    }

    fn header(key: Option<u32>) -> Vec<u8> {
        header(key.unwrap_or(0), false)
    }

    #[inline(always)]
    fn fill(bytes: &mut [u8], inside: IpProtocol) -> Result<(), Truncated> {
        let header: &mut [u8; LispHeader::LEN] = bytes.first_chunk_mut().ok_or(Truncated)?;
        let next = match inside {
            IpProtocol::IPV4 => next_protocol::IP4,
            IpProtocol::IPV6 => next_protocol::IP6,
            _ => return Err(Truncated),
        };
        if header[0] & PROTOCOL != 0 {
            header[NEXT_OFFSET] = next;
        }
        Ok(())
    }

    /// Without an instance ID a packet is of instance 0. The nonce, its echo, map-versions and the
    /// status of locators are not used (RFC 9300 §10).
    #[inline(always)]
    fn parse(_: IpProtocol, bytes: &[u8]) -> Result<Parsed, TunnelDrop> {
        let (header, behind) = LispHeader::split(bytes).ok_or(TunnelDrop::Truncated)?;
        if !header.is_well_formed() {
            return Err(TunnelDrop::Flags);
        }
        let version = behind.first().ok_or(TunnelDrop::Truncated)? >> 4;
        let payload = match (header.next_protocol(), version) {
            (Some(next_protocol::IP4), _) | (None, 4) => Payload::Ip4,
            (Some(next_protocol::IP6), _) | (None, 6) => Payload::Ip6,
            _ => return Err(TunnelDrop::Payload),
        };
        let key = Some(header.instance().unwrap_or(0));
        Ok(Parsed { header_len: LispHeader::LEN, payload, key, has_checksum: false })
    }

    fn checksum_is_good(_: &Packet, _: usize) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_is_written() {
        for is_gpe in [false, true] {
            for (inside, payload, first) in
                [(IpProtocol::IPV4, Payload::Ip4, 0x45), (IpProtocol::IPV6, Payload::Ip6, 0x60)]
            {
                let mut bytes = header(7, is_gpe);
                Lisp::fill(&mut bytes, inside).expect("room");
                bytes.push(first);
                let parsed = Parsed { header_len: 8, payload, key: Some(7), has_checksum: false };
                assert_eq!(Lisp::parse(IpProtocol::UDP, &bytes), Ok(parsed));
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_header_has_a_name() {
        let parse = |bytes: &[u8]| Lisp::parse(IpProtocol::UDP, bytes).map(|read| read.key);
        assert_eq!(parse(&[0, 0, 0, 0, 0, 0, 0]), Err(TunnelDrop::Truncated));
        assert_eq!(parse(&[0, 0, 0, 0, 0, 0, 0, 0]), Err(TunnelDrop::Truncated));
        assert_eq!(parse(&[0x90, 0, 0, 0, 0, 0, 0, 0, 0x45]), Err(TunnelDrop::Flags));
        assert_eq!(parse(&[0, 0, 0, 0, 0, 0, 0, 0, 0x55]), Err(TunnelDrop::Payload));
        assert_eq!(parse(&[4, 0, 0, 3, 0, 0, 0, 0, 0x45]), Err(TunnelDrop::Payload));
        assert_eq!(parse(&[0x40, 0, 0, 0, 0, 0, 0, 1, 0x45]), Ok(Some(0)));
    }
}

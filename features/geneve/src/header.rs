//! The header behind UDP (RFC 8926 §3.4), as tunnels write and read it.

use quiver_control::Args;
use quiver_core::Packet;
use quiver_encap::inner::Truncated;
use quiver_encap::tunnel::{
    ETHERNET, Nodes, Parsed, Payload, TunnelConfig, TunnelDrop, TunnelProtocol, UdpCommands,
    UdpTexts,
};
use quiver_wire::geneve::{self, GeneveHeader, PORT, TRANSPARENT_ETHERNET};
use quiver_wire::{EtherType, Header, IntoBytes, IpProtocol};

use crate::texts::TEXTS;

/// Where the header names what follows.
const PROTOCOL_OFFSET: usize = 2;

/// Geneve.
pub struct Geneve;

/// What an EtherType announces.
#[inline(always)]
fn payload(protocol: EtherType) -> Result<Payload, TunnelDrop> {
    match protocol {
        TRANSPARENT_ETHERNET => Ok(Payload::Frame),
        EtherType::IPV4 => Ok(Payload::Ip4),
        EtherType::IPV6 => Ok(Payload::Ip6),
        _ => Err(TunnelDrop::Payload),
    }
}

/// Check a header with options or flags. No option is known here: those that are not critical are
/// passed over (RFC 8926 §3.4, §3.5.1).
#[inline(never)]
fn check_options(header: &GeneveHeader, bytes: &[u8]) -> Result<(), TunnelDrop> {
    if header.version() != 0 {
        return Err(TunnelDrop::Version);
    }
    if header.is_control() {
        return Err(TunnelDrop::Payload);
    }
    let mut options = geneve::options(bytes).map_err(|_| TunnelDrop::Truncated)?;
    match header.has_critical() | options.any(|(option, _)| option.is_critical()) {
        true => Err(TunnelDrop::Critical),
        false => Ok(()),
    }
}

impl UdpCommands for Geneve {
    const TEXTS: UdpTexts = TEXTS;

    fn apply(args: &Args<'_>, config: &mut TunnelConfig) {
        config.carries_frames = !args.has("l3-mode");
    }

    fn options(config: &TunnelConfig) -> Option<&'static str> {
        (!config.carries_frames).then_some("l3-mode")
    }
}

impl TunnelProtocol for Geneve {
    const NAME: &'static str = "geneve";
    const WORDS: &'static str = "Geneve tunnel";
    const INTERFACE: &'static str = "geneve_tunnel";
    const NODES: Nodes = Nodes {
        encap: [
            ["geneve4-encap-ip4", "geneve4-encap-ip6"],
            ["geneve6-encap-ip4", "geneve6-encap-ip6"],
        ],
        encap_frames: ["geneve4-encap", "geneve6-encap"],
        output: "geneve-output",
        input: ["geneve4-input", "geneve6-input"],
        errors: ["geneve4-icmp-error", "geneve6-icmp-error"],
    };
    const UDP_PORT: Option<u16> = Some(PORT);
    const IP_PROTOCOLS: &'static [IpProtocol] = &[];
    const CARRIES_FRAMES: bool = true;
    const HAS_KEY: bool = true;
    type Extra = ();
    type Shared = ();

    #[inline(always)]
    fn ip_protocol(_: IpProtocol) -> IpProtocol {
        IpProtocol::UDP
    }

    fn header(key: Option<u32>) -> Vec<u8> {
        GeneveHeader::new(EtherType(0), key.unwrap_or(0)).as_bytes().to_vec()
    }

    #[inline(always)]
    fn fill(header: &mut [u8], inside: IpProtocol) -> Result<(), Truncated> {
        let protocol = match inside {
            ETHERNET => TRANSPARENT_ETHERNET,
            IpProtocol::IPV4 => EtherType::IPV4,
            IpProtocol::IPV6 => EtherType::IPV6,
            _ => return Err(Truncated),
        };
        let place = header.get_mut(PROTOCOL_OFFSET..).and_then(|rest| rest.first_chunk_mut::<2>());
        *place.ok_or(Truncated)? = protocol.0.to_be_bytes();
        Ok(())
    }

    #[inline(always)]
    fn parse(_: IpProtocol, bytes: &[u8]) -> Result<Parsed, TunnelDrop> {
        let header = GeneveHeader::overlay(bytes).ok_or(TunnelDrop::Truncated)?;
        if !header.is_bare() {
            check_options(header, bytes)?;
        }
        Ok(Parsed {
            header_len: GeneveHeader::LEN + header.options_len(),
            payload: payload(header.protocol())?,
            key: Some(header.vni()),
            has_checksum: false,
        })
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
        for (inside, payload) in [
            (ETHERNET, Payload::Frame),
            (IpProtocol::IPV4, Payload::Ip4),
            (IpProtocol::IPV6, Payload::Ip6),
        ] {
            let mut header = Geneve::header(Some(0x01_0203));
            Geneve::fill(&mut header, inside).expect("room");
            let key = Some(0x01_0203);
            let parsed = Parsed { header_len: 8, payload, key, has_checksum: false };
            assert_eq!(Geneve::parse(IpProtocol::UDP, &header), Ok(parsed));
        }
    }

    #[test]
    fn what_is_wrong_with_a_header_has_a_name() {
        let parse =
            |bytes: &[u8]| Geneve::parse(IpProtocol::UDP, bytes).map(|read| read.header_len);
        let with = |first: u8, flags: u8, options: &[u8]| {
            [&[first, flags, 0x65, 0x58, 0, 0, 7, 0][..], options].concat()
        };
        assert_eq!(parse(&with(0, 0, &[])[..7]), Err(TunnelDrop::Truncated));
        assert_eq!(parse(&with(0x40, 0, &[])), Err(TunnelDrop::Version));
        assert_eq!(parse(&with(0, 0x80, &[])), Err(TunnelDrop::Payload));
        assert_eq!(parse(&with(1, 0, &[])), Err(TunnelDrop::Truncated));
        assert_eq!(parse(&with(1, 0, &[1, 2, 3, 1])), Err(TunnelDrop::Truncated));
        assert_eq!(parse(&with(1, 0, &[1, 2, 3, 0])), Ok(12));
        assert_eq!(parse(&with(1, 0x40, &[1, 2, 0x83, 0])), Err(TunnelDrop::Critical));
        assert_eq!(parse(&with(1, 0, &[1, 2, 0x83, 0])), Err(TunnelDrop::Critical));
        assert_eq!(parse(&[0, 0, 0x88, 0x47, 0, 0, 7, 0]), Err(TunnelDrop::Payload));
    }
}

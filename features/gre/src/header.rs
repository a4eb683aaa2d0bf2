//! The header behind the outer IP header (RFC 2784, RFC 2890), as tunnels write and read it.

use quiver_control::{Args, Cell, Column, Command, Refusal};
use quiver_core::Engine;
use quiver_core::Packet;
use quiver_encap::inner::Truncated;
use quiver_encap::tunnel::{
    self, ETHERNET, Nodes, Parsed, Payload, SESSIONS, Sent, TunnelCommands, TunnelConfig,
    TunnelDrop, TunnelProtocol, TunnelTexts,
};
use quiver_offload::checksum::add_rest_as_sent;
use quiver_wire::checksum::Sum;
use quiver_wire::gre::{GreHeader, HEADER_BYTES_MAX, Repr, TRANSPARENT_ETHERNET};
use quiver_wire::{EtherType, Header, IpProtocol};

use crate::erspan::{Sequences, Session};
use crate::texts::TEXTS;

/// Where the header names what follows.
const PROTOCOL_OFFSET: usize = 2;

/// GRE.
pub struct Gre;

/// What an EtherType announces.
#[inline(always)]
fn payload(protocol: EtherType) -> Result<Payload, TunnelDrop> {
    match protocol {
        EtherType::IPV4 => Ok(Payload::Ip4),
        EtherType::IPV6 => Ok(Payload::Ip6),
        TRANSPARENT_ETHERNET => Ok(Payload::Frame),
        _ => Err(TunnelDrop::Payload),
    }
}

/// A header with optional fields, or a wrong one.
#[inline(never)]
fn parse_options(header: &GreHeader, bytes: &[u8]) -> Result<Parsed, TunnelDrop> {
    if header.version() != 0 {
        return Err(TunnelDrop::Version);
    }
    if !header.is_well_formed() {
        return Err(TunnelDrop::Flags);
    }
    let (repr, behind) = Repr::parse(bytes).map_err(|_| TunnelDrop::Truncated)?;
    if let (Some(version), Some(_)) = (crate::erspan::version(repr.protocol), repr.sequence) {
        let (session, length) = crate::erspan::parse(version, behind)?;
        return Ok(Parsed {
            header_len: repr.header_len() + length,
            payload: Payload::MirroredFrame,
            key: Some(session),
            has_checksum: repr.has_checksum,
        });
    }
    Ok(Parsed {
        header_len: repr.header_len(),
        payload: payload(repr.protocol)?,
        key: repr.key,
        has_checksum: repr.has_checksum,
    })
}

impl TunnelCommands for Gre {
    const TEXTS: TunnelTexts = TEXTS;

    fn described(args: &Args<'_>) -> Result<TunnelConfig<Self::Extra>, Refusal> {
        let session = Session::described(args)?;
        let config = tunnel::described::<Self>(args, session)?;
        if session.is_none() {
            return Ok(config);
        }
        if config.carries_frames || config.key.is_some() {
            let what = "an ERSPAN session is neither teb nor has it a key";
            return Err(Refusal::new(what).remedy("give erspan alone"));
        }
        Ok(TunnelConfig { carries_frames: true, ..config })
    }

    fn explained(command: Command<Engine>) -> Command<Engine> {
        tunnel::explained::<Self>(command)
            .word("erspan", "mirrored frames inside, of this session (ERSPAN type II)")
            .word("type-iii", "ERSPAN type III, with a time stamp")
    }

    fn words(config: &TunnelConfig<Self::Extra>) -> Vec<String> {
        let Some(session) = config.extra else { return tunnel::words(config) };
        let mut words = tunnel::words(&TunnelConfig { carries_frames: false, ..*config });
        words.extend(session.words());
        words
    }

    fn type_word(config: &TunnelConfig<Self::Extra>) -> &'static str {
        match config.extra {
            Some(session) => session.type_word(),
            None if config.carries_frames => "teb",
            None => "l3",
        }
    }

    fn columns() -> Vec<Column> {
        vec![Column::right("Session")]
    }

    fn cells(config: &TunnelConfig<Self::Extra>) -> Vec<Cell> {
        vec![config.extra.map(|session| session.id).into()]
    }
}

impl TunnelProtocol for Gre {
    const NAME: &'static str = "gre";
    const WORDS: &'static str = "GRE tunnel";
    const NODES: Nodes = Nodes {
        encap: [["gre4-encap-ip4", "gre4-encap-ip6"], ["gre6-encap-ip4", "gre6-encap-ip6"]],
        encap_frames: ["gre4-encap-teb", "gre6-encap-teb"],
        output: "gre-output",
        input: ["gre4-input", "gre6-input"],
        errors: ["gre4-icmp-error", "gre6-icmp-error"],
    };
    const IP_PROTOCOLS: &'static [IpProtocol] = &[IpProtocol::GRE];
    const CARRIES_FRAMES: bool = true;
    const HAS_KEY: bool = true;
    const NUMBERED_NODES: [&'static str; 2] = ["gre4-encap-erspan", "gre6-encap-erspan"];
    type Extra = Option<Session>;
    type Shared = Sequences;

    fn frame_nodes(config: &TunnelConfig<Self::Extra>) -> [&'static str; 2] {
        match config.extra {
            Some(_) => Self::NUMBERED_NODES,
            None => Self::NODES.encap_frames,
        }
    }

    fn key(config: &TunnelConfig<Self::Extra>) -> Option<u32> {
        config.extra.map(|session| session.id.into()).or(config.key)
    }

    fn space(config: &TunnelConfig<Self::Extra>) -> u16 {
        if config.extra.is_some() { SESSIONS } else { 0 }
    }

    #[inline(always)]
    fn number(sequences: &Sequences, sent: Sent, bytes: &mut [u8]) {
        crate::erspan::finish(sequences, sent, bytes);
    }

    #[inline(always)]
    fn ip_protocol(_: IpProtocol) -> IpProtocol {
        IpProtocol::GRE
    }

    fn header_of(config: &TunnelConfig<Self::Extra>) -> Vec<u8> {
        config.extra.map_or_else(|| Self::header(config.key), Session::header)
    }

    fn header(key: Option<u32>) -> Vec<u8> {
        let repr = Repr { protocol: EtherType(0), has_checksum: false, key, sequence: None };
        let mut bytes = vec![0; HEADER_BYTES_MAX];
        let length = repr.emit(&mut bytes).unwrap_or(0);
        bytes.truncate(length);
        bytes
    }

    #[inline(always)]
    fn fill(header: &mut [u8], inside: IpProtocol) -> Result<(), Truncated> {
        // The header of ERSPAN names it already.
        if inside == ETHERNET && crate::erspan::is_header(header) {
            return Ok(());
        }
        let protocol = match inside {
            IpProtocol::IPV4 => EtherType::IPV4,
            IpProtocol::IPV6 => EtherType::IPV6,
            ETHERNET => TRANSPARENT_ETHERNET,
            _ => return Err(Truncated),
        };
        let place = header.get_mut(PROTOCOL_OFFSET..).and_then(|rest| rest.first_chunk_mut::<2>());
        *place.ok_or(Truncated)? = protocol.0.to_be_bytes();
        Ok(())
    }

    #[inline(always)]
    fn parse(_: IpProtocol, bytes: &[u8]) -> Result<Parsed, TunnelDrop> {
        let header = GreHeader::overlay(bytes).ok_or(TunnelDrop::Truncated)?;
        if !header.is_bare() {
            return parse_options(header, bytes);
        }
        let payload = payload(header.protocol())?;
        Ok(Parsed { header_len: GreHeader::LEN, payload, key: None, has_checksum: false })
    }

    fn checksum_is_good(packet: &Packet, at: usize) -> bool {
        add_rest_as_sent(Sum::new(), packet, at).is_some_and(Sum::is_good)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_with_a_key_is_read_as_it_is_written() {
        for key in [None, Some(7)] {
            for (inside, payload) in [
                (IpProtocol::IPV4, Payload::Ip4),
                (IpProtocol::IPV6, Payload::Ip6),
                (ETHERNET, Payload::Frame),
            ] {
                let mut header = Gre::header(key);
                Gre::fill(&mut header, inside).expect("room");
                let parsed = Parsed { header_len: header.len(), payload, key, has_checksum: false };
                assert_eq!(Gre::parse(IpProtocol::GRE, &header), Ok(parsed));
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_header_has_a_name() {
        let parse = |bytes: &[u8]| Gre::parse(IpProtocol::GRE, bytes);
        assert_eq!(parse(&[0, 1, 8, 0]), Err(TunnelDrop::Version));
        assert_eq!(parse(&[0x40, 0, 8, 0]), Err(TunnelDrop::Flags));
        assert_eq!(parse(&[0x20, 0, 8, 0, 0, 0]), Err(TunnelDrop::Truncated));
        assert_eq!(parse(&[0, 0, 8]), Err(TunnelDrop::Truncated));
        assert_eq!(parse(&[0, 0, 0x88, 0x47]), Err(TunnelDrop::Payload));
    }
}

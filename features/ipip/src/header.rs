//! Nothing stands between the outer IP header and the inner packet: the outer header names it (RFC
//! 2003, RFC 4213, RFC 2473).

use quiver_core::Packet;
use quiver_encap::inner::Truncated;
use quiver_encap::tunnel::{
    Nodes, Parsed, Payload, TunnelCommands, TunnelDrop, TunnelProtocol, TunnelTexts,
};
use quiver_wire::IpProtocol;

use crate::texts::TEXTS;

/// IP in IP.
pub struct Ipip;

impl TunnelCommands for Ipip {
    const TEXTS: TunnelTexts = TEXTS;
}

impl TunnelProtocol for Ipip {
    const NAME: &'static str = "ipip";
    const WORDS: &'static str = "IP in IP tunnel";
    const NODES: Nodes = Nodes {
        encap: [["ipip4-encap-ip4", "ipip4-encap-ip6"], ["ipip6-encap-ip4", "ipip6-encap-ip6"]],
        encap_frames: ["", ""],
        output: "ipip-output",
        input: ["ipip4-input", "ipip6-input"],
        errors: ["ipip4-icmp-error", "ipip6-icmp-error"],
    };
    const IP_PROTOCOLS: &'static [IpProtocol] = &[IpProtocol::IPV4, IpProtocol::IPV6];
    const CARRIES_FRAMES: bool = false;
    const HAS_KEY: bool = false;
    type Extra = ();
    type Shared = ();

    #[inline(always)]
    fn ip_protocol(inside: IpProtocol) -> IpProtocol {
        inside
    }

    fn header(_: Option<u32>) -> Vec<u8> {
        Vec::new()
    }

    #[inline(always)]
    fn fill(_: &mut [u8], _: IpProtocol) -> Result<(), Truncated> {
        Ok(())
    }

    #[inline(always)]
    fn parse(protocol: IpProtocol, _: &[u8]) -> Result<Parsed, TunnelDrop> {
        let payload = match protocol {
            IpProtocol::IPV4 => Payload::Ip4,
            IpProtocol::IPV6 => Payload::Ip6,
            _ => return Err(TunnelDrop::Payload),
        };
        Ok(Parsed { header_len: 0, payload, key: None, has_checksum: false })
    }

    fn checksum_is_good(_: &Packet, _: usize) -> bool {
        true
    }
}

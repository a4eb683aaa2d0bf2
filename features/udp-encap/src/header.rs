//! Nothing stands between the UDP header and the inner packet.

use quiver_core::Packet;
use quiver_encap::inner::Truncated;
use quiver_encap::tunnel::{Nodes, Parsed, TunnelConfig, TunnelDrop, TunnelProtocol};
use quiver_wire::IpProtocol;

/// UDP encapsulation. It sends only: what comes is taken off by port, whoever sent it.
pub struct UdpEncap;

/// The source port of what is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePort {
    /// As it was configured.
    pub port: u16,
    /// Is it made of the flow inside instead?
    pub is_entropy: bool,
}

impl TunnelProtocol for UdpEncap {
    const NAME: &'static str = "udp-encap";
    const WORDS: &'static str = "UDP encapsulation";
    const INTERFACE: &'static str = "udp_encap";
    const NODES: Nodes = Nodes {
        encap: [["udp4-encap-ip4", "udp4-encap-ip6"], ["udp6-encap-ip4", "udp6-encap-ip6"]],
        encap_frames: ["", ""],
        output: "udp-encap-output",
        input: ["", ""],
        errors: ["", ""],
    };
    const UDP_PORT: Option<u16> = Some(0);
    const IP_PROTOCOLS: &'static [IpProtocol] = &[];
    const CARRIES_FRAMES: bool = false;
    const HAS_KEY: bool = true;
    const RECEIVES: bool = false;
    type Extra = SourcePort;
    type Shared = ();

    fn source_port(config: &TunnelConfig<SourcePort>) -> u16 {
        if config.extra.is_entropy { 0 } else { config.extra.port }
    }

    #[inline(always)]
    fn ip_protocol(_: IpProtocol) -> IpProtocol {
        IpProtocol::UDP
    }

    fn header(_: Option<u32>) -> Vec<u8> {
        Vec::new()
    }

    #[inline(always)]
    fn fill(_: &mut [u8], _: IpProtocol) -> Result<(), Truncated> {
        Ok(())
    }

    fn parse(_: IpProtocol, _: &[u8]) -> Result<Parsed, TunnelDrop> {
        Err(TunnelDrop::Payload)
    }

    fn checksum_is_good(_: &Packet, _: usize) -> bool {
        true
    }
}

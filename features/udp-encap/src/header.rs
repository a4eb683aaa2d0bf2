//! Nothing stands between the UDP header and the inner packet.

use quiver_core::Packet;
use quiver_encap::inner::Truncated;
use quiver_encap::tunnel::{Nodes, Parsed, Payload, TunnelConfig, TunnelDrop, TunnelProtocol};
use quiver_wire::IpProtocol;

/// UDP encapsulation. It sends only: what comes is taken off by port, from any sender.
pub struct UdpEncap;

/// The source port of what is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePort {
    /// As it was configured.
    pub port: u16,
    /// Is it made of the flow inside instead?
    pub is_entropy: bool,
}

/// UDP ports as a number; source port 0 stands for one that is made of each flow.
fn of_ports(from: u16, to: u16) -> u32 {
    u32::from(from) << 16 | u32::from(to)
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
        errors: ["udp4-encap-icmp-error", "udp6-encap-icmp-error"],
    };
    const UDP_PORT: Option<u16> = Some(0);
    const IP_PROTOCOLS: &'static [IpProtocol] = &[];
    const CARRIES_FRAMES: bool = false;
    const HAS_KEY: bool = true;
    const HAS_SENT_KEY: bool = true;
    const RECEIVES: bool = false;
    const TAKES_DATAGRAM_ERRORS: bool = true;
    type Extra = SourcePort;
    type Shared = ();

    fn source_port(config: &TunnelConfig<SourcePort>) -> u16 {
        if config.extra.is_entropy { 0 } else { config.extra.port }
    }

    fn sent_key(config: &TunnelConfig<SourcePort>) -> Option<u32> {
        let to = config.udp.map_or(0, |udp| udp.remote_port);
        Some(of_ports(Self::source_port(config), to))
    }

    /// With the source port of the datagram, or with one for each flow.
    fn quoted_keys([from, to]: [u16; 2], _: Option<u32>) -> [Option<u32>; 2] {
        [Some(of_ports(from, to)), Some(of_ports(0, to))]
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

    /// An ICMP error quotes it: nothing but the version in its first byte says what it is. Where
    /// the UDP header alone is quoted (RFC 792), the path's MTU is learned all the same.
    fn parse(_: IpProtocol, bytes: &[u8]) -> Result<Parsed, TunnelDrop> {
        let payload = match bytes.first().map_or(4, |first| first >> 4) {
            4 => Payload::Ip4,
            6 => Payload::Ip6,
            _ => return Err(TunnelDrop::Payload),
        };
        Ok(Parsed { header_len: 0, payload, key: None, has_checksum: false })
    }

    fn checksum_is_good(_: &Packet, _: usize) -> bool {
        true
    }
}

//! VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe): the header names what it carries.

use quiver_control::Args;
use quiver_core::Packet;
use quiver_encap::inner::Truncated;
use quiver_encap::tunnel::{
    ETHERNET, Nodes, Parsed, Payload, TunnelConfig, TunnelDrop, TunnelProtocol, UdpCommands,
    UdpTexts,
};
use quiver_wire::vxlan::{
    FLAG_OAM, FLAG_PROTOCOL, FLAG_VNI, GPE_PORT, VERSION_MASK, VxlanHeader, next,
};
use quiver_wire::{Header, IpProtocol};

use crate::header::bytes;
use crate::texts::GPE;

/// Where the header names what follows.
const NEXT_OFFSET: usize = 3;

/// VXLAN-GPE.
pub struct VxlanGpe;

/// A header whose flags are not those of a packet of a user.
#[cold]
fn refuse(flags: u8) -> TunnelDrop {
    if flags & FLAG_VNI == 0 {
        TunnelDrop::NoVni
    } else if flags & VERSION_MASK != 0 {
        TunnelDrop::Version
    } else {
        TunnelDrop::Flags
    }
}

impl UdpCommands for VxlanGpe {
    const TEXTS: UdpTexts = GPE;

    fn apply(args: &Args<'_>, config: &mut TunnelConfig) {
        config.carries_frames = args.has("next-ethernet");
    }

    fn options(config: &TunnelConfig) -> Option<&'static str> {
        config.carries_frames.then_some("next-ethernet")
    }
}

impl TunnelProtocol for VxlanGpe {
    const NAME: &'static str = "vxlan-gpe";
    const WORDS: &'static str = "VXLAN-GPE tunnel";
    const INTERFACE: &'static str = "vxlan_gpe_tunnel";
    const NODES: Nodes = Nodes {
        encap: [
            ["vxlan4-gpe-encap-ip4", "vxlan4-gpe-encap-ip6"],
            ["vxlan6-gpe-encap-ip4", "vxlan6-gpe-encap-ip6"],
        ],
        encap_frames: ["vxlan4-gpe-encap", "vxlan6-gpe-encap"],
        output: "vxlan-gpe-output",
        input: ["vxlan4-gpe-input", "vxlan6-gpe-input"],
        errors: ["vxlan4-gpe-icmp-error", "vxlan6-gpe-icmp-error"],
    };
    const UDP_PORT: Option<u16> = Some(GPE_PORT);
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
        bytes(key.unwrap_or(0), Some(0))
    }

    #[inline(always)]
    fn fill(header: &mut [u8], inside: IpProtocol) -> Result<(), Truncated> {
        let next = match inside {
            IpProtocol::IPV4 => next::IP4,
            IpProtocol::IPV6 => next::IP6,
            ETHERNET => next::ETHERNET,
            _ => return Err(Truncated),
        };
        *header.get_mut(NEXT_OFFSET).ok_or(Truncated)? = next;
        Ok(())
    }

    #[inline(always)]
    fn parse(_: IpProtocol, bytes: &[u8]) -> Result<Parsed, TunnelDrop> {
        let header = VxlanHeader::overlay(bytes).ok_or(TunnelDrop::Truncated)?;
        let looked_at = FLAG_VNI | FLAG_PROTOCOL | VERSION_MASK | FLAG_OAM;
        if header.flags() & looked_at != FLAG_VNI | FLAG_PROTOCOL {
            return Err(refuse(header.flags()));
        }
        let payload = match header.next() {
            next::IP4 => Payload::Ip4,
            next::IP6 => Payload::Ip6,
            next::ETHERNET => Payload::Frame,
            _ => return Err(TunnelDrop::Payload),
        };
        let key = Some(header.vni());
        Ok(Parsed { header_len: VxlanHeader::LEN, payload, key, has_checksum: false })
    }

    fn checksum_is_good(_: &Packet, _: usize) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_what_it_carries() {
        for (inside, payload) in [
            (IpProtocol::IPV4, Payload::Ip4),
            (IpProtocol::IPV6, Payload::Ip6),
            (ETHERNET, Payload::Frame),
        ] {
            let mut header = VxlanGpe::header(Some(9));
            VxlanGpe::fill(&mut header, inside).expect("room");
            let parsed = VxlanGpe::parse(IpProtocol::UDP, &header).expect("a header");
            assert_eq!((parsed.payload, parsed.key), (payload, Some(9)));
        }
    }

    #[test]
    fn what_is_wrong_with_a_header_has_a_name() {
        let parse = |flags: u8, next: u8| {
            VxlanGpe::parse(IpProtocol::UDP, &[flags, 0, 0, next, 0, 0, 9, 0]).unwrap_err()
        };
        assert_eq!(parse(0x04, 1), TunnelDrop::NoVni);
        assert_eq!(parse(0x1c, 1), TunnelDrop::Version);
        assert_eq!(parse(0x0d, 1), TunnelDrop::Flags);
        assert_eq!(parse(0x08, 1), TunnelDrop::Flags);
        assert_eq!(parse(0x0c, next::NSH), TunnelDrop::Payload);
    }
}

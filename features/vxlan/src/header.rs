//! The header behind UDP (RFC 7348 §5), as tunnels write and read it.

use quiver_core::Packet;
use quiver_encap::inner::Truncated;
use quiver_encap::tunnel::{
    FarEndCommands, FarEndNodes, FarEndTexts, Nodes, Parsed, Payload, TunnelDrop, TunnelProtocol,
    UdpCommands, UdpTexts,
};
use quiver_wire::vxlan::{FLAG_VNI, PORT, Repr, VxlanHeader};
use quiver_wire::{Header, IpProtocol};

use crate::texts::{FAR, VXLAN};

/// Where the header has the VNI.
const VNI_OFFSET: usize = 4;

/// VXLAN.
pub struct Vxlan;

/// A header with a VNI.
pub(crate) fn bytes(vni: u32, next: Option<u8>) -> Vec<u8> {
    let mut bytes = vec![0; VxlanHeader::LEN];
    let length = Repr { vni, next }.emit(&mut bytes).unwrap_or(0);
    bytes.truncate(length);
    bytes
}

impl UdpCommands for Vxlan {
    const TEXTS: UdpTexts = VXLAN;
}

impl FarEndCommands for Vxlan {
    const FAR_TEXTS: FarEndTexts = FAR;
}

impl TunnelProtocol for Vxlan {
    const NAME: &'static str = "vxlan";
    const WORDS: &'static str = "VXLAN tunnel";
    const INTERFACE: &'static str = "vxlan_tunnel";
    const NODES: Nodes = Nodes {
        encap: [[""; 2]; 2],
        encap_frames: ["vxlan4-encap", "vxlan6-encap"],
        output: "",
        input: ["vxlan4-input", "vxlan6-input"],
        errors: ["vxlan4-icmp-error", "vxlan6-icmp-error"],
    };
    const UDP_PORT: Option<u16> = Some(PORT);
    const IP_PROTOCOLS: &'static [IpProtocol] = &[];
    const CARRIES_PACKETS: bool = false;
    const CARRIES_FRAMES: bool = true;
    const HAS_KEY: bool = true;
    const FAR_ENDS: Option<FarEndNodes> = Some(FarEndNodes {
        encap: ["vxlan4-evpn-encap", "vxlan6-evpn-encap"],
        flood: ["vxlan4-evpn-replicate", "vxlan6-evpn-replicate"],
    });
    type Extra = ();
    type Shared = ();

    #[inline(always)]
    fn ip_protocol(_: IpProtocol) -> IpProtocol {
        IpProtocol::UDP
    }

    fn header(key: Option<u32>) -> Vec<u8> {
        bytes(key.unwrap_or(0), None)
    }

    #[inline(always)]
    fn fill(_: &mut [u8], _: IpProtocol) -> Result<(), Truncated> {
        Ok(())
    }

    #[inline(always)]
    fn put_key(header: &mut [u8], key: u32) -> Result<(), Truncated> {
        let place = header.get_mut(VNI_OFFSET..).and_then(|rest| rest.first_chunk_mut::<4>());
        *place.ok_or(Truncated)? = (key << 8).to_be_bytes();
        Ok(())
    }

    /// Reserved bits are ignored (RFC 7348 §5).
    #[inline(always)]
    fn parse(_: IpProtocol, bytes: &[u8]) -> Result<Parsed, TunnelDrop> {
        let header = VxlanHeader::overlay(bytes).ok_or(TunnelDrop::Truncated)?;
        if header.flags() & FLAG_VNI == 0 {
            return Err(TunnelDrop::NoVni);
        }
        Ok(Parsed {
            header_len: VxlanHeader::LEN,
            payload: Payload::Frame,
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
    fn a_header_is_read_as_it_is_written_and_one_without_vni_is_refused() {
        let mut header = Vxlan::header(Some(0x01_0203));
        let read = Vxlan::parse(IpProtocol::UDP, &header).map(|parsed| parsed.key);
        assert_eq!(read, Ok(Some(0x01_0203)));
        header[0] = !FLAG_VNI;
        assert_eq!(Vxlan::parse(IpProtocol::UDP, &header), Err(TunnelDrop::NoVni));
        assert_eq!(Vxlan::parse(IpProtocol::UDP, &header[..7]), Err(TunnelDrop::Truncated));
    }
}

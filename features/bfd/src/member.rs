//! `bfd-member-input`: frames that a member of an aggregate received for its own session (RFC
//! 7130). Their headers are checked here, for `ip4-local` and `ip6-local` do not see them.

use quiver_core::graph::node::NodeSpec;
use quiver_core::{Context, Frame, Node, NodeId, Packet};
use quiver_wire::bfd::{MEMBER_GROUP, MEMBER_PORT, State};
use quiver_wire::checksum::header_is_good;
use quiver_wire::udp::{is_good_over_ip4, is_good_over_ip6};
use quiver_wire::{
    EtherType, EthernetHeader, Header, Ip4Header, Ip6Header, IpProtocol, MacAddress, UdpHeader,
    VlanTag,
};

use crate::input;

/// The node's name.
pub const NODE: &str = "bfd-member-input";
/// Bytes of the MAC addresses, behind which a tag stands.
const ADDRESSES_BYTES: usize = 12;

quiver_core::reasons! {
    /// Why `bfd-member-input` discards frames.
    pub enum MemberDrop {
        /// Cut off, or a header that contradicts itself.
        Malformed = "malformed", "a BFD packet on a member of a bond whose IP or UDP header is \
            not that of a whole packet";
        /// IP or UDP.
        Checksum = "bad-checksum", "a BFD packet on a member of a bond with a wrong checksum";
        /// RFC 7130 §2.3.
        OtherMac = "other-mac", "a BFD packet on a member of a bond that is addressed to neither \
            the bond nor 01:00:5e:90:00:01";
    }
}

/// What a session on a member knows of its link.
#[derive(Clone, Copy, Debug)]
pub struct MemberLink {
    /// Send to the group for good, whatever the peer's address is.
    pub is_group_only: bool,
    /// Where the peer's packets came from last.
    pub peer: Option<MacAddress>,
    /// Packets sent since the session came up, up to the multiplier.
    pub ups_sent: u8,
}

impl MemberLink {
    /// A link whose peer was not heard.
    pub fn new(is_group_only: bool) -> MemberLink {
        MemberLink { is_group_only, peer: None, ups_sent: 0 }
    }

    /// Where the next packet goes: to the group until the session has been up for as many packets
    /// as its multiplier says (RFC 7130 §2.3).
    pub fn next_destination(&mut self, state: State, detect_mult: u8) -> MacAddress {
        if state != State::Up {
            self.ups_sent = 0;
            return MEMBER_GROUP;
        }
        if self.ups_sent < detect_mult {
            self.ups_sent += 1;
            return MEMBER_GROUP;
        }
        self.peer.filter(|_| !self.is_group_only).unwrap_or(MEMBER_GROUP)
    }

    /// A packet of the peer came from this address.
    pub fn learn(&mut self, source: MacAddress) {
        if source.is_unicast() {
            self.peer = Some(source);
        }
    }
}

/// The address that a packet came from which this node has passed on: its header still stands in
/// front.
pub fn source_of(packet: &mut Packet) -> Option<MacAddress> {
    if !packet.push(EthernetHeader::LEN) {
        return None;
    }
    let source = EthernetHeader::overlay(packet.bytes()).map(|header| header.source);
    packet.pull(EthernetHeader::LEN).then_some(source).flatten()
}

struct MemberInput {
    input: NodeId,
}

impl MemberInput {
    fn take(&self, own: MacAddress, packet: &mut Packet) -> Result<NodeId, MemberDrop> {
        let header = EthernetHeader::overlay(packet.bytes()).ok_or(MemberDrop::Malformed)?;
        if header.destination != MEMBER_GROUP && header.destination != own {
            return Err(MemberDrop::OtherMac);
        }
        // A priority tag says nothing here, and the addresses stand before the packet without it.
        if header.ether_type() == EtherType::VLAN && !packet.remove(ADDRESSES_BYTES, VlanTag::LEN) {
            return Err(MemberDrop::Malformed);
        }
        let header = EthernetHeader::overlay(packet.bytes()).ok_or(MemberDrop::Malformed)?;
        let ether_type = header.ether_type();
        if !packet.pull(EthernetHeader::LEN) {
            return Err(MemberDrop::Malformed);
        }
        match ether_type {
            EtherType::IPV4 => check4(packet.bytes()),
            EtherType::IPV6 => check6(packet.bytes()),
            _ => Err(MemberDrop::Malformed),
        }?;
        Ok(self.input)
    }
}

fn check4(packet: &[u8]) -> Result<(), MemberDrop> {
    let header = Ip4Header::overlay(packet).ok_or(MemberDrop::Malformed)?;
    let is_plain = header.is_version_4_without_options()
        && !header.is_fragment()
        && header.protocol() == IpProtocol::UDP;
    let upper = packet.get(Ip4Header::LEN..usize::from(header.total_length()));
    let datagram = upper.filter(|_| is_plain).and_then(datagram).ok_or(MemberDrop::Malformed)?;
    let is_good =
        header_is_good(header) && is_good_over_ip4(header.source(), header.destination(), datagram);
    is_good.then_some(()).ok_or(MemberDrop::Checksum)
}

fn check6(packet: &[u8]) -> Result<(), MemberDrop> {
    let (header, behind) = Ip6Header::split(packet).ok_or(MemberDrop::Malformed)?;
    let is_plain = header.version() == 6 && header.next_header() == IpProtocol::UDP;
    let upper = behind.get(..usize::from(header.payload_length()));
    let datagram = upper.filter(|_| is_plain).and_then(datagram).ok_or(MemberDrop::Malformed)?;
    let is_good = is_good_over_ip6(header.source(), header.destination(), datagram);
    is_good.then_some(()).ok_or(MemberDrop::Checksum)
}

/// The datagram in what IP carries, to the port of sessions on members.
fn datagram(upper: &[u8]) -> Option<&[u8]> {
    let header = UdpHeader::overlay(upper)?;
    let length = usize::from(header.length());
    let is_one = length >= UdpHeader::LEN && header.destination_port() == MEMBER_PORT;
    upper.get(..length).filter(|_| is_one)
}

impl Node for MemberInput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            let own = cx.interface(packet.rx).map_or(MacAddress::ZERO, |row| MacAddress(row.mac));
            self.take(own, packet)
        });
    }
}

/// The declaration.
pub fn spec() -> NodeSpec {
    NodeSpec::new(NODE, "Checks BFD packets of members of bonds", |w| {
        Box::new(MemberInput { input: w.node(input::NODE) })
    })
    .reasons::<MemberDrop>()
    .describe(|record, names| {
        let (rx, next) = (names.interface(record.rx), names.node(record.next));
        format!("BFD packet received on member {rx}, to {next}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_left_after_as_many_packets_as_the_multiplier_says() {
        let peer = MacAddress([2, 0, 0, 0, 0, 9]);
        let mut link = MemberLink::new(false);
        link.learn(MEMBER_GROUP);
        assert_eq!(link.peer, None, "a group sends nothing");
        link.learn(peer);
        let sent: Vec<_> = [State::Init, State::Up, State::Up, State::Up, State::Up]
            .map(|state| link.next_destination(state, 3))
            .into();
        assert_eq!(sent, [[MEMBER_GROUP; 4].as_slice(), &[peer]].concat());
        assert_eq!(link.next_destination(State::Down, 3), MEMBER_GROUP);
        assert_eq!(link.next_destination(State::Up, 3), MEMBER_GROUP, "it begins anew");
        let mut link = MemberLink { is_group_only: true, ..link };
        assert!((0..9).all(|_| link.next_destination(State::Up, 3) == MEMBER_GROUP));
    }
}

//! `ip4-local`: packets for the router itself, sorted by protocol. What nobody takes is answered
//! with "protocol unreachable" or "port unreachable" (RFC 1122 §3.2.2.1).

use std::net::Ipv4Addr;

use quiver_core::cpu::Variant;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::handover::GroupAccepted;
use quiver_forwarding::ip::{Ip4, IpFamily, IpTables};
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_forwarding::requests::ReassemblyRequest;
use quiver_offload::checksum::add_to_sum;
use quiver_tables::GroupId;
use quiver_wire::checksum::Sum;
use quiver_wire::icmp4::{kind, unreachable};
use quiver_wire::ip4::address;
use quiver_wire::ip4::options::Options;
use quiver_wire::{Header, Ip4Header, IpProtocol, TcpHeader, UdpHeader};

use crate::local::claims::{Claimed, are_uniform, claim_ports};
use crate::local::has_host;

quiver_core::reasons! {
    /// What becomes of packets for the router itself.
    pub enum Ip4LocalDrop {
        /// Not a whole packet.
        Truncated = "truncated", "the packet is shorter than its header says";
        /// There is no reassembly.
        Fragment = "fragment", "a fragment for the router itself; reassembly is not built in";
        /// From us, but not by us.
        Spoofed = "source-is-ours", "received from outside with one of the router's own addresses \
            as source";
        /// RFC 1112 §4.
        NotListening = "group-not-joined",
            "a multicast group that the interface does not listen to";
        /// RFC 7126 §4.3.
        SourceRoute = "source-route", "a source route option; source routing is not done";
        /// RFC 791 §3.1.
        BadOption = "bad-option", "an IPv4 option whose length is wrong";
        /// RFC 768.
        UdpLength = "udp-bad-length", "UDP length below 8 bytes or beyond the packet";
        /// RFC 768.
        UdpChecksum = "udp-bad-checksum", "UDP checksum wrong";
        /// RFC 9293 §3.1.
        TcpLength = "tcp-bad-length", "TCP header below 20 bytes or beyond the packet";
        /// RFC 9293 §3.1.
        TcpChecksum = "tcp-bad-checksum", "TCP checksum wrong";
        /// Nobody listens.
        PortClosed = "udp-port-closed", "UDP to a port where nothing listens";
        /// Nobody speaks it.
        ProtocolUnknown = "protocol-unknown", "a protocol that nothing in the router speaks";
    }
}

/// The key is the source, the answer its route: it must not lead here.
struct Ip4Local {
    tables: IpTables,
    own: NodeId,
    protocols: Claimed,
    punt: NodeId,
    error: NodeId,
    reassembly: Option<NodeId>,
}

const fn unreachable_request(code: u8) -> IcmpErrorRequest {
    IcmpErrorRequest { kind: kind::DESTINATION_UNREACHABLE, code, detail: 0 }
}

impl Ip4Local {
    /// `source` is the route of the packet's source.
    fn decide(
        &self,
        context: StageContext<'_>,
        source: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, Ip4LocalDrop> {
        let header = *Ip4Header::overlay(packet.bytes()).ok_or(Ip4LocalDrop::Truncated)?;
        let (header_len, total) = (header.header_len(), usize::from(header.total_length()));
        let upper = total.checked_sub(header_len).ok_or(Ip4LocalDrop::Truncated)?;
        let options =
            packet.bytes().get(Ip4Header::LEN..header_len).ok_or(Ip4LocalDrop::Truncated)?;
        if total > packet.length() {
            return Err(Ip4LocalDrop::Truncated);
        }
        check_options(options)?;
        if !packet.has(PacketFlags::LOCALLY_ORIGINATED) && self.leads_here(source) {
            return Err(Ip4LocalDrop::Spoofed);
        }
        if address::is_multicast(header.destination())
            && !self.listens_to(context, packet, header.destination())
            && !has_host(context.interface(packet.rx))
        {
            return Err(Ip4LocalDrop::NotListening);
        }
        if header.is_fragment() {
            return self.to_reassembly(packet);
        }
        if let Some(node) = self.protocols.node(header.protocol().0) {
            return Ok(node);
        }
        match header.protocol() {
            IpProtocol::UDP => {
                let port = check_udp(packet, &header, upper)?;
                if let Some(open) = self.tables.udp_ports.get(Family::Ip4, port) {
                    return Ok(open.node);
                }
                if has_host(context.interface(packet.rx)) {
                    return Ok(self.punt);
                }
                context.count(Ip4LocalDrop::PortClosed, 1);
                packet.hand_over(unreachable_request(unreachable::PORT));
                Ok(self.error)
            }
            IpProtocol::TCP => {
                check_tcp(packet, &header, upper)?;
                Ok(self.punt)
            }
            _ if has_host(context.interface(packet.rx)) => Ok(self.punt),
            _ => {
                context.count(Ip4LocalDrop::ProtocolUnknown, 1);
                packet.hand_over(unreachable_request(unreachable::PROTOCOL));
                Ok(self.error)
            }
        }
    }

    /// Does the route of a source lead to the router itself?
    fn leads_here(&self, source: GroupId) -> bool {
        self.tables.groups.resolve(source, 0).next == self.own
    }

    /// A fragment waits for the others; the whole comes back.
    fn to_reassembly(&self, packet: &mut Packet) -> Result<NodeId, Ip4LocalDrop> {
        let reassembly = self.reassembly.ok_or(Ip4LocalDrop::Fragment)?;
        let scope = self.tables.interfaces.table4(packet.rx);
        packet.hand_over(ReassemblyRequest { is_local: true, scope });
        Ok(reassembly)
    }

    /// Is this group all hosts of the link (RFC 1112 §4), or was it joined?
    fn listens_to(&self, context: StageContext<'_>, packet: &Packet, group: Ipv4Addr) -> bool {
        let pass = context.pass();
        let joined = || self.tables.interfaces.joined(packet.rx, group.into(), pass);
        group == address::ALL_HOSTS
            || joined()
            || packet.handed_over_if::<GroupAccepted>().is_some()
    }
}

/// Does the header of a packet say nothing but that it carries `protocol` to one host?
#[inline(always)]
fn is_plain(packet: &Packet, header: &Ip4Header, protocol: IpProtocol) -> bool {
    let total = usize::from(header.total_length());
    !packet.is_chained()
        & (header.protocol() == protocol)
        & (header.header_len() == Ip4Header::LEN)
        & (total >= Ip4Header::LEN)
        & (total <= packet.segment_length())
        & !header.is_fragment()
        & !address::is_multicast(header.destination())
}

/// The port that a datagram behind a header without options is for. Is it the whole packet, and
/// without a checksum?
#[inline(always)]
fn datagram(packet: &Packet) -> Option<(u16, bool)> {
    let behind = packet.bytes().get(Ip4Header::LEN..)?;
    let udp = UdpHeader::overlay(behind)?;
    let is_whole = (usize::from(udp.length()) == behind.len()) & (udp.checksum() == 0);
    Some((udp.destination_port(), is_whole))
}

fn check_options(options: &[u8]) -> Result<(), Ip4LocalDrop> {
    for option in Options::new(options) {
        match option {
            Ok(option) if option.is_source_route() => return Err(Ip4LocalDrop::SourceRoute),
            Ok(_) => {}
            Err(_) => return Err(Ip4LocalDrop::BadOption),
        }
    }
    Ok(())
}

/// Has somebody else seen to the checksum, or will?
fn is_checked(packet: &Packet) -> bool {
    packet.has(PacketFlags::L4_CHECKSUM_GOOD) || packet.has(PacketFlags::OFFLOAD)
}

fn sum_is_good(packet: &Packet, header: &Ip4Header, length: usize) -> bool {
    let sum = Sum::pseudo4(header.source(), header.destination(), header.protocol(), length as u16);
    add_to_sum(sum, packet, header.header_len(), length).is_some_and(Sum::is_good)
}

/// Is the UDP header right? The port that it is for.
fn check_udp(packet: &Packet, header: &Ip4Header, upper: usize) -> Result<u16, Ip4LocalDrop> {
    let bytes = packet.bytes().get(header.header_len()..).unwrap_or_default();
    let udp = UdpHeader::overlay(bytes).ok_or(Ip4LocalDrop::UdpLength)?;
    let length = usize::from(udp.length());
    if length < UdpHeader::LEN || length > upper {
        return Err(Ip4LocalDrop::UdpLength);
    }
    if udp.checksum() != 0 && !is_checked(packet) && !sum_is_good(packet, header, length) {
        return Err(Ip4LocalDrop::UdpChecksum);
    }
    Ok(udp.destination_port())
}

fn check_tcp(packet: &Packet, header: &Ip4Header, upper: usize) -> Result<(), Ip4LocalDrop> {
    let bytes = packet.bytes().get(header.header_len()..).unwrap_or_default();
    let tcp = TcpHeader::overlay(bytes).ok_or(Ip4LocalDrop::TcpLength)?;
    if tcp.header_len() < TcpHeader::LEN || tcp.header_len() > upper {
        return Err(Ip4LocalDrop::TcpLength);
    }
    if !is_checked(packet) && !sum_is_good(packet, header, upper) {
        return Err(Ip4LocalDrop::TcpChecksum);
    }
    Ok(())
}

impl LookUp for Ip4Local {
    const NAME: &'static str = nodes::ip4::LOCAL;
    type Reason = Ip4LocalDrop;
    type Key = u32;
    type Found = GroupId;
    /// The number of the interface's table.
    type InterfaceState = u32;

    fn interface_state(&self, _: &Context<'_>, rx: InterfaceId) -> u32 {
        self.tables.interfaces.table4(rx)
    }

    #[inline(always)]
    fn key(&self, _: u32, packet: &mut Packet) -> u32 {
        Ip4::source(packet.bytes()).unwrap_or_default()
    }

    #[inline(always)]
    fn find(&self, variant: Variant, table: u32, keys: &[u32], found: &mut [GroupId]) {
        self.tables.ip4.table(table).lookup_slice(variant, keys, found);
    }

    #[inline(always)]
    fn find_uniform(&self, variant: Variant, table: u32, keys: &[u32], found: &mut [GroupId]) {
        self.tables.ip4.table(table).lookup_uniform(variant, keys, found);
    }

    /// Ordinary packets from one host to a protocol that a node has claimed.
    #[inline(always)]
    fn decide_all(
        &self,
        _: StageContext<'_>,
        table: u32,
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        let first = packets.first()?;
        let header = Ip4Header::overlay(first.bytes())?;
        let (host, protocol) = (header.source_bits(), header.protocol());
        let from_others = || !self.leads_here(self.tables.ip4.table(table).lookup(host));
        if protocol == IpProtocol::UDP {
            let (to, _) = datagram(first)?;
            let node = self.tables.udp_ports.get(Family::Ip4, to)?.node;
            let are_uniform = are_uniform(packets, (host, to), |packet| {
                let header = Ip4Header::overlay(packet.bytes())?;
                let (to, is_whole) = datagram(packet)?;
                let is_plain = is_plain(packet, header, protocol) & is_whole;
                Some(((header.source_bits(), to), is_plain))
            });
            return (from_others() & are_uniform).then_some(node);
        }
        let node = self.protocols.node(protocol.0)?;
        let are_uniform = are_uniform(packets, host, |packet| {
            let header = Ip4Header::overlay(packet.bytes())?;
            Some((header.source_bits(), is_plain(packet, header, protocol)))
        });
        (from_others() & are_uniform).then_some(node)
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        _: u32,
        _: u32,
        source: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, Ip4LocalDrop> {
        self.decide(context, source, packet)
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::look_up("Sorts IPv4 packets for the router itself", move |wiring| {
        claim_ports(wiring, &tables.udp_ports, Family::Ip4, "udp4-port");
        Ip4Local {
            tables: tables.clone(),
            own: wiring.id,
            protocols: Claimed::of(wiring, "ip4-protocol"),
            punt: wiring.node(nodes::ip4::PUNT),
            error: wiring.node(nodes::ip4::ICMP_ERROR),
            reassembly: wiring.node_if_built("ip4-full-reassembly"),
        }
    })
    .takes_offloads()
    .describe(|record, names| {
        let request = record.handed_over::<IcmpErrorRequest>();
        let why = match (names.node(record.next).as_str(), request.code) {
            (nodes::ip4::ICMP_ERROR, unreachable::PORT) => ", port closed".to_owned(),
            (nodes::ip4::ICMP_ERROR, _) => ", protocol unknown".to_owned(),
            (next, _) => format!(", to {next}"),
        };
        format!("{}{why}", quiver_forwarding::ip4::describe(record.bytes()))
    })
}

//! `ip6-local`: packets for the router itself, sorted by protocol. What nobody takes is answered
//! with "parameter problem" or "port unreachable" (RFC 8200 §4, RFC 4443 §3).

use quiver_core::cpu::Variant;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::handover::GroupAccepted;
use quiver_forwarding::ip::{Ip6, IpFamily, IpTables, OpenPort};
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_forwarding::requests::ReassemblyRequest;
use quiver_tables::GroupId;
use quiver_wire::icmp6::{kind, unreachable};
use quiver_wire::ip6::address;
use quiver_wire::ip6::extension::{Extension, ExtensionBad, Ip6Option, Unknown, Walk};
use quiver_wire::{Header, Ip6Header, IpProtocol, TcpHeader, UdpHeader};

use crate::ip6::upper::{Upper, UpperBad};
use crate::local::claims::{Claimed, are_uniform, claim_ports};
use crate::local::has_host;

quiver_core::reasons! {
    /// What becomes of packets for the router itself.
    pub enum Ip6LocalDrop {
        /// Not a whole packet.
        Truncated = "truncated", "the packet is shorter than its header says";
        /// RFC 8200 §4.
        ExtensionTruncated = "extension-truncated", "an extension header or one of its options \
            runs beyond the packet";
        /// A limit.
        ExtensionsTooMany = "extensions-too-many", "more than 8 extension headers";
        /// RFC 8200 §4.1.
        HopByHopNotFirst = "hop-by-hop-not-first", "a hop-by-hop header that is not the first";
        /// RFC 8200 §4.2.
        UnknownOption = "unknown-option", "an option that says to drop the packet of who does not \
            know it";
        /// RFC 8200 §4.4, RFC 5095.
        RoutingHeader = "routing-header", "a routing header with segments left; source routing is \
            not done";
        /// There is no reassembly.
        Fragment = "fragment", "a fragment for the router itself; reassembly is not built in";
        /// From us, but not by us.
        Spoofed = "source-is-ours", "received from outside with one of the router's own addresses \
            as source";
        /// RFC 4291 §2.8.
        NotListening = "group-not-joined",
            "a multicast group that the interface does not listen to";
        /// RFC 768.
        UdpLength = "udp-bad-length", "UDP length below 8 bytes or beyond the packet";
        /// RFC 8200 §8.1.
        UdpChecksum = "udp-bad-checksum", "UDP checksum wrong, or none";
        /// RFC 9293 §3.1.
        TcpLength = "tcp-bad-length", "TCP header below 20 bytes or beyond the packet";
        /// RFC 9293 §3.1.
        TcpChecksum = "tcp-bad-checksum", "TCP checksum wrong";
        /// RFC 8200 §4.7.
        NothingFollows = "no-next-header", "nothing follows the headers";
        /// Nobody listens.
        PortClosed = "udp-port-closed", "UDP to a port where nothing listens";
        /// Nobody speaks it.
        ProtocolUnknown = "protocol-unknown", "a protocol that nothing in the router speaks";
    }
}

/// The key is the source, the answer its route: it must not lead here.
struct Ip6Local {
    tables: IpTables,
    own: NodeId,
    protocols: Claimed,
    punt: NodeId,
    error: NodeId,
    reassembly: Option<NodeId>,
}

/// An ICMP error is due, and why the packet goes no further.
struct Complaint(IcmpErrorRequest, Ip6LocalDrop);

fn problem(code: u8, pointer: usize) -> IcmpErrorRequest {
    IcmpErrorRequest { kind: kind::PARAMETER_PROBLEM, code, detail: pointer as u16 }
}

impl Ip6Local {
    /// `source` is the route of the packet's source.
    fn decide(
        &self,
        context: StageContext<'_>,
        source: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, Ip6LocalDrop> {
        let upper = match Upper::of(packet) {
            Ok(upper) => upper,
            // Reassembly tells the sender of a fragment whose headers are cut (RFC 7112 §5).
            Err(UpperBad::Extension(ExtensionBad::Truncated)) if is_first_fragment(packet) => {
                return self.to_reassembly(packet);
            }
            Err(UpperBad::Truncated) => return Err(Ip6LocalDrop::Truncated),
            Err(UpperBad::Extension(bad)) => return Err(extension_drop(bad)),
        };
        self.check_ends(context, source, packet, &upper)?;
        if let Some(complaint) = check_extensions(packet, &upper.header)? {
            return Ok(self.complain(context, packet, complaint));
        }
        if upper.is_fragment {
            return self.to_reassembly(packet);
        }
        if let Some(node) = self.protocols.node(upper.protocol.0) {
            return Ok(node);
        }
        match upper.protocol {
            IpProtocol::UDP => {
                if let Some(open) = self.check_udp(packet, &upper)? {
                    return Ok(open.node);
                }
                if has_host(context.interface(packet.rx)) {
                    return Ok(self.punt);
                }
                let request = IcmpErrorRequest {
                    kind: kind::DESTINATION_UNREACHABLE,
                    code: unreachable::PORT,
                    detail: 0,
                };
                Ok(self.complain(context, packet, Complaint(request, Ip6LocalDrop::PortClosed)))
            }
            IpProtocol::TCP => {
                check_tcp(packet, &upper)?;
                Ok(self.punt)
            }
            IpProtocol::NO_NEXT_HEADER => Err(Ip6LocalDrop::NothingFollows),
            _ if has_host(context.interface(packet.rx)) => Ok(self.punt),
            _ => {
                let request = problem(1, next_header_place(packet, &upper.header));
                Ok(self.complain(
                    context,
                    packet,
                    Complaint(request, Ip6LocalDrop::ProtocolUnknown),
                ))
            }
        }
    }

    /// Is the UDP header right? Who takes the port that it is for, if anybody does.
    fn check_udp(&self, packet: &Packet, upper: &Upper) -> Result<Option<OpenPort>, Ip6LocalDrop> {
        let udp = UdpHeader::overlay(upper.bytes(packet)).ok_or(Ip6LocalDrop::UdpLength)?;
        let length = usize::from(udp.length());
        if length < UdpHeader::LEN || length > upper.length {
            return Err(Ip6LocalDrop::UdpLength);
        }
        let open = self.tables.udp_ports.get(Family::Ip6, udp.destination_port());
        let may_be_zero = open.is_some_and(|open| open.takes_zero_checksum);
        let is_good = || match udp.checksum() {
            0 => may_be_zero,
            _ => upper.has_good_sum(packet, length),
        };
        if !is_checked(packet) && !is_good() {
            return Err(Ip6LocalDrop::UdpChecksum);
        }
        Ok(open)
    }

    /// A fragment waits for the others; the whole comes back.
    fn to_reassembly(&self, packet: &mut Packet) -> Result<NodeId, Ip6LocalDrop> {
        let reassembly = self.reassembly.ok_or(Ip6LocalDrop::Fragment)?;
        let scope = self.tables.interfaces.table6(packet.rx);
        packet.hand_over(ReassemblyRequest { is_local: true, scope });
        Ok(reassembly)
    }

    fn complain(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        complaint: Complaint,
    ) -> NodeId {
        let Complaint(request, why) = complaint;
        context.count(why, 1);
        packet.hand_over(request);
        self.error
    }

    /// Does the route of a source lead to the router itself?
    fn leads_here(&self, source: GroupId) -> bool {
        self.tables.groups.resolve(source, 0).next == self.own
    }

    /// Is it really for us, and from somebody else?
    fn check_ends(
        &self,
        context: StageContext<'_>,
        source: GroupId,
        packet: &Packet,
        upper: &Upper,
    ) -> Result<(), Ip6LocalDrop> {
        let header = &upper.header;
        let own = self.tables.interfaces.addresses(packet.rx, context.pass());
        let destination = header.destination();
        let is_discovery = upper.protocol == IpProtocol::ICMP6 && is_discovery(packet, upper);
        // The target says whether a solicitation is for us: routes make addresses ours, too.
        let solicits = is_discovery && address::is_solicited_node(destination);
        let listens = || {
            own.is_some_and(|own| own.listens_to(destination))
                || self.tables.interfaces.joined(packet.rx, destination.into(), context.pass())
        };
        if address::is_multicast(destination)
            && !solicits
            && !listens()
            && packet.handed_over_if::<GroupAccepted>().is_none()
            && !has_host(context.interface(packet.rx))
        {
            return Err(Ip6LocalDrop::NotListening);
        }
        // Who uses one of our addresses says so with it: neighbour discovery finds out.
        if packet.has(PacketFlags::LOCALLY_ORIGINATED) || is_discovery {
            return Ok(());
        }
        if self.leads_here(source) || own.is_some_and(|own| own.has6(header.source())) {
            return Err(Ip6LocalDrop::Spoofed);
        }
        Ok(())
    }
}

/// Do the headers of a packet say nothing but that it carries `protocol` to one host?
#[inline(always)]
fn is_plain(packet: &Packet, header: &Ip6Header, protocol: IpProtocol) -> bool {
    let length = usize::from(header.payload_length()) + Ip6Header::LEN;
    !packet.is_chained()
        & (header.next_header() == protocol)
        & (length <= packet.segment_length())
        & !address::is_multicast(header.destination())
}

/// Is there a fragment header in front of what is wrong?
fn is_first_fragment(packet: &Packet) -> bool {
    let Some((header, behind)) = Ip6Header::split(packet.bytes()) else { return false };
    let mut headers = Walk::new(header.next_header(), behind).flatten();
    headers.find_map(|extension| extension.fragment()).is_some_and(|fragment| !fragment.is_atomic())
}

/// A solicitation or an advertisement of a neighbour?
fn is_discovery(packet: &Packet, upper: &Upper) -> bool {
    let kind = upper.bytes(packet).first().copied();
    matches!(kind, Some(kind::NEIGHBOR_SOLICITATION | kind::NEIGHBOR_ADVERTISEMENT))
}

fn extension_drop(bad: ExtensionBad) -> Ip6LocalDrop {
    match bad {
        ExtensionBad::Truncated => Ip6LocalDrop::ExtensionTruncated,
        ExtensionBad::TooMany => Ip6LocalDrop::ExtensionsTooMany,
        ExtensionBad::HopByHopNotFirst => Ip6LocalDrop::HopByHopNotFirst,
    }
}

/// Look at what the extension headers ask for.
fn check_extensions(
    packet: &Packet,
    header: &Ip6Header,
) -> Result<Option<Complaint>, Ip6LocalDrop> {
    let behind = packet.bytes().get(Ip6Header::LEN..).unwrap_or_default();
    for extension in Walk::new(header.next_header(), behind) {
        let extension = extension.map_err(extension_drop)?;
        if extension.routing().is_some_and(|(_, left)| left > 0) {
            let request = problem(0, Ip6Header::LEN + extension.offset + 2);
            return Ok(Some(Complaint(request, Ip6LocalDrop::RoutingHeader)));
        }
        if let Some(complaint) = check_options(&extension, header)? {
            return Ok(Some(complaint));
        }
    }
    Ok(None)
}

fn check_options(
    extension: &Extension<'_>,
    header: &Ip6Header,
) -> Result<Option<Complaint>, Ip6LocalDrop> {
    for option in extension.options() {
        let option = option.map_err(extension_drop)?;
        if option.kind == Ip6Option::ROUTER_ALERT {
            continue;
        }
        let inside =
            (option.data.as_ptr() as usize).saturating_sub(extension.bytes.as_ptr() as usize + 2);
        let request = problem(2, Ip6Header::LEN + extension.offset + inside);
        match option.if_unknown() {
            Unknown::Skip => {}
            Unknown::ReportUnlessMulticast if address::is_multicast(header.destination()) => {
                return Err(Ip6LocalDrop::UnknownOption);
            }
            Unknown::Drop => return Err(Ip6LocalDrop::UnknownOption),
            Unknown::Report | Unknown::ReportUnlessMulticast => {
                return Ok(Some(Complaint(request, Ip6LocalDrop::UnknownOption)));
            }
        }
    }
    Ok(None)
}

/// Where the field stands that names the upper layer.
fn next_header_place(packet: &Packet, header: &Ip6Header) -> usize {
    const NEXT_HEADER: usize = 6;
    let behind = packet.bytes().get(Ip6Header::LEN..).unwrap_or_default();
    let last = Walk::new(header.next_header(), behind).flatten().last();
    last.map_or(NEXT_HEADER, |extension| Ip6Header::LEN + extension.offset)
}

/// Has somebody else seen to the checksum, or will?
fn is_checked(packet: &Packet) -> bool {
    packet.has(PacketFlags::L4_CHECKSUM_GOOD) || packet.has(PacketFlags::OFFLOAD)
}

/// The port that a datagram behind a header without extensions is for. Is it the whole packet, and
/// without a checksum?
#[inline(always)]
fn datagram(packet: &Packet) -> Option<(u16, bool)> {
    let behind = packet.bytes().get(Ip6Header::LEN..)?;
    let udp = UdpHeader::overlay(behind)?;
    let is_whole = (usize::from(udp.length()) == behind.len()) & (udp.checksum() == 0);
    Some((udp.destination_port(), is_whole))
}

fn check_tcp(packet: &Packet, upper: &Upper) -> Result<(), Ip6LocalDrop> {
    let tcp = TcpHeader::overlay(upper.bytes(packet)).ok_or(Ip6LocalDrop::TcpLength)?;
    if tcp.header_len() < TcpHeader::LEN || tcp.header_len() > upper.length {
        return Err(Ip6LocalDrop::TcpLength);
    }
    if !is_checked(packet) && !upper.has_good_sum(packet, upper.length) {
        return Err(Ip6LocalDrop::TcpChecksum);
    }
    Ok(())
}

impl LookUp for Ip6Local {
    const NAME: &'static str = nodes::ip6::LOCAL;
    type Reason = Ip6LocalDrop;
    type Key = u128;
    type Found = GroupId;
    /// The number of the interface's table.
    type InterfaceState = u32;

    fn interface_state(&self, _: &Context<'_>, rx: InterfaceId) -> u32 {
        self.tables.interfaces.table6(rx)
    }

    #[inline(always)]
    fn key(&self, _: u32, packet: &mut Packet) -> u128 {
        Ip6::source(packet.bytes()).unwrap_or_default()
    }

    #[inline(always)]
    fn find(&self, variant: Variant, table: u32, keys: &[u128], found: &mut [GroupId]) {
        self.tables.ip6.table(table).lookup_slice(variant, keys, found);
    }

    #[inline(always)]
    fn find_uniform(&self, variant: Variant, table: u32, keys: &[u128], found: &mut [GroupId]) {
        self.tables.ip6.table(table).lookup_uniform(variant, keys, found);
    }

    /// Ordinary packets from one host to a protocol that a node has claimed.
    #[inline(always)]
    fn decide_all(
        &self,
        context: StageContext<'_>,
        table: u32,
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        let first = packets.first()?;
        let header = Ip6Header::overlay(first.bytes())?;
        let (host, protocol) = (header.source(), header.next_header());
        let own = self.tables.interfaces.addresses(first.rx, context.pass());
        let bits = header.source_bits();
        let from_others = || {
            !self.leads_here(self.tables.ip6.table(table).lookup(bits))
                & !own.is_some_and(|own| own.has6(host))
        };
        if protocol == IpProtocol::UDP {
            let (to, _) = datagram(first)?;
            let open = self.tables.udp_ports.get(Family::Ip6, to)?;
            let are_uniform = are_uniform(packets, (host, to), |packet| {
                let header = Ip6Header::overlay(packet.bytes())?;
                let (to, is_whole) = datagram(packet)?;
                let is_plain = is_plain(packet, header, protocol) & is_whole;
                Some(((header.source(), to), is_plain))
            });
            return (open.takes_zero_checksum & from_others() & are_uniform).then_some(open.node);
        }
        let node = self.protocols.node(protocol.0).filter(|_| protocol != IpProtocol::ICMP6)?;
        let are_uniform = are_uniform(packets, host, |packet| {
            let header = Ip6Header::overlay(packet.bytes())?;
            Some((header.source(), is_plain(packet, header, protocol)))
        });
        (from_others() & are_uniform).then_some(node)
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        _: u32,
        _: u128,
        source: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, Ip6LocalDrop> {
        self.decide(context, source, packet)
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::look_up("Sorts IPv6 packets for the router itself", move |wiring| {
        claim_ports(wiring, &tables.udp_ports, Family::Ip6, "udp6-port");
        Ip6Local {
            tables: tables.clone(),
            own: wiring.id,
            protocols: Claimed::of(wiring, "ip6-protocol"),
            punt: wiring.node(nodes::ip6::PUNT),
            error: wiring.node(nodes::ip6::ICMP_ERROR),
            reassembly: wiring.node_if_built("ip6-full-reassembly"),
        }
    })
    .takes_offloads()
    .describe(|record, names| {
        let request = record.handed_over::<IcmpErrorRequest>();
        let why = match (names.node(record.next).as_str(), request.kind) {
            (nodes::ip6::ICMP_ERROR, kind::DESTINATION_UNREACHABLE) => ", port closed".to_owned(),
            (nodes::ip6::ICMP_ERROR, _) => format!(", header wrong at byte {}", request.detail),
            (next, _) => format!(", to {next}"),
        };
        format!("{}{why}", quiver_forwarding::ip6::describe(record.bytes()))
    })
}

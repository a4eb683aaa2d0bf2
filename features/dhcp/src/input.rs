//! `dhcp-proxy` and `dhcpv6-proxy`: packets for the relay agent go to the control thread, and what
//! it answers leaves by them. `ip4-dhcp-client-detect`: so do packets for a DHCP client.

use std::any::Any;
use std::sync::Arc;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::arrivals::{self, NotCopied};
use quiver_core::graph::builtin::DONE;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::sessions::{SessionInput, Taken, run_sessions};
use quiver_core::memory::epoch::Published;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::throttle::Shares;
use quiver_core::{Context, Frame, InterfaceId, Node, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::nodes;
use quiver_wire::dhcp4::{CLIENT_PORT, Dhcp4Header, REPLY};
use quiver_wire::{
    EtherType, EthernetHeader, Header, Ip4Header, IpProtocol, MacAddress, UdpHeader,
};

use crate::datagram::Datagram;
use crate::reasons::{ClientReason, RelayReason};

/// The node of the IPv4 relay agent.
pub const RELAY4: &str = "dhcp-proxy";
/// The node of the IPv6 relay agent.
pub const RELAY6: &str = "dhcpv6-proxy";
/// The node in front of the look-up that takes packets for a DHCP client.
pub const DETECT: &str = "ip4-dhcp-client-detect";
/// Packets that a worker takes in a second, of all interfaces.
pub const PACKETS_PER_SECOND_MAX: u64 = 4000;
/// Packets that it takes of one interface.
pub const PACKETS_OF_INTERFACE_PER_SECOND_MAX: u64 = 1000;
/// So many may come at once of one interface.
pub const PACKETS_BURST: u64 = 64;

/// Bytes of a packet that is taken, from its IP header on.
pub const PACKET_BYTES_MAX: usize = 2048;
/// Packets of one node of one worker that wait for the control thread at most.
pub const PACKETS_WAITING_MAX: usize = 256;

/// A packet that a worker has taken.
pub type Arrival = arrivals::Arrival<PACKET_BYTES_MAX>;
/// Packets that workers have taken.
pub type Arrivals = arrivals::Arrivals<PACKET_BYTES_MAX>;
/// Where workers put them.
pub type Senders = arrivals::ArrivalSenders<PACKET_BYTES_MAX>;
pub(crate) type Sender = arrivals::ArrivalSender<PACKET_BYTES_MAX>;

/// Small numbers of the tables in which clients and servers are, in order. Replaced whole.
pub type Tables = Published<Vec<u32>>;

pub(crate) fn shares() -> Shares {
    Shares::new(PACKETS_PER_SECOND_MAX, PACKETS_OF_INTERFACE_PER_SECOND_MAX, PACKETS_BURST)
}

impl From<NotCopied> for RelayReason {
    fn from(why: NotCopied) -> RelayReason {
        match why {
            NotCopied::TooLong => RelayReason::TooLong,
            NotCopied::Full => RelayReason::Busy,
        }
    }
}

impl From<NotCopied> for ClientReason {
    fn from(why: NotCopied) -> ClientReason {
        match why {
            NotCopied::TooLong => ClientReason::TooLong,
            NotCopied::Full => ClientReason::Busy,
        }
    }
}

/// The MAC address that a packet came from, as a number; 0 where it did not come in an Ethernet
/// frame of the receiving interface, whose header is still in front of it.
fn source_mac(cx: &Context<'_>, packet: &mut Packet) -> u64 {
    let row = cx.interface(packet.rx).filter(|row| row.mac != [0; 6]);
    let Some(row) = row else { return 0 };
    let length = EthernetHeader::LEN + row.encapsulation.bytes().len();
    if !packet.push(length) {
        return 0;
    }
    let frame = packet.bytes();
    let kind = frame.get(length - 2..length);
    let is_ip6 = kind == Some(&EtherType::IPV6.0.to_be_bytes()[..]);
    let is_ours = |to: MacAddress| to.is_multicast() || to.0 == row.mac;
    let header = EthernetHeader::overlay(frame).filter(|header| is_ours(header.destination));
    let mac = header.filter(|_| is_ip6).map_or(0, |header| header.source.to_u64());
    let is_back = packet.pull(length);
    debug_assert!(is_back, "it was pushed");
    mac
}

/// A worker's instance of a relay agent's node.
pub struct RelayInput {
    family: Family,
    tables: IpTables,
    enabled: Arc<Tables>,
    sender: Sender,
    shares: Shares,
    lookup_in_table: NodeId,
}

impl RelayInput {
    /// Sends a packet by the routes of a table (a small number).
    pub fn send(&mut self, cx: &mut Context<'_>, bytes: &[u8], table: u32) {
        let Some(mut packet) = cx.buffers.packet() else {
            cx.count(RelayReason::NoBuffer, 1);
            return;
        };
        (packet.rx, packet.tx) = (InterfaceId::NONE, InterfaceId::NONE);
        packet.set(PacketFlags::LOCALLY_ORIGINATED);
        if !packet.append(bytes, cx.buffers) {
            cx.count(RelayReason::NoBuffer, 1);
            cx.buffers.free(packet);
            return;
        }
        packet.hand_over(TableIndex(table));
        cx.emit(packet, self.lookup_in_table);
    }
}

impl SessionInput for RelayInput {
    type Reason = RelayReason;
    // Not returned: each worker takes the packets that it receives.
    const HANDOFF_FULL: RelayReason = RelayReason::Busy;

    fn take(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<Taken, RelayReason> {
        let interfaces = &self.tables.interfaces;
        let table = match self.family {
            Family::Ip4 => interfaces.table4(packet.rx),
            Family::Ip6 => interfaces.table6(packet.rx),
        };
        if self.enabled.read(cx.pass).binary_search(&table).is_err() {
            return Err(RelayReason::NotConfigured);
        }
        if !self.shares.take(packet.rx, cx.now_ns) {
            return Err(RelayReason::TooMany);
        }
        let note = if self.family == Family::Ip6 { source_mac(cx, packet) } else { 0 };
        self.sender.send(packet, note)?;
        cx.count(RelayReason::Taken, 1);
        Ok(Taken::Here)
    }

    fn is_unknown(reason: RelayReason) -> bool {
        reason == RelayReason::NotConfigured
    }
}

impl Node for RelayInput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        run_sessions(self, cx, frame);
    }

    fn as_any(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

/// What a trace says of a packet.
pub(crate) fn describe(bytes: &[u8], next: &str) -> String {
    match Datagram::of(bytes) {
        Some(datagram) => format!(
            "DHCP from {} port {}, {} bytes, to {next}",
            datagram.source,
            datagram.ports.0,
            datagram.payload.len()
        ),
        None => format!("to {next}"),
    }
}

/// The declaration of a relay agent's node.
pub fn relay_spec(family: Family, enabled: &Arc<Tables>, senders: Senders) -> NodeSpec {
    let enabled = enabled.clone();
    let (name, help, lookup_in_table) = match family {
        Family::Ip4 => {
            (RELAY4, "Takes DHCP packets for the relay agent", nodes::ip4::LOOKUP_IN_TABLE)
        }
        Family::Ip6 => {
            (RELAY6, "Takes DHCPv6 packets for the relay agent", nodes::ip6::LOOKUP_IN_TABLE)
        }
    };
    NodeSpec::new(name, help, move |wiring| {
        let tables: Arc<IpTables> = wiring.shared();
        Box::new(RelayInput {
            family,
            tables: (*tables).clone(),
            enabled: enabled.clone(),
            sender: senders.take(wiring.worker.index()),
            shares: shares(),
            lookup_in_table: wiring.node(lookup_in_table),
        })
    })
    .reasons::<RelayReason>()
    .describe(|record, names| describe(record.bytes(), &names.node(record.next)))
}

/// A worker's instance of the node that takes packets for a DHCP client.
pub struct Detect {
    arc: ArcId,
    lookup: NodeId,
    sender: Sender,
    shares: Shares,
}

/// Is it a server's message to the client with this MAC address? Others may be forwarded.
fn is_for_client(packet: &Packet, mac: [u8; 6]) -> bool {
    let bytes = packet.bytes();
    let Some(header) = Ip4Header::overlay(bytes) else { return false };
    if header.protocol() != IpProtocol::UDP || header.is_fragment() {
        return false;
    }
    let behind = bytes.get(header.header_len()..).and_then(UdpHeader::split);
    let Some((udp, payload)) = behind else { return false };
    udp.destination_port() == CLIENT_PORT
        && Dhcp4Header::overlay(payload)
            .is_some_and(|message| message.op == REPLY && message.mac() == Some(MacAddress(mac)))
}

impl Detect {
    fn decide(&mut self, cx: &Context<'_>, packet: &mut Packet) -> Result<NodeId, ClientReason> {
        let mac = cx.interface(packet.rx).map_or([0; 6], |row| row.mac);
        if !is_for_client(packet, mac) {
            return Ok(cx.next_in_arc(self.arc, packet.rx, packet, self.lookup));
        }
        if !self.shares.take(packet.rx, cx.now_ns) {
            return Err(ClientReason::TooMany);
        }
        self.sender.send(packet, 0)?;
        cx.count(ClientReason::Taken, 1);
        Ok(DONE)
    }
}

impl Node for Detect {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }

    fn as_any(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

/// The declaration of the node that takes packets for a DHCP client.
pub fn detect_spec(arc: ArcId, senders: Senders) -> NodeSpec {
    let help = "Takes packets for a DHCP client of the router";
    NodeSpec::new(DETECT, help, move |wiring| {
        Box::new(Detect {
            arc,
            lookup: wiring.node(nodes::ip4::LOOKUP),
            sender: senders.take(wiring.worker.index()),
            shares: shares(),
        })
    })
    .takes_offloads()
    .reasons::<ClientReason>()
    .describe(|record, names| describe(record.bytes(), &names.node(record.next)))
}

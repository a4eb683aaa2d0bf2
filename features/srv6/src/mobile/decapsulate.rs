//! From GTP-U to SRv6: what End.M.GTP6.D, End.M.GTP6.D.Di and H.M.GTP4.D have in common (RFC 9433
//! §6.3, §6.4, §6.7). The outer headers of a user's packet are exchanged for the gateway's, into
//! whose SID the session is written.

use std::sync::Arc;

use quiver_core::graph::node::Wiring;
use quiver_core::graph::stage::StageContext;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{NodeId, Packet};
use quiver_encap::WorkerEncapEntries;
use quiver_encap::flow::flow_label;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily, choose};
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_tables::{CountedLines, GroupId};
use quiver_wire::gtpu::message;
use quiver_wire::ip6::MTU_MIN;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, icmp4, icmp6};

use super::args::{IP4_BITS, SESSION_BITS, Session};
use super::echo;
use super::encap_template::{Filling, Row, SRH_AT};
use super::encapsulate::leave_headers;
use super::g_pdu::GPdu;
use super::gtpu_message::GtpuMessage;
use super::lookup_keys::LookupKeys;
use super::messages::{self, ELEMENTS_BYTES_MAX, TLV_BYTES_MAX};
use super::mtu_check::MtuCheck;
use crate::endpoint::next_nodes::NextNodes;
use crate::endpoint::reasons::{Bad, LocalSidDrop};

/// The smallest MTU that IPv4 hosts are told of, in bytes (RFC 791: what every link carries).
const IP4_MTU_MIN: usize = 68;
/// The longest payload of an IPv6 packet, in bytes.
const PAYLOAD_BYTES_MAX: usize = u16::MAX as usize;
/// The longest header in front of a message.
const MESSAGE_BYTES_MAX: usize = quiver_encap::entries::HEADER_BYTES_MAX + TLV_BYTES_MAX;

/// What the IP header of a GTP-U packet said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub is_ip4: bool,
    pub class: u8,
    pub hops: u8,
    pub source: u128,
    pub destination: u128,
    pub may_be_cut: bool,
}

impl Came {
    /// Of an IPv4 packet.
    #[inline(always)]
    pub fn by_ip4(header: &Ip4Header) -> Came {
        Came {
            is_ip4: true,
            class: header.traffic_class,
            hops: header.ttl(),
            source: header.source_bits().into(),
            destination: header.destination_bits().into(),
            may_be_cut: !header.dont_fragment(),
        }
    }

    /// Of an IPv6 packet.
    #[inline(always)]
    pub fn by_ip6(header: &Ip6Header) -> Came {
        Came {
            is_ip4: false,
            class: header.traffic_class(),
            hops: header.hop_limit(),
            source: header.source_bits(),
            destination: header.destination_bits(),
            may_be_cut: false,
        }
    }

    /// The destination, if it came over IPv4.
    #[inline(always)]
    fn four(&self) -> Option<u128> {
        self.is_ip4.then_some(self.destination)
    }

    /// What its sender hears when it has no hops left.
    pub fn time_exceeded(&self) -> IcmpErrorRequest {
        let kind =
            if self.is_ip4 { icmp4::kind::TIME_EXCEEDED } else { icmp6::kind::TIME_EXCEEDED };
        IcmpErrorRequest { kind, code: 0, detail: 0 }
    }

    /// What its sender hears when it must not be longer than `mtu_bytes`; nothing when what it
    /// becomes is fragmented: the packet may be, or is as short as it need be.
    pub fn too_big(&self, length: usize, mtu_bytes: usize) -> Option<IcmpErrorRequest> {
        let detail = |min: usize| u16::try_from(mtu_bytes.max(min)).unwrap_or(u16::MAX);
        let (kind, code) = match self.is_ip4 {
            true => {
                (icmp4::kind::DESTINATION_UNREACHABLE, icmp4::unreachable::FRAGMENTATION_NEEDED)
            }
            false => (icmp6::kind::PACKET_TOO_BIG, 0),
        };
        let min = if self.is_ip4 { IP4_MTU_MIN } else { MTU_MIN };
        let is_too_big = !self.may_be_cut && length > mtu_bytes.max(min);
        is_too_big.then(|| IcmpErrorRequest { kind, code, detail: detail(min) })
    }
}

/// The part of a node that does it.
pub(super) struct Decapsulation {
    pub next_nodes: NextNodes,
    pub rows: Arc<WorkerEncapEntries>,
    onward: MtuCheck,
    look_up4: NodeId,
    look_up6: NodeId,
}

impl Decapsulation {
    pub fn new(
        wiring: &Wiring<'_>,
        lines: &CountedLines,
        rows: &[Arc<WorkerEncapEntries>],
    ) -> Decapsulation {
        Decapsulation {
            next_nodes: NextNodes::new(wiring, lines),
            rows: rows[wiring.worker.index() % rows.len()].clone(),
            onward: MtuCheck::new(wiring),
            look_up4: wiring.node(nodes::ip4::LOOKUP),
            look_up6: wiring.node(nodes::ip6::LOOKUP),
        }
    }

    /// Look-up keys of a user's packet that arrived with `hops` left, over IPv4 to `four`. `None`
    /// for a packet that takes the slow path.
    #[inline(always)]
    pub fn ask(&self, row: u32, hops: u8, four: Option<u32>, read: GPdu) -> Option<LookupKeys> {
        let row = Row(self.rows.get(row));
        if (row.0.header_len() == 0) | (hops <= 1) {
            return None;
        }
        let sid = sid(row, four.map(u128::from), read.session);
        let (address, table, at) = (row.first(sid), row.table(), read.at as u32);
        Some(LookupKeys { address, session: read.session, table, at })
    }

    /// Send such a packet, received from a UDP port, to the group that was found. `None`, and
    /// nothing changes, for a packet that takes the slow path.
    #[inline(always)]
    pub fn go(
        &self,
        row: u32,
        (came, port): (Came, u16),
        asking: LookupKeys,
        group: GroupId,
        packet: &mut Packet,
    ) -> Option<NodeId> {
        let row = Row(self.rows.get(row));
        let at = asking.at as usize;
        let payload = packet.bytes().get(at..)?;
        let (count, total) = (row.0.header_len(), row.0.header_len() + payload.len());
        let protocol = row.protocol(payload)?;
        let hash = hash(protocol, payload).unwrap_or(asking.session as u32);
        let filling = Filling {
            sid: match row.leads_to_sid() {
                true => asking.address,
                false => sid(row, came.four(), asking.session),
            },
            source: row.source(came.source, port),
            destination: came.destination,
            class: came.class,
            flow_label: flow_label(hash),
            hops: came.hops,
            protocol,
            payload_length: u16::try_from(total - Ip6Header::LEN).ok()?,
        };
        if !self.onward.fits_plainly(&self.next_nodes, group, total) || !packet.pull(at) {
            return None;
        }
        let is_put = match row.0.few_blocks() {
            _ if !row.has_srh() => packet.push(count),
            Some(blocks) => packet.push_blocks(blocks, count),
            None => packet.push_blocks(row.0.blocks(), count),
        };
        if !is_put {
            // What was in front lies there still.
            let _ = packet.push(at);
            return None;
        }
        row.fill(packet.bytes_mut(), &filling);
        row.0.count(total);
        packet.clear(PacketFlags::L4_CHECKSUM_GOOD);
        packet.l2_bytes = 0;
        packet.hash = hash;
        Some(self.next_nodes.six(group, packet))
    }

    /// Send a GTP-U message on.
    pub fn send(
        &self,
        context: StageContext<'_>,
        row: u32,
        came: &Came,
        arrived: &GtpuMessage,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let row = Row(self.rows.get(row));
        if row.0.header_len() == 0 {
            return Err(LocalSidDrop::NotConfigured.into());
        }
        if came.hops <= 1 {
            return Err(Bad::Complain(came.time_exceeded(), LocalSidDrop::HopLimit));
        }
        if arrived.message.message_type != message::G_PDU {
            return self.send_message(context, row, came, arrived, packet);
        }
        let session = session_of(arrived);
        let sid = sid(row, came.four(), session.bits());
        let payload = packet.bytes().get(arrived.at..).unwrap_or_default();
        let protocol = row.protocol(payload).ok_or(LocalSidDrop::InnerWrong)?;
        let hash = hash(protocol, payload).unwrap_or(session.teid);
        let group = self.next_nodes.tables.ip6.table(row.table()).lookup(row.first(sid));
        let (length, count) = (packet.length() - arrived.at, row.0.header_len());
        let payload_length = count - Ip6Header::LEN + length;
        if payload_length > PAYLOAD_BYTES_MAX {
            return Err(LocalSidDrop::TooLong.into());
        }
        let fits = payload_length + Ip6Header::LEN <= MTU_MIN || {
            let total = payload_length + Ip6Header::LEN;
            self.onward.fits(&self.next_nodes, context, (group, hash), came, total, packet)?
        };
        leave_headers(packet);
        if !packet.pull(arrived.at) {
            return Err(LocalSidDrop::GtpuWrong.into());
        }
        if !packet.push_blocks(row.0.blocks(), count) {
            return Err(LocalSidDrop::NoHeadroom.into());
        }
        let filling = Filling {
            sid,
            source: row.source(came.source, arrived.source_port),
            destination: came.destination,
            class: came.class,
            flow_label: flow_label(hash),
            hops: if fits { came.hops } else { came.hops - 1 },
            protocol,
            payload_length: payload_length as u16,
        };
        row.fill(packet.bytes_mut(), &filling);
        row.0.count(payload_length + Ip6Header::LEN);
        packet.hash = hash;
        if !fits {
            packet.set(PacketFlags::LOCALLY_ORIGINATED);
            return Ok(choose::<Ip6>(&self.next_nodes.tables.groups, group, packet));
        }
        Ok(self.next_nodes.six(group, packet))
    }

    /// A message that is no user's packet: an echo request is answered, unless the other end is to;
    /// others go on.
    #[cold]
    #[inline(never)]
    fn send_message(
        &self,
        context: StageContext<'_>,
        row: Row<'_>,
        came: &Came,
        arrived: &GtpuMessage,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let said = &arrived.message;
        if said.message_type == message::ECHO_REQUEST && !row.is_drop_in() {
            echo::answer(came, arrived, packet)?;
            context.count(LocalSidDrop::EchoAnswered, 1);
            return Ok(if came.is_ip4 { self.look_up4 } else { self.look_up6 });
        }
        let tag = messages::tag_of(said.message_type).ok_or(LocalSidDrop::Message)?;
        let row = Row(self.rows.get(row.message()));
        let arguments = messages::arguments(said.message_type, session_of(arrived), said.sequence);
        let sid = sid(row, came.four(), arguments.bits());
        let mut header = [0; MESSAGE_BYTES_MAX];
        let count = row.0.header_len();
        let elements = packet.bytes().get(arrived.at..arrived.at + said.payload_len);
        let elements = elements.filter(|elements| elements.len() <= ELEMENTS_BYTES_MAX);
        let behind =
            elements.and_then(|elements| messages::write(elements, header.get_mut(count..)?));
        let total = count + behind.ok_or(LocalSidDrop::Message)?;
        header.get_mut(..count).ok_or(LocalSidDrop::NotConfigured)?.copy_from_slice(row.0.header());
        if let Some([_, length, _, _, _, _, high, low]) = header.get_mut(SRH_AT..SRH_AT + 8) {
            *length = ((total - SRH_AT) / 8 - 1) as u8;
            [*high, *low] = tag.to_be_bytes();
        }
        let filling = Filling {
            sid,
            source: row.source(came.source, arrived.source_port),
            destination: came.destination,
            class: came.class,
            flow_label: flow_label(arrived.message.teid | 1),
            hops: came.hops,
            protocol: IpProtocol::NO_NEXT_HEADER,
            payload_length: (total - Ip6Header::LEN) as u16,
        };
        row.fill(&mut header, &filling);
        rebuild(packet, header.get(..total).unwrap_or_default())?;
        context.count(LocalSidDrop::Carried, 1);
        row.0.count(total);
        let group = self.next_nodes.tables.ip6.table(row.table()).lookup(row.first(sid));
        Ok(self.next_nodes.six(group, packet))
    }
}

/// The SID of a session, behind the destination of what came over IPv4.
#[inline(always)]
fn sid(row: Row<'_>, four: Option<u128>, session: u64) -> u128 {
    let session = u128::from(session);
    match four {
        Some(destination) => {
            row.sid(destination << SESSION_BITS | session, IP4_BITS + SESSION_BITS)
        }
        None => row.sid(session, SESSION_BITS),
    }
}

/// The flow of what a user has sent; a frame's is not looked for.
#[inline(always)]
fn hash(protocol: IpProtocol, payload: &[u8]) -> Option<u32> {
    match protocol {
        IpProtocol::IPV4 => Ip4::flow_hash(payload),
        IpProtocol::IPV6 => Ip6::flow_hash(payload),
        _ => None,
    }
}

/// The session that a message names.
#[inline(always)]
fn session_of(arrived: &GtpuMessage) -> Session {
    let container = arrived.message.session;
    Session {
        qfi: container.map_or(0, |container| container.qfi),
        reflective: container.is_some_and(|container| container.reflective),
        teid: arrived.message.teid,
    }
}

/// The packet is these bytes and no others.
pub(super) fn rebuild(packet: &mut Packet, bytes: &[u8]) -> Result<(), LocalSidDrop> {
    packet.trim(packet.segment_length());
    let all = packet.segment_length();
    if !packet.pull(all) || !packet.push(bytes.len()) {
        return Err(LocalSidDrop::NoHeadroom);
    }
    packet.bytes_mut().copy_from_slice(bytes);
    leave_headers(packet);
    Ok(())
}

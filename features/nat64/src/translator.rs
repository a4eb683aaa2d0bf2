//! What all nodes of NAT64 hold: a packet is translated by its session, or its sender is told why
//! it is not.

use std::cell::Cell;
use std::sync::Arc;

use quiver_bindings::Flags;
use quiver_core::graph::node::Wiring;
use quiver_core::memory::packet::handover::Handover;
use quiver_core::{NodeId, Packet};
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::requests::FragmentRequest;
use quiver_forwarding::{IcmpErrorRequest, nodes};
use quiver_translation::flow::{End, Flow};
use quiver_translation::versions::Refused;
use quiver_translation::versions::address::Prefix;
use quiver_translation::versions::read::{Kind, Read4, Read6, read4, read6};
use quiver_translation::versions::to6::Done;
use quiver_wire::IpProtocol;

use crate::by_session;
use crate::reasons::Nat64Drop;
use crate::session::{Inside, Session, protocol_of};
use crate::tables::{Rules, Shared};

/// The names of the nodes.
pub(crate) const IN2OUT: &str = "nat64-in2out";
pub(crate) const OUT2IN: &str = "nat64-out2in";
pub(crate) const SLOW_PATH: &str = "nat64-slowpath";
pub(crate) const HAIRPIN: &str = "nat64-hairpin";
pub(crate) const FRAGMENT: &str = "nat64-fragment";

/// Hop limit and TTL are over (RFC 7915 §4.1, §5.1).
const TIME_EXCEEDED6: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 0, detail: 0 };
const TIME_EXCEEDED4: IcmpErrorRequest = IcmpErrorRequest { kind: 11, code: 0, detail: 0 };
/// RFC 6146 §3.4: a protocol that is not translated.
const PORT_UNREACHABLE6: IcmpErrorRequest = IcmpErrorRequest { kind: 1, code: 4, detail: 0 };
const PROTOCOL_UNREACHABLE4: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 2, detail: 0 };

/// Request to the slow path: the side that a packet came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlowRequest {
    pub from_inside: bool,
}

impl Handover for SlowRequest {
    fn to_index(self) -> u32 {
        self.from_inside.into()
    }

    fn from_index(index: u32) -> SlowRequest {
        SlowRequest { from_inside: index != 0 }
    }
}

/// What all nodes hold.
pub(crate) struct Translator {
    pub shared: Arc<Shared>,
    pub tables: Arc<IpTables>,
    pub lookup4: NodeId,
    pub lookup6: NodeId,
    pub error4: NodeId,
    pub error6: NodeId,
    pub hairpin: NodeId,
    fragment: NodeId,
    /// Of the next packet of IPv4 that routers may cut.
    identification: Cell<u16>,
}

impl Translator {
    pub fn new(shared: &Arc<Shared>, wiring: &Wiring<'_>) -> Translator {
        // Workers begin at different places of the same sequence.
        let first = wiring.worker.0.wrapping_mul(0x4e35);
        Translator {
            shared: shared.clone(),
            tables: wiring.shared(),
            lookup4: wiring.node(nodes::ip4::LOOKUP_IN_TABLE),
            lookup6: wiring.node(nodes::ip6::LOOKUP_IN_TABLE),
            error4: wiring.node(nodes::ip4::ICMP_ERROR),
            error6: wiring.node(nodes::ip6::ICMP_ERROR),
            hairpin: wiring.node(HAIRPIN),
            fragment: wiring.node(FRAGMENT),
            identification: Cell::new(first),
        }
    }

    fn next_identification(&self) -> u16 {
        let next = self.identification.get().wrapping_add(1);
        self.identification.set(next);
        next
    }

    /// Let the sender of an IPv6 packet know.
    pub fn answer6(&self, packet: &mut Packet, request: IcmpErrorRequest) -> NodeId {
        packet.hand_over(request);
        self.error6
    }

    /// Let the sender of an IPv4 packet know.
    pub fn answer4(&self, packet: &mut Packet, request: IcmpErrorRequest) -> NodeId {
        packet.hand_over(request);
        self.error4
    }

    /// As [`send_out`](Self::send_out) for a packet with nothing unusual; `None`, and nothing has
    /// changed, for others.
    #[inline(always)]
    pub fn send_out_fast(
        &self,
        packet: &mut Packet,
        session: Session<'_>,
        now_s: u32,
    ) -> Option<NodeId> {
        let identification = self.identification.get().wrapping_add(1);
        if !by_session::to4_fast(packet, session, identification, now_s) {
            return None;
        }
        self.identification.set(identification);
        Some(self.next_outside(packet, session))
    }

    /// Translate a packet of IPv6 by its session; where it goes.
    pub fn send_out(
        &self,
        packet: &mut Packet,
        read: &Read6,
        session: Session<'_>,
        now_s: u32,
    ) -> Result<NodeId, Nat64Drop> {
        // The error must quote the packet as its sender knows it.
        if read.hop_limit <= 1 {
            return Ok(self.answer6(packet, TIME_EXCEEDED6));
        }
        let mss = self.shared.mss();
        by_session::to4(packet, read, session, self.next_identification(), (now_s, mss))?;
        Ok(self.next_outside(packet, session))
    }

    /// Where a packet of IPv4 goes that a session has translated.
    #[inline(always)]
    fn next_outside(&self, packet: &mut Packet, session: Session<'_>) -> NodeId {
        packet.hand_over(TableIndex(session.outside().table));
        if session.flags().has(Flags::HAIRPIN) { self.hairpin } else { self.lookup4 }
    }

    /// As [`send_in`](Self::send_in) for a packet with nothing unusual; `None`, and nothing has
    /// changed, for others.
    #[inline(always)]
    pub fn send_in_fast(
        &self,
        packet: &mut Packet,
        (session, prefix): (Session<'_>, Prefix),
        now_s: u32,
    ) -> Option<NodeId> {
        if !by_session::to6_fast(packet, (session, prefix), self.shared.ip6_mtu(), now_s) {
            return None;
        }
        packet.hand_over(TableIndex(session.inside().table));
        Some(self.lookup6)
    }

    /// Translate a packet of IPv4 by its session; where it goes.
    pub fn send_in(
        &self,
        packet: &mut Packet,
        read: &Read4,
        by: (Session<'_>, Prefix),
        now_s: u32,
    ) -> Result<NodeId, Nat64Drop> {
        if read.ttl <= 1 {
            return Ok(self.answer4(packet, TIME_EXCEEDED4));
        }
        let (mss, mtu_bytes) = (self.shared.mss(), self.shared.ip6_mtu());
        let done = by_session::to6(packet, read, by, mtu_bytes, (now_s, mss))?;
        let table = by.0.inside().table;
        if done == Done::ToCut {
            packet.hand_over(FragmentRequest { mtu_bytes, table });
            return Ok(self.fragment);
        }
        packet.hand_over(TableIndex(table));
        Ok(self.lookup6)
    }

    /// Read a packet of IPv6 to a prefix; or where it goes that cannot be translated.
    pub fn read_inside(
        &self,
        context: impl Fn(Nat64Drop),
        packet: &mut Packet,
    ) -> Result<Result<Read6, NodeId>, Nat64Drop> {
        let read = match read6(packet) {
            Err(Refused::SourceRoute(request)) => {
                context(Nat64Drop::SourceRoute);
                return Ok(Err(self.answer6(packet, request)));
            }
            read => read?,
        };
        if is_unknown(read.kind, read.protocol, IpProtocol::ICMP6) {
            context(Nat64Drop::UnknownProtocol);
            return Ok(Err(self.answer6(packet, PORT_UNREACHABLE6)));
        }
        check(read.kind, read.is_fragment())?;
        Ok(Ok(read))
    }

    /// Read a packet of IPv4 to an address of the pool; or where it goes that cannot be translated.
    pub fn read_outside(
        &self,
        context: impl Fn(Nat64Drop),
        packet: &mut Packet,
    ) -> Result<Result<Read4, NodeId>, Nat64Drop> {
        let read = match read4(packet) {
            Err(Refused::SourceRoute(request)) => {
                context(Nat64Drop::SourceRoute);
                return Ok(Err(self.answer4(packet, request)));
            }
            read => read?,
        };
        if is_unknown(read.kind, read.protocol, IpProtocol::ICMP) {
            context(Nat64Drop::UnknownProtocol);
            return Ok(Err(self.answer4(packet, PROTOCOL_UNREACHABLE4)));
        }
        check(read.kind, read.is_fragment())?;
        Ok(Ok(read))
    }
}

/// Is it neither TCP, UDP nor this ICMP?
fn is_unknown(kind: Kind, protocol: IpProtocol, icmp: IpProtocol) -> bool {
    matches!(kind, Kind::Data { .. })
        && protocol != IpProtocol::TCP
        && protocol != IpProtocol::UDP
        && protocol != icmp
}

/// May a packet of this kind be translated?
pub(crate) fn check(kind: Kind, is_fragment: bool) -> Result<(), Nat64Drop> {
    match kind {
        Kind::OtherIcmp | Kind::Query | Kind::Answer | Kind::Error if is_fragment => {
            Err(Nat64Drop::FragmentedIcmp)
        }
        Kind::OtherIcmp => Err(Nat64Drop::NoCounterpart),
        Kind::LostFragment => Err(Nat64Drop::FragmentWithoutFirst),
        Kind::Data { .. } | Kind::Query | Kind::Answer | Kind::Error => Ok(()),
    }
}

/// The flow of a packet of IPv6 to an address behind a prefix.
pub(crate) fn inside_of(read: &Read6, rules: &Rules, table: u32) -> Option<(Inside, Prefix)> {
    let rule = rules.prefix_of(table, read.destination)?;
    let remote = rule.prefix.extract(read.destination)?;
    let protocol = protocol_of(read.protocol);
    let inside = Inside {
        host: read.source,
        remote,
        ports: read.ports,
        protocol,
        table,
        prefix: rule.number,
    };
    Some((inside, rule.prefix))
}

/// The flow of a packet of IPv4.
pub(crate) fn outside_of(read: &Read4, table: u32) -> Flow {
    let end = |address, port| End { address, port };
    Flow {
        source: end(read.source, read.ports.source),
        destination: end(read.destination, read.ports.destination),
        protocol: read.protocol,
        table,
    }
}

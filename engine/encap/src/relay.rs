//! ICMP errors from the underlay about outer packets, relayed to the senders of the packets inside
//! (RFC 2473 §8, RFC 4213 §3.4).

use std::sync::Arc;

use quiver_core::graph::node::Wiring;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::throttle::{Recent, TokenBucket};
use quiver_core::{InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::{Ip4, Ip6, IpTables, NOT_ENABLED};
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_wire::icmp4::{self, Icmp4Header};
use quiver_wire::icmp6::{self, Icmp6Header};

use crate::inner::InnerPacket;

/// Errors that a worker looks into in a second.
pub const RELAYED_PER_SECOND: u64 = 200;
/// Errors that a worker may look into at once.
pub const RELAYED_BURST: u64 = 64;
/// A worker reports the MTU of one path to the control thread at most this often.
pub const REPORT_INTERVAL_NS: u64 = 500_000_000;

/// The small number of the default table.
const DEFAULT_TABLE: u32 = 0;

/// What an ICMP error says about the outer packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnderlayError {
    /// A link takes packets of at most so many bytes.
    TooBig(u16),
    /// The outer destination cannot be reached.
    Unreachable,
    /// The outer hop limit ran out.
    HopLimit,
    /// Nothing that the sender of the inner packet can act upon.
    Other,
}

impl UnderlayError {
    /// Of an ICMPv6 error (RFC 4443 §3).
    pub fn of_icmp6(icmp: &Icmp6Header) -> UnderlayError {
        match icmp.kind {
            icmp6::kind::PACKET_TOO_BIG => UnderlayError::TooBig(
                u16::try_from(u32::from_be_bytes(icmp.rest)).unwrap_or(u16::MAX),
            ),
            icmp6::kind::DESTINATION_UNREACHABLE => UnderlayError::Unreachable,
            icmp6::kind::TIME_EXCEEDED if icmp.code == 0 => UnderlayError::HopLimit,
            _ => UnderlayError::Other,
        }
    }

    /// Of an ICMPv4 error (RFC 792, RFC 1191 §4).
    pub fn of_icmp4(icmp: &Icmp4Header) -> UnderlayError {
        match (icmp.kind, icmp.code) {
            (icmp4::kind::DESTINATION_UNREACHABLE, icmp4::unreachable::FRAGMENTATION_NEEDED) => {
                let [_, _, high, low] = icmp.rest;
                UnderlayError::TooBig(u16::from_be_bytes([high, low]))
            }
            (icmp4::kind::DESTINATION_UNREACHABLE, _) => UnderlayError::Unreachable,
            (icmp4::kind::TIME_EXCEEDED, 0) => UnderlayError::HopLimit,
            _ => UnderlayError::Other,
        }
    }

    /// The error for the sender of the inner packet that begins with `inner`, if it is to be told
    /// (RFC 2473 §8.2, §8.3). `around` is the bytes of the outer headers. Where the outer header
    /// has the hops of the inner packet (`copies_hop_limit`), its sender has chosen so few.
    pub fn for_sender<F: InnerPacket>(
        self,
        inner: &[u8],
        around: u16,
        copies_hop_limit: bool,
    ) -> Option<IcmpErrorRequest> {
        match self {
            UnderlayError::TooBig(mtu_bytes) => {
                let mtu_bytes = mtu_bytes.saturating_sub(around);
                F::too_big_of(inner, F::total_length(inner)?, mtu_bytes.into())
            }
            UnderlayError::Unreachable => Some(F::UNREACHABLE),
            UnderlayError::HopLimit => {
                Some(if copies_hop_limit { F::TIME_EXCEEDED } else { F::UNREACHABLE })
            }
            UnderlayError::Other => None,
        }
    }
}

/// The inner packet that an ICMP error quotes.
#[derive(Clone, Copy, Debug)]
pub struct QuotedInner {
    /// Where it begins, in bytes from the error's own IP header on.
    pub at: usize,
    /// Bytes of the headers around it.
    pub around: usize,
    /// Had the outer header the hops of the inner packet?
    pub copies_hop_limit: bool,
    /// The interface of the tunnel that sent it. The sender is behind the table of that interface,
    /// or behind the default one where the interface has no addresses.
    pub tunnel: InterfaceId,
}

/// What a worker needs to relay errors: a limit of the rate, a memory of reports, and the nodes
/// that send errors to hosts.
pub struct Relay {
    tables: Arc<IpTables>,
    errors: [NodeId; 2],
    done: NodeId,
    bucket: TokenBucket,
    reported: Recent,
}

impl Relay {
    /// For one worker.
    pub fn new(wiring: &Wiring<'_>) -> Relay {
        Relay {
            tables: wiring.shared(),
            errors: [Ip4::ERROR_NODE, Ip6::ERROR_NODE].map(|name| wiring.node(name)),
            done: wiring.node(nodes::IP_DONE),
            bucket: TokenBucket::new(RELAYED_PER_SECOND, RELAYED_BURST),
            reported: Recent::new(REPORT_INTERVAL_NS),
        }
    }

    /// The tables of IP.
    pub fn tables(&self) -> &IpTables {
        &self.tables
    }

    /// The node for errors that nobody else needs.
    pub fn done(&self) -> NodeId {
        self.done
    }

    /// May the worker look into one more error now ([`RELAYED_PER_SECOND`])?
    pub fn may_look(&mut self, now_ns: u64) -> bool {
        self.bucket.take(now_ns)
    }

    /// May the worker report this MTU of an entry's path now ([`REPORT_INTERVAL_NS`])?
    pub fn may_report(&mut self, entry: u32, mtu_bytes: u16, now_ns: u64) -> bool {
        self.reported.may(u64::from(entry) << 16 | u64::from(mtu_bytes), now_ns)
    }

    /// Make of an error the inner packet that it quotes, and return the node that sends an error to
    /// its sender. `None`, and nothing changes, where the sender cannot act upon it, or too little
    /// of the inner packet is quoted.
    pub fn to_sender<F: InnerPacket>(
        &self,
        packet: &mut Packet,
        error: UnderlayError,
        quoted: QuotedInner,
    ) -> Option<NodeId> {
        let inner = packet.bytes().get(quoted.at..)?;
        let around = u16::try_from(quoted.around).ok()?;
        let request = error.for_sender::<F>(inner, around, quoted.copies_hop_limit)?;
        F::source(inner)?;
        F::fields(inner)?;
        let table = match F::table_of(&self.tables.interfaces, quoted.tunnel) {
            NOT_ENABLED => DEFAULT_TABLE,
            table => table,
        };
        let done = to_sender::<F>(&self.tables, packet, quoted.at, table, request);
        done.then(|| self.errors[F::FAMILY as usize])
    }
}

/// Make of an ICMP error the inner packet that it quotes, which begins at `at`, ready for the node
/// that sends `request` to its sender. The sender is behind `table`, the small number of the table
/// that the packet was sent from. False when the quoted packet does not begin there.
#[must_use]
pub fn to_sender<F: InnerPacket>(
    tables: &IpTables,
    packet: &mut Packet,
    at: usize,
    table: u32,
    request: IcmpErrorRequest,
) -> bool {
    if !packet.pull(at) {
        return false;
    }
    packet.become_own();
    packet.clear(PacketFlags::LOCALLY_ORIGINATED);
    packet.l2_bytes = 0;
    packet.rx = tables.interfaces.icmp_source(F::FAMILY, table);
    packet.tx = InterfaceId::NONE;
    packet.hand_over(request);
    true
}

//! ICMP errors from the underlay about outer packets, relayed to the senders of the packets inside
//! (RFC 2473 §8, RFC 4213 §3.4).

use quiver_core::memory::packet::PacketFlags;
use quiver_core::{InterfaceId, Packet};
use quiver_forwarding::ip::IpTables;
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

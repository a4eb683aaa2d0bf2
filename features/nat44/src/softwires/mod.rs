//! DS-Lite (RFC 6333): hosts inside behind softwires, packets of IPv4 in packets of IPv6 to the
//! AFTR's address. The number of the far end (B4) stands in the place of a table in the key of
//! packets from inside, so that sessions, port blocks, limits and helpers are those of NAT44, and
//! hosts of different B4s may have the same address (§6.6).
//!
//! ```text
//! ip6-lookup ─► ip6-dslite ─► dslite-in2out ─► ip4-lookup-in-table
//!                   └──────────────┴─────────► nat44-ed-slowpath
//! nat44-ed-out2in ─► dslite-encapsulate ─► ip6-lookup-in-table
//! ```

pub mod answers;
pub mod commands;
pub mod config;
pub mod encapsulate;
pub mod errors;
pub mod fragments;
pub mod input;
pub mod outside_form;
pub mod reasons;
pub mod shows;
pub mod slow;
pub mod table;

use std::sync::Arc;

use quiver_control::Registry;
use quiver_core::graph::arc::ArcId;
use quiver_core::memory::packet::handover::Handover;
use quiver_wire::IpProtocol;

use crate::tables::Shared;

/// The space in which packets of IPv4 in reassembled packets of IPv6 are claimed that are no border
/// relay's.
const CLAIM: &str = "ip6-protocol-without-domain";

/// Register nodes and commands.
pub(crate) fn register(registry: &mut Registry, arc: ArcId, shared: &Arc<Shared>) {
    registry.graph.node(input::spec(shared));
    registry.graph.node(input::in2out_spec(arc, shared));
    registry.graph.node(encapsulate::spec(shared));
    registry.graph.claim(CLAIM, IpProtocol::IPV4.0.into(), input::INPUT);
    commands::register(registry);
    shows::register(registry);
}

/// Marks the number of a B4 in the place of a table's small number.
pub(crate) const SOFTWIRE: u32 = 1 << 22;
/// B4s at most; their numbers are smaller than the mark.
pub(crate) const B4S_MAX: usize = 1 << 20;
/// The AFTR's address of IPv4 towards B4s (RFC 6333 §6.5): 192.0.0.1.
pub(crate) const AFTR: u32 = 0xc000_0001;
/// The address of B4s (RFC 6333 §5.7): 192.0.0.2. All hosts behind a B4 are one subscriber, which
/// has this address.
pub(crate) const B4: u32 = 0xc000_0002;
/// Small number of the table of IPv6 in which B4s are reached.
pub(crate) const TABLE6: u32 = 0;
/// Tunnels take packets of so many bytes, with the header of IPv6, unless another MTU is set.
pub(crate) const MTU_BYTES: u16 = 1_500;

/// Does this stand for a B4, and not for a table?
#[inline(always)]
pub(crate) fn is_softwire(table: u32) -> bool {
    table & SOFTWIRE != 0
}

/// The number of the B4 in the place of a table.
#[inline(always)]
pub(crate) fn b4_of(table: u32) -> Option<u32> {
    is_softwire(table).then_some(table & (SOFTWIRE - 1))
}

/// The number of a B4, handed over to nodes of softwires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct B4Number(pub u32);

impl B4Number {
    /// In the place of a table.
    #[inline(always)]
    pub fn table(self) -> u32 {
        SOFTWIRE | self.0
    }
}

impl Handover for B4Number {
    fn to_index(self) -> u32 {
        self.0
    }

    fn from_index(index: u32) -> B4Number {
        B4Number(index)
    }
}

/// What workers read of the configuration of softwires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Aftr {
    /// The tunnel's end here; 0 while there is none.
    pub address: u128,
    /// Bytes that packets of IPv6 to B4s may have.
    pub mtu_bytes: u16,
    /// Prefixes of IPv6 whose hosts may be B4s: bits and mask. None: all may.
    pub admitted: Vec<(u128, u128)>,
    pub limit: B4Limit,
}

impl Default for Aftr {
    fn default() -> Aftr {
        Aftr { address: 0, mtu_bytes: MTU_BYTES, admitted: Vec::new(), limit: B4Limit::default() }
    }
}

impl Aftr {
    /// May a host with this address be a B4 (RFC 6333 §11)?
    pub fn admits(&self, address: u128) -> bool {
        let is_in = |(bits, mask): &(u128, u128)| address & mask == *bits;
        self.admitted.is_empty() || self.admitted.iter().any(is_in)
    }
}

/// How many B4s may be in one prefix: a subscriber has a whole one (RFC 7785 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct B4Limit {
    /// Bits of the prefix, 32 to 64.
    pub length: u8,
    pub b4s: u16,
}

impl Default for B4Limit {
    fn default() -> B4Limit {
        B4Limit { length: 56, b4s: 16 }
    }
}

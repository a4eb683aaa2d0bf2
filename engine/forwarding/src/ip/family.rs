//! What differs between IPv4 and IPv6 for nodes that are written once for both, and the look-up of
//! a whole vector's sources.

use quiver_core::cpu::Variant;
use quiver_core::graph::frame::FRAME_PACKETS_MAX;
use quiver_core::graph::node::Wiring;
use quiver_core::{InterfaceId, Packet};
use quiver_tables::GroupId;
use quiver_tables::lpm::Lpm;
use quiver_tables::prefix::Address;
use quiver_wire::flow::{self, FlowFields};
use quiver_wire::upper::Upper;
use quiver_wire::{Header, Ip4Header, Ip6Header};

use super::interfaces::{IpInterfaces, IpTables};
use crate::fib::Family;

/// IPv4 or IPv6, for code that is written once.
pub trait IpFamily: Send + Sync + 'static {
    /// An address as a number.
    type Address: Address + Default;
    /// Which it is.
    const FAMILY: Family;
    /// The version field of its header.
    const VERSION: u8;

    /// A packet in words, for traces.
    fn describe(bytes: &[u8]) -> String;

    /// Edges to all nodes that a route can lead to, for `show graph`.
    fn wire_route_targets(wiring: &Wiring<'_>);

    /// The source of the packet that `bytes` begin with.
    fn source(bytes: &[u8]) -> Option<Self::Address>;

    /// Its destination.
    fn destination(bytes: &[u8]) -> Option<Self::Address>;

    /// Its flow's hash: addresses, protocol and ports (none in a fragment).
    fn flow_hash(bytes: &[u8]) -> Option<u32>;

    /// The hash by the fields that a table chooses.
    fn flow_hash_by(fields: FlowFields, bytes: &[u8]) -> Option<u32>;

    /// The same of a fragment, which has what `upper` says in its bytes or in those of the first.
    fn flow_hash_of(fields: FlowFields, bytes: &[u8], upper: &Upper) -> Option<u32>;

    /// The prefix match with this small number.
    fn table(tables: &IpTables, index: u32) -> &Lpm<Self::Address>;

    /// The small number of the table that packets received on `interface` are looked up in.
    fn table_of(interfaces: &IpInterfaces, interface: InterfaceId) -> u32;
}

/// IPv4.
pub struct Ip4;
/// IPv6.
pub struct Ip6;

impl IpFamily for Ip4 {
    type Address = u32;
    const FAMILY: Family = Family::Ip4;
    const VERSION: u8 = 4;

    fn describe(bytes: &[u8]) -> String {
        crate::ip4::describe(bytes)
    }

    fn wire_route_targets(wiring: &Wiring<'_>) {
        crate::ip4::wire_route_targets(wiring);
    }

    #[inline(always)]
    fn source(bytes: &[u8]) -> Option<u32> {
        Ip4Header::overlay(bytes).map(Ip4Header::source_bits)
    }

    #[inline(always)]
    fn destination(bytes: &[u8]) -> Option<u32> {
        Ip4Header::overlay(bytes).map(Ip4Header::destination_bits)
    }

    #[inline(always)]
    fn flow_hash(bytes: &[u8]) -> Option<u32> {
        Ip4Header::split(bytes).map(|(header, behind)| flow::hash_ip4(header, behind))
    }

    fn flow_hash_by(fields: FlowFields, bytes: &[u8]) -> Option<u32> {
        Ip4Header::split(bytes).map(|(header, behind)| flow::hash_ip4_by(fields, header, behind))
    }

    fn flow_hash_of(fields: FlowFields, bytes: &[u8], upper: &Upper) -> Option<u32> {
        Ip4Header::overlay(bytes).map(|header| flow::hash_ip4_of(fields, header, upper))
    }

    #[inline(always)]
    fn table(tables: &IpTables, index: u32) -> &Lpm<u32> {
        tables.ip4.table(index)
    }

    #[inline(always)]
    fn table_of(interfaces: &IpInterfaces, interface: InterfaceId) -> u32 {
        interfaces.table4(interface)
    }
}

impl IpFamily for Ip6 {
    type Address = u128;
    const FAMILY: Family = Family::Ip6;
    const VERSION: u8 = 6;

    fn describe(bytes: &[u8]) -> String {
        crate::ip6::describe(bytes)
    }

    fn wire_route_targets(wiring: &Wiring<'_>) {
        crate::ip6::wire_route_targets(wiring);
    }

    #[inline(always)]
    fn source(bytes: &[u8]) -> Option<u128> {
        Ip6Header::overlay(bytes).map(Ip6Header::source_bits)
    }

    #[inline(always)]
    fn destination(bytes: &[u8]) -> Option<u128> {
        Ip6Header::overlay(bytes).map(Ip6Header::destination_bits)
    }

    #[inline(always)]
    fn flow_hash(bytes: &[u8]) -> Option<u32> {
        Ip6Header::split(bytes).map(|(header, behind)| flow::hash_ip6(header, behind))
    }

    fn flow_hash_by(fields: FlowFields, bytes: &[u8]) -> Option<u32> {
        Ip6Header::split(bytes).map(|(header, behind)| flow::hash_ip6_by(fields, header, behind))
    }

    fn flow_hash_of(fields: FlowFields, bytes: &[u8], upper: &Upper) -> Option<u32> {
        Ip6Header::overlay(bytes).map(|header| flow::hash_ip6_of(fields, header, upper))
    }

    #[inline(always)]
    fn table(tables: &IpTables, index: u32) -> &Lpm<u128> {
        tables.ip6.table(index)
    }

    #[inline(always)]
    fn table_of(interfaces: &IpInterfaces, interface: InterfaceId) -> u32 {
        interfaces.table6(interface)
    }
}

/// The sources of a vector, looked up together.
pub struct Sources<F: IpFamily> {
    /// Kept here, not on the stack: a vector's worth each.
    keys: Box<[F::Address; FRAME_PACKETS_MAX]>,
    found: Box<[GroupId; FRAME_PACKETS_MAX]>,
}

impl<F: IpFamily> Default for Sources<F> {
    fn default() -> Self {
        Sources {
            keys: Box::new([F::Address::default(); FRAME_PACKETS_MAX]),
            found: Box::new([GroupId::default(); FRAME_PACKETS_MAX]),
        }
    }
}

impl<F: IpFamily> Sources<F> {
    /// Look up the source of each packet. `source` finds it (0, which has no route but the default,
    /// for what is no packet of the family). The answers and the keys, in the order of the packets.
    #[inline(always)]
    pub fn find(
        &mut self,
        variant: Variant,
        table: &Lpm<F::Address>,
        packets: &[Packet],
        source: impl Fn(&Packet) -> F::Address,
    ) -> (&[GroupId], &[F::Address]) {
        let count = packets.len().min(FRAME_PACKETS_MAX);
        for (packet, key) in packets.iter().zip(self.keys.iter_mut()) {
            *key = source(packet);
        }
        table.lookup_slice(variant, &self.keys[..count], &mut self.found[..count]);
        (&self.found[..count], &self.keys[..count])
    }
}

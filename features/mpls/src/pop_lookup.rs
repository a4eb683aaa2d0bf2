//! `mpls-pop-ip4-lookup`, `mpls-pop-ip6-lookup`: the last label goes, and the packet behind it is
//! looked up in a table (RFC 3031 §3.10; RFC 4364 §5 with tables of VPNs).

use std::marker::PhantomData;
use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::{IpFamily, IpTables, choose, one_hop, take_hop};
use quiver_forwarding::nodes;
use quiver_tables::GroupId;
use quiver_wire::mpls::ENTRY_BYTES;
use quiver_wire::{Header, Ip4Header, Ip6Header, ip4, ip6};

use crate::handover::PoppedInto;
use crate::pop::write_behind;
use crate::reasons::MplsDrop;
use crate::stack::{Entry, top, version};

/// IPv4 or IPv6 behind a label.
pub(crate) trait Popped: IpFamily {
    /// Is nothing unusual about a packet, all of whose bytes are these?
    fn is_plain(bytes: &[u8]) -> bool;

    /// The length that the header of a packet says, where the header is good and so many bytes are
    /// there.
    fn checked_length(bytes: &[u8], available: usize) -> Option<usize>;

    /// The nodes by which packets leave, and by which the router drops, answers or receives them.
    const NEXT: [&'static str; 4];
    /// The node.
    const NODE: &'static str;
}

impl Popped for quiver_forwarding::ip::Ip4 {
    #[inline(always)]
    fn is_plain(bytes: &[u8]) -> bool {
        let Some(header) = Ip4Header::overlay(bytes) else { return false };
        ip4::is_plain(header, bytes.len()) & (usize::from(header.total_length()) == bytes.len())
    }

    fn checked_length(bytes: &[u8], available: usize) -> Option<usize> {
        ip4::validate(bytes, available).ok().map(|header| header.total_length().into())
    }

    const NEXT: [&'static str; 4] =
        [nodes::ip4::REWRITE, nodes::mpls::IMPOSE_IP4, nodes::ip4::LOCAL, nodes::ip4::DROP];
    const NODE: &'static str = nodes::mpls::POP_IP4;
}

impl Popped for quiver_forwarding::ip::Ip6 {
    #[inline(always)]
    fn is_plain(bytes: &[u8]) -> bool {
        let Some(header) = Ip6Header::overlay(bytes) else { return false };
        let length = usize::from(header.payload_length()) + Ip6Header::LEN;
        ip6::is_plain(header, bytes.len()) & (length == bytes.len())
    }

    fn checked_length(bytes: &[u8], available: usize) -> Option<usize> {
        let header = ip6::validate(bytes, available).ok()?;
        Some(usize::from(header.payload_length()) + Ip6Header::LEN)
    }

    const NEXT: [&'static str; 4] =
        [nodes::ip6::REWRITE, nodes::mpls::IMPOSE_IP6, nodes::ip6::LOCAL, nodes::ip6::DROP];
    const NODE: &'static str = nodes::mpls::POP_IP6;
}

/// A destination, and the table that it is looked up in.
#[derive(Clone, Copy, Default)]
struct Key<A> {
    address: A,
    /// The small number of the table plus 1; 0 for a packet that takes the slow path.
    table: u32,
}

/// Keys that are looked up at a time.
const KEYS_AT_A_TIME: usize = 64;
/// Not a group of any table.
const NOTHING: GroupId = GroupId(u32::MAX);

struct PopLookUp<F> {
    tables: Arc<IpTables>,
    leaving: [NodeId; 2],
    family: PhantomData<fn() -> F>,
}

impl<F: Popped> PopLookUp<F> {
    /// The table by which a packet goes on.
    #[inline(always)]
    fn table(&self, packet: &Packet) -> u32 {
        let PoppedInto { table, .. } = packet.handed_over();
        table.unwrap_or_else(|| F::table_of(&self.tables.interfaces, packet.rx))
    }

    /// The label is off: the packet is another one, which came in by nobody's interface.
    #[inline(always)]
    fn popped(packet: &mut Packet) {
        (packet.hash, packet.l2_bytes) = (0, 0);
        packet.set_carried();
    }

    /// The packet goes on. The router itself may have to answer its sender, who is behind the
    /// table.
    #[inline(always)]
    fn go(&self, next: NodeId, table: u32, packet: &mut Packet) -> NodeId {
        if !self.leaving.contains(&next) {
            self.answer_behind(table, packet);
        }
        next
    }

    #[cold]
    #[inline(never)]
    fn answer_behind(&self, table: u32, packet: &mut Packet) {
        let icmp_source = self.tables.interfaces.icmp_source(F::FAMILY, table);
        if icmp_source != InterfaceId::NONE {
            let _ = packet.take_carried();
            packet.rx = icmp_source;
        }
    }

    #[cold]
    #[inline(never)]
    fn take_slow_path(&self, packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        if !packet.turn() {
            return Err(MplsDrop::Loop);
        }
        let entry = Entry(top(packet).ok_or(MplsDrop::Truncated)?);
        if !entry.is_bottom() {
            return Err(MplsDrop::UnknownPayload);
        }
        let table = self.table(packet);
        let PoppedInto { is_uniform, .. } = packet.handed_over();
        if !packet.pull(ENTRY_BYTES) {
            return Err(MplsDrop::Truncated);
        }
        match version(packet.bytes()) {
            found if found == F::VERSION => {}
            4 | 6 => return Err(MplsDrop::WrongFamily),
            _ => return Err(MplsDrop::UnknownPayload),
        }
        let available = packet.length();
        let length = F::checked_length(packet.bytes(), available).ok_or(MplsDrop::BadPayload)?;
        packet.trim(length);
        if is_uniform {
            write_behind(packet.bytes_mut(), entry.class(), entry.ttl());
        }
        Self::popped(packet);
        let address = F::destination(packet.bytes()).ok_or(MplsDrop::BadPayload)?;
        let found = F::table(&self.tables, table).lookup(address);
        let next = choose::<F>(&self.tables.groups, found, packet);
        Ok(self.go(next, table, packet))
    }

    /// Look up keys of several tables.
    #[inline(never)]
    fn find_each(&self, keys: &[Key<F::Address>], found: &mut [GroupId]) {
        for (key, found) in keys.iter().zip(found) {
            *found = match key.table.checked_sub(1) {
                Some(table) => F::table(&self.tables, table).lookup(key.address),
                None => NOTHING,
            };
        }
    }
}

impl<F: Popped> LookUp for PopLookUp<F>
where
    F::Address: Default,
{
    const NAME: &'static str = F::NODE;
    const SORTS: bool = true;
    type Reason = MplsDrop;
    type Key = Key<F::Address>;
    type Found = GroupId;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> Key<F::Address> {
        let is_bottom = top(packet).is_some_and(|entry| Entry(entry).is_bottom());
        let behind = packet.bytes().get(ENTRY_BYTES..).unwrap_or_default();
        let PoppedInto { is_uniform, .. } = packet.handed_over();
        let is_whole = packet.has_none(PacketFlags::CHAINED) & packet.may_turn() & !is_uniform;
        if !(is_bottom & is_whole & F::is_plain(behind)) {
            return Key::default();
        }
        let (table, address) = (self.table(packet), F::destination(behind).unwrap_or_default());
        let _ = packet.pull(ENTRY_BYTES) && packet.turn();
        Self::popped(packet);
        Key { address, table: table.wrapping_add(1) }
    }

    #[inline(always)]
    fn find(&self, variant: Variant, (): (), keys: &[Key<F::Address>], found: &mut [GroupId]) {
        for (keys, found) in keys.chunks(KEYS_AT_A_TIME).zip(found.chunks_mut(KEYS_AT_A_TIME)) {
            let Some(first) = keys.first() else { continue };
            let mut addresses = [F::Address::default(); KEYS_AT_A_TIME];
            let mut is_one_table = first.table != 0;
            for (key, address) in keys.iter().zip(&mut addresses) {
                is_one_table &= key.table == first.table;
                *address = key.address;
            }
            let addresses = addresses.get(..keys.len()).unwrap_or_default();
            match is_one_table {
                true => F::table(&self.tables, first.table - 1)
                    .lookup_uniform(variant, addresses, found),
                false => self.find_each(keys, found),
            }
        }
    }

    #[inline(always)]
    fn resolve_all(
        &self,
        _: StageContext<'_>,
        (): (),
        found: &[GroupId],
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        if found.first() == Some(&NOTHING) {
            return None;
        }
        let hop = one_hop(&self.tables.groups, found)?;
        self.leaving.contains(&hop.next).then(|| take_hop(hop, packets))
    }

    #[inline(always)]
    fn resolve(
        &self,
        _: StageContext<'_>,
        (): (),
        key: Key<F::Address>,
        found: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, MplsDrop> {
        let Some(table) = key.table.checked_sub(1) else { return self.take_slow_path(packet) };
        let next = choose::<F>(&self.tables.groups, found, packet);
        Ok(self.go(next, table, packet))
    }
}

/// The declaration for packets of a family.
pub(crate) fn spec<F: Popped>() -> NodeSpec {
    let help = "Takes the last label off, and looks the packet behind it up";
    NodeSpec::look_up(help, |wiring: &Wiring<'_>| {
        let [rewrite, impose, ..] = F::NEXT.map(|name| wiring.node(name));
        PopLookUp::<F> { tables: wiring.shared(), leaving: [rewrite, impose], family: PhantomData }
    })
    .describe(|record, names| {
        format!("{} → {}", F::describe(record.bytes()), names.node(record.next))
    })
}

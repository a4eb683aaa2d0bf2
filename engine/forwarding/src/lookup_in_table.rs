//! `ip4-lookup-in-table`, `ip6-lookup-in-table`: a route that says "look again, in that table".

use std::marker::PhantomData;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};

use crate::fib::Family;
use crate::handover::TableIndex;
use crate::ip::{IpFamily, IpTables, choose};
use crate::nodes;

quiver_core::reasons! {
    /// Why a second look-up drops.
    pub enum LookupInTableDrop {
        /// Round and round.
        Loop = "lookup-loop", "look-ups in further tables never end: two tables point at each \
            other";
        /// Not the family of the table.
        WrongFamily = "wrong-family", "the route leads to a table of the other address family";
    }
}

/// Look `address` of the packet up in the table that its index names.
#[inline(always)]
pub(crate) fn look_up<F: IpFamily>(
    tables: &IpTables,
    packet: &mut Packet,
    address: impl Fn(&[u8]) -> Option<F::Address>,
) -> Result<NodeId, LookupInTableDrop> {
    if !packet.turn() {
        return Err(LookupInTableDrop::Loop);
    }
    let version = packet.bytes().first().map_or(0, |byte| byte >> 4);
    let address = address(packet.bytes()).filter(|_| version == F::VERSION);
    let address = address.ok_or(LookupInTableDrop::WrongFamily)?;
    let TableIndex(table) = packet.handed_over();
    let group = F::table(tables, table).lookup(address);
    Ok(choose::<F>(&tables.groups, group, packet))
}

struct LookupInTable<F> {
    tables: IpTables,
    family: PhantomData<fn() -> F>,
}

impl<F: IpFamily> Node for LookupInTable<F> {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| look_up::<F>(&self.tables, packet, F::destination));
    }
}

/// The declaration of one of the two.
pub fn spec<F: IpFamily>(tables: &IpTables) -> NodeSpec {
    let (tables, adjacencies) = (tables.clone(), tables.adjacencies.clone());
    let (name, help) = match F::FAMILY {
        Family::Ip4 => {
            (nodes::ip4::LOOKUP_IN_TABLE, "Looks a destination up in another IPv4 table")
        }
        Family::Ip6 => {
            (nodes::ip6::LOOKUP_IN_TABLE, "Looks a destination up in another IPv6 table")
        }
    };
    NodeSpec::new(name, help, move |wiring| {
        F::wire_route_targets(wiring);
        Box::new(LookupInTable::<F> { tables: tables.clone(), family: PhantomData })
    })
    .takes_offloads()
    .reasons::<LookupInTableDrop>()
    .describe(move |record, names| {
        let hop = crate::hop_description::describe(&adjacencies, record, names);
        format!("{} → {hop}", F::describe(record.bytes()))
    })
}

//! `ip6-lookup-in-table`: a route that says "look again, in that table".

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_wire::{Header, Ip6Header};

use crate::ip::IpTables;
use crate::ip::{Ip6, choose, destination};
use crate::ip4::lookup_in_table::LookupInTableDrop;

struct Ip6LookupInTable {
    tables: IpTables,
}

impl Ip6LookupInTable {
    fn decide(&self, packet: &mut Packet) -> Result<NodeId, LookupInTableDrop> {
        if !packet.turn() {
            return Err(LookupInTableDrop::Loop);
        }
        if Ip6Header::overlay(packet.bytes()).is_none_or(|header| header.version() != 6) {
            return Err(LookupInTableDrop::WrongFamily);
        }
        let group = self.tables.ip6.table(packet.index).lookup(destination::<Ip6>(packet));
        Ok(choose::<Ip6>(&self.tables.groups, group, packet))
    }
}

impl Node for Ip6LookupInTable {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(packet));
    }
}

/// The declaration.
pub fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    let adjacencies = tables.adjacencies.clone();
    NodeSpec::new("ip6-lookup-in-table", "Looks a destination up in another IPv6 table", move |wiring| {
        crate::ip6::wire_route_targets(wiring);
        Box::new(Ip6LookupInTable { tables: tables.clone() })
    })
    .reasons::<LookupInTableDrop>()
    .describe(move |record, names| {
        format!(
            "{} → {}",
            crate::ip6::describe(record.bytes()),
            crate::hop_description::describe(&adjacencies, record, names)
        )
    })
}

//! `ip4-lookup-in-table`: a route that says "look again, in that table".

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_wire::{Header, Ip4Header};

use crate::ip::IpTables;
use crate::ip::{Ip4, choose, destination};

quiver_core::reasons! {
    /// Why a second look-up drops.
    pub enum LookupInTableDrop {
        /// Round and round.
        Loop = "lookup-loop", "look-ups in further tables never end: two tables point at each other";
        /// Not the family of the table.
        WrongFamily = "wrong-family", "the route leads to a table of the other address family";
    }
}

struct Ip4LookupInTable {
    tables: IpTables,
}

impl Ip4LookupInTable {
    fn decide(&self, packet: &mut Packet) -> Result<NodeId, LookupInTableDrop> {
        if !packet.turn() {
            return Err(LookupInTableDrop::Loop);
        }
        if Ip4Header::overlay(packet.bytes()).is_none_or(|header| header.version() != 4) {
            return Err(LookupInTableDrop::WrongFamily);
        }
        let group = self.tables.ip4.table(packet.index).lookup(destination::<Ip4>(packet));
        Ok(choose::<Ip4>(&self.tables.groups, group, packet))
    }
}

impl Node for Ip4LookupInTable {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(packet));
    }
}

/// The declaration.
pub fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    let adjacencies = tables.adjacencies.clone();
    NodeSpec::new("ip4-lookup-in-table", "Looks a destination up in another IPv4 table", move |wiring| {
        crate::ip4::wire_route_targets(wiring);
        Box::new(Ip4LookupInTable { tables: tables.clone() })
    })
    .reasons::<LookupInTableDrop>()
    .describe(move |record, names| {
        format!(
            "{} → {}",
            crate::ip4::describe(record.bytes()),
            crate::hop_description::describe(&adjacencies, record, names)
        )
    })
}

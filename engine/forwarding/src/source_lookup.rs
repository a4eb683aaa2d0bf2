//! `ip4-source-lookup-in-table`, `ip6-source-lookup-in-table`: a route that says "look the source up, in
//! that table"; the route of the source decides where the packet goes.

use std::marker::PhantomData;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};

use crate::fib::Family;
use crate::ip::IpTables;
use crate::ip::{IpFamily, choose};
use crate::ip4::lookup_in_table::LookupInTableDrop;

struct SourceLookup<F> {
    tables: IpTables,
    family: PhantomData<fn() -> F>,
}

impl<F: IpFamily> SourceLookup<F> {
    fn decide(&self, packet: &mut Packet) -> Result<NodeId, LookupInTableDrop> {
        if !packet.turn() {
            return Err(LookupInTableDrop::Loop);
        }
        let version = packet.bytes().first().map_or(0, |byte| byte >> 4);
        let source = F::source(packet.bytes()).filter(|_| version == version_of(F::FAMILY));
        let source = source.ok_or(LookupInTableDrop::WrongFamily)?;
        let group = F::table(&self.tables, packet.index).lookup(source);
        Ok(choose::<F>(&self.tables.groups, group, packet))
    }
}

fn version_of(family: Family) -> u8 {
    match family {
        Family::Ip4 => 4,
        Family::Ip6 => 6,
    }
}

impl<F: IpFamily> Node for SourceLookup<F> {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(packet));
    }
}

/// The declaration of one of the two.
pub fn spec<F: IpFamily>(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    let adjacencies = tables.adjacencies.clone();
    let six = F::FAMILY == Family::Ip6;
    let name = if six { "ip6-source-lookup-in-table" } else { "ip4-source-lookup-in-table" };
    NodeSpec::new(
        name,
        "Looks a packet's source up in a table, and sends the packet by its route",
        move |wiring| {
            if six {
                crate::ip6::wire_route_targets(wiring)
            } else {
                crate::ip4::wire_route_targets(wiring)
            };
            Box::new(SourceLookup::<F> { tables: tables.clone(), family: PhantomData })
        },
    )
    .reasons::<LookupInTableDrop>()
    .describe(move |record, names| {
        let words = if six { crate::ip6::describe } else { crate::ip4::describe };
        format!(
            "source of {}: {}",
            words(record.bytes()),
            crate::hop_description::describe(&adjacencies, record, names)
        )
    })
}

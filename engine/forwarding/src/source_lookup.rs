//! `ip4-source-lookup-in-table`, `ip6-source-lookup-in-table`: a route that says "look the source
//! up, in that table"; the route of the source decides where the packet goes.

use std::marker::PhantomData;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame};

use crate::fib::Family;
use crate::ip::{IpFamily, IpTables};
use crate::lookup_in_table::{LookupInTableDrop, look_up};
use crate::nodes;

struct SourceLookup<F> {
    tables: IpTables,
    family: PhantomData<fn() -> F>,
}

impl<F: IpFamily> Node for SourceLookup<F> {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| look_up::<F>(&self.tables, packet, F::source));
    }
}

/// The declaration of one of the two.
pub fn spec<F: IpFamily>(tables: &IpTables) -> NodeSpec {
    let (tables, adjacencies) = (tables.clone(), tables.adjacencies.clone());
    let name = match F::FAMILY {
        Family::Ip4 => nodes::ip4::SOURCE_LOOKUP_IN_TABLE,
        Family::Ip6 => nodes::ip6::SOURCE_LOOKUP_IN_TABLE,
    };
    let help = "Looks a packet's source up in a table, and sends the packet by its route";
    NodeSpec::new(name, help, move |wiring| {
        F::wire_route_targets(wiring);
        Box::new(SourceLookup::<F> { tables: tables.clone(), family: PhantomData })
    })
    .takes_offloads()
    .reasons::<LookupInTableDrop>()
    .describe(move |record, names| {
        let hop = crate::hop_description::describe(&adjacencies, record, names);
        format!("source of {}: {hop}", F::describe(record.bytes()))
    })
}

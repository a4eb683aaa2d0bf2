//! `ip6-link-local`: a link-local destination means something on one interface only, which has a
//! table of its own for them (RFC 4291 §2.5.6, RFC 4007 §6).

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};

use crate::ip::{Ip6, choose, destination};
use crate::ip::{IpTables, NOT_ENABLED};
use crate::nodes;

quiver_core::reasons! {
    /// Why `ip6-link-local` drops.
    pub enum LinkLocalDrop {
        /// No IPv6 there.
        NotEnabled = "not-enabled", "the interface has no IPv6 address";
        /// RFC 4291 §2.5.6.
        NotOurs = "not-ours", "a link-local destination that is not the router's is not forwarded";
    }
}

struct LinkLocal {
    tables: IpTables,
    local: NodeId,
}

impl LinkLocal {
    fn decide(&self, packet: &mut Packet) -> Result<NodeId, LinkLocalDrop> {
        let own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        let on = if own && packet.rx == InterfaceId::NONE { packet.tx } else { packet.rx };
        let table = self.tables.interfaces.link_local_table(on);
        if table == NOT_ENABLED {
            return Err(LinkLocalDrop::NotEnabled);
        }
        let group = self.tables.ip6.table(table).lookup(destination::<Ip6>(packet));
        let next = choose::<Ip6>(&self.tables.groups, group, packet);
        if own || next == self.local { Ok(next) } else { Err(LinkLocalDrop::NotOurs) }
    }
}

impl Node for LinkLocal {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(packet));
    }
}

/// The declaration.
pub fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    let adjacencies = tables.adjacencies.clone();
    NodeSpec::new(
        nodes::ip6::LINK_LOCAL,
        "Finds link-local destinations on their interface",
        move |wiring| {
            crate::ip6::wire_route_targets(wiring);
            Box::new(LinkLocal { tables: tables.clone(), local: wiring.node(nodes::ip6::LOCAL) })
        },
    )
    .takes_offloads()
    .reasons::<LinkLocalDrop>()
    .describe(move |record, names| {
        format!(
            "{} → {}",
            crate::ip6::describe(record.bytes()),
            crate::hop_description::describe(&adjacencies, record, names)
        )
    })
}

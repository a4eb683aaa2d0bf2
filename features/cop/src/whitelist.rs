//! `ip4-cop-whitelist`, `ip6-cop-whitelist`: may this source come by this interface?

use std::sync::Arc;

use quiver_core::arc::ArcId;
use quiver_core::frame::settle;
use quiver_core::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_tables::GroupId;
use quiver_tables::fib::Family;
use quiver_tables::ip::{IpFamily, IpTables, Sources};
use quiver_tables::prefix::Address;

use crate::tables::Whitelists;

quiver_core::reasons! {
    /// Why a packet is refused.
    pub enum CopDrop {
        /// Not listed.
        NotListed = "not-listed", "COP: the source is not in the whitelist of the interface (`show cop`)";
    }
}

struct Whitelist<F: IpFamily> {
    tables: Arc<IpTables>,
    lists: Arc<Whitelists>,
    arc: ArcId,
    lookup: NodeId,
    /// Where packets go that no route of the list takes.
    refused: NodeId,
    sources: Sources<F>,
}

/// The source, or 0, which no list has.
#[inline(always)]
fn source<F: IpFamily>(packet: &Packet) -> F::Address {
    F::source(packet.bytes()).unwrap_or_default()
}

/// Is there a route for the source that does not drop? Its first path stands for all: a route drops
/// with all its paths or with none.
#[inline(always)]
fn is_listed(tables: &IpTables, refused: NodeId, group: GroupId) -> Result<(), CopDrop> {
    let listed = tables.groups.resolve(group, 0).next != refused;
    if listed { Ok(()) } else { Err(CopDrop::NotListed) }
}

impl<F: IpFamily> Whitelist<F> {
    /// The packets of a vector that all came by one interface.
    fn together(&mut self, cx: &Context<'_>, rx: InterfaceId, frame: &mut Frame) {
        let (arc, lookup, refused) = (self.arc, self.lookup, self.refused);
        let (packets, next) = frame.split_mut();
        let Some(table) = self.lists.get(F::FAMILY, rx) else {
            packets
                .iter_mut()
                .zip(next)
                .for_each(|(packet, next)| *next = cx.next_in_arc(arc, rx, packet, lookup));
            return;
        };
        let lpm = F::table(&self.tables, table);
        let (found, _) = self.sources.find(cx.variant, lpm, packets, source::<F>);
        for ((packet, next), group) in packets.iter_mut().zip(next).zip(found) {
            let decision = is_listed(&self.tables, refused, *group);
            *next = settle(decision.map(|()| cx.next_in_arc(arc, rx, packet, lookup)), packet);
        }
    }
}

impl<F: IpFamily> Node for Whitelist<F> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let Some(first) = frame.packets().first().map(|packet| packet.rx) else { return };
        if frame.is_same_rx() {
            return self.together(cx, first, frame);
        }
        let lists = &self.lists;
        frame.route(|packet| {
            let rx = packet.rx;
            if let Some(table) = lists.get(F::FAMILY, rx) {
                let group = F::table(&self.tables, table).lookup(source::<F>(packet));
                is_listed(&self.tables, self.refused, group)?;
            }
            Ok::<_, CopDrop>(cx.next_in_arc(self.arc, rx, packet, self.lookup))
        });
    }
}

/// The declaration; `arc` is `ip4-unicast` or `ip6-unicast`.
pub(crate) fn spec<F: IpFamily>(arc: ArcId, lists: &Arc<Whitelists>) -> NodeSpec {
    let lists = lists.clone();
    let (name, lookup, drop) = match F::FAMILY {
        Family::Ip4 => ("ip4-cop-whitelist", "ip4-lookup", "ip4-drop"),
        Family::Ip6 => ("ip6-cop-whitelist", "ip6-lookup", "ip6-drop"),
    };
    NodeSpec::new(name, "Lets only sources pass that the interface's whitelist has", move |wiring| {
        Box::new(Whitelist::<F> {
            tables: wiring.shared(),
            lists: lists.clone(),
            arc,
            lookup: wiring.node(lookup),
            refused: wiring.node(drop),
            sources: Sources::default(),
        })
    })
    .reasons::<CopDrop>()
    .describe(|record, names| {
        let source = F::source(record.bytes()).map(Address::ip);
        let source = source.map_or("no source".to_owned(), |source| source.to_string());
        format!("source {source} by {}, to {}", names.interface(record.rx), names.node(record.next))
    })
}

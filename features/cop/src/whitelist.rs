//! `ip4-cop-whitelist`, `ip6-cop-whitelist`: may this source come by this interface?

use std::marker::PhantomData;
use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{IpFamily, IpTables};
use quiver_forwarding::nodes;
use quiver_tables::GroupId;
use quiver_tables::prefix::Address;

use crate::tables::Whitelists;

quiver_core::reasons! {
    /// Why a packet is refused.
    pub enum CopDrop {
        /// Not listed.
        NotListed = "not-listed", "COP: the source is not in the whitelist of the interface \
            (`show cop`)";
    }
}

/// `ip4-cop-whitelist` or `ip6-cop-whitelist`: the key is the source, the answer its route in the
/// list.
pub(crate) struct Whitelist<F: IpFamily> {
    tables: Arc<IpTables>,
    lists: Arc<Whitelists>,
    arc: ArcId,
    own: NodeId,
    lookup: NodeId,
    /// Where packets go that no route of the list takes.
    refused: NodeId,
    family: PhantomData<F>,
}

/// What holds for packets that came by one interface.
#[derive(Clone, Copy)]
pub(crate) struct InterfaceState {
    /// The table that lists sources; nothing when there is none any more.
    list: Option<u32>,
    behind: Behind,
}

impl<F: IpFamily> LookUp for Whitelist<F> {
    const NAME: &'static str = match F::FAMILY {
        Family::Ip4 => "ip4-cop-whitelist",
        Family::Ip6 => "ip6-cop-whitelist",
    };
    type Reason = CopDrop;
    type Key = F::Address;
    type Found = GroupId;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        let list = self.lists.get(F::FAMILY, rx);
        InterfaceState { list, behind: cx.behind(self.arc, rx, self.own, self.lookup) }
    }

    /// The source, or 0, which no list has.
    #[inline(always)]
    fn key(&self, _: InterfaceState, packet: &mut Packet) -> F::Address {
        F::source(packet.bytes()).unwrap_or_default()
    }

    #[inline(always)]
    fn find(
        &self,
        variant: Variant,
        interface_state: InterfaceState,
        keys: &[F::Address],
        found: &mut [GroupId],
    ) {
        if let Some(table) = interface_state.list {
            F::table(&self.tables, table).lookup_slice(variant, keys, found);
        }
    }

    /// Is there a route for the source that does not drop? Its first path stands for all: a route
    /// drops with all its paths or with none.
    #[inline(always)]
    fn resolve(
        &self,
        _: StageContext<'_>,
        interface_state: InterfaceState,
        _: F::Address,
        group: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, CopDrop> {
        if interface_state.list.is_some()
            && self.tables.groups.resolve(group, 0).next == self.refused
        {
            return Err(CopDrop::NotListed);
        }
        Ok(interface_state.behind.take(packet))
    }
}

/// The declaration; `arc` is `ip4-unicast` or `ip6-unicast`.
pub(crate) fn spec<F: IpFamily>(arc: ArcId, lists: &Arc<Whitelists>) -> NodeSpec {
    let lists = lists.clone();
    let (lookup, drop) = match F::FAMILY {
        Family::Ip4 => (nodes::ip4::LOOKUP, nodes::ip4::DROP),
        Family::Ip6 => (nodes::ip6::LOOKUP, nodes::ip6::DROP),
    };
    let help = "Lets only sources pass that the interface's whitelist has";
    NodeSpec::look_up(help, move |wiring| Whitelist::<F> {
        tables: wiring.shared(),
        lists: lists.clone(),
        arc,
        own: wiring.id,
        lookup: wiring.node(lookup),
        refused: wiring.node(drop),
        family: PhantomData,
    })
    .takes_offloads()
    .describe(|record, names| {
        let source = F::source(record.bytes()).map(Address::ip);
        let source = source.map_or("no source".to_owned(), |source| source.to_string());
        format!("source {source} by {}, to {}", names.interface(record.rx), names.node(record.next))
    })
}

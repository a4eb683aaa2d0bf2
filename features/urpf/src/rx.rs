//! `ip4-rx-urpf`, `ip6-rx-urpf`: may a packet with this source have come by this interface?

use std::marker::PhantomData;
use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::IpFamily;
use quiver_forwarding::nodes;
use quiver_tables::GroupId;

use crate::source_check::{SourceCheck, UrpfDrop, appeal};
use crate::tables::{Check, Checks, Direction};

/// `ip4-rx-urpf` or `ip6-rx-urpf`: the key is the source, the answer the way back.
struct RxCheck<F: IpFamily> {
    checks: Arc<Checks>,
    judge: SourceCheck,
    arc: ArcId,
    own: NodeId,
    lookup: NodeId,
    family: PhantomData<F>,
}

/// What holds for packets that came by one interface.
#[derive(Clone, Copy)]
struct InterfaceState {
    /// How they are checked, and the table that is looked in; nothing when they are not any more.
    check: Option<(Check, u32)>,
    behind: Behind,
}

impl<F: IpFamily> LookUp for RxCheck<F> {
    const NAME: &'static str = match F::FAMILY {
        Family::Ip4 => "ip4-rx-urpf",
        Family::Ip6 => "ip6-rx-urpf",
    };
    type Reason = UrpfDrop;
    type Key = F::Address;
    type Found = GroupId;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        let check = self.checks.get((rx, F::FAMILY, Direction::Rx), cx.pass);
        let own = || F::table_of(&self.judge.tables.interfaces, rx);
        let check = check.map(|check| (check, check.table.unwrap_or_else(own)));
        InterfaceState { check, behind: cx.behind(self.arc, rx, self.own, self.lookup) }
    }

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
        if let Some((_, table)) = interface_state.check {
            F::table(&self.judge.tables, table).lookup_slice(variant, keys, found);
        }
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        interface_state: InterfaceState,
        source: F::Address,
        group: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, UrpfDrop> {
        if let Some((check, table)) = interface_state.check
            && let Err(why) = self.judge.decide::<F>(check, table, group, source, packet.rx)
        {
            appeal::<F>(context, &self.checks, table, packet.bytes(), source, why)?;
        }
        Ok(interface_state.behind.take(packet))
    }
}

/// The declaration; `arc` is `ip4-unicast` or `ip6-unicast`.
pub(crate) fn spec<F: IpFamily>(arc: ArcId, checks: &Arc<Checks>) -> NodeSpec {
    let checks = checks.clone();
    let lookup = match F::FAMILY {
        Family::Ip4 => nodes::ip4::LOOKUP,
        Family::Ip6 => nodes::ip6::LOOKUP,
    };
    let help = "Drops packets whose source cannot come by the interface they came by";
    NodeSpec::look_up(help, move |wiring| RxCheck::<F> {
        checks: checks.clone(),
        judge: SourceCheck::new::<F>(wiring),
        arc,
        own: wiring.id,
        lookup: wiring.node(lookup),
        family: PhantomData,
    })
    .takes_offloads()
    .describe(|record, names| {
        let source = F::source(record.bytes()).map(quiver_tables::prefix::Address::ip);
        let source = source.map_or("no source".to_owned(), |source| source.to_string());
        format!("source {source} by {}, to {}", names.interface(record.rx), names.node(record.next))
    })
}

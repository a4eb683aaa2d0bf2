//! `abf-input-ip4`, `abf-input-ip6`: the first policy of the interface that a packet matches, and
//! whose paths can be used, says where it goes; without one it is routed as ever.

use std::marker::PhantomData;
use std::sync::Arc;

use quiver_access_lists::{Key, ListTable, is_permitted};
use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet, WorkerId};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{IpTables, choose, destination, noted, one_hop, take_hop};
use quiver_forwarding::nodes;
use quiver_tables::GroupId;
use quiver_tables::lpm::Lpm;

use crate::fields::{Depth, Fields};
use crate::tables::{Attached, Rule, Ruled};

quiver_core::reasons! {
    /// What becomes of packets on an interface with policies.
    pub enum AbfDrop {
        /// Told to.
        PolicyDrops = "policy-drops",
            "a policy says drop, or none of its paths can be used and it says drop then";
        /// Sent by a policy.
        Matched = info "matched", "packets that a policy sent by its own paths";
        /// A policy could not send it.
        Unusable = info "unusable", "policies passed over because none of their paths can be used";
    }
}

/// The node of a family: the key is the destination, the answer its route. What is for the router
/// itself must not be sent elsewhere.
/// `LISTED`: a policy of the interface asks an access list.
pub(crate) struct PolicyInput<F: Ruled, const LISTED: bool> {
    pub tables: Arc<IpTables>,
    pub attached: Arc<Attached>,
    pub lists: Arc<ListTable>,
    pub arc: ArcId,
    pub own: NodeId,
    pub lookup: NodeId,
    pub local: NodeId,
    drop: NodeId,
    worker: WorkerId,
    family: PhantomData<fn() -> F>,
}

/// State of one interface.
#[derive(Clone, Copy)]
pub(crate) struct InterfaceState {
    /// How far its policies look into packets.
    depth: Depth,
    /// The table that destinations are looked up in.
    table: u32,
    behind: Behind,
}

/// The place of the first rule that a packet matches.
#[inline(always)]
fn first_match<F: Ruled>(
    rules: &[Rule<F::Address>],
    depth: Depth,
    packet: &Packet,
) -> Option<usize> {
    let fields = F::fields(packet, depth)?;
    rules.iter().position(|rule| rule.matched.takes(&fields))
}

impl<F: Ruled, const LISTED: bool> PolicyInput<F, LISTED> {
    pub fn table(&self, table: u32) -> &Lpm<F::Address> {
        F::table(&self.tables, table)
    }

    /// A policy has decided about a packet.
    #[inline(always)]
    fn count(&self, rule: &Rule<F::Address>, packet: &Packet) {
        let [packets, bytes] = rule.counts.of(self.worker);
        packets.add(1);
        bytes.add(packet.length() as u64);
    }

    /// Where the policies from the place `first` on, which matches the packet, send it, if they do.
    #[inline(always)]
    pub fn policy(
        &self,
        context: StageContext<'_>,
        rules: &[Rule<F::Address>],
        first: usize,
        packet: &mut Packet,
    ) -> Result<Option<NodeId>, AbfDrop> {
        let rule = rules.get(first);
        let group = rule.and_then(|rule| rule.group);
        match group.map(|group| choose::<F>(&self.tables.groups, group, packet)) {
            Some(next) if next != self.drop => {
                if let Some(rule) = rule {
                    self.count(rule, packet);
                }
                Ok(Some(next))
            }
            _ => self.go_on(context, rules, first, packet),
        }
    }

    /// A policy cannot send the packet: the next one that it matches, perhaps.
    #[cold]
    #[inline(never)]
    pub fn go_on(
        &self,
        context: StageContext<'_>,
        rules: &[Rule<F::Address>],
        first: usize,
        packet: &mut Packet,
    ) -> Result<Option<NodeId>, AbfDrop> {
        let Some(fields) = F::fields(packet, Depth::Ports) else { return Ok(None) };
        let key = self.key_alone(packet);
        for rule in rules.iter().skip(first) {
            if !self.takes(context, rule, &fields, key.as_ref()) {
                continue;
            }
            let next = rule.group.map(|group| choose::<F>(&self.tables.groups, group, packet));
            let next = next.filter(|next| *next != self.drop);
            if next.is_none() && !rule.drops {
                context.count(AbfDrop::Unusable, 1);
                continue;
            }
            self.count(rule, packet);
            return next.map(Some).ok_or(AbfDrop::PolicyDrops);
        }
        Ok(None)
    }

    /// What lists look at, of a packet that is matched alone.
    fn key_alone(&self, packet: &Packet) -> Option<Key<F::Address>> {
        if !LISTED {
            return None;
        }
        let key = F::key(packet.bytes(), noted(packet), self.lists.later_fragments())?;
        Some(Key { rx: packet.rx.index() as u32, ..key })
    }

    /// Does a policy take a packet that is matched alone?
    fn takes(
        &self,
        context: StageContext<'_>,
        rule: &Rule<F::Address>,
        fields: &Fields<F::Address>,
        key: Option<&Key<F::Address>>,
    ) -> bool {
        match (rule.list, key) {
            (Some(list), Some(key)) => {
                let (how, mut found) = ((Variant::Scalar, false), [0]);
                let keys = std::slice::from_ref(key);
                self.lists.find::<F>(list, how, context.pass(), keys, &mut found);
                is_permitted(found[0])
            }
            (Some(_), None) => false,
            (None, _) => rule.matched.takes(fields),
        }
    }
}

impl<F: Ruled> LookUp for PolicyInput<F, false> {
    const NAME: &'static str = F::NODES[0];
    type Reason = AbfDrop;
    type Key = F::Address;
    type Found = GroupId;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        let rules = self.attached.get::<F>(rx, cx.pass);
        InterfaceState {
            depth: Depth::of(rules.iter().map(|rule| &rule.matched)),
            table: F::table_of(&self.tables.interfaces, rx),
            behind: cx.behind(self.arc, rx, self.own, self.lookup),
        }
    }

    #[inline(always)]
    fn key(&self, _: InterfaceState, packet: &mut Packet) -> F::Address {
        destination::<F>(packet)
    }

    #[inline(always)]
    fn find(
        &self,
        variant: Variant,
        interface_state: InterfaceState,
        keys: &[F::Address],
        found: &mut [GroupId],
    ) {
        self.table(interface_state.table).lookup_slice(variant, keys, found);
    }

    #[inline(always)]
    fn find_uniform(
        &self,
        variant: Variant,
        interface_state: InterfaceState,
        keys: &[F::Address],
        found: &mut [GroupId],
    ) {
        self.table(interface_state.table).lookup_uniform(variant, keys, found);
    }

    /// Packets with one route that match the same policy first, which has one path.
    #[inline(always)]
    fn resolve_all(
        &self,
        context: StageContext<'_>,
        interface_state: InterfaceState,
        found: &[GroupId],
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        let (route, packet) = (*found.first()?, packets.first()?);
        let rules = self.attached.get::<F>(packet.rx, context.pass());
        let first = first_match::<F>(rules, interface_state.depth, packet)?;
        let rule = rules.get(first)?;
        let hop = one_hop(&self.tables.groups, &[rule.group?])?;
        let is_for_us = self.tables.groups.resolve(route, 0).next == self.local;
        if is_for_us | (hop.next == self.drop) {
            return None;
        }
        let (mut is_uniform, mut bytes) = (true, 0);
        for (packet, found) in packets.iter().zip(found) {
            is_uniform &= (*found == route)
                & (first_match::<F>(rules, interface_state.depth, packet) == Some(first))
                & !F::stays_on_link(destination::<F>(packet));
            bytes += packet.length() as u64;
        }
        if !is_uniform {
            return None;
        }
        let ([of_packets, of_bytes], count) = (rule.counts.of(self.worker), packets.len() as u64);
        of_packets.add(count);
        of_bytes.add(bytes);
        context.count(AbfDrop::Matched, count);
        Some(take_hop(hop, packets))
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        interface_state: InterfaceState,
        to: F::Address,
        route: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, AbfDrop> {
        let rules = self.attached.get::<F>(packet.rx, context.pass());
        // What is for the router itself, for a group or for the link is nobody's to send elsewhere.
        if let Some(first) = first_match::<F>(rules, interface_state.depth, packet)
            && !F::stays_on_link(to)
            && self.tables.groups.resolve(route, 0).next != self.local
            && let Some(next) = self.policy(context, rules, first, packet)?
        {
            context.count(AbfDrop::Matched, 1);
            return Ok(next);
        }
        Ok(interface_state.behind.take(packet))
    }
}

/// The declaration; `arc` is `ip4-unicast` or `ip6-unicast`.
pub(crate) fn spec<F: Ruled>(arc: ArcId, attached: &Arc<Attached>) -> NodeSpec {
    let help = "Lets policies say where packets go that match them";
    describe::<F>(NodeSpec::look_up(help, node::<F, false>(arc, attached.clone())))
}

/// Makes the node of a worker.
pub(crate) fn node<F: Ruled, const LISTED: bool>(
    arc: ArcId,
    attached: Arc<Attached>,
) -> impl Fn(&Wiring<'_>) -> PolicyInput<F, LISTED> + Send + Sync + 'static {
    let [_, lookup, local, drop] = F::NODES;
    move |wiring| {
        let (rewrite, incomplete) = match F::FAMILY {
            Family::Ip4 => (nodes::ip4::REWRITE, nodes::ip4::ARP),
            Family::Ip6 => (nodes::ip6::REWRITE, nodes::ip6::DISCOVER_NEIGHBOR),
        };
        for name in [rewrite, incomplete] {
            wiring.node(name); // edges, for `show graph`
        }
        PolicyInput::<F, LISTED> {
            tables: wiring.shared(),
            lists: wiring.shared(),
            attached: attached.clone(),
            arc,
            own: wiring.id,
            lookup: wiring.node(lookup),
            local: wiring.node(local),
            drop: wiring.node(drop),
            worker: wiring.worker,
            family: PhantomData,
        }
    }
}

/// What both nodes of a family declare.
pub(crate) fn describe<F: Ruled>(spec: NodeSpec) -> NodeSpec {
    let [_, lookup, ..] = F::NODES;
    spec.takes_offloads().describe(move |record, names| {
        let next = names.node(record.next);
        let what = if next == lookup { "no policy sends it" } else { "a policy sends it" };
        format!("came by {}, {what}, to {next}", names.interface(record.rx))
    })
}

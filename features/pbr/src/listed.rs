//! `abf-input-acl-ip4`, `abf-input-acl-ip6`: as `abf-input-…`, on interfaces where a policy asks an
//! access list. A block's keys ask each policy together, in the order of their priority.

use std::sync::Arc;

use quiver_access_lists::{Key, field, is_permitted};
use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::{destination, noted};
use quiver_tables::GroupId;
use quiver_wire::IpProtocol;

use crate::fields::Fields;
use crate::input::{AbfDrop, PolicyInput, describe, node};
use crate::tables::{Attached, Rule, Ruled};

/// Keys that are classified in step.
const BATCH: usize = 128;
/// In the place of a policy: none takes the packet.
const NO_RULE: u16 = u16::MAX;
/// [`Key::owner`] of a packet whose header is not whole: no policy takes it.
const NOBODY: u32 = u32::MAX;
/// [`Key::owner`] of a packet whose ports policies look at. A fragment has some only where virtual
/// reassembly has noted them.
const WITH_PORTS: u32 = 1;

/// State of one interface.
#[derive(Clone, Copy)]
pub(crate) struct InterfaceState {
    rx: InterfaceId,
    /// The table that destinations are looked up in.
    table: u32,
    /// Fields of fragments after the first.
    later: u32,
    behind: Behind,
}

/// What is found for a packet.
#[derive(Clone, Copy, Default)]
pub(crate) struct Answer {
    /// The route of its destination.
    route: GroupId,
    /// The place of the first policy that takes it.
    first: u16,
    /// The paths of that policy.
    group: Option<GroupId>,
}

/// The fields that policies without a list compare.
#[inline(always)]
fn fields_of<A: Copy>(key: &Key<A>) -> Fields<A> {
    Fields {
        source: key.source,
        destination: key.destination,
        protocol: (key.fields & field::PROTOCOL) as u8,
        dscp: ((key.fields & field::DSCP) >> field::DSCP_SHIFT) as u8,
        ports: (key.owner == WITH_PORTS).then_some((key.source_port, key.destination_port)),
    }
}

impl<F: Ruled> PolicyInput<F, true> {
    /// The first policy that takes each packet.
    fn first_matches(
        &self,
        context: StageContext<'_>,
        how: (Variant, bool),
        rules: &[Rule<F::Address>],
        keys: &[Key<F::Address>],
        firsts: &mut [u16],
    ) {
        let mut answers = [0; BATCH];
        let answers = &mut answers[..keys.len().min(BATCH)];
        let mut left = keys.len();
        for (place, rule) in (0..NO_RULE).zip(rules) {
            if let Some(list) = rule.list {
                self.lists.find::<F>(list, how, context.pass(), keys, answers);
            }
            for ((key, first), answer) in keys.iter().zip(firsts.iter_mut()).zip(&*answers) {
                let is_open = (*first == NO_RULE) & (key.owner != NOBODY);
                let takes = is_open
                    && match rule.list {
                        Some(_) => is_permitted(*answer),
                        None => rule.matched.takes(&fields_of(key)),
                    };
                *first = if takes { place } else { *first };
                left -= usize::from(takes);
            }
            if left == 0 {
                return;
            }
        }
    }

    #[inline(never)]
    fn classify(
        &self,
        context: StageContext<'_>,
        (variant, is_uniform): (Variant, bool),
        state: InterfaceState,
        keys: &[Key<F::Address>],
        found: &mut [Answer],
    ) {
        let rules = self.attached.get::<F>(state.rx, context.pass());
        let table = self.table(state.table);
        for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let count = keys.len();
            let (mut to, mut routes) = ([F::Address::default(); BATCH], [GroupId(0); BATCH]);
            to.iter_mut().zip(keys).for_each(|(to, key)| *to = key.destination);
            let (to, routes) = (&to[..count], &mut routes[..count]);
            match is_uniform {
                true => table.lookup_uniform(variant, to, routes),
                false => table.lookup_slice(variant, to, routes),
            }
            let mut firsts = [NO_RULE; BATCH];
            let firsts = &mut firsts[..count];
            self.first_matches(context, (variant, is_uniform), rules, keys, firsts);
            for ((found, route), first) in found.iter_mut().zip(&*routes).zip(&*firsts) {
                let group = rules.get(usize::from(*first)).and_then(|rule| rule.group);
                *found = Answer { route: *route, first: *first, group };
            }
        }
    }
}

impl<F: Ruled> LookUp for PolicyInput<F, true> {
    const NAME: &'static str = F::LISTED;
    type Reason = AbfDrop;
    type Key = Key<F::Address>;
    type Found = Answer;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        InterfaceState {
            rx,
            table: F::table_of(&self.tables.interfaces, rx),
            later: self.lists.later_fragments(),
            behind: cx.behind(self.arc, rx, self.own, self.lookup),
        }
    }

    #[inline(always)]
    fn key(&self, state: InterfaceState, packet: &mut Packet) -> Key<F::Address> {
        let noted = noted(packet);
        let Some(key) = F::key(packet.bytes(), noted, state.later) else {
            let destination = destination::<F>(packet);
            return Key { destination, owner: NOBODY, ..Key::default() };
        };
        let is_part = (key.fields & field::FRAGMENT != 0) & noted.is_none();
        let has_ports = IpProtocol((key.fields & field::PROTOCOL) as u8).has_ports();
        let is_known = key.fields & (field::UPPER | field::ANY_UPPER) == field::UPPER;
        let owner = if has_ports & is_known & !is_part { WITH_PORTS } else { 0 };
        Key { rx: packet.rx.index() as u32, owner, ..key }
    }

    fn find(&self, _: Variant, _: InterfaceState, _: &[Self::Key], found: &mut [Answer]) {
        found.fill(Answer::default()); // the loop calls the others
    }

    #[inline(always)]
    fn find_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        state: InterfaceState,
        keys: &[Self::Key],
        found: &mut [Answer],
    ) {
        self.classify(context, (variant, false), state, keys, found);
    }

    #[inline(always)]
    fn find_uniform_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        state: InterfaceState,
        keys: &[Self::Key],
        found: &mut [Answer],
    ) {
        self.classify(context, (variant, true), state, keys, found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        key: Self::Key,
        found: Answer,
        packet: &mut Packet,
    ) -> Result<NodeId, AbfDrop> {
        // What is for the router itself, for a group or for the link is nobody's to send elsewhere.
        if found.first != NO_RULE
            && !F::stays_on_link(key.destination)
            && self.tables.groups.resolve(found.route, 0).next != self.local
        {
            let rules = self.attached.get::<F>(state.rx, context.pass());
            let first = usize::from(found.first);
            // Policies that were replaced meanwhile are matched again.
            let next = match rules.get(first).is_some_and(|rule| rule.group == found.group) {
                true => self.policy(context, rules, first, packet)?,
                false => self.go_on(context, rules, 0, packet)?,
            };
            if let Some(next) = next {
                context.count(AbfDrop::Matched, 1);
                return Ok(next);
            }
        }
        Ok(state.behind.take(packet))
    }
}

/// The declaration; `arc` is `ip4-unicast` or `ip6-unicast`.
pub(crate) fn spec<F: Ruled>(arc: ArcId, attached: &Arc<Attached>) -> NodeSpec {
    let help = "Lets policies say where packets go that match them or an access list";
    describe::<F>(NodeSpec::look_up(help, node::<F, true>(arc, attached.clone())))
}

//! `abf-input-ip4`, `abf-input-ip6`: the first policy of the interface that a packet matches, and
//! whose paths can be used, says where it goes; without one it is routed as ever.

use std::marker::PhantomData;
use std::sync::Arc;

use quiver_core::cpu::{Body, Variant};
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::frame::{FRAME_PACKETS_MAX, next_or_drop};
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::graph::stage::StageContext;
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet, WorkerId};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{IpTables, choose, destination};
use quiver_tables::GroupId;
use quiver_tables::lpm::Lpm;
use quiver_tables::prefix::Address;

use crate::config::ATTACHED_MAX;
use crate::fields::Depth;
use crate::tables::{Attached, Rule, Ruled};

quiver_core::reasons! {
    /// What becomes of packets on an interface with policies.
    pub enum AbfDrop {
        /// Told to.
        PolicyDrops = "policy-drops", "a policy says drop, or none of its paths can be used and it says drop then";
        /// Sent by a policy.
        Matched = info "matched", "packets that a policy sent by its own paths";
        /// A policy could not send it.
        Unusable = info "unusable", "policies passed over because none of their paths can be used";
    }
}

/// No rule of an interface: they have smaller numbers.
const NO_RULE: u8 = u8::MAX;
const _: () = assert!(ATTACHED_MAX < NO_RULE as usize);

struct Input<F: Ruled> {
    tables: Arc<IpTables>,
    attached: Arc<Attached>,
    arc: ArcId,
    own: NodeId,
    lookup: NodeId,
    local: NodeId,
    drop: NodeId,
    family: PhantomData<F>,
}

/// The packets of a vector that match a rule, in columns. Kept with the node, not on the stack.
struct MatchedPackets<F: Ruled> {
    /// Which of the vector.
    places: [u8; FRAME_PACKETS_MAX],
    /// The first rule that each matches.
    rules: [u8; FRAME_PACKETS_MAX],
    destinations: [F::Address; FRAME_PACKETS_MAX],
    /// The destinations' routes.
    routes: [GroupId; FRAME_PACKETS_MAX],
}

impl<F: Ruled> MatchedPackets<F> {
    fn new() -> Box<Self> {
        Box::new(MatchedPackets {
            places: [0; FRAME_PACKETS_MAX],
            rules: [0; FRAME_PACKETS_MAX],
            destinations: [F::Address::default(); FRAME_PACKETS_MAX],
            routes: [GroupId::default(); FRAME_PACKETS_MAX],
        })
    }

    /// Compare the packets with the rules, one after the other; how many match one.
    #[inline(always)]
    fn fill(&mut self, rules: &[Rule<F::Address>], packets: &[Packet]) -> usize {
        let depth = Depth::of(rules.iter().map(|rule| &rule.matched));
        let mut count = 0;
        for (place, packet) in packets.iter().enumerate().take(FRAME_PACKETS_MAX) {
            let rule = first_match::<F>(rules, depth, packet);
            self.places[count] = place as u8;
            self.rules[count] = rule;
            self.destinations[count] = destination::<F>(packet);
            count += usize::from(rule != NO_RULE);
        }
        count
    }
}

/// Where the node counts, and the worker whose counts of policies are meant.
type Counting<'a> = (StageContext<'a>, WorkerId);

/// A policy has decided about a packet.
#[inline(always)]
fn count<A: Address>((_, worker): Counting<'_>, rule: &Rule<A>, packet: &Packet) {
    let [packets, bytes] = rule.counts.of(worker);
    packets.add(1);
    bytes.add(packet.length() as u64);
}

/// The first rule that a packet matches.
#[inline(always)]
fn first_match<F: Ruled>(rules: &[Rule<F::Address>], depth: Depth, packet: &Packet) -> u8 {
    let Some(fields) = F::fields(packet, depth) else { return NO_RULE };
    rules.iter().position(|rule| rule.matched.takes(&fields)).map_or(NO_RULE, |rule| rule as u8)
}

impl<F: Ruled> Input<F> {
    /// Where the policies from `rule` on send a packet whose destination has `route`, if they do.
    #[inline(always)]
    fn policy(
        &self,
        by: Counting<'_>,
        rules: &[Rule<F::Address>],
        rule: u8,
        (to, route): (F::Address, GroupId),
        packet: &mut Packet,
    ) -> Result<Option<NodeId>, AbfDrop> {
        // What is for the router itself, for a group or for the link is nobody's to send elsewhere.
        if F::stays_on_link(to) || self.tables.groups.resolve(route, 0).next == self.local {
            return Ok(None);
        }
        let group = rules.get(usize::from(rule)).and_then(|rule| rule.group);
        match group.map(|group| choose::<F>(&self.tables.groups, group, packet)) {
            Some(next) if next != self.drop => {
                if let Some(rule) = rules.get(usize::from(rule)) {
                    count(by, rule, packet);
                }
                Ok(Some(next))
            }
            _ => self.go_on(by, rules, rule, packet),
        }
    }

    /// A policy cannot send the packet: the next one that it matches, perhaps.
    #[cold]
    #[inline(never)]
    fn go_on(
        &self,
        by: Counting<'_>,
        rules: &[Rule<F::Address>],
        rule: u8,
        packet: &mut Packet,
    ) -> Result<Option<NodeId>, AbfDrop> {
        let Some(fields) = F::fields(packet, Depth::Ports) else { return Ok(None) };
        for rule in rules.iter().skip(usize::from(rule)).filter(|rule| rule.matched.takes(&fields))
        {
            let next = rule.group.map(|group| choose::<F>(&self.tables.groups, group, packet));
            let next = next.filter(|next| *next != self.drop);
            if next.is_none() && !rule.drops {
                by.0.count(AbfDrop::Unusable, 1);
                continue;
            }
            count(by, rule, packet);
            return next.map(Some).ok_or(AbfDrop::PolicyDrops);
        }
        Ok(None)
    }

    fn table(&self, rx: InterfaceId) -> &Lpm<F::Address> {
        F::table(&self.tables, F::table_of(&self.tables.interfaces, rx))
    }

    /// Of a packet in a vector from several interfaces.
    fn decide(
        &self,
        by: Counting<'_>,
        rules: &[Rule<F::Address>],
        packet: &mut Packet,
    ) -> Result<NodeId, AbfDrop> {
        let rule = first_match::<F>(rules, Depth::Ports, packet);
        if rule != NO_RULE {
            let to = destination::<F>(packet);
            let route = self.table(packet.rx).lookup(to);
            if let Some(next) = self.policy(by, rules, rule, (to, route), packet)? {
                by.0.count(AbfDrop::Matched, 1);
                return Ok(next);
            }
        }
        Ok(by.0.next_in_arc(self.arc, packet.rx, packet, self.lookup))
    }
}

/// All packets of a vector from one interface.
struct Together<'a, F: Ruled> {
    input: &'a Input<F>,
    matched: &'a mut MatchedPackets<F>,
    rules: &'a [Rule<F::Address>],
    rx: InterfaceId,
    by: Counting<'a>,
    variant: Variant,
    behind: Behind,
    frame: &'a mut Frame,
}

impl<F: Ruled> Body for Together<'_, F> {
    type Answer = ();

    #[inline(always)]
    fn run(self) {
        let Together { input, matched, rules, rx, by, variant, behind, frame } = self;
        let (packets, next) = frame.split_mut();
        let count = matched.fill(rules, packets);
        let MatchedPackets { places, rules: numbers, destinations, routes } = matched;
        if count > 0 {
            input.table(rx).lookup_slice(variant, &destinations[..count], &mut routes[..count]);
        }
        packets.iter_mut().zip(&mut *next).for_each(|(packet, next)| *next = behind.take(packet));
        let mut sent = 0;
        for at in 0..count {
            let place = usize::from(places[at]);
            let (Some(packet), Some(next)) = (packets.get_mut(place), next.get_mut(place)) else {
                continue;
            };
            match input.policy(by, rules, numbers[at], (destinations[at], routes[at]), packet) {
                Ok(None) => {}
                Ok(Some(to)) => {
                    *next = to;
                    sent += 1;
                }
                Err(why) => *next = next_or_drop(Err(why), packet),
            }
        }
        if sent > 0 {
            by.0.count(AbfDrop::Matched, sent);
        }
    }
}

/// The node.
struct InputNode<F: Ruled> {
    input: Input<F>,
    matched: Box<MatchedPackets<F>>,
}

impl<F: Ruled> Node for InputNode<F> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let InputNode { input, matched } = self;
        let Some(rx) = frame.packets().first().map(|packet| packet.rx) else { return };
        let (by, variant) = ((StageContext::new(cx), cx.worker), cx.variant);
        let rules = |rx| input.attached.get::<F>(rx, cx.pass);
        if frame.is_same_rx() {
            let behind = cx.behind(input.arc, rx, input.own, input.lookup);
            let rules = rules(rx);
            variant.run(Together { input, matched, rules, rx, by, variant, behind, frame });
        } else {
            frame.route(|packet| input.decide(by, rules(packet.rx), packet));
        }
    }
}

/// The declaration; `arc` is `ip4-unicast` or `ip6-unicast`.
pub(crate) fn spec<F: Ruled>(arc: ArcId, attached: &Arc<Attached>) -> NodeSpec {
    let attached = attached.clone();
    let [name, lookup, local, drop] = F::NODES;
    NodeSpec::new(name, "Lets policies say where packets go that match them", move |wiring| {
        let (rewrite, incomplete) = match F::FAMILY {
            Family::Ip4 => ("ip4-rewrite", "ip4-arp"),
            Family::Ip6 => ("ip6-rewrite", "ip6-discover-neighbor"),
        };
        for name in [rewrite, incomplete] {
            wiring.node(name); // edges, for `show graph`
        }
        let input = Input::<F> {
            tables: wiring.shared(),
            attached: attached.clone(),
            arc,
            own: wiring.id,
            lookup: wiring.node(lookup),
            local: wiring.node(local),
            drop: wiring.node(drop),
            family: PhantomData,
        };
        Box::new(InputNode { input, matched: MatchedPackets::new() })
    })
    .reasons::<AbfDrop>()
    .describe(move |record, names| {
        let next = names.node(record.next);
        let what = if next == lookup { "no policy sends it" } else { "a policy sends it" };
        format!("came by {}, {what}, to {next}", names.interface(record.rx))
    })
}

//! `abf-input-ip4`, `abf-input-ip6`: the first policy of the interface that a packet matches, and whose
//! paths can be used, says where it goes; without one it is routed as ever.

use std::sync::Arc;

use quiver_core::arc::ArcId;
use quiver_core::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_tables::GroupId;
use quiver_tables::fib::Family;
use quiver_tables::ip::{IpTables, choose4, choose6, destination4, destination6};

use crate::fields::Fields;
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

struct Input<F: Ruled> {
    tables: Arc<IpTables>,
    attached: Arc<Attached>,
    arc: ArcId,
    lookup: NodeId,
    local: NodeId,
    drop: NodeId,
    family: std::marker::PhantomData<F>,
}

impl<F: Ruled> Input<F> {
    fn decide(
        &self,
        cx: &Context<'_>,
        rules: &[Rule<F::Address>],
        packet: &mut Packet,
    ) -> Result<NodeId, AbfDrop> {
        if let Some(fields) = F::fields(packet)
            && let Some(next) = self.policy(cx, rules, &fields, packet)?
        {
            return Ok(next);
        }
        Ok(cx.next_in_arc(self.arc, packet.rx, packet, self.lookup))
    }

    /// Where the policies send a packet, if they do.
    fn policy(
        &self,
        cx: &Context<'_>,
        rules: &[Rule<F::Address>],
        fields: &Fields<F::Address>,
        packet: &mut Packet,
    ) -> Result<Option<NodeId>, AbfDrop> {
        let mut is_ours = None;
        for rule in rules.iter().filter(|rule| rule.matched.takes(fields)) {
            // What is for the router itself, or for a group, is nobody's to send elsewhere.
            if *is_ours.get_or_insert_with(|| self.stays(packet)) {
                return Ok(None);
            }
            let next = rule.group.map(|group| self.choose(group, packet)).filter(|next| *next != self.drop);
            if next.is_none() && !rule.drops {
                cx.count(AbfDrop::Unusable, 1);
                continue;
            }
            let [packets, bytes] = rule.counts.of(cx.worker);
            packets.add(1);
            bytes.add(packet.length() as u64);
            let Some(next) = next else { return Err(AbfDrop::PolicyDrops) };
            cx.count(AbfDrop::Matched, 1);
            return Ok(Some(next));
        }
        Ok(None)
    }

    fn choose(&self, group: GroupId, packet: &mut Packet) -> NodeId {
        match F::FAMILY {
            Family::Ip4 => choose4(&self.tables.groups, group, packet),
            Family::Ip6 => choose6(&self.tables.groups, group, packet),
        }
    }

    /// Is the packet for the router itself, a group, or the link that it came by?
    fn stays(&self, packet: &Packet) -> bool {
        let group = match F::FAMILY {
            Family::Ip4 => {
                let to = destination4(packet);
                if to >> 28 >= 0xe {
                    return true;
                }
                self.tables.ip4.table(self.tables.interfaces.table4(packet.rx)).lookup(to)
            }
            Family::Ip6 => {
                let to = destination6(packet);
                if to >> 120 == 0xff || to >> 118 == 0x3fa {
                    return true; // multicast, or link-local
                }
                self.tables.ip6.table(self.tables.interfaces.table6(packet.rx)).lookup(to)
            }
        };
        self.tables.groups.resolve(group, 0).next == self.local
    }
}

impl<F: Ruled> Node for Input<F> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let Some(first) = frame.packets().first().map(|packet| packet.rx) else { return };
        let rules = |rx| self.attached.get::<F>(rx, cx.pass);
        if frame.is_same_rx() {
            let rules = rules(first);
            frame.route(|packet| self.decide(cx, rules, packet));
        } else {
            frame.route(|packet| self.decide(cx, rules(packet.rx), packet));
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
        Box::new(Input::<F> {
            tables: wiring.shared(),
            attached: attached.clone(),
            arc,
            lookup: wiring.node(lookup),
            local: wiring.node(local),
            drop: wiring.node(drop),
            family: std::marker::PhantomData,
        })
    })
    .reasons::<AbfDrop>()
    .describe(move |record, names| {
        let next = names.node(record.next);
        let what = if next == lookup { "no policy sends it" } else { "a policy sends it" };
        format!("came by {}, {what}, to {next}", names.interface(record.rx))
    })
}

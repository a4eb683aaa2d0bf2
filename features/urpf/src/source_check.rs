//! The judgement of a source, from what its route says.

use std::sync::Arc;

use quiver_core::graph::node::Wiring;
use quiver_core::graph::stage::StageContext;
use quiver_core::memory::packet::TURNS_MAX;
use quiver_core::{InterfaceId, NodeId};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{IpFamily, IpTables};
use quiver_forwarding::next_hop_group::Hop;
use quiver_forwarding::nodes;
use quiver_tables::GroupId;
use quiver_tables::prefix::Address;

use crate::tables::{Check, Checks, Mode};

quiver_core::reasons! {
    /// Why a packet fails the reverse path check.
    pub enum UrpfDrop {
        /// RFC 3704 §2.4.
        NoRoute = "no-route", "uRPF: no route leads back to the source, or its route drops";
        /// RFC 3704 §2.2.
        WrongInterface = "wrong-interface", "uRPF: no path back to the source leads out of the \
            interface that the packet came by";
        /// RFC 3704 §2.4.
        OnlyDefault = "only-default-route", "uRPF: nothing but the default route leads back to \
            the source";
        /// Spoofed.
        Ours = "source-is-ours", "uRPF: the source is one of the router's own addresses";
        /// Deleted meanwhile.
        Gone = "interface-gone", "the interface was deleted while the packet was under way";
        /// Passed all the same.
        Exempt = info "exempt", "uRPF: sources that no route leads back to, but are exempt (`set \
            urpf-accept`)";
    }
}

/// What judging needs beside the table's answer.
pub(crate) struct SourceCheck {
    pub tables: Arc<IpTables>,
    /// Nodes that send out of the interface of an adjacency.
    sending: [NodeId; 5],
    /// Nodes that send by a tunnel, by the interface of a stacked adjacency.
    stacked: Box<[NodeId]>,
    local: NodeId,
    lookup_in_table: NodeId,
    link_local: Option<NodeId>,
    dead: [NodeId; 3],
}

impl SourceCheck {
    pub fn new<F: IpFamily>(wiring: &Wiring<'_>) -> SourceCheck {
        let names = match F::FAMILY {
            Family::Ip4 => [
                nodes::ip4::REWRITE,
                nodes::ip4::CONFIRM_NEIGHBOR,
                nodes::ip4::ARP,
                nodes::ip4::GLEAN,
                nodes::ip4::LOCAL,
                nodes::ip4::LOOKUP_IN_TABLE,
                nodes::ip4::DROP,
                nodes::ip4::PUNT,
                nodes::ip4::ADJACENCY_COUNTER,
            ],
            Family::Ip6 => [
                nodes::ip6::REWRITE,
                nodes::ip6::CONFIRM_NEIGHBOR,
                nodes::ip6::DISCOVER_NEIGHBOR,
                nodes::ip6::GLEAN,
                nodes::ip6::LOCAL,
                nodes::ip6::LOOKUP_IN_TABLE,
                nodes::ip6::DROP,
                nodes::ip6::PUNT,
                nodes::ip6::ADJACENCY_COUNTER,
            ],
        };
        let [rewrite, confirm, incomplete, glean, local, lookup_in_table, drop, punt, count] =
            names.map(|name| wiring.node(name));
        let link_local = (F::FAMILY == Family::Ip6).then(|| wiring.node(nodes::ip6::LINK_LOCAL));
        // A subnet's broadcast address is nobody's source.
        let broadcast =
            (F::FAMILY == Family::Ip4).then(|| wiring.node(nodes::ip4::DIRECTED_BROADCAST));
        let dead = [drop, punt, broadcast.unwrap_or(drop)];
        SourceCheck {
            tables: wiring.shared(),
            sending: [rewrite, confirm, incomplete, glean, count],
            stacked: wiring.claims("stacked-adjacency").into_iter().map(|(_, node)| node).collect(),
            local,
            lookup_in_table,
            link_local,
            dead,
        }
    }

    /// May a packet from `source`, whose route is `group` of `table`, have come by `rx`?
    #[inline(always)]
    pub fn decide<F: IpFamily>(
        &self,
        check: Check,
        table: u32,
        group: GroupId,
        source: F::Address,
        rx: InterfaceId,
    ) -> Result<(), UrpfDrop> {
        let word = self.tables.groups.word(group);
        if word.is_single() & check.default_route {
            let hop = word.hop();
            let known = hop.next == self.sending[0];
            if known
                & ((check.mode == Mode::Loose) || self.tables.adjacencies.get(hop.index).tx == rx)
            {
                return Ok(());
            }
        }
        self.take_slow_path::<F>(check, table, group, source, rx)
    }

    #[inline(never)]
    fn take_slow_path<F: IpFamily>(
        &self,
        check: Check,
        table: u32,
        group: GroupId,
        source: F::Address,
        rx: InterfaceId,
    ) -> Result<(), UrpfDrop> {
        let (mut table, mut group) = (table, group);
        for _ in 0..TURNS_MAX {
            if !check.default_route && F::table(&self.tables, table).miss_group() == group {
                let dies = self.tables.groups.resolve(group, 0).next == self.dead[0];
                return Err(if dies { UrpfDrop::NoRoute } else { UrpfDrop::OnlyDefault });
            }
            let mut answer = Err(UrpfDrop::NoRoute);
            let mut further = None;
            for hop in self.tables.groups.each_hop(group) {
                match self.way(check.mode, hop, rx) {
                    Way::Good => return Ok(()),
                    Way::Further(table) => further = Some(table),
                    Way::Bad(why) => answer = Err(why),
                }
            }
            let Some(next) = further else { return answer };
            table = next;
            group = F::table(&self.tables, table).lookup(source);
        }
        Err(UrpfDrop::NoRoute)
    }

    fn way(&self, mode: Mode, hop: Hop, rx: InterfaceId) -> Way {
        if self.sending.contains(&hop.next) || self.stacked.contains(&hop.next) {
            let good = mode == Mode::Loose || self.tables.adjacencies.get(hop.index).tx == rx;
            return if good { Way::Good } else { Way::Bad(UrpfDrop::WrongInterface) };
        }
        if hop.next == self.local {
            Way::Bad(UrpfDrop::Ours)
        } else if hop.next == self.lookup_in_table {
            Way::Further(hop.index)
        } else if Some(hop.next) == self.link_local {
            // it means something on its link alone, and is never forwarded (RFC 4291 §2.5.6)
            Way::Good
        } else if self.dead.contains(&hop.next) || mode == Mode::Strict {
            Way::Bad(UrpfDrop::NoRoute)
        } else {
            Way::Good // into a feature: a tunnel, a segment
        }
    }
}

/// What one path of a source's route says.
enum Way {
    Good,
    Further(u32),
    Bad(UrpfDrop),
}

/// Sources that a host may rightly have before it has an address: 0.0.0.0 to the limited broadcast
/// (RFC 2131 §4.1), the unspecified address to a group of the link (RFC 4862 §5.4.2). `bytes` begin
/// with the IP header.
#[cold]
pub(crate) fn has_no_address_yet<F: IpFamily>(bytes: &[u8], source: F::Address) -> bool {
    use quiver_wire::{Header, Ip4Header, Ip6Header, ip6};
    if source != F::Address::ZERO {
        return false;
    }
    match F::FAMILY {
        Family::Ip4 => {
            Ip4Header::overlay(bytes).is_some_and(|header| header.destination().is_broadcast())
        }
        Family::Ip6 => Ip6Header::overlay(bytes).is_some_and(|header| {
            let to = header.destination();
            ip6::address::is_multicast(to) && ip6::address::multicast_scope(to) <= 2
        }),
    }
}

/// The last word on a source that failed.
#[cold]
pub(crate) fn appeal<F: IpFamily>(
    context: StageContext<'_>,
    checks: &Checks,
    table: u32,
    bytes: &[u8],
    source: F::Address,
    why: UrpfDrop,
) -> Result<(), UrpfDrop> {
    if has_no_address_yet::<F>(bytes, source) {
        return Ok(());
    }
    if !checks.is_exempt(table, source.ip(), context.pass()) {
        return Err(why);
    }
    context.count(UrpfDrop::Exempt, 1);
    Ok(())
}

//! Where packets go from a local SID, whatever its behaviour: on, to the router itself, or back as
//! an error.

use std::sync::Arc;

use quiver_core::graph::node::Wiring;
use quiver_core::graph::stage::StageContext;
use quiver_core::{NodeId, Packet};
use quiver_encap::decapsulated;
use quiver_forwarding::handover::NextHopIndex;
use quiver_forwarding::ip::{Ip4, Ip6, IpTables, choose, destination, take_hop};
use quiver_forwarding::nodes;
use quiver_forwarding::requests::ReassemblyRequest;
use quiver_tables::counted_lines::{CountedLine, WorkerLines};
use quiver_tables::{CountedLines, GroupId};
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::LOCAL_NODES;
use super::lookup_keys::{self, LookupKey};
use super::oam::{Seen, Watch};
use super::reasons::{Bad, CODE_UPPER_LAYER, LocalSidDrop, parameter_problem};
use super::segments;
use super::sid_entry::SidEntryRef;
use super::slow_path::{self, Matter, Spot, Upper};
use crate::local_sids::{Flavors, count};

/// The number of a local SID.
#[derive(Clone, Copy)]
struct SidIndex(u32);

quiver_core::number_handover!(SidIndex from NextHopIndex);

/// What every node of local SIDs has.
pub(crate) struct NextNodes {
    pub lines: WorkerLines,
    pub tables: Arc<IpTables>,
    rewrite: NodeId,
    error: NodeId,
    local: NodeId,
    reassembly: Option<NodeId>,
    /// Is it a node of the router itself that a packet may come to behind a SID? By the node's
    /// number.
    ours: Box<[bool]>,
    watch: Watch,
}

/// Which nodes are [`LOCAL_NODES`].
fn ours(wiring: &Wiring<'_>) -> Box<[bool]> {
    let numbers: Vec<usize> =
        LOCAL_NODES.iter().filter_map(|name| wiring.number(name)).map(NodeId::index).collect();
    let count = numbers.iter().max().map_or(0, |last| last + 1);
    (0..count).map(|number| numbers.contains(&number)).collect()
}

/// Packets that went on from a SID, and their bytes, until they are counted.
#[derive(Default)]
pub(crate) struct Good {
    packets: u64,
    bytes: u64,
}

impl Good {
    /// One more; `bytes` as it came.
    #[inline(always)]
    pub fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    /// Count them for their SID.
    #[inline(always)]
    pub fn count(self, line: CountedLine<'_>) {
        if self.packets > 0 {
            line.add(count::PACKETS, self.packets);
            line.add(count::BYTES, self.bytes);
        }
    }
}

impl NextNodes {
    pub fn new(wiring: &Wiring<'_>, lines: &CountedLines) -> NextNodes {
        for name in [nodes::ip6::DISCOVER_NEIGHBOR, nodes::ip6::DROP] {
            wiring.node(name); // edges, for `show graph`
        }
        NextNodes {
            lines: lines.of(wiring.worker),
            tables: wiring.shared(),
            rewrite: wiring.node(nodes::ip6::REWRITE),
            error: wiring.node(nodes::ip6::ICMP_ERROR),
            local: wiring.node(nodes::ip6::LOCAL),
            reassembly: wiring.node_if_built("ip6-full-reassembly"),
            ours: ours(wiring),
            watch: Watch::new(),
        }
    }

    /// A packet went on from a SID; `bytes` as it came.
    #[inline(always)]
    pub fn good(&self, line: CountedLine<'_>, bytes: usize) {
        line.add(count::PACKETS, 1);
        line.add(count::BYTES, bytes as u64);
    }

    /// As [`good`](Self::good), for a packet that may stand for several; `came` is
    /// [`Packet::on_wire`] as it came.
    #[inline(always)]
    pub fn good_on_wire(&self, line: CountedLine<'_>, came: (u64, u64)) {
        line.add(count::PACKETS, came.0);
        line.add(count::BYTES, came.1);
    }

    /// A packet with another segment goes where that leads. The hop that it has taken is counted
    /// where it leaves the router, or here, if it stays.
    #[inline(always)]
    pub fn six(&self, group: GroupId, packet: &mut Packet) -> NodeId {
        let next = choose::<Ip6>(&self.tables.groups, group, packet);
        if next != self.rewrite
            && self.ours.get(next.index()).copied().unwrap_or(false)
            && let Some(header) = Ip6Header::overlay_mut(packet.bytes_mut())
        {
            header.decrement_hop_limit();
        }
        next
    }

    /// Where a packet goes by what was found: with its next segment, or an inner one.
    #[inline(always)]
    pub fn on(&self, lookup_key: LookupKey, found: GroupId, packet: &mut Packet) -> NodeId {
        if lookup_key.is_inner() {
            lookup_key.choose(&self.tables, found, packet)
        } else {
            self.six(found, packet)
        }
    }

    /// As [`six`](Self::six) for packets for which groups were found, if all leave the router one
    /// way.
    #[inline(always)]
    pub fn six_all(&self, found: &[GroupId], packets: &mut [Packet]) -> Option<NodeId> {
        let hop =
            lookup_keys::one_hop(&self.tables, found).filter(|hop| hop.next == self.rewrite)?;
        Some(take_hop(hop, packets))
    }

    /// Where the IPv6 destination of a packet leads in a table.
    pub fn look_up6(&self, table: u32, packet: &mut Packet) -> NodeId {
        let group = self.tables.ip6.table(table).lookup(destination::<Ip6>(packet));
        choose::<Ip6>(&self.tables.groups, group, packet)
    }

    /// Where the IPv4 destination of a packet leads in a table.
    pub fn look_up4(&self, table: u32, packet: &mut Packet) -> NodeId {
        let group = self.tables.ip4.table(table).lookup(destination::<Ip4>(packet));
        choose::<Ip4>(&self.tables.groups, group, packet)
    }

    /// Look out for the O-flag in a packet that is not plain, before anything is done with it.
    pub fn watch(&self, context: StageContext<'_>, packet: &Packet) {
        match self.watch.see(context, packet) {
            None => {}
            Some(Seen::Notified) => context.count(LocalSidDrop::Oam, 1),
            Some(Seen::TooMany) => {
                context.count(LocalSidDrop::Oam, 1);
                context.count(LocalSidDrop::OamTooMany, 1);
            }
        }
    }

    /// What is to be done with a packet that is not plain.
    pub fn matter(&self, context: StageContext<'_>, packet: &Packet) -> Result<Matter, Bad> {
        self.watch(context, packet);
        slow_path::matter(packet)
    }

    /// As [`matter`](Self::matter), at a SID that must be the last.
    pub fn last(&self, context: StageContext<'_>, packet: &Packet) -> Result<Upper, Bad> {
        self.watch(context, packet);
        slow_path::last(packet)
    }

    /// The next segment becomes the active one, step by step; with the flavour PSP the SRH goes
    /// when it is the last (RFC 8986 §4.16.1).
    pub fn advance(&self, line: SidEntryRef<'_>, srh: Spot, next: u128, packet: &mut Packet) {
        self.good_on_wire(line.0, packet.on_wire());
        if segments::advance(packet, srh.at, next) == 0 && line.flavors().has(Flavors::PSP) {
            segments::pop(packet, srh.at, srh.named_at);
        }
    }

    /// The entry of the SID that a packet's route has handed over.
    #[inline(always)]
    #[track_caller]
    pub fn entry(&self, packet: &Packet) -> SidEntryRef<'_> {
        SidEntryRef(self.lines.line(packet.handed_over::<SidIndex>().0))
    }

    /// Ask for that entry ahead of its use.
    #[inline(always)]
    #[track_caller]
    pub fn prefetch_entry(&self, packet: &Packet) {
        self.lines.prefetch(packet.handed_over::<SidIndex>().0);
    }

    /// What follows the headers is not for those who look inside: echo requests, UDP and fragments
    /// are the router's, other things are complained about (RFC 8986 §4.1.1). With the flavour USP
    /// an SRH that is through goes before (§4.16.2).
    pub fn upper(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        upper: Upper,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        if upper.is_fragment {
            let reassembly = self.reassembly.ok_or(LocalSidDrop::Fragment)?;
            let scope = self.tables.interfaces.table6(packet.rx);
            packet.hand_over(ReassemblyRequest { is_local: false, scope });
            return Ok(reassembly);
        }
        if !matches!(upper.protocol, IpProtocol::ICMP6 | IpProtocol::UDP) {
            let request = parameter_problem(CODE_UPPER_LAYER, upper.at);
            return Err(Bad::Complain(request, LocalSidDrop::UpperLayer));
        }
        context.count(LocalSidDrop::ForUs, 1);
        self.good_on_wire(line.0, packet.on_wire());
        if line.flavors().has(Flavors::USP) {
            slow_path::pop_ended(packet);
        }
        packet.hand_over_nothing();
        Ok(self.local)
    }

    /// The next node of a packet on the slow path; an error is counted for the SID. `came` is
    /// [`Packet::on_wire`] as it came.
    pub fn resolve(
        &self,
        context: StageContext<'_>,
        line: CountedLine<'_>,
        outcome: Result<NodeId, Bad>,
        came: (u64, u64),
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        let bad = match outcome {
            Ok(next) => return Ok(next),
            Err(bad) => bad,
        };
        line.add(count::BAD_PACKETS, came.0);
        line.add(count::BAD_BYTES, came.1);
        match bad {
            Bad::Drop(why) => Err(why),
            Bad::Complain(request, why) => {
                context.count(why, 1);
                packet.hand_over(request);
                Ok(self.error)
            }
        }
    }

    /// The IPv6 packet inside is left, or the packet dies.
    pub fn expose6(&self, at: usize, packet: &mut Packet) -> Result<(), Bad> {
        packet.set_carried();
        Ok(decapsulated::ip6::<Ip6>(packet, at)?)
    }

    /// The IPv4 packet inside is left, or the packet dies.
    pub fn expose4(&self, at: usize, packet: &mut Packet) -> Result<(), Bad> {
        packet.set_carried();
        Ok(decapsulated::ip4::<Ip6>(packet, at)?)
    }
}

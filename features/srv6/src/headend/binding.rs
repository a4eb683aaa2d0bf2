//! `sr-pl-rewrite-b-encaps`, `sr-pl-rewrite-b-insert`: what packets to a binding SID meet
//! (End.B6.Encaps and its reduced form: RFC 8986 §4.13, §4.14; End.B6.Insert and its:
//! draft-filsfils-spring-srv6-net-pgm-insertion §4).

use std::sync::Arc;

use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::InnerPacket;
use quiver_encap::handover::EncapEntryIndex;
use quiver_forwarding::ip::Ip6;
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_tables::CountedLines;
use quiver_wire::IpProtocol;

use super::Entries;
use super::description;
use super::encaps::{Encaps, Hop};
use super::insert::{Insert, Last};
use super::keys::KeyTable;
use super::reasons::HeadendDrop;
use super::stack::SUPER_FRAME_BYTES_MAX;
use crate::endpoint::oam::{Seen, Watch};
use crate::endpoint::reasons::{Bad, CODE_UPPER_LAYER, LocalSidDrop, parameter_problem};
use crate::endpoint::segments;
use crate::endpoint::slow_path::{self, Matter, Spot, Upper};

/// The nodes.
pub(crate) const ENCAPS: &str = "sr-pl-rewrite-b-encaps";
pub(crate) const INSERT: &str = "sr-pl-rewrite-b-insert";

/// Where packets go that get no segments here.
struct Ends {
    local: NodeId,
    error: NodeId,
    watch: Watch,
}

impl Ends {
    fn new(wiring: &Wiring<'_>) -> Ends {
        Ends {
            local: wiring.node(nodes::ip6::LOCAL),
            error: wiring.node(Ip6::ERROR_NODE),
            watch: Watch::new(),
        }
    }

    /// The SRH with the binding SID as its active segment, and the segment behind it; or the node
    /// that the packet goes to instead.
    fn segments(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
    ) -> Result<Result<(Spot, u128), NodeId>, HeadendDrop> {
        if let Some(seen) = self.watch.see(context, packet) {
            context.count(HeadendDrop::Oam, 1);
            if seen == Seen::TooMany {
                context.count(HeadendDrop::OamTooMany, 1);
            }
        }
        let (request, why) = match slow_path::matter(packet) {
            Ok(Matter::Segments { srh, next }) => return Ok(Ok((srh, next))),
            Ok(Matter::Upper(upper)) => match Ends::complaint(&upper)? {
                Some(request) => (request, HeadendDrop::UpperLayer),
                None => {
                    packet.hand_over_nothing();
                    return Ok(Err(self.local));
                }
            },
            Err(Bad::Drop(_)) => return Err(HeadendDrop::SrhWrong),
            Err(Bad::Complain(request, LocalSidDrop::HopLimit)) => (request, HeadendDrop::HopLimit),
            Err(Bad::Complain(request, LocalSidDrop::RoutingType)) => {
                (request, HeadendDrop::RoutingType)
            }
            Err(Bad::Complain(request, _)) => (request, HeadendDrop::ListWrong),
        };
        context.count(why, 1);
        packet.hand_over(request);
        Ok(Err(self.error))
    }

    /// No segments are left (RFC 8986 §4.13, S03; §4.1.1): echo requests and UDP are for the router
    /// itself (RFC 9259), other things are complained about.
    fn complaint(upper: &Upper) -> Result<Option<IcmpErrorRequest>, HeadendDrop> {
        if upper.is_fragment {
            return Err(HeadendDrop::SrhWrong);
        }
        let ours = matches!(upper.protocol, IpProtocol::ICMP6 | IpProtocol::UDP);
        Ok((!ours).then(|| parameter_problem(CODE_UPPER_LAYER, upper.at)))
    }
}

/// What a policy does with packets to its binding SID.
pub trait AtBinding: Stage {
    /// The node.
    const NODE: &'static str;

    /// Send on a packet about which nothing is unusual; with others happens what `otherwise` says.
    fn put(
        &self,
        packet: &mut Packet,
        otherwise: impl FnOnce(&mut Packet) -> Result<NodeId, HeadendDrop>,
    ) -> Result<NodeId, HeadendDrop>;

    /// Send on a packet whose SRH at `srh` leads to the segment `next`, step by step.
    fn slow_path(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        srh: usize,
        next: u128,
    ) -> Result<NodeId, HeadendDrop>;
}

/// The node that does it.
pub struct Binding<P> {
    policy: P,
    ends: Ends,
}

/// `sr-pl-rewrite-b-encaps`: on to the next segment, and the policy's segments around it all.
pub type BindingEncaps = Binding<Encaps<Ip6>>;

/// `sr-pl-rewrite-b-insert`: the policy's segments before those that are left.
pub type BindingInsert = Binding<Insert>;

impl<P: AtBinding> Binding<P> {
    /// What is unusual about a packet.
    #[cold]
    #[inline(never)]
    fn slow_path(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, HeadendDrop> {
        let entry: EncapEntryIndex = packet.handed_over();
        let (srh, next) = match self.ends.segments(context, packet)? {
            Ok(found) => found,
            Err(elsewhere) => return Ok(elsewhere),
        };
        packet.hand_over(entry);
        self.policy.slow_path(context, packet, srh.at, next)
    }
}

impl<P: AtBinding> Stage for Binding<P> {
    const NAME: &'static str = P::NODE;
    const LOOKS_BEHIND: bool = true;
    const SENDS: bool = true;
    type Reason = HeadendDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        self.policy.ahead(packet);
    }

    #[inline(always)]
    fn soon(&self, context: StageContext<'_>, packet: &Packet) {
        self.policy.soon(context, packet);
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, HeadendDrop> {
        self.policy.put(packet, |packet| self.slow_path(context, packet))
    }
}

impl AtBinding for Encaps<Ip6> {
    const NODE: &'static str = ENCAPS;

    #[inline(always)]
    fn put(
        &self,
        packet: &mut Packet,
        otherwise: impl FnOnce(&mut Packet) -> Result<NodeId, HeadendDrop>,
    ) -> Result<NodeId, HeadendDrop> {
        let step = |packet: &mut Packet| {
            if segments::step_if_plain(packet, false) == 0 {
                return None;
            }
            Ip6::decrement_hop_limit(packet.bytes_mut());
            Ip6::fields(packet.bytes()).map(|fields| (fields.traffic_class, fields.hop_limit))
        };
        Encaps::put(self, packet, step, otherwise)
    }

    fn slow_path(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        srh: usize,
        next: u128,
    ) -> Result<NodeId, HeadendDrop> {
        Encaps::slow_path(self, context, packet, Hop::Counted, |packet| {
            Ip6::decrement_hop_limit(packet.bytes_mut());
            segments::advance(packet, srh, next);
        })
    }
}

impl AtBinding for Insert {
    const NODE: &'static str = INSERT;

    #[inline(always)]
    fn put(
        &self,
        packet: &mut Packet,
        otherwise: impl FnOnce(&mut Packet) -> Result<NodeId, HeadendDrop>,
    ) -> Result<NodeId, HeadendDrop> {
        match segments::next_if_plain(packet) {
            0 => otherwise(packet),
            _ => Insert::put(self, packet, Last::Own, otherwise),
        }
    }

    fn slow_path(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        _: usize,
        _: u128,
    ) -> Result<NodeId, HeadendDrop> {
        Insert::slow_path(self, context, packet, Hop::ToCount, Last::Own)
    }
}

/// The declaration of `sr-pl-rewrite-b-encaps`.
pub(super) fn encaps_spec(entries: &Entries, lines: &Arc<CountedLines>) -> NodeSpec {
    let (entries, lines) = (entries.clone(), lines.clone());
    NodeSpec::stage(
        "Binding SIDs: an outer IPv6 header with the policy's segments",
        move |wiring| Binding {
            policy: Encaps::<Ip6>::new(wiring, &entries, &lines),
            ends: Ends::new(wiring),
        },
    )
    .detour(nodes::ip6::REWRITE)
    .takes_offloads_up_to(SUPER_FRAME_BYTES_MAX)
    .describe(description::describe)
}

/// The declaration of `sr-pl-rewrite-b-insert`.
pub(super) fn insert_spec(
    entries: &Entries,
    lines: &Arc<CountedLines>,
    keys: &Arc<KeyTable>,
) -> NodeSpec {
    let (entries, lines, keys) = (entries.clone(), lines.clone(), keys.clone());
    NodeSpec::stage(
        "Binding SIDs: an SRH with the policy's segments before the packet's own",
        move |wiring| Binding {
            policy: Insert::new(wiring, &entries, &lines, &keys),
            ends: Ends::new(wiring),
        },
    )
    .detour(nodes::ip6::REWRITE)
    .takes_offloads_up_to(SUPER_FRAME_BYTES_MAX)
    .describe(description::describe)
}

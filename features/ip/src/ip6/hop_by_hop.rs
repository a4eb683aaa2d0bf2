//! `ip6-hop-by-hop-process`, `-drop`, `-punt`: what becomes of packets with hop-by-hop options that
//! arrive on an interface. Without any of them a router that passes packets on does not look (RFC
//! 8200 §4.3, RFC 9673 §5.2).

use quiver_core::graph::arc::{ArcId, FeatureSpec, Phase};
use quiver_core::graph::builder::GraphBuilder;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_wire::icmp6::kind;
use quiver_wire::ip6::address;
use quiver_wire::ip6::extension::{Ip6Option, Unknown, Walk};
use quiver_wire::{Header, Ip6Header, IpProtocol};

/// The arc that they stand in.
pub(crate) const ARC: &str = "ip6-unicast";
/// Policies other than to ignore, as a command says them, with their nodes.
pub(crate) const POLICIES: [(&str, &str); 3] = [
    ("process", HopByHop::<PROCESS>::NAME),
    ("drop", HopByHop::<DROP>::NAME),
    ("punt", HopByHop::<PUNT>::NAME),
];
/// Options that are looked at in one packet; RFC 9673 §5.2.2 asks for such a limit.
pub const OPTIONS_MAX: usize = 8;

const PROCESS: u8 = 0;
const DROP: u8 = 1;
const PUNT: u8 = 2;

quiver_core::reasons! {
    /// Why packets with hop-by-hop options die.
    pub enum HopByHopDrop {
        /// As configured.
        Policy = "hop-by-hop", "packets with hop-by-hop options are dropped here (`set ip6 \
            hop-by-hop`)";
        /// RFC 8200 §4.3.
        Truncated = "truncated", "a hop-by-hop header or one of its options runs beyond the packet";
        /// RFC 8200 §4.2.
        UnknownOption = "unknown-option", "an option that says to drop the packet of who does not \
            know it";
        /// A limit.
        TooManyOptions = "too-many-options", "more than 8 hop-by-hop options";
        /// Given to the host.
        Punted = info "punted", "packets with hop-by-hop options given to the host";
    }
}

/// One of the three policies.
pub(crate) struct HopByHop<const POLICY: u8> {
    arc: ArcId,
    own: NodeId,
    lookup: NodeId,
    error: NodeId,
    punt: NodeId,
}

impl<const POLICY: u8> Stage for HopByHop<POLICY> {
    const NAME: &'static str =
        ["ip6-hop-by-hop-process", "ip6-hop-by-hop-drop", "ip6-hop-by-hop-punt"][POLICY as usize];
    type Reason = HopByHopDrop;
    type InterfaceState = Behind;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Behind {
        cx.behind(self.arc, rx, self.own, self.lookup)
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        behind: Behind,
        packet: &mut Packet,
    ) -> Result<NodeId, HopByHopDrop> {
        let header = Ip6Header::overlay(packet.bytes()).ok_or(HopByHopDrop::Truncated)?;
        if header.next_header() == IpProtocol::HOP_BY_HOP {
            match POLICY {
                DROP => return Err(HopByHopDrop::Policy),
                PUNT => {
                    context.count(HopByHopDrop::Punted, 1);
                    return Ok(self.punt);
                }
                _ => {
                    if let Some(request) = look_at_options(packet)? {
                        context.count(HopByHopDrop::UnknownOption, 1);
                        packet.hand_over(request);
                        return Ok(self.error);
                    }
                }
            }
        }
        Ok(behind.take(packet))
    }
}

/// Do what the options say to do that the router does not know: the error to send, if one is due.
#[cold]
#[inline(never)]
fn look_at_options(packet: &Packet) -> Result<Option<IcmpErrorRequest>, HopByHopDrop> {
    let (header, behind) = Ip6Header::split(packet.bytes()).ok_or(HopByHopDrop::Truncated)?;
    let behind = behind.get(..usize::from(header.payload_length())).unwrap_or(behind);
    let first = Walk::new(header.next_header(), behind).next();
    let extension = first.and_then(Result::ok).ok_or(HopByHopDrop::Truncated)?;
    for (number, option) in extension.options().enumerate() {
        let option = option.map_err(|_| HopByHopDrop::Truncated)?;
        if number == OPTIONS_MAX {
            return Err(HopByHopDrop::TooManyOptions);
        }
        if option.kind == Ip6Option::ROUTER_ALERT {
            continue;
        }
        let told = match option.if_unknown() {
            Unknown::Skip => continue,
            Unknown::Drop => false,
            Unknown::Report => true,
            Unknown::ReportUnlessMulticast => !address::is_multicast(header.destination()),
        };
        if !told {
            return Err(HopByHopDrop::UnknownOption);
        }
        let inside =
            (option.data.as_ptr() as usize).saturating_sub(extension.bytes.as_ptr() as usize + 2);
        let detail = (Ip6Header::LEN + inside) as u16;
        return Ok(Some(IcmpErrorRequest { kind: kind::PARAMETER_PROBLEM, code: 2, detail }));
    }
    Ok(None)
}

fn spec<const POLICY: u8>(arc: ArcId) -> NodeSpec {
    NodeSpec::stage("Decides what becomes of packets with hop-by-hop options", move |wiring| {
        HopByHop::<POLICY> {
            arc,
            own: wiring.id,
            lookup: wiring.node(nodes::ip6::LOOKUP),
            error: wiring.node(nodes::ip6::ICMP_ERROR),
            punt: wiring.node(nodes::ip6::PUNT),
        }
    })
    .describe(|record, names| {
        let header = Ip6Header::overlay(record.bytes());
        let has = header.is_some_and(|header| header.next_header() == IpProtocol::HOP_BY_HOP);
        let what = if has { "hop-by-hop options" } else { "no hop-by-hop options" };
        format!("{what}, to {}", names.node(record.next))
    })
}

/// Declare the nodes and the features.
pub(crate) fn declare(graph: &mut GraphBuilder) {
    let arc = graph.arc(ARC);
    for spec in [spec::<PROCESS>(arc), spec::<DROP>(arc), spec::<PUNT>(arc)] {
        graph.node(spec);
    }
    for ((_, node), after) in
        POLICIES.into_iter().zip([&[][..], &[POLICIES[0].1], &[POLICIES[1].1]])
    {
        graph.feature(FeatureSpec { arc: ARC, node, phase: Phase::Options, after });
    }
}

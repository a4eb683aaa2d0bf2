//! `sr-proxy-ip4`, `sr-proxy-ip6`: IPv4 or IPv6 packets that come back from a function get the
//! headers of their path in front again (draft-ietf-spring-sr-service-programming §6.1.2, §6.1.3,
//! §6.2; RFC 8986 §5.1 says how).

use std::marker::PhantomData;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet, WorkerId};
use quiver_encap::inner::BEYOND_SCOPE;
use quiver_forwarding::ip::{IpFamily, flow_hash};
use quiver_forwarding::requests::IcmpErrorRequest;

use super::inner::Inner;
use super::reasons::{Bad, ProxyDrop};
use super::return_interfaces::Backs;
use super::transmit::{Ready, Transmit};

/// The nodes.
pub(super) const IP4: &str = "sr-proxy-ip4";
pub(super) const IP6: &str = "sr-proxy-ip6";

/// `sr-proxy-ip4`, `sr-proxy-ip6`, a packet's part of them.
pub struct FromFunction<F: IpFamily> {
    departure: Transmit,
    worker: WorkerId,
    arc: ArcId,
    lookup: NodeId,
    error: NodeId,
    family: PhantomData<F>,
}

fn with_icmp_error(request: IcmpErrorRequest, why: ProxyDrop) -> Bad {
    Bad::Complain(request, why)
}

impl<F: Inner> FromFunction<F> {
    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        ready: Option<Ready>,
        packet: &mut Packet,
    ) -> Result<NodeId, ProxyDrop> {
        let back = self.departure.back(packet.rx, context.pass());
        let (ready, back) = ready.zip(back).ok_or(ProxyDrop::NotConfigured)?;
        let own = self.departure.tables.interfaces.addresses(packet.rx, context.pass());
        if F::stays(own, packet.bytes()) {
            context.count(ProxyDrop::PassedBy, 1);
            return Ok(context.next_in_arc(self.arc, packet.rx, packet, self.lookup));
        }
        let ready = if ready.by_flow { self.departure.of_flow(back, packet) } else { ready };
        let bytes = packet.length() as u64;
        let counts = back.counts.of(self.worker);
        let bad = match self.around(context, ready, packet) {
            Ok(next) => {
                counts[0].add(1);
                counts[1].add(bytes);
                return Ok(next);
            }
            Err(bad) => bad,
        };
        counts[2].add(1);
        counts[3].add(bytes);
        match bad {
            Bad::Drop(why) => Err(why),
            Bad::Complain(request, why) => {
                context.count(why, 1);
                packet.hand_over(request);
                Ok(self.error)
            }
        }
    }

    #[inline(always)]
    fn around(
        &self,
        context: StageContext<'_>,
        ready: Ready,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let fields = F::fields(packet.bytes()).ok_or(ProxyDrop::Truncated)?;
        if fields.is_link_local {
            return Err(with_icmp_error(BEYOND_SCOPE, ProxyDrop::LinkLocalSource));
        }
        if fields.hop_limit <= 1 {
            return Err(with_icmp_error(F::TIME_EXCEEDED, ProxyDrop::HopLimit));
        }
        let hash = flow_hash::<F>(packet);
        let hop = self.departure.hop(ready, hash)?;
        let (total, mtu_bytes) = (self.departure.total(packet)?, self.departure.mtu_bytes(hop));
        let fits = total <= mtu_bytes;
        if !fits {
            let room = mtu_bytes.saturating_sub(self.departure.front().len());
            if let Some(request) = F::too_big(packet, room) {
                return Err(with_icmp_error(request, ProxyDrop::TooBig));
            }
            context.count(ProxyDrop::Fragmented, 1);
        }
        F::decrement_hop_limit(packet.bytes_mut());
        self.departure.go(hop, fits, fields.traffic_class, hash, packet)
    }
}

/// A look-up that asks nothing: the way to the next segment is found once for a vector.
impl<F: Inner> LookUp for FromFunction<F> {
    const NAME: &'static str = F::NODE;
    type Reason = ProxyDrop;
    type Key = ();
    type Found = ();
    type InterfaceState = Option<Ready>;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Option<Ready> {
        self.departure.ready(cx, rx)
    }

    #[inline(always)]
    fn key(&self, _: Option<Ready>, _: &mut Packet) {}

    #[inline(always)]
    fn find(&self, _: Variant, _: Option<Ready>, _: &[()], _: &mut [()]) {}

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        ready: Option<Ready>,
        (): (),
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, ProxyDrop> {
        self.decide(context, ready, packet)
    }
}

/// The declaration; `arc` is `ip4-unicast` or `ip6-unicast`.
pub(super) fn spec<F: Inner>(arc: ArcId, backs: &Backs) -> NodeSpec {
    let backs = backs.clone();
    NodeSpec::look_up(
        "Puts the headers of their path in front of packets from a proxied function",
        move |wiring| FromFunction::<F> {
            departure: Transmit::new(wiring, &backs, F::COMING),
            worker: wiring.worker,
            arc,
            lookup: wiring.node(F::LOOKUP),
            error: wiring.node(F::ERROR_NODE),
            family: PhantomData,
        },
    )
    .describe(super::description::describe)
}

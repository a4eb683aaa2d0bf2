//! The nodes whose packets go to customers, as kernels: a packet takes the node's fast path, or its
//! general one. Where all packets of a block are of one domain, that is read once.

use quiver_core::graph::frame::next_or_drop;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::handover::NextHopIndex;

use crate::border::Border;
use crate::domain::Domain;
use crate::reasons::MapDrop;
use crate::tables::{Direction, Params};

/// What makes packets of IPv4 packets of IPv6 to customers.
pub(crate) trait ToCustomers: Send + 'static {
    /// The node's name.
    const NAME: &'static str;
    /// The mode that interfaces must take packets of.
    const MODE: u8;
    /// What it does.
    const DIRECTION: Direction;

    fn border(&self) -> &Border;

    /// A packet with nothing unusual: its bytes of IPv4, once it is one of IPv6. `None`, and it is
    /// as it was, for the general path.
    fn fast(&self, to: To<'_>, packet: &mut Packet) -> Option<usize>;

    /// Any packet.
    fn general(
        &self,
        context: StageContext<'_>,
        modes: u8,
        to: To<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, MapDrop>;
}

/// What holds for all packets to the customers of a domain.
#[derive(Clone, Copy)]
pub(crate) struct To<'p> {
    pub domain: &'p Domain,
    pub params: &'p Params,
}

/// The kernel of such a node.
pub(crate) struct Kernel<T>(pub T);

impl<T: ToCustomers> Kernel<T> {
    /// Of packets whose route leads to the domain with this number.
    #[inline(always)]
    fn to<'p>(&self, context: StageContext<'p>, first: &Packet) -> Option<To<'p>> {
        let NextHopIndex(index) = first.handed_over();
        let (shared, pass) = (&self.0.border().shared, context.pass());
        let domain = shared.domain(index, pass)?;
        Some(To { domain, params: shared.params(pass) })
    }
}

impl<T: ToCustomers> Stage for Kernel<T> {
    const NAME: &'static str = T::NAME;
    type Reason = MapDrop;
    /// The modes that the interface takes packets of.
    type InterfaceState = u8;

    fn interface_state(&self, _: &Context<'_>, rx: InterfaceId) -> u8 {
        self.0.border().shared.modes(rx)
    }

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        self.0.border().ask_for_domain(packet);
    }

    #[inline(always)]
    fn soon(&self, context: StageContext<'_>, packet: &Packet) {
        self.0.border().ask_for_customer(context, packet);
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        modes: u8,
        packet: &mut Packet,
    ) -> Result<NodeId, MapDrop> {
        let to = self.to(context, packet).ok_or(MapDrop::NoDomain)?;
        if modes & T::MODE != 0
            && let Some(bytes) = self.0.fast(to, packet)
        {
            self.0.border().count(T::DIRECTION, 1, bytes);
            return Ok(self.0.border().route6(packet));
        }
        self.0.general(context, modes, to, packet)
    }

    #[inline(always)]
    fn decide_all(
        &self,
        context: StageContext<'_>,
        modes: u8,
        packets: &mut [Packet],
        mut decided: impl FnMut(&Packet, NodeId),
    ) -> bool {
        let to = packets.first().and_then(|first| self.to(context, first));
        let Some(to) = to.filter(|_| modes & T::MODE != 0) else { return false };
        let (mut count, mut sum) = (0, 0);
        for packet in packets {
            let decision = match self.0.fast(to, packet) {
                Some(bytes) => {
                    (count, sum) = (count + 1, sum + bytes);
                    Ok(self.0.border().route6(packet))
                }
                None => self.0.general(context, modes, to, packet),
            };
            let next = next_or_drop(decision, packet);
            decided(packet, next);
        }
        self.0.border().count(T::DIRECTION, count, sum);
        true
    }
}

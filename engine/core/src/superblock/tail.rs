//! What stands behind the last look-up of a superblock: one stage, or two.

use crate::context::Context;
use crate::ids::{InterfaceId, NodeId};
use crate::packet::Packet;
use crate::stage::{Stage, Tally, decide};

use super::{Exit, Ids, Makers};

/// Where it stands in the chain.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct TailWay<'a> {
    pub(super) ids: &'a Ids,
    /// The place of its first stage.
    pub(super) first: usize,
}

/// One stage, or two of which the first leads to the second: a [`Stage`] or a tuple of two.
pub trait Tail: Sized + Send + 'static {
    /// The stages' own.
    type Common: Copy;
    /// The nodes' names.
    const NAMES: &'static [&'static str];
    /// Are the packets that come to the first one likely to be alike?
    const ALIKE: bool;
    /// Does one say of packets that they came in by another interface?
    const SORTS: bool;
    /// Do stages look behind the first headers?
    const LOOKS_BEHIND: bool;
    #[doc(hidden)]
    fn make(makers: &Makers<'_>) -> Self;
    #[doc(hidden)]
    fn common(&self, cx: &Context<'_>, rx: InterfaceId) -> Self::Common;
    #[doc(hidden)]
    fn ahead(&self, packet: &Packet);
    #[doc(hidden)]
    fn soon(&self, packet: &Packet);
    /// Where the packet goes behind the last one.
    #[doc(hidden)]
    fn decide(
        &self,
        tally: Tally<'_>,
        common: Self::Common,
        way: TailWay<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Exit>;
    /// So many have come to each.
    #[doc(hidden)]
    fn arrived(&self, cx: &Context<'_>, rx: InterfaceId, arrived: &[u32]);
}

impl<S: Stage> Tail for S {
    type Common = S::Common;
    const NAMES: &'static [&'static str] = &[S::NAME];
    const ALIKE: bool = S::ALIKE;
    const SORTS: bool = S::SORTS;
    const LOOKS_BEHIND: bool = S::LOOKS_BEHIND;

    fn make(makers: &Makers<'_>) -> S {
        makers.make(S::NAME)
    }

    #[inline(always)]
    fn common(&self, cx: &Context<'_>, rx: InterfaceId) -> S::Common {
        Stage::common(self, cx, rx)
    }

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        Stage::ahead(self, packet);
    }

    #[inline(always)]
    fn soon(&self, packet: &Packet) {
        Stage::soon(self, packet);
    }

    #[inline(always)]
    fn decide(
        &self,
        tally: Tally<'_>,
        common: S::Common,
        TailWay { ids, first }: TailWay<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Exit> {
        Ok(decide(self, tally.of(ids[first]), common, packet))
    }

    fn arrived(&self, cx: &Context<'_>, rx: InterfaceId, arrived: &[u32]) {
        Stage::arrived(self, cx, rx, u64::from(arrived[0]));
    }
}

impl<M: Stage, S: Stage> Tail for (M, S) {
    type Common = (M::Common, S::Common);
    const NAMES: &'static [&'static str] = &[M::NAME, S::NAME];
    const ALIKE: bool = M::ALIKE;
    const SORTS: bool = M::SORTS || S::SORTS;
    const LOOKS_BEHIND: bool = M::LOOKS_BEHIND || S::LOOKS_BEHIND;

    fn make(makers: &Makers<'_>) -> (M, S) {
        (makers.make(M::NAME), makers.make(S::NAME))
    }

    #[inline(always)]
    fn common(&self, cx: &Context<'_>, rx: InterfaceId) -> Self::Common {
        (self.0.common(cx, rx), self.1.common(cx, rx))
    }

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        Stage::ahead(&self.0, packet);
    }

    #[inline(always)]
    fn soon(&self, packet: &Packet) {
        Stage::soon(&self.0, packet);
    }

    #[inline(always)]
    fn decide(
        &self,
        tally: Tally<'_>,
        common: Self::Common,
        TailWay { ids, first }: TailWay<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Exit> {
        let next = decide(&self.0, tally.of(ids[first]), common.0, packet);
        if next != ids[first + 1] {
            return Err(Exit { place: first, next });
        }
        Ok(decide(&self.1, tally.of(ids[first + 1]), common.1, packet))
    }

    fn arrived(&self, cx: &Context<'_>, rx: InterfaceId, arrived: &[u32]) {
        Stage::arrived(&self.0, cx, rx, u64::from(arrived[0]));
        Stage::arrived(&self.1, cx, rx, u64::from(arrived[1]));
    }
}

//! What a node decides, apart from how its packets are looped over: that is the same for all nodes,
//! in [`block`](crate::block). A function of a stage is inlined into the loops that run it.

use std::sync::Arc;

use crate::block::{Kernel, LookUpKernel, StageKernel, SteerKernel};
use crate::cpu::Variant;
use crate::graph::arc::{ARCS_MAX, ArcId};
use crate::graph::context::{Context, WorkerContext, next_in_arc, put_event};
use crate::graph::counters::InterfaceCounters;
use crate::graph::frame::next_or_drop;
use crate::graph::interface::InterfaceRow;
use crate::graph::node::{NodeSpec, Reason, Wiring};
use crate::ids::{InterfaceId, NodeId};
use crate::memory::epoch::Pass;
use crate::memory::packet::Packet;
use crate::worker::event::Event;

/// What a stage reaches beside its packet: where it counts, and the rows of interfaces. Two words,
/// so that it is handed on in registers.
#[derive(Clone, Copy)]
pub struct StageContext<'p> {
    shared: &'p WorkerContext<'p>,
    node: NodeId,
}

impl<'p> StageContext<'p> {
    /// Of the running node.
    #[inline(always)]
    pub fn new(cx: &'p Context<'_>) -> StageContext<'p> {
        StageContext { shared: &cx.shared, node: cx.node }
    }

    /// The same, for another node.
    #[inline(always)]
    pub(crate) fn of(self, node: NodeId) -> StageContext<'p> {
        StageContext { node, ..self }
    }

    /// The pass under which published things are read.
    #[inline(always)]
    pub fn pass(self) -> Pass<'p> {
        self.shared.pass
    }

    /// Nanoseconds, as a [`Context`] tells them.
    #[inline(always)]
    pub fn now_ns(self) -> u64 {
        self.shared.now_ns
    }

    /// Tell the control thread of something about an interface, in bytes that the handler of the
    /// stage's node understands; counted, and false, when its ring is full.
    #[cold]
    pub fn notify(self, interface: InterfaceId, kind: u8, bytes: &[u8]) -> bool {
        let event = Event::new(self.node, interface, self.shared.now_ns, kind, bytes);
        put_event(self.shared.events, self.shared.counters, event)
    }

    /// Count an event of the stage's node.
    #[inline]
    pub fn count(self, event: impl Reason, n: u64) {
        self.shared.counters.reason(self.node, event.number()).add(n);
    }

    /// An interface's row; `None` when it does not exist (any more).
    #[inline(always)]
    pub fn interface(self, id: InterfaceId) -> Option<&'p InterfaceRow> {
        self.shared.rows.get(id, self.shared.pass)
    }

    /// This worker's counters of an interface.
    #[inline(always)]
    pub fn interface_counters(self, id: InterfaceId) -> &'p InterfaceCounters {
        self.shared.counters.interface(id)
    }

    /// Has the packet come to the stage's node as to a feature of `arc`? A node that is reached in
    /// other ways too must not walk on along an arc that the packet has left.
    #[inline]
    pub fn is_feature_of(self, arc: ArcId, interface: InterfaceId, packet: &Packet) -> bool {
        let chain = self.interface(interface).map(|row| &row.chains[arc.0 as usize % ARCS_MAX]);
        chain.and_then(|chain| chain.at(packet.arc_place)) == Some(self.node)
    }

    /// Walk on along an arc: the feature behind the running one, or `default`.
    #[inline]
    pub fn next_in_arc(
        self,
        arc: ArcId,
        interface: InterfaceId,
        packet: &mut Packet,
        default: NodeId,
    ) -> NodeId {
        next_in_arc(self.interface(interface), arc, packet, default)
    }
}

/// A decision about one packet.
pub trait Stage: Send + 'static {
    /// The node's name.
    const NAME: &'static str;
    /// Does it look into packets that nobody has looked into before? Then their first lines are
    /// asked for ahead.
    const LOOKS_FIRST: bool = false;
    /// Does it say of packets that they came in by another interface ([`Packet::rx`])? Those that
    /// came in by the interface that [`expect`](Self::expect) named are counted for it by the
    /// engine, all at once; the stage counts the others.
    const SORTS: bool = false;
    /// Does it look behind the first headers? Then packets' second lines are asked for with the
    /// first ones.
    const LOOKS_BEHIND: bool = false;
    /// Do most packets go to an interface's output from here? Then their bytes are added up in the
    /// same loop.
    const SENDS: bool = false;
    /// Why packets die here, and what is counted.
    type Reason: Reason;
    /// What holds for all packets that came in by one interface, read once for a vector.
    type InterfaceState: Copy + Send;

    /// What holds for packets that came in by `rx`.
    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Self::InterfaceState;

    /// Where the packet goes next. An error is a drop.
    ///
    /// # Errors
    /// The reason of the drop.
    fn decide(
        &self,
        context: StageContext<'_>,
        interface_state: Self::InterfaceState,
        packet: &mut Packet,
    ) -> Result<NodeId, Self::Reason>;

    /// As [`decide`](Self::decide) for all packets of a block, whose [`Packet::index`] is the same:
    /// what that names is read once. `decided` is called with each packet and its next node, in
    /// order. False, and nothing changes, where packets must be decided about one by one. A stage
    /// that sorts is not asked.
    #[inline(always)]
    fn decide_all(
        &self,
        context: StageContext<'_>,
        interface_state: Self::InterfaceState,
        packets: &mut [Packet],
        decided: impl FnMut(&Packet, NodeId),
    ) -> bool {
        let _ = (context, interface_state, packets, decided);
        false
    }

    /// Of a stage that sorts: where packets like the first of a block will be said to have come in,
    /// and what `decide` makes of knowing that. Each packet is decided about all the same.
    #[inline(always)]
    fn expect(
        &self,
        cx: &Context<'_>,
        rx: InterfaceId,
        interface_state: Self::InterfaceState,
        first: &Packet,
    ) -> (Self::InterfaceState, InterfaceId) {
        let _ = (cx, first);
        (interface_state, rx)
    }

    /// Ask for the memory that [`decide`](Self::decide) will read of what the packet's index names.
    /// It is called for a block's packets before the first of them is decided about, and only for
    /// the first one when the indices of all are the same.
    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        let _ = packet;
    }

    /// Ask for what that memory, which has come meanwhile, leads to: some packets before they are
    /// decided about.
    #[inline(always)]
    fn soon(&self, context: StageContext<'_>, packet: &Packet) {
        let _ = (context, packet);
    }

    /// So many packets of an interface have come here: for counters of the interface.
    #[inline(always)]
    fn arrived(&self, cx: &Context<'_>, rx: InterfaceId, packets: u64) {
        let _ = (cx, rx, packets);
    }
}

/// A stage that sends all packets of an interface the same way, but for those that it refuses by a
/// look at the handle alone.
pub trait Steer: Stage {
    /// The output of the interface that all packets go to, and that interface.
    fn way(interface_state: Self::InterfaceState) -> Option<(NodeId, InterfaceId)>;

    /// Does the packet go that way?
    fn takes(packet: &Packet) -> bool;
}

/// A decision that asks a table: all keys of a vector are looked up together, so that memory is
/// waited for once and not per packet.
pub trait LookUp: Send + 'static {
    /// The node's name.
    const NAME: &'static str;
    /// Does it say of some packets that leave the usual way that they came in by another interface
    /// ([`Packet::rx`])?
    const SORTS: bool = false;
    /// Does it look behind the first headers? Then packets' second lines are asked for with the
    /// first ones.
    const LOOKS_BEHIND: bool = false;
    /// Why packets die here, and what is counted.
    type Reason: Reason;
    /// What is looked for.
    type Key: Copy + Default + Send;
    /// What is found.
    type Found: Copy + Default + Send;
    /// What holds for all packets that came in by one interface, read once for a vector: the table,
    /// as a rule.
    type InterfaceState: Copy + Send;

    /// What holds for packets that came in by `rx`.
    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Self::InterfaceState;

    /// Ask for the memory that [`key`](Self::key) will read of what the packet's index names.
    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        let _ = packet;
    }

    /// The packet's key; what can be done with the packet before the answer is there is done.
    fn key(&self, interface_state: Self::InterfaceState, packet: &mut Packet) -> Self::Key;

    /// The keys of packets whose index is the same: what that names need be read only
    /// once.
    #[inline(always)]
    fn keys(
        &self,
        interface_state: Self::InterfaceState,
        packets: &mut [Packet],
        keys: &mut [Self::Key],
    ) {
        for (packet, key) in packets.iter_mut().zip(keys) {
            *key = self.key(interface_state, packet);
        }
    }

    /// Look all keys up; `found` is as long as `keys`.
    fn find(
        &self,
        variant: Variant,
        interface_state: Self::InterfaceState,
        keys: &[Self::Key],
        found: &mut [Self::Found],
    );

    /// What was found says where the packet goes. An error is a drop.
    ///
    /// # Errors
    /// The reason of the drop.
    fn resolve(
        &self,
        context: StageContext<'_>,
        interface_state: Self::InterfaceState,
        key: Self::Key,
        found: Self::Found,
        packet: &mut Packet,
    ) -> Result<NodeId, Self::Reason>;

    /// What was found leads all packets of a block to one node: each is told what it takes with it,
    /// and the answer is that node. [`Packet::rx`] and [`Packet::index`] of all are the same then.
    /// `None`, and nothing changes, where packets must be resolved one by one.
    #[inline(always)]
    fn resolve_all(
        &self,
        context: StageContext<'_>,
        interface_state: Self::InterfaceState,
        found: &[Self::Found],
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        let _ = (context, interface_state, found, packets);
        None
    }

    /// As [`resolve_all`](Self::resolve_all), but before the keys of the packets are read: for
    /// packets whose headers can be compared as a whole.
    #[inline(always)]
    fn decide_all(
        &self,
        context: StageContext<'_>,
        interface_state: Self::InterfaceState,
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        let _ = (context, interface_state, packets);
        None
    }

    /// As [`find`](Self::find), where many keys are likely to be alike.
    #[inline(always)]
    fn find_uniform(
        &self,
        variant: Variant,
        interface_state: Self::InterfaceState,
        keys: &[Self::Key],
        found: &mut [Self::Found],
    ) {
        self.find(variant, interface_state, keys, found);
    }

    /// As [`find`](Self::find), for tables that are read under the pass of `context`. It is what
    /// the loop calls.
    #[inline(always)]
    fn find_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        interface_state: Self::InterfaceState,
        keys: &[Self::Key],
        found: &mut [Self::Found],
    ) {
        let _ = context;
        self.find(variant, interface_state, keys, found);
    }

    /// As [`find_uniform`](Self::find_uniform), for tables that are read under the pass of
    /// `context`. It is what the loop calls.
    #[inline(always)]
    fn find_uniform_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        interface_state: Self::InterfaceState,
        keys: &[Self::Key],
        found: &mut [Self::Found],
    ) {
        let _ = context;
        self.find_uniform(variant, interface_state, keys, found);
    }

    /// The vector is through: what was put together for others on the way is given to them.
    #[inline(always)]
    fn end(&self) {}
}

/// Look keys up of which many are likely to be alike: if all are, once. For
/// [`LookUp::find_uniform`].
#[inline(always)]
pub fn find_once<K: Copy + PartialEq, F: Copy>(
    keys: &[K],
    found: &mut [F],
    find: impl FnOnce(&[K], &mut [F]),
) {
    let Some(first) = keys.first() else { return };
    if !keys.iter().fold(true, |is_alike, key| is_alike & (key == first)) {
        return find(keys, found);
    }
    let Some((one, rest)) = found.split_first_mut() else { return };
    find(std::slice::from_ref(first), std::slice::from_mut(one));
    rest.iter_mut().take(keys.len() - 1).for_each(|other| *other = *one);
}

/// Makes the stage of a worker; kept by its node's declaration, so that a pair gets one too.
pub(crate) struct StageMaker<S>(pub(crate) Arc<dyn Fn(&Wiring<'_>) -> S + Send + Sync>);

/// Packets that a stage which sorts found to be as expected.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sorted {
    packets: u64,
    /// Packets that these stand for, beyond themselves.
    more: u64,
    bytes: u64,
}

impl Sorted {
    /// How many.
    #[inline(always)]
    pub(crate) fn packets(self) -> u64 {
        self.packets
    }

    /// One more.
    #[inline(always)]
    pub(crate) fn add(&mut self, length: usize) {
        self.packets += 1;
        self.bytes += length as u64;
    }

    /// One more that may stand for several; `came` is [`Packet::on_wire`] as it came.
    #[inline(always)]
    pub(crate) fn add_on_wire(&mut self, came: (u64, u64)) {
        self.packets += 1;
        self.more += came.0.saturating_sub(1);
        self.bytes += came.1;
    }

    /// Count them for `onward`, unless that is where they came in anyway.
    #[inline(always)]
    pub(crate) fn count(self, context: StageContext<'_>, rx: InterfaceId, onward: InterfaceId) {
        if onward != rx && self.packets > 0 {
            let counters = context.interface_counters(onward);
            counters.rx_packets.add(self.packets + self.more);
            counters.rx_bytes.add(self.bytes);
        }
    }
}

impl NodeSpec {
    /// A node that decides packet by packet.
    pub fn stage<S: Stage>(
        help: &'static str,
        make: impl Fn(&Wiring<'_>) -> S + Send + Sync + 'static,
    ) -> NodeSpec {
        NodeSpec::of_stage(help, make, |stage| Box::new(StageKernel::new(stage)))
    }

    /// A node that sends all packets of an interface the same way.
    pub fn steer<S: Steer>(
        help: &'static str,
        make: impl Fn(&Wiring<'_>) -> S + Send + Sync + 'static,
    ) -> NodeSpec {
        NodeSpec::of_stage(help, make, |stage| Box::new(SteerKernel::new(stage)))
    }

    fn of_stage<S: Stage>(
        help: &'static str,
        make: impl Fn(&Wiring<'_>) -> S + Send + Sync + 'static,
        kernel: fn(S) -> Box<dyn Kernel>,
    ) -> NodeSpec {
        let make: Arc<dyn Fn(&Wiring<'_>) -> S + Send + Sync> = Arc::new(make);
        let maker = StageMaker(make.clone());
        let spec = NodeSpec::kernel(S::NAME, help, move |wiring| kernel(make(wiring)));
        NodeSpec { maker: Some(Arc::new(maker)), ..spec }.reasons::<S::Reason>()
    }

    /// A node that looks packets up and classifies them by what was found.
    pub fn look_up<L: LookUp>(
        help: &'static str,
        make: impl Fn(&Wiring<'_>) -> L + Send + Sync + 'static,
    ) -> NodeSpec {
        let spec = NodeSpec::kernel(L::NAME, help, move |wiring| {
            Box::new(LookUpKernel::new(make(wiring)))
        });
        spec.reasons::<L::Reason>()
    }
}

/// One decision, written down as [`settle`] does; for kernels.
#[inline(always)]
pub(crate) fn decide<S: Stage>(
    stage: &S,
    context: StageContext<'_>,
    interface_state: S::InterfaceState,
    packet: &mut Packet,
) -> NodeId {
    let decision = stage.decide(context, interface_state, packet);
    next_or_drop(decision, packet)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::find_once;

    #[test]
    fn keys_that_are_all_alike_are_looked_up_once() {
        for (keys, asked) in [(vec![7; 5], 1), (vec![7, 7, 8], 3), (vec![9], 1), (vec![], 0)] {
            let mut found = vec![0; keys.len()];
            let mut count = 0;
            find_once(&keys, &mut found, |keys, found| {
                count += keys.len();
                found.iter_mut().zip(keys).for_each(|(found, key)| *found = key * 2);
            });
            let expected: Vec<i32> = keys.iter().map(|key| key * 2).collect();
            assert_eq!((found, count), (expected, asked));
        }
    }
}

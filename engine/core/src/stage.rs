//! What a node decides, apart from how its packets are looped over. A node that is declared as a stage
//! runs alone as a node of the graph, and in one pass with its neighbours as part of a
//! [superblock](crate::superblock): the same function, inlined into either loop.

use std::sync::Arc;

use crate::arc::{ARCS_MAX, ArcId};
use crate::context::{Context, Reach, next_in_arc, put_event};
use crate::counters::InterfaceCounters;
use crate::cpu::{Body, Variant};
use crate::epoch::Pass;
use crate::event::Event;
use crate::frame::{FRAME_PACKETS_MAX, Frame, settle};
use crate::ids::{InterfaceId, NodeId};
use crate::interface::InterfaceRow;
use crate::node::{Node, NodeSpec, Reason, Wiring};
use crate::packet::Packet;

/// What a stage reaches beside its packet: where it counts, and the rows of interfaces. Two words, so that it is handed
/// on in registers.
#[derive(Clone, Copy)]
pub struct Tally<'p> {
    reach: &'p Reach<'p>,
    node: NodeId,
}

impl<'p> Tally<'p> {
    /// Of the running node.
    #[inline(always)]
    pub fn new(cx: &'p Context<'_>) -> Tally<'p> {
        Tally { reach: &cx.reach, node: cx.node }
    }

    /// The same, for another node.
    #[inline(always)]
    pub(crate) fn of(self, node: NodeId) -> Tally<'p> {
        Tally { node, ..self }
    }

    /// The pass under which published things are read.
    #[inline(always)]
    pub fn pass(self) -> Pass<'p> {
        self.reach.pass
    }

    /// Nanoseconds, as a [`Context`] tells them.
    #[inline(always)]
    pub fn now_ns(self) -> u64 {
        self.reach.now_ns
    }

    /// Tell the control thread of something about an interface, in bytes that the handler of the stage's node
    /// understands; counted, and false, when its ring is full.
    #[cold]
    pub fn notify(self, interface: InterfaceId, kind: u8, bytes: &[u8]) -> bool {
        let event = Event::new(self.node, interface, self.reach.now_ns, kind, bytes);
        put_event(self.reach.events, self.reach.counters, event)
    }

    /// Count an event of the stage's node.
    #[inline]
    pub fn count(self, event: impl Reason, n: u64) {
        self.reach.counters.reason(self.node, event.number()).add(n);
    }

    /// An interface's row; `None` when it does not exist (any more).
    #[inline(always)]
    pub fn interface(self, id: InterfaceId) -> Option<&'p InterfaceRow> {
        self.reach.rows.get(id, self.reach.pass)
    }

    /// This worker's counters of an interface.
    #[inline(always)]
    pub fn interface_counters(self, id: InterfaceId) -> &'p InterfaceCounters {
        self.reach.counters.interface(id)
    }

    /// Has the packet come to the stage's node as to a feature of `arc`? A node that is reached in other ways too
    /// must not walk on along an arc that the packet has left.
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
    /// Does it look into packets that nobody has looked into before? Then their first lines are asked
    /// for ahead.
    const LOOKS_FIRST: bool = false;
    /// Does it say of packets that they came in by another interface ([`Packet::rx`])? Those that came in by the
    /// interface that [`expect`](Self::expect) named are counted for it by the engine, all at once; the stage
    /// counts the others.
    const SORTS: bool = false;
    /// Are the packets of a vector that a look-up leads here likely to be alike: to few destinations (routers'
    /// addresses), or by few ways (into policies)? Then blocks that are alike are looked up and decided about as one.
    const ALIKE: bool = false;
    /// Does it look behind the first headers? Then packets' second lines are asked for with the first ones.
    const LOOKS_BEHIND: bool = false;
    /// Why packets die here, and what is counted.
    type Reason: Reason;
    /// What holds for all packets that came in by one interface, read once for a vector.
    type Common: Copy;

    /// What holds for packets that came in by `rx`.
    fn common(&self, cx: &Context<'_>, rx: InterfaceId) -> Self::Common;

    /// Where the packet goes next. An error is a drop.
    fn decide(
        &self,
        tally: Tally<'_>,
        common: Self::Common,
        packet: &mut Packet,
    ) -> Result<NodeId, Self::Reason>;

    /// Of a stage that sorts: where the packets of a vector will be said to have come in when all are like the
    /// first, and what `decide` makes of knowing that. `None` when they plainly differ, so that nothing is
    /// gained by taking them through the stages behind this one at once. Each packet is decided about all the
    /// same, and leaves the pass if it is of another interface.
    #[inline(always)]
    fn expect(
        &self,
        cx: &Context<'_>,
        rx: InterfaceId,
        common: Self::Common,
        packets: &[Packet],
    ) -> Option<(Self::Common, InterfaceId)> {
        let _ = (cx, packets);
        Some((common, rx))
    }

    /// May packets with `common` go to `next` in the same pass? Not when a feature stands between.
    fn leads_to(&self, common: Self::Common, next: NodeId) -> bool {
        let _ = (common, next);
        true
    }

    /// Where a packet about which nothing is unusual will go, as far as a look at it says: asked of the stage that
    /// begins a superblock, which takes no vector whose packets lead elsewhere.
    #[inline(always)]
    fn towards(&self, packet: &Packet) -> Option<NodeId> {
        let _ = packet;
        None
    }

    /// Ask for the memory that [`decide`](Self::decide) will read of what [`Packet::index`] names. As the last stage
    /// behind a look-up it is told of a block's packets before the first of them is decided about, and only of the
    /// first one when all took the same way.
    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        let _ = packet;
    }

    /// Ask for what that memory, which has come meanwhile, leads to: some packets before they are decided about.
    #[inline(always)]
    fn soon(&self, packet: &Packet) {
        let _ = packet;
    }

    /// So many packets of an interface have come here: for counters of the interface.
    #[inline(always)]
    fn arrived(&self, cx: &Context<'_>, rx: InterfaceId, packets: u64) {
        let _ = (cx, rx, packets);
    }
}

/// A stage that sends all packets of an interface the same way, but for those that it refuses by a look
/// at the handle alone.
pub trait Steer: Stage {
    /// The output of the interface that all packets go to, and that interface.
    fn way(common: Self::Common) -> Option<(NodeId, InterfaceId)>;

    /// Does the packet go that way?
    fn takes(packet: &Packet) -> bool;
}

/// A decision that asks a table: all keys of a vector are looked up together, so that memory is waited
/// for once and not per packet.
pub trait LookUp: Send + 'static {
    /// The node's name.
    const NAME: &'static str;
    /// Does it say of some packets that leave the usual way that they came in by another interface
    /// ([`Packet::rx`])?
    const SORTS: bool = false;
    /// Why packets die here, and what is counted.
    type Reason: Reason;
    /// What is looked for.
    type Key: Copy + Default + Send;
    /// What is found.
    type Found: Copy + Default + Send;
    /// What holds for all packets that came in by one interface, read once for a vector: the table, as a rule.
    type Common: Copy;

    /// What holds for packets that came in by `rx`.
    fn common(&self, cx: &Context<'_>, rx: InterfaceId) -> Self::Common;

    /// Ask for the memory that [`key`](Self::key) will read of what [`Packet::index`] names.
    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        let _ = packet;
    }

    /// The packet's key; what can be done with the packet before the answer is there is done.
    fn key(&self, common: Self::Common, packet: &mut Packet) -> Self::Key;

    /// The keys of packets whose [`Packet::index`] is the same: what that names need be read only once.
    #[inline(always)]
    fn keys(&self, common: Self::Common, packets: &mut [Packet], keys: &mut [Self::Key]) {
        for (packet, key) in packets.iter_mut().zip(keys) {
            *key = self.key(common, packet);
        }
    }

    /// Look all keys up; `found` is as long as `keys`.
    fn find(&self, variant: Variant, common: Self::Common, keys: &[Self::Key], found: &mut [Self::Found]);

    /// What was found says where the packet goes. An error is a drop.
    fn settle(
        &self,
        tally: Tally<'_>,
        common: Self::Common,
        key: Self::Key,
        found: Self::Found,
        packet: &mut Packet,
    ) -> Result<NodeId, Self::Reason>;

    /// What was found leads all packets of a block the same way: each is told what it takes with it, and the answer is
    /// where they go. `None`, and nothing changes, where they must be settled one by one.
    #[inline(always)]
    fn settle_all(
        &self,
        common: Self::Common,
        found: &[Self::Found],
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        let _ = (common, found, packets);
        None
    }

    /// As [`find`](Self::find), where many keys are likely to be alike.
    #[inline(always)]
    fn find_alike(
        &self,
        variant: Variant,
        common: Self::Common,
        keys: &[Self::Key],
        found: &mut [Self::Found],
    ) {
        self.find(variant, common, keys, found);
    }

    /// The vector is through: what was put together for others on the way is given to them.
    #[inline(always)]
    fn end(&self) {}
}

/// Makes the stage of a worker; kept by its node's declaration, so that a superblock gets one too.
pub(crate) struct StageMaker<S>(pub(crate) Arc<dyn Fn(&Wiring<'_>) -> S + Send + Sync>);

/// A stage as a node.
struct StageNode<S>(S);

impl<S: Stage> Node for StageNode<S> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let stage = &self.0;
        let tally = Tally::new(cx);
        let Some(first) = frame.packets().first().map(|p| p.rx) else { return };
        if frame.is_same_rx() {
            stage.arrived(cx, first, frame.len() as u64);
            let common = stage.common(cx, first);
            let expected = stage.expect(cx, first, common, frame.packets());
            let (common, onward) = expected.unwrap_or((common, first));
            let sorted = cx.variant.run(EachPacket { stage, tally, common, onward, frame });
            sorted.count(tally, first, onward);
        } else {
            each::<S>(frame, |packet| {
                stage.arrived(cx, packet.rx, 1);
                stage.decide(tally, stage.common(cx, packet.rx), packet)
            });
        }
        if S::SORTS {
            frame.look_at_rx();
        }
    }
}

#[inline(always)]
fn each<S: Stage>(frame: &mut Frame, decide: impl FnMut(&mut Packet) -> Result<NodeId, S::Reason>) {
    if S::LOOKS_FIRST { frame.route_ahead(decide) } else { frame.route(decide) }
}

/// All packets of a vector from one interface.
struct EachPacket<'a, S: Stage> {
    stage: &'a S,
    tally: Tally<'a>,
    common: S::Common,
    /// The interface that a stage which sorts expects them to have come in by.
    onward: InterfaceId,
    frame: &'a mut Frame,
}

impl<S: Stage> Body for EachPacket<'_, S> {
    type Answer = Sorted;

    #[inline(always)]
    fn run(self) -> Sorted {
        let mut sorted = Sorted::default();
        each::<S>(self.frame, |packet| {
            let length = if S::SORTS { packet.length() } else { 0 };
            let decision = self.stage.decide(self.tally, self.common, packet);
            if S::SORTS && packet.rx == self.onward {
                sorted.add(length);
            }
            decision
        });
        sorted
    }
}

/// Packets that a stage which sorts found to be as expected.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sorted {
    packets: u64,
    bytes: u64,
}

impl Sorted {
    /// One more.
    #[inline(always)]
    pub(crate) fn add(&mut self, length: usize) {
        self.packets += 1;
        self.bytes += length as u64;
    }

    /// Count them for `onward`, unless that is where they came in anyway.
    #[inline(always)]
    pub(crate) fn count(self, tally: Tally<'_>, rx: InterfaceId, onward: InterfaceId) {
        if onward != rx && self.packets > 0 {
            let counters = tally.interface_counters(onward);
            counters.rx_packets.add(self.packets);
            counters.rx_bytes.add(self.bytes);
        }
    }
}

/// A look-up as a node.
struct LookUpNode<L: LookUp> {
    look_up: L,
    /// Kept here, not on the stack: a vector's worth each.
    keys: Box<[L::Key; FRAME_PACKETS_MAX]>,
    found: Box<[L::Found; FRAME_PACKETS_MAX]>,
}

impl<L: LookUp> Node for LookUpNode<L> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let Some(first) = frame.packets().first().map(|p| p.rx) else { return };
        let (variant, tally) = (cx.variant, Tally::new(cx));
        if frame.is_same_rx() {
            let common = self.look_up.common(cx, first);
            variant.run(AllKeys { node: self, variant, tally, common, frame: &mut *frame });
            if L::SORTS {
                frame.look_at_rx();
            }
            return self.look_up.end();
        }
        let look_up = &self.look_up;
        frame.route(|packet| {
            let common = look_up.common(cx, packet.rx);
            let (key, mut found) = (look_up.key(common, packet), [L::Found::default()]);
            look_up.find(variant, common, &[key], &mut found);
            look_up.settle(tally, common, key, found[0], packet)
        });
        look_up.end();
    }
}

/// All packets of a vector from one interface.
struct AllKeys<'a, L: LookUp> {
    node: &'a mut LookUpNode<L>,
    variant: Variant,
    tally: Tally<'a>,
    common: L::Common,
    frame: &'a mut Frame,
}

impl<L: LookUp> Body for AllKeys<'_, L> {
    type Answer = ();

    #[inline(always)]
    fn run(self) {
        let LookUpNode { look_up, keys, found } = self.node;
        let (packets, next) = self.frame.split_mut();
        let count = packets.len();
        packets.iter().for_each(|packet| look_up.ahead(packet));
        for (packet, key) in packets.iter_mut().zip(keys.iter_mut()) {
            *key = look_up.key(self.common, packet);
        }
        look_up.find(self.variant, self.common, &keys[..count], &mut found[..count]);
        for (((packet, next), found), key) in packets.iter_mut().zip(next).zip(found.iter()).zip(keys.iter())
        {
            *next = settle(look_up.settle(self.tally, self.common, *key, *found, packet), packet);
        }
    }
}

impl NodeSpec {
    /// A node that decides packet by packet, by itself or in a superblock.
    pub fn stage<S: Stage>(
        help: &'static str,
        make: impl Fn(&Wiring<'_>) -> S + Send + Sync + 'static,
    ) -> NodeSpec {
        let make: Arc<dyn Fn(&Wiring<'_>) -> S + Send + Sync> = Arc::new(make);
        let alone = make.clone();
        let spec = NodeSpec::new(S::NAME, help, move |wiring| Box::new(StageNode(alone(wiring))));
        NodeSpec { maker: Some(Arc::new(StageMaker(make))), ..spec }.reasons::<S::Reason>()
    }

    /// A node that looks packets up and judges what was found, by itself or in a superblock.
    pub fn look_up<L: LookUp>(
        help: &'static str,
        make: impl Fn(&Wiring<'_>) -> L + Send + Sync + 'static,
    ) -> NodeSpec {
        let make: Arc<dyn Fn(&Wiring<'_>) -> L + Send + Sync> = Arc::new(make);
        let alone = make.clone();
        let spec = NodeSpec::new(L::NAME, help, move |wiring| {
            Box::new(LookUpNode {
                look_up: alone(wiring),
                keys: Box::new([L::Key::default(); FRAME_PACKETS_MAX]),
                found: Box::new([L::Found::default(); FRAME_PACKETS_MAX]),
            })
        });
        NodeSpec { maker: Some(Arc::new(StageMaker(make))), ..spec }.reasons::<L::Reason>()
    }
}

/// One decision, written down as [`settle`] does; for superblocks.
#[inline(always)]
pub(crate) fn decide<S: Stage>(
    stage: &S,
    tally: Tally<'_>,
    common: S::Common,
    packet: &mut Packet,
) -> NodeId {
    let decision = stage.decide(tally, common, packet);
    settle(decision, packet)
}

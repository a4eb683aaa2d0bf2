//! `shaper-output`: packets within their rates pass, others wait for their time. One worker owns
//! all that waits; others hand it what is to be shaped.

use std::sync::Arc;

use quiver_core::graph::arc::INTERFACE_OUTPUT;
use quiver_core::graph::hand_over::HandOver;
use quiver_core::graph::node::{DROP, Never, Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet, WorkerId};
use quiver_shaping::NONE;
use quiver_shaping::scheduler::{Offer, Scheduler};
use quiver_shaping::settings::Diffserv;

use crate::classify::{Classifier, ip_header, is_bare};
use crate::tables::Shared;
use crate::waiting::{Out, Waiting};

/// The node's name.
pub(crate) const NAME: &str = "shaper-output";
/// The worker where packets wait.
pub(crate) const OWNER: WorkerId = WorkerId(0);
/// Packets sent in a pass at most.
const BUDGET: usize = 256;
/// Packets whose nodes are asked for ahead of the one that is looked at.
const AHEAD: usize = 16;

quiver_core::reasons! {
    /// What becomes of packets that are shaped.
    pub enum ShaperDrop {
        /// By CoDel.
        Codel = "codel", "the packet's flow has waited for too long (CoDel, RFC 8289; \
            `show shaper`)";
        /// From the longest flow.
        Overlimit = "overlimit", "too many packets wait, and the packet's flow has most of them";
        /// While it waited.
        InterfaceGone = "interface-gone", "the interface was deleted while the packet waited";
        /// While it waited.
        InterfaceDown = "interface-down", "the interface went down while the packet waited";
        /// On its way to the owner.
        Congestion = "congestion-drop", "the worker that shapes takes packets too slowly";
        /// Another worker waits.
        BackPressure = info "back-pressure", "passes in which a worker read nothing, because the \
            worker that shapes was behind";
        /// It waits.
        Queued = info "queued", "packets that had to wait";
    }
}

/// A worker's instance.
pub(crate) struct Shaper {
    classifier: Classifier,
    own: NodeId,
    /// The owner's, once there is a shaper.
    pub scheduler: Option<Box<Scheduler<Waiting>>>,
    /// What waits for the owner, on other workers.
    hand_over: HandOver,
}

/// Where a packet goes that passes.
#[inline]
fn behind(cx: &Context<'_>, packet: &mut Packet) -> NodeId {
    let tx = packet.tx;
    let device = cx.interface(tx).map_or(DROP, |row| row.tx);
    cx.next_in_arc(INTERFACE_OUTPUT, tx, packet, device)
}

/// Let a packet pass that was taken out of its vector.
fn pass(cx: &mut Context<'_>, mut packet: Packet) {
    let next = behind(cx, &mut packet);
    cx.trace(&packet, next);
    cx.emit(packet, next);
}

impl Shaper {
    /// How many of the first packets of a vector pass.
    fn first_that_pass(&mut self, cx: &Context<'_>, packets: &[Packet]) -> usize {
        let Some(scheduler) = &mut self.scheduler else { return packets.len() };
        let nodes = &self.classifier.nodes[..packets.len()];
        nodes.iter().take(AHEAD).for_each(|node| scheduler.prefetch(*node));
        let mut ahead = nodes.iter().skip(AHEAD);
        let waits = packets.iter().zip(nodes).position(|(packet, node)| {
            if let Some(node) = ahead.next() {
                scheduler.prefetch(*node);
            }
            *node != NONE
                && scheduler.offer(*node, packet.length() as u32, cx.now_ns) == Offer::Waits
        });
        waits.unwrap_or(packets.len())
    }

    /// The classes of traffic of the node in which a packet has to wait, if it has to.
    fn waits(&mut self, node: u32, packet: &Packet, now_ns: u64) -> Option<Diffserv> {
        let scheduler = self.scheduler.as_mut().filter(|_| node != NONE)?;
        match scheduler.offer(node, packet.length() as u32, now_ns) {
            Offer::Waits => scheduler.diffserv_of(node),
            Offer::Passes | Offer::Unknown => None,
        }
    }

    /// Ask for the node of the packet at a place of the vector, where it may have to wait.
    #[inline(always)]
    fn look_ahead(&self, place: usize) {
        if let Some(scheduler) = &self.scheduler
            && let Some(node) = self.classifier.nodes.get(place)
        {
            scheduler.prefetch(*node);
            scheduler.prefetch_queue(*node);
        }
    }

    /// Let the packet at a place of the vector pass, or wait.
    fn shape(&mut self, cx: &mut Context<'_>, place: usize, mut packet: Packet) {
        let now_ns = cx.now_ns;
        let Some(classes) = self.waits(self.classifier.nodes[place], &packet, now_ns) else {
            return pass(cx, packet);
        };
        let header = ip_header(packet.bytes(), is_bare(cx, &packet));
        let arrival = self.classifier.arrival(place, (packet.bytes(), header), classes);
        cx.keep_age(&mut packet);
        cx.trace(&packet, self.own);
        cx.count(ShaperDrop::Queued, 1);
        if let Some(scheduler) = &mut self.scheduler {
            let item = Waiting::new(packet, header);
            scheduler.enqueue(&arrival, item, now_ns, &mut Out::new(cx, self.own));
        } else {
            pass(cx, packet); // the tree was there a moment ago
        }
    }
}

impl Node for Shaper {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        if cx.worker != OWNER {
            self.hand_over.take(cx, frame, ShaperDrop::Congestion);
            if let Some(due_ns) = self.hand_over.hold(cx, ShaperDrop::BackPressure) {
                cx.tick_at(due_ns);
            }
            return;
        }
        self.classifier.classify(cx, frame.packets());
        let first = self.first_that_pass(cx, frame.packets());
        if first == frame.len() {
            let cx = &*cx;
            return frame.route(|packet| Ok::<_, Never>(behind(cx, packet)));
        }
        let packets = frame.len();
        for (place, packet) in frame.drain().enumerate() {
            if place + AHEAD < packets {
                self.look_ahead(place + AHEAD);
            }
            if place < first {
                pass(cx, packet);
            } else {
                self.shape(cx, place, packet);
            }
        }
        // What waits leaves in a later pass, behind what passes in this one.
        cx.tick_at(cx.now_ns);
    }

    fn as_any(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }

    fn tick(&mut self, cx: &mut Context<'_>) -> Option<u64> {
        if cx.worker != OWNER {
            self.hand_over.retry(cx);
            return self.hand_over.hold(cx, ShaperDrop::BackPressure);
        }
        let (own, now_ns) = (self.own, cx.now_ns);
        self.scheduler.as_mut()?.serve(now_ns, BUDGET, &mut Out::new(cx, own))
    }
}

/// The declaration. Super-frames are cut in front of it: 64 KB at once would take 26 ms at
/// 20 Mbit/s.
pub(crate) fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::new(NAME, "Lets packets of an interface wait until their rates let them pass", {
        move |wiring| {
            Box::new(Shaper {
                classifier: Classifier::new(&shared),
                own: wiring.id,
                scheduler: None,
                hand_over: HandOver::new(wiring.worker, OWNER),
            })
        }
    })
    .reasons::<ShaperDrop>()
    .describe(|record, names| match names.node(record.next) {
        next if next == NAME => format!("{} bytes wait", record.packet_bytes),
        next => format!("{} bytes, to {next}", record.packet_bytes),
    })
}

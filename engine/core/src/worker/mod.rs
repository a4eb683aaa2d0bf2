//! A worker: one thread that asks its queues for packets and runs them to completion. It never
//! allocates, locks or waits while packets come; what the control thread wants of it arrives as
//! worker calls between two passes.

mod calls;
pub mod device;
pub mod event;
pub(crate) mod handoff;
pub mod poll;
pub mod ticks;

use std::cell::RefCell;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::block::{Driver, KernelSlot};
use crate::clock::Clock;
use crate::cpu::{Variant, clocks};
use crate::graph::builtin::{NULL, NullDrop};
use crate::graph::capture::{Capture, Point};
use crate::graph::context::{Context, WorkerContext};
use crate::graph::counters::{NODES_MAX, WorkerCounters};
use crate::graph::drop_reason::DropReason;
use crate::graph::frame::Frame;
use crate::graph::interface::InterfaceRows;
use crate::graph::node::{DROP, Node, Offloads};
use crate::graph::observer::Observer;
use crate::graph::outbox::{Outbox, Place};
use crate::graph::trace::Tracer;
use crate::graph::visits::Age;
use crate::ids::{InterfaceId, NodeId, WorkerId};
use crate::memory::buffer::BufferCache;
use crate::memory::epoch::Reader;
use crate::memory::packet::Packet;
use crate::memory::ring::{Consumer, Producer};
pub use crate::worker::calls::WorkerCall;
use crate::worker::device::{RxMode, RxQueue};
use crate::worker::event::Events;
use crate::worker::handoff::Handoff;
use crate::worker::poll::Poll;
use crate::worker::ticks::Ticks;

/// Receive queues that one worker can serve.
pub const RX_QUEUES_PER_WORKER_MAX: usize = 1024;
/// Empty passes after which an adaptive queue falls asleep.
pub const ADAPTIVE_IDLE_PASSES: u32 = 2000;
/// While some queues are polled, the descriptors of sleeping ones are looked at once in so many
/// passes.
const LOOK_AT_SLEEPERS_PASSES: u32 = 64;
/// Vectors run in one pass at most before the worker reports quiescent again; what a loop in the
/// graph makes more than that waits for the next pass.
const VECTORS_PER_PASS_MAX: usize = 4096;

/// A node as it stands in the graph of one worker.
pub(crate) struct Installed {
    pub(crate) work: Work,
    pub(crate) sink: Option<Point>,
    pub(crate) is_sink: bool,
    pub(crate) is_slow_path: bool,
    pub(crate) offloads: Offloads,
    pub(crate) detour: Option<NodeId>,
    pub(crate) observer: Option<Box<dyn Observer>>,
}

/// What runs a node's vectors.
pub(crate) enum Work {
    /// The node itself.
    Node(Box<dyn Node>),
    /// The block driver.
    Kernel(KernelSlot),
}

impl Work {
    fn node(&mut self) -> Option<&mut Box<dyn Node>> {
        match self {
            Work::Node(node) => Some(node),
            Work::Kernel(_) => None,
        }
    }
}

/// A receive queue and how it is served.
pub(crate) struct Input {
    pub(crate) queue: Box<dyn RxQueue>,
    pub(crate) node: NodeId,
    pub(crate) interface: InterfaceId,
    pub(crate) number: u16,
    pub(crate) mode: RxMode,
    pub(crate) empty_passes: u32,
    pub(crate) asleep: bool,
}

/// What others may know of a worker without asking it.
pub(crate) struct Shared {
    pub(crate) counters: WorkerCounters,
    pub(crate) asleep: AtomicBool,
    pub(crate) wake: crate::worker::poll::Bell,
}

/// One thread's share of the router.
pub struct Worker {
    pub(crate) id: WorkerId,
    pub(crate) reader: Reader,
    pub(crate) buffers: BufferCache,
    pub(crate) shared: Arc<Shared>,
    pub(crate) rows: Arc<InterfaceRows>,
    pub(crate) nodes: Vec<Option<Box<Installed>>>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outbox: Outbox,
    pub(crate) events: RefCell<Events>,
    pub(crate) worker_calls: Consumer<Box<dyn WorkerCall>>,
    pub(crate) worker_calls_done: Producer<Box<dyn WorkerCall>>,
    pub(crate) handoff: Handoff,
    pub(crate) tracer: Tracer,
    pub(crate) capture: Option<Box<Capture>>,
    pub(crate) clock: Clock,
    pub(crate) poll: Poll,
    /// When nodes have something to do without a packet.
    pub(crate) ticks: Ticks,
    /// When the last pass began; 0 after a sleep.
    pub(crate) began_ns: u64,
    /// The form in which loops over packets run.
    pub(crate) variant: Variant,
    pub(crate) driver: Driver,
    /// Do blocks go on from node to node?
    pub(crate) follows: bool,
    /// The node that does the work which packets leave to the transmitting device.
    pub(crate) finisher: Option<NodeId>,
}

macro_rules! context {
    ($worker:ident, $node:expr, $now:expr) => {
        Context {
            shared: WorkerContext {
                pass: $worker.reader.pass(),
                now_ns: $now,
                counters: &$worker.shared.counters,
                rows: &$worker.rows,
                events: &$worker.events,
            },
            worker: $worker.id,
            node: $node,
            tx: InterfaceId::NONE,
            buffers: &mut $worker.buffers,
            variant: $worker.variant,
            outbox: &mut $worker.outbox,
            handoff: &mut $worker.handoff,
            tracer: &mut $worker.tracer,
            ticks: &mut $worker.ticks,
        }
    };
}
pub(crate) use context;

impl Worker {
    /// Which worker this is.
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// Run until `stop`. The calling thread becomes the worker.
    pub fn run(mut self, stop: &AtomicBool) {
        self.reader.wake();
        while !stop.load(Ordering::Relaxed) {
            let packets = self.pass();
            if packets == 0 && self.inputs.iter().all(|i| i.asleep) && self.handoff.is_idle() {
                self.sleep();
            }
        }
        self.reader.sleep();
        self.buffers.flush();
    }

    /// One pass on the calling thread: worker calls, every queue that is awake, everything that
    /// follows. Returns how many packets came in.
    pub fn pass(&mut self) -> usize {
        self.reader.quiescent();
        self.run_worker_calls();
        let now_ns = self.clock.now_ns();
        let before_ns = if self.began_ns > 0 { self.began_ns } else { now_ns };
        self.shared.counters.note_pass(now_ns.saturating_sub(before_ns));
        self.began_ns = now_ns;
        self.wake_sleepers();
        if self.ticks.is_due(now_ns) {
            self.run_ticks(now_ns);
        }
        let mut packets = 0;
        // A hold that ticks renew is for this pass; one of a vector is for the next.
        let inputs = if self.handoff.take_hold() { 0 } else { self.inputs.len() };
        for index in 0..inputs {
            if !self.inputs[index].asleep {
                packets += self.receive(index, now_ns);
                self.run_graph(now_ns);
            }
        }
        if !self.handoff.take_hold_handed_over() {
            packets += self.receive_handoff(now_ns);
        }
        self.run_graph(now_ns); // also what worker calls have put in
        self.shared.counters.passes.add(1);
        self.shared.counters.last_pass_packets.set(packets as u64);
        self.buffers.report();
        packets
    }

    /// For worker objects that a test or a benchmark steps itself: say that it begins or ends.
    pub fn set_awake(&mut self, awake: bool) {
        if awake { self.reader.wake() } else { self.reader.sleep() }
    }

    /// Take packets from one queue and send them to their first node.
    fn receive(&mut self, index: usize, now_ns: u64) -> usize {
        let Some(mut frame) = self.outbox.frame() else { return 0 };
        let start = clocks();
        let input = &mut self.inputs[index];
        let (node, interface, sets_rx) = (input.node, input.interface, input.queue.sets_rx());
        self.shared.counters.enters(node);
        let next = {
            let mut cx = context!(self, node, now_ns);
            input.queue.receive(&mut cx, &mut frame)
        };
        let count = frame.len();
        self.account_input(index, count);
        if count == 0 {
            let row = self.shared.counters.node(node);
            let idle = clocks() - start;
            row.calls.add(1);
            row.clocks.add(idle);
            self.shared.counters.idle_clocks.add(idle);
            self.outbox.recycle(frame);
            return 0;
        }
        self.tracer.mark(self.id, node, &mut frame);
        if !sets_rx {
            frame.set_same_rx(true);
            let row = self.shared.counters.interface(interface);
            let mut bytes = 0;
            for packet in frame.packets_mut() {
                packet.rx = interface;
                bytes += packet.length() as u64;
            }
            let more = if frame.has_offload { more_on_wire(frame.packets()) } else { (0, 0) };
            row.rx_packets.add(count as u64 + more.0);
            row.rx_bytes.add(bytes + more.1);
        }
        if let Some(capture) = &mut self.capture {
            capture.see(Point::Rx, &mut frame, crate::clock::unix_ns());
        }
        let mut from = node;
        match (next, self.rows.get(interface, self.reader.pass())) {
            (Some(next), _) => frame.set_all_next(next),
            (None, Some(row)) if row.up => {
                frame.set_all_next(row.first(crate::graph::arc::DEVICE_INPUT, row.input));
            }
            _ => {
                self.refuse(&mut frame);
                from = NULL;
            }
        }
        if frame.traced {
            self.tracer.record(node, &frame, false);
        }
        self.outbox.forward(from, frame, &mut self.buffers, &self.shared.counters);
        let row = self.shared.counters.node(node);
        row.calls.add(1);
        row.vectors.add(count as u64);
        row.clocks.add(clocks() - start);
        count
    }

    /// Every packet dies: its interface is down or gone.
    #[cold]
    fn refuse(&mut self, frame: &mut Frame) {
        frame.route(|_| Err(NullDrop::InterfaceDown));
    }

    fn account_input(&mut self, index: usize, count: usize) {
        let input = &mut self.inputs[index];
        if count > 0 {
            input.empty_passes = 0;
            return;
        }
        input.empty_passes += 1;
        let patience = match input.mode {
            RxMode::Polling => return,
            RxMode::Interrupt => 1,
            RxMode::Adaptive => ADAPTIVE_IDLE_PASSES,
        };
        if input.empty_passes >= patience && input.queue.wake_fd().is_some() {
            input.empty_passes = 0;
            input.asleep = !input.queue.arm(true);
        }
    }

    /// Look whether a sleeping queue has something.
    fn wake_sleepers(&mut self) {
        let passes = self.shared.counters.passes.get() as u32;
        if passes.is_multiple_of(LOOK_AT_SLEEPERS_PASSES) && self.inputs.iter().any(|i| i.asleep) {
            self.wait(0);
        }
    }

    /// How long the worker may sleep.
    fn sleep_ns(&self) -> u64 {
        self.ticks.wait_ns(self.clock.now_ns()).min(SLEEP_NS_MAX)
    }

    /// Nothing to do: wait for a descriptor or the bell.
    fn sleep(&mut self) {
        self.shared.asleep.store(true, Ordering::SeqCst);
        if self.worker_calls.is_empty() && self.handoff.is_idle() {
            self.reader.sleep();
            self.shared.counters.sleeps.add(1);
            self.wait(self.sleep_ns());
            self.began_ns = 0;
            self.reader.wake();
        }
        self.shared.asleep.store(false, Ordering::SeqCst);
    }

    fn wait(&mut self, timeout_ns: u64) {
        let inputs = &mut self.inputs;
        let bell = &self.shared.wake;
        self.poll.wait(timeout_ns, |fd| {
            if fd == bell.fd() {
                return bell.clear();
            }
            for input in inputs.iter_mut().filter(|i| i.asleep && i.queue.wake_fd() == Some(fd)) {
                input.asleep = false;
                input.queue.arm(false);
            }
        });
    }

    /// Run vectors until none is left.
    #[inline]
    fn run_graph(&mut self, now_ns: u64) {
        let mut start = clocks();
        for _ in 0..VECTORS_PER_PASS_MAX {
            let Some((id, frame)) = self.outbox.pop() else { break };
            start = self.run_node(id, frame, now_ns, start);
        }
        self.outbox.begin(Age::NEW); // what comes in, and what worker calls put in
        self.handoff.show();
    }

    #[inline]
    fn run_node(&mut self, id: NodeId, mut frame: Box<Frame>, now_ns: u64, start: u64) -> u64 {
        let Some(Some(installed)) = self.nodes.get(id.index()) else {
            self.bury(id, frame);
            return clocks();
        };
        let (is_sink, is_kernel) = (installed.is_sink, matches!(installed.work, Work::Kernel(_)));
        let offloads = installed.offloads;
        self.shared.counters.enters(id);
        frame.age = frame.age.after_visit(frame.again);
        self.outbox.begin(frame.age);
        if frame.age.is_old() && !is_sink && self.bury_the_old(&mut frame) {
            self.outbox.recycle(frame);
            return clocks();
        }
        if frame.has_offload && !offloads.take_all(frame.packets()) {
            if let Some(finisher) = self.finisher {
                frame.set_all_next(id);
                return self.run_alone(finisher, frame, now_ns, start);
            }
            if self.bury_unfinished(&mut frame) {
                self.outbox.recycle(frame);
                return clocks();
            }
        }
        if is_kernel {
            self.run_blocks(id, frame, now_ns, start)
        } else {
            self.run_alone(id, frame, now_ns, start)
        }
    }

    /// Have the driver take a vector through the kernel of its node, and through those behind it.
    #[inline]
    fn run_blocks(&mut self, id: NodeId, mut frame: Box<Frame>, now_ns: u64, start: u64) -> u64 {
        let follows = self.follows && !frame.traced && !frame.has_offload;
        {
            let mut cx = context!(self, id, now_ns);
            self.driver.run(&mut self.nodes, &mut cx, id, &mut frame, follows);
        }
        if frame.traced {
            self.tracer.record(id, &frame, false);
        }
        let (buffers, counters) = (&mut self.buffers, &self.shared.counters);
        match self.driver.left_from() {
            _ if frame.is_empty() => self.outbox.recycle(frame),
            Ok(from) => self.outbox.forward(from, frame, buffers, counters),
            Err(from) => self.outbox.forward_each(from, frame, buffers, counters),
        }
        let end = clocks();
        self.driver.account(&mut self.nodes, &self.shared.counters, id, end - start);
        end
    }

    /// Have a node run a vector by itself.
    #[inline]
    fn run_alone(&mut self, id: NodeId, mut frame: Box<Frame>, now_ns: u64, start: u64) -> u64 {
        let count = frame.len() as u64;
        // The node is taken out of its place while it runs, so that the context can lend the rest.
        let Some(mut installed) = self.nodes.get_mut(id.index()).and_then(Option::take) else {
            self.bury(id, frame);
            return clocks();
        };
        if installed.is_sink {
            self.look_at_sink(id, &mut installed, &mut frame);
        }
        if let Some(observer) = &mut installed.observer {
            observer.see(&mut context!(self, id, now_ns), frame.packets_mut());
        }
        if let Some(node) = installed.work.node() {
            node.run(&mut context!(self, id, now_ns), &mut frame);
        }
        self.nodes[id.index()] = Some(installed);
        if frame.is_empty() {
            self.outbox.recycle(frame);
        } else {
            if frame.traced {
                self.tracer.record(id, &frame, false);
            }
            self.outbox.forward(id, frame, &mut self.buffers, &self.shared.counters);
        }
        let end = clocks();
        let row = self.shared.counters.node(id);
        row.calls.add(1);
        row.vectors.add(count);
        row.clocks.add(end - start);
        row.note_longest(end - start, count);
        end
    }

    #[inline]
    fn look_at_sink(&mut self, id: NodeId, installed: &mut Installed, frame: &mut Frame) {
        let sends_on = installed.work.node().and_then(|node| node.sends_on());
        if let Some(tx) = sends_on.filter(|_| frame.traced || self.capture.is_some()) {
            frame.packets_mut().iter_mut().for_each(|packet| packet.tx = tx);
        }
        if frame.traced {
            self.tracer.record(id, frame, true);
        }
        if let (Some(capture), Some(point)) = (&mut self.capture, installed.sink) {
            capture.see(point, frame, crate::clock::unix_ns());
        }
    }

    /// Those that have visited too many nodes die; true when nothing is left of the vector.
    #[cold]
    fn bury_the_old(&mut self, frame: &mut Frame) -> bool {
        let Worker { outbox, buffers, shared, .. } = self;
        frame.count_visits(|mut packet| {
            packet.hand_over(DropReason::of(NULL, NullDrop::TooManyVisits));
            outbox.put(DROP, packet, true, false, buffers, &shared.counters);
        });
        outbox.begin(frame.age);
        frame.is_empty()
    }

    /// Packets that leave work to the device die where nobody does it; true when nothing is left of
    /// the vector.
    #[cold]
    fn bury_unfinished(&mut self, frame: &mut Frame) -> bool {
        let Worker { outbox, buffers, shared, .. } = self;
        frame.take_offloads(|mut packet| {
            packet.hand_over(DropReason::of(NULL, NullDrop::Unfinished));
            outbox.put(DROP, packet, true, false, buffers, &shared.counters);
        });
        frame.is_empty()
    }

    /// The node has been removed while packets were under way to it.
    #[cold]
    fn bury(&mut self, id: NodeId, mut frame: Box<Frame>) {
        if id == DROP {
            frame.drain().for_each(|p| self.buffers.free(p)); // a worker without its drop node
            return self.outbox.recycle(frame);
        }
        frame.route(|_| Err(NullDrop::Removed));
        self.outbox.forward(NULL, frame, &mut self.buffers, &self.shared.counters);
    }

    fn receive_handoff(&mut self, now_ns: u64) -> usize {
        let mut total = 0;
        for from in 0..self.handoff.workers() {
            let start = clocks();
            let (outbox, buffers, counters) =
                (&mut self.outbox, &mut self.buffers, &self.shared.counters);
            let count = self.handoff.take_up_to(
                from,
                crate::graph::frame::FRAME_PACKETS_MAX,
                |(packet, next, age)| {
                    outbox.begin(age);
                    outbox.put(next, packet, true, true, buffers, counters);
                },
            );
            if count > 0 {
                let row = self.shared.counters.node(crate::graph::builtin::HANDOFF);
                row.calls.add(1);
                row.vectors.add(count as u64);
                row.clocks.add(clocks() - start);
                self.run_graph(now_ns);
                total += count;
            }
        }
        total
    }

    /// Swap a node in or out; what stood there comes back. A node in place of another one has its
    /// observer.
    pub(crate) fn swap_node(
        &mut self,
        id: NodeId,
        node: Option<Box<Installed>>,
    ) -> Option<Box<Installed>> {
        debug_assert!(id.index() < NODES_MAX);
        let place = node.as_ref().map_or(Place::Between, |node| match node.is_sink {
            true if id != DROP => Place::Device,
            _ if node.is_slow_path => Place::SlowPath,
            _ => Place::Between,
        });
        let detour = node.as_ref().and_then(|node| node.detour);
        match node.as_ref().map(|node| node.offloads) {
            Some(Offloads::Finishes) => self.finisher = Some(id),
            _ if self.finisher == Some(id) => self.finisher = None,
            _ => {}
        }
        self.outbox.set_place(id, place, detour);
        let mut before = std::mem::replace(&mut self.nodes[id.index()], node);
        if let (Some(new), Some(old)) = (&mut self.nodes[id.index()], &mut before) {
            std::mem::swap(&mut new.observer, &mut old.observer);
        }
        before
    }

    pub(crate) fn add_input(&mut self, input: Input) -> Result<(), Input> {
        if self.inputs.len() == self.inputs.capacity() {
            return Err(input);
        }
        if let Some(fd) = input.queue.wake_fd() {
            self.poll.add(fd);
        }
        self.inputs.push(input);
        Ok(())
    }

    pub(crate) fn remove_input(&mut self, interface: InterfaceId, number: u16) -> Option<Input> {
        let index =
            self.inputs.iter().position(|i| i.interface == interface && i.number == number)?;
        let input = self.inputs.remove(index);
        if let Some(fd) = input.queue.wake_fd() {
            self.poll.remove(fd);
        }
        Some(input)
    }
}

/// Packets and bytes that a wire would have carried beyond what these packets are.
#[cold]
pub(crate) fn more_on_wire<'p>(packets: impl IntoIterator<Item = &'p Packet>) -> (u64, u64) {
    packets.into_iter().fold((0, 0), |(packets, bytes), packet| {
        let (on_wire, bytes_on_wire) = packet.on_wire();
        (packets + on_wire - 1, bytes + bytes_on_wire - packet.length() as u64)
    })
}

/// The longest a worker sleeps; only a safety net, everything rings the bell.
const SLEEP_NS_MAX: u64 = 1_000_000_000;

/// A descriptor that a driver offers for waking.
pub type WakeFd = RawFd;

//! Fair queues of all nodes (RFC 8290): new and old flows, deficits, CoDel in each flow, and what
//! is dropped when too much waits.

use crate::codel::{Look, Verdict};
use crate::entries::Entries;
use crate::flows::{FlowKey, Flows, Hosts};
use crate::settings::{Settings, TINS_MAX};
use crate::{Death, Item, NONE, Sink};

/// RFC 8290 §4.1: packets of the longest flow that are dropped at once at most.
const DROPS_AT_ONCE_MAX: u32 = 64;
/// The least that a flow gets in a round however many flows its host has, in bytes.
const QUANTUM_MIN: i32 = 64;

/// The flows of one class of traffic: two lists, of which the last flow is known.
#[derive(Clone, Copy, Debug)]
struct Tin {
    new: u32,
    old: u32,
    deficit: i32,
}

/// What waits in a node: a line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Queue {
    /// Packets that wait.
    pub packets: u32,
    /// Bytes that they count.
    pub bytes: u32,
    /// Buffers that they occupy.
    pub buffers: u32,
    /// Flows that have a place.
    pub flows: u32,
    tins: [Tin; TINS_MAX],
}

const _: () = assert!(size_of::<Queue>() == 64);

impl Queue {
    /// One where nothing waits.
    pub const EMPTY: Queue = Queue {
        packets: 0,
        bytes: 0,
        buffers: 0,
        flows: 0,
        tins: [Tin { new: NONE, old: NONE, deficit: 0 }; TINS_MAX],
    };
}

/// Where a packet belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Its node.
    pub node: u32,
    /// The hash of its flow.
    pub flow: u32,
    /// The hash of its host.
    pub host: u32,
    /// Its class of traffic ([`Diffserv::tin`](crate::settings::Diffserv::tin)).
    pub tin: u8,
}

/// A packet that has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// What it counts.
    pub bytes: u32,
    /// How long it has waited.
    pub waited_ns: u64,
}

/// What became of packets while one was sought.
#[derive(Clone, Copy, Debug)]
pub struct Popped {
    /// The packet that is sent.
    pub sent: Option<Sent>,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked.
    pub marked: u64,
}

/// The packets and flows of all nodes.
#[derive(Debug)]
pub struct FairQueues<T> {
    entries: Entries<T>,
    flows: Flows,
    hosts: Hosts,
    /// Buffers that all packets occupy.
    pub buffers: usize,
}

impl<T: Item> FairQueues<T> {
    /// Room for as many packets.
    pub fn new(packets: usize) -> FairQueues<T> {
        FairQueues {
            entries: Entries::new(packets),
            flows: Flows::new(2 * packets),
            hosts: Hosts::new(2 * packets),
            buffers: 0,
        }
    }

    /// RFC 8290 §4.1: put a packet behind the others of its flow. A flow without a place becomes
    /// a new one, with a quantum.
    ///
    /// # Errors
    /// There is no place for it; the packet comes back.
    pub fn enqueue(
        &mut self,
        queue: &mut Queue,
        of: &Settings,
        arrival: &Arrival,
        item: T,
        now_ns: u64,
    ) -> Result<(), T> {
        let tin = usize::from(arrival.tin).min(of.diffserv.shares().len() - 1);
        let key = FlowKey::new(arrival.node, tin as u8, arrival.flow);
        let known = self.flows.find(key);
        let Some(flow) = known.or_else(|| self.flows.make(key)) else { return Err(item) };
        let (bytes, buffers) = (of.counted(item.bytes()), item.buffers());
        match self.entries.push(self.flows.get(flow).last, item, now_ns, bytes) {
            Ok(last) => self.flows.at(flow).last = last,
            Err(item) => {
                if known.is_none() {
                    self.flows.end(flow);
                }
                return Err(item);
            }
        }
        if known.is_none() {
            queue.flows += 1;
            if of.isolates_hosts {
                self.flows.at(flow).host = self.hosts.begin(arrival.node, arrival.host);
            }
            self.flows.at(flow).deficit = self.quantum(flow, of);
            self.flows.append(&mut queue.tins[tin].new, flow);
        }
        let at = self.flows.at(flow);
        (at.packets, at.bytes) = (at.packets + 1, at.bytes + bytes);
        (queue.packets, queue.bytes) = (queue.packets + 1, queue.bytes + bytes);
        queue.buffers += buffers;
        self.buffers += buffers as usize;
        Ok(())
    }

    fn quantum(&self, flow: u32, of: &Settings) -> i32 {
        let flows = self.hosts.flows(self.flows.get(flow).host);
        (of.quantum_bytes / flows as i32).max(QUANTUM_MIN)
    }

    /// Ask for the last flow of a node without classes of traffic, which leads to its first one.
    #[inline(always)]
    pub fn prefetch(&self, queue: &Queue) {
        let Tin { new, old, .. } = queue.tins[0];
        self.flows.prefetch(if new != NONE { new } else { old });
    }

    /// Send the next packet of a node. When nothing is left behind it, no flow has a place any
    /// more.
    pub fn pop(
        &mut self,
        queue: &mut Queue,
        of: &Settings,
        now_ns: u64,
        sink: &mut impl Sink<T>,
    ) -> Popped {
        let mut popped = Popped { sent: None, dropped: 0, marked: 0 };
        while popped.sent.is_none() && queue.packets > 0 {
            let tin = pick_tin(queue, of);
            self.pop_tin(queue, tin, of, now_ns, sink, &mut popped);
        }
        if queue.packets == 0 {
            self.end_flows(queue);
        }
        popped
    }

    /// RFC 8290 §4.2: send the next packet of a class of traffic.
    fn pop_tin(
        &mut self,
        queue: &mut Queue,
        tin: usize,
        of: &Settings,
        now_ns: u64,
        sink: &mut impl Sink<T>,
        popped: &mut Popped,
    ) {
        loop {
            let Tin { new, old, .. } = queue.tins[tin];
            let is_new = new != NONE;
            let Some(flow) = self.flows.first(if is_new { new } else { old }) else { return };
            if self.flows.get(flow).deficit <= 0 {
                self.flows.at(flow).deficit += self.quantum(flow, of);
                self.move_to_old(queue, tin, is_new, flow);
                continue;
            }
            popped.sent = self.pop_flow(queue, flow, of, now_ns, sink, popped);
            if let Some(Sent { bytes, .. }) = popped.sent {
                self.flows.at(flow).deficit -= bytes as i32;
                queue.tins[tin].deficit -= bytes as i32;
                return;
            }
            if is_new {
                self.move_to_old(queue, tin, true, flow);
            } else {
                self.flows.take_first(&mut queue.tins[tin].old);
                self.end_flow(queue, flow);
            }
        }
    }

    fn move_to_old(&mut self, queue: &mut Queue, tin: usize, is_new: bool, flow: u32) {
        let tin = &mut queue.tins[tin];
        self.flows.take_first(if is_new { &mut tin.new } else { &mut tin.old });
        self.flows.append(&mut tin.old, flow);
    }

    /// RFC 8289 §5.5: send the next packet of a flow.
    fn pop_flow(
        &mut self,
        queue: &mut Queue,
        flow: u32,
        of: &Settings,
        now_ns: u64,
        sink: &mut impl Sink<T>,
        popped: &mut Popped,
    ) -> Option<Sent> {
        let mut look = Look::default();
        loop {
            let Some((mut item, bytes, since_ns)) = self.take(queue, flow) else {
                self.flows.at(flow).codel.run_empty();
                return None;
            };
            let waited_ns = now_ns.saturating_sub(since_ns);
            let at = self.flows.at(flow);
            let left = at.bytes;
            if at.codel.look(&mut look, (now_ns, waited_ns), left, of) == Verdict::Send {
                sink.send(item);
                return Some(Sent { bytes, waited_ns });
            }
            if of.ecn && item.mark() {
                self.flows.at(flow).codel.mark_sent(look, of);
                popped.marked += 1;
                sink.send(item);
                return Some(Sent { bytes, waited_ns });
            }
            popped.dropped += 1;
            sink.drop(item, Death::Codel);
        }
    }

    /// Take the first packet of a flow out.
    fn take(&mut self, queue: &mut Queue, flow: u32) -> Option<(T, u32, u64)> {
        let at = self.flows.at(flow);
        let (item, link, last) = self.entries.pop(at.last)?;
        at.last = last;
        (at.packets, at.bytes) = (at.packets - 1, at.bytes - link.bytes);
        (queue.packets, queue.bytes) = (queue.packets - 1, queue.bytes - link.bytes);
        let buffers = item.buffers();
        queue.buffers -= buffers;
        self.buffers -= buffers as usize;
        Some((item, link.bytes, link.since_ns))
    }

    /// RFC 8290 §4.1: drop half of the packets of the flow with the most bytes, 64 at most, from
    /// its head; how many.
    pub fn drop_longest(&mut self, queue: &mut Queue, sink: &mut impl Sink<T>) -> u64 {
        let (mut longest, mut most) = (NONE, 0);
        for tin in &queue.tins {
            for last in [tin.new, tin.old] {
                self.flows.each(last, |flow, at| {
                    if at.bytes > most {
                        (longest, most) = (flow, at.bytes);
                    }
                });
            }
        }
        if longest == NONE {
            return 0;
        }
        let count = self.flows.get(longest).packets.div_ceil(2).min(DROPS_AT_ONCE_MAX);
        let mut dropped = 0;
        while dropped < u64::from(count) {
            let Some((item, ..)) = self.take(queue, longest) else { break };
            sink.drop(item, Death::Overlimit);
            dropped += 1;
        }
        if queue.packets == 0 {
            self.end_flows(queue);
        }
        dropped
    }

    /// Nothing waits: the flows have had their round.
    fn end_flows(&mut self, queue: &mut Queue) {
        for tin in 0..TINS_MAX {
            for is_new in [true, false] {
                loop {
                    let tin = &mut queue.tins[tin];
                    let last = if is_new { &mut tin.new } else { &mut tin.old };
                    let Some(flow) = self.flows.first(*last) else { break };
                    self.flows.take_first(last);
                    self.end_flow(queue, flow);
                }
            }
            queue.tins[tin].deficit = 0;
        }
    }

    fn end_flow(&mut self, queue: &mut Queue, flow: u32) {
        queue.flows -= 1;
        let host = self.flows.get(flow).host;
        self.hosts.end(host);
        self.flows.end(flow);
    }
}

/// The first class of traffic with flows that has not had its share of this round; when all have,
/// a new round begins.
fn pick_tin(queue: &mut Queue, of: &Settings) -> usize {
    let has_flows = |tin: &Tin| tin.new != NONE || tin.old != NONE;
    for _ in 0..2 {
        let due = queue.tins.iter().position(|tin| has_flows(tin) && tin.deficit > 0);
        if let Some(tin) = due {
            return tin;
        }
        let shares = of.diffserv.shares();
        for (place, tin) in queue.tins.iter_mut().enumerate() {
            // What a change of the classes has left behind goes with the last of them.
            let share = shares.get(place).or(shares.last()).copied().unwrap_or(1);
            tin.deficit = tin.deficit.saturating_add(share).clamp(1, share);
        }
    }
    0
}

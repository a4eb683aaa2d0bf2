//! Flows that have packets waiting, found by node, class of traffic and hash. A flow has a place
//! only while it is in a list of its node.

use quiver_core::cpu::prefetch;

use crate::NONE;
use crate::codel::Codel;

/// RFC 8290 §5.2.5: queues of one class of traffic of one node.
pub const FLOWS_PER_TIN: u32 = 1024;

/// Which flow: its node, the class of traffic, and the queue of that class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowKey {
    pub node: u32,
    /// `tin × 1024 + queue`.
    pub queue: u32,
}

impl FlowKey {
    pub fn new(node: u32, tin: u8, hash: u32) -> FlowKey {
        FlowKey { node, queue: u32::from(tin) * FLOWS_PER_TIN + hash % FLOWS_PER_TIN }
    }

    fn bucket(self, buckets: usize) -> usize {
        let mixed = (u64::from(self.node) << 32 | u64::from(self.queue))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (buckets - 1)
    }
}

/// A flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    pub key: FlowKey,
    /// The last of its packets ([`Entries`](crate::entries::Entries)).
    pub last: u32,
    pub packets: u32,
    pub bytes: u32,
    pub deficit: i32,
    /// The next in the list of its node that it is in.
    pub next: u32,
    /// The next with the same place in the table, or the next free one.
    chain: u32,
    /// Its host, when hosts share ([`Hosts`]).
    pub host: u32,
    pub codel: Codel,
}

/// All flows of a scheduler.
#[derive(Debug)]
pub(crate) struct Flows {
    flows: Box<[Flow]>,
    buckets: Box<[u32]>,
    free: u32,
}

impl Flows {
    pub fn new(count: usize) -> Flows {
        let chain = |place: usize| if place + 1 < count { place as u32 + 1 } else { NONE };
        Flows {
            flows: (0..count).map(|at| Flow { chain: chain(at), ..Flow::default() }).collect(),
            buckets: vec![NONE; count.next_power_of_two().max(2)].into(),
            free: if count > 0 { 0 } else { NONE },
        }
    }

    pub fn at(&mut self, flow: u32) -> &mut Flow {
        &mut self.flows[flow as usize]
    }

    pub fn get(&self, flow: u32) -> &Flow {
        &self.flows[flow as usize]
    }

    /// Ask for a flow.
    #[inline(always)]
    pub fn prefetch(&self, flow: u32) {
        if let Some(flow) = self.flows.get(flow as usize) {
            prefetch(&raw const *flow);
        }
    }

    pub fn find(&self, key: FlowKey) -> Option<u32> {
        let mut at = self.buckets[key.bucket(self.buckets.len())];
        while at != NONE && self.get(at).key != key {
            at = self.get(at).chain;
        }
        (at != NONE).then_some(at)
    }

    /// A new flow without packets, in no list.
    pub fn make(&mut self, key: FlowKey) -> Option<u32> {
        let flow = self.free;
        if flow == NONE {
            return None;
        }
        self.free = self.get(flow).chain;
        let bucket = key.bucket(self.buckets.len());
        let chain = std::mem::replace(&mut self.buckets[bucket], flow);
        *self.at(flow) = Flow { key, chain, last: NONE, next: NONE, host: NONE, ..Flow::default() };
        Some(flow)
    }

    /// A flow ends that is in no list.
    pub fn end(&mut self, flow: u32) {
        let Flow { key, chain, .. } = *self.get(flow);
        let bucket = key.bucket(self.buckets.len());
        let mut at = self.buckets[bucket];
        if at == flow {
            self.buckets[bucket] = chain;
        } else {
            while self.get(at).chain != flow {
                at = self.get(at).chain;
            }
            self.at(at).chain = chain;
        }
        self.at(flow).chain = std::mem::replace(&mut self.free, flow);
    }

    /// Append a flow to a list, which is a ring of which `last` is known.
    pub fn append(&mut self, last: &mut u32, flow: u32) {
        let next = match *last {
            NONE => flow,
            last => std::mem::replace(&mut self.at(last).next, flow),
        };
        self.at(flow).next = next;
        *last = flow;
    }

    /// The first of a list.
    pub fn first(&self, last: u32) -> Option<u32> {
        (last != NONE).then(|| self.get(last).next)
    }

    /// Take the first of a list out.
    pub fn take_first(&mut self, last: &mut u32) {
        if let Some(first) = self.first(*last) {
            if first == *last {
                *last = NONE;
            } else {
                self.at(*last).next = self.get(first).next;
            }
        }
    }

    /// All of a list.
    pub fn each(&self, last: u32, mut each: impl FnMut(u32, &Flow)) {
        let Some(first) = self.first(last) else { return };
        let mut at = first;
        loop {
            let flow = self.get(at);
            each(at, flow);
            if at == last {
                return;
            }
            at = flow.next;
        }
    }
}

/// A host with flows.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    key: FlowKey,
    flows: u32,
    chain: u32,
}

/// Hosts that have flows, so that they share before their flows do.
#[derive(Debug)]
pub(crate) struct Hosts {
    hosts: Box<[Host]>,
    buckets: Box<[u32]>,
    free: u32,
}

impl Hosts {
    pub fn new(count: usize) -> Hosts {
        let chain = |place: usize| if place + 1 < count { place as u32 + 1 } else { NONE };
        Hosts {
            hosts: (0..count).map(|at| Host { chain: chain(at), ..Host::default() }).collect(),
            buckets: vec![NONE; count.next_power_of_two().max(2)].into(),
            free: if count > 0 { 0 } else { NONE },
        }
    }

    /// A flow of a host begins; the host.
    pub fn begin(&mut self, node: u32, hash: u32) -> u32 {
        let key = FlowKey { node, queue: hash };
        let bucket = key.bucket(self.buckets.len());
        let mut at = self.buckets[bucket];
        while at != NONE && self.hosts[at as usize].key != key {
            at = self.hosts[at as usize].chain;
        }
        if at == NONE {
            at = self.free;
            if at == NONE {
                return NONE;
            }
            let chain = std::mem::replace(&mut self.buckets[bucket], at);
            self.free = self.hosts[at as usize].chain;
            self.hosts[at as usize] = Host { key, flows: 0, chain };
        }
        self.hosts[at as usize].flows += 1;
        at
    }

    /// A flow of a host ends.
    pub fn end(&mut self, host: u32) {
        if host == NONE {
            return;
        }
        let Host { key, flows, chain } = self.hosts[host as usize];
        self.hosts[host as usize].flows = flows - 1;
        if flows > 1 {
            return;
        }
        let bucket = key.bucket(self.buckets.len());
        let mut at = self.buckets[bucket];
        if at == host {
            self.buckets[bucket] = chain;
        } else {
            while self.hosts[at as usize].chain != host {
                at = self.hosts[at as usize].chain;
            }
            self.hosts[at as usize].chain = chain;
        }
        self.hosts[host as usize].chain = std::mem::replace(&mut self.free, host);
    }

    /// Flows of a host.
    pub fn flows(&self, host: u32) -> u32 {
        if host == NONE { 1 } else { self.hosts[host as usize].flows.max(1) }
    }
}

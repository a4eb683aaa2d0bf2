//! The agent on the control thread: it takes the samples of workers, polls counters, and sends
//! datagrams to all collectors.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use quiver_core::{Engine, InterfaceId};
use quiver_export::datagrams::{DatagramCounts, Datagrams};
use quiver_export::records::Records;
use quiver_export::route::{Routed, if_index};
use quiver_forwarding::ip::{Ip4, Ip6, packet_in_frame};
use quiver_wire::{Header, Ip4Header, Ip6Header};

use crate::counters;
use crate::datagram::{Datagram, Flow, Head, HeaderKind, Router};
use crate::notifications::Notifications;
use crate::sample::Sample;
use crate::sources::{Direction, Shared};

/// Samples that a worker may be ahead of the control thread.
const RING_SAMPLES: usize = 2_048;
/// Samples of a worker that a turn takes.
const SAMPLES_PER_TURN: usize = 256;
/// A datagram that is not full waits for so long, nanoseconds (sFlow version 5 §4.2.1: at most a
/// second).
const FLUSH_NS: u64 = 200_000_000;
/// Nanoseconds of a second and of a millisecond.
const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;
/// Bytes of a sample beside the packet's own, at most.
const FLOW_BYTES_MAX: usize = 120;
/// Bytes of a sample of counters, at most.
const COUNTERS_BYTES_MAX: usize = 176;
/// Samples of counters of a turn at most.
const POLLED_PER_TURN: usize = 64;

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// One of so many packets is sampled.
    pub rate: u32,
    /// Counters are sent after so many seconds; 0 for never.
    pub polling_s: u32,
    /// Bytes of a packet.
    pub header_bytes: u32,
    /// The agent's address, when it is not the source of the first collector.
    pub agent: Option<IpAddr>,
    /// Which of the agent's exporters it is.
    pub sub_agent: u32,
    /// Are collectors notified of packets that are dropped?
    pub monitors_drops: bool,
    /// Notifications a second at most.
    pub drops_per_s: u32,
}

impl Settings {
    /// As VPP has them.
    pub const DEFAULT: Settings = Settings {
        rate: 10_000,
        polling_s: 20,
        header_bytes: 128,
        agent: None,
        sub_agent: 0,
        monitors_drops: false,
        drops_per_s: 1_000,
    };
}

/// A collector.
pub(crate) struct Collector {
    pub source: IpAddr,
    pub datagrams: Datagrams,
    pub counts: DatagramCounts,
}

/// An interface whose packets are sampled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sampled {
    /// By [`Direction`].
    pub directions: [bool; 2],
    /// Samples of packets, and of counters.
    flows: u32,
    polls: u32,
}

/// What was exported.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub flow_samples: u64,
    pub counter_samples: u64,
    /// Datagrams made, each of which goes to all collectors.
    pub datagrams: u64,
}

/// The agent, kept in the engine.
pub struct Agent {
    pub(crate) shared: Arc<Shared>,
    pub(crate) records: Records<Sample>,
    pub(crate) settings: Settings,
    pub(crate) collectors: BTreeMap<SocketAddr, Collector>,
    pub(crate) interfaces: BTreeMap<InterfaceId, Sampled>,
    pub(crate) counts: Counts,
    pub(crate) notifications: Notifications,
    pub(crate) datagram: Datagram,
    sequence: u32,
    since_ns: Option<u64>,
    /// When counters are sent next, and the next interface, while there are more.
    poll_ns: u64,
    polled: Option<InterfaceId>,
}

impl Agent {
    pub(crate) fn new(shared: Arc<Shared>, workers: usize) -> Agent {
        let settings = Settings::DEFAULT;
        let notifications = Notifications::new(workers);
        notifications.discards.limit.set(settings.drops_per_s);
        shared.set_rate(settings.rate);
        shared.set_header_bytes(settings.header_bytes);
        Agent {
            shared,
            records: Records::default(),
            settings,
            collectors: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            counts: Counts::default(),
            notifications,
            datagram: Datagram::default(),
            sequence: 0,
            since_ns: None,
            poll_ns: 0,
            polled: None,
        }
    }

    /// The address by which collectors know the agent.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        let source = self.collectors.values().next().map(|collector| collector.source);
        self.settings.agent.or(source)
    }

    /// Make the rings of workers, once.
    pub(crate) fn open(&mut self) {
        let Agent { shared, records, .. } = self;
        shared.open(|| records.open(RING_SAMPLES));
    }

    /// Counters are sent from now on, each interface once in an interval.
    pub(crate) fn poll_from(&mut self, now_ns: u64) {
        (self.poll_ns, self.polled) = (now_ns, None);
    }

    /// Send what waits.
    pub(crate) fn flush(&mut self, now_ns: u64) {
        self.since_ns = None;
        if self.datagram.is_empty() {
            return;
        }
        let Some(agent) = self.address() else {
            self.datagram.clear();
            return;
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.counts.datagrams += 1;
        let head = Head {
            agent,
            sub_agent: self.settings.sub_agent,
            sequence: self.sequence,
            uptime_ms: (now_ns / MILLISECOND_NS) as u32,
        };
        let bytes = self.datagram.finish(&head);
        for Collector { datagrams, counts, .. } in self.collectors.values_mut() {
            datagrams.send(now_ns, bytes, counts);
        }
    }

    /// Let a sample of so many bytes at most fit.
    pub(crate) fn make_room(&mut self, now_ns: u64, bytes: usize) {
        if self.datagram.is_full_with(bytes) {
            self.flush(now_ns);
        }
        self.since_ns.get_or_insert(now_ns);
    }

    /// Export a sample, unless its interface is not sampled any more.
    fn add(&mut self, engine: &Engine, now_ns: u64, sample: &Sample) {
        let Some(own) = self.interfaces.get_mut(&sample.interface) else { return };
        own.flows = own.flows.wrapping_add(1);
        let sequence = own.flows;
        let counts =
            Direction::ALL.map(|direction| self.shared.counts(sample.interface, direction));
        let [(pool_rx, drops_rx), (pool_tx, drops_tx)] = counts;
        let routed = ends(sample).and_then(|(source, destination)| {
            Routed::of(engine, sample.came_in, source, destination)
        });
        let leads_to = routed.and_then(|routed| routed.interface).map_or(0, if_index);
        let (input, output) = match sample.direction {
            Direction::Rx => (if_index(sample.interface), leads_to),
            Direction::Tx => (if_index(sample.came_in), if_index(sample.interface)),
        };
        self.make_room(now_ns, FLOW_BYTES_MAX + sample.first.bytes().len());
        self.counts.flow_samples += 1;
        self.datagram.flow(&Flow {
            sequence,
            source: if_index(sample.interface),
            rate: sample.rate,
            pool: pool_rx.wrapping_add(pool_tx) as u32,
            drops: drops_rx.wrapping_add(drops_tx) as u32,
            input,
            output,
            kind: sample.first.kind(),
            frame_bytes: sample.first.frame_bytes,
            header: sample.first.bytes(),
            router: routed.map(|routed| Router {
                next_hop: routed.next_hop,
                lengths: (routed.source_length, routed.destination_length),
            }),
        });
    }

    /// Send counters of the next interfaces. True when more are due.
    fn poll(&mut self, engine: &Engine, now_ns: u64) -> bool {
        if self.settings.polling_s == 0 || now_ns < self.poll_ns || self.collectors.is_empty() {
            return false;
        }
        let from = self.polled.take().unwrap_or(InterfaceId(0));
        let ids: Vec<_> =
            self.interfaces.range(from..).map(|(id, _)| *id).take(POLLED_PER_TURN + 1).collect();
        for id in ids.iter().take(POLLED_PER_TURN) {
            let Some(own) = self.interfaces.get_mut(id) else { continue };
            own.polls = own.polls.wrapping_add(1);
            let Some(counters) = counters::of(engine, *id, own.polls) else { continue };
            self.make_room(now_ns, COUNTERS_BYTES_MAX);
            self.counts.counter_samples += 1;
            self.datagram.counters(&counters);
        }
        self.polled = ids.get(POLLED_PER_TURN).copied();
        if self.polled.is_none() {
            self.poll_ns = now_ns + u64::from(self.settings.polling_s) * SECOND_NS;
        }
        self.polled.is_some()
    }
}

/// Source and destination of an IP packet.
fn ends(sample: &Sample) -> Option<(IpAddr, IpAddr)> {
    let header = sample.first.bytes();
    let (ip4, ip6) = match sample.first.kind() {
        HeaderKind::Ethernet => (packet_in_frame::<Ip4>(header), packet_in_frame::<Ip6>(header)),
        HeaderKind::Ip4 => (Some(0), None),
        HeaderKind::Ip6 => (None, Some(0)),
    };
    if let Some(at) = ip4 {
        let header = Ip4Header::overlay(header.get(at..)?)?;
        return Some((header.source().into(), header.destination().into()));
    }
    let header = Ip6Header::overlay(header.get(ip6?..)?)?;
    Some((header.source().into(), header.destination().into()))
}

/// On each turn of the control loop.
pub(crate) fn turn(engine: &mut Engine) {
    let Some(agent) = engine.get_mut::<Agent>() else { return };
    let is_idle = agent.records.is_idle() && agent.notifications.records.is_idle();
    if agent.interfaces.is_empty() && is_idle && agent.datagram.is_empty() {
        return;
    }
    let now_ns = engine.now_ns();
    let more = engine.with(|engine, agent: &mut Agent| {
        // The records are taken out while samples are added to the datagram.
        let mut records = std::mem::take(&mut agent.records);
        let mut more = records.take(SAMPLES_PER_TURN, |sample| agent.add(engine, now_ns, &sample));
        agent.records = records;
        let mut records = std::mem::take(&mut agent.notifications.records);
        more |= records.take(SAMPLES_PER_TURN, |discard| agent.notify(engine, now_ns, &discard));
        agent.notifications.records = records;
        more |= agent.poll(engine, now_ns);
        if agent.since_ns.is_some_and(|since| now_ns.saturating_sub(since) >= FLUSH_NS) {
            agent.flush(now_ns);
        }
        more
    });
    if more {
        engine.after(0, |_| {}); // the next turn comes at once
    }
}

//! `tg-stateful`: the node where the frames of both sides arrive, and from which theirs leave. It
//! belongs to one worker, and so does all that it knows: nothing is shared, nothing waits.

use std::any::Any;
use std::sync::Arc;

use quiver_core::clock::Clock;
use quiver_core::graph::counters::Count;
use quiver_core::worker::device::RxQueue;
use quiver_core::{Context, Frame, InterfaceId, Node, NodeId, Packet};
use quiver_wire::MacAddress;

use super::flow::Flow;
use super::io::Line;
use super::next_hop::NextHop;
use super::plan::Plan;
use super::readiness::Readiness;
use super::schedule::Schedule;
use super::side::{Side, Times};
use quiver_tg_measuring::neighbours::{ANSWER_BYTES_MAX, Neighbours};

/// Packets of transactions begun in one pass at most.
const PACKETS_PER_PASS: u64 = 128;
/// Entries whose time has come that are looked after in one pass at most, on each side.
const EXPIRED_PER_PASS: usize = 256;
/// After a delay, what was missed is begun at this part of the rate above the rate.
const CATCH_UP: f64 = 1.125;
/// As fast as possible, so many transactions may be under way at first, and after a full ring.
const UNDER_WAY_FIRST: f64 = 64.0;
const UNDER_WAY_MIN: f64 = 8.0;
/// While nothing is lost there may be so many more each time that all that are under way have
/// arrived.
const UNDER_WAY_GROWTH: f64 = 1.0;
/// From this part of where something was lost last, growth is so much slower: a loss shows late,
/// and costs more than a little less under way.
const NEAR_LOSS: f64 = 0.75;
const GROWTH_NEAR_LOSS: f64 = 1.0 / 256.0;
/// And at most so many.
const UNDER_WAY_MOST: f64 = 1_048_576.0;
/// Between two times that there may only be half as many, nanoseconds: what is on its way is lost
/// together.
const HALF_AGAIN_NS: u64 = 5_000_000;
/// As fast as possible, so many sessions that are in use are passed over in one pass.
const SESSIONS_PASSED_MAX: u32 = 64;
/// Bytes of the longest packet in several buffers that is looked at.
const PACKET_BYTES_MAX: usize = 1 << 16;

/// Counts that the control thread reads while transactions run.
#[derive(Default)]
pub struct Live {
    /// Next hops that have not answered.
    pub unknown_hops: Count,
    /// Hosts whose ping through the forwarder has not come back.
    pub unready_hosts: Count,
    /// Passes in which the two counts above were updated.
    pub polls: Count,
    /// Transactions begun.
    pub begun: Count,
    /// When the first and the last of them were, nanoseconds of the engine's clock.
    pub first_ns: Count,
    /// See `first_ns`.
    pub last_ns: Count,
}

/// Results that the node returns at the end.
pub struct FinalState {
    /// The clients' times.
    pub times: Option<Times>,
    /// Bytes of the tables.
    pub table_bytes: usize,
    /// Entries that the tables take.
    pub table_entries: usize,
    /// One target that never answered.
    pub unknown_hop: Option<std::net::IpAddr>,
    /// Hosts whose ping did not come back, and one of them with its server.
    pub unready: usize,
    /// See `unready`.
    pub unready_pair: Option<(std::net::IpAddr, std::net::IpAddr)>,
}

/// One side bound to its port.
pub struct SideRunner<F> {
    /// The side.
    pub side: Side<F>,
    /// The port.
    pub interface: InterfaceId,
    /// The node that sends on it.
    pub output: NodeId,
    /// Answers for its hosts.
    pub neighbours: Neighbours,
    /// The next hops, unless replies go to the source of a packet.
    pub hop: Option<NextHop>,
    /// Whether its hosts' packets come back.
    pub readiness: Option<Readiness>,
}

/// The transactions of a profile; hides their transport from the node.
pub trait AnyWorkload: Send {
    /// Frames of one port have come.
    fn arrive(&mut self, cx: &mut Context<'_>, now_ns: u64, packets: &[Packet]);
    /// Do what is due by now.
    fn turn(&mut self, cx: &mut Context<'_>, now_ns: u64);
    /// Begin transactions from now on, or no more of them.
    fn set_schedule(&mut self, schedule: Option<Schedule>);
    /// Another schedule, made of the one that is followed and of the transactions begun; what it is
    /// now.
    fn change(&mut self, change: &dyn Fn(&Schedule, u64) -> Schedule) -> Option<Schedule>;
    /// The results at the end.
    fn final_state(&mut self) -> FinalState;
}

/// Transactions of one transport: clients, servers, or both.
pub struct Workload<F> {
    /// The clients, if they are played.
    pub clients: Option<(SideRunner<F>, Plan)>,
    /// The servers, if they are played.
    pub servers: Option<SideRunner<F>>,
    /// Shared with the control thread.
    pub live: Arc<Live>,
    schedule: Option<Schedule>,
    begun: u64,
    /// Transactions that the rate allows to begin now, and when that was.
    credit: f64,
    turned_ns: u64,
    /// As fast as possible: transactions that may be under way, what had been lost when that was
    /// looked at last, and when there may be fewer again.
    under_way_max: f64,
    /// Its value at the last loss.
    under_way_lossy: f64,
    lost: u64,
    /// Transactions that had arrived then.
    arrived: u64,
    half_again_ns: u64,
    scratch: Vec<u8>,
}

/// Frames go into the graph.
struct Wire<'a, 'p> {
    cx: &'a mut Context<'p>,
    output: NodeId,
}

impl Line for Wire<'_, '_> {
    #[inline]
    fn frame(&mut self, bytes: usize, write: impl FnOnce(&mut [u8])) -> bool {
        let Some(mut packet) = self.cx.buffers.packet() else { return false };
        let data_bytes = self.cx.buffers.pool().data_bytes();
        if !packet.set_length(bytes, data_bytes) {
            self.cx.buffers.free(packet);
            return false;
        }
        write(packet.bytes_mut());
        self.cx.emit(packet, self.output);
        true
    }
}

impl<F: Flow> SideRunner<F> {
    fn arrive(
        &mut self,
        cx: &mut Context<'_>,
        now_ns: u64,
        packets: &[Packet],
        scratch: &mut Vec<u8>,
    ) {
        for packet in packets {
            if !packet.is_chained() {
                self.take(cx, now_ns, packet.bytes());
            } else if packet.length() <= scratch.capacity() {
                scratch.clear();
                packet.copy_to(scratch);
                self.take(cx, now_ns, scratch);
            }
        }
        self.side.flush(now_ns, &mut Wire { cx, output: self.output });
    }

    #[inline]
    fn take(&mut self, cx: &mut Context<'_>, now_ns: u64, bytes: &[u8]) {
        let mut wire = Wire { cx, output: self.output };
        if !self.side.receive(now_ns, bytes, &mut wire)
            && !self.take_neighbor_frame(&mut wire, bytes)
        {
            self.side.counters().packets.foreign.add(1);
        }
    }

    /// Handle ARP, neighbour discovery and pings; false when the frame is none of these.
    #[cold]
    fn take_neighbor_frame(&mut self, wire: &mut Wire<'_, '_>, bytes: &[u8]) -> bool {
        let mut answer = [0; ANSWER_BYTES_MAX];
        let answered = self.neighbours.answer(bytes, &mut answer);
        if let Some(length) = answered {
            wire.frame(length, |out| out.copy_from_slice(&answer[..length]));
        }
        let learned = self.hop.as_mut().is_some_and(|hop| hop.learn(bytes));
        if let Some(hop) = self.hop.as_ref().filter(|_| learned) {
            self.side.gateway = hop.gateway();
        }
        answered.is_some()
            || learned
            || self.readiness.as_mut().is_some_and(|readiness| readiness.hear(bytes))
    }

    /// MAC address of the next hop for this address.
    fn to(&self, far: u128) -> MacAddress {
        let to = self.hop.as_ref().and_then(|hop| hop.of(far));
        to.or(self.side.gateway).unwrap_or(MacAddress::BROADCAST)
    }

    /// Ping through the forwarder for all hosts; how many have not been answered yet.
    fn probe_hosts(&mut self, cx: &mut Context<'_>, now_ns: u64) -> usize {
        let Some(mut readiness) = self.readiness.take() else { return 0 };
        let mut wire = Wire { cx, output: self.output };
        readiness.ask(
            now_ns,
            |far| self.to(far),
            |solicitation| {
                wire.frame(solicitation.len(), |out| out.copy_from_slice(solicitation));
            },
        );
        let left = readiness.left();
        self.readiness = Some(readiness);
        left
    }

    fn turn(&mut self, cx: &mut Context<'_>, now_ns: u64) {
        let mut wire = Wire { cx, output: self.output };
        if let Some(hop) = &mut self.hop {
            hop.solicit(now_ns, |solicitation| {
                let solicitation = solicitation.bytes();
                wire.frame(solicitation.len(), |out| out.copy_from_slice(solicitation));
            });
        }
        self.side.expire(now_ns, EXPIRED_PER_PASS, &mut wire);
    }

    fn unknown_hops(&self) -> usize {
        self.hop.as_ref().map_or(0, NextHop::unknown)
    }
}

impl<F: Flow> Workload<F> {
    /// With the given sides.
    pub fn new(
        clients: Option<(SideRunner<F>, Plan)>,
        servers: Option<SideRunner<F>>,
        live: Arc<Live>,
    ) -> Self {
        Workload {
            clients,
            servers,
            live,
            schedule: None,
            begun: 0,
            credit: 0.0,
            turned_ns: 0,
            under_way_max: UNDER_WAY_FIRST,
            under_way_lossy: UNDER_WAY_MOST,
            lost: 0,
            arrived: 0,
            half_again_ns: 0,
            scratch: Vec::with_capacity(PACKET_BYTES_MAX),
        }
    }

    /// How many may begin now, of those that are due.
    fn may_begin(&mut self, cx: &Context<'_>, now_ns: u64) -> u64 {
        let (Some(schedule), Some((clients, _))) = (&self.schedule, &self.clients) else {
            return 0;
        };
        let due = schedule.due(now_ns).saturating_sub(self.begun);
        let passed_ns = now_ns.saturating_sub(self.turned_ns);
        self.turned_ns = now_ns;
        let most = (PACKETS_PER_PASS / u64::from(clients.side.packets_at_once())).max(1);
        if schedule.rate_cps.is_finite() {
            let more = schedule.rate_cps * CATCH_UP * passed_ns as f64 / 1e9;
            self.credit = (self.credit + more).min(most as f64);
            return due.min(self.credit as u64);
        }
        let under_way = clients.side.under_way();
        let lost = self.lost_by(cx);
        if lost > self.lost && now_ns >= self.half_again_ns {
            self.under_way_lossy = self.under_way_max;
            self.under_way_max = (self.under_way_max / 2.0).max(UNDER_WAY_MIN);
            self.half_again_ns = now_ns + HALF_AGAIN_NS;
        } else if lost == self.lost && under_way as f64 * 2.0 >= self.under_way_max {
            let arrived = (clients.side.arrived() - self.arrived) as f64;
            let is_near = self.under_way_max > self.under_way_lossy * NEAR_LOSS;
            let growth = if is_near { GROWTH_NEAR_LOSS } else { UNDER_WAY_GROWTH };
            let more = arrived * growth / self.under_way_max;
            self.under_way_max = (self.under_way_max + more).min(UNDER_WAY_MOST);
        }
        (self.lost, self.arrived) = (lost, clients.side.arrived());
        let room = (self.under_way_max as u64).saturating_sub(under_way);
        due.min(clients.side.room()).min(most).min(room)
    }

    /// Packets that rings refused, and transactions that lost packets: retransmitted, or waited
    /// for so long that it will be.
    fn lost_by(&self, cx: &Context<'_>) -> u64 {
        let clients = self.clients.as_ref().map(|(clients, _)| clients);
        let of = |runner: &SideRunner<F>| {
            let counters = runner.side.counters();
            let again = counters.packets.fast_retransmitted.get();
            cx.interface_counters(runner.interface).tx_errors.get() + again + runner.side.stalls()
        };
        clients.into_iter().chain(&self.servers).map(of).sum()
    }

    /// Begin the transactions that are due.
    fn begin_due(&mut self, cx: &mut Context<'_>, now_ns: u64) {
        let count = self.may_begin(cx, now_ns);
        let Some((clients, plan)) = &mut self.clients else { return };
        if count == 0 {
            return;
        }
        self.credit -= count as f64;
        let mut wire = Wire { cx, output: clients.output };
        let is_flat_out = self.schedule.is_some_and(|schedule| schedule.rate_cps.is_infinite());
        let mut passed = if is_flat_out { SESSIONS_PASSED_MAX } else { 0 };
        for _ in 0..count {
            let mut key = plan.next_key();
            while passed > 0 && clients.side.is_in_use(&key) {
                key = plan.next_key();
                passed -= 1;
            }
            let to = clients.to(key.far());
            clients.side.begin(now_ns, key, to, &mut wire);
        }
        if self.begun == 0 {
            self.live.first_ns.set(now_ns);
        }
        self.begun += count;
        self.live.begun.set(self.begun);
        self.live.last_ns.set(now_ns);
    }
}

impl<F: Flow> AnyWorkload for Workload<F> {
    fn arrive(&mut self, cx: &mut Context<'_>, now_ns: u64, packets: &[Packet]) {
        let Some(rx) = packets.first().map(|packet| packet.rx) else { return };
        let clients = self.clients.as_mut().map(|(clients, _)| clients);
        for runner in clients.into_iter().chain(&mut self.servers) {
            if runner.interface == rx {
                runner.arrive(cx, now_ns, packets, &mut self.scratch);
            }
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>, now_ns: u64) {
        let mut unknown = 0;
        let clients = self.clients.as_mut().map(|(clients, _)| clients);
        for runner in clients.into_iter().chain(&mut self.servers) {
            runner.turn(cx, now_ns);
            unknown += runner.unknown_hops();
        }
        self.live.unknown_hops.set(unknown as u64);
        if unknown > 0 {
            self.live.polls.add(1);
            return;
        }
        if self.schedule.is_some() {
            return self.begin_due(cx, now_ns);
        }
        if let Some((clients, _)) = self.clients.as_mut().filter(|_| self.begun == 0) {
            self.live.unready_hosts.set(clients.probe_hosts(cx, now_ns) as u64);
        }
        self.live.polls.add(1);
    }

    fn set_schedule(&mut self, schedule: Option<Schedule>) {
        self.credit = 1.0;
        self.schedule = schedule;
    }

    fn change(&mut self, change: &dyn Fn(&Schedule, u64) -> Schedule) -> Option<Schedule> {
        self.schedule = self.schedule.as_ref().map(|schedule| change(schedule, self.begun));
        // What may begin at once is what the rate has earned since.
        self.credit = self.credit.min(1.0);
        self.schedule
    }

    fn final_state(&mut self) -> FinalState {
        let mut final_state = FinalState {
            times: None,
            table_bytes: 0,
            table_entries: 0,
            unknown_hop: None,
            unready: 0,
            unready_pair: None,
        };
        let mut add = |runner: &mut SideRunner<F>| {
            final_state.table_bytes += runner.side.table().bytes();
            final_state.table_entries += runner.side.table().capacity();
            let unknown = runner.hop.as_ref().and_then(NextHop::first_unknown);
            final_state.unknown_hop = final_state.unknown_hop.or(unknown);
            if let Some(readiness) = &runner.readiness {
                (final_state.unready, final_state.unready_pair) =
                    (readiness.left(), readiness.first_left());
            }
        };
        if let Some((clients, _)) = &mut self.clients {
            add(clients);
        }
        if let Some(servers) = &mut self.servers {
            add(servers);
        }
        final_state.times = self.clients.as_mut().map(|(clients, _)| clients.side.times.take());
        final_state
    }
}

/// The node `tg-stateful`: runs the installed workload.
pub struct StatefulNode {
    clock: Clock,
    workload: Option<Box<dyn AnyWorkload>>,
}

impl StatefulNode {
    /// Without a workload.
    pub fn new(clock: Clock) -> StatefulNode {
        StatefulNode { clock, workload: None }
    }

    /// Install a workload; returns the one before.
    pub fn install(
        &mut self,
        workload: Option<Box<dyn AnyWorkload>>,
    ) -> Option<Box<dyn AnyWorkload>> {
        std::mem::replace(&mut self.workload, workload)
    }

    /// The installed workload.
    pub fn workload(&mut self) -> Option<&mut Box<dyn AnyWorkload>> {
        self.workload.as_mut()
    }
}

impl Node for StatefulNode {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let now_ns = self.clock.now_ns();
        if let Some(workload) = &mut self.workload {
            let packets = frame.packets();
            // Vectors of one port are rarely put together with those of another.
            for packets in packets.chunk_by(|a, b| a.rx == b.rx) {
                if packets.first().is_some_and(|packet| packet.rx == InterfaceId::NONE) {
                    workload.turn(cx, now_ns);
                } else {
                    workload.arrive(cx, now_ns, packets);
                }
            }
        }
        for packet in frame.drain() {
            cx.buffers.free(packet);
        }
    }

    fn as_any(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

/// Input that makes the node run in each pass, by one packet without an interface.
pub struct WakeupInput {
    node: NodeId,
}

impl WakeupInput {
    /// At the node.
    pub fn at(node: NodeId) -> WakeupInput {
        WakeupInput { node }
    }
}

impl RxQueue for WakeupInput {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        if let Some(packet) = cx.buffers.packet()
            && let Err(packet) = frame.push(packet)
        {
            cx.buffers.free(packet);
        }
        Some(self.node)
    }

    fn sets_rx(&self) -> bool {
        true
    }
}

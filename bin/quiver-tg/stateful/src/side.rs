//! One side of the transactions: its hosts, its table, and what arrives for them. Knows no engine:
//! frames come in as bytes and leave by a [`Line`].

use std::sync::Arc;

use hdrhistogram::Histogram;
use quiver_wire::MacAddress;

use super::counters::Counters;
use super::flow::{Expiry, Flow};
use super::frame::{self, Arrival, Content, Heading, Unread};
use super::io::{Io, Line};
use super::key::{Key, Secret};
use super::program::{Ending, Failure, Program, Role};
use super::table::Table;
use super::wheel::tick_of;
use quiver_tg_measuring::latency;
use quiver_tg_traffic::profile::stateful::ServerPort;

/// Entries that may have something to send at the end of a vector.
const LISTED_MAX: usize = 512;
/// Lists of timers passed in one poll.
const LISTS_PER_LOOK: u32 = 64;

/// Where servers answer.
#[derive(Clone, Copy, Debug)]
pub enum ListenPorts {
    /// Nowhere: these are clients.
    Nowhere,
    /// At one port.
    One(u16),
    /// At every port: clients send to the one that they send from.
    Everywhere,
}

impl ListenPorts {
    /// Where servers with this port answer.
    pub fn at(port: ServerPort) -> ListenPorts {
        match port {
            ServerPort::One(port) => ListenPorts::One(port),
            ServerPort::Same => ListenPorts::Everywhere,
        }
    }

    fn has(self, port: u16) -> bool {
        match self {
            ListenPorts::Nowhere => false,
            ListenPorts::One(own) => own == port,
            ListenPorts::Everywhere => true,
        }
    }
}

/// How long transactions took, nanoseconds.
pub struct Times {
    /// To the first answer.
    pub connected: Histogram<u64>,
    /// To the end, of successful ones.
    pub complete: Histogram<u64>,
}

impl Times {
    fn new() -> Times {
        Times { connected: latency::histogram(), complete: latency::histogram() }
    }

    /// All of them; none are left.
    pub fn take(&mut self) -> Times {
        std::mem::replace(self, Times::new())
    }
}

/// A side.
pub struct Side<F> {
    program: Program,
    heading: Heading,
    listen_ports: ListenPorts,
    /// Where all frames go, once it is known and if there is one.
    pub gateway: Option<MacAddress>,
    table: Table<F>,
    counters: Arc<Counters>,
    secret: Secret,
    listed: Vec<u32>,
    /// Transactions that are neither successful nor failed.
    open: u64,
    /// Of these, those to which nothing has come back.
    unanswered: u64,
    /// Of the open ones, those that wait for what is lost; and how often one came to that.
    stalled: u64,
    stalls: u64,
    /// How long transactions took.
    pub times: Times,
}

/// Builds the context of a state machine.
macro_rules! io {
    ($side:ident, $line:expr, $now_ns:expr, $key:expr, $to:expr) => {
        Io {
            line: &mut *$line,
            heading: &$side.heading,
            program: &$side.program,
            packets: &$side.counters.packets,
            now_ns: $now_ns,
            tick: tick_of($now_ns),
            key: $key,
            to: $side.gateway.unwrap_or(MacAddress($to)),
        }
    };
}

impl<F: Flow> Side<F> {
    /// A side that plays `program` with at most `entries` transactions at a time, from `now_ns` on.
    pub fn new(
        program: Program,
        heading: Heading,
        listen_ports: ListenPorts,
        entries: usize,
        seed: u64,
        now_ns: u64,
    ) -> Side<F> {
        Side {
            program,
            heading,
            listen_ports,
            gateway: None,
            table: Table::new(entries, Secret::new(seed), tick_of(now_ns)),
            counters: Arc::default(),
            secret: Secret::new(!seed),
            listed: Vec::with_capacity(LISTED_MAX),
            open: 0,
            unanswered: 0,
            stalled: 0,
            stalls: 0,
            times: Times::new(),
        }
    }

    /// Its counters.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Its frames' beginning.
    pub fn heading(&self) -> &Heading {
        &self.heading
    }

    /// Its table.
    pub fn table(&self) -> &Table<F> {
        &self.table
    }

    /// Transactions that are neither successful nor failed.
    pub fn open(&self) -> u64 {
        self.open
    }

    /// Transactions that still fit into the table.
    pub fn room(&self) -> u64 {
        (self.table.capacity() - self.table.len()) as u64
    }

    /// Transactions whose packets are on their way: all that are open, or where they rest, those
    /// that wait for their first answer; not those that wait for what is lost.
    pub fn under_way(&self) -> u64 {
        let open = if self.program.hold > 0 { self.unanswered } else { self.open };
        open.saturating_sub(self.stalled)
    }

    /// Transactions that no longer count as under way: answered where they rest, otherwise
    /// successful.
    pub fn arrived(&self) -> u64 {
        let transactions = &self.counters.transactions;
        if self.program.hold > 0 {
            transactions.connected.get()
        } else {
            transactions.successful.get()
        }
    }

    /// How often a transaction had to wait for what was lost.
    pub fn stalls(&self) -> u64 {
        self.stalls
    }

    /// Does a transaction that is not over have this key?
    pub fn is_in_use(&mut self, key: &Key) -> bool {
        let slot = self.table.find(key, self.table.hash(key));
        slot.is_some_and(|slot| !self.table.entry(slot).flow.is_over())
    }

    /// Packets that a client sends when it begins.
    pub fn packets_at_once(&self) -> u32 {
        if F::FIRST_IS_INPUT { self.program.request } else { 1 }
    }

    /// A number that grows with time for each key, and tells nobody those of other keys (RFC 6528).
    fn number(&self, key: &Key, now_ns: u64) -> u32 {
        (self.secret.hash(key) as u32).wrapping_add((now_ns >> 12) as u32)
    }

    /// A client begins a transaction.
    pub fn begin<L: Line>(&mut self, now_ns: u64, key: Key, to: MacAddress, line: &mut L) {
        self.counters.transactions.attempted.add(1);
        let hash = self.table.hash(&key);
        if let Some(slot) = self.table.find(&key, hash) {
            if !self.table.entry(slot).flow.is_over() {
                return self.counters.transactions.fail(Failure::InUse);
            }
            self.table.remove(slot);
        }
        let Some(slot) = self.table.insert(key, hash, F::default()) else {
            return self.counters.transactions.fail(Failure::TableFull);
        };
        let number = self.number(&key, now_ns);
        let mut io = io!(self, line, now_ns, key, to.0);
        let flow = F::begin(&mut io, number);
        let deadline = flow.next_deadline(&io);
        self.take_up(slot, flow, deadline);
    }

    /// Put a new transaction in its slot.
    fn take_up(&mut self, slot: u32, flow: F, deadline: u32) {
        self.table.entry(slot).flow = flow;
        self.table.wheel.arm(slot, deadline);
        self.open += 1;
        self.unanswered += 1;
        self.counters.transactions.started.add(1);
        self.counters.transactions.open_max.max(self.open);
    }

    /// A frame has come; false when it is not of transactions, and not counted.
    #[inline]
    pub fn receive<L: Line>(&mut self, now_ns: u64, bytes: &[u8], line: &mut L) -> bool {
        match frame::read(bytes, &self.heading, F::KIND) {
            Ok(arrival) => {
                self.counters.packets.rx_packets.add(1);
                self.counters.packets.rx_bytes.add(bytes.len() as u64);
                self.take(now_ns, &arrival, line);
                true
            }
            Err(unread) => self.leave(unread),
        }
    }

    #[cold]
    fn leave(&mut self, unread: Unread) -> bool {
        let packets = &self.counters.packets;
        let count = match unread {
            Unread::Foreign => return false,
            Unread::Malformed => &packets.malformed,
            Unread::BadChecksum => &packets.bad_checksum,
            Unread::Fragment => &packets.fragments,
        };
        count.add(1);
        true
    }

    fn take<L: Line>(&mut self, now_ns: u64, arrival: &Arrival<'_>, line: &mut L) {
        let key = arrival.key;
        let hash = self.table.hash(&key);
        let slot = self.table.find(&key, hash);
        let Some(packet) = F::packet(arrival.content) else {
            return self.take_complaint(now_ns, arrival, slot, line);
        };
        match slot {
            Some(slot) if self.is_replaced(slot, packet) => {
                self.drop_for_another(slot);
                self.accept(now_ns, arrival, hash, packet, line);
            }
            Some(slot) => self.input(now_ns, slot, packet, line),
            None => self.accept(now_ns, arrival, hash, packet, line),
        }
    }

    fn is_replaced(&mut self, slot: u32, packet: F::Packet<'_>) -> bool {
        self.program.role == Role::Server && self.table.entry(slot).flow.makes_way_for(packet)
    }

    /// The client has begun another transaction with the same addresses and ports.
    #[cold]
    fn drop_for_another(&mut self, slot: u32) {
        let flow = &self.table.entry(slot).flow;
        if !flow.is_over() {
            self.unanswered -= u64::from(!flow.is_connected());
            self.stalled -= u64::from(flow.is_stalled());
            self.counters.transactions.fail(Failure::ClosedEarly);
            self.open -= 1;
        }
        self.table.remove(slot);
    }

    /// A host or router says that a packet was not delivered.
    #[cold]
    fn take_complaint<L: Line>(
        &mut self,
        now_ns: u64,
        arrival: &Arrival<'_>,
        slot: Option<u32>,
        line: &mut L,
    ) {
        let is_unreachable = matches!(arrival.content, Content::Unreachable);
        match slot {
            // RFC 5461: an established connection does not end because somebody says so.
            Some(slot) if is_unreachable && !self.table.entry(slot).flow.is_connected() => {
                self.end(now_ns, slot, Ending::Failed(Failure::Unreachable), line);
            }
            _ => self.counters.packets.stray.add(1),
        }
    }

    /// A packet of no transaction: perhaps the first of one.
    fn accept<L: Line>(
        &mut self,
        now_ns: u64,
        arrival: &Arrival<'_>,
        hash: u64,
        packet: F::Packet<'_>,
        line: &mut L,
    ) {
        let key = arrival.key;
        let listen_ports = self.listen_ports.has(key.near_port());
        let slot = if listen_ports { self.table.insert(key, hash, F::default()) } else { None };
        let number = self.number(&key, now_ns);
        let mut io = io!(self, line, now_ns, key, arrival.from.0);
        let Some(slot) = slot else {
            if listen_ports && F::begins(packet) {
                self.counters.transactions.attempted.add(1);
                return self.counters.transactions.fail(Failure::TableFull);
            }
            io.packets.stray.add(1);
            return F::answer_stray(&mut io, packet);
        };
        let Some(flow) = F::accept(&mut io, number, packet) else {
            io.packets.stray.add(1);
            F::answer_stray(&mut io, packet);
            return self.table.remove(slot);
        };
        let deadline = flow.next_deadline(&io);
        self.counters.transactions.attempted.add(1);
        self.take_up(slot, flow, deadline);
        if F::FIRST_IS_INPUT {
            self.input(now_ns, slot, packet, line);
        }
    }

    #[inline]
    fn input<L: Line>(&mut self, now_ns: u64, slot: u32, packet: F::Packet<'_>, line: &mut L) {
        let entry = self.table.entry(slot);
        let mut io = io!(self, line, now_ns, entry.key, entry.flow.to());
        let (was_connected, was_stalled) = (entry.flow.is_connected(), entry.flow.is_stalled());
        let was_over = entry.flow.is_over();
        let ending = entry.flow.input(&mut io, packet);
        if was_stalled && !was_over && !entry.flow.is_stalled() {
            self.stalled -= 1;
        }
        if !was_connected && entry.flow.is_connected() {
            self.unanswered -= 1;
            self.counters.transactions.connected.add(1);
            self.times.connected.saturating_record(now_ns - entry.flow.started_ns());
        }
        match ending {
            Some(ending) => self.end(now_ns, slot, ending, line),
            None => {
                let deadline = entry.flow.next_deadline(&io);
                if entry.flow.list() {
                    self.listed.push(slot);
                }
                self.table.wheel.arm(slot, deadline);
            }
        }
        if self.listed.len() == LISTED_MAX {
            self.flush(now_ns, line);
        }
    }

    /// Send what those that were touched have to send: at the end of a vector.
    pub fn flush<L: Line>(&mut self, now_ns: u64, line: &mut L) {
        for place in 0..self.listed.len() {
            let slot = self.listed[place];
            let entry = self.table.entry(slot);
            let mut io = io!(self, line, now_ns, entry.key, entry.flow.to());
            entry.flow.output(&mut io);
            if !entry.flow.is_free() {
                let deadline = entry.flow.next_deadline(&io);
                self.table.wheel.arm(slot, deadline);
            }
        }
        self.listed.clear();
    }

    /// A transaction is over.
    fn end<L: Line>(&mut self, now_ns: u64, slot: u32, ending: Ending, line: &mut L) {
        let entry = self.table.entry(slot);
        let mut io = io!(self, line, now_ns, entry.key, entry.flow.to());
        let needs_no_reset =
            matches!(ending, Ending::Complete | Ending::Failed(Failure::Reset | Failure::Refused));
        if !needs_no_reset {
            entry.flow.abort(&mut io);
        }
        let outcome = self.program.classify(entry.flow.is_connected(), ending);
        if outcome == Ending::Complete {
            self.times.complete.saturating_record(now_ns - entry.flow.started_ns());
        }
        self.counters.transactions.end(outcome);
        self.open -= 1;
        self.unanswered -= u64::from(!entry.flow.is_connected());
        self.stalled -= u64::from(entry.flow.is_stalled());
        if ending == Ending::Complete && entry.flow.linger(&io) {
            let deadline = entry.flow.next_deadline(&io);
            self.table.wheel.arm(slot, deadline);
        } else {
            self.table.remove(slot);
        }
    }

    /// Look after those whose time has come, at most `most` of them.
    pub fn expire<L: Line>(&mut self, now_ns: u64, most: usize, line: &mut L) {
        let mut lists = LISTS_PER_LOOK;
        for _ in 0..most {
            let Some(slot) = self.table.wheel.expired(tick_of(now_ns), &mut lists) else { break };
            let entry = self.table.entry(slot);
            let mut io = io!(self, line, now_ns, entry.key, entry.flow.to());
            let was_stalled = entry.flow.is_stalled();
            match entry.flow.expire(&mut io) {
                Expiry::Open => {
                    if !was_stalled && entry.flow.is_stalled() {
                        self.stalled += 1;
                        self.stalls += 1;
                    }
                    let deadline = entry.flow.next_deadline(&io);
                    self.table.wheel.arm(slot, deadline);
                }
                Expiry::Ended(ending) => self.end(now_ns, slot, ending, line),
                Expiry::Forget => self.table.remove(slot),
            }
        }
    }
}

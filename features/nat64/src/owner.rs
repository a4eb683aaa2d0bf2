//! `nat64-slowpath`: the worker that owns sessions and bindings makes them, and ends those whose
//! time is over. Others hand packets that need a session over to it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet, WorkerId};
use quiver_forwarding::IcmpErrorRequest;
use quiver_nat_log::{Event, Inside64, Log};
use quiver_tables::sessions::SessionError;
use quiver_translation::flow::Flow;
use quiver_translation::tcp::{Direction, flag};
use quiver_translation::versions::address::Prefix;
use quiver_translation::versions::ends::Ports;
use quiver_translation::versions::read::{Kind, Read4, Read6};
use quiver_wire::IpProtocol;

use crate::bindings::{Bindings, inside_key, log_binding, outside_key, subscriber};
use crate::errors;
use crate::ports::{EXHAUSTED_MAX, Exhausted, Wanted};
use crate::reasons::Nat64Drop;
use crate::session::{Flags, Inside, NewSession, Session, Writer};
use crate::tables::{Filtering, Rules, Shared};
use crate::translator::{SLOW_PATH, SlowRequest, Translator, inside_of, outside_of};

/// The worker that makes sessions.
pub(crate) const OWNER: WorkerId = WorkerId(0);
/// RFC 6146 §3.5.1.1: "Destination Unreachable […] Code 3 (Address Unreachable)".
const ADDRESS_UNREACHABLE: IcmpErrorRequest = IcmpErrorRequest { kind: 1, code: 3, detail: 0 };
/// Nanoseconds between two turns of the clock hand, and the turns of a whole round.
const TURN_NS: u64 = 10_000_000;
const TURNS_OF_ROUND: usize = 1_000;
/// Sessions that a turn looks at, at least.
const TURN_PLACES_MIN: usize = 64;
/// Packets that a worker keeps for the owner while the ring to it is full. A worker reads no
/// receive queue meanwhile, so that they are those of one pass.
const WAITING_MAX: usize = 8_192;

/// What the owner has.
pub(crate) struct Owner {
    pub writer: Writer,
    pub bindings: Bindings,
    random: u64,
    pub exhausted: [Exhausted; EXHAUSTED_MAX],
    /// What is made and ended, for collectors.
    pub log: Log,
}

impl Owner {
    /// `seed` is a secret.
    pub fn new(writer: Writer, bindings: Bindings, seed: u64, log: Log) -> Owner {
        let exhausted = [Exhausted::default(); EXHAUSTED_MAX];
        Owner { writer, bindings, random: seed | 1, exhausted, log }
    }

    /// The next number of a sequence (xorshift) that begins with a secret.
    pub fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// End the sessions for which `ends` holds among the next `places`; how many ended.
    fn end_where(
        &mut self,
        rules: &Rules,
        places: usize,
        ends: impl Fn(Session<'_>) -> bool,
    ) -> usize {
        let Owner { writer, bindings, log, .. } = self;
        writer.turn(places, |_, words| {
            let session = Session(words);
            let over = ends(session);
            if over {
                log_session(log, Event::SessionDelete64, rules, session);
                bindings.release(session, log);
            }
            !over
        })
    }

    /// End the sessions for which `ends` holds among `places` from `first` on. The clock hand stays
    /// where it is: it may turn before the next places are looked at.
    fn end_from(
        &mut self,
        rules: &Rules,
        (first, places): (u32, u32),
        ends: impl Fn(Session<'_>) -> bool,
    ) {
        let Owner { writer, bindings, log, .. } = self;
        for number in first..first.saturating_add(places) {
            let session = Session(writer.objects().get(number));
            if !writer.is_live(number) || !ends(session) {
                continue;
            }
            log_session(log, Event::SessionDelete64, rules, session);
            bindings.release(session, log);
            writer.remove(number);
        }
        writer.collect();
        bindings.writer.collect();
    }

    /// Make a session of a binding.
    fn make(&mut self, rules: &Rules, mut new: NewSession) -> Result<u32, Nat64Drop> {
        let begun = self.bindings.begin(new.binding, new.inside.remote, rules);
        new.flags = new.flags.with(begun.map_err(|error| self.note_refusal(error))?);
        let made = self.writer.insert(new.words());
        let number = made.map_err(|error| {
            let Owner { bindings, log, .. } = self;
            bindings.end(new.binding, new.inside.remote, new.flags, log);
            refused(error)
        })?;
        let session = Session(self.writer.objects().get(number));
        log_session(&mut self.log, Event::SessionCreate64, rules, session);
        Ok(number)
    }

    /// All bindings are in use, or another reason.
    fn note_refusal(&mut self, error: SessionError) -> Nat64Drop {
        if let SessionError::Full { sessions_max } = error {
            self.log.quota(Event::MappingQuota, (0, 0), sessions_max as u32);
        }
        refused(error)
    }

    /// Is there a session left? That there is none is logged.
    fn check_sessions(&mut self) -> Result<(), Nat64Drop> {
        let most = self.writer.sessions_max();
        if self.writer.len() < most {
            return Ok(());
        }
        self.log.quota(Event::SessionQuota, (0, 0), most as u32);
        Err(Nat64Drop::SessionsExceeded)
    }

    /// May a host's subscriber have one more session?
    fn check_limit(&mut self, rules: &Rules, host: u128, table: u32) -> Result<(), Nat64Drop> {
        match rules.limit {
            Some(limit) if self.bindings.used(limit, host, table) >= limit.sessions => {
                let subscriber = subscriber(host, limit.prefix_length);
                self.log.quota64((table, subscriber), limit.sessions);
                Err(Nat64Drop::SubscriberLimit)
            }
            _ => Ok(()),
        }
    }

    /// The binding of a host's end, made when there is none; its number.
    fn bind(&mut self, rules: &Rules, inside: &Inside, now_s: u32) -> Result<u32, Nat64Drop> {
        let Inside { host, ports, protocol, table, .. } = *inside;
        let key = inside_key(host, ports.source, protocol, table);
        if let Some(number) = self.bindings.read.number(&key) {
            return Ok(number);
        }
        let wanted = Wanted { host, port: ports.source, protocol, table, now_s };
        let external = self.external_end(rules, wanted)?;
        let outside = outside_key(external, protocol, rules.outside_table);
        let bound = self.bindings.bind(key, outside, false);
        let number = bound.map_err(|error| self.note_refusal(error))?;
        log_binding(&mut self.log, Event::MappingCreate64, self.bindings.read.get(number));
        Ok(number)
    }
}

/// Log that a session begins or ends. Its prefix is there as long as it is.
fn log_session(log: &mut Log, event: Event, rules: &Rules, session: Session<'_>) {
    let Inside { host, remote, ports, table, prefix, .. } = session.inside();
    let remote = rules.prefix(prefix).map_or(0, |prefix| prefix.embed(remote));
    log.session64(event, Inside64 { host, port: ports.source, remote, table }, session.outside());
}

fn refused(error: SessionError) -> Nat64Drop {
    match error {
        SessionError::Full { .. } | SessionError::Waiting => Nat64Drop::SessionsExceeded,
        SessionError::Collides { .. } => Nat64Drop::NoTranslation,
        SessionError::Table(_) => Nat64Drop::Crowded,
    }
}

/// The TCP flags of a packet that opens something.
fn check_opens(protocol: IpProtocol, kind: Kind) -> Result<u8, Nat64Drop> {
    match kind {
        Kind::Data { tcp_flags } if protocol == IpProtocol::TCP => {
            let opens = flag::SYN | flag::ACK | flag::RST | flag::FIN;
            (tcp_flags & opens == flag::SYN).then_some(tcp_flags).ok_or(Nat64Drop::NonSyn)
        }
        Kind::Data { .. } | Kind::Query => Ok(0),
        _ => Err(Nat64Drop::NoTranslation),
    }
}

/// A worker's instance.
pub(crate) struct SlowPath {
    pub translator: Translator,
    own: NodeId,
    /// The owner's, while NAT64 is enabled.
    pub owner: Option<Box<Owner>>,
    /// Packets that found the ring to the owner full, on other workers.
    waiting: VecDeque<Packet>,
}

impl SlowPath {
    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, Nat64Drop> {
        let SlowRequest { from_inside } = packet.handed_over();
        let shared = self.translator.shared.clone();
        let rules = shared.rules(cx.pass);
        let now_s = (cx.now_ns / 1_000_000_000) as u32;
        if from_inside {
            match self.translator.read_inside(|reason| cx.count(reason, 1), packet)? {
                Ok(read) if read.kind == Kind::Error => {
                    errors::to_outside(&self.translator, cx, packet, rules)
                }
                Ok(read) => self.take_inside(cx, packet, &read, rules, now_s),
                Err(next) => Ok(next),
            }
        } else {
            match self.translator.read_outside(|reason| cx.count(reason, 1), packet)? {
                Ok(read) if read.kind == Kind::Error => {
                    errors::to_inside(&self.translator, cx, packet, rules)
                }
                Ok(read) => self.take_outside(cx, packet, &read, rules, now_s),
                Err(next) => Ok(next),
            }
        }
    }

    fn take_inside(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
        read: &Read6,
        rules: &Rules,
        now_s: u32,
    ) -> Result<NodeId, Nat64Drop> {
        let table = self.translator.tables.interfaces.table6(packet.rx);
        let (inside, prefix) = inside_of(read, rules, table).ok_or(Nat64Drop::NoTranslation)?;
        let made = self.session_from_inside(cx, rules, (inside, prefix), read.kind, now_s);
        let number = match made {
            Ok(number) => number,
            Err(
                reason @ (Nat64Drop::OutOfPorts
                | Nat64Drop::SessionsExceeded
                | Nat64Drop::SubscriberLimit),
            ) => {
                cx.count(reason, 1);
                return Ok(self.translator.answer6(packet, ADDRESS_UNREACHABLE));
            }
            Err(reason) => return Err(reason),
        };
        let (_, objects, _) = self.translator.shared.table().ok_or(Nat64Drop::NotEnabled)?;
        let session = Session(objects.get(number));
        self.translator.send_out(packet, read, session, now_s)
    }

    fn session_from_inside(
        &mut self,
        cx: &mut Context<'_>,
        rules: &Rules,
        (inside, prefix): (Inside, Prefix),
        kind: Kind,
        now_s: u32,
    ) -> Result<u32, Nat64Drop> {
        let owner = self.owner.as_mut().ok_or(Nat64Drop::NotEnabled)?;
        if let Some((number, _)) = owner.writer.get(&inside.key()) {
            return Ok(number);
        }
        let flags = check_opens(inside.protocol, kind)?;
        owner.log.set_now(cx.now_ns);
        owner.check_sessions()?;
        owner.check_limit(rules, inside.host, inside.table)?;
        let binding = owner.bind(rules, &inside, now_s)?;
        let is_hairpin = rules.external.contains_key(&inside.remote);
        let new = NewSession {
            inside,
            prefix,
            external: owner.bindings.read.get(binding).external(),
            outside_table: rules.outside_table,
            binding,
            flags: if is_hairpin { Flags::HAIRPIN } else { Flags::default() },
            now_s,
            first: (Direction::InToOut, flags),
        };
        let made = owner.make(rules, new);
        if made.is_err() && owner.bindings.read.get(binding).users() == 0 {
            owner.bindings.discard(binding, &mut owner.log);
        }
        self.note_made(cx, made)
    }

    fn take_outside(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
        read: &Read4,
        rules: &Rules,
        now_s: u32,
    ) -> Result<NodeId, Nat64Drop> {
        let flow = outside_of(read, rules.outside_table);
        let owner = self.owner.as_ref().ok_or(Nat64Drop::NotEnabled)?;
        let number = match owner.writer.get(&crate::session::outside_key(flow.key())) {
            Some((number, _)) => number,
            None => match self.session_from_outside(cx, rules, flow, read.kind, now_s) {
                // Nobody outside is told of limits inside.
                Err(reason @ (Nat64Drop::SessionsExceeded | Nat64Drop::SubscriberLimit)) => {
                    cx.count(reason, 1);
                    return Err(Nat64Drop::NoTranslation);
                }
                made => made?,
            },
        };
        let (_, objects, _) = self.translator.shared.table().ok_or(Nat64Drop::NotEnabled)?;
        let session = Session(objects.get(number));
        let prefix = rules.prefix(session.inside().prefix).ok_or(Nat64Drop::NoTranslation)?;
        self.translator.send_in(packet, read, (session, prefix), now_s)
    }

    fn session_from_outside(
        &mut self,
        cx: &mut Context<'_>,
        rules: &Rules,
        flow: Flow,
        kind: Kind,
        now_s: u32,
    ) -> Result<u32, Nat64Drop> {
        let owner = self.owner.as_mut().ok_or(Nat64Drop::NotEnabled)?;
        owner.log.set_now(cx.now_ns);
        let key = outside_key(flow.destination, flow.protocol, flow.table);
        let binding = owner.bindings.read.number(&key).ok_or(Nat64Drop::NoTranslation)?;
        let found = owner.bindings.read.get(binding);
        let (remote, table, (host, port)) = (flow.source, found.table(), found.host());
        let flags = check_opens(flow.protocol, kind)?;
        if rules.filtering == Filtering::AddressDependent
            && !found.is_static()
            && !owner.bindings.is_permitted(flow.destination, flow.protocol, remote.address)
        {
            return Err(Nat64Drop::Filtered);
        }
        let rule = rules.prefix_for(table).ok_or(Nat64Drop::NoTranslation)?;
        owner.check_sessions()?;
        owner.check_limit(rules, host, table)?;
        let is_icmp = flow.protocol == IpProtocol::ICMP;
        let destination = if is_icmp { port } else { remote.port };
        let inside = Inside {
            host,
            remote: remote.address,
            ports: Ports { source: port, destination },
            protocol: flow.protocol,
            table,
            prefix: rule.number,
        };
        let is_hairpin = rules.external.contains_key(&remote.address);
        let new = NewSession {
            inside,
            prefix: rule.prefix,
            external: flow.destination,
            outside_table: rules.outside_table,
            binding,
            flags: if is_hairpin { Flags::HAIRPIN } else { Flags::default() },
            now_s,
            first: (Direction::OutToIn, flags),
        };
        let made = owner.make(rules, new);
        self.note_made(cx, made)
    }

    fn note_made(
        &self,
        cx: &mut Context<'_>,
        made: Result<u32, Nat64Drop>,
    ) -> Result<u32, Nat64Drop> {
        let shared = &self.translator.shared;
        if let Some(owner) = &self.owner {
            shared.note(&owner.writer, &owner.bindings);
        }
        if made.is_ok() {
            cx.count(Nat64Drop::Made, 1);
            shared.made.fetch_add(1, Ordering::Relaxed);
            cx.tick_at(cx.now_ns + TURN_NS);
        }
        made
    }

    /// End the sessions for which `ends` holds among `places` from the first on; how many places
    /// there are.
    pub fn end_from(
        &mut self,
        cx: &Context<'_>,
        places: (u32, u32),
        ends: impl Fn(Session<'_>) -> bool,
    ) -> usize {
        let rules = self.translator.shared.rules(cx.pass);
        let Some(owner) = &mut self.owner else { return 0 };
        owner.log.set_now(cx.now_ns);
        owner.end_from(rules, places, ends);
        self.translator.shared.note(&owner.writer, &owner.bindings);
        owner.writer.places()
    }

    /// Do something with the owner.
    pub fn with_owner<R>(&mut self, work: impl FnOnce(&mut Owner) -> R) -> Option<R> {
        let owner = self.owner.as_mut()?;
        let result = work(owner);
        self.translator.shared.note(&owner.writer, &owner.bindings);
        Some(result)
    }

    /// Hand a packet to the owner, behind those that wait.
    fn pass_to_owner(&mut self, cx: &mut Context<'_>, mut packet: Packet) {
        if self.waiting.is_empty() {
            cx.trace(&packet, self.own);
            match cx.hand_off(packet, OWNER, self.own) {
                Ok(()) => return,
                Err(back) => packet = back,
            }
        }
        if self.waiting.len() < WAITING_MAX {
            cx.keep_age(&mut packet);
            self.waiting.push_back(packet);
        } else {
            cx.kill(packet, Nat64Drop::Congestion);
        }
    }

    /// While packets wait, the worker reads no receive queue.
    fn wait_for_owner(&mut self, cx: &mut Context<'_>) {
        if !self.waiting.is_empty() {
            cx.count(Nat64Drop::BackPressure, 1);
            cx.hold_receive();
            cx.tick_at(cx.now_ns);
        }
    }
}

impl Node for SlowPath {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        if cx.worker == OWNER {
            frame.route(|packet| self.decide(cx, packet));
            return;
        }
        for packet in frame.drain() {
            self.pass_to_owner(cx, packet);
        }
        self.wait_for_owner(cx);
    }

    fn as_any(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }

    /// Turn the clock hand, or pass on what waits for the owner.
    fn tick(&mut self, cx: &mut Context<'_>) -> Option<u64> {
        if cx.worker != OWNER {
            for _ in 0..self.waiting.len() {
                let Some(packet) = self.waiting.pop_front() else { break };
                if let Err(packet) = cx.hand_off(packet, OWNER, self.own) {
                    self.waiting.push_front(packet);
                    break;
                }
            }
            self.wait_for_owner(cx);
            return (!self.waiting.is_empty()).then_some(cx.now_ns);
        }
        let owner = self.owner.as_mut()?;
        let shared = &self.translator.shared;
        owner.writer.collect();
        owner.bindings.writer.collect();
        let now_s = (cx.now_ns / 1_000_000_000) as u32;
        let places = (owner.writer.places() / TURNS_OF_ROUND).max(TURN_PLACES_MIN);
        owner.log.set_now(cx.now_ns);
        let ended = owner.end_where(shared.rules(cx.pass), places, |session| {
            now_s.saturating_sub(session.seen_s()) > shared.timeout_s(session.class())
        });
        if ended > 0 {
            shared.expired.fetch_add(ended as u64, Ordering::Relaxed);
            shared.note(&owner.writer, &owner.bindings);
        }
        // An empty table is not turned again: the places of its last sessions are free from now.
        owner.writer.collect();
        owner.bindings.writer.collect();
        (!owner.writer.is_empty()).then_some(cx.now_ns + TURN_NS)
    }
}

/// The declaration.
pub(crate) fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::new(SLOW_PATH, "Makes sessions, and translates ICMP errors", move |wiring| {
        Box::new(SlowPath {
            translator: Translator::new(&shared, wiring),
            own: wiring.id,
            owner: None,
            waiting: VecDeque::with_capacity(WAITING_MAX),
        })
    })
    .slow_path()
    .reasons::<Nat64Drop>()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}

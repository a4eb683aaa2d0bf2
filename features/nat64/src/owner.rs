//! `nat64-slowpath`: the worker that owns sessions and bindings makes them, and ends those whose
//! time is over. Others hand packets that need a session over to it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quiver_bindings::{
    Bindings, External, Filtering, Flags, NoSession, Ports as ExternalPorts, Wanted, subscriber,
};
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::IcmpErrorRequest;
use quiver_nat_log::{Event, Log};
use quiver_sessions::{
    KEY_WORDS, SessionMaker, SlowQueue, places_of_turn, run_slow_path, tick_slow_path,
};
use quiver_tables::sessions::SessionError;
use quiver_translation::flow::{Flow, key_of};
use quiver_translation::ip6;
use quiver_translation::ip6::flow::Side;
use quiver_translation::tcp::Direction;
use quiver_translation::versions::address::Prefix;
use quiver_translation::versions::ends::Ports;
use quiver_translation::versions::read::{Kind, Read4, Read6, read6};
use quiver_wire::IpProtocol;

use crate::bindings::{narrow, outside_key, release};
use crate::errors;
use crate::reasons::Nat64Drop;
use crate::session::{Inside, NewSession, Session, WORDS, Writer};
use crate::standby::Journal;
use crate::tables::{Rules, Shared};
use crate::translator::{SLOW_PATH, SlowRequest, Translator, inside_of, outside_of};

/// RFC 6146 §3.5.1.1: "Destination Unreachable […] Code 3 (Address Unreachable)".
const ADDRESS_UNREACHABLE: IcmpErrorRequest = IcmpErrorRequest { kind: 1, code: 3, detail: 0 };
/// What the owner has.
pub(crate) struct Owner {
    pub writer: Writer,
    pub bindings: Bindings,
    ports: ExternalPorts,
    /// What is made and ended, for collectors and for the router that stands by.
    pub log: Journal,
}

impl Owner {
    /// `seed` is a secret.
    pub fn new(writer: Writer, bindings: Bindings, seed: u64, log: Log) -> Owner {
        Owner { writer, bindings, ports: ExternalPorts::new(seed), log: Journal::new(log) }
    }

    /// End the sessions for which `ends` holds among the next `places`; how many ended.
    fn end_where(
        &mut self,
        rules: &Rules,
        places: usize,
        ends: impl Fn(Session<'_>) -> bool,
    ) -> usize {
        let Owner { writer, bindings, log, .. } = self;
        bindings.turn_sessions(writer, places, |bindings, number, words| {
            let session = Session(words);
            let over = ends(session);
            if over {
                log.session(Event::SessionDelete64, number, rules, session);
                release(bindings, session, log);
            } else {
                log.visit(number, rules, session);
            }
            over
        })
    }

    /// End the sessions for which `ends` holds among `places` from the first one on.
    fn end_from(&mut self, rules: &Rules, places: (u32, u32), ends: impl Fn(Session<'_>) -> bool) {
        let Owner { writer, bindings, log, .. } = self;
        bindings.end_sessions(writer, places, |bindings, number, words| {
            let session = Session(words);
            let over = ends(session);
            if over {
                log.session(Event::SessionDelete64, number, rules, session);
                release(bindings, session, log);
            }
            over
        });
    }

    /// Use again what no worker sees any more.
    pub fn collect(&mut self) {
        self.bindings.collect(&mut self.writer);
    }

    /// Make a session of a binding; `words` are its words.
    pub fn make(
        &mut self,
        rules: &Rules,
        new: NewSession,
        words: impl FnOnce(&NewSession) -> [u64; WORDS],
    ) -> Result<u32, Nat64Drop> {
        let Owner { writer, bindings, log, .. } = self;
        let to = (new.binding, new.inside.remote.into());
        let words = |flags| words(&NewSession { flags: new.flags.with(flags), ..new });
        let made = bindings.make_session(writer, to, rules.limit, words, |binding| {
            log.binding(Event::MappingDelete64, binding);
        });
        let number = made.map_err(|why| self.note_refusal(why, new.inside.protocol))?;
        let session = Session(self.writer.objects().get(number));
        self.log.session(Event::SessionCreate64, number, rules, session);
        Ok(number)
    }

    /// All bindings are in use, or no port is left, which is logged when it is found out; or there
    /// is another reason. The only address is named; of several, none is.
    fn note_refusal(&mut self, why: NoSession, protocol: IpProtocol) -> Nat64Drop {
        match &why {
            NoSession::Ports(out) if out.is_new => {
                self.log.exhausted(out.only.unwrap_or(0) as u32, protocol.0);
            }
            NoSession::Binding(SessionError::Full { sessions_max }) => {
                self.log.quota(Event::MappingQuota, *sessions_max as u32);
            }
            _ => {}
        }
        why.into()
    }

    /// Is there a session left? That there is none is logged.
    fn check_sessions(&mut self) -> Result<(), Nat64Drop> {
        let most = self.writer.sessions_max();
        if self.writer.len() < most {
            return Ok(());
        }
        self.log.quota(Event::SessionQuota, most as u32);
        Err(Nat64Drop::SessionsExceeded)
    }

    /// May a host's subscriber have one more session?
    fn check_limit(&mut self, rules: &Rules, host: u128, table: u32) -> Result<(), Nat64Drop> {
        let Some(limit) =
            rules.limit.filter(|_| self.bindings.is_at_limit(rules.limit, host, table))
        else {
            return Ok(());
        };
        let subscriber = subscriber(host, limit.prefix_length);
        self.log.quota64((table, subscriber), limit.sessions);
        Err(Nat64Drop::SubscriberLimit)
    }

    /// The binding of a host's end, made when there is none; its number.
    fn bind(&mut self, rules: &Rules, inside: &Inside, now_s: u32) -> Result<u32, Nat64Drop> {
        let Inside { host, ports, protocol, table, .. } = *inside;
        let (port, outside_table) = (ports.source, rules.outside_table);
        let wanted = Wanted { host, port, protocol, table, outside_table, now_s };
        let external = External::Pool { pool: &rules.pool, has_ports: true };
        let bound = self.bindings.bind_host(&mut self.ports, wanted, external);
        let (number, is_new) = bound.map_err(|why| self.note_refusal(why, protocol))?;
        if is_new {
            self.log.binding(Event::MappingCreate64, self.bindings.read.get(number));
        }
        Ok(number)
    }
}

/// A worker's instance.
pub(crate) struct SlowPath {
    pub translator: Translator,
    /// The owner's, while NAT64 is enabled.
    pub owner: Option<Box<Owner>>,
    queue: SlowQueue,
}

impl SlowPath {
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
            self.queue.note_found();
            return Ok(number);
        }
        let flags = kind.opens(inside.protocol)?;
        owner.log.set_now(cx.now_ns);
        owner.check_sessions()?;
        owner.check_limit(rules, inside.host, inside.table)?;
        let binding = owner.bind(rules, &inside, now_s)?;
        let is_hairpin = rules.external.contains_key(&inside.remote);
        let new = NewSession {
            inside,
            prefix,
            external: narrow(owner.bindings.read.get(binding).external()),
            outside_table: rules.outside_table,
            binding,
            flags: if is_hairpin { Flags::HAIRPIN } else { Flags::default() },
            now_s,
            first: (Direction::InToOut, flags),
        };
        let made = owner.make(rules, new, NewSession::words);
        if made.is_err() {
            let Owner { bindings, log, .. } = owner.as_mut();
            bindings.discard(binding, |binding| log.binding(Event::MappingDelete64, binding));
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
            Some((number, _)) => {
                self.queue.note_found();
                number
            }
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
        let flags = kind.opens(flow.protocol)?;
        if rules.filtering == Filtering::AddressDependent
            && !found.is_static()
            && !owner.bindings.is_permitted(binding, remote.address.into())
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
        let made = owner.make(rules, new, NewSession::words);
        self.note_made(cx, made)
    }

    fn note_made(
        &mut self,
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
            self.queue.wind(cx);
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
}

impl SessionMaker for SlowPath {
    type Reason = Nat64Drop;
    const CONGESTION: Nat64Drop = Nat64Drop::Congestion;
    const BACK_PRESSURE: Nat64Drop = Nat64Drop::BackPressure;

    fn queue(&mut self) -> &mut SlowQueue {
        &mut self.queue
    }

    fn key(&self, packet: &Packet) -> [u64; KEY_WORDS] {
        let SlowRequest { from_inside } = packet.handed_over();
        if from_inside {
            let Ok(read) = read6(packet) else { return ip6::flow::NO_KEY };
            return ip6::flow::of(packet, &read, 0).1.key(Side::Inside);
        }
        let [ends, rest] = key_of(packet, 0);
        [ends, rest, 0, 0, 0]
    }

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

    fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(owner) = &mut self.owner else { return false };
        let shared = &self.translator.shared;
        owner.collect();
        let now_s = (cx.now_ns / 1_000_000_000) as u32;
        let places = places_of_turn(owner.writer.places());
        owner.log.set_now(cx.now_ns);
        let grace_s = owner.log.grace_s();
        let ended = owner.end_where(shared.rules(cx.pass), places, |session| {
            let grace_s = if session.mark() == 0 { 0 } else { grace_s };
            let timeout_s = shared.timeouts.get(session.class());
            now_s.saturating_sub(session.seen_s()) > timeout_s + grace_s
        });
        if ended > 0 {
            shared.expired.fetch_add(ended as u64, Ordering::Relaxed);
            shared.note(&owner.writer, &owner.bindings);
        }
        // An empty table is not turned again: the places of its last sessions are free from now.
        owner.collect();
        !owner.writer.is_empty()
    }
}

impl Node for SlowPath {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        run_slow_path(self, cx, frame);
    }

    fn as_any(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }

    fn tick(&mut self, cx: &mut Context<'_>) -> Option<u64> {
        tick_slow_path(self, cx)
    }
}

/// The declaration.
pub(crate) fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::new(SLOW_PATH, "Makes sessions, and translates ICMP errors", move |wiring| {
        Box::new(SlowPath {
            translator: Translator::new(&shared, wiring),
            owner: None,
            queue: SlowQueue::new(wiring.worker),
        })
    })
    .slow_path()
    .reasons::<Nat64Drop>()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}

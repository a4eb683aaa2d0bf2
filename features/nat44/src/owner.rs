//! `nat44-ed-slowpath`: the worker that owns the sessions makes them, and ends those whose time is
//! over. Others hand packets that need a session over to it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet, WorkerId};
use quiver_forwarding::IcmpErrorRequest;
use quiver_tables::exact::NOT_FOUND;
use quiver_tables::sessions::SessionError;
use quiver_translation::flow::{End, Flow, Key, Kind, classify, icmp};
use quiver_wire::IpProtocol;

use crate::icmp_error;
use crate::node::{
    IN2OUT, InterfaceState, Nat44Drop, OUT2IN, SLOW_PATH, SlowRequest, Translator, destination,
};
use crate::session::{Direction, Flags, NewSession, Session, Writer, flag};
use crate::tables::{Rules, Shared};

/// The worker that makes sessions.
pub(crate) const OWNER: WorkerId = WorkerId(0);
/// RFC 6888 REQ-11.
const HOST_UNREACHABLE: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 1, detail: 0 };
/// Dynamic ports (RFC 6056 §3.2): all but the well-known ones.
const FIRST_PORT: u16 = 1024;
const PORTS: u32 = 65_536 - FIRST_PORT as u32;
/// Ports that are tried in one look-up. It divides [`PORTS`].
const PORTS_PER_LOOK_UP: u32 = 64;
/// Addresses whose whole range is searched for one packet; of the others, one look-up's ports are
/// tried. So many take about 2 ms.
const ADDRESSES_SEARCHED: usize = 4;
/// Nanoseconds between two turns of the clock hand, and the turns of a whole round.
const TURN_NS: u64 = 10_000_000;
const TURNS_OF_ROUND: usize = 1_000;
/// Sessions that a turn looks at, at least.
const TURN_PLACES_MIN: usize = 64;
/// Destinations of which it is remembered that no port is free.
const EXHAUSTED_MAX: usize = 256;

const _: () = assert!(PORTS.is_multiple_of(PORTS_PER_LOOK_UP));

/// What no port is left for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Exhausted {
    remote: End,
    protocol: u8,
    tables: (u32, u32),
    /// Second until which it is believed.
    until_s: u32,
}

/// What the owner has.
pub(crate) struct Owner {
    pub writer: Writer,
    random: u64,
    exhausted: Box<[Exhausted; EXHAUSTED_MAX]>,
}

impl Owner {
    /// `seed` is a secret.
    pub fn new(writer: Writer, seed: u64) -> Owner {
        let exhausted = Box::new([Exhausted::default(); EXHAUSTED_MAX]);
        Owner { writer, random: seed | 1, exhausted }
    }

    /// The next number of a sequence (xorshift) that begins with a secret.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn exhausted_place(what: &Exhausted) -> usize {
        let word = u64::from(what.remote.address) << 24
            ^ u64::from(what.remote.port) << 8
            ^ u64::from(what.protocol);
        (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % EXHAUSTED_MAX
    }

    fn is_exhausted(&self, what: Exhausted, now_s: u32) -> bool {
        let known = self.exhausted[Self::exhausted_place(&what)];
        known.until_s > now_s && Exhausted { until_s: 0, ..known } == what
    }

    fn note_exhausted(&mut self, what: Exhausted, now_s: u32) {
        self.exhausted[Self::exhausted_place(&what)] = Exhausted { until_s: now_s + 1, ..what };
    }

    /// A port for which `key_of` is free: the wanted one, or one of the `count` from a random one
    /// on.
    fn port(
        &mut self,
        wanted: u16,
        count: u32,
        is_free_by_rules: impl Fn(u16) -> bool,
        key_of: impl Fn(u16) -> Key,
    ) -> Option<u16> {
        if wanted != 0 && is_free_by_rules(wanted) && self.writer.get(&key_of(wanted)).is_none() {
            return Some(wanted);
        }
        let start = (((self.random() >> 32) * u64::from(PORTS)) >> 32) as u32;
        let table = self.writer.table();
        for first in (0..count).step_by(PORTS_PER_LOOK_UP as usize) {
            let port = |at: usize| FIRST_PORT + ((start + first + at as u32) % PORTS) as u16;
            let keys: [Key; PORTS_PER_LOOK_UP as usize] =
                std::array::from_fn(|at| key_of(port(at)));
            let mut found = [NOT_FOUND; PORTS_PER_LOOK_UP as usize];
            table.lookup_slice(Variant::best(), &keys, &mut found);
            let free =
                (0..found.len()).find(|at| found[*at] == NOT_FOUND && is_free_by_rules(port(*at)));
            if let Some(at) = free {
                return Some(port(at));
            }
        }
        None
    }
}

/// A worker's instance.
pub(crate) struct SlowPath {
    translator: Translator,
    /// `nat44-ed-in2out`, `nat44-ed-out2in`.
    features: [NodeId; 2],
    own: NodeId,
    /// The owner's, while NAT44 is enabled.
    pub owner: Option<Box<Owner>>,
}

/// Why there is no session, for the caller.
enum Refused {
    /// The packet dies.
    Dies(Nat44Drop),
    /// The sender gets an ICMP error.
    Answered(Nat44Drop),
}

impl From<Nat44Drop> for Refused {
    fn from(reason: Nat44Drop) -> Refused {
        Refused::Dies(reason)
    }
}

/// Of a packet: does it open something?
fn check_opens(flow: &Flow, kind: Kind) -> Result<u8, Nat44Drop> {
    match kind {
        Kind::Data { tcp_flags } if flow.protocol == IpProtocol::TCP => {
            let opens = flag::SYN | flag::ACK | flag::RST | flag::FIN;
            (tcp_flags & opens == flag::SYN).then_some(tcp_flags).ok_or(Nat44Drop::NonSyn)
        }
        Kind::Query { kind: icmp::ECHO | icmp::TIMESTAMP } | Kind::Data { .. } => Ok(0),
        _ => Err(Nat44Drop::BadIcmpType),
    }
}

impl SlowPath {
    /// End the sessions for which `ends` holds among the next `places`; how many places there are.
    pub fn end_where(&mut self, places: usize, ends: &impl Fn(Session<'_>) -> bool) -> usize {
        let Some(owner) = &mut self.owner else { return 0 };
        owner.writer.turn(places, |_, words| !ends(Session(words)));
        self.translator.shared.note_sessions(&owner.writer);
        owner.writer.places()
    }

    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, Nat44Drop> {
        let SlowRequest { from_inside } = packet.handed_over();
        let feature = self.features[usize::from(!from_inside)];
        let state = self.translator.interface_state(cx, packet.rx, feature);
        let shared = self.translator.shared.clone();
        let rules = shared.rules(cx.pass);
        let sessions = shared.table().ok_or(Nat44Drop::NotEnabled)?;
        let (kind, flow) = classify(packet, state.table);
        match kind {
            Kind::IcmpError => return self.icmp_error(cx, state, packet, rules),
            Kind::OtherIcmp => return Err(Nat44Drop::BadIcmpType),
            Kind::LostFragment => return Err(Nat44Drop::FragmentWithoutFirst),
            Kind::Truncated => return Err(Nat44Drop::Truncated),
            Kind::Data { .. } | Kind::Query { .. } => {}
        }
        let known = sessions.0.lookup(&flow.key());
        let made = match known {
            Some(index) => Ok(index),
            None => check_opens(&flow, kind)
                .map_err(Refused::Dies)
                .and_then(|tcp_flags| self.make(cx, rules, flow, tcp_flags, state, from_inside)),
        };
        let index = match made {
            Ok(index) => index,
            Err(Refused::Dies(reason)) => return Err(reason),
            Err(Refused::Answered(reason)) => {
                cx.count(reason, 1);
                packet.hand_over(HOST_UNREACHABLE);
                return Ok(self.translator.icmp_error);
            }
        };
        let session = Session(sessions.1.get(index >> 1));
        Ok(self.translator.pass_on(state, packet, session, Direction::of_index(index)))
    }

    fn icmp_error(
        &mut self,
        cx: &Context<'_>,
        state: InterfaceState,
        packet: &mut Packet,
        rules: &Rules,
    ) -> Result<NodeId, Nat44Drop> {
        let shared = self.translator.shared.clone();
        let sessions = shared.table().ok_or(Nat44Drop::NotEnabled)?;
        match icmp_error::translate(packet, state.table, sessions) {
            Ok(table) => {
                cx.count(Nat44Drop::ErrorTranslated, 1);
                Ok(self.translator.next(state, packet, table))
            }
            // It may be about a packet of the router itself.
            Err(Nat44Drop::InnerHasNoSession)
                if destination(packet).and_then(|to| rules.external.get(&to)) == Some(&true) =>
            {
                Ok(state.behind.take(packet))
            }
            Err(reason) => Err(reason),
        }
    }

    /// Make a session; its index and the direction of the packet that makes it.
    fn make(
        &mut self,
        cx: &mut Context<'_>,
        rules: &Rules,
        flow: Flow,
        tcp_flags: u8,
        state: InterfaceState,
        from_inside: bool,
    ) -> Result<u32, Refused> {
        let owner = self.owner.as_mut().ok_or(Nat44Drop::NotEnabled)?;
        if owner.writer.len() >= owner.writer.sessions_max() {
            return Err(Refused::Answered(Nat44Drop::SessionsExceeded));
        }
        let (inside, outside, flags) = match from_inside {
            true => from_inside_flows(owner, rules, flow, state.now_s)?,
            false => from_outside_flows(rules, flow)?,
        };
        let direction = if from_inside { Direction::InToOut } else { Direction::OutToIn };
        let new = NewSession {
            inside,
            outside,
            flags,
            now_s: state.now_s,
            first: (direction, tcp_flags),
        };
        let session = owner.writer.insert(new.words()).map_err(|error| match error {
            SessionError::Full { .. } | SessionError::Waiting => {
                Refused::Answered(Nat44Drop::SessionsExceeded)
            }
            SessionError::Collides { .. } => Refused::Dies(Nat44Drop::NoTranslation),
            SessionError::Table(_) => Refused::Dies(Nat44Drop::Crowded),
        })?;
        cx.count(Nat44Drop::Made, 1);
        if flags.has(Flags::HAIRPIN) {
            cx.count(Nat44Drop::Hairpinned, 1);
        }
        self.translator.shared.made.fetch_add(1, Ordering::Relaxed);
        self.translator.shared.note_sessions(&owner.writer);
        let due_ns = cx.now_ns + TURN_NS;
        cx.tick_at(due_ns);
        Ok(2 * session + direction as u32)
    }
}

/// The flows of a session that a packet from inside makes.
fn from_inside_flows(
    owner: &mut Owner,
    rules: &Rules,
    flow: Flow,
    now_s: u32,
) -> Result<(Flow, Flow, Flags), Refused> {
    let is_icmp = flow.is_icmp();
    // To an outside address: a host inside is meant (RFC 4787 REQ-9).
    let hairpin = match rules.external.contains_key(&flow.destination.address) {
        true => {
            let mapping = rules.mapping_to(flow.destination, flow.protocol);
            let mapping = mapping.ok_or(Nat44Drop::NoTranslation)?;
            let port = match mapping.is_whole() {
                true => flow.destination.port,
                false => mapping.local.port,
            };
            Some((End { address: mapping.local.address, port }, mapping.table))
        }
        false => None,
    };
    let (remote, table) = hairpin.unwrap_or((flow.destination, rules.outside_table));
    let outside = |external: End| Flow {
        // An identifier is the same at both ends.
        source: if is_icmp { End { port: external.port, ..remote } } else { remote },
        destination: external,
        protocol: flow.protocol,
        table,
    };
    let mut flags = if hairpin.is_some() { Flags::HAIRPIN } else { Flags::default() };
    if let Some(mapping) = rules.mapping_of(flow.source, flow.protocol, flow.table) {
        let port = if mapping.is_whole() { flow.source.port } else { mapping.external.port };
        flags.0 |= Flags::STATIC.0;
        let external = End { address: mapping.external.address, port };
        return Ok((flow, outside(external), flags));
    }
    let external = dynamic_end(owner, rules, flow, remote, table, now_s, &outside)?;
    Ok((flow, outside(external), flags))
}

/// An address and a port of the pool.
fn dynamic_end(
    owner: &mut Owner,
    rules: &Rules,
    flow: Flow,
    remote: End,
    table: u32,
    now_s: u32,
    outside: &impl Fn(End) -> Flow,
) -> Result<End, Refused> {
    let what = Exhausted {
        remote: if flow.is_icmp() { End { port: 0, ..remote } } else { remote },
        protocol: flow.protocol.0,
        tables: (flow.table, table),
        until_s: 0,
    };
    if owner.is_exhausted(what, now_s) {
        return Err(Refused::Answered(Nat44Drop::OutOfPorts));
    }
    let own = rules.pool.iter().any(|address| address.tenant == Some(flow.table));
    let tenant = own.then_some(flow.table);
    let pool = || rules.pool.iter().filter(move |address| address.tenant == tenant);
    let count = pool().count();
    if count == 0 {
        return Err(Refused::Answered(Nat44Drop::OutOfPorts));
    }
    // A host keeps its address while that has ports (RFC 4787 REQ-2).
    let hash = u64::from(flow.source.address).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let first = ((hash * count as u64) >> 32) as usize;
    let has_ports = matches!(flow.protocol, IpProtocol::TCP | IpProtocol::UDP) || flow.is_icmp();
    if !has_ports {
        let ends = pool().cycle().skip(first).take(count);
        let mut ends = ends.map(|pooled| End { address: pooled.address, port: 0 });
        let free = ends.find(|end| owner.writer.get(&outside(*end).key()).is_none());
        return free.ok_or(Refused::Answered(Nat44Drop::OutOfPorts));
    }
    for (addresses, ports) in [(count, PORTS_PER_LOOK_UP), (ADDRESSES_SEARCHED, PORTS)] {
        for pooled in pool().cycle().skip(first).take(addresses.min(count)) {
            let address = pooled.address;
            let key_of = |port| outside(End { address, port }).key();
            let may = |port: u16| !rules.is_reserved(End { address, port }, flow.protocol);
            if let Some(port) = owner.port(flow.source.port, ports, may, key_of) {
                return Ok(End { address, port });
            }
        }
    }
    owner.note_exhausted(what, now_s);
    Err(Refused::Answered(Nat44Drop::OutOfPorts))
}

/// The flows of a session that a packet from outside to a static mapping makes.
fn from_outside_flows(rules: &Rules, flow: Flow) -> Result<(Flow, Flow, Flags), Refused> {
    let mapping = rules.mapping_to(flow.destination, flow.protocol);
    let mapping = mapping.ok_or(Nat44Drop::NoTranslation)?;
    let port = if mapping.is_whole() { flow.destination.port } else { mapping.local.port };
    let remote_port = if flow.is_icmp() { port } else { flow.source.port };
    let inside = Flow {
        source: End { address: mapping.local.address, port },
        destination: End { port: remote_port, ..flow.source },
        protocol: flow.protocol,
        table: mapping.table,
    };
    Ok((inside, flow, Flags::STATIC))
}

impl Node for SlowPath {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        if cx.worker == OWNER {
            frame.route(|packet| self.decide(cx, packet));
            return;
        }
        for packet in frame.drain() {
            cx.trace(&packet, self.own);
            if let Err(packet) = cx.hand_off(packet, OWNER, self.own) {
                cx.kill(packet, Nat44Drop::Congestion);
            }
        }
    }

    fn as_any(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }

    /// Turn the clock hand.
    fn tick(&mut self, cx: &mut Context<'_>) -> Option<u64> {
        let owner = self.owner.as_mut()?;
        let shared = &self.translator.shared;
        owner.writer.collect();
        let now_s = (cx.now_ns / 1_000_000_000) as u32;
        let places = (owner.writer.places() / TURNS_OF_ROUND).max(TURN_PLACES_MIN);
        let ended = owner.writer.turn(places, |_, words| {
            let session = Session(words);
            now_s.saturating_sub(session.seen_s()) <= shared.timeout_s(session.class())
        });
        if ended > 0 {
            shared.expired.fetch_add(ended as u64, Ordering::Relaxed);
            shared.note_sessions(&owner.writer);
        }
        (!owner.writer.is_empty()).then_some(cx.now_ns + TURN_NS)
    }
}

/// The declaration.
pub(crate) fn spec(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::new(SLOW_PATH, "Makes sessions, and translates ICMP errors", move |wiring| {
        Box::new(SlowPath {
            translator: Translator::new(&shared, arc, wiring),
            features: [IN2OUT, OUT2IN]
                .map(|name| wiring.number(name).unwrap_or(quiver_core::graph::node::DROP)),
            own: wiring.id,
            owner: None,
        })
    })
    .slow_path()
    .reasons::<Nat44Drop>()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}

//! `nat44-ed-slowpath`: the worker that owns the sessions makes them, and ends those whose time is
//! over. Others hand packets that need a session over to it.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::IcmpErrorRequest;
use quiver_nat_log::Event;
use quiver_sessions::{
    KEY_WORDS, SessionMaker, SlowQueue, places_of_turn, run_slow_path, tick_slow_path,
};
use quiver_translation::flow::{Flow, Kind, classify_with, key_with};
use quiver_wire::IpProtocol;

use crate::alg::{Count, Helped};
use crate::bindings::Binding;
use crate::flows::{self, Moment, Plan, check_opens};
use crate::icmp_error;
use crate::node::{
    IN2OUT, InterfaceState, Nat44Drop, OUT2IN, SLOW_PATH, SlowRequest, Translator, destination,
};
use crate::owned::{Owner, Refused};
use crate::session::{Direction, Flags, Session};
use crate::softwires;
use crate::softwires::answers::{Answers, Softwire};
use crate::softwires::encapsulate::ToB4s;
use crate::softwires::fragments::Fragments;
use crate::tables::{Rules, Shared};

/// RFC 6888 REQ-11.
const HOST_UNREACHABLE: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 1, detail: 0 };

/// Where a packet came from.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    Inside,
    Outside,
    Softwire(Softwire),
}

/// A worker's instance.
pub(crate) struct SlowPath {
    pub translator: Translator,
    /// `nat44-ed-in2out`, `nat44-ed-out2in`.
    features: [NodeId; 2],
    pub own: NodeId,
    /// To hosts behind B4s.
    pub answers: Answers,
    pub fragments: Fragments,
    /// The owner's, while NAT44 is enabled.
    pub owner: Option<Box<Owner>>,
    queue: SlowQueue,
}

/// Seconds of the router's clock, as sessions have them.
pub(crate) fn seconds(now_ns: u64) -> u32 {
    (now_ns / 1_000_000_000) as u32
}

/// Does a packet go no further?
pub(crate) fn is_last_hop(packet: &Packet) -> bool {
    packet.bytes().get(8).is_some_and(|ttl| *ttl <= 1)
}

impl SlowPath {
    /// End the sessions for which `ends` holds among `places` from the first on; how many places
    /// there are.
    pub fn end_from(
        &mut self,
        rules: &Rules,
        now_ns: u64,
        places: (u32, u32),
        ends: &impl Fn(Session<'_>) -> bool,
    ) -> usize {
        let Some(owner) = &mut self.owner else { return 0 };
        owner.end_from(rules, now_ns, places, ends);
        self.translator.shared.note_sessions(&owner.writer);
        owner.writer.places()
    }

    /// End the bindings that nobody uses and for which `ends` holds among `places` from the first
    /// on; how many places there are.
    pub fn end_bindings_from(
        &mut self,
        rules: &Rules,
        now_ns: u64,
        places: (u32, u32),
        ends: &impl Fn(Binding<'_>) -> bool,
    ) -> usize {
        let Some(Owner { bindings: Some(bindings), log, .. }) = self.owner.as_deref_mut() else {
            return 0;
        };
        log.set_now(now_ns);
        bindings.end_from(places, (seconds(now_ns), log), &rules.provider, ends);
        self.translator.shared.note_bindings(bindings);
        bindings.writer.places()
    }

    /// Say what there is.
    pub fn note_tables(&self) {
        let Some(owner) = &self.owner else { return };
        self.translator.shared.note_sessions(&owner.writer);
        if let Some(bindings) = &owner.bindings {
            self.translator.shared.note_bindings(bindings);
        }
        if let Some(softwires) = &owner.softwires {
            self.translator.shared.note_softwires(softwires);
        }
    }

    /// What is configured now.
    pub fn rules<'p>(&self, cx: &Context<'p>) -> &'p Rules {
        self.translator.shared.rules(cx.pass)
    }

    /// Translate a packet by its session, made where there is none.
    pub fn through_session(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
        (rules, state): (&Rules, InterfaceState),
        (kind, flow): (Kind, Flow),
        side: Side,
    ) -> Result<NodeId, Nat44Drop> {
        let shared = self.translator.shared.clone();
        let sessions = shared.table().ok_or(Nat44Drop::NotEnabled)?;
        let known = sessions.0.lookup(&flow.key());
        let made = match known {
            Some(index) => {
                self.queue.note_found();
                Ok(index)
            }
            // Those of a call are known before, by its control connection.
            None if flow.protocol == IpProtocol::GRE && flow.destination.port != 0 => {
                Err(Refused::Dies(Nat44Drop::NoCall))
            }
            None => check_opens(&flow, kind)
                .map_err(Refused::Dies)
                .and_then(|tcp_flags| self.make(cx, rules, flow, tcp_flags, state, side)),
        };
        let index = match made {
            Ok(index) => index,
            Err(Refused::Dies(reason)) => return Err(reason),
            Err(Refused::Answered(reason)) => {
                self.note_refusal(reason);
                cx.count(reason, 1);
                if let Side::Softwire(softwire) = side {
                    let about = (HOST_UNREACHABLE, Nat44Drop::NoTranslation);
                    return self.answers.error(cx, packet, softwire, about);
                }
                packet.hand_over(HOST_UNREACHABLE);
                return Ok(self.translator.icmp_error);
            }
            Err(Refused::Silent(reason)) => {
                cx.count(reason, 1);
                return Err(Nat44Drop::NoTranslation);
            }
        };
        let session = Session(sessions.1.get(index >> 1));
        let direction = Direction::of_index(index);
        // Who gets an ICMP error gets its packet back as it was.
        if session.is_helped() && !is_last_hop(packet) {
            let (number, at) = (index >> 1, Moment::of(cx));
            let shared = &shared.algs;
            self.help(Helped { rules, shared, number, session, direction, at }, packet)?;
        }
        Ok(self.translator.pass_on(state, packet, session, direction))
    }

    /// Let the owner translate the text of a packet, and note the sessions that this makes.
    fn help(&mut self, helped: Helped<'_>, packet: &mut Packet) -> Result<(), Nat44Drop> {
        let owner = self.owner.as_mut().ok_or(Nat44Drop::NotEnabled)?;
        owner.log.set_now(helped.at.now_ns);
        let before = owner.writer.len();
        let done = owner.help(helped, packet);
        let made = owner.writer.len().saturating_sub(before) as u64;
        self.translator.shared.made.fetch_add(made, Ordering::Relaxed);
        self.note_tables();
        done
    }

    /// What is refused is logged where the limit is known; but for that of bindings.
    fn note_refusal(&mut self, reason: Nat44Drop) {
        if let Nat44Drop::BindingsExceeded = reason
            && let Some(Owner { bindings: Some(bindings), log, .. }) = self.owner.as_deref_mut()
        {
            log.quota(Event::MappingQuota, (0, 0), bindings.writer.sessions_max() as u32);
        }
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
        side: Side,
    ) -> Result<u32, Refused> {
        let owner = self.owner.as_mut().ok_or(Nat44Drop::NotEnabled)?;
        owner.log.set_now(cx.now_ns);
        if owner.writer.len() >= owner.writer.sessions_max() {
            let most = owner.writer.sessions_max() as u32;
            owner.log.quota(Event::SessionQuota, (rules.inside_table, 0), most);
            return Err(Refused::Answered(Nat44Drop::SessionsExceeded));
        }
        let at = Moment::of(cx);
        let from_inside = !matches!(side, Side::Outside);
        let plan = if from_inside {
            let to = flow.destination.address;
            let table = self.translator.outside_table(rules, state, to);
            flows::from_inside(owner, rules, flow, table.unwrap_or(rules.outside_table), at)?
        } else {
            flows::from_outside(owner, rules, flow, at)?
        };
        let direction = if from_inside { Direction::InToOut } else { Direction::OutToIn };
        let shared = &self.translator.shared.algs;
        let helper = owner.helper_of(shared, &plan, &flow);
        let flags = if helper.is_some() { plan.flags.with(Flags::HELPED) } else { plan.flags };
        let plan = Plan { flags, ..plan };
        let session = owner.begin_session(rules, plan, (direction, tcp_flags), at)?;
        if let Some(helper) = helper {
            owner.algs.begin(session, helper, direction);
            shared.count(helper, Count::Sessions);
        }
        if flags.has(Flags::EXPECTED) {
            owner.end_expected(rules, &flow, state.now_s);
        }
        cx.count(Nat44Drop::Made, 1);
        if flags.has(Flags::HAIRPIN) {
            cx.count(Nat44Drop::Hairpinned, 1);
        }
        self.translator.shared.made.fetch_add(1, Ordering::Relaxed);
        self.note_tables();
        self.queue.wind(cx);
        Ok(2 * session + direction as u32)
    }
}

impl SessionMaker for SlowPath {
    type Reason = Nat44Drop;
    const CONGESTION: Nat44Drop = Nat44Drop::Congestion;
    const BACK_PRESSURE: Nat44Drop = Nat44Drop::BackPressure;

    fn queue(&mut self) -> &mut SlowQueue {
        &mut self.queue
    }

    fn key(&self, packet: &Packet) -> [u64; KEY_WORDS] {
        if SlowRequest::Softwire == packet.handed_over() {
            return softwires::slow::key(packet);
        }
        let table = self.translator.tables.interfaces.table4(packet.rx);
        let [ends, rest] = key_with(packet, table, self.translator.shared.algs.has_calls());
        [ends, rest, 0, 0, 0]
    }

    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, Nat44Drop> {
        let (side, feature) = match packet.handed_over() {
            SlowRequest::Inside => (Side::Inside, self.features[0]),
            SlowRequest::Outside => (Side::Outside, self.features[1]),
            SlowRequest::Softwire => return self.receive_from_b4(cx, packet),
        };
        let state = self.translator.interface_state(cx, packet.rx, feature);
        let shared = self.translator.shared.clone();
        let rules = shared.rules(cx.pass);
        let (kind, flow) = classify_with(packet, state.table, state.has_calls);
        match kind {
            Kind::IcmpError => return self.icmp_error(cx, state, packet, rules),
            Kind::OtherIcmp => return Err(Nat44Drop::BadIcmpType),
            Kind::LostFragment => return Err(Nat44Drop::FragmentWithoutFirst),
            Kind::Truncated => return Err(Nat44Drop::Truncated),
            Kind::Data { .. } | Kind::Query { .. } => {}
        }
        self.through_session(cx, packet, (rules, state), (kind, flow), side)
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(owner) = &mut self.owner else { return false };
        let shared = &self.translator.shared;
        let provider = &shared.rules(cx.pass).provider;
        owner.writer.collect();
        let now_s = seconds(cx.now_ns);
        let grace_s = owner.log.grace_s();
        let is_over = |session: Session<'_>| {
            let grace_s = if session.mark() == 0 { 0 } else { grace_s };
            now_s.saturating_sub(session.seen_s()) > shared.timeout_s(session.class()) + grace_s
        };
        let places = places_of_turn(owner.writer.places());
        let ended = owner.end_where(shared.rules(cx.pass), cx.now_ns, places, &is_over);
        owner.turn_expected(shared.rules(cx.pass), now_s);
        let Owner { writer, bindings, softwires, algs, log, .. } = &mut **owner;
        if ended > 0 {
            shared.expired.fetch_add(ended as u64, Ordering::Relaxed);
            shared.note_sessions(writer);
        }
        let mut is_empty = writer.is_empty() && algs.expected.writer.is_empty();
        if let Some(bindings) = bindings {
            bindings.turn(places_of_turn(bindings.writer.places()), now_s, provider, log);
            shared.note_bindings(bindings);
            is_empty &= bindings.writer.is_empty();
        }
        if let Some(softwires) = softwires {
            let places = places_of_turn(softwires.writer.places());
            softwires.turn(places, now_s, (bindings.as_deref(), provider));
            shared.note_softwires(softwires);
            is_empty &= softwires.writer.is_empty();
        }
        // An empty table is not turned again: the places of its last sessions are free from now.
        writer.collect();
        !is_empty
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
pub(crate) fn spec(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::new(SLOW_PATH, "Makes sessions, and translates ICMP errors", move |wiring| {
        Box::new(SlowPath {
            translator: Translator::new(&shared, arc, wiring),
            features: [IN2OUT, OUT2IN]
                .map(|name| wiring.number(name).unwrap_or(quiver_core::graph::node::DROP)),
            own: wiring.id,
            answers: Answers::new(ToB4s::new(wiring)),
            fragments: Fragments::new(RandomState::new().hash_one(wiring.worker.index())),
            owner: None,
            queue: SlowQueue::new(wiring.worker),
        })
    })
    .slow_path()
    .reasons::<Nat44Drop>()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}

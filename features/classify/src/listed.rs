//! A node that looks up the session of each packet, and lets something become of it: the shape that
//! all nodes of sessions have.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::{ArcId, INTERFACE_OUTPUT};
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::{DROP, Reason, Wiring};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::exact::NOT_FOUND;

use crate::action::{Action, SessionAction};
use crate::request::{self, Request};
use crate::tables::{Access, Direction, End, Purpose, Tables};

/// Sessions that are looked up before anything becomes of their packets.
const BATCH: usize = 128;

/// What becomes of packets that meet sessions.
pub(crate) trait Effect: Sized + Send + 'static {
    /// The node's name.
    const NAME: &'static str;
    /// The interfaces' tables that are asked.
    const OF: (Purpose, Direction);
    /// Why packets die, and what is counted.
    type Reason: Reason;
    /// What becomes of a packet; by default it goes on as it is.
    type Outcome: Copy + Default + Send;
    /// What is had while neighbouring packets are decided about.
    type Run<'r>;

    /// The table that classifies a packet first, as its number plus one.
    #[inline(always)]
    fn first(access: Access, bytes: &[u8]) -> u16 {
        request::first_of(access, bytes)
    }

    /// Bytes in front of a packet that belong to what tables classify.
    #[inline(always)]
    fn front(packet: &Packet, is_bare: bool) -> usize {
        let _ = (packet, is_bare);
        0
    }

    /// What [`meet`](Self::meet) wants to know of a packet's size.
    fn weight(packet: &Packet) -> u32;

    /// How many packets a session counts for one of that weight.
    fn packets(weight: u32) -> u64;

    /// Before the first packet.
    fn begin<'r>(&'r self, context: StageContext<'r>) -> Self::Run<'r>;

    /// What becomes of a packet that has met a session with this action.
    fn meet(&self, run: &mut Self::Run<'_>, action: SessionAction, weight: u32) -> Self::Outcome;

    /// What becomes of a packet that has met no session, by the last table of the chain.
    fn missed(action: Action) -> Self::Outcome;

    /// Let it become of the packet; the answer is its next node, if that is not the one behind this
    /// node.
    ///
    /// # Errors
    /// The packet is dropped.
    fn carry_out(
        &self,
        context: StageContext<'_>,
        outcome: Self::Outcome,
        is_bare: bool,
        packet: &mut Packet,
    ) -> Result<Option<NodeId>, Self::Reason>;
}

/// What becomes of a packet, as far as its first table says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Met<O> {
    /// It has no session there: perhaps in a table behind.
    #[default]
    None,
    /// It has one.
    Session(O),
}

/// A worker's instance.
pub(crate) struct Listed<E: Effect> {
    tables: Arc<Tables>,
    arc: ArcId,
    own: NodeId,
    /// Where the arc of received packets ends, if that is not the interface's input.
    end: Option<NodeId>,
    effect: E,
}

/// What holds for packets that came in by an interface.
#[derive(Clone, Copy)]
pub(crate) struct State {
    access: Access,
    /// Of received packets.
    behind: Option<Behind>,
}

impl<E: Effect> Listed<E> {
    const IS_OUTPUT: bool = matches!(E::OF.1, Direction::Output);

    /// On an arc, which ends at `end` or at the interface's own node.
    pub fn new(
        wiring: &Wiring<'_>,
        tables: &Arc<Tables>,
        (arc, end): (ArcId, Option<NodeId>),
        effect: E,
    ) -> Self {
        Listed { tables: tables.clone(), arc, own: wiring.id, end, effect }
    }

    #[inline(always)]
    fn access(&self, state: State, packet: &Packet) -> Access {
        if Self::IS_OUTPUT { self.tables.access(E::OF, packet.tx) } else { state.access }
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        how: (Variant, bool),
        requests: &[Request],
        found: &mut [Met<E::Outcome>],
    ) {
        let mut run = self.effect.begin(context);
        let mut sessions = [NOT_FOUND; BATCH];
        let (mut current, mut action, mut packets) = (NOT_FOUND, SessionAction::PASS, 0);
        for (requests, found) in requests.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let sessions = &mut sessions[..requests.len()];
            request::find(&self.tables, how, requests, sessions);
            for ((request, session), met) in requests.iter().zip(&*sessions).zip(found) {
                if *session == NOT_FOUND {
                    *met = Met::None;
                    continue;
                }
                if *session != current {
                    self.count(current, packets);
                    (current, packets) = (*session, 0);
                    action = self.tables.action(current);
                }
                packets += E::packets(request.weight);
                *met = Met::Session(self.effect.meet(&mut run, action, request.weight));
            }
        }
        self.count(current, packets);
    }

    /// So many packets have met a session, if it is one.
    #[inline(always)]
    fn count(&self, session: u32, packets: u64) {
        if packets > 0 && session != NOT_FOUND {
            self.tables.hit(session, packets);
        }
    }

    /// The tables behind the first one, of a packet that has no session there.
    #[cold]
    #[inline(never)]
    fn missed(
        &self,
        context: StageContext<'_>,
        (table, is_bare): (u16, bool),
        weight: u32,
        packet: &mut Packet,
    ) -> E::Outcome {
        let (packets, front) = (E::packets(weight), E::front(packet, is_bare));
        if !packet.push(front) {
            return E::Outcome::default();
        }
        let end = self.tables.missed(table, context.pass(), (packet.bytes(), is_bare), packets);
        if !packet.pull(front) {
            return E::Outcome::default();
        }
        match end {
            End::Miss(action) => E::missed(action),
            End::Session(session) => {
                self.count(session, packets);
                let action = self.tables.action(session);
                self.effect.meet(&mut self.effect.begin(context), action, weight)
            }
        }
    }
}

impl<E: Effect> LookUp for Listed<E> {
    const NAME: &'static str = E::NAME;
    type Reason = E::Reason;
    type Key = Request;
    type Found = Met<E::Outcome>;
    type InterfaceState = State;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> State {
        let end = || cx.interface(rx).map_or(DROP, |row| row.input);
        let behind = || cx.behind(self.arc, rx, self.own, self.end.unwrap_or_else(end));
        State { access: self.tables.access(E::OF, rx), behind: (!Self::IS_OUTPUT).then(behind) }
    }

    #[inline(always)]
    fn key(&self, state: State, packet: &mut Packet) -> Request {
        let (access, weight) = (self.access(state, packet), E::weight(packet));
        let front = E::front(packet, access.is_bare);
        if front > 0 && !packet.push(front) {
            return Request::default();
        }
        let first = (E::first(access, packet.bytes()), access.is_bare);
        let request = Request::new(&self.tables, first, packet.bytes(), weight);
        if front > 0 && !packet.pull(front) {
            return Request::default();
        }
        request
    }

    fn find(&self, _: Variant, _: State, _: &[Request], found: &mut [Self::Found]) {
        found.fill(Met::None); // the loop calls the others
    }

    #[inline(always)]
    fn find_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        _: State,
        keys: &[Request],
        found: &mut [Self::Found],
    ) {
        self.decide(context, (variant, false), keys, found);
    }

    #[inline(always)]
    fn find_uniform_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        _: State,
        keys: &[Request],
        found: &mut [Self::Found],
    ) {
        self.decide(context, (variant, true), keys, found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        state: State,
        request: Request,
        found: Self::Found,
        packet: &mut Packet,
    ) -> Result<NodeId, E::Reason> {
        let is_bare = self.access(state, packet).is_bare;
        let outcome = match (request.table(), found) {
            (None, _) => E::Outcome::default(),
            (_, Met::Session(outcome)) => outcome,
            (Some(table), Met::None) => {
                self.missed(context, (table, is_bare), request.weight, packet)
            }
        };
        if let Some(next) = self.effect.carry_out(context, outcome, is_bare, packet)? {
            return Ok(next);
        }
        Ok(match state.behind {
            Some(behind) => behind.take(packet),
            None => {
                let end = context.interface(packet.tx).map_or(DROP, |row| row.tx);
                context.next_in_arc(INTERFACE_OUTPUT, packet.tx, packet, end)
            }
        })
    }
}

//! `policer-classify-input`, `policer-classify-output`: the session that a packet meets says which
//! policer meters it.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::{DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_policing::{Neighbours, Policers, Verdict, dscp};
use quiver_tables::exact::NOT_FOUND;

use crate::action::SessionAction;
use crate::request::{self, Request};
use crate::tables::{Access, Direction, End, Purpose, Tables};

/// Sessions that are looked up before their packets are metered.
const BATCH: usize = 128;

quiver_core::reasons! {
    /// Why policers of sessions drop packets.
    pub enum PolicedDrop {
        /// Too much.
        Policed = "policed",
            "more than the rate of the session's policer lets pass (`show policer`)";
    }
}

impl Direction {
    /// The name of the node that lets sessions' policers meter.
    pub(crate) const fn policer_node(self) -> &'static str {
        match self {
            Direction::Input => "policer-classify-input",
            Direction::Output => "policer-classify-output",
        }
    }
}

/// What becomes of a packet, as far as its first table says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Met {
    /// It has no session there: perhaps in a table behind.
    #[default]
    None,
    /// It is metered, if it is at all.
    Session(Verdict),
}

/// A worker's instance.
pub(crate) struct Police<const OUTPUT: bool> {
    tables: Arc<Tables>,
    policers: Arc<Policers>,
    own: NodeId,
}

/// What holds for packets that came in by an interface.
#[derive(Clone, Copy)]
pub(crate) struct State {
    access: Access,
    behind: Option<Behind>,
}

impl<const OUTPUT: bool> Police<OUTPUT> {
    const OF: (Purpose, Direction) = (Purpose::Police, Direction::of(OUTPUT));

    #[inline(always)]
    fn access(&self, state: State, packet: &Packet) -> Access {
        if OUTPUT { self.tables.access(Self::OF, packet.tx) } else { state.access }
    }

    /// A packet of so many bytes has met a session.
    #[inline(always)]
    fn meter(&self, run: &mut Neighbours<'_>, session: u32, bytes: u64) -> Verdict {
        match self.tables.hit(session, 1) {
            SessionAction::Police { policer, before } => run.police(policer, bytes, || before),
            _ => Verdict::Pass,
        }
    }

    /// The tables behind the first one, of a packet that has no session there.
    #[cold]
    #[inline(never)]
    fn missed(&self, context: StageContext<'_>, at: (u16, bool), packet: &Packet) -> Verdict {
        let (table, is_bare) = at;
        match self.tables.missed(table, context.pass(), (packet.bytes(), is_bare), 1) {
            End::Miss(_) => Verdict::Pass,
            End::Session(session) => {
                let mut run = Neighbours::new(&self.policers, context.pass(), context.now_ns());
                self.meter(&mut run, session, packet.length() as u64)
            }
        }
    }
}

impl<const OUTPUT: bool> LookUp for Police<OUTPUT> {
    const NAME: &'static str = Direction::of(OUTPUT).policer_node();
    const LOOKS_BEHIND: bool = true;
    type Reason = PolicedDrop;
    type Key = Request;
    type Found = Met;
    type InterfaceState = State;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> State {
        let end = cx.interface(rx).map_or(DROP, |row| row.input);
        State {
            access: self.tables.access(Self::OF, rx),
            behind: (!OUTPUT).then(|| cx.behind(DEVICE_INPUT, rx, self.own, end)),
        }
    }

    #[inline(always)]
    fn key(&self, state: State, packet: &mut Packet) -> Request {
        let access = self.access(state, packet);
        let mut request = Request::of_frame(&self.tables, access, packet.bytes());
        request.length = packet.length() as u32;
        request
    }

    fn find(&self, _: Variant, _: State, _: &[Request], found: &mut [Met]) {
        found.fill(Met::None); // the loop calls the others
    }

    #[inline(always)]
    fn find_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        _: State,
        keys: &[Request],
        found: &mut [Met],
    ) {
        let mut run = Neighbours::new(&self.policers, context.pass(), context.now_ns());
        for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let mut sessions = [NOT_FOUND; BATCH];
            let sessions = &mut sessions[..keys.len()];
            request::find(&self.tables, (variant, context.pass()), keys, sessions);
            for ((key, session), met) in keys.iter().zip(sessions).zip(found) {
                *met = match *session {
                    NOT_FOUND => Met::None,
                    session => Met::Session(self.meter(&mut run, session, key.length.into())),
                };
            }
        }
    }

    #[inline(always)]
    fn find_uniform_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        state: State,
        keys: &[Request],
        found: &mut [Met],
    ) {
        self.find_in(context, variant, state, keys, found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        state: State,
        request: Request,
        found: Met,
        packet: &mut Packet,
    ) -> Result<NodeId, PolicedDrop> {
        let verdict = match (request.table(), found) {
            (None, _) => Verdict::Pass,
            (_, Met::Session(verdict)) => verdict,
            (Some(table), Met::None) => {
                let is_bare = self.access(state, packet).is_bare;
                self.missed(context, (table, is_bare), packet)
            }
        };
        match verdict {
            Verdict::Pass => {}
            Verdict::Drop => return Err(PolicedDrop::Policed),
            Verdict::Mark(code_point) => {
                let is_bare = self.access(state, packet).is_bare;
                dscp::mark(packet, is_bare, code_point);
            }
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

/// The declaration. Super-frames are cut before they are metered.
pub(crate) fn spec<const OUTPUT: bool>(tables: &Arc<Tables>) -> NodeSpec {
    let tables = tables.clone();
    let help = match OUTPUT {
        false => "Meters what interfaces receive by the policers of classifier sessions",
        true => "Meters what interfaces send by the policers of classifier sessions",
    };
    NodeSpec::look_up(help, move |wiring| Police::<OUTPUT> {
        tables: tables.clone(),
        policers: wiring.shared(),
        own: wiring.id,
    })
    .describe(|record, names| {
        format!("{} bytes, to {}", record.packet_bytes, names.node(record.next))
    })
}

//! `classify-input-acl`, `classify-output-acl`: the tables of an interface say what may pass.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::{DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::exact::NOT_FOUND;

use crate::action::Action;
use crate::request::{self, Request};
use crate::tables::{Access, Direction, End, Purpose, Tables};

quiver_core::reasons! {
    /// Why classifier tables drop packets.
    pub enum ClassifyDrop {
        /// A session or a table says so.
        Denied = "denied", "a session or the end of a chain of classifier tables denies it (`show \
            classify tables verbose`)";
    }
}

impl Direction {
    /// Its node's name.
    pub(crate) const fn node(self) -> &'static str {
        match self {
            Direction::Input => name(false),
            Direction::Output => name(true),
        }
    }

    /// The direction of a node.
    pub(crate) const fn of(is_output: bool) -> Direction {
        if is_output { Direction::Output } else { Direction::Input }
    }

    /// Its arc's name.
    pub(crate) const fn arc(self) -> &'static str {
        match self {
            Direction::Input => "device-input",
            Direction::Output => "interface-output",
        }
    }
}

const fn name(is_output: bool) -> &'static str {
    if is_output { "classify-output-acl" } else { "classify-input-acl" }
}

/// A worker's instance.
pub(crate) struct List<const OUTPUT: bool> {
    tables: Arc<Tables>,
    own: NodeId,
}

/// What holds for packets that came in by an interface.
#[derive(Clone, Copy)]
pub(crate) struct State {
    access: Access,
    behind: Option<Behind>,
}

impl<const OUTPUT: bool> List<OUTPUT> {
    const OF: (Purpose, Direction) = (Purpose::Access, Direction::of(OUTPUT));

    #[inline(always)]
    fn access(&self, state: State, packet: &Packet) -> Access {
        match OUTPUT {
            true => self.tables.access(Self::OF, packet.tx),
            false => state.access,
        }
    }
}

impl<const OUTPUT: bool> LookUp for List<OUTPUT> {
    const NAME: &'static str = name(OUTPUT);
    const LOOKS_BEHIND: bool = true;
    type Reason = ClassifyDrop;
    type Key = Request;
    type Found = u32;
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
        Request::of_frame(&self.tables, self.access(state, packet), packet.bytes())
    }

    #[inline(always)]
    fn find(&self, _: Variant, _: State, _: &[Request], found: &mut [u32]) {
        // Masks are read under a pass: `find_in` does it.
        found.fill(NOT_FOUND);
    }

    #[inline(always)]
    fn find_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        _: State,
        keys: &[Request],
        found: &mut [u32],
    ) {
        request::find(&self.tables, (variant, context.pass()), keys, found);
    }

    #[inline(always)]
    fn find_uniform_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        state: State,
        keys: &[Request],
        found: &mut [u32],
    ) {
        self.find_in(context, variant, state, keys, found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        state: State,
        request: Request,
        found: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, ClassifyDrop> {
        let action = match (request.table(), found) {
            (None, _) => Action::Permit,
            (Some(table), NOT_FOUND) => {
                let is_bare = self.access(state, packet).is_bare;
                let (bytes, packets) = (packet.bytes(), packet.on_wire().0);
                match self.tables.missed(table, context.pass(), (bytes, is_bare), packets) {
                    End::Session(session) => self.tables.hit(session, packets).access(),
                    End::Miss(action) => action,
                }
            }
            (Some(_), session) => self.tables.hit(session, packet.on_wire().0).access(),
        };
        if action == Action::Deny {
            return Err(ClassifyDrop::Denied);
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

/// The declaration.
pub(crate) fn spec<const OUTPUT: bool>(tables: &Arc<Tables>) -> NodeSpec {
    let tables = tables.clone();
    let help = match OUTPUT {
        false => "Lets classifier tables say what of that which interfaces receive may pass",
        true => "Lets classifier tables say what of that which interfaces send may pass",
    };
    NodeSpec::look_up(help, move |wiring| List::<OUTPUT> { tables: tables.clone(), own: wiring.id })
        .takes_offloads()
        .describe(|record, names| {
            format!("{} bytes, to {}", record.packet_bytes, names.node(record.next))
        })
}

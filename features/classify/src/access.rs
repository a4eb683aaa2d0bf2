//! `classify-input-acl`, `classify-output-acl`: the tables of an interface say what may pass.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::{DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::exact::NOT_FOUND;
use quiver_wire::{EtherType, EthernetHeader, Header};

use crate::key::{Key, load, masked};
use crate::tables::{Access, Action, Direction, Tables, session_key};

/// Keys that are masked at once.
const BATCH: usize = 32;

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

/// A packet's first table, and the bytes that its mask is laid on.
#[derive(Clone, Copy, Default)]
pub(crate) struct Request {
    /// Its number plus one; 0: none classifies the packet.
    table: u16,
    bytes: Key,
}

/// The table that classifies a packet first, as its number plus one.
#[inline(always)]
fn first_of(access: Access, bytes: &[u8]) -> u16 {
    let (is_ip4, is_ip6) = match access.is_bare {
        true => {
            (bytes.first().is_some_and(|b| b >> 4 == 4), bytes.first().is_some_and(|b| b >> 4 == 6))
        }
        false => {
            let kind = kind_of(bytes);
            (kind == EtherType::IPV4, kind == EtherType::IPV6)
        }
    };
    match (is_ip4 && access.ip4 != 0, is_ip6 && access.ip6 != 0) {
        (true, _) => access.ip4,
        (_, true) => access.ip6,
        _ => access.l2,
    }
}

/// The type of a frame, behind its tags.
#[inline(always)]
fn kind_of(bytes: &[u8]) -> EtherType {
    let kind = EthernetHeader::overlay(bytes).map_or(EtherType(0), EthernetHeader::ether_type);
    if kind.is_vlan() { crate::key::behind_tags(bytes).0 } else { kind }
}

impl<const OUTPUT: bool> List<OUTPUT> {
    const DIRECTION: Direction = if OUTPUT { Direction::Output } else { Direction::Input };

    #[inline(always)]
    fn access(&self, state: State, packet: &Packet) -> Access {
        match OUTPUT {
            true => self.tables.access(Self::DIRECTION, packet.tx),
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
            access: self.tables.access(Self::DIRECTION, rx),
            behind: (!OUTPUT).then(|| cx.behind(DEVICE_INPUT, rx, self.own, end)),
        }
    }

    #[inline(always)]
    fn key(&self, state: State, packet: &mut Packet) -> Request {
        let access = self.access(state, packet);
        let bytes = packet.bytes();
        let table = first_of(access, bytes);
        match table.checked_sub(1) {
            None => Request::default(),
            Some(number) => {
                Request { table, bytes: load(self.tables.form(number), bytes, access.is_bare) }
            }
        }
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
        for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let mut sessions = [Default::default(); BATCH];
            let (mut known, mut mask) = (0, Key::default());
            for (key, session) in keys.iter().zip(&mut sessions) {
                if key.table != known {
                    let table = key.table.checked_sub(1);
                    let table = table.and_then(|number| self.tables.table(number, context.pass()));
                    (known, mask) = (key.table, table.map_or(Key::default(), |table| table.mask));
                }
                // No session has table 0, which is that of packets that none classifies.
                *session = session_key(key.table.wrapping_sub(1), &masked(&key.bytes, &mask));
            }
            self.tables.sessions().lookup_slice(variant, &sessions[..keys.len()], found);
        }
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
        let action = match (request.table.checked_sub(1), found) {
            (None, _) => Action::Permit,
            (Some(table), NOT_FOUND) => {
                let is_bare = self.access(state, packet).is_bare;
                self.tables.missed(table, context.pass(), packet, is_bare)
            }
            (Some(_), session) => self.tables.hit(session, packet.on_wire().0),
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

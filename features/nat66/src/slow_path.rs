//! `nat66-slowpath`: the worker that owns sessions and bindings makes them, and ends those whose
//! time is over. Others hand packets that need a session over to it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::IcmpErrorRequest;
use quiver_forwarding::ip::{Ip6, IpFamily};
use quiver_sessions::{
    KEY_WORDS, SessionMaker, SlowQueue, places_of_turn, run_slow_path, tick_slow_path,
};
use quiver_translation::ip6::flow::{self, NO_KEY, Side};
use quiver_translation::tcp::Direction;
use quiver_translation::versions::read::{Kind, Read6, read6};

use crate::errors::{self, Sender, Translated};
use crate::owner::{First, Owner};
use crate::reasons::Nat66Drop;
use crate::session::Session;
use crate::tables::{Rules, Shared};
use crate::translator::{
    IN2OUT, InterfaceState, OUT2IN, SLOW_PATH, SlowRequest, Translator, upper_of,
};

/// Address unreachable (RFC 4443 §3.1): no external end is left for the sender.
const ADDRESS_UNREACHABLE: IcmpErrorRequest = IcmpErrorRequest { kind: 1, code: 3, detail: 0 };

/// A worker's instance.
pub(crate) struct SlowPath {
    translator: Translator,
    /// The features whose packets come here: of packets from inside, and from outside.
    in2out: NodeId,
    out2in: NodeId,
    /// The owner's, while NAT66 is enabled.
    pub owner: Option<Box<Owner>>,
    queue: SlowQueue,
}

impl SlowPath {
    fn translate_error(
        &self,
        cx: &Context<'_>,
        packet: &mut Packet,
        rules: &Rules,
        (state, from_inside): (InterfaceState, bool),
    ) -> Result<NodeId, Nat66Drop> {
        let translator = &self.translator;
        let shared = &translator.shared;
        let to = Ip6::destination(packet.bytes()).unwrap_or_default();
        let done = match from_inside {
            true => errors::to_outside(shared, packet, state.table, Sender::Other),
            false => errors::to_inside(shared, packet, rules),
        };
        let next = match done {
            Ok(Translated::Outward) => state.behind.take(packet),
            Ok(Translated::Back) => translator.hairpin,
            Ok(Translated::Inward(table)) => translator.next(state, packet, table),
            // It may be about a packet of the router itself.
            Err(Nat66Drop::InnerHasNoSession) if rules.external.get(&to) == Some(&true) => {
                return Ok(state.behind.take(packet));
            }
            Err(reason) => return Err(reason),
        };
        cx.count(Nat66Drop::ErrorTranslated, 1);
        Ok(next)
    }

    /// A packet that may need a session.
    fn pass_first(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
        (read, first): (&Read6, First),
        rules: &Rules,
        (state, from_inside): (InterfaceState, bool),
    ) -> Result<NodeId, Nat66Drop> {
        let owner = self.owner.as_mut().ok_or(Nat66Drop::NotEnabled)?;
        let made = match from_inside {
            true => owner.session_from_inside(rules, first),
            false => owner.session_from_outside(rules, first),
        };
        self.translator.shared.note(&owner.writer, &owner.bindings);
        let (number, is_new) = match made {
            Ok(made) => made,
            Err(
                reason @ (Nat66Drop::OutOfPorts
                | Nat66Drop::SessionsExceeded
                | Nat66Drop::SubscriberLimit),
            ) => {
                cx.count(reason, 1);
                // Nobody outside hears of limits inside.
                return match from_inside {
                    true => Ok(self.translator.answer(packet, ADDRESS_UNREACHABLE)),
                    false => Err(Nat66Drop::NoTranslation),
                };
            }
            Err(reason) => return Err(reason),
        };
        let shared = &self.translator.shared;
        if is_new {
            cx.count(Nat66Drop::Made, 1);
            shared.made.fetch_add(1, Ordering::Relaxed);
            self.queue.wind(cx);
        } else {
            self.queue.note_found();
        }
        let (_, objects, _) = shared.table().ok_or(Nat66Drop::NotEnabled)?;
        let session = Session(objects.get(number));
        let direction = if from_inside { Direction::InToOut } else { Direction::OutToIn };
        Ok(self.translator.pass_on(state, packet, upper_of(read), session, direction))
    }

    /// End the sessions for which `ends` holds among `places` from the first on; how many places
    /// there are.
    pub fn end_from(&mut self, places: (u32, u32), ends: impl Fn(Session<'_>) -> bool) -> usize {
        self.with_owner(|owner| {
            owner.end_from(places, ends);
            owner.writer.places()
        })
        .unwrap_or(0)
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
    type Reason = Nat66Drop;
    const CONGESTION: Nat66Drop = Nat66Drop::Congestion;
    const BACK_PRESSURE: Nat66Drop = Nat66Drop::BackPressure;

    fn queue(&mut self) -> &mut SlowQueue {
        &mut self.queue
    }

    fn key(&self, packet: &Packet) -> [u64; KEY_WORDS] {
        let SlowRequest { from_inside } = packet.handed_over();
        let side = if from_inside { Side::Inside } else { Side::Outside };
        let Ok(read) = read6(packet) else { return NO_KEY };
        let table = self.translator.tables.interfaces.table6(packet.rx);
        flow::of(packet, &read, table).1.key(side)
    }

    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, Nat66Drop> {
        let SlowRequest { from_inside } = packet.handed_over();
        let shared = self.translator.shared.clone();
        let rules = shared.rules(cx.pass);
        let own = if from_inside { self.in2out } else { self.out2in };
        let state = self.translator.interface_state(cx, packet.rx, own);
        let table = if from_inside { state.table } else { rules.outside_table };
        let read = self.translator.read(|reason| cx.count(reason, 1), packet, table)?;
        let (read, kind, flow) = match read {
            Ok(read) => read,
            Err(next) => return Ok(next),
        };
        if kind == Kind::Error {
            return self.translate_error(cx, packet, rules, (state, from_inside));
        }
        let first = First { flow, kind, now_s: state.now_s };
        self.pass_first(cx, packet, (&read, first), rules, (state, from_inside))
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(owner) = &mut self.owner else { return false };
        let shared = &self.translator.shared;
        owner.collect();
        let now_s = (cx.now_ns / 1_000_000_000) as u32;
        let ended = owner.end_where(places_of_turn(owner.writer.places()), |session| {
            now_s.saturating_sub(session.seen_s()) > shared.timeouts.get(session.class())
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
pub(crate) fn spec(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::new(
        SLOW_PATH,
        "Makes sessions of NAT66, and translates ICMPv6 errors",
        move |wiring| {
            Box::new(SlowPath {
                translator: Translator::new(arc, &shared, wiring),
                in2out: wiring.node(IN2OUT),
                out2in: wiring.node(OUT2IN),
                owner: None,
                queue: SlowQueue::new(wiring.worker),
            })
        },
    )
    .slow_path()
    .reasons::<Nat66Drop>()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}

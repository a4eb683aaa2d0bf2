//! `acl-plugin-slowpath`: the worker that owns the sessions makes them, and ends those whose time
//! is over. Others hand packets that make a session over to it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quiver_classifier::{Key, NONE, field};
use quiver_core::graph::arc::{ArcId, DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::node::{DROP, Node, NodeSpec};
use quiver_core::memory::packet::handover::Handover;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, Ip6, noted};
use quiver_forwarding::nodes;
use quiver_sessions::{
    KEY_WORDS, SessionMaker, SlowQueue, places_of_turn, run_slow_path, tick_slow_path,
};
use quiver_tables::sessions::SessionError;

use crate::compiled::Part;
use crate::filter::{AclDrop, Place, reason};
use crate::icmp::{self, Message};
use crate::session::{NewSession, Session, SessionKey, Writer, flow_of, is_direct, tcp_flags};
use crate::stateful::makes_session;
use crate::tables::{Attached, DENY, PASS};

/// The name of the node.
pub(crate) const SLOW_PATH: &str = "acl-plugin-slowpath";

/// Request to the slow path: where the packet has met the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlowRequest {
    pub place: Place,
    pub family: Family,
}

impl Handover for SlowRequest {
    fn to_index(self) -> u32 {
        self.place as u32 * 2 + u32::from(self.family == Family::Ip6)
    }

    fn from_index(index: u32) -> SlowRequest {
        let family = if index & 1 == 0 { Family::Ip4 } else { Family::Ip6 };
        SlowRequest { place: Place::of((index / 2) as u8), family }
    }
}

/// The session key of a packet, and whether it comes from the high end; none of what has no ports
/// and no identifier.
pub(crate) fn session_key<F: Part>(
    bytes: &[u8],
    noted: Option<quiver_wire::upper::Upper>,
    key: &Key<F::Address>,
) -> Option<(SessionKey, bool)> {
    if is_direct(key.fields) {
        return Some(flow_of(key).key(key.owner));
    }
    match icmp::read::<F>(bytes, noted) {
        // An answer begins nothing.
        Message::Query(flow) if flow.is_reply == Some(false) => Some(flow.key(key.owner)),
        _ => None,
    }
}

/// A worker's instance.
pub(crate) struct SlowPath {
    attached: Arc<Attached>,
    /// By family: the arc of what is routed, and the node at its end.
    routed: [(ArcId, NodeId); 2],
    /// By place and family: the feature that packets come from.
    features: [[NodeId; 2]; 3],
    queue: SlowQueue,
    /// The owner's, while the table is open.
    pub writer: Option<Box<Writer>>,
}

impl SlowPath {
    /// The key of the session of a packet, in whatever direction.
    fn key_of<F: Part>(&self, place: Place, packet: &Packet) -> Option<SessionKey> {
        let (interface, _) = place.of_packet(packet);
        let (bytes, noted) = (place.bytes::<F>(&self.attached, packet)?, noted(packet));
        let key = Key { owner: interface.index() as u32, ..F::key(bytes, noted, 0)? };
        session_key::<F>(bytes, noted, &key).map(|(key, _)| key)
    }

    /// Ask the lists again, as they may be others by now, and make the session.
    fn make<F: Part>(
        &mut self,
        cx: &mut Context<'_>,
        place: Place,
        packet: &Packet,
    ) -> Result<(), AclDrop> {
        let (interface, direction) = place.of_packet(packet);
        let bytes = place.bytes::<F>(&self.attached, packet).ok_or(AclDrop::Malformed)?;
        let noted = noted(packet);
        let key = F::key(bytes, noted, 0).ok_or(AclDrop::Malformed)?;
        let rx = packet.rx.index() as u32;
        let key = Key { owner: interface.index() as u32, rx, ..key };
        // The epoch first: with a new one, the lists are new, too.
        let epoch = self.attached.sessions.epoch(key.owner);
        let mut found = [PASS];
        if let Some(lists) = self.attached.lists(direction, key.owner, cx.pass) {
            found = [NONE];
            F::classifier(lists).find(cx.variant, &[key], &mut found);
        }
        if !makes_session(found[0]) || epoch == 0 {
            return if found[0] & DENY == 0 { Ok(()) } else { Err(reason(found[0])) };
        }
        let Some((session, is_high)) = session_key::<F>(bytes, noted, &key) else { return Ok(()) };
        let new = NewSession {
            key: session,
            is_high,
            fields: key.fields,
            direction,
            rx,
            epoch,
            now_s: (cx.now_ns / 1_000_000_000) as u32,
        };
        match self.insert(cx, &new) {
            Err(AclDrop::Full) if self.attached.sessions.passes_when_full() => {
                cx.count(AclDrop::Stateless, 1);
                Ok(())
            }
            done => done,
        }
    }

    fn insert(&mut self, cx: &mut Context<'_>, new: &NewSession) -> Result<(), AclDrop> {
        let writer = self.writer.as_mut().ok_or(AclDrop::NotOpen)?;
        if let Some((number, _)) = writer.get(&new.key) {
            let session = Session(writer.objects().get(number));
            let is_tcp = new.fields & field::PROTOCOL == 6;
            if session.epoch() == new.epoch
                && (!is_tcp || session.track(new.is_high, tcp_flags(new.fields)))
            {
                session.refresh(new.now_s);
                self.queue.note_found();
                return Ok(());
            }
            writer.remove(number);
        }
        let made = writer.insert(new.words());
        self.attached.sessions.note(writer);
        made.map_err(|error| match error {
            SessionError::Full { .. } | SessionError::Waiting => AclDrop::Full,
            SessionError::Collides { .. } | SessionError::Table(_) => AclDrop::Crowded,
        })?;
        cx.count(AclDrop::Made, 1);
        self.attached.sessions.made.fetch_add(1, Ordering::Relaxed);
        self.queue.wind(cx);
        Ok(())
    }

    /// Where packets go behind the feature that they came from.
    fn next(
        &self,
        cx: &Context<'_>,
        SlowRequest { place, family }: SlowRequest,
        packet: &mut Packet,
    ) -> Result<NodeId, AclDrop> {
        let of_family = usize::from(family == Family::Ip6);
        let feature = self.features[place as usize][of_family];
        let (interface, _) = place.of_packet(packet);
        let row = cx.interface(interface).ok_or(AclDrop::Gone)?;
        let (arc, end) = match place {
            Place::Routed => self.routed[of_family],
            Place::LayerTwo => (DEVICE_INPUT, row.input),
            Place::Sent => (INTERFACE_OUTPUT, row.tx),
        };
        Ok(cx.behind(arc, interface, feature, end).take(packet))
    }

    /// End the sessions for which `ends` holds among `places` from `first` on; how many places
    /// there are.
    pub fn end_from(
        &mut self,
        (first, places): (u32, u32),
        ends: &impl Fn(Session<'_>) -> bool,
    ) -> usize {
        let Some(writer) = &mut self.writer else { return 0 };
        for number in first..first.saturating_add(places) {
            if writer.is_live(number) && ends(Session(writer.objects().get(number))) {
                writer.remove(number);
            }
        }
        // Their places are free for the next packet that comes.
        writer.collect();
        self.attached.sessions.note(writer);
        writer.places()
    }
}

impl SessionMaker for SlowPath {
    type Reason = AclDrop;
    const CONGESTION: AclDrop = AclDrop::Congestion;
    const BACK_PRESSURE: AclDrop = AclDrop::BackPressure;

    fn queue(&mut self) -> &mut SlowQueue {
        &mut self.queue
    }

    fn key(&self, packet: &Packet) -> [u64; KEY_WORDS] {
        let SlowRequest { place, family } = packet.handed_over();
        match family {
            Family::Ip4 => self.key_of::<Ip4>(place, packet),
            Family::Ip6 => self.key_of::<Ip6>(place, packet),
        }
        .unwrap_or_default()
    }

    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, AclDrop> {
        let request: SlowRequest = packet.handed_over();
        match request.family {
            Family::Ip4 => self.make::<Ip4>(cx, request.place, packet)?,
            Family::Ip6 => self.make::<Ip6>(cx, request.place, packet)?,
        }
        self.next(cx, request, packet)
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(writer) = &mut self.writer else { return false };
        let sessions = &self.attached.sessions;
        let now_s = (cx.now_ns / 1_000_000_000) as u32;
        let places = places_of_turn(writer.places());
        let ended = writer.turn(places, |_, words| !sessions.is_over(Session(words), now_s));
        if ended > 0 {
            sessions.expired.fetch_add(ended as u64, Ordering::Relaxed);
            sessions.note(writer);
        }
        writer.collect();
        !writer.is_empty()
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

/// The declaration; `arcs` are those of routed packets by family.
pub(crate) fn spec(arcs: [ArcId; 2], attached: &Arc<Attached>) -> NodeSpec {
    let attached = attached.clone();
    NodeSpec::new(SLOW_PATH, "Makes the sessions of access lists", move |wiring| {
        let families = [Family::Ip4, Family::Ip6];
        let feature = |place: Place, family| wiring.number(place.node(family)).unwrap_or(DROP);
        Box::new(SlowPath {
            attached: attached.clone(),
            routed: [
                (arcs[0], wiring.node(nodes::ip4::LOOKUP)),
                (arcs[1], wiring.node(nodes::ip6::LOOKUP)),
            ],
            features: Place::ALL.map(|place| families.map(|family| feature(place, family))),
            queue: SlowQueue::new(wiring.worker),
            writer: None,
        })
    })
    .slow_path()
    .takes_offloads()
    .reasons::<AclDrop>()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}

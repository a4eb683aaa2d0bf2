//! The sessions of one worker: each with its addresses, its authentication and its timer.

use quiver_core::jitter::Jitter;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId};
use quiver_forwarding::ip::{Ip4, Ip6, IpTables, choose};
use quiver_tables::GroupId;
use quiver_wire::bfd::State;

use crate::auth::Authentication;
use crate::datagram::{self, PACKET_BYTES_MAX};
use crate::echo::Echo;
use crate::reasons::BfdDrop;
use crate::session::{Effect, Session};
use crate::shared::{Ends, SESSIONS_MAX, Shared};
use crate::wheel::Wheel;

/// What is counted of a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Control packets received and accepted.
    pub received: u64,
    /// Control packets sent.
    pub sent: u64,
    /// Control packets that failed a check once the session was known.
    pub refused: u64,
    /// How often the session came up.
    pub came_up: u64,
    /// How often the session went down.
    pub went_down: u64,
    /// When the state changed last.
    pub changed_ns: u64,
    /// Echo packets sent.
    pub echoes_sent: u64,
    /// Echo packets that came back.
    pub echoes_received: u64,
}

/// A session as its worker holds it.
pub struct Peer {
    /// The state machine.
    pub session: Session,
    /// Who signs.
    pub auth: Authentication,
    /// Between whom.
    pub ends: Ends,
    /// The path to the peer, when there is one.
    pub group: Option<GroupId>,
    /// What was counted.
    pub counts: Counts,
    /// Echo packets.
    pub echo: Echo,
}

/// Room for all sessions of a worker, made by the control thread.
pub struct Store {
    slots: Box<[Option<Box<Peer>>]>,
    wheel: Wheel,
}

impl Store {
    /// No session.
    pub fn new() -> Box<Store> {
        let slots = (0..SESSIONS_MAX).map(|_| None).collect();
        Box::new(Store { slots, wheel: Wheel::new(SESSIONS_MAX) })
    }

    /// A session.
    pub fn peer(&mut self, slot: u16) -> Option<&mut Peer> {
        self.slots.get_mut(usize::from(slot))?.as_deref_mut()
    }

    /// Put a session into its slot; what was there comes back.
    pub fn put(&mut self, slot: u16, peer: Option<Box<Peer>>) -> Option<Box<Peer>> {
        self.wheel.cancel(slot);
        match self.slots.get_mut(usize::from(slot)) {
            Some(place) => std::mem::replace(place, peer),
            None => peer,
        }
    }

    /// A session whose time is come.
    pub fn take_due(&mut self, now_ns: u64) -> Option<u16> {
        self.wheel.take_due(now_ns)
    }

    /// When the next session's time comes.
    pub fn next_ns(&self) -> Option<u64> {
        self.wheel.next_ns()
    }

    /// All sessions with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &Peer)> {
        let numbered = self.slots.iter().enumerate();
        numbered.filter_map(|(slot, peer)| Some((slot as u16, peer.as_deref()?)))
    }

    /// Let time call a session when it has something to do.
    fn plan(&mut self, slot: u16, now_ns: u64) {
        if let Some(peer) = self.slots.get(usize::from(slot)).and_then(Option::as_deref) {
            self.wheel.set(slot, peer.session.wake_ns().min(peer.echo.wake_ns()), now_ns);
        }
    }
}

/// What a worker needs to send for its sessions.
pub struct Sender<'a> {
    /// Where paths lead.
    pub tables: &'a IpTables,
    /// What is published.
    pub shared: &'a Shared,
    /// Random delays.
    pub jitter: &'a mut Jitter,
}

impl Sender<'_> {
    /// Carry out what follows from an event of a session.
    pub fn apply(&mut self, cx: &mut Context<'_>, store: &mut Store, slot: u16, effect: Effect) {
        let now_ns = cx.now_ns;
        if let Some(peer) = store.peer(slot) {
            if effect.changed {
                self.note_change(peer, slot, now_ns);
            }
            // One packet does for both: the answer says the state, too.
            if effect.answer {
                self.send(cx, peer, slot, true);
            } else if effect.send {
                self.send(cx, peer, slot, false);
            }
            let is_echoing = peer.echo.follow(&peer.session, now_ns, self.jitter);
            let further = peer.session.set_echoing(is_echoing, now_ns, self.jitter);
            if further.send {
                self.send(cx, peer, slot, false);
            }
        }
        store.plan(slot, now_ns);
        if let Some(next_ns) = store.next_ns() {
            cx.tick_at(next_ns);
        }
    }

    fn note_change(&mut self, peer: &mut Peer, slot: u16, now_ns: u64) {
        let before = self.shared.live(slot).state;
        let session = &peer.session;
        match (before, session.state) {
            (State::Up, State::Up) => {}
            (_, State::Up) => peer.counts.came_up += 1,
            (State::Up, _) => peer.counts.went_down += 1,
            _ => {}
        }
        if before != session.state {
            peer.counts.changed_ns = now_ns;
        }
        self.shared.publish(slot, session.state, session.remote_state, session.diagnostic);
    }

    /// Send a control packet.
    pub fn send(&mut self, cx: &mut Context<'_>, peer: &mut Peer, slot: u16, is_answer: bool) {
        let is_ip4 = peer.ends.local.is_ipv4();
        let mut bytes = [0; PACKET_BYTES_MAX];
        let control = peer.session.packet(is_answer);
        let section = peer.auth.section();
        let payload = bytes.get_mut(datagram::headers_len(is_ip4)..).unwrap_or_default();
        let Ok(length) = control.emit(section.as_ref(), payload) else { return };
        if let Some(using) = peer.auth.current() {
            using.key.sign(&mut payload[..length]);
        }
        let ports = (datagram::source_port(slot), datagram::destination_port(&peer.ends));
        let (from, to) = (peer.ends.local, peer.ends.peer);
        let Some(length) = datagram::write_headers(from, to, ports, length, &mut bytes) else {
            return;
        };
        if self.emit(cx, peer.group, &bytes[..length], is_ip4) {
            peer.counts.sent += 1;
        }
    }

    /// Put a packet on its path; false when there is none, or no buffer.
    pub fn emit(
        &mut self,
        cx: &mut Context<'_>,
        group: Option<GroupId>,
        bytes: &[u8],
        is_ip4: bool,
    ) -> bool {
        let Some(group) = group else { return false };
        let Some(mut packet) = cx.buffers.packet() else {
            cx.count(BfdDrop::NoBuffer, 1);
            return false;
        };
        (packet.rx, packet.tx) = (InterfaceId::NONE, InterfaceId::NONE);
        packet.set(PacketFlags::LOCALLY_ORIGINATED);
        if !packet.append(bytes, cx.buffers) {
            cx.count(BfdDrop::NoBuffer, 1);
            cx.buffers.free(packet);
            return false;
        }
        let groups = &self.tables.groups;
        let next = match is_ip4 {
            true => choose::<Ip4>(groups, group, &mut packet),
            false => choose::<Ip6>(groups, group, &mut packet),
        };
        cx.emit(packet, next);
        true
    }
}

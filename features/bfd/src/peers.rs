//! The sessions of one worker: each with its addresses, its authentication and its timer.

use quiver_core::jitter::Jitter;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, Packet};
use quiver_forwarding::ip::{Ip4, Ip6, IpTables, choose};
use quiver_tables::GroupId;
use quiver_wire::bfd::{CONTROL_LEN, State};
use quiver_wire::{EtherType, EthernetHeader, IntoBytes, MacAddress};

use crate::auth::Authentication;
use crate::echo::Echo;
use crate::member::MemberLink;
use crate::reasons::BfdDrop;
use crate::session::{Effect, NEVER, Session};
use crate::shared::{Ends, SESSIONS_MAX, Shared};
use crate::template::Template;
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
    /// Echo packets of the peer that were sent back.
    pub echoes_returned: u64,
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
    /// The link of a session on a member of an aggregate: its packets need no path.
    pub link: Option<MemberLink>,
    /// What was counted.
    pub counts: Counts,
    /// Echo packets.
    pub echo: Echo,
    /// The least TTL of received control packets over several hops; over one hop it is 255.
    pub min_ttl: u8,
    /// The control packet that was sent last.
    pub template: Template,
    /// The control packet that came last, when nothing followed from it but a later detection time,
    /// and nothing else does while both ends stay up and packets are not signed.
    pub steady: Option<[u8; CONTROL_LEN]>,
    /// When the timer fires that is set; [`NEVER`] without one.
    pub planned_ns: u64,
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
        let slot = self.wheel.take_due(now_ns)?;
        if let Some(peer) = self.peer(slot) {
            peer.planned_ns = NEVER;
        }
        Some(slot)
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

    /// Let time call a session when it has something to do, or before: a time that moves ahead, as
    /// the detection time does with each packet, leaves the timer where it is. Returns when a timer
    /// fires that was set.
    fn plan(&mut self, slot: u16, now_ns: u64) -> Option<u64> {
        let peer = self.slots.get_mut(usize::from(slot)).and_then(Option::as_deref_mut)?;
        let wake_ns = peer.session.wake_ns().min(peer.echo.wake_ns());
        if wake_ns >= peer.planned_ns {
            return None;
        }
        peer.planned_ns = wake_ns;
        self.wheel.set(slot, wake_ns, now_ns)
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
    /// Carry out what follows from an event of a session. Returns when a timer fires that was set.
    pub fn apply(
        &mut self,
        cx: &mut Context<'_>,
        store: &mut Store,
        slot: u16,
        effect: Effect,
    ) -> Option<u64> {
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
            if peer.echo.source.is_some() || peer.session.is_echoing() {
                let is_echoing = peer.echo.follow(&peer.session, now_ns, self.jitter);
                let further = peer.session.set_echoing(is_echoing, now_ns, self.jitter);
                if further.send {
                    self.send(cx, peer, slot, false);
                }
            }
        }
        store.plan(slot, now_ns)
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
        let control = peer.session.packet(is_answer);
        let (section, auth) = (peer.auth.section(), &peer.auth);
        if section.is_some() || !peer.template.is_of(&control) {
            peer.template.write(&control, &peer.ends, slot, |control, payload| {
                let length = control.emit(section.as_ref(), payload).ok()?;
                if let Some(using) = auth.current() {
                    using.key.sign(&mut payload[..length]);
                }
                Some(length)
            });
        }
        let bytes = peer.template.bytes();
        let is_sent = match (&mut peer.link, peer.ends.interface) {
            (Some(link), Some(member)) => {
                let to = link.next_destination(control.state, control.detect_mult);
                emit_on_member(cx, member, to, bytes, is_ip4)
            }
            _ => self.emit(cx, peer.group, bytes, is_ip4),
        };
        peer.counts.sent += u64::from(is_sent);
    }

    /// Put a packet on its path; false when there is none, or no buffer.
    pub fn emit(
        &mut self,
        cx: &mut Context<'_>,
        group: Option<GroupId>,
        bytes: &[u8],
        is_ip4: bool,
    ) -> bool {
        let Some(group) = group.filter(|_| !bytes.is_empty()) else { return false };
        let Some(mut packet) = packet_of(cx, &[bytes]) else { return false };
        let groups = &self.tables.groups;
        let next = match is_ip4 {
            true => choose::<Ip4>(groups, group, &mut packet),
            false => choose::<Ip6>(groups, group, &mut packet),
        };
        cx.emit(packet, next);
        true
    }
}

/// A packet of these bytes; `None` without a buffer, which is counted.
fn packet_of(cx: &mut Context<'_>, parts: &[&[u8]]) -> Option<Packet> {
    let Some(mut packet) = cx.buffers.packet() else {
        cx.count(BfdDrop::NoBuffer, 1);
        return None;
    };
    (packet.rx, packet.tx) = (InterfaceId::NONE, InterfaceId::NONE);
    packet.set(PacketFlags::LOCALLY_ORIGINATED);
    if !parts.iter().all(|part| packet.append(part, cx.buffers)) {
        cx.count(BfdDrop::NoBuffer, 1);
        cx.buffers.free(packet);
        return None;
    }
    Some(packet)
}

/// Send a packet by a member of an aggregate; false when the member is down, or without a buffer.
fn emit_on_member(
    cx: &mut Context<'_>,
    member: InterfaceId,
    to: MacAddress,
    bytes: &[u8],
    is_ip4: bool,
) -> bool {
    let row = cx.interface(member).filter(|row| row.up && !bytes.is_empty());
    let Some((own, output)) = row.map(|row| (MacAddress(row.mac), row.output)) else {
        return false;
    };
    let ether_type = if is_ip4 { EtherType::IPV4 } else { EtherType::IPV6 };
    let header = EthernetHeader::new(to, own, ether_type);
    let Some(mut packet) = packet_of(cx, &[header.as_bytes(), bytes]) else { return false };
    packet.tx = member;
    cx.emit(packet, output);
    true
}

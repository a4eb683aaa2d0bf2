//! `bfd-input`: BFD packets for the router go to their sessions; at their times, sessions send and
//! miss their peers. All of it happens on the worker that has the session.

use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::sessions::{SessionInput, Taken, run_sessions};
use quiver_core::jitter::Jitter;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, InterfaceId, Node, Packet};
use quiver_forwarding::ip::{Ip4, Ip6, IpTables, choose};
use quiver_forwarding::nodes;
use quiver_wire::bfd::{
    CONTROL_PORT, ECHO_PORT, MEMBER_PORT, MULTIHOP_PORT, Packet as BfdPacket, State,
};

use crate::auth::Window;
use crate::datagram::{self, Datagram, PACKET_BYTES_MAX, Plain, TTL};
use crate::echo::{EchoDue, Seal};
use crate::member;
use crate::peers::{Peer, Sender, Store};
use crate::reasons::BfdDrop;
use crate::session::Effect;
use crate::shared::{Ends, Place, Shared};

/// The node's name.
pub const NODE: &str = "bfd-input";
/// The UDP ports whose packets it takes.
pub const PORTS: [u16; 3] = [CONTROL_PORT, ECHO_PORT, MULTIHOP_PORT];
/// Sessions that time is passed to in one pass at most; others follow in the next.
const SESSIONS_PER_TICK_MAX: usize = 512;

/// A worker's instance.
pub struct BfdInput {
    /// Its sessions, once it has had one.
    pub store: Option<Box<Store>>,
    shared: Arc<Shared>,
    tables: IpTables,
    jitter: Jitter,
    seal: Seal,
}

impl BfdInput {
    /// Do something with a session, and carry out what follows.
    pub fn with_peer(
        &mut self,
        cx: &mut Context<'_>,
        slot: u16,
        work: impl FnOnce(&mut Peer, &mut Jitter, u64) -> Effect,
    ) {
        if let Some(due_ns) = self.change_peer(cx, slot, work) {
            cx.tick_at(due_ns);
        }
    }

    /// As [`with_peer`](Self::with_peer), within a tick or before one is planned. Returns when a
    /// timer fires that was set.
    fn change_peer(
        &mut self,
        cx: &mut Context<'_>,
        slot: u16,
        work: impl FnOnce(&mut Peer, &mut Jitter, u64) -> Effect,
    ) -> Option<u64> {
        let BfdInput { store, shared, tables, jitter, .. } = self;
        let store = store.as_mut()?;
        let effect = work(store.peer(slot)?, jitter, cx.now_ns);
        Sender { tables, shared, jitter }.apply(cx, store, slot, effect)
    }

    /// Take a session away. The peer is told once that the session is down on purpose.
    pub fn remove(&mut self, cx: &mut Context<'_>, slot: u16) -> Option<Box<Peer>> {
        self.with_peer(cx, slot, |peer, jitter, now_ns| {
            peer.session.set_admin(false, now_ns, jitter)
        });
        self.store.as_mut()?.put(slot, None)
    }

    /// Most packets say what the one before said. Takes such a one: true when it was.
    fn take_again(&mut self, cx: &Context<'_>, packet: &Packet) -> bool {
        let Some(plain) = Plain::of(packet.bytes()) else { return false };
        let Some(place) = self.shared.of_discriminator(plain.discriminator()) else { return false };
        if place.worker != cx.worker {
            return false;
        }
        let peer = self.store.as_mut().and_then(|store| store.peer(place.slot));
        let Some(peer) = peer else { return false };
        let session = &peer.session;
        let is_again = peer.steady.as_ref() == Some(plain.payload)
            && (session.state, session.remote_state) == (State::Up, State::Up)
            && peer.auth.current().is_none()
            && (peer.ends.interface, peer.ends.is_member) == (Some(packet.rx), false)
            && peer.ends.peer == IpAddr::V4(plain.source)
            && peer.ends.local == IpAddr::V4(plain.destination);
        if is_again {
            peer.counts.received += 1;
            peer.session.receive_again(cx.now_ns);
        }
        is_again
    }

    /// An echo packet came back.
    fn take_echo(
        &mut self,
        cx: &mut Context<'_>,
        datagram: &Datagram<'_>,
    ) -> Result<Taken, BfdDrop> {
        let read = self.seal.read(datagram.payload);
        let (discriminator, sequence) = read.ok_or(BfdDrop::EchoUnknown)?;
        let place = self.shared.of_discriminator(discriminator);
        let Place { worker, slot } = place.ok_or(BfdDrop::EchoUnknown)?;
        if worker != cx.worker {
            return Ok(Taken::HandOff(worker));
        }
        let mut is_taken = false;
        self.with_peer(cx, slot, |peer, _, now_ns| {
            is_taken = peer.echo.receive(sequence, now_ns);
            peer.counts.echoes_received += u64::from(is_taken);
            Effect::default()
        });
        if is_taken { Ok(Taken::Here) } else { Err(BfdDrop::EchoUnknown) }
    }

    /// A peer's echo packet that is addressed to this router, as FRR sends them: it goes back to
    /// the peer of a session that is up (RFC 5880 §6.8.9), one hop older.
    fn return_echo(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<Taken, BfdDrop> {
        let datagram = Datagram::of(packet.bytes()).ok_or(BfdDrop::EchoUnknown)?;
        let (local, peer) = (datagram.destination, datagram.source);
        let ends = Ends { interface: Some(packet.rx), is_member: false, local, peer };
        let place = self.shared.of_ends(&ends).filter(|_| datagram.ttl == TTL);
        let Place { worker, slot } = place.ok_or(BfdDrop::EchoUnknown)?;
        if worker != cx.worker {
            return Ok(Taken::HandOff(worker));
        }
        let peer = self.store.as_mut().and_then(|store| store.peer(slot));
        let peer = peer
            .filter(|peer| peer.ends == ends && peer.session.state == State::Up)
            .ok_or(BfdDrop::EchoUnknown)?;
        let group = peer.group.ok_or(BfdDrop::EchoUnknown)?;
        if !datagram::turn_round(packet.bytes_mut()) {
            return Err(BfdDrop::EchoUnknown);
        }
        peer.counts.echoes_returned += 1;
        (packet.rx, packet.tx) = (InterfaceId::NONE, InterfaceId::NONE);
        packet.set(PacketFlags::LOCALLY_ORIGINATED);
        Ok(Taken::SendOn(match local {
            IpAddr::V4(_) => choose::<Ip4>(&self.tables.groups, group, packet),
            IpAddr::V6(_) => choose::<Ip6>(&self.tables.groups, group, packet),
        }))
    }

    /// The time of a session is come.
    fn pass_time(&mut self, cx: &mut Context<'_>, slot: u16) {
        let now_ns = cx.now_ns;
        let peer = self.store.as_mut().and_then(|store| store.peer(slot));
        let echo =
            peer.map_or(EchoDue::Nothing, |peer| peer.echo.pass_time(now_ns, &mut self.jitter));
        if let EchoDue::Send(sequence) = echo {
            self.send_echo(cx, slot, sequence);
        }
        // The tick says when the next timer fires.
        let _ = self.change_peer(cx, slot, |peer, jitter, now_ns| {
            let effect = peer.session.pass_time(now_ns, jitter);
            if echo != EchoDue::Failed {
                return effect;
            }
            let failed = peer.session.echo_failed(now_ns, jitter);
            Effect {
                send: effect.send || failed.send,
                changed: effect.changed || failed.changed,
                answer: false,
            }
        });
    }

    fn send_echo(&mut self, cx: &mut Context<'_>, slot: u16, sequence: u32) {
        let BfdInput { store, shared, tables, jitter, seal } = self;
        let Some(peer) = store.as_mut().and_then(|store| store.peer(slot)) else { return };
        let Some(source) = peer.echo.source else { return };
        let is_ip4 = peer.ends.local.is_ipv4();
        let payload = seal.write(peer.session.local_discriminator, sequence);
        let mut bytes = [0; PACKET_BYTES_MAX];
        let place = bytes.get_mut(datagram::headers_len(is_ip4)..).unwrap_or_default();
        place[..payload.len()].copy_from_slice(&payload);
        let ports = (datagram::source_port(slot), ECHO_PORT);
        let (to, length) = (peer.ends.local, payload.len());
        let Some(length) = datagram::write_headers(source, to, ports, length, &mut bytes) else {
            return;
        };
        let mut sender = Sender { tables, shared, jitter };
        if sender.emit(cx, peer.group, &bytes[..length], is_ip4) {
            peer.counts.echoes_sent += 1;
        }
    }
}

impl SessionInput for BfdInput {
    type Reason = BfdDrop;
    const HANDOFF_FULL: BfdDrop = BfdDrop::HandoffFull;

    fn take(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<Taken, BfdDrop> {
        if self.take_again(cx, packet) {
            return Ok(Taken::Here);
        }
        let truncated = BfdDrop::Malformed(quiver_wire::bfd::BfdMalformation::Truncated);
        let port = Datagram::of(packet.bytes()).ok_or(truncated)?.port;
        let is_member = port == MEMBER_PORT;
        let source = if is_member { member::source_of(packet) } else { None };
        let datagram = Datagram::of(packet.bytes()).ok_or(truncated)?;
        if datagram.port == ECHO_PORT {
            return match self.take_echo(cx, &datagram) {
                Err(BfdDrop::EchoUnknown) => self.return_echo(cx, packet),
                taken => taken,
            };
        }
        let is_one_hop = is_member || datagram.port == CONTROL_PORT;
        if is_one_hop && datagram.ttl != TTL {
            return Err(BfdDrop::Ttl);
        }
        let read = BfdPacket::parse(datagram.payload)?;
        let ends = Ends {
            interface: is_one_hop.then_some(packet.rx),
            is_member,
            local: datagram.destination,
            peer: datagram.source,
        };
        let Place { worker, slot } = match read.control.your_discriminator {
            0 => self.shared.of_ends(&ends).ok_or(BfdDrop::NoSession)?,
            own => self.shared.of_discriminator(own).ok_or(BfdDrop::UnknownDiscriminator)?,
        };
        if worker != cx.worker {
            return Ok(Taken::HandOff(worker));
        }
        let now_ns = cx.now_ns;
        let peer = self.store.as_mut().and_then(|store| store.peer(slot));
        let peer = peer.ok_or(BfdDrop::NoSession)?;
        let own = peer.session.local_discriminator;
        if peer.ends != ends
            || !matches!(read.control.your_discriminator, 0)
                && own != read.control.your_discriminator
        {
            peer.counts.refused += 1;
            return Err(BfdDrop::OtherPath);
        }
        if !is_one_hop && datagram.ttl < peer.min_ttl {
            peer.counts.refused += 1;
            return Err(BfdDrop::TtlTooLow);
        }
        let window = Window {
            detect_mult: peer.session.settings().detect_mult,
            now_ns,
            detection_ns: peer.session.detection_ns(),
        };
        if let Err(why) = peer.auth.check(&read, window) {
            peer.counts.refused += 1;
            return Err(why);
        }
        self.with_peer(cx, slot, |peer, jitter, now_ns| {
            peer.counts.received += 1;
            if let (Some(link), Some(source)) = (&mut peer.link, source) {
                link.learn(source);
            }
            let effect = peer.session.receive(&read.control, now_ns, jitter);
            let is_steady = effect == Effect::default() && !read.control.is_final;
            peer.steady = read.bytes.try_into().ok().filter(|_| is_steady);
            effect
        });
        Ok(Taken::Here)
    }

    fn is_unknown(reason: BfdDrop) -> bool {
        matches!(reason, BfdDrop::NoSession | BfdDrop::UnknownDiscriminator | BfdDrop::EchoUnknown)
    }
}

impl Node for BfdInput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        run_sessions(self, cx, frame);
    }

    fn tick(&mut self, cx: &mut Context<'_>) -> Option<u64> {
        for _ in 0..SESSIONS_PER_TICK_MAX {
            let due = self.store.as_mut().and_then(|store| store.take_due(cx.now_ns));
            let Some(slot) = due else { break };
            self.pass_time(cx, slot);
        }
        self.store.as_ref()?.next_ns()
    }

    fn as_any(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

/// The declaration.
pub fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let seal = Seal::default();
    NodeSpec::new(
        NODE,
        "Takes BFD packets to their sessions, which send at their times",
        move |w| {
            for next in [
                nodes::ip4::REWRITE,
                nodes::ip4::ARP,
                nodes::ip4::DROP,
                nodes::ip6::REWRITE,
                nodes::ip6::DISCOVER_NEIGHBOR,
                nodes::ip6::DROP,
            ] {
                w.node(next);
            }
            let tables: Arc<IpTables> = w.shared();
            Box::new(BfdInput {
                store: None,
                shared: shared.clone(),
                tables: (*tables).clone(),
                jitter: Jitter::random(),
                seal: seal.clone(),
            })
        },
    )
    .reasons::<BfdDrop>()
    .describe(|record, names| {
        let next = names.node(record.next);
        let Some(datagram) = Datagram::of(record.bytes()) else { return format!("to {next}") };
        let from = datagram.source;
        match BfdPacket::parse(datagram.payload) {
            _ if datagram.port == ECHO_PORT => format!("BFD echo from {from}, to {next}"),
            Ok(read) => {
                let (state, control) = (read.control.state.name(), read.control);
                format!(
                    "BFD from {from}: {state}, my discriminator {:#x}, your discriminator {:#x}, \
                     TTL {}, to {next}",
                    control.my_discriminator, control.your_discriminator, datagram.ttl
                )
            }
            Err(why) => format!("BFD from {from}: {why}"),
        }
    })
}

//! What full and virtual reassembly have in common: fragments are read, go to the worker that owns
//! their packet, find its context or a new one, and make room when there is none.

use std::sync::Arc;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::drop_reason::DropReason;
use quiver_core::graph::node::{DROP, Wiring};
use quiver_core::{Context, InterfaceId, NodeId, Packet, WorkerId};
use quiver_forwarding::nodes;
use quiver_forwarding::requests::ReassemblyRequest;

use crate::fragment::{self, Bad, Fragment};
use crate::key::owner;
use crate::reasons::FragmentEnd;
use crate::store::{Fit, Place, Store};
use crate::tables::{Holding, Kind, Shared};

/// Packets that make room for one fragment at most.
const EVICTED_PER_FRAGMENT: usize = 8;

/// Where packets go from here.
#[derive(Clone, Copy)]
pub(crate) struct NextNodes {
    arc: ArcId,
    feature: NodeId,
    arc_end: NodeId,
    local: NodeId,
    pub error: NodeId,
}

/// The part of a node that keeps fragments.
pub(crate) struct Contexts {
    pub kind: Kind,
    pub store: Box<Store>,
    shared: Arc<Shared>,
    holding: Holding,
    pub next_nodes: NextNodes,
}

/// A fragment whose context stands open.
pub(crate) struct Arrived {
    pub place: Place,
    pub piece: Fragment,
    pub packet: Packet,
}

impl Contexts {
    pub fn new(
        kind: Kind,
        store: Box<Store>,
        shared: &Arc<Shared>,
        arc: ArcId,
        wiring: &Wiring<'_>,
    ) -> Contexts {
        let (arc_end, local, error) = if kind.is_six() {
            (nodes::ip6::LOOKUP, nodes::ip6::LOCAL, nodes::ip6::ICMP_ERROR)
        } else {
            (nodes::ip4::LOOKUP, nodes::ip4::LOCAL, nodes::ip4::ICMP_ERROR)
        };
        let next_nodes = NextNodes {
            arc,
            feature: wiring.number(kind.feature()).unwrap_or(DROP),
            arc_end: wiring.node(arc_end),
            local: wiring.node(local),
            error: wiring.node(error),
        };
        let holding = shared.holding(wiring.worker.index(), kind);
        Contexts { kind, store, shared: shared.clone(), holding, next_nodes }
    }

    pub fn timeout_ns(&self) -> u64 {
        self.shared.limits[self.kind as usize].timeout_ns()
    }

    /// A fragment has come: read it.
    pub fn read(&mut self, cx: &mut Context<'_>, mut packet: Packet) -> Option<(Fragment, Packet)> {
        let read = if self.kind.is_six() { fragment::of_ip6 } else { fragment::of_ip4 };
        match read(&packet, packet.handed_over()) {
            Ok(piece) => {
                packet.trim(piece.packet_bytes());
                Some((piece, packet))
            }
            Err(bad) => {
                self.refuse(cx, packet, bad);
                None
            }
        }
    }

    /// See that the fragment is this worker's, and find its context.
    pub fn seat(
        &mut self,
        cx: &mut Context<'_>,
        piece: Fragment,
        packet: Packet,
    ) -> Option<Arrived> {
        let hash = self.store.hash(&piece.key);
        let owner = WorkerId(owner(hash, self.shared.workers()) as u16);
        if owner != cx.worker {
            self.hand_over(cx, packet, owner);
            return None;
        }
        cx.count(FragmentEnd::Fragments, 1);
        let place = match self.store.find(&piece.key, hash) {
            Some(place) => place,
            None => match self.open(cx, &piece, hash) {
                Some(place) => place,
                None => {
                    self.drop_packet(cx, packet, FragmentEnd::TableFull);
                    return None;
                }
            },
        };
        if self.store.at(place).refused {
            self.drop_packet(cx, packet, FragmentEnd::AfterRefusal);
            return None;
        }
        if self.store.at(place).count >= self.shared.limits[self.kind as usize].fragments() {
            self.drop_packet(cx, packet, FragmentEnd::TooMany);
            self.refuse_all(cx, place, FragmentEnd::TooMany);
            return None;
        }
        Some(Arrived { place, piece, packet })
    }

    fn hand_over(&mut self, cx: &mut Context<'_>, packet: Packet, owner: WorkerId) {
        cx.trace(&packet, quiver_core::graph::builtin::HANDOFF);
        match cx.hand_off(packet, owner, cx.node) {
            Ok(()) => cx.count(FragmentEnd::HandedOff, 1),
            Err(packet) => self.drop_packet(cx, packet, FragmentEnd::HandoffFull),
        }
    }

    /// Open a context; the oldest makes room.
    fn open(&mut self, cx: &mut Context<'_>, piece: &Fragment, hash: u64) -> Option<Place> {
        if let Some(place) = self.store.open(piece.key, hash, cx.now_ns) {
            self.holding.set_packets(self.store.open_count());
            return Some(place);
        }
        if let Some(oldest) = self.store.oldest() {
            self.close(cx, oldest, FragmentEnd::TableFull);
        }
        let place = self.store.open(piece.key, hash, cx.now_ns);
        self.holding.set_packets(self.store.open_count());
        place
    }

    /// Keep a fragment with its context, or only that it was here; the packet comes back when it
    /// may not be kept: it is there already, nothing more. What is refused takes all of its packet
    /// with it.
    pub fn keep(
        &mut self,
        cx: &mut Context<'_>,
        arrived: Arrived,
        keeps_packet: bool,
    ) -> Result<Option<Packet>, Packet> {
        let Arrived { place, piece, mut packet } = arrived;
        let is_same = |other: Option<&Packet>, other_piece: &Fragment| {
            other.is_none_or(|other| same_data(other, other_piece, &packet, &piece))
        };
        let why = match self.store.fit(place, &piece, is_same) {
            Fit::Behind(before) => {
                let buffers = if keeps_packet { packet.buffer_count() } else { 0 };
                if !self.make_room(cx, place, buffers) {
                    self.drop_packet(cx, packet, FragmentEnd::NoRoom);
                    return Ok(None);
                }
                if !keeps_packet {
                    self.store.insert(place, before, piece, None);
                    return Ok(Some(packet));
                }
                cx.keep_age(&mut packet);
                cx.trace(&packet, cx.node);
                self.holding.take(buffers);
                self.store.insert(place, before, piece, Some(packet));
                return Ok(None);
            }
            Fit::Duplicate => return Err(packet),
            Fit::Overlap => FragmentEnd::Overlap,
            Fit::LengthConflict => FragmentEnd::LengthConflict,
        };
        self.drop_packet(cx, packet, why);
        self.refuse_all(cx, place, why);
        Ok(None)
    }

    /// Room for another piece of `buffers` buffers: the oldest packets go, not the one that it is
    /// for.
    fn make_room(&mut self, cx: &mut Context<'_>, place: Place, buffers: usize) -> bool {
        for _ in 0..EVICTED_PER_FRAGMENT {
            if self.store.has_slot() && self.holding.budget.has_room(buffers) {
                return true;
            }
            let oldest = self.store.oldest();
            let Some(other) =
                oldest.and_then(|old| if old == place { self.store.newer(old) } else { Some(old) })
            else {
                return false;
            };
            self.close(cx, other, FragmentEnd::NoRoom);
        }
        self.store.has_slot() && self.holding.budget.has_room(buffers)
    }

    /// What is there of a packet dies, and so will what comes (RFC 5722 §4).
    pub fn refuse_all(&mut self, cx: &mut Context<'_>, place: Place, why: FragmentEnd) {
        let mut held = 0;
        self.store.take_pieces_backwards(place, |_, packet| {
            if let Some(packet) = packet {
                held += packet.buffer_count();
                kill(cx, packet, why);
            }
        });
        self.holding.give(held);
        let context = self.store.at_mut(place);
        (context.refused, context.upper) = (true, None);
    }

    /// Forget a packet; what is there of it dies.
    pub fn close(&mut self, cx: &mut Context<'_>, place: Place, why: FragmentEnd) {
        let mut held = 0;
        self.store.close(place, |packet| {
            held += packet.buffer_count();
            kill(cx, packet, why);
        });
        self.holding.give(held);
        self.holding.set_packets(self.store.open_count());
    }

    /// Pieces or packets of a context leave by other ways: count them out.
    pub fn give(&mut self, buffers: usize) {
        self.holding.give(buffers);
    }

    /// Forget a context whose packets have left.
    pub fn close_empty(&mut self, place: Place) {
        self.store.close(place, drop_nothing);
        self.holding.set_packets(self.store.open_count());
    }

    /// A fragment alone is refused, and its sender may be told.
    pub fn refuse(&mut self, cx: &mut Context<'_>, mut packet: Packet, bad: Bad) {
        match bad.told {
            Some(told) => {
                cx.count(bad.why, 1);
                packet.hand_over(told);
                self.send(cx, packet, self.next_nodes.error);
            }
            None => self.drop_packet(cx, packet, bad.why),
        }
    }

    /// Send a packet to a node.
    pub fn send(&self, cx: &mut Context<'_>, packet: Packet, next: NodeId) {
        cx.trace(&packet, next);
        cx.emit(packet, next);
    }

    /// Send a packet on its way: back to where packets for the router are sorted, or on in the arc.
    pub fn send_on(&self, cx: &mut Context<'_>, mut packet: Packet, request: ReassemblyRequest) {
        let next_nodes = &self.next_nodes;
        let next = if request.is_local {
            next_nodes.local
        } else {
            cx.behind(next_nodes.arc, packet.rx, next_nodes.feature, next_nodes.arc_end)
                .take(&mut packet)
        };
        self.send(cx, packet, next);
    }

    /// Let a packet die.
    pub fn drop_packet(&self, cx: &mut Context<'_>, packet: Packet, why: FragmentEnd) {
        kill(cx, packet, why);
    }

    /// The oldest packet, when its time is over.
    pub fn expired(&self, now_ns: u64) -> Option<Place> {
        let timeout_ns = self.timeout_ns();
        self.store
            .oldest()
            .filter(|place| now_ns.saturating_sub(self.store.at(*place).since_ns) >= timeout_ns)
    }

    /// An interface is gone: packets with fragments from it go too.
    pub fn forget_interface(&mut self, cx: &mut Context<'_>, gone: InterfaceId) {
        let mut at = self.store.oldest();
        while let Some(place) = at {
            at = self.store.newer(place);
            if self.store.holds(place, |packet| packet.rx == gone) {
                self.close(cx, place, FragmentEnd::InterfaceGone);
            }
        }
    }

    /// Work with another store from now on; the old one, empty, is what `store` is then.
    pub fn swap_store(&mut self, cx: &mut Context<'_>, store: &mut Box<Store>) {
        std::mem::swap(&mut self.store, store);
        let mut held = 0;
        self.store.take_over(store, |packet| {
            held += packet.buffer_count();
            kill(cx, packet, FragmentEnd::TableFull);
        });
        self.holding.give(held);
        self.holding.set_packets(self.store.open_count());
    }
}

fn drop_nothing(_: Packet) {
    debug_assert!(false, "packets left before their context was closed");
}

pub(crate) fn kill(cx: &mut Context<'_>, mut packet: Packet, why: FragmentEnd) {
    packet.hand_over(DropReason::new(why));
    cx.trace(&packet, DROP);
    cx.kill(packet, why);
}

/// Have two pieces with the same span the same data?
fn same_data(a: &Packet, piece_a: &Fragment, b: &Packet, piece_b: &Fragment) -> bool {
    data(a, piece_a).eq(data(b, piece_b))
}

fn data<'p>(packet: &'p Packet, piece: &Fragment) -> impl Iterator<Item = &'p u8> + use<'p> {
    let (from, length) = (usize::from(piece.header_bytes), piece.length() as usize);
    packet.segments().flatten().skip(from).take(length)
}

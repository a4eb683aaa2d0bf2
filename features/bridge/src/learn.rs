//! `l2-learn`: who is behind the port that the frame came in by (IEEE 802.1Q §8.7)? Known sources
//! are stamped once a minute; unknown and moved ones are told to the control thread, which knows
//! for all workers.

use std::cell::RefCell;
use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{LookUp, StageContext, find_once};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::mac::{DomainIndex, MacEntry, MacKey, MacTable, Seen, StampMinutes};

use crate::address::Addresses;
use crate::input::{NextNodes, Onward, next_nodes};
use crate::learn_requests::{Asker, LearnOutcome, LearnRings, Request};
use crate::nodes;
use crate::tables::Published;

quiver_core::reasons! {
    /// What `l2-learn` does about sources.
    pub enum L2LearnDrop {
        /// Switched off.
        ForwardOff = "forward-off", "forwarding is off (`set interface l2 forward`, `set \
            bridge-domain forward`)";
        /// Switched off.
        FloodOff = "flood-off", "frame to a group, and flooding is off (`set interface l2 flood`, \
            `set bridge-domain flood`)";
        /// A filter.
        Filtered = "source-filtered", "frame from an address with a filter entry (`show l2fib`)";
        /// Not where it should be.
        StaticMoved = "static-moved", "frame from an address that has a static entry behind \
            another port";
        /// The port left its domain.
        NotBridged = "not-bridged", "the interface left its bridge domain while the frame was \
            under way";
        /// Told.
        New = info "new", "unknown sources told to the control thread";
        /// Told.
        Moved = info "moved", "sources behind another port than before, told to the control thread";
        /// Told before.
        KnownAlready = info "asked-already", "frames from sources that were told a moment ago";
        /// Too many a second.
        NotNow = info "not-yet", "frames from unknown sources that were not told: so many are \
            learned a second at most";
        /// Too many.
        QueueFull = info "queue-full", "sources not told: too many wait to be learned";
        /// At the limit.
        Full = info "table-full", "sources not told: the domain or the table has as many \
            addresses as it may";
        /// Once a minute.
        Stamped = info "stamped", "entries whose time was noted";
    }
}

/// `l2-learn`, a packet's part of it; and `l2-flood-learn` (`ALL`), of frames that are flooded
/// whatever their destination.
pub struct L2Learn<const ALL: bool = false> {
    published: Arc<Published>,
    table: MacTable,
    next_nodes: NextNodes,
    asker: RefCell<Asker>,
}

/// What holds for a port.
#[derive(Clone, Copy)]
pub struct InterfaceState {
    /// 0 when it is no port any more.
    domain: DomainIndex,
    /// What a known source looks like.
    seen: Seen,
    onward: Option<Onward>,
    now_ns: u64,
}

/// Is a frame to a group of stations?
#[inline(always)]
fn is_to_group(packet: &Packet) -> bool {
    packet.bytes().first().is_some_and(|first| first & 1 != 0)
}

impl<const ALL: bool> L2Learn<ALL> {
    /// A source that is not known here, or not seen for a minute.
    #[cold]
    #[inline(never)]
    fn take_slow_path(
        &self,
        context: StageContext<'_>,
        interface_state: InterfaceState,
        found: MacEntry,
        packet: &Packet,
    ) -> Result<(), L2LearnDrop> {
        let Some(addresses) = Addresses::of(packet) else { return Ok(()) };
        let key = MacKey::from_wire(interface_state.domain, addresses.source());
        let holds = found.holds(self.table.ports().word(found.port()));
        if holds && found.is_filter() {
            return Err(L2LearnDrop::Filtered);
        }
        if holds && found.port() == interface_state.seen.entry().port() {
            if found.far_end().is_some() {
                return Ok(());
            }
            if self.table.refresh(key, found, interface_state.seen) {
                context.count(L2LearnDrop::Stamped, 1);
            }
            return Ok(());
        }
        if holds && found.is_static() {
            return Err(L2LearnDrop::StaticMoved);
        }
        let event = if !holds && self.table.ports().is_full(interface_state.domain) {
            L2LearnDrop::Full
        } else {
            match self.asker.borrow_mut().ask(
                Request { key, seen: interface_state.seen },
                found,
                interface_state.now_ns,
            ) {
                LearnOutcome::KnownAlready => L2LearnDrop::KnownAlready,
                LearnOutcome::QueueFull => L2LearnDrop::QueueFull,
                LearnOutcome::NotNow => L2LearnDrop::NotNow,
                LearnOutcome::Queued if holds => L2LearnDrop::Moved,
                LearnOutcome::Queued => L2LearnDrop::New,
            }
        };
        context.count(event, 1);
        Ok(())
    }
}

impl<const ALL: bool> LookUp for L2Learn<ALL> {
    const NAME: &'static str = if ALL { nodes::FLOOD_LEARN } else { nodes::LEARN };
    type Reason = L2LearnDrop;
    type Key = u64;
    type Found = MacEntry;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        let port = self.published.read(cx.pass).port(rx);
        self.asker.borrow_mut().begin(cx.now_ns);
        InterfaceState {
            domain: port.map_or(DomainIndex(0), |port| port.domain),
            seen: self.table.expected(rx, StampMinutes::from_ns(cx.now_ns)),
            onward: port.map(|port| Onward::of(port, self.next_nodes)),
            now_ns: cx.now_ns,
        }
    }

    #[inline(always)]
    fn key(&self, interface_state: InterfaceState, packet: &mut Packet) -> u64 {
        let source = Addresses::of(packet).map_or(0, Addresses::source);
        MacKey::from_wire(interface_state.domain, source).word()
    }

    #[inline(always)]
    fn find(&self, variant: Variant, _: InterfaceState, keys: &[u64], found: &mut [MacEntry]) {
        self.table.lookup_slice(variant, keys, found);
    }

    #[inline(always)]
    fn find_uniform(
        &self,
        variant: Variant,
        interface_state: InterfaceState,
        keys: &[u64],
        found: &mut [MacEntry],
    ) {
        find_once(keys, found, |keys, found| self.find(variant, interface_state, keys, found));
    }

    /// All sources are known, and all frames are to one station each.
    #[inline(always)]
    fn resolve_all(
        &self,
        _: StageContext<'_>,
        interface_state: InterfaceState,
        found: &[MacEntry],
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        let next = interface_state.onward.filter(|_| !ALL)?.to_station()?;
        let mut is_plain = true;
        for (packet, found) in packets.iter().zip(found) {
            is_plain &= found.is_current(interface_state.seen) & !is_to_group(packet);
        }
        if !is_plain {
            return None;
        }
        packets.iter_mut().for_each(Packet::hand_over_nothing);
        Some(next)
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        interface_state: InterfaceState,
        _: u64,
        found: MacEntry,
        packet: &mut Packet,
    ) -> Result<NodeId, L2LearnDrop> {
        let Some(onward) = interface_state.onward else { return Err(L2LearnDrop::NotBridged) };
        if !found.is_current(interface_state.seen) {
            self.take_slow_path(context, interface_state, found, packet)?;
        }
        let to_group = is_to_group(packet);
        if ALL {
            return onward.all(to_group).ok_or(L2LearnDrop::FloodOff);
        }
        let off = if to_group { L2LearnDrop::FloodOff } else { L2LearnDrop::ForwardOff };
        onward.next(to_group, packet).ok_or(off)
    }

    #[inline]
    fn end(&self) {
        self.asker.borrow_mut().end();
    }
}

pub(crate) fn spec<const ALL: bool>(
    published: &Arc<Published>,
    table: &MacTable,
    offices: &LearnRings,
) -> NodeSpec {
    let (published, table, offices) = (published.clone(), table.clone(), offices.clone());
    let help = match ALL {
        true => "Learns which port a station is behind whose frame is to be flooded",
        false => "Learns which port a station is behind",
    };
    NodeSpec::look_up(help, move |wiring| L2Learn::<ALL> {
        published: published.clone(),
        table: table.clone(),
        next_nodes: next_nodes(wiring),
        asker: RefCell::new(offices.open()),
    })
    .takes_offloads()
    .describe(|record, names| {
        let (rx, frame) = (names.interface(record.rx), crate::description::frame(record));
        let next = if record.next == DROP { "nowhere".to_owned() } else { names.node(record.next) };
        format!("{frame}: the source is behind {rx}; to {next}")
    })
}

//! The virtual routers of one worker, and what they send.

use std::net::IpAddr;

use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId};
use quiver_forwarding::ip::{Ip4, Ip6, IpTables, choose};
use quiver_tables::GroupId;
use quiver_wire::vrrp::{Advertisement, ChecksumOver, PRIORITY_CEASES};

use crate::frames::{self, FRAME_BYTES_MAX, PACKET_BYTES_MAX};
use crate::machine::{Effect, Machine, NEVER, State};
use crate::reasons::VrrpDrop;
use crate::shared::{Shared, VIRTUAL_ROUTERS_MAX, VrKey};

/// What is counted of a virtual router.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Advertisements received and taken in.
    pub received: u64,
    /// Advertisements sent.
    pub sent: u64,
    /// Advertisements of priority 0 received: the active router ceased.
    pub ceased: u64,
    /// Advertisements with other addresses than those configured.
    pub other_addresses: u64,
    /// How often this router became the active one.
    pub became_active: u64,
    /// When the state changed last.
    pub changed_ns: u64,
}

/// A virtual router as its worker holds it.
pub struct VirtualRouter {
    /// The state machine.
    pub machine: Machine,
    /// Which one.
    pub key: VrKey,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// What advertisements come from, when it is known.
    pub source: Option<IpAddr>,
    /// Where advertisements go instead of to the group, with the path to each.
    pub peers: Vec<(IpAddr, GroupId)>,
    /// Do they go to the peers?
    pub is_unicast: bool,
    /// What the checksum of advertisements goes over.
    pub checksum_over: ChecksumOver,
    /// Who advertised last, and with which priority.
    pub heard: Option<(IpAddr, u8)>,
    /// What was counted.
    pub counts: Counts,
}

/// Room for all virtual routers of a worker, made by the control thread.
pub struct Store(Box<[Option<Box<VirtualRouter>>]>);

impl Store {
    /// No virtual router.
    pub fn new() -> Box<Store> {
        Box::new(Store((0..VIRTUAL_ROUTERS_MAX).map(|_| None).collect()))
    }

    /// A virtual router.
    pub fn get(&mut self, slot: u16) -> Option<&mut VirtualRouter> {
        self.0.get_mut(usize::from(slot))?.as_deref_mut()
    }

    /// Put a virtual router into its slot; what was there comes back.
    pub fn put(
        &mut self,
        slot: u16,
        router: Option<Box<VirtualRouter>>,
    ) -> Option<Box<VirtualRouter>> {
        match self.0.get_mut(usize::from(slot)) {
            Some(place) => std::mem::replace(place, router),
            None => router,
        }
    }

    /// All, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &VirtualRouter)> {
        let numbered = self.0.iter().enumerate();
        numbered.filter_map(|(slot, router)| Some((slot as u16, router.as_deref()?)))
    }

    /// The next one that is due by `now_ns`.
    pub fn due(&self, now_ns: u64) -> Option<u16> {
        self.iter().find(|(_, router)| router.machine.due_ns() <= now_ns).map(|(slot, _)| slot)
    }

    /// When the next one is due.
    pub fn next_ns(&self) -> Option<u64> {
        let due = self.iter().map(|(_, router)| router.machine.due_ns());
        due.min().filter(|due_ns| *due_ns != NEVER)
    }
}

/// What a worker needs to send for its virtual routers.
pub struct Sender<'a> {
    /// Where paths lead.
    pub tables: &'a IpTables,
    /// What is published.
    pub shared: &'a Shared,
}

impl Sender<'_> {
    /// Carry out what follows from an event of a virtual router.
    pub fn apply(
        &self,
        cx: &mut Context<'_>,
        router: &mut VirtualRouter,
        slot: u16,
        effect: Effect,
    ) {
        if let Some(priority) = effect.advertise {
            self.advertise(cx, router, priority);
        }
        if effect.announce {
            self.announce(cx, router);
        }
        if effect.changed {
            let state = router.machine.state();
            router.counts.became_active += u64::from(state == State::Active);
            router.counts.changed_ns = cx.now_ns;
            self.shared.set_state(slot, state);
        }
    }

    fn advertise(&self, cx: &mut Context<'_>, router: &mut VirtualRouter, priority: u8) {
        let Some(from) = router.source else { return };
        let settings = router.machine.settings();
        let (vr_id, interval_cs) = (settings.vr_id, settings.interval_cs);
        let update = Advertisement { vr_id, priority, interval_cs };
        let over = router.checksum_over;
        if router.is_unicast {
            for (peer, group) in &router.peers {
                let mut bytes = [0; PACKET_BYTES_MAX];
                let ends = (from, *peer);
                let length =
                    frames::advertisement(update, &router.addresses, over, ends, &mut bytes);
                let Some(length) = length else { continue };
                router.counts.sent += u64::from(self.send_by(cx, *group, &bytes[..length]));
            }
            return;
        }
        let is_ip6 = router.key.is_ip6;
        let mut bytes = [0; FRAME_BYTES_MAX];
        let Some(at) = frames::group_header(vr_id, is_ip6, &mut bytes) else { return };
        let ends = (from, frames::group(is_ip6));
        let body = &mut bytes[at..];
        let Some(length) = frames::advertisement(update, &router.addresses, over, ends, body)
        else {
            return;
        };
        let sent = self.send_frame(cx, router.key.interface, &bytes[..at + length]);
        router.counts.sent += u64::from(sent);
        debug_assert!(priority != PRIORITY_CEASES || router.machine.state() == State::Initialize);
    }

    /// Tell all hosts of the link where the addresses are now.
    fn announce(&self, cx: &mut Context<'_>, router: &VirtualRouter) {
        for address in &router.addresses {
            let mut bytes = [0; FRAME_BYTES_MAX];
            if let Some(length) = frames::announcement(router.key.vr_id, *address, &mut bytes) {
                self.send_frame(cx, router.key.interface, &bytes[..length]);
            }
        }
    }

    /// Send a frame on a link; false when the interface is down, or there is no buffer.
    fn send_frame(&self, cx: &mut Context<'_>, on: InterfaceId, frame: &[u8]) -> bool {
        let Some(output) = cx.interface(on).filter(|row| row.up).map(|row| row.output) else {
            return false;
        };
        let Some(mut packet) = cx.buffers.packet() else {
            cx.count(VrrpDrop::NoBuffer, 1);
            return false;
        };
        (packet.rx, packet.tx) = (InterfaceId::NONE, on);
        packet.set(PacketFlags::LOCALLY_ORIGINATED);
        if !packet.append(frame, cx.buffers) || !cx.encapsulate(on, &mut packet) {
            cx.count(VrrpDrop::NoBuffer, 1);
            cx.buffers.free(packet);
            return false;
        }
        cx.emit(packet, output);
        true
    }

    /// Send an IP packet by the path of a group.
    fn send_by(&self, cx: &mut Context<'_>, group: GroupId, bytes: &[u8]) -> bool {
        let Some(mut packet) = cx.buffers.packet() else {
            cx.count(VrrpDrop::NoBuffer, 1);
            return false;
        };
        (packet.rx, packet.tx) = (InterfaceId::NONE, InterfaceId::NONE);
        packet.set(PacketFlags::LOCALLY_ORIGINATED);
        if !packet.append(bytes, cx.buffers) {
            cx.count(VrrpDrop::NoBuffer, 1);
            cx.buffers.free(packet);
            return false;
        }
        let is_ip6 = bytes.first().is_some_and(|first| first >> 4 == 6);
        let next = match is_ip6 {
            true => choose::<Ip6>(&self.tables.groups, group, &mut packet),
            false => choose::<Ip4>(&self.tables.groups, group, &mut packet),
        };
        cx.emit(packet, next);
        true
    }
}

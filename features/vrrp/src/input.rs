//! `vrrp-input`: advertisements go to their virtual routers; at their times, these advertise, and
//! miss the active router. All of it happens on the worker that has the virtual router.

use std::any::Any;
use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::sessions::{SessionInput, Taken, run_sessions};
use quiver_core::{Context, Frame, Node, Packet};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::nodes;
use quiver_wire::vrrp::{Advertisement, PRIORITY_CEASES, PRIORITY_OWNER, TTL, VrrpMalformation};

use crate::frames::Received;
use crate::machine::{Effect, State, is_higher};
use crate::reasons::VrrpDrop;
use crate::routers::{Sender, Store, VirtualRouter};
use crate::shared::{Place, Shared, VIRTUAL_ROUTERS_MAX, VrKey};

/// The node's name.
pub const NODE: &str = "vrrp-input";

/// A worker's instance.
pub struct VrrpInput {
    /// Its virtual routers, once it has had one.
    pub store: Option<Box<Store>>,
    shared: Arc<Shared>,
    tables: IpTables,
}

impl VrrpInput {
    /// Do something with a virtual router, and carry out what follows.
    pub fn with_router(
        &mut self,
        cx: &mut Context<'_>,
        slot: u16,
        work: impl FnOnce(&mut VirtualRouter, u64) -> Effect,
    ) {
        let VrrpInput { store, shared, tables } = self;
        let Some(store) = store else { return };
        if let Some(router) = store.get(slot) {
            let effect = work(router, cx.now_ns);
            Sender { tables, shared }.apply(cx, router, slot, effect);
        }
        if let Some(next_ns) = store.next_ns() {
            cx.tick_at(next_ns);
        }
    }

    /// Take a virtual router away; if it was the active one, it says that it ceases.
    pub fn remove(&mut self, cx: &mut Context<'_>, slot: u16) -> Option<Box<VirtualRouter>> {
        self.with_router(cx, slot, |router, now_ns| router.machine.set_running(false, now_ns));
        self.store.as_mut()?.put(slot, None)
    }
}

impl SessionInput for VrrpInput {
    type Reason = VrrpDrop;
    const HANDOFF_FULL: VrrpDrop = VrrpDrop::HandoffFull;

    fn take(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<Taken, VrrpDrop> {
        let truncated = VrrpDrop::Malformed(VrrpMalformation::Truncated);
        let received = Received::of(packet.bytes()).ok_or(truncated)?;
        if received.ttl != TTL {
            return Err(VrrpDrop::Ttl);
        }
        let Received { source, destination, message, .. } = received;
        let read = Advertisement::parse(source, destination, message)?;
        let update = read.advertisement;
        if update.interval_cs == 0 {
            return Err(VrrpDrop::IntervalZero);
        }
        let (interface, is_ip6) = (packet.rx, source.is_ipv6());
        let key = VrKey { interface, vr_id: update.vr_id, is_ip6 };
        let place = self.shared.find(key, cx.pass).ok_or(VrrpDrop::UnknownVrId)?;
        let Place { worker, slot } = place;
        if worker != cx.worker {
            return Ok(Taken::HandOff(worker));
        }
        let router = self.store.as_mut().and_then(|store| store.get(slot));
        let router = router.ok_or(VrrpDrop::UnknownVrId)?;
        let own = router.source.filter(|_| router.machine.state() != State::Initialize);
        let own = own.ok_or(VrrpDrop::NotStarted)?;
        if router.machine.settings().priority == PRIORITY_OWNER {
            return Err(VrrpDrop::Owner);
        }
        let is_same = read.addresses().eq(router.addresses.iter().copied());
        self.with_router(cx, slot, |router, now_ns| {
            router.counts.received += 1;
            router.counts.other_addresses += u64::from(!is_same);
            router.counts.ceased += u64::from(update.priority == PRIORITY_CEASES);
            router.heard = Some((source, update.priority));
            router.machine.receive(&update, is_higher(source, own), now_ns)
        });
        Ok(Taken::Here)
    }

    fn is_unknown(reason: VrrpDrop) -> bool {
        matches!(reason, VrrpDrop::UnknownVrId)
    }
}

impl Node for VrrpInput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        run_sessions(self, cx, frame);
    }

    fn tick(&mut self, cx: &mut Context<'_>) -> Option<u64> {
        for _ in 0..VIRTUAL_ROUTERS_MAX {
            let Some(slot) = self.store.as_ref()?.due(cx.now_ns) else { break };
            self.with_router(cx, slot, |router, now_ns| router.machine.pass_time(now_ns));
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
    NodeSpec::new(NODE, "Takes VRRP advertisements to their virtual routers", move |wiring| {
        for next in [
            nodes::ip4::REWRITE,
            nodes::ip4::ARP,
            nodes::ip4::DROP,
            nodes::ip6::REWRITE,
            nodes::ip6::DISCOVER_NEIGHBOR,
            nodes::ip6::DROP,
        ] {
            wiring.node(next);
        }
        let tables: Arc<IpTables> = wiring.shared();
        Box::new(VrrpInput { store: None, shared: shared.clone(), tables: (*tables).clone() })
    })
    .reasons::<VrrpDrop>()
    .describe(|record, names| {
        let next = names.node(record.next);
        let Some(received) = Received::of(record.bytes()) else { return format!("to {next}") };
        let Received { source, destination, message, .. } = received;
        match Advertisement::parse(source, destination, message) {
            Ok(read) => {
                let Advertisement { vr_id, priority, .. } = read.advertisement;
                format!("VRRP from {source}: VR ID {vr_id}, priority {priority}, to {next}")
            }
            Err(why) => format!("VRRP from {source}: {why}"),
        }
    })
}

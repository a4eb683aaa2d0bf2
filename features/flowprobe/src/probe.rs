//! `flowprobe-input` and `flowprobe-output`: the packets of an interface are counted by flow.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::{DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet, WorkerId};

use crate::flows::Flows;
use crate::key::{FlowKey, Kinds, Link, Place, Shape, key};
use crate::shared::Shared;

/// Nanoseconds of a millisecond.
pub(crate) const MILLISECOND_NS: u64 = 1_000_000;

quiver_core::reasons! {
    /// Packets that are in no flow record.
    pub enum FlowEvent {
        /// Full.
        TableFull = info "table-full", "packets not recorded: the worker's table of flows is full \
            (`flowprobe table max-entries`)";
        /// The control thread changes the table.
        Changing = info "table-changing",
            "packets not recorded: the table was just made or taken away";
    }
}

/// The name of the node of a direction.
pub(crate) const fn name(is_output: bool) -> &'static str {
    if is_output { "flowprobe-output" } else { "flowprobe-input" }
}

/// A worker's instance.
pub(crate) struct Probe<const OUTPUT: bool> {
    shared: Arc<Shared>,
    worker: WorkerId,
    id: NodeId,
}

/// What holds for the packets that an interface receives.
#[derive(Clone, Copy)]
pub(crate) struct Probed {
    shape: Shape,
    /// Of what it receives.
    kinds: Kinds,
    is_bare: bool,
    /// [`Place::plain_tail`] of what it receives.
    plain_tail: u64,
    /// Of what is received: where packets go on.
    behind: Option<Behind>,
}

impl<const OUTPUT: bool> Probe<OUTPUT> {
    /// Do something with the worker's flows; `None` while the control thread changes them.
    #[inline(always)]
    fn with_flows<R>(&self, work: impl FnOnce(&mut Flows) -> R) -> Option<R> {
        let worker = self.shared.worker(self.worker)?;
        let mut locked = worker.flows.try_lock().ok()?;
        locked.as_mut().map(|flows| work(flows))
    }

    fn count(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        keys: &[FlowKey],
        missing: &mut [bool],
    ) {
        let now_ms = context.now_ns() / MILLISECOND_NS;
        let counted = self.with_flows(|flows| flows.count(variant, now_ms, keys, missing));
        if counted.is_none() {
            missing.fill(false);
            let packets = keys.iter().map(|key| u64::from(key.packets)).sum();
            context.count(FlowEvent::Changing, packets);
        }
    }

    /// Where a packet is seen.
    #[inline(always)]
    fn place(&self, state: Probed, packet: &Packet) -> Place {
        let (interface, kinds) = match OUTPUT {
            true => (packet.tx.0, self.shared.kinds(packet.tx.0, true)),
            false => (packet.rx.0, state.kinds),
        };
        Place {
            interface,
            is_output: OUTPUT,
            // What leaves by an interface without link layer, begins as what it is.
            is_bare: if OUTPUT { kinds.any(Kinds::BARE.0) } else { state.is_bare },
            kinds,
            shape: state.shape,
        }
    }

    /// Count a packet that has no flow yet.
    #[cold]
    #[inline(never)]
    fn begin(&self, context: StageContext<'_>, state: Probed, key: &FlowKey, packet: &Packet) {
        let (now_ms, place) = (context.now_ns() / MILLISECOND_NS, self.place(state, packet));
        let link = Link::of(packet.bytes(), &place, key, &self.shared.secret);
        let other = if OUTPUT { packet.rx } else { InterfaceId::NONE };
        let event = match self.with_flows(|flows| flows.begin(now_ms, key, &link, other)) {
            Some(Ok(())) => return,
            Some(Err(_)) => FlowEvent::TableFull,
            None => FlowEvent::Changing,
        };
        context.count(event, key.packets.into());
    }
}

impl<const OUTPUT: bool> LookUp for Probe<OUTPUT> {
    const NAME: &'static str = name(OUTPUT);
    type Reason = FlowEvent;
    type Key = FlowKey;
    /// Has the packet no flow yet?
    type Found = bool;
    type InterfaceState = Probed;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Probed {
        let row = cx.interface(rx);
        let end = row.map_or(DROP, |row| row.input);
        let (shape, kinds) = (self.shared.shape(), self.shared.kinds(rx.0, false));
        let is_bare = row.is_some_and(|row| row.mac == [0; 6]);
        let place = Place { interface: rx.0, is_output: false, is_bare, kinds, shape };
        Probed {
            shape,
            kinds,
            is_bare,
            plain_tail: place.plain_tail(),
            behind: (!OUTPUT).then(|| cx.behind(DEVICE_INPUT, rx, self.id, end)),
        }
    }

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        packet.prefetch();
    }

    #[inline(always)]
    fn key(&self, state: Probed, packet: &mut Packet) -> FlowKey {
        let place = self.place(state, packet);
        let plain_tail = if OUTPUT { place.plain_tail() } else { state.plain_tail };
        key(packet, place, plain_tail, &self.shared.secret)
    }

    #[inline(always)]
    fn find(&self, _: Variant, _: Probed, _: &[FlowKey], missing: &mut [bool]) {
        missing.fill(false); // the loop calls the others
    }

    #[inline(always)]
    fn find_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        _: Probed,
        keys: &[FlowKey],
        missing: &mut [bool],
    ) {
        self.count(context, variant, keys, missing);
    }

    #[inline(always)]
    fn find_uniform_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        _: Probed,
        keys: &[FlowKey],
        missing: &mut [bool],
    ) {
        self.count(context, variant, keys, missing);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        state: Probed,
        key: FlowKey,
        is_missing: bool,
        packet: &mut Packet,
    ) -> Result<NodeId, FlowEvent> {
        if is_missing {
            self.begin(context, state, &key, packet);
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
pub(crate) fn spec<const OUTPUT: bool>(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = match OUTPUT {
        false => "Counts packets that an interface receives, by flow",
        true => "Counts packets that an interface sends, by flow",
    };
    NodeSpec::look_up(help, move |wiring| Probe::<OUTPUT> {
        shared: shared.clone(),
        worker: wiring.worker,
        id: wiring.id,
    })
    .takes_offloads()
    .describe(|record, names| {
        format!("{} bytes, to {}", record.packet_bytes, names.node(record.next))
    })
}

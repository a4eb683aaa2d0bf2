//! Which interfaces are recorded, and how: checked, then applied.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_export::ipfix::exporter::{IpfixExporter, Stream};
use quiver_export::moment::Moment;
use quiver_export::records::Records;
use quiver_tables::exact::{Limits, Seed};

use crate::clock::{CLOCK, Clock};
use crate::flow::{FlowRecord, Writer};
use crate::flows::Flows;
use crate::key::{Kinds, Shape};
use crate::probe;
use crate::shared::Shared;
use crate::templates;

/// Flows that a worker's table may be sized for; address space is reserved for so many.
const FLOWS_MAX: usize = 1 << 24;
/// Flows of a worker when nothing else is configured.
pub(crate) const FLOWS_DEFAULT: u32 = 65_536;
/// Records that a worker may be ahead of the control thread.
const RING_RECORDS: usize = 16_384;
const LIMITS: Limits = Limits {
    what: "table of flows",
    entries_max: FLOWS_MAX,
    remedy: "flowprobe table max-entries",
};

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub shape: Shape,
    /// A flow that goes on is exported after so many seconds.
    pub active_s: u32,
    /// A flow without a packet is exported after so many seconds.
    pub passive_s: u32,
    /// The observation domain.
    pub domain: u32,
}

impl Settings {
    /// Timers as VPP has them.
    pub const DEFAULT: Settings =
        Settings { shape: Shape::L3_L4, active_s: 15, passive_s: 120, domain: 0 };

    fn stream(&self) -> Stream {
        Stream { domain: self.domain, source_port: 0, templates: templates::ALL }
    }
}

/// Which packets are recorded, by direction: received, sent.
pub(crate) type OfInterface = [Kinds; 2];

/// The state, kept in the engine.
pub(crate) struct Flowprobe {
    pub shared: Arc<Shared>,
    pub records: Records<FlowRecord>,
    pub settings: Settings,
    pub flows_max: u32,
    pub interfaces: BTreeMap<InterfaceId, OfInterface>,
    /// Have workers their tables?
    pub is_open: bool,
    pub exported: u64,
    /// Records lost when the collector last heard of them, and when that was.
    pub reported: (u64, u64),
}

impl Flowprobe {
    pub fn new(shared: Arc<Shared>) -> Flowprobe {
        let settings = Settings::DEFAULT;
        shared.set(settings.shape, settings.active_s, settings.passive_s);
        Flowprobe {
            shared,
            records: Records::default(),
            settings,
            flows_max: FLOWS_DEFAULT,
            interfaces: BTreeMap::new(),
            is_open: false,
            exported: 0,
            reported: (0, 0),
        }
    }

    /// Records that found a ring full.
    pub fn lost(&self) -> u64 {
        self.records.counts().map(|(_, counts)| counts.lost).sum()
    }
}

fn refused(error: impl ToString) -> Refusal {
    Refusal::new(error.to_string())
}

/// Change settings. Flows that live end with the fields that they began with.
pub(crate) fn set(engine: &mut Engine, settings: Settings) {
    let at = Moment::of(engine);
    engine.with(|engine, own: &mut Flowprobe| {
        let before = own.settings;
        own.settings = settings;
        own.shared.set(settings.shape, settings.active_s, settings.passive_s);
        let Some(exporter) = engine.get_mut::<IpfixExporter>().filter(|_| own.is_open) else {
            return;
        };
        if before.domain != settings.domain {
            exporter.close(at, before.domain);
            exporter.open(at, settings.stream());
        }
    });
}

/// Size the tables of workers.
pub(crate) fn set_flows_max(engine: &mut Engine, flows: u32) -> Result<(), Refusal> {
    engine.with(|engine, own: &mut Flowprobe| {
        if flows == own.flows_max {
            return Ok(());
        }
        if let Some(id) = own.interfaces.keys().next() {
            let name = engine.interface_name(*id);
            return Err(Refusal::new(format!("the flows of {name} are in the tables"))
                .remedy("disable `flowprobe feature` of all interfaces first"));
        }
        close(engine, own);
        own.flows_max = flows;
        Ok(())
    })
}

/// Give each worker its table, unless it has one.
fn open(engine: &mut Engine, own: &mut Flowprobe) -> Result<(), Refusal> {
    if own.is_open {
        return Ok(());
    }
    let clock =
        engine.node_id(CLOCK).ok_or_else(|| refused("the clock of flows is not built in"))?;
    let mut made = Vec::new();
    for _ in &own.shared.workers {
        let mut writer = Writer::new(engine.epochs(), LIMITS, Seed::random()).map_err(refused)?;
        if let Err(error) = writer.enable(own.flows_max as usize) {
            return Err(refused(error).remedy("flowprobe table max-entries with fewer"));
        }
        made.push(Box::new(Flows::new(writer, own.records.open(RING_RECORDS))));
    }
    for (worker, flows) in own.shared.workers.iter().zip(made) {
        // A worker only tries to lock: it waits for nobody.
        if let Ok(mut place) = worker.flows.lock() {
            *place = Some(flows);
        }
    }
    for worker in 0..engine.worker_count() {
        let call = engine.call(WorkerId(worker as u16), move |worker| {
            worker.visit::<Clock, _>(clock, Clock::start);
        });
        call.map_err(refused)?;
    }
    own.is_open = true;
    let at = Moment::of(engine);
    if let Some(exporter) = engine.get_mut::<IpfixExporter>() {
        exporter.open(at, own.settings.stream());
    }
    Ok(())
}

/// Take the tables from workers. Flows that live end.
fn close(engine: &mut Engine, own: &mut Flowprobe) {
    if !own.is_open {
        return;
    }
    own.is_open = false;
    let shared = own.shared.clone();
    for worker in &shared.workers {
        let taken = worker.flows.lock().ok().and_then(|mut place| place.take());
        let Some(mut flows) = taken else { continue };
        // No interface is recorded, so that every flow is due.
        let places = flows.writer.places();
        for _ in 0..places.div_ceil(RING_RECORDS) {
            let now_ms = engine.now_ns() / probe::MILLISECOND_NS;
            flows.turn_over(RING_RECORDS, now_ms, &shared.timers());
            crate::exporting::export(engine, own, RING_RECORDS);
        }
        worker.live.store(0, std::sync::atomic::Ordering::Relaxed);
    }
    let at = Moment::of(engine);
    if let Some(exporter) = engine.get_mut::<IpfixExporter>() {
        exporter.close(at, own.settings.domain);
    }
}

/// Record these packets of an interface, and no others.
pub(crate) fn enable(
    engine: &mut Engine,
    id: InterfaceId,
    wanted: OfInterface,
) -> Result<(), Refusal> {
    engine.with(|engine, own: &mut Flowprobe| {
        if wanted != OfInterface::default() {
            open(engine, own)?;
        }
        let before = own.interfaces.get(&id).copied().unwrap_or_default();
        apply(engine, &own.shared, id, (before, wanted)).inspect_err(|_| {
            // What was before was possible before.
            let _ = apply(engine, &own.shared, id, (wanted, before));
        })?;
        match wanted == OfInterface::default() {
            true => own.interfaces.remove(&id),
            false => own.interfaces.insert(id, wanted),
        };
        Ok(())
    })
}

fn apply(
    engine: &mut Engine,
    shared: &Shared,
    id: InterfaceId,
    (before, wanted): (OfInterface, OfInterface),
) -> Result<(), Refusal> {
    let is_bare = engine.interface(id).is_some_and(|own| own.row().mac == [0; 6]);
    for (is_output, arc) in [(false, "device-input"), (true, "interface-output")] {
        let (before, wanted) = (before[usize::from(is_output)], wanted[usize::from(is_output)]);
        let bare = if is_bare && wanted != Kinds::default() { Kinds::BARE.0 } else { 0 };
        shared.set_kinds(id, is_output, Kinds(wanted.0 | bare));
        let (was_on, on) = (before != Kinds::default(), wanted != Kinds::default());
        if was_on != on {
            engine.set_feature(id, arc, probe::name(is_output), on)?;
        }
    }
    Ok(())
}

/// An interface that goes is recorded no more.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change == InterfaceChange::Deleted
        && let Some(own) = engine.get_mut::<Flowprobe>()
        && own.interfaces.remove(&id).is_some()
    {
        for is_output in [false, true] {
            own.shared.set_kinds(id, is_output, Kinds::default());
        }
    }
}

//! Reassembly on the control thread: settings, and the worker calls that carry them to workers.

use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::memory::buffer::BufferPool;
use quiver_core::worker::Worker;
use quiver_core::{Engine, InterfaceId, WorkerId};

use crate::node::ReassemblyNode;
use crate::store::Store;
use crate::tables::{Gauge, Kind, Limits, Shared};

/// Packets of one kind that wait for fragments on one worker, unless set.
pub const REASSEMBLIES_DEFAULT: u32 = 1024;
/// Fragments of one packet, unless set: 65,535 bytes in fragments for an MTU of 576.
pub const FRAGMENTS_DEFAULT: u32 = 128;
/// How long a packet waits for its fragments in full reassembly, unless set (RFC 8200 §4.5, RFC
/// 1122 §3.3.2).
pub const FULL_TIMEOUT_MS_DEFAULT: u64 = 60_000;
/// How long fragments wait for the first in virtual reassembly, unless set.
pub const VIRTUAL_TIMEOUT_MS_DEFAULT: u64 = 2000;
/// How often packets that wait are looked through, unless set.
pub const EXPIRE_WALK_MS_DEFAULT: u64 = 100;
/// The shortest that it can be set to.
pub const EXPIRE_WALK_MS_MIN: u64 = 10;
/// Packets that one walk forgets at most on one worker.
const EXPIRED_PER_WALK: usize = 256;
/// Fragments hold one buffer of so many at most, unless set.
const POOL_SHARE: usize = 4;
/// Buffers that a worker may hold, however small the pool.
const BUFFERS_PER_WORKER_MIN: usize = 16;
/// Contexts that `details` shows of each worker at most.
const DETAILS_MAX: usize = 256;

/// What is set of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub timeout_ms: u64,
    pub reassemblies: u32,
    pub fragments: u32,
    pub walk_ms: u64,
}

impl Settings {
    pub const fn default_of(kind: Kind) -> Settings {
        let timeout_ms =
            if kind.is_virtual() { VIRTUAL_TIMEOUT_MS_DEFAULT } else { FULL_TIMEOUT_MS_DEFAULT };
        Settings {
            timeout_ms,
            reassemblies: REASSEMBLIES_DEFAULT,
            fragments: FRAGMENTS_DEFAULT,
            walk_ms: EXPIRE_WALK_MS_DEFAULT,
        }
    }
}

/// The state on the control thread.
pub(crate) struct Reassembly {
    shared: Arc<Shared>,
    settings: [Settings; 4],
    /// Buffers that fragments may hold, of all workers.
    buffers: usize,
    /// When each kind was walked through last.
    walked_ns: [u64; 4],
}

/// One packet under way, for `details`.
#[derive(Clone, Debug)]
pub(crate) struct Detail {
    pub worker: WorkerId,
    pub context: crate::store::Context,
    pub age_ns: u64,
}

fn default_buffers(pool: &BufferPool) -> usize {
    pool.total() / POOL_SHARE
}

fn buffers_per_worker(buffers: usize, workers: usize) -> usize {
    (buffers / workers.max(1)).max(BUFFERS_PER_WORKER_MIN)
}

/// Pieces that a store has room for: as many as buffers may be held, and no more than can be of
/// use.
fn store_of(
    settings: &Settings,
    shared: &Shared,
    buffers: usize,
    pool: &Arc<BufferPool>,
) -> Box<Store> {
    let most = settings.reassemblies as usize * settings.fragments as usize;
    let slots = buffers_per_worker(buffers, shared.workers()).min(most);
    Store::new(settings.reassemblies as usize, slots, shared.seed, pool)
}

/// What a node begins with.
pub(crate) fn first_store(kind: Kind, shared: &Shared, pool: &Arc<BufferPool>) -> Box<Store> {
    store_of(&Settings::default_of(kind), shared, default_buffers(pool), pool)
}

/// A number that nobody outside can know.
fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

impl Reassembly {
    pub fn new(pool: &BufferPool, workers: usize) -> Reassembly {
        let settings = Kind::ALL.map(Settings::default_of);
        let shared = Shared {
            seed: seed(),
            limits: settings.map(|s| Limits::new(s.timeout_ms, s.fragments)),
            gauges: (0..workers).map(|_| Kind::ALL.map(|_| Arc::new(Gauge::default()))).collect(),
            budgets: (0..workers).map(|_| Arc::default()).collect(),
        };
        let state = Reassembly {
            shared: Arc::new(shared),
            settings,
            buffers: default_buffers(pool),
            walked_ns: [0; 4],
        };
        state.share_out();
        state
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub fn settings(&self, kind: Kind) -> Settings {
        self.settings[kind as usize]
    }

    /// Buffers that fragments may hold, of all workers.
    pub fn buffers(&self) -> usize {
        self.buffers
    }

    fn share_out(&self) {
        let each = buffers_per_worker(self.buffers, self.shared.workers());
        self.shared.budgets.iter().for_each(|budget| budget.set_limit(each));
    }
}

/// Buffers that fragments may hold unless set.
pub(crate) fn buffers_default(engine: &Engine) -> usize {
    default_buffers(engine.pool())
}

/// The state.
pub(crate) fn state(engine: &Engine) -> Result<&Reassembly, Refusal> {
    engine.get::<Reassembly>().ok_or_else(|| Refusal::new("reassembly is being changed"))
}

/// Change what is set of one kind.
pub(crate) fn set(engine: &mut Engine, kind: Kind, new: Settings) -> Result<(), Refusal> {
    let old = state(engine)?.settings(kind);
    if old.reassemblies != new.reassemblies || old.fragments != new.fragments {
        let buffers = state(engine)?.buffers;
        replace_stores(engine, kind, &new, buffers)?;
    }
    if let Some(state) = engine.get_mut::<Reassembly>() {
        state.settings[kind as usize] = new;
        state.shared.limits[kind as usize].set(new.timeout_ms, new.fragments);
    }
    Ok(())
}

/// Change how many buffers fragments may hold.
pub(crate) fn set_buffers(engine: &mut Engine, buffers: usize) -> Result<(), Refusal> {
    for kind in Kind::ALL {
        let settings = state(engine)?.settings(kind);
        replace_stores(engine, kind, &settings, buffers)?;
    }
    if let Some(state) = engine.get_mut::<Reassembly>() {
        state.buffers = buffers;
        state.share_out();
    }
    Ok(())
}

/// Give each worker's node a store of another size. What is under way moves over.
fn replace_stores(
    engine: &mut Engine,
    kind: Kind,
    settings: &Settings,
    buffers: usize,
) -> Result<(), Refusal> {
    let (Some(node), pool) = (engine.node_id(kind.node()), engine.pool().clone()) else {
        return Ok(());
    };
    let shared = state(engine)?.shared.clone();
    for worker in 0..engine.worker_count() {
        let mut store = store_of(settings, &shared, buffers, &pool);
        engine.call(WorkerId(worker as u16), move |worker: &mut Worker| {
            worker
                .visit(node, |at: &mut ReassemblyNode, cx| at.contexts.swap_store(cx, &mut store));
        })?;
    }
    Ok(())
}

/// Switch a kind on an interface for the operator.
pub(crate) fn enable(
    engine: &mut Engine,
    on: InterfaceId,
    kind: Kind,
    enabled: bool,
) -> Result<(), Refusal> {
    Ok(engine.need_feature(on, kind.arc(), kind.feature(), OPERATOR, enabled)?)
}

/// Who the operator is among those who need a feature.
pub(crate) const OPERATOR: &str = "operator";

/// The packets of one kind that wait for fragments.
pub(crate) fn details(engine: &mut Engine, kind: Kind) -> Result<Vec<Detail>, Refusal> {
    let Some(node) = engine.node_id(kind.node()) else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for index in 0..engine.worker_count() {
        let mut found: Vec<Detail> = Vec::with_capacity(DETAILS_MAX);
        let of_worker = engine.call(WorkerId(index as u16), move |worker: &mut Worker| {
            let id = worker.id();
            worker.visit(node, |at: &mut ReassemblyNode, cx| {
                let contexts = &at.contexts;
                let mut at = contexts.store.oldest();
                while let Some(place) = at.filter(|_| found.len() < DETAILS_MAX) {
                    let context = contexts.store.at(place).clone();
                    let age_ns = cx.now_ns.saturating_sub(context.since_ns);
                    found.push(Detail { worker: id, context, age_ns });
                    at = contexts.store.newer(place);
                }
            });
            std::mem::take(&mut found)
        })?;
        all.extend(of_worker);
    }
    Ok(all)
}

/// Insert the state, and begin to look through what waits.
pub(crate) fn start(engine: &mut Engine, state: Reassembly) {
    engine.insert(state);
    engine.every(EXPIRE_WALK_MS_MIN * 1_000_000, walk);
    engine.on_interface_change(|engine, id, change| {
        if change == InterfaceChange::Deleted {
            forget_interface(engine, id);
        }
    });
}

/// Have workers forget what is too old.
fn walk(engine: &mut Engine) {
    let now_ns = engine.now_ns();
    for kind in Kind::ALL {
        let Some(node) = engine.node_id(kind.node()) else { continue };
        let Some(state) = engine.get_mut::<Reassembly>() else { return };
        let last = &mut state.walked_ns[kind as usize];
        let due = now_ns.saturating_sub(*last) >= state.settings[kind as usize].walk_ms * 1_000_000;
        if !due || state.shared.packets(kind) == 0 {
            continue;
        }
        *last = now_ns;
        for worker in 0..engine.worker_count() {
            engine.post(WorkerId(worker as u16), move |worker: &mut Worker| {
                worker.visit(node, |at: &mut ReassemblyNode, cx| {
                    at.expire_up_to(cx, EXPIRED_PER_WALK)
                });
            });
        }
    }
}

fn forget_interface(engine: &mut Engine, gone: InterfaceId) {
    for kind in Kind::ALL {
        let Some(node) = engine.node_id(kind.node()) else { continue };
        for worker in 0..engine.worker_count() {
            engine.post(WorkerId(worker as u16), move |worker: &mut Worker| {
                worker.visit(node, |at: &mut ReassemblyNode, cx| {
                    at.contexts.forget_interface(cx, gone)
                });
            });
        }
    }
}

/// The rows of `show memory`.
pub(crate) fn memory(engine: &Engine) -> Vec<(&'static str, u64)> {
    let Ok(state) = state(engine) else { return Vec::new() };
    let bytes: usize = Kind::ALL
        .iter()
        .map(|kind| {
            let settings = state.settings(*kind);
            let most = settings.reassemblies as usize * settings.fragments as usize;
            let slots = buffers_per_worker(state.buffers, state.shared.workers()).min(most);
            Store::size_for(settings.reassemblies as usize, slots) * state.shared.workers()
        })
        .sum();
    vec![("reassembly", bytes as u64)]
}

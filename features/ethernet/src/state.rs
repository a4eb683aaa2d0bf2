//! Which interfaces are patched or cross-connected: the control thread's copy, and what workers
//! see.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::modes::{self, LayerTwo};
use quiver_control::{ConfigWriter, Refusal};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{Engine, InterfaceId};

use crate::cross::Kind;
use crate::vlan;

/// What workers see, replaced whole.
pub type Published = quiver_core::memory::epoch::Published<Peers>;

/// By receiving interface: where its frames go, patched and cross-connected.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    patch: Vec<Option<InterfaceId>>,
    xconnect: Vec<Option<InterfaceId>>,
}

impl Peers {
    /// Where frames of `interface` go.
    #[inline]
    pub fn peer(&self, kind: Kind, interface: InterfaceId) -> Option<InterfaceId> {
        let peers = match kind {
            Kind::Patch => &self.patch,
            Kind::Xconnect => &self.xconnect,
        };
        peers.get(interface.index()).copied().flatten()
    }
}

/// The control thread's copy.
pub struct CrossConnects {
    patch: BTreeMap<InterfaceId, InterfaceId>,
    xconnect: BTreeMap<InterfaceId, InterfaceId>,
    published: Arc<Published>,
}

fn by_index(map: &BTreeMap<InterfaceId, InterfaceId>) -> Vec<Option<InterfaceId>> {
    let length = map.keys().next_back().map_or(0, |last| last.index() + 1);
    let mut peers = vec![None; length];
    for (from, to) in map {
        peers[from.index()] = Some(*to);
    }
    peers
}

impl CrossConnects {
    pub(crate) fn new(epochs: &Arc<Epochs>) -> CrossConnects {
        CrossConnects {
            patch: BTreeMap::new(),
            xconnect: BTreeMap::new(),
            published: Arc::new(Published::new(epochs, Peers::default())),
        }
    }

    pub(crate) fn published(&self) -> &Arc<Published> {
        &self.published
    }

    /// All connections of a kind, by receiving interface.
    pub fn all(&self, kind: Kind) -> &BTreeMap<InterfaceId, InterfaceId> {
        match kind {
            Kind::Patch => &self.patch,
            Kind::Xconnect => &self.xconnect,
        }
    }

    /// The interfaces whose frames leave by `id`.
    pub(crate) fn begins_of(
        &self,
        kind: Kind,
        id: InterfaceId,
    ) -> impl Iterator<Item = InterfaceId> {
        self.all(kind).iter().filter(move |(_, to)| **to == id).map(|(from, _)| *from)
    }

    /// The interfaces that frames of `id` leave by.
    pub(crate) fn ends_of(&self, id: InterfaceId) -> Vec<InterfaceId> {
        [&self.patch, &self.xconnect]
            .into_iter()
            .filter_map(|peers| peers.get(&id).copied())
            .collect()
    }

    fn all_mut(&mut self, kind: Kind) -> &mut BTreeMap<InterfaceId, InterfaceId> {
        match kind {
            Kind::Patch => &mut self.patch,
            Kind::Xconnect => &mut self.xconnect,
        }
    }

    fn publish(&self) {
        self.published
            .publish(Peers { patch: by_index(&self.patch), xconnect: by_index(&self.xconnect) });
    }
}

/// Send every frame that `from` receives out of `to`.
pub fn connect(
    engine: &mut Engine,
    kind: Kind,
    from: InterfaceId,
    to: InterfaceId,
) -> Result<(), Refusal> {
    if from == to {
        return Err(Refusal::new(format!(
            "{} cannot be connected to itself",
            engine.interface_name(from)
        )));
    }
    modes::check_free(engine, from)?;
    [from, to].into_iter().try_for_each(|id| modes::check_frames(engine, id))?;
    let before = engine.with(|_, crosses: &mut CrossConnects| {
        let before = crosses.all_mut(kind).insert(from, to);
        crosses.publish();
        before
    });
    for end in [Some(to), before].into_iter().flatten() {
        vlan::refresh(engine, end)?;
    }
    match kind {
        Kind::Patch => engine.set_feature(from, "device-input", kind.node(), true)?,
        Kind::Xconnect => {
            let with = engine.interface_name(to);
            let end = |engine: &mut Engine, from| disconnect(engine, Kind::Xconnect, from);
            modes::enter(
                engine,
                from,
                LayerTwo { mode: "l2 xconnect", with, input: Some(kind.node()), end },
            )?;
        }
    }
    Ok(())
}

/// End what [`connect`] began; of a cross-connect, what [`modes::leave`] leaves to be done.
pub fn disconnect(engine: &mut Engine, kind: Kind, from: InterfaceId) -> Result<(), Refusal> {
    let to = engine.with(|engine, crosses: &mut CrossConnects| {
        let Some(to) = crosses.all_mut(kind).remove(&from) else {
            let name = engine.interface_name(from);
            let refusal = Refusal::new(format!("{name} is not connected by {}", kind.node()));
            return Err(refusal.remedy("`show l2patch` lists what is"));
        };
        if kind == Kind::Patch {
            engine.set_feature(from, "device-input", kind.node(), false)?;
        }
        crosses.publish();
        Ok(to)
    })?;
    vlan::refresh(engine, to)
}

/// An interface that goes takes its connections along.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    for kind in [Kind::Patch, Kind::Xconnect] {
        let Some(crosses) = engine.get::<CrossConnects>() else { return };
        let ended: Vec<InterfaceId> = crosses
            .all(kind)
            .iter()
            .filter(|(from, to)| **from == id || **to == id)
            .map(|(f, _)| *f)
            .collect();
        for from in ended {
            // It was in the map a moment ago, so the only refusal possible is that `from` is gone.
            let _ = match kind {
                Kind::Patch => disconnect(engine, kind, from),
                Kind::Xconnect => modes::leave(engine, from).map(|_| ()),
            };
        }
    }
}

pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(crosses) = engine.get::<CrossConnects>() else { return };
    let name = |id: &InterfaceId| engine.interface_name(*id);
    let by_name =
        |pairs: Vec<(InterfaceId, InterfaceId)>| quiver_control::by_interface_name(engine, pairs);
    for (from, to) in by_name(crosses.xconnect.iter().map(|(from, to)| (*from, *to)).collect()) {
        config.command(format_args!("set interface l2 xconnect {} {}", name(&from), name(&to)));
    }
    for (from, to) in by_name(crosses.patch.iter().map(|(from, to)| (*from, *to)).collect()) {
        config.command(format_args!("test l2patch rx {} tx {}", name(&from), name(&to)));
    }
}

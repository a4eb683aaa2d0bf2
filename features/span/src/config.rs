//! Mirrors as the control thread holds them.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::{ConfigWriter, Refusal};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{Engine, InterfaceId};

use crate::table::{DESTINATIONS_MAX, Direction, Mirror, Mirrors, Published};

/// Both directions.
const BOTH: [Direction; 2] = [Direction::Rx, Direction::Tx];

/// All mirrors.
pub struct Spans {
    mirrors: BTreeMap<InterfaceId, Mirror>,
    published: Arc<Published>,
}

/// Whose copies go where, and of which directions: `rx`, `tx` or `both`.
pub(crate) type Copied = (InterfaceId, InterfaceId, &'static str);

impl Spans {
    pub(crate) fn new(epochs: &Arc<Epochs>) -> Spans {
        let published = Arc::new(Published::new(epochs, Mirrors::default()));
        Spans { mirrors: BTreeMap::new(), published }
    }

    pub(crate) fn published(&self) -> &Arc<Published> {
        &self.published
    }

    /// Each mirror: what is mirrored, by which directions, to where.
    pub fn all(&self) -> impl Iterator<Item = Copied> {
        self.mirrors.iter().flat_map(|(from, mirror)| {
            let only_tx = mirror.tx.iter().filter(|to| !mirror.rx.contains(to));
            let rx = mirror
                .rx
                .iter()
                .map(|to| (*to, if mirror.tx.contains(to) { "both" } else { "rx" }));
            rx.chain(only_tx.map(|to| (*to, "tx"))).map(|(to, directions)| (*from, to, directions))
        })
    }
}

fn spans(engine: &mut Engine) -> Result<&mut Spans, Refusal> {
    engine.get_mut::<Spans>().ok_or_else(|| Refusal::new("mirrors are being changed"))
}

/// Put a mirror into force, or take it out.
fn apply(engine: &mut Engine, from: InterfaceId, mirror: Mirror) -> Result<(), Refusal> {
    let spans = spans(engine)?;
    let before = spans.mirrors.get(&from).cloned().unwrap_or_default();
    if mirror == Mirror::default() {
        spans.mirrors.remove(&from);
    } else {
        spans.mirrors.insert(from, mirror.clone());
    }
    spans.published.publish(Mirrors::new(spans.mirrors.iter()));
    let wanted = |mirror: &Mirror, direction| !mirror.of(direction).is_empty();
    for direction in BOTH {
        if wanted(&before, direction) != wanted(&mirror, direction) {
            let on = wanted(&mirror, direction);
            engine.set_feature(from, direction.arc(), direction.node(), on)?;
        }
    }
    Ok(())
}

/// Mirror what `from` receives, sends, or both, to `to`; directions that are not named end.
pub fn set(
    engine: &mut Engine,
    from: InterfaceId,
    to: InterfaceId,
    directions: &[Direction],
) -> Result<(), Refusal> {
    let before = spans(engine)?.mirrors.get(&from).cloned().unwrap_or_default();
    let mut mirror = before.clone();
    for direction in BOTH {
        let list = mirror.of_mut(direction);
        list.retain(|id| *id != to);
        if directions.contains(&direction) {
            list.push(to);
        }
        if list.len() > DESTINATIONS_MAX {
            let name = engine.interface_name(from);
            return Err(Refusal::new(format!(
                "{name} is mirrored to {DESTINATIONS_MAX} interfaces already"
            )));
        }
    }
    apply(engine, from, mirror).inspect_err(|_| {
        // What was before was possible before.
        let _ = apply(engine, from, before);
    })
}

/// End the mirror of these directions of `from` to `to`, or to all.
pub fn end(
    engine: &mut Engine,
    from: InterfaceId,
    to: Option<InterfaceId>,
    directions: &[Direction],
) -> Result<(), Refusal> {
    let mut mirror = spans(engine)?.mirrors.get(&from).cloned().unwrap_or_default();
    let before = mirror.clone();
    for direction in directions {
        mirror.of_mut(*direction).retain(|id| to.is_some_and(|to| to != *id));
    }
    if mirror == before {
        let what = match to {
            Some(to) => {
                format!(
                    "{} is not mirrored to {}",
                    engine.interface_name(from),
                    engine.interface_name(to)
                )
            }
            None => format!("{} is not mirrored", engine.interface_name(from)),
        };
        return Err(Refusal::new(what).remedy("`show interface span` lists what is"));
    }
    apply(engine, from, mirror)
}

/// An interface that goes is neither mirrored nor mirrored to any more.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    let Some(spans) = engine.get::<Spans>() else { return };
    let concerned: Vec<_> = spans
        .mirrors
        .iter()
        .filter(|(from, mirror)| **from == id || mirror.rx.contains(&id) || mirror.tx.contains(&id))
        .map(|(from, mirror)| (*from, mirror.clone()))
        .collect();
    for (from, mut mirror) in concerned {
        for direction in BOTH {
            mirror.of_mut(direction).retain(|to| from != id && *to != id);
        }
        if let Err(refusal) = apply(engine, from, mirror) {
            tracing::warn!("{}: {refusal}", engine.interface_name(from));
        }
    }
}

/// The part of `show running-config`: mirrors by the names of their interfaces.
pub(crate) fn begin_config() -> impl FnMut(&Engine, &mut ConfigWriter, usize) -> bool {
    let mut left: Option<std::vec::IntoIter<(String, String, &str)>> = None;
    move |engine, config, most| {
        let left = left.get_or_insert_with(|| {
            let all = engine.get::<Spans>().into_iter().flat_map(Spans::all);
            let name = |id| engine.interface_name(id);
            let mut mirrors: Vec<_> =
                all.map(|(from, to, directions)| (name(from), name(to), directions)).collect();
            mirrors.sort();
            mirrors.into_iter()
        });
        for (from, to, directions) in left.by_ref().take(most) {
            config.command(format_args!("set interface span {from} destination {to} {directions}"));
        }
        left.len() == 0
    }
}

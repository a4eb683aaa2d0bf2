//! Tag rewrites as the control thread knows them, and when they and the filter of what
//! sub-interfaces send are in force: a rewrite while the interface does not route, the filter while
//! frames are passed on to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::{ConfigWriter, ETHERNET_INPUT, Refusal};
use quiver_core::control::interfaces::{Interface, InterfaceChange};
use quiver_core::{Engine, InterfaceId};

use super::matching::{Matching, Vid};
use super::rewrite::{Rewrite, RewriteWord, Tag};
use super::sub_interfaces::SubInterfaces;
use super::tag_rewrite::{FILTER, IN, OUT, RewriteWords};
use crate::cross::Kind;
use crate::state::CrossConnects;

/// All rewrites.
pub struct Rewrites {
    all: BTreeMap<InterfaceId, Rewrite>,
    input: Arc<RewriteWords>,
    output: Arc<RewriteWords>,
}

impl Rewrites {
    pub(crate) fn new() -> Rewrites {
        Rewrites {
            all: BTreeMap::new(),
            input: Arc::new(RewriteWords::new()),
            output: Arc::new(RewriteWords::new()),
        }
    }

    /// What workers read: on the way in, on the way out.
    pub(crate) fn words(&self) -> (&Arc<RewriteWords>, &Arc<RewriteWords>) {
        (&self.input, &self.output)
    }

    /// All, by interface.
    pub fn all(&self) -> &BTreeMap<InterfaceId, Rewrite> {
        &self.all
    }
}

/// The tags that all frames of an interface have in front, as far as they are known.
fn known_tags(engine: &Engine, id: InterfaceId) -> Vec<Tag> {
    let sub = engine.get::<SubInterfaces>().and_then(|subs| subs.all().get(&id));
    let Some(Matching::Tagged { kind, outer: Vid::Exactly(vlan), inner, .. }) =
        sub.map(|sub| sub.matching)
    else {
        return Vec::new();
    };
    let inner = match inner {
        Some(Vid::Exactly(vlan)) => Some(Tag { kind: super::frame::TagType::Dot1q, vlan }),
        _ => None,
    };
    std::iter::once(Tag { kind, vlan }).chain(inner).collect()
}

/// The way back: what was put in front comes off, and the interface's own tags that were taken off
/// return.
fn inverse(engine: &Engine, id: InterfaceId, rewrite: &Rewrite) -> Result<Rewrite, Refusal> {
    let mut own = known_tags(engine, id);
    if own.len() < rewrite.pop {
        let name = engine.interface_name(id);
        let what = match (rewrite.pop, own.len()) {
            (pop, 0) => format!("{name} does not say which {} its frames have", plural(pop)),
            (pop, known) => {
                format!(
                    "{name} says {} of its frames, and {pop} are to be taken off",
                    plural(known)
                )
            }
        };
        return Err(Refusal::new(format!("{what}: what leaves by it could not get them back"))
            .remedy("take a sub-interface with as many tags, each of one VLAN"));
    }
    own.truncate(rewrite.pop);
    Ok(Rewrite { pop: rewrite.push.len(), push: own })
}

fn plural(tags: usize) -> String {
    if tags == 1 { "1 tag".to_owned() } else { format!("{tags} tags") }
}

/// Rewrite the tags of frames that an interface receives, and of those that it sends the other way
/// round; a rewrite that does nothing ends what there is.
pub fn set(engine: &mut Engine, id: InterfaceId, rewrite: Rewrite) -> Result<(), Refusal> {
    let back = inverse(engine, id, &rewrite)?;
    engine.make_room()?;
    let ends = engine.get::<CrossConnects>().map_or(Vec::new(), |crosses| crosses.ends_of(id));
    engine.with(|engine, rewrites: &mut Rewrites| {
        if rewrite == Rewrite::default() {
            rewrites.all.remove(&id);
            switch(engine, rewrites, id)?;
        }
        rewrites.input.set(id, rewrite.word());
        rewrites.output.set(id, back.word());
        if rewrite != Rewrite::default() {
            rewrites.all.insert(id, rewrite);
            switch(engine, rewrites, id)?;
        }
        ends.into_iter().try_for_each(|end| switch(engine, rewrites, end))
    })
}

/// Put in force, or out of it, what frames of an interface pass.
pub(crate) fn refresh(engine: &mut Engine, id: InterfaceId) -> Result<(), Refusal> {
    engine.with(|engine, rewrites: &mut Rewrites| switch(engine, rewrites, id))
}

fn switch(engine: &mut Engine, rewrites: &Rewrites, id: InterfaceId) -> Result<(), Refusal> {
    if engine.interface(id).is_none() {
        return Ok(());
    }
    let rewritten = in_force(engine, rewrites, id).is_some();
    let filtered = needs_filter(engine, rewrites, id);
    engine.set_feature(id, "device-input", IN, rewritten)?;
    engine.set_feature(id, "interface-output", OUT, rewritten)?;
    engine.set_feature(id, "interface-output", FILTER, filtered)?;
    Ok(())
}

/// Is this the input node of an interface?
fn goes_to(engine: &Engine, id: InterfaceId, input: &str) -> bool {
    engine.interface(id).map(|interface| interface.row().input) == engine.node_id(input)
}

/// The rewrite of an interface that does not route, if it has one.
fn in_force<'a>(engine: &Engine, rewrites: &'a Rewrites, id: InterfaceId) -> Option<&'a Rewrite> {
    rewrites.all.get(&id).filter(|_| !goes_to(engine, id, ETHERNET_INPUT))
}

/// Could frames with other tags be passed on to a sub-interface? A bridge may have any; of those
/// that are cross-connected to it the tags are known, as a rule.
fn needs_filter(engine: &Engine, rewrites: &Rewrites, id: InterfaceId) -> bool {
    if engine.interface(id).is_none_or(|interface| !interface.row().is_sub_interface()) {
        return false;
    }
    let is_bridged =
        !goes_to(engine, id, ETHERNET_INPUT) && !goes_to(engine, id, Kind::Xconnect.node());
    let crosses = engine.get::<CrossConnects>();
    let agrees = |from| agrees(engine, rewrites, from, id);
    let patched = |crosses: &CrossConnects| crosses.begins_of(Kind::Patch, id).next().is_some();
    is_bridged
        || crosses.is_some_and(|crosses| {
            !crosses.begins_of(Kind::Xconnect, id).all(agrees) || patched(crosses)
        })
}

/// Have all frames that are passed on from `from` the tags of `to` when they leave there?
fn agrees(engine: &Engine, rewrites: &Rewrites, from: InterfaceId, to: InterfaceId) -> bool {
    let matching = |id| Some(engine.get::<SubInterfaces>()?.all().get(&id)?.matching);
    let (Some(taken), Some(wanted)) = (matching(from), matching(to)) else { return false };
    let (way_in, way_out) = (in_force(engine, rewrites, from), in_force(engine, rewrites, to));
    if way_in.is_none() && way_out.is_none() && taken == wanted {
        return true;
    }
    if taken.encapsulation().is_none() || wanted.encapsulation().is_none() {
        return false;
    }
    let own = known_tags(engine, to);
    let mut tags = known_tags(engine, from);
    let ways = [way_in.cloned(), way_out.and_then(|rewrite| inverse(engine, to, rewrite).ok())];
    for way in ways.into_iter().flatten() {
        if tags.len() < way.pop {
            return false;
        }
        tags.splice(..way.pop, way.push);
    }
    tags == own
}

pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    match change {
        InterfaceChange::Deleted => {
            let Some(rewrites) = engine.get_mut::<Rewrites>() else { return };
            if rewrites.all.remove(&id).is_some() {
                rewrites.input.set(id, RewriteWord::default());
                rewrites.output.set(id, RewriteWord::default());
            }
        }
        InterfaceChange::Input => {
            if let Err(refusal) = refresh(engine, id) {
                tracing::warn!("{}: {refusal}", engine.interface_name(id));
            }
        }
        _ => {}
    }
}

pub(crate) fn write_config(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let rewrites = engine.get::<Rewrites>();
    if let Some(rewrite) = rewrites.and_then(|rewrites| rewrites.all.get(&interface.id)) {
        config.command(format_args!("set interface l2 tag-rewrite {} {rewrite}", interface.name));
    }
}

//! Tag rewrites as the control thread knows them, and when they and the filter of what sub-interfaces send
//! are in force: a rewrite while the interface does not route, the filter while frames are passed on to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::{ConfigWriter, Refusal};
use quiver_core::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};

use super::matching::{Matching, Vid};
use super::rewrite::{Rewrite, RewriteWord, Tag};
use super::sub_interfaces::SubInterfaces;
use super::tag_rewrite::{FILTER, IN, OUT, Words};
use crate::state::CrossConnects;

/// All rewrites.
pub struct Rewrites {
    all: BTreeMap<InterfaceId, Rewrite>,
    input: Arc<Words>,
    output: Arc<Words>,
}

impl Rewrites {
    pub(crate) fn new() -> Rewrites {
        Rewrites { all: BTreeMap::new(), input: Arc::new(Words::new()), output: Arc::new(Words::new()) }
    }

    /// What workers read: on the way in, on the way out.
    pub(crate) fn words(&self) -> (&Arc<Words>, &Arc<Words>) {
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
    let Some(Matching::Tagged { kind, outer: Vid::Exactly(vlan), inner, .. }) = sub.map(|sub| sub.matching)
    else {
        return Vec::new();
    };
    let inner = match inner {
        Some(Vid::Exactly(vlan)) => Some(Tag { kind: super::frame::TagType::Dot1q, vlan }),
        _ => None,
    };
    std::iter::once(Tag { kind, vlan }).chain(inner).collect()
}

/// The way back: what was put in front comes off, and the interface's own tags that were taken off return.
fn inverse(engine: &Engine, id: InterfaceId, rewrite: &Rewrite) -> Result<Rewrite, Refusal> {
    let mut own = known_tags(engine, id);
    if own.len() < rewrite.pop {
        let name = engine.interface_name(id);
        let what = match (rewrite.pop, own.len()) {
            (pop, 0) => format!("{name} does not say which {} its frames have", plural(pop)),
            (pop, known) => {
                format!("{name} says {} of its frames, and {pop} are to be taken off", plural(known))
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

/// Rewrite the tags of frames that an interface receives, and of those that it sends the other way round;
/// a rewrite that does nothing ends what there is.
pub fn set(engine: &mut Engine, id: InterfaceId, rewrite: Rewrite) -> Result<(), Refusal> {
    let back = inverse(engine, id, &rewrite)?;
    engine.make_room()?;
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
        Ok(())
    })
}

/// Put in force, or out of it, what frames of an interface pass.
pub(crate) fn refresh(engine: &mut Engine, id: InterfaceId) -> Result<(), Refusal> {
    engine.with(|engine, rewrites: &mut Rewrites| switch(engine, rewrites, id))
}

fn switch(engine: &mut Engine, rewrites: &Rewrites, id: InterfaceId) -> Result<(), Refusal> {
    let Some(row) = engine.interface(id).map(|interface| interface.row()) else { return Ok(()) };
    let is_sub = row.is_sub_interface();
    let routes = Some(row.input) == engine.node_id("ethernet-input");
    let is_end = engine.get::<CrossConnects>().is_some_and(|crosses| crosses.leads_to(id));
    let rewritten = !routes && rewrites.all.contains_key(&id);
    engine.set_feature(id, "device-input", IN, rewritten)?;
    engine.set_feature(id, "interface-output", OUT, rewritten)?;
    engine.set_feature(id, "interface-output", FILTER, is_sub && (!routes || is_end))?;
    Ok(())
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

pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(rewrites) = engine.get::<Rewrites>() else { return };
    for (id, rewrite) in &rewrites.all {
        let name = engine.interface_name(*id);
        config.command(format_args!("set interface l2 tag-rewrite {name} {rewrite}"));
    }
}

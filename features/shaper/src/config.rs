//! What is configured, on the control thread: shapers and the interfaces that they shape.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{Engine, InterfaceId};
use quiver_shaping::scheduler::DEPTH_MAX;
use quiver_shaping::settings::{FRAME_BYTES, Plan, Settings};

use crate::node::NAME;
use crate::numbers::Numbers;
use crate::orders::{Order, give};
use crate::subscribers::Subscribers;
use crate::tables::{Direction, Shaped, Shared};

/// Letters of a name at most.
pub(crate) const NAME_MAX: usize = 64;
/// Shapers above each other at most: a level is left for subscribers.
const LEVELS_MAX: usize = DEPTH_MAX - 1;
/// Packets without a subscriber have this part of a shaper's share among its children.
const PART_OF_OTHERS: u64 = 10;
/// The arc of the node.
const ARC: &str = "interface-output";

/// A shaper.
#[derive(Debug)]
pub(crate) struct Named {
    pub node: u32,
    pub settings: u32,
    pub plan: Plan,
    pub parent: Option<String>,
    /// The node of packets without a subscriber, while an interface has the shaper.
    pub others: Option<u32>,
    /// Shapers, subscribers and interfaces that need it.
    pub uses: usize,
}

/// All of it.
pub(crate) struct Shapers {
    pub named: BTreeMap<String, Named>,
    /// What an interface sends is shaped by which, and whose address counts.
    pub attached: BTreeMap<InterfaceId, (String, Direction)>,
    pub subscribers: Subscribers,
    pub numbers: Numbers,
    pub shared: Arc<Shared>,
}

impl Shapers {
    pub fn new(shared: Arc<Shared>, epochs: &Arc<Epochs>) -> Shapers {
        Shapers {
            named: BTreeMap::new(),
            attached: BTreeMap::new(),
            subscribers: Subscribers::new(epochs),
            numbers: Numbers::default(),
            shared,
        }
    }

    pub fn known(&self, name: &str) -> Result<&Named, Refusal> {
        self.named.get(name).ok_or_else(|| {
            Refusal::new(format!("there is no shaper {name}"))
                .remedy("`show shaper` lists them; `shaper add name …` makes one")
        })
    }

    /// One more or less needs a shaper.
    pub fn count_use(&mut self, name: Option<&str>, is_more: bool) {
        if let Some(named) = name.and_then(|name| self.named.get_mut(name)) {
            named.uses = if is_more { named.uses + 1 } else { named.uses.saturating_sub(1) };
        }
    }

    /// Shapers from a name to its root.
    fn levels_above(&self, name: Option<&str>) -> usize {
        let above = |name: &&str| self.named.get(*name)?.parent.as_deref();
        std::iter::successors(name, above).take(LEVELS_MAX + 1).count()
    }

    /// Levels from a shaper down to its lowest child.
    fn levels_below(&self, name: &str) -> usize {
        let depth = |of: &str| {
            let above = |name: &&str| self.named.get(*name)?.parent.as_deref();
            std::iter::successors(Some(of), above)
                .take(LEVELS_MAX + 1)
                .position(|at| at == name)
                .map(|levels| levels + 1)
        };
        self.named.keys().filter_map(|of| depth(of)).max().unwrap_or(1)
    }

    /// May the shaper stand below this parent?
    fn check_parent(&self, name: &str, parent: &str) -> Result<(), Refusal> {
        self.known(parent)?;
        let above = |name: &&str| self.named.get(*name)?.parent.as_deref();
        let mut levels = std::iter::successors(Some(parent), above).take(LEVELS_MAX + 1);
        if levels.any(|at| at == name) {
            return Err(Refusal::new(format!("shaper {parent} stands below {name}, or is it"))
                .remedy("choose a parent that does not"));
        }
        let below = if self.named.contains_key(name) { self.levels_below(name) } else { 1 };
        if self.levels_above(Some(parent)) + below > LEVELS_MAX {
            let what = format!("shapers stand {LEVELS_MAX} above each other at most");
            return Err(Refusal::new(what).remedy("choose a parent that stands higher"));
        }
        Ok(())
    }
}

/// The settings of a shaper, and of its packets without a subscriber.
fn settings_of(plan: &Plan) -> [Settings; 2] {
    let others = Plan {
        rate_bps: (plan.rate_bps / PART_OF_OTHERS).max(1),
        ceil_bps: plan.limit_bps(),
        ..*plan
    };
    [Settings::new(plan), Settings::new(&others)]
}

/// Is the plan sound?
fn check(plan: &Plan) -> Result<(), Refusal> {
    if plan.ceil_bps > 0 && plan.ceil_bps < plan.rate_bps {
        return Err(Refusal::new("ceil is less than rate: a shaper may always send at its rate")
            .remedy("raise ceil, or leave it out"));
    }
    let (target, interval) = plan.codel_in_force();
    if target >= interval {
        let what = "target is not less than interval";
        return Err(Refusal::new(what)
            .remedy("a target is a twentieth to a tenth of the interval (RFC 8289 §4.3)"));
    }
    Ok(())
}

/// What an operator should know of a plan.
fn warning(plan: &Plan) -> Option<String> {
    let burst = plan.burst_in_force();
    (burst < FRAME_BYTES.into()).then(|| {
        format!(
            "the burst of {burst} bytes is shorter than a frame of {FRAME_BYTES}: each pass of the \
             worker sends one frame at most, and the rate may not be reached"
        )
    })
}

/// Make a shaper, or change one in place: what waits stays. A warning.
pub(crate) fn put(
    engine: &mut Engine,
    name: &str,
    plan: Plan,
    parent: Option<String>,
) -> Result<Option<String>, Refusal> {
    check(&plan)?;
    check_name("shaper", name)?;
    engine.with(|engine, shapers: &mut Shapers| {
        if let Some(parent) = &parent {
            shapers.check_parent(name, parent)?;
        }
        match shapers.named.contains_key(name) {
            true => change(engine, shapers, name, plan, parent)?,
            false => make(engine, shapers, name, plan, parent)?,
        }
        Ok(warning(&plan))
    })
}

/// Is it a name that a line can hold?
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Refusal> {
    if name.is_empty() || name.len() > NAME_MAX {
        let what = format!("a {what}'s name has 1 to {NAME_MAX} letters");
        return Err(Refusal::new(what).remedy("give it a shorter name"));
    }
    Ok(())
}

fn make(
    engine: &mut Engine,
    shapers: &mut Shapers,
    name: &str,
    plan: Plan,
    parent: Option<String>,
) -> Result<(), Refusal> {
    let mut orders = Vec::new();
    let node = shapers.numbers.node(engine, &mut orders)?;
    let settings = shapers.numbers.settings(&mut orders)?;
    let above = parent.as_deref().and_then(|parent| shapers.named.get(parent)).map(|at| at.node);
    orders.extend(set(settings, &plan));
    orders.push(Order::Add(node, above, settings));
    give(engine, orders)?;
    shapers.count_use(parent.as_deref(), true);
    let named = Named { node, settings, plan, parent, others: None, uses: 0 };
    shapers.named.insert(name.to_owned(), named);
    Ok(())
}

/// Orders that set a shaper's settings.
fn set(settings: u32, plan: &Plan) -> impl Iterator<Item = Order> {
    (settings..).zip(settings_of(plan)).map(|(number, settings)| Order::Set(number, settings))
}

fn change(
    engine: &mut Engine,
    shapers: &mut Shapers,
    name: &str,
    plan: Plan,
    parent: Option<String>,
) -> Result<(), Refusal> {
    let known = shapers.known(name)?;
    let (node, settings, others) = (known.node, known.settings, known.others);
    let before = known.parent.clone();
    let above = parent.as_deref().and_then(|parent| shapers.named.get(parent)).map(|at| at.node);
    let mut orders: Vec<Order> = set(settings, &plan).collect();
    orders.push(Order::Change(node, above, settings));
    orders.extend(others.map(Order::Reconsider));
    if before != parent {
        orders.extend(shapers.subscribers.follow_profile(name, above, settings));
    }
    give(engine, orders)?;
    shapers.count_use(before.as_deref(), false);
    shapers.count_use(parent.as_deref(), true);
    if let Some(named) = shapers.named.get_mut(name) {
        (named.plan, named.parent) = (plan, parent);
    }
    Ok(())
}

/// Delete a shaper that nobody needs. What waits goes on.
pub(crate) fn delete(engine: &mut Engine, name: &str) -> Result<(), Refusal> {
    engine.with(|engine, shapers: &mut Shapers| {
        let known = shapers.known(name)?;
        if known.uses > 0 {
            return Err(in_use(engine, shapers, name));
        }
        let (node, settings, parent) = (known.node, known.settings, known.parent.clone());
        give(engine, vec![Order::Remove(node)])?;
        shapers.named.remove(name);
        shapers.count_use(parent.as_deref(), false);
        shapers.numbers.give_node(node);
        shapers.numbers.give_settings(settings);
        Ok(())
    })
}

/// Who needs a shaper.
fn in_use(engine: &Engine, shapers: &Shapers, name: &str) -> Refusal {
    if let Some((on, _)) = shapers.attached.iter().find(|(_, (of, _))| of == name) {
        let on = engine.interface_name(*on);
        return Refusal::new(format!("shaper {name} shapes what {on} sends"))
            .remedy(format!("`shaper output {name} {on} del` first"));
    }
    let child = shapers.named.iter().find(|(_, named)| named.parent.as_deref() == Some(name));
    if let Some((child, _)) = child {
        return Refusal::new(format!("shaper {name} is the parent of shaper {child}"))
            .remedy(format!("`shaper del name {child}` first, or give it another parent"));
    }
    let id = shapers.subscribers.user_of(name).unwrap_or_default();
    Refusal::new(format!("subscriber {id} needs shaper {name}"))
        .remedy(format!("`shaper subscriber del {id}` first, or give it another profile"))
}

/// Let a shaper shape what an interface sends.
pub(crate) fn attach(
    engine: &mut Engine,
    on: InterfaceId,
    name: &str,
    direction: Direction,
) -> Result<(), Refusal> {
    engine.with(|engine, shapers: &mut Shapers| {
        let known = shapers.known(name)?;
        let (parent, settings, others) = (known.node, known.settings, known.others);
        let node = match others {
            Some(node) => node,
            None => {
                let mut orders = Vec::new();
                let node = shapers.numbers.node(engine, &mut orders)?;
                orders.push(Order::Add(node, Some(parent), settings + 1));
                give(engine, orders)?;
                node
            }
        };
        let before = shapers.attached.get(&on).cloned();
        shapers.shared.attach(on, Some(Shaped { node, direction }));
        if before.is_none()
            && let Err(error) = engine.set_feature(on, ARC, NAME, true)
        {
            shapers.shared.attach(on, None);
            if others.is_none() {
                give(engine, vec![Order::Remove(node)])?;
                shapers.numbers.give_node(node);
            }
            return Err(error.into());
        }
        if let Some(named) = shapers.named.get_mut(name) {
            named.others = Some(node);
        }
        shapers.attached.insert(on, (name.to_owned(), direction));
        shapers.count_use(Some(name), true);
        match before {
            Some((before, _)) => leave(engine, shapers, &before),
            None => Ok(()),
        }
    })
}

/// An interface has a shaper no more.
fn leave(engine: &mut Engine, shapers: &mut Shapers, name: &str) -> Result<(), Refusal> {
    shapers.count_use(Some(name), false);
    if shapers.attached.values().any(|(of, _)| of == name) {
        return Ok(());
    }
    let others = shapers.named.get_mut(name).and_then(|named| named.others.take());
    if let Some(node) = others {
        shapers.numbers.give_node(node);
        give(engine, vec![Order::Remove(node)])?;
    }
    Ok(())
}

/// What the interface sends is shaped no more.
pub(crate) fn detach(engine: &mut Engine, on: InterfaceId, name: &str) -> Result<(), Refusal> {
    engine.with(|engine, shapers: &mut Shapers| {
        shapers.known(name)?;
        if shapers.attached.get(&on).is_none_or(|(of, _)| of != name) {
            let what =
                format!("shaper {name} does not shape what {} sends", engine.interface_name(on));
            return Err(Refusal::new(what).remedy("`show shaper interface` lists what does"));
        }
        engine.set_feature(on, ARC, NAME, false)?;
        shapers.shared.attach(on, None);
        shapers.attached.remove(&on);
        leave(engine, shapers, name)
    })
}

/// An interface that goes leaves its shaper.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|engine, shapers: &mut Shapers| {
        shapers.shared.attach(id, None);
        if let Some((name, _)) = shapers.attached.remove(&id) {
            // A worker that does not answer keeps a node that nothing leads to.
            let _ = leave(engine, shapers, &name);
        }
    });
}

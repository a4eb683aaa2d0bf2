//! What an interface does with the frames it receives: it routes them, which is layer 3, or one
//! feature of layer 2 has them all. An interface has one mode at a time; features that know nothing
//! of one another take turns here.

use std::collections::{BTreeMap, BTreeSet};

use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::graph::interface::InterfaceRow;
use quiver_core::{Engine, InterfaceId, NodeId};

use crate::error::Refusal;

/// Ends what a feature began on an interface; the input node is not its concern.
pub type End = fn(&mut Engine, InterfaceId) -> Result<(), Refusal>;

/// A mode of layer 2.
#[derive(Clone, Debug)]
pub struct LayerTwo {
    /// Which, as `l2 xconnect`; the same for all interfaces in it.
    pub mode: &'static str,
    /// With whom, in words.
    pub with: String,
    /// The node that frames go to; `None` when they go where they always went.
    pub input: Option<&'static str>,
    /// How it is ended.
    pub end: End,
}

/// An interface that does not route.
struct Taken {
    layer_two: LayerTwo,
    /// Where its frames go when it routes.
    routed: NodeId,
}

/// Why an interface must stay what it is, in the eyes of a feature.
pub type Stays = fn(&Engine, InterfaceId) -> Result<(), Refusal>;

/// The interfaces that do not route, and those that another feature has for itself.
#[derive(Default)]
pub struct Modes {
    taken: BTreeMap<InterfaceId, Taken>,
    held: BTreeMap<InterfaceId, Held>,
    asked: Vec<Stays>,
    /// See [`set_group`].
    groups: BTreeMap<InterfaceId, u8>,
    /// See [`set_unlearned`].
    unlearned: BTreeSet<InterfaceId>,
}

/// An interface all of whose frames are another's: a member of a bond. It has no mode and no parts
/// of its own.
#[derive(Clone, Debug)]
pub struct Held {
    /// What it is, as `a member of BondEthernet0`.
    pub what: String,
    /// How that is ended, as a command.
    pub remedy: String,
    /// What it was before, and is again at the end.
    pub own: Own,
}

/// What an interface is by itself, and its holder may change while it has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Its largest layer 3 packet, bytes.
    pub mtu_bytes: u32,
    /// Does it take frames for others?
    pub promiscuous: bool,
}

impl Own {
    /// What an interface is now.
    pub fn of(row: &InterfaceRow) -> Own {
        Own { mac: row.mac, mtu_bytes: row.mtu_bytes, promiscuous: row.promiscuous }
    }
}

impl Modes {
    /// The layer 2 mode of an interface, if it is in one.
    pub fn of(&self, id: InterfaceId) -> Option<&LayerTwo> {
        self.taken.get(&id).map(|taken| &taken.layer_two)
    }

    /// What an interface that another has is by itself.
    pub fn own(&self, id: InterfaceId) -> Option<Own> {
        self.held.get(&id).map(|held| held.own)
    }
}

/// Ask a feature before an interface becomes another's.
pub fn ask_before_hold(engine: &mut Engine, stays: Stays) {
    if let Some(modes) = engine.get_mut::<Modes>() {
        modes.asked.push(stays);
    }
}

/// Why an interface cannot become another's, if a feature says so.
///
/// # Errors
/// A feature keeps the interface as it is.
pub fn check_hold(engine: &Engine, id: InterfaceId) -> Result<(), Refusal> {
    let asked = engine.get::<Modes>().map_or(&[][..], |modes| &modes.asked);
    asked.iter().try_for_each(|stays| stays(engine, id))
}

/// Let a feature have an interface for itself.
pub fn hold(engine: &mut Engine, id: InterfaceId, held: Held) {
    if let Some(modes) = engine.get_mut::<Modes>() {
        modes.held.insert(id, held);
    }
}

/// A feature has an interface for itself no more. What it was before, if it was held.
pub fn let_go(engine: &mut Engine, id: InterfaceId) -> Option<Own> {
    engine.get_mut::<Modes>()?.held.remove(&id).map(|held| held.own)
}

/// Why an interface can be given no mode, no address and no parts, if it is another's.
///
/// # Errors
/// Another interface holds this one.
pub fn check_free(engine: &Engine, id: InterfaceId) -> Result<(), Refusal> {
    let Some(held) = engine.get::<Modes>().and_then(|modes| modes.held.get(&id)) else {
        return Ok(());
    };
    let name = engine.interface_name(id);
    Err(Refusal::new(format!("{name} is {}, which has all that it receives", held.what))
        .remedy(&held.remedy))
}

/// Why an interface can be no end of layer 2, if its packets begin with a header of IP: tunnels of
/// layer 3, and devices without Ethernet.
///
/// # Errors
/// What it sends and receives are no frames.
pub fn check_frames(engine: &Engine, id: InterfaceId) -> Result<(), Refusal> {
    let is_bare = engine.interface(id).is_some_and(|interface| interface.row().mac == [0; 6]);
    if !is_bare {
        return Ok(());
    }
    let name = engine.interface_name(id);
    Err(Refusal::new(format!("{name} carries IP packets, not Ethernet frames"))
        .remedy("take an interface with a MAC address (`show hardware-interfaces`)"))
}

/// Put an interface into a mode of layer 2, or say that it is in it with somebody else. The mode of
/// another feature that it was in is ended before.
///
/// # Errors
/// The interface is held, gone, carries no frames, or cannot leave its present mode.
pub fn enter(engine: &mut Engine, id: InterfaceId, layer_two: LayerTwo) -> Result<(), Refusal> {
    check_free(engine, id)?;
    check_frames(engine, id)?;
    let other = engine.get::<Modes>().and_then(|modes| modes.of(id));
    if other.is_some_and(|other| other.mode != layer_two.mode) {
        leave(engine, id)?;
    }
    let interface = engine.interface(id).ok_or_else(|| Refusal::new("the interface is gone"))?;
    let now = interface.row().input;
    let routed = engine
        .get::<Modes>()
        .and_then(|modes| modes.taken.get(&id))
        .map_or(now, |taken| taken.routed);
    let input = match layer_two.input {
        Some(name) => {
            engine.node_id(name).ok_or_else(|| Refusal::new(format!("no node {name}")))?
        }
        None => routed,
    };
    if input != now {
        engine.set_input_node(id, input)?;
    }
    if let Some(modes) = engine.get_mut::<Modes>() {
        modes.taken.insert(id, Taken { layer_two, routed });
    }
    Ok(())
}

/// Let an interface route again. False when it did.
///
/// # Errors
/// The present mode cannot end, or a worker does not answer.
pub fn leave(engine: &mut Engine, id: InterfaceId) -> Result<bool, Refusal> {
    let Some(taken) = engine.get::<Modes>().and_then(|modes| modes.taken.get(&id)) else {
        return Ok(false);
    };
    let (end, routed) = (taken.layer_two.end, taken.routed);
    engine.set_input_node(id, routed)?;
    if let Some(modes) = engine.get_mut::<Modes>() {
        modes.taken.remove(&id);
    }
    end(engine, id)?;
    Ok(true)
}

/// Say which split-horizon group an interface has in a bridge domain unless the operator names
/// another: tunnels into the core of a network have one together, for what came from there must not
/// go back there.
pub fn set_group(engine: &mut Engine, id: InterfaceId, group: u8) {
    if let Some(modes) = engine.get_mut::<Modes>() {
        modes.groups.insert(id, group);
    }
}

/// The split-horizon group of an interface whose operator names none, or of the one that it is a
/// part of; 0 is none.
pub fn group(engine: &Engine, id: InterfaceId) -> u8 {
    let parent = engine.interface(id).map(|interface| interface.row().parent);
    let groups = engine.get::<Modes>().map(|modes| &modes.groups);
    let of = |id: InterfaceId| groups.and_then(|groups| groups.get(&id)).copied();
    of(id).or_else(|| of(parent?)).unwrap_or(0)
}

/// Say that sources of frames that an interface receives are not learned in a bridge domain unless
/// the operator wants it: a control plane says who is behind it.
pub fn set_unlearned(engine: &mut Engine, id: InterfaceId) {
    if let Some(modes) = engine.get_mut::<Modes>() {
        modes.unlearned.insert(id);
    }
}

/// Are sources of frames that an interface receives learned unless the operator says otherwise?
pub fn learns(engine: &Engine, id: InterfaceId) -> bool {
    engine.get::<Modes>().is_none_or(|modes| !modes.unlearned.contains(&id))
}

/// An interface that goes leaves its mode.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change == InterfaceChange::Deleted {
        // It exists still, and its mode must let go of it; what it refuses then has no meaning.
        let _ = leave(engine, id);
        let_go(engine, id);
        if let Some(modes) = engine.get_mut::<Modes>() {
            modes.groups.remove(&id);
            modes.unlearned.remove(&id);
        }
    }
}

//! VLANs that Linux makes on a twin: `ip link add link e0 name e0.100 type vlan id 100`. With
//! `lcp lcp-auto-subint on` the interface of the twin gets a sub-interface for the VLAN, whose twin
//! is Linux's link. Its frames cross the twin of the port with their tags.

use std::collections::{BTreeMap, BTreeSet};

use quiver_control::Refusal;
use quiver_control::layer_two::{VlanInterfaces, VlanOf};
use quiver_core::{Engine, InterfaceId};

use crate::mirror::{Mirror, Namespace, Pair, mirror};
use crate::pairs;
use crate::reader::{Again, LinkFacts};
use crate::twins::Crossing;

/// VLANs of Linux.
#[derive(Default)]
pub(crate) struct VlanLinks {
    /// By link: what it is like.
    links: BTreeMap<(Namespace, u32), LinkFacts>,
    /// Sub-interfaces that were made for them.
    made: BTreeSet<InterfaceId>,
    /// One is being made: it gets no tap of its own.
    pub is_making: bool,
}

impl VlanLinks {
    /// A sub-interface is gone.
    pub fn forget(&mut self, id: InterfaceId) {
        self.made.remove(&id);
    }
}

/// Linux says what a link is like, or that it is gone.
pub(crate) fn take_link(
    engine: &mut Engine,
    namespace: &Namespace,
    link: u32,
    facts: Option<&LinkFacts>,
) {
    let Some(mirror) = mirror(engine) else { return };
    let key = (namespace.clone(), link);
    match facts.filter(|facts| facts.vlan.is_some() && facts.parent.is_some()) {
        Some(facts) => {
            mirror.vlans.links.insert(key, facts.clone());
            fit(engine, namespace, link);
        }
        None => {
            let was_there = mirror.vlans.links.remove(&key).is_some();
            let id = mirror.by_link(namespace, link).filter(|_| was_there);
            if let Some(id) = id.filter(|id| is_tagged(engine, *id)) {
                end(engine, id);
            }
        }
    }
}

fn is_tagged(engine: &Engine, id: InterfaceId) -> bool {
    let pair = engine.get::<Mirror>().and_then(|mirror| mirror.pairs.get(&id));
    pair.is_some_and(|pair| pair.crossing == Crossing::Tagged)
}

/// A sub-interface loses its link, and goes when it was made for it.
fn end(engine: &mut Engine, id: InterfaceId) {
    if let Err(refusal) = pairs::delete(engine, id) {
        tracing::warn!("{}: its twin stays: {refusal}", engine.interface_name(id));
    }
    delete_made(engine, id);
}

/// Delete a sub-interface if it was made for a VLAN of Linux.
pub(crate) fn delete_made(engine: &mut Engine, id: InterfaceId) {
    let was_made = mirror(engine).is_some_and(|mirror| mirror.vlans.made.remove(&id));
    let Some(calls) = engine.get::<VlanInterfaces>().copied().filter(|_| was_made) else { return };
    let name = engine.interface_name(id);
    if let Err(why) = (calls.delete)(engine, id) {
        tracing::warn!("{name}, which was made for a VLAN of Linux, stays: {why}");
    }
}

/// The interface of a link is known now, or VLANs are followed from now on.
pub(crate) fn fit_all(engine: &mut Engine) {
    let Some(mirror) = engine.get::<Mirror>() else { return };
    let links: Vec<(Namespace, u32)> = mirror.vlans.links.keys().cloned().collect();
    links.into_iter().for_each(|(namespace, link)| fit(engine, &namespace, link));
}

/// Let a VLAN of Linux be the twin of a sub-interface, if it stands on the twin of a port.
fn fit(engine: &mut Engine, namespace: &Namespace, link: u32) {
    let Some(mirror) = engine.get::<Mirror>().filter(|mirror| mirror.has_automatic_twins) else {
        return;
    };
    let Some(facts) = mirror.vlans.links.get(&(namespace.clone(), link)).cloned() else { return };
    let Some(((ether_type, vlan), on)) = facts.vlan.zip(facts.parent) else { return };
    let Some(parent) = mirror.by_link(namespace, on) else { return };
    if mirror.by_link(namespace, link).is_some() {
        return;
    }
    let of = VlanOf { parent, ether_type, vlan };
    if let Err(refusal) = connect(engine, of, namespace, link, &facts) {
        let parent = engine.interface_name(parent);
        tracing::warn!("{} of Linux becomes no sub-interface of {parent}: {refusal}", facts.name);
    }
}

fn connect(
    engine: &mut Engine,
    of: VlanOf,
    namespace: &Namespace,
    link: u32,
    facts: &LinkFacts,
) -> Result<(), Refusal> {
    let built_in = || Refusal::new("this router is built without VLANs");
    let calls = engine.get::<VlanInterfaces>().copied().ok_or_else(built_in)?;
    let known = (calls.find)(engine, of);
    let is_port = engine.interface(of.parent).is_some_and(|port| !port.row().is_sub_interface());
    if !is_port {
        return Err(Refusal::new("a sub-interface has no sub-interfaces"));
    }
    let id = match known {
        Some(id) => id,
        None => make(engine, calls, of)?,
    };
    let connected = pair(engine, of, id, (namespace, link), facts);
    if connected.is_err() {
        delete_made(engine, id);
    }
    connected
}

fn make(engine: &mut Engine, calls: VlanInterfaces, of: VlanOf) -> Result<InterfaceId, Refusal> {
    if let Some(mirror) = mirror(engine) {
        mirror.vlans.is_making = true;
    }
    let made = (calls.create)(engine, of);
    if let Some(mirror) = mirror(engine) {
        mirror.vlans.is_making = false;
        mirror.vlans.made.extend(made.as_ref().ok());
    }
    made.map_err(Refusal::new)
}

/// Make the pair. The sub-interface becomes as Linux's link is.
fn pair(
    engine: &mut Engine,
    of: VlanOf,
    id: InterfaceId,
    (namespace, link): (&Namespace, u32),
    facts: &LinkFacts,
) -> Result<(), Refusal> {
    let Some(mirror) = engine.get::<Mirror>() else { return Ok(()) };
    if mirror.pairs.contains_key(&id) {
        let name = engine.interface_name(id);
        return Err(Refusal::new(format!("{name} has a twin already")));
    }
    let gone = || Refusal::new("the port has no twin");
    let twin = mirror.pairs.get(&of.parent).map(|pair| pair.twin).ok_or_else(gone)?;
    pairs::give_host(engine, id)?;
    engine.set_admin_up(id, facts.is_up)?;
    if engine.interface(id).is_some_and(|own| own.row().mtu_bytes != facts.mtu_bytes) {
        engine.set_mtu(id, facts.mtu_bytes)?;
    }
    let mut new = Pair::new(twin, Crossing::Tagged, facts.name.clone(), namespace.clone());
    (new.link, new.linux) = (Some(link), Some((facts.is_up, facts.mtu_bytes)));
    (new.is_bridge_port, new.is_automatic) = (facts.is_bridge_port, true);
    let Some(mirror) = engine.get_mut::<Mirror>() else { return Ok(()) };
    mirror.pairs.insert(id, new);
    mirror.by_link.insert((namespace.clone(), link), id);
    mirror.publish();
    mirror.own.compare_all();
    mirror.report_again(namespace, Again::Link(link));
    Ok(())
}

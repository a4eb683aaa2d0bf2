//! Changes of the agent's configuration: checked, then applied.

use std::net::{IpAddr, SocketAddr};

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::graph::node::DROP;
use quiver_core::graph::observer::Observer;
use quiver_core::{Engine, InterfaceId};
use quiver_export::datagrams::{DatagramCounts, Datagrams};
use quiver_forwarding::fib::Family;
use quiver_forwarding::nodes;

use crate::agent::{Agent, Collector, Settings};
use crate::discard::{Place, Watcher};
use crate::sampler;
use crate::sources::Direction;

/// Collectors at most: each gets all datagrams.
pub(crate) const COLLECTORS_MAX: usize = 8;

fn agent(engine: &mut Engine) -> Result<&mut Agent, Refusal> {
    engine.get_mut::<Agent>().ok_or_else(|| Refusal::new("sFlow is being changed"))
}

/// Change settings. Samples that were made before are sent as they were.
pub(crate) fn set(engine: &mut Engine, change: impl FnOnce(&mut Settings)) -> Result<(), Refusal> {
    let now_ns = engine.now_ns();
    let agent = agent(engine)?;
    agent.flush(now_ns);
    let before = agent.settings;
    change(&mut agent.settings);
    agent.shared.set_rate(agent.settings.rate);
    agent.shared.set_header_bytes(agent.settings.header_bytes);
    agent.notifications.discards.limit.set(agent.settings.drops_per_s);
    if before.polling_s != agent.settings.polling_s {
        agent.poll_from(now_ns);
    }
    Ok(())
}

/// Add a collector, or change where its datagrams come from.
pub(crate) fn add_collector(
    engine: &mut Engine,
    collector: SocketAddr,
    source: IpAddr,
) -> Result<(), Refusal> {
    let now_ns = engine.now_ns();
    let agent = agent(engine)?;
    let known = agent.collectors.get(&collector);
    if known.is_some_and(|known| known.source == source) {
        return Ok(());
    }
    if known.is_none() && agent.collectors.len() >= COLLECTORS_MAX {
        return Err(Refusal::new(format!("there are {COLLECTORS_MAX} collectors already"))
            .remedy("delete one of them (`show sflow`)"));
    }
    agent.flush(now_ns);
    let datagrams = Datagrams::new(SocketAddr::new(source, 0), collector);
    let own = Collector { source, datagrams, counts: DatagramCounts::default() };
    agent.collectors.insert(collector, own);
    Ok(())
}

/// Take a collector away. What waits is sent to it first.
pub(crate) fn delete_collector(engine: &mut Engine, collector: SocketAddr) -> Result<(), Refusal> {
    let now_ns = engine.now_ns();
    let agent = agent(engine)?;
    agent.flush(now_ns);
    match agent.collectors.remove(&collector) {
        Some(_) => Ok(()),
        None => Err(Refusal::new(format!("{collector} is no collector"))
            .remedy("`show sflow` lists those that are")),
    }
}

/// Sample an interface in these directions, by [`Direction`], and in no other.
pub(crate) fn enable(
    engine: &mut Engine,
    id: InterfaceId,
    directions: [bool; 2],
) -> Result<(), Refusal> {
    let now_ns = engine.now_ns();
    let own = agent(engine)?;
    let before = own.interfaces.get(&id).map_or([false; 2], |own| own.directions);
    if directions != [false; 2] {
        own.open();
    }
    apply(engine, id, before, directions).inspect_err(|_| {
        // What was before was possible before.
        let _ = apply(engine, id, directions, before);
    })?;
    let own = agent(engine)?;
    if directions == [false; 2] {
        own.interfaces.remove(&id);
    } else {
        own.interfaces.entry(id).or_default().directions = directions;
        own.poll_from(now_ns);
    }
    Ok(())
}

fn apply(
    engine: &mut Engine,
    id: InterfaceId,
    before: [bool; 2],
    wanted: [bool; 2],
) -> Result<(), Refusal> {
    for direction in Direction::ALL {
        let (arc, node) = match direction {
            Direction::Rx => ("device-input", sampler::name(false)),
            Direction::Tx => ("interface-output", sampler::name(true)),
        };
        let on = wanted[direction as usize];
        if before[direction as usize] != on {
            engine.set_feature(id, arc, node, on)?;
        }
    }
    Ok(())
}

/// Notify collectors of packets that are dropped, or no more.
pub(crate) fn monitor_drops(engine: &mut Engine, on: bool) -> Result<(), Refusal> {
    let own = agent(engine)?;
    if on {
        own.notifications.open();
    }
    observe(engine, on).inspect_err(|_| {
        // Workers that answer have what was before.
        let _ = observe(engine, !on);
    })?;
    agent(engine)?.settings.monitors_drops = on;
    Ok(())
}

/// Put observers in front of the nodes where packets end that are not sent on, or take them away.
fn observe(engine: &mut Engine, on: bool) -> Result<(), Refusal> {
    let own = agent(engine)?;
    let (discards, shared) = (own.notifications.discards.clone(), own.shared.clone());
    let errors = [(Family::Ip4, nodes::ip4::ICMP_ERROR), (Family::Ip6, nodes::ip6::ICMP_ERROR)];
    let answering = errors.map(|(_, name)| engine.node_id(name));
    let mut places = vec![(DROP, Place::Drop { answering })];
    for ((family, _), node) in errors.into_iter().zip(answering) {
        places.extend(node.map(|node| (node, Place::Errors(family))));
    }
    for (node, place) in places {
        engine.observe(node, |worker| {
            let (discards, shared) = (discards.clone(), shared.clone());
            on.then(|| Box::new(Watcher { discards, shared, worker, place }) as Box<dyn Observer>)
        })?;
    }
    Ok(())
}

/// An interface that goes is sampled no more.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change == InterfaceChange::Deleted
        && let Some(agent) = engine.get_mut::<Agent>()
    {
        agent.interfaces.remove(&id);
    }
}

//! What a provider configures, on the control thread: limits, port blocks, pooling, mapping
//! behaviour, quarantine, destinations that are not translated, routes between VRFs.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_sessions::OWNER;
use quiver_tables::exact::{Limits as TableLimits, Seed};

use crate::bindings::{Binding, Bindings, Kind};
use crate::config::{
    Nat44, PLACES_PER_CALL, SESSIONS_MAX, hold, publish, slow_path, table_index, with_enabled,
};
use crate::owner::SlowPath;
use crate::session::Writer;
use crate::tables::{Blocks, Filtering, Limits, PORTS, Provider};

/// Destinations that are not translated.
pub(crate) const EXCLUDED_MAX: usize = 256;
/// Tables with a limit of sessions, and tables with routes to others.
pub(crate) const TABLES_MAX: usize = 256;
/// Bindings that may be.
pub(crate) const BINDINGS_MAX: usize = 2 * SESSIONS_MAX;
/// Bindings when none are given: those of all sessions, and some for subscribers and blocks.
const BINDINGS_MORE: usize = 1_024;

const LIMITS: TableLimits = TableLimits {
    what: "NAT44 binding table",
    entries_max: BINDINGS_MAX,
    remedy: "enable fewer sessions",
};

/// What was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub limits: Limits,
    pub blocks: Option<Blocks>,
    pub independent: Option<Filtering>,
    pub is_paired: bool,
    pub reuse_s: u32,
    /// Sessions at most, by VRF.
    pub session_limits: BTreeMap<u32, u32>,
}

impl Settings {
    /// As workers read it.
    pub fn provider(&self, table: impl Fn(u32) -> u32) -> Provider {
        Provider {
            limits: self.limits,
            blocks: self.blocks,
            independent: self.independent,
            is_paired: self.is_paired,
            reuse_s: self.reuse_s,
            table_limits: self.session_limits.iter().map(|(vrf, n)| (table(*vrf), *n)).collect(),
        }
    }
}

/// Bindings of a router with so many sessions.
pub(crate) fn bindings_of(sessions: usize) -> usize {
    (sessions + sessions / 4 + BINDINGS_MORE).min(BINDINGS_MAX)
}

/// Take the memory of bindings, and let the owner have them.
fn need_bindings(engine: &mut Engine, nat: &mut Nat44) -> Result<(), Refusal> {
    if nat.has_bindings {
        return Ok(());
    }
    let (node, enabled) = (slow_path(engine)?, nat.enabled()?);
    let mut writer = match nat.binding_writer.take() {
        Some(writer) => writer,
        None if nat.shared.bindings().is_some() => {
            return Err(Refusal::new("the worker that has the bindings did not answer")
                .remedy("restart the router"));
        }
        None => Writer::new(engine.epochs(), LIMITS, Seed::random())
            .map_err(|error| Refusal::new(error.to_string()))?,
    };
    if let Err(error) = writer.enable(enabled.bindings) {
        writer.disable();
        nat.binding_writer = Some(writer);
        return Err(Refusal::new(error.to_string()).remedy("enable fewer sessions"));
    }
    let bindings = Bindings::new(writer);
    if nat.shared.bindings().is_none() {
        nat.shared.set_bindings(bindings.read.clone());
    }
    let mut bindings = Some(Box::new(bindings));
    let given = engine.call(OWNER, move |worker| {
        worker.visit::<SlowPath, _>(node, |node, _| {
            if let Some(owner) = &mut node.owner {
                owner.bindings = bindings.take();
            }
        });
    });
    given.map_err(|error| Refusal::new(error.to_string()))?;
    nat.has_bindings = true;
    Ok(())
}

/// Change settings that workers read, and that need bindings unless they are the default.
pub(crate) fn change(
    engine: &mut Engine,
    change: impl FnOnce(&mut Settings) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let mut settings = nat.settings.clone();
        change(&mut settings)?;
        for vrf in settings.session_limits.keys() {
            table_index(engine, *vrf)?;
        }
        if settings.session_limits.len() > TABLES_MAX {
            return Err(Refusal::new(format!("{TABLES_MAX} tables have a limit already")));
        }
        if settings != Settings::default() {
            need_bindings(engine, nat)?;
        }
        if settings.blocks.map(|blocks| blocks.size) != nat.settings.blocks.map(|b| b.size) {
            end_bindings(engine, |_| true)?;
            let count = |kind: Kind| {
                let counts = &nat.shared.binding_counts;
                counts[kind as usize].load(std::sync::atomic::Ordering::Relaxed)
            };
            let (blocks, mappings) = (count(Kind::Block), count(Kind::Mapping));
            if blocks + mappings > 0 {
                return Err(Refusal::new(format!(
                    "sessions use {blocks} port blocks and {mappings} mappings"
                ))
                .remedy("clear nat44 sessions"));
            }
        }
        let (before, after) = (&nat.settings.session_limits, &settings.session_limits);
        let gone: Vec<u32> =
            before.keys().filter(|vrf| !after.contains_key(vrf)).copied().collect();
        let new: Vec<u32> = after.keys().filter(|vrf| !before.contains_key(vrf)).copied().collect();
        gone.into_iter().for_each(|vrf| hold(engine, vrf, false));
        new.into_iter().for_each(|vrf| hold(engine, vrf, true));
        nat.settings = settings;
        publish(engine, nat);
        Ok(())
    })
}

/// Port blocks that fit a range of all dynamic ports.
pub(crate) fn blocks(size: u32, max: u16, timeout_s: u32) -> Result<Blocks, Refusal> {
    if !PORTS.is_multiple_of(size) {
        let fits = |n: &u32| PORTS.is_multiple_of(*n);
        let (less, more) = ((1..size).rev().find(fits), (size + 1..=PORTS).find(fits));
        let near = |n: Option<u32>| n.map_or(String::new(), |n| n.to_string());
        return Err(Refusal::new(format!(
            "blocks of {size} ports do not divide the {PORTS} ports of an address"
        ))
        .remedy(format!("{} or {}", near(less), near(more))));
    }
    Ok(Blocks { size: size as u16, max, timeout_s })
}

/// End the unused bindings for which `ends` holds, some in each worker call; then those that were
/// used by such, a block by its mappings.
pub(crate) fn end_bindings(
    engine: &mut Engine,
    ends: impl Fn(Binding<'_>) -> bool + Send + Clone + 'static,
) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    let (mut first, mut rounds) = (0, 0);
    while rounds < 2 {
        let ends = ends.clone();
        let places = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, cx| {
                let places = (first, PLACES_PER_CALL);
                node.end_bindings_from(node.rules(cx), cx.now_ns, places, &ends)
            })
        });
        let places = places.map_err(|error| Refusal::new(error.to_string()))?;
        quiver_nat_log::drain(engine);
        first += PLACES_PER_CALL;
        if first as usize >= places.unwrap_or(0) {
            (first, rounds) = (0, rounds + 1);
        }
    }
    Ok(())
}

/// Leave a destination untranslated, or no more.
pub(crate) fn set_excluded(
    engine: &mut Engine,
    network: (Ipv4Addr, u8),
    on: bool,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        if on && nat.excluded.len() >= EXCLUDED_MAX {
            return Err(Refusal::new(format!("{EXCLUDED_MAX} destinations are excluded already")));
        }
        let changed = if on { nat.excluded.insert(network) } else { nat.excluded.remove(&network) };
        if !changed {
            let is = if on { "excluded already" } else { "not excluded" };
            return Err(Refusal::new(format!("{}/{} is {is}", network.0, network.1)));
        }
        publish(engine, nat);
        Ok(())
    })
}

/// Make or remove the table of routes of a VRF.
pub(crate) fn set_vrf_table(engine: &mut Engine, vrf: u32, on: bool) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        table_index(engine, vrf)?;
        match (on, nat.vrf_tables.contains_key(&vrf)) {
            (true, true) => return Err(Refusal::new(format!("VRF {vrf} has a table already"))),
            (false, false) => return Err(no_vrf_table(vrf)),
            (true, false) if nat.vrf_tables.len() >= TABLES_MAX => {
                return Err(Refusal::new(format!("{TABLES_MAX} VRFs have tables already")));
            }
            (true, false) => {
                nat.vrf_tables.insert(vrf, Vec::new());
            }
            (false, true) => {
                let routes = nat.vrf_tables.remove(&vrf).unwrap_or_default();
                routes.into_iter().for_each(|to| hold(engine, to, false));
            }
        }
        hold(engine, vrf, on);
        publish(engine, nat);
        Ok(())
    })
}

fn no_vrf_table(vrf: u32) -> Refusal {
    Refusal::new(format!("VRF {vrf} has no table")).remedy(format!("nat44 vrf table add {vrf}"))
}

/// Let destinations of a VRF be looked for in another one, or no more.
pub(crate) fn set_vrf_route(
    engine: &mut Engine,
    vrf: u32,
    to: u32,
    on: bool,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        table_index(engine, to)?;
        let routes = nat.vrf_tables.get_mut(&vrf).ok_or_else(|| no_vrf_table(vrf))?;
        let place = routes.iter().position(|known| *known == to);
        match (on, place) {
            (true, None) if routes.len() >= TABLES_MAX => {
                return Err(Refusal::new(format!("VRF {vrf} has {TABLES_MAX} routes already")));
            }
            (true, None) => routes.push(to),
            (false, Some(place)) => {
                routes.remove(place);
            }
            (true, Some(_)) => {
                return Err(Refusal::new(format!("VRF {vrf} has a route to {to} already")));
            }
            (false, None) => {
                return Err(Refusal::new(format!("VRF {vrf} has no route to {to}")));
            }
        }
        hold(engine, to, on);
        publish(engine, nat);
        Ok(())
    })
}

/// The tables that settings name.
pub(crate) fn vrfs(nat: &Nat44) -> Vec<u32> {
    let limits = nat.settings.session_limits.keys();
    let routes = nat.vrf_tables.iter().flat_map(|(vrf, routes)| std::iter::once(vrf).chain(routes));
    limits.chain(routes).copied().collect()
}

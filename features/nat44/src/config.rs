//! What is configured, on the control thread.
//!
//! | file | what |
//! | --- | --- |
//! | `config/enabling.rs` | memory taken and given back |
//! | `config/pool.rs` | addresses of the pool |
//! | `config/publishing.rs` | what workers read, and routes that follow |

mod enabling;
mod pool;
mod publishing;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_forwarding::fib::{Family, Fib};
use quiver_forwarding::ip::InterfaceAddresses;
use quiver_sessions::OWNER;

pub(crate) use self::enabling::{disable, enable};
pub(crate) use self::pool::{
    add_addresses, check_range, end_of_addresses, remove_addresses, set_pool_interface,
    set_twice_addresses,
};
pub(crate) use self::publishing::{look, publish};
use crate::mappings::{Balanced, External, Identity, Local, MappingName, MappingOptions};
use crate::node::SLOW_PATH;
use crate::owner::SlowPath;
use crate::provider::Settings;
use crate::session::{Session, Writer};
use crate::sides;
use crate::softwires::config::Dslite;
use crate::tables::{Shared, Sides};

/// Sessions that may be enabled; address space is reserved for so many.
pub(crate) const SESSIONS_MAX: usize = 1 << 24;
/// Sessions when none are given, as in VPP.
pub(crate) const SESSIONS_DEFAULT: usize = 64_512;
/// Addresses of the pool: they are looked through when one is chosen.
pub(crate) const POOL_ADDRESSES_MAX: usize = 4_096;
/// Sessions that one worker call looks at.
pub(crate) const PLACES_PER_CALL: u32 = 4_096;
/// Who needs virtual reassembly, and who holds tables.
pub(crate) const WHO: &str = "nat44";

/// What `nat44 plugin enable` said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enabled {
    pub sessions: usize,
    /// Subscribers, port blocks, mappings, permissions and ends in quarantine at most.
    pub bindings: usize,
    pub inside_vrf: u32,
    pub outside_vrf: u32,
}

/// The state of NAT44.
pub(crate) struct Nat44 {
    pub shared: Arc<Shared>,
    /// While disabled, from the first time on.
    writer: Option<Writer>,
    pub binding_writer: Option<Writer>,
    pub expected_writer: Option<Writer>,
    /// Has the owner bindings?
    pub has_bindings: bool,
    pub enabled: Option<Enabled>,
    /// The pool's addresses, with the table whose hosts alone may use them.
    pub pool: BTreeMap<Ipv4Addr, Option<u32>>,
    pub pool_interfaces: BTreeSet<InterfaceId>,
    /// Addresses that remote hosts get (twice-NAT).
    pub twice_pool: BTreeSet<Ipv4Addr>,
    pub mappings: BTreeMap<MappingName, (Local, MappingOptions)>,
    pub balanced: BTreeMap<MappingName, Balanced>,
    pub identities: BTreeSet<Identity>,
    pub excluded: BTreeSet<(Ipv4Addr, u8)>,
    /// By VRF: those in which its destinations are looked for.
    pub vrf_tables: BTreeMap<u32, Vec<u32>>,
    pub settings: Settings,
    pub dslite: Dslite,
    pub sides: BTreeMap<InterfaceId, Sides>,
    pub forwarding: bool,
    /// Addresses that routes make the router's own, and their table.
    routes: BTreeSet<(u32, Ipv4Addr)>,
    /// The count of address changes that was acted upon.
    changes: u64,
    /// How often the configuration was published.
    pub version: u64,
}

/// Addresses in order as ranges of those that follow one another and are of the same kind.
pub(crate) fn ranges_of<K: PartialEq>(
    addresses: impl Iterator<Item = (Ipv4Addr, K)>,
) -> Vec<(Ipv4Addr, Ipv4Addr, K)> {
    let mut ranges: Vec<(Ipv4Addr, Ipv4Addr, K)> = Vec::new();
    for (address, kind) in addresses {
        match ranges.last_mut() {
            Some((_, last, of))
                if *of == kind && u32::from(*last).checked_add(1) == Some(address.into()) =>
            {
                *last = address;
            }
            _ => ranges.push((address, address, kind)),
        }
    }
    ranges
}

pub(crate) fn disabled() -> Refusal {
    Refusal::new("NAT44 is not enabled").remedy("nat44 plugin enable sessions 64512")
}

impl Nat44 {
    pub fn new(shared: Arc<Shared>) -> Nat44 {
        Nat44 {
            shared,
            writer: None,
            binding_writer: None,
            expected_writer: None,
            has_bindings: false,
            enabled: None,
            pool: BTreeMap::new(),
            pool_interfaces: BTreeSet::new(),
            twice_pool: BTreeSet::new(),
            mappings: BTreeMap::new(),
            balanced: BTreeMap::new(),
            identities: BTreeSet::new(),
            excluded: BTreeSet::new(),
            vrf_tables: BTreeMap::new(),
            settings: Settings::default(),
            dslite: Dslite::default(),
            sides: BTreeMap::new(),
            forwarding: false,
            routes: BTreeSet::new(),
            changes: 0,
            version: 0,
        }
    }

    /// The pool as ranges of addresses that follow one another.
    pub fn ranges(&self) -> Vec<(Ipv4Addr, Ipv4Addr, Option<u32>)> {
        ranges_of(self.pool.iter().map(|(address, tenant)| (*address, *tenant)))
    }

    /// What it was enabled with.
    pub fn enabled(&self) -> Result<Enabled, Refusal> {
        self.enabled.ok_or_else(disabled)
    }
}

/// Do something with NAT44, which must be enabled.
pub(crate) fn with_enabled<R>(
    engine: &mut Engine,
    work: impl FnOnce(&mut Engine, &mut Nat44) -> Result<R, Refusal>,
) -> Result<R, Refusal> {
    engine.with(|engine, nat: &mut Nat44| {
        nat.enabled()?;
        work(engine, nat)
    })
}

/// The small number of a table.
pub(crate) fn table_index(engine: &Engine, id: u32) -> Result<u32, Refusal> {
    let index = engine.get::<Fib>().and_then(|fib| fib.table_index(Family::Ip4, id));
    index.ok_or_else(|| {
        Refusal::new(format!("there is no IPv4 table {id}")).remedy(format!("ip table add {id}"))
    })
}

pub(crate) fn hold(engine: &mut Engine, id: u32, held: bool) {
    let Ok(index) = table_index(engine, id) else { return };
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    match held {
        true => fib.hold_table(Family::Ip4, index, WHO),
        false => fib.release_table(Family::Ip4, index, WHO),
    }
}

pub(crate) fn slow_path(engine: &Engine) -> Result<quiver_core::NodeId, Refusal> {
    engine.node_id(SLOW_PATH).ok_or_else(|| Refusal::new("the NAT44 nodes are not built in"))
}

/// Wait until every worker has ended the pass that it is in.
pub(crate) fn wait_for_workers(engine: &mut Engine) -> Result<(), Refusal> {
    for worker in 0..engine.worker_count() {
        let waited = engine.wait_for_worker(WorkerId(worker as u16));
        waited.map_err(|error| Refusal::new(error.to_string()))?;
    }
    Ok(())
}

/// The first address of an interface.
pub(crate) fn address_of(engine: &Engine, id: InterfaceId) -> Option<Ipv4Addr> {
    let calls = engine.get::<InterfaceAddresses>()?;
    (calls.of)(engine, id).into_iter().find_map(|(address, _)| match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    })
}

/// Let packets from outside pass that nothing translates, or drop them.
pub(crate) fn set_forwarding(engine: &mut Engine, on: bool) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        nat.forwarding = on;
        publish(engine, nat);
        Ok(())
    })
}

/// End all sessions for which `ends` holds, some in each worker call.
pub(crate) fn end_sessions(
    engine: &mut Engine,
    ends: impl Fn(Session<'_>) -> bool + Send + Clone + 'static,
) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    let mut first = 0;
    loop {
        let ends = ends.clone();
        let places = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, cx| {
                node.end_from(node.rules(cx), cx.now_ns, (first, PLACES_PER_CALL), &ends)
            })
        });
        let places = places.map_err(|error| Refusal::new(error.to_string()))?;
        quiver_nat_log::drain(engine);
        first += PLACES_PER_CALL;
        if first as usize >= places.unwrap_or(0) {
            return Ok(());
        }
    }
}

/// An interface that goes takes its configuration along.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change == InterfaceChange::Created {
        engine.with(|engine, nat: &mut Nat44| sides::follow_new(engine, nat, id));
    }
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|engine, nat: &mut Nat44| {
        let gone = nat.sides.remove(&id);
        if gone.is_some_and(|sides| sides.output) {
            sides::spread(engine, nat, id);
        }
        nat.shared.set_sides(id, Sides::default());
        let mut changed = nat.pool_interfaces.remove(&id);
        let gone = |name: &MappingName| name.external == External::Interface(id);
        let count = |nat: &Nat44| nat.mappings.len() + nat.balanced.len() + nat.identities.len();
        let before = count(nat);
        nat.mappings.retain(|name, _| !gone(name));
        nat.balanced.retain(|name, _| !gone(name));
        nat.identities.retain(|identity| !gone(&identity.name));
        changed |= count(nat) != before;
        if changed {
            publish(engine, nat);
        }
    });
}

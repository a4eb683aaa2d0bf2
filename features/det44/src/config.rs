//! What is configured, on the control thread.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use quiver_control::{IpPrefix, Refusal};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_forwarding::fib::{Family, Fib, Path, Source, Target};
use quiver_forwarding::ip::InterfaceAddresses;
use quiver_tables::prefix;

use crate::census::Census;
use crate::mapping::{FIRST_PORT, Mapping, PORTS};
use crate::node::{IN2OUT, OUT2IN};
use crate::slots::{SLOTS_PER_ADDRESS, Slots};
use crate::tables::{MAPPINGS_MAX, Rules, Shared};

/// Outside addresses of all mappings: address space is reserved for their ports, 1 MB each.
pub(crate) const ADDRESSES_MAX: usize = 4_096;
/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 16;
pub(crate) const ARC: &str = "ip4-unicast";
const REASSEMBLY: &str = "ip4-sv-reassembly-feature";
/// Who needs virtual reassembly, and who holds tables.
const WHO: &str = "det44";

/// What `det44 plugin enable` said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enabled {
    pub inside_vrf: u32,
    pub outside_vrf: u32,
}

/// A mapping as it was written, and as it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Configured {
    pub inside: IpPrefix,
    pub outside: IpPrefix,
    pub mapping: Mapping,
}

/// Which sides an interface is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sides {
    pub inside: bool,
    pub outside: bool,
}

/// The state of DET44.
pub(crate) struct Det44 {
    pub shared: Arc<Shared>,
    pub enabled: Option<Enabled>,
    pub mappings: Vec<Configured>,
    pub sides: BTreeMap<InterfaceId, Sides>,
    pub census: Census,
}

impl Det44 {
    pub fn new(shared: Arc<Shared>) -> Det44 {
        Det44 {
            shared,
            enabled: None,
            mappings: Vec::new(),
            sides: BTreeMap::new(),
            census: Census::new(ADDRESSES_MAX),
        }
    }

    /// What it was enabled with.
    fn enabled(&self) -> Result<Enabled, Refusal> {
        let refusal = || Refusal::new("DET44 is not enabled").remedy("det44 plugin enable");
        self.enabled.ok_or_else(refusal)
    }

    /// The first of so many slots that no mapping has.
    fn free_slots(&self, count: usize) -> Option<usize> {
        let mut used: Vec<_> = self.mappings.iter().map(|of| of.mapping.slots()).collect();
        used.sort_by_key(|range| range.start);
        let mut first = 0;
        for range in used {
            if range.start - first >= count {
                return Some(first);
            }
            first = range.end;
        }
        (first + count <= ADDRESSES_MAX * SLOTS_PER_ADDRESS).then_some(first)
    }
}

/// Do something with DET44, which must be enabled.
pub(crate) fn with_enabled<R>(
    engine: &mut Engine,
    work: impl FnOnce(&mut Engine, &mut Det44) -> Result<R, Refusal>,
) -> Result<R, Refusal> {
    engine.with(|engine, det: &mut Det44| {
        det.enabled()?;
        work(engine, det)
    })
}

/// The small number of a table.
fn table_index(engine: &Engine, id: u32) -> Result<u32, Refusal> {
    let index = engine.get::<Fib>().and_then(|fib| fib.table_index(Family::Ip4, id));
    index.ok_or_else(|| {
        Refusal::new(format!("there is no IPv4 table {id}")).remedy(format!("ip table add {id}"))
    })
}

fn hold(engine: &mut Engine, id: u32, held: bool) {
    let Ok(index) = table_index(engine, id) else { return };
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    match held {
        true => fib.hold_table(Family::Ip4, index, WHO),
        false => fib.release_table(Family::Ip4, index, WHO),
    }
}

/// Let there be mappings.
pub(crate) fn enable(engine: &mut Engine, wanted: Enabled) -> Result<(), Refusal> {
    table_index(engine, wanted.inside_vrf)?;
    table_index(engine, wanted.outside_vrf)?;
    engine.with(|engine, det: &mut Det44| {
        if det.enabled == Some(wanted) {
            return Ok(());
        }
        if det.enabled.is_some() {
            return Err(Refusal::new("DET44 is enabled with other tables already")
                .remedy("det44 plugin disable"));
        }
        if det.shared.slots().is_none() {
            let slots = Slots::new(ADDRESSES_MAX * SLOTS_PER_ADDRESS);
            let slots = slots.map_err(|error| Refusal::new(error.to_string()))?;
            det.shared.set_slots(slots);
        }
        det.enabled = Some(wanted);
        hold(engine, wanted.inside_vrf, true);
        hold(engine, wanted.outside_vrf, true);
        publish(engine, det);
        Ok(())
    })
}

/// End all sessions, forget the configuration and give the memory back.
pub(crate) fn disable(engine: &mut Engine) -> Result<(), Refusal> {
    with_enabled(engine, |engine, det| {
        let interfaces: Vec<_> = det.sides.keys().copied().collect();
        for id in interfaces {
            set_sides(engine, det, id, Sides::default())?;
        }
        for configured in det.mappings.clone() {
            remove(engine, det, &configured)?;
        }
        let Enabled { inside_vrf, outside_vrf } = det.enabled()?;
        hold(engine, inside_vrf, false);
        hold(engine, outside_vrf, false);
        det.enabled = None;
        Ok(())
    })
}

fn publish(engine: &Engine, det: &Det44) {
    let Some(Enabled { inside_vrf, outside_vrf }) = det.enabled else { return };
    let table = |id: u32| table_index(engine, id).unwrap_or(0);
    let mappings = det.mappings.iter().map(|configured| configured.mapping);
    det.shared.rules.publish(Rules::new(mappings, (table(inside_vrf), table(outside_vrf))));
}

fn bits(prefix: &IpPrefix) -> (u32, u8) {
    match prefix.address {
        IpAddr::V4(address) => (address.into(), prefix.length),
        IpAddr::V6(_) => (0, prefix.length),
    }
}

/// Do two prefixes have addresses in common?
fn overlap(one: &IpPrefix, other: &IpPrefix) -> bool {
    let ((one, length), (other, also)) = (bits(one), bits(other));
    let length = u32::from(length.min(also));
    (one ^ other).checked_shr(32 - length).unwrap_or(0) == 0
}

/// Addresses of the router in a prefix.
fn own_address(engine: &Engine, prefix: &IpPrefix) -> Option<(String, Ipv4Addr)> {
    let calls = engine.get::<InterfaceAddresses>()?;
    engine.all_interfaces().find_map(|interface| {
        let addresses = (calls.of)(engine, interface.id);
        let own = addresses.into_iter().find_map(|(address, _)| match address {
            IpAddr::V4(address) => {
                let host = IpPrefix { address: address.into(), length: 32 };
                overlap(&host, prefix).then_some(address)
            }
            IpAddr::V6(_) => None,
        });
        own.map(|address| (interface.name.clone(), address))
    })
}

/// Bytes of memory that can be had; no limit where the system does not say.
fn available_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB"));
    kilobytes
        .and_then(|number| number.trim().parse::<usize>().ok())
        .map_or(usize::MAX, |kb| kb << 10)
}

/// Why there is no mapping between these prefixes.
fn refuse_ratio(inside: &IpPrefix, outside: &IpPrefix) -> Refusal {
    if outside.length < inside.length {
        let what = format!("{outside} has more addresses than {inside}");
        return Refusal::new(what).remedy(format!("a prefix of {} bits would do", inside.length));
    }
    let longest = u32::from(inside.length) + PORTS.ilog2();
    let what = format!(
        "{} hosts would share an address, which has {PORTS} ports",
        1_u64 << (outside.length - inside.length)
    );
    Refusal::new(what).remedy(format!("an outside prefix of {longest} bits or fewer would do"))
}

/// Let outside addresses stand for inside ones.
pub(crate) fn add(engine: &mut Engine, inside: IpPrefix, outside: IpPrefix) -> Result<(), Refusal> {
    with_enabled(engine, |engine, det| {
        let is_same = |of: &Configured| (of.inside, of.outside) == (inside, outside);
        if det.mappings.iter().any(is_same) {
            return Ok(());
        }
        if det.mappings.len() == MAPPINGS_MAX {
            return Err(Refusal::new(format!("there are {MAPPINGS_MAX} mappings already"))
                .remedy("join some into shorter prefixes"));
        }
        let overlaps =
            |of: &&Configured| overlap(&of.inside, &inside) || overlap(&of.outside, &outside);
        if let Some(of) = det.mappings.iter().find(overlaps) {
            let what = format!("it overlaps the mapping of {} to {}", of.inside, of.outside);
            return Err(Refusal::new(what).remedy("`show det44 mappings` lists them"));
        }
        if overlap(&inside, &outside) {
            return Err(Refusal::new(format!("{inside} and {outside} overlap"))
                .remedy("an address must be on one side only"));
        }
        if let Some((name, address)) = own_address(engine, &outside) {
            return Err(Refusal::new(format!("{address} of {outside} is an address of {name}"))
                .remedy("name addresses that are no interface's"));
        }
        let mapping = Mapping::new(bits(&inside), bits(&outside), 0);
        let mapping = mapping.ok_or_else(|| refuse_ratio(&inside, &outside))?;
        let count = mapping.outside_addresses() * SLOTS_PER_ADDRESS;
        let Some(first) = det.free_slots(count) else {
            let free = ADDRESSES_MAX - det.mappings.iter().map(addresses).sum::<usize>();
            let what = format!(
                "{} outside addresses are more than the {free} that are left",
                mapping.outside_addresses()
            );
            return Err(Refusal::new(what).remedy("name a longer outside prefix"));
        };
        let available = available_bytes();
        if count * SLOT_BYTES > available {
            let fit = (available / SLOTS_PER_ADDRESS / SLOT_BYTES).max(1).ilog2();
            let what = format!(
                "the sessions of {outside} would take {} MB, and {} MB are available",
                (count * SLOT_BYTES) >> 20,
                available >> 20
            );
            return Err(Refusal::new(what).remedy(format!("a /{} would fit", 32 - fit)));
        }
        let mapping = Mapping::new(bits(&inside), bits(&outside), first);
        let mapping = mapping.ok_or_else(|| refuse_ratio(&inside, &outside))?;
        let configured = Configured { inside, outside, mapping };
        det.mappings.push(configured);
        note(engine, &configured, true);
        publish(engine, det);
        set_routes(engine, det, &outside, true);
        Ok(())
    })
}

/// Log a mapping that is added or removed: whose port is whose follows from it (RFC 7422 §4).
fn note(engine: &mut Engine, configured: &Configured, is_added: bool) {
    let prefix = |prefix: &IpPrefix| {
        let (address, length) = bits(prefix);
        (Ipv4Addr::from(address), length)
    };
    let mapping = quiver_nat_log::Deterministic {
        inside: prefix(&configured.inside),
        outside: prefix(&configured.outside),
        first_port: FIRST_PORT,
        ports: u16::try_from(configured.mapping.ports_per_host()).unwrap_or(u16::MAX),
    };
    quiver_nat_log::note_deterministic(engine, mapping, is_added);
}

fn addresses(configured: &Configured) -> usize {
    configured.mapping.outside_addresses()
}

/// Routes that make outside addresses the router's own, so that it answers ARP for them.
fn set_routes(engine: &mut Engine, det: &Det44, outside: &IpPrefix, on: bool) {
    let Some(enabled) = det.enabled else { return };
    let Ok(table) = table_index(engine, enabled.outside_vrf) else { return };
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    let (first, length) = bits(outside);
    let last = first | !u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
    for address in first..=last {
        let prefix = prefix::IpPrefix::new(Ipv4Addr::from(address).into(), 32);
        // What somebody else has there stays theirs.
        let _ = match on {
            true => fib.add_route(table, prefix, Source::Feature, &[Path::new(Target::Local)]),
            false => fib.remove_route(table, prefix, Source::Feature),
        };
    }
}

/// Inside addresses have no outside ones any more. Their sessions end.
pub(crate) fn delete(
    engine: &mut Engine,
    inside: IpPrefix,
    outside: IpPrefix,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, det| {
        let is_it = |of: &&Configured| (of.inside, of.outside) == (inside, outside);
        let Some(configured) = det.mappings.iter().find(is_it).copied() else {
            return Err(Refusal::new(format!("there is no mapping of {inside} to {outside}"))
                .remedy("`show det44 mappings` lists them"));
        };
        remove(engine, det, &configured)
    })
}

fn remove(engine: &mut Engine, det: &mut Det44, gone: &Configured) -> Result<(), Refusal> {
    det.mappings.retain(|configured| configured != gone);
    note(engine, gone, false);
    publish(engine, det);
    set_routes(engine, det, &gone.outside, false);
    // Every worker has ended the pass in which it may have seen the mapping.
    for worker in 0..engine.worker_count() {
        let waited = engine.wait_for_worker(WorkerId(worker as u16));
        waited.map_err(|error| Refusal::new(error.to_string()))?;
    }
    if let Some(slots) = det.shared.slots() {
        slots.clear(gone.mapping.slots());
    }
    Ok(())
}

/// Let an interface be inside, outside, both or neither.
pub(crate) fn change_sides(
    engine: &mut Engine,
    id: InterfaceId,
    change: impl FnOnce(&mut Sides),
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, det| {
        let before = det.sides.get(&id).copied().unwrap_or_default();
        let mut sides = before;
        change(&mut sides);
        if sides == before {
            let name = engine.interface_name(id);
            return Err(Refusal::new(format!("{name} is that already"))
                .remedy("`show det44 interfaces` lists them"));
        }
        set_sides(engine, det, id, sides)
    })
}

fn set_sides(
    engine: &mut Engine,
    det: &mut Det44,
    id: InterfaceId,
    sides: Sides,
) -> Result<(), Refusal> {
    let before = det.sides.get(&id).copied().unwrap_or_default();
    let apply = |engine: &mut Engine, sides: Sides| -> Result<(), Refusal> {
        engine.need_feature(id, ARC, REASSEMBLY, WHO, sides != Sides::default())?;
        engine.set_feature(id, ARC, OUT2IN, sides.outside)?;
        engine.set_feature(id, ARC, IN2OUT, sides.inside)?;
        Ok(())
    };
    det.shared.set_outside(id, sides.outside);
    if let Err(error) = apply(engine, sides) {
        det.shared.set_outside(id, before.outside);
        apply(engine, before)?;
        return Err(error);
    }
    if sides == Sides::default() {
        det.sides.remove(&id);
    } else {
        det.sides.insert(id, sides);
    }
    Ok(())
}

/// An interface that goes takes its sides along.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change == InterfaceChange::Deleted {
        engine.with(|_, det: &mut Det44| {
            det.sides.remove(&id);
            det.shared.set_outside(id, false);
        });
    }
}

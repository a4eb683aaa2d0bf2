//! What is configured of softwires, on the control thread.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_forwarding::fib::{Fib, Path, Source, Target};
use quiver_forwarding::next_hop_group::Hop;
use quiver_sessions::OWNER;
use quiver_tables::exact::{Limits as TableLimits, Seed};
use quiver_tables::prefix::IpPrefix;
use quiver_wire::ip4::address::is_unicast;
use quiver_wire::ip6;

use crate::config::{
    self, Nat44, POOL_ADDRESSES_MAX, check_range, publish, slow_path, wait_for_workers,
    with_enabled,
};
use crate::owner::SlowPath;
use crate::provider;
use crate::session::{Direction, Session, Writer};
use crate::softwires::input::INPUT;
use crate::softwires::table::{Softwires, address_of};
use crate::softwires::{Aftr, B4Limit, B4Number, B4S_MAX, MTU_BYTES, TABLE6, b4_of, is_softwire};

/// B4s when no number is given.
pub(crate) const B4S_DEFAULT: usize = 65_536;
/// Prefixes whose hosts may be B4s.
pub(crate) const PREFIXES_MAX: usize = 256;

const LIMITS: TableLimits =
    TableLimits { what: "table of B4s", entries_max: B4S_MAX, remedy: "allow fewer B4s" };

/// What was said of softwires.
pub(crate) struct Dslite {
    /// The end of the tunnels here, and how many B4s may be.
    pub aftr: Option<(Ipv6Addr, usize)>,
    pub mtu_bytes: u16,
    pub admitted: BTreeSet<(Ipv6Addr, u8)>,
    pub limit: B4Limit,
    /// Addresses that hosts behind B4s alone get.
    pub pool: BTreeSet<Ipv4Addr>,
    /// While DS-Lite is not set up, from the first time on.
    writer: Option<Writer>,
}

impl Default for Dslite {
    fn default() -> Dslite {
        Dslite {
            aftr: None,
            mtu_bytes: MTU_BYTES,
            admitted: BTreeSet::new(),
            limit: B4Limit::default(),
            pool: BTreeSet::new(),
            writer: None,
        }
    }
}

impl Dslite {
    /// As workers read it.
    pub fn aftr(&self) -> Aftr {
        let mask = |length: u8| u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
        let admitted = self.admitted.iter();
        Aftr {
            address: self.aftr.map_or(0, |(address, _)| address.to_bits()),
            mtu_bytes: self.mtu_bytes,
            admitted: admitted.map(|(first, n)| (first.to_bits(), mask(*n))).collect(),
            limit: self.limit,
        }
    }
}

fn prefix(address: Ipv6Addr) -> IpPrefix {
    IpPrefix::new(address.into(), 128)
}

/// Lead packets to the AFTR's address to DS-Lite.
fn lead(engine: &mut Engine, address: Ipv6Addr) -> Result<(), Refusal> {
    let missing = |what: &str| Refusal::new(format!("the node {what} is not built in"));
    let next = engine.node_id(INPUT).ok_or_else(|| missing(INPUT))?;
    let fib = engine.get_mut::<Fib>().ok_or_else(|| missing("ip6-lookup"))?;
    let path = Path::new(Target::Feature(Hop { next, index: 0 }));
    fib.add_route(TABLE6, prefix(address), Source::Feature, &[path])
        .map_err(|error| Refusal::new(error.to_string()))
}

fn lead_no_more(engine: &mut Engine, address: Ipv6Addr) {
    if let Some(fib) = engine.get_mut::<Fib>() {
        let _ = fib.remove_route(TABLE6, prefix(address), Source::Feature);
    }
}

/// Take the memory of so many B4s, and let the owner have them.
fn need_softwires(engine: &mut Engine, nat: &mut Nat44, b4s: usize) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    let mut writer = match nat.dslite.writer.take() {
        Some(writer) => writer,
        None if nat.shared.softwires().is_some() => {
            return Err(Refusal::new("the worker that has the B4s did not answer")
                .remedy("restart the router"));
        }
        None => Writer::new(engine.epochs(), LIMITS, Seed::random())
            .map_err(|error| Refusal::new(error.to_string()))?,
    };
    if let Err(error) = writer.enable(b4s) {
        writer.disable();
        nat.dslite.writer = Some(writer);
        return Err(Refusal::new(error.to_string()).remedy("allow fewer B4s"));
    }
    let softwires = Softwires::new(writer);
    if nat.shared.softwires().is_none() {
        nat.shared.set_softwires(softwires.read.clone());
    }
    let mut softwires = Some(Box::new(softwires));
    let given = engine.call(OWNER, move |worker| {
        worker.visit::<SlowPath, _>(node, |node, _| {
            if let Some(owner) = &mut node.owner {
                owner.log.b4s = softwires.as_ref().map(|softwires| softwires.read.clone());
                owner.softwires = softwires.take();
            }
        });
    });
    given.map_err(|error| Refusal::new(error.to_string()))
}

/// Set the end of the tunnels here.
pub(crate) fn set_aftr(engine: &mut Engine, address: Ipv6Addr, b4s: usize) -> Result<(), Refusal> {
    if !ip6::address::is_unicast(address) {
        return Err(Refusal::new(format!("{address} is no address of one host")));
    }
    with_enabled(engine, |engine, nat| {
        let known = nat.dslite.aftr;
        if known == Some((address, b4s)) {
            return Ok(());
        }
        if let Some((_, places)) = known.filter(|(_, places)| *places != b4s) {
            return Err(Refusal::new(format!("there is place for {places} B4s already"))
                .remedy("dslite del aftr-tunnel-endpoint-address"));
        }
        if known.is_none_or(|(known, _)| known != address) {
            lead(engine, address)?;
        }
        if known.is_none()
            && let Err(error) = need_softwires(engine, nat, b4s)
        {
            lead_no_more(engine, address);
            return Err(error);
        }
        if let Some((before, _)) = known {
            lead_no_more(engine, before);
        }
        nat.dslite.aftr = Some((address, b4s));
        publish(engine, nat);
        Ok(())
    })
}

/// The tables of a session, or of a binding.
fn has_softwire(session: Session<'_>) -> bool {
    is_softwire(session.flow(Direction::InToOut).table)
        || is_softwire(session.flow(Direction::OutToIn).table)
}

/// End all softwires, and give their memory back.
pub(crate) fn delete_aftr(engine: &mut Engine, nat: &mut Nat44) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    let Some((address, _)) = nat.dslite.aftr.take() else {
        return Err(Refusal::new("DS-Lite has no AFTR's address")
            .remedy("dslite set aftr-tunnel-endpoint-address 2001:db8::1"));
    };
    lead_no_more(engine, address);
    publish(engine, nat);
    // Packets that came before make sessions until every worker has ended its pass.
    wait_for_workers(engine)?;
    config::end_sessions(engine, has_softwire)?;
    if nat.has_bindings {
        provider::end_bindings(engine, |binding| has_softwire(Session(binding.0)))?;
    }
    let taken = engine.call(OWNER, move |worker| {
        let take = |node: &mut SlowPath| {
            let owner = node.owner.as_mut()?;
            owner.log.b4s = None;
            owner.softwires.take()
        };
        worker.visit::<SlowPath, _>(node, |node, _| take(node)).flatten()
    });
    let softwires = taken.map_err(|error| Refusal::new(error.to_string()))?;
    // No worker knows a B4 any more that it has looked up.
    wait_for_workers(engine)?;
    if let Some(mut softwires) = softwires {
        softwires.writer.disable();
        nat.shared.note_softwires(&softwires);
        nat.dslite.writer = Some(softwires.writer);
    }
    Ok(())
}

/// NAT44 is being disabled.
pub(crate) fn forget(engine: &mut Engine, nat: &mut Nat44) -> Result<(), Refusal> {
    if nat.dslite.aftr.is_some() {
        delete_aftr(engine, nat)?;
    }
    nat.dslite = Dslite { writer: nat.dslite.writer.take(), ..Dslite::default() };
    Ok(())
}

/// Change what workers read.
pub(crate) fn change(engine: &mut Engine, change: impl FnOnce(&mut Dslite)) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        change(&mut nat.dslite);
        publish(engine, nat);
        Ok(())
    })
}

/// Let hosts of a prefix be B4s, or no more. Sessions of B4s that are not admitted end.
pub(crate) fn set_admitted(
    engine: &mut Engine,
    (first, length): (Ipv6Addr, u8),
    on: bool,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let all = &mut nat.dslite.admitted;
        if on && all.len() >= PREFIXES_MAX {
            return Err(Refusal::new(format!("{PREFIXES_MAX} prefixes are admitted already"))
                .remedy("join some into shorter prefixes"));
        }
        let changed = if on { all.insert((first, length)) } else { all.remove(&(first, length)) };
        if !changed {
            let is = if on { "admitted already" } else { "not admitted" };
            return Err(Refusal::new(format!("{first}/{length} is {is}"))
                .remedy("`show dslite aftr-tunnel-endpoint-address` lists the prefixes"));
        }
        publish(engine, nat);
        let (aftr, readers) = (nat.dslite.aftr(), nat.shared.softwires().cloned());
        let Some(readers) = readers.filter(|_| nat.dslite.aftr.is_some()) else { return Ok(()) };
        config::end_sessions(engine, move |session| {
            let number = b4_of(session.flow(Direction::InToOut).table);
            number.is_some_and(|number| !aftr.admits(address_of(&readers, B4Number(number))))
        })
    })
}

/// Add addresses to the pool of hosts behind B4s, or remove them. Their sessions end.
pub(crate) fn set_pool(
    engine: &mut Engine,
    (first, last): (Ipv4Addr, Ipv4Addr),
    on: bool,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let count = check_range(first, last)?;
        let range = || (u32::from(first)..=u32::from(last)).map(Ipv4Addr::from);
        let remedy = "`show dslite pool` and `show nat44 addresses` list the pools";
        if on && nat.dslite.pool.len() + count > POOL_ADDRESSES_MAX {
            return Err(Refusal::new(format!(
                "the pool of DS-Lite may have {POOL_ADDRESSES_MAX} addresses"
            )));
        }
        if let Some(wrong) = range().find(|address| on && !is_unicast(*address)) {
            return Err(Refusal::new(format!("{wrong} is no address of a host")));
        }
        if let Some(known) = range().find(|address| on && nat.pool.contains_key(address)) {
            return Err(Refusal::new(format!("{known} is in the pool of NAT44")).remedy(remedy));
        }
        if let Some(wrong) = range().find(|address| nat.dslite.pool.contains(address) == on) {
            let is = if on { "in the pool already" } else { "not in the pool" };
            return Err(Refusal::new(format!("{wrong} is {is}")).remedy(remedy));
        }
        for address in range() {
            match on {
                true => nat.dslite.pool.insert(address),
                false => nat.dslite.pool.remove(&address),
            };
        }
        publish(engine, nat);
        if on { Ok(()) } else { config::end_of_addresses(engine, first, last) }
    })
}

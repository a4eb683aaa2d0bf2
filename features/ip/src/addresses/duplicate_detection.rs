//! Are the router's addresses its own? New ones are asked for first (RFC 4862 §5.4, RFC 5227 §2.1),
//! then announced (RFC 4861 §7.2.6, RFC 5227 §2.3), and defended when somebody claims them (RFC
//! 5227 §2.4).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use quiver_control::{IpPrefix as Prefix, Refusal};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, FibError};
use quiver_wire::MacAddress;

use crate::addresses::interfaces;
use crate::events::publish_dad;
use crate::neighbor::own_frames::{Frame, Outgoing};
use crate::state::{InterfaceIp, IpState, with_ip};

/// From one probe to the next, and from the last one until the address counts as ours: RFC 4862
/// §5.4 (RETRANS_TIMER), RFC 5227 §1.1 (PROBE_MIN).
const PROBE_INTERVAL_NS: u64 = 1_000_000_000;
/// Announcements of one address (RFC 5227 §1.1, ANNOUNCE_NUM).
const ANNOUNCEMENTS: u8 = 2;
/// From one to the next (RFC 5227 §1.1, ANNOUNCE_INTERVAL).
const ANNOUNCE_INTERVAL_NS: u64 = 2_000_000_000;
/// An address is defended at most so often (RFC 5227 §1.1, DEFEND_INTERVAL).
const DEFEND_INTERVAL_NS: u64 = 10_000_000_000;
/// Frames about addresses of ours at a time; the others come 100 ms later.
const FRAMES_MAX: usize = 500;

/// How an address is made ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DadConfig {
    /// Probes before an address counts as ours.
    pub transmits: u8,
    /// It is not used before that.
    pub waits: bool,
    /// A duplicate is taken from its interface.
    pub removes: bool,
}

impl DadConfig {
    /// IPv6 addresses are asked for once (RFC 4862 §5.1, DupAddrDetectTransmits), IPv4's are not.
    pub const USUAL: [DadConfig; 2] = [DadConfig::asks(0), DadConfig::asks(1)];

    const fn asks(transmits: u8) -> DadConfig {
        DadConfig { transmits, waits: false, removes: false }
    }
}

/// How sure it is that an address is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Others are asked for it, so many times more.
    Tentative(u8),
    /// It is announced, so many times more.
    Announced(u8),
    /// It is ours.
    Preferred,
    /// Somebody else has it; it is not used until it is configured anew, or the interface comes up
    /// anew.
    Duplicate(MacAddress),
}

impl Phase {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Tentative(_) => "tentative",
            Phase::Announced(_) | Phase::Preferred => "preferred",
            Phase::Duplicate(_) => "duplicate",
        }
    }
}

/// One address of ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnAddress {
    length: u8,
    /// How sure it is.
    pub phase: Phase,
    /// How often somebody else claimed it.
    pub conflicts: u64,
    /// Who did last.
    pub claimed_by: Option<MacAddress>,
    due_ns: u64,
    defended_ns: Option<u64>,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Ownerships {
    map: BTreeMap<(InterfaceId, IpAddr), OwnAddress>,
    due: BTreeSet<(u64, InterfaceId, IpAddr)>,
    /// What holds for interfaces of which nothing else was said: IPv4, IPv6.
    pub usual: [DadConfig; 2],
    /// What was said of single interfaces.
    pub said: BTreeMap<(InterfaceId, bool), DadConfig>,
}

impl Default for Ownerships {
    fn default() -> Self {
        let (map, due) = (BTreeMap::new(), BTreeSet::new());
        Ownerships { map, due, usual: DadConfig::USUAL, said: BTreeMap::new() }
    }
}

impl Ownerships {
    /// How addresses of a family are made ours on an interface.
    pub fn config(&self, id: InterfaceId, six: bool) -> DadConfig {
        self.said.get(&(id, six)).copied().unwrap_or(self.usual[usize::from(six)])
    }

    /// All, by interface and address.
    pub fn iter(&self) -> impl Iterator<Item = (InterfaceId, IpAddr, &OwnAddress)> {
        self.map.iter().map(|((id, address), ownership)| (*id, *address, ownership))
    }

    /// What is known of an address.
    pub fn get(&self, id: InterfaceId, address: IpAddr) -> Option<&OwnAddress> {
        self.map.get(&(id, address))
    }

    /// The interface is gone.
    pub fn forget_interface(&mut self, id: InterfaceId) {
        let known: Vec<IpAddr> = self.on(id).collect();
        known.into_iter().for_each(|address| self.remove(id, address));
        for six in [false, true] {
            self.said.remove(&(id, six));
        }
    }

    fn plan(&mut self, id: InterfaceId, address: IpAddr, phase: Phase, due_ns: u64) {
        let Some(ownership) = self.map.get_mut(&(id, address)) else { return };
        self.due.remove(&(ownership.due_ns, id, address));
        (ownership.phase, ownership.due_ns) = (phase, due_ns);
        if matches!(phase, Phase::Tentative(_) | Phase::Announced(_)) {
            self.due.insert((due_ns, id, address));
        }
    }

    fn remove(&mut self, id: InterfaceId, address: IpAddr) {
        if let Some(old) = self.map.remove(&(id, address)) {
            self.due.remove(&(old.due_ns, id, address));
        }
    }
}

/// Can others on a link be asked and told by this interface?
fn speaks(engine: &Engine, id: InterfaceId) -> bool {
    let unasked = engine.speaks_unasked();
    engine.interface(id).filter(|_| unasked).is_some_and(|interface| {
        interface.row().up && interface.row().mac != [0; 6] && interface.device.kind() != "loopback"
    })
}

/// Follow the addresses of an interface. `anew`: the link, or what it leads to, has changed, so
/// that all begins again.
pub(crate) fn follow(
    engine: &Engine,
    ip: &mut IpState,
    fib: &mut Fib,
    id: InterfaceId,
    anew: bool,
) -> Result<(), FibError> {
    let now_ns = engine.now_ns();
    let wanted = ip.interface(id).configured();
    let known: Vec<IpAddr> = ip.ownerships.on(id).collect();
    for address in known {
        if !wanted.iter().any(|(wanted, _)| *wanted == address) {
            ip.ownerships.remove(id, address);
            ip.interface(id).let_go(address);
        }
    }
    let speaks = speaks(engine, id);
    for (address, length) in wanted {
        let old = ip.ownerships.map.get(&(id, address)).copied();
        if old.is_some() && !anew {
            continue;
        }
        ip.ownerships.remove(id, address);
        let fresh = OwnAddress {
            length,
            phase: Phase::Preferred,
            conflicts: old.map_or(0, |old| old.conflicts),
            claimed_by: old.and_then(|old| old.claimed_by),
            due_ns: u64::MAX,
            defended_ns: None,
        };
        ip.ownerships.map.insert((id, address), fresh);
        let config = ip.ownerships.config(id, address.is_ipv6());
        let probes = speaks && config.transmits > 0;
        if probes {
            ip.ownerships.plan(id, address, Phase::Tentative(config.transmits), now_ns);
        } else if speaks {
            ip.ownerships.plan(id, address, Phase::Announced(ANNOUNCEMENTS), now_ns);
        }
        ip.interface(id).set_tentative(address, probes);
        // RFC 4862 §5.4, RFC 8415 §18.2.10.1: what was made of a prefix, or is leased, is not used
        // before.
        let interface = ip.interface(id);
        let waits = config.waits || interface.is_auto(address) || interface.has_leased6(address);
        use_or_not(ip, fib, id, (address, length), !(probes && waits))?;
    }
    Ok(())
}

/// Let an address of ours be used, or keep it from being.
fn use_or_not(
    ip: &mut IpState,
    fib: &mut Fib,
    id: InterfaceId,
    (address, length): (IpAddr, u8),
    used: bool,
) -> Result<(), FibError> {
    if used == ip.interface(id).is_withheld(address) {
        fib.withhold_address(id, address, length, !used)?;
    }
    ip.interface(id).set_withheld(address, !used);
    Ok(())
}

impl Ownerships {
    fn on(&self, id: InterfaceId) -> impl Iterator<Item = IpAddr> {
        let first = (id, IpAddr::from([0; 4]));
        self.map
            .range(first..)
            .map(|(key, _)| *key)
            .take_while(move |(on, _)| *on == id)
            .map(|(_, a)| a)
    }
}

/// Announce all addresses of an interface anew: it leads elsewhere now, or the operator says so.
pub(crate) fn announce(engine: &mut Engine, id: InterfaceId, only: Option<IpAddr>) {
    let now_ns = engine.now_ns();
    if !speaks(engine, id) {
        return;
    }
    if let Some(ip) = engine.get_mut::<IpState>() {
        let addresses: Vec<IpAddr> = ip
            .ownerships
            .on(id)
            .filter(|address| only.is_none_or(|only| only == *address))
            .collect();
        for address in addresses {
            let phase = ip.ownerships.get(id, address).map(|ownership| ownership.phase);
            if matches!(phase, Some(Phase::Announced(_) | Phase::Preferred)) {
                ip.ownerships.plan(id, address, Phase::Announced(ANNOUNCEMENTS), now_ns);
            }
        }
    }
}

/// Do what is due: ask, announce, begin to use.
pub(crate) fn look_through(
    engine: &Engine,
    ip: &mut IpState,
    fib: &mut Fib,
    outgoing: &mut Outgoing,
) {
    let (now_ns, room) = (engine.now_ns(), outgoing.len() + FRAMES_MAX);
    let mut changed = false;
    while outgoing.len() < room {
        let due = ip.ownerships.due.first().copied().filter(|(at_ns, ..)| *at_ns <= now_ns);
        let Some((_, id, address)) = due else { break };
        let Some(ownership) = ip.ownerships.get(id, address).copied() else { break };
        match ownership.phase {
            Phase::Tentative(0) => {
                ip.interface(id).set_tentative(address, false);
                if let Err(error) = use_or_not(ip, fib, id, (address, ownership.length), true) {
                    let interface = engine.interface_name(id);
                    tracing::warn!(
                        "{interface}: {address} cannot be used: {}",
                        Refusal::of_table(engine, error)
                    );
                }
                ip.ownerships.plan(id, address, Phase::Announced(ANNOUNCEMENTS), now_ns);
                publish_dad(engine, "preferred", id, address, None);
                changed = true;
            }
            Phase::Tentative(left) => {
                let phase = Phase::Tentative(left - 1);
                ip.ownerships.plan(id, address, phase, now_ns + PROBE_INTERVAL_NS);
                outgoing.add(engine, id, |mac| Frame::duplicate_probe(mac, address));
            }
            Phase::Announced(left) => {
                let phase = if left > 1 { Phase::Announced(left - 1) } else { Phase::Preferred };
                ip.ownerships.plan(id, address, phase, now_ns + ANNOUNCE_INTERVAL_NS);
                outgoing.add(engine, id, |mac| Frame::announcement(mac, address));
            }
            Phase::Preferred | Phase::Duplicate(_) => {
                ip.ownerships.plan(id, address, ownership.phase, u64::MAX)
            }
        }
    }
    if changed {
        ip.publish(fib);
    }
}

/// Somebody else uses, or asks for, an address of ours.
pub(crate) fn conflict(engine: &mut Engine, id: InterfaceId, address: IpAddr, mac: MacAddress) {
    let name = engine.interface_name(id);
    let mut removed = None;
    let defence = with_ip(engine, |engine, ip, fib| {
        let now_ns = engine.now_ns();
        let mut defence = Outgoing::default();
        let Some(ownership) = ip.ownerships.map.get_mut(&(id, address)) else { return defence };
        ownership.conflicts += 1;
        ownership.claimed_by = Some(mac);
        let ownership = *ownership;
        match ownership.phase {
            Phase::Tentative(_) => {
                tracing::warn!("{name}: {address} is a duplicate: {mac} has it; it is not used");
                publish_dad(engine, "duplicate", id, address, Some(mac));
                ip.ownerships.plan(id, address, Phase::Duplicate(mac), u64::MAX);
                ip.interface(id).set_tentative(address, false);
                if let Err(error) = use_or_not(ip, fib, id, (address, ownership.length), false) {
                    tracing::warn!("{name}: {}", Refusal::of_table(engine, error));
                }
                ip.publish(fib);
                let own = Prefix { address, length: ownership.length };
                let removes = ip.ownerships.config(id, address.is_ipv6()).removes;
                // The DHCPv6 client declines what it leased.
                let is_leased = ip.interface(id).has_leased6(address);
                removed = Some(own).filter(|own| removes && !is_leased && ip.has(id, *own));
            }
            Phase::Duplicate(_) => {}
            Phase::Announced(_) | Phase::Preferred => {
                publish_dad(engine, "conflict", id, address, Some(mac));
                tracing::warn!(
                    "{name}: {mac} uses our address {address} too; one of the two must change it"
                );
                let long_ago = |at_ns| now_ns.saturating_sub(at_ns) >= DEFEND_INTERVAL_NS;
                if ownership.defended_ns.is_none_or(long_ago) {
                    if let Some(ownership) = ip.ownerships.map.get_mut(&(id, address)) {
                        ownership.defended_ns = Some(now_ns);
                    }
                    defence.add(engine, id, |mac| Frame::announcement(mac, address));
                }
            }
        }
        defence
    });
    defence.send(engine);
    if let Some(own) = removed {
        match interfaces::remove(engine, id, own) {
            Ok(()) => tracing::warn!("{name}: {address} is taken away: it is a duplicate"),
            Err(refusal) => tracing::warn!("{name}: {refusal}"),
        }
    }
}

impl InterfaceIp {
    /// Its addresses with the lengths of their subnets, in use or not; the link-local one as the
    /// FIB has it.
    pub(crate) fn configured(&self) -> Vec<(IpAddr, u8)> {
        let ip4 = self.ip4.iter().map(|own| (own.address().into(), own.length()));
        let ip6 = self.ip6.iter().map(|own| (own.address().into(), own.length()));
        let link_local = self.link_local.iter().map(|own| (own.address().into(), 128));
        let auto = self.auto_interface_addresses().map(|own| (own.address().into(), own.length()));
        ip4.chain(ip6).chain(link_local).chain(auto).collect()
    }

    /// Is it kept from being used?
    pub(crate) fn is_withheld(&self, address: IpAddr) -> bool {
        self.withheld.contains(&address)
    }

    fn set_withheld(&mut self, address: IpAddr, withheld: bool) {
        self.withheld.retain(|known| *known != address);
        self.withheld.extend(withheld.then_some(address));
    }

    fn set_tentative(&mut self, address: IpAddr, tentative: bool) {
        self.tentative.retain(|known| *known != address);
        self.tentative.extend(tentative.then_some(address));
    }

    fn let_go(&mut self, address: IpAddr) {
        self.set_withheld(address, false);
        self.set_tentative(address, false);
    }
}

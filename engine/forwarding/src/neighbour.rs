//! Neighbours: which MAC address answers for an IP address on an interface, and how sure that is
//! (RFC 4861 §7.3, RFC 1122 §2.3.2.1). Control side only; workers see the adjacencies that are made
//! of them.

mod changes;
pub mod generations;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

use quiver_core::InterfaceId;
use quiver_wire::MacAddress;

use crate::neighbour::generations::NeighbourGenerations;

use changes::Changes;
pub use changes::{CHANGES_MAX, NeighbourChange};

/// Dynamic neighbours of a family that are kept, unless configured otherwise. A scan of a connected
/// /8 must not fill the router's memory.
pub const NEIGHBOURS_MAX: usize = 1 << 16;

/// How sure a neighbour is (RFC 4861 §7.3.2). One that has never answered is no neighbour yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourState {
    /// Configured; does not age.
    Static,
    /// Learned by a control plane beside the router, which also says when it is over; does not age,
    /// and is no part of the configuration.
    External,
    /// Answered, or spoke to us, lately.
    Reachable,
    /// Not heard from for some time; used, and asked again once a packet goes to it.
    Stale,
    /// A packet went to it: it may say something by itself now, or is asked in a moment.
    Delay,
    /// It is being asked, and still used.
    Probe,
}

impl NeighbourState {
    /// As `show ip neighbors` says it.
    pub fn word(self) -> &'static str {
        match self {
            NeighbourState::Static => "static",
            NeighbourState::External => "external",
            NeighbourState::Reachable => "reachable",
            NeighbourState::Stale => "stale",
            NeighbourState::Delay => "delay",
            NeighbourState::Probe => "probe",
        }
    }

    /// Does it stand until somebody takes it away, whatever is heard?
    pub fn is_fixed(self) -> bool {
        matches!(self, NeighbourState::Static | NeighbourState::External)
    }
}

/// A neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its MAC address.
    pub mac: MacAddress,
    /// How sure that is.
    pub state: NeighbourState,
    /// When it was last heard, on the router's clock.
    pub confirmed_ms: u64,
    /// When something about it is due; `u64::MAX` for never.
    due_ms: u64,
    /// Questions in [`NeighbourState::Probe`].
    asked: u8,
}

/// How long what takes, and how many there are: of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourConfig {
    /// Dynamic neighbours at most.
    pub limit: usize,
    /// When there is no room for a new one, forget the one that was heard longest ago.
    pub recycles: bool,
    /// One that nobody sends to and that says nothing is forgotten after so long; 0 for never.
    pub age_ms: u64,
    /// One that answered counts as reachable for between half of this and one and a half
    /// (RFC 4861 §6.3.2: so that not all are asked at once).
    pub reachable_ms: u64,
    /// From the first packet to a stale one until it is asked (RFC 4861 §10,
    /// DELAY_FIRST_PROBE_TIME).
    pub delay_ms: u64,
    /// From one question to the next (RFC 4861 §10, RETRANS_TIMER).
    pub retransmit_ms: u64,
    /// Questions to its own MAC address, and after them to all (RFC 4861 §10, MAX_UNICAST_SOLICIT,
    /// MAX_MULTICAST_SOLICIT).
    pub probes: u8,
}

impl Default for NeighbourConfig {
    fn default() -> Self {
        NeighbourConfig {
            limit: NEIGHBOURS_MAX,
            recycles: false,
            age_ms: 20 * 60_000,
            reachable_ms: 40_000,
            delay_ms: 5_000,
            retransmit_ms: 1_000,
            probes: 3,
        }
    }
}

/// What came of learning a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// New, or its MAC changed.
    Changed,
    /// Known already.
    Refreshed,
    /// A static one stands and does not change.
    StaticStands,
    /// There is no room for more dynamic ones.
    Full,
}

/// What is due for a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// It has become stale.
    Stale,
    /// It is to be asked at its own MAC address.
    AskIt(MacAddress),
    /// It is to be asked for by broadcast or multicast: its MAC address may be another one.
    AskAll,
    /// It is to be forgotten: nobody needs it, or it did not answer.
    Forget,
}

type Key = (InterfaceId, IpAddr);
/// A moment in milliseconds, and whom it is about.
type Moment = (u64, InterfaceId, IpAddr);

/// What there is once per family.
#[derive(Debug, Default)]
struct FamilyNeighbours {
    config: NeighbourConfig,
    /// The dynamic ones by when they were last heard.
    by_age: BTreeSet<Moment>,
    recycled: u64,
}

/// All neighbours of the router, both families.
#[derive(Debug, Default)]
pub struct Neighbours {
    map: BTreeMap<Key, Neighbour>,
    /// The same by address, for prefixes that cover neighbours of many interfaces.
    by_address: BTreeSet<(IpAddr, InterfaceId)>,
    families: [FamilyNeighbours; 2],
    due: BTreeSet<Moment>,
    changes: Changes,
    static_changes: u64,
    generations: Arc<NeighbourGenerations>,
}

fn side(address: IpAddr) -> usize {
    usize::from(address.is_ipv6())
}

impl Neighbours {
    /// Timers and limits of a family. Neighbours that are there stay, and age as these timers say.
    pub fn configure(&mut self, ip6: bool, config: NeighbourConfig) {
        let old = std::mem::replace(&mut self.families[usize::from(ip6)].config, config);
        if (old.reachable_ms, old.age_ms) == (config.reachable_ms, config.age_ms) {
            return;
        }
        let waits =
            |n: &Neighbour| matches!(n.state, NeighbourState::Reachable | NeighbourState::Stale);
        let all = self.map.iter().filter(|((_, address), n)| address.is_ipv6() == ip6 && waits(n));
        let all: Vec<_> = all.map(|((on, address), n)| (*on, *address, n.confirmed_ms)).collect();
        for (on, address, confirmed_ms) in all {
            self.plan(on, address, confirmed_ms);
        }
    }

    /// Timers and limits of a family.
    pub fn config(&self, ip6: bool) -> &NeighbourConfig {
        &self.families[usize::from(ip6)].config
    }

    /// How many dynamic ones of a family there are.
    pub fn dynamic(&self, ip6: bool) -> usize {
        self.families[usize::from(ip6)].by_age.len()
    }

    /// How many of a family had to make room for a new one.
    pub fn recycled(&self, ip6: bool) -> u64 {
        self.families[usize::from(ip6)].recycled
    }

    /// How many, static ones included.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The neighbour with this address on this interface.
    pub fn get(&self, interface: InterfaceId, address: IpAddr) -> Option<&Neighbour> {
        self.map.get(&(interface, address))
    }

    /// What [`learn`](Self::learn) would do.
    pub fn would_learn(&self, interface: InterfaceId, address: IpAddr, mac: MacAddress) -> Learned {
        let family = &self.families[side(address)];
        match self.get(interface, address) {
            Some(old) if old.state.is_fixed() => Learned::StaticStands,
            Some(old) if old.mac == mac => Learned::Refreshed,
            Some(_) => Learned::Changed,
            None if family.by_age.len() >= family.config.limit && !family.config.recycles => {
                Learned::Full
            }
            None => Learned::Changed,
        }
    }

    /// Whom a new neighbour with this address would replace: the one heard longest ago, when there
    /// is no room and the family recycles.
    pub fn unlucky_for(
        &self,
        interface: InterfaceId,
        address: IpAddr,
    ) -> Option<(InterfaceId, IpAddr)> {
        let family = &self.families[side(address)];
        let full =
            family.by_age.len() >= family.config.limit && self.get(interface, address).is_none();
        let oldest = family.by_age.first().filter(|_| full && family.config.recycles);
        oldest.map(|(_, on, address)| (*on, *address))
    }

    /// A dynamic neighbour was heard, and is as sure as `state` says ([`NeighbourState::Reachable`]
    /// or [`NeighbourState::Stale`]). The room that it needs was made.
    pub fn learn(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
        mac: MacAddress,
        state: NeighbourState,
        now_ms: u64,
    ) -> Learned {
        let learned = self.would_learn(interface, address, mac);
        if matches!(learned, Learned::Changed | Learned::Refreshed) {
            self.put(interface, address, mac, state, now_ms);
            self.plan(interface, address, now_ms);
        }
        learned
    }

    /// A neighbour was configured ([`NeighbourState::Static`]) or is one of a
    /// control plane ([`NeighbourState::External`]).
    pub fn fix(
        &mut self,
        state: NeighbourState,
        interface: InterfaceId,
        address: IpAddr,
        mac: MacAddress,
        now_ms: u64,
    ) {
        self.put(interface, address, mac, state, now_ms);
    }

    fn put(
        &mut self,
        on: InterfaceId,
        address: IpAddr,
        mac: MacAddress,
        state: NeighbourState,
        now_ms: u64,
    ) {
        let is_static = state == NeighbourState::Static;
        let before = self.take(on, address).map(|old| old.mac);
        self.static_changes += u64::from(is_static);
        self.changes.add(NeighbourChange {
            interface: on,
            address,
            before,
            now: Some(mac),
            is_static,
        });
        if before.is_some_and(|before| before != mac) {
            self.generations.advance(on, address);
        }
        if !state.is_fixed() {
            self.families[side(address)].by_age.insert((now_ms, on, address));
        }
        let neighbour = Neighbour { mac, state, confirmed_ms: now_ms, due_ms: u64::MAX, asked: 0 };
        self.map.insert((on, address), neighbour);
        self.by_address.insert((address, on));
    }

    /// What workers compare to learn that a neighbour was forgotten or has another MAC address.
    pub fn generations(&self) -> &Arc<NeighbourGenerations> {
        &self.generations
    }

    /// Forget a neighbour.
    pub fn remove(&mut self, interface: InterfaceId, address: IpAddr) -> Option<Neighbour> {
        let old = self.take(interface, address)?;
        self.generations.advance(interface, address);
        let is_static = old.state == NeighbourState::Static;
        self.static_changes += u64::from(is_static);
        self.changes.add(NeighbourChange {
            interface,
            address,
            before: Some(old.mac),
            now: None,
            is_static,
        });
        Some(old)
    }

    /// How often a configured neighbour was added, replaced or removed.
    pub fn static_changes(&self) -> u64 {
        self.static_changes
    }

    /// Keep changes for [`take_changes`](Self::take_changes) from now on, or no more.
    pub fn watch_changes(&mut self, watched: bool) {
        if self.changes.watched != watched {
            self.changes = Changes { watched, ..Changes::default() };
        }
    }

    /// The changes since the last call, the oldest first, and how many older ones there was no room
    /// for.
    pub fn take_changes(&mut self) -> (VecDeque<NeighbourChange>, u64) {
        (std::mem::take(&mut self.changes.waiting), std::mem::take(&mut self.changes.lost))
    }

    fn take(&mut self, interface: InterfaceId, address: IpAddr) -> Option<Neighbour> {
        let old = self.map.remove(&(interface, address))?;
        self.by_address.remove(&(address, interface));
        self.families[side(address)].by_age.remove(&(old.confirmed_ms, interface, address));
        self.due.remove(&(old.due_ms, interface, address));
        Some(old)
    }

    /// Forget one for a new one.
    pub fn recycle(&mut self, interface: InterfaceId, address: IpAddr) -> Option<Neighbour> {
        self.families[side(address)].recycled += 1;
        self.remove(interface, address)
    }

    /// A packet goes to it, or it must be asked for another reason; false when it is not stale.
    pub fn used(&mut self, interface: InterfaceId, address: IpAddr, now_ms: u64) -> bool {
        self.change(interface, address, NeighbourState::Stale, NeighbourState::Delay, now_ms)
    }

    /// It may no longer be so; false when it was not counted as reachable.
    pub fn doubt(&mut self, interface: InterfaceId, address: IpAddr, now_ms: u64) -> bool {
        self.change(interface, address, NeighbourState::Reachable, NeighbourState::Stale, now_ms)
    }

    fn change(
        &mut self,
        on: InterfaceId,
        address: IpAddr,
        from: NeighbourState,
        to: NeighbourState,
        now_ms: u64,
    ) -> bool {
        let Some(neighbour) = self.map.get_mut(&(on, address)).filter(|n| n.state == from) else {
            return false;
        };
        neighbour.state = to;
        neighbour.asked = 0;
        self.plan(on, address, now_ms);
        true
    }

    /// Say when something is due for a neighbour whose state has changed just now.
    fn plan(&mut self, on: InterfaceId, address: IpAddr, now_ms: u64) {
        let config = self.families[side(address)].config;
        let Some(neighbour) = self.map.get_mut(&(on, address)) else { return };
        self.due.remove(&(neighbour.due_ms, on, address));
        neighbour.due_ms = match neighbour.state {
            NeighbourState::Static | NeighbourState::External => u64::MAX,
            NeighbourState::Reachable => {
                now_ms + scattered(config.reachable_ms, on, address, now_ms)
            }
            NeighbourState::Stale if config.age_ms == 0 => u64::MAX,
            NeighbourState::Stale => (neighbour.confirmed_ms + config.age_ms).max(now_ms),
            NeighbourState::Delay => now_ms + config.delay_ms,
            NeighbourState::Probe => now_ms + config.retransmit_ms,
        };
        if neighbour.due_ms != u64::MAX {
            self.due.insert((neighbour.due_ms, on, address));
        }
    }

    /// The next neighbour for which something is due; its state is changed accordingly. One that is
    /// to be forgotten stays until it is [removed](Self::remove).
    pub fn next_due(&mut self, now_ms: u64) -> Option<(InterfaceId, IpAddr, Due)> {
        let (at_ms, on, address) = *self.due.first().filter(|(at_ms, ..)| *at_ms <= now_ms)?;
        let probes = self.families[side(address)].config.probes;
        let Some(neighbour) = self.map.get_mut(&(on, address)) else {
            self.due.remove(&(at_ms, on, address));
            return self.next_due(now_ms);
        };
        let due = match neighbour.state {
            NeighbourState::Static | NeighbourState::External | NeighbourState::Stale => {
                Due::Forget
            }
            NeighbourState::Reachable => {
                neighbour.state = NeighbourState::Stale;
                Due::Stale
            }
            NeighbourState::Delay | NeighbourState::Probe => {
                let asked = neighbour.asked;
                neighbour.state = NeighbourState::Probe;
                neighbour.asked += 1;
                match asked {
                    asked if asked < probes => Due::AskIt(neighbour.mac),
                    asked if asked < probes.saturating_mul(2) => Due::AskAll,
                    _ => Due::Forget,
                }
            }
        };
        if due == Due::Forget {
            self.due.remove(&(at_ms, on, address));
            neighbour.due_ms = u64::MAX;
        } else {
            self.plan(on, address, now_ms);
        }
        Some((on, address, due))
    }

    /// All, by interface and address.
    pub fn iter(&self) -> impl Iterator<Item = (InterfaceId, IpAddr, &Neighbour)> {
        self.map.iter().map(|((interface, address), neighbour)| (*interface, *address, neighbour))
    }

    /// Those whose address is `first` or higher, in order of address; IPv4 comes before IPv6.
    pub fn from(&self, first: IpAddr) -> impl Iterator<Item = (IpAddr, InterfaceId)> {
        self.by_address.range((first, InterfaceId(0))..).copied()
    }

    /// Those behind one in the order of [`iter`](Self::iter), or all: a long list can pause.
    pub fn after(
        &self,
        last: Option<(InterfaceId, IpAddr)>,
    ) -> impl Iterator<Item = (InterfaceId, IpAddr, &Neighbour)> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.map.range((from, Bound::Unbounded));
        behind.map(|((interface, address), neighbour)| (*interface, *address, neighbour))
    }

    /// Those from one on in the order of [`iter`](Self::iter), itself included.
    pub fn from_key(
        &self,
        first: (InterfaceId, IpAddr),
    ) -> impl Iterator<Item = (InterfaceId, IpAddr, &Neighbour)> {
        self.map
            .range(first..)
            .map(|((interface, address), neighbour)| (*interface, *address, neighbour))
    }

    /// Those on `interface`.
    pub fn on(&self, interface: InterfaceId) -> impl Iterator<Item = (IpAddr, &Neighbour)> {
        let all = self.map.range((interface, IpAddr::from([0; 4]))..);
        all.take_while(move |((on, _), _)| *on == interface)
            .map(|((_, address), neighbour)| (*address, neighbour))
    }
}

/// Between half of `time_ms` and one and a half, other for every neighbour and every time.
fn scattered(time_ms: u64, on: InterfaceId, address: IpAddr, now_ms: u64) -> u64 {
    let bits = match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64 ^ address.to_bits() as u64,
    };
    let mixed = (bits ^ u64::from(on.0) << 32 ^ now_ms).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    time_ms / 2 + (mixed >> 40) * time_ms / (1 << 24)
}

#[cfg(test)]
mod tests;

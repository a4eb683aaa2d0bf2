//! Neighbours: which MAC address answers for an IP address on an interface, and how sure that is
//! (RFC 4861 §7.3, RFC 1122 §2.3.2.1). Control side only; workers see the adjacencies that are made of
//! them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

use quiver_core::InterfaceId;
use quiver_wire::MacAddress;

use crate::neighbour_generations::NeighbourGenerations;

/// Dynamic neighbours of a family that are kept, unless configured otherwise. A scan of a connected /8
/// must not fill the router's memory.
pub const NEIGHBOURS_MAX: usize = 1 << 16;

/// How sure a neighbour is (RFC 4861 §7.3.2). One that has never answered is no neighbour yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourState {
    /// Configured; does not age.
    Static,
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
            NeighbourState::Reachable => "reachable",
            NeighbourState::Stale => "stale",
            NeighbourState::Delay => "delay",
            NeighbourState::Probe => "probe",
        }
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
    /// From the first packet to a stale one until it is asked (RFC 4861 §10, DELAY_FIRST_PROBE_TIME).
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

/// Changes of neighbours that wait for [`Neighbours::take_changes`] at most.
pub const CHANGES_MAX: usize = 4096;

/// A neighbour is known by another MAC address than before, or known no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourChange {
    /// On this interface.
    pub interface: InterfaceId,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address before; `None` when it was not known.
    pub before: Option<MacAddress>,
    /// Its MAC address now; `None` when it is known no more.
    pub now: Option<MacAddress>,
    /// Was it configured?
    pub is_static: bool,
}

/// Changes since somebody last took them, while somebody wants them.
#[derive(Debug, Default)]
struct Changes {
    watched: bool,
    waiting: VecDeque<NeighbourChange>,
    lost: u64,
}

impl Changes {
    fn add(&mut self, change: NeighbourChange) {
        if !self.watched || change.before == change.now {
            return;
        }
        if self.waiting.len() >= CHANGES_MAX {
            self.waiting.pop_front();
            self.lost += 1;
        }
        self.waiting.push_back(change);
    }
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
        let waits = |n: &Neighbour| matches!(n.state, NeighbourState::Reachable | NeighbourState::Stale);
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
            Some(old) if old.state == NeighbourState::Static => Learned::StaticStands,
            Some(old) if old.mac == mac => Learned::Refreshed,
            Some(_) => Learned::Changed,
            None if family.by_age.len() >= family.config.limit && !family.config.recycles => Learned::Full,
            None => Learned::Changed,
        }
    }

    /// Whom a new neighbour with this address would replace: the one heard longest ago, when there is no
    /// room and the family recycles.
    pub fn unlucky_for(&self, interface: InterfaceId, address: IpAddr) -> Option<(InterfaceId, IpAddr)> {
        let family = &self.families[side(address)];
        let full = family.by_age.len() >= family.config.limit && self.get(interface, address).is_none();
        let oldest = family.by_age.first().filter(|_| full && family.config.recycles);
        oldest.map(|(_, on, address)| (*on, *address))
    }

    /// A dynamic neighbour was heard, and is as sure as `state` says ([`NeighbourState::Reachable`] or
    /// [`NeighbourState::Stale`]). The room that it needs was made.
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

    /// A neighbour was configured.
    pub fn set_static(&mut self, interface: InterfaceId, address: IpAddr, mac: MacAddress, now_ms: u64) {
        self.put(interface, address, mac, NeighbourState::Static, now_ms);
    }

    fn put(&mut self, on: InterfaceId, address: IpAddr, mac: MacAddress, state: NeighbourState, now_ms: u64) {
        let before = self.take(on, address).map(|old| old.mac);
        let is_static = state == NeighbourState::Static;
        self.changes.add(NeighbourChange { interface: on, address, before, now: Some(mac), is_static });
        if before.is_some_and(|before| before != mac) {
            self.generations.advance(on, address);
        }
        if state != NeighbourState::Static {
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
        self.changes.add(NeighbourChange { interface, address, before: Some(old.mac), now: None, is_static });
        Some(old)
    }

    /// Keep changes for [`take_changes`](Self::take_changes) from now on, or no more.
    pub fn watch_changes(&mut self, watched: bool) {
        if self.changes.watched != watched {
            self.changes = Changes { watched, ..Changes::default() };
        }
    }

    /// The changes since the last call, the oldest first, and how many older ones there was no room for.
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
            NeighbourState::Static => u64::MAX,
            NeighbourState::Reachable => now_ms + scattered(config.reachable_ms, on, address, now_ms),
            NeighbourState::Stale if config.age_ms == 0 => u64::MAX,
            NeighbourState::Stale => (neighbour.confirmed_ms + config.age_ms).max(now_ms),
            NeighbourState::Delay => now_ms + config.delay_ms,
            NeighbourState::Probe => now_ms + config.retransmit_ms,
        };
        if neighbour.due_ms != u64::MAX {
            self.due.insert((neighbour.due_ms, on, address));
        }
    }

    /// The next neighbour for which something is due; its state is changed accordingly. One that is to
    /// be forgotten stays until it is [removed](Self::remove).
    pub fn next_due(&mut self, now_ms: u64) -> Option<(InterfaceId, IpAddr, Due)> {
        let (at_ms, on, address) = *self.due.first().filter(|(at_ms, ..)| *at_ms <= now_ms)?;
        let probes = self.families[side(address)].config.probes;
        let Some(neighbour) = self.map.get_mut(&(on, address)) else {
            self.due.remove(&(at_ms, on, address));
            return self.next_due(now_ms);
        };
        let due = match neighbour.state {
            NeighbourState::Static | NeighbourState::Stale => Due::Forget,
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
mod tests {
    use super::*;

    #[test]
    fn changes_are_kept_while_somebody_wants_them_and_the_oldest_make_room() {
        let (on, mac, other) =
            (InterfaceId(0), MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]));
        let address = |n: u32| IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0a00_0000 + n));
        let mut neighbours = Neighbours::default();
        neighbours.learn(on, address(1), mac, NeighbourState::Reachable, 0);
        assert!(neighbours.take_changes().0.is_empty(), "nobody wants them");
        neighbours.watch_changes(true);
        neighbours.learn(on, address(1), mac, NeighbourState::Reachable, 1); // the same
        neighbours.learn(on, address(1), other, NeighbourState::Reachable, 2);
        neighbours.set_static(on, address(2), mac, 3);
        let _ = neighbours.remove(on, address(1));
        let (changes, lost) = neighbours.take_changes();
        let said: Vec<_> = changes.iter().map(|c| (c.address, c.before, c.now, c.is_static)).collect();
        let expected = [
            (address(1), Some(mac), Some(other), false),
            (address(2), None, Some(mac), true),
            (address(1), Some(other), None, false),
        ];
        assert_eq!((said.as_slice(), lost), (&expected[..], 0));
        for n in 0..CHANGES_MAX as u32 + 7 {
            neighbours.set_static(on, address(100 + n), mac, 4);
        }
        let (changes, lost) = neighbours.take_changes();
        assert_eq!((changes.len(), lost, changes[0].address), (CHANGES_MAX, 7, address(107)));
    }

    const ON: InterfaceId = InterfaceId(1);
    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

    fn host(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    fn learn(neighbours: &mut Neighbours, number: u8, now_ms: u64) -> Learned {
        neighbours.learn(ON, host(number), MAC, NeighbourState::Reachable, now_ms)
    }

    /// All that is due until `until_ms`, looked for every 100 ms.
    fn watch(neighbours: &mut Neighbours, from_ms: u64, until_ms: u64) -> Vec<(u64, Due)> {
        let mut seen = Vec::new();
        for now_ms in (from_ms..=until_ms).step_by(100) {
            while let Some((_, _, due)) = neighbours.next_due(now_ms) {
                seen.push((now_ms, due));
            }
        }
        seen
    }

    #[test]
    fn a_static_neighbour_is_not_overwritten_and_does_not_age() {
        let mut neighbours = Neighbours::default();
        neighbours.set_static(ON, host(1), MAC, 0);
        let learned = neighbours.learn(ON, host(1), OTHER, NeighbourState::Reachable, 5);
        assert_eq!(learned, Learned::StaticStands);
        assert_eq!(watch(&mut neighbours, 0, 10_000_000), []);
        assert_eq!(neighbours.get(ON, host(1)).map(|neighbour| neighbour.mac), Some(MAC));
        assert_eq!(neighbours.dynamic(false), 0);
    }

    #[test]
    fn one_that_nobody_uses_becomes_stale_and_is_forgotten_without_a_question() {
        let mut neighbours = Neighbours::default();
        learn(&mut neighbours, 1, 0);
        let seen = watch(&mut neighbours, 0, 2_000_000);
        let [(stale_ms, Due::Stale), (1_200_000, Due::Forget)] = seen[..] else { panic!("{seen:?}") };
        assert!((20_000..=60_100).contains(&stale_ms), "{stale_ms}");
    }

    #[test]
    fn one_that_is_used_is_asked_itself_then_all_and_then_forgotten() {
        let mut neighbours = Neighbours::default();
        neighbours.learn(ON, host(1), MAC, NeighbourState::Stale, 0);
        assert!(neighbours.used(ON, host(1), 1_000));
        assert!(!neighbours.used(ON, host(1), 1_100), "once");
        let expected: Vec<(u64, Due)> = [Due::AskIt(MAC); 3]
            .into_iter()
            .chain([Due::AskAll; 3])
            .chain([Due::Forget])
            .enumerate()
            .map(|(number, due)| (6_000 + 1_000 * number as u64, due))
            .collect();
        assert_eq!(watch(&mut neighbours, 1_000, 100_000), expected);
    }

    #[test]
    fn an_answer_ends_the_questions() {
        let mut neighbours = Neighbours::default();
        neighbours.learn(ON, host(1), MAC, NeighbourState::Stale, 0);
        neighbours.used(ON, host(1), 0);
        assert_eq!(watch(&mut neighbours, 0, 5_500), [(5_000, Due::AskIt(MAC))]);
        assert_eq!(learn(&mut neighbours, 1, 5_600), Learned::Refreshed);
        assert_eq!(watch(&mut neighbours, 5_600, 20_000), []);
        assert!(neighbours.doubt(ON, host(1), 20_000), "somebody else claims the address");
        assert_eq!(neighbours.get(ON, host(1)).map(|n| n.state), Some(NeighbourState::Stale));
    }

    #[test]
    fn a_full_table_refuses_new_ones_and_refreshes_old_ones() {
        let mut neighbours = Neighbours::default();
        neighbours.configure(false, NeighbourConfig { limit: 1, ..NeighbourConfig::default() });
        assert_eq!(learn(&mut neighbours, 1, 0), Learned::Changed);
        assert_eq!(learn(&mut neighbours, 2, 0), Learned::Full);
        assert_eq!(learn(&mut neighbours, 1, 7), Learned::Refreshed);
        let six = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
        let learned = neighbours.learn(ON, six, MAC, NeighbourState::Reachable, 7);
        assert_eq!(learned, Learned::Changed, "the other family has a limit of its own");
    }

    #[test]
    fn a_full_table_that_recycles_names_the_one_heard_longest_ago() {
        let mut neighbours = Neighbours::default();
        let config = NeighbourConfig { limit: 2, recycles: true, ..NeighbourConfig::default() };
        neighbours.configure(false, config);
        learn(&mut neighbours, 1, 0);
        learn(&mut neighbours, 2, 1);
        learn(&mut neighbours, 1, 2);
        assert_eq!(neighbours.unlucky_for(ON, host(1)), None, "it is there");
        assert_eq!(neighbours.unlucky_for(ON, host(3)), Some((ON, host(2))));
        neighbours.recycle(ON, host(2));
        assert_eq!(learn(&mut neighbours, 3, 3), Learned::Changed);
        assert_eq!((neighbours.dynamic(false), neighbours.recycled(false)), (2, 1));
    }

    #[test]
    fn other_timers_hold_for_those_that_are_there() {
        let mut neighbours = Neighbours::default();
        learn(&mut neighbours, 1, 0);
        let config = NeighbourConfig { reachable_ms: 1_000, age_ms: 9_000, ..NeighbourConfig::default() };
        neighbours.configure(false, config);
        let seen = watch(&mut neighbours, 0, 2_000_000);
        let [(stale_ms, Due::Stale), (9_000, Due::Forget)] = seen[..] else { panic!("{seen:?}") };
        assert!((500..=1_600).contains(&stale_ms), "{stale_ms}");
    }

    #[test]
    fn what_is_forgotten_is_due_no_more() {
        let mut neighbours = Neighbours::default();
        (0..100).for_each(|number| assert_eq!(learn(&mut neighbours, number, 0), Learned::Changed));
        (0..100).for_each(|number| assert!(neighbours.remove(ON, host(number)).is_some()));
        assert_eq!(watch(&mut neighbours, 0, 2_000_000), []);
        assert!(neighbours.is_empty() && neighbours.due.is_empty() && neighbours.dynamic(false) == 0);
    }
}

//! Neighbours that were asked for and have not answered yet (RFC 4861 §7.2.2). A worker asks first;
//! the control thread asks again, and gives up.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_forwarding::neighbour::NeighbourConfig;

/// Neighbours that were asked for and have not answered, at most. The one that has waited longest
/// makes room: who answers at all answers soon.
pub const RESOLUTIONS_MAX: usize = 4096;

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Asking {
    since_ns: u64,
    questions: u8,
    due_ns: u64,
}

/// Was one asked for?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// Already.
    Before,
    /// Now.
    Now {
        /// Who had to make room.
        given_up: Option<(InterfaceId, IpAddr)>,
    },
}

/// What is to be done for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Ask for it again.
    Ask,
    /// It is not there: tell who waits.
    GiveUp,
}

/// All that were asked for.
#[derive(Debug, Default)]
pub(crate) struct PendingResolutions {
    entries: BTreeMap<(InterfaceId, IpAddr), Asking>,
    due: BTreeSet<(u64, InterfaceId, IpAddr)>,
    /// That never answered, or had to make room.
    given_up: u64,
}

impl PendingResolutions {
    /// Was it asked for?
    pub fn contains(&self, on: InterfaceId, address: IpAddr) -> bool {
        self.entries.contains_key(&(on, address))
    }

    /// That never answered, or had to make room.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// All, and since when.
    pub fn iter(&self) -> impl Iterator<Item = (InterfaceId, IpAddr, u64)> {
        self.entries.iter().map(|((on, address), asking)| (*on, *address, asking.since_ns))
    }

    /// It was asked for just now. Who makes room for it is given up.
    pub fn add(
        &mut self,
        on: InterfaceId,
        address: IpAddr,
        now_ns: u64,
        config: &NeighbourConfig,
    ) -> Added {
        if self.contains(on, address) {
            return Added::Before;
        }
        let mut given_up = None;
        if self.entries.len() >= RESOLUTIONS_MAX
            && let Some((_, on, address)) = self.due.first().copied()
        {
            self.remove(on, address);
            self.given_up += 1;
            given_up = Some((on, address));
        }
        let due_ns = now_ns + config.retransmit_ms * 1_000_000;
        self.entries.insert((on, address), Asking { since_ns: now_ns, questions: 1, due_ns });
        self.due.insert((due_ns, on, address));
        Added::Now { given_up }
    }

    /// It answered, or nobody wants it any more.
    pub fn remove(&mut self, on: InterfaceId, address: IpAddr) -> bool {
        let Some(old) = self.entries.remove(&(on, address)) else { return false };
        self.due.remove(&(old.due_ns, on, address));
        true
    }

    /// The interface is gone.
    pub fn forget_interface(&mut self, id: InterfaceId) {
        let first = (id, IpAddr::from([0; 4]));
        let here = self.entries.range(first..).map(|(key, _)| *key).take_while(|(on, _)| *on == id);
        let gone: Vec<_> = here.collect();
        for (on, address) in gone {
            self.remove(on, address);
        }
    }

    /// The next one that is due. `config` tells the timers of a family.
    pub fn next_due<'c>(
        &mut self,
        now_ns: u64,
        config: impl Fn(bool) -> &'c NeighbourConfig,
    ) -> Option<(InterfaceId, IpAddr, Next)> {
        let (at_ns, on, address) = *self.due.first().filter(|(at_ns, ..)| *at_ns <= now_ns)?;
        self.due.remove(&(at_ns, on, address));
        let config = config(address.is_ipv6());
        let asking = self.entries.get_mut(&(on, address))?;
        if asking.questions >= config.probes {
            self.entries.remove(&(on, address));
            self.given_up += 1;
            return Some((on, address, Next::GiveUp));
        }
        asking.questions += 1;
        asking.due_ns = now_ns + config.retransmit_ms * 1_000_000;
        self.due.insert((asking.due_ns, on, address));
        Some((on, address, Next::Ask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: InterfaceId = InterfaceId(1);
    const SECOND_NS: u64 = 1_000_000_000;

    fn host(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn who_does_not_answer_is_asked_for_three_times() {
        let (mut asked, config) = (PendingResolutions::default(), NeighbourConfig::default());
        assert_eq!(asked.add(ON, host(1), 0, &config), Added::Now { given_up: None });
        assert_eq!(asked.add(ON, host(1), 5, &config), Added::Before);
        let mut seen = Vec::new();
        for now_ns in (0..10 * SECOND_NS).step_by(100_000_000) {
            while let Some((_, _, next)) = asked.next_due(now_ns, |_| &config) {
                seen.push((now_ns / SECOND_NS, next));
            }
        }
        assert_eq!(seen, [(1, Next::Ask), (2, Next::Ask), (3, Next::GiveUp)]);
        assert!(!asked.contains(ON, host(1)) && asked.due.is_empty());
    }

    #[test]
    fn the_one_that_has_waited_longest_makes_room() {
        let (mut asked, config) = (PendingResolutions::default(), NeighbourConfig::default());
        for number in 0..RESOLUTIONS_MAX as u32 + 10 {
            let given_up =
                number.checked_sub(RESOLUTIONS_MAX as u32).map(|oldest| (ON, host(oldest)));
            assert_eq!(
                asked.add(ON, host(number), u64::from(number), &config),
                Added::Now { given_up }
            );
        }
        assert_eq!((asked.entries.len(), asked.due.len()), (RESOLUTIONS_MAX, RESOLUTIONS_MAX));
        assert_eq!(asked.given_up(), 10);
        assert!(!asked.contains(ON, host(9)) && asked.contains(ON, host(10)));
    }

    #[test]
    fn an_interface_that_goes_is_asked_no_more() {
        let (mut asked, config) = (PendingResolutions::default(), NeighbourConfig::default());
        asked.add(ON, host(1), 0, &config);
        asked.add(InterfaceId(2), host(1), 0, &config);
        asked.forget_interface(ON);
        assert_eq!((asked.entries.len(), asked.due.len()), (1, 1));
        assert!(asked.remove(InterfaceId(2), host(1)) && asked.due.is_empty());
    }
}

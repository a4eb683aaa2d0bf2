//! By which tunnel frames come to a SID that several remotes send to: the source of the outer
//! header says so.

use std::collections::BTreeSet;
use std::sync::Arc;

use quiver_control::{Refusal, Registry};
use quiver_core::InterfaceId;
use quiver_core::memory::epoch::{Pass, PublishedSlots};

/// SIDs at most that several remotes send to.
pub(super) const SHARED_SIDS_MAX: usize = 4096;
/// Remotes of one SID at most, besides all others.
pub(super) const SOURCES_MAX: usize = 256;

/// The remotes of a SID as workers read them.
#[derive(Debug)]
struct View {
    /// Whose they are: a place is used again while workers may still have read the line of another
    /// SID.
    number: u32,
    /// In order.
    sources: Box<[(u128, InterfaceId)]>,
}

/// Those of all SIDs.
pub(crate) struct Sources(PublishedSlots<View>);

fn place(number: u32) -> usize {
    number as usize % SHARED_SIDS_MAX
}

impl Sources {
    /// The tunnel of a remote, if it is one of the SID with that number.
    #[inline]
    pub fn find(&self, number: u32, source: u128, pass: Pass<'_>) -> Option<InterfaceId> {
        let view = self.0.read(place(number), pass).filter(|view| view.number == number)?;
        let place = view.sources.binary_search_by_key(&source, |(known, _)| *known).ok()?;
        view.sources.get(place).map(|(_, tunnel)| *tunnel)
    }
}

/// On the control thread.
pub(super) struct SharedSids {
    sources: Arc<Sources>,
    places: BTreeSet<usize>,
    last: u32,
}

impl SharedSids {
    /// Let workers know the remotes of a SID; returns the number of that SID, which is not 0.
    pub fn add(&mut self, mut sources: Vec<(u128, InterfaceId)>) -> Result<u32, Refusal> {
        let numbers = (1..=SHARED_SIDS_MAX as u32).map(|more| self.last.wrapping_add(more));
        let number = numbers
            .into_iter()
            .find(|number| *number != 0 && !self.places.contains(&place(*number)));
        let number = number.ok_or_else(|| {
            let what =
                format!("there are {SHARED_SIDS_MAX} SIDs that several remotes send to already");
            Refusal::new(what).remedy("delete some, or give each remote a SID of its own")
        })?;
        sources.sort_unstable();
        self.last = number;
        self.places.insert(place(number));
        self.sources.0.publish(place(number), Some(View { number, sources: sources.into() }));
        Ok(number)
    }

    /// The SID is gone.
    pub fn remove(&mut self, number: u32) {
        self.places.remove(&place(number));
        self.sources.0.publish(place(number), None);
    }
}

/// Keep them; returns what workers read.
pub(super) fn register(registry: &mut Registry) -> Arc<Sources> {
    let sources = Arc::new(Sources(PublishedSlots::new(registry.graph.epochs(), SHARED_SIDS_MAX)));
    let kept = SharedSids { sources: sources.clone(), places: BTreeSet::new(), last: 0 };
    registry.on_start(move |engine| engine.insert(kept));
    sources
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_core::memory::epoch::Epochs;

    #[test]
    fn a_number_is_never_taken_for_another_and_places_run_out() {
        let epochs = Epochs::new(1);
        let mut reader = epochs.reader(0);
        reader.wake();
        let sources = Arc::new(Sources(PublishedSlots::new(&epochs, SHARED_SIDS_MAX)));
        let mut all =
            SharedSids { sources: sources.clone(), places: BTreeSet::new(), last: u32::MAX - 5 };
        let tunnel = |number: usize| InterfaceId(number as u32);
        let numbers: Vec<u32> = (0..SHARED_SIDS_MAX)
            .map(|place| all.add(vec![(9, tunnel(place)), (3, tunnel(7))]).unwrap())
            .collect();
        assert!(all.add(Vec::new()).is_err() && !numbers.contains(&0));
        let pass = reader.pass();
        for (at, number) in numbers.iter().enumerate() {
            let found = [9, 3, 4].map(|source| sources.find(*number, source, pass));
            assert_eq!(found, [Some(tunnel(at)), Some(tunnel(7)), None]);
        }
        all.remove(numbers[5]);
        let again = all.add(vec![(9, tunnel(1))]).unwrap();
        assert!(again != numbers[5] && sources.find(numbers[5], 9, pass).is_none());
    }
}

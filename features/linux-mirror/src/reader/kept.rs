//! What is known of one kind of objects, and which of it somebody has not been told yet: however
//! often an object changes meanwhile, it is told once, as it is then.

use std::collections::hash_map::Entry as Place;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

/// Objects by key.
pub(crate) struct Kept<K, V> {
    known: HashMap<K, Entry<V>>,
    /// What is to be told, in the order in which it changed first.
    queue: VecDeque<K>,
    /// Those of the queue that are gone.
    gone: HashSet<K>,
    generation: u32,
    /// Changes that went into one that was not told yet.
    pub coalesced: u64,
}

/// What an object was when it was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before<V> {
    /// The same: nothing has changed.
    Same,
    /// Something else.
    Other(V),
    /// It was not there.
    Nothing,
}

struct Entry<V> {
    value: V,
    /// The dump that it was last seen in.
    generation: u32,
    /// It is in the queue.
    is_queued: bool,
}

impl<K: Copy + Eq + Hash, V: PartialEq> Kept<K, V> {
    pub fn new() -> Kept<K, V> {
        Kept {
            known: HashMap::new(),
            queue: VecDeque::new(),
            gone: HashSet::new(),
            generation: 0,
            coalesced: 0,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// How many changes are to be told.
    pub fn unreported(&self) -> usize {
        self.queue.len()
    }

    /// An object is this now. What it was already is no change.
    pub fn put(&mut self, key: K, value: V) {
        self.replace(key, value);
    }

    /// [`put`](Self::put); what was it before?
    pub fn replace(&mut self, key: K, value: V) -> Before<V> {
        let generation = self.generation;
        let mut place = match self.known.entry(key) {
            Place::Occupied(place) => place,
            Place::Vacant(place) => {
                let was_queued = !self.gone.is_empty() && self.gone.remove(&key);
                place.insert(Entry { value, generation, is_queued: true });
                match was_queued {
                    true => self.coalesced += 1,
                    false => self.queue.push_back(key),
                }
                return Before::Nothing;
            }
        };
        let entry = place.get_mut();
        entry.generation = generation;
        if entry.value == value {
            return Before::Same;
        }
        let before = std::mem::replace(&mut entry.value, value);
        match std::mem::replace(&mut entry.is_queued, true) {
            true => self.coalesced += 1,
            false => self.queue.push_back(key),
        }
        Before::Other(before)
    }

    /// A known object is this now, because of another one: it still has to be in the dump.
    pub fn amend(&mut self, key: K, value: V) {
        if let Some(entry) = self.known.get_mut(&key) {
            entry.value = value;
            match std::mem::replace(&mut entry.is_queued, true) {
                true => self.coalesced += 1,
                false => self.queue.push_back(key),
            }
        }
    }

    /// An object is there no more. Returns what it was.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let entry = self.known.remove(&key)?;
        self.gone.insert(key);
        match entry.is_queued {
            true => self.coalesced += 1,
            false => self.queue.push_back(key),
        }
        Some(entry.value)
    }

    /// What is known of an object.
    pub fn get(&self, key: K) -> Option<&V> {
        self.known.get(&key).map(|entry| &entry.value)
    }

    /// What is known of an object that was put since the last dump began.
    pub fn get_fresh(&self, key: K) -> Option<&V> {
        let entry = self.known.get(&key).filter(|entry| entry.generation == self.generation);
        entry.map(|entry| &entry.value)
    }

    /// A dump begins: what is not put from now on is gone when [`sweep`](Self::sweep) is called.
    pub fn begin_dump(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// The dump is whole.
    pub fn sweep(&mut self) {
        let generation = self.generation;
        let gone = self.known.iter().filter(|(_, entry)| entry.generation != generation);
        let gone: Vec<K> = gone.map(|(key, _)| *key).collect();
        for key in gone {
            self.remove(key);
        }
    }

    /// Tell one again, if it is there.
    pub fn report_one_again(&mut self, key: K) {
        if let Some(entry) = self.known.get_mut(&key)
            && !std::mem::replace(&mut entry.is_queued, true)
        {
            self.queue.push_back(key);
        }
    }

    /// Tell again those of which `of` is true.
    pub fn report_again(&mut self, of: impl Fn(&K, &V) -> bool) {
        let again = self.known.iter_mut().filter(|(key, entry)| of(key, &entry.value));
        for (key, entry) in again {
            if !std::mem::replace(&mut entry.is_queued, true) {
                self.queue.push_back(*key);
            }
        }
    }

    /// The keys of those of which `of` is true.
    pub fn keys_of(&self, of: impl Fn(&K, &V) -> bool) -> Vec<K> {
        let those = self.known.iter().filter(|(key, entry)| of(key, &entry.value));
        those.map(|(key, _)| *key).collect()
    }

    /// Take away those of which `of` is true.
    pub fn remove_those(&mut self, of: impl Fn(&K, &V) -> bool) {
        for key in self.keys_of(of) {
            self.remove(key);
        }
    }
}

impl<K: Copy + Eq + Hash, V: PartialEq + Clone> Kept<K, V> {
    /// Up to `most` changes that were not told yet; no value for what is gone.
    pub fn take_unreported(&mut self, most: usize) -> Vec<(K, Option<V>)> {
        let count = self.queue.len().min(most);
        let keys: Vec<K> = self.queue.drain(..count).collect();
        let report = |key: K| match self.known.get_mut(&key) {
            Some(entry) => {
                entry.is_queued = false;
                (key, Some(entry.value.clone()))
            }
            None => {
                self.gone.remove(&key);
                (key, None)
            }
        };
        keys.into_iter().map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once_as_it_is_then() {
        let mut kept = Kept::new();
        kept.put(1, 'a');
        kept.put(1, 'b');
        kept.put(2, 'a');
        kept.remove(2);
        assert_eq!(kept.take_unreported(9), [(1, Some('b')), (2, None)]);
        assert_eq!(kept.coalesced, 2);
        assert_eq!(kept.replace(1, 'b'), Before::Same);
        assert_eq!(kept.unreported(), 0, "the same again is no change");
    }

    #[test]
    fn what_goes_and_comes_again_before_it_is_told_is_told_once() {
        let mut kept = Kept::new();
        kept.put(1, 'a');
        assert_eq!(kept.take_unreported(9), [(1, Some('a'))]);
        kept.remove(1);
        kept.put(1, 'a');
        kept.report_one_again(1);
        assert_eq!(kept.unreported(), 1);
        assert_eq!(kept.take_unreported(9), [(1, Some('a'))]);
        kept.remove(1);
        assert_eq!(kept.take_unreported(9), [(1, None)]);
        kept.put(1, 'b');
        assert_eq!((kept.take_unreported(9), kept.unreported()), (vec![(1, Some('b'))], 0));
    }

    #[test]
    fn what_changes_because_of_another_one_still_has_to_be_in_the_dump() {
        let mut kept = Kept::new();
        kept.put(1, 'a');
        kept.begin_dump();
        kept.amend(1, 'b');
        kept.amend(2, 'b');
        assert_eq!(kept.get(1), Some(&'b'));
        kept.sweep();
        assert_eq!(kept.take_unreported(9), [(1, None)]);
    }

    #[test]
    fn a_dump_takes_away_what_is_not_in_it() {
        let mut kept = Kept::new();
        (0..4).for_each(|key| kept.put(key, key));
        kept.take_unreported(9);
        kept.begin_dump();
        kept.put(0, 0);
        kept.put(1, 7);
        kept.sweep();
        let mut reported = kept.take_unreported(9);
        reported.sort();
        assert_eq!(reported, [(1, Some(7)), (2, None), (3, None)]);
    }
}

//! An ordered map from prefixes: by address, then shorter before longer.

use std::cell::Cell;
use std::fmt;

use crate::prefix::{Address, Prefix};

/// Prefixes of a chunk at most. A change moves half of that.
const CHUNK_MAX: usize = 128;
/// Chunks of a group at most.
const GROUP_MAX: usize = 256;

/// Consecutive prefixes.
struct Chunk<A: Address, V> {
    keys: Vec<A::Key>,
    values: Vec<V>,
}

/// Consecutive chunks. No key of chunk `n` but the first lies before `firsts[n]`.
struct Group<A: Address, V> {
    firsts: Vec<A::Key>,
    chunks: Vec<Chunk<A, V>>,
}

/// A map from prefixes. Two flat levels lead to chunks of neighbours: a change costs one search,
/// and what lies around it (what it covers, what covers it) is mostly in the same chunk. About 20
/// (IPv4) and 45 (IPv6) bytes a prefix with values of 8.
pub struct PrefixMap<A: Address, V> {
    firsts: Vec<A::Key>,
    groups: Vec<Group<A, V>>,
    by_len: Box<[u32]>,
    count: usize,
    /// Where a prefix was last sought: the next one is often the same, or soon behind it.
    near: Cell<Place>,
}

/// Where in the map something is, or would be. It holds until the next change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    group: usize,
    chunk: usize,
    index: usize,
}

impl<A: Address, V> Default for PrefixMap<A, V> {
    fn default() -> Self {
        PrefixMap {
            firsts: Vec::new(),
            groups: Vec::new(),
            by_len: vec![0; A::BITS as usize + 1].into(),
            count: 0,
            near: Cell::default(),
        }
    }
}

impl<A: Address, V> fmt::Debug for PrefixMap<A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} prefixes in {} groups", self.count, self.groups.len())
    }
}

/// Which of some stretches that begin at `firsts` is the one for `key`.
#[inline]
fn stretch<K: Ord + Copy>(firsts: &[K], key: K) -> usize {
    firsts.partition_point(|first| *first <= key).saturating_sub(1)
}

/// How many of the ascending `keys` come before `key`, sought from `near` on in steps that double.
#[inline]
fn rank_near<K: Ord + Copy>(keys: &[K], near: usize, key: K) -> usize {
    if keys.get(near).is_none_or(|here| key < *here) {
        return keys[..near.min(keys.len())].partition_point(|other| *other < key);
    }
    let (mut from, mut step) = (near, 1);
    while keys.get(from + step).is_some_and(|other| *other < key) {
        from += step;
        step *= 2;
    }
    let to = (from + step).min(keys.len());
    from + keys[from..to].partition_point(|other| *other < key)
}

impl<A: Address, V> PrefixMap<A, V> {
    /// How many prefixes.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that it takes, with what is kept for more.
    pub fn allocated_bytes(&self) -> usize {
        let key = size_of::<A::Key>();
        let chunk = |chunk: &Chunk<A, V>| {
            chunk.keys.capacity() * key + chunk.values.capacity() * size_of::<V>()
        };
        let group = |group: &Group<A, V>| {
            let lists =
                group.firsts.capacity() * key + group.chunks.capacity() * size_of::<Chunk<A, V>>();
            lists + group.chunks.iter().map(chunk).sum::<usize>()
        };
        self.groups.iter().map(group).sum()
    }

    /// How many prefixes of each length, 0 first.
    pub fn count_by_len(&self) -> &[u32] {
        &self.by_len
    }

    /// The value of exactly this prefix.
    pub fn get(&self, prefix: Prefix<A>) -> Option<&V> {
        let place = self.find(prefix)?;
        Some(&self.chunk(place)?.values[place.index])
    }

    /// The value of exactly this prefix.
    pub fn get_mut(&mut self, prefix: Prefix<A>) -> Option<&mut V> {
        let place = self.find(prefix)?;
        self.groups[place.group].chunks[place.chunk].values.get_mut(place.index)
    }

    /// Where this prefix is.
    pub fn find(&self, prefix: Prefix<A>) -> Option<Place> {
        let place = self.seek_near(prefix.key());
        (self.key_at(place) == Some(prefix.key())).then_some(place)
    }

    /// Set the value of `prefix`; the old one comes back.
    pub fn insert(&mut self, prefix: Prefix<A>, value: V) -> Option<V> {
        let place = self.seek_near(prefix.key());
        if self.key_at(place) == Some(prefix.key()) {
            let slot = &mut self.groups[place.group].chunks[place.chunk].values[place.index];
            return Some(std::mem::replace(slot, value));
        }
        self.insert_at(place, prefix, value);
        None
    }

    /// Where `prefix` is, or else where [`insert_at`](Self::insert_at) is to put it.
    ///
    /// # Errors
    /// The prefix is not there: the place to insert it at.
    pub fn find_or_place(&self, prefix: Prefix<A>) -> Result<Place, Place> {
        let place = self.seek_near(prefix.key());
        if self.key_at(place) == Some(prefix.key()) { Ok(place) } else { Err(place) }
    }

    /// The value at `place`.
    pub fn value_at(&mut self, place: Place) -> &mut V {
        &mut self.groups[place.group].chunks[place.chunk].values[place.index]
    }

    /// Put in a prefix that is not there, where [`find_or_place`](Self::find_or_place) said;
    /// returns where it is.
    pub fn insert_at(&mut self, place: Place, prefix: Prefix<A>, value: V) -> Place {
        let key = prefix.key();
        self.by_len[usize::from(prefix.len())] += 1;
        self.count += 1;
        if self.groups.is_empty() {
            self.firsts.push(key);
            let chunk = Chunk { keys: vec![key], values: vec![value] };
            self.groups.push(Group { firsts: vec![key], chunks: vec![chunk] });
            return Place { group: 0, chunk: 0, index: 0 };
        }
        let mut place = place;
        if self.groups[place.group].chunks[place.chunk].keys.len() == CHUNK_MAX {
            place = self.split(place);
        }
        let chunk = &mut self.groups[place.group].chunks[place.chunk];
        chunk.keys.insert(place.index, key);
        chunk.values.insert(place.index, value);
        place
    }

    /// Make room in the chunk at `place`; the place moves along. Where something is put in late,
    /// more of the same is likely to follow in ascending order: then what is left behind stays
    /// full.
    fn split(&mut self, mut place: Place) -> Place {
        if self.groups[place.group].chunks.len() == GROUP_MAX {
            let at = if place.chunk >= GROUP_MAX / 8 * 7 { place.chunk } else { GROUP_MAX / 2 };
            let group = &mut self.groups[place.group];
            let right =
                Group { firsts: group.firsts.split_off(at), chunks: group.chunks.split_off(at) };
            self.firsts.insert(place.group + 1, right.firsts[0]);
            self.groups.insert(place.group + 1, right);
            if place.chunk >= at {
                place = Place { group: place.group + 1, chunk: place.chunk - at, ..place };
            }
        }
        let group = &mut self.groups[place.group];
        let at = match place.index {
            CHUNK_MAX => CHUNK_MAX - 1,
            late if late >= CHUNK_MAX / 8 * 7 => late,
            _ => CHUNK_MAX / 2,
        };
        let chunk = &mut group.chunks[place.chunk];
        let mut right =
            Chunk { keys: Vec::with_capacity(CHUNK_MAX), values: Vec::with_capacity(CHUNK_MAX) };
        right.keys.extend(chunk.keys.drain(at..));
        right.values.extend(chunk.values.drain(at..));
        group.firsts.insert(place.chunk + 1, right.keys[0]);
        group.chunks.insert(place.chunk + 1, right);
        if place.index > at {
            place = Place { chunk: place.chunk + 1, index: place.index - at, ..place };
        }
        place
    }

    /// Remove `prefix`.
    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<V> {
        let place = self.find(prefix)?;
        Some(self.remove_at(place).0)
    }

    /// Remove what is at `place`; its value comes back, and where what followed it is now.
    pub fn remove_at(&mut self, place: Place) -> (V, Place) {
        let group = &mut self.groups[place.group];
        let chunk = &mut group.chunks[place.chunk];
        let (_, len) = A::unkey(chunk.keys.remove(place.index));
        let value = chunk.values.remove(place.index);
        self.by_len[usize::from(len)] -= 1;
        self.count -= 1;
        if chunk.keys.len() >= CHUNK_MAX / 4 {
            return (value, place);
        }
        (value, self.mend(place))
    }

    /// A chunk has become small: join it with a neighbour, or drop it when it is empty.
    fn mend(&mut self, mut place: Place) -> Place {
        let group = &mut self.groups[place.group];
        let len = |chunks: &[Chunk<A, V>], n: usize| {
            chunks.get(n).map_or(CHUNK_MAX, |chunk| chunk.keys.len())
        };
        let here = len(&group.chunks, place.chunk);
        // With the next one, or else with the one before.
        let right = if here + len(&group.chunks, place.chunk + 1) <= CHUNK_MAX / 2 {
            place.chunk + 1
        } else if place.chunk > 0 && here + len(&group.chunks, place.chunk - 1) <= CHUNK_MAX / 2 {
            place = Place {
                chunk: place.chunk - 1,
                index: place.index + len(&group.chunks, place.chunk - 1),
                ..place
            };
            place.chunk + 1
        } else if here == 0 {
            group.chunks.remove(place.chunk);
            group.firsts.remove(place.chunk);
            return self.mend_group(Place { index: 0, ..place });
        } else {
            return place;
        };
        let (mut right, _) = (group.chunks.remove(right), group.firsts.remove(right));
        let left = &mut group.chunks[place.chunk];
        left.keys.append(&mut right.keys);
        left.values.append(&mut right.values);
        self.mend_group(place)
    }

    /// A group has lost a chunk: join it with the next when both are small, or drop it when it is
    /// empty.
    fn mend_group(&mut self, place: Place) -> Place {
        let here = self.groups[place.group].chunks.len();
        if here == 0 {
            self.groups.remove(place.group);
            self.firsts.remove(place.group);
            return self.normal(Place { chunk: 0, index: 0, ..place });
        }
        let next = self.groups.get(place.group + 1).map_or(GROUP_MAX, |next| next.chunks.len());
        if here + next <= GROUP_MAX / 2 {
            let (mut next, first) =
                (self.groups.remove(place.group + 1), self.firsts.remove(place.group + 1));
            // The separator between groups is the one between their chunks.
            next.firsts[0] = first;
            let group = &mut self.groups[place.group];
            group.firsts.append(&mut next.firsts);
            group.chunks.append(&mut next.chunks);
        }
        self.normal(place)
    }

    /// A place at the end of a chunk or group is where the next one begins.
    fn normal(&self, mut place: Place) -> Place {
        while let Some(group) = self.groups.get(place.group) {
            match group.chunks.get(place.chunk) {
                Some(chunk) if place.index < chunk.keys.len() => return place,
                Some(_) => place = Place { chunk: place.chunk + 1, index: 0, ..place },
                None => place = Place { group: place.group + 1, chunk: 0, index: 0 },
            }
        }
        place
    }

    fn chunk(&self, place: Place) -> Option<&Chunk<A, V>> {
        self.groups.get(place.group)?.chunks.get(place.chunk)
    }

    fn key_at(&self, place: Place) -> Option<A::Key> {
        self.chunk(place)?.keys.get(place.index).copied()
    }

    /// Where `key` is, or would be put: perhaps at the end of a chunk.
    fn seek(&self, key: A::Key) -> Place {
        let group = stretch(&self.firsts, key);
        let Some(found) = self.groups.get(group) else {
            return Place { group: 0, chunk: 0, index: 0 };
        };
        let chunk = stretch(&found.firsts, key);
        let index = found.chunks[chunk].keys.partition_point(|other| *other < key);
        Place { group, chunk, index }
    }

    /// As [`seek`](Self::seek), for a key that is probably close to the last one.
    fn seek_near(&self, key: A::Key) -> Place {
        let near = self.near.get();
        let place = match self.groups.get(near.group) {
            Some(group) if self.holds(group, near, key) => {
                Place { index: rank_near(&group.chunks[near.chunk].keys, near.index, key), ..near }
            }
            _ => self.seek(key),
        };
        self.near.set(place);
        place
    }

    /// Is the chunk of `place`, which is in `group`, the one for `key`?
    fn holds(&self, group: &Group<A, V>, place: Place, key: A::Key) -> bool {
        let begins = group.chunks.get(place.chunk).and_then(|chunk| chunk.keys.first());
        let next = group.firsts.get(place.chunk + 1).or_else(|| self.firsts.get(place.group + 1));
        begins.is_some_and(|first| *first <= key) && next.is_none_or(|next| key < *next)
    }

    /// As [`seek`](Self::seek), for a key that is probably in the chunk of `place`, before it.
    fn seek_before(&self, place: Place, key: A::Key) -> Place {
        match self.chunk(place) {
            Some(chunk) if place.index > 0 && chunk.keys[0] <= key => {
                let index = chunk.keys[..place.index.min(chunk.keys.len())]
                    .partition_point(|other| *other < key);
                Place { index, ..place }
            }
            _ => self.seek(key),
        }
    }

    /// The place before `place`, if any.
    fn before(&self, place: Place) -> Option<Place> {
        if place.index > 0 && self.chunk(place).is_some() {
            return Some(Place { index: place.index - 1, ..place });
        }
        let (mut group, mut chunk) = (place.group, place.chunk);
        loop {
            while chunk == 0 {
                group = group.checked_sub(1)?;
                chunk = self.groups.get(group).map_or(0, |group| group.chunks.len());
            }
            chunk -= 1;
            let len = self.groups.get(group)?.chunks.get(chunk).map_or(0, |chunk| chunk.keys.len());
            if len > 0 {
                return Some(Place { group, chunk, index: len - 1 });
            }
        }
    }

    fn item(&self, place: Place) -> Option<(Prefix<A>, &V)> {
        let chunk = self.chunk(place)?;
        Some((Prefix::from_key(*chunk.keys.get(place.index)?), &chunk.values[place.index]))
    }

    /// All, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Prefix<A>, &V)> {
        let chunks = self.groups.iter().flat_map(|group| &group.chunks);
        chunks.flat_map(|chunk| {
            chunk.keys.iter().map(|key| Prefix::from_key(*key)).zip(&chunk.values)
        })
    }

    /// All from `place` on, in order.
    pub fn iter_from(&self, place: Place) -> impl Iterator<Item = (Prefix<A>, &V)> {
        let mut place = place;
        std::iter::from_fn(move || {
            if self.chunk(place).is_none_or(|chunk| place.index >= chunk.keys.len()) {
                place = self.normal(place);
            }
            let item = self.item(place)?;
            place.index += 1;
            Some(item)
        })
    }

    /// All after `prefix`, in order: to continue a listing that was interrupted.
    pub fn iter_after(&self, prefix: Prefix<A>) -> impl Iterator<Item = (Prefix<A>, &V)> {
        let mut place = self.seek(prefix.key());
        place.index += usize::from(self.key_at(place) == Some(prefix.key()));
        self.iter_from(place)
    }

    /// Those inside `prefix`, without itself, in order.
    pub fn inside(&self, prefix: Prefix<A>) -> impl Iterator<Item = (Prefix<A>, &V)> {
        self.iter_after(prefix).take_while(move |(other, _)| other.first() <= prefix.last())
    }

    /// As [`inside`](Self::inside); the first that follows `prefix` is at `place`.
    pub fn inside_from(
        &self,
        place: Place,
        prefix: Prefix<A>,
    ) -> impl Iterator<Item = (Prefix<A>, &V)> {
        self.iter_from(place).take_while(move |(other, _)| other.first() <= prefix.last())
    }

    /// The place after `place`.
    pub fn after(&self, place: Place) -> Place {
        Place { index: place.index + 1, ..place }
    }

    /// The longest prefix of at most `len_max` bits that contains `address`.
    pub fn cover(&self, address: A, len_max: u8) -> Option<(Prefix<A>, &V)> {
        let sought = Prefix::new(address, len_max);
        let mut place = self.seek(sought.key());
        place.index += usize::from(self.key_at(place) == Some(sought.key()));
        self.cover_before(place, sought)
    }

    /// As [`cover`](Self::cover) of `sought`'s address and length, or shorter; nothing from `place`
    /// on covers it.
    ///
    /// The predecessor in order either is it, or shares at least as many bits with the address as
    /// any other prefix that could be: so every step, or every second, shortens, and there are few.
    pub fn cover_before(&self, place: Place, sought: Prefix<A>) -> Option<(Prefix<A>, &V)> {
        let (mut sought, mut place) = (sought, place);
        loop {
            place = self.before(place)?;
            let (found, _) = self.item(place)?;
            if found.len() <= sought.len() && found.contains(sought.first()) {
                return self.item(place);
            }
            // Lengths with no prefix at all need no look.
            let shared = shared_bits(found.first(), sought.first());
            let mut len = shared.min(sought.len());
            while len > 0 && self.by_len[usize::from(len)] == 0 {
                len -= 1;
            }
            sought = Prefix::new(sought.first(), len);
            place = self.seek_before(place, sought.key());
            place.index += usize::from(self.key_at(place) == Some(sought.key()));
        }
    }
}

fn shared_bits<A: Address>(a: A, b: A) -> u8 {
    let (high, low) = (a ^ b).halves();
    let leading = if high == 0 { 64 + low.leading_zeros() } else { high.leading_zeros() };
    (leading - (128 - A::BITS)) as u8
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::prefix::Ip4Prefix;
    use crate::synthetic::Random;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cover_is_the_longest_match(
            prefixes in prop::collection::vec((any::<u32>(), 0u8..=32), 0..60),
            base in any::<u32>(), address in any::<u32>(), len_max in 0u8..=32,
        ) {
            // Few distinct high bits, so that prefixes nest.
            let squeeze = |address: u32| address & 0x0103_070f | base & 0xf000_0000;
            let mut map = PrefixMap::<u32, u32>::default();
            for (index, (address, len)) in prefixes.iter().enumerate() {
                map.insert(Prefix::new(squeeze(*address), *len), index as u32);
            }
            let address = squeeze(address);
            let naive = map
                .iter()
                .filter(|(p, _)| p.len() <= len_max && p.contains(address))
                .max_by_key(|(p, _)| p.len());
            prop_assert_eq!(map.cover(address, len_max), naive);
        }
    }

    /// Both maps hold the same, seen from everywhere.
    fn compare(map: &PrefixMap<u32, u32>, model: &BTreeMap<Ip4Prefix, u32>, random: &mut Random) {
        assert_eq!(map.len(), model.len());
        assert!(
            map.iter()
                .map(|(prefix, value)| (prefix, *value))
                .eq(model.iter().map(|(p, v)| (*p, *v)))
        );
        assert!(map.iter().rev().map(|(prefix, _)| prefix).eq(model.keys().rev().copied()));
        for _ in 0..50 {
            let probe = Prefix::new(random.bits() as u32 & 0x03ff_ffff, random.below(33) as u8);
            assert_eq!(map.get(probe), model.get(&probe));
            let after = model.range((std::ops::Bound::Excluded(probe), std::ops::Bound::Unbounded));
            assert!(
                map.iter_after(probe)
                    .map(|(p, _)| p)
                    .take(300)
                    .eq(after.map(|(p, _)| *p).take(300))
            );
            let inside = model.keys().filter(|other| probe.covers(**other) && **other != probe);
            assert!(map.inside(probe).map(|(p, _)| p).eq(inside.copied()));
            let cover =
                model.keys().filter(|p| p.contains(probe.first()) && p.len() <= probe.len());
            let found = map.cover(probe.first(), probe.len()).map(|(p, _)| p);
            assert_eq!(found, cover.max_by_key(|p| p.len()).copied());
        }
    }

    #[test]
    fn a_map_that_grows_and_shrinks_equals_the_standard_one() {
        let (mut random, mut map, mut model) =
            (Random::new(8), PrefixMap::default(), BTreeMap::new());
        for (round, share) in [(0u32, 90), (1, 40), (2, 70), (3, 10), (4, 60), (5, 0)] {
            for step in 0..12_000u32 {
                let address = random.bits() as u32 & 0x03ff_ffff;
                let prefix = Prefix::new(address, 8 + random.below(25) as u8);
                if random.below(100) < share {
                    let address = if round == 2 { step << 8 } else { address };
                    let prefix = if round == 2 { Prefix::new(address, 24) } else { prefix };
                    assert_eq!(map.insert(prefix, step), model.insert(prefix, step));
                } else {
                    let near =
                        model.range(prefix..).next().map(|(prefix, _)| *prefix).unwrap_or(prefix);
                    assert_eq!(map.remove(near), model.remove(&near));
                }
                if step % 3_000 == 0 {
                    compare(&map, &model, &mut random);
                }
            }
            compare(&map, &model, &mut random);
        }
        for prefix in model.keys().copied().collect::<Vec<_>>() {
            assert!(map.remove(prefix).is_some());
        }
        assert!(map.is_empty() && map.groups.is_empty() && map.iter().next().is_none());
    }
}

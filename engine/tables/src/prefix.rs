//! Addresses as numbers, prefixes of them, and an ordered map from prefixes.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::{Add, BitAnd, BitOr, BitXor, Bound, Not, Shl, Shr, Sub};

/// An IP address as a number in host order.
pub trait Address:
    Copy
    + Ord
    + fmt::Debug
    + std::hash::Hash
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
{
    /// Bits of an address.
    const BITS: u32;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// All ones.
    const MAX: Self;
    /// A prefix as one ordered word or tuple: by address, then shorter before longer.
    type Key: Copy + Ord + Send + Sync;

    /// The low bits.
    fn low(self) -> usize;
    /// The 32 highest bits.
    fn top(self) -> u32;
    /// High and low half of 128 bits.
    fn halves(self) -> (u64, u64);
    /// The inverse of [`halves`](Self::halves).
    fn from_halves(high: u64, low: u64) -> Self;
    /// Pack a prefix.
    fn key(self, len: u8) -> Self::Key;
    /// Unpack a prefix.
    fn unkey(key: Self::Key) -> (Self, u8);
    /// As the standard library's address.
    fn ip(self) -> IpAddr;
    /// From the standard library's address, if it is of this family.
    fn from_ip(address: IpAddr) -> Option<Self>;
}

impl Address for u32 {
    const BITS: u32 = 32;
    const ZERO: u32 = 0;
    const ONE: u32 = 1;
    const MAX: u32 = u32::MAX;
    type Key = u64;

    #[inline(always)]
    fn low(self) -> usize {
        self as usize
    }
    #[inline(always)]
    fn top(self) -> u32 {
        self
    }
    #[inline(always)]
    fn halves(self) -> (u64, u64) {
        (0, u64::from(self))
    }
    #[inline(always)]
    fn from_halves(_: u64, low: u64) -> u32 {
        low as u32
    }
    #[inline]
    fn key(self, len: u8) -> u64 {
        u64::from(self) << 8 | u64::from(len)
    }
    #[inline]
    fn unkey(key: u64) -> (u32, u8) {
        ((key >> 8) as u32, key as u8)
    }
    fn ip(self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(self))
    }
    fn from_ip(address: IpAddr) -> Option<u32> {
        match address {
            IpAddr::V4(address) => Some(address.to_bits()),
            IpAddr::V6(_) => None,
        }
    }
}

impl Address for u128 {
    const BITS: u32 = 128;
    const ZERO: u128 = 0;
    const ONE: u128 = 1;
    const MAX: u128 = u128::MAX;
    type Key = (u64, u64, u8);

    #[inline(always)]
    fn low(self) -> usize {
        self as usize
    }
    #[inline(always)]
    fn top(self) -> u32 {
        (self >> 96) as u32
    }
    #[inline(always)]
    fn halves(self) -> (u64, u64) {
        ((self >> 64) as u64, self as u64)
    }
    #[inline(always)]
    fn from_halves(high: u64, low: u64) -> u128 {
        u128::from(high) << 64 | u128::from(low)
    }
    #[inline]
    fn key(self, len: u8) -> (u64, u64, u8) {
        let (high, low) = self.halves();
        (high, low, len)
    }
    #[inline]
    fn unkey((high, low, len): (u64, u64, u8)) -> (u128, u8) {
        (u128::from_halves(high, low), len)
    }
    fn ip(self) -> IpAddr {
        IpAddr::V6(Ipv6Addr::from_bits(self))
    }
    fn from_ip(address: IpAddr) -> Option<u128> {
        match address {
            IpAddr::V6(address) => Some(address.to_bits()),
            IpAddr::V4(_) => None,
        }
    }
}

/// A prefix: the bits of `address` after `len` are zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix<A: Address> {
    address: A,
    len: u8,
}

/// An IPv4 prefix.
pub type Ip4Prefix = Prefix<u32>;
/// An IPv6 prefix.
pub type Ip6Prefix = Prefix<u128>;

impl<A: Address> Prefix<A> {
    /// Everything.
    pub const ALL: Prefix<A> = Prefix { address: A::ZERO, len: 0 };

    /// The prefix of `address` with `len` bits; what is longer than an address counts as one.
    #[inline]
    pub fn new(address: A, len: u8) -> Self {
        let len = len.min(A::BITS as u8);
        Prefix { address: address & Self::mask(len), len }
    }

    /// The prefix of one address.
    pub fn host(address: A) -> Self {
        Prefix { address, len: A::BITS as u8 }
    }

    fn mask(len: u8) -> A {
        if len == 0 { A::ZERO } else { A::MAX << (A::BITS - u32::from(len)) }
    }

    /// The first address.
    #[inline]
    pub fn first(self) -> A {
        self.address
    }

    /// The last address.
    #[inline]
    pub fn last(self) -> A {
        self.address | !Self::mask(self.len)
    }

    /// The length in bits.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> u8 {
        self.len
    }

    /// Is `address` inside?
    #[inline]
    pub fn contains(self, address: A) -> bool {
        address & Self::mask(self.len) == self.address
    }

    /// Is `other` this prefix or inside it?
    pub fn covers(self, other: Self) -> bool {
        other.len >= self.len && self.contains(other.address)
    }

    /// The next prefix of the same length, if there is one.
    pub fn next(self) -> Option<Self> {
        (self.last() != A::MAX).then(|| Prefix { address: self.last() + A::ONE, len: self.len })
    }

    fn key(self) -> A::Key {
        self.address.key(self.len)
    }

    fn from_key(key: A::Key) -> Self {
        let (address, len) = A::unkey(key);
        Prefix { address, len }
    }
}

impl<A: Address> fmt::Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address.ip(), self.len)
    }
}

impl<A: Address> fmt::Debug for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A prefix of either family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IpPrefix {
    /// IPv4.
    V4(Ip4Prefix),
    /// IPv6.
    V6(Ip6Prefix),
}

impl IpPrefix {
    /// The prefix of `address` with `len` bits; what is longer than an address counts as one.
    pub fn new(address: IpAddr, len: u8) -> Self {
        match address {
            IpAddr::V4(address) => IpPrefix::V4(Prefix::new(address.to_bits(), len)),
            IpAddr::V6(address) => IpPrefix::V6(Prefix::new(address.to_bits(), len)),
        }
    }

    /// The prefix of one address.
    pub fn host(address: IpAddr) -> Self {
        IpPrefix::new(address, u8::MAX)
    }

    /// The length in bits.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> u8 {
        match self {
            IpPrefix::V4(prefix) => prefix.len(),
            IpPrefix::V6(prefix) => prefix.len(),
        }
    }

    /// Is it IPv6?
    pub fn is_ip6(self) -> bool {
        matches!(self, IpPrefix::V6(_))
    }

    /// Is `address` of this family and inside?
    pub fn contains(self, address: IpAddr) -> bool {
        match (self, address) {
            (IpPrefix::V4(prefix), IpAddr::V4(address)) => prefix.contains(address.to_bits()),
            (IpPrefix::V6(prefix), IpAddr::V6(address)) => prefix.contains(address.to_bits()),
            _ => false,
        }
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IpPrefix::V4(prefix) => prefix.fmt(f),
            IpPrefix::V6(prefix) => prefix.fmt(f),
        }
    }
}

impl fmt::Debug for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A map from prefixes, ordered by address, then shorter before longer. About 25 (IPv4) and 50
/// (IPv6) bytes a prefix with values of 8.
pub struct PrefixMap<A: Address, V> {
    map: BTreeMap<A::Key, V>,
    by_len: Box<[u32]>,
}

impl<A: Address, V> Default for PrefixMap<A, V> {
    fn default() -> Self {
        PrefixMap { map: BTreeMap::new(), by_len: vec![0; A::BITS as usize + 1].into() }
    }
}

impl<A: Address, V> PrefixMap<A, V> {
    /// How many prefixes.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// How many prefixes of each length, 0 first.
    pub fn count_by_len(&self) -> &[u32] {
        &self.by_len
    }

    /// The value of exactly this prefix.
    pub fn get(&self, prefix: Prefix<A>) -> Option<&V> {
        self.map.get(&prefix.key())
    }

    /// The value of exactly this prefix.
    pub fn get_mut(&mut self, prefix: Prefix<A>) -> Option<&mut V> {
        self.map.get_mut(&prefix.key())
    }

    /// Set the value of `prefix`; the old one comes back.
    pub fn insert(&mut self, prefix: Prefix<A>, value: V) -> Option<V> {
        let old = self.map.insert(prefix.key(), value);
        self.by_len[usize::from(prefix.len)] += u32::from(old.is_none());
        old
    }

    /// Set the value of `prefix` unless it has one: then that comes back.
    pub fn insert_if_absent(&mut self, prefix: Prefix<A>, value: V) -> Option<V>
    where
        V: Copy,
    {
        match self.map.entry(prefix.key()) {
            std::collections::btree_map::Entry::Occupied(old) => Some(*old.get()),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(value);
                self.by_len[usize::from(prefix.len)] += 1;
                None
            }
        }
    }

    /// Remove `prefix`.
    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<V> {
        let old = self.map.remove(&prefix.key());
        self.by_len[usize::from(prefix.len)] -= u32::from(old.is_some());
        old
    }

    /// All, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Prefix<A>, &V)> {
        self.map.iter().map(|(key, value)| (Prefix::from_key(*key), value))
    }

    /// All after `prefix`, in order: to continue a listing that was interrupted.
    pub fn iter_after(&self, prefix: Prefix<A>) -> impl Iterator<Item = (Prefix<A>, &V)> {
        let from = (Bound::Excluded(prefix.key()), Bound::Unbounded);
        self.map.range(from).map(|(key, value)| (Prefix::from_key(*key), value))
    }

    /// Those inside `prefix`, without itself, in order.
    pub fn inside(&self, prefix: Prefix<A>) -> impl Iterator<Item = (Prefix<A>, &V)> {
        let last = Bound::Included(prefix.last().key(u8::MAX));
        let range = (Bound::Excluded(prefix.key()), last);
        self.map.range(range).map(|(key, value)| (Prefix::from_key(*key), value))
    }

    /// The longest prefix of at most `len_max` bits that contains `address`.
    ///
    /// The predecessor in order either is it, or shares fewer bits with the address than any
    /// other prefix that could be: so each step shortens, and there are few.
    pub fn cover(&self, address: A, len_max: u8) -> Option<(Prefix<A>, &V)> {
        let mut sought = Prefix::new(address, len_max);
        loop {
            let (key, value) = self.map.range(..=sought.key()).next_back()?;
            let found = Prefix::from_key(*key);
            if found.len <= sought.len && found.contains(address) {
                return Some((found, value));
            }
            // Lengths with no prefix at all need no look.
            let mut len = shared_bits(found.address, address).min(sought.len.checked_sub(1)?).min(found.len);
            while len > 0 && self.by_len[usize::from(len)] == 0 {
                len -= 1;
            }
            sought = Prefix::new(address, len);
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
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bits_after_the_length_do_not_matter() {
        let prefix = Ip4Prefix::new(0x0a01_02ff, 24);
        assert_eq!(prefix.to_string(), "10.1.2.0/24");
        assert_eq!(prefix.last(), 0x0a01_02ff);
        assert_eq!(Ip4Prefix::ALL.last(), u32::MAX);
        assert_eq!(prefix.next().map(|next| next.to_string()).as_deref(), Some("10.1.3.0/24"));
        assert_eq!(Ip4Prefix::new(u32::MAX, 32).next(), None);
    }

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
            let naive = map.iter().filter(|(p, _)| p.len() <= len_max && p.contains(address)).max_by_key(|(p, _)| p.len());
            prop_assert_eq!(map.cover(address, len_max), naive);
        }
    }
}

//! Addresses as numbers, and prefixes of them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::{Add, BitAnd, BitOr, BitXor, Not, Shl, Shr, Sub};

pub use crate::prefix_map::PrefixMap;

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

    pub(crate) fn key(self) -> A::Key {
        self.address.key(self.len)
    }

    pub(crate) fn from_key(key: A::Key) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_after_the_length_do_not_matter() {
        let prefix = Ip4Prefix::new(0x0a01_02ff, 24);
        assert_eq!(prefix.to_string(), "10.1.2.0/24");
        assert_eq!(prefix.last(), 0x0a01_02ff);
        assert_eq!(Ip4Prefix::ALL.last(), u32::MAX);
        assert_eq!(prefix.next().map(|next| next.to_string()).as_deref(), Some("10.1.3.0/24"));
        assert_eq!(Ip4Prefix::new(u32::MAX, 32).next(), None);
    }
}

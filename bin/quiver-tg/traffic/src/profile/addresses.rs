//! Addresses that a port plays: single ones, prefixes and ranges.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

/// Entries of one list.
pub const ADDRESS_RANGES_MAX: usize = 65_536;

/// An address of either family, as a number.
pub trait Address: Copy + FromStr {
    /// Bits of it.
    const BITS: u32;
    /// What it is, with one.
    const EXAMPLE: &'static str;
    /// As a number.
    fn number(self) -> u128;
    /// From a number that fits.
    fn from_number(number: u128) -> Self;
}

impl Address for Ipv4Addr {
    const BITS: u32 = 32;
    const EXAMPLE: &'static str = "198.18.0.2, 198.18.0.0/24 or 198.18.0.2-198.18.0.9";
    fn number(self) -> u128 {
        u128::from(self.to_bits())
    }
    fn from_number(number: u128) -> Self {
        Ipv4Addr::from_bits(number as u32)
    }
}

impl Address for Ipv6Addr {
    const BITS: u32 = 128;
    const EXAMPLE: &'static str = "2001:2::2, 2001:2::/64 or 2001:2::2-2001:2::9";
    fn number(self) -> u128 {
        self.to_bits()
    }
    fn from_number(number: u128) -> Self {
        Ipv6Addr::from_bits(number)
    }
}

/// A list of ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses<A> {
    /// First and last of each, as written.
    ranges: Vec<(u128, u128)>,
    /// The same in order, and none overlapping.
    sorted: Vec<(u128, u128)>,
    address: std::marker::PhantomData<A>,
}

impl<A> Default for Addresses<A> {
    fn default() -> Self {
        Addresses { ranges: Vec::new(), sorted: Vec::new(), address: std::marker::PhantomData }
    }
}

impl<A: Address> Addresses<A> {
    /// These ranges.
    pub fn of(ranges: impl IntoIterator<Item = (A, A)>) -> Addresses<A> {
        let ranges: Vec<_> =
            ranges.into_iter().map(|(first, last)| (first.number(), last.number())).collect();
        let mut in_order = ranges.clone();
        in_order.sort_unstable();
        let mut sorted: Vec<(u128, u128)> = Vec::new();
        for (first, last) in in_order {
            match sorted.last_mut() {
                Some((_, end)) if first <= *end => *end = last.max(*end),
                _ => sorted.push((first, last)),
            }
        }
        Addresses { ranges, sorted, address: std::marker::PhantomData }
    }

    /// The first one that was written.
    pub fn first(&self) -> Option<A> {
        self.ranges.first().map(|(first, _)| A::from_number(*first))
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Is this one of them?
    pub fn contains(&self, address: A) -> bool {
        let number = address.number();
        let behind = self.sorted.partition_point(|(first, _)| *first <= number);
        behind > 0 && number <= self.sorted[behind - 1].1
    }

    /// The first address of each range, and those that follow, as long as there are not more than
    /// `most`.
    pub fn some(&self, most: usize) -> impl Iterator<Item = A> + '_ {
        self.ranges.iter().flat_map(|(first, last)| *first..=*last).take(most).map(A::from_number)
    }

    /// Those and one more.
    pub fn with(&self, address: A) -> Addresses<A> {
        let known =
            self.ranges.iter().map(|(first, last)| (A::from_number(*first), A::from_number(*last)));
        Addresses::of(known.chain([(address, address)]))
    }
}

/// One address, a prefix, or two with `-` between. In IPv4, a prefix up to /30 has neither its
/// network's nor its broadcast address.
fn range<A: Address>(text: &str) -> Result<(A, A), String> {
    let wrong = || format!("`{text}` is no address or range; one looks like {}", A::EXAMPLE);
    let read = |text: &str| text.trim().parse::<A>().map_err(|_| wrong());
    if let Some((first, last)) = text.split_once('-') {
        let (first, last) = (read(first)?, read(last)?);
        if first.number() > last.number() {
            return Err(format!("`{text}` ends before it begins"));
        }
        return Ok((first, last));
    }
    let Some((address, length)) = text.split_once('/') else {
        return read(text).map(|one| (one, one));
    };
    let address = read(address)?;
    let length: u32 = length.parse().ok().filter(|length| *length <= A::BITS).ok_or_else(wrong)?;
    let hosts = u128::MAX.checked_shr(128 - (A::BITS - length)).unwrap_or(0);
    let (first, last) = (address.number() & !hosts, address.number() | hosts);
    let edge = u128::from(A::BITS == 32 && length <= 30);
    Ok((A::from_number(first + edge), A::from_number(last - edge)))
}

impl<'de, A: Address> Deserialize<'de> for Addresses<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<A>(std::marker::PhantomData<A>);
        impl<'de, A: Address> Visitor<'de> for List<A> {
            type Value = Addresses<A>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of addresses like {}", A::EXAMPLE)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Addresses::of([range(text).map_err(E::custom)?]))
            }
            fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Self::Value, S::Error> {
                let mut ranges = Vec::new();
                while let Some(text) = list.next_element::<String>()? {
                    ranges.push(range(&text).map_err(S::Error::custom)?);
                    if ranges.len() > ADDRESS_RANGES_MAX {
                        return Err(S::Error::custom(format!(
                            "more than {ADDRESS_RANGES_MAX} entries"
                        )));
                    }
                }
                Ok(Addresses::of(ranges))
            }
        }
        deserializer.deserialize_any(List(std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Addresses<Ipv4Addr>, String> {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn single_addresses_prefixes_and_ranges_are_played() {
        let played = read("[198.18.1.7, 198.18.0.0/24, 198.18.3.5-198.18.3.9, 198.18.0.128/25]")
            .expect("a list");
        assert_eq!(played.first(), Some(Ipv4Addr::new(198, 18, 1, 7)));
        for (last, is_played) in [(0, false), (1, true), (254, true), (255, false)] {
            assert_eq!(played.contains(Ipv4Addr::new(198, 18, 0, last)), is_played, "{last}");
        }
        for (last, is_played) in [(4, false), (5, true), (9, true), (10, false)] {
            assert_eq!(played.contains(Ipv4Addr::new(198, 18, 3, last)), is_played, "{last}");
        }
        assert_eq!(played.some(3).last(), Some(Ipv4Addr::new(198, 18, 0, 2)));
        let six: Addresses<Ipv6Addr> = serde_saphyr::from_str("\"2001:2::/64\"").expect("a prefix");
        assert!(six.contains("2001:2::ffff:1".parse().expect("address")));
        assert!(!six.contains("2001:2:0:1::".parse().expect("address")));
        let all: Addresses<Ipv6Addr> = serde_saphyr::from_str("[\"::/0\"]").expect("everything");
        assert!(all.contains(Ipv6Addr::from_bits(u128::MAX)));
    }

    #[test]
    fn what_is_no_range_is_refused_with_one_that_is() {
        for text in ["[198.18.0]", "[198.18.0.0/33]", "[198.18.0.9-198.18.0.2]", "[\"2001:2::1\"]"]
        {
            let message = read(text).expect_err(text);
            assert!(message.contains("198.18"), "{message}");
        }
    }
}

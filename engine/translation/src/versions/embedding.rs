//! A prefix for IPv4 addresses as the fast path takes it: with what checksums get.

use super::address::Prefix;
use super::ends::Delta;

/// A prefix in front of IPv4 addresses, with what checksums get where an address goes behind it.
#[derive(Clone, Copy, Debug)]
pub struct Embedding {
    prefix: Prefix,
    /// The words of an address stay the words that they are: there is nothing else to add.
    keeps_words: bool,
    /// What a checksum gets for the prefix in front.
    puts: Delta,
    /// What a checksum gets for the prefix that goes.
    takes: Delta,
}

impl Embedding {
    /// Of this prefix.
    pub const fn new(prefix: Prefix) -> Embedding {
        let bits = prefix.bits();
        Embedding {
            prefix,
            keeps_words: prefix.length() == 96,
            puts: Delta::NEUTRAL.add128(bits),
            takes: Delta::NEUTRAL.sub128(bits),
        }
    }

    /// The prefix.
    #[inline(always)]
    pub fn prefix(self) -> Prefix {
        self.prefix
    }

    /// An address behind the prefix, and what a checksum gets for the exchange.
    #[inline(always)]
    pub fn embed(&self, address: u32) -> (u128, Delta) {
        let embedded = self.prefix.embed(address);
        match self.keeps_words {
            true => (embedded, self.puts),
            false => (embedded, Delta::NEUTRAL.add128(embedded).sub32(address)),
        }
    }

    /// The address behind the prefix, and what a checksum gets for the exchange; nothing when the
    /// address begins otherwise.
    #[inline(always)]
    pub fn extract(&self, address: u128) -> Option<(u32, Delta)> {
        let extracted = self.prefix.extract(address)?;
        match self.keeps_words {
            true => Some((extracted, self.takes)),
            false => Some((extracted, Delta::NEUTRAL.sub128(address).add32(extracted))),
        }
    }
}

//! The ends of a packet in either version, and what its upper layer's checksum gets when one
//! becomes the other (RFC 1624): only that which changes is added.

use quiver_wire::IpProtocol;

/// Ports, or twice the identifier of an ICMP query; 0 of what has neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// Of who sends.
    pub source: u16,
    /// Of who receives.
    pub destination: u16,
}

/// Ends of an IPv6 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends6 {
    /// Who sends.
    pub source: u128,
    /// Who receives.
    pub destination: u128,
    /// Ports of both.
    pub ports: Ports,
}

/// Ends of an IPv4 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends4 {
    /// Who sends.
    pub source: u32,
    /// Who receives.
    pub destination: u32,
    /// Ports of both.
    pub ports: Ports,
}

/// What a checksum gets, while it is summed up: words of 32 bits, which the one's complement sum of
/// 16 bits takes as two. Fewer than 2^32 are added.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delta(u64);

impl Delta {
    /// Nothing, as the zero of the one's complement that is not 0: a checksum gets the same whether
    /// what begins with this is folded before it is added or after.
    pub const NEUTRAL: Delta = Delta(0xffff);

    /// Nothing.
    pub const fn new() -> Delta {
        Delta(0)
    }

    /// A word that the packet gets.
    #[inline(always)]
    #[must_use]
    pub const fn add(self, word: u16) -> Delta {
        Delta(self.0 + word as u64)
    }

    /// A word that the packet loses.
    #[inline(always)]
    #[must_use]
    pub const fn sub(self, word: u16) -> Delta {
        Delta(self.0 + !word as u64)
    }

    /// Two words that the packet gets.
    #[inline(always)]
    #[must_use]
    pub const fn add32(self, words: u32) -> Delta {
        Delta(self.0 + words as u64)
    }

    /// Two words that the packet loses.
    #[inline(always)]
    #[must_use]
    pub const fn sub32(self, words: u32) -> Delta {
        Delta(self.0 + !words as u64)
    }

    /// An address that the packet gets.
    #[inline(always)]
    #[must_use]
    pub const fn add128(self, words: u128) -> Delta {
        let (high, low) = ((words >> 64) as u64, words as u64);
        self.add32((high >> 32) as u32)
            .add32(high as u32)
            .add32((low >> 32) as u32)
            .add32(low as u32)
    }

    /// An address that the packet loses.
    #[inline(always)]
    #[must_use]
    pub const fn sub128(self, words: u128) -> Delta {
        self.add128(!words)
    }

    /// In 16 bits.
    #[inline(always)]
    pub const fn fold(self) -> u16 {
        let sum = (self.0 & 0xffff_ffff) + (self.0 >> 32);
        let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
        let sum = (sum & 0xffff) + (sum >> 16);
        ((sum & 0xffff) + (sum >> 16)) as u16
    }
}

/// The protocol as IPv6 numbers it: of ICMP the other one.
#[inline(always)]
pub const fn protocol6(protocol: IpProtocol) -> IpProtocol {
    if protocol.0 == IpProtocol::ICMP.0 { IpProtocol::ICMP6 } else { protocol }
}

/// The protocol as IPv4 numbers it.
#[inline(always)]
pub const fn protocol4(protocol: IpProtocol) -> IpProtocol {
    if protocol.0 == IpProtocol::ICMP6.0 { IpProtocol::ICMP } else { protocol }
}

/// What the checksum of a packet gets that becomes one of IPv4. ICMP has no pseudo header there
/// (RFC 792, RFC 4443 §2.3); its length and type are not in it.
#[inline(always)]
pub fn delta_to4(protocol: IpProtocol, from: &Ends6, to: &Ends4) -> u16 {
    let delta = Delta::new().sub128(from.source).sub128(from.destination);
    let delta = delta.sub(from.ports.source).add(to.ports.source);
    if protocol4(protocol) == IpProtocol::ICMP {
        return delta.fold();
    }
    let delta = delta.sub(from.ports.destination).add(to.ports.destination);
    delta.add32(to.source).add32(to.destination).fold()
}

/// What the checksum of a packet gets that becomes one of IPv6.
#[inline(always)]
pub fn delta_to6(protocol: IpProtocol, from: &Ends4, to: &Ends6) -> u16 {
    let delta = Delta::new().add128(to.source).add128(to.destination);
    let delta = delta.sub(from.ports.source).add(to.ports.source);
    if protocol4(protocol) == IpProtocol::ICMP {
        return delta.fold();
    }
    let delta = delta.sub(from.ports.destination).add(to.ports.destination);
    delta.sub32(from.source).sub32(from.destination).fold()
}

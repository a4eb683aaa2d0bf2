//! What the headend asks of the packet that it encapsulates, IPv4 or IPv6.

use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_forwarding::requests::IcmpErrorRequest;

use super::reasons::HeadendDrop;
use crate::carried::{BEYOND_SCOPE, Carried};

/// IPv4 or IPv6 inside.
pub trait Inner: Carried {
    /// The node that encapsulates it.
    const NODE: &'static str;

    /// Decrement the TTL or hop limit; the traffic class and the hops left. `None`, and nothing
    /// changes, for a packet that takes the slow path.
    #[inline(always)]
    fn step(bytes: &mut [u8]) -> Option<(u8, u8)> {
        let facts = Self::facts(bytes)?;
        if (facts.hops <= 1) | facts.is_local {
            return None;
        }
        Self::count_hop(bytes);
        Some((facts.class, facts.hops - 1))
    }

    /// What its sender hears when it may not be forwarded, which is counted.
    fn refused(bytes: &[u8]) -> Result<Option<(IcmpErrorRequest, HeadendDrop)>, HeadendDrop> {
        let facts = Self::facts(bytes).ok_or(HeadendDrop::Truncated)?;
        if facts.is_local {
            return Ok(Some((BEYOND_SCOPE, HeadendDrop::LinkLocalSource)));
        }
        Ok((facts.hops <= 1).then_some((Self::TIME_EXCEEDED, HeadendDrop::HopLimit)))
    }
}

impl Inner for Ip6 {
    const NODE: &'static str = "sr-pl-rewrite-encaps";
}

impl Inner for Ip4 {
    const NODE: &'static str = "sr-pl-rewrite-encaps-v4";
}

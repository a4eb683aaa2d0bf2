//! Routers that were heard, and whether they say the same as this one (RFC 4861 §6.2.7).

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use quiver_core::InterfaceId;
use quiver_wire::Ip6Prefix;
use quiver_wire::icmp6::nd::{PrefixInformation, router_flags};

use crate::config::RaConfig;
use crate::message::{Own, prefixes};
use crate::notifications::RouterSays;

/// Routers that are remembered at most.
pub const ROUTERS_MAX: usize = 256;
/// Prefixes of one router that are remembered at most.
pub const ROUTER_PREFIXES_MAX: usize = 64;
/// A router that is no default router is forgotten after so long.
const FORGET_AFTER_NS: u64 = 1_800_000_000_000;

/// A router that was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    /// What it said last.
    pub says: RouterSays,
    /// When.
    pub heard_ns: u64,
    /// What it said of prefixes.
    pub prefixes: BTreeMap<(Ipv6Addr, u8), PrefixInformation>,
    /// In which fields it contradicted us when it was heard last.
    pub contradicts: Vec<String>,
}

/// All of them.
#[derive(Default)]
pub struct Routers {
    /// By interface and address.
    pub known: BTreeMap<(InterfaceId, Ipv6Addr), Router>,
    /// Advertisements of further ones that there was no room for.
    pub not_kept: u64,
}

impl Routers {
    /// One was heard. Returns whether it is remembered.
    pub fn hear(
        &mut self,
        on: InterfaceId,
        from: Ipv6Addr,
        says: RouterSays,
        now_ns: u64,
    ) -> Option<&mut Router> {
        if self.known.len() >= ROUTERS_MAX && !self.known.contains_key(&(on, from)) {
            self.forget_old(now_ns);
        }
        if self.known.len() >= ROUTERS_MAX && !self.known.contains_key(&(on, from)) {
            self.not_kept += 1;
            return None;
        }
        let new =
            Router { says, heard_ns: now_ns, prefixes: BTreeMap::new(), contradicts: Vec::new() };
        let router = self.known.entry((on, from)).or_insert(new);
        (router.says, router.heard_ns) = (says, now_ns);
        router.contradicts.clear();
        Some(router)
    }

    /// Forget those that have been silent for too long.
    pub fn forget_old(&mut self, now_ns: u64) {
        let keep_ns = |router: &Router| {
            FORGET_AFTER_NS.max(u64::from(router.says.lifetime_s) * 1_000_000_000)
        };
        self.known.retain(|_, router| now_ns.saturating_sub(router.heard_ns) < keep_ns(router));
    }

    /// The interface is gone.
    pub fn forget_interface(&mut self, id: InterfaceId) {
        self.known.retain(|(on, _), _| *on != id);
    }
}

/// In which fields another router contradicts this one. What either does not say is no
/// contradiction.
pub fn contradictions(config: &RaConfig, own: &Own, says: &RouterSays) -> Vec<String> {
    let mtu_bytes = config.mtu_bytes.unwrap_or(own.mtu_bytes);
    let numbers = [
        ("hop limit", u32::from(config.hop_limit), u32::from(says.hop_limit)),
        ("reachable time", config.reachable_ms, says.reachable_ms),
        ("retransmit time", config.retransmit_ms, says.retransmit_ms),
        ("MTU", mtu_bytes, says.mtu_bytes),
    ];
    let differs = numbers
        .into_iter()
        .filter(|(_, ours, theirs)| *ours != 0 && *theirs != 0 && ours != theirs);
    let flags = [
        ("managed flag", config.managed, says.flags & router_flags::MANAGED != 0),
        ("other flag", config.other, says.flags & router_flags::OTHER != 0),
    ];
    let flags = flags.into_iter().filter(|(_, ours, theirs)| ours != theirs);
    differs
        .map(|(name, ..)| name.to_owned())
        .chain(flags.map(|(name, ..)| name.to_owned()))
        .collect()
}

/// Does another router say something else of a prefix that we tell, too? Lifetimes that run down in
/// real time may differ a little.
pub fn contradicts_prefix(
    config: &RaConfig,
    own: &Own,
    says: &PrefixInformation,
) -> Option<String> {
    let prefix = Ip6Prefix::covering(says.prefix, says.length).ok()?;
    let (_, ours) = prefixes(config, own, &[]).0.into_iter().find(|(known, _)| *known == prefix)?;
    let differs = ours.valid_s != says.valid_s || ours.preferred_s != says.preferred_s;
    differs.then(|| format!("lifetimes of {prefix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAYS: RouterSays = RouterSays {
        hop_limit: 64,
        flags: 0,
        lifetime_s: 1800,
        reachable_ms: 0,
        retransmit_ms: 0,
        mtu_bytes: 0,
    };

    fn own() -> Own {
        let prefixes = vec!["2001:db8::/64".parse().unwrap()];
        Own { link_local: "fe80::1".parse().unwrap(), mac: None, mtu_bytes: 1500, prefixes }
    }

    #[test]
    fn only_what_both_say_can_contradict() {
        let config = RaConfig { reachable_ms: 1000, ..RaConfig::default() };
        assert!(contradictions(&config, &own(), &SAYS).is_empty());
        let other = RouterSays { hop_limit: 32, mtu_bytes: 1400, flags: 0x80, ..SAYS };
        assert_eq!(contradictions(&config, &own(), &other), ["hop limit", "MTU", "managed flag"]);
    }

    #[test]
    fn lifetimes_of_a_prefix_of_ours_are_compared() {
        let config = RaConfig::default();
        let told = prefixes(&config, &own(), &[]).0[0];
        let says = PrefixInformation {
            length: 64,
            flags: 0xc0,
            valid_s: told.1.valid_s,
            preferred_s: told.1.preferred_s,
            prefix: told.0.address(),
        };
        assert_eq!(contradicts_prefix(&config, &own(), &says), None);
        let shorter = PrefixInformation { valid_s: 60, ..says };
        assert!(contradicts_prefix(&config, &own(), &shorter).is_some());
        let of_another = PrefixInformation { prefix: "2001:db8:1::".parse().unwrap(), ..shorter };
        assert_eq!(contradicts_prefix(&config, &own(), &of_another), None);
    }

    #[test]
    fn routers_beyond_the_limit_are_counted_and_old_ones_make_room() {
        let mut routers = Routers::default();
        for n in 0..ROUTERS_MAX as u128 + 1 {
            routers.hear(InterfaceId(0), Ipv6Addr::from_bits(n), SAYS, 0);
        }
        assert_eq!((routers.known.len(), routers.not_kept), (ROUTERS_MAX, 1));
        assert!(routers.hear(InterfaceId(1), Ipv6Addr::LOCALHOST, SAYS, FORGET_AFTER_NS).is_some());
        assert_eq!(routers.known.len(), 1);
        routers.forget_interface(InterfaceId(1));
        assert!(routers.known.is_empty());
    }
}

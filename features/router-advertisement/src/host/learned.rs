//! What routers advertise on one link, as a host keeps it: default routers, prefixes, routes, the
//! MTU and the hop limit, each with its lifetime and a limit (RFC 4861 §6.3.4, RFC 4862 §5.5.3, RFC
//! 4191 §3).

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use quiver_wire::Ip6Prefix;
use quiver_wire::icmp6::nd::{PrefixInformation, prefix_flags};
use quiver_wire::ip6::MTU_MIN;
use quiver_wire::ip6::address::is_unicast;

use crate::config::{FOREVER_S, Preference};
use crate::notifications::{RouteSays, RouterSays};

/// Default routers of an interface that are kept at most.
pub const DEFAULT_ROUTERS_MAX: usize = 8;
/// Advertised prefixes of an interface that are kept at most; each makes one address.
pub const LINK_PREFIXES_MAX: usize = 16;
/// Advertised routes of an interface that are kept at most.
pub const LINK_ROUTES_MAX: usize = 16;
/// Length of a prefix that addresses are made of: 128 bits without the interface identifier (RFC
/// 4291 §2.5.1).
const AUTONOMOUS_LENGTH: u8 = 64;
/// The shortest rest of a valid lifetime that an advertisement can leave (RFC 4862 §5.5.3 e).
const TWO_HOURS_NS: u64 = 7_200_000_000_000;

/// A default router, or a route behind a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Which of several is used (RFC 4191 §2.1).
    pub preference: Preference,
    /// When it ends, on the router's clock.
    pub until_ns: u64,
}

/// Lifetimes of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// The address goes then.
    pub valid_until_ns: u64,
    /// It is deprecated then.
    pub preferred_until_ns: u64,
}

/// An advertised prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkPrefix {
    /// Until when its addresses are on the link; `None`: nobody says that they are.
    pub on_link_until_ns: Option<u64>,
    /// Lifetimes of the address that is made of it; `None`: none is.
    pub address: Option<Lifetimes>,
}

/// Advertised settings that were not taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// Default routers that there was no room for.
    pub routers: u64,
    /// Prefixes that there was no room for.
    pub prefixes: u64,
    /// Routes that there was no room for.
    pub routes: u64,
    /// Prefixes and routes that no host may have, and lifetimes and lengths that no address can
    /// have.
    pub invalid: u64,
    /// MTUs below 1,280 bytes or above the interface's.
    pub mtus: u64,
}

/// What was advertised on a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// Default routers by their link-local addresses.
    pub routers: BTreeMap<Ipv6Addr, Gateway>,
    /// Prefixes.
    pub prefixes: BTreeMap<Ip6Prefix, LinkPrefix>,
    /// Routes, each behind a router.
    pub routes: BTreeMap<(Ip6Prefix, Ipv6Addr), Gateway>,
    /// MTU of the link, bytes.
    pub mtu_bytes: Option<u16>,
    /// Hop limit of packets of our own.
    pub hop_limit: Option<u8>,
    /// What was not taken.
    pub ignored: Ignored,
}

/// When a lifetime that begins now ends.
fn until_ns(now_ns: u64, lifetime_s: u32) -> u64 {
    if lifetime_s == FOREVER_S { u64::MAX } else { now_ns + u64::from(lifetime_s) * 1_000_000_000 }
}

/// May hosts have addresses of this prefix, or a route to it? Not where it covers addresses that
/// are no host's, or are of one link alone.
fn is_acceptable(prefix: Ip6Prefix) -> bool {
    const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
    const MULTICAST: Ipv6Addr = Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0);
    const MAPPED: Ipv6Addr = Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0);
    let covers = |address| prefix.contains(address);
    let apart = |address: Ipv6Addr| !address.is_unicast_link_local() && !address.is_loopback();
    is_unicast(prefix.address())
        && apart(prefix.address())
        && prefix.address().to_ipv4_mapped().is_none()
        && ![LINK_LOCAL, MULTICAST, MAPPED, Ipv6Addr::LOCALHOST].into_iter().any(covers)
}

/// Put a value into a table of bounded size; false when there is no room.
fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V, limit: usize) -> bool {
    let fits = map.len() < limit || map.contains_key(&key);
    if fits {
        map.insert(key, value);
    }
    fits
}

impl Learned {
    /// The fixed part of an advertisement, and its MTU option. `mtu_bytes`: the interface's.
    pub fn hear_router(&mut self, from: Ipv6Addr, says: &RouterSays, mtu_bytes: u16, now_ns: u64) {
        self.set_default(from, Preference::of(says.flags), says.lifetime_s.into(), now_ns);
        if says.hop_limit != 0 {
            self.hop_limit = Some(says.hop_limit);
        }
        match u16::try_from(says.mtu_bytes) {
            Ok(0) => {}
            Ok(mtu) if usize::from(mtu) >= MTU_MIN && mtu <= mtu_bytes => {
                self.mtu_bytes = Some(mtu)
            }
            _ => self.ignored.mtus += 1,
        }
    }

    /// A router is a default router for so long; 0: it is none any more.
    fn set_default(
        &mut self,
        router: Ipv6Addr,
        preference: Preference,
        lifetime_s: u32,
        now_ns: u64,
    ) {
        let until_ns = until_ns(now_ns, lifetime_s);
        if lifetime_s == 0 {
            self.routers.remove(&router);
        } else if !put(
            &mut self.routers,
            router,
            Gateway { preference, until_ns },
            DEFAULT_ROUTERS_MAX,
        ) {
            self.ignored.routers += 1;
        }
    }

    /// A prefix (RFC 4861 §6.3.4 for what is on the link, RFC 4862 §5.5.3 for addresses).
    pub fn hear_prefix(&mut self, says: &PrefixInformation, now_ns: u64) {
        let prefix = Ip6Prefix::covering(says.prefix, says.length).ok();
        let Some(prefix) = prefix.filter(|prefix| is_acceptable(*prefix)) else {
            self.ignored.invalid += 1;
            return;
        };
        let mut known = self.prefixes.get(&prefix).copied().unwrap_or_default();
        let valid_until_ns = until_ns(now_ns, says.valid_s);
        if says.flags & prefix_flags::ON_LINK != 0 {
            known.on_link_until_ns = Some(valid_until_ns).filter(|_| says.valid_s != 0);
        }
        if says.flags & prefix_flags::AUTONOMOUS != 0 {
            if says.length != AUTONOMOUS_LENGTH || says.preferred_s > says.valid_s {
                self.ignored.invalid += 1;
            } else {
                let preferred_until_ns = until_ns(now_ns, says.preferred_s);
                let new = Lifetimes { valid_until_ns, preferred_until_ns };
                known.address = match known.address {
                    Some(old) => Some(follow(old, new, now_ns)),
                    None => Some(new).filter(|_| says.valid_s != 0),
                };
            }
        }
        if known == LinkPrefix::default() {
            self.prefixes.remove(&prefix);
        } else if !put(&mut self.prefixes, prefix, known, LINK_PREFIXES_MAX) {
            self.ignored.prefixes += 1;
        }
    }

    /// A route (RFC 4191 §2.3, §3.1). One to everywhere says how long its sender is a default
    /// router.
    pub fn hear_route(&mut self, from: Ipv6Addr, says: &RouteSays, now_ns: u64) {
        let prefix = Ip6Prefix::covering(says.prefix, says.length).ok();
        let (Some(prefix), Some(preference)) = (prefix, Preference::of_route(says.flags)) else {
            self.ignored.invalid += 1;
            return;
        };
        let gateway = Gateway { preference, until_ns: until_ns(now_ns, says.lifetime_s) };
        if prefix.length() == 0 {
            self.set_default(from, preference, says.lifetime_s, now_ns);
        } else if !is_acceptable(prefix) {
            self.ignored.invalid += 1;
        } else if says.lifetime_s == 0 {
            self.routes.remove(&(prefix, from));
        } else if !put(&mut self.routes, (prefix, from), gateway, LINK_ROUTES_MAX) {
            self.ignored.routes += 1;
        }
    }

    /// Forget what is over.
    pub fn expire(&mut self, now_ns: u64) {
        self.routers.retain(|_, router| router.until_ns > now_ns);
        self.routes.retain(|_, route| route.until_ns > now_ns);
        self.prefixes.retain(|_, prefix| {
            prefix.on_link_until_ns = prefix.on_link_until_ns.filter(|until| *until > now_ns);
            prefix.address = prefix.address.filter(|times| times.valid_until_ns > now_ns);
            *prefix != LinkPrefix::default()
        });
    }

    /// The link is gone: all but the counts is forgotten.
    pub fn clear(&mut self) {
        *self = Learned { ignored: self.ignored, ..Learned::default() };
    }
}

/// Lifetimes of an address that is there, when its prefix is advertised anew (RFC 4862 §5.5.3 e):
/// nobody can make a valid lifetime end within two hours.
fn follow(old: Lifetimes, new: Lifetimes, now_ns: u64) -> Lifetimes {
    let soon_ns = now_ns + TWO_HOURS_NS;
    let valid_until_ns = if new.valid_until_ns > soon_ns || new.valid_until_ns > old.valid_until_ns
    {
        new.valid_until_ns
    } else {
        old.valid_until_ns.min(soon_ns)
    };
    Lifetimes { valid_until_ns, preferred_until_ns: new.preferred_until_ns }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: u64 = 1_000_000_000;
    const HOUR_S: u32 = 3600;
    const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

    fn prefix(text: &str, flags: u8, valid_s: u32, preferred_s: u32) -> PrefixInformation {
        let (address, length) = text.split_once('/').unwrap();
        let (prefix, length) = (address.parse().unwrap(), length.parse().unwrap());
        PrefixInformation { length, flags, valid_s, preferred_s, prefix }
    }

    fn router(lifetime_s: u16, mtu_bytes: u32) -> RouterSays {
        RouterSays {
            hop_limit: 0,
            flags: 0,
            lifetime_s,
            reachable_ms: 0,
            retransmit_ms: 0,
            mtu_bytes,
        }
    }

    fn only_address(learned: &Learned) -> Option<Lifetimes> {
        assert!(learned.prefixes.len() <= 1);
        learned.prefixes.values().next().and_then(|known| known.address)
    }

    #[test]
    fn a_valid_lifetime_cannot_be_cut_to_less_than_two_hours() {
        // Before, advertised, afterwards: seconds. RFC 4862 §5.5.3 e, 1 to 3.
        for (before_s, told_s, after_s) in [
            (24 * HOUR_S, 3 * HOUR_S, 3 * HOUR_S),
            (HOUR_S, HOUR_S + 600, HOUR_S + 600),
            (HOUR_S, 600, HOUR_S),
            (HOUR_S, 0, HOUR_S),
            (24 * HOUR_S, 600, 2 * HOUR_S),
            (24 * HOUR_S, 0, 2 * HOUR_S),
            (FOREVER_S, 0, 2 * HOUR_S),
        ] {
            let mut learned = Learned::default();
            learned.hear_prefix(&prefix("2001:db8::/64", 0x40, before_s, before_s), 5 * S);
            learned.hear_prefix(&prefix("2001:db8::/64", 0x40, told_s, 0), 5 * S);
            let expected =
                Lifetimes { valid_until_ns: u64::from(5 + after_s) * S, preferred_until_ns: 5 * S };
            assert_eq!(only_address(&learned), Some(expected), "{before_s} {told_s}");
        }
    }

    #[test]
    fn a_prefix_leaves_the_link_at_once_when_it_is_told() {
        let mut learned = Learned::default();
        learned.hear_prefix(&prefix("2001:db8::/64", 0x80, HOUR_S, HOUR_S), 0);
        assert_eq!(learned.prefixes.len(), 1);
        learned.hear_prefix(&prefix("2001:db8::/64", 0x80, 0, 0), 1);
        assert!(learned.prefixes.is_empty());
    }

    #[test]
    fn what_no_host_may_have_is_ignored_and_counted() {
        for (text, flags, valid_s, preferred_s) in [
            ("fe80::/64", 0xc0, 9, 9),
            ("fe80:0:0:7::/64", 0xc0, 9, 9),
            ("ff02::/16", 0x80, 9, 9),
            ("f000::/4", 0x80, 9, 9),
            ("::/0", 0x80, 9, 9),
            ("8000::/1", 0x80, 9, 9),
            ("::/64", 0xc0, 9, 9),
            ("::ffff:0:0/96", 0x80, 9, 9),
            ("2001:db8::/129", 0xc0, 9, 9),
            ("2001:db8::/63", 0x40, 9, 9),
            ("2001:db8::/65", 0x40, 9, 9),
            ("2001:db8::/64", 0x40, 9, 10),
        ] {
            let mut learned = Learned::default();
            learned.hear_prefix(&prefix(text, flags, valid_s, preferred_s), 0);
            assert_eq!((learned.prefixes.len(), learned.ignored.invalid), (0, 1), "{text}");
        }
    }

    #[test]
    fn a_prefix_of_another_length_is_on_the_link_and_makes_no_address() {
        let mut learned = Learned::default();
        learned.hear_prefix(&prefix("2001:db8::/80", 0xc0, 9, 9), 0);
        assert_eq!((learned.prefixes.len(), only_address(&learned)), (1, None));
        assert_eq!(learned.ignored.invalid, 1);
    }

    #[test]
    fn routers_prefixes_and_routes_have_limits_and_what_ends_makes_room() {
        let mut learned = Learned::default();
        for n in 0..100_u16 {
            let from = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, n + 1);
            learned.hear_router(from, &router(10, 0), 1500, 0);
            learned.hear_prefix(&prefix(&format!("2001:db8:{n:x}::/64"), 0xc0, 10, 10), 0);
            let to = format!("2001:db8:f:{n:x}::").parse().unwrap();
            learned.hear_route(
                ROUTER,
                &RouteSays { prefix: to, length: 64, flags: 0, lifetime_s: 10 },
                0,
            );
        }
        let sizes = (learned.routers.len(), learned.prefixes.len(), learned.routes.len());
        assert_eq!(sizes, (DEFAULT_ROUTERS_MAX, LINK_PREFIXES_MAX, LINK_ROUTES_MAX));
        let Ignored { routers, prefixes, routes, .. } = learned.ignored;
        assert_eq!((routers, prefixes, routes), (92, 84, 84));
        learned.hear_router(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), &router(20, 0), 1500, 0);
        assert_eq!(learned.ignored.routers, 92, "a known one is refreshed");
        learned.expire(10 * S);
        assert_eq!(
            (learned.routers.len(), learned.prefixes.len(), learned.routes.len()),
            (1, 0, 0)
        );
    }

    #[test]
    fn a_router_ends_by_its_lifetime_or_by_a_route_to_everywhere() {
        let mut learned = Learned::default();
        learned.hear_router(ROUTER, &router(1800, 0), 1500, 0);
        let everywhere =
            RouteSays { prefix: Ipv6Addr::UNSPECIFIED, length: 0, flags: 0x08, lifetime_s: 60 };
        learned.hear_route(ROUTER, &everywhere, 0);
        let expected = Gateway { preference: Preference::High, until_ns: 60 * S };
        assert_eq!(learned.routers[&ROUTER], expected);
        learned.hear_router(ROUTER, &router(0, 0), 1500, 1);
        assert!(learned.routers.is_empty());
    }

    #[test]
    fn only_an_mtu_that_the_link_can_have_is_taken() {
        for (told, taken) in [
            (0, None),
            (1279, None),
            (1280, Some(1280)),
            (1500, Some(1500)),
            (1501, None),
            (70_000, None),
        ] {
            let mut learned = Learned::default();
            learned.hear_router(ROUTER, &router(0, told), 1500, 0);
            assert_eq!(
                (learned.mtu_bytes, learned.ignored.mtus),
                (taken, u64::from(taken.is_none() && told > 0))
            );
        }
    }

    proptest! {
        #[test]
        fn whatever_is_advertised_the_tables_stay_within_their_limits(
            all in prop::collection::vec(
                (any::<[u8; 16]>(), any::<u8>(), any::<u8>(), any::<u32>(), any::<u32>()), 0..200
            )
        ) {
            let mut learned = Learned::default();
            for (step, (address, length, flags, valid_s, preferred_s)) in
                all.into_iter().enumerate()
            {
                let (now_ns, prefix) = (step as u64 * S, Ipv6Addr::from(address));
                learned.hear_prefix(
                    &PrefixInformation { length, flags, valid_s, preferred_s, prefix },
                    now_ns,
                );
                learned.hear_route(
                    prefix,
                    &RouteSays { prefix, length, flags, lifetime_s: valid_s },
                    now_ns,
                );
                learned.hear_router(prefix, &router(valid_s as u16, preferred_s), 1500, now_ns);
                learned.expire(now_ns);
                prop_assert!(learned.routers.len() <= DEFAULT_ROUTERS_MAX);
                prop_assert!(learned.prefixes.len() <= LINK_PREFIXES_MAX);
                prop_assert!(learned.routes.len() <= LINK_ROUTES_MAX);
                for (prefix, known) in &learned.prefixes {
                    prop_assert!(!prefix.address().is_unicast_link_local() && prefix.length() > 0);
                    prop_assert!(known.address.is_none() || prefix.length() == 64);
                    prop_assert!(known.address.is_none_or(|times| times.valid_until_ns > now_ns));
                }
            }
        }
    }
}

//! What an interface advertises (RFC 4861 §6.2.1), with VPP's values where nothing is configured.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use quiver_wire::Ip6Prefix;
use quiver_wire::icmp6::nd::router_flags;

/// Prefixes in one advertisement, own ones included, at most: with everything else they fit into
/// the smallest MTU of IPv6.
pub const PREFIXES_MAX: usize = 16;
/// Routes in one advertisement at most.
pub const ROUTES_MAX: usize = 8;
/// Name servers in one advertisement at most.
pub const DNS_SERVERS_MAX: usize = 6;
/// Search domains in one advertisement at most.
pub const DNS_DOMAINS_MAX: usize = 6;
/// Bytes of all search domains as they are sent, at most.
pub const DNS_DOMAINS_BYTES_MAX: usize = 200;
/// Advertisements in the quick beginning (RFC 4861 §10, MAX_INITIAL_RTR_ADVERTISEMENTS).
pub const INITIAL_COUNT: u8 = 3;
/// Seconds between them at most (MAX_INITIAL_RTR_ADVERT_INTERVAL).
pub const INITIAL_INTERVAL_S: u8 = 16;
/// Longest time between unsolicited advertisements, seconds.
pub const MAX_INTERVAL_S: u16 = 200;
/// How long a prefix is valid, seconds (30 days).
pub const VALID_S: u32 = 2_592_000;
/// How long addresses made of a prefix are preferred, seconds (7 days).
pub const PREFERRED_S: u32 = 604_800;
/// What hosts put into their packets.
pub const HOP_LIMIT: u8 = 64;
/// A lifetime without an end.
pub const FOREVER_S: u32 = u32::MAX;
/// The longest that a router can be a default router, seconds (RFC 4861 §6.2.1).
const LIFETIME_S_MAX: u16 = 9000;

/// How much a host prefers a router or a route (RFC 4191 §2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    /// Before others.
    High,
    /// As if it said nothing.
    #[default]
    Medium,
    /// After others.
    Low,
}

impl Preference {
    /// As flags of an advertisement or a route.
    pub fn bits(self) -> u8 {
        match self {
            Preference::High => 0x08,
            Preference::Medium => 0,
            Preference::Low => 0x18,
        }
    }

    /// What flags say; the reserved value is medium (RFC 4191 §2.2).
    pub fn of(flags: u8) -> Preference {
        match flags & router_flags::PREFERENCE {
            0x08 => Preference::High,
            0x18 => Preference::Low,
            _ => Preference::Medium,
        }
    }

    /// What flags of a route say, of which the reserved value leaves nothing (RFC 4191 §2.3).
    pub fn of_route(flags: u8) -> Option<Preference> {
        (flags & router_flags::PREFERENCE != 0x10).then(|| Preference::of(flags))
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Preference::High => "high",
            Preference::Medium => "medium",
            Preference::Low => "low",
        }
    }

    /// What the word means.
    pub fn from_word(word: &str) -> Preference {
        match word {
            "high" => Preference::High,
            "low" => Preference::Low,
            _ => Preference::Medium,
        }
    }
}

/// What is said of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixConfig {
    /// How long it is valid, seconds.
    pub valid_s: u32,
    /// How long addresses made of it are preferred, seconds; not more than it is valid.
    pub preferred_s: u32,
    /// Hosts reach its addresses directly.
    pub on_link: bool,
    /// Hosts make addresses of it.
    pub autonomous: bool,
    /// It is told at all. An own prefix that is not to be told is configured so.
    pub advertise: bool,
}

impl Default for PrefixConfig {
    fn default() -> PrefixConfig {
        PrefixConfig {
            valid_s: VALID_S,
            preferred_s: PREFERRED_S,
            on_link: true,
            autonomous: true,
            advertise: true,
        }
    }
}

/// A route that is told to hosts (RFC 4191 §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteConfig {
    /// How long it holds, seconds; as long as the router is a default router when it is not said.
    pub lifetime_s: Option<u32>,
    /// How much it is preferred.
    pub preference: Preference,
}

/// What one interface advertises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaConfig {
    /// Advertisements are sent (`no ra-suppress`).
    pub advertise: bool,
    /// They are not sent until it is said otherwise (`ra-cease`).
    pub ceased: bool,
    /// Hosts get addresses by DHCPv6.
    pub managed: bool,
    /// Hosts get other configuration by DHCPv6.
    pub other: bool,
    /// The router's MAC address is told.
    pub with_mac: bool,
    /// Solicitations are answered to their sender alone.
    pub unicast: bool,
    /// How long the router is a default router, seconds; three times the longest interval when it
    /// is not said.
    pub lifetime_s: Option<u16>,
    /// Advertisements in the quick beginning.
    pub initial_count: u8,
    /// Seconds between them.
    pub initial_interval_s: u8,
    /// Longest time between advertisements, seconds.
    pub max_interval_s: u16,
    /// Shortest; three quarters of the longest when it is not said.
    pub min_interval_s: Option<u16>,
    /// What hosts put into their packets; 0: not said.
    pub hop_limit: u8,
    /// How long a neighbour counts as reachable, milliseconds; 0: not said.
    pub reachable_ms: u32,
    /// Time between solicitations, milliseconds; 0: not said.
    pub retransmit_ms: u32,
    /// MTU of the link, bytes; the interface's when it is `None`, not told when it is 0.
    pub mtu_bytes: Option<u32>,
    /// How much hosts prefer this router.
    pub preference: Preference,
    /// What is said of prefixes.
    pub prefixes: BTreeMap<Ip6Prefix, PrefixConfig>,
    /// Routes.
    pub routes: BTreeMap<Ip6Prefix, RouteConfig>,
    /// Name servers, and for how many seconds each may be asked when that is said.
    pub dns_servers: Vec<(Ipv6Addr, Option<u32>)>,
    /// Search domains, likewise.
    pub dns_domains: Vec<(String, Option<u32>)>,
}

impl Default for RaConfig {
    fn default() -> RaConfig {
        RaConfig {
            advertise: false,
            ceased: false,
            managed: false,
            other: false,
            with_mac: true,
            unicast: false,
            lifetime_s: None,
            initial_count: INITIAL_COUNT,
            initial_interval_s: INITIAL_INTERVAL_S,
            max_interval_s: MAX_INTERVAL_S,
            min_interval_s: None,
            hop_limit: HOP_LIMIT,
            reachable_ms: 0,
            retransmit_ms: 0,
            mtu_bytes: None,
            preference: Preference::Medium,
            prefixes: BTreeMap::new(),
            routes: BTreeMap::new(),
            dns_servers: Vec::new(),
            dns_domains: Vec::new(),
        }
    }
}

impl RaConfig {
    /// How long the router is a default router, seconds.
    pub fn lifetime_s(&self) -> u16 {
        self.lifetime_s.unwrap_or_else(|| self.max_interval_s.saturating_mul(3).min(LIFETIME_S_MAX))
    }

    /// Shortest time between advertisements, seconds (RFC 4861 §6.2.1, MinRtrAdvInterval).
    pub fn min_interval_s(&self) -> u16 {
        self.min_interval_s.unwrap_or_else(|| (self.max_interval_s * 3 / 4).max(3))
    }

    /// How long name servers and domains may be used when nothing is said, seconds: three times the
    /// longest interval (RFC 8106 §5.1).
    pub fn dns_lifetime_s(&self) -> u32 {
        u32::from(self.max_interval_s) * 3
    }

    /// What contradicts itself (RFC 4861 §6.2.1), with what would be right.
    pub fn check(&self) -> Result<(), (String, String)> {
        let (max, min) = (self.max_interval_s, self.min_interval_s());
        if min < 3 || u32::from(min) * 4 > u32::from(max) * 3 && self.min_interval_s.is_some() {
            let most = max * 3 / 4;
            return Err((
                format!("the shortest interval of {min} s does not suit the longest of {max} s"),
                format!("it must be 3 to {most} s: at most three quarters of the longest"),
            ));
        }
        if let Some(lifetime) = self.lifetime_s.filter(|lifetime| *lifetime != 0 && *lifetime < max)
        {
            return Err((
                format!(
                    "a lifetime of {lifetime} s ends before the next advertisement, up to {max} s \
                     later"
                ),
                format!("it must be 0, or {max} to {LIFETIME_S_MAX} s"),
            ));
        }
        for (prefix, said) in &self.prefixes {
            if said.preferred_s > said.valid_s {
                let what = format!(
                    "{prefix} cannot be preferred for {} s when it is valid for {} s only",
                    said.preferred_s, said.valid_s
                );
                return Err((
                    what,
                    "the valid lifetime comes first, and is the longer one".to_owned(),
                ));
            }
        }
        self.check_limits()
    }

    fn check_limits(&self) -> Result<(), (String, String)> {
        let counts = [
            ("prefixes", self.prefixes.len(), PREFIXES_MAX),
            ("routes", self.routes.len(), ROUTES_MAX),
            ("name servers", self.dns_servers.len(), DNS_SERVERS_MAX),
            ("search domains", self.dns_domains.len(), DNS_DOMAINS_MAX),
            (
                "bytes of search domains",
                self.dns_domains.iter().map(|(name, _)| name.len() + 2).sum(),
                DNS_DOMAINS_BYTES_MAX,
            ),
        ];
        match counts.into_iter().find(|(_, count, max)| count > max) {
            Some((what, count, max)) => Err((
                format!("{count} {what} do not fit into an advertisement"),
                format!("at most {max} do"),
            )),
            None => Ok(()),
        }
    }
}

/// Is this a domain name that can be sent: labels of 1 to 63 letters, digits and hyphens (RFC 1035
/// §2.3.1)?
pub fn is_domain(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_follows_from_the_longest_interval() {
        let mut config = RaConfig { max_interval_s: 30, ..RaConfig::default() };
        assert_eq!(
            (config.lifetime_s(), config.min_interval_s(), config.dns_lifetime_s()),
            (90, 22, 90)
        );
        assert!(config.check().is_ok());
        config.max_interval_s = 4;
        assert_eq!(config.min_interval_s(), 3);
        assert!(config.check().is_ok());
    }

    #[test]
    fn contradictions_are_refused_with_what_would_be_right() {
        let refused = |change: fn(&mut RaConfig)| {
            let mut config = RaConfig::default();
            change(&mut config);
            config.check().unwrap_err().1
        };
        assert_eq!(refused(|c| c.lifetime_s = Some(100)), "it must be 0, or 200 to 9000 s");
        assert!(refused(|c| c.min_interval_s = Some(151)).contains("3 to 150 s"));
        let late = |c: &mut RaConfig| {
            let said = PrefixConfig { valid_s: 10, preferred_s: 20, ..PrefixConfig::default() };
            c.prefixes.insert("2001:db8::/64".parse().unwrap(), said);
        };
        assert!(refused(late).contains("valid lifetime"));
        assert_eq!(
            refused(|c| c.dns_servers = vec![(Ipv6Addr::LOCALHOST, None); DNS_SERVERS_MAX + 1]),
            "at most 6 do"
        );
    }

    #[test]
    fn a_domain_is_labels_with_dots_between() {
        assert!(is_domain("example.com") && is_domain("a-1.b"));
        for wrong in ["", ".", "a..b", "a.b.", "a b", &"x".repeat(64)] {
            assert!(!is_domain(wrong), "{wrong}");
        }
    }

    #[test]
    fn preferences_have_the_bits_of_rfc_4191() {
        for preference in [Preference::High, Preference::Medium, Preference::Low] {
            assert_eq!(Preference::of(preference.bits() | 0xe7), preference);
            assert_eq!(Preference::from_word(preference.word()), preference);
        }
        assert_eq!(Preference::of(0x10), Preference::Medium, "reserved");
    }
}

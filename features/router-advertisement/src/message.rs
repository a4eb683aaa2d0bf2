//! An advertisement as it is sent: the whole IPv6 packet, made of what is configured and what the
//! interface is (RFC 4861 §4.2, §6.2.3; RFC 4191; RFC 8106).

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use quiver_wire::icmp6::nd::{
    self, NdOption, Options, PrefixInformation, option_kind, prefix_flags, router_flags,
};
use quiver_wire::icmp6::{self, Icmp6Header};
use quiver_wire::{Header, Ip6Header, Ip6Prefix, IpProtocol, MacAddress};

use crate::config::{PREFIXES_MAX, PrefixConfig, RaConfig};

/// Bytes of the fixed part of an advertisement behind the ICMPv6 header.
const TIMERS_BYTES: usize = 8;
/// Advertisements in which a prefix that has gone is told.
const GONE_COUNT: u8 = 3;

/// What an advertisement needs to know of its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// The source of what is sent.
    pub link_local: Ipv6Addr,
    /// The MAC address; none where frames have none.
    pub mac: Option<MacAddress>,
    /// MTU of the link, bytes.
    pub mtu_bytes: u32,
    /// Its subnets.
    pub prefixes: Vec<Ip6Prefix>,
}

/// Prefixes with what is said of each.
pub type AdvertisedPrefixes = Vec<(Ip6Prefix, PrefixConfig)>;

/// A prefix that is not told any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// The prefix.
    pub prefix: Ip6Prefix,
    /// What was said of it last. Its flags stay as they are: another router may tell the same
    /// prefix, and with a flag that was never set hosts would take back what they have from that
    /// router.
    pub said: PrefixConfig,
    /// In how many more advertisements it has no time left.
    pub left: u8,
}

impl Gone {
    /// `gone`, when `before` was told until now and `now` is told from here on.
    pub fn follow(
        gone: &mut Vec<Gone>,
        before: AdvertisedPrefixes,
        now: &[(Ip6Prefix, PrefixConfig)],
    ) {
        let is_told = |prefix| now.iter().any(|(told, _)| *told == prefix);
        let vanished = before.into_iter().filter(|(prefix, _)| !is_told(*prefix));
        gone.extend(vanished.map(|(prefix, said)| Gone { prefix, said, left: GONE_COUNT }));
        gone.retain(|gone| !is_told(gone.prefix));
        gone.truncate(PREFIXES_MAX);
    }
}

/// The prefixes that are told, with what is said of each: the interface's own and the configured
/// ones, and those that have just gone, whose addresses hosts shall leave. And how many do not fit.
pub fn prefixes(config: &RaConfig, own: &Own, gone: &[Gone]) -> (AdvertisedPrefixes, usize) {
    let mut all: BTreeMap<Ip6Prefix, PrefixConfig> =
        own.prefixes.iter().map(|prefix| (*prefix, PrefixConfig::default())).collect();
    all.extend(config.prefixes.iter().map(|(prefix, said)| (*prefix, *said)));
    for gone in gone {
        let last = PrefixConfig { valid_s: 0, preferred_s: 0, ..gone.said };
        all.entry(gone.prefix).or_insert(last);
    }
    let mut told: Vec<_> = all.into_iter().filter(|(_, said)| said.advertise).collect();
    let left_out = told.len().saturating_sub(PREFIXES_MAX);
    told.truncate(PREFIXES_MAX);
    (told, left_out)
}

/// The options of an advertisement.
fn options(config: &RaConfig, own: &Own, gone: &[Gone]) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(mac) = own.mac.filter(|_| config.with_mac) {
        put(&mut out, NdOption::SourceMac(mac));
    }
    match config.mtu_bytes.unwrap_or(own.mtu_bytes) {
        0 => {}
        mtu => put(&mut out, NdOption::Mtu(mtu)),
    }
    for (prefix, said) in prefixes(config, own, gone).0 {
        let on_link = if said.on_link { prefix_flags::ON_LINK } else { 0 };
        let autonomous = if said.autonomous { prefix_flags::AUTONOMOUS } else { 0 };
        let information = PrefixInformation {
            length: prefix.length(),
            flags: on_link | autonomous,
            valid_s: said.valid_s,
            preferred_s: said.preferred_s,
            prefix: prefix.address(),
        };
        put(&mut out, NdOption::Prefix(information));
    }
    for (prefix, route) in &config.routes {
        let lifetime = route.lifetime_s.unwrap_or(u32::from(config.lifetime_s()));
        // RFC 4191 §2.3: as much of the prefix as its length asks for.
        let octets = prefix.address().octets();
        let used = [0, 8, 16][usize::from(prefix.length()).div_ceil(64)];
        let mut data = vec![prefix.length(), route.preference.bits()];
        data.extend(lifetime.to_be_bytes());
        data.extend(&octets[..used]);
        put(&mut out, NdOption::Other { kind: option_kind::ROUTE_INFORMATION, data: &data });
    }
    dns_options(config, &mut out);
    out
}

/// Name servers and search domains, one option for each lifetime (RFC 8106 §5.1, §5.2).
fn dns_options(config: &RaConfig, out: &mut Vec<u8>) {
    let usual = config.dns_lifetime_s();
    let mut servers: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for (server, lifetime) in &config.dns_servers {
        servers.entry(lifetime.unwrap_or(usual)).or_default().extend(server.octets());
    }
    let mut domains: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for (name, lifetime) in &config.dns_domains {
        let bytes = domains.entry(lifetime.unwrap_or(usual)).or_default();
        for label in name.split('.') {
            bytes.push(label.len() as u8);
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
    }
    let with_kind =
        |kind, all: BTreeMap<u32, Vec<u8>>| all.into_iter().map(move |(at, b)| (kind, at, b));
    let all = with_kind(option_kind::RDNSS, servers).chain(with_kind(option_kind::DNSSL, domains));
    for (kind, lifetime, bytes) in all {
        let mut data = vec![0, 0];
        data.extend(lifetime.to_be_bytes());
        data.extend(bytes);
        data.resize((data.len() + 2).next_multiple_of(8) - 2, 0);
        put(out, NdOption::Other { kind, data: &data });
    }
}

fn put(out: &mut Vec<u8>, option: NdOption<'_>) {
    let length = match option {
        NdOption::Prefix(_) => 32,
        NdOption::Other { data, .. } => data.len() + 2,
        _ => 8,
    };
    let at = out.len();
    out.resize(at + length, 0);
    let written = option.emit(&mut out[at..]);
    debug_assert_eq!(written, Ok(length), "options are multiples of 8 bytes");
}

/// The packet, from its IPv6 header on. The final one says that the router is no default router any
/// more (RFC 4861 §6.2.5).
pub fn packet(
    config: &RaConfig,
    own: &Own,
    gone: &[Gone],
    to: Ipv6Addr,
    last: bool,
) -> Option<Vec<u8>> {
    let options = options(config, own, gone);
    let lifetime_s = if last { 0 } else { config.lifetime_s() };
    let managed = if config.managed { router_flags::MANAGED } else { 0 };
    let other = if config.other { router_flags::OTHER } else { 0 };
    // RFC 4191 §2.2: without a lifetime, no preference.
    let preference = if lifetime_s == 0 { 0 } else { config.preference.bits() };
    let message = icmp6::Message::Nd(nd::Message::RouterAdvertisement {
        hop_limit: config.hop_limit,
        flags: managed | other | preference,
        lifetime_s,
        reachable_ms: config.reachable_ms,
        retransmit_ms: config.retransmit_ms,
        options: Options::new(&options).ok()?,
    });
    let length = Icmp6Header::LEN + TIMERS_BYTES + options.len();
    let mut bytes = vec![0; Ip6Header::LEN + length];
    message.emit(own.link_local, to, bytes.get_mut(Ip6Header::LEN..)?).ok()?;
    let header =
        Ip6Header::new(own.link_local, to, IpProtocol::ICMP6, nd::HOP_LIMIT, length as u16);
    header.write(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DNS_DOMAINS_MAX, DNS_SERVERS_MAX, Preference, ROUTES_MAX, RouteConfig};
    use quiver_wire::ip6::{MTU_MIN, address::ALL_NODES};

    fn own() -> Own {
        Own {
            link_local: "fe80::1".parse().unwrap(),
            mac: Some(MacAddress([2, 0xfe, 0, 0, 0, 1])),
            mtu_bytes: 1500,
            prefixes: vec!["2001:db8:1::/64".parse().unwrap()],
        }
    }

    fn sent(config: &RaConfig, last: bool) -> Vec<NdOption<'static>> {
        let bytes = packet(config, &own(), &[], ALL_NODES, last).unwrap().leak();
        let parsed = icmp6::Message::parse(own().link_local, ALL_NODES, &bytes[40..]).unwrap();
        let icmp6::Message::Nd(message) = parsed else { panic!("{parsed:?}") };
        assert_eq!(message.check(own().link_local, ALL_NODES, bytes[7]), Ok(()));
        message.options().iter().collect()
    }

    #[test]
    fn the_subnets_of_the_interface_are_told_unless_they_are_kept_back() {
        let mut config = RaConfig::default();
        let told = |config: &RaConfig| {
            let is_prefix = |option: &NdOption<'_>| matches!(option, NdOption::Prefix(_));
            sent(config, false).into_iter().filter(is_prefix).count()
        };
        assert_eq!(told(&config), 1);
        let kept_back = PrefixConfig { advertise: false, ..PrefixConfig::default() };
        config.prefixes.insert(own().prefixes[0], kept_back);
        assert_eq!(told(&config), 0);
    }

    #[test]
    fn name_servers_share_an_option_when_they_share_a_lifetime() {
        let server = |last: u16| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
        let config = RaConfig {
            dns_servers: vec![(server(1), None), (server(2), None), (server(3), Some(60))],
            dns_domains: vec![("example.com".into(), None)],
            ..RaConfig::default()
        };
        let options = sent(&config, false);
        let of_kind = |wanted: u8| {
            let data = options.iter().filter_map(move |option| match option {
                NdOption::Other { kind, data } if *kind == wanted => Some(data.to_vec()),
                _ => None,
            });
            data.collect::<Vec<_>>()
        };
        let lengths: Vec<_> = of_kind(option_kind::RDNSS).iter().map(Vec::len).collect();
        assert_eq!(lengths, [22, 38]);
        let domains = &of_kind(option_kind::DNSSL)[0];
        assert_eq!(domains[6..19], *b"\x07example\x03com\x00");
    }

    #[test]
    fn a_route_takes_as_many_bytes_as_its_length_asks_for() {
        for (prefix, bytes) in [("::/0", 6), ("2001:db8::/32", 14), ("2001:db8::1/128", 22)] {
            let mut config = RaConfig::default();
            let route = RouteConfig { lifetime_s: None, preference: Preference::Low };
            config.routes.insert(prefix.parse().unwrap(), route);
            let options = sent(&config, false);
            let Some(NdOption::Other { kind: 24, data }) = options.last() else {
                panic!("{options:?}")
            };
            assert_eq!((data.len(), data[1]), (bytes, 0x18), "{prefix}");
        }
    }

    #[test]
    fn the_largest_advertisement_fits_into_the_smallest_mtu() {
        let prefix = |n: u16, length| {
            Ip6Prefix::covering(Ipv6Addr::new(n, 1, 2, 3, 0, 0, 0, 0), length).unwrap()
        };
        let config = RaConfig {
            prefixes: (0..20).map(|n| (prefix(n, 64), PrefixConfig::default())).collect(),
            routes: (0..ROUTES_MAX as u16)
                .map(|n| {
                    let address = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n);
                    let route = RouteConfig { lifetime_s: Some(1), preference: Preference::High };
                    (Ip6Prefix::host(address), route)
                })
                .collect(),
            dns_servers: (0..DNS_SERVERS_MAX as u32)
                .map(|n| (Ipv6Addr::LOCALHOST, Some(n)))
                .collect(),
            dns_domains: (0..DNS_DOMAINS_MAX as u32).map(|n| ("x".repeat(31), Some(n))).collect(),
            ..RaConfig::default()
        };
        let bytes = packet(&config, &own(), &[], ALL_NODES, false).unwrap();
        assert!(bytes.len() <= MTU_MIN, "{}", bytes.len());
        let (told, left_out) = prefixes(&config, &own(), &[]);
        assert_eq!((told.len(), left_out), (PREFIXES_MAX, 5));
    }

    #[test]
    fn the_last_one_says_that_the_router_is_none_and_has_no_preference() {
        let config =
            RaConfig { preference: Preference::High, managed: true, ..RaConfig::default() };
        let bytes = packet(&config, &own(), &[], ALL_NODES, true).unwrap();
        assert_eq!(bytes[40 + 5], 0x80);
        assert_eq!(bytes[40 + 6..40 + 8], [0, 0]);
    }

    #[test]
    fn a_prefix_that_has_gone_is_told_with_no_time_left() {
        let prefix: Ip6Prefix = "2001:db8:9::/64".parse().unwrap();
        for (on_link, autonomous) in [(true, true), (true, false), (false, true)] {
            let said = PrefixConfig { on_link, autonomous, ..PrefixConfig::default() };
            let mut gone = Vec::new();
            Gone::follow(&mut gone, vec![(prefix, said)], &[]);
            let (told, _) = prefixes(&RaConfig::default(), &own(), &gone);
            let last = told.iter().find(|(told, _)| *told == prefix).unwrap().1;
            assert_eq!(last, PrefixConfig { valid_s: 0, preferred_s: 0, ..said });
            Gone::follow(&mut gone, AdvertisedPrefixes::new(), &[(prefix, said)]);
            assert_eq!(gone, [], "it is there again");
        }
    }
}

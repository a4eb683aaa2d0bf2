//! `ip6 nd INTERFACE …`: what an interface advertises, in VPP's words.

use std::fmt::Write as _;
use std::net::Ipv6Addr;

use quiver_control::{Args, Command, ConfigWriter, IpPrefix, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_wire::Ip6Prefix;
use quiver_wire::ip6::address::{is_link_local, is_multicast, is_unicast};

use crate::config::{FOREVER_S, Preference, PrefixConfig, RaConfig, RouteConfig, is_domain};
use crate::sender;
use crate::state::RaState;

/// The chapter of the reference page.
pub(crate) const GROUP: &str = "Layer 3";

/// One declaration, for commands that begin alike up to a value must be one.
const SYNTAX: &str = "ip6 nd <interface> ( <negate:'no'> ( {[ra-suppress] [ra-managed-config-flag] \
    [ra-other-config-flag] [ra-suppress-link-layer] [ra-send-unicast] [ra-cease] [ra-lifetime] \
    [ra-initial] [ra-interval] [ra-hop-limit] [ra-reachable-time] [ra-retransmit-time] [ra-mtu] \
    [ra-preference]} | prefix <prefix:prefix6> | ra-route <route:prefix6> | ra-dns-server \
    <server:ip6> | ra-dns-search <domain:word> ) | \
    {[ra-suppress] [ra-managed-config-flag] [ra-other-config-flag] [ra-suppress-link-layer] \
    [ra-send-unicast] [ra-cease] [ra-lifetime <lifetime:0-9000>] [ra-initial <count:1-3> \
    <every:1-16>] [ra-interval <max:4-1800> [<min:3-1350>]] [ra-hop-limit <hop-limit:u8>] \
    [ra-reachable-time <reachable:0-3600000>] [ra-retransmit-time <retransmit:u32>] [ra-mtu \
    <mtu:0-65535>] [ra-preference <preference:high|medium|low>]} | prefix <prefix:prefix6> \
    {[<valid:u32> <preferred:u32>] [default] [infinite] [off-link] [no-autoconfig] [no-onlink] \
    [no-advertise]} | ra-route <route:prefix6> \
    {[lifetime <seconds:u32>] [preference <preference:high|medium|low>]} | ra-dns-server \
    <server:ip6> [lifetime <seconds:u32>] | ra-dns-search <domain:word> [lifetime <seconds:u32>] )";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(SYNTAX)
            .entry(
                order::FEATURES,
                "interfaces.<interface>.router-advertisements.enabled: true with negate=no \
                 ra-suppress",
            )
            .entry(
                order::FEATURES,
                "interfaces.<interface>.router-advertisements.prefixes.<prefix>: {valid-lifetime: \
                 <valid>, preferred-lifetime: <preferred>, default, infinite, off-link, \
                 no-autoconfig, no-onlink, no-advertise}",
            )
            .entry(
                order::FEATURES,
                "interfaces.<interface>.router-advertisements.routes.<route>: {lifetime: \
                 <seconds>, preference}",
            )
            .entry(
                order::FEATURES,
                "interfaces.<interface>.router-advertisements.dns-servers.<server>: {lifetime: \
                 <seconds>}",
            )
            .entry(
                order::FEATURES,
                "interfaces.<interface>.router-advertisements.dns-search.<domain>: {lifetime: \
                 <seconds>}",
            )
            .entry(
                order::FEATURES,
                "interfaces.<interface>.router-advertisements: some{managed: \
                 <ra-managed-config-flag?>, other-config: <ra-other-config-flag?>, suppress: \
                 <ra-suppress?>, suppress-link-layer: <ra-suppress-link-layer?>, send-unicast: \
                 <ra-send-unicast?>, cease: <ra-cease?>, lifetime, initial-count: <count>, \
                 initial-interval: <every>, max-interval: <max>, min-interval: <min>, hop-limit, \
                 reachable-time: <reachable>, retransmit-time: <retransmit>, mtu, preference}",
            )
            .undo("<negate!> ip6 nd <interface> ra-suppress")
            .undo("ip6 nd <interface> no prefix <prefix>")
            .undo("ip6 nd <interface> no ra-route <route>")
            .undo("ip6 nd <interface> no ra-dns-server <server>")
            .undo("ip6 nd <interface> no ra-dns-search <domain>")
            .undo(
                "ip6 nd <interface> no ra-managed-config-flag ra-other-config-flag \
                 ra-suppress-link-layer ra-send-unicast ra-cease ra-lifetime ra-initial \
                 ra-interval ra-hop-limit ra-reachable-time ra-retransmit-time ra-mtu \
                 ra-preference",
            )
            .group(GROUP)
            .help("Say what the router advertises to the IPv6 hosts on an interface")
            .details(
                "Nothing is advertised before `ip6 nd INTERFACE no ra-suppress` (RFC 4861 \
                 §6.2.1). The subnets of the interface are advertised without being configured, \
                 with lifetimes of 30 and 7 days, until something else is said of them. What \
                 changes is told to hosts soon. `no` takes back what was said: all is again as if \
                 it had not been configured.",
            )
            .word(
                "ra-suppress",
                "advertise nothing; hosts are told that the router is none any more",
            )
            .word("ra-managed-config-flag", "hosts get addresses by DHCPv6")
            .word("ra-other-config-flag", "hosts get other configuration by DHCPv6")
            .word("ra-suppress-link-layer", "leave the router's MAC address out")
            .word("ra-send-unicast", "answer solicitations to their sender alone")
            .word(
                "ra-cease",
                "say that the router is none any more, and advertise nothing until `no ra-cease`",
            )
            .word("lifetime", "seconds as a default router; 0: it is none")
            .word("count", "advertisements in the quick beginning")
            .word("every", "seconds between them at most")
            .word("max", "longest time between advertisements, seconds")
            .word("min", "shortest, seconds; at most three quarters of the longest")
            .word("hop-limit", "what hosts put into their packets; 0: not said")
            .word("reachable", "milliseconds that a neighbour counts as reachable; 0: not said")
            .word("retransmit", "milliseconds between solicitations; 0: not said")
            .word("mtu", "MTU of the link, bytes; 0: not said")
            .word("preference", "how much hosts prefer this router or route (RFC 4191)")
            .word("valid", "seconds that addresses made of the prefix are valid")
            .word("preferred", "seconds that they are preferred; not more than they are valid")
            .word("default", "the default lifetimes")
            .word("infinite", "lifetimes without an end")
            .word("off-link", "hosts do not reach addresses of the prefix directly")
            .word("no-onlink", "the same")
            .word("no-autoconfig", "hosts make no addresses of the prefix")
            .word("no-advertise", "the prefix is not advertised")
            .word("route", "a route behind this router (RFC 4191)")
            .word("server", "a name server (RFC 8106)")
            .word("domain", "a domain to search names in (RFC 8106)")
            .word(
                "seconds",
                "how long it may be used; when it is not said, a route as long as the router is a \
                 default router, the others three times the longest interval",
            )
            .example("ip6 nd e0 no ra-suppress")
            .example("ip6 nd e0 ra-interval 30 10 ra-lifetime 180")
            .example("ip6 nd e0 prefix 2001:db8:1::/64 86400 14400")
            .example("ip6 nd e0 prefix 2001:db8:2::/64 infinite no-autoconfig")
            .example("ip6 nd e0 no prefix 2001:db8:1::/64")
            .example("ip6 nd e0 ra-route 2001:db8:ff::/48 preference high")
            .example("ip6 nd e0 ra-dns-server 2001:db8::53")
            .example("ip6 nd e0 ra-dns-search example.com")
            .run(|engine: &mut Engine, args| {
                let set = if args.has("prefix") {
                    set_prefix
                } else if args.has("route") {
                    set_route
                } else if args.has("server") {
                    set_dns_server
                } else if args.has("domain") {
                    set_dns_domain
                } else if args.has("negate") {
                    set_usual
                } else {
                    set
                };
                change(engine, args, |config| set(config, args))
            }),
    );
}

/// Change what an interface advertises; a contradiction is refused, and nothing is changed.
fn change(
    engine: &mut Engine,
    args: &Args<'_>,
    change: impl FnOnce(&mut RaConfig) -> Result<(), Refusal>,
) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let known = engine.get::<RaState>().and_then(|state| state.interfaces.get(&id));
    let mut config = known.map(|advertiser| advertiser.config.clone()).unwrap_or_default();
    change(&mut config)?;
    config.check().map_err(|(what, remedy)| Refusal::new(what).remedy(remedy))?;
    sender::work(engine, |engine, state| {
        let before = std::mem::replace(&mut state.interfaces.entry(id).or_default().config, config);
        sender::configured(engine, state, id, &before);
    });
    Ok(Output::none())
}

fn nothing_said(args: &Args<'_>) -> Refusal {
    Refusal::new(format!("{}: nothing to set", args.command()))
        .remedy("ip6 nd INTERFACE ra-interval 30 10")
}

fn not_there(args: &Args<'_>, name: &str, what: &str) -> Refusal {
    args.refuse(name, format!("{what} is not configured")).remedy("show ip6 nd tells what is")
}

/// Arguments that say that something was asked for, even if it was so before.
const SETTINGS: [&str; 14] = [
    "ra-suppress",
    "ra-managed-config-flag",
    "ra-other-config-flag",
    "ra-suppress-link-layer",
    "ra-send-unicast",
    "ra-cease",
    "lifetime",
    "count",
    "max",
    "hop-limit",
    "reachable",
    "retransmit",
    "mtu",
    "preference",
];

fn set(config: &mut RaConfig, args: &Args<'_>) -> Result<(), Refusal> {
    if !SETTINGS.iter().any(|word| args.has(word)) {
        return Err(nothing_said(args));
    }
    config.advertise &= !args.has("ra-suppress");
    config.managed |= args.has("ra-managed-config-flag");
    config.other |= args.has("ra-other-config-flag");
    config.with_mac &= !args.has("ra-suppress-link-layer");
    config.unicast |= args.has("ra-send-unicast");
    config.ceased |= args.has("ra-cease");
    config.lifetime_s = args.optional("lifetime")?.or(config.lifetime_s);
    config.initial_count = args.or("count", config.initial_count)?;
    config.initial_interval_s = args.or("every", config.initial_interval_s)?;
    if args.has("max") {
        config.max_interval_s = args.get("max")?;
        config.min_interval_s = args.optional("min")?;
    }
    config.hop_limit = args.or("hop-limit", config.hop_limit)?;
    config.reachable_ms = args.or("reachable", config.reachable_ms)?;
    config.retransmit_ms = args.or("retransmit", config.retransmit_ms)?;
    config.mtu_bytes = args.optional("mtu")?.or(config.mtu_bytes);
    if let Some(word) = args.optional::<&str>("preference")? {
        config.preference = Preference::from_word(word);
    }
    Ok(())
}

fn set_usual(config: &mut RaConfig, args: &Args<'_>) -> Result<(), Refusal> {
    let usual = RaConfig::default();
    let mut said = false;
    let mut has = |word: &str| {
        said |= args.has(word);
        args.has(word)
    };
    config.advertise |= has("ra-suppress");
    config.managed &= !has("ra-managed-config-flag");
    config.other &= !has("ra-other-config-flag");
    config.with_mac |= has("ra-suppress-link-layer");
    config.unicast &= !has("ra-send-unicast");
    config.ceased &= !has("ra-cease");
    if has("ra-lifetime") {
        config.lifetime_s = usual.lifetime_s;
    }
    if has("ra-initial") {
        (config.initial_count, config.initial_interval_s) =
            (usual.initial_count, usual.initial_interval_s);
    }
    if has("ra-interval") {
        (config.max_interval_s, config.min_interval_s) =
            (usual.max_interval_s, usual.min_interval_s);
    }
    if has("ra-hop-limit") {
        config.hop_limit = usual.hop_limit;
    }
    if has("ra-reachable-time") {
        config.reachable_ms = usual.reachable_ms;
    }
    if has("ra-retransmit-time") {
        config.retransmit_ms = usual.retransmit_ms;
    }
    if has("ra-mtu") {
        config.mtu_bytes = usual.mtu_bytes;
    }
    if has("ra-preference") {
        config.preference = usual.preference;
    }
    if said { Ok(()) } else { Err(nothing_said(args)) }
}

/// A prefix of a command.
fn prefix_of(args: &Args<'_>, name: &str) -> Result<Ip6Prefix, Refusal> {
    let written: IpPrefix = args.get(name)?;
    let (address, length) = written.as_ip6().ok_or_else(|| args.refuse(name, "no IPv6 prefix"))?;
    Ip6Prefix::new(address, length).map_err(|error| args.refuse(name, error.to_string()))
}

fn set_prefix(config: &mut RaConfig, args: &Args<'_>) -> Result<(), Refusal> {
    let prefix = prefix_of(args, "prefix")?;
    if args.has("negate") {
        let known = config.prefixes.remove(&prefix);
        return known.map(drop).ok_or_else(|| not_there(args, "prefix", &prefix.to_string()));
    }
    if is_link_local(prefix.address()) || is_multicast(prefix.address()) || prefix.length() == 0 {
        let what = format!("{prefix} is no prefix that hosts can have addresses of");
        return Err(args.refuse("prefix", what));
    }
    let mut said = PrefixConfig::default();
    if args.has("infinite") {
        (said.valid_s, said.preferred_s) = (FOREVER_S, FOREVER_S);
    }
    said.valid_s = args.or("valid", said.valid_s)?;
    said.preferred_s = args.or("preferred", said.preferred_s)?;
    said.on_link = !args.has("off-link") && !args.has("no-onlink");
    said.autonomous = !args.has("no-autoconfig");
    said.advertise = !args.has("no-advertise");
    config.prefixes.insert(prefix, said);
    Ok(())
}

fn set_route(config: &mut RaConfig, args: &Args<'_>) -> Result<(), Refusal> {
    let prefix = prefix_of(args, "route")?;
    if args.has("negate") {
        let known = config.routes.remove(&prefix);
        return known.map(drop).ok_or_else(|| not_there(args, "route", &prefix.to_string()));
    }
    let preference = Preference::from_word(args.or("preference", "medium")?);
    config.routes.insert(prefix, RouteConfig { lifetime_s: args.optional("seconds")?, preference });
    Ok(())
}

fn set_dns_server(config: &mut RaConfig, args: &Args<'_>) -> Result<(), Refusal> {
    let server: Ipv6Addr = args.get("server")?;
    if !is_unicast(server) {
        return Err(args.refuse("server", format!("{server} is no host's address")));
    }
    let done = set_in_list(&mut config.dns_servers, server, args)?;
    if done { Ok(()) } else { Err(not_there(args, "server", &server.to_string())) }
}

fn set_dns_domain(config: &mut RaConfig, args: &Args<'_>) -> Result<(), Refusal> {
    let domain: &str = args.get("domain")?;
    if !is_domain(domain) {
        let what = format!("'{domain}' is no domain name");
        return Err(args
            .refuse("domain", what)
            .remedy("labels of letters, digits and hyphens, with dots"));
    }
    let done = set_in_list(&mut config.dns_domains, domain.to_owned(), args)?;
    if done { Ok(()) } else { Err(not_there(args, "domain", domain)) }
}

/// Add `what`, or take it away; false when it is not there to be taken.
fn set_in_list<T: PartialEq>(
    list: &mut Vec<(T, Option<u32>)>,
    what: T,
    args: &Args<'_>,
) -> Result<bool, Refusal> {
    let place = list.iter().position(|(known, _)| *known == what);
    match (place, args.has("negate")) {
        (None, true) => return Ok(false),
        (Some(place), true) => drop(list.remove(place)),
        (Some(place), false) => list[place].1 = args.optional("seconds")?,
        (None, false) => list.push((what, args.optional("seconds")?)),
    }
    Ok(true)
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, out: &mut ConfigWriter) {
    let Some(state) = engine.get::<RaState>() else { return };
    let all = state.interfaces.iter().map(|(id, advertiser)| (*id, advertiser));
    for (id, advertiser) in quiver_control::by_interface_name(engine, all) {
        let (name, config) = (engine.interface_name(id), &advertiser.config);
        let words = setting_words(config);
        if !words.is_empty() {
            out.command(format_args!("ip6 nd {name}{words}"));
        }
        for (prefix, said) in &config.prefixes {
            out.command(format_args!("ip6 nd {name} prefix {prefix}{}", prefix_words(said)));
        }
        for (prefix, route) in &config.routes {
            let lifetime = lifetime_words(route.lifetime_s);
            let preference = route.preference.word();
            out.command(format_args!(
                "ip6 nd {name} ra-route {prefix}{lifetime} preference {preference}"
            ));
        }
        for (server, lifetime) in &config.dns_servers {
            out.command(format_args!(
                "ip6 nd {name} ra-dns-server {server}{}",
                lifetime_words(*lifetime)
            ));
        }
        for (domain, lifetime) in &config.dns_domains {
            out.command(format_args!(
                "ip6 nd {name} ra-dns-search {domain}{}",
                lifetime_words(*lifetime)
            ));
        }
        if config.advertise {
            out.command(format_args!("ip6 nd {name} no ra-suppress"));
        }
    }
}

fn lifetime_words(lifetime_s: Option<u32>) -> String {
    lifetime_s.map_or_else(String::new, |seconds| format!(" lifetime {seconds}"))
}

/// What is said of a prefix in the words of the command, each with a space in front.
pub(crate) fn prefix_words(said: &PrefixConfig) -> String {
    let usual = PrefixConfig::default();
    let mut words = match (said.valid_s, said.preferred_s) {
        (FOREVER_S, FOREVER_S) => " infinite".to_owned(),
        (valid, preferred) if (valid, preferred) == (usual.valid_s, usual.preferred_s) => {
            String::new()
        }
        (valid, preferred) => format!(" {valid} {preferred}"),
    };
    let flags = [
        (said.on_link, " off-link"),
        (said.autonomous, " no-autoconfig"),
        (said.advertise, " no-advertise"),
    ];
    words.extend(flags.into_iter().filter(|(set, _)| !set).map(|(_, word)| word));
    words
}

/// Settings that differ from the usual ones in the words of the command, each with a space in
/// front.
fn setting_words(config: &RaConfig) -> String {
    let usual = RaConfig::default();
    let mut words = String::new();
    let flags = [
        (config.managed, " ra-managed-config-flag"),
        (config.other, " ra-other-config-flag"),
        (!config.with_mac, " ra-suppress-link-layer"),
        (config.unicast, " ra-send-unicast"),
        (config.ceased, " ra-cease"),
    ];
    words.extend(flags.into_iter().filter(|(set, _)| *set).map(|(_, word)| word));
    // Writing to a String cannot fail.
    if let Some(lifetime) = config.lifetime_s {
        let _ = write!(words, " ra-lifetime {lifetime}");
    }
    let initial = (config.initial_count, config.initial_interval_s);
    if initial != (usual.initial_count, usual.initial_interval_s) {
        let _ = write!(words, " ra-initial {} {}", initial.0, initial.1);
    }
    if (config.max_interval_s, config.min_interval_s) != (usual.max_interval_s, None) {
        let _ = write!(words, " ra-interval {}", config.max_interval_s);
        if let Some(min) = config.min_interval_s {
            let _ = write!(words, " {min}");
        }
    }
    let numbers = [
        ("ra-hop-limit", u32::from(config.hop_limit), u32::from(usual.hop_limit)),
        ("ra-reachable-time", config.reachable_ms, usual.reachable_ms),
        ("ra-retransmit-time", config.retransmit_ms, usual.retransmit_ms),
    ];
    for (word, value, _) in numbers.into_iter().filter(|(_, value, usual)| value != usual) {
        let _ = write!(words, " {word} {value}");
    }
    if let Some(mtu) = config.mtu_bytes {
        let _ = write!(words, " ra-mtu {mtu}");
    }
    if config.preference != usual.preference {
        let _ = write!(words, " ra-preference {}", config.preference.word());
    }
    words
}

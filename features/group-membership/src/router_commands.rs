//! `igmp enable`, `igmp proxy-dev` and the same of MLD: links on which this router asks, and for
//! which it is a proxy.

use quiver_control::{
    Args, Command, ConfigWriter, Output, Refusal, Registry, by_interface_name, order,
};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, FibError};
use quiver_wire::igmp;

use crate::commands::GROUP;
use crate::port::Version;
use crate::proxy::{self, Proxy};
use crate::querier::Timers;
use crate::router;
use crate::sender::work;
use crate::state::Membership;

/// Both protocols: the word of commands, what they are for.
const FAMILIES: [(Family, &str, &str); 2] =
    [(Family::Ip4, "igmp", "IPv4"), (Family::Ip6, "mld", "IPv6")];
/// The longest response time that IGMP can say, milliseconds.
const RESPONSE_MS_MAX: u64 = igmp::from_code8(255) as u64 * 100;

pub(crate) fn register(registry: &mut Registry) {
    for (family, word, ip) in FAMILIES {
        enable_command(registry, family, word, ip);
        timers_command(registry, family, word);
        proxy_commands(registry, family, word, ip);
        registry.command(
            Command::new(format!("clear {word} int <interface>").leak())
                .group(GROUP)
                .help(
                    format!("Forget which {ip} groups hosts of a link listen to, and ask anew")
                        .leak(),
                )
                .run(move |engine: &mut Engine, args| {
                    let id = args.interface(engine, "interface")?;
                    clear(engine, (id, family), word)
                }),
        );
    }
}

fn enable_command(registry: &mut Registry, family: Family, word: &'static str, ip: &str) {
    registry.command(
        Command::new(format!("{word} enable|disable {{[host|router]}} <interface>").leak())
            .entry(
                order::FEATURES,
                format!("interfaces.<interface>.{word}.router: true with enable router").leak(),
            )
            .undo(format!("{word} disable router <interface>").leak())
            .makes(format!("{word} router <interface>").leak())
            .group(GROUP)
            .help(
                format!("Ask hosts of a link which {ip} groups they listen to, or ask no more")
                    .leak(),
            )
            .details(
                "A router sends queries, unless a router with a lower address does, and knows who \
                 listens to what: `show igmp groups`, `show mld groups`, `subscribe event \
                 group-membership`. Forwarding follows multicast routes and proxies. Every \
                 interface is a host without being told, so host changes nothing.",
            )
            .word("host", "the side of a host, which every interface has")
            .word("router", "the side of a router, which is meant when neither is said")
            .example(format!("{word} enable router e0").leak())
            .run(move |engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                if args.has("host") {
                    return Ok(Output::none());
                }
                let asks = engine
                    .get::<Membership>()
                    .is_some_and(|state| state.routers.map.contains_key(&(id, family)));
                if args.has("enable") {
                    refuse_upstream(engine, args, (id, family), word)?;
                    work(engine, |engine, state| router::enable(engine, state, (id, family), None));
                } else if asks {
                    work(engine, |engine, state| router::disable(engine, state, (id, family)));
                } else {
                    return Err(no_router(engine, id, word));
                }
                Ok(Output::none())
            }),
    );
}

/// Upstream a proxy is a host (RFC 4605 §4), so it cannot be the router of that link too.
fn refuse_upstream(
    engine: &Engine,
    args: &Args<'_>,
    (id, family): (InterfaceId, Family),
    word: &str,
) -> Result<(), Refusal> {
    let Some(state) = engine.get::<Membership>() else { return Ok(()) };
    let Some(table) = state.proxies.table_of_upstream(id, family) else { return Ok(()) };
    let name = engine.interface_name(id);
    let what = format!("{name} is the upstream of the proxy of table {table}; there it is a host");
    let remedy = format!("`{word} proxy-dev del vrf-id {table} {name}` first");
    Err(args.refuse("interface", what).remedy(remedy))
}

#[cold]
fn no_router(engine: &Engine, id: InterfaceId, word: &str) -> Refusal {
    let name = engine.interface_name(id);
    Refusal::new(format!("{name} is no {word} router"))
        .remedy(format!("`{word} enable router {name}` makes it one"))
}

fn timers_command(registry: &mut Registry, family: Family, word: &'static str) {
    let usual_version = if family == Family::Ip4 { 3 } else { 2 };
    let versions = if family == Family::Ip4 { "1-3" } else { "1-2" };
    let syntax = format!(
        "set {word} querier <interface> {{[version <:{versions}>] [robustness <:1-7>] \
         [query-interval <:1-31744>] [response-interval <:100-{RESPONSE_MS_MAX}>] \
         [last-member-interval <:100-25500>]}}"
    );
    registry.command(
        Command::new(syntax.leak())
            .entry(
                order::FEATURES,
                format!(
                    "interfaces.<interface>.{word}.querier: some{{version, robustness, \
                     query-interval, response-interval, last-member-interval}}"
                )
                .leak(),
            )
            .undo(
                format!(
                    "set {word} querier <interface> version {usual_version} robustness 2 \
                     query-interval 125 response-interval 10000 last-member-interval 1000"
                )
                .leak(),
            )
            .amends(&["interface"])
            .stands_on(format!("{word} router <interface>").leak())
            .group(GROUP)
            .help("Set the timers of a router's side of a link; what is not said is as it was")
            .details(
                "The query interval is in seconds, the others in milliseconds. Robustness says \
                 how often what may be lost is said; 2 when not set, with queries each 125 s, \
                 10,000 ms to answer them, and 1,000 ms when a host has left.",
            )
            .example(format!("set {word} querier e0 query-interval 60 robustness 3").leak())
            .run(move |engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                let known = engine
                    .get::<Membership>()
                    .and_then(|state| state.routers.map.get(&(id, family)));
                let known = known.ok_or_else(|| no_router(engine, id, word))?.timers;
                let timers = timers(args, family, known)?;
                work(engine, |engine, state| {
                    router::enable(engine, state, (id, family), Some(timers))
                });
                Ok(Output::none())
            }),
    );
}

/// The version of a number: MLD's are one less than those of IGMP that they are like.
fn version_of(family: Family, number: u8) -> Version {
    match number + u8::from(family == Family::Ip6) {
        1 => Version::One,
        2 => Version::Two,
        _ => Version::Three,
    }
}

/// The number of a version.
pub(crate) fn version_number(family: Family, version: Version) -> u8 {
    let igmp = match version {
        Version::One => 1,
        Version::Two => 2,
        Version::Three => 3,
    };
    if family == Family::Ip4 { igmp } else { igmp - 1 }
}

fn timers(args: &Args<'_>, family: Family, known: Timers) -> Result<Timers, Refusal> {
    let version = args.optional::<u8>("version")?.map(|number| version_of(family, number));
    let timers = Timers {
        version: version.unwrap_or(known.version),
        robustness: args.or("robustness", known.robustness)?,
        query_interval_s: args.or("query-interval", known.query_interval_s)?,
        response_ms: args.or("response-interval", known.response_ms)?,
        last_member_ms: args.or("last-member-interval", known.last_member_ms)?,
    };
    // RFC 3376 §8.3, RFC 3810 §9.3.
    if u64::from(timers.response_ms) >= 1000 * u64::from(timers.query_interval_s) {
        let what = format!(
            "{} ms to answer is not less than the {} s between queries",
            timers.response_ms, timers.query_interval_s
        );
        let name =
            if args.has("response-interval") { "response-interval" } else { "query-interval" };
        return Err(args
            .refuse(name, what)
            .remedy("a shorter response-interval, or a longer query-interval"));
    }
    Ok(timers)
}

fn clear(engine: &mut Engine, key: (InterfaceId, Family), word: &str) -> Result<Output, Refusal> {
    let known =
        engine.get::<Membership>().is_some_and(|state| state.routers.map.contains_key(&key));
    if !known {
        return Err(no_router(engine, key.0, word));
    }
    work(engine, |engine, state| router::clear(engine, state, key));
    Ok(Output::none())
}

fn proxy_commands(registry: &mut Registry, family: Family, word: &'static str, ip: &str) {
    registry.command(
        Command::new(format!("{word} proxy-dev add|del vrf-id <table:u32> <interface>").leak())
            .entry(
                order::FEATURES,
                format!("{word}.proxies.<table>.upstream: <interface> with add").leak(),
            )
            .undo(format!("{word} proxy-dev del vrf-id <table> <interface>").leak())
            .makes(format!("{word} proxy <table>").leak())
            .group(GROUP)
            .help(
                format!(
                    "Listen to {ip} groups on this interface on behalf of hosts of other links, or \
                     no more"
                )
                .leak(),
            )
            .details(
                "A proxy (RFC 4605) has one upstream in a table. What hosts of its links \
                 (`proxy-dev itf`) listen to is listened to there, and packets go to the links \
                 that want them; what these hosts send goes upstream. The links have to be \
                 routers' links (`enable router`).",
            )
            .word("vrf-id", "the table of the proxy, whose multicast routes it makes")
            .example(format!("{word} proxy-dev add vrf-id 0 e0").leak())
            .run(move |engine: &mut Engine, args| {
                change_proxy(engine, args, (family, word), with_upstream)
            }),
    );
    registry.command(
        Command::new(format!("{word} proxy-dev itf add|del vrf-id <table:u32> <interface>").leak())
            .entry(
                order::FEATURES,
                format!("{word}.proxies.<table>.downstream[]: <interface> with add").leak(),
            )
            .undo(format!("{word} proxy-dev itf del vrf-id <table> <interface>").leak())
            .stands_on(format!("{word} router <interface>").leak())
            .group(GROUP)
            .help(
                format!(
                    "Let a proxy listen to {ip} groups on behalf of the hosts of a link, or no more"
                )
                .leak(),
            )
            .word("vrf-id", "the table of the proxy")
            .example(format!("{word} proxy-dev itf add vrf-id 0 e1").leak())
            .run(move |engine: &mut Engine, args| {
                change_proxy(engine, args, (family, word), with_downstream)
            }),
    );
}

/// The proxy and the interface that a command names.
struct Named {
    table: u32,
    id: InterfaceId,
    name: String,
    /// The proxy as it is.
    proxy: Proxy,
    /// Does this router send queries on the interface?
    queries: bool,
}

fn named(engine: &Engine, args: &Args<'_>, family: Family) -> Result<Named, Refusal> {
    let (id, table): (InterfaceId, u32) =
        (args.interface(engine, "interface")?, args.get("table")?);
    let fib = engine
        .get::<Fib>()
        .ok_or_else(|| Refusal::new("routes are being changed").remedy("try again"))?;
    if fib.table_index(family, table).is_none() {
        return Err(args.refuse("table", FibError::NoTable { family, id: table }.to_string()));
    }
    let state = engine.get::<Membership>();
    let proxy = state
        .and_then(|state| state.proxies.map.get(&(family, table)).cloned())
        .unwrap_or_default();
    let queries = state.is_some_and(|state| state.routers.map.contains_key(&(id, family)));
    Ok(Named { table, id, name: engine.interface_name(id), proxy, queries })
}

/// Change the proxy that a command names, of either family: what `change` makes of it replaces it.
fn change_proxy(
    engine: &mut Engine,
    args: &Args<'_>,
    (family, word): (Family, &str),
    change: fn(&Engine, &Args<'_>, &str, Named) -> Result<Proxy, Refusal>,
) -> Result<Output, Refusal> {
    let named = named(engine, args, family)?;
    let key = (family, named.table);
    let proxy = change(engine, args, word, named)?;
    put(engine, key, proxy);
    Ok(Output::none())
}

/// Let a proxy be this.
fn put(engine: &mut Engine, key: (Family, u32), proxy: Proxy) {
    work(engine, |engine, state| {
        let before = state.proxies.map.insert(key, proxy).and_then(|proxy| proxy.upstream);
        let now = state.proxies.map.get(&key).and_then(|proxy| proxy.upstream);
        proxy::rebuild(engine, state, key);
        for id in before.into_iter().chain(now) {
            crate::sender::publish(engine, state, id);
        }
    });
}

/// The proxy with another upstream, or none.
fn with_upstream(
    engine: &Engine,
    args: &Args<'_>,
    word: &str,
    named: Named,
) -> Result<Proxy, Refusal> {
    let Named { table, id, name, mut proxy, queries } = named;
    if args.has("del") {
        if proxy.upstream != Some(id) {
            let what = format!("{name} is not the upstream of table {table}'s proxy");
            return Err(args.refuse("interface", what));
        }
        proxy.upstream = None;
        return Ok(proxy);
    }
    if let Some(other) = proxy.upstream.filter(|other| *other != id) {
        let other = engine.interface_name(other);
        let refusal = args
            .refuse("interface", format!("the proxy of table {table} has {other} as its upstream"));
        return Err(refusal.remedy(format!("`{word} proxy-dev del vrf-id {table} {other}` first")));
    }
    if queries || proxy.downstream.contains(&id) {
        let what = format!("{name} is a link on which this router asks; upstream it is a host");
        let refusal = args.refuse("interface", what);
        return Err(refusal.remedy(format!("`{word} disable router {name}` first")));
    }
    proxy.upstream = Some(id);
    Ok(proxy)
}

/// The proxy with a link more, or less.
fn with_downstream(
    engine: &Engine,
    args: &Args<'_>,
    word: &str,
    named: Named,
) -> Result<Proxy, Refusal> {
    let Named { table, id, name, mut proxy, queries } = named;
    if args.has("del") {
        if !proxy.downstream.remove(&id) {
            return Err(args
                .refuse("interface", format!("{name} is no link of the proxy of table {table}")));
        }
        return Ok(proxy);
    }
    if proxy.upstream == Some(id) {
        return Err(args
            .refuse("interface", format!("{name} is the upstream of the proxy of table {table}")));
    }
    if !queries {
        return Err(no_router(engine, id, word));
    }
    proxy.downstream.insert(id);
    Ok(proxy)
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, out: &mut ConfigWriter) {
    let Some(state) = engine.get::<Membership>() else { return };
    for (family, word, _) in FAMILIES {
        let routers = state.routers.map.iter().filter(|((_, of), _)| *of == family);
        for (id, router) in
            by_interface_name(engine, routers.map(|((id, _), router)| (*id, router)))
        {
            let name = engine.interface_name(id);
            out.command(format_args!("{word} enable router {name}"));
            let Timers { version, robustness, query_interval_s, response_ms, last_member_ms } =
                router.timers;
            if router.timers != Timers::default() {
                out.command(format_args!(
                    "set {word} querier {name} version {} robustness {robustness} query-interval \
                     {query_interval_s} response-interval {response_ms} last-member-interval \
                     {last_member_ms}",
                    version_number(family, version)
                ));
            }
        }
        for ((_, table), proxy) in state.proxies.map.iter().filter(|((of, _), _)| *of == family) {
            if let Some(upstream) = proxy.upstream {
                let name = engine.interface_name(upstream);
                out.command(format_args!("{word} proxy-dev add vrf-id {table} {name}"));
            }
            for (id, ()) in by_interface_name(engine, proxy.downstream.iter().map(|id| (*id, ()))) {
                let name = engine.interface_name(id);
                out.command(format_args!("{word} proxy-dev itf add vrf-id {table} {name}"));
            }
        }
    }
}

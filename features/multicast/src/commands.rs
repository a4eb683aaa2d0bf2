//! `ip mroute`: multicast routes, in VPP's words.

use std::fmt::Write as _;
use std::net::IpAddr;

use quiver_control::{Args, Command, ConfigWriter, IpPrefix, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, FibError};
use quiver_forwarding::mfib::{Mfib, Route, RouteKey};
use quiver_wire::ip4::address::is_local_multicast;
use quiver_wire::ip6::address::multicast_scope;

/// The chapter of the reference page.
pub(crate) const GROUP: &str = "Layer 3";
/// Who keeps tables from being deleted.
pub(crate) const USER: &str = "multicast routes (ip mroute del)";

pub(crate) fn register(registry: &mut Registry) {
    let syntax = "ip mroute add|del [table <:u32>] (<groups:prefix> | <address:ip> [<group:ip>]) \
        {[(via (<interface> | local) {[Accept] [Forward] [ttl-threshold <:0-254>]})...] [Signal] \
        [Drop] [Accept-all]}";
    registry.command(
        Command::new(syntax)
            .entry(order::ROUTES, entry("multicast-routes.<groups>"))
            .entry(order::ROUTES, entry("multicast-routes.(<address>,<group>)"))
            .entry(order::ROUTES, entry("multicast-routes.<address>"))
            .entry(order::ROUTES, entry("tables.<table>.multicast-routes.<groups>"))
            .entry(order::ROUTES, entry("tables.<table>.multicast-routes.(<address>,<group>)"))
            .entry(order::ROUTES, entry("tables.<table>.multicast-routes.<address>"))
            .undo("<groups!> ip mroute del [table <table>] <groups>")
            .undo("ip mroute del [table <table>] <address> [<group>]")
            .group(GROUP)
            .help("Add or delete a multicast route, IPv4 or IPv6")
            .details(
                "A route is for a source and a group, a group, or a prefix of groups; the most \
                 specific one is taken. Packets are taken from the interfaces that say `Accept`, \
                 and copied to those that say `Forward`, never back to where they came from. \
                 `add` adds to what the route says already; `del` takes away what is named, and \
                 the whole route when nothing is.",
            )
            .word("groups", "a prefix of groups")
            .word("address", "the group, or the source when a group follows")
            .word("Accept", "packets may come in here (reverse path check)")
            .word("Forward", "a copy goes out here")
            .word("local", "with Forward: a copy for the router itself")
            .word("ttl-threshold", "only packets whose TTL or hop limit is above it go out here")
            .word("Signal", "packets are told to the control thread, see show mfib signals")
            .word("Drop", "packets die here")
            .word("Accept-all", "packets may come in anywhere")
            .example("ip mroute add 232.1.1.1 via e0 Accept via e1 Forward")
            .example("ip mroute add 10.0.0.9 232.1.1.1 via e0 Accept")
            .example("ip mroute add 239.0.0.0/8 via e1 Forward ttl-threshold 16")
            .example("ip mroute add table 0 ff0e::1 via local Forward")
            .example("ip mroute del 232.1.1.1 via e1 Forward")
            .run(change),
    );
}

/// What stands at the place of a route in a document.
fn entry(place: &str) -> &'static str {
    let route = "{via: (via: {interface, local, accept: <Accept?>, forward: <Forward?>, \
                 ttl-threshold}), signal: <Signal?>, drop: <Drop?>, accept-all: <Accept-all?>}";
    format!("{place}: {route} with add").leak()
}

fn key_of(engine: &Engine, args: &Args<'_>) -> Result<RouteKey, Refusal> {
    let (name, source, group, length) = match args.optional::<IpPrefix>("groups")? {
        Some(prefix) => ("groups", None, prefix.address, prefix.length),
        None => {
            let first: IpAddr = args.get("address")?;
            let second: Option<IpAddr> = args.optional("group")?;
            let group = second.unwrap_or(first);
            let name = if second.is_some() { "group" } else { "address" };
            (name, second.map(|_| first), group, if group.is_ipv4() { 32 } else { 128 })
        }
    };
    let family = Family::of(group);
    let id = args.or("table", 0u32)?;
    let fib = engine.get::<Fib>().ok_or_else(busy)?;
    let table = fib.table_index(family, id);
    let table =
        table.ok_or_else(|| args.refuse("table", FibError::NoTable { family, id }.to_string()))?;
    let is_of_link = match group {
        IpAddr::V4(group) => is_local_multicast(group) && length >= 24,
        IpAddr::V6(group) => length >= 16 && multicast_scope(group) <= 2,
    };
    if is_of_link {
        let what = format!("{group} is a group of the link, which no router forwards");
        return Err(args
            .refuse(name, what)
            .remedy("224.0.1.0 and above, or a scope above 2, can be"));
    }
    if let Some(source) = source.filter(|source| source.is_multicast() || source.is_unspecified()) {
        return Err(args.refuse("address", format!("{source} is no source")));
    }
    RouteKey::new(table, source, group, length).ok_or_else(|| {
        let what = match source {
            Some(source) if source.is_ipv4() != group.is_ipv4() => {
                format!("{source} and {group} are of different families")
            }
            _ => format!("{group}/{length} is no prefix of groups"),
        };
        args.refuse(name, what).remedy("232.1.1.1, 239.0.0.0/8 or ff0e::1 would be")
    })
}

fn busy() -> Refusal {
    Refusal::new("multicast routes are being changed")
}

/// What the command names, as a route of its own.
fn named(engine: &Engine, args: &Args<'_>) -> Result<Route, Refusal> {
    let mut route = Route {
        signal: args.has("Signal"),
        drop: args.has("Drop"),
        accept_all: args.has("Accept-all"),
        ..Route::default()
    };
    for via in args.groups("via") {
        let (accept, forward) = (via.has("Accept"), via.has("Forward"));
        if !accept && !forward {
            let what = Refusal::new("a path says neither Accept nor Forward");
            return Err(what.remedy("via INTERFACE Accept, or via INTERFACE Forward"));
        }
        let threshold: Option<u8> = via.optional("ttl-threshold")?;
        if threshold.is_some() && !forward {
            return Err(via
                .refuse("ttl-threshold", "a threshold is for what is forwarded")
                .remedy("say Forward"));
        }
        if via.has("local") {
            if accept || threshold.is_some() {
                let what = "the router itself can only be forwarded to, without a threshold";
                return Err(via.refuse("local", what).remedy("via local Forward"));
            }
            route.local = true;
            continue;
        }
        let id = via.interface(engine, "interface")?;
        if accept {
            route.accept.insert(id);
        }
        if forward {
            route.forward.insert(id, threshold.unwrap_or(0));
        }
    }
    Ok(route)
}

/// Take from `route` what `named` names; an error names what is not there.
fn take_away(engine: &Engine, route: &mut Route, named: &Route) -> Result<(), Refusal> {
    let missing =
        |what: String| Err(Refusal::new(format!("the multicast route does not say {what}")));
    for id in &named.accept {
        if !route.accept.remove(id) {
            return missing(format!("via {} Accept", engine.interface_name(*id)));
        }
    }
    for id in named.forward.keys() {
        if route.forward.remove(id).is_none() {
            return missing(format!("via {} Forward", engine.interface_name(*id)));
        }
    }
    let flags = [
        (&mut route.local, named.local, "via local Forward"),
        (&mut route.signal, named.signal, "Signal"),
        (&mut route.drop, named.drop, "Drop"),
        (&mut route.accept_all, named.accept_all, "Accept-all"),
    ];
    for (flag, asked, word) in flags {
        if asked && !std::mem::take(flag) {
            return missing(word.to_owned());
        }
    }
    Ok(())
}

fn change(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let (key, named) = (key_of(engine, args)?, named(engine, args)?);
    let known = engine.get::<Mfib>().ok_or_else(busy)?.get(&key).cloned();
    let wanted = if args.has("add") {
        if named.is_empty() {
            let what = Refusal::new("a multicast route that says nothing");
            return Err(what.remedy("via INTERFACE Accept, via INTERFACE Forward, Signal or Drop"));
        }
        let mut route = known.unwrap_or_default();
        route.accept.extend(&named.accept);
        route.forward.extend(&named.forward);
        route.local |= named.local;
        route.signal |= named.signal;
        route.drop |= named.drop;
        route.accept_all |= named.accept_all;
        route
    } else {
        let mut route = known
            .ok_or_else(|| Refusal::new(format!("there is no multicast route {}", words(&key))))?;
        if named.is_empty() {
            route = Route::default();
        } else {
            take_away(engine, &mut route, &named)?;
        }
        route
    };
    engine.with(|engine, mfib: &mut Mfib| {
        let fib = engine.get_mut::<Fib>().ok_or_else(busy)?;
        if wanted.is_empty() {
            mfib.remove(&key, fib).map_err(|error| Refusal::new(error.to_string()))?;
        } else {
            mfib.set(key, wanted, fib).map_err(|error| Refusal::new(error.to_string()))?;
        }
        mfib.hold_tables(fib, USER);
        Ok(Output::none())
    })
}

/// Source and group of a route: `10.0.0.9 232.1.1.1`, `232.1.0.0/16`.
pub(crate) fn words(key: &RouteKey) -> String {
    let width = if key.family == Family::Ip4 { 32 } else { 128 };
    match key.source {
        Some(source) => format!("{source} {}", key.group),
        None if key.length == width => key.group.to_string(),
        None => format!("{}/{}", key.group, key.length),
    }
}

/// The part of `show running-config`.
pub(crate) fn write_config(
    engine: &Engine,
    out: &mut ConfigWriter,
    after: Option<RouteKey>,
    most: usize,
) -> Option<RouteKey> {
    let (mfib, fib) = (engine.get::<Mfib>()?, engine.get::<Fib>()?);
    let mut last = None;
    let of = |family| fib.tables_in_order(family).into_iter().map(move |table| (family, table));
    let tables = of(Family::Ip4).chain(of(Family::Ip6)).collect();
    for (key, route) in mfib.after_by_table(tables, after).take(most) {
        last = Some(*key);
        let mut line = "ip mroute add ".to_owned();
        // Writing to a String cannot fail.
        if let Some(id) = fib.table_id(key.family, key.table).filter(|id| *id != 0) {
            let _ = write!(line, "table {id} ");
        }
        line += &words(key);
        let accept = route.accept.iter().map(|id| (*id, ()));
        for (id, ()) in quiver_control::by_interface_name(engine, accept) {
            let _ = write!(line, " via {} Accept", engine.interface_name(id));
        }
        let forward = route.forward.iter().map(|(id, threshold)| (*id, threshold));
        for (id, threshold) in quiver_control::by_interface_name(engine, forward) {
            let _ = write!(line, " via {} Forward", engine.interface_name(id));
            if *threshold > 0 {
                let _ = write!(line, " ttl-threshold {threshold}");
            }
        }
        let flags = [
            (route.local, " via local Forward"),
            (route.signal, " Signal"),
            (route.drop, " Drop"),
            (route.accept_all, " Accept-all"),
        ];
        line.extend(flags.into_iter().filter(|(set, _)| *set).map(|(_, word)| word));
        out.command(format_args!("{line}"));
    }
    last
}

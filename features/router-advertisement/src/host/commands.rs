//! `ip6 nd address autoconfig`, in VPP's words, and what came of it.

use std::net::Ipv6Addr;

use quiver_control::{Column, Command, ConfigWriter, Output, Registry, Table, order};
use quiver_core::{Engine, InterfaceId};

use super::learned::{Gateway, Ignored};
use super::{Host, HostState, address_of, calls, disable, enable, identifier};
use crate::commands::GROUP;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("ip6 nd address autoconfig <interface> [default-route|disable]")
            .entry(order::FEATURES, "interfaces.<interface>.ip6-autoconfig: {default-route}")
            .undo("ip6 nd address autoconfig <interface> disable")
            .group(GROUP)
            .help("Let an interface take IPv6 addresses that routers on its link advertise")
            .details(
                "The interface asks for routers (RFC 4861 §6.3.7, RFC 7559), makes an address of \
                 each prefix that is advertised for it (RFC 4862 §5.5) after nobody else has \
                 claimed it, and takes the prefixes on the link, the MTU and the hop limit. With \
                 `default-route` it uses the routers as default routers, and the routes behind \
                 them (RFC 4191), too. What is configured stands before what is advertised; \
                 `disable` takes all of it back.",
            )
            .word("default-route", "use default routers and routes that are advertised")
            .word("disable", "take all that was advertised back, and listen no more")
            .example("ip6 nd address autoconfig e0 default-route")
            .example("ip6 nd address autoconfig e0 disable")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                if args.has("disable") {
                    disable(engine, id)?;
                } else {
                    enable(engine, id, args.has("default-route"))?;
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show ip6 nd routers [<interface>]")
            .group(GROUP)
            .help(
                "Show the default routers and routes that interfaces have of router advertisements",
            )
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(routers(engine, only))
            }),
    );
    registry.command(
        Command::new("show ip6 autoconfig [<interface>]")
            .group(GROUP)
            .help(
                "Show the addresses, prefixes and settings that interfaces have of router \
                 advertisements",
            )
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(autoconfig(engine, only))
            }),
    );
}

/// The part of `show running-config`.
pub(super) fn write_config(engine: &Engine, out: &mut ConfigWriter) {
    let Some(state) = engine.get::<HostState>() else { return };
    let all = state.interfaces.iter().map(|(id, host)| (*id, host));
    for (id, host) in quiver_control::by_interface_name(engine, all) {
        let word = if host.default_route { " default-route" } else { "" };
        out.command(format_args!("ip6 nd address autoconfig {}{word}", engine.interface_name(id)));
    }
}

/// Interfaces that are asked about, by number.
fn chosen(
    state: &HostState,
    only: Option<InterfaceId>,
) -> impl Iterator<Item = (InterfaceId, &Host)> {
    let all = state.interfaces.iter().map(|(id, host)| (*id, host));
    all.filter(move |(id, _)| only.is_none_or(|only| only == *id))
}

/// Seconds that are left; `None` for ever.
fn left_s(until_ns: u64, now_ns: u64) -> Option<u64> {
    (until_ns != u64::MAX).then(|| until_ns.saturating_sub(now_ns).div_ceil(1_000_000_000))
}

const NOBODY: &str =
    "No interface; ip6 nd address autoconfig INTERFACE lets one take advertised addresses";

fn routers(engine: &Engine, only: Option<InterfaceId>) -> Output {
    let Some(state) = engine.get::<HostState>() else { return Output::none() };
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("Prefix"),
        Column::left("Router").key("address"),
        Column::left("Preference"),
        Column::right("Lifetime").key("lifetime_s"),
        Column::left("Used"),
    ])
    .when_empty("No router was heard on an interface with `ip6 nd address autoconfig`");
    let now_ns = engine.now_ns();
    for (id, host) in chosen(state, only) {
        let mut add = |prefix: String, router: Ipv6Addr, gateway: &Gateway, used: bool| {
            table
                .row()
                .cell(engine.interface_name(id))
                .cell(prefix)
                .cell(router)
                .cell(gateway.preference.word())
                .cell(left_s(gateway.until_ns, now_ns))
                .cell(used);
        };
        for (router, known) in &host.learned.routers {
            add("::/0".to_owned(), *router, known, state.installed.uses(id, *router));
        }
        for ((prefix, router), known) in &host.learned.routes {
            add(prefix.to_string(), *router, known, host.default_route);
        }
    }
    Output::none().table("routers", table)
}

fn autoconfig(engine: &Engine, only: Option<InterfaceId>) -> Output {
    let Some(state) = engine.get::<HostState>() else { return Output::none() };
    let mut interfaces = Table::new([
        Column::left("Interface"),
        Column::left("Default route"),
        Column::right("Asked").key("solicitations"),
        Column::left("Asking"),
        Column::right("Heard").key("advertisements"),
        Column::right("MTU").key("mtu_bytes"),
        Column::right("Hop limit"),
        Column::right("Ignored routers"),
        Column::right("Ignored prefixes"),
        Column::right("Ignored routes"),
        Column::right("Ignored MTUs").key("ignored_mtus"),
        Column::right("Invalid"),
    ])
    .when_empty(NOBODY);
    let mut prefixes = Table::new([
        Column::left("Interface"),
        Column::left("Prefix"),
        Column::left("On link"),
        Column::left("Address"),
        Column::left("State"),
        Column::right("Valid").key("valid_s"),
        Column::right("Preferred").key("preferred_s"),
    ])
    .when_empty("No prefix was advertised");
    let now_ns = engine.now_ns();
    for (id, host) in chosen(state, only) {
        let name = engine.interface_name(id);
        let learned = &host.learned;
        let Ignored { routers, prefixes: no_room, routes, invalid, mtus } = learned.ignored;
        interfaces
            .row()
            .cell(&name)
            .cell(host.default_route)
            .cell(host.solicit.sent)
            .cell(host.solicit.due_ns().is_some())
            .cell(host.advertisements)
            .cell(learned.mtu_bytes)
            .cell(learned.hop_limit)
            .cell(routers)
            .cell(no_room)
            .cell(routes)
            .cell(mtus)
            .cell(invalid);
        let Some(calls) = calls(engine) else { continue };
        let identifier = identifier(engine, id, &calls);
        for (prefix, known) in &learned.prefixes {
            let made = known.address.zip(identifier);
            let address = made.map(|(_, identifier)| address_of(*prefix, identifier));
            prefixes
                .row()
                .cell(&name)
                .cell(prefix.to_string())
                .cell(known.on_link_until_ns.is_some())
                .cell(address.map(|address| address.to_string()))
                .cell(address.map(|address| (calls.state)(engine, id, address).word()))
                .cell(known.address.and_then(|times| left_s(times.valid_until_ns, now_ns)))
                .cell(known.address.and_then(|times| left_s(times.preferred_until_ns, now_ns)));
        }
    }
    Output::none().table("interfaces", interfaces).table("prefixes", prefixes)
}

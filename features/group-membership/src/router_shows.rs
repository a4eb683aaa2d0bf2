//! `show igmp groups`, `show igmp config`, `show igmp timers`, `show igmp proxy-dev`, and the same
//! of MLD.

use quiver_control::{Cell, Column, Command, Output, Registry, Table};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Family;

use crate::commands::GROUP;
use crate::group::Wanted;
use crate::router_commands::version_number;
use crate::state::Membership;

pub(crate) fn register(registry: &mut Registry) {
    for (family, word) in [(Family::Ip4, "igmp"), (Family::Ip6, "mld")] {
        registry.command(
            Command::new(format!("show {word} groups [<interface>]").leak())
                .group(GROUP)
                .help(
                    "Show which groups and sources hosts listen to on the links on which this \
                     router asks",
                )
                .details(
                    "A group is forgotten when nobody has reported it for as long as `ends` says.",
                )
                .run(move |engine: &mut Engine, args| {
                    let only = args.optional_interface(engine, "interface")?;
                    Ok(groups(engine, family, only))
                }),
        );
        registry.command(
            Command::new(format!("show {word} config").leak())
                .group(GROUP)
                .help(
                    "Show the links on which this router asks, who asks there, and what was heard",
                )
                .run(move |engine: &mut Engine, _| Ok(config(engine, family))),
        );
        registry.command(
            Command::new(format!("show {word} timers").leak())
                .group(GROUP)
                .help("Show the timers of the links on which this router asks")
                .run(move |engine: &mut Engine, _| Ok(timers(engine, family))),
        );
        registry.command(
            Command::new(format!("show {word} proxy-dev").leak())
                .group(GROUP)
                .help("Show proxies: where each listens, and on behalf of which links")
                .run(move |engine: &mut Engine, _| Ok(proxies(engine, family))),
        );
    }
}

fn groups(engine: &Engine, family: Family, only: Option<InterfaceId>) -> Output {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("Group"),
        Column::left("Filter"),
        Column::left("Sources"),
        Column::right("Ends").key("ends_s"),
    ])
    .when_empty("no host listens to a group");
    let now_ns = engine.now_ns();
    let routers = engine.get::<Membership>().into_iter().flat_map(|state| &state.routers.map);
    for ((id, _), router) in
        routers.filter(|((id, of), _)| *of == family && only.is_none_or(|only| only == *id))
    {
        for (group, wanted, ends_ns) in router.querier.groups() {
            let (filter, sources) = match wanted {
                Wanted::Only(sources) => ("include", sources),
                Wanted::AllBut(sources) => ("exclude", sources),
            };
            let sources: Vec<String> = sources.iter().map(ToString::to_string).collect();
            table
                .row()
                .cell(engine.interface_name(*id))
                .cell(group)
                .cell(filter)
                .cell(Cell::new(sources.join(" "), sources.clone()))
                .cell(Cell::real(ends_ns.saturating_sub(now_ns) as f64 / 1e9, 0));
        }
    }
    Output::none().table("groups", table)
}

fn config(engine: &Engine, family: Family) -> Output {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("Mode"),
        Column::left("Address"),
        Column::left("Querier"),
        Column::right("Groups"),
        Column::right("Queries sent"),
        Column::right("Not sent"),
        Column::right("Records"),
        Column::right("Foreign"),
        Column::right("Refused"),
    ])
    .when_empty("this router asks on no link");
    let routers = engine.get::<Membership>().into_iter().flat_map(|state| &state.routers.map);
    for ((id, _), router) in routers.filter(|((_, of), _)| *of == family) {
        let querier = router.querier.other_querier();
        table
            .row()
            .cell(engine.interface_name(*id))
            .cell("router")
            .cell(router.from)
            .cell(querier.or(router.from))
            .cell(router.querier.groups().count())
            .cell(router.counts.queries)
            .cell(router.counts.not_sent)
            .cell(router.counts.records)
            .cell(router.counts.foreign)
            .cell(router.querier.refused);
    }
    Output::none().table("interfaces", table)
}

fn timers(engine: &Engine, family: Family) -> Output {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::right("Version"),
        Column::right("Robustness"),
        Column::right("Query interval").key("query_interval_s"),
        Column::right("Response interval").key("response_interval_ms"),
        Column::right("Last member interval").key("last_member_interval_ms"),
        Column::right("Membership interval").key("membership_interval_s"),
    ])
    .when_empty("this router asks on no link");
    let routers = engine.get::<Membership>().into_iter().flat_map(|state| &state.routers.map);
    for ((id, _), router) in routers.filter(|((_, of), _)| *of == family) {
        let timers = router.querier.timers;
        table
            .row()
            .cell(engine.interface_name(*id))
            .cell(version_number(family, timers.version))
            .cell(timers.robustness)
            .cell(timers.query_interval_s)
            .cell(timers.response_ms)
            .cell(timers.last_member_ms)
            .cell(timers.membership_ns() / 1_000_000_000);
    }
    Output::none().table("interfaces", table)
}

fn proxies(engine: &Engine, family: Family) -> Output {
    let mut table = Table::new([
        Column::right("Table"),
        Column::left("Upstream"),
        Column::left("Interfaces"),
        Column::right("Groups joined"),
        Column::right("Routes failed"),
    ])
    .when_empty("there is no proxy");
    let state = engine.get::<Membership>();
    for ((of, id), proxy) in state.into_iter().flat_map(|state| &state.proxies.map) {
        if *of != family {
            continue;
        }
        let names: Vec<String> =
            proxy.downstream.iter().map(|id| engine.interface_name(*id)).collect();
        let joined = proxy.upstream.and_then(|upstream| state?.proxied.get(&upstream));
        let joined =
            joined.map_or(0, |groups| groups.keys().filter(|g| Family::of(**g) == family).count());
        table
            .row()
            .cell(*id)
            .cell(proxy.upstream.map(|id| engine.interface_name(id)))
            .cell(Cell::new(names.join(", "), names.clone()))
            .cell(joined)
            .cell(proxy.failed);
    }
    Output::none().table("proxies", table)
}

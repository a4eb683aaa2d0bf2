//! `show igmp`, `show mld`.

use quiver_control::{Cell, Column, Command, Output, Registry, Table};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Family;
use serde_json::{Value, json};

use crate::commands::GROUP;
use crate::port::{Filter, Version};
use crate::state::Membership;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show igmp [<interface>]")
            .group(GROUP)
            .help("Show which IPv4 groups the router listens to, and who asks for them")
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(listing(engine, only, Family::Ip4))
            }),
    );
    registry.command(
        Command::new("show mld [<interface>]")
            .group(GROUP)
            .help("Show which IPv6 groups the router listens to, and who asks for them")
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(listing(engine, only, Family::Ip6))
            }),
    );
}

/// The version as its protocol calls it.
fn version_number(family: Family, version: Version) -> u8 {
    let igmp = match version {
        Version::One => 1,
        Version::Two => 2,
        Version::Three => 3,
    };
    if family == Family::Ip4 { igmp } else { igmp - 1 }
}

fn listing(engine: &Engine, only: Option<InterfaceId>, family: Family) -> Output {
    let Some(state) = engine.get::<Membership>() else { return Output::none() };
    let now_ns = engine.now_ns();
    let mut table = Table::new([
        Column::left("Interface"),
        Column::right("Version"),
        Column::left("Querier"),
        Column::right("Asked").key("queries"),
        Column::right("Sent"),
        Column::right("Not sent"),
        Column::left("Groups"),
    ])
    .when_empty("No interface listens to a group");
    let of_family = state
        .listeners
        .iter()
        .filter(|((id, of), _)| *of == family && only.is_none_or(|only| only == *id));
    for ((id, _), listener) in of_family {
        let groups = listener.port.groups.iter().map(|(group, filter)| match filter {
            Filter::Any => group.to_string(),
            Filter::Only(sources) => {
                let sources: Vec<_> = sources.iter().map(ToString::to_string).collect();
                format!("{group} from {}", sources.join(" and "))
            }
        });
        let groups: Vec<_> = groups.collect();
        let published = listener.port.groups.iter().map(|(group, filter)| {
            let sources = match filter {
                Filter::Any => None,
                Filter::Only(sources) => {
                    Some(sources.iter().map(ToString::to_string).collect::<Vec<_>>())
                }
            };
            json!({ "group": group.to_string(), "sources": sources })
        });
        let published = Value::Array(published.collect());
        let querier = listener.querier.map(|querier| {
            let age = now_ns.saturating_sub(querier.at_ns) as f64 / 1e9;
            Cell::new(format!("{} {age:.0} s ago", querier.address), querier.address.to_string())
        });
        table
            .row()
            .cell(engine.interface_name(*id))
            .cell(version_number(family, listener.port.version(now_ns)))
            .cell(querier)
            .cell(listener.counts.queries)
            .cell(listener.counts.sent)
            .cell(listener.counts.not_sent)
            .cell(Cell::new(groups.join(", "), published));
    }
    Output::none().table("interfaces", table)
}

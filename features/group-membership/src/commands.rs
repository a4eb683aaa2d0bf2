//! `igmp listen`, `mld listen`: groups that the router listens to.

use std::net::IpAddr;

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::{Engine, InterfaceId};
use quiver_wire::ip4::address::ALL_HOSTS;
use quiver_wire::ip6::address::{ALL_NODES, multicast_scope};

use crate::port::Filter;
use crate::sender::{fit, publish, work};
use crate::state::{GROUPS_MAX, Membership, SOURCES_MAX};

/// The chapter of the reference page.
pub(crate) const GROUP: &str = "Layer 3";
const DETAILS: &str = "Routers of the link are told, and packets to the group are the router's \
    own to hear, from any source. With a source, only that source is asked for. `enable` is meant \
    when neither is said.";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("igmp listen [enable|disable] int <interface> <address:ip4> [<group:ip4>]")
            .entry(
                order::FEATURES,
                "interfaces.<interface>.igmp.listen[]: <address> / {group, source: <address>} \
                 with enable",
            )
            .undo("igmp listen disable int <interface> <address> [<group>]")
            .group(GROUP)
            .help("Listen to an IPv4 group on an interface, or no more")
            .details(DETAILS)
            .word("address", "the group, or the source when a group follows")
            .example("igmp listen enable int e0 239.1.1.1")
            .example("igmp listen disable int e0 10.0.0.9 232.1.1.1")
            .run(listen),
    );
    registry.command(
        Command::new("mld listen [enable|disable] int <interface> <address:ip6> [<group:ip6>]")
            .entry(
                order::FEATURES,
                "interfaces.<interface>.mld.listen[]: <address> / {group, source: <address>} with \
                 enable",
            )
            .undo("mld listen disable int <interface> <address> [<group>]")
            .group(GROUP)
            .help("Listen to an IPv6 group on an interface, or no more")
            .details(DETAILS)
            .word("address", "the group, or the source when a group follows")
            .example("mld listen enable int e0 ff0e::1")
            .example("mld listen disable int e0 2001:db8::9 ff3e::1")
            .run(listen),
    );
}

fn check(
    args: &Args<'_>,
    name: &str,
    source: Option<IpAddr>,
    group: IpAddr,
) -> Result<(), Refusal> {
    if !group.is_multicast() {
        return Err(args
            .refuse(name, format!("{group} is no group"))
            .remedy("239.1.1.1 or ff0e::1 would be"));
    }
    let by_itself = match group {
        IpAddr::V4(group) => group == ALL_HOSTS,
        IpAddr::V6(group) => group == ALL_NODES || multicast_scope(group) <= 1,
    };
    if by_itself {
        return Err(
            args.refuse(name, format!("{group} is never reported: every host listens to it"))
        );
    }
    match source.filter(|source| source.is_multicast() || source.is_unspecified()) {
        Some(source) => Err(args.refuse("address", format!("{source} is no source"))),
        None => Ok(()),
    }
}

fn listen(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let first: IpAddr = args.get("address")?;
    let second: Option<IpAddr> = args.optional("group")?;
    let (source, group) = (second.map(|_| first), second.unwrap_or(first));
    check(args, if second.is_some() { "group" } else { "address" }, source, group)?;
    let mut joined = engine
        .get::<Membership>()
        .and_then(|state| state.joined.get(&id).cloned())
        .unwrap_or_default();
    if args.has("disable") {
        leave(engine, id, &mut joined, source, group)?;
    } else {
        join(engine, id, &mut joined, source, group)?;
    }
    work(engine, |engine, state| {
        state.joined.insert(id, joined);
        state.joined.retain(|_, groups| !groups.is_empty());
        publish(engine, state, id);
        fit(engine, state, id);
    });
    Ok(Output::none())
}

type Joined = std::collections::BTreeMap<IpAddr, Filter>;

fn join(
    engine: &Engine,
    id: InterfaceId,
    joined: &mut Joined,
    source: Option<IpAddr>,
    group: IpAddr,
) -> Result<(), Refusal> {
    let name = engine.interface_name(id);
    if joined.len() >= GROUPS_MAX && !joined.contains_key(&group) {
        let what = format!("{name} listens to {GROUPS_MAX} groups already");
        return Err(Refusal::new(what).remedy("igmp listen disable or mld listen disable first"));
    }
    match (joined.get_mut(&group), source) {
        (None, None) => drop(joined.insert(group, Filter::Any)),
        (None, Some(source)) => drop(joined.insert(group, Filter::Only([source].into()))),
        (Some(Filter::Only(sources)), Some(source)) => {
            if sources.len() >= SOURCES_MAX && !sources.contains(&source) {
                let what = format!("{name} listens to {SOURCES_MAX} sources of {group} already");
                return Err(Refusal::new(what).remedy("listen to the group from any source"));
            }
            sources.insert(source);
        }
        (Some(filter), None) => *filter = Filter::Any,
        (Some(Filter::Any), Some(_)) => {
            let what = format!("{name} listens to {group} from any source");
            return Err(Refusal::new(what).remedy("disable that first"));
        }
    }
    Ok(())
}

fn leave(
    engine: &Engine,
    id: InterfaceId,
    joined: &mut Joined,
    source: Option<IpAddr>,
    group: IpAddr,
) -> Result<(), Refusal> {
    let known = match (joined.get_mut(&group), source) {
        (Some(Filter::Only(sources)), Some(source)) => sources.remove(&source),
        (Some(filter), None) => {
            *filter = Filter::Only([].into());
            true
        }
        _ => false,
    };
    if !known {
        let from = source.map_or_else(String::new, |source| format!("{source} "));
        return Err(Refusal::new(format!(
            "{} does not listen to {from}{group}",
            engine.interface_name(id)
        )));
    }
    joined.retain(|_, filter| *filter != Filter::Only([].into()));
    Ok(())
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, out: &mut ConfigWriter) {
    let Some(state) = engine.get::<Membership>() else { return };
    let joined = state.joined.iter().map(|(id, groups)| (*id, groups));
    for (id, groups) in quiver_control::by_interface_name(engine, joined) {
        let name = engine.interface_name(id);
        for (group, filter) in groups {
            let word = if group.is_ipv4() { "igmp" } else { "mld" };
            match filter {
                Filter::Any => out.command(format_args!("{word} listen enable int {name} {group}")),
                Filter::Only(sources) => {
                    for source in sources {
                        out.command(format_args!(
                            "{word} listen enable int {name} {source} {group}"
                        ));
                    }
                }
            }
        }
    }
}

//! The commands of what outer headers have in common: their source address and hop limit.

use std::net::Ipv6Addr;

use quiver_control::{
    Cell, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, Target};

use super::commands::check_routed;
use super::policies::{HOP_LIMIT, Policies};
use super::policy::{Behavior, Policy};
use super::stack::HopLimit;
use crate::commands::GROUP;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set sr encaps source addr <address:ip6>")
            .entry(order::ROUTES, "sr.encapsulation.source: <address>")
            .undo("set sr encaps source addr ::")
            .replaces(&[])
            .group(GROUP)
            .help(
                "Set the source address of outer headers, of policies that are there and those to \
                 come",
            )
            .details(
                "ICMPv6 errors about outer packets come to it: it should be an address of an \
                 interface, or a local SID. If it is not, the answer says so, and so does `show sr \
                 encaps source addr`.",
            )
            .word("addr", "an address of the router, to which errors about outer packets come")
            .example("set sr encaps source addr fc00:0:1::1")
            .run(|engine: &mut Engine, args| {
                let source: Ipv6Addr = args.get("address")?;
                if !source.is_unspecified() {
                    check_routed(args, "address", source, "the source of outer headers")?;
                }
                let done = change(
                    engine,
                    |policies| std::mem::replace(&mut policies.source, source),
                    |policies, before| {
                        policies.source = before;
                    },
                )?;
                Ok(with_warning(engine, source, done))
            }),
    );
    registry.command(
        Command::new("set sr encaps hop-limit (<hops:1-255>|propagate)")
            .entry(order::ROUTES, "sr.encapsulation.hop-limit: <hops> / <propagate|>")
            .undo("set sr encaps hop-limit 64")
            .replaces(&[])
            .group(GROUP)
            .help(
                "Set the hop limit of outer headers, of policies that are there and those to come",
            )
            .word(
                "propagate",
                "what the inner packet has left, so that a traceroute sees the segments",
            )
            .example("set sr encaps hop-limit 64")
            .run(|engine: &mut Engine, args| {
                let limit: Option<u8> = args.optional("hops")?;
                let limit = limit.map_or(HopLimit::Propagated, HopLimit::Fixed);
                change(
                    engine,
                    |policies| std::mem::replace(&mut policies.hop_limit, limit),
                    |policies, before| {
                        policies.hop_limit = before;
                    },
                )
            }),
    );
    for (name, help) in [
        ("show sr encaps source addr", "Show the source address of outer headers"),
        ("show sr encaps hop-limit", "Show the hop limit of outer headers"),
    ] {
        registry.command(
            Command::new(name)
                .group(GROUP)
                .help(help)
                .run(|engine: &mut Engine, _| Ok(show_outer_header(engine))),
        );
    }
}

/// Do packets to this address end at the router: at an interface's address, or at a local SID?
fn is_ours(engine: &Engine, address: Ipv6Addr) -> bool {
    let Some(fib) = engine.get::<Fib>() else { return false };
    let ends_here = |table| {
        let route = fib.best_route(table, address.into());
        let mut paths = route.iter().flat_map(|route| route.paths);
        paths.any(|path| {
            matches!(path.target, Target::Local | Target::InterfaceAddress | Target::Feature(_))
        })
    };
    fib.tables(Family::Ip6).into_iter().any(|(_, table)| ends_here(table))
}

/// What an operator should know of the source of outer headers, beside what else is answered.
pub(super) fn with_warning(engine: &Engine, source: Ipv6Addr, answer: Output) -> Output {
    if source.is_unspecified() || is_ours(engine, source) {
        return answer;
    }
    answer.line(format!(
        "warning: {source} is neither an address nor a local SID of this router, so ICMPv6 errors \
         about outer packets do not come back: no path MTU is learned, and senders hear nothing"
    ))
}

/// Change what outer headers have, and make those of all policies anew.
fn change<T>(
    engine: &mut Engine,
    set: impl FnOnce(&mut Policies) -> T,
    back: impl FnOnce(&mut Policies, T),
) -> Result<Output, Refusal> {
    engine.with(|engine, policies: &mut Policies| {
        let before = set(policies);
        let encapsulates = |policy: &Policy| matches!(policy.behavior, Behavior::Encaps(_));
        let done = policies.make_all_anew(engine, encapsulates);
        if done.is_err() {
            back(policies, before);
        }
        done.map(|()| Output::none())
    })
}

fn hop_limit_words(limit: HopLimit) -> String {
    match limit {
        HopLimit::Fixed(limit) => limit.to_string(),
        HopLimit::Propagated => "propagate".to_owned(),
    }
}

fn show_outer_header(engine: &Engine) -> Output {
    let mut table = Table::new([
        Column::left("Source address"),
        Column::left("Of this router"),
        Column::left("Hop limit"),
    ]);
    let Some(policies) = engine.get::<Policies>() else { return Output::none() };
    let source = policies.source;
    let (words, ours) = match (source.is_unspecified(), is_ours(engine, source)) {
        (true, _) => {
            (Cell::optional(None::<Ipv6Addr>, "not set"), Cell::optional(None::<bool>, "-"))
        }
        (false, ours) => (Cell::optional(Some(source), ""), Cell::optional(Some(ours), "")),
    };
    table.row().cell(words).cell(ours).cell(hop_limit_words(policies.hop_limit));
    with_warning(engine, source, Output::none().table("encaps", table))
}

/// The part of `show running-config`.
pub(super) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(policies) = engine.get::<Policies>() else { return };
    if !policies.source.is_unspecified() {
        config.command(format_args!("set sr encaps source addr {}", policies.source));
    }
    if policies.hop_limit != HopLimit::Fixed(HOP_LIMIT) {
        config.command(format_args!(
            "set sr encaps hop-limit {}",
            hop_limit_words(policies.hop_limit)
        ));
    }
}

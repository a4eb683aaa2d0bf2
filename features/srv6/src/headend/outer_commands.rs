//! The commands of what outer headers have in common: their source address and hop limit.

use std::net::Ipv6Addr;

use quiver_control::{Column, Command, ConfigWriter, Output, Refusal, Registry, Table};
use quiver_core::Engine;

use super::commands::check_routed;
use super::policies::{HOP_LIMIT, Policies};
use super::policy::{Behavior, Policy};
use super::rows::HopLimit;
use crate::commands::GROUP;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set sr encaps source addr <address:ip6>")
            .group(GROUP)
            .help("Set the source address of outer headers, of policies that are there and those to come")
            .word("addr", "an address of the router, to which errors about outer packets come")
            .example("set sr encaps source addr fc00:0:1::1")
            .run(|engine: &mut Engine, args| {
                let source: Ipv6Addr = args.get("address")?;
                check_routed(args, "address", source, "the source of outer headers")?;
                change(
                    engine,
                    |policies| std::mem::replace(&mut policies.source, source),
                    |policies, before| {
                        policies.source = before;
                    },
                )
            }),
    );
    registry.command(
        Command::new("set sr encaps hop-limit (<hops:1-255>|propagate)")
            .group(GROUP)
            .help("Set the hop limit of outer headers, of policies that are there and those to come")
            .word("propagate", "what the inner packet has left, so that a traceroute sees the segments")
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
            Command::new(name).group(GROUP).help(help).run(|engine: &mut Engine, _| Ok(shown(engine))),
        );
    }
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

fn shown(engine: &Engine) -> Output {
    let mut table = Table::new([Column::left("Source address"), Column::left("Hop limit")]);
    if let Some(policies) = engine.get::<Policies>() {
        let source = match policies.source.is_unspecified() {
            true => "not set".to_owned(),
            false => policies.source.to_string(),
        };
        table.row().cell(source).cell(hop_limit_words(policies.hop_limit));
    }
    Output::none().table("encaps", table)
}

/// The part of `show running-config`.
pub(super) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(policies) = engine.get::<Policies>() else { return };
    if !policies.source.is_unspecified() {
        config.command(format_args!("set sr encaps source addr {}", policies.source));
    }
    if policies.hop_limit != HopLimit::Fixed(HOP_LIMIT) {
        config.command(format_args!("set sr encaps hop-limit {}", hop_limit_words(policies.hop_limit)));
    }
}

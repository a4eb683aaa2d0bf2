//! `show ip6 nd` and `show ip6 ra`: what is advertised here, and what others advertise.

use quiver_control::{Cell, Column, Command, Output, Registry, Table};
use quiver_core::{Engine, InterfaceId};
use quiver_wire::icmp6::nd::{PrefixInformation, prefix_flags, router_flags};
use serde_json::json;

use crate::commands::{GROUP, prefix_words};
use crate::config::{FOREVER_S, Preference};
use crate::message::{AdvertisedPrefixes, prefixes};
use crate::sender::own;
use crate::state::{Advertiser, Phase, RaState};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show ip6 nd [<interface>]")
            .group(GROUP)
            .help("Show what the router advertises to IPv6 hosts, interface by interface")
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(advertised(engine, only))
            }),
    );
    registry.command(
        Command::new("show ip6 ra [<interface>]")
            .group(GROUP)
            .help("Show the IPv6 routers that were heard, and in what they contradict this one")
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(heard(engine, only))
            }),
    );
}

fn advertised(engine: &Engine, only: Option<InterfaceId>) -> Output {
    let Some(state) = engine.get::<RaState>() else { return Output::none() };
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("State"),
        Column::right("Lifetime").key("lifetime_s"),
        Column::left("Interval"),
        Column::left("Flags"),
        Column::right("Sent"),
        Column::right("To one").key("sent_unicast"),
        Column::right("Not sent"),
        Column::right("Asked").key("solicitations"),
        Column::right("Heard").key("advertisements"),
        Column::right("Inconsistent"),
        Column::left("Prefixes").key("prefixes"),
    ])
    .when_empty("No interface advertises anything; ip6 nd INTERFACE no ra-suppress lets one begin");
    for (id, advertiser) in
        state.interfaces.iter().filter(|(id, _)| only.is_none_or(|only| only == **id))
    {
        let Advertiser { config, phase, counts, .. } = advertiser;
        let (min_s, max_s) = (config.min_interval_s(), config.max_interval_s);
        let interval =
            Cell::new(format!("{min_s}-{max_s}"), json!({ "min_s": min_s, "max_s": max_s }));
        let (told, left_out) = advertised_prefixes(engine, *id, advertiser);
        let mut words: Vec<String> =
            told.iter().map(|(prefix, said)| format!("{prefix}{}", prefix_words(said))).collect();
        if left_out > 0 {
            words.push(format!("and {left_out} that do not fit"));
        }
        table
            .row()
            .cell(engine.interface_name(*id))
            .cell(phase.word())
            .cell(config.lifetime_s())
            .cell(interval)
            .cell(flag_words(config.managed, config.other, config.preference))
            .cell(counts.sent)
            .cell(counts.sent_unicast)
            .cell(counts.not_sent)
            .cell(Cell::new(
                solicitations_text(counts.solicitations, counts.unanswered),
                counts.solicitations,
            ))
            .cell(counts.advertisements)
            .cell(counts.inconsistent)
            .cell(Cell::new(words.join(", "), words.clone()));
    }
    Output::none().table("interfaces", table)
}

fn solicitations_text(asked: u64, unanswered: u64) -> String {
    if unanswered == 0 { asked.to_string() } else { format!("{asked} ({unanswered} unanswered)") }
}

fn advertised_prefixes(
    engine: &Engine,
    id: InterfaceId,
    advertiser: &Advertiser,
) -> (AdvertisedPrefixes, usize) {
    let (own, gone) = match &advertiser.phase {
        Phase::Advertising { own, gone, .. } => (Some(own.clone()), gone.as_slice()),
        _ => (own(engine, id), &[][..]),
    };
    own.map_or_else(|| (Vec::new(), 0), |own| prefixes(&advertiser.config, &own, gone))
}

fn flag_words(managed: bool, other: bool, preference: Preference) -> Cell {
    let words = [
        (managed, "managed"),
        (other, "other"),
        (preference != Preference::Medium, preference.word()),
    ];
    let words: Vec<_> = words.into_iter().filter(|(set, _)| *set).map(|(_, word)| word).collect();
    Cell::new(words.join(" "), words)
}

fn heard(engine: &Engine, only: Option<InterfaceId>) -> Output {
    let Some(state) = engine.get::<RaState>() else { return Output::none() };
    let mut table = Table::new([
        Column::right("Age").key("age_s"),
        Column::left("Router").key("address"),
        Column::left("Interface"),
        Column::right("Lifetime").key("lifetime_s"),
        Column::right("Hop limit"),
        Column::right("MTU").key("mtu_bytes"),
        Column::left("Flags"),
        Column::left("Prefixes"),
        Column::left("Contradicts us in").key("contradicts"),
    ])
    .when_empty("No router was heard");
    for ((on, address), router) in &state.routers.known {
        if only.is_some_and(|only| only != *on) {
            continue;
        }
        let age = engine.now_ns().saturating_sub(router.heard_ns) as f64 / 1e9;
        let says = &router.says;
        let flag = |bit: u8| says.flags & bit != 0;
        let flags = flag_words(
            flag(router_flags::MANAGED),
            flag(router_flags::OTHER),
            Preference::of(says.flags),
        );
        let prefixes: Vec<_> = router.prefixes.values().map(heard_prefix_words).collect();
        table
            .row()
            .cell(Cell::real(age, 1))
            .cell(*address)
            .cell(engine.interface_name(*on))
            .cell(says.lifetime_s)
            .cell(says.hop_limit)
            .cell(says.mtu_bytes)
            .cell(flags)
            .cell(Cell::new(prefixes.join(", "), prefixes.clone()))
            .cell(Cell::new(router.contradicts.join(", "), router.contradicts.clone()));
    }
    let output = Output::none().table("routers", table);
    match state.routers.not_kept {
        0 => output,
        count => output.line(format!("{count} advertisements of further routers were not kept")),
    }
}

fn heard_prefix_words(says: &PrefixInformation) -> String {
    let mut words = format!("{}/{}", says.prefix, says.length);
    if says.valid_s == FOREVER_S && says.preferred_s == FOREVER_S {
        words += " infinite";
    } else {
        words += &format!(" {} {}", says.valid_s, says.preferred_s);
    }
    if says.flags & prefix_flags::ON_LINK == 0 {
        words += " off-link";
    }
    if says.flags & prefix_flags::AUTONOMOUS == 0 {
        words += " no-autoconfig";
    }
    words
}

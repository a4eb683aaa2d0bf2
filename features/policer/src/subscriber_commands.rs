//! Commands about policers of subscribers.

use std::fmt::Write as _;
use std::net::IpAddr;

use quiver_control::{
    Args, Column, Command, ConfigWriter, IpPrefix as Written, Listing, Output, Refusal, Registry,
    Table, Work, order, quoted,
};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;
use quiver_tables::prefix::IpPrefix;

use crate::commands::GROUP;
use crate::config::Config;
use crate::subscriber_config::{self, Subscribers, Wanted};
use crate::tables::Direction;

/// Subscribers that are looked at in a slice of a listing.
const SLICE_SUBSCRIBERS: usize = 4096;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "policer subscriber add <prefix:prefix> {policer <policer:word> [upload \
             <upload:word>] [each <each:1-128>]}",
        )
        .entry(
            order::RESOURCES,
            "policer-subscribers.<prefix>: {policer: <policer>, upload: <upload>, each: <each>}",
        )
        .undo("policer subscriber del <prefix>")
        .replaces(&["prefix"])
        .stands_on("policer <policer>")
        .stands_on("policer <upload>")
        .group(GROUP)
        .help("Give each subscriber of a prefix the rates of a policer, or other ones")
        .details(
            "Each subscriber has buckets of its own, with the rates and actions of the policer, on \
             the interfaces of `policer subscriber input` and `output`. Without each the whole \
             prefix is one subscriber. The longest prefix that matches a packet counts. A prefix \
             that is there gets the new policers at once, and keeps buckets and counts unless each \
             changes. The policer itself meters none of these packets.",
        )
        .word("policer", "the policer with the rates of what each receives")
        .word("upload", "the policer with the rates of what each sends")
        .word("each", "the length of a subscriber's prefix: 32 or 128 for each address")
        .example("policer subscriber add 10.0.0.0/18 policer gold upload silver each 32")
        .example("policer subscriber add 10.0.0.7/32 policer silver")
        .example("policer subscriber add 2001:db8::/48 policer gold each 64")
        .run(|engine: &mut Engine, args| {
            let wanted = Wanted {
                policer: args.get("policer")?,
                upload: args.optional("upload")?,
                each: args.optional("each")?,
            };
            subscriber_config::put(engine, prefix(args)?, wanted).map(|()| Output::none())
        }),
    );
    registry.command(
        Command::new("policer subscriber del <prefix:prefix>")
            .group(GROUP)
            .help("Meter the subscribers of a prefix no more")
            .example("policer subscriber del 10.0.0.7/32")
            .run(|engine: &mut Engine, args| {
                subscriber_config::delete(engine, prefix(args)?).map(|()| Output::none())
            }),
    );
    registry.command(
        Command::new("policer subscriber input|output <interface> [del]")
            .entry(
                order::FEATURES,
                "interfaces.<interface>.policer-subscribers.<input|output>: true",
            )
            .undo("policer subscriber [input] [output] <interface> del")
            .replaces(&["interface", "input", "output"])
            .group(GROUP)
            .help("Meter subscribers where an interface receives or sends, or no more")
            .details(
                "At input the source of a packet says whose it is, and upload whose rates hold; at \
                 output its destination does. Packets of nobody pass.",
            )
            .example("policer subscriber input e0")
            .example("policer subscriber output e0")
            .run(|engine: &mut Engine, args| {
                let on = args.interface(engine, "interface")?;
                let direction =
                    if args.has("input") { Direction::Input } else { Direction::Output };
                match args.has("del") {
                    true => subscriber_config::detach(engine, on, direction)?,
                    false => subscriber_config::attach(engine, on, direction)?,
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show policer subscriber [<address:ip>] [verbose]")
            .group(GROUP)
            .help(
                "Show whose packets policers meter; with an address or verbose: what they came to",
            )
            .details("verbose lists subscribers of whom packets were seen.")
            .word("address", "the subscriber who has this address")
            .example("show policer subscriber 10.0.0.7")
            .run_or_begin(show),
    );
}

/// The prefix of a command, whose bits behind the length do not count.
fn prefix(args: &Args<'_>) -> Result<IpPrefix, Refusal> {
    let written: Written = args.get("prefix")?;
    Ok(IpPrefix::new(written.address, written.length))
}

fn subscribers(engine: &Engine) -> Option<&Subscribers> {
    engine.get::<Config>().map(|config| &config.subscribers)
}

/// All prefixes.
pub(crate) fn prefixes(engine: &Engine) -> Vec<IpPrefix> {
    subscribers(engine).map_or_else(Vec::new, |of| of.known.keys().copied().collect())
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    match args.optional::<IpAddr>("address")? {
        Some(address) => {
            let found = subscribers(engine).and_then(|of| {
                let prefix = of.prefix_of(address)?;
                Some((prefix, of.place_in(prefix, address)?))
            });
            let found = found.ok_or_else(|| {
                let what = format!("{address} is no subscriber's");
                args.refuse("address", what).remedy("`show policer subscriber` lists prefixes")
            })?;
            let add = |engine: &Engine, table: &mut Table, found: (IpPrefix, u32)| {
                if let Some(of) = subscribers(engine) {
                    add_subscriber(of, table, found, true);
                }
            };
            Listing::over("subscribers", count_columns(), vec![found], add).begin(engine)
        }
        None if args.has("verbose") => {
            let (all, mut at) = (prefixes(engine), (0, 0));
            Listing::new("subscribers", count_columns(), move |engine: &mut Engine, table, most| {
                Ok(add_slice(engine, table, &all, &mut at, most).then(Output::none))
            })
            .begin(engine)
        }
        None => {
            let columns = [
                Column::left("Prefix"),
                Column::right("Each"),
                Column::left("Policer"),
                Column::left("Upload"),
                Column::right("Subscribers"),
            ];
            Listing::over("prefixes", columns, prefixes(engine), add_prefix).begin(engine)
        }
    }
}

fn add_prefix(engine: &Engine, table: &mut Table, prefix: IpPrefix) {
    let known = subscribers(engine).and_then(|of| of.known.get(&prefix));
    if let Some(known) = known {
        let Wanted { policer, upload, each } = &known.wanted;
        let row = table.row().cell(prefix.to_string()).cell(each.unwrap_or(prefix.len()));
        row.cell(policer).cell(upload.as_deref().unwrap_or_default()).cell(known.count());
    }
}

fn count_columns() -> Vec<Column> {
    vec![
        Column::left("Subscriber"),
        Column::left("Direction"),
        Column::left("Policer"),
        Column::right("Conform"),
        Column::right("Conform bytes"),
        Column::right("Exceed"),
        Column::right("Exceed bytes"),
        Column::right("Violate"),
        Column::right("Violate bytes"),
        Column::right("Unmetered"),
    ]
}

/// Add the rows of the subscriber at a place of a prefix, at most two; unless `all`, those with
/// packets. How many they are.
fn add_subscriber(
    of: &Subscribers,
    table: &mut Table,
    (prefix, at): (IpPrefix, u32),
    all: bool,
) -> usize {
    let Some(known) = of.known.get(&prefix) else { return 0 };
    let mut added = 0;
    for direction in [Direction::Output, Direction::Input] {
        let policer = known.wanted.policer(direction);
        let counted = of.counted(prefix, at, direction);
        let (Some(policer), Some((subscriber, counted))) = (policer, counted) else { continue };
        if all || !counted.is_nothing() {
            let row = table.row().cell(subscriber.to_string()).cell(direction.of_subscriber());
            let row = counted
                .colours
                .into_iter()
                .fold(row.cell(policer), |row, (packets, bytes)| row.cell(packets).cell(bytes));
            row.cell(counted.unmetered);
            added += 1;
        }
    }
    added
}

/// Add some subscribers with packets, from a prefix and a place in it on. Were they the last?
fn add_slice(
    engine: &Engine,
    table: &mut Table,
    all: &[IpPrefix],
    (prefix_at, at): &mut (usize, u32),
    most: usize,
) -> bool {
    let Some(of) = subscribers(engine) else { return true };
    let mut added = 0;
    for _ in 0..SLICE_SUBSCRIBERS {
        let Some(prefix) = all.get(*prefix_at) else { return true };
        if of.known.get(prefix).is_none_or(|known| *at >= known.count()) {
            (*prefix_at, *at) = (*prefix_at + 1, 0);
            continue;
        }
        added += add_subscriber(of, table, (*prefix, *at), false);
        *at += 1;
        if added + Direction::ALL.len() > most {
            break;
        }
    }
    *prefix_at >= all.len()
}

/// `show running-config`: the subscribers of a prefix.
pub(crate) fn write_prefix(engine: &Engine, config: &mut ConfigWriter, prefix: IpPrefix) {
    let known = subscribers(engine).and_then(|of| of.known.get(&prefix));
    let Some(Wanted { policer, upload, each }) = known.map(|known| &known.wanted) else { return };
    let mut line = format!("policer subscriber add {prefix} policer {}", quoted(policer));
    if let Some(upload) = upload {
        let _ = write!(line, " upload {}", quoted(upload));
    }
    if let Some(each) = each {
        let _ = write!(line, " each {each}");
    }
    config.command(format_args!("{line}"));
}

/// `show running-config`: an interface's directions.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let Some(of) = subscribers(engine) else { return };
    for direction in Direction::ALL {
        if of.on.contains(&(interface.id, direction)) {
            let (word, name) = (direction.word(), &interface.name);
            config.command(format_args!("policer subscriber {word} {name}"));
        }
    }
}

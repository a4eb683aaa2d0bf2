//! Commands that make tables and sessions, and say where tables classify.

use std::fmt::Write as _;

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use crate::config::{self, Config, Lists, refusal};
use crate::key::{KEY_BYTES, key_of};
use crate::mask::Mask;
use crate::tables::{Action, Direction};

/// The group of the commands.
pub(crate) const GROUP: &str = "Classifier";

pub(crate) fn register(registry: &mut Registry) {
    tables(registry);
    sessions(registry);
    registry.command(
        Command::new(
            "set interface input|output acl intfc <interface> {[ip4-table <ip4:0-255>] \
             [ip6-table <ip6:0-255>] [l2-table <l2:0-255>]} [del]",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.classify.<input|output>: {ip4-table: <ip4>, ip6-table: <ip6>, \
             l2-table: <l2>}",
        )
        .undo("set interface [input] [output] acl intfc <interface> del")
        .replaces(&["interface", "input", "output"])
        .stands_on("classifier table <ip4>")
        .stands_on("classifier table <ip6>")
        .stands_on("classifier table <l2>")
        .group(GROUP)
        .help("Let classifier tables say what an interface may receive or send, or no more")
        .details(
            "A packet that meets a session is permitted or denied by it. One that meets none is \
             looked up in the tables behind, and at their end becomes what acl-miss-next says.",
        )
        .word("ip4-table", "the first table for IPv4 packets")
        .word("ip6-table", "the first table for IPv6 packets")
        .word("l2-table", "the first table for all other frames")
        .word("del", "no table classifies its packets any more")
        .example("set interface input acl intfc e0 ip4-table 0")
        .example("set interface input acl intfc e0 del")
        .run(set_lists),
    );
}

fn tables(registry: &mut Registry) {
    registry.command(
        Command::new(
            "classify table {[table <:0-255>] [acl-miss-next <miss:permit|deny>] [next-table \
             <next:0-255>]} mask <mask:rest>",
        )
        .entry(
            order::RESOURCES,
            "classify.tables.<table>: {mask, acl-miss-next: <miss>, next-table: <next>}",
        )
        .undo("classify table del table <table>")
        .makes("classifier table <table>")
        .stands_on("classifier table <next>")
        .group(GROUP)
        .help("Make a classifier table: a mask, under which packets are compared with sessions")
        .details(MASK_DETAILS)
        .word("table", "its number; the smallest that is free unless given")
        .word("acl-miss-next", "what becomes of packets without a session at the end; permit")
        .word("next-table", "where packets without a session are looked up next")
        .word("mask", "the bits that count, up to the end of the line")
        .example("classify table mask l3 ip4 src")
        .example("classify table table 3 acl-miss-next deny mask l3 ip4 src/24 proto l4 dst_port")
        .example("classify table mask hex 0000000000000000000000000000000000000000000000ff")
        .run(add_table),
    );
    registry.command(
        Command::new("classify table del table <table:0-255>")
            .group(GROUP)
            .help("Delete a classifier table that nothing uses, with its sessions")
            .example("classify table del table 3")
            .run(|engine: &mut Engine, args| {
                config::delete_table(engine, args.get("table")?)?;
                Ok(Output::none())
            }),
    );
}

/// The details of `classify table`.
const MASK_DETAILS: &str = "A mask is hex and the digits of a frame's first bytes, of \
    which at most 80 count, behind vectors of 16 zero bytes; or fields: l2 src dst proto, l3 ip4 \
    src dst proto tos ttl, l3 ip6 src dst proto, and behind them l4 src_port dst_port. An address \
    may have a length, as in src/24. Fields are found behind VLAN tags and IPv4 options, too. \
    Tables grow with their sessions: VPP's buckets and memory-size have nothing to do here.";

fn sessions(registry: &mut Registry) {
    registry.command(
        Command::new(
            "classify session acl-hit-next <action:permit|deny> table-index <table:0-255> match \
             <match:rest>",
        )
        .entry(order::RESOURCES, "classify.sessions.<table>.<match>: <action>")
        .undo("classify session del table-index <table> match <match>")
        .replaces(&["table", "match"])
        .stands_on("classifier table <table>")
        .makes("session of <table> <match>")
        .group(GROUP)
        .help("Add a session to a classifier table, or give it another action")
        .details(
            "A match is hex and the digits of a frame's first bytes; or a value for each field of \
             the table's mask, in the mask's words.",
        )
        .word("acl-hit-next", "what becomes of packets that meet it, at an access list")
        .word("match", "what packets have under the mask, up to the end of the line")
        .example("classify session acl-hit-next deny table-index 0 match l3 ip4 src 192.0.2.1")
        .run(|engine: &mut Engine, args| {
            let action = Action::of_word(args.get("action")?);
            config::put_session(engine, args.get("table")?, rest(args, "match")?, action)?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("classify session del table-index <table:0-255> match <match:rest>")
            .group(GROUP)
            .help("Take a session out of its classifier table")
            .example("classify session del table-index 0 match l3 ip4 src 192.0.2.1")
            .run(|engine: &mut Engine, args| {
                config::delete_session(engine, args.get("table")?, rest(args, "match")?)?;
                Ok(Output::none())
            }),
    );
}

/// The words at the end of a line, which may stand in quotation marks.
pub(crate) fn rest<'a>(args: &Args<'a>, name: &str) -> Result<&'a str, Refusal> {
    let text: &'a str = args.get(name)?;
    let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    Ok(inside.unwrap_or(text))
}

fn add_table(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let mask = Mask::read(rest(args, "mask")?).map_err(refusal)?;
    let miss = Action::of_word(args.or("miss", "permit")?);
    let given: Option<u16> = args.optional("table")?;
    let number = config::add_table(engine, given, mask, (miss, args.optional("next")?))?;
    Ok(match given {
        Some(_) => Output::none(),
        None => Output::none().field("Table", number),
    })
}

fn set_lists(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let on = args.interface(engine, "interface")?;
    let direction = if args.has("input") { Direction::Input } else { Direction::Output };
    let lists = match args.has("del") {
        true => Lists::default(),
        false => Lists {
            ip4: args.optional("ip4")?,
            ip6: args.optional("ip6")?,
            l2: args.optional("l2")?,
        },
    };
    if lists == Lists::default() && !args.has("del") {
        let what = format!("set interface {} acl: by which tables?", direction.word());
        return Err(Refusal::new(what).remedy("say ip4-table, ip6-table or l2-table, or del"));
    }
    config::set_lists(engine, (on, direction), lists)?;
    Ok(Output::none())
}

/// The numbers of all tables, each behind that which packets go on to.
pub(crate) fn numbers(engine: &Engine) -> Vec<u16> {
    let Some(config) = engine.get::<Config>() else { return Vec::new() };
    let mut numbers: Vec<u16> = config.tables.keys().copied().collect();
    numbers.sort_by_key(|number| (config.depth(*number), *number));
    numbers
}

/// A line of the configuration: a table, or the session of it that has this under the mask.
pub(crate) type Line = (u16, Option<[u8; KEY_BYTES]>);

/// All lines: each table, then its sessions.
pub(crate) fn lines(engine: &Engine) -> Vec<Line> {
    let Some(config) = engine.get::<Config>() else { return Vec::new() };
    let of = |number: u16| {
        let sessions = config.tables.get(&number).map(|table| table.sessions.keys());
        let sessions = sessions.into_iter().flatten().map(move |key| (number, Some(*key)));
        std::iter::once((number, None)).chain(sessions)
    };
    numbers(engine).into_iter().flat_map(of).collect()
}

/// `show running-config`: a table, or a session.
pub(crate) fn write_line(engine: &Engine, config: &mut ConfigWriter, (number, key): Line) {
    let known = engine.get::<Config>();
    let Some(table) = known.and_then(|known| known.tables.get(&number)) else { return };
    let Some(bytes) = key else {
        let mut line = format!("classify table table {number}");
        if table.miss != Action::Permit {
            let _ = write!(line, " acl-miss-next {}", table.miss.word());
        }
        if let Some(next) = table.next {
            let _ = write!(line, " next-table {next}");
        }
        return config.command(format_args!("{line} mask {}", table.mask));
    };
    let Some(session) = table.sessions.get(&bytes) else { return };
    let (action, words) = (session.action.word(), table.mask.write_match(&key_of(&bytes)));
    config.command(format_args!(
        "classify session acl-hit-next {action} table-index {number} match {words}"
    ));
}

/// `show running-config`: the tables of an interface.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let Some(known) = engine.get::<Config>() else { return };
    for direction in Direction::ALL {
        let Some(lists) = known.lists.get(&(interface.id, direction)) else { continue };
        let mut line = format!("set interface {} acl intfc {}", direction.word(), interface.name);
        for (word, table) in lists.named() {
            if let Some(table) = table {
                let _ = write!(line, " {word} {table}");
            }
        }
        config.command(format_args!("{line}"));
    }
}

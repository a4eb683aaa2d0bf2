//! Commands that make tables and sessions, and say where tables classify.

use std::fmt::Write as _;

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use crate::action::Action;
use crate::config::{self, Config, Configured, Lists, refusal};
use crate::mask::Mask;
use crate::tables::{Direction, Purpose};

/// The group of the commands.
pub(crate) const GROUP: &str = "Classifier";

pub(crate) fn register(registry: &mut Registry) {
    tables(registry);
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
    config::set_lists(engine, (on, Purpose::Access, direction), lists)?;
    Ok(Output::none())
}

/// The numbers of all tables, each behind that which packets go on to.
pub(crate) fn numbers(engine: &Engine) -> Vec<u16> {
    let Some(config) = engine.get::<Config>() else { return Vec::new() };
    let mut numbers: Vec<u16> = config.tables.keys().copied().collect();
    numbers.sort_by_key(|number| (config.depth(*number), *number));
    numbers
}

/// `show running-config`: a table.
pub(crate) fn write_table(known: &Configured, config: &mut ConfigWriter, number: u16) {
    let mut line = format!("classify table table {number}");
    if known.miss != Action::Permit {
        let _ = write!(line, " acl-miss-next {}", known.miss.word());
    }
    if let Some(next) = known.next {
        let _ = write!(line, " next-table {next}");
    }
    config.command(format_args!("{line} mask {}", known.mask));
}

/// `show running-config`: the tables of an interface.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let Some(known) = engine.get::<Config>() else { return };
    for (purpose, direction) in Purpose::ALL.into_iter().flat_map(of_both) {
        let Some(lists) = known.lists.get(&(interface.id, purpose, direction)) else { continue };
        let (word, name) = (direction.word(), &interface.name);
        let mut line = match purpose {
            Purpose::Access => format!("set interface {word} acl intfc {name}"),
            Purpose::Police => format!("set policer classify interface {name} {word}"),
        };
        for (word, table) in lists.named() {
            if let Some(table) = table {
                let _ = write!(line, " {word} {table}");
            }
        }
        config.command(format_args!("{line}"));
    }
}

fn of_both(purpose: Purpose) -> [(Purpose, Direction); 2] {
    Direction::ALL.map(|direction| (purpose, direction))
}

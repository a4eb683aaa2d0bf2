//! Commands that make sessions: what becomes of packets that meet them.

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order, quoted};
use quiver_core::Engine;
use quiver_forwarding::fib::Family;
use quiver_policing::meter::Colour;

use crate::action::Action;
use crate::commands::{GROUP, numbers, rest, write_table};
use crate::config::Config;
use crate::key::{KEY_BYTES, key_of};
use crate::session_config::{self, Wanted};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "classify session acl-hit-next <action:permit|deny> [action (set-ip4-fib-id \
             <fib4:u32> | set-ip6-fib-id <fib6:u32>)] table-index <table:0-255> match <match:rest>",
        )
        .also(
            "classify session action (set-ip4-fib-id <fib4:u32> | set-ip6-fib-id <fib6:u32>) \
             table-index <table:0-255> match <match:rest>",
        )
        .entry(order::RESOURCES, "classify.sessions.<table>.<match>: <action>")
        .entry(
            order::FEATURES,
            "classify.fib-sessions.<table>.<match>: {acl-hit-next: <action>, set-ip4-fib-id: \
             <fib4>, set-ip6-fib-id: <fib6>}",
        )
        .undo(UNDO)
        .replaces(&["table", "match"])
        .stands_on("classifier table <table>")
        .stands_on("table <fib4>")
        .stands_on("table <fib6>")
        .makes("session of <table> <match>")
        .group(GROUP)
        .help("Add a session to a classifier table, or give it another action")
        .details(
            "A match is hex and the digits of a frame's first bytes; or a value for each field of \
             the table's mask, in the mask's words. With action set-ip4-fib-id or set-ip6-fib-id \
             packets of that family that an interface receives are looked up in that table in the \
             place of the interface's, if its tables are those of `set interface input acl`.",
        )
        .word("acl-hit-next", "what becomes of packets that meet it, at an access list")
        .word(
            "set-ip4-fib-id",
            "the table that IPv4 packets are looked up in, as in `ip table add`",
        )
        .word("set-ip6-fib-id", "the same, of IPv6 packets, as in `ip6 table add`")
        .word("match", MATCH_HELP)
        .example("classify session acl-hit-next deny table-index 0 match l3 ip4 src 192.0.2.1")
        .example(
            "classify session acl-hit-next permit action set-ip4-fib-id 7 table-index 0 match l3 \
             ip4 src 192.0.2.1",
        )
        .run(|engine: &mut Engine, args| put(engine, args, routed(args)?)),
    );
    registry.command(
        Command::new(
            "classify session policer-hit-next <policer:word> \
             [<color:conform-color|exceed-color>] table-index <table:0-255> match <match:rest>",
        )
        .entry(
            order::RESOURCES,
            "classify.policer-sessions.<table>.<match>: {policer: <policer>, color: <color>}",
        )
        .undo(UNDO)
        .replaces(&["table", "match"])
        .stands_on("classifier table <table>")
        .stands_on("policer <policer>")
        .makes("session of <table> <match>")
        .group(GROUP)
        .help("Add a session to a classifier table whose packets a policer meters")
        .details(
            "Packets are metered on the interfaces that `set policer classify` names with the \
             table. At an access list they pass. Several sessions may have one policer: they share \
             its rate.",
        )
        .word("policer-hit-next", "the policer, as in `policer add name …`")
        .word("conform-color", "the colour that its packets had before, if the policer is aware")
        .word("match", MATCH_HELP)
        .example("classify session policer-hit-next gold table-index 0 match l3 ip4 src 192.0.2.1")
        .run(|engine: &mut Engine, args| {
            let policer: &str = args.get("policer")?;
            let before = match args.or("color", CONFORM)? {
                EXCEED => Colour::Yellow,
                _ => Colour::Green,
            };
            put(engine, args, Wanted::Police { policer: policer.into(), before })
        }),
    );
    registry.command(
        Command::new("classify session del table-index <table:0-255> match <match:rest>")
            .group(GROUP)
            .help("Take a session out of its classifier table")
            .example("classify session del table-index 0 match l3 ip4 src 192.0.2.1")
            .run(|engine: &mut Engine, args| {
                session_config::delete(engine, args.get("table")?, rest(args, "match")?)?;
                Ok(Output::none())
            }),
    );
}

const UNDO: &str = "classify session del table-index <table> match <match>";
const MATCH_HELP: &str = "what packets have under the mask, up to the end of the line";
/// VPP's words for the colours of packets before they are metered.
const CONFORM: &str = "conform-color";
const EXCEED: &str = "exceed-color";

fn put(engine: &mut Engine, args: &Args<'_>, wanted: Wanted) -> Result<Output, Refusal> {
    session_config::put(engine, args.get("table")?, rest(args, "match")?, wanted)?;
    Ok(Output::none())
}

/// What becomes of packets at an access list, and of their routes.
fn routed(args: &Args<'_>) -> Result<Wanted, Refusal> {
    let action = Action::of_word(args.or("action", "permit")?);
    let (fib4, fib6) = (args.optional("fib4")?, args.optional("fib6")?);
    let (word, family, id) = match (fib4, fib6) {
        (Some(id), _) => ("fib4", Family::Ip4, id),
        (None, Some(id)) => ("fib6", Family::Ip6, id),
        (None, None) => return Ok(Wanted::Access(action)),
    };
    if action == Action::Deny {
        return Err(args
            .refuse(word, "packets that are denied are not looked up")
            .remedy("permit"));
    }
    Ok(Wanted::LookUp { family, id })
}

/// VPP's word for the colour that packets had.
pub(crate) const fn colour_word(before: Colour) -> &'static str {
    match before {
        Colour::Green => CONFORM,
        _ => EXCEED,
    }
}

/// The words of a session in front of `table-index`.
fn words(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Access(action) => format!("acl-hit-next {}", action.word()),
        Wanted::Police { policer, before } => {
            let colour = match colour_word(*before) {
                CONFORM => String::new(),
                word => format!(" {word}"),
            };
            format!("policer-hit-next {}{colour}", quoted(policer))
        }
        Wanted::LookUp { family, id } => {
            let word = if *family == Family::Ip4 { "set-ip4-fib-id" } else { "set-ip6-fib-id" };
            format!("acl-hit-next permit action {word} {id}")
        }
    }
}

/// A line of the configuration: a table, or the session of it that has this under the mask.
pub(crate) type Line = (u16, Option<[u8; KEY_BYTES]>);

/// Tables of routes are made later than classifier tables and their other sessions.
fn is_about_routes(wanted: &Wanted) -> bool {
    matches!(wanted, Wanted::LookUp { .. })
}

/// The sessions of a table that are, or are not, about tables of routes.
fn sessions(engine: &Engine, number: u16, about_routes: bool) -> impl Iterator<Item = Line> {
    let table = engine.get::<Config>().and_then(|config| config.tables.get(&number));
    let all = table.into_iter().flat_map(|table| &table.sessions);
    all.filter(move |(_, session)| is_about_routes(&session.wanted) == about_routes)
        .map(move |(key, _)| (number, Some(*key)))
}

/// Each table, then its sessions that are not about tables of routes.
pub(crate) fn lines(engine: &Engine) -> Vec<Line> {
    let of = |number| std::iter::once((number, None)).chain(sessions(engine, number, false));
    numbers(engine).into_iter().flat_map(of).collect()
}

/// The sessions that are.
pub(crate) fn route_lines(engine: &Engine) -> Vec<Line> {
    numbers(engine).into_iter().flat_map(|number| sessions(engine, number, true)).collect()
}

/// `show running-config`: a table, or a session.
pub(crate) fn write_line(engine: &Engine, config: &mut ConfigWriter, (number, key): Line) {
    let known = engine.get::<Config>();
    let Some(table) = known.and_then(|known| known.tables.get(&number)) else { return };
    let Some(bytes) = key else { return write_table(table, config, number) };
    let Some(session) = table.sessions.get(&bytes) else { return };
    let (words, matched) = (words(&session.wanted), table.mask.write_match(&key_of(&bytes)));
    config.command(format_args!("classify session {words} table-index {number} match {matched}"));
}

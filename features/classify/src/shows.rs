//! Commands that show tables, sessions, and where tables classify.

use std::sync::atomic::Ordering;

use quiver_control::{Args, Cell, Column, Command, Listing, Refusal, Registry, Table, Work};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Family;

use crate::commands::{GROUP, numbers};
use crate::config::{Config, Lists};
use crate::key::{KEY_BYTES, key_of};
use crate::session_commands::colour_word;
use crate::session_config::Wanted;
use crate::tables::{Direction, Purpose};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show classify tables [index <index:0-255>] [verbose]")
            .group(GROUP)
            .help("Show classifier tables and what packets met there; verbose: their sessions")
            .word("verbose", "show sessions, and how many packets met each")
            .example("show classify tables index 0 verbose")
            .run_or_begin(tables),
    );
    registry.command(
        Command::new("show classify policer [type <type:ip4|ip6|l2>]")
            .group(GROUP)
            .help("Show which classifier tables say what policers meter of interfaces")
            .word("type", "only tables for such packets")
            .example("show classify policer type ip4")
            .run_or_begin(policers),
    );
    for direction in Direction::ALL {
        let (syntax, help) = match direction {
            Direction::Input => {
                ("show inacl", "Show which classifier tables say what interfaces may receive")
            }
            Direction::Output => {
                ("show outacl", "Show which classifier tables say what interfaces may send")
            }
        };
        registry.command(
            Command::new(syntax)
                .group(GROUP)
                .help(help)
                .run_or_begin(move |engine: &mut Engine, _| lists(engine, direction)),
        );
    }
}

fn tables(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let mut all = numbers(engine);
    all.sort_unstable();
    if let Some(only) = args.optional::<u16>("index")? {
        if !all.contains(&only) {
            let what = format!("there is no classifier table {only}");
            return Err(args.refuse("index", what).remedy("`show classify tables` lists them"));
        }
        all = vec![only];
    }
    if args.has("verbose") {
        return sessions(engine, all);
    }
    let columns = [
        Column::right("Table"),
        Column::left("Mask"),
        Column::right("Next"),
        Column::left("Miss"),
        Column::right("Sessions"),
        Column::right("Hits"),
        Column::right("Misses"),
    ];
    Listing::over("tables", columns, all, add_table).begin(engine)
}

fn add_table(engine: &Engine, table: &mut Table, number: u16) {
    let Some(config) = engine.get::<Config>() else { return };
    let Ok(known) = config.known(number) else { return };
    let hits = known.sessions.values().map(|session| config.published().hits(session.index));
    let row = table.row().cell(number).cell(known.mask.to_string());
    let row = row.cell(Cell::optional(known.next, "none")).cell(known.miss.word());
    let row = row.cell(known.sessions.len()).cell(hits.sum::<u64>());
    row.cell(known.misses.load(Ordering::Relaxed));
}

fn sessions(engine: &mut Engine, tables: Vec<u16>) -> Result<Work<Engine>, Refusal> {
    let keys: Vec<(u16, [u8; KEY_BYTES])> = match engine.get::<Config>() {
        None => Vec::new(),
        Some(config) => {
            let of = |number: u16| {
                let sessions = config.tables.get(&number).map(|table| &table.sessions);
                sessions.into_iter().flat_map(move |all| all.keys().map(move |key| (number, *key)))
            };
            tables.into_iter().flat_map(of).collect()
        }
    };
    let columns = [
        Column::right("Table"),
        Column::left("Match"),
        Column::left("Action"),
        Column::left("Policer"),
        Column::left("Color"),
        Column::right("FIB").key("fib_id"),
        Column::right("Hits"),
    ];
    let add = |engine: &Engine, table: &mut Table, (number, bytes): (u16, [u8; KEY_BYTES])| {
        let Some(config) = engine.get::<Config>() else { return };
        let Ok(known) = config.known(number) else { return };
        let Some(session) = known.sessions.get(&bytes) else { return };
        let row = table.row().cell(number).cell(known.mask.write_match(&key_of(&bytes)));
        let (action, policer, colour, fib_id) = match &session.wanted {
            Wanted::Access(action) => (action.word(), None, None, None),
            Wanted::Police { policer, before } => {
                ("policer", Some(&**policer), Some(colour_word(*before)), None)
            }
            Wanted::LookUp { family: Family::Ip4, id } => ("set-ip4-fib", None, None, Some(*id)),
            Wanted::LookUp { family: Family::Ip6, id } => ("set-ip6-fib", None, None, Some(*id)),
        };
        let row = row.cell(action).cell(Cell::optional(policer, "none"));
        let row = row.cell(Cell::optional(colour, "none")).cell(Cell::optional(fib_id, "none"));
        row.cell(config.published().hits(session.index));
    };
    Listing::over("sessions", columns, keys, add).begin(engine)
}

fn lists(engine: &mut Engine, direction: Direction) -> Result<Work<Engine>, Refusal> {
    let ids: Vec<InterfaceId> = engine.interfaces_by_name().map(|interface| interface.id).collect();
    let columns = [
        Column::left("Interface"),
        Column::right("IPv4 table").key("ip4_table"),
        Column::right("IPv6 table").key("ip6_table"),
        Column::right("L2 table").key("l2_table"),
    ];
    let add = move |engine: &Engine, table: &mut Table, id: InterfaceId| {
        let on = (id, Purpose::Access, direction);
        let lists = engine.get::<Config>().and_then(|config| config.lists.get(&on));
        let Some(Lists { ip4, ip6, l2 }) = lists.copied() else { return };
        let row = table.row().cell(engine.interface_name(id));
        row.cell(ip4).cell(ip6).cell(l2);
    };
    Listing::over("interfaces", columns, ids, add).begin(engine)
}

fn policers(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let ids: Vec<InterfaceId> = engine.interfaces_by_name().map(|interface| interface.id).collect();
    let only: Option<String> = args.optional("type")?;
    let columns = [
        Column::left("Interface"),
        Column::left("Direction"),
        Column::left("Type"),
        Column::right("Table"),
    ];
    let add = move |engine: &Engine, table: &mut Table, id: InterfaceId| {
        let Some(config) = engine.get::<Config>() else { return };
        for direction in Direction::ALL {
            let lists = config.lists.get(&(id, Purpose::Police, direction));
            for (word, number) in lists.into_iter().flat_map(|lists| lists.named()) {
                let kind = word.trim_end_matches("-table");
                if let Some(number) = number
                    && only.as_deref().is_none_or(|only| only == kind)
                {
                    let row = table.row().cell(engine.interface_name(id)).cell(direction.word());
                    row.cell(kind).cell(number);
                }
            }
        }
    };
    Listing::over("interfaces", columns, ids, add).begin(engine)
}

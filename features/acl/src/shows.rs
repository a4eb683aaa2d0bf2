//! Commands that show lists.

use quiver_access_lists::ListUsers;
use quiver_classifier::{Cost, Structure};
use quiver_control::{Cell, Column, Command, Listing, Output, Refusal, Registry, Table, Work};
use quiver_core::Engine;
use serde_json::json;

use crate::commands::GROUP;
use crate::compiled::Compiled;
use crate::config::{Lists, no_list};
use crate::tables::Direction;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show acl-plugin acl [index <index:u32>]")
            .group(GROUP)
            .help("Show access lists, or the rules of one")
            .details(
                "The rules of a list have packets and bytes when `set acl-plugin counters` is on: \
                 bytes from the IP header on, on all interfaces together.",
            )
            .example("show acl-plugin acl index 3")
            .run_or_begin(|engine: &mut Engine, args| match args.optional("index")? {
                Some(index) => rules(engine, index),
                None => lists(engine),
            }),
    );
    registry.command(
        Command::new("show acl-plugin interface [<interface>]")
            .group(GROUP)
            .help("Show which access lists filter what interfaces receive and send, in order")
            .run_or_begin(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                interfaces(engine, only)
            }),
    );
    registry.command(
        Command::new("show acl-plugin tables")
            .group(GROUP)
            .help("Show how the lists of interfaces are compiled, and what a packet costs at most")
            .details(
                "Lists that an interface has together are compiled as one. linear: all rules are \
                 compared, sixteen in a step. bitmaps: probes are the rules with matching \
                 prefixes, compared in order. tuples: probes are searches for a pair of prefix \
                 lengths; a list of rules with the same prefixes takes the steps of its length. \
                 The worst case follows from the rules, and no traffic makes it worse. Changes are \
                 rules that are gone or new since the list was compiled: the steps of the new ones \
                 are among the steps at most.",
            )
            .run_or_begin(|engine: &mut Engine, _| tables(engine)),
    );
    registry.command(
        Command::new("show acl <acl:u32> cost")
            .group(GROUP)
            .help("Show the structure that an access list alone is compiled to, and its worst case")
            .example("show acl 3 cost")
            .run_or_begin(|engine: &mut Engine, args| cost(engine, args.get("acl")?)),
    );
}

fn lists(engine: &mut Engine) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::right("ACL"),
        Column::left("Tag"),
        Column::right("Rules"),
        Column::left("Input"),
        Column::left("Output"),
    ];
    let all = engine.get::<Lists>().into_iter().flat_map(|lists| lists.after(None));
    let indexes: Vec<u32> = all.map(|(index, _)| index).collect();
    let add = |engine: &Engine, table: &mut Table, index: u32| {
        let Some(lists) = engine.get::<Lists>() else { return };
        let Some(acl) = lists.get(index) else { return };
        let has = |on| lists.of(on).any(|(_, list)| list == index);
        let mut row = table.row().cell(index).cell(acl.tag.clone()).cell(acl.len());
        for wanted in [Direction::Input, Direction::Output] {
            let places = lists.places().filter(|on| on.1 == wanted && has(*on));
            let names: Vec<String> =
                places.map(|(id, _)| engine.interface_name(id).to_string()).collect();
            row = row.cell(Cell::new(names.join(", "), names));
        }
    };
    Listing::over("acls", columns, indexes, add)
        .when_empty("no access lists; `set acl-plugin acl` makes one")
        .begin(engine)
}

fn rules(engine: &mut Engine, index: u32) -> Result<Work<Engine>, Refusal> {
    let acl = engine.get::<Lists>().and_then(|lists| lists.get(index));
    let acl = acl.ok_or_else(|| no_list(index))?.clone();
    let columns = [
        Column::right("Place"),
        Column::left("Rule"),
        Column::right("Packets"),
        Column::right("Bytes"),
    ];
    let places: Vec<usize> = (0..acl.len()).collect();
    let head = Output::none().field("Tag", acl.tag.clone());
    let add = move |_: &Engine, table: &mut Table, place: usize| {
        let Some(entry) = acl.entry(place) else { return };
        let [packets, bytes] = entry.sums();
        table.row().cell(place).cell(entry.rule.to_string()).cell(packets).cell(bytes);
    };
    Listing::over("rules", columns, places, add).head(head).begin(engine)
}

fn interfaces(
    engine: &mut Engine,
    only: Option<quiver_core::InterfaceId>,
) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::left("Interface"),
        Column::left("Direction"),
        Column::right("Sequence"),
        Column::right("ACL"),
    ];
    let mut all = Vec::new();
    if let Some(lists) = engine.get::<Lists>() {
        for interface in engine.interfaces_by_name() {
            for direction in Direction::ALL {
                let on = (interface.id, direction);
                all.extend(lists.of(on).map(|(sequence, list)| (on, sequence, list)));
            }
        }
    }
    all.retain(|((id, _), ..)| only.is_none_or(|only| only == *id));
    let add = |engine: &Engine, table: &mut Table, ((id, direction), sequence, list)| {
        let (name, direction): (_, Direction) = (engine.interface_name(id), direction);
        let (sequence, list): (u32, u32) = (sequence, list);
        table.row().cell(name).cell(direction.word()).cell(sequence).cell(list);
    };
    Listing::over("attachments", columns, all, add)
        .when_empty("no interface has an access list")
        .begin(engine)
}

fn columns(first: &[Column]) -> Vec<Column> {
    let mut columns = first.to_vec();
    columns.extend([
        Column::left("Family"),
        Column::left("Structure"),
        Column::right("Rules"),
        Column::right("Tuples"),
        Column::right("Pairs"),
        Column::right("Probes at most").key("probes_max"),
        Column::right("Longest list").key("list_max"),
        Column::right("Steps at most").key("steps_max"),
        Column::right("Changes"),
        Column::right("Bytes"),
    ]);
    columns
}

fn word(structure: Structure) -> &'static str {
    match structure {
        Structure::Linear => "linear",
        Structure::Bitmaps => "bitmaps",
        Structure::Tuples => "tuples",
    }
}

fn families(compiled: &Compiled) -> [(&'static str, Cost); 2] {
    [("ip4", compiled.ip4.cost()), ("ip6", compiled.ip6.cost())]
}

/// The rest of a row.
macro_rules! add_cost {
    ($row:expr, $family:expr, $cost:expr) => {
        $row.cell($family)
            .cell(word($cost.structure))
            .cell($cost.rules)
            .cell($cost.tuples)
            .cell($cost.pairs)
            .cell($cost.probes_max)
            .cell($cost.list_max)
            .cell($cost.steps_max)
            .cell($cost.changes)
            .cell($cost.bytes)
    };
}

fn tables(engine: &mut Engine) -> Result<Work<Engine>, Refusal> {
    let all = engine.get::<Lists>().into_iter().flat_map(Lists::compiled);
    let sets: Vec<Vec<u32>> = all.map(|(set, _)| set.clone()).collect();
    let add = |engine: &Engine, table: &mut Table, set: Vec<u32>| {
        let Some(lists) = engine.get::<Lists>() else { return };
        let Some((_, compiled)) = lists.compiled().find(|(of, _)| **of == set) else { return };
        let words: Vec<String> = set.iter().map(u32::to_string).collect();
        for (family, cost) in families(compiled) {
            let others = match set[..] {
                [one] => engine.get::<ListUsers>().map_or(0, |users| users.count(one)),
                _ => 0,
            };
            let users = lists.users(&set).count() + others;
            let row = table.row().cell(Cell::new(words.join(" "), json!(set))).cell(users);
            add_cost!(row, family, cost);
        }
    };
    let first = [Column::left("ACLs"), Column::right("Users")];
    Listing::over("tables", columns(&first), sets, add)
        .when_empty("no access list is used")
        .begin(engine)
}

fn cost(engine: &mut Engine, index: u32) -> Result<Work<Engine>, Refusal> {
    let lists = engine.get::<Lists>().ok_or_else(|| no_list(index))?;
    let acl = lists.get(index).ok_or_else(|| no_list(index))?.clone();
    if let Some(compiled) = lists.compiled.get([index].as_slice()) {
        return Ok(Work::Done(cost_table(families(compiled))));
    }
    let work = move || {
        Compiled::new(vec![acl]).map_err(crate::config::not_compiled).map(|all| families(&all))
    };
    quiver_control::in_background(work, |_: &mut Engine, families| Ok(cost_table(families)))
}

fn cost_table(families: [(&'static str, Cost); 2]) -> Output {
    let mut table = Table::new(columns(&[]));
    for (family, cost) in families {
        add_cost!(table.row(), family, cost);
    }
    Output::none().table("cost", table)
}

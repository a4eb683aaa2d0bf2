//! Commands that show shapers and subscribers.

use quiver_control::{
    Args, Cell, Column, Command, Listing, Output, Refusal, Registry, Table, Work,
};
use quiver_core::{Engine, InterfaceId};
use quiver_shaping::stats::Counted;

use crate::commands::{GROUP, names, words};
use crate::config::Shapers;
use crate::orders;
use crate::subscriber_commands::ids;
use crate::tables::Direction;

/// Subscribers that `show shaper top` lists when nobody says how many.
const TOP_DEFAULT: usize = 10;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show shaper [<name:word>]")
            .group(GROUP)
            .help("Show shapers, their rates, and what waits")
            .details(
                "What was sent is that of all packets of a shaper, its children's too. Drops, \
                 marks and what waits are those of its packets without a subscriber. Delays \
                 are the upper ends of powers of two, of packets that had to wait.",
            )
            .example("show shaper home")
            .run_or_begin(shapers),
    );
    registry.command(
        Command::new("show shaper subscribers [<id:word>]")
            .group(GROUP)
            .help("Show subscribers, their plans, and what waits")
            .example("show shaper subscribers alice")
            .run_or_begin(|engine: &mut Engine, args| {
                let all = match args.optional::<String>("id")? {
                    None => ids(engine),
                    Some(id) if ids(engine).contains(&id) => vec![id],
                    Some(id) => {
                        return Err(args
                            .refuse("id", format!("there is no subscriber {id}"))
                            .remedy("`show shaper subscribers` lists them"));
                    }
                };
                Listing::over("subscribers", subscriber_columns(), all, add_subscriber)
                    .begin(engine)
            }),
    );
    registry.command(
        Command::new("show shaper top [<count:1-1000>]")
            .group(GROUP)
            .help("Show the subscribers in whose queues most waits")
            .example("show shaper top 20")
            .run_or_begin(|engine: &mut Engine, args| {
                let count = args.or("count", TOP_DEFAULT)?;
                let top = top(engine, count);
                Listing::over("subscribers", subscriber_columns(), top, add_subscriber)
                    .begin(engine)
            }),
    );
    registry.command(
        Command::new("show shaper interface [<interface>]")
            .group(GROUP)
            .help("Show which shapers shape what interfaces send")
            .run_or_begin(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                interfaces(engine, only)
            }),
    );
    registry.command(
        Command::new("show shaper buffers")
            .group(GROUP)
            .help("Show how many buffers packets occupy that wait, and how many may")
            .run(|engine: &mut Engine, _| {
                let (used, most) = orders::buffers(engine);
                let mut table = Table::new([
                    Column::right("Used").key("used"),
                    Column::right("Most").key("most"),
                ]);
                table.row().cell(used).cell(most);
                Ok(Output::none().table("buffers", table))
            }),
    );
}

fn counter_columns() -> [Column; 9] {
    [
        Column::right("Packets"),
        Column::right("Bytes"),
        Column::right("Dropped"),
        Column::right("Marked"),
        Column::right("Waiting"),
        Column::right("Waiting bytes"),
        Column::right("Flows"),
        Column::right("p50 us").key("p50_us"),
        Column::right("p99 us").key("p99_us"),
    ]
}

/// A row: its first cells, and what was counted.
fn add_row(table: &mut Table, first: Vec<Cell>, sent: (u64, u64), of: &Counted) {
    let (bytes, packets, flows) = of.waiting;
    let row = first.into_iter().fold(table.row(), |row, cell| row.cell(cell));
    let row = row.cell(sent.0).cell(sent.1).cell(of.dropped).cell(of.marked);
    let row = row.cell(packets).cell(bytes).cell(flows);
    row.cell(of.delay_us(500).unwrap_or(0)).cell(of.delay_us(990).unwrap_or(0));
}

fn shapers(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let all = match args.optional::<String>("name")? {
        None => names(engine),
        Some(name) if names(engine).contains(&name) => vec![name],
        Some(name) => {
            let what = format!("there is no shaper {name}");
            return Err(args.refuse("name", what).remedy("`show shaper` lists them"));
        }
    };
    let mut columns = vec![
        Column::left("Name"),
        Column::left("Parent"),
        Column::right("Rate"),
        Column::right("Ceil"),
        Column::right("Burst").key("burst_bytes"),
    ];
    columns.extend(counter_columns());
    Listing::over("shapers", columns, all, add_shaper).begin(engine)
}

fn add_shaper(engine: &Engine, table: &mut Table, name: String) {
    let Some(shapers) = engine.get::<Shapers>() else { return };
    let Some(named) = shapers.named.get(&name) else { return };
    let sent = shapers.numbers.counted(named.node).sent;
    let others = named.others.map_or_else(Counted::default, |node| shapers.numbers.counted(node));
    let plan = &named.plan;
    let first = vec![
        (&name).into(),
        named.parent.as_deref().unwrap_or_default().into(),
        words(plan.rate_bps).into(),
        words(plan.limit_bps()).into(),
        plan.burst_in_force().into(),
    ];
    add_row(table, first, sent, &others);
}

fn subscriber_columns() -> Vec<Column> {
    let mut columns = vec![
        Column::left("Subscriber"),
        Column::left("Direction"),
        Column::left("Profile"),
        Column::left("Parent"),
        Column::left("Addresses"),
    ];
    columns.extend(counter_columns());
    columns
}

fn add_subscriber(engine: &Engine, table: &mut Table, id: String) {
    let Some(shapers) = engine.get::<Shapers>() else { return };
    let Some(known) = shapers.subscribers.known.get(&id) else { return };
    let wanted = &known.wanted;
    let addresses: Vec<String> = wanted.addresses.iter().map(ToString::to_string).collect();
    let addresses = addresses.join(" ");
    let parent_of = |profile: &str| shapers.named.get(profile)?.parent.as_deref();
    let mut row = |direction: &str, profile: &str, parent: Option<&str>, node: u32| {
        let counted = shapers.numbers.counted(node);
        let parent = parent.unwrap_or_default();
        let cells = [&id, direction, profile, parent, &addresses];
        add_row(table, cells.map(Cell::from).to_vec(), counted.sent, &counted);
    };
    let parent = wanted.parent.as_deref().or_else(|| parent_of(&wanted.profile));
    row("download", &wanted.profile, parent, known.download);
    if let (Some(profile), Some(node)) = (&wanted.upload, known.upload) {
        row("upload", profile, parent_of(profile), node);
    }
}

/// The subscribers in whose queues most bytes wait.
fn top(engine: &Engine, count: usize) -> Vec<String> {
    let Some(shapers) = engine.get::<Shapers>() else { return Vec::new() };
    let waits = |node: u32| u64::from(shapers.numbers.counted(node).waiting.0);
    let known = shapers.subscribers.known.iter();
    let mut all: Vec<(u64, &String)> = known
        .map(|(id, of)| (waits(of.download) + of.upload.map_or(0, waits), id))
        .filter(|(bytes, _)| *bytes > 0)
        .collect();
    all.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    all.into_iter().take(count).map(|(_, id)| id.clone()).collect()
}

fn interfaces(engine: &mut Engine, only: Option<InterfaceId>) -> Result<Work<Engine>, Refusal> {
    let columns = ["Interface", "Shaper", "Subscribers by"].map(Column::left);
    let attached = engine.get::<Shapers>().into_iter().flat_map(|shapers| &shapers.attached);
    let of = attached.filter(|(id, _)| only.is_none_or(|only| only == **id));
    let keys: Vec<InterfaceId> = of.map(|(on, _)| *on).collect();
    let add = |engine: &Engine, table: &mut Table, on: InterfaceId| {
        let attached = engine.get::<Shapers>().and_then(|shapers| shapers.attached.get(&on));
        if let Some((name, direction)) = attached {
            let by = if *direction == Direction::Upload { "source" } else { "destination" };
            table.row().cell(engine.interface_name(on)).cell(name).cell(by);
        }
    };
    Listing::over("interfaces", columns, keys, add).begin(engine)
}

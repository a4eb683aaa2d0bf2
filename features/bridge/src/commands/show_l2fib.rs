//! The MAC table and its events, shown.

use std::collections::VecDeque;

use quiver_control::{
    Args, Cell, Column, Command, Listing, Output, Refusal, Registry, Table, Work,
};
use quiver_core::Engine;
use quiver_tables::mac::{DomainIndex, MacEntry, MacKey, StampMinutes};

use super::{GROUP, bridges};
use crate::events::Happened;
use crate::state::Bridges;

/// Rows that are shown unless asked for otherwise.
const ROWS_MAX: usize = 1000;

/// So many rows at most are listed in order.
const SORTED_ROWS_MAX: usize = 4096;

/// Segments of the table that are looked through for a page at most.
const SEGMENTS_PER_PAGE: usize = 16;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "show l2fib [all|verbose|learn|add|(bd <domain:1-16777215>)] [max <:1-16777216>]",
        )
        .group(GROUP)
        .help(
            "Show the MAC table: how many addresses it has, all, those of a domain, those learned, \
             those configured",
        )
        .details(
            "At most 1000 are listed, or as many as max says; how many more there are is told.",
        )
        .example("show l2fib all")
        .example("show l2fib bd 10 max 50")
        .run_or_begin(show),
    );
    registry.command(
        Command::new("show l2fib events {[since <:u64>] [max <:1-16777216>]}")
            .group(GROUP)
            .help("Show addresses that were learned, moved and aged lately, the oldest first")
            .details(
                "Each has a number; since leaves out those up to it, so that a program asks for \
                 what is new. 1024 are kept, or as many as `set l2fib events` says.",
            )
            .example("show l2fib events since 17 max 100")
            .run(events),
    );
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let state = bridges(engine)?;
    let domain = args.optional::<u32>("domain")?.map(|number| state.domain(number)).transpose()?;
    let lists =
        domain.is_some() || ["all", "verbose", "learn", "add"].iter().any(|word| args.has(word));
    let usage = state.macs.usage();
    let output = Output::none()
        .field("Entries", usage.entries)
        .field("Learned", state.macs.learned())
        .field("Entries at most", state.macs.entries_max())
        .field("Learned at most", state.macs.learn_limit())
        .field("Learned since start", state.events.learned)
        .field("Moved since start", state.events.moved)
        .field("Aged since start", state.events.aged)
        .field("Not learned at a limit", state.events.refused)
        .field("Memory bytes", usage.resident_bytes);
    if !lists {
        return Ok(Work::Done(output));
    }
    let max = args.or::<u64>("max", ROWS_MAX as u64)? as usize;
    let mut walk = Walk {
        domain: domain.map(|domain| domain.index),
        learned: !args.has("add"),
        configured: !args.has("learn"),
        max,
        at: Some(0),
        found: VecDeque::new(),
        shown: 0,
        more: 0,
    };
    let rows =
        move |engine: &mut Engine, table: &mut Table, most: usize| walk.page(engine, table, most);
    Listing::new("entries", columns(), rows).head(output.line("")).begin(engine)
}

/// A walk through the MAC table, a bounded part at a time.
struct Walk {
    domain: Option<DomainIndex>,
    learned: bool,
    configured: bool,
    /// Rows to list.
    max: usize,
    /// The next part of the table.
    at: Option<u32>,
    /// Rows that were found and not listed.
    found: VecDeque<(MacKey, MacEntry)>,
    shown: usize,
    /// Rows that are not listed.
    more: usize,
}

impl Walk {
    /// List some rows. Few are listed in the order of domains and addresses, when all were found;
    /// many as they are found. Of a table with more rows than wanted some are listed, which ones is
    /// not said.
    fn page(
        &mut self,
        engine: &Engine,
        table: &mut Table,
        most: usize,
    ) -> Result<Option<Output>, Refusal> {
        let state = bridges(engine)?;
        let is_sorted = self.max <= SORTED_ROWS_MAX;
        for _ in 0..SEGMENTS_PER_PAGE {
            let Some(at) = self.at.filter(|_| is_sorted || self.found.len() < most) else { break };
            self.find(state, at);
        }
        if is_sorted && self.at.is_some() {
            return Ok(None);
        }
        if self.shown == 0 || !is_sorted {
            let found = self.found.make_contiguous();
            found.sort_unstable_by_key(|(key, _)| (state.number(key.domain()), key.mac()));
        }
        for (key, entry) in self.found.drain(..self.found.len().min(most)) {
            self.shown += 1;
            add_entry(engine, state, table, key, entry);
        }
        if self.at.is_some() || !self.found.is_empty() {
            return Ok(None);
        }
        let foot = Output::none().json("not_shown", self.more.into());
        Ok(Some(match self.more {
            0 => foot,
            more => foot.line(format!("{more} more are not shown (max N shows more)")),
        }))
    }

    /// Look through one part of the table.
    fn find(&mut self, state: &Bridges, at: u32) {
        let Walk { domain, learned, configured, max, found, shown, more, .. } = self;
        let next = state.macs.scan(at, |key, entry| {
            let is_wanted = domain.is_none_or(|domain| domain == key.domain())
                && if entry.is_configured() { *configured } else { *learned };
            if !is_wanted || state.macs.get(key).is_none() {
                return;
            }
            if *shown + found.len() < *max { found.push_back((key, entry)) } else { *more += 1 }
        });
        self.at = next;
    }
}

fn columns() -> [Column; 8] {
    [
        Column::left("Mac-Address").key("mac"),
        Column::right("BD-ID").key("domain"),
        Column::left("Interface-Name").key("interface"),
        Column::right("Age(min)").key("age_minutes"),
        Column::left("Static"),
        Column::left("Filter"),
        Column::left("BVI"),
        Column::left("Learned"),
    ]
}

fn add_entry(engine: &Engine, state: &Bridges, table: &mut Table, key: MacKey, entry: MacEntry) {
    let now = StampMinutes::from_ns(engine.now_ns());
    let age = (!entry.is_configured()).then(|| now.since(entry.stamp()));
    let interface = (!entry.has_no_port()).then(|| engine.interface_name(entry.port()));
    table
        .row()
        .cell(Cell::display(key.mac()))
        .cell(state.number(key.domain()))
        .cell(interface)
        .cell(age)
        .cell(entry.is_static())
        .cell(entry.is_filter())
        .cell(entry.is_bvi())
        .cell(!entry.is_configured());
}

fn events(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let state = bridges(engine)?;
    let since = args.or("since", 0)?;
    let max = args.or::<u64>("max", ROWS_MAX as u64)? as usize;
    let mut table = Table::new([
        Column::right("Number"),
        Column::right("Time").key("time_s"),
        Column::left("Event"),
        Column::left("Mac-Address").key("mac"),
        Column::right("BD-ID").key("domain"),
        Column::left("Interface"),
        Column::left("From"),
    ])
    .when_empty("nothing was learned, moved or forgotten");
    for event in state.events.since(since).take(max) {
        let from = match event.happened {
            Happened::Moved { from } => Some(engine.interface_name(from)),
            Happened::Learned | Happened::Aged => None,
        };
        table
            .row()
            .cell(event.number)
            .cell(Cell::real(event.at_ns as f64 / 1e9, 3))
            .cell(event.happened.word())
            .cell(Cell::display(event.key.mac()))
            .cell(event.domain)
            .cell(engine.interface_name(event.port))
            .cell(from);
    }
    let last = state.events.last().into();
    Ok(Output::none().table("events", table).json("last", last).nullable(&["last"]))
}

//! The VLAN tables of End.DX2V (RFC 8986 §4.10): which interface the VLAN tags of an inner frame
//! lead to.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::{
    Args, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, modes, order,
};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::memory::epoch::PublishedSlots;
use quiver_core::{Engine, InterfaceId};
use quiver_wire::{EtherType, EthernetHeader, Header, VlanTag};

use crate::commands::GROUP;

/// VLAN tables at most, numbered from 0.
pub const VLAN_TABLES_MAX: usize = 4096;
/// VLANs of all tables together at most.
pub const VLANS_MAX: usize = 65_536;

/// The VLANs of a frame: the outer tag's and the inner one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tags {
    outer: Option<u16>,
    inner: Option<u16>,
}

impl Tags {
    /// Those of a frame.
    pub fn of(frame: &[u8]) -> Tags {
        let Some((header, behind)) = EthernetHeader::split(frame) else { return Tags::default() };
        let tag = |ether_type: EtherType, bytes| match ether_type.is_vlan() {
            true => VlanTag::split(bytes),
            false => None,
        };
        let Some((outer, behind)) = tag(header.ether_type(), behind) else {
            return Tags::default();
        };
        let inner = tag(outer.ether_type(), behind).map(|(inner, _)| inner.vlan().get());
        Tags { outer: Some(outer.vlan().get()), inner }
    }

    fn words(self) -> String {
        match (self.outer, self.inner) {
            (None, _) => "untagged".to_owned(),
            (Some(outer), None) => format!("vlan {outer}"),
            (Some(outer), Some(inner)) => format!("vlan {outer} inner-vlan {inner}"),
        }
    }
}

/// A table as workers read it, in order.
#[derive(Debug)]
pub(crate) struct View(Box<[(Tags, InterfaceId)]>);

impl View {
    /// Where these tags lead: both, or the outer one alone.
    pub fn find(&self, tags: Tags) -> Option<InterfaceId> {
        let at = |tags: Tags| self.0.binary_search_by_key(&tags, |(known, _)| *known).ok();
        let place = at(tags).or_else(|| at(Tags { inner: None, ..tags }))?;
        Some(self.0[place].1)
    }
}

/// The tables as workers read them, by number.
pub(crate) type Views = PublishedSlots<View>;

/// The tables on the control thread.
pub(crate) struct VlanTables {
    tables: BTreeMap<u32, BTreeMap<Tags, InterfaceId>>,
    views: Arc<Views>,
}

impl VlanTables {
    fn publish(&mut self, table: u32) {
        if self.tables.get(&table).is_some_and(BTreeMap::is_empty) {
            self.tables.remove(&table);
        }
        let view = self
            .tables
            .get(&table)
            .map(|vlans| vlans.iter().map(|(tags, to)| (*tags, *to)).collect());
        self.views.publish(table as usize, view.map(View));
    }

    fn add(&mut self, table: u32, tags: Tags, to: InterfaceId) -> Result<(), Refusal> {
        let known = self.tables.get(&table).is_some_and(|vlans| vlans.contains_key(&tags));
        if !known && self.tables.values().map(BTreeMap::len).sum::<usize>() >= VLANS_MAX {
            return Err(Refusal::new(format!(
                "there are {VLANS_MAX} VLANs in VLAN tables already"
            ))
            .remedy("delete some"));
        }
        self.tables.entry(table).or_default().insert(tags, to);
        self.publish(table);
        Ok(())
    }
}

/// Register the commands; returns what workers read.
pub(crate) fn register(registry: &mut Registry) -> Arc<Views> {
    let views = Arc::new(Views::new(registry.graph.epochs(), VLAN_TABLES_MAX));
    registry.command(
        Command::new(
            "sr vlan-table add|del <table:0-4095> (untagged | vlan <vlan:1-4094> [inner-vlan \
             <inner-vlan:1-4094>]) [<interface>]",
        )
        .entry(
            order::ROUTES,
            "sr.vlan-tables.<table>[]: {vlan, inner-vlan, untagged, interface} with add",
        )
        .undo("sr vlan-table del <table> [untagged] [vlan <vlan>] [inner-vlan <inner-vlan>]")
        .group(GROUP)
        .help("Say which interface the VLAN tags of inner frames lead to, for SIDs with End.DX2V")
        .details(
            "Frames with two tags go where both lead, or else where the outer one does. Frames \
             leave as they are, tags and all.",
        )
        .word("interface", "where such frames go out; needed to add")
        .example("sr vlan-table add 1 vlan 100 e0")
        .example("sr vlan-table del 1 vlan 100")
        .run(change),
    );
    registry.command(
        Command::new("show sr vlan-tables")
            .group(GROUP)
            .help("Show the VLAN tables of SIDs with End.DX2V")
            .run(|engine: &mut Engine, _| Ok(show_tables(engine))),
    );
    let kept = VlanTables { tables: BTreeMap::new(), views: views.clone() };
    registry.on_start(move |engine| {
        engine.insert(kept);
        engine.on_interface_change(follow_interface);
    });
    views
}

fn change(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let table: u32 = args.get("table")?;
    let tags = Tags { outer: args.optional("vlan")?, inner: args.optional("inner-vlan")? };
    if args.has("add") {
        if !args.has("interface") {
            let what =
                format!("{} in VLAN table {table}: no interface to send out of", tags.words());
            return Err(Refusal::new(what).remedy("name one at the end of the command"));
        }
        let to = args.interface(engine, "interface")?;
        modes::check_frames(engine, to)?;
        engine.with(|_, tables: &mut VlanTables| tables.add(table, tags, to))?;
        return Ok(Output::none());
    }
    let vlans = engine.get::<VlanTables>().and_then(|tables| tables.tables.get(&table));
    if !vlans.is_some_and(|vlans| vlans.contains_key(&tags)) {
        let what = format!("VLAN table {table} has no {}", tags.words());
        return Err(args.refuse("table", what).remedy("`show sr vlan-tables`"));
    }
    engine.with(|_, tables: &mut VlanTables| {
        if let Some(vlans) = tables.tables.get_mut(&table) {
            vlans.remove(&tags);
        }
        tables.publish(table);
    });
    Ok(Output::none())
}

fn show_tables(engine: &Engine) -> Output {
    let mut out = Table::new([
        Column::right("Table"),
        Column::right("VLAN"),
        Column::right("Inner VLAN"),
        Column::left("Interface"),
    ])
    .when_empty("no VLAN tables");
    let tables = engine.get::<VlanTables>().into_iter().flat_map(|tables| &tables.tables);
    for (table, vlans) in tables {
        for (tags, to) in vlans {
            let number =
                |vlan: Option<u16>| vlan.map_or_else(|| "-".to_owned(), |vlan| vlan.to_string());
            let row = out.row().cell(*table).cell(number(tags.outer)).cell(number(tags.inner));
            row.cell(engine.interface_name(*to));
        }
    }
    Output::none().table("vlan_tables", out)
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let tables = engine.get::<VlanTables>().into_iter().flat_map(|tables| &tables.tables);
    for (table, vlans) in tables {
        for (tags, to) in vlans {
            let (tags, to) = (tags.words(), engine.interface_name(*to));
            config.command(format_args!("sr vlan-table add {table} {tags} {to}"));
        }
    }
}

/// An interface that goes takes along what leads to it.
fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|_, tables: &mut VlanTables| {
        let naming = tables.tables.iter().filter(|(_, vlans)| vlans.values().any(|to| *to == id));
        for table in naming.map(|(table, _)| *table).collect::<Vec<_>>() {
            if let Some(vlans) = tables.tables.get_mut(&table) {
                vlans.retain(|_, to| *to != id);
            }
            tables.publish(table);
        }
    });
}

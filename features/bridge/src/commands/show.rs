//! Bridge domains, shown.

use std::collections::HashMap;
use std::net::IpAddr;

use quiver_control::{
    Args, Cell, Column, Command, Listing, Output, Refusal, Registry, Table, Work, in_slices,
};
use quiver_core::{Engine, InterfaceId};

use super::{GROUP, bridges};
use crate::state::{BridgePort, Bridges, PortKind};

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show bridge-domain [<domain:1-16777215> [detail|int|arp]]")
            .group(GROUP)
            .help(
                "Show bridge domains, the interfaces of one, and the addresses that it answers for",
            )
            .example("show bridge-domain 10 detail")
            .run_or_begin(show),
    );
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let state = bridges(engine)?;
    let members = member_counts(state);
    let Some(number) = args.optional::<u32>("domain")? else {
        let numbers = state.domains().keys().copied().collect();
        let add = move |engine: &Engine, table: &mut Table, number| {
            add_domain(engine, &members, number, table);
        };
        return Listing::over("bridge_domains", domain_columns(), numbers, add)
            .when_empty("there is no bridge domain; `create bridge-domain N` makes one")
            .begin(engine);
    };
    let domain = state.domain(number)?;
    let (all, mut keys) = (args.has("detail"), Vec::new());
    let (with_ports, with_stations) = (all || args.has("int"), all || args.has("arp"));
    if with_ports {
        let of_domain = state.ports().iter().filter(|(_, port)| port.domain == number);
        keys.extend(of_domain.map(|(id, _)| Part::Port(*id)));
    }
    if with_stations {
        keys.extend(domain.stations.keys().map(|address| Part::Station(*address)));
    }
    let mut table = Table::new(domain_columns());
    add_domain(engine, &members, number, &mut table);
    let tables = Tables { number, interfaces: port_table(), stations: station_table() };
    let end = move |_: &Engine, tables: Tables| {
        let mut output = Output::none().table("domain", table);
        if with_ports {
            output = output.line("").table("interfaces", tables.interfaces);
        }
        if with_stations {
            output = output.line("").table("arp", tables.stations);
        }
        output
    };
    Ok(in_slices(engine, keys, tables, |engine, tables, part| tables.add(engine, part), end))
}

/// One row of what is shown of a domain.
enum Part {
    Port(InterfaceId),
    Station(IpAddr),
}

/// What is shown of a domain, as far as it is made.
struct Tables {
    number: u32,
    interfaces: Table,
    stations: Table,
}

impl Tables {
    /// Add a port or a station, unless it has left the domain meanwhile.
    fn add(&mut self, engine: &Engine, part: Part) {
        let Some(state) = engine.get::<Bridges>() else { return };
        match part {
            Part::Port(id) => {
                let port = state.ports().get(&id).filter(|port| port.domain == self.number);
                if let Some(port) = port {
                    add_port(engine, id, port, &mut self.interfaces);
                }
            }
            Part::Station(address) => {
                let domain = state.domains().get(&self.number);
                if let Some(mac) = domain.and_then(|domain| domain.stations.get(&address)) {
                    self.stations.row().cell(address).cell(Cell::display(mac));
                }
            }
        }
    }
}

/// How many interfaces are in each domain.
fn member_counts(state: &Bridges) -> HashMap<u32, usize> {
    let mut counts = HashMap::new();
    state.ports().values().for_each(|port| *counts.entry(port.domain).or_default() += 1);
    counts
}

fn on(switch: bool) -> Cell {
    Cell::new(if switch { "on" } else { "off" }, switch)
}

fn domain_columns() -> Vec<Column> {
    vec![
        Column::right("BD-ID").key("id"),
        Column::right("Index"),
        Column::right("Age(min)").key("mac_age_minutes"),
        Column::left("Learning"),
        Column::left("U-Forwrd").key("forward"),
        Column::left("UU-Flood"),
        Column::left("Flooding").key("flood"),
        Column::left("ARP-Term"),
        Column::left("ARP-UFwd").key("arp_ufwd"),
        Column::right("Interfaces"),
        Column::right("Learned"),
        Column::right("Limit").key("learn_limit"),
        Column::left("BVI-Intf").key("bvi"),
        Column::left("UU-Fwd-Intf").key("uu_fwd"),
    ]
}

fn add_domain(engine: &Engine, members: &HashMap<u32, usize>, number: u32, table: &mut Table) {
    let Some(state) = engine.get::<Bridges>() else { return };
    let Some(domain) = state.domains().get(&number) else { return };
    let counts = state.macs.counts(domain.index);
    let switches = domain.switches;
    let age = domain.mac_age_minutes;
    table
        .row()
        .cell(number)
        .cell(domain.index.0)
        .cell(if age == 0 { Cell::new("off", 0) } else { Cell::from(age) })
        .cell(on(switches.learn))
        .cell(on(switches.forward))
        .cell(on(switches.uu_flood))
        .cell(on(switches.flood))
        .cell(on(switches.arp_term))
        .cell(on(switches.arp_ufwd))
        .cell(members.get(&number).copied().unwrap_or(0))
        .cell(counts.learned)
        .cell(counts.learn_limit)
        .cell(domain.bvi.map(|id| engine.interface_name(id)))
        .cell(domain.uu_fwd.map(|id| engine.interface_name(id)));
}

fn port_table() -> Table {
    Table::new([
        Column::left("Interface"),
        Column::right("If-idx").key("index"),
        Column::right("SHG").key("split_horizon_group"),
        Column::left("BVI"),
        Column::left("UU-Fwd").key("uu_fwd"),
        Column::left("Learn"),
        Column::left("Forward"),
        Column::left("Flood"),
        Column::left("State"),
    ])
    .when_empty("no interface is in it; `set interface l2 bridge IF N` puts one there")
}

fn add_port(engine: &Engine, id: InterfaceId, port: &BridgePort, table: &mut Table) {
    let up = engine.interface(id).is_some_and(|interface| interface.row().up);
    table
        .row()
        .cell(engine.interface_name(id))
        .cell(id.0)
        .cell(port.group)
        .cell(port.is_bvi())
        .cell(port.kind == PortKind::UuFwd)
        .cell(on(port.learn))
        .cell(on(port.forward))
        .cell(on(port.flood))
        .cell(if up { "up" } else { "down" });
}

fn station_table() -> Table {
    let columns = [Column::left("Address"), Column::left("MAC").key("mac")];
    Table::new(columns).when_empty("it answers for no address")
}

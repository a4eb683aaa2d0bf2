//! Bridge domains, shown.

use quiver_control::{Args, Cell, Column, Command, Output, Refusal, Registry, Table};
use quiver_core::Engine;

use super::{GROUP, bridges};
use crate::state::{BridgeDomain, Bridges, PortKind};

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show bridge-domain [<domain:1-16777215> [detail|int|arp]]")
            .group(GROUP)
            .help("Show bridge domains, the interfaces of one, and the addresses that it answers for")
            .example("show bridge-domain 10 detail")
            .run(show),
    );
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let state = bridges(engine)?;
    let Some(number) = args.optional::<u32>("domain")? else {
        return Ok(Output::none().table("bridge_domains", domains(engine, state, state.domains().iter())));
    };
    let domain = state.domain(number)?;
    let all = args.has("detail");
    let output = Output::none().table("domain", domains(engine, state, std::iter::once((&number, domain))));
    let output = match all || args.has("int") {
        true => output.line("").table("interfaces", interfaces(engine, state, number)),
        false => output,
    };
    Ok(match all || args.has("arp") {
        true => output.line("").table("arp", stations(domain)),
        false => output,
    })
}

fn on(switch: bool) -> Cell {
    Cell::new(if switch { "on" } else { "off" }, switch)
}

fn domains<'a>(
    engine: &Engine,
    state: &Bridges,
    listed: impl Iterator<Item = (&'a u32, &'a BridgeDomain)>,
) -> Table {
    let mut table = Table::new([
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
    ])
    .when_empty("there is no bridge domain; `create bridge-domain N` makes one");
    for (number, domain) in listed {
        let counts = state.macs.counts(domain.index);
        let switches = domain.switches;
        let age = domain.mac_age_minutes;
        table
            .row()
            .cell(*number)
            .cell(domain.index.0)
            .cell(if age == 0 { Cell::new("off", 0) } else { Cell::from(age) })
            .cell(on(switches.learn))
            .cell(on(switches.forward))
            .cell(on(switches.uu_flood))
            .cell(on(switches.flood))
            .cell(on(switches.arp_term))
            .cell(on(switches.arp_ufwd))
            .cell(state.ports().values().filter(|port| port.domain == *number).count())
            .cell(counts.learned)
            .cell(counts.learn_limit)
            .cell(domain.bvi.map(|id| engine.interface_name(id)))
            .cell(domain.uu_fwd.map(|id| engine.interface_name(id)));
    }
    table
}

fn interfaces(engine: &Engine, state: &Bridges, number: u32) -> Table {
    let mut table = Table::new([
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
    .when_empty("no interface is in it; `set interface l2 bridge IF N` puts one there");
    for (id, port) in state.ports().iter().filter(|(_, port)| port.domain == number) {
        let up = engine.interface(*id).is_some_and(|interface| interface.row().up);
        table
            .row()
            .cell(engine.interface_name(*id))
            .cell(id.0)
            .cell(port.group)
            .cell(port.is_bvi())
            .cell(port.kind == PortKind::UuFwd)
            .cell(on(port.learn))
            .cell(on(port.forward))
            .cell(on(port.flood))
            .cell(if up { "up" } else { "down" });
    }
    table
}

fn stations(domain: &BridgeDomain) -> Table {
    let columns = [Column::left("Address"), Column::left("MAC").key("mac")];
    let mut table = Table::new(columns).when_empty("it answers for no address");
    for (address, mac) in domain.stations.iter() {
        table.row().cell(*address).cell(Cell::display(mac));
    }
    table
}

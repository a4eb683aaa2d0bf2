//! `show lldp`.

use std::fmt::Write as _;

use quiver_control::{Cell, Column, Command, Output, Registry, Table};
use quiver_core::{Engine, InterfaceId};
use serde_json::{Value, json};

use crate::commands::GROUP;
use crate::config::{Lldp, Port};
use crate::neighbours::Neighbour;
use crate::text::capabilities;
use crate::transmit::{chassis_mac, system_name};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show lldp [detail]")
            .group(GROUP)
            .help(
                "Show who is heard on which interface, and with detail all that they say, and \
                 counters",
            )
            .example("show lldp detail")
            .run(|engine: &mut Engine, args| {
                Ok(match engine.get::<Lldp>() {
                    Some(lldp) if args.has("detail") => detail(engine, lldp),
                    Some(lldp) => Output::none().table("neighbours", table(engine, lldp)),
                    None => Output::none(),
                })
            }),
    );
}

fn seconds_since(engine: &Engine, at_ns: u64) -> f64 {
    engine.now_ns().saturating_sub(at_ns) as f64 / 1e9
}

fn table(engine: &Engine, lldp: &Lldp) -> Table {
    let mut table = Table::new([
        Column::left("Local interface"),
        Column::left("Peer chassis ID"),
        Column::left("Remote port ID"),
        Column::left("System name"),
        Column::right("Last heard").key("last_heard_s"),
        Column::right("Last sent").key("last_sent_s"),
        Column::left("Status"),
    ]);
    for (id, port) in lldp.ports() {
        let name = engine.interface_name(id);
        let sent = || port.sent_ns.map(|at| Cell::real(seconds_since(engine, at), 1));
        for neighbour in port.neighbours.iter() {
            table
                .row()
                .cell(name.clone())
                .cell(Some(neighbour.chassis_id()))
                .cell(Some(neighbour.port_id()))
                .cell(neighbour.said.system_name.clone())
                .cell(Some(Cell::real(seconds_since(engine, neighbour.heard_ns), 1)))
                .cell(sent())
                .cell("active");
        }
        if port.neighbours.iter().next().is_none() {
            let row =
                table.row().cell(name).cell(None::<&str>).cell(None::<&str>).cell(None::<&str>);
            row.cell(None::<&str>).cell(sent()).cell(Cell::new("nobody heard", "silent"));
        }
    }
    table
}

fn detail(engine: &Engine, lldp: &Lldp) -> Output {
    let (chassis, name) = (chassis_mac(engine), system_name(lldp));
    let mut text = format!(
        "system name: {name}\nchassis ID: {chassis}\ntx-interval: {} s\ntx-hold: {}\ntime to \
         live: {} s\n",
        lldp.tx_interval_s,
        lldp.tx_hold,
        lldp.ttl_s()
    );
    let mut ports = Vec::new();
    for (id, port) in lldp.ports() {
        ports.push(write_port(engine, &mut text, id, port));
    }
    let json = json!({
        "system_name": name,
        "chassis_id": chassis.to_string(),
        "tx_interval_s": lldp.tx_interval_s,
        "tx_hold": lldp.tx_hold,
        "ttl_s": lldp.ttl_s(),
        "interfaces": ports,
    });
    Output::both(text, json).nullable(&[
        "interfaces[].neighbours[].port_description",
        "interfaces[].neighbours[].system_name",
        "interfaces[].neighbours[].system_description",
        "interfaces[].neighbours[].capabilities",
        "interfaces[].neighbours[].enabled",
        "interfaces[].neighbours[].management_addresses[].oid",
        "interfaces[].neighbours[].port_vlan",
    ])
}

fn write_port(engine: &Engine, text: &mut String, id: InterfaceId, port: &Port) -> Value {
    let name = engine.interface_name(id);
    let counted = port.statistics;
    let _ = writeln!(text, "\n{name}");
    let _ = writeln!(
        text,
        "  LLDPDUs sent: {}  received: {}  discarded: {}",
        counted.frames_out, counted.frames_in, counted.frames_discarded
    );
    let _ = writeln!(
        text,
        "  TLVs discarded: {}  unrecognized: {}  neighbours aged out: {}  too many: {}",
        counted.tlvs_discarded,
        counted.tlvs_unrecognized,
        counted.ageouts,
        counted.too_many_neighbours
    );
    let neighbours: Vec<Value> =
        port.neighbours.iter().map(|neighbour| write_neighbour(engine, text, neighbour)).collect();
    json!({
        "interface": name,
        "statistics": {
            "frames_out": counted.frames_out,
            "frames_in": counted.frames_in,
            "frames_discarded": counted.frames_discarded,
            "tlvs_discarded": counted.tlvs_discarded,
            "tlvs_unrecognized": counted.tlvs_unrecognized,
            "ageouts": counted.ageouts,
            "too_many_neighbours": counted.too_many_neighbours,
        },
        "neighbours": neighbours,
    })
}

fn write_neighbour(engine: &Engine, text: &mut String, neighbour: &Neighbour) -> Value {
    let now_ns = engine.now_ns();
    let said = &neighbour.said;
    let (chassis, port) = (neighbour.chassis_id(), neighbour.port_id());
    let _ = writeln!(text, "  neighbour {chassis}, port {port}");
    let lines = [
        ("port description", &said.port_description),
        ("system name", &said.system_name),
        ("system description", &said.system_description),
    ];
    for (title, words) in lines {
        if let Some(words) = words {
            let _ = writeln!(text, "    {title}: {words}");
        }
    }
    if let Some((system, enabled)) = said.capabilities {
        let words = |bits| capabilities(bits).join(", ");
        let _ = writeln!(text, "    can: {}  does: {}", words(system), words(enabled));
    }
    for at in &said.addresses {
        let oid = at.oid.as_ref().map_or_else(String::new, |oid| format!(", {oid}"));
        let _ = writeln!(text, "    managed at: {} (interface {}{oid})", at.address, at.interface);
    }
    if let Some(vlan) = said.port_vlan {
        let _ = writeln!(text, "    VLAN of untagged frames: {vlan}");
    }
    let left_s = neighbour.left_s(now_ns);
    let since_s = seconds_since(engine, neighbour.since_ns);
    let _ = writeln!(
        text,
        "    time to live: {} s, {left_s} s left; known for {since_s:.0} s",
        said.ttl_s
    );
    let addresses: Vec<Value> = said
        .addresses
        .iter()
        .map(|at| json!({ "address": at.address, "interface": at.interface, "oid": at.oid }))
        .collect();
    json!({
        "chassis_id": chassis,
        "chassis_subtype": neighbour.chassis_subtype(),
        "port_id": port,
        "port_subtype": neighbour.port_subtype(),
        "port_description": said.port_description,
        "system_name": said.system_name,
        "system_description": said.system_description,
        "capabilities": said.capabilities.map(|(system, _)| capabilities(system)),
        "enabled": said.capabilities.map(|(_, enabled)| capabilities(enabled)),
        "management_addresses": addresses,
        "port_vlan": said.port_vlan,
        "ttl_s": said.ttl_s,
        "left_s": left_s,
    })
}

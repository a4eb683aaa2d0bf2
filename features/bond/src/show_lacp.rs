//! `show lacp`.

use std::fmt::Write as _;

use quiver_control::{Cell, Column, Command, Output, Registry, Table};
use quiver_core::{Engine, InterfaceId};
use quiver_wire::lacp::{PortInfo, PortState};
use serde_json::{Map, Value, json};

use crate::commands::GROUP;
use crate::config::{Bond, Bonds};
use crate::lacp::{Port, Selected};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show lacp [<interface>] [details]")
            .group(GROUP)
            .help("Show what LACP says of members and their partners")
            .details(
                "The letters of a state: A active, T short timeout, G may aggregate, S \
                 synchronized, C collecting, D distributing, F defaulted, E expired.",
            )
            .example("show lacp memif0/0 details")
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                let ports = ports(engine, only);
                Ok(if args.has("details") {
                    details(engine, &ports)
                } else {
                    table(engine, &ports)
                })
            }),
    );
}

type PortRow<'a> = (&'a Bond, InterfaceId, &'a Port);

/// The ports of all bonds with LACP, or the one that was asked for.
fn ports(engine: &Engine, only: Option<InterfaceId>) -> Vec<PortRow<'_>> {
    let bonds = engine.get::<Bonds>().into_iter().flat_map(Bonds::all);
    let members = bonds.flat_map(|bond| bond.members.iter().map(move |member| (bond, member.id)));
    members
        .filter(|(bond, id)| only.is_none_or(|only| only == *id || only == bond.id))
        .filter_map(|(bond, id)| Some((bond, id, bond.port(id)?)))
        .collect()
}

/// One letter for each bit that is set.
fn letters(state: PortState) -> String {
    let letters = "ATGSCDFE".chars().zip(PortState::NAMES);
    letters.map(|(letter, (bit, _))| if state.has(bit) { letter } else { '-' }).collect()
}

fn table(engine: &Engine, ports: &[PortRow<'_>]) -> Output {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("Bond"),
        Column::left("Actor state"),
        Column::left("Partner state"),
        Column::left("Partner"),
        Column::right("Key"),
        Column::right("Port"),
        Column::left("Receive"),
        Column::left("Mux"),
        Column::left("Note"),
    ]);
    for (bond, id, port) in ports {
        table
            .row()
            .cell(engine.interface_name(*id))
            .cell(engine.interface_name(bond.id))
            .cell(letters(port.actor.state))
            .cell(letters(port.partner.state))
            .cell(Cell::display(port.partner.system))
            .cell(u64::from(port.partner.key))
            .cell(u64::from(port.partner.port))
            .cell(port.receive.word())
            .cell(port.mux.word())
            .cell(note(bond, port));
    }
    Output::none().table("ports", table)
}

/// Why a port does not carry, where that is not plain.
fn note(bond: &Bond, port: &Port) -> &'static str {
    let lag = bond.aggregator.as_ref().and_then(|aggregator| aggregator.lag());
    match port.selected {
        Selected::Yes => "",
        Selected::No if port.is_looped() => "loop: the partner is this router",
        Selected::No if port.partner.system.to_u64() != 0 && lag.is_some() => {
            "another partner or key"
        }
        Selected::No => "",
    }
}

fn bits(state: PortState) -> Value {
    let bits =
        PortState::NAMES.into_iter().map(|(bit, name)| (name.to_owned(), json!(state.has(bit))));
    Value::Object(bits.collect::<Map<_, _>>())
}

fn end_text(text: &mut String, title: &str, end: &PortInfo) {
    let set: Vec<_> =
        PortState::NAMES.iter().filter(|(bit, _)| end.state.has(*bit)).map(|(_, n)| *n).collect();
    let _ = writeln!(text, "    {title}");
    let _ =
        writeln!(text, "      system: {}  system priority: {}", end.system, end.system_priority);
    let _ = writeln!(
        text,
        "      key: {}  port: {}  port priority: {}",
        end.key, end.port, end.port_priority
    );
    let _ = writeln!(text, "      state: {:#04x} ({})", end.state.0, set.join(", "));
}

fn end_json(end: &PortInfo) -> Value {
    json!({
        "system": end.system.to_string(),
        "system_priority": end.system_priority,
        "key": end.key,
        "port": end.port,
        "port_priority": end.port_priority,
        "state": bits(end.state),
    })
}

fn details(engine: &Engine, ports: &[PortRow<'_>]) -> Output {
    let mut text = String::new();
    let mut list = Vec::new();
    for (bond, id, port) in ports {
        let (name, bond_name) = (engine.interface_name(*id), engine.interface_name(bond.id));
        let _ = writeln!(text, "{name} in {bond_name}");
        end_text(&mut text, "actor", &port.actor);
        end_text(&mut text, "partner", &port.partner);
        let selected = port.selected == Selected::Yes;
        let _ = writeln!(
            text,
            "    receive machine: {}  mux machine: {}  selected: {}",
            port.receive.word(),
            port.mux.word(),
            if selected { "yes" } else { "no" }
        );
        let counts = port.counts;
        let _ = writeln!(
            text,
            "    LACPDUs received: {}  sent: {}  time-outs: {}",
            counts.received, counts.sent, counts.timeouts
        );
        let note = note(bond, port);
        if !note.is_empty() {
            let _ = writeln!(text, "    not selected: {note}");
        }
        list.push(json!({
            "interface": name,
            "bond": bond_name,
            "actor": end_json(&port.actor),
            "partner": end_json(&port.partner),
            "receive": port.receive.word(),
            "mux": port.mux.word(),
            "selected": selected,
            "received": counts.received,
            "sent": counts.sent,
            "timeouts": counts.timeouts,
            "note": note,
        }));
    }
    Output::both(text, Value::Array(list))
}

//! `show bond`.

use std::fmt::Write as _;

use quiver_control::{Cell, Column, Command, Output, Refusal, Registry, Table};
use quiver_core::{Engine, InterfaceId};
use serde_json::{Value, json};

use crate::commands::GROUP;
use crate::config::{Bond, Bonds, Member};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show bond [details]")
            .group(GROUP)
            .help("Show the bonds, and with details their members")
            .example("show bond details")
            .run(|engine: &mut Engine, args| {
                if args.has("details") {
                    details(engine)
                } else {
                    Ok(Output::none().table("bonds", table(engine)))
                }
            }),
    );
}

fn all(engine: &Engine) -> impl Iterator<Item = &Bond> {
    engine.get::<Bonds>().into_iter().flat_map(Bonds::all)
}

fn table(engine: &Engine) -> Table {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::right("Index"),
        Column::left("Mode"),
        Column::left("Load balance"),
        Column::right("Active members"),
        Column::right("Members"),
    ]);
    for bond in all(engine) {
        let balance = if bond.mode.hashes() { bond.balance.word() } else { "" };
        table
            .row()
            .cell(engine.interface_name(bond.id))
            .cell(u64::from(bond.id.0))
            .cell(Cell::display(bond.mode))
            .cell(balance)
            .cell(bond.active.len() as u64)
            .cell(bond.members.len() as u64);
    }
    table
}

fn details(engine: &Engine) -> Result<Output, Refusal> {
    let mut text = String::new();
    let mut list = Vec::new();
    for bond in all(engine) {
        let name = engine.interface_name(bond.id);
        let _ = writeln!(text, "{name}\n  mode: {}", bond.mode);
        if bond.mode.hashes() {
            let _ = writeln!(text, "  load balance: {}", bond.balance);
        }
        let _ = writeln!(text, "  number of active members: {}", bond.active.len());
        for id in &bond.active {
            let _ = writeln!(text, "    {}", engine.interface_name(*id));
        }
        let _ = writeln!(text, "  number of members: {}", bond.members.len());
        for member in &bond.members {
            let _ = writeln!(text, "    {}{}", engine.interface_name(member.id), words(engine, bond, member));
        }
        let _ = writeln!(text, "  interface id: {}\n  index: {}", bond.number, bond.id.0);
        list.push(json_of(engine, bond));
    }
    Ok(Output::both(text, Value::Array(list)))
}

/// What is worth saying of a member, behind its name.
fn words(engine: &Engine, bond: &Bond, member: &Member) -> String {
    let is_up = engine.interface(member.id).is_some_and(|interface| interface.row().up);
    let state = match (is_up, bond.active.iter().position(|id| *id == member.id)) {
        (false, _) => "down",
        (true, None) => "not active",
        (true, Some(0)) => "active",
        (true, Some(_)) if bond.mode == crate::mode::Mode::ActiveBackup => "backup",
        (true, Some(_)) => "active",
    };
    let weight = if member.weight > 0 { format!(", weight {}", member.weight) } else { String::new() };
    format!(" ({state}{weight})")
}

fn json_of(engine: &Engine, bond: &Bond) -> Value {
    let name = |id: &InterfaceId| Value::from(engine.interface_name(*id));
    let member = |member: &Member| {
        json!({
            "interface": name(&member.id),
            "active": bond.active.contains(&member.id),
            "passive": member.passive,
            "long_timeout": member.long_timeout,
            "weight": member.weight,
        })
    };
    json!({
        "interface": name(&bond.id),
        "index": bond.id,
        "id": bond.number,
        "mode": bond.mode.word(),
        "load_balance": bond.mode.hashes().then(|| bond.balance.word()),
        "active": bond.active.iter().map(name).collect::<Vec<_>>(),
        "members": bond.members.iter().map(member).collect::<Vec<_>>(),
    })
}

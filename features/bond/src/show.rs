//! `show bond`.

use std::fmt::Write as _;

use quiver_control::{
    Cell, Column, Command, Listing, Output, Refusal, Registry, Table, Work, aggregates, in_slices,
};
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
            .run_or_begin(|engine: &mut Engine, args| match args.has("details") {
                true => Ok(details(engine)),
                false => summary(engine),
            }),
    );
}

pub(crate) fn ids(engine: &Engine) -> Vec<InterfaceId> {
    engine.get::<Bonds>().into_iter().flat_map(Bonds::all).map(|bond| bond.id).collect()
}

pub(crate) fn bond(engine: &Engine, id: InterfaceId) -> Option<&Bond> {
    engine.get::<Bonds>()?.bond(id)
}

fn summary(engine: &mut Engine) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::left("Interface"),
        Column::right("Index"),
        Column::left("Mode"),
        Column::left("Load balance"),
        Column::right("Active members"),
        Column::right("Members"),
    ];
    let add = |engine: &Engine, table: &mut Table, id: InterfaceId| {
        let Some(bond) = bond(engine, id) else { return };
        let balance = if bond.mode.hashes() { bond.balance.word() } else { "" };
        table
            .row()
            .cell(engine.interface_name(id))
            .cell(u64::from(id.0))
            .cell(Cell::display(bond.mode))
            .cell(balance)
            .cell(bond.active.len() as u64)
            .cell(bond.members.len() as u64);
    };
    Listing::over("bonds", columns, ids(engine), add).begin(engine)
}

fn details(engine: &mut Engine) -> Work<Engine> {
    let add = |engine: &Engine, (text, list): &mut (String, Vec<Value>), id: InterfaceId| {
        if let Some(bond) = bond(engine, id) {
            write_details(engine, bond, text);
            list.push(json_of(engine, bond));
        }
    };
    let end = |_: &Engine, (text, list): (String, Vec<Value>)| {
        Output::both(text, Value::Array(list)).nullable(&["[].load_balance", "[].members[].alive"])
    };
    in_slices(engine, ids(engine), (String::new(), Vec::new()), add, end)
}

fn write_details(engine: &Engine, bond: &Bond, text: &mut String) {
    let _ = writeln!(text, "{}\n  mode: {}", engine.interface_name(bond.id), bond.mode);
    if bond.mode.hashes() {
        let _ = writeln!(text, "  load balance: {}", bond.balance);
    }
    let _ = writeln!(text, "  number of active members: {}", bond.active.len());
    for id in &bond.active {
        let _ = writeln!(text, "    {}", engine.interface_name(*id));
    }
    let _ = writeln!(text, "  number of members: {}", bond.members.len());
    for member in &bond.members {
        let _ = writeln!(
            text,
            "    {}{}",
            engine.interface_name(member.id),
            words(engine, bond, member)
        );
    }
    let _ = writeln!(text, "  interface id: {}\n  index: {}", bond.number, bond.id.0);
}

/// What is worth saying of a member, behind its name.
fn words(engine: &Engine, bond: &Bond, member: &Member) -> String {
    let is_up = engine.interface(member.id).is_some_and(|interface| interface.row().up);
    let state = match (is_up, bond.active.iter().position(|id| *id == member.id)) {
        (false, _) => "down",
        (true, None) if is_alive(engine, bond, member) == Some(false) => "not active, BFD down",
        (true, None) => "not active",
        (true, Some(0)) => "active",
        (true, Some(_)) if bond.mode == crate::mode::Mode::ActiveBackup => "backup",
        (true, Some(_)) => "active",
    };
    let weight =
        if member.weight > 0 { format!(", weight {}", member.weight) } else { String::new() };
    format!(" ({state}{weight})")
}

/// Is a member alive, in the eyes of the protocol that watches it; nothing when none does, or the
/// member is not ready to carry frames.
fn is_alive(engine: &Engine, bond: &Bond, member: &Member) -> Option<bool> {
    let watch = aggregates::watch(engine, bond.id)?;
    let is_ready = aggregates::ready(engine, bond.id).contains(&member.id);
    is_ready.then(|| watch.alive.contains(&member.id))
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
            "alive": is_alive(engine, bond, member),
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

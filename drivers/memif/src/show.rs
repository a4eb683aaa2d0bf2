//! `show memif`.

use quiver_control::{Args, Column, Output, Refusal, Table};
use quiver_core::{Engine, InterfaceId};

use crate::ring::{MASK_INTERRUPT, NEXT};
use crate::state::{Connected, Entry, Memif, ShownRing};

pub(crate) fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let only = args.optional_interface(engine, "interface")?;
    let Some(memif) = engine.get::<Memif>() else { return Ok(interfaces(engine, None, None)) };
    if let Some(id) = only
        && !memif.interfaces.contains_key(&id)
    {
        return Err(
            args.refuse("interface", format!("{} is not a memif interface", engine.interface_name(id)))
        );
    }
    let mut output = Output::none();
    if only.is_none() {
        output = output.table("sockets", sockets(memif));
    }
    // Not as a table: alone, it would be all of the JSON.
    let table = interfaces(engine, Some(memif), only);
    output = output.line(table.to_text()).json("interfaces", table.to_json());
    for (id, entry) in &memif.interfaces {
        if let (true, Some(connected)) = (only == Some(*id) || args.has("descriptors"), &entry.connected) {
            output = details(output, &engine.interface_name(*id), connected, args.has("descriptors"));
        }
    }
    Ok(output)
}

fn sockets(memif: &Memif) -> Table {
    let mut table = Table::new([Column::right("Socket"), Column::left("Listens"), Column::left("Path")]);
    for (number, socket) in &memif.sockets {
        table.row().cell(*number).cell(socket.listening.is_some()).cell(&socket.path);
    }
    table
}

fn interfaces(engine: &Engine, memif: Option<&Memif>, only: Option<InterfaceId>) -> Output {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("Role"),
        Column::left("Mode"),
        Column::left("Zero Copy").key("zero_copy"),
        Column::left("Link"),
        Column::right("Connects"),
        Column::left("Peer"),
        Column::left("Last end").key("reason"),
    ])
    .when_empty("there is no memif interface; `create interface memif` makes one");
    let all = memif.iter().flat_map(|memif| &memif.interfaces);
    for (id, entry) in all.filter(|(id, _)| only.is_none_or(|only| only == **id)) {
        row(&mut table, engine.interface_name(*id), entry);
    }
    table.into()
}

fn row(table: &mut Table, name: String, entry: &Entry) {
    let status = entry.status();
    table
        .row()
        .cell(name)
        .cell(entry.config.role.name())
        .cell(entry.config.mode.name())
        .cell(entry.config.zero_copy)
        .cell(if entry.connected.is_some() { "up" } else { "down" })
        .cell(status.connects)
        .cell(&status.peer)
        .cell(&status.reason);
}

fn details(output: Output, name: &str, connected: &Connected, descriptors: bool) -> Output {
    let mut regions = Table::new([Column::right("Region"), Column::right("Bytes"), Column::left("Made by")]);
    for (index, region) in connected.regions.list().iter().enumerate() {
        let owner = match (region.is_pool(), region.fd()) {
            (true, _) => "this router: its buffers",
            (false, Some(_)) => "this router",
            (false, None) => "the peer",
        };
        regions.row().cell(index).cell(region.size()).cell(owner);
    }
    let mut rings = Table::new([
        Column::left("Ring"),
        Column::right("Queue"),
        Column::right("Size"),
        Column::right("Head"),
        Column::right("Tail"),
        Column::left("Interrupts"),
    ]);
    for shown in &connected.rings {
        rings
            .row()
            .cell(direction(shown))
            .cell(shown.queue)
            .cell(shown.ring.size())
            .cell(shown.ring.head())
            .cell(shown.ring.tail())
            .cell(if shown.ring.flags() & MASK_INTERRUPT == 0 { "wanted" } else { "masked" });
    }
    let output = output
        .line(format!("\n{name}: peer {} ({})", connected.program, connected.peer_interface))
        .table(&format!("{name}/regions"), regions)
        .table(&format!("{name}/rings"), rings);
    if !descriptors {
        return output;
    }
    let mut slots = Table::new([
        Column::left("Ring"),
        Column::right("Queue"),
        Column::right("Slot"),
        Column::left("Next"),
        Column::right("Region"),
        Column::right("Offset"),
        Column::right("Length"),
    ]);
    for shown in &connected.rings {
        for slot in 0..shown.ring.size() {
            let descriptor = shown.ring.descriptor(slot);
            slots
                .row()
                .cell(direction(shown))
                .cell(shown.queue)
                .cell(slot)
                .cell(descriptor.flags & NEXT != 0)
                .cell(descriptor.region)
                .cell(descriptor.offset)
                .cell(descriptor.length);
        }
    }
    output.table(&format!("{name}/descriptors"), slots)
}

fn direction(shown: &ShownRing) -> &'static str {
    if shown.receives { "receive" } else { "send" }
}

//! `show memif`.

use quiver_control::{Args, Cell, Column, Output, Refusal, Table};
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
    let descriptors = args.has("descriptors");
    let mut details = Details::new();
    for (id, entry) in memif.interfaces.iter().filter(|(id, _)| only.map_or(descriptors, |only| only == **id))
    {
        if let Some(connected) = &entry.connected {
            let name = engine.interface_name(*id);
            details.add(&name, connected, descriptors);
            let Connected { program, peer_interface, .. } = connected;
            output = output.line(format!("{name}: peer {program} ({peer_interface})"));
        }
    }
    if !details.rings.is_empty() {
        output = output.table("regions", details.regions).table("rings", details.rings);
    }
    if !details.descriptors.is_empty() {
        output = output.table("descriptors", details.descriptors);
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

/// Regions, rings and descriptors of the connections that are asked for, interface by interface.
struct Details {
    regions: Table,
    rings: Table,
    descriptors: Table,
}

impl Details {
    fn new() -> Details {
        Details {
            regions: Table::new([
                Column::left("Interface"),
                Column::right("Region"),
                Column::right("Bytes"),
                Column::left("Made by"),
            ]),
            rings: Table::new([
                Column::left("Interface"),
                Column::left("Ring"),
                Column::right("Queue"),
                Column::right("Size").key("size_descriptors"),
                Column::right("Head"),
                Column::right("Tail"),
                Column::left("Interrupts"),
            ]),
            descriptors: Table::new([
                Column::left("Interface"),
                Column::left("Ring"),
                Column::right("Queue"),
                Column::right("Slot"),
                Column::left("Next"),
                Column::right("Region"),
                Column::right("Offset").key("offset_bytes"),
                Column::right("Length").key("length_bytes"),
            ]),
        }
    }

    fn add(&mut self, name: &str, connected: &Connected, descriptors: bool) {
        for (index, region) in connected.regions.list().iter().enumerate() {
            let made_by = match (region.is_pool(), region.fd()) {
                (true, _) => Cell::new("this router: its buffers", "buffers"),
                (false, Some(_)) => Cell::new("this router", "router"),
                (false, None) => Cell::new("the peer", "peer"),
            };
            self.regions.row().cell(name).cell(index).cell(region.size()).cell(made_by);
        }
        for shown in &connected.rings {
            let wanted = shown.ring.flags() & MASK_INTERRUPT == 0;
            self.rings
                .row()
                .cell(name)
                .cell(direction(shown))
                .cell(shown.queue)
                .cell(shown.ring.size())
                .cell(shown.ring.head())
                .cell(shown.ring.tail())
                .cell(if wanted { "wanted" } else { "masked" });
            for slot in 0..if descriptors { shown.ring.size() } else { 0 } {
                let descriptor = shown.ring.descriptor(slot);
                self.descriptors
                    .row()
                    .cell(name)
                    .cell(direction(shown))
                    .cell(shown.queue)
                    .cell(slot)
                    .cell(descriptor.flags & NEXT != 0)
                    .cell(descriptor.region)
                    .cell(descriptor.offset)
                    .cell(descriptor.length);
            }
        }
    }
}

fn direction(shown: &ShownRing) -> &'static str {
    if shown.receives { "receive" } else { "send" }
}

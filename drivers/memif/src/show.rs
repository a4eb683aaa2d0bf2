//! `show memif`.

use std::fmt::Write as _;

use quiver_control::{Args, Cell, Column, Output, Refusal, Table, Work, in_slices};
use quiver_core::{Engine, InterfaceId};

use crate::ring::{MASK_INTERRUPT, NEXT};
use crate::state::{Connected, Entry, Memif, RingView};

pub(crate) fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let only = args.optional_interface(engine, "interface")?;
    let memif = engine.get::<Memif>();
    if let (Some(id), Some(memif)) = (only, memif)
        && !memif.interfaces.contains_key(&id)
    {
        return Err(args.refuse(
            "interface",
            format!("{} is not a memif interface", engine.interface_name(id)),
        ));
    }
    let keys = memif.map_or_else(Vec::new, |memif| parts(memif, only, args.has("descriptors")));
    let made = ShowTables::new(only.is_none() && memif.is_some());
    Ok(in_slices(engine, keys, made, ShowTables::add, |_, made| made.output()))
}

/// A part of the answer, a few rows of one of its tables.
enum Part {
    Socket(u32),
    Interface(InterfaceId),
    /// The peer and the regions of an interface that is connected.
    Connection(InterfaceId),
    /// A ring of such an interface.
    Ring {
        id: InterfaceId,
        ring: usize,
    },
    /// Descriptors of a slot of a ring.
    Descriptor {
        id: InterfaceId,
        ring: usize,
        slot: u16,
    },
}

/// All parts of the answer, in order.
fn parts(memif: &Memif, only: Option<InterfaceId>, descriptors: bool) -> Vec<Part> {
    let sockets =
        memif.sockets.keys().filter(|_| only.is_none()).map(|number| Part::Socket(*number));
    let ids = || memif.interfaces.keys().copied().filter(|id| only.is_none_or(|only| only == *id));
    let mut all: Vec<Part> = sockets.chain(ids().map(Part::Interface)).collect();
    for id in ids().filter(|_| descriptors || only.is_some()) {
        all.push(Part::Connection(id));
        let connected = memif.interfaces.get(&id).and_then(|entry| entry.connected.as_ref());
        let rings = connected.map_or(&[][..], |connected| &connected.rings);
        all.extend((0..rings.len()).map(|ring| Part::Ring { id, ring }));
        for (ring, shown) in rings.iter().enumerate().filter(|_| descriptors) {
            all.extend((0..shown.ring.size()).map(|slot| Part::Descriptor { id, ring, slot }));
        }
    }
    all
}

/// The answer as far as it is made.
struct ShowTables {
    sockets: Option<Table>,
    interfaces: Table,
    peers: String,
    details: Details,
}

impl ShowTables {
    fn new(with_sockets: bool) -> ShowTables {
        ShowTables {
            sockets: with_sockets.then(socket_table),
            interfaces: interface_table(),
            peers: String::new(),
            details: Details::new(),
        }
    }

    /// Add a part, unless what it is of is gone or has another connection meanwhile.
    fn add(engine: &Engine, made: &mut ShowTables, part: Part) {
        let Some(memif) = engine.get::<Memif>() else { return };
        match part {
            Part::Socket(number) => {
                if let (Some(table), Some(socket)) = (&mut made.sockets, memif.sockets.get(&number))
                {
                    table.row().cell(number).cell(socket.listening.is_some()).cell(&socket.path);
                }
            }
            Part::Interface(id) => {
                if let Some(entry) = memif.interfaces.get(&id) {
                    row(&mut made.interfaces, engine.interface_name(id), entry);
                }
            }
            Part::Connection(id) => {
                let Some(connected) = connection(memif, id) else { return };
                let (name, Connected { program, peer_interface, .. }) =
                    (engine.interface_name(id), connected);
                made.details.add_regions(&name, connected);
                let _ = writeln!(made.peers, "{name}: peer {program} ({peer_interface})");
            }
            Part::Ring { id, ring } => {
                if let Some(shown) =
                    connection(memif, id).and_then(|connected| connected.rings.get(ring))
                {
                    made.details.add_ring(&engine.interface_name(id), shown);
                }
            }
            Part::Descriptor { id, ring, slot } => {
                let shown = connection(memif, id).and_then(|connected| connected.rings.get(ring));
                if let Some(shown) = shown.filter(|shown| slot < shown.ring.size()) {
                    made.details.add_descriptor(&engine.interface_name(id), shown, slot);
                }
            }
        }
    }

    fn output(self) -> Output {
        let mut output = Output::none();
        if let Some(sockets) = self.sockets {
            output = output.table("sockets", sockets);
        }
        // Not as a table: alone, it would be all of the JSON.
        let table = Output::from(self.interfaces);
        output = output.line(table.to_text()).json("interfaces", table.to_json());
        if !self.peers.is_empty() {
            output = output.line(self.peers);
        }
        let Details { regions, rings, descriptors } = self.details;
        if !rings.is_empty() {
            output = output.table("regions", regions).table("rings", rings);
        }
        if !descriptors.is_empty() {
            output = output.table("descriptors", descriptors);
        }
        output
    }
}

fn connection(memif: &Memif, id: InterfaceId) -> Option<&Connected> {
    memif.interfaces.get(&id)?.connected.as_ref()
}

fn socket_table() -> Table {
    Table::new([Column::right("Socket"), Column::left("Listens"), Column::left("Path")])
}

fn interface_table() -> Table {
    Table::new([
        Column::left("Interface"),
        Column::left("Role"),
        Column::left("Mode"),
        Column::left("Zero Copy").key("zero_copy"),
        Column::left("Link"),
        Column::right("Connects"),
        Column::left("Peer"),
        Column::left("Last end").key("reason"),
    ])
    .when_empty("there is no memif interface; `create interface memif` makes one")
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

    fn add_regions(&mut self, name: &str, connected: &Connected) {
        for (index, region) in connected.regions.list().iter().enumerate() {
            let made_by = match (region.is_pool(), region.fd()) {
                (true, _) => Cell::new("this router: its buffers", "buffers"),
                (false, Some(_)) => Cell::new("this router", "router"),
                (false, None) => Cell::new("the peer", "peer"),
            };
            self.regions.row().cell(name).cell(index).cell(region.size()).cell(made_by);
        }
    }

    fn add_ring(&mut self, name: &str, shown: &RingView) {
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
    }

    fn add_descriptor(&mut self, name: &str, shown: &RingView, slot: u16) {
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

fn direction(shown: &RingView) -> &'static str {
    if shown.receives { "receive" } else { "send" }
}

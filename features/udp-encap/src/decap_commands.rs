//! `udp decap`: ports that say what is behind the UDP header.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::{
    Args, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order,
};
use quiver_core::Engine;
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{IpTables, OpenPort};

use crate::commands::GROUP;
use crate::decap::{Contents, PORTS_MAX, Ports, node};

/// All ports.
pub(crate) struct Decaps {
    all: [BTreeMap<u16, Contents>; 2],
    published: Arc<Ports>,
}

impl Decaps {
    pub fn new(published: Arc<Ports>) -> Decaps {
        Decaps { all: [BTreeMap::new(), BTreeMap::new()], published }
    }

    fn publish(&self, family: Family) {
        let ports = self.all[family as usize].iter().map(|(port, contents)| (*port, *contents));
        self.published.set(family, ports.collect());
    }
}

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "udp decap add|del <outer:ip4|ip6> <port:1-65535> <contents:ip4|ip6|mpls>",
        )
        .entry(order::FEATURES, "udp-decap.<outer>.<port>: <contents> with add")
        .undo("udp decap del <outer> <port> <contents>")
        .group(GROUP)
        .help("Say what is behind UDP headers to a port, and forward it")
        .details(
            "Datagrams to the port for an address of the router are taken, from any sender. The \
             packet inside is looked up in the table of the interface that received the datagram.",
        )
        .word("outer", "the family of the outer header")
        .word("port", "the UDP destination port")
        .word("contents", "what is behind the UDP header")
        .example("udp decap add ip4 4445 ip4")
        .run(set),
    );
    registry.command(
        Command::new("show udp decap")
            .group(GROUP)
            .help("Show what is behind UDP headers to which ports")
            .run(|engine: &mut Engine, _| Ok(Output::none().table("udp_decaps", table(engine)))),
    );
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let family = if args.get::<&str>("outer")? == "ip4" { Family::Ip4 } else { Family::Ip6 };
    let (port, word): (u16, &str) = (args.get("port")?, args.get("contents")?);
    let contents = Contents::ALL.into_iter().find(|contents| contents.word() == word);
    let contents = contents.ok_or_else(|| args.refuse("contents", "nothing of that kind"))?;
    let known = engine.get::<Decaps>().and_then(|all| all.all[family as usize].get(&port).copied());
    let not_there = || Refusal::new("UDP decapsulation is being changed");
    if args.has("del") {
        if known != Some(contents) {
            let what = format!("behind UDP port {port} {word} is not expected");
            return Err(args.refuse("port", what).remedy("`show udp decap`"));
        }
        if let Some(tables) = engine.shared::<IpTables>() {
            tables.udp_ports.close(family, port);
        }
        let decaps = engine.get_mut::<Decaps>().ok_or_else(not_there)?;
        decaps.all[family as usize].remove(&port);
        decaps.publish(family);
        return Ok(Output::none());
    }
    if contents == Contents::Mpls && engine.node_id("mpls-input").is_none() {
        return Err(args.refuse("contents", "MPLS is not built in"));
    }
    let name = node(family);
    let node = engine.node_id(name).ok_or_else(not_there)?;
    let tables = engine.shared::<IpTables>().ok_or_else(not_there)?;
    let decaps = engine.get_mut::<Decaps>().ok_or_else(not_there)?;
    let of_family = &mut decaps.all[family as usize];
    if known.is_none() {
        if of_family.len() >= PORTS_MAX {
            let what = format!("there are {PORTS_MAX} ports already");
            return Err(args.refuse("port", what).remedy("delete some"));
        }
        let open = OpenPort { node, takes_zero_checksum: true, errors: None };
        if !tables.udp_ports.open(family, port, open) {
            return Err(args.refuse("port", format!("UDP port {port} is another protocol's")));
        }
    }
    of_family.insert(port, contents);
    decaps.publish(family);
    Ok(Output::none())
}

fn word(family: Family) -> &'static str {
    if family == Family::Ip4 { "ip4" } else { "ip6" }
}

fn in_order(engine: &Engine) -> impl Iterator<Item = (&'static str, u16, &'static str)> {
    [Family::Ip4, Family::Ip6].into_iter().flat_map(move |family| {
        let all = engine.get::<Decaps>().into_iter().flat_map(move |all| &all.all[family as usize]);
        all.map(move |(port, contents)| (word(family), *port, contents.word()))
    })
}

fn table(engine: &Engine) -> Table {
    let columns = [Column::left("Outer"), Column::right("Port"), Column::left("Contents")];
    let mut table = Table::new(columns);
    for (outer, port, contents) in in_order(engine) {
        table.row().cell(outer).cell(port).cell(contents);
    }
    table
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    for (outer, port, contents) in in_order(engine) {
        config.command(format_args!("udp decap add {outer} {port} {contents}"));
    }
}

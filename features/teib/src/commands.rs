//! The commands of the tunnel endpoint information base.

use std::net::IpAddr;

use quiver_control::{
    Args, Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Work,
    by_interface_name, order, with_interface_names,
};
use quiver_core::{Engine, InterfaceId};
use quiver_encap::tunnel::{NextHop, TEIB_ENTRIES_MAX, Teib};
use quiver_forwarding::fib::Fib;

/// The heading of these commands.
const GROUP: &str = "Tunnels";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "create teib interface <interface> peer <peer:ip> nh <nh:ip> [nh-table-id \
             <nh-table-id:u32>]",
        )
        .entry(
            order::NEIGHBORS,
            "interfaces.<interface>.teib.<peer>: {next-hop: <nh>, table: <nh-table-id>}",
        )
        .undo("delete teib interface <interface> peer <peer>")
        .group(GROUP)
        .help("Say behind which outer address a next hop on a multipoint tunnel is")
        .details("Routes by the tunnel's interface via that peer are encapsulated to nh.")
        .word("peer", "the next hop that routes name")
        .word("nh", "the outer destination, of the family of the tunnel's source")
        .word("nh-table-id", "the table that has the outer destination; 0 unless given")
        .example("create teib interface gre0 peer 10.0.0.2 nh 192.0.2.2")
        .run(create),
    );
    registry.command(
        Command::new("delete teib interface <interface> peer <peer:ip>")
            .group(GROUP)
            .help("Forget behind which outer address a next hop is")
            .example("delete teib interface gre0 peer 10.0.0.2")
            .run(delete),
    );
    registry.command(
        Command::new("show teib")
            .group(GROUP)
            .help("Show behind which outer addresses the next hops of multipoint tunnels are")
            .run_or_begin(show),
    );
}

fn multipoint(engine: &mut Engine, args: &Args<'_>) -> Result<InterfaceId, Refusal> {
    let id = args.interface(engine, "interface")?;
    if engine.get::<Fib>().is_some_and(|fib| fib.is_multipoint(id)) {
        return Ok(id);
    }
    let what = format!("{} is no multipoint tunnel", engine.interface_name(id));
    Err(args
        .refuse("interface", what)
        .remedy("`create gre tunnel … multipoint`, `create ipip tunnel … multipoint`"))
}

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = multipoint(engine, args)?;
    let peer: IpAddr = args.get("peer")?;
    let to = NextHop { address: args.get("nh")?, table: args.or("nh-table-id", 0)? };
    if engine
        .get::<Teib>()
        .is_some_and(|teib| teib.len() >= TEIB_ENTRIES_MAX && teib.get(id, peer).is_none())
    {
        return Err(Refusal::new(format!("there are {TEIB_ENTRIES_MAX} entries already"))
            .remedy("delete some"));
    }
    Teib::set(engine, id, peer, Some(to))
        .map_err(|error| args.refuse("nh", with_interface_names(engine, error)))?;
    Ok(Output::none())
}

fn delete(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let peer: IpAddr = args.get("peer")?;
    if engine.get::<Teib>().is_none_or(|teib| teib.get(id, peer).is_none()) {
        let what = format!("nothing is said of {peer} on {}", engine.interface_name(id));
        return Err(args.refuse("peer", what).remedy("`show teib`"));
    }
    Teib::set(engine, id, peer, None)
        .map_err(|error| args.refuse("peer", with_interface_names(engine, error)))?;
    Ok(Output::none())
}

fn show(engine: &mut Engine, _: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let keys: Vec<(InterfaceId, IpAddr)> = engine
        .get::<Teib>()
        .into_iter()
        .flat_map(Teib::iter)
        .map(|(id, peer, _)| (id, peer))
        .collect();
    let columns = [
        Column::left("Interface"),
        Column::left("Peer"),
        Column::left("Next hop").key("nh"),
        Column::right("Table").key("nh_table_id"),
    ];
    let add = |engine: &Engine, table: &mut Table, (id, peer)| {
        let Some(to) = engine.get::<Teib>().and_then(|teib| teib.get(id, peer)) else { return };
        let row = table.row().cell(engine.interface_name(id)).cell(peer.to_string());
        row.cell(to.address.to_string()).cell(to.table);
    };
    Listing::over("teib", columns, keys, add)
        .when_empty("no next hops of multipoint tunnels")
        .begin(engine)
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let entries = engine.get::<Teib>().into_iter().flat_map(Teib::iter);
    let entries = entries.map(|(id, peer, to)| (id, (peer, to)));
    for (id, (peer, to)) in by_interface_name(engine, entries) {
        let table =
            if to.table == 0 { String::new() } else { format!(" nh-table-id {}", to.table) };
        let (name, nh) = (engine.interface_name(id), to.address);
        config.command(format_args!("create teib interface {name} peer {peer} nh {nh}{table}"));
    }
}

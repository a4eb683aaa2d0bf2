//! The commands of 6rd tunnels.

use quiver_control::{
    Args, Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Work,
    of_each_interface, order, with_interface_names,
};
use quiver_core::{Engine, InterfaceId};

use crate::config::{self, SixRdConfig, SixRds};

/// The heading of these commands.
const GROUP: &str = "Tunnels";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(create_command());
    registry.command(
        Command::new("delete 6rd tunnel <interface>")
            .group(GROUP)
            .help("Delete a 6rd tunnel")
            .example("delete 6rd tunnel sixrd0")
            .run(delete),
    );
    registry.command(
        Command::new("show 6rd tunnel [<interface>]")
            .group(GROUP)
            .help("Show 6rd tunnels, their domains, and what they have sent")
            .run_or_begin(show),
    );
    registry.running_config_in_slices(order::INTERFACES, of_each_interface(ids, write_tunnel));
    registry.memory(|engine| {
        let bytes = engine.get::<SixRds>().map_or(0, |rds| rds.resident_bytes() as u64);
        vec![("6rd tunnels", bytes)]
    });
}

fn create_command() -> Command<Engine> {
    Command::new(
        "create 6rd tunnel ip6-pfx <ip6-pfx:prefix6> ip4-pfx <ip4-pfx:prefix4> ip4-src \
         <ip4-src:ip4> {[br <:ip4>] [tbl-id <:u32>] [ip4-table-id <:u32>] [security-check] [sec] \
         [instance <:0-16383>] [del]}",
    )
    .entry(
        order::INTERFACES,
        "interfaces.sixrd<instance>.6rd: {ip6-pfx, ip4-pfx, ip4-src, br, security-check, \
         table: <tbl-id>}",
    )
    .undo("delete 6rd tunnel sixrd<instance>")
    .makes("interface sixrd<instance>")
    .group(GROUP)
    .help("Create a 6rd tunnel, the interface sixrdN, or delete it")
    .details(
        "IPv6 packets that a route sends to it go to the IPv4 address that stands in their \
         destination (RFC 5969). security-check (sec) compares the outer source of what comes with \
         the address in the inner source; border relays of providers need it. br is the border \
         relay of a customer's edge, for everything outside of the 6rd prefix. The MTU is 1,480 \
         bytes until it is set.",
    )
    .word("ip6-pfx", "the 6rd prefix, which all addresses of the domain begin with")
    .word("ip4-pfx", "what all IPv4 addresses of the domain have in common; 0.0.0.0/0 is nothing")
    .word("ip4-src", "the outer source, an address of this router")
    .word("br", "the border relay, for destinations outside of the 6rd prefix")
    .word("tbl-id", "the table that has the outer destinations; 0 unless given")
    .word("ip4-table-id", "the same")
    .word("security-check", "drop what comes from another edge than its source says")
    .word("sec", "the same")
    .word("instance", "the number in its name; the first that is free unless given")
    .word("del", "delete it")
    .example("create 6rd tunnel ip6-pfx 2001:db8::/32 ip4-pfx 10.0.0.0/8 ip4-src 10.0.0.1 sec")
    .example(
        "create 6rd tunnel ip6-pfx 2001:db8::/32 ip4-pfx 0.0.0.0/0 ip4-src 192.0.2.1 br 192.0.2.9",
    )
    .run(create)
}

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let table = match (args.optional("tbl-id")?, args.optional("ip4-table-id")?) {
        (Some(one), Some(other)) if one != other => {
            return Err(args.refuse("ip4-table-id", "tbl-id is another table"));
        }
        (one, other) => one.or(other).unwrap_or(0),
    };
    let described = SixRdConfig {
        instance: args.optional("instance")?,
        ip6: args.get("ip6-pfx")?,
        ip4: args.get("ip4-pfx")?,
        source: args.get("ip4-src")?,
        relay: args.optional("br")?,
        table,
        checks_source: args.has("security-check") || args.has("sec"),
    };
    if args.has("del") {
        let ends = |config: &SixRdConfig| (config.ip6, config.ip4, config.source, config.table);
        let found = engine.get::<SixRds>().and_then(|rds| {
            rds.iter().find(|(_, rd)| ends(&rd.config) == ends(&described)).map(|(id, _)| id)
        });
        let what = "there is no 6rd tunnel with these prefixes, source and table";
        let id = found.ok_or_else(|| Refusal::new(what).remedy("`show 6rd tunnel`"))?;
        engine.delete_interface(id)?;
        return Ok(Output::none());
    }
    let id = config::create(engine, described)
        .map_err(|error| Refusal::new(with_interface_names(engine, error)))?;
    let name = engine.interface_name(id);
    Ok(Output::none().line(name.as_str()).json("name", name.into()))
}

/// The tunnel whose interface a command names.
fn tunnel(engine: &Engine, args: &Args<'_>) -> Result<InterfaceId, Refusal> {
    let id = args.interface(engine, "interface")?;
    if engine.get::<SixRds>().is_some_and(|rds| rds.get(id).is_some()) {
        return Ok(id);
    }
    let what = format!("{} is no 6rd tunnel", engine.interface_name(id));
    Err(args.refuse("interface", what).remedy("`show 6rd tunnel`"))
}

fn delete(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = tunnel(engine, args)?;
    engine.delete_interface(id)?;
    Ok(Output::none())
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let keys = if args.has("interface") { vec![tunnel(engine, args)?] } else { ids(engine) };
    let columns = [
        Column::left("Interface"),
        Column::left("State"),
        Column::left("IPv6 prefix").key("ip6_prefix"),
        Column::left("IPv4 prefix").key("ip4_prefix"),
        Column::left("Source"),
        Column::left("Border relay"),
        Column::left("Delegated prefix"),
        Column::right("Table"),
        Column::left("Security check"),
        Column::right("Packets"),
        Column::right("Bytes"),
    ];
    Listing::over("six_rd_tunnels", columns, keys, add_row)
        .when_empty("no 6rd tunnels; `create 6rd tunnel` makes one")
        .begin(engine)
}

fn add_row(engine: &Engine, table: &mut Table, id: InterfaceId) {
    let Some((rds, rd)) = engine.get::<SixRds>().and_then(|rds| Some((rds, rds.get(id)?))) else {
        return;
    };
    let up = engine.interface(id).is_some_and(|interface| interface.row().up);
    let config = &rd.config;
    let row = table.row().cell(engine.interface_name(id)).cell(if up { "up" } else { "down" });
    let row = row.cell(config.ip6.to_string()).cell(config.ip4.to_string());
    let row = row.cell(config.source.to_string());
    let row = row.cell(config.relay.map(|relay| relay.to_string()));
    let row = row.cell(rd.delegated().map(|prefix| prefix.to_string()));
    let [packets, bytes] = rds.sent(rd);
    row.cell(config.table).cell(config.checks_source).cell(packets).cell(bytes);
}

fn ids(engine: &Engine) -> Vec<InterfaceId> {
    engine.get::<SixRds>().into_iter().flat_map(SixRds::iter).map(|(id, _)| id).collect()
}

/// `show running-config`: a tunnel.
fn write_tunnel(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    let Some(rd) = engine.get::<SixRds>().and_then(|rds| rds.get(id)) else { return };
    let rd = &rd.config;
    let mut words = vec![format!("ip6-pfx {} ip4-pfx {} ip4-src {}", rd.ip6, rd.ip4, rd.source)];
    words.extend(rd.relay.map(|relay| format!("br {relay}")));
    words.extend((rd.table != 0).then(|| format!("tbl-id {}", rd.table)));
    words.extend(rd.checks_source.then(|| "security-check".to_owned()));
    words.extend(rd.instance.map(|instance| format!("instance {instance}")));
    if rd.table != 0 {
        config.command(format_args!("ip table add {}", rd.table));
    }
    config.command(format_args!("create 6rd tunnel {}", words.join(" ")));
}

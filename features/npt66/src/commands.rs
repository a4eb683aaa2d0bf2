//! Commands.

use quiver_control::{
    Args, Column, Command, ConfigWriter, IpPrefix, Output, Refusal, Registry, Table, order,
};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use crate::config::{self, Binding, Npt66};

/// The heading of these commands.
const GROUP: &str = "NAT";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set npt66 binding interface <interface> internal <internal:prefix6> external \
             <external:prefix6> [del]",
        )
        .entry(order::FEATURES, "interfaces.<interface>.npt66.<internal>: <external>")
        .undo("set npt66 binding interface <interface> internal <internal> external <external> del")
        .group(GROUP)
        .help("Let an external prefix stand for an internal one where an interface leads outside")
        .details(
            "NPTv6 (RFC 6296): without state, each internal address has one external address with \
             the same checksum. Prefixes are up to 64 bits long. Addresses of the router itself \
             stay.",
        )
        .word("internal", "the prefix of the hosts behind this router")
        .word("external", "the prefix that others see")
        .word("del", "delete the binding")
        .example("set npt66 binding interface e1 internal fd00:1::/48 external 2001:db8:1::/48")
        .example("set npt66 binding interface e1 internal fd00:1::/48 external 2001:db8:1::/48 del")
        .run(set),
    );
    registry.command(
        Command::new("show npt66 bindings [<interface>]")
            .group(GROUP)
            .help("Show the prefixes that NPTv6 translates, by interface")
            .run(show_bindings),
    );
    registry.command(
        Command::new("show npt66 address <address:ip6>")
            .group(GROUP)
            .help("Compute what NPTv6 makes of an address, or which address it stands for")
            .example("show npt66 address fd00:1::1")
            .run(show_address),
    );
}

fn prefix(args: &Args<'_>, name: &'static str) -> Result<IpPrefix, Refusal> {
    let prefix: IpPrefix = args.get(name)?;
    if prefix.has_host_bits() {
        let what = format!("{prefix} has bits set behind its length");
        return Err(args.refuse(name, what).remedy(format!("{} would be right", prefix.network())));
    }
    Ok(prefix)
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let interface = args.interface(engine, "interface")?;
    let binding =
        Binding { internal: prefix(args, "internal")?, external: prefix(args, "external")? };
    match args.has("del") {
        true => config::delete(engine, interface, binding)?,
        false => config::add(engine, interface, binding)?,
    }
    Ok(Output::none())
}

fn show_bindings(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let only = args.optional_interface(engine, "interface")?;
    let mut table =
        Table::new(["Interface", "Internal", "External"].map(Column::left)).when_empty("none");
    let Some(npt66) = engine.get::<Npt66>() else { return Ok(Output::none()) };
    for interface in npt66.interfaces().filter(|id| only.is_none_or(|only| only == *id)) {
        let name = engine.interface_name(interface);
        for Binding { internal, external } in npt66.of(interface) {
            table.row().cell(&name).cell(internal.to_string()).cell(external.to_string());
        }
    }
    Ok(Output::none().table("bindings", table))
}

fn show_address(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let mut table = Table::new(["Interface", "Side", "Address"].map(Column::left))
        .when_empty("no binding translates it");
    let Some(npt66) = engine.get::<Npt66>() else { return Ok(Output::none()) };
    for (interface, side, address) in config::counterparts(npt66, args.get("address")?) {
        let row = table.row().cell(engine.interface_name(interface)).cell(side);
        row.cell(address.map(|address| address.to_string()));
    }
    Ok(Output::none().table("addresses", table))
}

/// `show running-config`: the bindings of an interface.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let Some(npt66) = engine.get::<Npt66>() else { return };
    for Binding { internal, external } in npt66.of(interface.id) {
        config.command(format_args!(
            "set npt66 binding interface {} internal {internal} external {external}",
            interface.name
        ));
    }
}

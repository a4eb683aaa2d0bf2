//! The commands of LLDP.

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, modes, order};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use crate::config::{self, Lldp, PortWords, TX_HOLD, TX_INTERVAL_S, check_text};

/// Where the commands stand in the reference.
pub(crate) const GROUP: &str = "Interfaces";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set lldp {[system-name <:text>] [tx-hold <:1-100>] [tx-interval <:1-3600>]}")
            .entry(order::FEATURES, "lldp: some{system-name, tx-hold, tx-interval}")
            .undo("set lldp system-name \"\" tx-hold 4 tx-interval 30")
            .amends(&[])
            .group(GROUP)
            .help("Set what LLDP says of this router, and how often")
            .details(
                "It is said every tx-interval seconds (30), and holds for tx-hold intervals (4). \
                 The name is the host's until it is set.",
            )
            .example("set lldp system-name spine1 tx-interval 10")
            .run(set),
    );
    registry.command(
        Command::new(
            "set interface lldp <interface> \
             {[port-desc <:text>] [mgmt-ip4 <:ip4>] [mgmt-ip6 <:ip6>] [mgmt-oid <:word>] \
             [disable]}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.lldp: {description: <port-desc>, mgmt-ip4, mgmt-ip6, \
             mgmt-oid}",
        )
        .undo("set interface lldp <interface> disable")
        .replaces(&["interface"])
        .group(GROUP)
        .help("Tell who this router is on an interface's link, and hear who is there")
        .details(
            "What is not named is not said any more; port-desc is the interface's name \
            unless given.",
        )
        .example("set interface lldp memif0/0 port-desc uplink mgmt-ip4 192.0.2.1")
        .run(set_interface),
    );
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let name: Option<&str> = args.optional("system-name")?;
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        check_text("system name", name)?;
    }
    let lldp = config::lldp(engine)?;
    lldp.tx_hold = args.or("tx-hold", lldp.tx_hold)?;
    lldp.tx_interval_s = args.or("tx-interval", lldp.tx_interval_s)?;
    if let Some(name) = name {
        lldp.system_name = Some(name).filter(|name| !name.is_empty()).map(str::to_owned);
    }
    lldp.say_all();
    Ok(Output::none())
}

fn set_interface(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    if args.has("disable") {
        config::disable(engine, id)?;
        return Ok(Output::none());
    }
    modes::check_frames(engine, id)?;
    let text = |name: &str| args.optional::<&str>(name).map(|text| text.map(str::to_owned));
    let words = PortWords {
        description: text("port-desc")?,
        ip4: args.optional("mgmt-ip4")?,
        ip6: args.optional("mgmt-ip6")?,
        oid: text("mgmt-oid")?,
    };
    config::enable(engine, id, words)?;
    Ok(Output::none())
}

/// `show running-config`: what LLDP says of this router.
pub(crate) fn write_settings(engine: &Engine, config: &mut ConfigWriter) {
    let Some(lldp) = engine.get::<Lldp>() else { return };
    let mut words = String::new();
    if let Some(name) = &lldp.system_name {
        words += &format!(" system-name \"{name}\"");
    }
    if lldp.tx_hold != TX_HOLD {
        words += &format!(" tx-hold {}", lldp.tx_hold);
    }
    if lldp.tx_interval_s != TX_INTERVAL_S {
        words += &format!(" tx-interval {}", lldp.tx_interval_s);
    }
    if !words.is_empty() {
        config.command(format_args!("set lldp{words}"));
    }
}

/// `show running-config`: LLDP of an interface.
pub(crate) fn write_port(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    if let Some(port) = engine.get::<Lldp>().and_then(|lldp| lldp.port(interface.id)) {
        let PortWords { description, ip4, ip6, oid } = &port.words;
        let description =
            description.as_ref().map_or_else(String::new, |d| format!(" port-desc \"{d}\""));
        let ip4 = ip4.map_or_else(String::new, |address| format!(" mgmt-ip4 {address}"));
        let ip6 = ip6.map_or_else(String::new, |address| format!(" mgmt-ip6 {address}"));
        let oid = oid.as_ref().map_or_else(String::new, |oid| format!(" mgmt-oid {oid}"));
        let name = &interface.name;
        config.command(format_args!("set interface lldp {name}{description}{ip4}{ip6}{oid}"));
    }
}

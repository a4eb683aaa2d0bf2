//! The commands of bonds.

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::{Engine, InterfaceId};
use quiver_wire::MacAddress;

use crate::config::{self, BondWish};
use crate::mode::{Balance, Mode};
use crate::show::bond;

/// Where the commands stand in the reference.
pub(crate) const GROUP: &str = "Interfaces";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "create bond mode <mode:lacp|xor|active-backup|round-robin|broadcast> \
             {[load-balance <balance:l2|l23|l34>] [hw-addr <:mac>] [id <number:0-16383>]}",
        )
        .entry(
            order::INTERFACES,
            "interfaces.BondEthernet<number>.bond: {mode, load-balance: <balance>, mac: \
             <hw-addr>}",
        )
        .undo("delete bond BondEthernet<number>")
        .makes("interface BondEthernet<number>")
        .group(GROUP)
        .help("Create a bond: several links as one interface, BondEthernetN")
        .details(
            "load-balance says what of a frame chooses the member in modes lacp and xor: its MAC \
             addresses (l2, unless given), these and its IP addresses (l23), or its IP addresses, \
             protocol and ports (l34). Without hw-addr a bond takes the address of its first \
             member.",
        )
        .example("create bond mode lacp load-balance l34")
        .example("create bond mode active-backup hw-addr 02:fe:00:00:00:01 id 7")
        .run(create),
    );
    registry.command(
        Command::new("delete bond <interface>")
            .group(GROUP)
            .help("Delete a bond; its members are again what they were before")
            .example("delete bond BondEthernet0")
            .run(|engine: &mut Engine, args| {
                config::delete(engine, args.interface(engine, "interface")?)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("bond add <bond:interface> <interface> {[passive] [long-timeout]}")
            .entry(order::MEMBERS, "interfaces.<bond>.members.<interface>: {passive, long-timeout}")
            .undo("bond del <interface>")
            .makes("member <interface>")
            .stands_on("own of <interface>")
            .group(GROUP)
            .help("Let an interface be a member of a bond")
            .details(
                "It takes the bond's address, MTU and promiscuity, and what it receives is the \
                 bond's. For mode lacp: passive waits for the partner to speak first; \
                 long-timeout asks the partner to speak every 30 seconds and not every second.",
            )
            .example("bond add BondEthernet0 memif0/0 long-timeout")
            .run(|engine: &mut Engine, args| {
                let (bond, id) =
                    (args.interface(engine, "bond")?, args.interface(engine, "interface")?);
                config::add_member(
                    engine,
                    bond,
                    id,
                    args.has("passive"),
                    args.has("long-timeout"),
                )?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("bond del <interface>")
            .group(GROUP)
            .help("Let an interface leave its bond; it is again what it was before")
            .example("bond del memif0/0")
            .run(|engine: &mut Engine, args| {
                config::remove_member(engine, args.interface(engine, "interface")?)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set interface bond <interface> weight <:0-1000000>")
            .entry(order::MEMBERS, "interfaces.<interface>.bond-weight: <weight>")
            .undo("set interface bond <interface> weight 0")
            .replaces(&["interface"])
            .stands_on("member <interface>")
            .group(GROUP)
            .help("Prefer a member of an active-backup bond to those of less weight")
            .details("Members of equal weight take turns only when the one that sends goes down.")
            .example("set interface bond memif0/0 weight 100")
            .run(|engine: &mut Engine, args| {
                config::set_weight(
                    engine,
                    args.interface(engine, "interface")?,
                    args.get("weight")?,
                )?;
                Ok(Output::none())
            }),
    );
}

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let mode: &str = args.get("mode")?;
    let mode = Mode::of(mode).ok_or_else(|| args.refuse("mode", "this is no mode of a bond"))?;
    let balance: Option<&str> = args.optional("balance")?;
    if balance.is_some() && !mode.hashes() {
        let what = format!("a {mode} bond does not balance load by what is in a frame");
        return Err(args.refuse("balance", what).remedy("leave load-balance out"));
    }
    let hw_addr: Option<[u8; 6]> = args.optional("hw-addr")?;
    let hw_addr = hw_addr.map(MacAddress);
    if let Some(mac) = hw_addr.filter(|mac| !mac.is_unicast()) {
        return Err(args.refuse("hw-addr", format!("{mac} cannot be the address of an interface")));
    }
    let balance = balance.and_then(Balance::of).unwrap_or_default();
    let id = config::create(
        engine,
        BondWish { mode, balance, hw_addr, number: args.optional("number")? },
    )?;
    let name = engine.interface_name(id);
    Ok(Output::default().line(name.as_str()).json("name", name.into()))
}

/// The bonds themselves, which other commands name.
pub(crate) fn write_bond(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    if let Some(bond) = bond(engine, id) {
        let balance = if bond.mode.hashes() {
            format!(" load-balance {}", bond.balance)
        } else {
            String::new()
        };
        let mac = bond.hw_addr.map_or_else(String::new, |mac| format!(" hw-addr {mac}"));
        config.command(format_args!(
            "create bond mode {}{balance}{mac} id {}",
            bond.mode, bond.number
        ));
    }
}

/// The members of a bond, as commands.
pub(crate) fn write_members(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    if let Some(bond) = bond(engine, id) {
        let bond_name = engine.interface_name(bond.id);
        for member in &bond.members {
            let name = engine.interface_name(member.id);
            let passive = if member.passive { " passive" } else { "" };
            let long = if member.long_timeout { " long-timeout" } else { "" };
            config.command(format_args!("bond add {bond_name} {name}{passive}{long}"));
            if member.weight > 0 {
                config.command(format_args!("set interface bond {name} weight {}", member.weight));
            }
        }
    }
}

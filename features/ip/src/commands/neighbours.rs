//! Neighbours.

use std::net::IpAddr;

use quiver_control::{
    Cell, Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Work, order,
};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, FibError};
use quiver_forwarding::neighbour::{Neighbour, NeighbourState};
use quiver_wire::MacAddress;

use super::{GROUP, fib, neighbour_config};
use crate::neighbor::control::{now_ms, serve};
use crate::state::{IpState, with_ip};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("ip neighbor [del] <interface> <address:ip> [<mac>] [static]")
            .entry(
                order::NEIGHBORS,
                "interfaces.<interface>.neighbors.<address>: <mac> with static",
            )
            .undo("ip neighbor del <interface> <address>")
            .replaces(&["interface", "address"])
            .also("set ip neighbor [del] <interface> <address:ip> [<mac>] [static]")
            .group(GROUP)
            .help("Say which MAC address a neighbour has, or forget the neighbour")
            .details(
                "What is configured does not age, and is not changed by what the network says.",
            )
            .example("ip neighbor e0 192.0.2.2 02:fe:00:00:00:02 static")
            .example("ip neighbor del e0 192.0.2.2")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                let address: IpAddr = args.get("address")?;
                if args.has("del") {
                    forget(engine, interface, address)?;
                } else {
                    let mac = args.get::<[u8; 6]>("mac").map_err(|refusal| {
                        refusal.remedy("give the MAC address behind the neighbour's address")
                    })?;
                    configure(engine, interface, address, MacAddress(mac))?;
                }
                Ok(Output::none())
            }),
    );
    neighbour_config::register(registry);
    for (syntax, also, help, six) in [
        (
            "clear ip neighbors [<interface>]",
            "clear ip4 neighbors [<interface>]",
            "Forget the IPv4 neighbours that were learned",
            false,
        ),
        (
            "clear ip6 neighbors [<interface>]",
            "clear ip6 neighbor [<interface>]",
            "Forget the IPv6 neighbours that were learned",
            true,
        ),
    ] {
        registry.command(
            Command::new(syntax)
                .also(also)
                .group(GROUP)
                .help(help)
                .details(
                    "Those that were configured stay. Packets to a forgotten one ask for it again.",
                )
                .run(move |engine: &mut Engine, args| {
                    let only = args.optional_interface(engine, "interface")?;
                    forget_learned(engine, only, six)
                }),
        );
    }
    registry.command(
        Command::new("show ip neighbors [<interface>]")
            .also("show ip neighbor [<interface>]")
            .also("show ip4 neighbors [<interface>]")
            .also("show ip arp [<interface>]")
            .group(GROUP)
            .help("Show the IPv4 neighbours")
            .run_or_begin(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                listing(engine, only, false)
            }),
    );
    registry.command(
        Command::new("show ip6 neighbors [<interface>]")
            .also("show ip6 neighbor [<interface>]")
            .group(GROUP)
            .help("Show the IPv6 neighbours")
            .run_or_begin(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                listing(engine, only, true)
            }),
    );
}

fn configure(
    engine: &mut Engine,
    on: InterfaceId,
    address: IpAddr,
    mac: MacAddress,
) -> Result<(), Refusal> {
    let now = now_ms(engine);
    let done = with_ip(engine, |_, ip, fib| {
        fib.set_static_neighbour(on, address, mac, now)?;
        ip.replacing.give_neighbour(on, address);
        Ok::<_, FibError>(ip.asked.remove(on, address))
    });
    if done.map_err(|error| Refusal::of_table(engine, error))? {
        serve(engine, on, address);
    }
    Ok(())
}

fn forget(engine: &mut Engine, on: InterfaceId, address: IpAddr) -> Result<(), Refusal> {
    let done = with_ip(engine, |_, _, fib| fib.remove_neighbour(on, address));
    done.map_err(|error| Refusal::of_table(engine, error))
}

/// Forget the neighbours of a family that were learned, on one interface or on all.
fn forget_learned(
    engine: &mut Engine,
    only: Option<InterfaceId>,
    six: bool,
) -> Result<Output, Refusal> {
    let learned: Vec<(InterfaceId, IpAddr)> = fib(engine)?
        .neighbours()
        .iter()
        .filter(|(on, address, neighbour)| {
            let is_wanted = address.is_ipv6() == six && only.is_none_or(|only| only == *on);
            is_wanted && !neighbour.state.is_fixed()
        })
        .map(|(on, address, _)| (on, address))
        .collect();
    for (on, address) in &learned {
        forget(engine, *on, *address)?;
    }
    let count = learned.len();
    Ok(Output::none().line(format!("{count} forgotten")).json("forgotten", count.into()))
}

fn listing(
    engine: &mut Engine,
    only: Option<InterfaceId>,
    six: bool,
) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::right("Age").key("age_s"),
        Column::left("Address"),
        Column::left("State"),
        Column::left("MAC").key("mac"),
        Column::left("Interface"),
    ];
    let wanted = move |on: InterfaceId, address: IpAddr| {
        address.is_ipv6() == six && only.is_none_or(|only| only == on)
    };
    let mut after = None;
    let mut is_known_done = false;
    let rows = move |engine: &mut Engine, table: &mut Table, most: usize| {
        if !is_known_done {
            let now = now_ms(engine);
            let (mut looked_at, last) = (0, after);
            // Others than those wanted count, too: a step looks at a bounded number.
            for (on, address, neighbour) in fib(engine)?.neighbours().after(last).take(most) {
                (looked_at, after) = (looked_at + 1, Some((on, address)));
                if wanted(on, address) {
                    add_neighbour(engine, table, now, (on, address), neighbour);
                }
            }
            is_known_done = looked_at < most;
        }
        if !is_known_done {
            return Ok(None);
        }
        let asked = engine.get::<IpState>().into_iter().flat_map(|ip| ip.asked.iter());
        for (on, address, since_ns) in asked.filter(|(on, address, _)| wanted(*on, *address)) {
            let age = engine.now_ns().saturating_sub(since_ns) as f64 / 1e9;
            let row = table.row().cell(Cell::real(age, 1)).cell(address).cell("incomplete");
            row.cell(None::<&str>).cell(engine.interface_name(on));
        }
        foot(engine, six).map(Some)
    };
    Listing::new("neighbors", columns, rows).begin(engine)
}

fn add_neighbour(
    engine: &Engine,
    table: &mut Table,
    now_ms: u64,
    (on, address): (InterfaceId, IpAddr),
    neighbour: &Neighbour,
) {
    let age = now_ms.saturating_sub(neighbour.confirmed_ms) as f64 / 1e3;
    table
        .row()
        .cell(Cell::real(age, 1))
        .cell(address)
        .cell(neighbour.state.word())
        .cell(Cell::display(neighbour.mac))
        .cell(engine.interface_name(on));
}

/// What follows the list: what was not learned, and what waits.
fn foot(engine: &Engine, six: bool) -> Result<Output, Refusal> {
    let mut output = Output::none();
    let Some(ip) = engine.get::<IpState>() else { return Ok(output) };
    let not_learned = ip.not_learned[usize::from(six)];
    if not_learned > 0 {
        let (family, limit) =
            (if six { "ip6" } else { "ip4" }, fib(engine)?.neighbours().config(six).limit);
        output = output.line(format!(
            "{not_learned} times a neighbour was not learned: there are {limit} dynamic ones \
             already (`set ip neighbor-config {family} limit N`)"
        ));
    }
    let (waiting, forgotten) = (ip.held.packets(), ip.held.forgotten());
    if waiting > 0 || forgotten > 0 {
        output = output.line(format!(
            "{waiting} packets wait for IPv4 and IPv6 neighbours; {forgotten} were forgotten \
             unanswered"
        ));
    }
    Ok(output)
}

/// The part of `show running-config`: static neighbours by the names of their interfaces.
pub(crate) fn begin_config() -> impl FnMut(&Engine, &mut ConfigWriter, usize) -> bool {
    let mut left: Option<std::vec::IntoIter<InterfaceId>> = None;
    let mut last = None;
    move |engine, config, most| {
        let Some(fib) = engine.get::<Fib>() else { return true };
        let left = left.get_or_insert_with(|| {
            neighbour_config::write_config(fib, config);
            engine
                .interfaces_by_name()
                .map(|interface| interface.id)
                .collect::<Vec<_>>()
                .into_iter()
        });
        let mut looked_at = 0;
        while let Some(on) = left.as_slice().first().copied() {
            let before = last;
            let from = before.unwrap_or((on, IpAddr::from([0; 4])));
            let own = fib.neighbours().from_key(from).take_while(|(id, ..)| *id == on);
            let interface = engine.interface_name(on);
            for (_, address, neighbour) in
                own.filter(|(_, address, _)| before != Some((on, *address)))
            {
                if looked_at == most {
                    return false;
                }
                (looked_at, last) = (looked_at + 1, Some((on, address)));
                if neighbour.state == NeighbourState::Static {
                    config.command(format_args!(
                        "ip neighbor {interface} {address} {} static",
                        neighbour.mac
                    ));
                }
            }
            last = None;
            left.next();
            if looked_at == most {
                return false;
            }
        }
        true
    }
}

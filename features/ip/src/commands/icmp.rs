//! How many ICMP errors are sent, and what packets of the router's own may be as long as.

use std::net::IpAddr;

use quiver_control::{
    Cell, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib};

use super::{GROUP, table_of};
use crate::local::icmp_limits::IcmpLimit;
use crate::local::path_mtu::least;
use crate::state::IpState;

pub(super) fn register(registry: &mut Registry) {
    rate_limit(registry);
    path_mtu(registry);
}

fn rate_limit(registry: &mut Registry) {
    registry.command(
        Command::new("set ip icmp-rate-limit [ip4|ip6] <per-second:0-1000000> [burst <:1-100000>]")
            .entry(
                order::INTERFACE_SETTINGS,
                "ip.icmp-rate-limit.<ip4|ip6>: {rate: <per-second>, burst}",
            )
            .undo("set ip icmp-rate-limit [ip4] [ip6] 1000 burst 100")
            .replaces(&["ip4", "ip6"])
            .group(GROUP)
            .help("Say how many ICMP errors each worker may send in a second, and at once")
            .details("Without `ip4` or `ip6`, it is said of both families. With 0, none are sent.")
            .word("burst", "at once; 100")
            .example("set ip icmp-rate-limit ip6 100 burst 10")
            .run(|engine: &mut Engine, args| {
                let ip = engine.get_mut::<IpState>().ok_or_else(super::busy)?;
                for six in [false, true] {
                    if args.has(if six { "ip4" } else { "ip6" }) {
                        continue;
                    }
                    let limit = IcmpLimit {
                        per_second: args.get("per-second")?,
                        burst: args.or("burst", IcmpLimit::default().burst)?,
                    };
                    ip.icmp_limits.set(six, limit);
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show ip icmp-rate-limit")
            .group(GROUP)
            .help("Show how many ICMP errors each worker may send")
            .run(|engine: &mut Engine, _| {
                let mut table = Table::new([
                    Column::left("Family"),
                    Column::right("A second").key("per_second"),
                    Column::right("Burst"),
                ]);
                let ip = engine.get::<IpState>().ok_or_else(super::busy)?;
                for (six, family) in [(false, "ip4"), (true, "ip6")] {
                    let limit = ip.icmp_limits.get(six);
                    table.row().cell(family).cell(limit.per_second).cell(limit.burst);
                }
                Ok(Output::none().table("limits", table))
            }),
    );
}

fn path_mtu(registry: &mut Registry) {
    registry.command(
        Command::new("set ip pmtu peer <address:ip> [table <:u32>] path-mtu <mtu:68-65535>")
            .entry(order::INTERFACE_SETTINGS, "ip.path-mtus[]: {peer: <address>, table, mtu}")
            .undo("set ip pmtu del peer <address> [table <table>]")
            .replaces(&["address", "table"])
            .group(GROUP)
            .help("Say how long packets of the router's own to a destination may be")
            .word("table", "the table in which they are looked up; 0")
            .example("set ip pmtu peer 192.0.2.1 path-mtu 1400")
            .example("set ip pmtu peer 2001:db8::1 table 10 path-mtu 1300")
            .run(|engine: &mut Engine, args| {
                let address: IpAddr = args.get("address")?;
                let mtu_bytes: u16 = args.get("mtu")?;
                if mtu_bytes < least(address) {
                    let what = format!("no path has less than {} bytes", least(address));
                    return Err(args.refuse("mtu", what));
                }
                let table = table_of(engine, args, Family::of(address), "table")?;
                let ip = engine.get_mut::<IpState>().ok_or_else(super::busy)?;
                ip.path_mtus.say((table, address), mtu_bytes);
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set ip pmtu del peer <address:ip> [table <:u32>]")
            .group(GROUP)
            .help("Forget how long packets of the router's own to a destination may be")
            .word("table", "the table in which they are looked up; 0")
            .example("set ip pmtu del peer 192.0.2.1")
            .run(|engine: &mut Engine, args| {
                let address: IpAddr = args.get("address")?;
                let table = table_of(engine, args, Family::of(address), "table")?;
                let ip = engine.get_mut::<IpState>().ok_or_else(super::busy)?;
                let known = ip.path_mtus.remove((table, address));
                known.then(Output::none).ok_or_else(|| {
                    Refusal::new(format!("nothing is known of the path to {address}"))
                        .remedy("show ip pmtu")
                })
            }),
    );
    registry.command(
        Command::new("clear ip pmtu")
            .group(GROUP)
            .help("Forget what routers have told of the paths to destinations")
            .run(|engine: &mut Engine, _| {
                engine.get_mut::<IpState>().ok_or_else(super::busy)?.path_mtus.clear();
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show ip pmtu")
            .group(GROUP)
            .help(
                "Show how long packets of the router's own may be, where routers on the way have \
                 told",
            )
            .run(|engine: &mut Engine, _| {
                let mut table = Table::new([
                    Column::right("Table"),
                    Column::left("Destination"),
                    Column::right("MTU").key("mtu_bytes"),
                    Column::right("Forgotten in").key("left_s"),
                ]);
                let ip = engine.get::<IpState>().ok_or_else(super::busy)?;
                let fib = super::fib(engine)?;
                for ((table_index, address), path) in ip.path_mtus.iter() {
                    let left = path
                        .until_ns
                        .map(|until_ns| until_ns.saturating_sub(engine.now_ns()) / 1_000_000_000);
                    let id = fib.table_id(Family::of(address), table_index);
                    table
                        .row()
                        .cell(id.unwrap_or(table_index))
                        .cell(address)
                        .cell(path.mtu_bytes)
                        .cell(Cell::optional(left, "never"));
                }
                Ok(Output::none().table("paths", table))
            }),
    );
}

/// The part of `show running-config`.
pub(super) fn write_config(fib: &Fib, ip: &IpState, config: &mut ConfigWriter) {
    for (six, family) in [(false, "ip4"), (true, "ip6")] {
        let limit = ip.icmp_limits.get(six);
        if limit != IcmpLimit::default() {
            let (per_second, burst) = (limit.per_second, limit.burst);
            config.command(format_args!(
                "set ip icmp-rate-limit {family} {per_second} burst {burst}"
            ));
        }
    }
    let said = ip.path_mtus.iter().filter(|(_, path)| path.until_ns.is_none());
    let placed = said.map(|((table, address), path)| {
        (address.is_ipv6(), fib.table_id(Family::of(address), table).unwrap_or(0), address, path)
    });
    let mut placed: Vec<_> = placed.collect();
    placed.sort_by_key(|(six, id, address, _)| (*six, *id, *address));
    for (_, id, address, path) in placed {
        let table = if id == 0 { String::new() } else { format!(" table {id}") };
        config
            .command(format_args!("set ip pmtu peer {address}{table} path-mtu {}", path.mtu_bytes));
    }
}

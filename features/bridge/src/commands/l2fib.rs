//! Entries of the MAC table: configured, removed, flushed.

use quiver_control::{Args, Command, ConfigWriter, Job, Output, Refusal, Registry, order};
use quiver_core::{Engine, InterfaceId};
use quiver_tables::mac::{Configured, MacEntry, MacKey};
use quiver_wire::MacAddress;

use super::jobs::{Add, Clear, Remove};
use super::{GROUP, bridges, bridges_mut};
use crate::state::Bridges;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "l2fib add <mac> <domain:1-16777215> (<nowhere:filter|drop>|<interface>) \
             {[static] [filter] [count <:1-16777216>]}",
        )
        .entry(
            order::NEIGHBORS,
            "bridge-domains.<domain>.l2fib.<mac>: {interface, nowhere, static, filter, count}",
        )
        .undo("l2fib del <mac> <domain> [count <count>]")
        .stands_on("bridge domain <domain>")
        .stands_on("layer of <interface>")
        .group(GROUP)
        .help("Say behind which interface of a bridge domain an address is")
        .details(
            "It does not age. Without static it moves when a frame with this source comes in \
             elsewhere. With filter, frames from and to it are dropped, wherever it is when no \
             interface is named. count adds so many consecutive addresses.",
        )
        .example("l2fib add 02:fe:00:00:00:07 10 memif0/0 static")
        .example("l2fib add 02:fe:00:00:00:00 10 memif0/0 count 100000")
        .example("l2fib add 02:fe:00:00:00:66 10 filter")
        .begin(add),
    );
    registry.command(
        Command::new("l2fib del <mac> <domain:1-16777215> [count <:1-16777216>]")
            .group(GROUP)
            .help("Forget an address of a bridge domain, or so many consecutive ones")
            .example("l2fib del 02:fe:00:00:00:07 10")
            .begin(remove),
    );
    registry.command(
        Command::new("clear l2fib")
            .group(GROUP)
            .help("Forget all addresses of all bridge domains, configured ones too")
            .begin(|engine: &mut Engine, _| {
                let bridges = bridges_mut(engine)?;
                flush(bridges, |_, _| true);
                Ok(Box::new(Clear { at: Some(0) }) as Box<dyn Job<Engine>>)
            }),
    );
    registry.command(
        Command::new("l2fib flush-mac all")
            .group(GROUP)
            .help("Forget all addresses that were learned")
            .run(|engine: &mut Engine, _| {
                flush(bridges_mut(engine)?, |_, _| true);
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("l2fib flush-mac bridge-domain <domain:1-16777215>")
            .group(GROUP)
            .help("Forget the addresses that were learned in a bridge domain")
            .example("l2fib flush-mac bridge-domain 10")
            .run(|engine: &mut Engine, args| {
                let number = args.get("domain")?;
                let bridges = bridges_mut(engine)?;
                bridges.domain(number)?;
                flush(bridges, |_, domain| domain == number);
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("l2fib flush-mac interface <interface>")
            .group(GROUP)
            .help("Forget the addresses that were learned by an interface")
            .example("l2fib flush-mac interface memif0/0")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                let name = engine.interface_name(id);
                let bridges = bridges_mut(engine)?;
                if !bridges.ports.contains_key(&id) {
                    return Err(args.refuse("interface", format!("{name} is in no bridge domain")));
                }
                flush(bridges, |port, _| port == id);
                Ok(Output::none())
            }),
    );
}

/// Forget what was learned by the ports that are meant.
fn flush(bridges: &mut Bridges, meant: impl Fn(InterfaceId, u32) -> bool) {
    let ports = bridges.ports.iter().filter(|(id, port)| meant(**id, port.domain));
    let ids: Vec<InterfaceId> = ports.map(|(id, _)| *id).collect();
    ids.into_iter().for_each(|id| bridges.flush_port(id));
}

/// The first key and how many.
fn keys(engine: &Engine, args: &Args<'_>) -> Result<(MacKey, u64), Refusal> {
    let (mac, number) = (MacAddress(args.get("mac")?), args.get("domain")?);
    let domain = bridges(engine)?.domain(number)?;
    let count = args.or("count", 1)?;
    let last = mac.offset(count - 1);
    if mac.to_u64() + count > 1 << 48 {
        return Err(args.refuse("count", format!("there are not {count} addresses from {mac} on")));
    }
    for end in [mac, last] {
        if !end.is_unicast() {
            return Err(args.refuse("mac", format!("no station can have {end}")));
        }
    }
    if mac.0[0] != last.0[0] {
        return Err(args
            .refuse("count", format!("from {mac} on, {count} addresses have groups among them")));
    }
    Ok((MacKey::new(domain.index, mac), count))
}

fn add(engine: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Job<Engine>>, Refusal> {
    let (first, count) = keys(engine, args)?;
    let number: u32 = args.get("domain")?;
    let filter_alone = args.has("nowhere");
    let port = (!filter_alone).then(|| args.interface(engine, "interface")).transpose()?;
    let state = bridges(engine)?;
    if let Some(port) = port
        && state.ports.get(&port).is_none_or(|port| port.domain != number)
    {
        let name = engine.interface_name(port);
        let refusal = args.refuse("interface", format!("{name} is not in bridge domain {number}"));
        return Err(
            refusal.remedy(format!("`set interface l2 bridge {name} {number}` puts it there"))
        );
    }
    let own = |key: MacKey| state.macs.get(key).is_some_and(|entry| entry.is_bvi());
    if own(first) {
        return Err(
            args.refuse("mac", format!("{} is the bridge's own routed interface", first.mac()))
        );
    }
    let (len, most) = (state.macs.len() as u64, state.macs.entries_max() as u64);
    if count > 1 && len + count > most {
        let refusal = args.refuse("count", format!("the MAC table has {len} of {most} entries"));
        return Err(refusal.remedy("raise it with `set l2fib entries-max N`"));
    }
    let is_filter = filter_alone || args.has("filter");
    let is_static = !filter_alone && args.has("static");
    let entry = Configured { port, is_static, is_filter, is_bvi: false, far_end: None };
    Ok(Box::new(Add { first, count, entry, done: 0 }))
}

fn remove(engine: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Job<Engine>>, Refusal> {
    let (first, count) = keys(engine, args)?;
    let known = bridges(engine)?.macs.get(first);
    let mac = first.mac();
    if count == 1 && known.is_none() {
        let refusal = args.refuse("mac", format!("the bridge domain does not know {mac}"));
        return Err(refusal.remedy("`show l2fib all` lists what is known"));
    }
    if count == 1 && known.is_some_and(MacEntry::is_bvi) {
        let refusal = args.refuse("mac", format!("{mac} is the bridge's own routed interface"));
        return Err(refusal.remedy("`set interface l3 IF` takes it out"));
    }
    Ok(Box::new(Remove { first, count, done: 0, removed: 0 }))
}

/// A run of consecutive addresses with one meaning.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Run {
    domain: u32,
    port: Option<InterfaceId>,
    is_static: bool,
    is_filter: bool,
}

/// The part of `show running-config`: what was configured, consecutive addresses in one command.
pub(crate) fn configured_runs(engine: &Engine) -> Vec<(MacAddress, Run, usize)> {
    let Some(bridges) = engine.get::<Bridges>() else { return Vec::new() };
    let configured =
        bridges.macs.iter().filter(|(_, entry)| entry.is_configured() && !entry.is_bvi());
    let configured = configured.filter(|(key, _)| !bridges.added.contains_key(key));
    let mut entries: Vec<(u32, u64, Run)> = configured
        .map(|(key, entry)| {
            let run = Run {
                domain: bridges.number(key.domain()),
                port: (!entry.has_no_port()).then(|| entry.port()),
                is_static: entry.is_static(),
                is_filter: entry.is_filter(),
            };
            (run.domain, key.mac().to_u64(), run)
        })
        .collect();
    entries.sort_by_key(|(domain, mac, _)| (*domain, *mac));
    let (mut at, mut runs) = (0, Vec::new());
    while at < entries.len() {
        let (_, mac, run) = entries[at];
        let follows = |n: usize| {
            entries.get(at + n).is_some_and(|(_, m, r)| *m == mac + n as u64 && *r == run)
        };
        let count = 1 + (1..).take_while(|n| follows(*n)).count();
        runs.push((MacAddress::from_u64(mac), run, count));
        at += count;
    }
    runs
}

/// A run of entries, as a command.
pub(crate) fn write_run(
    engine: &Engine,
    config: &mut ConfigWriter,
    (mac, run, count): (MacAddress, Run, usize),
) {
    let number = run.domain;
    let many = if count > 1 { format!(" count {count}") } else { String::new() };
    let Some(port) = run.port else {
        return config.command(format_args!("l2fib add {mac} {number} filter{many}"));
    };
    // A filter never moves either; the word says nothing more.
    let kind = if run.is_filter {
        " filter"
    } else if run.is_static {
        " static"
    } else {
        ""
    };
    config.command(format_args!(
        "l2fib add {mac} {number} {}{kind}{many}",
        engine.interface_name(port)
    ));
}

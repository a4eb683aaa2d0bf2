//! Bridge domains: made, changed, deleted.

use std::net::IpAddr;
use std::sync::Arc;

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_tables::mac::MAC_ENTRIES_MAX;
use quiver_wire::MacAddress;

use super::{GROUP, bridges_mut};
use crate::events::EVENTS_KEPT;
use crate::state::{BridgeDomain, Bridges, STATIONS_MAX, Switches};

/// A learn limit of so many is none.
const LEARN_LIMIT_MAX: usize = 1 << 24;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "create bridge-domain <domain:1-16777215> \
             {[learn <:0-1>] [forward <:0-1>] [flood <:0-1>] [uu-flood <:0-1>] [arp-term <:0-1>] \
             [arp-ufwd <:0-1>] [mac-age <:0-255>]} [del]",
        )
        .entry(
            order::TABLES,
            "bridge-domains.<domain>: {learn: <learn:1?0>, forward: <forward:1?0>, flood: \
             <flood:1?0>, uu-flood: <uu-flood:1?0>, arp-term: <arp-term:1?0>, arp-ufwd: \
             <arp-ufwd:1?0>, mac-age}",
        )
        .undo("create bridge-domain <domain> del")
        .makes("bridge domain <domain>")
        .usual(&[
            ("learn", "1"),
            ("forward", "1"),
            ("flood", "1"),
            ("uu-flood", "1"),
            ("arp-term", "0"),
            ("arp-ufwd", "0"),
            ("mac-age", "0"),
        ])
        .group(GROUP)
        .help("Create a bridge domain, or delete one")
        .details(
            "All is on but arp-term and arp-ufwd, and what is learned is never forgotten, \
            unless said otherwise. mac-age is in minutes. A domain that has interfaces is not \
            deleted.",
        )
        .example(
            "create bridge-domain 10 learn 1 forward 1 flood 1 uu-flood 1 arp-term 0 mac-age \
            5",
        )
        .example("create bridge-domain 10 del")
        .run(create),
    );
    registry.command(
        Command::new("set bridge-domain mac-age <domain:1-16777215> <minutes:0-255>")
            .group(GROUP)
            .help("Say after how many minutes without a frame an address is forgotten; 0 is never")
            .example("set bridge-domain mac-age 10 5")
            .run(|engine: &mut Engine, args| {
                let (number, minutes) = (args.get("domain")?, args.get("minutes")?);
                let bridges = bridges_mut(engine)?;
                bridges.domain_mut(number)?.mac_age_minutes = minutes;
                bridges.macs.want_sweep();
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set bridge-domain learn-limit <domain:1-16777215> <limit:0-16777216>")
            .entry(order::TABLES, "bridge-domains.<domain>.learn-limit: <limit>")
            .undo("set bridge-domain learn-limit <domain> 16777216")
            .replaces(&["domain"])
            .stands_on("bridge domain <domain>")
            .group(GROUP)
            .help("Say how many addresses a bridge domain learns at most")
            .example("set bridge-domain learn-limit 10 1000")
            .run(|engine: &mut Engine, args| {
                let (number, limit) = (args.get("domain")?, args.get::<u64>("limit")? as usize);
                let bridges = bridges_mut(engine)?;
                let domain = bridges.domain_mut(number)?;
                domain.learn_limit = Some(limit).filter(|limit| *limit < LEARN_LIMIT_MAX);
                let index = domain.index;
                bridges.macs.set_domain_learn_limit(index, limit);
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set l2 learn limit <limit:0-16777216>")
            .entry(order::LIMITS, "l2.learn-limit: <limit>")
            .undo("set l2 learn limit 8500000")
            .replaces(&[])
            .is_limit()
            .group(GROUP)
            .help("Say how many addresses all bridge domains together learn at most")
            .details(
                "The smaller of it and of the room in the MAC table (`set l2fib entries-max`) \
                 holds.",
            )
            .example("set l2 learn limit 1000000")
            .run(|engine: &mut Engine, args| {
                let limit = args.get::<u64>("limit")? as usize;
                let macs = &mut bridges_mut(engine)?.macs;
                macs.set_learn_limit(limit.min(macs.entries_max()));
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set l2fib entries-max <entries:1-16777216>")
            .entry(order::LIMITS, "l2.mac-entries-max: <entries>")
            .undo("set l2fib entries-max 8500000")
            .replaces(&[])
            .is_limit()
            .group(GROUP)
            .help("Say how many entries the MAC table has at most")
            .details(
                "What is in it stays. \"l2fib { entries-max N }\" in the start-up file says the \
                 same.",
            )
            .example("set l2fib entries-max 100000")
            .run(|engine: &mut Engine, args| {
                let entries_max = args.get::<u64>("entries")? as usize;
                let bridges = bridges_mut(engine)?;
                bridges.macs.set_entries_max(entries_max)?;
                // A domain's own limit stays, even when it was above the last maximum.
                let own = |domain: &BridgeDomain| Some((domain.index, domain.learn_limit?));
                let limits: Vec<_> = bridges.domains().values().filter_map(own).collect();
                for (index, limit) in limits {
                    bridges.macs.set_domain_learn_limit(index, limit);
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set l2fib events <events:0-1000000>")
            .entry(order::LIMITS, "l2.events: <events>")
            .undo("set l2fib events 1024")
            .replaces(&[])
            .group(GROUP)
            .help("Say how many events (learned, moved, aged) are kept for `show l2fib events`")
            .example("set l2fib events 10000")
            .run(|engine: &mut Engine, args| {
                let events = args.get::<u64>("events")? as usize;
                bridges_mut(engine)?.events.keep(events);
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set bridge-domain arp entry <domain:1-16777215> <address:ip> <mac> [del]")
            .entry(order::TABLES, "bridge-domains.<domain>.arp-entries.<address>: <mac>")
            .undo("set bridge-domain arp entry <domain> <address> <mac> del")
            .stands_on("bridge domain <domain>")
            .group(GROUP)
            .help("Say who has an address, so that the bridge domain answers who asks for it")
            .details("Answers are given when arp-term is on for the domain.")
            .example("set bridge-domain arp entry 10 192.0.2.7 02:fe:00:00:00:07")
            .example("set bridge-domain arp entry 10 2001:db8::7 02:fe:00:00:00:07 del")
            .run(station),
    );
}

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let number = args.get("domain")?;
    let bridges = bridges_mut(engine)?;
    if args.has("del") {
        bridges.close(number)?;
        return Ok(Output::none());
    }
    let on = |name: &str, default: bool| {
        Ok::<bool, Refusal>(args.or::<u8>(name, u8::from(default))? == 1)
    };
    let switches = Switches {
        learn: on("learn", true)?,
        forward: on("forward", true)?,
        flood: on("flood", true)?,
        uu_flood: on("uu-flood", true)?,
        arp_term: on("arp-term", false)?,
        arp_ufwd: on("arp-ufwd", false)?,
    };
    bridges.open(number, switches, args.or("mac-age", 0)?)?;
    Ok(Output::none())
}

fn station(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let (number, address): (u32, IpAddr) = (args.get("domain")?, args.get("address")?);
    let mac = MacAddress(args.get("mac")?);
    if !mac.is_unicast() {
        return Err(args.refuse("mac", format!("no station can have {mac}")));
    }
    let bridges = bridges_mut(engine)?;
    let domain = bridges.domain_mut(number)?;
    if args.has("del") {
        if domain.stations.get(&address) != Some(&mac) {
            let what = format!("bridge domain {number} does not know {address} at {mac}");
            return Err(args
                .refuse("address", what)
                .remedy(format!("`show bridge-domain {number} arp` lists what it does")));
        }
        Arc::make_mut(&mut domain.stations).remove(&address);
    } else {
        if domain.stations.len() >= STATIONS_MAX && !domain.stations.contains_key(&address) {
            let refusal = Refusal::new(format!(
                "bridge domain {number} answers for {STATIONS_MAX} addresses already"
            ));
            return Err(refusal.remedy("remove some"));
        }
        Arc::make_mut(&mut domain.stations).insert(address, mac);
    }
    bridges.publish(number);
    Ok(Output::none())
}

/// The limits of `show running-config`: when all is there that a limit would stop.
pub(crate) fn write_limits(engine: &Engine, config: &mut ConfigWriter) {
    let Some(bridges) = engine.get::<Bridges>() else { return };
    if bridges.macs.entries_max() < MAC_ENTRIES_MAX {
        config.command(format_args!("set l2fib entries-max {}", bridges.macs.entries_max()));
    }
    if bridges.events.kept_max() != EVENTS_KEPT {
        config.command(format_args!("set l2fib events {}", bridges.events.kept_max()));
    }
    if bridges.macs.learn_limit() < bridges.macs.entries_max() {
        config.command(format_args!("set l2 learn limit {}", bridges.macs.learn_limit()));
    }
}

/// What one or two commands of the configuration make.
#[derive(Clone, Copy)]
pub(crate) enum Configured {
    Room,
    Domain(u32),
    Station(u32, IpAddr),
}

/// All that is configured of bridge domains, in the order in which it is written.
pub(crate) fn configured(engine: &Engine) -> Vec<Configured> {
    let mut all = vec![Configured::Room];
    for (number, domain) in engine.get::<Bridges>().into_iter().flat_map(Bridges::domains) {
        all.push(Configured::Domain(*number));
        all.extend(domain.stations.keys().map(|address| Configured::Station(*number, *address)));
    }
    all
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter, part: Configured) {
    let Some(bridges) = engine.get::<Bridges>() else { return };
    match part {
        // More room comes before what needs it, less room (`write_limits`) behind what is there.
        Configured::Room if bridges.macs.entries_max() > MAC_ENTRIES_MAX => {
            config.command(format_args!("set l2fib entries-max {}", bridges.macs.entries_max()));
        }
        Configured::Room => {}
        Configured::Domain(number) => {
            if let Some(domain) = bridges.domains().get(&number) {
                write_domain(config, number, domain);
            }
        }
        Configured::Station(number, address) => {
            let domain = bridges.domains().get(&number);
            if let Some(mac) = domain.and_then(|domain| domain.stations.get(&address)) {
                config
                    .command(format_args!("set bridge-domain arp entry {number} {address} {mac}"));
            }
        }
    }
}

fn write_domain(config: &mut ConfigWriter, number: u32, domain: &BridgeDomain) {
    let (on, age) = (domain.switches, domain.mac_age_minutes);
    config.command(format_args!(
        "create bridge-domain {number} learn {} forward {} flood {} uu-flood {} arp-term {} \
         arp-ufwd {} mac-age {age}",
        u8::from(on.learn),
        u8::from(on.forward),
        u8::from(on.flood),
        u8::from(on.uu_flood),
        u8::from(on.arp_term),
        u8::from(on.arp_ufwd),
    ));
    if let Some(limit) = domain.learn_limit {
        config.command(format_args!("set bridge-domain learn-limit {number} {limit}"));
    }
}

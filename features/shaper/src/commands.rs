//! Commands that configure shapers.

use quiver_control::{
    Args, Command, ConfigWriter, IpPrefix as Written, Output, Refusal, Registry, order, quoted,
};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;
use quiver_shaping::settings::{Diffserv, FRAME_BYTES, PACKETS_DEFAULT_MAX, Plan};

use crate::config::{self, Named, Shapers};
use crate::tables::Direction;

/// The group of the commands.
pub(crate) const GROUP: &str = "Quality of service";
/// The least and the most bits a second of a shaper.
const RATE_BPS: (u64, u64) = (8_000, 400_000_000_000);
const NS_PER_MS: u64 = 1_000_000;

pub(crate) fn register(registry: &mut Registry) {
    shapers(registry);
    outputs(registry);
}

fn shapers(registry: &mut Registry) {
    registry.command(
        Command::new(
            "shaper add name <name:word> {rate <rate:rate> [ceil <ceil:rate>] \
             [burst <burst:1-1073741824>] [parent <parent:word>] [overhead <overhead:0-256>] \
             [target <target:1-10000>] [interval <interval:2-60000>] [quantum <quantum:64-65535>] \
             [ecn <ecn:on|off>] [isolation <isolation:none|host>] \
             [diffserv <diffserv:besteffort|3|4>]}",
        )
        .entry(
            order::RESOURCES,
            "shapers.<name>: {rate, ceil, burst, parent, overhead, target, interval, quantum, ecn, \
             isolation, diffserv}",
        )
        .undo("shaper del name <name>")
        .replaces(&["name"])
        .makes("shaper <name>")
        .stands_on("shaper <parent>")
        .group(GROUP)
        .help("Make a shaper, or change one in place")
        .details(
            "What is above the rate waits, in a fair queue with CoDel for each flow (RFC 8289, RFC \
             8290). Siblings share their parent by their rates, up to their ceilings, and what one \
             does not use the others do. A shaper that exists gets the new values, and what waits \
             stays. A rate is in bits a second; bytes count from the destination address on, and \
             overhead is added to each packet. Interfaces and subscribers get a shaper by `shaper \
             output` and `shaper subscriber add`.",
        )
        .word("rate", "bits a second that it has for itself")
        .word("ceil", "bits a second that it never exceeds; its rate")
        .word("burst", "bytes that it may send at once; what 5 ms make, and two frames at least")
        .word("parent", "the shaper that it stands below: five levels at most")
        .word("overhead", "bytes that count in addition for each packet; 0")
        .word("target", "milliseconds that a flow may wait (RFC 8289 4.2); 5, more at low rates")
        .word("interval", "milliseconds through which it may wait longer; 100")
        .word("quantum", "bytes of a flow in a round (RFC 8290 5.2.4); 1514")
        .word("ecn", "mark packets that allow it in place of dropping (RFC 3168); on")
        .word("isolation", "host: hosts share before their flows do; none")
        .word("diffserv", "classes of traffic, voice first: 3 or 4; besteffort is one")
        .example("shaper add name home rate 20M")
        .example("shaper add name gold rate 50M ceil 100M parent site isolation host diffserv 4")
        .run(|engine: &mut Engine, args| {
            let (name, plan): (&str, Plan) = (args.get("name")?, plan(args)?);
            let warning = config::put(engine, name, plan, args.optional("parent")?)?;
            Ok(warning.map_or_else(Output::none, |text| Output::text(format!("warning: {text}"))))
        }),
    );
    registry.command(
        Command::new("shaper del name <name:word>")
            .group(GROUP)
            .help("Delete a shaper that nobody needs")
            .details("What waits in it is sent at once.")
            .example("shaper del name home")
            .run(|engine: &mut Engine, args| {
                config::delete(engine, args.get("name")?).map(|()| Output::none())
            }),
    );
}

fn outputs(registry: &mut Registry) {
    registry.command(
        Command::new("shaper output <shaper:word> <interface> [upload] [del]")
            .entry(order::FEATURES, "interfaces.<interface>.shaper: {name: <shaper>, upload}")
            .undo("shaper output <shaper> <interface> del")
            .replaces(&["interface"])
            .stands_on("shaper <shaper>")
            .group(GROUP)
            .help("Let a shaper shape what an interface sends, or no more")
            .details(
                "Packets to a subscriber's address have the subscriber's plan, all others the \
                 shaper. With upload the interface leads away from the subscribers: packets from \
                 their addresses have their upload plan. An interface has one shaper; several may \
                 have the same one and share it. What waits when a shaper is taken away goes on.",
            )
            .word("upload", "subscribers are known by the source address")
            .example("shaper output home e1")
            .example("shaper output home e1 del")
            .run(|engine: &mut Engine, args| {
                let on = args.interface(engine, "interface")?;
                let name: &str = args.get("shaper")?;
                let upload = args.has("upload");
                match args.has("del") {
                    true => config::detach(engine, on, name)?,
                    false => config::attach(engine, on, name, direction(upload))?,
                }
                Ok(Output::none())
            }),
    );
}

fn direction(is_upload: bool) -> Direction {
    if is_upload { Direction::Upload } else { Direction::Download }
}

fn rate(args: &Args<'_>, word: &str) -> Result<Option<u64>, Refusal> {
    let Some(given) = args.optional::<f64>(word)? else { return Ok(None) };
    let (least, most) = RATE_BPS;
    if given < least as f64 || given > most as f64 {
        let what = format!("a rate of a shaper is from {} to {}", words(least), words(most));
        return Err(args.refuse(word, what).remedy("bits a second: 20M is 20 Mbit/s"));
    }
    Ok(Some(given.round() as u64))
}

fn plan(args: &Args<'_>) -> Result<Plan, Refusal> {
    let rate_bps = rate(args, "rate")?.unwrap_or(RATE_BPS.0);
    let word = args.or("diffserv", "besteffort")?;
    let diffserv = Diffserv::ALL.iter().find(|(known, _)| *known == word);
    Ok(Plan {
        rate_bps,
        ceil_bps: rate(args, "ceil")?.unwrap_or(0),
        burst_bytes: args.or("burst", 0)?,
        overhead_bytes: args.or("overhead", 0_u32)? as i32,
        target_ns: args.or("target", 0)? * NS_PER_MS,
        interval_ns: args.or("interval", 0)? * NS_PER_MS,
        quantum_bytes: args.or("quantum", FRAME_BYTES)?,
        ecn: args.or("ecn", "on")? == "on",
        isolates_hosts: args.or("isolation", "none")? == "host",
        diffserv: diffserv.map_or(Diffserv::BestEffort, |(_, diffserv)| *diffserv),
        packets_max: PACKETS_DEFAULT_MAX,
    })
}

/// A rate as operators write it.
pub(crate) fn words(bps: u64) -> String {
    let units = [(1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")];
    let unit = units.iter().find(|(of, _)| bps.is_multiple_of(*of));
    unit.map_or_else(|| bps.to_string(), |(of, word)| format!("{}{word}", bps / of))
}

/// A prefix of a command, whose bits behind the length do not count.
pub(crate) fn prefixes(
    args: &Args<'_>,
    name: &str,
) -> Result<Vec<quiver_tables::prefix::IpPrefix>, Refusal> {
    let written: Vec<Written> = args.all(name)?;
    let prefix = |of: Written| quiver_tables::prefix::IpPrefix::new(of.address, of.length);
    Ok(written.into_iter().map(prefix).collect())
}

/// The names of all shapers, parents first.
pub(crate) fn names(engine: &Engine) -> Vec<String> {
    let Some(shapers) = engine.get::<Shapers>() else { return Vec::new() };
    let depth = |name: &String| {
        let above = |name: &&str| shapers.named.get(*name)?.parent.as_deref();
        std::iter::successors(Some(name.as_str()), above).count()
    };
    let mut names: Vec<String> = shapers.named.keys().cloned().collect();
    names.sort_by_cached_key(|name| (depth(name), name.clone()));
    names
}

/// `show running-config`: a shaper.
pub(crate) fn write_shaper(engine: &Engine, config: &mut ConfigWriter, name: String) {
    let known = engine.get::<Shapers>().and_then(|shapers| shapers.named.get(&name));
    let Some(Named { plan, parent, .. }) = known else { return };
    let mut line = format!("shaper add name {} rate {}", quoted(&name), words(plan.rate_bps));
    let mut say = |word: &str, value: String| line += &format!(" {word} {value}");
    if plan.ceil_bps > 0 {
        say("ceil", words(plan.ceil_bps));
    }
    if plan.burst_bytes > 0 {
        say("burst", plan.burst_bytes.to_string());
    }
    if let Some(parent) = parent {
        say("parent", quoted(parent).to_string());
    }
    if plan.overhead_bytes > 0 {
        say("overhead", plan.overhead_bytes.to_string());
    }
    for (word, ns) in [("target", plan.target_ns), ("interval", plan.interval_ns)] {
        if ns > 0 {
            say(word, (ns / NS_PER_MS).to_string());
        }
    }
    if plan.quantum_bytes != FRAME_BYTES {
        say("quantum", plan.quantum_bytes.to_string());
    }
    if !plan.ecn {
        say("ecn", "off".to_owned());
    }
    if plan.isolates_hosts {
        say("isolation", "host".to_owned());
    }
    if plan.diffserv != Diffserv::BestEffort {
        let known = Diffserv::ALL.iter().find(|(_, diffserv)| *diffserv == plan.diffserv);
        say("diffserv", known.map_or("besteffort", |(word, _)| word).to_owned());
    }
    config.command(format_args!("{line}"));
}

/// `show running-config`: the shaper of an interface.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let attached = engine.get::<Shapers>().and_then(|of| of.attached.get(&interface.id));
    if let Some((name, direction)) = attached {
        let upload = if *direction == Direction::Upload { " upload" } else { "" };
        let (name, on) = (quoted(name), &interface.name);
        config.command(format_args!("shaper output {name} {on}{upload}"));
    }
}

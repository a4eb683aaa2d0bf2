//! Commands.

use std::net::Ipv4Addr;

use quiver_control::{Args, Command, ConfigWriter, IpPrefix, Output, Refusal, Registry, order};
use quiver_core::Engine;

use crate::config::{self, Det44, Enabled};
use crate::slots::{Class, Ends, TIMEOUTS_S};

pub(crate) const GROUP: &str = "NAT";
const PLUGIN: &str = "det44 plugin";
/// The words of timeouts.
pub(crate) const TIMEOUTS: [(Class, &str); 4] = [
    (Class::Udp, "udp"),
    (Class::TcpEstablished, "tcp-established"),
    (Class::TcpTransitory, "tcp-transitory"),
    (Class::Icmp, "icmp"),
];

pub(crate) fn register(registry: &mut Registry) {
    plugin(registry);
    mappings(registry);
    interfaces(registry);
    timeouts(registry);
    sessions(registry);
}

fn plugin(registry: &mut Registry) {
    registry.command(
        Command::new("det44 plugin enable {[inside-vrf <:u32>] [outside-vrf <:u32>]}")
            .entry(order::ROUTES, "det44.plugin: {inside-vrf, outside-vrf}")
            .undo("det44 plugin disable")
            .makes(PLUGIN)
            .stands_on("table <inside-vrf>")
            .stands_on("table <outside-vrf>")
            .group(GROUP)
            .help("Enable DET44, deterministic NAT (RFC 7422)")
            .word("inside-vrf", "the table of the hosts inside; 0")
            .word("outside-vrf", "the table that translated packets are routed in; 0")
            .example("det44 plugin enable")
            .run(|engine: &mut Engine, args| {
                let wanted = Enabled {
                    inside_vrf: args.or("inside-vrf", 0)?,
                    outside_vrf: args.or("outside-vrf", 0)?,
                };
                config::enable(engine, wanted)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("det44 plugin disable")
            .group(GROUP)
            .help("End all sessions, forget the configuration of DET44, and give its memory back")
            .example("det44 plugin disable")
            .run(|engine: &mut Engine, _| {
                config::disable(engine)?;
                Ok(Output::none())
            }),
    );
}

fn mappings(registry: &mut Registry) {
    registry.command(
        Command::new("det44 add in <inside:prefix4> out <outside:prefix4> [del]")
            .entry(order::FEATURES, "det44.mappings.<inside>: <outside>")
            .undo("det44 add in <inside> out <outside> del")
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Give each address of a prefix a part of the ports of an outside address")
            .details(
                "The addresses of the inside prefix share those of the outside prefix, alike many \
                 behind each; ports from 1024 on are divided among them. Every session has a port \
                 of its host's part for itself. Memory is 16 bytes a port, taken as it is used. \
                 The router answers ARP for the outside addresses.",
            )
            .word("inside", "the prefix of the hosts")
            .word("outside", "the addresses that others see")
            .word("del", "delete the mapping; its sessions end")
            .example("det44 add in 10.0.0.0/18 out 192.0.2.0/30")
            .example("det44 add in 10.0.0.0/18 out 192.0.2.0/30 del")
            .run(|engine: &mut Engine, args| {
                let (inside, outside) = (prefix(args, "inside")?, prefix(args, "outside")?);
                match args.has("del") {
                    true => config::delete(engine, inside, outside)?,
                    false => config::add(engine, inside, outside)?,
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("det44 forward <address:ip4>")
            .group(GROUP)
            .help("Compute the outside address and the ports of a host inside")
            .example("det44 forward 10.0.0.2")
            .run(|engine: &mut Engine, args| {
                let inside: Ipv4Addr = args.get("address")?;
                config::with_enabled(engine, |_, det| {
                    let mut all = det.mappings.iter().map(|of| of.mapping);
                    let found = all.find(|mapping| mapping.is_inside(inside.into()));
                    let mapping = found.ok_or_else(|| nobody(inside))?;
                    let block = mapping.block(inside.into());
                    let last = u32::from(block.first) + block.ports.get() - 1;
                    Ok(Output::none()
                        .field("Outside", Ipv4Addr::from(block.address).to_string())
                        .field("First port", u64::from(block.first))
                        .field("Last port", u64::from(last)))
                })
            }),
    );
    registry.command(
        Command::new("det44 reverse <address:ip4> <port:0-65535>")
            .group(GROUP)
            .help("Compute which host inside has a port of an outside address")
            .example("det44 reverse 192.0.2.1 1054")
            .run(|engine: &mut Engine, args| {
                let (outside, port): (Ipv4Addr, u16) = (args.get("address")?, args.get("port")?);
                config::with_enabled(engine, |_, det| {
                    let mut all = det.mappings.iter().map(|of| of.mapping);
                    let found = all.find(|mapping| mapping.is_outside(outside.into()));
                    let mapping = found.ok_or_else(|| nobody(outside))?;
                    let host = mapping
                        .host(outside.into(), port)
                        .ok_or_else(|| args.refuse("port", format!("port {port} is no host's")))?;
                    Ok(Output::none().field("Inside", Ipv4Addr::from(host.0).to_string()))
                })
            }),
    );
}

fn nobody(address: Ipv4Addr) -> Refusal {
    Refusal::new(format!("{address} is in no mapping")).remedy("`show det44 mappings` lists them")
}

fn prefix(args: &Args<'_>, name: &'static str) -> Result<IpPrefix, Refusal> {
    let prefix: IpPrefix = args.get(name)?;
    if prefix.has_host_bits() {
        let what = format!("{prefix} has bits set behind its length");
        return Err(args.refuse(name, what).remedy(format!("{} would be right", prefix.network())));
    }
    let first = prefix.network().address;
    let is_host = match first {
        std::net::IpAddr::V4(first) => {
            prefix.length > 0 && !first.is_multicast() && first.octets()[0] != 0
        }
        std::net::IpAddr::V6(_) => false,
    };
    if !is_host {
        return Err(args.refuse(name, format!("{prefix} has addresses that are no host's")));
    }
    Ok(prefix)
}

fn interfaces(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set interface det44 {[inside <inside:interface>] [outside <outside:interface>]} [del]",
        )
        .entry(order::FEATURES, "det44.interfaces[]: {inside, outside}")
        .undo("set interface det44 [inside <inside>] [outside <outside>] del")
        .stands_on(PLUGIN)
        .group(GROUP)
        .help("Say which interfaces are inside and which are outside")
        .details(
            "Packets that an inside interface receives are translated when they are routed out \
             of an outside interface. Fragments are held until the first of their packet has come \
             (virtual reassembly).",
        )
        .example("set interface det44 inside e0 outside e1")
        .example("set interface det44 outside e1 del")
        .run(set_interfaces),
    );
}

fn set_interfaces(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let on = !args.has("del");
    let inside = args.optional_interface(engine, "inside")?;
    let outside = args.optional_interface(engine, "outside")?;
    if inside.is_none() && outside.is_none() {
        return Err(Refusal::new("no interface is named")
            .remedy("set interface det44 inside e0 outside e1"));
    }
    if let Some(id) = inside {
        config::change_sides(engine, id, |sides| sides.inside = on)?;
    }
    if let Some(id) = outside
        && let Err(error) = config::change_sides(engine, id, |sides| sides.outside = on)
    {
        if let Some(id) = inside {
            config::change_sides(engine, id, |sides| sides.inside = !on)?;
        }
        return Err(error);
    }
    Ok(Output::none())
}

fn timeouts(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set det44 timeouts {[udp <:1-604800>] [tcp-established <:1-604800>] \
             [tcp-transitory <:1-604800>] [icmp <:1-604800>] [reset]}",
        )
        .entry(order::LIMITS, "det44.timeouts: {udp, tcp-established, tcp-transitory, icmp}")
        .undo("set det44 timeouts reset")
        .group(GROUP)
        .help("Set how many seconds DET44's sessions last without packets")
        .word("reset", "all as they are at first: 300, 7440, 240 and 60 seconds")
        .example("set det44 timeouts udp 120 icmp 30")
        .example("set det44 timeouts reset")
        .run(|engine: &mut Engine, args| {
            for (class, word) in TIMEOUTS {
                let first = args.has("reset").then_some(TIMEOUTS_S[class as usize]);
                let seconds = args.optional(word)?.or(first);
                if let (Some(seconds), Some(det)) = (seconds, engine.get::<Det44>()) {
                    det.shared.timeouts.set(class, seconds);
                }
            }
            Ok(Output::none())
        }),
    );
}

fn sessions(registry: &mut Registry) {
    registry.command(
        Command::new(
            "det44 close session in|out <address:ip4> <port:0-65535> <remote:ip4> \
             <remote-port:0-65535>",
        )
        .group(GROUP)
        .help("End the sessions of a host's port inside, or of an outside port, with a far end")
        .details("Of ICMP, the port is the identifier, and the far end's is 0.")
        .example("det44 close session in 10.0.0.3 4000 203.0.113.1 80")
        .run(close_session),
    );
}

fn close_session(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let (address, port): (Ipv4Addr, u16) = (args.get("address")?, args.get("port")?);
    let remote: Ipv4Addr = args.get("remote")?;
    let far = (u32::from(remote), args.get("remote-port")?);
    let now_s = (engine.now_ns() / 1_000_000_000) as u32;
    config::with_enabled(engine, |_, det| {
        let mappings = || det.mappings.iter().map(|of| of.mapping);
        let places = match args.has("in") {
            true => {
                let found = mappings().find(|mapping| mapping.is_inside(address.into()));
                let block = found.ok_or_else(|| nobody(address))?.block(address.into());
                block.slot..block.slot + block.ports.get() as usize
            }
            false => {
                let found = mappings().find(|mapping| mapping.is_outside(address.into()));
                let place = found.ok_or_else(|| nobody(address))?.host(address.into(), port);
                place.map_or(0..0, |(_, place)| place..place + 1)
            }
        };
        let mut closed = 0;
        if let Some(slots) = det.shared.slots() {
            for place in places {
                let (Ends { remote, remote_port, inside_port }, life) = slots.get(place);
                let is_near = !args.has("in") || inside_port == port;
                let is_its = is_near && (remote, remote_port) == far;
                if is_its && life.lives(&det.shared.timeouts, now_s) {
                    slots.end(place);
                    closed += 1;
                }
            }
        }
        match closed {
            0 => {
                Err(Refusal::new("there is no such session")
                    .remedy("`show det44 sessions` lists them"))
            }
            _ => Ok(Output::none()),
        }
    })
}

/// `show running-config`: what must be there before the rest.
pub(crate) fn write_plugin(engine: &Engine, config: &mut ConfigWriter) {
    let enabled = engine.get::<Det44>().and_then(|det| det.enabled);
    let Some(Enabled { inside_vrf, outside_vrf }) = enabled else { return };
    let vrf = |word: &str, id: u32| match id {
        0 => String::new(),
        id => format!(" {word} {id}"),
    };
    let (inside, outside) = (vrf("inside-vrf", inside_vrf), vrf("outside-vrf", outside_vrf));
    config.command(format_args!("det44 plugin enable{inside}{outside}"));
}

/// `show running-config`: the rest.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(det) = engine.get::<Det44>() else { return };
    for of in &det.mappings {
        config.command(format_args!("det44 add in {} out {}", of.inside, of.outside));
    }
    let name = |id: &quiver_core::InterfaceId| engine.interface_name(*id);
    let mut sides: Vec<_> = det.sides.iter().map(|(id, sides)| (name(id), *sides)).collect();
    sides.sort_by(|a, b| a.0.cmp(&b.0));
    for (interface, sides) in sides {
        if sides.inside {
            config.command(format_args!("set interface det44 inside {interface}"));
        }
        if sides.outside {
            config.command(format_args!("set interface det44 outside {interface}"));
        }
    }
}

/// `show running-config`: timeouts, which hold without DET44 being enabled.
pub(crate) fn write_timeouts(engine: &Engine, config: &mut ConfigWriter) {
    let Some(det) = engine.get::<Det44>() else { return };
    let words: Vec<String> = TIMEOUTS
        .into_iter()
        .map(|(class, word)| (class, word, det.shared.timeouts.get(class)))
        .filter(|(class, _, seconds)| *seconds != TIMEOUTS_S[*class as usize])
        .map(|(_, word, seconds)| format!("{word} {seconds}"))
        .collect();
    if !words.is_empty() {
        config.command(format_args!("set det44 timeouts {}", words.join(" ")));
    }
}

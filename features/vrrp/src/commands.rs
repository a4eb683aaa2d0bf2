//! The commands of VRRP.

use std::net::IpAddr;

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, modes, order};
use quiver_core::Engine;
use quiver_wire::vrrp::ADDRESSES_MAX;

use crate::config::{self, Entry, NewRouter, Tracked, Vrrp};
use crate::machine::Settings;
use crate::shared::VrKey;

/// Where the commands stand in the reference.
pub(crate) const GROUP: &str = "VRRP";
/// Priority of a virtual router without another one (RFC 9568 §6.1).
pub(crate) const PRIORITY: u8 = 100;
/// Interval of advertisements without another one, hundredths of a second (§6.1).
pub(crate) const INTERVAL_CS: u16 = 100;

pub(crate) fn register(registry: &mut Registry) {
    register_routers(registry);
    register_tracked_sessions(registry);
    registry.command(
        Command::new("vrrp proto <action:start|stop> <interface> vr_id <:1-255> [ipv6]")
            .entry(
                order::FEATURES,
                "interfaces.<interface>.vrrp.<vr_id>.started: true with action=start",
            )
            .entry(
                order::FEATURES,
                "interfaces.<interface>.vrrp6.<vr_id>.started: true with action=start ipv6",
            )
            .undo("vrrp proto stop <interface> vr_id <vr_id> [ipv6]")
            .stands_on("VRRP <interface> <vr_id> [ipv6]")
            .group(GROUP)
            .help("Start a virtual router, or stop it")
            .example("vrrp proto start e0 vr_id 7")
            .run(|engine: &mut Engine, args| {
                let key = key(engine, args)?;
                config::start(engine, key, args.get::<&str>("action")? == "start")?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("vrrp peers <interface> vr_id <:1-255> [ipv6] <peer:ip>...")
            .entry(order::FEATURES, "interfaces.<interface>.vrrp.<vr_id>.peers: <peer>...")
            .entry(
                order::FEATURES,
                "interfaces.<interface>.vrrp6.<vr_id>.peers: <peer>... with ipv6",
            )
            .goes_with("VRRP <interface> <vr_id> [ipv6]")
            .replaces(&["interface", "vr_id", "ipv6"])
            .stands_on("VRRP <interface> <vr_id> [ipv6]")
            .group(GROUP)
            .help("Set whom a virtual router with `unicast` advertises to")
            .example("vrrp peers e0 vr_id 7 192.0.2.3")
            .run(|engine: &mut Engine, args| {
                let key = key(engine, args)?;
                let peers: Vec<IpAddr> = args.all("peer")?;
                check_family(args, "peer", key, &peers)?;
                config::set_peers(engine, key, peers)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new(
            "vrrp vr track-if add <interface> {vr_id <:1-255> [ipv6] track-interface \
             <track-interface:interface> priority <:1-254>}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.vrrp.<vr_id>.track-interfaces.<track-interface>: <priority>",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.vrrp6.<vr_id>.track-interfaces.<track-interface>: <priority> \
             with ipv6",
        )
        .undo(
            "vrrp vr track-if del <interface> vr_id <vr_id> [ipv6] \
             track-interface <track-interface>",
        )
        .stands_on("VRRP <interface> <vr_id> [ipv6]")
        .group(GROUP)
        .help("Let another interface take priority from a virtual router while it is down")
        .example("vrrp vr track-if add e0 vr_id 7 track-interface e1 priority 50")
        .run(|engine: &mut Engine, args| {
            let (key, tracked) = (key(engine, args)?, args.interface(engine, "track-interface")?);
            let priority: u8 = args.get("priority")?;
            config::track(engine, key, Tracked::Interface(tracked), Some(priority))?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "vrrp vr track-if del <interface> {vr_id <:1-255> [ipv6] track-interface \
             <track-interface:interface>}",
        )
        .group(GROUP)
        .help("Track an interface no more")
        .run(|engine: &mut Engine, args| {
            let (key, tracked) = (key(engine, args)?, args.interface(engine, "track-interface")?);
            config::track(engine, key, Tracked::Interface(tracked), None)?;
            Ok(Output::none())
        }),
    );
}

fn register_tracked_sessions(registry: &mut Registry) {
    registry.command(
        Command::new(
            "vrrp vr track-bfd add <interface> {vr_id <:1-255> [ipv6] [track-interface \
             <track-interface:interface>] peer-addr <:ip> priority <:1-254>}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.vrrp.<vr_id>.track-bfd[]: {peer: <peer-addr>, interface: \
             <track-interface>, priority}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.vrrp6.<vr_id>.track-bfd[]: {peer: <peer-addr>, interface: \
             <track-interface>, priority} with ipv6",
        )
        .undo(
            "vrrp vr track-bfd del <interface> vr_id <vr_id> [ipv6] \
             [track-interface <track-interface>] peer-addr <peer-addr>",
        )
        .stands_on("VRRP <interface> <vr_id> [ipv6]")
        .group(GROUP)
        .help("Let a BFD session take priority from a virtual router while it is down")
        .details(
            "The session is the one with this peer on the interface, or over several hops \
             without one. A session that is not there, or that either end has taken down, takes \
             nothing.",
        )
        .example(
            "vrrp vr track-bfd add e0 vr_id 7 track-interface e1 peer-addr 192.0.2.2 priority 50",
        )
        .run(|engine: &mut Engine, args| {
            let (key, tracked) = (key(engine, args)?, tracked_peer(engine, args)?);
            config::track(engine, key, tracked, Some(args.get("priority")?))?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "vrrp vr track-bfd del <interface> {vr_id <:1-255> [ipv6] [track-interface \
             <track-interface:interface>] peer-addr <:ip>}",
        )
        .group(GROUP)
        .help("Track a BFD session no more")
        .run(|engine: &mut Engine, args| {
            let (key, tracked) = (key(engine, args)?, tracked_peer(engine, args)?);
            config::track(engine, key, tracked, None)?;
            Ok(Output::none())
        }),
    );
}

fn tracked_peer(engine: &Engine, args: &Args<'_>) -> Result<Tracked, Refusal> {
    let interface = args.optional_interface(engine, "track-interface")?;
    Ok(Tracked::Peer((interface, args.get("peer-addr")?)))
}

fn register_routers(registry: &mut Registry) {
    registry.command(
        Command::new(
            "vrrp vr add <interface> {vr_id <:1-255> [priority <:1-255>] [interval <:1-4095>] \
             [no_preempt] [accept_mode] [unicast] [ipv6]} <address:ip>...",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.vrrp.<vr_id>: {addresses: <address>..., priority, interval, \
             preempt: <?no_preempt>, accept-mode: <accept_mode?>, unicast}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.vrrp6.<vr_id>: {addresses: <address>..., priority, interval, \
             preempt: <?no_preempt>, accept-mode: <accept_mode?>, unicast} with ipv6",
        )
        .undo("vrrp vr del <interface> vr_id <vr_id> [ipv6]")
        .makes("VRRP <interface> <vr_id> [ipv6]")
        .group(GROUP)
        .help("Add a virtual router, which is not started")
        .details(
            "The router with the highest priority forwards for the virtual router, and answers \
             ARP and neighbour discovery for its addresses with the virtual MAC address. A \
             priority of 255 says that the addresses are the interface's own. With accept_mode \
             packets to the addresses are taken; otherwise they are dropped. The first IPv6 \
             address must be link-local (RFC 9568 §5.2.9).",
        )
        .word("interval", "hundredths of a second from one advertisement to the next")
        .word("no_preempt", "do not take over from an active router with a lower priority")
        .word("unicast", "advertise to the peers of `vrrp peers`, not to the group")
        .example("vrrp vr add e0 vr_id 7 priority 200 interval 50 192.0.2.254")
        .run(add),
    );
    registry.command(
        Command::new("vrrp vr del <interface> vr_id <:1-255> [ipv6]")
            .group(GROUP)
            .help("Delete a virtual router; if it is the active one, it says that it ceases")
            .run(|engine: &mut Engine, args| {
                let key = key(engine, args)?;
                config::delete(engine, key)?;
                Ok(Output::none())
            }),
    );
}

fn key(engine: &Engine, args: &Args<'_>) -> Result<VrKey, Refusal> {
    Ok(VrKey {
        interface: args.interface(engine, "interface")?,
        vr_id: args.get("vr_id")?,
        is_ip6: args.has("ipv6"),
    })
}

fn check_family(
    args: &Args<'_>,
    name: &str,
    key: VrKey,
    addresses: &[IpAddr],
) -> Result<(), Refusal> {
    let family = if key.is_ip6 { "IPv6" } else { "IPv4" };
    let is_bad = |ip: &&IpAddr| {
        ip.is_ipv6() != key.is_ip6 || ip.is_multicast() || ip.is_unspecified() || ip.is_loopback()
    };
    if let Some(bad) = addresses.iter().find(is_bad) {
        return Err(args
            .refuse(name, format!("{bad} is no {family} address of a host"))
            .remedy("`ipv6` says that a virtual router is IPv6's"));
    }
    if addresses.len() > ADDRESSES_MAX {
        let what = format!("{} addresses, at most {ADDRESSES_MAX}", addresses.len());
        return Err(args.refuse(name, what));
    }
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(args.refuse(name, format!("{} is there twice", twice[0]))),
        None => Ok(()),
    }
}

fn add(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let key = key(engine, args)?;
    modes::check_frames(engine, key.interface)?;
    let addresses: Vec<IpAddr> = args.all("address")?;
    check_family(args, "address", key, &addresses)?;
    if let Some(IpAddr::V6(first)) = addresses.first()
        && !first.is_unicast_link_local()
    {
        return Err(args
            .refuse("address", format!("{first} is not link-local, which the first one must be"))
            .remedy("begin with a link-local address such as fe80::1"));
    }
    let settings = Settings {
        vr_id: key.vr_id,
        priority: args.or("priority", PRIORITY)?,
        interval_cs: args.or("interval", INTERVAL_CS)?,
        preempts: !args.has("no_preempt"),
    };
    let (accepts, is_unicast) = (args.has("accept_mode"), args.has("unicast"));
    config::add(engine, NewRouter { key, settings, accepts, is_unicast, addresses })?;
    Ok(Output::none())
}

/// A virtual router in the words of commands.
fn words(engine: &Engine, key: VrKey) -> String {
    let family = if key.is_ip6 { " ipv6" } else { "" };
    format!("{} vr_id {}{family}", engine.interface_name(key.interface), key.vr_id)
}

fn joined(addresses: &[IpAddr]) -> String {
    addresses.iter().map(|address| format!(" {address}")).collect()
}

/// `show running-config`: virtual routers, in the order of their interfaces' names.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(vrrp) = engine.get::<Vrrp>() else { return };
    let mut routers: Vec<(String, VrKey, &Entry)> = vrrp
        .routers
        .iter()
        .map(|(key, entry)| (engine.interface_name(key.interface), *key, entry))
        .collect();
    routers.sort_by(|a, b| (&a.0, a.1.vr_id, a.1.is_ip6).cmp(&(&b.0, b.1.vr_id, b.1.is_ip6)));
    for (_, key, entry) in routers {
        write_router(engine, config, key, entry);
    }
}

fn write_router(engine: &Engine, config: &mut ConfigWriter, key: VrKey, entry: &Entry) {
    let words = words(engine, key);
    let NewRouter { settings, accepts, is_unicast, addresses, .. } = &entry.new;
    let mut more = String::new();
    if settings.priority != PRIORITY {
        more += &format!(" priority {}", settings.priority);
    }
    if settings.interval_cs != INTERVAL_CS {
        more += &format!(" interval {}", settings.interval_cs);
    }
    for (word, is_set) in
        [("no_preempt", !settings.preempts), ("accept_mode", *accepts), ("unicast", *is_unicast)]
    {
        if is_set {
            more += &format!(" {word}");
        }
    }
    config.command(format_args!("vrrp vr add {words}{more}{}", joined(addresses)));
    if !entry.peers.is_empty() {
        config.command(format_args!("vrrp peers {words}{}", joined(&entry.peers)));
    }
    let mut tracks: Vec<String> = entry
        .tracks
        .iter()
        .map(|(tracked, priority)| match tracked {
            Tracked::Interface(id) => {
                let name = engine.interface_name(*id);
                format!("track-if add {words} track-interface {name} priority {priority}")
            }
            Tracked::Peer((interface, peer)) => {
                let on = interface.map_or_else(String::new, |id| {
                    format!(" track-interface {}", engine.interface_name(id))
                });
                format!("track-bfd add {words}{on} peer-addr {peer} priority {priority}")
            }
        })
        .collect();
    tracks.sort_unstable();
    for track in tracks {
        config.command(format_args!("vrrp vr {track}"));
    }
    if entry.is_started {
        config.command(format_args!("vrrp proto start {words}"));
    }
}

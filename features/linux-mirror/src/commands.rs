//! `lcp create`, `lcp delete` and the settings of the mirror.

use std::net::{IpAddr, SocketAddr};

use quiver_control::{
    Args, Command, ConfigWriter, Output, Refusal, Registry, Work, by_interface_name, in_background,
    order, quoted,
};
use quiver_core::{Engine, InterfaceId};
use quiver_linux::{TapKind, TapMaker};

use crate::auto_subint;
use crate::classes::{Class, Limit};
use crate::evpn::{self, EvpnWish};
use crate::mirror::{Mirror, Namespace, mirror};
use crate::pairs::{self, PairWish};
use crate::reader::{BUFFER_BYTES, Order};
use crate::twins::Crossing;
use crate::vlan_links;

/// The group of the commands.
pub(crate) const GROUP: &str = "Linux mirror";
/// Where FRR connects unless told otherwise.
const FPM_PORT: u16 = 2620;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "lcp create <interface> host-if <name:word> {[netns <namespace:path>] [tap-id \
             <:0-65535>] [tun]}",
        )
        .entry(
            order::TABLES,
            "interfaces.<interface>.lcp: <name> / {host-if: <name>, netns: <namespace>, tap-id, \
             tun}",
        )
        .undo("lcp delete <interface>")
        .group(GROUP)
        .help("Give an interface a twin in Linux")
        .details(
            "The twin is a network device of Linux with the MAC address, MTU and state of the \
             interface. What Linux sends on it leaves by the interface. Packets for the router \
             that nothing in it speaks (BGP, OSPF, IS-IS, SSH) arrive there. Addresses, state, \
             MTU, neighbours and routes that Linux has for it are taken over. The commands \
             need CAP_NET_ADMIN, and for another namespace CAP_SYS_ADMIN. With tun the twin of a \
             point-to-point tunnel (GRE, IPIP, 6in4) is a layer 3 device: packets cross it \
             without a link-layer header.",
        )
        .word("host-if", "what Linux calls the twin")
        .word("netns", "a name of `ip netns`, or a path; that of `lcp default netns` unless given")
        .word("tap-id", "the number in the name of the router's end, tapN; a free one unless given")
        .word("tun", "a layer 3 device, for an interface without an Ethernet address")
        .example("lcp create tap0 host-if uplink")
        .example("lcp create gre0 host-if gre0 tun")
        .run_or_begin(create),
    );
    registry.command(
        Command::new("lcp delete <interface>")
            .group(GROUP)
            .help("Delete the twin of an interface, and the routes by it")
            .example("lcp delete tap0")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                pairs::delete(engine, id).map(|()| Output::none())
            }),
    );
    registry.command(
        Command::new(
            "lcp evpn <interface> host-if <name:word> {[netns <namespace:path>] [bvi <routed:\
             interface>]}",
        )
        .entry(
            order::TABLES,
            "interfaces.<interface>.lcp-evpn: <name> / {host-if: <name>, netns: <namespace>, bvi: \
             <routed>}",
        )
        .undo("lcp evpn del <interface>")
        .group(GROUP)
        .help("Let FRR in Linux say what is behind the far ends of a VXLAN interface (EVPN)")
        .details(
            "Linux gets a VXLAN device of this name with the VNI, and a bridge NAME-b that it \
                 is a port of. FRR with `advertise-all-vni` finds the VNI there. Far ends that it \
                 writes to Linux's forwarding database are taken over, and stations that the \
                 bridge domain has learned are announced. The namespace must be one in which an \
                 interface has a twin. With `bvi` the bridge is the twin of that routed interface, \
                 as `lcp create` makes one: put it into a VRF device of Linux, and FRR takes and \
                 announces prefixes (type 5) for its VNI.",
        )
        .word("host-if", "what Linux calls the VXLAN device, at most 13 letters")
        .word("netns", "a name of `ip netns`, or a path; as for `lcp create`")
        .word("bvi", "the routed interface of the bridge domain, whose twin the bridge is")
        .example("lcp evpn vxlan_tunnel0 host-if vx100")
        .example("lcp evpn vxlan_tunnel1 host-if vx1000 bvi loop1")
        .run_or_begin(create_evpn),
    );
    registry.command(
        Command::new("lcp evpn del <interface>")
            .group(GROUP)
            .help("Take the links of a VXLAN interface out of Linux, and what FRR said there")
            .example("lcp evpn del vxlan_tunnel0")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                if evpn::end(engine, id) {
                    return Ok(Output::none());
                }
                let what = format!("{} has no links in Linux", engine.interface_name(id));
                Err(args.refuse("interface", what).remedy("`lcp evpn IF host-if NAME`"))
            }),
    );
    registry.command(
        Command::new("lcp default netns [<namespace:path>]")
            .entry(order::TABLES, "lcp.netns: <namespace>")
            .undo("lcp default netns")
            .replaces(&[])
            .group(GROUP)
            .help("Say in which network namespace twins are made; the router's without a name")
            .example("lcp default netns dataplane")
            .run(|engine: &mut Engine, args| {
                let namespace = namespace(args, "namespace")?;
                if let Some(mirror) = mirror(engine) {
                    mirror.default_namespace = namespace;
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("lcp lcp-sync on|off")
            .entry(order::TABLES, "lcp.sync: <on?off>")
            .undo("lcp lcp-sync on")
            .replaces(&[])
            .group(GROUP)
            .help(
                "Say whether Linux follows the router: state, MTU and addresses of interfaces, \
                 configured routes and neighbours",
            )
            .details("The other way round always holds: interfaces follow their twins.")
            .example("lcp lcp-sync off")
            .run(|engine: &mut Engine, args| {
                let on = args.has("on");
                if let Some(mirror) = mirror(engine) {
                    mirror.updates_linux = on;
                    mirror.address_changes = 0; // what has changed meanwhile is reported
                    mirror.own.compare_all();
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("lcp lcp-auto-subint on|off")
            .entry(order::TABLES, "lcp.auto-subint: <on?off>")
            .undo("lcp lcp-auto-subint off")
            .replaces(&[])
            .group(GROUP)
            .help("Say whether sub-interfaces of interfaces with twins get twins by themselves")
            .details(
                "A twin is called as that of the parent, with the number of the sub-interface \
                 behind it: e0.100. It goes with the sub-interface, and with the parent's twin. \
                 Sub-interfaces without exact-match have none. A VLAN that Linux makes on a twin \
                 becomes the twin of a sub-interface, which is made when there is none.",
            )
            .example("lcp lcp-auto-subint on")
            .run(|engine: &mut Engine, args| {
                let on = args.has("on");
                let Some(mirror) = mirror(engine) else { return Ok(Output::none()) };
                mirror.has_automatic_twins = on;
                let parents: Vec<InterfaceId> = mirror.pairs.keys().copied().collect();
                parents.into_iter().for_each(|id| auto_subint::twin_made(engine, id));
                vlan_links::fit_all(engine);
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("lcp netlink rx-buffer-size <size:65536-1073741824>")
            .entry(order::TABLES, "lcp.netlink-buffer-size: <size>")
            .undo("lcp netlink rx-buffer-size 268435456")
            .replaces(&[])
            .group(GROUP)
            .help("Say how many bytes of changes may wait in the kernel")
            .details(
                "It holds for namespaces that are followed from then on. Changes that do not \
                      fit are lost, and the router asks for all there is again.",
            )
            .example("lcp netlink rx-buffer-size 67108864")
            .run(|engine: &mut Engine, args| {
                let bytes = args.get("size")?;
                if let Some(mirror) = mirror(engine) {
                    mirror.buffer_bytes = bytes;
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new(
            "lcp punt class bfd|link|igp|vrrp|bgp|neighbor|dhcp|icmp|other \
             (rate <rate:0-100000000> [burst <burst:1-1000000>] | default)",
        )
        .entry(
            order::TABLES,
            "lcp.punt.<bfd|link|igp|vrrp|bgp|neighbor|dhcp|icmp|other>: {rate, burst}",
        )
        .undo(
            "lcp punt class [bfd] [link] [igp] [vrrp] [bgp] [neighbor] [dhcp] [icmp] [other] \
             default",
        )
        .replaces(&["bfd", "link", "igp", "vrrp", "bgp", "neighbor", "dhcp", "icmp", "other"])
        .group(GROUP)
        .help("Limit how many packets of a class a worker gives to Linux")
        .details(
            "What is flooded has its own limit, so that the other classes reach Linux. What is \
             more dies as `CLASS-policed`. A rate of 0 is no limit.",
        )
        .word("link", "LACP, LLDP and other protocols of a link")
        .word("igp", "OSPF, IS-IS, PIM, IGMP and MLD")
        .word("bgp", "BGP and LDP")
        .word("neighbor", "ARP and neighbour discovery")
        .word("other", "everything that is in no other class")
        .word("rate", "packets a second and worker")
        .word("burst", "packets at once; a tenth of the rate")
        .example("lcp punt class other rate 1000")
        .run(|engine: &mut Engine, args| {
            let class = Class::ALL.into_iter().find(|class| args.has(class.word()));
            if let (Some(class), Some(mirror)) = (class, mirror(engine)) {
                let limit = match args.optional::<u32>("rate")? {
                    Some(packets) => {
                        Limit { packets, burst: args.or("burst", (packets / 10).max(1))? }
                    }
                    None => Limit::of(class),
                };
                mirror.limits.set(class, limit);
            }
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("lcp fpm listen [<address:ip>] {[port <:1-65535>] [netns <namespace:path>]}")
            .entry(order::TABLES, "lcp.fpm[]: {address, port, netns: <namespace>}")
            .stays("daemons of that port are listened to until the router ends")
            .group(GROUP)
            .help("Take routes from a routing daemon that connects (FRR's dplane_fpm_nl)")
            .details(
                "Routes that a daemon sends stand before those that it puts into Linux. \
                      Anyone who can connect there gives this router routes: listen on a loopback \
                      address of a namespace whose programs are trusted. The router forwards on \
                      while a daemon is away, and sweeps what it has not sent again one second \
                      after it has said all.",
            )
            .word("address", "127.0.0.1 unless given")
            .word("port", "2620 unless given")
            .example("lcp fpm listen")
            .run(|engine: &mut Engine, args| {
                let address = args.or("address", IpAddr::from([127, 0, 0, 1]))?;
                let port = args.or("port", FPM_PORT)?;
                let namespace = namespace_or_default(engine, args)?;
                pairs::listen(engine, &namespace, SocketAddr::new(address, port))?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("lcp resync")
            .group(GROUP)
            .help("Ask Linux for all there is, and take over what differs")
            .details(
                "Nothing that is the same is touched. The router does it by itself when it \
                      has lost changes.",
            )
            .run(|engine: &mut Engine, _| {
                if let Some(mirror) = mirror(engine) {
                    let followed = mirror.followed.values();
                    followed.for_each(|followed| followed.kernel.reader.order(Order::Dump));
                }
                Ok(Output::none())
            }),
    );
}

/// A network namespace; confined clients name it as `ip netns` does.
fn namespace(args: &Args<'_>, word: &str) -> Result<Namespace, Refusal> {
    let Some(name) = args.optional::<&str>(word)? else { return Ok(None) };
    let name = args.access().bare_name(name).map(str::to_owned);
    name.map(Some).map_err(|what| args.refuse(word, what))
}

/// The namespace that a command names, or the one in which twins are made.
fn namespace_or_default(engine: &Engine, args: &Args<'_>) -> Result<Namespace, Refusal> {
    let default = engine.get::<Mirror>().and_then(|mirror| mirror.default_namespace.clone());
    Ok(namespace(args, "namespace")?.or(default))
}

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let wish = PairWish {
        id: args.interface(engine, "interface")?,
        host_name: args.get("name")?,
        namespace: namespace_or_default(engine, args)?,
        kind: if args.has("tun") { TapKind::Tun } else { TapKind::Tap },
        tap: args.optional("tap-id")?,
        tap_name: None,
        is_automatic: false,
    };
    let make = pairs::prepare(engine, &wish)?;
    in_background(make, |engine: &mut Engine, attach| {
        let twin = pairs::finish(engine, wish, attach)?;
        Ok(Output::text(engine.interface_name(twin)))
    })
}

fn create_evpn(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let wish = EvpnWish {
        id: args.interface(engine, "interface")?,
        host_name: args.get("name")?,
        namespace: namespace_or_default(engine, args)?,
    };
    let Some(routed) = args.optional_interface(engine, "routed")? else {
        return evpn::create(engine, wish).map(|()| Work::Done(Output::none()));
    };
    evpn::check(engine, &wish)?;
    let pair = wish.routed(routed);
    let make = pairs::prepare(engine, &pair)?;
    in_background(make, |engine: &mut Engine, attach| {
        let id = wish.id;
        evpn::create(engine, wish)?;
        let made = pairs::finish(engine, pair, attach).map(|_| Output::none());
        if made.is_err() {
            evpn::end(engine, id);
        }
        made
    })
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(mirror) = engine.get::<Mirror>() else { return };
    if let Some(namespace) = &mirror.default_namespace {
        config.command(format_args!("lcp default netns {}", quoted(namespace)));
    }
    if mirror.buffer_bytes != BUFFER_BYTES {
        let bytes = mirror.buffer_bytes;
        config.command(format_args!("lcp netlink rx-buffer-size {bytes}"));
    }
    if !mirror.updates_linux {
        config.command(format_args!("lcp lcp-sync off"));
    }
    if mirror.has_automatic_twins {
        config.command(format_args!("lcp lcp-auto-subint on"));
    }
    for class in Class::ALL {
        let limit = mirror.limits.get(class);
        if limit != Limit::of(class) {
            let (word, Limit { packets, burst }) = (class.word(), limit);
            let burst = burst.max(1);
            config.command(format_args!("lcp punt class {word} rate {packets} burst {burst}"));
        }
    }
    let mut pairs: Vec<(String, InterfaceId)> =
        mirror.pairs.keys().map(|id| (engine.interface_name(*id), *id)).collect();
    pairs.sort();
    for (name, id) in pairs {
        let pair = mirror.pairs.get(&id);
        let Some(pair) = pair.filter(|pair| !pair.is_automatic) else { continue };
        let mut line = format!("lcp create {name} host-if {}", quoted(&pair.host_name));
        if let Some(namespace) = &pair.namespace {
            line += &format!(" netns {}", quoted(namespace));
        }
        let tap = engine.get::<TapMaker>().and_then(|maker| (maker.id)(engine, pair.twin));
        if let Some(tap) = tap {
            line += &format!(" tap-id {tap}");
        }
        if matches!(pair.crossing, Crossing::Packets(_)) {
            line += " tun";
        }
        config.command(format_args!("{line}"));
    }
    for (id, twin) in by_interface_name(engine, mirror.evpn.iter().map(|(id, twin)| (*id, twin))) {
        let (name, host) = (engine.interface_name(id), quoted(&twin.host_name));
        let netns = twin.namespace.as_ref();
        let netns = netns.map_or_else(String::new, |netns| format!(" netns {}", quoted(netns)));
        let routed = twin.routed(mirror).map(|id| format!(" bvi {}", engine.interface_name(id)));
        let routed = routed.unwrap_or_default();
        config.command(format_args!("lcp evpn {name} host-if {host}{netns}{routed}"));
    }
    for (namespace, followed) in &mirror.followed {
        let Some((address, _)) = &followed.daemon else { continue };
        let mut line = format!("lcp fpm listen {} port {}", address.ip(), address.port());
        if let Some(namespace) = namespace {
            line += &format!(" netns {}", quoted(namespace));
        }
        config.command(format_args!("{line}"));
    }
}

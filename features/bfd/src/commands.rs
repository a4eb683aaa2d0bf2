//! The commands of BFD.

use std::net::{IpAddr, SocketAddr};

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order, quoted};
use quiver_core::Engine;
use quiver_wire::bfd::AuthType;

use crate::auth::{Key, type_name};
use crate::bond_commands;
use crate::config::{self, Bfd, Entry, NewSession, Origin, Signing, busy};
use crate::dplane::{self, Dplane, Endpoint};
use crate::follow;
use crate::session::{INTERVAL_US_MAX, INTERVAL_US_MIN, Settings};
use crate::shared::Ends;

/// Where the commands stand in the reference.
pub(crate) const GROUP: &str = "BFD";

const _: () = assert!(INTERVAL_US_MIN == 1_000 && INTERVAL_US_MAX == 60_000_000);

pub(crate) fn register(registry: &mut Registry) {
    register_sessions(registry);
    register_authentication(registry);
    register_dplane(registry);
    registry.command(
        Command::new("bfd udp echo-source set interface <interface>")
            .entry(order::FEATURES, "bfd.echo-source: <interface>")
            .undo("bfd udp echo-source del")
            .replaces(&[])
            .group(GROUP)
            .help("Watch paths by echo packets, which come from beside an address of an interface")
            .details(
                "Sessions over one hop send them while they are up and their peer takes them. The \
                 peer forwards them back as any packet, so the source must not be an address of \
                 the link: that would make it send ICMP redirects.",
            )
            .example("bfd udp echo-source set interface loop0")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                set_echo_source(engine, Some(id))
            }),
    );
    registry.command(
        Command::new("bfd udp echo-source del")
            .group(GROUP)
            .help("Send no echo packets any more")
            .example("bfd udp echo-source del")
            .run(|engine: &mut Engine, _| set_echo_source(engine, None)),
    );
}

fn set_echo_source(
    engine: &mut Engine,
    id: Option<quiver_core::InterfaceId>,
) -> Result<Output, Refusal> {
    engine.with(|engine, bfd: &mut Bfd| {
        bfd.echo_source = id;
        follow::refresh(engine, bfd, |_| true);
    });
    Ok(Output::none())
}

fn register_sessions(registry: &mut Registry) {
    registry.command(
        Command::new(
            "bfd udp session add {[interface <:interface>] [multihop] local-addr <:ip> peer-addr \
             <:ip> desired-min-tx <:1000-60000000> required-min-rx <:1000-60000000> detect-mult \
             <:1-255> [conf-key-id <:u32>] [bfd-key-id <:u8>]}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.bfd.<local-addr>.<peer-addr>: {desired-min-tx, \
             required-min-rx, detect-mult, conf-key-id, bfd-key-id}",
        )
        .entry(
            order::FEATURES,
            "bfd.multihop.<local-addr>.<peer-addr>: {desired-min-tx, required-min-rx, \
             detect-mult, conf-key-id, bfd-key-id} with multihop",
        )
        .undo(
            "bfd udp session del [interface <interface>] [multihop] \
             local-addr <local-addr> peer-addr <peer-addr>",
        )
        .makes("BFD [<interface>] <local-addr> <peer-addr>")
        .stands_on("BFD key <conf-key-id>")
        .group(GROUP)
        .help("Add a BFD session with a neighbour, or over several hops")
        .details(
            "Routes go through the neighbour only while the session is up, or while either end \
             has taken it down. Times are in microseconds. The local address must be one of the \
             interface's for the session to come up.",
        )
        .word("desired-min-tx", "the interval at which packets are sent, if the peer takes them")
        .word("required-min-rx", "the shortest interval at which the peer may send")
        .word("detect-mult", "the peer finds this router missing after so many intervals")
        .example(
            "bfd udp session add interface e0 local-addr 192.0.2.1 peer-addr 192.0.2.2 \
             desired-min-tx 100000 required-min-rx 100000 detect-mult 3",
        )
        .run(add),
    );
    registry.command(
        Command::new(
            "bfd udp session mod {[interface <:interface>] [multihop] local-addr <:ip> peer-addr \
             <:ip> desired-min-tx <:1000-60000000> required-min-rx <:1000-60000000> detect-mult \
             <:1-255>}",
        )
        .group(GROUP)
        .help("Set other intervals of a BFD session, which stays up")
        .run(|engine: &mut Engine, args| {
            let (ends, settings) = (own_ends(engine, args)?, settings(args)?);
            config::modify(engine, &ends, settings)?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "bfd udp session del {[interface <:interface>] [multihop] local-addr <:ip> peer-addr \
             <:ip>}",
        )
        .group(GROUP)
        .help("Delete a BFD session; the peer hears that it was taken down")
        .run(|engine: &mut Engine, args| {
            let ends = own_ends(engine, args)?;
            config::delete(engine, &ends)?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "bfd udp session set-flags {admin <state:up|down> [interface <:interface>] [multihop] \
             local-addr <:ip> peer-addr <:ip>}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.bfd.<local-addr>.<peer-addr>.admin: <state>",
        )
        .entry(
            order::FEATURES,
            "bfd.multihop.<local-addr>.<peer-addr>.admin: <state> with multihop",
        )
        .undo(
            "bfd udp session set-flags admin up [interface <interface>] [multihop] \
             local-addr <local-addr> peer-addr <peer-addr>",
        )
        .stands_on("BFD [<interface>] <local-addr> <peer-addr>")
        .group(GROUP)
        .help("Take a BFD session down, or let it come up")
        .details("A session that is taken down says nothing of the path: routes use it.")
        .run(|engine: &mut Engine, args| {
            let ends = own_ends(engine, args)?;
            config::set_admin(engine, &ends, args.get::<&str>("state")? == "up")?;
            Ok(Output::none())
        }),
    );
}

fn register_authentication(registry: &mut Registry) {
    registry.command(
        Command::new(
            "bfd udp session auth activate {[interface <:interface>] [multihop] local-addr <:ip> \
             peer-addr <:ip> conf-key-id <:u32> bfd-key-id <:u8> [delayed <delayed:yes|no>]}",
        )
        .group(GROUP)
        .help("Sign the packets of a BFD session with a key, and take only such packets")
        .details(
            "The session stays up when the peer does the same within the detection time. With \
             `delayed yes` it changes when the peer does.",
        )
        .run(|engine: &mut Engine, args| {
            let ends = own_ends(engine, args)?;
            let signing = signing(args)?;
            config::set_signing(engine, &ends, signing, is_delayed(args)?)?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "bfd udp session auth deactivate {[interface <:interface>] [multihop] local-addr \
             <:ip> peer-addr <:ip> [delayed <delayed:yes|no>]}",
        )
        .group(GROUP)
        .help("Sign the packets of a BFD session no more")
        .run(|engine: &mut Engine, args| {
            let ends = own_ends(engine, args)?;
            config::set_signing(engine, &ends, None, is_delayed(args)?)?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "bfd key set {conf-key-id <:u32> type <type:keyed-sha1|meticulous-keyed-sha1|\
             keyed-md5|meticulous-keyed-md5> secret <:secret>}",
        )
        .entry(order::FEATURES, "bfd.keys.<conf-key-id>: {type, secret}")
        .undo("bfd key del conf-key-id <conf-key-id>")
        .makes("BFD key <conf-key-id>")
        .group(GROUP)
        .help("Set a key that BFD packets are signed with")
        .word("secret", "hexadecimal digits: 1 to 20 bytes for SHA-1, 1 to 16 for MD5")
        .example("bfd key set conf-key-id 1 type meticulous-keyed-sha1 secret 0badc0de")
        .run(set_key),
    );
    registry.command(
        Command::new("bfd key del conf-key-id <:u32>")
            .group(GROUP)
            .help("Delete a key that no BFD session signs with")
            .run(|engine: &mut Engine, args| {
                config::delete_key(engine, args.get("conf-key-id")?)?;
                Ok(Output::none())
            }),
    );
}

fn register_dplane(registry: &mut Registry) {
    registry.command(
        Command::new(
            "bfd dplane listen [<address:ip>] {[port <:1-65535>] [netns <namespace:path>]}",
        )
        .entry(order::FEATURES, "bfd.dplane.listen: {address, port, netns: <namespace>}")
        .undo("bfd dplane close")
        .group(GROUP)
        .help("Have the BFD sessions of a routing daemon that connects (FRR's bfdd --dplaneaddr)")
        .details(
            "The daemon adds sessions and hears of their states; this router sends, receives and \
             misses peers for it. Anyone who can connect there gives this router sessions: listen \
             on a loopback address of a namespace whose programs are trusted. Sessions of a \
             daemon that is gone stay for ten seconds, in which it can come back.",
        )
        .word("address", "127.0.0.1 unless given")
        .word("port", "50700 unless given")
        .example("bfd dplane listen")
        .run(|engine: &mut Engine, args| {
            let (address, namespace) = tcp(args)?;
            dplane::listen(engine, Endpoint::Tcp { address, namespace })?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "bfd dplane connect [<address:ip>] {[port <:1-65535>] [netns <namespace:path>]}",
        )
        .entry(order::FEATURES, "bfd.dplane.connect: {address, port, netns: <namespace>}")
        .undo("bfd dplane close")
        .group(GROUP)
        .help("Have the BFD sessions of a routing daemon that listens (FRR's bfdd --dplaneaddr)")
        .details("The router connects, and looks once a second for a daemon that is not there.")
        .word("address", "a loopback address; 127.0.0.1 unless given")
        .word("port", "50700 unless given")
        .example("bfd dplane connect")
        .run(|engine: &mut Engine, args| {
            let (address, namespace) = tcp(args)?;
            if !address.ip().is_loopback() {
                return Err(args
                    .refuse("address", "not a loopback address")
                    .remedy("let the daemon connect: bfd dplane listen ADDRESS"));
            }
            dplane::listen(engine, Endpoint::Daemon { address, namespace })?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("bfd dplane listen unix <socket:path>")
            .entry(order::FEATURES, "bfd.dplane.listen-unix: <socket>")
            .undo("bfd dplane close")
            .group(GROUP)
            .help("Have the BFD sessions of a routing daemon that connects to a Unix socket")
            .details(
                "The socket's owner and group may connect: give it to the daemon's group. FRR 8.4 \
                 cannot connect: let it listen, and use `bfd dplane connect unix`.",
            )
            .word("socket", "the socket's path")
            .example("bfd dplane listen unix /run/quiver/bfd.sock")
            .run(|engine: &mut Engine, args| {
                let path = args.socket_path("socket")?.unwrap_or_default();
                dplane::listen(engine, Endpoint::Unix(path))?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("bfd dplane connect unix <socket:path>")
            .entry(order::FEATURES, "bfd.dplane.connect-unix: <socket>")
            .undo("bfd dplane close")
            .group(GROUP)
            .help("Have the BFD sessions of a routing daemon that listens at a Unix socket")
            .details("The router connects, and looks once a second for a daemon that is not there.")
            .word("socket", "the socket's path")
            .example("bfd dplane connect unix /run/frr/bfd-dplane.sock")
            .run(|engine: &mut Engine, args| {
                let path = args.socket_path("socket")?.unwrap_or_default();
                dplane::listen(engine, Endpoint::DaemonAt(path))?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("bfd dplane close")
            .group(GROUP)
            .help("Take no more sessions from a routing daemon, and delete those that it has")
            .run(|engine: &mut Engine, _| {
                dplane::close(engine)?;
                Ok(Output::none())
            }),
    );
}

/// The address and the namespace of a command for the data plane.
fn tcp(args: &Args<'_>) -> Result<(SocketAddr, Option<String>), Refusal> {
    let address = args.or("address", IpAddr::from([127, 0, 0, 1]))?;
    let port = args.or("port", dplane::PORT)?;
    let name = args.optional::<&str>("namespace")?;
    let namespace = name
        .map(|name| args.access().bare_name(name).map(str::to_owned))
        .transpose()
        .map_err(|what| args.refuse("namespace", what))?;
    Ok((SocketAddr::new(address, port), namespace))
}

fn is_delayed(args: &Args<'_>) -> Result<bool, Refusal> {
    Ok(args.optional::<&str>("delayed")? == Some("yes"))
}

/// The session that a command names and changes: not a routing daemon's.
fn own_ends(engine: &Engine, args: &Args<'_>) -> Result<Ends, Refusal> {
    let ends = ends(engine, args)?;
    match bfd(engine)?.sessions.get(&ends).map(|entry| entry.origin) {
        Some(Origin::Daemon) => Err(Refusal::new("the session is a routing daemon's")
            .remedy("change it there; `show bfd dplane` says where the daemon is")),
        _ => Ok(ends),
    }
}

/// The session that a command names.
fn ends(engine: &Engine, args: &Args<'_>) -> Result<Ends, Refusal> {
    let interface = args.optional_interface(engine, "interface")?;
    match (interface, args.has("multihop")) {
        (None, false) => {
            return Err(Refusal::new("a session has an interface, or goes over several hops")
                .remedy("interface IF, or multihop"));
        }
        (Some(_), true) => {
            return Err(args
                .refuse("multihop", "a session over several hops has no interface")
                .remedy("leave one of the two out"));
        }
        _ => {}
    }
    let (local, peer) = (args.get("local-addr")?, args.get("peer-addr")?);
    let ends = Ends { interface, is_member: false, local, peer };
    check_ends(args, &ends)?;
    Ok(ends)
}

/// Why a session cannot be between two addresses, if it cannot.
pub(crate) fn check_ends(args: &Args<'_>, ends: &Ends) -> Result<(), Refusal> {
    if ends.local.is_ipv4() != ends.peer.is_ipv4() {
        return Err(args.refuse("peer-addr", "the two addresses are of two families"));
    }
    let is_host =
        |ip: std::net::IpAddr| !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback();
    if !is_host(ends.local) || !is_host(ends.peer) || ends.local == ends.peer {
        return Err(args.refuse("peer-addr", "these are not the addresses of two hosts"));
    }
    Ok(())
}

pub(crate) fn settings(args: &Args<'_>) -> Result<Settings, Refusal> {
    Ok(Settings {
        desired_min_tx_us: args.get("desired-min-tx")?,
        required_min_rx_us: args.get("required-min-rx")?,
        detect_mult: args.get("detect-mult")?,
    })
}

pub(crate) fn signing(args: &Args<'_>) -> Result<Option<Signing>, Refusal> {
    match (args.optional("conf-key-id")?, args.optional("bfd-key-id")?) {
        (None, None) => Ok(None),
        (Some(conf_key_id), Some(bfd_key_id)) => Ok(Some(Signing { conf_key_id, bfd_key_id })),
        (Some(_), None) => Err(Refusal::new("the key has a number in packets, too")
            .remedy("give bfd-key-id N, the same as at the other end")),
        (None, Some(_)) => Err(Refusal::new("a number in packets needs a key")
            .remedy("give conf-key-id N; `show bfd keys` lists keys")),
    }
}

fn add(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let new = NewSession {
        ends: ends(engine, args)?,
        settings: settings(args)?,
        signing: signing(args)?,
        origin: Origin::Operator,
        discriminator: None,
        min_ttl: 0,
        bond: None,
    };
    config::add(engine, new)?;
    Ok(Output::none())
}

fn set_key(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let kind = match args.get::<&str>("type")? {
        "keyed-md5" => AuthType::KeyedMd5,
        "meticulous-keyed-md5" => AuthType::MeticulousMd5,
        "meticulous-keyed-sha1" => AuthType::MeticulousSha1,
        _ => AuthType::KeyedSha1,
    };
    let text = args.secret("secret")?.unwrap_or_default();
    let secret = from_hexadecimal(&text).and_then(|bytes| Key::new(kind, &bytes));
    let key = secret.ok_or_else(|| {
        let most = kind.digest_len();
        Refusal::new(format!("the secret is not 1 to {most} bytes in hexadecimal digits"))
            .remedy("two digits for each byte, such as 0badc0de")
    })?;
    config::set_key(engine, args.get("conf-key-id")?, key)?;
    Ok(Output::none())
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let pairs = digits.chunks(2).map(|pair| str::from_utf8(pair).ok());
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

fn to_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The ends of a session in the words of commands.
pub(crate) fn words(engine: &Engine, ends: &Ends) -> String {
    let on = match ends.interface {
        Some(id) => format!("interface {}", engine.interface_name(id)),
        None => "multihop".to_owned(),
    };
    format!("{on} local-addr {} peer-addr {}", ends.local, ends.peer)
}

/// `show running-config`: keys, the echo source, sessions.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(bfd) = engine.get::<Bfd>() else { return };
    for (id, key) in &bfd.keys {
        let secret = config.secret(&to_hexadecimal(key.secret()));
        let kind = type_name(key.kind);
        config.command(format_args!("bfd key set conf-key-id {id} type {kind} secret {secret}"));
    }
    if let Some(id) = bfd.echo_source {
        let name = engine.interface_name(id);
        config.command(format_args!("bfd udp echo-source set interface {name}"));
    }
    if let Some(status) = engine.get::<Dplane>().and_then(Dplane::status) {
        let tcp = |verb: &str, address: SocketAddr, namespace: Option<String>| {
            let (ip, port) = (address.ip(), address.port());
            let namespace = namespace.map(|name| format!(" netns {}", quoted(&name)));
            format!("bfd dplane {verb} {ip} port {port}{}", namespace.unwrap_or_default())
        };
        let line = match status.endpoint {
            Endpoint::Tcp { address, namespace } => tcp("listen", address, namespace),
            Endpoint::Daemon { address, namespace } => tcp("connect", address, namespace),
            Endpoint::Unix(path) => {
                format!("bfd dplane listen unix {}", quoted(&path.to_string_lossy()))
            }
            Endpoint::DaemonAt(path) => {
                format!("bfd dplane connect unix {}", quoted(&path.to_string_lossy()))
            }
        };
        config.command(format_args!("{line}"));
    }
    let own = bfd.sessions.iter().filter(|(_, entry)| entry.origin == Origin::Operator);
    let mut sessions: Vec<(String, &Entry)> =
        own.map(|(ends, entry)| (words(engine, ends), entry)).collect();
    sessions.sort_by(|a, b| a.0.cmp(&b.0));
    for (words, entry) in sessions {
        let Settings { desired_min_tx_us, required_min_rx_us, detect_mult } = entry.settings;
        let signing = entry.signing.map_or_else(String::new, |signing| {
            let Signing { conf_key_id, bfd_key_id } = signing;
            format!(" conf-key-id {conf_key_id} bfd-key-id {bfd_key_id}")
        });
        config.command(format_args!(
            "bfd udp session add {words} desired-min-tx {desired_min_tx_us} required-min-rx \
             {required_min_rx_us} detect-mult {detect_mult}{signing}"
        ));
        if !entry.is_admin_up {
            config.command(format_args!("bfd udp session set-flags {words} admin down"));
        }
    }
    bond_commands::write_config(engine, config, bfd);
}

/// BFD's state for a show.
pub(crate) fn bfd(engine: &Engine) -> Result<&Bfd, Refusal> {
    engine.get::<Bfd>().ok_or_else(busy)
}

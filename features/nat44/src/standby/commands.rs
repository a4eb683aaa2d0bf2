//! `nat44 ha …`, in the words of VPP.

use std::net::{IpAddr, SocketAddr};

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;

use crate::commands::{GROUP, PLUGIN};
use crate::standby::state::{self, Standby};

/// The longest IP packet when none is given: of Ethernet.
const PATH_MTU_DEFAULT: u16 = 1_500;
/// Seconds after which the peer hears of a refreshed session when none are given.
const REFRESH_DEFAULT_S: u32 = 10;
/// Bytes of the secret at most.
const SECRET_BYTES_MAX: usize = 64;

/// Register commands and shows.
pub(crate) fn register(registry: &mut Registry) {
    places(registry);
    key(registry);
    actions(registry);
    crate::standby::shows::register(registry);
}

fn places(registry: &mut Registry) {
    registry.command(
        Command::new(
            "nat44 ha listener (disable | <address:ip> port <port:1-65535> \
             [path-mtu <:512-9216>])",
        )
        .entry(order::FEATURES, "nat44.ha.listener: {address, port, path-mtu}")
        .undo("nat44 ha listener disable")
        .replaces(&[])
        .stands_on(PLUGIN)
        .group(GROUP)
        .help("Say where sessions of another router come to, which this one stands by for")
        .details(
            "Both routers have all three: a listener, a failover and the same key. Then each gives \
             the other its sessions, endpoint-independent mappings and port blocks, and takes \
             them over when packets come to it. The pool, mappings and options must be the same \
             on both: `show nat ha` says when they are not. Datagrams go by a socket of Linux, so \
             that the address is one that Linux has.",
        )
        .word("path-mtu", "IP packets to the other router are at most this long, bytes; 1500")
        .example("nat44 ha listener 192.0.2.1 port 4741")
        .run(|engine: &mut Engine, args| {
            let listener = match place(args)? {
                None => None,
                Some(place) => Some((place, args.or("path-mtu", PATH_MTU_DEFAULT)?)),
            };
            state::change(engine, |settings| settings.listener = listener)?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "nat44 ha failover (disable | <address:ip> port <port:1-65535> \
             [refresh-interval <:1-3600>])",
        )
        .entry(order::FEATURES, "nat44.ha.failover: {address, port, refresh-interval}")
        .undo("nat44 ha failover disable")
        .replaces(&[])
        .stands_on(PLUGIN)
        .group(GROUP)
        .help("Say which router takes over the sessions of this one: where its listener is")
        .word("refresh-interval", "seconds after which it hears that a session still lives; 10")
        .example("nat44 ha failover 192.0.2.2 port 4741")
        .run(|engine: &mut Engine, args| {
            let failover = match place(args)? {
                None => None,
                Some(place) => Some((place, args.or("refresh-interval", REFRESH_DEFAULT_S)?)),
            };
            state::change(engine, |settings| settings.failover = failover)?;
            Ok(Output::none())
        }),
    );
}

/// An address and a port; `None` with `disable`.
fn place(args: &Args<'_>) -> Result<Option<SocketAddr>, Refusal> {
    if args.has("disable") {
        return Ok(None);
    }
    let address: IpAddr = args.get("address")?;
    if address.is_unspecified() || address.is_multicast() {
        return Err(args.refuse("address", format!("{address} is no address of a router")));
    }
    Ok(Some(SocketAddr::new(address, args.get("port")?)))
}

fn key(registry: &mut Registry) {
    registry.command(
        Command::new("nat44 ha key (disable | secret <:secret>)")
            .entry(order::FEATURES, "nat44.ha.key: {secret}")
            .undo("nat44 ha key disable")
            .replaces(&[])
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Set the secret that both routers prove to have (HMAC-SHA-256)")
            .details("Datagrams without a code of this key are counted and change nothing.")
            .word("secret", "1 to 64 characters, the same on both")
            .example("nat44 ha key secret correct-horse")
            .run(|engine: &mut Engine, args| {
                let secret = args.secret("secret")?;
                let bytes = secret.as_ref().map_or(1, String::len);
                if bytes == 0 || bytes > SECRET_BYTES_MAX {
                    let what = format!("a secret of {bytes} bytes");
                    let remedy = format!("1 to {SECRET_BYTES_MAX}");
                    return Err(args.refuse("secret", what).remedy(remedy));
                }
                state::change(engine, |settings| settings.secret = secret)?;
                Ok(Output::none())
            }),
    );
}

fn actions(registry: &mut Registry) {
    registry.command(
        Command::new("nat44 ha resync")
            .group(GROUP)
            .help("Give the other router all sessions, mappings and port blocks, and get its own")
            .details(
                "This is done by itself when the link comes up and when changes were lost. \
                 `show nat ha` shows how far it is.",
            )
            .example("nat44 ha resync")
            .run(|engine: &mut Engine, _| {
                state::with_open(engine, state::Open::resync)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("nat44 ha flush")
            .group(GROUP)
            .help("Send the changes that wait for more to the other router")
            .details("They wait for one turn of the control loop at most, some milliseconds.")
            .example("nat44 ha flush")
            .run(|engine: &mut Engine, _| {
                let now_ns = engine.now_ns();
                state::with_open(engine, |open| open.flush(now_ns))?;
                Ok(Output::none())
            }),
    );
}

/// `show running-config`.
pub(crate) fn write(engine: &Engine, config: &mut ConfigWriter) {
    let Some(Standby { settings, .. }) = engine.get::<Standby>() else { return };
    if let Some((place, path_mtu)) = settings.listener {
        let option = match path_mtu {
            PATH_MTU_DEFAULT => String::new(),
            other => format!(" path-mtu {other}"),
        };
        let (address, port) = (place.ip(), place.port());
        config.command(format_args!("nat44 ha listener {address} port {port}{option}"));
    }
    if let Some((place, refresh_s)) = settings.failover {
        let option = match refresh_s {
            REFRESH_DEFAULT_S => String::new(),
            other => format!(" refresh-interval {other}"),
        };
        let (address, port) = (place.ip(), place.port());
        config.command(format_args!("nat44 ha failover {address} port {port}{option}"));
    }
    if let Some(secret) = &settings.secret {
        let secret = config.secret(secret);
        config.command(format_args!("nat44 ha key secret {secret}"));
    }
}

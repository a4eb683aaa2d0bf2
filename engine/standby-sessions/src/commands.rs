//! `nat44 ha …`, in the words of VPP, and the same of other translators.

use std::net::{IpAddr, SocketAddr};

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;

use crate::state::{self, Standby};
use crate::translator::Translator;

/// The longest IP packet when none is given: of Ethernet.
const PATH_MTU_DEFAULT: u16 = 1_500;
/// Seconds after which the peer hears of a refreshed session when none are given.
const REFRESH_DEFAULT_S: u32 = 10;
/// Bytes of the secret at most.
const SECRET_BYTES_MAX: usize = 64;

/// Register commands and shows.
pub(crate) fn register<T: Translator>(registry: &mut Registry) {
    places::<T>(registry);
    key::<T>(registry);
    actions::<T>(registry);
}

/// A command that has one value, by its syntax, place in the document, undo and example.
fn setting<T: Translator>([syntax, entry, undo, example]: [&'static str; 4]) -> Command<Engine> {
    Command::new(syntax)
        .entry(order::FEATURES, entry)
        .undo(undo)
        .replaces(&[])
        .stands_on(T::TEXTS.plugin)
        .group(T::TEXTS.group)
        .example(example)
}

fn places<T: Translator>(registry: &mut Registry) {
    registry.command(
        setting::<T>(T::TEXTS.listener)
        .help("Say where sessions of another router come to, which this one stands by for")
        .details(
            "Both routers have all three: a listener, a failover and the same key. Then each gives \
             the other its sessions, endpoint-independent mappings and port blocks, and takes \
             them over when packets come to it. The pool, mappings and options must be the same \
             on both: the show of the link says when they are not. Datagrams go by a socket of \
             Linux, so that the address is one that Linux has. Each translator has a link of its \
             own, with a port of its own.",
        )
        .word("path-mtu", "IP packets to the other router are at most this long, bytes; 1500")
        .run(|engine: &mut Engine, args| {
            let listener = match place(args)? {
                None => None,
                Some(place) => Some((place, args.or("path-mtu", PATH_MTU_DEFAULT)?)),
            };
            state::change::<T>(engine, |settings| settings.listener = listener)?;
            Ok(Output::none())
        }),
    );
    registry.command(
        setting::<T>(T::TEXTS.failover)
            .help("Say which router takes over the sessions of this one: where its listener is")
            .word("refresh-interval", "seconds after which it hears that a session still lives; 10")
            .run(|engine: &mut Engine, args| {
                let failover = match place(args)? {
                    None => None,
                    Some(place) => Some((place, args.or("refresh-interval", REFRESH_DEFAULT_S)?)),
                };
                state::change::<T>(engine, |settings| settings.failover = failover)?;
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

fn key<T: Translator>(registry: &mut Registry) {
    registry.command(
        setting::<T>(T::TEXTS.key)
            .help("Set the secret that both routers prove to have (HMAC-SHA-256)")
            .details("Datagrams without a code of this key are counted and change nothing.")
            .word("secret", "1 to 64 characters, the same on both")
            .run(|engine: &mut Engine, args| {
                let secret = args.secret("secret")?;
                let bytes = secret.as_ref().map_or(1, String::len);
                if bytes == 0 || bytes > SECRET_BYTES_MAX {
                    let what = format!("a secret of {bytes} bytes");
                    let remedy = format!("1 to {SECRET_BYTES_MAX}");
                    return Err(args.refuse("secret", what).remedy(remedy));
                }
                state::change::<T>(engine, |settings| settings.secret = secret)?;
                Ok(Output::none())
            }),
    );
}

fn actions<T: Translator>(registry: &mut Registry) {
    let [resync, flush] = T::TEXTS.actions;
    registry.command(
        Command::new(resync)
            .group(T::TEXTS.group)
            .help("Give the other router all sessions, mappings and port blocks, and get its own")
            .details(
                "This is done by itself when the link comes up and when changes were lost. \
                 The show of the link has how far it is.",
            )
            .example(resync)
            .run(|engine: &mut Engine, _| {
                state::with_open::<T>(engine, state::Open::resync)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new(flush)
            .group(T::TEXTS.group)
            .help("Send the changes that wait for more to the other router")
            .details("They wait for one turn of the control loop at most, some milliseconds.")
            .example(flush)
            .run(|engine: &mut Engine, _| {
                let now_ns = engine.now_ns();
                state::with_open::<T>(engine, |open| open.flush(now_ns))?;
                Ok(Output::none())
            }),
    );
}

/// `show running-config`.
pub(crate) fn write<T: Translator>(engine: &Engine, config: &mut ConfigWriter) {
    let Some(Standby { settings, .. }) = engine.get::<Standby<T>>() else { return };
    let word = T::TEXTS.word;
    if let Some((place, path_mtu)) = settings.listener {
        let option = match path_mtu {
            PATH_MTU_DEFAULT => String::new(),
            other => format!(" path-mtu {other}"),
        };
        let (address, port) = (place.ip(), place.port());
        config.command(format_args!("{word} listener {address} port {port}{option}"));
    }
    if let Some((place, refresh_s)) = settings.failover {
        let option = match refresh_s {
            REFRESH_DEFAULT_S => String::new(),
            other => format!(" refresh-interval {other}"),
        };
        let (address, port) = (place.ip(), place.port());
        config.command(format_args!("{word} failover {address} port {port}{option}"));
    }
    if let Some(secret) = &settings.secret {
        let secret = config.secret(secret);
        config.command(format_args!("{word} key secret {secret}"));
    }
}

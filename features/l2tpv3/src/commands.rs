//! The command that changes the cookies of a session.

use quiver_control::{Args, Command, Output, Refusal, Registry, with_interface_names};
use quiver_core::Engine;
use quiver_encap::tunnel::{self, AcceptedWords, Tunnels};

use crate::header::L2tpv3;
use crate::session::{Cookie, Session};

const ON_INTERFACE: AcceptedWords = AcceptedWords {
    command: "set interface ip6 l2tpv3",
    syntax: "set interface ip6 l2tpv3 <interface> [del]",
    undo: "set interface ip6 l2tpv3 <interface> del",
    entry: "interfaces.<interface>.l2tpv3-ip6: true",
    help: "Accept the words of VPP that let an interface take L2TPv3 packets over IPv6",
    example: "set interface ip6 l2tpv3 e0",
};

pub(crate) fn register(registry: &mut Registry) {
    tunnel::accept(registry, ON_INTERFACE);
    registry.command(
        Command::new(
            "set l2tpv3 tunnel cookie <interface> local <local:word> remote <remote:word>",
        )
        .group("Tunnels")
        .help("Change the cookies of an L2TPv3 tunnel, and take frames with the old one as well")
        .details(
            "The tunnel has the new cookies from then on, as if it had been created with them. \
             Frames with the local cookie that it had before are taken until the cookies are set \
             again, so that the other end can follow.",
        )
        .word("local", "of what is received, hexadecimal")
        .word("remote", "of what is sent, hexadecimal")
        .example("set l2tpv3 tunnel cookie l2tpv3_tunnel0 local 11 remote 21")
        .run(set_cookies),
    );
}

fn set_cookies(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = tunnel::tunnel_named::<L2tpv3>(engine, args)?;
    let tunnel = engine.get::<Tunnels<L2tpv3>>().and_then(|tunnels| tunnels.get(id));
    let Some(before) = tunnel.map(|tunnel| tunnel.config.extra) else { return Ok(Output::none()) };
    let size_bytes = before.local_cookie.size_bytes;
    let (local, remote) =
        (Cookie::read(args, "local", size_bytes)?, Cookie::read(args, "remote", size_bytes)?);
    let session = Session {
        local_cookie: local,
        previous: (local != before.local_cookie).then_some(before.local_cookie),
        remote_cookie: remote,
        ..before
    };
    tunnel::reconfigure::<L2tpv3>(engine, id, session)
        .map_err(|error| Refusal::new(with_interface_names(engine, error)))?;
    Ok(Output::none())
}

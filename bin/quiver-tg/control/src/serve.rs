//! `quiver-tg serve`: a generator that others control, by JSON-RPC over a Unix socket, loopback TCP
//! or standard input and output.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use serde_json::{Value as Json, json};

use crate::{Endpoints, Host, read};

/// How long the control loop waits for something to happen.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Serve until `shutdown`, a signal, or the end of standard input.
///
/// # Errors
/// When the profile cannot be loaded, or an endpoint cannot be bound.
pub fn serve(
    profile: Option<&Path>,
    core: Option<usize>,
    endpoints: &Endpoints,
) -> anyhow::Result<()> {
    let result = prepare(profile, core, endpoints);
    let mut host = match result {
        Ok(host) => host,
        Err(error) => {
            if endpoints.stdio {
                say(&json!({"jsonrpc": "2.0", "id": null,
                            "error": {"code": -32000, "message": format!("{error:#}")}}))?;
            }
            return Err(error);
        }
    };
    while !host.session.quits() && !host.was_interrupted() {
        host.turn(WAIT_MAX);
    }
    // The client that sent `shutdown` gets its answer.
    host.turn(Duration::ZERO);
    Ok(())
}

/// Load the profile, listen, and print the endpoints.
fn prepare(
    profile: Option<&Path>,
    core: Option<usize>,
    endpoints: &Endpoints,
) -> anyhow::Result<Host> {
    let mut host = Host::new()?;
    host.session.core = core;
    if let Some(path) = profile {
        host.load(read(path).map_err(|refusal| anyhow!("{refusal}"))?)?;
    }
    if endpoints.stdio {
        say(&ready(&mut host))?;
    }
    host.listen(endpoints)?;
    if let Some(address) = host.tcp() {
        eprintln!("quiver-tg: listens at {address}");
    }
    if let Some(socket) = &endpoints.socket {
        eprintln!("quiver-tg: listens at {}", socket.display());
    }
    Ok(host)
}

/// The notification that the generator takes requests from now on.
fn ready(host: &mut Host) -> Json {
    let counts =
        host.session.generator().map_or((0, 0), |g| (g.port_states().len(), g.streams().len()));
    json!({"jsonrpc": "2.0", "method": "ready", "params": {
        "version": env!("CARGO_PKG_VERSION"), "ports": counts.0, "streams": counts.1,
    }})
}

fn say(message: &Json) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{message}")?;
    out.flush()
}

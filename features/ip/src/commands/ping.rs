//! `ping`.

use std::net::IpAddr;

use quiver_control::{Command, Job, Registry};
use quiver_core::Engine;

use super::GROUP;
use crate::ping::{self, Wish};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "ping <address:ip> {[source <:interface>] [repeat <:1-1000000>] [size <:0-65000>] [interval <:seconds>] [burst <:1-1000>] [df-bit]}",
        )
        .group(GROUP)
        .help("Send echo requests, and tell the answers")
        .word("source", "the interface whose address, and whose table, is used")
        .word("repeat", "how many requests; 5")
        .word("size", "bytes of data in a request; 56")
        .word("interval", "time from one request, or burst, to the next; 1")
        .word("burst", "requests that are sent at once; 1")
        .word("df-bit", "nobody on the way may cut a request into fragments")
        .example("ping 192.0.2.2 repeat 3 interval 0.2")
        .begin(|engine: &mut Engine, args| {
            let wish = Wish {
                address: args.get::<IpAddr>("address")?,
                source: args.optional_interface(engine, "source")?,
                repeat: args.or("repeat", 5)?,
                size_bytes: args.or("size", 56)?,
                interval_s: args.or("interval", 1.0)?,
                burst: args.or("burst", 1)?,
                whole: args.has("df-bit"),
            };
            let job = ping::begin(engine, &wish)?;
            Ok(Box::new(job) as Box<dyn Job<Engine>>)
        }),
    );
}

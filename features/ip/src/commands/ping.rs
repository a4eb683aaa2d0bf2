//! `ping` and `traceroute`.

use std::net::IpAddr;

use quiver_control::{Args, Command, Job, Refusal, Registry};
use quiver_core::{Engine, InterfaceId};

use super::GROUP;
use crate::local::{ping, traceroute};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "ping (<address:ip> | ipv4 <address:ip4> | ipv6 <address:ip6>) [<on:interface>] \
             {[source <:interface>] [table-id <:u32>] [repeat <:1-1000000>] [size <:0-65000>] \
             [interval <:seconds>] [burst <:1-1000>] [df-bit]}",
        )
        .group(GROUP)
        .help("Send echo requests, and tell the answers")
        .word("on", "as source")
        .word("source", "the interface whose address, and whose table, is used")
        .word("table-id", "the table whose routes are used, when no interface says it; 0")
        .word("repeat", "how many requests; 5")
        .word("size", "bytes of data in a request; 56")
        .word("interval", "time from one request, or burst, to the next; 1")
        .word("burst", "requests that are sent at once; 1")
        .word("df-bit", "nobody on the way may cut a request into fragments")
        .example("ping 192.0.2.2 repeat 3 interval 0.2")
        .example("ping ipv6 fe80::1 e0")
        .begin(|engine: &mut Engine, args| {
            let wish = ping::Wish {
                address: args.get::<IpAddr>("address")?,
                source: source(engine, args)?,
                table: args.optional("table-id")?,
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
    registry.command(
        Command::new(
            "traceroute (<address:ip> | ipv4 <address:ip4> | ipv6 <address:ip6>) [<on:interface>] \
             {[source <:interface>] [table-id <:u32>] [hops <:1-255>] [probes <:1-10>] [wait \
             <:seconds>] [size <:0-1400>]}",
        )
        .group(GROUP)
        .help("Show the routers on the way to a host")
        .details(
            "Sends echo requests of one hop, of two, and so on, through the graph, and tells who \
             answers each. Ends at the host, or at an error other than that the hops are used up.",
        )
        .word("on", "as source")
        .word("source", "the interface whose address, and whose table, is used")
        .word("table-id", "the table whose routes are used, when no interface says it; 0")
        .word("hops", "how far at most; 30")
        .word("probes", "requests of each number of hops; 3")
        .word("wait", "how long an answer is waited for; 2")
        .word("size", "bytes of data in a request; 32")
        .example("traceroute 198.51.100.1 probes 1")
        .example("traceroute ipv6 2001:db8:b::1 source e0")
        .begin(|engine: &mut Engine, args| {
            let wish = traceroute::Wish {
                address: args.get::<IpAddr>("address")?,
                source: source(engine, args)?,
                table: args.optional("table-id")?,
                hops_max: args.or("hops", 30)?,
                probes: args.or("probes", 3)?,
                wait_s: args.or("wait", 2.0)?,
                size_bytes: args.or("size", 32)?,
            };
            Ok(Box::new(traceroute::begin(engine, wish)?) as Box<dyn Job<Engine>>)
        }),
    );
}

/// The interface that a ping leaves as, said behind the address or as `source`.
fn source(engine: &Engine, args: &Args<'_>) -> Result<Option<InterfaceId>, Refusal> {
    let on = args.optional_interface(engine, "on")?;
    match (on, args.optional_interface(engine, "source")?) {
        (Some(on), Some(source)) if on != source => {
            Err(args.refuse("source", "two interfaces are named").remedy("leave one out"))
        }
        (on, source) => Ok(on.or(source)),
    }
}

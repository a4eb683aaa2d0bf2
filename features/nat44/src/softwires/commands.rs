//! Commands of DS-Lite.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_control::{Command, ConfigWriter, IpPrefix, Output, Registry, order};
use quiver_core::Engine;

use crate::commands::{GROUP, PLUGIN};
use crate::config::{Nat44, ranges_of, with_enabled};
use crate::softwires::config::{self, B4S_DEFAULT};
use crate::softwires::{B4Limit, MTU_BYTES};

pub(crate) fn register(registry: &mut Registry) {
    aftr(registry);
    pool(registry);
    tunnel(registry);
    b4s(registry);
}

fn aftr(registry: &mut Registry) {
    registry.command(
        Command::new("dslite set aftr-tunnel-endpoint-address <address:ip6> [b4s <b4s:1-1048576>]")
            .entry(order::FEATURES, "dslite.aftr: {address: <address>, b4s: <b4s>}")
            .undo("dslite del aftr-tunnel-endpoint-address")
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Let B4s send packets of IPv4 to this address, and translate them (RFC 6333)")
            .details(
                "The AFTR of DS-Lite: hosts behind B4s, which may have the same addresses, get \
             addresses and ports of the pool. No interface needs the address. All hosts behind a \
             B4 are one subscriber to limits and port blocks. A B4 takes 86 to 96 bytes, from the \
             start.",
            )
            .word("b4s", "B4s at most; 65536")
            .example("dslite set aftr-tunnel-endpoint-address 2001:db8:ffff::1")
            .run(|engine: &mut Engine, args| {
                let b4s = args.or("b4s", B4S_DEFAULT as u32)? as usize;
                config::set_aftr(engine, args.get("address")?, b4s)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("dslite del aftr-tunnel-endpoint-address")
            .group(GROUP)
            .help("End all sessions of B4s, and take no packets of them any more")
            .example("dslite del aftr-tunnel-endpoint-address")
            .run(|engine: &mut Engine, _| {
                with_enabled(engine, config::delete_aftr)?;
                Ok(Output::none())
            }),
    );
}

fn pool(registry: &mut Registry) {
    registry.command(
        Command::new("dslite add pool address <first:ip4> [- <last:ip4>] [del]")
            .entry(order::FEATURES, "dslite.pool.<first>: {last}")
            .undo("dslite add pool address <first> [- <last>] del")
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Add addresses that hosts behind B4s are given, or remove them")
            .details(
                "Without any, these hosts get addresses of the pool of NAT44. Sessions of an \
                 address that is removed end.",
            )
            .example("dslite add pool address 192.0.2.1")
            .example("dslite add pool address 198.51.100.1 - 198.51.100.16")
            .run(|engine: &mut Engine, args| {
                let first: Ipv4Addr = args.get("first")?;
                let last = args.or("last", first)?;
                config::set_pool(engine, (first, last), !args.has("del"))?;
                Ok(Output::none())
            }),
    );
}

fn tunnel(registry: &mut Registry) {
    registry.command(
        Command::new("dslite set tunnel-mtu <bytes:1280-9216>")
            .entry(order::FEATURES, "dslite.tunnel-mtu: <bytes>")
            .undo("dslite set tunnel-mtu 1500")
            .replaces(&[])
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Say how long packets of IPv6 to B4s may be")
            .details(
                "Longer packets are cut behind their encapsulation, and B4s put them together \
                 (RFC 6333 section 6.3); senders that forbid it learn an MTU of 40 bytes less by \
                 ICMP. `nat mss-clamping` spares TCP both.",
            )
            .word("bytes", "bytes with the header of IPv6; 1500 at first")
            .example("dslite set tunnel-mtu 1540")
            .run(|engine: &mut Engine, args| {
                let mtu_bytes = args.get("bytes")?;
                config::change(engine, |dslite| dslite.mtu_bytes = mtu_bytes)?;
                Ok(Output::none())
            }),
    );
}

fn b4s(registry: &mut Registry) {
    registry.command(
        Command::new("dslite add b4-prefix <prefix:prefix6> [del]")
            .entry(order::FEATURES, "dslite.b4-prefixes.<prefix>: true")
            .undo("dslite add b4-prefix <prefix> del")
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Let hosts of a prefix be B4s, and others not, or no more (RFC 6333 section 11)")
            .details(
                "Without any prefix, every host may be one that reaches the AFTR's address. \
                 Sessions of B4s that are not admitted any more end.",
            )
            .example("dslite add b4-prefix 2001:db8:4000::/34")
            .run(|engine: &mut Engine, args| {
                let prefix: IpPrefix = args.get("prefix")?;
                let address = match prefix.address {
                    IpAddr::V6(address) => address,
                    IpAddr::V4(_) => return Err(args.refuse("prefix", "a prefix of IPv6")),
                };
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix.length)).unwrap_or(0);
                let first = Ipv6Addr::from_bits(address.to_bits() & mask);
                config::set_admitted(engine, (first, prefix.length), !args.has("del"))?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("dslite set b4-limit prefix-length <length:32-64> b4s <b4s:1-64>")
            .entry(order::FEATURES, "dslite.b4-limit: {prefix-length: <length>, b4s: <b4s>}")
            .undo("dslite set b4-limit prefix-length 56 b4s 16")
            .replaces(&[])
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Limit the B4s of one prefix")
            .details(
                "A subscriber has a whole prefix (RFC 7785), and must not take all B4s by \
                 sending from many addresses of it. Those that are there stay.",
            )
            .word("prefix-length", "bits of a subscriber's prefix; 56 at first")
            .word("b4s", "B4s of such a prefix at most; 16 at first")
            .example("dslite set b4-limit prefix-length 64 b4s 2")
            .run(|engine: &mut Engine, args| {
                let limit = B4Limit { length: args.get("length")?, b4s: args.get("b4s")? };
                config::change(engine, |dslite| dslite.limit = limit)?;
                Ok(Output::none())
            }),
    );
}

/// `show running-config`.
pub(crate) fn write(nat: &Nat44, config: &mut ConfigWriter) {
    let dslite = &nat.dslite;
    for (first, last, ()) in ranges_of(dslite.pool.iter().map(|address| (*address, ()))) {
        let last = if first == last { String::new() } else { format!(" - {last}") };
        config.command(format_args!("dslite add pool address {first}{last}"));
    }
    if dslite.mtu_bytes != MTU_BYTES {
        config.command(format_args!("dslite set tunnel-mtu {}", dslite.mtu_bytes));
    }
    for (first, length) in &dslite.admitted {
        config.command(format_args!("dslite add b4-prefix {first}/{length}"));
    }
    if dslite.limit != B4Limit::default() {
        let B4Limit { length, b4s } = dslite.limit;
        config.command(format_args!("dslite set b4-limit prefix-length {length} b4s {b4s}"));
    }
    if let Some((address, b4s)) = dslite.aftr {
        let b4s = if b4s == B4S_DEFAULT { String::new() } else { format!(" b4s {b4s}") };
        config.command(format_args!("dslite set aftr-tunnel-endpoint-address {address}{b4s}"));
    }
}

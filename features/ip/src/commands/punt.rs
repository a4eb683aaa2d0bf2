//! `ip punt redirect`, `ip punt policer`: what becomes of packets for the host.

use std::net::IpAddr;

use quiver_control::{
    Args, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order,
};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Family;

use super::GROUP;
use crate::addresses::interfaces::check_routes;
use crate::local::punt::Rate;
use crate::state::{IpState, with_ip};

pub(super) fn register(registry: &mut Registry) {
    for (family, redirect, policer, show) in [
        (
            Family::Ip4,
            "ip punt redirect add|del rx all|<rx:interface> [via <next-hop:ip4> <out:interface>]",
            "ip punt policer rate <rate:0-100000000> [burst <burst:1-1000000>]",
            "show ip punt redirect",
        ),
        (
            Family::Ip6,
            "ip6 punt redirect add|del rx all|<rx:interface> [via <next-hop:ip6> <out:interface>]",
            "ip6 punt policer rate <rate:0-100000000> [burst <burst:1-1000000>]",
            "show ip6 punt redirect",
        ),
    ] {
        let (all, one) = match family {
            Family::Ip4 => (
                "ip.punt-redirect.ip4: {next-hop, interface: <out>} with add all",
                "interfaces.<rx>.punt-redirect.ip4: {next-hop, interface: <out>} with add",
            ),
            Family::Ip6 => (
                "ip.punt-redirect.ip6: {next-hop, interface: <out>} with add all",
                "interfaces.<rx>.punt-redirect.ip6: {next-hop, interface: <out>} with add",
            ),
        };
        registry.command(
            Command::new(redirect)
                .entry(order::INTERFACE_SETTINGS, all)
                .entry(order::INTERFACE_SETTINGS, one)
                .undo(match family {
                    Family::Ip4 => "ip punt redirect del rx <rx=all>",
                    Family::Ip6 => "ip6 punt redirect del rx <rx=all>",
                })
                .replaces(&["rx"])
                .group(GROUP)
                .help(
                    "Send packets for the host to a next hop, by the interface that received them",
                )
                .details(
                    "Packets for the host are those of `via punt`, and those to the router itself \
                     that nothing in it speaks, as TCP. They are sent as they came: their TTL \
                     stays. `all` is for interfaces that have no redirect of their own. Without a \
                     redirect they are freed.",
                )
                .word("rx", "the interface that received the packets")
                .word("out", "the interface by which they leave")
                .example(match family {
                    Family::Ip4 => "ip punt redirect add rx all via 192.0.2.9 tap0",
                    Family::Ip6 => "ip6 punt redirect add rx all via 2001:db8::9 tap0",
                })
                .run(move |engine: &mut Engine, args| change_redirect(engine, args, family)),
        );
        registry.command(
            Command::new(policer)
                .entry(
                    order::INTERFACE_SETTINGS,
                    match family {
                        Family::Ip4 => "ip.punt-policer.ip4: {rate, burst}",
                        Family::Ip6 => "ip.punt-policer.ip6: {rate, burst}",
                    },
                )
                .undo(match family {
                    Family::Ip4 => "ip punt policer rate 0",
                    Family::Ip6 => "ip6 punt policer rate 0",
                })
                .replaces(&[])
                .group(GROUP)
                .help("Limit how many packets for the host a worker lets pass")
                .details("What is more dies as `policed`. A rate of 0 is no limit.")
                .word("rate", "packets a second and worker")
                .word("burst", "packets at once; a tenth of the rate")
                .example(match family {
                    Family::Ip4 => "ip punt policer rate 1000 burst 100",
                    Family::Ip6 => "ip6 punt policer rate 1000 burst 100",
                })
                .run(move |engine: &mut Engine, args| {
                    let packets: u32 = args.get("rate")?;
                    let burst = args.or("burst", (packets / 10).max(1))?;
                    let ip = engine.get_mut::<IpState>().ok_or_else(super::busy)?;
                    let burst = if packets == 0 { 0 } else { burst };
                    ip.punts.table.set_rate(family, Rate { packets, burst });
                    Ok(Output::none())
                }),
        );
        registry.command(
            Command::new(show)
                .group(GROUP)
                .help("Show where packets for the host go, and how many may")
                .run(move |engine: &mut Engine, _| Ok(listing(engine, family))),
        );
    }
}

fn change_redirect(
    engine: &mut Engine,
    args: &Args<'_>,
    family: Family,
) -> Result<Output, Refusal> {
    let rx = args.optional_interface(engine, "rx")?;
    if args.has("del") {
        let ended = with_ip(engine, |_, ip, fib| ip.punts.end(fib, family, rx));
        let of = rx.map_or("all".to_owned(), |rx| engine.interface_name(rx).to_string());
        return match ended {
            true => Ok(Output::none()),
            false => {
                Err(Refusal::new(format!("packets for the host from {of} are not redirected")))
            }
        };
    }
    let next_hop: IpAddr = args
        .get("next-hop")
        .map_err(|refusal: Refusal| refusal.remedy("say where the packets go: via NEXT-HOP IF"))?;
    let out: InterfaceId = args.interface(engine, "out")?;
    check_routes(engine, out)?;
    let done = with_ip(engine, |_, ip, fib| ip.punts.redirect(fib, rx, next_hop, out));
    done.map_err(|error| Refusal::of_table(engine, error))?;
    Ok(Output::none())
}

fn listing(engine: &Engine, family: Family) -> Output {
    let mut table = Table::new([
        Column::left("Received on"),
        Column::left("Next hop"),
        Column::left("Interface"),
    ]);
    let Some(ip) = engine.get::<IpState>() else { return Output::none() };
    for (_, rx, redirect) in ip.punts.redirects().filter(|(of, ..)| *of == family) {
        let on = rx.map_or("all".to_owned(), |rx| engine.interface_name(rx).to_string());
        table.row().cell(on).cell(redirect.next_hop).cell(engine.interface_name(redirect.out));
    }
    let shown = Output::none().table("redirects", table);
    match ip.punts.table.rate(family) {
        Rate { packets: 0, .. } => shown,
        Rate { packets, burst } => {
            shown.line(format!("at most {packets} packets a second and worker, {burst} at once"))
        }
    }
}

/// The part of `show running-config`.
pub(super) fn write_config(engine: &Engine, ip: &IpState, config: &mut ConfigWriter) {
    let word = |family: Family| if family == Family::Ip4 { "ip" } else { "ip6" };
    let redirects = ip.punts.redirects().map(|(family, rx, redirect)| {
        // Those of all interfaces stand before those of one.
        let on = rx.map(|rx| engine.interface_name(rx).to_string());
        ((family, on), redirect)
    });
    let mut redirects: Vec<_> = redirects.collect();
    redirects.sort_by(|(a, _), (b, _)| a.cmp(b));
    for ((family, on), redirect) in redirects {
        let on = on.as_deref().unwrap_or("all");
        let (next_hop, out) = (redirect.next_hop, engine.interface_name(redirect.out));
        config.command(format_args!(
            "{} punt redirect add rx {on} via {next_hop} {out}",
            word(family)
        ));
    }
    for family in [Family::Ip4, Family::Ip6] {
        let Rate { packets, burst } = ip.punts.table.rate(family);
        if packets > 0 {
            config.command(format_args!(
                "{} punt policer rate {packets} burst {burst}",
                word(family)
            ));
        }
    }
}

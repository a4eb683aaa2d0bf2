//! Commands about what holds for all domains.

use std::net::Ipv4Addr;

use quiver_control::{Command, Output, Registry, order};
use quiver_core::Engine;

use crate::commands::GROUP;
use crate::config::change_params;

pub(crate) fn register(registry: &mut Registry) {
    fragments(registry);
    checks(registry);
    headers(registry);
    errors(registry);
}

fn fragments(registry: &mut Registry) {
    registry.command(
        Command::new("map params fragment inner|outer ignore-df|honor-df")
            .entry(order::FEATURES, "map.fragment: {cut: <inner|outer>, df: <ignore-df|honor-df>}")
            .undo("map params fragment outer honor-df")
            .replaces(&[])
            .group(GROUP)
            .help("Say how packets are cut that are longer than the MTU of their domain")
            .details(
                "With outer, as at first, packets of IPv6 are cut, and the customer puts them \
                 together (RFC 2473); with inner, the packets of IPv4 inside. With honor-df, as \
                 at first, senders that forbid it are told the MTU; with ignore-df their packets \
                 are cut, too.",
            )
            .example("map params fragment inner honor-df")
            .run(|engine: &mut Engine, args| {
                let (cuts_inner, ignores_df) = (args.has("inner"), args.has("ignore-df"));
                change_params(engine, |params| {
                    (params.cuts_inner, params.ignores_df) = (cuts_inner, ignores_df);
                });
                Ok(Output::none())
            }),
    );
}

fn checks(registry: &mut Registry) {
    registry.command(
        Command::new("map params security-check on|off")
            .entry(order::FEATURES, "map.security-check: <on?off>")
            .undo("map params security-check on")
            .replaces(&[])
            .group(GROUP)
            .help("Check that packets of IPv6 come from who has their IPv4 source and port")
            .details(
                "On at first (RFC 7597 section 8.1). Off, a customer can send with the addresses \
                 of others.",
            )
            .example("map params security-check off")
            .run(|engine: &mut Engine, args| {
                let on = args.has("on");
                change_params(engine, |params| params.checks_source = on);
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("map params security-check fragments on|off")
            .entry(order::FEATURES, "map.security-check-fragments: <on?off>")
            .undo("map params security-check fragments off")
            .replaces(&[])
            .group(GROUP)
            .help("Refuse fragments of customers who share an address, where the port is unknown")
            .details(
                "Off, as at first, the address of such a fragment is checked without its port: \
                 it passes from each customer who shares the IPv4 address.",
            )
            .example("map params security-check fragments on")
            .run(|engine: &mut Engine, args| {
                let on = args.has("on");
                change_params(engine, |params| params.checks_fragments = on);
                Ok(Output::none())
            }),
    );
}

fn headers(registry: &mut Registry) {
    registry.command(
        Command::new("map params traffic-class (<class:0-255>|copy)")
            .entry(order::FEATURES, "map.traffic-class: <class> / <copy|>")
            .undo("map params traffic-class copy")
            .replaces(&[])
            .group(GROUP)
            .help("Say which traffic class packets of IPv6 around packets of IPv4 have")
            .details("The two bits of congestion notification are always copied (RFC 6040).")
            .word("class", "this one")
            .word("copy", "that of the packet inside, as at first")
            .example("map params traffic-class 32")
            .run(|engine: &mut Engine, args| {
                let class: Option<u8> = args.optional("class")?;
                change_params(engine, |params| params.traffic_class = class);
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("map params tcp-mss <bytes:0-9216>")
            .entry(order::FEATURES, "map.tcp-mss: <bytes>")
            .undo("map params tcp-mss 0")
            .replaces(&[])
            .group(GROUP)
            .help("Lower the segment size that SYNs name, in both directions")
            .word("bytes", "segments are not longer; 0 leaves what SYNs name, as at first")
            .example("map params tcp-mss 1420")
            .run(|engine: &mut Engine, args| {
                let mss_bytes: u16 = args.get("bytes")?;
                change_params(engine, |params| params.mss_bytes = mss_bytes);
                Ok(Output::none())
            }),
    );
}

fn errors(registry: &mut Registry) {
    registry.command(
        Command::new("map params icmp source-address <address:ip4>")
            .entry(order::FEATURES, "map.icmp-source-address: <address>")
            .undo("map params icmp source-address 0.0.0.0")
            .replaces(&[])
            .group(GROUP)
            .help("Name the source of translated errors of routers that have no IPv4 address")
            .details(
                "0.0.0.0, as at first, is this router's own address towards their receiver (RFC \
                 6791).",
            )
            .word("address", "an address of IPv4")
            .example("map params icmp source-address 192.0.2.254")
            .run(|engine: &mut Engine, args| {
                let address: Ipv4Addr = args.get("address")?;
                change_params(engine, |params| params.icmp_source = address.to_bits());
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("map params icmp6 unreachables on|off")
            .entry(order::FEATURES, "map.icmp6-unreachables: <on?off>")
            .undo("map params icmp6 unreachables on")
            .replaces(&[])
            .group(GROUP)
            .help("Tell senders of IPv6 that they do not have the IPv4 source or port they use")
            .details(
                "On at first: destination unreachable, source address failed ingress policy (RFC \
                 7597 section 8.1), limited in rate as all ICMPv6 errors are.",
            )
            .example("map params icmp6 unreachables off")
            .run(|engine: &mut Engine, args| {
                let on = args.has("on");
                change_params(engine, |params| params.tells_refused = on);
                Ok(Output::none())
            }),
    );
}

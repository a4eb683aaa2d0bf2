//! `set acl-plugin logging …`, `show acl-plugin log`.

use quiver_control::{Cell, Column, Command, ConfigWriter, Output, Registry, Table, order};
use quiver_core::Engine;

use crate::commands::GROUP;
use crate::log_config::{AclLog, IpfixLog, RATE_DEFAULT, configure};

/// The observation domain when none is given: not that of NAT.
const DOMAIN_DEFAULT: u32 = 3;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set acl-plugin logging ipfix (disable | {[domain <:u32>] [src-port <:1-65535>]})",
        )
        .entry(order::LIMITS, "acl.logging.ipfix: {domain, src-port}")
        .undo("set acl-plugin logging ipfix disable")
        .replaces(&[])
        .group(GROUP)
        .help("Export what rules with log decide about by IPFIX")
        .details(
            "Records go to the collector of `set ipfix exporter`. selectorId is the number of the \
             list times 2^32 and the place of the rule, forwardingStatus 129 is denied, and \
             packetDeltaCount counts the rule's packets since its record before.",
        )
        .word("domain", "the observation domain; 3")
        .word("src-port", "UDP port that the messages come from; any")
        .example("set acl-plugin logging ipfix")
        .run(|engine: &mut Engine, args| {
            let ipfix = match args.has("disable") {
                true => None,
                false => Some(IpfixLog {
                    domain: args.or("domain", DOMAIN_DEFAULT)?,
                    source_port: args.or("src-port", 0)?,
                }),
            };
            configure(engine, |log| log.ipfix = ipfix)?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("set acl-plugin logging syslog on|off")
            .entry(order::LIMITS, "acl.logging.syslog: <on?off>")
            .undo("set acl-plugin logging syslog off")
            .replaces(&[])
            .group(GROUP)
            .help("Send what rules with log decide about by syslog")
            .details("Messages go to the collector of `set syslog sender`.")
            .example("set acl-plugin logging syslog on")
            .run(|engine: &mut Engine, args| {
                let is_on = args.has("on");
                configure(engine, |log| log.syslog = is_on)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set acl-plugin logging rate <rate:1-1000>")
            .entry(order::LIMITS, "acl.logging.rate: <rate>")
            .undo("set acl-plugin logging rate 1")
            .replaces(&[])
            .group(GROUP)
            .help("Say how many records a rule with log writes in a second at most")
            .details(
                "The first packet has a record at once. Packets without one are counted in the \
                 next record of the rule. A worker writes at most 1,000 records in a second at \
                 each place where lists filter.",
            )
            .example("set acl-plugin logging rate 10")
            .run(|engine: &mut Engine, args| {
                let rate = args.get("rate")?;
                configure(engine, |log| log.rate = rate)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show acl-plugin log")
            .group(GROUP)
            .help("Show how rules with log are logged, and how many records were made and lost")
            .details(
                "Lost are records that came faster than the control thread took them. What became \
                 of the others, `show ipfix exporter` and `show syslog sender` say.",
            )
            .run(|engine: &mut Engine, _| Ok(show(engine))),
    );
}

fn show(engine: &Engine) -> Output {
    let Some(log) = engine.get::<AclLog>() else { return Output::none() };
    let mut actions =
        Table::new([Column::left("Action"), Column::right("Made"), Column::right("Lost")]);
    for (word, counts) in log.counts() {
        actions.row().cell(word).cell(counts.made).cell(counts.lost);
    }
    Output::none()
        .field("Domain", Cell::optional(log.ipfix.map(|ipfix| ipfix.domain), "none"))
        .field("Syslog", if log.syslog { "on" } else { "off" })
        .field("Records of a rule per s", log.rate)
        .table("actions", actions)
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(log) = engine.get::<AclLog>() else { return };
    if log.rate != RATE_DEFAULT {
        config.command(format_args!("set acl-plugin logging rate {}", log.rate));
    }
    if let Some(ipfix) = &log.ipfix {
        let domain = ipfix.domain;
        let port = match ipfix.source_port {
            0 => String::new(),
            port => format!(" src-port {port}"),
        };
        config.command(format_args!("set acl-plugin logging ipfix domain {domain}{port}"));
    }
    if log.syslog {
        config.command(format_args!("set acl-plugin logging syslog on"));
    }
}

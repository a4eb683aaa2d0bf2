//! `nat ipfix logging …`, `nat syslog logging …`, `show nat log`.

use std::sync::atomic::Ordering;

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order,
};
use quiver_core::Engine;

use crate::record::Detail;
use crate::state::{IpfixLog, NatLog, configure};

const GROUP: &str = "NAT";
/// The observation domain when none is given, as in VPP.
const DOMAIN_DEFAULT: u32 = 1;
const DETAIL_HELP: &str = "sessions, or less: endpoint-independent mappings, port blocks";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "nat ipfix logging (disable | {[domain <:u32>] [src-port <:1-65535>] \
             [detail <detail:sessions|mappings|blocks>]})",
        )
        .entry(order::RESOURCES, "nat.ipfix-logging: {domain, src-port, detail}")
        .undo("nat ipfix logging disable")
        .replaces(&[])
        .group(GROUP)
        .help("Export the events of NAT by IPFIX (RFC 8158)")
        .details(
            "They go to the collector of `set ipfix exporter`. With detail `mappings` there are \
             no sessions, which name the hosts that a subscriber talks to (RFC 6888 REQ-12): that \
             is enough where `nat44 mapping` is endpoint-independent. With `blocks` there are \
             neither, which is enough where `nat44 port-blocks` gives ports by blocks, and some \
             thousand times less. Of DET44 its mappings are exported when they are added or \
             removed.",
        )
        .word("domain", "the observation domain; 1")
        .word("src-port", "UDP port that the messages come from; any")
        .word("detail", DETAIL_HELP)
        .example("nat ipfix logging")
        .example("nat ipfix logging domain 7 detail blocks")
        .run(|engine: &mut Engine, args| {
            let ipfix = match args.has("disable") {
                true => None,
                false => Some(IpfixLog {
                    domain: args.or("domain", DOMAIN_DEFAULT)?,
                    source_port: args.or("src-port", 0)?,
                    detail: detail(args)?,
                }),
            };
            configure(engine, |log| log.ipfix = ipfix);
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "nat syslog logging (disable | {[detail <detail:sessions|mappings|blocks>]})",
        )
        .entry(order::RESOURCES, "nat.syslog-logging: {detail}")
        .undo("nat syslog logging disable")
        .replaces(&[])
        .group(GROUP)
        .help("Send the events of NAT by syslog")
        .details(
            "They go to the collector of `set syslog sender`, each in a datagram of its own. As \
             for `nat ipfix logging`, `detail` says which.",
        )
        .word("detail", DETAIL_HELP)
        .example("nat syslog logging detail blocks")
        .run(|engine: &mut Engine, args| {
            let syslog = match args.has("disable") {
                true => None,
                false => Some(detail(args)?),
            };
            configure(engine, |log| log.syslog = syslog);
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("show nat log")
            .also("show nat44 log")
            .group(GROUP)
            .help("Show which events of NAT are logged, and how many were made and lost")
            .details(
                "Lost are events that came faster than the control thread took them. What became \
                 of the others, `show ipfix exporter` and `show syslog sender` say.",
            )
            .run(|engine: &mut Engine, _| Ok(show(engine))),
    );
}

fn detail(args: &Args<'_>) -> Result<Detail, Refusal> {
    let word: &str = args.or("detail", Detail::Sessions.word())?;
    let known = Detail::ALL.into_iter().find(|detail| detail.word() == word);
    Ok(known.unwrap_or(Detail::Sessions))
}

fn show(engine: &Engine) -> Output {
    let Some(log) = engine.get::<NatLog>() else { return Output::none() };
    let mut events =
        Table::new([Column::left("Event"), Column::right("Made"), Column::right("Lost")]);
    for (word, counts) in log.records.counts() {
        events.row().cell(word).cell(counts.made).cell(counts.lost);
    }
    let word = |detail: Option<Detail>| Cell::optional(detail.map(Detail::word), "off");
    Output::none()
        .field("IPFIX", word(log.ipfix.map(|ipfix| ipfix.detail)))
        .field("Domain", Cell::optional(log.ipfix.map(|ipfix| ipfix.domain), "none"))
        .field("Syslog", word(log.syslog))
        .field("Repeated notices", log.shared.repeated.load(Ordering::Relaxed))
        .table("events", events)
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(log) = engine.get::<NatLog>() else { return };
    if let Some(ipfix) = &log.ipfix {
        let domain = match ipfix.domain {
            DOMAIN_DEFAULT => String::new(),
            domain => format!(" domain {domain}"),
        };
        let port = match ipfix.source_port {
            0 => String::new(),
            port => format!(" src-port {port}"),
        };
        let detail = ipfix.detail.word();
        config.command(format_args!("nat ipfix logging{domain}{port} detail {detail}"));
    }
    if let Some(syslog) = log.syslog {
        config.command(format_args!("nat syslog logging detail {}", syslog.word()));
    }
}

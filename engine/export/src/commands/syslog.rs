//! `set syslog sender …`, `set syslog filter …`, `show syslog sender`, in the words of VPP.

use std::net::SocketAddr;

use quiver_control::{Args, Cell, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;

use crate::commands::{GROUP, addresses, error};
use crate::syslog::message::Severity;
use crate::syslog::sender::{FILTER_DEFAULT, Settings, SyslogSender};

/// The port of syslog (RFC 5426 §3.3).
const PORT_DEFAULT: u16 = 514;
/// RFC 5424 §6.1: what every receiver accepts.
const MESSAGE_BYTES_DEFAULT: u16 = 480;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set syslog sender (disable | {collector <:ip> src <:ip> [port <:1-65535>] \
             [max-msg-size <:480-65000>]})",
        )
        .entry(order::RESOURCES, "syslog.sender: {collector, src, port, max-msg-size}")
        .undo("set syslog sender disable")
        .replaces(&[])
        .group(GROUP)
        .help("Send events to a collector by syslog over UDP (RFC 5424, RFC 5426)")
        .details(
            "Messages leave by a socket of Linux, so that src is an address that Linux has: of a \
             management port, of a twin. They name it as their host. A socket that could not be \
             opened is tried again every second.",
        )
        .word("collector", "the address of the collector")
        .word("src", "the address of Linux that messages come from")
        .word("port", "UDP port of the collector; 514")
        .word("max-msg-size", "bytes of a message at most; 480")
        .example("set syslog sender collector 192.0.2.9 src 192.0.2.1")
        .run(set),
    );
    registry.command(
        Command::new(
            "set syslog filter severity \
             <severity:emerg|alert|crit|err|warn|notice|info|debug>",
        )
        .entry(order::RESOURCES, "syslog.filter: <severity>")
        .undo("set syslog filter severity info")
        .replaces(&[])
        .group(GROUP)
        .help("Leave out events that are less severe")
        .details(
            "Sessions, mappings and port blocks of NAT are `info`, changes of DET44 are `notice`, \
             what is exhausted is `warn`.",
        )
        .example("set syslog filter severity warn")
        .run(|engine: &mut Engine, args| {
            let word: &str = args.get("severity")?;
            let severity = Severity::ALL.into_iter().find(|severity| severity.word() == word);
            let severity = severity.unwrap_or(FILTER_DEFAULT);
            if let Some(sender) = engine.get_mut::<SyslogSender>() {
                sender.set_filter(severity);
            }
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("show syslog sender")
            .group(GROUP)
            .help("Show the syslog collector, and what became of messages")
            .run(|engine: &mut Engine, _| Ok(show(engine))),
    );
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let settings = match args.has("disable") {
        true => None,
        false => {
            let (collector, source) = addresses(args)?;
            Some(Settings {
                collector: SocketAddr::new(collector, args.or("port", PORT_DEFAULT)?),
                source,
                message_bytes_max: args.or("max-msg-size", MESSAGE_BYTES_DEFAULT)?,
            })
        }
    };
    if let Some(sender) = engine.get_mut::<SyslogSender>() {
        sender.set(settings);
    }
    Ok(Output::none())
}

fn show(engine: &Engine) -> Output {
    let Some(sender) = engine.get::<SyslogSender>() else { return Output::none() };
    let (settings, counts) = (sender.settings(), sender.counts());
    let text = |value: Option<String>| Cell::optional(value, "none");
    let longest = settings.map(|own| u64::from(own.message_bytes_max));
    Output::none()
        .field("Collector", text(settings.map(|own| own.collector.to_string())))
        .field("Source", text(settings.map(|own| own.source.to_string())))
        .field("Message bytes at most", Cell::optional(longest, "none"))
        .field("Filter", sender.filter().word())
        .field("Messages", counts.messages)
        .field("Bytes", counts.datagrams.sent_bytes)
        .field("Lost", counts.lost)
        .field("Too long", counts.too_long)
        .field("Filtered", counts.filtered)
        .field("Refused", counts.datagrams.refused)
        .field("Buffer full", counts.datagrams.full)
        .field("Errors", counts.datagrams.errors)
        .field("Error", error(sender.error(), sender.error_word()))
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(sender) = engine.get::<SyslogSender>() else { return };
    if let Some(Settings { collector, source, message_bytes_max }) = sender.settings() {
        let port = match collector.port() {
            PORT_DEFAULT => String::new(),
            port => format!(" port {port}"),
        };
        let longest = match *message_bytes_max {
            MESSAGE_BYTES_DEFAULT => String::new(),
            bytes => format!(" max-msg-size {bytes}"),
        };
        config.command(format_args!(
            "set syslog sender collector {} src {source}{port}{longest}",
            collector.ip()
        ));
    }
    if sender.filter() != FILTER_DEFAULT {
        config.command(format_args!("set syslog filter severity {}", sender.filter().word()));
    }
}
